"""Constrained queries: all that is printed is accepted, all that is accepted is read."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, load
from kopl.functions import FUNCTIONS
from kopl.sparql.from_kopl import translate
from kopl.sparql.reader import read
from kopl_base.errors import KoplError

pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra 'train')")

from parsers.constrain import TokenTable, sparql_constraint
from parsers.constrain.rules import read_rules
from tests.parsers.constrain_support import (
    byte_level,
    decoded,
    generated,
    table_of,
    unknown_names_of_query,
)

SHARE = int(os.environ.get("KOPL_CONSTRAIN", "600"))
STYLES = ("data", "exact")

TINY = [
    'QueryName(Relate(Find("France"), "capital", "forward"))',
    'Count(FilterNum(FindAll(), "area", "105.4 square mile", ">"))',
    'VerifyStr(QueryAttr(Find("Victor Hugo"), "pen name"), "he said \\"no\\"")',
    'QueryAttrUnderCondition(Find("France"), "population", "point in time", "2019-01-01")',
    'QueryAttrQualifier(Find("France"), "population", "66000000", "point in time")',
    'QueryRelationQualifier(Find("France"), Find("Paris"), "capital", "start time")',
    'SelectBetween(Find("Paris"), Find("Berlin"), "area", "greater")',
    'SelectAmong(FilterConcept(FindAll(), "city"), "population", "smallest")',
    'QueryRelation(Find("France"), Find("Paris"))',
    'Count(And(Or(Find("France"), Find("Paris")), FilterConcept(FindAll(), "capital city")))',
    'Count(QFilterYear(Relate(Find("France"), "capital", "forward"), "start time", "987", "="))',
    'VerifyDate(QueryAttr(Find("Germany"), "inception"), "1871-01-18", "!=")',
    'QueryName(FilterDate(FindAll(), "inception", "1871-01-18", "<"))',
    'SelectBetween(Or(Find("Paris"), Find("France")), Find("Berlin"), "area", "less")',
    "Count(FindAll())",
]  # fmt: skip


@pytest.fixture(scope="module")
def spelt(tiny: KnowledgeBase) -> tuple[Any, TokenTable]:
    """A tokenizer that has seen queries."""
    return table_of("byte-level", tiny, [query(p, s, tiny) for p in TINY for s in STYLES])


def query(program: str, style: Any, kb: KnowledgeBase) -> str:
    """The query of a program."""
    return str(translate(program, style, kb=kb)[0])


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("program", TINY)
def test_queries_are_accepted(
    spelt: tuple[Any, TokenTable], tiny: KnowledgeBase, program: str, style: Any
) -> None:
    made, table = spelt
    text = query(program, style, tiny)
    tokens = [*made.encode(text).ids, table.end]
    for allowed in (style, "both"):
        constraint = sparql_constraint(tiny, table, style=allowed)
        state = constraint.start()
        for place, token in enumerate(tokens):
            assert token in constraint.allowed(state), (text, place, table.spellings[token])
            state = constraint.advance(state, token)
        assert state.ended and not state.lost
    assert read(table.text(tokens)) == read(text)


@pytest.mark.parametrize("kind", ["byte-level", "byte fallback"])
@pytest.mark.parametrize("style", ["data", "exact", "both"])
@pytest.mark.parametrize("values", ["free", "kb"])
def test_random_decodings_are_read_and_name_what_is_there(
    tiny: KnowledgeBase, kind: str, style: Any, values: Any
) -> None:
    table = table_of(kind, tiny, [query(p, s, tiny) for p in TINY for s in STYLES])[1]
    constraint = sparql_constraint(tiny, table, style=style, values=values, most_patterns=3)
    for seed in range(SHARE // 12):
        text = table.text(decoded(constraint, random.Random(seed)))
        assert not list(unknown_names_of_query(read(text), tiny)), text
        assert constraint.accepts(text)


def test_generated_queries_are_accepted(tmp_path: Any) -> None:
    kb = load("world")
    programs = generated("world", min(2000, max(60, SHARE // 5)), tmp_path)
    texts = {style: [query(str(p), style, kb) for p in programs] for style in STYLES}
    made = byte_level([*texts["data"], *kb.names_of_kind("entity")], 8000)
    table = TokenTable.of(made)
    for style, queries in texts.items():
        constraint = sparql_constraint(kb, table, style=style)  # type: ignore[arg-type]
        for text in queries:
            tokens = [*made.encode(text).ids, table.end]
            assert constraint.rejected(tokens) is None, text


@pytest.mark.parametrize("function", list(FUNCTIONS.values()), ids=str)
@pytest.mark.parametrize("style", STYLES)
def test_every_function_has_its_query(function: Any, style: Any) -> None:
    kb = load("world")
    table = TokenTable([bytes([b]) for b in range(0xF5)] + [None], end=0xF5)
    constraint = sparql_constraint(kb, table, style=style)
    assert constraint.accepts(query(function.example, style, kb))


# A query that is wrong from some place on, with the longest beginning that is right.
WRONG = [
    ("SELECT ?x", "SELECT ?"),
    ("ASK { ?e <pred:name> \"London\" .", 'ASK { ?e <pred:name> "'),
    ("ASK { ?e <pred:label>", "ASK { ?e <pred:"),
    ("ASK { ?e <area> ?e_1 .", "ASK { ?e <area> ?"),
    ("ASK { ?e <capital> ?pv", "ASK { ?e <capital> ?"),
    ("ASK { ?e <area> ?pv . ?pv <pred:year>", "ASK { ?e <area> ?pv . ?pv <pred:"),
    ("ASK { ?e <area> ?pv . ?e <pred:", "ASK { ?e <area> ?pv . ?"),
    ('ASK { ?e <area> ?pv . ?pv <pred:unit> "square foot',
     'ASK { ?e <area> ?pv . ?pv <pred:unit> "square '),
    ("ASK { ?e <pred:instance_of> ?c . ?c <pred:name> \"France",
     'ASK { ?e <pred:instance_of> ?c . ?c <pred:name> "'),
    ("ASK { ?e <capital> ?e_1 . [ <pred:fact_h> ?e ; <pred:fact_r> <area>",
     "ASK { ?e <capital> ?e_1 . [ <pred:fact_h> ?e ; <pred:fact_r> <"),
    ("ASK { }", "ASK { "),
    ('SELECT DISTINCT ?e WHERE { ?e <pred:name> "Paris" . ',
     'SELECT DISTINCT ?e WHERE { ?e <pred:name> "Paris" .'),
    ('SELECT ?e WHERE { ?e <pred:name> "Paris" . ?e <motto> ?pv',
     'SELECT ?e WHERE { ?e <pred:name> "Paris" . ?e <motto> ?pv'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "right"), WRONG)
def test_rejected_at_the_right_place(tiny: KnowledgeBase, text: str, right: str) -> None:
    table = TokenTable([bytes([b]) for b in range(0xF5)] + [None], end=0xF5)
    constraint = sparql_constraint(tiny, table, style="data")
    tokens = table.split(text)
    place = constraint.rejected(tokens)
    assert place is not None
    if place == len(tokens) - 1:
        right = text
    assert table.text(tokens[:place]) == right


def test_strings_with_quotes_and_backslashes() -> None:
    """What stands in quotes is escaped, and IRIs as the encoding has them."""
    builder = Builder()
    builder.add_concept("c", 'a "concept"')
    for name in ('say "no"', "back\\slash", "\\u0041", "tab\there"):
        builder.add_entity(name, name, ["c"])
        builder.add_attribute(name, "snake_case: <x>", name)
    kb = builder.build()
    table = table_of("byte-level", kb)[1]
    for values in ("free", "kb"):
        constraint = sparql_constraint(kb, table, values=values)  # type: ignore[arg-type]
        for name in ('say \\"no\\"', "back\\\\slash", "\\\\u0041", "tab\\there"):
            program = f'Count(FilterStr(Find("{name}"), "snake_case: <x>", "{name}"))'
            assert constraint.accepts(query(program, "exact", kb)), (values, name)


def test_what_cannot_be_is_refused(tiny: KnowledgeBase) -> None:
    table = table_of("word-level", tiny)[1]
    with pytest.raises(KoplError, match="spells every byte"):
        sparql_constraint(tiny, table)
    table = table_of("byte-level", tiny)[1]
    with pytest.raises(ValueError, match="'data', 'exact' or 'both'"):
        sparql_constraint(tiny, table, style="short")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="most_patterns must be 1 to 100"):
        sparql_constraint(tiny, table, most_patterns=101)
    with pytest.raises(ValueError, match="line 1: a rule such as"):
        read_rules("query\n    ASK")


def test_a_knowledge_base_without_qualifiers_has_no_facts_to_qualify() -> None:
    builder = Builder()
    builder.add_concept("c", "c")
    builder.add_entity("a", "a", ["c"])
    kb = builder.build()
    table = table_of("byte-level", kb)[1]
    constraint = sparql_constraint(kb, table)
    for seed in range(30):
        text = table.text(decoded(constraint, random.Random(seed)))
        assert "fact_h" not in text and read(text)
