"""Which paraphrases are kept: the filters of the KQA Pro paper, and that nothing got lost.

The paper (Section 4 and Appendix B) rejects a paraphrase when more than two judges say that it
means something else, when its mean fluency is below 3, and when its edit distance to the canonical
question is very small; that threshold is not published, ours is chosen here.
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

Names = Literal["reject", "warn", "ignore"]


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
    """

    distance: float = 0.1
    different: int = 2
    fluency: float = 3.0
    judges: int = 5
    confusing: int = 1
    names: Names = "warn"

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
    """A text that was not kept, and why; ``missing`` are the names and values it lacks."""

    id: str
    text: str
    about: Mapping[str, Any]
    reason: str
    missing: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object of a line of the file of rejected texts."""
        item = {"id": self.id, "question": self.text, "reason": self.reason}
        return item | ({"missing": list(self.missing)} if self.missing else {}) | dict(self.about)


Reject = Callable[[Rejected], object]


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

    ``reasons`` counts rejected texts, ``warned`` those that were kept without all names,
    ``confusing`` questions that were left out.
    """

    questions: int = 0
    confusing: int = 0
    given: int = 0
    kept: int = 0
    warned: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """One line for people."""
        reasons = ", ".join(f"{text} {n}" for text, n in self.reasons.most_common() if n)
        parts = [
            f"kept {self.kept} of {counted(self.given, 'paraphrase')}, of"
            f" {counted(self.questions, 'question')}" + (f" ({reasons})" if reasons else "")
        ]
        if self.confusing:
            parts.append(f"{counted(self.confusing, 'question')} left out as confusing")
        if self.warned:
            parts.append(f"{self.warned} kept without all names and values")
        return "; ".join(parts)


def fault(original: Original, text: str, filters: Filters) -> tuple[str, list[str]]:
    """Why a text alone is rejected ("" when it is not), and the names and values that it lacks."""
    if not plain(text):
        return "empty", []
    lacks = [] if filters.names == "ignore" else original.missing(text)
    if lacks and filters.names == "reject":
        return "a name or value is missing", lacks
    if original.distance(text) < filters.distance:
        return "too near to the question", lacks
    return "", lacks


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
    """A candidate that passed, the names and values it lacks, and whether it is the first one."""

    candidate: Candidate
    missing: tuple[str, ...]
    first: bool


def sift(
    original: Original, candidates: Iterable[Candidate], filters: Filters, report: Report,
    reject: Reject = ignore,
) -> Iterator[Passed]:  # fmt: skip
    """Those candidates for a question that pass, counted; the others go to ``reject``."""
    seen: set[str] = set()
    for candidate in candidates:
        report.given += 1
        reason, lacks = candidate.fault, list[str]()
        if not reason:
            reason, lacks = fault(original, candidate.text, filters)
        if not reason and plain(candidate.text) in seen:
            reason = "twice"
        reason = reason or judged(candidate.votes, filters)
        if reason:
            report.reasons[reason] += 1
            reject(Rejected(original.id, candidate.text, candidate.about, reason, tuple(lacks)))
            continue
        report.kept += 1
        report.questions += not seen
        report.warned += bool(lacks)
        yield Passed(candidate, tuple(lacks), first=not seen)
        seen.add(plain(candidate.text))


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
