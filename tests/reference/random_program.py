"""Random well-typed programs, most of them grounded in the facts of a knowledge base.

A program grows from a leaf upwards and is evaluated while it grows, so that the next function
can be given a key, a relation or a value that the set reached so far really has. Half of the
programs are built around the ordered pair of functions that is rarest so far.

>>> from .random_kb import random_kb
>>> sampler = ProgramSampler(random_kb(random.Random(1)), random.Random(2))
>>> [call["function"] for call in sampler.sample()][-1] in SIGNATURES
True
"""

import math
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from unicodedata import normalize

from .naive import (
    SIGNATURES,
    Fact,
    Naive,
    Result,
    Value,
    accepts,
    print_value,
    read_arguments,
    read_quantity,
    satisfies,
)

OPS = ("=", "!=", "<", ">")
SET_FUNCTIONS = [f for f, (_, _, output) in SIGNATURES.items() if output in "EF"]
FACT_FUNCTIONS = [f for f, (_, _, output) in SIGNATURES.items() if output == "F"]
CONSUMERS = [f for f, (inputs, _, _) in SIGNATURES.items() if inputs]
MAX_DEPTH = 8
MAX_CALLS = 18


def well_typed_pairs() -> list[tuple[str, str]]:
    """All ordered pairs (f, g) where f may feed g directly."""
    return [
        (f, g)
        for f, (_, _, output) in SIGNATURES.items()
        for g, (inputs, _, _) in SIGNATURES.items()
        if any(accepts(wanted, output) for wanted in inputs)
    ]


def pairs_of(program: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """The ordered pairs (f, g), f directly feeding g, that a program has."""
    return [
        (program[index]["function"], call["function"])
        for call in program
        for index in call["dependencies"]
    ]


class Node:
    """A call with its inputs and its result."""

    def __init__(
        self, function: str, inputs: Sequence["Node"], texts: Sequence[str], result: Result
    ) -> None:
        self.function = function
        self.inputs = list(inputs)
        self.texts = list(texts)
        self.result = result
        self.depth: int = 1 + max((node.depth for node in inputs), default=0)
        self.calls: int = 1 + sum(node.calls for node in inputs)

    @property
    def kind(self) -> str:
        return SIGNATURES[self.function][2]

    @property
    def is_empty(self) -> bool:
        return not self.result.ids and not self.result.values

    def program(self) -> list[dict[str, Any]]:
        """The JSON list: post-order, root last."""
        calls: list[dict[str, Any]] = []
        self._write(calls)
        return calls

    def _write(self, calls: list[dict[str, Any]]) -> int:
        dependencies = [node._write(calls) for node in self.inputs]
        calls.append(
            {"function": self.function, "inputs": self.texts, "dependencies": dependencies}
        )
        return len(calls) - 1


class ProgramSampler:
    """Well-typed programs over one knowledge base.

    Samplers over several knowledge bases may share one Counter of pairs, so that the rarest pair
    is the rarest of all. `miss` is the chance that a constant is a near miss; a careless third of
    the programs has twice the chance and is not built again when it comes out empty.
    """

    def __init__(
        self,
        kb: dict[str, Any],
        rng: random.Random,
        counts: Counter[tuple[str, str]] | None = None,
        miss: float = 0.15,
    ) -> None:
        self.naive = Naive(kb)
        self.rng = rng
        self.counts: Counter[tuple[str, str]] = Counter() if counts is None else counts
        self.usual_miss = self.miss = miss
        self.tries = 1
        self.pairs = well_typed_pairs()
        naive = self.naive
        self.ids = naive.entities + naive.concepts
        self.facts = naive.attribute_facts + naive.relation_facts
        self.keys = _each_once([f.key for f in naive.attribute_facts])
        self.relations = _each_once([f.key for f in naive.relation_facts])
        self.qkeys = _each_once([q for f in self.facts for q, _ in f.qualifiers])
        self.values = _each_once(
            [f.tail for f in naive.attribute_facts]
            + [value for f in self.facts for _, value in f.qualifiers]
        )

    def sample(self) -> list[dict[str, Any]]:
        """One program as the JSON list of KQA Pro."""
        careless = self.rng.random() < 0.35
        self.miss = self.usual_miss * (2 if careless else 0.5)
        self.tries = 1 if careless else 4
        if self.rng.random() < 0.5:
            node = self._around_pair(*self._rarest_pair())
        else:
            node = self._some_set(self.rng.choice([0, 0, 1, 1, 2]))
            node = self._grow(node, self.rng.choice([0, 1, 2, 2, 3, 4]))
        program = self._finish(node).program()
        self.counts.update(pairs_of(program))
        return program

    # -- shapes ----------------------------------------------------------------------------

    def _rarest_pair(self) -> tuple[str, str]:
        fewest = min(self.counts[pair] for pair in self.pairs)
        return self.rng.choice([pair for pair in self.pairs if self.counts[pair] == fewest])

    def _around_pair(self, first: str, second: str) -> Node:
        """A node that ends in the pair, not empty if a few tries reach that."""
        node = None
        for _ in range(self.tries):
            node = self._apply(second, self._ending_in(first))
            if not node.is_empty:
                break
        assert node is not None
        return self._grow(node, self.rng.choice([0, 0, 1, 2])) if node.kind in "EF" else node

    def _ending_in(self, function: str) -> Node:
        """A node whose root is the function, not empty if a few tries reach that."""
        if function == "FindAll":
            return self._call("FindAll", [], [])
        node = None
        for _ in range(self.tries):
            if function == "Find":
                node = self._find(self.rng.choice(self.ids))
            elif function.startswith("QFilter"):
                node = self._apply(function, self._some_facts())
            else:
                node = self._apply(function, self._some_set(self.rng.choice([0, 0, 1])))
            if not node.is_empty:
                break
        assert node is not None
        return node

    def _some_set(self, depth: int) -> Node:
        rng = self.rng
        if rng.random() < 0.25:
            return self._call("FindAll", [], [])
        one = rng.choice(self.ids if rng.random() < 0.3 else self.naive.entities)
        return self._describe(one, depth)

    def _some_facts(self) -> Node:
        """A node with facts, from a filter, a relation or another QFilter."""
        function = self.rng.choice(FACT_FUNCTIONS + ["Relate"] * 3)
        if function.startswith("QFilter"):
            function = self.rng.choice([f for f in FACT_FUNCTIONS if f[0] != "Q"])
            return self._qualify(self._apply(function, self._some_set(0)))
        return self._apply(function, self._some_set(0))

    def _grow(self, node: Node, steps: int) -> Node:
        """The node with some set functions on top."""
        for _ in range(steps):
            if node.depth > MAX_DEPTH - 3 or node.calls > MAX_CALLS - 8:
                break
            functions = [f for f in SET_FUNCTIONS if self._takes(f, node)]
            grown = self._attempt(functions, node)
            node = grown
        return node

    def _finish(self, node: Node) -> Node:
        """The node, or the node with a question on top (and Verify on top of values)."""
        rng = self.rng
        if node.kind in "EF" and rng.random() < 0.7:
            questions = [f for f in CONSUMERS if f not in SET_FUNCTIONS and self._takes(f, node)]
            node = self._attempt(questions, node)
        if node.kind == "V" and rng.random() < 0.4:
            node = self._attempt([f for f in CONSUMERS if f.startswith("Verify")], node)
        return node

    def _attempt(self, functions: list[str], node: Node) -> Node:
        """One of the functions on top of the node, not empty if a few tries reach that."""
        made = node
        for _ in range(self.tries):
            made = self._apply(self.rng.choice(functions), node)
            if not made.is_empty or node.is_empty:
                break
        return made

    def _takes(self, function: str, node: Node) -> bool:
        return any(accepts(wanted, node.kind) for wanted in SIGNATURES[function][0])

    # -- one call --------------------------------------------------------------------------

    def _call(self, function: str, inputs: Sequence[Node], texts: Sequence[str]) -> Node:
        arguments = read_arguments(function, texts)
        result = self.naive.apply(function, [node.result for node in inputs], arguments)
        return Node(function, inputs, texts, result)

    def _apply(self, function: str, node: Node) -> Node:
        """The function on top of the node, with grounded arguments where there are any."""
        inputs, kinds, _ = SIGNATURES[function]
        if len(inputs) == 2:
            return self._apply_two(function, node)
        if function.startswith("Verify"):
            texts = self._condition(function, list(node.result.values))
        else:
            texts = self._grounded(function, node)
        if texts is None:  # the set has nothing that fits
            texts = [self._anything(kind) for kind in kinds]
        return self._call(function, [node], texts)

    def _grounded(self, function: str, node: Node) -> list[str] | None:
        """Textual arguments that some fact of the set has; None when no fact fits."""
        rng = self.rng
        members = set(node.result.ids)
        own = [f for f in self.naive.attribute_facts if f.head in members]
        if function == "FilterConcept":
            entities = [one for one in node.result.ids if one in self.naive.classes]
            return self._concept_of(rng.choice(entities)) if entities else None
        if function == "Relate":
            ends = [
                (f, way)
                for f in self.naive.relation_facts
                for way, end in (("forward", f.head), ("backward", f.tail))
                if end in members
            ]
            if not ends:
                return None
            fact, way = rng.choice(ends)
            return [self._known(fact.key, "relation"), way]
        if function.startswith("QFilter"):
            facts = [fact for _, fact in node.result.carried]
            if rng.random() < self.miss:  # a qualifier of another fact of the same ids
                facts = own + [f for f in self.naive.relation_facts if f.tail in members]
            return self._qualifier_condition(function, facts)
        if function.startswith("Filter"):
            return self._attribute_condition(function, own)
        if function in ("QueryName", "Count"):
            return []
        if function == "SelectAmong":
            own = [f for f in own if f.tail.kind == "quantity"]
        if function in ("QueryAttrUnderCondition", "QueryAttrQualifier"):
            own = [f for f in own if f.qualifiers]
        if not own:
            return None
        fact = rng.choice(own)
        key = self._known(fact.key, "key")
        if function == "SelectAmong":
            return [key, rng.choice(["largest", "smallest"])]
        if function == "QueryAttr":
            return [key]
        if rng.random() < self.miss:  # a qualifier of another fact of the same ids
            qkey, value = rng.choice(rng.choice(own).qualifiers)
        else:
            qkey, value = rng.choice(fact.qualifiers)
        if function == "QueryAttrUnderCondition":
            return [key, self._known(qkey, "qkey"), self._untyped(value)]
        return [key, self._untyped(fact.tail), self._known(qkey, "qkey")]

    def _apply_two(self, function: str, node: Node) -> Node:
        """A function of two inputs; the other one is built so that something comes out."""
        rng = self.rng
        other, swap, texts = None, rng.random() < 0.5, None
        depth = rng.choice([0, 0, 1])
        members = set(node.result.ids)
        if function in ("And", "Or"):
            texts = []
            if node.result.ids and (function == "And" or rng.random() < 0.3):
                other = self._describe(rng.choice(node.result.ids), max(depth, 1))
        elif function == "SelectBetween":
            facts = [f for f in self.naive.attribute_facts if f.tail.kind == "quantity"]
            own = [f for f in facts if f.head in members]
            if own:
                fact = rng.choice(own)
                same = [f for f in facts if (f.key, f.tail.unit) == (fact.key, fact.tail.unit)]
                other = self._describe(rng.choice(same).head, depth)
                if rng.random() < 0.4:  # several ids, some perhaps in both inputs
                    shared = self._describe(rng.choice([fact, *same]).head, depth)
                    other = self._call("Or", [other, shared], [])
                texts = [self._known(fact.key, "key"), rng.choice(["greater", "less"])]
        else:  # QueryRelation, QueryRelationQualifier
            facts = [f for f in self.naive.relation_facts if f.head in members or f.tail in members]
            if function == "QueryRelationQualifier":
                facts = [f for f in facts if f.qualifiers]
            if facts:
                fact = rng.choice(facts)
                swap = fact.tail in members and (fact.head not in members or swap)
                other = self._describe(fact.head if swap else fact.tail, depth)
                texts = []
                if function == "QueryRelationQualifier":
                    texts = [
                        self._known(fact.key, "relation"),
                        self._known(rng.choice(fact.qualifiers)[0], "qkey"),
                    ]
        if other is None or other.calls + node.calls > MAX_CALLS - 4:
            other = self._some_set(0)
        if texts is None:
            texts = [self._anything(kind) for kind in SIGNATURES[function][1]]
        return self._call(function, [other, node] if swap else [node, other], texts)

    # -- descriptions of one id ------------------------------------------------------------

    def _find(self, one: str) -> Node:
        return self._call("Find", [], [self._name(self.naive.names[one])])

    def _describe(self, one: str, depth: int) -> Node:
        """A set with that id in it (unless a constant is a near miss)."""
        rng = self.rng
        if depth == 0:
            return self._find(one)
        own = [f for f in self.naive.attribute_facts if f.head == one]
        links = [f for f in self.naive.relation_facts if one in (f.head, f.tail)]
        ways = ["name", "both", "either"]
        ways += ["attribute"] * 3 if own else []
        ways += ["relation"] * 4 if links else []
        ways += ["concept"] * 2 if self.naive.classes.get(one) else []
        way = rng.choice(ways)
        if way == "name":
            return self._find(one)
        if way == "both":
            parts = [self._describe(one, depth - 1), self._describe(one, depth - 1)]
            return self._call("And", parts, [])
        if way == "either":
            parts = [self._describe(one, depth - 1), self._some_set(depth - 1)]
            rng.shuffle(parts)
            return self._call("Or", parts, [])
        if way == "concept":
            return self._call("FilterConcept", [self._wide(one, depth)], self._concept_of(one))
        if way == "attribute":
            function = _function_for("Filter", rng.choice(own).tail, rng)
            texts = self._attribute_condition(function, own)
            assert texts is not None
            node = self._call(function, [self._wide(one, depth)], texts)
        else:
            fact = rng.choice(links)
            forward = fact.tail == one and (fact.head != one or rng.random() < 0.5)
            start = self._describe(fact.head if forward else fact.tail, depth - 1)
            way = "forward" if forward else "backward"
            node = self._call("Relate", [start], [self._known(fact.key, "relation"), way])
        return self._qualify(node) if rng.random() < 0.3 else node

    def _wide(self, one: str, depth: int) -> Node:
        if self.rng.random() < 0.6:
            return self._call("FindAll", [], [])
        return self._describe(one, depth - 1)

    def _qualify(self, node: Node) -> Node:
        """The node with a QFilter on top, when its facts have qualifiers."""
        values = [value for _, fact in node.result.carried for _, value in fact.qualifiers]
        if not values:
            return node
        return self._apply(_function_for("QFilter", self.rng.choice(values), self.rng), node)

    # -- textual arguments -----------------------------------------------------------------

    def _attribute_condition(self, function: str, facts: list[Fact]) -> list[str] | None:
        facts = [f for f in facts if _reads(function, f.tail)]
        if not facts:
            return None
        fact = self.rng.choice(facts)
        return [self._known(fact.key, "key"), *self._conditions(function, fact.tail)]

    def _qualifier_condition(self, function: str, facts: list[Fact]) -> list[str] | None:
        pairs = [pair for f in facts for pair in f.qualifiers if _reads(function, pair[1])]
        if not pairs:
            return None
        qkey, value = self.rng.choice(pairs)
        return [self._known(qkey, "qkey"), *self._conditions(function, value)]

    def _condition(self, function: str, values: list[Value]) -> list[str] | None:
        values = [value for value in values if _reads(function, value)]
        return self._conditions(function, self.rng.choice(values)) if values else None

    def _conditions(self, function: str, value: Value) -> list[str]:
        """A constant and an operator, satisfied by the value unless a near miss."""
        rng = self.rng
        if function.endswith("Str"):
            missed = rng.random() < self.miss
            return [self._string_miss(value.content) if missed else value.content]
        op = rng.choice(OPS)
        if rng.random() < self.miss:
            return [self._near_miss(value), op]
        around = [constant for constant in self._around(value) if satisfies(value, op, constant)]
        if not around:
            return [self._spelled(value), "="]
        return [self._spelled(rng.choice(around)), op]

    def _around(self, value: Value) -> list[Value]:
        """The value, others of its kind in the knowledge base, and close ones."""
        if value.kind == "quantity":
            number = value.content
            close = [number, number + 1, number - 1, number * 2, number / 2, -number, 0.0]
            found = [Value("quantity", n, value.unit) for n in close if math.isfinite(n)]
            return found + [v for v in self.values if (v.kind, v.unit) == (value.kind, value.unit)]
        year = value.content[0] if value.kind == "date" else value.content
        found = [value, Value("year", year), Value("year", year + 1), Value("year", year - 1)]
        if value.kind == "date":
            found += [Value("date", (year, 1, 1)), Value("date", (year, 12, 31))]
        return found + [v for v in self.values if v.kind in ("year", "date")]

    def _near_miss(self, value: Value) -> str:
        """A constant of the same family that is close but perhaps not satisfied."""
        rng = self.rng
        if value.kind == "quantity":
            if rng.random() < 0.5:
                unit = rng.choice([v.unit for v in self.values if v.kind == "quantity"] + ["ell"])
                return self._spelled(Value("quantity", value.content, unit))
            close = [v for v in self.values if v.kind == "quantity"]
            return self._spelled(rng.choice(close))
        if rng.random() < 0.5:  # a year for a date, a date for a year
            if value.kind == "date":
                return str(value.content[0])
            return self._spelled(
                Value("date", (value.content, rng.randint(1, 12), rng.randint(1, 28)))
            )
        return self._spelled(rng.choice([v for v in self.values if v.kind in ("year", "date")]))

    def _untyped(self, value: Value) -> str:
        """A text with a reading equal to the value, unless a near miss."""
        rng = self.rng
        if rng.random() < self.miss:
            return rng.choice([self._anything("untyped"), self._string_miss(print_value(value))])
        if value.kind == "date" and rng.random() < 0.25:
            return str(value.content[0])  # the year it lies in
        return self._spelled(value)

    def _string_miss(self, text: str) -> str:
        """Another string: in other case, trimmed or padded, or one of other facts."""
        close = [text.swapcase(), text.strip(), text + " ", normalize("NFD", text)]
        close = [other for other in close if other != text]
        if self.rng.random() < 0.75:
            return self.rng.choice(close)
        known = [v.content for v in self.values if v.kind == "string"]
        missed: str = self.rng.choice([*known, "unheard of"])
        return missed

    def _spelled(self, value: Value) -> str:
        """The value as a constant, now and then in an unusual spelling."""
        rng = self.rng
        if rng.random() > 0.35:
            return print_value(value)
        if value.kind == "quantity":
            number = rng.choice(_spellings(value.content))
            if value.unit == "1":
                return number + rng.choice(["", "", " 1"])
            return f"{number} {value.unit}"
        if value.kind == "date":
            year, month, day = value.content
            years = [str(year), f"{'-' if year < 0 else ''}{abs(year):04d}"]
            months = rng.choice([f"{month}/{day}", f"{month:02d}/{day:02d}", f"{month}-{day}"])
            return rng.choice(years) + ("/" if "/" in months else "-") + months
        return print_value(value)

    def _name(self, name: str) -> str:
        rng = self.rng
        if rng.random() < self.miss / 3:
            return rng.choice(["Nobody", name.swapcase(), name + "x", "Akro", ""])
        if rng.random() < 0.15:
            return rng.choice(["  ", "\t", " \u00a0"]) + name.replace(" ", " \n") + " "
        return name

    def _concept_of(self, one: str) -> list[str]:
        classes = self.naive.all_classes(one)
        if not classes:
            return [self._anything("concept")]
        return [self._name(self.naive.names[self.rng.choice(classes)])]

    def _known(self, text: str, kind: str) -> str:
        """The key, now and then another or an unknown one."""
        rng = self.rng
        if rng.random() < self.miss / 3:
            return rng.choice([self._anything(kind), text + " ", text.swapcase(), "unknown key"])
        return text

    def _anything(self, kind: str) -> str:
        """Some text that types for this kind of argument."""
        rng = self.rng
        if kind in ("name", "concept"):
            ids = self.naive.concepts if kind == "concept" else self.ids
            return self._name(self.naive.names[rng.choice(ids)])
        pools = {
            "key": self.keys,
            "relation": self.relations,
            "qkey": self.qkeys,
            "op": OPS,
            "direction": ("forward", "backward"),
            "between": ("greater", "less"),
            "among": ("largest", "smallest"),
        }
        if kind in pools:
            text: str = rng.choice([*pools[kind]] or ["unknown key"])
            return text
        if kind == "time":
            values = [v for v in self.values if v.kind in ("year", "date")]
            return self._spelled(rng.choice(values or [Value("year", 2001)]))
        if kind == "quantity":
            values = [v for v in self.values if v.kind == "quantity"]
            return self._spelled(rng.choice(values or [Value("quantity", 5.0, "metre")]))
        if kind == "string" and rng.random() < 0.8:
            return self._string_miss("male")
        return self._spelled(rng.choice(self.values or [Value("string", "male")]))


def _each_once(items: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def _reads(function: str, value: Value) -> bool:
    """May a condition of this function hold of the value?"""
    if function.endswith("Str"):
        return value.kind == "string"
    if function.endswith("Num"):
        return value.kind == "quantity"
    return value.kind in ("year", "date")


def _function_for(prefix: str, value: Value, rng: random.Random) -> str:
    endings = {"string": ["Str"], "quantity": ["Num"]}
    return prefix + rng.choice(endings.get(value.kind, ["Year", "Date"]))


def _spellings(number: float) -> list[str]:
    """Texts that read as the number."""
    plain = print_value(Value("quantity", number, "1"))
    texts = [plain, repr(number), f"{Decimal(repr(number)):E}", f"{Decimal(repr(number)):.20e}"]
    texts.append(plain + "0" if "." in plain else plain + ".0")
    if not plain.startswith("-"):
        texts += ["+" + plain, "00" + plain]
    return [text for text in texts if read_quantity(text).content == number]
