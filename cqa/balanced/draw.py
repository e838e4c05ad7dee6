"""Drawing queries whose best match is likely to miss chosen links.

A query is grounded edge by edge: an edge that is to be missing is drawn from the missing links, one
that is to exist from the observed ones. Queries that miss many links are rare among those drawn
from all links; drawn so they come by the thousand. Whether no match misses less is for
`cqa.hardness.hardness` to say afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random

import numpy as np

from cqa.answering.answer import unchecked
from cqa.graphs.graph import Graph
from cqa.graphs.links import Links
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable
from kb.arrays import view

# How often an edge is drawn anew that would repeat another one.
REPEATS = 8

ANY, EXISTING, MISSING = "any", "existing", "missing"


class Rows:
    """The rows of some links by their head: which relations leave an entity, and to where."""

    def __init__(self, links: Links) -> None:
        order = np.argsort(links.heads, kind="stable")
        counts = np.diff(links.rows)
        relations = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self._relations = view(relations[order])
        self._begins, self._ends = view(links.starts[:-1][order]), view(links.starts[1:][order])
        self._tails, self._heads = view(links.tails), view(links.heads[order])
        self._first = view(np.searchsorted(links.heads[order], np.arange(links.entity_count + 1)))
        self._present = view(np.flatnonzero(np.diff(self._first)))

    def __bool__(self) -> bool:
        return len(self._present) > 0

    def entity(self, random: Random) -> int:
        """An entity that has a link, each alike."""
        found: int = self._present[random.randrange(len(self._present))]
        return found

    def step(self, random: Random, entity: int, before: int = -1) -> tuple[int, int]:
        """A relation that leaves an entity, each alike but ``before``, and one of its tails.

        Gives -1 twice where there is none.
        """
        first, last = self._first[entity], self._first[entity + 1]
        rows = range(first, last)
        if before >= 0 and before in self._relations[first:last]:
            rows = [row for row in rows if self._relations[row] != before]  # type: ignore[assignment]
        if not rows:
            return -1, -1
        row = rows[random.randrange(len(rows))]
        at = random.randrange(self._begins[row], self._ends[row])
        return self._relations[row], self._tails[at]

    def between(self, head: int, tail: int) -> list[int]:
        """The relations that lead from one entity to another, sorted."""
        found = []
        for row in range(self._first[head], self._first[head + 1]):
            begin, end = self._begins[row], self._ends[row]
            while begin < end:
                middle = (begin + end) // 2
                if self._tails[middle] < tail:
                    begin = middle + 1
                else:
                    end = middle
            if begin < self._ends[row] and self._tails[begin] == tail:
                found.append(self._relations[row])
        return found


class Drawing:
    """Draws grounded queries of one graph and split."""

    def __init__(self, graph: Graph, split: str = "test") -> None:
        self.full = graph.full(split)
        self.rows = {
            ANY: Rows(self.full),
            EXISTING: Rows(graph.observed(split)),
            MISSING: Rows(graph.missing(split)),
        }

    def draw(
        self, template: Query, random: Random, missing: tuple[int, int] | None = None
    ) -> dict[int, int] | None:
        """Numbers for the relations and constants of a query template; None when a try failed.

        The relations and constants of the template are distinct numbers, which the result maps to
        those of the graph. ``missing`` has the number of a disjunct and a mask of its positive
        atoms: these are to be missing, its others existing. Other disjuncts, and without
        ``missing`` all, are drawn backward from an answer with links of any kind, as BetaE's
        program does: two edges may be one link, but no two atoms are
        alike. A negation is drawn so that it removes something where it can.
        """
        numbers: dict[int, int] = {}
        chosen, wanted = missing or (0, None)
        order = sorted(range(len(template.disjuncts)), key=lambda at: at != chosen)
        for at in order:
            disjunct = template.disjuncts[at]
            mask = wanted if at == chosen else None
            answer: dict[Variable, int] = {}
            if not self._positive(disjunct, template.free, random, mask, numbers, answer):
                return None
            if not self._negative(disjunct, random, numbers, answer):
                return None
        return numbers

    def _positive(
        self,
        part: Conjunction,
        free: tuple[Variable, ...],
        random: Random,
        mask: int | None,
        numbers: dict[int, int],
        found: dict[Variable, int],
    ) -> bool:
        """Draw the positive atoms of a conjunction, beginning with what is found already."""
        waiting = [atom for atom in part.atoms if atom.positive]
        kinds = {
            id(atom): ANY if mask is None else MISSING if mask >> bit & 1 else EXISTING
            for bit, atom in enumerate(waiting)
        }
        arrived: dict[Variable, int] = {}
        used: set[tuple[int, int, int]] | None = None if mask is None else set()
        # Atoms that an earlier disjunct shares are drawn already.
        for atom in [atom for atom in waiting if atom.relation in numbers]:
            waiting.remove(atom)
        while waiting:
            atom = self._next(waiting, kinds, found, free)
            waiting.remove(atom)
            if not self._edge(atom, self.rows[kinds[id(atom)]], random, numbers, found,
                              arrived, used):  # fmt: skip
                return False
        atoms = [atom for atom in part.atoms if atom.positive]
        return len(set(_ground_atoms(atoms, numbers))) == len(atoms)

    @staticmethod
    def _next(
        waiting: list[Atom],
        kinds: Mapping[int, str],
        found: Collection[Variable],
        free: Collection[Variable],
    ) -> Atom:
        """The atom to draw next: near what is found, without choice, then a missing one."""

        def urgency(atom: Atom) -> tuple[bool, bool, bool, bool]:
            unknown = [variable for variable in atom.variables if variable not in found]
            near = len(unknown) < len(atom.variables)
            return (
                bool(unknown) and (bool(found) and not near),
                bool(unknown),
                kinds[id(atom)] != MISSING,
                free is not None and not any(v in free for v in atom.variables),
            )

        return min(waiting, key=urgency)

    def _edge(
        self,
        atom: Atom,
        rows: Rows,
        random: Random,
        numbers: dict[int, int],
        found: dict[Variable, int],
        arrived: dict[Variable, int],
        used: set[tuple[int, int, int]] | None,
    ) -> bool:
        """Draw the relation of an atom, and what is not known of its ends."""
        assert isinstance(atom.relation, int)
        if not rows:
            return False
        ends = [_value(end, numbers, found) for end in (atom.head, atom.tail)]
        if ends[0] is None and ends[1] is None:
            # Begin here: at the free end where there is one, as the answer is drawn first.
            start = rows.entity(random)
            if isinstance(atom.tail, Variable):
                found[atom.tail] = start
            ends = [start if atom.head == atom.tail else None, start]
        head: int | None
        tail: int | None
        for _ in range(REPEATS):
            head, tail = ends
            if head is not None and tail is not None:
                choices = rows.between(head, tail)
                if not choices:
                    return False
                relation = choices[random.randrange(len(choices))]
            elif tail is not None:
                before = arrived.get(atom.tail, -1) if isinstance(atom.tail, Variable) else -1
                relation, head = rows.step(random, tail, before)
                relation ^= 1
            else:
                assert head is not None
                before = arrived.get(atom.head, -1) if isinstance(atom.head, Variable) else -1
                relation, tail = rows.step(random, head, before)
            if -1 in (head, tail):
                return False
            triple = (head, relation, tail)
            if used is not None:
                if triple in used:
                    continue
                used.update((triple, (tail, relation ^ 1, head)))
            numbers[atom.relation] = relation
            assert isinstance(head, int) and isinstance(tail, int)
            for end, value, back in ((atom.head, head, relation), (atom.tail, tail, relation ^ 1)):
                if isinstance(end, Variable):
                    if end not in found:
                        # A path does not go straight back on the link that it came by.
                        found[end], arrived[end] = value, back
                else:
                    assert isinstance(end.entity, int)
                    numbers[end.entity] = value
            return True
        return False

    # --- negations --------------------------------------------------------------------------------

    def _negative(
        self,
        part: Conjunction,
        random: Random,
        numbers: dict[int, int],
        answer: dict[Variable, int],
    ) -> bool:
        """Draw the negated atoms and parts, each so that it removes a match of the others."""
        positive = tuple(atom for atom in part.atoms if atom.positive)
        negated: list[tuple[tuple[Variable, ...], Conjunction]] = [
            (atom.variables, Conjunction((Atom(atom.relation, atom.head, atom.tail),)))
            for atom in part.atoms
            if not atom.positive
        ]
        negated += [(inner.free, d) for inner in part.without for d in inner.disjuncts]
        for shared, inner in negated:
            known = _ground_atoms(positive, numbers)
            rows = unchecked(Query(shared, (Conjunction(known),)), self.full).tuples
            own = tuple(answer.get(variable, -1) for variable in shared)
            if len(rows) < 2:
                return False
            for _ in range(REPEATS):
                values = tuple(rows[random.randrange(len(rows))].tolist())
                if values != own:
                    break
            else:
                return False
            found = dict(zip(shared, values, strict=True))
            if not self._positive(inner, shared, random, None, numbers, found):
                return False
            if not self._negative(inner, random, numbers, found):
                return False
        return True


def _value(end: Term, numbers: Mapping[int, int], found: Mapping[Variable, int]) -> int | None:
    if isinstance(end, Variable):
        return found.get(end)
    assert isinstance(end.entity, int)
    return numbers.get(end.entity)


def _ground_atoms(atoms: Sequence[Atom], numbers: Mapping[int, int]) -> tuple[Atom, ...]:
    def term(end: Term) -> Term:
        if isinstance(end, Variable):
            return end
        assert isinstance(end.entity, int)
        return Constant(numbers[end.entity])

    return tuple(
        Atom(numbers[int(atom.relation)], term(atom.head), term(atom.tail)) for atom in atoms
    )
