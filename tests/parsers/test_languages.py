"""Output languages: what is written is read back, run, and says why it cannot be."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb import KnowledgeBase, KoplError
from kopl.errors import ParseError
from kopl.example import Example
from kopl.sparql.errors import QueryReadError
from kopl.text import read
from parsers.languages import (
    MOST_ARGUMENTS,
    KoplLanguage,
    NotWritableError,
    Outline,
    SparqlLanguage,
    assembled,
    tokens_of,
)


def test_programs_are_read_back(small: KnowledgeBase, small_examples: list[Example]) -> None:
    language = KoplLanguage(small)
    for example in small_examples:
        prediction = language.read(language.gold(example), -0.5)
        assert prediction.program == example.program and prediction.log_probability == -0.5
        assert read(prediction.text) == example.program
        outline = Outline.of(example.program)
        assert outline.read() == (example.program, example.asking)
        assert all(len(texts) <= MOST_ARGUMENTS for texts in outline.arguments)
        assert language.run(prediction).answer == example.answer


@pytest.mark.parametrize("style", ["data", "exact"])
def test_queries_are_read_back(
    small: KnowledgeBase, small_examples: list[Example], style: str
) -> None:
    language = SparqlLanguage(small, style)  # type: ignore[arg-type]
    for example in small_examples:
        text = language.gold(example)
        assert "".join(tokens_of(text)) == text
        prediction = language.read(text)
        assert prediction.text == text and prediction.program == example.program
        assert language.run(prediction).answer == example.answer
        assert language.of_program(example.program).text == text


@given(st.text(alphabet=st.sampled_from('ab ?{}"^\\<>\n.é'), max_size=30))
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(tokens_of(text)) == text


def test_tokens_split_at_blanks_quotes_and_carets() -> None:
    found = tokens_of('?v <pred:value> "New York"^^xsd:string .')
    assert found == ["?v", " <pred:value>", ' "', "New", " York", '"', "^^", "xsd:string", " ."]


def test_an_examples_own_query_comes_first(small: KnowledgeBase) -> None:
    language = SparqlLanguage(small)
    own = 'SELECT DISTINCT ?e WHERE {\n ?e <pred:name>   "Peru" . }'
    example = Example("?", read('Find("Norway")'), sparql=own)
    assert language.gold(example) == 'SELECT DISTINCT ?e WHERE { ?e <pred:name> "Peru" . }'
    for wrong in (Example("?", read('Find("x")'), sparql="SELECT"),
                  Example("?", read("Count(Count(FindAll()))"))):  # fmt: skip
        with pytest.raises(NotWritableError, match="no query says its program"):
            language.gold(wrong)


def test_queries_that_no_program_says_run_on_the_engine(small: KnowledgeBase) -> None:
    pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed (extra 'sparql')")
    language = SparqlLanguage(small)
    text = (
        'SELECT DISTINCT ?e WHERE { ?e <pred:name> ?n . FILTER ( ?n = "Peru" || ?n = "Mali" ) . }'
    )
    prediction = language.read(text)
    assert prediction.program is None and prediction.error is None
    outcome = language.run(prediction)
    assert sorted(outcome.denotation) == ["Mali", "Peru"]
    assert (outcome.answer, outcome.state, outcome.trace) == (None, "several", None)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", ParseError, "function's name is missing"),
        ("Find <arg> x <func> Fnd", ParseError, "did you mean Find"),
        ("Find <arg> x <func> Find <arg> y", ParseError, "2 calls are left over"),
        ("Find <arg> x <func> And", ParseError, "takes 2 inputs"),
        ("Count", ParseError, "takes 1 input"),
    ],
)
def test_programs_that_cannot_be_read(
    small: KnowledgeBase, text: str, kind: type[KoplError], message: str
) -> None:
    language = KoplLanguage(small)
    prediction = language.read(text, -1.0)
    assert prediction.program is None
    with pytest.raises(kind, match=message):
        language.run(prediction)


@pytest.mark.parametrize("text", ["", "SELECT", "ASK { ?e <p> }", 'ASK { ?e <p> "x }', "{" * 400])
def test_queries_that_cannot_be_read(small: KnowledgeBase, text: str) -> None:
    language = SparqlLanguage(small)
    with warnings.catch_warnings(), pytest.raises(QueryReadError):
        warnings.simplefilter("error")
        language.run(language.read(text))


def test_functions_that_do_not_fit_together() -> None:
    with pytest.raises(ParseError, match="takes 1 input, found 0"):
        assembled(["Count"], [()])
    with pytest.raises(ParseError, match="2 calls are left over"):
        assembled(["FindAll", "FindAll"], [(), ()])
    with pytest.raises(ParseError, match="0 calls are left over"):
        assembled([], [])
