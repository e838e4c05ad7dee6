"""One way to open a knowledge base: by name, from any file that we read, or from a snapshot."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from kb.invented import invented, number_of
from kb.kqapro import read_kqapro, read_lines
from kb.problems import Problems, check, check_schema
from kb.rdf.reader import read_rdf
from kb.snapshot import (
    SnapshotError,
    Source,
    is_snapshot,
    read_header,
    read_snapshot,
    source_of,
    write_snapshot,
)
from kb.store import KnowledgeBase
from kopl_base.errors import ReadError, WriteError, counted
from kopl_base.stream import COMPRESSED, TextReader

log = logging.getLogger("kb")

Reader = Callable[[Path, Problems | None], KnowledgeBase]

# Readers by format; dumps and tables, which need options, are imported (kb.imports).
READERS: dict[str, Reader] = {"kqapro": read_kqapro, "lines": read_lines, "rdf": read_rdf}

_DOCUMENT = re.compile(r'\{\s*"(?:concepts|entities)"\s*:')
_ENDINGS = {".json": "kqapro", ".jsonl": "lines", ".ndjson": "lines"}
_ENDINGS |= dict.fromkeys((".nt", ".nq", ".ttl"), "rdf")


def bundled(name: str) -> Path | None:
    """The file of a bundled knowledge base ("world"), or None."""
    if name != "world":
        return None
    return Path(str(resources.files("kb") / "world" / "world.jsonl.gz"))


def read_invented(name: Path | str) -> KnowledgeBase | None:
    """The made-up knowledge base of a name like "invented:3"; None for another name."""
    number = number_of(str(name))
    return None if number is None else invented(number)


def locate(name: Path | str) -> Path:
    """The file that a name stands for; raises ReadError when there is none."""
    path = bundled(str(name)) or Path(name)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise ReadError(f"cannot be opened: {error.strerror}", source=str(path)) from error
    if not is_file:
        what = "there is no such file"
        if is_folder or path.exists():
            what = "is a folder" if is_folder else "is no ordinary file"
        raise ReadError(
            f"{what}; give 'world', a kb.json, JSON lines, RDF or a snapshot", source=str(path)
        )
    return path


def format_of(path: Path) -> str:
    """The format of a file: "snapshot", or a name of READERS; by its ending, else its content."""
    if is_snapshot(path):
        return "snapshot"
    endings = [s.lower() for s in path.suffixes if s.lower() not in COMPRESSED]
    if endings and endings[-1] in _ENDINGS:
        return _ENDINGS[endings[-1]]
    with TextReader(path) as text:
        start = text.read(4096).lstrip()
    if not start.startswith("{"):
        raise ReadError("not a knowledge base that can be read here", source=str(path))
    first_line = start.split("\n", 1)[0]
    begins_as_document = _DOCUMENT.match(start)
    return "lines" if not begins_as_document and '"kind"' in first_line else "kqapro"


def read(name: Path | str, problems: Problems | None = None) -> KnowledgeBase:
    """The knowledge base of a name or file, read from its source, never from a cache."""
    if (made_up := read_invented(name)) is not None:
        return made_up
    path = locate(name)
    form = format_of(path)
    if form == "snapshot":
        return read_snapshot(path)
    problems = problems or Problems(source=str(path))
    kb = READERS[form](path, problems)

    for found in check_schema(kb):
        problems.warning(found.code, found.place, found.message)
    if problems.warnings:
        shown = str(path).encode("utf-8", "backslashreplace").decode()  # a name may be odd
        count = counted(problems.warnings, "warning")
        log.warning("%s: %s while reading; 'kopl kb check' lists them", shown, count)
    return kb


def check_file(name: Path | str, *, limit: int | None = 1000) -> Problems:
    """All problems of a file: what its reader refuses or repairs, then what `check` finds.

    At most ``limit`` of each kind are listed (None: all); the counts are complete.
    """
    path = locate(name)
    problems = Problems(source=str(path), keep_going=True, limit=limit)
    form = format_of(path)
    try:
        kb = read_snapshot(path) if form == "snapshot" else READERS[form](path, problems)
    except ReadError as error:  # nothing behind this place can be read
        problems.error("unreadable", error.place or "file", error.message)
        return problems
    check(kb, problems)
    return problems


def load(name: Path | str, *, cache: bool = True) -> KnowledgeBase:
    """The knowledge base of a name ("world"), a file in any format that is read, or a snapshot.

    A name like "invented:3" stands for a made-up one (`kb.invented`). A file that is not a snapshot
    is kept as one in the cache folder (see `cache_folder`), so that it opens at once the next time;
    a changed file is read again. A snapshot that cannot be used is made again when its source is
    still there, else SnapshotError is raised. ReadError names the place of what is malformed.
    """
    if (made_up := read_invented(name)) is not None:
        return made_up
    path = locate(name)
    if is_snapshot(path):
        return _load_snapshot(path)
    folder = cache_folder() if cache else None
    if folder is None:
        return read(path)
    source = Source.of(path)
    digest = hashlib.sha256(os.fsencode(source.path)).hexdigest()[:16]
    kept = folder / f"{path.name.split('.')[0][:40]}-{digest}.kopl"  # names have a longest length
    try:
        if kept.is_file() and source_of(read_header(kept)) == source:
            return read_snapshot(kept)
    except (ReadError, OSError) as error:
        log.warning("%s; it is made again from %s", error, path)
    kb = read(path)
    try:
        write_snapshot(kb, kept, source)
    except WriteError as error:
        log.info("no snapshot was kept: %s", error)
    return kb


def _load_snapshot(path: Path) -> KnowledgeBase:
    try:
        return read_snapshot(path)
    except SnapshotError as refusal:
        try:
            source = source_of(read_header(path, any_version=True))
        except (SnapshotError, TypeError, KeyError, ValueError):
            raise refusal from None
        if source is None or not Path(source.path).is_file():
            raise
        log.warning("%s; it is made again from %s", refusal, source.path)
        origin = Path(source.path)
        kb = read(origin)
        try:
            write_snapshot(kb, path, Source.of(origin))
        except WriteError as error:
            log.warning("the snapshot could not be written again: %s", error)
        return kb


def cache_folder() -> Path | None:
    """Where snapshots are kept: KOPL_CACHE_DIR, else the user's cache folder; None when "off"."""
    wanted = os.environ.get("KOPL_CACHE_DIR")
    if wanted is not None:
        return None if wanted in ("", "off") else Path(wanted)
    if root := os.environ.get("XDG_CACHE_HOME"):
        return Path(root) / "kopl-toolkit"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    base = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return base / "kopl-toolkit"
