"""English inflection of names: articles, plurals, numbers and dates as people write them."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TypeAlias

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
    "monarch": "monarchs",
}

# The words for more, most, less and least.
Comparison: TypeAlias = tuple[str, str, str, str]
_OPPOSITES = {
    "large": "small", "high": "low", "great": "small", "long": "short", "tall": "short",
    "old": "young", "heavy": "light", "wide": "narrow", "deep": "shallow", "late": "early",
}  # fmt: skip
_LARGE = (("trillion", 1e12), ("billion", 1e9), ("million", 1e6))
# What stands behind the head of a noun phrase: "member state | of NATO".
_BEHIND_HEAD = re.compile(r" (?:of|in|at|on|to|for|from|by|with|within|per|against)\b")
_SINGULAR_IN_S = re.compile(r"(?:ss|us|is|ics|gas|lens|atlas|series|species)$")
_SPOKEN_CONSONANT = re.compile(r"(?:uni(?!n)|us[ae]|eu|one\b|once\b|ut[ei]|ubi)", re.IGNORECASE)
_SILENT_H = re.compile(r"(?:hour|honou?r|honest|heir)", re.IGNORECASE)


def _head(phrase: str) -> tuple[str, str]:
    """The phrase up to its head noun, and what stands behind that."""
    match = _BEHIND_HEAD.search(phrase)
    at = match.start() if match and match.start() > 0 else len(phrase)
    return phrase[:at], phrase[at:]


def head(phrase: str) -> str:
    """The phrase up to its head noun: "member state" of "member state of NATO"."""
    return _head(phrase)[0]


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


def irregular(noun: str) -> str:
    """The plural of a word whose plural is known to be irregular, else ""."""
    for singular, plural in _IRREGULAR.items():
        if noun.lower() == singular or noun.lower().endswith(f"-{singular}"):
            return noun[: len(noun) - len(singular)] + plural
    return ""


def _plural_word(noun: str) -> str:
    if known := irregular(noun):
        return known
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    if re.search(r"(?:s|x|z|ch|sh)$", noun):
        return noun + "es"
    return noun + "s"


def is_plural(phrase: str) -> bool:
    """Whether the head of a noun phrase looks like a plural: "foreign exchange reserves"."""
    head = _head(phrase)[0].lower()
    return head.endswith("s") and not _SINGULAR_IN_S.search(head)


def is_plural_name(name: str) -> bool:
    """Whether a name is a plural noun such as "garments"; a description never is."""
    return name[:1].islower() and not name.startswith(("the ", "those ")) and is_plural(name)


@cache
def comparison(adjective: str) -> Comparison:
    """The comparative and superlative of an adjective, then those of its opposite.

    >>> comparison("high")
    ('higher', 'highest', 'lower', 'lowest')
    """
    opposite = _OPPOSITES.get(adjective)
    if opposite is None:
        return f"more {adjective}", f"most {adjective}", f"less {adjective}", f"least {adjective}"
    more, less = (_stem(adjective), _stem(opposite))
    return f"{more}er", f"{more}est", f"{less}er", f"{less}est"


def _stem(adjective: str) -> str:
    return re.sub(r"(?<=[^aeiou])y$", "i", adjective.removesuffix("e"))


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


# Names that English puts "the" before: by their first word or the last of their head.
_THE_FIRST = _words(
    "United Republic Convention Protocol Treaty Agreement Democratic Organization Federated"
    " Commission Council Bank Group International National European African Asian Arab Isle Gulf"
    " Church University Kingdom House Strait Nobel World Association Community Legislative"
    " Conference"
)
_THE_LAST = _words(
    "Islands Republic Emirates Union Ocean Sea Organization Organisation Agency Bank Treaty"
    " Convention Protocol Agreement Assembly Senate Parliament Council Party Commission"
    " Association Community League Fund Group Movement Alliance Committee Court Forum"
    " Congress Chamber Diet Legislature Duma Front Coalition Rally Bloc Office Administration"
    " Institute Corporation Initiative Authority Strip Empire party coalition movement"
)
# ... and a few as a whole.
_THE = _words("Netherlands Philippines Bahamas Maldives Seychelles Comoros Gambia Senate Sahara")


def behind_the(name: str) -> str:
    """The name behind "the", unless it has an article or is written in lower case."""
    if name.startswith(("The ", "A ", "An ")) or not name[:1].isupper():
        return name
    return f"the {name}"


@lru_cache(maxsize=100_000)
def name_in_sentence(name: str) -> str:
    """The name as it stands inside a sentence: "the United States", "Norway"."""
    words = name.split(" ")
    if words[0] in ("The", "A", "An") or not name[:1].isupper():
        return name
    ends = _head(name)[0].rpartition(" ")[2] in _THE_LAST or name in _THE
    return f"the {name}" if ends or (len(words) > 1 and words[0] in _THE_FIRST) else name


_CLAUSE = re.compile(r"\b(?:that|who|whose)\b|\(|, the one ")


def clauses(text: str) -> int:
    """How many relative clauses, brackets and appositions a description has."""
    return len(_CLAUSE.findall(text))


def say(value: Value) -> str:
    """A value as people write it: "300,000 square kilometres", "4 July 1921", "1980"."""
    if isinstance(value, Quantity):
        if value.unit == NO_UNIT:
            return grouped(value.number)
        return say_quantity(value, value.unit, plural_unit(value.unit))
    if isinstance(value, Date) and value.year > 0:
        return f"{value.day} {_MONTHS[value.month - 1]} {value.year}"
    return str(value)


def say_quantity(quantity: Quantity, one: str, many: str) -> str:
    """A quantity with its unit in the singular or plural; large round ones as "21.5 million"."""
    number = quantity.number
    return f"{_in_millions(number) or grouped(number)} {one if abs(number) == 1 else many}"


def _in_millions(number: float) -> str:
    """A number of millions or more that has three decimals at most when it is said so, else ""."""
    for word, size in _LARGE:
        if abs(number) >= size:
            thousandths, rest = divmod(number, size / 1000)
            return "" if rest else f"{print_number(thousandths / 1000)} {word}"
    return ""


def capitalised(text: str) -> str:
    """The text with a capital at its beginning, unless its first word is spelt as "iPhone" is."""
    first = text.partition(" ")[0]
    return text if first != first.lower() else text[:1].upper() + text[1:]


def grouped(number: float) -> str:
    """The digits of a number, from 10,000 on with a comma before each group of three.

    Billions are said in words where they are round.
    """
    if abs(number) >= 1e9 and (said := _in_millions(number)):
        return said
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
    text = re.sub(r", *(?=[,?:;)(])", "", " ".join(text.split())).replace("(", " (")
    text = " ".join(text.split())
    return re.sub(r" (?=[,?:;)])", "", text).replace("( ", "(")
