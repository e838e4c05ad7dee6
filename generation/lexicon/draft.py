"""A file of annotations to begin with: every name, what would be said of it, and sample facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from generation import english
from generation.lexicon import Lexicon
from generation.lexicon.annotations import (
    ALSO,
    CONCEPTS,
    KEYS,
    NAMES,
    OF_ALL,
    QUALIFIERS,
    RELATIONS,
    UNITS,
    names_of,
)
from generation.lexicon.entries import ConceptEntry, KeyEntry, QualifierEntry, Verb, read_verb
from generation.lexicon.review import SECTIONS, reasons
from generation.lexicon.samples import Samples

_HEAD = """\
# How the names of a knowledge base read in generated questions (docs/lexicon.md).
#
# Below each name: what is said of it now; above it, facts that it stands in. Change what reads
# badly. A "todo" says why an entry is doubtful: delete that line when the entry is right.
# `kopl lexicon check KB FILE` lists what is left.
"""


def draft(lexicon: Lexicon, only: Collection[tuple[str, str]] | None = None) -> Iterator[str]:
    """The lines of a file of annotations for a knowledge base, ready to be edited.

    ``only`` names the section and name of each entry that it is to have, None all of them.
    """
    samples = Samples(lexicon)
    yield _HEAD
    for section in SECTIONS:
        names = names_of(lexicon.kb, section)
        if only is not None:
            names = [name for name in names if (section, name) in only]
            if not names:
                continue
        yield f"{section}:\n"
        for name in names:
            yield from _entry(lexicon, samples, section, name)
        yield "\n" if names else "  {}\n\n"
    names_of_entities = lexicon.annotations.of(NAMES) if only is None else {}
    if names_of_entities:
        yield f"{NAMES}:\n"
        for name, given in names_of_entities.items():
            the = str(bool(given.fields.get("the"))).lower()
            yield f"  {scalar(name)}:\n    the: {the}\n"


def _entry(lexicon: Lexicon, samples: Samples, section: str, name: str) -> Iterator[str]:
    for fact in samples.facts(section, name):
        yield f"  # {' '.join(fact.split())}\n"
    yield f"  {scalar(name)}:\n"
    for field, text in _fields(lexicon, section, name):
        yield f"    {field}: {text}\n"
    given = lexicon.annotations.of(section).get(name)
    doubts = [why.removeprefix("todo: ") for why in reasons(lexicon, section, name, given)]
    if doubts:
        yield f"    todo: {scalar('; '.join(doubts))}\n"


def _fields(lexicon: Lexicon, section: str, name: str) -> Iterator[tuple[str, str]]:
    """The fields of a name's entry that say something, as they are written."""
    if section == RELATIONS:
        relation = lexicon.relation(name, "forward").entry
        if relation.noun:
            yield "noun", scalar(relation.noun)
            yield "nouns", scalar(relation.nouns or english.plural(relation.noun))
            if relation.of != "of":
                yield "of", scalar(relation.of)
        for field, verb in (("forward", relation.forward), ("backward", relation.backward)):
            if verb:
                yield field, _verb(verb)
        for field in ("tail question", "head question", "keyword"):
            if text := getattr(relation, field.replace(" ", "_")):
                yield field, scalar(text)
        yield from _told(section, relation)
    elif section == KEYS:
        yield from _key(lexicon.key(name).entry)
    elif section == QUALIFIERS:
        qualifier = lexicon.qualifier(name).entry
        if qualifier.noun:
            yield "noun", scalar(qualifier.noun)
            yield from _article(qualifier)
        yield "given", scalar(qualifier.given)
        if qualifier.compared:
            yield "compared", scalar(qualifier.compared)
        yield "question", scalar(qualifier.question)
        if qualifier.fronted not in ("", f"with what {qualifier.noun}"):
            yield "fronted", scalar(qualifier.fronted)
    elif section == UNITS:
        unit = lexicon.unit(name)
        yield "one", scalar(unit.one)
        yield "many", scalar(unit.many)
    elif section == CONCEPTS:
        concept = lexicon.concept(name).entry
        yield "noun", scalar(concept.noun)
        yield from _article(concept)
        yield "nouns", scalar(concept.nouns)
        yield from _told(section, concept)
    given = lexicon.annotations.of(section).get(name)
    if given and given.also:
        yield ALSO, f"[{', '.join(_further(fields) for fields in given.also)}]"


def _key(key: KeyEntry) -> Iterator[tuple[str, str]]:
    yield "noun", scalar(key.noun)
    yield from _article(key)
    if key.plural:
        yield "plural", "true"
    yield "comparison", _comparison(key.comparison)
    if key.compared is not None:
        yield "compared", scalar(key.compared or "none")
    if key.adjective:
        yield "adjective", _comparison(key.adjective)
        yield "how", scalar(key.how or "none")
    if key.counted:
        yield "counted", scalar(key.counted)
    if key.having:
        yield "having", _verb(key.having)
    for field, verb in (("verb", key.verb), ("event", key.event)):
        if verb:
            yield field, _verb(verb)
    for field in ("question", "keyword"):
        if text := getattr(key, field):
            yield field, scalar(text)
    yield from _told(KEYS, key)


def _article(entry: KeyEntry | QualifierEntry | ConceptEntry) -> Iterator[tuple[str, str]]:
    """What stands behind the article, where that is not told by the noun."""
    if entry.a != english.with_article(entry.noun):
        yield "a", scalar(entry.a)


def _told(section: str, entry: Any) -> Iterator[tuple[str, str]]:
    """The fields that tell what is true of a name however it is said."""
    for field in OF_ALL[section]:
        value = getattr(entry, field)
        if isinstance(value, bool):
            if value or field != "the":
                yield field, str(value).lower()
        elif isinstance(value, tuple):
            if value:
                yield field, _details(value)
        elif value:
            yield field, scalar(value)


def _details(details: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    """The questions for qualifiers, in one line."""
    parts = (
        f"{scalar(key, flow=True)}: [{', '.join(scalar(text, flow=True) for text in texts)}]"
        for key, texts in details
    )
    return f"{{{', '.join(parts)}}}"


def _further(fields: Mapping[str, Any]) -> str:
    """A further wording, with its fields in one line."""
    parts = (f"{name.replace('_', ' ')}: {_value(value)}" for name, value in fields.items())
    return f"{{{', '.join(parts)}}}"


def _value(value: Any) -> str:
    if isinstance(value, Verb):
        return _verb(value, flow=True)
    if isinstance(value, tuple):
        return _comparison(value)
    if isinstance(value, bool):
        return str(value).lower()
    return scalar(value or "none", flow=True)


def _verb(verb: Verb, *, flow: bool = False) -> str:
    if read_verb(verb.one) == verb:
        return scalar(verb.one, flow=flow)
    parts = {"one": verb.one, "base": verb.base}
    if read_verb(verb.one, verb.base) != verb:
        parts |= {"many": verb.many, "auxiliary": verb.auxiliary, "short": verb.short or "none"}
    return (
        "{" + ", ".join(f"{part}: {scalar(text, flow=True)}" for part, text in parts.items()) + "}"
    )


def _comparison(words: english.Comparison) -> str:
    for adjective in ("large", "high", "great", "long", "tall", "old", "heavy", "wide", "deep"):
        if english.comparison(adjective) == words:
            return adjective
    plain = words[0].removeprefix("more ")
    if english.comparison(plain) == words:
        return scalar(plain)
    return "[" + ", ".join(scalar(word, flow=True) for word in words) + "]"


_PLAIN = re.compile(r"[^\W\d_](?:[\w ./()'–-]*[\w.)/'])?")
_FLOW = re.compile(r"[^\W\d_](?:[\w ./'-]*[\w./'-])?")
_WORDS_OF_YAML = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


def scalar(text: str, *, flow: bool = False) -> str:
    """A text as YAML reads it back: bare where that is plain, else in double quotes."""
    plain = (_FLOW if flow else _PLAIN).fullmatch(text)
    if plain and text.lower() not in _WORDS_OF_YAML:
        return text
    return f'"{"".join(_escaped(c) for c in text)}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"
