"""How varied generated questions are, beside questions that people wrote.

    python benchmarks/wording.py                              # 2,000 over `world`, the default mix
    python benchmarks/wording.py --profile people             # of another profile
    python benchmarks/wording.py --questions FILE [--tables]  # of a file; what is said most
    python benchmarks/wording.py --human FILE                 # beside other people

The people are those who wrote the 11,797 test questions of KQA Pro, which are of all types and
looked at for these figures alone, and those of the 16,183 questions of its training set that have
query graphs (docs/human-questions.md), which are of fewer types, hence more alike. Of each
collection as many are drawn by the seed as there are questions of ours. All sides are measured in
the same run and in the same way, and the ratio is ours to human:

- A *word* is a run of letters and digits, with apostrophes and hyphens inside.
- *Lower-case words* are the different words of letters a to z (with apostrophes and hyphens inside)
  that are written small throughout, so that names hardly count. Of web addresses and user names
  pieces do; *without addresses* leaves out the former.
- *Openings* are the different first three words, case apart.
- *Self-BLEU-4*: BLEU of each question with all others as references, the mean. Words are compared
  case apart, without punctuation; precisions of one to four words weigh alike, the brevity penalty
  is that of the reference nearest in length; where nothing matches, 0.1 does (`method1` of NLTK).
- *Self-BLEU-4, 500, unsmoothed* takes fewer references, as Texygen does (Zhu et al. 2018): the
  questions are shuffled and cut into parts of 500, each question is a hypothesis against each part
  that it is not in, and without a run of four words that a reference has, too, it has 0.

Beside the whole texts stand the same figures *masked*: names and values of the program, words with
a capital or a digit (but for the first) and web addresses have become `_`, one for each run, as two
knowledge bases share no names. The test questions have no programs: there names in small letters
stay. Different masked questions are *templates*.

2,000 questions of `world` in the mix of the paper, before wordings were induced from what people
write (2026-11-22, seed 1), beside the test questions and the training questions: lower-case words
0.46 and 0.43, openings 0.43 and 0.41, self-BLEU-4 1.70 and 1.47, of 500 2.29 and 1.76.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeVar

# The folder of this file has a module with the name of a package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from generation import human  # noqa: E402
from kopl.example import Example, read_objects, read_questions  # noqa: E402
from kopl.program import Call, post_order  # noqa: E402
from kopl.traits import asking  # noqa: E402
from kopl.types import Kind  # noqa: E402
from kopl_base.errors import KoplError, ReadError  # noqa: E402
from kopl_cli import main as kopl  # noqa: E402

FILES = ("test_questions.json", "questions_graph_answer.jsonl")
REFERENCES = 500
ORDER = 4
UNMATCHED = 0.1
SHOWN = 30
MASK = "_"
T = TypeVar("T")

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_LOWER = re.compile(r"\b[a-z][a-z'’-]*\b")
_ADDRESS = re.compile(
    r"(?:https?://|www\.|\b[\w-]+\.(?:com|org|net|de|fr|it|jp|uk)\b)(?:\S*[^\s?.,;:!()])?"
)
_RUN = re.compile(rf"{MASK}(?:[\s,.'’&-]*{MASK})+")

_NAMED = (Kind.NAME, Kind.STRING, Kind.QUANTITY, Kind.TIME, Kind.ANY_VALUE)


@dataclass(frozen=True)
class Asked:
    """A question, its kind, and the names and values that it was made with."""

    text: str
    kind: str = ""
    texts: tuple[str, ...] = ()


def words(text: str) -> list[str]:
    """The words of a text as they are written."""
    return _WORD.findall(text)


def lower_case_words(questions: Iterable[str]) -> set[str]:
    """The different words that are written in small letters throughout."""
    return {word for text in questions for word in _LOWER.findall(text)}


def opening(text: str) -> str:
    """The first three words, in small letters."""
    return " ".join(words(text.lower())[:3])


def masked(asked: Asked) -> str:
    """The question with a mark in place of each name and value."""
    text = asked.text
    for name in sorted(asked.texts, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", MASK, text, flags=re.IGNORECASE)
    text = _ADDRESS.sub(MASK, text)
    first = True

    def mark(match: re.Match[str]) -> str:
        nonlocal first
        word, begins = match.group(), first
        first = False
        if any(c.isdigit() for c in word) or (not begins and word != word.lower()):
            # What is said of somebody stays: "Peru's".
            return MASK + ("'s" if word.endswith(("'s", "’s")) else "")
        return word

    return _RUN.sub(MASK, _WORD.sub(mark, text))


# --- self-BLEU ---------------------------------------------------------------------------------


def self_bleu(
    questions: Sequence[str],
    references: int = REFERENCES,
    seed: int = 0,
    unmatched: float = 0.0,
) -> float:
    """The mean BLEU-4 of questions against parts of so many of the others; 0 of fewer than two.

    ``unmatched`` stands for the number of matches where there is none.
    """
    texts = [[word.lower() for word in words(text)] for text in questions]
    texts = [text for text in texts if text]
    Random(seed).shuffle(texts)
    parts = [texts[at : at + references] for at in range(0, len(texts), references)]
    if len(parts) > 1 and len(parts[-1]) < references:
        parts.pop()  # fewer references would match less
    grams = [_grams(text) for text in texts]
    total = count = 0.0
    for number, part in enumerate(parts):
        begin = number * references
        most = _References(grams[begin : begin + len(part)], [len(text) for text in part])
        for place, text in enumerate(texts):
            own = begin <= place < begin + len(part)
            if own and len(parts) > 1:
                continue
            if own and len(part) == 1:
                continue
            total += most.bleu(grams[place], len(text), place - begin if own else None, unmatched)
            count += 1
    return total / count if count else 0.0


def self_bleu_of_all(questions: Sequence[str], unmatched: float = 0.0) -> float:
    """The mean BLEU-4 of each question against all others."""
    return self_bleu(questions, max(1, len(questions)), unmatched=unmatched)


def _grams(text: Sequence[str]) -> list[Counter[tuple[str, ...]]]:
    return [
        Counter(zip(*(text[start:] for start in range(length)), strict=False))
        for length in range(1, ORDER + 1)
    ]


class _References:
    """How often each run of words stands in one of the references at most, and who has it."""

    def __init__(
        self, references: Sequence[list[Counter[tuple[str, ...]]]], lengths: list[int]
    ) -> None:
        self._lengths = Counter(lengths)
        self._of_place = lengths
        # The greatest count, whose it is, and the greatest of the others.
        self._most: list[dict[tuple[str, ...], tuple[int, int, int]]] = [{} for _ in range(ORDER)]
        for place, grams in enumerate(references):
            for most, counts in zip(self._most, grams, strict=True):
                for gram, count in counts.items():
                    best, owner, second = most.get(gram, (0, -1, 0))
                    if count > best:
                        most[gram] = count, place, best
                    elif count > second:
                        most[gram] = best, owner, count

    def bleu(
        self,
        grams: list[Counter[tuple[str, ...]]],
        length: int,
        own: int | None,
        unmatched: float = 0.0,
    ) -> float:
        """BLEU-4 of a hypothesis, which may be one of the references itself and is left out."""
        logarithm = 0.0
        for most, counts in zip(self._most, grams, strict=True):
            matched = 0
            for gram, count in counts.items():
                best, owner, second = most.get(gram, (0, -1, 0))
                matched += min(count, second if own is not None and owner == own else best)
            if not (matched or unmatched):
                return 0.0
            logarithm += math.log((matched or unmatched) / max(1, counts.total())) / ORDER
        nearest = self._nearest(length, own)
        penalty = 1.0 if length >= nearest else math.exp(1 - nearest / length)
        return penalty * math.exp(logarithm)

    def _nearest(self, length: int, own: int | None) -> int:
        """The length of the reference nearest in length, the shorter of two."""
        without = None if own is None else self._of_place[own]
        return min(
            (other for other, count in self._lengths.items() if count > (other == without)),
            key=lambda other: (abs(other - length), other),
        )


# --- what is compared --------------------------------------------------------------------------


def people(path: Path, count: int, seed: int) -> list[Asked]:
    """So many questions that people wrote, drawn by the seed; raises ReadError."""
    first = next((item for _, item in read_objects(path)), None)
    if not isinstance(first, dict) or "graph" not in first:
        return _some(ours(path), count, seed, path)
    questions = list(human.read_questions(path))
    schema = human.GraphSchema.of(questions)
    return [_of_person(one, schema) for one in _some(questions, count, seed, path)]


def _some(questions: list[T], count: int, seed: int, path: Path) -> list[T]:
    if len(questions) < count:
        raise ReadError(f"it has {len(questions)} questions, not {count}", source=str(path))
    return Random(seed).sample(questions, count)


def _of_person(question: human.HumanQuestion, schema: human.GraphSchema) -> Asked:
    try:
        program = human.convert(question, schema).program
    except human.NotConverted:
        return Asked(question.question)
    return Asked(question.question, asking(program), tuple(_arguments(program)))


def ours(path: Path) -> list[Asked]:
    """The questions of a file, with the names and values of their programs; raises ReadError."""
    return [
        Asked(one.question, one.type or asking(one.program), tuple(_arguments(one.program)))
        if isinstance(one, Example)
        else Asked(one.question)
        for one in read_questions(path)
    ]


def _arguments(program: Call) -> Iterator[str]:
    """The texts of a program that are names or values."""
    for call in post_order(program):
        for text, (_, kind) in zip(call.arguments, call.function.arguments, strict=True):
            if kind in _NAMED:
                yield text


def generated(arguments: argparse.Namespace) -> list[Asked]:
    """Questions made now; raises KoplError when the generator fails."""
    with tempfile.TemporaryDirectory(prefix="kopl-wording-") as folder:
        file = Path(folder) / "questions.jsonl"
        command = ["generate", "--kb", arguments.kb, "-n", str(arguments.count)]
        command += [
            "-s",
            str(arguments.seed),
            "--no-sparql",
            "--verify",
            "0",
            "-q",
            "-o",
            str(file),
        ]
        if arguments.profile:
            command += ["--profile", arguments.profile]
        if kopl(command):
            raise KoplError("there are no questions to compare")
        return ours(file)


# --- tables ------------------------------------------------------------------------------------


def figures(texts: Sequence[str]) -> dict[str, float]:
    """What is compared, by name."""
    return {
        "lower-case words": len(lower_case_words(texts)),
        "lower-case words without addresses": len(
            lower_case_words(_ADDRESS.sub(MASK, text) for text in texts)
        ),
        "openings": len({opening(text) for text in texts}),
        "self-BLEU-4": self_bleu_of_all(texts, UNMATCHED),
        "self-BLEU-4, 500, unsmoothed": self_bleu(texts),
        "templates": len(set(texts)),
        "mean words": sum(len(text.split()) for text in texts) / max(1, len(texts)),
        '"the one"': _share("the one" in text.lower() for text in texts),
    }


def compared(own: Sequence[Asked], others: Sequence[Asked]) -> Iterator[tuple[str, ...]]:
    """A row for each figure: its name, then ours, human and their ratio, whole and masked."""
    sides = [
        figures([ask(one) for one in asked])
        for ask in (lambda one: one.text, masked)
        for asked in (own, others)
    ]
    for name in sides[0]:
        row = [name]
        for mine, other in (sides[:2], sides[2:]):
            ratio = f"{mine[name] / other[name]:.2f}" if other[name] else "–"
            row += [_shown(mine[name]), _shown(other[name]), ratio]
        yield tuple(row)


def kinds(own: Sequence[Asked], others: Sequence[Asked]) -> Iterator[tuple[str, ...]]:
    """A row for each kind of question: how many, mean words, openings, share of "the one"."""
    names = dict.fromkeys(one.kind for one in [*others, *own])
    for name in names:
        row = [name or "(unknown)"]
        for asked in (own, others):
            texts = [one.text for one in asked if one.kind == name]
            if not texts:
                row += ["0", "", "", ""]
                continue
            few = figures_of_kind(texts)
            row += [str(len(texts)), f"{few[0]:.1f}", f"{few[1]:.0%}", f"{few[2]:.0%}"]
        yield tuple(row)


def figures_of_kind(texts: Sequence[str]) -> tuple[float, float, float]:
    """Mean words, different openings to a question, share of "the one"."""
    return (
        sum(len(text.split()) for text in texts) / len(texts),
        len({opening(text) for text in texts}) / len(texts),
        _share("the one" in text.lower() for text in texts),
    )


def commonest(
    own: Sequence[Sequence[str]], others: Sequence[Sequence[str]], shown: int
) -> Iterator[tuple[str, ...]]:
    """A row for each text that stands in most questions of either side, with both shares."""
    counts = [Counter(text for texts in side for text in set(texts)) for side in (own, others)]
    sizes = [max(1, len(side)) for side in (own, others)]
    tops = [sorted(c, key=lambda text, c=c: (-c[text], text))[:shown] for c in counts]  # type: ignore[misc]
    for text in dict.fromkeys([*tops[1], *tops[0]]):
        yield (text, *(f"{c[text] / size:.1%}" for c, size in zip(counts, sizes, strict=True)))


def _runs(text: str) -> list[str]:
    """The runs of four words of a masked question."""
    found = [word.lower() for word in words(text)]
    return [" ".join(found[at : at + ORDER]) for at in range(len(found) - ORDER + 1)]


def _share(those: Iterable[bool]) -> float:
    found = list(those)
    return sum(found) / max(1, len(found))


def _shown(figure: float) -> str:
    return str(figure) if isinstance(figure, int) else f"{figure:.3f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--kb", default="world", help="a knowledge base, its snapshot, or 'world'")
    parser.add_argument("--profile", help="the profile of the generator; default: its own")
    parser.add_argument("--questions", metavar="FILE", help="these instead of new ones")
    parser.add_argument("-n", "--count", type=int, default=2000, help="default: 2000")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument(
        "--human", metavar="FILE", action="append",
        help="repeatable; default: the two files of KQA Pro in the folder that KOPL_DATA names",
    )  # fmt: skip
    parser.add_argument("--tables", action="store_true", help="openings, templates, runs of words")
    parser.add_argument("--json", action="store_true", help="the figures as one JSON object")
    arguments = parser.parse_args()
    folder = Path(os.environ.get("KOPL_DATA", "")) / "kqapro"
    files = list(map(Path, arguments.human or [folder / name for name in FILES]))
    if not all(file.is_file() for file in files):
        parser.error("name the questions of people by --human, or their folder by KOPL_DATA")
    try:
        run(arguments, files)
    except KoplError as error:
        raise SystemExit(f"wording.py: {error}") from None


def run(arguments: argparse.Namespace, files: Sequence[Path]) -> None:
    """Compare as the arguments say; raises KoplError for a file that cannot be read."""
    if arguments.questions:
        own = ours(Path(arguments.questions))[: arguments.count]
    else:
        own = generated(arguments)
    shown: dict[str, Any] = {}
    for file in files:
        others = people(file, len(own), arguments.seed)
        rows = list(compared(own, others))
        if arguments.json:
            names = ("ours", "human", "ratio", "ours masked", "human masked", "ratio masked")
            shown[file.name] = {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows}
            continue
        headings = (file.name, "ours", "human", "ratio", "masked: ours", "human", "ratio")
        _print(headings, rows)
        heads = ("questions", "words", "openings", '"the one"')
        _print(("kind", *heads, *(f"human: {head}" for head in heads)), kinds(own, others))
        for title, read in _TABLES.items() if arguments.tables else ():
            mine, theirs = ([read(one) for one in asked] for asked in (own, others))
            _print((title, "ours", "human"), commonest(mine, theirs, SHOWN))
    if arguments.json:
        print(json.dumps(shown, indent=2, ensure_ascii=False))


_TABLES: dict[str, Callable[[Asked], list[str]]] = {
    "first word": lambda one: words(one.text.lower())[:1],
    "first three words": lambda one: [opening(masked(one))],
    "four words in a row": lambda one: _runs(masked(one)),
    "template": lambda one: [masked(one)],
}


def _print(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A Markdown table."""
    print("|", " | ".join(headings), "|")
    print("|---" + "|--:" * (len(headings) - 1) + "|")
    for row in rows:
        print("|", " | ".join(cell.replace("|", "\\|") for cell in row), "|")
    print()


if __name__ == "__main__":
    main()
