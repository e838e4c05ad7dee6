"""The elements of a group of a query, as they are read: facts, triples, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kb.iri import decode, encode
from kb.store import normalise_name
from kopl.sparql.ast import (
    Brackets,
    Element,
    Iri,
    Literal,
    Term,
    Triple,
    TripleTerm,
    Var,
    flat,
)
from kopl.sparql.conditions import is_plain
from kopl.sparql.encoding import (
    FACT_H,
    FACT_R,
    FACT_T,
    REIFIES,
)
from kopl.sparql.errors import NotInKoplError
from kopl.sparql.text import write_element


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
