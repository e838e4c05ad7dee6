"""EFOk-CQA's JSON: for each type a file that maps its formula to its queries.

``{split}_{type}_EFOX_qaa.json`` holds ``{formula: [[grounding, easy, hard], …]}``. The grounding
maps the formula's relations and constants (r1, s1) to numbers; answers are ``{"f1_f2": [[a, b],
…]}``, under the names of the free variables. A fourth part stands behind only where the full graph
takes easy answers back (`Sample.lost`). For train all answers are easy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import count, groupby
from pathlib import Path
from typing import Any

import numpy as np

from cqa.errors import QueryError
from cqa.formats.json_lines import read_answers
from cqa.notation.trees import from_tree
from cqa.query import Atom, Constant, Query, Term, atoms, constants_of, ground, mapped
from cqa.sampling.sample import Sample
from cqa.types.efok_text import read_formula, write_formula
from cqa.types.tree import Tree
from kopl_base.errors import ReadError
from kopl_base.stream import JsonStream, TextReader, writing

_FILE = re.compile(r"(?P<split>\w+?)_(?P<type>.+)_EFOX_qaa\.json")


def check(shape: Tree | Query) -> None:
    """Raise QueryError for a type that has no EFOk formula."""
    write_formula(_type_of(shape))


def file_name(split: str, name: str) -> str:
    """The name of the file of a type."""
    return f"{split}_{name}_EFOX_qaa.json"


def write_objects(folder: Path, samples: Iterable[Sample], split: str) -> None:
    """Write queries, those of a type one after the other; trees as the query graphs they are.

    Raises QueryError for a tree that is no query graph (a negated part of several atoms).
    """
    written: set[str] = set()
    for name, group in groupby(samples, key=lambda sample: sample.type):
        if name in written:
            raise QueryError(f"the queries of {name} do not stand together; sort them by type")
        written.add(name)
        with writing(folder / file_name(split, name)) as file:
            for number, sample in enumerate(group):
                kind, numbers = places(sample.query)
                if not number:
                    formula = write_formula(kind)
                    file.write(f"{{{json.dumps(formula)}: [\n")
                file.write(",\n" if number else "")
                file.write(json.dumps(_row(sample, kind, numbers)))
            file.write("\n]}\n")


def _row(sample: Sample, kind: Query, numbers: dict[str, int]) -> list[Any]:
    free = "_".join(variable.name for variable in kind.free)
    parts = [sample.easy, sample.hard, *([sample.lost] if len(sample.lost) else [])]
    return [numbers, *({free: part.tolist()} for part in parts)]


def _type_of(shape: Tree | Query) -> Query:
    return from_tree(shape) if isinstance(shape, Tree) else shape


def places(query: Tree | Query) -> tuple[Query, dict[str, int]]:
    """The type of a grounded query, with r1, s1, … for its numbers, and those numbers.

    Each atom has a relation of its own in the type; a constant that stands in several atoms of a
    query graph is taken to be several of the type.
    """
    given = from_tree(query) if isinstance(query, Tree) else query
    kind = read_formula(write_formula(_named(given)))
    numbers: dict[str, int] = {}
    for atom, name in zip(atoms(given), atoms(kind), strict=True):
        numbers[str(name.relation)] = int(atom.relation)
        for one, other in zip(constants_of(atom), constants_of(name), strict=True):
            numbers[str(other.entity)] = int(one.entity)
    return kind, numbers


def _named(query: Query) -> Query:
    """The query with a name of its own for each relation and constant, atom by atom."""
    relations, constants = count(1), count(1)

    def end(term: Term) -> Term:
        return Constant(f"s{next(constants)}") if isinstance(term, Constant) else term

    return mapped(
        query,
        lambda a: Atom(f"r{next(relations)}", end(a.head), end(a.tail), a.positive),
    )


def read_objects(folder: Path, split: str) -> Iterator[Sample]:
    """The queries of a split's files, in the order of their types.

    Raises ReadError with file and query.
    """
    found = []
    for path in sorted(folder.glob("*_EFOX_qaa.json")):
        match = _FILE.fullmatch(path.name)
        if match is not None and match["split"] == split:
            found.append((path, match["type"]))
    if not found:
        raise ReadError(f"holds no {file_name(split, 'TYPE')}", source=str(folder))
    for path, name in found:
        yield from _read_file(path, name)


def _read_file(path: Path, name: str) -> Iterator[Sample]:
    with TextReader(path) as reader:
        stream = JsonStream(reader)
        for formula in stream.members():
            try:
                kind = read_formula(formula)
            except QueryError as error:
                raise stream.fail(f"the formula {formula}: {error}") from None
            stream.expect("[")
            number = 0
            while stream.peek() != "]":
                if number:
                    stream.expect(",")
                number += 1
                value = stream.value()
                try:
                    yield _sample(name, formula, kind, value)
                except (QueryError, TypeError, ValueError, AttributeError) as error:
                    place = f"{formula}, query {number}"
                    raise ReadError(str(error), place=place, source=str(path)) from None
            stream.expect("]")
        stream.end()


def _sample(name: str, formula: str, kind: Query, value: Any) -> Sample:
    if not isinstance(value, list) or len(value) not in (3, 4):
        raise QueryError("a list of grounding, easy and hard answers was expected")
    numbers = value[0]
    if not isinstance(numbers, dict) or not all(
        isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers.values()
    ):
        raise QueryError("the grounding must map names to numbers")
    query = ground(kind, numbers, numbers)
    width = len(kind.free)
    parts = []
    for part, what in zip(value[1:], ("easy", "hard", "lost"), strict=False):
        rows: Any = part
        if isinstance(part, dict):  # an empty list where there are no answers
            rows = next(iter(part.values()), [])
        parts.append(read_answers(rows, width, what))
    if len(parts) < 3:
        parts.append(np.empty((0, width), np.int32))
    return Sample(name, formula, query, *parts)
