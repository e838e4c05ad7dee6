"""The queue: questions that people judge one after the other, the least confident first.

The parser is asked in the background. An item is judged once there is a correction of its question,
by whomever: the file of corrections says so, nothing else, so that no verdict can be lost and a
server that is started again knows them all. Readers who ask at the same time get different items
first.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kopl.example import read_questions
from kopl_base.errors import KoplError
from kopl_base.stream import writing
from kopl_cli.serve.asking import Asker
from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.children import Child
from kopl_cli.serve.correcting import Corrections
from kopl_cli.serve.routes import (
    LONGEST_QUESTION,
    OBJECT,
    TRUTH,
    WHOLE,
    BusyError,
    Field,
    MissingPartError,
    Reply,
    RequestError,
    Route,
    listed,
    record,
    told,
)
from parsers.corrections import id_of

# Questions of a queue, those that are generated at once, and the bytes of a file of them.
MOST, GENERATED, BODY = 5000, 1000, 2 << 20
# Seconds that an item is kept for the reader who got it.
LEASE = 120.0
# Answered questions after which the file is written again.
OFTEN = 100
# How many seconds to wait where the parser has too much to do.
BUSY = 0.5


class Queue:
    """The questions of a knowledge base, with what the parser says of each."""

    def __init__(self, playground: Playground, base: Base) -> None:
        self.playground, self.base = playground, base
        self.file = playground.folder / "queue" / f"{base.kb.fingerprint[:16]}.json"
        self._lock = threading.RLock()
        self._asked_of = ""  # the run whose answers these are
        self._items: dict[str, dict[str, Any]] = {one["id"]: one for one in self._read()}
        self._leases: dict[str, tuple[str, float]] = {}
        self._thread: threading.Thread | None = None
        self._making: threading.Thread | None = None
        self._child: Child | None = None
        self._failed: str | None = None

    def _read(self) -> list[dict[str, Any]]:
        try:
            noted = json.loads(self.file.read_text("utf-8"))
            self._asked_of = str(noted["asked"])
            return [
                {"id": id_of(one["question"]), "question": one["question"],
                 "answer": one["answer"], "confidence": one["confidence"]}
                for one in noted["items"]
            ]  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _write(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, writing(self.file) as file:
            noted = {"asked": self._asked_of, "items": [*self._items.values()]}
            json.dump(noted, file, ensure_ascii=False)

    # --- questions come --------------------------------------------------------------------------

    def add(self, questions: Iterable[str]) -> int:
        """Add questions that are not there yet, and ask the parser; gives how many they were.

        Raises RequestError where there would be too many.
        """
        new = {}
        for question in questions:
            text = " ".join(question.split())
            if any(letter.isalnum() for letter in text):
                id = id_of(text)
                new[id] = {"id": id, "question": text, "answer": None, "confidence": None}
        with self._lock:
            new = {id: one for id, one in new.items() if id not in self._items}
            if len(self._items) + len(new) > MOST:
                raise RequestError(
                    f"a queue holds {MOST:,} questions; there are {len(self._items):,}, and"
                    f" {len(new):,} were to be added", field="questions", status=413,
                    to_try="empty it first, or send fewer",
                )  # fmt: skip
            before = dict(self._items)
            self._items |= new
            try:
                self._write()
            except BaseException:
                self._items = before  # what was not kept is not there
                raise
        self.ask()
        return len(new)

    def generate(self, count: int, seed: int) -> None:
        """Make questions over the knowledge base in the background, then add them.

        Raises BusyError while that is done, RequestError where it lies in no file.
        """
        with self._lock:
            if self._child is not None:
                raise BusyError("questions are being made already", status=409)
            if self.base.place is None:
                raise RequestError(f"{self.base.name} lies in no file", field="kb")
            folder = self.file.with_suffix("")
            for old in folder.glob("made.jsonl*"):
                old.unlink()
            made = (folder / "made.jsonl").resolve()
            self._failed = None
            self._child = Child(
                folder,
                ["generate", "--kb", self.base.place, "-n", str(count), "-s", str(seed), "-q",
                 "--profile", "people", "--no-sparql", "--workers", "1", "-o", str(made)],
            )  # fmt: skip
            self._making = threading.Thread(
                target=self._take, args=(self._child, made), daemon=True, name="questions"
            )
            self._making.start()

    def _take(self, child: Child, made: Path) -> None:
        status = child.process.wait()
        child.close()
        try:
            if status == 0:
                self.add(one.question for one in read_questions(made))
            elif not self.playground.closing.is_set():
                self._failed = child.said() or f"it ended with status {status}"
        except KoplError as error:
            self._failed = str(error)
        finally:
            with self._lock:
                self._child = None

    def empty(self) -> None:
        """Forget all questions; what was said of them stays."""
        with self._lock:
            self._items.clear()
            self._leases.clear()
            self._write()

    # --- the parser is asked ---------------------------------------------------------------------

    def ask(self) -> None:
        """Ask the parser in the background what it was not asked yet, where there is one.

        Another run than before is asked everything that nobody has judged.
        """
        run = self.playground.run_of(self.base)
        if run is None:
            return
        judged = self._judged()
        with self._lock:
            if self._thread is not None:
                return
            if self._asked_of != (mark := str(run.folder.resolve())):
                self._asked_of = mark
                for id, one in self._items.items():
                    if id not in judged:
                        one["answer"] = one["confidence"] = None
            if not self._open():
                return
            self._thread = threading.Thread(target=self._asking, daemon=True, name="queue")
            self._thread.start()

    def _open(self) -> list[dict[str, Any]]:
        return [one for one in self._items.values() if one["answer"] is None]

    def _asking(self) -> None:
        count = 0
        try:
            while not self.playground.closing.is_set():
                with self._lock:
                    waiting = self._open()
                    if not waiting:
                        return
                item = waiting[0]
                answer = self._answer(item["question"])
                if answer is None:
                    return
                best = answer["answers"][:1]
                with self._lock:
                    item["answer"] = answer
                    item["confidence"] = best[0]["confidence"] if best else 0.0
                    count += 1
                    if count % OFTEN == 0:
                        self._write()
        finally:
            with self._lock:
                self._thread = None
                if count:
                    self._write()

    def _answer(self, question: str) -> dict[str, Any] | None:
        """What the parser says; None where it cannot be asked."""
        asker = self.playground.part(Asker)
        while not self.playground.closing.is_set():
            try:
                return asker.submit(self.base, question, top=1, beams=4, least=None).result()
            except BusyError:  # people come first
                time.sleep(BUSY)
            except MissingPartError as error:
                self._failed = str(error)
                return None
            except KoplError as error:
                said: dict[str, Any] = {"question": question, "answers": [], "why_empty": None}
                return said | told(error)[1]
        return None

    # --- people judge ----------------------------------------------------------------------------

    def _judged(self) -> dict[str, tuple[str, str]]:
        """Verdict and author by the id of the question."""
        newest = self.playground.part(Corrections).newest(self.base)
        return {one.id: (one.verdict, one.author) for one in newest}

    def waiting(self) -> list[dict[str, Any]]:
        """The items that nobody has judged, the least confident first."""
        judged = self._judged()
        with self._lock:
            found = [one for one in self._items.values() if one["id"] not in judged]
        return sorted(found, key=_order)

    def told(self, limit: int, reader: str | None, *, all: bool = False) -> dict[str, Any]:
        """The items to judge next, for a reader, and how far the queue is."""
        self.ask()
        judged = self._judged()
        with self._lock:
            items = [*self._items.values()]
            asking = len(self._open()) if self._thread is not None else 0
            generating, failed = self._child is not None, self._failed
            stage = self._child.stage() if self._child is not None else None
        shown = sorted(
            (one for one in items if all or one["id"] not in judged),
            key=lambda one: (one["id"] in judged, self._is_others(one["id"], reader), _order(one)),
        )[:limit]
        if reader is not None:
            self._lease([one["id"] for one in shown if one["id"] not in judged], reader)
        return {
            "items": [_shown(one, judged.get(one["id"])) for one in shown],
            "count": len(items),
            "left": sum(one["id"] not in judged for one in items),
            "asking": asking,
            "generating": generating,
            "done": None if stage is None else round(stage.share, 4),
            "message": failed,
        }

    def _is_others(self, id: str, reader: str | None) -> bool:
        """Whether another reader got an item a moment ago."""
        who, until = self._leases.get(id, ("", 0.0))
        return who != (reader or "") and until > time.monotonic()

    def _lease(self, ids: Sequence[str], reader: str) -> None:
        with self._lock:
            now = time.monotonic()
            self._leases = {
                id: (who, until) for id, (who, until) in self._leases.items()
                if until > now and who != reader
            }  # fmt: skip
            for id in ids:
                self._leases.setdefault(id, (reader, now + LEASE))

    def close(self) -> None:
        """Stop what is made; what was asked is written."""
        child, thread = self._child, self._thread
        if child is not None:
            child.end(2.0)
        if thread is not None:
            thread.join(2.0)


def _order(item: dict[str, Any]) -> tuple[bool, float, str]:
    """The least confident first, those not asked yet last; of equals the same order always."""
    confidence = item["confidence"]
    mixed = hashlib.sha256(item["id"].encode()).hexdigest()
    return confidence is None, confidence or 0.0, mixed


def _shown(item: dict[str, Any], judged: tuple[str, str] | None) -> dict[str, Any]:
    verdict, by = judged or (None, None)
    return {**item, "judged": verdict, "by": by}


class Queues:
    """The queues of a playground, one for each knowledge base."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self._lock = threading.Lock()
        self._queues: dict[str, Queue] = {}

    def of(self, base: Base) -> Queue:
        """That of a knowledge base."""
        with self._lock:
            found = self._queues.get(base.id)
            if found is None or found.base is not base:
                self._queues[base.id] = found = Queue(self.playground, base)
            return found

    def close(self) -> None:
        """Stop what runs."""
        for queue in self._queues.values():
            queue.close()


def _post(playground: Playground, given: dict[str, Any]) -> Reply:
    queue = playground.part(Queues).of(playground.base(given["kb"]))
    questions, count = given["questions"], given["generate"]
    if (questions is None) == (count is None):
        raise RequestError("give either questions, or how many to generate", field="questions")
    if questions is not None:
        for number, one in enumerate(questions, 1):
            if not isinstance(one, str) or len(one) > LONGEST_QUESTION:
                raise RequestError(
                    f"questions: number {number} is no text of up to {LONGEST_QUESTION} characters",
                    field="questions",
                )
        queue.add(questions)
    else:
        queue.generate(count, given["seed"])
    found = queue.told(given["limit"], given["reader"])
    return Reply(found, 202 if found["asking"] or found["generating"] else 200)


def _get(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    queue = playground.part(Queues).of(playground.base(given["kb"]))
    return queue.told(given["limit"], given["reader"], all=given["all"])


def _delete(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    queue = playground.part(Queues).of(playground.base(given["kb"]))
    queue.empty()
    return queue.told(1, None)


_LIMIT = Field("limit", "integer", "how many items", default=20, least=1, most=200)
_READER = Field("reader", "text", "who reads: others get other items first", most=100)
_ANSWER = record(items=listed(OBJECT), count=WHOLE, left=WHOLE, asking=WHOLE, generating=TRUTH)

ROUTES = [
    Route(
        "GET", "/api/queue", "The questions to judge next, the least confident first.", _get,
        (_LIMIT, _READER, Field("all", "truth", "those that are judged, too", default=False)),
        _ANSWER,
    ),
    Route(
        "POST", "/api/queue", "Add questions to the queue, or have some generated.", _post,
        (
            Field("questions", "list", "the questions", least=1, most=MOST),
            Field("generate", "integer", "how many to make", least=1, most=GENERATED),
            Field("seed", "integer", "other numbers give other questions", default=0, least=0),
            _LIMIT, _READER,
        ),
        _ANSWER, body=BODY,
    ),
    Route("DELETE", "/api/queue", "Empty the queue; what was said stays.", _delete, (), _ANSWER),
]  # fmt: skip
