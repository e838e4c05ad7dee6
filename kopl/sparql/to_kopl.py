"""From SPARQL to KoPL: what a query says of its variables, then the program that says the same.

Reads exact translations and queries as KQA Pro writes them. What no program says is refused, with
the part of the query and the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb import KnowledgeBase
from kb.rdf.iri import decode
from kb.schema import Schema
from kopl import functions as f
from kopl.functions import Function
from kopl.program import Call
from kopl.sparql.ast import (
    Aggregate,
    AnyOf,
    Apply,
    Ask,
    Element,
    Filter,
    Iri,
    Literal,
    Named,
    Query,
    Select,
    SubSelect,
    Triple,
    Var,
    apart,
    deep_recursion,
    mapped,
    variables,
    walk,
)
from kopl.sparql.conditions import OF_VALUES, about_value, untyped
from kopl.sparql.describe import (
    Describer,
    Fact,
    Scope,
    program_of,
    refused,
    rooted,
    typed,
    variable_of,
    verb_of,
)
from kopl.sparql.encoding import (
    NAME,
    VALUE_VARS,
    Encoding,
)
from kopl.sparql.errors import NotInKoplError
from kopl.sparql.order import is_orderless
from kopl.sparql.reader import read
from kopl.sparql.sets import (
    Attribute,
    Qualifiers,
)
from kopl.sparql.superlatives import exact_superlative, superlative
from kopl.typecheck import check

_AGGREGATES = (
    "programs have only COUNT(DISTINCT ?e) as one column, and superlatives: ORDER BY ?v LIMIT 1, or"
    " MAX and MIN in a subquery"
)


def from_sparql(query: Query | str, *, kb: KnowledgeBase | None = None) -> Call:
    """The program that a query says, in either style.

    A variable that is asked for and could be an entity or a value, as in ``?e <r> ?x``, is a value
    when it is called ``?pv``, as the data does, or when ``kb`` has only such attributes. Constants
    of QueryAttrUnderCondition and QueryAttrQualifier have no type in KoPL: they stand for every
    reading of their text. Raises QueryReadError for what is not read, and NotInKoplError with the
    reason for what KoPL cannot say.
    """
    if isinstance(query, str):
        query = read(query)
    with deep_recursion():
        program = _Reader(apart(query), kb).program()
        check(program)
    return program


class _Reader:
    """Reads one query."""

    def __init__(self, query: Query, kb: KnowledgeBase | None) -> None:
        self.query, self.kb = query, kb
        self.describer = Describer(query)

    def program(self) -> Call:
        """The program."""
        query = self.query
        if not is_orderless(query.where):
            raise NotInKoplError(
                "an OPTIONAL, a BIND, a FILTER or braces mean something by where they stand: say it"
                " without braces, with each OPTIONAL after what it hangs on"
            )
        if isinstance(query, Ask):
            return self._verify(Scope(query.where.elements))
        if any(isinstance(element, SubSelect) for element in query.where.elements):
            return exact_superlative(query, self.describer)
        if query.group_by or query.having is not None:
            raise NotInKoplError(
                f"GROUP BY, HAVING: aggregates of groups are not translated; {_AGGREGATES}"
            )
        if query.limit is not None or query.order_by:
            return superlative(query, self.describer)
        scope = Scope(query.where.elements)
        if len(query.items) == 1:
            item = query.items[0]
            if isinstance(item, Named):
                return self._count(item, scope)
            return self._asked(item, scope)
        return self._printed(query, scope)

    # --- roots ----------------------------------------------------------------------------

    def _count(self, item: Named, scope: Scope) -> Call:
        total = item.expression
        if not isinstance(total, Aggregate) or total.function != "COUNT":
            what = "an expression"
            if isinstance(total, Apply | Aggregate):
                what = f"{total.function}(…)"
            raise NotInKoplError(f"SELECT: {what} is not translated; {_AGGREGATES}")
        if not total.distinct or not isinstance(total.argument, Var):
            raise NotInKoplError("Count counts different nodes: write COUNT(DISTINCT ?e)")
        edges = [t for t in scope.triples() if t.object == total.argument]
        if any(self._is_value(total.argument, edge, scope) for edge in edges):
            raise NotInKoplError("Count counts nodes, not values")
        return rooted(f.COUNT, self.describer.whole(total.argument, scope))

    def _asked(self, asked: Var, scope: Scope) -> Call:
        """The root for one variable: a relation, a value, a qualifier value, or nodes."""
        for triple in scope.triples():
            if triple.predicate == asked:
                return self._relation(triple, scope)
            if triple.predicate == NAME and triple.object == asked:
                if self.describer.uses[asked] > 2:  # here and behind SELECT
                    raise refused(triple, f"?{asked.name} stands for a name and for something else")
                scope.drop([triple])
                node = variable_of(triple.subject, triple)
                return rooted(f.QUERY_NAME, self.describer.whole(node, scope))
        for fact in scope.facts:
            if any(value == asked for _, value in fact.qualifiers):
                return self._qualifier(fact, asked, scope)
        # The value's own variable may be asked for, or what it is printed from.
        for element in scope.elements:
            if isinstance(element, Triple) and element.object == asked:
                if element.predicate in OF_VALUES:
                    return self._printed(self.query, scope)
                if self._is_value(asked, element, scope):
                    return self._values(asked, scope)
        return rooted(f.QUERY_NAME, self.describer.whole(asked, scope))

    def _is_value(self, asked: Var, edge: Triple, scope: Scope) -> bool:
        if self.describer.has_condition(asked, scope):
            return True
        if any(triple.subject == asked for triple in scope.triples()):
            return False
        if self.kb is not None and isinstance(edge.predicate, Iri):
            key = decode(edge.predicate.text)
            attribute, relation = key in self.kb.attribute_keys, key in self.kb.relations
            if attribute != relation:
                return attribute
        return asked.name.rstrip("0123456789_") in ("pv", "v", "value", "val")

    def _printed(self, query: Query, scope: Scope) -> Call:
        """The root for the variables that a value is printed from."""
        assert isinstance(query, Select)
        asked = set(query.variables)
        if any(isinstance(item, Named) for item in query.items):
            raise NotInKoplError(f"SELECT: several columns are not translated here; {_AGGREGATES}")
        owners = {
            part.subject
            for part in walk(query.where)
            if isinstance(part, Triple) and part.object in asked and part.predicate in OF_VALUES
        }
        if len(owners) != 1 or len(asked) != len(query.items):
            raise NotInKoplError(
                "SELECT: a program has one root; one node, value, relation or count is asked for"
            )
        value = variable_of(owners.pop(), query.where)
        fetching = [
            element
            for element in scope.elements
            if about_value(element, value) or _is_bound(element, asked)
        ]
        if any(isinstance(part, Literal) for part in walk(tuple(fetching))):
            raise refused(fetching[0], "a value that is asked for cannot be compared as well")
        self._check_printed(value, fetching, asked, scope)
        scope.drop(fetching)
        for fact in scope.facts:
            if any(found == value for _, found in fact.qualifiers):
                return self._qualifier(fact, value, scope)
        return self._values(value, scope)

    def _check_printed(
        self, value: Var, fetching: list[Element], asked: set[Var], scope: Scope
    ) -> None:
        """Refuse a query that asks for a part of a value, or for values of one type only.

        What a knowledge base makes unnecessary may be missing.
        """
        names = {
            part.predicate: part.object
            for part in walk(tuple(fetching))
            if isinstance(part, Triple) and isinstance(part.object, Var)
        }
        own = {
            var: names[verb]
            for verb, var in zip(OF_VALUES, VALUE_VARS, strict=True)
            if verb in names
        }
        facts = [f for f in scope.facts if any(found == value for _, found in f.qualifiers)]
        edges = [t for t in scope.triples() if t.object == value]
        keys = [key for f in facts for key, found in f.qualifiers if found == value]
        keys += [t.predicate for t in edges if isinstance(t.predicate, Iri)]
        types = None
        if self.kb is not None and keys:
            types = Schema.of(self.kb).types((decode(keys[0].text), bool(facts))) or None
        for known in {None, types}:
            expected = [
                mapped(e, lambda p: own.get(p, p) if isinstance(p, Var) else p)
                for e in Encoding().printed(value, known)
            ]
            wanted = {
                own.get(v, v) for v in VALUE_VARS if own.get(v, v) in variables(tuple(expected))
            }
            if _same_elements(expected, fetching) and asked - wanted <= set(VALUE_VARS):
                return
        raise refused(
            fetching[0] if fetching else self.query.where,
            "a program gives whole values: text or number with its unit, year or day, all optional",
        )

    def _values(self, value: Var, scope: Scope) -> Call:
        """QueryAttr, or QueryAttrUnderCondition when the fact has a qualifier."""
        edge, key, qualifiers = self.describer.edge(value, scope)
        node = variable_of(edge.subject, edge)
        self.describer.unconditioned(value, scope)
        root = self._attribute_root(key, qualifiers, edge)
        return rooted(root[0], self.describer.whole(node, scope), *root[1])

    def _attribute_root(
        self, key: str, qualifiers: Qualifiers, edge: Element
    ) -> tuple[Function, list[str]]:
        if not qualifiers:
            return f.QUERY_ATTR, [key]
        text = untyped(qualifiers[0][1])
        if len(qualifiers) > 1 or text is None:
            raise refused(edge, "QueryAttrUnderCondition has one qualifier, compared by =")
        return f.QUERY_ATTR_UNDER_CONDITION, [key, qualifiers[0][0], text]

    def _qualifier(self, fact: Fact, asked: Var, scope: Scope) -> Call:
        """QueryAttrQualifier or QueryRelationQualifier."""
        scope.facts.remove(fact)
        if len(fact.qualifiers) > 1:
            raise refused(fact.element, "the fact whose qualifier is asked for has no other")
        self.describer.new(asked, fact.element)
        self.describer.unconditioned(asked, scope)
        head, tail = (variable_of(end, fact.element) for end in (fact.head, fact.tail))
        edge = Triple(fact.head, fact.predicate, fact.tail)
        if edge in scope.elements:
            scope.drop([edge])
        predicate, qkey = decode(verb_of(edge).text), decode(fact.qualifiers[0][0].text)
        if self.describer.has_condition(tail, scope):
            self.describer.new(tail, fact.element)
            text = untyped(self.describer.condition(tail, scope, fact.element))
            if text is None:
                raise refused(fact.element, "QueryAttrQualifier takes facts with one value, by =")
            nodes = self.describer.whole(head, scope)
            return rooted(f.QUERY_ATTR_QUALIFIER, nodes, predicate, text, qkey)
        heads, tails = self.describer.described(head, scope), self.describer.described(tail, scope)
        scope.finish()
        return Call(
            f.QUERY_RELATION_QUALIFIER, (program_of(heads), program_of(tails)), (predicate, qkey)
        )

    def _relation(self, triple: Triple, scope: Scope) -> Call:
        relation = variable_of(triple.predicate, triple)
        scope.drop([triple])
        own = Encoding().any_relation(Var("h"), relation, Var("t"), only=True)[1]
        scope.drop([element for element in scope.elements if element == own])
        head, tail = variable_of(triple.subject, triple), variable_of(triple.object, triple)
        heads, tails = self.describer.described(head, scope), self.describer.described(tail, scope)
        scope.finish()
        return Call(f.QUERY_RELATION, (program_of(heads), program_of(tails)))

    def _verify(self, scope: Scope) -> Call:
        """Verify: of the attributes that are asked about, any may be the one that is verified."""
        values = [
            variable_of(triple.object, triple)
            for triple in scope.triples()
            if isinstance(triple.object, Var) and self.describer.has_condition(triple.object, scope)
        ]
        values += [
            fact.tail
            for fact in scope.facts
            if isinstance(fact.tail, Var)
            and fact.tail not in values
            and self.describer.has_condition(fact.tail, scope)
        ]
        if not values:
            raise NotInKoplError("ASK: KoPL verifies values of attributes; none is compared here")
        value = next((var for var in values if var.name == "pv"), values[-1])
        edge, key, qualifiers = self.describer.edge(value, scope)
        condition = self.describer.condition(value, scope, edge)
        if len(condition.constants) > 1:
            raise refused(edge, "Verify compares with a constant of one type")
        node = variable_of(edge.subject, edge)
        description = self.describer.described(node, scope)
        scope.finish()
        try:
            function, arguments = self._attribute_root(key, qualifiers, edge)
        except NotInKoplError:
            # The filter finds the fact; its values hold the one that is verified.
            description.add(Attribute(key, condition, qualifiers))
            function, arguments = f.QUERY_ATTR, [key]
        values_of = Call(function, (program_of(description),), tuple(arguments))
        return typed((f.VERIFY_STR, f.VERIFY_NUM, f.VERIFY_YEAR), values_of, [], condition)


def _is_bound(element: Element, asked: set[Var]) -> bool:
    """Whether an element only demands that something is there to print."""
    return (
        isinstance(element, Filter)
        and set(variables(element)) <= asked
        and all(isinstance(p, Filter | AnyOf | Apply | Var) for p in walk(element))
        and all(p.function == "BOUND" for p in walk(element) if isinstance(p, Apply))
    )


def _same_elements(left: Sequence[Element], right: Sequence[Element]) -> bool:
    return len(left) == len(right) and all(element in right for element in left)
