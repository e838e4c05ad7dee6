"""The confidences of a run: a temperature fitted on its validation questions, kept beside it.

The probability of the prediction that counts is calibrated by `parsers.calibration`: divided by the
temperature is its logarithm, as it is the product of many tokens' probabilities, or its log-odds;
what makes the validation questions likelier is taken. Constrained and unconstrained decoding have
temperatures of their own, and so has choice by execution, which may take improbable programs. The
number of beams alone hardly changes the probability of the best one, so it does not matter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from kopl.example import Example, read_examples
from kopl_base.stream import writing
from parsers.calibration import (
    BINS,
    Bin,
    CalibrationError,
    calibrated,
    calibrated_sequences,
    expected_calibration_error,
    fit_temperature,
    fit_temperature_of_sequences,
    log_loss,
    reliability,
)
from parsers.evaluation import Predicts, Report, evaluate

FORMAT = 1
FILE = "calibration.json"
# Validation questions that are enough for one number.
MOST = 1000
# Those for what ``kopl ask`` does, a search of some beams for one question after the other.
ASKING = 250


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
        if temperature is None or not temperature.is_fitted:
            return cls(before, None, reliability(raw, right))
        found = [temperature.confidence(one) for one in raw]
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
            {"format": FORMAT, "weights": _fingerprint(run), "temperatures": temperatures},
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
    return kept if weights == _fingerprint(run) else {}


def _temperature(fields: Any) -> Temperature:
    found = Temperature(**fields)
    if found.kind not in KINDS or found.scale not in _SCALES:
        raise ValueError(f"unknown kind or scale in {fields}")
    if not (0 < found.value < float("inf") and 0 <= found.right <= found.questions):
        raise ValueError(f"numbers that cannot be in {fields}")
    return found


def _fingerprint(run: Path) -> str:
    digest = hashlib.sha256()
    try:
        with (run / "best.safetensors").open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError as error:
        raise CalibrationError(f"{run}: the weights cannot be read: {error.strerror}") from None
    return digest.hexdigest()
