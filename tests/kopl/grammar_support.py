"""Programs for and against grammars: typed ones at random, mutations, and what decides."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cached_property
from typing import Any

from kb import KnowledgeBase
from kb.schema import Key, Schema
from kb.values import ValueReadError, days_in_month, read_quantity, read_time
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call, post_order
from kopl.typecheck import is_well_typed
from kopl.types import Kind, Type

OF_SUFFIX = {"Str": "string", "Num": "quantity", "Year": "time", "Date": "time"}
UNDECLARED = "no such thing"


class Language:
    """The programs that a grammar should accept: told by the type check and the schema alone."""

    def __init__(self, kb: KnowledgeBase, names: list[str], depth: int) -> None:
        self.schema, self.names, self.depth = Schema.of(kb), names, depth

    def holds(self, program: Call) -> bool:
        """Whether the program types, names what is there and is not too deep."""
        return (
            program.depth <= self.depth
            and is_well_typed(program)
            and all(map(self._names_what_is_there, post_order(program)))
        )

    def _names_what_is_there(self, call: Call) -> bool:
        schema, given = self.schema, dict(zip(_kinds(call.function), call.arguments, strict=True))
        lists: dict[Kind, Any] = {
            Kind.NAME: self._named,
            Kind.CONCEPT: set(schema.concepts),
            Kind.RELATION: set(schema.kb.relations),
            Kind.KEY: set(schema.keys(False)),
            Kind.QUALIFIER_KEY: set(schema.keys(True)),
        }
        if any(text not in lists[kind] for kind, text in given.items() if kind in lists):
            return False
        name = call.function.name
        needed = next((type for end, type in OF_SUFFIX.items() if name.endswith(end)), None)
        if name.startswith("Verify"):
            key: Key = call.inputs[0].arguments[0], False
        elif name == "QueryAttrUnderCondition" or name.startswith("QFilter"):
            key = given[Kind.QUALIFIER_KEY], True
        elif Kind.KEY in given:
            key = given[Kind.KEY], False
        else:
            return True
        types = schema.types(key)
        if name.startswith("Select"):
            return "quantity" in types
        if needed is not None and needed not in types:
            return False
        if needed == "quantity":
            return self._has_unit(given[Kind.QUANTITY], key)
        if Kind.ANY_VALUE not in given or "string" in types:
            return True
        text = given[Kind.ANY_VALUE]
        as_time = "time" in types and _reads(read_time, text)
        return as_time or ("quantity" in types and self._has_unit(text, key))

    @cached_property
    def _named(self) -> set[str]:
        return set(self.names)

    def _has_unit(self, text: str, key: Key) -> bool:
        return _reads(read_quantity, text) and read_quantity(text).unit in self.schema.units(key)


def _kinds(function: Function) -> list[Kind]:
    return [kind for _, kind in function.arguments]


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueReadError:
        return False
    return True


class Maker:
    """Random programs of a language, and mutations of programs."""

    def __init__(self, language: Language, rng: random.Random) -> None:
        self.language, self.schema, self.rng = language, language.schema, rng

    # --- programs ---------------------------------------------------------------------------------

    def program(self) -> Call:
        """A program that the language has, of any function and not deeper than allowed."""
        while True:
            function = self.rng.choice([*FUNCTIONS.values()])
            made = self._call(function, self.rng.randint(1, self.language.depth), None)
            if made is not None:
                return made

    def _call(self, function: Function, depth: int, asked: str | None) -> Call | None:
        """A call; None where the schema has nothing for it. ``asked``: the key that it asks for."""
        if function.inputs and depth < 2:
            return None
        rng, schema = self.rng, self.schema
        kinds, name = _kinds(function), function.name
        needed = next((type for end, type in OF_SUFFIX.items() if name.endswith(end)), None)
        needed = "quantity" if name.startswith("Select") else needed
        key: Key | None = None
        if name.startswith("Verify"):
            keys = schema.keys(False, needed)
            if not keys:
                return None
            key = rng.choice(keys), False
        inputs = []
        for type in function.inputs:
            given = self._of_type(type, depth - 1, key[0] if key else None)
            if given is None:
                return None
            inputs.append(given)
        texts = []
        for kind in kinds:
            if kind in (Kind.KEY, Kind.QUALIFIER_KEY):
                qualifier = kind is Kind.QUALIFIER_KEY
                keys = schema.keys(qualifier, needed)
                if asked is not None and not qualifier:
                    keys = [asked]
                if not keys:
                    return None
                key = rng.choice(keys), qualifier
                texts.append(key[0])
            else:
                found = self.text(kind, key)
                if found is None:
                    return None
                texts.append(found)
        return Call(function, tuple(inputs), tuple(texts))

    def _of_type(self, wanted: Type, depth: int, asked: str | None) -> Call | None:
        fitting = [f for f in FUNCTIONS.values() if wanted.accepts(f.output)]
        for function in self.rng.sample(fitting, len(fitting)):
            found = self._call(function, depth, asked if wanted is Type.VALUES else None)
            if found is not None:
                return found
        return None

    def text(self, kind: Kind, key: Key | None) -> str | None:
        """An argument of a kind that is no key, beside a key."""
        rng, schema = self.rng, self.schema
        if kind.choices:
            return rng.choice(kind.choices)
        lists = {
            Kind.NAME: self.language.names,
            Kind.CONCEPT: schema.concepts,
            Kind.RELATION: [*schema.kb.relations],
        }
        if kind in lists:
            return rng.choice(lists[kind]) if lists[kind] else None
        if kind is Kind.STRING:
            return self.string()
        types = {Kind.QUANTITY: ["quantity"], Kind.TIME: ["time"]}.get(kind) or sorted(
            schema.types(key)
        )
        if kind is Kind.ANY_VALUE and "string" in types:
            return rng.choice([self.string, self.time, self.number])()
        if rng.choice(types) == "time":
            return self.time()
        unit = rng.choice(schema.units(key))
        return self.number() + rng.choice(["", " 1"] if unit == "1" else [f" {unit}"])

    def string(self) -> str:
        """Any text, with what must be escaped."""
        letters = 'abc "\\\n\t\x01\x7fé日,()<arg>[1]{}😀\u2028'
        return "".join(self.rng.choices(letters, k=self.rng.randint(0, 12)))

    def number(self) -> str:
        """A number in any spelling."""
        digits = f"{self.rng.randint(0, 10**6)}"
        return self.rng.choice(["", "", "-", "+"]) + self.rng.choice(
            [digits, f"{digits}.5", f".{digits}", f"{digits}.", f"{digits}e-05", "007"]
        )

    def time(self) -> str:
        """A year or a day in any spelling."""
        rng = self.rng
        year = rng.choice([rng.randint(1, 2100), 4 * rng.randint(1, 600), 100 * rng.randint(1, 30)])
        written = rng.choice(["", "", "-"]) + rng.choice([f"{year}", f"{year:04}", f"{year:08}"])
        if rng.random() < 0.4:
            return written
        month = rng.choice([2, rng.randint(1, 12)])
        day = rng.choice([days_in_month(year, month), rng.randint(1, 28)])
        mark = rng.choice("-/")
        short = rng.random() < 0.3
        return f"{written}{mark}{month if short else f'{month:02}'}{mark}{day:0{1 if short else 2}}"

    # --- mutations --------------------------------------------------------------------------------

    def mutated(self, program: Call, others: list[Call]) -> Call:
        """The program with one thing in it changed, for better or worse."""
        calls = list(post_order(program))
        at = self.rng.randrange(len(calls))
        return _replaced(
            program, iter(range(len(calls))), at, lambda call: self._other(call, others)
        )

    def _other(self, call: Call, others: list[Call]) -> Call:
        rng = self.rng
        ways: list[Callable[[], Call]] = [
            lambda: Call(rng.choice([*FUNCTIONS.values()]), call.inputs, call.arguments),
            lambda: rng.choice([*post_order(rng.choice(others))]),
            lambda: self._wrapped(call),
        ]
        if call.inputs:
            ways.append(lambda: call.inputs[0])
            ways.append(lambda: Call(call.function, call.inputs[1:], call.arguments))
            ways.append(lambda: Call(call.function, call.inputs[:1] * 2, call.arguments))
        if call.arguments:
            ways += [lambda: self._argued(call)] * 4
            ways.append(lambda: Call(call.function, call.inputs, call.arguments[1:]))
            ways.append(lambda: Call(call.function, call.inputs, (*call.arguments, "x")))
        return rng.choice(ways)()

    def _wrapped(self, call: Call) -> Call:
        for _ in range(self.rng.randint(1, self.language.depth)):
            call = Call(FUNCTIONS["And"], (call, Call(FUNCTIONS["FindAll"])))
        return call

    def _argued(self, call: Call) -> Call:
        rng, schema = self.rng, self.schema
        texts = list(call.arguments)
        at = rng.randrange(len(texts))
        text = texts[at]
        lists = [self.language.names, schema.concepts, [*schema.kb.relations]]
        lists += [schema.keys(False), schema.keys(True), [*schema.kb.units], schema.nodes]
        lists += [["=", "<", "forward", "largest", "less", UNDECLARED, ""]]
        place = rng.randint(0, len(text))
        amount = text.partition(" ")[0]
        texts[at] = rng.choice(
            [
                lambda: rng.choice(rng.choice([one for one in lists if one])),
                lambda: text[:place] + rng.choice('aZ0-/. é"\\') + text[place:],
                lambda: text[:place] + text[place + 1 :],
                lambda: f"{amount} {rng.choice([*schema.kb.units, 'furlong'])}",
                lambda: rng.choice(
                    ["2023-02-29", "1900-2-29", "2000-02-29", "-0", "1e", "5", "12/1"]
                ),
                lambda: self.time(),
                lambda: self.number(),
                lambda: text.upper(),
            ]
        )()
        return Call(call.function, call.inputs, tuple(texts))


def _replaced(program: Call, numbers: Any, at: int, change: Callable[[Call], Call]) -> Call:
    """The program with another call in the place of that number, in post-order."""
    inputs = tuple(_replaced(one, numbers, at, change) for one in program.inputs)
    made = Call(program.function, inputs, program.arguments)
    return change(made) if next(numbers) == at else made


# --- spellings ------------------------------------------------------------------------------------


def as_object(call: Call) -> dict[str, Any]:
    """A call as an object, whatever its inputs and arguments are; what has no name is "more"."""
    names = [*(name for name, _ in call.function.arguments), "more", "even more"]
    item: dict[str, Any] = {"function": call.function.name}
    if call.inputs:
        item["inputs"] = [as_object(one) for one in call.inputs]
    if call.arguments:
        item["arguments"] = dict(zip(names, call.arguments, strict=False))
    return item


def spelt(program: Call, form: str) -> str:
    """The program as a grammar of the form has it."""
    if form != "json-schema":
        return str(program)
    text = json.dumps({"program": as_object(program)}, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")  # which llguidance takes for a control character
