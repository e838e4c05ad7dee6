"""Snapshots: a knowledge base's columns in one file that is mapped instead of read.

Layout: 8 bytes of magic, version and header length (uint32 each), CRC-32 of the header, the header
(JSON: the columns, the SHA-256 of their content, the source), then the columns, each aligned to 64
bytes. A file of another version, cut short or altered anywhere is refused.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from kb.columns import Array, Columns, by_name, fingerprint_of
from kb.store import KnowledgeBase
from kopl_base.errors import ReadError
from kopl_base.stream import writing

MAGIC = b"koplkb\r\n"
VERSION = 1
# Raised when a reader's rules change: what an older one made of a file is not used any more.
READER = 2
_PREFIX = struct.Struct("<8sIII")
_ALIGN = 64


class SnapshotError(ReadError):
    """A snapshot that is damaged, cut short or of another version."""

    kind = "snapshot"


@dataclass(frozen=True)
class Source:
    """The file that a snapshot was made from, and what tells whether it changed since."""

    path: str
    size: int
    modified_ns: int
    reader: int = READER

    @classmethod
    def of(cls, path: Path) -> Source:
        """The present state of a file."""
        status = path.stat()
        return cls(str(path.resolve()), status.st_size, status.st_mtime_ns)


def is_snapshot(path: Path) -> bool:
    """Whether a file begins as a snapshot does; raises ReadError when it cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise ReadError(f"cannot be opened: {error.strerror}", source=str(path)) from error


def write_snapshot(kb: KnowledgeBase, path: Path | str, source: Source | None = None) -> None:
    """Write a knowledge base as a snapshot; the file appears only when it is complete."""
    columns: list[dict[str, Any]] = []
    at = 0
    for name, column in by_name(kb.arrays).items():
        columns.append(
            {"name": name, "dtype": column.dtype.str, "length": len(column), "offset": at}
        )
        at += -(-column.nbytes // _ALIGN) * _ALIGN
    header = json.dumps(
        {
            "entities": kb.entity_count,
            "sha256": kb.fingerprint,
            "size": at,
            "source": asdict(source) if source else None,
            "columns": columns,
        }
    ).encode()
    header += b" " * (-(_PREFIX.size + len(header)) % _ALIGN)
    with writing(path, binary=True) as file:
        file.write(_PREFIX.pack(MAGIC, VERSION, len(header), zlib.crc32(header)))
        file.write(header)
        for column in by_name(kb.arrays).values():
            data = np.ascontiguousarray(column).tobytes()
            file.write(data + b"\0" * (-len(data) % _ALIGN))


def read_header(path: Path | str, *, any_version: bool = False) -> dict[str, Any]:
    """The header of a snapshot; raises SnapshotError when it cannot be trusted.

    Prefix, checksum and the field ``source`` stay where they are in every version, so that a file
    of another version can be made again (``any_version``).
    """
    with Path(path).open("rb") as file:
        prefix = file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size or not prefix.startswith(MAGIC):
            raise _refusal(path, "it is not a snapshot, or cut short")
        _, version, length, checksum = _PREFIX.unpack(prefix)
        if version != VERSION and not any_version:
            raise _refusal(path, f"it has version {version}, this toolkit reads {VERSION}")
        header = file.read(min(length, os.fstat(file.fileno()).st_size))
    if len(header) < length or zlib.crc32(header) != checksum:
        raise _refusal(path, "its header is damaged or cut short")
    found: dict[str, Any] = json.loads(header)
    found["start"] = _PREFIX.size + length
    return found


def source_of(header: Mapping[str, Any]) -> Source | None:
    """The source that a snapshot's header names."""
    return Source(**header["source"]) if header["source"] else None


def read_snapshot(path: Path | str, *, verify: bool = True) -> KnowledgeBase:
    """The knowledge base in a snapshot, mapped from the file.

    Raises SnapshotError for a snapshot of another version or one that is damaged, and ReadError
    when there is no such file. ``verify=False`` trusts the content (its length is checked).
    """
    path = Path(path)
    try:
        header = read_header(path)
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ReadError(f"cannot be opened: {error.strerror}", source=str(path)) from error
    if len(mapped) != header["start"] + header["size"]:
        raise _refusal(path, "it is cut short or something was added to it")
    arrays: dict[str, Array] = {
        column["name"]: np.frombuffer(
            mapped, np.dtype(column["dtype"]), column["length"], header["start"] + column["offset"]
        )
        for column in header["columns"]
    }
    if verify and not _intact(mapped, header, arrays):
        raise _refusal(path, "its content is damaged (the checksum differs)")
    return KnowledgeBase(cast(Columns, arrays), header["entities"], header["sha256"])


def _intact(mapped: mmap.mmap, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bool:
    """Whether the columns have their checksum, and only zeros stand between them."""
    for column in header["columns"]:
        end = header["start"] + column["offset"] + arrays[column["name"]].nbytes
        if any(mapped[end : end + -(end - header["start"]) % _ALIGN]):
            return False
    return fingerprint_of(cast(Columns, arrays), header["entities"]) == str(header["sha256"])


def _refusal(path: Path | str, reason: str) -> SnapshotError:
    return SnapshotError(
        f"the snapshot cannot be used: {reason}; make it again with 'kopl kb snapshot'",
        source=str(path),
    )
