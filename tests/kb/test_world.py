"""The bundled knowledge base ``world``: what it must have, and that it comes from its sources.

The product is read with gzip and json alone, so that these tests need nothing of ``kb``; only the
comparison with a fresh build runs the package's own code.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

PRODUCT = Path(__file__).parents[2] / "kb" / "world" / "world.jsonl.gz"
VALUE_TYPES = {"string", "quantity", "year", "date"}
# Names that look odd and are right: punctuation that belongs to a title or a name.
ODD = re.compile(r"[()<>\[\]{}*“”;:|_&\"]|  |^\s|\s$|\bNone\b|^NA$|\bnote\b|^[^\w'‘]|[,;:\-–]$")

Node = dict[str, Any]


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    with gzip.open(PRODUCT, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def entities(nodes: list[Node]) -> list[Node]:
    return [node for node in nodes if node["kind"] == "entity"]


def literal_facts(entities: list[Node]) -> Iterator[tuple[str, Node]]:
    return ((node["id"], fact) for node in entities for fact in node["attributes"])


def relational_facts(entities: list[Node]) -> Iterator[tuple[str, Node]]:
    return ((node["id"], fact) for node in entities for fact in node["relations"])


def ancestors(concepts: dict[str, list[str]], id: str, path: tuple[str, ...] = ()) -> set[str]:
    assert id not in path, f"{id} is above itself"
    found = {id}
    for parent in concepts[id]:
        found |= ancestors(concepts, parent, (*path, id))
    return found


# --- the numbers -------------------------------------------------------------------------------


def test_file_is_small_and_carries_no_time() -> None:
    data = PRODUCT.read_bytes()
    assert len(data) <= 4 * 1024 * 1024
    assert data[4:8] == b"\0\0\0\0", "the gzip header has a time"


def test_enough_entities_relations_and_keys(entities: list[Node]) -> None:
    assert len(entities) >= 8_000
    assert len({fact["relation"] for _, fact in relational_facts(entities)}) >= 34
    assert len({fact["key"] for _, fact in literal_facts(entities)}) >= 50


def test_enough_qualified_facts(entities: list[Node]) -> None:
    assert sum(bool(fact["qualifiers"]) for _, fact in relational_facts(entities)) >= 8_000
    assert sum(bool(fact["qualifiers"]) for _, fact in literal_facts(entities)) >= 8_000


def test_enough_namesakes(entities: list[Node]) -> None:
    names = Counter(node["name"] for node in entities)
    assert sum(count for count in names.values() if count > 1) >= 300


def test_concepts_are_many_deep_and_used(nodes: list[Node], entities: list[Node]) -> None:
    concepts = {node["id"]: node["subclassOf"] for node in nodes if node["kind"] == "concept"}
    assert len(concepts) >= 90
    used: set[str] = set()
    for node in entities:
        for concept in node["instanceOf"]:
            used |= ancestors(concepts, concept)
    assert used == set(concepts)

    def depth(id: str) -> int:
        return 1 + max(map(depth, concepts[id]), default=0)

    assert max(map(depth, concepts)) >= 3


# --- the form ----------------------------------------------------------------------------------


def test_ids_are_unique_and_readable(nodes: list[Node]) -> None:
    ids = [node["id"] for node in nodes]
    assert len(set(ids)) == len(ids)
    assert [id for id in ids if not re.fullmatch(r"[A-Za-z0-9-]+", id)] == []
    kinds = [node["kind"] for node in nodes]
    assert kinds == sorted(kinds), "concepts come first"


def test_nothing_dangles(nodes: list[Node], entities: list[Node]) -> None:
    ids = {node["id"] for node in nodes}
    concepts = {node["id"] for node in nodes if node["kind"] == "concept"}
    for node in nodes:
        assert set(node.get("subclassOf", node.get("instanceOf"))) <= concepts, node["id"]
    for node in entities:
        assert node["instanceOf"], f"{node['id']} has no concept"
    assert {fact["object"] for _, fact in relational_facts(entities)} <= ids
    assert {fact["direction"] for _, fact in relational_facts(entities)} == {"forward"}


def kind_of(value: Node) -> str:
    """One word for type and unit; year and day are both times."""
    assert value["type"] in VALUE_TYPES
    if value["type"] == "quantity":
        assert isinstance(value["value"], int | float) and value["unit"]
        return f"quantity in {value['unit']}"
    if value["type"] == "string":
        assert value["value"] == value["value"].strip() != ""
        return "string"
    if value["type"] == "date":
        date.fromisoformat(value["value"])
    return "time"


def test_each_key_has_one_type_and_unit(entities: list[Node]) -> None:
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    qualifiers: defaultdict[str, set[str]] = defaultdict(set)
    types: set[str] = set()
    for _, fact in literal_facts(entities):
        kinds[fact["key"]].add(kind_of(fact["value"]))
        types.add(fact["value"]["type"])
    for _, fact in (*literal_facts(entities), *relational_facts(entities)):
        for key, values in fact["qualifiers"].items():
            qualifiers[key].update(map(kind_of, values))
    assert {key: kind for key, kind in kinds.items() if len(kind) > 1} == {}
    assert {key: kind for key, kind in qualifiers.items() if len(kind) > 1} == {}
    assert types == VALUE_TYPES
    assert len(set().union(*kinds.values()) - {"string", "time"}) >= 10, "too few units"


def test_no_fact_stands_twice(entities: list[Node]) -> None:
    facts = Counter(
        (id, json.dumps(fact, sort_keys=True))
        for id, fact in (*literal_facts(entities), *relational_facts(entities))
    )
    assert [fact for fact, count in facts.items() if count > 1] == []


def test_lonely_entities_are_only_those_that_may_share_a_name(entities: list[Node]) -> None:
    facts: Counter[str] = Counter()
    for node in entities:
        facts[node["id"]] += len(node["attributes"]) + len(node["relations"])
    for _, fact in relational_facts(entities):
        facts[fact["object"]] += 1
    lonely = {id.partition("-")[0] for id in (node["id"] for node in entities) if facts[id] < 2}
    assert lonely <= {"person", "party", "division"}


def test_names_are_clean(nodes: list[Node]) -> None:
    assert [node["name"] for node in nodes if ODD.search(node["name"])] == []


def test_figures_of_countries_carry_a_time(entities: list[Node]) -> None:
    timeless = {
        "area", "coastline length", "land boundary length", "highest elevation",
        "lowest elevation", "voting age", "number of World Heritage Sites",
    }  # fmt: skip
    undated = {
        fact["key"]
        for id, fact in literal_facts(entities)
        if id.startswith("country-")
        and fact["value"]["type"] == "quantity"
        and "point in time" not in fact["qualifiers"]
    }
    assert undated <= timeless


def test_borders_are_told_from_both_ends(entities: list[Node]) -> None:
    borders = {
        (id, fact["object"])
        for id, fact in relational_facts(entities)
        if fact["relation"] == "shares border with"
    }
    assert {(other, one) for one, other in borders} == borders


# --- a few facts that anybody can check ---------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "relation", "object"),
    [
        ("country-FR", "capital", "city-2988507"),
        ("country-CH", "shares border with", "country-LI"),
        ("isotope-U-238", "decays to", "isotope-Th-234"),
        ("element-88", "discoverer or inventor", "person-discoverer-marie-curie"),
        ("country-JP", "member of", "organization-united-nations"),
        ("person-laureate-albert-einstein", "award received", "award-nobel-prize-in-physics"),
    ],
)
def test_known_relation(entities: list[Node], id: str, relation: str, object: str) -> None:
    facts = next(node for node in entities if node["id"] == id)["relations"]
    assert object in [fact["object"] for fact in facts if fact["relation"] == relation]


@pytest.mark.parametrize(
    ("id", "key", "value"),
    [
        ("element-26", "atomic number", {"type": "quantity", "value": 26, "unit": "1"}),
        ("country-FR", "ISO 3166-1 alpha-2 code", {"type": "string", "value": "FR"}),
        ("person-laureate-niels-henrik-david-bohr", "date of birth",
         {"type": "date", "value": "1885-10-07"}),
        # Two digits of the year in the source.
        ("person-laureate-paul-adrien-maurice-dirac", "date of birth",
         {"type": "date", "value": "1902-08-08"}),
        ("country-NP", "highest elevation",
         {"type": "quantity", "value": 8849, "unit": "metre"}),
    ],
)  # fmt: skip
def test_known_value(entities: list[Node], id: str, key: str, value: Node) -> None:
    facts = next(node for node in entities if node["id"] == id)["attributes"]
    assert value in [fact["value"] for fact in facts if fact["key"] == key]


# --- aliases ------------------------------------------------------------------------------------


def folded(text: str) -> str:
    spelt = unicodedata.normalize("NFKD", re.sub("[ʻʼ]", "'", text)).casefold()
    return "".join(letter for letter in spelt if letter.isalnum())


def demonyms(node: Node) -> set[str]:
    return {fact["value"]["value"] for fact in node["attributes"] if fact["key"] == "demonym"}


@pytest.mark.parametrize(
    ("id", "aliases"),
    [
        ("country-GB", ["UK", "Britain", "Great Britain", "British"]),
        ("country-US", ["US", "USA", "America", "American"]),
        ("country-NL", ["Netherlands", "Holland", "Dutch"]),
        ("country-CI", ["Côte d'Ivoire", "Cote d'Ivoire"]),
        ("country-TT", ["Trinidad & Tobago"]),
        ("city-3448439", ["Sao Paulo"]),
        ("element-1", ["H"]),
        ("element-13", ["Al", "aluminium"]),
        ("isotope-U-235", ["U-235"]),
        ("airport-KLAX", ["LAX"]),
        ("currency-JPY", ["JPY", "Yen"]),
        ("language-de", ["Deutsch"]),
        ("organization-north-atlantic-treaty-organization", ["NATO"]),
        ("person-laureate-albert-einstein", ["Einstein"]),
        ("person-laureate-ernest-miller-hemingway", ["Hemingway", "Ernest Hemingway"]),
        ("person-laureate-johannes-diderik-van-der-waals", ["van der Waals", "Waals"]),
        ("mountain-mount-everest-8849", ["Everest"]),
    ],
)  # fmt: skip
def test_aliases_that_people_use(entities: list[Node], id: str, aliases: list[str]) -> None:
    found = next(node for node in entities if node["id"] == id)["aliases"]
    assert set(aliases) <= set(found)


def test_family_names_are_those_of_one_person_only(entities: list[Node]) -> None:
    curies = [node for node in entities if "Curie" in node["name"] and "person" in node["id"]]
    assert len({node["name"] for node in curies}) > 1
    assert all("Curie" not in node.get("aliases", ()) for node in curies)


def test_no_alias_is_the_name_of_another_but_demonyms(nodes: list[Node]) -> None:
    named: defaultdict[str, set[str]] = defaultdict(set)
    names = {node["name"] for node in nodes}
    for node in nodes:
        named[folded(node["name"])].add(node["id"])
    for node in nodes:
        aliases = node.get("aliases", ())
        assert len(set(aliases)) == len(aliases), node["id"]
        assert node["name"] not in aliases
        for text in set(aliases) - demonyms(node) if node["kind"] == "entity" else aliases:
            assert text == " ".join(text.split()) != "", node["id"]
            if folded(text) == folded(node["name"]):  # it may have namesakes
                assert text not in names, (node["id"], text)
            else:
                assert named[folded(text)] <= {node["id"]}, (node["id"], text)


def test_short_aliases_are_of_elements(entities: list[Node]) -> None:
    short = [node["id"] for node in entities for text in node.get("aliases", ()) if len(text) < 2]
    assert short
    assert all(id.startswith("element-") for id in short)


# --- the build ----------------------------------------------------------------------------------


def test_rebuild_gives_the_same_bytes(tmp_path: Path) -> None:
    sources = pytest.importorskip("kb.world.sources")
    problems = [problem for name in sources.SOURCES if (problem := sources.problem_with(name))]
    if problems:
        pytest.skip("; ".join(problems))
    from kb.world.build import main

    assert main(["-o", str(tmp_path / "world.jsonl.gz")]) == 0
    fresh = gzip.decompress((tmp_path / "world.jsonl.gz").read_bytes())
    assert fresh == gzip.decompress(PRODUCT.read_bytes())


def test_missing_source_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The build says which version it wants, instead of reading another one."""
    pytest.importorskip("numpy")
    from kb.world import build

    monkeypatch.setattr(metadata, "version", lambda name: "0.0.1")
    assert build.main([]) == 1
    assert "mendeleev 0.0.1 is installed, but the build reads mendeleev==1.3.0" in (
        capsys.readouterr().err
    )
