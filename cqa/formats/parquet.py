"""Sampled queries as Parquet files, with a data card, as the package `datasets` loads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from cqa.errors import QueryError
from cqa.formats.json_lines import from_object
from cqa.sampling.sample import Sample
from cqa.types.efok_text import write_formula
from cqa.types.grounded import write_json
from cqa.types.tree import Tree
from kopl_base.errors import ReadError
from kopl_base.packages import arrow_packages, version
from kopl_base.stream import writing

BATCH = 1000  # rows held at a time
_ANSWERS = ("easy", "hard", "lost")

CARD = """---
task_categories:
- question-answering
- graph-ml
tags:
- complex-query-answering
- knowledge-graph
size_categories:
- {size}
configs:
- config_name: default
  data_files:
{files}
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

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
          (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"))  # fmt: skip


def write_folder(
    folder: Path, samples: Iterable[Sample], split: str, origin: Mapping[str, object] | None = None
) -> None:
    """Write a split as ``data/{split}-00000-of-00001.parquet``, and the data card of all splits.

    The card has a table of the ``origin``, what is to be known of how the queries were made.
    """
    write_table(folder / "data" / f"{split}-00000-of-00001.parquet", samples)
    _write_card(folder, origin)


def write_table(path: Path, samples: Iterable[Sample]) -> None:
    """Write queries as one Parquet file, a thousand at a time."""
    arrow, parquet = arrow_packages()
    rows = arrow.list_(arrow.list_(arrow.int32()))
    types = {"free": arrow.int32(), **dict.fromkeys(_ANSWERS, rows)}
    names = ("type", "formula", "query", "free", *_ANSWERS)
    columns = arrow.schema([(name, types.get(name, arrow.string())) for name in names])
    given = map(_row, samples)
    with writing(path, binary=True) as file, parquet.ParquetWriter(file, columns) as writer:
        while batch := list(islice(given, BATCH)):
            writer.write_table(arrow.Table.from_pylist(batch, schema=columns))


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


def read_table(path: Path) -> Iterator[Sample]:
    """The queries of a Parquet file; raises ReadError with file and row."""
    _, parquet = arrow_packages()
    source = str(path)
    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(BATCH):
                for row in batch.to_pylist():
                    number += 1
                    try:
                        yield _sample(row)
                    except (QueryError, KeyError, TypeError) as error:
                        place = f"row {number}"
                        raise ReadError(str(error), place=place, source=source) from None
    except (OSError, ValueError) as error:  # pyarrow's errors are of these
        raise ReadError(f"cannot be read as Parquet: {error}", source=source) from None


def _sample(row: dict[str, Any]) -> Sample:
    query = row.get("query")
    if isinstance(query, str) and query.startswith("{"):
        row = {**row, "query": json.loads(query)}
    return from_object(row)


def split_files(folder: Path, split: str) -> list[Path]:
    """The Parquet files of a split in a folder."""
    return sorted((folder / "data").glob(f"{split}-*.parquet"))


def _write_card(folder: Path, origin: Mapping[str, object] | None) -> None:
    _, parquet = arrow_packages()
    counts, files, total = [], [], 0
    splits = {path.name.partition("-")[0] for path in (folder / "data").glob("*.parquet")}
    for split in sorted(splits, key=lambda name: (name != "train", name != "valid", name)):
        files += [f"  - split: {split}", f"    path: data/{split}-*.parquet"]
        rows, types, easy, hard = 0, set(), 0, 0
        for path in split_files(folder, split):
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH, columns=["type", "easy", "hard"]):
                    rows += batch.num_rows
                    types.update(batch.column("type").to_pylist())
                    easy += sum(map(len, batch.column("easy").to_pylist()))
                    hard += sum(map(len, batch.column("hard").to_pylist()))
        counts.append(f"| {split} | {rows} | {len(types)} | {easy} | {hard} |")
        total += rows
    size = next((name for bound, name in _SIZES if total < bound), "100M<n<1B")
    with writing(folder / "README.md") as file:
        file.write(CARD.format(size=size, files="\n".join(files), counts="\n".join(counts),
                               origin="" if origin is None else _origin(origin)))  # fmt: skip


def _origin(origin: Mapping[str, object]) -> str:
    rows = "\n".join(f"| {name} | {str(fact).replace('|', ' ')} |" for name, fact in origin.items())
    return ORIGIN.format(version=version(), rows=rows)
