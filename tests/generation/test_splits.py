"""Splits: what no part may share with another, shares, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.splits import WAYS, assign, split
from kopl.example import Example, read_examples, write_examples
from kopl.program import post_order
from kopl.text import read
from kopl_base.errors import KoplError
from kopl_cli import main

PROGRAMS = [
    read(text)
    for text in (
        'QueryName(Find("A"))',
        'QueryName(Find("B"))',
        'Count(FilterConcept(FindAll(), "c"))',
        'Count(FilterConcept(FindAll(), "d"))',
        'QueryName(Relate(Find("A"), "r", "forward"))',
        'QueryName(FilterConcept(Relate(Find("A"), "r", "forward"), "c"))',
        'Count(FilterConcept(Relate(Find("B"), "r", "forward"), "c"))',
    )
]


def examples(count: int = 200) -> list[Example]:
    """Questions of programs with two to nine calls and answers of uneven frequency."""
    made = []
    for n in range(count):
        program = f'Find("{n}")'
        for k in range(n % 8):
            program = f'Relate({program}, "r{k}", "forward")'
        root = "Count" if n % 3 else "QueryName"
        answer = "yes" if n % 5 == 0 else str(n % 50)
        made.append(Example(f"question {n}?", read(f"{root}({program})"), answer, id=f"s-{n}"))
    return made


def crossings(parts: list[tuple[Example, int]], by: str) -> list[str]:
    """What stands in two parts though it must not."""
    places: dict[object, set[int]] = defaultdict(set)
    for example, at in parts:
        places["question", example.question].add(at)
        places["program", example.program].add(at)
        if example.canonical is not None:
            places["question", example.canonical].add(at)
        if example.id is not None:
            places["id", example.id.split("#")[0]].add(at)
        if by == "answers":
            places["answer", example.answer].add(at)
        if by == "combinations":
            used = frozenset(call.function.name for call in post_order(example.program))
            places["functions", used].add(at)
    return [str(what) for what, found in places.items() if len(found) > 1 and what != ("id", "")]


ANY = st.builds(
    Example,
    question=st.sampled_from("abcdefghij"),
    program=st.sampled_from(PROGRAMS),
    answer=st.sampled_from("uvwxyz"),
    canonical=st.none() | st.sampled_from("abcdefghijkl"),
    id=st.none() | st.sampled_from(["", "1", "1#0", "1#1", "2#1", "2#1#2", "3", "#1"]),
)


@given(st.lists(ANY, max_size=12), st.sampled_from(sorted(WAYS)), st.integers(0, 3))
def test_nothing_crosses(given_examples: list[Example], by: str, seed: int) -> None:
    try:
        numbers = assign(given_examples, seed, by=by)
    except KoplError:
        assert by != "random"
        return
    pairs = list(zip(given_examples, numbers, strict=True))
    assert crossings(pairs, by) == []
    if by == "compositional":
        first = [e.program.size for e, at in pairs if at == 0]
        assert first
        # Each later group holds something longer than all of the first part.
        longest = max(e.program.size for e, at in pairs if at)
        assert longest > max(first)


@pytest.mark.parametrize("by", sorted(WAYS))
@pytest.mark.parametrize("shared", ["question", "program", "canonical", "both", "id"])
def test_pairs_stay_together(shared: str, by: str) -> None:
    """Of examples that have one thing in common, two by two, no pair is torn."""
    pairs = []
    for one in examples(300):
        other = replace(
            one, question=f"other {one.question}", id=f"o{one.id}",
            program=read(str(one.program).replace('Find("', 'Find("other ')),
        )  # fmt: skip
        if shared in ("question", "program"):
            other = replace(other, **{shared: getattr(one, shared)})
        elif shared == "canonical":
            one, other = (replace(e, canonical=f"plain {one.question}") for e in (one, other))
        elif shared == "both":  # the plain question is itself one of the set
            other = replace(other, canonical=one.question)
        else:
            one, other = replace(one, id=f"{one.id}#0"), replace(other, id=f"{one.id}#1")
        pairs.append((one, other))
    numbers = assign([one for one, _ in pairs] + [other for _, other in pairs], 1, by=by)
    assert set(numbers) == {0, 1, 2}
    assert numbers[:300] == numbers[300:]


@pytest.mark.parametrize("by", sorted(WAYS))
def test_shares(by: str) -> None:
    given_examples = examples()
    parts = split(given_examples, 3, (8, 1, 1), by)
    assert sorted(e.question for part in parts for e in part) == sorted(
        e.question for e in given_examples
    )
    pairs = [(example, at) for at, part in enumerate(parts) for example in part]
    assert crossings(pairs, by) == []
    # A length holds an eighth of the examples; the sets of functions are 117, 58, 16 and 9 times.
    away = {"random": 2, "answers": 10, "compositional": 13, "combinations": 15}[by]
    for part, wanted in zip(parts, (160, 20, 20), strict=True):
        assert abs(len(part) - wanted) <= away
    if by == "answers":  # the common answer does not fill a small part
        assert any(e.answer == "yes" for e in parts[0])
    if by == "compositional":
        longest = max(e.program.size for e in parts[0])
        assert all(e.program.size > longest for part in parts[1:] for e in part)
        lengths = sorted({e.program.size for e in given_examples})
        reached = [sum(e.program.size <= n for e in given_examples) for n in lengths[:-1]]
        assert len(parts[0]) == min(reached, key=lambda n: abs(n - 160))


def test_a_question_with_a_short_and_a_long_program_is_held_out() -> None:
    texts = ['QueryName(Find("A"))', 'QueryName(Relate(Find("A"), "r", "forward"))']
    twice = [Example("same", read(text)) for text in texts]
    others = [Example(f"q{n}", read(f'QueryName(Find("{n}"))')) for n in range(8)]
    parts = split([*others, *twice], 0, (8, 2), "compositional")
    assert [len(part) for part in parts] == [8, 2]


def test_the_seed_decides() -> None:
    given_examples = examples(60)
    for by in WAYS:
        assert assign(given_examples, 1, by=by) == assign(iter(given_examples), 1, by=by)
    assert assign(given_examples, 1) != assign(given_examples, 2)


def test_the_hash_seed_does_not_matter() -> None:
    script = (
        "from tests.generation.test_splits import examples; from generation.splits import *\n"
        "print([assign(examples(60), 5, by=by) for by in WAYS])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed}, cwd=Path(__file__).parents[2],
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


@pytest.mark.parametrize(
    ("given_examples", "arguments", "message"),
    [
        ([Example("a", PROGRAMS[0])] * 3, {"by": "answers"}, "'a' has no answer"),
        ([Example("a", PROGRAMS[0], "b")], {"by": "answers"}, "1 groups of different answers"),
        ([Example("a", PROGRAMS[0])], {"by": "combinations"}, "too few for 3 parts"),
        ([Example("a", p) for p in PROGRAMS[:2]], {"by": "compositional"}, "of one length"),
        ([], {"by": "compositional"}, "of one length"),
        ([], {"shares": (1, 0)}, "numbers above 0"),
        ([], {"shares": ()}, "numbers above 0"),
        ([], {"shares": (1, float("nan"))}, "numbers above 0"),
        ([], {"shares": (1,), "by": "answers"}, "two shares or more"),
        ([], {"by": "luck"}, "no split by 'luck'"),
    ],
)
def test_refusals(
    given_examples: list[Example], arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(KoplError, match=message):
        assign(given_examples, 0, **arguments)  # type: ignore[arg-type]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "set.jsonl", tmp_path / "parts"
    write_examples(source, examples(100))
    arguments = ["split", str(source), "--by", "compositional", "--shares", "6,2,2", "-o", str(out)]
    assert main(arguments) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    parts = [list(read_examples(out / f"{n}.jsonl")) for n in ("train", "valid", "test")]
    assert rows[0][:4] == ["questions", *(str(len(part)) for part in parts)]
    assert [e for part in parts for e in part] != [] and sum(map(len, parts)) == 100
    assert tuple(parts) == split(examples(100), 0, (6, 2, 2), "compositional")
    trained = {e.answer for e in parts[0]}
    new = sum(e.answer not in trained for e in parts[2]) / len(parts[2])
    (shown,) = [row for row in rows if row[0] == "share of answers never in training"]
    assert shown[1:4:2] == ["", f"{new:.2%}"]


def test_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "set.jsonl", tmp_path / "parts"
    source.write_text('{"question": "a"}\n', "utf-8")
    assert main(["split", str(source), "-o", str(out)]) == 2
    assert "line 1: not an example: there is no 'program'" in capsys.readouterr().err
    source.write_text("", "utf-8")
    assert main(["split", str(source), "-o", str(out)]) == 2
    assert "no examples to split" in capsys.readouterr().err
    assert main(["split", "/dev/null", "-o", str(out)]) == 2
    assert "/dev/null: is no ordinary file" in capsys.readouterr().err
    for shares in ("1,2", "1,2,0", "1,2,x", "1,2,inf"):
        with pytest.raises(SystemExit):
            main(["split", str(source), "-o", str(out), "--shares", shares])
    assert not out.exists()


def test_extra_fields_survive(tmp_path: Path) -> None:
    source = tmp_path / "set.jsonl"
    lines = [e.to_json() | {"hops": 1, "note": ["x"]} for e in examples(10)]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert main(["split", str(source), "-o", str(tmp_path / "out")]) == 0
    found = [
        json.loads(line)
        for name in ("train", "valid", "test")
        for line in (tmp_path / "out" / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    assert sorted(found, key=lambda e: e["id"]) == sorted(lines, key=lambda e: e["id"])
