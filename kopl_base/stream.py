"""Files read and written piece by piece: compression, JSON values one at a time, safe writing."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import zlib
from collections.abc import Generator, Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, TextIO, cast

from kopl_base.errors import ReadError, WriteError
from kopl_base.progress import Progress
from kopl_base.temporary import reserve

CHUNK = 1 << 20
# What may stand behind the ending of a compressed file.
COMPRESSED = (".gz", ".bz2", ".xz")

_MAGIC = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\x00", "xz"))
_READ_ERRORS = (EOFError, zlib.error, lzma.LZMAError, OSError)


def compression_of(file: BufferedReader) -> str:
    """How a file is compressed, by its first bytes (not consumed): "gz", "bz2", "xz" or ""."""
    start = file.peek(6)
    return next((name for magic, name in _MAGIC if start.startswith(magic)), "")


class TextReader:
    """The text of a plain or compressed file (or pipe) in chunks, with a progress bar.

    It is UTF-8 unless ``encoding`` says otherwise; ``errors`` is that of `bytes.decode`. Raises
    ReadError for a file that is missing, damaged, cut short or not text of that encoding.
    """

    def __init__(
        self, path: Path, title: str = "", errors: str = "strict", encoding: str = "utf-8-sig"
    ) -> None:
        self.source = str(path)
        self._encoding = encoding
        try:
            self._raw = path.open("rb")
            compression = compression_of(self._raw)
            size = path.stat().st_size
        except OSError as error:
            reason = error.strerror or str(error)
            raise ReadError(f"cannot be opened: {reason}", source=self.source) from error
        opened: IO[bytes] = self._raw
        if compression == "gz":
            opened = cast(IO[bytes], gzip.GzipFile(fileobj=self._raw))
        elif compression == "bz2":
            opened = bz2.BZ2File(self._raw)
        elif compression == "xz":
            opened = lzma.LZMAFile(self._raw)  # noqa: SIM115 (closed with the reader)
        self._text = io.TextIOWrapper(opened, encoding=encoding, errors=errors, newline="")
        self._bar = Progress(title or f"reading {path.name}", size)
        self._lines: Iterator[str] = iter(())  # read, not yet given

    def __enter__(self) -> TextReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__(None, None, None)
        self._text.close()
        self._raw.close()

    def read(self, size: int = CHUNK) -> str:
        """The next piece of text, "" at the end."""
        with self._explained():
            piece = self._text.read(size)
        self._show()
        return piece

    def lines(self) -> Iterator[str]:
        """The lines, one by one, without their ends; asked again, those not yet given."""
        while True:
            for line in self._lines:
                yield line.rstrip("\r\n")
            with self._explained():
                lines = self._text.readlines(CHUNK)
            if not lines:
                return
            self._show()
            self._lines = iter(lines)

    def _show(self) -> None:
        with contextlib.suppress(OSError):  # a pipe has no place
            self._bar.reach(self._raw.tell())

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except UnicodeError as error:
            name = "UTF-8" if self._encoding == "utf-8-sig" else self._encoding
            reason = getattr(error, "reason", error)
            raise ReadError(f"the file is not {name} text ({reason})", source=self.source) from None
        except _READ_ERRORS as error:
            raise ReadError(
                f"the file is damaged or cut short ({error})", source=self.source
            ) from None


FIELD_TWICE = "the field is there twice; keep one of the two"

# What can stand between a field's name and its colon, besides a blank; never inside of a string.
_SPACE = "\t\n\r"


class JsonDecoder:
    """Decodes one text after another; ``twice`` is what the last one had twice, or "".

    JSON is decoded as the standard library does it, but an object with a field twice is noticed:
    Python's decoder takes the last of them and says nothing. To look at every pair would double
    the time that decoding takes, so members are counted: an object that lost one has fewer of them
    than its text has colons. Only a text whose colons do not settle it is decoded a second time,
    pair by pair.

    >>> decoder = JsonDecoder()
    >>> decoder.decode('{"name": "a", "facts": [{"key": 1, "key": 2}]}')["name"]
    'a'
    >>> decoder.twice
    'facts[0]/key'
    """

    def __init__(self) -> None:
        members = _members()
        next(members)
        self._members = members.send
        self._decoder = json.JSONDecoder(object_hook=self._members)
        self.twice = ""

    def decode(self, text: str) -> Any:
        """The value of a whole text; raises what `json.loads` raises."""
        self._members(None)
        value = self._decoder.decode(text)
        self._compare(text, 0, len(text))
        return value

    def raw_decode(self, text: str, at: int) -> tuple[Any, int]:
        """The value that begins at a place, and the place behind it."""
        self._members(None)
        value, end = self._decoder.raw_decode(text, at)
        self._compare(text, at, end)
        return value, end

    def _compare(self, text: str, begin: int, end: int) -> None:
        self.twice = ""
        count = self._members(None)
        if text.count(":", begin, end) == count:
            return
        # Most colons that stand inside of strings stand behind another character.
        possible = text.count('":', begin, end) + text.count(" :", begin, end)
        for space in _SPACE:
            if text.find(space, begin, end) >= 0:
                possible += text.count(f"{space}:", begin, end)
        if possible > count:
            by_pairs = json.JSONDecoder(object_pairs_hook=_object)
            self.twice = _place(by_pairs.decode(text[begin:end]))


def _members() -> Generator[Any, Any, None]:
    """Takes decoded objects and gives them back; for None, how many members the last ones had.

    The decoder resumes a generator faster than it calls a function.
    """
    count = 0
    found = yield
    while True:
        if found is None:
            found = yield count
            count = 0
        else:
            count += len(found)
            found = yield found


class _Twice(dict[str, Any]):
    """An object that has a field twice."""

    field = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    names = [name for name, _ in pairs]
    twice = _Twice(found)
    twice.field = next(name for at, name in enumerate(names) if name in names[:at]) or '""'
    return twice


def _place(value: Any) -> str:
    """The path of the first field that is there twice, "" where none is."""
    left = [("", value)]
    while left:
        path, here = left.pop()
        if isinstance(here, _Twice):
            return path + here.field
        if isinstance(here, dict):
            inside = [(f"{path}{name}", part) for name, part in here.items()]
        else:
            stem = path.removesuffix("/")
            inside = [(f"{stem}[{at}]", part) for at, part in enumerate(here)]
        left += [(f"{p}/", part) for p, part in reversed(inside) if isinstance(part, dict | list)]
    return ""


class JsonStream:
    """Reads one JSON document value by value, holding only what it is looking at.

    Objects are walked with `members`; `value` decodes the value at hand whole. ``twice`` is the
    place of a field that the last value had twice, or "".
    """

    def __init__(self, reader: TextReader) -> None:
        self._reader = reader
        self._buffer, self._at, self._ended = "", 0, False
        self._lines, self._column = 1, 0  # of the buffer's first character
        self._decoder = JsonDecoder()

    @property
    def twice(self) -> str:
        return self._decoder.twice

    def _more(self) -> bool:
        """Read on, forgetting what lies behind; False at the end of the file."""
        if self._ended:
            return False
        size = max(CHUNK, len(self._buffer) - self._at)
        piece = self._reader.read(size)
        past = self._buffer[: self._at]
        if newlines := past.count("\n"):
            self._lines += newlines
            self._column = len(past) - past.rindex("\n") - 1
        else:
            self._column += len(past)
        self._buffer, self._at = self._buffer[self._at :] + piece, 0
        self._ended = not piece
        return bool(piece)

    def fail(self, message: str, at: int | None = None) -> ReadError:
        """An error that names the line and column of the place at hand."""
        past = self._buffer[: self._at if at is None else at]
        line = self._lines + past.count("\n")
        column = len(past) - past.rfind("\n") - 1 if "\n" in past else self._column + len(past)
        return ReadError(
            message, place=f"line {line}, column {column + 1}", source=self._reader.source
        )

    def peek(self) -> str:
        """The next character that is not white space, "" at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def expect(self, characters: str) -> str:
        """Pass over one of the characters; raises ReadError for another one."""
        found = self.peek()
        if not found:
            raise self.fail("the file ends too early; is it cut short?")
        if found not in characters:
            wanted = " or ".join(repr(c) for c in characters)
            raise self.fail(f"expected {wanted}, found {found!r}")
        self._at += 1
        return found

    def value(self) -> Any:
        """The JSON value at hand, decoded."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                open_string = error.msg.startswith("Unterminated")
                # An error near the buffer's end may only mean that the rest was not read yet.
                if (open_string or error.pos + 32 > len(self._buffer)) and self._more():
                    continue
                if self._ended and (open_string or error.pos + 32 > len(self._buffer)):
                    raise self.fail(
                        f"the file ends too early or is not JSON ({error.msg})"
                    ) from None
                raise self.fail(f"not JSON: {error.msg}", error.pos) from None
            except RecursionError:
                raise self.fail("not JSON of this kind: nested too deeply") from None
            except ValueError as error:  # an integer of thousands of digits
                raise self.fail(f"not JSON of this kind: {error}") from None
            # A number may go on in the next piece; of "1.5e+" the last two were not decoded.
            number = self._buffer[end - 1].isdigit()
            if number and end + 2 >= len(self._buffer) and not self._ended:
                self._more()
                continue
            self._at = end
            return value

    def members(self) -> Iterator[str]:
        """The keys of the object at hand; after each the caller reads its value."""
        self.expect("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            if self.peek() != '"':
                self.expect('"')
            key: str = self.value()
            self.expect(":")
            yield key
            if self.expect(",}") == "}":
                return

    def end(self) -> None:
        """Raise ReadError unless the file ends here."""
        if self.peek():
            raise self.fail("the document is over, but text follows")


def read_text(path: Path | str) -> str:
    """The whole text of a small file; raises ReadError for what is no UTF-8 text."""
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", source=str(path)) from None
    except UnicodeDecodeError:
        raise ReadError("the file is not UTF-8 text", source=str(path)) from None
    except ValueError:  # half of a character, or a zero
        raise ReadError("is no name that a file can have", source=repr(str(path))) from None


@contextlib.contextmanager
def writing(path: Path | str, *, binary: bool = False) -> Iterator[Any]:
    """A file to write that takes its place only when it is complete.

    Text is compressed when the name ends in .gz, .bz2 or .xz (the same bytes for the same
    content); a binary file is not, as it is mapped when it is read. When the work fails, an older
    file of that name stays as it was. Raises WriteError when there is no place or no right to
    write.
    """
    path = Path(os.path.realpath(path))  # what a link leads to is written, the link stays
    if path.exists() and not path.is_file():
        raise WriteError(f"{path}: cannot be written: it is no ordinary file")
    temporary, handle = "", -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = reserve(path)
        # A second descriptor: the file stays reserved until it has its name.
        with os.fdopen(os.dup(handle), "wb") as raw, contextlib.ExitStack() as stack:
            if binary:
                yield raw
            else:
                file = _compressing(raw, path.suffix, stack)
                text: TextIO = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
                yield text
                text.flush()
                text.detach()  # type: ignore[attr-defined]
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise WriteError(f"{path}: cannot be written: {reason}") from error
        raise
    finally:
        if handle >= 0:
            os.close(handle)


def _compressing(raw: IO[bytes], suffix: str, stack: contextlib.ExitStack) -> IO[bytes]:
    if suffix == ".gz":
        zipped = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0)
        return cast(IO[bytes], stack.enter_context(zipped))
    if suffix == ".bz2":
        return stack.enter_context(bz2.BZ2File(raw, "wb"))
    if suffix == ".xz":
        return stack.enter_context(lzma.LZMAFile(raw, "wb"))
    return raw
