"""What a query says of its variables, and the programs of the sets that it describes.

`Scope` is what is read of a group of the query: facts, triples, and what is left. `Describer` uses
it up into a tree of conditions, relations and alternatives, of which `program_of` makes a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kb.rdf.iri import decode, encode
from kb.store import normalise_name
from kb.values import Condition, Date, Quantity
from kopl import functions as f
from kopl.functions import Function
from kopl.program import Call
from kopl.sparql.ast import (
    Brackets,
    Element,
    Filter,
    Iri,
    Literal,
    Query,
    Term,
    Triple,
    TripleTerm,
    Union,
    Var,
    flat,
    variables,
    walk,
    write_element,
)
from kopl.sparql.conditions import OF_VALUES, about_value, condition_of, is_plain
from kopl.sparql.encoding import ENTITY, FACT_H, FACT_R, FACT_T, INSTANCE_OF, KIND, NAME, REIFIES
from kopl.sparql.errors import NotInKoplError
from kopl.sparql.sets import Alternatives, Attribute, Description, Qualifiers, Relation


@dataclass
class Fact:
    """The node of a fact: its ends, its predicate, and its qualifiers with their variables."""

    head: Term
    predicate: Term
    tail: Term
    qualifiers: list[tuple[Iri, Var]]
    element: Element


class Scope:
    """The elements of one group, each to be used once."""

    def __init__(self, elements: Iterable[Element]) -> None:
        self.elements: list[Element] = []
        self.facts: list[Fact] = []
        by_variable: dict[Var, list[Triple]] = {}
        for element in flat(elements):
            if isinstance(element, Brackets):
                self.facts.append(fact_of((*element.inside, *element.outside), element))
            else:
                self.elements.append(element)
            if isinstance(element, Triple) and isinstance(element.subject, Var):
                by_variable.setdefault(element.subject, []).append(element)
        # A fact's node may also have a name: ?f <pred:fact_h> ?e ; …
        for triples in by_variable.values():
            if any(triple.predicate in (FACT_H, REIFIES) for triple in triples):
                pairs = tuple((triple.predicate, triple.object) for triple in triples)
                self.facts.append(fact_of(pairs, triples[0]))
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
            raise refused(left[0], "it is not connected with what is asked for as a tree")


def fact_of(pairs: tuple[tuple[Term, Term], ...], element: Element) -> Fact:
    ends: dict[Term, Term] = {}
    qualifiers: list[tuple[Iri, Var]] = []
    for verb, what in pairs:
        if verb == REIFIES and isinstance(what, TripleTerm):
            ends |= {FACT_H: what.subject, FACT_R: what.predicate, FACT_T: what.object}
        elif verb in (FACT_H, FACT_R, FACT_T):
            if verb in ends:
                raise refused(element, "a fact has one head, one relation and one tail")
            ends[verb] = what
        elif isinstance(verb, Iri) and isinstance(what, Var):
            qualifiers.append((key_of(verb, element), what))
        else:
            raise refused(element, "a qualifier is a key and a variable for its value")
    if len(ends) != 3:
        raise refused(element, "a fact needs its head, its relation and its tail")
    return Fact(ends[FACT_H], ends[FACT_R], ends[FACT_T], qualifiers, element)


def variable_of(term: Term | None, element: Element) -> Var:
    if not isinstance(term, Var):
        raise refused(element, "KoPL finds nodes by name; a variable is expected at both ends")
    return term


def verb_of(triple: Triple) -> Iri:
    if not isinstance(triple.predicate, Iri):
        raise refused(triple, "only the relation that is asked for may be a variable")
    if triple.predicate.text.startswith("pred:"):
        raise refused(triple, "KoPL does not ask about the encoding's own terms")
    return key_of(triple.predicate, triple)


def key_of(iri: Iri, element: Element) -> Iri:
    """The IRI of a key or relation, as the encoding writes it: another finds nothing."""
    if encode(decode(iri.text)) != iri.text:
        raise refused(element, f"<{iri.text}> is no IRI that the encoding writes for a key")
    return iri


def name_of(literal: Literal, element: Element) -> str:
    """The name that a literal is: names have one blank between words, and none at the ends."""
    if not is_plain(literal) or normalise_name(literal.text) != literal.text:
        raise refused(element, "no node has such a name: names are texts with single blanks")
    return literal.text


def refused(element: Element, reason: str) -> NotInKoplError:
    return NotInKoplError(f"{write_element(element)} — {reason}")


class Describer:
    """Describes the nodes of one query, each variable once."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.seen: set[Var] = set()

    @cached_property
    def uses(self) -> dict[Var, int]:
        """How often each variable stands in the query."""
        return variables(self.query)

    @cached_property
    def values(self) -> frozenset[Term]:
        """The nodes of values, by what is said of them."""
        return frozenset(
            part.subject
            for part in walk(self.query)
            if isinstance(part, Triple) and part.predicate in OF_VALUES
        )

    def edge(self, value: Var, scope: Scope) -> tuple[Triple, str, Qualifiers]:
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
        qualifiers = self.qualifiers(edge, scope)
        return edge, decode(verb_of(edge).text), qualifiers

    def _edge_of_fact(self, fact: Fact, value: Var, scope: Scope) -> tuple[Triple, str, Qualifiers]:
        edge = Triple(fact.head, fact.predicate, fact.tail)
        self.seen.add(value)
        return edge, decode(verb_of(edge).text), self.qualifiers(edge, scope)

    def qualifiers(self, edge: Triple, scope: Scope) -> Qualifiers:
        """The conditions on the qualifiers of the fact that a triple says."""
        ends = (edge.subject, edge.predicate, edge.object)
        facts = [fact for fact in scope.facts if (fact.head, fact.predicate, fact.tail) == ends]
        if len(facts) > 1 and edge.object not in self.values:
            raise refused(
                facts[1].element,
                "two facts of one relation between two nodes may be meant;"
                " say all qualifiers of one node",
            )
        found: Qualifiers = []
        for fact in facts:
            scope.facts.remove(fact)
            for key, value in fact.qualifiers:
                self.new(value, fact.element)
                found.append((decode(key.text), self.condition(value, scope, fact.element)))
        return found

    def whole(self, node: Var, scope: Scope) -> Call:
        """The set that a variable stands for, when the scope says nothing else."""
        description = self.described(node, scope)
        scope.finish()
        return program_of(description)

    def new(self, var: Var, element: Element) -> None:
        if var in self.seen:
            raise refused(
                element, f"?{var.name} is reached in two ways; programs are trees, not cycles"
            )
        self.seen.add(var)

    def described(self, node: Var, scope: Scope) -> Description:
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
                found.parts.append(Alternatives(self.branches(node, element)))
        for fact in list(scope.facts):
            if fact in scope.facts and node in (fact.head, fact.tail):
                edge = Triple(fact.head, fact.predicate, fact.tail)
                self._fact_edge(edge, node, scope, found)
        return found

    def branches(self, node: Var, union: Union) -> list[Description]:
        """What the alternatives say of a node; their other variables are their own."""
        inside, everywhere = variables(union), self.uses
        for var in inside:
            if var != node and inside[var] < everywhere[var]:
                raise NotInKoplError(
                    f"UNION: ?{var.name} also stands outside of its alternative; only"
                    f" ?{node.name} may"
                )
        found, before = [], self.seen - {node}
        for branch in union.branches:
            self.seen = set(before)
            scope = Scope(branch.elements)
            found.append(self.described(node, scope))
            scope.finish()
        self.seen = before | {node}
        return found

    def _triple(self, triple: Triple, node: Var, scope: Scope, found: Description) -> None:
        if triple.subject == triple.object:
            raise refused(triple, "KoPL has no sets of nodes that are related to themselves")
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
                found.names.append(name_of(what, triple))
            elif self.uses[variable_of(what, triple)] > 1:
                raise refused(triple, "a name is a constant in KoPL")
        elif verb == KIND:
            if what != ENTITY:
                raise refused(triple, "KoPL has no set of all concepts")
            scope.drop([triple])
            found.entity = True
        elif verb == INSTANCE_OF:
            scope.drop([triple])
            self._concept(triple, scope, found)
        elif isinstance(verb, Iri) and isinstance(what, Var):
            if verb in OF_VALUES:
                raise refused(triple, f"?{node.name} stands for a value and for a node")
            if self.has_condition(what, scope):
                _, key, qualifiers = self.edge(what, scope)
                condition = self.condition(what, scope, triple)
                found.parts.append(Attribute(key, condition, qualifiers))
            else:
                scope.drop([triple])
                self._related(triple, False, scope, found)
        else:
            raise refused(triple, "a relation and a variable at both of its ends are expected")

    def _concept(self, triple: Triple, scope: Scope, found: Description) -> None:
        above = variable_of(triple.object, triple)
        self.new(above, triple)
        names = [t for t in scope.triples() if t.subject == above]
        if not names:
            found.entity = True
            return
        name = names[0]
        if len(names) > 1 or name.predicate != NAME or not isinstance(name.object, Literal):
            raise refused(names[-1], "of a concept KoPL knows the name only")
        scope.drop([name])
        found.concepts.append(name_of(name.object, name))

    def _related(self, triple: Triple, forward: bool, scope: Scope, found: Description) -> None:
        """A relation; forward, the node described is its tail."""
        other = variable_of(triple.subject if forward else triple.object, triple)
        relation = decode(verb_of(triple).text)
        qualifiers = self.qualifiers(triple, scope)
        if other in self.seen:
            raise refused(
                triple, f"?{other.name} is reached in two ways; programs are trees, not cycles"
            )
        described = self.described(other, scope)
        found.parts.append(Relation(relation, forward, described, qualifiers))

    def _fact_edge(self, edge: Triple, node: Var, scope: Scope, found: Description) -> None:
        """A fact of which only the node stands in the query, without the plain triple."""
        if edge.subject == node and self.has_condition(variable_of(edge.object, edge), scope):
            value = variable_of(edge.object, edge)
            _, key, qualifiers = self.edge(value, scope)
            condition = self.condition(value, scope, edge)
            found.parts.append(Attribute(key, condition, qualifiers))
        else:
            self._related(edge, edge.object == node, scope, found)

    # --- values ---------------------------------------------------------------------------

    def has_condition(self, var: Var, scope: Scope) -> bool:
        return any(about_value(element, var) for element in scope.elements)

    def unconditioned(self, value: Var, scope: Scope) -> None:
        left = [element for element in scope.elements if about_value(element, value)]
        if left:
            raise refused(left[0], "a value that is asked for cannot be compared as well")

    def condition(self, value: Var, scope: Scope, near: Element) -> Condition:
        """The condition on a value; its elements are used up."""
        own = [element for element in scope.elements if about_value(element, value)]
        if not own:
            raise refused(near, f"nothing is said of the value ?{value.name}")
        compared = set(variables(tuple(own))) - {value}
        for element in list(scope.elements):
            if isinstance(element, Filter) and set(variables(element)) & compared:
                own.append(element)
        scope.drop(own)
        return condition_of(value, own)


# --- programs ----------------------------------------------------------------------------------


def program_of(description: Description) -> Call:
    """The program of a set; raises NotInKoplError for the set of all nodes."""
    sources: list[Call] = []
    attributes: list[Attribute] = []
    for part in description.parts:
        if isinstance(part, Relation):
            word = "forward" if part.forward else "backward"
            related = Call(f.RELATE, (program_of(part.other),), (part.relation, word))
            sources.append(_qualified(related, part.qualifiers))
        elif isinstance(part, Alternatives):
            either, *others = [program_of(branch) for branch in part.branches]
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
        nodes = typed(functions, nodes, [attribute.key], attribute.condition)
        nodes = _qualified(nodes, attribute.qualifiers)
    for concept in description.concepts:
        nodes = Call(f.FILTER_CONCEPT, (nodes,), (concept,))
    return nodes


def rooted(function: Function, nodes: Call, *arguments: str) -> Call:
    """The program of a function of one set."""
    return Call(function, (nodes,), arguments)


def _any_reading(nodes: Call, attribute: Attribute) -> Call:
    functions = (f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR)
    found: Call | None = None
    for constant in attribute.condition.constants:
        one = typed(functions, nodes, [attribute.key], Condition((constant,)))
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
        nodes = typed(functions, nodes, [key], condition)
    return nodes


_DAYS = {f.FILTER_YEAR: f.FILTER_DATE, f.QFILTER_YEAR: f.QFILTER_DATE, f.VERIFY_YEAR: f.VERIFY_DATE}


def typed(
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
