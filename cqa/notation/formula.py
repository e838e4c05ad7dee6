"""First-order formulas over links, and their normal form: disjuncts, negated atoms, anti-joins.

What the readers of first-order text and of SPARQL have in common. Every variable of a formula is
told from every other by its name, whatever its scope; `Fresh` gives such names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from cqa.errors import QueryError
from cqa.query import Atom, Conjunction, Query, Variable

# A formula whose unions multiply to more disjuncts than this is refused.
MAX_DISJUNCTS = 4096


@dataclass(frozen=True, slots=True)
class Link:
    """A positive atom."""

    atom: Atom


@dataclass(frozen=True, slots=True)
class All:
    """A conjunction; of nothing, it is true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """A disjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A negation; ``local`` are the existential variables inside it."""

    part: Formula
    local: frozenset[Variable] = frozenset()


Formula: TypeAlias = Link | All | Any | Not


def variables(formula: Formula) -> dict[Variable, None]:
    """The variables of a formula that are not local to a negation, in order of appearance."""
    if isinstance(formula, Link):
        return dict.fromkeys(formula.atom.variables)
    if isinstance(formula, Not):
        return {v: None for v in variables(formula.part) if v not in formula.local}
    return {v: None for part in formula.parts for v in variables(part)}


def to_query(formula: Formula, free: Iterable[Variable]) -> Query:
    """The query of a formula; variables that are not free are existential.

    Raises QueryError when the unions multiply to too many disjuncts.
    """
    return Query(tuple(free), _alternatives(formula))


def _alternatives(formula: Formula) -> tuple[Conjunction, ...]:
    if isinstance(formula, Link):
        return (Conjunction((formula.atom,)),)
    if isinstance(formula, Any):
        return _limited([one for part in formula.parts for one in _alternatives(part)])
    if isinstance(formula, Not):
        return _negated(formula)
    found: list[Conjunction] = [Conjunction(())]
    for part in formula.parts:
        found = _limited_list(
            Conjunction((*left.atoms, *right.atoms), (*left.without, *right.without))
            for left, right in product(found, _alternatives(part))
        )
    return tuple(found)


def _negated(formula: Not) -> tuple[Conjunction, ...]:
    part = formula.part
    while isinstance(part, All | Any) and len(part.parts) == 1:
        part = part.parts[0]
    if isinstance(part, Link) and formula.local.isdisjoint(part.atom.variables):
        atom = part.atom
        return (Conjunction((Atom(atom.relation, atom.head, atom.tail, False),)),)
    if isinstance(part, Any):
        apart = (Not(one, formula.local.intersection(variables(one))) for one in part.parts)
        return _alternatives(All(tuple(apart)))
    if isinstance(part, Not) and not formula.local:
        return _alternatives(part.part)  # two negations without a quantifier between them
    return _anti_join(formula)


def _anti_join(formula: Not) -> tuple[Conjunction, ...]:
    shared = tuple(variables(formula))
    return (Conjunction((), (Query(shared, _alternatives(formula.part)),)),)


def _limited_list(parts: Iterable[Conjunction]) -> list[Conjunction]:
    found: list[Conjunction] = []
    for part in parts:
        found.append(part)
        if len(found) > MAX_DISJUNCTS:
            raise QueryError(f"the unions multiply to more than {MAX_DISJUNCTS} disjuncts")
    return found


def _limited(parts: Iterable[Conjunction]) -> tuple[Conjunction, ...]:
    return tuple(_limited_list(parts))


class Fresh:
    """Names of variables that are each given once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def variable(self, name: str) -> Variable:
        """A variable of that name, or of the first of name_2, name_3, … that is not taken."""
        found, number = name, 2
        while found in self.taken:
            found, number = f"{name}_{number}", number + 1
        self.taken.add(found)
        return Variable(found)


def apart(query: Query) -> Query:
    """The query with existential variables of different scopes under different names.

    A negated part may use the name of a variable around it for one of its own; in text the two
    would become one.
    """
    fresh = Fresh(variable.name for variable in query.free)
    return _apart(query, {variable: variable for variable in query.free}, fresh)


def _apart(query: Query, outer: dict[Variable, Variable], fresh: Fresh) -> Query:
    disjuncts = []
    for disjunct in query.disjuncts:
        names = {variable: outer[variable] for variable in query.free}
        for variable in disjunct.variables:
            if variable not in names:
                names[variable] = fresh.variable(variable.name)
        atoms = tuple(
            Atom(
                atom.relation,
                names[atom.head] if isinstance(atom.head, Variable) else atom.head,
                names[atom.tail] if isinstance(atom.tail, Variable) else atom.tail,
                atom.positive,
            )
            for atom in disjunct.atoms
        )
        without = tuple(_apart(part, names, fresh) for part in disjunct.without)
        disjuncts.append(Conjunction(atoms, without))
    return Query(tuple(outer[variable] for variable in query.free), tuple(disjuncts))
