"""Questions: those that wait together are one batch for the parser.

One thread has the network. It loads the run when the first question comes, or before.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kopl.drafts import Draft
from kopl_base.errors import KoplError
from kopl_base.packages import needs
from kopl_cli.serve.bases import Base, Playground, ServedRun
from kopl_cli.serve.programs import answer as answered
from kopl_cli.serve.routes import (
    MAYBE,
    OBJECT,
    TEXT,
    BusyError,
    Field,
    MissingPartError,
    Route,
    listed,
    record,
    told,
)

if TYPE_CHECKING:
    from parsers.parser import Answer, Parser

LONGEST_QUESTION = 2000


@dataclass
class _Asked:
    """A question that waits."""

    base: Base
    question: str
    top: int
    beams: int
    least: float | None
    future: Future[dict[str, Any]] = field(default_factory=Future)


class Asker:
    """Asks the parser of the playground's run, for all requests."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self.failed: str | None = None
        self._waiting: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._count = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._parsers: dict[str, tuple[ServedRun, Parser]] = {}

    def submit(self, base: Base, question: str, **options: Any) -> Future[dict[str, Any]]:
        """The answer of ``/api/ask`` to a question, as a future.

        Raises BusyError where too many wait already, and MissingPartError without a run.
        """
        if self.playground.run is None:
            raise MissingPartError(
                "there is no trained run to ask", to_try="train one: kopl train; then --run RUN"
            )
        if find_spec("torch") is None:
            raise MissingPartError(needs("asking", "torch", extra="train"))
        most = self.playground.limits.waiting
        with self._lock:
            if self._count >= most:
                raise BusyError(f"{most} questions wait already", to_try="ask again in a moment")
            self._count += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="asker", daemon=True)
                self._thread.start()
        asked = _Asked(base, question, **options)
        self._waiting.put(asked)
        return asked.future

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            with self._lock:
                self._count -= 1
            if not first.future.set_running_or_notify_cancel():
                continue
            try:
                first.future.set_result(self._ask(first))
            except BaseException as error:  # whoever waits must hear of it
                first.future.set_exception(error)

    def _ask(self, asked: _Asked) -> dict[str, Any]:
        parser = self.parser(asked.base)
        answers = parser.ask(
            asked.question, top=asked.top, beams=asked.beams, least_confidence=asked.least
        )
        return {
            "question": asked.question,
            "answers": [_shown(one, asked) for one in answers],
            "why_empty": None,
        }

    def parser(self, base: Base) -> Parser:
        """The run's parser on a knowledge base, loaded when it is first asked."""
        from parsers.parser import Parser

        run = self.playground.run
        assert run is not None
        known = self._parsers.get(base.id)
        if known is None or known[0] is not run:
            is_new = run.fingerprint != base.kb.fingerprint
            parser = Parser.load(run.folder, base.kb, new_kb=is_new)
            self._parsers[base.id] = known = run, parser
        return known[1]

    def close(self) -> None:
        """Let the thread end."""
        self._waiting.put(None)


def _shown(found: Answer, asked: _Asked) -> dict[str, Any]:
    from parsers.linking import unsaid

    base, program, said = asked.base, found.program, found.read_as or asked.question
    result, refused = found.result, found.refused
    return {
        "program": None if program is None else Draft.of(program).view(),
        "text": found.prediction.text,
        "answer": None
        if result is None
        else answered(base, [*found.answers], result.ms, getattr(result, "hints", [])),
        "error": None if found.error is None else told(found.error)[1]["error"],
        "confidence": round(float(found.confidence), 6),
        "sure": refused is None and found.error is None,
        "refused": None
        if refused is None
        else {"kind": refused.kind, "message": refused.message, "said": [*refused.near]},
        "unsaid": [] if program is None else unsaid(program, said, base.kb),
        "read_as": found.read_as,
    }


def _ask(playground: Playground, given: dict[str, Any]) -> Future[dict[str, Any]]:
    base = playground.base(given["kb"])
    question = given["question"]
    if not any(letter.isalnum() for letter in question):
        raise KoplError("the question is empty: it has no letter and no digit")
    options = {name: given[name] for name in ("top", "beams", "least")}
    return playground.part(Asker).submit(base, question, **options)


ROUTES = [
    Route(
        "POST",
        "/api/ask",
        "Ask the trained run a question.",
        _ask,
        (
            Field("question", "text", "the question", True, most=LONGEST_QUESTION),
            Field("top", "integer", "programs that come back", default=3, least=1, most=20),
            Field("beams", "integer", "programs that are considered", default=4, least=1, most=32),
            Field("least", "number", "refuse what is less sure", least=0, most=1),
        ),
        record(question=TEXT, answers=listed(OBJECT), why_empty=MAYBE),
    ),
]
