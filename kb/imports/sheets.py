"""The rows of files in which people keep tables: CSV with a header, as spreadsheets write it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kb.imports.common import table_rows
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader

_NO_TEXT = (
    (b"PK\x03\x04", "a workbook or archive; save each of its sheets as CSV (UTF-8)"),
    (b"\xd0\xcf\x11\xe0", "an old workbook; save each of its sheets as CSV (UTF-8)"),
    (b"PAR1", "a Parquet file; write it as CSV"),
)


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
