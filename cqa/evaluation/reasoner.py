"""Reasoners: what gives scores for the free variables of a query, so that answers can be ranked.

Any object with a method ``scores(query)`` is one. An object with the five operators of
`cqa.evaluation.plan.Operators` becomes one by `OperatorReasoner`. Those here know a graph:
all of it (exact), the observed part, or nothing (random); they are what models are compared with.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import numpy as np
import numpy.typing as npt

from cqa.answering.answer import answers
from cqa.errors import QueryError
from cqa.evaluation.metrics import Scores
from cqa.evaluation.plan import Operators, State, states
from cqa.evaluation.tuple_metrics import TupleScores
from cqa.graphs.graph import Graph
from cqa.graphs.links import Links
from cqa.notation.trees import from_tree
from cqa.query import Query
from cqa.types.tree import Tree
from kb.arrays import Ids, Mask
from kopl_base.errors import KoplError

NAMES = ("exact", "observed", "random")


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores for a query: a (k, E) array, a row for each free variable; the higher the better.

    ``tuples``: scores of whole answers, where a reasoner has them; they matter to joint ranks.
    """

    scores: Scores
    tuples: TupleScores | None = None


class Reasoner(Protocol):
    """What can be evaluated.

    One that is quicker with many queries at a time has a second method, ``scores_of(queries)``:
    what `scores` gives for each of a list of queries, in their order; it may be a generator. One
    that has the scores of many queries side by side has ``blocks_of(queries)``: pairs of places in
    the list and an array or a tensor (B, k, E) of the scores of these, each query in one of them.
    """

    def scores(self, query: Query | Tree) -> Scored | npt.ArrayLike:
        """Scores for the free variables of a grounded query, in their order.

        A `Scored`, or what NumPy reads as its array: (k, E), or E numbers for one free variable. An
        operator tree comes in the form that the query has in its file.
        """


class Explained(Protocol):
    """What supports an answer: entities for the variables, and what each link is worth."""

    bindings: Mapping[str, int]

    def table(self, graph: Graph) -> list[tuple[str, str, str, str, str]]:
        """Rows of head, relation, tail, value, and "known", "predicted" or "not"."""

    def text(self, graph: Graph) -> str:
        """The bindings, and a line for each link."""

    def mermaid(self, graph: Graph) -> str:
        """A picture, as a Mermaid chart."""

    def svg(self, graph: Graph) -> str:
        """A picture, as the text of an SVG file."""


class Explaining(Protocol):
    """A reasoner that tells what supports its answers."""

    def explain(self, query: Query | Tree, answer: Sequence[int]) -> Explained:
        """What supports an answer most, an entity for each free variable."""


def scores_of(reasoner: Reasoner, queries: Sequence[Query | Tree]) -> Iterator[Any]:
    """What a reasoner gives for each query, all at once where it can.

    Raises QueryError when it gives more or less than there are queries.
    """
    many = getattr(reasoner, "scores_of", None)
    if many is None:
        for query in queries:
            yield reasoner.scores(query)
        return
    number = 0
    for found in many(queries):
        number += 1
        if number > len(queries):
            break
        yield found
    if number != len(queries):
        few = "fewer" if number < len(queries) else "more"
        raise QueryError(f"the reasoner gave {few} scores than there are queries ({len(queries)})")


def as_scored(found: Scored | npt.ArrayLike, free: int, entity_count: int) -> Scored:
    """What a reasoner gave, as it should be.

    Raises QueryError for another shape and for scores that are no numbers.
    """
    tuples = found.tuples if isinstance(found, Scored) else None
    array: npt.NDArray[Any] = np.asarray(found.scores if isinstance(found, Scored) else found)
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.shape != (free, entity_count):
        raise QueryError(
            f"the reasoner gave an array of shape {array.shape}; {(free, entity_count)} was"
            " expected: a row for each free variable, a score for each entity"
        )
    if array.dtype.kind not in "fiub":
        raise QueryError(f"the reasoner gave scores of type {array.dtype}, not numbers")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    wrong = np.isnan(array).any(axis=0)
    if wrong.any():
        raise QueryError(f"the reasoner gave no number (NaN) for entity {int(np.argmax(wrong))}")
    return Scored(array, tuples)


class GraphReasoner:
    """Scores 1 for what answers on some links, 0 for everything else."""

    def __init__(self, links: Links) -> None:
        self.links = links

    def scores(self, query: Query | Tree) -> Scored:
        """The answers as scores of entities and, for several free variables, of tuples."""
        # A tree in one of De Morgan's forms has complements that nothing bounds.
        graph = from_tree(query) if isinstance(query, Tree) else query
        found = answers(graph, self.links, universe=isinstance(query, Tree))
        scores = np.zeros((len(graph.free), self.links.entity_count), np.float32)
        for row, column in zip(scores, found.T, strict=True):
            row[column] = 1
        if len(graph.free) == 1:
            return Scored(scores)
        return Scored(scores, TupleScores(found, np.ones(len(found), np.float32)))


def exact(graph: Graph, split: str = "test") -> GraphReasoner:
    """The reasoner that knows all links of a split's queries, the missing ones included."""
    return GraphReasoner(graph.full(split))


def observed(graph: Graph, split: str = "test") -> GraphReasoner:
    """The reasoner that knows the observed links only: what needs no prediction."""
    return GraphReasoner(graph.observed(split))


class RandomReasoner:
    """Scores by chance: the same ones for the same query and seed, whatever was asked before."""

    def __init__(self, entity_count: int, seed: int = 0) -> None:
        self._entity_count, self._seed = entity_count, seed

    def scores(self, query: Query | Tree) -> Scored:
        """Numbers in [0, 1), each alike."""
        free = 1 if isinstance(query, Tree) else len(query.free)
        # Formulas leave out relations and anchors, which is what repr has.
        key = zlib.crc32(repr(query).encode())
        # NumPy takes no negative seeds.
        seed = [self._seed] if self._seed >= 0 else [-self._seed, 1]
        random = np.random.default_rng([*seed, key])
        return Scored(random.random((free, self._entity_count)))


class OperatorReasoner(Generic[State]):
    """The reasoner that five operators make: each query is a batch of one of its plan."""

    def __init__(self, operators: Operators[State]) -> None:
        self.operators = operators

    def scores(self, query: Query | Tree) -> Scored:
        """The scores of the free variables' states."""
        score = getattr(self.operators, "scores", None)
        rows = [
            np.asarray(state if score is None else score(state))
            for state in states(self.operators, query)
        ]
        if any(row.ndim != 1 or row.shape != rows[0].shape for row in rows):
            raise QueryError(
                "a state of the operators is no array with a score for each entity; give them a"
                " method scores(state) that makes one"
            )
        return Scored(np.stack(rows))


class SetOperators:
    """The operators over plain sets of a graph's entities: states are masks."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def entity(self, entity: int) -> Mask:
        """The mask with one entity."""
        mask = np.zeros(self._links.entity_count, np.bool_)
        mask[entity] = True
        return mask

    def project(self, state: Mask, relation: int) -> Mask:
        """What the links of the relation lead to."""
        heads: Ids = np.flatnonzero(state).astype(np.int32)
        mask = np.zeros(self._links.entity_count, np.bool_)
        mask[self._links.reached(relation, heads)] = True
        return mask

    def and_(self, states: Sequence[Mask]) -> Mask:
        """What is in all."""
        found: Mask = np.logical_and.reduce(states)
        return found

    def or_(self, states: Sequence[Mask]) -> Mask:
        """What is in one at least."""
        found: Mask = np.logical_or.reduce(states)
        return found

    def not_(self, state: Mask) -> Mask:
        """What is not in it."""
        return ~state


_OPERATORS = ("entity", "project", "and_", "or_", "not_")


def as_reasoner(given: object, graph: Graph, split: str) -> Reasoner:
    """A reasoner from one, from five operators, or from what makes either of a graph and a split.

    A class, and an object that is neither, is called with the graph and the split. Raises
    KoplError when nothing of this kind comes out.
    """
    if isinstance(given, type) or not _fits(given):
        if not callable(given) or not _takes_two(given):
            raise KoplError(_what(given))
        given = given(graph, split)
    if all(callable(getattr(given, name, None)) for name in _OPERATORS):
        operators: Any = given
        return OperatorReasoner(operators)
    if not _fits(given):
        raise KoplError(_what(given))
    reasoner: Any = given
    found: Reasoner = reasoner
    return found


def _takes_two(given: Callable[..., object]) -> bool:
    """Whether something can be called with a graph and a split."""
    try:
        inspect.signature(given).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # some that are not written in Python do not tell
        return True
    return True


def _fits(given: object) -> bool:
    return callable(getattr(given, "scores", None)) or all(
        callable(getattr(given, name, None)) for name in _OPERATORS
    )


def _what(given: object) -> str:
    return (
        f"{type(given).__name__} is no reasoner: it needs a method scores(query), or the operators"
        f" {', '.join(_OPERATORS)}; or it makes one when called with a graph and a split"
    )


def named(name: str, graph: Graph, split: str, seed: int = 0) -> Reasoner:
    """One of the reasoners that are here: exact, observed or random.

    Raises KoplError for another name.
    """
    if name == "exact":
        return exact(graph, split)
    if name == "observed":
        return observed(graph, split)
    if name == "random":
        return RandomReasoner(graph.entity_count, seed)
    raise KoplError(f"there is no reasoner {name!r}; give {', '.join(NAMES)} or module:object")
