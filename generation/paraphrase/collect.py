"""From what people wrote and judged to examples, and to the tasks of the judges."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace

from generation.paraphrase.filters import (
    Candidate,
    Doubt,
    Filters,
    Reject,
    Rejected,
    Report,
    example_of,
    ignore,
    sift,
)
from generation.paraphrase.originals import Original
from generation.paraphrase.responses import Paraphrase, Responses
from generation.paraphrase.tasks import Written
from kopl.example import Example
from kopl_base.errors import KoplError, counted

log = logging.getLogger("kb")

SHOWN = 3  # ids in a message


def collect(
    questions: Iterable[Original], responses: Responses, filters: Filters, report: Report,
    reject: Reject = ignore, doubt: Doubt | None = None,
) -> Iterator[Example]:  # fmt: skip
    """The examples of the paraphrases that pass all filters, in the order of the questions.

    A vote of the one who wrote the paraphrase does not count: the paper has others judge. ``doubt``
    is as `filters.sift` has it. Raises KoplError when the responses are about other questions.
    """
    for original, paraphrases in _matched(questions, responses, filters, report, reject):
        candidates = []
        for one in paraphrases:
            votes = responses.votes.get((one.id, one.text), {})
            others = tuple(vote for judge, vote in votes.items() if judge != one.worker)
            candidates.append(Candidate(one.text, _about(one), others))
        for passed in sift(original, candidates, filters, report, reject, doubt):
            yield example_of(original, passed)


def to_judge(
    questions: Iterable[Original], responses: Responses, filters: Filters, report: Report
) -> Iterator[Written]:
    """The paraphrases that judges are to see: those that their text alone does not reject for sure.

    Raises KoplError as `collect` does.
    """
    filters = replace(filters, judges=0)
    for original, paraphrases in _matched(questions, responses, filters, report):
        workers = {one.text: one.worker for one in paraphrases}
        candidates = [Candidate(one.text, _about(one)) for one in paraphrases]
        for passed in sift(original, candidates, filters, report, doubtful=True):
            text = passed.candidate.text
            yield Written(original, text, workers[text], passed.doubt)


def _about(paraphrase: Paraphrase) -> dict[str, str]:
    return {"annotator": paraphrase.worker} if paraphrase.worker else {}


def _matched(
    questions: Iterable[Original], responses: Responses, filters: Filters, report: Report,
    reject: Reject = ignore,
) -> Iterator[tuple[Original, list[Paraphrase]]]:  # fmt: skip
    """The questions with their paraphrases; without those marked as confusing."""
    written: dict[str, list[Paraphrase]] = {}
    for paraphrase in responses.paraphrases.values():
        written.setdefault(paraphrase.id, []).append(paraphrase)
    unknown = dict.fromkeys([*written, *responses.confusing])
    answered = len(unknown)
    for original in questions:
        unknown.pop(original.id, None)
        own = written.get(original.id, [])
        for one in own:
            if one.canonical and one.canonical.split() != original.canonical.split():
                raise KoplError(
                    f"the question {original.id!r} was another one when it was paraphrased:"
                    f" {one.canonical!r}, not {original.canonical!r}; give the question set that"
                    " the tasks were made of"
                )
        if len(responses.confusing.get(original.id, ())) >= filters.confusing:
            report.confusing += 1
            report.given += len(own)
            report.reasons["a confusing question"] += len(own)
            for one in own:
                reject(Rejected(one.id, one.text, _about(one), "a confusing question"))
        elif own:
            yield original, own
    if unknown:
        ids = ", ".join(list(unknown)[:SHOWN]) + (", …" if len(unknown) > SHOWN else "")
        if len(unknown) == answered:
            raise KoplError(
                f"no question of the set was paraphrased; the responses are about others: {ids}"
            )
        log.warning(
            "%s not in the set, but paraphrased: %s", counted(len(unknown), "question"), ids
        )
