"""The facts that a call of a program would read, and which of them fit what is written in it.

All follows from the declaration of its function: which arguments are a key, a relation, a value and
what is compared with what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from kb import Condition, KnowledgeBase
from kb.arrays import Ids, Mask, mask_of, unite
from kb.facts import FactTable
from kb.schema import ValueType
from kb.values import OPERATORS, Operator, ValueReadError
from kopl.automaton import type_of_key
from kopl.denotation import Located, Outcome
from kopl.drafts import Draft
from kopl.functions import FUNCTIONS, Function
from kopl.typecheck import read_argument
from kopl.types import Kind, Type

CONSTANTS = frozenset({Kind.STRING, Kind.QUANTITY, Kind.TIME, Kind.ANY_VALUE})


@dataclass(frozen=True)
class ReadFacts:
    """Facts that a call may read: what each belongs to, and which node it puts in the result.

    Where a qualifier is asked for, a fact stands once for each (key, value) of its qualifiers.
    """

    kb: KnowledgeBase
    table: FactTable
    facts: Ids
    own: Ids
    gives: Ids
    direction: str = ""
    pair_keys: Ids | None = None
    pair_values: Ids | None = None

    def those(self, kept: Mask) -> ReadFacts:
        return replace(
            self,
            facts=self.facts[kept],
            own=self.own[kept],
            gives=self.gives[kept],
            pair_keys=None if self.pair_keys is None else self.pair_keys[kept],
            pair_values=None if self.pair_values is None else self.pair_values[kept],
        )

    @property
    def is_relational(self) -> bool:
        return self.table is self.kb.relational

    def by_qualifier(self) -> ReadFacts:
        """Each fact once for each of its qualifiers' values."""
        if self.pair_keys is not None:
            return self
        at, keys, values = self.kb.qualifier_sets.pairs_at(self.table.qualifiers[self.facts])
        return replace(
            self,
            facts=self.facts[at],
            own=self.own[at],
            gives=self.gives[at],
            pair_keys=keys,
            pair_values=values,
        )

    def typed(self, values: Ids, type: ValueType | None) -> ReadFacts:
        """Those with values of a type."""
        return self if type is None else self.those(of_type(self.kb, values, type))


@dataclass(frozen=True)
class Place:
    """The argument at hand: its call, what the inputs give, and what is written beside it.

    ``inputs`` has None for what is not known; ``wanted`` are the nodes of which the call has to
    give one, None where all will do.
    """

    function: Function
    inputs: tuple[Outcome | None, ...]
    arguments: tuple[str | None, ...]
    index: int
    wanted: Ids | None = None
    types: tuple[ValueType, ...] = ()
    typed: str = ""
    limit: int = 30
    # The call as far as it is written, for what its inputs say of themselves.
    draft: Draft = field(default_factory=Draft)

    @property
    def kind(self) -> Kind:
        return self.function.arguments[self.index][1]

    def written(self, index: int | None) -> str | None:
        """The argument, unless it is missing or the one at hand."""
        return None if index is None or index == self.index else self.arguments[index]


@dataclass(frozen=True)
class Roles:
    """Which argument of a function is which: the key or relation, its value, a qualifier's."""

    predicate: int | None = None
    value: int | None = None
    qualifier: int | None = None
    qualified: int | None = None
    operator: int | None = None
    direction: int | None = None

    @property
    def compared(self) -> int | None:
        """The value that the operator compares with."""
        return self.value if self.qualified is None else self.qualified


def roles_of(function: Function) -> Roles:
    found: dict[str, int] = {}
    behind = "value"
    for index, (_, kind) in enumerate(function.arguments):
        if kind is Kind.QUALIFIER_KEY:
            found["qualifier"], behind = index, "qualified"
        elif kind in (Kind.KEY, Kind.RELATION):
            found["predicate"] = index
        elif kind in CONSTANTS:
            found[behind] = index
        elif kind is Kind.OPERATOR:
            found["operator"] = index
        elif kind is Kind.DIRECTION:
            found["direction"] = index
    return Roles(**found)


def keys_of(
    function: Function, texts: tuple[str | None, ...], index: int
) -> tuple[str | None, ...]:
    """Of the arguments only the key whose value the one at hand is, if it is one."""
    roles = ROLES[function]
    behind = {roles.value: roles.predicate, roles.qualified: roles.qualifier}
    kept = behind.get(index)
    return tuple(text if at == kept else None for at, text in enumerate(texts))


ROLES = {function: roles_of(function) for function in FUNCTIONS.values()}


class Readable:
    """The facts of a knowledge base as calls read them; what was worked out is kept."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._rows: dict[Any, list[ReadFacts]] = {}

    def quantities(self, nodes: Ids) -> ReadFacts:
        rows = self._literals(nodes)
        return rows.typed(rows.table.object[rows.facts], "quantity")

    def _literals(self, nodes: Ids) -> ReadFacts:
        kb = self.kb
        facts = kb.literals.of_subjects(nodes[nodes < kb.entity_count])
        own = kb.literals.subject[facts]
        return ReadFacts(kb, kb.literals, facts, own, own)

    def _between(self, place: Place) -> list[ReadFacts]:
        """The facts from the first input to the second."""
        kb, table = self.kb, self.kb.relational
        heads, tails = (ids_of(one) for one in place.inputs)
        if heads is None and tails is None:
            facts = np.arange(len(table), dtype=np.int32)
        elif heads is None or tails is None:
            facts = table.of_tails(cast(Ids, tails)) if heads is None else table.of_subjects(heads)
        else:
            facts = table.between(heads, tails, kb.node_count)
        own, gives = table.subject[facts], table.object[facts]
        return [ReadFacts(kb, table, facts, own, gives)]

    def sources(self, place: Place, roles: Roles) -> list[ReadFacts]:
        """The facts that a call reads, by its inputs alone."""
        function = place.function
        kinds = {kind for _, kind in function.arguments}
        form = "".join(
            "f" if Type.FACTS in function.inputs else "r" if Kind.RELATION in kinds else "l"
        )
        key = (form, function.arity, *map(id, place.inputs))
        if key not in self._rows:
            self._rows[key] = self._read(place, form)
        return self._rows[key]

    def _read(self, place: Place, form: str) -> list[ReadFacts]:
        kb = self.kb
        if form == "f":
            carried = place.inputs[0]
            if isinstance(carried, Located) and carried.table is not None:
                facts = carried.facts
                ends = carried.table.object if carried.by_object else carried.table.subject
                return [ReadFacts(kb, carried.table, facts, ends[facts], ends[facts])]
            return [*self._relations(None), self._literals(kb.entities)]
        if form == "r":
            if place.function.arity == 2:
                return self._between(place)
            return self._relations(ids_of(place.inputs[0]))
        known = [ids_of(one) for one in place.inputs]
        if len(known) == 1:
            return [self._literals(kb.entities if known[0] is None else known[0])]
        sides = [self.quantities(kb.entities if one is None else one) for one in known]
        shared = np.intersect1d(unit_codes(sides[0]), unit_codes(sides[1]))
        both = self.quantities(unite([side.own for side in sides]))
        return [both.those(np.isin(unit_codes(both), shared))]

    def _relations(self, nodes: Ids | None) -> list[ReadFacts]:
        kb, table = self.kb, self.kb.relational
        every = np.arange(len(table), dtype=np.int32)
        found = []
        for direction in Kind.DIRECTION.choices:
            forward = direction == Kind.DIRECTION.choices[0]
            facts = every
            if nodes is not None:
                facts = table.of_subjects(nodes) if forward else table.of_tails(nodes)
            ends = (table.subject, table.object) if forward else (table.object, table.subject)
            found.append(ReadFacts(kb, table, facts, ends[0][facts], ends[1][facts], direction))
        return found

    def narrowed(self, place: Place, roles: Roles, rows: Iterable[ReadFacts]) -> list[ReadFacts]:
        """Of the facts those that fit what is written beside the argument at hand."""
        function, kb = place.function, self.kb
        found = []
        direction = place.written(roles.direction)
        for one in rows:
            if direction is not None and one.direction != direction:
                continue
            if place.wanted is not None:
                # The call has to give one of them.
                one = one.those(mask_of(place.wanted, kb.node_count)[one.gives])
            if roles.predicate is not None:
                text = place.written(roles.predicate)
                if text is not None:
                    number = (kb.relation_number if one.is_relational else kb.key_number)(text)
                    one = one.those(one.table.predicate[one.facts] == number)
                if not one.is_relational:
                    for type in (type_of_key(function, roles.predicate), *place.types):
                        one = one.typed(one.table.object[one.facts], type)
            if (condition := self._conditions(place, roles.value, roles)) is not None:
                one = one.those(self._satisfying(one.table.object[one.facts], condition))
            if roles.qualifier is not None:
                one = self._by_qualifier(place, roles, one.by_qualifier())
            found.append(one)
        return found

    def _by_qualifier(self, place: Place, roles: Roles, rows: ReadFacts) -> ReadFacts:
        assert roles.qualifier is not None and rows.pair_keys is not None
        text = place.written(roles.qualifier)
        if text is not None:
            rows = rows.those(rows.pair_keys == self.kb.key_number(text))
        assert rows.pair_values is not None
        rows = rows.typed(rows.pair_values, type_of_key(place.function, roles.qualifier))
        if (condition := self._conditions(place, roles.qualified, roles)) is not None:
            assert rows.pair_values is not None
            rows = rows.those(self._satisfying(rows.pair_values, condition))
        return rows

    def _conditions(self, place: Place, index: int | None, roles: Roles) -> list[Condition] | None:
        """What a written value asks, of which one has to hold; None where none is written."""
        text = place.written(index)
        if text is None or index is None:
            return None
        try:
            constant = read_argument(place.function, index, text)
        except ValueReadError:
            return None
        if isinstance(constant, Condition):
            return [constant]
        operators: Sequence[str] = ("=",)
        if roles.operator is not None and index == roles.compared:
            written = place.written(roles.operator)
            operators = OPERATORS if written is None else (written,)
        return [Condition((constant,), cast(Operator, operator)) for operator in operators]

    def _satisfying(self, values: Ids, conditions: Iterable[Condition]) -> Mask:
        found: Mask = np.zeros(len(values), np.bool_)
        for condition in conditions:
            found |= self.kb.satisfying(values, condition)
        return found


def of_type(kb: KnowledgeBase, values: Ids, type: ValueType | None) -> Mask:
    """For each value whether it is of the type."""
    table = kb.values
    if type == "string":
        return values < table.first_quantity
    if type == "quantity":
        return table.is_quantity(values)
    return values >= (table.first_time if type == "time" else 0)


def unit_codes(rows: ReadFacts) -> Ids:
    """For each fact a number for its key and the unit of its quantity."""
    values = rows.table.object[rows.facts]
    units = rows.kb.values.units_of(values).astype(np.int64)
    codes = units * (len(rows.kb.keys) + 1) + rows.table.predicate[rows.facts]
    return codes


def ids_of(outcome: Outcome | None) -> Ids | None:
    """The nodes that a call gave; None where it gave none or is not known."""
    return outcome.ids if isinstance(outcome, Located) else None
