"""What a set of KoPL says of its members, and the patterns that say it.

A set is described without a variable first: filters, relations, intersections and unions of KoPL
only add to what is said of one node. `Emitter` then writes a description for a variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from kb import KnowledgeBase
from kb.schema import Schema
from kb.values import Condition
from kopl.sparql.ast import Element, Group, Literal, Union, Var
from kopl.sparql.encoding import Encoding, Names

Qualifiers: TypeAlias = list[tuple[str, Condition]]


@dataclass
class Attribute:
    """A fact of a key whose value satisfies the condition, with such qualifiers."""

    key: str
    condition: Condition
    qualifiers: Qualifiers = field(default_factory=list)


@dataclass
class Relation:
    """A fact of a relation with a member of another set at its other end.

    ``forward``: the other end is the head, the node described is the tail.
    """

    relation: str
    forward: bool
    other: Description
    qualifiers: Qualifiers = field(default_factory=list)


@dataclass
class Alternatives:
    """One of several descriptions holds."""

    branches: list[Description]


Part: TypeAlias = Attribute | Relation | Alternatives


@dataclass
class Description:
    """What is said of one node: names, concepts, that it is an entity, facts, alternatives.

    ``fact`` is the part that the set carries facts of, for qualifier filters.
    """

    names: list[str] = field(default_factory=list)
    concepts: list[str] = field(default_factory=list)
    entity: bool = False
    parts: list[Part] = field(default_factory=list)
    fact: Attribute | Relation | None = None

    def add(self, part: Part) -> Description:
        """Take in one part more, whose facts are carried from now on; gives this description."""
        self.parts.append(part)
        self.fact = None if isinstance(part, Alternatives) else part
        return self

    @property
    def is_alternatives(self) -> bool:
        """Whether nothing but one list of alternatives is said."""
        only = len(self.parts) == 1 and isinstance(self.parts[0], Alternatives)
        return only and not (self.names or self.concepts or self.entity)


def both(left: Description, right: Description) -> Description:
    """The intersection."""
    return Description(
        left.names + [name for name in right.names if name not in left.names],
        left.concepts + [name for name in right.concepts if name not in left.concepts],
        left.entity or right.entity,
        left.parts + right.parts,
    )


def either(left: Description, right: Description) -> Description:
    """The union; the branches of a union inside it become its own."""
    branches: list[Description] = []
    for side in (left, right):
        if side.is_alternatives:
            part = side.parts[0]
            assert isinstance(part, Alternatives)
            branches += part.branches
        else:
            branches.append(side)
    return Description(parts=[Alternatives(branches)])


class Emitter:
    """Writes descriptions as patterns.

    ``exact``: every variable that stands for a node is bound as one, and years count beside days;
    otherwise as KQA Pro's queries are written, and ``differences`` collects what may differ then.
    What a knowledge base never has (``schema``) need not be guarded against.
    """

    def __init__(self, encoding: Encoding, exact: bool, schema: Schema) -> None:
        self.encoding, self.exact, self.schema = encoding, exact, schema
        self.names = Names()
        self.differences: dict[str, None] = {}

    def differ(self, reason: str) -> None:
        """Note that the query may have another answer than the program, and why."""
        self.differences[reason] = None

    def describe(
        self, description: Description, node: Var, *, bound: bool = False
    ) -> list[Element]:
        """The patterns that say the description of a variable.

        ``bound``: something else binds the variable as a node.
        """
        found: list[Element] = []
        if not self.exact:
            description = _common_concepts_first(description)
        for name in description.names:
            found += self.encoding.named(node, Literal(name))
        for concept in description.concepts:
            found += self.encoding.instance(node, concept, self.names)
        bound = bound or bool(description.names or description.concepts)
        if description.entity and not description.concepts and not self._is_entity(description):
            if not (self.exact and self.encoding.kinds):
                self.differ(WITHOUT_KINDS)
            found += self.encoding.entity(node, self.names, by_kind=self.exact)
            bound = True
        for part in description.parts:
            if isinstance(part, Attribute):
                found += self._attribute(part, node)
                bound = bound or not self.schema.has_key((part.key, True))
            elif isinstance(part, Relation):
                found += self._relation(part, node)
                # Only nodes have facts, but values are at the other end of attributes.
                bound = bound or not part.forward
                bound = bound or not self.schema.has_key((part.relation, False))
            else:
                found.append(self._alternatives(part, node))
                bound = True
        if not bound:
            if self.exact:
                found += self.encoding.node(node, self.names)
            else:
                self.differ(UNBOUND)
        return found

    def _is_entity(self, description: Description) -> bool:
        """Whether the facts that are asked for make the node an entity: concepts have none.

        A fact's own node may have a qualifier of the key, which only a name or concept excludes.
        """
        keys = [part.key for part in description.parts if isinstance(part, Attribute)]
        if not self.exact or description.names:
            return bool(keys)
        return any(not self.schema.has_key((key, True)) for key in keys)

    def may_be_concept(self, description: Description) -> bool:
        """Whether a concept may fit a description: concepts have no attributes and no concepts."""
        if description.concepts or description.entity:
            return False
        if any(isinstance(part, Attribute) for part in description.parts):
            return False
        return not description.names or all(map(self.schema.is_concept, description.names))

    def _attribute(self, part: Attribute, node: Var) -> list[Element]:
        value = self.names.fresh("pv")
        return [
            *self.encoding.attribute(node, part.key, value),
            *self.condition(value, part.key, part.condition, qualifier=False),
            *self.qualified(node, part.key, value, part.qualifiers),
        ]

    def _relation(self, part: Relation, node: Var) -> list[Element]:
        other = self.names.fresh("e", numbered=True)
        head, tail = (other, node) if part.forward else (node, other)
        return [
            *self.encoding.relation(head, part.relation, tail),
            *self.qualified(head, part.relation, tail, part.qualifiers),
            *self.describe(part.other, other),
        ]

    def _alternatives(self, part: Alternatives, node: Var) -> Element:
        groups = []
        for branch in self.names.alternatives(part.branches, reuse=not self.exact):
            groups.append(Group(tuple(self.describe(branch, node))))
        return Union(tuple(groups))

    def condition(
        self, value: Var, key: str, condition: Condition, *, qualifier: bool
    ) -> list[Element]:
        """The patterns of a condition on a value of the key."""
        loose = not self.exact and self.encoding.is_loose(condition)
        if loose and self.schema.has_years((key, qualifier)):
            self.differ(YEARS_LOST)
        condition = self.schema.possible((key, qualifier), condition)
        return self.encoding.condition(value, condition, self.names, loose=not self.exact)

    def qualified(
        self, head: Var, predicate: str, tail: Var, qualifiers: Qualifiers
    ) -> list[Element]:
        """One fact has all of these qualifiers; nothing when there are none."""
        if not qualifiers:
            return []
        values = [(key, self.names.fresh("qpv")) for key, _ in qualifiers]
        found = self.encoding.fact(head, predicate, tail, values)
        for (key, value), (_, condition) in zip(values, qualifiers, strict=True):
            found += self.condition(value, key, condition, qualifier=True)
        return found


def _common_concepts_first(description: Description) -> Description:
    """The same with the concepts that all alternatives share said once, outside of them."""
    concepts, parts = list(description.concepts), list(description.parts)
    for at, part in enumerate(parts):
        if not isinstance(part, Alternatives):
            continue
        first, *others = part.branches
        shared = [c for c in first.concepts if all(c in branch.concepts for branch in others)]
        branches = [
            replace(branch, concepts=[c for c in branch.concepts if c not in shared], entity=False)
            for branch in part.branches
        ]
        if shared and all(b.names or b.concepts or b.parts for b in branches):
            parts[at] = Alternatives(branches)
            concepts += [c for c in shared if c not in concepts]
    return replace(description, concepts=concepts, parts=parts)


# How a query in the data's style may differ from its program.
SUPERLATIVE = "ORDER BY … LIMIT 1 drops ties and does not look at units"
YEARS_LOST = "a day is compared with days alone: a value that is a year is passed over"
OWN_RELATIONS = "?p may be the encoding's own pred:instance_of"
UNBOUND = "a variable for an entity may also stand for the node of a value or fact"
VALUE_OR_NODE = "the values of a key are asked for; where a relation is called so, nodes come too"
WITHOUT_KINDS = "FindAll is read as 'has a concept': entities without one are missed"
DIFFERENCES = (SUPERLATIVE, YEARS_LOST, OWN_RELATIONS, UNBOUND, VALUE_OR_NODE, WITHOUT_KINDS)


def emitter(encoding: Encoding, exact: bool, kb: KnowledgeBase | None) -> Emitter:
    """An emitter for one query."""
    return Emitter(encoding, exact, Schema.of(kb))
