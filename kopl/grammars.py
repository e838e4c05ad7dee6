"""The typed programs over a knowledge base as a grammar for decoding, in three notations.

``lark`` and ``gbnf`` are of the nested spelling as it is written (`kopl.text.write_nested`): one
blank behind each comma, all texts in double quotes. ``json-schema`` is of the nested call as an
object (`kopl.text.to_nested_json`). All three accept the same programs; what decides is
`kopl.rules`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, product
from typing import Any, Literal, TypeAlias, get_args

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


class _Notation:
    """A grammar of the nested spelling, a line for each rule; its dialects are below."""

    start: str
    arrow: str
    # A character of a text between quotes, which is escaped as in JSON.
    character: str

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

    def lines(self, rules: Rules) -> Iterator[str]:
        """The rules: sets, lists of arguments, terminals."""
        parts = {name: self._part(name, ways) for name, ways in rules.parts.items()}
        # The start first, where some readers look for it.
        for name, members in sorted(rules.sets.items(), key=lambda item: item[0] != START):
            ways = [
                self.name(one) if isinstance(one, str) else self._shape(one, parts)
                for one in members
            ]
            yield self._rule(self.start if name == START else self.name(name), ways)
        for name, several in rules.parts.items():
            if len(several) > 1:
                yield self._rule(self.name(name), [self._way(way) for way in several])
        for name, terminal in rules.terminals.items():
            yield self._rule(self.name(name), self._terminal(terminal))
        for name, make in _INNER.items():
            if any(name in getattr(one, "types", ()) for one in rules.terminals.values()):
                yield self._rule(self._inner(name), [self.pattern(make())])

    def _rule(self, name: str, ways: Sequence[str]) -> str:
        return f"{name}{self.arrow}{' | '.join(ways)}"

    def _part(self, name: str, ways: Sequence[Sequence[str]]) -> str:
        """A part of arguments where it stands in a call: by its name, or as the one way."""
        return self._way(ways[0]) if len(ways) == 1 else self.name(name)

    def _shape(self, shape: Shape, parts: dict[str, str]) -> str:
        given = [*map(self.name, shape.inputs), *(parts[name] for name in shape.parts)]
        if not given:
            return self.literal(f"{shape.function.name}()")
        comma = f" {self.literal(', ')} "
        begin, end = self.literal(f"{shape.function.name}("), self.literal(")")
        return f"{begin} {comma.join(given)} {end}"

    def _way(self, way: Sequence[str]) -> str:
        return f" {self.literal(', ')} ".join(map(self.name, way))

    def _terminal(self, terminal: Terminal) -> list[str]:
        """The alternatives of a terminal, between quotes."""
        if isinstance(terminal, Several):
            return [self.name(name) for name in terminal.names]
        quote = self.literal('"')
        if isinstance(terminal, Listed):
            listed = " | ".join(self.literal(_escaped(text)) for text in terminal.texts)
            return [f"{quote} ({listed}) {quote}"]
        if terminal == TEXT:
            return [f"{quote} {self.free(0)} {quote}"]
        ways = []
        if "quantity" in terminal.types:
            ways.append(f"{self._inner('quantity')}{self._unit(terminal.units)}")
        if "time" in terminal.types:
            ways.append(self._inner("time"))
        inner = ways[0] if len(ways) == 1 else f"({' | '.join(ways)})"
        return [f"{quote} {inner} {quote}"]

    def _inner(self, type: str) -> str:
        return self.name(f"{type}_inner".upper())

    def _unit(self, units: Sequence[str] | None) -> str:
        """What stands behind a number."""
        if units is None:
            return f" ({self.literal(' ')} {self.free(1)})?"
        listed = [self.literal(f" {_escaped(unit)}") for unit in units if unit != NO_UNIT]
        if not listed:
            return ""
        one = listed[0] if len(listed) == 1 else f"({' | '.join(listed)})"
        return f" {one}{'?' if NO_UNIT in units else ''}"


_INNER: dict[str, Callable[[], Pattern]] = {"quantity": number, "time": time}


def _escaped(text: str) -> str:
    """A text as it stands between quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class _Lark(_Notation):
    """As Lark writes it, in what llguidance and OpenAI take: no imports, templates, priorities."""

    start, arrow = START, ": "

    def literal(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False)

    def name(self, name: str) -> str:
        return name

    def pattern(self, pattern: Pattern) -> str:
        return f"/{pattern.regex()}/"

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

    def free(self, least: int) -> str:
        character = r'([^"\\\x00-\x1F] | "\\" (["\\bfnrt] | "u00" [01] [0-9a-f]))'
        return f"{character}{{{least},{MOST_TEXT}}}"


# --- the nested call as an object -----------------------------------------------------------------


def _schema(rules: Rules) -> dict[str, Any]:
    """The schema of an object whose field ``program`` is the call; all objects are closed."""
    definitions: dict[str, Any] = {}
    for name, members in rules.sets.items():
        definitions[name] = _any(
            [
                _referred(one) if isinstance(one, str) else _call(one, rules.parts, definitions)
                for one in members
            ]
        )
    for name, terminal in rules.terminals.items():
        definitions[name] = _text(terminal)
    return {**_object({"program": _referred(START)}), "$defs": definitions}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _referred(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def _any(ways: list[dict[str, Any]]) -> dict[str, Any]:
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def _call(
    shape: Shape, parts: dict[str, list[tuple[str, ...]]], definitions: dict[str, Any]
) -> dict[str, Any]:
    """A call; the definitions of its lists of inputs and of arguments are added."""
    fields: dict[str, Any] = {"function": {"const": shape.function.name}}
    if shape.inputs:
        name = ".".join(shape.inputs)
        definitions.setdefault(name, _listed(shape.inputs))
        fields["inputs"] = _referred(name)
    if shape.parts:
        name = ".".join([shape.function.name, *shape.parts])
        if name not in definitions:
            keys = [key for key, _ in shape.function.arguments]
            definitions[name] = _any(
                [
                    _object(dict(zip(keys, map(_referred, chain(*ways)), strict=True)))
                    for ways in product(*(parts[part] for part in shape.parts))
                ]
            )
        fields["arguments"] = _referred(name)
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
        elif listed := [Fixed(f" {unit}") for unit in terminal.units if unit != NO_UNIT]:
            one = either(listed)
            unit = (optional(one) if NO_UNIT in terminal.units else one).regex()
            unit = unit if len(listed) == 1 else f"({unit})"
        ways.append(f"{number().regex()}{unit}")
    if "time" in terminal.types:
        ways.append(time().regex())
    return "|".join(ways)
