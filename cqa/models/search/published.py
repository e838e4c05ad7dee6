"""What published programs make of some types, where they do something else than their papers say.

With ``compat`` "paper" these stand in for the search, so that published figures can be had again:
CQD's min-max over all rows of a step, its chains of three and four links (CQD-Hybrid has its code
from there), and the negation of a chain (pni) in QTO and FIT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from cqa.models.links.rows import Rows
from cqa.models.search.graph import GraphSearch
from cqa.models.search.projection import Projection, Ways
from cqa.models.search.settings import SearchSettings
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Query
from cqa.types.betae import named
from cqa.types.tree import Tree, arrange

_CHAINS = {named(name).formula: int(name[0]) for name in ("3p", "4p")}
_NEGATED_CHAIN = named("pni").formula


class StepProjection(Projection):
    """Projects as CQD's program does: the rows of all candidates of a set have one min-max.

    So a candidate that leads nowhere in particular has low values only, where a row by itself
    would be stretched up to 1. Several sets are projected one by one, as in batches of one.
    """

    def onward(self, states: Tensor, ways: Sequence[Ways], top: int | None = None) -> Tensor:
        """For each set what is reached from it, [B, E]; ``top`` is not looked at."""
        reached = []
        for state, own in zip(states, ways, strict=True):
            if len(own) != 1 or not own[0].positive:  # parallel links are of query graphs only
                reached.append(super().onward(state[None], [own], top)[0])
                continue
            state = self.beamed(state)
            heads = state.nonzero()[:, 0]
            reached.append(_reached(self, state[heads], heads, own[0].relation))
        return torch.stack(reached)


def projection(rows: Rows, settings: SearchSettings) -> Projection:
    """What projects by some settings: as the published program, where ``compat`` says so."""
    steps = settings.compat == "paper" and settings.calibration.kind == "minmax"
    return (StepProjection if steps else Projection)(rows, settings)


def states(
    projection: Projection, graph: GraphSearch, trees: Sequence[Tree]
) -> Iterator[Tensor] | None:
    """The scores of trees of one type as a published program has them; None where it is right."""
    settings = projection.settings
    if settings.compat != "paper":
        return None
    formula = arrange(trees[0].abstract).formula
    if formula in _CHAINS and settings.beam is not None:
        return (_chain(projection, tree) for tree in trees)
    if formula == _NEGATED_CHAIN and settings.beam is None:
        return (graph.marginals(negated_link(from_tree(tree)))[0] for tree in trees)
    return None


def _chain(projection: Projection, tree: Tree) -> Tensor:
    """CQD's 3p and 4p.

    Every candidate of a variable has ``beam`` candidates of the next, so that there are beam² or
    beam³ ways. In 3p the values of the first link are laid beside the ways as often as needed, in
    place of each being repeated: the way over candidates (i, j) gets the first value of j. In 4p
    the third relation is used again for the fourth, and the first two links do not count.
    """
    relations: list[int] = []
    node = tree
    while node.op == "p":
        relations.insert(0, int(node.relation or 0))
        node = node.operands[0]
    start = projection.rows.one(int(node.entity or 0))
    first, one = _best(projection, relations[0], start)
    second, two = _best(projection, relations[1], one[0])
    # (ways,), the first candidate's place changing slowest
    width = second.shape[1]
    ways, ends = second.reshape(-1), two.reshape(-1)
    if len(relations) == 3:
        tiled = first[0].repeat(width)[: len(ways)]
        return _reached(projection, projection.settings.times(tiled, ways), ends, relations[2])
    third, three = _best(projection, relations[2], ends)
    return _reached(projection, third.reshape(-1), three.reshape(-1), relations[2])


def _best(projection: Projection, relation: int, heads: Tensor) -> tuple[Tensor, Tensor]:
    """The best candidates by a relation from each head: values and entities, [B, beam]."""
    given = projection.settings
    own, place = torch.unique(heads, return_inverse=True)
    found = []
    for _, rows in projection.rows.of_step(relation, own):
        width = given.beam or rows.shape[1]
        if given.beam_known:
            width += int((rows >= 1).sum(1).max())
        if given.beam_most is not None:
            width = min(width, given.beam_most)
        found.append(torch.topk(rows, min(width, rows.shape[1]), dim=1))
    # Where parts have candidates in different numbers the shortest decides.
    width = min(part.values.shape[1] for part in found)
    values = torch.cat([part.values[:, :width] for part in found])
    entities = torch.cat([part.indices[:, :width] for part in found])
    return values[place], entities[place]


def _reached(projection: Projection, values: Tensor, ends: Tensor, relation: int) -> Tensor:
    """The best of some ways, each worth a value at its end, along one more relation."""
    # Of the ways that end in one entity only the best can count.
    best = torch.zeros_like(projection.rows.ones())
    best.scatter_reduce_(0, ends, values, "amax")
    found = torch.zeros_like(best)
    heads = torch.unique(ends)
    for place, rows in projection.rows.of_step(relation, heads):
        reached = projection.settings.times(rows, best[heads[place]][:, None]).amax(0)
        torch.maximum(found, reached, out=found)
    return found


def negated_link(query: Query) -> Query:
    """The query with the last link of a negated chain negated, in place of the whole chain.

    "There is an x that r leads to and from which s does not lead to y" is what QTO's program asks
    for pni, and FIT's queries of that name say.
    """
    disjuncts = []
    for given in query.disjuncts:
        atoms, kept = list(given.atoms), []
        for part in given.without:
            if len(part.disjuncts) != 1 or part.disjuncts[0].without or len(part.free) != 1:
                kept.append(part)
                continue
            for atom in part.disjuncts[0].atoms:
                ends = atom.tail == part.free[0] or atom.head == part.free[0]
                atoms.append(Atom(atom.relation, atom.head, atom.tail, atom.positive and not ends))
        disjuncts.append(Conjunction(tuple(atoms), tuple(kept)))
    return Query(query.free, tuple(disjuncts))
