"""What supports an answer: the best binding of each variable, as a table and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cqa.graphs.graph import Graph
from cqa.models.search.graph import GraphSearch, fixed_query, oriented, reading_order
from cqa.models.search.picture import Box, support_picture
from cqa.query import Atom, Conjunction, Constant, Query, Term


@dataclass(frozen=True)
class LinkValue:
    """An atom with entities in place of its variables: what it is worth, and whether it is known.

    ``relation`` is forward (2r) wherever the query has it so; ``value`` is that of the negation
    where the atom is negated.
    """

    relation: int
    head: int
    tail: int
    positive: bool
    value: float
    known: bool


@dataclass(frozen=True)
class Explanation:
    """The best assignment that gives an answer.

    ``score`` is what the answer scores, ``value`` what this assignment is worth: less where a union
    has other support, too. ``disjunct`` is the number of the disjunct that it satisfies, from 0.
    ``without`` are the values of the negated parts that are more than one link.
    """

    answer: tuple[int, ...]
    score: float
    value: float
    disjunct: int
    bindings: dict[str, int]
    links: tuple[LinkValue, ...]
    without: tuple[float, ...]

    def table(self, graph: Graph) -> list[tuple[str, str, str, str, str]]:
        """Rows of head, relation, tail, value, and "known", "predicted" or "not".

        A relation is named as the graph names it, with ⁻¹ where it is an inverse.
        """
        rows = []
        for link in self.links:
            state = "known" if link.known else "predicted"
            rows.append((
                self._named(graph, link.head), _relation(graph, link.relation),
                self._named(graph, link.tail), f"{link.value:.4g}",
                state if link.positive else "not",
            ))  # fmt: skip
        rows += [("", "negated part", "", f"{value:.4g}", "not") for value in self.without]
        return rows

    def text(self, graph: Graph) -> str:
        """The bindings, and a line for each link."""
        bound = ", ".join(f"{name} = {graph.entity_name(at)}" for name, at in self.bindings.items())
        lines = [f"{bound}  {self.value:.4g}"]
        for head, relation, tail, value, state in self.table(graph):
            what = " ".join(part for part in (head, relation, tail) if part)
            lines.append(f"  {state:9}  {value:>8}  {what}")
        return "\n".join(lines)

    def mermaid(self, graph: Graph) -> str:
        """The assignment as a Mermaid chart: predicted links are dotted, the answer is doubled."""
        entities = self._entities()
        lines = ["flowchart LR"]
        for at, entity in enumerate(entities):
            left, right = ("[[", "]]") if entity in self.answer else ("[", "]")
            lines.append(f'    n{at}{left}"{_quoted(self._named(graph, entity))}"{right}')
        for link in self.links:
            arrow = "-->" if link.known and link.positive else "-.->"
            sign = "" if link.positive else "not "
            label = _quoted(f"{sign}{_relation(graph, link.relation)} {link.value:.3g}")
            head, tail = entities.index(link.head), entities.index(link.tail)
            lines.append(f'    n{head} {arrow}|"{label}"| n{tail}')
        return "\n".join(lines) + "\n"

    def svg(self, graph: Graph) -> str:
        """The assignment as the text of an SVG file: predicted links have a broken frame.

        Negated ones have it in red; the answer is below.
        """
        entities = self._entities()
        boxes = [
            Box(self._named(graph, one), "answer" if one in self.answer else "entity")
            for one in entities
        ]
        links = []
        for link in self.links:
            label = f"{_relation(graph, link.relation)} {link.value:.3g}"
            kind = "known" if link.known else "predicted"
            box = Box(label if link.positive else f"not {label}", kind if link.positive else "not")
            links.append((entities.index(link.head), entities.index(link.tail), box))
        return support_picture(boxes, links, map(entities.index, dict.fromkeys(self.answer)))

    def _entities(self) -> list[int]:
        """The entities in order of appearance, the answer's at last where no link has them."""
        ends = [end for link in self.links for end in (link.head, link.tail)]
        return list(dict.fromkeys([*ends, *self.answer]))

    def _named(self, graph: Graph, entity: int) -> str:
        names = [name for name, at in self.bindings.items() if at == entity]
        shown = graph.entity_name(entity)
        return f"{shown} ({', '.join(names)})" if names else shown


def explained(
    search: GraphSearch, query: Query, answer: Sequence[int], score: float
) -> Explanation:
    """The best assignment for an answer of a query, of the disjunct that supports it most.

    Variables are bound one after the other, each to the best value that the others leave it, in the
    order in which they are read. The answer has an entity for each free variable.
    """
    turned = oriented(query)
    fixed = fixed_query(turned, answer)
    values = [float(search.closed(part)) for part in fixed.disjuncts]
    best = max(range(len(values)), key=values.__getitem__)
    part = fixed.disjuncts[best]
    bindings = dict(zip(query.free, answer, strict=True))
    order = reading_order(turned.disjuncts[best], query.free)
    for variable in order:
        if variable in bindings:
            continue
        scores = search.closed_over(part, variable)
        bindings[variable] = int(torch.argmax(scores))
        step = fixed_query(Query((variable,), (part,)), (bindings[variable],))
        part = step.disjuncts[0]
    links = tuple(
        _link(search, given, now)
        for given, now in zip(query.disjuncts[best].atoms, part.atoms, strict=True)
    )
    without = tuple(float(search.negated(one)) for one in part.without)
    named = {variable.name: bindings[variable] for variable in (*query.free, *order)}
    return Explanation(tuple(answer), score, values[best], best, named, links, without)


def _link(search: GraphSearch, given: Atom, now: Atom) -> LinkValue:
    """An atom as the query has it, worth what it is as it is read."""
    relation, head, tail = int(now.relation), _entity(now.head), _entity(now.tail)
    known = search.projection.rows.is_observed(relation, head, tail)
    value = float(search.closed(Conjunction((now,))))
    if relation != given.relation:
        relation, head, tail = relation ^ 1, tail, head
    return LinkValue(relation, head, tail, now.positive, value, known)


def _entity(term: Term) -> int:
    assert isinstance(term, Constant)
    return int(term.entity)


def _relation(graph: Graph, relation: int) -> str:
    return graph.relation_name(relation >> 1) + ("⁻¹" if relation & 1 else "")


def _quoted(text: str) -> str:
    # Entities of Mermaid: a number sign, the code point, a semicolon.
    return "".join(c if c.isalnum() or c in " ·,.:…-_/()=⁻¹" else f"#{ord(c)};" for c in text)
