"""The typed programs over a knowledge base as a grammar for decoding, in three notations.

``lark`` and ``gbnf`` are of the nested spelling as it is written (`kopl.text.write_nested`): one
blank behind each comma, all texts in double quotes. ``json-schema`` is of the nested call as an
object (`kopl.text.to_nested_json`). All three accept the same programs; what decides is
`kopl.rules`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, product
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from kb import KnowledgeBase
from kb.values import NO_UNIT
from kopl.patterns import Fixed, Pattern, either, number, optional, quoted, time
from kopl.rules import START, TEXT, Constant, Listed, Rules, Several, Shape, Terminal, rules
from kopl_base.errors import KoplError

Form: TypeAlias = Literal["lark", "gbnf", "json-schema"]
FORMS: tuple[Form, ...] = get_args(Form)

# Programs may be so many calls deep: generated ones, and those that people's questions need, are
# less so.
DEPTH = 10
# A text that is free has at most so many characters, so that no model writes one without end.
MOST_TEXT = 400


def grammar(
    kb: KnowledgeBase | None,
    form: Form,
    names: Iterable[str] | None = None,
    depth: int = DEPTH,
) -> str:
    """The grammar of all programs over a knowledge base that type, at most ``depth`` calls deep.

    They name only what is there: of entities and concepts, ``Find`` takes those of the ``names``
    (None: all), other functions take all concepts, relations, keys and units; a key stands beside
    values of its own types and units. Without a knowledge base, any text may be a name. Strings are
    any text of at most `MOST_TEXT` characters, numbers and years have the digits of
    `kopl.patterns`. Raises KoplError for a name that the knowledge base does not have, for another
    form than `FORMS` and for a depth below 1.
    """
    if form not in FORMS:
        raise KoplError(f"there is no grammar {form!r}; the forms are {', '.join(FORMS)}")
    found = rules(kb, names, depth=depth)
    if form == "json-schema":
        return json.dumps(_schema(found), ensure_ascii=False, separators=(",", ":")) + "\n"
    notation = _Lark() if form == "lark" else _Gbnf()
    return "".join(f"{line}\n" for line in notation.lines(found))


# --- the nested spelling --------------------------------------------------------------------------


class _Symbol(NamedTuple):
    """A piece of a rule: a text that stands as it is, or what is written for another rule."""

    text: str
    is_literal: bool = True


_Way: TypeAlias = tuple[_Symbol, ...]
_COMMA = _Symbol(", ")


class _Notation:
    """A grammar of the nested spelling, a line for each rule; its dialects are below.

    Ways that begin alike are written as one that goes on in several ways: a reader that follows all
    ways at once, as llama.cpp does, has few of them to follow.
    """

    start: str
    arrow: str

    def literal(self, text: str) -> str:
        """A text that stands as it is."""
        raise NotImplementedError

    def name(self, name: str) -> str:
        """The name of a rule or of a terminal."""
        raise NotImplementedError

    def pattern(self, pattern: Pattern) -> str:
        """A pattern alone in its rule."""
        raise NotImplementedError

    def free(self, least: int) -> str:
        """A text inside of quotes, of so many characters at least."""
        raise NotImplementedError

    def listed(self, texts: Sequence[str]) -> str:
        """Any one of the texts, of which none is empty."""
        raise NotImplementedError

    def lines(self, rules: Rules) -> Iterator[str]:
        """The rules: sets, parts of arguments, terminals."""
        inlined = set(_inlined(rules))
        # The start first, where some readers look for it.
        for name in sorted(rules.sets.keys() - inlined, key=[START, *rules.sets].index):
            ways = [way for one in rules.sets[name] for way in self._ways(one, rules, inlined)]
            yield self._rule(self.start if name == START else self.name(name), ways)
        for name, several in rules.parts.items():
            if len(several) > 1:
                yield self._rule(self.name(name), [_joined(map(self._refer, w)) for w in several])
        for name, terminal in rules.terminals.items():
            yield f"{self.name(name)}{self.arrow}{self._terminal(terminal)}"
        for name, make in _INNER.items():
            if any(name in getattr(one, "types", ()) for one in rules.terminals.values()):
                yield f"{self._inner(name)}{self.arrow}{self.pattern(make())}"

    def _rule(self, name: str, ways: Sequence[_Way]) -> str:
        return f"{name}{self.arrow}{factored(ways, self._written)}"

    def _written(self, way: Sequence[_Symbol]) -> str:
        """A way; texts beside each other are one."""
        found = []
        for is_literal, symbols in groupby(way, lambda symbol: symbol.is_literal):
            texts = [symbol.text for symbol in symbols]
            found.append(self.literal("".join(texts)) if is_literal else " ".join(texts))
        return " ".join(found)

    def _refer(self, name: str) -> _Way:
        return (_Symbol(self.name(name), False),)

    def _ways(self, member: Shape | str, rules: Rules, inlined: set[str]) -> Iterator[_Way]:
        """The ways to write a member of a set."""
        if isinstance(member, str):
            yield self._refer(member)
            return
        begin, end = _Symbol(f"{member.function.name}("), _Symbol(")")
        given: list[list[_Way]] = []
        for name in member.inputs:
            of_set = rules.sets[name] if name in inlined else ()
            ways = [way for one in of_set for way in self._ways(one, rules, inlined)]
            given.append(ways or [self._refer(name)])
        for name in member.parts:
            several = rules.parts[name]
            # A part with one way to write it stands where it is called.
            alone = _joined(map(self._refer, several[0])) if len(several) == 1 else None
            given.append([alone or self._refer(name)])
        for pieces in product(*given):
            yield (begin, *_joined(pieces), end)

    def _terminal(self, terminal: Terminal) -> str:
        """The alternatives of a terminal, between quotes."""
        if isinstance(terminal, Several):
            return " | ".join(map(self.name, terminal.names))
        quote = self.literal('"')
        if isinstance(terminal, Listed):
            return f"{quote} ({self.listed([*map(_escaped, terminal.texts)])}) {quote}"
        if terminal == TEXT:
            return f"{quote} {self.free(0)} {quote}"
        ways = []
        if "quantity" in terminal.types:
            ways.append(f"{self._inner('quantity')}{self._unit(terminal.units)}")
        if "time" in terminal.types:
            ways.append(self._inner("time"))
        inner = ways[0] if len(ways) == 1 else f"({' | '.join(ways)})"
        return f"{quote} {inner} {quote}"

    def _inner(self, type: str) -> str:
        return self.name(f"{type}_inner".upper())

    def _unit(self, units: Sequence[str] | None) -> str:
        """What stands behind a number."""
        if units is None:
            return f" ({self.literal(' ')} {self.free(1)})?"
        spelt = [f" {_escaped(unit)}" for unit in units]
        # No unit may also be said: "5 1" is 5.
        if NO_UNIT in units:
            return f" ({self.listed(spelt)})?"
        return f" {self.listed(spelt)}" if len(spelt) == 1 else f" ({self.listed(spelt)})"


def _inlined(rules: Rules) -> Iterator[str]:
    """The sets that one call alone takes, of several of a function that begin alike."""
    counts = Counter(
        name
        for members in rules.sets.values()
        for one in members
        for name in ([one] if isinstance(one, str) else one.inputs)
    )
    for members in rules.sets.values():
        shapes = [one for one in members if isinstance(one, Shape)]
        functions = Counter(shape.function for shape in shapes)
        for shape in shapes:
            if functions[shape.function] > 1:
                yield from (name for name in shape.inputs if counts[name] == 1)


def _joined(pieces: Iterable[_Way]) -> _Way:
    """The pieces with commas between them."""
    return tuple(symbol for piece in pieces for symbol in (_COMMA, *piece))[1:]


_Any = TypeVar("_Any", str, _Way)


def factored(ways: Sequence[_Any], write: Callable[[_Any], str]) -> str:
    """Any one of the ways, those that begin alike together."""
    groups: dict[_Any, list[_Any]] = {}
    for way in ways:
        groups.setdefault(way[:1], []).append(way)
    found = []
    for same in groups.values():
        if len(same) == 1:
            found.append(write(same[0]))
            continue
        # What the first and the last of them share, all between them have.
        low, high = min(same), max(same)
        shared = next((at for at, one in enumerate(low) if one != high[at]), len(low))
        inner = factored([way[shared:] for way in same if len(way) > shared], write)
        ends = "?" if len(low) == shared else ""
        found.append(f"{write(low[:shared])} ({inner}){ends}")
    return " | ".join(found)


_INNER: dict[str, Callable[[], Pattern]] = {"quantity": number, "time": time}


def _escaped(text: str) -> str:
    """A text as it stands between quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class _Lark(_Notation):
    """As Lark writes it, in what llguidance and OpenAI take: no imports, templates, priorities."""

    start, arrow = START, ": "

    def literal(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

    def name(self, name: str) -> str:
        return name

    def pattern(self, pattern: Pattern) -> str:
        return "/" + pattern.regex().replace("/", "\\/") + "/"

    def listed(self, texts: Sequence[str]) -> str:
        return " | ".join(map(self.literal, texts))

    def free(self, least: int) -> str:
        character = r'([^"\\\x00-\x1f]|\\(["\\bfnrt]|u00[01][0-9a-f]))'
        return f"/{character}{{{least},{MOST_TEXT}}}/"


class _Gbnf(_Notation):
    """As llama.cpp writes it."""

    start, arrow = "root", " ::= "

    def literal(self, text: str) -> str:
        return quoted(text)

    def name(self, name: str) -> str:
        return name.lower().replace("_", "-")

    def pattern(self, pattern: Pattern) -> str:
        return pattern.gbnf()

    def listed(self, texts: Sequence[str]) -> str:
        return factored(texts, self.literal)

    def free(self, least: int) -> str:
        character = r'([^"\\\x00-\x1F] | "\\" (["\\bfnrt] | "u00" [01] [0-9a-f]))'
        return f"{character}{{{least},{MOST_TEXT}}}"


# --- the nested call as an object -----------------------------------------------------------------


def _schema(rules: Rules) -> dict[str, Any]:
    """The schema of an object whose field ``program`` is the call; all objects are closed."""
    definitions: dict[str, Any] = {}
    for name, members in rules.sets.items():
        definitions[_defined(name)] = _any(
            [
                _referred(one) if isinstance(one, str) else _call(one, rules.parts, definitions)
                for one in members
            ]
        )
    for name, terminal in rules.terminals.items():
        definitions[_defined(name)] = _text(terminal)
    return {**_object({"program": _referred(START)}), "$defs": definitions}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _defined(*names: str) -> str:
    """The name of a definition; of a terminal it is written in capitals.

    Readers that make a rule of each definition have rules of their own ("string", "time"), and take
    only names of letters, digits and hyphens for the same rule again.
    """
    marked = (f"a-{name}" if name.isupper() else name for name in names)
    return "-".join(marked).lower().replace("_", "-")


def _referred(*names: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{_defined(*names)}"}


def _any(ways: list[dict[str, Any]]) -> dict[str, Any]:
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def _call(
    shape: Shape, parts: dict[str, list[tuple[str, ...]]], definitions: dict[str, Any]
) -> dict[str, Any]:
    """A call; the definitions of its lists of inputs and of arguments are added."""
    fields: dict[str, Any] = {"function": {"const": shape.function.name}}
    if shape.inputs:
        definitions.setdefault(_defined("from", *shape.inputs), _listed(shape.inputs))
        fields["inputs"] = _referred("from", *shape.inputs)
    if shape.parts:
        names = (shape.function.name, *shape.parts)
        if _defined(*names) not in definitions:
            keys = [key for key, _ in shape.function.arguments]
            definitions[_defined(*names)] = _any(
                [
                    _object(dict(zip(keys, map(_referred, chain(*ways)), strict=True)))
                    for ways in product(*(parts[part] for part in shape.parts))
                ]
            )
        fields["arguments"] = _referred(*names)
    return _object(fields)


def _listed(inputs: Sequence[str]) -> dict[str, Any]:
    if len(set(inputs)) == 1:
        items: dict[str, Any] = {"items": _referred(inputs[0])}
    else:
        items = {"prefixItems": [_referred(one) for one in inputs], "items": False}
    return {"type": "array", **items, "minItems": len(inputs), "maxItems": len(inputs)}


def _text(terminal: Terminal) -> dict[str, Any]:
    if isinstance(terminal, Several):
        return {"anyOf": [_referred(name) for name in terminal.names]}
    if isinstance(terminal, Listed):
        return {"type": "string", "enum": list(terminal.texts)}
    if terminal == TEXT:
        return {"type": "string", "maxLength": MOST_TEXT}
    return {"type": "string", "pattern": f"^({_constant(terminal)})$"}


def _constant(terminal: Constant) -> str:
    """The regular expression of a constant's text."""
    ways: list[str] = []
    if "quantity" in terminal.types:
        unit = ""
        if terminal.units is None:
            unit = f"( .{{1,{MOST_TEXT}}})?"
        else:
            one = either(Fixed(f" {unit}") for unit in terminal.units)
            unit = optional(one).regex() if NO_UNIT in terminal.units else f"({one.regex()})"
        ways.append(f"{number().regex()}{unit}")
    if "time" in terminal.types:
        ways.append(time().regex())
    return "|".join(ways)
