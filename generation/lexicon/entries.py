"""What is known of how a name is said: one class for each kind of name.

Entries are guessed from the names (`generation.lexicon.guesses`); annotations
(`generation.lexicon.annotations`) put better ones in their place, field by field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from generation import english, verbs


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

    @property
    def past(self) -> Verb:
        """The same of what is over: "was part of", "exported"."""
        if self.auxiliary == "is":
            many = f"were{self.many.removeprefix('are')}"
            return Verb(f"was{self.one.removeprefix('is')}", many, "was", self.base)
        if self.auxiliary != "does":
            return self
        lead, verb, rest = _parts(self.base)
        said = f"{lead}{verbs.past(verb)} {rest}".strip()
        return Verb(said, said, "did", self.base)

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
    "edition". ``details``: questions for the qualifiers of its facts. ``complete``: whether all
    such facts are there, "yes" or "no", "forward" for all tails of a head, "backward" for all heads
    of a tail; "" where it is not known.
    ``identifies``, in the same words: which end people know by the other one, "backward" for heads
    alone ("the isotope of tin", not "the element of tin-112"); "" is both.
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
    details: tuple[tuple[str, tuple[str, ...]], ...] = ()
    complete: str = ""
    identifies: str = ""


@dataclass(frozen=True, slots=True)
class ConceptEntry:
    """How a concept is said; ``the`` puts "the" before the names of its entities (rivers).

    ``head``: whether people call things by it ("the country that ..."), ``counted``: whether they
    ask how many there are, ``complete``: whether the knowledge base has all there are; None leaves
    it to the facts. ``greatest``: whether it has at least the greatest ones, so that lists of them
    are what people mean ("the rivers of Germany"). ``called``: whether its entities may be called
    by their aliases.
    """

    noun: str
    nouns: str
    a: str
    the: bool = False
    head: bool | None = None
    counted: bool | None = None
    complete: bool | None = None
    greatest: bool = False
    called: bool = True


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """How an attribute key is said.

    ``a``: behind its article; ``plural``: "are" goes with it. ``comparison`` compares the key
    ("higher" elevation), ``adjective`` what has it ("longer"; may be missing); both are the words
    for more, most, less and least, and ``how`` is the adjective as it stands behind "how".
    ``counted`` is what a number of the key counts ("seats"), ``event`` what happened at its time
    ("was born"), ``question`` asks for it, with "{}" for its owner, ``keyword`` is what it is
    called in a question of keywords. ``dates`` and ``complete`` are as those of a relation;
    ``complete`` is "yes", "no", or "partly" where it may be compared among those that have it.
    ``identifies``: whether people know things by its values, as by no code; None leaves it to the
    facts. ``called``: whether things may be called by such an alias.
    ``compared`` is the noun beside a comparison ("the longest coastline" of the coastline length),
    "" where it is not compared by this wording, None where the noun will do. ``happening``: the
    main wording says what happened, so that none says "has a date of birth". ``counting``: a
    wording counts or is a plain noun, so that none says "has a number of seats equal to 5".
    ``having`` is the verb before what is ``counted`` if that is not had: a country "emits" more
    CO2. ``verb`` stands before a value of the key, and says the key: somebody "speaks" French, a
    thing "costs" 5 euros.
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
    called: bool = True
    compared: str | None = None
    happening: bool = False
    counting: bool = False
    having: Verb | None = None
    verb: Verb | None = None

    @property
    def beside(self) -> KeyEntry:
        """The same beside a comparison."""
        if self.compared is None:
            return self
        return replace(self, noun=self.compared, a=english.with_article(self.compared or self.noun))


@dataclass(frozen=True, slots=True)
class QualifierEntry:
    """How a qualifier key is said.

    ``a``: behind its article. ``given`` stands before a value ("with the status"), ``compared``
    before an operator ("starting" before 1980; may be missing), ``question`` asks for it of a fact
    that was just told, ``fronted`` before one that is asked ("in what role" is X a member of Y).
    """

    noun: str
    a: str
    given: str
    compared: str = ""
    question: str = ""
    fronted: str = ""


@dataclass(frozen=True, slots=True)
class UnitEntry:
    """How a unit is said behind 1 and behind other numbers."""

    one: str
    many: str


# --- verbs -----------------------------------------------------------------------------------

_BEING = {"is": "are", "are": "are", "was": "were", "were": "were"}
# What cannot follow a noun where "that is" is left out: "the country (that is) part of X".
_NOT_SHORT = ("a", "an", "the", "part", "one", "home", "able")


def read_verb(text: str, base: str = "") -> Verb | None:
    """The verb whose form behind a singular is given: "is part of", "serves", "has".

    A verb in the past that no table has (`generation.verbs`) needs its base form; None when that is
    missing.

    >>> read_verb("shares a border with").many
    'share a border with'
    """
    lead, first, rest = _parts(text)
    if first in _BEING:
        article, _, noun = rest.partition(" ")
        several = english.plural(noun) if article in ("a", "an") else rest
        short = "" if article in _NOT_SHORT else rest
        return Verb(text, f"{_BEING[first]} {several}".strip(), first, rest, short)
    known = {"has": ("does", "have"), "does": ("does", "do"), "had": ("did", "have")}
    if first in known:
        auxiliary, stem = known[first]
        base = base or f"{stem} {rest}".strip()
        short = f"with {_of_nobody(rest)}" if first == "has" else ""
        many = _of_several(base) if auxiliary == "does" else text
        return Verb(text, many, auxiliary, base, short)
    if re.search(r"[^su]s$", first):
        base = base or f"{lead}{verbs.base_of(first)} {rest}".strip()
        return Verb(text, _of_several(base), "does", base)
    if not base and (known_past := verbs.by_past().get(first)):
        base = f"{lead}{known_past.base} {rest}".strip()
    return Verb(text, text, "did", base) if base else None


def _of_several(predicate: str) -> str:
    """What is said of several: "have {} among their members"."""
    return re.sub(r"\bits\b", "their", predicate)


def _of_nobody(predicate: str) -> str:
    """The same where it may be one or several: "{} as capital", "{} among the members"."""
    return re.sub(r"\bits\b", "the", re.sub(r"\bas its\b", "as", predicate))


def _parts(text: str) -> tuple[str, str, str]:
    """An adverb before a verb, the verb, and what stands behind it."""
    first, _, rest = text.partition(" ")
    if first.endswith("ly") and rest:
        verb, _, behind = rest.partition(" ")
        return f"{first} ", verb, behind
    return "", first, rest
