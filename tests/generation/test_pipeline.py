"""What is generated: true, unique, worded with all that the program holds, the same each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from generation import GenerationError, generate, read_grammar, split
from generation.blocks import SIZE, Maker
from generation.comparisons import constant_for, number_beside
from generation.english import can_be_read
from generation.judge import asks_what_it_says, names_answer, reads_badly
from generation.lexicon import Lexicon
from generation.pools import NoDraw, Pools
from generation.rules_file import bundled
from generation.stats import SHARES
from kb import Builder, Date, KnowledgeBase, KoplError, Quantity, Value, Year
from kb.values import OPERATORS, compares
from kopl.denotation import Located
from kopl.errors import ExecutionError
from kopl.example import Example
from kopl.executor import Executor
from kopl.functions import FUNCTIONS, SELECT_AMONG, SELECT_BETWEEN
from kopl.program import post_order
from kopl.text import read
from kopl.typecheck import check
from tests.generation.spellings import unmentioned

ROOT_FOLDER = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["lands", "world"])
def made(request: pytest.FixtureRequest) -> tuple[KnowledgeBase, list[Example]]:
    kb = request.getfixturevalue(request.param)
    return kb, list(generate(kb, 300 if request.param == "lands" else 1500, 11))


Made = tuple[KnowledgeBase, list[Example]]


def test_every_answer_follows_from_the_json_alone(made: Made) -> None:
    kb, examples = made
    strict, lenient, pools = Executor(kb, strict=True), Executor(kb), Pools(kb)
    for example in examples:
        program = json.loads(json.dumps(example.to_json()))["program"]
        try:
            assert strict.run(program).denotation == [example.answer]
        except ExecutionError:  # a choice among things with figures of several dates
            call = example.program
            key, word = call.arguments
            assert call.function in (SELECT_AMONG, SELECT_BETWEEN)
            inputs = [strict.outcome(one, {}) for one in call.inputs]
            ids = np.concatenate([one.ids for one in inputs if isinstance(one, Located)])
            assert len(kb.literals_of(ids, key)) > len(ids)
            assert pools.is_clear(ids, key, word in ("largest", "greater"))
            assert lenient.run(program).denotation == [example.answer]


def test_questions_and_programs_are_unique(made: Made) -> None:
    _, examples = made
    for values in ([e.question for e in examples], [e.program for e in examples]):
        assert len(set(values)) == len(examples)
    assert len({example.id for example in examples}) == len(examples)


def test_questions_mention_every_constant(made: Made) -> None:
    kb, examples = made
    lexicon = Lexicon(kb)
    for example in examples:
        assert unmentioned(lexicon, example.program, example.question) == [], example.question


def test_questions_look_like_questions(made: Made) -> None:
    _, examples = made
    for example in examples:
        assert example.question.endswith("?")
        assert example.question == " ".join(example.question.split())
        assert not set("{}$") & set(example.question)


def test_every_strategy_occurs_and_names_are_single_ids(made: Made) -> None:
    kb, examples = made
    assert {e.type for e in examples} == set(bundled().strategies)
    executor = Executor(kb)
    for example in examples:
        if example.program.function.name == "QueryName":
            inside = example.program.inputs[0]
            text = f"Count({inside})"
            assert executor.run(text).answer == "1"


def test_every_kind_of_question_occurs(world: KnowledgeBase) -> None:
    examples = list(generate(world, 1500, 5))
    used = Counter(c.function.name for e in examples for c in post_order(e.program))
    expected = (
        "Find FindAll FilterConcept FilterStr FilterNum FilterYear FilterDate QFilterStr QFilterNum"
        " QFilterYear Relate And Or QueryName Count QueryAttr QueryAttrUnderCondition QueryRelation"
        " SelectBetween SelectAmong VerifyStr VerifyNum VerifyYear VerifyDate QueryAttrQualifier"
        " QueryRelationQualifier"
    )
    assert set(expected.split()) <= set(used)
    hops = Counter(
        sum(c.function.name == "Relate" for c in post_order(e.program)) for e in examples
    )
    assert hops[1] > 100 and hops[2] > 20


def test_yes_and_no_are_balanced(made: Made) -> None:
    _, examples = made
    answers = Counter(e.answer for e in examples if e.type == "Verify")
    assert set(answers) == {"yes", "no"}
    assert abs(answers["yes"] - answers["no"]) < 0.1 * answers.total() + SIZE // 100


def test_no_answer_is_given_away(made: Made) -> None:
    _, examples = made
    for example in examples:
        if example.type not in ("Count", "Verify", "SelectBetween"):
            assert example.answer is not None
            assert not names_answer(example.question, example.answer)


_LARGE = 'FilterNum(FindAll(), "area", "5 metre", ">")'
_PARTNERS = 'Relate(Find("A"), "partner", "forward")'
_STRONG = f'QFilterNum({_PARTNERS}, "proportion", "5 percent", ">")'


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (f'QueryAttr({_LARGE}, "area")', True),
        (f'QueryAttrUnderCondition({_LARGE}, "area", "point in time", "2000")', True),
        (f'VerifyNum(QueryAttr({_LARGE}, "area"), "5", ">")', True),
        (f'QueryAttr({_LARGE}, "height")', False),
        (f'SelectAmong({_LARGE}, "area", "largest")', True),
        (f'SelectAmong(FilterConcept({_LARGE}, "country"), "area", "smallest")', True),
        (f'SelectAmong({_LARGE}, "height", "largest")', False),
        (f'SelectBetween(Find("A"), {_LARGE}, "area", "greater")', True),
        (f'SelectBetween(Find("A"), {_LARGE}, "height", "less")', False),
        (f'QueryRelationQualifier(Find("B"), {_STRONG}, "partner", "proportion")', True),
        (f'QueryRelationQualifier(Find("B"), {_STRONG}, "partner", "source")', False),
        (f'QueryRelationQualifier(Find("B"), {_STRONG}, "rival", "proportion")', False),
        (f'QueryRelationQualifier(Find("A"), {_PARTNERS}, "rival", "proportion")', True),
        (f'QueryRelation(Find("A"), {_PARTNERS})', True),
        (f'QueryRelation({_PARTNERS}, Find("A"))', True),
        (f'QueryRelation(Find("B"), {_PARTNERS})', False),
    ],
)
def test_what_is_asked_is_not_what_was_said(program: str, says: bool) -> None:
    assert asks_what_it_says(read(program), "rival") is says


def test_the_relation_that_is_asked_for_does_not_describe() -> None:
    program = read(f'QueryRelation(Find("B"), {_PARTNERS})')
    assert asks_what_it_says(program, "partner")


def test_every_block_has_all_functions(world: KnowledgeBase) -> None:
    """So that any 1,000 questions in a row have: they hold a whole block."""
    block = list(Maker(world).block(8, 3))
    assert len(block) == SIZE
    assert {c.function.name for e in block for c in post_order(e.program)} == set(FUNCTIONS)


def test_types_have_their_shares(world: KnowledgeBase) -> None:
    types = Counter(example.type for example in Maker(world).block(9, 0))
    for name, share in SHARES.items():
        assert abs(types[name] / SIZE * 100 - share) < 2, types


def test_queries_have_the_answers(made: Made) -> None:
    """From the JSON alone, on another engine."""
    pytest.importorskip("pyoxigraph")
    from kopl.sparql.engines.oxigraph import Oxigraph
    from kopl.sparql.evaluate import SparqlExecutor

    kb, examples = made
    executor = SparqlExecutor(Oxigraph.of(kb, memory=True))
    for example in examples:
        fields = json.loads(json.dumps(example.to_json()))
        assert executor.denotation(fields["sparql"]) == [fields["answer"]], fields["sparql"]


def test_the_seed_alone_decides() -> None:
    script = (
        "import json\n"
        "from generation import generate\n"
        "from tests.generation.conftest import build\n"
        "for e in generate(build(), 60, 3): print(json.dumps(e.to_json()))\n"
    )
    outputs = []
    for hash_seed in ("0", "1", "42"):
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT_FOLDER, capture_output=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT_FOLDER)},
        )  # fmt: skip
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1] == outputs[2] != b""


def test_other_seeds_give_other_questions(lands: KnowledgeBase) -> None:
    first, again, other = ([e.question for e in generate(lands, 30, seed)] for seed in (1, 1, 2))
    assert first == again != other


def test_namesakes_are_told_apart(lands: KnowledgeBase) -> None:
    told = set()
    for example in generate(lands, 1000, 4):
        for call in post_order(example.program):
            if any(given.arguments == ("Amber",) for given in call.inputs):
                told.add(call.function.name)
    assert "FilterConcept" in told
    assert told <= {"FilterConcept", "FilterStr", "FilterNum", "FilterYear", "And"}


def test_a_small_knowledge_base_gives_an_error() -> None:
    builder = Builder()
    builder.add_concept("c", "city")
    builder.add_entity("a", "Amber", ["c"])
    builder.add_attribute("a", "area", Quantity(3, "square kilometre"))
    with pytest.raises(GenerationError, match=r"yields \d+ different questions, not 1000"):
        list(generate(builder.build(), 1000, 0))
    with pytest.raises(GenerationError, match="yields no question"):
        list(generate(Builder().build(), 1, 0))
    with pytest.raises(KoplError, match="negative"):
        generate(builder.build(), -1, 0)


def test_a_grammar_of_ones_own(lands: KnowledgeBase) -> None:
    grammar = read_grammar(
        "ROOT[QueryName] -> QueryName(Relate(Find($name), capital, forward))\n"
        "    | {name}'s capital?\n"
    )
    examples = list(generate(lands, 8, 0, grammar=grammar))
    assert "Arlen's capital?" in {e.question for e in examples}
    assert all(check(e.program) for e in examples)
    with pytest.raises(GenerationError, match="yields 8 "):
        list(generate(lands, 9, 0, grammar=grammar))


@pytest.mark.parametrize("value", [Quantity(12), Quantity(0), Quantity(-3.7, "metre"), Year(1990),
                                   Date(1990, 2, 3), "white"])  # fmt: skip
def test_constants_hold_or_do_not(value: Value) -> None:
    from random import Random

    random = Random(0)
    others: list[Value] = [Quantity(4), Year(1980), Date(1981, 1, 1), "black"]
    for operator in OPERATORS:
        for holds in (True, False):
            for day in (True, False):
                try:
                    constant = constant_for(
                        random, value, operator, holds=holds, others=others, day=day
                    )
                except NoDraw:
                    continue
                if isinstance(value, Year) and isinstance(constant, Date):
                    continue
                assert compares(value, operator, constant) == holds


def test_numbers_beside_are_round() -> None:
    from random import Random

    for seed in range(50):
        found = number_beside(Random(seed), Quantity(643_801), True)
        assert found.number > 643_801 and found.number % 10_000 == 0


def test_numbers_beside_say_something() -> None:
    from random import Random

    for seed in range(50):
        for value, above in ((Quantity(99.2, "percent"), True), (Quantity(1), False)):
            with pytest.raises(NoDraw):
                number_beside(Random(seed), value, above)
        assert number_beside(Random(seed), Quantity(64, "percent"), True).number < 100


def test_what_reads_badly() -> None:
    assert reads_badly("Which anthem is the anthem of Norway?")
    assert reads_badly("Who is represented in in 2024?")
    assert reads_badly("word " * 60)
    assert not reads_badly("Which territory is Pago Pago in?")


def test_split_shares_nothing(lands: KnowledgeBase) -> None:
    examples = list(generate(lands, 100, 8))
    doubled = [*examples, *(Example(f"{e.question} ", e.program, e.answer) for e in examples[:30])]
    parts = split(doubled, 5)
    assert sorted(map(len, parts), reverse=True) == list(map(len, parts))
    assert sum(map(len, parts)) == 130 and len(parts[0]) in range(100, 109)
    for at, part in enumerate(parts):
        others = [e for n, other in enumerate(parts) if n != at for e in other]
        assert not {e.program for e in part} & {e.program for e in others}
        assert not {e.question for e in part} & {e.question for e in others}
    assert split(doubled, 5) == parts != split(doubled, 6)
    with pytest.raises(KoplError, match="above 0"):
        split(examples, 0, (8, 0, 1))


def test_what_cannot_be_read_is_neither_asked_nor_answered() -> None:
    """Names and values that are empty or hold what nobody sees are left out of all texts."""
    builder, broken = Builder(), ("", " ", "...", "Ol\ufffdm", "Al\u202ema", "\ue000\ue001")
    for concept in ("city", "country"):
        builder.add_concept(concept, concept)
    for n in range(12):
        for concept in ("city", "country"):
            name = broken[n // 2] if n % 2 else f"{concept.title()} {'ABCDEF'[n // 2]}"
            builder.add_entity(f"{concept}{n}", name, [concept])
        builder.add_attribute(f"country{n}", "area", Quantity(100 + 7 * n, "square kilometre"))
        builder.add_attribute(f"country{n}", "motto", broken[n // 2] if n % 3 else f"Motto {n}")
        builder.add_fact(f"country{n}", "capital", f"city{n}")
        builder.add_fact(f"country{n}", "twin", f"country{(n + 1) % 12}", {"note": broken[n // 2]})
    for example in generate(builder.build(), 60, 2):
        constants = [text for call in post_order(example.program) for text in call.arguments]
        for text in (example.question, *constants, *(example.answers or [example.answer])):
            assert can_be_read(text), example
        assert all(map(can_be_read, example.choices)), example
