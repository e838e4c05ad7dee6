"""The paper's RNN on the questions of `default`, in the same minutes.

With several tries, settings of `TRIES` are trained with the first seed, and the best one on its
validation questions is taken for all seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.parsing import default
from benchmarks.parsing.series import ROOT, Done, Series, history_of, settings_of, tell
from benchmarks.parsing.tables import SPREAD, Section, Spread, table, workload

CONFIG = ROOT / "configs" / "rnn-small.yaml"

# What is tried, in this order; the first is the config as it is, the best of those that were tried
# when it was made, and the second the nearest to the paper's.
TRIES: tuple[tuple[str, ...], ...] = (
    (),
    ("rnn.layers=2", "rnn.hidden=256", "rnn.dropout=0.2", "training.batch=64",
     "training.learning_rate=0.001", "training.schedule=constant"),
    ("rnn.hidden=256", "rnn.dropout=0.2", "training.batch=64", "training.learning_rate=0.002",
     "training.schedule=constant"),
    ("rnn.hidden=256", "rnn.dropout=0.2", "training.learning_rate=0.003", "training.epochs=4"),
    ("rnn.dropout=0.2", "training.learning_rate=0.003"),
    ("rnn.dropout=0.2", "training.learning_rate=0.003", "training.batch=16", "training.epochs=5"),
    ("rnn.dropout=0.2",),
    ("training.learning_rate=0.01",),
    ("training.learning_rate=0.01", "training.batch=64", "training.epochs=8"),
    ("rnn.layers=2",),
)  # fmt: skip


def minutes_of(run: Done) -> float:
    """The minutes that the training of a run took."""
    return round(history_of(run.product)[-1]["seconds"] / 60, 2)


def measure(series: Series, tries: int = 1) -> Section:
    """Train and score with each seed."""
    seeds = series.seeds(*default.SEEDS)
    first = default.trained(series, seeds[0])
    minutes = minutes_of(first)
    tried = []
    for number, pairs in enumerate(TRIES[:tries] if tries > 1 else (), 1):
        run = _trained(series, f"rnn/try-{number}", seeds[0], first, pairs)
        best = max(record["validation"] for record in history_of(run.product))
        tell(f"rnn: {' '.join(pairs) or 'as configured'}: {best:.1%} of the validation questions")
        tried.append((best, pairs))
    # Of equals the earlier one, which is nearer to the paper's.
    _, pairs = max(tried, key=lambda one: one[0], default=(0.0, TRIES[0]))
    runs, reports, ours = [], [], []
    for seed in seeds:
        questions = default.trained(series, seed)
        ours.append(default.scored(series, f"default/seed-{seed}", questions))
        name = f"rnn/seed-{seed}"
        runs.append(_trained(series, name, seed, questions, pairs))
        reports.append(default.scored(series, name, runs[-1]))
    chosen = settings_of(runs[0].product)
    sizes = ", ".join(f"{key} {chosen['rnn'][key]}" for key in ("embedding", "hidden", "layers"))
    rows = default.rows_of("pointer", ours) + default.rows_of("RNN", reports)
    text = [
        f"The RNN of the paper's Appendix H ({sizes}; `configs/rnn-small.yaml`"
        f"{''.join(f', `{pair}`' for pair in pairs)}) on the questions of `default`,"
        f" {workload(first.product / 'test.jsonl')} of them to test with seed {seeds[0]}. Training"
        f" and scoring end after {minutes:g} minutes, which the training of the pointer model took;"
        f" {', '.join(str(len(history_of(run.product))) for run in runs)} epochs. The whole"
        f" command without generating: {Spread.of(run.seconds for run in runs).shown(0)} s."
        f" {SPREAD}.",
        table(("model", *default.HEADINGS[1:]), rows),
    ]
    if tried:
        rows = [[" ".join(pairs) or "as configured", f"{100 * best:.1f}"] for best, pairs in tried]
        text += [f"Tried with seed {seeds[0]}:", table(("settings", "validation, %"), rows)]
    return Section(
        "The paper's RNN",
        text,
        {"seeds": seeds, "minutes": minutes, "settings": pairs, "reports": reports,
         "tried": [{"settings": pairs, "validation": best} for best, pairs in tried],
         "seconds": [run.seconds for run in runs]},
    )  # fmt: skip


def _trained(series: Series, name: str, seed: int, questions: Done, pairs: Sequence[str]) -> Done:
    limit = f"training.minutes={minutes_of(questions)}"
    files = default.questions_of(questions)
    return series.train(name, CONFIG, [f"seed={seed}", *files, limit, *pairs], after=(questions,))
