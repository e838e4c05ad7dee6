"""EFOk's formulas, such as `(r1(s1,e1))&((!(r2(s2,f1)))&(r3(e1,f1)))`.

In types, r1, r2, … stand for relations and s1, s2, … for constants; grounded formulas have numbers
there. e1, e2, … are existential variables, f1, f2, … free ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import NoReturn, TypeAlias

from cqa.errors import FormulaError, QueryError
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable, renamed

# A formula nested deeper than this, or of more disjuncts once its `|` stand outside, is refused.
MAX_DEPTH = 200
MAX_DISJUNCTS = 10_000

_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|(?P<mark>[()&|!,]))")
_NUMBER = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"[rsef][0-9]{0,9}")

Disjuncts: TypeAlias = list[tuple[Atom, ...]]


def read_formula(text: str) -> Query:
    """The query of a formula in any bracketing; `&` binds more than `|`, which ends up outside.

    `!` stands before one atom. Free variables are in the order of their numbers, atoms in that of
    the text. Raises FormulaError with the character's place.
    """
    reader = _Reader(text)
    disjuncts, _ = reader.disjunction(0)
    reader.end()
    found = {end for given in disjuncts for atom in given for end in atom.variables}
    free = sorted(
        (v for v in found if v.name.startswith("f")),
        key=lambda variable: (int(variable.name[1:] or 0), variable.name),
    )
    if not free:
        raise FormulaError("no free variable (f1, …) occurs, so that nothing is asked")
    return Query(tuple(free), tuple(Conjunction(given) for given in disjuncts))


class _Reader:
    """The tokens of a formula, and the methods that read its parts."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.token, self.place = "", 1
        self.next()

    def next(self) -> None:
        """Go on to the next token; "" at the end."""
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            rest = len(self.text) - len(self.text[self.at :].lstrip())
            self.token, self.place = "", rest + 1
            if rest < len(self.text):
                raise FormulaError(f"{self.text[rest]!r} has no meaning here", self.place)
            return
        self.token = match["word"] or match["mark"]
        self.place = match.end() - len(self.token) + 1
        self.at = match.end()

    def fail(self, expected: str) -> NoReturn:
        found = repr(self.token) if self.token else "the end"
        raise FormulaError(f"{expected} was expected, not {found}", self.place)

    def take(self, mark: str) -> None:
        if self.token != mark:
            self.fail(repr(mark))
        self.next()

    def end(self) -> None:
        if self.token:
            self.fail("'&', '|' or the end")

    def disjunction(self, depth: int) -> tuple[Disjuncts, bool]:
        """The disjuncts of a part, and whether it is one atom that may be negated."""
        found, single = self.conjunction(depth)
        while self.token == "|":
            self.next()
            found = found + self.conjunction(depth)[0]
            single = False
        return found, single

    def conjunction(self, depth: int) -> tuple[Disjuncts, bool]:
        found, single = self.negation(depth)
        while self.token == "&":
            place = self.place
            self.next()
            other, _ = self.negation(depth)
            if len(found) * len(other) > MAX_DISJUNCTS:
                raise FormulaError(f"more than {MAX_DISJUNCTS:,} disjuncts", place)
            found = [one + two for one, two in product(found, other)]
            single = False
        return found, single

    def negation(self, depth: int) -> tuple[Disjuncts, bool]:
        if depth > MAX_DEPTH:
            raise FormulaError(f"nested deeper than {MAX_DEPTH}", self.place)
        if self.token == "!":
            place = self.place
            self.next()
            found, single = self.negation(depth + 1)
            if not single:
                raise FormulaError("'!' stands before one atom; more was found after it", place)
            ((atom,),) = found
            return [(Atom(atom.relation, atom.head, atom.tail, not atom.positive),)], True
        if self.token == "(":
            self.next()
            inner = self.disjunction(depth + 1)
            self.take(")")
            return inner
        return [(self.atom(),)], True

    def atom(self) -> Atom:
        relation: int | str = self.token
        if _NUMBER.fullmatch(self.token):
            relation = int(self.token)
        elif not (self.token.startswith("r") and _NAME.fullmatch(self.token)):
            self.fail("'(', '!' or a relation (r1, … or a number)")
        self.next()
        self.take("(")
        head = self.term()
        self.take(",")
        tail = self.term()
        self.take(")")
        return Atom(relation, head, tail)

    def term(self) -> Term:
        token = self.token
        if _NUMBER.fullmatch(token):
            term: Term = Constant(int(token))
        elif not _NAME.fullmatch(token) or token.startswith("r"):
            self.fail("a constant (s1, … or a number) or a variable (e1, …, f1, …)")
        else:
            term = Constant(token) if token.startswith("s") else Variable(token)
        self.next()
        return term


def write_formula(query: Query) -> str:
    """The formula of a query, bracketed as published: `(a)&((b)&(c))`.

    Variables of other names than e1, …, f1, … are renamed in the order in which they occur. Raises
    QueryError for a query that has no such formula: with a negated part that is more than an atom,
    or with a relation or constant that is a name other than r1, … and s1, ….
    """
    if any(disjunct.without for disjunct in query.disjuncts):
        raise QueryError("EFOk formulas negate single atoms only; this query has a negated part")
    if not query.disjuncts or not all(disjunct.atoms for disjunct in query.disjuncts):
        raise QueryError("a query without atoms has no EFOk formula")
    query = _with_names(query)
    written = (
        _bracketed("&", [_atom(atom) for atom in disjunct.atoms]) for disjunct in query.disjuncts
    )
    return _bracketed("|", list(written))


def _with_names(query: Query) -> Query:
    existential = query.existential
    if all(_is_name(v.name, "f") for v in query.free) and all(
        _is_name(v.name, "e") for v in existential
    ):
        return query
    names = {old: Variable(f"f{number}") for number, old in enumerate(query.free, 1)}
    names |= {old: Variable(f"e{number}") for number, old in enumerate(existential, 1)}
    return renamed(query, names)


def _is_name(name: object, letter: str) -> bool:
    return isinstance(name, str) and name.startswith(letter) and bool(_NAME.fullmatch(name))


def _bracketed(mark: str, parts: Sequence[str]) -> str:
    text = parts[-1]
    for part in reversed(parts[:-1]):
        text = f"({part}){mark}({text})"
    return text


def _atom(atom: Atom) -> str:
    relation = atom.relation
    if not isinstance(relation, int) and not _is_name(relation, "r"):
        raise QueryError(f"EFOk formulas have relations r1, … or numbers, not {relation!r}")
    text = f"{relation}({_term(atom.head)},{_term(atom.tail)})"
    return text if atom.positive else f"!({text})"


def _term(term: Term) -> str:
    if isinstance(term, Variable):
        return term.name
    if not isinstance(term.entity, int) and not _is_name(term.entity, "s"):
        raise QueryError(f"EFOk formulas have constants s1, … or numbers, not {term.entity!r}")
    return str(term.entity)
