"""The concepts and the attribute keys of the knowledge base, by hand."""

from __future__ import annotations

# --- concepts --------------------------------------------------------------------------------

# What is indented stands below; a name after ``<`` is a second parent.
TABLE = """
place
    territory
        country
            sovereign state
                landlocked state
                island state
                microstate
                Commonwealth realm
                member state of the European Union
                member state of NATO
            republic
                presidential republic
                semi-presidential republic
                parliamentary republic
                federal republic < federation
            monarchy
                absolute monarchy
                constitutional monarchy
            federation
            communist state
            parliamentary democracy
        dependent territory
            British dependent territory
            French dependent territory
            United States dependent territory
            Dutch dependent territory
            Australian dependent territory
            uninhabited territory
        disputed territory
        administrative division
            province
            region
            district
            department
            county
            municipality
            federated state
            governorate
            prefecture
            parish
            canton
            autonomous region
            rural or urban commune
            division of a country
            emirate
            capital district
            republic within a country < federated state
            union territory
            council area
            state of the United States < federated state
    continent
    human settlement
        city
            capital city
            city with more than a million people
                megacity
            port city
        birthplace
    landform
        high ground
            mountain
    body of water
        ocean
        sea
        river
        lake
            freshwater lake
            salt lake
    airport
        international airport
        high-altitude airport
person
    politician
        head of state
            monarch
            president
        head of government
            prime minister
        viceroy
    diplomat
        ambassador to the United States
        ambassador of the United States
    artist
        composer
        lyricist
    scientist
        discoverer of a chemical element
    Nobel laureate
        Nobel laureate in physics < scientist
        Nobel laureate in chemistry < scientist
        Nobel laureate in physiology or medicine < scientist
        Nobel laureate in literature < artist
        Nobel Peace Prize laureate
        laureate in economic sciences < scientist
organization
    political organization
        political party
        legislature
            bicameral legislature
            unicameral legislature
        chamber of parliament
            lower house
            upper house
    intergovernmental organization
        body of the United Nations
            peacekeeping mission
        development bank
        regional organization
        military alliance
        commodity organization
        group of states
        export control regime
    international nongovernmental organization
    research organization
        university
        laboratory
    space agency
substance
    chemical element
        metal
            alkali metal
            alkaline earth metal
            transition metal
            post-transition metal
            lanthanide
            actinide
        metalloid
        reactive nonmetal
        halogen
        noble gas
        radioactive element
    isotope
        stable isotope
        radioactive isotope
            short-lived isotope
            long-lived isotope
product
    commodity
        agricultural product
        traded commodity
    natural resource
cultural object
    language
        widely spoken language
    religion
        Christian denomination
    ethnic group
    currency
        currency in use
        former currency
    anthem
    award
    international agreement
        environmental treaty
        arms control treaty
"""


def _read(table: str) -> dict[str, tuple[str, ...]]:
    concepts: dict[str, tuple[str, ...]] = {}
    above: list[str] = []
    for line in table.strip("\n").splitlines():
        name, _, second = line.strip().partition(" < ")
        depth = (len(line) - len(line.lstrip())) // 4
        del above[depth:]
        concepts[name] = (*above[-1:], *([second] if second else []))
        above.append(name)
    return concepts


# Each concept's name with its parents.
CONCEPTS: dict[str, tuple[str, ...]] = _read(TABLE)


def concept_id(name: str) -> str:
    """The id of the concept with that name."""
    return "concept-" + name.lower().replace(" ", "-")


# --- keys ------------------------------------------------------------------------------------

# Each key has one value type, and a quantity one unit.
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
