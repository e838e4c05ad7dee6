"""Running drafts: what each call of a program gives, as far as it has no holes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kb.arrays import Ids, first_by
from kopl.denotation import Located, Outcome, Values
from kopl.drafts import Draft, Path
from kopl.errors import LimitError, ProgramError, TypingError
from kopl.program import Call, linked

if TYPE_CHECKING:
    from kopl.executor import Executor

State = Literal["ok", "empty", "error", "waiting"]


@dataclass(frozen=True, slots=True)
class Shown:
    """Something that a call gave, as people read it; ``id`` is that of a node."""

    text: str
    kind: Literal["entity", "concept", "value"] = "value"
    id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The object that `DraftStep.to_json` holds."""
        return {"text": self.text, "id": self.id, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class DraftStep:
    """What one call of a draft gave, by its number in post-order and its path.

    ``state`` is "waiting" where something below is missing or failed; ``count`` says how many there
    are, ``values`` are the first of them. ``became_empty``: it is the call, or one of them, at
    which nothing was left. ``ms`` are the milliseconds that it took, 0 for what was known already.
    """

    number: int
    path: Path
    state: State
    count: int = 0
    values: tuple[Shown, ...] = ()
    ms: float = 0.0
    became_empty: bool = False
    message: str | None = None
    # Of an error: that of the `ProgramError`.
    kind: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The object that services give."""
        return {
            "number": self.number,
            "path": [*self.path],
            "state": self.state,
            "count": self.count,
            "values": [value.to_json() for value in self.values],
            "ms": round(self.ms, 3),
            "became_empty": self.became_empty,
            "message": self.message,
        }


def steps(
    executor: Executor, draft: Draft, *, shown: int = 10, shared: dict[Call, Outcome] | None = None
) -> list[DraftStep]:
    """What each call of a draft gives, as far as it is whole; each whole call runs once.

    ``shared`` keeps what calls gave, and grows: with it, calls that did not change do not run
    again. The limits of the executor hold for all of the draft together; what exceeds them, and
    what does not type, is an error of its step.
    """
    shared = {} if shared is None else shared
    wrong = {}
    for problem in reversed(draft.problems()):
        wrong[problem.path] = problem.message  # the first of a call
    found: list[DraftStep] = []
    is_over = False
    begin = time.perf_counter()
    links, calls = linked(draft), draft.calls()
    for number, path in enumerate(draft.paths()):
        if path in wrong:
            kind = TypingError.kind
            found.append(DraftStep(number, path, "error", message=wrong[path], kind=kind))
            continue
        call, inputs = calls[number], links[number][1]
        if is_over or call is None or any(found[at].state in ("waiting", "error") for at in inputs):
            found.append(DraftStep(number, path, "waiting"))
            continue
        before = time.perf_counter()
        known = call in shared
        try:
            outcome = executor.outcome(call, shared)
            executor.enforce(outcome, begin, number)
        except ProgramError as error:
            is_over = isinstance(error, LimitError)  # what it may use is used up
            step = DraftStep(number, path, "error", message=error.message, kind=error.kind)
            found.append(step)
            continue
        ms = 0.0 if known else (time.perf_counter() - before) * 1000
        count = len(outcome)
        became_empty = count == 0 and all(found[at].count for at in inputs)
        values = tuple(first_values(outcome, shown))
        state: State = "ok" if count else "empty"
        found.append(DraftStep(number, path, state, count, values, ms, became_empty))
    return found


def first_values(outcome: Outcome, limit: int) -> Iterator[Shown]:
    """The first of what a call gave, in the order in which it is printed; nodes with their ids."""
    if isinstance(outcome, Located):
        kb = outcome.kb
        for node in first_nodes(outcome, limit).tolist():
            kind: Literal["entity", "concept"] = "entity" if kb.is_entity(node) else "concept"
            yield Shown(kb.name_of(node), kind, kb.id_of(node))
    elif isinstance(outcome, Values):
        for text in outcome.kb.value_texts(outcome.numbers[:limit].tolist()):
            yield Shown(text)
    else:
        for text in outcome.words[:limit]:
            yield Shown(text)


def first_nodes(located: Located, limit: int) -> Ids:
    """The first nodes of a set, by name, then as the knowledge base numbers them."""
    return first_by(located.kb.name_numbers(located.ids), located.ids, limit)
