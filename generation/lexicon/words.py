"""How names, concepts, keys and qualifiers are said, in the forms that rules ask for.

Each class says one kind of textual argument; a form is a method, and `NoWords` tells that this
word does not have it, so that another wording is tried. A word that is made without an entry says
what its text alone tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from generation import english
from generation.lexicon.entries import ConceptEntry, KeyEntry, QualifierEntry, Verb
from generation.lexicon.guesses import (
    POINT_IN_TIME,
    guess_concept,
    guess_key,
    guess_qualifier,
)


class NoWords(Exception):
    """A word does not have the form that was asked for."""


def owned(owner: str, noun: str) -> str:
    """A noun behind its owner: "Norway's capital".

    Raises NoWords for an owner that is described by clauses, or in several words of lower case:
    "the capital of the country's area" may be that of the country.
    """
    bare = owner.removeprefix("the ")
    if english.clauses(owner) or "," in owner or (" " in bare and not bare[:1].isupper()):
        raise NoWords
    return f"{english.possessive(owner)} {noun}"


@dataclass(frozen=True, slots=True)
class Words:
    """A textual argument and its forms; ``text`` is what the program holds."""

    text: str

    def plain(self) -> str:
        """The word itself."""
        return self.text


# How many words may follow a description in a question of its own: "how many people does ... have".
_FOLLOWING = 1


def filled(question: str, near: str) -> str:
    """A question with what it asks about; raises NoWords where its end would seem part of that.

    "Who represents the country that uses the Euro in Washington": what has clauses comes last.
    """
    if english.clauses(near) and len(question.partition("{}")[2].split()) > _FOLLOWING:
        raise NoWords
    return question.replace("{}", near)


@dataclass(frozen=True, slots=True)
class NameWords(Words):
    """The name of an entity; ``the``: whether "the" goes before it (None: told by the name).

    ``alias``: it is an alias, which stands where a rule asks for what a thing is called.
    ``national`` is what its things are: "Norwegian".
    """

    the: bool | None = None
    alias: bool = False
    national: str = ""

    def plain(self) -> str:
        """The name, behind "the" where English wants it."""
        if self.alias:
            raise NoWords
        return self.called()

    def called(self) -> str:
        """The same, or an alias that means nothing else: "the UK"."""
        if self.the is None:
            return english.name_in_sentence(self.text)
        return english.behind_the(self.text) if self.the else self.text

    def owner(self) -> str:
        """The name before what it has: "Norway's"."""
        return english.possessive(self.called())

    def bare(self) -> str:
        """The name without an article."""
        if self.alias:
            raise NoWords
        return self.text

    def adjective(self) -> str:
        """The adjective before what the thing has: "the Norwegian king"."""
        if not self.national or self.alias:
            raise NoWords
        return self.national


@dataclass(frozen=True, slots=True)
class ConceptWords(Words):
    """The name of a concept; ``main``: whether this is its main wording."""

    entry: ConceptEntry = field(default=None, repr=False)  # type: ignore[assignment]
    main: bool = field(default=True, repr=False)

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

    def kind(self) -> str:
        """The same beside a name that others have too: "the river Churchill", by its plain noun."""
        if not self.main:
            raise NoWords
        return self.short()


class Dated:
    """The forms by what the dates of facts mean: each is nothing, for dates that mean it.

    A wording that fits such dates alone has the form in it: "{key.timed}".
    """

    __slots__ = ()

    @property
    def _dates(self) -> str:
        raise NotImplementedError

    def timed(self) -> str:
        """The fact happened at its date, or held, or is a figure of that time: "in 2015"."""
        return self._meaning("event", "state", "estimate")

    def happens(self) -> str:
        """It happened at its date, or held: "when was that"."""
        return self._meaning("event", "state")

    def estimates(self) -> str:
        """It is a figure of that time: "as of 2015"."""
        return self._meaning("estimate")

    def lists(self) -> str:
        """A source had it in a list of that time: "according to the figures for 2015"."""
        return self._meaning("edition")

    def unclear(self) -> str:
        """Nobody knows what the date says: "(dated 2015)"."""
        return self._meaning("")

    def _meaning(self, *kinds: str) -> str:
        if self._dates not in kinds:
            raise NoWords
        return ""


@dataclass(frozen=True, slots=True)
class KeyWords(Dated, Words):
    """An attribute key."""

    entry: KeyEntry = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.entry is None:
            object.__setattr__(self, "entry", guess_key(self.text))

    def plain(self) -> str:
        """The noun: "area"."""
        if not self.entry.noun:
            raise NoWords
        return self.entry.noun

    def a(self) -> str:
        """Behind "a" or "an", before "of" and a value: never "a number of seats of 5".

        Nor "a date of birth before 1980", where there are words for what happened.
        """
        if not english.ends_in_head(self.plain()) or self._happens:
            raise NoWords
        return self.entry.a

    def long(self) -> str:
        """Behind "a" or "an" where "of" and a value cannot follow: "a value of exports"."""
        if english.ends_in_head(self.entry.noun) or self._happens or self.entry.counting:
            raise NoWords
        return self.entry.a

    def single(self) -> str:
        """The key where it is no plural, nor the time of an event."""
        if self.entry.plural or self._happens:
            raise NoWords
        return self.plain()

    def owned(self, owner: str) -> str:
        """Behind its owner: "Norway's population"; of names and short descriptions."""
        noun = self.plain()
        if not english.ends_in_head(noun):
            raise NoWords
        return owned(owner, noun)

    def keyword(self) -> str:
        """What it is called in a question of keywords: "population"."""
        return self.entry.keyword or self.plain()

    def how(self) -> str:
        """The adjective behind "how": "long", "populous"."""
        if not self.entry.how:
            raise NoWords
        return self.entry.how

    def over(self) -> str:
        """Before a value that is exceeded: "longer than" (see `OperatorWords.over`)."""
        return f"{self._adjective[0]} than"

    def under(self) -> str:
        """Before a value that is not reached: "shorter than", or "less dense than"."""
        return f"{self._adjective[2]} than"

    def verb(self) -> str:
        """The form of "to be" that agrees with the key."""
        return "are" if self.entry.plural else "is"

    def past(self) -> str:
        """The same in the past."""
        return "were" if self.entry.plural else "was"

    def told(self) -> str:
        """The same of one of several facts: past where they are of different times."""
        return self.past() if self.entry.dates else self.verb()

    @property
    def _dates(self) -> str:
        return self.entry.dates

    def unsaid(self) -> str:
        """Nothing, where an adjective says the key ("longer")."""
        return ""

    def counted(self) -> str:
        """What a number of the key counts: "seats"."""
        if not self.entry.counted:
            raise NoWords
        return self.entry.counted

    def has(self) -> str:
        """The verb before "more" and what is counted: "has" seats, "emits" CO2."""
        return self.entry.having.one if self.entry.having else "has"

    def have(self) -> str:
        """The same behind "does": "have", "emit"."""
        return self.entry.having.base if self.entry.having else "have"

    def had(self) -> str:
        """Nothing, where what is counted is had: "the country with the most seats"."""
        if self.entry.having:
            raise NoWords
        return ""

    def event(self) -> str:
        """What happened at a time of the key, of one: "was born"."""
        return self._event.one

    def events(self) -> str:
        """The same of several: "were born"."""
        return self._event.many

    def done(self) -> str:
        """The same behind a noun, without "that": "born" in 1980."""
        if not self._event.short:
            raise NoWords
        return self._event.short

    def says(self) -> str:
        """The verb before a value, of one: "speaks" French, "costs" 5 euros."""
        return self._said.one

    def say(self) -> str:
        """The same of several: "speak"."""
        return self._said.many

    def saying(self) -> str:
        """The same behind a noun, without "that": crime novels "in" hardback."""
        if not self._said.short:
            raise NoWords
        return self._said.short

    def does(self, owner: str) -> str:
        """The same in a question's order: "does X speak"."""
        return f"{self._said.auxiliary} {owner} {self._said.base}"

    def happened(self, owner: str) -> str:
        """The same in a question's order: "was X born"."""
        return f"{self._event.auxiliary} {owner} {self._event.base}"

    def question(self, owner: str) -> str:
        """A question for the key of its own: "when was X born", "how long is X"."""
        if self.entry.question:
            return filled(self.entry.question, owner)
        return f"when {self.happened(owner)}"

    def asked(self, owner: str) -> str:
        """The same, where it is more than "when" and an event: "how long is X"."""
        if not self.entry.question:
            raise NoWords
        return filled(self.entry.question, owner)

    @property
    def _happens(self) -> bool:
        return self.entry.event is not None or self.entry.happening

    @property
    def _adjective(self) -> english.Comparison:
        if self.entry.adjective is None:
            raise NoWords
        return self.entry.adjective

    @property
    def _said(self) -> Verb:
        if self.entry.verb is None:
            raise NoWords
        return self.entry.verb

    @property
    def _event(self) -> Verb:
        if self.entry.event is None:
            raise NoWords
        return self.entry.event


@dataclass(frozen=True, slots=True)
class QualifierWords(Words):
    """A qualifier key; ``relation``: the one whose facts it is asked of, if it is.

    ``asking`` is the question that such facts have for it, "" for none.
    """

    entry: QualifierEntry = field(default=None, repr=False)  # type: ignore[assignment]
    relation: str = ""
    asking: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.entry is None:
            object.__setattr__(self, "entry", guess_qualifier(self.text))

    def detail(self, head: str, tail: str) -> str:
        """A question of its own for the qualifier of a relation's facts: "what share of X is Y"."""
        if not self.asking:
            raise NoWords
        last = "{tail}" if self.asking.index("{tail}") > self.asking.index("{head}") else "{head}"
        first, second = (head, tail) if last == "{tail}" else (tail, head)
        if english.clauses(first) > 1:
            raise NoWords
        said = filled(self.asking.replace(last, "{}"), second)
        return said.replace("{head}", head).replace("{tail}", tail)

    def plain(self) -> str:
        """The key, a noun or not."""
        return self.entry.noun or self._whole(self.text)

    def bracket(self) -> str:
        """Before a value as in KQA Pro's brackets: "status is", "separated from"."""
        return f"{self.entry.noun} is" if self.entry.noun else self._whole(self.entry.given)

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
        if self.text == POINT_IN_TIME or not self.entry.given:
            raise NoWords
        return self.entry.given

    def compared(self) -> str:
        """Before an operator: "starting" before 1980."""
        if not self.entry.compared:
            raise NoWords
        return self.entry.compared

    def question(self) -> str:
        """A question for the qualifier of a fact that was just told: "what is the status"."""
        if not self.entry.question:
            raise NoWords
        return self.entry.question

    def fronted(self) -> str:
        """What asks for the qualifier before a yes/no question of its fact: "in what role"."""
        if not self.entry.fronted:
            raise NoWords
        return self.entry.fronted

    def _whole(self, text: str) -> str:
        """The text, unless this is a further wording that has no more than one form."""
        if not (self.entry.given and self.entry.question):
            raise NoWords
        return text
