"""The reader of SPARQL text: one regular expression for tokens, one function for each rule.

It is written by hand because reading is what a query waits for when it is run as a program: a
generated LALR parser took three times as long as all the rest. Grammar: the part of SPARQL 1.1
that `kopl.sparql.ast` holds, with RDF 1.2 triple terms.
"""

from __future__ import annotations

import re
from typing import NoReturn
from urllib.parse import urljoin

from kb.rdf.iri import RDF, XSD
from kopl.sparql.ast import (
    ABSOLUTE,
    DOUBLE,
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
    Expression,
    Filter,
    Group,
    Iri,
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
    deep_recursion,
)
from kopl.sparql.errors import NotReadError, QueryReadError, QueryTooDeepError

PREFIXES = {"xsd": XSD, "rdf": RDF}

# Blanks one by one and comments whole: there is one way to pass over them, so that a token that is
# missing behind them is noticed at once, and none is found inside of a comment.
_TOKEN = re.compile(
    r"""
    (?: [ \t\r\n] | \#[^\n]*(?![^\n]) )*
    (?:
      (?P<var>[?$][A-Za-z0-9_\u00b7-\uffff]+)
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    | (?P<string>
          '''(?:'{0,2}(?:[^'\\]|\\.))*''' | \"""(?:"{0,2}(?:[^"\\]|\\.))*\"""
        | '(?:[^'\\\n\r]|\\.)*' | "(?:[^"\\\n\r]|\\.)*" )
    | (?P<punctuation> <<\( | \)>> | \^\^ | && | \|\| | != | <= | >= | [{}()\[\].;,=<>!*] )
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>(?:[A-Za-z][\w.-]*)?:(?:(?:[\w:%-]|\.(?=[\w:%-]))+)?)
    | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<word>[A-Za-z]+)
    | (?P<end>\Z)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_AGGREGATES = ("COUNT", "MAX", "MIN")
_COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
# Words and marks of SPARQL that are not read.
_REFUSED = (
    *("MINUS", "GRAPH", "VALUES", "SERVICE", "OFFSET", "CONSTRUCT", "DESCRIBE"),
    *("REDUCED", "FROM", "IN", "NOT", "EXISTS"),
)
_NOT_HERE = "is not read here"
_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
_MARKS = (
    (re.compile(r"[/|^+*-]|\?(?!\w)"), "a property path or arithmetic"),
    (re.compile(r"_:"), "a blank node with a label"),
    (re.compile(r"_CONCAT\b", re.IGNORECASE), "GROUP_CONCAT"),
)
_BASES = re.compile(r"(?:\s|#[^\n]*\n)*(?:BASE\s*<[^>]*>(?:\s|#[^\n]*\n)*)*", re.IGNORECASE)
# Engines end, without an error, at queries that are nested some thousand groups deep.
_MAX_DEPTH = 300


def read(text: str, *, base: str | None = None) -> Query:
    """The query in a text; IRIs below ``base`` (or the text's own BASE) become bare.

    Raises QueryReadError with line and column for what is not SPARQL of the subset.
    """
    with deep_recursion():
        return Reader(text.removeprefix("\ufeff"), base).query()


def with_prologue(text: str, base: str | None) -> str:
    """A text that was not written here, with the base and the prefix that it may leave out.

    A base of its own goes before ours; all stand before the prefix, as Virtuoso wants it.
    """
    match = _BASES.match(text)
    own = match[0] if match else ""
    ours = f"BASE <{base}> " if base and "<" not in own else ""
    return f"{ours}{own}PREFIX xsd: <{XSD}>\n{text[len(own) :]}"


class Reader:
    """The tokens of a text and a method for each rule; dialects override rules."""

    def __init__(self, text: str, base: str | None) -> None:
        self._text = text
        self._bases = [base] if base else []
        self._prefixes = dict(PREFIXES)
        self._depth = 0
        self._at = 0
        self._next()

    # --- tokens -------------------------------------------------------------------------------

    def _next(self) -> None:
        """Go to the next token: ``kind``, ``token`` (what it says) and ``begin`` (where)."""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            self._at = _past_space(self._text, self._at)
            self.begin = self._at
            self._fail()
        kind = match.lastgroup
        assert kind is not None
        self.kind = kind
        self.token: str = match[kind]
        self.begin, self._at = match.start(kind), match.end()

    def _take(self) -> str:
        token = self.token
        self._next()
        return token

    def _is(self, mark: str) -> bool:
        return self.token == mark and self.kind == "punctuation"

    def _passed(self, mark: str) -> bool:
        """Whether this mark stands here; it is passed then."""
        if self._is(mark):
            self._next()
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._passed(mark):
            self._fail(f"{mark!r} was expected")

    def _word(self) -> str:
        """The word here in capitals, or "" where none stands."""
        return self.token.upper() if self.kind == "word" else ""

    def _keyword(self, word: str) -> bool:
        if self._word() == word:
            self._next()
            return True
        return False

    def _fail(self, reason: str = "it was not expected here") -> NoReturn:
        """Raise for what stands here; the reason is said where nothing says more."""
        near = self._near()
        word = re.match(r"[A-Za-z]*", near)
        assert word is not None
        what = word[0].upper()
        if what in _UPDATES:
            reason = f"{what} is an update, which no engine here runs; queries are SELECT and ASK"
        elif what in ("CONSTRUCT", "DESCRIBE"):
            reason = f"{what} gives a graph; the queries that are answered here are SELECT and ASK"
        elif blank := re.match(r'<([^<>"{}|^`\\\n?]+)>', self._text[self.begin :]):
            spelt = f"write <{blank[1].strip().replace(' ', '_')}>, as KQA Pro's encoding does"
            reason = f"an IRI holds no blank; {spelt}"
        elif what in _REFUSED:
            self._refuse(what)
        else:
            for mark, said in _MARKS:
                if mark.match(near):
                    self._refuse(said)
        raise QueryReadError(self._placed(reason))

    def _refuse(self, what: str, why: str = "is not in the subset that is read here") -> NoReturn:
        """Raise for what stands here: SPARQL, but of the part that is not read."""
        raise NotReadError(self._placed(f"{what} {why}"))

    def _near(self) -> str:
        """The text that stands here, the first of it; raises QueryReadError at the end."""
        if not (near := self._text[self.begin : self.begin + 20].split("\n")[0]):
            raise QueryReadError("the query ends too early; is a brace or a quote missing?")
        return near

    def _placed(self, hint: str) -> str:
        near, before = self._near(), self._text[: self.begin]
        line, column = before.count("\n") + 1, self.begin - before.rfind("\n")
        return f"line {line}, column {column}: {near!r}: {hint}"

    # --- queries ------------------------------------------------------------------------------

    def query(self) -> Query:
        """The whole text."""
        while (word := self._word()) in ("BASE", "PREFIX"):
            self._next()
            if word == "PREFIX":
                if self.kind != "name" or not self.token.endswith(":"):
                    self._fail("a prefix such as xsd: was expected")
                prefix = self._take()[:-1]
            if self.kind != "iri":
                self._fail("an IRI in <> was expected")
            iri = _unescaped(self._take()[1:-1])
            if word == "BASE":
                self._bases.insert(0, iri)
            else:
                self._prefixes[prefix] = iri
        found: Query
        if self._keyword("ASK"):
            self._keyword("WHERE")
            found = Ask(self._group())
        elif self._word() == "SELECT":
            found = self._select()
        else:
            self._fail("SELECT or ASK was expected")
        if self.kind != "end":
            self._fail()
        return found

    def _select(self) -> Select:
        self._next()
        distinct = self._keyword("DISTINCT")
        items: list[Var | Named] = []
        while self.kind == "var" or self._is("("):
            if self.kind == "var":
                items.append(Var(self._take()[1:]))
                continue
            self._next()
            items.append(Named(self._expression(), self._as()))
            self._expect(")")
        if self._is("*"):
            self._refuse("SELECT *")
        if not items:
            self._fail("a variable or (… AS ?x) was expected: name what is asked for")
        self._keyword("WHERE")
        where = self._group()
        group_by: list[Var] = []
        having = None
        order_by: list[Order] = []
        limit = None
        if self._keyword("GROUP"):
            self._by()
            while self.kind == "var":
                group_by.append(Var(self._take()[1:]))
            if not group_by:
                self._refuse("a variable was expected; GROUP BY an expression", _NOT_HERE)
        if self._keyword("HAVING"):
            self._expect("(")
            having = self._expression()
            self._expect(")")
        if self._keyword("ORDER"):
            self._by()
            while (
                self.kind == "var"
                or self._is("(")
                or (self.kind == "word" and self._word() not in ("LIMIT", "OFFSET", "VALUES"))
            ):
                order_by.append(self._order())
            if not order_by:
                self._fail("what to order by was expected")
        if self._keyword("LIMIT"):
            if not re.fullmatch("[0-9]{1,15}", self.token):
                self._fail("a number of at most 15 digits was expected")
            limit = int(self._take())
        return Select(
            tuple(items), where, distinct, tuple(group_by), having, tuple(order_by), limit
        )

    def _by(self) -> None:
        if not self._keyword("BY"):
            self._fail("BY was expected")

    def _order(self) -> Order:
        word = self._word()
        if word in ("ASC", "DESC"):
            self._next()
            self._expect("(")
            found = Order(self._expression(), word == "DESC")
            self._expect(")")
            return found
        return Order(self._primary())

    def _as(self) -> Var:
        if not self._keyword("AS") or self.kind != "var":
            self._fail("AS ?x was expected")
        return Var(self._take()[1:])

    # --- groups -------------------------------------------------------------------------------

    def _group(self) -> Group:
        self._expect("{")
        self._deeper()
        found: list[Element] = []
        if self._word() == "SELECT":
            found.append(SubSelect(self._select()))
        while not self._passed("}"):
            self._element(found)
        self._depth -= 1
        return Group(tuple(found))

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise QueryTooDeepError(f"the query is nested more than {_MAX_DEPTH} groups deep")

    def _element(self, found: list[Element]) -> None:
        """One element, with the dot behind it."""
        if self._is("{"):
            branches = [self._group()]
            while self._keyword("UNION"):
                branches.append(self._group())
            only = branches[0]
            if len(branches) > 1:
                found.append(Union(tuple(branches)))
            elif len(only.elements) == 1 and isinstance(only.elements[0], SubSelect):
                found.append(only.elements[0])  # the braces are the query's own
            else:
                found.append(only)
        elif self._keyword("FILTER"):
            found.append(Filter(self._primary()))
        elif self._keyword("OPTIONAL"):
            found.append(Maybe(self._group()))
        elif self._keyword("BIND"):
            self._expect("(")
            found.append(Bind(self._expression(), self._as()))
            self._expect(")")
        else:
            self._triples(found)
            if not self._is(".") and not self._is("}") and not self._starts_another():
                self._fail("'.' was expected")
        self._passed(".")

    def _starts_another(self) -> bool:
        return self._is("{") or self._word() in ("FILTER", "OPTIONAL", "BIND")

    def _triples(self, found: list[Element]) -> None:
        if self._passed("["):
            inside = self._properties("]")
            self._expect("]")
            outside = () if self._is(".") or self._is("}") else self._properties(".")
            found.append(Brackets(inside, outside))
            return
        subject = self._term()
        for verb, what in self._properties("."):
            found.append(Triple(subject, verb, what))

    def _properties(self, end: str) -> tuple[tuple[Term, Term], ...]:
        pairs: list[tuple[Term, Term]] = []
        while True:
            if self.kind == "word" and self.token == "a":
                self._next()
                verb: Term = Iri(RDF + "type")
            else:
                if self._is("(") or self._is("!"):
                    self._refuse("a property path")
                verb = self._term()
            pairs.append((verb, self._term()))
            while self._passed(","):
                pairs.append((verb, self._term()))
            if not self._passed(";"):
                return tuple(pairs)
            while self._passed(";"):
                pass
            if self._is(end) or self._is("}"):
                return tuple(pairs)

    # --- terms --------------------------------------------------------------------------------

    def _term(self) -> Term:
        kind = self.kind
        if kind == "var":
            return Var(self._take()[1:])
        if kind == "iri":
            return Iri(self._resolved(_unescaped(self._take()[1:-1])))
        if kind == "string":
            return self._literal()
        if kind == "name":
            return Iri(self._bared(self._named()))
        if kind == "number":
            text = self._take()
            if "e" in text or "E" in text:
                return Literal(text, DOUBLE)
            if "." in text:
                return Literal(text, XSD + "decimal")
            return Literal(text.removeprefix("+"), INTEGER)
        if kind == "word" and self.token.lower() in ("true", "false"):
            return Literal(self._take(), XSD + "boolean")
        if self._passed("<<("):
            term = TripleTerm(self._term(), self._term(), self._term())
            self._expect(")>>")
            return term
        if self._is("(") or self._is("["):
            self._refuse("a collection ( … ) or a blank node [ … ] that is no subject")
        self._fail()

    def _literal(self) -> Literal:
        token = self._take()
        width = 3 if token[:3] in ("'''", '"""') and len(token) > 5 else 1
        text = _unescaped(token[width:-width])
        if self.kind == "language":
            raise NotReadError(f"{token}{self.token}: literals with a language are not read")
        if not self._passed("^^"):
            return Literal(text)
        if self.kind == "iri":
            datatype = _unescaped(self._take()[1:-1])
        elif self.kind == "name":
            datatype = self._named()
        else:
            self._fail("a datatype was expected")
        return Literal(text, None if datatype == XSD + "string" else datatype)

    def _named(self) -> str:
        prefix, _, local = self.token.partition(":")
        if prefix not in self._prefixes:
            raise QueryReadError(f"the prefix {prefix!r} of {self.token} is not declared")
        self._next()
        return self._prefixes[prefix] + local

    def _resolved(self, text: str) -> str:
        if self._bases and not ABSOLUTE.match(text):
            if text.startswith(("/", "./", "../", "#")):
                return self._bared(urljoin(self._bases[0], text))
            return text
        return self._bared(text)

    def _bared(self, text: str) -> str:
        for base in self._bases:
            if text.startswith(base):
                return text[len(base) :]
        return text

    # --- expressions --------------------------------------------------------------------------

    def _expression(self) -> Expression:
        parts = [self._conjunction()]
        while self._passed("||"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _conjunction(self) -> Expression:
        parts = [self._comparison()]
        while self._passed("&&"):
            parts.append(self._comparison())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _comparison(self) -> Expression:
        left = self._primary()
        if self.kind == "punctuation" and self.token in _COMPARISONS:
            operator = self._take()
            return Compare(operator, left, self._primary())
        return left

    def _primary(self) -> Expression:
        if self._passed("!"):
            self._deeper()
            negated = Not(self._primary())
            self._depth -= 1
            return negated
        if self._passed("("):
            self._deeper()
            found = self._expression()
            self._expect(")")
            self._depth -= 1
            return found
        if self.kind != "word" or self.token.lower() in ("true", "false"):
            return self._term()
        function = self._word()
        if function in _REFUSED:
            self._fail()
        self._next()
        if not self._is("("):
            self._fail("'(' was expected")
        self._next()
        if function in _AGGREGATES:
            distinct = self._keyword("DISTINCT")
            if self._is("*"):
                self._refuse(f"{function}(*)", f"{_NOT_HERE}; count a variable: COUNT(DISTINCT ?x)")
            argument = self._expression()
            self._expect(")")
            return Aggregate(function, argument, distinct)
        if self._word() == "DISTINCT":
            self._refuse(f"{function}(DISTINCT …)")
        arguments: list[Expression] = []
        if not self._is(")"):
            arguments.append(self._expression())
            while self._passed(","):
                arguments.append(self._expression())
        self._expect(")")
        return Apply(function, tuple(arguments))


_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'"}
_CHARACTERS["\\"] = "\\"


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    if match[3] is None:
        point = int(match[1] or match[2], 16)
        if point > 0x10FFFF or 0xD800 <= point < 0xE000:
            raise QueryReadError(f"{match[0]} is no character")
        return chr(point)
    if match[3] not in _CHARACTERS:
        raise QueryReadError(f"there is no escape {match[0]!r} in a string")
    return _CHARACTERS[match[3]]


def _past_space(text: str, at: int) -> int:
    match = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*").match(text, at)
    return match.end() if match else at
