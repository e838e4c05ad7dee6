"""Questions with query graphs in the style of the published ones, written for the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# target, question, graph, program, answer
CASES: list[tuple[str, str, list[list[str]], str, str]] = [
    (
        "?e", "Which painter has the guild number 17?",
        [["?e", "instance of", "painter"], ["?e", "guild number", "17"]],
        'QueryName(FilterConcept(FilterStr(FindAll(), "guild number", "17"), "painter"))',
        "Ada Moss",
    ),
    (
        "?e", "Which lake lies in the canton whose motto is Ever Up?",
        [["?e", "instance of", "lake"], ["?e", "lies in", "?e_1"],
         ["?e_1", "instance of", "canton"], ["?e_1", "motto", "Ever Up"]],
        'QueryName(FilterConcept(Relate(FilterConcept(FilterStr(FindAll(), "motto", "Ever Up"), '
        '"canton"), "lies in", "backward"), "lake"))', "Grey Lake",
    ),
    (
        "?e", "Which canton do both Grey Lake and Mill (the one of North) belong to?",
        [["?e", "instance of", "canton"], ["Grey Lake", "lies in", "?e"],
         ["North", "has part", "Mill"], ["Mill", "lies in", "?e"]],
        'QueryName(And(FilterConcept(Relate(Find("Grey Lake"), "lies in", "forward"), "canton"), '
        'FilterConcept(Relate(And(Relate(Find("North"), "has part", "forward"), Find("Mill")), '
        '"lies in", "forward"), "canton")))', "Uri",
    ),
    (
        "?e", "Who won the Amber Cup for Night Rain?",
        [["?e", "instance of", "human"], ["Amber Cup", "winner", "?e", "for work", "Night Rain"]],
        'QueryName(FilterConcept(QFilterStr(Relate(Find("Amber Cup"), "winner", "forward"), '
        '"for work", "Night Rain"), "human"))', "Ada Moss",
    ),
    (
        "count ?e", "How many lakes border Uri?",
        [["?e", "instance of", "lake"], ["?e", "borders", "Uri"]],
        'Count(FilterConcept(Relate(Find("Uri"), "borders", "backward"), "lake"))', "3",
    ),
    (
        "?pv", "When was the painter with guild number 17 born?",
        [["?e", "instance of", "painter"], ["?e", "guild number", "17"], ["?e", "born", "?pv"]],
        'QueryAttr(FilterConcept(FilterStr(FindAll(), "guild number", "17"), "painter"), "born")',
        "1801",
    ),
    (
        "?pv", "What is the area of the canton with the English site http://uri.example?",
        [["?e", "instance of", "canton"],
         ["?e", "website", "http://uri.example", "language", "English"], ["?e", "area", "?pv"]],
        'QueryAttr(FilterConcept(QFilterStr(FilterStr(FindAll(), "website", "http://uri.example"), '
        '"language", "English"), "canton"), "area")', "1077 square kilometre",
    ),
    (
        "bool", "Is 18 the guild number of Ada Moss (who is a painter)?",
        [["Ada Moss", "craft", "painter"], ["Ada Moss", "guild number", "18"]],
        'VerifyStr(QueryAttr(And(Relate(Find("painter"), "craft", "backward"), Find("Ada Moss")), '
        '"guild number"), "18")', "no",
    ),
    (
        "bool", "Is the motto of Uri, for the north part, Ever Up?",
        [["Uri", "motto", "Ever Up", "part", "north"]],
        'VerifyStr(QueryAttrUnderCondition(Find("Uri"), "motto", "part", "north"), "Ever Up")',
        "yes",
    ),
    (
        "?qpv", "In which language is http://uri.example the site of Uri (whose motto is Ever Up)?",
        [["Uri", "motto", "Ever Up"], ["Uri", "website", "http://uri.example", "language", "?qpv"]],
        'QueryAttrQualifier(FilterStr(Find("Uri"), "motto", "Ever Up"), "website", '
        '"http://uri.example", "language")', "English",
    ),
    (
        "?qpv", "For which work did Ada Moss (whose craft is painter) win the Amber Cup?",
        [["Ada Moss", "craft", "painter"], ["Amber Cup", "winner", "Ada Moss", "for work", "?qpv"]],
        'QueryRelationQualifier(Find("Amber Cup"), And(Relate(Find("painter"), "craft", '
        '"backward"), Find("Ada Moss")), "winner", "for work")', "Night Rain",
    ),
    (  # commas cut the texts of the graph into pieces
        "bool", "Is the address of Uri Hall 3 Low St, Altdorf, and its code 1,2,(3) too?",
        [["Uri Hall", "address", "3 Low St", " Altdorf"], ["Uri Hall", "code", "1", "2", "(3)"]],
        'VerifyStr(QueryAttr(FilterStr(Find("Uri Hall"), "address", "3 Low St, Altdorf"), "code"), '
        '"1,2,(3)")', "yes",
    ),
    (  # a clause with head and relation of the one with a qualifier is lost
        "?qpv", "For what did Bo Reed get the Amber Cup (that Ada Moss won, too)?",
        [["Amber Cup", "winner", "Bo Reed", "for work", "?qpv"]],
        'QueryRelationQualifier(And(Relate(Find("Ada Moss"), "winner", "backward"), '
        'Find("Amber Cup")), Find("Bo Reed"), "winner", "for work")', "Day Rain",
    ),
    (  # a name and an equal value
        "?qpv", "Since when is http://mill.example the site of Mill (whose motto is Mill)?",
        [["Mill", "motto", "Mill"], ["Mill", "website", "http://mill.example", "since", "?qpv"]],
        'QueryAttrQualifier(FilterStr(Find("Mill"), "motto", "Mill"), "website", '
        '"http://mill.example", "since")', "1999",
    ),
    (  # namesakes at both ends, one thing said of each
        "?qpv", "Since when does Mill (whose motto is Up) lie in Mill (whose code is 4)?",
        [["Mill", "motto", "Up"], ["Mill", "code", "4"],
         ["Mill", "lies in", "Mill", "since", "?qpv"]],
        'QueryRelationQualifier(FilterStr(Find("Mill"), "motto", "Up"), '
        'FilterStr(Find("Mill"), "code", "4"), "lies in", "since")', "1900",
    ),
    (  # the question says which end the first clause is about
        "?qpv", "Since when is Uri the twin of Zug (that is a twin of Uri)?",
        [["Zug", "borders", "Uri"], ["Uri", "borders", "Zug", "since", "?qpv"]],
        'QueryRelationQualifier(Find("Uri"), And(Relate(Find("Uri"), "borders", "backward"), '
        'Find("Zug")), "borders", "since")', "1950",
    ),
    (
        "?e", "Which prize did Ada Moss both win and, for Night Rain, reach the last round of?",
        [["?e", "instance of", "prize"], ["Ada Moss", "award", "?e"],
         ["Ada Moss", "nominated for", "?e", "for work", "Night Rain"]],
        'QueryName(And(FilterConcept(Relate(Find("Ada Moss"), "award", "forward"), "prize"), '
        'FilterConcept(QFilterStr(Relate(Find("Ada Moss"), "nominated for", "forward"), '
        '"for work", "Night Rain"), "prize")))', "Amber Cup",
    ),
]  # fmt: skip

# Graphs that give proof of what is a relation and what is a key.
PROOF: list[tuple[str, list[list[str]]]] = [
    ("?e", [["?e", "instance of", "thing"], ["?e_1", "instance of", "thing"],
            ["?e", relation, "?e_1"], ["?e_1", relation, "Uri"]])
    for relation in ("lies in", "has part", "winner", "borders", "craft", "award", "nominated for")
] + [
    ("?pv", [["Uri", key, "?pv"]])
    for key in ("guild number", "motto", "website", "address", "code", "area")
]  # fmt: skip


def lines(
    cases: Sequence[tuple[str, str, list[list[str]], str, str]] = CASES,
) -> list[dict[str, Any]]:
    """The objects of a file with the cases, and of the proof that their schema needs."""
    found = [
        {"id": f"case-{n}", "question": question, "target": target, "graph": graph,
         "answer": answer, "src": ["qualifier"] if "qpv" in target else ["multihop", "verify"]}
        for n, (target, question, graph, _, answer) in enumerate(cases)
    ]  # fmt: skip
    return found + [
        {"id": f"proof-{n}", "question": "Which thing of Uri's thing, its area, motto, address,"
         " code, guild number or website?", "target": target, "graph": graph, "answer": "Uri"}
        for n, (target, graph) in enumerate(PROOF)
    ]  # fmt: skip


def write(path: Path, items: Sequence[object]) -> Path:
    """A file of JSON lines."""
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    path.write_text(text, "utf-8")
    return path
