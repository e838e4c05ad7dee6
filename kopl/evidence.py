"""The facts that an answer rests on.

A set of facts *witnesses* a part of an answer when the program gives that part on these facts
alone, and no smaller set of them does. The evidence of an answer is the union of the witnesses of
all its parts. Its parts are the strings of the denotation; of a number, what was counted; of a
superlative, every quantity compared; of a "no", every value compared. Facts are attributes and
relations, each with its qualifiers, and memberships of entities in concepts. The hierarchy of the
concepts is schema: it is given.

A rule (`kopl.evidence_rules`) turns what is wanted of a call into rows: something it gives, the
fact that puts it there, and what that takes of the call's inputs. Going down by them from the
answer reaches all facts that it can be derived from. That is the evidence already, unless a fact
serves two calls: then one derivation may hold another. Only then the derivations are written out,
up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from kb import Builder, KnowledgeBase
from kb.arrays import EMPTY, Ids, as_ids, contains, intersect, unite
from kb.store import QualifierMap
from kopl import functions as f
from kopl.denotation import Located, Outcome, Values
from kopl.evidence_rules import NONE, RULES, Given, Kind, Rows
from kopl.program import Call
from kopl.typecheck import Step
from kopl.types import Type

KINDS: tuple[Kind, ...] = ("relation", "attribute", "membership", "name")

# How many witnesses of one thing are written out, and how much work all of them may be. Beyond
# that the facts of all derivations are given, among which some may be in no witness.
MOST_WITNESSES = 1000
MOST_WORK = 1_000_000


@dataclass(frozen=True, slots=True)
class EvidenceFact:
    """A fact of the evidence in words, with the ids of its nodes and its qualifiers.

    ``kind`` "name" is for a node that is there by its name alone: no fact put it there.
    ``target`` is the id of the object where that is a node. ``call`` is the call that the fact
    serves, by number in post-order.
    """

    kind: Kind
    call: int
    subject: str
    subject_id: str
    predicate: str
    object: str
    target: str | None
    qualifiers: QualifierMap

    @property
    def text(self) -> str:
        """The fact on one line, such as ``Norway | capital | Oslo [start time: 1814]``."""
        line = f"{self.subject} | {self.predicate} | {self.object}"
        pairs = [f"{key}: {', '.join(map(str, vs))}" for key, vs in self.qualifiers.items()]
        return f"{line} [{'; '.join(pairs)}]" if pairs else line

    def to_json(self) -> dict[str, Any]:
        """The object that commands print with ``--json``."""
        return {
            "kind": self.kind,
            "call": self.call,
            "subject": self.subject,
            "subject_id": self.subject_id,
            "predicate": self.predicate,
            "object": self.object,
            **({"object_id": self.target} if self.target is not None else {}),
            "qualifiers": {key: [*map(str, vs)] for key, vs in self.qualifiers.items()},
        }


class Evidence:
    """The facts that an answer rests on; `len` counts them.

    ``is_minimal``: each fact is in a witness. Otherwise there were too many witnesses to be written
    out, and some facts may be ones that the answer can be derived from, but never needs.
    """

    def __init__(
        self, kb: KnowledgeBase, by_call: Sequence[dict[Kind, Ids]], is_minimal: bool
    ) -> None:
        self.kb, self.is_minimal = kb, is_minimal
        self._by_call = by_call

    def numbers(self, kind: Kind) -> Ids:
        """The facts of one kind by their numbers in the knowledge base.

        Of names, the nodes that are in the answer by their names, whatever the facts.
        """
        return unite([found[kind] for found in self._by_call if kind in found])

    def _ends(self) -> Iterator[Ids]:
        for kind in KINDS[:-1]:
            for column in _ends_of(self.kb, kind, self.numbers(kind)):
                yield np.unique(column)

    def __len__(self) -> int:
        return sum(len(self.numbers(kind)) for kind in KINDS)

    def facts(self, call: int | None = None) -> Iterator[EvidenceFact]:
        """The facts, each once; of one call those that serve it, by its number.

        First relations and attributes, in the order of the calls, then memberships and names.
        """
        at = range(len(self._by_call)) if call is None else [call]
        for kind in KINDS:
            seen = EMPTY
            for number in at:
                new = self._by_call[number].get(kind, EMPTY)
                new = new[~contains(seen, new)]
                seen = unite([seen, new])
                for fact in new.tolist():
                    yield self._fact(kind, number, fact)

    def _fact(self, kind: Kind, call: int, number: int) -> EvidenceFact:
        kb, target, qualifiers = self.kb, None, {}
        if kind == "relation":
            relation = kb.relational_fact(number)
            subject, target = relation.head, relation.tail
            predicate, qualifiers = relation.relation, relation.qualifiers
        elif kind == "attribute":
            literal = kb.literal_fact(number)
            subject, qualifiers = literal.entity, literal.qualifiers
            predicate, shown = literal.key, str(literal.value)
        elif kind == "membership":
            [member], [concept] = (c.tolist() for c in _ends_of(kb, kind, as_ids([number])))
            subject, predicate, target = kb.id_of(member), "instance of", kb.id_of(concept)
        else:
            subject, predicate = kb.id_of(number), "name"
            shown = kb.name_of(number)
        if target is not None:
            shown = kb.name_of(kb.node(target))
        name = kb.name_of(kb.node(subject))
        return EvidenceFact(kind, call, name, subject, predicate, shown, target, qualifiers)

    def to_json(self, limit: int | None = None) -> dict[str, Any]:
        """The object that commands print with ``--json``; with a limit only its first facts."""
        shown = [fact.to_json() for fact in islice(self.facts(), limit)]
        return {"count": len(self), "minimal": self.is_minimal, "facts": shown}

    def knowledge_base(self) -> KnowledgeBase:
        """The evidence alone: these facts, what they are about, and the concepts as they are.

        The program gives the same answer on it.
        """
        builder, kb = Builder(), self.kb
        for concept in range(kb.entity_count, kb.node_count):
            parents = map(kb.id_of, kb.parents(concept))
            builder.add_concept(kb.id_of(concept), kb.name_of(concept), parents)
        concepts: dict[int, list[str]] = {}
        members = self.numbers("membership")
        for entity, concept in zip(
            kb.members(members).tolist(), kb.joined(members).tolist(), strict=True
        ):
            concepts.setdefault(entity, []).append(kb.id_of(concept))
        for node in unite([*self._ends(), self.numbers("name")]).tolist():
            if kb.is_entity(node):
                builder.add_entity(kb.id_of(node), kb.name_of(node), concepts.get(node, ()))
        for number in self.numbers("attribute").tolist():
            literal = kb.literal_fact(number)
            builder.add_attribute(literal.entity, literal.key, literal.value, literal.qualifiers)
        for number in self.numbers("relation").tolist():
            fact = kb.relational_fact(number)
            builder.add_fact(fact.head, fact.relation, fact.tail, fact.qualifiers)
        return builder.build()


def _ends_of(kb: KnowledgeBase, kind: Kind, numbers: Ids) -> tuple[Ids, ...]:
    """The nodes that facts of a kind are about, one column for each end."""
    if kind == "relation":
        return kb.relational.subject[numbers], kb.relational.object[numbers]
    if kind == "attribute":
        return (kb.literals.subject[numbers],)
    if kind == "membership":
        return kb.members(numbers), kb.joined(numbers)
    return (numbers,)


# --- going down from the answer -----------------------------------------------------------------


def evidence_of(
    kb: KnowledgeBase, steps: Sequence[Step], outcomes: Sequence[Outcome], only: Ids | None = None
) -> Evidence:
    """The facts that the answer of a program rests on, given what its calls gave.

    ``only``: what these nodes or values of the answer rest on, by number.
    """
    steps, outcomes = [*steps], [*outcomes]
    last = outcomes[-1]
    size = len(steps)
    if steps[-1].function.output in (Type.ENTITIES, Type.FACTS):
        # A program that ends in a set is answered by its names.
        asked = Call(f.QUERY_NAME, (steps[-1].call,))
        steps.append(Step(asked, f.QUERY_NAME, (size - 1,), ()))
        outcomes.append(last)
    free = _free(steps, outcomes)
    rows = _rows(kb, steps, outcomes, free, only)
    reached = [_facts(part) for part in rows]
    is_minimal = True
    if _may_hold_more(kb, steps, outcomes, free, reached):
        needed = _needed(kb, steps, rows, _labels(kb, steps[-1], rows[-1]))
        is_minimal = needed is not None
        if needed is not None:
            reached = [
                {kind: intersect(numbers, needed[kind]) for kind, numbers in part.items()}
                for part in reached
            ]
    if "name" in reached[-1]:
        # All others are in the answer by facts, which name them.
        named = intersect(reached.pop()["name"], free[steps[-1].inputs[0]])
        reached = [*reached, {}][:size]
        reached[-1]["name"] = named
    return Evidence(kb, reached, is_minimal)


def _free(steps: Sequence[Step], outcomes: Sequence[Outcome]) -> list[Ids]:
    """For each call the nodes that it gives by their names, whatever the facts."""
    result: list[Ids] = []
    for step, outcome in zip(steps, outcomes, strict=True):
        parts = [result[at] for at in step.inputs]
        if step.function in (f.FIND, f.FIND_ALL):
            assert isinstance(outcome, Located)
            result.append(outcome.ids)
        elif step.function is f.AND:
            result.append(intersect(*parts))
        elif step.function is f.OR:
            result.append(unite(parts))
        else:
            result.append(EMPTY)
    return result


def _rows(
    kb: KnowledgeBase, steps: Sequence[Step], outcomes: Sequence[Outcome], free: Sequence[Ids],
    only: Ids | None,
) -> list[Rows]:  # fmt: skip
    """For each call the rows of what the answer, or ``only`` a part of it, takes of it."""
    wanted: list[Ids] = [EMPTY] * len(steps)
    by_fact = [False] * len(steps)
    last = outcomes[-1]
    if isinstance(last, Located):
        wanted[-1] = last.ids
    elif isinstance(last, Values):
        wanted[-1] = last.numbers
    if only is not None:
        wanted[-1] = intersect(only, wanted[-1])
    result: list[Rows] = []
    for number in range(len(steps) - 1, -1, -1):
        step = steps[number]
        inputs = tuple(outcomes[at] for at in step.inputs)
        if step.function is f.COUNT:
            wanted[number] = inputs[0].ids  # type: ignore[union-attr]
        call = Given(
            kb,
            outcomes[number],
            inputs,
            step.arguments,
            tuple(free[at] for at in step.inputs),
            by_fact[number],
        )
        rows = RULES[step.function.name](call, wanted[number])
        for at, column in zip(step.inputs, rows.inputs, strict=True):
            needed = np.unique(column)
            wanted[at] = needed[needed != NONE]
            by_fact[at] = Type.FACTS in step.function.inputs
        result.append(rows)
    return result[::-1]


def _facts(rows: Rows) -> dict[Kind, Ids]:
    return {} if rows.facts is None else {rows.kind: np.unique(rows.facts)}


def _may_hold_more(
    kb: KnowledgeBase,
    steps: Sequence[Step],
    outcomes: Sequence[Outcome],
    free: Sequence[Ids],
    reached: Sequence[dict[Kind, Ids]],
) -> bool:
    """Whether one derivation may hold another: only where a fact serves two calls.

    Else all derivations of one thing take as many facts, of each call at most one. What takes none
    holds no other in it either, but for a name that another node has by facts.
    """
    for kind in KINDS[:-1]:
        parts = [found[kind] for found in reached if kind in found]
        if sum(map(len, parts)) > len(unite(parts)):
            return True
    if steps[-1].function is not f.QUERY_NAME:
        return False
    [at] = steps[-1].inputs
    located = outcomes[at]
    assert isinstance(located, Located)
    by_facts = located.ids[~contains(free[at], located.ids)]
    named = set(kb.names(intersect(free[at], located.ids)))
    return not named.isdisjoint(kb.names(by_facts)) if named and len(by_facts) else False


def _labels(kb: KnowledgeBase, step: Step, rows: Rows) -> list[Any]:
    """For each row of the last call the part of the answer that it gives."""
    gives: list[int] = rows.gives.tolist()
    if step.function is f.QUERY_NAME:
        return [kb.name_of(node) for node in gives]
    if step.function.output in (Type.VALUES, Type.QUALIFIER_VALUES):
        return kb.value_texts(gives)
    return gives


# --- writing witnesses out ----------------------------------------------------------------------

Witness: TypeAlias = frozenset[tuple[int, int]]  # facts: place of the kind, number


class _TooMuch(Exception):
    """There are more witnesses than are written out."""


def _needed(
    kb: KnowledgeBase, steps: Sequence[Step], rows: Sequence[Rows], labels: Sequence[Any]
) -> dict[Kind, Ids] | None:
    """The facts that some witness has, by kind; None when there are too many witnesses."""
    work = _Work()
    found: list[dict[Any, list[Witness]]] = []
    try:
        for step, part in zip(steps, rows, strict=True):
            gives: Sequence[Any] = labels if step is steps[-1] else part.gives.tolist()
            inputs = [found[at] for at in step.inputs]
            found.append(_witnesses(kb, gives, part, inputs, work))
    except _TooMuch:
        return None
    facts = {fact for parts in found[-1].values() for witness in parts for fact in witness}
    return {
        kind: as_ids(sorted(number for at, number in facts if at == place))
        for place, kind in enumerate(KINDS)
    }


class _Work:
    """Counts what writing witnesses out takes."""

    def __init__(self) -> None:
        self._left = MOST_WORK

    def take(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise _TooMuch


def _witnesses(
    kb: KnowledgeBase,
    gives: Sequence[Any],
    rows: Rows,
    inputs: Sequence[dict[Any, list[Witness]]],
    work: _Work,
) -> dict[Any, list[Witness]]:
    """The witnesses of each thing that a call gives, from those of its inputs."""
    result: dict[Any, set[Witness]] = {}
    columns = [column.tolist() for column in rows.inputs]
    work.take(len(gives))
    facts = _closed(kb, rows)
    for at, one in enumerate(gives):
        parts = [facts[at]]
        for column, known in zip(columns, inputs, strict=True):
            if column[at] != NONE:
                others = known[column[at]]
                work.take(len(parts) * len(others))
                parts = [left | right for left in parts for right in others]
        into = result.setdefault(one, set())
        into.update(parts)
        if len(into) > MOST_WITNESSES:
            raise _TooMuch
    return {one: _smallest(found, work) for one, found in result.items()}


def _closed(kb: KnowledgeBase, rows: Rows) -> list[Witness]:
    """For each row its fact and the nodes that are there with it."""
    if rows.facts is None:
        return [frozenset()] * len(rows.gives)
    place, name = KINDS.index(rows.kind), KINDS.index("name")
    own = [(place, number) for number in rows.facts.tolist()]
    ends = _ends_of(kb, rows.kind, rows.facts)
    if rows.kind == "membership":
        ends = ends[:1]  # concepts are given
    nodes = [[(name, node) for node in column.tolist()] for column in ends]
    return [frozenset(parts) for parts in zip(own, *nodes, strict=True)]


def _smallest(found: set[Witness], work: _Work) -> list[Witness]:
    """Those that hold no other."""
    ordered = sorted(found, key=len)
    if not ordered or len(ordered[0]) == len(ordered[-1]):
        return ordered
    result: list[Witness] = []
    for witness in ordered:
        work.take(len(result))
        if not any(smaller <= witness for smaller in result):
            result.append(witness)
    return result
