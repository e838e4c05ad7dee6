"""Confidences that mean what they say: a temperature, kept beside a run, and how far it is off.

A parser's probability of its best program is rarely the share of such programs that are right.
One number, fitted on validation questions, mends most of it (Guo et al., 2017, "On Calibration of
Modern Neural Networks"); the expected calibration error tells what is left.

Divided by the temperature is the logarithm of the probability of the prediction that counts, as it
is the product of many tokens' probabilities, or its log-odds; what makes the validation questions
likelier is taken. Constrained and unconstrained decoding have temperatures of their own, and so has
choice by execution, which may take improbable programs. The number of beams alone hardly changes
the probability of the best one, so it does not matter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kopl.example import Example, read_examples
from kopl_base.errors import KoplError
from kopl_base.stream import writing
from parsers.evaluation.accuracy import Predicts, Report, evaluate

Floats = npt.NDArray[np.float64]

BINS = 15

# Temperatures that are tried, as natural logarithms: 0.007 to 150.
_COLDEST, _HOTTEST = -5.0, 5.0


FORMAT = 1
FILE = "calibration.json"
# Validation questions that are enough for one number.
MOST = 1000
# Those for what ``kopl ask`` does, a search of some beams for one question after the other.
ASKING = 250


class CalibrationError(KoplError):
    """Confidences that cannot be calibrated: none, or no probabilities."""

    kind = "calibration"


@dataclass(frozen=True)
class Bin:
    """The predictions whose confidence lies in (low, high]; means are 0 where there are none."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def calibrated(confidences: Sequence[float] | Floats, temperature: float) -> Floats:
    """The confidences at a temperature: their log-odds divided by it.

    Above 1 they move towards a half, below 1 away from it; their order stays. Raises
    CalibrationError for what is no probability.
    """
    if not temperature > 0:
        raise CalibrationError(f"a temperature must be above 0, not {temperature}")
    return _sigmoid(_log_odds(_probabilities(confidences)) / temperature)


def fit_temperature(
    confidences: Sequence[float] | Floats, correct: Sequence[bool] | npt.NDArray[np.bool_]
) -> float:
    """The temperature at which the confidences best explain which predictions are correct.

    It has the greatest log-likelihood of ``correct`` given `calibrated`. Raises CalibrationError
    when there is nothing to fit, or the lengths differ.
    """
    values, hits = _pairs(confidences, correct)
    odds = _log_odds(values)
    signs = np.where(hits, odds, -odds)
    # -log sigmoid(x), without overflow
    return _lowest(lambda temperature: float(np.logaddexp(0.0, -signs / temperature).mean()))


def calibrated_sequences(
    probabilities: Sequence[float] | Floats, temperature: float
) -> Floats:  # fmt: skip
    """The probabilities of whole texts at a temperature: their logarithms divided by it.

    Above 1 they rise towards 1: a text of many tokens has a small probability even where each
    token is likely. Their order stays. Raises CalibrationError for what is no probability.
    """
    if not temperature > 0:
        raise CalibrationError(f"a temperature must be above 0, not {temperature}")
    found: Floats = np.exp(_logs(_probabilities(probabilities)) / temperature)
    return found


def fit_temperature_of_sequences(
    probabilities: Sequence[float] | Floats, correct: Sequence[bool] | npt.NDArray[np.bool_]
) -> float:
    """The temperature at which `calibrated_sequences` best explains which texts are correct.

    Raises CalibrationError when there is nothing to fit, or the lengths differ.
    """
    values, hits = _pairs(probabilities, correct)
    logs = _logs(values)

    def loss(temperature: float) -> float:
        scaled = np.minimum(logs / temperature, -1e-12)
        return -float(np.where(hits, scaled, np.log(-np.expm1(scaled))).mean())

    return _lowest(loss)


def log_loss(
    confidences: Sequence[float] | Floats, correct: Sequence[bool] | npt.NDArray[np.bool_]
) -> float:
    """The mean negative logarithm of the confidence in what came true; 0 is best."""
    values, hits = _pairs(confidences, correct)
    inside = np.clip(values, 1e-12, 1 - 1e-12)
    return -float(np.where(hits, np.log(inside), np.log1p(-inside)).mean())


def fit_temperature_of_lists(
    scores: Sequence[Sequence[float]], right: Sequence[int | None]
) -> float:
    """The temperature for n-best lists: logarithms of probabilities, divided by it, renormalised.

    ``right`` is the place of the right prediction in each list; lists without one (None) tell
    nothing and are passed over. Raises CalibrationError when no list is left.
    """
    if len(scores) != len(right):
        raise CalibrationError(f"{len(scores)} lists, but {len(right)} places")
    kept = [
        (np.asarray(logs, np.float64), place)
        for logs, place in zip(scores, right, strict=True)
        if place is not None
    ]
    if not kept:
        raise CalibrationError("no list has a right prediction; there is nothing to fit")
    for logs, place in kept:
        if not 0 <= place < len(logs) or not np.isfinite(logs).all():
            raise CalibrationError(f"place {place} of {logs.tolist()}: not a list of log-scores")

    def loss(temperature: float) -> float:
        return -float(np.mean([_log_softmax(logs / temperature)[at] for logs, at in kept]))

    return _lowest(loss)


def renormalised(scores: Sequence[float], temperature: float = 1.0) -> Floats:
    """The probabilities of the predictions of one n-best list at a temperature; they sum to 1."""
    if not temperature > 0:
        raise CalibrationError(f"a temperature must be above 0, not {temperature}")
    if not len(scores):
        return np.zeros(0)
    found: Floats = np.exp(_log_softmax(np.asarray(scores, np.float64) / temperature))
    return found


def reliability(
    confidences: Sequence[float] | Floats,
    correct: Sequence[bool] | npt.NDArray[np.bool_],
    bins: int = BINS,
) -> list[Bin]:
    """The predictions in bins of equal width, for a reliability diagram.

    A confidence on a border belongs to the bin below it, 0 to the first bin.
    """
    if bins < 1:
        raise CalibrationError(f"there must be at least one bin, not {bins}")
    values, hits = _pairs(confidences, correct)
    borders = np.linspace(0.0, 1.0, bins + 1)
    places = np.clip(np.searchsorted(borders, values, side="left") - 1, 0, bins - 1)
    counts = np.bincount(places, minlength=bins)
    safe = np.maximum(counts, 1)
    means = np.bincount(places, values, minlength=bins) / safe
    shares = np.bincount(places, hits, minlength=bins) / safe
    return [
        Bin(float(borders[n]), float(borders[n + 1]), int(counts[n]), float(means[n]),
            float(shares[n]))
        for n in range(bins)
    ]  # fmt: skip


def expected_calibration_error(
    confidences: Sequence[float] | Floats,
    correct: Sequence[bool] | npt.NDArray[np.bool_],
    bins: int = BINS,
) -> float:
    """The mean distance of confidence and accuracy over bins, weighted by their predictions.

    0 is best, 1 worst.
    """
    found = reliability(confidences, correct, bins)
    total = sum(one.count for one in found)
    return sum(one.count / total * abs(one.confidence - one.accuracy) for one in found)


def _pairs(
    confidences: Sequence[float] | Floats, correct: Sequence[bool] | npt.NDArray[np.bool_]
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    values, hits = _probabilities(confidences), np.asarray(correct, np.bool_)
    if len(values) != len(hits):
        raise CalibrationError(f"{len(values)} confidences, but {len(hits)} outcomes")
    if not len(values):
        raise CalibrationError("there are no predictions to calibrate")
    return values, hits


def _probabilities(confidences: Sequence[float] | Floats) -> Floats:
    values = np.asarray(confidences, np.float64)
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        raise CalibrationError(
            f"confidence {int(np.argmax(wrong))} is {values[wrong][0]}, but must be 0 to 1"
        )
    return values


def _log_odds(values: Floats) -> Floats:
    # Certainty would be infinite; no fit could ever leave it.
    inside = np.clip(values, 1e-12, 1 - 1e-12)
    found: Floats = np.log(inside) - np.log1p(-inside)
    return found


def _logs(values: Floats) -> Floats:
    found: Floats = np.log(np.clip(values, 1e-300, 1 - 1e-12))
    return found


def _sigmoid(values: Floats) -> Floats:
    found: Floats = np.exp(-np.logaddexp(0.0, -values))
    return found


def _log_softmax(values: Floats) -> Floats:
    found: Floats = values - np.logaddexp.reduce(values)
    return found


def _lowest(loss: Callable[[float], float]) -> float:
    """The temperature of the least loss, by golden section over its logarithm.

    The losses are convex in 1 / temperature, so that they have one valley.
    """
    ratio = (np.sqrt(5.0) - 1) / 2
    low, high = _COLDEST, _HOTTEST
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(float(np.exp(left))), loss(float(np.exp(right)))
    while high - low > 1e-6:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(float(np.exp(left)))
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(float(np.exp(right)))
    return float(np.exp((low + high) / 2))


# --- the temperatures of runs --------------------------------------------------------------------

Scale = Literal["log-probability", "log-odds"]

_SCALES: tuple[Scale, ...] = ("log-probability", "log-odds")
_CALIBRATED = {"log-probability": calibrated_sequences, "log-odds": calibrated}
_FIT = {"log-probability": fit_temperature_of_sequences, "log-odds": fit_temperature}


@dataclass(frozen=True)
class Decoding:
    """How programs are searched for: beams, constrained or not, the beam chosen by execution."""

    beams: int = 1
    constrained: bool = True
    guided: bool = False

    def __str__(self) -> str:
        search = "greedy" if self.beams == 1 else f"{self.beams} beams"
        return f"{search}, {self.kind}"

    @property
    def kind(self) -> str:
        """All but the beams: what a temperature is for."""
        constrained = "constrained" if self.constrained else "unconstrained"
        return f"{constrained}{', execution-guided' if self.guided else ''}"


KINDS = tuple(
    Decoding(1, constrained, guided).kind
    for constrained in (True, False)
    for guided in (False, True)
)


@dataclass(frozen=True)
class Temperature:
    """A fitted temperature: what it divides, for which kind of decoding (`Decoding.kind`).

    Of ``questions`` validation questions ``right`` were right. ``value`` is 1 where there was
    nothing to fit: all of them right, or all wrong.
    """

    value: float
    scale: Scale
    kind: str
    questions: int
    right: int

    @property
    def is_fitted(self) -> bool:
        """Whether there was anything to fit."""
        return 0 < self.right < self.questions

    @property
    def note(self) -> str:
        """What a reader must know of the temperature, or nothing."""
        if self.is_fitted:
            return ""
        what = "right" if self.right else "wrong"
        return f"all {self.questions} validation questions are {what}, so no temperature was fitted"

    def confidence(self, probability: float) -> float:
        """The calibrated confidence, from 0 to 1, of a prediction's probability."""
        if not self.is_fitted:
            return probability
        return float(_CALIBRATED[self.scale]([probability], self.value)[0])


@dataclass(frozen=True)
class Calibration:
    """How far confidences are from the share that is right, before and after the temperature."""

    before: float | None
    after: float | None
    bins: list[Bin]

    @classmethod
    def of(cls, report: Report, temperature: Temperature | None) -> Calibration:
        """The expected calibration error over 15 bins; the bins are those of the confidences.

        None of both where no question says what is right.
        """
        raw = [one.prediction.probability for one in report.compared]
        right = [one.right for one in report.compared]
        if not raw:
            return cls(None, None, [])
        before = expected_calibration_error(raw, right)
        found = report.confidences(temperature.confidence if temperature else None)
        if found == raw and (temperature is None or not temperature.is_fitted):
            return cls(before, None, reliability(raw, right))
        return cls(
            before, expected_calibration_error(found, right), reliability(found, right)
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The errors and the bins as plain numbers."""
        return {
            "bins": BINS,
            "error before": self.before,
            "error after": self.after,
            "reliability": [asdict(one) for one in self.bins],
        }


def fit(
    model: Predicts, examples: Sequence[Example], decoding: Decoding,
    advance: Callable[[int], None] = lambda count: None,
) -> Temperature:  # fmt: skip
    """The temperature for a model's confidences, fitted on examples it was not trained on.

    Raises CalibrationError without examples.
    """
    if not examples:
        raise CalibrationError("there are no validation questions to fit a temperature on")
    report = evaluate(
        model, examples, (), advance,
        beams=decoding.beams, constrained=decoding.constrained, guided=decoding.guided,
    )  # fmt: skip
    probabilities = [one.prediction.probability for one in report.judged]
    return fitted(probabilities, [one.right for one in report.judged], decoding.kind)


def fitted(probabilities: Sequence[float], right: Sequence[bool], kind: str) -> Temperature:
    """The temperature of the scale on which it explains best what is right."""
    count = sum(right)
    best = Temperature(1.0, "log-probability", kind, len(right), count)
    if not best.is_fitted:
        return best
    lowest = float("inf")
    for scale in _SCALES:
        value = _FIT[scale](probabilities, right)
        loss = log_loss(_CALIBRATED[scale](probabilities, value), right)
        if loss < lowest:
            best, lowest = Temperature(value, scale, kind, len(right), count), loss
    return best


def validation_questions(run: Path) -> list[Example]:
    """The validation questions of a run that its temperatures are fitted on, at most `MOST`.

    Raises ReadError when they are not to be had.
    """
    return list(read_examples(run / "valid.jsonl"))[:MOST]


def read_temperature(run: Path, kind: str) -> Temperature | None:
    """The temperature that was stored with a run for its present weights, or None.

    ``kind`` is that of the decoding. Raises CalibrationError when the file is damaged.
    """
    return _read(run).get(kind)


def write_temperature(run: Path, temperature: Temperature) -> None:
    """Store a temperature with a run; raises WriteError when that cannot be done."""
    kept = _read(run) | {temperature.kind: temperature}
    temperatures = [asdict(kept[kind]) for kind in KINDS if kind in kept]
    with writing(run / FILE) as file:
        json.dump(
            {"format": FORMAT, "weights": weights_mark(run), "temperatures": temperatures},
            file, indent=2,
        )  # fmt: skip
        file.write("\n")


def _read(run: Path) -> dict[str, Temperature]:
    """What is stored for the present weights; those of a training gone on with do not count."""
    path = run / FILE
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"{path}: cannot be read: {error}") from None
    try:
        found: dict[str, Any] = json.loads(text)
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}")
        kept = {one.kind: one for one in map(_temperature, found["temperatures"])}
        weights = found["weights"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CalibrationError(
            f"{path}: damaged ({error}); delete it, kopl eval writes it again"
        ) from None
    return kept if weights == weights_mark(run) else {}


def _temperature(fields: Any) -> Temperature:
    found = Temperature(**fields)
    if found.kind not in KINDS or found.scale not in _SCALES:
        raise ValueError(f"unknown kind or scale in {fields}")
    if not (0 < found.value < float("inf") and 0 <= found.right <= found.questions):
        raise ValueError(f"numbers that cannot be in {fields}")
    return found


def weights_mark(run: Path) -> str:
    """What tells the present weights of a run from others; raises CalibrationError."""
    digest = hashlib.sha256()
    try:
        with (run / "best.safetensors").open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError as error:
        raise CalibrationError(f"{run}: the weights cannot be read: {error.strerror}") from None
    return digest.hexdigest()
