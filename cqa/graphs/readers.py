"""Reading graphs: folders of benchmarks, OpenKE, names in tables, NumPy archives, saved graphs."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from cqa.graphs.files import HEADER, load
from cqa.graphs.graph import SPLITS, Graph, from_triples
from cqa.graphs.names import Names
from cqa.graphs.triple_files import (
    Columns,
    at_least_one,
    check_below,
    check_dense,
    line_of_row,
    read_name_list,
    read_name_object,
    read_named,
    read_numbers,
)
from kb.arrays import Ids
from kopl_base.errors import KoplError, ReadError

# Of the facts ordered by time: what is train, and what is train or valid.
TIME_SHARES = (0.8, 0.9)


def read_graph(path: Path | str, format: str | None = None) -> Graph:
    """The graph in a file or folder.

    ``format`` is found by what is there when it is None:

    - "saved": what `cqa.graphs.files.save` wrote; mapped, not read.
    - "betae": train.txt, valid.txt and test.txt of three numbers a line (head, relation, tail), in
      both directions: relation 2r forward, 2r + 1 inverse; id2ent.json and id2rel.json if there.
    - "openke": train2id.txt, … (head, tail, relation), entity2id.txt and relation2id.txt.
    - "temporal": train.txt, … of head, relation, tail, time; entity2id.txt and relation2id.txt. All
      facts are split anew by time, as `by_time` does.
    - "tsv": three names a line separated by tabs: a file, or train, valid (or dev) and test.
    - "numpy": an .npz with arrays train, valid, test of shape (n, 3) whose relations have no
      direction, and names in arrays entities and relations if there; or one array in an .npy.

    Raises ReadError, with file and line, for what cannot be read, and KoplError.
    """
    path = Path(path)
    if format is None:
        format = _format_of(path)
    if format not in FORMATS:
        raise KoplError(f"there is no graph format {format!r}; give one of {', '.join(FORMATS)}")
    return FORMATS[format](path)


def _format_of(path: Path) -> str:
    if not path.exists():
        raise ReadError("there is no such file or folder", source=str(path))
    if path.is_file():
        return "numpy" if path.suffix in (".npz", ".npy") else "tsv"
    if (path / HEADER).exists():
        return "saved"
    if (path / "train2id.txt").exists():
        return "openke"
    if (path / "id2ent.json").exists():
        return "betae"
    train = path / "train.txt"
    if train.exists():
        with train.open("rb") as file:
            fields = next((line.split() for line in file if line.strip()), [])
        # Numbers that are no number of an entity, too: their reader names the line.
        if fields and all(map(_NUMBER.fullmatch, fields)):
            return "temporal" if len(fields) > 3 else "betae"
    return "tsv"


_NUMBER = re.compile(rb"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")


def _betae(folder: Path) -> Graph:
    entities = _object_names(folder / "id2ent.json", "entity")
    directed = folder / "id2rel.json"
    relations = None
    if directed.exists():
        # Names of both directions in turn; those of the inverses follow from the others.
        relations = Names.of(read_name_object(directed)[::2], "relation")
    parts: list[Ids] = []
    files = _split_files(folder, ("{}.txt",))
    for path in files:
        rows = read_numbers(path, 3)
        _check(path, rows, (0, 2), entities, "entity")
        _check(path, rows, (1,), relations, "relation", directions=2)
        parts.append(_forward(path, rows))
    at_least_one(parts, folder)
    return from_triples(parts, SPLITS[: len(parts)], entities=entities, relations=relations)


def _check(
    path: Path,
    rows: Columns,
    columns: Sequence[int],
    names: Names | None,
    what: str,
    *,
    directions: int = 1,
    skip: int = 0,
) -> None:
    """Raise ReadError for a number that no name has or, without names, that is hardly right."""
    for column in columns:
        if names is None:
            check_dense(path, rows, column, what, skip)
        else:
            check_below(path, rows, column, directions * len(names), what, skip)


def _forward(path: Path, rows: Columns) -> Ids:
    """The triples of forward relations, after a check that each has its inverse."""
    inverse = (rows[:, 1] & 1).astype(np.bool_)
    both = rows.copy()
    both[inverse] = both[inverse][:, ::-1]
    both[:, 1] >>= 1
    size = int(rows.max(initial=0)) + 1
    keys = (both[:, 1] * size + both[:, 0]) * size + both[:, 2]
    for one, other in ((~inverse, inverse), (inverse, ~inverse)):
        alone = np.flatnonzero(one & ~np.isin(keys, keys[other]))
        if len(alone):
            at = int(alone[0])
            head, relation, tail = rows[at].tolist()
            raise ReadError(
                f"the triple {head} {relation} {tail} lacks its inverse {tail} {relation ^ 1}"
                f" {head}; relation 2r + 1 must be the inverse of 2r (read triples of one direction"
                ' with the format "tsv")',
                place=f"line {line_of_row(path, at)}",
                source=str(path),
            )
    forward: Ids = both[~inverse].astype(np.int32)
    return forward


def _openke(folder: Path) -> Graph:
    entities = _list_names(folder / "entity2id.txt", "entity", counted=True)
    relations = _list_names(folder / "relation2id.txt", "relation", counted=True)
    parts: list[Ids] = []
    for path in _split_files(folder, ("{}2id.txt",)):
        with path.open("rb") as file:
            first = file.readline(1 << 16).strip()
        rows = read_numbers(path, 3, skip=1)
        if not first.isdigit() or int(first) != len(rows):
            raise ReadError(
                f"the number of triples ({len(rows)}) was expected, not"
                f" {first[:60].decode('utf-8', 'replace')!r}; is the file cut short?",
                place="line 1",
                source=str(path),
            )
        _check(path, rows, (0, 1), entities, "entity", skip=1)
        _check(path, rows, (2,), relations, "relation", skip=1)
        parts.append(rows[:, [0, 2, 1]].astype(np.int32))
    at_least_one(parts, folder)
    return from_triples(parts, SPLITS[: len(parts)], entities=entities, relations=relations)


def _temporal(folder: Path) -> Graph:
    entities = _list_names(folder / "entity2id.txt", "entity")
    relations = _list_names(folder / "relation2id.txt", "relation")
    facts = []
    for path in _split_files(folder, ("{}.txt",)):
        # Some publications have a fifth column, which is always 0.
        rows = read_numbers(path, 4, optional=1)
        for column, names in ((0, entities), (1, relations), (2, entities)):
            if names is not None:
                what = "relation" if column == 1 else "entity"
                check_below(path, rows, column, len(names), what)
        facts.append(rows)
    at_least_one(facts, folder)
    return by_time(np.concatenate(facts), entities, relations)


def by_time(facts: Columns, entities: Names | None = None, relations: Names | None = None) -> Graph:
    """The graph of facts (head, relation, tail, time), split by time as ICEWS18 is.

    Of a fact that is repeated the earliest is kept. Of the facts in order of time the first 80 %
    are train, the next 10 % valid, the last 10 % test. Facts of valid and test with an entity or
    relation that train lacks are left out, and both are numbered anew by those of train.
    """
    facts = facts[np.argsort(facts[:, 3], kind="stable")]
    size = int(facts[:, :3].max()) + 1
    keys = (facts[:, 1] * size + facts[:, 0]) * size + facts[:, 2]
    first = np.sort(np.unique(keys, return_index=True)[1])
    triples = facts[first, :3]
    cuts = [int(len(triples) * share) for share in TIME_SHARES]
    parts = np.split(triples, cuts)
    train = parts[0]
    known = np.unique(train[:, [0, 2]])
    used = np.unique(train[:, 1])
    kept = [
        part[np.isin(part[:, [0, 2]], known).all(axis=1) & np.isin(part[:, 1], used)]
        for part in parts
    ]
    renumbered = [
        np.stack(
            [
                np.searchsorted(known, part[:, 0]),
                np.searchsorted(used, part[:, 1]),
                np.searchsorted(known, part[:, 2]),
            ],
            axis=1,
        ).astype(np.int32)
        for part in kept
    ]
    return from_triples(
        renumbered,
        entity_count=len(known),
        relation_count=len(used),
        entities=_chosen(entities, known),
        relations=_chosen(relations, used),
    )


def _chosen(names: Names | None, numbers: Columns) -> Names | None:
    return None if names is None else Names.of([names[number] for number in numbers.tolist()])


def _tsv(path: Path) -> Graph:
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    files = [path] if path.is_file() else _split_files(path, ("{}.txt", "{}.tsv"))
    parts = [read_named(file, entities, relations) for file in files]
    at_least_one(parts, path)
    return from_triples(
        parts, SPLITS[: len(parts)], entities=Names.of(list(entities)),
        relations=Names.of(list(relations)),
    )  # fmt: skip


def _numpy(path: Path) -> Graph:
    source = str(path)
    try:
        loaded = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ReadError(f"cannot be read as a NumPy file: {error}", source=source) from None
    if isinstance(loaded, np.ndarray):
        arrays = {"train": loaded}
    else:
        with loaded:
            arrays = {name: _array(loaded, name, source) for name in loaded.files}
    splits = [split for split in SPLITS if split in arrays]
    if splits[:1] != ["train"]:
        raise ReadError(f"has no array train, only {', '.join(arrays)}", source=source)
    for split in splits:
        array = arrays[split]
        if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
            raise ReadError(
                f"the array {split} must hold integers in the shape (n, 3), not {array.dtype} in"
                f" {array.shape}",
                source=source,
            )
    try:
        entities, relations = (
            Names.of([str(name) for name in arrays[what].tolist()], what)
            if what in arrays
            else None
            for what in ("entities", "relations")
        )
        parts = [arrays[split] for split in splits]
        return from_triples(parts, splits, entities=entities, relations=relations)
    except KoplError as error:
        raise ReadError(str(error), source=source) from None


def _array(loaded: Mapping[str, Any], name: str, source: str) -> npt.NDArray[Any]:
    """One array of an archive; only now it is read."""
    try:
        found: npt.NDArray[Any] = loaded[name]
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise ReadError(f"the array {name} cannot be read: {error}", source=source) from None
    return found


FORMATS: dict[str, Callable[[Path], Graph]] = {
    "saved": load,
    "betae": _betae,
    "openke": _openke,
    "temporal": _temporal,
    "tsv": _tsv,
    "numpy": _numpy,
}


def _split_files(folder: Path, forms: Sequence[str]) -> list[Path]:
    """The files of train, valid and test; what is missing must be missing from the end."""
    found: list[Path] = []
    for names in (("train",), ("valid", "dev"), ("test",)):
        paths = [folder / form.format(name) for name in names for form in forms]
        existing = [path for path in paths if path.is_file()]
        if existing:
            if len(found) < SPLITS.index(names[0]):
                raise ReadError(
                    f"is here, but {SPLITS[len(found)]} is not", source=str(existing[0])
                )
            found.append(existing[0])
    if not found:
        wanted = " or ".join(form.format("train") for form in forms)
        raise ReadError(f"holds no graph: there is no {wanted}", source=str(folder))
    return found


def _object_names(path: Path, what: str) -> Names | None:
    return _named(path, read_name_object(path), what) if path.exists() else None


def _list_names(path: Path, what: str, *, counted: bool = False) -> Names | None:
    if not path.exists():
        return None
    return _named(path, read_name_list(path, counted=counted), what)


def _named(path: Path, names: list[str], what: str) -> Names:
    try:
        return Names.of(names, what)
    except KoplError as error:
        raise ReadError(str(error), source=str(path)) from None
