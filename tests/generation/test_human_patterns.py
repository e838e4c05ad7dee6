"""Patterns of what people ask: slots in place of names, frames, and what may be kept of them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import patterns
from generation.human.records import HumanQuestion
from kopl.text import read
from tests.generation import human_graphs

KEPT = Path(patterns.__file__).with_name("patterns.tsv")

# A question and its program, its frame, and its descriptions.
ALIGNED: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    (
        "When did Ada Moss (whose craft is painter) win  the Amber Cup ?",
        'QueryRelationQualifier(Find("Amber Cup"), And(Relate(Find("painter"), "craft", '
        '"backward"), Find("Ada Moss")), "winner", "point in time")',
        "when did {D} win the {E}?", [("R←(E) and E", "{E} (whose {R} is {E})")],
    ),
    (
        "Which Lakes lie in the canton whose Motto is Ever Up?",
        'QueryName(FilterConcept(Relate(FilterConcept(FilterStr(FindAll(), "motto", "Ever Up"), '
        '"canton"), "lies in", "backward"), "lake"))',
        "which {D}?", [("C(R←(C(K=V)))", "{C} lie in the {C} whose {K} is {V}")],
    ),
    (
        "Is 3 the guild number of the man born as A. Moss?",
        'VerifyStr(QueryAttr(FilterConcept(FilterStr(FindAll(), "birth name", "A. Moss"), '
        '"human"), "guild number"), "3")',
        "is {V} the {K} of {D}?", [("C(K=V)", "the {C} born as {V}")],
    ),
    (  # a name with a slip, and one that another name holds
        "Since when is Zugern near Zug Hall?",
        'QueryRelationQualifier(Find("Zug Hall"), Find("Zuggern"), "near", "start time")',
        "since when is {E} {R} {E}?", [],
    ),
    (  # what is said of one end stands around the other: no description in one stretch
        "Who gave Uri, the twin of Zug, to Bo, in Uri?",
        'QueryRelationQualifier(And(Relate(Find("Zug"), "twin", "forward"), Find("Uri")), '
        'Find("Bo"), "given to", "giver")',
        "who gave {D}, to {E}, in Uri?", [("R→(E) and E", "{E}, the {R} of {E}")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("question", "program", "frame", "described"), ALIGNED)
def test_slots_take_the_place_of_what_the_program_names(
    question: str, program: str, frame: str, described: list[tuple[str, str]]
) -> None:
    asked = HumanQuestion("1", question, "?e", (), "")
    assert patterns.parts(patterns.aligned(asked, read(program))) == (frame, described)


def test_no_pattern_holds_what_may_be_a_name() -> None:
    counts = Counter({"who is {E} of Uri?": 9, "since {V} 3?": 9, "é {E}": 9, "is {E} up?": 9,
                      "I want {E}": 5, "{K} of {E}": 2})  # fmt: skip
    assert list(patterns.common(counts, 5, 10)) == [("is {E} up?", 9), ("I want {E}", 5)]
    assert list(patterns.common(counts, 1, 1)) == [("is {E} up?", 9)]


def test_traits_are_counted_by_type(tmp_path: Path) -> None:
    file = human_graphs.write(tmp_path / "human.jsonl", human_graphs.lines())
    both = [patterns.count(patterns.read(file, part)) for part in ("train", "test")]
    assert sum(one.questions for one in both) == len(human_graphs.lines())
    brackets = sum(one.traits["a bracket"]["QualifierRelational"] for one in both)
    asked = [case for case in human_graphs.CASES if case[3].startswith("QueryRelationQ")]
    assert brackets == sum("(" in case[1] for case in asked) > 0
    shown = "\n".join(patterns.tables(both[0], 1, 3))
    assert "| a bracket |" in shown
    assert not any(name in shown for name in ("Ada Moss", "Grey Lake", "Ever Up"))


def test_the_kept_patterns_are_those_of_the_data() -> None:
    file = Path(os.environ.get("KOPL_DATA", "")) / "kqapro/questions_graph_answer.jsonl"
    if not file.is_file():
        pytest.skip("the questions of people: KOPL_DATA names their folder")
    found = "".join(patterns.lines(patterns.count(patterns.read(file, "train")), patterns.LEAST))
    assert KEPT.read_text("utf-8") == found
