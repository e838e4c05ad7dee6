"""How relations are said, from either end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from generation import english
from generation.lexicon.entries import RelationEntry, Verb, guess_relation, put
from generation.lexicon.words import NoWords, Words

Direction = Literal["forward", "backward"]


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
