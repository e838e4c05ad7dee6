"""Which question is drawn next, so that types and functions come as often as they should.

The shares of the question types are those of KQA Pro (Fig. 3a). Functions that sampling seldom
meets are asked for by name now and then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from generation.grammar import ROOT, Grammar, Rule
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call, post_order

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
ASKED, ENOUGH = 8, 200


class Balance:
    """Keeps count of what was drawn; draws the strategy and, now and then, a function."""

    def __init__(
        self, grammar: Grammar, random: Random, shares: Mapping[str, float] = SHARES
    ) -> None:
        self._random = random
        self._rules: dict[str, list[Rule]] = {}
        for rule in grammar.rules[ROOT]:
            self._rules.setdefault(rule.strategy, []).append(rule)
        self._shares = {name: shares.get(name, 10.0) for name in self._rules}
        self._kept = 0
        self._used: Counter[Function] = Counter()
        reach = frozenset[Function]().union(*(rule.reach for rule in grammar.rules[ROOT]))
        self._functions = [function for function in FUNCTIONS.values() if function in reach]

    def count(self, program: Call) -> None:
        """Take note of a question that is kept."""
        self._kept += 1
        self._used.update({call.function for call in post_order(program)})

    def tries(self) -> Iterator[tuple[Sequence[Rule], Function | None]]:
        """What to try for the next question, one after the other: rules, and a function or none.

        A strategy or function that gives nothing any more is not tried again.
        """
        rare = self._rarest() if self._random.random() * ASKED < 1 else None
        if rare is not None:
            names = [
                name
                for name, rules in self._rules.items()
                if any(rare in rule.reach for rule in rules)
            ]
            name = self._draw(names)
            if name is not None:
                yield [rule for rule in self._rules[name] if rare in rule.reach], rare
        while self._rules:
            name = self._draw(list(self._rules))
            assert name is not None
            yield self._rules[name], None
            del self._rules[name]

    def _draw(self, names: Sequence[str]) -> str | None:
        if not names:
            return None
        return self._random.choices(names, [self._shares[name] for name in names])[0]

    def _rarest(self) -> Function | None:
        """The function that came least often, unless all came often enough."""
        if not self._functions:
            return None
        rare = min(self._functions, key=lambda function: self._used[function])
        return rare if self._used[rare] * ENOUGH <= self._kept else None
