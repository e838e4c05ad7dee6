"""The target language of the decoder: typed actions that build a program call by call.

A program is written in post-order. A *step* has a slot (what is expected) and an action: a
function, a word of a fixed choice, an item of the knowledge base's schema, or a token of the
question (where a copied text starts or ends). Which actions a slot allows follows from the
declarations of the functions, so that whatever a decoder chooses is a well-typed program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kb import KnowledgeBase
from kb.errors import ValueReadError
from kb.store import NameKind
from kb.values import NO_UNIT, read_quantity
from kopl.errors import ParseError
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call, post_order
from kopl.types import Kind, Type
from parsers.tokens import Question, as_constant

MOST_CALLS = 20
MOST_OPEN = 4

START, END = "span start", "span end"
FUNCTION, UNIT = "function", "unit"
POINTERS = (START, END)

_SCHEMA: dict[Kind, NameKind] = {
    Kind.KEY: "key",
    Kind.QUALIFIER_KEY: "qualifier key",
    Kind.RELATION: "relation",
    Kind.CONCEPT: "concept",
}


def slots_of(kind: Kind) -> tuple[str, ...]:
    """The slots that a textual argument of a kind is written in."""
    if kind.choices:
        return (kind.name.lower(),)
    if kind in _SCHEMA:
        return (_SCHEMA[kind],)
    if kind in (Kind.QUANTITY, Kind.ANY_VALUE):
        return (START, END, UNIT)
    return (START, END)


SLOTS = (
    FUNCTION, START, END, UNIT, *(kind.name.lower() for kind in Kind if kind.choices),
    *_SCHEMA.values(),
)  # fmt: skip

# What a copied text must read as; "text" is anything.
CONSTANTS = ("text", "quantity", "time")


def _constant(kind: Kind) -> str:
    return {Kind.QUANTITY: "quantity", Kind.TIME: "time"}.get(kind, "text")


_SET_TYPES = (Type.ENTITIES, Type.FACTS)


@dataclass(frozen=True)
class Actions:
    """The actions other than copying, numbered: the end, functions, words, schema items."""

    entries: tuple[tuple[str, str], ...]  # (slot, text)
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict, compare=False, repr=False)
    _allowed: dict[object, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    _of_slot: dict[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._numbers.update({entry: number for number, entry in enumerate(self.entries)})

    @classmethod
    def of(cls, kb: KnowledgeBase) -> Actions:
        """The actions for programs over a knowledge base."""
        entries = [(FUNCTION, "")] + [(FUNCTION, name) for name in FUNCTIONS]
        for kind in Kind:
            entries += [(kind.name.lower(), word) for word in kind.choices]
        for names in _SCHEMA.values():
            entries += [(names, name) for name in kb.names_of_kind(names)]
        entries += [(UNIT, unit) for unit in sorted({NO_UNIT, *kb.units})]
        return cls(tuple(dict.fromkeys(entries)))

    def __len__(self) -> int:
        return len(self.entries)

    def number(self, slot: str, text: str) -> int | None:
        """The number of an action, or None when there is none."""
        return self._numbers.get((slot, text))

    def of_slot(self, slot: str) -> tuple[int, ...]:
        """All actions of a slot (none for a slot that copies)."""
        if slot not in self._of_slot:
            numbers = (n for n, entry in enumerate(self.entries) if entry[0] == slot)
            self._of_slot[slot] = tuple(numbers)
        return self._of_slot[slot]

    def allowed(self, state: State) -> tuple[int, ...]:
        """The actions that the slot at hand allows (none for a slot that copies)."""
        key = state.signature()
        if key not in self._allowed:
            if state.slot == FUNCTION:
                names = state.functions()
                found = [self._numbers[FUNCTION, name] for name in names]
            else:
                found = list(self.of_slot(state.slot))
            self._allowed[key] = tuple(found)
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


class State:
    """A program under construction: calls that are ready, and the call being written."""

    def __init__(self, question: Question, kb: KnowledgeBase) -> None:
        self.question, self.kb = question, kb
        self.ready: list[Call] = []
        self.function: Function | None = None
        self.calls = 0
        self.done = False
        self._slots: list[str] = []
        self._at = 0
        self._written: list[str | int] = []

    @property
    def slot(self) -> str:
        """What the next action must be."""
        return FUNCTION if self.function is None else self._slots[self._at]

    def tokens(self) -> list[int]:
        """The tokens that the slot at hand may point to (none for a slot that does not copy).

        A number is copied from where the question has one, a time from where it has a time.
        """
        if self.slot not in POINTERS:
            return []
        spans = self.question.copyable(_constant(self._kind))
        if self.slot == START:
            return list(spans)
        start = self._written[-1]
        assert isinstance(start, int)
        return spans[start]

    @property
    def _kind(self) -> Kind:
        """The kind of the argument being written."""
        assert self.function is not None
        kinds = [kind for _, kind in self.function.arguments for _ in slots_of(kind)]
        return kinds[self._at]

    def signature(self) -> object:
        """Equal for states that allow the same actions."""
        if self.function is not None:
            return self.slot
        readable = [bool(self.question.copyable(name)) for name in CONSTANTS]
        types = [call.function.output for call in self.ready]
        return (*types, *readable, self.calls >= MOST_CALLS)

    def functions(self) -> list[str]:
        """The functions that may come next; "" ends the program."""
        types = [call.function.output for call in self.ready]
        return [name for name in functions_after(types, self.calls) if self._sayable(name)]

    def _sayable(self, name: str) -> bool:
        """Whether the question has what a function's texts must be copied from."""
        kinds = [kind for _, kind in FUNCTIONS[name].arguments] if name else []
        wanted = {_constant(kind) for kind in kinds if START in slots_of(kind)}
        return all(self.question.copyable(constant) for constant in wanted)

    def take(self, action: tuple[str, str] | int) -> None:
        """Go on by an action: an entry of `Actions`, or the number of a token."""
        if self.function is None:
            assert not isinstance(action, int)
            if not action[1]:
                self.done = True
                return
            self.function = FUNCTIONS[action[1]]
            self._slots = [s for _, kind in self.function.arguments for s in slots_of(kind)]
            self._at, self._written = 0, []
        else:
            self._written.append(action if isinstance(action, int) else action[1])
            self._at += 1
        if self._at == len(self._slots):
            self._close()

    def _close(self) -> None:
        function = self.function
        assert function is not None
        written = iter(self._written)
        texts = []
        for _, kind in function.arguments:
            parts = [next(written) for _ in slots_of(kind)]
            if isinstance(parts[0], str):
                texts.append(parts[0])
                continue
            text = self.question.span(parts[0], int(parts[1]))
            unit = parts[2] if len(parts) > 2 else NO_UNIT
            assert isinstance(unit, str)
            texts.append(copied(kind, text, unit, self.kb))
        cut = len(self.ready) - function.arity
        self.ready[cut:] = [Call(function, tuple(self.ready[cut:]), tuple(texts))]
        self.function = None
        self.calls += 1

    def program(self) -> Call:
        """The program, once it is done."""
        return self.ready[-1]


class FreeState(State):
    """The same without constraints: any function may follow, any span may be copied.

    `take` raises ParseError where a function finds too few inputs or too many calls are left over.
    """

    def tokens(self) -> list[int]:
        """All tokens; for the end of a span, those from its start on."""
        if self.slot not in POINTERS:
            return []
        start = self._written[-1] if self.slot == END else 0
        assert isinstance(start, int)
        return list(range(start, len(self.question.places)))

    def signature(self) -> object:
        """Equal for states that allow the same actions."""
        return ("free", self.slot, self.calls >= MOST_CALLS)

    def functions(self) -> list[str]:
        """All functions, until there are too many calls; "" ends the program."""
        return [""] if self.calls >= MOST_CALLS else ["", *FUNCTIONS]

    def take(self, action: tuple[str, str] | int) -> None:
        """Go on by an action."""
        if self.function is None:
            assert not isinstance(action, int)
            if not action[1] and len(self.ready) != 1:
                raise ParseError(f"{len(self.ready)} calls are left over at the end")
            if action[1] and FUNCTIONS[action[1]].arity > len(self.ready):
                raise ParseError(f"{action[1]} finds too few inputs", self.calls)
        super().take(action)


def copied(kind: Kind, text: str, unit: str, kb: KnowledgeBase) -> str:
    """The textual argument that a copied span stands for."""
    if kind is Kind.NAME:
        return _known_name(text, kb)
    if kind is Kind.STRING:
        return text
    text = as_constant(text)
    if unit != NO_UNIT:
        text = f"{text} {unit}"
    return text


def _known_name(text: str, kb: KnowledgeBase) -> str:
    lower = text[:1].lower() + text[1:]  # a name may begin the question
    for name in (text, text.removeprefix("the "), text.removesuffix("'s"), f"The {text}", lower):
        if len(kb.named(name)):
            return name
    return text


# --- from programs to steps ------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One step of a program: its slot, function, allowed actions, and what is right.

    ``action`` numbers an entry of `Actions`, or ``token`` a token of the question.
    """

    slot: str
    function: str
    allowed: tuple[int, ...]
    action: int = -1
    token: int = -1


class NotExpressible(Exception):
    """A program with an argument that neither the question nor the schema contains."""


def steps_of(program: Call, question: Question, actions: Actions, kb: KnowledgeBase) -> list[Step]:
    """The steps that build a program; raises NotExpressible, naming the argument."""
    spans = question.spans()
    state = State(question, kb)
    steps: list[Step] = []

    def step(action: int = -1, token: int = -1) -> None:
        function = state.function.name if state.function else ""
        steps.append(Step(state.slot, function, actions.allowed(state), action, token))
        state.take(actions.entries[action] if action >= 0 else token)

    def entry(slot: str, text: str) -> None:
        number = actions.number(slot, text)
        if number is None or number not in actions.allowed(state):
            raise NotExpressible(f"{slot} {text!r}")
        step(action=number)

    used: set[tuple[int, int]] = set()
    for call in post_order(program):
        entry(FUNCTION, call.function.name)
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
            slots = slots_of(kind)
            if slots[0] != START:
                entry(slots[0], text)
                continue
            content, unit = _split(kind, text, spans)
            places = spans.get(content)
            if not places and kind is Kind.NAME:
                begun = content[:1].upper() + content[1:]
                places = spans.get(begun) if _known_name(begun, kb) == content else None
            if not places:
                raise NotExpressible(f"{kind.name.lower()} {text!r}")
            place = next((p for p in places if p not in used), places[0])
            used.add(place)
            step(token=place[0])
            step(token=place[1])
            if UNIT in slots:
                entry(UNIT, unit)
    entry(FUNCTION, "")
    return steps


def _split(kind: Kind, text: str, spans: Iterable[str]) -> tuple[str, str]:
    """A constant as the text that was copied and its unit."""
    if kind is Kind.QUANTITY or (kind is Kind.ANY_VALUE and text not in spans):
        try:
            unit = read_quantity(text).unit
        except ValueReadError:
            return text, NO_UNIT
        if unit != NO_UNIT:
            return text.removesuffix(f" {unit}"), unit
    return text, NO_UNIT
