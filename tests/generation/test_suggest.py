"""Wordings that a model suggests: what is asked, what is kept, and going on after a stop."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from generation.lexicon import Lexicon, parse_annotations, read_annotations
from generation.lexicon.annotations import CONCEPTS, KEYS, NAMES, QUALIFIERS, RELATIONS
from generation.lexicon.proposals import Sieve, proposed
from generation.lexicon.review import review
from generation.lexicon.suggest import SuggestionPlan, suggest
from kb import Builder, KnowledgeBase, write_lines
from kopl_base.chat import AskError
from kopl_base.errors import ReadError, WriteError
from kopl_cli import main
from tests.generation.paraphrase_server import Answer, Server, chat, model, server

__all__ = ["server"]

GOOD = {
    "capital": "Sure!\n- noun: seat of government\n**forward**: is the seat of\n"
    "tail question: Where is {} governed from?\nhead question: what is {} the main city of",
    "member of": "backward: belongs to\nforward: has {} as one of its members",
    "place of birth": "noun: birthplace\ntail question: where was {} born",
    "area": "noun: size\nadjective: vast\nquestion: how large is {}\nkeyword: size",
    "title": "given: as\nquestion: what was the rank",
    "country": "noun: nation\nnoun: state",
}


def name_of(body: dict[str, Any]) -> str:
    """The name that is asked for."""
    return str(body["messages"][-1]["content"]).partition("\n")[0].rpartition(": ")[2]


def play(body: dict[str, Any], _: int) -> Answer:
    return chat(GOOD.get(name_of(body), "I cannot help with that."))


def run(kb: KnowledgeBase, reply: str, section: str, name: str) -> tuple[list[Any], Counter[str]]:
    plan = SuggestionPlan(kb)
    sieve = Sieve(plan.lexicon, {KEYS: ("depth", "noun: bottom\nadjective: deep")})
    kept = sieve.sift(section, name, plan.samples.ends(section, name), reply)
    return kept.wordings, kept.reasons


# --- what is kept --------------------------------------------------------------------------------


def test_lines_of_a_reply() -> None:
    reply = 'Here:\n1. noun: "seat"\n* Tail_Question: who runs {}?\nforward: none\nwhat: x\nnoun:\n'
    assert list(proposed(RELATIONS, reply)) == [("noun", "seat"), ("tail question", "who runs {}?")]


POOR = [
    (RELATIONS, "capital", "noun: capital", "said already"),
    (RELATIONS, "capital", "noun: the capital", "said already"),
    (RELATIONS, "capital", "noun: seat of", "no noun"),
    (RELATIONS, "capital", "noun: is governed from", "no noun"),
    (RELATIONS, "capital", "noun: seat of {}", "no noun"),
    (RELATIONS, "capital", "noun: one two three four five six seven", "too long"),
    (RELATIONS, "capital", "noun: seat <b>", "signs that are no words"),
    (RELATIONS, "capital", "noun: столица", "no words"),
    (RELATIONS, "capital", "noun: city of Paris", "a name"),
    (RELATIONS, "capital", "forward: city", "no verb"),
    (RELATIONS, "capital", "forward: zorbs up", "no verb"),
    (RELATIONS, "capital", "tail question: is {} big", "no question"),
    (RELATIONS, "capital", "tail question: where do they govern", "no {} or several"),
    (RELATIONS, "capital", "tail question: where is {} or {}", "no {} or several"),
    (RELATIONS, "capital", "tail question: where is the the capital of {}", "a word twice"),
    (RELATIONS, "capital", "several: true", "no field that can be proposed"),
    (RELATIONS, "member of", "forward: is a member of", "said of the other end"),
    (RELATIONS, "capital", "noun: seat of the second", "words of the prompt"),
    (KEYS, "area", "adjective: very large", "too long"),
    (KEYS, "area", "question: how large is it", "no {} or several"),
    (QUALIFIERS, "title", "given: rank", "nothing that stands before a value"),
    (CONCEPTS, "city", "noun: is a town", "no noun"),
    (RELATIONS, "capital", "backward: governed by", "no verb"),
    (RELATIONS, "place of birth", "noun: place", "half of what it is called"),
    (KEYS, "inception", "question: when was {}", "an unfinished question"),
    (KEYS, "area", "question: which is larger, {}", "an unfinished question"),
    (QUALIFIERS, "title", "question: when was the bridge built", "a question of some other thing"),
    (CONCEPTS, "city", "noun: country", "said of another name"),
    (KEYS, "area", "keyword: elevation", "said of another name"),
    (KEYS, "area", "noun: bottom", "said of the example"),
    (KEYS, "inception", "adjective: late", "an adjective of no number"),
]


@pytest.mark.parametrize(("section", "name", "reply", "reason"), POOR)
def test_poor_wordings(
    lands: KnowledgeBase, section: str, name: str, reply: str, reason: str
) -> None:
    assert run(lands, reply, section, name) == ([], Counter([reason]))


def test_names_of_the_facts_are_no_words(lands: KnowledgeBase) -> None:
    [(land, _), *_] = SuggestionPlan(lands).samples.ends(RELATIONS, "capital")
    reply = f"tail question: where is {{}} governed, as {land} is"
    assert run(lands, reply, RELATIONS, "capital") == ([], Counter(["a name of a fact"]))


def test_good_wordings(lands: KnowledgeBase) -> None:
    wordings, reasons = run(lands, GOOD["capital"], RELATIONS, "capital")
    assert not reasons
    assert [next(iter(fields)) for fields in wordings] == [
        "noun", "forward", "tail_question", "head_question",
    ]  # fmt: skip
    assert wordings[2]["tail_question"] == "where is {} governed from"
    wordings, reasons = run(lands, GOOD["area"], KEYS, "area")
    assert reasons == {"said already": 1}  # the keyword is the noun that was just kept
    assert wordings[1] == {"adjective": ("more vast", "most vast", "less vast", "least vast"),
                           "how": "vast"}  # fmt: skip


# --- the run -------------------------------------------------------------------------------------


def test_a_file_for_review(lands: KnowledgeBase, tmp_path: Path, server: Server) -> None:
    server.play = play
    outs = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for out, workers in zip(outs, (1, 5), strict=True):
        plan = SuggestionPlan(lands, seed=3)
        report = suggest(plan, model(server, workers=workers), out)
        assert (report.names, report.worded, report.silent) == (len(plan.names), 6, 0)
        assert report.kept == 14 and report.reasons.total() == 2
        assert not list(tmp_path.glob("*.part*"))
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert len({name_of(body) for body in server.asked}) == len(plan.names)
    asked = next(body for body in server.asked if name_of(body) == "capital")
    assert [message["role"] for message in asked["messages"]] == [
        "system", "user", "assistant", "user",
    ]  # fmt: skip
    assert "the capital of" in asked["messages"][-1]["content"]
    found = read_annotations(outs[0])
    assert {
        (section, name)
        for section, entries in found.sections.items()
        for name, given in entries.items()
        if "suggested by my-model" in given.todo
    } == {
        (RELATIONS, "capital"), (RELATIONS, "member of"), (RELATIONS, "place of birth"),
        (KEYS, "area"), (QUALIFIERS, "title"), (CONCEPTS, "country"),
    }  # fmt: skip
    lexicon = Lexicon(lands, found)
    main_one, *further = lexicon.variants(lexicon.relation("capital", "forward")).words
    assert main_one.noun("X") == "the capital of X"  # the main wording was not in doubt
    assert further[0].noun("X") == "the seat of government of X"
    assert further[2].asked("X") == "where is X governed from"
    doubts = [doubt.name for doubt in review(lands, found) if "suggested" in doubt.reason]
    assert sorted(doubts) == sorted(GOOD)


def test_a_doubtful_name_gets_main_words(tmp_path: Path, server: Server) -> None:
    builder = Builder()
    builder.add_concept("c", "person")
    for name in ("Ann", "Ben"):
        builder.add_entity(name, name, ["c"])
    builder.add_fact("Ann", "studies", "Ben")
    kb = builder.build()
    server.play = lambda body, _: chat(
        "backward: studies\nbackward: examines\ntail question: what does {} study"
        if name_of(body) == "studies" else ""
    )  # fmt: skip
    plan = SuggestionPlan(kb, doubtful=True)
    assert plan.names == [(RELATIONS, "studies")]
    suggest(plan, model(server), tmp_path / "words.yaml")
    given = read_annotations(tmp_path / "words.yaml").of(RELATIONS)["studies"]
    assert given.fields["backward"].one == "studies" and "noun" not in given.fields
    assert given.fields["tail_question"] == "what does {} study"
    assert [fields["backward"].one for fields in given.also] == ["examines"]
    assert "is it a verb or a plural?" in given.todo


def test_entries_that_were_looked_at_stay(
    lands: KnowledgeBase, tmp_path: Path, server: Server
) -> None:
    server.play = play
    given = parse_annotations(
        "relations:\n  capital: {noun: main town, also: [chief town]}\n"
        "keys:\n  area: {todo: look}\nnames:\n  Dunmore: {the: true}\n"
    )
    plan = SuggestionPlan(lands, given)
    assert (RELATIONS, "capital") not in plan.names and (KEYS, "area") in plan.names
    suggest(plan, model(server), tmp_path / "words.yaml")
    found = read_annotations(tmp_path / "words.yaml")
    capital, area = found.of(RELATIONS)["capital"], found.of(KEYS)["area"]
    assert (capital.fields["noun"], capital.todo) == ("main town", "")
    assert [dict(fields) for fields in capital.also] == [{"noun": "chief town"}]
    assert re.fullmatch(r"suggested by my-model: look at every wording; look", area.todo)
    assert found.of(NAMES)["Dunmore"].fields == {"the": True}
    assert SuggestionPlan(lands, found).lexicon.name("Dunmore").plain() == "the Dunmore"


def test_the_same_for_several_names(lands: KnowledgeBase, tmp_path: Path, server: Server) -> None:
    server.play = lambda body, _: chat("noun: thing of note\nadjective: grand")
    report = suggest(SuggestionPlan(lands), model(server), tmp_path / "words.yaml")
    assert report.reasons["the same for several names"] > 10
    found = read_annotations(tmp_path / "words.yaml")
    assert found.of(KEYS)["area"].also[0]["how"] == "grand"
    relations = found.of(RELATIONS).values()
    assert not any("thing of note" in fields.values() for g in relations for fields in g.also)


def test_a_stopped_run_goes_on(lands: KnowledgeBase, tmp_path: Path, server: Server) -> None:
    out, whole = tmp_path / "words.yaml", tmp_path / "whole.yaml"
    server.play = play
    suggest(SuggestionPlan(lands), model(server), whole)
    asked = len(server.asked)
    server.play = lambda body, n: (
        play(body, n) if len(server.asked) < asked + 6 else (401, {}, b"no")
    )
    with pytest.raises(AskError) as caught:
        suggest(SuggestionPlan(lands), model(server, workers=1), out)
    assert "the key is wrong or missing" in str(caught.value)
    assert "words.yaml.part has 5 replies: go on with --resume" in str(caught.value)
    assert not out.exists()
    server.play = play
    before = len(server.asked)
    with pytest.raises(WriteError):
        suggest(SuggestionPlan(lands), model(server), out)
    with pytest.raises(ReadError, match="another seed"):
        suggest(SuggestionPlan(lands, seed=1), model(server), out, resume=True)
    suggest(SuggestionPlan(lands), model(server), out, resume=True)
    assert len(server.asked) - before == len(SuggestionPlan(lands).names) - 5
    assert out.read_bytes() == whole.read_bytes()


def test_names_without_a_reply(lands: KnowledgeBase, tmp_path: Path, server: Server) -> None:
    server.play = lambda body, n: (
        (400, {}, b"too hard") if name_of(body) == "area" else play(body, n)
    )
    out = tmp_path / "words.yaml"
    report = suggest(SuggestionPlan(lands, keep_going=True), model(server), out)
    assert report.silent == 1 and report.worded == 5
    assert "suggested" not in read_annotations(out).of(KEYS)["area"].todo
    server.play = play
    plan = SuggestionPlan(lands, keep_going=True)
    assert suggest(plan, model(server), out, resume=True).worded == 6


def test_a_reply_that_is_cut_short(lands: KnowledgeBase, tmp_path: Path, server: Server) -> None:
    server.play = lambda body, _: chat(
        "noun: size\nquestion: how many acres does" if name_of(body) == "area" else "",
        finish_reason="length",
    )
    report = suggest(SuggestionPlan(lands), model(server), tmp_path / "words.yaml")
    assert (report.kept, report.reasons.total()) == (1, 0)


# --- the command ---------------------------------------------------------------------------------


def test_the_command(
    lands: KnowledgeBase, tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.play = play
    kb, out = tmp_path / "lands.jsonl", tmp_path / "words.yaml"
    write_lines(lands, kb)
    begin = ["lexicon", "suggest", str(kb), "-o", str(out)]
    assert main([*begin, "--endpoint", server.url, "--model", "m"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "kopl: kept 14 of 16 wordings, for 6 of 25 names (said already 2)\n" in said.err
    assert f"then: kopl lexicon check {kb} {out}" in said.err
    assert main(["lexicon", "check", str(kb), str(out)]) == 1
    assert "todo: suggested by m" in capsys.readouterr().out
    assert main([*begin, "--endpoint", server.url, "--model", "m"]) == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert main([*begin, "--force", "--endpoint", server.url]) == 2
    assert "--endpoint needs --model" in capsys.readouterr().err
    assert main(["lexicon", "suggest", "world", "-o", str(tmp_path / "w.yaml"), "--endpoint",
                 server.url, "--model", "m", "--doubtful"]) == 0  # fmt: skip
    assert "nothing is asked" in capsys.readouterr().err
    assert main([*begin[:-1], "-", "--endpoint", server.url, "--model", "m"]) == 2


def test_an_endpoint_that_is_not_there(
    lands_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "words.yaml"
    assert main(["lexicon", "suggest", lands_file, "-o", str(out), "--endpoint",
                 "http://127.0.0.1:9/v1", "--model", "m", "--retries", "0"]) == 2  # fmt: skip
    assert "http://127.0.0.1:9/v1/chat/completions: cannot be reached" in capsys.readouterr().err
    assert not list(tmp_path.glob("words*"))


def test_a_model_that_answers_nonsense_is_told(
    lands_file: str, tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.play = lambda body, _: chat("Certainly! As you wish.")
    out = tmp_path / "words.yaml"
    begin = ["lexicon", "suggest", lands_file, "-o", str(out)]
    assert main([*begin, "--endpoint", server.url, "--model", "m"]) == 1
    assert "no reply held a wording that can be read" in capsys.readouterr().err
