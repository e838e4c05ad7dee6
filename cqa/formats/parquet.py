"""Sampled queries as Parquet files, with a data card, as the package `datasets` loads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cqa.errors import QueryError
from cqa.formats.json_lines import from_object
from cqa.sampling.sample import Sample
from cqa.types.efok_text import write_formula
from cqa.types.grounded import write_json
from cqa.types.tree import Tree
from kopl_base.errors import ReadError
from kopl_base.packages import version
from kopl_base.parquet import arrow_packages, header, read_table, split_file, write_table
from kopl_base.stream import writing

_ANSWERS = ("easy", "hard", "lost")

CARD = """---
{header}
---

# Logical queries over an incomplete graph

Grounded queries with their answers on the observed graph (easy) and those that only the full graph
gives (hard). Load them with `datasets.load_dataset` and the path of this folder.

| split | queries | types | easy answers | hard answers |
|---|---|---|---|---|
{counts}

| column | what it holds |
|---|---|
| `type` | the name of the query's type |
| `formula` | the type: operators as in EFO-1-QA, or a query graph as in EFOk-CQA |
| `query` | the grounded query: JSON of operators, or the formula with numbers |
| `free` | the number of free variables |
| `easy` | the answers on the observed graph, a list of entities each |
| `hard` | the answers that only the full graph gives |
| `lost` | the easy answers that the full graph takes back, as of a negation |

Entities are numbers; so are relations, 2r forward and 2r + 1 backward.
{origin}"""

ORIGIN = """
## How they were made

By kopl-toolkit {version}; the same plan gives the same queries.

| | |
|---|---|
{rows}
"""


def write_folder(
    folder: Path, samples: Iterable[Sample], split: str, origin: Mapping[str, object] | None = None
) -> None:
    """Write a split as ``data/{split}-00000-of-00001.parquet``, and the data card of all splits.

    The card has a table of the ``origin``, what is to be known of how the queries were made.
    """
    write_samples(folder / split_file(split), samples)
    _write_card(folder, origin)


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write queries as one Parquet file."""
    arrow, _ = arrow_packages()
    rows = arrow.list_(arrow.list_(arrow.int32()))
    types = {"free": arrow.int32(), **dict.fromkeys(_ANSWERS, rows)}
    names = ("type", "formula", "query", "free", *_ANSWERS)
    schema = arrow.schema([(name, types.get(name, arrow.string())) for name in names])
    write_table(path, map(_row, samples), schema)


def _row(sample: Sample) -> dict[str, Any]:
    query = sample.query
    return {
        "type": sample.type,
        "formula": sample.formula,
        "query": write_json(query) if isinstance(query, Tree) else write_formula(query),
        "free": sample.easy.shape[1],
        "easy": sample.easy.tolist(),
        "hard": sample.hard.tolist(),
        "lost": sample.lost.tolist(),
    }


def read_samples(path: Path) -> Iterator[Sample]:
    """The queries of a Parquet file; raises ReadError with file and row."""
    for number, row in enumerate(read_table(path), 1):
        try:
            yield _sample(row)
        except (QueryError, KeyError, TypeError, ValueError) as error:
            raise ReadError(str(error), place=f"row {number}", source=str(path)) from None


def _sample(row: dict[str, Any]) -> Sample:
    query = row.get("query")
    if isinstance(query, str) and query.startswith("{"):
        row = {**row, "query": json.loads(query)}
    return from_object(row)


def split_files(folder: Path, split: str) -> list[Path]:
    """The Parquet files of a split in a folder."""
    return sorted((folder / "data").glob(f"{split}-*.parquet"))


def _write_card(folder: Path, origin: Mapping[str, object] | None) -> None:
    counts, total = [], 0
    found = {path.name.partition("-")[0] for path in (folder / "data").glob("*.parquet")}
    splits = sorted(found, key=lambda name: (name != "train", name != "valid", name))
    for split in splits:
        rows, types, easy, hard = 0, set(), 0, 0
        for path in split_files(folder, split):
            for row in read_table(path, ("type", "easy", "hard")):
                rows += 1
                types.add(row["type"])
                easy += len(row["easy"])
                hard += len(row["hard"])
        counts.append(f"| {split} | {rows} | {len(types)} | {easy} | {hard} |")
        total += rows
    top = header(
        splits,
        total,
        task_categories=["question-answering", "graph-ml"],
        tags=["complex-query-answering", "knowledge-graph"],
    )
    with writing(folder / "README.md") as file:
        file.write(
            CARD.format(
                header="\n".join(top),
                counts="\n".join(counts),
                origin="" if origin is None else _origin(origin),
            )
        )


def _origin(origin: Mapping[str, object]) -> str:
    rows = "\n".join(f"| {name} | {str(fact).replace('|', ' ')} |" for name, fact in origin.items())
    return ORIGIN.format(version=version(), rows=rows)
