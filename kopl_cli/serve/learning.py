"""Learning on the page: a training in its own process, one at a time, kept or thrown away.

A *lesson* is ``kopl learn`` on the run that is asked, a first training ``kopl train``. Both write a
new run below the playground's folder; no run is changed. What is under way is noted there, so that
a server which is started again offers what another one left unfinished.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kopl_base.errors import KoplError
from kopl_base.packages import needs
from kopl_base.stream import writing
from kopl_cli.common import TRAIN_PACKAGES, free_folder
from kopl_cli.last_run import PARTS
from kopl_cli.serve.bases import Base, Playground, ServedRun
from kopl_cli.serve.children import Child, HeldError, Stage, is_held
from kopl_cli.serve.correcting import Corrections, carry
from kopl_cli.serve.reports import of_first, of_lesson
from kopl_cli.serve.routes import (
    MAYBE,
    OBJECT,
    BusyError,
    Event,
    Events,
    Field,
    MissingPartError,
    RequestError,
    Route,
    record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# What is asked for of a training over a knowledge base of one's own: more would be the same again.
OWN_QUESTIONS, OWN_EPOCHS = 8000, 8
# The epochs of one that goes on from a run, which knows the words already.
BEGUN_EPOCHS = 6
# How long a training has to save itself when the server ends, in seconds.
FAREWELL = 20.0
# What stands before the fingerprint of a knowledge base whose first training was kept.
OF_KB = "kb:"

# The pieces of the work by the titles of their progress, with their shares of the time.
STAGES: dict[str, dict[str, float]] = {
    "default": {
        "generating questions": 0.25, "reading questions": 0.05, "epoch": 0.55, "calibrating": 0.05,
        "evaluating": 0.05, "calibrating refusals": 0.05,
    },
    "lesson": {
        "preparing the lesson": 0.1, "reading questions": 0.05, "epoch": 0.55, "calibrating": 0.1,
        "asking before and after": 0.2,
    },
}  # fmt: skip
SAID = {
    "preparing the lesson": "making questions like the corrected ones",
    "generating questions": "making questions", "reading questions": "reading questions",
    "epoch": "training", "evaluating": "asking questions that it did not learn",
    "calibrating": "finding out how sure it is", "calibrating refusals": "learning when to refuse",
    "asking before and after": "asking before and after",
}  # fmt: skip
_EPOCH = re.compile(r"epoch (\d+)/(\d+)")


@dataclass
class Training:
    """A training: its new ``run``, and the ``old`` one that it goes on from."""

    id: str
    what: str
    kb: str
    run: str
    old: str | None = None
    state: str = "running"
    stage: str = "beginning"
    done: float = 0.0
    message: str = ""
    report: dict[str, Any] | None = None
    kept: bool | None = None
    seconds: float = 0.0

    @property
    def resumable(self) -> bool:
        """Whether it ended early and can be gone on with."""
        mark = "learned.json" if self.what == "lesson" else "resume.pt"
        ended = self.state in ("stopped", "unfinished", "failed")
        return ended and self.kept is None and (Path(self.run) / mark).is_file()

    @property
    def waits(self) -> bool:
        """Whether somebody has to say what becomes of it."""
        return self.state != "running" and self.kept is None and Path(self.run).is_dir()

    @property
    def outcome(self) -> str:
        """What is left of one that ended early, in words."""
        return "it can be gone on with" if self.resumable else "nothing was learnt yet"

    def told(self) -> dict[str, Any]:
        """What the page shows of it."""
        left = None
        if self.state == "running" and self.done > 0.03:
            left = round(self.seconds * (1 - self.done) / self.done)
        shown = {**asdict(self), "run": Path(self.run).name, "folder": self.run}
        shown |= {"done": round(self.done, 4), "seconds": round(self.seconds, 1), "left": left}
        return shown | {"resumable": self.resumable, "waits": self.waits}


class Learning:
    """The training of a playground, if there is one.

    ``options`` are more arguments for the two commands, before those of a request.
    """

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self.folder = playground.folder
        self.options: dict[str, Sequence[str]] = {"default": (), "lesson": ()}
        self._changed = threading.Condition(threading.RLock())
        self._child: Child | None = None
        self._watch: threading.Thread | None = None
        self._begin = 0.0
        self._closing = self._stopping = False
        self.job = self._read_job()

    # --- what is noted ---------------------------------------------------------------------------

    @property
    def _noted(self) -> Path:
        return self.folder / "learning.json"

    @property
    def _lock(self) -> Path:
        return self.folder / "learning.lock"

    def _read_job(self) -> Training | None:
        """The training that another server noted; one that ran is unfinished now."""
        try:
            noted = json.loads(self._noted.read_text("utf-8"))
            job = Training(**{one.name: noted[one.name] for one in fields(Training)})
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if job.state == "running":
            job.state = "unfinished"
            job.message = f"the server ended while it trained; {job.outcome}"
        return job if Path(job.run).is_dir() else None

    def _note(self) -> None:
        """Write what is known of the training; call it under the lock."""
        if self.job is None:
            self._noted.unlink(missing_ok=True)
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            with writing(self._noted) as file:
                json.dump(asdict(self.job), file, ensure_ascii=False)
        self._changed.notify_all()

    def begun(self) -> None:
        """Let the runs be asked that were kept, in place of those that they went on from."""
        kept, playground = self._read_kept(), self.playground
        with playground.alone():
            for name, place in kept.items():
                if name.startswith(OF_KB) and (run := _followed(_run_at(place), kept)) is not None:
                    playground.trained[name.removeprefix(OF_KB)] = run
            first = playground.base(None).kb.fingerprint
            playground.run = _followed(playground.run, kept) or playground.trained.get(first)

    def _read_kept(self) -> dict[str, str]:
        """The runs that were kept, by the one that each went on from, or by knowledge base."""
        try:
            found = json.loads((self.folder / "kept.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    # --- beginning -------------------------------------------------------------------------------

    def possible(self) -> str | None:
        """Why nothing can be trained here; None where it can."""
        missing = [one for one in TRAIN_PACKAGES if find_spec(one) is None]
        return needs("training", *missing, extra="train") if missing else None

    def start(self, what: str, base: Base, settings: Mapping[str, Any]) -> Training:
        """Begin a training, or go on with the one that ended early (``resume``).

        Raises MissingPartError, BusyError where one runs or waits to be kept, RequestError.
        """
        if (why := self.possible()) is not None:
            raise MissingPartError(why, to_try=why.rpartition(": ")[2])
        with self._changed:
            self._check_free()
            if what == "resume":
                job, command = self._resumed()
            else:
                job, command = self._new(what, base, settings)
            try:
                self._child = Child(self.folder / "learning", command, lock=self._lock)
            except HeldError:
                raise _busy("another training runs in this folder, or is about to end") from None
            job.state, job.stage, job.message = "running", "beginning", ""
            self.job, self._stopping, self._begin = job, False, time.monotonic() - job.seconds
            Path(job.run).mkdir(parents=True, exist_ok=True)
            self._note()
            self._watch = threading.Thread(
                target=self._until_end, args=(job, self._child), daemon=True, name="learning"
            )
            self._watch.start()
            return job

    def _check_free(self) -> None:
        if self._child is not None:
            raise _busy("a training runs already")
        if is_held(self._lock_file()):
            raise _busy("another training runs in this folder, or is about to end")

    def _lock_file(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self._lock

    def _resumed(self) -> tuple[Training, list[str]]:
        job = self.job
        if job is None or not job.resumable:
            raise RequestError("there is no training to go on with", status=404, field="what")
        if job.what == "lesson":
            return job, ["learn", "--resume", job.run, "--json"]
        return job, ["train", "--resume", job.run]

    def _new(
        self, what: str, base: Base, settings: Mapping[str, Any]
    ) -> tuple[Training, list[str]]:
        if self.job is not None and self.job.waits:
            if self.job.state == "done":
                raise RequestError(
                    f"{Path(self.job.run).name} waits: keep it or throw it away first", status=409,
                    field="what",
                )  # fmt: skip
            self._throw_away(self.job)  # it ended early, and is not gone on with
        making = self._lesson if what == "lesson" else self._first
        old, command = making(base, settings)
        name = f"{what if what == 'lesson' else base.id}-1"
        new = free_folder(self.folder.resolve() / "runs" / name)
        job = Training(uuid4().hex[:12], what, base.id, str(new), old)
        if what == "lesson":
            return job, [*command, "-o", str(new), "--json"]
        return job, [*command, "--set", f"output={new}"]

    def _lesson(self, base: Base, settings: Mapping[str, Any]) -> tuple[str, list[str]]:
        run = self.playground.run_of(base)
        if run is None:
            raise RequestError(
                "there is no trained run that could learn", status=404,
                to_try="train the first one: {\"what\": \"default\"}",
            )  # fmt: skip
        if run.fingerprint != base.kb.fingerprint:
            raise RequestError(
                f"{run.folder.name} was trained on another knowledge base than {base.name}",
                field="kb", to_try="train a run for this one first: {\"what\": \"default\"}",
            )  # fmt: skip
        corrections = self.playground.part(Corrections)
        file = corrections.file(base)
        if not corrections.taught(base):
            raise RequestError(
                "there are no corrections to learn from", field="what",
                to_try="correct an answer first",
            )  # fmt: skip
        command = ["learn", "--run", str(run.folder), "--corrections", str(file)]
        if base.place is not None:
            command += ["--kb", base.place]
        return str(run.folder), [*command, *self.options["lesson"], *_chosen(LESSON, settings)]

    def _first(self, base: Base, settings: Mapping[str, Any]) -> tuple[str | None, list[str]]:
        if base.place is None:
            raise RequestError(f"{base.name} lies in no file that could be trained on", field="kb")
        command = ["train", "--set", f"kb={base.place}"]
        old, config = self.playground.run_of(base), self.playground.config
        if config is not None:
            command += ["--config", config]
        elif base.place != "world":
            # What docs/own-kb.md tells: from a run over another one, which knows English already.
            goes_on = old is not None and old.model == "pointer"
            epochs = BEGUN_EPOCHS if goes_on else OWN_EPOCHS
            command += ["--set", f"questions={OWN_QUESTIONS}", "--set", f"epochs={epochs}"]
            if goes_on and old is not None:
                command += ["--set", f"start_from={old.folder.resolve()}"]
        return None, [*command, *self.options["default"], *_chosen(FIRST, settings)]

    # --- while it runs ---------------------------------------------------------------------------

    def told(self) -> dict[str, Any] | None:
        """The training as it is now."""
        with self._changed:
            job, child = self.job, self._child
            if job is None or job.kept is False:
                return None
            if child is not None:
                job.seconds = time.monotonic() - self._begin
                self._look(job, child.stage())
            return job.told()

    def _look(self, job: Training, stage: Stage | None) -> None:
        if stage is None:
            return
        passed = 0.0
        for title, share in STAGES[job.what].items():
            if stage.title.startswith(title):
                job.stage = SAID[title]
                part = stage.share
                if epoch := _EPOCH.match(stage.title):
                    number, of = map(int, epoch.groups())
                    part = (number - 1 + part) / of
                    job.stage = f"training, round {number} of {of}"
                job.done = max(job.done, min(0.99, passed + share * part))
            passed += share

    def events(self) -> Iterator[Event | None]:
        """What happens to the training, until it has ended."""
        last: dict[str, Any] | None = None
        while (now := self.told()) is not None:
            running = now["state"] == "running"
            if now != last:
                last = now
                yield Event("progress" if running else _event_of(now["state"]), now)
            else:
                yield None
            if not running:
                return
            with self._changed:
                if self._child is not None:
                    self._changed.wait(1.0)

    def stop(self) -> Training:
        """Ask the training to end; it saves what it has. Raises RequestError where none runs."""
        with self._changed:
            if self.job is None or self._child is None:
                raise RequestError("no training runs", status=404)
            self._stopping = True
            self.job.message = "it stops as soon as it has saved what it has"
            self._child.stop()
            self._note()
            return self.job

    def _until_end(self, job: Training, child: Child) -> None:
        status = child.process.wait()
        child.close()
        with self._changed:
            self._look(job, child.stage())
            self._child = None
            job.seconds = time.monotonic() - self._begin
            try:
                self._ended(job, child, status)
            except (KoplError, OSError, KeyError, TypeError, ValueError) as error:
                job.state, job.message = "failed", f"its report cannot be read: {error}"
            self._note()

    def _ended(self, job: Training, child: Child, status: int) -> None:
        if status == 0:
            folder = Path(job.run)
            is_lesson = job.what == "lesson"
            job.report = of_lesson(folder, child.result()) if is_lesson else of_first(folder)
            job.state, job.stage, job.done, job.message = "done", "done", 1.0, ""
        elif status in (130, 143) or self._closing or self._stopping:
            job.state = "unfinished" if self._closing else "stopped"
            job.message = job.outcome
        elif status < 0:
            job.state = "failed"
            job.message = f"it was ended from outside (signal {-status}); was memory short?"
        else:
            job.state, job.message = "failed", child.said() or f"it ended with status {status}"

    # --- afterwards ------------------------------------------------------------------------------

    def keep(self, kept: bool) -> Training:
        """Let the new run be asked from now on, or throw it away.

        Raises RequestError where there is none, or none that could be asked; BusyError.
        """
        with self._changed:
            self._check_free()
            job = self.job
            if job is None or not job.waits:
                raise RequestError("there is no new run to keep or to throw away", status=404)
            if kept:
                self._keep(job)
            else:
                self._throw_away(job)
            self._note()
            return job

    def _keep(self, job: Training) -> None:
        if job.state != "done":
            raise RequestError(
                "the training has not ended; go on with it, or throw it away", status=409
            )
        run, corrections = ServedRun.of(Path(job.run)), self.playground.part(Corrections)
        playground, noted = self.playground, self._read_kept()
        with playground.alone():
            base = playground.base(job.kb)
            before, old = corrections.file(base), playground.run_of(base)
            if old is not None and old.fingerprint == run.fingerprint:
                noted[str(old.folder.resolve())] = job.run
            if job.old is None:
                noted[f"{OF_KB}{run.fingerprint}"] = job.run
            with writing(self.folder / "kept.json") as file:
                json.dump(noted, file, ensure_ascii=False, indent=1)
            usual = playground.run
            if usual is None or usual.fingerprint == run.fingerprint:
                playground.run = run
            else:
                playground.trained[run.fingerprint] = run
            carry(before, corrections.file(base))
        job.kept = True

    def _throw_away(self, job: Training) -> None:
        # Nothing but what lies among the playground's own runs is ever removed.
        folder = Path(job.run)
        if folder.parent == self.folder.resolve() / "runs":
            shutil.rmtree(folder, ignore_errors=True)
        job.kept, job.message = False, "it was thrown away"

    def close(self) -> None:
        """End the training, which saves what it has."""
        self._closing = True
        child, watch = self._child, self._watch
        if child is not None:
            child.stop()
            if child.ended(FAREWELL) is None:
                child.process.kill()
        if watch is not None:
            watch.join()


def _busy(message: str) -> BusyError:
    return BusyError(message, status=409, to_try="wait for its end, or stop it")


def _event_of(state: str) -> str:
    return state if state in ("done", "failed") else "stopped"


def _run_at(place: str | None) -> ServedRun | None:
    if place is None or not all((Path(place) / part).is_file() for part in PARTS):
        return None
    return ServedRun.of(Path(place))


def _followed(run: ServedRun | None, kept: Mapping[str, str]) -> ServedRun | None:
    """The run that was kept last of those that went on from one."""
    passed = set()
    while run is not None and (place := str(run.folder.resolve())) not in passed:
        passed.add(place)
        run = _run_at(kept.get(place)) or run
    return run


# --- the routes -----------------------------------------------------------------------------------

# What a request may say of a training: the largest number, and how the command is told.
_Setting = tuple[float, "Callable[[str], list[str]]"]


def _set(name: str) -> Callable[[str], list[str]]:
    return lambda value: ["--set", f"{name}={value}"]


def _option(name: str) -> Callable[[str], list[str]]:
    return lambda value: [name, value]


FIRST: dict[str, _Setting] = {
    "questions": (1_000_000, _set("questions")), "epochs": (100, _set("epochs")),
    "minutes": (24 * 60, _set("minutes")), "seed": (2**31, _set("seed")),
}  # fmt: skip
LESSON: dict[str, _Setting] = {
    "epochs": (100, _set("epochs")), "each": (1000, _option("--each")),
    "replay": (1_000_000, _option("--replay")), "held_out": (10_000, _option("--held-out")),
}  # fmt: skip


def _chosen(allowed: Mapping[str, _Setting], settings: Mapping[str, Any]) -> list[str]:
    """The arguments for what a request says of a training; raises RequestError."""
    found = []
    for name, value in settings.items():
        if name not in allowed:
            raise RequestError(
                f"settings: there is no {name[:40]!r}; there are {', '.join(allowed)}",
                field="settings",
            )
        most, written = allowed[name]
        whole = name != "minutes"
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise RequestError(f"settings: {name} must be a number", field="settings")
        if not 0 < value <= most or not math.isfinite(value):
            raise RequestError(f"settings: {name} must be from 1 to {most:g}", field="settings")
        found += written(str(value))
    return found


def _described() -> dict[str, Any]:
    """The settings of trainings as JSON Schema."""
    return {
        name: {
            "type": "number" if name == "minutes" else "integer",
            "exclusiveMinimum": 0,
            "maximum": most,
        }
        for name, (most, _) in (LESSON | FIRST).items()
    }


def teller(playground: Playground, base: Base) -> dict[str, Any]:
    """What ``/api/info`` says of learning."""
    learning = playground.part(Learning)
    why = learning.possible()
    return {
        "learning": learning.told(),
        "corrections": len(playground.part(Corrections).newest(base)),
        "taught": len(playground.part(Corrections).taught(base)),
        "can": {"train": {"yes": why is None, "why": why}},
    }


def _train(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    learning = playground.part(Learning)
    base = playground.base(given["kb"])
    return learning.start(given["what"], base, given["settings"] or {}).told()


def _job(playground: Playground, _: dict[str, Any]) -> dict[str, Any]:
    return {"learning": playground.part(Learning).told()}


def _events(playground: Playground, _: dict[str, Any]) -> Events:
    learning = playground.part(Learning)
    if learning.told() is None:
        raise RequestError("nothing is trained", status=404)
    return Events(learning.events())


def _stop(playground: Playground, _: dict[str, Any]) -> dict[str, Any]:
    return playground.part(Learning).stop().told()


def _keep(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    return playground.part(Learning).keep(given["keep"]).told()


ROUTES = [
    Route(
        "POST", "/api/train", "Begin a training, or go on with one that ended early.", _train,
        (
            Field(
                "what", "text", "a first training, a lesson from corrections, or the one before",
                required=True, choices=("default", "lesson", "resume"),
            ),
            Field("settings", "object", "numbers that it is trained by", parts=_described()),
        ),
        OBJECT, status=202,
    ),
    Route("GET", "/api/train", "The training, if there is one.", _job, (), record(learning=MAYBE)),
    Route(
        "GET", "/api/train/events", "Its progress, until it ends.", _events, (), events=True,
    ),
    Route("DELETE", "/api/train", "Stop the training.", _stop, (), OBJECT, status=202),
    Route(
        "POST", "/api/train/keep", "Keep the new run, or throw it away.", _keep,
        (Field("keep", "truth", "whether it is kept", required=True),), OBJECT,
    ),
]  # fmt: skip
