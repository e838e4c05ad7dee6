"""The types that a run samples, from the words of a user: families, names and formulas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cqa.errors import FormulaError, QueryError
from cqa.query import Query
from cqa.sampling.graphs import GraphSampler
from cqa.sampling.options import Options, SamplingError
from cqa.sampling.plan import plan_of
from cqa.sampling.sample import Kind
from cqa.sampling.source import Source
from cqa.sampling.steps import check_type
from cqa.sampling.trees import TreeSampler
from cqa.types.efok_text import read_formula, write_formula
from cqa.types.normal import to_form
from cqa.types.registry import GraphType, TreeType, by_id, by_name, check_form, types
from cqa.types.tree import Tree
from cqa.vocabularies import FAMILIES, SPACES
from kopl_base.stream import read_text

Sampler = TreeSampler | GraphSampler


def sampler(kind: Kind, source: Source, options: Options | None = None) -> Sampler:
    """What draws queries of a type; its ``attempt`` gives one, or None.

    Raises SamplingError and QueryError for a type that cannot be grounded.
    """
    if isinstance(kind.shape, Tree):
        return TreeSampler(kind, source, options)
    if options is not None and options.draw == "betae":
        raise SamplingError(f"draw 'betae' is for operator trees, not {kind.formula}")
    return GraphSampler(kind, source, options)


def kinds(texts: Iterable[str], form: str | None = None) -> list[Kind]:
    """The types of some words, each once, in the order given.

    A word is a family (efo1, efok, betae, or a space as efok:paper), one type of a family
    (efo1:type0016), a name (2i, pni, 2u-DM), a formula of operators or of a query graph, or @FILE
    with one of these a line (only what stands before the first tab counts, so that listings of
    types do). Grounded operator trees are written in the ``form``, whatever they are drawn as.

    Raises SamplingError, QueryError and FormulaError for what is no type, ReadError for a file.
    """
    found: dict[str, Kind] = {}
    for number, text in enumerate(_words(texts), 1):
        for kind in _kinds(text, number, form):
            other = found.setdefault(kind.id, kind)
            if other.formula != kind.formula or other.shape != kind.shape:
                raise SamplingError(
                    f"two types are called {kind.id}: {other.formula} and {kind.formula}; sample"
                    " the families one by one"
                )
    if not found:
        raise SamplingError("no type is given")
    for kind in found.values():
        try:
            if isinstance(kind.shape, Tree):
                plan_of(kind.shape)
            else:
                check_type(kind.shape)
        except QueryError as error:
            raise SamplingError(f"{kind.formula}: {error}") from None
    return list(found.values())


def _words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if not text.startswith("@"):
            yield text
            continue
        for line in read_text(text[1:]).splitlines():
            if word := line.partition("\t")[0].strip():
                yield word


def _kinds(text: str, number: int, form: str | None) -> Iterator[Kind]:
    family, _, part = text.partition(":")
    if family in FAMILIES:
        chosen: Sequence[TreeType | GraphType] = (
            types(family, space=part or None) if part in ("", *SPACES) else [by_id(family, part)]
        )
        for row in chosen:
            yield _kind(row, row.id, form)
        return
    if "|" in text:
        # A union of query graphs, which the registry does not name.
        try:
            shape = read_formula(text)
        except FormulaError as error:
            raise SamplingError(f"{text}: {error}") from None
        yield Kind(f"formula{number}", write_formula(shape), shape)
        return
    try:
        row = by_name(text)
    except FormulaError as error:
        raise SamplingError(f"{text}: {error}") from None
    named = "(" not in text
    yield _kind(row, text if named else row.id or f"formula{number}", form)


def _kind(row: TreeType | GraphType, name: str, form: str | None) -> Kind:
    if isinstance(row, GraphType):
        check_form(form)
        shape = row.query
        formula = write_formula(shape)
        return Kind(name, formula, _plain(shape, formula))
    formula = row.formula if form is None else to_form(row.tree, form).formula
    return Kind(name, formula, row.tree, form)


def _plain(shape: Query, formula: str) -> Query:
    """The query graph as it is read back from its formula."""
    return shape if read_formula(formula) == shape else read_formula(formula)
