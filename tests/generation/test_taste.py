"""What descriptions are made of: nouns that people use, what identifies, complete lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

import pytest

from generation import generate
from generation.blocks import Maker, Options
from generation.lexicon import Lexicon, parse_annotations
from generation.pools import Pools
from generation.taste import CLOSED, OPEN, UNKNOWN, Taste
from kb import Builder, KnowledgeBase, Quantity
from kb.values import read_quantity
from kopl.answer_forms import Exists
from kopl.denotation import Located
from kopl.example import Example
from kopl.executor import Executor
from kopl.functions import COUNT, FILTER_CONCEPT, FILTER_NUM, FILTER_STR, FIND_ALL
from kopl.program import Call, post_order
from kopl.text import read


def shops() -> KnowledgeBase:
    """Shops with codes and owners, in towns, which have mayors."""
    builder = Builder()
    builder.add_concept("place", "place")
    builder.add_concept("shop", "shop", ["place"])
    builder.add_concept("bookshop", "rare book shop", ["shop"])
    builder.add_concept("town", "town", ["place"])
    for number in range(12):
        town = f"t{number}"
        builder.add_entity(town, f"Town {number}", ["town"])
        builder.add_attribute(town, "population", Quantity(1000 + number))
        builder.add_attribute(town, "motto", f"We are number {number}")
    builder.add_concept("person", "person")
    for number in range(12):
        builder.add_entity(f"m{number}", f"Ann {number}", ["person"])
        builder.add_fact(f"t{number}", "mayor", f"m{number}")
    for number in range(12):
        shop = f"s{number}"
        builder.add_entity(shop, f"Shop {number}", ["bookshop" if number < 3 else "shop"])
        builder.add_attribute(shop, "shop code", f"S{number:03}")
        builder.add_fact(shop, "town", f"t{number // 2}")
        for other in (number, (number + 1) % 12):
            builder.add_fact(shop, "sells to", f"m{other}")
    return builder.build()


def taste(annotations: str = "") -> Taste:
    kb = shops()
    lexicon = Lexicon(kb, parse_annotations(annotations) if annotations else None)
    return Taste(Pools(kb), lexicon)


def called(taste: Taste, id: str) -> list[str]:
    return taste.heads(shops().node(id))[0]


def test_a_thing_is_called_by_a_plain_noun() -> None:
    assert called(taste(), "s0")[0] == "shop"
    assert set(called(taste(), "s0")) == {"shop", "place", "rare book shop"}
    assert called(taste("concepts:\n  shop: {head: no}\n  place: {head: no}"), "s0") == [
        "rare book shop"
    ]
    # Nothing else is there: better a poor noun than none.
    every = "concepts: {shop: {head: no}, place: {head: no}, rare book shop: {head: no}}"
    assert called(taste(every), "s0")


def test_codes_identify_nothing_but_where_annotations_say_so() -> None:
    kb = shops()
    code, motto = kb.key_number("shop code"), kb.key_number("motto")
    assert not taste().identifies(code) and taste().identifies(motto)
    told = taste("keys: {shop code: {identifies: yes}, motto: {identifies: no}}")
    assert told.identifies(code) and not told.identifies(motto)
    assert taste().telling([code, motto]) == [motto]
    assert taste().telling([code]) == [code]  # there is nothing better


def test_what_people_know_nothing_by_describes_only_where_nothing_else_does() -> None:
    kb = shops()
    town, shop = int(kb.named("Town 1")[0]), int(kb.named("Shop 1")[0])
    relation = {name: kb.relation_number(name) for name in ("town", "mayor")}
    assert (relation["town"], "forward") in taste().known_links(town)
    told = taste("relations: {town: {identifies: backward}}")
    assert told.known_links(town) == [(relation["mayor"], "backward")]
    assert (relation["town"], "backward") in told.known_links(shop)
    assert set(told.closed_links(town)) <= set(told.known_links(town))
    none = taste("relations: {town: {identifies: no}, mayor: {identifies: forward}}")
    assert none.known_links(town) == taste().known_links(town)


@pytest.mark.parametrize(
    ("number", "exact"),
    [("7", True), ("812", True), ("1086 kilometre", False), ("2000 kilometre", True),
     ("39.875 year", False), ("1086000", False)],
)  # fmt: skip
def test_small_and_round_numbers_are_known_by_heart(number: str, exact: bool) -> None:
    assert Taste.exact(read_quantity(number)) is exact


@pytest.mark.parametrize(
    ("program", "annotations", "closed"),
    [
        ('Find("Town 1")', "", CLOSED),
        ('Relate(Find("Town 1"), "mayor", "forward")', "", CLOSED),
        ('Relate(Find("Ann 1"), "mayor", "backward")', "", CLOSED),  # one each, and there are many
        ('Relate(Find("Town 1"), "town", "backward")', "", UNKNOWN),
        ('Relate(Find("Town 1"), "town", "backward")', "relations: {town: {complete: no}}", OPEN),
        ('Relate(Find("Town 1"), "town", "backward")', "relations: {town: {complete: backward}}",
         CLOSED),
        ('FilterConcept(Relate(Find("Ann 1"), "sells to", "backward"), "shop")', "", UNKNOWN),
        ('And(Relate(Find("Ann 1"), "sells to", "backward"), Find("Shop 1"))', "", CLOSED),
        ('Or(Relate(Find("Ann 1"), "sells to", "backward"), Find("Shop 1"))', "", UNKNOWN),
        ('FilterConcept(FindAll(), "town")', "", UNKNOWN),
        ('FilterConcept(FindAll(), "town")', "concepts: {town: {complete: yes}}", CLOSED),
        ('FilterConcept(FilterNum(FindAll(), "population", "1005", "<"), "town")',
         "concepts: {town: {complete: yes}}", CLOSED),
        ('FilterConcept(FilterNum(FindAll(), "population", "1005", "<"), "place")',
         "concepts: {place: {complete: yes}}", OPEN),  # half of the places have none
        ('FilterConcept(FilterNum(FindAll(), "population", "1005", "<"), "town")',
         "concepts: {town: {complete: no}}", OPEN),
        ('FilterStr(FindAll(), "shop code", "S001")', "keys: {shop code: {identifies: yes}}",
         CLOSED),
    ],
)  # fmt: skip
def test_which_sets_hold_all_that_fits(program: str, annotations: str, closed: int) -> None:
    assert taste(annotations).closed(read(program)) == closed


def test_of_what_has_its_greatest_there_the_greatest_are_all() -> None:
    told = taste("concepts: {town: {complete: no, greatest: yes}, shop: {complete: no}}")
    more = 'FilterConcept(FilterNum(FindAll(), "population", "1005", ">"), "town")'
    assert told.closed(read(more)) == CLOSED
    assert told.closed(read(more.replace(">", "<"))) == OPEN
    of_ann = read('FilterConcept(Relate(Find("Ann 1"), "mayor", "backward"), "town")')
    assert told.of_the_greatest(of_ann) and not taste().of_the_greatest(of_ann)
    assert not told.of_the_greatest(read(more))
    sold = read('FilterConcept(Relate(Find("Ann 1"), "sells to", "backward"), "shop")')
    assert not told.of_the_greatest(sold)
    number = shops().key_number("population")
    no = "keys: {population: {complete: no}}\n"
    assert not taste(no).may_compare(number, "town")
    assert taste(f"{no}concepts: {{town: {{greatest: yes}}}}").may_compare(number, "town")


def test_where_nothing_is_known_all_will_do() -> None:
    unknown = read('FilterConcept(FindAll(), "town")')
    assert taste().will_do(unknown, 0.5) and taste().will_do(unknown, 0.99)
    some = taste("relations: {mayor: {complete: yes}}")
    assert not some.will_do(unknown, 0.5) and some.will_do(unknown, 0.01)


# --- over the bundled knowledge base ---------------------------------------------------------


@pytest.fixture(scope="module")
def examples(world: KnowledgeBase) -> Sequence[Example]:
    return list(generate(world, 700, seed=3))


def test_few_descriptions_lack_a_noun(examples: Sequence[Example]) -> None:
    lacking = [e.question for e in examples if re.search(r"\bthe one\b", e.question)]
    assert len(lacking) < 0.01 * len(examples), lacking


def test_no_code_identifies(world: KnowledgeBase, examples: Sequence[Example]) -> None:
    known = Taste(Pools(world), Lexicon(world))
    keys = [
        call.arguments[0]
        for example in examples
        for call in post_order(example.program)
        if call.function is FILTER_STR
    ]
    assert keys and all(known.identifies(world.key_number(key)) for key in keys)


def test_no_long_number_identifies(examples: Sequence[Example]) -> None:
    for example in examples:
        for call in post_order(example.program):
            if call.function is FILTER_NUM and call.arguments[-1] == "=":
                assert Taste.exact(read_quantity(call.arguments[1])), example.question


def test_what_is_counted_is_all_there_is(world: KnowledgeBase, examples: Sequence[Example]) -> None:
    known = Taste(Pools(world), Lexicon(world))
    bare = 0
    counts = [example for example in examples if example.program.function is COUNT]
    for example in counts:
        (counted,) = example.program.inputs
        assert known.closed(counted) != OPEN, example.question
        if counted.function is FILTER_CONCEPT and counted.inputs[0].function is FIND_ALL:
            bare += 1
            assert known.counted(counted.arguments[0]), example.question
    assert bare < 0.15 * len(counts)
    ones = sum(example.answer == "1" for example in counts)
    assert ones < 0.25 * len(counts)


def test_superlatives_are_of_all_that_have_the_figure(world: KnowledgeBase) -> None:
    options = Options(sparql=False, profile="people", shares=(("SelectAmong", 100.0),))
    executor = Executor(world)
    keys = set()
    for example in islice(Maker(world, options=options).block(4, 0), 150):
        call = next(c for c in post_order(example.program) if c.function.name == "SelectAmong")
        keys.add(call.arguments[0])
        (given,) = call.inputs
        found = executor.outcome(given, {})
        assert isinstance(found, Located)
        number = world.key_number(call.arguments[0])
        owners = world.literals.subject[world.literals.of_predicate(number)]
        assert len(set(found.ids.tolist()) & set(owners.tolist())) >= 0.9 * len(found)
    assert len(keys) > 10 and "half-life" not in keys


def test_no_is_said_of_no_list_with_gaps(world: KnowledgeBase) -> None:
    options = Options(sparql=False, profile="people", shares=(("Verify", 100.0),))
    known = Taste(Pools(world), Lexicon(world))
    claims = 0
    for example in islice(Maker(world, options=options).block(4, 0), 150):
        (inside,) = example.program.inputs[:1]
        if example.answer_form != Exists() or inside.function.name != "And":
            continue
        left, claims = inside.inputs[0], claims + 1
        while left.function.name != "Relate":
            (left,) = left.inputs
        relation, direction = left.arguments
        assert example.answer == "yes" or known.complete(relation, direction) != OPEN  # type: ignore[arg-type]
    assert claims > 10


def conditions(examples: Sequence[Example], *functions: str) -> list[tuple[Example, Call]]:
    return [
        (example, call)
        for example in examples
        for call in post_order(example.program)
        if call.function.name in functions
    ]


def test_comparisons_say_something_of_what_has_the_key(
    world: KnowledgeBase, examples: Sequence[Example]
) -> None:
    known, executor = Taste(Pools(world), Lexicon(world)), Executor(world)
    found = conditions(examples, "FilterNum", "FilterYear", "FilterDate")
    whole = [pair for pair in found if pair[1].inputs[0].function is FIND_ALL]
    assert len(whole) > 50
    for example, call in whole:
        assert known.tells(call, len(executor.outcome(call, {}))), example.question


def test_unequal_is_said_of_what_many_have(world: KnowledgeBase) -> None:
    known = Taste(Pools(world), Lexicon(world))
    options = Options(sparql=False, shares=(("Verify", 100.0),))
    made = list(islice(Maker(world, options=options).block(9, 0), 300))
    found = [
        (example, call)
        for example, call in conditions(made, "VerifyNum", "VerifyYear", "VerifyDate")
        if call.arguments[-1] == "!="
    ]
    for example, call in found:
        (asked,) = call.inputs
        day = call.function.name == "VerifyDate"
        usual = [str(value) for value in known.usual(asked.arguments[0], day)]
        assert call.arguments[0] in usual, example.question
    assert len(found) < 0.04 * len(made)


def test_nobody_counts_by_what_one_alone_has(
    world: KnowledgeBase, examples: Sequence[Example]
) -> None:
    known = Taste(Pools(world), Lexicon(world))
    assert known.is_own("official name") and not known.is_own("national color")
    for example in examples:
        if example.program.function is COUNT:
            (counted,) = example.program.inputs
            inside = counted.inputs[0] if counted.function is FILTER_CONCEPT else counted
            assert not any(map(known.is_its_own, (inside, *inside.inputs))), example.question


def test_what_is_over_is_not_told_as_it_is(
    world: KnowledgeBase, examples: Sequence[Example]
) -> None:
    table = world.relational
    over = Pools(world).sets_with(("end time", "any"))[table.qualifiers]
    former = {world.name_of(int(table.object[fact])) for fact in over.nonzero()[0]}
    executor = Executor(world)
    related = conditions(examples, "Relate")
    assert "German Mark" in former and len(related) > 100
    for example, call in related:
        if call.arguments == ("currency", "forward"):
            found = executor.outcome(call, {})
            assert isinstance(found, Located)
            heads = executor.outcome(call.inputs[0], {})
            assert isinstance(heads, Located)
            facts = table.of_predicate(world.relation_number("currency"))
            mine = [fact for fact in facts.tolist() if int(table.subject[fact]) in heads.ids]
            assert not over[mine].any(), example.question


def test_a_figure_that_changes_is_asked_about_by_its_date_alone(
    examples: Sequence[Example],
) -> None:
    asked = [e for e in examples if e.program.function.name == "QueryAttrQualifier"]
    assert len(asked) > 50
    assert not any("source" in example.program.arguments for example in asked)


def test_one_thing_is_described_by_what_others_do_not_fit(
    world: KnowledgeBase, examples: Sequence[Example]
) -> None:
    known, executor = Taste(Pools(world), Lexicon(world)), Executor(world)
    single = [
        (example, call)
        for example, call in conditions(examples, "FilterConcept")
        if call.inputs[0].function.name not in ("FindAll", "Find")
        and example.program.function.name in ("QueryAttr", "QueryRelation", "SelectBetween")
        and len(executor.outcome(call, {})) == 1
    ]
    assert len(single) > 50
    for example, call in single:
        assert known.closed(call) != OPEN, example.question


@pytest.mark.parametrize(
    ("key", "value", "year", "closed"),
    [("internet users", "30 percent", 2004, OPEN), ("median age", "30 year", 2025, CLOSED)],
)
def test_figures_of_a_year_that_few_have_describe_nothing(
    world: KnowledgeBase, key: str, value: str, year: int, closed: int
) -> None:
    known = Taste(Pools(world), Lexicon(world))
    figure = f'FilterNum(FindAll(), "{key}", "{value}", "<")'
    dated = f'QFilterYear({figure}, "point in time", "{year}", "=")'
    assert known.closed(read(f'FilterConcept({dated}, "country")')) == closed
