"""Question sets as Parquet files with a data card, as the package datasets reads a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from generation.formats import COLUMNS, HUB_NAMES, from_row, to_row
from kb.errors import KoplError, ReadError
from kb.progress import ProgressBar
from kb.stream import writing
from kopl.example import Example
from kopl.traits import hops, locating, skills

BATCH = 1000  # rows held at a time

# What follows from the program, for those who look for examples in the table; not read back.
DERIVED = ("hops", "skills", "locating")


def _packages() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise KoplError(
            "Parquet files need the package pyarrow: pip install 'kopl-toolkit[parquet]'"
        ) from None


def _schema(arrow: Any) -> Any:
    text, texts = arrow.string(), arrow.list_(arrow.string())
    call = arrow.struct(
        [
            ("function", text),
            ("dependencies", arrow.list_(arrow.int32())),
            ("inputs", texts),
        ]
    )
    types = {"program": arrow.list_(call), "choices": texts, "hops": arrow.int32()}
    types |= {"skills": texts, "locating": texts}
    return arrow.schema([(name, types.get(name, text)) for name in (*COLUMNS, *DERIVED)])


def write_parquet(path: Path | str, examples: Iterable[Example]) -> int:
    """Write examples as a Parquet file, a thousand at a time, and say how many."""
    arrow, parquet = _packages()
    schema = _schema(arrow)
    count = 0
    rows = map(_row, examples)
    with writing(path, binary=True) as file, parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, BATCH)):
            writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


def _row(example: Example) -> dict[str, Any]:
    program = example.program
    traits = {"hops": hops(program), "skills": skills(program), "locating": locating(program)}
    return to_row(example) | traits


def rows(path: Path) -> Iterator[tuple[str, Any]]:
    """(place, object) for each row of a Parquet file; raises ReadError for a damaged file."""
    arrow, parquet = _packages()
    try:
        with parquet.ParquetFile(path) as file:
            names = set(file.schema_arrow.names)
            if missing := {"question", "program"} - names:
                raise ReadError(f"no column {' and '.join(sorted(missing))}", source=str(path))
            columns = [name for name in COLUMNS if name in names]
            number = 0
            with ProgressBar(f"reading {path.name}", file.metadata.num_rows) as bar:
                for batch in file.iter_batches(BATCH, columns=columns):
                    for row in batch.to_pylist():
                        yield f"row {number}", from_row(row)
                        number += 1
                    bar.reach(number)
    except (arrow.ArrowException, OSError) as error:
        raise ReadError(f"cannot be read as Parquet: {error}", source=str(path)) from None


CARD = """---
configs:
- config_name: default
  data_files:
{files}
language:
- en
task_categories:
- question-answering
---

# Questions with programs

Questions over a knowledge base, each with the KoPL program that answers it. Load it with
`datasets.load_dataset` and the path of this folder.

| split | questions |
|---|---|
{counts}

| column | what it holds |
|---|---|
| `id` | a name of the question; paraphrases have the same up to a `#` |
| `question` | the question |
| `canonical` | the question before it was rephrased |
| `program` | the calls of the program in post-order: `function`, `dependencies`, `inputs` |
| `sparql` | the query of the program |
| `answer` | the only answer |
| `choices` | answers to choose from |
| `type` | the asking strategy |
| `extra` | other fields, as one JSON object |
| `hops`, `skills`, `locating` | what follows from the program |
"""


def write_card(path: Path | str, counts: Mapping[str, int]) -> None:
    """Write the data card of a folder of Parquet files, which names the file of each split."""
    names = {HUB_NAMES.get(part, part): count for part, count in counts.items()}
    files = [f"  - split: {name}\n    path: data/{name}-*.parquet" for name in names]
    lines = [f"| {name} | {count} |" for name, count in names.items()]
    with writing(path) as file:
        file.write(CARD.format(files="\n".join(files), counts="\n".join(lines)))
