"""Text from outside, as long as one likes and of any character, is read in linear time.

A regular expression that tries every way to divide a run of blanks takes twice as long for every
further blank; one that begins anew at each character takes four times as long for twice as many.
Each reader is given long runs of what it may stumble over, and the processor time that it may take
is far above that of linear reading and far below that of any other.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cqa.formats import json_lines
from cqa.graphs.graph import from_triples
from cqa.graphs.triple_files import read_numbers
from cqa.notation.reading import read_query
from cqa.notation.sparql import read_sparql as read_cqa_sparql
from cqa.notation.text import read_text as read_first_order
from cqa.types.efok_text import read_formula as read_efok
from cqa.types.registry import by_name
from generation import english
from generation.judge import _BAD as BAD_WORDINGS
from generation.lexicon.annotations import parse_annotations
from generation.paraphrase.prompt import question_in, read_prompt
from generation.paraphrase.responses import read_responses
from generation.rules_file import read_grammar
from kb import KoplError, check_file
from kb.imports.common import read_ids, read_labels
from kb.imports.factmap import read_fact_map
from kb.imports.facts import read_fact_tables
from kb.imports.wikidata import read_wikidata
from kb.rdf.iri import decode, encode
from kb.values import read_quantity, read_time, readings
from kopl import answers
from kopl.example import read_examples
from kopl.sparql.engines.oxigraph import asks_elsewhere
from kopl.sparql.properties import read_properties
from kopl.sparql.reader import read as read_sparql
from kopl.sparql.reader import with_prologue
from kopl.sparql.to_kopl import from_sparql
from kopl.text import read as read_program
from kopl.text import read_nested, read_serialised
from parsers.spelling import alike_by_words, figures, foldings, written
from parsers.tokens import Question, as_constant

LENGTH = 50_000
SECONDS = 2.0  # linear reading takes some milliseconds

RUNS = [*" \t\n\"'\\()[]{}<>,.;:/-+0aA_?#%&|!^@~*\u00e9\ufeff"]
RUNS += ['\\"', "\\'", "\r\n", "#\n", "()", "(,", "a,", "e1,", "1 ", "1.", "-0", "a1", "a ", "a: "]
RUNS += ["<a", "//a", "?a ", "%2", "- ", "the ", "is ", "<arg>", "'''a", '""" ']


class TooSlow(Exception):
    """The processor time is over."""


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raise TooSlow in what takes longer, also inside a regular expression."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def linear(read: Callable[[str], Any], *around: str, runs: list[str] = RUNS) -> None:
    """Fail with all texts that take too long; ``around`` holds texts with a place for a run."""
    slow = []
    for run in runs:
        long = run * (LENGTH // len(run))
        for whole in around:
            begin, _, end = whole.partition("RUN")
            try:
                with processor_time(SECONDS):
                    read(f"{begin}{long}{end}")
            except TooSlow:
                slow.append((whole, run))
            except (KoplError, ValueError):
                pass  # most are no text of the kind
    assert slow == []


def in_english(name: str) -> None:
    english.plural(name), english.with_article(name), english.tidy(name), english.clauses(name)
    english.name_in_sentence(name), english.is_plural_name(name), english.head(name)
    for bad in BAD_WORDINGS:
        bad.search(name)


GRAPH = from_triples([np.array([[0, 0, 1]])], ["train"])
QUERY = 'SELECT ?x WHERE { ?x <pred:name> "a" . }'

# what reads a text, and the texts with a place for a run
TEXTS: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "values": (lambda t: (readings(t), read_time(t)), ("RUN~", "1RUN-01-01")),
    "quantities": (read_quantity, ("RUN", "1.RUN metre")),
    "answers": (lambda t: answers.same_answer(t, t[1:]), ("RUN", "1RUN~")),
    "IRIs": (lambda t: (encode(t), decode(t)), ("%41RUN~",)),
    "programs": (read_program, ("RUN~", "Find(aRUN~(", "Count(FindRUN!(", "FindAll()RUN~")),
    "nested": (read_nested, ('Find("RUN', "FindAllRUN~")),
    "serialised": (read_serialised, ("Find <arg> RUN", "Find RUN <func> CountRUN<arg")),
    "SPARQL": (read_sparql, ("RUN~", "ASK {RUN~", "ASK { <e> RUN~ }", f"{QUERY}RUN~")),
    "SPARQL strings": (from_sparql, ("ASK { ?x <r> 'RUN", 'ASK { ?x <r> "RUN', "ASK { <RUN")),
    "prologue": (lambda t: with_prologue(t, "http://a/"), ("RUN~", "BASE RUN~", "BASE <RUN")),
    "SERVICE": (asks_elsewhere, ("RUN~", '"RUN', "'RUN", '"""RUN')),
    "rules": (read_grammar, ("RUN", "S -> Count(RUN\n  | how many", "S -> FindAll()\n  | RUN{E}")),
    "annotations": (parse_annotations, ("RUN~", 'concepts:\n  "RUN', "concepts: {RUN")),
    "prompts": (read_prompt, ("RUN", "[user]RUN\n{question}")),
    "replies": (question_in, ("RUNx", "<think>RUNx", "1. RUN?", '"RUN?')),
    "tokens": (lambda t: Question.of(t).words, ("1RUN,5",)),
    "constants": (as_constant, ("RUN~", "1RUN million", "minus RUN", "june RUN, 5")),
    "links": (lambda t: (foldings(t), written(t), figures(t)), ("http://RUN~",)),
    "likeness": (lambda t: alike_by_words(t, f"b{t}"), ("RUN~",)),
    "formulas": (read_first_order, ("RUN~", "exists RUN. r(a,?x)", "?aRUN: r(a,?a)", 'r("RUN')),
    "EFOk": (read_efok, ("RUN~", "r1(s1,RUN~", "(r1(s1,f1))RUN~")),
    "types": (by_name, ("RUN~", "(e,RUN~")),
    "queries": (lambda t: read_query(t, GRAPH), ("RUN~", "(RUN,", "r(a,RUN", "SELECTRUN(")),
    "cqa SPARQL": (lambda t: read_cqa_sparql(t), ("SELECT ?x WHERE { ?x <r> <e> . FILTER RUN~",)),
    "samples": (json_lines.from_line, ("RUN", '{"query": "RUN"}', '{"query": [RUN')),
    "names": (in_english, ("RUN~", "aRUNs", "that is RUN that is a")),
}


@pytest.mark.parametrize("reader", TEXTS)
def test_texts(reader: str) -> None:
    read, around = TEXTS[reader]
    linear(read, *around)


NODE = '{"id": "e", "kind": "entity", "name": "RUN", "instanceOf": []}'
VALUE = '"attributes": [{"key": "k", "value": {"type": "date", "value": "RUN"}}]'
TABLE = "e\tr\tf\tRUN\n"

# the name of a file, what reads it, its texts
FILES: dict[str, tuple[Callable[[Path], Any], tuple[str, ...]]] = {
    "kb.json": (check_file, ("RUN", '{"entities": {"e": {"name": "a"RUN', f'{{"RUN": {{{VALUE}}}')),
    "kb.jsonl": (check_file, ("RUN", NODE, NODE.replace("RUN", f'a", {VALUE}, "b": "'))),
    "kb.nt": (check_file, ('<a> <pred:name> "RUN',)),
    "kb.ttl": (check_file, ("RUN", "<a> RUN", '<a> <pred:name> """RUN')),
    "kb.nq": (check_file, ('<a> <pred:name> "a" <RUN',)),
    "dump.json": (read_wikidata, ("RUN", '{"pageid": RUN, "type"', '[\n{"type":"item"RUN')),
    "facts.tsv": (read_fact_tables, ("RUN", TABLE)),
    "facts.csv": (read_fact_tables, ("RUN", 'e,r,"RUN')),
    "labels.json": (lambda p: list(read_labels(p)), ('{"a": RUN', '{"RUN": "b"}')),
    "labels.csv": (lambda p: list(read_labels(p)), ("RUN", 'a,"RUN')),
    "ids.txt": (lambda p: read_ids(p, "Q"), ("RUN", "Q1RUN")),
    "map.json": (read_fact_map, ("RUN", '{"columns": {"RUN": 1}}')),
    "p.json": (read_properties, ('{"a": "PRUN"}', "RUN")),
    "triples.txt": (lambda p: read_numbers(p, 3), ("RUN", "1 2 RUN", "1 2 3RUN~")),
    "set.json": (lambda p: list(read_examples(p)), ('[{"question": "RUN"}]', "[RUN")),
    "done.csv": (lambda p: read_responses([p]), ("RUN", "id,paraphrase\na,RUN", 'id,"RUN')),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, tmp_path: Path) -> None:
    read, around = FILES[name]
    file = tmp_path / name

    def written_and_read(text: str) -> None:
        file.write_text(text, "utf-8", newline="")
        read(file)

    linear(written_and_read, *around)
