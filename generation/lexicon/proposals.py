"""Wordings that somebody proposes for a name, each held to what a file of annotations is held to.

A proposal is a line "field: words". It is kept when it can be read as an entry of the file, when
its words are of the kind that the field wants, when no other wording says the same, and when every
sentence that is made of it and of a fact reads as one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generation import english, verbs
from generation.lexicon import Lexicon, NoWords, RelationWords
from generation.lexicon.annotations import (
    CONCEPTS,
    FIELDS,
    KEYS,
    QUALIFIERS,
    RELATIONS,
    names_of,
    parse_annotations,
)
from generation.lexicon.draft import scalar
from generation.lexicon.entries import RelationEntry, Verb
from generation.lexicon.guesses import variant
from generation.lexicon.phrases import PREPOSITIONS
from generation.lexicon.words import ConceptWords, KeyWords, QualifierWords, Words
from kb import Quantity
from kopl_base.errors import ReadError

# The fields that may be proposed; the others follow from them or are true of the name itself.
PROPOSED = {
    RELATIONS: ("noun", "forward", "backward", "tail question", "head question", "keyword"),
    KEYS: ("noun", "adjective", "question", "keyword"),
    QUALIFIERS: ("noun", "given", "question"),
    CONCEPTS: ("noun",),
}
_QUESTIONS = ("question", "tail question", "head question")
_LINE = re.compile(r"[\s*`-]*(?:\d+[.)]\s*)?\**([A-Za-z][A-Za-z_ ]*?)\**\s*[:=]\s*(.*)")
_QUOTES = "\"'“”‘’`*"
_NOTHING = frozenset(("", "none", "n/a", "na", "-", "nothing", "(none)"))
_WORDS = re.compile(r"[A-Za-zÀ-ɏ'’.-]+(?:/[A-Za-z]+)?|\{\}|,")
_ASKING = re.compile(r"(?:(?:in|on|at|to|from|of|by|for|with|since|until|under|after) )?"
                     r"(?:who|whom|whose|what|which|where|when|why|how)\b")  # fmt: skip
# "when was {}", "which is taller, {}"
_UNFINISHED = re.compile(r"^\w+ (?:is|are|was|were|do|does|did|has|have) \{\}$|, \{\}$|, or\b")
# A question for the detail by another noun: "what was the rank".
_WHAT_IS_IT = re.compile(r"(?:who or )?(?:what|who|which) (?:is|was|are|were) the \w+(?: \w+)?")
_TWICE = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)
_CLASHING = re.compile(
    r"\b(?:(?:a|an|the) (?:a|an|the|of|is|are|was|by)|(?:of|in|by|to|with|for|from|at) (?:of|by)"
    r"|(?:is|was) (?:is|was|has))\b"
)
_LONGEST = {"noun": 6, "adjective": 1, "keyword": 5, "given": 6, "forward": 7, "backward": 7}
_BEING = frozenset(["is", "was", "has", "had"])


class Poor(Exception):
    """Why a proposal is dropped, in few words that can be counted."""


@dataclass
class Kept:
    """What is kept of the proposals for one name: the fields of each; ``reasons`` of the others."""

    wordings: list[dict[str, Any]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)


def proposed(section: str, reply: str) -> Iterator[tuple[str, str]]:
    """The lines "field: words" of a reply, in its order; other lines are passed over."""
    for line in reply.splitlines():
        if (match := _LINE.fullmatch(line.strip())) is None:
            continue
        name = " ".join(match[1].lower().replace("_", " ").split())
        text = match[2].strip().strip(_QUOTES).strip()
        if name in FIELDS[section] and text.lower() not in _NOTHING:
            yield name, text


class Sieve:
    """Sifts what is proposed for the names of a lexicon's knowledge base.

    ``examples`` are replies that were shown to whoever proposes, by section and name: what repeats
    one of another name is dropped.
    """

    def __init__(
        self, lexicon: Lexicon, examples: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self._lexicon = lexicon
        self._taken: dict[str, Counter[str]] = {}
        self._shown = {
            section: (name, {(place, text.lower()) for place, text in proposed(section, reply)})
            for section, (name, reply) in (examples or {}).items()
        }

    def sift(self, section: str, name: str, facts: list[tuple[str, str]], reply: str) -> Kept:
        """What is kept of a reply, by the facts that the name stands in (its ends, or one)."""
        kept = Kept()
        main = _entry(self._lexicon, section, name)
        seen = _said(main)
        for place, text in proposed(section, reply):
            try:
                if place not in PROPOSED[section]:
                    raise Poor("no field that can be proposed")
                self._of_this_name(section, name, place, text)
                fields = _read(section, name, place, _tidy(place, text, facts))
                entry = replace(variant(main, fields), **fields)
                _right_end(main, fields)
                said = _said(entry) - seen
                if not said:
                    raise Poor("said already")
                _about_all_of_it(section, place, main, fields)
                if place != "adjective" and said & self._of_others(section).keys():
                    raise Poor("said of another name")
                _sentences(self._lexicon, section, name, entry, facts)
            except Poor as poor:
                kept.reasons[str(poor)] += 1
                continue
            seen |= said
            kept.wordings.append(fields)
        return kept

    def _of_this_name(self, section: str, name: str, place: str, text: str) -> None:
        """Raise Poor for what repeats the example, and for adjectives of what is no number."""
        shown = self._shown.get(section)
        if shown and name != shown[0] and (place, text.lower()) in shown[1]:
            raise Poor("said of the example")
        if place == "adjective":
            kb = self._lexicon.kb
            facts = kb.literals.of_predicate(kb.key_number(name))
            if not len(facts) or not isinstance(
                kb.values[int(kb.literals.object[int(facts[0])])], Quantity
            ):
                raise Poor("an adjective of no number")

    def _of_others(self, section: str) -> Counter[str]:
        """What is said of the names of a section now; what was said of the own one counts, too."""
        found = self._taken.get(section)
        if found is None:
            entries = (
                _entry(self._lexicon, section, name) for name in names_of(self._lexicon.kb, section)
            )
            found = Counter(text for entry in entries for text in _said(entry))
            self._taken[section] = found
        return found


def _entry(lexicon: Lexicon, section: str, name: str) -> Any:
    if section == RELATIONS:
        return lexicon.relation(name, "forward").entry
    if section == KEYS:
        return lexicon.key(name).entry
    if section == QUALIFIERS:
        return lexicon.qualifier(name).entry
    return lexicon.concept(name).entry


def _tidy(place: str, text: str, facts: list[tuple[str, str]]) -> str:
    """The words of a proposal as the file has them; raises Poor for what is none."""
    text = " ".join(text.split()).rstrip(".?!,; ")
    if place not in _QUESTIONS:
        text = re.sub(r"^(?:the|an?) (?=\w)", "", text) if place != "given" else text
        text = text.removesuffix(" {}") if place in ("forward", "backward", "given") else text
    if text[:1].isupper() and text[1:2].islower():
        text = text[:1].lower() + text[1:]
    if not text or not _WORDS.fullmatch(text.split()[0]):
        raise Poor("no words")
    if any(_WORDS.fullmatch(word) is None for word in re.findall(r"[^\s,]+|,", text)):
        raise Poor("signs that are no words")
    if len(text.split()) > _LONGEST.get(place, 14):
        raise Poor("too long")
    if _TWICE.search(text):
        raise Poor("a word twice")
    if re.search(r"\b(?:first|second|head|tail|thing|value)\b$", text) and len(text.split()) > 1:
        raise Poor("words of the prompt")
    if place not in _QUESTIONS and re.search(r" [A-Z][a-z]", text):
        raise Poor("a name")
    for end in {end for fact in facts for end in fact if len(end) > 2}:
        if re.search(rf"(?<!\w){re.escape(end)}(?!\w)", text, re.IGNORECASE):
            raise Poor("a name of a fact")
    _of_its_kind(place, text)
    return text


def _of_its_kind(place: str, text: str) -> None:
    """Raise Poor unless words are what a field wants: a noun, a verb, a question."""
    words = text.split()
    first, last = words[0], words[-1]
    if place in _QUESTIONS:
        if not _ASKING.match(text) or len(words) < 3:
            raise Poor("no question")
        if _UNFINISHED.search(text):
            raise Poor("an unfinished question")
    elif place in ("forward", "backward"):
        verb = words[1] if first.endswith("ly") and len(words) > 1 else first
        known = verb in _BEING or verb in verbs.by_third() or verb in verbs.by_past()
        if not known:
            raise Poor("no verb")
        if verb in verbs.by_participle() and last == "by":
            raise Poor("no verb")  # "preceded by" lacks its "was"
        if len(words) == 1 and verb in _BEING:
            raise Poor("no verb")
    elif place == "given":
        known = first in PREPOSITIONS or first in verbs.by_participle()
        known = known or first in verbs.by_gerund()
        if not known and last not in PREPOSITIONS:
            raise Poor("nothing that stands before a value")
    elif place in ("noun", "keyword"):
        if "{}" in text or last in PREPOSITIONS or first in PREPOSITIONS:
            raise Poor("no noun")
        if first in _BEING or _ASKING.match(text):
            raise Poor("no noun")
        alone = first in verbs.by_third() and not verbs.rather_noun(first)
        if alone or (first in verbs.by_participle() and len(words) == 1):
            raise Poor("no noun")
    elif "{}" in text:
        raise Poor("no adjective")


def _read(section: str, name: str, place: str, text: str) -> dict[str, Any]:
    """The fields of a proposal as the reader of annotations has them; raises Poor."""
    if section == RELATIONS and place == "noun":
        text = english.singular(text)
    wording = f"{{{place}: {scalar(text, flow=True)}}}"
    source = f"{section}:\n  {scalar(name)}:\n    also: [{wording}]\n"
    try:
        given = parse_annotations(source).of(section)[name]
    except ReadError as error:
        raise Poor(_short(str(error))) from None
    return dict(given.also[0])


def _short(message: str) -> str:
    """The reason of a reader's error, without what differs from name to name."""
    if "write {}" in message:
        return "no {} or several"
    if "base form" in message:
        return "a verb whose base form is not known"
    return "not readable as an entry"


def _said(entry: Any) -> set[str]:
    """What an entry says, for telling what was said already."""
    found = set()
    for attribute in entry.__dataclass_fields__:
        value = getattr(entry, attribute)
        if isinstance(value, Verb):
            found.add(f"{attribute} {value.one}")
        elif isinstance(value, tuple) and attribute == "adjective":
            found.add(f"{attribute} {value[0]}")
        elif value and isinstance(value, str) and attribute in (
            "noun", "tail_question", "head_question", "question", "given", "keyword",
        ):  # fmt: skip
            # What is typed into a search engine is the noun, where it is not said.
            kind = "noun" if attribute == "keyword" else attribute
            found.add(f"{kind} {value.lower()}")
    return found


def _about_all_of_it(section: str, place: str, main: Any, fields: Mapping[str, Any]) -> None:
    """Raise Poor for "date" in place of "date of birth", and for questions of some other thing."""
    noun = main.noun
    if place in ("noun", "keyword") and english.head(noun) != noun:
        if fields.get(place) == english.head(noun):
            raise Poor("half of what it is called")
    elif section == QUALIFIERS and place == "question":
        known = {"it", "that", "this", *noun.split(), *main.given.split()}
        known -= {"the", "a", "an", "with", "of"}
        asked = fields[place]
        if not known & set(asked.split()) and not _WHAT_IS_IT.fullmatch(asked):
            raise Poor("a question of some other thing")


def _right_end(main: Any, fields: Mapping[str, Any]) -> None:
    """Raise Poor for a verb that the entry has for the other end of the relation."""
    if not isinstance(main, RelationEntry):
        return
    for own, other in (("forward", "backward"), ("backward", "forward")):
        verb = fields.get(own)
        if verb is None:
            continue
        theirs, ours = (_voice(getattr(main, end)) for end in (other, own))
        if theirs and _voice(verb) == theirs and ours != theirs:
            raise Poor("said of the other end")


def _voice(verb: Verb | None) -> tuple[str, bool] | None:
    """What tells one verb from another: its base form, and whether it is a passive."""
    if verb is None:
        return None
    words = verb.one.split()
    if words[0] in ("is", "was") and len(words) > 1:
        done = verbs.by_participle().get(words[1])
        return (done.base, True) if done else (verb.base, False)
    done = verbs.by_third().get(words[0]) or verbs.by_past().get(words[0])
    return (done.base, False) if done else (verb.base, False)


# --- sentences -------------------------------------------------------------------------------


def _sentences(
    lexicon: Lexicon, section: str, name: str, entry: Any, facts: list[tuple[str, str]]
) -> None:
    """Raise Poor where a sentence that is made of an entry and a fact does not read as one."""
    one, other = facts[0] if facts else ("X", "Y")
    one, other = lexicon.name(one).plain(), lexicon.name(other).plain()
    count = 0
    for text, ends in _made(lexicon, section, name, entry, one, other):
        count += 1
        bare = text
        for end in ends:
            if bare.count(end) < 1:
                raise Poor("a sentence without its names")
            bare = bare.replace(end, "…", 1)
        if "{" in bare or "}" in bare or _TWICE.search(bare) or "  " in bare:
            raise Poor("a sentence that does not read well")
        if _CLASHING.search(bare):
            raise Poor("a sentence that does not read well")
    if not count:
        raise Poor("no sentence can be made of it")


def _made(
    lexicon: Lexicon, section: str, name: str, entry: Any, one: str, other: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The sentences of an entry, with the names that each must have."""
    if section == RELATIONS:
        several = lexicon.relation(name, "forward").several
        forward = RelationWords(name, "forward", several, entry)
        backward = RelationWords(name, "backward", several, entry)
        for words, near in ((forward, one), (backward, other)):
            for form in ("noun", "nouns", "that", "those", "does", "do", "asked", "sought"):
                yield from _form(words, form, near)
        for form in ("fact", "told", "is_"):
            yield from _form(forward, form, one, other)
        yield from _form(forward, "keyword")
        return
    for form, takes in _FORMS[section]:
        yield from _form(_WORDS_OF[section](name, entry), form, *((one,) * takes))


_WORDS_OF: dict[str, Callable[[str, Any], Words]] = {
    KEYS: KeyWords,
    QUALIFIERS: QualifierWords,
    CONCEPTS: ConceptWords,
}
_FORMS = {
    KEYS: (("plain", 0), ("a", 0), ("question", 1), ("keyword", 0), ("over", 0)),
    QUALIFIERS: (("noun", 0), ("given", 0), ("question", 0)),
    CONCEPTS: (("plain", 0), ("many", 0), ("a", 0)),
}


def _form(words: Words, form: str, *texts: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        yield getattr(words, form)(*texts), texts
    except NoWords:
        return
