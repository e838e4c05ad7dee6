"""RDF: exact triples, nothing lost on the way back, foreign graphs, malformed files."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path
from typing import Any

import pytest

from kb import (
    Builder,
    Date,
    KnowledgeBase,
    KoplError,
    Problems,
    Quantity,
    ReadError,
    Year,
    check_file,
    from_kqapro,
    load,
    read,
    read_rdf,
    write_kqapro,
    write_rdf,
)
from kb.rdf import ntriples, turtle
from kb.rdf.iri import BASE
from kb.rdf.writer import RdfForm
from kopl_base.stream import writing
from kopl_cli import main
from tests.kb.strategies import clean_kb, document_of
from tests.reference.random_kb import random_kb

ox = pytest.importorskip("pyoxigraph")

SEEDS = range(200)
FORMS: tuple[RdfForm, ...] = ("nt", "ttl", "nq")


def small() -> KnowledgeBase:
    """A knowledge base with a value of each type, qualifiers and a shared triple."""
    builder = Builder()
    builder.add_concept("c1", "city")
    builder.add_concept("c2", "capital", ["c1"])
    builder.add_entity("Q1", 'The "Big"\n\\', ["c2"])
    builder.add_entity("Q_2", "Norway")
    builder.add_attribute("Q1", "elevation", Quantity(-0.5, "metre"), {"point in time": Year(1)})
    builder.add_attribute("Q1", "founded", Date(-44, 3, 15))
    builder.add_attribute("Q1", "pred:name", "Oslo\x7f")
    builder.add_fact("Q_2", "capital", "Q1", {"start time": [Year(1814), Year(1814)]})
    builder.add_fact("Q_2", "capital", "Q1")
    return builder.build()


SMALL = r"""
<Q1> <pred:name> "The \"Big\" \\" .
<Q1> <pred:kind> "entity" .
<Q1> <pred:parent> "c2" .
<Q1> <pred:instance_of> <c1> .
<Q1> <pred:instance_of> <c2> .
<Q1> <elevation> _:v0 .
_:v0 <pred:value> "-0.5"^^<http://www.w3.org/2001/XMLSchema#double> .
_:v0 <pred:unit> "metre" .
_:f0 <pred:fact_h> <Q1> .
_:f0 <pred:fact_r> <elevation> .
_:f0 <pred:fact_t> _:v0 .
_:f0 <point_in_time> _:v1 .
_:v1 <pred:year> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<Q1> <founded> _:v2 .
_:v2 <pred:year> "-44"^^<http://www.w3.org/2001/XMLSchema#integer> .
_:v2 <pred:date> "-0044-03-15"^^<http://www.w3.org/2001/XMLSchema#date> .
_:f1 <pred:fact_h> <Q1> .
_:f1 <pred:fact_r> <founded> .
_:f1 <pred:fact_t> _:v2 .
<Q1> <pred%3Aname> _:v3 .
_:v3 <pred:value> "Oslo\u007F" .
_:f2 <pred:fact_h> <Q1> .
_:f2 <pred:fact_r> <pred%3Aname> .
_:f2 <pred:fact_t> _:v3 .
<Q%5F2> <pred:name> "Norway" .
<Q%5F2> <pred:kind> "entity" .
<Q%5F2> <capital> <Q1> .
_:f3 <pred:fact_h> <Q%5F2> .
_:f3 <pred:fact_r> <capital> .
_:f3 <pred:fact_t> <Q1> .
_:f3 <start_time> _:v4 .
_:v4 <pred:year> "1814"^^<http://www.w3.org/2001/XMLSchema#integer> .
_:f3 <start_time> _:v5 .
_:v5 <pred:year> "1814"^^<http://www.w3.org/2001/XMLSchema#integer> .
_:f4 <pred:fact_h> <Q%5F2> .
_:f4 <pred:fact_r> <capital> .
_:f4 <pred:fact_t> <Q1> .
<c1> <pred:name> "city" .
<c1> <pred:kind> "concept" .
<c2> <pred:name> "capital" .
<c2> <pred:kind> "concept" .
<c2> <pred:parent> "c1" .
"""


def test_exact_triples() -> None:
    assert "".join(ntriples(small())) == SMALL.lstrip()


def test_exact_triples_with_terms() -> None:
    lines = "".join(ntriples(small(), terms=True)).splitlines()
    reifies = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
    # The fact without qualifiers has a node only because another one shares its triple.
    assert [line for line in lines if "fact_" in line or reifies in line] == [
        f"_:f0 {reifies} <<( <Q1> <elevation> _:v0 )>> .",
        f"_:f1 {reifies} <<( <Q%5F2> <capital> <Q1> )>> .",
        f"_:f2 {reifies} <<( <Q%5F2> <capital> <Q1> )>> .",
    ]
    assert len(lines) == SMALL.strip().count("\n") + 1 - 3 * 2 - 2 * 3


def test_absolute_iris_and_a_graph() -> None:
    base, graph = "https://a.b/c/", "urn:g"
    lines = "".join(ntriples(small(), base=base, graph=graph)).splitlines()
    assert f'<{base}Q1> <pred:kind> "entity" <urn:g> .' in lines
    assert f"<{base}Q%5F2> <{base}capital> <{base}Q1> <urn:g> ." in lines
    assert all(line.endswith(" <urn:g> .") for line in lines)


def test_the_pieces_come_one_by_one() -> None:
    class Counted:
        """A knowledge base that counts how many names were asked for."""

        def __init__(self, inner: KnowledgeBase) -> None:
            self.inner, self.names = inner, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def name_of(self, node: int) -> str:
            self.names += 1
            return self.inner.name_of(node)

    builder = Builder()
    for number in range(20_000):
        builder.add_entity(f"Q{number}", "one of many")
    knowledge = builder.build()
    for pieces_of in (ntriples, turtle):
        counted = Counted(knowledge)
        pieces = pieces_of(counted)  # type: ignore[operator]
        first = next(pieces)
        assert first.endswith(".\n") and len(first) < 1 << 20
        assert 0 < counted.names < counted.inner.node_count / 20


# --- there and back ------------------------------------------------------------------------------


def same(one: KnowledgeBase, other: KnowledgeBase) -> None:
    """The same nodes and facts in the same order."""
    left, right = document_of(one, ends="head"), document_of(other, ends="head")
    assert left == right
    for section in left:
        assert list(left[section]) == list(right[section])


@pytest.mark.parametrize("seed", SEEDS)
def test_round_trip(seed: int, tmp_path: Path) -> None:
    knowledge = from_kqapro(clean_kb(seed))
    form = FORMS[seed % 3]
    base = (None, BASE, "https://a.b/c/")[seed // 3 % 3]
    for terms in (False, True):
        path = tmp_path / f"kb.{form}"
        graph = "urn:g" if form == "nq" and seed % 2 else None
        write_rdf(knowledge, path, form, base=base, terms=terms, graph=graph)
        again = read_rdf(path)
        same(again, knowledge)
        # Now recorded at both ends, it comes back to the last number.
        write_rdf(again, path, form, base=base, terms=terms)
        assert read(path).fingerprint == again.fingerprint


@pytest.mark.parametrize("seed", range(20))
def test_relational_facts_are_recorded_at_both_ends(seed: int, tmp_path: Path) -> None:
    knowledge = from_kqapro(clean_kb(seed))
    write_rdf(knowledge, tmp_path / "kb.nt")
    again = read_rdf(tmp_path / "kb.nt")
    assert document_of(again) == document_of(again, ends="both")
    write_kqapro(again, tmp_path / "kb.json")
    assert read(tmp_path / "kb.json").fingerprint == again.fingerprint


def canonical(document: dict[str, Any]) -> Any:
    """A document without orders; repeated qualifier values stay repeated."""
    if isinstance(document, dict):
        return sorted((key, canonical(part)) for key, part in document.items())
    if isinstance(document, list):
        return sorted((canonical(part) for part in document), key=repr)
    return document


@pytest.mark.parametrize("seed", range(60))
def test_the_order_of_triples_means_nothing(seed: int, tmp_path: Path) -> None:
    knowledge = from_kqapro(random_kb(random.Random(seed)))
    lines = "".join(ntriples(knowledge, terms=seed % 2 == 1)).splitlines()
    random.Random(seed).shuffle(lines)
    (tmp_path / "kb.nt").write_text("\n".join([*lines, *lines[:9]]), "utf-8")
    again = read_rdf(tmp_path / "kb.nt")
    one, other = document_of(knowledge, ends="head"), document_of(again, ends="head")
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize("seed", range(25))
def test_foreign_graphs_without_our_terms(seed: int, tmp_path: Path) -> None:
    knowledge = from_kqapro(random_kb(random.Random(seed)))
    text = "".join(ntriples(knowledge, base="http://other.example/kb/"))
    if seed % 2:
        text = text.replace("<http://other.example/kb/", "<http://other.example/kb#")
    lines = text.splitlines()
    kept = [line for line in lines if "<pred:kind>" not in line and "<pred:parent>" not in line]
    (tmp_path / "kb.nt").write_text("\n".join(kept), "utf-8")
    again = read_rdf(tmp_path / "kb.nt")
    members = {c for e in knowledge.entities.tolist() for c in knowledge.all_concepts_of(e)}
    for node in range(knowledge.node_count):
        found = again.node(knowledge.id_of(node))
        assert again.name_of(found) == knowledge.name_of(node)
        assert again.is_entity(found) == (node not in members)
    for entity in knowledge.entities.tolist():
        found = again.node(knowledge.id_of(entity))
        assert {again.id_of(c) for c in again.concepts_of(found)} == {
            knowledge.id_of(c) for c in knowledge.all_concepts_of(entity)
        }
    assert len(again.relational) == len(knowledge.relational)


def test_plain_triples_are_facts_without_qualifiers(tmp_path: Path) -> None:
    (tmp_path / "kb.ttl").write_text(
        """
        @prefix : <http://x.example/kb/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
        :b <pred:name> "B"@en ; <pred:instance_of> :c ; :near_to :a .
        :a <pred:name> "A" ; :height [ <pred:value> 5 ; <pred:unit> "metre" ] ;
          :born [ <pred:date> "2001-02-03Z"^^xsd:date ] , [ <pred:year> "2001"^^xsd:gYear ] .
        :c <pred:name> "C" .
        [] <pred:fact_h> :a ; <pred:fact_r> :near_to ; <pred:fact_t> :b .
        """
    )
    kb = read_rdf(tmp_path / "kb.ttl")
    assert [kb.id_of(node) for node in range(3)] == ["b", "a", "c"]
    assert [kb.is_entity(node) for node in range(3)] == [True, True, False]
    assert [(f.key, f.value) for f in kb.attributes(1)] == [
        ("height", Quantity(5, "metre")),
        ("born", Date(2001, 2, 3)),
        ("born", Year(2001)),
    ]
    facts = {(fact.head, fact.relation, fact.tail) for fact in kb.facts()}
    assert facts == {("b", "near to", "a"), ("a", "near to", "b")}


@pytest.mark.parametrize("base", [None, BASE, "urn:x/", "https://a.b/c%20d/"])
@pytest.mark.parametrize("form", FORMS)
def test_the_base_is_found(form: RdfForm, base: str | None, tmp_path: Path) -> None:
    builder = Builder()
    builder.add_entity("/m/1", "one")
    builder.add_entity("/m/2", "two")
    builder.add_fact("/m/1", "near", "/m/2")
    kb = builder.build()
    write_rdf(kb, tmp_path / f"kb.{form}", form, base=base)
    same(read_rdf(tmp_path / f"kb.{form}", base=base), kb)
    same(read_rdf(tmp_path / f"kb.{form}"), kb)


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
def test_compressed(ending: str, tmp_path: Path) -> None:
    knowledge = small()
    for form in FORMS:
        write_rdf(knowledge, tmp_path / f"kb.{form}{ending}", form)
        same(load(tmp_path / f"kb.{form}{ending}", cache=False), knowledge)
    if ending == ".gz":
        with gzip.open(tmp_path / "kb.nt.gz", "rt", encoding="utf-8", newline="") as file:
            assert file.read() == SMALL.lstrip()


# --- what other tools read -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("base", [None, "https://a.b/c/"])
def test_turtle_and_ntriples_are_one_graph(seed: int, base: str | None) -> None:
    knowledge = from_kqapro(clean_kb(seed, "tiny"))

    def graph(text: str) -> Any:
        found = ox.Dataset(ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri=base or BASE))
        found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
        return found

    for terms in (False, True):
        # N-Triples are Turtle as well, and absolute ones are legal N-Triples.
        text = "".join(ntriples(knowledge, base=base, terms=terms))
        written = graph("".join(turtle(knowledge, base=base, terms=terms)))
        assert len(written) == text.count("\n")
        assert written == graph(text)
        if base:
            quads = ox.parse(text, format=ox.RdfFormat.N_TRIPLES)
            assert sum(1 for _ in quads) == text.count("\n")


@pytest.mark.parametrize("seed", range(15))
def test_rdflib_reads_the_same(seed: int) -> None:
    rdflib = pytest.importorskip("rdflib")
    compare = pytest.importorskip("rdflib.compare")
    knowledge = from_kqapro(clean_kb(seed, "tiny"))
    base = "https://a.b/c/"
    text = "".join(ntriples(knowledge, base=base))
    one = rdflib.Graph().parse(data="".join(turtle(knowledge, base=base)), format="turtle")
    other = rdflib.Graph().parse(data=text, format="nt")
    assert len(one) == len(other) == text.count("\n")
    if seed < 3:  # slow
        assert compare.isomorphic(one, other)


# --- malformed -----------------------------------------------------------------------------------

A, B = '<a> <pred:name> "A" .\n', '<b> <pred:name> "B" .\n'
DOUBLE = "^^<http://www.w3.org/2001/XMLSchema#double>"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
DAY = "^^<http://www.w3.org/2001/XMLSchema#date>"

ERRORS = [
    (f"{A}<a> oops .\n", "line 2", "IRI"),
    (f'{A}<b> <pred:name> "B .\n', "line 2", "not N-Triples"),
    (f"{A}<a> <k> _:v .\n", "a/k", "the value node _:v has no value"),
    (f'{A}<a> <k> _:v .\n_:v <pred:unit> "metre" .\n', "a/k", "has no value"),
    (f'{A}<a> <k> "5" .\n', "a", 'leads to "5", not to a node'),
    (f'{A}<a> <k> _:v .\n_:v <pred:value> "x"{DOUBLE} .\n', "a/k", "finite number, not 'x'"),
    (f'{A}<a> <k> _:v .\n_:v <pred:value> "INF"{DOUBLE} .\n', "a/k", "finite number"),
    (f'{A}<a> <k> _:v .\n_:v <pred:value> "1e999"{DOUBLE} .\n', "a/k", "finite number"),
    (f'{A}<a> <k> _:v .\n_:v <pred:value> "1"{DAY} .\n', "a/k", "a string or a number"),
    (f'{A}<a> <k> _:v .\n_:v <pred:value> "1" .\n_:v <pred:unit> "m" .\n', "a/k", "has a unit"),
    (f'{A}<a> <k> _:v .\n_:v <pred:value> "1", "2" .\n', "line 3", "not N-Triples"),
    (f'{A}_:v <pred:value> "1" .\n_:v <pred:value> "2" .\n', "_:v", "several values"),
    (f'{A}<a> <k> _:v .\n_:v <pred:year> "2001" .\n', "a/k", "must be an xsd:integer"),
    (f'{A}<a> <k> _:v .\n_:v <pred:year> "x"{INTEGER} .\n', "a/k", "not a year"),
    (f'{A}<a> <k> _:v .\n_:v <pred:date> "2001-02-03" .\n', "a/k", "must be an xsd:date"),
    (f'{A}<a> <k> _:v .\n_:v <pred:date> "2001-02-30"{DAY} .\n', "a/k", "no day 2001-02-30"),
    (
        f'{A}<a> <k> _:v .\n_:v <pred:year> "2000"{INTEGER} .\n_:v <pred:date> "2001-02-03"{DAY} .',
        "a/k",
        "does not lie in the year 2000",
    ),
    (
        f'{A}<a> <k> _:v .\n_:v <pred:year> "2000"{INTEGER} .\n_:v <pred:value> "2000" .',
        "a/k",
        "a value and a time",
    ),
    (f"{A}{B}_:f <pred:fact_h> <a> .\n_:f <pred:fact_r> <r> .\n", "_:f", "without <pred:fact_t>"),
    (f"{A}_:f <pred:fact_r> <r> .\n", "_:f", "without <pred:fact_h>, <pred:fact_t>"),
    (f'{A}_:f <pred:fact_h> "a" .\n', "_:f", "not to a node"),
    (f"{A}_:f <pred:fact_h> <a> .\n_:f <pred:fact_h> <b> .\n", "_:f", "several nodes"),
    (
        f"{A}{B}_:f <pred:fact_h> <a> .\n_:f <pred:fact_r> <r> .\n_:f <pred:fact_t> <b> .\n"
        "_:f <q> _:v .\n",
        "a/r (_:f)",
        "the qualifier value _:v has no value",
    ),
    ("_:f <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <a> .\n", "_:f", "a triple term"),
    (f"{A}<a> <r> <<( <a> <r> <a> )>> .\n", "a", "not to a node"),
    (f'{A}<a> <pred:name> "B" .\n', "a", "several values"),
    ("<a> <pred:name> <b> .\n", "a", "must lead to a string"),
    ('_:a <pred:name> "A" .\n', "_:a", "a blank node with a name"),
    ('<a> <pred:kind> "entity" .\n', "a", "there is no <pred:name>"),
    (f'{A}<a> <pred:kind> "thing" .\n', "a", "not 'thing'"),
    (f'{A}<a> <pred:instance_of> "b" .\n', "a", "must lead to an IRI"),
    (f"{A}<a> <pred:parent> <b> .\n", "a", "must lead to a string"),
    ('<a_b> <pred:name> "A" .\n<a%20b> <pred:name> "B" .\n', "entities/a b", "defined twice"),
    (
        '<c> <pred:name> "C" .\n<c> <pred:kind> "concept" .\n<c> <k> _:v .\n_:v <pred:value> "x" .',
        "c/k",
        "concepts have no attributes",
    ),
]


@pytest.mark.parametrize(("text", "place", "message"), ERRORS)
def test_errors(text: str, place: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kb.nt"
    path.write_text(text, "utf-8")
    with pytest.raises(ReadError) as caught:
        read_rdf(path)
    assert caught.value.place == place
    assert message in caught.value.message
    problems = check_file(path)
    assert any(p.severity == "error" and message in p.message for p in problems.found)


WARNINGS = [
    (f'{A}<a> <k> _:v .\n_:v <pred:value> "5"{DOUBLE} .\n', "missing-unit", "_:v"),
    (f'{A}<a> <k> _:v .\n_:v <pred:date> "2001-00-00"{DAY} .\n', "date-without-day", "_:v"),
    (f"{A}<a> <pred:colour> <b> .\n", "unknown-field", "a"),
    (f"{A}<a> <http://www.w3.org/2000/01/rdf-schema#label> <b> .\n", "unknown-field", "a"),
    (f"{A}<a> <r> <b> .\n", "dangling-id", "a/r"),
    (f"{A}<b> <r> <a> .\n", "dangling-id", "b/r"),
    (f"{A}<a> <pred:instance_of> <c> .\n", "dangling-id", "entities/a/instanceOf"),
    ('<a> <pred:name> " " .\n', "empty-name", "entities/a"),
]


@pytest.mark.parametrize(("text", "code", "place"), WARNINGS)
def test_warnings(text: str, code: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "kb.nt"
    path.write_text(text, "utf-8")
    problems = Problems()
    kb = read_rdf(path, problems)
    assert [(problem.code, problem.place) for problem in problems.found] == [(code, place)]
    assert kb.node_count == 1
    values = [str(fact.value) for fact in kb.attributes(0)]
    assert values == {"missing-unit": ["5"], "date-without-day": ["2001"]}.get(code, [])


def test_every_broken_line_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "kb.nt"
    path.write_text(f"{A}oops .\n{B}<a> <b> .\n<a> <r> <b> .\n", "utf-8")
    problems = Problems(keep_going=True)
    kb = read_rdf(path, problems)
    assert {problem.place for problem in problems.found} == {"line 2", "line 4"}
    assert (kb.node_count, len(kb.relational)) == (2, 1)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\x1f\x8b broken", b"<a", b"", b"\x00", b"{}"])
@pytest.mark.parametrize("form", FORMS)
def test_garbage_is_no_traceback(text: bytes, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"kb.{form}"
    path.write_bytes(text)
    if text == b"":
        assert read_rdf(path).node_count == 0
        return
    with pytest.raises(ReadError):
        read_rdf(path)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_files_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    text = list("".join((ntriples, turtle)[seed % 2](small(), terms=seed % 3 == 0)))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        text[at : at + rng.randint(0, 30)] = rng.choice(
            ["", " ", "<", '"', "_:v1", ".", "\\", "\n"]
        )
    path = tmp_path / ("kb.nt", "kb.ttl")[seed % 2]
    path.write_text("".join(text), "utf-8")
    try:
        read_rdf(path)
    except ReadError:
        assert check_file(path).errors


def test_without_pyoxigraph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rdf(small(), tmp_path / "kb.nt")
    monkeypatch.setitem(__import__("sys").modules, "pyoxigraph", None)
    with pytest.raises(ReadError, match=r"pip install .*\[sparql\]"):
        read_rdf(tmp_path / "kb.nt")


# --- the command ---------------------------------------------------------------------------------


def test_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "kb.json"
    write_kqapro(small(), source)
    for options, name in (
        (["--to", "nt"], "plain"),
        ([], "kb.nt"),
        (["--base", "https://a.b/", "--terms"], "kb.ttl.gz"),
        (["--graph", "urn:g"], "kb.nq"),
    ):
        assert main(["kb", "export", *options, str(source), str(tmp_path / name)]) == 0
    assert (tmp_path / "plain").read_text("utf-8") == SMALL.lstrip()
    for name in ("kb.nt", "kb.ttl.gz", "kb.nq"):
        assert main(["kb", "info", str(tmp_path / name)]) == 0
        assert "entities\t2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "name", "message"),
    [
        (["--base", "x"], "kb.nt", "the base must be an absolute IRI that ends in '/', not 'x'"),
        (["--base", "http://a.b"], "kb.nt", "the base must be an absolute IRI"),
        (["--base", "http://a b/"], "kb.nt", "the base must be an absolute IRI"),
        (["--base", "http://a.b/?c/"], "kb.nt", "the base must be an absolute IRI"),
        (["--graph", "urn:g"], "kb.nt", "a graph can be named in N-Quads (nq) only"),
        (["--graph", "g"], "kb.nq", "the graph must be an absolute IRI"),
        ([], "kb", "say the format with --to"),
        ([], "file/kb.nt", "cannot be written"),
    ],
)
def test_export_refused(
    options: list[str], name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    source = tmp_path / "kb.json"
    write_kqapro(small(), source)
    assert main(["kb", "export", *options, str(source), str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "kb.json"]


def test_options_are_checked_before_the_first_piece() -> None:
    for call in (lambda: ntriples(small(), base="x"), lambda: turtle(small(), base="x")):
        with pytest.raises(KoplError, match="absolute IRI"):
            call()
    with pytest.raises(KoplError, match="graph"):
        ntriples(small(), graph="x")


def test_the_example_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "rdf.md").read_text("utf-8")
    code, printed = (
        re.search(rf"```{kind}\n(.+?)```", page, re.S) for kind in ("python", "turtle")
    )
    assert code and printed
    exec(compile(code[1], "rdf.md", "exec"), {})
    assert capsys.readouterr().out.strip() == printed[1].strip()


@pytest.mark.parametrize("ending", ["nt", "nq", "ttl", "nt.gz"])
@pytest.mark.parametrize("long", ['<e> <k> "LONG" .', "<LONG> <k> <e> .", '<e> <k> "LONG'])
def test_a_text_that_is_longer_than_the_parser_holds(
    ending: str, long: str, tmp_path: Path
) -> None:
    file = tmp_path / f"kb.{ending}"
    with writing(file) as out:
        out.write('<e> <pred:name> "e" .\n\n' + long.replace("LONG", "x" * (17 << 20)) + "\n")
    with pytest.raises(ReadError, match=r"more than 16 MiB.*JSON lines") as caught:
        read_rdf(file)
    place = "lines 1 to 3" if ending == "ttl" else "line 3"  # one piece was read before
    assert caught.value.source == str(file) and caught.value.place == place
    found = check_file(file).found
    assert [p.place for p in found if p.code == "too-long"] == [place]


def test_a_long_comment(tmp_path: Path) -> None:
    file = tmp_path / "kb.ttl"
    file.write_text('<e> <pred:name> "e" .\n# ' + "x" * (17 << 20) + "\n")
    with pytest.raises(ReadError, match=r"a comment of more than 16 MiB.*shorten"):
        read_rdf(file)


def test_a_long_text_of_several_lines(tmp_path: Path) -> None:
    file = tmp_path / "kb.ttl"
    file.write_text('\n\n<e> <pred:name> """' + ("x" * 1023 + "\n") * (17 << 10) + '""" .\n')
    with pytest.raises(ReadError, match="more than 16 MiB") as caught:
        read_rdf(file)
    first, _, last = caught.value.place.removeprefix("lines ").partition(" to ")
    assert int(first) <= 3 < int(last)
