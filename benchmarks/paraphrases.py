"""How many wrong paraphrases the filters keep, and how many right ones.

    python benchmarks/paraphrases.py                       # the table
    python benchmarks/paraphrases.py --failures            # and what went wrong, of the dev part
    python benchmarks/paraphrases.py --replies OUT.jsonl   # of a model's replies, instead

Replies are what `kopl paraphrase model … --names ignore --meaning ignore --edit-distance 0` kept;
with --failures all of them are shown, each with what the filters do, for a reader to judge.

The right paraphrases stand in benchmarks/paraphrasing/good.jsonl (its README.md says who wrote
them), the wrong ones are made of them by benchmarks/paraphrasing/hostile.py. Half of each is for
development; failures of the other half are never shown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

# The folder of this file has a module with the name of a package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.paraphrasing.hostile import Hostile, Source, Wrong  # noqa: E402
from generation.paraphrase.filters import Candidate, Filters, Rejected, Report, sift  # noqa: E402
from generation.paraphrase.originals import Original  # noqa: E402
from kb import load  # noqa: E402
from kopl.example import read_example, read_examples, read_objects  # noqa: E402

GOOD = Path(__file__).resolve().parent / "paraphrasing" / "good.jsonl"
EACH = 100  # wrong paraphrases of a class
MOST, LEAST = 0.03, 0.9  # shares kept: of each wrong class at most, of the right ones at least
SHOWN = 300  # characters of a text


@dataclass
class Score:
    """What became of the paraphrases of a class; ``wrong`` are those that went wrong, with why."""

    given: int = 0
    kept: int = 0
    review: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """Cells of a table: kept, for review and rejected, and the commonest reasons."""
        rejected = self.given - self.kept - self.review
        reasons = ", ".join(f"{text} {n}" for text, n in self.reasons.most_common(4))
        return f"{self.given} | {self.kept} | {self.review} | {rejected} | {reasons}"


def goods() -> Iterator[tuple[str, Source]]:
    """The right paraphrases, each with its part."""
    for place, item in read_objects(GOOD):
        paraphrase, part, id = item.pop("paraphrase"), item.pop("part"), item["id"]
        example = read_example(item, place, str(GOOD))
        yield part, Source(Original(id, example), paraphrase)


def hostile(right: Iterable[tuple[str, Source]], number: int = EACH) -> Iterator[tuple[str, Wrong]]:
    """The wrong paraphrases: of hand-written ones and of generated wordings, with their parts."""
    parts, sources = {}, []
    for n, (part, source) in enumerate(right):
        example = source.original.example
        text = (source.text, example.question, source.text, source.original.canonical)[n % 4]
        parts[source.original.id] = part
        sources.append(Source(source.original, text))
    for wrong in Hostile(load("world"), sources).make(number):
        yield parts[wrong.source.original.id], wrong


def judge(original: Original, text: str, filters: Filters, score: Score) -> str:
    """What the filters do with a text: "" where it is kept, else why not; noted in the score."""
    report, rejected = Report(), list[Rejected]()
    kept = list(sift(original, [Candidate(text)], filters, report, rejected.append))
    reason = "" if kept else rejected[0].reason
    score.given += 1
    score.kept += bool(kept)
    score.review += report.review
    if reason:
        score.reasons[reason] += 1
    return reason


def table(scores: dict[str, Score]) -> str:
    """The scores in Markdown."""
    head = "| | given | kept | for review | rejected | commonest reasons |"
    line = "|---|---:|---:|---:|---:|---|"
    return "\n".join(
        [head, line, *(f"| {name} | {score.line} |" for name, score in scores.items())]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where more wrong or fewer right ones are kept than is reached for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--failures", action="store_true", help="show those of the dev part")
    parser.add_argument(
        "--replies", nargs="+", metavar="FILE", help="paraphrases of models, as question sets"
    )
    parser.add_argument("--meaning", default="check", help="ignore: without comparing")
    parser.add_argument("--names", default="reject", help="as kopl paraphrase has it")
    given = parser.parse_args(arguments)
    filters = Filters(judges=0, names=given.names, meaning=given.meaning)
    if given.replies:
        return _replies(given.replies, filters, given.failures)
    right = list(goods())
    wrongs = list(hostile(right))
    begun = time.process_time()
    scores: dict[str, Score] = {}
    for part, source in right:
        score = scores.setdefault(f"right, {part}", Score())
        if reason := judge(source.original, source.text, filters, score):
            _note(score, part, reason, source.original, source.text)
    for part, wrong in wrongs:
        score = scores.setdefault(wrong.kind, Score())
        if not judge(wrong.source.original, wrong.text, filters, score):
            _note(score, part, wrong.way, wrong.source.original, wrong.text)
    seconds = time.process_time() - begun
    print(table(scores))
    print(f"\n{1e3 * seconds / (len(right) + len(wrongs)):.1f} ms of processor time a paraphrase")
    if given.failures:
        for name, score in scores.items():
            print(f"\n## {name}\n", *score.wrong, sep="\n")
    return int(
        any(
            score.kept < LEAST * score.given
            if name.startswith("right")
            else score.kept > MOST * EACH
            for name, score in scores.items()
        )
    )


def _replies(files: Iterable[str], filters: Filters, show: bool) -> int:
    """Print what the filters do with the replies of models."""
    scores: dict[str, Score] = {}
    for file in files:
        score = scores.setdefault(Path(file).stem, Score())
        for example in read_examples(file):
            # The wording before the paraphrase is not known any more; the canonical one is.
            original = Original(
                example.id or "", replace(example, question=example.canonical or "")
            )
            reason = judge(original, example.question, filters, score)
            verdict = reason or "kept"
            score.wrong.append(f"- {verdict}\n  {example.question!r}\n  of: {original.canonical}")
    print(table(scores))
    if show:
        for name, score in scores.items():
            print(f"\n## {name}\n", *score.wrong, sep="\n")
    return 0


def _note(score: Score, part: str, reason: str, original: Original, text: str) -> None:
    if part == "dev":
        score.wrong.append(f"- {reason}\n  {text[:SHOWN]!r}\n  of: {original.canonical}")


if __name__ == "__main__":
    raise SystemExit(main())
