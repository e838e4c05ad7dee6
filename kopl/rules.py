"""The typed programs over a knowledge base as rules without context, whatever notation they get.

A *shape* is a call of a function: the sets that its inputs come from, the parts of its arguments. A
*set* holds the programs of a type, as deep as a number of calls: there is one for each depth. Of
attribute values there is one for each kind of values that a later call compares them with. A *part*
is a key and the arguments beside it, so that these are values of the key's own types and units, or
one argument that has no key. All follows from the declarations of the functions and the schema;
nothing is said of any function by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from kb import KnowledgeBase
from kb.schema import Schema, ValueType
from kb.store import normalise_name, suggest
from kopl.automaton import KEYS, TYPE_OF, type_of_key, types_without_key
from kopl.functions import FUNCTIONS, Function
from kopl.types import Kind, Type
from kopl_base.errors import KoplError

# --- what a text may be ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """One of these texts."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    """A constant of any of the types; quantities in one of the units, None: in any.

    ``types`` without any: whatever text.
    """

    types: frozenset[ValueType]
    units: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Several:
    """A text of any of the terminals of these names."""

    names: tuple[str, ...]


Terminal: TypeAlias = Listed | Constant | Several

TEXT = Constant(frozenset({"string"}))


# --- rules ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A call: its function, the sets of its inputs, the parts of its arguments."""

    function: Function
    inputs: tuple[str, ...]
    parts: tuple[str, ...]


@dataclass
class Rules:
    """Sets, parts of arguments and terminals by their names; the set ``start`` is of programs.

    A set holds shapes and the names of other sets that are in it. A part holds the ways to write
    it, each the names of one terminal or several.
    """

    sets: dict[str, list[Shape | str]] = field(default_factory=dict)
    parts: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    terminals: dict[str, Terminal] = field(default_factory=dict)


START = "start"


def rules(kb: KnowledgeBase | None, names: Iterable[str] | None = None, *, depth: int) -> Rules:
    """The rules of all programs that type and are at most ``depth`` calls deep.

    They name what the knowledge base has, and of its entities and concepts find only those of the
    ``names`` (None: all); without a knowledge base, any text may be a name. Raises KoplError for a
    name that the knowledge base does not have and for a depth below 1.
    """
    if depth < 1:
        raise KoplError(f"a program is at least 1 call deep, not {depth}")
    return _Derivation(_Vocabulary(kb, names), depth).rules


class _Vocabulary:
    """The texts that may stand where the kinds of arguments stand."""

    def __init__(self, kb: KnowledgeBase | None, names: Iterable[str] | None) -> None:
        self._schema = None if kb is None else Schema.of(kb)
        self._names = None if names is None else self._known(names)

    def _known(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names as an argument reads them, each once and sorted."""
        wanted = sorted({normalise_name(name) for name in names} - {""})
        if self._schema is not None:
            kb = self._schema.kb
            for name in wanted:
                if not len(kb.named(name)):
                    near = suggest(kb, name, ("entity", "concept"))
                    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
                    raise KoplError(f"the knowledge base has no entity or concept {name!r}{hint}")
        return tuple(wanted)

    def terminal(self, kind: Kind) -> Terminal:
        """The texts of a kind that needs no key beside it: a name, a relation, a word."""
        if kind.choices:
            return Listed(kind.choices)
        if kind in _CONSTANTS:
            return self.constant(kind, _ANY)
        if kind is Kind.NAME and self._names is not None:
            return Listed(self._names)
        schema = self._schema
        if schema is None:
            return TEXT
        if kind is Kind.NAME:
            return Listed(tuple(schema.nodes))
        if kind is Kind.CONCEPT:
            return Listed(tuple(schema.concepts))
        assert kind is Kind.RELATION, kind
        return Listed(tuple(sorted({name for name in schema.kb.relations if name})))

    def constant(self, kind: Kind, values: KeyValues) -> Constant:
        """The constants of a kind that may stand beside a key with such values."""
        if kind in TYPE_OF:
            types = frozenset({TYPE_OF[kind]})
        else:
            # A text may be anything, so that nothing else need be said where a key has texts.
            types = TEXT.types if not values.types or "string" in values.types else values.types
        return Constant(types, values.units if "quantity" in types else None)

    def keys(self, qualifier: bool, type: ValueType | None) -> dict[KeyValues, Terminal]:
        """The keys with values of the type (None: any), by all that their values are."""
        return {
            values: keys
            for values, keys in self._keys[qualifier].items()
            if type is None or not values.types or type in values.types
        }

    def constants(self, values: KeyValues) -> set[Constant]:
        """What values of a key may be compared with by a call that takes them."""
        return {
            self.constant(kind, values)
            for kind in _COMPARED
            if not values.types or TYPE_OF[kind] in values.types
        }

    @cached_property
    def _keys(self) -> dict[bool, dict[KeyValues, Terminal]]:
        schema = self._schema
        if schema is None:
            return {qualifier: {_ANY: TEXT} for qualifier in (False, True)}
        found: dict[bool, dict[KeyValues, list[str]]] = {False: {}, True: {}}
        for qualifier, groups in found.items():
            for name in sorted(schema.keys(qualifier)):
                key = name, qualifier
                units = tuple(schema.units(key)) if schema.has(key, "quantity") else None
                groups.setdefault(KeyValues(schema.types(key), units), []).append(name)
        return {
            qualifier: {values: Listed(tuple(names)) for values, names in groups.items()}
            for qualifier, groups in found.items()
        }


@dataclass(frozen=True)
class KeyValues:
    """What the values of a key are: their types, none where nothing is known, and their units."""

    types: frozenset[ValueType]
    units: tuple[str, ...] | None


_ANY = KeyValues(frozenset(), None)


# --- derivation -----------------------------------------------------------------------------------


# How the sets of the most frequent types are called, as in `Function.signature`.
_SHORT = {Type.ENTITIES: "e", Type.FACTS: "f", Type.VALUES: "v"}


class _Derivation:
    """Derives the sets that are asked for, each once; a set that would be empty is None."""

    def __init__(self, vocabulary: _Vocabulary, depth: int) -> None:
        self._vocabulary = vocabulary
        self.rules = Rules()
        self._sets: dict[tuple[Type, int, Constant | None], str | None] = {}
        self._parts: dict[tuple[tuple[str, ...], ...], str] = {}
        self._terminals: dict[Terminal, str] = {}
        # Programs of a type that another one accepts are in the set of that type.
        outer = [type for type in Type if not any(o.accepts(type) for o in Type if o is not type)]
        named = [self._set(type, depth) for type in outer]
        self.rules.sets[START] = [name for name in named if name is not None]

    def _set(self, type: Type, depth: int, compared: Constant | None = None) -> str | None:
        """The name of the set of programs of a type; ``compared``: of a key with such values."""
        at = type, depth, compared
        if at not in self._sets:
            inner = (other for other in Type if other is not type and type.accepts(other))
            members: list[Shape | str] = [
                name for other in inner if (name := self._set(other, depth, compared)) is not None
            ]
            for function in FUNCTIONS.values():
                if function.output is type and (depth > 1 or not function.inputs):
                    members += self._shapes(function, depth, compared)
            mark = f"_{self._terminal(compared)}" if compared else ""
            name = f"{_SHORT.get(type, type.name)}{mark}_{depth}".lower()
            self._sets[at] = name if members else None
            if members:
                self.rules.sets[name] = members
        return self._sets[at]

    def _shapes(self, function: Function, depth: int, compared: Constant | None) -> Iterator[Shape]:
        """The calls of a function that are at most so deep."""
        if types_without_key(function) and Type.VALUES in function.inputs:
            # Each kind of values that they may be compared with, and the inputs that give those.
            (kind,) = (kind for _, kind in function.arguments if kind in _COMPARED)
            keys = self._vocabulary.keys(False, TYPE_OF[kind])
            constants = dict.fromkeys(self._vocabulary.constant(kind, values) for values in keys)
            for constant in constants:
                yield from self._calls(function, depth, constant, constant)
        else:
            yield from self._calls(function, depth, None, compared)

    def _calls(
        self, function: Function, depth: int, given: Constant | None, compared: Constant | None
    ) -> Iterator[Shape]:
        """The call with inputs and arguments that are compared with a constant, if there is one."""
        inputs = [
            self._set(type, depth - 1, given if type is Type.VALUES else None)
            for type in function.inputs
        ]
        known = tuple(name for name in inputs if name is not None)
        parts = [self._part(ways) for ways in self._ways(function, compared)]
        told = tuple(name for name in parts if name is not None)
        if len(known) == len(inputs) and len(told) == len(parts):
            yield Shape(function, known, told)

    def _part(self, ways: Iterable[tuple[str, ...]]) -> str | None:
        """The name of a part of arguments; None where nothing can stand there."""
        found = tuple(ways)
        if found and found not in self._parts:
            name = "_".join(found[0]) if len(found) == 1 else f"part_{len(self._parts) + 1}"
            self._parts[found] = f"{name.lower()}"
            self.rules.parts[self._parts[found]] = list(found)
        return self._parts[found] if found else None

    def _ways(
        self, function: Function, compared: Constant | None
    ) -> Iterator[Iterator[tuple[str, ...]]]:
        """The ways to write each part of the arguments of a function.

        ``compared``: the one constant that stands without a key, or else what the values of the
        key that is asked for are compared with.
        """
        kinds = [kind for _, kind in function.arguments]
        begins = [at for at, kind in enumerate(kinds) if kind in KEYS]
        for kind in kinds[: begins[0] if begins else len(kinds)]:
            yield self._alone(kind, compared)
        asked = next((at for at in begins if not KEYS[kinds[at]]), None)
        for at, end in pairwise([*begins, len(kinds)]):
            yield self._beside(function, at, kinds[at:end], compared if at == asked else None)

    def _alone(self, kind: Kind, constant: Constant | None) -> Iterator[tuple[str, ...]]:
        """The one way to write an argument that has no key before it, or none."""
        terminal = self._vocabulary.terminal(kind)
        if constant is not None and kind in _CONSTANTS:
            terminal = constant
        if terminal != Listed(()):
            yield (self._terminal(terminal, kind),)

    def _beside(
        self, function: Function, at: int, kinds: Sequence[Kind], compared: Constant | None
    ) -> Iterator[tuple[str, ...]]:
        """The ways to write a key and what stands beside it, the keys of one way together."""
        vocabulary = self._vocabulary
        keys = vocabulary.keys(KEYS[kinds[0]], type_of_key(function, at))
        found: dict[tuple[str, ...], list[Terminal]] = {}
        for values, words in keys.items():
            if compared and compared not in vocabulary.constants(values):
                continue
            way = tuple(
                self._terminal(
                    vocabulary.constant(kind, values)
                    if kind in _CONSTANTS
                    else vocabulary.terminal(kind),
                    kind,
                )
                for kind in kinds[1:]
            )
            found.setdefault(way, []).append(words)
        for way, several in found.items():
            names = tuple(self._terminal(words, kinds[0]) for words in several)
            joined = names[0] if len(names) == 1 else self._terminal(Several(names), kinds[0])
            yield (joined, *way)

    def _terminal(self, terminal: Terminal, kind: Kind | None = None) -> str:
        """The name of a terminal, after what it is."""
        if terminal not in self._terminals:
            if isinstance(terminal, Constant):
                base = "_".join(sorted(terminal.types)).upper()
            else:
                assert kind is not None
                base = kind.name
            taken, number = self.rules.terminals, 1
            while (name := f"{base}_{number}" if number > 1 else base) in taken:
                number += 1
            self._terminals[terminal] = name
            self.rules.terminals[name] = terminal
        return self._terminals[terminal]


# The kinds of arguments that are constants, and those of one type.
_CONSTANTS = {kind for kind in (*TYPE_OF, Kind.ANY_VALUE) if not kind.choices}
_COMPARED = _CONSTANTS & TYPE_OF.keys()
