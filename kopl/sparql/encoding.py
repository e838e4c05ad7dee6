"""How a knowledge base stands in a graph: KQA Pro's encoding (docs/rdf.md).

`Encoding` turns what a translation wants to say ("this node has that name", "this value satisfies
that condition") into patterns. A graph of another form is a subclass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from kb.rdf.iri import RDF, encode
from kb.schema import ValueType
from kb.values import Condition, Date, Quantity, Value, Year, print_number
from kopl.sparql.ast import (
    DATE,
    DOUBLE,
    INTEGER,
    AllOf,
    AnyOf,
    Apply,
    Brackets,
    Compare,
    Element,
    Expression,
    Filter,
    Group,
    Iri,
    Literal,
    Maybe,
    Not,
    Query,
    Term,
    Triple,
    TripleTerm,
    Union,
    Var,
)

NAME, KIND = Iri("pred:name"), Iri("pred:kind")
INSTANCE_OF = Iri("pred:instance_of")
VALUE, UNIT, YEAR, DAY = (Iri(f"pred:{word}") for word in ("value", "unit", "year", "date"))
FACT_H, FACT_R, FACT_T = (Iri(f"pred:fact_{end}") for end in "hrt")
REIFIES = Iri(RDF + "reifies")
ENTITY = Literal("entity")

# The variables that a value is fetched in; the place that reads answers knows them.
VALUE_VARS = tuple(Var(name) for name in ("value", "unit", "year", "date"))

Branch = TypeVar("Branch")


class Names:
    """Fresh variables: ``e``, ``e_1``, ``e_2`` …"""

    def __init__(self, taken: Iterable[Var] = ()) -> None:
        self._taken = {var.name for var in taken}
        self._next: dict[str, int] = {}

    def fresh(self, stem: str, *, numbered: bool = False) -> Var:
        """A variable that was not given before; the first has no number unless ``numbered``."""
        while True:
            number = self._next.get(stem, 1 if numbered else 0)
            self._next[stem] = number + 1
            name = f"{stem}_{number}" if number else stem
            if name not in self._taken:
                self._taken.add(name)
                return Var(name)

    def alternatives(self, branches: Iterable[Branch], *, reuse: bool) -> Iterator[Branch]:
        """The branches of a union, one by one.

        ``reuse``: each begins with the same variables, which do not meet: the data's way.
        """
        before, most = (set(self._taken), dict(self._next)), dict(self._next)
        taken = set(self._taken)
        for branch in branches:
            if reuse:
                self._taken, self._next = set(before[0]), dict(before[1])
            yield branch
            taken |= self._taken
            most |= {stem: max(n, most.get(stem, 0)) for stem, n in self._next.items()}
        self._taken, self._next = taken, most


def double(number: float) -> Literal:
    """A number as the encoding writes it: one lexical form for each double."""
    return Literal(print_number(number), DOUBLE)


def integer(number: int) -> Literal:
    """A year as the encoding writes it."""
    return Literal(str(number), INTEGER)


def day(date: Date) -> Literal:
    """A day as the encoding writes it."""
    return Literal(str(date), DATE)


def schema_iri(text: str) -> Iri:
    """The IRI of a key or relation."""
    return Iri(encode(text))


@dataclass(frozen=True)
class Encoding:
    """KQA Pro's encoding.

    ``kinds``: the graph says of every node whether it is an entity (``pred:kind``); without,
    FindAll is "has a concept". ``terms``: facts are reified by triple terms of RDF 1.2.
    """

    kinds: bool = True
    terms: bool = False

    # The styles that a query can be written in.
    styles: ClassVar[tuple[str, ...]] = ("exact", "data")
    # Whether the statistics of a knowledge base tell how many triples a pattern has.
    counted: ClassVar[bool] = True

    # --- nodes ----------------------------------------------------------------------------

    def named(self, node: Var, name: Term) -> list[Element]:
        """The node has this name (every entity and concept has one name)."""
        return [Triple(node, NAME, name)]

    def instance(self, node: Var, concept: str, names: Names) -> list[Element]:
        """The node is an instance of a concept of that name or of one below it."""
        above = names.fresh("c")
        return [Triple(node, INSTANCE_OF, above), Triple(above, NAME, Literal(concept))]

    def entity(self, node: Var, names: Names, *, by_kind: bool = True) -> list[Element]:
        """The node is an entity and not a concept."""
        if self.kinds and by_kind:
            return [Triple(node, KIND, ENTITY)]
        return [Triple(node, INSTANCE_OF, names.fresh("c"))]

    def node(self, node: Var, names: Names) -> list[Element]:
        """The variable stands for a node, not for a value or a fact."""
        return self.named(node, names.fresh("n"))

    # --- facts ----------------------------------------------------------------------------

    def relation(self, head: Var, relation: str, tail: Var) -> list[Element]:
        """There is such a fact."""
        return [Triple(head, schema_iri(relation), tail)]

    def attribute(self, node: Var, key: str, value: Var) -> list[Element]:
        """The node has the value."""
        return [Triple(node, schema_iri(key), value)]

    def fact(
        self, head: Var, predicate: str, tail: Var, qualifiers: Sequence[tuple[str, Var]]
    ) -> list[Element]:
        """One fact has all of these qualifiers."""
        verb = schema_iri(predicate)
        pairs: tuple[tuple[Term, Term], ...] = tuple((schema_iri(k), v) for k, v in qualifiers)
        if self.terms:
            return [Brackets(((REIFIES, TripleTerm(head, verb, tail)),), pairs)]
        return [Brackets(((FACT_H, head), (FACT_R, verb), (FACT_T, tail)), pairs)]

    def fact_of(self, node: Var, value: Var) -> Var:
        """What stands for the fact that `attribute` speaks of: every fact has a value node."""
        return value

    def any_relation(self, head: Var, relation: Var, tail: Var, *, only: bool) -> list[Element]:
        """Some relation leads from node to node; ``only``: none of the encoding's own."""
        found: list[Element] = [Triple(head, relation, tail)]
        if only:
            own = Apply("STRSTARTS", (Apply("STR", (relation,)), Literal("pred:")))
            found.append(Filter(Not(own)))
        return found

    # --- values ---------------------------------------------------------------------------

    def types(self, key: str) -> Collection[ValueType] | None:
        """The types that the values of a key have by the encoding; None when they are not known."""
        return None

    def quantity(self, value: Var, unit: Term, number: Term) -> list[Element]:
        """The value is a quantity: its unit and its number."""
        return [Triple(value, UNIT, unit), Triple(value, VALUE, number)]

    def equal_quantity(self, value: Var, unit: Var, number: Var) -> list[Element]:
        """The value is a quantity of the unit and number that the two variables have already."""
        return self.quantity(value, unit, number)

    def printed(self, value: Var, types: Collection[str] | None = None) -> list[Element]:
        """Everything of which the value's printed form is made, in `VALUE_VARS`.

        ``types``: which of "string", "quantity", "time" the value can have, where known.
        """
        text, unit, year, date = VALUE_VARS
        found = set(types) if types is not None else {"string", "quantity", "time"}
        if found == {"time"}:
            return [Triple(value, YEAR, year), _maybe(Triple(value, DAY, date))]
        if found == {"string"}:
            return [Triple(value, VALUE, text)]
        if found == {"quantity"}:
            return self.quantity(value, unit, text)
        if found == {"string", "quantity"}:
            return [Triple(value, VALUE, text), _maybe(Triple(value, UNIT, unit))]
        return [*self._parts(value), Filter(_any_bound((text, year)))]

    def prints(self, part: object, var: Var) -> bool:
        """Whether a part of a query gives the variable something to print, not a node."""
        if not isinstance(part, Triple) or part.object != var:
            return False
        return isinstance(part.predicate, Iri) and part.predicate.text.startswith("pred:")

    def denoted(self, asked: Var, name: Var) -> list[Element]:
        """What a node or a value denotes: its name, or what its printed form is made of."""
        text, _, year, _ = VALUE_VARS
        named = [Maybe(Group(tuple(self.named(asked, name))))]
        bound = _any_bound((name, text, year))
        literal = Apply("ISLITERAL", (asked,))
        return [*named, *self._parts(asked), Filter(AnyOf((bound, literal)))]

    def _parts(self, value: Var) -> list[Element]:
        # A UNION of texts and times says the same, but Virtuoso multiplies unions out.
        verbs = (VALUE, UNIT, YEAR, DAY)
        return [_maybe(Triple(value, *pair)) for pair in zip(verbs, VALUE_VARS, strict=True)]

    def condition(
        self, value: Var, condition: Condition, names: Names, *, loose: bool = False
    ) -> list[Element]:
        """The value satisfies the condition: the table "fact against constant".

        ``loose``: as KQA Pro's queries say it, where days are compared with days alone.
        """
        readings = [
            self._reading(value, constant, condition.operator, names, loose)
            for constant in condition.constants
        ]
        if len(readings) == 1:
            return readings[0]
        return [Union(tuple(Group(tuple(reading)) for reading in readings))]

    def finished(self, query: Query) -> Query:
        """The whole query, when all of it is written."""
        return query

    def is_loose(self, condition: Condition) -> bool:
        """Whether ``loose`` changes what the condition means: years are passed over."""
        days = [one for one in condition.constants if isinstance(one, Date)]
        return bool(days) and condition.operator != "="

    def _reading(
        self, value: Var, constant: Value, operator: str, names: Names, loose: bool
    ) -> list[Element]:
        if isinstance(constant, str):
            return [Triple(value, VALUE, Literal(constant))]
        if isinstance(constant, Quantity):
            unit, number = Literal(constant.unit), double(constant.number)
            if operator == "=":
                return self.quantity(value, unit, number)
            found = names.fresh("v")
            return [
                *self.quantity(value, unit, found),
                Filter(Compare(operator, found, number)),
            ]
        if isinstance(constant, Year):
            return self._compared(value, YEAR, operator, integer(constant.year), names)
        if operator == "=" or loose:
            return self._compared(value, DAY, operator, day(constant), names)
        return self._against_day(value, operator, constant, names)

    def _compared(
        self, value: Var, verb: Iri, operator: str, constant: Literal, names: Names
    ) -> list[Element]:
        if operator == "=":
            return [Triple(value, verb, constant)]
        found = names.fresh("v")
        return [Triple(value, verb, found), Filter(Compare(operator, found, constant))]

    def _against_day(
        self, value: Var, operator: str, constant: Date, names: Names
    ) -> list[Element]:
        """A year or a day against a day.

        Years compare as numbers; two days of one year by month and day, cut out of the text:
        not every engine knows (or prints) the days before Christ.
        """
        year, date = names.fresh("y"), names.fresh("d")
        # Without its first character a day has one sign less: what follows the first "-" is mm-dd.
        within_year = Apply(
            "STRAFTER", (Apply("SUBSTR", (Apply("STR", (date,)), integer(2))), Literal("-"))
        )
        same_year = Compare("=", year, integer(constant.year))
        wanted = Literal(f"{constant.month:02}-{constant.day:02}")
        compared = Compare(operator, within_year, wanted)
        condition: Expression
        if operator == "!=":
            other_year = Compare("!=", year, integer(constant.year))
            condition = AnyOf((other_year, Not(Apply("BOUND", (date,))), compared))
        else:
            before_or_after = Compare(operator, year, integer(constant.year))
            condition = AnyOf(
                (before_or_after, AllOf((same_year, Apply("BOUND", (date,)), compared)))
            )
        return [
            Triple(value, YEAR, year),
            Maybe(Group((Triple(value, DAY, date),))),
            Filter(condition),
        ]


def _maybe(triple: Triple) -> Maybe:
    return Maybe(Group((triple,)))


def _any_bound(parts: Iterable[Var]) -> Expression:
    return AnyOf(tuple(Apply("BOUND", (part,)) for part in parts))
