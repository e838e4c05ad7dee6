"""What the columns of a table hold."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from kb.imports.common import Sheet, SheetForm, refuse_no_text, twice_readable
from kb.imports.forms import MISSING, words_of
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader

# Characters of a column's name: more are no name, and no key of a mapping in YAML.
LONGEST_NAME = 500
_KEPT = 1_000_000  # distinct values of a column; what comes behind them is not looked at


@dataclass
class Column:
    """A column: its distinct values with their numbers, without those that mean nothing."""

    name: str
    number: int
    values: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    filled: int = 0
    has_more: bool = False

    @property
    def words(self) -> list[str]:
        """The words of the header, in lower case."""
        return [word.lower() for word in words_of(self.name)]

    @property
    def is_unique(self) -> bool:
        """Whether no value is there twice, of those that were looked at."""
        return all(count == 1 for count in self.values.values())

    def add(self, text: str) -> None:
        """Count a cell."""
        if not text:
            return
        if text in MISSING:
            self.missing[text] += 1
            return
        self.filled += 1
        if text in self.values or len(self.values) < _KEPT:
            self.values[text] += 1
        else:
            self.has_more = True

    def keep_codes(self) -> None:
        """Take words such as NA for values where all others are codes of as many capitals."""
        for word in [word for word in self.missing if word.isalpha() and word.isupper()]:
            codes = all(len(v) == len(word) and v.isalpha() and v.isupper() for v in self.values)
            if codes and len(self.values) >= 3:
                self.values[word] = self.missing.pop(word)
                self.filled += self.values[word]


@dataclass
class Profile:
    """What is in a table."""

    path: Path
    form: SheetForm
    columns: list[Column]
    rows: int
    is_guessed: bool  # the encoding: the file is not UTF-8

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def read_profile(path: Path | str) -> Profile:
    """The profile of a file, whose delimiter and encoding are found from its start.

    Raises ReadError for what is no table with a header.
    """
    path = Path(path)
    twice_readable(path)
    refuse_no_text(path)
    form, is_guessed = _form_of(path)
    with Sheet(path, form, "reading") as sheet:
        header = sheet.header
        columns = [Column(name, number) for number, name in enumerate(header)]
        for column in columns:
            if len(column.name) > LONGEST_NAME:
                raise ReadError(
                    f"the name of column {column.number + 1} has {len(column.name):,} characters;"
                    f" {LONGEST_NAME} are read at most: is the first line no header?",
                    place="line 1",
                    source=str(path),
                )
        for name, count in Counter(filter(None, header)).items():
            if count > 1:
                raise ReadError(
                    f"two columns are called {name!r}; rename one", place="line 1", source=str(path)
                )
        rows = 0
        for place, cells, wrong in sheet.rows():
            if wrong:
                raise ReadError(
                    f"{wrong}; is the first line no header?", place=place, source=str(path)
                )
            rows += 1
            for column, cell in zip(columns, cells, strict=True):
                column.add(cell.strip())
    if not rows:
        raise ReadError("there are no rows below the header", source=str(path))
    for column in columns:
        column.keep_codes()
    columns = [column for column in columns if column.name]
    _check_header(path, columns)
    return Profile(path, form, columns, rows, is_guessed)


def _check_header(path: Path, columns: list[Column]) -> None:
    """Raise ReadError for a first line that is a row, or for a table of facts."""
    for column in columns:
        name = column.name
        is_number = re.fullmatch(r"-?[0-9][0-9.,]*", name) and not re.fullmatch("[0-9]{4}", name)
        if is_number or re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", name):
            raise ReadError(
                f"the first line must name the columns; {name!r} is no name",
                place="line 1",
                source=str(path),
            )
    if len(columns) >= 3 and columns[1].name in columns[1].values:
        raise ReadError(
            f"{columns[1].name!r} stands in the first line and below it: is there no header? For"
            " rows of head, relation and tail: kopl kb import --from table",
            place="line 1",
            source=str(path),
        )


def _form_of(path: Path) -> tuple[SheetForm, bool]:
    """The delimiter and encoding of a file by its start, and whether the encoding is a guess."""
    try:
        with path.open("rb") as file:
            has_mark = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    except OSError as error:
        raise ReadError(f"cannot be opened: {error.strerror}", source=str(path)) from None
    for encoding in ("utf-16",) if has_mark else ("", "cp1252"):
        try:
            form = SheetForm.of(path, "", encoding)
            with TextReader(path, encoding=form.encoding) as text:
                for _ in iter(text.read, ""):
                    pass
            with TextReader(path, encoding=form.encoding) as text:
                line = next((line for line in text.lines() if line.strip()), "")
        except ReadError as error:
            if "text (" not in error.message:
                raise
            continue
        outside = re.sub('"[^"]*"', "", line)
        marks = [form.delimiter, *(mark for mark in ",;\t|" if mark != form.delimiter)]
        best = max(marks, key=outside.count)
        form = SheetForm(best, form.encoding)
        return replace(form, quoted=_is_quoted(path, form)), encoding == "cp1252"
    raise ReadError("the file is not text of a known encoding", source=str(path))


def _is_quoted(path: Path, form: SheetForm) -> bool:
    """Whether cells may be quoted; not where tabs part them and quotation marks stand alone."""
    if form.delimiter != "\t":
        return True
    try:
        with Sheet(path, form) as sheet:
            for _ in sheet.rows():
                pass
    except ReadError as error:
        return "not CSV" not in error.message
    return True
