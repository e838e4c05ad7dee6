"""How the functions that ask are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generation.drawing import FORMS, Drawn, Scope, Want, draws
from generation.grammar import Pattern, Variable
from generation.lexicon import (
    ComparisonWords,
    KeyWords,
    QualifierWords,
    ValueWords,
)
from generation.pools import NoDraw, Qualified, draw_from
from kb import Value
from kopl import functions as f
from kopl.program import Call

if TYPE_CHECKING:
    from generation.sampler import Sampler


@draws(f.QUERY_NAME)
def _query_name(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    inner = sampler.draw(pattern.inputs[0], scope, want)
    call = Call(pattern.function, (inner.call,))
    return Drawn(call, inner.target, intended=sampler.kb.name_of(inner.target))


@draws(f.COUNT)
def _count(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    inner = sampler.draw(pattern.inputs[0], scope, want)
    size = sampler.size(inner.call)
    return Drawn(Call(pattern.function, (inner.call,)), inner.target, intended=str(size))


@draws(f.QUERY_ATTR)
def _query_attr(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    fact = sampler.literal(scope.given(pattern.arguments[0]), want.form, want)
    target = int(sampler.kb.literals.subject[fact])
    inner = sampler.draw(pattern.inputs[0], scope, want.at(target))
    call = sampler.call(pattern, scope, [inner.call], KeyWords(sampler.key(fact)))
    return Drawn(call, target, ("literal", fact), str(sampler.pools.value(fact)))


@draws(f.QUERY_ATTR_UNDER_CONDITION)
def _query_attr_under_condition(
    sampler: Sampler, pattern: Pattern, scope: Scope, want: Want
) -> Drawn:
    drawn, key, value = _qualified_literal(sampler, pattern, scope, want, pattern.arguments[1])
    assert drawn.fact is not None
    found = KeyWords(sampler.key(drawn.fact[1]))
    call = sampler.call(
        pattern, scope, [drawn.call], found, QualifierWords(key), ValueWords(str(value), value)
    )
    return Drawn(call, drawn.target, drawn.fact, str(sampler.pools.value(drawn.fact[1])))


@draws(f.QUERY_ATTR_QUALIFIER)
def _query_attr_qualifier(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    drawn, key, answer = _qualified_literal(sampler, pattern, scope, want, pattern.arguments[2])
    assert drawn.fact is not None
    value = sampler.pools.value(drawn.fact[1])
    asked = KeyWords(sampler.key(drawn.fact[1]))
    words = asked, ValueWords(str(value), value), QualifierWords(key)
    call = sampler.call(pattern, scope, [drawn.call], *words)
    return Drawn(call, drawn.target, intended=str(answer))


@draws(f.QUERY_RELATION)
def _query_relation(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    fact = draw_from(sampler.random, sampler.pools.relation_facts(sampler.relation(), None))
    heads, tails, target = _ends(sampler, pattern, scope, want, fact)
    relation = sampler.kb.relations[int(sampler.kb.relational.predicate[fact])]
    return Drawn(Call(pattern.function, (heads, tails)), target, intended=relation)


@draws(f.QUERY_RELATION_QUALIFIER)
def _query_relation_qualifier(
    sampler: Sampler, pattern: Pattern, scope: Scope, want: Want
) -> Drawn:
    relation, qualifier = (scope.given(argument) for argument in pattern.arguments)
    asked: Qualified = (qualifier, "any")
    number = sampler.relation(relation, asked)
    if number < 0:
        raise NoDraw
    fact = draw_from(sampler.random, sampler.pools.relation_facts(number, asked))
    key, answer = sampler.qualifier(("relational", fact), qualifier, "any")
    heads, tails, target = _ends(sampler, pattern, scope, want, fact)
    relation_words = sampler.lexicon.relation(sampler.kb.relations[number], "forward")
    words = relation_words, QualifierWords(key)
    call = sampler.call(pattern, scope, [heads, tails], *words)
    return Drawn(call, target, intended=str(answer))


@draws(f.SELECT_AMONG)
def _select_among(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    fact = sampler.literal(scope.given(pattern.arguments[0]), "quantity", want)
    target = int(sampler.kb.literals.subject[fact])
    inner = sampler.draw(pattern.inputs[0], scope, want.at(target))
    keys = sampler.comparable(inner.call)
    key = sampler.key(fact)
    if key not in keys:
        key = draw_from(sampler.random, keys)
    return Drawn(_choice(sampler, pattern, scope, [inner.call], key), target)


@draws(f.SELECT_BETWEEN)
def _select_between(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    fact = sampler.literal(scope.given(pattern.arguments[0]), "quantity", want)
    first = int(sampler.kb.literals.subject[fact])
    # The other one is of the same concept where there is one: nobody compares a lake to a law.
    facts = sampler.pools.key_facts(sampler.kb.key_number(sampler.key(fact)), "quantity", None)
    mine = set(sampler.kb.concepts_of(first))
    for _ in range(8):
        second = int(sampler.kb.literals.subject[draw_from(sampler.random, facts)])
        if second != first and mine.intersection(sampler.kb.concepts_of(second)):
            break
    else:
        raise NoDraw
    calls = []
    for part, node in zip(pattern.inputs, (first, second), strict=True):
        calls.append(sampler.draw(part, scope, want.at(node)).call)
    return Drawn(_choice(sampler, pattern, scope, calls, sampler.key(fact)), first)


@draws(f.VERIFY_STR, f.VERIFY_NUM, f.VERIFY_YEAR, f.VERIFY_DATE)
def _verify(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    form = FORMS[pattern.function.name.replace("Verify", "Filter")]
    asked = Want(want.target, form, None, want.budget, want.path)
    inner = sampler.draw(pattern.inputs[0], scope, asked)
    if inner.fact is None:
        raise NoDraw
    fact, holds = inner.fact[1], sampler.random.random() < 0.5
    words = sampler.comparison(pattern, sampler.key(fact), sampler.pools.value(fact), holds, scope)
    call = sampler.call(pattern, scope, [inner.call], *words)
    return Drawn(call, inner.target, intended="yes" if holds else "no")


def _qualified_literal(
    sampler: Sampler, pattern: Pattern, scope: Scope, want: Want, qualifier: str | Variable
) -> tuple[Drawn, str, Value]:
    """The only input, drawn for a literal fact; and one of the fact's qualifiers."""
    given = scope.given(qualifier)
    asked = Want(want.target, want.form, (given, "any"), want.budget, want.path)
    fact = sampler.literal(scope.given(pattern.arguments[0]), want.form, asked)
    key, value = sampler.qualifier(("literal", fact), given, "any")
    target = int(sampler.kb.literals.subject[fact])
    inner = sampler.draw(pattern.inputs[0], scope, want.at(target))
    return Drawn(inner.call, target, ("literal", fact)), key, value


def _ends(
    sampler: Sampler, pattern: Pattern, scope: Scope, want: Want, fact: int
) -> tuple[Call, Call, int]:
    """The two inputs, drawn for the head and the tail of a relational fact; and the head."""
    head, tail = (
        int(c[fact]) for c in (sampler.kb.relational.subject, sampler.kb.relational.object)
    )
    if head == tail:
        raise NoDraw
    calls = []
    for part, end, other in zip(pattern.inputs, (head, tail), (tail, head), strict=True):
        below = Want(end, "any", None, want.budget, (*want.path, other))
        calls.append(sampler.draw(part, scope, below).call)
    return calls[0], calls[1], head


def _choice(sampler: Sampler, pattern: Pattern, scope: Scope, inputs: list[Call], key: str) -> Call:
    """The choice by a word for which one is ahead; raises NoDraw where there is a draw."""
    kind = pattern.function.arguments[1][1]
    word = scope.given(pattern.arguments[1])
    for one in (word,) if word else sampler.random.sample(kind.choices, len(kind.choices)):
        if sampler.size(Call(pattern.function, tuple(inputs), (key, one))) == 1:
            words = KeyWords(key), ComparisonWords(one, key)
            return sampler.call(pattern, scope, inputs, *words)
    raise NoDraw
