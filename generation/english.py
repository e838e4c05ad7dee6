"""English inflection of names: articles, plurals, numbers and dates as people write them."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from kb import Date, Quantity, Value
from kb.values import NO_UNIT, print_number

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_IRREGULAR = {
    "person": "people",
    "man": "men",
    "woman": "women",
    "child": "children",
    "foot": "feet",
    "life": "lives",
    "analysis": "analyses",
    "crisis": "crises",
    "series": "series",
    "species": "species",
    "percent": "percent",
    "hertz": "hertz",
}
# What stands behind the head of a noun phrase: "member state | of NATO".
_BEHIND_HEAD = re.compile(r" (?:of|in|at|on|to|for|from|by|with|within|per|against)\b")
_SINGULAR_IN_S = re.compile(r"(?:ss|us|is|ics|series|species)$")
_SPOKEN_CONSONANT = re.compile(r"(?:uni(?!n)|us[ae]|eu|one\b|once\b|ut[ei]|ubi)", re.IGNORECASE)
_SILENT_H = re.compile(r"(?:hour|honou?r|honest|heir)", re.IGNORECASE)


def _head(phrase: str) -> tuple[str, str]:
    """The phrase up to its head noun, and what stands behind that."""
    match = _BEHIND_HEAD.search(phrase)
    at = match.start() if match and match.start() > 0 else len(phrase)
    return phrase[:at], phrase[at:]


def ends_in_head(phrase: str) -> bool:
    """Whether nothing stands behind the head noun of a phrase."""
    return not _head(phrase)[1]


@cache
def plural(phrase: str) -> str:
    """The plural of a noun phrase.

    >>> plural("member state of NATO")
    'member states of NATO'
    """
    head, rest = _head(phrase)
    before, blank, noun = head.rpartition(" ")
    return before + blank + _plural_word(noun) + rest


def _plural_word(noun: str) -> str:
    for singular, irregular in _IRREGULAR.items():
        if noun.lower() == singular or noun.lower().endswith(f"-{singular}"):
            return noun[: len(noun) - len(singular)] + irregular
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    if re.search(r"(?:s|x|z|ch|sh)$", noun):
        return noun + "es"
    return noun + "s"


def is_plural(phrase: str) -> bool:
    """Whether the head of a noun phrase looks like a plural: "foreign exchange reserves"."""
    head = _head(phrase)[0].lower()
    return head.endswith("s") and not _SINGULAR_IN_S.search(head)


@cache
def with_article(phrase: str) -> str:
    """The phrase behind "a" or "an"; a plural stays without."""
    if is_plural(phrase):
        return phrase
    first = re.split(r"[\s-]", phrase, maxsplit=1)[0]
    if len(first) <= 4 and first.isupper() and first not in ("NATO", "NASA", "UNESCO"):
        vowel = first[0] in "AEFHILMNORSX"  # spelt letter by letter: an ISO code
    elif _SILENT_H.match(first):
        vowel = True
    else:
        vowel = phrase[:1].lower() in ("a", "e", "i", "o", "u")
        vowel = vowel and not _SPOKEN_CONSONANT.match(phrase)
    return f"{'an' if vowel else 'a'} {phrase}"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names that English puts "the" before: by their first word, the last of their head, or as a whole.
_THE_FIRST = _words(
    "United Republic Convention Protocol Treaty Agreement Democratic Organization Federated"
    " Commission Council Bank Group International National European African Asian Arab Isle Gulf"
    " Church University Kingdom House Strait Nobel World Association Community Legislative"
)
_THE_LAST = _words(
    "Islands Republic Emirates Union Ocean Sea Organization Organisation Agency Bank Treaty"
    " Convention Protocol Agreement Assembly Senate Parliament Council Party Commission"
    " Association Community League Fund Group Movement Alliance Committee Court Forum"
)
_THE = _words(
    "Netherlands Philippines Bahamas Maldives Seychelles Comoros Gambia Vatican Senate Sahara"
    " Arctic Antarctic Danube Nile Amazon Rhine Volga"
)


@lru_cache(maxsize=100_000)
def name_in_sentence(name: str) -> str:
    """The name as it stands inside a sentence: "the United States", "Norway"."""
    words = name.split(" ")
    if words[0] in ("The", "A", "An") or not name[:1].isupper():
        return name
    ends = _head(name)[0].rpartition(" ")[2] in _THE_LAST or name in _THE
    return f"the {name}" if ends or (len(words) > 1 and words[0] in _THE_FIRST) else name


def say(value: Value) -> str:
    """A value as people write it: "300,000 square kilometres", "4 July 1921", "1980"."""
    if isinstance(value, Quantity):
        number = grouped(value.number)
        if value.unit == NO_UNIT:
            return number
        return f"{number} {value.unit if abs(value.number) == 1 else plural_unit(value.unit)}"
    if isinstance(value, Date) and value.year > 0:
        return f"{value.day} {_MONTHS[value.month - 1]} {value.year}"
    return str(value)


def grouped(number: float) -> str:
    """The digits of a number, from 10,000 on with a comma before each group of three."""
    text = print_number(number)
    whole, point, fraction = text.partition(".")
    if len(whole.lstrip("-")) > 4:
        whole = f"{int(whole):,}"
    return whole + point + fraction


@cache
def plural_unit(unit: str) -> str:
    """The plural of a unit: "grams per cubic centimetre"; "percent" and "per thousand" stay."""
    return unit if unit.startswith("per ") else plural(unit)


def tidy(text: str) -> str:
    """The text with single blanks and none before a comma, question mark or closing bracket.

    A comma that closes an apposition stays away at the end of a clause.
    """
    text = re.sub(r", *(?=[,?:)])", "", " ".join(text.split()))
    return re.sub(r" (?=[,?):])", "", text).replace("( ", "(")
