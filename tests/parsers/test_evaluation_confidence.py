"""Temperatures of a run: fitted, stored, stale, damaged; errors before and after."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from kb import KnowledgeBase, KoplError
from parsers.evaluation import Report
from parsers.evaluation.confidence import (
    KINDS,
    Calibration,
    CalibrationError,
    Decoding,
    Temperature,
    calibrated_sequences,
    fit,
    fit_temperature_of_sequences,
    fitted,
    log_loss,
    read_temperature,
    write_temperature,
)
from parsers.evaluation.judging import judge
from parsers.languages import KoplLanguage, Prediction
from tests.parsers.test_evaluation import COUNT, Told, asks, written

KIND = Decoding().kind


def test_calibrated_sequences_by_hand() -> None:
    assert calibrated_sequences([0.25, 1.0, 0.0], 2.0) == pytest.approx([0.5, 1.0, 0.0], abs=1e-9)
    assert calibrated_sequences([0.5], 0.5) == pytest.approx([0.25])
    with pytest.raises(CalibrationError, match="above 0"):
        calibrated_sequences([0.5], 0)
    with pytest.raises(CalibrationError, match="must be 0 to 1"):
        calibrated_sequences([1.5], 1)


def test_the_temperature_of_equal_sequences_gives_the_share() -> None:
    """Three of four texts of probability 0.1 right: 0.1 ** (1 / T) is 0.75."""
    found = fit_temperature_of_sequences([0.1] * 4, [True, True, True, False])
    assert found == pytest.approx(math.log(0.1) / math.log(0.75), rel=1e-4)


def test_the_temperature_is_that_of_a_grid() -> None:
    random = np.random.default_rng(2)
    raw = random.uniform(0.01, 0.99, 300)
    right = random.uniform(size=300) < raw ** (1 / 3)
    found = fit_temperature_of_sequences(raw, right)
    grid = np.exp(np.linspace(-2, 4, 2000))
    losses = [log_loss(calibrated_sequences(raw, one), right) for one in grid]
    assert found == pytest.approx(grid[int(np.argmin(losses))], rel=5e-3)


def test_log_loss_by_hand() -> None:
    assert log_loss([0.5, 0.25], [True, False]) == pytest.approx(-math.log(0.5 * 0.75) / 2)
    with pytest.raises(CalibrationError, match="no predictions"):
        log_loss([], [])


def test_the_scale_that_explains_best_is_taken() -> None:
    # Small probabilities, nearly all right: only dividing the logarithm can lift them above 1/2.
    low = fitted([0.05, 0.1, 0.2, 0.1], [True, True, True, False], KIND)
    assert (low.scale, low.questions, low.right) == ("log-probability", 4, 3)
    assert low.confidence(0.1) > 0.5
    # 0.999 right in half of the cases, 0.001 as well: log-odds go to nothing.
    even = fitted([0.999, 0.999, 0.001, 0.001], [True, False, True, False], KIND)
    assert even.scale == "log-odds" and even.confidence(0.999) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("right", "what"), [([True] * 3, "right"), ([False] * 3, "wrong")])
def test_where_there_is_nothing_to_fit(right: list[bool], what: str) -> None:
    found = fitted([0.2, 0.3, 0.4], right, KIND)
    assert not found.is_fitted and found.confidence(0.3) == 0.3
    assert found.note == f"all 3 validation questions are {what}, so no temperature was fitted"


def test_errors_before_and_after_by_hand(small: KnowledgeBase) -> None:
    """Four predictions of probability 0.25, half of them right; at temperature 2 they say 0.5."""
    language = KoplLanguage(small)
    quarter = math.log(0.25)
    judged = [
        judge(asks(COUNT, answer), written(language, COUNT, quarter), language)
        for answer in ("8", "8", "9", "9")
    ]
    report = Report(judged, frozenset())
    found = Calibration.of(report, Temperature(2.0, "log-probability", KIND, 4, 2))
    assert (found.before, found.after) == pytest.approx((0.25, 0.0))
    assert [(one.count, one.accuracy) for one in found.bins if one.count] == [(4, 0.5)]
    assert len(found.bins) == found.to_json()["bins"] == 15
    bare = Calibration.of(report, None)
    assert (bare.before, bare.after) == (0.25, None)


def test_fitted_on_what_is_decoded_alike(small: KnowledgeBase) -> None:
    language = KoplLanguage(small)
    model = Told(language, {"a": [COUNT], "b": [COUNT]})
    examples = [asks(COUNT, "8", "a"), asks(COUNT, "9", "b")]
    found = fit(model, examples, Decoding(4, False, True))
    assert model.asked == [(4, False)]
    assert (found.kind, found.questions, found.right) == ("unconstrained, execution-guided", 2, 1)
    with pytest.raises(CalibrationError, match="no validation questions"):
        fit(model, [], Decoding())


def test_the_kinds_of_decoding() -> None:
    assert str(Decoding(4, False, True)) == "4 beams, unconstrained, execution-guided"
    assert str(Decoding()) == "greedy, constrained"
    assert len(set(KINDS)) == 4 and Decoding(7).kind == Decoding().kind


def test_stored_with_the_run_and_for_its_weights(tmp_path: Path) -> None:
    (tmp_path / "best.safetensors").write_bytes(b"one")
    assert read_temperature(tmp_path, KIND) is None
    first = Temperature(1.5, "log-odds", KIND, 10, 4)
    other = Temperature(2.5, "log-probability", Decoding(4, True, True).kind, 10, 6)
    write_temperature(tmp_path, other)
    write_temperature(tmp_path, first)
    assert [read_temperature(tmp_path, one.kind) for one in (first, other)] == [first, other]
    (tmp_path / "best.safetensors").write_bytes(b"two")  # the training went on
    assert read_temperature(tmp_path, KIND) is None
    write_temperature(tmp_path, first)
    assert read_temperature(tmp_path, other.kind) is None


@pytest.mark.parametrize(
    "change",
    [
        {"format": 9},
        {"weights": None, "temperatures": None},
        {"temperatures": [{"value": 1.0}]},
        {"value": 0.0}, {"value": "1"}, {"value": float("nan")}, {"scale": "odds"},
        {"kind": "x"}, {"right": 11}, {"right": "4"},
    ],
)  # fmt: skip
def test_damaged_files(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "best.safetensors").write_bytes(b"one")
    write_temperature(tmp_path, Temperature(1.5, "log-odds", KIND, 10, 4))
    path = tmp_path / "calibration.json"
    stored = json.loads(path.read_text())
    for key, value in change.items():
        (stored if key in stored else stored["temperatures"][0])[key] = value
    path.write_text(json.dumps(stored))
    with pytest.raises(KoplError, match=r"calibration\.json: damaged .*delete it"):
        read_temperature(tmp_path, KIND)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff"])
def test_files_that_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "best.safetensors").write_bytes(b"one")
    (tmp_path / "calibration.json").write_bytes(content)
    with pytest.raises(KoplError, match=r"calibration\.json"):
        read_temperature(tmp_path, KIND)


def test_a_probability_of_nothing_has_a_confidence() -> None:
    for one in (
        Temperature(2.0, "log-odds", KIND, 10, 4),
        Temperature(2.0, "log-probability", KIND, 10, 4),
    ):
        nothing = Prediction("", float("-inf")).probability
        assert 0 <= one.confidence(nothing) < 1e-3
        assert one.confidence(1.0) == pytest.approx(1.0)
