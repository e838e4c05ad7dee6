"""Currencies and languages from CLDR, figures by year from Gapminder, airports."""

from __future__ import annotations

import csv
import importlib
import re
from typing import Any

from kb import Date, Quantity, Value, Year
from kb.world.collect import World, slug
from kb.world.geonames import Gazetteer, countries, country_id, country_named
from kb.world.sources import folder_of
from kb.world.text import clean_name

# --- currencies with their periods, languages with their speakers (CLDR in babel) ------------

LEAST_SHARE = 0.01  # percent of the population that uses a language
STATUS = {
    "official": "official",
    "official_regional": "official in a part",
    "de_facto_official": "official in practice",
}
# No money that people pay with: funds codes, metals, units of account.
NO_MONEY = {
    "CHE",
    "CHW",
    "CLF",
    "COU",
    "MXV",
    "USN",
    "USS",
    "UYI",
    "UYW",
    "BOV",
    "XAG",
    "XAU",
    "XBA",
    "XBB",
    "XBC",
    "XBD",
    "XDR",
    "XEU",
    "XFO",
    "XFU",
    "XPD",
    "XPT",
    "XRE",
    "XSU",
    "XTS",
    "XUA",
    "XXX",
    "BEC",
    "BEL",
    "ESA",
    "ESB",
}


def _english() -> Any:
    return importlib.import_module("babel").Locale("en")


def _globals(name: str) -> Any:
    return importlib.import_module("babel.core").get_global(name)


def add_currencies(world: World) -> None:
    """Add currencies, with when a territory began and ceased to use them.

    Name and years of a currency that CLDR tells apart by years are split: "Angolan Kwanza".
    """
    names = _english().currencies
    for code, periods in sorted(_globals("territory_currencies").items()):
        if code not in countries():
            continue
        for currency, start, end, tender in periods:
            if not tender or currency in NO_MONEY or currency not in names:
                continue
            name = clean_name(names[currency])
            concept = "former currency" if end else "currency in use"
            id = world.entity(f"currency-{currency}", name, "currency")
            if not end:
                world.entity(id, name, concept)
            world.text(id, "ISO 4217 code", currency)
            qualifiers: dict[str, Value] = {}
            if start:
                qualifiers["start time"] = Date(*start)
            if end:
                qualifiers["end time"] = Date(*end)
            world.fact(country_id(code), "currency", id, qualifiers)
    for id, entity in world.entities.items():
        if id.startswith("currency-") and "currency in use" not in entity.concepts:
            entity.concepts.add("former currency")


def add_languages(world: World) -> None:
    """Add languages with the share of people who use them, and whether they are official."""
    names = _english().languages
    speakers: dict[str, int] = {}
    for code, languages in sorted(_globals("territory_languages").items()):
        if code not in countries():
            continue
        for language, told in sorted(languages.items()):
            share = told["population_percent"]
            if "_" in language or language not in names or share < LEAST_SHARE:
                continue
            name = clean_name(names[language])
            id = world.entity(f"language-{slug(language)}", name, "language")
            world.text(id, "ISO 639 code", language)
            qualifiers: dict[str, Value] = {"proportion": Quantity(min(share, 100.0), "percent")}
            world.fact(country_id(code), "language used", id, qualifiers)
            status = told["official_status"]
            if status:
                world.fact(
                    country_id(code),
                    "official language",
                    id,
                    {**qualifiers, "status": STATUS[status]},
                )
            speakers[id] = speakers.get(id, 0) + (share >= 1)
    for id, count in speakers.items():
        if count >= 10:
            world.entity(id, "", "widely spoken language")


# --- population, life expectancy, income every five years, 1952 to 2007 ----------------------

# Column, key, decimals kept.
FIGURES_BY_YEAR = (
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
            for column, key, decimals in FIGURES_BY_YEAR:
                world.number(country, key, round(float(row[column]), decimals), qualifiers)


# --- airports with an IATA code, from airportsdata -------------------------------------------

ICAO_CODE = re.compile(r"[A-Z]{4}")  # a provisional code begins with an underscore
METRES_PER_FOOT = 0.3048
HIGH = 2438  # metres, that is 8,000 feet: above, an airport counts as high


def add_airports(world: World, gazetteer: Gazetteer) -> None:
    """Add international airports, and those of large cities.

    Elevations come in feet and are rounded to the metre.
    """
    path = folder_of("airportsdata") / "airports.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if ICAO_CODE.fullmatch(row["icao"])]
    for row in sorted(rows, key=lambda row: row["icao"]):
        name, country = clean_name(row["name"]), country_id(row["country"])
        first, _, rest = name.partition(" ")
        if first.upper() == row["iata"]:
            name = f"{row['iata']} {rest}"  # the source writes "Okc"
        international = "International" in name
        if not international or not world.has(country) or len(row["iata"]) != 3:
            continue
        id = world.entity(f"airport-{row['icao']}", name, "international airport")
        elevation = round(float(row["elevation"]) * METRES_PER_FOOT)
        world.number(id, "elevation above sea level", elevation)
        if elevation >= HIGH:
            world.entity(id, name, "high-altitude airport")
        world.text(id, "IATA airport code", row["iata"])
        world.text(id, "ICAO airport code", row["icao"])
        world.text(id, "time zone", row["tz"])
        world.fact(id, "country", country)
        place = float(row["lat"]), float(row["lon"])
        city = gazetteer.find(row["city"], country, near=place) if row["city"] else None
        if city:
            world.fact(id, "serves", city)
