"""The target language of the decoder: typed actions that build a program call by call.

A program is written in post-order. A *step* has a slot (what is expected) and an action: a
function, a word of a fixed choice, an item of the knowledge base's schema, a token of the question
(where a copied text starts or ends), or a *known text*, which questions mean without saying it.
Which actions a slot allows follows from the declarations of the functions, so that whatever a
decoder chooses is a well-typed program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kb import KnowledgeBase
from kb.store import NameKind
from kb.values import NO_UNIT
from kopl.automaton import KEYS
from kopl.functions import FUNCTIONS
from kopl.types import Kind, Type

if TYPE_CHECKING:
    from parsers.states import State

MOST_CALLS = 20
MOST_OPEN = 4

START, END = "span start", "span end"
FUNCTION, UNIT = "function", "unit"
POINTERS = (START, END)
# Known texts: what may be chosen instead of copying, by the kind of the argument.
KNOWN: dict[Kind, str] = {
    Kind.NAME: "known name",
    Kind.STRING: "known string",
    Kind.ANY_VALUE: "known string",
}

SCHEMA: dict[Kind, NameKind] = {
    Kind.KEY: "key",
    Kind.QUALIFIER_KEY: "qualifier key",
    Kind.RELATION: "relation",
    Kind.CONCEPT: "concept",
}


def slots_of(kind: Kind) -> tuple[str, ...]:
    """The slots that a textual argument of a kind is written in."""
    if kind.choices:
        return (kind.name.lower(),)
    if kind in SCHEMA:
        return (SCHEMA[kind],)
    if kind in (Kind.QUANTITY, Kind.ANY_VALUE):
        return (START, END, UNIT)
    return (START, END)


SLOTS = (
    FUNCTION, START, END, UNIT, *(kind.name.lower() for kind in Kind if kind.choices),
    *SCHEMA.values(),
)  # fmt: skip

_SET_TYPES = (Type.ENTITIES, Type.FACTS)


@dataclass(frozen=True)
class Actions:
    """The actions other than copying, numbered: functions, words, schema items, known texts.

    An entry is (slot, text), of a known text (its sort in `KNOWN`, text). The first one, a function
    without a name, ends the program.
    """

    entries: tuple[tuple[str, str], ...]
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict, compare=False, repr=False)
    _allowed: dict[object, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    _of_slot: dict[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._numbers.update({entry: number for number, entry in enumerate(self.entries)})

    @classmethod
    def of(cls, kb: KnowledgeBase, known: Iterable[tuple[str, str]] = ()) -> Actions:
        """The actions for programs over a knowledge base; ``known`` texts as entries.

        A known name that the knowledge base does not have is left out.
        """
        entries = [(FUNCTION, "")] + [(FUNCTION, name) for name in FUNCTIONS]
        for kind in Kind:
            entries += [(kind.name.lower(), word) for word in kind.choices]
        for names in SCHEMA.values():
            entries += [(names, name) for name in kb.names_of_kind(names)]
        entries += [(UNIT, unit) for unit in sorted({NO_UNIT, *kb.units})]
        for slot, text in sorted(set(known)):
            if slot != KNOWN[Kind.NAME] or len(kb.named(text)):
                entries.append((slot, text))
        return cls(tuple(dict.fromkeys(entries)))

    def __len__(self) -> int:
        return len(self.entries)

    def number(self, slot: str, text: str) -> int | None:
        """The number of an action, or None when there is none."""
        return self._numbers.get((slot, text))

    def of_slot(self, slot: str) -> tuple[int, ...]:
        """All actions of a slot or of a sort of known texts (none for a slot that copies)."""
        if slot not in self._of_slot:
            numbers = (n for n, entry in enumerate(self.entries) if entry[0] == slot)
            self._of_slot[slot] = tuple(numbers)
        return self._of_slot[slot]

    def _of(self, slot: str, texts: Sequence[str]) -> tuple[int, ...]:
        """The actions of a slot for some texts."""
        return tuple(sorted({self._numbers[slot, text] for text in texts}))

    def allowed(self, state: State) -> tuple[int, ...]:
        """The actions that the slot at hand allows; beside copying, the known texts."""
        key = state.signature()
        if key not in self._allowed:
            if state.slot == FUNCTION:
                names = state.functions()
                found = tuple(self._numbers[FUNCTION, name] for name in names)
            elif state.slot == START:
                found = self.of_slot(KNOWN.get(state.kind, ""))
            elif state.kind in KEYS:
                found = self._of(state.slot, state.keys())
            elif state.slot == UNIT:
                found = self._of(UNIT, state.units())
            else:
                found = self.of_slot(state.slot)
            self._allowed[key] = found
        return self._allowed[key]


def functions_after(types: Sequence[Type], calls: int) -> list[str]:
    """The functions that may follow calls in post-order; "" ends the program.

    ``types`` are the outputs of the calls that no later one takes yet, ``calls`` is the number of
    all. Whatever is chosen, the program can be brought to a well-typed end.
    """
    found = [""] if len(types) == 1 else []
    late = calls >= MOST_CALLS
    for name, function in FUNCTIONS.items():
        arity = function.arity
        if late and not (arity == 2 and len(types) >= 2):
            continue
        if arity > len(types):
            continue
        given = types[len(types) - arity :]
        if not all(n.accepts(t) for n, t in zip(function.inputs, given, strict=True)):
            continue
        left = len(types) - arity + 1
        # What is no set can only be the end of a program, so nothing may stand beside it.
        beside = [*types[: len(types) - arity], function.output]
        if left > MOST_OPEN or (left > 1 and not all(t in _SET_TYPES for t in beside)):
            continue
        found.append(name)
    return found
