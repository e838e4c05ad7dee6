"""Checking question sets: whether program, query and stored answer of each example agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kopl.answer_forms import answer_of
from kopl.answers import same_answer, same_answers
from kopl.errors import ProgramError
from kopl.example import Example
from kopl.executor import Executor
from kopl.sparql.errors import SparqlError
from kopl.sparql.evaluate import SparqlExecutor
from kopl.sparql.reader import read as read_query
from kopl_base.errors import ReadError

# What may be wrong with an example, in the order of the summary.
KINDS = (
    "not read",
    "program",
    "query",
    "answer of the program",
    "answer of the query",
    "program and query",
)
SHOWN = 5  # strings of a denotation in a message


@dataclass(frozen=True)
class Problem:
    """A failure or disagreement: its kind (of `KINDS`), the example's place and id, a sentence."""

    kind: str
    place: str
    id: str | None
    message: str

    def to_json(self) -> dict[str, Any]:
        """One line of ``--json``."""
        return {"kind": self.kind, "place": self.place, "id": self.id, "message": self.message}


@dataclass
class Summary:
    """How many examples were looked at, what they held, and how many problems of each kind."""

    examples: int = 0
    programs: int = 0
    answers: int = 0
    queries: int = 0
    queries_run: int = 0
    bad: int = 0
    problems: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """The last line of ``--json``."""
        return {
            "examples": self.examples,
            "programs run": self.programs,
            "answers compared": self.answers,
            "queries read": self.queries,
            "queries run": self.queries_run,
            "examples with problems": self.bad,
            "problems": {kind: self.problems[kind] for kind in KINDS if self.problems[kind]},
        }


class Checker:
    """Checks examples one by one; ``engine`` runs their queries, if it is given.

    ``executor`` should have a time limit where the examples are of unknown origin.
    """

    def __init__(self, executor: Executor, engine: SparqlExecutor | None = None) -> None:
        self.executor, self.engine = executor, engine
        self._base = engine.engine.dialect.base if engine is not None else None
        self.summary = Summary()

    def check(self, items: Iterable[tuple[str, Example | ReadError]]) -> Iterator[Problem]:
        """The problems of examples with their places, as `examples_or_errors` gives them."""
        for place, item in items:
            self.summary.examples += 1
            if isinstance(item, ReadError):
                found = [Problem("not read", place, None, item.message)]
            else:
                found = [
                    Problem(kind, place, item.id, message) for kind, message in self.faults(item)
                ]
            self.summary.bad += bool(found)
            self.summary.problems.update(problem.kind for problem in found)
            yield from found

    def faults(self, example: Example) -> Iterator[tuple[str, str]]:
        """(kind, sentence) for everything that is wrong with an example."""
        by_program = by_query = None
        try:
            by_program = self.executor.run(example.program).denotation
            self.summary.programs += 1
        except ProgramError as error:
            yield "program", f"{error.kind} error: {error}"
        if example.sparql is not None:
            try:
                query = read_query(example.sparql, base=self._base)
                self.summary.queries += 1
                if self.engine is not None:
                    by_query = self.engine.denotation(query)
                    self.summary.queries_run += 1
            except SparqlError as error:
                yield "query", f"{error.kind}: {error}"
        if (answer := example.answer) is not None:
            self.summary.answers += 1
            for name, found in (("program", by_program), ("query", by_query)):
                read = None if found is None else answer_of(found, example.answer_form)
                if read is not None and not _gives(read, answer):
                    given = f"stored is {answer!r}, the {name} gives {_listed(read)}"
                    yield f"answer of the {name}", given
        if example.answers:
            self.summary.answers += 1
            for name, found in (("program", by_program), ("query", by_query)):
                if found is not None and not same_answers(example.answers, found):
                    stored = _listed(list(example.answers))
                    given = f"stored are {stored}, the {name} gives {_listed(found)}"
                    yield f"answer of the {name}", given
        if by_program is not None and by_query is not None and not _same(by_program, by_query):
            yield (
                "program and query",
                f"the program gives {_listed(by_program)}, the query {_listed(by_query)}",
            )


def _gives(denotation: list[str], answer: str) -> bool:
    return len(denotation) == 1 and same_answer(answer, denotation[0])


def _same(left: list[str], right: list[str]) -> bool:
    """Whether two denotations hold the same answers."""
    if len(left) == len(right) and set(left) == set(right):
        return True
    return all(any(same_answer(a, b) for b in right) for a in left) and all(
        any(same_answer(a, b) for b in left) for a in right
    )


def _listed(denotation: list[str]) -> str:
    if not denotation:
        return "no answer"
    more = f" … ({len(denotation)} in all)" if len(denotation) > SHOWN else ""
    return ", ".join(map(repr, denotation[:SHOWN])) + more
