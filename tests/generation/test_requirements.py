"""Which rules are not tried for a node: those that could never describe it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from generation.grammar import ROOT
from generation.pools import Capability as Has
from generation.pools import NoDraw, Pools, capabilities
from generation.rules_file import bundled, read_grammar
from generation.sampler import Sampler, applicable_rules
from generation.scope import Goal, Scope
from generation.ways import requirements
from kb import Date, KnowledgeBase, Quantity

RULES = """\
ROOT[Count] -> Count(D)
    | how many {D.many}?
D -> PROGRAM
    | many: x WORDS
"""


def rule_of(program: str, words: str) -> Has:
    text = RULES.replace("PROGRAM", program).replace("WORDS", words)
    return requirements(read_grammar(text).rules["D"][0].program)


@pytest.mark.parametrize(
    ("program", "words", "wanted"),
    [
        ("Find($n)", "{n}", Has.UNIQUE),
        ("FilterConcept(Find($n), $c)", "{n} {c}", Has.NOUN | Has.NAMESAKES),
        ("FilterConcept(FindAll(), $c)", "{c}", Has.NOUN),
        ("FilterNum(Find($n), $k, $v, $o)", "{n} {k} {v} {o}", Has.NAMESAKES | Has.QUANTITY),
        ("FilterDate(FindAll(), $k, $v, $o)", "{k} {v} {o}", Has.DATE),
        (
            "QFilterStr(FilterYear(FindAll(), $k, $v, $o), $q, $w)",
            "{k} {v} {o} {q} {w}",
            Has.TIME | Has.QUALIFIED_STRING,
        ),
        ("Relate(Find($n), $r, forward)", "{r} {n}", Has.TAIL),
        ("Relate(Find($n), $r, backward)", "{r} {n}", Has.HEAD),
        ("Relate(Find($n), $r, $d)", "{r} {n}", Has(0)),
        ("And(Relate(Find($m), $r, $d), Find($n))", "{m} {r} {n}", Has.NAMESAKES),
        ("Or(Find($n), FilterNum(FindAll(), $k, $v, $o))", "{n} {k} {v} {o}", Has.UNIQUE),
    ],
)
def test_requirements_are_read_off_the_program(program: str, words: str, wanted: Has) -> None:
    assert rule_of(program, words) == wanted


def test_what_nodes_have(lands: KnowledgeBase) -> None:
    found = capabilities(Pools(lands))
    facts, literals = lands.relational, lands.literals
    for node in range(lands.node_count):
        has = Has(int(found[node]))
        same = len(lands.named(lands.name_of(node)))
        assert (Has.UNIQUE in has, Has.NAMESAKES in has) == (same == 1, same > 1)
        named = lands.is_entity(node) and bool(lands.concepts_of(node))
        assert (Has.NOUN in has, Has.NO_NOUN in has) == (named, not named)
        assert (Has.HEAD in has) == bool(np.any(facts.subject == node))
        assert (Has.TAIL in has) == bool(np.any(facts.object == node))
        values = [lands.values[v] for v in literals.object[literals.subject == node].tolist()]
        assert (Has.QUANTITY in has) == any(isinstance(v, Quantity) for v in values)
        assert (Has.STRING in has) == any(isinstance(v, str) for v in values)
        assert (Has.DATE in has) == any(isinstance(v, Date) for v in values)
    amber, bright = lands.named("Amber").tolist(), lands.named("Bright").tolist()
    assert len(amber) == 2
    assert len(bright) == 1
    blue = lands.named("Blue Circle").tolist()[0]
    assert Has.QUALIFIED_TIME in Has(int(found[blue]))  # lands joined it in some year
    assert Has.QUALIFIED_STRING not in Has(int(found[blue]))


@pytest.mark.parametrize("name", ["lands", "world"])
def test_a_rule_that_is_not_tried_would_not_have_succeeded(
    name: str, request: pytest.FixtureRequest
) -> None:
    kb: KnowledgeBase = request.getfixturevalue(name)
    sampler = Sampler(kb, bundled(), Random(1))
    found = capabilities(sampler.source.pools)
    random, tried = Random(2), 0
    rules = [r for left, group in sampler.grammar.rules.items() if left != ROOT for r in group]
    for node in random.sample(range(kb.node_count), min(40, kb.node_count)):
        for rule in rules:
            if not requirements(rule.program) & ~int(found[node]):
                continue
            tried += 1
            sampler._steps = 0
            with pytest.raises(NoDraw):
                sampler._derive(rule, Goal(target=node), Scope(rule.single, budget=7))
    assert tried > 100


def test_rules_that_name_what_is_not_there_are_left_out(lands: KnowledgeBase) -> None:
    grammar = read_grammar(
        "ROOT[Count] -> Count(D)\n    | how many {D.many}?\n"
        "D -> Relate(E, capital, forward)\n    | many: capitals of {E}\n"
        "D -> Relate(E, owner, forward)\n    | many: owners of {E}\n"
        "E -> Find($n)\n    | {n}\n"
        "E -> QFilterYear(Relate(Find($n), $r, $d), no such key, $v, $o)\n    | {n} {r} {v} {o}\n"
    )
    kept = applicable_rules(grammar, lands)
    assert [rule.line for rule in kept.rules["D"]] == [3]
    assert [rule.line for rule in kept.rules["E"]] == [7]
    assert kept.rules[ROOT] == grammar.rules[ROOT]


def test_what_needs_a_rule_that_is_left_out_goes_with_it(lands: KnowledgeBase) -> None:
    grammar = read_grammar(
        "ROOT[Count] -> Count(D)\n    | how many {D.many}?\n"
        "ROOT[QueryName] -> QueryName(E)\n    | what is {E}?\n"
        "D -> Relate(E, owner, forward)\n    | many: owners of {E}\n"
        "E -> Find($n)\n    | {n}\n"
    )
    kept = applicable_rules(grammar, lands)
    assert [rule.strategy for rule in kept.rules[ROOT]] == ["QueryName"]
    assert kept.rules["D"] == ()
