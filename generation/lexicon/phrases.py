"""What kind of phrase the name of a relation or key is: a noun, a verb, a participle, …

Names are written by people in a hurry: "drafted by", "applies to jurisdiction", "member of sports
team", "birthDate". `parse` tells the kinds apart by their first words and by the verbs that are
known (`generation.verbs`), and says when it is in doubt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from generation import english, verbs
from generation.english import word_set
from generation.verbs import Forms

Kind = Literal[
    "noun",  # capital, award received
    "open noun",  # member of, lyrics by: what it says of the head's end is not said of the tail's
    "having",  # has effect
    "being",  # is a list of
    "active",  # follows, connects with, cites work
    "past",  # died from, founded, had as last meal
    "passive",  # drafted by, located in, named after
    "adjective",  # valid in, different from, together with
    "gerund",  # including, starring
    "preposition",  # of, for work
]

PREPOSITIONS = word_set("""
of in by with to from at on for as into onto over under about after before between within near
against during through via upon behind among inside outside until since than
""")
_RUN = PREPOSITIONS | {"or", "and", "next", "close", "together"}
# Adjectives and adverbs that stand before a preposition.
_ADJECTIVES = word_set("""
adjacent absent active available aware capable close common compatible comparable concurrent
consistent contemporary contrary current dependent different due equal equivalent essential
exclusive external famous full fit free identical indigenous indebted inferior interested inverse
isomorphic loyal native nearby nearest next notable orthogonal parallel popular present primary
proficient prior proportional proximate relative relevant resistant responsible sacred senior
sensitive separate significant similar specific subject subordinate suitable superior symmetrical
synonymous together typical unique valid vulnerable
""")
# Nouns that say what the head is to the tail: the head is the member of a "member of sports team".
_OF_THE_HEAD = re.compile(
    r"(?:^|[ -])(?:member|part|coach|manager|student|pupil|participant|season|product|captain"
    r"|winner|candidate|competitor|contestant|employee|fan|follower|graduate|resident|citizen|supporter"
    r"|founder|owner|commander|leader|player|teacher|subsidiary|branch|instance|subclass|dialect"
    r"|facet|enclave|edition|version|variant|example|symptom)$"
)
# Nouns of which there is one: "is the capital of".
_THE_ONE = word_set("""
capital subject object opposite seat mouth inverse mother father founder author creator inventor
discoverer composer namesake complement origin whole cause remainder end beginning rest
""")
_MASS = word_set("""
music photography cinematography choreography animation artwork art text dialogue lighting costume
design production distribution information evidence software part
""")
# What a name says only to tell of what kind its head or tail is.
_MODALS = ("may", "can", "must", "might", "could", "should", "will")
_LIKELY_ADJECTIVE = re.compile(
    r"[a-z]+(?:ous|able|ible) |(?!alternative )[a-z]+(?:ic|ful|ive) (?:to|with|from|for)\b"
    r"|[a-z]+(?:er|re) than$"
)
_OF_A_KIND = re.compile(
    r"^(?:this |the )?(?:topic|taxon|subject|item|class|property|(?:work|name) or|film|TV show|team"
    r"|sports? (?:team|club)|political party|league|competition|occupation|organi[sz]ation|series"
    r"|person|creative work|concept|entity|location|source|statement|object)\b"
)
_NAMED_BY = re.compile(r"^(?:named|stated|known|credited|listed|recorded|described|depicted) as$")
_LIKELY_GERUNDS = word_set("""
starring featuring including excluding following preceding containing involving using concerning
replacing regarding representing surrounding succeeding depicting covering
""")
_CODED = re.compile(r"[a-z][A-Z]|_|\w/\w|^[PQ]\d+$|[|<>{}\\.]\w")
_LATIN = "\u024f"  # the last Latin letter
_CAMEL = re.compile(r"(?:[a-z]+|[A-Z][a-z]{2,})(?:[A-Z][a-z]+|[A-Z]+(?![a-z])|\d+)*")
_SEEMS_A_VERB = re.compile(r"(?:[iy][sz]es|[a-z]{3}ates|ifies|[a-z]{3}udes)$")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A name as it reads.

    ``text`` is what of it is said; ``type`` what it says of the kind of its value only ("work" of
    "cites work"). Of verbs: ``verb`` its forms, if it is known, ``lead`` an adverb before it,
    ``rest`` what stands behind it. Of nouns: ``noun`` with ``of``, its preposition. ``doubt`` is
    why the kind may be another one.
    """

    kind: Kind
    text: str
    verb: Forms | None = None
    lead: str = ""
    rest: str = ""
    noun: str = ""
    of: str = ""
    type: str = ""
    doubt: str = ""


def readable(name: str) -> tuple[str, bool]:
    """A name in words, without brackets behind it, and whether it had to be taken apart.

    >>> readable("birthDate")
    ('birth date', True)
    """
    text = re.sub(r"(?<=\S) *\([^()]*\)(?= |$)", "", name).strip() or name
    if "://" in text or re.fullmatch(r"[PQ]\d+", text):
        return text, True
    letters = [character for character in text if character.isalpha()]
    if letters and min(letters) > _LATIN:
        return text, True
    if " " in text and "_" not in text:  # "EThOS thesis ID", "director / manager"
        return text, bool(re.search(r"[/|<>{}\\]", text))
    if not _CODED.search(text):
        return text, False
    if len(parts := text.split("/")) == 2 and all(part.isalpha() for part in parts):
        return " or ".join(parts), True
    last = text.rstrip("/#").replace("#", "/").rpartition("/")[2].rpartition(".")[2] or text
    if " " in text:
        last = text
    if "_" not in last and not _CAMEL.fullmatch(last):
        return last, True  # InChI
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_\-.]+", " ", last)).strip()
    words = [word if word.isupper() else word.lower() for word in parted.split()]
    return " ".join(words) or name, True


@cache
def parse(name: str) -> Phrase:
    """What a name is, told by its words."""
    text, coded = readable(name)
    text = re.sub(r"^this \w+ (?=is |has )", "", text)
    found = _parsed(text)
    if coded:
        return replace(found, doubt=CODED)
    return found


def _parsed(text: str) -> Phrase:
    words = text.split(" ")
    lead = ""
    if len(words) > 1 and words[0].endswith("ly") and words[0].islower():
        lead, words = words[0] + " ", words[1:]
    first, rest = words[0], words[1:]
    return (
        _to_be_or_have(text, first, rest)
        or _clause(text, words)
        or _by_first(text, lead, first, rest)
        or _by_noun(text, words)
    )


def _to_be_or_have(text: str, first: str, rest: list[str]) -> Phrase | None:
    behind = " ".join(rest)
    if first in ("has", "have") and rest:
        if rest[0] in verbs.by_participle() and len(rest) > 1:
            if rest[1] in PREPOSITIONS:
                return Phrase("being", text)  # has written for
            return Phrase("being", f"has {rest[0]}", type=" ".join(rest[1:]), doubt=_DOUBTED)
        if rest[-1] in PREPOSITIONS or any(word in PREPOSITIONS for word in rest[1:-1]):
            return Phrase("being", text, doubt=_DOUBTED)
        noun = re.sub(r"^(?:a|an|the) ", "", behind)
        return Phrase("having", text, noun=noun)
    if first == "had" and rest:
        if rest[0] == "as" and len(rest) > 1:
            return Phrase("past", f"had {{}} {behind}", rest=f"have {{}} {behind}")
        return Phrase("past", text, rest=f"have {behind}", doubt=_DOUBTED)
    if first in ("is", "are", "was", "were") and rest:
        if rest[-1] == "of" and len(rest) > 1 and rest[0] not in ("a", "an", "the", "part"):
            noun = " ".join(rest[:-1])
            if not noun.endswith("ed"):
                return Phrase("being", f"{first} {_article(noun)}{noun} of")
        return Phrase("being", text, doubt="" if rest[-1] in PREPOSITIONS else _DOUBTED)
    return None


CODED = "it is no English words; give the words that people use"
_DOUBTED = "is it said so? Give forward, backward or a noun"
_WHICH = "it was taken for a noun ({!r}); is it a verb or a plural?"


def _by_first(text: str, lead: str, first: str, rest: list[str]) -> Phrase | None:
    """A name that begins with a verb, an adjective or a preposition."""
    run, behind = _run(rest)
    alone = not rest
    third, past, done = (
        f().get(first) for f in (verbs.by_third, verbs.by_past, verbs.by_participle)
    )
    if first in PREPOSITIONS or (first == "together" and rest):
        given, kind = _run([first, *rest])
        return Phrase("preposition", f"{given} {kind}".strip() if _open(kind) else given, type=kind)
    if run and (first in _ADJECTIVES or _LIKELY_ADJECTIVE.match(f"{first} {run}")):
        return _complete(Phrase("adjective", f"{lead}{first} {run}"), behind)
    if done and run:
        active = past and past.intransitive and not run.startswith(("by", "as"))
        active = active and not (first == "married" and run == "to")
        if active and (not done.transitive or not done.state):
            return _complete(Phrase("past", text, past, lead, run), behind)
        return _complete(Phrase("passive", text, done, lead, run), behind)
    if past and rest and not run and past.past not in (past.participle, past.base):
        if _open(" ".join(rest)):
            return Phrase("past", text, past, lead, " ".join(rest))  # wrote music for
        return Phrase("past", text, past, lead, type=" ".join(rest), doubt=_DOUBTED)
    if past and run:
        return _complete(Phrase("past", text, past, lead, run), behind)
    if first.endswith("ed") and len(first) > 4 and run:
        return _complete(Phrase("passive", text, None, lead, f"{first} {run}"), behind, _DOUBTED)
    if third and alone:
        if verbs.rather_noun(first):
            return None
        return Phrase("active", text, third, lead)
    if third and run and not (verbs.rather_noun(first) and run == "of"):
        doubt = _WHICH.format(first) if verbs.rather_noun(first) and not third.intransitive else ""
        return _complete(Phrase("active", text, third, lead, run), behind, doubt)
    ambiguous = verbs.rather_noun(first) and not _open(" ".join(rest))
    ambiguous = ambiguous or (bool(rest) and rest[0] in verbs.by_participle())
    if third and rest and (lead or not ambiguous):  # cites work
        if _open(" ".join(rest)):
            return Phrase("active", text, third, lead, " ".join(rest))
        return Phrase("active", text, third, lead, type=" ".join(rest))
    if past and alone:
        return Phrase("past", text, past, lead, doubt="which end did it? Give forward and backward")
    if alone and first in _LIKELY_GERUNDS:
        return Phrase("gerund", text, verbs.by_gerund().get(first), lead)
    if alone and _SEEMS_A_VERB.search(first):
        return Phrase("noun", text, noun=text, doubt=_WHICH.format(first))
    return None


def _complete(phrase: Phrase, behind: str, doubt: str = "") -> Phrase:
    """The phrase with what stands behind its preposition: a kind, or words that are said, too."""
    if not behind:
        return replace(phrase, doubt=doubt)
    if _open(behind):
        text = phrase.text if phrase.kind != "adjective" else f"{phrase.text} {behind}"
        return replace(phrase, text=text, rest=f"{phrase.rest} {behind}".strip(), doubt=doubt)
    return replace(phrase, type=behind, doubt=doubt)


def _open(text: str) -> bool:
    """Whether a name goes on behind its last word: "a work by"."""
    return text.rpartition(" ")[2] in PREPOSITIONS


def _run(words: list[str]) -> tuple[str, str]:
    """The prepositions that words begin with, and the others."""
    count = 0
    while count < len(words) and words[count] in _RUN:
        count += 1
    while count and words[count - 1] in ("or", "and"):
        count -= 1
    return " ".join(words[:count]), " ".join(words[count:])


def _clause(text: str, words: list[str]) -> Phrase | None:
    """A name that says what its subject is: "statement is subject of", "object has role"."""
    if words[0] in ("statement", "subject", "object", "item", "fact") and len(words) > 2:
        found = _parsed(" ".join(words[1:]))
        if found.kind in ("passive", "being", "having", "active"):
            return found
    return None


def _by_noun(text: str, words: list[str]) -> Phrase:
    """A name that begins with a noun."""
    last = words[-1]
    if len(words) > 1 and last in PREPOSITIONS:
        noun, of = " ".join(words[:-1]), last
        while noun.rpartition(" ")[2] in PREPOSITIONS:
            noun, _, before = noun.rpartition(" ")
            of = f"{before} {of}"
        doubt = ""
        if noun.rpartition(" ")[2] in verbs.by_participle() or " " in of:
            doubt = _DOUBTED  # dissertation submitted to
        if of not in ("of", "by") and " " not in noun and english.is_plural(noun):
            doubt = _WHICH.format(text)  # archives at, sails to
        return Phrase("open noun", text, noun=noun, of=of, doubt=doubt)
    for at in range(1, len(words) - 1):
        if words[at] in PREPOSITIONS:
            return _noun_of(text, " ".join(words[:at]), words[at], " ".join(words[at + 1 :]))
    doubt = ""
    alone = len(words) == 1 and last in verbs.by_third() and verbs.rather_noun(last)
    if alone or words[0] in _MODALS:
        doubt = _WHICH.format(text)
    elif len(words) > 1 and verbs.rather_noun(words[0]) and words[0] in verbs.by_third():
        doubt = _WHICH.format(text)  # plays position
    elif len(words) > 1 and last in verbs.by_third() and not verbs.rather_noun(last):
        doubt = _WHICH.format(text)  # territory overlaps
    return Phrase("noun", text, noun=text, doubt=doubt)


def _noun_of(text: str, noun: str, of: str, what: str) -> Phrase:
    """A noun with a preposition and another noun."""
    if _OF_THE_HEAD.search(noun) and of in ("of", "to", "in", "for") and "of the year" not in text:
        sure = noun in ("member", "part", "participant") and of in ("of", "in")
        doubt = "" if sure else f"is the head or the tail the {noun}?"
        return Phrase("open noun", text, noun=noun, of=of, type=what, doubt=doubt)
    if re.match(r"this ", what) or (_OF_A_KIND.match(what) and not what.startswith("the ")):
        return Phrase("noun", text, noun=noun, type=what, doubt=f"is it said {noun!r} only?")
    doubt = ""
    if of != "of" or " or " in what or what.startswith("the "):
        doubt = "does it read well as a noun?"
    return Phrase("noun", text, noun=text, doubt=doubt)


def predicate(noun: str, of: str) -> str:
    """What is said of one that is a noun to another: "is a member of", "has lyrics by"."""
    if of != "of" and english.is_plural(noun):
        return f"has {noun} {of}"
    if of == "by":
        return f"has {'' if noun in _MASS else english.with_article(noun)[: -len(noun)]}{noun} by"
    return f"is {_article(noun)}{noun} {of}"


def _article(noun: str) -> str:
    """The article behind "is", with a blank: "a ", "the ", or none."""
    if noun in _MASS or noun.startswith(("a ", "an ", "the ")):
        return ""
    if noun in _THE_ONE:
        return "the "
    return english.with_article(noun)[: -len(noun)]
