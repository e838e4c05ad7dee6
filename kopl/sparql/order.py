"""The order in which the patterns of a query are joined, by what the knowledge base holds.

Engines guess how many triples a pattern has from its form alone: a constant counts as rare, though
every number without a unit has the same one. The knowledge base knows. Patterns are put in order
greedily: next comes what gives the fewest rows for a row that is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kb import KnowledgeBase
from kb.rdf.iri import decode
from kb.values import Condition, Quantity, Year, read_quantity, read_time
from kopl.sparql.ast import (
    Bind,
    Brackets,
    Element,
    Filter,
    Group,
    Iri,
    Lateral,
    Literal,
    Maybe,
    Named,
    Query,
    SubSelect,
    Term,
    Triple,
    TripleTerm,
    Union,
    Var,
    flat,
    variables,
    walk,
)
from kopl.sparql.encoding import (
    DAY,
    FACT_H,
    FACT_R,
    FACT_T,
    INSTANCE_OF,
    KIND,
    NAME,
    REIFIES,
    UNIT,
    VALUE,
    YEAR,
    Names,
)
from kopl_base.errors import KoplError

_PATTERNS = (Triple, Brackets)

# Guesses where no knowledge base is at hand.
MANY, SOME, FEW = 1e5, 1e3, 4.0


def in_order(query: Query, statistics: Statistics) -> Query:
    """The query with the patterns of every group in the order in which they are to be joined."""
    orderer = _Orderer(statistics, lateral=False)
    return _applied(query, orderer)


def laterally(query: Query, statistics: Statistics) -> Query:
    """The same, each pattern in a LATERAL group of its own, for an engine that has them."""
    return _applied(query, _Orderer(statistics, lateral=True))


def _applied(query: Query, orderer: _Orderer) -> Query:
    if not is_orderless(query.where):
        return query
    orderer.names = Names(variables(query))
    return replace(query, where=orderer.group(query.where, frozenset()))


@dataclass
class _Known:
    """What constants say of the variables of a group."""

    names: dict[Term, str] = field(default_factory=dict)
    units: dict[Term, str] = field(default_factory=dict)
    facts: dict[Term, str] = field(default_factory=dict)  # the predicate of each fact's node
    keys: dict[Term, str] = field(default_factory=dict)  # the key that leads to each value

    @classmethod
    def of(cls, elements: Iterable[Element]) -> _Known:
        known = cls()
        for element in elements:
            if not isinstance(element, Triple):
                continue
            what = element.object
            if element.predicate == NAME and isinstance(what, Literal):
                known.names[element.subject] = what.text
            elif element.predicate == UNIT and isinstance(what, Literal):
                known.units[element.subject] = what.text
            elif element.predicate == FACT_R:
                known.facts[element.subject] = _text(what)
            elif element.predicate == REIFIES and isinstance(what, TripleTerm):
                known.facts[element.subject] = _text(what.predicate)
            elif isinstance(element.predicate, Iri) and ":" not in element.predicate.text:
                known.keys[what] = _text(element.predicate)
        return known


class _Orderer:
    def __init__(self, statistics: Statistics, *, lateral: bool) -> None:
        self.statistics, self.lateral = statistics, lateral
        self.names = Names()

    def group(self, group: Group, bound: frozenset[Var]) -> Group:
        """The group in order, when these variables have values already."""
        opened = list(flat(group.elements))
        said = {(e.subject, e.predicate, e.object) for e in opened if isinstance(e, Triple)}
        elements = [part for e in opened for part in self._opened(e, said)]
        known = _Known.of(elements)
        late = [e for e in elements if isinstance(e, Bind)]
        filters = [e for e in elements if isinstance(e, Filter)]
        maybes = [e for e in elements if isinstance(e, Maybe)]
        joined = [e for e in elements if not isinstance(e, Bind | Filter | Maybe)]
        have = set(bound)
        required = {var for element in joined for var in variables(element)} | have
        steps: list[list[Element]] = []
        while joined:
            best = min(joined, key=lambda e: (self.rows(e, have, known), joined.index(e)))
            joined.remove(best)
            step = [self._inside(best, frozenset(have))]
            have |= set(variables(best))
            # An OPTIONAL comes as soon as what it hangs on is there, a FILTER as soon as it can.
            for maybe in [m for m in maybes if set(variables(m)) & required <= have]:
                maybes.remove(maybe)
                step.append(maybe)
                have |= set(variables(maybe))
            for one in [f for f in filters if set(variables(f)) <= have]:
                filters.remove(one)
                step.append(one)
            steps.append(step)
        return Group((*self._joined(steps), *maybes, *filters, *late))

    def _opened(self, element: Element, said: set[tuple[Term, Term, Term]]) -> list[Element]:
        """A node in brackets as triples of a variable, so that each of them has its place."""
        if not isinstance(element, Brackets):
            return [element]
        fact = self.names.fresh("fact")
        pairs = [*element.inside, *element.outside]
        ends = dict(pairs)
        head, verb, tail = (ends.get(end, fact) for end in (FACT_H, FACT_R, FACT_T))
        once = len(ends) == len(pairs)
        if once and (head, verb, tail) in said and self.statistics.is_literal(_text(verb)):
            # A value node belongs to one fact: its head and key, said outside, are not looked at.
            pairs = [pair for pair in pairs if pair[0] not in (FACT_H, FACT_R)]
        return [Triple(fact, *pair) for pair in pairs]

    def _joined(self, steps: list[list[Element]]) -> list[Element]:
        if not self.lateral:
            return [element for step in steps for element in step]
        found: list[Element] = []
        for step in steps:
            # What comes first is where it starts; a query inside is worked out once, not per row.
            if not found or isinstance(step[0], SubSelect):
                found += step
            else:
                found.append(Lateral(Group(tuple(step))))
        return found

    def _inside(self, element: Element, bound: frozenset[Var]) -> Element:
        if isinstance(element, Union):
            return Union(tuple(self.group(branch, bound) for branch in element.branches))
        if isinstance(element, SubSelect):
            query = element.query
            return SubSelect(replace(query, where=self.group(query.where, frozenset())))
        return element

    def rows(self, element: Element, have: set[Var], known: _Known) -> float:
        """How many rows the element gives for one row."""
        if isinstance(element, Triple):
            return self._triple(element, have, known)
        if isinstance(element, SubSelect):
            return 0.0  # it gives one row, and is independent of what is there
        if isinstance(element, Union):
            return sum(self._group(branch, have) for branch in element.branches)
        return SOME

    def _group(self, group: Group, have: set[Var]) -> float:
        """How many rows a branch gives for one row: greedily, as it will be joined."""
        parts = [part for e in flat(group.elements) for part in self._opened(e, set())]
        elements = [e for e in parts if not isinstance(e, Filter | Maybe | Bind)]
        known, have, rows, most = _Known.of(elements), set(have), 1.0, 1.0
        while elements:
            costs = [self.rows(e, have, known) for e in elements]
            at = costs.index(min(costs))
            rows *= costs[at]
            most = max(most, rows)
            have |= set(variables(elements.pop(at)))
        return most

    def _triple(self, triple: Triple, have: set[Var], known: _Known) -> float:
        statistics = self.statistics
        subject, verb, what = triple.subject, triple.predicate, triple.object
        has_subject, has_object = _has(subject, have), _has(what, have)
        if verb == NAME:
            if isinstance(what, Literal):
                named = statistics.named(what.text)
                return min(1.0, named / 2) if has_subject else named
            return 1.0 if has_subject else statistics.entities
        if verb == KIND:
            return 1.0 if has_subject else statistics.entities
        if verb == INSTANCE_OF:
            concept = known.names.get(what) if isinstance(what, Var) else None
            members = statistics.instances(concept)
            if has_subject:
                share = members / max(1.0, statistics.entities)
                return share if has_object else statistics.concepts_of_one
            return members if has_object else statistics.entities * statistics.concepts_of_one
        if verb in (VALUE, UNIT, YEAR, DAY):
            if has_subject:
                return 0.5 if isinstance(what, Literal) else 1.0
            return self._value_nodes(triple, have, known)
        if isinstance(verb, Var):
            if has_subject and has_object:
                return 0.5
            return statistics.facts_of_one if has_subject or has_object else MANY**2
        if verb in (FACT_H, FACT_R, FACT_T, REIFIES) or subject in known.facts:
            return self._of_fact(triple, has_subject, has_object, have, known)
        total, of_subject, of_object = statistics.predicate(_text(verb))
        if has_subject and has_object:
            return min(1.0, of_subject / 2)
        return of_subject if has_subject else of_object if has_object else total

    def _value_nodes(self, triple: Triple, have: set[Var], known: _Known) -> float:
        """How many value nodes a triple about values finds on its own."""
        statistics, what = self.statistics, triple.object
        everything = statistics.value_nodes
        if triple.predicate == VALUE and isinstance(what, Var) and what in have:
            return statistics.nodes_of_one_number(known.keys.get(triple.subject, ""))
        if not isinstance(what, Literal) or triple.predicate == UNIT:
            return everything
        try:
            condition = self._condition(triple, what, known)
        except (KoplError, ValueError):  # no value that a graph of ours has
            return 0.0
        return statistics.values(condition) if condition is not None else everything

    def _condition(self, triple: Triple, what: Literal, known: _Known) -> Condition | None:
        """The condition that a constant of a triple is."""
        condition = None
        if triple.predicate == VALUE and what.datatype is None:
            condition = Condition((what.text,))
        elif triple.predicate == VALUE and isinstance(triple.subject, Var):
            unit = known.units.get(triple.subject)
            if unit is not None:
                condition = Condition((Quantity(read_quantity(what.text).number, unit),))
        elif triple.predicate == YEAR:
            condition = Condition((Year(int(what.text)),))
        elif triple.predicate == DAY:
            condition = Condition((read_time(what.text),))
        return condition

    def _of_fact(
        self, triple: Triple, has_fact: bool, has_object: bool, have: set[Var], known: _Known
    ) -> float:
        """How many rows a triple of a fact's node gives."""
        statistics, verb = self.statistics, triple.predicate
        total, of_head, of_tail = statistics.predicate(known.facts.get(triple.subject, ""))
        if verb == FACT_R:
            return 0.9 if has_fact else total
        if verb in (FACT_H, FACT_T):
            if has_fact:
                return 0.5 if has_object else 1.0
            if not has_object:
                return statistics.facts
            # The index gives the facts of all relations with that end; a value has only its own.
            if verb == FACT_T and of_tail <= 1.0:
                return 1.0
            return statistics.facts_of_one + (of_head if verb == FACT_H else of_tail)
        if verb == REIFIES:
            # The parts of a triple term are no index: it is found whole or by its fact.
            whole = all(_has(term, have) for term in _parts(triple.object))
            return 1.0 if has_fact or whole else statistics.facts
        if has_fact:
            return 0.5
        return 1.0 if has_object else statistics.qualifiers(_text(verb))


def _parts(term: Term) -> tuple[Term, ...]:
    if isinstance(term, TripleTerm):
        return (term.subject, term.predicate, term.object)
    return (term,)


def _has(term: Term, have: set[Var]) -> bool:
    return not isinstance(term, Var) or term in have


def _text(term: Term) -> str:
    return decode(term.text) if isinstance(term, Iri) else ""


# --- what may be put in another order ----------------------------------------------------------


def is_orderless(group: Group, outside: frozenset[Var] = frozenset()) -> bool:
    """Whether the patterns of a group may be joined in another order, and groups be opened.

    So are those of translations. A query that was written by hand may hide variables from a filter
    by braces, or say something by the place of an OPTIONAL or a BIND. ``outside`` are the
    variables of the groups around it.
    """
    elements = group.elements
    if all(isinstance(element, _PATTERNS) for element in elements):
        return True
    own = [set(variables(element)) for element in elements]
    if all(isinstance(element, (*_PATTERNS, Filter)) for element in elements):
        return _filters_see(elements, own)
    optional: set[Var] = set()
    of_required: set[Var] = set()
    of_patterns: set[Var] = set(outside)
    for element, names in zip(elements, own, strict=True):
        if not isinstance(element, Filter | Bind):
            of_patterns |= names
            if not isinstance(element, Maybe):
                of_required |= names
    before: set[Var] = set()
    for place, (element, names) in enumerate(zip(elements, own, strict=True)):
        if isinstance(element, Maybe):
            # What it shares with others must be there before it; the rest is its own.
            shared = names & (of_required | optional | outside)
            if not shared <= before or not is_orderless(element.group, outside):
                return False
            optional |= names - before
        elif isinstance(element, Bind):
            # It can wait for the end of the group: what it reads is there, and no pattern joins it.
            read = set(variables(element.expression))
            if element.variable in of_patterns or not read & of_patterns <= before | optional:
                return False
        elif not isinstance(element, Filter):
            before |= names
            if not isinstance(element, _PATTERNS):
                others = [other for at, other in enumerate(own) if at != place]
                if not _inside(element, outside.union(*others)):
                    return False
    return _filters_see(elements, own)


def _filters_see(elements: Sequence[Element], own: Sequence[set[Var]]) -> bool:
    """Whether every filter speaks of what is said beside it only."""
    of_filters: set[Var] = set()
    of_others: set[Var] = set()
    for element, names in zip(elements, own, strict=True):
        if isinstance(element, Filter):
            of_filters |= names
        else:
            of_others |= names
    return of_filters <= of_others


def _inside(element: Element, outside: frozenset[Var]) -> bool:
    if isinstance(element, Group):
        if any(isinstance(e, Filter | Maybe | Bind) for e in element.elements):
            return False
        return is_orderless(element, outside)
    if isinstance(element, Union):
        # What a query inside a branch works out cannot be known before it.
        if any(part.variable in outside for part in walk(element) if isinstance(part, Named)):
            return False
        return all(is_orderless(branch, outside) for branch in element.branches)
    if isinstance(element, SubSelect):
        return is_orderless(element.query.where)
    return isinstance(element, Triple | Brackets)


# --- how many rows ----------------------------------------------------------------------------


class Statistics:
    """How many rows a pattern gives; of a knowledge base, or guesses."""

    def __init__(self, kb: KnowledgeBase | None = None) -> None:
        self.kb = kb
        self._fans: dict[str, tuple[float, float, float]] = {}

    def named(self, name: str) -> float:
        """How many nodes have the name."""
        return float(len(self.kb.named(name))) if self.kb is not None else 1.0

    def instances(self, concept: str | None) -> float:
        """How many entities are instances of a concept (of that name, or of any one)."""
        if self.kb is None:
            return SOME
        if concept is not None:
            return float(len(self.kb.instances_of(concept)))
        return self.kb.memberships / max(1, self.kb.concept_count)

    @property
    def entities(self) -> float:
        """How many entities there are."""
        return float(self.kb.entity_count) if self.kb is not None else MANY

    @property
    def concepts_of_one(self) -> float:
        """Of how many concepts an entity is an instance."""
        if self.kb is None:
            return FEW
        return self.kb.memberships / max(1, self.kb.entity_count)

    @property
    def facts_of_one(self) -> float:
        """How many relational facts a node has at one of its ends."""
        if self.kb is None:
            return FEW
        return len(self.kb.relational) / max(1, self.kb.node_count)

    def predicate(self, text: str) -> tuple[float, float, float]:
        """Of a key or relation: its triples, its triples of one subject, and of one object."""
        found = self._fans.get(text)
        if found is None:
            found = self._fans[text] = self._count(text)
        return found

    def _count(self, text: str) -> tuple[float, float, float]:
        if self.kb is None:
            return (SOME, FEW, FEW)
        total, subjects, objects = 0.0, 0.0, 0.0
        key, relation = self.kb.key_number(text), self.kb.relation_number(text)
        if relation >= 0:
            facts = self.kb.relational.of_predicate(relation)
            total += len(facts)
            subjects += len(np.unique(self.kb.relational.subject[facts]))
            objects += len(np.unique(self.kb.relational.object[facts]))
        if key >= 0:
            facts = self.kb.literals.of_predicate(key)
            total += len(facts)
            subjects += len(np.unique(self.kb.literals.subject[facts]))
            objects += len(facts)  # each has a value node of its own
            of_qualifiers = float(self._qualifiers_of_key[key])
            total += of_qualifiers
            subjects += of_qualifiers
            objects += of_qualifiers
        return (total, total / max(1.0, subjects), total / max(1.0, objects))

    def is_literal(self, text: str) -> bool:
        """Whether facts of this name are known to lead to values, never to nodes."""
        if self.kb is None:
            return False
        return self.kb.relation_number(text) < 0 and self.kb.key_number(text) >= 0

    def values(self, condition: Condition) -> float:
        """How many value nodes satisfy a condition."""
        if self.kb is None:
            return SOME
        ends = self._value_nodes_before
        return float(
            sum(ends[high] - ends[low] for low, high in self.kb.values.intervals(condition))
        )

    @property
    def value_nodes(self) -> float:
        """How many value nodes there are."""
        return float(self._value_nodes_before[-1]) if self.kb is not None else MANY

    def nodes_of_one_number(self, key: str) -> float:
        """How many value nodes have the number of a quantity of the key, on average.

        Nodes of other units and keys count: their numbers are the same.
        """
        number = self.kb.key_number(key) if self.kb is not None else -1
        if self.kb is None or number < 0:
            return FEW
        values = np.unique(self.kb.literals.object[self.kb.literals.of_predicate(number)])
        values = values[self.kb.values.is_quantity(values)] - self.kb.values.first_quantity
        return float(self._nodes_of_number[values].mean()) if len(values) else FEW

    @cached_property
    def _nodes_of_number(self) -> Any:
        """For each quantity how many value nodes have its number, in any unit."""
        assert self.kb is not None
        ends = self._value_nodes_before
        first = self.kb.values.first_quantity
        counts = np.diff(ends)[first : self.kb.values.first_time]
        numbers = np.asarray(self.kb.arrays["value_number"])
        _, same = np.unique(numbers, return_inverse=True)
        return np.bincount(same, weights=counts)[same] if len(same) else counts

    @cached_property
    def _set_uses(self) -> Any:
        """How many facts have each qualifier set."""
        assert self.kb is not None
        sets = len(self.kb.arrays["qualifier_starts"]) - 1
        uses: Any = np.bincount(self.kb.literals.qualifiers, minlength=sets)
        uses += np.bincount(self.kb.relational.qualifiers, minlength=sets)
        return uses

    @cached_property
    def _pair_uses(self) -> Any:
        """How many facts have each (key, value) pair of the qualifier sets' columns."""
        assert self.kb is not None
        return np.repeat(self._set_uses, np.diff(self.kb.arrays["qualifier_starts"]))

    @cached_property
    def _qualifiers_of_key(self) -> Any:
        assert self.kb is not None
        keys, _ = self.kb.qualifier_sets.columns()
        return np.bincount(keys, weights=self._pair_uses, minlength=len(self.kb.keys))

    @property
    def facts(self) -> float:
        """How many facts there are."""
        if self.kb is None:
            return MANY
        return float(len(self.kb.relational) + len(self.kb.literals))

    def qualifiers(self, key: str) -> float:
        """How many qualifier values there are of a key."""
        if self.kb is None:
            return SOME
        number = self.kb.key_number(key)
        return float(self._qualifiers_of_key[number]) if number >= 0 else 0.0

    @cached_property
    def _value_nodes_before(self) -> Any:
        """For each value number how many value nodes have a smaller one."""
        assert self.kb is not None
        size = len(self.kb.values)
        _, values = self.kb.qualifier_sets.columns()
        counts = np.bincount(self.kb.literals.object, minlength=size).astype(np.float64)
        counts += np.bincount(values, weights=self._pair_uses, minlength=size)
        ends: Any = np.concatenate(([0], np.cumsum(counts)))
        return ends
