"""``python train.py`` without arguments: accuracy, and what the constraints do for it.

The default training never looks at actions that break the types. With the first seed there is a
second training on the same questions that weighs all of them (``pointer.masked=false``), as a model
that is to be used without constraints is trained. Both are scored with and without constraints.
"""

from __future__ import annotations

from typing import Any

from benchmarks.parsing.series import DEFAULT, Done, Series, history_of
from benchmarks.parsing.tables import SPREAD, Section, Spread, each, percents, table, workload

SEEDS = (1, 2, 3)
DECODINGS = {"constrained": (), "unconstrained": ("--unconstrained",)}
SHARES = ("parses", "types", "runs", "one answer", "same program up to order")


def trained(series: Series, seed: int) -> Done:
    """The run of ``python train.py`` with a seed, which its questions depend on, too."""
    pairs = [f"seed={seed}", f"questions={series.questions}"]
    return series.train(f"default/seed-{seed}", DEFAULT, pairs)


def questions_of(run: Done) -> list[str]:
    """The settings that make another run learn and be scored on the questions of a run."""
    return [f"{part}={run.product / part}.jsonl" for part in ("train", "valid", "test")]


def scored(series: Series, name: str, run: Done) -> dict[str, dict[str, Any]]:
    """The evaluation of a run on its test questions, by decoding."""
    return {
        decoding: series.evaluate(f"{name}-{decoding}", run, *arguments)
        for decoding, arguments in DECODINGS.items()
    }


def rows_of(title: str, reports: list[dict[str, dict[str, Any]]]) -> list[list[str]]:
    """A row for each decoding: of all seeds accuracy and how far the predictions get."""
    rows = []
    for decoding in DECODINGS:
        found = [report[decoding] for report in reports]
        accuracy = [one["accuracy"]["default"]["overall"] for one in found]
        shares = [percents(one[share] for one in found) for share in SHARES]
        rows.append([title, decoding, percents(accuracy), each(accuracy), *shares])
    return rows


HEADINGS = ("training", "decoding", "execution accuracy, %", "by seed", *SHARES)


def measure(series: Series) -> Section:
    """Train and score with each seed."""
    seeds = series.seeds(*SEEDS)
    runs, masked = [], []
    unmasked: list[dict[str, dict[str, Any]]] = []
    for seed in seeds:
        run = trained(series, seed)
        runs.append(run)
        masked.append(scored(series, f"default/seed-{seed}", run))
        if unmasked:
            continue
        name = f"default/seed-{seed}-unmasked"
        pairs = [f"seed={seed}", "pointer.masked=false", *questions_of(run)]
        free = series.train(name, DEFAULT, pairs, after=(run,))
        unmasked.append(scored(series, name, free))
    accuracy = [report["constrained"]["accuracy"]["default"] for report in masked]
    skills = list(accuracy[0]["skills"])
    by_skill = [
        ["accuracy, %", percents(one["overall"] for one in accuracy),
         *(percents(one["skills"][skill] for one in accuracy) for skill in skills)],
        ["questions, seed " + str(seeds[0]), accuracy[0]["overall"]["of"],
         *(accuracy[0]["skills"][skill]["of"] for skill in skills)],
    ]  # fmt: skip
    whole = Spread.of(run.seconds for run in runs)
    histories = [history_of(run.product) for run in runs]
    epochs = ", ".join(str(len(history)) for history in histories)
    return Section(
        "`python train.py`",
        [
            f"{series.questions:,} questions generated over `world` for each seed"
            f" ({', '.join(map(str, seeds))}), of which {workload(runs[0].product / 'test.jsonl')}"
            f" test with seed {seeds[0]}. The whole command, from generating to the scores:"
            f" **{whole.shown(0)} s**, of which training"
            f" {Spread.of(history[-1]['seconds'] for history in histories).shown(0)} s"
            f" ({epochs} epochs). {SPREAD}.",
            table(HEADINGS, [*rows_of("default", masked),
                             *rows_of(f"`pointer.masked=false`, seed {seeds[0]}", unmasked)]),
            "The default training, constrained, by skill (a question may count in several):",
            table(("", "overall", *skills), by_skill),
        ],
        {
            "seeds": seeds, "seconds": [run.seconds for run in runs],
            "training seconds": [history[-1]["seconds"] for history in histories],
            "masked": masked, "unmasked": unmasked,
        },
    )  # fmt: skip
