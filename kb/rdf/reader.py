"""Reads RDF, as `kb.rdf.writer` and others write it, back into a knowledge base."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import numpy as np

from kb.assemble import CONCEPT, ENTITY, Assembler, RawValue
from kb.problems import Problems
from kb.rdf.graph import ABSOLUTE, Graph
from kb.rdf.iri import BASE, FACT_H, FACT_R, FACT_T, NAME
from kb.store import KnowledgeBase
from kb.values import ValueReadError
from kopl_base.errors import KoplError, ReadError
from kopl_base.packages import needs
from kopl_base.stream import COMPRESSED, TextReader

_LONGEST = 1 << 24  # what pyoxigraph holds at most of a single term
_FORMATS = {".nt": "N_TRIPLES", ".nq": "N_QUADS", ".ttl": "TURTLE"}


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
    if base is not None and not (ABSOLUTE.match(base) and base.endswith(("/", "#"))):
        raise KoplError(f"the base must be an absolute IRI that ends in '/' or '#', not {base!r}")
    graph = Graph(problems)
    _parse(path, base or BASE, graph, problems)
    graph.settle(base)
    return _assemble(graph, problems)


def _parse(path: Path, base: str, graph: Graph, problems: Problems) -> None:
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


def _assemble(graph: Graph, problems: Problems) -> KnowledgeBase:
    assembler = Assembler(problems)
    numbers = _define(graph, assembler, problems)
    reader = _FactReader(graph, assembler, problems, numbers)
    for fact in reader.facts():
        reader.add(*fact)
    return assembler.finish()


def _define(graph: Graph, assembler: Assembler, problems: Problems) -> dict[int, int]:
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
            id,
            ENTITY if kind == "entity" else CONCEPT,
            name,
            links,
            f"{group}/{id}",
            graph.aliases.get(node, ()),
        )
        if number >= 0:
            numbers[node] = number
    for table in (graph.kinds, graph.instance_of, graph.parents):
        for node in table:
            if node not in graph.names:
                problems.error("wrong-type", graph.label(node), f"there is no <{NAME}>")
    for node in graph.aliases:
        if node not in graph.names:
            message = f"an alias without a <{NAME}>; it is passed over"
            problems.warning("unknown-field", graph.label(node), message)
    return numbers


class _FactReader:
    """Facts out of fact nodes and plain triples, in the order in which they are met first."""

    def __init__(
        self, graph: Graph, assembler: Assembler, problems: Problems, numbers: dict[int, int]
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
