"""A knowledge base as RDF: KQA Pro's encoding, streamed as N-Triples, N-Quads or Turtle.

Ids, relations and keys are bare IRI references (see `kb.iri`), or absolute below a base. Every
value is a blank node, and so is every fact: it has ``pred:fact_h``, ``pred:fact_r`` and
``pred:fact_t`` and one triple per qualifier value, beside the plain triple. Two terms are ours:
``pred:kind`` ("entity" or "concept") and ``pred:parent`` (the ids of the direct concepts, as
strings so that no query over nodes meets them). Read back by `kb.rdfread.read_rdf`.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from kb.iri import (
    DATE,
    FACT_H,
    FACT_R,
    FACT_T,
    INSTANCE_OF,
    KIND,
    NAME,
    PARENT,
    RDF,
    UNIT,
    VALUE,
    XSD,
    YEAR,
    encode,
)
from kb.store import KnowledgeBase
from kb.values import Date, Quantity, print_number
from kopl_base.errors import KoplError
from kopl_base.progress import Progress
from kopl_base.stream import writing

RdfForm = Literal["nt", "ttl", "nq"]
# One relational fact: relation, tail, qualifier set; whether it writes the plain triple; whether
# other facts share that triple.
_Relational = tuple[int, int, int, bool, bool]

log = logging.getLogger("kb")

_LINES = 512  # parts of a piece, each with one or more lines: 100 to 300 KiB
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]+")


def ntriples(
    kb: KnowledgeBase,
    *,
    base: str | None = None,
    graph: str | None = None,
    terms: bool = False,
    held: bool = False,
) -> Iterator[str]:
    """The knowledge base as pieces of N-Triples, many whole lines each; N-Quads with a graph.

    Without a ``base`` the IRIs are bare. With ``terms`` a fact is an RDF 1.2 triple term, and has
    a node only when it has qualifiers. ``held``: the triples are for a store, which holds all of
    them. Raises KoplError for a base that is not an absolute IRI ending in "/", for a graph that is
    no absolute IRI, and for a store of concepts too deep below each other.
    """
    check_options("nt" if graph is None else "nq", base=base, graph=graph)
    check_depth(kb, held=held)
    return (piece for piece, _ in _ntriples(kb, base, graph, terms))


def turtle(kb: KnowledgeBase, *, base: str | None = None, terms: bool = False) -> Iterator[str]:
    """The knowledge base as pieces of Turtle, grouped by subject; otherwise as `ntriples`."""
    check_base(base)
    check_depth(kb, held=False)
    return (piece for piece, _ in _turtle(kb, base, terms))


def write_rdf(
    kb: KnowledgeBase,
    path: Path | str,
    form: RdfForm = "nt",
    *,
    base: str | None = None,
    graph: str | None = None,
    terms: bool = False,
    held: bool = False,
) -> None:
    """Write N-Triples, Turtle or N-Quads; compressed when the name ends in .gz, .bz2 or .xz.

    ``base``, ``graph`` (N-Quads only), ``terms`` and ``held`` are those of `ntriples`. Raises
    KoplError for options that do not fit, and as `ntriples` does, and WriteError for a file that
    cannot be written.
    """
    check_options(form, base=base, graph=graph)
    check_depth(kb, held=held)
    if form == "ttl":
        pieces = _turtle(kb, base, terms)
    else:
        pieces = _ntriples(kb, base, graph, terms)
    with writing(path) as file, Progress(f"writing {Path(path).name}", kb.node_count) as bar:
        for piece, node in pieces:
            file.write(piece)
            bar.reach(node)


def check_options(form: str, *, base: str | None, graph: str | None) -> None:
    """Raise KoplError for options of `write_rdf` that do not fit."""
    if form not in ("nt", "ttl", "nq"):
        raise KoplError(f"the form is nt, ttl or nq, not {form!r}")
    check_base(base)
    if graph is not None and form != "nq":
        raise KoplError("a graph can be named in N-Quads (nq) only")
    if graph is not None and not _ABSOLUTE.fullmatch(graph):
        raise KoplError(f"the graph must be an absolute IRI, not {graph!r}")


def check_base(base: str | None) -> None:
    """Raise KoplError unless the base is None or an absolute IRI that ends in "/"."""
    if base is None:
        return
    if not (_ABSOLUTE.fullmatch(base) and base.endswith("/")) or set("?#") & set(base):
        raise KoplError(f"the base must be an absolute IRI that ends in '/', not {base!r}")


# The encoding has a triple for each entity and each concept that it is an instance of, also
# through others. Where there are so many for each entity, concepts stand deep below each other;
# so many in all are said, and more than the most no store is built of: it would take more than
# 5 GB and two minutes.
DEEP, SAID, MOST = 32, 2_000_000, 20_000_000


def check_depth(kb: KnowledgeBase, *, held: bool) -> None:
    """Say that concepts stand so deep that their triples are many.

    Raises KoplError where the triples are to be held in a store, and are too many.
    """
    count = kb.memberships
    if count < max(SAID, DEEP * kb.entity_count):
        return
    why = (
        f"the concepts stand deep below each other: KQA Pro's encoding has up to {count:,} triples"
        f" that say which concepts the {kb.entity_count:,} entities are instances of"
    )
    if held and count > MOST:
        raise KoplError(
            f"{why}, and {MOST:,} are the most for a store; the engine kopl needs none (--engine"
            " kopl; kopl generate: --verify 0)"
        )
    cost = "they take minutes and gigabytes to write"
    if held:
        cost = (
            "a store of them takes minutes and gigabytes; the engine kopl needs none (--engine"
            " kopl; kopl generate: --verify 0)"
        )
    log.warning("%s; %s", why, cost)


# --- what both forms share ---------------------------------------------------------------------

_ESCAPES = {code: f"\\u{code:04X}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_ESCAPES |= {ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}
_ESCAPES |= {ord('"'): '\\"', ord("\\"): "\\\\"}
_ESCAPED = re.compile('[\x00-\x1f"\\\\\x7f-\x9f]')


def literal(text: str) -> str:
    """The text as a quoted literal of N-Triples and Turtle."""
    if _ESCAPED.search(text):
        text = text.translate(_ESCAPES)
    return f'"{text}"'


# The concepts of entities with the same direct ones are found once, unless they are more numbers.
CLOSURES = 1 << 22


class _Source:
    """The columns of a knowledge base as lists, with the texts of its IRIs."""

    def __init__(self, kb: KnowledgeBase, iri: Callable[[str], str]) -> None:
        self.kb = kb
        self.nodes = [iri(kb.id_of(node)) for node in range(kb.node_count)]
        self.keys = [iri(key) for key in kb.keys]
        self.relations = [iri(relation) for relation in kb.relations]
        self._pairs: dict[int, list[tuple[int, int]]] = {0: []}
        self._closures: dict[tuple[int, ...], list[int]] = {}
        self._kept = 0  # numbers in them

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """The qualifiers of a set as (key, value) numbers."""
        found = self._pairs.get(number)
        if found is None:
            found = self._pairs[number] = self.kb.qualifier_sets.pairs(number)
        return found

    def concepts(self, node: int) -> tuple[list[int], list[int]]:
        """The direct concepts of an entity and all of them; of a concept its parents and none."""
        kb = self.kb
        if not kb.is_entity(node):
            return kb.parents(node), []
        direct = kb.concepts_of(node)
        closure = self._closures.get(tuple(direct))
        if closure is None:
            closure = kb.all_concepts_of(node)
            self._kept += len(closure)
            if self._kept > CLOSURES:  # concepts stand deep below each other
                self._closures, self._kept = {}, len(closure)
            self._closures[tuple(direct)] = closure
        return direct, closure

    def literals(self) -> Iterator[list[tuple[int, int, int]]]:
        """For each node its literal facts: key, value, qualifier set."""
        table, starts = self.kb.literals, self.kb.arrays["literal_starts"]
        for low, high in _ranges(starts):
            part = slice(low, high)
            yield list(
                zip(
                    table.predicate[part].tolist(),
                    table.object[part].tolist(),
                    table.qualifiers[part].tolist(),
                    strict=True,
                )
            )

    def relational(self) -> Iterator[list[_Relational]]:
        """For each node its relational facts as a head, in the order of `KnowledgeBase.records`."""
        table = self.kb.relational
        late = table.head_order < 0
        order = np.where(late, table.tail_order, table.head_order)
        facts = np.lexsort((order, table.subject))
        predicate, object_ = table.predicate[facts], table.object[facts]
        qualifiers, subject = table.qualifiers[facts], table.subject[facts]
        # Facts of one head, relation and tail share one plain triple, written with the first.
        by = np.lexsort((object_, predicate, subject))
        again = np.zeros(len(by), np.bool_)
        again[1:] = (
            (np.diff(subject[by]) == 0)
            & (np.diff(predicate[by]) == 0)
            & (np.diff(object_[by]) == 0)
        )
        is_first, is_shared = np.empty_like(again), np.empty_like(again)
        is_first[by] = ~again
        is_shared[by] = again | np.append(again[1:], False)
        for low, high in _ranges(self.kb.arrays["relation_starts"]):
            part = slice(low, high)
            yield list(
                zip(
                    predicate[part].tolist(),
                    object_[part].tolist(),
                    qualifiers[part].tolist(),
                    is_first[part].tolist(),
                    is_shared[part].tolist(),
                    strict=True,
                )
            )


def _ranges(starts: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Iterable[tuple[int, int]]:
    bounds = starts.tolist()
    return itertools.pairwise(bounds)


# --- N-Triples and N-Quads ---------------------------------------------------------------------


def _ntriples(
    kb: KnowledgeBase, base: str | None, graph: str | None, terms: bool
) -> Iterator[tuple[str, int]]:
    """Pieces of text, each with the number of nodes that are written by then."""
    prefix = base or ""
    source = _Source(kb, lambda text: f"<{prefix}{encode(text)}>")
    nodes, keys, relations, pairs = source.nodes, source.keys, source.relations, source.pairs
    end = " .\n" if graph is None else f" <{graph}> .\n"
    values: list[tuple[str, str] | None] = [None] * len(kb.values)
    out: list[str] = []
    facts = made = 0  # fact nodes and value nodes so far

    def value_node(label: str, number: int) -> str:
        """The triples of a value node."""
        texts = values[number]
        if texts is None:
            texts = values[number] = _value_triples(kb, number, end)
        first, second = texts
        return f"{label}{first}{label}{second}" if second else f"{label}{first}"

    def qualifiers(fact: str, number: int) -> str:
        """The triples of a fact's qualifiers."""
        nonlocal made
        text = ""
        for key, value in pairs(number):
            label = f"_:v{made}"
            made += 1
            text += f"{fact} {keys[key]} {label}{end}{value_node(label, value)}"
        return text

    for node, literals, relational in zip(
        range(kb.node_count), source.literals(), source.relational(), strict=True
    ):
        head = nodes[node]
        kind = "entity" if kb.is_entity(node) else "concept"
        direct, closure = source.concepts(node)
        out.append(f"{head} <{NAME}> {literal(kb.name_of(node))}{end}")
        out.append(f'{head} <{KIND}> "{kind}"{end}')
        out += [f"{head} <{PARENT}> {literal(kb.id_of(c))}{end}" for c in direct]
        out += [f"{head} <{INSTANCE_OF}> {nodes[c]}{end}" for c in closure]
        begin = f"{head}{end}"  # what <pred:fact_h> leads to
        for key, value, used in literals:
            predicate, label = keys[key], f"_:v{made}"
            made += 1
            plain = f"{head} {predicate} {label}{end}{value_node(label, value)}"
            if terms and not used:
                out.append(plain)
                continue
            fact = f"_:f{facts}"
            facts += 1
            if terms:
                ends = f"{fact} <{RDF}reifies> <<( {head} {predicate} {label} )>>{end}"
            else:
                ends = (
                    f"{fact} <{FACT_H}> {begin}{fact} <{FACT_R}> {predicate}{end}"
                    f"{fact} <{FACT_T}> {label}{end}"
                )
            out.append(plain + ends + (qualifiers(fact, used) if used else ""))
        for relation, tail, used, is_first, is_shared in relational:
            predicate, label = relations[relation], nodes[tail]
            plain = f"{head} {predicate} {label}{end}" if is_first else ""
            # A fact without qualifiers is told from those that share its triple by a node.
            if terms and not used and not is_shared:
                out.append(plain)
                continue
            fact = f"_:f{facts}"
            facts += 1
            if terms:
                ends = f"{fact} <{RDF}reifies> <<( {head} {predicate} {label} )>>{end}"
            else:
                ends = (
                    f"{fact} <{FACT_H}> {begin}{fact} <{FACT_R}> {predicate}{end}"
                    f"{fact} <{FACT_T}> {label}{end}"
                )
            out.append(plain + ends + (qualifiers(fact, used) if used else ""))
        if len(out) >= _LINES:
            yield "".join(out), node + 1
            out.clear()
    if out:
        yield "".join(out), kb.node_count


def _value_triples(kb: KnowledgeBase, number: int, end: str) -> tuple[str, str]:
    """What follows the label in the one or two triples of a value node."""
    value = kb.values[number]
    if isinstance(value, str):
        return f" <{VALUE}> {literal(value)}{end}", ""
    if isinstance(value, Quantity):
        digits = f'"{print_number(value.number)}"^^<{XSD}double>'
        return f" <{VALUE}> {digits}{end}", f" <{UNIT}> {literal(value.unit)}{end}"
    year = f' <{YEAR}> "{value.year}"^^<{XSD}integer>{end}'
    return year, f' <{DATE}> "{value}"^^<{XSD}date>{end}' if isinstance(value, Date) else ""


# --- Turtle ------------------------------------------------------------------------------------


def _turtle(kb: KnowledgeBase, base: str | None, terms: bool) -> Iterator[tuple[str, int]]:
    """Pieces of text, each with the number of nodes that are written by then."""
    source = _Source(kb, lambda text: f"<{encode(text)}>")
    nodes, keys, relations, pairs = source.nodes, source.keys, source.relations, source.pairs
    values: dict[int, str] = {}
    out = [f"@base <{base}> .\n"] if base else []
    out.append(f"@prefix pred: <pred:> .\n@prefix xsd: <{XSD}> .\n")
    made = 0  # labelled value nodes so far

    def properties(number: int) -> str:
        text = values.get(number)
        if text is None:
            text = values[number] = _value_properties(kb, number)
        return text

    def qualifiers(number: int) -> Iterator[str]:
        for key, value in pairs(number):
            yield f"{keys[key]} [ {properties(value)} ]"

    for node, literals, relational in zip(
        range(kb.node_count), source.literals(), source.relational(), strict=True
    ):
        kind = "entity" if kb.is_entity(node) else "concept"
        direct, closure = source.concepts(node)
        about = [f"pred:name {literal(kb.name_of(node))}", f'pred:kind "{kind}"']
        if direct:
            about.append("pred:parent " + ", ".join(literal(kb.id_of(c)) for c in direct))
        if closure:
            about.append("pred:instance_of " + ", ".join(nodes[c] for c in closure))
        others: list[str] = []  # value nodes and fact nodes
        facts: list[tuple[str, str, int, bool, bool]] = []
        for key, value, used in literals:
            label = f"_:v{made}"
            made += 1
            others.append(f"{label} {properties(value)} .\n")
            facts.append((keys[key], label, used, True, False))
        facts += [
            (relations[relation], nodes[tail], used, is_first, is_shared)
            for relation, tail, used, is_first, is_shared in relational
        ]
        for predicate, object_, used, is_first, is_shared in facts:
            if terms:
                annotated = " ;\n      ".join(qualifiers(used))
                node_text = f" {{| {annotated} |}}" if used else " ~" if is_shared else ""
                about.append(f"{predicate} {object_}{node_text}")
                continue
            if is_first:
                about.append(f"{predicate} {object_}")
            ends = f"pred:fact_h {nodes[node]} ; pred:fact_r {predicate} ; pred:fact_t {object_}"
            others.append("[ " + " ;\n    ".join([ends, *qualifiers(used)]) + " ] .\n")
        out.append(f"\n{nodes[node]} " + " ;\n  ".join(about) + " .\n" + "".join(others))
        if len(out) >= _LINES:
            yield "".join(out), node + 1
            out.clear()
    if out:
        yield "".join(out), kb.node_count


def _value_properties(kb: KnowledgeBase, number: int) -> str:
    """What stands between the brackets of a value node."""
    value = kb.values[number]
    if isinstance(value, str):
        return f"pred:value {literal(value)}"
    if isinstance(value, Quantity):
        digits = print_number(value.number)
        return f'pred:value "{digits}"^^xsd:double ; pred:unit {literal(value.unit)}'
    if isinstance(value, Date):
        return f'pred:year {value.year} ; pred:date "{value}"^^xsd:date'
    return f"pred:year {value.year}"
