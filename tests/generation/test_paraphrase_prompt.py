"""Prompt files, and the question in what a model replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from generation.paraphrase.originals import Original
from generation.paraphrase.prompt import load_prompt, question_in, read_prompt
from kopl.example import Example
from kopl.text import read
from kopl_base.errors import ReadError


def test_the_bundled_prompt() -> None:
    program = read('QueryAttr(Find("Land 0"), "area")')
    original = Original("1", Example("What is the area of Land 0?", program))
    messages = load_prompt().messages(original)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"] == (
        "Question: What is the area of Land 0?\nKeep as they are: Land 0\n"
        'Program: QueryAttr(Find("Land 0"), "area")'
    )
    # Its example is one that the filters keep.
    question, keep, shown = messages[1]["content"].splitlines()
    example = Example(question.partition(": ")[2], read(shown.partition(": ")[2]))
    one = Original("1", example)
    assert keep.partition(": ")[2] == " · ".join(one.standing)
    assert one.missing(messages[2]["content"]) == []
    assert one.distance(messages[2]["content"]) > 0.3


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text("\ufeff\nSay {question} as {{JSON}}\n\n[note] {keep}\n", "utf-8")
    original = Original("1", Example("Who {x}?", read('Find("A")'), canonical="What?"))
    (message,) = load_prompt(path).messages(original)
    assert message == {"role": "user", "content": "Say Who {x}? as {JSON}\n\n[note] A"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{canonical}\n{anser}", r"p: line 2: there is no placeholder {anser}; there are {canon"),
        ("{canonical.x}", "line 1: there is no placeholder {canonical.x}"),
        ("{canonical!r}", "line 1: there is no placeholder {canonical}"),
        ("{}{canonical}", "line 1: there is no placeholder {}"),
        ("\n{canonical} {", "line 2: a brace stands alone"),
        ("}{canonical}", "line 1: a brace stands alone"),
        ("say it again: {program}", "p: the prompt names neither {canonical} nor {question}"),
        ("", "the prompt names neither"),
        ("[user]\n{canonical}\n[assistant]\nNo", "the last message of a prompt must be the user's"),
        ("[user]\n{canonical}\n[system]\nx\n[user]\ny", "the message of the system comes first"),
    ],
)
def test_malformed_prompts(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        read_prompt(text, "p")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("Who leads Norway?", "Who leads Norway?"),
        ('  "Who leads Norway?" \n', "Who leads Norway?"),
        ("“Who leads Norway?”", "Who leads Norway?"),
        ("Sure! Here it is:\n\nWho leads Norway?\n\nI hope it helps.", "Who leads Norway?"),
        ("Sure.\nWho leads Norway?", "Who leads Norway?"),
        ("1. Who leads Norway?\n2. Who heads it?", "Who leads Norway?"),
        ("**Paraphrase:** Who leads Norway?", "Who leads Norway?"),
        ("Paraphrased question: Who leads\tNorway?", "Who leads Norway?"),
        ("<think>Is it?\nmaybe</think>Who leads Norway?", "Who leads Norway?"),
        ("<think>endless thought?", ""),
        ('Is "A" in "B"?', 'Is "A" in "B"?'),
        ('"A" or "B"', '"A" or "B"'),
        ("Name the king of Norway.", "Name the king of Norway."),
        ("Question:", ""),
        ("", ""),
        ('"', '"'),
        ("1.", "1."),
    ],
)
def test_the_question_in_a_reply(reply: str, question: str) -> None:
    assert question_in(reply) == question
