"""SPARQL as text: the only printer of queries; `read` is that of `kopl.sparql.reader`.

``write`` gives the text as KQA Pro writes its queries, in one line, with bare IRIs; with ``base``
the IRIs become absolute and the prefix that is used is declared, which every engine reads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kb.iri import XSD
from kopl.sparql.ast import (
    INTEGER,
    Aggregate,
    AllOf,
    AnyOf,
    Apply,
    Ask,
    Bind,
    Brackets,
    Compare,
    Element,
    Filter,
    Group,
    Iri,
    Lateral,
    Maybe,
    Named,
    Not,
    Order,
    Path,
    Query,
    SubSelect,
    Term,
    Triple,
    TripleTerm,
    Union,
    Var,
)
from kopl.sparql.reader import ABSOLUTE, read

if TYPE_CHECKING:
    pass

_LANGUAGE = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*")
_DIGITS = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FORBIDDEN = re.compile(r'[<>"{}|^`\\\x00-\x20]')

__all__ = ["quoted", "read", "with_prologue", "write", "write_element"]

# --- writing ----------------------------------------------------------------------------------


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


_BASES = re.compile(r"(?:\s|#[^\n]*\n)*(?:BASE\s*<[^>]*>(?:\s|#[^\n]*\n)*)*", re.IGNORECASE)


def with_prologue(text: str, base: str | None) -> str:
    """A text that was not written here, with the base and the prefix that it may leave out.

    A base of its own goes before ours; all stand before the prefix, as Virtuoso wants it.
    """
    match = _BASES.match(text)
    own = match[0] if match else ""
    ours = f"BASE <{base}> " if base and "<" not in own else ""
    return f"{ours}{own}PREFIX xsd: <{XSD}>\n{text[len(own) :]}"


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
