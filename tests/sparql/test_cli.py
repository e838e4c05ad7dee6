"""The command line of the SPARQL side, against engines in the process and a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb import KnowledgeBase
from kopl.sparql.engines import embedded
from kopl.sparql.engines import server as server_module
from kopl.sparql.engines.server import OxigraphServer
from kopl.sparql.errors import MissingPackageError
from kopl_cli import main
from tests.conftest import DATA

pytest.importorskip("pyoxigraph", reason="pip install 'kopl-toolkit[sparql]'")

TINY = str(DATA / "tiny.json")
CAPITAL = 'QueryName(Relate(Find("France"), "capital", "forward"))'
QUERY = 'SELECT DISTINCT ?e { ?f <pred:name> "France" . ?f <capital> ?e }'
OUT = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def url(tiny: KnowledgeBase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that holds the tiny knowledge base."""
    from kopl.sparql.engines.oxigraph import build

    folder = tmp_path_factory.mktemp("served") / "store"
    build(tiny, folder)
    yield from served(folder)


@pytest.fixture(scope="module")
def wikidata(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that holds the tiny knowledge base in Wikidata's form, as the command writes it."""
    import pyoxigraph as ox

    folder = tmp_path_factory.mktemp("wikidata")
    file = folder / "tiny.nt"
    arguments = ["--no-cache", "--encoding", "wikidata"]
    assert main(["kb", "export", TINY, str(file), *arguments]) == 0
    store = ox.Store(str(folder / "store"))
    store.bulk_load(path=str(file), format=ox.RdfFormat.N_TRIPLES)
    store.flush()
    del store
    yield from served(folder / "store")


def served(folder: Path) -> Iterator[str]:
    try:
        server_module.find_binary()
    except MissingPackageError as error:
        pytest.skip(f"OXIGRAPH'S SERVER IS NOT TESTED: {error}")
    server = OxigraphServer(folder)
    server.start()
    try:
        yield server.engine().url
    finally:
        server.stop()


def kopl(*arguments: str) -> int:
    return main([*arguments])


# --- translate ----------------------------------------------------------------------------------


def test_translate_there_and_back(capsys: OUT) -> None:
    assert kopl("translate", "--to", "sparql", CAPITAL) == 0
    query = capsys.readouterr().out
    assert query.startswith("SELECT DISTINCT ?name WHERE {")
    assert kopl("translate", "--from", "sparql", "--to", "nested", query) == 0
    assert capsys.readouterr().out == CAPITAL + "\n"


def test_translate_tells_what_the_data_loses(capsys: OUT) -> None:
    program = 'SelectAmong(FilterConcept(FindAll(), "city"), "area", "largest")'
    assert kopl("translate", "--to", "sparql", "--style", "data", program) == 0
    shown = capsys.readouterr()
    assert "ORDER BY DESC(?v) LIMIT 1" in shown.out
    assert "the answer may differ" in shown.err
    assert kopl("translate", "--to", "sparql", program) == 0
    assert capsys.readouterr().err == ""


def test_translate_with_a_base(capsys: OUT) -> None:
    assert kopl("translate", "--to", "sparql", "--base", "http://x.example/", CAPITAL) == 0
    assert "<http://x.example/capital>" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--from", "sparql", "--to", "nested", "ASK {"], 1, "ends too early"),
        (
            ["--from", "sparql", "--to", "nested", "SELECT (MAX(?x) AS ?y) { ?a <b> ?x }"],
            1,
            "COUNT",
        ),
        (["--from", "sparql", "--to", "nested", "ASK { ?a <b> ?c }"], 1, "KoPL verifies values"),
        (["--to", "sparql", "Fnd(x)"], 1, "Fnd"),
        (["--to", "sparql", "--base", "x y", CAPITAL], 2, "x y"),
        (["--to", "sparql", "--encoding", "wikidata", CAPITAL], 2, "--properties FILE"),
        (["--to", "nested", "--encoding", "wikidata", CAPITAL], 2, "--to sparql"),
    ],
)
def test_translate_errors(capsys: OUT, arguments: list[str], status: int, message: str) -> None:
    assert kopl("translate", *arguments) == status
    assert message in capsys.readouterr().err


# --- run, sparql, compare -----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["kopl", "oxigraph", "oxigraph-memory", "rdflib"])
def test_run_on_every_engine(capsys: OUT, engine: str) -> None:
    assert kopl("run", "--kb", TINY, "--engine", engine, "--json", CAPITAL) == 0
    assert json.loads(capsys.readouterr().out)["denotation"] == ["Paris"]
    if engine != "kopl":
        assert kopl("sparql", "--kb", TINY, "--engine", engine, "--rows", QUERY) == 0
        assert capsys.readouterr().out.strip().endswith("paris")
    assert kopl("sparql", "--kb", TINY, "--engine", engine, QUERY) == 0
    assert capsys.readouterr().out == "Paris\n"


def test_run_on_a_server(capsys: OUT, url: str) -> None:
    assert kopl("run", "--engine", url, CAPITAL) == 0
    assert capsys.readouterr().out == "Paris\n"
    assert kopl("sparql", "--endpoint", url, "--json", QUERY) == 0
    assert json.loads(capsys.readouterr().out)["answer"] == "Paris"
    assert kopl("sparql", "--endpoint", url, "--rows", "--json", QUERY) == 0
    [row] = json.loads(capsys.readouterr().out)["results"]["bindings"]
    assert row["e"]["type"] == "uri"


def test_programs_of_a_file_keep_their_places(capsys: OUT, tmp_path: Path) -> None:
    file = tmp_path / "programs.jsonl"
    file.write_text(json.dumps({"program": CAPITAL}) + '\n{"x": 1}\nno json\n', "utf-8")
    shown = {}
    for engine in ("kopl", "oxigraph-memory"):
        arguments = ["--kb", TINY, "--engine", engine, "--programs", str(file), "--json"]
        assert kopl("run", *arguments) == 1
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        shown[engine] = [line.get("error") or line["denotation"] for line in lines]
    assert shown["kopl"] == shown["oxigraph-memory"]
    assert shown["kopl"][0] == ["Paris"]


def test_a_query_that_we_do_not_read_is_asked_all_the_same(capsys: OUT) -> None:
    text = "SELECT (SUM(?x) AS ?y) { VALUES ?x { 1 2 } }"
    assert kopl("sparql", "--kb", TINY, text) == 0
    shown = capsys.readouterr()
    assert shown.out.strip().endswith("3")
    assert "its rows are shown" in shown.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--kb", TINY, "ASK {"], 1, "ends too early"),
        (["--kb", TINY, "SELECT ?x { VALUES ?x {\n 1 2 "], 1, "error at 2:6"),
        (["--kb", TINY, "--engine", "nobody", "ASK { ?a ?b ?c }"], 2, "'nobody'"),
        (["--endpoint", "127.0.0.1:1/sparql", "ASK { ?a ?b ?c }"], 2, "no address"),
        (["--endpoint", "http://127.0.0.1:1/", "ASK { ?a ?b ?c }"], 1, "127.0.0.1:1"),
        (["--kb", TINY, "--encoding", "wikidata", "ASK { ?a ?b ?c }"], 2, "endpoint"),
        (["--kb", TINY, "--engine", "kopl", "ASK { ?a ?b ?c }"], 1, ""),
    ],
)
def test_sparql_errors(capsys: OUT, arguments: list[str], status: int, message: str) -> None:
    assert kopl("sparql", *arguments) == status
    shown = capsys.readouterr()
    assert message in shown.err and "Traceback" not in shown.err and shown.err


@pytest.mark.parametrize("arguments", [[], ["--kb", TINY, "--endpoint", "http://x/"]])
def test_sparql_wants_one_place_to_ask(capsys: OUT, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        kopl("sparql", *arguments, "ASK { ?a ?b ?c }")
    assert caught.value.code == 2
    assert "either --kb KB or --endpoint URL" in capsys.readouterr().err


def test_compare(capsys: OUT, tmp_path: Path, url: str) -> None:
    file = tmp_path / "programs.jsonl"
    programs = [CAPITAL, 'Count(FilterConcept(FindAll(), "city"))', 'Find("nobody")']
    file.write_text("".join(json.dumps({"program": p}) + "\n" for p in programs), "utf-8")
    arguments = ["compare", "--kb", TINY, "--programs", str(file), "--engines"]
    assert kopl(*arguments, f"kopl,oxigraph-memory,{url}") == 0
    shown = capsys.readouterr()
    assert [line.split("\t")[:3] for line in shown.out.splitlines()[-3:]] == [
        ["kopl", "3", "0"],
        ["oxigraph-memory", "3", "0"],
        [url, "3", "0"],
    ]
    assert "3 programs, 0 differences" in shown.err
    assert kopl(*arguments, "kopl,http://127.0.0.1:1/") == 1
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_compare_shows_differences(capsys: OUT, tmp_path: Path, url: str) -> None:
    """The server holds the tiny knowledge base, and is compared with another one."""
    file = tmp_path / "programs.jsonl"
    file.write_text(json.dumps({"program": "Count(FindAll())"}) + "\n", "utf-8")
    assert (
        kopl("compare", "--kb", "world", "--programs", str(file), "--engines", f"kopl,{url}") == 1
    )
    shown = capsys.readouterr()
    assert "Count(FindAll())" in shown.out + shown.err
    assert "1 difference or failure" in shown.err


# --- Wikidata's form ------------------------------------------------------------------------------


def test_wikidata_on_the_command_line(capsys: OUT, tmp_path: Path, wikidata: str) -> None:
    form = ["--encoding", "wikidata"]
    assert kopl("run", "--engine", wikidata, *form, CAPITAL) == 0
    assert capsys.readouterr().out == "Paris\n"
    file = str(tmp_path / "properties.json")
    assert kopl("sparql", "properties", "--endpoint", wikidata, "-o", file) == 0
    assert "labels of properties" in capsys.readouterr().err
    assert kopl("run", "--engine", wikidata, *form, "--properties", file, CAPITAL) == 0
    assert capsys.readouterr().out == "Paris\n"
    assert kopl("translate", "--to", "sparql", *form, "--properties", file, CAPITAL) == 0
    query = capsys.readouterr().out
    assert "http://www.wikidata.org/prop/" in query
    assert kopl("sparql", "--endpoint", wikidata, *form, "--properties", file, query) == 0
    assert capsys.readouterr().out == "Paris\n"
    program = 'QueryAttr(Find("France"), "no such key")'
    assert kopl("run", "--engine", wikidata, *form, "--properties", file, program) == 1
    assert "no property for the key 'no such key'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--terms"], ["--base", "http://x/"], ["--to", "ttl"], ["--language", "e n"]]
)
def test_wikidata_export_errors(capsys: OUT, tmp_path: Path, arguments: list[str]) -> None:
    out = tmp_path / "x.nt"
    assert kopl("kb", "export", TINY, str(out), "--encoding", "wikidata", *arguments) == 2
    assert capsys.readouterr().err.startswith("kopl: ") and not out.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("{", "not JSON"),
        ("[]", "an object"),
        ('{"a": "P36", "b": "P1", "a": "P2"}', "a: the field is there twice"),
        ('{"a": "36"}', "'36' is no property"),
        ('{"a": 36}', '"P36"'),
        ('{"a": ["P1", "Time", "x"]}', '"P36"'),
        ("\udcff", "UTF-8"),
    ],
)
def test_bad_properties(capsys: OUT, tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "p.json"
    if text is not None:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    arguments = ["--to", "sparql", "--encoding", "wikidata", "--properties", str(file)]
    assert kopl("translate", *arguments, CAPITAL) == 2
    error = capsys.readouterr().err
    assert message in error and str(file) in error


GROUPED = "SELECT ?c (COUNT(?e) AS ?n) { ?e <pred:instance_of> ?c } GROUP BY ?c"


def test_what_no_program_says_is_answered_by_another_engine(capsys: OUT) -> None:
    assert kopl("sparql", "--kb", TINY, "--engine", "kopl", GROUPED) == 1
    said = capsys.readouterr().err
    assert "aggregates of groups are not translated" in said and "--engine oxigraph" in said
    assert kopl("sparql", "--kb", TINY, GROUPED, "--rows") == 0


def test_the_engine_that_needs_no_package(capsys: OUT, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    assert kopl("sparql", "--kb", TINY, "--engine", "oxigraph-memory", QUERY) == 1
    said = capsys.readouterr().err
    assert "pyoxigraph" in said and "--engine kopl needs no other package" in said
    assert kopl("sparql", "--kb", TINY, "--engine", "kopl", QUERY) == 0


@pytest.mark.parametrize("engine", ["oxigraph", "oxigraph-memory", "rdflib"])
@pytest.mark.parametrize("command", ["run", "sparql"])
def test_missing_packages_are_named_before_anything_else_is_said(
    command: str,
    engine: str,
    tiny: KnowledgeBase,
    capsys: OUT,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from kopl.sparql.engines import oxigraph, rdflib

    # Both engines say that a large knowledge base takes long.
    monkeypatch.setattr(oxigraph, "SAID_FROM", 1)
    monkeypatch.setattr(rdflib, "MANY", 0)
    monkeypatch.setenv("KOPL_CACHE_DIR", str(tmp_path))
    for package in ("pyoxigraph", "rdflib"):
        monkeypatch.setitem(sys.modules, package, None)
    asked = CAPITAL if command == "run" else QUERY
    assert kopl(command, "--kb", TINY, "--engine", engine, asked) == 1
    first, second = capsys.readouterr().err.splitlines()
    missing = "rdflib and pyoxigraph are" if engine == "rdflib" else "pyoxigraph is"
    assert first.startswith("kopl: engine missing") and f": the engine {engine}: the " in first
    assert f"{missing} not installed" in first
    assert second.startswith("kopl: --engine kopl needs no other package")
    # The same in Python, where a store is made without a command.
    said: list[str] = []
    monkeypatch.setattr(oxigraph.log, "warning", lambda *text: said.append(str(text)))
    with pytest.raises(MissingPackageError):
        embedded(engine, tiny)
    assert said == []


@pytest.mark.parametrize(
    ("text", "said", "other"),
    [
        ("INSERT DATA { <a> <b> <c> }", "which no engine here runs", False),
        ("CONSTRUCT { ?a ?b ?c } WHERE { ?a ?b ?c }", "CONSTRUCT gives a graph", False),
        ("SELECT sum(?x) { ?x ?y ?z }", "a variable or", False),
        ("SELECT ?x { ?x <shares border with> ?y }", "write <shares_border_with>", False),
        ("SELECT (IF(1,2,3) AS ?x) {}", "SELECT: IF(…) is not translated", True),
        ("SELECT * { ?x <a> ?y }", "is not in the subset", True),
    ],
)
def test_other_engines_are_named_for_queries_only(
    text: str, said: str, other: bool, capsys: OUT
) -> None:
    assert kopl("sparql", "--kb", TINY, "--engine", "kopl", text) == 1
    error = capsys.readouterr().err
    assert said in error and ("--engine oxigraph" in error) == other
