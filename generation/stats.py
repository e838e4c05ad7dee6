"""What a question set holds, counted in one pass, beside the figures of the KQA Pro paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kopl.example import Example
from kopl.program import post_order
from kopl.traits import ASKING, LOCATING, SKILLS, asking, hops, locating, skills

# How many answers and first words are listed.
TOP = 10
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
# The other seven types share the rest about equally.
PAPER_TYPES = dict.fromkeys(ASKING, 0.12) | {"Count": 0.115, "SelectAmong": 0.046}


@dataclass
class Statistics:
    """Counts over examples; of their texts only answers and first words are kept.

    ``trained`` are the answers of the training set, where the share of new ones is asked for.
    """

    trained: Collection[str] | None = None
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
    new_answers: int = 0

    def add(self, example: Example) -> None:
        """Count an example in."""
        program, words = example.program, example.question.split()
        self.types[asking(program)] += 1
        self.hops[hops(program)] += 1
        self.words[len(words)] += 1
        self.calls[program.size] += 1
        if example.sparql is not None:
            self.tokens[len(example.sparql.split())] += 1
        self.functions.update({call.function.name for call in post_order(program)})
        self.locating.update(locating(program))
        self.skills.update(skills(program))
        if example.answer is not None:
            self.answers[example.answer] += 1
            self.new_answers += self.trained is not None and example.answer not in self.trained
        first = words[0].lower().strip("\"'“”‘’,.:;!?") if words else ""
        known = first in self.first_words or len(self.first_words) < FIRST_WORDS
        self.first_words[first if known else OTHER] += 1

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
        answered = self.answers.total()
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
            "different answers": len(self.answers),
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
            "hops": self.hops, "question words": self.words, "calls": self.calls,
            "SPARQL tokens": self.tokens,
        }  # fmt: skip
        return {
            **{name: figure for name, figure in self.measures().items() if figure is not None},
            **{
                name: {key: self.share(count) for key, count in counts.items()}
                for name, counts in shares.items()
            },
            **{name: dict(sorted(counts.items())) for name, counts in histograms.items()},
            "top answers": _top(self.answers),
            "first words": _top(self.first_words),
        }


def rows_of(sets: Mapping[str, Statistics]) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Headings and rows of a table with one column for each set and one for the paper."""
    measures = [one.measures() for one in sets.values()]
    rows = [
        (name, *(_shown(name, own[name]) for own in measures), _shown(name, paper))
        for name, paper in PAPER.items()
        if any(own[name] is not None for own in measures)
    ]
    types = [*ASKING, *sorted({name for one in sets.values() for name in one.types} - {*ASKING})]
    for name in types:
        shares = [_percent(one.share(one.types[name])) for one in sets.values()]
        paper = f"{PAPER_TYPES[name]:.1%}" if name in PAPER_TYPES else ""
        about = "" if name in ("Count", "SelectAmong") or not paper else "about "
        rows.append((f"type {name}", *shares, f"{about}{paper.replace('.0', '')}"))
    for title, attribute, order in (
        ("locating", "locating", LOCATING), ("skill", "skills", SKILLS),
    ):  # fmt: skip
        for name in order:
            shares = [_percent(one.share(getattr(one, attribute)[name])) for one in sets.values()]
            rows.append((f"{title}: {name}", *shares, ""))
    functions = _by_count(sum((one.functions for one in sets.values()), Counter()))
    for name in functions:
        shares = [_percent(one.share(one.functions[name])) for one in sets.values()]
        rows.append((f"programs with {name}", *shares, ""))
    return ("", *sets, "KQA Pro"), rows


def top_rows(statistics: Statistics) -> list[tuple[str, str, str]]:
    """The commonest answers and first words, with their shares."""
    rows = []
    for title, counts in (
        ("answer", statistics.answers), ("first word", statistics.first_words),
    ):  # fmt: skip
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


def _top(counts: Counter[str]) -> dict[str, int]:
    from heapq import nsmallest

    return dict(nsmallest(TOP, counts.items(), key=lambda pair: (-pair[1], pair[0])))
