"""How a name is said when nobody has told: guessed from its words.

Every knowledge base has words at once by this. A guess that may be wrong says why (``doubt``), so
that `kopl lexicon init` and `check` show it to somebody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from generation import english, verbs
from generation.lexicon.entries import (
    ConceptEntry,
    KeyEntry,
    QualifierEntry,
    RelationEntry,
    UnitEntry,
    Verb,
    read_verb,
)
from generation.lexicon.phrases import Phrase, parse, predicate, readable
from kb import KnowledgeBase

POINT_IN_TIME = "point in time"
START_TIME, END_TIME = "start time", "end time"

Entry = TypeVar("Entry", RelationEntry, ConceptEntry, KeyEntry, QualifierEntry, UnitEntry)
AnyEntry = TypeVar("AnyEntry")


@dataclass(frozen=True, slots=True)
class Guess(Generic[AnyEntry]):
    """An entry that was guessed, and why it may be wrong; "" where it is not doubted."""

    entry: AnyEntry
    doubt: str = ""


# --- relations -------------------------------------------------------------------------------

# Names that many knowledge bases have, said otherwise than they read.
_RELATIONS: dict[str, RelationEntry] = {
    "place of birth": RelationEntry("place of birth", backward=read_verb("was born in")),
    "place of death": RelationEntry("place of death", backward=read_verb("died in")),
    "award received": RelationEntry(backward=read_verb("received")),
    "shares border with": RelationEntry(
        forward=read_verb("shares a border with"), backward=read_verb("shares a border with")
    ),
    "lyrics by": RelationEntry("lyricist"),
    "spouse": RelationEntry("spouse", backward=read_verb("is married to")),
    "instance of": RelationEntry("class"),
    "subclass of": RelationEntry("superclass"),
}


# What is followed by who did it: "the position held by".
_HELD = re.compile(
    r" (?:held|spoken|written|used|received|contested|operated|produced|won|played|sung|taught|sold"
    r"|owned|published|served|studied|attended|practi[cs]ed|signed|made|developed|discovered"
    r"|invented|designed|directed|covered)$"
)


@cache
def relation(name: str) -> Guess[RelationEntry]:
    """The words of a relation, told by its name.

    A participle is said behind "is" or "was", a verb in -s or in the past as it is, a noun that
    ends in a preposition behind "is a"; else it is a noun: "the capital of".
    """
    if known := _RELATIONS.get(name):
        return Guess(_with_plural(known))
    phrase = parse(name)
    entry, doubt = _relation(phrase), phrase.doubt
    if phrase.kind in ("gerund", "preposition"):
        doubt = doubt or "is it said so? Give forward, backward or a noun"
    return Guess(_with_plural(entry), doubt)


def guess_relation(name: str, noun: str = "") -> RelationEntry:
    """The words of a relation: those of a noun, where it is given, else told by its name."""
    return RelationEntry(noun, _several(noun)) if noun else relation(name).entry


def _relation(phrase: Phrase) -> RelationEntry:
    verb, rest = phrase.verb, phrase.rest
    if phrase.kind in ("noun", "having"):
        noun = english.singular(phrase.noun)
        return RelationEntry(noun, of="by" if _HELD.search(noun) else "of")
    if phrase.kind == "open noun":
        backward = read_verb(predicate(phrase.noun, phrase.of))
        if backward is None or phrase.of not in ("of", "within") or backward.auxiliary != "is":
            return RelationEntry(backward=backward)
        noun = backward.base.removesuffix(f" {phrase.of}")
        if noun == phrase.noun:  # part of
            noun = english.with_article(noun)
        noun = f"its {noun[4:]}" if noun.startswith("the ") else noun
        return RelationEntry(forward=read_verb(f"has {{}} as {noun}"), backward=backward)
    if phrase.kind == "passive":
        return _passive(phrase)
    if phrase.kind in ("adjective", "preposition"):
        return RelationEntry(backward=read_verb(f"is {phrase.text}"))
    if verb is None:
        if phrase.kind == "gerund":
            return RelationEntry(phrase.text)
        return RelationEntry(backward=read_verb(phrase.text, phrase.rest))
    past = phrase.kind == "past"
    said = _joined(phrase.lead, verb.past if past else verb.third, rest)
    forward = None
    if verb.transitive and not rest:
        forward = read_verb(_joined("was" if past else "is", phrase.lead, verb.participle, "by"))
    return RelationEntry(
        forward=forward, backward=read_verb(said, _joined(phrase.lead, verb.base, rest))
    )


def _passive(phrase: Phrase) -> RelationEntry:
    """drafted by: "was drafted by"; of a tail "drafted", or "owns", which is so for long."""
    verb, rest = phrase.verb, phrase.rest
    if verb is None:
        return RelationEntry(backward=read_verb(_joined("is", phrase.lead, rest)))
    being = "is" if verb.state or (verb.base == "compose" and rest == "of") else "was"
    forward: Verb | None = None
    if rest == "by":
        active = verb.third if verb.state else verb.past
        forward = read_verb(_joined(phrase.lead, active), _joined(phrase.lead, verb.base))
    return RelationEntry(
        forward=forward, backward=read_verb(_joined(being, phrase.lead, verb.participle, rest))
    )


def _joined(*parts: str) -> str:
    return " ".join(" ".join(parts).split())


def _with_plural(entry: RelationEntry) -> RelationEntry:
    if entry.noun and not entry.nouns:
        return replace(entry, nouns=_several(entry.noun))
    return entry


def _several(noun: str) -> str:
    """The plural of a name that may be one already, as "goods"."""
    return noun if english.is_plural(noun) else english.plural(noun)


# --- concepts, units -------------------------------------------------------------------------


_MASS = re.compile(
    r"(?:[a-z]{4}ism|\b(?:music|software|hardware|literature|poetry|fiction|furniture|equipment"
    r"|information|evidence|machinery|jazz|cricket|football|baseball|basketball|volleyball|research"
    r"|medicine|philosophy|mathematics|physics|chemistry|biology|economics|politics|education))$"
)


def guess_concept(name: str, noun: str = "") -> ConceptEntry:
    """The words of a concept, told by its name."""
    noun = noun or readable(name)[0]
    if _MASS.search(english.head(noun)):  # of "jazz music" there are none to count
        return ConceptEntry(noun, noun, noun, counted=False)
    return ConceptEntry(noun, _several(noun), english.with_article(noun))


def guess_unit(name: str, noun: str = "") -> UnitEntry:
    """The words of a unit, told by its name."""
    return UnitEntry(noun or name, english.plural_unit(noun or name))


# --- keys ------------------------------------------------------------------------------------

_EVENTS = {
    "date of birth": "was born",
    "birthday": "was born",
    "date of death": "died",
    "publication date": "was published",
    "date of publication": "was published",
    "inception": "was founded",
    "time of founding": "was founded",
    "time of discovery": "was discovered",
}
# Keys that name what happened, with the noun for its time.
_TIMES = {
    "born": "date of birth",
    "died": "date of death",
    "founded": "founding date",
    "established": "founding date",
    "published": "publication date",
    "released": "release date",
    "built": "construction date",
    "opened": "opening date",
    "closed": "closing date",
    "created": "creation date",
    "completed": "completion date",
    "finished": "completion date",
    "started": "start date",
    "ended": "end date",
    "discovered": "discovery date",
    "launched": "launch date",
    "married": "wedding date",
    "elected": "election date",
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


@cache
def key(name: str) -> Guess[KeyEntry]:
    """The words of an attribute key, told by its name."""
    if name in _TIMES:
        said = name if name == "died" else f"was {name}"
        noun = _TIMES[name]
        return Guess(replace(_key(noun, noun), event=read_verb(said)), f"is it the {noun}?")
    phrase = parse(name)
    noun, doubt = phrase.noun or phrase.text, phrase.doubt
    if phrase.kind == "open noun":
        noun = phrase.text
        doubt = doubt or "it ends in a preposition; give a noun"
    elif phrase.kind == "passive" and phrase.type:
        noun = phrase.type  # located at street address
    elif phrase.kind not in ("noun", "having"):
        doubt = doubt or f"{name!r} is no noun; give one"
    elif phrase.doubt and phrase.noun and " " in phrase.text:
        noun, doubt = phrase.text, ""  # of keys, nouns with a preposition read well
        doubt = phrase.doubt if verbs.by_third().get(noun.rpartition(" ")[2]) else ""
        doubt = doubt or (phrase.doubt if readable(name)[1] else "")
    return Guess(_key(noun, noun), doubt)


def guess_key(name: str, noun: str = "") -> KeyEntry:
    """The words of an attribute key: those of a noun, where it is given, else told by its name."""
    return _key(noun, name) if noun else key(name).entry


def _key(noun: str, name: str) -> KeyEntry:
    plural = english.is_plural(noun)
    high = (plural or _HIGH.search(noun)) and not noun.startswith(("highest", "lowest"))
    adjective, event = _ADJECTIVES.get(name), _EVENTS.get(name)
    return KeyEntry(
        noun,
        english.with_article(noun),
        plural,
        english.comparison("high" if high else "large"),
        english.comparison(adjective) if adjective else None,
        noun.removeprefix("number of ") if noun.startswith("number of ") else "",
        read_verb(event) if event else None,
        how=adjective or "",
    )


# --- qualifier keys --------------------------------------------------------------------------

_QUALIFIERS = {
    "point in time": QualifierEntry(
        "point in time", "a point in time", "with the point in time", "", "when was that"
    ),
    "start time": QualifierEntry(
        "start time", "a start time", "with the start time", "starting", "when did that start"
    ),
    "end time": QualifierEntry(
        "end time", "an end time", "with the end time", "ending", "when did that end"
    ),
}
_PERSONS = english.word_set("""
spouse husband wife mother father parent child son daughter brother sister sibling relative friend
author writer composer lyricist performer actor actress singer director nominee captain coach mate
head president chairperson king queen monarch mayor minister governor advisor adviser teacher
student pupil partner creator inventor discoverer translator illustrator editor screenwriter
conductor architect painter owner founder leader referee scorer player opponent driver rider pilot
commander
""")
_NO_PERSONS = english.word_set("""
number order water letter river layer power paper parameter identifier header register border
center cover color factor motor sector vector error mirror chapter poster cluster filter meter
diameter perimeter computer character matter chamber charter counter degree fee committee
container corner eraser fever fiber finger folder frontier gender grammar guarantee harbor honor
quarter indicator interior exterior ladder marker master museum network newspaper offer pointer
raster remainder semester shoulder slider spider summer temper theater tower transfer weather
winter flavor humor labor major minor manor odor rumor tumor vapor vigor metaphor anchor monitor
descriptor processor reactor newsletter helicopter printer primer cancer
""")
_WHERE = re.compile(r"(?:in|at|on|next to|near|in or next to)$")
_TIMES_OF = re.compile(r"\b(?:period|time|year|date|century|day)s?$")
_PLACES_OF = re.compile(r"\b(?:place|location|region|country|area)s?$")


@cache
def qualifier(name: str) -> Guess[QualifierEntry]:
    """The words of a qualifier key, told by its name.

    The name "separated from" is no noun: it stands before its value as it is; "replaces" stands
    there as "replacing".
    """
    if known := _QUALIFIERS.get(name):
        return Guess(known)
    phrase = parse(name)
    doubt = phrase.doubt
    if phrase.kind in ("noun", "having"):
        noun = phrase.noun if phrase.kind == "having" else phrase.text
        if phrase.kind == "noun" and phrase.doubt and english.head(name) != name:
            # "with the exception to constraint" reads well.
            doubt = doubt if readable(name)[1] or " this " in name else ""
        return Guess(_noun(noun), doubt)
    given, asked = _qualified(phrase)
    if phrase.kind in ("open noun", "past") and phrase.noun != "part":
        doubt = doubt or "whose is it? Give given and question"
    elif phrase.kind == "preposition" and name == phrase.text and " " not in name:
        doubt = doubt or "it is only a preposition; give given and question"
    return Guess(QualifierEntry("", "", given, "", asked), doubt)


def guess_qualifier(name: str, noun: str = "") -> QualifierEntry:
    """The words of a qualifier key: those of a noun, where it is given, else told by its name."""
    if not noun:
        return qualifier(name).entry
    known = _QUALIFIERS.get(name)
    return (
        replace(_noun(noun), compared=known.compared, question=known.question, fronted="")
        if known
        else (_noun(noun))
    )


def _noun(noun: str) -> QualifierEntry:
    be = "are" if english.is_plural(noun) else "is"
    asked = f"{_asked_for(noun)} {be} the {noun}"
    given, fronted = f"with the {noun}", f"with what {noun}"
    return QualifierEntry(noun, english.with_article(noun), given, "", asked, fronted)


def _asked_for(noun: str) -> str:
    """What asks for it: "who", "what", or both."""
    last = english.singular(english.head(noun)).rpartition(" ")[2].lower()
    if last in _PERSONS:
        return "who"
    doer = re.search(r"[a-z]{2}(?:er|or|ist|ian|ee)$", last) and last not in _NO_PERSONS
    return "who or what" if doer else "what"


def _qualified(phrase: Phrase) -> tuple[str, str]:
    """What stands before the value of a phrase that is no noun, and a question for it."""
    verb, lead, rest, text = phrase.verb, phrase.lead, phrase.rest, phrase.text
    if phrase.kind == "open noun":
        said = predicate(phrase.noun, phrase.of)
        if said.startswith("has "):
            been = "are" if english.is_plural(phrase.noun) else "is"
            return f"with {said[4:]}", f"who or what {been} the {phrase.noun} {phrase.of}"
        return f"as {said[3:]}", f"what is it {said[3:]}"
    if phrase.kind == "being":
        be, _, behind = text.partition(" ")
        if be in ("is", "are", "was", "were"):
            return f"being {behind}", f"what {be} it {behind}"
        return f"having {behind}", f"what does it have {behind}"
    if phrase.kind == "passive":
        said = _joined(lead, verb.participle if verb else "", rest)
        if said.endswith(" as"):
            return said, f"how was it {said[:-3]}"
        if verb and verb.base in ("locate", "situate") and _WHERE.search(rest):
            return said, "where is it located"
        if rest == "at":
            return said, f"where was it {said[:-3]}"
        return said, f"{'who or what' if rest.endswith('by') else 'what'} was it {said}"
    if phrase.kind in ("active", "gerund") and verb:
        return _joined(lead, verb.gerund, rest), f"what does it {_joined(lead, verb.base, rest)}"
    if phrase.kind == "past" and verb:
        return _joined("having", lead, verb.participle, rest), (
            f"what did it {_joined(lead, verb.base, rest)}"
        )
    if phrase.kind == "adjective" and text.endswith((" in", " at")):
        if _TIMES_OF.search(phrase.type):
            return text, f"when is it {text[:-3]}"
        if _PLACES_OF.search(phrase.type):
            return text, f"where is it {text[:-3]}"
    return text, f"{'who or what' if text.endswith('with') else 'what'} is it {text}"


# --- further wordings ------------------------------------------------------------------------


def variant(main: Entry, fields: Mapping[str, Any]) -> Entry:
    """What a further wording begins with, before its fields are put into it.

    Its noun gives plural and article; what it has no words for is left empty, so that the main
    wording or another one says it. A key is compared by the words of the main one, and what is true
    of a name however it is said is as there.
    """
    noun = str(fields.get("noun", ""))
    if isinstance(main, RelationEntry):
        told = guess_relation("", noun) if noun else RelationEntry()
        return replace(told, several=main.several, dates=main.dates, complete=main.complete)
    if isinstance(main, KeyEntry):
        key = guess_key("", noun) if noun else KeyEntry("", "", main.plural, main.comparison)
        return replace(
            key,
            comparison=main.comparison,
            dates=main.dates,
            complete=main.complete,
            identifies=main.identifies,
            compared="" if main.compared == "" else None,
        )
    if isinstance(main, QualifierEntry):
        if not noun:
            return QualifierEntry("", "", "")
        return replace(
            guess_qualifier("", noun),
            given=f"with the {noun}" if main.given == f"with the {main.noun}" else "",
            question="",
            fronted="",
        )
    if isinstance(main, ConceptEntry):
        concept = guess_concept("", noun)
        return replace(main, noun=noun, nouns=concept.nouns, a=concept.a)
    return guess_unit("", str(fields["one"]))


# --- what dates mean -------------------------------------------------------------------------

# Relations that tell what happened, so that their dates say when.
_HAPPENED = re.compile(
    r"\b(?:received|awarded|nominated|drafted|won|winner|discover\w*|invent\w*|founded|elected"
    r"|event|transfer|signed)\b"
)
_LASTING = ("start time", "end time")


class DateGuesser:
    """Guesses what the dates of a knowledge base's facts mean, by names and facts."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._dated, self._lasting = self._having(POINT_IN_TIME), self._having(*_LASTING)

    def guess(self, name: str, *, relational: bool) -> str:
        """What the dates of a relation's or key's facts mean.

        A "state" has a beginning or an end. Numbers of which an entity has one at each time are an
        "estimate", relations whose name tells what happened an "event". "" where it is not known,
        and where no fact has a date.
        """
        kb = self._kb
        table = kb.relational if relational else kb.literals
        number = kb.relation_number(name) if relational else kb.key_number(name)
        if number < 0:
            return ""
        facts = table.of_predicate(number)
        sets = table.qualifiers[facts]
        dated, lasting = self._dated[sets], self._lasting[sets]
        if not (dated | lasting).any():
            return ""
        if lasting.sum() >= dated.sum():
            return "state"
        if relational:
            return "event" if _HAPPENED.search(name) else ""
        facts = facts[dated]
        objects = table.object[facts]
        of_number = (objects >= kb.values.first_quantity) & (objects < kb.values.first_time)
        places = np.stack((table.subject[facts], table.qualifiers[facts]))
        alone = np.unique(places, axis=1).shape[1] == len(facts)
        return "estimate" if alone and of_number.all() else ""

    def _having(self, *names: str) -> npt.NDArray[np.bool_]:
        """For each set of qualifiers whether it has one of these keys."""
        numbers = [self._kb.key_number(one) for one in names if self._kb.key_number(one) >= 0]
        keys, _ = self._kb.qualifier_sets.columns()
        starts = np.asarray(self._kb.arrays["qualifier_starts"])
        sets = np.zeros(len(starts) - 1, bool)
        sets[np.repeat(np.arange(len(sets)), np.diff(starts))[np.isin(keys, numbers)]] = True
        return sets
