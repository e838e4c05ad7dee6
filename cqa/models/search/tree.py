"""Search over operator trees: the sets of many queries of one type, step by step to the root.

States are the values of all entities, [B, E]. On trees without complements of more than one link
this is the best assignment of all variables, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from cqa.evaluation.plan import QueryPlan
from cqa.models.plan import Union
from cqa.models.search.projection import Projection, Way
from cqa.models.search.settings import SearchSettings


class Entities:
    """The sets of one given entity each, [B]."""

    def __init__(self, ids: Tensor) -> None:
        self.ids = ids


State: TypeAlias = "Tensor | Entities"


class SearchOperators:
    """The operators of sets over a link predictor, for a batch of queries of one type."""

    negation = True
    union: Union = "own"

    def __init__(self, projection: Projection, plan: QueryPlan | None = None) -> None:
        """``plan``: the one that is to be run, once; its root then stops early, if it may."""
        self._projection, self._settings = projection, projection.settings
        self.form = form_of(self._settings)
        # How many projections are left until the one whose result is the answer.
        self._left = 0
        if plan is not None and plan.steps[plan.free[0]].op == "project":
            self._left = plan.projections

    def entity(self, entities: Tensor) -> State:
        """Sets of one entity each."""
        return Entities(entities)

    def project(self, state: State, relations: Tensor) -> State:
        """What the relations reach."""
        self._left -= 1
        top = None if self._left else self._settings.top
        numbers = relations.tolist()
        if isinstance(state, Entities):
            return self._projection.first(state.ids, numbers)
        return self._projection.onward(state, [(Way(number),) for number in numbers], top)

    def and_(self, states: Sequence[State]) -> State:
        """The t-norm."""
        return self._settings.all_of([self._dense(state) for state in states])

    def or_(self, states: Sequence[State]) -> State:
        """The t-conorm."""
        return self._settings.any_of([self._dense(state) for state in states])

    def not_(self, state: State) -> State:
        """The negation."""
        return self._settings.negated(self._dense(state))

    def logits(self, state: State, entities: Tensor | None = None) -> Tensor:
        """The values of some entities [B, m], or of all [B, E]."""
        values = self._dense(state)
        return values if entities is None else values.gather(1, entities)

    def _dense(self, state: State) -> Tensor:
        if not isinstance(state, Entities):
            return state
        found = torch.zeros(
            (len(state.ids), self._projection.rows.entity_count), device=state.ids.device
        )
        return found.scatter_(1, state.ids[:, None], 1.0)


def form_of(settings: SearchSettings) -> str | None:
    """The form that trees are put in: unions at the root, or where they stand."""
    return "DNF" if settings.unions == "disjuncts" else None
