"""SPARQL as a typed tree: the part of the language that KoPL needs and that KQA Pro's queries use.

Every query of the toolkit is such a tree, and its text comes from `write` alone: as KQA Pro writes
its queries, in one line, with bare IRIs, or with absolute ones, which every engine reads. Nodes are
frozen and compared by content. IRIs are references as the encoding writes them (`kb.rdf.iri`): bare
ones such as ``place_of_birth``, and absolute ones such as ``pred:name``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, TypeVar, get_args

from kb.rdf.iri import XSD

DOUBLE, INTEGER, DATE = XSD + "double", XSD + "integer", XSD + "date"


@dataclass(frozen=True, slots=True)
class Var:
    """A variable, by its name without the question mark."""

    name: str


@dataclass(frozen=True, slots=True)
class Iri:
    """An IRI reference."""

    text: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal: its lexical form and the IRI of its datatype (None: a plain string).

    With a ``language`` it is a text in that language, and has no datatype.
    """

    text: str
    datatype: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class TripleTerm:
    """A triple as a term of RDF 1.2: ``<<( s p o )>>``."""

    subject: Term
    predicate: Term
    object: Term


@dataclass(frozen=True, slots=True)
class Path:
    """A property path ``first/then*``; it stands in the place of a predicate."""

    first: Iri
    then: Iri


Term: TypeAlias = Var | Iri | Literal | TripleTerm | Path


# --- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison: the operator is one of ``= != < > <= >=``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class AllOf:
    """A conjunction of two or more parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A disjunction of two or more parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A negation."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Apply:
    """A built-in function, by its name in capitals, or by the prefixed name of an extension."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over a group: ``COUNT``, ``MAX``, ``MIN``."""

    function: str
    argument: Expression
    distinct: bool = False


Expression: TypeAlias = Term | Compare | AllOf | AnyOf | Not | Apply | Aggregate


# --- patterns ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple pattern."""

    subject: Term
    predicate: Term
    object: Term


@dataclass(frozen=True, slots=True)
class Brackets:
    """A node without a name: ``[ p o ; … ] q r ; … .``; both parts list (predicate, object)."""

    inside: tuple[tuple[Term, Term], ...]
    outside: tuple[tuple[Term, Term], ...] = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the solutions for which the condition is true."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind:
    """Gives a variable the value of an expression."""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class Group:
    """Patterns that hold together; inside another group it stands in braces."""

    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Lateral:
    """A group worked out for every row that is there: SPARQL-dev SEP 6, which Oxigraph has."""

    group: Group


@dataclass(frozen=True, slots=True)
class Maybe:
    """An OPTIONAL group."""

    group: Group


@dataclass(frozen=True, slots=True)
class Union:
    """Two or more groups of which one holds."""

    branches: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class SubSelect:
    """A query inside a group."""

    query: Select


Element: TypeAlias = Triple | Brackets | Filter | Bind | Group | Lateral | Maybe | Union | SubSelect


# --- queries ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """An expression of the projection with the variable that it gets: ``(… AS ?x)``."""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class Order:
    """One key of ORDER BY."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT query."""

    items: tuple[Var | Named, ...]
    where: Group
    distinct: bool = False
    group_by: tuple[Var, ...] = ()
    having: Expression | None = None
    order_by: tuple[Order, ...] = ()
    limit: int | None = None

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables of the answer."""
        return tuple(item.variable if isinstance(item, Named) else item for item in self.items)

    def __str__(self) -> str:
        return write(self)


@dataclass(frozen=True, slots=True)
class Ask:
    """An ASK query."""

    where: Group

    def __str__(self) -> str:
        return write(self)


Query: TypeAlias = Select | Ask

Node = TypeVar("Node")

# The parts of each class of node that may hold nodes themselves, the last first.
_PARTS: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in reversed(fields(kind)) if kind not in (Var, Iri, Literal))
    for kind in (
        *get_args(Term),
        *get_args(Expression),
        *get_args(Element),
        *get_args(Query),
        Named,
        Order,
    )
}


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for the trees of programs of the greatest depth, which are walked by recursion."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 6000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def walk(node: Any) -> Iterator[Any]:
    """The node and all nodes below it, in the order in which they are written."""
    stack = [node]
    while stack:
        at = stack.pop()
        if type(at) is tuple:
            stack.extend(reversed(at))
        elif (names := _PARTS.get(type(at))) is not None:
            yield at
            for name in names:
                stack.append(getattr(at, name))


def variables(node: Any) -> dict[Var, int]:
    """How often each variable occurs in the node (or tuple of nodes), in order of appearance."""
    counts: dict[Var, int] = {}
    for part in walk(node):
        if type(part) is Var:
            counts[part] = counts.get(part, 0) + 1
    return counts


def flat(elements: Iterable[Element]) -> Iterator[Element]:
    """The elements, with those of plain groups in the place of the groups."""
    for element in elements:
        if isinstance(element, Group):
            yield from flat(element.elements)
        else:
            yield element


def mapped(node: Node, change: Callable[[Any], Any]) -> Node:
    """The node with ``change`` applied to every part of it, the innermost first."""

    def visit(at: Any) -> Any:
        if isinstance(at, tuple):
            return tuple(visit(part) for part in at)
        names = _PARTS.get(type(at))
        if names is None:
            return at
        if not names:
            return change(at)
        return change(replace(at, **{name: visit(getattr(at, name)) for name in names}))

    result: Node = visit(node)
    return result


def renamed(query: Query) -> Query:
    """The query with its variables numbered in the order in which they appear.

    Two queries that differ only in the names of their variables become equal.
    """
    names = {var: Var(f"v{number}") for number, var in enumerate(variables(_where_first(query)))}
    return mapped(query, lambda part: names[part] if isinstance(part, Var) else part)


def apart(query: Query) -> Query:
    """The query with other names for variables that stand in one branch of a union alone.

    Branches of a union do not share variables with one another, whatever their names.
    """
    if not any(isinstance(e, Group | Union | SubSelect) for e in query.where.elements):
        return query
    taken = {var.name for var in variables(query)}

    def fresh(var: Var) -> Var:
        number = 1
        while f"{var.name}_{number}" in taken:
            number += 1
        taken.add(f"{var.name}_{number}")
        return Var(f"{var.name}_{number}")

    def visit(group: Group, outside: set[Var]) -> Group:
        found: list[Element] = []
        for at, element in enumerate(group.elements):
            others = (*group.elements[:at], *group.elements[at + 1 :])
            if isinstance(element, Group):
                found.append(visit(element, outside | set(variables(others))))
            elif isinstance(element, SubSelect):
                inner = visit(element.query.where, _outside(element.query))
                found.append(SubSelect(replace(element.query, where=inner)))
            elif isinstance(element, Union):
                shared = outside | set(variables(others))
                found.append(Union(tuple(branch(one, shared) for one in element.branches)))
            else:
                found.append(element)
        return Group(tuple(found))

    used: set[Var] = set()

    def branch(group: Group, shared: set[Var]) -> Group:
        own = [var for var in variables(group) if var not in shared]
        names = {var: fresh(var) for var in own if var in used}
        used.update(own)
        group = mapped(group, lambda p: names.get(p, p) if isinstance(p, Var) else p)
        return visit(group, shared)

    return replace(query, where=visit(query.where, _outside(query)))


def _outside(query: Query) -> set[Var]:
    """The variables that a query speaks of outside of its patterns."""
    if isinstance(query, Ask):
        return set()
    return set(variables((query.items, query.group_by, query.having, query.order_by)))


def _where_first(query: Query) -> tuple[Any, ...]:
    return (query.where, query)


# --- writing ----------------------------------------------------------------------------------

ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LANGUAGE = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")
_DIGITS = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FORBIDDEN = re.compile(r'[<>"{}|^`\\\x00-\x20]')


def write(query: Query, *, base: str | None = None, prologue: bool = False) -> str:
    """The text of a query; with ``base`` every IRI is absolute.

    ``prologue`` declares the prefixes that the text uses, as most engines demand.
    """
    text = _Writer(base or "").query(query)
    if prologue and "^^xsd:" in text:
        text = f"PREFIX xsd: <{XSD}> {text}"
    return text


def write_element(element: Element) -> str:
    """The text of one element of a group, for messages."""
    return _Writer("")._element(element)


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Code point escapes are replaced before (or while) strings are read: some engines do so even
# behind an escaped backslash, so that a "u" there is written as an escape itself. The short form
# \uXXXX is not used: rdflib reads eight digits behind it where there are eight.
_TO_ESCAPE = re.compile(r'\\(?=[uU])[uU]|[\\"\x00-\x1f\x7f]')


def _escape(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) == 2:
        return f"\\\\\\U{ord(found[1]):08X}"
    return _ESCAPES.get(found) or f"\\U{ord(found):08X}"


def quoted(text: str) -> str:
    """The text as a string of SPARQL, in quotes."""
    return f'"{_TO_ESCAPE.sub(_escape, text)}"'


class _Writer:
    def __init__(self, base: str) -> None:
        self._base = base

    def query(self, query: Query) -> str:
        if isinstance(query, Ask):
            return f"ASK {self.group(query.where)}"
        items = " ".join(self._item(item) for item in query.items)
        parts = ["SELECT", "DISTINCT" if query.distinct else "", items]
        parts += ["WHERE", self.group(query.where)]
        if query.group_by:
            parts += ["GROUP BY", *(f"?{var.name}" for var in query.group_by)]
        if query.having is not None:
            parts.append(f"HAVING ( {self.expression(query.having)} )")
        if query.order_by:
            parts += ["ORDER BY", *(self._order(order) for order in query.order_by)]
        if query.limit is not None:
            parts.append(f"LIMIT {query.limit}")
        return " ".join(part for part in parts if part)

    def _item(self, item: Var | Named) -> str:
        if isinstance(item, Var):
            return f"?{item.name}"
        return f"({self.expression(item.expression)} AS ?{item.variable.name})"

    def _order(self, order: Order) -> str:
        text = self.expression(order.expression)
        if order.descending:
            return f"DESC({text})"
        return text if isinstance(order.expression, Var) else f"ASC({text})"

    def group(self, group: Group) -> str:
        if not group.elements:
            return "{ }"
        return f"{{ {' '.join(self._element(element) for element in group.elements)} }}"

    def _element(self, element: Element) -> str:
        if isinstance(element, Triple):
            subject, predicate = self.term(element.subject), self.term(element.predicate)
            return f"{subject} {predicate} {self.term(element.object)} ."
        if isinstance(element, Brackets):
            outside = f" {self._pairs(element.outside)}" if element.outside else ""
            return f"[ {self._pairs(element.inside)} ]{outside} ."
        if isinstance(element, Filter):
            return f"FILTER ( {self.expression(element.condition)} ) ."
        if isinstance(element, Bind):
            return f"BIND ( {self.expression(element.expression)} AS ?{element.variable.name} )"
        if isinstance(element, Union):
            return " UNION ".join(self.group(branch) for branch in element.branches)
        if isinstance(element, Lateral):
            return f"LATERAL {self.group(element.group)}"
        if isinstance(element, Maybe):
            return f"OPTIONAL {self.group(element.group)}"
        if isinstance(element, SubSelect):
            return f"{{ {self.query(element.query)} }}"
        return self.group(element)

    def _pairs(self, pairs: tuple[tuple[Term, Term], ...]) -> str:
        return " ; ".join(f"{self.term(verb)} {self.term(what)}" for verb, what in pairs)

    def term(self, term: Term) -> str:
        if isinstance(term, Var):
            return f"?{term.name}"
        if isinstance(term, Iri):
            return self._iri(term.text)
        if isinstance(term, TripleTerm):
            parts = (term.subject, term.predicate, term.object)
            return f"<<( {' '.join(self.term(part) for part in parts)} )>>"
        if isinstance(term, Path):
            return f"{self._iri(term.first.text)}/{self._iri(term.then.text)}*"
        if term.language is not None:
            if not _LANGUAGE.fullmatch(term.language):
                raise ValueError(f"{term.language!r} is no language")
            return f"{quoted(term.text)}@{term.language}"
        if term.datatype is None:
            return quoted(term.text)
        if term.datatype == INTEGER and _DIGITS.fullmatch(term.text):
            return term.text
        if term.datatype.startswith(XSD):
            return f"{quoted(term.text)}^^xsd:{term.datatype[len(XSD) :]}"
        return f"{quoted(term.text)}^^{self._iri(term.datatype)}"

    def _iri(self, text: str) -> str:
        if _FORBIDDEN.search(text):
            raise ValueError(f"{text!r} cannot stand in a query as an IRI")
        return f"<{text}>" if ABSOLUTE.match(text) else f"<{self._base}{text}>"

    def expression(self, at: Any) -> str:
        if isinstance(at, Compare):
            return f"{self._inner(at.left)} {at.operator} {self._inner(at.right)}"
        if isinstance(at, AllOf | AnyOf):
            mark = " && " if isinstance(at, AllOf) else " || "
            return mark.join(self._inner(part) for part in at.parts)
        if isinstance(at, Not):
            return f"!{self._inner(at.part)}"
        if isinstance(at, Apply):
            return f"{at.function}({', '.join(self.expression(part) for part in at.arguments)})"
        if isinstance(at, Aggregate):
            distinct = "DISTINCT " if at.distinct else ""
            return f"{at.function}({distinct}{self.expression(at.argument)})"
        return self.term(at)

    def _inner(self, at: Any) -> str:
        text = self.expression(at)
        return f"({text})" if isinstance(at, Compare | AllOf | AnyOf) else text
