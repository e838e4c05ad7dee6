"""Which paraphrases are kept: the filters of the KQA Pro paper, and that the meaning stays.

The paper (Section 4 and Appendix B) rejects a paraphrase when more than two judges say that it
means something else, when its mean fluency is below 3, and when its edit distance to the canonical
question is very small; that threshold is not published, ours is chosen here. Before that a text is
compared with its question and program. What it certainly says otherwise rejects it. What it may say
otherwise leaves it to people: it is kept where judges have passed it, else it is for review.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

from generation.paraphrase.mentions import plain
from generation.paraphrase.originals import Original
from generation.paraphrase.responses import Vote
from kopl.example import Example
from kopl_base.errors import KoplError, counted
from kopl_base.stream import writing

Names = Literal["reject", "review", "warn", "ignore"]
Meanings = Literal["check", "ignore"]

# What else may doubt a paraphrase, as a parser that reads it: why, or "".
Doubt = Callable[[Original, str], str]


@dataclass(frozen=True)
class Filters:
    """The thresholds; raises KoplError for one that cannot be.

    - ``distance``: of `Original.distance`, at least (0 to 1). One character in ten of what is free
      to change: a single word more or less is no paraphrase.
    - ``different``: judges who may say that the meaning differs.
    - ``fluency``: its mean, at least (1 to 5).
    - ``judges``: votes that a paraphrase needs; 0 takes what nobody judged, too.
    - ``confusing``: workers who have to mark a question for all its paraphrases to be left out.
    - ``names``: what happens to a text that lacks a name or value of its program.
    - ``meaning``: whether texts are compared with their question and program.
    """

    distance: float = 0.1
    different: int = 2
    fluency: float = 3.0
    judges: int = 5
    confusing: int = 1
    names: Names = "review"
    meaning: Meanings = "check"

    def __post_init__(self) -> None:
        if not 0 <= self.distance <= 1:
            raise KoplError(f"the least edit distance is from 0 to 1, not {self.distance}")
        if not 0 <= self.fluency <= 5:
            raise KoplError(f"the least fluency is from 0 to 5, not {self.fluency}")
        if min(self.different, self.judges) < 0 or self.confusing < 1:
            raise KoplError(
                "votes and judges are 0 or more, workers who find it confusing 1 or more"
            )
        if self.names not in get_args(Names):
            raise KoplError(f"names are one of {', '.join(get_args(Names))}, not {self.names!r}")
        if self.meaning not in get_args(Meanings):
            raise KoplError(
                f"meaning is one of {', '.join(get_args(Meanings))}, not {self.meaning!r}"
            )


@dataclass(frozen=True)
class Candidate:
    """A text that may become a question; ``about`` says who wrote it, for the example's extra.

    ``fault`` is why it is rejected whatever it says, if it is.
    """

    text: str
    about: Mapping[str, Any] = field(default_factory=dict)
    votes: tuple[Vote, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class Rejected:
    """A text that was not kept, and why.

    ``missing`` are the names and values it lacks, ``detail`` is what the reason is about;
    ``review`` says that people should look at it, and ``told`` is what they are told.
    """

    id: str
    text: str
    about: Mapping[str, Any]
    reason: str
    missing: tuple[str, ...] = ()
    detail: str = ""
    review: bool = False
    told: str = ""
    original: Original | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The object of a line of the file of rejected texts."""
        shown = self.text if len(self.text) <= SHOWN else self.text[: SHOWN - 1] + "…"
        item: dict[str, Any] = {"id": self.id, "question": shown, "reason": self.reason}
        item |= {"detail": self.detail} if self.detail else {}
        item |= {"review": True} if self.review else {}
        return item | ({"missing": list(self.missing)} if self.missing else {}) | dict(self.about)


Reject = Callable[[Rejected], object]

SHOWN = 2000  # characters of a rejected text that are written


def ignore(rejected: Rejected) -> None:
    """What happens to rejected texts that nobody asks for."""


@contextmanager
def rejecting(path: Path | str | None) -> Iterator[Reject]:
    """What writes rejected texts to a file as JSON lines, or does not where none is given."""
    if path is None:
        yield ignore
        return
    with writing(path) as file:
        yield lambda one: file.write(json.dumps(one.to_json(), ensure_ascii=False) + "\n")


@dataclass
class Report:
    """What the filters did: questions that had a paraphrase kept, texts given, kept and rejected.

    ``reasons`` counts rejected texts, ``doubts`` those that are for review, by why; ``warned`` were
    kept without all names, ``confusing`` counts questions that were left out.
    """

    questions: int = 0
    confusing: int = 0
    given: int = 0
    kept: int = 0
    warned: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    doubts: Counter[str] = field(default_factory=Counter)

    @property
    def review(self) -> int:
        """The texts that are for review."""
        return self.doubts.total()

    def __str__(self) -> str:
        """One line for people."""
        reasons = _counts(self.reasons)
        parts = [
            f"kept {self.kept} of {counted(self.given, 'paraphrase')}, of"
            f" {counted(self.questions, 'question')}" + (f" ({reasons})" if reasons else "")
        ]
        if self.doubts:
            parts.append(f"{self.review} for review ({_counts(self.doubts)})")
        if self.confusing:
            parts.append(f"{counted(self.confusing, 'question')} left out as confusing")
        if self.warned:
            parts.append(f"{self.warned} kept without all names and values")
        return "; ".join(parts)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{text} {n}" for text, n in counter.most_common() if n)


@dataclass(frozen=True)
class Examined:
    """Why a text alone is not kept, what that is about, the names and values that it lacks.

    ``certain``: no judge can make it right. Without a reason the text is kept.
    """

    reason: str = ""
    detail: str = ""
    missing: tuple[str, ...] = ()
    certain: bool = True

    @property
    def told(self) -> str:
        """The reason with what it is about, for people."""
        return ": ".join(filter(None, (self.reason, self.detail or ", ".join(self.missing))))


def examined(
    original: Original, text: str, filters: Filters, doubt: Doubt | None = None
) -> Examined:
    """What is found of a text alone; ``doubt`` is asked last, of what nothing else doubts."""
    if length := original.too_long(text):
        return Examined(length)
    if not plain(text):
        return Examined("empty")
    checks = filters.meaning == "check"
    if checks and (surface := original.surface(text)):
        return Examined(surface)
    lacks = () if filters.names == "ignore" else tuple(original.missing(text))
    if lacks and filters.names == "reject":
        return Examined("a name or value is missing", missing=lacks)
    certain, doubtful = original.meant(text) if checks else (None, None)
    if certain:
        return Examined(certain.reason, certain.about, lacks)
    if original.distance(text) < filters.distance:
        return Examined("too near to the question", missing=lacks)
    if lacks and filters.names == "review":
        return Examined("a name or value is missing", missing=lacks, certain=False)
    if doubtful:
        return Examined(doubtful.reason, doubtful.about, lacks, certain=False)
    if doubt and (reason := doubt(original, text)):
        return Examined("the parser reads another program", reason, lacks, certain=False)
    return Examined(missing=lacks)


def judged(votes: Sequence[Vote], filters: Filters) -> str:
    """Why the votes of judges reject a paraphrase; "" when they do not."""
    if len(votes) < filters.judges:
        return "too few votes"
    if sum(not vote.same for vote in votes) > filters.different:
        return "another meaning"
    if votes and _mean_fluency(votes) < filters.fluency:
        return "not fluent"
    return ""


@dataclass(frozen=True)
class Passed:
    """A candidate that passed, the names and values it lacks, and whether it is the first one.

    ``doubt`` is why it would be for review if nobody had judged it.
    """

    candidate: Candidate
    missing: tuple[str, ...]
    first: bool
    doubt: str = ""


def sift(
    original: Original, candidates: Iterable[Candidate], filters: Filters, report: Report,
    reject: Reject = ignore, doubt: Doubt | None = None, *, doubtful: bool = False,
) -> Iterator[Passed]:  # fmt: skip
    """Those candidates for a question that pass, counted; the others go to ``reject``.

    Of texts that differ in case, blanks or the mark at the end the first one counts, also of those
    that are for review. What is doubtful passes where judges have passed it, and is for review
    where none did; with ``doubtful`` it passes in any case.
    """
    seen: set[str] = set()
    reviewed: set[str] = set()
    for candidate in candidates:
        words = plain(candidate.text).rstrip(" ?.!")
        report.given += 1
        found = Examined(candidate.fault)
        if not found.reason:
            found = examined(original, candidate.text, filters, doubt)
        reason, doubts = found.reason, bool(found.reason) and not found.certain
        if (not reason or doubts) and words in seen:
            reason, doubts = "twice", False
        if not reason or doubts:
            if votes := judged(candidate.votes, filters):
                reason, doubts = votes, False
            elif candidate.votes or doubtful:
                reason, doubts = "", False
        if doubts and words in reviewed:
            reason, doubts = "twice", False
        if reason:
            if doubts:
                reviewed.add(words)
            (report.doubts if doubts else report.reasons)[reason] += 1
            reject(
                Rejected(
                    original.id, candidate.text, candidate.about, reason, found.missing,
                    found.detail if reason == found.reason else "", doubts, found.told, original,
                )
            )  # fmt: skip
            continue
        report.kept += 1
        report.questions += not seen
        report.warned += bool(found.missing)
        yield Passed(candidate, found.missing, not seen, found.told)
        seen.add(words)


def example_of(original: Original, passed: Passed) -> Example:
    """The example of a paraphrase.

    The first one of a question has its id, each other one the id with "#" and a digest of its text,
    so that splits keep them together.
    """
    candidate = passed.candidate
    about = dict(candidate.about) | ({"missing": list(passed.missing)} if passed.missing else {})
    if candidate.votes:
        about["votes"] = len(candidate.votes)
        about["different"] = sum(not vote.same for vote in candidate.votes)
        about["fluency"] = round(_mean_fluency(candidate.votes), 2)
    digest = blake2b(candidate.text.encode(), digest_size=4).hexdigest()
    return replace(
        original.example,
        id=original.id if passed.first else f"{original.id}#{digest}",
        question=candidate.text,
        canonical=original.canonical,
        extra={**original.example.extra, "paraphrase": about},
    )


def _mean_fluency(votes: Sequence[Vote]) -> float:
    return sum(vote.fluency for vote in votes) / len(votes)
