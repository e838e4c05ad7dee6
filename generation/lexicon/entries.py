"""What is known of how a name is said: one class for each kind of name, guessed from the name.

A guess is plain English inflection, so that every knowledge base has words at once; annotations
(`generation.lexicon.annotations`) put better ones in its place, field by field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from generation import english


@dataclass(frozen=True, slots=True)
class Verb:
    """A predicate "X one Y"; "auxiliary X base" asks for Y.

    "{}" shows where Y stands when that is not the end: "has {} as a member". ``short`` is what
    stands behind a noun for "that one": "born in" for "that was born in"; it may be missing.
    """

    one: str
    many: str
    auxiliary: str
    base: str
    short: str = ""

    @property
    def around(self) -> bool:
        """Whether it stands around its object."""
        return "{}" in self.one

    def of_one(self, near: str) -> str:
        """The predicate of one, with its object."""
        return put(self.one, near)

    def of_many(self, near: str) -> str:
        """The predicate of several, with its object."""
        return put(self.many, near)


def put(predicate: str, near: str) -> str:
    """A predicate with its object at its place."""
    return predicate.replace("{}", near) if "{}" in predicate else f"{predicate} {near}"


@dataclass(frozen=True, slots=True)
class RelationEntry:
    """How a relation is said.

    ``noun`` is what the tail is to the head ("capital": "the capital of Norway"), ``nouns`` its
    plural, ``of`` what stands between it and the head. ``forward`` is said of a tail before its
    head ("drafted"), ``backward`` of a head before its tail ("was drafted by"). One of the three is
    enough. ``several`` tells whether a head may have more tails than one ("an official language
    of"); None leaves it to the facts.

    ``tail_question`` asks for the tail of a head that stands at "{}" ("who runs {}"),
    ``head_question`` for the head of a tail; ``keyword`` is what the tail is called in a question
    of keywords. ``dates``: what the dates of a fact mean, "event", "state", "estimate" or
    "edition". ``complete``: whether all such facts are there, "yes" or "no", "forward" for all
    tails of a head, "backward" for all heads of a tail; "" where it is not known.
    """

    noun: str = ""
    nouns: str = ""
    of: str = "of"
    forward: Verb | None = None
    backward: Verb | None = None
    several: bool | None = None
    tail_question: str = ""
    head_question: str = ""
    keyword: str = ""
    dates: str = ""
    complete: str = ""


@dataclass(frozen=True, slots=True)
class ConceptEntry:
    """How a concept is said; ``the`` puts "the" before the names of its entities (rivers).

    ``head``: whether people call things by it ("the country that ..."), ``counted``: whether they
    ask how many there are, ``complete``: whether the knowledge base has all there are; None leaves
    it to the facts.
    """

    noun: str
    nouns: str
    a: str
    the: bool = False
    head: bool | None = None
    counted: bool | None = None
    complete: bool | None = None


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """How an attribute key is said.

    ``a``: behind its article; ``plural``: "are" goes with it. ``comparison`` compares the key
    ("higher" elevation), ``adjective`` what has it ("longer"; may be missing); both are the words
    for more, most, less and least, and ``how`` is the adjective as it stands behind "how".
    ``counted`` is what a number of the key counts ("seats"), ``event`` what happened at its time
    ("was born"), ``question`` asks for it, with "{}" for its owner, ``keyword`` is what it is
    called in a question of keywords. ``dates`` and ``complete`` are as those of a relation;
    ``complete`` is "yes" or "no". ``identifies``: whether people know things by its values, as by
    no code; None leaves it to the facts.
    """

    noun: str
    a: str
    plural: bool
    comparison: english.Comparison
    adjective: english.Comparison | None = None
    counted: str = ""
    event: Verb | None = None
    question: str = ""
    identifies: bool | None = None
    how: str = ""
    keyword: str = ""
    dates: str = ""
    complete: str = ""


@dataclass(frozen=True, slots=True)
class QualifierEntry:
    """How a qualifier key is said.

    ``a``: behind its article. ``given`` stands before a value ("with the status"), ``compared``
    before an operator ("starting" before 1980; may be missing), ``question`` asks for it of a fact
    that was just told.
    """

    noun: str
    a: str
    given: str
    compared: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class UnitEntry:
    """How a unit is said behind 1 and behind other numbers."""

    one: str
    many: str


# --- verbs -----------------------------------------------------------------------------------

_BEING = {"is": "are", "are": "are", "was": "were", "were": "were"}
# What cannot follow a noun where "that is" is left out: "the country (that is) part of X".
_NOT_SHORT = ("a", "an", "the", "part", "home", "able")


def read_verb(text: str, base: str = "") -> Verb | None:
    """The verb whose form behind a singular is given: "is part of", "serves", "has".

    A verb in the past needs its base form ("received", "receive"); None when it is missing.

    >>> read_verb("shares a border with").many
    'share a border with'
    """
    first, _, rest = text.partition(" ")
    if first in _BEING:
        article, _, noun = rest.partition(" ")
        several = english.plural(noun) if article in ("a", "an") else rest
        short = "" if article in _NOT_SHORT else rest
        return Verb(text, f"{_BEING[first]} {several}".strip(), first, rest, short)
    known = {"has": ("does", "have"), "does": ("does", "do"), "had": ("did", "have")}
    if first in known:
        auxiliary, stem = known[first]
        base = base or f"{stem} {rest}".strip()
        short = f"with {rest}" if first == "has" else ""
        return Verb(text, base if auxiliary == "does" else text, auxiliary, base, short)
    if re.search(r"[^su]s$", first):
        base = base or f"{_stem(first)} {rest}".strip()
        return Verb(text, base, "does", base)
    return Verb(text, text, "did", base) if base else None


def _stem(verb: str) -> str:
    """The base form of a verb in -s."""
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    return verb[:-2] if re.search(r"(?:ch|sh|x|ss|zz|o)es$", verb) else verb[:-1]


# --- guesses ---------------------------------------------------------------------------------

# Names that many knowledge bases have, said otherwise than they read.
_PASSIVE = {"born", "written", "known", "made", "given", "shown", "held", "led", "built", "worn"}
_PREPOSITIONS = ("of", "in", "by", "with", "to", "from", "at", "on", "for", "as")
_RELATIONS: dict[str, RelationEntry] = {
    "place of birth": RelationEntry("place of birth", backward=read_verb("was born in")),
    "place of death": RelationEntry("place of death", backward=read_verb("died in", "die in")),
    "award received": RelationEntry(backward=read_verb("received", "receive")),
    "shares border with": RelationEntry(
        forward=read_verb("shares a border with"), backward=read_verb("shares a border with")
    ),
    "located in the administrative territorial entity": RelationEntry(
        backward=read_verb("is located in")
    ),
    "part of": RelationEntry(backward=read_verb("is part of")),
    "has part": RelationEntry("part"),
    "lyrics by": RelationEntry("lyricist"),
    "educated at": RelationEntry(backward=read_verb("was educated at")),
    "drafted by": RelationEntry(
        forward=read_verb("drafted", "draft"), backward=read_verb("was drafted by")
    ),
    "spouse": RelationEntry("spouse", backward=read_verb("is married to")),
}
_EVENTS = {
    "date of birth": read_verb("was born"),
    "birthday": read_verb("was born"),
    "date of death": read_verb("died", "die"),
    "publication date": read_verb("was published"),
    "inception": read_verb("was founded"),
    "time of founding": read_verb("was founded"),
    "time of discovery": read_verb("was discovered"),
}
_ADJECTIVES = {
    "length": "long",
    "duration": "long",
    "height": "tall",
    "width": "wide",
    "age": "old",
    "mass": "heavy",
    "weight": "heavy",
    "density": "dense",
    "area": "large",
    "depth": "deep",
}
_HIGH = re.compile(
    r"rate|elevation|point|density|expectancy|ratio|GDP|income|energy|age\b|coefficient|debt"
    r"|expenditure|electronegativity|temperature|inflation|price|latitude|longitude|number\b(?! of)"
)
_PARTICIPLE = re.compile(r"ed (?:from|as|by|with|in|to)$")


@cache
def guess_relation(name: str, noun: str = "") -> RelationEntry:
    """The words of a relation, told by its name.

    A name that begins with a participle is said behind "is", one that begins with a verb in -s and
    goes on is that verb, a noun that ends in a preposition is said behind "is a"; else it is a
    noun: "the capital of".
    """
    if noun:
        return RelationEntry(noun, _several(noun))
    found = _RELATIONS.get(name) or _told_by_name(name)
    if found.noun and not found.nouns:
        return RelationEntry(
            found.noun, _several(found.noun), found.of, found.forward, found.backward
        )
    return found


def _told_by_name(name: str) -> RelationEntry:
    words = name.split(" ")
    first, last = words[0], words[-1]
    if len(words) > 1 and (first in _PASSIVE or (first.endswith("ed") and len(first) > 4)):
        return RelationEntry(backward=read_verb(f"is {name}"))
    if len(words) > 1 and last in _PREPOSITIONS:
        if re.search(r"[a-z](?<!s)(?<!u)(?<!i)s$", first):
            return RelationEntry(backward=read_verb(name))
        noun = name.removesuffix(f" {last}")
        return RelationEntry(backward=read_verb(f"is {english.with_article(noun)} {last}"))
    return RelationEntry(name)


@cache
def guess_concept(name: str, noun: str = "") -> ConceptEntry:
    """The words of a concept, told by its name."""
    noun = noun or name
    return ConceptEntry(noun, _several(noun), english.with_article(noun))


def _several(noun: str) -> str:
    """The plural of a name that may be one already, as "notable works"."""
    return noun if english.is_plural(noun) else english.plural(noun)


@cache
def guess_key(name: str, noun: str = "") -> KeyEntry:
    """The words of an attribute key, told by its name."""
    noun = noun or name
    plural = english.is_plural(noun)
    high = (plural or _HIGH.search(noun)) and not noun.startswith(("highest", "lowest"))
    adjective = _ADJECTIVES.get(name)
    return KeyEntry(
        noun,
        english.with_article(noun),
        plural,
        english.comparison("high" if high else "large"),
        english.comparison(adjective) if adjective else None,
        noun.removeprefix("number of ") if noun.startswith("number of ") else "",
        _EVENTS.get(name),
        how=adjective or "",
    )


@cache
def guess_qualifier(name: str, noun: str = "") -> QualifierEntry:
    """The words of a qualifier key, told by its name.

    The name "separated from" is no noun: it stands before its value as it is.
    """
    if not noun and _PARTICIPLE.search(name):
        return QualifierEntry("", "", name, "", f"what was it {name}")
    noun = noun or name
    compared = {"start time": "starting", "end time": "ending"}.get(name, "")
    asked = {
        "point in time": "when was that",
        "start time": "when did that start",
        "end time": "when did that end",
    }.get(name, f"what is the {noun}")
    return QualifierEntry(noun, english.with_article(noun), f"with the {noun}", compared, asked)


@cache
def guess_unit(name: str, noun: str = "") -> UnitEntry:
    """The words of a unit, told by its name."""
    return UnitEntry(noun or name, english.plural_unit(noun or name))


# --- further wordings ------------------------------------------------------------------------

Entry = TypeVar("Entry", RelationEntry, ConceptEntry, KeyEntry, QualifierEntry, UnitEntry)


def variant(main: Entry, fields: Mapping[str, Any]) -> Entry:
    """What a further wording begins with, before its fields are put into it.

    Its noun gives plural and article; what it has no words for is left empty, so that the main
    wording or another one says it. A key is compared by the words of the main one.
    """
    noun = str(fields.get("noun", ""))
    if isinstance(main, RelationEntry):
        return guess_relation("", noun) if noun else RelationEntry()
    if isinstance(main, KeyEntry):
        if not noun:
            return KeyEntry("", "", main.plural, main.comparison)
        return replace(guess_key("", noun), comparison=main.comparison)
    if isinstance(main, QualifierEntry):
        return guess_qualifier("", noun) if noun else QualifierEntry("", "", "")
    if isinstance(main, ConceptEntry):
        return guess_concept("", noun)
    return guess_unit("", str(fields["one"]))
