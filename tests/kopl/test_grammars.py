"""Grammars for decoding: what they accept is what types and names what there is.

KOPL_GRAMMAR=10000 makes so many programs and mutations for each form and reader, instead of a few
hundred; llama-cpp-python, where it is installed, reads the grammars as llama.cpp does.
"""

from __future__ import annotations

import os
import random
import re
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase, from_kqapro, load
from kb.schema import Schema
from kb.values import ValueReadError, read_quantity, read_time
from kopl.executor import Executor
from kopl.functions import FUNCTIONS
from kopl.grammars import FORMS, Form, grammar
from kopl.patterns import number, time
from kopl.program import Call, post_order
from kopl.text import read
from kopl.traits import names_in
from kopl_base.errors import KoplError
from tests.kopl.grammar_readers import Guidance, Llama, LlamaVocabulary, Reader
from tests.kopl.grammar_support import Language, Maker, spelt
from tests.parsers.constrain_support import generated

pytest.importorskip("llguidance", reason="llguidance is not installed (extra 'test')")

# How many programs, and as many mutations, for each form and reader.
COUNT = int(os.environ.get("KOPL_GRAMMAR", "0"))
DEPTH = 5
READERS = [*((form, "llguidance") for form in FORMS), ("gbnf", "llama"), ("json-schema", "llama")]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """llama.cpp with a vocabulary, or None where it is not installed."""
    try:
        return LlamaVocabulary(tmp_path_factory.mktemp("llama"))
    except ImportError:
        return None


def reader_of(kind: str, written: str, form: Form, llama: LlamaVocabulary | None) -> Reader:
    """What reads a grammar; skips the test where it is not installed, or cannot read it."""
    if kind == "llguidance":
        return Guidance(written, form)
    if llama is None:
        pytest.skip("llama-cpp-python is not installed: it is compiled for minutes")
    if form == "json-schema" and "\\\\" in written:
        pytest.skip("llama-cpp-python does not escape backslashes of words in schemas")
    return Llama(written, form, llama)


def _number(number: float, unit: str) -> dict[str, Any]:
    return {"type": "quantity", "value": number, "unit": unit}


@pytest.fixture(scope="module")
def awkward() -> KnowledgeBase:
    """Names, keys and units with every mark of grammars; keys of several types and units."""
    marks = [
        'say "x"',
        "a\\b",
        "back\\",
        "x | y",
        "[a-z]*",
        "(1)",
        "日本",
        "😀",
        "Ann",
        "Anna",
        "An",
    ]
    marks += [
        "a/b",
        "\x07bell",
        "\x7f",
        "{2,3}",
        "^x$",
        "<arg>",
        "%llguidance {}",
        "// no",
        "'",
        ".",
    ]
    keys: dict[str, list[dict[str, Any]]] = {
        'of "two"': [{"type": "string", "value": "x"}, {"type": "year", "value": 5}],
        "of | numbers": [_number(1, "km^2"), _number(2, "m/s"), _number(3, "1"), _number(4, '"')],
        "of numbers\\": [_number(1, "1"), {"type": "date", "value": "2000-02-29"}],
        "of numbers": [_number(1, "a.b"), _number(1, "a.b c"), _number(1, "[x]")],
        "of time": [{"type": "year", "value": 5}],
        "of none at all": [],
    }
    qualifiers = {f"q {key}": values for key, values in keys.items() if values}
    attributes = [
        {"key": key, "value": value, "qualifiers": qualifiers}
        for key, values in keys.items()
        for value in values
    ]
    relations = [
        {"relation": name, "direction": "forward", "object": "e0", "qualifiers": qualifiers}
        for name in ('knows "well"', "a|b", "is\\")
    ]
    entities = {
        f"e{number}": {
            "name": name, "instanceOf": ["c0"], "attributes": attributes, "relations": relations
        }
        for number, name in enumerate(marks)
    }  # fmt: skip
    return from_kqapro(
        {"concepts": {"c0": {"name": 'con"cept', "subclassOf": []}}, "entities": entities}
    )


def _reads(read: object, text: str) -> bool:
    try:
        read(text)
    except ValueReadError:
        return False
    return True


def test_the_pattern_of_times_has_all_days_that_exist_and_no_others() -> None:
    pattern = re.compile(time().regex())
    day = date(1895, 1, 1)
    while day.year < 1906:
        for text in (day.isoformat(), f"-{day.isoformat()}", f"{day.year}/{day.month}/{day.day}"):
            assert pattern.fullmatch(text), text
        day += timedelta(1)
    years = ["0", "00", "0000", "000000000000", "4", "04", "100", "0400", "1900", "2000", "2023"]
    years += ["2024", "999999999999", "100000000", "20000", "8", "12", "123456789004"]
    for year in [*years, *(f"-{year}" for year in years)]:
        for rest in ("", "-02-29", "-2-28", "/2/29", "-02/29", "-13-01", "-04-31", "-00-01", "-1"):
            text = year + rest
            assert bool(pattern.fullmatch(text)) == _reads(read_time, text), text


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "-0.5",
        "+5.",
        ".5",
        "1e9",
        "1E-09",
        "1,000",
        "nan",
        ".",
        "e5",
        "5.5.5",
        "",
        "1_0",
        "--1",
    ],
)
def test_the_pattern_of_numbers(text: str) -> None:
    assert bool(re.fullmatch(number().regex(), text)) == _reads(read_quantity, text)


@pytest.mark.parametrize("form", FORMS)
def test_what_cannot_be_a_grammar(tiny: KnowledgeBase, form: str) -> None:
    with pytest.raises(KoplError, match="no entity or concept 'Pariss'; did you mean 'Paris'"):
        grammar(tiny, form, ["Pariss"])
    with pytest.raises(KoplError, match="at least 1 call deep, not 0"):
        grammar(tiny, form, depth=0)
    with pytest.raises(KoplError, match="no grammar 'ebnf'; the forms are lark, gbnf, json-schema"):
        grammar(tiny, "ebnf")


# --- a program is refused exactly when it does not type, names what is not there, or is too deep --


@cache
def _generated(count: int, folder: Path) -> tuple[Call, ...]:
    return tuple(generated("world", count, folder))


def _agrees(reader: Reader, form: str, language: Language, program: Call) -> bool:
    """Whether the grammar has the program; fails where it should not, or should."""
    holds = language.holds(program)
    assert reader.accepts(spelt(program, form)) == holds, (spelt(program, form), holds)
    return holds


@pytest.mark.parametrize("names", ["all", "some", "none"])
@pytest.mark.parametrize(("form", "kind"), READERS)
@pytest.mark.parametrize("base", ["tiny", "awkward"])
def test_random_programs_and_mutations(
    request: pytest.FixtureRequest, llama: Any, base: str, form: Form, kind: str, names: str
) -> None:
    kb: KnowledgeBase = request.getfixturevalue(base)
    listed = {"all": Schema.of(kb).nodes, "some": Schema.of(kb).nodes[::3], "none": []}[names]
    written = grammar(kb, form, None if names == "all" else listed, DEPTH)
    reader = reader_of(kind, written, form, llama)
    language = Language(kb, listed, DEPTH)
    maker = Maker(language, random.Random(f"{base} {names}"))
    count = COUNT // 3 or 60
    programs = [maker.program() for _ in range(count)]
    assert all(_agrees(reader, form, language, program) for program in programs)
    told = [
        _agrees(reader, form, language, maker.mutated(maker.rng.choice(programs), programs))
        for _ in range(count)
    ]
    # Some mutations are other programs.
    assert count / 20 < sum(told) < count / 2


@pytest.mark.parametrize(("form", "kind"), READERS)
def test_generated_programs_and_mutations_of_them(
    tmp_path_factory: pytest.TempPathFactory, llama: Any, form: Form, kind: str
) -> None:
    kb = load("world")
    count = COUNT or 100
    programs = _generated(count, tmp_path_factory.getbasetemp())
    told: list[bool] = []
    depth = max(program.depth for program in programs)
    for begin in range(0, count, 500):
        some = programs[begin : begin + 500]
        names = sorted({name for program in some for name in names_in(program)})
        reader = reader_of(kind, grammar(kb, form, names, depth), form, llama)
        language = Language(kb, names, depth)
        maker = Maker(language, random.Random(begin))
        assert all(_agrees(reader, form, language, program) for program in some)
        told += [
            _agrees(reader, form, language, maker.mutated(program, [*some])) for program in some
        ]
    assert count / 20 < sum(told) < count / 2


# --- what is written at random under a grammar parses, types and runs -----------------------------


@pytest.mark.parametrize(("form", "kind"), READERS)
@pytest.mark.parametrize("base", ["tiny", "awkward"])
def test_samples_parse_type_and_run(
    request: pytest.FixtureRequest, llama: Any, base: str, form: Form, kind: str
) -> None:
    kb: KnowledgeBase = request.getfixturevalue(base)
    reader = reader_of(kind, grammar(kb, form, depth=3), form, llama)
    language, executor = Language(kb, Schema.of(kb).nodes, 3), Executor(kb)
    rng, functions, finished = random.Random(base), set(), 0
    count = COUNT // 10 or 40
    for _ in range(count):
        text = reader.sample(rng)
        if text is not None:
            program = read(text)
            assert language.holds(program), text
            executor.run(program)
            finished += 1
            functions |= {call.function for call in post_order(program)}
    assert finished > 0.8 * count
    # Chance leaves out those that stand far inside.
    if count >= 1000:
        assert len(functions) > len(FUNCTIONS) - 3


@pytest.mark.parametrize(("form", "kind"), READERS)
def test_without_a_knowledge_base_any_text_is_a_name(llama: Any, form: Form, kind: str) -> None:
    reader = reader_of(kind, grammar(None, form, depth=3), form, llama)
    for text in (
        'Count(FilterNum(Find("x \\"y\\""), "size", "5.5 km^2 \\\\", "="))',
        'QueryAttrQualifier(Find(""), "k", "1998", "q")',
        'VerifyDate(QueryAttr(Find("é"), "日"), "2000-02-29", "<")',
    ):
        assert reader.accepts(spelt(read(text), form)), text
    for text in (
        'Count(FilterNum(Find("x"), "size", "five km", "="))',
        'VerifyDate(QueryAttr(Find("é"), "k"), "2001-02-29", "<")',
        'QFilterStr(Find("x"), "k", "v")',
        "Count(And(Or(FindAll(), FindAll()), FindAll()))",
    ):
        assert not reader.accepts(spelt(read(text), form)), text


def test_lark_may_stand_behind_a_line_of_llguidance(tiny: KnowledgeBase) -> None:
    reader = Guidance("%llguidance {}\n" + grammar(tiny, "lark"), "lark")
    assert reader.accepts('QueryName(Find("Paris"))') and not reader.accepts('QueryName("Paris")')


def test_the_same_grammar_whatever_the_order_of_names(tiny: KnowledgeBase) -> None:
    names = Schema.of(tiny).nodes
    for form in FORMS:
        written = grammar(tiny, form, names)
        assert written == grammar(tiny, form, reversed([*names, *names])) == grammar(tiny, form)
