"""Published queries without their answers, which a graph gives: easy, hard and lost ones."""

from __future__ import annotations

import logging

import numpy as np

from cqa.answering.answer import evaluate
from cqa.errors import QueryError
from cqa.graphs.graph import Graph
from cqa.notation.trees import from_tree
from cqa.sampling.sample import Sample, rows_without, sorted_rows
from cqa.types import betae
from cqa.types.tree import Tree
from kb.arrays import Ids
from kopl_base.errors import ReadError

log = logging.getLogger("kb")


class Answerer:
    """Answers the queries of a file on a graph, and warns of queries that do not fit the graph.

    ``source`` names the file in messages. Raises ReadError without a graph.
    """

    def __init__(self, graph: Graph | None, split: str, source: str) -> None:
        if graph is None:
            raise ReadError(
                "holds queries without all of their answers; give the graph that these follow from",
                source=source,
            )
        self._observed, self._full = graph.observed(split), graph.full(split)
        self._trains, self._source = split == graph.splits[0], source
        self._count = self._empty = self._others = 0

    def sample(self, structure: object, hard: Ids | None = None) -> Sample:
        """The query of BetaE's tuples (lists, too) with its answers.

        ``hard``: the hard answers that a file lists; they stand where the graph gives others.
        Raises QueryError for what is no grounded query of the graph.
        """
        tree = betae.from_tuples(structure)
        if not tree.grounded:
            raise QueryError("some relations or anchors are missing")
        query = from_tree(tree)
        # The structures in De Morgan's form have complements that nothing bounds.
        easy = evaluate(query, self._observed, universe=True).tuples
        full = easy if self._trains else evaluate(query, self._full, universe=True).tuples
        found = rows_without(full, easy)
        self._count += 1
        self._empty += not self._trains and not len(found)
        count = self._full.entity_count
        if hard is not None and len(hard) and int(hard.max()) >= count:
            raise QueryError(
                f"the hard answer {int(hard.max())} is no entity; the graph has {count}"
            )
        if hard is not None and not np.array_equal(hard, found):
            self._others += 1
            easy, found = rows_without(easy, hard), hard
            full = sorted_rows(np.concatenate([rows_without(full, hard), hard]))
        name = type_name(tree)
        return Sample(name, tree.abstract.formula, tree, easy, found, rows_without(easy, full))

    def finish(self) -> None:
        """Warn of queries that were made on other graphs, as it seems."""
        if self._empty:
            log.warning(
                "%s: %s of %s queries have no hard answer on this graph; were they made on another"
                " graph or split?", self._source, f"{self._empty:,}", f"{self._count:,}",
            )  # fmt: skip
        if self._others:
            log.warning(
                "%s: %s of %s queries have other hard answers in the file than on this graph; those"
                " of the file are taken", self._source, f"{self._others:,}", f"{self._count:,}",
            )  # fmt: skip


def type_name(tree: Tree) -> str:
    """The best known name of a tree's type, else its formula."""
    kind = tree.abstract
    found = betae.names(kind)
    return found[0] if found else kind.formula
