"""Programs on graphs in Wikidata's form: the text, what Wikidata has of its own, agreement."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterable
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, from_kqapro, load
from kb.rdf.iri import RDF, XSD
from kb.rdf.writer import literal
from kb.store import normalise_name
from kb.values import Date, Quantity, Year
from kopl.executor import Executor
from kopl.sparql.ast import Group, Iri, Literal, Select, Triple, Var
from kopl.sparql.engines.oxigraph import Oxigraph
from kopl.sparql.evaluate import SparqlExecutor
from kopl.sparql.from_kopl import SparqlWarning, to_sparql
from kopl.sparql.properties import Property, PropertyError
from kopl.sparql.wikidata import PROP, RDFS, WD, WIKIBASE, Wikidata
from kopl.sparql.wikidata_export import wikidata_ntriples
from kopl_base.errors import KoplError
from tests.reference.random_kb import random_kb
from tests.reference.random_program import ProgramSampler

PREFIXES = {
    "wd": WD,
    "wds": WD + "statement/",
    "wdv": "http://www.wikidata.org/value/",
    "wdt": PROP + "direct/",
    "p": PROP,
    "ps": PROP + "statement/",
    "psv": PROP + "statement/value/",
    "pq": PROP + "qualifier/",
    "pqv": PROP + "qualifier/value/",
    "wikibase": WIKIBASE,
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
}


def engine_of(lines: Iterable[str], form: str = "N_TRIPLES") -> Oxigraph:
    """The lines in a store in memory."""
    import pyoxigraph as ox

    store = ox.Store()
    store.load("".join(lines).encode(), format=getattr(ox.RdfFormat, form))
    return Oxigraph(store, base=None)


def graph(turtle: str) -> Oxigraph:
    """An engine with a graph written by hand, below the usual prefixes."""
    return engine_of(
        [*(f"@prefix {p}: <{iri}> .\n" for p, iri in PREFIXES.items()), turtle], "TURTLE"
    )


# --- text --------------------------------------------------------------------------------------

MAPPING = {
    "capital": "P36",
    "area": Property("P2046", "Quantity"),
    "inception": Property("P571", "Time"),
    "code": Property("P297", "String"),
    "motto": Property("P1451", "Monolingualtext"),
    "length": Property("P2043", "Quantity"),
}
RANKS = Wikidata(MAPPING)
PLAIN = Wikidata(MAPPING, ranks=False)


def shortened(query: object) -> str:
    """The text with prefixed names."""

    def short(match: re.Match[str]) -> str:
        for prefix, iri in PREFIXES.items():
            local = match[1].removeprefix(iri)
            if local != match[1] and "/" not in local:
                return f"{prefix}:{local}"
        return match[0]

    return re.sub(r"<([^>]+)>", short, str(query))


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (
            'Find("Oslo")',
            'SELECT DISTINCT ?name WHERE { ?e rdfs:label "Oslo"@en .'
            ' FILTER ( STRSTARTS(STR(?e), "http://www.wikidata.org/entity/Q") ) .'
            ' ?e rdfs:label ?name . FILTER ( LANG(?name) = "en" ) . }',
        ),
        (
            'Count(FilterConcept(FindAll(), "city"))',
            "SELECT (COUNT(DISTINCT ?e) AS ?count) WHERE { ?e wdt:P31/wdt:P279* ?c ."
            ' ?c rdfs:label "city"@en . }',
        ),
        (
            'Count(QFilterNum(Relate(FilterConcept(FindAll(), "city"), "capital", "backward"),'
            ' "length", "3", ">"))',
            "SELECT (COUNT(DISTINCT ?e) AS ?count) WHERE { ?e p:P36 ?st_e_e_1 ."
            " ?st_e_e_1 ps:P36 ?e_1 . ?st_e_e_1 pqv:P2043 ?qpv ."
            " ?qpv wikibase:quantityAmount ?qpv_amount . ?qpv wikibase:quantityUnit wd:Q199 ."
            ' FILTER ( xsd:double(STR(?qpv_amount)) > "3"^^xsd:double ) .'
            ' ?e_1 wdt:P31/wdt:P279* ?c . ?c rdfs:label "city"@en . }',
        ),
        (  # what equals a constant text is found by it
            'Count(FilterStr(FilterConcept(FindAll(), "land"), "code", "NO"))',
            "SELECT (COUNT(DISTINCT ?e) AS ?count) WHERE { ?e wdt:P31/wdt:P279* ?c ."
            ' ?c rdfs:label "land"@en . ?e p:P297 ?st_e_pv . ?st_e_pv ps:P297 "NO" . }',
        ),
        (  # but in which language a text is does not matter
            'Count(FilterStr(FilterConcept(FindAll(), "land"), "motto", "no"))',
            "SELECT (COUNT(DISTINCT ?e) AS ?count) WHERE { ?e wdt:P31/wdt:P279* ?c ."
            ' ?c rdfs:label "land"@en . ?e p:P1451 ?st_e_pv . ?st_e_pv ps:P1451 ?pv .'
            ' FILTER ( STR(?pv) = "no" ) . }',
        ),
        (
            'VerifyDate(QueryAttr(FilterConcept(FindAll(), "land"), "inception"),'
            ' "1905-06-07", "<")',
            'ASK { ?e wdt:P31/wdt:P279* ?c . ?c rdfs:label "land"@en . ?e p:P571 ?st_e_pv .'
            " ?st_e_pv psv:P571 ?pv . ?pv wikibase:timeValue ?pv_time ."
            " ?pv wikibase:timePrecision ?pv_precision ."
            " FILTER ( ((?pv_precision >= 9) && (?pv_precision < 11) && (YEAR(?pv_time) < 1905))"
            " || ((?pv_precision >= 11) &&"
            ' (?pv_time < "1905-06-07T00:00:00Z"^^xsd:dateTime)) ) . }',
        ),
        (
            'QueryAttr(FilterConcept(FindAll(), "land"), "area")',
            "SELECT DISTINCT ?value ?unit ?year ?date WHERE { ?e wdt:P31/wdt:P279* ?c ."
            ' ?c rdfs:label "land"@en . ?e p:P2046 ?st_e_pv . ?st_e_pv psv:P2046 ?pv .'
            " ?pv wikibase:quantityAmount ?value . ?pv wikibase:quantityUnit ?pv_unit ."
            ' ?pv_unit rdfs:label ?unit . FILTER ( LANG(?unit) = "en" ) . }',
        ),
    ],
)
def test_the_text(program: str, text: str) -> None:
    assert shortened(to_sparql(program, encoding=PLAIN)) == text


def test_statements_that_are_deprecated_are_left_out() -> None:
    query = to_sparql('Count(Relate(Find("a"), "capital", "forward"))', encoding=RANKS)
    assert (
        "?st_e_1_e wikibase:rank ?st_e_1_e_rank ."
        " FILTER ( ?st_e_1_e_rank != wikibase:DeprecatedRank ) ." in shortened(query)
    )


def test_names_and_values_cannot_change_a_query() -> None:
    bad = '"@en } UNION { ?e ?p ?o } #\\'
    query = to_sparql(f"Count(FilterStr(Find({bad!r}), 'code', {bad!r}))", encoding=PLAIN)
    kept = literal(bad)
    assert f"rdfs:label {kept}@en" in shortened(query)
    assert f"ps:P297 {kept} ." in shortened(query)


def test_what_is_refused() -> None:
    with pytest.raises(PropertyError, match="no property for the relation 'spouse'"):
        to_sparql('Relate(Find("a"), "spouse", "forward")', encoding=PLAIN)
    with pytest.raises(PropertyError, match="no property for the qualifier key 'since'"):
        to_sparql('QueryAttrQualifier(Find("a"), "code", "x", "since")', encoding=PLAIN)
    with pytest.raises(PropertyError, match=r"'area' has values and no items.*P2046 \(Quantity\)"):
        to_sparql('Relate(Find("a"), "area", "forward")', encoding=PLAIN)
    items = Wikidata({"capital": Property("P36", "WikibaseItem")})
    with pytest.raises(PropertyError, match="'capital' is a relation"):
        to_sparql('QueryAttr(Find("a"), "capital")', encoding=items)
    with pytest.raises(KoplError, match="no 'data' style"):
        to_sparql("FindAll()", "data", encoding=PLAIN)
    with pytest.raises(KoplError, match="no language"):
        Wikidata(language='en" }')
    with pytest.raises(KoplError, match="no property"):
        Wikidata({"capital": "P36> ."})
    with pytest.warns(SparqlWarning, match="has a concept"):
        to_sparql("Count(FindAll())", encoding=PLAIN)


# --- what Wikidata has of its own ---------------------------------------------------------------

OWN = """
wd:P10 a wikibase:Property ; rdfs:label "motto"@en, "Motto"@de ;
  wikibase:propertyType wikibase:Monolingualtext .
wd:P11 a wikibase:Property ; rdfs:label "website"@en ; wikibase:propertyType wikibase:Url .
wd:P12 a wikibase:Property ; rdfs:label "head"@en, "Oberhaupt"@de ;
  wikibase:propertyType wikibase:WikibaseItem ;
  wikibase:claim p:P12 ; wikibase:statementProperty ps:P12 .
wd:P13 a wikibase:Property ; rdfs:label "founded"@en ; wikibase:propertyType wikibase:Time .
wd:P14 a wikibase:Property ; rdfs:label "area"@en, "Fläche"@de ;
  wikibase:propertyType wikibase:Quantity .
wd:P15 a wikibase:Property ; rdfs:label "role"@en ; wikibase:propertyType wikibase:WikibaseItem .
wd:Q1 rdfs:label "Norway"@en, "Norwegen"@de ; wdt:P31 wd:Q9 ;
  p:P10 wds:a, wds:b ; p:P11 wds:c ; p:P12 wds:d, wds:e, wds:f, wds:u ;
  p:P13 wds:g, wds:h, wds:i ; p:P14 wds:j, wds:k .
wd:Q2 rdfs:label "Harald"@en . wd:Q3 rdfs:label "Haakon"@en . wd:Q8 rdfs:label "king"@en .
wd:Q9 rdfs:label "land"@en, "Land"@de . wd:Q7 rdfs:label "head"@en .
wds:a ps:P10 "Alt for Norge"@nb ; wikibase:rank wikibase:NormalRank .
wds:b ps:P10 "All for Norway"@en ; wikibase:rank wikibase:PreferredRank .
wds:c ps:P11 <https://norge.no/> ; wikibase:rank wikibase:NormalRank .
wds:d ps:P12 wd:Q2 ; pq:P15 wd:Q8 ; wikibase:rank wikibase:PreferredRank .
wds:e ps:P12 wd:Q3 ; wikibase:rank wikibase:DeprecatedRank .
wds:f ps:P12 wd:Q4 ; wikibase:rank wikibase:NormalRank .
wds:u ps:P12 <http://www.wikidata.org/.well-known/genid/1> ; wikibase:rank wikibase:NormalRank .
wds:g psv:P13 wdv:1 ; wikibase:rank wikibase:NormalRank .
wds:h psv:P13 wdv:2 ; wikibase:rank wikibase:NormalRank .
wds:i psv:P13 wdv:3 ; wikibase:rank wikibase:NormalRank .
wds:j psv:P14 wdv:4 ; ps:P14 "+385207.00"^^xsd:decimal ; wikibase:rank wikibase:NormalRank .
wds:k psv:P14 wdv:5 ; ps:P14 "+148728"^^xsd:decimal ; wikibase:rank wikibase:NormalRank .
wdv:1 wikibase:timeValue "0872-01-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 8 .
wdv:2 wikibase:timeValue "1814-05-01T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 10 .
wdv:3 wikibase:timeValue "1905-06-07T00:00:00Z"^^xsd:dateTime ; wikibase:timePrecision 11 .
wdv:4 wikibase:quantityAmount "+385207.00"^^xsd:decimal ; wikibase:quantityUnit wd:Q5 .
wdv:5 wikibase:quantityAmount "+148728"^^xsd:decimal ; wikibase:quantityUnit wd:Q6 .
wd:Q5 rdfs:label "square kilometre"@en, "Quadratkilometer"@de .
wd:Q6 rdfs:label "square mile"@en, "Quadratmeile"@de .
"""


@pytest.fixture(scope="module")
def own() -> SparqlExecutor:
    engine = graph(OWN)
    return SparqlExecutor(engine, encoding=Wikidata.of(engine))


@pytest.mark.parametrize(
    ("program", "denotation"),
    [
        ('QueryAttr(Find("Norway"), "motto")', ["All for Norway", "Alt for Norge"]),
        ('VerifyStr(QueryAttr(Find("Norway"), "motto"), "Alt for Norge")', ["yes"]),
        ('QueryAttr(Find("Norway"), "website")', ["https://norge.no/"]),
        ('QueryName(FilterStr(FindAll(), "website", "https://norge.no/"))', ["Norway"]),
        # Deprecated statements are no facts; an item without a label has no name, but counts;
        # "unknown value" is no item.
        ('QueryName(Relate(Find("Norway"), "head", "forward"))', ["Harald"]),
        ('Count(Relate(Find("Norway"), "head", "forward"))', ["2"]),
        ('QueryRelation(Find("Norway"), Find("Harald"))', ["head"]),
        ('QueryRelation(Find("Norway"), Find("Haakon"))', []),
        # Of qualifiers that are items the label is the value.
        ('QueryRelationQualifier(Find("Norway"), Find("Harald"), "head", "role")', ["king"]),
        ('Count(QFilterStr(Relate(Find("Norway"), "head", "forward"), "role", "king"))', ["1"]),
        # A month counts as its year; decades and what is vaguer are no values.
        ('QueryAttr(Find("Norway"), "founded")', ["1814", "1905-06-07"]),
        ('VerifyYear(QueryAttr(Find("Norway"), "founded"), "1000", "<")', ["no"]),
        ('VerifyDate(QueryAttr(Find("Norway"), "founded"), "1814-05-02", "<")', ["no"]),
        ('VerifyDate(QueryAttr(Find("Norway"), "founded"), "1814-05-01", "=")', ["no"]),
        ('VerifyDate(QueryAttr(Find("Norway"), "founded"), "1905-06-08", "<")', ["yes"]),
        ('QueryAttr(Find("Norway"), "area")', ["385207 square kilometre", "148728 square mile"]),
        ('VerifyNum(QueryAttr(Find("Norway"), "area"), "385207 square kilometre", "=")', ["yes"]),
        ('VerifyNum(QueryAttr(Find("Norway"), "area"), "385207 square mile", "=")', ["no"]),
        # A property's label names no node.
        ('Count(Find("head"))', ["1"]),
        ('Count(Find("founded"))', ["0"]),
        ("FindAll()", ["Norway"]),
    ],
)
def test_what_wikidata_has_of_its_own(
    own: SparqlExecutor, program: str, denotation: list[str]
) -> None:
    assert own.run(program).denotation == denotation


def test_another_language() -> None:
    engine = graph(OWN)
    german = SparqlExecutor(engine, encoding=Wikidata.of(engine, "de"))
    assert german.run('FilterConcept(FindAll(), "Land")').denotation == ["Norwegen"]
    assert german.run('QueryAttr(Find("Norwegen"), "Fläche")').denotation == [
        "385207 Quadratkilometer",
        "148728 Quadratmeile",
    ]
    assert german.run('Count(Relate(Find("Norwegen"), "Oberhaupt", "forward"))').denotation == ["2"]
    with pytest.raises(PropertyError, match="'founded'"):
        german.run('QueryAttr(Find("Norwegen"), "founded")')


def test_properties_given_by_hand_need_no_datatype() -> None:
    pairs = {"motto": "P10", "head": "P12", "founded": "P13", "area": ("P14"), "role": "P15"}
    own = SparqlExecutor(graph(OWN), encoding=Wikidata(pairs))
    assert own.run('QueryName(Relate(Find("Norway"), "head", "forward"))').denotation == ["Harald"]
    assert own.run('QueryAttr(Find("Norway"), "motto")').denotation == [
        "All for Norway",
        "Alt for Norge",
    ]
    assert own.run('QueryAttr(Find("Norway"), "founded")').denotation == ["1814", "1905-06-07"]
    assert own.run('QueryAttr(Find("Norway"), "area")').denotation == [
        "385207 square kilometre",
        "148728 square mile",
    ]
    asked = 'QueryRelationQualifier(Find("Norway"), Find("Harald"), "head", "role")'
    assert own.run(asked).denotation == ["king"]


def test_queries_for_nodes_denote_their_labels_and_values(own: SparqlExecutor) -> None:
    node = Var("x")

    def denoted(*triples: Triple) -> list[str]:
        return own.denotation(Select((node,), Group(triples), distinct=True))

    statement = Var("st")
    norway = Triple(Var("e"), Iri(RDFS + "label"), Literal("Norway", language="en"))
    assert denoted(
        norway,
        Triple(Var("e"), Iri(PROP + "P12"), statement),
        Triple(statement, Iri(PROP + "statement/P12"), node),
    ) == ["Haakon", "Harald"]
    assert denoted(
        norway,
        Triple(Var("e"), Iri(PROP + "P13"), statement),
        Triple(statement, Iri(PROP + "statement/value/P13"), node),
    ) == ["1814", "1905-06-07"]
    assert denoted(
        norway,
        Triple(Var("e"), Iri(PROP + "P10"), statement),
        Triple(statement, Iri(PROP + "statement/P10"), node),
    ) == ["All for Norway", "Alt for Norge"]


# --- the graph of a knowledge base --------------------------------------------------------------


def test_the_graph_of_a_knowledge_base() -> None:
    builder = Builder()
    builder.add_concept("c", "city")
    builder.add_entity("o", "Oslo", ["c"])
    builder.add_attribute("o", "area", Quantity(454, "km²"), {"at": Year(2023)})
    builder.add_fact("o", "twin", "o", {"since": Date(-44, 3, 15)})
    text = "".join(wikidata_ntriples(builder.build()))
    found = shortened(text).splitlines()
    for line in (
        'wd:Q1 rdfs:label "Oslo"@en .',
        "wd:Q1 wdt:P31 wd:Q2 .",
        "wd:P1003 wikibase:propertyType wikibase:WikibaseItem .",
        "wds:Q1-2 psv:P1000 wdv:",
        'wds:Q1-2 ps:P1000 "454"^^xsd:decimal .',
        'wds:Q1-2 pq:P1001 "2023-01-01T00:00:00Z"^^xsd:dateTime .',
        "wds:Q1-2 wikibase:rank wikibase:NormalRank .",
        "wd:Q1 p:P1003 wds:Q1-3 .",
        "wds:Q1-3 ps:P1003 wd:Q1 .",
        'wds:Q1-3 pq:P1002 "-0044-03-15T00:00:00Z"^^xsd:dateTime .',
        'wd:Q199 rdfs:label "1"@en .',
    ):
        assert any(one.startswith(line) for one in found), line
    assert len(found) == len(set(found))


def executor_on(kb: KnowledgeBase, *, known: KnowledgeBase | None = None) -> SparqlExecutor:
    """An executor on the Wikidata-shaped graph of a knowledge base."""
    engine = engine_of(wikidata_ntriples(kb))
    return SparqlExecutor(engine, encoding=Wikidata.of(engine), kb=known)


def test_generated_programs_over_the_world_agree() -> None:
    from generation import generate

    world = load("world")
    executor, reference = executor_on(world), Executor(world)
    examples = list(generate(world, 120, seed=5))
    for example in examples:
        found = executor.run(example.program).denotation
        assert found == reference.run(example.program).denotation != [], str(example.program)


# An entity without a class is none on Wikidata; so that all else is compared, it gets this one.
NO_CLASS = "of no class"


def with_classes(document: dict[str, Any], kb: KnowledgeBase) -> KnowledgeBase:
    """The knowledge base in which every entity has a class."""
    document = copy.deepcopy(document)
    document["concepts"][NO_CLASS] = {"name": NO_CLASS, "subclassOf": []}
    for node in range(kb.entity_count):
        if not kb.concepts_of(node):
            document["entities"][kb.id_of(node)]["instanceOf"].append(NO_CLASS)
    return from_kqapro(document)


def finds_a_unit(program: list[dict[str, Any]], kb: KnowledgeBase) -> bool:
    """Whether the program names a unit as a node: units are items on Wikidata."""
    names = {normalise_name(c["inputs"][0]) for c in program if c["function"] == "Find"}
    return any(normalise_name(unit) in names for unit in ("1", *kb.units))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seeds", [range(at, at + 10) for at in range(0, 100, 10)], ids=str)
def test_random_programs_agree(seeds: range) -> None:
    compared = telling = 0
    for seed in seeds:
        document = random_kb(random.Random(seed))
        kb = from_kqapro(document)
        # Half of them with what a translation may know of the knowledge base.
        executor = executor_on(with_classes(document, kb), known=kb if seed % 2 else None)
        reference = Executor(kb)
        sampler = ProgramSampler(document, random.Random(seed))
        for _ in range(20):
            program = sampler.sample()
            if finds_a_unit(program, kb):
                continue
            expected = reference.run(program).denotation
            try:
                found = executor.run(program).denotation
            except PropertyError as error:
                # KoPL gives the empty set for what the knowledge base does not have.
                known = kb.relations if error.role == "relation" else kb.keys
                assert error.text not in known, error
                continue
            assert found == expected, (seed, program)
            compared += 1
            telling += bool(expected)
    assert compared >= 180 and telling >= 0.65 * compared


def test_an_entity_without_a_class_is_not_among_all() -> None:
    builder = Builder()
    builder.add_entity("a", "Ann")
    executor = executor_on(builder.build())
    assert executor.run("FindAll()").denotation == []
    assert executor.run('Find("Ann")').denotation == ["Ann"]


def test_the_parts_of_the_encoding_do_not_meet_the_names() -> None:
    """Names that look like the variables or IRIs that a query is made of."""
    builder = Builder()
    builder.add_concept("c", "?e")
    for name in ("http://www.wikidata.org/entity/Q1", "st_e_pv", "Q1"):
        builder.add_entity(name, name, ["c"])
        builder.add_attribute(name, "P31", name, {"wdt:P31": name})
    executor = executor_on(builder.build())
    for name in ("http://www.wikidata.org/entity/Q1", "st_e_pv", "Q1"):
        chosen = f'FilterStr(FilterConcept(FindAll(), "?e"), "P31", "{name}")'
        program = f'QFilterStr({chosen}, "wdt:P31", "{name}")'
        assert executor.run(program).denotation == [name]
