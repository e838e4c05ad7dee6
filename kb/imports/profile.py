"""What the columns of a table hold, and the types that their values have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from kb.imports.cells import CellType, number_pattern, read_amount, read_day
from kb.imports.common import twice_readable
from kb.imports.sheets import Sheet, SheetForm, refuse_no_text
from kb.imports.words import CODE_WORDS, DAY_FORMS, MISSING, UNITS, YEAR_WORDS
from kb.values import Date, ValueReadError
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader

_KEPT = 1_000_000  # distinct values of a column; what comes behind them is not looked at
_NUMBERS = ((".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"))


def words_of(header: str) -> list[str]:
    """The words of a header: ``birthPlace``, ``birth_place`` and ``Birth place`` are the same."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", header)
    found = re.split(r"[\s_./:-]+", spaced)
    capitals = header == header.upper()
    return [word.lower() if capitals or not word.isupper() else word for word in found if word]


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


# --- types -----------------------------------------------------------------------------------


@dataclass
class Guess:
    """A type with its fields for the mapping, why it was guessed, and what is doubtful."""

    type: CellType
    fields: dict[str, object] = field(default_factory=dict)
    why: str = ""
    doubt: str = ""


def guess_form(values: Iterable[str], words: Iterable[str] = ()) -> Guess:
    """The type that all values have; ``words`` are those of the header."""
    values, words = list(values), set(words)
    if not values:
        return Guess("string")
    for form in ("", *DAY_FORMS):
        if _are_days(values, form):
            return _days(values, form)
    has_zeros = any(re.fullmatch("0[0-9]+", value) for value in values)
    if has_zeros or words & CODE_WORDS:
        return Guess("string", why="codes" if has_zeros else "")
    if all(re.fullmatch(r"[12][0-9]{3}(\.0+)?", value, re.ASCII) for value in values):
        fits = all(1000 <= float(value) <= 2100 for value in values)
        if fits and words & YEAR_WORDS:
            return Guess("year", why="years")
        if fits and all(float(value) >= 1400 for value in values):
            return Guess("year", why="numbers like years", doubt="or type: quantity")
    return _quantities(values, words)


def nearly(values: Iterable[str], words: Iterable[str] = ()) -> tuple[Guess, str] | None:
    """The type that nearly all values have, and one that has it not; None where none is so common.

    Only the first thousand values are looked at.
    """
    looked_at = list(islice(values, 1000))
    typed = [value for value in looked_at if guess_form([value]).type != "string"]
    if len(typed) < 4 or len(typed) * 5 < len(looked_at) * 4 or len(typed) == len(looked_at):
        return None
    guess = guess_form(typed, words)
    known = set(typed)
    return None if guess.type == "string" else (guess, next(v for v in looked_at if v not in known))


def _are_days(values: list[str], form: str) -> bool:
    is_day = False
    for value in values:
        try:
            found = read_day(value, form)
        except ValueReadError:
            return False
        is_day = is_day or isinstance(found, Date) or not re.fullmatch("-?[0-9.]+", value)
    return is_day


def _days(values: list[str], form: str) -> Guess:
    if not form:
        return Guess("date", why="days")
    other = {"dd/mm/yyyy": "mm/dd/yyyy", "dd-mm-yyyy": "mm-dd-yyyy"}.get(form, "")
    doubt = f"or format: {other}" if other and _are_days(values, other) else ""
    return Guess("date", {"format": form}, f"days as {form}", doubt)


def _quantities(values: list[str], words: set[str]) -> Guess:
    found: list[tuple[str, str]] = []
    for decimal, thousands in _NUMBERS:
        pattern = number_pattern(decimal, thousands)
        if all(pattern.fullmatch(value) for value in values):
            found.append((decimal, thousands))
    if not found:
        return Guess("string")
    decimal, thousands = found[0]
    doubt = ""
    if (decimal, thousands) == (",", "") and (".", ",") in found:
        # All commas stand before three digits: between thousands, more likely.
        decimal, thousands, doubt = ".", ",", 'or decimal: ","'
    try:
        amounts = [read_amount(value, decimal, thousands) for value in values]
    except ValueReadError:  # too large for a number
        return Guess("string")
    units = Counter(unit for _, unit in amounts)
    fields: dict[str, object] = {}
    if decimal != ".":
        fields["decimal"] = decimal
    if thousands:
        fields["thousands"] = thousands
    low, high = min(number for number, _ in amounts), max(number for number, _ in amounts)
    why = f"numbers, {low:g} to {high:g}"
    named = [unit for unit in units if unit]
    if not named:
        return Guess("quantity", fields, why, doubt)
    known = {unit: UNITS[unit.lower()] for unit in named if unit.lower() in UNITS}
    full = {known.get(unit, unit) for unit in named}
    if len(known) < len(named) and (len(named) > 1 or units[named[0]] < 2):
        return Guess("string")  # house numbers, parts of codes
    if known:
        fields["units"] = known
    if len(full) == 1 and (len(named) > 1 or units[""] or not known):
        fields["unit"] = next(iter(full))
    if units[""]:
        doubt = "some have no unit"
    if len(full) > 1:
        doubt = "several units, which do not compare"
    return Guess("quantity", fields, f"{why}, with units", doubt)
