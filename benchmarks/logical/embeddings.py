"""How small models of queries do: before and after training, beside the most frequent tails.

    python benchmarks/logical/embeddings.py GRAPH OUTPUT [--models gqe,betae,…] [--set key=value …]

Each model is trained by ``configs/cqa/MODEL.yaml`` and asked 500 test queries of each type that it
learns; lmpnn needs ``--set lmpnn.predictor=RUN``. Prints a table in Markdown: MRR in percent,
processor seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cqa.graphs.graph import Graph
from cqa.graphs.readers import read_graph
from cqa.models.checkpoint import load_run
from cqa.models.model import FrequentAnswers
from cqa.models.settings import read_settings
from cqa.models.training import begin, by_type
from cqa.sampling.kinds import kinds
from cqa.sampling.makers import Plan
from cqa.sampling.run import stream
from cqa.sampling.sample import Sample
from kopl_base.training.distributed import use_threads

MODELS = ("gqe", "query2box", "logice", "cone", "newlook", "betae", "lmpnn", "gnn-qe")
TYPES = ("1p", "2p", "2i", "2in")


def tests(graph: Graph, count: int) -> list[Sample]:
    """So many queries of test of each type."""
    return list(stream(Plan(tuple(kinds(TYPES)), count, 7, "test"), graph))


def row(name: str, figures: Mapping[str, float], seconds: float | None = None) -> str:
    """A row of the table."""
    cells = [f"{100 * figures[kind]:.1f}" if kind in figures else "" for kind in TYPES]
    return f"| {name} | {' | '.join(cells)} | {'' if seconds is None else f'{seconds:.0f}'} |"


def measure(
    name: str, graph: Graph, asked: Sequence[Sample], folder: Path, pairs: Sequence[str]
) -> list[str]:
    """The rows of one model."""
    configs = Path(__file__).parents[2] / "configs" / "cqa"
    settings = read_settings(configs / f"{name}.yaml", ["threads=1", *pairs])
    began = time.process_time()
    trainer = begin(settings, graph, folder / name)
    seconds = time.process_time() - began
    learnt = {one.name for one in trainer.stream.queries.types}
    known = [sample for sample in asked if sample.type in learnt]
    untrained = by_type(trainer.model.eval(), known)
    began = time.process_time()
    trainer.run()
    seconds += time.process_time() - began
    trained = by_type(load_run(folder / name, graph), known)
    return [row(f"{name}, untrained", untrained), row(name, trained, seconds)]


def main() -> None:
    """Train and ask each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("graph", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    use_threads(1)
    graph = read_graph(options.graph)
    asked = tests(graph, options.count)
    print(f"| | {' | '.join(TYPES)} | processor s |\n|---|{'---|' * (len(TYPES) + 1)}")
    frequent = by_type(FrequentAnswers(graph).reasoner(), asked)
    print(row("the relations' most frequent tails", frequent), flush=True)
    for name in options.models.split(","):
        for line in measure(name, graph, asked, options.output, options.set):
            print(line, flush=True)


if __name__ == "__main__":
    main()
