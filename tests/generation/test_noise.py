"""Noise: what it does to a question, what it never does, and that the seed alone decides it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from generation.blocks import Options, generate
from generation.makers import Plan
from generation.noise import Noise, folded_words, mistyped, tables, without_accents
from generation.run import run
from kb import Builder, KnowledgeBase
from kopl.example import Example
from kopl.text import read

# Names that one slip turns into one another, and aliases.
NAMES = (
    "Turkey", "turkey", "Niger", "Nigel", "Peru", "Perú", "The Hague", "Hague", "Martin",
    "Marin", "Guinea-Bissau", "GuineaBissau", "colour", "color", "Côte d'Ivoire", "Cote dIvoire",
    "sulphur", "São Tomé", "New York", "New Yorck", "Boeing 747", "Boeing 77", "country",
)  # fmt: skip
QUESTIONS = (
    "What is the colour of Peru's flag, and is not Turkey's in 1,234.5 of 747 metres?",
    "Who is older, Nigel of the Hague or Martin from Guinea-Bissau?",
    "Which country of the São Tomé centre that is in Côte d'Ivoire grew after 12 May 1999?",
    "How many organisations of New York (one of the twenty-one) did not fly a Boeing 747?",
)


def trap() -> KnowledgeBase:
    builder = Builder()
    builder.add_concept("c", "thing")
    for number, name in enumerate(NAMES):
        builder.add_entity(f"e{number}", name, ["c"], ["S", "NY"] if name == "sulphur" else [])
    return builder.build()


NOISE = Noise(trap(), 1.0)
WORDS = st.sampled_from(
    (*NAMES, "the", "a", "of", "what is", "is not", "longest", "rivers", "neighbours", "12", "-3.5",
     "2,000", "Peru's", "million", "d'Or", "well-known", ",", "?", "Zürich", "日本", "NATO",
     "a@b.c")
)  # fmt: skip
TEXTS = st.one_of(st.lists(WORDS, max_size=14).map(" ".join), st.text(max_size=60))


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


@given(TEXTS, st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_no_name_and_no_number_becomes_another(text: str, seed: int) -> None:
    typed, done = NOISE.typed(text, Random(seed))
    assert numbers(typed) == numbers(text)
    assert (typed != text) == bool(done)
    before = {name for name in NAMES if stands(name, text)}
    for name in NAMES:
        if stands(name, typed) and name not in before:
            # What stands there now only by its case or accents was no name before.
            same = [other for other in before if folded_words(other) == folded_words(name)]
            assert not same, (text, typed, name)
            assert folded_words(name) in windows(text), (text, typed, name)


def stands(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def windows(text: str) -> list[list[str]]:
    words = folded_words(text)
    return [words[a : b + 1] for a in range(len(words)) for b in range(a, len(words))]


@given(TEXTS, st.integers(0, 10**6))
@settings(deadline=None)
def test_the_same_seed_gives_the_same_noise(text: str, seed: int) -> None:
    assert NOISE.typed(text, Random(seed)) == Noise(trap(), 0.5).typed(text, Random(seed))


@given(st.from_regex(r"\A[A-Z]?[a-z]{4,12}\Z"), st.integers(0, 10**6))
def test_a_typo_is_one_edit_behind_the_first_letter(word: str, seed: int) -> None:
    for kind in tables().typos:
        new = mistyped(word, kind, Random(seed), tables().neighbours)
        assert new[0] == word[0]
        assert OSA.distance(word, new) == (0 if new == word else 1)
        assert len(new) - len(word) == {"drop": -1, "double": 1}.get(kind, 0)


def test_neighbours_are_those_of_the_keyboard() -> None:
    near = tables().neighbours
    assert sorted(near["s"]) == ["a", "d", "e", "w", "x", "z"]
    assert sorted(near["q"]) == ["a", "w"]
    assert sorted(near["m"]) == ["j", "k", "n"]
    assert all(key in near[other] for key in near for other in near[key])


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("lower case", "Is Oslo in NATO?", {"is oslo in nato?"}),
        ("lost punctuation", "In 2,000.5, is “Oslo”, NY, big?", {
            "In 2,000.5, is “Oslo”, NY, big", "In 2,000.5 is Oslo NY big"}),
        ("lost article", "the longest of the rivers", {
            "longest of the rivers", "the longest of rivers", "longest of rivers"}),
        ("doubled word", "Is two of Oslo 3", {"Is two of of Oslo 3"}),
        ("lost accents", "Is Zürich in São Tomé, Ærø or 日本?", {
            "Is Zurich in Sao Tome, Aero or 日本?"}),
        ("lost apostrophe", "Is Oslo's well-known d'Or 3-4?", {
            "Is Oslos wellknown dOr 3-4?", "Is Oslos well known d Or 3-4?"}),
        ("contraction", "What is not?", {"What's not?", "What isn't?"}),
        ("other spelling", "Neighbouring centers", {"Neighboring centers", "Neighbouring centres"}),
    ],
)  # fmt: skip
def test_each_kind_of_noise(kind: str, text: str, expected: set[str]) -> None:
    change = NOISE._changes[kind]
    assert {change(text, Random(seed)) for seed in range(40)} == expected


def test_every_kind_comes_and_most_come_alone() -> None:
    done = [NOISE.typed(text, Random(seed))[1] for seed in range(100) for text in QUESTIONS]
    assert {kind for kinds in done for kind in kinds} == set(tables().shares) == set(NOISE._changes)
    assert all(done)
    assert 1 < sum(map(len, done)) / len(done) < 4


def test_what_would_be_another_name_stays() -> None:
    for seed in range(300):
        typed, _ = NOISE.typed("Which Turkey did Niger, Peru and The Hague see?", Random(seed))
        assert not {"turkey", "nigel", "marin"} & set(re.findall(r"[\w]+", typed))
    assert not NOISE.is_safe("Is Perú big?", "Is Peru big?")
    assert NOISE.is_safe("Is peru big?", "Is Peru big?")
    assert not NOISE.is_safe("Is Martin there?", "Is Marin there?")
    assert not NOISE.is_safe("In 1990?", "In 190?")
    assert not NOISE.is_safe("It is -5?", "It is 5?")


def test_letters_without_accents() -> None:
    assert without_accents("Łódź, Straße, Þór, İzmir, Київ") == "Lodz, Strasse, Thor, Izmir, Київ"


def test_an_example_says_what_was_done() -> None:
    example = Example("Is Oslo big?", read('QueryName(Find("Oslo"))'), "yes", extra={"hops": 1})
    noised = NOISE.noised(example, Random(4))
    assert noised.question != example.question == noised.extra["clean"]
    assert noised.extra["noise"] and noised.extra["hops"] == 1
    assert (noised.program, noised.answer) == (example.program, example.answer)
    assert Example.from_json(json.loads(json.dumps(noised.to_json()))).extra == noised.extra
    empty = Example("?", example.program)
    assert NOISE.noised(empty, Random(4)) is empty
    assert Noise(trap(), 0.0).noised(example, Random(4)) is example


def test_noise_changes_nothing_but_questions(lands: KnowledgeBase) -> None:
    clean, noisy = (
        list(generate(lands, 150, seed=2, options=Options(noise=noise, verify=0.0)))
        for noise in (0.0, 0.4)
    )
    changed = [one for one in noisy if "noise" in one.extra]
    assert 0.25 < len(changed) / len(noisy) < 0.55
    questions = {one.id: one for one in clean}
    for one in noisy:
        same = questions[one.id or ""]
        assert one.extra.get("clean", one.question) == same.question
        assert (one.program, one.answer, one.choices, one.sparql, one.canonical) == (
            same.program, same.answer, same.choices, same.sparql, same.canonical
        )  # fmt: skip
        assert ("noise" in one.extra) == (one.question != same.question)


def test_workers_make_the_same_noise(tmp_path: Path) -> None:
    plan = Plan("world", 505, 3, Options(noise=0.5, verify=0.0, sparql=False))
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for workers, file in enumerate(files, 1):
        run(plan, file, workers=workers)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert b'"clean"' in files[0].read_bytes()
