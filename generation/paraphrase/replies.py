"""Replies of a model to many requests: several at a time, and going on after a stop.

They are noted in ``FILE.part`` as they come, with their requests' keys, and what they depend on in
``FILE.part.json``, so that what is made of them at the end depends on the replies alone.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from generation.paraphrase.model import Model, Reply, Request
from kopl_base.chat import AskError
from kopl_base.errors import ReadError, WriteError
from kopl_base.progress import Progress
from kopl_base.runs import BlockId, as_they_come, work
from kopl_base.unfinished import Unfinished

log = logging.getLogger("kb")


class Asking(Protocol):
    """What is asked of a model. ``keep_going``: a request without a reply does not stop the run."""

    @property
    def keep_going(self) -> bool: ...

    def about(self) -> Mapping[str, Any]:
        """What the replies depend on, besides the model; all of it can be written as JSON."""
        ...

    def every(self) -> Iterator[Request]:
        """Every request, the same ones in the same order each time."""
        ...


def ask_all(plan: Asking, model: Model, output: Path, *, resume: bool) -> Replies:
    """The replies to all that is asked; those of a stopped run are not asked for again.

    Whoever makes ``output`` of them discards them then. Raises AskError when a reply cannot be had,
    ReadError for a stopped run that does not fit, WriteError for a file that cannot be written;
    replies that came stay in ``FILE.part`` then.
    """
    # Read to its end before anything is asked: a malformed line should not come after hours.
    total = sum(1 for _ in plan.every())
    job = Replies(output, plan, model, resume=resume)
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
    return job


class Replies(Unfinished):
    """The replies so far, in memory and in a file; ``failures`` are those that could not be had.

    ``asked`` are asked for now; ``over`` is set when no more are wanted.
    """

    failure = AskError

    def __init__(self, output: Path, plan: Asking, model: Model, *, resume: bool) -> None:
        output = Path(os.path.realpath(output))  # what a link leads to is written, the link stays
        if output.exists() and not output.is_file():
            raise WriteError(f"{output}: cannot be written: it is no ordinary file")
        self.replies: dict[str, Reply] = {}
        self.failures: dict[str, AskError] = {}
        self.asked, self.over = 0, threading.Event()
        self._plan, self._model, self._lock = plan, model, threading.Lock()
        about = {**plan.about(), **model.settings}
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
        for request in self._plan.every():
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

    def settle(self) -> None:
        """Discard what was noted, once all is made of it; it stays while replies are missing."""
        if not self.failures:
            self.discard()
            return
        log.warning(
            "%d replies could not be had (%s); --resume asks for them again",
            len(self.failures),
            next(iter(self.failures.values())),
        )
