"""From programs to the steps that write them: what a pointer model learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kb.schema import Key
from kb.values import NO_UNIT, ValueReadError, read_quantity
from kopl.answer_forms import PLAIN, Asking
from kopl.example import Example
from kopl.functions import Function
from kopl.program import Call, post_order
from kopl.types import Kind
from parsers.actions import (
    FUNCTION,
    IS_NAME,
    KNOWN,
    START,
    UNIT,
    Actions,
    Draft,
    is_string,
    meant,
    slots_of,
)
from parsers.linking import Linker
from parsers.spelling import foldings, letters, similarity
from parsers.tokens import LONGEST_SPAN, Question

# A span that is less similar to a name is no wording of it, whatever is nearest.
SIMILAR = 60
# The spans that are looked up, of those that are similar enough.
MOST_TRIED = 4
# How often a text must be meant without being said to become a known text.
LEAST_KNOWN = 2

Span = tuple[int, int]


@dataclass(frozen=True)
class ActionStep:
    """One step of a program: its slot, function, allowed actions, and what is right.

    ``action`` numbers an entry of `Actions`, or ``token`` a token of the question. ``start`` is
    the token at which the text being copied begins, -1 where none is.
    """

    slot: str
    function: str
    allowed: tuple[int, ...]
    action: int = -1
    token: int = -1
    start: int = -1


class NotExpressible(Exception):
    """A program with an argument that neither the question nor the schema contains.

    ``known`` is the entry of `Actions` that would help, or None.
    """

    def __init__(self, message: str, known: tuple[str, str] | None = None) -> None:
        super().__init__(message)
        self.known = known


def steps_of(
    program: Call,
    question: Question,
    actions: Actions,
    linker: Linker,
    asking: Asking = PLAIN,
) -> list[ActionStep]:
    """The steps that build a program and say what is asked of it.

    Raises NotExpressible, naming the argument.
    """
    return _Writer(question, actions, linker).write(program, asking)


def known_texts(examples: Iterable[Example], linker: Linker) -> list[tuple[str, str]]:
    """The names and strings that the programs of several questions have and their wording lacks.

    As entries of `Actions`, in order.
    """
    actions = Actions.of(linker.kb)
    counts: Counter[tuple[str, str]] = Counter()
    for example in examples:
        try:
            question = Question.of(example.question)
            steps_of(example.program, question, actions, linker, example.asking)
        except NotExpressible as error:
            if error.known:
                counts[error.known] += 1
    return sorted(entry for entry, count in counts.items() if count >= LEAST_KNOWN)


class _Writer:
    """Writes the steps of one program."""

    def __init__(self, question: Question, actions: Actions, linker: Linker) -> None:
        self.question, self.actions, self.linker = question, actions, linker
        self._draft = Draft(question, linker)
        self._used: set[Span] = set()
        self._steps: list[ActionStep] = []

    def write(self, program: Call, asking: Asking) -> list[ActionStep]:
        for call in post_order(program):
            self._entry(FUNCTION, call.function.name)
            for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
                slots = slots_of(kind)
                if slots[0] == START:
                    self._copy(call.function, kind, text)
                else:
                    self._entry(slots[0], text)
        for word in asking.words[:1]:
            self._entry(FUNCTION, word)
        for name in asking.words[1:]:
            self._copy(IS_NAME, Kind.NAME, name)
        self._entry(FUNCTION, "")
        return self._steps

    def _step(self, action: int = -1, token: int = -1) -> None:
        draft = self._draft
        function = draft.function.name if draft.function else ""
        allowed = self.actions.allowed(draft)
        self._steps.append(ActionStep(draft.slot, function, allowed, action, token, draft.start))
        draft.take(self.actions.entries[action] if action >= 0 else token)

    def _entry(self, slot: str, text: str) -> None:
        number = self.actions.number(slot, text)
        if number is None or number not in self.actions.allowed(self._draft):
            raise NotExpressible(f"{slot} {text!r}")
        self._step(action=number)

    def _copy(self, function: Function, kind: Kind, text: str) -> None:
        key = self._draft.key
        content, unit = text, NO_UNIT
        if not is_string(kind, key, self.linker):
            content, unit = _split(kind, text, self.question)
        copyable = self.question.copyable(self._draft.constant())
        places = [
            place
            for place in self._places(kind, content, plain=unit == NO_UNIT)
            if place[1] in copyable.get(place[0], ())
            and self._meant(function, kind, place, unit, key) == text
        ]
        if not places:
            entry = (KNOWN[kind], text) if kind in KNOWN and unit == NO_UNIT else None
            number = self.actions.number(*entry) if entry else None
            if number is None:
                raise NotExpressible(f"{kind.name.lower()} {text!r}", entry)
            self._step(action=number)
            return
        # A name that is asked about was said already.
        used = set() if function is IS_NAME else self._used
        place = next((p for p in places if p not in used), places[0])
        self._used.add(place)
        self._step(token=place[0])
        self._step(token=place[1])
        if UNIT in slots_of(kind):
            self._entry(UNIT, unit)

    def _meant(
        self, function: Function, kind: Kind, place: Span, unit: str, key: Key | None
    ) -> str:
        text = self.question.span(*place)
        return meant(function, kind, text, unit, key, self.linker)

    def _places(self, kind: Kind, content: str, *, plain: bool) -> Sequence[Span]:
        """Where a text may stand in the question: as it is, folded, or nearly; the best first."""
        if places := self.question.spans_of(content):
            return places
        if kind not in KNOWN or not plain:
            return []
        called = (content, *(self.linker.names.aliases_of(content) if kind is Kind.NAME else ()))
        wanted = {key for text in called for key in foldings(text)} - {""}
        parts = [letters(word) for word in self.question.words]
        count = len(parts)
        spans = [
            (first, last)
            for first in range(count)
            for last in range(first, min(count, first + LONGEST_SPAN))
            if parts[first] and parts[last]
        ]
        exact = [
            (first, last)
            for first, last in spans
            if "".join(parts[first : last + 1]) in wanted
            or (first == last and not wanted.isdisjoint(foldings(self.question.words[first])))
        ]
        if exact:
            # The whole of "Trinidad and Tobago", though "Trinidad" is an alias of it.
            return sorted(exact, key=lambda span: span[0] - span[1])
        near = []
        for span in spans:
            text = self.question.span(*span)
            if len(content) <= 2 * len(text) <= 4 * len(content):
                near.append((-similarity(text, content), len(text), span))
        return [span for worse, _, span in sorted(near)[:MOST_TRIED] if -worse >= SIMILAR]


def _split(kind: Kind, text: str, question: Question) -> tuple[str, str]:
    """A constant as the text that was copied and its unit."""
    if kind not in (Kind.QUANTITY, Kind.ANY_VALUE):
        return text, NO_UNIT
    try:
        unit = read_quantity(text).unit
    except ValueReadError:
        return text, NO_UNIT
    number = text.removesuffix(f" {unit}")
    if unit == NO_UNIT or (kind is Kind.ANY_VALUE and not question.spans_of(number)):
        return text, NO_UNIT
    return number, unit
