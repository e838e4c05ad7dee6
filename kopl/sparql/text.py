"""SPARQL as text: the reader of the subset, and the only printer of queries.

``write`` gives the text as KQA Pro writes its queries, in one line, with bare IRIs; with ``base``
the IRIs become absolute and the prefix that is used is declared, which every engine reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from kopl.sparql.ast import (
    DOUBLE,
    INTEGER,
    RDF,
    XSD,
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
    Literal,
    Maybe,
    Named,
    Not,
    Order,
    Query,
    Select,
    SubSelect,
    Term,
    Triple,
    TripleTerm,
    Union,
    Var,
)
from kopl.sparql.errors import QueryReadError

if TYPE_CHECKING:
    from lark import Lark

PREFIXES = {"xsd": XSD, "rdf": RDF}
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FORBIDDEN = re.compile(r'[<>"{}|^`\\\x00-\x20]')


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
    return f"{ours}{own}PREFIX xsd: <{XSD}> {text[len(own) :]}"


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
        if term.datatype is None:
            return quoted(term.text)
        if term.datatype == INTEGER:
            return term.text
        if term.datatype.startswith(XSD):
            return f"{quoted(term.text)}^^xsd:{term.datatype[len(XSD) :]}"
        return f"{quoted(term.text)}^^{self._iri(term.datatype)}"

    def _iri(self, text: str) -> str:
        if _FORBIDDEN.search(text):
            raise ValueError(f"{text!r} cannot stand in a query as an IRI")
        return f"<{text}>" if _ABSOLUTE.match(text) else f"<{self._base}{text}>"

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


# --- reading ----------------------------------------------------------------------------------


def read(text: str, *, base: str | None = None) -> Query:
    """The query in a text; IRIs below ``base`` (or the text's own BASE) become bare.

    Raises QueryReadError with line and column for what is not SPARQL of the subset.
    """
    from lark.exceptions import LarkError, UnexpectedInput, VisitError

    try:
        parsed: Any = _parser().parse(text.removeprefix("\ufeff"))
    except VisitError as error:
        raise QueryReadError(str(error.orig_exc)) from None
    except UnexpectedInput as error:
        raise QueryReadError(_explain(error, text)) from None
    except LarkError as error:
        raise QueryReadError(str(error)) from None
    declared, query = parsed
    result: Query = _Resolver(declared, base).query(query)
    return result


def _explain(error: Any, text: str) -> str:
    line, column = getattr(error, "line", -1), getattr(error, "column", -1)
    token = getattr(error, "token", None)
    if token is not None and token.type == "$END":
        return "the query ends too early; is a brace or a quote missing?"
    near = text[error.pos_in_stream : error.pos_in_stream + 20].split("\n")[0]
    hint = ""
    if word := re.match(r"[A-Za-z]+", near):
        known = ("MINUS", "GRAPH", "VALUES", "SERVICE", "OFFSET", "CONSTRUCT", "DESCRIBE")
        if word[0].upper() in known:
            hint = f"; {word[0].upper()} is not in the subset that is read here"
    return f"line {line}, column {column}: {near!r} was not expected here{hint}"


class _Reference:
    """An IRI as it stands in a text, before prefixes and base are known."""

    __slots__ = ("prefixed", "text")

    def __init__(self, text: str, prefixed: bool) -> None:
        self.text, self.prefixed = text, prefixed


class _Resolver:
    """Replaces references by IRIs; the declarations of a query hold for all of it."""

    def __init__(self, declared: list[tuple[str, str]], base: str | None) -> None:
        self._bases = [base] if base else []
        self._prefixes = dict(PREFIXES)
        for kind, text in declared:
            if kind == "BASE":
                self._bases.insert(0, text)
            else:
                self._prefixes[kind] = text

    def query(self, query: Any) -> Any:
        return self._visit(query)

    def _visit(self, at: Any) -> Any:
        from dataclasses import fields, is_dataclass

        if isinstance(at, _Reference):
            return Iri(self._resolved(at))
        if isinstance(at, tuple):
            return tuple(self._visit(part) for part in at)
        if isinstance(at, Literal):
            datatype: Any = at.datatype
            if isinstance(datatype, _Reference):
                found = self._absolute(datatype)
                return Literal(at.text, None if found == XSD + "string" else found)
            return at
        if is_dataclass(at) and not isinstance(at, type | Var):
            parts = [self._visit(getattr(at, field.name)) for field in fields(at)]
            return type(at)(*parts)
        return at

    def _resolved(self, reference: _Reference) -> str:
        text = self._absolute(reference)
        for base in self._bases:
            if text.startswith(base):
                return text[len(base) :]
        if self._bases and not _ABSOLUTE.match(text) and text.startswith(("/", "./", "../", "#")):
            return urljoin(self._bases[0], text)
        return text

    def _absolute(self, reference: _Reference) -> str:
        text = reference.text
        if reference.prefixed:
            prefix, _, local = text.partition(":")
            if prefix not in self._prefixes:
                raise QueryReadError(f"the prefix {prefix!r} of {text} is not declared")
            text = self._prefixes[prefix] + local
        return text


_STRING_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'"}
_CHARACTERS["\\"] = "\\"


def _unescaped(match: re.Match[str]) -> str:
    if match[3] is None:
        point = int(match[1] or match[2], 16)
        if point > 0x10FFFF or 0xD800 <= point < 0xE000:
            raise QueryReadError(f"{match[0]} is no character")
        return chr(point)
    if match[3] not in _CHARACTERS:
        raise QueryReadError(f"there is no escape {match[0]!r} in a string")
    return _CHARACTERS[match[3]]


@cache
def _parser() -> Lark:
    """The parser; it builds the tree while it reads, without recursion."""
    from lark import Lark

    grammar = resources.files("kopl.sparql").joinpath("sparql.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", transformer=_make_transformer())


def _make_transformer() -> Any:
    from lark import Transformer

    class Builder(Transformer):  # type: ignore[type-arg]
        """Turns what the parser reduces into nodes of the tree."""

        def query(self, parts: list[Any]) -> Any:
            return parts[:-1], parts[-1]

        def base(self, parts: list[Any]) -> Any:
            return ("BASE", parts[0][1:-1])

        def prefix(self, parts: list[Any]) -> Any:
            return (str(parts[0])[:-1], parts[1][1:-1])

        def select(self, parts: list[Any]) -> Any:
            items: list[Any] = []
            others: dict[str, Any] = {}
            where = None
            for part in parts[1:]:
                if isinstance(part, Group):
                    where = part
                elif isinstance(part, dict):
                    others |= part
                else:
                    items.append(part)
            assert where is not None
            return Select(tuple(items), where, parts[0] is not None, **others)

        def ask(self, parts: list[Any]) -> Any:
            return Ask(parts[0])

        def named(self, parts: list[Any]) -> Any:
            return Named(*parts)

        def group_by(self, parts: list[Any]) -> Any:
            return {"group_by": tuple(parts)}

        def having(self, parts: list[Any]) -> Any:
            return {"having": parts[0]}

        def bind(self, parts: list[Any]) -> Any:
            return Bind(*parts)

        def order_by(self, parts: list[Any]) -> Any:
            return {"order_by": tuple(parts)}

        def ascending(self, parts: list[Any]) -> Any:
            return Order(parts[0])

        def descending(self, parts: list[Any]) -> Any:
            return Order(parts[0], True)

        def limit(self, parts: list[Any]) -> Any:
            return {"limit": int(parts[0])}

        def group(self, parts: list[Any]) -> Any:
            return Group(tuple(_flat(parts)))

        def subselect(self, parts: list[Any]) -> Any:
            return Group((SubSelect(parts[0]),))

        def filter(self, parts: list[Any]) -> Any:
            return Filter(parts[0])

        def union(self, parts: list[Any]) -> Any:
            if len(parts) > 1:
                return Union(tuple(parts))
            only = parts[0].elements
            # Braces around one query inside are that query's own.
            return only[0] if len(only) == 1 and isinstance(only[0], SubSelect) else parts[0]

        def optional(self, parts: list[Any]) -> Any:
            return Maybe(parts[0])

        def triples(self, parts: list[Any]) -> Any:
            return parts

        def plain(self, parts: list[Any]) -> Any:
            return [Triple(parts[0], verb, what) for verb, what in parts[1]]

        def bracketed(self, parts: list[Any]) -> Any:
            return Brackets(parts[0], parts[1] if len(parts) > 1 else ())

        def brackets(self, parts: list[Any]) -> Any:
            return parts[0]

        def properties(self, parts: list[Any]) -> Any:
            return tuple(pair for pairs in parts for pair in pairs)

        def verb_objects(self, parts: list[Any]) -> Any:
            return [(parts[0], what) for what in parts[1:]]

        def A(self, _: Any) -> Any:
            return Iri(RDF + "type")

        def any_of(self, parts: list[Any]) -> Any:
            return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

        def all_of(self, parts: list[Any]) -> Any:
            return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

        conjunction = all_of

        def compare(self, parts: list[Any]) -> Any:
            return parts[0] if len(parts) == 1 else Compare(str(parts[1]), parts[0], parts[2])

        def negated(self, parts: list[Any]) -> Any:
            return Not(parts[0])

        def call(self, parts: list[Any]) -> Any:
            return Apply(str(parts[0]).upper(), tuple(parts[1:]))

        def aggregate(self, parts: list[Any]) -> Any:
            return Aggregate(str(parts[0]).upper(), parts[2], parts[1] is not None)

        def triple_term(self, parts: list[Any]) -> Any:
            return TripleTerm(*parts)

        def var(self, parts: list[Any]) -> Any:
            return Var(str(parts[0])[1:])

        def iri(self, parts: list[Any]) -> Any:
            token = parts[0]
            if token.type == "IRIREF":
                text = _STRING_ESCAPE.sub(_unescaped, str(token)[1:-1])
                return _Reference(text, False)
            return _Reference(str(token), True)

        def string(self, parts: list[Any]) -> Any:
            token = str(parts[0])
            width = 3 if parts[0].type.startswith("LONG") else 1
            return _STRING_ESCAPE.sub(_unescaped, token[width:-width])

        def plain_literal(self, parts: list[Any]) -> Any:
            return Literal(parts[0])

        def typed_literal(self, parts: list[Any]) -> Any:
            return Literal(parts[0], parts[1])

        def language_literal(self, parts: list[Any]) -> Any:
            raise QueryReadError(f"{parts[0]!r}{parts[1]}: literals with a language are not read")

        def integer_literal(self, parts: list[Any]) -> Any:
            return Literal(str(parts[0]).removeprefix("+"), INTEGER)

        def decimal_literal(self, parts: list[Any]) -> Any:
            return Literal(str(parts[0]), XSD + "decimal")

        def double_literal(self, parts: list[Any]) -> Any:
            return Literal(str(parts[0]), DOUBLE)

        def boolean_literal(self, parts: list[Any]) -> Any:
            return Literal(str(parts[0]), XSD + "boolean")

    return Builder()


def _flat(parts: list[Any]) -> Iterator[Any]:
    for part in parts:
        if isinstance(part, list):
            yield from _flat(part)
        else:
            yield part
