"""Corrections on the page: what people say of answers, listed, added, taken back, exported.

They are the lines of `parsers.corrections`: in the folder of the run where that was trained on the
knowledge base at hand and may be written, else in the playground's, from where they come along as
soon as there is such a run.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kopl.answer_forms import AnswerForm, read_form
from kopl.example import Example
from kopl_base.errors import KoplError
from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.routes import OBJECT, TEXT, WHOLE, Field, RequestError, Route, listed, record
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
    from generation.choices import Choices

# Characters of a question, a note and a name.
LONGEST, NOTE, NAME = 2000, 2000, 100
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
        run = self.playground.run
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
        program, form = said["program"], _form(said["answer_form"], "answer_form")
        if program is None and verdict in ("right", "wrong data") and predicted is not None:
            program = predicted.program
            form = form if form is not None else predicted.form
        call = None if program is None else base.read(program)
        if (call is None) != (verdict not in TAUGHT):
            which = "needs a program" if call is None else "is said without a program"
            raise RequestError(f"program: the verdict {verdict!r} {which}", field="program")
        answers = () if call is None else given(base.executor, call, form)
        author = said["author"]
        return Correction(
            question, verdict, call, answers, form, predicted,
            _user() if author is None else author, now(), self._fingerprints(base),
            tuple(_texts(said["truth"], "truth")), said["note"] or "",
        )  # fmt: skip

    def _fingerprints(self, base: Base) -> dict[str, str]:
        """Those of the knowledge base and, as far as there is one, of the weights of the run."""
        found, run = {"kb": base.kb.fingerprint}, self.playground.run
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
            return remove(self.file(base), id, author=author)
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


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a machine without an entry for the user
        return ""


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


def _form(said: Any, field: str) -> AnswerForm | None:
    try:
        return read_form(said)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RequestError(f"{field}: {error}", field=field) from None


def _texts(said: Any, field: str) -> list[str]:
    if said is None:
        return []
    if not isinstance(said, list) or not all(isinstance(one, str) for one in said):
        raise RequestError(f"{field}: a list of texts was expected", field=field)
    return said[:ANSWERS]


# --- exports --------------------------------------------------------------------------------------


def training_data(base: Base, corrections: Sequence[Correction]) -> dict[str, Any]:
    """The newest corrections as lines of a question set, which ``kopl train`` reads."""
    lines = [json.dumps(one.to_json(), ensure_ascii=False) for one in corrections]
    taught = sum(one.program is not None for one in corrections)
    text = "".join(f"{line}\n" for line in lines)
    return _file(f"{base.id}-corrections.jsonl", "application/x-ndjson", text, taught, len(lines))


def kqapro(base: Base, corrections: Sequence[Correction]) -> dict[str, Any]:
    """Those with a program as KQA Pro publishes questions, each with ten choices."""
    from generation.choices import Choices
    from generation.conversion import write_kqapro

    choices = Choices(base.kb)
    examples = [_chosen(one.example(), choices, base) for one in corrections if one.program]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corrections.json"
        count = write_kqapro(path, examples)
        text = path.read_text("utf-8")
    name = f"{base.id}-corrections.json"
    return _file(name, "application/json", text, count, len(corrections))


def _chosen(example: Example, choices: Choices, base: Base) -> Example:
    """An example with choices and a query, where it has one answer."""
    from dataclasses import replace

    from generation.blocks import query_of

    if example.answer is None:
        return example

    def denote(program: Any) -> list[str]:
        return base.executor.run(program).denotation

    truth = example.answer_form is not None
    drawn = choices.draw(
        example.program, example.answer, (), denote, Random(example.id), truth=truth
    )
    try:
        query = query_of(example.program, base.kb)
    except KoplError:
        query = None  # what SPARQL cannot say
    return replace(example, choices=drawn, sparql=query)


LABEL_STUDIO = """<View>
  <Header value="$question"/>
  <Text name="question" value="$question"/>
  <Header value="What was answered: $answer"/>
  <Choices name="verdict" toName="question" choice="single" required="true">
{choices}
  </Choices>
  <TextArea name="program" toName="question" rows="4" maxSubmissions="1"
            placeholder="the program that is right" editable="true"/>
</View>
"""


def label_studio(
    base: Base, corrections: Sequence[Correction], waiting: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """A project of Label Studio: tasks to import, and its labelling interface (``config``).

    What was predicted is a task's prediction, what a person said its annotation. ``waiting`` are
    the items of the queue that nobody has judged yet.
    """
    tasks = [_task(one) for one in corrections]
    tasks += [_open_task(one) for one in waiting]
    text = json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"
    found = _file(f"{base.id}-tasks.json", "application/json", text, len(tasks), len(tasks))
    choices = "\n".join(f'    <Choice value="{one}"/>' for one in VERDICTS)
    config = {
        "name": f"{base.id}-interface.xml", "type": "application/xml",
        "text": LABEL_STUDIO.replace("{choices}", choices),
    }  # fmt: skip
    return found | {"config": config}


def _task(one: Correction) -> dict[str, Any]:
    before = one.predicted
    task = _asked(one.id, one.question, () if before is None else before.answers)
    if before is not None:
        task["predictions"] = [_prediction(before.program, before.confidence)]
    program = None if one.program is None else str(one.program)
    said = {"result": _result(one.verdict, program), "completed_by": {"email": one.author}}
    if not one.author:
        del said["completed_by"]
    return task | {"annotations": [said], "meta": {"time": one.time, "note": one.note}}


def _open_task(item: Mapping[str, Any]) -> dict[str, Any]:
    best = (item["answer"] or {}).get("answers") or [{}]
    answer = (best[0].get("answer") or {}).get("answers", ())
    task = _asked(item["id"], item["question"], answer)
    if (program := best[0].get("text")) is not None:
        task["predictions"] = [_prediction(program, item["confidence"] or 0.0)]
    return task


def _asked(id: str, question: str, answers: Sequence[str]) -> dict[str, Any]:
    shown = "; ".join(answers[:ANSWERS]) or "(nothing)"
    return {"data": {"id": id, "question": question, "answer": shown}}


def _prediction(program: str | None, confidence: float) -> dict[str, Any]:
    return {
        "model_version": "kopl", "score": round(confidence, 6), "result": _result("right", program)
    }


def _result(verdict: str, program: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"from_name": "verdict", "to_name": "question", "type": "choices",
         "value": {"choices": [verdict]}}
    ]  # fmt: skip
    if program is not None:
        found.append(
            {"from_name": "program", "to_name": "question", "type": "textarea",
             "value": {"text": [program]}}
        )  # fmt: skip
    return found


def _file(name: str, media: str, text: str, count: int, of: int) -> dict[str, Any]:
    return {"name": name, "type": media, "text": text, "count": count, "left_out": of - count}


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


def _export(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    from kopl_cli.serve.queueing import Queues

    base = playground.base(given["kb"])
    corrections = playground.part(Corrections).newest(base)
    if given["form"] == "label-studio":
        return label_studio(base, corrections, playground.part(Queues).of(base).waiting())
    return {"training": training_data, "kqapro": kqapro}[given["form"]](base, corrections)


_AUTHOR = Field("author", "text", "who says so (default: the server's user)", most=NAME)

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
            Field("question", "text", "the question", required=True, least=1, most=LONGEST),
            Field("verdict", "text", "what is said", required=True, choices=VERDICTS),
            Field("program", "program", "the program that is right"),
            Field("answer_form", "any", "how it is read as yes or no: exists, or {is: NAME}"),
            Field("predicted", "object", "what was answered: program, answers, confidence"),
            Field("truth", "list", "of wrong data: what they should say"),
            Field("note", "text", "what else is to be known", default="", most=NOTE),
            _AUTHOR,
            Field("item", "text", "the item of the queue that it is about"),
        ),
        record(id=TEXT, question=TEXT, verdict=TEXT),
    ),
    Route(
        "GET", "/api/corrections/export", "The corrections as a file.", _export,
        (
            Field(
                "form", "text", "what to write", default="training",
                choices=("training", "kqapro", "label-studio"),
            ),
        ),
        record(name=TEXT, type=TEXT, text=TEXT, count=WHOLE, left_out=WHOLE),
    ),
    Route(
        "DELETE", "/api/corrections/{id}", "Take back what was said of a question.", _remove,
        (Field("id", "text", "its id", required=True), _AUTHOR),
        record(id=TEXT, question=TEXT, removed={"type": "boolean"}),
    ),
]  # fmt: skip

