"""How the functions that locate entities are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generation.drawing import FORMS, Drawn, Scope, Want, direction_of, draws
from generation.grammar import Pattern
from generation.lexicon import (
    ConceptWords,
    Direction,
    KeyWords,
    NameWords,
    QualifierWords,
    Words,
)
from generation.pools import NoDraw, draw_from
from kopl import functions as f
from kopl.program import Call

if TYPE_CHECKING:
    from generation.sampler import Sampler


@draws(f.FIND_ALL)
def _find_all(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    return Drawn(Call(pattern.function), sampler.entity(want))


@draws(f.FIND)
def _find(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    target = sampler.entity(want)
    name = sampler.kb.name_of(target)
    others = len(sampler.kb.named(name)) - 1
    if not name or (others > 0) != want.namesakes:
        raise NoDraw
    return Drawn(sampler.call(pattern, scope, [], NameWords(name)), target)


@draws(f.FILTER_CONCEPT)
def _filter_concept(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    (inside,), (argument,) = pattern.inputs, pattern.arguments
    if isinstance(inside, Pattern) and inside.function is f.FIND:
        return sampler.namesake(pattern, inside, scope, want)
    given = scope.given(argument)
    if want.target is None and given and sampler.is_everything(inside):
        want = want.at(draw_from(sampler.random, sampler.kb.instances_of(given).tolist()))
    inner = sampler.draw(inside, scope, want)
    if not sampler.kb.is_entity(inner.target):
        raise NoDraw
    concepts = sampler.concepts(inner.target)
    if given is not None:
        concepts = [concept for concept in concepts if concept == given]
    everything = sampler.is_everything(inside)
    if not everything and sampler.nothing:
        sampler.nothing = False
        alien = ConceptWords(sampler.alien(inner))
        return Drawn(sampler.call(pattern, scope, [inner.call], alien), inner.target, inner.fact)
    if not everything:
        sampler.several(inner)
    for concept in sampler.random.sample(concepts, len(concepts)):
        call = Call(pattern.function, (inner.call,), (concept,))
        if everything or sampler.size(call) < sampler.size(inner.call):
            scope.bind(argument, ConceptWords(concept))
            return Drawn(call, inner.target, inner.fact)
    raise NoDraw


@draws(f.RELATE)
def _relate(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    relation, way = (scope.given(a) for a in pattern.arguments)
    table = sampler.kb.relational
    direction: Direction
    if want.target is None:
        number = sampler.relation(relation, want.qualified)
        facts = sampler.pools.relation_facts(number, want.qualified) if number >= 0 else []
        direction = direction_of(way or draw_from(sampler.random, ("forward", "backward")))
    else:
        known = None if relation is None else sampler.kb.relation_number(relation)
        ways = [
            (r, d)
            for r, d in sampler.pools.links(want.target)
            if way in (None, d) and known in (None, r)
        ]
        number, direction, facts = sampler.telling(want, ways)
    fact = draw_from(sampler.random, facts)
    ends = int(table.subject[fact]), int(table.object[fact])
    near, far = ends if direction == "forward" else ends[::-1]
    if near == far or near in want.path:
        raise NoDraw
    words = sampler.lexicon.relation(sampler.kb.relations[number], direction)
    texts = [
        scope.bind(pattern.arguments[0], words),
        scope.bind(pattern.arguments[1], Words(direction)),
    ]
    below = Want(near, "any", None, want.budget, (*want.path, far))
    inner = sampler.draw(pattern.inputs[0], scope, below)
    call = Call(pattern.function, (inner.call,), tuple(texts))
    return Drawn(call, far, ("relational", fact))


@draws(f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR, f.FILTER_DATE)
def _filter(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    form = FORMS[pattern.function.name]
    fact = sampler.literal(scope.given(pattern.arguments[0]), form, want)
    target = int(sampler.kb.literals.subject[fact])
    inner = sampler.draw(
        pattern.inputs[0], scope, sampler.beside(want.at(target), pattern.inputs[0])
    )
    words = sampler.comparison(pattern, sampler.key(fact), sampler.pools.value(fact), True, scope)
    call = sampler.call(pattern, scope, [inner.call], KeyWords(sampler.key(fact)), *words)
    if not sampler.is_everything(pattern.inputs[0]):
        sampler.narrowing(call)
    return Drawn(call, target, ("literal", fact))


@draws(f.QFILTER_STR, f.QFILTER_NUM, f.QFILTER_YEAR, f.QFILTER_DATE)
def _qfilter(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    form = FORMS[pattern.function.name.removeprefix("Q")]
    given = scope.given(pattern.arguments[0])
    if want.target is not None and not sampler.pools.has_qualified(want.target, (given, form)):
        raise NoDraw
    asked = Want(want.target, want.form, (given, form), want.budget, want.path)
    inner = sampler.several(sampler.draw(pattern.inputs[0], scope, asked))
    key, value = sampler.qualifier(inner.fact, given, form)
    words = sampler.comparison(pattern, key, value, True, scope)
    call = sampler.call(pattern, scope, [inner.call], QualifierWords(key), *words)
    return Drawn(sampler.narrowing(call), inner.target, inner.fact)


@draws(f.AND)
def _and(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    left = sampler.several(sampler.draw(pattern.inputs[0], scope, want))
    below = sampler.beside(want.at(left.target), pattern.inputs[1])
    right = sampler.draw(pattern.inputs[1], scope, below)
    call = Call(pattern.function, (left.call, right.call))
    return Drawn(sampler.narrowing(call), left.target)


@draws(f.OR)
def _or(sampler: Sampler, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
    left = sampler.draw(pattern.inputs[0], scope, want)
    second = sampler.another(pattern.inputs[1], scope)
    right = sampler.draw(pattern.inputs[1], scope, want.at(second))
    call = Call(pattern.function, (left.call, right.call))
    size = sampler.size(call)
    if size in (sampler.size(left.call), sampler.size(right.call)):
        raise NoDraw
    return Drawn(call, left.target)
