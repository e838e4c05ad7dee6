"""A link predictor of random numbers over a small graph, and values of queries by trying out."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import torch
from torch import Tensor

from cqa.graphs.graph import Graph, from_triples
from cqa.query import Conjunction, Constant, Query, Term, Variable
from cqa.types.tree import Tree
from tests.cqa.random_queries import ENTITIES, RELATIONS, random_triples


class Table:
    """Logits from a table [K, E, E]; ``symmetric``: an inverse has the columns of its relation."""

    def __init__(self, seed: int, symmetric: bool = False, entities: int = ENTITIES) -> None:
        made = torch.Generator().manual_seed(seed)
        self.logits = 2 * torch.randn((2 * RELATIONS, entities, entities), generator=made)
        if symmetric:
            self.logits[1::2] = self.logits[::2].transpose(1, 2)
        self.entity_count, self.relation_count = entities, 2 * RELATIONS
        self.calls = 0

    def scores(self, relation: int, heads: Tensor) -> Tensor:
        """Rows of the table."""
        self.calls += len(heads)
        return self.logits[relation][heads]


def small_graph(seed: int) -> Graph:
    """A random graph, a part of whose links is of valid and test."""
    random = Random(seed)
    triples = random_triples(random)
    random.shuffle(triples)
    cut = len(triples) * 7 // 10
    parts = [triples[:cut], triples[cut : cut + 3], triples[cut + 3 :]]
    arrays = [np.array(part, np.int32).reshape(-1, 3) for part in parts]
    return from_triples(arrays, entity_count=ENTITIES, relation_count=RELATIONS)


class Brute:
    """Values of queries over a table of truth values [K, E, E], assignment by assignment."""

    def __init__(self, table: np.ndarray, norm: str, conorm: str, negation: float = 1.0) -> None:
        self.table, self.norm, self.conorm, self.negation = table, norm, conorm, negation
        self.entities = range(table.shape[1])

    def no(self, value: float) -> float:
        """The negation of a value."""
        return 1 - min(1.0, self.negation * value)

    def all_of(self, values: list[float]) -> float:
        """The t-norm."""
        return float(np.prod(values)) if self.norm == "product" else min(values, default=1.0)

    def any_of(self, values: list[float]) -> float:
        """The t-conorm."""
        if self.conorm == "maximum":
            return max(values)
        return 1 - float(np.prod([1 - value for value in values]))

    def value(self, query: Query, given: dict[Variable, int]) -> float:
        """The value of an answer."""
        return self.any_of([self.part(one, query.free, given) for one in query.disjuncts])

    def part(
        self, one: Conjunction, free: tuple[Variable, ...], given: dict[Variable, int]
    ) -> float:
        """The best assignment of a conjunction."""
        own = {variable: given[variable] for variable in free}
        others = sorted({v for v in one.variables if v not in own})
        return max(
            self.assigned(one, {**own, **dict(zip(others, row, strict=True))})
            for row in product(self.entities, repeat=len(others))
        )

    def assigned(self, one: Conjunction, own: dict[Variable, int]) -> float:
        """The value of one assignment."""
        values = []
        for atom in one.atoms:
            row = self.table[int(atom.relation), self.entity(atom.head, own)]
            found = float(row[self.entity(atom.tail, own)])
            values.append(found if atom.positive else self.no(found))
        values += [self.no(self.value(negated, own)) for negated in one.without]
        return self.all_of(values)

    @staticmethod
    def entity(term: Term, own: dict[Variable, int]) -> int:
        """What a term stands for."""
        return int(term.entity) if isinstance(term, Constant) else own[term]

    def rows(self, query: Query) -> np.ndarray:
        """The values of all answers, an array of as many dimensions as free variables."""
        shape = (len(self.entities),) * len(query.free)
        found = np.zeros(shape)
        for row in product(self.entities, repeat=len(query.free)):
            found[row] = self.value(query, dict(zip(query.free, row, strict=True)))
        return found

    def tree(self, tree: Tree, at: int) -> float:
        """The value of an entity in the set of an operator tree."""
        if tree.op == "e":
            return float(tree.entity == at)
        if tree.op == "p":
            below, row = tree.operands[0], self.table[int(tree.relation or 0)]
            pairs = [[self.tree(below, h), float(row[h, at])] for h in self.entities]
            return max(self.all_of(pair) for pair in pairs)
        values = [self.tree(operand, at) for operand in tree.operands]
        if tree.op == "n":
            return self.no(values[0])
        if tree.op in "uU":
            return self.any_of(values)
        if tree.op in "dD":
            values[1:] = map(self.no, values[1:])
        return self.all_of(values)
