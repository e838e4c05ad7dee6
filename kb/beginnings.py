"""Finding names while they are typed: by how they begin, without regard to capitals and accents."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from kb.arrays import Ids, as_ids
from kb.store import KnowledgeBase
from kopl_base.errors import near_names

Text = TypeVar("Text", bound=str)

# Letters that Unicode does not take apart.
_PLAIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"})
# Behind every letter that a name may go on with.
_LAST = "\U0010ffff"
# A shorter text is near to too much.
SHORTEST_NEAR = 3


def folded(text: str) -> str:
    """The text in small letters without accents, for comparing what people type."""
    if text.isascii():
        return text.lower()
    spelt = unicodedata.normalize("NFKD", text.casefold()).translate(_PLAIN)
    return "".join(c for c in spelt if not unicodedata.combining(c))


def closeness(wanted: str, text: str) -> int | None:
    """How near a text is to what was typed, folded already; 0 is nearest, None not at all.

    It is the same, begins so, has a word that begins so, or holds it.
    """
    if not wanted:
        return 1
    plain = folded(text)
    if wanted not in plain:
        return None
    if plain.startswith(wanted):
        return 0 if len(plain) == len(wanted) else 1
    at = plain.find(wanted)
    while at > 0:
        if not plain[at - 1].isalnum():
            return 2
        at = plain.find(wanted, at + 1)
    return 3


def matching(typed: str, texts: Iterable[Text], *, near: bool = True) -> list[tuple[int, Text]]:
    """The texts that hold what was typed, each with its `closeness`, in their order.

    Where none does, those of nearly the same spelling, the nearest first, if ``near`` says so.
    """
    wanted, listed = folded(typed.strip()), [*texts]
    found = [(close, text) for text in listed if (close := closeness(wanted, text)) is not None]
    if near and not found and len(wanted) >= SHORTEST_NEAR:
        by_text = {str(text): text for text in listed}
        names = near_names(typed, by_text, 10)
        found = [(4 + rank, by_text[name]) for rank, name in enumerate(names)]
    return found


class Beginnings:
    """The names and aliases of all nodes by how they, and the words in them, begin."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    @cached_property
    def _entries(self) -> tuple[list[str], list[str], Ids, Ids]:
        """Folded ends of names from each word on, sorted; their names, nodes, and if whole."""
        kb, every = self.kb, np.arange(self.kb.node_count, dtype=np.int32)
        names = kb.strings.texts(kb.name_numbers(every).tolist())
        called = [*zip(names, range(kb.node_count), strict=True)]
        called += [(alias, node) for alias, nodes in kb.aliased() for node in nodes]
        entries = []
        for name, node in called:
            plain = folded(name)
            entries.append((plain, name, node, 0))
            at = plain.find(" ")
            while at >= 0:
                entries.append((plain[at + 1 :], name, node, 1))
                at = plain.find(" ", at + 1)
        entries.sort()
        whole = as_ids(entry[3] for entry in entries)
        nodes = as_ids(entry[2] for entry in entries)
        return [one[0] for one in entries], [one[1] for one in entries], nodes, whole

    @cached_property
    def _famous(self) -> Ids:
        """How many facts each node has."""
        return self.kb.fact_counts(np.arange(self.kb.node_count, dtype=np.int32))

    def facts(self, node: int) -> int:
        """How many facts a node has."""
        return int(self._famous[node])

    def find(
        self, typed: str, limit: int, within: Ids | None = None
    ) -> tuple[list[tuple[int, str]], int]:
        """The nodes whose names or aliases begin so, each with what it is called; how many.

        First those of just that name, then names that begin so, then names with a word that does,
        each with most facts first. Where there is none, those of nearly the same spelling.
        ``within``: only these nodes.
        """
        wanted = folded(typed.strip())
        if not wanted:
            nodes = within if within is not None else np.arange(self.kb.node_count, dtype=np.int32)
            best = nodes[np.argsort(-self._famous[nodes], kind="stable")[: limit * 2]]
            return [(node, self.kb.name_of(node)) for node in best.tolist()], len(nodes)
        texts, names, nodes, later = self._entries
        low, high = bisect_left(texts, wanted), bisect_left(texts, wanted + _LAST)
        places = np.arange(low, high)
        if within is not None:
            places = places[np.isin(nodes[places], within)]
        if not len(places):
            return self._near(typed, limit, within)
        exact = bisect_left(texts, wanted + "\0")
        rank = later[places] * 2 + 1 - (places < exact)
        order = np.lexsort((places, -self._famous[nodes[places]], rank))
        found: dict[int, str] = {}
        for at in places[order].tolist():
            found.setdefault(int(nodes[at]), names[at])
            if len(found) >= limit * 2:
                break
        return [*found.items()], len(np.unique(nodes[places]))

    def _near(
        self, typed: str, limit: int, within: Ids | None
    ) -> tuple[list[tuple[int, str]], int]:
        if len(typed.strip()) < SHORTEST_NEAR:
            return [], 0
        kb, inside = self.kb, None if within is None else set(within.tolist())
        found: dict[int, str] = {}
        for name in near_names(typed, self._called(within), limit):
            for node in [*kb.named(name).tolist(), *kb.known_as(name).tolist()]:
                if inside is None or node in inside:
                    found.setdefault(node, name)
        return [*found.items()], len(found)

    def _called(self, within: Ids | None) -> Sequence[str]:
        if within is None:
            return self._all_called
        aliases = (alias for node in within.tolist() for alias in self.kb.aliases_of(node))
        return [*dict.fromkeys([*self.kb.names(within), *aliases])]

    @cached_property
    def _all_called(self) -> list[str]:
        return [*dict.fromkeys(self._entries[1])]
