"""Queries as SPARQL, and basic patterns of SPARQL as queries.

Entities and relations are IRIs: their names as `kb.rdf.iri` writes them or, in a graph without
names, ``e12`` and ``r3`` (relation 3 without direction). Only forward triples are in the data: an
inverse relation is written with its ends exchanged. A negated atom or part is FILTER NOT EXISTS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any as Anything

from cqa.errors import QueryError
from cqa.graphs.graph import Graph
from cqa.notation.formula import All, Any, Formula, Fresh, Link, Not, apart, to_query
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable, check, renamed
from kb.rdf.iri import decode, encode
from kopl.sparql.ast import (
    Ask,
    Element,
    Group,
    Iri,
    Select,
    Triple,
    Union,
    Var,
    deep_recursion,
)
from kopl.sparql.reader import Reader

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# How messages call elements whose class is not named as SPARQL names them.
_NAMED = {"Filter": "this FILTER", "Maybe": "OPTIONAL", "SubSelect": "a subquery"}


# --- writing ----------------------------------------------------------------------------------


def write_sparql(query: Query, graph: Graph | None = None, *, base: str = "") -> str:
    """The SPARQL text of a query; with ``base`` the IRIs are absolute, which every engine reads.

    A query without free variables becomes an ASK. Raises QueryError for a query that is not safe or
    not grounded.
    """
    check(query)
    if not query.grounded:
        raise QueryError("the query is a type; ground it before it becomes SPARQL")
    return _Writer(graph, base).query(_with_plain_names(apart(query)))


def triples_of(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """All triples of a graph as IRI references, as the queries speak of them."""
    writer = _Writer(graph, "")
    for head, relation, tail in graph.triples().tolist():
        yield writer.entity(head), writer.relation(relation // 2), writer.entity(tail)


@dataclass
class _Writer:
    graph: Graph | None
    base: str

    def query(self, query: Query) -> str:
        free = " ".join(f"?{variable.name}" for variable in query.free)
        start = f"SELECT DISTINCT {free} WHERE" if free else "ASK"
        return f"{start} {{ {self.disjuncts(query.disjuncts)} }}"

    def disjuncts(self, given: tuple[Conjunction, ...]) -> str:
        if len(given) == 1:
            return self.conjunction(given[0])
        return " UNION ".join(f"{{ {self.conjunction(one)} }}" for one in given)

    def conjunction(self, given: Conjunction) -> str:
        parts = [self.triple(atom) for atom in given.atoms if atom.positive]
        parts += [
            f"FILTER NOT EXISTS {{ {self.triple(atom)} }}"
            for atom in given.atoms
            if not atom.positive
        ]
        parts += [
            f"FILTER NOT EXISTS {{ {self.disjuncts(part.disjuncts)} }}" for part in given.without
        ]
        return " ".join(parts)

    def triple(self, atom: Atom) -> str:
        relation, head, tail = atom.relation, atom.head, atom.tail
        assert isinstance(relation, int)
        if relation % 2:
            head, tail = tail, head
        predicate = f"<{self.base}{self.relation(relation // 2)}>"
        return f"{self.term(head)} {predicate} {self.term(tail)} ."

    def term(self, term: Term) -> str:
        if isinstance(term, Variable):
            return f"?{term.name}"
        assert isinstance(term.entity, int)
        return f"<{self.base}{self.entity(term.entity)}>"

    def entity(self, number: int) -> str:
        named = self.graph is not None and self.graph.entities is not None
        return encode(self.graph.entity_name(number)) if named and self.graph else f"e{number}"

    def relation(self, number: int) -> str:
        named = self.graph is not None and self.graph.relations is not None
        return encode(self.graph.relation_name(number)) if named and self.graph else f"r{number}"


def _with_plain_names(query: Query) -> Query:
    """The query with names of variables that SPARQL has."""
    found = _variables(query)
    fresh = Fresh(v.name for v in found if _NAME.fullmatch(v.name))
    odd = [v for v in found if not _NAME.fullmatch(v.name)]
    return renamed(query, {v: fresh.variable("v") for v in odd})


def _variables(query: Query) -> dict[Variable, None]:
    found: dict[Variable, None] = dict.fromkeys(query.free)
    for disjunct in query.disjuncts:
        found.update(dict.fromkeys(disjunct.variables))
        for part in disjunct.without:
            found.update(_variables(part))
    return found


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class NotExists:
    """FILTER NOT EXISTS with its group."""

    group: Group


@dataclass(frozen=True)
class Minus:
    """MINUS with its group."""

    group: Group


def read_sparql(text: str, graph: Graph | None = None, *, base: str | None = None) -> Query:
    """The query of a SPARQL text: triple patterns, UNION, MINUS, FILTER NOT EXISTS; SELECT or ASK.

    IRIs below ``base`` (or the text's own BASE) are names of the graph, or ``e12`` and ``r3``
    without one. MINUS is read as FILTER NOT EXISTS, or as nothing where it shares no variable with
    what stands around it, as SPARQL has it. Raises QueryReadError with line and column for what is
    not SPARQL, and QueryError for what no query says.
    """
    with deep_recursion():
        found = _PatternReader(text.removeprefix("\ufeff"), base).query()
        return _Translation(graph).query(found)


class _PatternReader(Reader):
    """The reader of the toolkit's SPARQL, with negated patterns."""

    def _element(self, found: list[Element]) -> None:
        negated: Anything = None
        if self._keyword("MINUS"):
            negated = Minus(self._group())
        elif self._word() == "FILTER" and self._negates():
            self._next()
            self._next()
            self._next()
            negated = NotExists(self._group())
        if negated is None:
            super()._element(found)
            return
        found.append(negated)
        self._passed(".")

    def _negates(self) -> bool:
        """Whether NOT EXISTS follows the word at hand."""
        return bool(re.compile(r"\s+NOT\s+EXISTS\b", re.IGNORECASE).match(self._text, self._at))

    def _starts_another(self) -> bool:
        return super()._starts_another() or self._word() == "MINUS"


class _Translation:
    def __init__(self, graph: Graph | None) -> None:
        self._graph = graph
        self._fresh = Fresh()

    def query(self, query: Anything) -> Query:
        free: list[str] = []
        if isinstance(query, Select):
            if query.group_by or query.having or query.order_by or query.limit is not None:
                raise QueryError("GROUP BY, HAVING, ORDER BY and LIMIT say nothing of a set")
            for item in query.items:
                if not isinstance(item, Var):
                    raise QueryError("only variables can be selected, no expressions")
                free.append(item.name)
        elif not isinstance(query, Ask):
            raise QueryError("SELECT or ASK was expected")
        if len(set(free)) < len(free):
            raise QueryError("a variable is selected twice")
        names = dict.fromkeys((*free, *_visible(query.where)))
        scope = {name: self._fresh.variable(name) for name in names}
        return to_query(self._group(query.where, scope), [scope[name] for name in free])

    def _group(self, group: Group, scope: Mapping[str, Variable]) -> Formula:
        around = set(_visible(group))
        parts = [self._element(element, scope, around) for element in group.elements]
        return All(tuple(part for part in parts if part is not None))

    def _element(
        self, element: Anything, scope: Mapping[str, Variable], around: set[str]
    ) -> Formula | None:
        """``around``: the variables that the element's group binds."""
        if isinstance(element, Triple):
            return self._triple(element, scope)
        if isinstance(element, Group):
            return self._group(element, scope)
        if isinstance(element, Union):
            return Any(tuple(self._group(branch, scope) for branch in element.branches))
        if isinstance(element, NotExists | Minus):
            inner = list(_visible(element.group))
            outer: set[str] = set(scope)
            if isinstance(element, Minus):
                outer = around
                if around.isdisjoint(inner):
                    return None
            local = {name: self._fresh.variable(name) for name in inner if name not in outer}
            part = self._group(element.group, {**scope, **local})
            return Not(part, frozenset(local.values()))
        what = _NAMED.get(type(element).__name__, type(element).__name__.upper())
        raise QueryError(
            f"{what} is not a part of logical queries: only triple patterns, UNION, MINUS and"
            " FILTER NOT EXISTS are"
        )

    def _triple(self, triple: Triple, scope: Mapping[str, Variable]) -> Formula:
        if not isinstance(triple.predicate, Iri):
            raise QueryError("a relation must be an IRI, not a variable or a path")
        relation = self._number(triple.predicate.text, "relation")
        head, tail = (self._term(end, scope) for end in (triple.subject, triple.object))
        return Link(Atom(2 * relation, head, tail))

    def _term(self, term: Anything, scope: Mapping[str, Variable]) -> Term:
        if isinstance(term, Var):
            return scope[term.name]
        if isinstance(term, Iri):
            return Constant(self._number(term.text, "entity"))
        raise QueryError("only entities can stand at the ends of a triple, no literals")

    def _number(self, iri: str, what: str) -> int:
        graph = self._graph
        if graph is not None and (graph.entities if what == "entity" else graph.relations):
            name = decode(iri)
            return graph.entity(name) if what == "entity" else graph.relation(name)
        match = re.fullmatch(f"{what[0]}([0-9]{{1,10}})", iri)
        if match is None:
            raise QueryError(
                f"<{iri}> is no {what}: without names they are <{what[0]}0>, <{what[0]}1>, …"
                " (give the base of absolute IRIs)"
            )
        return int(match[1])


def _visible(group: Group) -> dict[str, None]:
    """The variables that a group binds or may bind: those outside its negated parts."""
    found: dict[str, None] = {}
    for element in group.elements:
        groups: Iterable[Group] = ()
        if isinstance(element, Triple):
            for end in (element.subject, element.object):
                if isinstance(end, Var):
                    found[end.name] = None
        elif isinstance(element, Group):
            groups = (element,)
        elif isinstance(element, Union):
            groups = element.branches
        for one in groups:
            found.update(_visible(one))
    return found
