"""Tables as Parquet files, and the data card of a folder of them, as Hugging Face's hub has both.

The card's header (YAML) tells the package datasets the files of each split, the columns and sizes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kopl_base.errors import KoplError, ReadError
from kopl_base.packages import needs
from kopl_base.progress import Progress
from kopl_base.stream import writing

BATCH = 1000  # rows held at a time

# The hub's classes of size, by the first number that is too many for them.
_SIZES = {
    1_000: "n<1K",
    10_000: "1K<n<10K",
    100_000: "10K<n<100K",
    1_000_000: "100K<n<1M",
    10_000_000: "1M<n<10M",
    100_000_000: "10M<n<100M",
    1_000_000_000: "100M<n<1B",
}
_LARGEST = "1B<n<10B"


class Written(NamedTuple):
    """How many rows a file has, their bytes in memory, as Arrow holds them, and those of it."""

    rows: int
    bytes: int
    file_bytes: int


def arrow_packages() -> tuple[Any, Any]:
    """pyarrow and its module for Parquet; raises KoplError without them."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise KoplError(needs("Parquet files", "pyarrow", extra="parquet")) from None


def split_file(split: str) -> str:
    """The file of a split within a folder, as the hub names it."""
    return f"data/{split}-00000-of-00001.parquet"


def write_table(path: Path | str, rows: Iterable[Mapping[str, Any]], schema: Any) -> Written:
    """Write rows as a Parquet file, a thousand at a time; ``schema`` is one of pyarrow."""
    arrow, parquet = arrow_packages()
    count = size = 0
    given = iter(rows)
    with writing(path, binary=True) as file, parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(given, BATCH)):
            table = arrow.Table.from_pylist(batch, schema=schema)
            writer.write_table(table)
            count += len(batch)
            size += table.nbytes
    return Written(count, size, Path(path).stat().st_size)


def read_table(
    path: Path, columns: Iterable[str] | None = None, needed: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, with those of the columns that it has (all by default).

    Raises ReadError for a damaged file and for one without a column that is needed.
    """
    arrow, parquet = arrow_packages()
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if missing := set(needed) - set(names):
                raise ReadError(f"no column {' and '.join(sorted(missing))}", source=str(path))
            wanted = None if columns is None else [name for name in columns if name in names]
            with Progress(f"reading {path.name}", file.metadata.num_rows) as bar:
                for batch in file.iter_batches(BATCH, columns=wanted):
                    yield from batch.to_pylist()
                    bar.advance(batch.num_rows)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"cannot be read as Parquet: {error}", source=str(path)) from None


# --- data cards ---------------------------------------------------------------------------------


def size_class(count: int) -> str:
    """The hub's name for sets of about so many examples."""
    return next((name for bound, name in _SIZES.items() if count < bound), _LARGEST)


def header(
    splits: Iterable[str], rows: int, *, licence: str | None = None, **lists: Sequence[str]
) -> list[str]:
    """The lines of a card's header, for splits with so many rows in all.

    ``lists`` are more of its fields, as in ``language=["en"]``. ``licence`` is a name that the hub
    knows, such as "cc-by-4.0"; without it none is stated.
    """
    lines = [] if licence is None else [f"license: {json.dumps(licence)}"]
    for name, items in {**lists, "size_categories": [size_class(rows)]}.items():
        lines += [f"{name}:", *(f"- {item}" for item in items)]
    lines += ["configs:", "- config_name: default", "  data_files:"]
    for split in splits:
        lines += [f"  - split: {split}", f"    path: data/{split}-*.parquet"]
    return lines


def dataset_info(splits: Mapping[str, Written], schema: Any) -> list[str]:
    """The lines of a header that tell the columns and sizes of splits beforehand."""
    lines = ["dataset_info:", "  features:", *_features(schema, "  "), "  splits:"]
    for name, split in splits.items():
        lines += [
            f"  - name: {name}",
            f"    num_bytes: {split.bytes}",
            f"    num_examples: {split.rows}",
        ]
    lines.append(f"  download_size: {sum(split.file_bytes for split in splits.values())}")
    lines.append(f"  dataset_size: {sum(split.bytes for split in splits.values())}")
    return lines


def _features(fields: Iterable[Any], margin: str) -> Iterator[str]:
    """The columns of a schema, or the fields of a structure, as the header writes them."""
    for field in fields:
        yield f"{margin}- name: {field.name}"
        kind = field.type
        if hasattr(kind, "value_type"):
            inner = kind.value_type
            if inner.num_fields:
                yield f"{margin}  list:"
                yield from _features(map(inner.field, range(inner.num_fields)), f"{margin}  ")
            else:
                yield f"{margin}  list: {inner}"
        else:
            yield f"{margin}  dtype: {kind}"
