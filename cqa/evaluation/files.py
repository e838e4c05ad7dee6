"""Evaluations as JSON files, to be compared with later ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cqa.evaluation.evaluation import Evaluation, Part, TypeResult
from cqa.evaluation.metrics import check_ties
from kopl_base.errors import KoplError, ReadError
from kopl_base.stream import read_text, writing

VERSION = 2
# Digits of the metrics of single queries.
DIGITS = 6


def to_json(evaluation: Evaluation, queries: bool = True) -> dict[str, Any]:
    """An evaluation as a JSON object, which `from_json` reads.

    Without ``queries`` the metrics of single queries are left out.
    """
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
                "mark": result.mark,
                **_part(result.all, queries, False),
                "reduced": {
                    name: _part(part, queries, True) for name, part in result.reduced.items()
                },
            }
            for result in evaluation.types
        ],
    }


def to_text(evaluation: Evaluation, queries: bool = True) -> str:
    """The text of a report: what `to_json` gives, a line for each type."""
    value = to_json(evaluation, queries)
    types = [json.dumps(row, ensure_ascii=False) for row in value.pop("types")]
    head = json.dumps(value, indent=1, ensure_ascii=False).removesuffix("\n}")
    return "".join([head, ',\n "types": [\n  ', ",\n  ".join(types), "\n ]\n}\n"])


def _part(part: Part, queries: bool, own: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "queries": part.queries,
        "answers": part.answers,
        "metrics": dict(part.metrics),
    }
    if queries and part.each:
        found["each"] = {key: _numbers(values) for key, values in part.each.items()}
        if own and part.own is not None:
            found["own"] = part.own.tolist()
    return found


def _numbers(values: npt.NDArray[np.float64]) -> list[float | None]:
    given = np.round(values, DIGITS).tolist()
    return [None if value != value else value for value in given]


def from_json(value: Any) -> Evaluation:
    """The evaluation of an object that `to_json` made; raises KoplError for anything else."""
    try:
        if value["version"] not in (1, VERSION):
            raise KoplError(f"a report of version {value['version']!r}; 1 and {VERSION} are known")
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
                int(row.get("mark", 0)),
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
    count = int(value["queries"])
    each = {str(key): _read_each(values, count) for key, values in value.get("each", {}).items()}
    own = np.array(value["own"], np.int64) if "own" in value else np.arange(count)
    if own.shape != (count,):
        raise ValueError(f"{len(own)} places of {count} queries")
    return Part(count, int(value["answers"]), metrics, each, own if each else None)


def _read_each(values: list[float | None], count: int) -> npt.NDArray[np.float64]:
    found = np.array([np.nan if value is None else float(value) for value in values], np.float64)
    if len(found) != count or np.isinf(found).any():
        raise ValueError(f"a metric of single queries is no list of {count} numbers")
    return found


def read_evaluation(path: Path | str) -> Evaluation:
    """The evaluation in a file; raises ReadError for a file that holds none."""
    wanted = "a report of 'kopl cqa evaluate --format json' is expected"
    if Path(path).is_dir():
        raise ReadError(f"a folder; {wanted}", source=str(path))
    try:
        return from_json(json.loads(read_text(path)))
    except (ValueError, RecursionError) as error:
        raise ReadError(f"not JSON: {error}; {wanted}", source=str(path)) from None
    except ReadError:
        raise
    except KoplError as error:
        raise ReadError(str(error), source=str(path)) from None


def write_evaluation(path: Path | str, evaluation: Evaluation) -> None:
    """Write an evaluation as JSON; raises WriteError where that cannot be done."""
    with writing(path) as file:
        file.write(to_text(evaluation))
