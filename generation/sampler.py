"""Backward sampling: derivations drawn from facts, so that the intended answer exists.

A non-terminal is drawn by one of its rules, a call by the way of its function (`generation.ways`),
which draws its inputs here again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, reduce
from operator import or_
from random import Random

from generation import asking, locating
from generation.claims import one_of
from generation.derivation import Derivation
from generation.grammar import EXISTS, Grammar, Part, Rule, Symbol
from generation.lexicon import Lexicon, NameWords
from generation.pools import Capability, NoDraw, capabilities
from generation.scope import DrawnPart, Goal, Leftover, Scope, Source
from generation.ways import Way, required_for
from kb import KnowledgeBase
from kopl.functions import COUNT, FUNCTIONS, Function
from kopl.types import Kind

WAYS: dict[str, Way] = {**locating.WAYS, **asking.WAYS}
if missing := [name for name in FUNCTIONS if name not in WAYS]:
    raise TypeError(f"functions that cannot be drawn: {', '.join(missing)}")

# Rules tried for one attempt; beginning anew is better than trying every way to end a bad one.
MOST_STEPS = 24
# Programs that are to have more calls than this may take as many rules more.
USUAL = 4
LOCATING = frozenset(
    function for function in FUNCTIONS.values() if COUNT.inputs[0].accepts(function.output)
)


NAMESAKES = int(Capability.NAMESAKES)


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
        self.source = Source(kb, random, lexicon or Lexicon(kb), self._draw)
        self.grammar, self.levels = applicable_rules(grammar, kb), levels
        self._capabilities: list[int] = capabilities(self.source.pools).tolist()
        # What some node has. The few that lack a noun are not begun with.
        self._any = reduce(or_, self._capabilities, 0)
        if self._any & Capability.NOUN:
            self._any &= ~int(Capability.NO_NOUN)
        # Each rule with what a node must have for it.
        self._rules_of = {
            left: [(rule, int(required_for(rule))) for rule in rules]
            for left, rules in self.grammar.rules.items()
        }
        self._rules = lru_cache(maxsize=None)(self._fitting_rules)
        self._wanted: Function | None = None
        self._steps, self._most_steps = 0, MOST_STEPS

    def sample(
        self, rule: Rule, wanted: Function | None = None, *, nothing: bool = False, least: int = 0
    ) -> Derivation:
        """A derivation that begins with the rule; raises NoDraw when this attempt finds none.

        ``wanted`` is a function that is to stand in the program. With ``nothing``, what the
        question is about shall not exist: a concept none of whose instances fits the rest.
        ``least`` is how many calls the program shall have at least.
        """
        self.source.forget()
        if rule.asks == EXISTS:
            nothing = self.source.random.random() < 0.5
        self.source.nothing, self._wanted, self._steps = nothing, wanted, 0
        self._most_steps = MOST_STEPS * max(1, least - USUAL)
        try:
            found, _ = self._derive(rule, Goal(), _scope(rule, self.levels - 1, [], least))
        except _GiveUp:
            raise NoDraw from None
        if self._wanted is not None or self.source.nothing or found.program.size < least:
            raise NoDraw
        found.lexicon, found.wordings = self.source.lexicon, self.grammar.wordings
        return found

    def _draw(self, part: Part, scope: Scope, goal: Goal) -> DrawnPart:
        """A part of a program."""
        if isinstance(part, Symbol):
            return self._expand(part, scope, replace(goal, claim=False) if goal.claim else goal)
        return WAYS[part.function.name](self.source, part, scope, goal)

    def _expand(self, symbol: Symbol, scope: Scope, goal: Goal) -> DrawnPart:
        single = symbol.name in scope.single
        if single and not goal.single:
            goal = goal.alone()
        # The last part makes up for all calls that are missing: conditions stand in front, and what
        # goes on behind them.
        least = max(0, scope.least) if scope.open <= 1 else 0
        wanted, nothing = self._wanted, self.source.nothing
        if scope.leftovers and wanted is None and not nothing:
            found = scope.leftover(symbol.left, goal)
            if found is not None and self._fits(found[1], single, least):
                return scope.take(symbol, goal, *found)
        has = self._any if goal.target is None else self._capabilities[goal.target]
        if not self.source.tells_apart():
            has &= ~NAMESAKES
        rules, weights = self._rules(symbol.left, scope.budget, wanted, has)
        leftovers: list[Leftover] = []
        while rules:
            (rule,) = self.source.random.choices(rules, weights)
            inner = _scope(rule, scope.budget - 1, leftovers, least)
            try:
                derivation, drawn = self._derive(rule, goal, inner)
                if self._fits(drawn, single, least):
                    return scope.take(symbol, goal, derivation, drawn)
            except NoDraw:
                pass
            self._wanted, self.source.nothing = wanted, nothing
            # What a rule that failed had drawn already may do for another one.
            leftovers = [*leftovers, *inner.taken]
            rules = [other for other in rules if other is not rule]
            weights = [other.weight for other in rules]
        raise NoDraw

    def _fits(self, drawn: DrawnPart, single: bool, least: int) -> bool:
        """Whether a part has enough calls, and gives one element where the rule speaks of one.

        That has to be the only one in the world too, as far as is known.
        """
        if drawn.call.size < least:
            return False
        if not single or drawn.call.function not in LOCATING:
            return True
        return self.source.size(drawn.call) == 1 and self.source.is_whole(drawn.call)

    def _fitting_rules(
        self, left: str, budget: int, wanted: Function | None, has: int
    ) -> tuple[list[Rule], list[int]]:
        """The rules that fit a budget and a node, and lead to a wanted function, if any does.

        And their weights.
        """
        rules = [
            rule
            for rule, required in self._rules_of[left]
            if rule.height <= budget and not required & ~has
        ]
        leading = [rule for rule in rules if wanted in rule.reach]
        # One that has it now is surer than one whose parts may have it, for some node or other.
        rules = [rule for rule in leading if wanted in rule.functions] or leading or rules
        return rules, [rule.weight for rule in rules]

    def _derive(self, rule: Rule, goal: Goal, scope: Scope) -> tuple[Derivation, DrawnPart]:
        self._steps += 1
        if self._steps > self._most_steps:
            raise _GiveUp
        if self._wanted in rule.functions:
            self._wanted = None
        drawn = self._draw(rule.program, scope, goal)
        if rule.named.startswith("$"):
            name = NameWords(self.source.kb.name_of(one_of(self.source, drawn)))
            scope.words[rule.named[1:]] = name
        person = drawn.target in self.source.pools.person
        derivation = Derivation(
            rule, drawn.call, scope.words, scope.parts, drawn.target, person, drawn.intended
        )
        return derivation, drawn


def _scope(rule: Rule, budget: int, leftovers: list[Leftover], least: int) -> Scope:
    """The scope of a rule whose program must have so many calls at least."""
    least -= len(rule.functions)
    return Scope(rule.single, budget, leftovers, least, len(rule.symbols), rule.asks)


def applicable_rules(grammar: Grammar, kb: KnowledgeBase) -> Grammar:
    """The grammar without the rules that name what a knowledge base has no relation, key or concept
    for."""
    concepts = {kb.name_of(node) for node in range(kb.entity_count, kb.node_count)}
    known: dict[Kind, Callable[[str], bool]] = {
        Kind.CONCEPT: concepts.__contains__,
        Kind.RELATION: lambda text: kb.relation_number(text) >= 0,
        Kind.KEY: lambda text: kb.key_number(text) >= 0,
        Kind.QUALIFIER_KEY: lambda text: kb.key_number(text) >= 0,
    }

    def applies(part: Part) -> bool:
        if isinstance(part, Symbol):
            return True
        fixed = (
            known[kind](text)
            for given, (_, kind) in zip(part.arguments, part.function.arguments, strict=True)
            if kind in known and (text := given if isinstance(given, str) else given.text)
        )
        return all(fixed) and all(applies(inner) for inner in part.inputs)

    rules: dict[str, tuple[Rule, ...]] = {
        left: tuple(rule for rule in group if applies(rule.program))
        for left, group in grammar.rules.items()
    }
    while True:
        left_over = {
            left: tuple(rule for rule in group if all(rules[s.left] for s in rule.symbols))
            for left, group in rules.items()
        }
        if left_over == rules:
            return grammar if rules == grammar.rules else replace(grammar, rules=rules)
        rules = left_over
