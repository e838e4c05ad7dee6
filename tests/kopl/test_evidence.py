"""The facts that an answer rests on, for every function and against a plain second search."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kb import Builder, KnowledgeBase, Quantity, from_kqapro, load
from kopl import evidence as module
from kopl.evidence import KINDS, Evidence
from kopl.evidence_rules import RULES
from kopl.executor import Executor
from kopl.functions import FUNCTIONS
from kopl.meaning import Quantities, shared_units
from kopl.program import Call, post_order
from kopl.text import read
from kopl.types import Type
from kopl_cli import main
from tests.kopl.strategies import programs, qualifiers, values
from tests.reference.random_kb import random_kb
from tests.reference.random_program import ProgramSampler

Atom = tuple[str, int]

# How many programs are searched plainly; KOPL_DIFFERENTIAL raises it for a longer run.
EXAMPLES = int(os.environ.get("KOPL_DIFFERENTIAL", "60"))


def atoms_of(kb: KnowledgeBase, found: Evidence | None = None) -> set[Atom]:
    """All facts and entities of a knowledge base, or those of an evidence with what they name."""
    if found is not None:
        atoms: set[Atom] = {(kind, n) for kind in KINDS for n in found.numbers(kind).tolist()}
        return atoms | {end for atom in atoms for end in ends_of(kb, atom)}
    counts = {
        "relation": len(kb.relational),
        "attribute": len(kb.literals),
        "membership": sum(len(kb.concepts_of(e)) for e in range(kb.entity_count)),
        "name": kb.entity_count,
    }
    return {(kind, number) for kind, count in counts.items() for number in range(count)}


def ends_of(kb: KnowledgeBase, atom: Atom) -> set[Atom]:
    """The entities without which a fact cannot be."""
    kind, number = atom
    if kind == "relation":
        nodes = [int(kb.relational.subject[number]), int(kb.relational.object[number])]
    elif kind == "attribute":
        nodes = [int(kb.literals.subject[number])]
    elif kind == "membership":
        nodes = kb.members(np.array([number])).tolist()
    else:
        nodes = [number]
    return {("name", node) for node in nodes if kb.is_entity(node)}


def only(kb: KnowledgeBase, atoms: set[Atom]) -> KnowledgeBase:
    """A knowledge base of these facts and entities, with all concepts."""
    builder = Builder()
    for concept in range(kb.entity_count, kb.node_count):
        builder.add_concept(
            kb.id_of(concept), kb.name_of(concept), map(kb.id_of, kb.parents(concept))
        )
    start = 0
    for entity in range(kb.entity_count):
        concepts = kb.concepts_of(entity)
        if ("name", entity) in atoms:
            kept = [c for at, c in enumerate(concepts, start) if ("membership", at) in atoms]
            builder.add_entity(kb.id_of(entity), kb.name_of(entity), map(kb.id_of, kept))
        start += len(concepts)
    for kind, number in sorted(atoms):
        if kind == "attribute":
            literal = kb.literal_fact(number)
            builder.add_attribute(literal.entity, literal.key, literal.value, literal.qualifiers)
        elif kind == "relation":
            fact = kb.relational_fact(number)
            builder.add_fact(fact.head, fact.relation, fact.tail, fact.qualifiers)
    return builder.build()


def without(kb: KnowledgeBase, found: Evidence) -> KnowledgeBase:
    """The knowledge base without any fact of an evidence; of names, without the entities."""
    facts = {(kind, n) for kind in KINDS[:-1] for n in found.numbers(kind).tolist()}
    shown = {fact.subject_id for fact in found.facts() if fact.kind == "name"}
    gone = facts | {("name", kb.node(id)) for id in shown}
    rest = {atom for atom in atoms_of(kb) - gone if ends_of(kb, atom) <= atoms_of(kb) - gone}
    return only(kb, rest)


# --- what the evidence is for ---------------------------------------------------------------------


def test_the_evidence_alone_gives_the_answer_and_without_it_the_answer_goes() -> None:
    """For every function, on knowledge bases full of the awkward."""
    used = dict.fromkeys(FUNCTIONS, 0)
    wanted: Counter[Any] = Counter()
    for seed in range(40):
        rng = random.Random(f"evidence {seed}")
        document = random_kb(rng, "small")
        kb = from_kqapro(document)
        executor, sampler = Executor(kb), ProgramSampler(document, rng, counts=wanted)
        for _ in range(20):
            program = read(sampler.sample())
            result = executor.run(program, evidence=True)
            assert result.evidence is not None
            alone = Executor(result.evidence.knowledge_base())
            assert alone.denote(program) == result.denotation, (seed, str(program))
            if result.denotation in ([], ["0"], ["no"]):
                continue  # what nothing gives, nothing takes away
            if any(not kb.is_entity(node) for node in _found_alone(kb, result.evidence)):
                continue  # concepts are given
            rest = Executor(without(kb, result.evidence)).denote(program)
            assert not set(rest) & set(result.denotation), (seed, str(program))
            for name in {call.function.name for call in post_order(program)}:
                used[name] += 1
    assert min(used.values()) > 0, used


def _found_alone(kb: KnowledgeBase, found: Evidence) -> list[int]:
    return [kb.node(fact.subject_id) for fact in found.facts() if fact.kind == "name"]


def test_going_down_finds_what_writing_witnesses_out_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where witnesses are not written out because no fact serves two calls, it would not matter."""
    may_hold_more, quick = module._may_hold_more, 0
    for seed in range(16):
        rng = random.Random(f"down {seed}")
        document = random_kb(rng)
        executor, sampler = Executor(from_kqapro(document)), ProgramSampler(document, rng)
        for _ in range(25):
            program = read(sampler.sample())
            found = []
            for forced in (False, True):
                asked: list[bool] = []

                def decide(*given: Any, forced: bool = forced, asked: list[bool] = asked) -> bool:
                    asked.append(may_hold_more(*given))
                    return forced or asked[-1]

                monkeypatch.setattr(module, "_may_hold_more", decide)
                found.append([fact.text for fact in executor.evidence(program).facts()])
            assert found[0] == found[1], str(program)
            quick += not asked[0]
    assert quick > 200


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_evidence_of_each_example_gives_its_answer(name: str) -> None:
    """The example of each function's declaration, on real facts."""
    executor = Executor(load("world"))
    result = executor.run(FUNCTIONS[name].example, evidence=True)
    assert result.evidence is not None and result.evidence.is_minimal
    assert 0 < len(result.evidence) == len(list(result.evidence.facts()))
    alone = Executor(result.evidence.knowledge_base())
    assert alone.denote(result.program) == result.denotation != []


# --- against a plain second search ------------------------------------------------------------

ENTITY_NAMES, CONCEPT_NAMES = ["Ann", "Bob"], ["thing", "a b"]


@st.composite
def small_documents(draw: st.DrawFn) -> dict[str, Any]:
    """A kb.json object with so few facts that all sets of them can be tried."""
    concepts, entities = ["c0", "c1"], ["e0", "e1", "e2"][: draw(st.integers(1, 3))]
    keys = st.sampled_from(["height", "since"])
    facts = st.fixed_dictionaries({"key": keys, "value": values, "qualifiers": qualifiers})
    relations = st.fixed_dictionaries(
        {
            "relation": st.just("knows")
            if draw(st.booleans())
            else st.sampled_from(["knows"] * 2 + ["motto"]),
            "direction": st.just("forward"),
            "object": st.sampled_from(entities * 3 + concepts),
            "qualifiers": st.just({}) if draw(st.booleans()) else qualifiers,
        }
    )
    return {
        "concepts": {
            "c0": {"name": "thing", "subclassOf": []},
            "c1": {"name": "a b", "subclassOf": draw(st.sampled_from([[], ["c0"]]))},
        },
        "entities": {
            e: {
                "name": draw(st.sampled_from(ENTITY_NAMES)),
                "instanceOf": draw(st.lists(st.sampled_from(concepts), max_size=2, unique=True)),
                "attributes": draw(st.lists(facts, max_size=2)),
                "relations": draw(st.lists(relations, max_size=2)),
            }
            for e in entities
        },
    }


def parts(kb: KnowledgeBase, atoms: set[Atom], program: Call, whole: list[str]) -> set[Any]:
    """The parts of an answer that a program gives on some facts."""
    sub = only(kb, atoms)
    executor, root = Executor(sub), program.function
    inputs = [executor.outcome(given, {}) for given in program.inputs]
    if root.name == "Count":
        return {sub.id_of(node) for node in inputs[0].ids.tolist()}
    if root.name.startswith("Select"):
        own = Executor(kb)
        sides = [own.outcome(given, {}) for given in program.inputs]
        found = [Quantities.of(kb, side.ids, program.arguments[0]) for side in sides]
        if root.name == "SelectBetween":
            units = shared_units(found)
            found = [side.those(np.isin(side.units, units)) for side in found]
        return {
            (at, fact)
            for at, side in enumerate(found)
            for fact, node in zip(side.facts.tolist(), side.nodes.tolist(), strict=True)
            if ("attribute", fact) in atoms and sub.node(kb.id_of(node)) in inputs[at].ids
        }
    if root.output is Type.TRUTH and whole == ["no"]:
        return {(type(sub.values[n]), str(sub.values[n])) for n in inputs[0].numbers.tolist()}
    if root.output is Type.TRUTH:
        return set(executor.denote(program)) & {"yes"}
    return set(executor.denote(program))


def searched(kb: KnowledgeBase, program: Call) -> set[Atom]:
    """The union of the smallest sets of facts that give a part of the answer, by trying all."""
    whole = Executor(kb).denote(program)
    every = sorted(atoms_of(kb))
    smallest: dict[Any, list[set[Atom]]] = {}
    subsets = chain.from_iterable(combinations(every, size) for size in range(len(every) + 1))
    for subset in map(set, subsets):
        if any(not ends_of(kb, atom) <= subset for atom in subset):
            continue
        for part in parts(kb, subset, program, whole):
            known = smallest.setdefault(part, [])
            if not any(witness <= subset for witness in known):
                known.append(subset)
    return {atom for sets in smallest.values() for witness in sets for atom in witness}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(small_documents(), st.integers(0, 2**32), st.booleans(), programs(depth=3))
def test_a_plain_search_finds_the_same(
    document: dict[str, Any], seed: int, grounded: bool, drawn: Call
) -> None:
    kb = from_kqapro(document)
    assume(len(atoms_of(kb)) <= 8)
    if grounded:
        drawn = read(ProgramSampler(document, random.Random(seed)).sample())
    found = Executor(kb).evidence(drawn)
    assert found.is_minimal
    expected = searched(kb, drawn)
    assert {a for a in atoms_of(kb, found) if a[0] != "name" or kb.is_entity(a[1])} == expected


# --- by hand ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def family() -> KnowledgeBase:
    """Ann and Bob have children: Cid both, Dan only Bob; with ages and a name that two have."""
    builder = Builder()
    builder.add_concept("being", "being")
    builder.add_concept("human", "human", ["being"])
    for id, name in (("a", "Ann"), ("b", "Bob"), ("c", "Cid"), ("d", "Dan"), ("d2", "Dan")):
        builder.add_entity(id, name, ["human"])
    for id, age in (("a", 40), ("b", 41), ("c", 9), ("d", 7)):
        builder.add_attribute(id, "age", Quantity(age, "year"))
    builder.add_attribute("a", "motto", "carpe diem", {"language": "Latin"})
    for head, tail in (("a", "c"), ("b", "c"), ("b", "d")):
        builder.add_fact(head, "child", tail)
    return builder.build()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # Of a way there and back by one fact, only that fact; Ann rests on what both have.
        (
            'Relate(Relate(Find("Ann"), "child", "forward"), "child", "backward")',
            ["Ann | child | Cid", "Bob | child | Cid"],
        ),
        # What a name gives rests on no fact that also gives it.
        (
            'Or(Find("Ann"), Relate(Find("Cid"), "child", "backward"))',
            ["Ann | name | Ann", "Bob | child | Cid"],
        ),
        ('And(FindAll(), Relate(Find("Ann"), "child", "forward"))', ["Ann | child | Cid"]),
        # Of two ways one of which holds the other, the shorter one.
        (
            'Or(Relate(Find("Ann"), "child", "forward"),'
            ' And(Relate(Find("Ann"), "child", "forward"),'
            ' FilterNum(FindAll(), "age", "9 year", "=")))',
            ["Ann | child | Cid"],
        ),
        ('Count(Find("Dan"))', ["Dan | name | Dan", "Dan | name | Dan"]),
        (
            'SelectAmong(Relate(Find("Bob"), "child", "forward"), "age", "largest")',
            ["Bob | child | Cid", "Bob | child | Dan", "Cid | age | 9 year", "Dan | age | 7 year"],
        ),
        ('VerifyNum(QueryAttr(Find("Ann"), "age"), "50 year", ">")', ["Ann | age | 40 year"]),
        ('VerifyStr(QueryAttr(Find("Bob"), "motto"), "x")', []),
        ('VerifyNum(QueryAttr(FindAll(), "age"), "40 year", ">")', ["Bob | age | 41 year"]),
        ('QueryAttr(Find("Ann"), "motto")', ["Ann | motto | carpe diem [language: Latin]"]),
        (
            'FilterConcept(FilterNum(FindAll(), "age", "9 year", "<"), "being")',
            ["Dan | age | 7 year", "Dan | instance of | human"],
        ),
        ('Count(Relate(Find("Dan"), "child", "forward"))', []),
    ],
)
def test_by_hand(family: KnowledgeBase, program: str, expected: list[str]) -> None:
    found = Executor(family).evidence(program)
    assert sorted(fact.text for fact in found.facts()) == sorted(expected)
    assert len(found) == len(expected) and found.is_minimal


def test_too_many_witnesses_give_all_derivations(
    family: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = 'Relate(Relate(Find("Bob"), "child", "forward"), "child", "backward")'
    program = f'Relate({back}, "child", "forward")'
    exact = Executor(family).evidence(program)
    assert exact.is_minimal
    for bound in ("MOST_WITNESSES", "MOST_WORK"):
        with monkeypatch.context() as patch:
            patch.setattr(module, bound, 1)
            found = Executor(family).evidence(program)
        assert not found.is_minimal
        assert set(exact.numbers("relation")) <= set(found.numbers("relation"))
        assert Executor(found.knowledge_base()).denote(program) == ["Cid", "Dan"]


def test_every_function_has_a_rule_of_its_own_declaration() -> None:
    assert set(RULES) == set(FUNCTIONS)


def test_the_command_line_shows_it(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    program = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
    arguments = ["run", "--kb", "world", "--evidence", program]
    assert main(arguments) == 0
    assert capsys.readouterr().out == "Oslo\nrests on 1 fact\n  #1  Norway | capital | Oslo\n"
    assert main([*arguments, "--json", "--trace"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [step.get("facts") for step in printed["trace"]] == [
        None,
        ["Norway | capital | Oslo"],
        None,
    ]
    [fact] = printed["evidence"]["facts"]
    assert (fact["kind"], fact["subject"], fact["object"]) == ("relation", "Norway", "Oslo")
    assert main(["run", "--kb", "world", "--evidence", 'FilterConcept(FindAll(), "country")']) == 0
    assert capsys.readouterr().out.endswith("more (--json gives all)\n")


@pytest.mark.parametrize("others", [["--engine", "rdflib"], ["--programs", "x"]])
def test_where_it_cannot_be_shown(others: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(
            [
                "run",
                "--kb",
                "world",
                "--evidence",
                *others,
                *(["FindAll()"] if others[0] == "--engine" else []),
            ]
        )
    assert "--evidence goes with" in capsys.readouterr().err
