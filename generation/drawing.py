"""What drawing a part of a program takes and gives, and the registry of the ways to draw."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from generation.derivation import Derivation
from generation.grammar import Pattern, Symbol, Variable
from generation.lexicon import (
    Direction,
    Words,
)
from generation.pools import Form, NoDraw, Qualified
from kopl import functions as f
from kopl.functions import Function
from kopl.program import Call

if TYPE_CHECKING:
    from generation.sampler import Sampler

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


# A part that was drawn: the left side that it stands for, what it was drawn for, and itself.
Spare: TypeAlias = "tuple[str, Want, Derivation, Drawn]"


@dataclass(slots=True)
class Scope:
    """What the variables and non-terminals of one rule became so far.

    ``single`` are the non-terminals that must give one entity. ``spares`` are parts that rules
    tried before had drawn in vain, ``taken`` the parts of this one. ``least`` is how many calls the
    rule's program must have yet, ``open`` how many of its parts are to come.
    """

    words: dict[str, Words] = field(default_factory=dict)
    parts: dict[str, Derivation] = field(default_factory=dict)
    single: frozenset[str] = frozenset()
    spares: list[Spare] = field(default_factory=list)
    taken: list[Spare] = field(default_factory=list)
    least: int = 0
    open: int = 0

    def begin(self, *, own: int, parts: int) -> None:
        """Take note of the rule: how many calls of its own it has, and how many parts."""
        self.least, self.open = self.least - own, parts

    def least_of_next(self) -> int:
        """How many calls the next part must have: the last one makes up for all that is missing.

        Conditions stand in front, and what goes on behind them.
        """
        return max(0, self.least) if self.open <= 1 else 0

    def spare(self, left: str, want: Want) -> tuple[Derivation, Drawn] | None:
        """A part for a left side that was drawn in vain, and not taken yet, for as much or more."""
        for known, drawn_for, derivation, drawn in self.spares:
            if known != left or drawn_for.target != want.target or drawn_for.path != want.path:
                continue
            if want.form not in ("any", drawn_for.form) or drawn_for.budget > want.budget:
                continue
            if want.qualified not in (None, drawn_for.qualified):
                continue
            if all(derivation is not part for part in self.parts.values()):
                return derivation, drawn
        return None

    def take(self, symbol: Symbol, want: Want, derivation: Derivation, drawn: Drawn) -> Drawn:
        """Use a part for a non-terminal."""
        self.least, self.open = self.least - drawn.call.size, self.open - 1
        self.parts[symbol.name] = derivation
        self.taken.append((symbol.left, want, derivation, drawn))
        return drawn

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


Way: TypeAlias = "Callable[[Sampler, Pattern, Scope, Want], Drawn]"
WAYS: dict[str, Way] = {}


def draws(*functions: Function) -> Callable[[Way], Way]:
    """Register how functions are drawn."""

    def register(way: Way) -> Way:
        if list(inspect.signature(way).parameters) != ["sampler", "pattern", "scope", "want"]:
            raise TypeError(f"{way.__name__} is no way to draw")
        WAYS.update({function.name: way for function in functions})
        return way

    return register


LOCATING = frozenset(
    function for function in f.FUNCTIONS.values() if f.COUNT.inputs[0].accepts(function.output)
)
FORMS: dict[str, Form] = {
    "FilterStr": "string",
    "FilterNum": "quantity",
    "FilterYear": "time",
    "FilterDate": "date",
}


def direction_of(text: str) -> Direction:
    """The direction that a textual argument names."""
    return "forward" if text == "forward" else "backward"
