"""Words that people have for names of many knowledge bases: prices, authors, languages."""

from __future__ import annotations

import pytest

from generation.lexicon import KeyWords, Lexicon, NoWords, RelationWords, parse_annotations
from generation.lexicon.annotations import everyday_annotations, everyday_for
from generation.lexicon.draft import draft
from kb import Builder, KnowledgeBase, Quantity, load


def shop() -> KnowledgeBase:
    """Two books, of which one speaks no language, and who wrote them."""
    builder = Builder()
    for concept in ("book", "person"):
        builder.add_concept(concept, concept)
    builder.add_entity("p", "Ada Berg", ["person"])
    builder.add_attribute("p", "languages", "Velish")
    for number, name in enumerate(("The Ferry", "The Mill")):
        builder.add_entity(name, name, ["book"])
        builder.add_attribute(name, "Price", Quantity(5 + number, "euro"))
        builder.add_attribute(name, "cost", Quantity(3 + number, "euro"))
        builder.add_attribute(name, "language", "Velish")
        builder.add_fact(name, "author", "p")
    return builder.build()


def test_names_of_many_knowledge_bases_are_said_as_people_say_them() -> None:
    lexicon = Lexicon(shop())
    asked = [words.asked("The Ferry") for words in _keys(lexicon, "Price") if words.entry.question]
    assert "how much is The Ferry" in asked
    assert lexicon.comparison("less", "Price").alone() == "cheaper"
    assert lexicon.comparison("smallest", "Price").much() == "the least"
    assert lexicon.key("Price").does("The Ferry") == "does The Ferry cost"
    writers = lexicon.wordings(lexicon.relation("author", "forward"))
    said = [w.entry.tail_question for w in writers if isinstance(w, RelationWords)]
    assert "who wrote {}" in said


def test_of_two_names_for_the_same_one_alone_is_said_so() -> None:
    lexicon = Lexicon(shop())
    assert lexicon.wordings(lexicon.key("cost")) == (lexicon.key("cost"),)
    with pytest.raises(NoWords):
        lexicon.key("cost").says()


def test_words_for_people_are_for_attributes_of_people_alone() -> None:
    lexicon = Lexicon(shop())
    assert lexicon.key("languages").says() == "speaks"
    with pytest.raises(NoWords):  # that of books
        lexicon.key("language").says()


def test_annotations_stand_above_everyday_words() -> None:
    given = parse_annotations("keys:\n  Price: {noun: fare}\n")
    lexicon = Lexicon(shop(), given)
    assert [words.plain() for words in _keys(lexicon, "Price")] == ["fare"]


def test_the_drafted_file_can_be_read_again() -> None:
    lexicon = Lexicon(shop())
    given = parse_annotations("".join(draft(lexicon)))
    again = Lexicon(shop(), given)
    for words in (lexicon.relation("author", "forward"), lexicon.key("Price")):
        assert again.wordings(words) == lexicon.wordings(words)
        assert repr(again.dressed(words)) == repr(lexicon.dressed(words))
    assert _keys(again, "Price")[0].entry == _keys(lexicon, "Price")[0].entry


def test_the_bundled_knowledge_base_has_its_own_words_alone() -> None:
    lexicon = Lexicon(load("world"))
    sources = {
        given.source for part in lexicon.annotations.sections.values() for given in part.values()
    }
    assert "everyday.yaml" not in sources
    assert everyday_for(load("world")).sections  # it has such names


def test_every_entry_of_everyday_words_can_be_read() -> None:
    names = [(section, name) for section, own, _, _ in everyday_annotations() for name in own]
    assert len(names) > 100
    assert all(name == name.lower() for _, name in names)


def _keys(lexicon: Lexicon, name: str) -> list[KeyWords]:
    words = lexicon.wordings(lexicon.key(name))
    return [one for one in words if isinstance(one, KeyWords)]
