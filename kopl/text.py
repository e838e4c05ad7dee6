"""Programs as text: the nested, the serialised and two JSON spellings, read and written.

``read`` takes any of them. All keep the textual arguments exactly as they are; what an
argument means is decided by `kopl.typecheck`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

from kopl.answer_forms import ASKED, PLAIN, Asking, asked_of
from kopl.errors import LimitError, ParseError
from kopl.functions import FUNCTIONS, SPELLINGS, Function
from kopl.program import Call, linked, post_order
from kopl_base.errors import counted, near_names

if TYPE_CHECKING:
    from lark import Lark

MAX_DEPTH = 200
MAX_SIZE = 10_000


def read(
    program: str | Sequence[Any] | Mapping[str, Any] | Call, *, max_depth: int = MAX_DEPTH
) -> Call:
    """The program in a text of any spelling, or in the object of a JSON spelling.

    A text that begins with ``[`` or ``{`` is JSON, one with a mark ``<arg>`` or ``<func>`` outside
    of quotes or without any parenthesis is the serialised form, any other the nested form. Raises
    ParseError, or LimitError for a program deeper than ``max_depth`` calls.
    """
    program = getattr(program, "program", program)  # an expression of `kopl.builder`
    if isinstance(program, Call):
        call = program
    elif not isinstance(program, str):
        call = read_json(program, max_depth=max_depth)
    else:
        program = program.removeprefix("\ufeff")  # some editors begin a file so
        start = program.lstrip()
        if not start:
            raise ParseError("the program is empty")
        if start.startswith(("[", "{")):
            call = read_json(program, max_depth=max_depth)
        elif is_serialised(start):
            call = read_serialised(program)
        else:
            call = read_nested(program, max_depth=max_depth)
    if call.depth > max_depth:
        raise LimitError(f"the program is {call.depth} calls deep; the limit is {max_depth}")
    if call.size > MAX_SIZE:
        raise LimitError(f"the program has {call.size} calls; the limit is {MAX_SIZE}")
    return call


def function_named(name: object, call: int | None = None) -> Function:
    """The function of that name in either spelling; raises ParseError with near names."""
    if isinstance(name, str) and name in SPELLINGS:
        return SPELLINGS[name]
    if not isinstance(name, str):
        raise ParseError(f"a function's name must be a text, not {name!r}", call)
    raise ParseError(_unknown_function(name), call)


def _unknown_function(name: str) -> str:
    near = near_names(name, SPELLINGS, 2)
    if not near and name:  # a first letter is seldom mistyped
        alike = [one for one in SPELLINGS if one[0] == name[0].upper()]
        near = get_close_matches(name, alike, 1, cutoff=0)
    if near:
        return f"there is no function {name!r}; did you mean {' or '.join(near)}?"
    return f"there is no function {name!r}; there are {', '.join(FUNCTIONS)}"


# --- nested -----------------------------------------------------------------------------------


Built = TypeVar("Built")


@cache
def _parser(build: Callable[..., Any], bare: Callable[[str], Any]) -> Lark:
    """The parser of the nested form; it builds calls while it reads, without recursion."""
    from lark import Lark, Transformer, v_args

    @v_args(inline=True)
    class Build(Transformer[Any, Any]):
        def call(self, function: str, items: Sequence[Any] = ()) -> Any:
            return build(SPELLINGS[function], items)

        def first(self, item: Any) -> list[Any]:
            return [item]

        def more(self, items: list[Any], item: Any) -> list[Any]:
            items.append(item)
            return items

        def quoted(self, text: str) -> str:
            return _unquote(text)

        def single(self, text: str) -> str:
            body = _IN_SINGLE.sub(lambda m: _AS_DOUBLE.get(m[0], m[0]), str(text)[1:-1])
            return _unquote(f'"{body}"')

        def bare(self, text: str) -> Any:
            return bare(str(text))

        def start(self, call: Any) -> Any:
            return call

    grammar = resources.files("kopl").joinpath("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=Build())


def _call(function: Function, items: Sequence[Call | str]) -> Call:
    inputs = tuple(item for item in items if isinstance(item, Call))
    texts = tuple(item for item in items if not isinstance(item, Call))
    if inputs and texts and any(isinstance(i, Call) for i in items[len(inputs) :]):
        raise inputs_come_first(function)
    return Call(function, inputs, texts)


def inputs_come_first(function: Function) -> ParseError:
    """The error of a call whose inputs stand behind its textual arguments."""
    return ParseError(f"{function.name}: the inputs come before the textual arguments")


# What differs between the two kinds of quotes.
_IN_SINGLE = re.compile(r"\\.|\"", re.DOTALL)
_AS_DOUBLE = {"\\'": "'", '"': '\\"'}


def _unquote(text: str) -> str:
    try:
        return str(json.loads(text, strict=False))
    except json.JSONDecodeError as error:
        raise ParseError(f"in the text {text}: {error.msg}") from None


# A text that does not end is passed over to the end of all, once.
_OPENING = re.compile(r'"(?:[^"\\]|\\.)*"?|\'(?:[^\'\\]|\\.)*\'?|[()]', re.DOTALL)


def _nesting(text: str) -> int:
    """The depth of the parentheses outside of quotes."""
    deepest = depth = 0
    for match in _OPENING.finditer(text):
        if match[0] == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] == ")":
            depth -= 1
    return deepest


def read_nested(text: str, *, max_depth: int = MAX_DEPTH) -> Call:
    """The program in the nested spelling; raises ParseError with line, column and a hint."""
    return read_nested_as(_call, str, text, max_depth=max_depth)


def read_nested_as(
    build: Callable[[Function, Sequence[Any]], Built],
    bare: Callable[[str], Any],
    text: str,
    *,
    max_depth: int = MAX_DEPTH,
) -> Built:
    """What ``build`` makes of each call, of its function and of what stands in its parentheses.

    That is what inputs became and the textual arguments, those without quotes as ``bare`` takes
    them. Raises what `read_nested` raises.
    """
    from lark.exceptions import UnexpectedInput, VisitError

    if text.count("(") > max_depth and (depth := _nesting(text)) > max_depth:
        raise LimitError(f"the program is {depth} calls deep; the limit is {max_depth}")
    try:
        built: Built = _parser(build, bare).parse(text)  # type: ignore[assignment]
    except UnexpectedInput as error:
        raise ParseError(_explain(text, error)) from None
    except VisitError as error:
        if isinstance(error.orig_exc, ParseError):
            raise error.orig_exc from None
        raise
    return built


_WORD_HERE = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(")
_DIGITS = "0123456789"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"


def _before(text: str, at: int) -> int:
    """Where the word before a place begins, which blanks may divide from it; the place if none."""
    end = len(text[:at].rstrip())
    begin = len(text[:end].rstrip(_LETTERS + _DIGITS))
    begin += len(text[begin:end]) - len(text[begin:end].lstrip(_DIGITS))
    return begin if begin < end else at


def _explain(text: str, error: Any) -> str:
    """What is wrong at the place where reading stopped."""
    at = getattr(error, "pos_in_stream", None)
    if at is None or at < 0 or at > len(text):
        at = len(text)
    ended = getattr(getattr(error, "token", None), "type", "") == "$END"
    found = "" if ended else text[at : at + 1]
    # An unknown function is read as a bare text; the parenthesis behind it is the surprise.
    begin = _before(text, at) if found == "(" else at
    word = _WORD_HERE.match(text, begin)
    if word and found and word[1] not in SPELLINGS:
        return f"{_where(text, begin)}: {_unknown_function(word[1])}"
    if not found:
        at = len(text)
        missing = text.count("(") - text.count(")")
        hint = f"; {missing} closing parenthesis missing" if missing > 0 else ""
        return f"{_where(text, at)}: the program ends too early{hint}"
    if found in "\"'":
        return f"{_where(text, at)}: a quoted text does not end, or a comma is missing before it"
    near = text[max(0, at - 15) : at + 10]
    return f"{_where(text, at)}: {found!r} was not expected here, near {near!r}"


def _where(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return f"line {line}, column {column}" if line > 1 else f"column {column}"


def write_nested(program: Call) -> str:
    """The program in the nested spelling, all texts quoted."""
    return str(program)


# --- serialised -------------------------------------------------------------------------------

# The marks of the paper's serialised form. A mark inside a name is written with a backslash before
# it; backslashes that stand directly before such a mark are doubled, all others stay single.
_MARK = re.compile(r"(?<!\\)(\\*)(<arg>|<func>)")


def is_serialised(text: str) -> bool:
    """Whether a text that is no JSON is in the serialised spelling, by its marks."""
    if "(" not in text:
        return True
    head = text.split("(", 1)[0]
    return "<arg>" in head or "<func>" in head


def escape_marks(text: str) -> str:
    """A textual argument as the serialised spelling writes it, with its marks escaped."""
    return _MARK.sub(lambda m: m[1] * 2 + "\\" + m[2], text)


def _segments(text: str) -> list[tuple[str, str]]:
    """(mark, text up to the next mark); the first has the mark ``<func>``."""
    result, mark, kept, at = [], "<func>", "", 0
    for match in _MARK.finditer(text):
        slashes = len(match[1])
        if slashes % 2:
            kept += text[at : match.start()] + "\\" * (slashes // 2) + match[2]
        else:
            result.append((mark, kept + text[at : match.start(2)]))
            mark, kept = match[2], ""
        at = match.end()
    result.append((mark, kept + text[at:]))
    return result


def read_serialised(text: str) -> Call:
    """The program in the paper's serialised spelling; raises ParseError naming the call."""
    return _assembled(_serialised_calls(text))


def read_asked(text: str) -> tuple[Call, Asking]:
    """The program, and what is asked of it, in the spelling of `write_asked`.

    Raises ParseError naming the call, or for what does not fit the program.
    """
    calls = _serialised_calls(text)
    if len(calls) < 2 or calls[-1][0] not in ASKED:
        return _assembled(calls), PLAIN
    word, arguments = calls.pop()
    program = _assembled(calls)
    try:
        return program, asked_of(program, [word, *arguments])
    except ValueError as error:
        raise ParseError(str(error), len(calls)) from None


def _serialised_calls(text: str) -> list[tuple[str, list[str]]]:
    """The functions of a serialised text, each with its arguments."""
    calls: list[tuple[str, list[str]]] = []
    segments = _segments(text)
    for at, (mark, body) in enumerate(segments):
        if mark == "<func>":
            calls.append((body.strip(), []))
            continue
        # One blank on each side belongs to the marks; further blanks belong to the argument.
        body = body.removeprefix(" ")
        calls[-1][1].append(body if at == len(segments) - 1 else body.removesuffix(" "))
    return calls


def _assembled(calls: Sequence[tuple[str, Sequence[str]]]) -> Call:
    """The program of calls in post-order; raises ParseError naming the call."""
    stack: list[Call] = []
    for number, (name, arguments) in enumerate(calls):
        if not name:
            raise ParseError("a function's name is missing", number)
        function = function_named(name, number)
        if len(stack) < function.arity:
            raise ParseError(
                f"{function.name} takes {counted(function.arity, 'input')}, but only"
                f" {counted(len(stack), 'call before it is', 'calls before it are')} left",
                number,
            )
        cut = len(stack) - function.arity
        stack[cut:] = [Call(function, tuple(stack[cut:]), tuple(arguments))]
    if len(stack) != 1:
        raise ParseError(f"{len(stack)} calls are left over; a program has one last call")
    return stack[0]


def write_serialised(program: Call) -> str:
    """The program in the paper's serialised spelling, with marks inside names escaped."""
    return " <func> ".join(
        " <arg> ".join([call.function.name, *map(escape_marks, call.arguments)])
        for call in post_order(program)
    )


def write_asked(program: Call, asking: Asking) -> str:
    """The program in the serialised spelling and, behind it, what is asked of it.

    A program of which its single answer is asked for is written as without.
    """
    words = " <arg> ".join(map(escape_marks, asking.words))
    return write_serialised(program) + (f" <func> {words}" if words else "")


# --- JSON -------------------------------------------------------------------------------------


def read_json(
    program: str | Sequence[Any] | Mapping[str, Any], *, max_depth: int = MAX_DEPTH
) -> Call:
    """The program in KQA Pro's JSON list or as a nested object (`to_nested_json`), or their text.

    In a list the last call is the root; ``dependencies`` may be left out, then the calls are read
    as post-order with known arities. Raises ParseError naming the call, or LimitError.
    """
    if isinstance(program, str):
        try:
            program = json.loads(program)
        except json.JSONDecodeError as error:
            raise ParseError(
                f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
            ) from None
        except (RecursionError, ValueError) as error:
            raise ParseError(f"not JSON of a program: {error}") from None
    if isinstance(program, dict):
        return _read_nested_json(program, max_depth)
    if not isinstance(program, list | tuple):
        raise ParseError(f"a list of calls was expected, found {type(program).__name__}")
    if not program:
        raise ParseError("the program is empty")
    calls: list[Call] = []
    unused: list[int] = []
    for number, item in enumerate(program):
        if not isinstance(item, dict):
            raise ParseError('an object with "function" and "inputs" was expected', number)
        function = SPELLINGS.get(name) if type(name := item.get("function")) is str else None
        if function is None:
            function = function_named(name, number)
        texts = item.get("inputs") or ()
        if not isinstance(texts, list | tuple):
            raise ParseError('"inputs" must be a list of texts', number)
        for text in texts:
            if type(text) is not str:
                raise ParseError(f'"inputs" must be texts, not {text!r}', number)
        places = item.get("dependencies")
        if places is None:
            places = unused[len(unused) - function.arity :] if function.arity else []
        elif not isinstance(places, list | tuple):
            raise ParseError('"dependencies" must be a list of numbers', number)
        inputs = []
        for place in places:
            if type(place) is not int or not 0 <= place < number:
                raise ParseError(f"it depends on {place!r}, which is no earlier call", number)
            inputs.append(calls[place])
            if place in unused:
                unused.remove(place)
        call = Call(function, tuple(inputs), tuple(texts))
        if call.size > MAX_SIZE:
            raise LimitError(f"the program has more than {MAX_SIZE} calls", number)
        calls.append(call)
        unused.append(number)
    if len(unused) != 1:
        raise ParseError("no later call takes what this one gives", unused[0])
    return calls[-1]


def to_json(program: Call, *, published: bool = False) -> list[dict[str, Any]]:
    """The program as KQA Pro's JSON list; ``published`` writes its old names (``What``)."""
    return [
        {
            "function": call.function.published if published else call.function.name,
            "dependencies": list(inputs),
            "inputs": list(call.arguments),
        }
        for call, inputs in linked(program)
    ]


def write_json(program: Call, *, published: bool = False) -> str:
    """The same as one line of JSON text."""
    return json.dumps(to_json(program, published=published), ensure_ascii=False)


def to_nested_json(program: Call) -> dict[str, Any]:
    """The program as one object: a call holds its inputs as calls, its arguments by their names.

    ``{"function": "Count", "inputs": [{"function": "Find", "arguments": {"name": "Oslo"}}]}``; what
    a function does not take is left out. Raises ParseError for a call with another number of
    arguments than its function takes, as they have no names.
    """
    stack: list[dict[str, Any]] = []
    for number, call in enumerate(post_order(program)):
        item: dict[str, Any] = {"function": call.function.name}
        if call.inputs:
            cut = len(stack) - len(call.inputs)
            item["inputs"], stack = stack[cut:], stack[:cut]
        names = [name for name, _ in call.function.arguments]
        if len(names) != len(call.arguments):
            raise ParseError(
                f"{call.function.name} takes {counted(len(names), 'textual argument')}", number
            )
        if names:
            item["arguments"] = dict(zip(names, call.arguments, strict=True))
        stack.append(item)
    return stack[0]


def write_nested_json(program: Call) -> str:
    """The same as one line of JSON text, in an object whose field ``program`` is the call.

    An object around the call, as services that write by a schema want the outermost one closed.
    """
    return json.dumps({"program": to_nested_json(program)}, ensure_ascii=False)


def _read_nested_json(item: Mapping[str, Any], max_depth: int) -> Call:
    """The program of an object, or of the one in its field ``program``; built without recursion."""
    outermost: Any = item["program"] if "program" in item and "function" not in item else item
    calls: list[Call] = []  # those that no call takes yet
    made = 0
    # What is left to do, the next of it last: an object is read, then made of the calls before it.
    waiting: list[tuple[Any, int, Function | None]] = [(outermost, 1, None)]
    while waiting:
        item, depth, function = waiting.pop()
        if function is not None:
            cut = len(calls) - len(item.get("inputs") or ())
            texts = _arguments_by_name(function, item.get("arguments") or {}, made)
            calls[cut:] = [Call(function, tuple(calls[cut:]), texts)]
            made += 1
            continue
        if not isinstance(item, dict):
            raise ParseError(f'an object with a field "function" was expected, not {item!r}', made)
        if depth > max_depth:
            raise LimitError(f"the program is more than {max_depth} calls deep", made)
        inputs = item.get("inputs") or ()
        if not isinstance(inputs, list | tuple):
            raise ParseError('"inputs" must be a list of calls', made)
        waiting.append((item, depth, function_named(item.get("function"), made)))
        waiting += [(one, depth + 1, None) for one in reversed(inputs)]
        if len(waiting) + made > MAX_SIZE * 2:
            raise LimitError(f"the program has more than {MAX_SIZE} calls", made)
    return calls[0]


def _arguments_by_name(function: Function, given: Any, call: int) -> tuple[str, ...]:
    """The textual arguments of a call in their order; raises ParseError for others."""
    names = [name for name, _ in function.arguments]
    if not isinstance(given, dict) or set(given) != set(names):
        raise ParseError(f'{function.name}: "arguments" must be {_named(names)}', call)
    for name in names:
        if type(given[name]) is not str:
            raise ParseError(f"{function.name}: {name} must be a text, not {given[name]!r}", call)
    return tuple(given[name] for name in names)


def _named(names: Sequence[str]) -> str:
    return f"an object of texts with {', '.join(names)}" if names else "left out"
