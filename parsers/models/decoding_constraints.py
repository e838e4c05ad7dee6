"""Which tokens may come next in the searches of models with closed vocabularies, or of texts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kb import KnowledgeBase
from kb.values import NO_UNIT, ValueReadError, read_quantity
from kopl.answer_forms import ASKED, IS, words_behind
from kopl.automaton import ITEMS, Automaton, Prefix
from kopl.functions import FUNCTIONS
from kopl.types import Kind
from kopl_base.errors import KoplError
from parsers.constrain import (
    Constraint,
    State,
    TokenTable,
)
from parsers.languages import OutputLanguage
from parsers.tokens import is_time

Ids = npt.NDArray[np.int64]

# Words that are looked at one by one for what may stand behind them, and states remembered.
FEW, MOST_REMEMBERED = 200, 50_000


def numbers_by_kind(texts: Sequence[str], kb: KnowledgeBase) -> dict[object, list[int]]:
    """For each kind of textual argument the numbers of the texts that may stand there."""
    fits: dict[Kind, Callable[[str], bool]] = {}
    for kind in Kind:
        if kind.choices:
            fits[kind] = frozenset(kind.choices).__contains__
        elif kind in ITEMS:
            fits[kind] = frozenset(kb.names_of_kind(ITEMS[kind])).__contains__
    units = frozenset(kb.units)
    fits[Kind.NAME] = lambda text: len(kb.named(text)) > 0
    fits[Kind.QUANTITY] = lambda text: _is_quantity(text, units)
    fits[Kind.TIME] = is_time
    fits[Kind.STRING] = fits[Kind.ANY_VALUE] = lambda text: True
    return {
        kind: [number for number, text in enumerate(texts) if number and fits[kind](text)]
        for kind in Kind
    }


def _is_quantity(text: str, units: frozenset[str]) -> bool:
    try:
        unit = read_quantity(text).unit
    except ValueReadError:
        return False
    return unit == NO_UNIT or unit in units


class Calls(NamedTuple):
    """Where a sequence of functions is, and whether what is asked of the program was said."""

    prefix: Prefix
    is_asked: bool = False


class FunctionConstraint:
    """Functions in post-order that make a well-typed program; number 0 is the end.

    Behind the program may stand what is asked of it, where ``functions`` has the words.
    """

    def __init__(self, functions: Sequence[str], by_kind: Mapping[object, Sequence[int]]) -> None:
        self._names = functions
        self._numbers = {name: number for number, name in enumerate(functions)}
        # A function without any text for one of its arguments cannot be written.
        sayable = [
            function
            for function in FUNCTIONS.values()
            if all(by_kind[kind] for _, kind in function.arguments)
        ]
        self._automaton = Automaton(sayable, joins_beyond=True)
        self._asked = {
            word for word in ASKED if word in self._numbers and (word != IS or by_kind[Kind.NAME])
        }

    def start(self) -> Calls:
        """No calls; what their arguments are is not looked at."""
        return Calls(Prefix())

    def allowed(self, state: Calls) -> Ids:
        """The functions that may follow."""
        if state.is_asked:
            return np.zeros(1, np.int64)
        found = [self._numbers[one.name] for one in self._automaton.following(state.prefix)]
        if not state.prefix.may_end:
            return np.array(found, np.int64)
        words = self._asked.intersection(words_behind(state.prefix.ready[0].type))
        return np.array([0, *found, *sorted(map(self._numbers.__getitem__, words))], np.int64)

    def advance(self, state: Calls, token: int) -> Calls:
        """The state behind a call of a function."""
        if (name := self._names[token]) in ASKED:
            return state._replace(is_asked=True)
        begun = state.prefix.begun(FUNCTIONS[name])
        return Calls(begun if begun.function is None else begun.closed())


class ArgumentConstraint:
    """The arguments of one function, each of its kind, then the end (number 0)."""

    def __init__(self, function: str, by_kind: Mapping[object, Sequence[int]]) -> None:
        if function in ASKED:
            kinds = [Kind.NAME] if function == IS else []
        else:
            kinds = [kind for _, kind in FUNCTIONS[function].arguments]
        self._numbers = [np.array(by_kind[kind], np.int64) for kind in kinds]

    def start(self) -> int:
        """How many arguments there are already."""
        return 0

    def allowed(self, state: int) -> Ids:
        """The texts of the next argument's kind."""
        return self._numbers[state] if state < len(self._numbers) else np.zeros(1, np.int64)

    def advance(self, state: int, token: int) -> int:
        """One argument more."""
        return state + 1


def text_constraint(language: OutputLanguage, table: TokenTable) -> Constraint | None:
    """The texts of a language that can be spelt by the tokens of a table.

    None, with a warning, for tokens that cannot spell the language.
    """
    try:
        return language.constraint(table)
    except KoplError as error:
        warnings.warn(f"decoding is not constrained: {error}", stacklevel=2)
        return None


class WordConstraint:
    """The texts that can be joined from the words of a closed vocabulary; number 0 is the end.

    A name may begin with words of the vocabulary and not go on with any: then nothing is allowed.
    """

    def __init__(self, constraint: Constraint, size: int) -> None:
        self._constraint, self._size = constraint, size
        self._found: dict[State, Ids] = {}

    @classmethod
    def of(cls, language: OutputLanguage, words: Sequence[str]) -> WordConstraint | None:
        """The constraint of a language's texts; None, with a warning, where they are not spelt."""
        # The constraint looks ahead over single bytes, which the vocabulary does not have.
        spellings = [*(word.encode() or None for word in words), *(bytes([n]) for n in range(256))]
        found = text_constraint(language, TokenTable(spellings, end=0, marks=()))
        return cls(found, len(words)) if found else None

    def start(self) -> State:
        """The state before the first word."""
        return self._constraint.start()

    def allowed(self, state: State) -> Ids:
        """The words that may come next; where they are few, only those that lead somewhere."""
        if state not in self._found:
            found = self._words(state)
            if len(found) <= FEW:
                found = np.array([word for word in found if self._goes_on(state, int(word))], int)
            if len(self._found) > MOST_REMEMBERED:
                self._found.clear()
            self._found[state] = found
        return self._found[state]

    def advance(self, state: State, token: int) -> State:
        """The state behind a word."""
        return self._constraint.advance(state, token)

    def _words(self, state: State) -> Ids:
        found = self._constraint.allowed(state)
        return found[found < self._size]

    def _goes_on(self, state: State, word: int) -> bool:
        return not word or len(self._words(self._constraint.advance(state, word))) > 0
