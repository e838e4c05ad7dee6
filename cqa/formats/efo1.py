"""EFO-1-QA's tables: types with their nine forms, and a file of queries for each type.

``formulas.csv`` has a line for each type; ``data-type0000.csv``, … the queries of one, as JSON in
each form, with their answers. The names of files and columns are the published ones, with
``formula_id`` in front of each query, and ``lost_answers`` behind (see `Sample.lost`).
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from cqa.errors import QueryError
from cqa.formats.json_lines import answers_of, read_answers
from cqa.sampling.sample import Sample
from cqa.types.grounded import from_json, write_json
from cqa.types.normal import FORMS, binary, to_form
from cqa.types.tree import Tree, read_formula
from kb.errors import ReadError
from kb.stream import TextReader, writing

TYPES = "formulas.csv"

# The published column of each form.
COLUMNS = {
    "Original": "original",
    "DM": "DeMorgan",
    "DM+I": "DeMorgan+MultiI",
    "DNF": "DNF",
    "Original+d": "diff",
    "DNF+d": "DNF+diff",
    "DNF+IU": "DNF+MultiIU",
    "DNF+IUd": "DNF+MultiIUd",
    "DNF+IUD": "DNF+MultiIUD",
}
assert COLUMNS.keys() == FORMS.keys()

_TYPE_COLUMNS = ("formula_id", *COLUMNS.values(), "num_anchor_nodes", "original_depth")
_QUERY_COLUMNS = ("formula_id", "easy_answers", "hard_answers", *COLUMNS.values(), "lost_answers")


def check(tree: Tree) -> None:
    """Raise QueryError for a type whose forms cannot be written."""
    for form in COLUMNS:
        to_form(tree, form)


def write_tables(folder: Path, samples: Iterable[Sample]) -> None:
    """Write queries, those of a type one after the other, as EFO-1-QA's tables."""
    rows: list[list[object]] = []
    for name, group in groupby(samples, key=lambda sample: sample.type):
        if any(row[0] == name for row in rows):
            raise QueryError(f"the queries of {name} do not stand together; sort them by type")
        with writing(folder / f"data-{name}.csv") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(_QUERY_COLUMNS)
            for number, sample in enumerate(group):
                tree = sample.query
                if not isinstance(tree, Tree):
                    raise QueryError(f"{sample.formula}: EFO-1-QA's tables hold operator trees")
                if not number:
                    rows.append(_type_row(name, tree.abstract))
                forms = [write_json(to_form(tree, form)) for form in COLUMNS]
                easy, hard, lost = map(answers_of, (sample.easy, sample.hard, sample.lost))
                table.writerow([name, easy, hard, *forms, lost])
    with writing(folder / TYPES) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_TYPE_COLUMNS)
        table.writerows(rows)


def _type_row(name: str, tree: Tree) -> list[object]:
    original = binary(tree)
    forms = [to_form(tree, form).formula for form in COLUMNS]
    return [name, *forms, original.anchors, original.depth]


def read_tables(folder: Path) -> Iterator[Sample]:
    """The queries of a folder of tables, type by type, in the form Original.

    Raises ReadError with file and line.
    """
    types = {}
    for line, row in _rows(folder / TYPES, ("formula_id", "original")):
        try:
            types[row["formula_id"]] = read_formula(row["original"])
        except QueryError as error:
            place = f"line {line}"
            raise ReadError(str(error), place=place, source=str(folder / TYPES)) from None
    for name, kind in types.items():
        path = folder / f"data-{name}.csv"
        for line, row in _rows(path, ("original", "easy_answers", "hard_answers")):
            try:
                yield _sample(name, kind, row)
            except (QueryError, ValueError) as error:
                raise ReadError(str(error), place=f"line {line}", source=str(path)) from None


def _sample(name: str, kind: Tree, row: dict[str, str]) -> Sample:
    tree = from_json(row["original"])
    if tree.formula != kind.formula:
        raise QueryError(f"a query of the type {kind} was expected, not of {tree}")
    easy, hard, lost = (
        read_answers(json.loads(row.get(f"{part}_answers") or "[]"), 1, part)
        for part in ("easy", "hard", "lost")
    )
    return Sample(name, kind.formula, tree, easy, hard, lost)


def _rows(path: Path, needed: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a table by column, with their numbers."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # answers may be long
    with TextReader(path) as reader:
        table: csv.DictReader[Any] = csv.DictReader(f"{line}\n" for line in reader.lines())
        try:
            missing = [name for name in needed if name not in (table.fieldnames or ())]
            if missing:
                raise ReadError(f"the column {missing[0]} is missing", source=str(path))
            for row in table:
                if None in row or None in row.values():
                    place = f"line {table.line_num}"
                    raise ReadError(
                        "the line has more or fewer fields than the first", place=place,
                        source=str(path),
                    )  # fmt: skip
                yield table.line_num, row
        except csv.Error as error:
            place = f"line {table.line_num}"
            raise ReadError(str(error), place=place, source=str(path)) from None
