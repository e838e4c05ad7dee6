"""A graph as a folder of arrays, which `load` maps into memory instead of reading them."""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from cqa.graphs.graph import Graph
from cqa.graphs.links import Links
from cqa.graphs.names import Names
from kb.columns import Array
from kopl_base.errors import ReadError
from kopl_base.progress import Progress
from kopl_base.stream import read_text, writing

VERSION = 1
HEADER = "graph.json"
_LINKS = {
    "rows": np.int64, "heads": np.int32, "starts": None, "tails": np.int32, "marks": np.uint8,
}  # fmt: skip
_NAMES = ("text_bytes", "text_starts", "text_buckets", "text_bucket_starts", "text_of", "number_of")

# What `save` calls its files of arrays.
_FILE = re.compile(rf"(?:{'|'.join(_LINKS)}|(?:entity|relation)_\w+)-[0-9a-f]{{8}}\.npy")


def save(graph: Graph, folder: Path | str) -> None:
    """Write a graph; it takes the place of an older one in the folder only when it is complete.

    The header names the files, whose names tell their content; it is written last, and then what
    an older graph left is removed. Raises WriteError when there is no place or no right to write.
    """
    folder = Path(folder)
    arrays: dict[str, Array] = {name: getattr(graph.links, name) for name in _LINKS}
    for prefix, names in (("entity", graph.entities), ("relation", graph.relations)):
        if names is not None:
            arrays.update({f"{prefix}_{part}": names.arrays[part] for part in _NAMES})
    described: dict[str, dict[str, Any]] = {}
    with Progress(f"writing {folder.name}", sum(a.nbytes for a in arrays.values())) as bar:
        for name, array in arrays.items():
            checksum = _checksum(array)
            file_name = f"{name}-{checksum:08x}.npy"
            with writing(folder / file_name, binary=True) as file:
                np.save(file, array)
            described[name] = {"file": file_name, "length": len(array), "crc32": checksum}
            bar.advance(array.nbytes)
    header = {
        "version": VERSION,
        "entities": graph.entity_count,
        "splits": list(graph.splits),
        "arrays": described,
    }
    with writing(folder / HEADER) as file:
        file.write(json.dumps(header, indent=1) + "\n")
    kept = {entry["file"] for entry in described.values()}
    for path in folder.iterdir():
        if path.name not in kept and _FILE.fullmatch(path.name):
            with contextlib.suppress(OSError):  # another process may have it open
                path.unlink()


def load(folder: Path | str, *, mapped: bool = True, verify: bool = False) -> Graph:
    """The graph of a folder that `save` wrote; ``mapped``: from its files, not copied to memory.

    ``verify`` reads everything and compares checksums; without it only sizes are compared. Raises
    ReadError for a folder that is not one, or is damaged or of another version.
    """
    folder = Path(folder)
    source = str(folder / HEADER)
    try:
        header = json.loads(read_text(folder / HEADER))
    except ValueError as error:
        raise ReadError(f"not JSON: {error}", source=source) from None
    if not isinstance(header, dict) or header.get("version") != VERSION:
        raise ReadError("not the header of a graph of this version; save it again", source=source)
    try:
        described = {
            str(name): (Path(entry["file"]).name, int(entry["length"]), int(entry["crc32"]))
            for name, entry in header["arrays"].items()
        }
        entity_count, splits = int(header["entities"]), tuple(map(str, header["splits"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ReadError("a part of the header is missing or wrong", source=source) from None
    arrays: dict[str, Array] = {}
    for name, (file_name, length, checksum) in described.items():
        arrays[name] = _array(folder / file_name, length, mapped)
        if verify and _checksum(arrays[name]) != checksum:
            raise ReadError("its content is damaged", source=str(folder / file_name))
    if missing := [name for name in _LINKS if name not in arrays]:
        raise ReadError(f"the arrays {', '.join(missing)} are missing", source=source)
    parts: dict[str, Any] = {name: arrays[name] for name in _LINKS}
    _check(parts, source)
    return Graph(
        Links(entity_count, **parts), splits, _names(arrays, "entity"), _names(arrays, "relation")
    )


def _checksum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).data) if array.size else 0


def _check(parts: dict[str, Any], source: str) -> None:
    """What would make look-ups fail later: cheap checks of ends, not of every link."""
    for name, kind in _LINKS.items():
        if parts[name].ndim != 1 or (kind is not None and parts[name].dtype != kind):
            raise ReadError(f"the array {name} is of another type", source=source)
    rows, starts = parts["rows"], parts["starts"]
    fits = (
        len(rows) % 2 == 1
        and starts.dtype in (np.int32, np.int64)
        and int(rows[-1]) == len(parts["heads"]) == len(starts) - 1
        and int(starts[-1]) == len(parts["tails"]) == len(parts["marks"])
    )
    if not fits:
        raise ReadError("the arrays do not fit together; the folder is damaged", source=source)


# What NumPy raises for a damaged file: its header is read as a Python expression.
_DAMAGED = (OSError, ValueError, EOFError, OverflowError, SyntaxError, TokenError)


def _array(path: Path, length: int, mapped: bool) -> Array:
    try:
        # An empty file cannot be mapped.
        array = np.load(path, mmap_mode="r" if mapped and length else None, allow_pickle=False)
    except _DAMAGED as error:
        raise ReadError(f"cannot be read: {error}", source=str(path)) from None
    if len(array) != length:
        raise ReadError(
            f"has {len(array)} numbers, the header says {length}; it is damaged", source=str(path)
        )
    found: Array = array.view(np.ndarray)  # slices of a plain array are ten times as quick
    return found


def _names(arrays: dict[str, Array], prefix: str) -> Names | None:
    parts = {part: arrays.get(f"{prefix}_{part}") for part in _NAMES}
    found = {part: array for part, array in parts.items() if array is not None}
    return Names(found) if len(found) == len(_NAMES) else None
