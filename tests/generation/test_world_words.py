"""The lexicon of `world`: how much it says, and that all of it can be said of real facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from generation.lexicon import Lexicon, NoWords, Words, forms_of, say
from generation.lexicon.annotations import (
    COMPLETE,
    CONCEPTS,
    DATES,
    KEYS,
    QUALIFIERS,
    RELATIONS,
    Given,
    bundled_annotations,
    names_of,
)
from generation.lexicon.entries import Verb
from generation.pools import Pools
from generation.taste import OPEN, Taste
from kb import KnowledgeBase
from kb.facts import FactTable
from kopl.executor import Executor
from kopl.text import read

# Fields that say nothing by themselves.
_SILENT = {
    "nouns", "of", "a", "plural", "several", "comparison", "how", "dates", "complete", "identifies",
    "head", "the",
}  # fmt: skip
# Formal terms and words that have no other: nobody calls a canton anything else.
_ONE_WORDING = {
    "canton", "county", "department", "district", "governorate", "lake", "language",
    "municipality", "ocean", "parish", "person", "prefecture", "province", "region", "republic",
    "river", "sea", "territory",
}  # fmt: skip


def _wordings(name: str, given: Given) -> set[str]:
    """The different texts by which a name is said: nouns, verbs, adjectives, questions."""
    found = set() if "noun" in given.fields else {name}
    for fields in (given.fields, *given.also):
        for field, value in fields.items():
            if field in _SILENT or isinstance(value, bool) or not value:
                continue
            one = value.one if isinstance(value, Verb) else value
            found.add(one[0] if isinstance(one, tuple) else one)
    return found


def test_names_have_eight_wordings_on_average() -> None:
    counts = {
        (section, name): len(_wordings(name, given))
        for section in (RELATIONS, KEYS, QUALIFIERS, CONCEPTS)
        for name, given in bundled_annotations().of(section).items()
    }
    assert sum(counts.values()) >= 8 * len(counts)
    assert {name for (_, name), count in counts.items() if count < 2} == _ONE_WORDING
    for section, least in ((RELATIONS, 12), (KEYS, 6), (QUALIFIERS, 5)):
        few = {n: c for (where, n), c in counts.items() if where == section and c < least}
        assert not few, section


def test_what_dates_mean_and_what_is_complete_is_told(world: KnowledgeBase) -> None:
    lexicon = Lexicon(world)
    for relation in world.relations:
        entry = lexicon.relation(relation, "forward").entry
        assert entry.complete in COMPLETE[RELATIONS], relation
        assert entry.dates in DATES or not _dated(world, world.relational, relation), relation
    untold = set()
    for key in world.attribute_keys:
        told = lexicon.key(key).entry
        assert told.dates in DATES or not _dated(world, world.literals, key), key
        untold |= {key} if told.complete not in COMPLETE[KEYS] else set()
    # Complete of countries and not of cities and lakes: the facts tell.
    assert untold == {"area", "population"}


def _dated(kb: KnowledgeBase, table: FactTable, name: str) -> bool:
    """Whether facts have a time as a qualifier."""
    relational = table is kb.relational
    number = kb.relation_number(name) if relational else kb.key_number(name)
    sets = {int(n) for n in table.qualifiers[table.of_predicate(number)].tolist()}
    times = {kb.key_number(name) for name in ("point in time", "start time", "end time")}
    return any(key in times for n in sets if n for key, _ in kb.qualifier_sets.pairs(n))


# --- every wording in sentences --------------------------------------------------------------

_BAD = re.compile(
    r"[{}]|  |^ | $|\b(?!that\b|had\b)(\w+) \1\b|\b(?:a|an|the) (?:the|a|an)\b"
    r"|\ba [aeio](?!n[ei]|ur)|\ban (?![aeiouAEIOUFHLMNRSX8]|hour|honou?r)"
)


def _check(text: str, *inside: str) -> None:
    """Names stand in the text, and without them it is well formed."""
    bare = text
    for near in sorted(inside, key=len, reverse=True):
        assert near in text
        bare = bare.replace(near, "X")
    assert not _BAD.search(bare), text


def _said(words: Words, pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What words say in each form that they have, of each pair of names; every text is checked."""
    for form, takes in forms_of(type(words)).items():
        for pair in pairs if takes else pairs[:1]:
            inside = pair[:takes]
            try:
                text = say(words, form, *inside)
            except NoWords:
                continue
            if text or takes:
                _check(text, *inside)
            yield form, text


def _three(lexicon: Lexicon, table: FactTable, number: int) -> list[tuple[str, str]]:
    """Both ends of three facts from different parts of all; values as they are written."""
    facts = table.of_predicate(number).tolist()
    kb = lexicon.kb

    def end(fact: int) -> str:
        node = int(table.object[fact])
        relational = table is kb.relational
        said = lexicon.name(kb.name_of(node)) if relational else lexicon.value(kb.values[node])
        return said.plain()

    chosen = [facts[len(facts) * at // 6] for at in (1, 3, 5)]
    return [(lexicon.name(kb.name_of(int(table.subject[f]))).plain(), end(f)) for f in chosen]


def test_relations_in_sentences(world: KnowledgeBase) -> None:
    lexicon = Lexicon(world)
    for relation in world.relations:
        pairs = _three(lexicon, world.relational, world.relation_number(relation))
        turned = [(tail, head) for head, tail in pairs]
        forward = lexicon.wordings(lexicon.relation(relation, "forward"))
        backward = lexicon.wordings(lexicon.relation(relation, "backward"))
        # The forms with both ends take the head first, whatever the direction.
        said = [
            {*_said(one, pairs), *_said(other, turned)}
            for one, other in zip(forward, backward, strict=True)
        ]
        for further in said[1:]:
            assert further - said[0], relation


def test_keys_in_sentences(world: KnowledgeBase) -> None:
    lexicon = Lexicon(world)
    for key in world.attribute_keys:
        owners = _three(lexicon, world.literals, world.key_number(key))
        variants = lexicon.variants(lexicon.key(key))
        beside = variants.beside if variants and variants.beside else variants
        main, *others = (
            (
                {*_said(one, owners), *_said(other, owners)}
                for one, other in zip(variants.words, beside.words, strict=True)
            )
            if variants and beside
            else ()
        )  # every key has several
        for said in others:
            assert said - main, key
        for word in ("greater", "less", "largest", "smallest"):
            for words in lexicon.wordings(lexicon.comparison(word, key)):
                for form, text in _said(words, owners):
                    if form == "alone":
                        assert text.startswith("the ") == word.endswith("est"), text


@pytest.mark.parametrize("section", [QUALIFIERS, CONCEPTS])
def test_other_names_in_sentences(world: KnowledgeBase, section: str) -> None:
    lexicon = Lexicon(world)
    for name in names_of(world, section):
        words = lexicon.qualifier(name) if section == QUALIFIERS else lexicon.concept(name)
        main, *others = (set(_said(w, [("X", "Y")])) for w in lexicon.wordings(words))
        assert main, name
        for said in others:
            assert said - main, name


def test_no_article_before_a_plural(world: KnowledgeBase) -> None:
    lexicon = Lexicon(world)
    makers: dict[str, Callable[[str], Words]] = {
        KEYS: lexicon.key, QUALIFIERS: lexicon.qualifier, CONCEPTS: lexicon.concept
    }  # fmt: skip
    for section, make in makers.items():
        for name in names_of(world, section):
            for words in lexicon.wordings(make(name)):
                entry = words.entry  # type: ignore[attr-defined]
                plural = getattr(entry, "plural", False)
                assert not (plural and entry.a.startswith(("a ", "an "))), entry.a


@pytest.mark.parametrize(
    ("question", "twice"),
    [
        ("Who leads the parliament that is the legislature of Norway?", True),
        ("List the farm products that are agricultural products of Ghana.", True),
        ("What is the anthem that is the national hymn of Kenya?", True),
        ("What is the anthem that was composed by Ludvig Mathias Lindeman?", False),
        ("Which language is spoken in Norway?", False),
        ("What is the city that is the capital of Norway?", False),
        ("Is the Iranian Space Agency the space agency of Iran?", False),
    ],
)
def test_what_says_the_same_twice(world: KnowledgeBase, question: str, twice: bool) -> None:
    assert Lexicon(world).says_twice(question) == twice


def test_who_has_a_half_life_is_no_whole_list(world: KnowledgeBase) -> None:
    # Bismuth-209, which decays more slowly than all that have one here, has none.
    taste = Taste(Pools(world), Lexicon(world))
    text = 'FilterConcept(FilterNum(FindAll(), "half-life", "1 second", ">"), "isotope")'
    asked = read(text)
    assert "bismuth-209" not in Executor(world).outcome(asked, {}).strings()
    assert taste.closed(asked) == OPEN


@pytest.mark.parametrize(
    ("key", "text"), [("population", "the fewest"), ("public debt", "the least")]
)
def test_what_has_no_plural_is_less_not_fewer(world: KnowledgeBase, key: str, text: str) -> None:
    words = [
        words
        for words in Lexicon(world).wordings(Lexicon(world).comparison("smallest", key))
        if words.entry.counted  # type: ignore[attr-defined]
    ]
    assert {say(one, "count") for one in words} == {text}
