"""Sampled queries as JSON lines, one object for each query.

`{"type": "pni", "formula": …, "query": …, "easy": [4, 9], "hard": [2]}`. The query is an object of
operators as EFO-1-QA writes it (`cqa.types.grounded`), or an EFOk formula with numbers
(`cqa.types.efok_text`). Answers are entities, or lists of them for several free variables. "lost"
stands there only where the full graph takes easy answers back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cqa.errors import QueryError
from cqa.query import Query
from cqa.sampling.sample import Sample, sorted_rows
from cqa.types.efok_text import read_formula, write_formula
from cqa.types.grounded import from_json, to_json
from cqa.types.tree import Tree
from kb.arrays import Ids
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader, writing

FIELDS = ("type", "formula", "query", "easy", "hard")


def to_object(sample: Sample) -> dict[str, Any]:
    """The JSON object of a query with its answers."""
    query = sample.query
    found: dict[str, Any] = {
        "type": sample.type,
        "formula": sample.formula,
        "query": to_json(query) if isinstance(query, Tree) else write_formula(query),
        "easy": answers_of(sample.easy),
        "hard": answers_of(sample.hard),
    }
    if len(sample.lost):
        found["lost"] = answers_of(sample.lost)
    return found


def answers_of(rows: Ids) -> list[Any]:
    """Answers as JSON has them: entities, or lists for several free variables."""
    found: list[Any] = rows[:, 0].tolist() if rows.shape[1] == 1 else rows.tolist()
    return found


def from_object(given: object) -> Sample:
    """The query of a JSON object; raises QueryError that names what is wrong."""
    if not isinstance(given, dict):
        raise QueryError(f"an object was expected, not {type(given).__name__}")
    if missing := [name for name in FIELDS if name not in given]:
        raise QueryError(f"the field {missing[0]!r} is missing")
    name, formula = given["type"], given["formula"]
    if not isinstance(name, str) or not isinstance(formula, str):
        raise QueryError("type and formula must be texts")
    query = read_query(given["query"])
    width = len(query.free) if isinstance(query, Query) else 1
    easy, hard, lost = (
        read_answers(given.get(part, []), width, part) for part in ("easy", "hard", "lost")
    )
    return Sample(name, formula, query, easy, hard, lost)


def read_query(value: object) -> Tree | Query:
    """A grounded query as it stands in JSON; raises QueryError."""
    if not isinstance(value, str):
        return from_json(value)
    query = read_formula(value)
    if not query.grounded:
        raise QueryError(f"the query {value} has names where numbers were expected")
    return query


def read_answers(value: object, width: int, what: str) -> Ids:
    """Answers of so many entities each; raises QueryError for anything else."""
    try:
        rows = np.array(value)
        if not rows.size:
            return np.empty((0, width), np.int32)
        shaped = rows.reshape(len(rows), -1)
        low, high = shaped.min(), shaped.max()
    except (TypeError, ValueError):
        rows = np.array("?")
    if rows.dtype.kind not in "iu" or rows.ndim not in (1, 2) or shaped.shape[1] != width:
        each = "an entity" if width == 1 else f"{width} entities"
        raise QueryError(f"the {what} answers are a list with {each} for each answer")
    if low < 0 or high >= 1 << 31:
        raise QueryError(f"the {what} answers hold {low if low < 0 else high}, which is no entity")
    return sorted_rows(shaped.astype(np.int32))


def to_line(sample: Sample) -> str:
    """The line of a query, without its end."""
    return json.dumps(to_object(sample), ensure_ascii=False)


def from_line(line: str) -> Sample:
    """The query of a line; raises QueryError."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"not JSON: {error}") from None
    return from_object(given)


def write_lines(path: Path, samples: Iterable[Sample]) -> None:
    """Write queries as JSON lines, compressed as the name says."""
    with writing(path) as file:
        for sample in samples:
            file.write(to_line(sample) + "\n")


def read_lines(path: Path) -> Iterator[Sample]:
    """The queries of a file of JSON lines; raises ReadError with file and line."""
    for piece in pieces(path, 1):
        yield from piece.samples()


@dataclass(frozen=True)
class Lines:
    """Some lines of a file with their numbers: queries that are read where they are needed."""

    source: str
    lines: list[tuple[int, str]]

    def __len__(self) -> int:
        return len(self.lines)

    def samples(self) -> list[Sample]:
        """The queries; raises ReadError with file and line."""
        found = []
        for number, line in self.lines:
            try:
                found.append(from_line(line))
            except QueryError as error:
                raise ReadError(str(error), place=f"line {number}", source=self.source) from None
        return found


def pieces(path: Path, size: int) -> Iterator[Lines]:
    """The lines of a file that hold queries, so many at a time."""
    with TextReader(path) as reader:
        lines = ((number, line) for number, line in enumerate(reader.lines(), 1) if line.strip())
        while some := list(islice(lines, size)):
            yield Lines(reader.source, some)
