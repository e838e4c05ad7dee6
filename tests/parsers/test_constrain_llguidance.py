"""A second opinion: llguidance, with a grammar written for it, allows the same tokens."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from kb import KnowledgeBase
from kb.values import Quantity, Value
from kopl.functions import FUNCTIONS
from kopl.text import read, write_serialised
from kopl.types import Kind, Type
from parsers.constrain import kopl_constraint
from tests.parsers.constrain_support import decoded, table_of

llguidance = pytest.importorskip("llguidance", reason="llguidance is not installed")
pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra 'train')")

_LEAP = (
    r"([0-9]{0,10}(0[48]|[2468][048]|[13579][26])|[048]|00|[048]00"
    r"|[0-9]{0,8}([02468][048]|[13579][26])00)"
)


def _time() -> str:
    """A year or a day that exists, written out as a regular expression."""
    found = [r"[0-9]{1,12}"]
    for sep in ("-", "\\/"):
        day31 = f"(0?[13578]|10|12){sep}(0?[1-9]|[12][0-9]|3[01])"
        day30 = f"(0?[469]|11){sep}(0?[1-9]|[12][0-9]|30)"
        day28 = f"0?2{sep}(0?[1-9]|1[0-9]|2[0-8])"
        found.append(f"[0-9]{{1,12}}{sep}({day31}|{day30}|{day28})")
        found.append(f"{_LEAP}{sep}0?2{sep}29")
    return f"-?({'|'.join(found)})"


def _any(texts: Iterable[str]) -> str:
    return "(" + " | ".join(json.dumps(text, ensure_ascii=False) for text in sorted(texts)) + ")"


def _kind(value: Value) -> str:
    if isinstance(value, str):
        return "string"
    return "quantity" if isinstance(value, Quantity) else "time"


def grammar_of(kb: KnowledgeBase) -> str:
    """Well-typed programs over a knowledge base, in llguidance's spelling of Lark.

    Values are those of the key (``values="kb"``); nothing bounds the calls.
    """
    values: dict[tuple[str, bool], set[Value]] = {}
    for key, numbers in kb.values_of_keys().items():
        values[key, False] = {kb.values[n] for n in numbers.tolist()}
    for key, numbers in kb.qualifier_values_of().items():
        values[key, True] = {kb.values[n] for n in numbers.tolist()}
    keys = sorted(values)
    names = set(kb.names_of_kind("entity")) | set(kb.names_of_kind("concept"))
    rules: dict[str, list[str]] = {"e": ["f"], "f": [], "other": []}
    rules |= {f"v{n}": [] for n, (_, qualifier) in enumerate(keys) if not qualifier}

    def constant(kind: Kind, key: tuple[str, bool]) -> str | None:
        wanted = {Kind.STRING: "string", Kind.QUANTITY: "quantity", Kind.TIME: "time"}.get(kind)
        held = [value for value in values[key] if wanted in (None, _kind(value))]
        if not held:
            return None
        if kind is Kind.TIME:
            return "TIME"
        if kind is Kind.QUANTITY:
            units = sorted({v.unit for v in held if isinstance(v, Quantity)})
            spelt = ["NUMBER" if u == "1" else f"NUMBER {json.dumps(f' {u}')}" for u in units]
            return f"({' | '.join(spelt)})"
        return _any({str(value) for value in held})

    def arguments(kinds: list[Kind], given: tuple[str, bool] | None, got: list[str]) -> None:
        """Every way to write the arguments, key by key."""

        def go(at: int, key: tuple[str, bool] | None, asked: Any, said: list[str]) -> None:
            if at == len(kinds):
                ways.append((asked, " ".join(said)))
                return
            kind = kinds[at]
            if kind in (Kind.KEY, Kind.QUALIFIER_KEY):
                needs = next(
                    (k for k in kinds[at + 1 :] if k not in (Kind.OPERATOR, Kind.ANY_VALUE)), None
                )
                for one in keys:
                    if one[1] != (kind is Kind.QUALIFIER_KEY):
                        continue
                    if needs in (Kind.EXTREME, Kind.COMPARATIVE) and not any(
                        isinstance(value, Quantity) for value in values[one]
                    ):
                        continue
                    text = json.dumps(one[0])
                    go(at + 1, one, asked if one[1] else one, [*said, "ARG", text])
                return
            if kind in (Kind.STRING, Kind.QUANTITY, Kind.TIME, Kind.ANY_VALUE):
                assert key is not None
                written = constant(kind, key)
                if written is not None:
                    go(at + 1, key, asked, [*said, "ARG", written])
                return
            lists = {
                Kind.NAME: names,
                Kind.CONCEPT: set(kb.names_of_kind("concept")),
                Kind.RELATION: set(kb.relations),
            }
            go(at + 1, key, asked, [*said, "ARG", _any(kind.choices or lists[kind])])

        ways: list[tuple[Any, str]] = []
        go(0, given, None, [])
        got += ways  # type: ignore[arg-type]

    letters = {Type.ENTITIES: "e", Type.FACTS: "f"}
    for function in FUNCTIONS.values():
        kinds = [kind for _, kind in function.arguments]
        spelt = _any({function.name, function.published})
        inputs: list[tuple[str, tuple[str, bool] | None]] = [
            (" ".join(f"{letters.get(type, '')} FUNC" for type in function.inputs), None)
        ]
        if Type.VALUES in function.inputs:
            inputs = [(f"v{n} FUNC", key) for n, key in enumerate(keys) if not key[1]]
        for before, key in inputs:
            ways: list[Any] = []
            arguments(kinds, key, ways)
            for asked, said in ways:
                target = letters.get(function.output, "other")
                if function.output is Type.VALUES:
                    target = f"v{keys.index(asked)}"
                rules[target].append(f"{before} {spelt} {said}".strip())
    # Where only one text can follow, llguidance would allow a single way to spell it.
    lines = ['%llguidance {"no_forcing": true}']
    lines += [f"start: SP? (e | other | {' | '.join(n for n in rules if n[0] == 'v')})"]
    # Blanks on either side of a mark may be there or not.
    lines += ["ARG: SP? <arg> SP?".replace("ARG", "arg"), "func: SP? <func> SP?"]
    for name, bodies in rules.items():
        lines.append(f"{name}: {' | '.join(dict.fromkeys(bodies))}")
    text = "\n".join(lines).replace("ARG", "arg").replace("FUNC", "func")
    return text + (
        '\nSP: " "\nNUMBER: /[+-]?[0-9]{1,40}(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?/'
        f"\nTIME: /{_time()}/\n"
    )


def test_the_same_tokens_are_allowed(tiny: KnowledgeBase) -> None:
    """Along random decodings, state by state."""
    programs = [write_serialised(read(function.example)) for function in FUNCTIONS.values()]
    made, table = table_of("byte-level", tiny, programs)
    tokenizer = llguidance.LLTokenizer(made.to_str(), eos_token=table.end)
    matcher = llguidance.LLMatcher(
        tokenizer, llguidance.LLMatcher.grammar_from_lark(grammar_of(tiny))
    )
    assert not matcher.is_error(), matcher.get_error()
    constraint = kopl_constraint(tiny, table, values="kb", most_calls=400, most_open=400)
    compared = 0
    for seed in range(60):
        short = kopl_constraint(tiny, table, values="kb", most_calls=6)
        tokens = decoded(short, random.Random(seed))
        matcher.reset()
        state = constraint.start()
        for place, token in enumerate(tokens):
            bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
            theirs = np.flatnonzero(np.unpackbits(bits, bitorder="little")[: len(table)])
            ours = constraint.allowed(state)
            said = table.text(tokens[:place])
            more, less = (
                sorted({*a} - {*b})
                for a, b in ((theirs.tolist(), ours.tolist()), (ours.tolist(), theirs.tolist()))
            )
            wrong = [*more, *less]
            assert not wrong, (
                said,
                [table.spellings[n] for n in more][:8],
                [table.spellings[n] for n in less][:8],
            )
            compared += 1
            state = constraint.advance(state, token)
            matcher.consume_token(token)
            assert not matcher.is_error(), (said, matcher.get_error())
    assert compared > 500
