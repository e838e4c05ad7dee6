"""How each function of the language is drawn, and what a node must have for that.

A way gets a call with gaps and the node that its result must hold, or none yet; it draws the
arguments from facts, and then the inputs by the recursion that its source was given. Relations and
keys are drawn before their facts, so that rare ones get their share.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from generation.claims import claimed_concept, claimed_end, claimed_instance, unrelated_concept
from generation.grammar import EXISTS, ONE, Part, Pattern, Rule, Symbol, Variable
from generation.lexicon import (
    END_TIME,
    POINT_IN_TIME,
    START_TIME,
    ComparisonWords,
    ConceptWords,
    Direction,
    KeyWords,
    NameWords,
    QualifierWords,
    ValueWords,
    Words,
)
from generation.lexicon.phrases import PREPOSITIONS
from generation.pools import (
    OF_QUALIFIERS,
    OF_VALUES,
    Capability,
    Form,
    NoDraw,
    Qualified,
    draw_from,
)
from generation.scope import DrawnPart, Goal, Scope, Source
from generation.taste import COVERED
from kb import Value
from kopl import functions as f
from kopl.denotation import Located
from kopl.functions import Function
from kopl.program import Call, post_order

# How often a set to be counted may have one element: people count where there are several.
ONE_OF = 0.15
# What is over has such a qualifier.
OVER: Qualified = (END_TIME, "any")
# Facts that are looked at to find one that tells its node from others.
LOOKED_AT = 4
# Second conditions that are drawn to find one which tells a node from all others.
TRIED = 3

_VAGUE = re.compile(r"\bthe one\b")

Way: TypeAlias = Callable[[Source, Pattern, Scope, Goal], DrawnPart]
WAYS: dict[str, Way] = {}
FORMS: dict[str, Form] = {
    "FilterStr": "string",
    "FilterNum": "quantity",
    "FilterYear": "time",
    "FilterDate": "date",
}


def draws(*functions: Function) -> Callable[[Way], Way]:
    """Register how functions are drawn."""

    def register(way: Way) -> Way:
        if list(inspect.signature(way).parameters) != ["source", "pattern", "scope", "goal"]:
            raise TypeError(f"{way.__name__} is no way to draw")
        WAYS.update({function.name: way for function in functions})
        return way

    return register


def is_everything(part: Part) -> bool:
    """Whether a part is FindAll."""
    return isinstance(part, Pattern) and part.function is f.FIND_ALL


def is_name(part: Part) -> bool:
    """Whether a part is Find; beside a condition it is a name that needs the condition."""
    return isinstance(part, Pattern) and part.function is f.FIND


# --- what a node must have -------------------------------------------------------------------


def requirements(part: Part) -> Capability:
    """What a node must have so that a part of a program can be drawn to hold it.

    Most rules that fail for a node fail for something that can be known beforehand: it has no
    number to compare, its name is that of no other.
    """
    if isinstance(part, Symbol):
        return Capability(0)
    name, function = part.function.name, part.function
    if function is f.FIND:
        return Capability.UNIQUE
    if name in FORMS:
        return OF_VALUES[FORMS[name]] | _beside(part.inputs[0])
    if function is f.FILTER_CONCEPT:
        return Capability.NOUN | _beside(part.inputs[0])
    if name.removeprefix("Q") in FORMS:
        return OF_QUALIFIERS[FORMS[name.removeprefix("Q")]] | requirements(part.inputs[0])
    if function is f.AND:
        return requirements(part.inputs[0]) | _beside(part.inputs[1])
    if function is f.OR:
        return requirements(part.inputs[0])
    if function is f.RELATE:
        ends = {"forward": Capability.TAIL, "backward": Capability.HEAD}
        direction = part.arguments[1]
        return ends[direction] if isinstance(direction, str) else Capability(0)
    return Capability(0)


def required_for(rule: Rule) -> Capability:
    """What a node must have for a rule.

    A rule that can only say "the one ..." is for what has no noun.
    """
    texts = rule.texts.get(ONE, ())
    pieces = ([piece for piece in text if isinstance(piece, str)] for text in texts)
    if texts and all(any(_VAGUE.search(piece) for piece in found) for found in pieces):
        return requirements(rule.program) | Capability.NO_NOUN
    return requirements(rule.program)


def _beside(part: Part) -> Capability:
    """The requirements of what stands beside a condition."""
    return Capability.NAMESAKES if is_name(part) else requirements(part)


# --- functions that locate entities ----------------------------------------------------------


@draws(f.FIND_ALL)
def _find_all(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    return DrawnPart(Call(pattern.function), source.entity(goal))


@draws(f.FIND)
def _find(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    target = source.entity(goal)
    name = source.kb.name_of(target)
    others = len(source.kb.named(name)) - 1
    if not name or (others > 0) != goal.namesakes or (others and not source.tells_apart()):
        raise NoDraw
    return DrawnPart(scope.call(pattern, [], NameWords(name)), target)


@draws(f.FILTER_CONCEPT)
def _filter_concept(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    (inside,), (argument,) = pattern.inputs, pattern.arguments
    if is_name(inside):
        return _namesake(source, pattern, scope, goal)
    given, everything = scope.given(argument), is_everything(inside)
    if goal.target is None and given and everything:
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


@draws(f.RELATE)
def _relate(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    relation, toward = (scope.given(argument) for argument in pattern.arguments)
    table = source.kb.relational
    direction: Direction
    if goal.target is None:
        number = source.relation(relation, goal.qualified)
        facts = source.pools.relation_facts(number, goal.qualified) if number >= 0 else []
        direction = _direction(toward or draw_from(source.random, ("forward", "backward")))
    else:
        known = None if relation is None else source.kb.relation_number(relation)
        ways = [
            (r, d)
            for r, d in source.describing(goal.target, goal.qualified)
            if toward in (None, d) and known in (None, r)
        ]
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
    if near == far or near in goal.path or source.taste.over[direction][fact]:
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


@draws(f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR, f.FILTER_DATE)
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


@draws(f.QFILTER_STR, f.QFILTER_NUM, f.QFILTER_YEAR, f.QFILTER_DATE)
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


@draws(f.AND)
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
            if source.taste.only_one(left.call, right.call):
                raise NoDraw
            call = source.narrowing(Call(pattern.function, (left.call, right.call)))
        except NoDraw:
            if last:
                raise
            continue
        if last or source.size(call) == 1:
            break
    return source.as_asked(DrawnPart(call, left.target), goal)


@draws(f.OR)
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


# --- functions that ask ----------------------------------------------------------------------


@draws(f.QUERY_NAME)
def _query_name(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    inner = source.draw(pattern.inputs[0], scope, goal)
    source.listing(inner.call)
    call = Call(pattern.function, (inner.call,))
    return DrawnPart(call, inner.target, intended=source.asked(source.kb.name_of(inner.target)))


@draws(f.COUNT)
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


@draws(f.QUERY_ATTR)
def _query_attr(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    fact = source.literal(scope.given(pattern.arguments[0]), goal.form, goal)
    target, answer = int(source.kb.literals.subject[fact]), str(source.pools.value(fact))
    source.asked(answer)
    inner = source.draw(pattern.inputs[0], scope, goal.at(target))
    call = scope.call(pattern, [inner.call], KeyWords(source.pools.key(fact)))
    return DrawnPart(call, target, ("literal", fact), answer)


@draws(f.QUERY_ATTR_UNDER_CONDITION)
def _query_attr_under_condition(
    source: Source, pattern: Pattern, scope: Scope, goal: Goal
) -> DrawnPart:
    drawn, fact, key, value = _qualified_literal(source, pattern, scope, goal, pattern.arguments[1])
    words = KeyWords(source.pools.key(fact)), QualifierWords(key), ValueWords(str(value), value)
    call = scope.call(pattern, [drawn.call], *words)
    return DrawnPart(call, drawn.target, drawn.fact, str(source.pools.value(fact)))


@draws(f.QUERY_ATTR_QUALIFIER)
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


@draws(f.QUERY_RELATION)
def _query_relation(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    fact = draw_from(source.random, source.pools.relation_facts(source.relation(), None))
    relation = source.asked(source.kb.relations[int(source.kb.relational.predicate[fact])])
    calls, head = _ends(source, pattern, scope, goal, fact)
    return DrawnPart(Call(pattern.function, tuple(calls)), head, intended=relation)


@draws(f.QUERY_RELATION_QUALIFIER)
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
    calls = []
    for part, end, other in zip(pattern.inputs, (head, tail), (tail, head), strict=True):
        below = Goal(end, "any", None, (*goal.path, other))
        calls.append(source.draw(part, scope, below).call)
    return calls, head


@draws(f.SELECT_AMONG)
def _select_among(source: Source, pattern: Pattern, scope: Scope, goal: Goal) -> DrawnPart:
    fact = source.literal(scope.given(pattern.arguments[0]), "quantity", goal)
    target, key = int(source.kb.literals.subject[fact]), source.pools.key(fact)
    inner = source.draw(pattern.inputs[0], scope, goal.at(target, several=True))
    source.whole(inner.call)
    said = {call.arguments[0] for call in post_order(inner.call) if call.function.name in FORMS}
    keys = [key for key in _comparable(source, inner.call) if key not in said]
    if key not in keys:
        key = draw_from(source.random, keys)
    return DrawnPart(_choice(source, pattern, scope, [inner.call], key), target)


def _comparable(source: Source, call: Call) -> list[str]:
    """The keys by which two or more elements have a quantity each, and none has several."""
    found, kb = source.outcome(call), source.kb
    assert isinstance(found, Located)
    table = kb.literals
    facts = table.of_subjects(found.ids)
    facts = facts[source.pools.of_form["quantity"][table.object[facts]]]
    owners = np.stack((table.predicate[facts], table.subject[facts]))
    (keys, _), counts = np.unique(owners, axis=1, return_counts=True)
    having = np.bincount(keys, minlength=len(kb.keys))
    # A superlative is that of all: not of those few whose figure is known. Where nobody has told
    # what is complete, there would be hardly any.
    several = (having > 1) & (having >= COVERED * len(found) * source.taste.annotated)
    several[keys[counts > 1]] = False
    return [
        kb.keys[key] for key in np.flatnonzero(several).tolist() if source.taste.may_compare(key)
    ]


@draws(f.SELECT_BETWEEN)
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
    """The choice by a word for which one is ahead; raises NoDraw where there is a draw."""
    kind = pattern.function.arguments[1][1]
    word = scope.given(pattern.arguments[1])
    for one in (word,) if word else source.random.sample(kind.choices, len(kind.choices)):
        if source.size(Call(pattern.function, tuple(inputs), (key, one))) == 1:
            return scope.call(pattern, inputs, KeyWords(key), ComparisonWords(one, key))
    raise NoDraw


@draws(f.VERIFY_STR, f.VERIFY_NUM, f.VERIFY_YEAR, f.VERIFY_DATE)
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


if missing := [name for name in f.FUNCTIONS if name not in WAYS]:
    raise TypeError(f"functions that cannot be drawn: {', '.join(missing)}")
