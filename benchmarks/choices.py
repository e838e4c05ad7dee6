"""How far answers can be guessed from the ten choices, without knowledge base and question.

    python benchmarks/choices.py                                # 5,000 questions of world
    python benchmarks/choices.py --set bookshop -n 2000         # of a knowledge base of people/
    python benchmarks/choices.py --questions FILE --no-words    # questions that were generated

A learner for each type sees the choices of each question. It is gradient boosting over candidates:
each choice is a row of features (what kind of text it is, how it stands among the others, how often
its text was a choice and an answer in the training folds, against which others), and the choice
with the highest score is the guess. Five folds by question. A second learner sees the words of the
question, too: which words stood beside which answers, and what a choice shares with them. Chance is
10 %, and 50 % for Verify, whose choices are yes and no.

Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import importlib
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any

import numpy as np

# The folder of this file has modules with the names of packages.
FOLDER = Path(__file__).resolve().parent
sys.path[:] = [place for place in sys.path if Path(place).resolve() != FOLDER]

from generation import generate  # noqa: E402
from kb import KoplError, load  # noqa: E402
from kb.values import Date, ValueReadError, read_quantity, read_time  # noqa: E402
from kopl.example import Example, read_examples  # noqa: E402

FOLDS = 5
SETS = ("world", "bookshop", "wd50k")
_WORD = re.compile(r"[^\W_]+")


# --- what a choice looks like by itself --------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """What is plain from the text of a choice: its kind, its unit, a number where it has one."""

    text: str
    kind: int  # text, whole number, other number, day
    unit: str
    number: float | None
    decimals: int
    digits: int  # without the zeros at the end
    words: frozenset[str]
    pieces: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Look:
        """The look of a text."""
        words = frozenset(_WORD.findall(text.casefold()))
        folded = f" {text.casefold()} "
        pieces = frozenset(folded[at : at + 3] for at in range(len(folded) - 2))
        try:
            time = read_time(text)
        except ValueReadError:
            time = None
        if isinstance(time, Date):
            number = time.year + (time.month - 1) / 12 + (time.day - 1) / 366
            return cls(text, 3, "", number, 0, 4, words, pieces)
        try:
            quantity = read_quantity(text)
        except ValueReadError:
            return cls(text, 0, "", None, 0, 0, words, pieces)
        written = text.split()[0]
        _, _, behind = written.partition(".")
        digits = len(written.replace(".", "").replace("-", "").strip("0"))
        kind = 1 if quantity.number.is_integer() else 2
        return cls(text, kind, quantity.unit, quantity.number, len(behind), digits, words, pieces)

    def numbers(self) -> list[float]:
        """Features of the choice alone."""
        nothing = math.nan
        number = nothing if self.number is None else self.number
        size = nothing if self.number is None else math.log10(abs(self.number) + 1e-6)
        text = self.text
        return [
            self.kind,
            number,
            size,
            self.decimals,
            self.digits,
            len(text),
            len(self.words),
            text[:1].isupper(),
            any(sign.isdigit() for sign in text),
            not text.isascii(),
            nothing if self.number is None else self.number % 10,
            nothing if self.number is None else self.number % 100,
        ]


_LOOKS: dict[str, Look] = {}


def look(text: str) -> Look:
    """The look of a text, remembered."""
    if text not in _LOOKS:
        _LOOKS[text] = Look.of(text)
    return _LOOKS[text]


# --- how it stands among the others ------------------------------------------------------------


def among(place: int, looks: Sequence[Look]) -> list[float]:
    """Features of a choice beside the others."""
    own, others = looks[place], [one for at, one in enumerate(looks) if at != place]
    shares = [
        mean(one.kind == own.kind for one in others),
        mean(one.unit == own.unit for one in others),
        mean(one.decimals == own.decimals for one in others),
        mean(one.digits == own.digits for one in others),
        mean(one.text[:1].isupper() == own.text[:1].isupper() for one in others),
        mean(len(one.text) < len(own.text) for one in others),
        mean(one.digits < own.digits for one in others),
    ]
    alike = [_overlap(one.pieces, own.pieces) for one in others]
    shared = [bool(one.words & own.words) for one in others]
    found = [*shares, mean(alike), max(alike), mean(shared)]
    numbers = [one.number for one in others if one.number is not None]
    if own.number is None or not numbers:
        return found + [math.nan] * 9
    middle = median(numbers)
    spread = median(abs(number - middle) for number in numbers) or 1.0
    gaps = sorted(abs(number - own.number) for number in numbers)
    logs = [math.log10(abs(number) + 1e-6) for number in numbers]
    mine = math.log10(abs(own.number) + 1e-6)
    return [
        *found,
        mean(number < own.number for number in numbers),
        own.number > max(numbers),
        own.number < min(numbers),
        (own.number - middle) / spread,
        gaps[0] / spread,
        gaps[len(gaps) // 2] / spread,
        own.number - max(numbers),
        mine - median(logs),
        min(abs(log - mine) for log in logs),
    ]


def _overlap(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / (len(left | right) or 1)


# --- what is known of its text from other questions --------------------------------------------


@dataclass
class Known:
    """What questions tell of texts: how often one was a choice, an answer, and ahead of which."""

    questions: int = 0
    choice: Counter[str] = field(default_factory=Counter)
    answer: Counter[str] = field(default_factory=Counter)
    ahead: Counter[tuple[str, str]] = field(default_factory=Counter)
    beside: Counter[tuple[str, str]] = field(default_factory=Counter)  # a word and an answer
    word: Counter[str] = field(default_factory=Counter)
    piece: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Known:
        """What these questions tell."""
        known = cls()
        for example in examples:
            answer = example.answer or ""
            known.questions += 1
            known.answer[answer] += 1
            for text in set(example.choices):
                known.choice[text] += 1
                if text != answer:
                    known.ahead[answer, text] += 1
                for piece in look(text).words:
                    known.piece[piece][text == answer] += 1
            for word in asked_words(example):
                known.word[word] += 1
                known.beside[word, answer] += 1
        return known

    def features(self, example: Example, text: str) -> list[float]:
        """What is known of a choice; shares, so that they do not grow with the questions."""
        choice, answer, whole = self.choice[text], self.answer[text], self.questions or 1
        found = [choice / whole, answer / whole, (answer + 0.1) / (choice + 1)]
        ahead = [
            (self.ahead[text, other] + 0.5)
            / (self.ahead[text, other] + self.ahead[other, text] + 1)
            for other in set(example.choices)
            if other != text
        ]
        pieces = [self.piece[piece] for piece in look(text).words if piece in self.piece]
        rates = [(right + 0.1) / (wrong + right + 1) for wrong, right in pieces]
        return [*found, mean(ahead), max(ahead), max(rates, default=math.nan)]

    def of_words(self, example: Example, text: str) -> list[float]:
        """How well a choice goes with the words of the question."""
        answers = self.answer[text]
        scores = [
            math.log((self.beside[word, text] + 0.1) / (answers * self.word[word] / n + 0.1))
            for word in asked_words(example)
            if (n := self.questions)
        ]
        own, question = look(text), asked_words(example)
        years = [float(word) for word in question if word.isdigit() and len(word) == 4]
        gap = math.nan if own.number is None or not years else own.number - median(years)
        return [
            sum(scores),
            max(scores, default=0.0),
            sum(len(word) > 2 for word in own.words & question) / (len(own.words) or 1),
            gap,
        ]


def asked_words(example: Example) -> frozenset[str]:
    """The words of the question."""
    return frozenset(_WORD.findall(example.question.casefold()))


# --- the learner -------------------------------------------------------------------------------


@dataclass
class Table:
    """Rows of features, one for each different choice, with the question each belongs to."""

    rows: list[list[float]] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    question: list[int] = field(default_factory=list)

    def add(self, at: int, example: Example, known: Known, words: bool) -> None:
        """Add a question's choices."""
        texts = sorted(set(example.choices))
        looks = [look(text) for text in texts]
        rows = []
        for place, text in enumerate(texts):
            row = [*looks[place].numbers(), *among(place, looks), *known.features(example, text)]
            rows.append(row + (known.of_words(example, text) if words else []))
        # Each feature is compared within the question, too: how far it lies behind the largest.
        whole = np.array(rows)
        with np.errstate(all="ignore"):
            behind = whole - np.where(np.isnan(whole), -np.inf, whole).max(axis=0)
        self.rows += np.hstack([whole, behind, np.full((len(rows), 1), len(rows))]).tolist()
        self.right += [text == example.answer for text in texts]
        self.question += [at] * len(texts)


def guesses(examples: Sequence[Example], words: bool = False, seed: int = 0) -> list[bool]:
    """For each question whether the learner, trained on the other folds, picks its answer.

    Each type has a learner of its own. With ``words`` it sees the question, too.
    """
    order = list(range(len(examples)))
    Random(seed).shuffle(order)
    found = [False] * len(examples)
    for kind in sorted({example.type or "" for example in examples}):
        mine = [number for number in order if (examples[number].type or "") == kind]
        for held in range(FOLDS):
            test = mine[held::FOLDS]
            train = [number for at, number in enumerate(mine) if at % FOLDS != held]
            for number, right in _guessed(examples, train, test, words, seed):
                found[number] = right
    return found


def _guessed(
    examples: Sequence[Example], train: list[int], test: list[int], words: bool, seed: int
) -> Iterable[tuple[int, bool]]:
    """Each question of the test part, and whether its answer has the highest score."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    learned, asked = Table(), Table()
    for inner in range(FOLDS):
        # What is known of a training question's choices comes from others than it.
        others = (number for at, number in enumerate(train) if at % FOLDS != inner)
        known = Known.of(examples[number] for number in others)
        for number in train[inner::FOLDS]:
            learned.add(number, examples[number], known, words)
    known = Known.of(examples[number] for number in train)
    for number in test:
        asked.add(number, examples[number], known, words)
    if not test or len(set(learned.right)) < 2:  # too few to learn from
        return [(number, False) for number in test]
    model = HistGradientBoostingClassifier(
        max_iter=80, learning_rate=0.06, max_leaf_nodes=8, random_state=seed
    )
    rows = np.array(learned.rows)
    varied = np.array([len(np.unique(column[~np.isnan(column)])) > 1 for column in rows.T])
    model.fit(rows[:, varied], learned.right)
    scores = model.predict_proba(np.array(asked.rows)[:, varied])[:, 1]
    best: dict[int, tuple[float, bool]] = {}
    for number, score, right in zip(asked.question, scores, asked.right, strict=True):
        if number not in best or score > best[number][0]:
            best[number] = score, right
    return [(number, right) for number, (_, right) in best.items()]


# --- the report --------------------------------------------------------------------------------


def report(examples: Sequence[Example], words: bool) -> Iterable[str]:
    """The lines of a table: for each type how often the answer is guessed."""
    kinds = ["choices only", "with the question's words"][: 1 + words]
    found = [guesses(examples, with_words) for with_words in (False, True)[: 1 + words]]
    columns = ["type", "questions", *kinds, "commonest answer", "fewer than ten choices"]
    yield f"| {' | '.join(columns)} |"
    yield "| --- " * len(columns) + "|"
    for name in [*sorted({example.type or "" for example in examples}), "all"]:
        of = [at for at, one in enumerate(examples) if name in (one.type, "all")]
        answers = Counter(examples[at].answer for at in of)
        [(answer, count)] = answers.most_common(1)
        few = mean("unknown" in examples[at].choices for at in of)
        shares = [f"{mean(right[at] for at in of):.2f}" for right in found]
        cells = [f"{answer} ({count / len(of):.0%})", f"{few:.0%}"]
        yield f"| {' | '.join([name, str(len(of)), *shares, *cells])} |"


def examples_of(arguments: argparse.Namespace) -> list[Example]:
    """The questions to look at: those of a file, or generated now."""
    if arguments.questions:
        return list(read_examples(arguments.questions))
    if arguments.kb:
        kb = load(arguments.kb)
    else:
        sys.path.insert(0, str(FOLDER.parent))
        people: Any = importlib.import_module("benchmarks.people")
        kb = people.knowledge_base(arguments.set)
    return list(generate(kb, arguments.count, seed=arguments.seed))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--questions", help="a question set with choices")
    parser.add_argument("--kb", help="a knowledge base to ask about")
    parser.add_argument("--set", choices=SETS, default="world", help="(default: world)")
    parser.add_argument("-n", "--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-words", action="store_true", help="only the learner without words")
    arguments = parser.parse_args()
    examples = [one for one in examples_of(arguments) if one.answer is not None and one.choices]
    print("\n".join(report(examples, not arguments.no_words)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KoplError as error:
        sys.exit(f"choices.py: {error}")
