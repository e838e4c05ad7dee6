"""What people say of a parser's answers: corrections, a JSON line each in the file of a run.

A line is that of a question set (`kopl.example`), with the program that is right and what it gives,
and says besides what was predicted, who judged it, when, and over which knowledge base and network:

>>> read_corrections(Path("runs/default/corrections.jsonl"))[0].verdict
'corrected'

Lines are only ever added. Of several lines with one question the newest wins (`newest`). One with
the verdict "removed" takes back what was said of a question (`remove`); it may be said anew later.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from kopl.answer_forms import AnswerForm, Is, answer_of, read_form
from kopl.answers import same_answers
from kopl.errors import ProgramError
from kopl.example import Asked, BareQuestion, Example, read_objects
from kopl.functions import FIND
from kopl.hints import unknown_items
from kopl.program import Call
from kopl.text import read, read_json
from kopl_base.errors import KoplError, ReadError, WriteError

if TYPE_CHECKING:
    from kb import KnowledgeBase
    from kopl.executor import Executor
    from parsers.parser import Answer, Parser

FILE = "corrections.jsonl"
SHOWN = 60  # characters of a line that is taken away
log = logging.getLogger("kb")

Verdict: TypeAlias = Literal[
    "right", "corrected", "unclear", "not in the knowledge base", "wrong data"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
# The verdict of a line that takes back those before it.
REMOVED: Literal["removed"] = "removed"
# Those of questions that a program answers as they were meant.
TAUGHT: tuple[Verdict, ...] = ("right", "corrected", "wrong data")


class CorrectionError(KoplError):
    """A correction that contradicts itself, or that the knowledge base cannot give."""

    kind = "correction"


@dataclass(frozen=True)
class Predicted:
    """What a parser had said: its program as text, what that gave, and how sure it was.

    ``program`` is None where it said none; ``answers`` are read by the ``form``.
    """

    program: str | None
    answers: tuple[str, ...] = ()
    form: AnswerForm | None = None
    confidence: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """What a line says of it."""
        form = None if self.form is None else {"answer_form": self.form.to_json()}
        return {
            "program": self.program, "answers": list(self.answers), **(form or {}),
            "confidence": round(self.confidence, 6),
        }  # fmt: skip

    @classmethod
    def from_json(cls, item: Any) -> Predicted:
        """What `to_json` wrote; raises TypeError, KeyError or ValueError."""
        answers = item["answers"]
        if not isinstance(item["program"], str | None) or not _are_texts(answers):
            raise TypeError("'predicted' must have a program and a list of answers")
        form = read_form(item.get("answer_form"))
        return cls(item["program"], tuple(answers), form, float(item.get("confidence", 0.0)))


@dataclass(frozen=True)
class Correction:
    """A question with what is right for it.

    ``program`` is None where no program is (`TAUGHT` names the verdicts that have one), as in a
    line that takes back those before it, whose verdict is `REMOVED`; ``answers``
    is what it gives, read by the ``form``. Of wrong data, ``truth`` is what they should say.
    ``time`` is that of the judgement (UTC, ISO 8601); ``fingerprints`` has those of the knowledge
    base (``kb``) and of the network's weights (``run``).
    """

    question: str
    verdict: Verdict | Literal["removed"]
    program: Call | None = None
    answers: tuple[str, ...] = ()
    form: AnswerForm | None = None
    predicted: Predicted | None = None
    author: str = ""
    time: str = ""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    truth: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a verdict without the program that it speaks of, or with one."""
        if self.verdict not in (*VERDICTS, REMOVED):
            raise ValueError(f"the verdict is {self.verdict!r}; verdicts are {', '.join(VERDICTS)}")
        if (self.program is not None) != (self.verdict in TAUGHT):
            which = "needs a" if self.program is None else "has no"
            raise ValueError(f"the verdict {self.verdict!r} {which} program")

    @property
    def key(self) -> str:
        """What is the same for corrections of one question."""
        return key_of(self.question)

    @property
    def id(self) -> str:
        """The same for corrections of one question: the id of its example."""
        return id_of(self.question)

    def example(self) -> Example:
        """The question as one to learn or to check; raises ValueError where it has no program."""
        if self.program is None:
            raise ValueError(f"{self.question!r} has no program: {self.verdict}")
        one = self.answers[0] if len(self.answers) == 1 else None
        several = () if one is not None else self.answers
        return Example(
            self.question, self.program, one, id=self.id, answers=several, answer_form=self.form
        )

    def to_json(self) -> dict[str, Any]:
        """The object of its line."""
        if self.program is None:
            asked: dict[str, Any] = {"id": self.id, "question": self.question}
        else:
            asked = self.example().to_json()
        said = {
            "predicted": None if self.predicted is None else self.predicted.to_json(),
            "truth": list(self.truth) or None, "note": self.note or None,
        }  # fmt: skip
        return {
            **asked, "verdict": self.verdict,
            **{name: value for name, value in said.items() if value is not None},
            "author": self.author, "time": self.time, "fingerprints": dict(self.fingerprints),
        }  # fmt: skip

    @classmethod
    def from_json(cls, item: Any) -> Correction:
        """What `to_json` wrote; raises KeyError, TypeError, ValueError or ProgramError."""
        if not isinstance(item, dict):
            raise TypeError("an object with a question and a verdict was expected")
        texts = {name: item.get(name, "") for name in ("author", "time", "note")}
        texts["question"] = item["question"]
        for name, text in texts.items():
            if not isinstance(text, str):
                raise TypeError(f"{name!r} is {text!r}, but must be a text")
        program = None if item.get("program") is None else read_json(item["program"])
        one = item.get("answer")
        answers = item.get("answers") or () if one is None else (one,)
        truth, fingerprints = item.get("truth") or (), item.get("fingerprints") or {}
        if not _are_texts(answers) or not _are_texts(truth):
            raise TypeError("answers must be texts")
        if not isinstance(fingerprints, dict) or not _are_texts(list(fingerprints.values())):
            raise TypeError("'fingerprints' must be an object with texts")
        predicted = item.get("predicted")
        return cls(
            texts["question"], item["verdict"], program, tuple(answers),
            read_form(item.get("answer_form"), program),
            None if predicted is None else Predicted.from_json(predicted),
            texts["author"], texts["time"], fingerprints, tuple(truth), texts["note"],
        )  # fmt: skip


def key_of(question: str) -> str:
    """What is the same for spellings of one question."""
    return " ".join(question.split())


def id_of(question: str) -> str:
    """The id of the corrections of a question."""
    return hashlib.sha256(key_of(question).encode()).hexdigest()[:12]


def _are_texts(found: object) -> bool:
    return isinstance(found, list | tuple) and all(isinstance(one, str) for one in found)


# --- the file ------------------------------------------------------------------------------------


def append(path: Path, correction: Correction) -> None:
    """Add a line to a file of corrections, behind those that others add at the same time.

    The line is there as a whole when this returns. The beginning of a line that a killed process
    left behind is taken away, with a warning that shows it. Raises WriteError.
    """
    line = json.dumps(correction.to_json(), ensure_ascii=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            data = line.encode() + b"\n"
            end, begin, torn = _end(handle)
            os.ftruncate(handle, end)
            at = os.pwrite(handle, begin + data, end)
            if at < len(begin + data):
                os.ftruncate(handle, end)
                raise OSError(28, "no space left on the device")
            os.fsync(handle)
        finally:
            os.close(handle)
    except (OSError, UnicodeEncodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WriteError(f"{path}: cannot be written: {reason}") from None
    if torn:
        begun = torn.decode(errors="replace")
        shown = begun if len(begun) <= SHOWN else f"{begun[:SHOWN]}…"
        log.warning(
            "%s: its last line had not been written to its end, and was taken away; correct that"
            " question again: %s", path, shown,
        )  # fmt: skip


def _end(handle: int) -> tuple[int, bytes, bytes]:
    """Where a line is to be added, what must stand before it, and the torn line there."""
    size = os.fstat(handle).st_size
    place, tail = size, b""
    while place and b"\n" not in tail:
        step = min(place, 1 << 16)
        place -= step
        tail = os.pread(handle, step, place) + tail
    last = tail.rpartition(b"\n")[2]
    if not last:
        return size, b"", b""
    try:
        json.loads(last)
    except ValueError:
        return size - len(last), b"", last
    return size, b"\n", b""  # an editor left the last end of a line out


def read_corrections(path: Path) -> list[Correction]:
    """The corrections of a file in their order, none where there is no file.

    Raises ReadError that names the line of what is none.
    """
    if not path.exists():
        return []
    found = []
    for place, item in read_objects(path):
        one = _read(item, place, str(path))
        if isinstance(one, ReadError):
            raise one
        found.append(one)
    return found


def _read(item: Any, place: str, source: str) -> Correction | ReadError:
    if isinstance(item, ReadError):
        return item
    try:
        return Correction.from_json(item)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        return ReadError(f"not a correction: {message}", place=place, source=source)
    except ProgramError as error:
        return ReadError(f"not a correction: program: {error}", place=place, source=source)


def remove(path: Path, id: str, *, author: str | None = None) -> Correction:
    """Take back what was said of a question, by a line that says so; gives what had been said.

    ``id`` is that of its corrections. Raises CorrectionError where there is none, or where it was
    taken back before; ReadError and WriteError of the file.
    """
    last = {one.id: one for one in read_corrections(path)}.get(id)
    if last is None or last.verdict == REMOVED:
        gone = "none with that id" if last is None else "it was taken away before"
        raise CorrectionError(f"{path}: there is no correction {id!r} to take away: {gone}")
    said_by = _user() if author is None else author
    append(path, Correction(last.question, REMOVED, author=said_by, time=now()))
    return last


def newest(corrections: Iterable[Correction]) -> list[Correction]:
    """The last one of each question, in the order in which the questions came first.

    Questions of which everything was taken back are left out.
    """
    last = {one.key: one for one in corrections}
    return [one for one in last.values() if one.verdict != REMOVED]


def is_corrections(path: Path) -> bool:
    """Whether a file is one of corrections, as its first line tells."""
    try:
        _, item = next(read_objects(path))
    except (ReadError, StopIteration):
        return False
    return isinstance(item, dict) and {"question", "verdict", "fingerprints"} <= item.keys()


def checkable(path: Path) -> Iterator[tuple[str, Example | ReadError]]:
    """The newest correction of each question with its place, as far as it has a program.

    In place of a line that is no correction comes the error that says why.
    """
    last: dict[str, tuple[str, Correction]] = {}
    for place, item in read_objects(path):
        one = _read(item, place, str(path))
        if isinstance(one, ReadError):
            yield place, one
        else:
            last[one.key] = place, one
    for place, one in last.values():
        if one.program is not None:
            yield place, one.example()


def learnable(path: Path) -> Iterator[Asked]:
    """The newest correction of each question as one to learn, those that are unclear left out.

    What the knowledge base has not is a question whose program is not known, which says so. Raises
    ReadError that names the line of what is no correction.
    """
    for one in newest(read_corrections(path)):
        if one.program is not None:
            yield one.example()
        elif one.verdict == "not in the knowledge base":
            yield BareQuestion(one.question, id=one.id, outside="schema")


# --- making one ----------------------------------------------------------------------------------


def correct(
    parser: Parser, question: str, program: Call | str | None = None, *,
    form: AnswerForm | None = None, verdict: Verdict | None = None,
    truth: Sequence[str] = (), author: str | None = None, note: str = "",
) -> Correction:  # fmt: skip
    """Judge a parser's answer to a question, and add that to the file of its run.

    ``program`` is the right one; without it the verdict says what is to be said: "right" and
    "wrong data" mean the program that was predicted. With it, the verdict is "right" where the
    parser says the same, else "corrected", unless it is given. ``truth`` is what wrong data should
    say. The ``author`` is the user's name unless given. Raises KoplError for a question without
    words, a program that does not run or that names what the knowledge base has not, a verdict that
    does not fit, a parser without a folder.
    """
    found = judged(
        parser, question, program, form=form, verdict=verdict, truth=truth, author=author,
        note=note,
    )  # fmt: skip
    assert parser.folder is not None
    append(parser.folder / FILE, found)
    return found


def judged(
    parser: Parser, question: str, program: Call | str | None = None, *,
    form: AnswerForm | None = None, verdict: Verdict | None = None,
    truth: Sequence[str] = (), author: str | None = None, note: str = "",
) -> Correction:  # fmt: skip
    """What `correct` adds, not added."""
    from parsers.evaluation.confidence import weights_mark
    from parsers.matching import exact_match

    if parser.folder is None:
        raise CorrectionError("this parser has no folder that corrections could be kept in")
    answer = next(iter(parser.ask(question)), None)
    predicted = None if answer is None else _predicted(answer)
    call = read(program) if isinstance(program, str) else program
    if call is None and verdict in ("right", "wrong data"):
        if answer is None or answer.program is None:
            raise CorrectionError(f"nothing was answered that could be {verdict}; give the program")
        call, form = answer.program, predicted.form if predicted else None
    if call is None and verdict in (None, "corrected"):
        raise CorrectionError("give the program that is right, its answer, or a verdict")
    if call is not None and verdict in ("unclear", "not in the knowledge base"):
        raise CorrectionError(f"what is {verdict} has no program")
    answers = () if call is None else given(parser.model.language.executor, call, form)
    if verdict is None:
        said = None if answer is None else answer.program
        same = said is not None and call is not None and exact_match(call, said)
        verdict = "right" if same and predicted and predicted.form == form else "corrected"
    return Correction(
        question, verdict, call, answers, form, predicted,
        _user() if author is None else author, now(),
        {"kb": parser.kb.fingerprint, "run": weights_mark(parser.folder)}, tuple(truth), note,
    )  # fmt: skip


def given(executor: Executor, program: Call, form: AnswerForm | None = None) -> tuple[str, ...]:
    """What a program that is to be right gives.

    Raises CorrectionError where the answer form does not fit or the knowledge base has not what it
    names, else what running it raises.
    """
    try:
        read_form(None if form is None else form.to_json(), program)
    except ValueError as error:
        raise CorrectionError(str(error)) from None
    _check_known(executor.kb, program, form)
    return tuple(answer_of(executor.run(program).denotation, form, program))


def _check_known(kb: KnowledgeBase, program: Call, form: AnswerForm | None) -> None:
    """Raise CorrectionError for a name, concept, relation or key that there is not.

    Such a program gives nothing, however it is meant, and teaches a parser to write it.
    """
    unknown = unknown_items(kb, program)
    if isinstance(form, Is):
        named = unknown_items(kb, Call(FIND, (), (form.name,)))
        unknown += [one.replace("call 0", "answer form", 1) for one in named]
    if unknown:
        raise CorrectionError("; ".join(unknown))


def _predicted(answer: Answer) -> Predicted:
    program = None if answer.program is None else str(answer.program)
    return Predicted(program, answer.answers, answer.form, answer.confidence)


def gives(correction: Correction, answers: Sequence[str]) -> bool:
    """Whether answers are those of a correction, in whatever order."""
    return same_answers(correction.answers, answers)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a machine without an entry for the user
        return ""


def now() -> str:
    """The time of a judgement that is made now (UTC, ISO 8601)."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
