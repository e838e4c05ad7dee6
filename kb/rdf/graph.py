"""What the triples of KQA Pro's encoding say, node by node, before anything is made of it."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from kb.assemble import RawValue
from kb.problems import Problems
from kb.rdf.iri import (
    ALIAS,
    BASE,
    DATE,
    FACT_H,
    FACT_R,
    FACT_T,
    INSTANCE_OF,
    KIND,
    NAME,
    PARENT,
    RDF,
    UNIT,
    VALUE,
    XSD,
    YEAR,
    decode,
)
from kb.values import NO_UNIT, Date, Quantity, ValueReadError, Year, read_time, read_year
from kb.valuetable import time_code

# How an absolute IRI begins.
ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_WITHOUT_DAY = re.compile(r"(-?[0-9]+)-(00-[0-9]{2}|[0-9]{2}-00)", re.ASCII)
_ZONE = re.compile(r"(?<=[0-9])(Z|[+-][0-9]{2}:[0-9]{2})\Z")
_INTEGERS = frozenset(
    XSD + name for name in ("integer", "int", "long", "short", "nonNegativeInteger", "gYear")
)
_NUMBERS = _INTEGERS - {XSD + "gYear"} | {XSD + name for name in ("double", "float", "decimal")}
_STRINGS = frozenset((XSD + "string", RDF + "langString", RDF + "dirLangString"))
_DAYS = frozenset((XSD + "date",))
# Vocabularies that describe a graph to tools and say nothing about the knowledge base.
_ASIDE = (RDF, "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#")


class Graph:
    """What the triples say, in flat columns by the number of a node or of an IRI."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.declared_base: str | None = None
        self.base = ""
        self.iris: dict[str, int] = {}
        self.blanks: dict[str, int] = {}
        self.blank = bytearray()  # whether a node is a blank node
        self.first = array("i")  # the triple that mentions a node first
        self.head, self.relation, self.tail = array("i"), array("i"), array("i")
        self.values: dict[int, tuple[str, str]] = {}  # lexical form, datatype
        self.units: dict[int, str] = {}
        self.years: dict[int, tuple[str, str]] = {}
        self.dates: dict[int, tuple[str, str]] = {}
        self.names: dict[int, str] = {}
        self.aliases: dict[int, list[str]] = {}
        self.kinds: dict[int, str] = {}
        self.instance_of: dict[int, list[int]] = {}
        self.parents: dict[int, list[str]] = {}
        self.links = tuple(array("i") for _ in range(4))  # subject, predicate, object, triple
        self._texts: dict[str, str] = {}
        self._number = 0
        self._labels: list[str] = []

    # --- collecting ------------------------------------------------------------------------

    def _new(self, table: dict[str, int], text: str) -> int:
        number = table[text] = len(self.first)
        self._labels.append(text)
        self.blank.append(table is self.blanks)
        self.first.append(self._number)
        self.head.append(-1)
        self.relation.append(-1)
        self.tail.append(-1)
        return number

    def add_all(self, quads: Any, rdf: Any) -> None:
        """Take in all triples; an error of the parser passes through and may be gone on from."""
        named, blank, triple = rdf.NamedNode, rdf.BlankNode, rdf.Triple
        iris, blanks = self.iris, self.blanks
        subjects, predicates, objects, numbers = self.links
        handlers: dict[str, Callable[[int, Any], None] | None] = {
            NAME: self._name,
            ALIAS: self._alias,
            KIND: self._kind,
            INSTANCE_OF: self._instance_of,
            PARENT: self._parent,
            VALUE: lambda s, o: self._content(self.values, VALUE, s, o),
            YEAR: lambda s, o: self._content(self.years, YEAR, s, o),
            DATE: lambda s, o: self._content(self.dates, DATE, s, o),
            UNIT: self._unit,
            FACT_H: lambda s, o: self._end(self.head, FACT_H, s, o),
            FACT_R: lambda s, o: self._end(self.relation, FACT_R, s, o),
            FACT_T: lambda s, o: self._end(self.tail, FACT_T, s, o),
            RDF + "reifies": self._reifies,
        }

        def node(term: Any) -> int:
            table = blanks if type(term) is blank else iris
            text = term.value
            number = table.get(text)
            return self._new(table, text) if number is None else number

        self._node = node
        self._types = named, blank, triple
        for subject, predicate, object_, _ in quads:
            self._number += 1
            if type(subject) is triple:
                self._problem("wrong-type", "a triple term as a subject")
                continue
            s, name = node(subject), predicate.value
            handler = handlers.get(name)
            if handler is not None:
                handler(s, object_)
            elif name.startswith("pred:") or name.startswith(_ASIDE):
                self.problems.warning(
                    "unknown-field", self.label(s), f"an unknown term <{name}>; it is passed over"
                )
            elif type(object_) is named or type(object_) is blank:
                subjects.append(s)
                predicates.append(node(predicate))
                objects.append(node(object_))
                numbers.append(self._number)
            else:
                self._problem(
                    "wrong-type",
                    f"<{name}> leads to {_show(object_)}, not to a node",
                    s,
                )

    def _problem(self, code: str, message: str, node: int = -1) -> None:
        place = f"triple {self._number}" if node < 0 else self.label(node)
        self.problems.error(code, place, message)

    def _text(self, term: Any) -> tuple[str, str] | None:
        """The lexical form and datatype of a literal, each kept once; None for other terms."""
        if type(term) in self._types:
            return None
        texts = self._texts
        lexical, datatype = term.value, term.datatype.value
        return texts.setdefault(lexical, lexical), texts.setdefault(datatype, datatype)

    def _string(self, predicate: str, node: int, term: Any) -> str | None:
        found = self._text(term)
        if found is None or found[1] not in _STRINGS:
            self._problem(
                "wrong-type", f"<{predicate}> must lead to a string, not {_show(term)}", node
            )
            return None
        return found[0]

    def _once(self, table: dict[int, Any], predicate: str, node: int, content: Any) -> None:
        if table.setdefault(node, content) != content:
            self._problem("duplicate-value", f"<{predicate}> leads to several values", node)

    def _name(self, node: int, term: Any) -> None:
        if (name := self._string(NAME, node, term)) is not None:
            self._once(self.names, NAME, node, name)

    def _alias(self, node: int, term: Any) -> None:
        if (alias := self._string(ALIAS, node, term)) is not None:
            self.aliases.setdefault(node, []).append(alias)

    def _kind(self, node: int, term: Any) -> None:
        kind = self._string(KIND, node, term)
        if kind in ("entity", "concept"):
            self._once(self.kinds, KIND, node, kind)
        elif kind is not None:
            self._problem("wrong-type", f'<{KIND}> is "entity" or "concept", not {kind!r}', node)

    def _parent(self, node: int, term: Any) -> None:
        if (parent := self._string(PARENT, node, term)) is not None:
            self.parents.setdefault(node, []).append(parent)

    def _unit(self, node: int, term: Any) -> None:
        if (unit := self._string(UNIT, node, term)) is not None:
            self._once(self.units, UNIT, node, unit)

    def _instance_of(self, node: int, term: Any) -> None:
        if type(term) is not self._types[0]:
            self._problem("wrong-type", f"<{INSTANCE_OF}> must lead to an IRI", node)
            return
        self.instance_of.setdefault(node, []).append(self._node(term))

    def _content(
        self, table: dict[int, tuple[str, str]], predicate: str, node: int, term: Any
    ) -> None:
        content = self._text(term)
        if content is None:
            self._problem("wrong-type", f"<{predicate}> must lead to a literal", node)
        else:
            self._once(table, predicate, node, content)

    def _end(self, column: array[int], predicate: str, fact: int, term: Any) -> None:
        if type(term) not in self._types[:2]:
            self._problem(
                "wrong-type", f"<{predicate}> leads to {_show(term)}, not to a node", fact
            )
            return
        number = self._node(term)
        if column[fact] not in (-1, number):
            self._problem("duplicate-value", f"<{predicate}> leads to several nodes", fact)
            return
        column[fact] = number

    def _reifies(self, fact: int, term: Any) -> None:
        if type(term) is not self._types[2]:
            self._problem("wrong-type", "rdf:reifies must lead to a triple term", fact)
            return
        self._end(self.head, FACT_H, fact, term.subject)
        self._end(self.relation, FACT_R, fact, term.predicate)
        self._end(self.tail, FACT_T, fact, term.object)

    # --- looking up --------------------------------------------------------------------------

    def settle(self, base: str | None) -> None:
        """Decide what the ids, relations and keys are relative to."""
        self._texts.clear()
        self.base = self._found_base() if base is None else base

    def label(self, node: int) -> str:
        """How a message names a node: an id, or the label of a blank node."""
        text = self._labels[node]
        return f"_:{text}" if self.blank[node] else self.text(text)

    def id(self, node: int) -> str:
        """The text that the IRI of a node, relation or key stands for."""
        return self.text(self._labels[node])

    def text(self, iri: str) -> str:
        """The text that an IRI stands for."""
        if self.base and iri.startswith(self.base):
            iri = iri[len(self.base) :]
        return decode(iri)

    def _found_base(self) -> str:
        named = [self._labels[node] for node in self.names if not self.blank[node]]
        absolute = [iri for iri in named if ABSOLUTE.match(iri)]
        if 2 * len(absolute) <= len(named):
            return ""
        for base in (self.declared_base, BASE):
            if base and 2 * sum(iri.startswith(base) for iri in absolute) > len(named):
                return base
        # Ids alone may share more than the base (m/1, m/2), so relations and keys count as well.
        used = {self._labels[n] for n in np.unique(np.array(self.links[1], np.int32)).tolist()}
        common = _folder(_common_start([*absolute, *used]))
        if common.count("/") >= (3 if "://" in common else 1):
            return common
        return Counter(map(_folder, absolute)).most_common(1)[0][0]

    def raw_value(self, node: int) -> RawValue | None:
        """The value of a value node; raises ValueReadError, and gives None for other nodes."""
        if (value := self.values.get(node)) is not None:
            lexical, datatype = value
            if node in self.years or node in self.dates:
                raise ValueReadError("a value node with a value and a time")
            if datatype in _STRINGS:
                if node in self.units:
                    raise ValueReadError(f"the string {lexical!r} has a unit")
                return lexical
            if datatype not in _NUMBERS:
                raise ValueReadError(f"a value is a string or a number, not {_typed(value)}")
            if not _NUMBER.fullmatch(lexical):
                raise ValueReadError(f"a quantity must be a finite number, not {lexical!r}")
            unit = self.units.get(node, "")
            if not unit:
                self.problems.warning(
                    "missing-unit", self.label(node), 'a quantity without a unit; "1" is assumed'
                )
                unit = NO_UNIT
            return (unit, Quantity(float(lexical)).number)
        year = None
        if (value := self.years.get(node)) is not None:
            if value[1] not in _INTEGERS:
                raise ValueReadError(f"a year must be an xsd:integer, not {_typed(value)}")
            year = read_year(value[0].removeprefix("+"))
        if (value := self.dates.get(node)) is None:
            return None if year is None else time_code(year)
        if value[1] not in _DAYS:
            raise ValueReadError(f"a date must be an xsd:date, not {_typed(value)}")
        return self._day(node, _ZONE.sub("", value[0]), year)

    def _day(self, node: int, lexical: str, year: Year | None) -> int:
        if match := _WITHOUT_DAY.fullmatch(lexical):
            found: Year | Date = read_year(match[1])
            self.problems.warning(
                "date-without-day",
                self.label(node),
                f"{lexical!r} has month or day 00; it becomes the year {found}",
            )
        else:
            found = read_time(lexical)
            if isinstance(found, Year):
                raise ValueReadError(f"a date must be a day such as 1998-06-27, not {lexical!r}")
        if year is not None and year.year != found.year:
            raise ValueReadError(f"the date {lexical} does not lie in the year {year}")
        return time_code(found)


def _folder(iri: str) -> str:
    return iri[: max(iri.rfind("/"), iri.rfind("#")) + 1]


def _common_start(texts: list[str]) -> str:
    first, last = min(texts), max(texts)
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((at for at, (one, other) in pairs if one != other), len(first))]


def _typed(value: tuple[str, str]) -> str:
    return f"{value[0]!r} of type <{value[1]}>"


def _show(term: Any) -> str:
    text = str(term)
    return text if len(text) <= 60 else text[:57] + "..."
