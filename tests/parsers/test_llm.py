"""The few-shot parser: what it shows, how it reads replies, repairs, votes, learns corrections."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb import Builder, KnowledgeBase
from kopl.answer_forms import Exists, Is
from kopl.example import Example
from kopl.text import read, write_nested
from kopl_base.errors import SettingsError
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

from kopl_cli import main
from parsers.models.llm.examples import ExampleIndex, PromptExample
from parsers.models.llm.replies import as_asked, program_in
from parsers.models.llm.settings import LlmSettings
from parsers.parser import Answer as Answered
from parsers.parser import Parser

__all__ = ["server"]

NORWAY = "What is the capital of Norway?"
OSLO = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
Run = Callable[..., Parser]


@pytest.fixture
def run(tmp_path: Path, small: KnowledgeBase, small_examples: list[Example], server: Server) -> Run:
    """A parser that asks the server, with some settings of its own."""

    def made(*pairs: str) -> Parser:
        folder = tmp_path / "run"
        place = folder if folder.exists() else made_run(
            folder, small, small_examples[:-7], server.url, *pairs
        )  # fmt: skip
        return Parser.load(place)

    server.play = replying(small_examples)
    return made


def one(parser: Parser, question: str = NORWAY) -> Answered:
    """The best answer to a question."""
    return parser.ask(question)[0]


def says(*replies: str | Answer) -> Callable[[dict[str, Any], int], Answer]:
    """What plays a model that gives these replies, one after the other; the last one for ever."""
    left = list(replies)

    def play(body: dict[str, Any], _: int) -> Answer:
        found = left.pop(0) if len(left) > 1 else left[0]
        return chat(found) if isinstance(found, str) else found

    return play


def test_it_answers_what_the_model_writes(run: Run, small_examples: list[Example]) -> None:
    parser = run()
    found = [one(parser, example.question).answers for example in small_examples[-7:]]
    assert found == [(example.answer,) for example in small_examples[-7:]]


@pytest.mark.parametrize(
    "reply",
    [
        f"```kopl\n{OSLO}\n```", f"Sure! Here it is:\n```\n{OSLO}\n```\nIt finds the capital.",
        f"<think>Norway … maybe Count(FindAll())?</think>\n{OSLO}", f"A: {OSLO}", f"`{OSLO}`",
        f"{OSLO} Q: What is next?", OSLO.replace(", ", " ,\n "), OSLO.replace("Norway", "norway"),
    ],
)  # fmt: skip
def test_programs_are_found_in_replies(run: Run, server: Server, reply: str) -> None:
    server.play = says(reply)
    assert one(run()).text == "Oslo" and len(server.asked) == 1


def test_reasoning_that_does_not_end_has_no_program() -> None:
    assert program_in(f"<think>It may be {OSLO}") == ""
    assert program_in('VerifyStr(QueryAttr(Find("a)b"), "k"), "(") x') == (
        'VerifyStr(QueryAttr(Find("a)b"), "k"), "(")'
    )


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("I do not know.", "It is no program: "),
        ("SELECT ?x WHERE { ?x <capital> ?y }", "It is no program: "),
        ("挪威的首都是奥斯陆", "It is no program: "),
        ('Count(QueryAttr(Find("Norway"), "area"))', "It is wrong: "),
        ('QueryName(Relate(Find("Norway"), "capitol", "forward"))', "did you mean 'capital'?"),
        ('QueryName(FilterConcept(Relate(Find("Norway"), "capital", "forward"), "country"))',
         "It is empty after call 3, FilterConcept('country'). There are: backward capital."),
        (chat(OSLO[:20], finish_reason="length"), "the reply was cut"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_sent_back(
    run: Run, server: Server, reply: str | Answer, told: str
) -> None:
    server.play = says(reply, OSLO)
    found = one(run())
    assert found.text == "Oslo" and found.probability < 0.5
    first, second = (body["messages"] for body in server.asked)
    assert second[:-2] == first and second[-2]["role"] == "assistant"
    assert told in second[-1]["content"] and "on one line" in second[-1]["content"]


def test_a_vain_relation_is_followed_the_other_way(run: Run, server: Server) -> None:
    server.play = says(OSLO.replace("forward", "backward"))
    found = one(run())
    assert found.text == "Oslo" and found.probability == pytest.approx(0.35)
    assert len(server.asked) == 1


def test_a_vain_relation_gives_way_to_one_of_its_words_that_there_is(
    tmp_path: Path, server: Server
) -> None:
    builder = Builder()
    builder.add_concept("place", "place")
    for name in ("Norway", "Mali", "Oslo", "Bamako", "Africa"):
        builder.add_entity(name, name, ["place"])
    builder.add_fact("Norway", "capital", "Oslo")
    builder.add_fact("Bamako", "capital of", "Mali")
    builder.add_fact("Mali", "part of", "Africa")  # of what it is a part is another question
    kb = builder.build()
    example = Example(NORWAY, read(OSLO), "Oslo")
    parser = Parser.load(made_run(tmp_path / "run", kb, [example], server.url))
    server.play = says(OSLO.replace("Norway", "Mali"))
    answer = one(parser, "What is the capital of Mali?")
    assert answer.text == "Bamako" and len(server.asked) == 1
    assert answer.program is not None
    assert '"capital of", "backward"' in write_nested(answer.program)
    server.play = says(OSLO.replace("Norway", "Mali").replace('"capital"', '"member of"'))
    [answer] = parser.ask("Who has Mali as a member?", least_confidence=0)
    assert answer.text != "Africa"


@pytest.mark.parametrize(
    ("question", "reply", "answer"),
    [
        # Steps in vain are left out between a thing and what is asked of it.
        ("What is the area of Peru?",
         'QueryAttr(FilterConcept(Relate(Find("Peru"), "capital", "backward"), "country"), "area")',
         "1285216 square kilometre"),
        ("What is the area of Peru?",
         'QueryAttr(FilterConcept(Find("Peru"), "city"), "area")', "1285216 square kilometre"),
        ("What is the area of Peru?",
         'QueryAttr(Relate(Find("Peru"), "capital", "forward"), "area")',
         "1285216 square kilometre"),
        # What one thing has not, another one has that the question names.
        ("Is Oslo in Norway? What is its area?", 'QueryAttr(Find("Oslo"), "area")',
         "323802 square kilometre"),
    ],
)  # fmt: skip
def test_a_near_program_that_finds_something(
    run: Run, server: Server, question: str, reply: str, answer: str
) -> None:
    server.play = says(reply)
    found = one(run(), question)
    assert found.text == answer and found.probability == pytest.approx(0.35)
    assert len(server.asked) == 1


def test_a_count_of_nothing_is_no_count_of_the_thing_itself(run: Run, server: Server) -> None:
    server.play = says('Count(Relate(Find("Norway"), "code", "forward"))')
    assert one(run("llm.repairs=0"), "How many codes has Norway?").answers == ()


def test_two_repairs_at_most_then_it_does_not_know(run: Run, server: Server) -> None:
    server.play = says("I do not know.")
    found = one(run())
    assert found.answers == () and found.refused is not None and found.refused.kind == "unsure"
    assert len(server.asked) == 3


def test_nothing_is_repaired_where_choice_is_not_guided(run: Run, server: Server) -> None:
    server.play = says("I do not know.", OSLO)
    [[prediction]] = run().model.predict([NORWAY])
    assert prediction.program is None and len(server.asked) == 1


def test_samples_vote_by_what_they_answer(run: Run, server: Server) -> None:
    also = 'QueryName(FilterConcept(Relate(Find("Norway"), "capital", "forward"), "city"))'
    lima = OSLO.replace("Norway", "Peru")
    replies = [lima, OSLO, also, OSLO, lima]
    server.play = lambda *_: chat(replies[len(server.asked) - 1])
    best, other = run("llm.samples=5").ask(NORWAY, top=2)
    assert (best.text, other.text) == ("Oslo", "Lima")
    assert (best.probability, other.probability) == pytest.approx((3 / 6, 2 / 6))
    assert [body["temperature"] for body in server.asked] == [0.0, 0.7, 0.7, 0.7, 0.7]


def test_votes_that_spread_refuse(run: Run, server: Server) -> None:
    names = ["Norway", "Peru", "Mali", "Fiji", "Chad"]
    server.play = lambda *_: chat(OSLO.replace("Norway", names[len(server.asked) % 5 - 1]))
    parser = run("llm.samples=5")
    refused = one(parser).refused
    assert refused is not None and refused.kind == "unsure" and refused.near == ("Oslo",)
    assert parser.ask(NORWAY, least_confidence=0)[0].text == "Oslo"
    parser.ask("What is the capital of Peru?", least_confidence=0)
    seeds = [body["seed"] for body in server.asked]
    first, third = seeds[:5], seeds[-5:]
    assert first[0] == third[0] == 0 and len({*first, *third}) == 9  # each question draws anew


def test_prompts_begin_alike_and_show_what_is_like_the_question(run: Run, server: Server) -> None:
    parser = run("llm.examples=3")
    one(parser)
    one(parser, "What is the area of Mali?")
    systems = [body["messages"][0] for body in server.asked]
    assert systems[0] == systems[1] and "Relate(E, relation, direction): " in systems[0]["content"]
    assert "capital: country → city" in systems[0]["content"]
    _, *turns = server.asked[0]["messages"]
    assert [one["role"] for one in turns] == ["user", "assistant"] * 4 + ["user"]
    known, asked = turns[0]["content"], turns[-1]["content"]
    assert known.startswith('What is known:\n"Norway" (country): forward capital; keys ')
    assert asked == NORWAY
    # The most similar one stands beside the question.
    like, program = (one["content"] for one in turns[-3:-1])
    assert "capital" in like and program.startswith('QueryName(Relate(Find("')


def test_without_retrieval_or_schema(run: Run, server: Server) -> None:
    parser = run("llm.retrieved=false", "llm.schema=false", "llm.examples=4")
    one(parser)
    one(parser, "What is the area of Mali?")
    (*first, norway), (*second, mali) = (body["messages"] for body in server.asked)
    assert first == second and len(first) == 1 + 2 * 4
    assert (norway["content"], mali["content"]) == (NORWAY, "What is the area of Mali?")


def test_examples_are_varied() -> None:
    def example(question: str, program: str, words: str) -> PromptExample:
        return PromptExample(question, program, (), tuple(words.split()))

    capital = 'QueryName(Relate(Find("{}"), "capital", "forward"))'
    words = "what is the capital of <>"
    same = [example(f"{n}?", capital.format(n), words) for n in range(5)]
    area = 'QueryAttr(Relate(Find("x"), "capital", "forward"), "area")'
    other = example("o?", area, f"{words} like")
    unlike = [example(f"u{n}", "Count(FindAll())", f"how many {n} like {n + 1}") for n in range(99)]
    index = ExampleIndex([*same, other, *unlike])
    assert index.like(words.split(), 2) == [same[0], other]
    assert not set(unlike) & set(index.like(words.split(), 9))
    assert index.like(words.split(), 9) == [same[0], other, same[1]]  # two of one program at most
    assert index.sample(3, 1) == index.sample(3, 1) and len(index.sample(999, 1)) == 105


@pytest.mark.parametrize(
    ("question", "program", "asked", "form"),
    [
        ("Is Oslo the capital of Norway?", OSLO,
         'Count(And(Relate(Find("Norway"), "capital", "forward"), Find("Oslo")))', Exists()),
        ("Is it?", 'And(Relate(Find("Norway"), "capital", "forward"), Find("Oslo"))',
         'Count(And(Relate(Find("Norway"), "capital", "forward"), Find("Oslo")))', Exists()),
        ("is norway bigger", 'SelectBetween(Find("Norway"), Find("Peru"), "area", "greater")',
         'SelectBetween(Find("Norway"), Find("Peru"), "area", "greater")', Is("Norway")),
        ("Does Oslo have one?", 'Count(Find("Oslo"))', 'Count(Find("Oslo"))', Exists()),
        ("Are there any?", 'QueryName(FilterConcept(FindAll(), "city"))',
         'Count(FilterConcept(FindAll(), "city"))', Exists()),
        ("How many are there?", 'Count(Find("Oslo"))', 'Count(Find("Oslo"))', None),
        ("Is it 5?", 'VerifyStr(QueryAttr(Find("Oslo"), "code"), "5")',
         'VerifyStr(QueryAttr(Find("Oslo"), "code"), "5")', None),
    ],
)  # fmt: skip
def test_yes_and_no(question: str, program: str, asked: str, form: object) -> None:
    names = ["Oslo", "Norway"] if "Oslo the capital" in question else []
    found, asking = as_asked(read(program), question, names)
    assert (str(found), asking.form) == (asked, form)


def test_what_was_corrected_is_shown_at_once(
    run: Run, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = run("llm.examples=2")
    assert parser.folder is not None
    question = "Where does the government of Norway sit?"
    server.play = says("no idea")
    assert one(parser, question).answers == ()
    folder = str(parser.folder)
    assert main(["correct", "--run", folder, question, OSLO, "--author", "Ann"]) == 0
    asked = len(server.asked)
    one(parser, "Where does the government of Mali sit?")
    told = [one["content"] for one in server.asked[asked]["messages"]]
    assert told[told.index(question) + 1] == OSLO
    capsys.readouterr()
    assert main(["learn", "--run", folder]) != 0
    assert "what was corrected is among the examples" in capsys.readouterr().err


def test_training_only_makes_an_index(
    tmp_path: Path, small: KnowledgeBase, small_examples: list[Example],
    capsys: pytest.CaptureFixture[str], server: Server,
) -> None:  # fmt: skip
    from kb import write_snapshot

    write_snapshot(small, tmp_path / "small.kopl")
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(one.to_json()) + "\n" for one in small_examples), "utf-8")
    own = tmp_path / "own.jsonl"
    mine = Example("Norway's seat of government?", read(OSLO), "Oslo")
    own.write_text(json.dumps(mine.to_json()) + "\n", "utf-8")
    pairs = [
        f"kb={tmp_path / 'small.kopl'}", f"data={data}", f"output={tmp_path / 'run'}",
        f"llm.base_url={server.url}", f"llm.own={own}", f"llm.cache={tmp_path / 'cache'}",
        "llm.grammar=none",
    ]  # fmt: skip
    sets = [part for pair in pairs for part in ("--set", pair)]
    assert main(["train", "--config", "llm", *sets]) == 0
    assert "nothing is trained" in capsys.readouterr().out and not server.asked
    lines = (tmp_path / "run" / "examples.jsonl").read_text("utf-8").splitlines()
    assert json.loads(lines[0])["question"] == mine.question
    server.play = replying([*small_examples])
    assert main(["eval", str(tmp_path / "run")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "100.00 %" in told and "10 replies asked for" in told and "grammar: none" in told
    assert main(["eval", str(tmp_path / "run"), "--json"]) == 0
    asked = len(server.asked)
    assert main(["eval", str(tmp_path / "run")]) == 0 and len(server.asked) == asked


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_url": "https://me:secret@host/v1"}, "must not carry a password or a key"),
        ({"base_url": "https://host/v1?api_key=abc"}, "must not carry a password or a key"),
        ({"key_from": "sk-abc.def"}, "name of an environment variable, not the key"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"grammar": "bnf"}, "grammar must be one of auto"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        LlmSettings(**change)
    assert "secret" not in str(caught.value) and "sk-abc" not in str(caught.value)


def test_the_question_is_found_in_a_body() -> None:
    turns = (("user", "a?"), ("assistant", "b"), ("user", "c?"))
    body = {"messages": [{"role": role, "content": content} for role, content in turns]}
    assert question_of(body) == "c?"
