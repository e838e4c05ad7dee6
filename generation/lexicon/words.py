"""How names, concepts, keys, values and comparisons are said, in the forms that rules ask for.

Each class says one kind of textual argument; a form is a method, and `NoWords` tells that this
word does not have it, so that another wording is tried. A word that is made without an entry says
what its text alone tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from generation import english
from generation.lexicon.entries import (
    ConceptEntry,
    KeyEntry,
    QualifierEntry,
    RelationEntry,
    Verb,
    guess_concept,
    guess_key,
    guess_qualifier,
    guess_relation,
    put,
)
from kb import Date, Quantity, Value, Year
from kb.values import NO_UNIT
from kopl.types import Kind

Direction = Literal["forward", "backward"]
POINT_IN_TIME = "point in time"


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
    """The name of an entity; ``the``: whether "the" goes before it (None: told by the name)."""

    the: bool | None = None

    def plain(self) -> str:
        """The name, behind "the" where English wants it."""
        if self.the is None:
            return english.name_in_sentence(self.text)
        return english.behind_the(self.text) if self.the else self.text

    def bare(self) -> str:
        """The name without an article."""
        return self.text


@dataclass(frozen=True, slots=True)
class ConceptWords(Words):
    """The name of a concept."""

    entry: ConceptEntry = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.entry is None:
            object.__setattr__(self, "entry", guess_concept(self.text))

    def plain(self) -> str:
        """The noun: "country"."""
        return self.entry.noun

    def many(self) -> str:
        """The plural."""
        return self.entry.nouns

    def a(self) -> str:
        """Behind "a" or "an"."""
        return self.entry.a

    def short(self) -> str:
        """The name where nothing stands behind its head noun, so that a name can follow it."""
        if not english.ends_in_head(self.entry.noun):
            raise NoWords
        return self.entry.noun


@dataclass(frozen=True, slots=True)
class KeyWords(Words):
    """An attribute key."""

    entry: KeyEntry = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.entry is None:
            object.__setattr__(self, "entry", guess_key(self.text))

    def plain(self) -> str:
        """The noun: "area"."""
        return self.entry.noun

    def a(self) -> str:
        """Behind "a" or "an", before "of" and a value: never "a number of seats of 5"."""
        if not english.ends_in_head(self.entry.noun):
            raise NoWords
        return self.entry.a

    def long(self) -> str:
        """Behind "a" or "an" where "of" and a value cannot follow: "a value of exports"."""
        if english.ends_in_head(self.entry.noun) or self.entry.event:
            raise NoWords
        return self.entry.a

    def single(self) -> str:
        """The key where it is no plural, nor the time of an event."""
        if self.entry.plural or self.entry.event:
            raise NoWords
        return self.entry.noun

    def verb(self) -> str:
        """The form of "to be" that agrees with the key."""
        return "are" if self.entry.plural else "is"

    def past(self) -> str:
        """The same in the past."""
        return "were" if self.entry.plural else "was"

    def unsaid(self) -> str:
        """Nothing, where an adjective says the key ("longer")."""
        return ""

    def counted(self) -> str:
        """What a number of the key counts: "seats"."""
        if not self.entry.counted:
            raise NoWords
        return self.entry.counted

    def event(self) -> str:
        """What happened at a time of the key, of one: "was born"."""
        return self._event.one

    def events(self) -> str:
        """The same of several: "were born"."""
        return self._event.many

    def happened(self, owner: str) -> str:
        """The same in a question's order: "was X born"."""
        return f"{self._event.auxiliary} {owner} {self._event.base}"

    def question(self, owner: str) -> str:
        """A question for the key of its own: "when was X born", "how long is X"."""
        if self.entry.question:
            return self.entry.question.replace("{}", owner)
        return f"when {self.happened(owner)}"

    @property
    def _event(self) -> Verb:
        if self.entry.event is None:
            raise NoWords
        return self.entry.event


@dataclass(frozen=True, slots=True)
class RelationWords(Words):
    """A relation followed in one direction; the forms describe the far end, given the near one.

    ``several`` tells whether a head often has more than one tail ("an official language of").
    """

    direction: Direction
    several: bool
    entry: RelationEntry = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.entry is None:
            object.__setattr__(self, "entry", guess_relation(self.text))

    def noun(self, near: str) -> str:
        """What is found, as a noun: "the capital of Norway"."""
        self._needs_noun()
        return f"the {self.entry.noun} {self.entry.of} {near}"

    def nouns(self, near: str) -> str:
        """The same in the plural: "official languages of Norway"."""
        self._needs_noun()
        return f"{self._as_many()} {near}"

    def whose(self, near: str) -> str:
        """The noun before "of" where several are chosen from: "official language of Norway"."""
        self._needs_noun()
        if not self.several:
            raise NoWords
        return f"{self.entry.noun} {self.entry.of} {near}"

    def that(self, near: str) -> str:
        """A relative clause about one: "that shares a border with Norway"."""
        verb, entry = self._verb, self.entry
        if verb:
            return f"that {verb.of_one(near)}"
        if entry.noun:
            if self.direction == "forward":
                return f"that is {self._as_one()} {near}"
            if self.several:
                return f"whose {entry.nouns} include {near}"
            return f"whose {entry.noun} is {near}"
        if english.clauses(near):
            raise NoWords  # "that the one that is in Norway is a member of"
        return f"that {near} {self._other.one}"

    def those(self, near: str) -> str:
        """The same about several: "that share a border with Norway"."""
        verb = self._verb
        if verb:
            return f"that {verb.of_many(near)}"
        if self.entry.noun and self.direction == "forward":
            return f"that are {self._as_many()} {near}"
        return self.that(near)

    def has(self, near: str) -> str:
        """A predicate of one: "shares a border with Norway", "has Oslo as its capital"."""
        if self._verb:
            return self._verb.of_one(near)
        if not self.entry.noun:
            raise NoWords
        if self.direction == "forward":
            return f"is {self._as_one()} {near}"
        return f"has {near} as {self._owned('its')}"

    def have(self, near: str) -> str:
        """The same of several: "share a border with Norway"."""
        if self._verb:
            return self._verb.of_many(near)
        if not self.entry.noun:
            raise NoWords
        if self.direction == "forward":
            return f"are {self._as_many()} {near}"
        return f"have {near} as {self._owned('their')}"

    def does(self, near: str) -> str:
        """As `has`, or where the near end is the subject the question's word order."""
        return self._asked(near) or self.has(near)

    def do(self, near: str) -> str:
        """As `have`, or the question's word order: "does Norway share a border with"."""
        return self._asked(near) or self.have(near)

    def fact(self, head: str, tail: str) -> str:
        """A sentence: "the capital of Norway is Oslo", "Norway shares a border with Sweden"."""
        entry = self.entry
        if entry.backward:
            return f"{head} {entry.backward.of_one(tail)}"
        if entry.forward or self.several:
            return self.told(head, tail)
        return f"the {entry.noun} {entry.of} {head} is {tail}"

    def told(self, head: str, tail: str) -> str:
        """The same beginning with the tail: "Oslo is the capital of Norway"."""
        entry, many = self.entry, english.is_plural_name(tail)
        if entry.forward:
            return f"{tail} {(entry.forward.of_many if many else entry.forward.of_one)(head)}"
        if not entry.noun:
            raise NoWords
        return f"{tail} {f'are {self._as_many()}' if many else f'is {self._as_one()}'} {head}"

    def been(self, head: str, tail: str) -> str:
        """The question behind "since when": "has Harald V been the head of state of Norway"."""
        if self.entry.backward or not self.entry.noun:
            raise NoWords
        if english.is_plural_name(tail):
            return f"have {tail} been {self._as_many()} {head}"
        return f"has {tail} been {self._as_one()} {head}"

    def was(self, head: str, tail: str) -> str:
        """The question behind "when": "was X the head of Y", "did X receive Y"."""
        verb = self.entry.backward
        if verb is None:
            if not self.entry.noun:
                raise NoWords
            if english.is_plural_name(tail):
                return f"were {tail} {self._as_many()} {head}"
            return f"was {tail} {self._as_one()} {head}"
        if verb.auxiliary == "does":
            raise NoWords
        auxiliary = "was" if verb.auxiliary == "is" else verb.auxiliary
        return f"{auxiliary} {head} {put(verb.base, tail)}"

    @property
    def _verb(self) -> Verb | None:
        """The predicate of the far end."""
        return self.entry.forward if self.direction == "forward" else self.entry.backward

    @property
    def _other(self) -> Verb:
        """The predicate of the near end, which a preposition may end: "is a member of"."""
        found = self.entry.backward if self.direction == "forward" else self.entry.forward
        if found is None or found.around:
            raise NoWords
        return found

    def _asked(self, near: str) -> str:
        """The predicate of the near end in a question's order: "is Norway a member of".

        It is for the tails of relations that say little of a tail itself; nothing elsewhere, and
        where what is near is described by clauses.
        """
        verb, own = self.entry.backward, self.entry.forward
        if self.direction == "backward":
            if own is None or self.entry.noun or self.entry.backward:
                return ""
            verb = own
        elif own is not None and not own.around:
            return ""
        if verb is None or verb.around or english.clauses(near):
            return ""
        return f"{verb.auxiliary} {near} {verb.base}"

    def _needs_noun(self) -> None:
        if not self.entry.noun or self.direction == "backward":
            raise NoWords

    def _as_one(self) -> str:
        noun = self.entry.noun
        return f"{english.with_article(noun) if self.several else f'the {noun}'} {self.entry.of}"

    def _as_many(self) -> str:
        if not self.several:
            raise NoWords  # nobody asks how many capitals a country has
        return f"{self.entry.nouns} {self.entry.of}"

    def _owned(self, whose: str) -> str:
        noun = self.entry.noun
        return english.with_article(noun) if self.several else f"{whose} {noun}"


@dataclass(frozen=True, slots=True)
class QualifierWords(Words):
    """A qualifier key."""

    entry: QualifierEntry = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.entry is None:
            object.__setattr__(self, "entry", guess_qualifier(self.text))

    def plain(self) -> str:
        """The key, a noun or not."""
        return self.entry.noun or self.text

    def bracket(self) -> str:
        """Before a value as in KQA Pro's brackets: "status is", "separated from"."""
        return f"{self.entry.noun} is" if self.entry.noun else self.entry.given

    def noun(self) -> str:
        """The key where it is a noun: "status", not "separated from"."""
        if not self.entry.noun:
            raise NoWords
        return self.entry.noun

    def other(self) -> str:
        """The same but for the point in time, which is said by "in" or "on"."""
        if self.text == POINT_IN_TIME:
            raise NoWords
        return self.noun()

    def another(self) -> str:
        """The same behind "a" or "an"."""
        self.other()
        return self.entry.a

    def given(self) -> str:
        """Before a qualifier's value: "with the status", "separated from"."""
        if self.text == POINT_IN_TIME:
            raise NoWords
        return self.entry.given

    def compared(self) -> str:
        """Before an operator: "starting" before 1980."""
        if not self.entry.compared:
            raise NoWords
        return self.entry.compared

    def question(self) -> str:
        """A question for the qualifier of a fact that was just told: "what is the status"."""
        return self.entry.question


@dataclass(frozen=True, slots=True)
class ValueWords(Words):
    """A constant, with its value; ``said`` is how it is said where that is not plain English."""

    value: Value
    said: str = ""

    def plain(self) -> str:
        """The value as people write it."""
        return self.said or english.say(self.value)

    def at(self) -> str:
        """A point in time behind its preposition: "in 2019", "on 4 July 2019"."""
        if not isinstance(self.value, Year | Date):
            raise NoWords
        return f"{'in' if isinstance(self.value, Year) else 'on'} {self.plain()}"

    def figure(self) -> str:
        """The value where it is a number or a time, so that it can follow a name."""
        if isinstance(self.value, str):
            raise NoWords
        return self.plain()

    def name(self) -> str:
        """A text that may be a name, behind "the" where English wants it."""
        if isinstance(self.value, str):
            return english.name_in_sentence(self.text)
        return self.plain()

    def number(self) -> str:
        """The value where what it counts can follow it in the plural: a number but 1, no unit."""
        if not isinstance(self.value, Quantity) or self.value.unit != NO_UNIT:
            raise NoWords
        if abs(self.value.number) == 1:
            raise NoWords
        return self.plain()


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
        return self._beyond()

    def table(self) -> str:
        """The words of KQA Pro's Table 7: "equal to", "on", "not in"."""
        equal = "equal to"
        if isinstance(self.value, Year | Date):
            equal = "in" if isinstance(self.value, Year) else "on"
        return {"=": equal, "!=": f"not {equal}"}.get(self.text) or self._beyond()

    def bracket(self) -> str:
        """Behind a qualifier key and "is": a value that is equal stands bare (Table 8)."""
        return "" if self.text == "=" else self.table()

    def of(self) -> str:
        """Behind "has an area": "of", "greater than", "before", "in"."""
        if self.text == "!=":
            return "other than"
        if self.text == "=" and not isinstance(self.value, Year):
            return "of"
        return self.plain()

    def time(self) -> str:
        """Behind what happened: "in", "on", "before", "after"."""
        if not isinstance(self.value, Year | Date):
            raise NoWords
        if self.text == "!=":
            year = isinstance(self.value, Year)
            return "in a year other than" if year else "on a day other than"
        return self.table()

    def count(self) -> str:
        """Before a number that counts: "more than", "fewer than"."""
        if self.text == "!=":
            raise NoWords
        return {"<": "fewer than", ">": "more than"}.get(self.text, "")

    def _beyond(self) -> str:
        if isinstance(self.value, Quantity):
            return "less than" if self.text == "<" else "greater than"
        return "before" if self.text == "<" else "after"


@dataclass(frozen=True, slots=True)
class ComparisonWords(Words):
    """greater, less, largest or smallest, with the key that is compared."""

    key: str
    entry: KeyEntry = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.entry is None:
            object.__setattr__(self, "entry", guess_key(self.key))

    def plain(self) -> str:
        """The word that goes with the key: "larger", "highest"."""
        return self._of(self.entry.comparison)

    def table(self) -> str:
        """The words of KQA Pro's Table 8: "larger", "largest"."""
        return self._of(english.comparison("large"))

    def alone(self) -> str:
        """The adjective that says the key too: "longer"; a superlative behind "the"."""
        if self.entry.adjective is None:
            raise NoWords
        word = self._of(self.entry.adjective)
        return word if self.text in ("greater", "less") else f"the {word}"

    def _of(self, comparison: english.Comparison) -> str:
        return comparison[("greater", "largest", "less", "smallest").index(self.text)]


# The class, and so the forms, of each kind of textual argument.
WORDS: dict[Kind, type[Words]] = {
    Kind.NAME: NameWords,
    Kind.CONCEPT: ConceptWords,
    Kind.KEY: KeyWords,
    Kind.QUALIFIER_KEY: QualifierWords,
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
