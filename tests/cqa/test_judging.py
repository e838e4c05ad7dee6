"""Many queries judged at a time: in blocks, by workers, on tensors; the figures are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from cqa.errors import QueryError
from cqa.evaluation.evaluation import Evaluation, evaluate, evaluate_by
from cqa.evaluation.judging import Judge, Reductions
from cqa.evaluation.metrics import SHARE, Tally, one_variable
from cqa.evaluation.reasoner import RandomReasoner, Scored
from cqa.formats.samples import pieces, write_samples
from cqa.graphs.graph import Graph
from cqa.query import Query
from cqa.sampling.sample import Sample
from cqa.types.tree import Tree
from cqa.vocabularies import TIES
from kopl_base.errors import ReadError
from tests.cqa.small_benchmark import graph_samples, tree_samples

Answers = tuple[np.ndarray, np.ndarray, np.ndarray]


def worlds(
    seed: int, count: int, dtype: type = np.float32
) -> tuple[np.ndarray, list[Answers], int]:
    """Scores of entities, many of them tied or endless, and easy, hard and lost answers."""
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 30))
    scores = random.integers(-3, 4, (count, size)).astype(dtype)
    scores[random.random(scores.shape) < 0.1] = -np.inf
    scores[random.random(scores.shape) < 0.05] = np.inf
    found = []
    for _ in range(count):
        kinds = random.choice(5, size, p=[0.5, 0.2, 0.15, 0.1, 0.05])
        easy, hard, lost = (np.flatnonzero(np.isin(kinds, kind)).astype(np.int32)
                            for kind in ([1, 3], [2], [3]))  # fmt: skip
        found.append((easy, hard, lost))
    return scores, found, size


@pytest.mark.parametrize("ties", TIES)
def test_a_tally_counts_what_naive_counting_does(ties: str) -> None:
    for seed in range(60):
        scores, answers, size = worlds(seed, 5)
        tally = Tally(answers, size)
        for at in (3, 0, 4, 1, 2):
            tally.add(at, scores[at])
        found, ranks = tally.metrics(ties), tally.ranks(ties)
        for at, (row, (easy, hard, lost)) in enumerate(zip(scores, answers, strict=True)):
            kept = set(easy.tolist()) - set(lost.tolist())
            field = [row[e] for e in range(size) if e not in kept | set(hard.tolist())]
            own = ranks[tally.hard.part(at)].tolist()
            assert own == [
                1 + sum(o > row[h] for o in field) + SHARE[ties] * sum(o == row[h] for o in field)
                for h in hard.tolist()
            ]
            listed = set(easy.tolist()) | set(hard.tolist())
            outside = [row[e] for e in range(size) if e not in listed]
            first = [
                sum(o > row[e] for o in outside) + SHARE[ties] * sum(o == row[e] for o in outside)
                for e in sorted(kept)
            ]
            share = np.mean([value == 0 for value in first]) if first else np.nan
            np.testing.assert_equal(found["entailment"][at], share)
            alone, same = one_variable(row, easy, hard, lost, ties=ties)
            assert same.tolist() == own
            for key, values in found.items():
                np.testing.assert_equal(values[at], alone.get(key, np.nan))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_tensors_are_tallied_as_arrays_are(dtype: type) -> None:
    torch = pytest.importorskip("torch")
    from cqa.models.reasoner import tally_block

    for seed in range(80):
        scores, answers, size = worlds(seed, 6, dtype)
        one, other = Tally(answers, size), Tally(answers, size)
        for at, row in enumerate(scores):
            one.add(at, row)
        for own in ([4, 1], [0, 5, 2, 3]):
            tally_block(other, own, torch.from_numpy(scores[own]))
        for name in ("above", "alike", "hard_scores", "kept_scores", "best"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
        for ties in TIES:
            assert one.ranks(ties).tolist() == other.ranks(ties).tolist()
            np.testing.assert_equal(one.metrics(ties), other.metrics(ties))


class Blocks:
    """Chance, in blocks of some queries of one width in any order."""

    def __init__(self, size: int = 7, tensors: bool = False) -> None:
        self._size, self._tensors = size, tensors
        self._chance = RandomReasoner(40)

    def scores(self, query: Query | Tree) -> Any:
        """Never asked."""
        raise AssertionError

    def blocks_of(self, queries: Sequence[Query | Tree]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Blocks, those of few free variables last."""
        scores = [self._chance.scores(query).scores for query in queries]
        for width in (2, 1):
            own = [at for at, rows in enumerate(scores) if len(rows) == width]
            Random(1).shuffle(own)
            for begin in range(0, len(own), self._size):
                part = own[begin : begin + self._size]
                block = np.stack([scores[at] for at in part])
                if self._tensors:
                    import torch

                    yield tuple(part), torch.from_numpy(block)
                else:
                    yield tuple(part), block


def same(one: Evaluation, other: Evaluation) -> None:
    """That two evaluations agree in every query."""
    assert one == other
    for mine, theirs in zip(one.types, other.types, strict=True):
        assert mine.mark == theirs.mark
        for name in ("all", *mine.reduced):
            left = mine.all if name == "all" else mine.reduced[name]
            right = theirs.all if name == "all" else theirs.reduced[name]
            np.testing.assert_equal(left.each, right.each)
            np.testing.assert_array_equal(left.own, right.own)


@pytest.mark.parametrize("compat", [None, "paper"])
def test_blocks_are_judged_as_single_queries_are(compat: str | None) -> None:
    samples = [*tree_samples(), *graph_samples()]
    Random(2).shuffle(samples)
    expected = evaluate(RandomReasoner(40), samples, 40, name="chance", compat=compat)
    same(evaluate(Blocks(), samples, 40, name="chance", compat=compat), expected)
    pytest.importorskip("torch")
    same(evaluate(Blocks(tensors=True), samples, 40, name="chance", compat=compat), expected)


class Wrong(Blocks):
    """Blocks that are none."""

    def __init__(self, what: str) -> None:
        super().__init__(40)
        self._what = what

    def blocks_of(self, queries: Sequence[Query | Tree]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Wrong ones."""
        for own, block in super().blocks_of(queries):
            if self._what == "shape":
                block = block[:, :, 1:]
            elif self._what == "nan":
                block[1, 0, 3] = np.nan
            elif self._what == "texts":
                block = block.astype(str)
            yield own, block
            if self._what == "twice":
                yield own, block
        if self._what == "twice":
            return


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("shape", r"query \d+ \(\w+\): the reasoner gave a block of shape \(40, 1, 39\); \(40, 1,"),
        ("nan", r"query \d+ \(\w+\): the reasoner gave no number \(NaN\) for entity 3"),
        ("texts", r"the reasoner gave scores of type <U\d+, not numbers"),
        ("twice", r"query 1: the reasoner scored it 2 times"),
    ],
)
def test_what_is_no_block(what: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        evaluate(Wrong(what), tree_samples(), 40)


# --- workers --------------------------------------------------------------------------------


def chance(graph: Graph, hardness: bool = False) -> Judge:
    """A judge of chance."""
    labels = Reductions(graph) if hardness else None
    return Judge(RandomReasoner(graph.entity_count), graph.entity_count, labels=labels)


def test_workers_reach_what_one_process_does(graph: Graph, tmp_path: Path) -> None:
    samples = [*tree_samples(), *graph_samples()]
    write_samples(tmp_path / "q.jsonl", samples)
    labels = Reductions(graph)
    expected = evaluate(RandomReasoner(40), samples, 40, name="chance", labels=labels)
    assert expected.types[0].all.own is not None
    given = partial(evaluate_by, partial(chance, hardness=True), graph, name="chance")
    same(given(pieces(tmp_path / "q.jsonl", 13)), expected)
    same(given(pieces(tmp_path / "q.jsonl", 13), workers=2), expected)
    held = [samples[begin : begin + 29] for begin in range(0, len(samples), 29)]
    same(given(held, workers=2), expected)


def test_what_workers_find_wrong_has_its_number(graph: Graph, tmp_path: Path) -> None:
    samples = [*tree_samples()[:40]]
    wrong = Sample("other", "x", samples[0].query, *(samples[0].hard for _ in range(3)))
    given = partial(evaluate_by, chance, graph, name="chance", workers=2)
    with pytest.raises(QueryError, match=r"query 41 \(other\): the answer \d+ is listed twice"):
        given([samples[:30], [*samples[30:], wrong]])
    changed = Sample(samples[0].type, "x", samples[0].query, *(s for s in _parts(samples[0])))
    with pytest.raises(QueryError, match=r"query 31 \(1p\): the type is x here and \(p,\(e\)\)"):
        given([samples[:30], [changed]])
    write_samples(tmp_path / "q.jsonl", samples)
    with open(tmp_path / "q.jsonl", "a") as file:
        file.write("\n{}\n")
    with pytest.raises(ReadError, match=r"q\.jsonl: line 42: the field 'type' is missing"):
        given(pieces(tmp_path / "q.jsonl", 30))
    with pytest.raises(QueryError, match="a number of workers from 1 on was expected, not 0"):
        evaluate_by(chance, graph, [samples], name="", workers=0)


def _parts(sample: Sample) -> tuple[Any, Any, Any]:
    return sample.easy, sample.hard, sample.lost


def test_scores_of_whole_numbers_are_ranked(trees: list[Sample]) -> None:
    class Whole:
        """Whole numbers in blocks."""

        def scores(self, query: Query | Tree) -> Scored:
            """For one."""
            return Scored(np.arange(40.0)[None])

        def blocks_of(self, queries: Sequence[Any]) -> Iterator[Any]:
            """For all."""
            yield tuple(range(len(queries))), np.tile(np.arange(40), (len(queries), 1, 1))

    class Single(Whole):
        """The same one by one."""

        blocks_of = None

    same(evaluate(Whole(), trees, 40, name="x"), evaluate(Single(), trees, 40, name="x"))
