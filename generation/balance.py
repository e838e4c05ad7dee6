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
ASKED, LATE, ENOUGH = 8, 2, 100


class Balance:
    """Keeps count of what was drawn in a block; draws the strategy and, now and then, a function.

    ``size`` is how many questions the block is to have.
    """

    def __init__(
        self,
        grammar: Grammar,
        random: Random,
        *,
        levels: int,
        size: int,
        shares: Mapping[str, float] = SHARES,
    ) -> None:
        self._random, self._size = random, size
        self._rules: dict[str, list[Rule]] = {}
        for rule in grammar.rules[ROOT]:
            if rule.height <= levels:
                self._rules.setdefault(rule.strategy, []).append(rule)
        self._shares = {name: shares.get(name, 10.0) for name in self._rules}
        self._kept = 0
        self._of: Counter[str] = Counter()
        self._used: Counter[Function] = Counter()
        reach = frozenset[Function]().union(*(rule.reach for rule in grammar.rules[ROOT]))
        self._functions = [function for function in FUNCTIONS.values() if function in reach]

    def count(self, strategy: str, program: Call) -> None:
        """Take note of a question that is kept."""
        self._kept += 1
        self._of[strategy] += 1
        self._used.update({call.function for call in post_order(program)})

    def tries(self) -> Iterator[tuple[Sequence[Rule], Function | None]]:
        """What to try for the next question, one after the other: rules, and a function or none.

        A strategy or function that gives nothing any more is not tried again.
        """
        rare = self._rarest()
        # A function that never came is asked for more often towards the end.
        late = rare is not None and not self._used[rare] and 2 * self._kept > self._size
        if self._random.random() * (LATE if late else ASKED) >= 1:
            rare = None
        if rare is not None:
            everywhere = [rule for rules in self._rules.values() for rule in rules]
            yield [rule for rule in everywhere if rare in rule.reach], rare
        while self._rules:
            name = self._behind(list(self._rules))
            yield self._rules[name], None
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
