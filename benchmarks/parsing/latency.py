"""How long one core takes for questions, asked one by one or in batches; figures as JSON.

    OMP_NUM_THREADS=1 python -m benchmarks.parsing.latency RUN QUESTIONS --mode greedy

A process of its own for each mode, so that the first question finds nothing cached.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kb import KoplError
from kopl.example import Example, read_examples

# How `Parser.ask` is called in each mode; None: in batches.
MODES: dict[str, dict[str, Any] | None] = {
    "greedy": {"beams": 1, "guided": False},
    "beams": {"beams": 4, "guided": True},
    "batches": None,
}


def main() -> None:
    """Load a run, ask, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--mode", choices=tuple(MODES), required=True)
    parser.add_argument("--count", type=int, default=300, help="questions that are timed")
    parser.add_argument("--warm", type=int, default=5, help="questions that are asked before")
    parser.add_argument("--batch", type=int, default=64, help="questions of a batch")
    given = parser.parse_args()
    begin = time.perf_counter()
    import torch

    from parsers.parser import Parser

    torch.set_num_threads(1)
    report: dict[str, Any] = {"import_s": time.perf_counter() - begin}
    begin = time.perf_counter()
    loaded = Parser.load(given.run, device="cpu")
    report["load_s"] = time.perf_counter() - begin
    how = MODES[given.mode]
    wanted = None if how is None else given.warm + given.count
    examples = list(itertools.islice(read_examples(given.questions), wanted))
    if how is None:
        report |= batched(loaded, examples, given.batch)
    else:
        report |= one_by_one(loaded, examples, given.warm, how)
    report["threads"] = torch.get_num_threads()
    print(json.dumps(report))


def one_by_one(
    parser: Any, examples: Sequence[Example], warm: int, how: dict[str, Any]
) -> dict[str, Any]:
    """Milliseconds of the first question, and of each one after the warm ones; how many are right.

    Raises KoplError for fewer questions than that.
    """
    if len(examples) <= warm:
        raise KoplError(f"{len(examples)} questions are too few: {warm} are asked before")
    times, right = [], 0
    for example in examples:
        begin = time.perf_counter()
        answers = parser.ask(example.question, **how)
        times.append((time.perf_counter() - begin) * 1000)
        right += any(answer.text == example.answer for answer in answers)
    return {"first_ms": times[0], "ms": times[warm:], "right": right, "asked": len(examples)}


def batched(parser: Any, examples: Sequence[Example], size: int) -> dict[str, Any]:
    """Seconds in which all questions are read and their programs run, in batches.

    The first batch comes before, untimed; it is not counted.
    """
    seconds, asked, right = 0.0, 0, 0
    for start in range(0, len(examples), size):
        batch = examples[start : start + size]
        begin = time.perf_counter()
        found = parser.model.predict([example.question for example in batch], beams=1)
        answers: list[str | None] = []
        for predictions in found:
            answers.append(None)
            with contextlib.suppress(KoplError):
                for prediction in predictions[:1]:
                    answers[-1] = parser.model.language.run(prediction).answer
        if start or len(examples) <= size:
            seconds += time.perf_counter() - begin
            asked += len(batch)
            right += sum(a == e.answer for a, e in zip(answers, batch, strict=True))
    return {"seconds": seconds, "asked": asked, "right": right, "batch": size}


if __name__ == "__main__":
    try:
        main()
    except KoplError as error:
        sys.exit(f"benchmarks.parsing.latency: {error}")
