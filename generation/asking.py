"""How the functions that ask are drawn: for a name, an attribute, a count, a choice, a check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from generation.comparisons import LARGEST
from generation.grammar import EXISTS, Part, Pattern, Variable
from generation.lexicon import (
    END_TIME,
    POINT_IN_TIME,
    START_TIME,
    ComparisonWords,
    KeyWords,
    QualifierWords,
    ValueWords,
)
from generation.pools import NoDraw, Qualified, draw_from
from generation.scope import DrawnPart, Goal, Scope, Source
from generation.taste import COVERED
from generation.ways import FORMS, Ways
from kb import Value
from kb.arrays import Ids
from kopl import functions as f
from kopl.denotation import Located, Outcome
from kopl.program import Call, post_order

# How often a set to be counted may have one element: people count where there are several.
ONE_OF = 0.15
# How often a superlative is by any key that its things have, not by that of the fact at hand: most
# facts of some keys, as of "population", are of other things than those that are compared.
ANY = 0.5
# What is over has such a qualifier.
OVER: Qualified = (END_TIME, "any")

WAYS = Ways()


@WAYS.draw(f.QUERY_NAME)
def _query_name(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    inner = source.draw(pattern.inputs[0], scope, goal)
    source.listing(inner.call)
    call = Call(pattern.function, (inner.call,))
    return DrawnPart(call, inner.target, intended=source.asked(source.kb.name_of(inner.target)))


@WAYS.draw(f.COUNT)
def _count(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    claim = scope.asks == EXISTS
    several = not claim and not source.nothing and source.random.random() >= ONE_OF
    asked = replace(goal, claim=claim, several=several)
    inner = source.draw(pattern.inputs[0], scope, asked)
    size = source.size(inner.call)
    if not claim:
        source.as_asked(inner, asked)
        source.counting(inner.call)
    answer = source.asked(str(size))
    return DrawnPart(Call(pattern.function, (inner.call,)), inner.target, intended=answer)


@WAYS.draw(f.QUERY_ATTR)
def _query_attr(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    fact = source.literal(scope.given(pattern.arguments[0]), goal.form, goal)
    target, answer = int(source.kb.literals.subject[fact]), str(source.pools.value(fact))
    source.asked(answer)
    inner = source.draw(pattern.inputs[0], scope, goal.at(target))
    call = scope.call(pattern, [inner.call], KeyWords(source.pools.key(fact)))
    return DrawnPart(call, target, ("literal", fact), answer)


@WAYS.draw(f.QUERY_ATTR_UNDER_CONDITION)
def _query_attr_under_condition(
    source: Source, pattern: Pattern, scope: Scope, goal: Goal
) -> DrawnPart:
    drawn, fact, key, value = _qualified_literal(source, pattern, scope, goal, pattern.arguments[1])
    words = KeyWords(source.pools.key(fact)), QualifierWords(key), ValueWords(str(value), value)
    call = scope.call(pattern, [drawn.call], *words)
    return DrawnPart(call, drawn.target, drawn.fact, str(source.pools.value(fact)))


@WAYS.draw(f.QUERY_ATTR_QUALIFIER)
def _query_attr_qualifier(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    drawn, fact, key, answer = _qualified_literal(
        source, pattern, scope, goal, pattern.arguments[2], asked_for=True
    )
    value = source.pools.value(fact)
    words = KeyWords(source.pools.key(fact)), ValueWords(str(value), value), QualifierWords(key)
    call = scope.call(pattern, [drawn.call], *words)
    return DrawnPart(call, drawn.target, intended=str(answer))


def _qualified_literal(
    source: Source,
    pattern: Pattern,
    scope: Scope,
    goal: Goal,
    qualifier: str | Variable,
    *,
    asked_for: bool = False,
) -> tuple[DrawnPart, int, str, Value]:
    """The only input, drawn for a literal fact; that fact, and one of its qualifiers.

    The qualifier may be what is asked for.
    """
    given = scope.given(qualifier)
    asked = Goal(goal.target, goal.form, (given, "any"), goal.path)
    fact = source.literal(scope.given(pattern.arguments[0]), goal.form, asked)
    key, value = source.qualifier(("literal", fact), given, "any")
    if asked_for:
        # A figure that changes is asked about by its date alone: else which one is meant?
        if key != POINT_IN_TIME and source.is_dated(fact):
            raise NoDraw
        source.asked(str(value))
    target = int(source.kb.literals.subject[fact])
    inner = source.draw(pattern.inputs[0], scope, goal.at(target))
    return DrawnPart(inner.call, target, ("literal", fact)), fact, key, value


@WAYS.draw(f.QUERY_RELATION)
def _query_relation(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    fact = draw_from(source.random, source.pools.relation_facts(source.relation(), None))
    relation = source.asked(source.kb.relations[int(source.kb.relational.predicate[fact])])
    calls, head = _ends(source, pattern, scope, goal, fact)
    return DrawnPart(Call(pattern.function, tuple(calls)), head, intended=relation)


@WAYS.draw(f.QUERY_RELATION_QUALIFIER)
def _query_relation_qualifier(
    source: Source, pattern: Pattern, scope: Scope, goal: Goal
) -> DrawnPart:
    relation, qualifier = (scope.given(argument) for argument in pattern.arguments)
    asked: Qualified = (qualifier, "any")
    number = source.relation(relation) if relation else source.relation_with(qualifier)
    if number < 0:
        raise NoDraw
    facts = source.pools.relation_facts(number, asked)
    fact = source.fact_of(source.kb.relational, facts, asked)
    key, answer = source.qualifier(("relational", fact), qualifier, "any")
    # When it began and ended is asked by rules of its own; what is over has no "since".
    if not qualifier and key in (START_TIME, END_TIME):
        raise NoDraw
    if qualifier == START_TIME and fact in source.pools.relation_facts(number, OVER):
        raise NoDraw
    source.asked(str(answer))
    calls, head = _ends(source, pattern, scope, goal, fact)
    words = source.lexicon.relation(source.kb.relations[number], "forward")
    call = scope.call(pattern, calls, words, QualifierWords(key, relation=words.text))
    return DrawnPart(call, head, intended=str(answer))


def _ends(
    source: Source, pattern: Pattern, scope: Scope, goal: Goal, fact: int
) -> tuple[list[Call], int]:
    """The two inputs, drawn for the head and the tail of a relational fact; and the head."""
    table = source.kb.relational
    head, tail = int(table.subject[fact]), int(table.object[fact])
    if head == tail:
        raise NoDraw
    places = list(zip(pattern.inputs, (head, tail), (tail, head), strict=True))
    calls: dict[int, Call] = {}
    # A name that another part is found by comes first.
    for place in sorted(range(2), key=lambda place: not _is_name(places[place][0])):
        part, end, other = places[place]
        below = Goal(end, "any", None, (*goal.path, other))
        calls[place] = source.draw(part, scope, below).call
    return [calls[0], calls[1]], head


def _is_name(part: Part) -> bool:
    return isinstance(part, Pattern) and part.function is f.FIND


@WAYS.draw(f.SELECT_AMONG)
def _select_among(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    fact = source.literal(scope.given(pattern.arguments[0]), "quantity", goal)
    target, key = int(source.kb.literals.subject[fact]), source.pools.key(fact)
    inner = source.draw(pattern.inputs[0], scope, goal.at(target, several=True))
    concept = inner.call.arguments[0] if inner.call.function is f.FILTER_CONCEPT else None
    if not source.taste.of_the_greatest(inner.call):
        source.whole(inner.call)
    said = {call.arguments[0] for call in post_order(inner.call) if call.function.name in FORMS}
    keys = [key for key in _comparable(source, inner.call, concept) if key not in said]
    if key not in keys or (not scope.given(pattern.arguments[0]) and source.random.random() < ANY):
        key = draw_from(source.random, keys)
    chosen = _choice(source, pattern, scope, [inner.call], key)
    if source.taste.has_greatest(concept) and chosen.arguments[1] not in LARGEST:
        raise NoDraw  # the shortest river of all may be one that is not there
    return DrawnPart(chosen, target)


def _comparable(source: Source, call: Call, concept: str | None) -> list[str]:
    """The keys by which two or more elements, of a concept, have a quantity each."""
    found, kb = source.outcome(call), source.kb
    assert isinstance(found, Located)
    table = kb.literals
    facts = table.of_subjects(found.ids)
    facts = facts[source.pools.of_form["quantity"][table.object[facts]]]
    owners = np.stack((table.predicate[facts], table.subject[facts]))
    keys = np.unique(owners, axis=1)[0]
    having = np.bincount(keys, minlength=len(kb.keys))
    # A superlative is that of all: not of those few whose figure is known. Where nobody has told
    # what is complete, there would be hardly any.
    several = (having > 1) & (having >= COVERED * len(found) * source.taste.annotated)
    return [
        kb.keys[key]
        for key in np.flatnonzero(several).tolist()
        if source.taste.may_compare(key, concept)
    ]


@WAYS.draw(f.SELECT_BETWEEN)
def _select_between(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    kb, pools = source.kb, source.pools
    fact = source.literal(scope.given(pattern.arguments[0]), "quantity", goal)
    first, key = int(kb.literals.subject[fact]), pools.key(fact)
    if source.taste.has_none(key, pools.value(fact)):
        raise NoDraw
    # The other one is of the same concept where there is one: nobody compares a lake to a law.
    facts = pools.key_facts(kb.key_number(key), "quantity", None)
    mine = set(kb.concepts_of(first))
    for _ in range(8):
        other = draw_from(source.random, facts)
        second = int(kb.literals.subject[other])
        # Who has none of it is no match, and a choice among namesakes is none.
        if kb.name_of(second) == kb.name_of(first) or source.taste.has_none(
            key, pools.value(other)
        ):
            continue
        if mine.intersection(kb.concepts_of(second)):
            break
    else:
        raise NoDraw
    nodes = zip(pattern.inputs, (first, second), strict=True)
    calls = [source.draw(part, scope, goal.at(node)).call for part, node in nodes]
    return DrawnPart(_choice(source, pattern, scope, calls, key), first)


def _choice(source: Source, pattern: Pattern, scope: Scope, inputs: list[Call], key: str) -> Call:
    """The choice by a word for which one is clearly ahead; raises NoDraw where there is none."""
    kind = pattern.function.arguments[1][1]
    word = scope.given(pattern.arguments[1])
    among = np.concatenate([_ids(source.outcome(one)) for one in inputs])
    for one in (word,) if word else source.random.sample(kind.choices, len(kind.choices)):
        if source.pools.is_clear(among, key, one in LARGEST):
            return scope.call(pattern, inputs, KeyWords(key), ComparisonWords(one, key))
    raise NoDraw


def _ids(found: Outcome) -> Ids:
    assert isinstance(found, Located)
    return found.ids


@WAYS.draw(f.VERIFY_STR, f.VERIFY_NUM, f.VERIFY_YEAR, f.VERIFY_DATE)
def _verify(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    form = FORMS[pattern.function.name.replace("Verify", "Filter")]
    asked = Goal(goal.target, form, None, goal.path)
    inner = source.draw(pattern.inputs[0], scope, asked)
    if inner.fact is None:
        raise NoDraw
    key, value = source.pools.key(inner.fact[1]), source.pools.value(inner.fact[1])
    words, holds = source.comparison(pattern, key, value, scope, verified=True)
    call = scope.call(pattern, [inner.call], *words)
    return DrawnPart(call, inner.target, intended="yes" if holds else "no")
