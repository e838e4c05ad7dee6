"""The words by which a question may mention a constant of its program, as the lexicon has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generation.lexicon import Lexicon, Words
from generation.lexicon.entries import Verb
from kb import Value
from kb.values import read_quantity, read_time
from kopl.program import Call, post_order
from kopl.types import Kind


def unmentioned(
    lexicon: Lexicon, program: Call, question: str, *, aliases: bool = False
) -> list[tuple[str, list[str]]]:
    """The constants of a program that a question does not mention, and how each could have been.

    ``aliases``: things may be called by their aliases.
    """
    said = f" {question.casefold()}"
    missing = []
    for call in post_order(program):
        for (_, kind), constant in zip(call.function.arguments, call.arguments, strict=True):
            ways = [way for way in spellings(lexicon, kind, str(constant)) if way]
            if aliases and kind is Kind.NAME:
                ways += [one.text for one in lexicon.wordings(lexicon.name(str(constant)))]
            if not any(way.casefold() in said for way in ways):
                missing.append((str(constant), ways))
    return missing


def spellings(lexicon: Lexicon, kind: Kind, text: str) -> Iterator[str]:
    """All words by which a constant of a kind may be mentioned."""
    if kind is Kind.NAME:
        yield text
    elif kind is Kind.CONCEPT:
        for concept in _entries(lexicon, lexicon.concept(text)):
            yield from (concept.noun, concept.nouns)
    elif kind is Kind.RELATION:
        for entry in _entries(lexicon, lexicon.relation(text, "forward")):
            yield from (entry.noun, entry.nouns, entry.keyword)
            yield from _parts(entry.tail_question, entry.head_question)
            for _, questions in entry.details:
                yield from (part for question in questions for part in _parts_of(question))
            for verb in (entry.forward, entry.backward):
                yield from _of_verb(verb)
    elif kind is Kind.KEY:
        for key in _entries(lexicon, lexicon.key(text)):
            yield from (key.noun, key.compared or "", key.counted, key.keyword)
            yield from key.adjective or ()
            yield f"how {key.how}" if key.how else ""
            yield from _of_verb(key.event)
            yield from _parts(key.question)
    elif kind is Kind.QUALIFIER_KEY:
        for entry in _entries(lexicon, lexicon.qualifier(text)):
            yield from (entry.noun, entry.given, entry.compared, entry.question, entry.fronted)
        for relation in lexicon.kb.relations:  # questions of their own, for any relation
            for qualifier, questions in lexicon.relation(relation, "forward").entry.details:
                if qualifier == text:
                    yield from (p for q in questions for p in _parts_of(q))
        if text == "end time":
            yield from ("until when", "stop being")
        if text in ("point in time", "start time"):
            yield from ("when", " in ", " on ", "(in ", "(on ", "before", "after")
            yield from (" as of ", "what year", "which year", " figures", "dated", "what date")
    elif kind in (Kind.QUANTITY, Kind.TIME):
        value = read_quantity(text) if kind is Kind.QUANTITY else read_time(text)
        yield from _values(lexicon, value)
    elif kind in (Kind.STRING, Kind.ANY_VALUE):
        yield text
        for read in (read_quantity, read_time):
            try:
                yield from _values(lexicon, read(text))
            except ValueError:
                continue
    else:
        yield " "  # an operator, direction or choice: said by the words around it


def _entries(lexicon: Lexicon, words: Words) -> Iterator[Any]:
    """The entries of all wordings of a name."""
    variants = lexicon.variants(words)
    for one in variants.words if variants else (words,):
        yield one.entry  # type: ignore[attr-defined]


def _values(lexicon: Lexicon, value: Value) -> Iterator[str]:
    variants = lexicon.variants(lexicon.value(value))
    for one in variants.words if variants else (lexicon.value(value),):
        yield one.plain()


def _parts_of(question: str) -> Iterator[str]:
    """The words of a question beside the names of both ends of a fact."""
    rest = question.replace("{head}", "{}").replace("{tail}", "{}")
    yield max((part.strip() for part in rest.split("{}")), key=len)


def _parts(*questions: str) -> Iterator[str]:
    for question in questions:
        yield from (part.strip() for part in question.split("{}"))


def _of_verb(verb: Verb | None) -> Iterator[str]:
    if verb:
        for form in (verb.one, verb.many, verb.base, verb.short, verb.past.one, verb.past.many):
            yield max((part.strip() for part in form.split("{}")), key=len)
