"""How many queries of a type there can be on a graph, and how many a run may ask for."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from math import comb, perm

from cqa.graphs.links import Links
from cqa.query import Query, atoms, constants_of
from cqa.sampling.options import SamplingError
from cqa.sampling.sample import Kind
from cqa.types.normal import binary, flatten
from cqa.types.tree import Tree
from kopl_base.errors import counted

log = logging.getLogger("kb")

# What tells the queries of a type from one another is held in memory, some hundred bytes each.
LARGEST = 100_000_000


def most_queries(shape: Tree | Query, links: Links, *, ordered: bool = False) -> int:
    """An upper bound on the different queries of a type on some links.

    An anchor and its relation are one of the rows of the links, any other relation is any directed
    one. ``ordered``: queries that differ by the order of like branches count as different.
    """
    if isinstance(shape, Tree):
        return _of_tree(flatten(binary(shape)), links, perm if ordered else comb)
    rows, relations, found = len(links.heads), links.relation_count, 1
    uses = Counter(constant for atom in atoms(shape) for constant in constants_of(atom))
    for atom in atoms(shape):
        alone = [constant for constant in constants_of(atom) if uses[constant] == 1]
        found *= rows if alone else relations
    for count in uses.values():
        found *= links.entity_count if count > 1 else 1
    return found


def _of_tree(tree: Tree, links: Links, choose: Callable[[int, int], int]) -> int:
    if tree.op == "e":
        return links.entity_count
    if tree.op == "p":
        below = tree.operands[0]
        if below.op == "e":
            return len(links.heads)
        return links.relation_count * _of_tree(below, links, choose)
    found = 1
    # What is taken away (d, D) is no like of what it is taken from.
    first = 1 if tree.op in "dD" else 0
    for part in tree.operands[:first]:
        found *= _of_tree(part, links, choose)
    for part, count in Counter(tree.operands[first:]).items():
        found *= choose(_of_tree(part, links, choose), count)
    return found


def check_count(kinds: Sequence[Kind], count: int, links: Links, *, ordered: bool) -> None:
    """Raise SamplingError for more queries of a type than a run can hold.

    Warns of types that cannot have so many on the graph: they end early, with what they have.
    """
    if count < 1:
        raise SamplingError(f"a number of queries from 1 on was expected, not {count}")
    bounds = {kind.id: most_queries(kind.shape, links, ordered=ordered) for kind in kinds}
    name, fewest = min(bounds.items(), key=lambda item: item[1])
    if count > LARGEST:
        raise SamplingError(
            f"at most {LARGEST:,} queries of each type can be asked for, which one run can hold;"
            f" {name} has at most {fewest:,} on this graph"
        )
    short = sum(bound < count for bound in bounds.values())
    if short:
        others = f", and {counted(short - 1, 'more type')} cannot have as many" if short > 1 else ""
        log.warning("%s has at most %s queries on this graph, not %s%s; what there is will be"
                    " drawn", name, f"{fewest:,}", f"{count:,}", others)  # fmt: skip
