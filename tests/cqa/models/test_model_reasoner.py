"""Reasoners of models: every query once, in order, in bounded memory, whatever their types."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch

from cqa.errors import QueryError
from cqa.evaluation.plan import states
from cqa.models import reasoner as module
from cqa.models.reasoner import BatchReasoner
from cqa.query import Query
from cqa.types.betae import BETAE, named
from cqa.types.efok_text import read_formula
from cqa.types.tree import Tree
from tests.cqa.models.fuzzy import ENTITIES, Fuzzy, FuzzySingle
from tests.cqa.models.test_plan import filled


def mixed(seed: int) -> list[Tree | Query]:
    """Queries of many types in any order."""
    random = Random(seed)
    found: list[Tree | Query] = [filled(named(name), random) for name in list(BETAE) * 4]
    found += [read_formula("(1(5,f1))&(2(f1,f2))"), read_formula("(3(4,f1))&(0(f1,f2))")]
    random.shuffle(found)
    return found


def check(reasoner: BatchReasoner[torch.Tensor], queries: list[Tree | Query]) -> None:
    """That each query's scores are those that it has alone."""
    found = list(reasoner.scores_of(queries))
    assert len(found) == len(queries)
    for one, query in zip(found, queries, strict=True):
        expected = np.stack(states(FuzzySingle(), query))
        np.testing.assert_allclose(one.scores, expected, rtol=1e-12)


def test_queries_of_all_types_are_answered_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = mixed(1)
    check(BatchReasoner(Fuzzy(), ENTITIES), queries)
    alone = BatchReasoner(Fuzzy(), ENTITIES).scores(queries[0]).scores
    assert alone.shape[1] == ENTITIES
    monkeypatch.setattr(module, "MOST", 7)  # windows of some queries
    check(BatchReasoner(Fuzzy(), ENTITIES, memory=1), queries)


def test_memory_bounds_what_is_asked_at_a_time() -> None:
    queries = [filled(named("pi"), Random(seed)) for seed in range(50)]
    sizes = {}
    for memory in (1, 4 * ENTITIES * 40, 1 << 20):
        reasoner = BatchReasoner(Fuzzy(union="max", form="DNF+IU"), ENTITIES, memory=memory)
        blocks = list(reasoner.blocks_of(queries))
        assert sorted(place for own, _ in blocks for place in own) == list(range(50))
        sizes[memory] = max(len(own) for own, _ in blocks)
    # Three states of the plan and the scores are held for each query.
    assert list(sizes.values()) == [1, 40 // 4, 50]


class Network(torch.nn.Module):
    """A network whose operators are random while it learns."""

    negation, union, form = False, "max", None

    def __init__(self) -> None:
        super().__init__()
        self.vectors = torch.nn.Embedding(ENTITIES, 3)
        self.dropout = torch.nn.Dropout(0.5)

    def entity(self, entities: torch.Tensor) -> torch.Tensor:
        """Its vector, some of it dropped while it learns."""
        return self.dropout(self.vectors(entities))

    def project(self, state: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """The same."""
        return state

    def logits(self, state: torch.Tensor, entities: torch.Tensor | None = None) -> torch.Tensor:
        """The products with all vectors."""
        return (state @ self.vectors.weight.T).bfloat16()


def test_a_network_is_asked_without_its_dropout_and_goes_on_learning() -> None:
    network = Network().train()
    reasoner = BatchReasoner(network, ENTITIES)
    query = Tree("p", (Tree("e", entity=3),), 0)
    one, other = reasoner.scores(query).scores, reasoner.scores(query).scores
    assert one.dtype == np.float32 and np.array_equal(one, other)
    assert network.training and network.dropout.training
    with pytest.raises(QueryError, match="the query has a negation, and the model has none"):
        reasoner.scores(Tree("n", (query,)))
    assert network.training
