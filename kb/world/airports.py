"""Airports with an IATA code, from airportsdata."""

from __future__ import annotations

import csv
import re

from kb.world.collect import World
from kb.world.geonames import Gazetteer, country_id
from kb.world.sources import folder_of
from kb.world.text import clean_name

CODE = re.compile(r"[A-Z]{4}")  # a provisional code begins with an underscore
METRES_PER_FOOT = 0.3048
HIGH = 2438  # metres, that is 8,000 feet: above, an airport counts as high


def add_airports(world: World, gazetteer: Gazetteer) -> None:
    """Add international airports, and those of large cities.

    Elevations come in feet and are rounded to the metre.
    """
    path = folder_of("airportsdata") / "airports.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if CODE.fullmatch(row["icao"])]
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
