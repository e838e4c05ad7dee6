"""What the readers of dumps and tables share: counts, classes, rows of tables, labels, ids."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.assemble import Assembler
from kb.problems import Problems
from kb.store import KnowledgeBase, normalise_name
from kopl_base.errors import ReadError
from kopl_base.stream import FIELD_TWICE, JsonStream, TextReader

# What was read and what was left out, each with its number, in the order of its first use.
Report = Counter[str]

HAS_CLASS, HAS_PARENT, USED = 1, 2, 4


class Nodes:
    """Ids with what decides between entity and concept.

    What has a parent is a concept. What is used as a class (a class or parent of another node) is
    a concept as well, unless it has a class itself: a city that is the class of something by
    mistake stays an entity.
    """

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.flags = bytearray()

    def add(self, id: str) -> int:
        """The number of an id, new or known."""
        number = self.number.get(id)
        if number is None:
            number = self.number[id] = len(self.flags)
            self.flags.append(0)
        return number

    def is_concept(self, number: int) -> bool:
        """Whether a node is a concept; known once every class link was seen."""
        flags = self.flags[number]
        return bool(flags & HAS_PARENT) or flags & (USED | HAS_CLASS) == USED


def finish(assembler: Assembler, report: Report, dropped: str) -> KnowledgeBase:
    """The knowledge base; facts and links to undefined nodes are counted as ``dropped``."""
    problems = assembler.problems
    before = problems.counts[("warning", "dangling-id")]
    kb = assembler.finish()
    if count := problems.counts[("warning", "dangling-id")] - before:
        report[dropped] += count
    report.update(
        {
            "entities": kb.entity_count,
            "concepts": kb.concept_count,
            "relational facts": len(kb.relational),
            "literal facts": len(kb.literals),
        }
    )
    return kb


def malformed(
    problems: Problems, report: Report, skip: bool, place: str, message: str, what: str
) -> None:
    """Raise ReadError for what is malformed, or count it when it is to be skipped."""
    if not skip:
        raise ReadError(message, place=place, source=problems.source)
    problems.warning("malformed", f"{problems.source}: {place}", message)
    report[f"{what}: malformed"] += 1


# --- tables ----------------------------------------------------------------------------------


_NO_TEXT = (
    (b"PK\x03\x04", "a workbook or archive; save each of its sheets as CSV (UTF-8)"),
    (b"\xd0\xcf\x11\xe0", "an old workbook; save each of its sheets as CSV (UTF-8)"),
    (b"PAR1", "a Parquet file; write it as CSV"),
)


def twice_readable(path: Path) -> None:
    """Raise ReadError for what is no ordinary file: the reader goes through it twice."""
    if path.exists() and not path.is_file():
        what = "is a folder" if path.is_dir() else "is read twice, so it cannot be a pipe"
        raise ReadError(f"{what}; give a file", source=str(path))


def refuse_no_text(path: Path) -> None:
    """Raise ReadError for a file that is no table of text, with what to do about it."""
    if path.is_dir():
        raise ReadError("is a folder; give a file", source=str(path))
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError:
        return  # the reader tells
    for magic, what in _NO_TEXT:
        if start == magic:
            raise ReadError(f"is {what}", source=str(path))


def table_rows(
    text: TextReader, delimiter: str, *, quoted: bool
) -> Iterator[tuple[str, list[str]]]:
    """The rows of a table with their places, without empty lines.

    ``quoted``: cells may be quoted as in RFC 4180, also over several lines; else a row is a line
    that is split. Raises ReadError with the line where the quoting is wrong.
    """
    if not quoted:
        for number, line in enumerate(text.lines(), 1):
            if line:
                yield f"line {number}", line.split(delimiter)
        return
    lines = (line + "\n" for line in text.lines())
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        place = f"line {rows.line_num + 1}"
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise ReadError(
                f"not CSV: {error}; is a quotation mark left open?",
                place=place,
                source=text.source,
            ) from None
        if cells:
            yield place, cells


@dataclass(frozen=True)
class SheetForm:
    """What parts the cells of a file, its encoding, and whether cells may be quoted."""

    delimiter: str
    encoding: str = "utf-8-sig"
    quoted: bool = True

    @classmethod
    def of(
        cls, path: Path, delimiter: str = "", encoding: str = "", *, quoted: bool = True
    ) -> SheetForm:
        """The form as it is said, else by the ending: tabs in ``.tsv``, commas elsewhere."""
        is_tsv = ".tsv" in {suffix.lower() for suffix in path.suffixes}
        name = codecs.lookup(encoding or "utf-8").name
        name = {"utf-8": "utf-8-sig", "utf-16-le": "utf-16"}.get(name, name)
        return cls(delimiter or ("\t" if is_tsv else ","), name, quoted)


class Sheet:
    """A file with a header and a row of as many cells for each of its lines.

    ``header`` are the names of the columns. Raises ReadError for a file without a header.
    """

    def __init__(self, path: Path, form: SheetForm, title: str = "") -> None:
        refuse_no_text(path)
        self.path = path
        self._text = TextReader(path, title and f"{title} {path.name}", encoding=form.encoding)
        self._rows = self._read(form)
        try:
            first = next(self._rows, None)
        except BaseException:
            self.close()
            raise
        self.header = [name.strip() for name in first[1]] if first else []
        if not any(self.header):
            self.close()
            raise ReadError(
                "there is no header, a first line with a name for each column", source=str(path)
            )

    def __enter__(self) -> Sheet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._text.__exit__()

    def _read(self, form: SheetForm) -> Iterator[tuple[str, list[str]]]:
        # Tabs part cells that may be quoted as well: spreadsheets quote what has line ends.
        for place, cells in table_rows(self._text, form.delimiter, quoted=form.quoted):
            if any(cell.strip() for cell in cells):
                yield place, cells

    def rows(self) -> Iterator[tuple[str, list[str], str]]:
        """Place, cells, and what is wrong with their number ("" if nothing), for each row.

        Rows whose cells are all empty are passed over; empty cells beyond the header are cut.
        """
        width = len(self.header)
        for place, cells in self._rows:
            while len(cells) > width and not cells[-1].strip():
                cells.pop()
            wrong = ""
            if len(cells) != width:
                wrong = f"{len(cells)} cells, and the header has {width}"
            yield place, cells, wrong


# --- labels and ids --------------------------------------------------------------------------


def read_labels(
    path: Path | str, *, id: str | None = None, label: str = "label"
) -> Iterator[tuple[str, str]]:
    """The (id, label) pairs of a file, normalised; what has no label is left out.

    A JSON object of labels by id, or of objects by id that hold the label in the field ``label``
    (and the id in the field ``id``, when it is not their key); or a table of two columns (.tsv,
    else .csv). Raises ReadError with file and place for another form.
    """
    path = Path(path)
    with TextReader(path) as text:
        suffixes = {suffix.lower() for suffix in path.suffixes}
        if suffixes & {".csv", ".tsv", ".txt"}:
            pairs = _table_labels(text, "\t" if ".tsv" in suffixes else ",")
        else:
            pairs = _json_labels(JsonStream(text), id, label, text.source)
        for found, name in pairs:
            if name := normalise_name(name):
                yield found, name


def _table_labels(text: TextReader, delimiter: str) -> Iterator[tuple[str, str]]:
    for place, cells in table_rows(text, delimiter, quoted=delimiter == ","):
        if len(cells) != 2:
            raise ReadError(
                f"a table of labels has two columns, id and label; here are {len(cells)}",
                place=place,
                source=text.source,
            )
        yield cells[0], cells[1]


def read_aliases(path: Path | str, *, id: str | None, field: str) -> Iterator[tuple[str, str]]:
    """The (id, alias) pairs of a JSON file of objects by id, one for each text of their field.

    Raises ReadError with file and place for another form.
    """
    with TextReader(Path(path)) as text:
        stream = JsonStream(text)
        for found, value in _json_entries(stream, id, field, text.source):
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
                raise stream.fail(f"{field!r} of {found!r} is no list of texts")
            yield from ((found, one) for one in texts)


def _json_labels(
    stream: JsonStream, id: str | None, label: str, source: str
) -> Iterator[tuple[str, str]]:
    for found, value in _json_entries(stream, id, label, source):
        if not isinstance(value, str):
            raise stream.fail(f"the label of {found!r} is not a text")
        yield found, value


def _json_entries(
    stream: JsonStream, id: str | None, field: str, source: str
) -> Iterator[tuple[str, Any]]:
    """The id of each member and what its field has, or the member itself where that is no object.

    What has no id or no such field is left out.
    """
    if stream.peek() != "{":
        raise stream.fail("a file of labels is a JSON object, id to label, or ends in .csv or .tsv")
    for key in stream.members():
        value: Any = stream.value()
        if stream.twice:
            raise ReadError(FIELD_TWICE, place=f"{key}/{stream.twice}", source=source)
        found: Any = key
        if isinstance(value, dict):
            if id is not None:
                found = value.get(id)
            value = value.get(field)
        if value is None or found is None:
            continue
        if not isinstance(found, str):
            raise stream.fail(f"the id of {key!r} is not a text")
        yield found, value
    stream.end()


def read_ids(path: Path | str, letter: str) -> list[str]:
    """The Wikidata ids of a list, one a line; IRIs of items are cut to their ids.

    Empty lines and lines that begin with # are passed over. Raises ReadError for another line.
    """
    found = []
    with TextReader(Path(path)) as text:
        for number, line in enumerate(text.lines(), 1):
            id = line.strip().strip("<>").rsplit("/", 1)[-1]
            if not id or line.lstrip().startswith("#"):
                continue
            if not is_id(id, letter):
                raise ReadError(
                    f"an id such as {letter}42 was expected, alone on its line, not {line[:60]!r}",
                    place=f"line {number}",
                    source=text.source,
                )
            found.append(id)
    return found


def is_id(text: str, letter: str) -> bool:
    """Whether a text is the letter (Q, P) with a number behind it."""
    return text[:1] == letter and text[1:].isascii() and text[1:].isdecimal()
