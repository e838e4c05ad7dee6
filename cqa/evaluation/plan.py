"""Plans: what has only the operators of sets does for all queries of one type, step by step.

A plan is compiled once from the structure of a query; its relations and anchors are columns. Run
with a number in each column it answers one query, run with an array or a tensor of numbers in each
it answers as many queries of the type at once: `run` is the one walk over operators.

Operator trees are walked from their anchors to the root, in whatever form they are given. Query
graphs are walked node by node in the order of EFOk-CQA's program: constants first; then, again and
again, of the existential variables next to a visited node the one with the largest summed distance
to the free variables; free variables after them. A variable gets what its visited neighbours
project to, negated on negative edges, all intersected. What lies behind the last free variable (an
existential variable that only this one leads to) is not seen by such a walk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from cqa.answering.template import MAX_TEMPLATES, Grounded, numbered, structure
from cqa.errors import QueryError
from cqa.query import Atom, Conjunction, Constant, Query, Variable
from cqa.types.normal import to_form
from cqa.types.tree import Tree

State = TypeVar("State")


class Operators(Protocol[State]):
    """Sets of entities as some model has them, and what can be done with them.

    A state may be an array of scores, an embedding or anything else. Where it is no array with a
    score for each entity, a sixth method ``scores(state)`` gives this array. Whoever cannot take
    complements but differences has a method ``difference(state, taken)``: a set without each of
    some others. Where ``union`` is "max", there need not be an ``or_``: unions become `Disjuncts`.
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


@dataclass(frozen=True)
class Disjuncts:
    """The union of some sets by their states; an entity scores as in the set that it is best in."""

    states: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator: "entity", "project", "and", "or" or "not".

    ``inputs`` are places of earlier steps, ``slot`` the column of an anchor or a relation. A
    projection that is ``turned`` goes against the relation in its column. The inputs at the places
    ``taken`` (positions in ``inputs``) of an intersection are complemented before.
    """

    op: str
    inputs: tuple[int, ...] = ()
    slot: int = -1
    turned: bool = False
    taken: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """A query type as steps; ``free`` are the steps of its free variables' states, in their order.

    It has a column for each place of the type that an anchor stands in, and one for each relation,
    in the order of the formula. ``spent`` are for each step those whose states are not needed after
    it. ``key`` is the type's structure, ``places`` which of its labels are anchors and which
    relations (`cqa.answering.template.structure`); ``form`` what trees were put in.
    """

    steps: tuple[Call, ...]
    free: tuple[int, ...]
    spent: tuple[tuple[int, ...], ...]
    key: Any
    form: str | None
    places: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def anchors(self) -> int:
        """The number of columns of anchors."""
        return len(self.places[0])

    @property
    def relations(self) -> int:
        """The number of columns of relations."""
        return len(self.places[1])

    @cached_property
    def projections(self) -> int:
        """The number of projections."""
        return sum(step.op == "project" for step in self.steps)

    @cached_property
    def width(self) -> int:
        """The most states that are held at a time."""
        held = most = 0
        for spent in self.spent:
            held += 1
            most = max(most, held)
            held -= len(spent)
        return most

    @cached_property
    def negated(self) -> bool:
        """Whether some step takes a complement."""
        return any(step.op == "not" or step.taken for step in self.steps)

    @cached_property
    def bare(self) -> bool:
        """Whether some complement is of no difference: nothing positive stands beside it."""
        return any(
            step.op == "not" or (step.taken and len(step.taken) == len(step.inputs))
            for step in self.steps
        )

    @cached_property
    def union(self) -> bool:
        """Whether some step takes a union."""
        return any(step.op == "or" for step in self.steps)


Columns: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""A query's anchors and relations, one for each column of its plan."""


def compiled(query: Grounded, form: str | None = None) -> QueryPlan:
    """The plan of a query, grounded or not, by its structure only.

    A tree is put in one of the nine forms of `cqa.types.normal`, or walked as it is; the columns
    stay those of the query as it is given. Raises QueryError for a query that operators cannot
    answer: without a constant to start from, or with a negated part that shares more than one
    variable with what surrounds it.
    """
    return _compiled(query, structure(query)[0], form)


def _compiled(query: Grounded, key: Any, form: str | None) -> QueryPlan:
    form = form if isinstance(query, Tree) else None
    plan = _PLANS.get((key, form))
    if plan is None:
        plan = _Compiler(numbered(query), form).plan(key)
        if len(_PLANS) >= MAX_TEMPLATES:
            _PLANS.clear()
        _PLANS[key, form] = plan
    return plan


# Plans by structure and form.
_PLANS: dict[Any, QueryPlan] = {}


def columns(plan: QueryPlan, query: Grounded) -> Columns:
    """A query's anchors and relations in the order of the plan's columns.

    Raises QueryError for a query of another type, and for one that is not grounded.
    """
    key, row = structure(query)
    if key != plan.key:
        raise QueryError("the query is of another type than the plan")
    return _columns(plan, row, "an anchor" if isinstance(query, Tree) else "a constant")


def _columns(plan: QueryPlan, row: Sequence[Any], anchor: str) -> Columns:
    for places, what in zip(plan.places, (anchor, "a relation"), strict=True):
        for at in places:
            if not isinstance(row[at], int):
                shown = "is missing" if row[at] is None else f"is the name {row[at]!r}"
                raise QueryError(
                    f"the query is not grounded: {what} {shown}; a number was expected"
                )
    anchors, relations = plan.places
    return tuple(row[at] for at in anchors), tuple(row[at] for at in relations)


@dataclass(frozen=True, eq=False)
class Planned:
    """Queries of one plan: (B, A) anchors, (B, R) relations, their places in a list of queries."""

    plan: QueryPlan
    anchors: npt.NDArray[np.int64]
    relations: npt.NDArray[np.int64]
    own: tuple[int, ...]


def grouped(queries: Iterable[Grounded], form: str | None = None) -> list[Planned]:
    """Queries by their plans, in order of first appearance; see `compiled` and `columns`.

    Raises QueryError for what those refuse, with the number of the query, from 1.
    """
    plans: dict[Any, QueryPlan] = {}
    rows: dict[Any, list[Columns]] = {}
    own: dict[Any, list[int]] = {}
    for at, query in enumerate(queries):
        key, row = structure(query)
        try:
            if key not in plans:
                plans[key], rows[key], own[key] = _compiled(query, key, form), [], []
            what = "an anchor" if isinstance(query, Tree) else "a constant"
            rows[key].append(_columns(plans[key], row, what))
        except QueryError as error:
            raise QueryError(f"query {at + 1}: {error}") from None
        own[key].append(at)
    found = []
    for key, plan in plans.items():
        anchors, relations = (
            np.array([row[part] for row in rows[key]], np.int64).reshape(len(rows[key]), -1)
            for part in (0, 1)
        )
        found.append(Planned(plan, anchors, relations, tuple(own[key])))
    return found


def run(
    operators: Operators[State], plan: QueryPlan, anchors: Sequence[Any], relations: Sequence[Any]
) -> list[State]:
    """The states of the free variables, in their order.

    ``anchors`` and ``relations`` have for each column a number, or an array or a tensor of the
    numbers of a batch: what the operators take. Raises QueryError where the operators lack what the
    plan needs, as they declare.
    """
    check_operators(operators, plan)
    found: list[Any] = [None] * len(plan.steps)
    for at, step in enumerate(plan.steps):
        inputs = [found[place] for place in step.inputs]
        if step.op == "entity":
            found[at] = operators.entity(anchors[step.slot])
        elif step.op == "project":
            relation = relations[step.slot]
            found[at] = operators.project(inputs[0], relation ^ 1 if step.turned else relation)
        elif step.op == "not":
            found[at] = operators.not_(inputs[0])
        elif step.op == "and":
            found[at] = _intersection(operators, inputs, step.taken)
        else:
            found[at] = _union(operators, inputs)
        for place in plan.spent[at]:
            found[place] = None
    return [found[place] for place in plan.free]


def states(operators: Operators[State], query: Grounded) -> list[State]:
    """The states of one grounded query's free variables, in their order.

    Raises QueryError for a query that the operators cannot answer (`compiled`, `columns`, `run`).
    """
    key, _ = structure(query)
    plan = _compiled(query, key, getattr(operators, "form", None))
    return run(operators, plan, *columns(plan, query))


def _intersection(operators: Operators[State], states: list[Any], taken: tuple[int, ...]) -> State:
    if taken and hasattr(operators, "difference"):
        kept = [state for at, state in enumerate(states) if at not in taken]
        if kept:
            positive = operators.and_(kept) if len(kept) > 1 else kept[0]
            without = operators.difference(positive, [states[at] for at in taken])
            return cast(State, without)
    for at in taken:
        states[at] = operators.not_(states[at])
    return operators.and_(states)


def _union(operators: Operators[State], states: list[Any]) -> Any:
    if getattr(operators, "union", "own") == "own":
        return operators.or_(states)
    parts = [part.states if isinstance(part, Disjuncts) else (part,) for part in states]
    return Disjuncts(tuple(state for part in parts for state in part))


def check_operators(operators: object, plan: QueryPlan) -> None:
    """Raise QueryError where operators declare that they lack what a plan needs.

    ``negation`` and ``union`` are what they declare; without a word they have everything.
    """
    if plan.negated and not getattr(operators, "negation", True):
        if not hasattr(operators, "difference"):
            raise QueryError("the query has a negation, and the model has none")
        if plan.bare:
            raise QueryError(
                "the query has a complement that is of no difference, and the model takes"
                " differences only"
            )
    if plan.union and getattr(operators, "union", "own") == "max":
        unions = {at for at, step in enumerate(plan.steps) if step.op == "or"}
        if any(step.op != "or" and unions & set(step.inputs) for step in plan.steps):
            raise QueryError(
                "the query has a union below its root, and the model has unions at the root only;"
                " give the query in a disjunctive form, such as DNF+IU"
            )


# --- from queries to steps ----------------------------------------------------------------------


def _places(query: Grounded) -> tuple[list[int], list[int]]:
    """Which of a query's labels, in the order of its structure, are anchors, which relations."""
    anchors: list[int] = []
    relations: list[int] = []

    def of_tree(tree: Tree) -> None:
        if tree.op in "pe":
            own = relations if tree.op == "p" else anchors
            own.append(len(anchors) + len(relations))
        for operand in tree.operands:
            of_tree(operand)

    def of_query(given: Query) -> None:
        for disjunct in given.disjuncts:
            for atom in disjunct.atoms:
                relations.append(len(anchors) + len(relations))
                for end in (atom.head, atom.tail):
                    if isinstance(end, Constant):
                        anchors.append(len(anchors) + len(relations))
            for part in disjunct.without:
                of_query(part)

    if isinstance(query, Tree):
        of_tree(query)
    else:
        of_query(query)
    return anchors, relations


class _Compiler:
    """Makes the steps of a query whose labels are numbered in the order of its structure."""

    def __init__(self, query: Grounded, form: str | None) -> None:
        self._query = query
        anchors, relations = self._places = _places(query)
        self._anchors = {label: slot for slot, label in enumerate(anchors)}
        self._relations = {label: slot for slot, label in enumerate(relations)}
        self._form = form
        self._steps: list[Call] = []

    def plan(self, key: Any) -> QueryPlan:
        if isinstance(self._query, Tree):
            tree = self._query if self._form is None else to_form(self._query, self._form)
            free = [self._tree(tree)]
        else:
            free = self._states(self._query)
        anchors, relations = self._places
        places = tuple(anchors), tuple(relations)
        return QueryPlan(
            tuple(self._steps), tuple(free), self._spent(free), key, self._form, places
        )

    def _spent(self, free: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        last = {place: at for at, step in enumerate(self._steps) for place in step.inputs}
        found: list[list[int]] = [[] for _ in self._steps]
        for place, at in last.items():
            if place not in free:
                found[at].append(place)
        return tuple(tuple(sorted(places)) for places in found)

    def _add(self, step: Call) -> int:
        self._steps.append(step)
        return len(self._steps) - 1

    def _entity(self, label: Any) -> int:
        return self._add(Call("entity", slot=self._anchors[label]))

    def _project(self, place: int, label: Any, turned: bool = False) -> int:
        return self._add(Call("project", (place,), self._relations[label], turned))

    def _joined(self, parts: Sequence[tuple[int, bool]]) -> int:
        """The intersection of steps, some of them complemented."""
        if len(parts) == 1:
            place, positive = parts[0]
            return place if positive else self._add(Call("not", (place,)))
        taken = tuple(at for at, (_, positive) in enumerate(parts) if not positive)
        return self._add(Call("and", tuple(place for place, _ in parts), taken=taken))

    def _tree(self, tree: Tree) -> int:
        """The step of a tree; a difference is an intersection with complements."""
        if tree.op == "e":
            return self._entity(tree.entity)
        if tree.op == "p":
            return self._project(self._tree(tree.operands[0]), tree.relation)
        if tree.op == "n":
            return self._add(Call("not", (self._tree(tree.operands[0]),)))
        if tree.op in "uU":
            return self._add(Call("or", tuple(self._tree(part) for part in tree.operands)))
        parts = []
        for at, part in enumerate(tree.operands):
            positive = not (tree.op in "dD" and at)
            if positive and part.op == "n":
                part, positive = part.operands[0], False
            parts.append((self._tree(part), positive))
        return self._joined(parts)

    def _states(self, query: Query) -> list[int]:
        """The steps of a query's free variables, in their order."""
        found = [self._conjunction(disjunct, query.free) for disjunct in query.disjuncts]
        if len(found) == 1:
            return found[0]
        return [self._add(Call("or", places)) for places in zip(*found, strict=True)]

    def _conjunction(self, given: Conjunction, free: tuple[Variable, ...]) -> list[int]:
        visited: dict[Variable, int] = {}
        for variable in visiting_order(given, free):
            visited[variable] = self._node(given, variable, visited)
        return [visited[variable] for variable in free]

    def _node(self, given: Conjunction, variable: Variable, visited: Mapping[Variable, int]) -> int:
        """The step of a variable from its visited neighbours and its negated parts."""
        parts: list[tuple[int, bool]] = []
        for atom in given.atoms:
            for end, other, turned in _directions(atom):
                if end != variable or other == variable:
                    continue
                if isinstance(other, Constant):
                    place = self._entity(other.entity)
                elif other in visited:
                    place = visited[other]
                else:
                    continue
                parts.append((self._project(place, atom.relation, turned), atom.positive))
        for part in given.without:
            if variable in part.free:
                parts.append((self._states(part)[0], False))
        return self._joined(parts)


def _directions(atom: Atom) -> list[tuple[Any, Any, bool]]:
    """(end, other end, whether the relation is turned that leads to the end) for both ends."""
    return [(atom.tail, atom.head, False), (atom.head, atom.tail, True)]


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
    return in_order(near, ready, free)


def in_order(
    near: Mapping[Variable, Sequence[Variable]],
    ready: set[Variable],
    free: tuple[Variable, ...],
    stranded: bool = False,
) -> list[Variable]:
    """The variables of ``near``, each after a neighbour or ``ready`` from the start.

    Existential ones come before free ones, the farthest from the free ones first. What nothing
    leads to comes at last where ``stranded`` allows it, else QueryError is raised.
    """
    ready = set(ready)
    distance = _summed_distances(near, free)
    order: list[Variable] = []
    while len(order) < len(near):
        left = [variable for variable in near if variable not in order]
        waiting = [variable for variable in left if variable in ready]
        if not waiting and not stranded:
            raise QueryError(
                "operators need a constant to start from, and a part of the query has none"
            )
        waiting = waiting or left
        existential = [variable for variable in waiting if variable not in free]
        if existential:
            # max takes the first of those that are as far.
            chosen = max(existential, key=distance.__getitem__)
        else:
            chosen = next(variable for variable in free if variable in waiting)
        order.append(chosen)
        ready.update(near[chosen])
    return order


def _summed_distances(
    near: Mapping[Variable, Sequence[Variable]], free: tuple[Variable, ...]
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
