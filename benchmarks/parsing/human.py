"""Questions that people wrote: exact match over a whole tenth of them, unconverted ones wrong.

Their graphs are converted by `generation.human`; its fixed split says which tenth tests. Of the
other part a fixed slice is for validation. There is no knowledge base to run the programs on, so
the best epoch is the one whose programs match most often (`metric` in configs/human.yaml).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.parsing.series import ROOT, Done, Series, StepError, history_of
from benchmarks.parsing.tables import Section, interval, table
from generation.human.records import HumanQuestion, read_questions
from kopl.example import Example, read_examples, read_objects, write_examples
from kopl.text import read
from parsers.evaluation.accuracy import DIFFERENCE_INTERVAL, Difference, Share
from parsers.matching import exact_match

CONFIG = ROOT / "configs" / "human.yaml"
ALL = "all"

# One in twenty questions of the training part is for validation.
SLICE = 20


def measure(series: Series, file: Path, pretrained: str = "") -> Section:
    """Convert, train and match with each seed, and once more with a pretrained encoder if named."""
    questions = [one for one in read_questions(file) if one.part == "test"]
    if not questions:
        raise StepError(f"{file}: none of its questions is in the test part")
    converted, names = _convert(series, file)
    paths = _parts(series.output / "human", converted)
    files = [f"{part}={path}" for part, path in paths.items()]
    kinds = {"": "pointer", **({pretrained: f"with {pretrained}"} if pretrained else {})}
    seeds = series.seeds(1)
    rows, figures, times = [], [], []
    matched: dict[tuple[str, int], list[bool]] = {}
    for kind, title in kinds.items():
        for seed in seeds:
            name = f"human/seed-{seed}" + ("-pretrained" if kind else "")
            pairs = [f"seed={seed}", f"kb={names}", *files]
            pairs += [f"pointer.pretrained={kind}"] if kind else []
            run = series.train(name, CONFIG, pairs, after=(converted,))
            right = _matches(series, f"{name}-valid", run, "--split", "valid")
            validation = Share(sum(right.values()), len(right))
            right = _matches(series, f"{name}-test", run, "--data", str(paths["test"]))
            shares = by_source(questions, right)
            matched[kind, seed] = [right.get(one.id, False) for one in questions]
            for source, share in shares.items():
                of = [one for one in questions if source in (ALL, *one.sources)]
                known = sum(one.id in right for one in of)
                rows.append([title, seed, source, share.of, known, *_shown(share)])
            figures.append(
                {"encoder": kind or None, "seed": seed, "seconds": run.seconds,
                 "validation": validation.to_json(),
                 "test": {source: share.to_json() for source, share in shares.items()}}
            )  # fmt: skip
            matching, within = _shown(validation)
            times.append(
                f"{title}, seed {seed}: {run.seconds:.0f} s, {len(history_of(run.product))} epochs;"
                f" of {validation.of} questions for validation {matching} % match ({within})."
            )
    headings = ("encoder", "seed", "source", "questions", "converted", "exact match, %",
                "95 % interval")  # fmt: skip
    text = [
        f"{len(questions):,} questions test, of which {_count(paths['test']):,} could be converted;"
        f" the others count as wrong. {_count(paths['train']):,} train. Exact match up to the order"
        " of operands and filters (`parsers.matching`), constrained to the names that occur in the"
        " file. A question may have two sources.",
        table(headings, rows),
        *times,
    ]
    for seed in seeds if pretrained else ():
        found = Difference.of(matched["", seed], matched[pretrained, seed])
        low, high = found.interval
        text.append(
            f"The pretrained encoder adds {100 * found.value:.1f} points with seed {seed}"
            f" ({100 * low:.1f} to {100 * high:.1f}, {DIFFERENCE_INTERVAL}; McNemar's p ="
            f" {found.p_value:.2g})."
        )
    return Section("Questions that people wrote", text, {"runs": figures})


def is_validation(id: str) -> bool:
    """Whether a question of the training part is for validation: the same everywhere."""
    digits = hashlib.sha256(f"validation/{id}".encode()).hexdigest()[:8]
    return int(digits, 16) % SLICE == 0


def matches(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """The id of each line of a predictions file, and whether its programs match."""
    for line in lines:
        predicted = line["program"]
        yield line["id"], predicted is not None and exact_match(read(line["gold"]), read(predicted))


def by_source(questions: Sequence[HumanQuestion], right: Mapping[str, bool]) -> dict[str, Share]:
    """The share of all questions, and of those of each source, that match.

    ``right`` is by id; a question that is not in it, as it was not converted, is wrong.
    """
    sources = sorted({source for one in questions for source in one.sources})
    chosen = {ALL: questions}
    chosen |= {source: [one for one in questions if source in one.sources] for source in sources}
    return {
        source: Share(sum(right.get(one.id, False) for one in found), len(found))
        for source, found in chosen.items()
    }


def _convert(series: Series, file: Path) -> tuple[Done, Path]:
    """The examples of a file, and the knowledge base of the names that occur in it."""
    folder = series.output / "human"
    names, product = folder / "names.koplkb", folder / "examples.jsonl"
    command = [sys.executable, "-m", "kopl_cli.human", str(file.resolve()), "-o", str(product)]
    done = series.step("human/examples", [*command, "--kb-out", str(names)], product)
    return done, names


def _parts(folder: Path, converted: Done) -> dict[str, Path]:
    """The files to train, validate and test with, written from the converted questions."""
    parts: dict[str, list[Example]] = {"train": [], "valid": [], "test": []}
    for example in read_examples(converted.product):
        part = str(example.extra["part"])
        if part == "train" and is_validation(example.id or ""):
            part = "valid"
        parts[part].append(example)
    paths = {}
    for part, examples in parts.items():
        paths[part] = folder / f"{part}.jsonl"
        write_examples(paths[part], examples)
    return paths


def _matches(series: Series, name: str, run: Done, *arguments: str) -> dict[str, bool]:
    """Which of the questions that a run is asked match, by their ids."""
    predictions = series.output / f"{name}-predictions.jsonl"
    if not predictions.exists():
        (series.output / f"{name}.json").unlink(missing_ok=True)  # both are made by one command
    series.evaluate(name, run, *arguments, "--predictions", str(predictions))
    lines = (item for _, item in read_objects(predictions) if isinstance(item, dict))
    return dict(matches(lines))


def _count(path: Path) -> int:
    return sum(1 for _ in read_examples(path))


def _shown(share: Share) -> tuple[str, str]:
    value = share.value
    return "–" if value is None else f"{100 * value:.2f}", interval(share.to_json())
