"""Drawing queries whose best match is likely to miss chosen links.

A query is grounded edge by edge: an edge that is to be missing is drawn from the missing links, one
that is to exist from the observed ones. Queries that miss many links are rare among those drawn
from all links; drawn so they come by the thousand. Whether no match misses less is for
`cqa.hardness.hardness` to say afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from cqa.answering.answer import unchecked
from cqa.graphs.graph import Graph
from cqa.graphs.neighbours import Neighbours
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable

# How often an edge is drawn anew that would repeat another one.
REPEATS = 8

ANY, EXISTING, MISSING = "any", "existing", "missing"


class Drawing:
    """Draws grounded queries of one graph and split."""

    def __init__(self, graph: Graph, split: str = "test") -> None:
        self.full = graph.full(split)
        self.rows = {
            ANY: Neighbours(self.full),
            EXISTING: Neighbours(graph.observed(split)),
            MISSING: Neighbours(graph.missing(split)),
        }

    def draw(
        self, template: Query, random: Random, missing: tuple[int, int] | None = None
    ) -> dict[int, int] | None:
        """Numbers for the relations and constants of a query template; None when a try failed.

        The relations and constants of the template are distinct numbers, which the result maps to
        those of the graph. ``missing`` has the number of a disjunct and a mask of its positive
        atoms: these are to be missing, its others existing. Other disjuncts, and without
        ``missing`` all, are drawn backward from an answer with links of any kind, as BetaE's
        program does: two edges may be one link, but no two atoms are alike. A negation is drawn so
        that it removes something where it can.
        """
        numbers: dict[int, int] = {}
        chosen, wanted = missing or (0, None)
        order = sorted(range(len(template.disjuncts)), key=lambda at: at != chosen)
        for at in order:
            part = _Part(self, template.disjuncts[at], template.free, random, numbers)
            if not part.draw(wanted if at == chosen else None):
                return None
        return numbers


class _Part:
    """One conjunction while it is drawn: what is found of its variables and of all numbers."""

    def __init__(
        self,
        drawing: Drawing,
        conjunction: Conjunction,
        free: tuple[Variable, ...],
        random: Random,
        numbers: dict[int, int],
        found: dict[Variable, int] | None = None,
    ) -> None:
        self._drawing, self._conjunction, self._free = drawing, conjunction, free
        self._random, self._numbers = random, numbers
        self._found = {} if found is None else found
        self._arrived: dict[Variable, int] = {}
        # Links that an atom stands on already, both ways round, where links are told apart.
        self._used: set[tuple[int, int, int]] | None = None

    def draw(self, mask: int | None) -> bool:
        """Draw all atoms and parts; ``mask`` as for `Drawing.draw`."""
        return self._positive(mask) and self._negative()

    def _positive(self, mask: int | None) -> bool:
        """Draw the positive atoms, beginning with what is found already."""
        atoms = [atom for atom in self._conjunction.atoms if atom.positive]
        kinds = {
            atom.relation: ANY if mask is None else MISSING if mask >> bit & 1 else EXISTING
            for bit, atom in enumerate(atoms)
        }
        self._used = None if mask is None else set()
        # Atoms that an earlier disjunct shares are drawn already.
        waiting = [atom for atom in atoms if atom.relation not in self._numbers]
        while waiting:
            atom = min(waiting, key=lambda one: self._urgency(one, kinds))
            waiting.remove(atom)
            if not self._edge(atom, self._drawing.rows[kinds[atom.relation]]):
                return False
        return len(set(_ground_atoms(atoms, self._numbers))) == len(atoms)

    def _urgency(self, atom: Atom, kinds: Mapping[int | str, str]) -> tuple[bool, bool, bool, bool]:
        """What is least for the atom to draw next: near what is found, without choice, missing."""
        unknown = [variable for variable in atom.variables if variable not in self._found]
        near = len(unknown) < len(atom.variables)
        return (
            bool(unknown) and (bool(self._found) and not near),
            bool(unknown),
            kinds[atom.relation] != MISSING,
            not any(v in self._free for v in atom.variables),
        )

    def _edge(self, atom: Atom, rows: Neighbours) -> bool:
        """Draw the relation of an atom, and what is not known of its ends."""
        if not rows.present:
            return False
        head, tail = (self._value(end) for end in (atom.head, atom.tail))
        if head is None and tail is None:
            # Begin here: at the free end where there is one, as the answer is drawn first.
            tail = rows.present[self._random.randrange(len(rows.present))]
            if isinstance(atom.tail, Variable):
                self._found[atom.tail] = tail
            head = tail if atom.head == atom.tail else None
        for _ in range(REPEATS):
            triple = self._link(atom, rows, head, tail)
            if triple is None:
                return False
            if self._used is None or triple not in self._used:
                self._keep(atom, *triple)
                return True
        return False

    def _link(
        self, atom: Atom, rows: Neighbours, head: int | None, tail: int | None
    ) -> tuple[int, int, int] | None:
        """A link for an atom, with the ends that are known."""
        if head is not None and tail is not None:
            choices = rows.pairs.relations(head, tail)
            if not choices:
                return None
            return head, choices[self._random.randrange(len(choices))], tail
        known = atom.head if tail is None else atom.tail
        before = self._arrived.get(known, -1) if isinstance(known, Variable) else -1
        if tail is None:
            assert head is not None
            relation, tail = self._step(rows, head, before)
            return None if tail < 0 else (head, relation, tail)
        relation, head = self._step(rows, tail, before)
        return None if head < 0 else (head, relation ^ 1, tail)

    def _step(self, rows: Neighbours, entity: int, before: int) -> tuple[int, int]:
        """A relation that leaves an entity, each alike but ``before``, and one of its tails.

        Gives -1 twice where there is none.
        """
        random, relations = self._random, rows.relations
        first, last = rows.first[entity], rows.first[entity + 1]
        choices: Sequence[int] = range(first, last)
        if before >= 0 and before in relations[first:last]:
            choices = [row for row in choices if relations[row] != before]
        if not choices:
            return -1, -1
        row = choices[random.randrange(len(choices))]
        return relations[row], rows.tails[random.randrange(*rows.span(row))]

    def _keep(self, atom: Atom, head: int, relation: int, tail: int) -> None:
        """Let an atom stand for a link."""
        if self._used is not None:
            self._used |= {(head, relation, tail), (tail, relation ^ 1, head)}
        self._numbers[int(atom.relation)] = relation
        for end, value, back in ((atom.head, head, relation), (atom.tail, tail, relation ^ 1)):
            if isinstance(end, Constant):
                self._numbers[int(end.entity)] = value
            elif end not in self._found:
                # A path does not go straight back on the link that it came by.
                self._found[end], self._arrived[end] = value, back

    def _value(self, end: Term) -> int | None:
        if isinstance(end, Variable):
            return self._found.get(end)
        return self._numbers.get(int(end.entity))

    def _negative(self) -> bool:
        """Draw the negated atoms and parts, each so that it removes a match of the others."""
        conjunction, random = self._conjunction, self._random
        positive = tuple(atom for atom in conjunction.atoms if atom.positive)
        negated: list[tuple[tuple[Variable, ...], Conjunction]] = [
            (atom.variables, Conjunction((Atom(atom.relation, atom.head, atom.tail),)))
            for atom in conjunction.atoms
            if not atom.positive
        ]
        negated += [(inner.free, d) for inner in conjunction.without for d in inner.disjuncts]
        for shared, inner in negated:
            known = _ground_atoms(positive, self._numbers)
            rows = unchecked(Query(shared, (Conjunction(known),)), self._drawing.full).tuples
            own = tuple(self._found.get(variable, -1) for variable in shared)
            if len(rows) < 2:
                return False
            for _ in range(REPEATS):
                values = tuple(rows[random.randrange(len(rows))].tolist())
                if values != own:
                    break
            else:
                return False
            found = dict(zip(shared, values, strict=True))
            if not _Part(self._drawing, inner, shared, random, self._numbers, found).draw(None):
                return False
        return True


def _ground_atoms(atoms: Sequence[Atom], numbers: Mapping[int, int]) -> tuple[Atom, ...]:
    def term(end: Term) -> Term:
        if isinstance(end, Variable):
            return end
        assert isinstance(end.entity, int)
        return Constant(numbers[end.entity])

    return tuple(
        Atom(numbers[int(atom.relation)], term(atom.head), term(atom.tail)) for atom in atoms
    )
