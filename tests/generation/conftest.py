"""A small knowledge base with everything that the rules ask about."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb import Builder, Date, KnowledgeBase, Quantity, Year, write_lines

LANDS = ("Arlen", "Borovia", "Cadria", "Dorlund", "Estavia", "Farland", "Gorania", "Halvia")
TOWNS = ("Amber", "Bright", "Clover", "Dunmore", "Elmsford", "Fairview", "Granby", "Hartwell")
HEADS = ("Anna Berg", "Boris Lund", "Clara Dahl", "David Holm", "Eva Lind", "Felix Moe",
         "Greta Vik", "Hugo Aas")  # fmt: skip


def build() -> KnowledgeBase:
    """Eight lands with towns, heads of state, neighbours, two clubs and a namesake."""
    builder = Builder()
    below = {"place": "", "country": "place", "island country": "country", "city": "place"}
    for concept, parent in (below | {"person": "", "club of nations": ""}).items():
        builder.add_concept(f"c-{concept}", concept, [f"c-{parent}"] if parent else [])
    for club in ("Northern League", "Blue Circle"):
        builder.add_entity(club, club, ["c-club of nations"])
        builder.add_attribute(club, "inception", Year(1950 if club == "Blue Circle" else 1961))
    for n, (land, town, head) in enumerate(zip(LANDS, TOWNS, HEADS, strict=True)):
        builder.add_entity(land, land, ["c-island country" if n % 3 == 0 else "c-country"])
        builder.add_entity(town, town, ["c-city"])
        builder.add_entity(head, head, ["c-person"])
        builder.add_attribute(land, "area", Quantity(12_500 + 7_310 * n * n, "square kilometre"))
        builder.add_attribute(land, "country code", land[:2].upper())
        builder.add_attribute(land, "date of independence", Date(1900 + 7 * n, 1 + n, 3 + n))
        for year in (2010, 2020):
            people = Quantity(1_000_003 + 40_011 * n * n + 1_017 * (year - 2010))
            source = {"point in time": Year(year), "source": f"census {'AB'[n % 2]}"}
            builder.add_attribute(land, "population", people, source)
        builder.add_attribute(town, "elevation", Quantity(12.5 * (n + 1), "metre"))
        builder.add_attribute(town, "inception", Year(1200 + 37 * n))
        builder.add_attribute(head, "date of birth", Date(1950 + 2 * n, 12 - n, 20 - n))
        builder.add_attribute(head, "height", Quantity(160 + 3 * n, "centimetre"))
        builder.add_fact(land, "capital", town, {"start time": Year(1905 + 3 * n)})
        term = {"start time": Date(2001 + n, 1 + n, 9), "title": "king" if n % 2 else "president"}
        builder.add_fact(land, "head of state", head, term)
        builder.add_fact(head, "place of birth", TOWNS[(3 * n + 1) % 8])
        builder.add_fact(
            head, "award received", "Northern League", {"point in time": Year(1990 + n)}
        )
    for n, land in enumerate(LANDS):
        other = LANDS[(n + 1) % 8]
        length = {"length": Quantity(100 + 13 * n, "kilometre")}
        builder.add_fact(land, "shares border with", other, length)
        joined = {"start time": Year(1962 + n)}
        builder.add_fact(land, "member of", ("Northern League", "Blue Circle")[n % 2], joined)
    builder.add_entity("amber-person", "Amber", ["c-person"])
    builder.add_attribute("amber-person", "date of birth", Date(1977, 7, 7))
    builder.add_fact("amber-person", "place of birth", "Bright")
    return builder.build()


@pytest.fixture(scope="session")
def lands() -> KnowledgeBase:
    return build()


@pytest.fixture(scope="session")
def world() -> KnowledgeBase:
    """The bundled knowledge base; the test is skipped where it was not built."""
    from kb import load
    from kb.load import bundled

    path = bundled("world")
    if path is None or not path.is_file():
        pytest.skip("the bundled knowledge base is not built")
    return load("world")


@pytest.fixture
def lands_file(lands: KnowledgeBase, tmp_path: Path) -> str:
    """The same in a file."""
    path = tmp_path / "lands.jsonl"
    write_lines(lands, path)
    return str(path)
