"""Rows: each calibration by hand, observed links by split, what is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from cqa.graphs.graph import Graph, from_triples
from cqa.models.links.rows import CALIBRATIONS, Calibration, Rows, calibration
from kopl_base.errors import KoplError
from tests.cqa.models.small_predictor import Table, small_graph


class Logits:
    """The same logits for every head, of one relation both ways."""

    entity_count, relation_count = 4, 2

    def scores(self, relation: int, heads: Tensor) -> Tensor:
        """Softmax 0.1, 0.2, 0.3, 0.4."""
        return torch.tensor([1.0, 2.0, 3.0, 4.0]).log().repeat(len(heads), 1)


def graph() -> Graph:
    """Head 0 has two training links and one of valid, head 1 has none, head 2 one."""
    parts = [[(0, 0, 1), (0, 0, 2), (2, 0, 3)], [(0, 0, 3)], [(1, 0, 0)]]
    arrays = [np.array(part, np.int32) for part in parts]
    return from_triples(arrays, entity_count=4, relation_count=1)


def row(given: Calibration, head: int) -> list[float]:
    """The row of a head, observed links being those of train and valid."""
    own = graph()
    rows = Rows(Logits(), given, own.view("train"), own.observed("test"))
    found: list[float] = rows.rows(0, torch.tensor([head]))[0].tolist()
    return found


def test_a_sigmoid_reads_each_logit_by_itself() -> None:
    # sg(log x) = x / (1 + x)
    assert row(CALIBRATIONS["sigmoid"], 0) == pytest.approx([1 / 2, 2 / 3, 3 / 4, 4 / 5])


def test_min_max_stretches_a_row() -> None:
    low, high = math.log(1), math.log(4)
    expected = [(math.log(x) - low) / (high - low) for x in (1, 2, 3, 4)]
    assert row(CALIBRATIONS["minmax"], 0) == pytest.approx(expected)
    scaled = [0.9 * value for value in expected]
    # Links of train and valid are known.
    assert row(CALIBRATIONS["minmax-observed"], 0) == pytest.approx([scaled[0], 1, 1, 1])
    assert row(CALIBRATIONS["minmax-observed"], 1) == pytest.approx(scaled)


def test_degree_multiplies_by_the_number_of_training_links() -> None:
    # Two training links; 2 · 0.4 = 0.8 for the link of valid, which is not known.
    assert row(CALIBRATIONS["degree"], 0) == pytest.approx([0.2, 1, 1, 0.8])
    assert row(CALIBRATIONS["degree"], 1) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert row(calibration("degree", threshold=0.25), 1) == pytest.approx([0, 0, 0.3, 0.4])
    assert row(calibration("degree", known=0.9999), 0) == pytest.approx([0.2, 0.9999, 0.9999, 0.8])


def test_no_prediction_of_degree_reaches_one() -> None:
    class Sure(Logits):
        def scores(self, relation: int, heads: Tensor) -> Tensor:
            return torch.tensor([0.0, 0.0, 0.0, 9.0]).repeat(len(heads), 1)

    own = graph()
    rows = Rows(Sure(), CALIBRATIONS["degree"], own.view("train"), own.observed("test"))
    assert rows.rows(0, torch.tensor([0]))[0, 3].item() == pytest.approx(0.9999)


def test_normalised_sums_up_to_the_number_of_training_links() -> None:
    # Those of head 0 have 0.2 + 0.3: the factor is 2 / 0.5 = 4, cut at 0.999; 0.1 · 4 = 0.4.
    assert row(CALIBRATIONS["normalised"], 0) == pytest.approx([0.4, 1, 1, 1])
    assert row(CALIBRATIONS["normalised"], 1) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    # Head 2: 1 / 0.4 = 2.5.
    assert row(CALIBRATIONS["normalised"], 2) == pytest.approx([0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("name", sorted(CALIBRATIONS))
def test_kept_rows_are_those_made_anew_and_memory_is_bounded(name: str) -> None:
    own = small_graph(4)
    parts = own.view("train"), own.observed()
    limit = 7 * own.entity_count * 4
    few = Rows(Table(4), CALIBRATIONS[name], *parts, cache_bytes=limit)
    none = Rows(Table(4), CALIBRATIONS[name], *parts, cache_bytes=0)
    for heads in ([0, 1], [1, 0, 0, 2], [0, 4, 5, 6], [6, 0, 0]):
        for relation in (0, 3):
            given = torch.tensor(heads)
            assert torch.equal(few.rows(relation, given), none.rows(relation, given))
            held = [part for entry in few._kept.values() for part in entry if part is not None]
            assert sum(part.numel() * part.element_size() for part in held) <= limit
    assert few.made < none.made


def test_what_is_kept_is_not_changed_by_who_asked_for_it() -> None:
    own = small_graph(4)
    rows = Rows(Table(4), CALIBRATIONS["sigmoid"], own.view("train"))
    heads = torch.tensor([0, 1])
    first = rows.rows(0, heads).clone()
    rows.rows(0, heads).zero_()
    assert torch.equal(rows.rows(0, heads), first)


def test_a_predictor_of_another_graph_is_refused() -> None:
    with pytest.raises(KoplError, match="4 entities, the graph has 7"):
        Rows(Logits(), CALIBRATIONS["sigmoid"], small_graph(1).view("train"))
    with pytest.raises(KoplError, match="there is no calibration 'best'"):
        calibration("best")
    with pytest.raises(KoplError, match="threshold: 2"):
        calibration("degree", threshold=2)
