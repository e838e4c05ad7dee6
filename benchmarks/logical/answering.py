"""Speed of answering logical queries, one by one, on FB15k-237 with one core.

    KOPL_DATA=DIR python benchmarks/logical/answering.py --queries 20 --types-per-group 40

Queries of all EFO-1 types and of EFOk's published types are grounded backward from an answer at
random (EFOk's with at most 10,000 answers; published ones have few) and answered on the full graph,
each from its `Query` (conversion from a tree counts, too). A type's speed is its queries by the
processor's time of one pass over them: *cold* the first, *warm* the median of --passes later ones.
The table has the median over the types of a group, the slowest type, and the speed over all queries
of the group. The public code's speeds were measured on one core with the same graph, on another day
and other queries: they tell orders of magnitude, and no ratio is printed. `betae.py` compares with
another program in one process on the same queries. The script fails on nothing.

Why NumPy alone: projecting a set (40 entities on average, as in 2p) by one relation of FB15k-237
takes `Links.reached` 13 us. A SciPy sparse product takes 102 us and python-graphblas (any_pair)
124 us, as both touch every entity or set up an object for each call. A Numba loop takes 7 to 12 us,
after 2.5 s to compile: too little for a dependency.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from cqa.answering.answer import evaluate
from cqa.answering.semiring import BOOLEAN, COUNTING, FEWEST_MISSING, Semiring
from cqa.graphs.graph import Graph
from cqa.graphs.readers import read_graph
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Constant, Query, Variable
from cqa.types.efo1 import types as efo1_types
from cqa.types.tree import Tree

# Queries a second of the public code, FB15k-237, one core.
EFO1: dict[Any, float] = {
    (1, 1): 75_600, (1, 2): 2_200, (1, 3): 1_100,
    (2, 1): 12_400, (2, 2): 1_500, (2, 3): 720,
    (3, 1): 1_400, (3, 2): 471, (3, 3): 263,
}  # fmt: skip
# (free, existential, topology)
EFOK: dict[Any, float] = {
    (1, 0, "SDAG"): 164, (1, 1, "SDAG"): 20, (1, 1, "multi"): 15,
    (1, 2, "SDAG"): 7.4, (1, 2, "multi"): 5.7, (1, 2, "cyclic"): 5.4,
    (2, 0, "SDAG"): 16, (2, 0, "multi"): 19,
    (2, 1, "SDAG"): 5.1, (2, 1, "multi"): 8.9, (2, 1, "cyclic"): 3.3,
    (2, 2, "SDAG"): 2.0, (2, 2, "multi"): 2.5, (2, 2, "cyclic"): 0.74,
}  # fmt: skip


class Grounding:
    """Queries that have an answer, drawn backward from it; simple, and not evenly."""

    def __init__(self, graph: Graph, random: Random) -> None:
        self.random, self.links = random, graph.full()
        triples = graph.triples()
        both = np.concatenate([triples, triples[:, ::-1] + np.array([0, 1, 0], np.int32)])
        order = np.lexsort((both[:, 1], both[:, 0]))
        self.out = both[order]
        self.starts = np.searchsorted(self.out[:, 0], np.arange(graph.entity_count + 1))
        self.pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
        for head, relation, tail in self.out.tolist():
            self.pairs[head, tail].append(relation)
        self.entities = graph.entity_count

    def step(self, entity: int) -> tuple[int, int]:
        """A link into an entity: the relation, drawn evenly, and a source."""
        rows = self.out[self.starts[entity] : self.starts[entity + 1]]
        relation = self.random.choice(sorted(set(rows[:, 1].tolist())))
        sources = self.links.row(relation, entity)
        return relation ^ 1, int(sources[self.random.randrange(len(sources))])

    def entity(self) -> int:
        """An entity with a link."""
        while True:
            found = self.random.randrange(self.entities)
            if self.starts[found] < self.starts[found + 1]:
                return found

    def tree(self, tree: Tree, answer: int) -> Tree:
        """The tree with relations and anchors so that the answer is in it."""
        if tree.op == "p":
            relation, source = self.step(answer)
            return Tree("p", (self.tree(tree.operands[0], source),), relation)
        if tree.op == "e":
            return Tree("e", entity=answer)
        if tree.op == "u":
            first = self.random.randrange(2)
            return Tree(
                "u",
                tuple(
                    self.tree(operand, answer if number == first else self.entity())
                    for number, operand in enumerate(tree.operands)
                ),
            )
        negated = [operand for operand in tree.operands if operand.op == "n"]
        if not negated:
            return Tree("i", tuple(self.tree(operand, answer) for operand in tree.operands))
        positive = next(operand for operand in tree.operands if operand.op != "n")
        left = self.tree(positive, answer)
        others = evaluate(from_tree(left), self.links).tuples[:, 0]
        # A negation further down may have removed the answer, and all others.
        other = self.entity()
        if len(others):
            other = int(others[self.random.randrange(len(others))])
        return Tree("i", (left, Tree("n", (self.tree(negated[0].operands[0], other),))))

    def query(self, kind: Query) -> Query:
        """A query graph with relations and constants so that it has an answer, most likely."""
        while True:
            found = self._try(kind)
            if found is not None:
                return found

    def small(self, kind: Query, most: int) -> Query:
        """The same with few answers, as published queries have; at worst the last of 20 draws."""
        for _ in range(20):
            found = self.query(kind)
            if len(evaluate(found, self.links)) <= most:
                break
        return found

    def _try(self, kind: Query) -> Query | None:
        atoms = list(kind.disjuncts[0].atoms)
        places: dict[Any, int] = {kind.free[0]: self.entity()}
        waiting = [atom for atom in atoms if atom.positive]
        while waiting:
            atom = next((a for a in waiting if a.head in places or a.tail in places), waiting[0])
            if atom.head not in places and atom.tail not in places:
                places[atom.tail] = self.entity()  # only a negative edge leads here
            waiting.remove(atom)
            if atom.head in places and atom.tail in places:
                continue
            known, new = (atom.head, atom.tail) if atom.head in places else (atom.tail, atom.head)
            near = [
                places[end]
                for a in waiting
                for end in (a.head, a.tail)
                if new in (a.head, a.tail) and end in places
            ]
            places[new] = self._neighbour(places[known], near)
            if places[new] < 0:
                return None
        grounded: dict[int, Atom] = {}
        used: set[tuple[int, int, int]] = set()
        for number, atom in enumerate(atoms):
            if atom.positive:
                at, to = places[atom.head], places[atom.tail]
                free = [r for r in self.pairs[at, to] if (at, r, to) not in used]
                if not free:
                    return None
                relation = self.random.choice(free)
                used |= {(at, relation, to), (to, relation ^ 1, at)}
                grounded[number] = Atom(
                    relation, self._end(atom.head, places), self._end(atom.tail, places)
                )
        for number, atom in enumerate(atoms):
            if not atom.positive:
                near_end = atom.tail if atom.tail in places else atom.head
                relation, source = self.step(places[near_end])
                # The relation is one that such entities have; the link goes elsewhere.
                other = Constant(self._elsewhere(relation, source))
                head, tail = (
                    self._end(end, places) if end in places else other
                    for end in (atom.head, atom.tail)
                )
                grounded[number] = Atom(relation, head, tail, False)
        return Query(kind.free, (Conjunction(tuple(grounded[n] for n in range(len(atoms)))),))

    def _elsewhere(self, relation: int, source: int) -> int:
        heads = self.links.heads_of(relation)
        for _ in range(5):
            found = int(heads[self.random.randrange(len(heads))])
            if found != source:
                return found
        return source

    def _neighbour(self, entity: int, near: list[int]) -> int:
        """A neighbour of an entity, and of others where it must be; -1 when there is none."""
        rows = self.out[self.starts[entity] : self.starts[entity + 1], 2]
        choices = sorted(set(rows.tolist()))
        for other in near:
            if other != entity:
                choices = [one for one in choices if (one, other) in self.pairs]
            else:
                choices = [one for one in choices if len(self.pairs[one, other]) > 1]
        return self.random.choice(choices) if choices else -1

    @staticmethod
    def _end(end: Any, places: dict[Any, int]) -> Any:
        return end if isinstance(end, Variable) else Constant(places[end])


@dataclass
class Group:
    """The times of one group of types."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    slowest: tuple[float, str] = (float("inf"), "")
    queries: int = 0
    seconds: float = 0.0
    answers: int = 0

    def add(self, name: str, passes: list[float], queries: int, answers: int) -> None:
        """Count one type by the seconds of each pass over its queries, the first one cold."""
        seconds = statistics.median(passes[1:])
        self.cold.append(queries / passes[0])
        self.warm.append(queries / seconds)
        self.slowest = min(self.slowest, (self.warm[-1], name))
        self.queries += queries
        self.seconds += seconds
        self.answers += answers


def timed(
    asks: list[Callable[[], Query]], graph: Graph, semiring: Semiring, passes: int
) -> tuple[list[float], int]:
    """The processor's seconds of each pass, and how many answers there are.

    Making the queries is included.
    """
    links = graph.priced() if semiring.weighted else graph.full()
    seconds = []
    for _ in range(1 + passes):
        begin, found = time.process_time(), 0
        for ask in asks:
            found += len(evaluate(ask(), links, semiring))
        seconds.append(time.process_time() - begin)
    return seconds, found


def show(title: str, groups: dict[Any, Group], public: dict[Any, float]) -> None:
    """Print one table."""
    print(f"\n{title}\n")
    print("| group | types | answers | warm, median/s | over all/s | slowest/s | cold/s | public |")
    print("|---|---|---|---|---|---|---|---|")
    for group in sorted(groups):
        found = groups[group]
        print(
            f"| {', '.join(map(str, group))} | {len(found.warm)}"
            f" | {found.answers / found.queries:,.0f} | {statistics.median(found.warm):,.0f}"
            f" | {found.queries / found.seconds:,.0f} | {found.slowest[0]:,.0f} {found.slowest[1]}"
            f" | {statistics.median(found.cold):,.0f} | {public[group]:,} |"
        )


def published_types(data: Path) -> Iterable[tuple[tuple[int, int, str], str, Query]]:
    """The group, formula and query of each published EFOk type."""
    import csv

    from cqa.types.efok_text import read_formula

    with (data / "efok" / "published_741.csv").open() as file:
        for row in csv.DictReader(file):
            topology = (
                "cyclic"
                if row["cyclic"] == "True"
                else "multi"
                if row["multi"] == "True"
                else "SDAG"
            )
            group = int(row["f_num"]), int(row["e_num"]), topology
            yield group, row["formula"], read_formula(row["formula"])


def _same(query: Query) -> Query:
    return query


def main() -> None:
    """Ground, answer, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=20, help="queries of a type (default: 20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--types-per-group", type=int, default=40, help="types of a group, spread evenly"
    )
    parser.add_argument(
        "--most", type=int, default=10_000, help="answers that an EFOk query has at most"
    )
    parser.add_argument("--passes", type=int, default=3, help="warm passes (default: 3)")
    parser.add_argument("--semiring", choices=["boolean", "counting", "fewest missing"],
                        default="boolean")  # fmt: skip
    arguments = parser.parse_args()
    if not (folder := os.environ.get("KOPL_DATA")):
        sys.exit("KOPL_DATA is not set to a folder with fb15k237 and efok")
    data = Path(folder)
    semiring = {s.name: s for s in (BOOLEAN, COUNTING, FEWEST_MISSING)}[arguments.semiring]
    random = Random(arguments.seed)
    graph = read_graph(data / "fb15k237")
    # Nothing was asked of the graph that answers, as grounding has one of its own.
    grounding = Grounding(read_graph(data / "fb15k237"), random)

    trees: dict[Any, Group] = defaultdict(Group)
    for tree in efo1_types():
        drawn = [grounding.tree(tree, grounding.entity()) for _ in range(arguments.queries)]
        asks = [partial(from_tree, one) for one in drawn]
        seconds, count = timed(asks, graph, semiring, arguments.passes)
        trees[tree.anchors, tree.depth].add(tree.formula, seconds, len(asks), count)
    show("EFO-1, by anchors and depth", trees, EFO1)

    graphs: dict[Any, Group] = defaultdict(Group)
    kinds: dict[Any, list[tuple[str, Query]]] = defaultdict(list)
    for key, formula, kind in published_types(data):
        kinds[key].append((formula, kind))
    for key, own in kinds.items():
        every = max(1, len(own) // arguments.types_per_group)
        for formula, kind in own[::every]:
            asked = [grounding.small(kind, arguments.most) for _ in range(arguments.queries)]
            given = [partial(_same, one) for one in asked]
            seconds, count = timed(given, graph, semiring, arguments.passes)
            graphs[key].add(formula, seconds, len(given), count)
    show("EFOk, by free variables, existential variables and topology", graphs, EFOK)


if __name__ == "__main__":
    main()
