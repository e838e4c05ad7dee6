"""Own data on the page: a knowledge base or tables sent, checked, read and kept.

What is sent is read in a process of its own with bounded memory, by the commands of ``kopl kb``;
the server opens the snapshot that came of it. Snapshots lie below the playground's folder and are
served again after a restart.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import json
import lzma
import re
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import uuid4

from kb import load
from kb.imports.common import Sheet, SheetForm
from kopl_base.errors import KoplError
from kopl_base.stream import writing
from kopl_cli.serve.bases import MOST_BASES, Base, Playground
from kopl_cli.serve.children import Child
from kopl_cli.serve.routes import (
    MAYBE,
    MAYBE_TEXT,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    BusyError,
    Field,
    RequestError,
    Route,
    listed,
    record,
)

# Bytes of a request, columns of a table, bytes of its first line, tables at once.
BODY, COLUMNS, LINE, TABLES = 50 * 1024 * 1024, 1000, 1 << 20, 20
# Memory and seconds that reading may take.
MEMORY, SECONDS = 4 << 30, 900.0
# Problems, rows and characters of a cell that are shown.
PROBLEMS, ROWS, CELL = 200, 5, 200
# Jobs that are remembered.
JOBS = 20
# Bytes that a compressed file may unpack to, and the memory that unpacking takes.
UNPACKED, WINDOW = 200 << 20, 128 << 20
# Characters of a mapping that is sent as text.
MAPPING = 1 << 20
# Lists and objects in one another, in brackets: the reader of YAML looks at all for each sign.
DEEP = 100
UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(memlimit=WINDOW),
}
# What files begin with that are not read, and what to do about it.
MAGIC = (
    (b"\x28\xb5\x2f\xfd", "compressed (zstd)", "unpack it first"),
    (b"PK\x03\x04", "an archive or a workbook", "unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old workbook", "save the sheet as CSV"),
    (b"PAR1", "a Parquet file", "save it as CSV"),
    (b"koplkb\r\n", "a snapshot", "send the kb.json that it was made from"),
)  # fmt: skip


@dataclass
class Upload:
    """The reading of what was sent."""

    id: str
    name: str
    what: str = "kb"
    state: str = "running"
    done: float = 0.0
    message: str = "reading it"
    place: str | None = None
    report: dict[str, Any] | None = None
    findings: list[dict[str, str]] = field(default_factory=list)


class Uploads:
    """The knowledge bases that were sent to a playground."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self.folder = playground.folder / "bases"
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "upload")
        self._jobs: dict[str, Upload] = {}
        self._folders: dict[str, Path] = {}
        self._child: Child | None = None
        self._waiting = 0
        self._reload()

    def _reload(self) -> None:
        """Serve again what was sent to another server; what was not read to its end goes."""
        kept = []
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            try:
                about = json.loads((folder / "about.json").read_text("utf-8"))
                kept.append((float(about["time"]), str(about["name"]), folder))
            except (OSError, ValueError, KeyError, TypeError):
                shutil.rmtree(folder, ignore_errors=True)
        for _, name, folder in sorted(kept):
            try:
                self._serve(name, folder)
            except KoplError as error:
                print(f"kopl: {folder}: is not served: {error}", flush=True)

    def _serve(self, name: str, folder: Path) -> Base:
        place = folder / "kb.kopl"
        base = self.playground.add(load(place), name, place=str(place.resolve()), uploaded=True)
        self._folders[base.id] = folder
        return base

    # --- what is sent ----------------------------------------------------------------------------

    def _received(self, given: Mapping[str, Any]) -> tuple[str, Path, list[Path]]:
        """The files of a request in a folder of their own; raises RequestError."""
        is_table = given["file"] == "table"
        files = given["files"]
        if files is None:
            ending = "csv" if is_table else "txt"
            named = re.sub(r"\.(csv|tsv|tab|txt|jsonl?)$", "", given["name"], flags=re.IGNORECASE)
            files = [{"name": f"{_plain(named)}.{ending}", **_content(given, "text")}]
        elif not is_table or given["text"] is not None or given["base64"] is not None:
            raise RequestError("files: are for several tables; give text otherwise", field="files")
        job = uuid4().hex[:12]
        contents: dict[str, bytes] = {}
        for one in files:
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                raise RequestError("files: each has a name and a text", field="files")
            given_name = re.sub(r"\.(gz|bz2|xz)$", "", one["name"], flags=re.IGNORECASE)
            stem, dot, ending = given_name.rpartition(".")
            kind = ending.lower() if dot and ending.lower() in ("tsv", "tab") else "csv"
            name = f"{_plain(stem if dot else given_name)}.{kind}" if is_table else "data"
            if name in contents:
                raise RequestError(f"files: two are called {name}", field="files")
            contents[name] = _checked(_bytes(one, one["name"]), one["name"], is_table=is_table)
        folder = self.folder / job
        folder.mkdir(parents=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        return job, folder, [folder / name for name in contents]

    def _ready(self) -> None:
        with self._lock:
            if self._waiting >= 2:
                raise BusyError("other data are being read", to_try="try it again in a moment")
            self._waiting += 1

    def _run(self, folder: Path, arguments: Sequence[str], job: Upload | None = None) -> Child:
        """Run a command to its end; raises RequestError for one that took too long."""
        child = self._child = Child(folder / "work", arguments, memory=MEMORY)
        try:
            late = time.monotonic() + SECONDS
            while child.ended(0.25) is None:
                if time.monotonic() > late or self.playground.closing.is_set():
                    raise RequestError(f"reading it takes more than {SECONDS:g} s", status=422)
                if job is not None and (stage := child.stage()) is not None:
                    job.message = stage.title
                    job.done = max(job.done, min(0.95, stage.share))
            return child
        finally:
            child.end(1.0)
            self._child = None

    # --- tables: a mapping -----------------------------------------------------------------------

    def draft(self, given: Mapping[str, Any]) -> Future[dict[str, Any]]:
        """The mapping that the values of tables suggest."""
        _, folder, files = self._received(given)
        try:
            self._ready()
            return self._pool.submit(self._draft, folder, files)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _draft(self, folder: Path, files: Sequence[Path]) -> dict[str, Any]:
        try:
            out = folder / "map.yaml"
            child = self._run(folder, ["kb", "import", "--draft", *map(str, files), "-o", str(out)])
            if child.process.returncode:
                raise RequestError(_failure(child, folder)[0], status=422, field="text")
            text = out.read_text("utf-8")
            mapping, columns = drafted(text)
            shown = [_preview(key, table, folder) for key, table in mapping["tables"].items()]
            return {
                "mapping": mapping, "text": text, "columns": columns, "problems": _unnamed(shown),
                "preview": shown[0] if len(shown) == 1 else shown,
                "doubts": sum(one["doubt"] for one in columns),
            }  # fmt: skip
        finally:
            self._waiting -= 1
            shutil.rmtree(folder, ignore_errors=True)

    # --- reading ---------------------------------------------------------------------------------

    def read(self, given: Mapping[str, Any]) -> Upload:
        """Begin to read what is sent; raises RequestError and BusyError."""
        if len(self.playground.bases) >= MOST_BASES:
            raise RequestError(
                f"{MOST_BASES} knowledge bases are held already", status=503,
                to_try="take one away that was uploaded",
            )  # fmt: skip
        if given["file"] == "table" and given["mapping"] is None:
            raise RequestError(
                "mapping: tables need one; ask for a draft first", field="mapping",
                to_try='send it with "draft": true',
            )  # fmt: skip
        id, folder, files = self._received(given)
        try:
            if given["file"] == "table":
                _write_mapping(given["mapping"], folder, files)
            self._ready()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        job = Upload(id, given["name"])
        self._jobs[id] = job
        for old in [*self._jobs][:-JOBS]:
            del self._jobs[old]
        self._pool.submit(self._reading, job, folder, files)
        return job

    def _reading(self, job: Upload, folder: Path, files: Sequence[Path]) -> None:
        try:
            self._read(job, folder, files)
        except (KoplError, OSError) as error:
            _fail(job, str(getattr(error, "message", error)), getattr(error, "place", None))
        except Exception as error:  # whoever waits must hear of it
            _fail(job, f"{type(error).__name__}: {error}")
            raise
        finally:
            self._waiting -= 1
            if job.state != "done":
                shutil.rmtree(folder, ignore_errors=True)

    def _read(self, job: Upload, folder: Path, files: Sequence[Path]) -> None:
        out = folder / "kb.kopl"
        if (folder / "map.json").exists():
            command = ["kb", "import", "--mapping", str(folder / "map.json"), "-o", str(out)]
            checked = out
        else:
            command = ["kb", "snapshot", str(files[0]), str(out)]
            checked = files[0]
            if self._findings(job, folder, checked):
                return
        child = self._run(folder, command, job)
        if child.process.returncode:
            _fail(job, *_failure(child, folder))
            return
        if checked == out:
            self._findings(job, folder, out)
        job.message = "opening it"
        with writing(folder / "about.json") as file:
            json.dump({"name": job.name, "time": time.time()}, file, ensure_ascii=False)
        try:
            base = self._serve(job.name, folder)
        except BaseException:
            (folder / "about.json").unlink()
            raise
        for path in (*files, folder / "map.json"):
            path.unlink(missing_ok=True)
        shutil.rmtree(folder / "work", ignore_errors=True)
        job.report = {**base.told(), "findings": job.findings}
        job.done, job.message, job.state = 1.0, "", "done"

    def _findings(self, job: Upload, folder: Path, path: Path) -> bool:
        """Check a file; gives whether it has errors, which the job then tells."""
        child = self._run(folder, ["kb", "check", str(path), "--json"], job)
        found = []
        for line in child.out.read_text("utf-8", "replace").splitlines()[:PROBLEMS]:
            one = json.loads(line)
            found.append({
                "level": one["severity"], "code": one["code"], "place": one["place"],
                "message": one["message"],
            })  # fmt: skip
        job.findings = sorted(found, key=lambda one: one["level"])
        if child.process.returncode:
            first = next((one for one in job.findings if one["level"] == "error"), None)
            if first is None:
                _fail(job, *_failure(child, folder))
            else:
                _fail(job, first["message"], first["place"])
            return True
        return False

    def job(self, id: str) -> Upload:
        """A reading; raises RequestError for one that is not known."""
        if (found := self._jobs.get(id)) is None:
            raise RequestError(f"nothing is read under {id[:40]!r}", status=404, field="job")
        return found

    def remove(self, id: str) -> None:
        """Let go of a knowledge base that was sent; raises RequestError for another one."""
        self.playground.remove(id)
        if (folder := self._folders.pop(id, None)) is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Stop reading."""
        child = self._child
        if child is not None:
            child.process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _fail(job: Upload, message: str, place: str | None = None) -> None:
    job.message, job.place = message, place
    job.state = "failed"


def _plain(name: str) -> str:
    """A name that may be that of a file."""
    return re.sub(r"\W+", "_", name).strip("_")[:60] or "table"


def _content(given: Mapping[str, Any], alone: str) -> dict[str, Any]:
    content = {name: given[name] for name in ("text", "base64") if given[name] is not None}
    if len(content) != 1:
        raise RequestError("give the file as text, or as base64", field=alone)
    return content


def _bytes(one: Mapping[str, Any], name: str) -> bytes:
    text, encoded = one.get("text"), one.get("base64")
    if isinstance(text, str) and encoded is None:
        return text.encode("utf-8")
    if isinstance(encoded, str) and text is None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise RequestError(f"{name[:100]}: this is not base64", field="base64") from None
    raise RequestError(f"{name[:100]}: give a text, or base64", field="files")


def _checked(content: bytes, name: str, *, is_table: bool) -> bytes:
    """The content, unpacked; raises RequestError where it is seen at once that it is no text."""
    shown = name[:100]
    content = _unpacked(content, shown)
    for magic, what, todo in MAGIC:
        if content.startswith(magic):
            raise RequestError(f"{shown}: is {what}", status=422, field="text", to_try=todo)
    if not content.strip():
        raise RequestError(f"{shown}: is empty", status=422, field="text")
    if is_table:
        first, end, _ = content[: LINE + 1].partition(b"\n")
        if not end and len(content) > LINE:
            raise RequestError(
                f"{shown}, line 1: is longer than {LINE:,} bytes", status=422, field="text"
            )
        width = 1 + max(first.count(mark) for mark in (b",", b";", b"\t", b"|"))
        if width > COLUMNS:
            raise RequestError(
                f"{shown}, line 1: has {width:,} columns; {COLUMNS:,} are read at most",
                status=422, field="text", to_try="leave columns out, or split the table",
            )  # fmt: skip
    return content


def _unpacked(content: bytes, name: str) -> bytes:
    """A file that is compressed without that, as far as it is not too large."""
    for magic, unpacker in UNPACKERS.items():
        if content.startswith(magic):
            try:
                found: bytes = unpacker().decompress(content, UNPACKED + 1)
            except (zlib.error, OSError, lzma.LZMAError, EOFError, MemoryError) as error:
                raise RequestError(
                    f"{name}: cannot be unpacked: {error}", status=422, field="base64"
                ) from None
            if len(found) > UNPACKED:
                raise RequestError(
                    f"{name}: unpacks to more than {UNPACKED >> 20} MB", status=413, field="base64"
                )
            return found
    return content


def _failure(child: Child, folder: Path) -> tuple[str, str | None]:
    """What a command said that failed, without the folder, and the place, where it names one."""
    said = child.err.read_text("utf-8", "replace")
    if "MemoryError" in said or child.process.returncode < 0:
        return (
            f"reading it takes more than {MEMORY >> 30} GB of memory, or it ended the reader",
            None,
        )
    text = said.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "").strip()
    if "Traceback (most recent call last)" in text:
        text = "it cannot be read: " + text.splitlines()[-1]
    text = text.removeprefix("kopl: ")[-4000:] or "it cannot be read"
    place = re.search(r"(?:line \d+(?:, column \S+)?|(?:entities|concepts)/\S+)", text)
    return text, None if place is None else place[0].rstrip(":,;")


# --- mappings -------------------------------------------------------------------------------------


def drafted(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A drafted mapping as an object, and what it says of each column in its comments."""
    import yaml  # type: ignore[import-untyped]

    # Texts stay texts: a column may be called 2020 or no.
    mapping: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)
    columns, table, comment = [], "", ""
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if indent == 2 and line.endswith(":"):
            table = next(iter(yaml.load(line.strip(), Loader=yaml.BaseLoader)))
        elif indent == 6 and line.lstrip().startswith("#"):
            comment = line.strip()
        elif indent == 6:
            [(name, guess)] = yaml.load(line.strip(), Loader=yaml.BaseLoader).items()
            # What else might be written stands behind the values, for those who read the file.
            seen = re.split(r" \| (?=or |but )", comment.lstrip("#?").strip())[0]
            columns.append({
                "table": table, "name": name, "guess": guess, "doubt": comment.startswith("#?"),
                "seen": seen,
            })  # fmt: skip
            comment = ""
    return mapping, columns


def _write_mapping(given: Any, folder: Path, files: Sequence[Path]) -> None:
    """Write a mapping beside the tables; it may name these, and no other file of the machine."""
    mapping = _parsed(given) if isinstance(given, str) else given
    tables = mapping.get("tables") if isinstance(mapping, dict) else None
    if not isinstance(tables, dict) or not tables:
        raise RequestError("mapping: an object with tables was expected", field="mapping")
    known = {path.name for path in files}
    for key, table in tables.items():
        named = table.get("file") if isinstance(table, dict) else None
        several = named if isinstance(named, list) else [named]
        if not several or any(one not in known for one in several):
            raise RequestError(
                f"mapping: tables/{str(key)[:40]}: its file must be one of {', '.join(known)}",
                field="mapping",
            )
    with writing(folder / "map.json") as file:
        json.dump(mapping, file, ensure_ascii=False)


def _parsed(text: str) -> Any:
    """A mapping that is sent as YAML; raises RequestError with the line of what is wrong."""
    import yaml

    if len(text) > MAPPING:
        raise RequestError(f"mapping: more than {MAPPING:,} characters", field="mapping")
    if _depth(text) > DEEP:
        raise RequestError(f"mapping: more than {DEEP} brackets are open", field="mapping")
    try:
        # A part that is named and used again can make a small text as large as one likes.
        if any(isinstance(one, yaml.AliasEvent) for one in yaml.parse(text)):
            raise RequestError("mapping: anchors and aliases are not read", field="mapping")
        return yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark is not None else ""
        said = getattr(error, "problem", None) or "this is no YAML"
        raise RequestError(f"mapping: {place}{said}", status=422, field="mapping") from None


def _depth(text: str) -> int:
    """How many brackets are open at once at most, those in quotes among them."""
    signs = (1 if one[0] in "[{" else -1 for one in re.finditer(r"[\[\]{}]", text))
    return max(accumulate(signs), default=0)


def _preview(key: str, table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The header and the first rows of a table."""
    mark = table.get("delimiter", "")
    path = folder / table["file"]
    form = SheetForm.of(
        path, "\t" if mark == "tab" else mark, table.get("encoding", ""),
        quoted=table.get("quoted") != "false",
    )  # fmt: skip
    with Sheet(path, form) as sheet:
        header = [name[:CELL] for name in sheet.header]
        rows = [cells for (_, cells, _), _ in zip(sheet.rows(), range(ROWS), strict=False)]
    return {"table": key, "header": header, "rows": [[c[:CELL] for c in row] for row in rows]}


def _unnamed(previews: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What is left out as it has no name, such as the numbers of rows that some programs write."""
    return [
        {
            "level": "warning", "place": f"{one['table']}, column {number}",
            "message": "it has no name and is left out; to keep it, name it in the first line",
        }
        for one in previews
        for number, name in enumerate(one["header"], 1)
        if not name and any(len(row) >= number and row[number - 1] for row in one["rows"])
    ]  # fmt: skip


# --- the routes -----------------------------------------------------------------------------------


def _post(playground: Playground, given: dict[str, Any]) -> Any:
    uploads = playground.part(Uploads)
    if given["draft"]:
        if given["file"] != "table":
            raise RequestError("draft: only tables need a mapping", field="draft")
        return uploads.draft(given)
    return asdict(uploads.read(given))


def _job(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    return asdict(playground.part(Uploads).job(given["job"]))


def _delete(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    playground.part(Uploads).remove(given["id"])
    return {"removed": given["id"]}


def teller(playground: Playground, _: Base) -> dict[str, Any]:
    """What ``/api/info`` says of sending data."""
    full = len(playground.bases) >= MOST_BASES
    why = f"{MOST_BASES} knowledge bases are held; take one away that was sent" if full else None
    return {"can": {"upload": {"yes": not full, "why": why}}, "limits": {"upload": BODY}}


_JOB = record(
    id=TEXT, name=TEXT, what=TEXT, state={"enum": ["running", "done", "failed"]}, done=NUMBER,
    message=TEXT, place=MAYBE_TEXT, report=MAYBE, findings=listed(OBJECT),
)  # fmt: skip
# What comes back at once where the mapping of tables is drafted.
_DRAFT = record(
    mapping=OBJECT, text=TEXT, columns=listed(OBJECT), problems=listed(OBJECT),
    preview={"type": ["object", "array"]}, doubts=WHOLE,
)  # fmt: skip

ROUTES = [
    Route(
        "POST", "/api/kb", "Send a knowledge base, or tables with a mapping.", _post,
        (
            Field("name", "text", "what it is to be called", required=True, least=1, most=100),
            Field(
                "file", "text", "what is sent: KQA Pro's JSON or our JSON lines, or tables",
                required=True, choices=("kb.json", "table"),
            ),
            Field("text", "text", "the file"),
            Field("base64", "text", "the file's bytes, where it is not UTF-8"),
            Field("files", "list", "several tables: name, text or base64", least=1, most=TABLES),
            Field("mapping", "any", "of tables: what rows and columns say, as object or YAML"),
            Field("draft", "truth", "draft the mapping, and read nothing", default=False),
        ),
        {"anyOf": [_JOB, _DRAFT]}, body=BODY, status=202,
    ),
    Route(
        "GET", "/api/kb/upload/{job}", "How far the reading is.", _job,
        (Field("job", "text", "its id", required=True),), _JOB,
    ),
    Route(
        "DELETE", "/api/kb/{id}", "Take away a knowledge base that was sent.", _delete,
        (Field("id", "text", "its id", required=True),), record(removed=TEXT),
    ),
]  # fmt: skip
