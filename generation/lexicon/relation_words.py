"""How relations are said: the forms that rules ask for, in either direction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from generation import english
from generation.lexicon.entries import RelationEntry, Verb, put
from generation.lexicon.guesses import guess_relation
from generation.lexicon.words import Dated, NoWords, Words, filled, owned

Direction = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class RelationWords(Dated, Words):
    """A relation followed in one direction; the forms describe the far end, given the near one.

    ``several`` tells whether a head often has more than one tail ("an official language of"),
    ``questioned`` whether some wording of the relation is a question for the tail.
    """

    direction: Direction
    several: bool
    entry: RelationEntry = field(default=None, repr=False)  # type: ignore[assignment]
    questioned: bool = field(default=False, repr=False)

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

    def then(self, near: str) -> str:
        """As `that`, in the past: "that was represented in Norway"."""
        verb, entry = self._verb, self.entry
        if verb:
            return f"that {verb.past.of_one(near)}"
        if not entry.noun:
            raise NoWords
        if self.direction == "forward":
            return f"that was {self._as_one()} {near}"
        if self.several:
            return f"whose {entry.nouns} included {near}"
        return f"whose {entry.noun} was {near}"

    def then_many(self, near: str) -> str:
        """As `those`, in the past."""
        if self._verb:
            return f"that {self._verb.past.of_many(near)}"
        if self.entry.noun and self.direction == "forward":
            return f"that were {self._as_many()} {near}"
        return self.then(near)

    def had(self, near: str) -> str:
        """As `has`, in the past: "was represented in Norway", "had Oslo as its capital"."""
        forward = self.direction == "forward" and not self._verb
        return self._had(near, f"was {self._as_one()}" if forward else "", "its")

    def had_many(self, near: str) -> str:
        """As `have`, in the past."""
        if self._verb:
            return self._verb.past.of_many(near)
        forward = self.direction == "forward" and self.entry.noun
        return self._had(near, f"were {self._as_many()}" if forward else "", "their")

    def _had(self, near: str, was: str, whose: str) -> str:
        if self._verb:
            return self._verb.past.of_one(near)
        if not self.entry.noun:
            raise NoWords
        if self.direction == "forward":
            return f"{was} {near}"
        return f"had {near} as {self._owned(whose)}"

    def once(self, head: str, tail: str) -> str:
        """As `fact`, in the past: "the capital of Norway was Bergen", "X exported Y"."""
        entry, many = self.entry, english.is_plural_name(tail)
        if entry.backward:
            return f"{head} {entry.backward.past.of_one(tail)}"
        if entry.forward:
            verb = entry.forward.past
            return f"{tail} {(verb.of_many if many else verb.of_one)(head)}"
        if not entry.noun:
            raise NoWords
        if self.several:
            return f"{tail} {f'were {self._as_many()}' if many else f'was {self._as_one()}'} {head}"
        return f"the {entry.noun} {entry.of} {head} was {tail}"

    @property
    def _dates(self) -> str:
        return self.entry.dates

    def does(self, near: str) -> str:
        """As `has`, or where the near end is the subject the question's word order."""
        return self._asked(near) or self.has(near)

    def do(self, near: str) -> str:
        """As `have`, or the question's word order: "does Norway share a border with"."""
        return self._asked(near) or self.have(near)

    def behind(self, near: str) -> str:
        """As `does`, behind "what", where there is no question of its own ("what contains X")."""
        if self.questioned:
            raise NoWords
        return self.does(near)

    def fact(self, head: str, tail: str) -> str:
        """A sentence: "the capital of Norway is Oslo", "Norway shares a border with Sweden"."""
        entry = self.entry
        if entry.backward:
            return f"{head} {entry.backward.of_one(tail)}"
        if entry.forward or self.several or not entry.noun:
            return self.told(head, tail)
        return f"the {entry.noun} {entry.of} {head} is {tail}"

    def stated(self, head: str, tail: str) -> str:
        """As `fact`, before a question, where nothing tells how the relation is asked about."""
        if self.questioned:
            raise NoWords
        return self.fact(head, tail)

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

    def became(self, head: str, tail: str) -> str:
        """The same of the beginning: "did Harald V become the head of state of Norway"."""
        return self._turned("become", head, tail)

    def ceased(self, head: str, tail: str) -> str:
        """The same of the end: "did Harald V stop being the head of state of Norway"."""
        return self._turned("stop being", head, tail)

    def having(self, head: str, tail: str) -> str:
        """The question behind "what role": "does Norway have as an observer of the council"."""
        return self._turned("have as", head, tail, present=True)

    def _turned(self, verb: str, head: str, tail: str, *, present: bool = False) -> str:
        if not self.entry.noun:
            raise NoWords
        many = english.is_plural_name(tail)
        auxiliary = ("do" if many else "does") if present else "did"
        return f"{auxiliary} {tail} {verb} {self._as_many() if many else self._as_one()} {head}"

    def was(self, head: str, tail: str) -> str:
        """The question behind "when": "was X the head of Y", "did X receive Y"."""
        verb = self.entry.backward
        if verb is None:
            if not self.entry.noun:
                raise NoWords
            if english.is_plural_name(tail):
                return f"were {tail} {self._as_many()} {head}"
            return f"was {tail} {self._as_one()} {head}"
        if verb.auxiliary not in ("is", "was", "did"):
            raise NoWords
        auxiliary = "was" if verb.auxiliary == "is" else verb.auxiliary
        return f"{auxiliary} {head} {put(verb.base, tail)}"

    def plainly(self) -> str:
        """The noun alone: "capital"."""
        self._needs_noun()
        return self.entry.noun

    def many(self) -> str:
        """The noun alone, in the plural, where a head has several: "official languages"."""
        self._needs_several()
        return self.entry.nouns

    def listed(self, near: str) -> str:
        """All that are found, as a noun: "the official languages of Norway"."""
        self._needs_several()
        return f"the {self.nouns(near)}"

    def owned(self, near: str) -> str:
        """The noun behind its owner: "Norway's capital"; of names and short descriptions."""
        return self._behind(near, self.plainly())

    def owned_many(self, near: str) -> str:
        """The same of several: "Norway's official languages"."""
        return self._behind(near, self.many())

    def short(self, near: str) -> str:
        """What can stand behind a noun without "that": "born in Norway", "in Africa"."""
        verb = self._verb
        if verb is None or not verb.short:
            raise NoWords
        return put(verb.short, near)

    def keyword(self) -> str:
        """What the tail is called in a question of keywords: "capital"."""
        self._needs_forward()
        if not (said := self.entry.keyword or self.entry.noun):
            raise NoWords
        return said

    def unsaid(self) -> str:
        """Nothing, where a question for a qualifier says the relation ("what share of ... is")."""
        return ""

    def asked(self, near: str) -> str:
        """A question for the tail that is all its own: "who runs Norway"."""
        self._needs_forward()
        return _filled(self.entry.tail_question, near)

    def sought(self, near: str) -> str:
        """A question for the head that is all its own: "what is Oslo the capital of"."""
        if self.direction == "forward":
            raise NoWords
        return _filled(self.entry.head_question, near)

    def tail(self, head: str, tail: str) -> str:
        """A yes/no question that begins with the tail: "is Oslo the capital of Norway"."""
        entry = self.entry
        if entry.noun:
            if english.is_plural_name(tail):
                return f"are {tail} {self._as_many()} {head}"
            return f"is {tail} {self._as_one()} {head}"
        return _whether(entry.forward, tail, head)

    def head(self, head: str, tail: str) -> str:
        """A yes/no question that begins with the head: "does Norway share a border with Sweden"."""
        return _whether(self.entry.backward, head, tail)

    def is_(self, head: str, tail: str) -> str:
        """A yes/no question, by what there is of noun, backward and forward verb."""
        if self.entry.noun or not self.entry.backward:
            return self.tail(head, tail)
        return self.head(head, tail)

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

    def _needs_forward(self) -> None:
        if self.direction == "backward":
            raise NoWords

    def _needs_noun(self) -> None:
        self._needs_forward()
        if not self.entry.noun:
            raise NoWords

    def _needs_several(self) -> None:
        self._needs_noun()
        if not self.several:
            raise NoWords  # nobody asks for the capitals of a country

    def _behind(self, near: str, noun: str) -> str:
        if self.entry.of != "of" or not english.ends_in_head(noun):
            raise NoWords  # "Norway's ambassador"; "Norway's country at the mouth"
        return owned(near, noun)

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


def _filled(question: str, near: str) -> str:
    if not question:
        raise NoWords
    return filled(question, near)


def _whether(verb: Verb | None, subject: str, object: str) -> str:
    if verb is None:
        raise NoWords
    if verb.auxiliary in ("is", "was") and english.is_plural_name(subject):
        auxiliary = {"is": "are", "was": "were"}[verb.auxiliary]
        return f"{auxiliary} {subject} {put(verb.many.partition(' ')[2], object)}"
    plural = {"does": "do", "has": "have"} if english.is_plural_name(subject) else {}
    return f"{plural.get(verb.auxiliary, verb.auxiliary)} {subject} {put(verb.base, object)}"
