"""Files of triples as arrays: numbers in columns, names in columns, and lists of names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kb.arrays import Ids
from kopl_base.errors import KoplError, ReadError
from kopl_base.progress import Progress
from kopl_base.stream import CHUNK, TextReader, read_text

LARGEST = (1 << 31) - 2  # entities are 32-bit numbers
# Without lists of names there are as many entities as the largest number says, which costs memory
# for each: numbers up to this, or so many times the triples, are taken for what they say.
SURELY, SPARSE = 10_000_000, 100

_COUNT = re.compile("[0-9]{1,18}")

Columns: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[Any]


def read_numbers(path: Path, columns: int, *, optional: int = 0, skip: int = 0) -> Columns:
    """The lines of a file as rows of ``columns`` numbers, an (n, columns) array.

    Lines may have up to ``optional`` numbers more, which are left out; ``skip`` lines at the
    beginning are passed over, and blank ones everywhere. Raises ReadError with file and line.
    """
    # Without groups inside the repetition, and a block at a time, this takes little memory.
    more = rf"(?:[ \t]+\d{{1,10}}){{0,{optional}}}" if optional else ""
    form = rf"[ \t]*\d{{1,10}}(?:[ \t]+\d{{1,10}}){{{columns - 1}}}{more}[ \t]*\r?\n|[ \t]*\r?\n"
    lines = re.compile(f"(?:{form})*".encode())
    parts: list[Columns] = []
    line = 1 + skip
    try:
        with (
            path.open("rb") as file,
            Progress(f"reading {path.name}", path.stat().st_size) as bar,
        ):
            for _ in range(skip):
                file.readline()
            rest = b""
            while block := file.read(CHUNK):
                bar.advance(len(block))
                cut = block.rfind(b"\n") + 1
                text, rest = (rest + block[:cut], block[cut:]) if cut else (b"", rest + block)
                if text:
                    parts.append(_numbers(text, lines, columns, optional, line, path))
                    line += text.count(b"\n")
            if rest:
                parts.append(_numbers(rest + b"\n", lines, columns, optional, line, path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ReadError(f"cannot be opened: {reason}", source=str(path)) from error
    return np.concatenate(parts) if parts else np.empty((0, columns), np.int64)


def _numbers(
    text: bytes, lines: re.Pattern[bytes], columns: int, optional: int, line: int, path: Path
) -> Columns:
    """The rows of a piece of text that ends with a line."""
    match = lines.match(text)
    end = match.end() if match is not None else 0
    if end < len(text):
        found = text[end:].split(b"\n", 1)[0].decode("utf-8", "replace").strip("\r")
        raise ReadError(
            f"{columns} numbers were expected, separated by tabs or blanks, not {found[:60]!r};"
            " they are whole, from 0 on",
            place=f"line {line + text[:end].count(bytes([10]))}",
            source=str(path),
        )
    if optional:
        rows = [row.split()[:columns] for row in text.splitlines() if row.strip()]
        numbers = np.array(rows, np.int64).reshape(-1, columns)
    else:
        numbers = np.fromstring(text, np.int64, sep=" ").reshape(-1, columns)
    if len(numbers) and int(numbers.max()) > LARGEST:
        at = int(np.flatnonzero((numbers > LARGEST).any(axis=1))[0])
        raise ReadError(
            f"a number is larger than {LARGEST}",
            place=f"line {line + _line_of(text, at)}",
            source=str(path),
        )
    return numbers


def _line_of(text: bytes, row: int) -> int:
    """The number of the line, from 0, that holds a row; blank lines are no rows."""
    filled = [n for n, line in enumerate(text.splitlines()) if line.strip()]
    return filled[row]


def line_of_row(path: Path, row: int, skip: int = 0) -> int:
    """The number of the line, from 1, that holds a row of `read_numbers`; for messages."""
    data = path.read_bytes()
    lines = data.split(b"\n")[skip:]
    return 1 + skip + [n for n, line in enumerate(lines) if line.strip()][row]


def read_named(path: Path, entities: dict[str, int], relations: dict[str, int]) -> Ids:
    """The triples of a file of three names a line, separated by tabs, an (n, 3) array.

    New names get the next number. Raises ReadError with file and line.
    """
    rows: list[int] = []
    with TextReader(path) as reader:
        for number, line in enumerate(reader.lines(), 1):
            if not line.strip():
                continue
            fields = line.split("\t")
            if len(fields) != 3 or not all(field.strip() for field in fields):
                raise ReadError(
                    "three names were expected, separated by tabs (head, relation, tail), not"
                    f" {line[:60]!r}",
                    place=f"line {number}",
                    source=str(path),
                )
            head, relation, tail = fields
            rows.append(entities.setdefault(head, len(entities)))
            rows.append(relations.setdefault(relation, len(relations)))
            rows.append(entities.setdefault(tail, len(entities)))
    return np.array(rows, np.int32).reshape(-1, 3)


def read_name_list(path: Path, *, counted: bool = False) -> list[str]:
    """The names of a file of lines "name, tab, number"; ``counted``: below a line with the count.

    Raises ReadError with file and line, also when numbers are missing or stand twice.
    """
    found: dict[int, str] = {}
    announced: int | None = None
    with TextReader(path) as reader:
        for at, line in enumerate(reader.lines(), 1):
            if not line.strip():
                continue
            if counted and announced is None:
                if not _COUNT.fullmatch(line.strip()):
                    raise _wrong(path, at, f"the number of names was expected, not {line[:60]!r}")
                announced = int(line)
                continue
            name, tab, number = line.rpartition("\t")
            if not tab and counted:
                name, tab, number = line.rpartition(" ")
            if not tab or not _COUNT.fullmatch(number.strip()):
                raise _wrong(path, at, f"a name, a tab and a number were expected: {line[:60]!r}")
            if int(number) in found:
                raise _wrong(path, at, f"the number {int(number)} has a name already")
            found[int(number)] = name
    if announced is not None and announced != len(found):
        raise ReadError(
            f"has {len(found)} names, not {announced} as its first line says", source=str(path)
        )
    return dense(found, path)


def read_name_object(path: Path) -> list[str]:
    """The names of a JSON object {"number": "name"}; raises ReadError for anything else."""
    try:
        document: Any = json.loads(read_text(path))
    except ValueError as error:
        raise ReadError(f"not JSON: {error}", source=str(path)) from None
    if not isinstance(document, dict):
        raise ReadError('an object {"number": "name"} was expected', source=str(path))
    found: dict[int, str] = {}
    for number, name in document.items():
        if not _COUNT.fullmatch(number) or not isinstance(name, str):
            raise ReadError(
                "a number as key and a name as value were expected",
                place=repr(number[:60]),
                source=str(path),
            )
        found[int(number)] = name
    return dense(found, path)


def dense(found: dict[int, str], path: Path) -> list[str]:
    """The names in the order of their numbers, which must be 0, 1, 2, …"""
    for number in range(len(found)):
        if number not in found:
            raise ReadError(f"the number {number} has no name", source=str(path))
    return [found[number] for number in range(len(found))]


def check_below(
    path: Path, rows: Columns, column: int, bound: int, what: str, skip: int = 0
) -> None:
    """Raise ReadError, with the line, when a column has a number that is not below the bound."""
    over = np.flatnonzero(rows[:, column] >= bound)
    if len(over):
        at = int(over[0])
        raise ReadError(
            f"there is no {what} {int(rows[at, column])}; the list of names ends at {bound - 1}",
            place=f"line {line_of_row(path, at, skip)}",
            source=str(path),
        )


def check_dense(path: Path, rows: Columns, column: int, what: str, skip: int = 0) -> None:
    """Raise ReadError, with the line, for a number that hardly numbers what the triples hold."""
    most = max(SURELY, SPARSE * len(rows))
    over = np.flatnonzero(rows[:, column] > most)
    if len(over):
        at = int(over[0])
        raise ReadError(
            f"the {what} {int(rows[at, column])} is far beyond what {len(rows)} triples need; is"
            " the number right? (A list of names says how many there are.)",
            place=f"line {line_of_row(path, at, skip)}",
            source=str(path),
        )


def _wrong(path: Path, line: int, message: str) -> ReadError:
    return ReadError(message, place=f"line {line}", source=str(path))


def at_least_one(parts: Sequence[Rows], source: Path) -> None:
    """Raise KoplError when there is no triple at all."""
    if not any(len(part) for part in parts):
        raise KoplError(f"{source}: holds no triples")
