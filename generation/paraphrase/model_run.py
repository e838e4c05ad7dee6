"""Paraphrases by a model into a file: many requests at a time, and going on after a stop.

Replies are noted in ``FILE.part`` as they come, with their requests' keys, and what they depend on
in ``FILE.part.json``. The file itself is made of them at the end, in the order of the questions, so
that it depends on the replies alone; the filters may be others when a run goes on.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from generation.formats import open_examples
from generation.paraphrase.filters import Candidate, Filters, Report, example_of, rejecting, sift
from generation.paraphrase.mentions import plain
from generation.paraphrase.model import AskError, Model, Reply, Request
from generation.paraphrase.originals import Original, originals
from generation.paraphrase.prompt import Prompt, question_in
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_base.progress import Progress
from kopl_base.runs import BlockId, as_they_come, work
from kopl_base.stream import writing
from kopl_base.unfinished import Unfinished

log = logging.getLogger("kb")

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

    def requests(self) -> Iterator[tuple[Original, list[Request]]]:
        """The questions with what is asked for each."""
        for original in originals(open_examples(self.source)):
            messages = self.prompt.messages(original)
            yield original, [Request.of(messages, self.seed, n) for n in range(self.count)]


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
    rejected: Path | str | None = None,
) -> ModelReport:
    """Write the paraphrases that pass the filters as JSON lines, and those that do not elsewhere.

    Raises AskError when a reply cannot be had, ReadError for a question set that is malformed or a
    stopped run that does not fit, WriteError for a file that cannot be written; replies that came
    stay in ``FILE.part`` then.
    """
    source = Path(plan.source)
    if source.exists() and not source.is_file() and not source.is_dir():
        raise KoplError(f"{source}: is no ordinary file; a set is read several times")
    # Read to its end before anything is asked: a malformed line should not come after hours.
    total = sum(len(requests) for _, requests in plan.requests())
    report = ModelReport()
    job = Replies(Path(output), plan, model, resume=resume)
    results = as_they_come(job, job.ask, model.workers, job.over)
    try:
        work(job, results, Progress("asking the model", total))
    except AskError as error:
        if not job.replies:
            raise
        raise AskError(f"{error}; {job.remains}") from None
    except KeyboardInterrupt:
        log.warning("%s", job.remains)
        raise
    shared = _shared(plan, job.replies)
    with writing(job.output) as kept, rejecting(rejected) as reject:
        for original, requests in plan.requests():
            candidates = _candidates(requests, job.replies, model, shared)
            for passed in sift(original, candidates, plan.filters, report, reject):
                line = json.dumps(example_of(original, passed).to_json(), ensure_ascii=False)
                kept.write(line + "\n")
    report.asked, report.failed = job.asked, len(job.failures)
    if job.failures:
        log.warning(
            "%d replies could not be had (%s); --resume asks for them again",
            len(job.failures),
            next(iter(job.failures.values())),
        )
    else:
        job.discard()
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
        if reply.cut:
            fault = "cut short"
        elif text and plain(text) in shared:
            fault = "the same for different questions"
        yield Candidate(text, about, fault=fault)


# --- asking -------------------------------------------------------------------------------------


class Replies(Unfinished):
    """The replies so far, in memory and in a file; ``failures`` are those that could not be had.

    ``asked`` are asked for now; ``over`` is set when no more are wanted.
    """

    failure = AskError

    def __init__(self, output: Path, plan: ParaphrasePlan, model: Model, *, resume: bool) -> None:
        output = Path(os.path.realpath(output))  # what a link leads to is written, the link stays
        if output.exists() and not output.is_file():
            raise WriteError(f"{output}: cannot be written: it is no ordinary file")
        self.replies: dict[str, Reply] = {}
        self.failures: dict[str, AskError] = {}
        self.asked, self.over = 0, threading.Event()
        self._plan, self._model, self._lock = plan, model, threading.Lock()
        prompt = json.dumps(plan.prompt.parts)
        about = {
            "seed": plan.seed,
            "prompt": blake2b(prompt.encode(), digest_size=8).hexdigest(),
            **model.settings,
        }
        super().__init__(output, about, "replies", resume=resume)
        if self.state is not None:
            self.begin(self._go_on(), len(self.replies))
        elif resume and output.exists():
            raise WriteError(
                f"{output}: is complete; there is no stopped run to go on with. Without --resume"
                " everything is asked anew"
            )
        else:
            self.begin()
            try:
                self.save()
            except WriteError:
                self.discard()
                raise

    def _go_on(self) -> int:
        """Read the replies so far; gives the size of the file up to its last whole line."""
        size = number = 0
        try:
            with open(self.path, "rb") as file:
                for line in file:
                    number += 1
                    if not line.endswith(b"\n"):  # it was being written when the run ended
                        break
                    item = json.loads(line)
                    key, text = item["key"], item["reply"]
                    if not isinstance(key, str) or not isinstance(text, str):
                        raise TypeError("a key or a reply is no text")
                    self.replies[key] = Reply(text, cut=bool(item.get("cut")))
                    size += len(line)
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReadError(
                f"cannot go on with it: {error}", place=f"line {number}", source=str(self.path)
            ) from None
        return size

    @property
    def done(self) -> int:
        return len(self.replies) + len(self.failures)

    def blocks(self, workers: int) -> Iterator[tuple[list[Request]]]:
        """The requests without a reply, as many together as the model takes."""
        new = self._new()
        while batch := list(islice(new, self._model.batch)):
            self.asked += len(batch)
            yield (batch,)

    def _new(self) -> Iterator[Request]:
        """The requests without a reply; one that comes again is asked once."""
        given = set(self.replies)
        for _, requests in self._plan.requests():
            for request in requests:
                if request.key not in given:
                    given.add(request.key)
                    yield request

    def ask(self, batch: list[Request]) -> list[tuple[Request, AskError]]:
        """Ask the model and note what it replies; gives the requests that it does not reply to."""
        failed = []
        for request, reply in zip(batch, self._model.ask(batch, self.over), strict=True):
            if isinstance(reply, AskError):
                failed.append((request, reply))
                continue
            item = {"key": request.key, "reply": reply.text} | ({"cut": True} if reply.cut else {})
            with self._lock:
                self.append(json.dumps(item, ensure_ascii=False) + "\n", 1)
                self.replies[request.key] = reply
        return failed

    def take(self, block: BlockId, made: list[tuple[Request, AskError]]) -> None:
        """Note the requests without a reply; raises the error that stops the run."""
        for request, error in made:
            if error.always or not self._plan.keep_going:
                raise error
            self.failures[request.key] = error
