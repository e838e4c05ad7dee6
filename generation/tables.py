"""Question sets as Parquet files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from generation.formats import COLUMNS, to_row
from kopl.example import Example
from kopl.traits import hops, locating, skills
from kopl_base.parquet import Written, arrow_packages, write_table

# What follows from the program, for those who look for examples in the table; not read back.
DERIVED = ("hops", "skills", "locating")


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
    """Write examples as a Parquet file, and say how many and how large."""
    return write_table(path, map(_row, examples), schema())


def _row(example: Example) -> dict[str, Any]:
    program = example.program
    traits = {"hops": hops(program), "skills": skills(program), "locating": locating(program)}
    return to_row(example) | traits
