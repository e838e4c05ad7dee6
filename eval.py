"""Score a trained parser: ``python eval.py RUN [--data FILE] [--kb KB] [--split PART]``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from kb import KnowledgeBase, KoplError, ReadError
from kb.progress import ProgressBar
from kopl.cli.common import positive
from kopl.example import read_examples

os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def main() -> int:
    """Read the arguments and score the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a trained run")
    parser.add_argument("--data", type=Path, metavar="FILE", help="examples (JSON lines or list)")
    parser.add_argument("--kb", metavar="KB", help="where the run's knowledge base is now")
    parser.add_argument(
        "--split", choices=("train", "valid", "test"), default="test",
        help="which of the run's own questions, when no --data is given (default: test)",
    )  # fmt: skip
    parser.add_argument("--beams", type=positive, default=1, metavar="N", help="default: greedy")
    parser.add_argument(
        "--unconstrained", action="store_true", help="let the model write what may not be a program"
    )
    parser.add_argument("--json", action="store_true", help="print the scores as one JSON object")
    parser.add_argument("--predictions", type=Path, metavar="FILE", help="write JSON lines")
    arguments = parser.parse_args()
    data = arguments.data or arguments.run / f"{arguments.split}.jsonl"
    score(
        arguments.run, data, kb=arguments.kb, json_output=arguments.json,
        predictions=arguments.predictions, beams=arguments.beams,
        constrained=not arguments.unconstrained,
    )  # fmt: skip
    return 0


def score(
    run: Path, data: Path, *, kb: KnowledgeBase | str | None = None, json_output: bool,
    predictions: Path | None = None, beams: int = 1, constrained: bool = True,
) -> None:  # fmt: skip
    """Evaluate the best network of a run on a file of examples and print the report."""
    try:
        import torch

        from parsers.evaluation import evaluate
        from parsers.parser import Parser
        from parsers.tables import print_report
    except ImportError as error:
        sys.exit(f"eval.py: {error}; install what it needs with: pip install -e '.[train]'")
    parser = Parser.load(run, kb)
    torch.set_num_threads(parser.settings.threads)
    examples = list(read_examples(data))
    if not examples:
        raise ReadError("there are no examples", source=str(data))
    with ProgressBar("evaluating", len(examples)) as bar:
        report = evaluate(
            parser.model, examples, parser.description.answers, bar.advance,
            beams=beams, constrained=constrained,
        )  # fmt: skip
    if predictions:
        from kb.stream import writing

        with writing(predictions) as file:
            for one in report.judged:
                file.write(json.dumps(one.to_json(), ensure_ascii=False) + "\n")
    if json_output:
        print(json.dumps(report.to_json()))
    else:
        print_report(report, str(run))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KoplError as error:
        sys.exit(f"eval.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
