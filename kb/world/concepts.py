"""The concepts, by hand: what is indented stands below; a name after ``<`` is a second parent."""

from __future__ import annotations

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
