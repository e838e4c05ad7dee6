"""English inflection of names: articles, plurals, numbers and dates as people write them.

Plurals and articles follow the library inflect, with a table of what it gets wrong. It is imported
when a word is asked for that no table has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, TypeAlias
from unicodedata import category

from kb import Date, Quantity, Value
from kb.values import NO_UNIT, print_number
from kopl_base.errors import KoplError
from kopl_base.packages import needs

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

# The words for more, most, less and least.
Comparison: TypeAlias = tuple[str, str, str, str]
_OPPOSITES = {
    "large": "small", "high": "low", "great": "small", "long": "short", "tall": "short",
    "old": "young", "heavy": "light", "wide": "narrow", "deep": "shallow", "late": "early",
}  # fmt: skip
_LARGE = (("trillion", 1e12), ("billion", 1e9), ("million", 1e6))


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# --- exceptions ------------------------------------------------------------------------------

# One and several, where inflect has another plural; "hertz" stands for "kilohertz", too.
_IRREGULAR = dict(
    pair.split(":")
    for pair in word_set(
        "person:people man:men woman:women child:children foot:feet tooth:teeth mouse:mice"
        " chairperson:chairpersons"
        " life:lives wolf:wolves knife:knives thief:thieves dwarf:dwarfs hero:heroes epoch:epochs"
        " loch:lochs monarch:monarchs patriarch:patriarchs matriarch:matriarchs eunuch:eunuchs"
        " waltz:waltzes quartz:quartzes kibbutz:kibbutzim blitz:blitzes taxon:taxa fungus:fungi"
        " larva:larvae appendix:appendices matrix:matrices vertex:vertices analysis:analyses"
        " crisis:crises bacterium:bacteria archipelago:archipelagos genus:genera human:humans"
        " movie:movies cookie:cookies zombie:zombies concerto:concertos politburo:politburos"
        " radius:radii terminus:termini nebula:nebulae supernova:supernovae polyhedron:polyhedra"
        " cactus:cacti curriculum:curricula hoof:hooves automaton:automata mine:mines"
    )
)
_SEVERAL = frozenset(_IRREGULAR.values())
# The same for one and for several.
_UNCHANGED = word_set(
    "series species aircraft spacecraft watercraft hovercraft headquarters crossroads means works"
    " percent hertz lux siemens yen yuan baht rand won renminbi offspring sheep deer fish salmon"
    " trout cod swine bison squid corps barracks gallows innings shambles chassis rendezvous"
    " music software information equipment furniture evidence literature poetry machinery footage"
    " livestock personnel merchandise wildlife"
    " Chinese Japanese Vietnamese Portuguese Sudanese Swiss TV media"
)
_BY_END = ("child", "man", "woman", "hertz", "life", "wolf", "knife", "craft", "monarch")
_MANY_BY_END = ("children", "women", "people", "wolves", "knives", "lives")
_NOT_BY_END = word_set("human german roman norman ottoman talisman shaman caiman craft handicraft")
# Words for one that look like several ...
_ONE = word_set(
    "news gas lens atlas canvas christmas bias alias pancreas texas kansas arkansas dallas vegas"
    " chaos ethos cosmos pathos rhinoceros asbestos diabetes rabies measles mumps herpes"
    " molasses debris surplus tennis mars wales athens brussels paris honduras netherlands"
    " philippines maldives bahamas seychelles comoros angeles aires naples barbados cyprus laos"
    " achilles hercules james charles orleans dominoes billiards darts gross"
    " rickets shingles hives summons biceps triceps forceps yes plus thus this its as"
    " specimen regimen omen abdomen stamen semen acumen ramen yemen moines tunis memphis"
    " pythagoras caucasus mess whereas always perhaps"
)
# ... and for several that do not end in -s, or do as if they were one.
_MANY = word_set(
    "people works police cattle alumni taxa strata data phenomena criteria bacteria fungi"
    " algae larvae nuclei genera spectra memoranda errata women men children feet teeth mice geese"
    " oxen lice dice clothes trousers scissors jeans shorts glasses goods earnings proceeds remains"
    " thanks premises lyrics topics critics comics fabrics clinics relics republics characteristics"
    " metrics classics epics mosaics basics demographics graphics antibiotics plastics ceramics"
    " narcotics tactics olympics catholics skeptics fanatics mechanics statistics"
    " electronics pharmaceuticals menus gurus bureaus plateaus skis taxis alibis kiwis safaris"
    " iraqis israelis pakistanis emiratis nepalis bengalis omanis kuwaitis qataris saudis"
    " yemenis azerbaijanis buses gases lenses canvases atlases biases aliases surpluses"
)
# Two plurals: "Nationalists and Conservatives"; "Saint Kitts and Nevis" is none.
_TWO = re.compile(r"[a-z](?:ist|er|ian|al|at|ive|ard|man)s and \w+s$")
_ONE_BY_END = re.compile(r"(?:ss|us|is|ics|'s)$")
# What stands behind the head of a noun phrase: "member state | of NATO", "award | received".
_BEHIND_HEAD = re.compile(
    r" (?:of|in|at|on|to|for|from|by|with|within|without|per|against|over|under|about|between"
    r"|among|before|after|during|since|until|through|via|as|than|near|behind|beyond|across"
    r"|that|which|who|whose|where|when)\b"
    r"| (?!(?:hun|sac|kin|ha)[a-z]*red\b|(?:[a-z]*(?:shed|speed|seed|feed|breed|weed|reed|need|deed"
    r"|bed))\b)(?:[a-z]{2,}ed|held|spoken|written|sung|won|taken|given|known|built|made|sold|worn"
    r"|drawn|shown|seen|done|led|kept|lost|born)(?=$|,| (?:of|in|at|on|to|for|from|by|with|within"
    r"|as|or|and|after)\b)"
    r"| (?:sterling|Celsius|Fahrenheit|emeritus|apparent)$"
    r"|(?<=poet) laureate$|(?<=notary) public$|(?<=sergeant) major$"
    r"|(?<=orney|ernor|etary|ector|rneys|rnors|aries|ctors) general$"
)
_PAIR = re.compile(r"([^\W\d_]+)( or | and |/)([^\W\d_]+)")
_HYPHENED = re.compile(r"(\w+)(-(?:in-law|by|up|on|elect|designate|martial|general|at-arms))")
# Behind "a" and "an": acronyms that are said as a word, and words that inflect takes for others.
_SAID_AS_WORDS = word_set(
    "NATO NASA UNESCO UNICEF FIFA UEFA ASEAN OPEC AIDS NAFTA NASDAQ RAM ROM LAN SIM SWAT MIDI RAID"
    " LASER RADAR SONAR SARS SCUBA LIBOR HUD NORAD FAQ FIPS JPEG BIOS"
)
_SPELT = "AEFHILMNORSX"  # letters that are said with a vowel first
# 8, 11 and 18, whatever thousands follow, and the years of their hundreds.
_ELEVEN = re.compile(r"8\d*|1[18](?:\d\d|(?:\d{3})*)")
_AN = word_set("ubuntu ugric umbrian umayyad uzbek urdu ural uralic urban uppsala")
# No word is longer. Of what is, inflect would take a time that grows with the square of its length.
_LONGEST = 100


@cache
def _engine() -> Any:
    """The library inflect; raises KoplError without it."""
    try:
        with _without_checks():
            inflect = import_module("inflect")
    except ImportError:
        raise KoplError(needs("English plurals", "inflect")) from None
    return inflect.engine()


@contextmanager
def _without_checks() -> Iterator[None]:
    """A time in which typeguard leaves functions as they are.

    For each function whose arguments are to be checked it reads and compiles its module anew: with
    inflect's that takes over a second in all.
    """
    try:
        typeguard: Any = import_module("typeguard")
    except ImportError:
        yield
        return
    checked = typeguard.typechecked
    typeguard.typechecked = lambda function: function
    try:
        yield
    finally:
        typeguard.typechecked = checked


# --- what can be read ------------------------------------------------------------------------

# Control, private and surrogate characters; then those that turn the direction of what follows.
_UNSEEN = frozenset(("Cc", "Co", "Cs", "Zl", "Zp"))
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_LOST = "\ufffd"  # stands for what could not be decoded


@lru_cache(maxsize=100_000)
def can_be_read(text: str) -> bool:
    """Whether a name or value shows something, and nothing that cannot be seen or is broken.

    It has a letter, digit or symbol. Joiners of no width, which some scripts need, may stand in it.

    >>> can_be_read("Oslo"), can_be_read("..."), can_be_read("Os\\ufffdlo")
    (True, False, False)
    """
    kinds = [category(character) for character in text]
    return (
        any(kind[0] in "LNS" for kind in kinds)
        and _UNSEEN.isdisjoint(kinds)
        and _TURNING.isdisjoint(text)
        and _LOST not in text
    )


# --- nouns -----------------------------------------------------------------------------------


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


@lru_cache(maxsize=100_000)
def plural(phrase: str) -> str:
    """The plural of a noun phrase.

    >>> plural("member state of NATO")
    'member states of NATO'
    """
    head, rest = _head(phrase)
    if pair := _PAIR.fullmatch(head):  # "university or college"
        one, between, other = pair.groups()
        return _plural_word(one) + between + _plural_word(other) + rest
    before, blank, noun = head.rpartition(" ")
    return before + blank + _plural_word(noun) + rest


@lru_cache(maxsize=100_000)
def singular(phrase: str) -> str:
    """The singular of a noun phrase in the plural; others, and "goods", stay as they are.

    >>> singular("awards received")
    'award received'
    """
    if not is_plural(phrase):
        return phrase
    head, rest = _head(phrase)
    before, blank, noun = head.rpartition(" ")
    known = {many: one for one, many in _IRREGULAR.items()}.get(noun)
    one = known or _engine().singular_noun(noun)
    return before + blank + one + rest if one and _plural_word(one) == noun else phrase


def irregular(noun: str) -> str:
    """The plural of a word whose plural is known to be irregular, else ""."""
    lower = noun.lower()
    if noun in _UNCHANGED or lower in _UNCHANGED:
        return noun
    if known := _IRREGULAR.get(lower):
        return noun[:1] + known[1:]
    if lower not in _NOT_BY_END:
        for end in _BY_END:
            if lower.endswith(end) and lower != end:
                return noun if end in ("hertz", "craft") else noun[: -len(end)] + _IRREGULAR[end]
    return ""


@cache
def _plural_word(noun: str) -> str:
    if known := irregular(noun):
        return known
    if hyphened := _HYPHENED.fullmatch(noun):  # "mother-in-law"
        return _plural_word(hyphened[1]) + hyphened[2]
    if noun.lower() == noun.upper() and noun.isalpha():
        return noun  # of a script without capitals, as Chinese, which has no such ending
    acronym = noun.isupper() and len(noun) <= 5
    if acronym or not noun[-1:].isalpha() or len(noun) > _LONGEST:
        return noun + "s"  # NGO, km²
    if re.search(r"[^\Waeiou\d]y$", noun) and not noun[:1].isupper():
        return noun[:-1] + "ies"
    return str(_engine().plural_noun(noun))


@lru_cache(maxsize=100_000)
def is_plural(phrase: str) -> bool:
    """Whether the head of a noun phrase is a plural: "foreign exchange reserves".

    What is the same for one and for several ("series") is none.
    """
    noun = _head(phrase)[0].rpartition(" ")[2]
    if hyphened := _HYPHENED.fullmatch(noun):
        noun = hyphened[1]
    lower = noun.lower()
    if lower in _MANY or lower in _SEVERAL:
        return True
    if lower in _ONE or irregular(lower) == lower or not lower.isalpha():
        return False
    if not 4 <= len(lower) <= _LONGEST:
        return False
    if _ONE_BY_END.search(lower):
        return False
    if lower.endswith(_MANY_BY_END):
        return True
    one = _engine().singular_noun(noun)
    return bool(one) and noun in (_plural_word(one), _engine().plural_noun(one))


def is_plural_name(name: str) -> bool:
    """Whether a name is a plural noun such as "garments"; a description never is."""
    return name[:1].islower() and not name.startswith(("the ", "those ")) and is_plural(name)


@lru_cache(maxsize=100_000)
def with_article(phrase: str) -> str:
    """The phrase behind "a" or "an"; a plural stays without."""
    return phrase if is_plural(phrase) else f"{_article(phrase)} {phrase}"


def _article(phrase: str) -> str:
    """ "a" or "an", by the sound that a phrase begins with."""
    first = re.split(r"[\s-]", phrase, maxsplit=1)[0]
    if digits := re.match(r"[\d,]+", first):
        return "an" if _ELEVEN.fullmatch(digits[0].replace(",", "")) else "a"
    if first.lower() in _AN:
        return "an"
    spelt = first[:2].isupper() and first not in _SAID_AS_WORDS
    if len(first) == 1 or (spelt and (len(first) < 5 or not re.search("[AEIOU]", first))):
        return "an" if first[0].upper() in _SPELT else "a"
    if first in _SAID_AS_WORDS and first[0] == "U":
        return "a"  # UNESCO
    return str(_engine().a(first[:_LONGEST].lower())).partition(" ")[0]


# --- comparisons -----------------------------------------------------------------------------


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


# --- names, values, sentences ----------------------------------------------------------------


# Names that English puts "the" before: by their first word or the last of their head.
_THE_FIRST = word_set(
    "United Republic Convention Protocol Treaty Agreement Democratic Organization Federated"
    " Commission Council Bank Group International National European African Asian Arab Isle Gulf"
    " Church University Kingdom House Strait Nobel World Association Community Legislative"
    " Conference"
)
_THE_LAST = word_set(
    "Islands Republic Emirates Union Ocean Sea Organization Organisation Agency Bank Treaty"
    " Convention Protocol Agreement Assembly Senate Parliament Council Party Commission"
    " Association Community League Fund Group Movement Alliance Committee Court Forum"
    " Congress Chamber Diet Legislature Duma Front Coalition Rally Bloc Office Administration"
    " Institute Corporation Initiative Authority Strip Empire party coalition movement"
)
# ... and a few as a whole.
_THE = word_set("Netherlands Philippines Bahamas Maldives Seychelles Comoros Gambia Senate Sahara")


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
    if " and the " in name:
        ends = False  # "South Georgia and the South Sandwich Islands"
    return f"the {name}" if ends or (len(words) > 1 and words[0] in _THE_FIRST) else name


def possessive(name: str) -> str:
    """The name as an owner: "Norway's", "Honduras's", "the Netherlands'".

    Names behind "the" that end in s are taken for plurals, and so are two of them: "Nationalists
    and Conservatives".
    """
    plural = name.endswith("s") and (
        name.startswith(("the ", "The ")) or is_plural_name(name) or _TWO.search(name) is not None
    )
    return f"{name}'" if plural else f"{name}'s"


# "with" begins one where an article or a number follows, or "as": "with Oslo as capital".
_CLAUSE = re.compile(
    r"\b(?:that|who|whose|where|in which)\b|\(|, the one "
    r"|(?<!border )\bwith (?:(?:an?|the|more than|fewer than) |[^,?]{1,40} as\b)"
)


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

    A comma that closes an apposition stays away at the end of a clause, and a full stop behind an
    abbreviation's.
    """
    text = re.sub(r"(?:, *|\.)(?=\.$)", "", text)
    text = re.sub(r", *(?=[,?:;)(])", "", " ".join(text.split())).replace("(", " (")
    text = " ".join(text.split())
    return re.sub(r" (?=[,?:;)])", "", text).replace("( ", "(")
