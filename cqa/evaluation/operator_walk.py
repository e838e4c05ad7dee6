"""The walk over a query for whoever has its operators only: entity, project, and, or, not.

Operator trees are walked from their anchors to the root, in whatever form they are given. Query
graphs are walked node by node in the order of EFOk-CQA's program: constants first;
then, again and again, of the existential variables next to a visited node the one with the largest
summed distance to the free variables; free variables after them. A variable gets what its visited
neighbours project to, negated on negative edges, all intersected. What lies behind the last free
variable (an existential variable that only this one leads to) is not seen by such a walk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from cqa.errors import QueryError
from cqa.query import Atom, Conjunction, Constant, Query, Variable
from cqa.types.tree import Tree

State = TypeVar("State")


class Operators(Protocol[State]):
    """Sets of entities as some model has them, and what can be done with them.

    A state may be an array of scores, an embedding or anything else. Where it is no array with a
    score for each entity, a sixth method ``scores(state)`` gives this array.
    """

    def entity(self, entity: int) -> State:
        """The set of one given entity."""

    def project(self, state: State, relation: int) -> State:
        """All that a directed relation (2r forward, 2r + 1 inverse) reaches from a set."""

    def and_(self, states: Sequence[State]) -> State:
        """The intersection of two or more sets."""

    def or_(self, states: Sequence[State]) -> State:
        """The union of two or more sets."""

    def not_(self, state: State) -> State:
        """The complement of a set."""


def tree_state(operators: Operators[State], tree: Tree) -> State:
    """The state of a grounded operator tree; a difference is an intersection with complements.

    Raises QueryError for a tree whose relations or anchors are not numbers.
    """
    if tree.op == "e":
        return operators.entity(_number(tree.entity, "anchor"))
    below = [tree_state(operators, operand) for operand in tree.operands]
    if tree.op == "p":
        return operators.project(below[0], _number(tree.relation, "relation"))
    if tree.op == "n":
        return operators.not_(below[0])
    if tree.op in "uU":
        return operators.or_(below)
    if tree.op in "dD":
        below[1:] = [operators.not_(state) for state in below[1:]]
    return operators.and_(below)


def query_states(operators: Operators[State], query: Query) -> list[State]:
    """The states of a grounded query's free variables, in their order.

    Raises QueryError for a query that the walk cannot answer: without a constant to start from, or
    with a negated part that shares more than one variable with what surrounds it.
    """
    found = [_conjunction(operators, disjunct, query.free) for disjunct in query.disjuncts]
    if len(found) == 1:
        return found[0]
    return [operators.or_(states) for states in zip(*found, strict=True)]


def _conjunction(
    operators: Operators[State], given: Conjunction, free: tuple[Variable, ...]
) -> list[State]:
    visited: dict[Variable, State] = {}
    for variable in visiting_order(given, free):
        visited[variable] = _node(operators, given, variable, visited)
    return [visited[variable] for variable in free]


def _node(
    operators: Operators[State],
    given: Conjunction,
    variable: Variable,
    visited: dict[Variable, State],
) -> State:
    """The state of a variable from its visited neighbours and its negated parts."""
    parts: list[State] = []
    for atom in given.atoms:
        for end, other, relation in _directions(atom):
            if end != variable or other == variable:
                continue
            if isinstance(other, Constant):
                state = operators.entity(_number(other.entity, "constant"))
            elif other in visited:
                state = visited[other]
            else:
                continue
            state = operators.project(state, relation)
            parts.append(state if atom.positive else operators.not_(state))
    for part in given.without:
        if variable in part.free:
            parts.append(operators.not_(query_states(operators, part)[0]))
    return parts[0] if len(parts) == 1 else operators.and_(parts)


def _directions(atom: Atom) -> list[tuple[Any, Any, int]]:
    """(end, other end, the relation that leads to the end) for both ends."""
    relation = _number(atom.relation, "relation")
    return [(atom.tail, atom.head, relation), (atom.head, atom.tail, relation ^ 1)]


def visiting_order(given: Conjunction, free: tuple[Variable, ...]) -> list[Variable]:
    """The variables of a conjunction in the order in which the walk visits them.

    Free variables are visited in their order, each as soon as a visited node is next to it and no
    existential variable is; at equal distances the variable that occurs first comes first.
    """
    variables = list(dict.fromkeys((*given.variables, *free)))
    near: dict[Variable, list[Variable]] = {variable: [] for variable in variables}
    ready: set[Variable] = set()
    for atom in given.atoms:
        if len(atom.variables) == 2:
            one, other = atom.variables
            near[one].append(other)
            near[other].append(one)
        elif isinstance(atom.head, Constant) or isinstance(atom.tail, Constant):
            ready.update(atom.variables)
    for part in given.without:
        if len(part.free) != 1:
            raise QueryError(
                "operators alone cannot answer a negated part that shares"
                f" {len(part.free)} variables with what surrounds it; one is needed"
            )
        ready.update(part.free)
    distance = _summed_distances(near, free)
    order: list[Variable] = []
    while len(order) < len(variables):
        waiting = [v for v in variables if v in ready and v not in order]
        if not waiting:
            raise QueryError(
                "operators need a constant to start from, and a part of the query has none"
            )
        existential = [v for v in waiting if v not in free]
        if existential:
            # max takes the first of those that are as far.
            chosen = max(existential, key=distance.__getitem__)
        else:
            chosen = next(v for v in free if v in waiting)
        order.append(chosen)
        ready.update(near[chosen])
    return order


def _summed_distances(
    near: dict[Variable, list[Variable]], free: tuple[Variable, ...]
) -> dict[Variable, int]:
    """For each variable the sum of its distances to the free ones."""
    found = dict.fromkeys(near, 0)
    for start in free:
        steps = {start: 0}
        queue = deque([start])
        while queue:
            at = queue.popleft()
            for other in near[at]:
                if other not in steps:
                    steps[other] = steps[at] + 1
                    queue.append(other)
        for variable in found:
            found[variable] += steps.get(variable, len(near))
    return found


def _number(given: int | str | None, what: str) -> int:
    if not isinstance(given, int):
        shown = "is missing" if given is None else f"is the name {given!r}"
        raise QueryError(f"the query is not grounded: a {what} {shown}; a number was expected")
    return given
