"""Question sets as Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from generation.conversion import to_row
from generation.formats import COLUMNS, from_row
from kopl.example import Example
from kopl.traits import hops, locating, skills
from kopl_base.errors import ReadError
from kopl_base.packages import arrow_packages
from kopl_base.progress import ProgressBar
from kopl_base.stream import writing

BATCH = 1000  # rows held at a time

# What follows from the program, for those who look for examples in the table; not read back.
DERIVED = ("hops", "skills", "locating")


class Written(NamedTuple):
    """How many rows were written, and how many bytes they take in memory, as Arrow holds them."""

    rows: int
    bytes: int


def schema() -> Any:
    """The columns of a set as a schema of pyarrow; raises KoplError without the package."""
    arrow, _ = arrow_packages()
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


def write_parquet(path: Path | str, examples: Iterable[Example]) -> Written:
    """Write examples as a Parquet file, a thousand at a time, and say how many."""
    arrow, parquet = arrow_packages()
    columns = schema()
    count = size = 0
    rows = map(_row, examples)
    with writing(path, binary=True) as file, parquet.ParquetWriter(file, columns) as writer:
        while batch := list(islice(rows, BATCH)):
            table = arrow.Table.from_pylist(batch, schema=columns)
            writer.write_table(table)
            count += len(batch)
            size += table.nbytes
    return Written(count, size)


def _row(example: Example) -> dict[str, Any]:
    program = example.program
    traits = {"hops": hops(program), "skills": skills(program), "locating": locating(program)}
    return to_row(example) | traits


def rows(path: Path) -> Iterator[tuple[str, Any]]:
    """(place, object) for each row of a Parquet file; raises ReadError for a damaged file."""
    arrow, parquet = arrow_packages()
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
