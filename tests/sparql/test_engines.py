"""The engine suite: one body for every engine. A gap is an expected failure with its reason."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kb import Builder, Date, KnowledgeBase, Quantity, Year, from_kqapro
from kb.values import ValueReadError, read_time
from kopl.builder import find, find_all
from kopl.errors import KoplError
from kopl.executor import Executor
from kopl.sparql.errors import NotUnderstoodError, TimedOutError
from kopl.sparql.from_kopl import translate
from tests.kopl.test_golden import GOLDEN
from tests.reference.naive import Naive
from tests.reference.random_kb import random_kb
from tests.reference.random_program import ProgramSampler
from tests.reference.shares import Shares
from tests.sparql.holders import LOST_IN_VIRTUOSO, Holder, for_virtuoso

# Programs of the random comparison by engine, for every run of the suite. Longer runs: the variable
# is how many for Oxigraph in memory, and the others get as many times more.
EVERY_RUN = {
    "oxigraph-memory": 10_000,
    "oxigraph-disk": 200,
    "oxigraph-terms": 2000,
    "rdflib": 200,
    "oxrdflib": 200,
    "oxigraph-server": 300,
    "virtuoso": 500,
}
LONGER = max(1.0, int(os.environ.get("KOPL_DIFFERENTIAL", "0")) / EVERY_RUN["oxigraph-memory"])
PROGRAMS = {name: round(count * LONGER) for name, count in EVERY_RUN.items()}
PER_KB = 100


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["program"][:60])
def test_golden(holder: Holder, tiny: KnowledgeBase, case: dict[str, Any]) -> None:
    assert holder.hold(tiny).run(case["program"]).denotation == case["denotation"]


def test_random_programs(holder: Holder, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal denotations of random programs on random knowledge bases, with and without its schema.

    The programs run without the knowledge base's schema and with it by turns.
    """
    wanted: Counter[Any] = Counter()
    shares, begin = Shares(), time.perf_counter()
    seconds = 0.0
    for seed in range(PROGRAMS[holder.name] // PER_KB):
        rng = random.Random(f"sparql {seed}")
        document = random_kb(rng)
        if holder.name == "virtuoso":
            document = for_virtuoso(document)
        kb = from_kqapro(document)
        naive, engine = Naive(document), holder.hold(kb)
        sampler = ProgramSampler(document, rng, counts=wanted)
        for number in range(PER_KB):
            program = sampler.sample()
            if holder.name == "virtuoso" and _is_lost(program):
                continue
            engine.kb = kb if number % 2 else None
            expected = naive.denotation(program)
            before = time.perf_counter()
            found = engine.run(program).denotation
            seconds += time.perf_counter() - before
            assert found == expected, (seed, program, str(_query(engine, program)))
            shares.add(program, expected)
    with capsys.disabled():
        whole = time.perf_counter() - begin
        print(f"\n{holder.name}: {shares}; {seconds:.0f} s of {whole:.0f} s in the engine")
    if shares.programs >= 2000:
        shares.check()


def _is_lost(program: list[dict[str, Any]]) -> bool:
    for text in (text for call in program for text in call["inputs"]):
        try:
            if str(read_time(text)).startswith(LOST_IN_VIRTUOSO):
                return True
        except ValueReadError:
            continue
    return False


def _query(engine: Any, program: Any) -> Any:
    return translate(program, kb=engine.kb, encoding=engine.encoding)[0]


@pytest.mark.parametrize("day", ["-0001-12-31", "-0008-02-29", "0004-12-31"])
def test_days_at_the_edges(holder: Holder, day: str, request: pytest.FixtureRequest) -> None:
    """Days that one engine loses; the others keep them."""
    if holder.name == "virtuoso":
        reason = "Virtuoso 7.2 counts days by the Julian calendar and gives other days back"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    builder = Builder()
    builder.add_concept("c", "thing")
    builder.add_entity("e", "one", ["c"])
    year, month, rest = day[:-6], day[-5:-3], day[-2:]
    builder.add_attribute("e", "born", Date(int(year), int(month), int(rest)))
    engine = holder.hold(builder.build())
    assert engine.run(find("one").query_attr("born")).denotation == [day]
    assert engine.run(find_all().filter_date("born", day, "=").query_name()).denotation == ["one"]


AWKWARD = [
    "",
    " ",
    '"',
    "'",
    "\\",
    '\\"',
    "\\u0022",
    "\\\\u0041",
    "\n",
    "\r\n",
    "\t",
    "a\u0000b",
    "\u0001\u007f",
    '" . ?x ?y ?z . "',
    '"@en',
    '"^^<http://x>',
    "} UNION { ?e ?p ?o",
    "# comment",
    "> . } #",
    "<http://a.b>",
    "?e",
    "$e",
    "%20",
    "_:b1",
    "\u202eabc",
    "\U0001f600",
    "é",
    "e\u0301",
    "\ufeffx",
    "''' \"\"\"",
    "a//b/../c?d#e",
    "pred:name",
]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(text=st.text(min_size=0, max_size=12), other=st.sampled_from(AWKWARD))
@example(text="", other="")
def test_no_text_can_change_a_query(quick_holder: Holder, text: str, other: str) -> None:
    """Injection: any text in every place of a program finds itself, and nothing else.

    Each knowledge base holds the text as name, concept, key, relation, unit, value and qualifier;
    another awkward one finds what it finds without SPARQL. Engines that take long to load get many
    texts at once instead (the tests below).
    """
    kb = _holding([text])
    engine = quick_holder.hold(kb)
    for program in _programs_with(text):
        assert engine.run(program).denotation == Executor(kb).denote(program), program
    for program in _programs_with(other):
        assert engine.run(program).denotation == Executor(kb).denote(program), program


def test_awkward_texts_in_one_knowledge_base(holder: Holder) -> None:
    """All awkward texts side by side: each is found, and only it."""
    kb = _holding(AWKWARD)
    engine, executor = holder.hold(kb), Executor(kb)
    for text in AWKWARD:
        for program in _programs_with(text):
            assert engine.run(program).denotation == executor.denote(program), program


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    texts=st.lists(
        st.text(max_size=12), min_size=8, max_size=8, unique_by=lambda text: " ".join(text.split())
    )
)
def test_drawn_texts_in_one_knowledge_base(holder: Holder, texts: list[str]) -> None:
    """The same for texts that Hypothesis draws."""
    kb = _holding(texts)
    engine, executor = holder.hold(kb), Executor(kb)
    for text in texts:
        for program in _programs_with(text):
            assert engine.run(program).denotation == executor.denote(program), program


def _holding(texts: list[str]) -> KnowledgeBase:
    builder = Builder()
    for number, text in enumerate(texts):
        unit = text or "1"
        builder.add_concept(f"c{number}{text}", text)
        builder.add_entity(f"e{number}{text}", text, [f"c{number}{text}"])
        builder.add_attribute(f"e{number}{text}", text, text, {text: text})
        builder.add_attribute(f"e{number}{text}", text, Quantity(5, unit), {text: Year(-44)})
        builder.add_fact(f"e{number}{text}", text, f"c{number}{text}", {text: text})
    return builder.build()


def _programs_with(text: str) -> list[Any]:
    """Programs with a text in every place that takes one."""
    number = f"5 {text}" if text else "5"
    sets = [
        find(text),
        find_all().filter_concept(text),
        find_all().filter_str(text, text),
        find_all().filter_str(text, text).qfilter_str(text, text),
        find_all().filter_num(text, number, "="),
        find_all().relate(text, "forward"),
        find(text).relate(text, "backward"),
    ]
    asked = [
        find(text).query_attr(text),
        find(text).query_attr_under_condition(text, text, text),
        find(text).query_attr_qualifier(text, text, text),
        find(text).query_attr_qualifier(text, number, text),
        find(text).query_relation_qualifier(find(text), text, text),
        find(text).query_relation(find(text)),
        find(text).select_between(find_all(), text, "greater"),
        find(text).select_among(text, "smallest"),
        find(text).query_attr(text).verify_str(text),
        find(text).query_attr(text).verify_num(number, "="),
    ]
    return [*(nodes.query_name() for nodes in sets), *asked]


def test_a_time_limit_holds(holder: Holder) -> None:
    """A query that would run for hours is given up; the engine answers the next one."""
    engine = holder.hold(_many(1500))
    cross = " ".join(f"?e_{at} <pred:kind> ?k_{at} ." for at in range(3))
    runaway = f"SELECT (COUNT(DISTINCT ?e_0) AS ?count) WHERE {{ {cross} FILTER(?e_0 != ?e_2) }}"
    engine.timeout = 1.0
    begin = time.perf_counter()
    with pytest.raises(TimedOutError):
        engine.denotation(runaway)
    assert time.perf_counter() - begin < 15
    engine.timeout = 60
    assert engine.denotation("SELECT (COUNT(DISTINCT ?e) AS ?count) { ?e <pred:name> ?n }") == [
        "1500"
    ]


def _many(count: int) -> KnowledgeBase:
    builder = Builder()
    for number in range(count):
        builder.add_entity(f"e{number}", f"name {number}")
    return builder.build()


def test_an_error_of_the_query_is_told_as_such(holder: Holder, tiny: KnowledgeBase) -> None:
    with pytest.raises(NotUnderstoodError):
        holder.hold(tiny).rows("SELECT nonsense WHERE")


def test_queries_as_the_data_writes_them(holder: Holder, tiny: KnowledgeBase) -> None:
    """Nodes are asked for and names come back; a false ASK is "no"; values have their units."""
    engine = holder.hold(tiny)
    for query, expected in [
        ('SELECT DISTINCT ?e WHERE { ?e <pred:name> "Paris" . }', ["Paris"]),
        ('ASK { ?e <pred:name> "nobody" . ?e <height> ?pv . ?pv <pred:value> "x" . }', ["no"]),
        ('SELECT DISTINCT ?p WHERE { ?a ?p ?b . ?a <pred:name> "nobody" . }', []),
    ]:
        assert engine.denotation(query) == expected


def test_a_program_that_is_none(holder: Holder, tiny: KnowledgeBase) -> None:
    with pytest.raises(KoplError):
        holder.hold(tiny).run("Count(Count(FindAll()))")
