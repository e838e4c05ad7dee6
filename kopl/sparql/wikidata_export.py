"""A knowledge base as a graph in the form of Wikidata, to try queries on before a large engine."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha1
from itertools import count
from pathlib import Path

from kb import KnowledgeBase
from kb.rdf.iri import ALIAS, RDF, XSD
from kb.rdf.writer import literal
from kb.schema import type_of
from kb.store import QualifierMap
from kb.values import NO_UNIT, Date, Quantity, Value, print_number
from kopl.sparql.properties import ITEM
from kopl.sparql.wikidata import DATATYPES, NO_UNIT_ITEM, PROP, RDFS, WD, WIKIBASE, Wikidata
from kopl_base.progress import Progress
from kopl_base.stream import writing

STATEMENT, VALUE = WD + "statement/", "http://www.wikidata.org/value/"
_LINES = 512  # parts of a piece, each with one or more lines
_FIRST_PROPERTY = 1000
# What a property's entity says of the predicates that are made of its id.
_PREDICATES = {
    "claim": "",
    "statementProperty": "statement/",
    "statementValue": "statement/value/",
    "qualifier": "qualifier/",
    "qualifierValue": "qualifier/value/",
    "directClaim": "direct/",
}


def wikidata_ntriples(kb: KnowledgeBase, *, language: str = "en") -> Iterator[str]:
    """The knowledge base as pieces of N-Triples in Wikidata's form, many whole lines each.

    Entities, concepts and units become items with new numbers, their names labels in the
    ``language``, their aliases skos:altLabel. A relation becomes a property, and so does a key for
    each type of its values: properties of one label.
    """
    parts: list[str] = []
    for part in _Exporter(kb, language).parts():
        parts.append(part)
        if len(parts) == _LINES:
            yield "".join(parts)
            parts.clear()
    if parts:
        yield "".join(parts)


def write_wikidata(kb: KnowledgeBase, path: Path | str, *, language: str = "en") -> None:
    """Write these N-Triples; compressed when the name ends in .gz, .bz2 or .xz.

    Raises KoplError for what is no language, WriteError for a file that cannot be written.
    """
    Wikidata(language=language)
    with writing(path) as file, Progress(f"writing {Path(path).name}", None) as bar:
        for number, piece in enumerate(wikidata_ntriples(kb, language=language)):
            file.write(piece)
            bar.reach(number)


class _Exporter:
    def __init__(self, kb: KnowledgeBase, language: str) -> None:
        self.kb, self.language = kb, language
        ids = (id for id in map("Q{}".format, count(1)) if id != NO_UNIT_ITEM)
        self.items = [next(ids) for _ in range(kb.node_count)]
        self.units = {unit: next(ids) for unit in kb.units} | {NO_UNIT: NO_UNIT_ITEM}
        self.properties = self._properties()
        self._statements = count(1)
        self._written: set[str] = set()  # the value nodes, which statements share

    def _properties(self) -> dict[tuple[str, str], str]:
        """The id of the property for each text and datatype."""
        kb = self.kb
        found = {(relation, ITEM) for relation in kb.relations}
        for numbers_of in (kb.values_of_keys(), kb.qualifier_values_of()):
            for key, numbers in numbers_of.items():
                kinds = kb.values.kinds(numbers)
                found |= {(key, name) for kind, name in DATATYPES.items() if kind in kinds}
        ids = (f"P{number}" for number in count(_FIRST_PROPERTY))
        return {pair: next(ids) for pair in sorted(found)}

    def parts(self) -> Iterator[str]:
        """The triples, one or more lines at a time."""
        kb = self.kb
        yield self._property("P31", "instance of", ITEM)
        yield self._property("P279", "subclass of", ITEM)
        for (text, datatype), id in self.properties.items():
            yield self._property(id, text, datatype)
        for unit, id in self.units.items():
            yield self._label(id, unit)
        for node, id in enumerate(self.items):
            yield self._label(id, kb.name_of(node))
            for alias in kb.aliases_of(node):
                yield self._label(id, alias, ALIAS)
            if not kb.is_entity(node):
                yield from (self._link(id, "P279", above) for above in kb.parents(node))
                continue
            yield from (self._link(id, "P31", above) for above in kb.concepts_of(node))
            for own in kb.attributes(node):
                yield self._attribute(id, own.key, own.value, own.qualifiers)
        for fact in kb.facts():
            head, tail = self.items[kb.node(fact.head)], kb.node(fact.tail)
            verb = self.properties[fact.relation, ITEM]
            statement, text = self._statement(head, verb, self._item(tail))
            yield text + self._qualifiers(statement, fact.qualifiers)

    def _item(self, node: int) -> str:
        return f"<{WD}{self.items[node]}>"

    def _label(self, id: str, text: str, verb: str = f"{RDFS}label") -> str:
        return f"<{WD}{id}> <{verb}> {literal(text)}@{self.language} .\n"

    def _property(self, id: str, text: str, datatype: str) -> str:
        subject = f"<{WD}{id}>"
        found = self._label(id, text) + (
            f"{subject} <{RDF}type> <{WIKIBASE}Property> .\n"
            f"{subject} <{WIKIBASE}propertyType> <{WIKIBASE}{datatype}> .\n"
        )
        for word, folder in _PREDICATES.items():
            found += f"{subject} <{WIKIBASE}{word}> <{PROP}{folder}{id}> .\n"
        return found

    def _link(self, id: str, verb: str, above: int) -> str:
        return self._statement(id, verb, self._item(above))[1]

    def _statement(self, id: str, verb: str, value: str) -> tuple[str, str]:
        """A new statement, and its triples with the "truthy" one."""
        statement = f"<{STATEMENT}{id}-{next(self._statements)}>"
        return statement, (
            f"<{WD}{id}> <{PROP}direct/{verb}> {value} .\n"
            f"<{WD}{id}> <{PROP}{verb}> {statement} .\n"
            f"{statement} <{RDF}type> <{WIKIBASE}Statement> .\n"
            f"{statement} <{RDF}type> <{WIKIBASE}BestRank> .\n"
            f"{statement} <{WIKIBASE}rank> <{WIKIBASE}NormalRank> .\n"
            f"{statement} <{PROP}statement/{verb}> {value} .\n"
        )

    def _attribute(self, id: str, key: str, value: Value, qualifiers: QualifierMap) -> str:
        verb = self.properties[key, DATATYPES[type_of(value)]]
        statement, text = self._statement(id, verb, _simple(value))
        text += self._node(statement, f"statement/value/{verb}", value)
        return text + self._qualifiers(statement, qualifiers)

    def _qualifiers(self, statement: str, qualifiers: QualifierMap) -> str:
        text = ""
        for key, values in qualifiers.items():
            for value in values:
                verb = self.properties[key, DATATYPES[type_of(value)]]
                text += f"{statement} <{PROP}qualifier/{verb}> {_simple(value)} .\n"
                text += self._node(statement, f"qualifier/value/{verb}", value)
        return text

    def _node(self, statement: str, verb: str, value: Value) -> str:
        """The triple that leads to a value's node, with the node's own; a text has no node."""
        if isinstance(value, str):
            return ""
        if isinstance(value, Quantity):
            kind, part, other = "QuantityValue", "quantityAmount", "quantityUnit"
            term = f"<{WD}{self.units[value.unit]}>"
        else:
            kind, part, other = "TimeValue", "timeValue", "timePrecision"
            term = f'"{11 if isinstance(value, Date) else 9}"^^<{XSD}integer>'
        name = sha1(f"{_simple(value)} {term}".encode()).hexdigest()
        node = f"<{VALUE}{name}>"
        text = f"{statement} <{PROP}{verb}> {node} .\n"
        if name not in self._written:
            self._written.add(name)
            text += (
                f"{node} <{RDF}type> <{WIKIBASE}{kind}> .\n"
                f"{node} <{WIKIBASE}{part}> {_simple(value)} .\n"
                f"{node} <{WIKIBASE}{other}> {term} .\n"
            )
        return text


def _simple(value: Value) -> str:
    """The value as one literal, without its unit or precision."""
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Quantity):
        return f'"{print_number(value.number)}"^^<{XSD}decimal>'
    day = value if isinstance(value, Date) else Date(value.year, 1, 1)
    return f'"{day}T00:00:00Z"^^<{XSD}dateTime>'
