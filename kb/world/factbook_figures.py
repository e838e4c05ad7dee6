"""Figures, names and dates of territories, from the factbook."""

from __future__ import annotations

import re
from collections import Counter

from kb import Value, Year
from kb.world.collect import World
from kb.world.factbook import Page, pages
from kb.world.text import clean_name, day, figure, outside_brackets, plain, split_outside_brackets

PER_THOUSAND = r"/1,000 population"
# Path, key, and the pattern of the unit; "*" stands for the years that the factbook sets side by
# side. A figure in any other unit ("of GNI", "0.05 ha") is left out.
FIGURES: tuple[tuple[str, str, str], ...] = (
    ("People and Society/Population/total", "population", ""),
    ("Geography/Area/total", "area", "sq km"),
    ("Geography/Coastline", "coastline length", "km"),
    ("Geography/Land boundaries/total", "land boundary length", "km"),
    ("Environment/Land use/forest", "forest cover", "%"),
    ("People and Society/Median age/total", "median age", "years"),
    ("People and Society/Life expectancy at birth/total population", "life expectancy", "years"),
    ("People and Society/Population growth rate", "population growth rate", "%"),
    ("People and Society/Birth rate", "birth rate", "births" + PER_THOUSAND),
    ("People and Society/Death rate", "death rate", "deaths" + PER_THOUSAND),
    (
        "People and Society/Infant mortality rate/total",
        "infant mortality rate",
        "deaths/1,000 live births",
    ),
    ("People and Society/Total fertility rate", "fertility rate", "children born/woman"),
    ("People and Society/Literacy/total population", "literacy rate", "%"),
    ("Economy/GDP (official exchange rate)", "nominal GDP", ""),
    (
        "Economy/Real GDP (purchasing power parity)/Real GDP (purchasing power parity) *",
        "GDP at purchasing power parity",
        "",
    ),
    ("Economy/Real GDP per capita/Real GDP per capita *", "GDP per person", ""),
    ("Economy/Real GDP growth rate/Real GDP growth rate *", "GDP growth rate", "%"),
    (
        "Economy/Inflation rate (consumer prices)/Inflation rate (consumer prices) *",
        "inflation rate",
        "%",
    ),
    ("Economy/Unemployment rate/Unemployment rate *", "unemployment rate", "%"),
    ("Economy/Exports/Exports *", "value of exports", ""),
    ("Economy/Imports/Imports *", "value of imports", ""),
    ("Economy/Public debt/Public debt *", "public debt", "% of GDP"),
    (
        "Economy/Gini Index coefficient - distribution of family income/"
        "Gini Index coefficient - distribution of family income *",
        "Gini coefficient",
        "",
    ),
    (
        "Military and Security/Military expenditures/Military Expenditures *",
        "military expenditure",
        "% of GDP",
    ),
    (
        "Economy/Exchange rates/Exchange rates *",
        "exchange rate against the United States dollar",
        "",
    ),
    ("Energy/Electricity/consumption", "electricity consumption", "kWh"),
    (
        "Environment/Carbon dioxide emissions/total emissions",
        "carbon dioxide emissions",
        "metric tonnes of CO2",
    ),
    ("Communications/Internet users/percent of population", "internet users", "%"),
    ("Transportation/Airports", "number of airports", ""),
    ("Transportation/Railways/total", "railway length", "km"),
)
# These change so slowly that the factbook gives no year.
TIMELESS = {"area", "coastline length", "land boundary length"}
# Keys in dollars: the text must say so.
IN_DOLLARS = {
    "nominal GDP",
    "GDP at purchasing power parity",
    "GDP per person",
    "value of exports",
    "value of imports",
}


Figure = tuple[float, int | None]


def add_figures(world: World, refused: Counter[str] | None = None) -> None:
    """Add the figures of every page; a text that cannot be read is counted in ``refused``."""
    for page in pages():
        for path, key, unit in FIGURES:
            if path.endswith("*"):
                texts = [text for rest, text in page.below(path[:-1]) if f"({rest}" in text]
            else:
                texts = [page.get(path)]
            figures = []
            for text in filter(None, texts):
                found = _read_figure(key, text, unit)
                if found:
                    figures.append(found)
                elif refused is not None:
                    refused[f"{key}: {plain(text)[:70]}"] += 1
            for number, year in _without_slips(key, figures):
                time = {"point in time": Year(year)} if year else None
                world.number(page.id, key, number, time)
        _add_names(world, page)
        _add_independence(world, page)
        _add_counts(world, page)


def _read_figure(key: str, text: str, unit: str) -> Figure | None:
    if key in TIMELESS:
        text = outside_brackets(plain(text))  # the parts of the whole
    found = figure(text, unit)
    if found is None or (key in IN_DOLLARS) != ("$" in text):
        return None
    return found if found[1] or key in TIMELESS else None


def _without_slips(key: str, figures: list[Figure]) -> list[Figure]:
    """The figures without those a hundred times off the others: "billion" for "million"."""
    if key not in IN_DOLLARS or len(figures) < 3:
        return figures
    middle = sorted(number for number, _ in figures)[len(figures) // 2]
    return [(number, year) for number, year in figures if middle / 100 < number < middle * 100]


NO_NAME = re.compile(r"none|NA|same as .*|note.*", re.IGNORECASE)


def _add_names(world: World, page: Page) -> None:
    name = clean_name(page.get("Government/Country name/conventional long form"))
    if name and not NO_NAME.fullmatch(name) and ";" not in name and "/" not in name:
        world.text(page.id, "official name", name)
    own = world.entities[page.id].name
    for name in split_outside_brackets(plain(page.get("Government/Country name/former")), ",;"):
        name = clean_name(name)
        if not name[:1].isupper() or " is " in name or "note" in name:
            continue
        if not NO_NAME.fullmatch(name) and len(name) < 60 and name != own:
            world.text(page.id, "former name", name)
    adjective = clean_name(page.get("People and Society/Nationality/adjective"))
    for name in re.split(r",? or |, ", adjective):
        if re.fullmatch(r"[A-Z][\w' -]+", name.strip()) and not NO_NAME.fullmatch(name.strip()):
            world.text(page.id, "demonym", name.strip())
    for color in outside_brackets(plain(page.get("Government/National color(s)"))).split(","):
        if re.fullmatch(r"[a-z]+(?:[ -][a-z]+)?", color.strip()):
            world.text(page.id, "national color", color.strip())


def _add_independence(world: World, page: Page) -> None:
    text = plain(page.get("Government/Independence"))
    match = re.match(r"(\d{1,2} [A-Z][a-z]+ \d{4}|\d{4}) \(from ([^();]+)\)", text)
    if not match:
        return
    when = day(match[1])
    if not when:
        return
    other = SHORT_COUNTRIES.get(match[2].strip(), match[2].strip().removeprefix("the "))
    named = re.fullmatch(r"[A-Z][A-Za-z ]+", other) and not NO_COUNTRY.search(other)
    world.time(page.id, "date of independence", when, {"separated from": other} if named else None)


SHORT_COUNTRIES = {"the UK": "United Kingdom", "UK": "United Kingdom", "the US": "United States"}
NO_COUNTRY = re.compile(r"\b(?:UN|UK|US|and|mandate|under|after|following|administ\w+|status)\b")


def _add_counts(world: World, page: Page) -> None:
    suffrage = re.match(r"(\d\d) years of age; universal", plain(page.get("Government/Suffrage")))
    if suffrage:
        world.number(page.id, "voting age", int(suffrage[1]))
    sites = re.match(
        r"(\d+) ?\(", plain(page.get("Government/National heritage/total World Heritage Sites"))
    )
    if sites:
        world.number(page.id, "number of World Heritage Sites", int(sites[1]))


def qualifiers(**values: Value | None) -> dict[str, Value]:
    """The qualifiers that have a value; underscores in names become blanks."""
    return {key.replace("_", " "): value for key, value in values.items() if value is not None}
