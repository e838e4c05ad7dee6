"""Backward sampling: derivations drawn from facts, so that the intended answer exists.

Each function of the language has one way to be drawn here: given the node that its result must
hold, or none yet, it draws its arguments from facts and then its inputs. Relations and keys are
drawn before their facts, so that rare ones get their share.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Literal, TypeAlias

from generation.constants import constant_for, draw_operator
from generation.derivation import Derivation
from generation.grammar import Grammar, Part, Pattern, Rule, Symbol, Variable, functions
from generation.lexicon import (
    ComparisonWords,
    ConceptWords,
    Direction,
    KeyWords,
    Lexicon,
    NameWords,
    OperatorWords,
    ValueWords,
    Words,
)
from generation.pools import Form, NoDraw, Pools, Qualified, draw_from, has_form
from kb import KnowledgeBase, Value
from kb.facts import FactTable
from kb.values import Operator
from kopl import functions as f
from kopl.denotation import Outcome
from kopl.executor import Executor
from kopl.functions import Function
from kopl.program import Call

Fact: TypeAlias = tuple[Literal["literal", "relational"], int]


@dataclass(frozen=True, slots=True)
class Want:
    """What a part of a program is drawn for.

    ``target``: a node that its result must hold (None: any). ``form``: the type of value it must
    have. ``qualified``: its fact must have such a qualifier. ``budget``: how many rules may follow
    one another. ``path``: the nodes on the way here, which a description must not come back to.
    ``namesakes``: a name is that of several nodes, as something else tells them apart.
    """

    target: int | None = None
    form: Form = "any"
    qualified: Qualified | None = None
    budget: int = 0
    path: tuple[int, ...] = ()
    namesakes: bool = False

    def at(self, target: int | None) -> Want:
        """The same for another target and without asking for a type or qualifiers."""
        return Want(target, "any", None, self.budget, self.path)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn part: its call, a node that its result holds, the fact that puts it there."""

    call: Call
    target: int
    fact: Fact | None = None
    intended: str | None = None


@dataclass(slots=True)
class Scope:
    """What the variables and non-terminals of one rule became so far.

    ``single`` are the non-terminals that must give one entity.
    """

    words: dict[str, Words] = field(default_factory=dict)
    parts: dict[str, Derivation] = field(default_factory=dict)
    single: frozenset[str] = frozenset()

    def given(self, argument: str | Variable) -> str | None:
        """The text of an argument that is fixed or was drawn before."""
        if isinstance(argument, str):
            return argument
        words = self.words.get(argument.name)
        return words.text if words else None

    def bind(self, argument: str | Variable, words: Words) -> str:
        """The text for an argument; raises NoDraw when it has another one already."""
        given = self.given(argument)
        if given is not None and given != words.text:
            raise NoDraw
        if isinstance(argument, Variable):
            self.words[argument.name] = words
        return words.text


# Rules tried for one attempt; beginning anew is better than trying every way to end a bad one.
MOST_STEPS = 60
# Facts that are looked at to find one that tells its node from others.
TELLING = 4

Way: TypeAlias = "Callable[[Sampler, Pattern, Scope, Want], Drawn]"
WAYS: dict[str, Way] = {}


def draws(*functions: Function) -> Callable[[Way], Way]:
    """Register how functions are drawn."""

    def register(way: Way) -> Way:
        if list(inspect.signature(way).parameters) != ["self", "pattern", "scope", "want"]:
            raise TypeError(f"{way.__name__} is no way to draw")
        WAYS.update({function.name: way for function in functions})
        return way

    return register


class _GiveUp(Exception):
    """An attempt took too many rules."""


class Sampler:
    """Draws derivations from the facts of a knowledge base.

    ``levels`` bounds how many rules may follow one another in a derivation; 9 allows descriptions
    of two hops.
    """

    def __init__(
        self, kb: KnowledgeBase, grammar: Grammar, random: Random, *, levels: int = 9
    ) -> None:
        self.kb, self.grammar, self.random, self.levels = kb, grammar, random, levels
        self.pools = Pools(kb)
        self.lexicon = Lexicon(kb)
        self._rules = lru_cache(maxsize=None)(self._rules_of)
        self._executor = Executor(kb)
        self._outcomes: dict[Call, Outcome] = {}
        self._wanted: Function | None = None
        self._steps = 0

    def sample(self, rule: Rule, wanted: Function | None = None) -> Derivation:
        """A derivation that begins with the rule; raises NoDraw when this attempt finds none.

        ``wanted`` is a function that is to stand in the program.
        """
        self._outcomes.clear()
        self._wanted, self._steps = wanted, 0
        try:
            found, _ = self._derive(rule, Want(budget=self.levels))
        except _GiveUp:
            raise NoDraw from None
        if self._wanted is not None:
            raise NoDraw
        return found

    def size(self, call: Call) -> int:
        """How many elements a call gives; remembered within one attempt."""
        return len(self._executor.outcome(call, self._outcomes))

    def _narrowing(self, call: Call) -> Call:
        """A call that gives fewer elements than each of its inputs; else raises NoDraw.

        What changes nothing would be a clause too many.
        """
        size = self.size(call)
        if any(self.size(given) == size for given in call.inputs):
            raise NoDraw
        return call

    def _expand(self, symbol: Symbol, scope: Scope, want: Want) -> Drawn:
        single = symbol.name in scope.single
        wanted = self._wanted
        rules, weights = self._rules(symbol.left, want.budget, wanted)
        while rules:
            (rule,) = self.random.choices(rules, weights)
            try:
                derivation, drawn = self._derive(rule, want)
                if single and drawn.call.function in LOCATING and self.size(drawn.call) != 1:
                    raise NoDraw
            except NoDraw:
                self._wanted = wanted
                rules = [other for other in rules if other is not rule]
                weights = [other.weight for other in rules]
                continue
            scope.parts[symbol.name] = derivation
            return drawn
        raise NoDraw

    def _rules_of(
        self, left: str, budget: int, wanted: Function | None
    ) -> tuple[list[Rule], list[int]]:
        """The rules that fit a budget and lead to a wanted function, if any does; their weights."""
        rules = [rule for rule in self.grammar.rules[left] if rule.height <= budget]
        leading = [rule for rule in rules if wanted in rule.reach]
        rules = leading or rules
        return rules, [rule.weight for rule in rules]

    def _derive(self, rule: Rule, want: Want) -> tuple[Derivation, Drawn]:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _GiveUp
        if any(function is self._wanted for function in functions(rule.program)):
            self._wanted = None
        scope = Scope(single=rule.single)
        below = Want(want.target, want.form, want.qualified, want.budget - 1, want.path)
        drawn = self.draw(rule.program, scope, below)
        person = drawn.target in self.pools.person
        derivation = Derivation(
            rule, drawn.call, scope.words, scope.parts, drawn.target, person, drawn.intended
        )
        return derivation, drawn

    def draw(self, part: Part, scope: Scope, want: Want) -> Drawn:
        """A part of a program."""
        if isinstance(part, Symbol):
            return self._expand(part, scope, want)
        return WAYS[part.function.name](self, part, scope, want)

    # --- locating ----------------------------------------------------------------------------

    @draws(f.FIND_ALL)
    def _find_all(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        return Drawn(Call(pattern.function), self._entity(want))

    def _entity(self, want: Want) -> int:
        """The target, or an entity of a drawn concept."""
        if want.target is not None:
            return want.target
        if not self.pools.concepts:
            return draw_from(self.random, range(self.kb.entity_count))
        return self._instance(draw_from(self.random, self.pools.concepts))

    def _instance(self, concept: int) -> int:
        found = self.kb.instances_of(self.kb.name_of(concept))
        return int(draw_from(self.random, found.tolist()))

    @draws(f.FIND)
    def _find(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        target = self._entity(want)
        name = self.kb.name_of(target)
        others = len(self.kb.named(name)) - 1
        if not name or (others > 0) != want.namesakes:
            raise NoDraw
        return Drawn(self._call(pattern, scope, [], NameWords(name)), target)

    @draws(f.FILTER_CONCEPT)
    def _filter_concept(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        (inside,), (argument,) = pattern.inputs, pattern.arguments
        if isinstance(inside, Pattern) and inside.function is f.FIND:
            return self._namesake(pattern, inside, scope, want)
        given = scope.given(argument)
        if want.target is None and given and self._is_everything(inside):
            want = want.at(draw_from(self.random, self.kb.instances_of(given).tolist()))
        inner = self.draw(inside, scope, want)
        if not self.kb.is_entity(inner.target):
            raise NoDraw
        concepts = self._concepts(inner.target)
        if given is not None:
            concepts = [concept for concept in concepts if concept == given]
        everything = self._is_everything(inside)
        for concept in self.random.sample(concepts, len(concepts)):
            call = Call(pattern.function, (inner.call,), (concept,))
            if everything or self.size(call) < self.size(inner.call):
                scope.bind(argument, ConceptWords(concept))
                return Drawn(call, inner.target, inner.fact)
        raise NoDraw

    def _is_everything(self, part: Part) -> bool:
        return isinstance(part, Pattern) and part.function is f.FIND_ALL

    def _concepts(self, entity: int) -> list[str]:
        """The names of an entity's concepts; its own ones twice, so that they come more often."""
        own = self.kb.concepts_of(entity)
        return [self.kb.name_of(c) for c in (*own, *own, *self.kb.all_concepts_of(entity))]

    def _namesake(self, pattern: Pattern, inside: Pattern, scope: Scope, want: Want) -> Drawn:
        """A name that several nodes have, with a concept that tells the target apart."""
        target = self._entity(want)
        name = self.kb.name_of(target)
        others = [n for n in self.kb.named(name).tolist() if n != target]
        if not name or not others or not self.kb.is_entity(target):
            raise NoDraw
        taken: set[str] = set()
        for other in others:
            if self.kb.is_entity(other):
                taken.update(self._concepts(other))
        free = [concept for concept in self._concepts(target) if concept not in taken]
        concept = draw_from(self.random, free)
        find = self._call(inside, scope, [], NameWords(name))
        return Drawn(self._call(pattern, scope, [find], ConceptWords(concept)), target)

    @draws(f.RELATE)
    def _relate(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        relation, way = (scope.given(a) for a in pattern.arguments)
        table = self.kb.relational
        direction: Direction
        if want.target is None:
            number = (
                self.kb.relation_number(relation)
                if relation
                else self._relation(None, want.qualified)
            )
            facts = self.pools.relation_facts(number, want.qualified) if number >= 0 else []
            direction = _direction(way or draw_from(self.random, ("forward", "backward")))
        else:
            ways = [
                (r, d)
                for r, d in self.pools.links(want.target)
                if way in (None, d) and (relation is None or self.kb.relations[r] == relation)
            ]
            number, direction, facts = self._telling(want, ways)
        fact = draw_from(self.random, facts)
        ends = int(table.subject[fact]), int(table.object[fact])
        near, far = ends if direction == "forward" else ends[::-1]
        if near == far or near in want.path:
            raise NoDraw
        words = self.lexicon.relation(self.kb.relations[number], direction)
        texts = [
            scope.bind(pattern.arguments[0], words),
            scope.bind(pattern.arguments[1], Words(direction)),
        ]
        below = Want(near, "any", None, want.budget, (*want.path, far))
        inner = self.draw(pattern.inputs[0], scope, below)
        call = Call(pattern.function, (inner.call,), tuple(texts))
        return Drawn(call, far, ("relational", fact))

    def _telling(
        self, want: Want, ways: list[tuple[int, Direction]]
    ) -> tuple[int, Direction, list[int]]:
        """A relation, a direction, and facts that lead to the target by them.

        Half of the time it is a fact whose other end leads to few nodes but the target: what is
        related to a small town tells it from others, what is related to a continent does not.
        """
        table, links = self.kb.relational, self.pools.links
        assert want.target is not None
        found: list[tuple[int, tuple[int, Direction, list[int]]]] = []
        several = self.random.random() < 0.5
        for _ in range(TELLING if several else 1):
            number, direction = draw_from(self.random, ways)
            facts = self._qualified(table, links(want.target)[number, direction], want)
            if not facts:
                continue
            if not several:
                return number, direction, facts
            fact = draw_from(self.random, facts)
            end = int((table.subject if direction == "forward" else table.object)[fact])
            back: Direction = "backward" if direction == "forward" else "forward"
            found.append((len(links(end)[number, back]), (number, direction, [fact])))
        if not found:
            raise NoDraw
        return min(found, key=lambda one: one[0])[1]

    def _relation(self, given: str | None = None, qualified: Qualified | None = None) -> int:
        """The number of the relation that is given, or of one that is drawn; -1 for unknown."""
        if given is not None:
            return self.kb.relation_number(given)
        found = self.pools.relations_with(qualified) if qualified else self.pools.relations
        return draw_from(self.random, found)

    def _qualified(self, table: FactTable, facts: list[int], want: Want) -> list[int]:
        if want.qualified is None:
            return facts
        sets = self.pools.sets_with(want.qualified)
        return [number for number in facts if sets[table.qualifiers[number]]]

    @draws(f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR, f.FILTER_DATE)
    def _filter(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        form = FORMS[pattern.function.name]
        self._needs_namesakes(pattern.inputs[0], want)
        fact = self._literal(scope.given(pattern.arguments[0]), form, want)
        target = int(self.kb.literals.subject[fact])
        inner = self.draw(
            pattern.inputs[0], scope, self._beside(want.at(target), pattern.inputs[0])
        )
        words = self._comparison(pattern, self._key(fact), self.pools.value(fact), True, scope)
        call = self._call(pattern, scope, [inner.call], KeyWords(self._key(fact)), *words)
        if not self._is_everything(pattern.inputs[0]):
            self._narrowing(call)
        return Drawn(call, target, ("literal", fact))

    def _literal(self, key: str | None, form: Form, want: Want) -> int:
        """A literal fact of a type: of the target if there is one, of the key if it is given."""
        qualified = want.qualified
        if want.target is None:
            number = (
                self.kb.key_number(key)
                if key is not None
                else draw_from(self.random, self.pools.keys(form, qualified))
            )
            return draw_from(self.random, self.pools.key_facts(number, form, qualified))
        groups = [
            fitting
            for number, facts in self.pools.literals(want.target).items()
            if key is None or self.kb.keys[number] == key
            if (fitting := self._fitting(facts, form, want))
        ]
        return draw_from(self.random, draw_from(self.random, groups))

    def _fitting(self, facts: list[int], form: Form, want: Want) -> list[int]:
        facts = self._qualified(self.kb.literals, facts, want)
        return [fact for fact in facts if self.pools.fits(fact, form)]

    def _key(self, fact: int) -> str:
        return self.kb.keys[int(self.kb.literals.predicate[fact])]

    def _comparison(
        self, pattern: Pattern, key: str, value: Value, holds: bool, scope: Scope
    ) -> list[Words]:
        """The constant, and the operator if there is one, that hold of a value or do not."""
        name = pattern.function.name
        if name.endswith("Str"):
            if holds:
                return [ValueWords(str(value), value)]
            other = constant_for(
                self.random, value, "=", holds=False, others=self._values_of(key), day=False
            )
            return [ValueWords(str(other), other)]
        given = scope.given(pattern.arguments[-1])
        operator: Operator = given or draw_operator(self.random)  # type: ignore[assignment]
        others = [] if holds else self._values_of(key)
        constant = constant_for(
            self.random, value, operator, holds=holds, others=others, day=name.endswith("Date")
        )
        return [ValueWords(str(constant), constant), OperatorWords(operator, constant)]

    def _values_of(self, key: str) -> list[Value]:
        """A few values of a key."""
        facts = self.pools.key_facts(self.kb.key_number(key), "any", None)
        return [self.pools.value(draw_from(self.random, facts)) for _ in range(5)]

    @draws(f.QFILTER_STR, f.QFILTER_NUM, f.QFILTER_YEAR, f.QFILTER_DATE)
    def _qfilter(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        form = FORMS[pattern.function.name.removeprefix("Q")]
        given = scope.given(pattern.arguments[0])
        if want.target is not None and not self.pools.has_qualified(want.target, (given, form)):
            raise NoDraw
        asked = Want(want.target, want.form, (given, form), want.budget, want.path)
        inner = self.draw(pattern.inputs[0], scope, asked)
        key, value = self._qualifier(inner.fact, given, form)
        words = self._comparison(pattern, key, value, True, scope)
        call = self._call(pattern, scope, [inner.call], KeyWords(key), *words)
        return Drawn(call, inner.target, inner.fact)

    def _qualifier(self, fact: Fact | None, key: str | None, form: Form) -> tuple[str, Value]:
        """A qualifier of a fact: its key and value."""
        if fact is None:
            raise NoDraw
        kind, number = fact
        table: FactTable = self.kb.relational if kind == "relational" else self.kb.literals
        pairs = [
            (self.kb.keys[k], self.kb.values[v])
            for k, v in self.kb.qualifier_sets.pairs(int(table.qualifiers[number]))
        ]
        fitting = [(k, v) for k, v in pairs if key in (None, k) and has_form(v, form)]
        return draw_from(self.random, fitting)

    def _beside(self, want: Want, part: Part) -> Want:
        """What a part is drawn for that stands beside a condition: a name that needs it."""
        is_name = isinstance(part, Pattern) and part.function is f.FIND
        return replace(want, namesakes=True) if is_name else want

    def _needs_namesakes(self, part: Part, want: Want) -> None:
        """Raise NoDraw at once for a target whose name needs no condition beside it."""
        if isinstance(part, Symbol) or part.function is not f.FIND or want.target is None:
            return
        if len(self.kb.named(self.kb.name_of(want.target))) == 1:
            raise NoDraw

    @draws(f.AND)
    def _and(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        self._needs_namesakes(pattern.inputs[1], want)
        left = self.draw(pattern.inputs[0], scope, want)
        below = self._beside(want.at(left.target), pattern.inputs[1])
        right = self.draw(pattern.inputs[1], scope, below)
        call = Call(pattern.function, (left.call, right.call))
        return Drawn(self._narrowing(call), left.target)

    @draws(f.OR)
    def _or(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        left = self.draw(pattern.inputs[0], scope, want)
        second = self._another(pattern.inputs[1], scope)
        right = self.draw(pattern.inputs[1], scope, want.at(second))
        call = Call(pattern.function, (left.call, right.call))
        size = self.size(call)
        if size in (self.size(left.call), self.size(right.call)):
            raise NoDraw
        return Drawn(call, left.target)

    def _another(self, part: Part, scope: Scope) -> int | None:
        """A node that a part may hold whose relation or concept was drawn before, or None."""
        if isinstance(part, Symbol):
            return None
        if part.function is f.RELATE and (relation := scope.given(part.arguments[0])):
            fact = draw_from(
                self.random, self.pools.relation_facts(self.kb.relation_number(relation), None)
            )
            table = self.kb.relational
            forward = scope.given(part.arguments[1]) == "forward"
            return int((table.object if forward else table.subject)[fact])
        if part.function is f.FILTER_CONCEPT and (concept := scope.given(part.arguments[0])):
            inner = self._another(part.inputs[0], scope)
            if inner is not None:
                return inner
            return int(draw_from(self.random, self.kb.instances_of(concept).tolist()))
        return None

    # --- asking ------------------------------------------------------------------------------

    @draws(f.QUERY_NAME)
    def _query_name(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        inner = self.draw(pattern.inputs[0], scope, want)
        call = Call(pattern.function, (inner.call,))
        return Drawn(call, inner.target, intended=self.kb.name_of(inner.target))

    @draws(f.COUNT)
    def _count(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        inner = self.draw(pattern.inputs[0], scope, want)
        return Drawn(Call(pattern.function, (inner.call,)), inner.target)

    @draws(f.QUERY_ATTR)
    def _query_attr(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        fact = self._literal(scope.given(pattern.arguments[0]), want.form, want)
        target = int(self.kb.literals.subject[fact])
        inner = self.draw(pattern.inputs[0], scope, want.at(target))
        call = self._call(pattern, scope, [inner.call], KeyWords(self._key(fact)))
        return Drawn(call, target, ("literal", fact), str(self.pools.value(fact)))

    @draws(f.QUERY_ATTR_UNDER_CONDITION)
    def _query_attr_under_condition(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        drawn, key, value = self._qualified_literal(pattern, scope, want, pattern.arguments[1])
        assert drawn.fact is not None
        found = KeyWords(self._key(drawn.fact[1]))
        call = self._call(
            pattern, scope, [drawn.call], found, KeyWords(key), ValueWords(str(value), value)
        )
        return Drawn(call, drawn.target, drawn.fact, str(self.pools.value(drawn.fact[1])))

    def _qualified_literal(
        self, pattern: Pattern, scope: Scope, want: Want, qualifier: str | Variable
    ) -> tuple[Drawn, str, Value]:
        """The only input, drawn for a literal fact; and one of the fact's qualifiers."""
        given = scope.given(qualifier)
        asked = Want(want.target, want.form, (given, "any"), want.budget, want.path)
        fact = self._literal(scope.given(pattern.arguments[0]), want.form, asked)
        key, value = self._qualifier(("literal", fact), given, "any")
        target = int(self.kb.literals.subject[fact])
        inner = self.draw(pattern.inputs[0], scope, want.at(target))
        return Drawn(inner.call, target, ("literal", fact)), key, value

    @draws(f.QUERY_ATTR_QUALIFIER)
    def _query_attr_qualifier(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        drawn, key, answer = self._qualified_literal(pattern, scope, want, pattern.arguments[2])
        assert drawn.fact is not None
        value = self.pools.value(drawn.fact[1])
        words = KeyWords(self._key(drawn.fact[1])), ValueWords(str(value), value), KeyWords(key)
        call = self._call(pattern, scope, [drawn.call], *words)
        return Drawn(call, drawn.target, intended=str(answer))

    @draws(f.QUERY_RELATION)
    def _query_relation(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        fact = draw_from(self.random, self.pools.relation_facts(self._relation(), None))
        heads, tails, target = self._ends(pattern, scope, want, fact)
        relation = self.kb.relations[int(self.kb.relational.predicate[fact])]
        return Drawn(Call(pattern.function, (heads, tails)), target, intended=relation)

    def _ends(
        self, pattern: Pattern, scope: Scope, want: Want, fact: int
    ) -> tuple[Call, Call, int]:
        """The two inputs, drawn for the head and the tail of a relational fact; and the head."""
        head, tail = (int(c[fact]) for c in (self.kb.relational.subject, self.kb.relational.object))
        if head == tail:
            raise NoDraw
        calls = []
        for part, end, other in zip(pattern.inputs, (head, tail), (tail, head), strict=True):
            below = Want(end, "any", None, want.budget, (*want.path, other))
            calls.append(self.draw(part, scope, below).call)
        return calls[0], calls[1], head

    @draws(f.QUERY_RELATION_QUALIFIER)
    def _query_relation_qualifier(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        relation, qualifier = (scope.given(argument) for argument in pattern.arguments)
        asked: Qualified = (qualifier, "any")
        number = self._relation(relation, asked)
        if number < 0:
            raise NoDraw
        fact = draw_from(self.random, self.pools.relation_facts(number, asked))
        key, answer = self._qualifier(("relational", fact), qualifier, "any")
        heads, tails, target = self._ends(pattern, scope, want, fact)
        words = self.lexicon.relation(self.kb.relations[number], "forward"), KeyWords(key)
        call = self._call(pattern, scope, [heads, tails], *words)
        return Drawn(call, target, intended=str(answer))

    @draws(f.SELECT_AMONG)
    def _select_among(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        fact = self._literal(scope.given(pattern.arguments[0]), "quantity", want)
        target = int(self.kb.literals.subject[fact])
        inner = self.draw(pattern.inputs[0], scope, want.at(target))
        call = self._choice(pattern, scope, [inner.call], self._key(fact))
        return Drawn(call, target)

    @draws(f.SELECT_BETWEEN)
    def _select_between(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        fact = self._literal(scope.given(pattern.arguments[0]), "quantity", want)
        first = int(self.kb.literals.subject[fact])
        # The other one is of the same concept where there is one: nobody compares a lake to a law.
        facts = self.pools.key_facts(self.kb.key_number(self._key(fact)), "quantity", None)
        mine = set(self.kb.concepts_of(first))
        for _ in range(8):
            second = int(self.kb.literals.subject[draw_from(self.random, facts)])
            if second != first and mine.intersection(self.kb.concepts_of(second)):
                break
        else:
            raise NoDraw
        calls = []
        for part, node in zip(pattern.inputs, (first, second), strict=True):
            calls.append(self.draw(part, scope, want.at(node)).call)
        return Drawn(self._choice(pattern, scope, calls, self._key(fact)), first)

    def _choice(self, pattern: Pattern, scope: Scope, inputs: list[Call], key: str) -> Call:
        kind = pattern.function.arguments[1][1]
        word = scope.given(pattern.arguments[1]) or draw_from(self.random, kind.choices)
        return self._call(pattern, scope, inputs, KeyWords(key), ComparisonWords(word, key))

    @draws(f.VERIFY_STR, f.VERIFY_NUM, f.VERIFY_YEAR, f.VERIFY_DATE)
    def _verify(self, pattern: Pattern, scope: Scope, want: Want) -> Drawn:
        form = FORMS[pattern.function.name.replace("Verify", "Filter")]
        asked = Want(want.target, form, None, want.budget, want.path)
        inner = self.draw(pattern.inputs[0], scope, asked)
        if inner.fact is None:
            raise NoDraw
        fact, holds = inner.fact[1], self.random.random() < 0.5
        words = self._comparison(pattern, self._key(fact), self.pools.value(fact), holds, scope)
        call = self._call(pattern, scope, [inner.call], *words)
        return Drawn(call, inner.target, intended="yes" if holds else "no")

    def _call(self, pattern: Pattern, scope: Scope, inputs: list[Call], *words: Words) -> Call:
        """The call with these inputs and with these words as its textual arguments."""
        texts = [
            scope.bind(argument, word)
            for argument, word in zip(pattern.arguments, words, strict=True)
        ]
        return Call(pattern.function, tuple(inputs), tuple(texts))


LOCATING = frozenset(
    function for function in f.FUNCTIONS.values() if f.COUNT.inputs[0].accepts(function.output)
)
FORMS: dict[str, Form] = {
    "FilterStr": "string",
    "FilterNum": "quantity",
    "FilterYear": "time",
    "FilterDate": "date",
}


def _direction(text: str) -> Direction:
    return "forward" if text == "forward" else "backward"


if missing := [name for name in f.FUNCTIONS if name not in WAYS]:
    raise TypeError(f"functions that cannot be drawn: {', '.join(missing)}")
