"""Queries as first-order text: `∃x. r(a,x) ∧ ¬s(x,?y)`, in ASCII `exists x. r(a,x) & !s(x,?y)`.

Free variables begin with a question mark and stand in the order of their first occurrence; another
order is said before a colon, as in ``?y, ?x: r(?x,?y)``. ``∃x.`` reaches as far to the right as
it can. A name that is no plain word, or one of ``exists and or not``, stands in quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from cqa.errors import FormulaError, QueryError
from cqa.graphs.graph import Graph
from cqa.notation.formula import All, Any, Formula, Fresh, Link, Not, apart, to_query
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable, renamed

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<free>\?\w+)
    | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>[\w/+#@-]+)
    | (?P<mark>&&|\|\||[().,:&|!~∃¬∧∨])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_WORD = re.compile(r"[\w/+#@-]+")
_MEANING = {
    "∃": "exists", "¬": "not", "!": "not", "~": "not", "∧": "and", "&": "and", "&&": "and",
    "∨": "or", "|": "or", "||": "or",
}  # fmt: skip
_KEYWORDS = frozenset(("exists", "not", "and", "or"))
MAX_DEPTH = 150


def read_text(text: str, graph: Graph | None = None) -> Query:
    """The query of a first-order text.

    With a graph, names are those of its entities and relations, and bare numbers its numbers (of
    relations the directed ones). Without, numbers are numbers and names stay names. Raises
    FormulaError with the character's place, also for a name that the graph does not have.
    """
    return _Reader(text, graph).query()


@dataclass
class _Reader:
    text: str
    graph: Graph | None
    at: int = 0
    depth: int = 0
    scopes: list[dict[str, Variable]] = field(default_factory=list)
    free: dict[str, Variable] = field(default_factory=dict)
    local: list[set[Variable]] = field(default_factory=lambda: [set()])

    def __post_init__(self) -> None:
        names = re.findall(r"\?(\w+)", self.text)
        self.fresh = Fresh(names)
        self.next()

    def next(self) -> None:
        """Go to the next token: ``kind``, ``token`` and ``place``."""
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.at += len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
            self.place = self.at + 1
            self.fail(f"{self.text[self.at]!r} was not expected; is a quote missing?")
        kind = match.lastgroup
        assert kind is not None
        self.kind, self.token = kind, match[kind]
        self.place, self.at = match.start(kind) + 1, match.end()
        if kind == "mark" and self.token in _MEANING:
            self.kind, self.token = "keyword", _MEANING[self.token]
        elif kind == "word" and self.token in _KEYWORDS:
            self.kind = "keyword"

    def fail(self, message: str) -> NoReturn:
        raise FormulaError(message, self.place)

    def is_(self, token: str) -> bool:
        return self.kind in ("mark", "keyword") and self.token == token

    def passed(self, token: str) -> bool:
        if self.is_(token):
            self.next()
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.passed(token):
            found = repr(self.token) if self.kind != "end" else "the end"
            self.fail(f"{token!r} was expected, not {found}")

    def query(self) -> Query:
        order = self.header()
        formula = self.disjunction()
        if self.kind != "end":
            self.fail(f"'and', 'or' or the end was expected, not {self.token!r}")
        if order is not None and set(order) != set(self.free):
            odd = sorted(set(order) ^ set(self.free))[0]
            where = "stands before the colon only" if odd in order else "is not before the colon"
            raise FormulaError(f"?{odd} {where}")
        return to_query(formula, [self.free[name] for name in order or self.free])

    def header(self) -> list[str] | None:
        """The free variables before a colon."""
        colon = re.match(r"\s*(\?\w+\s*(?:,\s*\?\w+\s*)*):", self.text)
        if colon is None:
            return None
        names = re.findall(r"\w+", colon[1])
        if len(set(names)) < len(names):
            self.fail("a free variable is listed twice")
        self.at = colon.end()
        self.next()
        return names

    def disjunction(self) -> Formula:
        parts = [self.conjunction()]
        while self.passed("or"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Any(tuple(parts))

    def conjunction(self) -> Formula:
        parts = [self.unary()]
        while self.passed("and"):
            parts.append(self.unary())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def unary(self) -> Formula:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} parts")
        found = self.unary_inside()
        self.depth -= 1
        return found

    def unary_inside(self) -> Formula:
        if self.passed("not"):
            self.local.append(set())
            part = self.unary()
            return Not(part, frozenset(self.local.pop()))
        if self.passed("exists"):
            return self.quantified()
        if self.passed("("):
            found = self.disjunction()
            self.expect(")")
            return found
        return self.atom()

    def quantified(self) -> Formula:
        scope: dict[str, Variable] = {}
        while not self.passed("."):
            if self.kind not in ("word", "free"):
                self.fail("a variable or '.' was expected")
            name = self.token.lstrip("?")
            if name in scope:
                self.fail(f"{name} is quantified twice")
            scope[name] = self.fresh.variable(name)
            self.next()
            self.passed(",")
        self.local[-1].update(scope.values())
        self.scopes.append(scope)
        found = self.disjunction()
        self.scopes.pop()
        return found

    def atom(self) -> Formula:
        relation = self.relation()
        self.expect("(")
        head = self.term()
        self.expect(",")
        tail = self.term()
        self.expect(")")
        return Link(Atom(relation, head, tail))

    def relation(self) -> int | str:
        name = self.name("a relation, 'exists', 'not' or '(' was expected")
        try:
            if self.graph is None:
                found: int | str = name
            elif isinstance(name, int):
                found = name
                if name >= self.graph.links.relation_count:
                    raise QueryError(f"the graph has no relation {name}")
            else:
                found = 2 * self.graph.relation(name)
        except QueryError as error:
            self.fail(str(error))
        self.next()
        return found

    def term(self) -> Term:
        bound = self.token.lstrip("?") if self.kind in ("word", "free") else ""
        for scope in reversed(self.scopes):
            if bound in scope:
                self.next()
                return scope[bound]
        if self.kind == "free":
            found: Term = self.free.setdefault(bound, Variable(bound))
        else:
            name = self.name("a variable or a constant was expected")
            try:
                if self.graph is not None and isinstance(name, str):
                    name = self.graph.entity(name)
                elif self.graph is not None and int(name) >= self.graph.entity_count:
                    raise QueryError(f"the graph has no entity {name}")
            except QueryError as error:
                self.fail(str(error))
            found = Constant(name)
        self.next()
        return found

    def name(self, expected: str) -> int | str:
        """The name or number of the token at hand, which is not passed."""
        if self.kind == "quoted":
            return re.sub(r"\\(.)", _unescaped, self.token[1:-1])
        if self.kind != "word":
            found = repr(self.token) if self.kind != "end" else "the end"
            self.fail(f"{expected}, not {found}")
        if re.fullmatch("[0-9]{1,18}", self.token):
            return int(self.token)
        return self.token


_TO_ESCAPE = re.compile(r'[\\"\n\r\t]')
_LETTERS = {"\n": "n", "\t": "t", "\r": "r"}
_CHARACTERS = {letter: character for character, letter in _LETTERS.items()}


def _unescaped(match: re.Match[str]) -> str:
    return _CHARACTERS.get(match[1], match[1])


def _escaped(match: re.Match[str]) -> str:
    return "\\" + _LETTERS.get(match[0], match[0])


# --- writing ----------------------------------------------------------------------------------

_SIGNS = {
    False: {"exists": "∃", "and": " ∧ ", "or": " ∨ ", "not": "¬"},
    True: {"exists": "exists ", "and": " & ", "or": " | ", "not": "!"},
}


def write_text(query: Query, graph: Graph | None = None, *, ascii: bool = False) -> str:
    """The first-order text of a query, with the names of a graph where it has some.

    Inverse relations are written forward, their ends exchanged. Raises QueryError for a conjunction
    that says nothing.
    """
    writer = _Writer(graph, _SIGNS[ascii])
    query = writer.readable(apart(query))
    text = writer.query(query)
    order = [name[1:] for name in dict.fromkeys(re.findall(r"\?\w+", _unquoted(text)))]
    wanted = [variable.name for variable in query.free]
    if order != wanted:
        if set(order) != set(wanted):
            raise QueryError("a free variable stands in no atom")
        text = f"{', '.join(f'?{name}' for name in wanted)}: {text}"
    return text


def _unquoted(text: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"?', "", text)


@dataclass
class _Writer:
    graph: Graph | None
    signs: dict[str, str]
    names: set[str] = field(default_factory=set)
    free: set[Variable] = field(default_factory=set)

    def readable(self, query: Query) -> Query:
        """The query with variable names that are words; they are kept for `term`."""
        found = _all_variables(query)
        plain = {v for v in found if re.fullmatch(r"\w+", v.name) and not v.name.isdecimal()}
        fresh = Fresh({v.name for v in plain} | _KEYWORDS)
        names = {
            v: v if v in plain and v.name not in _KEYWORDS else fresh.variable("v") for v in found
        }
        self.names = {variable.name for variable in names.values()}
        self.free = {names[variable] for variable in query.free}
        return renamed(query, names)

    def query(self, query: Query) -> str:
        """The text of a query or, with the variables around it as free ones, of a negated part."""
        several = len(query.disjuncts) > 1
        parts = [self.conjunction(d, query.free, several) for d in query.disjuncts]
        return self.signs["or"].join(parts)

    def conjunction(self, given: Conjunction, free: tuple[Variable, ...], inside: bool) -> str:
        own = [v for v in given.variables if v not in free]
        parts = [self.atom(atom) for atom in given.atoms]
        parts += [f"{self.signs['not']}({self.query(part)})" for part in given.without]
        if not parts:
            raise QueryError("a conjunction without atoms says nothing that text could say")
        text = self.signs["and"].join(parts)
        if own:
            text = f"{self.signs['exists']}{', '.join(v.name for v in own)}. {text}"
        return f"({text})" if inside and (own or len(parts) > 1) else text

    def atom(self, atom: Atom) -> str:
        relation, head, tail = atom.relation, atom.head, atom.tail
        if isinstance(relation, int) and relation % 2:
            relation, head, tail = relation - 1, tail, head
        if isinstance(relation, int) and self.graph is not None and self.graph.relations:
            name = self.word(self.graph.relation_name(relation // 2), set())
        else:
            name = str(relation) if isinstance(relation, int) else self.word(relation, set())
        text = f"{name}({self.term(head)},{self.term(tail)})"
        return text if atom.positive else f"{self.signs['not']}{text}"

    def term(self, term: Term) -> str:
        if isinstance(term, Variable):
            return f"?{term.name}" if term in self.free else term.name
        if isinstance(term.entity, str):
            return self.word(term.entity, self.names)
        if self.graph is not None and self.graph.entities:
            return self.word(self.graph.entity_name(term.entity), self.names)
        return str(term.entity)

    def word(self, name: str, taken: set[str]) -> str:
        """A name, in quotes where it would be read as something else."""
        plain = _WORD.fullmatch(name) and not name.isdecimal()
        if plain and name not in taken and name not in _KEYWORDS:
            return name
        return f'"{_TO_ESCAPE.sub(_escaped, name)}"'


def _all_variables(query: Query) -> dict[Variable, None]:
    found: dict[Variable, None] = dict.fromkeys(query.free)
    for disjunct in query.disjuncts:
        found.update(dict.fromkeys(disjunct.variables))
        for part in disjunct.without:
            found.update(_all_variables(part))
    return found
