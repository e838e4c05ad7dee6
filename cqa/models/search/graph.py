"""Search over query graphs: the best assignment of all variables, for each value of the free ones.

An atom is read from the end that is nearer to the constants (`oriented`): rows of a predictor are
not the columns of its inverse. Variables that hang on one other are eliminated by messages, which
is exact; a variable on a cycle is cut: its values are tried one after the other, the best first.
Values of several free variables are max-marginals, and the best tuples have scores of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from cqa.errors import QueryError
from cqa.evaluation.plan import in_order
from cqa.models.search.projection import MOST_KEPT, Projection, Way, Ways
from cqa.models.search.settings import SearchSettings
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable

# FIT's program does not cut a variable that has more candidates than this.
PAPER_CANDIDATES = 100
# … and tries so many values of one at most, none but those of value 1.
PAPER_VALUES = 10
# So many values of a cut variable are followed side by side.
AT_ONCE = 32

Pair: TypeAlias = tuple[Variable, Variable]
Columns: TypeAlias = dict[tuple[Pair, int], tuple[Tensor, Tensor]]
"""For a link and an entity at its end: heads, and the link's value from each of them."""


@dataclass
class Net:
    """What is left of a conjunction: sets of variables, links between them, a factor.

    ``sets`` have a value for each entity, None for ones; ``links`` are read from the first of the
    pair; ``ties`` are anti-joins over several variables. ``order`` is the order of reading.
    """

    order: tuple[Variable, ...]
    sets: dict[Variable, Tensor | None]
    links: dict[Pair, Ways]
    ties: list[Query]
    factor: Tensor

    def near(self, variable: Variable) -> list[Pair]:
        """The links of a variable."""
        return [pair for pair in self.links if variable in pair]

    def tied(self, variable: Variable) -> bool:
        """Whether the variable stands in an anti-join with others."""
        return any(variable in part.free for part in self.ties)

    def copied(self) -> Net:
        """The same, to be changed."""
        return replace(self, sets=dict(self.sets), links=dict(self.links), ties=list(self.ties))


class GraphSearch:
    """The best assignments of grounded query graphs, by the settings of a search."""

    def __init__(self, projection: Projection) -> None:
        self.projection = projection
        self.settings: SearchSettings = projection.settings
        self._size = projection.rows.entity_count

    def marginals(self, query: Query) -> Tensor:
        """For each free variable the score of each entity: that of the best answer with it."""
        top = self.settings.top
        if len(query.disjuncts) > 1 and self.settings.t_conorm != "maximum":
            top = None
        return self._marginals(oriented(query), top)

    def value_of(self, query: Query, row: Sequence[int]) -> Tensor:
        """The score of one answer, a tensor of no dimension; raises QueryError by its length."""
        if len(row) != len(query.free):
            raise QueryError(
                f"the answer has {len(row)} entities; the query has {len(query.free)} free"
                " variables"
            )
        return self._value(fixed_query(oriented(query), row))

    def _marginals(self, query: Query, top: int | None = None) -> Tensor:
        free = query.free
        parts = [torch.stack(self._solved(self.net(d, free), free, top)) for d in query.disjuncts]
        return parts[0] if len(parts) == 1 else self.settings.any_of(parts)

    def _value(self, query: Query) -> Tensor:
        parts = [self.closed(disjunct) for disjunct in query.disjuncts]
        return parts[0] if len(parts) == 1 else self.settings.any_of(parts)

    def tuples(self, query: Query, most: int) -> tuple[list[tuple[int, ...]], Tensor]:
        """The best answers of several free variables, with their scores, the best first."""
        query = oriented(query)
        found: dict[tuple[int, ...], float] = {}
        for disjunct in query.disjuncts:
            net = self.net(disjunct, query.free)
            for row, score in self._tuples(net, query.free, most):
                found[row] = max(score, found.get(row, 0.0))
        rows = list(found)
        if len(query.disjuncts) > 1:
            # A disjunct adds something to the best of another even where it is not among its best.
            scores = torch.stack([self._value(fixed_query(query, row)) for row in rows])
        else:
            scores = torch.tensor([found[row] for row in rows])
        best = scores.argsort(descending=True, stable=True)[:most]
        return [rows[at] for at in best.tolist()], scores[best]

    # What explains an answer; the conjunctions are oriented already.

    def closed(self, given: Conjunction) -> Tensor:
        """The score of a conjunction without free variables, a tensor of no dimension."""
        return self._factor(self.net(given, ()))

    def closed_over(self, given: Conjunction, variable: Variable) -> Tensor:
        """For each entity the score of a conjunction with it in place of a variable, [E]."""
        return self._solved(self.net(given, (variable,)), (variable,), None)[0]

    def negated(self, part: Query) -> Tensor:
        """The value of a negated part without free variables."""
        return self.settings.negated(self._value(part))

    # --- reading a conjunction ------------------------------------------------------------------

    def net(self, given: Conjunction, free: tuple[Variable, ...]) -> Net:
        """The sets and links of an oriented conjunction.

        Constants and anti-joins that share one variable are in the sets already.
        """
        order = reading_order(given, free)
        net = Net(order, dict.fromkeys(order), {}, [], self.projection.rows.ones()[0])
        late: list[tuple[Variable, Way, int | None]] = []
        for atom in given.atoms:
            way = Way(_number(atom.relation, "relation"), atom.positive)
            head, tail = atom.head, atom.tail
            if isinstance(head, Constant):
                row = self.projection.between((way,), self.projection.rows.one(_entity(head)))[0]
                if isinstance(tail, Constant):
                    net.factor = self.settings.times(net.factor, row[_entity(tail)])
                else:
                    self._meet(net, tail, row)
            elif isinstance(tail, Constant):
                late.append((head, way, _entity(tail)))
            elif head == tail:
                late.append((head, way, None))
            else:
                net.links[head, tail] = (*net.links.get((head, tail), ()), way)
        for part in given.without:
            self._anti_join(net, part)
        for variable, way, tail_entity in late:
            self._limit(net, variable, (way,), tail_entity)
        return net

    def _anti_join(self, net: Net, part: Query) -> None:
        if len(part.free) > 1:
            net.ties.append(part)
        elif part.free:
            self._meet(net, part.free[0], self.settings.negated(self._marginals(part)[0]))
        else:
            net.factor = self.settings.times(net.factor, self.settings.negated(self._value(part)))

    def _meet(self, net: Net, variable: Variable, values: Tensor) -> None:
        own = net.sets[variable]
        net.sets[variable] = values if own is None else self.settings.times(own, values)

    def _limit(self, net: Net, variable: Variable, ways: Ways, tail: int | None) -> None:
        """Multiply a set with what its entities' rows say of one tail, or of themselves (None)."""
        own = self._set(net, variable)
        heads = own.nonzero()[:, 0]
        found = torch.zeros_like(own)
        for chunk in torch.split(heads, 256):
            rows = self.projection.between(ways, chunk)
            ends = chunk if tail is None else torch.full_like(chunk, tail)
            values = rows.gather(1, ends[:, None])[:, 0]
            found[chunk] = self.settings.times(own[chunk], values)
        net.sets[variable] = found

    def _set(self, net: Net, variable: Variable) -> Tensor:
        own = net.sets[variable]
        return self.projection.rows.ones() if own is None else own

    # --- elimination ----------------------------------------------------------------------------
    #
    # Nets of one form, which differ in their values only, are eliminated side by side: what they
    # need of a relation is made once.

    def _factor(self, net: Net) -> Tensor:
        """The score of the best assignment of everything that is left."""
        return self._factors([net])[0]

    def _factors(self, nets: list[Net]) -> list[Tensor]:
        """The same for each of some nets of one form."""
        first = nets[0]
        if not first.sets:
            return [net.factor for net in nets]
        last = next(variable for variable in reversed(first.order) if variable in first.sets)
        return [scores.max() for (scores,) in self._each_solved(nets, (last,), 1)]

    def _solved(self, net: Net, free: tuple[Variable, ...], top: int | None) -> list[Tensor]:
        """The max-marginals of some variables, [E] each; ``net`` is used up."""
        return self._each_solved([net], free, top)[0]

    def _each_solved(
        self, nets: list[Net], free: tuple[Variable, ...], top: int | None
    ) -> list[list[Tensor]]:
        """The same for each of some nets of one form."""
        self._eliminate(nets, free, top if len(free) == 1 else None)
        if self._core(nets[0]):
            return [self._cut(net, free, top) for net in nets]
        if len(free) == 1:
            return [[self.settings.times(self._set(net, free[0]), net.factor)] for net in nets]
        parts = [
            self._each_solved([net.copied() for net in nets], (variable,), top) for variable in free
        ]
        return [[part[at][0] for part in parts] for at in range(len(nets))]

    def _core(self, net: Net) -> list[Variable]:
        """The variables that are on cycles or between them, or in ties; in the order of reading."""
        pairs = {frozenset(pair) for pair in net.links}
        while True:
            ends = [variable for pair in pairs for variable in pair]
            kept = {pair for pair in pairs if all(ends.count(v) > 1 for v in pair)}
            if len(kept) == len(pairs):
                break
            pairs = kept
        inside = {variable for pair in pairs for variable in pair}
        return [v for v in net.order if v in net.sets and (v in inside or net.tied(v))]

    def _eliminate(self, nets: list[Net], free: tuple[Variable, ...], top: int | None) -> None:
        """Send messages from all variables that hang on one other, or on none."""
        first = nets[0]
        while True:
            hanging = [
                (variable, first.near(variable))
                for variable in first.sets
                if variable not in free and not first.tied(variable)
            ]
            hanging = [(variable, near) for variable, near in hanging if len(near) < 2]
            if not hanging:
                return
            # What is read towards its neighbour comes first: it narrows the neighbour's set.
            variable, near = min(hanging, key=lambda one: bool(one[1]) and one[1][0][0] != one[0])
            if near:
                self._message(nets, variable, near[0], free, top)
            for net in nets:
                own = net.sets.pop(variable)
                if not near and own is not None:
                    net.factor = self.settings.times(net.factor, own.max())

    def _message(
        self, nets: list[Net], variable: Variable, pair: Pair, free: tuple[Variable, ...],
        top: int | None,
    ) -> None:  # fmt: skip
        first = nets[0]
        ways = first.links[pair]
        for net in nets:
            del net.links[pair]
        other = pair[1] if pair[0] == variable else pair[0]
        # Only for the last message may the search stop at the best scores.
        last = top if free == (other,) and len(first.sets) == 2 and not first.ties else None
        if pair[0] == variable:
            given = torch.stack([self._set(net, variable) for net in nets])
            if first.sets[other] is not None:
                last = None
            for net, found in zip(
                nets, self.projection.onward(given, [ways] * len(nets), last), strict=True
            ):
                self._meet(net, other, found)
            return
        states = [self._set(net, other) for net in nets]
        if other not in free:
            states = [self.projection.beamed(state) for state in states]
        owns = [net.sets[variable] for net in nets]
        ahead = [own for own in owns if own is not None]
        reached = self.projection.backward(
            torch.stack(states), ways, torch.stack(ahead) if ahead else None, last
        )
        for net, found in zip(nets, reached, strict=True):
            net.sets[other] = found

    # --- cut sets -------------------------------------------------------------------------------

    def _cut(self, net: Net, free: tuple[Variable, ...], top: int | None) -> list[Tensor]:
        """The max-marginals where there are cycles: the values of a variable one by one."""
        core = self._core(net)
        paper = self.settings.compat == "paper"
        if paper:
            chosen = next((v for v in core if v not in free), core[0])
        else:
            # The fewer values there are to try, and rows that are read towards them, the better.
            sizes = {v: int((self._set(net, v) > 0).sum()) for v in net.sets}
            rows = {v: sum(sizes[a] for a, b in net.links if b == v) for v in core}
            chosen = min(core, key=lambda variable: sizes[variable] + rows[variable])
        own = self._set(net, chosen)
        many = int((own > 0).sum()) > PAPER_CANDIDATES
        if paper and many and chosen not in free and not net.tied(chosen):
            return self._uncoupled(net, chosen, free, top)
        found = [torch.zeros_like(own) for _ in free]
        others = tuple(variable for variable in free if variable != chosen)
        values = self._values(own, free, chosen)
        towards = self._towards(net, chosen, values)
        for at in range(0, len(values), AT_ONCE):
            chunk = values[at : at + AT_ONCE]
            bound = float(own[chunk[0]] * net.factor) if self._products else float(own[chunk[0]])
            if all(bound <= self._bar(scores, top) for scores in found):
                break
            parts = [self.fixed(net, chosen, value, towards) for value in chunk]
            if others:
                solved = self._each_solved(parts, others, top)
                bests = [max(float(scores.max()) for scores in one) for one in solved]
            else:
                solved = [[] for _ in chunk]
                bests = list(map(float, self._factors(parts)))
            for value, one, best in zip(chunk, solved, bests, strict=True):
                results = dict(zip(others, one, strict=True))
                for scores, variable in zip(found, free, strict=True):
                    if variable == chosen:
                        scores[value] = max(best, float(scores[value]))
                    else:
                        torch.maximum(scores, results[variable], out=scores)
        if paper and len(found) > 1:
            # The program holds the maxima of all free variables in one buffer.
            found[0] = torch.maximum(found[0], found[1])
        return found

    @property
    def _products(self) -> bool:
        return self.settings.t_norm == "product"

    def _bar(self, scores: Tensor, top: int | None) -> float:
        if top is None or top >= len(scores):
            return float(scores.min())
        return float(torch.topk(scores, top, sorted=False).values.min())

    def _values(self, own: Tensor, free: tuple[Variable, ...], chosen: Variable) -> list[int]:
        """The values of a cut variable that are tried, the best first."""
        given = self.settings
        count = int((own > 0).sum())
        known = int((own >= 1).sum())
        if given.compat == "paper" and chosen not in free:
            count = min(PAPER_VALUES, known)
        elif given.cut is not None and chosen not in free:
            count = min(count, given.cut + (known if given.cut_known else 0))
        if not count:
            return []
        order = own.argsort(descending=True, stable=True)[:count]
        values: list[int] = order.tolist()
        return values

    def _uncoupled(
        self, net: Net, chosen: Variable, free: tuple[Variable, ...], top: int | None
    ) -> list[Tensor]:
        """FIT's program: each neighbour gets the best of the variable by itself."""
        net = net.copied()
        for pair in net.near(chosen):
            ways = net.links.pop(pair)
            own = self._set(net, chosen)
            if pair[0] == chosen:
                reached = self.projection.onward(own[None], [ways])[0]
                self._meet(net, pair[1], reached)
            else:
                other = self._set(net, pair[0])
                net.sets[pair[0]] = self.projection.backward(other[None], ways, own[None])[0]
        del net.sets[chosen]
        return self._solved(net, free, top)

    def _towards(self, net: Net, chosen: Variable, values: list[int]) -> Columns:
        """What links that are read towards a variable say of some of its values."""
        found: Columns = {}
        ends = torch.tensor(values, device=net.factor.device, dtype=torch.long)
        for pair in net.near(chosen):
            if pair[1] != chosen or not values:
                continue
            own = self._set(net, pair[0])
            heads = own.nonzero()[:, 0]
            keep = len(heads) <= MOST_KEPT
            parts = [
                self.projection.between(net.links[pair], chunk, keep)[:, ends]
                for chunk in torch.split(heads, 64)
            ]
            table = torch.cat(parts) if parts else own.new_zeros((0, len(values)))
            for at, value in enumerate(values):
                found[pair, value] = heads, table[:, at]
        return found

    def fixed(
        self, net: Net, variable: Variable, value: int, towards: Columns | None = None
    ) -> Net:
        """The net with an entity for a variable; ``towards`` are links to it that are known."""
        net = net.copied()
        own = net.sets.pop(variable)
        if own is not None:
            net.factor = self.settings.times(net.factor, own[value])
        for pair in net.near(variable):
            ways = net.links.pop(pair)
            if pair[0] == variable:
                row = self.projection.between(ways, self.projection.rows.one(value))[0]
                self._meet(net, pair[1], row)
            elif towards and (pair, value) in towards:
                heads, column = towards[pair, value]
                given = self._set(net, pair[0])
                left = torch.zeros_like(given)
                left[heads] = self.settings.times(given[heads], column)
                net.sets[pair[0]] = left
            else:
                self._limit(net, pair[0], ways, value)
        ties, net.ties = net.ties, []
        for part in ties:
            self._anti_join(net, _fixed(part, {variable: value}))
        return net

    def _tuples(
        self, net: Net, free: tuple[Variable, ...], most: int
    ) -> list[tuple[tuple[int, ...], float]]:
        scores = self._solved(net.copied(), free[:1], most)[0]
        if len(free) == 1:
            values, ids = scores.topk(min(most, self._size))
            pairs = zip(ids.tolist(), values.tolist(), strict=True)
            return [((entity,), value) for entity, value in pairs if value > 0]
        found: list[tuple[tuple[int, ...], float]] = []
        order = scores.argsort(descending=True, stable=True)
        for entity in order.tolist():
            bound = float(scores[entity])
            if bound <= 0 or (len(found) >= most and bound <= found[most - 1][1]):
                break
            part = self._tuples(self.fixed(net, free[0], entity), free[1:], most)
            found += [((entity, *row), value) for row, value in part]
            found.sort(key=lambda one: -one[1])
            del found[most:]
        return found


# --- the order in which atoms are read ------------------------------------------------------------


def reading_order(given: Conjunction, free: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """The variables of a conjunction in the order in which they are read.

    Constants come before them; then, of the existential variables that positive links lead to from
    what was read, the farthest from the free ones; free variables when there is no other, in their
    order; what no constant leads to at last. Negated links lead on to nearly everything, which
    would all have to be followed.
    """
    variables = tuple(dict.fromkeys((*given.variables, *free)))
    near: dict[Variable, list[Variable]] = {variable: [] for variable in variables}
    ready: set[Variable] = set()
    for atom in given.atoms:
        ends = atom.variables
        if not atom.positive:
            continue
        if len(ends) == 2:
            near[ends[0]].append(ends[1])
            near[ends[1]].append(ends[0])
        elif isinstance(atom.head, Constant) or isinstance(atom.tail, Constant):
            ready.update(ends)
    return tuple(in_order(near, ready, free, stranded=True))


def oriented(query: Query) -> Query:
    """The query with each atom turned so that its head is read before its tail.

    A turned atom has the inverse relation, whose rows are not the columns of the other. A negated
    part has an order of its own, in which the variables that it shares are free ones.
    """
    disjuncts = []
    for given in query.disjuncts:
        order = reading_order(given, query.free)
        place: dict[Term, int] = {variable: at for at, variable in enumerate(order)}
        atoms = tuple(_turned(atom, place) for atom in given.atoms)
        disjuncts.append(Conjunction(atoms, tuple(map(oriented, given.without))))
    return Query(query.free, tuple(disjuncts))


def _turned(atom: Atom, place: Mapping[Term, int]) -> Atom:
    if place.get(atom.head, -1) <= place.get(atom.tail, -1):
        return atom
    turned = _number(atom.relation, "relation") ^ 1
    return Atom(turned, atom.tail, atom.head, atom.positive)


# --- entities in place of variables ---------------------------------------------------------------


def fixed_query(query: Query, row: Sequence[int]) -> Query:
    """The query with an answer in place of its free variables; atoms stay turned as they are."""
    return _fixed(query, dict(zip(query.free, row, strict=True)))


def _fixed(query: Query, values: Mapping[Variable, int]) -> Query:
    def term(given: Term) -> Term:
        if isinstance(given, Variable) and given in values:
            return Constant(values[given])
        return given

    return Query(
        tuple(variable for variable in query.free if variable not in values),
        tuple(
            Conjunction(
                tuple(Atom(a.relation, term(a.head), term(a.tail), a.positive) for a in d.atoms),
                tuple(_fixed(part, values) for part in d.without),
            )
            for d in query.disjuncts
        ),
    )


def _number(given: int | str, what: str) -> int:
    if not isinstance(given, int):
        raise QueryError(
            f"the query is not grounded: a {what} is the name {given!r}; a number was expected"
        )
    return given


def _entity(given: Constant) -> int:
    return _number(given.entity, "constant")
