"""What a KoPL program denotes, worked out as plainly as the specification reads.

An independent second implementation, for differential tests only. It shares no code with the
executor it checks: every function below walks all facts in a loop, under the sentence it follows.

>>> kb = {"concepts": {}, "entities": {"Q1": {
...     "name": "Akron", "instanceOf": [], "relations": [], "attributes": [
...         {"key": "area", "value": {"type": "quantity", "value": 161.5, "unit": "km"}}]}}}
>>> Naive(kb).denotation([
...     {"function": "Find", "inputs": ["Akron"], "dependencies": []},
...     {"function": "QueryAttr", "inputs": ["area"], "dependencies": [0]}])
['161.5 km']
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple


class NaiveLoadError(ValueError):
    """The knowledge base is one that must be refused."""


class NaiveTypeError(Exception):
    """The program is ill-typed: found before anything runs."""


class NaiveExecutionError(Exception):
    """Strict mode: the program runs into one of the cases of 'Strict mode, errors'."""


# -- values ------------------------------------------------------------------------------------


class Value(NamedTuple):
    """A value; content is a str, a float, an int (year) or (year, month, day)."""

    kind: str  # string, quantity, year, date
    content: Any
    unit: str = ""  # quantities only; "1" = no unit


class Fact:
    """One fact. Attribute facts are never merged, so facts compare by identity."""

    def __init__(
        self, head: str, key: str, tail: Any, qualifiers: Sequence[tuple[str, Value]]
    ) -> None:
        self.head = head
        self.key = key
        self.tail = tail  # a Value for attributes, an id for relations
        self.qualifiers = tuple(qualifiers)

    def qualifier_values(self, qkey: str) -> list[Value]:
        return [value for key, value in self.qualifiers if key == qkey]


# The Unicode property White_Space; str.split() would add the four separators U+001C to U+001F.
_BLANKS = re.compile("[\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


def normal_name(name: str) -> str:
    # "runs of Unicode white space become one blank and the ends are trimmed"
    return _BLANKS.sub(" ", name).strip(" ")


def is_real_day(year: int, month: int, day: int) -> bool:
    # "a real day, proleptic Gregorian, negative years allowed"; year 0 is a leap year
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return 1 <= month <= 12 and 1 <= day <= lengths[month - 1]


_DAY = re.compile(r"(-?[0-9]+)([-/])([0-9]{1,2})\2([0-9]{1,2})")
_YEAR = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def read_quantity(text: str) -> Value:
    # "an ASCII number (sign, digits, point, exponent), then one blank and the unit, else unit 1"
    number, blank, unit = text.partition(" ")
    if not _NUMBER.fullmatch(number) or (blank and not unit):
        raise NaiveTypeError(f"not a number: {text!r}")
    if math.isinf(float(number)):
        raise NaiveTypeError(f"not finite: {text!r}")
    return Value("quantity", float(number), unit if blank else "1")


def read_time(text: str) -> Value:
    # "Year and Date functions both take a year or a day (- or /, one or two digits)"
    if _YEAR.fullmatch(text):
        return Value("year", int(text))
    day = _DAY.fullmatch(text)
    if day and is_real_day(int(day[1]), int(day[3]), int(day[4])):
        return Value("date", (int(day[1]), int(day[3]), int(day[4])))
    raise NaiveTypeError(f"neither a year nor a day: {text!r}")


def read_untyped(text: str) -> tuple[Value, ...]:
    # "every reading the text allows (string always; quantity; year or day)"
    readings = [Value("string", text)]
    for read in (read_quantity, read_time):
        try:
            readings.append(read(text))
        except NaiveTypeError:
            pass
    return tuple(readings)


def print_value(value: Value) -> str:
    if value.kind == "quantity":
        number = print_number(value.content)
        return number if value.unit == "1" else f"{number} {value.unit}"
    if value.kind == "date":
        year, month, day = value.content
        return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"
    return str(value.content)


def print_number(number: float) -> str:
    # "the shortest digits that read back as the same double, no exponent, no .0, no -0"
    if number == 0:
        return "0"
    digits = format(Decimal(repr(number)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def order_key(value: Value) -> tuple[Any, ...]:
    # "strings by code point; quantities by unit, then number; times by calendar, a year before
    # its days"; between types: strings, quantities, times
    if value.kind == "string":
        return (0, value.content)
    if value.kind == "quantity":
        return (1, value.unit, value.content)
    return (2, *(value.content if value.kind == "date" else (value.content, 0, 0)))


def satisfies(fact: Value, op: str, constant: Value) -> bool:
    """Does a fact's value satisfy the condition? One branch per row of the table."""
    kinds = (fact.kind, constant.kind)
    if kinds == ("quantity", "quantity") and fact.unit == constant.unit:
        return compare(fact.content, op, constant.content)
    if kinds == ("year", "year") or kinds == ("date", "date"):
        return compare(fact.content, op, constant.content)
    if kinds == ("date", "year"):
        return compare(fact.content[0], op, constant.content)
    if kinds == ("year", "date"):
        if op in ("=", "!="):
            return op == "!="  # never; always
        return compare(fact.content, op, constant.content[0])
    if kinds == ("string", "string"):
        return compare(fact.content, op, constant.content) if op in ("=", "!=") else False
    return False  # "the fact is skipped by every operator"


def compare(left: Any, op: str, right: Any) -> bool:
    if op == "=":
        return bool(left == right)
    if op == "!=":
        return bool(left != right)
    return bool(left < right) if op == "<" else bool(left > right)


def some_value_satisfies(values: Iterable[Value], op: str, constant: Value) -> bool:
    # "Filters, QFilters and Verify are existential: some value satisfies."
    return any(satisfies(value, op, constant) for value in values)


def equals_some_reading(value: Value, readings: Iterable[Value]) -> bool:
    # "compared by =; one matching reading is enough"
    return any(satisfies(value, "=", reading) for reading in readings)


# -- programs ----------------------------------------------------------------------------------

# name: (kinds of the functional inputs, kinds of the textual arguments, kind of the output)
# E set; F set with facts; V values; S names; N number; R relations; Q qualifier values; B yes/no
SIGNATURES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "FindAll": ("", (), "E"),
    "Find": ("", ("name",), "E"),
    "FilterConcept": ("E", ("concept",), "E"),
    "FilterStr": ("E", ("key", "string"), "F"),
    "FilterNum": ("E", ("key", "quantity", "op"), "F"),
    "FilterYear": ("E", ("key", "time", "op"), "F"),
    "FilterDate": ("E", ("key", "time", "op"), "F"),
    "QFilterStr": ("F", ("qkey", "string"), "F"),
    "QFilterNum": ("F", ("qkey", "quantity", "op"), "F"),
    "QFilterYear": ("F", ("qkey", "time", "op"), "F"),
    "QFilterDate": ("F", ("qkey", "time", "op"), "F"),
    "Relate": ("E", ("relation", "direction"), "F"),
    "And": ("EE", (), "E"),
    "Or": ("EE", (), "E"),
    "QueryName": ("E", (), "S"),
    "Count": ("E", (), "N"),
    "QueryAttr": ("E", ("key",), "V"),
    "QueryAttrUnderCondition": ("E", ("key", "qkey", "untyped"), "V"),
    "QueryRelation": ("EE", (), "R"),
    "SelectBetween": ("EE", ("key", "between"), "S"),
    "SelectAmong": ("E", ("key", "among"), "S"),
    "VerifyStr": ("V", ("string",), "B"),
    "VerifyNum": ("V", ("quantity", "op"), "B"),
    "VerifyYear": ("V", ("time", "op"), "B"),
    "VerifyDate": ("V", ("time", "op"), "B"),
    "QueryAttrQualifier": ("E", ("key", "untyped", "qkey"), "Q"),
    "QueryRelationQualifier": ("EE", ("relation", "qkey"), "Q"),
}

_CHOICES = {
    "op": ("=", "!=", "<", ">"),
    "direction": ("forward", "backward"),
    "between": ("greater", "less"),
    "among": ("largest", "smallest"),
}


def accepts(wanted: str, given: str) -> bool:
    """May an output of one kind feed an input of another? Every E input takes an F."""
    return wanted == given or (wanted, given) == ("E", "F")


def read_argument(kind: str, text: Any) -> Any:
    if not isinstance(text, str):
        raise NaiveTypeError(f"a textual argument is text, not {text!r}")
    if kind in _CHOICES:
        if text not in _CHOICES[kind]:
            raise NaiveTypeError(f"{text!r} is none of {_CHOICES[kind]}")
        return text
    if kind in ("name", "concept"):
        return normal_name(text)
    if kind == "string":
        return Value("string", text)
    if kind == "quantity":
        return read_quantity(text)
    if kind == "time":
        return read_time(text)
    if kind == "untyped":
        return read_untyped(text)
    return text  # keys, qualifier keys and relations are exact


def read_arguments(function: str, inputs: Sequence[Any]) -> list[Any]:
    kinds = SIGNATURES[function][1]
    if len(inputs) != len(kinds):
        raise NaiveTypeError(f"{function} takes {len(kinds)} arguments, not {len(inputs)}")
    return [read_argument(kind, text) for kind, text in zip(kinds, inputs, strict=True)]


class Step(NamedTuple):
    function: str
    dependencies: tuple[int, ...]
    arguments: list[Any]


def check(program: Sequence[dict[str, Any]]) -> list[Step]:
    """The steps with typed arguments; every call but the last feeds exactly one later call."""
    steps: list[Step] = []
    waiting: list[int] = []
    for call in program:
        function = "QueryName" if call["function"] == "What" else call["function"]
        if function not in SIGNATURES:
            raise NaiveTypeError(f"no function {function!r}")
        wanted = SIGNATURES[function][0]
        dependencies = tuple(call["dependencies"])
        if len(dependencies) != len(wanted):
            raise NaiveTypeError(f"{function} takes {len(wanted)} inputs, not {dependencies}")
        for kind, index in zip(wanted, dependencies, strict=True):
            if index not in waiting:
                raise NaiveTypeError(f"{function} cannot take the output of call {index}")
            waiting.remove(index)
            given = SIGNATURES[steps[index].function][2]
            if not accepts(kind, given):
                raise NaiveTypeError(f"{function} does not take {steps[index].function}")
        waiting.append(len(steps))
        steps.append(Step(function, dependencies, read_arguments(function, call["inputs"])))
    if len(waiting) != 1:
        raise NaiveTypeError("not one program with its root last")
    return steps


@dataclass(frozen=True)
class Result:
    """What a call gives: ids (each once) with the facts that put them there, or values."""

    kind: str
    ids: tuple[str, ...] = ()
    carried: tuple[tuple[str, Fact], ...] = ()
    values: tuple[Value, ...] = ()


def located(carried: Iterable[tuple[str, Fact]]) -> Result:
    """The set of ids with the facts that put each id there."""
    pairs = tuple(carried)
    return Result("F", tuple(dict.fromkeys(one for one, _ in pairs)), pairs)


def distinct(kind: str, values: Iterable[Value]) -> Result:
    return Result(kind, values=tuple(dict.fromkeys(values)))


def strings(kind: str, texts: Iterable[str]) -> Result:
    return distinct(kind, (Value("string", text) for text in texts))


# -- the knowledge base and the functions ------------------------------------------------------


class Naive:
    """The knowledge base of a kb.json object (spelling A) and what each function does on it."""

    def __init__(self, kb: dict[str, Any], strict: bool = False) -> None:
        self.strict = strict
        concepts, entities = kb["concepts"], kb["entities"]
        for one in entities:
            if one in concepts:
                raise NaiveLoadError(f"{one} is both concept and entity")
        self.entities = list(entities)
        self.concepts = list(concepts)
        self.names = {
            one: normal_name(record["name"])
            for one, record in [*entities.items(), *concepts.items()]
        }
        # "a dangling id (that fact or link is dropped)"
        self.parents = {
            one: [up for up in record["subclassOf"] if up in concepts]
            for one, record in concepts.items()
        }
        self.classes = {
            one: [up for up in record["instanceOf"] if up in concepts]
            for one, record in entities.items()
        }
        self.attribute_facts = [
            Fact(one, fact["key"], load_value(fact["value"]), load_qualifiers(fact))
            for one, record in entities.items()
            for fact in record["attributes"]
        ]
        self.relation_facts = self._load_relations(entities)

    def _load_relations(self, entities: dict[str, Any]) -> list[Fact]:
        # "Two relation records are one fact when head, relation, tail and the set of (qualifier
        # key, value) pairs agree; otherwise they are two."
        facts: dict[Any, Fact] = {}
        for one, record in entities.items():
            for written in record["relations"]:
                other, relation = written["object"], written["relation"]
                if other not in self.names:
                    continue
                head, tail = (one, other) if written["direction"] == "forward" else (other, one)
                qualifiers = list(dict.fromkeys(load_qualifiers(written)))
                same = (head, relation, tail, frozenset(qualifiers))
                facts.setdefault(same, Fact(head, relation, tail, qualifiers))
        return list(facts.values())

    # -- running ---------------------------------------------------------------------------

    def denotation(self, program: Sequence[dict[str, Any]]) -> list[str]:
        """The strings a program denotes, in the specified order, equal strings once."""
        return self.print_result(self.run(program))

    def run(self, program: Sequence[dict[str, Any]]) -> Result:
        """The root's result: for a set, the ids and the facts carried."""
        results: list[Result] = []
        for step in check(program):
            inputs = [results[index] for index in step.dependencies]
            results.append(self.apply(step.function, inputs, step.arguments))
        return results[-1]

    def apply(self, function: str, inputs: list[Result], arguments: list[Any]) -> Result:
        """The result of one checked call."""
        kind = SIGNATURES[function][2]
        if function.startswith(("Filter", "QFilter", "Verify")) and function != "FilterConcept":
            if function.endswith("Str"):
                arguments = [*arguments[:-1], "=", arguments[-1]]
            else:
                arguments = [*arguments[:-2], arguments[-1], arguments[-2]]
            name = function.removesuffix("Str").removesuffix("Num")
            name = name.removesuffix("Year").removesuffix("Date")
            result = getattr(self, name)(*inputs, *arguments)
        else:
            result = getattr(self, function)(*inputs, *arguments)
        assert isinstance(result, Result) and result.kind == kind
        return result

    def print_result(self, result: Result) -> list[str]:
        # "a set denotes its names, values denote themselves"
        values = list(result.values)
        if result.kind in ("E", "F"):
            values = [Value("string", self.names[one]) for one in result.ids]
        return list(dict.fromkeys(print_value(v) for v in sorted(values, key=order_key)))

    # -- sets ------------------------------------------------------------------------------

    def FindAll(self) -> Result:
        # "all entities, no concepts"
        return Result("E", tuple(self.entities))

    def Find(self, name: str) -> Result:
        # "the entities and the concepts with that name"
        return Result("E", tuple(one for one in self.names if self.names[one] == name))

    def FilterConcept(self, given: Result, concept: str) -> Result:
        # "the input's entities that are instances of a concept named c or of any of its
        # descendants"
        kept = []
        for one in given.ids:
            if one in self.classes:
                if concept in [self.names[up] for up in self.all_classes(one)]:
                    kept.append(one)
        return Result("E", tuple(kept))

    def all_classes(self, one: str) -> list[str]:
        """The concepts of an entity and all their ancestors, cycles or not."""
        found = list(self.classes[one])
        for concept in found:  # grows while it is walked
            found += [up for up in self.parents[concept] if up not in found]
        return found

    def attributes(self, given: Result, key: str) -> list[Fact]:
        """The attribute facts of that key of the ids given."""
        members = set(given.ids)
        return [f for f in self.attribute_facts if f.key == key and f.head in members]

    def Filter(self, given: Result, key: str, op: str, constant: Value) -> Result:
        # "the ids with at least one fact of that key that satisfies the condition; those facts"
        facts = self.attributes(given, key)
        return located((f.head, f) for f in facts if satisfies(f.tail, op, constant))

    def QFilter(self, given: Result, qkey: str, op: str, constant: Value) -> Result:
        # "of the facts carried, those with a satisfying qualifier value; the ids they put there"
        return located(
            (one, fact)
            for one, fact in given.carried
            if some_value_satisfies(fact.qualifier_values(qkey), op, constant)
        )

    def Relate(self, given: Result, relation: str, direction: str) -> Result:
        # "from every id of the input: forward gives objects, backward subjects; those facts"
        members = set(given.ids)
        facts = [f for f in self.relation_facts if f.key == relation]
        if direction == "forward":
            return located((f.tail, f) for f in facts if f.head in members)
        return located((f.head, f) for f in facts if f.tail in members)

    def And(self, first: Result, second: Result) -> Result:
        return Result("E", tuple(one for one in first.ids if one in second.ids))

    def Or(self, first: Result, second: Result) -> Result:
        return Result("E", tuple(dict.fromkeys(first.ids + second.ids)))

    # -- questions -------------------------------------------------------------------------

    def QueryName(self, given: Result) -> Result:
        return strings("S", (self.names[one] for one in given.ids))

    def Count(self, given: Result) -> Result:
        # "the number of distinct ids"
        return Result("N", values=(Value("quantity", float(len(set(given.ids))), "1"),))

    def QueryAttr(self, given: Result, key: str) -> Result:
        return distinct("V", (f.tail for f in self.attributes(given, key)))

    def QueryAttrUnderCondition(
        self, given: Result, key: str, qkey: str, readings: tuple[Value, ...]
    ) -> Result:
        # "the distinct values of facts of k with a qualifier qk equal to qv"
        kept = []
        for fact in self.attributes(given, key):
            if any(equals_some_reading(v, readings) for v in fact.qualifier_values(qkey)):
                kept.append(fact.tail)
        return distinct("V", kept)

    def between(self, first: Result, second: Result) -> list[Fact]:
        """The relational facts (s, r, t) for an s of the first and a t of the second input."""
        return [f for f in self.relation_facts if f.head in first.ids and f.tail in second.ids]

    def QueryRelation(self, first: Result, second: Result) -> Result:
        # "head first; never instance-of or subclass-of": those links are no facts here
        return strings("R", (f.key for f in self.between(first, second)))

    def QueryAttrQualifier(
        self, given: Result, key: str, readings: tuple[Value, ...], qkey: str
    ) -> Result:
        # "the distinct values of qk on facts (e, k, v)"
        kept = []
        for fact in self.attributes(given, key):
            if equals_some_reading(fact.tail, readings):
                kept += fact.qualifier_values(qkey)
        return distinct("Q", kept)

    def QueryRelationQualifier(
        self, first: Result, second: Result, relation: str, qkey: str
    ) -> Result:
        kept = []
        for fact in self.between(first, second):
            if fact.key == relation:
                kept += fact.qualifier_values(qkey)
        return distinct("Q", kept)

    def quantities(self, given: Result, key: str) -> list[Fact]:
        return [f for f in self.attributes(given, key) if f.tail.kind == "quantity"]

    def SelectAmong(self, given: Result, key: str, extreme: str) -> Result:
        facts = self.quantities(given, key)
        if self.strict:
            self.demand_one_winner(facts, extreme)
        return self.extremes(facts, {f.tail.unit for f in facts}, extreme == "largest")

    def SelectBetween(self, first: Result, second: Result, key: str, extreme: str) -> Result:
        # "the same over both inputs together (an id in both counts once), among units that both
        # inputs have"
        left, right = self.quantities(first, key), self.quantities(second, key)
        if self.strict:
            self.demand_two_sides(first, second, left, right)
        units = {f.tail.unit for f in left} & {f.tail.unit for f in right}
        return self.extremes(list(dict.fromkeys(left + right)), units, extreme == "greater")

    def extremes(self, facts: list[Fact], units: set[str], largest: bool) -> Result:
        # "the unit with most facts (smallest by code point on a tie); the names of the ids with
        # a value in that unit equal to the extreme. No candidate: empty. Ties: several"
        best, most = "", 0
        for unit in sorted(units):
            count = sum(1 for f in facts if f.tail.unit == unit)
            if count > most:
                best, most = unit, count
        if most == 0:
            return Result("S")
        numbers = [f.tail.content for f in facts if f.tail.unit == best]
        extreme = max(numbers) if largest else min(numbers)
        winners = [f for f in facts if f.tail.unit == best and f.tail.content == extreme]
        return strings("S", (self.names[f.head] for f in winners))

    def Verify(self, given: Result, op: str, constant: Value) -> Result:
        # "yes when some value satisfies the condition, else no; of no value it is no"
        if self.strict and len(given.values) != 1:
            raise NaiveExecutionError(f"Verify of {len(given.values)} values")
        yes = some_value_satisfies(given.values, op, constant)
        return strings("B", ["yes" if yes else "no"])

    # -- strict mode -----------------------------------------------------------------------

    def demand_two_sides(
        self, first: Result, second: Result, left: list[Fact], right: list[Fact]
    ) -> None:
        # "each side is one id with one quantity, same unit, different numbers"
        if len(first.ids) != 1 or len(second.ids) != 1:
            raise NaiveExecutionError("SelectBetween of sides that are not one id each")
        one, other = {f.tail for f in left}, {f.tail for f in right}
        if len(one) != 1 or len(other) != 1:
            raise NaiveExecutionError("SelectBetween of sides without exactly one quantity")
        (a,), (b,) = one, other
        if a.unit != b.unit or a.content == b.content:
            raise NaiveExecutionError("SelectBetween of two units or of equal numbers")

    def demand_one_winner(self, facts: list[Fact], extreme: str) -> None:
        # "two or more ids with one quantity each, one unit and one winner"
        values: dict[str, set[Value]] = {}
        for fact in facts:
            values.setdefault(fact.head, set()).add(fact.tail)
        if len(values) < 2 or any(len(each) != 1 for each in values.values()):
            raise NaiveExecutionError("SelectAmong without two ids of one quantity each")
        if len({f.tail.unit for f in facts}) != 1:
            raise NaiveExecutionError("SelectAmong of several units")
        numbers = [each.content for (each,) in values.values()]
        best = max(numbers) if extreme == "largest" else min(numbers)
        if numbers.count(best) != 1:
            raise NaiveExecutionError("SelectAmong with several winners")


def load_value(record: dict[str, Any]) -> Value:
    """A value of the knowledge base, repaired or refused."""
    kind, content = record["type"], record["value"]
    number = isinstance(content, (int, float)) and not isinstance(content, bool)
    if kind == "string" and isinstance(content, str):
        return Value("string", content)
    if kind == "quantity" and number and abs(content) < 2**1024 and math.isfinite(content):
        return Value("quantity", float(content), record.get("unit", "1"))
    if kind == "year" and number and isinstance(content, int):
        return Value("year", content)
    if kind == "date" and isinstance(content, str):
        day = _DAY.fullmatch(content)
        if day and (int(day[3]) == 0 or int(day[4]) == 0):
            return Value("year", int(day[1]))  # "a date with month or day 00 (becomes the year)"
        if day and is_real_day(int(day[1]), int(day[3]), int(day[4])):
            return Value("date", (int(day[1]), int(day[3]), int(day[4])))
    raise NaiveLoadError(f"refused: {record!r}")


def load_qualifiers(fact: dict[str, Any]) -> list[tuple[str, Value]]:
    """The (qualifier key, value) pairs; missing qualifiers are none."""
    pairs = []
    for qkey, values in fact.get("qualifiers", {}).items():
        pairs += [(qkey, load_value(value)) for value in values]
    return pairs
