"""Backward sampling: derivations drawn from facts, so that the intended answer exists.

Each function of the language has one way to be drawn here: given the node that its result must
hold, or none yet, it draws its arguments from facts and then its inputs. Relations and keys are
drawn before their facts, so that rare ones get their share.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from random import Random

import numpy as np

from generation import asking, locating
from generation.constants import OPERATORS, constant_for, draw_operator
from generation.derivation import Derivation
from generation.drawing import LOCATING, WAYS, Drawn, Fact, Scope, Spare, Want
from generation.grammar import Grammar, Part, Pattern, Rule, Symbol, functions, symbols
from generation.lexicon import (
    ConceptWords,
    Direction,
    Lexicon,
    NameWords,
    OperatorWords,
    ValueWords,
    Words,
)
from generation.needs import fitting, haves, needs
from generation.pools import Form, NoDraw, Pools, Qualified, draw_from
from kb import KnowledgeBase, Value
from kb.facts import FactTable
from kb.values import Operator
from kopl import functions as f
from kopl.denotation import Located, Outcome
from kopl.executor import Executor
from kopl.functions import Function
from kopl.program import Call

# Importing them registers the ways to draw.
__all__ = ["Sampler", "asking", "locating"]

if missing := [name for name in f.FUNCTIONS if name not in WAYS]:
    raise TypeError(f"functions that cannot be drawn: {', '.join(missing)}")

# Rules tried for one attempt; beginning anew is better than trying every way to end a bad one.
MOST_STEPS = 60
# Facts that are looked at to find one that tells its node from others.
TELLING = 4


class _GiveUp(Exception):
    """An attempt took too many rules."""


class Sampler:
    """Draws derivations from the facts of a knowledge base.

    ``levels`` bounds how many rules may follow one another in a derivation; 8 allows descriptions
    of two hops.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        grammar: Grammar,
        random: Random,
        *,
        levels: int = 8,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.kb, self.grammar, self.random, self.levels = kb, fitting(grammar, kb), random, levels
        self.pools = Pools(kb)
        self._haves: list[int] = haves(self.pools).tolist()
        self.lexicon = lexicon or Lexicon(kb)
        self._rules = lru_cache(maxsize=None)(self._rules_of)
        self._executor = Executor(kb)
        self._outcomes: dict[Call, Outcome] = {}
        self._wanted: Function | None = None
        # How likely the operators are.
        self.operators = OPERATORS
        # Whether a part is still to be drawn so that it gives nothing.
        self.nothing = False
        self._steps, self._most_steps = 0, MOST_STEPS

    def sample(
        self, rule: Rule, wanted: Function | None = None, *, nothing: bool = False, least: int = 0
    ) -> Derivation:
        """A derivation that begins with the rule; raises NoDraw when this attempt finds none.

        ``wanted`` is a function that is to stand in the program. With ``nothing``, what the
        question is about shall not exist: a concept none of whose instances fits the rest.
        ``least`` is how many calls the program shall have at least.
        """
        self._outcomes.clear()
        self._wanted, self._steps, self.nothing = wanted, 0, nothing
        self._most_steps = MOST_STEPS * max(1, least - MOST_STEPS // 15)
        try:
            scope = Scope(single=rule.single, least=least)
            found, _ = self._derive(rule, Want(budget=self.levels), scope)
        except _GiveUp:
            raise NoDraw from None
        if self._wanted is not None or self.nothing or found.program.size < least:
            raise NoDraw
        found.lexicon = self.lexicon
        return found

    def size(self, call: Call) -> int:
        """How many elements a call gives; remembered within one attempt."""
        return len(self._executor.outcome(call, self._outcomes))

    def narrowing(self, call: Call) -> Call:
        """A call that gives fewer elements than each of its inputs; else raises NoDraw.

        What changes nothing would be a clause too many.
        """
        size = self.size(call)
        if any(self.size(given) == size for given in call.inputs):
            raise NoDraw
        return call

    def comparable(self, call: Call) -> list[str]:
        """The keys by which two or more elements have a quantity each, and none has several."""
        found = self._executor.outcome(call, self._outcomes)
        assert isinstance(found, Located)
        table = self.kb.literals
        facts = table.of_subjects(found.ids)
        facts = facts[self.pools.of_form["quantity"][table.object[facts]]]
        owners = np.stack((table.predicate[facts], table.subject[facts]))
        (keys, _), counts = np.unique(owners, axis=1, return_counts=True)
        several = np.bincount(keys, minlength=len(self.kb.keys)) > 1
        several[keys[counts > 1]] = False
        return [self.kb.keys[key] for key in np.flatnonzero(several).tolist()]

    def alien(self, part: Drawn) -> str:
        """A concept of no element of a part, but of something that has such a fact as well.

        "How many mountains share a border with Norway": other things than those that do.
        """
        if part.fact is None:
            raise NoDraw
        kind, number = part.fact
        table: FactTable = self.kb.relational if kind == "relational" else self.kb.literals
        ends = (table.object, table.subject) if kind == "relational" else (table.subject,)
        column = next((end for end in ends if int(end[number]) == part.target), table.subject)
        facts = table.of_predicate(int(table.predicate[number]))
        other = int(column[draw_from(self.random, facts.tolist())])
        concept = draw_from(self.random, self.concepts(other) if self.kb.is_entity(other) else [])
        if self.size(Call(f.FILTER_CONCEPT, (part.call,), (concept,))):
            raise NoDraw
        return concept

    def several(self, part: Drawn) -> Drawn:
        """A part that gives several elements, so that a condition can narrow it; else NoDraw."""
        if self.size(part.call) < 2:
            raise NoDraw
        return part

    def _expand(self, symbol: Symbol, scope: Scope, want: Want) -> Drawn:
        single, least = symbol.name in scope.single, scope.least_of_next()
        plain = self._wanted is None and not self.nothing
        found = scope.spare(symbol.left, want) if plain else None
        if found is not None and self._fits(found[1], single, least):
            return scope.take(symbol, want, *found)
        wanted, nothing = self._wanted, self.nothing
        has = -1 if want.target is None else self._haves[want.target]
        rules, weights = self._rules(symbol.left, want.budget, wanted, has)
        spares: list[Spare] = []
        while rules:
            (rule,) = self.random.choices(rules, weights)
            inner = Scope(single=rule.single, spares=spares, least=least)
            try:
                derivation, drawn = self._derive(rule, want, inner)
                if self._fits(drawn, single, least):
                    return scope.take(symbol, want, derivation, drawn)
            except NoDraw:
                pass
            self._wanted, self.nothing = wanted, nothing
            # What a rule that failed had drawn already may do for another one.
            spares = [*spares, *inner.taken]
            rules = [other for other in rules if other is not rule]
            weights = [other.weight for other in rules]
        raise NoDraw

    def _fits(self, drawn: Drawn, single: bool, least: int) -> bool:
        """Whether a part has enough calls, and gives one element where the rule speaks of one."""
        if drawn.call.size < least:
            return False
        return not single or drawn.call.function not in LOCATING or self.size(drawn.call) == 1

    def _rules_of(
        self, left: str, budget: int, wanted: Function | None, has: int
    ) -> tuple[list[Rule], list[int]]:
        """The rules that fit a budget and a node, and lead to a wanted function, if any does.

        And their weights.
        """
        rules = [
            rule
            for rule in self.grammar.rules[left]
            if rule.height <= budget and not needs(rule.program) & ~has
        ]
        leading = [rule for rule in rules if wanted in rule.reach]
        rules = leading or rules
        return rules, [rule.weight for rule in rules]

    def _derive(self, rule: Rule, want: Want, scope: Scope) -> tuple[Derivation, Drawn]:
        self._steps += 1
        if self._steps > self._most_steps:
            raise _GiveUp
        own = tuple(functions(rule.program))
        if self._wanted in own:
            self._wanted = None
        scope.begin(own=len(own), parts=sum(1 for _ in symbols(rule.program)))
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

    def entity(self, want: Want) -> int:
        """The target, or an entity of a drawn concept."""
        if want.target is not None:
            return want.target
        if not self.pools.concepts:
            return draw_from(self.random, range(self.kb.entity_count))
        return self.instance(draw_from(self.random, self.pools.concepts))

    def instance(self, concept: int) -> int:
        found = self.kb.instances_of(self.kb.name_of(concept))
        return int(draw_from(self.random, found.tolist()))

    def is_everything(self, part: Part) -> bool:
        return isinstance(part, Pattern) and part.function is f.FIND_ALL

    def concepts(self, entity: int) -> list[str]:
        """The names of an entity's concepts; its own ones twice, so that they come more often."""
        own = self.kb.concepts_of(entity)
        return [self.kb.name_of(c) for c in (*own, *own, *self.kb.all_concepts_of(entity))]

    def namesake(self, pattern: Pattern, inside: Pattern, scope: Scope, want: Want) -> Drawn:
        """A name that several nodes have, with a concept that tells the target apart."""
        target = self.entity(want)
        name = self.kb.name_of(target)
        others = [n for n in self.kb.named(name).tolist() if n != target]
        if not name or not others or not self.kb.is_entity(target):
            raise NoDraw
        taken: set[str] = set()
        for other in others:
            if self.kb.is_entity(other):
                taken.update(self.concepts(other))
        free = [concept for concept in self.concepts(target) if concept not in taken]
        concept = draw_from(self.random, free)
        find = self.call(inside, scope, [], NameWords(name))
        return Drawn(self.call(pattern, scope, [find], ConceptWords(concept)), target)

    def telling(
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
            facts = self.qualified(table, links(want.target)[number, direction], want)
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

    def relation(self, given: str | None = None, qualified: Qualified | None = None) -> int:
        """The number of the relation that is given, or of one that is drawn; -1 for unknown."""
        if given is not None:
            return self.kb.relation_number(given)
        found = self.pools.relations_with(qualified) if qualified else self.pools.relations
        return draw_from(self.random, found)

    def qualified(self, table: FactTable, facts: list[int], want: Want) -> list[int]:
        if want.qualified is None:
            return facts
        sets = self.pools.sets_with(want.qualified)
        return [number for number in facts if sets[table.qualifiers[number]]]

    def literal(self, key: str | None, form: Form, want: Want) -> int:
        """A literal fact of a type: of the target if there is one, of the key if it is given."""
        qualified = want.qualified
        if want.target is None:
            number = (
                self.kb.key_number(key)
                if key is not None
                else draw_from(self.random, self.pools.keys(form, qualified))
            )
            return draw_from(self.random, self.pools.key_facts(number, form, qualified))
        wanted = None if key is None else self.kb.key_number(key)
        groups = [
            found
            for number, facts in self.pools.literals(want.target).items()
            if wanted in (None, number)
            if (found := self.fitting(facts, form, want))
        ]
        return draw_from(self.random, draw_from(self.random, groups))

    def fitting(self, facts: list[int], form: Form, want: Want) -> list[int]:
        facts = self.qualified(self.kb.literals, facts, want)
        return self.pools.fitting(facts, form)

    def key(self, fact: int) -> str:
        return self.kb.keys[int(self.kb.literals.predicate[fact])]

    def comparison(
        self, pattern: Pattern, key: str, value: Value, holds: bool, scope: Scope
    ) -> list[Words]:
        """The constant, and the operator if there is one, that hold of a value or do not."""
        name = pattern.function.name
        if name.endswith("Str"):
            if holds:
                return [ValueWords(str(value), value)]
            other = constant_for(
                self.random, value, "=", holds=False, others=self.values_of(key), day=False
            )
            return [ValueWords(str(other), other)]
        given = scope.given(pattern.arguments[-1])
        operator: Operator = given or draw_operator(self.random, self.operators)  # type: ignore[assignment]
        others = [] if holds else self.values_of(key)
        constant = constant_for(
            self.random, value, operator, holds=holds, others=others, day=name.endswith("Date")
        )
        return [ValueWords(str(constant), constant), OperatorWords(operator, constant)]

    def values_of(self, key: str) -> list[Value]:
        """A few values of a key."""
        facts = self.pools.key_facts(self.kb.key_number(key), "any", None)
        return [self.pools.value(draw_from(self.random, facts)) for _ in range(5)]

    def qualifier(self, fact: Fact | None, key: str | None, form: Form) -> tuple[str, Value]:
        """A qualifier of a fact: its key and value."""
        if fact is None:
            raise NoDraw
        kind, number = fact
        table: FactTable = self.kb.relational if kind == "relational" else self.kb.literals
        fits = self.pools.of_form[form]
        pairs = [
            (self.kb.keys[k], v)
            for k, v in self.kb.qualifier_sets.pairs(int(table.qualifiers[number]))
            if fits[v]
        ]
        found, value = draw_from(self.random, [(k, v) for k, v in pairs if key in (None, k)])
        return found, self.kb.values[value]

    def beside(self, want: Want, part: Part) -> Want:
        """What a part is drawn for that stands beside a condition: a name that needs it."""
        is_name = isinstance(part, Pattern) and part.function is f.FIND
        return replace(want, namesakes=True) if is_name else want

    def another(self, part: Part, scope: Scope) -> int | None:
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
            inner = self.another(part.inputs[0], scope)
            if inner is not None:
                return inner
            return int(draw_from(self.random, self.kb.instances_of(concept).tolist()))
        return None

    def call(self, pattern: Pattern, scope: Scope, inputs: list[Call], *words: Words) -> Call:
        """The call with these inputs and with these words as its textual arguments."""
        texts = [
            scope.bind(argument, word)
            for argument, word in zip(pattern.arguments, words, strict=True)
        ]
        return Call(pattern.function, tuple(inputs), tuple(texts))
