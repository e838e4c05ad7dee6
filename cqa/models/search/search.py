"""The solver that CQD-Beam, CQD-Hybrid, QTO and FIT are settings of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from cqa.errors import QueryError
from cqa.evaluation.reasoner import Scored
from cqa.evaluation.tuple_metrics import TupleScores
from cqa.models.links.rows import Rows
from cqa.models.plan import grouped, run
from cqa.models.search import published
from cqa.models.search.explain import Explanation, explained
from cqa.models.search.graph import GraphSearch
from cqa.models.search.projection import Projection
from cqa.models.search.settings import SearchSettings
from cqa.models.search.tree import SearchOperators, form_of
from cqa.notation.trees import from_tree
from cqa.query import Query, check_form
from cqa.types import betae
from cqa.types.tree import Tree

# States of queries that are walked together take at most this much memory, each.
STATE_BYTES = 128 << 20


class LinkSearch:
    """Scores of answers by the best assignment of a query's variables.

    Trees are walked together by type, query graphs one by one.
    """

    def __init__(self, rows: Rows, settings: SearchSettings) -> None:
        self.rows, self.settings = rows, settings
        self._solvers: dict[str, tuple[Projection, GraphSearch]] = {}

    def scores(self, query: Query | Tree) -> Scored:
        """The scores of one query's answers; of several free variables of the best tuples, too."""
        return next(iter(self.scores_of([query])))

    def scores_of(self, queries: Sequence[Query | Tree]) -> Iterator[Scored]:
        """The scores of each query, in their order."""
        found: dict[int, Scored] = {}
        types: dict[str, list[int]] = {}
        for at, query in enumerate(queries):
            self._check(query)
            if isinstance(query, Tree):
                types.setdefault(query.formula, []).append(at)
        for own in types.values():
            trees = [query for at in own if isinstance(query := queries[at], Tree)]
            for at, row in zip(own, self._trees(trees), strict=True):
                found[at] = Scored(row.cpu().numpy()[None])
        for at, query in enumerate(queries):
            yield found.pop(at) if isinstance(query, Tree) else self._graph(query)

    def explain(self, query: Query | Tree, answer: Sequence[int] | int) -> Explanation:
        """The best assignment that gives an answer, with what each of its links is worth.

        Raises QueryError for an answer that is none of the graph's entities, or of another length.
        """
        row = (answer,) if isinstance(answer, int) else tuple(answer)
        for entity in row:
            if not 0 <= entity < self.rows.entity_count:
                raise QueryError(f"there is no entity {entity} to explain")
        graph = self.solver(query)[1]
        given = from_tree(query) if isinstance(query, Tree) else query
        if len(row) == 1 == len(given.free):
            score = float(self.scores(query).scores[0, row[0]])
        else:
            score = float(graph.value_of(given, row))
        return explained(graph, given, row, score)

    def solver(self, query: Query | Tree) -> tuple[Projection, GraphSearch]:
        """What searches for a query, with the settings of its type."""
        names = betae.names(query.abstract) if isinstance(query, Tree) else ()
        given = self.settings.of_type(names) if self.settings.by_type else self.settings
        key = repr(given)
        if key not in self._solvers:
            projection = published.projection(self.rows, given)
            self._solvers[key] = projection, GraphSearch(projection)
        return self._solvers[key]

    def _check(self, query: Query | Tree) -> None:
        check_form(
            from_tree(query) if isinstance(query, Tree) else query,
            entities=self.rows.entity_count,
            relations=self.rows.relation_count,
        )

    def _trees(self, trees: Sequence[Tree]) -> Iterator[Tensor]:
        projection, graph = self.solver(trees[0])
        size = max(1, STATE_BYTES // (4 * self.rows.entity_count))
        for at in range(0, len(trees), size):
            part = trees[at : at + size]
            special = published.states(projection, graph, part)
            if special is not None:
                yield from special
                continue
            (given,) = grouped(part, form_of(projection.settings))
            operators = SearchOperators(projection, given.plan)
            anchors, relations = (
                torch.from_numpy(one).to(self.rows.device)
                for one in (given.anchors, given.relations)
            )
            (state,) = run(operators, given.plan, anchors, relations)
            yield from operators.logits(state)

    def _graph(self, query: Query) -> Scored:
        graph = self.solver(query)[1]
        scores = graph.marginals(query).cpu().numpy()
        most = graph.settings.tuples
        if len(query.free) < 2 or not most or graph.settings.compat == "paper":
            return Scored(scores)
        rows, values = graph.tuples(query, most)
        tuples = np.array(rows, np.int32).reshape(-1, len(query.free))
        return Scored(scores, TupleScores(tuples, values.cpu().numpy()))
