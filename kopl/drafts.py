"""Programs while they are written: trees with holes, how they change, what they give so far.

A `Draft` has the form of a `kopl.program.Call`, but a function, an argument or an input may be
missing. A call always has as many inputs and arguments as its function takes. Places are *paths*:
the numbers of the inputs that lead from the last call, which has the path ``()``, to a call.

>>> draft = read_draft('Relate(?, "capital", ?)')
>>> str(draft.filled((), 0, "Find").with_argument((0,), 0, "Norway"))
'Relate(Find("Norway"), "capital", ?)'
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from kopl.errors import LimitError, ParseError, TypingError
from kopl.functions import Function, Word
from kopl.program import Call, linked, post_order
from kopl.text import (
    MAX_DEPTH,
    MAX_SIZE,
    function_named,
    inputs_come_first,
    is_serialised,
    read,
    read_nested_as,
)
from kopl.typecheck import mismatch, misread, wrong_count
from kopl.types import Kind
from kopl_base.errors import KoplError

Path: TypeAlias = tuple[int, ...]
# "wrap" is the place right above a call.
SlotKind = Literal["function", "argument", "input", "wrap"]

HOLE_TEXT = "?"
# A text may say one of these as well as another: all are names, or all are constants.
_ALIKE = (
    frozenset({Kind.NAME, Kind.CONCEPT}),
    frozenset({Kind.STRING, Kind.QUANTITY, Kind.TIME, Kind.ANY_VALUE}),
)


class EditError(KoplError):
    """A change that a draft has no place for, or that would leave no tree."""

    kind = "edit"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place of a draft that holds one thing: a function, an argument, or a call as an input.

    ``path`` leads to the call; ``index`` is the number of the argument or of the input.
    """

    path: Path
    kind: SlotKind
    index: int = 0

    def to_json(self) -> dict[str, Any]:
        """The object that services give."""
        return {"path": [*self.path], "slot": self.kind, "index": self.index}


@dataclass(frozen=True, slots=True)
class Problem:
    """What does not type at a call; ``index`` is the number of the argument, if it is one."""

    path: Path
    index: int | None
    message: str

    def to_json(self) -> dict[str, Any]:
        """The object that `Draft.view` holds."""
        return {"path": [*self.path], "index": self.index, "message": self.message}


@dataclass(frozen=True)
class Draft:
    """A call of a program that may have holes; without a function it is a hole itself.

    Immutable, compared by content: every change gives another draft. Raises TypingError for more
    inputs or arguments than the function takes (missing ones are holes), and LimitError where the
    tree grows too large.
    """

    function: Function | None = None
    inputs: tuple[Draft, ...] = ()
    arguments: tuple[str | None, ...] = ()
    size: int = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)
    holes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        function, inputs, arguments = self.function, self.inputs, self.arguments
        if function is None:
            if inputs or arguments:
                raise TypingError("a hole has neither inputs nor arguments; give it a function")
            holes = 1
        else:
            missing = function.arity - len(inputs), len(function.arguments) - len(arguments)
            if min(missing) < 0:
                texts = [text for text in arguments if text is not None]
                raise TypingError(wrong_count(function, len(inputs), texts))
            if missing[0]:
                put(self, "inputs", inputs := (*inputs, *[HOLE] * missing[0]))
            if missing[1]:
                put(self, "arguments", arguments := (*arguments, *[None] * missing[1]))
            holes = arguments.count(None) + sum(one.holes for one in inputs)
        put(self, "holes", holes)
        put(self, "size", 1 + sum(one.size for one in inputs))
        put(self, "depth", 1 + max([one.depth for one in inputs], default=0))
        if self.depth > MAX_DEPTH:
            raise LimitError(f"the program is more than {MAX_DEPTH} calls deep")
        if self.size > MAX_SIZE:
            raise LimitError(f"the program has more than {MAX_SIZE} calls")

    @staticmethod
    def of(program: Call) -> Draft:
        """The draft of a program; raises what a draft raises."""
        ready: list[Draft] = []
        for call in post_order(program):
            cut = len(ready) - len(call.inputs)
            ready[cut:] = [Draft(call.function, tuple(ready[cut:]), call.arguments)]
        return ready[0]

    # --- what it is ---------------------------------------------------------------------------

    @property
    def is_hole(self) -> bool:
        """Whether the whole call is missing."""
        return self.function is None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing in the call and in all below it."""
        return self.holes == 0

    def __str__(self) -> str:
        """The program in the nested spelling, all texts quoted, with ``?`` for what is missing."""
        ready: list[str] = []
        for call in post_order(self):
            if call.function is None:
                ready.append(HOLE_TEXT)
                continue
            cut = len(ready) - len(call.inputs)
            parts = ready[cut:]
            parts += [HOLE_TEXT if text is None else _quoted(text) for text in call.arguments]
            ready[cut:] = [f"{call.function.name}({', '.join(parts)})"]
        return ready[0]

    def to_json(self) -> dict[str, Any] | None:
        """``{"function", "arguments", "inputs"}``, with None for what is missing."""
        ready: list[dict[str, Any] | None] = []
        for call in post_order(self):
            cut = len(ready) - len(call.inputs)
            item = None
            if call.function is not None:
                name, texts = call.function.name, [*call.arguments]
                item = {"function": name, "arguments": texts, "inputs": ready[cut:]}
            ready[cut:] = [item]
        return ready[0]

    def call(self) -> Call:
        """The program without holes; raises TypingError that says how many are left."""
        [*_, last] = self.calls()
        if last is None:
            raise TypingError(f"the program has holes ({self.holes}): fill them first")
        return last

    def calls(self) -> list[Call | None]:
        """For each call in post-order the program that ends in it; None where that has holes."""
        found: list[Call | None] = []
        for call, inputs in linked(self):
            whole = None
            if call.is_whole:
                assert call.function is not None
                parts = tuple(one for at in inputs if (one := found[at]) is not None)
                whole = Call(call.function, parts, tuple(_there(call.arguments)))
            found.append(whole)
        return found

    def paths(self) -> list[Path]:
        """The path of each call, in post-order."""
        found: list[Path] = []
        stack: list[tuple[Draft, Path, int]] = [(self, (), 0)]
        while stack:
            call, path, at = stack.pop()
            if at < len(call.inputs):
                stack.append((call, path, at + 1))
                stack.append((call.inputs[at], (*path, at), 0))
            else:
                found.append(path)
        return found

    def slots(self) -> Iterator[Slot]:
        """The holes, in post-order; of one call those of its inputs before its arguments."""
        if self.is_hole:
            yield Slot((), "function")
        for call, path in zip(post_order(self), self.paths(), strict=True):
            if call.is_hole and path:
                yield Slot(path[:-1], "input", path[-1])
            for index, text in enumerate(call.arguments):
                if text is None:
                    yield Slot(path, "argument", index)

    def problems(self) -> list[Problem]:
        """What does not type so far, in post-order; holes are no problems."""
        found: list[Problem] = []
        for call, path in zip(post_order(self), self.paths(), strict=True):
            if call.function is None:
                continue
            for place, given in enumerate(call.inputs):
                if given.function and (message := mismatch(call.function, place, given.function)):
                    found.append(Problem(path, None, message))
            for index, text in enumerate(call.arguments):
                if text is not None and (message := misread(call.function, index, text)):
                    found.append(Problem(path, index, message))
        return found

    def at(self, path: Path) -> Draft:
        """The call at a path; raises EditError where there is none."""
        call = self
        for step, index in enumerate(path):
            if not 0 <= index < len(call.inputs):
                raise EditError(f"there is no call at {[*path]}: {[*path[:step]]} is the last")
            call = call.inputs[index]
        return call

    # --- changes ------------------------------------------------------------------------------

    def replaced(self, path: Path, other: Draft) -> Draft:
        """With another call, and all below it, in place of the one at the path."""
        above = [self]
        for step in range(len(path)):
            above.append(self.at(path[: step + 1]))
        for call, index in zip(reversed(above[:-1]), reversed(path), strict=True):
            inputs = (*call.inputs[:index], other, *call.inputs[index + 1 :])
            other = Draft(call.function, inputs, call.arguments)
        return other

    def with_argument(self, path: Path, index: int, text: str | None) -> Draft:
        """With another textual argument; None makes it a hole."""
        call = self.at(path)
        if not 0 <= index < len(call.arguments):
            name = call.function.signature if call.function else "a hole"
            raise EditError(f"there is no argument {index} at {[*path]}: {name}")
        texts = (*call.arguments[:index], text, *call.arguments[index + 1 :])
        return self.replaced(path, Draft(call.function, call.inputs, texts))

    def with_function(self, path: Path, function: Function | str) -> Draft:
        """With another function at the path, which keeps the inputs and arguments that fit it.

        Inputs are kept in their order, arguments that are of the kind which is wanted, and
        constants that can be read as it.
        """
        new, old = _known(function), self.at(path)
        left = [one for one in old.inputs if not one.is_hole]
        inputs = []
        for wanted in new.inputs:
            fits = (
                n
                for n, one in enumerate(left)
                if one.function and wanted.accepts(one.function.output)
            )
            place = next(fits, None)
            inputs.append(HOLE if place is None else left.pop(place))
        arguments = _kept_arguments(old, new)
        return self.replaced(path, Draft(new, tuple(inputs), arguments))

    def filled(self, path: Path, index: int, function: Function | str) -> Draft:
        """With a call of the function, all its parts missing, in the hole of that input."""
        place = (*path, index)
        if not self.at(place).is_hole:
            raise EditError(f"there is a call at {[*place]} already; change its function instead")
        return self.replaced(place, Draft(_known(function)))

    def wrapped(self, path: Path, function: Function | str, at: int | None = None) -> Draft:
        """With a call of the function around the one at the path, which becomes its input ``at``.

        Without ``at`` the first input that takes it, else the first.
        """
        outer, old = _known(function), self.at(path)
        if not outer.inputs:
            raise EditError(f"{outer.name} takes no inputs, so it cannot stand around a call")
        if at is None:
            given = old.function.output if old.function else None
            fits = (n for n, one in enumerate(outer.inputs) if given and one.accepts(given))
            at = next(fits, 0)
        if not 0 <= at < outer.arity:
            raise EditError(f"{outer.name} has no input {at}")
        return self.replaced(path, Draft(outer, (*[HOLE] * at, old)))

    def without(self, path: Path, *, all: bool = False) -> Draft:
        """Without the call at the path: its first input that is no hole takes its place.

        With ``all`` the call goes with all below it, and leaves a hole.
        """
        inputs = () if all else self.at(path).inputs
        self.at(path)
        return self.replaced(path, next((one for one in inputs if not one.is_hole), HOLE))

    def moved(self, path: Path, to: Path) -> Draft:
        """With the calls at two paths, and all below them, in each other's places.

        Raises EditError where one lies in the other.
        """
        shared = min(len(path), len(to))
        if path[:shared] == to[:shared]:
            raise EditError(f"{[*path]} and {[*to]} are no different places: one lies in the other")
        one, other = self.at(path), self.at(to)
        return self.replaced(path, other).replaced(to, one)

    # --- for a page ---------------------------------------------------------------------------

    def view(self) -> dict[str, Any]:
        """The program for people's eyes as JSON: its text, calls with types, holes, problems.

        Calls stand in post-order, those that are missing too, with ``function`` None; ``words``
        say one in few words, ``output`` says what it gives, or has to give.
        """
        calls = []
        paths = self.paths()
        for number, (call, inputs) in enumerate(linked(self)):
            function, path = call.function, paths[number]
            output = function.output if function else None
            if function is None and path:
                above = self.at(path[:-1]).function
                assert above is not None
                output = above.inputs[path[-1]]
            calls.append(
                {
                    "number": number,
                    "path": [*path],
                    "function": function.name if function else None,
                    "arguments": [*call.arguments],
                    "inputs": [*inputs],
                    "words": [*map(Word._asdict, function.phrase(call.arguments))]
                    if function
                    else [],
                    "doc": function.doc if function else None,
                    "output": output.value if output else None,
                }
            )
        return {
            "text": str(self),
            "draft": self.to_json(),
            "complete": self.is_whole,
            "calls": calls,
            "holes": [slot.to_json() for slot in self.slots()],
            "problems": [problem.to_json() for problem in self.problems()],
        }


HOLE = Draft()


def _there(texts: Sequence[str | None]) -> Iterator[str]:
    return (text for text in texts if text is not None)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _known(function: Function | str) -> Function:
    return function if isinstance(function, Function) else function_named(function)


def _kept_arguments(old: Draft, new: Function) -> tuple[str | None, ...]:
    """What the arguments of another function become of those of a call."""
    kinds = old.function.arguments if old.function else ()
    left = [
        (name, kind, text)
        for (name, kind), text in zip(kinds, old.arguments, strict=True)
        if text is not None
    ]
    kept: list[str | None] = []
    for place, wanted in enumerate(new.arguments):
        fitting = [
            one
            for one in left
            if (one[1] is wanted[1] or any({one[1], wanted[1]} <= alike for alike in _ALIKE))
            and not misread(new, place, one[2])
        ]
        # The argument of the same name first, then one of the same kind.
        fitting.sort(key=lambda one: (one[:2] != wanted, one[1] is not wanted[1]))
        if fitting:
            left.remove(fitting[0])
        kept.append(fitting[0][2] if fitting else None)
    return tuple(kept)


# --- reading ----------------------------------------------------------------------------------


def read_draft(program: str | Sequence[Any] | Mapping[str, Any] | Call | Draft | None) -> Draft:
    """The draft in a text of any spelling, a JSON object of a draft, or a program.

    The nested spelling writes ``?`` without quotes for what is missing, and may leave out what
    stands last; no text and None are a draft that is one hole. Raises what `kopl.read` raises.
    """
    if isinstance(program, Draft):
        return program
    if program is None:
        return HOLE
    if isinstance(program, str):
        text = program.removeprefix("\ufeff").strip()
        if text in ("", HOLE_TEXT):
            return HOLE
        if text.startswith("{") or text == "null":
            return read_draft(_loaded(text))
        if not text.startswith("[") and "(" in text and not is_serialised(text):
            return read_nested_as(_of_items, _bare, text)
    elif isinstance(program, dict):
        return _of_json(program.get("program", program), 1)
    return Draft.of(read(program))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ParseError(f"{place}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise ParseError(f"not JSON of a program: {error}") from None


def _bare(text: str) -> Draft | str:
    return HOLE if text == HOLE_TEXT else text


def _of_items(function: Function, items: Sequence[Draft | str]) -> Draft:
    """The draft of a call of the nested spelling, whose holes may be inputs or arguments."""
    inputs: list[Draft] = []
    texts: list[str | None] = []
    for item in items:
        if isinstance(item, str):
            texts.append(item)
        elif not texts and (not item.is_hole or len(inputs) < function.arity):
            inputs.append(item)
        elif item.is_hole:
            texts.append(None)
        else:
            raise inputs_come_first(function)
    return Draft(function, tuple(inputs), tuple(texts))


def _of_json(item: Any, depth: int) -> Draft:
    if item is None:
        return HOLE
    if not isinstance(item, dict):
        raise ParseError(f'an object with a field "function" was expected, not {item!r:.80}')
    if depth > MAX_DEPTH:
        raise LimitError(f"the program is more than {MAX_DEPTH} calls deep")
    inputs, given = item.get("inputs") or (), item.get("arguments") or ()
    if not isinstance(inputs, list | tuple):
        raise ParseError('"inputs" must be a list of calls')
    if item.get("function") is None:
        if inputs or given:
            raise ParseError('a call with "inputs" or "arguments" needs a "function"')
        return HOLE
    function = function_named(item["function"])
    if isinstance(given, dict):
        names = [name for name, _ in function.arguments]
        if unknown := [name for name in given if name not in names]:
            raise ParseError(f"{function.name} has no argument {unknown[0]!r:.80}")
        given = [given.get(name) for name in names]
    if not isinstance(given, list | tuple):
        raise ParseError('"arguments" must be a list of texts')
    for text in given:
        if text is not None and type(text) is not str:
            raise ParseError(f"{function.name}: an argument must be a text, not {text!r:.80}")
    return Draft(function, tuple(_of_json(one, depth + 1) for one in inputs), tuple(given))
