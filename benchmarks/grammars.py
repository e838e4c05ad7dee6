"""How large grammars for decoding are, and how long it takes to write and to compile them.

    python -m benchmarks.grammars [--kb KB] [--people FILE] [--times N]

Grammars of `kopl.grammars` in each notation: for the candidate names of people's questions (those
marked dev), for 300 names and for all names. Compiled by llguidance, GBNF by way of its own
conversion to Lark, up to the set of the tokens that may come first; a token for each byte.
Processor time in milliseconds, the median of some runs, on one thread; Markdown goes to standard
output.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# One thread, as set before the package is loaded.
os.environ.setdefault("RAYON_NUM_THREADS", "1")

from kb import KnowledgeBase, load
from kb.schema import Schema
from kopl.grammars import FORMS, Form, grammar
from parsers.linking import MOST_CANDIDATES, Linker, candidates

PEOPLE = Path(__file__).with_name("people") / "world.jsonl"


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kb", default="world", help="a knowledge base (default: world)")
    parser.add_argument("--people", type=Path, default=PEOPLE, metavar="FILE", help="questions")
    parser.add_argument("--times", type=int, default=5, help="runs of each (default: 5)")
    arguments = parser.parse_args()
    kb = load(arguments.kb)
    linker = Linker(kb)
    with arguments.people.open(encoding="utf-8") as file:
        items = [json.loads(line) for line in file]
    questions = [item["question"] for item in items if item["part"] == "dev"]
    candidates(linker, questions[0])  # what is made once for a knowledge base
    found = [measured(lambda text=text: candidates(linker, text), 1) for text in questions]
    spent, listed = [seconds for seconds, _ in found], [names for _, names in found]
    counts = sorted(map(len, listed))
    middle, largest = counts[len(counts) // 2], counts[-1]
    print(f"{len(questions)} questions: {middle} candidate names at the median, {largest} at most;")
    print(f"found in {1000 * statistics.median(spent):.1f} ms, {1000 * max(spent):.0f} at most\n")
    nodes = Schema.of(kb).nodes
    sets: dict[str, Sequence[str] | None] = {
        f"a question's ({middle})": min(listed, key=lambda names: abs(len(names) - middle)),
        f"a question's ({largest})": max(listed, key=len),
        str(MOST_CANDIDATES): random.Random(0).sample(nodes, min(MOST_CANDIDATES, len(nodes))),
        f"all ({len(nodes):,})": None,
    }
    print("| notation | names | KB | written, ms | compiled, ms |")
    print("|---|---|---|---|---|")
    for form in FORMS:
        for label, names in sets.items():
            print(row(kb, form, label, names, arguments.times))


def row(kb: KnowledgeBase, form: Form, label: str, names: Sequence[str] | None, times: int) -> str:
    """A line of the table."""
    writing, text = measured(lambda: grammar(kb, form, names), times)
    compiling, _ = measured(lambda: compiled(text, form), times)
    size = len(text.encode()) / 1000
    return f"| {form} | {label} | {size:.1f} | {1000 * writing:.1f} | {1000 * compiling:.0f} |"


def compiled(text: str, form: Form) -> Any:
    """The first tokens under a grammar, by llguidance."""
    from llguidance import LLMatcher, LLTokenizer
    from llguidance.gbnf_to_lark import gbnf_to_lark

    if form == "json-schema":
        made = LLMatcher.grammar_from_json_schema(text)
    else:
        made = LLMatcher.grammar_from_lark(gbnf_to_lark(text) if form == "gbnf" else text)
    matcher = LLMatcher(LLTokenizer("byte"), made)
    assert not matcher.is_error(), matcher.get_error()
    return matcher.compute_bitmask()


def measured(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The median of the seconds of some runs, and what the last one gave."""
    spent = []
    for _ in range(times):
        begun = time.process_time()
        given = work()
        spent.append(time.process_time() - begun)
    return statistics.median(spent), given


if __name__ == "__main__":
    main()
