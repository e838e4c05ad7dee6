"""What a query says of its variables: conditions, relations, alternatives, as a tree."""

from __future__ import annotations

from functools import cached_property

from kb.iri import decode
from kb.values import Condition
from kopl.program import Call
from kopl.sparql.ast import (
    Element,
    Filter,
    Iri,
    Literal,
    Query,
    Term,
    Triple,
    Union,
    Var,
    variables,
    walk,
)
from kopl.sparql.conditions import OF_VALUES, about_value, condition_of
from kopl.sparql.encoding import (
    ENTITY,
    FACT_T,
    INSTANCE_OF,
    KIND,
    NAME,
)
from kopl.sparql.errors import NotInKoplError
from kopl.sparql.programs import program_of
from kopl.sparql.scope import Fact, Scope, name_of, refused, variable_of, verb_of
from kopl.sparql.sets import (
    Alternatives,
    Attribute,
    Description,
    Qualifiers,
    Relation,
)


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
