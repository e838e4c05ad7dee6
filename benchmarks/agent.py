"""A language model drives the tools of `kopl mcp`: it searches, looks at the schema, runs, cites.

    python benchmarks/agent.py --local MODEL.gguf                    # ten of people's questions
    python benchmarks/agent.py --base-url http://localhost:8080/v1 --name MODEL --count 40

The model sees what every agent is told (the server's instructions, its resource kopl://functions),
one finished conversation, and the question (of benchmarks/people/world.jsonl, part dev). Each of
its replies is one call of a tool as JSON, where the server keeps to a grammar under one that lets
it write nothing else; what the tool says is the next message, cut where it is long. It has found
its answer when it cites facts for a program: what that denotes is compared with what is right.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# The folder of this file has a module with the name of a package.
sys.path[:] = [str(ROOT), *(p for p in sys.path if Path(p).resolve() != ROOT / "benchmarks")]

from mcp import Client  # noqa: E402

from kb import load  # noqa: E402
from kopl_base.errors import KoplError  # noqa: E402
from kopl_cli.mcp.server import server  # noqa: E402
from kopl_cli.mcp.tools import Tools  # noqa: E402
from parsers.models.llm.client import FIELDS, client_of  # noqa: E402
from parsers.models.llm.settings import LlmSettings  # noqa: E402

# Beside the script stands the folder of its questions, which a type checker takes for the module.
people: Any = importlib.import_module("benchmarks.people")

# What each tool is called with, the text of an argument by its name.
ARGUMENTS = {
    "search": ("text",),
    "schema": ("program", "text"),
    "run_program": ("program",),
    "evidence": ("program",),
}
LIMITS = {"search": 4, "schema": 8, "run_program": 10, "evidence": 5}
CALLS = 8
# So often in a row a tool may be called: a small model looks at schemas for ever.
IN_A_ROW = 2
SHOWN = 700  # characters of what a tool says
FORM = """
Each message of yours is one call of a tool, as JSON on one line:
{"tool": "search", "text": "…"}
{"tool": "schema", "program": "Find(\\"…\\")", "text": "…"}
{"tool": "run_program", "program": "…"}
{"tool": "evidence", "program": "…"}
Call evidence last, with the program whose answer is right."""
EXAMPLE = (
    "Who directs the museum where the painting Sunrise hangs?",
    ("search", {"text": "Sunrise"}, '{"count":1,"matches":[{"name":"Sunrise","kind":"entity"}]}'),
    ("schema", {"program": 'Find("Sunrise")', "text": "hangs in"},
     '{"count":1,"rows":[{"kind":"relation","name":"collection","direction":"forward"}]}'),
    ("schema", {"program": 'Relate(Find("Sunrise"), "collection", "forward")', "text": "directs"},
     '{"count":1,"rows":[{"kind":"relation","name":"director","direction":"forward"}]}'),
    ("run_program", {"program": 'QueryName(Relate(Relate(Find("Sunrise"), "collection", "forward"),'
                                ' "director", "forward"))'},
     '{"state":"single answer","answer":"Ann Lee","count":1,"denotation":["Ann Lee"]}'),
    ("evidence", {"program": 'QueryName(Relate(Relate(Find("Sunrise"), "collection", "forward"),'
                             ' "director", "forward"))'}, ""),
)  # fmt: skip
_TEXT = 'text ::= "\\"" ([^"\\\\\\x00-\\x1F] | "\\\\\\"" | "\\\\\\\\"){1,300} "\\""'


def grammar_of(tools: Sequence[str]) -> str:
    """A grammar, in GBNF, of one call of one of some tools."""

    def call(tool: str) -> str:
        parts = [f'"{{\\"tool\\": \\"{tool}\\""']
        parts += [f'", \\"{name}\\": " text' for name in ARGUMENTS[tool]]
        return " ".join([*parts, '"}"'])

    return f"root ::= {' | '.join(map(call, tools))}\n{_TEXT}\n"


def as_call(tool: str, arguments: dict[str, str]) -> str:
    """A call as the model writes it."""
    return json.dumps({"tool": tool, **arguments}, ensure_ascii=False)


@dataclass
class Talk:
    """What an agent did about one question."""

    question: str
    calls: list[str] = field(default_factory=list)
    program: str = ""
    answers: list[str] = field(default_factory=list)
    facts: int = 0
    error: str = ""


class Agent:
    """A language model that may call the tools of a client of the protocol."""

    def __init__(self, tools: Client, settings: LlmSettings, told: str) -> None:
        self._tools, self._told = tools, told
        self._model = client_of(settings, 1)
        self._way = self._model.grammar if settings.grammar == "auto" else settings.grammar

    async def answer(self, question: str) -> Talk:
        """Ask until facts are cited, or enough is called."""
        talk = Talk(question)
        messages = [*self._begun(), {"role": "user", "content": question}]
        may_cite = False
        for number in range(CALLS):
            tools = ["search"] if not number else [*ARGUMENTS][: len(ARGUMENTS) - (not may_cite)]
            last = talk.calls[-IN_A_ROW:]
            if len(last) == IN_A_ROW and len(set(last)) == 1 and last[0] != "run_program":
                tools.remove(last[0])
            try:
                tool, arguments = self._next(messages, tools)
            except ValueError as error:
                talk.error = str(error)
                break
            talk.calls.append(tool)
            result = await self._tools.call_tool(tool, {**arguments, "limit": LIMITS[tool]})
            said = " ".join(part.text for part in result.content if hasattr(part, "text"))
            found = result.structured_content or {}
            if tool == "evidence" and not result.is_error:
                talk.program, talk.facts = arguments["program"], int(found.get("count", 0))
                ran = await self._tools.call_tool(
                    "run_program", {"program": talk.program, "limit": 1000}
                )
                talk.answers = list((ran.structured_content or {}).get("denotation", []))
                return talk
            may_cite = may_cite or (tool == "run_program" and bool(found.get("count")))
            messages.append({"role": "assistant", "content": as_call(tool, arguments)})
            messages.append({"role": "user", "content": said[:SHOWN]})
        return talk

    def _begun(self) -> list[dict[str, str]]:
        """What stands before every question: what is told, and a finished conversation."""
        asked, *steps = EXAMPLE
        messages = [{"role": "system", "content": self._told}, {"role": "user", "content": asked}]
        for tool, arguments, said in steps:
            messages.append({"role": "assistant", "content": as_call(tool, arguments)})
            messages += [{"role": "user", "content": said}] if said else []
        return messages

    def _next(
        self, messages: list[dict[str, str]], tools: Sequence[str]
    ) -> tuple[str, dict[str, str]]:
        """The next call; raises ValueError for what is none."""
        fields = {}
        if self._way not in ("none", "json-schema"):
            fields = FIELDS[self._way](grammar_of(tools))
        body = {
            "messages": messages, "max_tokens": 200, "temperature": 0.0, "seed": 0, **fields,
        }  # fmt: skip
        reply = self._model.ask(body)
        try:
            call = json.loads(reply.text)
            tool = str(call["tool"])
            return tool, {name: str(call[name]) for name in ARGUMENTS[tool]}
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"no call of a tool: {reply.text[:80]}") from None


async def talks(arguments: argparse.Namespace) -> tuple[list[tuple[Any, Talk]], str]:
    """What the agent did about each question, and what asking took."""
    every = people.questions(people.FOLDER / "world.jsonl")
    asked = [one for one in every if one.part == "dev" and not one.outside and one.form is None]
    asked = asked[arguments.offset :: arguments.every][: arguments.count]
    settings = LlmSettings(
        base_url=arguments.base_url, name=arguments.name, local=arguments.local,
        grammar=arguments.grammar, cache=arguments.cache, context=arguments.context,
    )  # fmt: skip
    found = []
    async with Client(server(Tools(load("world")))) as client:
        functions = await client.read_resource("kopl://functions")
        listed = " ".join(part.text for part in functions.contents if hasattr(part, "text"))
        agent = Agent(client, settings, f"{client.instructions}\n{listed}\n{FORM}")
        for one in asked:
            talk = await agent.answer(one.question)
            found.append((one, talk))
            right = "right" if one.accepts(talk.answers) and talk.answers else "wrong"
            print(f"{right}: {one.question}\n    {' → '.join(talk.calls)} {talk.error}")
            print(f"    {talk.program or 'no program'} → {'; '.join(talk.answers[:5])}"
                  f" ({talk.facts} facts)", flush=True)  # fmt: skip
        return found, agent._model.usage.told()


def main() -> int:
    """Ask, print what became of it."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--base-url", default=LlmSettings.base_url, help="a server's address")
    parser.add_argument("--name", default="", help="the model's name there")
    parser.add_argument("--local", default="", help="a GGUF file, instead of a server")
    parser.add_argument("--grammar", default="auto", help="as the setting llm.grammar")
    parser.add_argument("--cache", default="", help="as the setting llm.cache")
    parser.add_argument("--context", type=int, default=6144, help="tokens, of a file")
    parser.add_argument("--count", type=int, default=10, help="questions (default: 10)")
    parser.add_argument("--every", type=int, default=12, help="of the questions each N-th")
    parser.add_argument("--offset", type=int, default=0, help="beginning with this one")
    arguments = parser.parse_args()
    begin = time.process_time()
    found, usage = asyncio.run(talks(arguments))
    right = sum(bool(talk.answers) and one.accepts(talk.answers) for one, talk in found)
    calls = sum(len(talk.calls) for _, talk in found)
    print(f"{right} of {len(found)} right, {calls} calls; {usage};"
          f" {time.process_time() - begin:.0f} s of processor time")  # fmt: skip
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KoplError as error:
        sys.exit(f"agent.py: {error}")
