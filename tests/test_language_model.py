"""The commands that measure a language model: settings side by side, and driving the tools."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example, write_examples
from tests.parsers.conftest import small, small_examples
from tests.parsers.llm_server import Server, chat, made_run, question_of, replying, server

pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
pytest.importorskip("httpx", reason="httpx is not installed (extra 'endpoints')")

__all__ = ["server", "small", "small_examples"]

OSLO = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
measuring: Any = importlib.import_module("benchmarks.language_model")


def test_cells_are_asked_once_and_go_on(
    tmp_path: Path, small: KnowledgeBase, small_examples: list[Example], server: Server
) -> None:
    known = replying(small_examples)
    server.play = lambda body, number: (
        chat("no idea") if question_of(body) == small_examples[1].question else known(body, number)
    )
    run = made_run(tmp_path / "run", small, small_examples, server.url, "llm.cache=off")
    write_examples(tmp_path / "asked.jsonl", small_examples[:3])
    results = tmp_path / "results.jsonl"
    arguments = measuring.argparse.Namespace(
        questions=str(tmp_path / "asked.jsonl"), programs=False, every=1, offset=0, most=None
    )
    name, questions = measuring.asked_of(arguments)
    asking = measuring.Asking(str(run), None, "")
    measuring.measure(asking, questions[:2], ["zero", "votes"], name, "dev", results)
    assert len(server.asked) == 2 * (1 + 3)
    with results.open("a", encoding="utf-8") as file:  # as a stop in the middle of a line leaves it
        file.write('{"set": "asked", "pa')
    measuring.measure(asking, questions, ["zero", "votes"], name, "dev", results)
    assert len(server.asked) == 3 * (1 + 3)
    lines = list(measuring.table(measuring.lines_of(results)))
    assert [
        line for line in lines if line.startswith("| zero | 3 | 67 % | 21–94 | 0 | 0 | 1 | 0 |")
    ]
    assert len(lines) == 1 + 2 + 2
    assert len(server.asked[0]["messages"]) < len(server.asked[1]["messages"])


def test_programs_are_compared_where_nothing_is_known(small_examples: list[Example]) -> None:
    one = measuring.OfFile(small_examples[0], "0", True)
    assert one.judge(None) == "failed"


def test_an_agent_calls_tools_until_it_cites(
    tmp_path: Path, small: KnowledgeBase, server: Server
) -> None:
    pytest.importorskip("mcp", reason="the package of the extra 'mcp' is not installed")
    from kopl_cli.mcp.server import server as tools_server
    from kopl_cli.mcp.tools import Tools
    from parsers.models.llm.settings import LlmSettings
    from tests.mcp.clients import talk

    driving: Any = importlib.import_module("benchmarks.agent")
    calls = [
        ("search", {"text": "Norway"}),
        ("schema", {"program": 'Find("Norway")', "text": "capital"}),
        ("run_program", {"program": OSLO}),
        ("evidence", {"program": OSLO}),
    ]
    replies = iter([driving.as_call(*one) for one in calls])
    server.play = lambda body, _: chat(next(replies))
    settings = LlmSettings(
        base_url=server.url, grammar="llama.cpp", cache=str(tmp_path / "cache"), retries=0
    )

    async def use(client: Any) -> Any:
        return await driving.Agent(client, settings, "told").answer("What is Norway's capital?")

    found = talk(tools_server(Tools(small)), use)
    assert (found.answers, found.facts, found.error) == (["Oslo"], 1, "")
    assert found.calls == [tool for tool, _ in calls]
    # What may be called next is in the grammar: facts are cited for what was run.
    first, *_, last = (body["grammar"] for body in server.asked)
    assert "schema" not in first and "evidence" in last
    assert "evidence" not in server.asked[2]["grammar"]
    said = json.loads(server.asked[-1]["messages"][-1]["content"])
    assert said["denotation"] == ["Oslo"]

    server.asked.clear()
    server.play = lambda body, number: chat("I would rather talk.")
    other = LlmSettings(base_url=server.url, grammar="none", cache="off", retries=0)

    async def talks_on(client: Any) -> Any:
        return await driving.Agent(client, other, "told").answer("Well?")

    found = talk(tools_server(Tools(small)), talks_on)
    assert not found.answers and "no call of a tool" in found.error
