"""What the measurements of parsers rest on: halves of a schema, steps done once, their tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.parsing.halves import Half, HalvesError, check_apart, halves, restricted
from benchmarks.parsing.human import by_source, is_validation, matches
from benchmarks.parsing.new_kb import annotations_of
from benchmarks.parsing.series import Series, StepError
from benchmarks.parsing.tables import Section, Spread, each, percents, table, workload
from generation.human.records import HumanQuestion
from generation.lexicon import Lexicon, parse_annotations
from kb import Builder, KnowledgeBase, Quantity, Year, load
from kopl.example import Example, write_examples
from kopl.text import read

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def town() -> KnowledgeBase:
    """A knowledge base whose schema has words of several kinds, and a chain of concepts."""
    builder = Builder()
    builder.add_concept("thing", "thing")
    builder.add_concept("place", "place", ["thing"])
    builder.add_concept("settlement", "settlement", ["place"])
    builder.add_concept("city", "city", ["settlement"])
    builder.add_concept("river", "river", ["place"])
    builder.add_concept("mayor", "mayor", ["thing"])  # a relation, too
    for city in ("Aa", "Bo", "Ci"):
        builder.add_entity(city, city, ["city"])
        builder.add_entity(f"m{city}", f"Mayor of {city}", ["mayor"])
        builder.add_entity(f"r{city}", f"River {city}", ["river"])
        builder.add_attribute(city, "area", Quantity(ord(city[0]), "hectare"))
        builder.add_attribute(city, "length", Quantity(3, "metre"), {"source": "map"})
        builder.add_attribute(city, "length", Quantity(3, "metre"), {"year": Year(1990)})
        builder.add_fact(city, "mayor", f"m{city}", {"year": Year(2000), "length": Quantity(4)})
        builder.add_fact(city, "lies on", f"r{city}", {"source": "map", "rank": "1"})
        builder.add_fact(f"r{city}", "flows to", city, {"year": Year(1900)})
        builder.add_attribute(city, "code", city.upper(), {"rank": "2"})
    builder.add_entity("nobody", "Nobody")
    return builder.build()


def words_of(kb: KnowledgeBase) -> set[str]:
    concepts = kb.names_of_kind("concept")
    return {*kb.relations, *kb.attribute_keys, *kb.qualifier_keys, *concepts}


@pytest.mark.parametrize("seed", range(5))
def test_the_halves_share_no_word_and_leave_none_out(town: KnowledgeBase, seed: int) -> None:
    first, second = halves(town, seed)
    assert not first.words & second.words
    assert first.words | second.words == words_of(town)
    for half in (first, second):
        # A word of two kinds is there as both.
        assert ("length" in half.keys) == ("length" in half.qualifier_keys)
        assert ("mayor" in half.relations) == ("mayor" in half.concepts)
    assert abs(len(first.words) - len(second.words)) <= 1


def test_the_halves_of_world_are_even_whatever_the_hash_seed() -> None:
    world = load("world")
    parts = [restricted(world, half) for half in halves(world, 1)]
    for count in (lambda kb: len(kb.relational), lambda kb: len(kb.literals),
                  lambda kb: len(kb.relations), lambda kb: kb.concept_count):  # fmt: skip
        one, other = map(count, parts)
        assert min(one, other) > 0.65 * max(one, other)
    assert not words_of(parts[0]) & words_of(parts[1])
    script = (
        "from kb import load\nfrom benchmarks.parsing.halves import halves, restricted\n"
        "kb = load('world')\n"
        "print(*(restricted(kb, half).fingerprint for half in halves(kb, 1)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.split() == [part.fingerprint for part in parts]


def naive(kb: KnowledgeBase, words: frozenset[str]) -> tuple[set[Any], ...]:
    """What is left of a knowledge base with some words: facts, attributes, instances, concepts."""

    def qualifiers(found: dict[str, list[Any]]) -> frozenset[tuple[str, str]]:
        return frozenset((k, str(v)) for k, vs in found.items() if k in words for v in vs)

    facts = {
        (f.head, f.relation, f.tail, qualifiers(f.qualifiers))
        for f in kb.facts() if f.relation in words
    }  # fmt: skip
    attributes, instances, above = set(), set(), set()
    for node in range(kb.entity_count):
        id = kb.id_of(node)
        attributes |= {
            (id, a.key, str(a.value), qualifiers(a.qualifiers))
            for a in kb.attributes(node) if a.key in words
        }  # fmt: skip
        of = {kb.name_of(concept) for concept in kb.all_concepts_of(node)}
        instances |= {(id, concept) for concept in of & words}
    for node in range(kb.entity_count, kb.node_count):
        if kb.name_of(node) in words:
            names = {kb.name_of(ancestor) for ancestor in kb.ancestors(node)}
            above |= {(kb.name_of(node), name) for name in names & words}
    return facts, attributes, instances, above


def random_half(kb: KnowledgeBase, random: Random) -> Half:
    chosen = {word for word in sorted(words_of(kb)) if random.random() < 0.5}
    kinds = (kb.relations, kb.attribute_keys, kb.qualifier_keys, kb.names_of_kind("concept"))
    return Half(*(tuple(name for name in names if name in chosen) for names in kinds))


@pytest.mark.parametrize("seed", range(20))
def test_a_half_has_what_its_words_say(town: KnowledgeBase, seed: int) -> None:
    half = random_half(town, Random(seed))
    kb = restricted(town, half)
    expected = naive(town, half.words)
    assert naive(kb, half.words) == expected
    assert words_of(kb) <= half.words
    assert len(kb.literals) == len(expected[1])  # equal attributes are one
    named = {id for head, _, tail, _ in expected[0] for id in (head, tail)}
    named |= {row[0] for rows in expected[1:3] for row in rows}
    assert {kb.id_of(node) for node in range(kb.entity_count)} == named


def test_concepts_lie_below_the_nearest_of_their_half(town: KnowledgeBase) -> None:
    kb = restricted(town, Half(("lies on",), (), (), ("place", "river", "thing")))
    assert [kb.name_of(node) for node in kb.concepts_of(kb.node("Aa"))] == ["place"]
    assert [kb.name_of(node) for node in kb.parents(kb.node("river"))] == ["place"]
    assert [kb.name_of(node) for node in kb.concepts_of(kb.node("mAa"))] == ["thing"]
    assert kb.node("nobody") == -1


def test_a_schema_that_cannot_be_halved_is_refused() -> None:
    builder = Builder()
    builder.add_entity("a", "a")
    builder.add_attribute("a", "area", Quantity(1))
    with pytest.raises(HalvesError, match="too small"):
        halves(builder.build(), 1)


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ('QueryName(Relate(Find("Aa"), mayor, forward))', "mayor"),
        ('QueryAttr(Find("Aa"), length)', "length"),
        ('QueryAttrQualifier(Find("Aa"), code, AA, length)', "length"),
        ("Count(FilterConcept(FindAll(), city))", "city"),
        ('QueryName(Relate(Find("city"), code, forward))', "city"),
        ('QueryName(Relate(Find("Aa"), "lies  on", forward))', "lies on"),
    ],
)
def test_questions_that_name_the_other_half_are_refused(
    town: KnowledgeBase, program: str, word: str
) -> None:
    other = Half(("lies on", "mayor"), ("length",), ("length",), ("city", "mayor"))
    harmless = Example("?", read('QueryAttr(Find("Aa"), area)'), id="x")
    assert check_apart([harmless, harmless], other, town) == 2
    with pytest.raises(HalvesError, match=f"question q7 names '{word}'.*What\\?"):
        check_apart([harmless, Example("What?", read(program), id="q7")], other, town)


def test_the_name_of_an_entity_is_no_word_of_the_schema() -> None:
    builder = Builder()
    builder.add_entity("e", "mayor")
    builder.add_attribute("e", "area", Quantity(1))
    example = Example("?", read("QueryAttr(Find(mayor), area)"))
    other = Half((), (), (), ("mayor",))
    assert check_apart([example], other, builder.build()) == 1
    with pytest.raises(HalvesError, match="question 1 names 'mayor'"):
        check_apart([example], other, Builder().build())


# --- people's questions --------------------------------------------------------------------------


def test_matches_and_sources() -> None:
    gold = 'QueryName(And(Find("a"), Find("b")))'
    lines: list[dict[str, Any]] = [
        {"id": "1", "gold": gold, "program": 'QueryName(And(Find("b"), Find("a")))'},
        {"id": "2", "gold": gold, "program": 'QueryName(Or(Find("a"), Find("b")))'},
        {"id": "3", "gold": gold, "program": None},
    ]
    right = dict(matches(lines))
    assert right == {"1": True, "2": False, "3": False}
    sources = {"1": ("x", "y"), "2": ("x",), "3": ("y",), "unconverted": ("y",)}
    asked = [HumanQuestion(id, "?", "?e", (), "", tags) for id, tags in sources.items()]
    shares = {name: (s.count, s.of) for name, s in by_source(asked, right).items()}
    assert shares == {"all": (1, 4), "x": (1, 2), "y": (1, 3)}


def test_the_slice_for_validation_is_fixed() -> None:
    chosen = [number for number in range(2000) if is_validation(f"train-{number}")]
    assert chosen[:5] == [38, 46, 92, 94, 102]
    assert 60 < len(chosen) < 140  # one in twenty


# --- steps ---------------------------------------------------------------------------------------


def noted(series: Series, text: str, name: str = "part/x", **options: Any) -> Any:
    """A step that appends a line to a log and writes a file."""
    product = series.output / f"{name}.txt"
    log = series.output / "log"
    script = f"open({str(log)!r}, 'a').write('{text} ')\nopen({str(product)!r}, 'w').write('x')"
    return series.step(name, [sys.executable, "-c", script], product, **options)


def test_a_step_is_run_once_unless_asked_again(tmp_path: Path) -> None:
    first = noted(Series(tmp_path), "a")
    assert noted(Series(tmp_path), "a") == first and first.seconds > 0
    with pytest.raises(StepError, match=r"another command[\s\S]*--again"):
        noted(Series(tmp_path), "b")
    again = Series(tmp_path, again=["part"])
    other = noted(again, "b")
    assert noted(again, "b") == other  # once is enough
    assert (tmp_path / "log").read_text() == "a b "
    noted(Series(tmp_path, again=["other"]), "b")
    assert (tmp_path / "log").read_text() == "a b "


def test_a_step_is_run_again_when_its_input_is_new(tmp_path: Path) -> None:
    series = Series(tmp_path)
    before = noted(series, "a", "part/before")
    noted(series, "b", "part/after", after=[before])
    noted(series, "b", "part/after", after=[before])
    before = noted(Series(tmp_path, again=["part"]), "a", "part/before")
    noted(series, "b", "part/after", after=[before])
    assert (tmp_path / "log").read_text() == "a b a b "


def test_a_step_that_fails_is_not_done(tmp_path: Path) -> None:
    series = Series(tmp_path)
    script = "import sys; open(sys.argv[1], 'w').write('half'); sys.exit(3)"
    for _ in range(2):  # what it left does not count
        product = tmp_path / "part" / "x.txt"
        with pytest.raises(StepError, match="status 3"):
            series.step("part/x", [sys.executable, "-c", script, str(product)], product)
    with pytest.raises(StepError, match="was not made"):
        series.step("part/y", [sys.executable, "-c", ""], tmp_path / "part" / "y")
    noted(series, "a")
    assert (tmp_path / "part" / "x.txt").read_text() == "x"


def test_what_is_not_of_the_series_is_left_alone(tmp_path: Path) -> None:
    for path in (tmp_path / "part" / "x.txt", tmp_path / "part" / "run" / "weights"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    with pytest.raises(StepError, match="not of this series"):
        noted(Series(tmp_path), "a")
    with pytest.raises(StepError, match="not of this series"):
        Series(tmp_path).step("part/run", [sys.executable, "-c", ""], tmp_path / "part" / "run")
    assert (tmp_path / "part" / "run" / "weights").read_text() == "mine"


def test_what_a_command_prints_can_be_its_product(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os; print(os.environ['WORD'])"]
    done = Series(tmp_path).step(
        "part/x", command, tmp_path / "part" / "x.json", captured=True,
        environment={"WORD": "[1]"},
    )  # fmt: skip
    assert json.loads(done.product.read_text()) == [1]


# --- tables --------------------------------------------------------------------------------------


def test_means_and_spreads() -> None:
    assert Spread.of([96.0, 97.0, 95.0]) == Spread(96.0, 1.0, 3)
    assert Spread.of([96.0, 97.0, 95.5]).shown() == "96.17 ± 0.75"
    assert Spread.of([1234.5]).shown(0) == "1,234"
    with pytest.raises(ValueError, match="no figures"):
        Spread.of([])
    shares = [{"share": 0.5}, {"share": 0.75}]
    assert percents(shares) == "62.50 ± 12.50"
    assert each(shares) == "50.00, 75.00"
    assert percents([{"share": None}]) == each([{"share": None}]) == "–"


def test_tables() -> None:
    assert table(("a", "b|c"), [(1, "x")]) == "| a | b\\|c |\n|---|---|\n| 1 | x |"
    with pytest.raises(ValueError, match="1 cells under 2 headings"):
        table(("a", "b"), [("only",)])


def test_a_section_is_ready_for_a_page() -> None:
    long = " ".join(["word"] * 60) + " 12.5 %"
    text = Section("Title", [long, table(("a",), [("x " * 90,)])]).markdown("command", ["a", "b"])
    lines = text.splitlines()
    assert lines[:6] == ["## Title", "", "```", "command", "```", ""]
    assert lines[6] == "a; b."
    assert all(len(line) <= 120 for line in lines if not line.startswith("|"))
    assert any(line.endswith("12.5 %") for line in lines)
    assert max(map(len, lines)) > 120  # tables stay as they are


def test_a_workload_tells_the_shares_of_types(tmp_path: Path) -> None:
    program = read("Count(FindAll())")
    types = ["Count", "Verify", "Count", None]
    write_examples(tmp_path / "x.jsonl", [Example("?", program, type=one) for one in types])
    assert workload(tmp_path / "x.jsonl") == "4 (Count 50.0 %, Verify 25.0 %, no type 25.0 %)"


def test_the_lexicon_of_a_half_of_world_can_be_read() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    world = load("world")
    for half in halves(world, 1):
        kb = restricted(world, half)
        text = yaml.safe_dump(annotations_of(kb), allow_unicode=True, sort_keys=False)
        relations = Lexicon(kb, parse_annotations(text)).annotations.of("relations")
        assert {one.fields.get("complete") for one in relations.values()} >= {"yes", "no"}
