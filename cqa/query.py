"""Logical queries: disjuncts of conjunctive query graphs, with anti-joins for negated parts.

A term is a constant or a variable. A query whose relations and constants are names of places to be
filled ("r1", "s1") is a query *type*; one with numbers is *grounded*. Everything else in this
package reads, makes, answers or writes this one form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cqa.errors import QueryError, UnsafeQueryError


@dataclass(frozen=True, slots=True, order=True)
class Constant:
    """A given entity: its number in a graph, or the name of a place to be filled."""

    entity: int | str


@dataclass(frozen=True, slots=True, order=True)
class Variable:
    """A variable; it is free when the query lists it, else existential where it stands."""

    name: str


Term: TypeAlias = Constant | Variable


@dataclass(frozen=True, slots=True)
class Atom:
    """``relation(head, tail)`` or its negation; 2r is a relation forward, 2r + 1 its inverse."""

    relation: int | str
    head: Term
    tail: Term
    positive: bool = True

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables at its ends, head first, each once."""
        ends = [end for end in (self.head, self.tail) if isinstance(end, Variable)]
        return tuple(ends[:1] if len(ends) == 2 and ends[0] == ends[1] else ends)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Atoms that hold together, without any match of the negated parts.

    Each of ``without`` is an anti-join: it shares the variables that occur outside it with what
    surrounds it; its other variables are existential inside it alone.
    """

    atoms: tuple[Atom, ...]
    without: tuple[Query, ...] = ()

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the atoms, then those shared with negated parts, each once."""
        found = {variable: None for atom in self.atoms for variable in atom.variables}
        for part in self.without:
            found.update(dict.fromkeys(part.free))
        return tuple(found)

    @property
    def bound(self) -> frozenset[Variable]:
        """The variables that some positive atom binds."""
        return frozenset(v for atom in self.atoms if atom.positive for v in atom.variables)


@dataclass(frozen=True, slots=True)
class Query:
    """What holds of the free variables in at least one disjunct.

    In a negated part, ``free`` lists the variables that it shares with its surroundings.
    """

    free: tuple[Variable, ...]
    disjuncts: tuple[Conjunction, ...]

    @property
    def grounded(self) -> bool:
        """Whether every relation and every constant is a number."""
        return all(
            isinstance(atom.relation, int)
            and all(isinstance(t.entity, int) for t in constants_of(atom))
            for atom in atoms(self)
        )

    @property
    def relations(self) -> tuple[int | str, ...]:
        """The relations of all atoms, negated parts included, in order of appearance, each once."""
        return tuple(dict.fromkeys(atom.relation for atom in atoms(self)))

    @property
    def constants(self) -> tuple[int | str, ...]:
        """The constants of all atoms, negated parts included, in order of appearance, each once."""
        return tuple(dict.fromkeys(t.entity for atom in atoms(self) for t in constants_of(atom)))

    @property
    def existential(self) -> tuple[Variable, ...]:
        """The variables that are not free, those inside negated parts left out."""
        found = dict.fromkeys(v for disjunct in self.disjuncts for v in disjunct.variables)
        return tuple(variable for variable in found if variable not in self.free)


def constants_of(atom: Atom) -> tuple[Constant, ...]:
    """The constants at an atom's ends, head first."""
    return tuple(end for end in (atom.head, atom.tail) if isinstance(end, Constant))


def atoms(query: Query) -> Iterator[Atom]:
    """All atoms of a query, those of negated parts after those around them."""
    for disjunct in query.disjuncts:
        yield from disjunct.atoms
        for part in disjunct.without:
            yield from atoms(part)


def mapped(query: Query, change: Callable[[Atom], Atom]) -> Query:
    """The query with every atom changed; the free variables stay as they are."""
    return Query(
        query.free,
        tuple(
            Conjunction(
                tuple(change(atom) for atom in disjunct.atoms),
                tuple(mapped(part, change) for part in disjunct.without),
            )
            for disjunct in query.disjuncts
        ),
    )


def renamed(query: Query, names: Mapping[Variable, Variable]) -> Query:
    """The query with variables replaced wherever they stand; those not in ``names`` stay."""

    def term(given: Term) -> Term:
        return names.get(given, given) if isinstance(given, Variable) else given

    def change(part: Query) -> Query:
        return Query(
            tuple(names.get(variable, variable) for variable in part.free),
            tuple(
                Conjunction(
                    tuple(
                        Atom(a.relation, term(a.head), term(a.tail), a.positive)
                        for a in disjunct.atoms
                    ),
                    tuple(change(inner) for inner in disjunct.without),
                )
                for disjunct in part.disjuncts
            ),
        )

    return change(query)


def ground(
    query: Query, relations: Mapping[int | str, int], entities: Mapping[int | str, int]
) -> Query:
    """The query with names of places replaced by numbers; numbers that are not named stay.

    >>> x = Variable("x")
    >>> kind = Query((x,), (Conjunction((Atom("r1", Constant("s1"), x),)),))
    >>> ground(kind, {"r1": 6}, {"s1": 40}).relations
    (6,)

    Raises QueryError for a name that has no number.
    """

    def number(given: int | str, table: Mapping[int | str, int], what: str) -> int:
        found = table.get(given, given)
        if isinstance(found, str):
            raise QueryError(f"no number is given for the {what} {given!r}")
        return found

    def end(given: Term) -> Term:
        if isinstance(given, Variable):
            return given
        return Constant(number(given.entity, entities, "constant"))

    return mapped(
        query,
        lambda a: Atom(
            number(a.relation, relations, "relation"), end(a.head), end(a.tail), a.positive
        ),
    )


def check(query: Query, *, entities: int | None = None, relations: int | None = None) -> None:
    """Raise QueryError unless the query is well formed and safe (UnsafeQueryError).

    Safe: every variable that a conjunction brings in (the free ones at the top, and every
    existential one) stands in a positive atom of it, so that no answer depends on what else the
    graph holds. With ``entities`` and ``relations`` (directed ones) the numbers must be below.
    """
    check_form(query, entities=entities, relations=relations)
    _check_safe(query, frozenset())


def check_form(query: Query, *, entities: int | None = None, relations: int | None = None) -> None:
    """The same without the demand that the query be safe."""
    if len(set(query.free)) != len(query.free):
        raise QueryError("a free variable is listed twice")
    if not query.disjuncts:
        raise QueryError("a query needs one disjunct at least")
    for atom in atoms(query):
        for given, what, bound in (
            (atom.relation, "relation", relations),
            *((constant.entity, "entity", entities) for constant in constants_of(atom)),
        ):
            if bound is None:
                continue
            if isinstance(given, str):
                raise QueryError(f"the {what} {given!r} is not a number; ground the query first")
            if not 0 <= given < bound:
                raise QueryError(
                    f"there is no {what} {given}; the graph has the numbers 0 to {bound - 1}"
                )


def _check_safe(query: Query, given: frozenset[Variable]) -> None:
    """``given``: what the surroundings bind."""
    for disjunct in query.disjuncts:
        bound = disjunct.bound | given
        needed = dict.fromkeys((*query.free, *disjunct.variables))
        for variable in needed:
            if variable not in bound:
                raise UnsafeQueryError(
                    f"the variable {variable.name!r} stands in no positive atom, so that every"
                    " entity of the graph might answer; add an atom that binds it"
                )
        for part in disjunct.without:
            _check_safe(part, frozenset(part.free))


def is_safe(query: Query) -> bool:
    """Whether every variable stands in a positive atom where `check` demands it."""
    try:
        _check_safe(query, frozenset())
    except QueryError:
        return False
    return True
