"""Corrections on the page: what people say of answers, listed, added, taken back, exported.

They are the lines of `parsers.corrections`: in the folder of the run where that was trained on the
knowledge base at hand and may be written, else in the playground's, from where they come along as
soon as there is such a run.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.programs import AS_YES_OR_NO, form_of
from kopl_cli.serve.routes import (
    LONGEST_QUESTION,
    OBJECT,
    TEXT,
    WHOLE,
    Field,
    RequestError,
    Route,
    listed,
    record,
)
from parsers.corrections import (
    FILE,
    REMOVED,
    TAUGHT,
    VERDICTS,
    Correction,
    CorrectionError,
    Predicted,
    Verdict,
    append,
    given,
    newest,
    now,
    read_corrections,
    remove,
)

if TYPE_CHECKING:
    pass

# Characters of a note and a name.
NOTE, NAME = 2000, 100
# Answers that are listed of each correction, and corrections that are listed.
ANSWERS, LISTED = 100, 1000


class Corrections:
    """The corrections of a playground, of each of its knowledge bases."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, int], list[Correction]]] = {}
        self._marks: dict[Path, tuple[int, str]] = {}
        self._carried: dict[tuple[Path, Path], tuple[int, int]] = {}

    def file(self, base: Base) -> Path:
        """Where those of a knowledge base lie."""
        own = self._own(base)
        run = self.playground.run_of(base)
        if run is None or run.fingerprint != base.kb.fingerprint:
            return own
        path = run.folder / FILE
        if not os.access(path if path.exists() else run.folder, os.W_OK):
            return own
        with self._lock:
            mark = _mark(own)
            if mark is not None and self._carried.get((own, path)) != mark:
                carry(own, path)
                self._carried[own, path] = mark
        return path

    def _own(self, base: Base) -> Path:
        name = f"{base.kb.fingerprint[:16]}.jsonl"
        return self.playground.folder / "corrections" / name

    def all(self, base: Base) -> list[Correction]:
        """Every line, the oldest first; raises ReadError for a malformed file."""
        path = self.file(base)
        if (mark := _mark(path)) is None:
            return []
        known = self._read.get(path)
        if known is None or known[0] != mark:
            self._read[path] = known = mark, read_corrections(path)
        return known[1]

    def newest(self, base: Base) -> list[Correction]:
        """The last one of each question that was not taken back."""
        return newest(self.all(base))

    def taught(self, base: Base) -> list[Correction]:
        """Those that a program answers."""
        return [one for one in self.newest(base) if one.verdict in TAUGHT]

    def keep(self, base: Base, said: Mapping[str, Any]) -> Correction:
        """Add what a request says; the program is run, and must name what there is.

        Raises RequestError, CorrectionError, ProgramError and LimitError.
        """
        kept = self._correction(base, said)
        append(self.file(base), kept)
        return kept

    def _correction(self, base: Base, said: Mapping[str, Any]) -> Correction:
        verdict = cast("Verdict", said["verdict"])
        question: str = said["question"]
        if not any(letter.isalnum() for letter in question):
            raise RequestError("question: it has no letter and no digit", field="question")
        predicted = _predicted(said["predicted"])
        program, form = said["program"], form_of(said["answer_form"], "answer_form")
        if program is None and verdict in ("right", "wrong data") and predicted is not None:
            program = predicted.program
            self._shown(base, said["predicted"], predicted, verdict)
        call = None if program is None else base.read(program)
        if form is None and predicted is not None and str(call) == predicted.program:
            form = predicted.form
        if (call is None) != (verdict not in TAUGHT):
            which = "needs a program" if call is None else "is said without a program"
            raise RequestError(f"program: the verdict {verdict!r} {which}", field="program")
        answers = () if call is None else given(base.executor, call, form)
        return Correction(
            question, verdict, call, answers, form, predicted,
            said["author"] or "", now(), self._fingerprints(base),
            tuple(_texts(said["truth"], "truth")), said["note"] or "",
        )  # fmt: skip

    def _shown(
        self, base: Base, said: Mapping[str, Any], predicted: Predicted, verdict: str
    ) -> None:
        """Raise RequestError for a prediction that nobody saw, as one behind a refusal."""
        hidden = bool(said.get("refused"))
        if not hidden and not predicted.answers and predicted.program is not None:
            hidden = bool(given(base.executor, base.read(predicted.program), predicted.form))
        if hidden:
            raise RequestError(
                f"program: no answer was shown that could be {verdict}", field="program",
                to_try="give the program that is right; of a refusal that is right say"
                " 'not in the knowledge base' or 'unclear'",
            )  # fmt: skip

    def _fingerprints(self, base: Base) -> dict[str, str]:
        """Those of the knowledge base and, as far as there is one, of the weights of the run."""
        found, run = {"kb": base.kb.fingerprint}, self.playground.run_of(base)
        if run is None:
            return found
        from parsers.evaluation.confidence import CalibrationError, weights_mark

        try:
            time = (run.folder / "best.safetensors").stat().st_mtime_ns
            known = self._marks.get(run.folder)
            if known is None or known[0] != time:
                self._marks[run.folder] = known = time, weights_mark(run.folder)
        except (OSError, CalibrationError):
            return found  # a run without weights, as one that shows examples to a language model
        return found | {"run": known[1]}

    def take_back(self, base: Base, id: str, author: str | None) -> Correction:
        """Add a line that takes back what was said of a question; raises RequestError."""
        try:
            return remove(self.file(base), id, author=author or "")
        except CorrectionError as error:
            raise RequestError(str(error).partition(": ")[2], status=404, field="id") from None


def carry(source: Path, target: Path) -> int:
    """Add the lines of a file that another one lacks to that; gives how many they were."""
    if source == target or not source.exists():
        return 0
    with source.open("rb") as held:  # nobody adds to it meanwhile
        fcntl.flock(held, fcntl.LOCK_EX)
        there = {_line(one) for one in read_corrections(target)}
        new = [one for one in read_corrections(source) if _line(one) not in there]
        for one in new:
            append(target, one)
    return len(new)


def _mark(path: Path) -> tuple[int, int] | None:
    """What tells a file from what it was before; None where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size


def _line(correction: Correction) -> str:
    return json.dumps(correction.to_json(), ensure_ascii=False, sort_keys=True)


def _predicted(said: Mapping[str, Any] | None) -> Predicted | None:
    if said is None:
        return None
    try:
        shown = {"program": said.get("program"), "answers": _texts(said.get("answers"), "")}
        shown["confidence"] = said.get("confidence") or 0.0
        shown["answer_form"] = said.get("answer_form")
        return Predicted.from_json(shown)
    except (KeyError, TypeError, ValueError, AttributeError, RequestError) as error:
        raise RequestError(f"predicted: {error}", field="predicted") from None


def _texts(said: Any, field: str) -> list[str]:
    if said is None:
        return []
    if not isinstance(said, list) or not all(isinstance(one, str) for one in said):
        raise RequestError(f"{field}: a list of texts was expected", field=field)
    return said[:ANSWERS]


# --- the routes -----------------------------------------------------------------------------------


def shown(one: Correction, *, removed: bool = False) -> dict[str, Any]:
    """What the page shows of a correction."""
    before = one.predicted
    return {
        "id": one.id,
        "question": one.question,
        "verdict": one.verdict,
        "program": None if one.program is None else str(one.program),
        "answers": [*one.answers[:ANSWERS]],
        "count": len(one.answers),
        "answer_form": None if one.form is None else one.form.to_json(),
        "before": None if before is None else before.to_json(),
        "truth": [*one.truth],
        "author": one.author,
        "time": one.time,
        "note": one.note,
        "fingerprints": dict(one.fingerprints),
        "removed": removed,
    }


def _list(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    lines = playground.part(Corrections).all(base)
    said = {one.key: one for one in lines if one.verdict != REMOVED}
    gone = {key for key, one in {one.key: one for one in lines}.items() if one.verdict == REMOVED}
    found = [shown(one, removed=key in gone) for key, one in said.items()]
    found = [one for one in found if given["removed"] or not one["removed"]]
    last = found[::-1][: given["limit"]]
    return {"corrections": last, "count": len(found), "lines": len(lines)}


def _keep(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    return shown(playground.part(Corrections).keep(base, given))


def _remove(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    gone = playground.part(Corrections).take_back(base, given["id"], given["author"])
    return shown(gone, removed=True)


_AUTHOR = Field("author", "text", "who says so; nobody is named without it", most=NAME)

ROUTES = [
    Route(
        "GET", "/api/corrections", "What was said of answers, the newest first.", _list,
        (
            Field("limit", "integer", "how many", default=100, least=1, most=LISTED),
            Field("removed", "truth", "those that were taken back, too", default=False),
        ),
        record(corrections=listed(OBJECT), count=WHOLE, lines=WHOLE),
    ),
    Route(
        "POST", "/api/corrections", "Say whether an answer is right, and what is.", _keep,
        (
            Field("question", "text", "the question", True, least=1, most=LONGEST_QUESTION),
            Field("verdict", "text", "what is said", required=True, choices=VERDICTS),
            Field("program", "program", "the program that is right"),
            Field("answer_form", "any", AS_YES_OR_NO),
            Field(
                "predicted", "object",
                "what was answered: program, answers, confidence, and refused where it was",
            ),
            Field("truth", "list", "of wrong data: what they should say"),
            Field("note", "text", "what else is to be known", default="", most=NOTE),
            _AUTHOR,
            Field("item", "text", "the item of the queue that it is about"),
        ),
        record(id=TEXT, question=TEXT, verdict=TEXT),
    ),
    Route(
        "DELETE", "/api/corrections/{id}", "Take back what was said of a question.", _remove,
        (Field("id", "text", "its id", required=True), _AUTHOR),
        record(id=TEXT, question=TEXT, removed={"type": "boolean"}),
    ),
]  # fmt: skip
