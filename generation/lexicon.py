"""How names, keys, relations, values and comparisons are said, in the forms that rules ask for.

Each class says one kind of textual argument; a form is a method, and `NoWords` tells that this
word does not have it, so that another wording is tried. Relations get their wording from their
names ("capital", "located in", "shares border with"), with a few exceptions by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from generation import english
from kb import Date, KnowledgeBase, Quantity, Value, Year
from kopl.types import Kind

Direction = Literal["forward", "backward"]


class NoWords(Exception):
    """A word does not have the form that was asked for."""


@dataclass(frozen=True, slots=True)
class Words:
    """A textual argument and its forms; ``text`` is what the program holds."""

    text: str

    def plain(self) -> str:
        """The word itself."""
        return self.text


@dataclass(frozen=True, slots=True)
class NameWords(Words):
    """The name of an entity."""

    def plain(self) -> str:
        """The name, behind "the" where English wants it."""
        return english.name_in_sentence(self.text)

    def bare(self) -> str:
        """The name without an article."""
        return self.text


@dataclass(frozen=True, slots=True)
class ConceptWords(Words):
    """The name of a concept."""

    def many(self) -> str:
        """The plural."""
        return english.plural(self.text)

    def a(self) -> str:
        """Behind "a" or "an"."""
        return english.with_article(self.text)

    def short(self) -> str:
        """The name where nothing stands behind its head noun, so that a name can follow it."""
        if not english.ends_in_head(self.text):
            raise NoWords
        return self.text


@dataclass(frozen=True, slots=True)
class KeyWords(Words):
    """An attribute key or a qualifier key."""

    def a(self) -> str:
        """Behind "a" or "an"."""
        return english.with_article(self.text)

    def single(self) -> str:
        """The key where it is no plural."""
        if english.is_plural(self.text):
            raise NoWords
        return self.text

    def verb(self) -> str:
        """The form of "to be" that agrees with the key."""
        return "are" if english.is_plural(self.text) else "is"

    def past(self) -> str:
        """The same in the past."""
        return "were" if english.is_plural(self.text) else "was"

    def other(self) -> str:
        """A qualifier key that is a noun, other than the point in time (said by "in" or "on")."""
        if self.text == POINT_IN_TIME or _PARTICIPLE_KEY.search(self.text):
            raise NoWords
        return self.text

    def given(self) -> str:
        """Before a qualifier's value: "with the status", "separated from"."""
        return self.text if _PARTICIPLE_KEY.search(self.text) else f"with the {self.other()}"

    def another(self) -> str:
        """The same behind "a" or "an"."""
        return english.with_article(self.other())


POINT_IN_TIME = "point in time"
_PARTICIPLE_KEY = re.compile(r"ed (?:from|as|by|with|in|to)$")


@dataclass(frozen=True, slots=True)
class ValueWords(Words):
    """A constant, with its value."""

    value: Value

    def plain(self) -> str:
        """The value as people write it."""
        return english.say(self.value)

    def at(self) -> str:
        """A point in time behind its preposition: "in 2019", "on 4 July 2019"."""
        if not isinstance(self.value, Year | Date):
            raise NoWords
        return f"{'in' if isinstance(self.value, Year) else 'on'} {self.plain()}"


@dataclass(frozen=True, slots=True)
class OperatorWords(Words):
    """An operator, with the constant that it stands before."""

    value: Value

    def plain(self) -> str:
        """Behind "is": "greater than", "before", "in"; nothing where the bare value will do."""
        if self.text == "=":
            return "in" if isinstance(self.value, Year) else ""
        if self.text == "!=":
            return "not in" if isinstance(self.value, Year) else "not"
        if isinstance(self.value, Quantity):
            return "less than" if self.text == "<" else "greater than"
        return "before" if self.text == "<" else "after"

    def of(self) -> str:
        """Behind "has an area": "of", "greater than", "before", "in"."""
        if self.text == "!=":
            return "other than"
        if self.text == "=" and not isinstance(self.value, Year):
            return "of"
        return self.plain()


_HIGH = re.compile(
    r"rate|elevation|point|density|expectancy|ratio|GDP|income|energy|age\b|coefficient|debt"
    r"|expenditure|electronegativity|temperature|inflation|price|latitude|longitude|number\b(?! of)"
)


@dataclass(frozen=True, slots=True)
class ComparisonWords(Words):
    """greater, less, largest or smallest, with the key that is compared."""

    key: str

    def plain(self) -> str:
        """The word that goes with the key: "larger", "highest"."""
        large = self.text in ("greater", "largest")
        high = english.is_plural(self.key) or _HIGH.search(self.key)
        if high and not self.key.startswith(("highest", "lowest")):
            stem = "high" if large else "low"
        else:
            stem = "large" if large else "small"
        if self.text in ("greater", "less"):
            return stem.removesuffix("e") + "er"
        return stem.removesuffix("e") + "est"


# --- relations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verb:
    """A predicate "X one Y"; "auxiliary X base" asks for Y."""

    one: str
    many: str
    auxiliary: str
    base: str


def present(one: str, many: str) -> Verb:
    """A verb such as "serves"."""
    return Verb(one, many, "does", many)


def past(one: str, base: str) -> Verb:
    """A verb such as "received"."""
    return Verb(one, one, "did", base)


def being(rest: str) -> Verb:
    """ "is" with a participle or an adjective: "located in"."""
    return Verb(f"is {rest}", f"are {rest}", "is", rest)


def noun_of(noun: str, preposition: str) -> Verb:
    """ "is" with a noun: "a member of"."""
    single = f"{english.with_article(noun)} {preposition}"
    return Verb(f"is {single}", f"are {english.plural(noun)} {preposition}", "is", single)


# Relations that are said otherwise than their names read: (noun or None, verb or None).
WORDING: dict[str, tuple[str | None, Verb | None]] = {
    "place of birth": ("place of birth", Verb("was born in", "were born in", "was", "born in")),
    "country of birth": ("country of birth", None),
    "place of death": ("place of death", past("died in", "die in")),
    "award received": (None, past("received", "receive")),
    "shares border with": (None, present("shares a border with", "share a border with")),
    "located in the administrative territorial entity": (None, being("located in")),
    "part of": (None, being("part of")),
    "lyrics by": ("lyricist", None),
    "serves": (None, present("serves", "serve")),
    "signed but not ratified": (
        None,
        past("signed but did not ratify", "sign but not ratify"),
    ),
    "discoverer or inventor": ("discoverer", None),
    "educated at": (None, Verb("was educated at", "were educated at", "was", "educated at")),
    "drafted by": (None, Verb("was drafted by", "were drafted by", "was", "drafted by")),
    "cast member": ("cast member", None),
    "spouse": ("spouse", being("married to")),
    "language used": ("spoken language", None),
}
# What stands between a noun and its owner where that is not "of".
OWNED_BY: dict[str, str] = {
    "ambassador to the United States": "from",
    "ambassador from the United States": "to",
}
_PREPOSITIONS = ("of", "in", "by", "with", "to", "from", "at", "on", "for", "as")
_PARTICIPLES = frozenset(
    ("born", "written", "known", "made", "given", "shown", "held", "led", "built", "worn")
)


@cache
def wording(relation: str) -> tuple[str | None, Verb | None]:
    """A relation's noun ("capital") and verb ("is a member of"), told by its name.

    A name that begins with a participle is said behind "is", one that begins with a verb in -s and
    goes on is that verb, a noun that ends in a preposition is said behind "is a"; else it is a
    noun: "the capital of".
    """
    if relation in WORDING:
        return WORDING[relation]
    words = relation.split(" ")
    first, last = words[0], words[-1]
    if len(words) > 1 and (first in _PARTICIPLES or (first.endswith("ed") and len(first) > 4)):
        return None, being(relation)
    if len(words) > 1 and last in _PREPOSITIONS:
        if re.search(r"[a-z](?<!s)(?<!u)(?<!i)s$", first):
            base = first[:-1] if not re.search(r"(?:ch|sh|x|ss)es$", first) else first[:-2]
            base = f"{base[:-2]}y" if first.endswith("ies") else base
            return None, present(relation, " ".join([base, *words[1:]]))
        return None, noun_of(relation.removesuffix(f" {last}"), last)
    return relation, None


@dataclass(frozen=True, slots=True)
class RelationWords(Words):
    """A relation followed in one direction; the forms describe the far end, given the near one.

    ``several`` tells whether a head often has more than one tail ("an official language of").
    """

    direction: Direction
    several: bool

    def noun(self, near: str) -> str:
        """What is found, as a noun: "the capital of Norway"."""
        noun, _ = wording(self.text)
        if noun is None or self.direction == "backward":
            raise NoWords
        return f"the {noun} {self._of()} {near}"

    def nouns(self, near: str) -> str:
        """The same in the plural: "official languages of Norway"."""
        noun, _ = wording(self.text)
        if noun is None or self.direction == "backward" or not self.several:
            raise NoWords
        return f"{english.plural(noun)} {self._of()} {near}"

    def that(self, near: str) -> str:
        """A relative clause about one: "that shares a border with Norway"."""
        noun, verb = wording(self.text)
        if verb:
            if self.direction == "backward":
                return f"that {verb.one} {near}"
            return f"that {near} {verb.one}"
        if self.direction == "forward":
            return f"that is {self._as_one()} {self._of()} {near}"
        if self.several:
            return f"whose {english.plural(noun or '')} include {near}"
        return f"whose {noun} is {near}"

    def those(self, near: str) -> str:
        """The same about several: "that share a border with Norway"."""
        _, verb = wording(self.text)
        if verb and self.direction == "backward":
            return f"that {verb.many} {near}"
        if verb or self.direction == "backward":
            return self.that(near)
        return f"that are {self._as_many()} {self._of()} {near}"

    def has(self, near: str) -> str:
        """A predicate of one: "shares a border with Norway", "has Oslo as its capital"."""
        noun, verb = wording(self.text)
        if self.direction == "forward":
            if verb:
                raise NoWords
            return f"is {self._as_one()} {self._of()} {near}"
        if verb:
            return f"{verb.one} {near}"
        return (
            f"has {near} as {english.with_article(noun or '') if self.several else f'its {noun}'}"
        )

    def have(self, near: str) -> str:
        """The same of several: "share a border with Norway"."""
        noun, verb = wording(self.text)
        if self.direction == "forward":
            if verb:
                raise NoWords
            return f"are {self._as_many()} {self._of()} {near}"
        if verb:
            return f"{verb.many} {near}"
        owned = english.with_article(noun or "") if self.several else f"their {noun}"
        return f"have {near} as {owned}"

    def does(self, near: str) -> str:
        """As `has`, or where the near end is the subject the question's word order."""
        return self._asked(near) or self.has(near)

    def do(self, near: str) -> str:
        """As `have`, or the question's word order: "does Norway share a border with"."""
        return self._asked(near) or self.have(near)

    def _asked(self, near: str) -> str:
        _, verb = wording(self.text)
        if verb is None or self.direction == "backward":
            return ""
        return f"{verb.auxiliary} {near} {verb.base}"

    def fact(self, head: str, tail: str) -> str:
        """A sentence: "the capital of Norway is Oslo", "Norway shares a border with Sweden"."""
        _, verb = wording(self.text)
        if verb:
            return f"{head} {verb.one} {tail}"
        if self.several:
            return f"{tail} is {self._as_one()} {self._of()} {head}"
        return f"{self._the()} {self._of()} {head} is {tail}"

    def been(self, head: str, tail: str) -> str:
        """The question behind "since when": "has Harald V been the head of state of Norway"."""
        if wording(self.text)[1]:
            raise NoWords
        return f"has {tail} been {self._as_one()} {self._of()} {head}"

    def was(self, head: str, tail: str) -> str:
        """The question behind "when": "was X the head of Y", "did X receive Y"."""
        _, verb = wording(self.text)
        if verb is None:
            return f"was {tail} {self._as_one()} {self._of()} {head}"
        if verb.auxiliary == "does":
            raise NoWords
        return f"{'was' if verb.auxiliary == 'is' else verb.auxiliary} {head} {verb.base} {tail}"

    def _of(self) -> str:
        return OWNED_BY.get(self.text, "of")

    def _the(self) -> str:
        return f"the {wording(self.text)[0]}"

    def _as_one(self) -> str:
        return english.with_article(wording(self.text)[0] or "") if self.several else self._the()

    def _as_many(self) -> str:
        if not self.several:
            raise NoWords  # nobody asks how many capitals a country has
        return english.plural(wording(self.text)[0] or "")


WORDS: dict[Kind, type[Words]] = {
    Kind.NAME: NameWords,
    Kind.CONCEPT: ConceptWords,
    Kind.KEY: KeyWords,
    Kind.QUALIFIER_KEY: KeyWords,
    Kind.RELATION: RelationWords,
    Kind.STRING: ValueWords,
    Kind.QUANTITY: ValueWords,
    Kind.TIME: ValueWords,
    Kind.ANY_VALUE: ValueWords,
    Kind.OPERATOR: OperatorWords,
    Kind.EXTREME: ComparisonWords,
    Kind.COMPARATIVE: ComparisonWords,
    Kind.DIRECTION: Words,
}


class Lexicon:
    """What the wording takes from a knowledge base: which relations have several tails."""

    # A relation is "several" when its heads have on average more tails than this.
    SEVERAL = 1.2

    def __init__(self, kb: KnowledgeBase) -> None:
        table = kb.relational
        self._several: dict[str, bool] = {}
        for number, relation in enumerate(kb.relations):
            heads = table.subject[table.of_predicate(number)]
            self._several[relation] = len(heads) > self.SEVERAL * max(1, len(np.unique(heads)))

    def relation(self, relation: str, direction: Direction) -> RelationWords:
        """The words of a relation that is followed in a direction."""
        return RelationWords(relation, direction, self._several.get(relation, False))
