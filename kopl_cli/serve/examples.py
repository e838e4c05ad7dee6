"""Examples of what a knowledge base knows, drawn from it: questions, or programs where none are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kb import KnowledgeBase
from kb.arrays import Ids
from kopl import functions as f
from kopl.completion import Completer
from kopl.drafts import HOLE, Draft, Slot
from kopl.errors import ProgramError
from kopl.program import Call
from kopl.traits import asking, names_in
from kopl_base.errors import KoplError
from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.editing import Completers
from kopl_cli.serve.routes import MAYBE_TEXT, TEXT, Field, Route, listed, record

# Questions that are drawn for each one that is shown; the best known things are kept.
DRAWN = 4
# Of so many entities with most facts programs are made.
FAMOUS = 60
# How many the page shows first, which asks for the seed 0.
FIRST = 6
# Answers that are shown of one example.
ANSWERS = 5
# Seeds whose examples are kept of a knowledge base.
KEPT = 16


@dataclass(frozen=True)
class Shown:
    """A question, or none, with a program, what it gives, and what it is an example of."""

    question: str | None
    program: Call
    answers: Sequence[str]
    about: str

    @property
    def is_neat(self) -> bool:
        """Whether it is a question as one writes it who takes care."""
        said = self.question
        return said is None or (said[:1].isupper() and said.endswith("?"))

    def to_json(self) -> dict[str, Any]:
        """The object of the answer."""
        return {
            "question": self.question,
            "program": str(self.program),
            "answers": [*self.answers[:ANSWERS]],
            "about": self.about,
        }


class Examples:
    """Examples of the knowledge bases that are served; what was drawn is kept."""

    def __init__(self, playground: Playground) -> None:
        self._playground = playground
        self._completers = playground.part(Completers)
        self._lock = threading.Lock()
        self._made: WeakKeyDictionary[Base, dict[tuple[int, int], list[Shown]]] = (
            WeakKeyDictionary()
        )

    def prepare(self, base: Base) -> None:
        """Draw those that the page shows first, unless the server stops already."""
        if not self._playground.closing.is_set():
            self.of(base, 0, FIRST)

    def of(self, base: Base, seed: int, count: int) -> list[Shown]:
        """So many examples, fewer where there are no more; the same for the same seed."""
        with self._lock:
            kept = self._made.setdefault(base, {})
            if (seed, count) not in kept:
                if len(kept) >= KEPT:
                    kept.clear()
                kept[seed, count] = draw(base, self._completers.of(base), seed, count)
            return kept[seed, count]


def draw(base: Base, completer: Completer, seed: int, count: int) -> list[Shown]:
    """Examples of many kinds about things that many facts are known of."""
    found = varied(base.kb, [*questions(base, seed, count * DRAWN)], count)
    if len(found) < count:
        known = {one.program for one in found}
        made = [one for one in programs(base, completer, seed) if one.program not in known]
        found += varied(base.kb, made, count - len(found))
    return found


def varied(kb: KnowledgeBase, found: Sequence[Shown], count: int) -> list[Shown]:
    """Of the examples some of each kind in turn, of each first neat ones about the famous."""
    kinds: dict[str, list[Shown]] = {}
    for one in sorted(found, key=lambda one: (not one.is_neat, -fame(kb, one.program))):
        kinds.setdefault(one.about, []).append(one)
    turns = max(map(len, kinds.values()), default=0)
    chosen = [part[turn] for turn in range(turns) for part in kinds.values() if turn < len(part)]
    return chosen[:count]


def fame(kb: KnowledgeBase, program: Call) -> float:
    """How many facts there are of the least known thing that a program names."""
    names = names_in(program)
    counts = [int(kb.fact_counts(nodes).max()) for name in names if len(nodes := kb.named(name))]
    return min(counts, default=0)


def questions(base: Base, seed: int, count: int) -> Iterator[Shown]:
    """Questions as people write them, as far as the knowledge base yields some."""
    from generation.blocks import Options, generate

    options = Options(profile="people", sparql=False, verify=0.0)
    try:
        for example in generate(base.kb, count, seed, options=options):
            if example.answer_form is None and example.answer is not None:
                yield Shown(
                    example.question, example.program, [example.answer], asking(example.program)
                )
    except KoplError:
        # A small knowledge base yields few questions; then programs stand for them.
        return


# --- programs where there are no questions --------------------------------------------------------


def programs(base: Base, completer: Completer, seed: int) -> Iterator[Shown]:
    """Short programs of several kinds about entities that many facts are known of."""
    chance, kb = Random(seed), base.kb
    famous = first(kb, FAMOUS)
    chance.shuffle(famous)
    shapes = (
        [f.QUERY_ATTR],
        [f.RELATE, f.QUERY_NAME],
        [f.RELATE, f.COUNT],
        [f.RELATE, f.RELATE, f.QUERY_NAME],
        [f.QUERY_ATTR_UNDER_CONDITION],
        [f.SELECT_AMONG],
    )
    for at, entity in enumerate(famous):
        functions = shapes[at % len(shapes)]
        start = Draft(f.FIND, (), (kb.name_of(entity),))
        if functions[0] is f.SELECT_AMONG:
            names = [kb.name_of(concept) for concept in kb.concepts_of(entity)]
            if not names:
                continue
            start = Draft(f.FILTER_CONCEPT, (Draft(f.FIND_ALL),), (chance.choice(names),))
        draft = start
        for function in functions:
            draft = written(completer, Draft(function, (draft,)), chance)
            if not draft.is_whole:
                break
        else:
            program = draft.call()
            try:
                answers = base.executor.denote(program)
            except ProgramError:
                continue
            if answers:
                yield Shown(None, program, answers, asking(program))


def first(kb: KnowledgeBase, count: int) -> list[int]:
    """The entities that most facts are known of."""
    counts: Ids = kb.fact_counts(kb.entities)
    best: list[int] = np.argsort(-counts, kind="stable")[:count].tolist()
    return [node for node in best if kb.name_of(node)]


def written(completer: Completer, draft: Draft, chance: Random) -> Draft:
    """A draft with its last call's arguments drawn from what may stand there."""
    for index in range(len(draft.arguments)):
        if draft.arguments[index] is not None:
            continue
        found = completer.complete(draft, Slot((), "argument", index), limit=8).suggestions
        if not found:
            return HOLE
        one = chance.choice(found)
        for place, said in ((index, one.text), *one.sets):
            draft = draft.with_argument((), place, said)
    return draft


def _examples(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    found = playground.part(Examples).of(base, given["seed"], given["count"])
    return {"examples": [one.to_json() for one in found]}


ROUTES = [
    Route(
        "GET",
        "/api/examples",
        "Examples of what the knowledge base knows, drawn from it; the same for the same seed.",
        _examples,
        (
            Field("seed", "integer", "another one gives others", default=0),
            Field("count", "integer", "at most so many", default=FIRST, least=1, most=30),
        ),
        record(
            examples=listed(
                record(question=MAYBE_TEXT, program=TEXT, answers=listed(TEXT), about=TEXT)
            )
        ),
    )
]
