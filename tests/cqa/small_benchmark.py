"""A small graph and sampled queries on it, for the tests of evaluation."""

from __future__ import annotations

import argparse
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np

from cqa.graphs.graph import Graph, from_triples
from cqa.query import Query
from cqa.sampling.kinds import kinds
from cqa.sampling.run import Plan, stream
from cqa.sampling.sample import Sample
from cqa.types.betae import BETAE
from cqa.types.efok_text import read_formula
from cqa.types.registry import types
from cqa.types.tree import Tree


def answer_rows(given: list[Any], width: int) -> Any:
    """Answers as an (n, width) array."""
    return np.array(given, np.int32).reshape(-1, width)


def sample(
    type: str, query: str, easy: list[Any], hard: list[Any], lost: list[Any] | None = None
) -> Sample:
    """A query graph with its answers."""
    read = read_formula(query)
    width = len(read.free)
    rows = [answer_rows(part, width) for part in (easy, hard, lost or [])]
    return Sample(type, "r1(s1,f1)" if width == 1 else "(r1(s1,f1))&(r2(f1,f2))", read, *rows)


@lru_cache(maxsize=1)
def small_world() -> Graph:
    """A random graph of forty entities; two links of seven are missing from the observed one."""
    random = Random(5)
    rows = {(random.randrange(40), random.randrange(4), random.randrange(40)) for _ in range(900)}
    triples = np.array(sorted(rows), np.int32)
    marks = np.array([random.choice((0, 0, 0, 0, 1, 2, 2)) for _ in rows])
    return from_triples(
        [triples[marks == mark] for mark in range(3)], entity_count=40, relation_count=4
    )


@lru_cache(maxsize=1)
def tree_samples() -> list[Sample]:
    """Queries of all of BetaE's types."""
    found = list(stream(Plan(tuple(kinds(BETAE)), 6), small_world()))
    assert {one.type for one in found} == set(BETAE)
    return found


@lru_cache(maxsize=1)
def graph_samples() -> list[Sample]:
    """Queries of some of EFOk's types, with one and two free variables, cycles and negation."""
    every = [f"efok:{row.id}" for row in types("efok")[::60]]
    found = list(stream(Plan(tuple(kinds(every)), 3), small_world()))
    assert {one.hard.shape[1] for one in found} == {1, 2}
    return found


class Fixed:
    """A reasoner with the same scores for all."""

    def __init__(self, *scores: float) -> None:
        self._scores = scores

    def scores(self, query: Query | Tree) -> Any:
        """One row."""
        return self._scores


def run(command: Any, *arguments: str) -> int:
    """Run a command as the command line does."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    status: int = command.run(parser.parse_args(list(arguments)))
    return status
