"""Population, life expectancy and income every five years from 1952 to 2007, from gapminder."""

from __future__ import annotations

import csv

from kb import Value, Year
from kb.world.collect import World
from kb.world.geonames import country_named
from kb.world.sources import folder_of

# Column, key, decimals kept.
COLUMNS = (
    ("pop", "population", 0),
    ("lifeExp", "life expectancy", 3),
    ("gdpPercap", "income per person", 2),
)


def add_figures_by_year(world: World) -> None:
    """Add the three figures of each country and year, marked as Gapminder's."""
    path = folder_of("gapminder") / "gapminder.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            country = country_named(row["country"])
            if country is None:
                raise ValueError(f"gapminder names an unknown country: {row['country']}")
            qualifiers: dict[str, Value] = {
                "point in time": Year(int(row["year"])),
                "source": "Gapminder",
            }
            for column, key, decimals in COLUMNS:
                world.number(country, key, round(float(row[column]), decimals), qualifiers)
