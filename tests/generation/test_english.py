"""English inflection, measured by a table that was written by hand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from generation import english
from tests.conftest import ROOT
from tests.generation.english_table import ARTICLES, MANY, ONE, PLURALS


@pytest.mark.parametrize(("one", "several"), PLURALS)
def test_plural(one: str, several: str) -> None:
    assert english.plural(one) == several


@pytest.mark.parametrize("said", ARTICLES)
def test_article(said: str) -> None:
    assert english.with_article(said.partition(" ")[2]) == said


@pytest.mark.parametrize("phrase", MANY)
def test_several(phrase: str) -> None:
    assert english.is_plural(phrase)
    assert english.with_article(phrase) == phrase


@pytest.mark.parametrize("phrase", ONE)
def test_one(phrase: str) -> None:
    assert not english.is_plural(phrase)
    assert english.with_article(phrase).endswith(f" {phrase}")


def test_plurals_of_the_table_are_told_as_such() -> None:
    told = {many: english.is_plural(many) for one, many in PLURALS if one != many}
    assert [many for many, plural in told.items() if not plural] == []
    assert [one for one, many in PLURALS if one != many and english.is_plural(one)] == []


def test_the_library_is_imported_when_a_word_is_asked_for() -> None:
    script = (
        "import sys, generation, generation.lexicon, generation.blocks, kopl_cli\n"
        "from generation import english\n"
        "print('inflect' in sys.modules, english.plural('wolf'), 'inflect' in sys.modules)\n"
        "import typeguard\n"
        "checked = typeguard.typechecked\n"
        "print(english.plural('narwhal'), 'inflect' in sys.modules)\n"
        "print(typeguard.typechecked is checked)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "wolves", "False", "narwhals", "True", "True"]


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("The Netherlands", "The Netherlands'"),
        ("the Bahamas", "the Bahamas'"),
        ("Estonian Nationalists and Conservatives", "Estonian Nationalists and Conservatives'"),
        ("Honduras", "Honduras's"),
        ("The Gambia", "The Gambia's"),
        ("Saint Kitts and Nevis", "Saint Kitts and Nevis's"),
    ],
)
def test_names_that_end_in_s_own(name: str, owner: str) -> None:
    assert english.possessive(name) == owner


def test_the_stands_once() -> None:
    name = "South Georgia and the South Sandwich Islands"
    assert english.name_in_sentence(name) == name
    assert english.name_in_sentence("Marshall Islands") == "the Marshall Islands"


@pytest.mark.parametrize(
    "text", ["Oslo", "7", "$", "東京", "किला", "می\u200cخواهم", "👩\u200d🔬", "Gonçalves (painter)"]
)
def test_what_can_be_read(text: str) -> None:
    assert english.can_be_read(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\u200d",
        "...",
        "?!",
        "\u0301",
        "A\x00",
        "A\nB",
        "A\x7f",
        "A\u202eB",
        "A\u200f",
        "A\u2066B\u2069",
        "\ue000A",
        "\U000f0000A",
        "A\ud800",
        "A\ufffd",
    ],
)
def test_what_cannot_be_read(text: str) -> None:
    assert not english.can_be_read(text)
