"""Reading question sets: files of any form, folders, and names of a hub, behind one function."""

from __future__ import annotations

import csv
import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from generation import hub
from kopl.errors import ProgramError
from kopl.example import FIELDS, OLD_NAMES, Example, read_example, read_objects
from kopl.text import read, to_json
from kopl_base.errors import ReadError
from kopl_base.parquet import read_table
from kopl_base.stream import COMPRESSED, TextReader
from kopl_base.tables import unescaped

log = logging.getLogger("kb")

# The parts of a question set, in the order in which they are read, with the names they go by.
PARTS = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}
PART_OF = {name: part for part, names in PARTS.items() for name in names}

# Few sets have questions with several answers or with an answer form: no columns of their own.
FORMS = ("answers", "answer_form")
COLUMNS = (*(name for name in FIELDS if name not in FORMS), "extra")

# The place of an example, and the example or why it cannot be read.
Item = tuple[str, Example | ReadError]

_PART_FILE = re.compile(rf"({'|'.join(PART_OF)})(?:-\d+-of-\d+)?(?:\.\w+)*")


def open_examples(source: Path | str) -> Iterator[Example]:
    """The examples of a file, of all parts of a folder, or of a data set by its name, one by one.

    Files are JSON lines, KQA Pro's lists, CSV and Parquet, as their names end. A name such as
    "owner/name" is asked of the package datasets, and so is a folder that has no parts by our names
    (`generation.hub`). Raises ReadError with file and place for what is malformed or not there.
    """
    for _, item in examples_or_errors(source):
        if isinstance(item, ReadError):
            raise item
        yield item


def examples_or_errors(source: Path | str) -> Iterator[Item]:
    """(place, example) for each example; in place of one that cannot be read comes its error."""
    parts = parts_or_errors(source)
    for place, items in parts.items():
        for within, item in items:
            yield (f"{place}, {within}" if place else within), item


def open_parts(source: Path | str) -> dict[str, Iterator[Example]]:
    """The examples of each part of a folder or name, by the part's name; of a file, by its own."""
    parts: dict[str, list[Iterator[Item]]] = {}
    for place, items in parts_or_errors(source).items():
        parts.setdefault(part_of(place) if place else Path(source).name, []).append(items)
    return {part: _all(files) for part, files in parts.items()}


def part_of(name: str) -> str:
    """The part that the name of a file or of a split says, else the name itself."""
    match = _PART_FILE.fullmatch(Path(name).name)
    return PART_OF[match[1]] if match else name


def parts_or_errors(source: Path | str) -> dict[str, Iterator[Item]]:
    """What `examples_or_errors` gives, by file or split; under "" where the source is one file."""
    path = Path(source)
    if not path.exists():
        if hub.is_name(str(source)):
            return _rows_of(hub.load(str(source)), str(source))
        raise ReadError("there is no such file or folder", source=str(source))
    if not path.is_dir():
        return {"": _of_file(path)}
    if (parts := parts_of(path)) is None:
        return _rows_of(hub.load_folder(path), str(path))
    files = [file for own in parts.values() for file in _with_programs(own)]
    return {str(file.relative_to(path)): _of_file(file) for file in files}


def _rows_of(
    splits: Mapping[str, Iterable[dict[str, Any]]], name: str
) -> dict[str, Iterator[Item]]:
    """The rows of splits as `parts_or_errors` gives them; those without programs are left out."""
    found = {}
    for split, rows in sorted(splits.items(), key=lambda item: _place(item[0])):
        first = next(iter(rows), None)
        if first is not None and first.get("program") is None and has_question(first):
            log.warning("%s: %s: left out: its questions have no programs", name, split)
        else:
            items = ((f"row {n}", _from_any_row(row)) for n, row in enumerate(rows))
            found[split] = _examples(items, f"{name}: {split}")
    return found


def _place(split: str) -> tuple[int, str]:
    """Splits come in the order of `PARTS`, others after them."""
    part = PART_OF.get(split, "")
    return ([*PARTS, ""].index(part), split)


def _all(files: Iterable[Iterator[Item]]) -> Iterator[Example]:
    for items in files:
        for _, item in items:
            if isinstance(item, ReadError):
                raise item
            yield item


def parts_of(folder: Path) -> dict[str, list[Path]] | None:
    """The files of each part of a question set in a folder (or in its folder ``data``).

    None when it has none; raises ReadError for one part in several forms.
    """
    found: dict[str, list[Path]] = {}
    for place in (folder, folder / "data"):
        for file in sorted(place.iterdir()) if place.is_dir() else ():
            match = _PART_FILE.fullmatch(file.name)
            if match and form_of(file) and file.is_file():
                found.setdefault(PART_OF[match[1]], []).append(file)
    if not found:
        return None
    for part, files in found.items():
        if len(files) > 1 and any(not file.name.endswith(".parquet") for file in files):
            names = ", ".join(file.name for file in files)
            raise ReadError(f"several files are the part {part}: {names}", source=str(folder))
    return {part: found[part] for part in PARTS if part in found}


def form_of(path: Path) -> str:
    """How a file's name says that it is read: json, csv, parquet, or "" for none of these."""
    suffixes = [end for end in path.suffixes if end not in COMPRESSED]
    ending = suffixes[-1].lower() if suffixes else ""
    if ending in (".jsonl", ".json"):
        return "json"
    return ending[1:] if ending in (".csv", ".parquet") else ""


def _of_file(path: Path) -> Iterator[Item]:
    if form_of(path) == "parquet":
        items = _parquet_rows(path)
    elif form_of(path) == "csv":
        items = _csv_rows(path)
    else:
        items = read_objects(path)
    yield from _examples(items, str(path))


def _examples(items: Iterable[tuple[str, Any]], source: str) -> Iterator[Item]:
    for place, item in items:
        try:
            yield place, read_example(item, place, source)
        except ReadError as error:
            yield place, error


def _with_programs(files: Iterable[Path]) -> list[Path]:
    """The files but those whose first question has no program, as KQA Pro's test.json."""
    kept = []
    for file in files:
        first = next(read_objects(file), ("", None))[1] if form_of(file) == "json" else None
        if isinstance(first, dict) and "program" not in first and has_question(first):
            log.warning("%s: left out: its questions have no programs", file)
        else:
            kept.append(file)
    return kept


def has_question(item: Mapping[str, Any]) -> bool:
    """Whether an object has a question, by whichever name KQA Pro gave it."""
    return any(name in item for name in ("question", *OLD_NAMES))


# --- rows of tables ----------------------------------------------------------------------------


def to_row(example: Example) -> dict[str, Any]:
    """A table's row with every column: extra fields are one JSON text, so that none is lost."""
    item = replace(example, extra={}).to_json()
    row: dict[str, Any] = {key: item.get(key) for key in COLUMNS}
    row["choices"] = list(example.choices)
    rest = {key: item[key] for key in FORMS if key in item} | dict(example.extra)
    return row | {"extra": json.dumps(rest, ensure_ascii=False) if rest else None}


def from_row(row: dict[str, Any]) -> Any:
    """The object of a line from a table's row: what is empty is left out, extra is opened.

    An extra that is not JSON gives a ReadError in its place.
    """
    item = {key: row[key] for key in COLUMNS[:-1] if row.get(key) is not None}
    if isinstance(calls := item.get("program"), dict):  # as some tools hold lists of structures
        try:
            item["program"] = [
                dict(zip(calls, call, strict=True)) for call in zip(*calls.values(), strict=True)
            ]
        except (ValueError, TypeError):
            return ReadError("program: its columns are not lists of equal length")
    if text := row.get("extra"):
        try:
            extra = dict(json.loads(text))
        except (ValueError, TypeError, RecursionError):
            return ReadError("the column 'extra' is not a JSON object")
        item |= {key: value for key, value in extra.items() if key not in COLUMNS[:-1]}
        if "\\u" in text and not _is_text(extra):
            return ReadError("the column 'extra' is not UTF-8 text")
    return item


def _from_any_row(row: dict[str, Any]) -> Any:
    """The same for a row with columns of other tools: they are extra, where JSON can hold them."""
    item = from_row(row)
    if isinstance(item, ReadError) or "extra" in row:
        return item
    return item | {key: v for key, v in row.items() if key not in COLUMNS[:-1] and _is_json(v)}


def _is_json(item: Any) -> bool:
    """Whether there is a value, and JSON can hold it."""
    try:
        return item is not None and _is_text(item)
    except (TypeError, ValueError):
        return False


def _is_text(item: Any) -> bool:
    """Whether all texts in a JSON value can be written; half of a character cannot."""
    try:
        json.dumps(item, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _parquet_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """(place, object) for each row; raises ReadError for a damaged file."""
    for number, row in enumerate(read_table(path, COLUMNS, {"question", "program"})):
        yield f"row {number}", from_row(row)


def _csv_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """(place, object) for each row; programs are in any spelling, choices a JSON list."""
    csv.field_size_limit(sys.maxsize)
    with TextReader(path) as reader:
        table = csv.DictReader(_lines(reader), strict=True)
        try:
            missing = {"question", "program"} - set(table.fieldnames or ())
            if missing:
                raise ReadError(
                    f"no column {' and no column '.join(sorted(missing))} in the first line",
                    source=str(path),
                )
            for row in table:
                yield f"line {table.line_num}", _csv_item(row)
        except csv.Error as error:
            place = f"line {table.reader.line_num}"
            raise ReadError(f"not CSV: {error}", place=place, source=str(path)) from None


def _lines(reader: TextReader) -> Iterator[str]:
    """The lines of a file with their ends, as cells may hold such."""
    rest = ""
    while piece := reader.read():
        *lines, rest = re.split("(?<=\n)", rest + piece)
        yield from lines
    if rest:
        yield rest


def _csv_item(row: dict[str, Any]) -> Any:
    if None in row or None in row.values():
        return ReadError("the row has more or fewer cells than the first line")
    # An empty cell is no text, but a question may be empty.
    row = {
        key: unescaped(cell) for key, cell in row.items() if cell or key in ("question", "program")
    }
    escapes = any("\\u" in cell for cell in row.values())
    try:
        row["program"] = json_of(row["program"])
        if "choices" in row:
            row["choices"] = json.loads(row["choices"])
    except ProgramError as error:
        return ReadError(f"program: {error}")
    except (ValueError, RecursionError):
        return ReadError("the cell 'choices' is not a JSON list")
    if escapes and not _is_text(row):
        return ReadError("the row is not UTF-8 text")
    return from_row(row)


def json_of(program: str) -> list[dict[str, Any]]:
    """The program of any spelling as its JSON list; raises ProgramError."""
    return to_json(read(program))
