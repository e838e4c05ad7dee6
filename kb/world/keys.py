"""Attribute keys: each has one value type, and a quantity one unit."""

from __future__ import annotations

STRING, TIME, NO_UNIT = "string", "time", "1"

# Keys whose values are texts.
TEXT_KEYS = (
    "official name",
    "former name",
    "short name",
    "demonym",
    "national color",
    "ISO 3166-1 alpha-2 code",
    "ISO 3166-1 alpha-3 code",
    "ISO 639 code",
    "ISO 4217 code",
    "internet top-level domain",
    "time zone",
    "IATA airport code",
    "ICAO airport code",
    "element symbol",
    "CAS number",
    "name in English",
)
# Keys whose values are years or days.
TIME_KEYS = (
    "date of independence",
    "date of birth",
    "time of discovery",
    "last election date",
    "time of founding",
)

# Keys whose values are quantities, with the only unit they are given in.
UNITS: dict[str, str] = {
    # territories and settlements
    "population": NO_UNIT,
    "urban area population": NO_UNIT,
    "area": "square kilometre",
    "coastline length": "kilometre",
    "land boundary length": "kilometre",
    "elevation above sea level": "metre",
    "highest elevation": "metre",
    "lowest elevation": "metre",
    "latitude": "degree",
    "longitude": "degree",
    "forest cover": "percent",
    # people
    "median age": "year",
    "life expectancy": "year",
    "population growth rate": "percent",
    "birth rate": "per thousand",
    "death rate": "per thousand",
    "infant mortality rate": "per thousand",
    "fertility rate": "child per woman",
    "literacy rate": "percent",
    "voting age": "year",
    # economy
    "nominal GDP": "United States dollar",
    "GDP at purchasing power parity": "United States dollar",
    "GDP per person": "United States dollar",
    "income per person": "international dollar",
    "GDP growth rate": "percent",
    "inflation rate": "percent",
    "unemployment rate": "percent",
    "value of exports": "United States dollar",
    "value of imports": "United States dollar",
    "public debt": "percent",
    "Gini coefficient": NO_UNIT,
    "military expenditure": "percent",
    "exchange rate against the United States dollar": NO_UNIT,
    # energy, communication, transport, heritage
    "electricity consumption": "kilowatt-hour",
    "carbon dioxide emissions": "tonne",
    "internet users": "percent",
    "number of airports": NO_UNIT,
    "railway length": "kilometre",
    "number of World Heritage Sites": NO_UNIT,
    # nature and institutions
    "length": "kilometre",
    "number of seats": NO_UNIT,
    "share of women members": "percent",
    # substances
    "atomic number": NO_UNIT,
    "atomic weight": "dalton",
    "density": "gram per cubic centimetre",
    "melting point": "kelvin",
    "boiling point": "kelvin",
    "electronegativity": NO_UNIT,
    "atomic radius": "picometre",
    "ionization energy": "electronvolt",
    "mass number": NO_UNIT,
    "half-life": "second",
    "natural abundance": "percent",
}

TYPES: dict[str, str] = (
    dict.fromkeys(TEXT_KEYS, STRING)
    | dict.fromkeys(TIME_KEYS, TIME)
    | dict.fromkeys(UNITS, "quantity")
)
