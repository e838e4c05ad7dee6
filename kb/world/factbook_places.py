"""Borders, divisions, rivers, lakes, peaks and large cities, from the factbook."""

from __future__ import annotations

import re
from collections import defaultdict

from kb import Quantity, Year
from kb.world.collect import World, slug
from kb.world.factbook import Page, pages, qualifiers, territory_named
from kb.world.geonames import Gazetteer
from kb.world.text import clean_name, figure, outside_brackets, plain, split_outside_brackets


def add_borders(world: World) -> None:
    """Add shared borders with their lengths, from both ends as the pages tell them.

    Where the page at the other end names no such border, its end gets the same length.
    """
    lengths: dict[tuple[str, str], float] = {}
    for page in pages():
        text = plain(page.get("Geography/Land boundaries/border countries"))
        for piece in split_outside_brackets(text, ";"):
            match = re.match(r"([A-Z][^\d(]+?) ?(?:\([^()]*\))? ([\d.,]+) km\b", piece)
            other = territory_named(match[1].strip()) if match else None
            if match and other and other != page.id and world.has(other):
                number = float(match[2].strip(".,").replace(",", ""))
                lengths.setdefault((page.id, other), number)
    for (one, other), length in list(lengths.items()):
        lengths.setdefault((other, one), length)
    for (one, other), length in lengths.items():
        world.fact(one, "shares border with", other, {"length": Quantity(length, "kilometre")})


# --- divisions --------------------------------------------------------------------------------

# Last word of a kind of division in the plural, with the concept.
DIVISIONS = {
    "provinces": "province",
    "province": "province",
    "regions": "region",
    "region": "region",
    "districts": "district",
    "district": "district",
    "departments": "department",
    "counties": "county",
    "municipalities": "municipality",
    "municipality": "municipality",
    "states": "federated state",
    "governorates": "governorate",
    "governorate": "governorate",
    "prefectures": "prefecture",
    "prefecture": "prefecture",
    "parishes": "parish",
    "cantons": "canton",
    "communes": "rural or urban commune",
    "commune": "rural or urban commune",
    "divisions": "division of a country",
    "emirates": "emirate",
    "republics": "republic within a country",
    "republic": "republic within a country",
    "cities": "city",
    "city": "city",
    "territories": "territory",
    "territory": "territory",
    "voivodships": "province",
    "oblasts": "province",
    "okrugs": "autonomous region",
    "krays": "region",
    "islands": "region",
    "atolls": "council area",
}
SPECIAL = (
    (re.compile(r"autonomous (?:region|province|communit|republic)"), "autonomous region"),
    (
        re.compile(r"capital (?:district|city|region|territory)|federal district"),
        "capital district",
    ),
    (re.compile(r"union territor"), "union territory"),
)
KIND = re.compile(r"(?:^|, |and |\+ )(\d+) ([a-z][a-z -]*?)(\*{0,4})(?= and |,|;|$| \d)")


def _kinds(text: str) -> dict[str, str]:
    """The concept for each number of stars in ``21 provinces and 1 municipality*``."""
    found: dict[str, str] = {}
    for _, kind, stars in KIND.findall(text):
        special = next((concept for pattern, concept in SPECIAL if pattern.search(kind)), None)
        concept = special or DIVISIONS.get(kind.split()[-1])
        if concept is None or stars in found:
            return {}
        found[stars] = concept
    return found


HEADING = re.compile(r"(?:^| )((?:[a-z-]+ ){0,3}[a-z-]+): ")


# The states of the first come from GeoNames; the British list mixes several orders, the Finnish one
# two languages.
OTHERWISE = ("country-US", "country-GB", "country-FI")


def add_divisions(world: World) -> None:
    """Add first-order divisions where the page lists them by kind and name."""
    for page in pages():
        text = plain(page.get("Government/Administrative divisions"))
        if page.id in OTHERWISE or "no first-order" in text:
            continue
        if "also known as" in text:
            continue
        before, *sections = HEADING.split(text)
        for kind, names in zip(sections[::2], sections[1::2], strict=True):
            special = next((c for pattern, c in SPECIAL if pattern.search(kind)), None)
            concept = special or next(
                (DIVISIONS[word] for word in kind.split() if word in DIVISIONS), None
            )
            if concept:
                names = re.split(r";| note", names)[0]
                _add_divisions(world, page, split_outside_brackets(names), {"": concept})
        head, *rest = split_outside_brackets(before, ";") or [""]
        kinds = _kinds(outside_brackets(head))
        if not kinds or not rest:
            continue
        # Names with commas of their own are set apart by semicolons.
        _add_divisions(
            world, page, rest if len(rest) > 2 else split_outside_brackets(rest[0]), kinds
        )


def _add_divisions(world: World, page: Page, names: list[str], kinds: dict[str, str]) -> None:
    for raw in names:
        bare = outside_brackets(raw).removeprefix("and ")
        concept = kinds.get("*" * bare.count("*")) or (kinds[""] if len(kinds) == 1 else None)
        name = clean_name(bare).partition(" or ")[0]
        if concept is None or not 1 < len(name) < 50 or "," in name or " - " in name:
            continue
        if not name.lstrip("'")[0].isupper() or " is " in name:
            continue
        if page.id in ("country-FR", "country-CN", "country-NL") and territory_named(
            FRENCH_NAMES.get(name, name)
        ):
            continue  # Guadeloupe and others are territories with codes of their own
        _add_division(world, page, name, concept)


FRENCH_NAMES = {"Guyane": "French Guiana"}


def _add_division(world: World, page: Page, name: str, concept: str) -> None:
    country = page.id.split("-", 1)[1]
    id = f"division-{country}-{slug(name)}"
    if world.has(id):  # Lima the province beside Lima the department
        id = f"{id}-{slug(concept)}"
    world.entity(id, name, "administrative division", concept)
    world.fact(id, "located in the administrative territorial entity", page.id)


# --- water and mountains -----------------------------------------------------------------------


def add_waters(world: World) -> None:
    """Add rivers with source and mouth countries, and lakes with the countries around them."""
    rivers: Waters = defaultdict(dict)
    for page in pages():
        text = plain(page.get("Geography/Major rivers (by length in km)"))
        for piece in split_outside_brackets(text.partition("note:")[0], ";"):
            _add_river(world, page, piece, rivers)
    lakes: Waters = defaultdict(dict)
    for kind in ("fresh water lake(s)", "salt water lake(s)"):
        for page in pages():
            text = plain(page.get(f"Geography/Major lakes (area sq km)/{kind}"))
            for piece in split_outside_brackets(text.partition("note")[0], ";"):
                _add_lake(world, page, piece, kind, lakes)


def _shared(text: str) -> list[tuple[str, str]]:
    """The territories in ``(shared with Germany [s], Austria, and Romania [m])`` with marks."""
    found = []
    inside = re.search(r"shared with ([^()]*)", text)
    for name in re.split(r", and | and |, ", inside[1].strip(" )") if inside else ""):
        mark = re.search(r"\[([sm/]+)\]", name)
        id = territory_named(re.sub(r"\[[sm/]+\]|[()]", "", name).strip())
        if id:
            found.append((id, mark[1] if mark else ""))
    return found


# The same river under the names of several pages; the first page's id counts.
RIVER_NAMES = {
    "donau": "Danube",
    "dunaj": "Danube",
    "duna": "Danube",
    "dunav": "Danube",
    "dunarea": "Danube",
    "dunay": "Danube",
    "rhin": "Rhine",
    "rhein": "Rhine",
    "rijn": "Rhine",
    "gambie": "Gambia",
    "rio-zambeze": "Zambezi",
    "zambeze": "Zambezi",
    "rio-limpopo": "Limpopo",
    "dnipro": "Dnieper",
    "dnyapro": "Dnieper",
    "dnister": "Dniester",
    "amudaryo": "Amu Darya",
    "sirdaryo": "Syr Darya",
    "syrdariya": "Syr Darya",
    "elbe-labe": "Elbe",
    "labe": "Elbe",
    "brahmaputra": "Brahmaputra",
    "padma": "Ganges",
    "ganga": "Ganges",
    "dunau": "Danube",
    "nile": "Nile",
    "evfrat": "Euphrates",
    "firat": "Euphrates",
    "dicle": "Tigris",
}


# By name: the waters of that name, each with the territories that it touches.
Waters = defaultdict[str, dict[str, set[str]]]


def _known(known: Waters, name: str, around: set[str]) -> str | None:
    """The water of that name which another page has placed in one of these territories too."""
    return next((id for id, others in known[slug(name)].items() if others & around), None)


def _add_river(world: World, page: Page, piece: str, known: Waters) -> None:
    piece = re.sub(r"(\[[sm/]+\])\)(?=,)", r"\1", piece)  # a bracket closed too early in the source
    match = re.fullmatch(r"(.+?) - ([\d,]+) km", piece)
    if not match:
        return
    text = match[1]
    here = "s" if "river source" in text or text.endswith(" [s]") else ""
    here += "m" if "river mouth" in text or "river source and mouth" in text else ""
    english = re.match(r"[^()]*\(([A-Z][A-Za-z ]+)\)", text)
    name = clean_name(re.sub(r"river (?:source|mouth).*", "", outside_brackets(text)))
    if english and not english[1].startswith("shared"):
        name = english[1].strip()
    name = RIVER_NAMES.get(slug(name), name).removesuffix(" river")
    if "/" in name or not name or name.lower().startswith("the "):
        return
    shared = _shared(text)
    length = float(match[2].replace(",", ""))
    id = _known(known, name, {page.id, *(id for id, _ in shared)})
    if id is None:
        # Two rivers of one name are told apart by their length; the first page's length counts.
        id = world.entity(f"river-{slug(name)}-{length:.0f}", name, "river")
        world.number(id, "length", length)
    around = known[slug(name)].setdefault(id, set())
    if not here and not shared:
        here = "sm"
    for territory, mark in [(page.id, here), *shared]:
        if not world.has(territory):
            continue
        around.add(territory)
        world.fact(id, "country", territory)
        if "s" in mark:
            world.fact(id, "source country", territory)
        if "m" in mark:
            world.fact(id, "mouth country", territory)


def _add_lake(world: World, page: Page, piece: str, kind: str, known: Waters) -> None:
    match = re.match(r"([^\d(–]+?)\*? ?(\([^()]*\))? [-–] ([\d,]+) sq km(?! ?-)", piece)
    if not match:
        return
    name = clean_name(match[1])
    great = "*" in piece  # a Great Lake: each page gives the area of its own waters
    if (page.id == "country-US" or great) and not re.search("Lake|Sea", name):
        name = f"{name} Lake" if name in ("Great Salt", "Red") else f"Lake {name}"
    around = {page.id, *(id for id, _ in _shared(piece))} & world.entities.keys()
    if great:
        around |= {"country-CA", "country-US"}
    id = _known(known, name, around)
    if id is None:
        id = f"lake-{slug(name)}-{page.code}"
        world.entity(id, name, "freshwater lake" if kind.startswith("fresh") else "salt lake")
        if not great:
            world.number(id, "area", float(match[3].replace(",", "")))
    known[slug(name)].setdefault(id, set()).update(around)
    for territory in sorted(around):
        world.fact(id, "country", territory)


POINT = re.compile(r"(.+?) (-?\d[\d,]*(?:\.\d+)?) ?m?(?: \(.*\))?")
NO_PLACE = re.compile(
    r"unnamed|location|\bnear |along|undersea|less than|about| or |\bwas\b|Gardens|^[a-z]|^\d"
)
MOUNTAIN = 600  # metres: lower ground is not called a mountain
OCEANS = {"Atlantic Ocean", "Pacific Ocean", "Indian Ocean", "Arctic Ocean", "Southern Ocean"}


def add_extremes(world: World) -> None:
    """Add highest and lowest points with their elevations."""
    for page in pages():
        for which, key in (("highest", "highest elevation"), ("lowest", "lowest elevation")):
            text = plain(page.get(f"Geography/Elevation/{which} point")).replace("−", "-")
            match = POINT.fullmatch(text.partition(";")[0].partition(" note")[0].strip())
            if not match or "," in outside_brackets(match[1]):
                continue
            number = float(match[2].replace(",", ""))
            world.number(page.id, key, number)
            name = re.sub(r" on [A-Z].*", "", clean_name(match[1]))
            if NO_PLACE.search(name) or len(name) > 50:
                continue
            if which == "highest":
                id = world.entity(f"mountain-{slug(name)}-{number:.0f}", name, "high ground")
                if number >= MOUNTAIN:
                    world.entity(id, name, "mountain")
                world.number(id, "elevation above sea level", number)
                world.fact(id, "country", page.id)
                world.fact(page.id, "highest point", id)
            elif name in OCEANS or (name.endswith(" Sea") and number >= -1):
                concept = "ocean" if name in OCEANS else "sea"
                id = world.entity(f"{concept}-{slug(name)}", name, concept)
                world.fact(page.id, "lowest point", id)


def add_urban_areas(world: World, gazetteer: Gazetteer) -> None:
    """Add the populations of large urban areas to the cities they are named after."""
    for page in pages():
        text = plain(page.get("People and Society/Major urban areas - population"))
        year = re.search(r"\((\d{4})\)\s*$", text)
        if not year:
            continue
        for piece in split_outside_brackets(text[: year.start()]):
            match = re.fullmatch(r"([\d.,]+(?: million)?) ([A-Z][^\d]+)", outside_brackets(piece))
            found = figure(match[1], "") if match else None
            if not match or not found or found[0] < 1_000:  # "1.454" without its "million"
                continue
            city = gazetteer.find(match[2].strip(), page.id)
            if city:
                world.number(
                    city,
                    "urban area population",
                    found[0],
                    qualifiers(point_in_time=Year(int(year[1]))),
                )


def add_ports(world: World, gazetteer: Gazetteer) -> None:
    """Mark the cities that are among a territory's key ports."""
    for page in pages():
        text = plain(page.get("Transportation/Ports/key ports"))
        for name in split_outside_brackets(text.partition(" note")[0]):
            city = gazetteer.find(clean_name(name), page.id, other_names=False)
            if city:
                world.entity(city, "", "port city")
