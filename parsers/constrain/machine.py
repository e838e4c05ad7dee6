"""Constrained decoding: which tokens may come next, whatever the language and the tokenizer.

A `Language` says which terminals may stand where. A state is the terminals that the text so far
may be in (a few, as one name may begin another) with the place in each. Two calls are all that a
decoder needs: ``allowed(state)`` and ``advance(state, token)``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from parsers.constrain.terminals import Literal, Place, Scan, Terminal
from parsers.constrain.tokens import END, Ids, TokenTable

Outer = Any  # where in the language a text is: hashable, made by the language


class Language(Protocol):
    """What texts are made of, as a machine whose steps are whole terminals."""

    # The first bytes of whatever may stand behind a terminal that is no fixed text.
    follow: bytes

    def start(self) -> Outer:
        """Where texts begin."""

    def options(self, outer: Outer) -> Sequence[tuple[Terminal, Outer]]:
        """What may come next, each with where the text is while it is written."""

    def after(self, outer: Outer, terminal: Terminal, place: Place) -> Outer:
        """Where the text is when a terminal ended at a place."""

    def text_behind(self, outer: Outer) -> Literal | None:
        """The fixed text that follows a terminal wherever it ends, if there is one."""


# The terminal behind which nothing comes.
STOP = Literal(END)

Item = tuple[Terminal, Place, Outer]


class State:
    """Where a sequence is; never changed, so that beams may share it.

    ``ended``: the end was written. ``lost``: something was written that is not allowed.
    """

    __slots__ = ("_after", "_tokens", "ended", "items", "lost")

    def __init__(self, items: tuple[Item, ...], *, ended: bool = False, lost: bool = False) -> None:
        self.items, self.ended, self.lost = items, ended, lost
        # What was worked out already: the tokens that may come, and the states behind them.
        self._tokens: Ids | None = None
        self._after: dict[int, State] = {}


Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


class _Memory(Generic[Key, Found]):
    """A dictionary that forgets everything when it is full: states are many, texts go on."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.found: dict[Key, Found] = {}

    def put(self, key: Key, found: Found) -> Found:
        if len(self.found) >= self.most:
            self.found.clear()
        self.found[key] = found
        return found


class Constraint:
    """A language over the tokens of a table.

    ``remembered`` bounds how many states are kept with what was worked out for them; about a
    kilobyte each. One constraint serves any number of sequences, but one thread.

    >>> from parsers.constrain import TokenTable, kopl_constraint
    >>> constraint = kopl_constraint(kb, TokenTable.of(tokenizer))  # doctest: +SKIP
    >>> state = constraint.start()                                  # doctest: +SKIP
    >>> state = constraint.advance(state, constraint.allowed(state)[0])  # doctest: +SKIP
    """

    def __init__(self, language: Language, table: TokenTable, *, remembered: int = 100_000) -> None:
        self.language, self.table = language, table
        self._remembered = remembered
        self._options: _Memory[Outer, Sequence[tuple[Terminal, Outer]]] = _Memory(remembered)
        self._scans: _Memory[Hashable, Scan] = _Memory(remembered)
        self._open_tokens: _Memory[Hashable, Ids] = _Memory(remembered)
        self._item_tokens: _Memory[Hashable, Ids] = _Memory(remembered)
        only_end: Ids = _readonly([table.end])
        self._ended, self._lost = State((), ended=True), State((), ended=True, lost=True)
        self._ended._tokens = self._lost._tokens = only_end
        self._states: dict[tuple[Item, ...], State] = {}
        self._start = self._begun()

    def _begun(self) -> State:
        ways = self._ways(self.language.start())
        return State(tuple((found, found.start, inside) for found, inside in ways))

    # --- the interface ------------------------------------------------------------------------

    def start(self) -> State:
        """The state before the first token."""
        return self._start

    def allowed(self, state: State) -> Ids:
        """The tokens that may come next, sorted, the end among them; read-only.

        Behind the end only the end may come.
        """
        found = state._tokens
        if found is None:
            found = state._tokens = self._of_items(state.items)
        return found

    def mask(self, state: State) -> npt.NDArray[np.uint8]:
        """The same as a bit for each token, eight to a byte, the first token in the lowest bit."""
        bits = np.zeros(len(self.table), np.bool_)
        bits[self.allowed(state)] = True
        return np.packbits(bits, bitorder="little")

    def advance(self, state: State, token: int) -> State:
        """The state behind a token; immutable, so that beams may share it.

        Behind the end, padding changes nothing. A token that is not allowed leads to a state that
        only the end may follow: a search with more beams than there are allowed tokens keeps such
        sequences, with a probability of zero. `follow` tells them apart.
        """
        if state.ended:
            return state
        return self.follow(state, token) or self._lost

    def follow(self, state: State, token: int) -> State | None:
        """The state behind a token, or None for one that is not allowed."""
        found = state._after.get(token)
        if found is not None:
            return found
        if state.ended:
            return state if token == self.table.end and not state.lost else None
        spelling = self.table.spellings[token] if 0 <= token < len(self.table) else None
        if spelling is None:
            return None
        items: Iterable[Item] = state.items
        for byte in spelling:
            items = self._stepped(items, byte)
            if not items:
                return None
        found = self._ended if token == self.table.end else self._state(tuple(items))
        if not self.table.complete and not len(self.allowed(found)):
            return None
        state._after[token] = found
        return found

    def _state(self, items: tuple[Item, ...]) -> State:
        """The state of these items: one for all ways that lead there."""
        found = self._states.get(items)
        if found is None:
            if len(self._states) >= self._remembered:
                # The start leads to all states that were found; with a new one they can go.
                self._states, self._start = {}, self._begun()
            found = self._states[items] = State(items)
        return found

    def rejected(self, tokens: Sequence[int]) -> int | None:
        """The place of the first token that is not allowed, or None when all are.

        Tokens without an end at last are the beginning of an allowed sequence then.
        """
        state = self._start
        for place, token in enumerate(tokens):
            after = self.follow(state, token)
            if after is None:
                return place
            state = after
        return None

    def accepts(self, text: str) -> bool:
        """Whether a whole text is in the language, however it is spelt."""
        items: Iterable[Item] = self._start.items
        for byte in self.table.encoded(text) + END:
            items = self._stepped(items, byte)
        return any(terminal is STOP for terminal, _, _ in items)

    # --- following bytes ----------------------------------------------------------------------

    def _ways(self, outer: Outer) -> Sequence[tuple[Terminal, Outer]]:
        found = self._options.found.get(outer)
        if found is None:
            ways = self.language.options(outer)
            found = self._options.put(outer, [way for way in ways if way[0].start is not None])
        return found

    def _stepped(self, items: Iterable[Item], byte: int) -> list[Item]:
        found: dict[Item, None] = {}
        for terminal, place, outer in items:
            after = terminal.step(place, byte)
            if after is not None:
                found[terminal, after, outer] = None
            if terminal.complete(place):
                for other, inside in self._ways(self.language.after(outer, terminal, place)):
                    after = other.step(other.start, byte)
                    if after is not None:
                        found[other, after, inside] = None
        return list(found)

    def _of_items(self, items: tuple[Item, ...]) -> Ids:
        # Places that differ only in what no token can tell share their tokens.
        longest = self.table.longest
        key = tuple(
            (terminal, terminal.key(place, longest), min(terminal.left(place), longest), outer)
            for terminal, place, outer in items
        )
        # Most are inside of one name, whatever is around it.
        first = key[0][:3]
        if all(one[:3] == first for one in key):
            scan = self._scan(*items[0][:2], 0)
            if not scan.crossings:
                return scan.within(items[0][0].left(items[0][1]))
        found = self._item_tokens.found.get(key)
        if found is None:
            parts = [self._tokens(*item, 0) for item in items]
            found = self._item_tokens.put(key, _sorted(parts))
        return found

    # --- following the trie -------------------------------------------------------------------

    def _tokens(self, terminal: Terminal, place: Place, outer: Outer, node: int) -> Ids:
        """The tokens that go on from a node of the trie, in a terminal and behind it."""
        scan = self._scan(terminal, place, node)
        parts = [scan.within(terminal.left(place))]
        # Where many names lead to the same text, one look at it serves for all of them.
        text = self.language.text_behind(outer) if len(scan.crossings) > 1 else None
        for at, end in scan.crossings:
            if not terminal.reaches(place, end):
                continue
            if text is not None and not (found := self._scan(text, 0, at)).crossings:
                parts.append(found.tokens)
            else:
                parts.append(self._behind(self.language.after(outer, terminal, end), at))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _scan(self, terminal: Terminal, place: Place, node: int) -> Scan:
        key = (terminal, terminal.key(place, self.table.longest), node)
        found = self._scans.found.get(key)
        if found is None:
            found = terminal.scan(place, node, self.table, self.language.follow)
            self._scans.put(key, found)
        return found

    def _behind(self, outer: Outer, node: int) -> Ids:
        key = (outer, node)
        found = self._open_tokens.found.get(key)
        if found is None:
            ways = self._ways(outer)
            parts = [self._tokens(other, other.start, inside, node) for other, inside in ways]
            found = self._open_tokens.put(key, _sorted(parts))
        return found


def _sorted(parts: Sequence[Ids]) -> Ids:
    """The tokens of all parts, each once."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return _NONE
    found = parts[0]
    if len(parts) > 1 or np.any(found[1:] <= found[:-1]):
        # Two sorted runs or more: merging them is quicker than a hash over all.
        found = np.sort(np.concatenate(parts), kind="stable")
        found = found[np.concatenate(([True], found[1:] != found[:-1]))]
    found.setflags(write=False)
    return found


def _readonly(numbers: Sequence[int] | Ids) -> Ids:
    found = np.array(numbers, np.int64)
    found.setflags(write=False)
    return found


_NONE: Ids = _readonly([])
