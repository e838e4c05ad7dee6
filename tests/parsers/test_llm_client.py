"""Asking a language model: busy and broken servers, the cache, the budget, the key, grammars."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.text import read, to_nested_json, write_nested
from kopl_base.chat import AskError, Completion
from kopl_base.http import Backoff
from tests.conftest import ROOT
from tests.parsers.llm_server import (
    Answer,
    Server,
    chat,
    made_run,
    question_of,
    replying,
    server,
)

pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
pytest.importorskip("httpx", reason="httpx is not installed (extra 'endpoints')")

from parsers.models.llm.client import FIELDS, BudgetError, Client, Served
from parsers.models.llm.settings import LlmSettings
from parsers.parser import Parser

__all__ = ["server"]

KEY = "sk-very-secret-0815"
QUICK = Backoff(first=0.001, most=0.01)
BODY = {"messages": [{"role": "user", "content": "What is the area of Peru?"}]}
OSLO = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'


def client(server: Server, folder: Path | None = None, **settings: Any) -> Client:
    """What asks the server; quickly again where it is busy."""
    chosen = LlmSettings(**{"base_url": server.url, "name": "m", "retries": 3, **settings})
    return Client(Served(chosen, QUICK), folder, chosen.budget)


def quick(parser: Parser) -> Parser:
    """A parser that asks again at once where its server is busy."""
    model: Any = parser.model
    model.client.backend = Served(model.own, QUICK)
    return parser


def used(text: str, read: int = 90, written: int = 10) -> Answer:
    """A reply that says what it took."""
    found = json.loads(chat(text)[2])
    found["usage"] = {"prompt_tokens": read, "completion_tokens": written}
    return 200, {}, json.dumps(found).encode()


def test_busy_and_broken_servers_are_asked_again(server: Server) -> None:
    failures: list[Answer | None] = [
        (429, {"Retry-After": "0.01"}, b"slow down"), (500, {}, b"oops"), None,
    ]  # fmt: skip
    server.play = lambda body, number: failures[number] if number < 3 else used("yes")
    asking = client(server)
    assert asking.ask(BODY) == Completion("yes", False, 90, 10)
    assert len(server.asked) == 4 and asking.usage.tokens == 100
    assert server.asked[0]["model"] == "m"


def test_a_slow_server_is_asked_again(server: Server) -> None:
    def play(body: dict[str, Any], number: int) -> Answer | None:
        if number:
            return chat("yes")
        server.free.wait(60)
        return None

    server.play = play
    assert client(server, timeout=2.0, retries=50).ask(BODY).text == "yes"


def test_a_server_that_stays_broken_is_an_error_and_no_answer(server: Server) -> None:
    server.play = lambda body, _: (500, {}, b"oops")
    with pytest.raises(AskError, match=r"status 500: oops \(4 tries\)"):
        client(server).ask(BODY)


def test_replies_are_kept_by_what_was_asked(server: Server, tmp_path: Path) -> None:
    server.play = lambda body, _: chat(f"seed {body.get('seed')}")
    asking = client(server, tmp_path)
    assert [asking.ask({**BODY, "seed": n}).text for n in (1, 2, 1)] == [
        "seed 1",
        "seed 2",
        "seed 1",
    ]
    assert (asking.usage.asked, asking.usage.kept, len(server.asked)) == (2, 1, 2)
    client(server, tmp_path, name="another").ask({**BODY, "seed": 1})
    assert len(server.asked) == 3
    for file in tmp_path.rglob("*.json"):
        file.write_text('{"text": "half')
    assert asking.ask({**BODY, "seed": 1}).text == "seed 1" and len(server.asked) == 4


PROCESS = """
import sys
from pathlib import Path
from parsers.models.llm.client import Client, Served
from parsers.models.llm.settings import LlmSettings
asking = Client(Served(LlmSettings(base_url=sys.argv[1], name="m")), Path(sys.argv[2]))
for _ in range(2):
    for number in range(30):
        assert asking.ask({"messages": [], "seed": number}).text == f"reply {number}" * 2000
print(asking.usage.asked)
"""


def test_two_processes_share_the_cache(server: Server, tmp_path: Path) -> None:
    server.play = lambda body, _: chat(f"reply {body['seed']}" * 2000)
    command = [sys.executable, "-c", PROCESS, server.url, str(tmp_path / "cache")]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)
    ]
    asked = [int(one.communicate()[0]) for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert sum(asked) == len(server.asked) and 30 <= sum(asked) <= 60
    third = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (third.returncode, third.stdout) == (0, "0\n"), third.stderr
    assert len(list((tmp_path / "cache").rglob("*"))) == 30 + len(
        list((tmp_path / "cache").iterdir())
    )


def test_a_budget_stops_and_what_was_asked_is_not_asked_again(
    server: Server, tmp_path: Path, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    known = replying(small_examples)

    def play(body: dict[str, Any], number: int) -> Answer:
        return used(json.loads(known(body, number)[2])["choices"][0]["message"]["content"])

    server.play = play
    questions = [example.question for example in small_examples[:6]]
    pairs = ["llm.workers=1", "llm.budget=250"]
    folder = made_run(tmp_path / "run", small, small_examples[6:], server.url, *pairs)
    with pytest.raises(BudgetError, match=r"300 tokens are used, of a budget \(llm.budget\)"):
        Parser.load(folder).model.predict(questions)
    assert len(server.asked) == 3
    again = Parser.load(folder).model
    found = again.predict(questions)
    assert all(one[0].program is not None for one in found) and len(server.asked) == 6
    assert "3 replies asked for (270 tokens read, 30 written), 3 taken" in again.remarks()[0]


def test_an_evaluation_goes_on_where_it_broke(
    server: Server, tmp_path: Path, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    known, asked = replying(small_examples), [one.question for one in small_examples[:12]]
    broken = {asked[7]}
    server.play = lambda body, number: (
        (500, {}, b"") if question_of(body) in broken else known(body, number)
    )
    folder = made_run(tmp_path / "run", small, small_examples[12:], server.url,
                      "llm.workers=3", "llm.retries=1")  # fmt: skip
    with pytest.raises(AskError, match="status 500"):
        quick(Parser.load(folder)).model.predict(asked)
    broken.clear()
    first = [question_of(body) for body in server.asked]
    found = quick(Parser.load(folder)).model.predict(asked)
    assert [str(one[0].program) for one in found] == [
        write_nested(one.program) for one in small_examples[:12]
    ]
    later = [question_of(body) for body in server.asked[len(first) :]]
    assert len(later) == len(set(later)) and asked[7] in later
    assert not (set(later) - {asked[7]}) & (set(first) - {asked[7]})


def test_no_more_are_asked_at_once_than_the_settings_say(
    server: Server, tmp_path: Path, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    server.play = replying(small_examples)
    folder = made_run(tmp_path / "run", small, small_examples, server.url, "llm.workers=2")
    Parser.load(folder).model.predict([one.question for one in small_examples[:20]])
    assert len(server.asked) == 20 and server.most_at_once <= 2


def test_the_key_is_nowhere(
    server: Server, tmp_path: Path, small: KnowledgeBase, small_examples: list[Example],
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from kopl_cli import main

    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", KEY)
    server.play = replying(small_examples)
    pair = "llm.key_from=MY_KEY"
    folder = made_run(tmp_path / "run", small, small_examples, server.url, pair)
    assert main(["ask", "--run", str(folder), small_examples[0].question, "--json"]) == 0
    report = ["--data", str(folder / "train.jsonl"), "--predictions", str(tmp_path / "p.jsonl")]
    assert main(["eval", str(folder), *report, "--html", str(tmp_path / "r.html")]) == 0
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    for status in (401, 403, 400, 500):
        server.play = lambda body, _, status=status: (
            status, {}, json.dumps({"error": {"message": f"wrong key {KEY}"}}).encode()
        )  # fmt: skip
        assert main(["ask", "--run", str(folder), f"What about {status}?", "--json"]) != 0
    server.play = lambda body, _: (200, {}, f"<html>{KEY}</html>".encode())
    with pytest.raises(AskError) as caught:
        client(server, key_from="MY_KEY").ask(BODY)
    told = capsys.readouterr()
    texts = [told.out, told.err, caplog.text, str(caught.value), repr(caught.value)]
    texts += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert len(texts) > 12 and "MY_KEY" in "".join(texts)
    assert not [text[:200] for text in texts if KEY in text]


def keeping(server_field: str | None) -> Any:
    """What plays a server that keeps to grammars told in one field, or in none."""

    def play(body: dict[str, Any], _: int) -> Answer:
        told = {"grammar", "structured_outputs", "guided_grammar", "ebnf", "response_format"}
        given = [name for name in told if name in body]
        if given and given != [server_field]:
            return (400, {}, b"unknown field") if server_field else chat("Oslo.")
        if given == ["response_format"]:
            schema = body["response_format"]["json_schema"]["schema"]
            if "said" in schema["properties"]:
                return chat(json.dumps({"said": schema["properties"]["said"]["enum"][0]}))
            return chat(json.dumps({"program": to_nested_json(read(OSLO))}))
        text = body.get(server_field or "")
        text = text["grammar"] if isinstance(text, dict) else text
        if text and text.startswith('root ::= "kopl-'):
            return chat(text.split('"')[1])
        return chat(OSLO)

    return play


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("grammar", "llama.cpp"), ("structured_outputs", "structured_outputs"),
        ("guided_grammar", "guided_grammar"), ("ebnf", "ebnf"),
        ("response_format", "json-schema"), (None, "none"),
    ],
)  # fmt: skip
def test_what_a_server_keeps_to_is_found_out_once(
    field: str | None, name: str, server: Server, tmp_path: Path, small: KnowledgeBase,
    small_examples: list[Example],
) -> None:  # fmt: skip
    server.play = keeping(field)
    folder = made_run(tmp_path / "run", small, small_examples, server.url, "llm.grammar=auto")
    for _ in range(2):
        parser = Parser.load(folder)
        assert parser.ask("What is the capital of Norway?")[0].text == "Oslo"
        assert f"grammar: {name}" in parser.model.remarks()[0]
    probes = len(FIELDS) if name == "none" else list(FIELDS).index(name) + 1
    assert len(server.asked) == probes + 1
    assert (field is None) or field in server.asked[-1]


def test_a_server_that_is_broken_while_it_is_probed_is_an_error(server: Server) -> None:
    server.play = lambda body, _: (503, {}, b"loading")
    with pytest.raises(AskError, match="status 503: loading"):
        _ = client(server).grammar


llguidance = pytest.importorskip("llguidance", reason="llguidance is not installed")


def drawn(grammar: str, chance: random.Random, most: int = 400) -> str | None:
    """A text drawn byte by byte under a GBNF grammar; None where it did not end in time."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"<|end|>"]
    table = types.SimpleNamespace(
        eos_token_id=256, bos_token_id=None, tokens=tokens, special_token_ids=[256]
    )
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes(table)))
    matcher = llguidance.LLMatcher(tokenizer, llguidance.gbnf_to_lark.any_to_lark(grammar))
    assert not matcher.is_error(), matcher.get_error()
    found = bytearray()
    while len(found) < most:
        mask = matcher.compute_bitmask()
        allowed = [n for n in range(257) if mask[n // 8] >> (n % 8) & 1]
        token = 256 if 256 in allowed and chance.random() < 0.5 else chance.choice(allowed)
        if token == 256:
            return found.decode("utf-8")
        matcher.consume_token(token)
        found.append(token)
    return None


class _Bytes:
    """A tokenizer of bytes."""

    def __init__(self, table: Any) -> None:
        vars(self).update(vars(table))

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


def test_whatever_is_drawn_under_the_grammar_runs(
    server: Server, tmp_path: Path, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    chance = random.Random(7)
    texts: list[str] = []

    def play(body: dict[str, Any], _: int) -> Answer:
        while True:
            if (text := drawn(body["grammar"], chance)) is not None:
                texts.append(text)
                return chat(text)

    server.play = play
    pairs = ["llm.grammar=llama.cpp", "llm.depth=4", "llm.workers=1"]
    folder = made_run(tmp_path / "run", small, small_examples, server.url, *pairs)
    model = Parser.load(folder).model
    for example in small_examples[:12]:
        [prediction] = model.predict([example.question])[0]
        assert prediction.error is None and prediction.program is not None, texts[-1]
        model.language.run(prediction)
    assert len(set(texts)) > 6


def test_a_file_goes_the_same_way(
    tmp_path: Path, small: KnowledgeBase, small_examples: list[Example],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    asked: list[dict[str, Any]] = []

    class Llama:
        def __init__(self, path: str, **options: Any) -> None:
            assert Path(path).read_bytes() == b"GGUF" and options["n_ctx"] == 6144

        def close(self) -> None:
            """As the package frees its memory."""

        def create_chat_completion(self, **body: Any) -> dict[str, Any]:
            asked.append(body)
            choice = {"message": {"content": OSLO}, "finish_reason": "stop"}
            return {"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}

    grammars = types.SimpleNamespace(from_string=lambda text, verbose: ("grammar", text))
    module = types.SimpleNamespace(Llama=Llama, LlamaGrammar=grammars)
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    folder = made_run(tmp_path / "run", small, small_examples, "http://localhost:1",
                      f"llm.local={file}", "llm.grammar=auto")  # fmt: skip
    parser = Parser.load(folder)
    assert parser.ask("What is the capital of Norway?")[0].text == "Oslo"
    assert asked[0]["grammar"][1].startswith("root ::= ") and asked[0]["temperature"] == 0
    assert (
        "(5 tokens read, 2 written), 0 taken from the cache; grammar: llama.cpp"
        in (parser.model.remarks()[0])
    )
    file.unlink()
    with pytest.raises(AskError, match=r"there is no such file; llm\.local names a model in GGUF"):
        Parser.load(folder).ask("What is the capital of Peru?")
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(AskError, match=r"llama-cpp-python is not installed.*\[local\]"):
        Parser.load(folder).ask("What is the capital of Peru?")
