"""Choice by execution, and confidences that mean what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb import KnowledgeBase
from kopl.executor import Executor
from parsers.constrain.rerank import by_execution
from parsers.evaluation.confidence import (
    CalibrationError,
    calibrated,
    expected_calibration_error,
    fit_temperature,
    fit_temperature_of_lists,
    reliability,
    renormalised,
)

FAILS = "QueryAttr(Find(Paris), area, area)"
EMPTY = "QueryAttr(Find(Paris), motto)"
SEVERAL = "QueryName(FilterConcept(FindAll(), city))"
ONE = "QueryAttr(Find(Berlin), area)"
OTHER = "Count(FindAll())"


@pytest.mark.parametrize(
    ("settings", "kept", "dropped"),
    [
        ({}, [ONE, OTHER], [FAILS, EMPTY, SEVERAL]),
        ({"drop": ()}, [ONE, OTHER, SEVERAL, EMPTY, FAILS], []),
        ({"drop": (), "rerank": False}, [FAILS, EMPTY, SEVERAL, ONE, OTHER], []),
        ({"drop": ["fails"]}, [ONE, OTHER, SEVERAL, EMPTY], [FAILS]),
        ({"drop": ["several"], "rerank": False}, [FAILS, EMPTY, ONE, OTHER], [SEVERAL]),
    ],
)
def test_what_is_kept(
    tiny: KnowledgeBase, settings: dict[str, object], kept: list[str], dropped: list[str]
) -> None:
    found = by_execution([FAILS, EMPTY, SEVERAL, ONE, OTHER], Executor(tiny).run, **settings)  # type: ignore[arg-type]
    assert [one.prediction for one in found.kept] == kept
    assert [one.prediction for one in found.dropped] == dropped


def test_reasons(tiny: KnowledgeBase) -> None:
    run = Executor(tiny).run
    found = by_execution([FAILS, EMPTY, SEVERAL, ONE], run, drop=())
    told = {one.prediction: (one.rank, one.fault, one.reason) for one in found.kept}
    assert told[ONE] == (3, None, "it has one answer")
    assert told[EMPTY] == (1, "empty", "it has no answer")
    assert told[SEVERAL] == (2, "several", "it has 2 answers")
    assert told[FAILS][1] == "fails" and told[FAILS][2].startswith("it does not run: ")
    assert found.kept[0].result is not None and found.kept[0].result.denotation


def test_when_all_would_go(tiny: KnowledgeBase) -> None:
    run = Executor(tiny).run
    assert [one.prediction for one in by_execution([FAILS, EMPTY], run).kept] == [EMPTY]
    nothing = by_execution([FAILS, EMPTY], run, at_least_one=False)
    assert not nothing.kept and len(nothing.dropped) == 2
    assert not by_execution([], run).kept
    with pytest.raises(ValueError, match="unknown faults"):
        by_execution([], run, drop=["wrong"])  # type: ignore[list-item]
    with pytest.raises(ZeroDivisionError):
        by_execution([1], lambda number: 1 // 0)  # type: ignore[arg-type, return-value]


# --- calibration ------------------------------------------------------------------------------


def test_error_of_known_bins() -> None:
    """Two bins: 0.9 where half is right, 0.1 where none is, worked out by hand."""
    confidences = [0.9] * 10 + [0.1] * 30
    correct = [True] * 5 + [False] * 35
    assert expected_calibration_error(confidences, correct) == pytest.approx(
        10 / 40 * 0.4 + 30 / 40 * 0.1
    )
    found = reliability(confidences, correct)
    assert len(found) == 15 and sum(one.count for one in found) == 40
    assert [one.count for one in found if one.count] == [30, 10]


@pytest.mark.parametrize(("confidence", "place"), [(0.0, 0), (1.0, 14), (1 / 3, 4), (0.34, 5)])
def test_borders(confidence: float, place: int) -> None:
    found = reliability([confidence], [True])
    assert [number for number, one in enumerate(found) if one.count] == [place]


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1), st.integers(1, 20))
def test_error_by_a_second_way(pairs: list[tuple[float, bool]], bins: int) -> None:
    """Against sums over each bin, written out."""
    borders = np.linspace(0.0, 1.0, bins + 1).tolist()
    expected = 0.0
    for place in range(bins):
        inside = [
            pair for pair in pairs
            if borders[place] < pair[0] <= borders[place + 1] or (place == 0 and pair[0] == 0)
        ]  # fmt: skip
        gap = sum(confidence - correct for confidence, correct in inside)
        expected += abs(gap) / len(pairs)
    found = expected_calibration_error(*zip(*pairs, strict=True), bins=bins)
    assert found == pytest.approx(expected, abs=1e-9)
    assert 0 <= found <= 1


@pytest.mark.parametrize("true", [0.5, 1.0, 2.5])
def test_the_temperature_is_found_again(true: float) -> None:
    """Confidences whose log-odds were multiplied by a known number."""
    rng = np.random.default_rng(3)
    right = rng.uniform(0.02, 0.98, 40_000)
    correct = rng.uniform(size=len(right)) < right
    shown = calibrated(right, 1 / true)
    found = fit_temperature(shown, correct)
    assert found == pytest.approx(true, rel=0.05)
    after = expected_calibration_error(calibrated(shown, found), correct)
    assert after < 0.015
    if true != 1.0:
        assert expected_calibration_error(shown, correct) > 3 * after


def test_the_temperature_of_lists_is_found_again() -> None:
    rng = np.random.default_rng(5)
    logs = rng.normal(size=(5_000, 4)) * 2
    places = [int(rng.choice(4, p=renormalised(row))) for row in logs]
    found = fit_temperature_of_lists((logs * 3).tolist(), [*places])
    assert found == pytest.approx(3.0, rel=0.1)
    with_gaps = fit_temperature_of_lists([*(logs * 3).tolist(), [0.0]], [*places, None])
    assert with_gaps == pytest.approx(found)
    assert renormalised([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.floats(0.1, 10))
def test_order_stays(confidences: list[float], temperature: float) -> None:
    found = calibrated(sorted(confidences), temperature)
    assert ((found >= 0) & (found <= 1)).all() and (np.diff(found) >= -1e-12).all()


def test_certainty_does_not_break_the_fit() -> None:
    for correct in ([True, True], [False, False], [True, False]):
        assert 0 < fit_temperature([1.0, 0.0], correct) < 200


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_temperature([], []), "no predictions"),
        (lambda: fit_temperature([0.5], [True, False]), "1 confidences, but 2 outcomes"),
        (lambda: fit_temperature([0.5, 1.5], [True, False]), "confidence 1 is 1.5"),
        (lambda: fit_temperature([float("nan")], [True]), "confidence 0 is nan"),
        (lambda: calibrated([0.5], 0), "above 0"),
        (lambda: renormalised([0.5], -1), "above 0"),
        (lambda: reliability([0.5], [True], bins=0), "at least one bin"),
        (lambda: fit_temperature_of_lists([[0.0]], [None]), "nothing to fit"),
        (lambda: fit_temperature_of_lists([[0.0]], [1]), "place 1"),
        (lambda: fit_temperature_of_lists([[0.0]], []), "1 lists, but 0 places"),
    ],
)
def test_what_cannot_be_calibrated(call: object, message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        call()  # type: ignore[operator]
