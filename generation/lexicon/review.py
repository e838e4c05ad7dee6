"""What still reads badly: names whose words look wrong, or were never looked at and may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from generation import english
from generation.lexicon import Lexicon, guesses
from generation.lexicon.annotations import (
    CONCEPTS,
    KEYS,
    QUALIFIERS,
    RELATIONS,
    UNITS,
    Annotations,
    Given,
    annotations_for,
    names_of,
)
from generation.lexicon.phrases import CODED, readable
from kb import Date, KnowledgeBase, Year

SECTIONS = (RELATIONS, KEYS, QUALIFIERS, UNITS, CONCEPTS)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the words of a name may read badly; ``place``: file and line of its annotation."""

    section: str
    name: str
    reason: str
    place: str = ""


_PLURAL_DOUBTED = re.compile(
    r"(?:us|um|is|enon|rion|ma|eau|fe?|o|man|woman|child|fish|deer|sheep)$", re.I
)
_SURE = re.compile(
    "(?:human|museum|album|stadium|forum|photo|video|studio|radio|roof|chief|belief|bus|campus"
    "|virus|status|census|cinema|drama)$",
    re.IGNORECASE,
)


def review(kb: KnowledgeBase, annotations: Annotations | None = None) -> list[Doubt]:
    """Everything in the words of a knowledge base that a person should look at.

    Names without an annotation are doubted where a guess is often wrong; those with one only where
    they are marked "todo", say a direction of a relation by a dangling preposition, or name nothing
    in the knowledge base.
    """
    strangers = list(annotations.strangers(kb)) if annotations else []
    found = [Doubt(section, name, why, given.place) for section, name, given, why in strangers]
    lexicon = Lexicon(kb, annotations.only(kb) if annotations else None)
    for section in SECTIONS:
        given = lexicon.annotations.of(section)
        for name in names_of(kb, section):
            entry = given.get(name)
            for reason in reasons(lexicon, section, name, entry):
                found.append(Doubt(section, name, reason, entry.place if entry else ""))
    return found


def doubtful(kb: KnowledgeBase, annotations: Annotations | None = None) -> tuple[int, int]:
    """How many names of a knowledge base a person should look at, and how many it has.

    There are none where the bundled annotations say all of them, as those of ``world``.
    """
    every = sum(len(names_of(kb, section)) for section in SECTIONS)
    if annotations is None and annotations_for(kb) is not None:
        return 0, every
    found = {(doubt.section, doubt.name) for doubt in review(kb, annotations)}
    return len(found), every


def reasons(lexicon: Lexicon, section: str, name: str, given: Given | None) -> Iterator[str]:
    """Why the words of one name may read badly."""
    if given and given.todo:
        yield f"todo: {given.todo}"
    if section == RELATIONS:
        yield from _directions(lexicon, name, given)
    if section in (RELATIONS, CONCEPTS) and given:
        noun, nouns = (given.fields.get(field, "") for field in ("noun", "nouns"))
        if nouns and nouns == (noun or name):
            yield f"its plural is the same as its singular, {nouns!r}"
    if given is None:
        yield from _guesses(lexicon, section, name)


def _directions(lexicon: Lexicon, name: str, given: Given | None) -> Iterator[str]:
    entry = lexicon.relation(name, "forward").entry
    fields = given.fields if given else {}
    if not (entry.noun or entry.forward or entry.backward):
        yield "nothing is said of it: give noun, forward or backward"
    elif not (entry.noun or entry.forward) and "forward" not in fields:
        yield "nothing is said of a tail: give noun or forward (forward: none, if it reads well)"
    elif not (entry.noun or entry.backward) and "backward" not in fields:
        yield "nothing is said of a head: give noun or backward (backward: none, if it reads well)"


def _guesses(lexicon: Lexicon, section: str, name: str) -> Iterator[str]:
    if section == RELATIONS:
        doubt = guesses.relation(name).doubt
    elif section == KEYS:
        doubt = guesses.key(name).doubt or _time(lexicon, name)
    elif section == QUALIFIERS:
        doubt = guesses.qualifier(name).doubt
    elif section == UNITS:
        letters = all(c.isalpha() or c in " -'" for c in name)
        doubt = ""
        if not letters or re.search(r"\b[A-Z]{2,}\b", name):
            doubt = f"its plural is {english.plural_unit(name)!r}; give one and many"
    else:
        doubt = CODED if readable(name)[1] else _plural(name)
    if doubt:
        yield doubt


def _time(lexicon: Lexicon, name: str) -> str:
    """The doubt of a key whose values are times of no event that is known."""
    kb, entry = lexicon.kb, lexicon.key(name).entry
    numbers = kb.literals.object[kb.literals.of_predicate(kb.key_number(name))][:20]
    times = [isinstance(kb.values[int(number)], Year | Date) for number in numbers]
    if times and all(times) and entry.event is None and not entry.question:
        return "its values are times; give the event, if there is one (event: none, if not)"
    return ""


def _plural(name: str) -> str:
    """The doubt of a concept whose plural inflection may miss."""
    head = english.head(name).rpartition(" ")[2]
    if english.is_plural(name):
        return "it looks like a plural and stays as it is; give noun and nouns"
    if _PLURAL_DOUBTED.search(head) and not _SURE.search(head) and not english.irregular(head):
        return f"is {english.plural(name)!r} its plural?"
    return ""
