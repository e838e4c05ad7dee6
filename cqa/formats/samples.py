"""Files and folders of sampled queries, in any of the forms that others use.

- "jsonl": JSON lines (`cqa.formats.json_lines`), what everything else here is made of;
- "betae": a folder of BetaE's pickles, or its pickle of queries alone (`cqa.formats.betae`);
- "efo1": a folder of EFO-1-QA's tables (`cqa.formats.efo1`);
- "efok": a folder of EFOk-CQA's JSON (`cqa.formats.efok`);
- "parquet": a folder with a data card, or one file that ends so (`cqa.formats.parquet`);
- "query2box": a file of Query2box's queries, which is only read (`cqa.formats.query2box`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from cqa.errors import QueryError
from cqa.formats import betae as formats_betae
from cqa.formats import efo1 as formats_efo1
from cqa.formats import efok as formats_efok
from cqa.formats import json_lines as formats_json
from cqa.formats import parquet as formats_parquet
from cqa.formats import query2box as formats_query2box
from cqa.graphs.graph import Graph
from cqa.query import Query
from cqa.sampling.options import SamplingError
from cqa.sampling.sample import Kind, Sample
from cqa.types.tree import Tree
from cqa.vocabularies import INPUT_FORMATS, SAMPLE_FORMATS
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_base.parquet import arrow_packages

Piece: TypeAlias = list[Sample] | formats_json.Lines
"""Some queries, or what reads them."""

SPLITS = ("train", "valid", "test")
PICKLES = (".pkl", ".pickle")


def format_named(path: Path | str) -> str:
    """The format that a name's ending says: Parquet, else JSON lines."""
    return "parquet" if Path(path).suffix == ".parquet" else "jsonl"


def is_folder(path: Path, format: str) -> bool:
    """Whether a format is written as a folder."""
    return format in ("betae", "efo1", "efok") or (
        format == "parquet" and path.suffix != ".parquet"
    )


def check_target(path: Path, format: str, split: str) -> None:
    """Raise KoplError before any work for what cannot be written at its end."""
    if format not in SAMPLE_FORMATS:
        raise KoplError(f"there is no format {format!r}; give one of {', '.join(SAMPLE_FORMATS)}")
    if format == "parquet":
        arrow_packages()
    if format == "efo1" and split == "train":
        raise SamplingError("EFO-1-QA's tables hold queries with hard answers; train has none")
    if not is_folder(path, format):
        if path.exists() and not path.is_file():
            raise WriteError(f"{path}: cannot be written: it is no ordinary file; '-' streams")
    elif path.exists() and not path.is_dir():
        raise WriteError(f"{path}: cannot be written: it is no folder, which {format} needs")


def check_kind(kind: Kind, format: str) -> None:
    """Raise SamplingError for a type whose queries the format cannot hold."""
    graph = isinstance(kind.shape, Query)
    if format in ("betae", "efo1") and graph:
        raise SamplingError(f"{kind.formula}: {format} holds operator trees only; take efok")
    if format == "efo1" and kind.form is not None:
        raise SamplingError("EFO-1-QA's tables hold every query in all nine forms; name no form")
    if format == "efok" and "/" in kind.id:
        raise SamplingError(f"{kind.id} is no name of a file")
    try:
        if format == "efok":
            formats_efok.check(kind.shape)
        elif not isinstance(kind.shape, Query) and format in ("betae", "efo1"):
            (formats_betae if format == "betae" else formats_efo1).check(kind.shape)
    except QueryError as error:
        raise SamplingError(f"{kind.formula}: {format} cannot hold it: {error}") from None


def check_kinds(kinds: Iterable[Kind], format: str) -> None:
    """Raise SamplingError for types whose queries the format cannot hold, together or alone."""
    given = list(kinds)
    for kind in given:
        check_kind(kind, format)
    if format == "efo1":
        try:
            formats_efo1.check_names((k.id, k.shape) for k in given if isinstance(k.shape, Tree))
        except QueryError as error:
            raise SamplingError(str(error)) from None


def write_samples(
    path: Path | str,
    samples: Iterable[Sample],
    format: str | None = None,
    split: str = "test",
    origin: Mapping[str, object] | None = None,
) -> None:
    """Write the queries of a split in a format; without one the name's ending says it.

    ``origin`` is told in the data card of a Parquet folder. Raises WriteError, and QueryError for a
    query that the format cannot hold.
    """
    path, format = Path(path), format or format_named(path)
    check_target(path, format, split)
    if format == "parquet" and not is_folder(path, format):
        formats_parquet.write_samples(path, samples)
    else:
        WRITERS[format](path, samples, split, origin)


def read_samples(
    path: Path | str,
    format: str | None = None,
    split: str = "test",
    graph: Graph | None = None,
) -> Iterator[Sample]:
    """The queries of a split; the format is found by what is there when it is None.

    JSON lines, one Parquet file, one pickle and EFO-1-QA's tables hold one split, whichever it is.
    Answers that are not in the files are those of the ``graph``. Raises ReadError, with file and
    place, for what cannot be read, and for queries without answers when no graph is given.
    """
    path = Path(path)
    if format is not None and format not in INPUT_FORMATS:
        raise KoplError(f"there is no format {format!r}; give one of {', '.join(INPUT_FORMATS)}")
    if not path.exists():
        raise ReadError("there is no such file or folder", source=str(path))
    format = format or format_of(path, split)
    if format == "betae" and path.suffix in PICKLES and path.is_file():
        return formats_betae.read_pickles(path, split, graph)
    if is_folder(path, format) != path.is_dir():
        what = "a folder" if is_folder(path, format) else "a file"
        raise ReadError(f"{what} was expected for the format {format}", source=str(path))
    return READERS[format](path, split, graph)


def pieces(
    path: Path | str,
    size: int,
    format: str | None = None,
    split: str = "test",
    graph: Graph | None = None,
) -> Iterator[Piece]:
    """The queries that `read_samples` reads, so many at a time.

    Those of JSON lines are read by whoever takes a piece, which may be in another process.
    """
    path = Path(path)
    if path.is_file() and (format or format_of(path, split)) == "jsonl":
        yield from formats_json.pieces(path, size)
        return
    samples = read_samples(path, format, split, graph)
    while some := list(islice(samples, size)):
        yield some


def format_of(path: Path | str, split: str = "test") -> str:
    """The format of the queries of a split at a path, found by what is there.

    One of `INPUT_FORMATS`. Raises ReadError for a folder that holds none of them.
    """
    path = Path(path)
    if path.is_file():
        if path.suffix in PICKLES:
            return "betae"
        named = format_named(path)
        return "query2box" if named == "jsonl" and formats_query2box.looks_so(path) else named
    if formats_efo1.is_tables(path):
        return "efo1"
    if (path / formats_betae.files(split)["queries"]).exists():
        return "betae"
    if any(path.glob("*_EFOX_qaa.json")):
        return "efok"
    if any((path / "data").glob("*.parquet")):
        return "parquet"
    raise ReadError(
        f"holds no queries of {split} in a format known here ({', '.join(SAMPLE_FORMATS)})",
        source=str(path),
    )


def _read_parquet(path: Path, split: str) -> Iterator[Sample]:
    files = formats_parquet.split_files(path, split) if path.is_dir() else [path]
    if not files:
        raise ReadError(f"holds no Parquet file of {split}", source=str(path))
    return (sample for file in files for sample in formats_parquet.read_samples(file))


# How each form is written: path, queries, split, and what a data card tells of their origin.
_Origin = Mapping[str, object] | None
WRITERS: dict[str, Callable[[Path, Iterable[Sample], str, _Origin], None]] = {
    "jsonl": lambda path, samples, _split, _origin: formats_json.write_lines(path, samples),
    "betae": lambda path, samples, split, _: formats_betae.write_pickles(path, samples, split),
    "efo1": lambda path, samples, _split, _origin: formats_efo1.write_tables(path, samples),
    "efok": lambda path, samples, split, _: formats_efok.write_objects(path, samples, split),
    "parquet": formats_parquet.write_folder,
}
# How each is read: path, split, and the graph of answers that are not in the files.
READERS: dict[str, Callable[[Path, str, Graph | None], Iterator[Sample]]] = {
    "jsonl": lambda path, _split, _graph: formats_json.read_lines(path),
    "betae": formats_betae.read_pickles,
    "efo1": lambda path, _split, _graph: formats_efo1.read_tables(path),
    "efok": lambda path, split, _: formats_efok.read_objects(path, split),
    "parquet": lambda path, split, _: _read_parquet(path, split),
    "query2box": lambda path, split, graph: formats_query2box.read_queries(path, graph, split),
}
