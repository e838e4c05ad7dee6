"""Searches over a link predictor on published queries, beside the published figures.

    python benchmarks/logical/models.py --graph DATA/fb15k237 --run runs/complex \\
        --queries DATA/fb15k237/query2box-test-half.jsonl --published query2box \\
        --search qto --search "qto beam=64" --limit 200

For each search (a name of `cqa.vocabularies.SEARCHES` with settings) a row of the metric by type,
MRR or HIT@3, with half the width of the interval that holds the mean 95 times in 100 below it, and
the published row. Then the processor seconds that 1,000 queries take, ranking left out, and how
many rows were made for each. With ``--limit`` the first queries of each type, or with ``--draw``
those drawn by a seed (files may begin with hard ones), and only ``--types``.
``--filtered`` leaves out answers of unions that not every branch gives, as the published figures of
2u and 2u1p do. ``--groups`` takes types together by free variables and topology: EFOk's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cqa.evaluation.evaluation import described
from cqa.evaluation.metrics import Metrics, one_variable
from cqa.evaluation.reasoner import Scored
from cqa.evaluation.tuple_metrics import several_variables
from cqa.formats.samples import read_samples
from cqa.graphs.graph import Graph
from cqa.graphs.readers import read_graph
from cqa.hardness.hardness import Hardness
from cqa.models.opening import open_reasoner
from cqa.sampling.sample import Sample, sorted_rows

# Published figures by type, in percent (HIT@3 for query2box, MRR else).
PUBLISHED: Mapping[str, Mapping[str, str]] = {
    "query2box": {"CQD-Beam": "2p 27.9 3p 21.9 2i 35.2 3i 45.7 ip 12.9 pi 24.9"},
    "nell995": {
        "CQD": "1p 60.4 2p 22.0 3p 13.4 2i 42.2 3i 51.8 pi 31.5 ip 25.8 2u 35.9 up 14.6"
        " 2in 4.2 3in 6.5 pin 2.2 pni 4.9 inp 5.5",
        "CQD-Hybrid": "1p 60.4 2p 23.8 3p 17.8 2i 44.2 3i 57.8 pi 33.2 ip 28.4 2u 35.9 up 15.0"
        " 2in 5.1 3in 8.3 pin 3.1 pni 4.3 inp 6.6",
        "QTO": "1p 60.3 2p 24.7 3p 22.6 2i 44.2 3i 56.2 pi 32.8 ip 28.2 2u 37.6 up 16.4"
        " 2in 10.2 3in 14.2 pin 7.4 pni 8.4 inp 7.4",
    },
    "fb15k237": {
        "CQD": "1p 46.7 2p 13.2 3p 7.8 2i 35.0 3i 48.5 pi 27.5 ip 20.7 2u 32.7 up 10.5",
        "CQD-Hybrid": "1p 46.7 2p 15.0 3p 11.0 2i 37.6 3i 52.7 pi 31.2 ip 24.0 2u 32.7 up 10.3",
        "QTO": "1p 46.7 2p 16.6 3p 15.6 2i 39.7 3i 54.6 pi 33.8 ip 24.7 2u 37.0 up 12.2",
    },
}
METRIC = {"query2box": "hit@3"}


def published(name: str) -> dict[str, dict[str, float]]:
    """The published rows of a data set: figures by type."""
    found = {}
    for model, text in PUBLISHED.get(name, {}).items():
        words = text.split()
        found[model] = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    return found


def existing(samples: Iterable[Sample], graph: Graph) -> Iterator[Sample]:
    """Queries whose hard answers every branch of their unions gives on the full graph.

    The other answers count as easy ones: they are no rivals of those that are left.
    """
    told = Hardness(graph, "test", "paper")
    for sample in samples:
        if "u" not in sample.formula:
            yield sample
            continue
        labels = told.label([sample.query], [sample.hard]).of(0)
        keep = np.array([kind is not None for kind in labels])
        if keep.any():
            easy = sorted_rows(np.concatenate([sample.easy, sample.hard[~keep]]))
            yield replace(sample, hard=sample.hard[keep], easy=easy)


def chosen(
    samples: Iterable[Sample], types: set[str], limit: int, by: bool, draw: int | None
) -> dict[str, list[Sample]]:
    """The first queries of each type, or those drawn by a seed, or of each group of types."""
    of_type: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        enough = limit and draw is None and len(of_type[sample.type]) >= limit
        if not enough and (not types or sample.type in types):
            of_type[sample.type].append(sample)
    found: dict[str, list[Sample]] = defaultdict(list)
    for kind, own in of_type.items():
        if limit and draw is not None and own:
            random = np.random.default_rng(draw)
            places = np.sort(random.choice(len(own), min(limit, len(own)), replace=False))
            own = [own[at] for at in places]
        for sample in own:
            name = kind
            if by:
                group, _ = described(sample.type, sample.formula, sample.query)
                parts = dict(group)
                name = f"k={parts['free']} {parts['topology']}" if "free" in parts else "trees"
            found[name].append(sample)
    return found


def judged(scored: Scored, sample: Sample) -> Metrics:
    """The metrics of one query."""
    sets = sample.easy, sample.hard, sample.lost
    if len(scored.scores) > 1:
        return several_variables(scored.scores, *sets, tuples=scored.tuples)[0]
    return one_variable(scored.scores[0], *(rows[:, 0] for rows in sets))[0]


def run(reasoner: Any, own: list[Sample], metrics: list[str]) -> tuple[dict[str, Any], float]:
    """The metrics of each query, and the seconds that a thousand take without their ranking."""
    ranking = 0.0
    rows: dict[str, list[float]] = defaultdict(list)
    began = time.process_time()
    found = reasoner.scores_of([sample.query for sample in own])
    for sample, scored in zip(own, found, strict=True):
        at = time.process_time()
        result = judged(scored, sample)
        for metric in metrics:
            if metric in result:
                rows[metric].append(100 * result[metric])
        ranking += time.process_time() - at
    seconds = (time.process_time() - began - ranking) / len(own) * 1000
    return rows, seconds


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", type=Path, required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--search", action="append", required=True)
    parser.add_argument("--published", choices=sorted(PUBLISHED), default="")
    parser.add_argument("--types", default="")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--draw", type=int)
    parser.add_argument("--metrics", default="")
    parser.add_argument("--filtered", action="store_true")
    parser.add_argument("--groups", action="store_true")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    graph = read_graph(given.graph)
    metrics = (given.metrics or METRIC.get(given.published, "mrr")).split(",")
    samples: Iterable[Sample] = read_samples(given.queries, graph=graph)
    types = {name for name in given.types.split(",") if name}
    groups = chosen(samples, types, given.limit, given.groups, given.draw)
    if given.filtered:
        groups = {name: list(existing(own, graph)) for name, own in groups.items()}
    for name, figures in published(given.published).items():
        print(f"published {name}", *(f"{kind} {figures.get(kind, '-')}" for kind in groups))
    for text in given.search:
        search, *pairs = text.split()
        settings = [f"search.{pair}" for pair in pairs]
        for kind, own in groups.items():
            reasoner = open_reasoner(given.run, graph, search=search, pairs=settings)
            rows, seconds = run(reasoner, own, metrics)
            made = getattr(getattr(reasoner.solver, "rows", None), "made", 0) / len(own)
            shown = []
            for metric in metrics:
                values = np.array(rows[metric] or [np.nan])
                width = 1.96 * values.std() / len(values) ** 0.5
                shown.append(f"{metric} {values.mean():.1f} ± {width:.1f}")
            print(
                f"{text}\t{kind}\t{len(own)}\t" + "\t".join(shown)
                + f"\t{seconds:.1f} s/1000\t{made:.0f} rows",
                flush=True,
            )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
