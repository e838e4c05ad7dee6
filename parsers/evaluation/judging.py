"""One prediction beside its example: how far it gets, whether its answer and program are right."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from kb.values import ValueReadError
from kopl.answer_forms import answer_of
from kopl.answers import published_equal, same_answer, same_answers
from kopl.errors import ParseError, TypingError
from kopl.example import Asked, Example
from kopl.executor import Denoted
from kopl.program import Call
from kopl.sparql.errors import QueryReadError
from kopl.text import write_nested
from kopl.traits import SKILLS as OF_PROGRAMS
from kopl.traits import hops, skills
from kopl_base.errors import KoplError
from parsers.languages import OutputLanguage, Prediction
from parsers.matching import exact_match

# How a prediction ends by the default rule. A failed program is never right, on Verify neither.
Verdict: TypeAlias = Literal[
    "right", "wrong answer", "not compared", "several answers", "no answer",
    "did not parse", "did not type", "did not run",
]  # fmt: skip
VERDICTS: tuple[Verdict, ...] = (
    "right", "wrong answer", "not compared", "several answers", "no answer",
    "did not parse", "did not type", "did not run",
)  # fmt: skip
FAILURES: tuple[Verdict, ...] = ("did not parse", "did not type", "did not run")

# The columns of Table 5: those that follow from a program, and whether the answer was trained.
SKILLS = (*OF_PROGRAMS, "zero-shot")
# The columns of Table 9. Programs of one hop, of none or of ten are the others.
HOPS = ("2-3", "4-5", "6-7", "8-9", "others")
# Calls of the gold program.
LENGTHS = ("1-3", "4-6", "7-9", "10-12", "13 or more")

# How many strings of a denotation are kept to be shown.
KEPT = 20


@dataclass(frozen=True)
class JudgedExample:
    """A prediction beside its example.

    ``gold``: the stored answer, or the only one of the gold program, None where neither is to be
    had (then nothing is right; of a question without a program, nothing is compared).
    ``denotation``: the first strings, None where it failed; ``count`` of them in all. ``right`` is
    by the default rule, ``published`` by that of KQA Pro's script. ``same_program``: letter by
    letter; ``same_form``: up to order and spelling (`parsers.matching`).
    """

    example: Asked
    prediction: Prediction
    gold: str | None
    denotation: list[str] | None
    count: int
    error: str | None
    verdict: Verdict
    published: bool
    same_program: bool
    same_form: bool
    error_kind: str | None = field(default=None, repr=False)
    sure: float | None = None  # how sure the answer is, where that was fitted

    @property
    def right(self) -> bool:
        """Whether the answer is right by the default rule."""
        return self.verdict == "right"

    @property
    def compared(self) -> bool:
        """Whether the question says what is right: by a program or by an answer."""
        return self.gold is not None or self.example.program is not None

    @property
    def first(self) -> str | None:
        """The first string of the denotation, which the published script takes for the answer."""
        return self.denotation[0] if self.denotation else None

    @property
    def parses(self) -> bool:
        """Whether what was written is a program (or a query)."""
        return self.verdict != "did not parse"

    @property
    def types(self) -> bool:
        """Whether it is a program that types; a query that no program says counts as such."""
        return self.verdict not in ("did not parse", "did not type")

    @property
    def runs(self) -> bool:
        """Whether running it gives a denotation."""
        return self.verdict not in FAILURES

    def to_json(self) -> dict[str, Any]:
        """One line of a predictions file, but for the confidence."""
        program, gold = self.prediction.program, self.example.program
        return {
            "id": self.example.id,
            "question": self.example.question,
            "gold": None if gold is None else write_nested(gold),
            "gold_answer": self.gold,
            "predicted": self.prediction.text,
            "program": None if program is None else write_nested(program),
            "denotation": self.denotation,
            "answers": self.count,
            "verdict": self.verdict,
            "error": self.error,
            "probability": self.prediction.probability,
            "right": self.right,
            "right by the published rule": self.published,
            "same program": self.same_program,
            "same up to order": self.same_form,
            "skills": [] if gold is None else list(skills(gold)),
            "hops": None if gold is None else hops(gold),
            "length": None if gold is None else gold.size,
        }


def judge(
    example: Asked, prediction: Prediction, language: OutputLanguage, outcome: Denoted | None = None
) -> JudgedExample:
    """Run a prediction and compare; ``outcome`` is what running it gave, if that is known.

    The gold program is run when no answer is stored.
    """
    gold = gold_answer(example, language)
    failure: KoplError | None = None
    if outcome is None:
        try:
            outcome = language.run(prediction)
        except KoplError as error:
            failure = error
    strings = None if outcome is None else _as_asked(outcome, prediction, example)
    first = strings[0] if strings else None
    same = _same_program(example, prediction, language)
    return JudgedExample(
        example,
        prediction,
        gold,
        None if strings is None else strings[:KEPT],
        len(strings or ()),
        None if failure is None else f"{failure.kind}: {failure}",
        _verdict(example, gold, strings, failure),
        gold is not None and first is not None and published_equal(gold, first),
        same,
        same or _same_form(example.program, prediction.program),
        None if failure is None else failure.kind,
    )


def _as_asked(outcome: Denoted, prediction: Prediction, example: Asked) -> list[str]:
    """What a prediction says: as yes or no, where it says that the question asks for that.

    Of a model that does not say what is asked, by the example's answer form, if it has one.
    """
    if prediction.asking is not None:
        return prediction.answers(outcome.denotation)
    form = example.answer_form if isinstance(example, Example) else None
    return answer_of(outcome.denotation, form, prediction.program)


def gold_answer(example: Asked, language: OutputLanguage) -> str | None:
    """The stored answer, or the only one that the gold program has; None where there is none."""
    if example.answer is not None or example.program is None:
        return example.answer
    if example.answers:
        return ", ".join(example.answers)
    try:
        found = language.executor.run(example.program).denotation
    except KoplError:
        return None
    read = answer_of(found, example.answer_form if isinstance(example, Example) else None)
    return read[0] if len(read) == 1 else None


def _verdict(
    example: Asked, gold: str | None, strings: list[str] | None, failure: KoplError | None
) -> Verdict:
    if isinstance(failure, ParseError | QueryReadError):
        return "did not parse"
    if isinstance(failure, TypingError | ValueReadError):
        return "did not type"
    if failure is not None or strings is None:
        return "did not run"
    if isinstance(example, Example) and example.answers:
        if not strings:
            return "no answer"
        return "right" if same_answers(example.answers, strings) else "wrong answer"
    if len(strings) != 1:
        return "several answers" if strings else "no answer"
    if gold is None and example.program is None:
        return "not compared"
    return "right" if gold is not None and same_answer(gold, strings[0]) else "wrong answer"


def _same_program(example: Asked, prediction: Prediction, language: OutputLanguage) -> bool:
    if not isinstance(example, Example):
        return False
    if prediction.program is not None and prediction.program == example.program:
        return True
    if language.name != "sparql" or not prediction.text:
        return False
    # A query read back may be another program that says the same: compare what was to be written.
    try:
        return prediction.text == language.gold(example)
    except KoplError:
        return False


def _same_form(gold: Call | None, predicted: Call | None) -> bool:
    return gold is not None and predicted is not None and exact_match(gold, predicted)


def skills_of(
    example: Asked, seen_answers: Collection[str], gold: str | None = None
) -> set[str]:  # fmt: skip
    """The columns of Table 5 that a question counts in; zero-shot: its answer was never trained.

    ``gold`` is the answer where the example stores none. Without any answers seen (or without an
    answer) nothing is zero-shot; without a program all other columns are unknown.
    """
    found = set() if example.program is None else set(skills(example.program))
    if isinstance(example, Example) and example.answers:
        return found  # of several answers none is new as a whole
    answer = example.answer if example.answer is not None else gold
    if seen_answers and answer is not None and answer not in seen_answers:
        found.add("zero-shot")
    return found


def hops_of(example: Example) -> str:
    """The column of Table 9 that a question counts in."""
    return _column(hops(example.program), HOPS, "others")


def length_of(example: Example) -> str:
    """The column of `LENGTHS` that a question counts in, by the calls of its program."""
    return _column(example.program.size, LENGTHS, "13 or more")


def _column(number: int, columns: tuple[str, ...], other: str) -> str:
    for column in columns:
        low, dash, high = column.partition("-")
        if dash and int(low) <= number <= int(high):
            return column
    return other


# The ways in which the questions of a report are parted, each with its columns.
PARTS: dict[str, tuple[str, ...]] = {"skills": SKILLS, "hops": HOPS, "length": LENGTHS}


def columns_of(judged: JudgedExample, seen_answers: Collection[str]) -> dict[str, set[str]]:
    """The columns of each part that a question counts in."""
    example = judged.example
    return {
        "skills": skills_of(example, seen_answers, judged.gold),
        "hops": {hops_of(example)} if isinstance(example, Example) else set(),
        "length": {length_of(example)} if isinstance(example, Example) else set(),
    }


# The two answer rules, by the names that reports give them.
RULES: dict[str, Callable[[JudgedExample], bool]] = {
    "default": lambda one: one.right,
    "published": lambda one: one.published,
}
