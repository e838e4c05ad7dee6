"""Evaluations as JSON files, to be compared with later ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from cqa.evaluation.evaluation import Evaluation, Part, TypeResult
from cqa.evaluation.metrics import check_ties
from kopl_base.errors import KoplError, ReadError
from kopl_base.stream import read_text, writing

VERSION = 1


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as a JSON object, which `from_json` reads."""
    return {
        "version": VERSION,
        "reasoner": evaluation.reasoner,
        "ties": evaluation.ties,
        "compat": evaluation.compat,
        "queries": evaluation.queries,
        "left_out": evaluation.left_out,
        "metrics": evaluation.metrics,
        "types": [
            {
                "type": result.type,
                "formula": result.formula,
                "names": list(result.names),
                "group": dict(result.group),
                **_part(result.all),
                "reduced": {name: _part(part) for name, part in result.reduced.items()},
            }
            for result in evaluation.types
        ],
    }


def _part(part: Part) -> dict[str, Any]:
    return {"queries": part.queries, "answers": part.answers, "metrics": dict(part.metrics)}


def from_json(value: Any) -> Evaluation:
    """The evaluation of an object that `to_json` made; raises KoplError for anything else."""
    try:
        if value["version"] != VERSION:
            raise KoplError(f"a report of version {value['version']!r}; {VERSION} is known")
        compat, ties = value["compat"], str(value["ties"])
        check_ties(ties, compat)
        types = tuple(
            TypeResult(
                str(row["type"]),
                str(row["formula"]),
                tuple(map(str, row["names"])),
                tuple((str(key), _value(of)) for key, of in row["group"].items()),
                _read_part(row),
                {str(name): _read_part(part) for name, part in row["reduced"].items()},
            )
            for row in value["types"]
        )
        return Evaluation(str(value["reasoner"]), ties, compat, types, int(value["left_out"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise KoplError(
            f"no report of an evaluation ({type(error).__name__}: {error}); kopl cqa evaluate"
            " --format json writes one"
        ) from None


def _value(given: object) -> int | str:
    return given if isinstance(given, int) else str(given)


def _read_part(value: Mapping[str, Any]) -> Part:
    metrics = {str(key): float(number) for key, number in value["metrics"].items()}
    if not all(map(isfinite, metrics.values())):
        raise ValueError("a metric is no finite number")
    return Part(int(value["queries"]), int(value["answers"]), metrics)


def read_evaluation(path: Path | str) -> Evaluation:
    """The evaluation in a file; raises ReadError for a file that holds none."""
    try:
        return from_json(json.loads(read_text(path)))
    except (ValueError, RecursionError) as error:
        raise ReadError(f"not JSON: {error}", source=str(path)) from None
    except ReadError:
        raise
    except KoplError as error:
        raise ReadError(str(error), source=str(path)) from None


def write_evaluation(path: Path | str, evaluation: Evaluation) -> None:
    """Write an evaluation as JSON; raises WriteError where that cannot be done."""
    with writing(path) as file:
        file.write(json.dumps(to_json(evaluation), indent=1, ensure_ascii=False) + "\n")
