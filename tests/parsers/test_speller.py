"""Slips of the pen in questions, mended before they are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb import Builder, KnowledgeBase
from kopl.example import Example
from parsers.linking import Linker
from parsers.models.pointer.model import PointerModel
from parsers.settings import Settings
from parsers.spelling import Speller, english
from parsers.tokens import Question, Vocabulary


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("captial", "capital"), ("Curency", "Currency"), ("coastlne", "coastline"),
        ("wich", "which"), ("Unemploymnet", "Unemployment"), ("poeple", "people"),
    ],
)  # fmt: skip
def test_a_slip_is_mended_in_its_case(typed: str, meant: str) -> None:
    speller = Speller(
        ["with", "which", "pople", "people", "capital", "currency", "coastline", "unemployment"]
    )
    assert speller.text(f"{typed}?") == f"{meant}?"


def test_known_words_codes_and_addresses_stay() -> None:
    speller = Speller(["capital", "folk"], ["capitol"])
    for text in ("capitol", "FOLX", "folk2", "www.capitel.org", "http://a.b/capitel", "fol", "xyz"):
        assert speller.text(text) == text


def test_two_slips_are_mended_in_long_words_only() -> None:
    speller = Speller(["kyrgyzstan", "kurdistan", "river"])
    assert speller.word("Kyrgistan") == "Kyrgyzstan"
    assert speller.word("rivvee") == "rivvee"


def test_words_of_names_are_meant_and_those_of_strings_known() -> None:
    builder = Builder()
    builder.add_concept("country", "country")
    builder.add_entity("kz", "Kazakhstan", ["country"], ["Qazaqstan"])
    builder.add_attribute("kz", "motto", "Forwerd")
    speller = Linker(builder.build()).speller(["capital", "forward"])
    assert speller.text("captial of Kazahkstan") == "capital of Kazakhstan"
    assert speller.text("forwerd") == "forwerd"
    assert speller.text("becuase") == "because"  # a common word of English


def test_the_common_words_are_words() -> None:
    words = english()
    assert len(words) == len(set(words)) > 1000
    assert all(word.isalpha() and word.islower() for word in words)


def test_words_are_ranked_by_how_often_they_occur() -> None:
    questions = [Question.of("b a b"), Question.of("a b c")]
    assert Vocabulary.of(questions, ["d"], ranked=True).words == ["b", "a", "d"]
    assert Vocabulary.of(questions, ["d"]).words == ["a", "b", "d"]


def test_a_model_reads_what_is_meant(
    settings: Settings, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """Its vocabulary has no slip of the pen where the examples tell what was meant."""
    slips = [
        replace(
            one,
            question=one.question.replace("What", "Waht"),
            extra={**one.extra, "clean": one.question},
        )
        for one in small_examples
    ]
    model = PointerModel.create(settings, small, slips)
    assert "what" in model.vocabulary.words
    assert "waht" not in model.vocabulary.words
    assert model.read("Waht is it?").text == "What is it?"
