"""The store's indexes against naive loops over the facts, on small and large sets."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb import Builder, Condition, KnowledgeBase, Quantity, Year, from_kqapro
from kb.arrays import (
    Ids,
    as_ids,
    contains,
    expand,
    grouped,
    in_intervals,
    intersect,
    mask_of,
    unique,
    unique_below,
    unite,
)
from kb.store import normalise_name
from kb.valuetable import StringTable, string_arrays
from tests.kb.strategies import relation, value
from tests.reference.random_kb import random_kb

# --- a knowledge base of several hundred nodes, and its facts as plain lists --------------------

KEYS, RELATIONS, QUALIFIERS = ["a", "b", "rare"], ["r", "s", "rare", "big"], ["q", "a", "rare"]


@cache
def large(seed: int = 1) -> KnowledgeBase:
    rng = random.Random(seed)
    builder = Builder()
    concepts = [f"C{n}" for n in range(40)]
    entities = [f"E{n}" for n in range(600)]
    for at, id in enumerate(concepts):
        parents = rng.sample(concepts[:at], min(at, rng.choice([0, 1, 2])))
        builder.add_concept(id, f"name {rng.randrange(25)}", parents)
    for id in entities:
        builder.add_entity(
            id, f"name {rng.randrange(300)}", rng.sample(concepts, rng.choice([0, 1, 2]))
        )

    def qualifiers() -> dict[str, Any]:
        return {
            rng.choice(QUALIFIERS[: 3 if rng.random() < 0.05 else 2]): [
                rng.choice([Year(rng.randrange(2000, 2004)), Quantity(rng.randrange(3)), "x"])
                for _ in range(rng.choice([1, 2]))
            ]
            for _ in range(rng.choice([0, 1, 1, 2]))
        }

    for id in entities:
        for _ in range(rng.randrange(4)):
            key = "rare" if rng.random() < 0.005 else rng.choice("ab")
            number = rng.choice(
                [Quantity(rng.randrange(8)), Year(rng.randrange(1998, 2004)), "x", "y"]
            )
            builder.add_attribute(id, key, number, qualifiers())
    nodes = entities + concepts
    for _ in range(2500):
        name = "rare" if rng.random() < 0.003 else rng.choice(["r", "s", "big", "big", "big"])
        builder.add_fact(rng.choice(nodes[:200]), name, rng.choice(nodes), qualifiers())
    return builder.build()


def sets_of(knowledge: KnowledgeBase) -> list[Ids]:
    """Sets of every size, with and without concepts."""
    rng = random.Random(2)
    count = knowledge.node_count
    sizes = [0, 1, 1, 2, 3, 10, 23, 24, 25, 26, 60, 150, 300, 500, count - 1, count]
    sets = [as_ids(sorted(rng.sample(range(count), size))) for size in sizes]
    return [*sets, knowledge.entities, as_ids(range(knowledge.entity_count, count))]


def qualifier_pairs(knowledge: KnowledgeBase, number: int) -> set[tuple[str, Any]]:
    found = knowledge.qualifier_map(number)
    return {(key, one) for key, values in found.items() for one in values}


def rows(knowledge: KnowledgeBase, kind: str) -> list[tuple[int, str, Any]]:
    """(subject, predicate, object) of every fact, with objects as values or node numbers."""
    if kind == "literals":
        table, names = knowledge.literals, knowledge.keys
        objects: list[Any] = [knowledge.values[n] for n in table.object.tolist()]
    else:
        table, names = knowledge.relational, knowledge.relations  # type: ignore[assignment]
        objects = table.object.tolist()
    predicates = [names[n] for n in table.predicate.tolist()]
    return list(zip(table.subject.tolist(), predicates, objects, strict=True))


def facts(found: Ids) -> list[int]:
    """Fact numbers in order, each at most once."""
    numbers = sorted(found.tolist())
    assert len(numbers) == len(set(numbers))
    return numbers


CONDITIONS = [
    Condition((Quantity(3),), "="),
    Condition((Quantity(3),), "!="),
    Condition((Quantity(6),), "<"),
    Condition((Quantity(9),), "<"),
    Condition((Year(2000),), ">"),
    Condition((Year(2001),), "="),
    Condition(("x",), "="),
    Condition(("x",), "!="),
    Condition(("nowhere",), "="),
    Condition(("nowhere",), "!="),
    Condition((Quantity(1, "nowhere"),), "!="),
    Condition.untyped("2001"),
]


def test_literal_facts_of_a_set() -> None:
    knowledge = large()
    table = rows(knowledge, "literals")
    for nodes in sets_of(knowledge):
        inside = set(nodes.tolist())
        for key in [*KEYS, "q", "nowhere"]:
            wanted = [n for n, (s, k, _) in enumerate(table) if s in inside and k == key]
            assert facts(knowledge.literals_of(nodes, key)) == wanted
            for condition in CONDITIONS:
                kept = [n for n in wanted if condition.holds_for(table[n][2])]
                assert facts(knowledge.literals_where(nodes, key, condition)) == kept


def test_relational_facts_of_a_set() -> None:
    knowledge = large()
    table = rows(knowledge, "relational")
    for nodes in sets_of(knowledge):
        inside = set(nodes.tolist())
        for name in [*RELATIONS, "a", "nowhere"]:
            heads = [n for n, (s, r, _) in enumerate(table) if s in inside and r == name]
            tails = [n for n, (_, r, t) in enumerate(table) if t in inside and r == name]
            assert facts(knowledge.facts_from(nodes, name)) == heads
            assert facts(knowledge.facts_into(nodes, name)) == tails


def test_facts_between_two_sets() -> None:
    knowledge = large()
    table = rows(knowledge, "relational")
    reached = 0
    for heads in sets_of(knowledge):
        for tails in sets_of(knowledge):
            left, right = set(heads.tolist()), set(tails.tolist())
            wanted = [n for n, (s, _, t) in enumerate(table) if s in left and t in right]
            found = knowledge.relational.between(heads, tails, knowledge.node_count)
            assert facts(found) == wanted
            names = [knowledge.relations[n] for n in knowledge.relational.predicates(found)]
            assert names == sorted({table[n][1] for n in wanted})
            reached += bool(wanted)
    assert reached > 100


@pytest.mark.parametrize("kind", ["literals", "relational"])
def test_qualifiers_of_facts(kind: str) -> None:
    knowledge = large()
    table = getattr(knowledge, kind)
    pairs = [qualifier_pairs(knowledge, number) for number in table.qualifiers.tolist()]
    rng = random.Random(3)
    for size in (0, 1, 2, 3, 20, 200, len(table)):
        some = as_ids(sorted(rng.sample(range(len(table)), size)))
        for key in [*QUALIFIERS, "b", "nowhere"]:
            for condition in CONDITIONS:
                wanted = [
                    n for n in some.tolist()
                    if any(k == key and condition.holds_for(v) for k, v in pairs[n])
                ]  # fmt: skip
                assert facts(knowledge.qualified(table, some, key, condition)) == wanted
            values = {v for n in some.tolist() for k, v in pairs[n] if k == key}
            numbers = knowledge.qualifier_values(table, some, key).tolist()
            assert numbers == sorted(set(numbers))
            assert {knowledge.values[n] for n in numbers} == values


def test_facts_with_an_object() -> None:
    knowledge = large()
    table = rows(knowledge, "literals")
    for key in KEYS:
        for condition in CONDITIONS:
            found = knowledge.literals.with_object(
                knowledge.key_number(key), knowledge.values.intervals(condition)
            )
            wanted = [n for n, (_, k, v) in enumerate(table) if k == key and condition.holds_for(v)]
            assert facts(found) == wanted


def test_names_and_instances() -> None:
    knowledge = large()
    nodes = range(knowledge.node_count)
    by_name = defaultdict(list)
    for node in nodes:
        by_name[knowledge.name_of(node)].append(node)
    for name in [*by_name, "nowhere", ""]:
        found = knowledge.named(name).tolist()
        assert found == by_name.get(name, [])
        concepts = {node for node in found if not knowledge.is_entity(node)}
        members = [
            entity
            for entity in range(knowledge.entity_count)
            if any(concepts & naive_ancestors(knowledge, c) for c in knowledge.concepts_of(entity))
        ]
        assert knowledge.instances_of(name).tolist() == members
        mask = knowledge.instance_mask(as_ids(nodes), name)
        assert np.flatnonzero(mask).tolist() == members
    # Looking for what is not there has added nothing.
    assert "nowhere" not in knowledge.names_of_kind("entity")
    assert knowledge.strings.find("nowhere") == -1


def naive_ancestors(knowledge: KnowledgeBase, concept: int) -> set[int]:
    found, todo = {concept}, [concept]
    while todo:
        todo += [p for p in knowledge.parents(todo.pop()) if p not in found and not found.add(p)]  # type: ignore[func-returns-value]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_ancestors_with_cycles(seed: int) -> None:
    rng = random.Random(seed)
    ids = [f"c{n}" for n in range(12)]
    concepts = {
        id: {"name": id, "subclassOf": rng.choices(ids, k=rng.choice([0, 1, 2]))} for id in ids
    }
    entities = {f"e{n}": {"name": "e", "instanceOf": rng.choices(ids, k=2)} for n in range(20)}
    knowledge = from_kqapro({"concepts": concepts, "entities": entities})
    for concept in range(20, 32):
        above = naive_ancestors(knowledge, concept)
        assert set(knowledge.ancestors(concept)) == above
        below = [c for c in range(20, 32) if concept in naive_ancestors(knowledge, c)]
        members = [e for e in range(20) if set(below) & set(knowledge.concepts_of(e))]
        assert knowledge.instances_of(knowledge.name_of(concept)).tolist() == members
        for entity in members:
            assert concept in knowledge.all_concepts_of(entity)


def test_intersections_and_everything() -> None:
    knowledge = large()
    for left in sets_of(knowledge):
        inside = set(left.tolist())
        assert knowledge.is_everything(left) == (inside == set(range(knowledge.entity_count)))
        for right in sets_of(knowledge):
            wanted = sorted(inside & set(right.tolist()))
            assert knowledge.intersect(left, right).tolist() == wanted
            assert intersect(left, right).tolist() == wanted


def test_lists_of_names() -> None:
    knowledge = large()
    assert knowledge.attribute_keys == ["a", "b", "rare"]
    assert knowledge.qualifier_keys == ["a", "q", "rare"]
    assert knowledge.keys == ["a", "b", "q", "rare"]
    assert knowledge.relations == knowledge.names_of_kind("relation") == sorted(RELATIONS)
    assert knowledge.units == ["1"]
    for kind, part in (("entity", knowledge.entities), ("concept", as_ids(range(600, 640)))):
        names = {knowledge.name_of(node) for node in part.tolist()}
        assert knowledge.names_of_kind(kind) == sorted(names) == knowledge.names(part)  # type: ignore[arg-type]
    for node in range(knowledge.node_count):
        assert knowledge.node(knowledge.id_of(node)) == node
    assert knowledge.node("nowhere") == knowledge.node("name 1") == knowledge.node("\ud800") == -1


# --- facts that are one fact --------------------------------------------------------------------

YEAR, OTHER = value("year", 2001), value("year", 2002)
TWO = {"on": [YEAR, OTHER], "by": [value("string", "x")]}
TURNED = {"by": [value("string", "x")], "on": [OTHER, YEAR]}

TO_F = relation("r", "forward", "f", **TWO)

# the records at e, the records at f, how many facts they are
MERGED: list[tuple[str, list[Any], list[Any], int]] = [
    ("both ends", [relation("r", "forward", "f")], [relation("r", "backward", "e")], 1),
    ("the head", [relation("r", "forward", "f")], [], 1),
    ("the tail", [], [relation("r", "backward", "e")], 1),
    ("two directions", [relation("r", "forward", "f"), relation("r", "backward", "f")], [], 2),
    ("head of each", [relation("r", "forward", "f")], [relation("r", "forward", "e")], 2),
    ("other relation", [relation("r", "forward", "f")], [relation("s", "backward", "e")], 2),
    ("twice", [relation("r", "forward", "f")] * 2, [], 1),
    ("twice at both", [relation("r", "forward", "f")] * 2, [relation("r", "backward", "e")] * 2, 1),
    ("qualifiers", [TO_F], [relation("r", "backward", "e", **TWO)], 1),
    ("turned", [TO_F], [relation("r", "backward", "e", **TURNED)], 1),
    (
        "repeated value",
        [relation("r", "forward", "f", on=[YEAR, YEAR])],
        [relation("r", "backward", "e", on=[YEAR])],
        1,
    ),
    (
        "other value",
        [relation("r", "forward", "f", on=[YEAR])],
        [relation("r", "backward", "e", on=[OTHER])],
        2,
    ),
    (
        "other key",
        [relation("r", "forward", "f", on=[YEAR])],
        [relation("r", "backward", "e", at=[YEAR])],
        2,
    ),
    ("fewer", [relation("r", "forward", "f", on=[YEAR])], [relation("r", "backward", "e")], 2),
    (
        "equal numbers",
        [relation("r", "forward", "f", n=[value("quantity", 5, "1")])],
        [relation("r", "backward", "e", n=[value("quantity", 5.0)])],
        1,
    ),
    (
        "year and number",
        [relation("r", "forward", "f", n=[value("quantity", 2001, "1")])],
        [relation("r", "backward", "e", n=[YEAR])],
        2,
    ),
    ("loop", [relation("r", "forward", "e")], [], 1),
    ("loop at both", [relation("r", "forward", "e"), relation("r", "backward", "e")], [], 1),
    ("with a concept", [relation("r", "forward", "c")] * 2, [relation("r", "backward", "c")], 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("at_e", "at_f", "count"), [row[1:] for row in MERGED], ids=[row[0] for row in MERGED]
)
def test_when_two_records_are_one_fact(at_e: Any, at_f: Any, count: int) -> None:
    knowledge = from_kqapro(
        {
            "concepts": {"c": {"name": "c", "subclassOf": []}},
            "entities": {
                "e": {"name": "e", "instanceOf": [], "attributes": [], "relations": at_e},
                "f": {"name": "f", "instanceOf": [], "attributes": [], "relations": at_f},
            },
        }
    )
    assert len(knowledge.relational) == len(list(knowledge.facts())) == count
    # Every fact is reachable from both its ends.
    nodes = as_ids(range(3))
    names = ("r", "s")
    assert sum(len(knowledge.facts_from(nodes, name)) for name in names) == count
    assert sum(len(knowledge.facts_into(nodes, name)) for name in names) == count
    for number, fact in enumerate(knowledge.facts()):
        head, tail = knowledge.node(fact.head), knowledge.node(fact.tail)
        assert number in knowledge.facts_from(as_ids([head]), fact.relation)
        assert number in knowledge.facts_into(as_ids([tail]), fact.relation)


@pytest.mark.parametrize("seed", range(30))
def test_the_facts_of_awkward_knowledge_bases(seed: int) -> None:
    document = random_kb(random.Random(seed))
    nodes = {**document["concepts"], **document["entities"]}
    wanted = set()
    plain = from_kqapro(document)
    for id, node in nodes.items():
        for record in node.get("relations", []):
            ends = (id, record["object"])
            head, tail = ends if record["direction"] == "forward" else ends[::-1]
            if record["object"] in nodes:
                pairs = frozenset(
                    (key, read_value(one))
                    for key, values in record.get("qualifiers", {}).items()
                    for one in values
                )
                wanted.add((head, record["relation"], tail, pairs))
    found = [
        (
            fact.head,
            fact.relation,
            fact.tail,
            frozenset((key, one) for key, values in fact.qualifiers.items() for one in values),
        )
        for fact in plain.facts()
    ]
    assert len(found) == len(wanted) and set(found) == wanted
    literals = sum(len(node.get("attributes", [])) for node in nodes.values())
    assert len(plain.literals) == literals


def read_value(one: dict[str, Any]) -> Any:
    """A value of kb.json, read by way of a knowledge base of its own."""
    node = {"name": "e", "attributes": [{"key": "k", "value": one, "qualifiers": {}}]}
    knowledge = from_kqapro({"concepts": {}, "entities": {"e": node}})
    return knowledge.values[0]


def ghost() -> KnowledgeBase:
    """A knowledge base whose only fact dangles."""
    node = {"name": "e", "relations": [relation("ghost", "forward", "x", q=[YEAR])]}
    return from_kqapro({"concepts": {}, "entities": {"e": node}})


def test_a_dropped_fact_leaves_no_relation() -> None:
    assert len(ghost().relational) == 0 and ghost().relations == []


def test_a_dropped_fact_leaves_no_qualifiers() -> None:
    knowledge = ghost()
    assert knowledge.qualifier_keys == [] and len(knowledge.values) == 0


# --- names and strings --------------------------------------------------------------------------

SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2003\u200a\u2028\u2029\u202f\u205f\u3000"


@pytest.mark.parametrize("space", SPACES)
def test_white_space_in_names(space: str) -> None:
    assert normalise_name(f"{space}two{space}{space} words{space}") == "two words"
    builder = Builder()
    builder.add_entity("e", f" two{space}words{space}")
    builder.add_entity("f", "two words")
    builder.add_entity("g", "twowords")
    knowledge = builder.build()
    assert knowledge.name_of(0) == "two words"
    for name in ("two words", f"{space}two {space} words"):
        assert knowledge.named(name).tolist() == [0, 1]


@pytest.mark.parametrize("letter", "\x1c\x1d\x1e\x1f\u200b\u180e\ufeff\x00")
def test_what_is_not_white_space(letter: str) -> None:
    assert normalise_name(f" a{letter}b{letter}  c ") == f"a{letter}b{letter} c"


@given(st.text())
def test_a_normalised_name_stays(text: str) -> None:
    once = normalise_name(text)
    assert normalise_name(once) == once
    assert once.replace(" ", "") == "".join(c for c in text if c not in SPACES)


def test_keys_and_values_keep_their_white_space() -> None:
    builder = Builder()
    builder.add_entity("e", "e")
    builder.add_attribute("e", " two  words ", " two  words ", {" q ": " v "})
    (fact,) = builder.build().attributes(0)
    assert (fact.key, fact.value, fact.qualifiers) == (
        " two  words ",
        " two  words ",
        {" q ": [" v "]},
    )


@given(st.sets(st.text(max_size=6), max_size=60), st.lists(st.text(max_size=3)))
def test_strings(texts: set[str], others: list[str]) -> None:
    table = StringTable(string_arrays(sorted(texts)))
    assert [table[number] for number in range(len(table))] == sorted(texts)
    assert [table.find(text) for text in sorted(texts)] == list(range(len(texts)))
    assert all((table.find(text) >= 0) == (text in texts) for text in others)


def test_a_lone_surrogate_is_never_found() -> None:
    table = StringTable(string_arrays(["", "?", "\ufffd"]))
    assert table.find("\ud800") == -1


# --- arrays -------------------------------------------------------------------------------------

NUMBERS = st.lists(st.integers(0, 60), max_size=70)
SETS = NUMBERS.map(lambda numbers: as_ids(sorted(set(numbers))))


@given(NUMBERS, SETS, SETS)
def test_arrays(numbers: list[int], left: Ids, right: Ids) -> None:
    mixed = as_ids(numbers)
    assert unique(mixed).tolist() == sorted(set(numbers))
    for bound in (61, 5000):
        assert unique_below(mixed, bound).tolist() == sorted(set(numbers))
    assert np.flatnonzero(mask_of(mixed, 61)).tolist() == sorted(set(numbers))
    one, other = set(left.tolist()), set(right.tolist())
    assert contains(left, mixed).tolist() == [number in one for number in numbers]
    assert intersect(left, right).tolist() == sorted(one & other)
    assert unite([left, right, left]).tolist() == sorted(one | other)
    assert unite([]).tolist() == [] and unite([left]).tolist() == left.tolist()


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=30), NUMBERS)
def test_ranges(ranges: list[tuple[int, int]], numbers: list[int]) -> None:
    starts = as_ids(low for low, _ in ranges)
    stops = as_ids(low + size for low, size in ranges)
    wanted = [n for low, size in ranges for n in range(low, low + size)]
    assert expand(starts, stops).tolist() == wanted
    intervals = [(low, low + size) for low, size in ranges]
    assert in_intervals(as_ids(numbers), intervals).tolist() == [n in set(wanted) for n in numbers]


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=10))
def test_grouped(lists: list[list[int]]) -> None:
    offsets, flat = grouped(lists)
    assert [flat[a:b].tolist() for a, b in pairwise(offsets)] == lists


def test_looking_things_up_in_several_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    knowledge = large(4)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(
                pool.map(
                    lambda _: (knowledge.keys, knowledge.units, knowledge.fingerprint), range(64)
                )
            )
    finally:
        sys.setswitchinterval(before)
    assert all(one == found[0] for one in found)
