"""What the tools give, what they refuse, and that it fits and validates."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the package of the extra 'mcp' is not installed")

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import Builder, KnowledgeBase, load
from kopl.executor import Executor
from kopl.functions import FUNCTIONS
from kopl_base.errors import KoplError
from kopl_cli import _parser, main
from kopl_cli.mcp.results import SearchKind
from kopl_cli.mcp.server import server
from kopl_cli.mcp.tools import ToolLimits, Tools
from kopl_cli.translate import FORMS
from tests.conftest import ROOT
from tests.mcp.clients import talk, transport

CAPITAL = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
BORDERS = 'Relate(Find("Norway"), "shares border with", "forward")'


@pytest.fixture(scope="module")
def world() -> Tools:
    return Tools(load("world"))


def called(tools: Tools, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of calls, each checked: within 2 KB unless more was asked for, and typed."""

    async def use(client: Any) -> list[Any]:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        found = []
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            [content] = result.content
            if not result.is_error:
                jsonschema.validate(result.structured_content, schemas[name])
                assert json.loads(content.text) == result.structured_content
            if "limit" not in arguments and name != "translate":
                assert len(content.text.encode()) <= 2048, (name, arguments)
            found.append(result)
        return found

    return talk(server(tools), use)


def told(tools: Tools, name: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives, or its error."""
    [result] = called(tools, (name, arguments))
    return result.structured_content or json.loads(result.content[0].text)


# --- each tool ------------------------------------------------------------------------------------


def test_search(world: Tools) -> None:
    found = told(world, "search", text="Norwey")
    assert found["matches"][0]["id"] == "country-NO"
    assert found["count"] > len(found["matches"]) and "limit" in found["more"]
    first = told(world, "search", text="capital", kind="relation")["matches"][0]
    assert (first["name"], first["kind"]) == ("capital", "relation") and first["facts"] > 100
    assert told(world, "search", text="capital")["matches"][0]["name"] == "capital"
    inside = told(world, "search", text="Georgia", concept="country")
    assert {match["id"] for match in inside["matches"]} >= {"country-GE"}
    every = told(world, "search", text="", concept="country", limit=1000)
    assert every["count"] == len(every["matches"]) == 194
    assert told(world, "search", text="Kingdom of Norway")["matches"][0]["also"]
    wrong = told(world, "search", text="x", concept="contry")["error"]
    assert wrong["kind"] == "argument" and "'country'" in wrong["to_try"]


def test_search_has_every_kind(world: Tools) -> None:
    for kind in SearchKind.__args__[1:]:  # type: ignore[attr-defined]
        found = told(world, "search", text="", kind=kind)
        assert found["count"] and {match["kind"] for match in found["matches"]} == {kind}


def test_schema(world: Tools) -> None:
    found = told(world, "schema", concept="country", text="population", limit=1)
    [row] = found["rows"]
    assert (row["kind"], row["name"], row["things"]) == ("key", "population", 194)
    assert found["things"] == 194 and "quantity" in row["values"] and "limit" in found["more"]
    by_program = told(world, "schema", program=BORDERS)
    assert by_program["things"] == 3
    [capital] = told(world, "schema", program='Find("Norway")', text="capital", limit=9)["rows"][:1]
    assert (capital["direction"], capital["example"]) == ("forward", "Oslo")
    qualifiers = told(world, "schema", concept="country", text="start time", limit=50)["rows"]
    assert {"head of state"} <= {row.get("of") for row in qualifiers}
    assert told(world, "schema")["of"] == "all things"
    assert "leave text out" in told(world, "schema", text="qqqqq")["more"]
    for arguments in ({"program": "Count(FindAll())"}, {"program": BORDERS, "concept": "country"}):
        assert told(world, "schema", **arguments)["error"]["kind"] == "argument"


def test_run_program(world: Tools) -> None:
    ran = told(world, "run_program", program=CAPITAL, trace=True)
    assert (ran["state"], ran["answer"], ran["denotation"]) == ("unique", "Oslo", ["Oslo"])
    assert [step["count"] for step in ran["trace"]] == [1, 1, 1]
    many = told(world, "run_program", program='FilterConcept(FindAll(), "country")')
    assert many["count"] == 194 > len(many["denotation"]) and "up to 194" in many["more"]
    limited = told(world, "run_program", program="FindAll()", limit=1000)
    assert len(limited["denotation"]) == 1000


@pytest.mark.parametrize(
    ("program", "instead"),
    [
        ('Relate(Find("Norway"), "capitol", "forward")', "capital (forward)"),
        ('Relate(Find("Norway"), "capital", "backward")', "capital (forward)"),
        ('FilterConcept(Find("Norway"), "city")', "constitutional monarchy"),
        ('QueryAttr(Find("Norway"), "populatoin")', "population ("),
        (f'QFilterYear({BORDERS}, "start", "1990", ">")', "length of shares border with"),
        (f'And({BORDERS}, Find("Chile"))', "nothing in common"),
        (f'Count(And({BORDERS}, Find("Chile")))', "nothing in common"),
        ('Find("Norwey")', "search(text='Norwey')"),
    ],
)
def test_where_nothing_is_found_it_says_what_there_is(
    world: Tools, program: str, instead: str
) -> None:
    assert instead in told(world, "run_program", program=program)["to_try"]


def test_check_program(world: Tools) -> None:
    checked = told(world, "check_program", program='Count(Find("Norwey"))')
    assert checked["well_typed"] and "'Norway'" in checked["hints"][0]
    assert [call["gives"] for call in checked["calls"]] == ["a set of entities", "a number"]
    wrong = told(world, "check_program", program="Count(Count(FindAll()))")
    assert not wrong["well_typed"] and wrong["error"]["call"] == 2 and wrong["error"]["to_try"]


def test_evidence(world: Tools) -> None:
    found = told(world, "evidence", program=f"Count({BORDERS})")
    assert (found["count"], found["minimal"], found["denotation"]) == (3, True, ["3"])
    assert {fact["object"] for fact in found["facts"]} == {"Finland", "Russia", "Sweden"}
    assert all(fact["qualifiers"]["length"] for fact in found["facts"])
    capped = told(world, "evidence", program="Count(FindAll())")
    assert capped["count"] > 10_000 and capped["more"]


def test_translate(world: Tools) -> None:
    schemas = server(world)._tool_manager.get_tool("translate")
    assert schemas is not None
    assert tuple(schemas.parameters["properties"]["to"]["enum"]) == FORMS
    for form in FORMS:
        assert told(world, "translate", program=CAPITAL, to=form)["form"] == form
    query = told(world, "translate", program=CAPITAL, to="sparql")["text"]
    back = told(world, "translate", program=query, source="sparql", to="nested")["text"]
    assert Executor(world.kb).denote(back) == ["Oslo"]


def test_run_sparql() -> None:
    pytest.importorskip("pyoxigraph", reason="the package of the engine is not installed")
    tools = Tools(_chain(60), limits=ToolLimits(rows=50))
    try:
        found = told(tools, "run_sparql", query="SELECT ?n WHERE { ?e <pred:name> ?n } LIMIT 3")
        assert (found["columns"], found["count"]) == (["n"], 3)
        assert told(tools, "run_sparql", query="ASK { ?e <pred:name> ?n }")["truth"] is True
        many = told(tools, "run_sparql", query="SELECT ?n WHERE { ?e <pred:name> ?n }")
        assert many["count"] == 50 and "LIMIT" in many["more"]
        for query in (
            "DROP ALL",
            "DELETE WHERE { ?s ?p ?o }",
            "INSERT DATA { <a> <b> <c> }",
            "SELECT * WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
            "",
            "SELECT",
        ):
            assert "error" in told(tools, "run_sparql", query=query), query
        assert told(tools, "run_sparql", query="ASK { ?e <pred:name> ?n }")["truth"] is True
    finally:
        tools.close()


def test_a_query_is_stopped_after_its_time() -> None:
    pytest.importorskip("pyoxigraph", reason="the package of the engine is not installed")
    tools = Tools(_chain(60), limits=ToolLimits(seconds=0.5))
    everything = " ".join(f"?a{n} ?b{n} ?c{n} ." for n in range(8))
    try:
        query = f"SELECT (COUNT(*) AS ?n) WHERE {{ {everything} }}"
        assert told(tools, "run_sparql", query=query)["error"]["kind"] == "timed out"
    finally:
        tools.close()


def _chain(length: int) -> KnowledgeBase:
    builder = Builder()
    builder.add_concept("thing", "thing")
    for n in range(length):
        builder.add_entity(f"e{n}", f"name {n}", ["thing"])
    for n in range(length - 1):
        builder.add_fact(f"e{n}", "next", f"e{n + 1}")
    return builder.build()


# --- limits and hostile input ---------------------------------------------------------------------


def test_limits(world: Tools) -> None:
    small = Tools(world.kb, limits=ToolLimits(ids=10))
    wrong = told(small, "run_program", program="Count(FindAll())")["error"]
    assert wrong["kind"] == "limit" and wrong["call"] == 0 and "narrow" in wrong["to_try"]
    deep = "Count(" * 300 + "FindAll()" + ")" * 300
    assert "error" in told(world, "run_program", program=deep)
    long = f'Find("{"x" * 30_000}")'
    [result] = called(world, ("run_program", {"program": long}))
    assert result.is_error
    for limit in (0, -1, 10**9):
        [result] = called(world, ("search", {"text": "x", "limit": limit}))
        assert result.is_error


def test_long_names_fit() -> None:
    builder = Builder()
    builder.add_concept("c", "concept")
    builder.add_entity("long", "long " * 2000, ["c"])
    builder.add_attribute("long", "text", "wörter " * 3000)
    tools = Tools(builder.build())
    ran = told(tools, "run_program", program='QueryAttr(FindAll(), "text")')
    assert ran["answer"].endswith("…") and "with a limit" in ran["more"]
    whole = told(tools, "run_program", program='QueryAttr(FindAll(), "text")', limit=1)
    assert whole["answer"] == "wörter " * 3000
    assert told(tools, "search", text="")["count"] == 3
    assert told(tools, "evidence", program='QueryAttr(FindAll(), "text")')["count"] == 1
    assert told(tools, "schema")["count"] == 1


HOSTILE = [
    "",
    " ",
    "\x00",
    "'; DROP TABLE x; --",
    "../../etc/passwd",
    "${HOME}",
    "\ud83d\ude00" * 50,
    "\u202eevil",
    "a\nb",
    "<script>",
    '"' * 99,
    "\\" * 99,
    "%00",
    "{" * 500,
    "(" * 900,
    "null",
    "Find(Find(",
    "Norway\u200b",
    "𝔘𝔫𝔦",
    "-1",
    "1e999",
    "\ufeff",
]


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_hostile_arguments(tiny: KnowledgeBase, data: st.DataObject) -> None:
    """Whatever is asked, something typed comes or an error that says something: never a crash."""
    text = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60))
    value = st.one_of(
        text,
        st.none(),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.lists(text, max_size=2),
        st.dictionaries(text, text, max_size=2),
    )
    program = st.one_of(text, text.map(lambda t: f"Find({json.dumps(t)})"))
    name, arguments = data.draw(
        st.sampled_from(
            [
                ("search", {"text": text, "kind": st.just("any")}),
                ("search", {"text": text, "concept": text}),
                ("schema", {"concept": text, "text": text}),
                ("schema", {"program": program}),
                ("run_program", {"program": program}),
                ("check_program", {"program": program}),
                ("evidence", {"program": program}),
                ("translate", {"program": program, "to": st.sampled_from(FORMS)}),
                ("run_program", {"program": value, "trace": value, "limit": value}),
                ("search", {"text": value, "kind": value, "limit": value}),
                ("none such", {"x": value}),
            ]
        )
    )
    drawn = {key: data.draw(strategy) for key, strategy in arguments.items()}
    [result] = called(Tools(tiny), (name, drawn))
    if result.is_error:
        # What the protocol's package says of a crash has nothing behind the name.
        assert result.content[0].text != f"Error executing tool {name}"


def test_long_names_that_are_not_there_are_told_in_short(tiny: KnowledgeBase) -> None:
    program = f"Find({json.dumps('(' * 900)})"
    for result in called(
        Tools(tiny), *((name, {"program": program}) for name in ("run_program", "check_program"))
    ):
        assert not result.is_error and "has no entity" in result.content[0].text


# --- resources and prompts ------------------------------------------------------------------------


def test_resources(world: Tools) -> None:
    async def use(client: Any) -> None:
        async def text(uri: str) -> str:
            [content] = (await client.read_resource(uri)).contents
            return content.text

        functions = await text("kopl://functions")
        assert len(functions.splitlines()) == len(FUNCTIONS) == 27
        for name in FUNCTIONS:
            assert FUNCTIONS[name].example in await text(f"kopl://function/{name}")
        norway = json.loads(await text("kopl://entity/country-NO"))
        assert norway["name"] == "Norway" and norway["count"] == len(norway["facts"])
        schema = json.loads(await text("kopl://schema"))
        assert schema["entities"] == world.kb.entity_count
        assert {"relation", "key", "qualifier"} == {row["kind"] for row in schema["rows"]}
        for form in ("lark", "gbnf", "json-schema"):
            assert "SelectBetween" in await text(f"kopl://grammar/{form}")
        for uri in (
            "kopl://function/Nothing",
            "kopl://entity/nobody",
            "kopl://entity/../../etc/passwd",
            "kopl://entity/%00",
            "kopl://grammar/x",
            "kopl://nothing",
            "file:///etc/passwd",
        ):
            with pytest.raises(Exception, match=r"no|No|Unknown"):
                await text(uri)

    talk(server(world), use)


def test_prompts(world: Tools) -> None:
    async def use(client: Any) -> None:
        wanted = {
            "parse_question": {"question": "Who rules?"},
            "explain_program": {"program": CAPITAL},
            "repair_program": {"program": CAPITAL, "error": "it is empty"},
        }
        prompts = (await client.list_prompts()).prompts
        assert {prompt.name for prompt in prompts} == set(wanted)
        for name, arguments in wanted.items():
            [message] = (await client.get_prompt(name, arguments)).messages
            assert all(value in message.content.text for value in arguments.values())

    talk(server(world), use)


def test_tools_are_read_only_and_described(world: Tools) -> None:
    async def use(client: Any) -> list[Any]:
        return (await client.list_tools()).tools

    tools = talk(server(world), use)
    assert [tool.name for tool in tools] == [
        "search",
        "schema",
        "run_program",
        "check_program",
        "evidence",
        "translate",
        "run_sparql",
    ]
    for tool in tools:
        assert tool.annotations.read_only_hint and tool.annotations.open_world_hint is False
        assert tool.output_schema and tool.description
        kinds = {p.get("type", "") for p in tool.input_schema["properties"].values()}
        assert not kinds & {"object", "array"}  # flat


# --- the command ----------------------------------------------------------------------------------


def test_other_commands_do_not_import_it() -> None:
    import subprocess

    program = (
        "import sys, kopl_cli\n"
        "kopl_cli.main(['functions', 'Count'])\n"
        "print([name for name in ('mcp', 'pydantic', 'uvicorn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_without_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [*sys.modules]:
        if name == "mcp" or name.startswith(("mcp.", "mcp_types", "kopl_cli.mcp.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("kopl_cli.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp", "--kb", "world"]) == 2
    assert "mcp" in capsys.readouterr().err


def test_a_token_is_needed_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KOPL_MCP_TOKEN", raising=False)
    assert main(["mcp", "--kb", "world", "--http", "--host", "0.0.0.0"]) == 2
    assert "KOPL_MCP_TOKEN" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["mcp"])


class _Parser:
    """A trained run in name only: it answers by a table, as a parser does."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def ask(self, question: str) -> list[Any]:
        from types import SimpleNamespace

        from kopl.text import read

        if not question.strip("? "):
            raise KoplError("the question is empty: it has no letter and no digit")
        refused = SimpleNamespace(message="nothing is called so", near=["Oslo"])
        known = "capital" in question
        return [
            SimpleNamespace(
                program=read(CAPITAL) if known else None,
                confidence=0.75,
                is_calibrated=True,
                refused=None if known else refused,
                error=None,
                answers=("Oslo",),
            )
        ]


def test_ask(world: Tools) -> None:
    asking = Tools(world.kb, parser=_Parser(world.kb))
    found = told(asking, "ask", question="What is the capital of Norway?")
    assert (found["answers"], found["confidence"], found["program"]) == (["Oslo"], 0.75, CAPITAL)
    refused = told(asking, "ask", question="Who?")
    assert refused["refused"] and refused["near"] == ["Oslo"] and not refused["answers"]
    assert told(asking, "ask", question="??")["error"]["message"]
    with transport("memory", world) as to:  # without a run there is no such tool

        async def use(client: Any) -> Any:
            return await client.call_tool("ask", {"question": "x"})

        assert talk(to, use).is_error


def test_the_lines_for_hosts_start_it() -> None:
    """Each configuration of the documentation is JSON, and its command line is read."""
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    blocks = [json.loads(block.split("```")[0]) for block in page.split("```json\n")[1:]]
    assert len(blocks) == 3
    lines = [line.partition(" -- kopl ")[2] for line in page.splitlines() if " -- kopl " in line]
    for block in blocks:
        [servers] = block.values()
        assert servers["kopl"]["command"] == "kopl"
        lines.append(" ".join(servers["kopl"]["args"]))
    for line in lines:
        parsed = _parser().parse_args(line.split())
        assert (parsed.kb, parsed.http) == ("world", False)
