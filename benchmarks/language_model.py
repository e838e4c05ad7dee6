"""How a language model does as a parser: settings side by side, each question kept.

    kopl train --config llm --set llm.local=MODEL.gguf --set output=runs/llm
    python benchmarks/language_model.py --run runs/llm --results RESULTS.jsonl --every 3
    python benchmarks/language_model.py --run runs/llm --results RESULTS.jsonl --part test \\
        --cells grammar beside --pointer runs/default
    python benchmarks/language_model.py --results RESULTS.jsonl              # the tables alone

Of the questions of benchmarks/people (--set, --part) or of a file of questions with programs
(--questions; --programs compares programs up to order, not answers) every so manieth one is asked
in each cell of settings. A line is written to --results for each question and cell as soon as it is
answered: begun again, the command goes on where it was, and what the model wrote is kept besides
(docs/language-models.md). --part test writes scores only. Nothing is refused, but for the cells
"refusing". Seconds are of this process, of a model that runs in it, for the cell that is asked
first of all; the first question of a process reads the fixed part of the prompt, too, and is not
counted among them. Markdown goes to standard output, each share with its 95 % interval (Wilson).
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent.parent
# The folder of this file has a module with the name of a package.
sys.path[:] = [str(ROOT), *(p for p in sys.path if Path(p).resolve() != ROOT / "benchmarks")]

from kb import KnowledgeBase, load  # noqa: E402
from kopl.answers import same_answers  # noqa: E402
from kopl.example import Example, read_examples  # noqa: E402
from kopl_base.chat import AskError  # noqa: E402
from kopl_base.errors import KoplError  # noqa: E402
from parsers.evaluation.accuracy import wilson  # noqa: E402
from parsers.matching import exact_match  # noqa: E402
from parsers.parser import Answer, Parser  # noqa: E402

# Beside the script stands the folder of its questions, which a type checker takes for the module.
people: Any = importlib.import_module("benchmarks.people")

# What each cell changes of the run's settings; ``guided`` is whether replies are sent back.
PLAIN = {"grammar": "none", "repairs": 0}
ONCE = {"repairs": 0}
CELLS: dict[str, dict[str, Any]] = {
    "zero": {**ONCE, "examples": 0},
    "by chance": {**ONCE, "retrieved": False},
    "many by chance": {**ONCE, "retrieved": False, "examples": 24},
    "no schema": {**ONCE, "schema": False},
    "no schema, no grammar": {**PLAIN, "schema": False},
    "no grammar": PLAIN,
    "grammar": ONCE,
    "5 examples": {**ONCE, "examples": 5},
    "8 examples": {**ONCE, "examples": 8},
    "16 examples": {**ONCE, "examples": 16},
    "32 examples": {**ONCE, "examples": 32},
    "repairs": {"repairs": 2},
    "votes": {**ONCE, "samples": 3},
    "7 votes": {**ONCE, "samples": 7},
    "beside": {**ONCE, "beside": True},
    "pointer": {"beside": True, "sure": 0.0},
    "beside, refusing": {**ONCE, "beside": True},
    "pointer, refusing": {"beside": True, "sure": 0.0},
}
RIGHT, WRONG, EMPTY, FAILED, REFUSED = "right", "wrong", "empty", "failed", "refused"


class Question(Protocol):
    """What is asked, and what is right."""

    id: str
    question: str

    def judge(self, answer: Answer | None) -> str:
        """What became of it."""


@dataclass(frozen=True)
class OfPeople:
    """A question that people asked; from outside, it is right when nothing is said."""

    asked: Any  # of benchmarks/people.py

    @property
    def id(self) -> str:
        """Its name."""
        return self.asked.id

    @property
    def question(self) -> str:
        """Its text."""
        return self.asked.question

    def judge(self, answer: Answer | None) -> str:
        """By what is said."""
        if answer is None or answer.refused is not None or answer.unnamed:
            return RIGHT if self.asked.outside else REFUSED
        if answer.result is None:
            return FAILED
        if not answer.answers:
            return EMPTY
        return RIGHT if not self.asked.outside and self.asked.accepts(answer.answers) else WRONG


@dataclass(frozen=True)
class OfFile:
    """A question with a program, compared by its answers or by the program."""

    example: Example
    id: str
    by_program: bool

    @property
    def question(self) -> str:
        """Its text."""
        return self.example.question

    def judge(self, answer: Answer | None) -> str:
        """By the program, or by what is said."""
        if answer is None or answer.program is None:
            return FAILED
        if self.by_program:
            return RIGHT if exact_match(self.example.program, answer.program) else WRONG
        if answer.result is None:
            return FAILED
        if not answer.answers:
            return EMPTY
        one = self.example
        wanted = one.answers or ((one.answer,) if one.answer is not None else ())
        return RIGHT if same_answers(wanted, answer.answers) else WRONG


@dataclass(frozen=True)
class Line:
    """What became of one question in one cell."""

    set: str
    part: str
    cell: str
    id: str
    kind: str
    confidence: float
    seconds: float
    replies: int
    read: int
    written: int
    warm: bool
    said: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What is asked once."""
        return self.set, self.part, self.cell, self.id


def lines_of(path: Path) -> list[Line]:
    """The lines of a file of results, but for one that a stop cut off; none where there is none."""
    found = []
    for one in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            found.append(Line(**json.loads(one)))
        except (ValueError, TypeError):
            continue
    return found


class Asking:
    """Asks a run in one cell after the other; the model is loaded once."""

    def __init__(self, run: str, kb: KnowledgeBase | None, pointer: str) -> None:
        self.parser = Parser.load(run, kb, new_kb=True)
        self.model: Any = self.parser.model
        self.pointer = pointer
        self.given = self.model.own

    def set(self, cell: str) -> None:
        """Take the settings of a cell."""
        changes = dict(CELLS[cell])
        if changes.pop("beside", False):
            changes["beside"] = str(Path(self.pointer).resolve())
        beside = vars(self.model).get("_beside")
        for made in ("_prompter", "grammar", "_beside"):
            vars(self.model).pop(made, None)
        self.model.own = replace(self.given, **changes)
        if beside is not None and self.model.own.beside:  # loaded once
            beside.sure = self.model.own.sure
            self.model._beside = beside

    def ask(self, one: Question, refuses: bool) -> tuple[Answer | None, list[float]]:
        """The answer, with seconds, replies asked for, and tokens read and written."""
        usage = self.model.client.usage
        before = [time.process_time(), usage.asked, usage.read, usage.written]
        try:
            least = None if refuses else 0.0
            [answer, *_] = self.parser.ask(one.question, least_confidence=least) or [None]
        except AskError as error:
            if error.status != 400:  # not this question, but the server
                raise
            answer = None
        except KoplError:
            answer = None
        after = [time.process_time(), usage.asked, usage.read, usage.written]
        return answer, [b - a for a, b in zip(before, after, strict=True)]


def measure(
    asking: Asking, questions: Sequence[Question], cells: list[str], name: str, part: str,
    results: Path,
) -> None:  # fmt: skip
    """Ask what was not asked yet, and write a line for each.

    A question is asked in all cells before the next one: prompts that begin alike are read once,
    and only the seconds of the first cell are those of a question.
    """
    done = {line.key for line in lines_of(results)}
    warm = False
    with results.open("a+", encoding="utf-8") as file:
        file.seek(max(0, file.seek(0, 2) - 1))
        if file.read() not in ("", "\n"):  # a line that a stop cut off
            file.write("\n")
        for one in questions:
            left = [cell for cell in cells if (name, part, cell, one.id) not in done]
            first = left == cells
            for cell in left:
                asking.set(cell)
                answer, (seconds, replies, read, written) = asking.ask(one, "refusing" in cell)
                said = "" if part == "test" or answer is None else str(answer.prediction.text)
                line = Line(
                    name, part, cell, one.id, one.judge(answer),
                    round(answer.confidence, 4) if answer else 0.0, round(seconds, 2),
                    int(replies), int(read), int(written), warm and first, said,
                )  # fmt: skip
                file.write(json.dumps(asdict(line), ensure_ascii=False) + "\n")
                file.flush()
                first = first and not replies
            warm = True


def table(lines: Sequence[Line]) -> Iterator[str]:
    """Markdown of all sets, parts and cells."""
    groups: dict[tuple[str, str], dict[str, list[Line]]] = {}
    for line in lines:
        groups.setdefault((line.set, line.part), {}).setdefault(line.cell, []).append(line)
    for (name, part), cells in groups.items():
        yield f"\n{name}, {part}\n"
        yield (
            "| cell | n | right | 95 % | wrong | empty | failed | refused | s | tokens read,"
            " written |"
        )
        yield "|---|---|---|---|---|---|---|---|---|---|"
        for cell in sorted(cells, key=list(CELLS).index):
            yield row(cell, cells[cell])


def row(cell: str, lines: Sequence[Line]) -> str:
    """A line of the table. Seconds and tokens are those of questions that the model was asked."""
    kinds = [line.kind for line in lines]
    right = kinds.count(RIGHT)
    low, high = wilson(right, len(lines))
    counts = " | ".join(str(kinds.count(kind)) for kind in (WRONG, EMPTY, FAILED, REFUSED))
    asked = [line for line in lines if line.warm and line.replies]
    cost = "– | –"
    if asked:
        tokens = f"{mean(one.read for one in asked):.0f}, {mean(one.written for one in asked):.0f}"
        cost = f"{median(one.seconds for one in asked):.1f} | {tokens}"
    return (
        f"| {cell} | {len(lines)} | {100 * right / len(lines):.0f} % |"
        f" {100 * low:.0f}–{100 * high:.0f} | {counts} | {cost} |"
    )


def asked_of(arguments: argparse.Namespace) -> tuple[str, list[Question]]:
    """The name of the set, and its questions, every so manieth."""
    chosen = slice(arguments.offset, None, arguments.every)
    found: list[Question]
    if arguments.questions:
        path = Path(arguments.questions)
        examples = list(enumerate(read_examples(path)))[chosen][: arguments.most]
        found = [OfFile(one, str(number), arguments.programs) for number, one in examples]
        return path.stem, found
    every = people.questions(people.FOLDER / f"{arguments.set}.jsonl")
    of_part = [one for one in every if one.part == arguments.part]
    inside = [one for one in of_part if bool(one.outside) == arguments.outside]
    name = f"{arguments.set}, outside" if arguments.outside else arguments.set
    return name, [OfPeople(one) for one in inside[chosen]][: arguments.most]


def main() -> int:
    """Ask what is left to ask, print all tables."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--run", help="a run of model: llm; without one, only tables are printed")
    parser.add_argument("--pointer", default="", help="a trained run, for the cells beside one")
    parser.add_argument("--results", type=Path, required=True, help="JSON lines, read and written")
    parser.add_argument("--set", choices=people.SETS, default="world", help="(default: world)")
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--outside", action="store_true", help="ask those without an answer")
    parser.add_argument("--questions", help="a file of questions with programs, instead")
    parser.add_argument("--programs", action="store_true", help="of it, compare programs")
    parser.add_argument("--kb", help="the knowledge base (default: that of the set, or run's own)")
    parser.add_argument(
        "--cells", nargs="+", choices=list(CELLS), default=["no grammar", "grammar"]
    )
    parser.add_argument("--every", type=int, default=1, help="ask each N-th (default: all)")
    parser.add_argument("--offset", type=int, default=0, help="beginning with this one")
    parser.add_argument("--most", type=int, help="so many at most")
    arguments = parser.parse_args()
    needs_pointer = [cell for cell in arguments.cells if "beside" in CELLS[cell]]
    if arguments.run and needs_pointer and not arguments.pointer:
        parser.error(f"--pointer RUN is needed for {', '.join(needs_pointer)}")
    if arguments.run:
        name, questions = asked_of(arguments)
        kb = load(arguments.kb) if arguments.kb else None
        if kb is None and not arguments.questions:
            kb = people.knowledge_base(arguments.set)
        asking = Asking(arguments.run, kb, arguments.pointer)
        measure(asking, questions, arguments.cells, name, arguments.part, arguments.results)
    print("\n".join(table(lines_of(arguments.results))))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KoplError as error:
        sys.exit(f"language_model.py: {error}")
