"""Longer programs than any that was trained: the compositional split, in the paper's shares."""

from __future__ import annotations

import sys
from collections import Counter

from benchmarks.parsing.series import DEFAULT, Series, history_of
from benchmarks.parsing.tables import Section, interval, percents, table, workload
from kopl.example import read_examples

MINUTES = 30
EPOCHS = 9
# New questions for each one of the training part, made of these alone (generation.recombination).
RECOMBINED = 1.0


def measure(series: Series) -> Section:
    """Generate, split, train and score with each seed."""
    seeds = series.seeds(1)
    rows, reports, texts, seconds = [], [], [], []
    for seed in seeds:
        name = f"compositional/seed-{seed}"
        made = series.generate(f"{name}-questions", "world", series.questions, seed)
        folder = series.output / f"{name}-split"
        command = [sys.executable, "-m", "kopl", "split", str(made.product)]
        command += ["--by", "compositional", "--shares", "90,5,5", "-s", str(seed)]
        parts = series.step(f"{name}-split", [*command, "-o", str(folder)], folder, (made,))
        files = [f"{part}={folder / part}.jsonl" for part in ("train", "valid", "test")]
        limits = [f"training.minutes={MINUTES}", f"training.epochs={EPOCHS}"]
        pairs = [f"seed={seed}", f"training.recombined={RECOMBINED}", *files, *limits]
        run = series.train(name, DEFAULT, pairs, after=(parts,))
        report = series.evaluate(f"{name}-constrained", run)
        reports.append(report)
        seconds.append(run.seconds)
        shares = [report["accuracy"]["default"]["overall"], report["same program up to order"]]
        history = history_of(run.product)
        rows.append(
            [seed, percents(shares[:1]), interval(shares[0]), percents(shares[1:]),
             f"{history[-1]['seconds']:.0f}", len(history)]
        )  # fmt: skip
        calls = {
            part: Counter(e.program.size for e in read_examples(folder / f"{part}.jsonl"))
            for part in ("train", "test")
        }
        texts.append(
            f"Seed {seed}: {calls['train'].total():,} programs of up to {max(calls['train'])} calls"
            f" train; programs of {min(calls['test'])} to {max(calls['test'])} calls test:"
            f" {workload(folder / 'test.jsonl')}."
        )
    headings = ("seed", "execution accuracy, %", "95 % interval", "same program up to order, %",
                "training, s", "epochs")  # fmt: skip
    return Section(
        "Longer programs than trained",
        [
            f"{series.questions:,} generated questions over `world`, `kopl split --by"
            " compositional`, 90/5/5; the best epoch is that of the validation part, which has"
            " longer programs, too. The pointer model, constrained, at most"
            f" {MINUTES} minutes of training.",
            *texts,
            table(headings, rows),
        ],
        {"seeds": seeds, "minutes": MINUTES, "seconds": seconds, "reports": reports},
    )
