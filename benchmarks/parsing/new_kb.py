"""A new knowledge base: trained on one half of the schema of `world`, asked about the other.

Each half is a knowledge base of its own (`benchmarks.parsing.halves`), with questions generated
over it in the words of `world`'s lexicon. No program of the test questions names a relation, key,
qualifier key or concept of the half that was trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from benchmarks.parsing.halves import Half, check_apart, halves, restricted
from benchmarks.parsing.series import ROOT, Done, Series, history_of, tell
from benchmarks.parsing.tables import Section, interval, machine, percents, table, workload
from generation.lexicon.annotations import bundled_annotations, bundled_texts
from kb import KnowledgeBase, load, write_snapshot
from kopl.example import read_examples
from kopl_base.stream import writing

SPLIT = 1
NAMES = ("a", "b")
CONFIG = ROOT / "configs" / "new-kb.yaml"
DECODINGS = {"greedy": (), "guided by execution": ("--execution-guided",)}


def measure(series: Series) -> Section:
    """Halve, generate, train on the first half, and score on the second with each seed."""
    world = load("world")
    parts = halves(world, SPLIT)
    made, files = zip(
        *(
            _half(series.output / "new-kb" / f"half-{name}", world, half)
            for name, half in zip(NAMES, parts, strict=True)
        ),
        strict=True,
    )
    rows, reports, seconds = [], [], []
    for seed in series.seeds(1):
        train, test = (
            _questions(series, f"new-kb/seed-{seed}-questions-{name}", file, count, seed)
            for name, file, count in zip(
                NAMES, files, (series.questions, series.tested), strict=True
            )
        )
        asked = check_apart(read_examples(test.product), parts[0], made[1])
        tell(f"new-kb: none of {asked} test questions names anything of the trained schema")
        pairs = [f"seed={seed}", f"kb={files[0].product}", f"data={train.product}"]
        run = series.train(f"new-kb/seed-{seed}", CONFIG, pairs, after=(train,))
        seconds.append(run.seconds)
        other = ["--data", str(test.product), "--kb", str(files[1].product), "--new-kb"]
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for decoding, options in DECODINGS.items():
            name = f"new-kb/seed-{seed}-{decoding.replace(' ', '-')}"
            new = series.evaluate(f"{name}-new", run, *other, *options, after=(test,))
            found["the other half", decoding] = new
            found["the half trained on", decoding] = series.evaluate(f"{name}-same", run, *options)
        reports.append({" / ".join(key): report for key, report in found.items()})
        epochs = len(history_of(run.product))
        for (title, decoding), report in sorted(found.items(), reverse=True):
            overall = report["accuracy"]["default"]["overall"]
            shares = [percents([report[n]]) for n in ("runs", "same program up to order")]
            rows.append([seed, title, decoding, report["questions"], percents([overall]),
                         interval(overall), *shares, f"{run.seconds:.0f}", epochs])  # fmt: skip
    headings = ("seed", "questions about", "decoding", "questions", "execution accuracy, %",
                "95 % interval", "runs, %", "same program up to order, %", "`train.py`, s",
                "epochs")  # fmt: skip
    contents = [
        [name, *map(len, (half.relations, half.keys, half.qualifier_keys, half.concepts)),
         kb.entity_count, len(kb.relational), len(kb.literals)]
        for name, half, kb in zip(("trained", "asked"), parts, made, strict=True)
    ]  # fmt: skip
    return Section(
        "A new knowledge base",
        [
            f"The schema of `world` in two halves (seed {SPLIT}), each a knowledge base with the"
            " facts that need nothing of the other; entities are shared, words of the schema are"
            " not.",
            table(("half", "relations", "keys", "qualifier keys", "concepts", "entities",
                   "relational facts", "attributes"), contents),
            f"Trained on 8/10 of {series.questions:,} questions generated over the first half;"
            f" questions about the other half: {workload(test.product)}. The pointer model"
            " (`configs/new-kb.yaml`), constrained; *guided by execution*: four beams, calls that"
            " find nothing are not gone on with.",
            table(headings, rows),
        ],
        {"split": SPLIT, "seeds": series.seeds(1), "seconds": seconds, "reports": reports,
         "halves": [vars(half) for half in parts]},
    )  # fmt: skip


def annotations_of(kb: KnowledgeBase) -> dict[str, dict[str, Any]]:
    """What the lexicon of ``world`` says of the names that a part of it has, by section."""
    known, keys = bundled_annotations().only(kb), frozenset(kb.qualifier_keys)

    def of(given: dict[str, Any]) -> dict[str, Any]:
        details = {key: asked for key, asked in given.get("details", {}).items() if key in keys}
        return {**given, "details": details} if details else _without(given, "details")

    return {
        section: {
            name: of(given or {}) for name, given in entries.items() if name in known.of(section)
        }
        for text in bundled_texts().values()
        # As texts: "complete: no" is one of several words there.
        for section, entries in yaml.load(text, yaml.BaseLoader).items()
    }


def _without(given: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != field}


def _half(file: Path, world: KnowledgeBase, half: Half) -> tuple[KnowledgeBase, Done]:
    """The knowledge base of a half, written beside its lexicon unless it is there already.

    What is generated over it depends on its content: the stamp is the fingerprint.
    """
    kb = restricted(world, half)
    snapshot = file.with_suffix(".koplkb")
    if not snapshot.exists() or load(snapshot).fingerprint != kb.fingerprint:
        write_snapshot(kb, snapshot)
        with writing(file.with_suffix(".yaml")) as out:
            yaml.safe_dump(annotations_of(kb), out, allow_unicode=True, sort_keys=False)
    return kb, Done(snapshot, 0.0, kb.fingerprint, machine(), "")


def _questions(series: Series, name: str, half: Done, count: int, seed: int) -> Done:
    words = ("--lexicon", str(half.product.with_suffix(".yaml")))
    return series.generate(name, str(half.product), count, seed, *words, after=(half,))
