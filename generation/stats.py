"""What a question set holds, counted in one pass, beside the figures of the KQA Pro paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, NamedTuple

from generation.comparisons import years_of
from kopl.example import Example
from kopl.program import post_order
from kopl.traits import ASKING, LOCATING, SKILLS, asking, hops, locating, skills

# How many answers and first words are listed, and how many in a short account.
TOP, FEW = 10, 5
# As many different answers are kept where memory must not grow with the set (``bound``).
ANSWERS = 100_000
# First words that are counted apart; a text that is no language may begin in any number of ways.
FIRST_WORDS = 10_000
OTHER = "(other)"

# The figures of the paper (Fig. 3, Section 4) for the measures of `Statistics.measures`.
PAPER: dict[str, float] = {
    "questions": 117_970,
    "mean question words": 14.95,
    "mean calls": 4.79,
    "share with four calls": 0.2842,
    "share with more than ten calls": 0.0124,
    "mean SPARQL tokens": 35.52,
    "share multi-hop": 0.737,
    "share with five hops or more": 0.047,
    "different answers": 24_724,
    "share of answers never in training": 0.30,
}
# Percent of the questions; the paper gives two of them and "about a tenth" for each other.
SHARES: Mapping[str, float] = {
    "Count": 11.5,
    "SelectAmong": 4.6,
    "QueryName": 12.0,
    "QueryAttribute": 12.0,
    "Relation": 12.0,
    "SelectBetween": 11.9,
    "Verify": 12.0,
    "QualifierLiteral": 12.0,
    "QualifierRelational": 12.0,
}
PAPER_TYPES = {name: share / 100 for name, share in SHARES.items()}
# The types whose share the paper gives; the others share the rest about equally.
GIVEN_TYPES = ("Count", "SelectAmong")


class Figures(NamedTuple):
    """What is counted of one example; small, as workers hand it to the one who counts."""

    type: str
    hops: int
    words: int
    calls: int
    tokens: int | None
    functions: frozenset[str]
    locating: tuple[str, ...]
    skills: tuple[str, ...]
    answer: str | None
    first: str
    years: tuple[str, ...] = ()

    @classmethod
    def of(cls, example: Example) -> Figures:
        """The figures of an example."""
        program, words = example.program, example.question.split()
        return cls(
            example.type or asking(program),
            hops(program),
            len(words),
            program.size,
            None if example.sparql is None else len(example.sparql.split()),
            frozenset(call.function.name for call in post_order(program)),
            locating(program),
            skills(program),
            example.answer,
            words[0].lower().strip("\"'“”‘’,.:;!?") if words else "",
            tuple(str(year) for year in years_of(program, example.answer or "")),
        )


@dataclass
class Statistics:
    """Counts over examples; of their texts only answers and first words are kept.

    ``trained`` are the answers of the training set, where the share of new ones is asked for.
    ``bound``: how many different answers are kept at most; those that come later are counted
    together in ``unlisted``.
    """

    trained: Collection[str] | None = None
    bound: int | None = None
    types: Counter[str] = field(default_factory=Counter)
    hops: Counter[int] = field(default_factory=Counter)
    words: Counter[int] = field(default_factory=Counter)
    calls: Counter[int] = field(default_factory=Counter)
    tokens: Counter[int] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    locating: Counter[str] = field(default_factory=Counter)
    skills: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    first_words: Counter[str] = field(default_factory=Counter)
    years: Counter[str] = field(default_factory=Counter)
    new_answers: int = 0
    unlisted: int = 0

    def add(self, example: Example) -> None:
        """Count an example in."""
        self.count(Figures.of(example))

    def count(self, one: Figures) -> None:
        """Count an example in by its figures."""
        self.types[one.type] += 1
        self.hops[one.hops] += 1
        self.words[one.words] += 1
        self.calls[one.calls] += 1
        if one.tokens is not None:
            self.tokens[one.tokens] += 1
        self.functions.update(one.functions)
        self.locating.update(one.locating)
        self.skills.update(one.skills)
        if one.answer is not None:
            if one.answer in self.answers or self.bound is None or len(self.answers) < self.bound:
                self.answers[one.answer] += 1
            else:
                self.unlisted += 1
            self.new_answers += self.trained is not None and one.answer not in self.trained
        self.years.update(one.years)
        known = one.first in self.first_words or len(self.first_words) < FIRST_WORDS
        self.first_words[one.first if known else OTHER] += 1

    def counting(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples, each counted as it passes by."""
        for example in examples:
            self.add(example)
            yield example

    @classmethod
    def of(cls, examples: Iterable[Example], trained: Collection[str] | None = None) -> Statistics:
        """The statistics of examples."""
        statistics = cls(trained)
        for example in examples:
            statistics.add(example)
        return statistics

    @property
    def questions(self) -> int:
        """How many examples were counted."""
        return self.types.total()

    def share(self, count: int) -> float:
        """A count as a share of the questions (0 of none)."""
        return count / self.questions if self.questions else 0.0

    def measures(self) -> dict[str, float | None]:
        """The figures that the paper gives, by the names of `PAPER`; None where nothing tells."""
        answered = self.answers.total() + self.unlisted
        new = self.new_answers / answered if answered and self.trained is not None else None
        return {
            "questions": self.questions,
            "mean question words": _mean(self.words),
            "mean calls": _mean(self.calls),
            "share with four calls": self.share(self.calls[4]),
            "share with more than ten calls": self.share(_from(self.calls, 11)),
            "mean SPARQL tokens": _mean(self.tokens),
            "share multi-hop": self.share(_from(self.hops, 2)),
            "share with five hops or more": self.share(_from(self.hops, 5)),
            "different answers": None if self.unlisted else len(self.answers),
            "share of answers never in training": new,
        }

    def to_json(self) -> dict[str, Any]:
        """All figures as plain numbers; histograms by ascending number, the rest by count."""
        shares = {
            "types": _in_order(self.types, ASKING),
            "functions": _by_count(self.functions),
            "locating": _in_order(self.locating, LOCATING),
            "skills": _in_order(self.skills, SKILLS),
        }
        histograms = {
            "hops": self.hops,
            "question words": self.words,
            "calls": self.calls,
            "SPARQL tokens": self.tokens,
        }
        return {
            **{name: figure for name, figure in self.measures().items() if figure is not None},
            **{
                name: {key: self.share(count) for key, count in counts.items()}
                for name, counts in shares.items()
            },
            **{name: dict(sorted(counts.items())) for name, counts in histograms.items()},
            "top answers": _top(self.answers),
            "first words": _top(self.first_words),
            "top years": _top(self.years),
        }


def rows_of(sets: Mapping[str, Statistics]) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Headings and rows of a table with one column for each set and one for the paper."""
    rows = main_rows(sets)
    for title, attribute, order in (
        ("locating", "locating", LOCATING),
        ("skill", "skills", SKILLS),
    ):
        for name in order:
            shares = [_percent(one.share(getattr(one, attribute)[name])) for one in sets.values()]
            rows.append((f"{title}: {name}", *shares, ""))
    functions = _by_count(sum((one.functions for one in sets.values()), Counter()))
    for name in functions:
        shares = [_percent(one.share(one.functions[name])) for one in sets.values()]
        rows.append((f"programs with {name}", *shares, ""))
    return ("", *sets, "KQA Pro"), rows


def main_rows(sets: Mapping[str, Statistics]) -> list[tuple[str, ...]]:
    """The rows that the paper has figures for: the measures and the question types."""
    measures = [one.measures() for one in sets.values()]
    rows = [
        (name, *(_shown(name, own[name]) for own in measures), _shown(name, paper))
        for name, paper in PAPER.items()
        if any(own[name] is not None for own in measures)
    ]
    types = [*ASKING, *sorted({name for one in sets.values() for name in one.types} - {*ASKING})]
    for name in types:
        shares = [_percent(one.share(one.types[name])) for one in sets.values()]
        paper = ""
        if name in PAPER_TYPES:
            share = PAPER_TYPES[name]
            paper = f"{share:.1%}" if name in GIVEN_TYPES else f"about {share:.0%}"
        rows.append((f"type {name}", *shares, paper))
    return rows


def short_rows(statistics: Statistics) -> list[tuple[str, ...]]:
    """What is shown of a set that was just made: `main_rows`, commonest answers and first words."""
    rows = main_rows({"": statistics})
    for title, counts in (
        ("top answers", statistics.answers),
        ("first words", statistics.first_words),
    ):
        few = [f"{text} {statistics.share(count):.1%}" for text, count in _top(counts, FEW).items()]
        rows.append((title, ", ".join(few), ""))
    if statistics.years:
        whole = statistics.years.total()
        few = [f"{text} {count / whole:.1%}" for text, count in _top(statistics.years, FEW).items()]
        rows.append(("top years, of all dates", ", ".join(few), ""))
    return rows


def top_rows(statistics: Statistics) -> list[tuple[str, str, str]]:
    """The commonest answers and first words, with their shares."""
    rows = []
    for title, counts in (
        ("answer", statistics.answers),
        ("first word", statistics.first_words),
    ):
        for text, count in _top(counts).items():
            rows.append((title, text, _percent(statistics.share(count))))
    return rows


def _shown(name: str, figure: float | None) -> str:
    if figure is None:
        return ""
    if name.startswith("share"):
        return _percent(figure)
    return f"{figure:.2f}" if name.startswith("mean") else str(figure)


def _percent(share: float) -> str:
    return f"{share:.2%}"


def _mean(counts: Counter[int]) -> float | None:
    total = counts.total()
    return sum(number * count for number, count in counts.items()) / total if total else None


def _from(counts: Counter[int], least: int) -> int:
    return sum(count for number, count in counts.items() if number >= least)


def _in_order(counts: Counter[str], order: Sequence[str]) -> dict[str, int]:
    """All names of an order with their counts, then others that were counted."""
    return {name: counts[name] for name in (*order, *sorted(set(counts) - set(order)))}


def _by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _top(counts: Counter[str], number: int = TOP) -> dict[str, int]:
    return dict(nsmallest(number, counts.items(), key=lambda pair: (-pair[1], pair[0])))
