"""Traits of programs: hops, skills, locating and asking strategies."""

from __future__ import annotations

import pytest
from hypothesis import given

from generation.blocks import generate
from kb import KnowledgeBase
from kopl import traits
from kopl.functions import FUNCTIONS
from kopl.program import Call, post_order
from kopl.text import read
from kopl.types import Type
from tests.kopl.strategies import programs

# program: hops, skills, locating, asking
TABLE = {
    'QueryName(Find("A"))': (0, (), ("entity name",), "QueryName"),
    'Count(FilterConcept(FindAll(), "c"))': (
        0, ("multi-hop", "count"), ("concept name",), "Count",
    ),
    'QueryName(FilterConcept(Find("A"), "c"))': (
        0, ("multi-hop",), ("entity name",), "QueryName",
    ),
    'QueryAttr(FilterConcept(FilterNum(FindAll(), "k", "1", ">"), "c"), "k")': (
        2, ("multi-hop",), ("concept + literal",), "QueryAttribute",
    ),
    'QueryName(Relate(Find("A"), "r", "forward"))': (
        1, ("multi-hop",), ("entity name", "concept + relational"), "QueryName",
    ),
    'QueryName(Relate(Relate(Find("A"), "r", "forward"), "s", "backward"))': (
        2, ("multi-hop",), ("entity name", "concept + relational", "multi-hop"), "QueryName",
    ),
    'QueryName(Relate(FilterConcept(FilterStr(FindAll(), "k", "v"), "c"), "r", "forward"))': (
        2, ("multi-hop",), ("concept + literal", "concept + relational", "multi-hop"), "QueryName",
    ),
    # A value below is not enough: the relation must start there.
    'QueryName(And(Relate(Find("A"), "r", "forward"), FilterStr(FindAll(), "k", "v")))': (
        2, ("multi-hop", "logical"),
        ("entity name", "concept + literal", "concept + relational", "intersection"), "QueryName",
    ),
    'Count(Relate(Or(Relate(Find("A"), "r", "forward"), Find("B")), "r", "forward"))': (
        2, ("multi-hop", "logical", "count"),
        ("entity name", "concept + relational", "multi-hop", "union"), "Count",
    ),
    # "Who is taller, LeBron James Jr. or his father?" has four hops.
    'SelectBetween(Find("A"), Relate(Find("A"), "father", "forward"), "height", "greater")': (
        4, ("multi-hop", "comparison"), ("entity name", "concept + relational"), "SelectBetween",
    ),
    'SelectAmong(FilterConcept(FindAll(), "c"), "k", "largest")': (
        2, ("multi-hop", "comparison"), ("concept name",), "SelectAmong",
    ),
    'VerifyNum(QueryAttrUnderCondition(Find("A"), "k", "q", "v"), "1", "=")': (
        3, ("qualifier", "verify"), ("entity name",), "Verify",
    ),
    'QueryRelation(Find("A"), Find("B"))': (0, (), ("entity name",), "Relation"),
    'QueryAttrQualifier(Find("A"), "k", "v", "q")': (
        2, ("qualifier",), ("entity name",), "QualifierLiteral",
    ),
    'QueryRelationQualifier(Find("A"), Find("B"), "r", "q")': (
        1, ("qualifier",), ("entity name",), "QualifierRelational",
    ),
    "FindAll()": (0, (), (), "none"),
}  # fmt: skip


@pytest.mark.parametrize("text", TABLE)
def test_table(text: str) -> None:
    program = read(text)
    found = (
        traits.hops(program), traits.skills(program), traits.locating(program),
        traits.asking(program),
    )  # fmt: skip
    assert found == TABLE[text]


def test_every_function_is_placed() -> None:
    assert {f.skill for f in FUNCTIONS.values()} - {None} == set(traits.SKILLS)
    located = {Type.ENTITIES, Type.FACTS}
    asked = {f.name: traits.asking(Call(f)) for f in FUNCTIONS.values()}
    assert {name for name, strategy in asked.items() if strategy == traits.NOTHING_ASKED} == {
        f.name for f in FUNCTIONS.values() if f.output in located
    }
    assert set(asked.values()) - {traits.NOTHING_ASKED} == set(traits.ASKING)
    by_value = {f.name for f in FUNCTIONS.values() if traits.filters_by_value(f)}
    assert by_value == {"FilterStr", "FilterNum", "FilterYear", "FilterDate"}


def published_skills(names: set[str]) -> set[str]:
    """The columns that KQA Pro's evaluation script counts a program in, by its description."""
    qualifier = {"QueryAttrUnderCondition", "QueryAttrQualifier", "QueryRelationQualifier"}
    holds = {
        "multi-hop": any(n == "Relate" or n.startswith("Filter") for n in names),
        "qualifier": any(n.startswith("QFilter") or n in qualifier for n in names),
        "comparison": bool(names & {"SelectBetween", "SelectAmong"}),
        "logical": bool(names & {"And", "Or"}),
        "count": "Count" in names,
        "verify": any(n.startswith("Verify") for n in names),
    }
    return {skill for skill, found in holds.items() if found}


@given(programs())
def test_skills_follow_the_published_script(program: Call) -> None:
    names = {call.function.name for call in post_order(program)}
    assert set(traits.skills(program)) == published_skills(names)


@given(programs())
def test_locating_follows_the_definition(program: Call) -> None:
    def holds(call: Call) -> bool:
        found = call.function.name == "Relate" or traits.filters_by_value(call.function)
        return found or any(map(holds, call.inputs))

    multi = any(
        call.function.name == "Relate" and any(map(holds, call.inputs))
        for call in post_order(program)
    )
    assert ("multi-hop" in traits.locating(program)) == multi
    assert traits.hops(program) == sum(c.function.hops for c in post_order(program))


def test_generated_types_are_the_asking_strategies(lands: KnowledgeBase) -> None:
    for example in generate(lands, 60, 4):
        assert example.type == traits.asking(example.program)
