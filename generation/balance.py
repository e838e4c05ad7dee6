"""Which question is drawn next, so that types, functions and lengths come as they should.

The shares of the question types are those of KQA Pro (Fig. 3a). Functions that sampling seldom
meets are asked for by name now and then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from generation.grammar import ROOT, Grammar, Pattern, Rule
from generation.pools import OPERATORS
from kb.values import Operator
from kopl.functions import COUNT, FUNCTIONS, Function
from kopl.program import Call, post_order
from kopl.types import Kind

# Percent of the questions; the paper gives two of them and "about a tenth" for each other.
SHARES: Mapping[str, float] = {
    "Count": 11.5,
    "SelectAmong": 4.6,
    "QueryName": 12.0,
    "QueryAttribute": 12.0,
    "Relation": 12.0,
    "SelectBetween": 11.9,
    "Verify": 12.0,
    "QualifierLiteral": 12.0,
    "QualifierRelational": 12.0,
}
# One question in so many is drawn for the function that is furthest behind, and no function needs
# to come more often than in one of so many.
ASKED, LATE, ENOUGH = 8, 2, 100


# A program of at most so many calls is short.
SHORT = 3


@dataclass(frozen=True)
class Order:
    """What the next question shall be: by one of these rules, with a function, of some length.

    ``nothing`` asks for a count of 0, ``least`` for so many calls.
    """

    rules: Sequence[Rule]
    wanted: Function | None = None
    nothing: bool = False
    least: int = 0


class Balance:
    """Keeps count of what was drawn in a block; draws the strategy and, now and then, a function.

    ``size`` is how many questions the block is to have, ``shares`` the percents of the strategies,
    ``short`` the share of programs of up to three calls, ``zero`` that of 0 among the counts,
    ``least`` the number of calls that every program has at least.
    """

    def __init__(
        self,
        grammar: Grammar,
        random: Random,
        *,
        levels: int,
        size: int,
        shares: Mapping[str, float] = SHARES,
        short: float = 1.0,
        zero: float = 0.0,
        least: int = 0,
    ) -> None:
        self._random, self._size = random, size
        self._rules: dict[str, list[Rule]] = {}
        for rule in grammar.rules[ROOT]:
            if rule.height <= levels:
                self._rules.setdefault(rule.strategy, []).append(rule)
        self._shares = {name: shares.get(name, 10.0) for name in self._rules}
        self._short, self._zero, self._least = short, zero, least
        self._kept = self._of_short = self._of_zero = 0
        self._of: Counter[str] = Counter()
        self._used: Counter[Function] = Counter()
        self._operators: Counter[str] = Counter()
        reach = frozenset[Function]().union(*(rule.reach for rule in grammar.rules[ROOT]))
        self._functions = [function for function in FUNCTIONS.values() if function in reach]

    def count(self, strategy: str, program: Call, answer: str) -> None:
        """Take note of a question that is kept."""
        self._kept += 1
        self._of[strategy] += 1
        self._of_short += program.size <= SHORT
        self._of_zero += program.function is COUNT and answer == "0"
        self._used.update({call.function for call in post_order(program)})
        self._operators.update(
            text
            for call in post_order(program)
            for text, (_, kind) in zip(call.arguments, call.function.arguments, strict=True)
            if kind is Kind.OPERATOR
        )

    def operators(self) -> Mapping[Operator, float]:
        """How likely operators shall be, so that they come as often as they should.

        One that is rarely kept, as few questions with it have one answer, is drawn more often.
        """
        whole = self._operators.total() + 10
        return {
            operator: share * (share * whole / (self._operators[operator] + 10 * share)) ** 2
            for operator, share in OPERATORS.items()
        }

    def orders(self) -> Iterator[Order]:
        """What to try for the next question, one after the other.

        A strategy or function that gives nothing any more is not tried again.
        """
        rare = self._rarest()
        # A function that never came is asked for more often towards the end.
        late = rare is not None and not self._used[rare] and 2 * self._kept > self._size
        if self._random.random() * (LATE if late else ASKED) >= 1:
            rare = None
        if rare is not None:
            everywhere = [rule for rules in self._rules.values() for rule in rules]
            leading = [rule for rule in everywhere if rare in rule.reach]
            yield Order(leading, rare, least=self._least)
        while self._rules:
            name = self._behind(list(self._rules))
            counting = [r for r in self._rules[name] if _root(r) is COUNT]
            if counting and self._of_zero < self._zero * self._of[name]:
                yield Order(counting, nothing=True, least=self._least)
            if self._least <= SHORT and self._of_short >= self._short * (self._kept + 1):
                yield Order(self._rules[name], least=SHORT + 1)
            yield Order(self._rules[name], least=self._least)
            del self._rules[name]

    def _behind(self, names: Sequence[str]) -> str:
        """The strategy that is furthest behind its share."""
        whole = sum(self._shares[name] for name in self._rules)
        owed = [self._shares[n] / whole * (self._kept + 1) - self._of[n] for n in names]
        most = max(owed)
        near = [name for name, debt in zip(names, owed, strict=True) if most - debt < 1]
        return self._random.choice(near)

    def _rarest(self) -> Function | None:
        """The function that came least often, unless all came often enough."""
        if not self._functions:
            return None
        rare = min(self._functions, key=lambda function: self._used[function])
        return rare if self._used[rare] * ENOUGH <= self._kept else None


def _root(rule: Rule) -> Function | None:
    return rule.program.function if isinstance(rule.program, Pattern) else None
