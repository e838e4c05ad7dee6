"""What the calls of a program give while it runs, and how that is printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from kb import KnowledgeBase
from kb.arrays import EMPTY, Ids, unique_below
from kb.facts import FactTable


class Located:
    """A set of nodes and, after a filter or a relation, the facts that put each node there.

    ``ids`` is sorted and has each node once. ``facts`` are numbers in ``table``; the node that a
    fact puts there is its subject, or its object when ``by_object``.
    """

    __slots__ = ("_ids", "by_object", "facts", "kb", "table")

    def __init__(
        self,
        kb: KnowledgeBase,
        ids: Ids | None,
        facts: Ids = EMPTY,
        table: FactTable | None = None,
        by_object: bool = False,
    ) -> None:
        self.kb, self._ids = kb, ids
        self.facts, self.table, self.by_object = facts, table, by_object

    @property
    def ids(self) -> Ids:
        """The nodes; worked out from the facts when first asked for."""
        if self._ids is None:
            assert self.table is not None
            column = self.table.object if self.by_object else self.table.subject
            self._ids = unique_below(column[self.facts], self.kb.node_count)
        return self._ids

    def __len__(self) -> int:
        return len(self.ids)

    def weight(self) -> int:
        """How much it holds: its facts, or its nodes where it has none."""
        return len(self.facts) if self.table is not None else len(self.ids)

    def strings(self) -> list[str]:
        """The distinct names, by code point."""
        return self.kb.names(self.ids)


class Values:
    """Distinct values by number, in the order in which they are printed."""

    __slots__ = ("kb", "numbers")

    def __init__(self, kb: KnowledgeBase, numbers: Ids) -> None:
        self.kb, self.numbers = kb, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def weight(self) -> int:
        """The number of values."""
        return len(self.numbers)

    def strings(self) -> list[str]:
        """The printed values, equal strings once."""
        return distinct(self.kb.value_texts(self.numbers.tolist()))


class Words:
    """Strings that are the denotation already: relations, a number, yes or no."""

    __slots__ = ("words",)

    def __init__(self, words: Iterable[str]) -> None:
        self.words = list(words)

    def __len__(self) -> int:
        return len(self.words)

    def weight(self) -> int:
        """The number of words."""
        return len(self.words)

    def strings(self) -> list[str]:
        """The words."""
        return self.words


Outcome: TypeAlias = Located | Values | Words


def distinct(strings: Iterable[str]) -> list[str]:
    """The strings in their order, each once."""
    return list(dict.fromkeys(strings))
