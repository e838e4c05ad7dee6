"""Question sets as files: reading any form behind one function, and converting between them."""

from __future__ import annotations

import csv
import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from kb.errors import KoplError, ReadError
from kb.stream import TextReader, writing
from kopl.errors import ProgramError
from kopl.example import FIELDS, Example, read_example, read_objects, write_examples
from kopl.text import read, to_json, write_nested

log = logging.getLogger("kb")

FORMATS = ("jsonl", "kqapro", "parquet", "csv")

# The parts of a question set, in the order in which they are read, with the names they go by.
PARTS = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}
PART_OF = {name: part for part, names in PARTS.items() for name in names}
# What the published files and those of the package datasets call the second part.
KQAPRO_NAMES = {"valid": "val"}
HUB_NAMES = {"valid": "validation"}

COLUMNS = (*FIELDS, "extra")

_COMPRESSED = (".gz", ".bz2", ".xz")
_PART_FILE = re.compile(rf"({'|'.join(PART_OF)})(?:-\d+-of-\d+)?(?:\.\w+)+")
_ON_A_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")

DOWNLOAD = (
    "KQA Pro is read from files: download train.json, val.json, test.json and kb.json of KQA Pro,"
    " put them into one folder and give the path of the folder or of a file in it"
)


def open_examples(source: Path | str) -> Iterator[Example]:
    """The examples of a file or of all parts of a folder, one by one.

    Files are JSON lines, KQA Pro's lists, CSV and Parquet, as their names end; a name such as
    "owner/name" is asked of the package datasets. Raises ReadError with file and place for what is
    malformed, and KoplError for what is not there.
    """
    for _, item in examples_or_errors(source):
        if isinstance(item, ReadError):
            raise item
        yield item


def examples_or_errors(source: Path | str) -> Iterator[tuple[str, Example | ReadError]]:
    """(place, example) for each example; in place of one that cannot be read comes its error."""
    path = Path(source)
    if not path.exists():
        if _is_on_a_hub(str(source)):
            yield from _from_hub(str(source))
            return
        raise ReadError("there is no such file or folder", source=str(source))
    if not path.is_dir():
        yield from _of_file(path)
        return
    for files in parts_of(path).values():
        for file in _with_programs(files):
            for place, item in _of_file(file):
                yield f"{file.relative_to(path)}, {place}", item


def open_parts(source: Path | str) -> dict[str, Iterator[Example]]:
    """The examples of each part of a folder, by the part's name; of a file, under its own name."""
    path = Path(source)
    if not path.is_dir():
        return {path.name: open_examples(source)}
    files = {part: _with_programs(own) for part, own in parts_of(path).items()}
    return {part: _all(own) for part, own in files.items() if own}


def parts_of(folder: Path) -> dict[str, list[Path]]:
    """The files of each part of a question set in a folder (or in its folder ``data``).

    Raises ReadError when it has none, or one part in several forms.
    """
    found: dict[str, list[Path]] = {}
    for place in (folder, folder / "data"):
        for file in sorted(place.iterdir()) if place.is_dir() else ():
            match = _PART_FILE.fullmatch(file.name)
            if match and form_of(file) and file.is_file():
                found.setdefault(PART_OF[match[1]], []).append(file)
    if not found:
        raise ReadError(
            "the folder has no question set: train, valid or test as .jsonl, .json, .csv or"
            " .parquet",
            source=str(folder),
        )
    for part, files in found.items():
        if len(files) > 1 and any(not file.name.endswith(".parquet") for file in files):
            names = ", ".join(file.name for file in files)
            raise ReadError(f"several files are the part {part}: {names}", source=str(folder))
    return {part: found[part] for part in PARTS if part in found}


def form_of(path: Path) -> str:
    """How a file's name says that it is read: json, csv, parquet, or "" for none of these."""
    suffixes = [end for end in path.suffixes if end not in _COMPRESSED]
    ending = suffixes[-1].lower() if suffixes else ""
    if ending in (".jsonl", ".json"):
        return "json"
    return ending[1:] if ending in (".csv", ".parquet") else ""


def _of_file(path: Path) -> Iterator[tuple[str, Example | ReadError]]:
    if form_of(path) == "parquet":
        from generation.tables import rows

        items = rows(path)
    elif form_of(path) == "csv":
        items = _csv_rows(path)
    else:
        items = read_objects(path)
    for place, item in items:
        try:
            yield place, read_example(item, place, str(path))
        except ReadError as error:
            yield place, error


def _with_programs(files: Iterable[Path]) -> list[Path]:
    """The files but those whose first question has no program, as KQA Pro's test.json."""
    kept = []
    for file in files:
        first = next(read_objects(file), ("", None))[1] if form_of(file) == "json" else None
        if isinstance(first, dict) and "question" in first and "program" not in first:
            log.warning("%s: left out: its questions have no programs", file)
        else:
            kept.append(file)
    return kept


# --- from elsewhere ----------------------------------------------------------------------------


def _is_on_a_hub(name: str) -> bool:
    """Whether a name may be one of a hub: of the form owner/name, with no such folder here."""
    return (
        bool(_ON_A_HUB.fullmatch(name))
        and not form_of(Path(name))
        and not (Path(name).parent.exists())
    )


def _from_hub(name: str) -> Iterator[tuple[str, Example | ReadError]]:
    """The examples of a data set that the package datasets finds, in its cache or on its hub."""
    try:
        datasets: Any = import_module("datasets")
    except ImportError:
        raise ReadError(
            f"there is no such file, and the package datasets, which reads such names, is not"
            f" installed (pip install 'kopl-toolkit[train]'). {DOWNLOAD}",
            source=name,
        ) from None
    try:
        found = datasets.load_dataset(name)
    except Exception as error:  # whatever the package, the network or the hub may raise
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ReadError(f"cannot be reached ({reason}). {DOWNLOAD}", source=name) from None
    for split, rows in found.items():
        for number, row in enumerate(rows):
            place = f"{split}, row {number}"
            try:
                yield place, read_example(from_row(row), place, name)
            except ReadError as error:
                yield place, error


# --- rows of tables ----------------------------------------------------------------------------


def from_row(row: dict[str, Any]) -> Any:
    """The object of a line from a table's row: what is empty is left out, extra is opened.

    An extra that is not JSON gives a ReadError in its place.
    """
    item = {key: row[key] for key in FIELDS if row.get(key) is not None}
    if isinstance(calls := item.get("program"), dict):  # as some tools hold lists of structures
        item["program"] = [
            dict(zip(calls, call, strict=True)) for call in zip(*calls.values(), strict=True)
        ]
    if text := row.get("extra"):
        try:
            extra = dict(json.loads(text))
        except (ValueError, TypeError, RecursionError):
            return ReadError("the column 'extra' is not a JSON object")
        item |= {key: value for key, value in extra.items() if key not in FIELDS}
        if "\\u" in text and not _is_text(extra):
            return ReadError("the column 'extra' is not UTF-8 text")
    return item


def _is_text(item: Any) -> bool:
    """Whether all texts in a JSON value can be written; half of a character cannot."""
    try:
        json.dumps(item, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


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
    row = {key: cell for key, cell in row.items() if cell or key in ("question", "program")}
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


# --- writing -----------------------------------------------------------------------------------


def convert(source: Path | str, target: Path | str, to: str, *, with_answers: bool = False) -> int:
    """Write a question set in another form and say how many examples it has.

    A folder becomes a folder with the same parts, a file a file; Parquet is a folder always. KQA
    Pro's test.json is written without answers, programs and queries unless ``with_answers``.
    Raises KoplError for what cannot be read or written.
    """
    source, target = Path(source), Path(target)
    if to not in FORMATS:
        raise KoplError(f"there is no form {to!r}; give one of {', '.join(FORMATS)}")
    if not source.is_dir() and to != "parquet":
        _refuse_folder(target)
        return write_file(target, open_examples(source), to)
    if source.is_dir():
        parts = parts_of(source)
    else:
        parts = {_part_of(source): [source]}
    if target.exists() and not target.is_dir():
        raise KoplError(f"{target}: is a file; {to} of several parts needs a folder")
    count = {
        part: _write_part(target, part, _all(files), to, with_answers)
        for part, files in parts.items()
    }
    if to == "parquet":
        from generation.tables import write_card

        write_card(target / "README.md", count)
    return sum(count.values())


def _refuse_folder(target: Path) -> None:
    if target.is_dir():
        raise KoplError(f"{target}: is a folder; one file becomes one file, name it")


def _part_of(path: Path) -> str:
    """The part that a file's name says, else train."""
    match = _PART_FILE.fullmatch(path.name)
    return PART_OF[match[1]] if match else "train"


def _all(files: Iterable[Path]) -> Iterator[Example]:
    for file in files:
        yield from open_examples(file)


def _write_part(
    folder: Path, part: str, examples: Iterable[Example], to: str, with_answers: bool
) -> int:
    if to == "parquet":
        from generation.tables import write_parquet

        name = HUB_NAMES.get(part, part)
        return write_parquet(folder / "data" / f"{name}-00000-of-00001.parquet", examples)
    if to == "kqapro":
        path = folder / f"{KQAPRO_NAMES.get(part, part)}.json"
        return write_kqapro(path, examples, bare=part == "test" and not with_answers)
    return write_file(folder / f"{part}.{to}", examples, to)


def write_file(path: Path | str, examples: Iterable[Example], to: str) -> int:
    """Write examples as one file of a form (jsonl, kqapro, csv) and say how many."""
    if to == "kqapro":
        return write_kqapro(path, examples)
    if to == "csv":
        return write_csv(path, examples)
    return write_examples(path, examples)


def write_kqapro(path: Path | str, examples: Iterable[Example], *, bare: bool = False) -> int:
    """Write one JSON list as KQA Pro publishes and say how many; ``bare``: as its test.json.

    The published preprocessing reads choices of every question and looks the answer up in them:
    a warning tells how many questions lack that.
    """
    count = without = 0
    with writing(path) as file:
        for example in examples:
            file.write(",\n" if count else "[")
            file.write(json.dumps(to_kqapro(example, bare=bare), ensure_ascii=False))
            count += 1
            without += not example.choices or (
                example.answer is not None and example.answer not in example.choices
            )
        file.write("]\n" if count else "[]\n")
    if without:
        log.warning(
            "%s: %d of %d questions have no choices with their answer; KQA Pro's published"
            " preprocessing needs them", path, without, count,
        )  # fmt: skip
    return count


def to_kqapro(example: Example, *, bare: bool = False) -> dict[str, Any]:
    """The object of an example in KQA Pro's files; ``bare``: the question and its choices only."""
    item: dict[str, Any] = {"question": example.question, "choices": list(example.choices)}
    if not bare:
        item["program"] = to_json(example.program, published=True)
        if example.sparql is not None:
            item["sparql"] = example.sparql
        if example.answer is not None:
            item["answer"] = example.answer
    return item


def write_csv(path: Path | str, examples: Iterable[Example]) -> int:
    """Write examples as CSV and say how many: programs nested, choices and extra as JSON."""
    count = 0
    with writing(path) as file:
        # All cells are quoted: before Python 3.13 a carriage return alone would not be.
        rows = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        rows.writerow(COLUMNS)
        for example in examples:
            item = to_row(example) | {"program": write_nested(example.program)}
            item["choices"] = json.dumps(item["choices"], ensure_ascii=False)
            rows.writerow(["" if item[key] is None else item[key] for key in COLUMNS])
            count += 1
    return count


def to_row(example: Example) -> dict[str, Any]:
    """A row with every column: extra fields are one JSON text, so that none is lost."""
    item = replace(example, extra={}).to_json()
    row: dict[str, Any] = {key: item.get(key) for key in FIELDS}
    row["choices"] = list(example.choices)
    extra = json.dumps(dict(example.extra), ensure_ascii=False) if example.extra else None
    return row | {"extra": extra}
