"""EFO-1-QA's tables: types with their nine forms, and a file of queries for each type.

``formulas.csv`` has a line for each type; ``data-type0000.csv``, … the queries of one, as JSON in
each form, with their answers. Ids, columns and forms are the published ones (`to_form` with
``compat="paper"``), so that a published table of types goes with the files of queries, too. Beside
them stand ``formula_id`` in front of each query, ``lost_answers`` behind (see `Sample.lost`), and
the ``name`` under which a type's queries were made.

A published folder has no table of types: there the id tells the type, or the first query.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from cqa.errors import QueryError
from cqa.formats.json_lines import answers_of, read_answers
from cqa.sampling.sample import Sample
from cqa.types.efo1 import formula_id
from cqa.types.grounded import from_json, write_json
from cqa.types.normal import FORMS, binary, to_form
from cqa.types.registry import efo1_types
from cqa.types.tree import Tree, arrange, read_formula
from kb.arrays import Ids
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader, writing

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

_TYPE_COLUMNS = ("formula_id", *COLUMNS.values(), "num_anchor_nodes", "original_depth", "name")
_QUERY_COLUMNS = ("formula_id", "easy_answers", "hard_answers", *COLUMNS.values(), "lost_answers")


def check(tree: Tree) -> None:
    """Raise QueryError for a type whose forms cannot be written."""
    for form in COLUMNS:
        to_form(tree, form, "paper")


def check_names(names: Iterable[tuple[str, Tree]]) -> None:
    """Raise QueryError where two of some types, each with its name, are one."""
    taken: dict[str, str] = {}
    for name, tree in names:
        _take(taken, formula_id(tree), name)


def _take(names: dict[str, str], id: str, name: str) -> None:
    """Note the name of the type of an id, which must not have been there."""
    other = names.setdefault(id, name)
    if other != name:
        raise QueryError(
            f"{other} and {name} are one type, {id}, of which EFO-1-QA's tables have one file"
        )


def data_file(id: str) -> str:
    """The name of the file with the queries of a type."""
    return f"data-{id}.csv"


def is_tables(folder: Path) -> bool:
    """Whether a folder has a table of types or one of queries."""
    return (folder / TYPES).exists() or any(folder.glob(data_file("*")))


def write_tables(folder: Path, samples: Iterable[Sample]) -> None:
    """Write queries, those of a type one after the other, as EFO-1-QA's tables.

    Raises QueryError for what the tables cannot hold.
    """
    rows: list[list[object]] = []
    names: dict[str, str] = {}
    for name, group in groupby(samples, key=lambda sample: sample.type):
        if name in names.values():
            raise QueryError(f"the queries of {name} do not stand together; sort them by type")
        first = next(group)
        kind = binary(_tree(first).abstract)
        id = formula_id(kind)
        _take(names, id, name)
        rows.append(_type_row(id, kind, name))
        with writing(folder / data_file(id)) as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(_QUERY_COLUMNS)
            for sample in chain([first], group):
                table.writerow(_query_row(id, kind, sample))
    with writing(folder / TYPES) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_TYPE_COLUMNS)
        table.writerows(rows)


def _tree(sample: Sample) -> Tree:
    if not isinstance(sample.query, Tree):
        raise QueryError(f"{sample.formula}: EFO-1-QA's tables hold operator trees")
    return sample.query


def _type_row(id: str, kind: Tree, name: str) -> list[object]:
    forms = [to_form(kind, form, "paper").formula for form in COLUMNS]
    return [id, *forms, kind.anchors, kind.depth, name]


def _query_row(id: str, kind: Tree, sample: Sample) -> list[object]:
    forms = [to_form(_tree(sample), form, "paper") for form in COLUMNS]
    if forms[0].formula != kind.formula:
        raise QueryError(f"the queries of {sample.type} are of two types, {kind} and {forms[0]}")
    easy, hard, lost = map(answers_of, (sample.easy, sample.hard, sample.lost))
    return [id, easy, hard, *map(write_json, forms), lost]


def read_tables(folder: Path) -> Iterator[Sample]:
    """The queries of a folder of tables, type by type, in the form Original.

    Raises ReadError with file and line.
    """
    for id, name, kind in _types(folder):
        path = folder / data_file(id)
        for line, row in _rows(path, ("original", "easy_answers", "hard_answers")):
            try:
                sample = _sample(name, kind, row)
            except QueryError as error:
                raise ReadError(str(error), place=f"line {line}", source=str(path)) from None
            kind = kind or _tree(sample)
            yield sample


def _types(folder: Path) -> list[tuple[str, str, Tree | None]]:
    """The id, the name and the tree of each type, None for the tree where only a query tells it."""
    if not (folder / TYPES).exists():
        published = {row.id: row.tree for row in efo1_types()}
        prefix, suffix = data_file("\0").split("\0")
        files = sorted(path.name for path in folder.glob(data_file("*")))
        ids = [file[len(prefix) : -len(suffix)] for file in files]
        return [(id, id, published.get(id)) for id in ids]
    found: dict[str, tuple[str, str, Tree | None]] = {}
    for line, row in _rows(folder / TYPES, ("formula_id", "original")):
        id = row["formula_id"]
        try:
            if id in found:
                raise QueryError(f"the id {id} stands there twice")
            kind = arrange(read_formula(row["original"]))
        except QueryError as error:
            place = f"line {line}"
            raise ReadError(str(error), place=place, source=str(folder / TYPES)) from None
        found[id] = id, row.get("name") or id, kind
    return list(found.values())


def _sample(name: str, kind: Tree | None, row: dict[str, str]) -> Sample:
    tree = from_json(row["original"])
    if kind is None or tree.formula != kind.formula:
        tree = arrange(tree)
    if kind is not None and tree.formula != kind.formula:
        raise QueryError(f"a query of the type {kind} was expected, not of {tree}")
    easy, hard, lost = (
        _answers(row.get(f"{part}_answers") or "[]", part) for part in ("easy", "hard", "lost")
    )
    return Sample(name, tree.formula, tree, easy, hard, lost)


def _answers(text: str, part: str) -> Ids:
    try:
        return read_answers(json.loads(text), 1, part)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"the {part} answers are no list in JSON: {error}") from None


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
