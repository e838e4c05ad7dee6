"""Ids, relations and keys as IRI references: one to one, and safe to resolve with any tool."""

from __future__ import annotations

import re
from urllib.parse import urljoin

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kb.rdf.iri import BASE, VOCABULARY, decode, encode

CASES = [
    ("Q36159", "Q36159"),
    ("place of birth", "place_of_birth"),
    ("snake_case", "snake%5Fcase"),
    ("100%", "100%25"),
    ("%20", "%2520"),
    ("", "%20"),
    (" ", "_"),
    ("/m/Q1", "%2Fm/Q1"),
    ("in/out", "in/out"),
    ("a//b", "a/%2Fb"),
    ("//", "%2F%2F"),
    ("pred:name", "pred%3Aname"),
    ("a:b/c:d", "a%3Ab/c:d"),
    ("/a:b/c", "%2Fa%3Ab/c"),
    ("http://a.b/c?d#e", "http%3A/%2Fa.b/c%3Fd%23e"),
    (".", "%2E"),
    ("..", "%2E%2E"),
    ("a/../b", "a/%2E%2E/b"),
    ("...", "..."),
    ("a.b", "a.b"),
    ("what?", "what%3F"),
    ("#1", "%231"),
    ('<>"{}|^`\\[]', "%3C%3E%22%7B%7D%7C%5E%60%5C%5B%5D"),
    ("two\nlines\t", "two%0Alines%09"),
    ("東京", "東京"),
    ("e\u0301t\u00e9", "e\u0301t\u00e9"),
    ("\U0001f600", "\U0001f600"),
    ("a\u00a0b\u3000", "a%C2%A0b%E3%80%80"),
    ("\u202e", "%E2%80%AE"),
    ("\ue000\ufdd0\uffff", "%EE%80%80%EF%B7%90%EF%BF%BF"),
    ("!$&'()*+,=~-@", "!$&'()*+,=~-@"),
    ("a;b;", "a;b%3B"),
]

# Dense in what matters, with every character now and then.
awkward = st.text(
    st.sampled_from("ab._/;:%?#& @25F2[]\\\u00e9\u00a0\u3000\ue000\ufdd0\U0001f600\x00\n\u202e")
    | st.characters(),
    max_size=9,
)


@pytest.mark.parametrize(("text", "iri"), CASES)
def test_encoded(text: str, iri: str) -> None:
    assert encode(text) == iri
    assert decode(iri) == text


@given(awkward)
@example("")
def test_back_to_the_text(text: str) -> None:
    assert decode(encode(text)) == text


@given(st.lists(awkward, min_size=2, max_size=30, unique=True))
def test_different_texts_differ(texts: list[str]) -> None:
    assert len({encode(text) for text in texts}) == len(texts)


# RFC 3987: isegment-nz-nc, then isegments; ucschar abbreviated to what is not ASCII.
_REFERENCE = re.compile(
    r"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-F]{2}|[^\x00-\x9f\s])+"
    r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2}|[^\x00-\x9f\s])*)*"
)


@given(awkward)
def test_a_legal_reference_that_resolves_to_itself(text: str) -> None:
    iri = encode(text)
    assert _REFERENCE.fullmatch(iri)
    assert iri not in VOCABULARY
    assert urljoin(BASE, iri) == BASE + iri


@settings(deadline=None)  # the first example imports rdflib
@given(awkward.filter(lambda text: text.isprintable() or text.isascii()))
def test_rdflib_and_pyoxigraph_resolve_alike(text: str) -> None:
    rdflib, pyoxigraph = pytest.importorskip("rdflib"), pytest.importorskip("pyoxigraph")
    iri = encode(text)
    assert str(rdflib.URIRef(iri, base=BASE)) == BASE + iri
    turtle = f"<{iri}> <{iri}> <{iri}> ."
    form = pyoxigraph.RdfFormat.TURTLE
    (quad,) = pyoxigraph.parse(turtle, format=form, base_iri=BASE)
    assert [term.value for term in list(quad)[:3]] == [BASE + iri] * 3


@pytest.mark.parametrize(
    ("iri", "text"),
    [
        ("a%2fb", "a/b"),
        ("caf%c3%a9", "caf\u00e9"),
        ("%FF", "%FF"),
        ("50%", "50%"),
        ("a%20b", "a b"),
        ("a//b", "a//b"),
    ],
)
def test_references_that_others_wrote(iri: str, text: str) -> None:
    assert decode(iri) == text
