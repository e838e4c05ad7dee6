"""The published questions: how many are converted, and whether the programs are right."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generation.human import (
    Conversion,
    GraphSchema,
    HumanQuestion,
    NotConverted,
    convert,
    read_questions,
)
from generation.human.convert import ConversionCounts
from generation.human.records import from_json, is_variable
from generation.human.schema import vocabulary
from kb import Builder, KnowledgeBase
from kopl.executor import Executor
from kopl.functions import FILTER_CONCEPT, FIND, RELATE
from kopl.program import Call, post_order
from kopl.text import read
from kopl.typecheck import check
from kopl_cli.human import conversions
from parsers.actions import Actions
from parsers.matching import exact_match

Converted = list[tuple[HumanQuestion, Conversion | NotConverted]]


@pytest.fixture(scope="module")
def folder(kopl_data: Path) -> Path:
    path = kopl_data / "kqapro"
    if not (path / "questions_graph_answer.jsonl").is_file():
        pytest.skip(f"{path} has no questions_graph_answer.jsonl")
    return path


@pytest.fixture(scope="module")
def questions(folder: Path) -> list[HumanQuestion]:
    return list(read_questions(folder / "questions_graph_answer.jsonl"))


@pytest.fixture(scope="module")
def schema(questions: list[HumanQuestion]) -> GraphSchema:
    return GraphSchema.of(questions)


@pytest.fixture(scope="module")
def converted(questions: list[HumanQuestion], schema: GraphSchema) -> Converted:
    return list(conversions(questions, schema))


def test_shares(converted: Converted) -> None:
    """The figures of docs/human-questions.md."""
    report = ConversionCounts()
    for question, result in converted:
        report.add(question, result)
    assert report.questions["all", "all"] == 16183
    assert report.questions["test", "all"] == 1638
    assert report.converted["all", "all"] == 16091
    assert report.converted["test", "all"] == 1629
    assert report.restored == 366
    assert {reason: count for (reason, tag), count in report.reasons.items() if tag == "all"} == {
        "clause missing": 60,
        "ambiguous namesakes": 19,
        "graph of another question": 9,
        "malformed graph": 3,
        "unknown predicate": 1,
    }


def test_programs_are_well_typed_and_say_what_the_graph_says(converted: Converted) -> None:
    for question, result in converted:
        if isinstance(result, NotConverted):
            continue
        check(result.program)
        said = {text for call in post_order(result.program) for text in call.arguments}
        for clause in (*question.clauses, *result.restored):
            parts = (clause.head, clause.predicate, clause.tail, *(clause.qualifier or ()))
            named = {part for part in parts if not is_variable(part)} - {"instance of"}
            assert named <= said | {"instance of"}


def test_the_vocabulary_has_every_name(
    questions: list[HumanQuestion], schema: GraphSchema, converted: Converted
) -> None:
    kb = vocabulary(questions, schema)
    actions = Actions.of(kb)
    slots = {"key": "key", "qkey": "qualifier key", "relation": "relation", "concept": "concept"}
    for _, result in converted:
        if isinstance(result, NotConverted):
            continue
        for call in post_order(result.program):
            for (name, _), text in zip(call.function.arguments, call.arguments, strict=True):
                if name in slots:
                    assert actions.number(slots[name], text) is not None
                elif name == "name":
                    assert len(kb.named(text))


# --- against the gold programs ---------------------------------------------------------------

_TRIPLE = re.compile(r'(\?\w+) <([^>]+)> (\?\w+|"[^"]*") \.')
_FACT = re.compile(
    r"\[ <pred:fact_h> (\?\w+) ; <pred:fact_r> <([^>]+)> ; <pred:fact_t> (\?\w+) \] "
    r"<([^>]+)> (\?\w+) \."
)
_TARGETS = {
    "ASK": "bool", "SELECT DISTINCT ?e ": "?e", "SELECT (COUNT(DISTINCT ?e)": "count ?e",
    "SELECT DISTINCT ?pv ": "?pv", "SELECT DISTINCT ?qpv": "?qpv",
}  # fmt: skip


def graph_of(item: dict[str, Any]) -> HumanQuestion | None:
    """The simplified graph of a gold query, as the published ones are; None for other queries."""
    sparql: str = item["sparql"]
    target = next((to for start, to in _TARGETS.items() if sparql.startswith(start)), None)
    other = ("FILTER", "UNION", "<pred:unit>", "<pred:year>", "<pred:date>", "ORDER BY")
    if target is None or any(word in sparql for word in other):
        return None
    named: dict[str, str] = {}
    triples = _TRIPLE.findall(_FACT.sub("", sparql))
    concepts = {tail for _, predicate, tail in triples if predicate == "pred:instance_of"}
    for head, predicate, tail in triples:
        if predicate in ("pred:name", "pred:value"):
            named[head] = tail.strip('"')
    facts = {fact[:3]: fact for fact in _FACT.findall(sparql)}
    graph = []
    for head, predicate, tail in triples:
        if predicate in ("pred:name", "pred:value"):
            continue
        fact = facts.get((head, predicate, tail))
        parts = [head, predicate, tail, *(fact[3:] if fact else ())]
        if predicate == "pred:instance_of":
            parts[1] = "instance of"
            assert tail in concepts
        graph.append(
            [named.get(p, p) if p.startswith("?") else p.replace("_", " ") for p in parts]
        )  # fmt: skip
    fields = {"id": item["id"], "question": item["question"], "answer": item["answer"]}
    return from_json({**fields, "target": target, "graph": graph})


def test_gold_graphs_give_the_gold_programs(folder: Path, schema: GraphSchema) -> None:
    # The one predicate of theirs that the published graphs have not.
    relations = schema.relations | {"place of origin (Switzerland)"}
    schema = GraphSchema(relations, schema.keys, schema.tails)
    equal = matched = tried = 0
    for line in (folder / "gold_30.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        question = graph_of(item)
        if question is None:
            continue
        gold, program = read(item["program"]), convert(question, schema).program
        tried += 1
        equal += program == gold
        matched += exact_match(gold, program)
    assert (tried, matched, equal) == (14, 14, 14)


# --- against the part of the knowledge base that is there ---------------------------------------


def plain(text: str) -> str:
    """A text as the tables have it: without commas, with single blanks."""
    return " ".join(re.sub(r",\s*", " and ", text).split())


def rows(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file, quoting=csv.QUOTE_NONE):
            yield [plain(cell) for cell in row]


@pytest.fixture(scope="module")
def partial(folder: Path) -> KnowledgeBase:
    """String attributes, and relations with string qualifiers; namesakes are one entity."""
    attributes = list(rows(folder / "kb_string_attributes.csv"))
    relations = list(rows(folder / "kb_qualified_relations_names.csv"))
    builder = Builder()
    for name in sorted({row[0] for row in attributes + relations} | {row[2] for row in relations}):
        builder.add_entity(name, name)
    for table, add in ((attributes, builder.add_attribute), (relations, builder.add_fact)):
        for head, predicate, tail, *pairs in table:
            qualifiers: dict[str, list[str]] = {}
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                qualifiers.setdefault(key, []).append(value)
            add(head, predicate, tail, qualifiers)
    return builder.build()


def without_concepts(call: Call) -> Call:
    """The program as the tables can answer it, which have no concepts."""
    inputs = tuple(without_concepts(part) for part in call.inputs)
    if call.function is FILTER_CONCEPT:
        return inputs[0]
    return Call(call.function, inputs, tuple(plain(text) for text in call.arguments))


def test_programs_give_the_stored_answers(partial: KnowledgeBase, converted: Converted) -> None:
    executor = Executor(partial)
    counts: Counter[tuple[bool, str]] = Counter()
    for question, result in converted:
        if isinstance(result, NotConverted) or question.target == "count ?e":
            continue  # the tables have not all facts: they cannot count
        program = without_concepts(result.program)
        # Only what reads facts of names; concepts and unqualified relations are not in the tables.
        names = {call.function.name for call in post_order(result.program)}
        covered = names.isdisjoint({"FilterConcept", "Relate"})
        read_first = program.inputs[0] if question.target == "bool" else program
        if not executor.run(read_first).denotation:
            continue  # facts with other values, or with no qualifier that is a string
        found = executor.run(program).denotation
        counts[covered, "checkable"] += 1
        counts[covered, "agree"] += found == [plain(question.answer)]
    assert (counts[True, "checkable"], counts[True, "agree"]) == (4302, 4302)
    assert (counts[False, "checkable"], counts[False, "agree"]) == (2851, 2767)


def test_restored_clauses_are_facts(partial: KnowledgeBase, converted: Converted) -> None:
    """Where the tables have facts of a name and a relation, they have most restored ones."""
    executor = Executor(partial)
    known = there = 0
    for _, result in converted:
        for lost in result.restored if isinstance(result, Conversion) else ():
            if is_variable(lost.head):
                continue
            head = Call(FIND, (), (plain(lost.head),))
            tails = executor.run(Call(RELATE, (head,), (lost.predicate, "forward"))).denotation
            known += bool(tails)
            there += plain(lost.tail) in tails
    assert (there, known) == (129, 220)
