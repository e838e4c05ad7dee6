"""Wikidata's RDF form as a second encoding, for programs on full Wikidata (docs/scale.md).

A fact is a statement: ``?e p:P36 ?st . ?st ps:P36 ?value``; ``pq:`` leads to its qualifiers, and
``psv:``, ``pqv:`` to nodes with the parts of quantities and times. Names are labels in one
language. The variable of a value stands for its node, or for its literal where it is a text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final

from kb.rdf.iri import RDF, XSD
from kb.schema import ValueType
from kb.values import NO_UNIT, Condition, Quantity, Value, Year
from kopl.sparql.ast import (
    DOUBLE,
    AllOf,
    AnyOf,
    Apply,
    Bind,
    Compare,
    Element,
    Expression,
    Filter,
    Group,
    Iri,
    Literal,
    Maybe,
    Not,
    Path,
    Query,
    Select,
    Term,
    Triple,
    Union,
    Var,
    mapped,
    variables,
    write,
)
from kopl.sparql.encoding import VALUE_VARS, Encoding, Names, double, integer
from kopl.sparql.engine import Engine
from kopl.sparql.errors import NotUnderstoodError
from kopl.sparql.properties import Properties, Property, PropertyError, called, check_properties
from kopl_base.errors import KoplError

WD, PROP = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
WIKIBASE, RDFS = "http://wikiba.se/ontology#", "http://www.w3.org/2000/01/rdf-schema#"
# The item that is the unit of numbers without one; its label is "1".
NO_UNIT_ITEM = "Q199"
# The datatype of a property whose values have a type of ours; other datatypes are texts too.
DATATYPES: Final[dict[ValueType, str]] = {
    "string": "String",
    "quantity": "Quantity",
    "time": "Time",
}
_TYPES = {name: kind for kind, name in DATATYPES.items()}

LABEL = Iri(RDFS + "label")
RANK, DEPRECATED = Iri(WIKIBASE + "rank"), Iri(WIKIBASE + "DeprecatedRank")
AMOUNT, UNIT = Iri(WIKIBASE + "quantityAmount"), Iri(WIKIBASE + "quantityUnit")
TIME, PRECISION = Iri(WIKIBASE + "timeValue"), Iri(WIKIBASE + "timePrecision")
INSTANCE, SUBCLASS = Iri(PROP + "direct/P31"), Iri(PROP + "direct/P279")
_YEAR, _DAY = integer(9), integer(11)  # precisions; 10 is a month, which counts as its year

# Their values are plain literals, which an index finds.
_PLAIN = frozenset(("String", "ExternalId"))
_TEXTS = (Iri(XSD + "string"), Iri(RDF + "langString"))


@dataclass(frozen=True)
class Wikidata(Encoding):
    """The encoding of Wikidata, and of graphs in its form.

    ``properties`` gives the property (or properties) that a relation or key is the label of;
    `Wikidata.of` reads them from the graph. Facts are the statements that are not deprecated;
    ``ranks=False`` is for graphs that do not say so. "An entity, not a concept" is read as "has a
    class" (P31). A relation or key without a property is a PropertyError.
    """

    kinds: bool = field(default=False, init=False)
    terms: bool = field(default=False, init=False)
    properties: Properties = field(default_factory=dict, hash=False)
    language: str = "en"
    ranks: bool = True

    styles: ClassVar[tuple[str, ...]] = ("exact",)
    counted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*", self.language):
            raise KoplError(f"{self.language!r} is no language: write a tag such as en or zh-hans")
        check_properties(self.properties)

    @classmethod
    def of(
        cls,
        engine: Engine,
        language: str = "en",
        *,
        ranks: bool = True,
        timeout: float | None = None,
    ) -> Wikidata:
        """The encoding with all properties that the graph has a label for; asks one query.

        Raises an EngineError.
        """
        one, label, datatype = Var("property"), Var("label"), Var("type")
        where: tuple[Element, ...] = (
            Triple(one, Iri(RDF + "type"), Iri(WIKIBASE + "Property")),
            Triple(one, Iri(WIKIBASE + "propertyType"), datatype),
            *cls(language=language)._labelled(one, label),
        )
        query = Select((one, label, datatype), Group(where))
        answer = engine.query(write(query, prologue=True), timeout=timeout)
        found: dict[str, list[Property]] = {}
        try:
            for row in answer["results"]["bindings"]:
                id, kind = (row[var.name]["value"] for var in (one, datatype))
                property = Property(id.removeprefix(WD), kind.removeprefix(WIKIBASE))
                found.setdefault(row[label.name]["value"], []).append(property)
        except (KeyError, TypeError, AttributeError) as error:
            raise NotUnderstoodError(f"the answer is not of the form asked for: {error}") from error
        properties = {text: sorted(found[text]) for text in sorted(found)}
        return cls(properties=properties, language=language, ranks=ranks)

    # --- properties -----------------------------------------------------------------------

    def _properties(self, text: str, role: str) -> list[Property]:
        """The properties that a relation, key or qualifier key stands for."""
        found = called(self.properties, text)
        if role != "qualifier key":
            wanted = (role == "relation", None)
            fits = [one for one in found if one.leads_to_items in wanted]
        else:
            fits = found
        if not fits:
            raise PropertyError(text, role, found)
        return fits

    @cached_property
    def _plain(self) -> frozenset[Iri]:
        """The predicates that lead to plain literals only."""
        return frozenset(
            _verb(part, one)
            for text in self.properties
            for one in called(self.properties, text)
            if one.datatype in _PLAIN
            for part in ("statement/", "qualifier/")
        )

    def types(self, key: str) -> Collection[ValueType] | None:
        found: set[ValueType] = set()
        for one in called(self.properties, key):
            if one.datatype is None:
                return None
            found.add(_TYPES.get(one.datatype, "string"))
        return found

    # --- nodes ----------------------------------------------------------------------------

    def named(self, node: Var, name: Term) -> list[Element]:
        if isinstance(name, Literal):
            # Properties have labels too.
            return [Triple(node, LABEL, self._text(name.text)), *self._is_item(node)]
        assert isinstance(name, Var)
        return self._labelled(node, name)

    def _labelled(self, node: Var, label: Var) -> list[Element]:
        language = Apply("LANG", (label,))
        return [
            Triple(node, LABEL, label),
            Filter(Compare("=", language, Literal(self.language))),
        ]

    def _text(self, text: str) -> Literal:
        return Literal(text, language=self.language)

    def _is_item(self, node: Var) -> list[Element]:
        return [Filter(Apply("STRSTARTS", (Apply("STR", (node,)), Literal(WD + "Q"))))]

    def instance(self, node: Var, concept: str, names: Names) -> list[Element]:
        above = names.fresh("c")
        return [
            Triple(node, Path(INSTANCE, SUBCLASS), above),
            Triple(above, LABEL, self._text(concept)),
        ]

    def entity(self, node: Var, names: Names, *, by_kind: bool = True) -> list[Element]:
        return [Triple(node, INSTANCE, names.fresh("c"))]

    def node(self, node: Var, names: Names) -> list[Element]:
        # Not "has a label": items without one in this language count. "Unknown value" is no item.
        return self._is_item(node)

    # --- facts ----------------------------------------------------------------------------

    def fact_of(self, node: Var, value: Var) -> Var:
        """The statement between the two; no other pattern joins the same two variables."""
        return Var(f"st_{node.name}_{value.name}")

    def relation(self, head: Var, relation: str, tail: Var) -> list[Element]:
        statement = self.fact_of(head, tail)
        return self._statement(
            head,
            statement,
            [
                (one, [Triple(statement, _verb("statement/", one), tail)])
                for one in self._properties(relation, "relation")
            ],
        )

    def attribute(self, node: Var, key: str, value: Var) -> list[Element]:
        statement = self.fact_of(node, value)
        return self._statement(
            node,
            statement,
            [
                (one, way)
                for one in self._properties(key, "key")
                for way in _to_value(statement, "statement/", one, value)
            ],
        )

    def _statement(
        self, node: Var, statement: Var, ways: Sequence[tuple[Property, list[Element]]]
    ) -> list[Element]:
        """The node has such a statement, and it is not deprecated."""
        found = _one_of([[Triple(node, _verb("", one), statement), *way] for one, way in ways])
        return [*found, *self._valid(statement)]

    def _valid(self, statement: Var) -> list[Element]:
        if not self.ranks:
            return []
        rank = _part(statement, "rank")
        return [Triple(statement, RANK, rank), Filter(Compare("!=", rank, DEPRECATED))]

    def fact(
        self, head: Var, predicate: str, tail: Var, qualifiers: Sequence[tuple[str, Var]]
    ) -> list[Element]:
        """The statement that `relation` or `attribute` says of the two has the qualifiers."""
        statement, found = self.fact_of(head, tail), []
        for key, value in qualifiers:
            ways: list[list[Element]] = []
            for one in self._properties(key, "qualifier key"):
                if not one.leads_to_items:
                    ways += _to_value(statement, "qualifier/", one, value)
                if one.leads_to_items is not False:
                    # KoPL's qualifiers are values: an item stands for its label.
                    item = _part(value, "item")
                    verb = _verb("qualifier/", one)
                    ways.append([Triple(statement, verb, item), *self._labelled(item, value)])
            found += _one_of(ways)
        return found

    def any_relation(self, head: Var, relation: Var, tail: Var, *, only: bool) -> list[Element]:
        """Some relation leads from node to node; the variable gets the property's label."""
        statement = self.fact_of(head, tail)
        one, claim, verb = (_part(statement, word) for word in ("property", "claim", "verb"))
        own = [Compare("!=", one, Iri(WD + id)) for id in ("P31", "P279")]
        return [
            Triple(head, claim, statement),
            Triple(statement, verb, tail),
            Triple(one, Iri(WIKIBASE + "claim"), claim),
            Triple(one, Iri(WIKIBASE + "statementProperty"), verb),
            Filter(AllOf(tuple(own))),
            *self._labelled(one, relation),
            *self._valid(statement),
        ]

    # --- values ---------------------------------------------------------------------------

    def quantity(self, value: Var, unit: Term, number: Term) -> list[Element]:
        found = [*self._amount(value), *self._unit(value, unit)]
        if isinstance(number, Var):
            return [*found, Bind(_number(value), number)]
        return [*found, Filter(Compare("=", _number(value), number))]

    def equal_quantity(self, value: Var, unit: Var, number: Var) -> list[Element]:
        equal = Filter(Compare("=", _number(value), number))
        return [*self._amount(value), *self._unit(value, unit), equal]

    def _amount(self, value: Var) -> list[Element]:
        return [Triple(value, AMOUNT, _part(value, "amount"))]

    def _unit(self, value: Var, unit: Term) -> list[Element]:
        if unit == Literal(NO_UNIT):
            return [Triple(value, UNIT, Iri(WD + NO_UNIT_ITEM))]
        item = _part(value, "unit")
        if isinstance(unit, Literal):
            return [Triple(value, UNIT, item), Triple(item, LABEL, self._text(unit.text))]
        assert isinstance(unit, Var)
        return [Triple(value, UNIT, item), *self._labelled(item, unit)]

    def printed(self, value: Var, types: Collection[str] | None = None) -> list[Element]:
        """Everything of which the value's printed form is made, in `VALUE_VARS`.

        Of a year, ``date`` has the year's digits.
        """
        text, unit, _, _ = VALUE_VARS
        found = set(types) if types is not None else set()
        if found == {"string"}:
            return [Bind(Apply("STR", (value,)), text)]
        if found == {"quantity"}:
            return [Triple(value, AMOUNT, text), *self._unit(value, unit)]
        if found == {"time"}:
            precise = Compare(">=", _part(value, "precision"), _YEAR)
            return [*_time(value), Filter(precise), *_year_and_day(value)]
        known = (_part(value, "amount"), _part(value, "time"))
        return self._any_value(value, AnyOf((_bound(known[0]), _is_text(value, known))))

    def denoted(self, asked: Var, name: Var) -> list[Element]:
        named = Maybe(Group(tuple(self._labelled(asked, name))))
        some = AnyOf(
            (
                _bound(name),
                _bound(_part(asked, "amount")),
                Apply("ISLITERAL", (asked,)),
            )
        )
        return [named, *self._any_value(asked, some)]

    def _any_value(self, value: Var, some: Expression) -> list[Element]:
        """The parts of a value of any type; rows that are no times must satisfy a condition."""
        text, unit, _, _ = VALUE_VARS
        amount, time, precision = (_part(value, w) for w in ("amount", "time", "precision"))
        # A time has no amount, so that "value" stays without one.
        shown = Apply("COALESCE", (amount, Apply("STR", (value,))))
        return [
            Maybe(Group((*self._amount(value), *self._unit(value, unit)))),
            Maybe(Group(tuple(_time(value)))),
            Bind(Apply("IF", (_bound(time), amount, shown)), text),
            *_year_and_day(value),
            Filter(AnyOf((Compare(">=", precision, _YEAR), some))),
        ]

    def condition(
        self, value: Var, condition: Condition, names: Names, *, loose: bool = False
    ) -> list[Element]:
        readings = [self._test(value, one, condition.operator) for one in condition.constants]
        if len(readings) == 1:
            ((patterns, test),) = readings
            return [*patterns, Filter(test)]
        # The value is bound outside, where alternatives of a UNION would not see it.
        wanted = [Maybe(Group(tuple(patterns))) for patterns, _ in readings if patterns]
        return [*wanted, Filter(AnyOf(tuple(test for _, test in readings)))]

    def _test(self, value: Var, constant: Value, operator: str) -> tuple[list[Element], Expression]:
        """What the value must have, and what must hold for it then."""
        if isinstance(constant, str):
            return [], Compare(operator, Apply("STR", (value,)), Literal(constant))
        if isinstance(constant, Quantity):
            patterns = [*self._amount(value), *self._unit(value, Literal(constant.unit))]
            return patterns, Compare(operator, _number(value), double(constant.number))
        year = Compare(operator, _year(value), integer(constant.year))
        precision = _part(value, "precision")
        at_least_year = Compare(">=", precision, _YEAR)
        if isinstance(constant, Year):
            return _time(value), AllOf((at_least_year, year))
        at_day = Literal(f"{constant}T00:00:00Z", XSD + "dateTime")
        same = Compare(operator, _part(value, "time"), at_day)
        is_day = AllOf((Compare(">=", precision, _DAY), same))
        if operator == "=":
            return _time(value), is_day
        is_year: tuple[Expression, ...] = (at_least_year, Compare("<", precision, _DAY))
        if operator != "!=":  # a year is never a day
            is_year = (*is_year, year)
        return _time(value), AnyOf((AllOf(is_year), is_day))

    # --- queries --------------------------------------------------------------------------

    def prints(self, part: object, var: Var) -> bool:
        if isinstance(part, Bind):
            return part.variable == var
        return isinstance(part, Triple) and part.object == var and part.predicate in (LABEL, AMOUNT)

    def finished(self, query: Query) -> Query:
        """The query with constant texts in the place of variables that only equal them.

        An engine finds a statement by a constant, where a filter looks at all values.
        """
        counts, plain = variables(query), self._plain

        def change(at: Any) -> Any:
            if not isinstance(at, Group):
                return at
            ends = {
                part.object
                for part in at.elements
                if isinstance(part, Triple) and part.predicate in plain
            }
            texts: dict[Any, Literal] = {}
            kept: list[Element] = []
            for part in at.elements:
                found = _equal_text(part)
                if found is not None and found[0] in ends and counts[found[0]] == 2:
                    texts[found[0]] = found[1]
                else:
                    kept.append(part)
            for place, part in enumerate(kept):
                if isinstance(part, Triple) and part.object in texts:
                    kept[place] = replace(part, object=texts[part.object])
            return Group(tuple(kept))

        return mapped(query, change)


def _verb(part: str, one: Property) -> Iri:
    return Iri(f"{PROP}{part}{one.id}")


def _part(of: Var, word: str) -> Var:
    """The variable for a part of what another stands for."""
    return Var(f"{of.name}_{word}")


def _to_value(statement: Var, part: str, one: Property, value: Var) -> list[list[Element]]:
    """The ways that lead to a value: to its node, or to its literal where it is a text."""
    node: list[Element] = [Triple(statement, _verb(f"{part}value/", one), value)]
    text: list[Element] = [Triple(statement, _verb(part, one), value)]
    if one.datatype is None:
        # Numbers and times stand there as literals as well.
        datatype = Apply("DATATYPE", (value,))
        is_text = AnyOf(tuple(Compare("=", datatype, kind) for kind in _TEXTS))
        return [node, [*text, Filter(is_text)]]
    return [node] if one.datatype in ("Quantity", "Time") else [text]


def _one_of(ways: Sequence[Sequence[Element]]) -> list[Element]:
    if len(ways) == 1:
        return list(ways[0])
    return [Union(tuple(Group(tuple(way)) for way in ways))]


def _bound(var: Var) -> Expression:
    return Apply("BOUND", (var,))


def _is_text(value: Var, parts: Iterable[Var]) -> Expression:
    """The value has none of the parts that quantities and times have."""
    return AllOf(tuple(Not(_bound(part)) for part in parts))


def _number(value: Var) -> Expression:
    """The amount as a double: engines may cut decimals, or not know those of many digits."""
    return Apply(f"<{DOUBLE}>", (Apply("STR", (_part(value, "amount"),)),))


def _time(value: Var) -> list[Element]:
    return [
        Triple(value, TIME, _part(value, "time")),
        Triple(value, PRECISION, _part(value, "precision")),
    ]


def _year(value: Var) -> Expression:
    return Apply("YEAR", (_part(value, "time"),))


def _year_and_day(value: Var) -> list[Element]:
    _, _, year, date = VALUE_VARS
    day = Apply("STRBEFORE", (Apply("STR", (_part(value, "time"),)), Literal("T")))
    is_day = Compare(">=", _part(value, "precision"), _DAY)
    digits = Apply("STR", (_year(value),))
    return [Bind(_year(value), year), Bind(Apply("IF", (is_day, day, digits)), date)]


def _equal_text(part: Element) -> tuple[Var, Literal] | None:
    """The variable and the text of a filter that says no more than that they are equal."""
    if not isinstance(part, Filter) or not isinstance(part.condition, Compare):
        return None
    test = part.condition
    if test.operator != "=" or not isinstance(test.right, Literal) or test.right.datatype:
        return None
    if isinstance(test.left, Apply) and test.left.function == "STR":
        (var,) = test.left.arguments
        return (var, test.right) if isinstance(var, Var) else None
    return None
