"""Reads KQA Pro's RDF encoding, as `kb.rdf` and others write it, back into a knowledge base."""

from __future__ import annotations

import re
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from kb.assemble import CONCEPT, ENTITY, Assembler, RawValue
from kb.iri import (
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
from kb.problems import Problems
from kb.store import KnowledgeBase
from kb.values import NO_UNIT, Date, Quantity, ValueReadError, Year, read_time, read_year
from kb.valuetable import time_code
from kopl_base.errors import KoplError, ReadError
from kopl_base.packages import needs
from kopl_base.stream import COMPRESSED, TextReader

_LONGEST = 1 << 24  # what pyoxigraph holds at most of a single term
_FORMATS = {".nt": "N_TRIPLES", ".nq": "N_QUADS", ".ttl": "TURTLE"}
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
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


def read_rdf(
    path: Path | str, problems: Problems | None = None, *, base: str | None = None
) -> KnowledgeBase:
    """The knowledge base in a file of N-Triples, N-Quads or Turtle (plain, .gz, .bz2 or .xz).

    IRIs may be bare or absolute; the base is found in the file unless it is given. The triples may
    stand in any order, and the graph may lack our ``pred:kind`` and ``pred:parent``: then whatever
    is an object of ``pred:instance_of`` is a concept. What `kb.rdf.write_rdf` wrote reads back as
    it was, except the ends at which the source had recorded a relational fact: it is recorded at
    both, as the published executors need it. All graphs of N-Quads are read together.

    Raises ReadError with file and place for what is malformed, and when pyoxigraph is missing.
    """
    path = Path(path)
    problems = problems or Problems(source=str(path))
    if base is not None and not (_ABSOLUTE.match(base) and base.endswith(("/", "#"))):
        raise KoplError(f"the base must be an absolute IRI that ends in '/' or '#', not {base!r}")
    graph = _Graph(problems)
    _parse(path, base or BASE, graph, problems)
    graph.settle(base)
    return _assemble(graph, problems)


def _parse(path: Path, base: str, graph: _Graph, problems: Problems) -> None:
    try:
        import pyoxigraph
    except ImportError:
        message = needs("reading RDF", "pyoxigraph", extra="sparql")
        raise ReadError(message, source=str(path)) from None
    endings = [s.lower() for s in path.suffixes if s.lower() not in COMPRESSED]
    name = _FORMATS.get(endings[-1] if endings else "", "TURTLE")
    form = getattr(pyoxigraph.RdfFormat, name)
    is_turtle = name == "TURTLE"
    with TextReader(path) as reader:
        text = _Lines(reader)
        # Lenient: N-Triples with bare IRIs are refused otherwise.
        quads = pyoxigraph.parse(
            cast(IO[str], text),
            format=form,
            base_iri=base if is_turtle else None,
            lenient=True,
        )
        while True:
            try:
                graph.add_all(quads, pyoxigraph)
                break
            except SyntaxError as error:
                message = re.sub(r" ?\(line [0-9]+\)$", "", error.msg)
                message = re.sub(r"^Parser error at line .*?: ", "", message)
                problems.error("not-rdf", f"line {error.lineno}", f"not {form}: {message}")
                if is_turtle:  # what follows an error in it is not read as it was meant
                    break
            except MemoryError as error:
                if "buffer" not in str(error):
                    raise
                problems.error(
                    "too-long",
                    text.pending(over_lines=is_turtle),
                    f"a text, an IRI or a comment of more than {_LONGEST >> 20} MiB, which the"
                    " parser of RDF does not hold; shorten it, or give the knowledge base as JSON"
                    " lines",
                )
                break
    if is_turtle:
        graph.declared_base = quads.base_iri


class _Lines:
    """A reader that knows in which lines what the parser still holds may have begun."""

    def __init__(self, reader: TextReader) -> None:
        self._reader = reader
        self._read, self._line = 0, 1
        self._marks: deque[tuple[int, int]] = deque([(0, 1)])  # characters read, line there

    def read(self, size: int) -> str:
        """The next piece of text."""
        piece = self._reader.read(size)
        self._read += len(piece)
        self._line += piece.count("\n")
        self._marks.append((self._read, self._line))
        while len(self._marks) > 1 and self._marks[1][0] <= self._read - _LONGEST:
            self._marks.popleft()
        return piece

    def pending(self, *, over_lines: bool) -> str:
        """The place of a term that is longer than the parser holds, and may go over lines."""
        first = self._marks[0][1] if over_lines else self._line
        return f"line {first}" if first == self._line else f"lines {first} to {self._line}"


class _Graph:
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
        absolute = [iri for iri in named if _ABSOLUTE.match(iri)]
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


# --- into a knowledge base -----------------------------------------------------------------------


def _assemble(graph: _Graph, problems: Problems) -> KnowledgeBase:
    assembler = Assembler(problems)
    numbers = _define(graph, assembler, problems)
    reader = _FactReader(graph, assembler, problems, numbers)
    for fact in reader.facts():
        reader.add(*fact)
    return assembler.finish()


def _define(graph: _Graph, assembler: Assembler, problems: Problems) -> dict[int, int]:
    """Define the nodes; their provisional numbers by the numbers of their IRIs."""
    above = {concept for concepts in graph.instance_of.values() for concept in concepts}
    parents = {parent for listed in graph.parents.values() for parent in listed}
    numbers: dict[int, int] = {}
    for node, name in graph.names.items():
        if graph.blank[node]:
            problems.error("wrong-type", graph.label(node), "a blank node with a name")
            continue
        id = graph.id(node)
        kind = graph.kinds.get(node)
        if kind is None:
            kind = "concept" if node in above or id in parents else "entity"
        links = graph.parents.get(node)
        if links is None:
            links = [graph.id(concept) for concept in graph.instance_of.get(node, ())]
        group = "entities" if kind == "entity" else "concepts"
        number = assembler.define(
            id, ENTITY if kind == "entity" else CONCEPT, name, links, f"{group}/{id}"
        )
        if number >= 0:
            numbers[node] = number
    for table in (graph.kinds, graph.instance_of, graph.parents):
        for node in table:
            if node not in graph.names:
                problems.error("wrong-type", graph.label(node), f"there is no <{NAME}>")
    return numbers


class _FactReader:
    """Facts out of fact nodes and plain triples, in the order in which they are met first."""

    def __init__(
        self, graph: _Graph, assembler: Assembler, problems: Problems, numbers: dict[int, int]
    ) -> None:
        self._graph, self._assembler, self._problems = graph, assembler, problems
        self._numbers = numbers
        self._used: set[int] = set()

    def facts(self) -> Iterator[tuple[int, int, int, int, list[tuple[int, int]]]]:
        """Each fact: its node or -1, head, relation, tail, the (key, value node) pairs."""
        graph = self._graph
        head, relation, tail, first = (
            np.array(column, np.int32)
            for column in (graph.head, graph.relation, graph.tail, graph.first)
        )
        subject, predicate, object_, number = (np.array(c, np.int32) for c in graph.links)
        nodes = np.flatnonzero((head >= 0) | (relation >= 0) | (tail >= 0))
        whole = (head[nodes] >= 0) & (relation[nodes] >= 0) & (tail[nodes] >= 0)
        for node in nodes[~whole].tolist():
            columns = ((FACT_H, head), (FACT_R, relation), (FACT_T, tail))
            lacks = ", ".join(f"<{term}>" for term, column in columns if column[node] < 0)
            self._problems.error(
                "broken-fact", graph.label(node), f"a fact node without {lacks}; it is dropped"
            )
        is_fact = np.zeros(len(head), np.bool_)
        is_fact[nodes] = True
        qualifying = is_fact[subject] if len(subject) else np.zeros(0, np.bool_)
        # The qualifiers of each fact, in the order of their triples.
        pairs = np.flatnonzero(qualifying)
        pairs = pairs[np.argsort(subject[pairs], kind="stable")]
        nodes = nodes[whole]
        low = np.searchsorted(subject[pairs], nodes)
        high = np.searchsorted(subject[pairs], nodes, side="right")
        keys, values = predicate[pairs].tolist(), object_[pairs].tolist()
        ends = [column[nodes].tolist() for column in (head, relation, tail)]
        known = set(zip(*ends, strict=True))
        # A plain triple is a fact of its own where no fact node has its ends.
        plain: dict[tuple[int, int, int], int] = {}
        at = np.flatnonzero(~qualifying)
        for *triple, place in zip(
            subject[at].tolist(),
            predicate[at].tolist(),
            object_[at].tolist(),
            number[at].tolist(),
            strict=True,
        ):
            s, p, o = triple
            if (s, p, o) not in known:
                plain.setdefault((s, p, o), place)
        places = [*first[nodes].tolist(), *plain.values()]
        rows = list(plain)
        lows, highs, numbers = low.tolist(), high.tolist(), nodes.tolist()
        for index in np.argsort(np.array(places, np.int64), kind="stable").tolist():
            if index < len(numbers):
                span = slice(lows[index], highs[index])
                qualifiers = list(dict.fromkeys(zip(keys[span], values[span], strict=True)))
                h, r, t = (column[index] for column in ends)
                yield numbers[index], h, r, t, qualifiers
            else:
                h, r, t = rows[index - len(numbers)]
                yield -1, h, r, t, []

    def add(
        self, fact: int, head: int, relation: int, tail: int, pairs: list[tuple[int, int]]
    ) -> None:
        """Add one fact to the assembler; problems are reported and the fact is dropped."""
        graph, problems = self._graph, self._problems
        owner = self._numbers.get(head, -1)
        if owner < 0:
            problems.warning(
                "dangling-id",
                self._place(fact, head, relation),
                f"the subject {graph.label(head)!r} is not defined; the fact is dropped",
            )
            return
        try:
            qualifiers: list[tuple[str, RawValue]] = []
            for key, node in pairs:
                value = graph.raw_value(node)
                if value is None:
                    raise ValueReadError(f"the qualifier value {graph.label(node)} has no value")
                qualifiers.append((graph.id(key), value))
            other = self._numbers.get(tail, -1)
            raw = graph.raw_value(tail) if other < 0 else None
            if other < 0 and raw is None and graph.blank[tail]:
                raise ValueReadError(f"the value node {graph.label(tail)} has no value")
        except ValueReadError as error:
            code = "bad-date" if "no day" in str(error) else "bad-value"
            problems.error(code, self._place(fact, head, relation), str(error))
            return
        predicate, assembler = graph.id(relation), self._assembler
        if raw is not None:
            if assembler.kind(graph.id(head)) == CONCEPT:
                place = self._place(fact, head, relation)
                problems.error("wrong-type", place, "concepts have no attributes")
            else:
                assembler.literal(owner, predicate, raw, qualifiers)
        elif other < 0:
            problems.warning(
                "dangling-id",
                self._place(fact, head, relation),
                f"the object {graph.label(tail)!r} is not defined; the fact is dropped",
            )
        else:
            assembler.relational(owner, predicate, True, graph.id(tail), qualifiers)
            assembler.relational(other, predicate, False, graph.id(head), qualifiers)

    def _place(self, fact: int, head: int, relation: int) -> str:
        node = f" ({self._graph.label(fact)})" if fact >= 0 else ""
        return f"{self._graph.label(head)}/{self._graph.id(relation)}{node}"
