"""How the functions that locate things are drawn: names, kinds, relations, conditions, And, Or."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from generation.claims import claimed_concept, claimed_end, claimed_instance, unrelated_concept
from generation.grammar import Part, Pattern, Symbol
from generation.lexicon import (
    POINT_IN_TIME,
    ConceptWords,
    Direction,
    KeyWords,
    NameWords,
    QualifierWords,
    Words,
)
from generation.lexicon.phrases import PREPOSITIONS
from generation.pools import NoDraw, draw_from
from generation.scope import DrawnPart, Goal, Scope, Source
from generation.ways import FORMS, Ways, is_everything, is_name
from kopl import functions as f
from kopl.denotation import Located
from kopl.program import Call

# Facts that are looked at to find one that tells its node from others.
LOOKED_AT = 4
# Second conditions that are drawn to find one which tells a node from all others.
TRIED = 3

WAYS = Ways()


@WAYS.draw(f.FIND_ALL)
def _find_all(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    return DrawnPart(Call(pattern.function), source.entity(goal))


@WAYS.draw(f.FIND)
def _find(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    target = source.entity(goal)
    name = source.kb.name_of(target)
    others = len(source.kb.named(name)) - 1
    if not name or (others > 0) != goal.namesakes or (others and not source.tells_apart()):
        raise NoDraw
    return DrawnPart(scope.call(pattern, [], NameWords(name)), target)


@WAYS.draw(f.FILTER_CONCEPT)
def _filter_concept(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    (inside,), (argument,) = pattern.inputs, pattern.arguments
    if is_name(inside):
        return _namesake(source, pattern, scope, goal)
    given, everything = scope.given(argument), is_everything(inside)
    if goal.target is None and given and not goal.claim and not source.nothing:
        goal = goal.at(draw_from(source.random, source.kb.instances_of(given).tolist()))
    if goal.claim and given and isinstance(inside, Symbol):
        target = claimed_instance(source, given)
        inner = source.draw(inside, scope, goal.at(target))
        return DrawnPart(scope.call(pattern, [inner.call], ConceptWords(given)), target)
    inner = source.draw(inside, scope, goal)
    if not source.kb.is_entity(inner.target):
        raise NoDraw
    if goal.claim and not everything and not given:
        concept = claimed_concept(source, inner.target)
        return DrawnPart(scope.call(pattern, [inner.call], ConceptWords(concept)), inner.target)
    if not everything and source.nothing:
        source.nothing = False
        unrelated = ConceptWords(unrelated_concept(source, inner))
        return DrawnPart(scope.call(pattern, [inner.call], unrelated), inner.target, inner.fact)
    call = _called(source, pattern, inner, given, goal.single)
    # With the noun too, each condition has to leave less than there is without it.
    narrowed, parts = inner.call.function, inner.call.inputs
    if any(part.function is f.FIND for part in parts):
        # A name, which the noun alone might tell from its namesakes.
        parts = tuple(part for part in parts if part.function is f.FIND)
    elif narrowed is not f.AND and not narrowed.name.startswith("QFilter"):
        parts = ()
    for left in parts if narrowed is not f.RELATE else ():
        if source.size(Call(pattern.function, (left,), call.arguments)) == source.size(call):
            raise NoDraw
    scope.bind(argument, ConceptWords(source.closed(call, goal).arguments[0]))
    return source.as_asked(DrawnPart(call, inner.target, inner.fact), goal)


def _called(
    source: Source, pattern: Pattern, inner: DrawnPart, given: str | None, single: bool
) -> Call:
    """A part with the noun that its target is called by, or with the concept that is given.

    The plainest noun may stand where it changes nothing: "the country that has Oslo as its
    capital". Any other one has to tell something: "the monarchy that ..."; where a ``single`` thing
    is meant, the plainest that tells it from all others.
    """
    names, _ = source.taste.heads(inner.target)
    if given is not None:
        names = [given] if given in source.pools.concepts_of(inner.target) else []
    name = draw_from(source.random, names[:1])
    if single and source.size(inner.call) > 1 and given is None:
        for other in names:
            call = Call(pattern.function, (inner.call,), (other,))
            if source.size(call) == 1:
                return call
    if given is None and (other := source.taste.head_of(source.random, inner.target)) != name:
        call = Call(pattern.function, (inner.call,), (other,))
        if source.size(call) < source.size(inner.call):
            return call
    return Call(pattern.function, (inner.call,), (name,))


def _namesake(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    """A name that several nodes have, with a concept that tells the target apart."""
    kb, target = source.kb, source.entity(goal)
    name = kb.name_of(target)
    others = [node for node in kb.named(name).tolist() if node != target]
    if not name or not others or not kb.is_entity(target) or not source.tells_apart():
        raise NoDraw
    taken: set[str] = set()
    for other in others:
        if kb.is_entity(other):
            taken.update(source.pools.concepts_of(other))
    names, _ = source.taste.heads(target)
    concept = draw_from(source.random, [name for name in names if name not in taken][:1])
    (inside,) = pattern.inputs
    assert isinstance(inside, Pattern)
    find = scope.call(inside, [], NameWords(name))
    return DrawnPart(scope.call(pattern, [find], ConceptWords(concept)), target)


@WAYS.draw(f.RELATE)
def _relate(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    relation, toward = (scope.given(argument) for argument in pattern.arguments)
    table = source.kb.relational
    direction: Direction
    if goal.target is None:
        number = source.relation(relation, goal.qualified)
        facts = source.pools.relation_facts(number, goal.qualified) if number >= 0 else []
        direction = _direction(toward or draw_from(source.random, ("forward", "backward")))
    elif twice := _said_name(pattern.inputs[0], scope):
        direction = _direction(toward or "forward")
        number = source.relation(relation)
        facts = [
            fact
            for fact in source.pools.links(goal.target).get((number, direction), ())
            if source.kb.name_of(_near(source, fact, direction)) == twice
        ]
    else:
        known = None if relation is None else source.kb.relation_number(relation)
        found = source.describing(goal.target, goal.qualified, is_given=known is not None)
        ways = [(r, d) for r, d in found if toward in (None, d) and known in (None, r)]
        number, direction, facts = _distinguishing_fact(source, goal, ways)
    fact = source.fact_of(table, facts, goal.qualified)
    if goal.target is None and goal.several:
        for _ in range(LOOKED_AT):
            if source.pools.reached[direction][fact] > 1:
                break
            fact = source.fact_of(table, facts, goal.qualified)
        else:
            raise NoDraw
    ends = int(table.subject[fact]), int(table.object[fact])
    near, far = ends if direction == "forward" else ends[::-1]
    is_met = near in goal.path and not _said_name(pattern.inputs[0], scope)
    if near == far or is_met or source.taste.over[direction][fact]:
        raise NoDraw
    describes = goal.target is not None or goal.several
    if describes and source.taste.is_code(source.kb.name_of(near)):
        raise NoDraw
    words = source.lexicon.relation(source.kb.relations[number], direction)
    scope.bind(pattern.arguments[0], words)
    scope.bind(pattern.arguments[1], Words(direction))
    below = Goal(near, "any", None, (*goal.path, far))
    inner = source.draw(pattern.inputs[0], scope, below)
    call = Call(pattern.function, (inner.call,), (words.text, direction))
    return DrawnPart(call, far, ("relational", fact))


def _said_name(part: Part, scope: Scope) -> str | None:
    """The name that a part finds where the rule has said it before: it stands there twice."""
    if not isinstance(part, Pattern) or part.function is not f.FIND:
        return None
    return scope.given(part.arguments[0])


def _near(source: Source, fact: int, direction: Direction) -> int:
    """The end of a relational fact from which a direction leads."""
    table = source.kb.relational
    return int((table.subject if direction == "forward" else table.object)[fact])


def _direction(text: str) -> Direction:
    return "forward" if text == "forward" else "backward"


def _distinguishing_fact(
    source: Source, goal: Goal, ways: list[tuple[int, Direction]]
) -> tuple[int, Direction, list[int]]:
    """A relation, a direction, and facts that lead to the target by them.

    Half of the time it is a fact whose other end leads to few nodes but the target: what is
    related to a small town tells it from others, what is related to a continent does not. Where
    several are wanted, it leads to more than the target, but to few of those that a condition
    beside it leaves.
    """
    table, links = source.kb.relational, source.pools.links
    assert goal.target is not None
    found: list[tuple[int, tuple[int, Direction, list[int]]]] = []
    if goal.several:
        shared = source.pools.shared(goal.target)
        ways = [way for way in ways if way in shared]
    several = goal.several or goal.single or source.random.random() < 0.5
    for _ in range(LOOKED_AT if several else 1):
        number, direction = draw_from(source.random, ways)
        facts = links(goal.target)[number, direction]
        if goal.qualified is not None:
            sets = source.pools.sets_with(goal.qualified)
            facts = [fact for fact in facts if sets[table.qualifiers[fact]]]
        reached = source.pools.reached[direction]
        if goal.several:
            facts = [fact for fact in facts if reached[fact] > 1]
        if not facts:
            continue
        if not several:
            return number, direction, facts
        fact = draw_from(source.random, facts)
        count = int(reached[fact])
        if goal.beside is not None:
            end = int((table.subject if direction == "forward" else table.object)[fact])
            back: Direction = "backward" if direction == "forward" else "forward"
            others = links(end)[number, back]
            known = source.outcome(goal.beside)
            assert isinstance(known, Located)
            ends = (table.object if direction == "forward" else table.subject)[others]
            count = len(np.intersect1d(ends, known.ids))
            if count in (len(known), len(others)):
                continue  # one of the two conditions would say it all
        found.append((count, (number, direction, [fact])))
    if not found:
        raise NoDraw
    return min(found, key=lambda one: one[0])[1]


@WAYS.draw(f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR, f.FILTER_DATE)
def _filter(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    (inside,) = pattern.inputs
    form = FORMS[pattern.function.name]
    fact = source.literal(scope.given(pattern.arguments[0]), form, goal, telling=True)
    # A figure of one point in time tells nothing without it.
    if not (goal.qualified and goal.qualified[0] == POINT_IN_TIME) and source.is_dated(fact):
        raise NoDraw
    target, key = int(source.kb.literals.subject[fact]), source.pools.key(fact)
    if is_everything(inside) and source.is_reluctant(target):
        raise NoDraw
    if source.taste.has_none(key, source.pools.value(fact)):
        raise NoDraw
    inner = source.draw(inside, scope, goal.at(target, namesakes=is_name(inside)))
    words, _ = source.comparison(pattern, key, source.pools.value(fact), scope)
    call = scope.call(pattern, [inner.call], KeyWords(key), *words)
    if not is_everything(inside):
        source.narrowing(call)
    elif pattern.function is not f.FILTER_STR:
        source.telling(call)
    return DrawnPart(call, target, ("literal", fact))


@WAYS.draw(f.QFILTER_STR, f.QFILTER_NUM, f.QFILTER_YEAR, f.QFILTER_DATE)
def _qfilter(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    form = FORMS[pattern.function.name.removeprefix("Q")]
    given = scope.given(pattern.arguments[0])
    if goal.target is not None and not source.pools.has_qualified(goal.target, (given, form)):
        raise NoDraw
    asked = Goal(goal.target, goal.form, (given, form), goal.path, several=not goal.claim)
    if goal.claim:
        asked = replace(asked, claim=True)
    inner = source.draw(pattern.inputs[0], scope, asked)
    if not goal.claim:
        source.several(inner)
    key, value = source.qualifier(inner.fact, given, form)
    if str(value).partition(" ")[0] in PREPOSITIONS:
        raise NoDraw  # "with the role through committees"
    words, _ = source.comparison(pattern, key, value, scope, fact=inner.fact)
    call = scope.call(pattern, [inner.call], QualifierWords(key), *words)
    if not goal.claim:
        source.narrowing(call)
    return source.as_asked(DrawnPart(call, inner.target, inner.fact), goal)


@WAYS.draw(f.AND)
def _and(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    first, second = pattern.inputs
    if goal.claim:
        left = source.draw(first, scope, goal)
        end = claimed_end(source, left)
        right = source.draw(second, scope, goal.at(end))
        if right.call == left.call:
            raise NoDraw
        return DrawnPart(Call(pattern.function, (left.call, right.call)), end)
    if is_name(second):
        left = source.draw(first, scope, goal)
        right = source.draw(second, scope, goal.at(left.target, namesakes=True))
        call = Call(pattern.function, (left.call, right.call))
        if source.size(call) == source.size(right.call):
            raise NoDraw
        return DrawnPart(call, left.target)
    left = source.several(source.draw(first, scope, replace(goal, several=True, single=False)))
    beside = replace(goal.at(left.target, several=True), beside=left.call)
    owed = scope.least, scope.open
    for last in (False,) * (TRIED - 1) + (True,) if goal.single else (True,):
        scope.least, scope.open = owed
        try:
            right = source.draw(second, scope, beside)
            # A rule that says the relation twice knows that there may be two.
            is_said = isinstance(second, Pattern) and second.function is f.RELATE
            if not is_said and source.taste.only_one(left.call, right.call):
                raise NoDraw
            call = source.narrowing(Call(pattern.function, (left.call, right.call)))
        except NoDraw:
            if last:
                raise
            continue
        if last or source.size(call) == 1:
            break
    return source.as_asked(DrawnPart(call, left.target), goal)


@WAYS.draw(f.OR)
def _or(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    first, second = pattern.inputs
    left = source.draw(first, scope, goal)
    right = source.draw(second, scope, goal.at(_bound_node(source, second, scope)))
    call = Call(pattern.function, (left.call, right.call))
    if source.size(call) in (source.size(left.call), source.size(right.call)):
        raise NoDraw
    if any(source.taste.is_its_own(given) for given in call.inputs):
        raise NoDraw
    return DrawnPart(call, left.target)


def _bound_node(source: Source, part: Part, scope: Scope) -> int | None:
    """A node that a part may hold whose relation or concept was drawn before, or None."""
    if isinstance(part, Symbol):
        return None
    if part.function is f.RELATE and (relation := scope.given(part.arguments[0])):
        number = source.kb.relation_number(relation)
        fact = draw_from(source.random, source.pools.relation_facts(number, None))
        table, forward = source.kb.relational, scope.given(part.arguments[1]) == "forward"
        return int((table.object if forward else table.subject)[fact])
    if part.function is f.FILTER_CONCEPT and (concept := scope.given(part.arguments[0])):
        inner = _bound_node(source, part.inputs[0], scope)
        if inner is not None:
            return inner
        return int(draw_from(source.random, source.kb.instances_of(concept).tolist()))
    return None
