"""Constrained programs: what is allowed token by token, with every kind of tokenizer."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from kb import Builder, Date, KnowledgeBase, Quantity, Year, load
from kopl.functions import FUNCTIONS
from kopl.program import post_order
from kopl.text import read, read_serialised, write_serialised
from kopl.typecheck import check
from kopl_base.errors import KoplError

pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra 'train')")

from parsers.constrain import (
    Constraint,
    TokenizerError,
    TokenTable,
    kopl_constraint,
)
from tests.parsers.constrain_support import (
    KINDS,
    byte_level,
    decoded,
    generated,
    table_of,
    unknown_names,
    word_level,
)

# How many random decodings and generated questions; CI has a share, KOPL_CONSTRAIN=10000 all.
SHARE = int(os.environ.get("KOPL_CONSTRAIN", "600"))

PROGRAMS = [function.example for function in FUNCTIONS.values()]
TINY = [
    'QueryName(Relate(Find("France"), "capital", "forward"))',
    'Count(FilterNum(FindAll(), "area", "105.4 square mile", ">"))',
    'VerifyStr(QueryAttr(Find("Victor Hugo"), "pen name"), "he said \\"no\\"")',
    'QueryAttrUnderCondition(Find("France"), "population", "point in time", "2019-01-01")',
    'QueryAttrQualifier(Find("France"), "population", "66000000", "point in time")',
    'SelectBetween(Find("Paris"), Find("Berlin"), "area", "greater")',
    'Count(And(Or(Find("France"), Find("Paris")), FilterConcept(FindAll(), "capital city")))',
    'Count(QFilterYear(Relate(Find("France"), "capital", "forward"), "start time", "987", "="))',
    'VerifyDate(QueryAttr(Find("Germany"), "inception"), "1871/1/18", "!=")',
    "FindAll()",
]  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tiny: KnowledgeBase) -> tuple[Any, TokenTable]:
    """A tokenizer of each kind that has seen the knowledge base's names and some programs."""
    texts = [write_serialised(read(program)) for program in [*PROGRAMS, *TINY]]
    return table_of(request.param, tiny, texts)


def ids(tokenizer: Any, table: TokenTable, program: str) -> list[int]:
    """The tokens that the tokenizer itself gives for a program."""
    return [*tokenizer.encode(write_serialised(read(program))).ids, table.end]


@pytest.mark.parametrize("program", TINY)
def test_programs_are_accepted_and_read_back(
    tokenizer: tuple[Any, TokenTable], tiny: KnowledgeBase, program: str
) -> None:
    made, table = tokenizer
    tokens = ids(made, table, program)
    constraint = kopl_constraint(tiny, table)
    state = constraint.start()
    for place, token in enumerate(tokens):
        assert token in constraint.allowed(state), (place, table.spellings[token])
        state = constraint.advance(state, token)
    assert state.ended and not state.lost
    assert read_serialised(table.text(tokens)) == read(program)
    assert constraint.accepts(write_serialised(read(program)))


@pytest.mark.parametrize("values", ["free", "kb"])
def test_random_decodings_type_and_name_what_is_there(
    tokenizer: tuple[Any, TokenTable], tiny: KnowledgeBase, values: Any
) -> None:
    table = tokenizer[1]
    constraint = kopl_constraint(tiny, table, values=values)
    seen = set()
    for seed in range(SHARE // 4):
        text = table.text(decoded(constraint, random.Random(seed)))
        program = read_serialised(text)
        seen |= {step.function.name for step in check(program)}
        assert not list(unknown_names(program, tiny)), text
        assert program.size <= 20
    if SHARE > 100:
        assert len(seen) > 15


def test_a_knowledge_base_of_its_own_names() -> None:
    """Names that begin others, blanks at their ends, marks and backslashes in them."""
    builder = Builder()
    builder.add_concept("c", "New")
    names = ["New York", "New York City", "a <arg> b", "x<func>", "end\\", "Zürich", "東京", "("]
    keys = [" key", "key ", "key", "key\\"]
    for name in names:
        builder.add_entity(name, name, ["c"])
        for key in keys:
            builder.add_attribute(name, key, f" {name} ")
        builder.add_attribute(name, "size", Quantity(2, " odd unit"))
    kb = builder.build()
    made, table = table_of("byte-level", kb)
    constraint = kopl_constraint(kb, table)
    programs = [read(f"Count(Find({_quoted(name)}))") for name in names]
    for key in keys:
        for name in names:
            program = f"FilterStr(FindAll(), {_quoted(key)}, {_quoted(f' {name} ')})"
            programs.append(read(f"Count({program})"))
    programs.append(read('Count(FilterNum(FindAll(), "size", "2  odd unit", "="))'))
    for program in programs:
        text = write_serialised(program)
        assert constraint.rejected([*made.encode(text).ids, table.end]) is None, text
        assert constraint.accepts(text)
    for seed in range(200):
        text = table.text(decoded(kopl_constraint(kb, table, values="kb"), random.Random(seed)))
        program = read_serialised(text)
        check(program)
        assert not list(unknown_names(program, kb)), text
    assert not constraint.accepts("Find <arg> New York C <func> Count")
    # Without the second blank the key would be another one, which there is as well.
    assert constraint.accepts("Find <arg> New <func> QueryAttr <arg>  key")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# A text that is wrong from some place on, with the longest beginning that is right.
WRONG = [
    ("Count", ""),
    ("Fin <arg> Paris", "Fin"),
    ("Find <arg> London", "Find <arg> "),
    ("Find <arg> France <func> Relate <arg> area", "Find <arg> France <func> Relate <arg> "),
    ("Find <arg> France <func> FilterNum <arg> motto",
     "Find <arg> France <func> FilterNum <arg> "),
    ("Find <arg> France <func> FilterNum <arg> area <arg> 5 square foot",
     "Find <arg> France <func> FilterNum <arg> area <arg> 5 square "),
    ("FindAll <func> FilterNum <arg> area <arg> 5 <arg> >",
     "FindAll <func> FilterNum <arg> area <arg> 5 "),
    ("FindAll <func> FilterYear <arg> inception <arg> 1871-2-29",
     "FindAll <func> FilterYear <arg> inception <arg> 1871-2-2"),
    ("FindAll <func> FilterYear <arg> inception <arg> 1872-02-30",
     "FindAll <func> FilterYear <arg> inception <arg> 1872-02-3"),
    ("FindAll <func> FilterYear <arg> inception <arg> 1872-02/01",
     "FindAll <func> FilterYear <arg> inception <arg> 1872-02"),
    ("Find <arg> France <func> Find <arg> Paris <func> Count",
     "Find <arg> France <func> Find <arg> Paris <func> "),
    ("Find <arg> France <func> QFilterStr", "Find <arg> France <func> Q"),
    ("Find <arg> France <func> QueryName <func> Count", "Find <arg> France <func> QueryName"),
    ("Find <arg> France <func> QueryAttr <arg> area <func> VerifyStr",
     "Find <arg> France <func> QueryAttr <arg> area <func> Verify"),
    ("Find <arg> France <func> Relate <arg> capital <arg> sideways",
     "Find <arg> France <func> Relate <arg> capital <arg> "),
    ("Find <arg> France <arg> x", "Find <arg> France "),
    ("Find <arg>", "Find <arg>"),
    ("Find  <arg> Paris", "Find "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "right"), WRONG)
def test_rejected_at_the_right_place(tiny: KnowledgeBase, text: str, right: str) -> None:
    """With single bytes as tokens the first wrong byte is told."""
    bytes_alone = [bytes([byte]) for byte in range(0xF5)]
    table = TokenTable([*bytes_alone, b"<arg>", b"<func>", None], end=0xF7)
    constraint = kopl_constraint(tiny, table)
    tokens = table.split(text)
    place = constraint.rejected(tokens)
    assert place is not None
    if text == right:
        assert place == len(tokens) - 1
    assert table.text(tokens[:place]) == right
    assert constraint.follow(constraint.start(), 0xF6) is None


def test_every_spelling_of_a_text_is_allowed(tiny: KnowledgeBase) -> None:
    """Not one way of splitting decides, but the text."""
    made, table = table_of("byte-level", tiny, [write_serialised(read(p)) for p in TINY])
    constraint = kopl_constraint(tiny, table)
    text = write_serialised(read(TINY[0]))
    rng = random.Random(5)
    by_spelling = {spelling: n for n, spelling in enumerate(table.spellings) if spelling}
    found = set()
    for _ in range(200):
        data, at, tokens = table.encoded(text), 0, []
        while at < len(data):
            ends = [e for e in range(at + 1, len(data) + 1) if data[at:e] in by_spelling]
            end = rng.choice(ends)
            tokens.append(by_spelling[data[at:end]])
            at = end
        assert constraint.rejected([*tokens, table.end]) is None
        found.add(tuple(tokens))
    assert len(found) > 150
    assert tuple(made.encode(text).ids) not in found or len(found) > 1


def test_allowed_is_what_can_be_followed(tokenizer: tuple[Any, TokenTable], tiny: Any) -> None:
    """The walk of the trie against trying every token, state by state."""
    table = tokenizer[1]
    # Free text of a few bytes: its bound is met often, within tokens and at their ends.
    constraint = kopl_constraint(tiny, table, most_text=9)
    for seed in range(8):
        state = constraint.start()
        for token in decoded(constraint, random.Random(seed))[:40]:
            allowed = constraint.allowed(state)
            if table.complete:
                tried = [n for n in range(len(table)) if constraint.follow(state, n) is not None]
                assert allowed.tolist() == tried
            bits = np.unpackbits(constraint.mask(state), bitorder="little")[: len(table)]
            assert np.flatnonzero(bits).tolist() == allowed.tolist()
            state = constraint.advance(state, token)


def test_generated_programs_are_accepted(tmp_path: Any) -> None:
    kb = load("world")
    programs = generated("world", min(2000, max(100, SHARE // 5)), tmp_path)
    texts = [write_serialised(program) for program in programs]
    made = byte_level([*texts, *kb.names_of_kind("entity")], 8000)
    table = TokenTable.of(made)
    for values in ("free", "kb"):
        constraint = kopl_constraint(kb, table, values=values)  # type: ignore[arg-type]
        for program, text in zip(programs, texts, strict=True):
            tokens = [*made.encode(text).ids, table.end]
            place = constraint.rejected(tokens)
            # Who compares with a value that the key does not have needs free text.
            assert place is None or (values == "kb" and "Str" in text), (text, place)
            assert read_serialised(table.text(tokens)) == program
            assert all(call.arguments is not None for call in post_order(program))


def test_bounds(tiny: KnowledgeBase) -> None:
    table = table_of("byte-level", tiny)[1]
    constraint = kopl_constraint(tiny, table, most_calls=3, most_open=2, most_text=5)
    for seed in range(100):
        assert read_serialised(table.text(decoded(constraint, random.Random(seed)))).size <= 3
    assert constraint.accepts("FindAll <func> FilterStr <arg> motto <arg> 12345")
    assert not constraint.accepts("FindAll <func> FilterStr <arg> motto <arg> 123456")
    # What the key has is allowed however long it is.
    assert constraint.accepts("FindAll <func> FilterStr <arg> motto <arg> liberty")
    assert constraint.accepts("FindAll <func> FindAll <func> And")
    assert not constraint.accepts("FindAll <func> FindAll <func> FindAll <func> And <func> And")


def test_the_end_and_what_is_lost(tiny: KnowledgeBase) -> None:
    table = table_of("byte-level", tiny)[1]
    constraint = kopl_constraint(tiny, table)
    state = constraint.start()
    for token in table.split("FindAll"):
        state = constraint.advance(state, token)
    assert state.ended and not state.lost
    assert constraint.allowed(state).tolist() == [table.end]
    padding = next(n for n, spelling in enumerate(table.spellings) if spelling is None)
    assert constraint.advance(state, padding) is state
    lost = constraint.advance(constraint.start(), padding)
    assert lost.lost and constraint.allowed(lost).tolist() == [table.end]
    assert constraint.follow(lost, table.end) is None
    with pytest.raises(ValueError, match="read-only"):
        constraint.allowed(state)[0] = 1


def test_forgetting_changes_nothing(tiny: KnowledgeBase) -> None:
    table = table_of("byte-level", tiny)[1]
    full = kopl_constraint(tiny, table)
    short = Constraint(full.language, table, remembered=5)
    for seed in range(20):
        tokens = decoded(full, random.Random(seed))
        first, second = full.start(), short.start()
        for token in tokens:
            assert full.allowed(first).tolist() == short.allowed(second).tolist()
            first, second = full.advance(first, token), short.advance(second, token)


def test_what_the_tokens_cannot_spell_is_left_out(tiny: KnowledgeBase) -> None:
    texts = ["Find <arg> France <func> QueryName <func> Relate <arg> capital <arg> forward"]
    table = TokenTable.of(word_level(texts))
    constraint = kopl_constraint(tiny, table)
    assert constraint.accepts("Find <arg> France <func> Relate <arg> capital <arg> forward")
    for seed in range(50):
        program = read_serialised(table.text(decoded(constraint, random.Random(seed))))
        assert {call.function.name for call in post_order(program)} <= {
            "Find", "QueryName", "Relate",
        }  # fmt: skip
    with pytest.raises(KoplError, match="spell no function"):
        kopl_constraint(tiny, TokenTable([b" Count", None], end=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": "any"}, "values are 'free' or 'kb'"),
        ({"most_calls": 0}, "must be at least 1"),
    ],
)
def test_settings_are_checked(tiny: KnowledgeBase, change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kopl_constraint(tiny, table_of("byte-level", tiny)[1], **change)


def test_tables_are_checked() -> None:
    from tokenizers import Tokenizer, decoders, models

    with pytest.raises(TokenizerError, match="no fast tokenizer"):
        TokenTable.of(object())
    with pytest.raises(TokenizerError, match="ends a sequence"):
        TokenTable.of(Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    strange = Tokenizer(models.BPE({"a": 0, "</s>": 1}, []))
    strange.decoder = decoders.BPEDecoder()
    with pytest.raises(TokenizerError, match="BPEDecoder are not understood"):
        TokenTable.of(strange)
    with pytest.raises(TokenizerError, match="token 5 of 1"):
        TokenTable([b"a"], end=5)
    with pytest.raises(TokenizerError, match="no token spells b'b'"):
        TokenTable([b"a", None], end=1).split("ab")


def test_word_pieces_and_special_tokens() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed (extra 'train')")
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordPiece({"Cou": 0, "##nt": 1, "[UNK]": 2, "[SEP]": 3}))
    made.decoder = decoders.WordPiece()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="[SEP]", unk_token="[UNK]", pad_token="[PAD]"
    )
    marks = [AddedToken(mark, lstrip=True, special=True) for mark in ("<arg>", "<func>")]
    tokenizer.add_tokens(marks, special_tokens=True)
    tokenizer.add_tokens([AddedToken("é")])
    table = TokenTable.of(tokenizer)
    numbers = tokenizer.convert_tokens_to_ids(["Cou", "##nt", "<func>", "é", "[UNK]", "[PAD]"])
    assert table.text([*numbers, table.end, 0]) == "Count<func>é"
    assert table.spellings[tokenizer.unk_token_id] is None and table.end == 3
    with pytest.raises(TokenizerError, match="8 marks are too many"):
        TokenTable([None], end=0, marks=list("abcdefgh"))


def test_types_of_keys_are_those_of_the_knowledge_base() -> None:
    """A key is offered where its values fit, as an attribute and as a qualifier."""
    builder = Builder()
    builder.add_concept("c", "c")
    builder.add_entity("a", "a", ["c"])
    builder.add_attribute("a", "both", Year(1990), {"both": "text"})
    builder.add_attribute("a", "both", Quantity(3, "metre"))
    builder.add_attribute("a", "day", Date(2000, 2, 29))
    kb = builder.build()
    constraint = kopl_constraint(kb, table_of("byte-level", kb)[1])
    begin = "FindAll <func> "
    for text, right in (
        ("FilterNum <arg> both <arg> 3 metre <arg> =", True),
        ("FilterNum <arg> both <arg> 3 <arg> =", False),
        ("FilterYear <arg> both <arg> 1990 <arg> =", True),
        ("FilterStr <arg> both <arg> text", False),
        ("FilterDate <arg> day <arg> 2000-02-29 <arg> =", True),
        ("FilterDate <arg> day <arg> 1900-02-29 <arg> =", False),
        ("FilterYear <arg> both <arg> 1990 <arg> = <func> QFilterStr <arg> both <arg> text", True),
        ("FilterYear <arg> both <arg> 1990 <arg> = <func> QFilterYear <arg> both <arg> 1", False),
        ("SelectAmong <arg> both <arg> largest", True),
        ("SelectAmong <arg> day <arg> largest", False),
        ("QueryAttr <arg> day <func> VerifyNum <arg> 3 <arg> =", False),
        ("QueryAttr <arg> both <func> VerifyNum <arg> 3 metre <arg> =", True),
        ("Relate <arg> both <arg> forward", False),
    ):
        assert constraint.accepts(begin + text) is right, text
