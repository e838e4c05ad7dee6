"""How varied questions are: the figures of benchmarks/wording.py on questions made by hand."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import wording
from benchmarks.wording import Asked
from kopl.text import read, to_json

QUESTIONS = (
    "What is the longest river of Norway?",
    "What is the longest river of Sweden and Norway?",
    "Who runs Oslo?",
    "who runs the the city of Oslo",
    "Is the Rhine longer than the Elbe?",
)


def bleu(hypothesis: list[str], references: list[list[str]]) -> float:
    """BLEU-4 as Papineni et al. (2002) define it, straight from the definition."""
    product = 1.0
    for length in range(1, 5):
        counts = runs(hypothesis, length)
        most: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            most |= runs(reference, length)
        product *= (counts & most).total() / max(1, counts.total())
    nearest = min((abs(len(one) - len(hypothesis)), len(one)) for one in references)[1]
    penalty = 1.0 if len(hypothesis) > nearest else math.exp(1 - nearest / len(hypothesis))
    return float(penalty * product**0.25)


def runs(words: list[str], length: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + length]) for at in range(len(words) - length + 1))


def test_self_bleu_against_all_is_that_of_the_definition() -> None:
    texts = [wording.words(text.lower()) for text in QUESTIONS]
    expected = [
        bleu(text, [other for at, other in enumerate(texts) if at != place])
        for place, text in enumerate(texts)
    ]
    assert wording.self_bleu_of_all(QUESTIONS) == pytest.approx(sum(expected) / len(texts))
    assert sum(expected) > 0


def test_self_bleu_takes_the_parts_that_a_question_is_not_in() -> None:
    same = ["How long is the Rhine?"] * 4
    assert wording.self_bleu(same, 2) == pytest.approx(1)
    different = ["How long is the Rhine?", "Who was born in Oslo?"]
    assert wording.self_bleu(different, 1) == 0
    assert wording.self_bleu(different[:1], 500) == 0


def test_words_are_counted_as_they_are_written() -> None:
    texts = ["What's Peru's capital?", "what's the mother-in-law's name, or Name?"]
    found = wording.lower_case_words(texts)
    assert found == {"s", "capital", "what's", "the", "mother-in-law's", "name", "or"}
    assert wording.opening("What's the U.S. capital?") == "what's the u"


def test_a_masked_question_holds_no_names_and_values() -> None:
    asked = Asked("Did guo mei of the Red Lake (WOEID 12) meet Peru's king 3.5 times?", "",
                  ("Guo Mei",))  # fmt: skip
    assert wording.masked(asked) == "Did _ of the _ (_) meet _'s king _ times?"
    address = Asked("Is http://a.example/x the site of www.b.org?")
    assert wording.masked(address) == "Is _ the site of _?"


def test_the_script_compares_a_file_with_what_people_wrote(tmp_path: Path) -> None:
    program = to_json(read('QueryName(Relate(Find("Norway"), "capital", "forward"))'))
    own = tmp_path / "own.jsonl"
    own.write_text(
        "".join(json.dumps({"question": q, "program": program}) + "\n" for q in QUESTIONS)
    )
    human = tmp_path / "human.jsonl"
    graph = [["?e", "instance of", "lake"], ["?e", "lies in", "Uri"]]
    lines = [
        {"id": str(number), "question": f"Name lake {number} of the canton of Uri.", "target": "?e",
         "graph": graph, "answer": "Grey Lake"}
        for number in range(6)
    ]  # fmt: skip
    human.write_text("".join(json.dumps(line) + "\n" for line in lines))
    script = Path(wording.__file__)
    run = subprocess.run(
        [sys.executable, str(script), "--questions", str(own), "--human", str(human), "--json"],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": "5"},
    )  # fmt: skip
    figures = json.loads(run.stdout)["human.jsonl"]
    assert figures["openings"] == {
        "ours": "4", "human": "5", "ratio": "0.80",
        "ours masked": "4", "human masked": "1", "ratio masked": "4.00",
    }  # fmt: skip
    assert float(figures["self-BLEU-4"]["human"]) > 0
