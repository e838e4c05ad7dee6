"""The small graph and its queries, for all that evaluate."""

from __future__ import annotations

import pytest

from cqa.graphs.graph import Graph
from cqa.sampling.sample import Sample
from tests.cqa.small_benchmark import small_world, tree_samples


@pytest.fixture(scope="module")
def graph() -> Graph:
    """The small graph."""
    return small_world()


@pytest.fixture(scope="module")
def trees() -> list[Sample]:
    """Queries of all of BetaE's types."""
    return tree_samples()
