"""Operators on batches of states, and the one way in which training and evaluation run them.

A model is its operators on tensors: every state is one of B queries of one type. `run` walks a plan
(`cqa.evaluation.plan`) with a column of numbers for each anchor and relation; `logits` scores what
comes out. A batch of one gives what each query gives in a larger batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar, cast

import torch

from cqa.errors import QueryError
from cqa.evaluation import plan as walk
from cqa.evaluation.plan import Disjuncts as Disjuncts
from cqa.evaluation.plan import QueryPlan as Plan
from cqa.evaluation.plan import check_operators as check_operators
from cqa.evaluation.plan import columns as columns
from cqa.evaluation.plan import compiled as compiled
from cqa.evaluation.plan import grouped as grouped

State = TypeVar("State")
Union = Literal["max", "own"]


class BatchOperators(Protocol[State]):
    """Sets of entities, B at a time, as some model has them.

    ``negation``: whether there is a `not_`; a model without one may have a method
    ``difference(state, taken)``, the sets without each of a list of others. ``union``: "own" where
    there is an `or_`; "max" where an entity of a union scores as in the best of its parts, which
    holds at the root of a query only. ``form``: the one of the nine forms of operator trees
    (`cqa.types.normal.FORMS`) that trees are put in before they are asked, such as "DNF+IU"; None:
    as they are given.
    """

    negation: bool
    union: Union
    form: str | None

    def entity(self, entities: torch.Tensor) -> State:
        """The sets of one given entity each; ``entities``: (B,) numbers."""

    def project(self, state: State, relations: torch.Tensor) -> State:
        """What directed relations (2r forward, 2r + 1 inverse), (B,) numbers, reach from sets."""

    def and_(self, states: Sequence[State]) -> State:
        """The intersections of two or more sets each."""

    def or_(self, states: Sequence[State]) -> State:
        """The unions of two or more sets each; not called where ``union`` is "max"."""

    def not_(self, state: State) -> State:
        """The complements of sets."""

    def logits(self, state: State, entities: torch.Tensor | None = None) -> torch.Tensor:
        """How well entities fit the sets: (B, m) for (B, m) entities, (B, E) for all of them."""


def run(
    operators: BatchOperators[State], plan: Plan, anchors: torch.Tensor, relations: torch.Tensor
) -> list[State]:
    """The states of the free variables, in their order, of B queries of one type.

    ``anchors``: (B, A), ``relations``: (B, R) numbers, as `columns` and `grouped` give them. Where
    the operators' union is "max", a state may be `Disjuncts`, which `logits` scores. Raises
    QueryError for columns that do not fit the plan, and where the operators lack what it needs.
    """
    for given, wanted, what in (
        (anchors, plan.anchors, "anchors"),
        (relations, plan.relations, "relations"),
    ):
        if given.dim() != 2 or given.shape[1] != wanted:
            raise QueryError(
                f"{what} of shape {tuple(given.shape)}; the plan needs ({len(given)}, {wanted})"
            )
    walked = cast("walk.Operators[State]", operators)
    return walk.run(walked, plan, anchors.unbind(1), relations.unbind(1))


def logits(
    operators: BatchOperators[State],
    state: State | Disjuncts,
    entities: torch.Tensor | None = None,
) -> torch.Tensor:
    """What the operators' `logits` says of a state; of a union the best of its parts."""
    if not isinstance(state, Disjuncts):
        return operators.logits(state, entities)
    best = operators.logits(state.states[0], entities)
    for part in state.states[1:]:
        best = torch.maximum(best, operators.logits(part, entities))
    return best
