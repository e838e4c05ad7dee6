"""Queries of Query2box as JSON lines: a type, BetaE's nested tuple as lists, and hard answers.

`{"type": "2i", "query": [[1, [1]], [2550, [391]]], "hard": [32, 419]}`. The type and the hard
answers may be missing; easy answers always follow from the graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from cqa.errors import QueryError
from cqa.formats.json_lines import read_answers
from cqa.formats.unanswered import Answerer
from cqa.graphs.graph import Graph
from cqa.sampling.sample import Sample
from cqa.types import betae
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader


def looks_so(path: Path) -> bool:
    """Whether the first line of a file is such a query, as far as it can be read."""
    try:
        with TextReader(path) as reader:
            first = next((line for line in reader.lines() if line.strip()), "")
        given = json.loads(first)
    except (ReadError, ValueError, RecursionError):
        return False
    return isinstance(given, dict) and isinstance(given.get("query"), list)


def read_queries(path: Path, graph: Graph | None, split: str) -> Iterator[Sample]:
    """The queries of a file with their answers on a graph; hard ones as the file has them.

    Raises ReadError with file and line, and without a graph.
    """
    answerer = Answerer(graph, split, str(path))
    with TextReader(path) as reader:
        for number, line in enumerate(reader.lines(), 1):
            if not line.strip():
                continue
            try:
                sample = _sample(line, answerer)
            except QueryError as error:
                raise ReadError(str(error), place=f"line {number}", source=reader.source) from None
            yield sample
    answerer.finish()


def _sample(line: str, answerer: Answerer) -> Sample:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"not JSON: {error}") from None
    if not isinstance(given, dict) or "query" not in given:
        raise QueryError('an object with "query", and "type" and "hard", was expected')
    hard = None if given.get("hard") is None else read_answers(given["hard"], 1, "hard")
    sample = answerer.sample(given["query"], hard)
    name = given.get("type", sample.type)
    if not isinstance(name, str) or betae.named(name).formula != sample.formula:
        raise QueryError(f"the query is of the type {sample.type}, not {name!r}")
    return sample
