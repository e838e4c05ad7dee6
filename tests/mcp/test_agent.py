"""A scripted agent answers people's questions: it searches, looks at the schema, runs and cites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the package of the extra 'mcp' is not installed")

from kb import load
from kopl.evidence import Evidence
from kopl.program import Call, post_order
from kopl.text import read
from kopl.types import Kind, Type
from kopl_cli.mcp.server import server
from kopl_cli.mcp.tools import Tools
from tests.conftest import ROOT
from tests.mcp.clients import talk

QUESTIONS = 50

# What search calls the kinds of arguments that are names.
SEARCHED = {
    Kind.NAME: "any",
    Kind.CONCEPT: "concept",
    Kind.RELATION: "relation",
    Kind.KEY: "key",
    Kind.QUALIFIER_KEY: "qualifier key",
}


def _questions() -> Iterator[tuple[str, Call, list[str]]]:
    """Questions that people wrote, of the part for development, with a program and its answers."""
    for line in (ROOT / "benchmarks" / "people" / "world.jsonl").open(encoding="utf-8"):
        asked = json.loads(line)
        if asked["part"] == "dev" and asked["programs"] and "answer_form" not in asked:
            yield asked["question"], read(asked["programs"][0]), asked["answers"][0]


class ScriptedAgent:
    """Asks only through tools, in the order that the server's instructions tell."""

    def __init__(self, client: Any) -> None:
        self.client, self.calls = client, 0

    async def use(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool gives; it must not be an error, and must be short unless asked to be long."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, (tool, arguments, result.content)
        if "limit" not in arguments:
            assert len(result.content[0].text.encode()) <= 2048
        self.calls += 1
        return result.structured_content

    async def answer(self, program: Call) -> list[str]:
        """The answers to a question that a program says, each step checked."""
        for call in post_order(program):
            for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
                if kind in SEARCHED:
                    found = await self.use("search", text=text, kind=SEARCHED[kind])
                    assert text in [match["name"] for match in found["matches"]], text
            await self.look_around(call)
        checked = await self.use("check_program", program=str(program))
        assert checked["well_typed"] and "hints" not in checked
        ran = await self.use("run_program", program=str(program), limit=1000)
        cited = await self.use("evidence", program=str(program))
        assert cited["minimal"] and cited["state"] == ran["state"]
        assert cited["count"] >= len(cited["facts"]) > 0
        return ran["denotation"]

    async def look_around(self, call: Call) -> None:
        """See in the schema of what a call is given that the relation or key is there."""
        named = dict(
            zip([name for name, _ in call.function.arguments], call.arguments, strict=True)
        )
        wanted = named.get("relation") or named.get("key")
        if (
            wanted is None
            or not call.inputs
            or not Type.ENTITIES.accepts(call.inputs[0].function.output)
        ):
            return
        rows = (await self.use("schema", program=str(call.inputs[0]), text=wanted))["rows"]
        known = {(row["name"], row.get("direction")) for row in rows}
        assert (wanted, named.get("direction")) in known or named.get("direction") is None
        assert wanted in {name for name, _ in known}


def test_it_answers_fifty_questions_of_people() -> None:
    tools = Tools(load("world"))
    asked = list(_questions())[:QUESTIONS]
    assert len(asked) == QUESTIONS

    async def use(client: Any) -> int:
        agent = ScriptedAgent(client)
        for question, program, answers in asked:
            assert sorted(await agent.answer(program)) == sorted(answers), question
        return agent.calls

    assert talk(server(tools), use) >= 4 * QUESTIONS


def test_the_evidence_of_its_answers_gives_them_alone() -> None:
    from kopl.executor import Executor

    executor = Executor(load("world"))
    for question, program, answers in list(_questions())[:QUESTIONS:5]:
        found = executor.evidence(program)
        assert isinstance(found, Evidence) and found.is_minimal
        alone = Executor(found.knowledge_base())
        assert sorted(alone.denote(program)) == sorted(answers), question
