"""How a trained parser answers questions that people would ask.

    python benchmarks/people.py --run runs/default                 # the development part
    python benchmarks/people.py --run runs/default --part test     # scores only
    python benchmarks/people.py --run runs/default --failures      # every question not answered
    python benchmarks/people.py --run runs/default --set languages --other-languages
    python benchmarks/people.py --check                            # programs against answers
    python benchmarks/people.py --linking                          # names found in the questions

The questions stand in benchmarks/people/*.jsonl, with programs, answers and categories; its
README.md says who wrote them and how. A question is *right* when what is said (the denotation, or
the yes or no that it is read as) is the answer of one of its programs, *empty* when nothing was
found, *refused* when no answer was given. A question from outside the knowledge base is right when
it is refused.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The folder of this file has a module with the name of a package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from kb import KnowledgeBase, KoplError, load  # noqa: E402
from kopl import Executor  # noqa: E402
from kopl.answer_forms import AnswerForm, answer_of, read_form  # noqa: E402
from kopl.answers import same_answers  # noqa: E402
from kopl.example import read_objects  # noqa: E402
from kopl.text import read  # noqa: E402
from kopl_base.errors import ReadError  # noqa: E402

FOLDER = Path(__file__).resolve().parent / "people"
SETS = ("world", "bookshop", "wd50k")
# Short questions about `world` in other languages.
LANGUAGES = "languages"
OUTSIDE = ("schema", "entity", "premise", "none")
SURE = 0.8


@dataclass(frozen=True)
class Asked:
    """A question with the denotations that are right for it; none for one from outside."""

    id: str
    question: str
    category: str
    part: str
    programs: tuple[str, ...]
    form: AnswerForm | None
    answers: tuple[tuple[str, ...], ...]
    outside: str | None

    def accepts(self, denotation: Iterable[str]) -> bool:
        """Whether one of the answers is this denotation, up to order and ways of writing."""
        found = list(denotation)
        return any(same_answers(answer, found) for answer in self.answers)


def questions(path: Path) -> Iterator[Asked]:
    """The questions of a file; raises ReadError with the line for one that is malformed."""
    for place, item in read_objects(path):
        if isinstance(item, ReadError):
            raise item
        try:
            yield _asked(item)
        except (KeyError, TypeError, ValueError, KoplError) as error:
            raise ReadError(str(error), place=place, source=str(path)) from None


def _asked(item: dict[str, Any]) -> Asked:
    programs = tuple(item["programs"])
    outside = item.get("outside")
    if outside is not None and outside not in OUTSIDE:
        raise ValueError(f"'outside' is {outside!r}, but must be one of {', '.join(OUTSIDE)}")
    if (outside is None) != bool(programs):
        raise ValueError("a question has programs, or 'outside' says why it has none")
    if item["part"] not in ("dev", "test"):
        raise ValueError(f"'part' is {item['part']!r}, but must be dev or test")
    forms = {str(read_form(item.get("answer_form"), read(text))) for text in programs}
    form = read_form(item.get("answer_form")) if forms else None
    answers = tuple(tuple(one) for one in item["answers"])
    if len(answers) != len(programs):
        raise ValueError(f"{len(programs)} programs, but {len(answers)} answers")
    return Asked(
        item["id"], item["question"], item["category"], item["part"], programs, form, answers,
        outside,
    )  # fmt: skip


def knowledge_base(name: str) -> KnowledgeBase:
    """The knowledge base that a set of questions is about, made from its sources.

    Raises KoplError where the data of WD50K, which KOPL_DATA names, is not there.
    """
    if name in ("world", LANGUAGES):
        return load("world")
    with tempfile.TemporaryDirectory(prefix="kopl-people-") as place:
        folder = Path(place)
        return _bookshop(folder) if name == "bookshop" else _wd50k(folder)


def _bookshop(folder: Path) -> KnowledgeBase:
    """The invented bookshop of docs/own-kb.md, with the mapping as that page edits it."""
    from kb.imports.tables import read_tables

    script = FOLDER.parent.parent / "docs" / "examples" / "make_bookshop.py"
    runpy.run_path(str(script))["make"](folder)
    shutil.copy(FOLDER / "bookshop.yaml", folder)
    return read_tables(folder / "bookshop.yaml")


def _wd50k(folder: Path) -> KnowledgeBase:
    """The statements of WD50K (Galkin et al. 2020) whose ends have names."""
    from kb.imports.factmap import read_fact_map
    from kb.imports.facts import read_fact_tables

    data = Path(os.environ.get("KOPL_DATA", ""))
    if not (data / "wd50k").is_dir():
        raise KoplError("this set is about WD50K: KOPL_DATA must name a folder with wd50k/")
    labels = (data / "fb15k237/entity2wikidata.json", data / "wd50k/relation_labels.json")
    for file in (FOLDER / "wd50k.map.json", *labels):
        shutil.copy(file, folder)
    tables = [data / "wd50k" / f"{part}.txt" for part in ("train", "valid", "test")]
    return read_fact_tables(tables, mapping=read_fact_map(folder / "wd50k.map.json"))


def check(kb: KnowledgeBase, asked: Iterable[Asked]) -> Iterator[str]:
    """What is wrong with questions: programs that do not run or do not give their answer."""
    executor = Executor(kb)
    for one in asked:
        for text, answer in zip(one.programs, one.answers, strict=True):
            try:
                result = executor.run(text)
            except KoplError as error:
                yield f"{one.id}: {text}: {error}"
                continue
            found = answer_of(result.denotation, one.form)
            if found != list(answer):
                yield f"{one.id}: {text}: gives {found[:9]}, expected {list(answer)[:9]}"
            if not found:
                yield f"{one.id}: {text}: finds nothing"


def linked(kb: KnowledgeBase, asked: Iterable[Asked]) -> Iterator[tuple[Asked, str, bool, int]]:
    """Each name in the first program of a question: whether linking finds it.

    Found are the names that something said in the question may stand for, by a name or an alias;
    how many of them there are comes last.
    """
    from kopl.traits import names_in
    from parsers.linking import Linker, Mentions
    from parsers.tokens import Question

    linker = Linker(kb)
    mentions = Mentions([], linker)
    for one in asked:
        question = Question.of(one.question)
        spans = mentions.of(question).names
        found = {name for span in spans for name in linker.names.meant(question.span(*span))}
        for text in one.programs[:1]:
            for name in dict.fromkeys(names_in(read(text))):
                yield one, name, name in found, len(found)


def linking(kb: KnowledgeBase, asked: list[Asked], failures: bool) -> Iterator[str]:
    """Lines of how many names are found."""
    rows = list(linked(kb, asked))
    found = sum(row[2] for row in rows)
    spans = {row[0].id: row[3] for row in rows}
    mean = sum(spans.values()) / len(spans) if spans else 0.0
    share = 100 * found / len(rows) if rows else 0.0
    yield f"{found} of {len(rows)} names are found ({share:.1f} %), among {mean:.1f} a question"
    for one, name, is_found, _ in rows:
        if failures and not is_found:
            yield f"{name:<32}{one.question}"


@dataclass(frozen=True)
class Outcome:
    """What a parser said to one question."""

    asked: Asked
    kind: str  # right, wrong, empty or refused
    confidence: float
    said: str
    reason: str = ""  # the kind of the refusal, where the parser says one

    @property
    def answered(self) -> bool:
        """Whether something was said."""
        return not self.reason and self.kind in ("right", "wrong") and not self.is_silent_right

    @property
    def is_silent_right(self) -> bool:
        """Whether it is right because nothing was said."""
        return self.kind == "right" and self.asked.outside is not None


def outcomes(
    run: str, kb: KnowledgeBase, asked: Iterable[Asked], new_kb: bool, other_languages: bool = False
) -> list[Outcome]:
    """Every question asked as `kopl ask` asks it."""
    from parsers.parser import Parser

    parser = Parser.load(run, kb, new_kb=new_kb, other_languages=other_languages)
    return [_outcome(parser, one) for one in asked]


def _outcome(parser: Any, one: Asked) -> Outcome:
    try:
        [answer, *_] = parser.ask(one.question) or [None]
    except KoplError as error:
        answer, said = None, str(error)
    else:
        said = "" if answer is None else str(answer.prediction.text)
    if answer is not None and (refused := answer.refused) is not None:
        kind = "right" if one.outside else "refused"
        said = f"{refused.kind}: {refused.message} ({'; '.join(refused.near)}) not: {said}"
        return Outcome(one, kind, answer.confidence, said, refused.kind)
    # A "no" about names that the question does not have is not said.
    if answer is None or answer.result is None or answer.unnamed:
        return Outcome(one, "right" if one.outside else "refused", 0.0, said)
    if not answer.answers:
        kind = "empty"
    else:
        kind = "right" if not one.outside and one.accepts(answer.answers) else "wrong"
    return Outcome(one, kind, answer.confidence, f"{said} → {'; '.join(answer.answers[:5])}")


KINDS = ("right", "wrong", "empty", "refused")


def table(found: list[Outcome]) -> Iterator[str]:
    """Lines of the table: by category, and over all."""
    yield f"{'':<14}{'asked':>6}" + "".join(f"{kind:>9}" for kind in KINDS) + f"{'right %':>9}"
    inside = [one for one in found if not one.asked.outside]
    outside = [one for one in found if one.asked.outside]
    groups = {name: [] for name in sorted({one.asked.category for one in inside})}
    for one in inside:
        groups[one.asked.category].append(one)
    for name, part in [*groups.items(), ("answerable", inside), ("outside", outside)]:
        kinds = Counter(one.kind for one in part)
        share = 100 * kinds["right"] / len(part) if part else 0.0
        counts = "".join(f"{kinds[kind]:>9}" for kind in KINDS)
        yield f"{name:<14}{len(part):>6}{counts}{share:>9.1f}"
    yield from of_silence(inside, outside)
    sure = [one for one in found if one.answered and one.confidence >= SURE]
    faults = [one for one in sure if one.kind != "right"]
    yield (
        f"of {len(sure)} answers at a confidence of {SURE:.0%} or more, {len(faults)}"
        f" ({_percent(faults, sure)}) are wrong;"
        f" {_percent([one for one in sure if not one.asked.outside], inside)} of the answerable"
        " are there"
    )


def of_silence(inside: list[Outcome], outside: list[Outcome]) -> Iterator[str]:
    """Lines of what is answered, and of what is refused for which reason."""
    answered = [one for one in inside if one.answered]
    share = _percent(answered, inside)
    yield f"answered: {len(answered)} of {len(inside)} answerable ones ({share})"
    refused = [one for one in outside if not one.answered]
    fitting = [one for one in refused if one.reason == one.asked.outside]
    kinds = Counter(one.asked.outside for one in outside)
    of_kind = Counter(one.asked.outside for one in fitting)
    by_kind = ", ".join(f"{kind} {of_kind[kind]} of {kinds[kind]}" for kind in OUTSIDE)
    yield (
        f"refused: {len(refused)} of {len(outside)} outside ones ({_percent(refused, outside)}),"
        f" {len(fitting)} with the right reason ({_percent(fitting, outside)}): {by_kind}"
    )


def _percent(part: list[Outcome], whole: list[Outcome]) -> str:
    return f"{100 * len(part) / len(whole):.0f} %" if whole else "0 %"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--run", help="the folder of a trained run")
    parser.add_argument(
        "--set", choices=[*SETS, LANGUAGES], default="world", help="(default: world)"
    )
    parser.add_argument(
        "--other-languages", action="store_true", help="read other languages by what words mean"
    )
    parser.add_argument("--new-kb", action="store_true", help="the run was trained on another one")
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--failures", action="store_true", help="list them (not of the test part)")
    parser.add_argument("--check", action="store_true", help="run the programs, ask nothing")
    parser.add_argument("--linking", action="store_true", help="count the names found, ask nothing")
    arguments = parser.parse_args()
    if arguments.failures and arguments.part == "test":
        parser.error("the test part is looked at for scores only")
    if not arguments.check and not arguments.linking and not arguments.run:
        parser.error("--run, --linking or --check is needed")
    kb = knowledge_base(arguments.set)
    every = list(questions(FOLDER / f"{arguments.set}.jsonl"))
    if arguments.check:
        faults = list(check(kb, every))
        print("\n".join([*faults, f"{len(every)} questions, {len(faults)} faults"]))
        return 1 if faults else 0
    asked = [one for one in every if one.part == arguments.part]
    if arguments.linking:
        print("\n".join(linking(kb, asked, arguments.failures)))
        return 0
    found = outcomes(arguments.run, kb, asked, arguments.new_kb, arguments.other_languages)
    print(f"{arguments.set}, {arguments.part}: {arguments.run}")
    print("\n".join(table(found)))
    if arguments.failures:
        for one in found:
            if one.kind != "right" or one.reason not in ("", one.asked.outside):
                print(f"{one.kind:<8}{one.confidence:>5.0%}  {one.asked.question}\n    {one.said}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KoplError as error:
        sys.exit(f"people.py: {error}")
