"""What people wrote and judged, read back from CSV tables and from Label Studio's JSON export.

Both phases of `generation.paraphrase.tasks` are read, whichever a file holds; a table may have been
through a spreadsheet (other separators, a byte order mark).
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generation.paraphrase.tasks import HIGHEST, ID_MARK
from kopl.example import read_objects
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader
from kopl_base.tables import unescaped

_YES = frozenset({"yes", "y", "1", "true", "x"})
_NO = frozenset({"no", "n", "0", "false", ""})
_NO_COLUMN = 'a table of paraphrases has a column "task", and "paraphrase" or "same" and "fluency"'


@dataclass(frozen=True)
class Vote:
    """What one judge said of a paraphrase: the same meaning or not, fluency from 1 to 5."""

    judge: str
    same: bool
    fluency: float


@dataclass(frozen=True)
class Paraphrase:
    """What a worker wrote for the question of an id, and the canonical one seen, where known.

    Blanks at the ends and in a row do not count, so that a judged text is found again.
    """

    id: str
    text: str
    worker: str
    canonical: str = ""


@dataclass
class Responses:
    """Everything read from one or several files, in their order.

    ``votes`` are kept by id and text of the paraphrase. ``confusing`` holds who marked a question
    so, ``skipped`` counts annotations that were cancelled or left empty.
    """

    paraphrases: dict[tuple[str, str], Paraphrase] = field(default_factory=dict)
    votes: dict[tuple[str, str], dict[str, Vote]] = field(default_factory=dict)
    confusing: dict[str, set[str]] = field(default_factory=dict)
    skipped: int = 0

    def ids(self) -> set[str]:
        """The questions that something was said of."""
        return {id for id, _ in self.paraphrases} | set(self.confusing)


def read_responses(paths: Iterable[Path | str]) -> Responses:
    """The responses of all files; raises ReadError with file and place for what is malformed.

    Who filled in a table that does not say so goes by the table's name.
    """
    found = Responses()
    files = [Path(path) for path in paths]
    names = Counter(_stem(path) for path in files)
    for path in files:
        suffixes = [end for end in path.suffixes if end not in (".gz", ".bz2", ".xz")]
        ending = suffixes[-1].lower() if suffixes else ""
        if ending == ".csv":
            name = _stem(path)
            _read_table(path, name if names[name] == 1 else str(path), found)
        elif ending == ".json":
            _read_export(path, found)
        else:
            raise ReadError(
                "paraphrases are read from .csv (a table) and .json (Label Studio's export)",
                source=str(path),
            )
    return found


def _add(
    found: Responses, id: str, worker: str, text: str, *, confusing: bool, canonical: str
) -> None:
    """Note what a worker said of a question: a text, or that it is confusing, or nothing."""
    text = " ".join(text.split())
    if confusing:
        found.confusing.setdefault(id, set()).add(worker)
    if text:
        found.paraphrases.setdefault((id, text), Paraphrase(id, text, worker, canonical))
    elif not confusing:
        found.skipped += 1


def _judge(found: Responses, paraphrase: Paraphrase, vote: Vote) -> None:
    """Note a vote; a judge's first one counts."""
    key = paraphrase.id, paraphrase.text
    found.paraphrases.setdefault(key, paraphrase)
    found.votes.setdefault(key, {}).setdefault(vote.judge, vote)


# --- tables -------------------------------------------------------------------------------------


def _stem(path: Path) -> str:
    return path.name.split(".")[0]


def _read_table(path: Path, name: str, found: Responses) -> None:
    csv.field_size_limit(sys.maxsize)
    for place, row in _rows(path):
        try:
            id = row["task"].strip().removeprefix(ID_MARK)
            if not id:
                raise ValueError('the cell "task" is empty')
            canonical = unescaped(row.get("canonical", ""))
            if "same" not in row:
                worker = row.get("annotator", "").strip() or name
                confusing = _truth(row.get("confusing", ""), "confusing")
                text = row["paraphrase"]
                _add(found, id, worker, text, confusing=confusing, canonical=canonical)
                continue
            text = " ".join(unescaped(row["paraphrase"]).split())
            same, fluency = row["same"].strip(), row["fluency"].strip()
            if not same and not fluency:
                found.skipped += 1
                continue
            if not same or not fluency or not text:
                raise ValueError('a judged row needs "paraphrase", "same" and "fluency"')
            paraphrase = Paraphrase(id, text, row.get("worker", "").strip(), canonical)
            judge = row.get("judge", "").strip() or name
            _judge(found, paraphrase, Vote(judge, _truth(same, "same"), _fluency(fluency)))
        except ValueError as error:
            raise ReadError(str(error), place=place, source=str(path)) from None


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """(place, row) for each row that is not empty."""
    with TextReader(path) as reader:
        lines = (f"{line}\n" for line in reader.lines())
        first = next(lines, "").removeprefix("\ufeff")
        if re.fullmatch(r"sep=.\n", first):  # some spreadsheets begin a table so
            first = next(lines, "")
        separator = max(",;\t", key=first.count)
        table = csv.reader(_chained(first, lines), delimiter=separator, strict=True)
        try:
            names = [cell.strip() for cell in next(table, [])]
            phase = {"same", "fluency"} if "same" in names else {"paraphrase"}
            if not {"task", "paraphrase", *phase} <= set(names):
                raise ReadError(_NO_COLUMN, place="line 1", source=str(path))
            for cells in table:
                if not any(cells):
                    continue
                place = f"line {table.line_num}"
                if len(cells) > len(names):
                    raise ReadError(
                        "the row has more cells than the first line", place=place, source=str(path)
                    )
                cells += [""] * (len(names) - len(cells))  # some leave out the empty ones
                yield place, dict(zip(names, cells, strict=True))
        except csv.Error as error:
            place = f"line {table.line_num}"
            raise ReadError(f"not CSV: {error}", place=place, source=str(path)) from None


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _truth(text: str, name: str) -> bool:
    word = text.strip().casefold()
    if word in _YES or word == name:
        return True
    if word in _NO:
        return False
    raise ValueError(f'"{name}" is yes or no, not {text!r}')


def _fluency(text: object) -> float:
    try:
        number = float(str(text).replace(",", "."))
    except ValueError:
        number = 0
    if not 1 <= number <= HIGHEST:
        raise ValueError(f'"fluency" is a number from 1 to {HIGHEST}, not {text!r}')
    return number


# --- Label Studio -------------------------------------------------------------------------------


def _read_export(path: Path, found: Responses) -> None:
    for place, item in read_objects(path):
        if isinstance(item, ReadError):
            raise ReadError(item.message, place=item.place, source=str(path))
        try:
            _read_task(item, found)
        except (ValueError, TypeError, AttributeError) as error:
            raise ReadError(str(error), place=place, source=str(path)) from None


def _read_task(item: Any, found: Responses) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("data"), dict):
        raise ValueError("not a task of Label Studio: export as JSON, not as JSON-MIN")
    data = item["data"]
    id, canonical = data.get("question_id"), data.get("canonical", "")
    if not isinstance(id, str) or not isinstance(canonical, str):
        raise ValueError('the task has no "question_id"; it was not made by kopl paraphrase export')
    annotations = item.get("annotations")
    if not isinstance(annotations, list):
        raise ValueError('the task has no list "annotations": export as JSON, with annotations')
    for annotation in annotations:
        if not isinstance(annotation, dict):
            raise ValueError("an annotation must be an object")
        given = _given(annotation.get("result"))
        if annotation.get("was_cancelled") or not given:
            found.skipped += 1
            continue
        person = _person(annotation)
        if "same" not in given and "fluency" not in given:
            confusing = bool(given.get("confusing"))
            for text in given.get("paraphrase") or [""]:
                _add(found, id, person, text, confusing=confusing, canonical=canonical)
            continue
        text, worker = data.get("paraphrase"), data.get("worker")
        if not isinstance(text, str) or not isinstance(worker, str):
            raise ValueError('a judged task needs "paraphrase" and "worker" in its data')
        if not given.get("same") or not given.get("fluency"):
            raise ValueError('an annotation needs both "same" and "fluency"')
        paraphrase = Paraphrase(id, " ".join(text.split()), worker, canonical)
        same, fluency = _truth(given["same"][0], "same"), _fluency(given["fluency"][0])
        _judge(found, paraphrase, Vote(person, same, fluency))


def _given(result: Any) -> Mapping[str, list[Any]]:
    """What an annotation says, by the name of the control; texts as a list always."""
    if not isinstance(result, list):
        raise ValueError('an annotation has no list "result"')
    given: dict[str, list[Any]] = {}
    for region in result:
        if not isinstance(region, dict) or not isinstance(region.get("value"), dict):
            raise ValueError("a result needs a value")
        value = region["value"]
        content = value.get("text", value.get("choices", value.get("rating")))
        contents = content if isinstance(content, list) else [content]
        kind = int | float if region.get("type") == "rating" else str
        if not all(isinstance(one, kind) for one in contents):
            raise ValueError(f"a result of {region.get('from_name')!r} is {content!r}")
        given.setdefault(str(region.get("from_name")), []).extend(contents)
    return given


def _person(annotation: Mapping[str, Any]) -> str:
    """Who made an annotation: Label Studio gives a number, or an object with an address."""
    person = annotation.get("completed_by")
    if isinstance(person, dict):
        person = person.get("email") or person.get("id")
    return f"annotation {annotation.get('id')}" if person is None else str(person)
