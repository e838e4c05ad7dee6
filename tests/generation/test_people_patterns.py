"""The kinds of questions that people type: each is among those of the profile "people"."""

from __future__ import annotations

import re
from itertools import islice
from random import Random

import pytest

from generation.blocks import Maker, Options
from generation.lexicon import Lexicon, NoWords
from generation.noise import Noise, tables
from generation.rules_file import read_grammar
from generation.sampler import applicable_rules
from kb import Builder, KnowledgeBase, load
from kopl.answer_forms import Exists
from kopl.example import Example
from kopl_base.errors import ReadError

BLOCKS = 4


@pytest.fixture(scope="module")
def world() -> KnowledgeBase:
    return load("world")


@pytest.fixture(scope="module")
def examples(world: KnowledgeBase) -> list[Example]:
    maker = Maker(world, options=Options(profile="people", sparql=False))
    return [example for number in range(BLOCKS) for example in maker.block(7, number)]


# What a question of a kind looks like, case apart, and how many of a thousand are to be such.
KINDS = {
    "a share of trade": (r"(?:share|percent|part|portion|how much|fraction).*(?:ex|im)ports?\b", 2),
    "a share of speakers": (r"(?:share|percent|part|fraction|widely).*(?:speak|spoken)", 1),
    "a share of believers": (r"(?:share|percent|fraction).*(?:Muslim|Christian|Islam|ism\b)", 1),
    "the length of a border of two": (
        r"(?:how long|length|kilomet|km).*border.* (?:and|with|shares)",
        2,
    ),
    "since when": (r"since when|when did .*(?:become|take office|adopt|start)", 3),
    "until when": (r"until when|when did .*(?:stop|give up|drop|get rid)", 1),
    "a prize of a year": (r"(?:nobel|prize).* \d{4}|\d{4}.*(?:nobel|prize)", 5),
    "president": (r"\bpresident\b", 4),
    "prime minister": (r"\b(?:prime minister|pm|premier)\b", 3),
    "monarch": (r"\b(?:king|throne|crown|monarch)\b", 2),
    "which of two": (r"\b(?:which|who|what)\b.*\b(?:or|and)\b", 8),
    "is one more than the other": (r"^(?:is|does|has) .* (?:than|compared)\b", 5),
    "has one got more": (r"^(?:has|does) .*(?:more|fewer|less) .*than", 1),
    "two hops": (r"\bof the (?:\w+ ){1,4}(?:of|that|with|whose)\b", 20),
    "the first of a continent": (
        r"(?:african|asian|european|american|in (?:africa|asia|europe|oceania|(?:north|south)"
        r" america)).*(?:est\b|most|least|fewest)|(?:est|most|least|fewest)\b.*(?:african|asian"
        r"|european|american|in (?:africa|asia|europe|oceania|(?:north|south) america))",
        10,
    ),
    "show me every": (r"^(?:show me|list|give me|name) (?:every|all)", 5),
    "name three": (r"^(?:name|give me) three", 1),
    "how many of a continent do": (
        r"how many .*(?:african|asian|european|american|in (?:africa|asia|europe|oceania))",
        5,
    ),
    "do they border": (r"^(?:does|do|is|are) .*(?:border|neighbour|next to|touch)", 2),
    "is it a member": (r"^(?:is|has|does) .* (?:in|joined|member of|members of|part of) the", 3),
    "can I pay with": (r"(?:pay with|use|take|spend|need|legal tender).*\bin\b.*\?", 1),
    "do they speak": (r"^(?:do|is|does|can|will) .*(?:speak|spoken|get by|hear)", 1),
    "is it landlocked": (r"^(?:is|does|has) .*(?:landlocked|coast|access to the sea|cut off)", 1),
    "is it a republic": (r"^is .*(?:a|an|absolute) (?:\w+ )*(?:republic|monarchy)", 1),
    "imperatives": (r"^(?:give|tell|show|name|list|find|say)\b", 60),
    "please": (r"\bplease\b", 10),
    "off to": (r"^I'm (?:off|going) to", 2),
    "keywords": (r"^[a-z0-9'é. -]{4,40}$", 20),
    "contractions": (r"\b(?:what|who|where)'s\b|\bwhats\b|\bwhos\b", 5),
    "demonyms": (r"\b(?:the )?[A-Z]\w+(?:an|ese|ish|i) (?:president|anthem|capital|exports)", 3),
    "adjectives of what is had": (r"\bemits?|\buses? the|\bsells the|\bspends?\b", 1),
    "through which countries": (r"(?:which|what|through which) countries", 3),
    "what flows through": (r"(?:flow|run|pass|go|cross)\w*\b.* through|does .* cross\?", 1),
    "of a country by its adjective": (
        r"[a-z]+(?:an|ese|ish|i|ch) (?:cit(?:y|ies)|towns?|rivers?|lakes?)\b",
        2,
    ),
    "the first of a country": (
        r"(?:est|most \w+)\b.* (?:city|town|river|lake)\b.*",
        3,
    ),
    "what two have in common": (r"\bboth\b.* and |as well as|\bshare\b.*", 1),
    "more of a kind than": (
        r"(?:rivers?|lakes?|mountains?|peaks?|cities|towns) .*(?:than|over|above) [\d.,]+",
        2,
    ),
    "what is found by one alone": (r"take office\?|come to power\?|the nobel prize\b", 1),
    "where something was or begins": (
        r"the (?:country|place|town) (?:where|in which) .*(?:born|rises|starts|begins|ends|source)",
        2,
    ),
    "several, each of several": (
        r"of (?:the|all) (?:\w+ ){1,2}(?:that border|bordering|touch)",
        0.2,
    ),
    "what melts or boils first": (r"\b(?:melts?|boils?) (?:first|at (?:a|the) (?:high|low)er)", 1),
    "by its code or sign": (r"^(?:which|what) \w+ (?:has|have) the .*(?:code|symbol|ending)", 1),
    "colours of a flag": (r"\bcolou?rs\b", 1),
    "the former name": (r"called before|old name|formerly|use to be called", 1),
    "the first of the neighbours": (
        r"(?:est|most|least|fewest)\b.*neighbou?r|neighbou?rs?\b.*(?:est|most|least|fewest)\b",
        1,
    ),
    "larger than so much": (r"(?:larger|bigger|smaller|longer|higher|lower) than [\d.,]+ ", 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_people_ask_so(examples: list[Example], kind: str) -> None:
    form, least = KINDS[kind]
    found = [e.question for e in examples if re.search(form, e.question, re.IGNORECASE)]
    assert len(found) >= least * len(examples) / 1000, found


# --- what the rules of these kinds need ------------------------------------------------------

_ONE = """@include kqapro.scfg
N -> Find($name)
    | {name}
"""


def test_a_variable_may_be_one_relation_alone(world: KnowledgeBase) -> None:
    grammar = read_grammar(
        f"{_ONE}ROOT[QueryName] -> QueryName(Relate(N, $relation=capital, forward))\n"
        "    | what is {relation.noun N}?\n    | where do they govern {N}?\n"
    )
    made = list(islice(Maker(world, grammar=grammar).block(1, 0), 20))
    assert {e.program.inputs[0].arguments[0] for e in made} == {"capital"}
    assert {e.question.split()[0] for e in made} == {"What", "Where"}
    with pytest.raises(ReadError, match=r"line 4: .*\$name=text"):
        read_grammar(f"{_ONE}ROOT[Count] -> Count(Relate(N, $relation=, forward))\n    | {{N}}?\n")


def test_rules_for_what_a_knowledge_base_lacks_are_left_out() -> None:
    builder = Builder()
    builder.add_concept("c", "country")
    builder.add_entity("n", "Norway", ["c"])
    grammar = read_grammar(
        f"{_ONE}ROOT[Count = exists] -> Count(FilterConcept(N, country))\n    | is {{N}} one?\n"
        "ROOT[Count = exists] -> Count(FilterConcept(N, landlocked state))\n    | is {N} so?\n"
        "ROOT[QueryName] -> QueryName(Relate(N, $relation=capital, forward))\n    | {N}?\n"
    )
    assert [rule.line for rule in applicable_rules(grammar, builder.build()).rules["ROOT"]] == [4]


@pytest.mark.parametrize("concept", ["landlocked state", "metal", "republic"])
def test_what_is_said_to_be_of_a_concept_is_or_is_like_those(
    world: KnowledgeBase, concept: str
) -> None:
    grammar = read_grammar(
        f"{_ONE}ROOT[Verify = exists] -> Count(FilterConcept(N, {concept}))\n"
        "    | is {N} of those?\n"
    )
    made = list(islice(Maker(world, grammar=grammar).block(1, 0), 40))
    yes = sum(e.answer == "yes" for e in made)
    assert all(isinstance(e.answer_form, Exists) for e in made)
    assert 10 <= yes <= 30


def test_money_of_the_past_pays_nowhere(world: KnowledgeBase) -> None:
    text = next(
        rule for rule in Maker(world, options=Options(profile="people")).grammar.rules["ROOT"]
        if any("legal tender" in str(text) for text in rule.lines)
    )  # fmt: skip
    assert "currency in use" in str(text.program)


def test_adjectives_are_of_names_that_have_one(world: KnowledgeBase) -> None:
    lexicon = Lexicon(world)
    assert lexicon.name("Estonia").adjective() == "Estonian"
    assert lexicon.name("Estonia").owner() == "Estonia's"
    with pytest.raises(NoWords):
        lexicon.name("Oslo").adjective()


def test_more_of_what_is_done(world: KnowledgeBase) -> None:
    words = Lexicon(world).wordings(Lexicon(world).key("carbon dioxide emissions"))
    verbs = {(one.has(), one.have()) for one in words}  # type: ignore[attr-defined]
    assert {("has", "have"), ("emits", "emit")} <= verbs


# --- noise -------------------------------------------------------------------------------------


def _typed(world: KnowledgeBase, question: str, kind: str) -> set[str]:
    noise = Noise(world, 1.0)
    typed = (noise.typed(question, Random(seed)) for seed in range(4000))
    return {text for text, done in typed if done == (kind,)}


def test_what_stands_around_a_question(world: KnowledgeBase) -> None:
    found = _typed(world, "What is the capital of Norway?", "opening")
    openings = tables().openings
    assert len(found) > 5
    assert found <= {f"{opening} what is the capital of Norway?" for opening in openings}
    found = _typed(world, "Norway's capital?", "opening")
    assert all(text.endswith(" Norway's capital?") for text in found)
    found = _typed(world, "What is the capital of Norway?", "ending")
    assert len(found) > 5
    assert all(text.startswith("What is the capital of Norway") for text in found)
    assert {text[-1] for text in found} == {"?", ".", "!"}


def test_words_are_misspelt_as_people_do(world: KnowledgeBase) -> None:
    found = _typed(world, "Which currency do they use in Norway?", "misspelling")
    assert any("curency" in text for text in found)
    assert any(text.startswith("Wich ") for text in found)
    for word, others in tables().misspelling.items():
        assert word not in others, word
        assert len(set(others)) == len(others), word
