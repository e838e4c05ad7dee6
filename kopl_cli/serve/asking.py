"""Questions: those that wait together are one batch for the parser.

One thread has the network. It loads the run when the first question comes, or before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import NoneType
from typing import TYPE_CHECKING, Any

from kopl.drafts import Draft
from kopl_base.errors import KoplError
from kopl_base.packages import needs
from kopl_cli.common import torch_is_needed
from kopl_cli.serve.bases import Base, Playground, ServedRun
from kopl_cli.serve.programs import answer as answered
from kopl_cli.serve.programs import emptied
from kopl_cli.serve.routes import (
    LONGEST_QUESTION,
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

# Questions that the network reads at once: more are quicker in all, but the first wait longer.
TOGETHER = 16
# Answers that are kept for who asks the same again.
KEPT = 256
# The confidence from which an answer is sure, of a run that was not fitted for refusing.
SURE = 0.5

# Seconds that the last batch has for its end when the server stops.
LAST = 10.0


@dataclass
class _Asked:
    """A question that waits."""

    base: Base
    question: str
    top: int
    beams: int
    least: float | None
    future: Future[dict[str, Any]] = field(default_factory=Future)

    @property
    def options(self) -> tuple[Any, ...]:
        """What must be the same for questions that are asked together."""
        return self.base, self.top, self.beams, self.least

    @property
    def key(self) -> tuple[Any, ...]:
        """What must be the same for questions with the same answer."""
        return self.base.kb.fingerprint, self.question, self.top, self.beams, self.least


class Asker:
    """Asks the parser of the playground's run, for all requests."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self._waiting: deque[_Asked] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        # Whose parsers and answers are kept, by the fingerprint of the knowledge base.
        self._runs: dict[str, ServedRun] = {}
        self._parsers: dict[str, Parser | KoplError] = {}
        self._known: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()

    def submit(
        self, base: Base, question: str, *, top: int = 3, beams: int = 4, least: float | None = None
    ) -> Future[dict[str, Any]]:
        """The answer of ``/api/ask`` to a question, as a future.

        Raises BusyError where too many wait already, MissingPartError without a run, and KoplError
        for a question without words.
        """
        if (why := self.why_not(base)) is not None:
            _, says_how, command = why.rpartition("install it with: ")
            raise MissingPartError(
                why,
                to_try=command
                if says_how
                else "train a run: kopl train; or name one with --run RUN",
            )
        if not any(letter.isalnum() for letter in question):
            raise KoplError("the question is empty: it has no letter and no digit")
        asked = _Asked(base, question, top, beams, least)
        most = self.playground.limits.waiting
        with self._changed:
            if len(self._waiting) >= most or self.playground.closing.is_set():
                raise BusyError(f"{most} questions wait already", to_try="ask again in a moment")
            self._waiting.append(asked)
            self._begin()
            self._changed.notify()
        return asked.future

    def prepare(self, base: Base) -> None:
        """Load the run and ask it once in the background, so that the first answer is quick."""
        if self.why_not(base) is None:
            with self._changed:
                self._waiting.append(_Asked(base, "", 1, 1, None))
                self._begin()
                self._changed.notify()

    def why_not(self, base: Base) -> str | None:
        """Why questions cannot be asked of a knowledge base; None where they can."""
        run = self.playground.run_of(base)
        if run is None:
            return "there is no trained run to ask"
        if find_spec("torch") is None:
            return needs("asking", "torch", extra="train")
        mark = base.kb.fingerprint
        found = self._parsers.get(mark) if self._runs.get(mark) is run else None
        return str(found) if isinstance(found, KoplError) else None

    def is_loaded(self, base: Base) -> bool:
        """Whether the run is there, so that an answer is quick."""
        mark = base.kb.fingerprint
        known, run = self._parsers.get(mark), self._runs.get(mark)
        is_same = run is self.playground.run_of(base)
        return is_same and not isinstance(known, KoplError | NoneType)

    def close(self) -> None:
        """Let the thread end; what waits is told so."""
        with self._changed:
            left, self._waiting = self._waiting, deque()
            self._changed.notify()
        for asked in left:
            if asked.future.set_running_or_notify_cancel():
                asked.future.set_exception(BusyError("the server stops"))
        # A thread that is in the network when the interpreter goes would abort the process.
        if self._thread is not None:
            self._thread.join(LAST)

    # --- in the thread ------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="asker", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while batch := self._next():
            going = [one for one in batch if one.future.set_running_or_notify_cancel()]
            try:
                self._answer(going)
            except BaseException as error:  # whoever waits must hear of it
                for one in going:
                    if not one.future.done():
                        one.future.set_exception(error)

    def _next(self) -> list[_Asked]:
        """The questions that wait and may be asked together; none when the server stops."""
        with self._changed:
            while not self._waiting and not self.playground.closing.is_set():
                self._changed.wait()
            if self.playground.closing.is_set():
                return []
            options = self._waiting[0].options
            taken: list[_Asked] = []
            left: deque[_Asked] = deque()
            for one in self._waiting:
                fits = len(taken) < TOGETHER and one.options == options
                (taken if fits else left).append(one)
            self._waiting = left
            return taken

    def _answer(self, batch: list[_Asked]) -> None:
        if not batch:
            return
        first = batch[0]
        parser = self._parser(first.base)
        if not first.question:
            parser.prepare()
        new: dict[tuple[Any, ...], list[_Asked]] = {}
        for one in batch:
            if (known := self._known.get(one.key)) is not None:
                self._known.move_to_end(one.key)
                one.future.set_result(known)
            elif not one.question:  # only to load the run
                one.future.set_result({})
            else:
                new.setdefault(one.key, []).append(one)
        if not new:
            return
        asked = [same[0] for same in new.values()]
        questions = [one.question for one in asked]
        for one, found in zip(
            asked,
            parser.ask_many(
                questions, top=first.top, beams=first.beams, least_confidence=first.least
            ),
            strict=True,
        ):
            for same in new[one.key]:
                if isinstance(found, KoplError):
                    same.future.set_exception(found)
                elif same is one:
                    shown = self._known[one.key] = _told(found, one)
                    same.future.set_result(shown)
                else:
                    same.future.set_result(self._known[one.key])
            while len(self._known) > KEPT:
                self._known.popitem(last=False)

    def _parser(self, base: Base) -> Parser:
        """The run's parser on a knowledge base, loaded when it is first asked; raises KoplError."""
        run, mark = self.playground.run_of(base), base.kb.fingerprint
        if run is None:
            raise MissingPartError("there is no trained run to ask")
        if run is not self._runs.get(mark):
            self._runs[mark] = run
            self._parsers.pop(mark, None)
            for key in [key for key in self._known if key[0] == mark]:
                del self._known[key]
        if mark not in self._parsers:
            known = {one.kb.fingerprint for one in [*self.playground.bases.values()]}
            for other in self._parsers.keys() - known:
                del self._parsers[other]
            try:
                self._parsers[mark] = _load(run, base)
            except KoplError as error:
                self._parsers[mark] = MissingPartError(str(error))
        found = self._parsers[mark]
        if isinstance(found, KoplError):
            raise found
        return found


def _load(run: ServedRun, base: Base) -> Parser:
    with torch_is_needed():
        from parsers.parser import Parser

    is_new = run.fingerprint != base.kb.fingerprint
    return Parser.load(run.folder, base.kb, new_kb=is_new)


# --- what is told of answers ----------------------------------------------------------------------


def _told(answers: list[Answer], asked: _Asked) -> dict[str, Any]:
    why = None
    if answers and answers[0].program is not None and answers[0].result is not None:
        strings = answers[0].result.denotation
        if not strings or strings == ["0"]:
            why = emptied(asked.base, answers[0].program)
    return {
        "question": asked.question,
        "answers": [_shown(one, asked) for one in answers],
        "why_empty": why,
    }


def _shown(found: Answer, asked: _Asked) -> dict[str, Any]:
    from parsers.linking import unsaid

    base, program, said = asked.base, found.program, found.read_as or asked.question
    result, refused = found.result, found.refused
    confidence = round(float(found.confidence), 6)
    # A run that was fitted for it refuses what is not sure.
    is_sure = found.sure is not None or confidence >= SURE
    told_of: dict[str, Any] | None = None
    if result is not None:
        told_of = answered(base, found.answers, result.ms, getattr(result, "hints", ()))
    return {
        "program": None if program is None else Draft.of(program).view(),
        "text": found.prediction.text,
        "answer": told_of,
        "error": None if found.error is None else told(found.error)[1]["error"],
        "confidence": confidence,
        "calibrated": found.is_calibrated,
        "sure": refused is None and found.error is None and is_sure,
        "refused": None
        if refused is None
        else {"kind": refused.kind, "message": refused.message, "near": [*refused.near]},
        "unsaid": [] if program is None else unsaid(program, said, base.kb),
        "unnamed": [*found.unnamed],
        "form": None if found.form is None else found.form.to_json(),
        "read_as": found.read_as,
    }


def teller(playground: Playground, base: Base) -> dict[str, Any]:
    """What ``/api/info`` says of asking."""
    asker = playground.part(Asker)
    why = asker.why_not(base)
    shown: dict[str, Any] = {"can": {"ask": {"yes": why is None, "why": why}}}
    run = playground.run_of(base)
    if run is not None:
        shown["run"] = {
            "loaded": asker.is_loaded(base),
            "moved": run.fingerprint != base.kb.fingerprint,
        }
    return shown


def _ask(playground: Playground, given: dict[str, Any]) -> Future[dict[str, Any]]:
    base = playground.base(given["kb"])
    options = {name: given[name] for name in ("top", "beams", "least")}
    return playground.part(Asker).submit(base, given["question"], **options)


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
