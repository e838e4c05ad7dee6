"""How an operator tree is grounded: its sets as projections, intersections less others, and unions.

Every form of a tree (the nine of `cqa.types.normal`, and any other in which complements are
bounded) comes out as the same few operations, De Morgan's detours undone, while each ``p`` and
``e`` keeps its place in the tree that was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from cqa.sampling.options import SamplingError
from cqa.types.tree import Tree


@dataclass(frozen=True, eq=False)
class Node:
    """A set of entities.

    ``op`` is "e", "p", "u" or "i": ``inputs`` intersected, less each of ``taken``. ``place`` is the
    number of the p or e among those of the given tree, in its order; ``number`` that of the node.
    """

    number: int
    op: str
    inputs: tuple[Node, ...] = ()
    taken: tuple[Node, ...] = ()
    place: int = -1


@dataclass(frozen=True)
class DrawingPlan:
    """The nodes of a tree, inputs before what is made of them; the last one is the root.

    ``negations`` has, for each part that is taken from a set, the nodes on the way from that set to
    the root, and the part's place in ``taken``.
    """

    tree: Tree
    nodes: tuple[Node, ...]
    negations: tuple[tuple[tuple[Node, ...], int], ...]
    relations: int
    anchors: int

    @property
    def root(self) -> Node:
        """The set of answers."""
        return self.nodes[-1]


def plan_of(tree: Tree) -> DrawingPlan:
    """The plan of an operator tree; raises SamplingError for what is no bounded set."""
    made = _Planner(tree)
    root = made.positive(tree)
    negations: list[tuple[tuple[Node, ...], int]] = []

    def visit(node: Node, above: tuple[Node, ...]) -> None:
        way = (node, *above)
        negations.extend((way, at) for at in range(len(node.taken)))
        for part in (*node.inputs, *node.taken):
            visit(part, way)

    visit(root, ())
    return DrawingPlan(
        tree, tuple(made.nodes), tuple(negations), next(made.relations), next(made.anchors)
    )


@dataclass
class _Part:
    """A set, the complement of one, or what several complements have in common."""

    sets: list[Node]
    complement: bool = False


class _Planner:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.nodes: list[Node] = []
        self.relations, self.anchors = count(), count()

    def _node(
        self, op: str, inputs: list[Node], taken: list[Node] | None = None, place: int = -1
    ) -> Node:
        node = Node(len(self.nodes), op, tuple(inputs), tuple(taken or ()), place)
        self.nodes.append(node)
        return node

    def positive(self, tree: Tree) -> Node:
        """The node of a part that must be a set."""
        part = self._part(tree)
        if part.complement:
            raise SamplingError(
                f"{self._tree}: the complement {tree} is not bounded by an intersection with a set"
            )
        return part.sets[0]

    def _part(self, tree: Tree) -> _Part:
        if tree.op == "e":
            raise SamplingError(
                f"{self._tree}: a given entity stands alone; a relation must lead from it"
            )
        if tree.op == "p":
            place, below = next(self.relations), tree.operands[0]
            if below.op == "e":
                node = self._node("e", [], place=next(self.anchors))
            else:
                node = self.positive(below)
            return _Part([self._node("p", [node], place=place)])
        if tree.op == "n":
            part = self._part(tree.operands[0])
            if not part.complement:
                return _Part(part.sets, True)
            return _Part([self._union(part.sets)])
        if tree.op in "uU":
            return self._united([self._part(operand) for operand in tree.operands])
        parts = [self._part(operand) for operand in tree.operands]
        if tree.op in "dD":
            kept, *others = parts
            parts = [kept, *map(self._complement, others)]
        return self._met(parts)

    def _complement(self, part: _Part) -> _Part:
        return _Part([self._union(part.sets)]) if part.complement else _Part(part.sets, True)

    def _met(self, parts: list[_Part]) -> _Part:
        """What the parts have in common; chains of intersections are one node."""
        taken = [node for part in parts if part.complement for node in part.sets]
        kept = [part.sets[0] for part in parts if not part.complement]
        if not kept:
            return _Part(taken, True)
        inputs: list[Node] = []
        for node in kept:
            if node.op == "i":
                inputs += node.inputs
                taken += node.taken
            else:
                inputs.append(node)
        return _Part([self._node("i", inputs, taken)])

    def _united(self, parts: list[_Part]) -> _Part:
        """What is in any of the parts: a set, or the complement of one where a part is that."""
        kept = [part.sets[0] for part in parts if not part.complement]
        others = [part for part in parts if part.complement]
        if not others:
            return _Part([self._union(kept)])
        # a or not b is what is not in (b less a).
        inputs = [self._union(part.sets) for part in others]
        if len(inputs) == 1 and not kept:
            return _Part(inputs, True)
        return _Part([self._node("i", inputs, kept)], True)

    def _union(self, sets: list[Node]) -> Node:
        if len(sets) == 1:
            return sets[0]
        inputs = [part for node in sets for part in (node.inputs if node.op == "u" else (node,))]
        return self._node("u", inputs)
