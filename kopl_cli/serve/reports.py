"""What a training came to: right before and after, and every question whose answer changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kopl_base.stream import read_text

# How many changed answers are told.
CHANGED = 500


def of_lesson(folder: Path, learned: Any) -> dict[str, Any]:
    """The report of a lesson, of what ``kopl learn --json`` printed and wrote."""
    parts = learned["report"]
    lines = _lines(folder / "changes.jsonl")
    changed = [json.loads(line) for line in lines[:CHANGED]]
    return {
        "corrected": _part(parts.get("corrections")),
        "held_out": _part(parts.get("old")),
        "changed": [_change(one) for one in changed],
        "changes": len(lines),
        "learnt": learned["corrections"],
        "run": folder.name,
    }


def _lines(path: Path) -> list[str]:
    # Other ends of lines may stand in questions.
    return [line for line in read_text(path).split("\n") if line]


def _part(own: Mapping[str, int] | None) -> dict[str, Any] | None:
    if own is None:
        return None
    shown = {"n": own["asked"], "before": own["before"], "after": own["after"]}
    shown |= {"better": own["better"], "worse": own["worse"]}
    return shown | {"p": mcnemar(own["worse"], own["better"])}


def mcnemar(first: int, second: int) -> float:
    """The two-sided p of McNemar's exact test: so many questions that only one of two has right.

    >>> mcnemar(0, 5)
    0.0625
    """
    # Not at the top: it needs the packages of training, without which the page is served, too.
    from parsers.evaluation.accuracy import Difference

    return float(Difference(0, first, second, 0).p_value)


def _change(one: Mapping[str, Any]) -> dict[str, Any]:
    before, after = one["before"], one["after"]
    better = None if before["right"] == after["right"] else after["right"]
    return {
        "question": one["question"], "gold": one["gold"], "part": one["part"],
        "before": before["answers"], "after": after["answers"],
        "program_before": before["program"], "program_after": after["program"], "better": better,
    }  # fmt: skip


def of_first(folder: Path) -> dict[str, Any]:
    """The report of a first training: the questions that chose its best weights."""
    epochs = [json.loads(line) for line in _lines(folder / "history.jsonl")]
    best = max((one["validation"] for one in epochs), default=0.0)
    asked = len(_lines(folder / "valid.jsonl"))
    held_out = {"n": asked, "before": None, "after": round(best * asked), "p": None}
    return {
        "corrected": None, "held_out": held_out, "changed": [], "changes": 0, "learnt": 0,
        "run": folder.name,
    }  # fmt: skip
