"""The set part of KoPL as queries, and queries as KoPL: Find, Relate, FilterConcept, And, Or.

The graph is that of `cqa.graphs.from_kb` for the same knowledge base, so that an entity of the one
is the node of that number of the other. KoPL has neither complement nor cycles nor several answer
variables, and a logical query has no names: where one form cannot say what the other does, an
error tells the part and the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from cqa.errors import QueryError
from cqa.graphs.from_kb import INSTANCE_OF
from cqa.graphs.graph import Graph
from cqa.notation.formula import Fresh
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable, check
from kb.store import KnowledgeBase, suggest
from kopl.functions import AND, FILTER_CONCEPT, FIND, FIND_ALL, OR, QUERY_NAME, RELATE
from kopl.program import Call
from kopl.text import read

FREE = Variable("f1")
MAX_DISJUNCTS = 4096


# --- from KoPL --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Set:
    """One way to be in a set: a term, and atoms that hold of it."""

    term: Term
    atoms: tuple[Atom, ...] = ()


def from_kopl(program: Call | str, graph: Graph, kb: KnowledgeBase) -> Query:
    """The query whose answers are the entities that a program locates; a QueryName is looked past.

    A name of several nodes gives a disjunct for each. Raises ParseError and TypingError for a text
    that is no program, and QueryError for a function outside the set part, a name of no node, and a
    set that is a given entity itself.
    """
    call = read(program) if isinstance(program, str) else program
    if call.function is QUERY_NAME:
        call = call.inputs[0]
    sets = _FromKopl(graph, kb).sets(call)
    if not sets:
        raise QueryError("the sets have no entity in common, whatever the graph holds")
    disjuncts = []
    for one in sets:
        if isinstance(one.term, Constant):
            raise QueryError(
                f"the program may locate {kb.name_of(int(one.term.entity))!r} itself; a query asks"
                " for what stands in a relation"
            )
        names = {one.term: FREE}
        disjuncts.append(Conjunction(tuple(_renamed(atom, names) for atom in one.atoms)))
    query = Query((FREE,), tuple(dict.fromkeys(disjuncts)))
    check(query)
    return query


class _FromKopl:
    def __init__(self, graph: Graph, kb: KnowledgeBase) -> None:
        self._graph, self._kb = graph, kb
        self._fresh = Fresh([FREE.name])

    def sets(self, call: Call) -> list[_Set]:
        function = call.function
        if function is FIND:
            return [_Set(Constant(node)) for node in self._nodes(call.arguments[0])]
        if function is RELATE:
            return [self._related(one, *call.arguments) for one in self.sets(call.inputs[0])]
        if function is FILTER_CONCEPT:
            return self._filtered(call)
        if function is OR:
            return self._limited(one for given in call.inputs for one in self.sets(given))
        if function is AND:
            pairs = product(*(self.sets(given) for given in call.inputs))
            met = (self._met(left, right) for left, right in pairs)
            return self._limited(one for one in met if one is not None)
        raise QueryError(
            f"{function.name} is outside the set part of KoPL: Find, Relate, FilterConcept, And, Or"
            + (" (FindAll stands below FilterConcept only)" if function is FIND_ALL else "")
        )

    def _related(self, one: _Set, relation: str, direction: str) -> _Set:
        number = 2 * self._graph.relation(relation) + (direction == "backward")
        reached = self._fresh.variable("x")
        return _Set(reached, (*one.atoms, Atom(number, one.term, reached)))

    def _filtered(self, call: Call) -> list[_Set]:
        kb, name = self._kb, call.arguments[0]
        concepts = [node for node in self._nodes(name) if not kb.is_entity(node)]
        if not concepts:
            raise QueryError(f"the knowledge base has no concept {name!r}")
        relation = 2 * self._graph.relation(INSTANCE_OF)
        if call.inputs[0].function is FIND_ALL:
            sets = [_Set(self._fresh.variable("x"))]
        else:
            sets = self.sets(call.inputs[0])
        return self._limited(
            _Set(one.term, (*one.atoms, Atom(relation, one.term, Constant(concept))))
            for one in sets
            for concept in concepts
        )

    def _met(self, left: _Set, right: _Set) -> _Set | None:
        """What is in both; None for two different given entities."""
        if isinstance(left.term, Constant) and isinstance(right.term, Constant):
            if left.term != right.term:
                return None
            return _Set(left.term, left.atoms + right.atoms)
        if isinstance(right.term, Constant):
            left, right = right, left
        assert isinstance(right.term, Variable)
        names = {right.term: left.term}
        return _Set(left.term, left.atoms + tuple(_renamed(atom, names) for atom in right.atoms))

    def _nodes(self, name: str) -> list[int]:
        nodes: list[int] = self._kb.named(name).tolist()
        if not nodes:
            near = suggest(self._kb, name, ("entity", "concept"))
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise QueryError(f"the knowledge base has nothing named {name!r}{hint}")
        return nodes

    def _limited(self, sets: Iterable[_Set]) -> list[_Set]:
        found = []
        for one in sets:
            found.append(one)
            if len(found) > MAX_DISJUNCTS:
                raise QueryError(f"the program has more than {MAX_DISJUNCTS} disjuncts")
        return found


def _renamed(atom: Atom, names: dict[Variable, Term] | dict[Variable, Variable]) -> Atom:
    def end(term: Term) -> Term:
        return names.get(term, term) if isinstance(term, Variable) else term

    return Atom(atom.relation, end(atom.head), end(atom.tail), atom.positive)


# --- to KoPL ----------------------------------------------------------------------------------


def to_kopl(query: Query, graph: Graph, kb: KnowledgeBase) -> Call:
    """The program that locates the answers of a query.

    Raises QueryError for what KoPL's sets cannot say: negation, several free variables, cycles and
    parallel edges, entities that share their name, variables that could be a concept or an entity.
    """
    check(query, entities=graph.entity_count, relations=graph.links.relation_count)
    if len(query.free) != 1:
        raise QueryError("KoPL locates one set; the query must have one free variable")
    writer = _ToKopl(graph, kb)
    parts = [writer.conjunction(disjunct, query.free[0]) for disjunct in query.disjuncts]
    program = parts[0]
    for part in parts[1:]:
        program = Call(OR, (program, part))
    return program


class _ToKopl:
    def __init__(self, graph: Graph, kb: KnowledgeBase) -> None:
        self._graph, self._kb = graph, kb
        named = graph.relations
        self._instance = -1 if named is None else named.find(INSTANCE_OF)
        self._seen: set[Variable] = set()

    def conjunction(self, given: Conjunction, free: Variable) -> Call:
        if given.without or not all(atom.positive for atom in given.atoms):
            raise QueryError("KoPL's sets have no negation")
        waiting = list(dict.fromkeys(given.atoms))
        self._seen.clear()
        found = self._set(free, waiting)
        if waiting:
            raise QueryError("a part of the query has no connection with its free variable")
        return found

    def _set(self, variable: Variable, waiting: list[Atom]) -> Call:
        """The set of a variable, from the atoms that wait at it; those used are taken out."""
        if variable in self._seen:
            raise QueryError("KoPL's sets have no cycles and no parallel edges")
        self._seen.add(variable)
        own = [atom for atom in waiting if variable in (atom.head, atom.tail)]
        for atom in own:
            waiting.remove(atom)
        concepts: list[str] = []
        sets: list[Call] = []
        for atom in own:
            relation = int(atom.relation)
            if relation % 2:
                atom = Atom(relation - 1, atom.tail, atom.head)
            other = atom.head if atom.tail == variable else atom.tail
            if other == variable:
                raise QueryError("KoPL's sets have no variable in relation to itself")
            if relation // 2 == self._instance and atom.head == variable:
                concepts.append(self._concept(other))
                continue
            if relation // 2 == self._instance:
                raise QueryError("KoPL asks for the instances of a concept, not for concepts")
            direction = "forward" if atom.tail == variable else "backward"
            if isinstance(other, Constant):
                below = Call(FIND, (), (self._name(int(other.entity)),))
            else:
                below = self._set(other, waiting)
            name = self._graph.relation_name(relation // 2)
            sets.append(Call(RELATE, (below,), (name, direction)))
        if not sets and not concepts:
            raise QueryError(
                "an existential variable without a constant below it may be any node; KoPL's"
                " FindAll has entities only"
            )
        found = sets[0] if sets else Call(FIND_ALL)
        for one in sets[1:]:
            found = Call(AND, (found, one))
        for concept in concepts:
            found = Call(FILTER_CONCEPT, (found,), (concept,))
        return found

    def _concept(self, term: Term) -> str:
        if not isinstance(term, Constant):
            raise QueryError("KoPL names a concept; it has no variable for one")
        node = int(term.entity)
        name = self._kb.name_of(node)
        concepts = [n for n in self._kb.named(name).tolist() if not self._kb.is_entity(n)]
        if concepts != [node]:
            raise QueryError(f"{name!r} is not the name of this concept alone")
        return name

    def _name(self, node: int) -> str:
        name = self._kb.name_of(node)
        if len(self._kb.named(name)) != 1:
            raise QueryError(f"{name!r} is the name of several nodes; Find would locate all")
        return name
