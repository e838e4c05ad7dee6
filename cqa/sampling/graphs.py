"""Sampling query graphs (EFOk-CQA): the positive part backward, then negations that matter.

The positive part is grounded so that one assignment of all of its variables is known. For a negated
edge the candidates of its ends over *all* assignments are computed, and a relation (and a constant)
is chosen that removes at least one of them.
"""

from __future__ import annotations

import hashlib
from random import Random

from cqa.answering.answer import unchecked
from cqa.errors import QueryError
from cqa.graphs.links import Links
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable, mapped
from cqa.sampling.grounding import Ground
from cqa.sampling.options import Options
from cqa.sampling.sample import Kind, Sample, rows_without
from cqa.sampling.source import Source
from cqa.sampling.steps import check_type, steps_of
from cqa.types.canonical import canonical
from kb.arrays import EMPTY, Ids

# So many of a variable's entities are looked at to find that there are too many answers.
LOOKED_AT = 16


class GraphSampler:
    """Draws queries of one query graph, or of a union of several."""

    def __init__(self, kind: Kind, source: Source, options: Options | None = None) -> None:
        assert isinstance(kind.shape, Query)
        check_type(kind.shape)
        self.kind, self.source, self.options = kind, source, options or Options()
        self.width = len(kind.shape.free)
        self._shape = kind.shape
        self._steps = [steps_of(part, kind.shape.free) for part in kind.shape.disjuncts]
        self._negative = any(steps.negative for steps in self._steps)

    def attempt(self, random: Random) -> tuple[str, Sample] | None:
        """A query and a text that only it has, or None when what was drawn is not to be kept."""
        parts = []
        known: dict[Variable, int] = {}
        for steps in self._steps:
            ground = Ground(steps, self.source, random)
            part = ground.draw()
            if part is None:
                return None
            parts.append(part)
            known = known or {v: ground.place(v) for v in self._shape.free}
        query = Query(self._shape.free, tuple(parts))
        try:
            if self.width > 1 and self._too_many(query, known):
                return None
            kept = self._answers(query)
            if kept is None or not self._meaningful(query):
                return None
        except QueryError:
            return None  # more matches than can be held
        text = hashlib.blake2b(repr(canonical(query)).encode(), digest_size=12).hexdigest()
        return text, Sample(self.kind.id, self.kind.formula, query, *kept)

    def _answers(self, query: Query) -> tuple[Ids, Ids, Ids] | None:
        options, source, width = self.options, self.source, self.width
        limit = options.limit(width)
        full = unchecked(query, source.full).tuples
        if limit is not None and len(full) > limit:
            return None
        none = EMPTY.reshape(0, width)
        most = options.most * width
        if source.trains:
            return (full, none, none) if options.least <= len(full) <= most else None
        if len(full) < options.least:
            return None
        easy = unchecked(query, source.observed).tuples
        if not self._negative and not options.least <= len(full) - len(easy) <= most:
            return None
        hard = rows_without(full, easy)
        if not options.least <= len(hard) <= most:
            return None
        return easy, hard, rows_without(easy, full) if self._negative else none

    def _too_many(self, query: Query, known: dict[Variable, int]) -> bool:
        """Whether a part of the answers is more than there may be; most large products are seen so.

        The part: some of what a free variable can be beside the known values of the others, each
        with whatever another one is then. With all but one given, the search is mostly a tree.
        """
        limit = self.options.limit(self.width)
        assert limit is not None
        for variable in query.free:
            beside = self._ways(query, variable, known)
            if len(beside) > limit:
                return True
            other = next(v for v in query.free if v != variable)
            found = 0
            for entity in beside[:: -(-len(beside) // LOOKED_AT) or 1].tolist():
                found += len(self._ways(query, other, {**known, variable: entity}))
                if found > limit:
                    return True
        return False

    def _ways(self, query: Query, variable: Variable, known: dict[Variable, int]) -> Ids:
        """What a free variable can be when all others have their known values."""
        given: dict[Term, Constant] = {v: Constant(known[v]) for v in query.free if v != variable}
        asked = mapped(
            Query((variable,), query.disjuncts),
            lambda a: Atom(
                a.relation, given.get(a.head, a.head), given.get(a.tail, a.tail), a.positive
            ),
        )
        return unchecked(asked, self.source.full).tuples[:, 0]

    def _meaningful(self, query: Query) -> bool:
        """Whether each negated edge removes an answer, or an assignment, that nothing else does."""
        if not self._negative:
            return True
        links = self.source.full
        if self.options.negations == "answers":
            return meaningful(query, links, len(unchecked(query, links)))
        if len(self._steps) == 1 and len(self._steps[0].negative) == 1:
            return True  # it was drawn so
        return all(
            removed(query, at, number, links)
            for at, steps in enumerate(self._steps)
            for number in steps.negative
        )


def meaningful(query: Query, links: Links, count: int) -> bool:
    """Whether each negated atom and part of a query with so many answers removes some."""
    for at, disjunct in enumerate(query.disjuncts):
        negated = [atom for atom in disjunct.atoms if not atom.positive]
        fewer = [
            Conjunction(tuple(a for a in disjunct.atoms if a is not atom), disjunct.without)
            for atom in negated
        ]
        fewer += [
            Conjunction(disjunct.atoms, tuple(p for p in disjunct.without if p is not part))
            for part in disjunct.without
        ]
        for changed in fewer:
            parts = list(query.disjuncts)
            parts[at] = changed
            if len(unchecked(Query(query.free, tuple(parts)), links)) == count:
                return False
    return True


def removed(query: Query, disjunct: int, atom: int, links: Links) -> bool:
    """Whether a negated atom removes an assignment of its conjunction that nothing else removes."""
    atoms = query.disjuncts[disjunct].atoms
    given = atoms[atom]
    turned = Atom(given.relation, given.head, given.tail)
    part = Conjunction((*atoms[:atom], turned, *atoms[atom + 1 :]))
    return len(unchecked(Query(given.variables[:1], (part,)), links)) > 0
