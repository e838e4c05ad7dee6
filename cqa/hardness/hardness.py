"""How hard a (query, answer) pair is: the simpler type it reduces to once known links are used.

After "Is Complex Query Answering Really Complex?" (2025). Each positive edge of a match of a query
is existing (in the observed graph) or missing; of all matches the one with the fewest missing links
counts, then the one with the fewest hops. Its missing edges spell the type that the pair reduces
to: none is trivial, all is full inference. Negated parts are evaluated on the full graph and not
counted; a form that turns a negation inside a negation into a positive part (DNF) has one link more
to count.

The walk is that of `cqa.answering.walk`, for many queries of one type at once and with the masks
of `cqa.hardness.masks` as values: 70,000 queries of NELL995 with a million answers take two
seconds. `cqa.answering.semiring.FEWEST_MISSING` counts the missing links of one query's answers,
without telling which.

Corrected mode takes the disjuncts of a union one by one. ``compat="paper"`` does as the published
program: every branch of a union has to hold, a branch that is known makes the union known, and an
answer that some branch does not have is left out. Unions in De Morgan's form, which that program
skips, are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import numpy as np

from cqa.answering.block import QueryBlock
from cqa.answering.pattern import Patterns
from cqa.answering.search import GivenRows
from cqa.answering.semiring import Values
from cqa.answering.template import (
    Batch,
    Grounded,
    Template,
    as_query,
    batches,
    template_of,
    without_repeats,
)
from cqa.answering.walk import Walk, parted
from cqa.errors import QueryError
from cqa.graphs.graph import Graph
from cqa.graphs.links import Links, Places
from cqa.hardness.masks import MAX_ATOMS, MissingLinks
from cqa.hardness.reductions import TRIVIAL, Reduction, own_name, shown_name, spelled
from cqa.notation.trees import from_tree
from cqa.query import (
    Atom,
    Conjunction,
    Query,
    Variable,
    atoms,
    check_form,
    constants_of,
)
from cqa.types.betae import names
from cqa.types.tree import Tree, anchor, arrange, nodes, operators, project
from kb.arrays import Ids

COMPATS = (None, "paper")

NO_ANSWER = -1

# Sets of missing links are listed for disjuncts of up to so many positive atoms.
MOST_LISTED = 12

Answers = Ids | Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class Labels:
    """What pairs reduce to.

    ``codes`` has an array for each query, with a number for each answer: its place in ``kinds``, or
    -1 for what is no answer on the full graph (in the paper's mode: not of every branch).
    ``types`` is the name of each query's own type. ``skipped`` are the places of the queries that
    the published program skips; all of their codes are -1, and they are not counted.
    """

    types: list[str]
    kinds: list[Reduction]
    codes: list[Places]
    skipped: frozenset[int] = frozenset()

    def of(self, query: int) -> list[Reduction | None]:
        """What each answer of a query reduces to."""
        return [None if at < 0 else self.kinds[at] for at in self.codes[query].tolist()]

    def tally(self) -> dict[str, Counter[Reduction | None]]:
        """For each type the number of pairs by what they reduce to, None for no answer."""
        size = len(self.kinds) + 1
        rows: dict[str, list[Places]] = {}
        for at, (name, codes) in enumerate(zip(self.types, self.codes, strict=True)):
            if at not in self.skipped:
                rows.setdefault(name, []).append(codes)
        found: dict[str, Counter[Reduction | None]] = {}
        for name, parts in rows.items():
            # What is no answer, -1, counts as the last.
            numbers = np.bincount(np.concatenate(parts) % size, minlength=size).tolist()
            found[name] = Counter(
                {
                    kind: number
                    for kind, number in zip([*self.kinds, None], numbers, strict=True)
                    if number
                }
            )
        return found

    def counts(self) -> dict[str, Counter[str]]:
        """The same by name; "" for no answer."""
        found: dict[str, Counter[str]] = {}
        for name, tally in self.tally().items():
            counter = found[name] = Counter()
            for kind, number in tally.items():
                counter[kind.name if kind else ""] += number
        return found


class Hardness:
    """Tells what pairs of one graph and split reduce to.

    >>> told = Hardness(graph).label([query], [hard_answers])            # doctest: +SKIP
    >>> [kind.name for kind in told.of(0)]                               # doctest: +SKIP
    ['1p', '2i']
    """

    def __init__(self, graph: Graph, split: str = "test", compat: str | None = None) -> None:
        if compat not in COMPATS:
            raise QueryError(f"there is no compat {compat!r}; give 'paper' or leave it out")
        self._links = graph.priced(split)
        self._compat = compat

    def label(self, queries: Sequence[Grounded], answers: Sequence[Answers]) -> Labels:
        """What each answer of each query reduces to; an answer is a number, or one a variable.

        Queries of one form are looked at together, so that many at a time are quicker. Raises
        QueryError for a query that is not grounded, not of this graph, or has too many matches to
        hold, and for answers that do not fit the query's free variables.
        """
        if len(queries) != len(answers):
            raise QueryError(f"{len(queries)} queries have {len(answers)} lists of answers")
        kinds: dict[Reduction, int] = {}
        codes: list[Places] = [np.empty(0, np.int64)] * len(queries)
        types = [""] * len(queries)
        skipped: list[int] = []
        for batch in batches(queries):
            form = batch.template.form
            name = _own_name(form)
            width = len(batch.template.query.free)
            rows = [self._rows(answers[at], width, at) for at in batch.own]
            owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
            self._check(batch)
            if self._compat == "paper" and _is_skipped(form):
                skipped += batch.own
                for at, own in zip(batch.own, rows, strict=True):
                    codes[at], types[at] = np.full(len(own), NO_ANSWER), name
                continue
            found = self._codes(batch, name, owners, np.concatenate(rows), kinds)
            ends = np.cumsum([len(row) for row in rows])[:-1]
            for at, part in zip(batch.own, np.split(found, ends), strict=True):
                codes[at], types[at] = part, name
        return Labels(types, list(kinds), codes, frozenset(skipped))

    def _rows(self, given: Answers, width: int, at: int) -> Places:
        try:
            rows = np.asarray(given, np.int64)
        except (TypeError, ValueError):
            raise QueryError(f"query {at + 1}: an answer is a number for each variable") from None
        if rows.ndim == 1 and (width == 1 or not len(rows)):
            rows = rows.reshape(-1, width)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise QueryError(f"query {at + 1}: an answer has {width} numbers, as it has variables")
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < self._links.entity_count:
            raise QueryError(
                f"query {at + 1}: an answer is no entity; the graph has the numbers 0 to"
                f" {self._links.entity_count - 1}"
            )
        return rows

    def _check(self, batch: Batch) -> None:
        """Raise QueryError for a number that the graph does not have, and for an ill form."""
        template = batch.template.query
        check_form(template)
        for column, what, bound in _columns(template, self._links):
            values = batch.numbers[:, column]
            wrong = np.flatnonzero((values < 0) | (values >= bound))
            if len(wrong):
                row = int(wrong[0])
                raise QueryError(
                    f"query {batch.own[row] + 1}: there is no {what} {int(values[row])}; the graph"
                    f" has the numbers 0 to {bound - 1}"
                )

    def _codes(
        self, batch: Batch, name: str, owners: Places, rows: Places, kinds: dict[Reduction, int]
    ) -> Places:
        """The number of what each row of answers reduces to."""
        found: list[tuple[Places, Places]] = []  # rows, numbers in ``seen``
        seen: list[Reduction] = []
        for conjunction, free, reduction in _ways(batch.template.form, name, self._compat):
            for part, own in without_repeats(conjunction, batch.numbers):
                place = np.full(len(batch.numbers), -1, np.int64)
                place[own] = np.arange(len(own))
                mine = np.flatnonzero(place[owners] >= 0)
                columns = [rows[mine, column] for column in range(rows.shape[1])]
                at, masks = _matches(
                    self._links, part, free, batch.numbers[own], place[owners[mine]], columns
                )
                different, which = np.unique(masks, return_inverse=True)
                numbers = np.arange(len(different)) + len(seen)
                seen += [reduction(part, mask) for mask in different.tolist()]
                found.append((mine[at], numbers[which.reshape(-1)]))
        order = sorted(range(len(seen)), key=lambda number: seen[number].order)
        rank = np.empty(len(seen), np.int64)
        rank[order] = np.arange(len(seen))
        best = np.full(len(owners), len(seen), np.int64)
        for at, numbers in found:
            np.minimum.at(best, at, rank[numbers])
        used = np.unique(best[best < len(seen)])
        table = np.full(len(seen) + 1, NO_ANSWER, np.int64)
        for number in used.tolist():
            table[number] = kinds.setdefault(seen[order[number]], len(kinds))
        return table[best]


def _matches(
    links: Links,
    conjunction: Conjunction,
    free: tuple[Variable, ...],
    numbers: Places,
    owners: Places,
    answers: Sequence[Places],
) -> tuple[Places, Values]:
    """For each answer that a conjunction has: the masks of its matches with fewest missing links.

    The relations and constants of ``conjunction`` are columns of ``numbers``, which has a row for
    each query. Row i of ``answers`` (an array for each free variable) is to be an answer of query
    ``owners[i]``, in ascending order. Gives numbers of rows with a mask each; bit j stands for the
    j-th positive atom. Rows without a match are left out. Raises QueryError for more matches than
    can be held.
    """
    if sum(atom.positive for atom in conjunction.atoms) > MAX_ATOMS:
        raise QueryError(f"hardness is told of queries of up to {MAX_ATOMS} positive atoms")
    plan = Patterns(Query(free, (conjunction,)))
    algebra = MissingLinks(plan.patterns[0].width)

    def walked(block: QueryBlock, begin: int) -> tuple[Places, Values]:
        first, last = owners.searchsorted([begin, begin + block.count])
        own = owners[first:last] - begin
        columns = [block.keyed(own, column[first:last]) for column in answers]
        which = np.arange(last - first)
        if len(columns) == 1:
            # Of one variable the rows have to be sorted, each once.
            columns[0], which = np.unique(columns[0], return_inverse=True)
            own = block.owners(columns[0])
        found = Walk(block, algebra, universe=False).matched(plan, GivenRows(own, columns))
        at = found.find(which.reshape(-1))
        rows = np.flatnonzero(at >= 0)
        again, masks = found.spread(at[rows])
        rows = rows if again is None else rows[again]
        return rows + first, algebra.ones(len(rows)) if masks is None else masks

    parts = [made for *_, made in parted(links, numbers, walked)]
    if not parts:
        return np.empty(0, np.int64), algebra.ones(0)
    rows, masks = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return rows, masks


def masks_of(template: Template, compat: str | None = None) -> Iterator[tuple[int, int, Reduction]]:
    """For each disjunct and each set of missing links, less the empty one, what it spells.

    Bit j of a mask is the j-th positive atom of the disjunct. Raises QueryError for a disjunct of
    more than `MOST_LISTED` positive atoms.
    """
    for at, (part, _, reduction) in enumerate(
        _ways(template.form, _own_name(template.form), compat)
    ):
        count = sum(atom.positive for atom in part.atoms)
        if count > MOST_LISTED:
            raise QueryError(
                f"what a type reduces to is listed up to {MOST_LISTED} positive atoms, not {count}"
            )
        for mask in range(1, 1 << count):
            yield at, mask, reduction(part, mask)


def reducible(shape: Grounded, compat: str | None = None) -> list[Reduction]:
    """What the pairs of a query type may reduce to, full inference last; "trivial" is left out.

    A reduction is listed even if no match ever has it as its best. Raises QueryError as `masks_of`.
    """
    found: dict[tuple[bool, str], Reduction] = {}
    for *_, kind in masks_of(template_of(shape), compat):
        before = found.setdefault((kind.full, kind.name), kind)
        if kind.order < before.order:
            found[kind.full, kind.name] = kind
    kinds = [kind for kind in found.values() if kind.name != TRIVIAL]
    return sorted(kinds, key=lambda kind: (kind.full, kind.order))


def _is_skipped(template: Grounded) -> bool:
    """Whether the published program skips a type: a union in De Morgan's form, as in 2u-DM."""
    if not isinstance(template, Tree):
        return False
    tree = intersected(template) if operators(template) & set("uU") else template
    return len(from_tree(tree).disjuncts) > 1


def intersected(tree: Tree) -> Tree:
    """The tree with each union that no complement covers made an intersection.

    So the published program for the hardness of queries looks at unions.
    """
    if tree.op == "n":
        return tree
    operands = list(tree.operands)
    kept = 1 if tree.op in "dD" else len(operands)
    operands[:kept] = [intersected(operand) for operand in operands[:kept]]
    op = {"u": "i", "U": "I"}.get(tree.op, tree.op)
    return Tree(op, tuple(operands), tree.relation, tree.entity)


_Way = tuple[Conjunction, tuple[Variable, ...], Callable[[Conjunction, int], Reduction]]


def _ways(template: Grounded, name: str, compat: str | None) -> Iterator[_Way]:
    """The conjunctions to match, and what a mask of missing links in one of them spells.

    The function takes the conjunction without repeated atoms.
    """
    if compat == "paper" and isinstance(template, Tree) and operators(template) & set("uU"):
        yield _paper_way(template, name)
        return
    query = as_query(template)
    if compat == "paper" and len(query.disjuncts) > 1:
        raise QueryError(
            "the paper's mode joins the branches of a union, which only an operator tree shows;"
            " give the query as one, or take the corrected mode"
        )
    for disjunct in query.disjuncts:

        def reduction(part: Conjunction, mask: int) -> Reduction:
            given = tuple(atom for atom in part.atoms if atom.positive)
            return _named(spelled(given, query.free, mask), given, mask, name)

        yield disjunct, query.free, reduction


def _paper_way(tree: Tree, name: str) -> _Way:
    query = from_tree(intersected(tree))
    if len(query.disjuncts) > 1:
        raise QueryError("the paper's mode reads unions as u, not in De Morgan's form")

    def reduction(part: Conjunction, mask: int) -> Reduction:
        given = tuple(atom for atom in part.atoms if atom.positive)
        missing = {atom.relation for bit, atom in enumerate(given) if mask >> bit & 1}
        left = _left(tree, missing)
        if left is None:
            # A known branch makes a union known, however many links another branch lacks.
            found = Reduction(TRIVIAL, len(missing), 0, 0)
        else:
            left = arrange(left)
            shown = shown_name(names(left)) or left.formula
            inner = sum(node.op == "p" for node in nodes(left)) - 1
            found = Reduction(shown, len(missing), left.depth, inner)
        return _named(found, given, mask, name)

    return query.disjuncts[0], query.free, reduction


def _named(found: Reduction, given: Sequence[Atom], mask: int, name: str) -> Reduction:
    """The reduction under the query's own name where all links are missing."""
    if mask and mask == (1 << len(given)) - 1:
        return replace(found, name=name, full=True)
    return found


def _left(tree: Tree, missing: Collection[object]) -> Tree | None:
    """The tree of the projections by missing links, whose relations are given; None: known."""
    if tree.op == "e":
        return None
    if tree.op == "p":
        below = _left(tree.operands[0], missing)
        if tree.relation not in missing:
            return below
        return project(anchor() if below is None else below)
    if tree.op in "dD":
        return _left(tree.operands[0], missing)
    branches = [_left(operand, missing) for operand in tree.operands if operand.op != "n"]
    unknown = [branch for branch in branches if branch is not None]
    if not unknown or (tree.op in "uU" and len(unknown) < len(branches)):
        return None
    return reduce(lambda one, other: Tree(tree.op.lower(), (one, other)), unknown)


@lru_cache(maxsize=4096)
def _own_name(template: Grounded) -> str:
    return own_name(template)


def _columns(query: Query, links: Links) -> Iterator[tuple[int, str, int]]:
    """The columns of a template, what they hold, and the number that is too large there."""
    for atom in atoms(query):
        assert isinstance(atom.relation, int)
        yield atom.relation, "relation", links.relation_count
        for constant in constants_of(atom):
            assert isinstance(constant.entity, int)
            yield constant.entity, "entity", links.entity_count
