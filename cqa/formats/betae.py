"""BetaE's pickles: queries by their structure, and answers by query, for existing model code.

A folder has ``{split}-queries.pkl``, a ``defaultdict(set)`` from structures such as
``('e', ('r', 'r'))`` to grounded tuples, and ``{split}-easy-answers.pkl`` and
``{split}-hard-answers.pkl``, ``defaultdict(set)`` from grounded tuples to entities; for train
``train-answers.pkl`` alone. Easy answers are there those that the full graph confirms; what it
takes back stands in ``{split}-lost-answers.pkl``, where there is some. The queries alone, such as
a published file, are read as well: their answers then come from a graph.

A pickle can run any program when it is loaded; here only dictionaries, sets, tuples, lists, texts
and numbers are built, and anything else is refused.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cqa.errors import QueryError
from cqa.formats.json_lines import read_answers
from cqa.formats.unanswered import Answerer, type_name
from cqa.graphs.graph import Graph
from cqa.query import Query
from cqa.sampling.sample import Sample, rows_without, sorted_rows
from cqa.types import betae
from cqa.types.tree import Tree
from kopl_base.errors import ReadError
from kopl_base.stream import writing

Answers = defaultdict[Any, set[int]]


def files(split: str) -> dict[str, str]:
    """The names of a split's files by what they hold."""
    parts = ["answers"] if split == "train" else ["easy-answers", "hard-answers", "lost-answers"]
    return {name: f"{split}-{name}.pkl" for name in ("queries", *parts)}


def check(tree: Tree) -> None:
    """Raise QueryError for a type that BetaE's tuples cannot hold."""
    betae.to_tuples(tree)


def write_pickles(folder: Path, samples: Iterable[Sample], split: str) -> None:
    """Write a split as BetaE's pickles; raises QueryError for what its tuples cannot say.

    All queries of the split are held in memory, as the files are one object each.
    """
    queries: defaultdict[Any, set[Any]] = defaultdict(set)
    answers: dict[str, Answers] = {name: defaultdict(set) for name in files(split)}
    for sample in samples:
        if not isinstance(sample.query, Tree):
            raise QueryError(f"{sample.formula}: BetaE's tuples hold operator trees only")
        query = betae.to_tuples(sample.query)
        queries[betae.to_tuples(sample.query.abstract)].add(query)
        easy = rows_without(sample.easy, sample.lost)
        if split == "train":
            answers["answers"][query] = set(easy[:, 0].tolist())
            continue
        answers["easy-answers"][query] = set(easy[:, 0].tolist())
        answers["hard-answers"][query] = set(sample.hard[:, 0].tolist())
        if len(sample.lost):
            answers["lost-answers"][query] = set(sample.lost[:, 0].tolist())
    for name, file_name in files(split).items():
        held: Any = queries if name == "queries" else answers[name]
        if name == "lost-answers" and not held:
            (folder / file_name).unlink(missing_ok=True)
            continue
        with writing(folder / file_name, binary=True) as file:
            file.write(_bytes(held))


def _bytes(held: defaultdict[Any, set[Any]]) -> bytes:
    """The pickle of a defaultdict of sets, the same bytes for queries in the same order.

    The sets hold numbers, or tuples of numbers, which hash the same in every process.
    """
    ordered: defaultdict[Any, set[Any]] = defaultdict(set)
    for key in sorted(held, key=repr):
        ordered[key] = set(held[key])
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=4)
    pickler.fast = True  # no references to equal parts, whose identity is an accident
    pickler.dump(ordered)
    return stream.getvalue()


def read_pickles(path: Path, split: str, graph: Graph | None = None) -> Iterator[Sample]:
    """The queries of a split, by structure and query in sorted order.

    ``path`` is a folder, or one pickle of queries. Where there are queries alone their answers are
    those of the graph. Raises ReadError with file and query for what is no such pickle, and for
    queries alone without a graph.
    """
    names = files(split)
    others = [file_name for name, file_name in names.items() if name != "queries"]
    if not path.is_dir():
        return _read_alone(path, split, graph)
    if graph is not None and not any((path / file_name).exists() for file_name in others):
        return _read_alone(path / names["queries"], split, graph)
    return _read_folder(path, names)


def _read_alone(file: Path, split: str, graph: Graph | None) -> Iterator[Sample]:
    answerer = Answerer(graph, split, str(file))
    for structure, query in read_queries(file):
        try:
            sample = answerer.sample(query)
            _check_kind(sample.query, structure)
        except QueryError as error:
            raise ReadError(str(error), place=repr(query), source=str(file)) from None
        yield sample
    answerer.finish()


def read_queries(file: Path) -> Iterator[tuple[Tree, Any]]:
    """The tuples of a pickle of queries alone, each with its type, in sorted order.

    Raises ReadError for what is no such pickle.
    """
    return _queries(_load(file), str(file))


def _queries(held: dict[Any, Any], source: str) -> Iterator[tuple[Tree, Any]]:
    """The types of a pickle and their queries, both sorted; raises ReadError for no type."""
    for structure in sorted(held, key=repr):
        try:
            kind = betae.from_tuples(structure)
        except QueryError as error:
            raise ReadError(str(error), place=repr(structure), source=source) from None
        for query in sorted(held[structure], key=repr):
            yield kind, query


def _check_kind(tree: Tree | Query, kind: Tree) -> None:
    assert isinstance(tree, Tree)
    if tree.formula != kind.formula:
        raise QueryError(f"it is of the type {tree}, not {kind}")


def _read_folder(folder: Path, names: dict[str, str]) -> Iterator[Sample]:
    held = {
        name: _load(folder / file_name)
        for name, file_name in names.items()
        if name != "lost-answers" or (folder / file_name).exists()
    }
    source = str(folder / names["queries"])
    for kind, query in _queries(held["queries"], source):
        try:
            sample = _sample(query, kind, held)
        except KeyError:
            raise ReadError(
                "the query has no answers", place=repr(query), source=str(folder)
            ) from None
        except QueryError as error:
            raise ReadError(str(error), place=repr(query), source=source) from None
        yield sample


def _sample(query: Any, kind: Tree, held: dict[str, Any]) -> Sample:
    tree = betae.from_tuples(query)
    _check_kind(tree, kind)
    name = type_name(kind)

    def rows(part: str) -> Any:
        return read_answers(sorted(held[part][query]), 1, part)

    if "answers" in held:
        none = np.empty((0, 1), np.int32)
        return Sample(name, kind.formula, tree, rows("answers"), none, none)
    lost = (
        rows("lost-answers")
        if query in held.get("lost-answers", {})
        else np.empty((0, 1), np.int32)
    )
    easy = sorted_rows(np.concatenate([rows("easy-answers"), lost]))
    return Sample(name, kind.formula, tree, easy, rows("hard-answers"), lost)


_PLAIN: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "defaultdict"): defaultdict,
    **{("builtins", kind.__name__): kind for kind in (set, frozenset, dict, list, tuple, int)},
    **{("__builtin__", kind.__name__): kind for kind in (set, frozenset, dict, list, tuple, int)},
}


class _RefusedError(pickle.UnpicklingError):
    """A pickle that asks for more than plain data."""


class _PlainUnpickler(pickle.Unpickler):
    """Builds plain containers and NumPy's integers, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        found = _PLAIN.get((module, name))
        if found is not None:
            return found
        if module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray") and name in (
            "dtype",
            "scalar",
        ):
            return np.dtype if name == "dtype" else _scalar
        raise _RefusedError(f"it would load {module}.{name}, which is no plain data")

    def persistent_load(self, pid: Any) -> Any:
        raise _RefusedError("it refers to objects outside itself")


def _scalar(dtype: np.dtype[Any], data: bytes = b"") -> int:
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        raise _RefusedError(f"it holds a {dtype}, which is no integer")
    return int(np.frombuffer(data, dtype, 1)[0])


def _check_places(data: bytes) -> None:
    """Raise _RefusedError for a place to remember a part in that no pickle of this size has.

    Memory is taken for all places up to it: nine bytes can ask for 32 GB.
    """
    # Most pickles have no bytes that look so; only then each step is read, which takes time.
    if not any(
        len(match[1] or b"") > 7 or int.from_bytes(match[2] or b"", "little") > len(data)
        for match in _PLACE.finditer(data)
    ):
        return
    for step, argument, _ in pickletools.genops(data):
        if step.name in ("PUT", "LONG_BINPUT") and int(argument or 0) > len(data):
            raise _RefusedError("it remembers parts at places far beyond its size")


# PUT with a number in letters, LONG_BINPUT with four bytes; other bytes may look like them.
_PLACE = re.compile(rb"p([0-9]{8,})\n|(?=r(....))", re.DOTALL)


def _load(path: Path) -> dict[Any, Any]:
    """The dictionary of sets in a pickle; raises ReadError."""
    source = str(path)
    try:
        data = path.read_bytes()
        _check_places(data)
        found = _PlainUnpickler(io.BytesIO(data)).load()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", source=source) from None
    except _RefusedError as error:
        raise ReadError(f"is refused: {error}", source=source) from None
    except Exception as error:  # a damaged pickle may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise ReadError(f"is damaged or no pickle ({reason})", source=source) from None
    if not isinstance(found, dict) or not all(
        isinstance(part, (set, frozenset, list)) for part in found.values()
    ):
        raise ReadError("holds no dictionary of sets, as BetaE's files do", source=source)
    return found
