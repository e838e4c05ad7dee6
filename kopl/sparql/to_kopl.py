"""From SPARQL to KoPL: what a query says of its variables, then the program that says the same.

Reads exact translations and queries as KQA Pro writes them. What no program says is refused, with
the part of the query and the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kb import KnowledgeBase
from kb.iri import decode
from kb.values import Condition, Date, Quantity
from kopl import functions as f
from kopl.functions import Function
from kopl.program import Call
from kopl.sparql.ast import (
    Aggregate,
    AnyOf,
    Apply,
    Ask,
    Bind,
    Brackets,
    Element,
    Filter,
    Group,
    Iri,
    Literal,
    Named,
    Query,
    Select,
    SubSelect,
    Term,
    Triple,
    TripleTerm,
    Union,
    Var,
    apart,
    deep_recursion,
    variables,
    walk,
)
from kopl.sparql.conditions import OF_VALUES, about_value, condition_of, untyped
from kopl.sparql.encoding import (
    ENTITY,
    FACT_H,
    FACT_R,
    FACT_T,
    INSTANCE_OF,
    KIND,
    NAME,
    REIFIES,
    UNIT,
    VALUE,
    Encoding,
)
from kopl.sparql.errors import NotInKoplError
from kopl.sparql.sets import (
    Alternatives,
    Attribute,
    Description,
    Qualifiers,
    Relation,
    either,
)
from kopl.sparql.text import read, write_element
from kopl.typecheck import check


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


@dataclass
class _Fact:
    """The node of a fact: its ends, its predicate, and its qualifiers with their variables."""

    head: Term
    predicate: Term
    tail: Term
    qualifiers: list[tuple[Iri, Var]]
    element: Element


class _Scope:
    """The elements of one group, each to be used once."""

    def __init__(self, elements: Iterable[Element]) -> None:
        self.elements: list[Element] = []
        self.facts: list[_Fact] = []
        by_variable: dict[Var, list[Triple]] = {}
        for element in _flat(elements):
            if isinstance(element, Brackets):
                self.facts.append(_fact((*element.inside, *element.outside), element))
            else:
                self.elements.append(element)
            if isinstance(element, Triple) and isinstance(element.subject, Var):
                by_variable.setdefault(element.subject, []).append(element)
        # A fact's node may also have a name: ?f <pred:fact_h> ?e ; …
        for triples in by_variable.values():
            if any(triple.predicate in (FACT_H, REIFIES) for triple in triples):
                pairs = tuple((triple.predicate, triple.object) for triple in triples)
                self.facts.append(_fact(pairs, triples[0]))
                self.drop(triples)

    def drop(self, used: Iterable[Element]) -> None:
        """Take elements out, as they were understood."""
        for element in used:
            self.elements.remove(element)

    def triples(self) -> Iterator[Triple]:
        """The triples that are left."""
        return (element for element in list(self.elements) if isinstance(element, Triple))

    def finish(self) -> None:
        """Refuse the query when something is left."""
        left: list[Element] = [*self.elements, *(fact.element for fact in self.facts)]
        if left:
            raise _refused(left[0], "it is not connected with what is asked for as a tree")


def _flat(elements: Iterable[Element]) -> Iterator[Element]:
    for element in elements:
        if isinstance(element, Group):
            yield from _flat(element.elements)
        else:
            yield element


def _fact(pairs: tuple[tuple[Term, Term], ...], element: Element) -> _Fact:
    ends: dict[Term, Term] = {}
    qualifiers: list[tuple[Iri, Var]] = []
    for verb, what in pairs:
        if verb == REIFIES and isinstance(what, TripleTerm):
            ends |= {FACT_H: what.subject, FACT_R: what.predicate, FACT_T: what.object}
        elif verb in (FACT_H, FACT_R, FACT_T):
            if verb in ends:
                raise _refused(element, "a fact has one head, one relation and one tail")
            ends[verb] = what
        elif isinstance(verb, Iri) and isinstance(what, Var):
            qualifiers.append((verb, what))
        else:
            raise _refused(element, "a qualifier is a key and a variable for its value")
    if len(ends) != 3:
        raise _refused(element, "a fact needs its head, its relation and its tail")
    return _Fact(ends[FACT_H], ends[FACT_R], ends[FACT_T], qualifiers, element)


class _Reader:
    """Reads one query."""

    def __init__(self, query: Query, kb: KnowledgeBase | None) -> None:
        self.query, self.kb = query, kb
        self.seen: set[Var] = set()

    def program(self) -> Call:
        """The program."""
        query = self.query
        if isinstance(query, Ask):
            return self._verify(_Scope(query.where.elements))
        if any(isinstance(element, SubSelect) for element in query.where.elements):
            return self._exact_superlative(query)
        if query.group_by:
            raise NotInKoplError("GROUP BY: no function groups; only superlatives are read so")
        if query.limit is not None or query.order_by:
            return self._superlative(query)
        scope = _Scope(query.where.elements)
        if len(query.items) == 1:
            item = query.items[0]
            if isinstance(item, Named):
                return self._count(item, scope)
            return self._asked(item, scope)
        return self._printed(query, scope)

    # --- roots ----------------------------------------------------------------------------

    def _count(self, item: Named, scope: _Scope) -> Call:
        total = item.expression
        if not isinstance(total, Aggregate) or total.function != "COUNT":
            raise NotInKoplError("of the aggregates KoPL has only COUNT, and superlatives")
        if not total.distinct or not isinstance(total.argument, Var):
            raise NotInKoplError("Count counts different nodes: write COUNT(DISTINCT ?e)")
        return self._of(f.COUNT, self._whole(total.argument, scope))

    def _asked(self, asked: Var, scope: _Scope) -> Call:
        """The root for one variable: a relation, a value, a qualifier value, or nodes."""
        for triple in scope.triples():
            if triple.predicate == asked:
                return self._relation(triple, scope)
            if triple.predicate == NAME and triple.object == asked:
                scope.drop([triple])
                node = _variable(triple.subject, triple)
                return self._of(f.QUERY_NAME, self._whole(node, scope))
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
        return self._of(f.QUERY_NAME, self._whole(asked, scope))

    def _is_value(self, asked: Var, edge: Triple, scope: _Scope) -> bool:
        if self._has_condition(asked, scope):
            return True
        if any(triple.subject == asked for triple in scope.triples()):
            return False
        if self.kb is not None and isinstance(edge.predicate, Iri):
            key = decode(edge.predicate.text)
            attribute, relation = key in self.kb.attribute_keys, key in self.kb.relations
            if attribute != relation:
                return attribute
        return asked.name.rstrip("0123456789_") in ("pv", "v", "value", "val")

    def _printed(self, query: Query, scope: _Scope) -> Call:
        """The root for the variables that a value is printed from."""
        assert isinstance(query, Select)
        asked = set(query.variables)
        owners = {
            part.subject
            for part in walk(query.where)
            if isinstance(part, Triple) and part.object in asked and part.predicate in OF_VALUES
        }
        if len(owners) != 1 or len(asked) != len(query.items):
            raise NotInKoplError(
                "SELECT: a program has one root; one node, value, relation or count is asked for"
            )
        value = _variable(owners.pop(), query.where)
        fetching = [
            element
            for element in scope.elements
            if about_value(element, value) or _is_bound(element, asked)
        ]
        objects = variables(tuple(fetching))
        objects.pop(value, None)
        if set(objects) - asked or any(isinstance(part, Literal) for part in walk(tuple(fetching))):
            raise _refused(fetching[0], "a value that is asked for cannot be compared as well")
        scope.drop(fetching)
        for fact in scope.facts:
            if any(found == value for _, found in fact.qualifiers):
                return self._qualifier(fact, value, scope)
        return self._values(value, scope)

    def _values(self, value: Var, scope: _Scope) -> Call:
        """QueryAttr, or QueryAttrUnderCondition when the fact has a qualifier."""
        edge, key, qualifiers = self._edge(value, scope)
        node = _variable(edge.subject, edge)
        self._unconditioned(value, scope)
        root = self._attribute_root(key, qualifiers, edge)
        return self._of(root[0], self._whole(node, scope), *root[1])

    def _attribute_root(
        self, key: str, qualifiers: Qualifiers, edge: Element
    ) -> tuple[Function, list[str]]:
        if not qualifiers:
            return f.QUERY_ATTR, [key]
        text = untyped(qualifiers[0][1])
        if len(qualifiers) > 1 or text is None:
            raise _refused(edge, "QueryAttrUnderCondition has one qualifier, compared by =")
        return f.QUERY_ATTR_UNDER_CONDITION, [key, qualifiers[0][0], text]

    def _edge(self, value: Var, scope: _Scope) -> tuple[Triple, str, Qualifiers]:
        """The triple that leads to a value, its key and the fact's qualifiers; all used up."""
        edges = [triple for triple in scope.triples() if triple.object == value]
        if len(edges) != 1 or not isinstance(edges[0].predicate, Iri):
            facts = [fact for fact in scope.facts if fact.tail == value]
            if edges or len(facts) != 1:
                raise NotInKoplError(f"?{value.name}: one attribute is to have this value")
            return self._edge_of_fact(facts[0], value, scope)
        edge = edges[0]
        scope.drop([edge])
        self.seen.add(value)
        qualifiers = self._qualifiers(edge, scope)
        return edge, decode(_verb(edge).text), qualifiers

    def _edge_of_fact(
        self, fact: _Fact, value: Var, scope: _Scope
    ) -> tuple[Triple, str, Qualifiers]:
        edge = Triple(fact.head, fact.predicate, fact.tail)
        self.seen.add(value)
        return edge, decode(_verb(edge).text), self._qualifiers(edge, scope)

    def _qualifiers(self, edge: Triple, scope: _Scope) -> Qualifiers:
        """The conditions on the qualifiers of the fact that a triple says."""
        ends = (edge.subject, edge.predicate, edge.object)
        facts = [fact for fact in scope.facts if (fact.head, fact.predicate, fact.tail) == ends]
        is_value = any(
            isinstance(part, Triple) and part.subject == edge.object and part.predicate in OF_VALUES
            for part in walk(self.query)
        )
        if len(facts) > 1 and not is_value:
            raise _refused(
                facts[1].element,
                "two facts of one relation between two nodes may be meant;"
                " say all qualifiers of one node",
            )
        found: Qualifiers = []
        for fact in facts:
            scope.facts.remove(fact)
            for key, value in fact.qualifiers:
                self._new(value, fact.element)
                found.append((decode(key.text), self._condition(value, scope, fact.element)))
        return found

    def _qualifier(self, fact: _Fact, asked: Var, scope: _Scope) -> Call:
        """QueryAttrQualifier or QueryRelationQualifier."""
        scope.facts.remove(fact)
        if len(fact.qualifiers) > 1:
            raise _refused(fact.element, "the fact whose qualifier is asked for has no other")
        self._new(asked, fact.element)
        self._unconditioned(asked, scope)
        head, tail = (_variable(end, fact.element) for end in (fact.head, fact.tail))
        edge = Triple(fact.head, fact.predicate, fact.tail)
        if edge in scope.elements:
            scope.drop([edge])
        predicate, qkey = decode(_verb(edge).text), decode(fact.qualifiers[0][0].text)
        if self._has_condition(tail, scope):
            self._new(tail, fact.element)
            text = untyped(self._condition(tail, scope, fact.element))
            if text is None:
                raise _refused(fact.element, "QueryAttrQualifier takes facts with one value, by =")
            nodes = self._whole(head, scope)
            return self._of(f.QUERY_ATTR_QUALIFIER, nodes, predicate, text, qkey)
        heads, tails = self._described(head, scope), self._described(tail, scope)
        scope.finish()
        return Call(f.QUERY_RELATION_QUALIFIER, (_set(heads), _set(tails)), (predicate, qkey))

    def _relation(self, triple: Triple, scope: _Scope) -> Call:
        relation = _variable(triple.predicate, triple)
        scope.drop([triple])
        own = Encoding().any_relation(Var("h"), relation, Var("t"), only=True)[1]
        scope.drop([element for element in scope.elements if element == own])
        head, tail = _variable(triple.subject, triple), _variable(triple.object, triple)
        heads, tails = self._described(head, scope), self._described(tail, scope)
        scope.finish()
        return Call(f.QUERY_RELATION, (_set(heads), _set(tails)))

    def _verify(self, scope: _Scope) -> Call:
        """Verify: of the attributes that are asked about, any may be the one that is verified."""
        values = [
            _variable(triple.object, triple)
            for triple in scope.triples()
            if isinstance(triple.object, Var) and self._has_condition(triple.object, scope)
        ]
        values += [
            fact.tail
            for fact in scope.facts
            if isinstance(fact.tail, Var)
            and fact.tail not in values
            and self._has_condition(fact.tail, scope)
        ]
        if not values:
            raise NotInKoplError("ASK: KoPL verifies values of attributes; none is compared here")
        value = next((var for var in values if var.name == "pv"), values[-1])
        edge, key, qualifiers = self._edge(value, scope)
        condition = self._condition(value, scope, edge)
        if len(condition.constants) > 1:
            raise _refused(edge, "Verify compares with a constant of one type")
        node = _variable(edge.subject, edge)
        description = self._described(node, scope)
        scope.finish()
        try:
            function, arguments = self._attribute_root(key, qualifiers, edge)
        except NotInKoplError:
            # The filter finds the fact; its values hold the one that is verified.
            description.add(Attribute(key, condition, qualifiers))
            function, arguments = f.QUERY_ATTR, [key]
        values_of = Call(function, (_set(description),), tuple(arguments))
        return _typed((f.VERIFY_STR, f.VERIFY_NUM, f.VERIFY_YEAR), values_of, [], condition)

    def _superlative(self, query: Select) -> Call:
        """As the data writes it: in the order of a number, the first."""
        if query.limit != 1 or len(query.order_by) != 1:
            raise NotInKoplError("ORDER BY, LIMIT: KoPL has superlatives: one key, and LIMIT 1")
        order = query.order_by[0]
        if len(query.items) != 1 or not isinstance(query.items[0], Var):
            raise NotInKoplError("ORDER BY, LIMIT: a superlative gives one node")
        node = query.items[0]
        elements = list(query.where.elements)
        numbers = [
            e
            for e in elements
            if isinstance(e, Triple) and e.predicate == VALUE and e.object == order.expression
        ]
        value = numbers[0].subject if numbers else None
        edges = [e for e in elements if isinstance(e, Triple) and e.object == value]
        if len(numbers) != 1 or len(edges) != 1 or edges[0].subject != node:
            raise NotInKoplError(
                "ORDER BY: the number of one attribute of what is asked for is to be ordered"
            )
        key = decode(_verb(edges[0]).text)
        for used in (numbers[0], edges[0]):
            elements.remove(used)
        self.seen.add(_variable(value, edges[0]))
        if len(elements) == 1 and isinstance(elements[0], Union):
            branches = elements[0].branches
            if len(branches) == 2:
                sides = self._branches(node, elements[0])
                word = "greater" if order.descending else "less"
                inputs = tuple(_set(side) for side in sides)
                return Call(f.SELECT_BETWEEN, inputs, (key, word))
        nodes = self._whole(node, _Scope(elements))
        return self._of(f.SELECT_AMONG, nodes, key, "largest" if order.descending else "smallest")

    def _exact_superlative(self, query: Select) -> Call:
        """As exact translations write it: the unit and its extreme, then the nodes that have it."""
        reason = NotInKoplError(
            "a query inside the query: only superlatives are read so, as they are translated here"
        )
        found = [e for e in query.where.elements if isinstance(e, SubSelect)]
        rest = [e for e in query.where.elements if not isinstance(e, SubSelect)]
        best = found[0].query
        extreme = best.items[-1]
        if len(found) != 1 or not isinstance(extreme, Named) or best.limit != 1:
            raise reason
        if not isinstance(extreme.expression, Aggregate) or len(best.order_by) != 2:
            raise reason
        largest = {"MAX": True, "MIN": False}.get(extreme.expression.function)
        numbers = [
            e
            for e in rest
            if isinstance(e, Triple) and e.predicate == VALUE and e.object == extreme.variable
        ]
        asked = query.items[0]
        if largest is None or len(numbers) != 1 or not isinstance(asked, Var):
            raise reason
        names = [
            e for e in rest if isinstance(e, Triple) and e.predicate == NAME and e.object == asked
        ]
        key, together = self._of_unit([e for e in rest if e not in names])
        if best.having is None:
            if self._of_unit(best.where.elements) != (key, together):
                raise reason
            word = "largest" if largest else "smallest"
            return self._of(f.SELECT_AMONG, _set(together), key, word)
        sides = self._marked_sides(best, reason)
        if either(*sides) != together:
            raise reason
        inputs = tuple(_set(side) for side in sides)
        return Call(f.SELECT_BETWEEN, inputs, (key, "greater" if largest else "less"))

    def _marked_sides(self, best: Select, reason: NotInKoplError) -> list[Description]:
        """The two sides of a SelectBetween: branches that are told apart by a number."""
        unions = [e for e in best.where.elements if isinstance(e, Union)]
        nodes = {
            t.subject
            for t in best.where.elements
            if isinstance(t, Triple) and t.predicate not in OF_VALUES
        }
        if len(unions) != 1 or len(nodes) != 1 or len(unions[0].branches) != 2:
            raise reason
        node = _variable(nodes.pop(), unions[0])
        sides = []
        for branch in unions[0].branches:
            self.seen = set()
            scope = _Scope([e for e in branch.elements if not isinstance(e, Bind)])
            sides.append(self._described(node, scope))
            scope.finish()
        return sides

    def _of_unit(self, elements: Sequence[Element]) -> tuple[str, Description]:
        """The key and the nodes of a group that looks for quantities with their unit."""
        units = [e for e in elements if isinstance(e, Triple) and e.predicate == UNIT]
        units = [e for e in units if isinstance(e.object, Var)]
        if len(units) != 1:
            raise NotInKoplError("a superlative looks at the quantities of one key")
        value = _variable(units[0].subject, units[0])
        own = [e for e in elements if isinstance(e, Triple) and e.subject == value]
        edges = [e for e in elements if isinstance(e, Triple) and e.object == value]
        if len(edges) != 1:
            raise NotInKoplError("a superlative looks at the quantities of one key")
        self.seen = {value}
        scope = _Scope([e for e in elements if e not in own and e not in edges])
        node = _variable(edges[0].subject, edges[0])
        description = self._described(node, scope)
        scope.finish()
        return decode(_verb(edges[0]).text), description

    # --- sets -----------------------------------------------------------------------------

    def _of(self, function: Function, nodes: Call, *arguments: str) -> Call:
        return Call(function, (nodes,), arguments)

    def _whole(self, node: Var, scope: _Scope) -> Call:
        """The set that a variable stands for, when the scope says nothing else."""
        description = self._described(node, scope)
        scope.finish()
        return _set(description)

    def _new(self, var: Var, element: Element) -> None:
        if var in self.seen:
            raise _refused(
                element, f"?{var.name} is reached in two ways; programs are trees, not cycles"
            )
        self.seen.add(var)

    def _described(self, node: Var, scope: _Scope) -> Description:
        """What the scope says of a node, used up."""
        if node in self.seen:
            raise NotInKoplError(
                f"?{node.name} is reached in two ways; programs are trees, not cycles"
            )
        self.seen.add(node)
        found = Description()
        for element in list(scope.elements):
            if element not in scope.elements:
                continue
            if isinstance(element, Triple):
                if node in (element.subject, element.object):
                    self._triple(element, node, scope, found)
            elif isinstance(element, Union) and node in variables(element):
                scope.drop([element])
                found.parts.append(Alternatives(self._branches(node, element)))
        for fact in list(scope.facts):
            if fact in scope.facts and node in (fact.head, fact.tail):
                edge = Triple(fact.head, fact.predicate, fact.tail)
                self._fact_edge(edge, node, scope, found)
        return found

    def _branches(self, node: Var, union: Union) -> list[Description]:
        """What the alternatives say of a node; their other variables are their own."""
        inside, everywhere = variables(union), variables(self.query)
        for var in inside:
            if var != node and inside[var] < everywhere[var]:
                raise NotInKoplError(
                    f"UNION: ?{var.name} also stands outside of its alternative; only"
                    f" ?{node.name} may"
                )
        found, before = [], self.seen - {node}
        for branch in union.branches:
            self.seen = set(before)
            scope = _Scope(branch.elements)
            found.append(self._described(node, scope))
            scope.finish()
        self.seen = before | {node}
        return found

    def _triple(self, triple: Triple, node: Var, scope: _Scope, found: Description) -> None:
        if triple.subject == triple.object:
            raise _refused(triple, "KoPL has no sets of nodes that are related to themselves")
        if triple.object == node:
            if triple.predicate == FACT_T:
                return
            scope.drop([triple])
            self._related(triple, True, scope, found)
            return
        verb, what = triple.predicate, triple.object
        if verb == NAME:
            scope.drop([triple])
            if isinstance(what, Literal):
                found.names.append(what.text)
            elif variables(self.query)[_variable(what, triple)] > 1:
                raise _refused(triple, "a name is a constant in KoPL")
        elif verb == KIND:
            if what != ENTITY:
                raise _refused(triple, "KoPL has no set of all concepts")
            scope.drop([triple])
            found.entity = True
        elif verb == INSTANCE_OF:
            scope.drop([triple])
            self._concept(triple, scope, found)
        elif isinstance(verb, Iri) and isinstance(what, Var):
            if verb in OF_VALUES:
                raise _refused(triple, f"?{node.name} stands for a value and for a node")
            if self._has_condition(what, scope):
                _, key, qualifiers = self._edge(what, scope)
                condition = self._condition(what, scope, triple)
                found.parts.append(Attribute(key, condition, qualifiers))
            else:
                scope.drop([triple])
                self._related(triple, False, scope, found)
        else:
            raise _refused(triple, "a relation and a variable at both of its ends are expected")

    def _concept(self, triple: Triple, scope: _Scope, found: Description) -> None:
        above = _variable(triple.object, triple)
        self._new(above, triple)
        names = [t for t in scope.triples() if t.subject == above]
        if not names:
            found.entity = True
            return
        name = names[0]
        if len(names) > 1 or name.predicate != NAME or not isinstance(name.object, Literal):
            raise _refused(names[-1], "of a concept KoPL knows the name only")
        scope.drop([name])
        found.concepts.append(name.object.text)

    def _related(self, triple: Triple, forward: bool, scope: _Scope, found: Description) -> None:
        """A relation; forward, the node described is its tail."""
        other = _variable(triple.subject if forward else triple.object, triple)
        relation = decode(_verb(triple).text)
        qualifiers = self._qualifiers(triple, scope)
        if other in self.seen:
            raise _refused(
                triple, f"?{other.name} is reached in two ways; programs are trees, not cycles"
            )
        described = self._described(other, scope)
        found.parts.append(Relation(relation, forward, described, qualifiers))

    def _fact_edge(self, edge: Triple, node: Var, scope: _Scope, found: Description) -> None:
        """A fact of which only the node stands in the query, without the plain triple."""
        if edge.subject == node and self._has_condition(_variable(edge.object, edge), scope):
            value = _variable(edge.object, edge)
            _, key, qualifiers = self._edge(value, scope)
            condition = self._condition(value, scope, edge)
            found.parts.append(Attribute(key, condition, qualifiers))
        else:
            self._related(edge, edge.object == node, scope, found)

    # --- values ---------------------------------------------------------------------------

    def _has_condition(self, var: Var, scope: _Scope) -> bool:
        return any(about_value(element, var) for element in scope.elements)

    def _unconditioned(self, value: Var, scope: _Scope) -> None:
        left = [element for element in scope.elements if about_value(element, value)]
        if left:
            raise _refused(left[0], "a value that is asked for cannot be compared as well")

    def _condition(self, value: Var, scope: _Scope, near: Element) -> Condition:
        """The condition on a value; its elements are used up."""
        own = [element for element in scope.elements if about_value(element, value)]
        if not own:
            raise _refused(near, f"nothing is said of the value ?{value.name}")
        compared = set(variables(tuple(own))) - {value}
        for element in list(scope.elements):
            if isinstance(element, Filter) and set(variables(element)) & compared:
                own.append(element)
        scope.drop(own)
        return condition_of(value, own)


# --- programs of descriptions ------------------------------------------------------------------


def _set(description: Description) -> Call:
    """The program of a set; raises NotInKoplError for the set of all nodes."""
    sources: list[Call] = []
    attributes: list[Attribute] = []
    for part in description.parts:
        if isinstance(part, Relation):
            word = "forward" if part.forward else "backward"
            related = Call(f.RELATE, (_set(part.other),), (part.relation, word))
            sources.append(_qualified(related, part.qualifiers))
        elif isinstance(part, Alternatives):
            either, *others = [_set(branch) for branch in part.branches]
            for other in others:
                either = Call(f.OR, (either, other))
            sources.append(either)
        else:
            attributes.append(part)
    sources += [Call(f.FIND, (), (name,)) for name in description.names]
    known_entity = attributes or description.concepts
    if not sources and not known_entity and not description.entity:
        raise NotInKoplError(
            "a variable of which nothing is said stands for any entity or concept; KoPL has no"
            ' such set (say <pred:kind> "entity" for all entities)'
        )
    if not sources or (description.entity and not known_entity):
        sources.insert(0, Call(f.FIND_ALL))
    nodes = sources[0]
    for source in sources[1:]:
        nodes = Call(f.AND, (nodes, source))
    for attribute in attributes:
        functions = (f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR)
        if len(attribute.condition.constants) > 1:
            # Alternatives of one value: of the facts that satisfy either, one is enough.
            nodes = _any_reading(nodes, attribute)
            continue
        nodes = _typed(functions, nodes, [attribute.key], attribute.condition)
        nodes = _qualified(nodes, attribute.qualifiers)
    for concept in description.concepts:
        nodes = Call(f.FILTER_CONCEPT, (nodes,), (concept,))
    return nodes


def _any_reading(nodes: Call, attribute: Attribute) -> Call:
    functions = (f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR)
    found: Call | None = None
    for constant in attribute.condition.constants:
        one = _typed(functions, nodes, [attribute.key], Condition((constant,)))
        one = _qualified(one, attribute.qualifiers)
        found = one if found is None else Call(f.OR, (found, one))
    assert found is not None
    return found


def _qualified(nodes: Call, qualifiers: Qualifiers) -> Call:
    for key, condition in qualifiers:
        if len(condition.constants) > 1:
            raise NotInKoplError(
                f"the qualifier {key!r} has several readings; a QFilter has one type"
            )
        functions = (f.QFILTER_STR, f.QFILTER_NUM, f.QFILTER_YEAR)
        nodes = _typed(functions, nodes, [key], condition)
    return nodes


_DAYS = {f.FILTER_YEAR: f.FILTER_DATE, f.QFILTER_YEAR: f.QFILTER_DATE, f.VERIFY_YEAR: f.VERIFY_DATE}


def _typed(
    functions: tuple[Function, Function, Function],
    nodes: Call,
    arguments: list[str],
    condition: Condition,
) -> Call:
    """The function of the constant's type: of strings, of numbers, of years and days."""
    constant, operator = condition.constants[0], condition.operator
    if isinstance(constant, str):
        if operator != "=":
            raise NotInKoplError(f"strings are compared by = only, not by {operator}")
        return Call(functions[0], (nodes,), (*arguments, constant))
    function = functions[1] if isinstance(constant, Quantity) else functions[2]
    if isinstance(constant, Date):
        function = _DAYS[function]
    return Call(function, (nodes,), (*arguments, str(constant), operator))


def _is_bound(element: Element, asked: set[Var]) -> bool:
    """Whether an element only demands that something is there to print."""
    return (
        isinstance(element, Filter)
        and set(variables(element)) <= asked
        and all(isinstance(p, Filter | AnyOf | Apply | Var) for p in walk(element))
        and all(p.function == "BOUND" for p in walk(element) if isinstance(p, Apply))
    )


def _variable(term: Term | None, element: Element) -> Var:
    if not isinstance(term, Var):
        raise _refused(element, "KoPL finds nodes by name; a variable is expected at both ends")
    return term


def _verb(triple: Triple) -> Iri:
    if not isinstance(triple.predicate, Iri):
        raise _refused(triple, "only the relation that is asked for may be a variable")
    if triple.predicate.text.startswith("pred:"):
        raise _refused(triple, "KoPL does not ask about the encoding's own terms")
    return triple.predicate


def _refused(element: Element, reason: str) -> NotInKoplError:
    return NotInKoplError(f"{write_element(element)} — {reason}")
