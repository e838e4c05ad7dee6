"""Grounding one query graph: entities, relations and constants drawn step by step."""

from __future__ import annotations

from random import Random

import numpy as np

from cqa.answering.answer import answers_among, unchecked
from cqa.query import Conjunction, Constant, Query, Term, Variable
from cqa.sampling.sample import sorted_rows
from cqa.sampling.source import Source
from cqa.sampling.steps import Step, Steps, replaced
from kb.arrays import Ids, contains

# How often one node is drawn again, before the whole graph is.
DRAWS = 8
# So many of a variable's entities, and of pairs, are looked at for what a negated edge may remove.
REMOVED = 256
PAIRS = 64


class Ground:
    """One attempt at one conjunction; `draw` makes it."""

    def __init__(self, steps: Steps, source: Source, random: Random) -> None:
        self._steps, self._source, self._random = steps, source, random
        self._atoms = steps.conjunction.atoms
        self._places: dict[Term, int] = {}
        self._relations: dict[int, int] = {}
        self._before: dict[Term, int] = {}
        # Links that an atom stands on already, both ways round.
        self._used: set[tuple[int, int, int]] = set()

    def place(self, term: Term) -> int:
        """The entity of a term in the known assignment."""
        return self._places[term]

    def draw(self) -> Conjunction | None:
        """The conjunction grounded, or None."""
        if not all(self._place(step) for step in self._steps.steps):
            return None
        for number in self._steps.negative:
            if not self._negate(number):
                return None
        return Conjunction(
            tuple(
                replaced(atom, self._relations[number], self._places)
                for number, atom in enumerate(self._atoms)
            )
        )

    # --- positive -----------------------------------------------------------------------------

    def _place(self, step: Step) -> bool:
        if not step.edges:
            found = self._source.entity(self._random)
            for _ in range(DRAWS):
                if self._leads_on(found, step.ahead):
                    break
                found = self._source.entity(self._random)
            self._places[step.node] = found
        elif len(step.edges) == 1 and len(step.edges[0][1]) == 1:
            if not self._reach(step, *step.edges[0]):
                return False
        elif not self._close(step):
            return False
        if not step.loops:
            return True
        place = self._places[step.node]
        return self._link(place, place, step.node, step.loops)

    def _leads_on(self, entity: int, times: int) -> bool:
        """Whether an entity has a neighbour by so many relations."""
        return times < 2 or len(self._source.pairs.near(entity, times)) > 0

    def _reach(self, step: Step, other: Term, numbers: tuple[int, ...]) -> bool:
        """Place a node on one edge: a relation first, then what it leads from."""
        (number,) = numbers
        near = self._places[other]
        for _ in range(DRAWS):
            relation, start = self._source.enter(self._random, near, self._before.get(other, -1))
            if relation < 0:
                return False
            if (start, relation, near) in self._used or not self._leads_on(start, step.ahead):
                continue
            self._places[step.node], self._before[step.node] = start, relation
            self._use(number, step.node, start, relation, near)
            return True
        return False

    def _close(self, step: Step) -> bool:
        """Place a node on several edges: on an entity that all of its neighbours leave open."""
        pairs = self._source.pairs
        sets = sorted(
            (pairs.near(self._places[other], len(numbers)) for other, numbers in step.edges),
            key=len,
        )
        found = sets[0]
        for more in sets[1:]:
            found = found[contains(more, found)]
        if len(found) == 0:
            return False
        for _ in range(DRAWS):
            place = int(found[int(self._random.random() * len(found))])
            if not self._leads_on(place, step.ahead):
                continue
            drawn: list[tuple[int, int, int]] = []
            for other, numbers in step.edges:
                near = self._places[other]
                free = [
                    relation
                    for relation in pairs.relations(place, near)
                    if (place, relation, near) not in self._used
                    and (place, relation, near) not in drawn
                ]
                if len(free) < len(numbers):
                    break
                for relation in self._random.sample(free, len(numbers)):
                    drawn.append((place, relation, near))
            else:
                self._places[step.node] = place
                wanted = [number for _, numbers in step.edges for number in numbers]
                for number, (_, relation, near) in zip(wanted, drawn, strict=True):
                    self._use(number, step.node, place, relation, near)
                return True
        return False

    def _link(self, head: int, tail: int, node: Term, numbers: tuple[int, ...]) -> bool:
        """Draw the relations of loops."""
        free = [r for r in self._source.pairs.relations(head, tail) if r % 2 == 0]
        if len(free) < len(numbers):
            return False
        for number, relation in zip(numbers, self._random.sample(free, len(numbers)), strict=True):
            self._use(number, node, head, relation, tail)
        return True

    def _use(self, number: int, node: Term, start: int, relation: int, end: int) -> None:
        """Give an atom the relation by which a node leads to its neighbour."""
        self._used |= {(start, relation, end), (end, relation ^ 1, start)}
        forward = self._atoms[number].head == node
        self._relations[number] = relation if forward else relation ^ 1

    # --- negative -----------------------------------------------------------------------------

    def _negate(self, number: int) -> bool:
        """Choose relation and constant of a negated edge so that it removes an assignment."""
        atom = self._atoms[number]
        unplaced = [end for end in (atom.head, atom.tail) if end not in self._places]
        if unplaced:
            given = atom.tail if atom.head == unplaced[0] else atom.head
            assert isinstance(given, Variable)
            value = self._draw_value(given)
            if value < 0:
                return False
            for _ in range(DRAWS):
                relation, start = self._source.enter(self._random, value)
                if relation >= 0 and not self._is_row(relation, start, given):
                    break
            else:
                return False
            self._places[unplaced[0]] = start
            self._relations[number] = relation if atom.head == unplaced[0] else relation ^ 1
            return True
        if isinstance(atom.head, Constant) or isinstance(atom.tail, Constant):
            return self._negate_from(number)
        return self._negate_between(number)

    def _part(self) -> Conjunction:
        """The positive part, grounded."""
        return Conjunction(
            tuple(
                replaced(self._atoms[number], self._relations[number], self._places)
                for number in self._steps.positive
            )
        )

    def _values(self, variable: Variable) -> Ids:
        """What a variable is in any assignment of the positive part."""
        return unchecked(Query((variable,), (self._part(),)), self._source.full).tuples[:, 0]

    def _draw_value(self, variable: Variable) -> int:
        """One of them, not that of the known assignment; -1 where there is no other."""
        values = self._values(variable)
        values = values[values != self._places[variable]]
        return int(values[int(self._random.random() * len(values))]) if len(values) else -1

    def _is_row(self, relation: int, entity: int, variable: Variable) -> bool:
        """Whether a positive atom says just this of a variable."""
        return any(
            (head == entity and tail == variable and drawn == relation)
            or (tail == entity and head == variable and drawn == relation ^ 1)
            for number in self._steps.positive
            for head, drawn, tail in [
                (
                    self._given(self._atoms[number].head),
                    self._relations[number],
                    self._given(self._atoms[number].tail),
                )
            ]
        )

    def _given(self, term: Term) -> object:
        return self._places[term] if isinstance(term, Constant) else term

    def _negate_from(self, number: int) -> bool:
        """The relation of a negated edge from a constant that has its entity."""
        atom = self._atoms[number]
        constant, variable = (
            (atom.head, atom.tail) if isinstance(atom.head, Constant) else (atom.tail, atom.head)
        )
        assert isinstance(variable, Variable)
        start = self._places[constant]
        values = self._values(variable)
        values = values[values != self._places[variable]]
        values = values[contains(self._source.pairs.near(start), values)]
        return len(values) > 0 and self._choose(
            number, atom.head == constant, start, int(self._one_of(values)), variable
        )

    def _choose(self, number: int, forward: bool, start: int, end: int, variable: Variable) -> bool:
        relations = [
            relation
            for relation in self._source.pairs.relations(start, end)
            if not self._is_row(relation, start, variable)
        ]
        if not relations:
            return False
        relation = relations[int(self._random.random() * len(relations))]
        self._relations[number] = relation if forward else relation ^ 1
        return True

    def _one_of(self, values: Ids) -> int:
        return int(values[int(self._random.random() * len(values))])

    def _negate_between(self, number: int) -> bool:
        """The relation of a negated edge between two variables."""
        atom = self._atoms[number]
        head, tail = atom.head, atom.tail
        assert isinstance(head, Variable) and isinstance(tail, Variable)
        if head == tail:
            found = [(v, v) for v in self._values(head).tolist()]
            found = [pair for pair in found if self._source.pairs.relations(*pair)]
            found = self._random.sample(found, min(len(found), PAIRS))
        else:
            found = self._pairs_between(head, tail)
        used = {
            drawn
            for at in self._steps.positive
            for other, relation in ((self._atoms[at], self._relations[at]),)
            for drawn in (
                [relation] * ((other.head, other.tail) == (head, tail))
                + [relation ^ 1] * ((other.tail, other.head) == (head, tail))
            )
        }
        for pair in found:
            relations = [r for r in self._source.pairs.relations(*pair) if r not in used]
            if relations:
                self._relations[number] = relations[int(self._random.random() * len(relations))]
                return True
        return False

    def _pairs_between(self, head: Variable, tail: Variable) -> list[tuple[int, int]]:
        """Linked pairs that the ends are in some assignment, that of the known one last."""
        source, random = self._source, self._random
        values = self._values(head)
        if len(values) > REMOVED:
            chosen = random.sample(range(len(values)), REMOVED)
            values = values[np.sort(np.array(chosen))]
        heads, tails = source.pairs.around(values)
        keep = contains(self._values(tail), tails)
        heads, tails = heads[keep], tails[keep]
        if len(heads) > PAIRS:
            rows = np.array(random.sample(range(len(heads)), PAIRS))
            heads, tails = heads[rows], tails[rows]
        if len(heads) == 0:
            return []
        given = sorted_rows(np.stack([heads, tails], axis=1))
        query = Query((head, tail), (self._part(),))
        found = [(h, t) for h, t in answers_among(query, source.full, given).tolist()]
        random.shuffle(found)
        known = self._places[head], self._places[tail]
        return [pair for pair in found if pair != known] + [p for p in found if p == known]
