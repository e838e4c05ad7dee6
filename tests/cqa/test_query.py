"""The form of queries: helpers, grounding, checks."""

from __future__ import annotations

import pytest

from cqa.errors import QueryError
from cqa.query import (
    Atom,
    Conjunction,
    Constant,
    Query,
    Variable,
    atoms,
    check,
    check_form,
    ground,
    is_safe,
    mapped,
    renamed,
)

X, Y, Z = Variable("x"), Variable("y"), Variable("z")
A, B = Constant("s1"), Constant("s2")
INNER = Query((Y,), (Conjunction((Atom("r3", Z, Y), Atom("r1", B, Z))),))
KIND = Query((Y,), (Conjunction((Atom("r1", A, X), Atom("r2", X, Y)), (INNER,)),))
RELATIONS: dict[int | str, int] = {"r1": 4, "r2": 1, "r3": 0}
ENTITIES: dict[int | str, int] = {"s1": 7, "s2": 8}


def test_what_a_query_is_made_of() -> None:
    assert [atom.relation for atom in atoms(KIND)] == ["r1", "r2", "r3", "r1"]
    assert KIND.relations == ("r1", "r2", "r3")
    assert KIND.constants == ("s1", "s2")
    assert KIND.existential == (X,)
    assert KIND.disjuncts[0].variables == (X, Y)
    assert KIND.disjuncts[0].bound == {X, Y}
    assert Atom(0, X, X).variables == (X,)
    assert Atom(0, A, X).variables == (X,)


def test_grounding_reaches_negated_parts() -> None:
    query = ground(KIND, RELATIONS, ENTITIES)
    assert query.grounded and not KIND.grounded
    assert query.relations == (4, 1, 0)
    assert query.constants == (7, 8)
    assert query.disjuncts[0].without[0].free == (Y,)


def test_grounding_keeps_numbers() -> None:
    query = Query((Y,), (Conjunction((Atom(2, Constant(3), Y),)),))
    assert ground(query, {}, {}) == query


@pytest.mark.parametrize(
    ("relations", "entities", "message"),
    [
        ({"r1": 4, "r2": 1}, ENTITIES, "no number is given for the relation 'r3'"),
        (RELATIONS, {"s1": 7}, "no number is given for the constant 's2'"),
    ],
)
def test_grounding_names_what_is_missing(
    relations: dict[int | str, int], entities: dict[int | str, int], message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        ground(KIND, relations, entities)


def test_renaming() -> None:
    found = renamed(KIND, {Y: Variable("f1"), Z: Variable("e2")})
    assert found.free == (Variable("f1"),)
    assert found.disjuncts[0].without[0].free == (Variable("f1"),)
    assert found.disjuncts[0].without[0].existential == (Variable("e2"),)
    assert renamed(found, {Variable("f1"): Y, Variable("e2"): Z}) == KIND


def test_mapping_atoms() -> None:
    turned = mapped(KIND, lambda atom: Atom(atom.relation, atom.tail, atom.head, atom.positive))
    assert turned != KIND
    assert mapped(turned, lambda a: Atom(a.relation, a.tail, a.head, a.positive)) == KIND


def test_queries_are_values() -> None:
    assert hash(KIND) == hash(renamed(KIND, {}))
    assert len({KIND, renamed(KIND, {}), renamed(KIND, {X: Z})}) == 2


def test_safety() -> None:
    check(KIND)
    unbound = Query((Y,), (Conjunction((Atom("r1", A, Y, False),)),))
    assert not is_safe(unbound)
    check_form(unbound)
    # What the surroundings bind need not be bound again inside a negation.
    double = Query((Y,), (Conjunction((Atom("r1", A, Y),), (unbound,)),))
    assert is_safe(double)
    with pytest.raises(QueryError, match="'y' stands in no positive atom"):
        check(unbound)
