"""What a parser learns from corrections: of its users' questions, simulated.

    python benchmarks/corrections.py --run RUN --folder FOLDER          # all three, a table each
    python benchmarks/corrections.py --run RUN --folder FOLDER --only lesson

``lesson``: fifty questions are corrected and learnt at once; how many are right afterwards, how
many of three rewordings of each (benchmarks/people/rewordings.jsonl, written by somebody who saw
the questions alone), and how many of the run's own held-out questions.

``stream``: the questions of benchmarks/people about ``world``, part dev, asked in order; wrong ones
are corrected by their gold program, and after every fifty the run learns. The same questions asked
of the run that learns nothing stand beside them.

``choice``: which questions to correct, where people have time for some: half of the questions are
looked at, those with the least confidence first or in random order; the other half is asked.

Every run that is trained lies in FOLDER, and is not trained again when the command is given again.
RUN stays as it is. Processor time is that of the training command with all that it starts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

# The folder of this file has modules with the names of packages.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from kb import KnowledgeBase, KoplError, load  # noqa: E402
from kopl.answer_forms import read_form  # noqa: E402
from kopl.text import read  # noqa: E402

FOLDER = Path(__file__).resolve().parent
PEOPLE: dict[str, Any] = runpy.run_path(str(FOLDER / "people.py"), run_name="people")
REWORDINGS = FOLDER / "people" / "rewordings.jsonl"
BLOCK = 50
# How many questions are corrected before the others are asked.
BUDGETS = (20, 40)
EXPERIMENTS = ("lesson", "stream", "choice")


@dataclass(frozen=True)
class Reworded:
    """The id of a question and other wordings of it."""

    id: str
    rewordings: tuple[str, ...]


def rewordings() -> list[Reworded]:
    """The rewordings of fifty questions."""
    lines = REWORDINGS.read_text("utf-8").splitlines()
    items = map(json.loads, lines)
    return [Reworded(item["id"], tuple(item["rewordings"])) for item in items]


def answerable() -> list[Any]:
    """The questions about ``world`` of the development part that have a program, in order."""
    every = PEOPLE["questions"](FOLDER / "people" / "world.jsonl")
    return [one for one in every if one.part == "dev" and one.outside is None]


class Users:
    """People who ask a run, and correct what is wrong."""

    def __init__(self, run: Path, kb: KnowledgeBase) -> None:
        from parsers.parser import Parser

        self.run, self.parser = run, Parser.load(run, kb, new_kb=True)

    def ask(self, question: str, asked: Any) -> tuple[bool, float]:
        """Whether the answer to a wording of a question is right, and the confidence in it."""
        try:
            answer = next(iter(self.parser.ask(question)), None)
        except KoplError:
            answer = None
        if answer is None:
            return False, 0.0
        return bool(answer.answers) and asked.accepts(answer.answers), answer.confidence

    def right(self, asked: Iterable[Any]) -> list[bool]:
        """For each question whether it is answered right."""
        return [self.ask(one.question, one)[0] for one in asked]

    def correct(self, asked: Iterable[Any]) -> None:
        """Correct questions by their gold programs, in the file of the run."""
        from parsers.corrections import correct

        for one in asked:
            program = read(one.programs[0])
            form = None if one.form is None else read_form(one.form.to_json(), program)
            correct(self.parser, one.question, program, form=form, author="benchmark")


def copied(run: Path, folder: Path) -> Path:
    """A copy of a run without corrections, whose corrections may be written."""
    if not (folder / "parser.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        leave = shutil.ignore_patterns("corrections.jsonl", "resume.pt", "last.safetensors")
        shutil.copytree(run, part, ignore=leave)
        part.rename(folder)
    return folder


def learnt(old: Path, new: Path, options: Sequence[str]) -> dict[str, Any]:
    """Let a run learn from its corrections; what the command reported, with its processor time."""
    report = new.with_name(f"{new.name}.json")
    if not report.exists():
        begun = (new / "learned.json").exists()
        way = ["--resume", str(new)] if begun else ["--run", str(old), "-o", str(new), *options]
        if not begun:
            shutil.rmtree(new, ignore_errors=True)
        before = _processor()
        done = subprocess.run(
            [sys.executable, "-m", "kopl", "learn", *way, "--new-kb", "--json"],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        found = json.loads(done.stdout.splitlines()[-1])
        found["processor"] = round(_processor() - before, 1)
        part = report.with_suffix(".part")
        part.write_text(json.dumps(found), "utf-8")
        part.rename(report)
    found_before: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return found_before


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def share(right: Sequence[bool]) -> str:
    """How many of some are right, with the percentage."""
    if not right:
        return "none asked"
    return f"{sum(right)} of {len(right)} ({100 * sum(right) / len(right):.0f} %)"


# --- the experiments -----------------------------------------------------------------------------


def lesson(run: Path, folder: Path, kb: KnowledgeBase, options: Sequence[str]) -> Iterator[str]:
    """Fifty corrections learnt at once."""
    gold = {one.id: one for one in answerable()}
    reworded = rewordings()
    asked = [gold[one.id] for one in reworded]
    others = [(gold[one.id], text) for one in reworded for text in one.rewordings]
    old = copied(run, folder / "lesson")
    before = Users(old, kb)
    if not (old / "corrections.jsonl").exists():
        before.correct(asked)
    report = learnt(old, folder / "lesson-learned", options)
    after = Users(folder / "lesson-learned", kb)
    own = [one.right(asked) for one in (before, after)]
    told = [[one.ask(text, gold)[0] for gold, text in others] for one in (before, after)]
    rest = [one for one in gold.values() if one not in asked]
    beside = [one.right(rest) for one in (before, after)]
    yield "| | before | after |"
    yield "|---|---|---|"
    yield f"| corrected questions | {share(own[0])} | {share(own[1])} |"
    wrong = [at for at, right in enumerate(own[0]) if not right]
    yield f"| … those that were wrong | 0 of {len(wrong)} | {share([own[1][at] for at in wrong])} |"
    yield f"| rewordings, not seen | {share(told[0])} | {share(told[1])} |"
    missed = [at for at, right in enumerate(told[0]) if not right]
    now = share([told[1][at] for at in missed])
    yield f"| … those that were wrong | 0 of {len(missed)} | {now} |"
    yield f"| other questions of people | {share(beside[0])} | {share(beside[1])} |"
    held = report["report"]["old"]
    counts = (f"{held[when]} of {held['asked']}" for when in ("before", "after"))
    yield f"| the run's own, held out | {' | '.join(counts)} |"
    yield f"{report['processor']:.0f} s of processor time, {report['seconds']:.0f} s in all"


def stream(run: Path, folder: Path, kb: KnowledgeBase, options: Sequence[str]) -> Iterator[str]:
    """Questions in order, learning every fifty."""
    asked = answerable()
    blocks = [asked[at : at + BLOCK] for at in range(0, len(asked), BLOCK)]
    still = Users(run, kb)
    yield "| questions | of the run as it was | as it learnt | corrected by then | processor, s |"
    yield "|---|---|---|---|---|"
    now, place, corrected, cost = still, copied(run, folder / "stream-0"), 0, 0.0
    for number, block in enumerate(blocks):
        now = Users(place, kb)
        was, right = still.right(block), now.right(block)
        first = 1 + number * BLOCK
        yield (
            f"| {first} to {first + len(block) - 1} | {share(was)} | {share(right)} |"
            f" {corrected} | {cost:.0f} |"
        )
        if number + 1 == len(blocks):
            break
        wrong = [one for one, is_right in zip(block, right, strict=True) if not is_right]
        corrected += len(wrong)
        _corrected_once(now, wrong)
        new = folder / f"stream-{number + 1}"
        cost = learnt(place, new, options)["processor"]
        place = new


def _corrected_once(users: Users, asked: Sequence[Any]) -> None:
    """Correct those questions that are not corrected yet, as another call may have done some."""
    from parsers.corrections import FILE, read_corrections

    done = {one.key for one in read_corrections(users.run / FILE)}
    users.correct(one for one in asked if " ".join(one.question.split()) not in done)


def choice(run: Path, folder: Path, kb: KnowledgeBase, options: Sequence[str]) -> Iterator[str]:
    """Questions looked at by the least confidence or in random order."""
    ordered = sorted(answerable(), key=lambda one: hashlib.sha256(one.id.encode()).hexdigest())
    half = len(ordered) // 2
    pool, rest = ordered[:half], ordered[half:]
    still = Users(run, kb)
    found = {one.id: still.ask(one.question, one) for one in pool}
    orders: dict[str, Callable[[], list[Any]]] = {
        "least confident first": lambda: sorted(pool, key=lambda one: found[one.id][1]),
        "random": lambda: Random(1).sample(pool, len(pool)),
    }
    yield f"| looked at, of {len(pool)} | order | of these wrong | the {len(rest)} others, right |"
    yield "|---|---|---|---|"
    yield f"| 0 | | | {share(still.right(rest))} |"
    for budget in BUDGETS:
        for name, order in orders.items():
            looked = order()[:budget]
            wrong = [one for one in looked if not found[one.id][0]]
            old = copied(run, folder / f"choice-{name.split()[0]}-{budget}")
            _corrected_once(Users(old, kb), wrong)
            new = folder / f"{old.name}-learned"
            learnt(old, new, options)
            yield f"| {budget} | {name} | {len(wrong)} | {share(Users(new, kb).right(rest))} |"


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, help="the folder of a trained run")
    parser.add_argument("--folder", type=Path, required=True, help="where new runs are kept")
    parser.add_argument("--only", choices=EXPERIMENTS, help="one of the three")
    parser.add_argument(
        "--option", action="append", default=[], metavar="TEXT",
        help="an option of kopl learn, as --option=--replay=1000",
    )  # fmt: skip
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    kb = load("world")
    ways = {"lesson": lesson, "stream": stream, "choice": choice}
    for name in [arguments.only] if arguments.only else EXPERIMENTS:
        print(f"\n{name}:\n", flush=True)
        for line in ways[name](arguments.run, arguments.folder, kb, arguments.option):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
