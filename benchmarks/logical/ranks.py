"""Time to rank all answers of EFO-1-QA's test set where scores cost nothing.

    python benchmarks/logical/ranks.py                      # 301 types x 8,000 queries, 2 workers
    python benchmarks/logical/ranks.py --queries 200 --workers 1 --device cuda

Queries are synthetic: the 301 types with drawn relations and anchors, and with as many easy and
hard answers as queries sampled on FB15k-237 have (hard: 1 to 100, half of them up to 9; easy: half
of them up to 110, some thousands). They are written as JSON lines, --pool of each type, and read
again and again until there are --queries of each: parsing counts as for a file of that size. Scores
are a block of random float32 numbers, [512, entities], held in memory; each chunk of 512 queries is
ranked by it. What is timed is `kopl cqa evaluate` from the lines of the file to the report: MRR,
HIT@1, 3, 10, RA-Oracle and entailment of each query.

Prints the seconds on the clock and of the processors, and the share of reading. The script fails
where the metrics of the first chunk are not those of naive counting.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from cqa.evaluation.evaluation import CHUNK, evaluate_by
from cqa.evaluation.judging import Judge
from cqa.formats.json_lines import Lines, from_line, to_line
from cqa.graphs.graph import Graph, from_triples
from cqa.sampling.sample import Sample
from cqa.types.registry import efo1_types
from cqa.types.tree import Tree

ENTITIES, RELATIONS = 14_505, 237


class Free:
    """A reasoner whose scores cost nothing: the rows of one block, in their order."""

    def __init__(self, device: str) -> None:
        rows = np.random.default_rng(0).random((CHUNK, 1, ENTITIES), dtype=np.float32)
        self.block: Any = rows
        if device != "cpu":
            import torch

            self.block = torch.from_numpy(rows).to(device)

    def scores(self, query: Any) -> Any:
        """One row."""
        return self.block[0, 0]

    def blocks_of(self, queries: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """All of the chunk at once."""
        yield tuple(range(len(queries))), self.block[: len(queries)]


def prepare(device: str, graph: Graph) -> Judge:
    """The judge of one worker."""
    return Judge(Free(device), graph.entity_count)


def pool(each: int, random: np.random.Generator) -> Iterator[Sample]:
    """Some queries of each type."""
    for row in efo1_types():
        for _ in range(each):
            hard = min(100, 1 + int(random.lognormal(2.2, 1.2)))
            easy = min(4_500, int(random.lognormal(4.7, 1.3)))
            answers = random.choice(ENTITIES, hard + easy, replace=False).astype(np.int32)
            parts = np.sort(answers[:easy]), np.sort(answers[easy:]), answers[:0]
            query = filled(row.tree, random)
            yield Sample(row.id, row.formula, query, *(part[:, None] for part in parts))


def filled(tree: Tree, random: np.random.Generator) -> Tree:
    """A type with drawn relations and anchors."""
    operands = tuple(filled(operand, random) for operand in tree.operands)
    relation = int(random.integers(2 * RELATIONS)) if tree.op == "p" else None
    entity = int(random.integers(ENTITIES)) if tree.op == "e" else None
    return Tree(tree.op, operands, relation, entity)


def repeated(path: Path, wanted: int) -> Iterator[Lines]:
    """The lines of a file again and again, so many in all."""

    def lines() -> Iterator[tuple[int, str]]:
        while True:
            with open(path, encoding="utf-8") as file:
                yield from enumerate(file, 1)

    given = islice(lines(), wanted)
    while some := list(islice(given, CHUNK)):
        yield Lines(str(path), some)


def check(samples: Sequence[Sample], judge: Judge) -> None:
    """Compare the first chunk with naive counting."""
    found = {kind.type: kind for kind in judge.chunk(samples)}
    block = judge.reasoner.block  # type: ignore[attr-defined]
    rows = np.asarray(block if isinstance(block, np.ndarray) else block.cpu())[:, 0]
    seen: dict[str, int] = {}
    for row, sample in zip(rows, samples, strict=False):
        at = seen[sample.type] = seen.get(sample.type, -1) + 1
        others = np.delete(row, np.concatenate([sample.easy, sample.hard])[:, 0])
        ranks = [
            1 + (others > row[entity]).sum() + (others == row[entity]).sum() / 2
            for entity in sample.hard[:, 0]
        ]
        mrr = float(np.mean(1 / np.array(ranks)))
        if abs(mrr - found[sample.type].all.each["mrr"][at]) > 1e-12:
            raise SystemExit(f"{sample.type}: MRR {mrr} by naive counting")


def processors() -> float:
    """The seconds of this process and of those that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(one) for one in whose]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Make the queries, and rank them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=8_000, help="of each type")
    parser.add_argument("--pool", type=int, default=50, help="different ones of each type")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="where the scores are")
    given = parser.parse_args()
    random = np.random.default_rng(1)
    samples = list(pool(given.pool, random))
    order = random.permutation(len(samples))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "queries.jsonl")
        path.write_text("".join(to_line(samples[at]) + "\n" for at in order), encoding="utf-8")
        check([samples[at] for at in order[:CHUNK]], prepare(given.device, _graph()))
        begin = time.process_time()
        with open(path, encoding="utf-8") as file:
            held = [from_line(line) for line in islice(file, 5_000)]
        reading = (time.process_time() - begin) / len(held)
        count = len(efo1_types()) * given.queries
        clock, used = time.monotonic(), processors()
        found = evaluate_by(
            partial(prepare, given.device),
            _graph(),
            repeated(path, count),
            name="free",
            workers=given.workers,
        )
        clock, used = time.monotonic() - clock, processors() - used
    assert found.queries == count
    answers = sum(kind.all.answers for kind in found.types)
    print(
        f"{count:,} queries of {len(found.types)} types, {answers:,} hard answers,"
        f" {given.workers} workers, {given.device}\n"
        f"{clock:.0f} s on the clock, {used:.0f} s of processors:"
        f" {1e6 * used / count:.0f} us a query, of which reading {1e6 * reading:.0f} us\n"
        f"MRR {100 * found.metrics['mrr']:.4f}"
    )


def _graph() -> Graph:
    triples = np.array([[0, 0, 1]], np.int32)
    return from_triples([triples] * 3, entity_count=ENTITIES, relation_count=RELATIONS)


if __name__ == "__main__":
    main()
