"""Reasoners of learned models: what searches a predictor, and what answers by itself."""

from __future__ import annotations

import numpy as np
import pytest

from cqa.evaluation.evaluation import evaluate
from cqa.graphs.graph import Graph
from cqa.models.links.predictor import FrequentTails
from cqa.models.opening import open_reasoner, reasoner_of
from cqa.models.reasoner import BatchReasoner
from cqa.models.search.search import LinkSearch
from cqa.models.search.settings import SETTINGS
from cqa.vocabularies import SEARCHES
from kopl_base.errors import KoplError
from tests.cqa.models.fuzzy import ENTITIES, Fuzzy
from tests.cqa.small_benchmark import small_world, tree_samples


@pytest.fixture(scope="module")
def world() -> Graph:
    """A small graph."""
    return small_world()


def test_the_rows_of_a_predictor_are_searched(world: Graph) -> None:
    predictor = FrequentTails(world.view("train"))
    found = reasoner_of(predictor, world)
    assert isinstance(found, LinkSearch) and found.settings == SETTINGS["qto"]
    changes = {"beam": 3, "t_norm": "minimum", "calibration": "sigmoid"}
    other = reasoner_of(predictor, world, search="cqd-beam", changes=changes)
    assert isinstance(other, LinkSearch)
    assert (other.settings.beam, other.settings.t_norm) == (3, "minimum")
    assert other.settings.calibration.kind == "sigmoid"
    samples = tree_samples()[::5]
    figures = evaluate(found, samples, world.entity_count).metrics
    assert figures["entailment"] > 0.2 > evaluate(other, samples, 40).metrics["entailment"] - 0.2
    # Queries of valid may use the links of train only.
    valid = reasoner_of(predictor, world, "valid")
    assert isinstance(valid, LinkSearch)
    heads, tails = world.observed("test").pairs(0)
    known = [valid.rows.is_observed(0, *pair) for pair in zip(heads, tails, strict=True)]
    assert 0 < sum(known) < len(known)


def test_what_answers_by_itself_is_not_searched(world: Graph) -> None:
    found = reasoner_of(Fuzzy(), world)
    assert isinstance(found, BatchReasoner) and found.entity_count == world.entity_count
    own = BatchReasoner(Fuzzy(), ENTITIES)
    assert reasoner_of(own, world) is own
    with pytest.raises(KoplError, match="Fuzzy answers queries itself"):
        reasoner_of(Fuzzy(), world, search="qto")
    with pytest.raises(KoplError, match="int is neither a model of queries nor one of links"):
        reasoner_of(3, world)


@pytest.mark.parametrize(
    ("search", "changes", "message"),
    [
        ("beam", {}, "there is no search 'beam'; choose of cqd-beam, cqd-hybrid, qto, fit"),
        ("qto", {"beams": 3}, "search.beams: there is no such setting; there are calibration,"),
        ("qto", {"calibration": "x"}, "search.calibration: there is no 'x'; choose of"),
        ("qto", {"beam": 0}, "beam: 0 is below 1"),
        ("qto", {"beam": "many"}, "search: "),
        ("qto", {"t_norm": "least"}, "t_norm: there is no 'least'"),
        ("cqd-co", {"beam": 3}, "search.beam: there is no such setting; there are rate"),
    ],
)
def test_searches_that_there_are_not(
    world: Graph, search: str, changes: dict[str, object], message: str
) -> None:
    predictor = FrequentTails(world.view("train"))
    with pytest.raises(KoplError, match=message):
        reasoner_of(predictor, world, search=search, changes=changes)


def test_what_cannot_be_opened(world: Graph, tmp_path: object) -> None:
    with pytest.raises(KoplError, match="the model betae must be trained before it is asked"):
        open_reasoner("betae", world)
    with pytest.raises(KoplError, match="there is no such run"):
        open_reasoner("no-such-run", world)
    with pytest.raises(KoplError, match="not a run"):
        open_reasoner(str(tmp_path), world)
    with pytest.raises(KoplError, match=r"complex\.rank: the settings of a run are those"):
        open_reasoner(str(tmp_path), world, pairs=["complex.rank=3"])


def test_all_searches_are_offered() -> None:
    assert set(SEARCHES) == {*SETTINGS, "cqd-co"}
    assert np.unique(SEARCHES).size == len(SEARCHES)
