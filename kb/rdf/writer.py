"""A knowledge base streamed as N-Triples, N-Quads or Turtle.

What is said of each node comes in one stream, and each of the two syntaxes is a function that puts
one node after the other into words.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Literal

import numpy as np

from kb.arrays import Mask, changes
from kb.rdf.iri import (
    ALIAS,
    DATE,
    FACT_H,
    FACT_R,
    FACT_T,
    INSTANCE_OF,
    KIND,
    NAME,
    PARENT,
    RDF,
    SKOS,
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
# A fact: the predicate and, of a relational one, its tail, as IRIs; of a literal one the number of
# its value; the qualifier set; whether the plain triple is written with this fact, and whether the
# fact has a node.
_Fact = tuple[str, str | None, int, int, bool, bool]

log = logging.getLogger("kb")

_ROWS = 1 << 14  # that are taken from columns at a time
_PIECE = 50_000  # characters; longer only by what is said of one node
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
    return (piece for piece, _ in _pieces(_ntriples(kb, base, graph, terms)))


def turtle(kb: KnowledgeBase, *, base: str | None = None, terms: bool = False) -> Iterator[str]:
    """The knowledge base as pieces of Turtle, grouped by subject; otherwise as `ntriples`."""
    check_base(base)
    check_depth(kb, held=False)
    return (piece for piece, _ in _pieces(_turtle(kb, terms), _prefixes(kb, base)))


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
        pieces = _pieces(_turtle(kb, terms), _prefixes(kb, base))
    else:
        pieces = _pieces(_ntriples(kb, base, graph, terms))
    with writing(path) as file, Progress(f"writing {Path(path).name}", kb.node_count) as bar:
        for piece, nodes in pieces:
            file.write(piece)
            bar.reach(nodes)


def _pieces(texts: Iterable[str], before: str = "") -> Iterator[tuple[str, int]]:
    """The texts of nodes, many at a time, each piece with the number of nodes until then."""
    some = [before] if before else []
    size = nodes = 0
    for nodes, text in enumerate(texts, 1):
        some.append(text)
        size += len(text)
        if size >= _PIECE:
            yield "".join(some), nodes
            some.clear()
            size = 0
    if some:
        yield "".join(some), nodes


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


# --- what both syntaxes share ---------------------------------------------------------------------

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


# What is said of a node: its number, its kind, the direct concepts of an entity or the parents of a
# concept, all concepts of an entity, the facts.
_Node = tuple[int, str, list[int], list[int], Iterator[_Fact]]


class _Stream:
    """The nodes of a knowledge base, in order, with what is said of each.

    The facts of a node are to be taken before the next node. ``terms``: only a fact that has
    qualifiers or shares its plain triple has a node.
    """

    def __init__(self, kb: KnowledgeBase, iri: Callable[[str], str], *, terms: bool) -> None:
        self.kb = kb
        self.nodes = [iri(kb.id_of(node)) for node in range(kb.node_count)]
        self.keys = [iri(key) for key in kb.keys]
        self._relations = [iri(relation) for relation in kb.relations]
        self._terms = terms
        self._pairs: dict[int, list[tuple[int, int]]] = {0: []}
        self._closures: dict[tuple[int, ...], list[int]] = {}
        self._kept = 0  # numbers in them

    def __iter__(self) -> Iterator[_Node]:
        kb = self.kb
        literals, relational = self._literals(), self._relational()
        for node, literal_count, relational_count in zip(
            range(kb.node_count),
            np.diff(kb.arrays["literal_starts"]).tolist(),
            np.diff(kb.arrays["relation_starts"]).tolist(),
            strict=True,
        ):
            facts = chain(islice(literals, literal_count), islice(relational, relational_count))
            if kb.is_entity(node):
                direct = kb.concepts_of(node)
                yield node, "entity", direct, self._closure(node, direct), facts
            else:
                yield node, "concept", kb.parents(node), [], facts

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """The qualifiers of a set as (key, value) numbers."""
        found = self._pairs.get(number)
        if found is None:
            found = self._pairs[number] = self.kb.qualifier_sets.pairs(number)
        return found

    def _closure(self, entity: int, direct: list[int]) -> list[int]:
        """All concepts of an entity with these direct ones."""
        closure = self._closures.get(tuple(direct))
        if closure is None:
            closure = self.kb.all_concepts_of(entity)
            self._kept += len(closure)
            if self._kept > CLOSURES:  # concepts stand deep below each other
                self._closures, self._kept = {}, len(closure)
            self._closures[tuple(direct)] = closure
        return closure

    def _literals(self) -> Iterator[_Fact]:
        """The literal facts, by subject."""
        table, key = self.kb.literals, self.keys.__getitem__
        reified = _all_or(self._terms, table.qualifiers != 0)
        for part in _blocks(len(table)):
            yield from zip(
                map(key, table.predicate[part].tolist()),
                repeat(None),
                table.object[part].tolist(),
                table.qualifiers[part].tolist(),
                repeat(True),
                reified[part].tolist(),
                strict=False,
            )

    def _relational(self) -> Iterator[_Fact]:
        """The relational facts, by head, then in the order of `KnowledgeBase.records`."""
        table, nodes = self.kb.relational, self.nodes.__getitem__
        late = table.head_order < 0
        order = np.where(late, table.tail_order, table.head_order)
        facts = np.lexsort((order, table.subject))
        predicate, object_ = table.predicate[facts], table.object[facts]
        qualifiers, subject = table.qualifiers[facts], table.subject[facts]
        # Facts of one head, relation and tail share one plain triple, written with the first.
        by = np.lexsort((object_, predicate, subject))
        again = ~changes(subject[by], predicate[by], object_[by])
        is_first, is_shared = np.empty_like(again), np.empty_like(again)
        is_first[by] = ~again
        is_shared[by] = again | np.append(again[1:], False)
        # A fact without qualifiers is told from those that share its triple by a node.
        reified = _all_or(self._terms, (qualifiers != 0) | is_shared)
        for part in _blocks(len(table)):
            yield from zip(
                map(self._relations.__getitem__, predicate[part].tolist()),
                map(nodes, object_[part].tolist()),
                repeat(-1),
                qualifiers[part].tolist(),
                is_first[part].tolist(),
                reified[part].tolist(),
                strict=False,
            )


def _all_or(only: bool, chosen: Mask) -> Mask:
    return chosen if only else np.ones_like(chosen)


def _blocks(count: int) -> Iterator[slice]:
    """Parts of a table: to take one row after another from columns is slow."""
    return (slice(low, low + _ROWS) for low in range(0, count, _ROWS))


# --- N-Triples and N-Quads ---------------------------------------------------------------------


def _ntriples(kb: KnowledgeBase, base: str | None, graph: str | None, terms: bool) -> Iterator[str]:
    """The lines of each node."""
    prefix = base or ""
    stream = _Stream(kb, lambda text: f"<{prefix}{encode(text)}>", terms=terms)
    nodes, keys, pairs = stream.nodes, stream.keys, stream.pairs
    end = " .\n" if graph is None else f" <{graph}> .\n"
    values: list[tuple[str, str] | None] = [None] * len(kb.values)
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

    for node, kind, parents, concepts, said in stream:
        head = nodes[node]
        out = [
            f"{head} <{NAME}> {literal(kb.name_of(node))}{end}",
            f'{head} <{KIND}> "{kind}"{end}',
        ]
        out += [f"{head} <{ALIAS}> {literal(text)}{end}" for text in kb.aliases_of(node)]
        out += [f"{head} <{PARENT}> {literal(kb.id_of(c))}{end}" for c in parents]
        out += [f"{head} <{INSTANCE_OF}> {nodes[c]}{end}" for c in concepts]
        begin = f"{head}{end}"  # what <pred:fact_h> leads to
        for predicate, tail, value, used, is_first, is_reified in said:
            if tail is None:
                object_ = f"_:v{made}"
                made += 1
                text = f"{head} {predicate} {object_}{end}{value_node(object_, value)}"
            else:
                object_ = tail
                text = f"{head} {predicate} {object_}{end}" if is_first else ""
            if is_reified:
                fact = f"_:f{facts}"
                facts += 1
                if terms:
                    text += f"{fact} <{RDF}reifies> <<( {head} {predicate} {object_} )>>{end}"
                else:
                    text += (
                        f"{fact} <{FACT_H}> {begin}{fact} <{FACT_R}> {predicate}{end}"
                        f"{fact} <{FACT_T}> {object_}{end}"
                    )
                if used:
                    text += qualifiers(fact, used)
            out.append(text)
        yield "".join(out)


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


def _prefixes(kb: KnowledgeBase, base: str | None) -> str:
    prefixes = f"@prefix pred: <pred:> .\n@prefix xsd: <{XSD}> .\n"
    if kb.alias_count:
        prefixes += f"@prefix skos: <{SKOS}> .\n"
    return f"@base <{base}> .\n{prefixes}" if base else prefixes


def _turtle(kb: KnowledgeBase, terms: bool) -> Iterator[str]:
    """The statements of each node, behind the `_prefixes`."""
    stream = _Stream(kb, lambda text: f"<{encode(text)}>", terms=terms)
    nodes, keys, pairs = stream.nodes, stream.keys, stream.pairs
    values: dict[int, str] = {}
    made = 0  # labelled value nodes so far

    def properties(number: int) -> str:
        text = values.get(number)
        if text is None:
            text = values[number] = _value_properties(kb, number)
        return text

    def qualifiers(number: int) -> Iterator[str]:
        for key, value in pairs(number):
            yield f"{keys[key]} [ {properties(value)} ]"

    for node, kind, parents, concepts, said in stream:
        head = nodes[node]
        about = [f"pred:name {literal(kb.name_of(node))}", f'pred:kind "{kind}"']
        if aliases := kb.aliases_of(node):
            about.append("skos:altLabel " + ", ".join(map(literal, aliases)))
        if parents:
            about.append("pred:parent " + ", ".join(literal(kb.id_of(c)) for c in parents))
        if concepts:
            about.append("pred:instance_of " + ", ".join(nodes[c] for c in concepts))
        value_nodes: list[str] = []
        fact_nodes: list[str] = []
        for predicate, tail, value, used, is_first, is_reified in said:
            object_ = tail
            if object_ is None:
                object_ = f"_:v{made}"
                made += 1
                value_nodes.append(f"{object_} {properties(value)} .\n")
            if terms:
                annotated = " ;\n      ".join(qualifiers(used))
                node_text = f" {{| {annotated} |}}" if used else " ~" if is_reified else ""
                about.append(f"{predicate} {object_}{node_text}")
                continue
            if is_first:
                about.append(f"{predicate} {object_}")
            ends = f"pred:fact_h {head} ; pred:fact_r {predicate} ; pred:fact_t {object_}"
            fact_nodes.append("[ " + " ;\n    ".join([ends, *qualifiers(used)]) + " ] .\n")
        first = " ;\n  ".join(about)
        yield "".join([f"\n{head} {first} .\n", *value_nodes, *fact_nodes])


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
