"""CQD-CO: a query's variables as vectors, by gradients to the highest truth value.

What EFOk-CQA calls CQD. It needs a predictor that compares a vector of head and relation with one
of the tail, as ComplEx and DistMult do. It reaches a local optimum on
any query graph; answers are then scored one variable after the other, the others held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from cqa.answering.template import numbered, structure
from cqa.evaluation.reasoner import Scored
from cqa.models.search.graph import oriented, reading_order
from cqa.models.search.settings import Conorm
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable, check_form, mapped
from cqa.types.tree import Tree

# So many queries of one form are solved together.
AT_ONCE = 256


class VectorPredictor(Protocol):
    """A link predictor that compares queries, made of a head and a relation, with tails."""

    @property
    def entities(self) -> Tensor:
        """The vectors of all entities, [E, D]."""

    @property
    def relations(self) -> Tensor:
        """Those of all directed relations, [K, …]."""

    @property
    def relation_count(self) -> int:
        """The number of directed relations, inverses included."""

    def queries(self, heads: Tensor, relations: Tensor) -> Tensor:
        """What is compared with tails: [B, D] for the vectors of heads and relations."""

    def beside(self, queries: Tensor, tails: Tensor) -> Tensor:
        """The logits of queries, each beside the vector of one tail: [B]."""

    def cubes(self, vectors: Tensor) -> Tensor:
        """The cubes of the moduli of vectors, summed for each: [B]."""


@dataclass(frozen=True)
class GradientSettings:
    """How vectors are found: AdamW with rate ``rate``, at most ``steps`` of them.

    A query's vectors stay as they are once its loss, minus its truth value plus ``penalty`` times
    the cubes of the moduli, changes by less than ``least`` in a step. ``t_conorm`` joins disjuncts.
    """

    rate: float = 0.1
    steps: int = 1000
    least: float = 1e-9
    penalty: float = 0.05
    t_conorm: Conorm = "sum"


Vectors = Mapping[Term, Tensor]


class GradientSearch:
    """Scores of answers by vectors for the variables of a query."""

    def __init__(
        self, predictor: VectorPredictor, settings: GradientSettings = GradientSettings()
    ) -> None:
        self.predictor, self.settings = predictor, settings

    def scores(self, query: Query | Tree) -> Scored:
        """The scores of one query's answers, a row for each free variable."""
        return next(iter(self.scores_of([query])))

    def scores_of(self, queries: Sequence[Query | Tree]) -> Iterator[Scored]:
        """The scores of each query, in their order; those of one form are solved together."""
        graphs: list[Query] = []
        for query in queries:
            graph = from_tree(query) if isinstance(query, Tree) else query
            entities = len(self.predictor.entities)
            check_form(graph, entities=entities, relations=self.predictor.relation_count)
            graphs.append(graph)
        groups: dict[object, list[int]] = {}
        labels = []
        for at, graph in enumerate(graphs):
            key, own = structure(graph)
            labels.append(own)
            groups.setdefault(key, []).append(at)
        found: dict[int, Scored] = {}
        for places in groups.values():
            form = numbered(graphs[places[0]])
            assert isinstance(form, Query)
            for begin in range(0, len(places), AT_ONCE):
                part = places[begin : begin + AT_ONCE]
                columns = torch.tensor([labels[at] for at in part])
                for at, scores in zip(part, self._solved(form, columns), strict=True):
                    found[at] = Scored(scores.numpy())
        for at in range(len(graphs)):
            yield found.pop(at)

    # --- one form -------------------------------------------------------------------------------

    def _solved(self, form: Query, columns: Tensor) -> Iterator[Tensor]:
        """Scores [k, E] of queries of one form; ``columns`` [B, labels] are their numbers."""
        form = _form(form)
        optima = [self._optimum(part, form.free, columns) for part in form.disjuncts]
        for at in range(len(columns)):
            own = columns[at : at + 1]
            scores = [
                self._answers(part, form.free, own, {t: v[at : at + 1] for t, v in found.items()})
                for part, found in zip(form.disjuncts, optima, strict=True)
            ]
            yield scores[0] if len(scores) == 1 else self._joined(scores)

    def _joined(self, scores: Sequence[Tensor]) -> Tensor:
        both = torch.stack(tuple(scores))
        if self.settings.t_conorm == "maximum":
            return both.amax(0)
        return 1 - (1 - both).prod(0)

    def _optimum(
        self, part: Conjunction, free: tuple[Variable, ...], columns: Tensor
    ) -> dict[Term, Tensor]:
        """Vectors [B, D] for the constants and the variables of a conjunction."""
        given = self.settings
        found: dict[Term, Tensor] = {}
        with torch.no_grad():
            self._start(part, free, columns, found)
        held: dict[Term, Tensor] = {
            term: found[term] for term in found if isinstance(term, Constant)
        }
        names = [term for term in found if isinstance(term, Variable)]
        values = [found[name].clone().requires_grad_() for name in names]
        if not values:
            return held
        optimizer = torch.optim.AdamW(values, lr=given.rate)
        still = torch.zeros(len(columns), dtype=torch.bool)
        before = torch.full((len(columns),), float("inf"))
        for _ in range(given.steps):
            vectors: dict[Term, Tensor] = {**held, **dict(zip(names, values, strict=True))}
            truth, inner = self._truth(part, columns, vectors)
            penalty = torch.stack([self.predictor.cubes(value) for value in values]).sum(0)
            loss = given.penalty * penalty - truth - inner
            old = [value.detach().clone() for value in values]
            optimizer.zero_grad()
            # A sum: each query has the gradients that it has alone.
            loss.sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            with torch.no_grad():
                still |= (loss - before).abs() < given.least
                for value, last in zip(values, old, strict=True):
                    value[still] = last[still]
                before = loss.detach()
            if bool(still.all()):
                break
        return {**held, **{n: v.detach() for n, v in zip(names, values, strict=True)}}

    def _start(
        self,
        part: Conjunction,
        free: tuple[Variable, ...],
        columns: Tensor,
        found: dict[Term, Tensor],
    ) -> None:
        """Add vectors to start from: constants have theirs, variables what leads to them.

        The sum of the images along its atoms is the best vector for a variable, but for its length.
        """
        table = self.predictor.entities
        for atom in part.atoms:
            for end in (atom.head, atom.tail):
                if isinstance(end, Constant):
                    found[end] = table[columns[:, int(end.entity)]]
        for variable in reading_order(part, free):
            if variable in found:
                continue
            images = [
                self._image(atom, columns, found) * (1 if atom.positive else -1)
                for atom in part.atoms
                if atom.tail == variable and atom.head in found
            ]
            if images:
                found[variable] = torch.stack(images).sum(0)
            else:
                found[variable] = table.mean(0).repeat(len(columns), 1)
        for negated in part.without:
            for disjunct in negated.disjuncts:
                self._start(disjunct, negated.free, columns, found)

    def _image(self, atom: Atom, columns: Tensor, vectors: Vectors) -> Tensor:
        head = vectors[atom.head]
        own = self.predictor.relations[_relations(atom, columns)]
        return self.predictor.queries(head, own.expand(len(head), -1))

    def _truth(
        self, given: Conjunction, columns: Tensor, vectors: Vectors
    ) -> tuple[Tensor, Tensor]:
        """The truth value [B] of a conjunction, and what its negated parts aim at.

        The variables of a negated part make it as true as can be, the others as false.
        """
        sizes = [len(vector) for vector in vectors.values()]
        truth = torch.ones(max(sizes))
        aims = torch.zeros(max(sizes))
        for atom in given.atoms:
            truth = truth * self._atom(atom, columns, vectors)
        for part in given.without:
            outer = set(given.variables)
            inside = {t: v if t in outer else v.detach() for t, v in vectors.items()}
            around = {t: v.detach() if t in outer else v for t, v in vectors.items()}
            truth = truth * (1 - self._any(part, columns, inside))
            aims = aims + self._any(part, columns, around)
        return truth, aims

    def _any(self, part: Query, columns: Tensor, vectors: Vectors) -> Tensor:
        values = [self._truth(d, columns, vectors)[0] for d in part.disjuncts]
        return values[0] if len(values) == 1 else self._joined(values)

    def _atom(self, atom: Atom, columns: Tensor, vectors: Vectors) -> Tensor:
        image = self._image(atom, columns, vectors)
        value = torch.sigmoid(self.predictor.beside(image, vectors[atom.tail]))
        return value if atom.positive else 1 - value

    @torch.no_grad()
    def _answers(
        self, part: Conjunction, free: tuple[Variable, ...], columns: Tensor, vectors: Vectors
    ) -> Tensor:
        """The scores [k, E] of one query: each free variable is every entity in turn."""
        table = self.predictor.entities
        rows = []
        for variable in free:
            truth = self._truth(part, columns, {**vectors, variable: table})[0]
            rows.append(truth.expand(len(table)))
        return torch.stack(rows)


def _relations(atom: Atom, columns: Tensor) -> Tensor:
    """The relations [B] of an atom of a `_form`."""
    return columns[:, int(atom.relation) >> 1] ^ (int(atom.relation) & 1)


def _form(query: Query) -> Query:
    """The form with atoms as they are read: 2c is column c, 2c + 1 the inverses of it."""
    doubled = mapped(query, lambda a: Atom(2 * int(a.relation), a.head, a.tail, a.positive))
    return oriented(doubled)
