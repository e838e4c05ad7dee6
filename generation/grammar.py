"""The synchronous grammar: rules that build a program and its question piece by piece.

Rules files are read by `generation.rules_file`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from kopl.functions import Function
from kopl.types import Kind, Type

ROOT = "ROOT"
ONE = "one"  # the form that is meant when a rule or a slot names none
# The forms that speak of one entity, so that the program must find exactly one.
SINGULAR = frozenset((ONE, "which"))
# The form that is meant by "canonical"; "canonical many" is the same of another form. Only the
# paper's single form of a question uses them; it uses the first wording of a form without one.
CANONICAL = "canonical"
# What a wording begins with that is written in small letters, as people type.
SMALL = "~"
# How the answer of a ROOT is read from its denotation, where it is not the only string of it.
EXISTS, SEVERAL = "exists", "several"
# The form of what is said apart from the rest of a rule; it need not mention everything.
REST = "rest"
WHAT = "what"  # the slot that is "who" when the rule was drawn for a person, else "what"
ITS = "its"  # the slot that is "his", "her", "its" or "their", by what the rule was drawn for


@dataclass(frozen=True, slots=True)
class Variable:
    """A textual argument that sampling fills in; its kind is that of its place.

    ``text`` is the only one that it may be, where the rule says which: "$relation=capital".
    """

    name: str
    kind: Kind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A non-terminal of a program; ``name`` has a prime for each further occurrence.

    ``left`` is the left side of the rules that it stands for.
    """

    name: str
    left: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", self.name.rstrip("'"))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A call whose inputs may be non-terminals and whose textual arguments may be variables."""

    function: Function
    inputs: tuple[Part, ...]
    arguments: tuple[str | Variable, ...]


Part: TypeAlias = Pattern | Symbol


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a wording: a variable or non-terminal, its form, and texts put inside it.

    ``brief``: what stands here has no relative clause inside, so that what follows belongs to the
    whole.
    """

    name: str
    form: str
    arguments: tuple[Text, ...] = ()
    brief: bool = False


Text: TypeAlias = tuple["str | Slot", ...]


@dataclass(frozen=True)
class Rule:
    """A left side, a program and its wordings by form; ``strategy`` is set for ROOT.

    ``asks`` says how the answer of a ROOT is read: "" for one string, "several" for a list,
    "exists" for yes and no by a count, "is NAME" for yes and no by the name that the non-terminal
    or variable NAME has. ``height`` is the length of the shortest derivation that begins with the
    rule, ``reach`` the functions that derivations from it can have, ``single`` the non-terminals
    that all its wordings speak of as of one; ``line`` is its line in the file and ``lines`` those
    of its wordings.
    """

    left: str
    program: Part
    texts: Mapping[str, tuple[Text, ...]]
    line: int
    lines: Mapping[Text, int]
    strategy: str = ""
    weight: int = 1
    asks: str = ""
    height: int = field(default=0, compare=False)
    reach: frozenset[Function] = field(default=frozenset(), compare=False)
    single: frozenset[str] = field(default=frozenset(), compare=False)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The non-terminals of its program, in order."""
        return tuple(_symbols(self.program))

    @property
    def named(self) -> str:
        """The non-terminal or "$variable" whose name says yes; "" where none does."""
        return self.asks.removeprefix("is ") if self.asks.startswith("is ") else ""

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The functions of its program, in order."""
        return tuple(_functions(self.program))


def _symbols(part: Part) -> Iterator[Symbol]:
    """The non-terminals of a program side, in order."""
    if isinstance(part, Symbol):
        yield part
    else:
        for inner in part.inputs:
            yield from _symbols(inner)


def variables(part: Part) -> Iterator[Variable]:
    """The variables of a program side, in order."""
    if isinstance(part, Pattern):
        for inner in part.inputs:
            yield from variables(inner)
        yield from (a for a in part.arguments if isinstance(a, Variable))


def _functions(part: Part) -> Iterator[Function]:
    """The functions of a program side, in order."""
    if isinstance(part, Pattern):
        for inner in part.inputs:
            yield from _functions(inner)
        yield part.function


def slots(text: Text) -> Iterator[Slot]:
    """The slots of a wording, those inside of slots too."""
    for part in text:
        if isinstance(part, Slot):
            yield part
            for inner in part.arguments:
                yield from slots(inner)


@dataclass(frozen=True)
class Grammar:
    """The rules by left side, and the type that each left side gives.

    ``shares`` are the percents of the asking strategies that the file states, ``short`` the share
    of programs of up to three calls, None where it states none. ``wordings``: so many of what may
    be said for a name are drawn among, the first ones; None for all.
    """

    rules: Mapping[str, tuple[Rule, ...]]
    types: Mapping[str, Type]
    shares: Mapping[str, float] = field(default_factory=dict)
    short: float | None = None
    wordings: int | None = None

    @property
    def strategies(self) -> list[str]:
        """The asking strategies, in the order of the file."""
        return list(dict.fromkeys(rule.strategy for rule in self.rules[ROOT]))
