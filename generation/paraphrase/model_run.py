"""Paraphrases by a model into a file, which is made of all its replies at the end.

The file has the order of the questions, so that it depends on the replies alone
(`generation.paraphrase.replies`); the filters may be others when a run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from generation.formats import open_examples
from generation.paraphrase.filters import (
    Candidate,
    Doubt,
    Filters,
    Reject,
    Report,
    example_of,
    ignore,
    sift,
)
from generation.paraphrase.mentions import plain
from generation.paraphrase.model import Model, Reply, Request
from generation.paraphrase.originals import Knowledge, Original, originals
from generation.paraphrase.prompt import LONGEST, Prompt, question_in
from generation.paraphrase.replies import ask_all
from kopl_base.errors import KoplError
from kopl_base.stream import writing

OF_MODELS = Filters(judges=0, names="reject")


@dataclass(frozen=True)
class ParaphrasePlan:
    """What is asked: ``count`` replies for each question of ``source``, by the seed.

    ``keep_going``: a question without a reply does not stop the run.
    """

    source: Path | str
    prompt: Prompt
    count: int = 1
    seed: int = 0
    filters: Filters = OF_MODELS
    keep_going: bool = False
    knowledge: Knowledge = field(default=Knowledge(), repr=False)

    def requests(self) -> Iterator[tuple[Original, list[Request]]]:
        """The questions with what is asked for each."""
        for original in originals(open_examples(self.source), self.knowledge):
            messages = self.prompt.messages(original)
            yield original, [Request.of(messages, self.seed, n) for n in range(self.count)]

    def every(self) -> Iterator[Request]:
        """What is asked for all questions."""
        for _, requests in self.requests():
            yield from requests

    def about(self) -> dict[str, Any]:
        """What the replies depend on, besides the model."""
        prompt = json.dumps(self.prompt.parts).encode()
        return {"seed": self.seed, "prompt": blake2b(prompt, digest_size=8).hexdigest()}


@dataclass
class ModelReport(Report):
    """What a run did, and how many replies were asked for now and could not be had."""

    asked: int = 0
    failed: int = 0


def run(
    plan: ParaphrasePlan,
    model: Model,
    output: Path | str,
    *,
    resume: bool = False,
    reject: Reject = ignore,
    doubt: Doubt | None = None,
) -> ModelReport:
    """Write the paraphrases that pass the filters as JSON lines; the others go to ``reject``.

    ``doubt`` is as `filters.sift` has it.

    Raises AskError when a reply cannot be had, ReadError for a question set that is malformed or a
    stopped run that does not fit, WriteError for a file that cannot be written; replies that came
    stay in ``FILE.part`` then.
    """
    source = Path(plan.source)
    if source.exists() and not source.is_file() and not source.is_dir():
        raise KoplError(f"{source}: is no ordinary file; a set is read several times")
    job = ask_all(plan, model, Path(output), resume=resume)
    report = ModelReport()
    shared = _shared(plan, job.replies)
    with writing(job.output) as kept:
        for original, requests in plan.requests():
            candidates = _candidates(requests, job.replies, model, shared)
            for passed in sift(original, candidates, plan.filters, report, reject, doubt):
                line = json.dumps(example_of(original, passed).to_json(), ensure_ascii=False)
                kept.write(line + "\n")
    report.asked, report.failed = job.asked, len(job.failures)
    job.settle()
    return report


def _shared(plan: ParaphrasePlan, replies: dict[str, Reply]) -> set[str]:
    """Texts that are the reply to questions of different programs, as "I cannot help with that"."""
    programs: dict[str, bytes] = {}
    shared = set()
    for original, requests in plan.requests():
        program = blake2b(str(original.example.program).encode(), digest_size=8).digest()
        for request in requests:
            if reply := replies.get(request.key):
                text = plain(question_in(reply.text))
                if programs.setdefault(text, program) != program:
                    shared.add(text)
    return shared


def _candidates(
    requests: Iterable[Request], replies: dict[str, Reply], model: Model, shared: set[str]
) -> Iterator[Candidate]:
    for number, request in enumerate(requests):
        reply = replies.get(request.key)
        about = {"model": model.name, "reply": number}
        if reply is None:
            yield Candidate("", about, fault="no reply")
            continue
        text, fault = question_in(reply.text), ""
        if len(reply.text) > LONGEST:
            fault = "far too long"
        elif reply.cut:
            fault = "cut short"
        elif text and plain(text) in shared:
            fault = "the same for different questions"
        yield Candidate(text, about, fault=fault)
