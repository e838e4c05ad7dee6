"""Sampling operator trees backward from an answer (EFO-1-QA, BetaE).

The sets on the way are evaluated one by one, on the full graph and on the observed one: they are
what negations are drawn from, and a tree's walk over sets costs less than setting up a search.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from cqa.graphs.links import Links
from cqa.sampling.options import Options
from cqa.sampling.plan import DrawingPlan, Node, plan_of
from cqa.sampling.sample import Kind, Sample
from cqa.sampling.source import Source
from cqa.types.normal import to_form
from cqa.types.tree import Tree, arrange, nodes
from kb.arrays import EMPTY, Ids, contains, intersect, unite

# How often a negated branch is drawn again before the whole query is.
BRANCHES = 4

Sets = list["Ids | None"]


class _BrokenError(Exception):
    """The way from the answer back cannot go on."""


class TreeSampler:
    """Draws queries of one operator tree."""

    def __init__(self, kind: Kind, source: Source, options: Options | None = None) -> None:
        assert isinstance(kind.shape, Tree)
        self.kind, self.source, self.options = kind, source, options or Options()
        self.plan = plan_of(kind.shape)
        self.width = 1
        self._betae = self.options.draw == "betae"
        # BetaE's queries differ by the order of their branches, too, which arranging would lose.
        self._sorts = arrange(kind.shape) != kind.shape or (
            _has_like_operands(kind.shape) and not self._betae
        )

    def attempt(self, random: Random) -> tuple[str, Sample] | None:
        """A query and a text that only it has, or None when what was drawn is not to be kept."""
        ground = _Ground(self.plan, self.source, random, betae=self._betae)
        if not ground.draw():
            return None
        kept = self._answers(ground)
        if kept is None:
            return None
        easy, hard, lost = kept
        # The assignments that a negated part removes are told from the set that it is taken from.
        last = 1 if self.options.negations == "assignments" else None
        if not all(ground.matters(way[:last], at) for way, at in self.plan.negations):
            return None
        found = self._tree(self.plan.tree, iter(ground.relations), iter(ground.entities))
        if self.kind.form is not None:
            found = to_form(found, self.kind.form)
        elif self._sorts:
            found = arrange(found)
        sample = Sample(
            self.kind.id,
            self.kind.formula,
            found,
            easy.reshape(-1, 1),
            hard.reshape(-1, 1),
            lost.reshape(-1, 1),
        )
        return ground.text, sample

    def _answers(self, ground: _Ground) -> tuple[Ids, Ids, Ids] | None:
        options, source, root = self.options, self.source, self.plan.root
        full = ground.set_of(root)
        limit = options.limit(1)
        if limit is not None and len(full) > limit:
            return None
        if source.trains:
            if not options.least <= len(full) <= options.most:
                return None
            return full, EMPTY, EMPTY
        if len(full) < options.least:
            return None
        easy = ground.evaluate(root, source.observed, [None] * len(self.plan.nodes))
        # Without negations what is observed stays an answer.
        if not self.plan.negations and not (options.least <= len(full) - len(easy) <= options.most):
            return None
        hard = full[~contains(easy, full)]
        if not options.least <= len(hard) <= options.most:
            return None
        lost = easy[~contains(full, easy)] if self.plan.negations else EMPTY
        if self._betae and self.plan.negations and not 1 <= len(lost) <= options.most:
            return None
        return easy, hard, lost

    def _tree(self, tree: Tree, relations: Iterator[int], entities: Iterator[int]) -> Tree:
        if tree.op == "e":
            return Tree("e", entity=next(entities))
        relation = next(relations) if tree.op == "p" else None
        operands = tuple(self._tree(part, relations, entities) for part in tree.operands)
        return Tree(tree.op, operands, relation)


class _Ground:
    """One attempt: the relations and anchors drawn, and the sets of the nodes on the full graph.

    ``betae``: as BetaE's program does, all branches are drawn from the one answer, and queries are
    told apart by the order of their branches, too.
    """

    def __init__(
        self, plan: DrawingPlan, source: Source, random: Random, betae: bool = False
    ) -> None:
        self._plan, self._source, self._random = plan, source, random
        self._betae = betae
        self.relations = [-1] * plan.relations
        self.entities = [-1] * plan.anchors
        self.text = ""
        self._sets: Sets = [None] * len(plan.nodes)

    def draw(self) -> bool:
        """Ground the tree; False when an answer has no way back or branches came out alike."""
        root = self._plan.root
        try:
            self._ground(root, self._source.entity(self._random), -1)
        except _BrokenError:
            return False
        self.text = self._text(root) or ""
        return bool(self.text)

    def set_of(self, node: Node) -> Ids:
        """The set of a node on the full graph."""
        return self.evaluate(node, self._source.full, self._sets)

    # --- drawing ------------------------------------------------------------------------------

    def _ground(self, node: Node, entity: int, before: int) -> None:
        """Draw what is below a node so that its set has the entity."""
        if node.op == "p":
            relation, start = self._source.enter(self._random, entity, before)
            if relation < 0:
                raise _BrokenError
            self.relations[node.place] = relation
            self._ground(node.inputs[0], start, relation)
        elif node.op == "e":
            self.entities[node.place] = entity
        elif self._betae:
            for part in (*node.inputs, *node.taken):
                self._ground(part, entity, -1)
        elif node.op == "u":
            chosen = int(self._random.random() * len(node.inputs))
            for at, part in enumerate(node.inputs):
                if at == chosen:
                    self._ground(part, entity, before)
                else:
                    self._ground(part, self._source.entity(self._random), before)
        else:
            for part in node.inputs:
                self._ground(part, entity, before)
            if node.taken:
                self._take(node, entity, before)

    def _take(self, node: Node, entity: int, before: int) -> None:
        """Draw the negated branches so that each removes another entity, and this one stays."""
        kept = self._meeting(node)
        others = kept[kept != entity]
        if len(others) == 0:
            raise _BrokenError
        for part in node.taken:
            for _ in range(BRANCHES):
                other = int(others[int(self._random.random() * len(others))])
                self._forget(part)
                self._ground(part, other, before)
                if not _has(self.set_of(part), entity):
                    break
            else:
                raise _BrokenError

    def _meeting(self, node: Node) -> Ids:
        sets = sorted((self.set_of(part) for part in node.inputs), key=len)
        found = sets[0]
        for other in sets[1:]:
            found = intersect(found, other)
        return found

    def _forget(self, node: Node) -> None:
        self._sets[node.number] = None
        for part in (*node.inputs, *node.taken):
            self._forget(part)

    # --- sets ---------------------------------------------------------------------------------

    def evaluate(self, node: Node, links: Links, sets: Sets) -> Ids:
        """The set of a node, and of those below it, on some links."""
        found = sets[node.number]
        if found is not None:
            return found
        if node.op == "p":
            below = node.inputs[0]
            relation = self.relations[node.place]
            if below.op == "e":
                found = links.row(relation, self.entities[below.place])
            else:
                found = links.reached(relation, self.evaluate(below, links, sets))
        elif node.op == "e":
            found = np.array([self.entities[node.place]], np.int32)
        elif node.op == "u":
            found = unite([self.evaluate(part, links, sets) for part in node.inputs])
        else:
            found = _less(
                [self.evaluate(part, links, sets) for part in node.inputs],
                [self.evaluate(part, links, sets) for part in node.taken],
            )
        sets[node.number] = found
        return found

    def matters(self, way: tuple[Node, ...], at: int) -> bool:
        """Whether the answers change without the part ``at`` of what the first node takes away."""
        node = way[0]
        changed = _less(
            [self.set_of(part) for part in node.inputs],
            [self.set_of(part) for number, part in enumerate(node.taken) if number != at],
        )
        for below, above in zip(way, (*way[1:], None), strict=True):
            if np.array_equal(changed, self.set_of(below)):
                return False
            if above is not None:
                changed = self._instead(above, below, changed)
        return True

    def _instead(self, node: Node, part: Node, changed: Ids) -> Ids:
        """The set of a node if one of its parts had another set."""

        def given(one: Node) -> Ids:
            return changed if one is part else self.set_of(one)

        if node.op == "p":
            return self._source.full.reached(self.relations[node.place], changed)
        if node.op == "u":
            return unite([given(one) for one in node.inputs])
        return _less([given(one) for one in node.inputs], [given(one) for one in node.taken])

    # --- what tells a query from others ---------------------------------------------------------

    def _text(self, node: Node) -> str | None:
        """The grounded query in a canonical order; None where two branches are the same."""
        if node.op == "e":
            return str(self.entities[node.place])
        texts = []
        for part in (*node.inputs, *node.taken):
            text = self._text(part)
            if text is None:
                return None
            texts.append(text)
        if node.op == "p":
            return f"{self.relations[node.place]}({texts[0]})"
        if len(set(texts)) < len(texts):
            return None
        cut = len(node.inputs)
        kept, taken = texts[:cut], texts[cut:]
        if not self._betae:
            kept, taken = sorted(kept), sorted(taken)
        sign = "&" if node.op == "i" else "|"
        return f"({sign.join(kept)}{''.join(f'-{text}' for text in taken)})"


def _less(kept: list[Ids], taken: list[Ids]) -> Ids:
    """What is in all of the sets and in none of the others."""
    kept = sorted(kept, key=len)
    found = kept[0]
    for other in kept[1:]:
        found = intersect(found, other)
    for other in taken:
        if len(found) and len(other):
            found = found[~contains(other, found)]
    return found


def _has(ids: Ids, entity: int) -> bool:
    at = int(ids.searchsorted(entity))
    return at < len(ids) and int(ids[at]) == entity


def _has_like_operands(tree: Tree) -> bool:
    """Whether some operands are told apart by their relations and anchors only."""
    return any(
        len({part.formula for part in node.operands}) < len(node.operands)
        for node in nodes(tree)
        if node.op in "iuIUD"
    )
