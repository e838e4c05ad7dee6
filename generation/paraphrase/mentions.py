"""The names and values of a program, and whether a text still mentions every one of them.

Names of entities and constants must stand in a paraphrase, in a spelling that people use;
relations, keys, concepts and the words of a comparison are free to be put another way.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from generation.english import plural, plural_unit, say
from kb import Date, Quantity, Value, Year
from kb.values import NO_UNIT, ValueReadError, print_number, read_quantity, read_time, readings
from kopl.program import Call, post_order
from kopl.types import Kind

# The kinds of arguments that must stand; an untyped constant may be written in any of its readings.
STANDING = frozenset({Kind.NAME, Kind.STRING, Kind.QUANTITY, Kind.TIME, Kind.ANY_VALUE})

_QUOTES = str.maketrans(
    {"‘": "'", "’": "'", "‛": "'", "ʼ": "'", "`": "'", "´": "'", "“": '"', "”": '"', "„": '"'}
    | dict.fromkeys("‐‑‒–—―−", "-")
)
_SCALES = ((3, "thousand"), (6, "million"), (9, "billion"), (12, "trillion"))
_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
)  # fmt: skip
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip

# Words that stand for a unit anywhere in the question, and symbols that stand beside the number.
# Written as `plain` leaves them.
_WORDS = {
    "united states dollar": ("dollar", "us dollar", "u.s. dollar", "american dollar"),
    "percent": ("per cent", "percentage"),
    "pound sterling": ("pound", "british pound"),
}
_SYMBOLS = {
    "metre": ("m",), "kilometre": ("km",), "centimetre": ("cm",), "millimetre": ("mm",),
    "picometre": ("pm",), "square metre": ("m2", "m^2"),
    "square kilometre": ("km2", "km^2", "sq km", "sq. km"),
    "gram": ("g",), "kilogram": ("kg",), "tonne": ("t",), "second": ("s", "sec"),
    "minute": ("min",), "hour": ("h",), "percent": ("%",), "kelvin": ("k",), "degree": ("°",),
    "degree celsius": ("°c", "° c"), "electronvolt": ("ev",), "kilowatt-hour": ("kwh",),
    "dalton": ("da", "u"), "gram per cubic centimetre": ("g/cm3", "g/cm^3"), "foot": ("ft",),
    "mile": ("mi",), "united states dollar": ("$", "us$", "usd"), "euro": ("€", "eur"),
    "pound sterling": ("£", "gbp"), "per thousand": ("‰",),
}  # fmt: skip
# Units that people may put in another's place, besides those above.
_UNITS = (
    "year", "month", "week", "day", "decade", "inch", "yard", "acre", "hectare", "joule", "calorie",
    "watt", "litre", "gallon", "pound", "ounce", "yen", "rupee", "fahrenheit",
)  # fmt: skip


def plain(text: str) -> str:
    """The text as it is compared: without case, kinds of quotes, dashes and blanks."""
    text = unicodedata.normalize("NFKC", text).casefold().translate(_QUOTES)
    return " ".join(text.split())


# Private characters stand for mentions: no text that people write has them.
_FIRST_MARK = 0xF0000
_MARKED = re.compile("[\U000f0000-\U000ffffd]")


@dataclass(frozen=True)
class Mention:
    """A name or value that must stand: as the program writes it, and how it is found.

    ``pattern`` is for text that `plain` gave, between blanks. Where the unit of a number may stand
    apart from it, ``unit`` finds that, and ``wrong`` the number with another unit at its side.
    """

    text: str
    pattern: re.Pattern[str]
    unit: re.Pattern[str] | None = None
    wrong: re.Pattern[str] | None = None

    def has_unit(self, text: str) -> bool:
        """Whether the unit stands in a text that has the number, where there is a unit."""
        if self.unit is None:
            return True
        return bool(self.unit.search(text)) and not (self.wrong and self.wrong.search(text))


def mentions(
    program: Call, aliases: Callable[[str], Iterable[str]] = lambda name: ()
) -> tuple[Mention, ...]:
    """What must stand in every wording of a program, in its order, each once.

    ``aliases`` gives what else a name may be called.
    """
    found: dict[str, Mention] = {}
    for call in post_order(program):
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
            if kind in STANDING:
                others = tuple(aliases(text)) if kind is Kind.NAME else ()
                found.setdefault(plain(text), _mention(kind, text, others))
    return tuple(found.values())


def spoken(program: Call, question: str) -> tuple[str, ...]:
    """The same for people: each as the question says it, else as `generation.english.say` does."""
    asked = plain(question)
    found: dict[str, str] = {}
    for call in post_order(program):
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
            if kind in STANDING:
                said = [one for value in _values(kind, text) for one in _said(value)]
                there = (one for one in said if plain(one) in asked)
                found.setdefault(plain(text), max(there, key=len, default=said[0]))
    return tuple(found.values())


def _said(value: Value) -> list[str]:
    """A value as `say` has it, and quantities in figures, too."""
    said = [say(value)]
    if isinstance(value, Quantity):
        digits = print_number(value.number)
        unit = "" if value.unit == NO_UNIT else f" {plural_unit(value.unit)}"
        said += [f"{figures}{unit}" for figures in (*_grouped(digits), digits)]
    return said


def missing(needed: Iterable[Mention], text: str) -> list[str]:
    """Those that do not stand in the text, as their program writes them.

    What was found for a longer one does not count for a shorter one: "New York" is no mention of
    "York", nor "4 July 1921" one of the year 1921.
    """
    needed = list(needed)
    standing, _ = _search(needed, text)
    return [mention.text for mention in needed if mention not in standing]


def wording(needed: Iterable[Mention], text: str) -> str:
    """The text as `plain` has it, with a mark in place of each mention: what is free to change."""
    return _MARKED.sub("\0", " ".join(_search(needed, text)[1].split()))


def marked(needed: Sequence[Mention], text: str) -> str:
    """The same with `mark` of its place among ``needed`` for each mention that stands there."""
    return " ".join(_search(needed, text)[1].split())


def mark(place: int) -> str:
    """The character that `marked` puts for the mention of a place."""
    return chr(_FIRST_MARK + place)


def _search(needed: Iterable[Mention], text: str) -> tuple[list[Mention], str]:
    """Those found, and the text with marks in their places."""
    rest = whole = f" {plain(text)} "
    left = dict(enumerate(needed))
    standing: list[Mention] = []
    while True:
        found = [
            (len(match[0]), -place)
            for place, m in left.items()
            if (match := _longest(m.pattern, rest))
        ]
        if not found:
            return standing, rest
        place = -max(found)[1]
        mention = left.pop(place)
        if mention.has_unit(whole):
            standing.append(mention)
            rest = mention.pattern.sub(mark(place), rest)


def _longest(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return max(pattern.finditer(text), key=lambda match: len(match[0]), default=None)


# --- how each kind is written -------------------------------------------------------------------


@lru_cache(maxsize=100_000)
def _mention(kind: Kind, text: str, aliases: tuple[str, ...] = ()) -> Mention:
    values = _values(kind, text)
    for value in values:
        if isinstance(value, Quantity) and value.unit != NO_UNIT:
            rest = (way for other in values if other is not value for way in _ways(other))
            numbers, others = _numbers(value), _other_units(value.unit)
            wrong = re.compile(rf"(?:{_any(numbers).pattern})[ -]?(?:{others})(?!\w)")
            return Mention(text, _any([*numbers, *rest]), _unit(value.unit), wrong)
    ways = [way for value in values for way in _ways(value)]
    if kind is Kind.NAME:  # a concept may be found by its name, too, and counts in the plural
        ways.append(_literal(plural(text)))
        ways += [_literal(alias) for alias in aliases]
    return Mention(text, _any(ways))


def _values(kind: Kind, text: str) -> list[Value]:
    """What an argument may stand for; one that is not of its kind stands for itself."""
    if kind is Kind.ANY_VALUE:
        return readings(text)
    read: Callable[[str], Value] | None
    read = {Kind.QUANTITY: read_quantity, Kind.TIME: read_time}.get(kind)
    if read is None:
        return [text]
    try:
        return [read(text)]
    except ValueReadError:
        return [text]


def _any(ways: Iterable[str]) -> re.Pattern[str]:
    # The longest first, as an alternative that matches hides those behind it.
    return re.compile("|".join(sorted(set(ways), key=lambda way: (-len(way), way))))


def _literal(text: str) -> str:
    return rf"(?<!\w){re.escape(plain(text))}(?!\w)"


def _ways(value: Value) -> list[str]:
    if isinstance(value, Quantity):
        unit = value.unit
        numbers = _numbers(value)
        if unit == NO_UNIT:
            return numbers
        # One of several readings: number and unit stand side by side.
        return [*(rf"{way}[ -]?{re.escape(plain(unit))}" for way in numbers), _literal(say(value))]
    if isinstance(value, Date):
        return _days(value)
    if isinstance(value, Year):
        return _years(value)
    return [_literal(value)]


def _numbers(value: Quantity) -> list[str]:
    """The number in digits, with and without groups, in thousands, millions …, or as a word."""
    digits = print_number(abs(value.number))
    amount = Decimal(digits)
    texts = {digits, *_grouped(digits)}
    words = set()
    for places, word in _SCALES:
        scaled = format(amount.scaleb(-places).normalize(), "f")
        # More digits behind the point than that are not said.
        if amount.scaleb(-places) >= 1 and len(scaled.partition(".")[2]) <= 3:
            words |= {f"{re.escape(t)}[ -]{word}" for t in (scaled, *_grouped(scaled))}
            if scaled == "1":
                words |= {f"an? {word}", f"one {word}"}
            elif scaled.isdigit() and int(scaled) < len(_SMALL):
                words.add(f"{_SMALL[int(scaled)]}[ -]{word}")
    if digits.isdigit() and int(digits) < len(_SMALL):
        words.add(_SMALL[int(digits)])
    minus = r"(?:-|minus |negative )" if value.number < 0 else r"(?<! -)"
    # Neither a part of a longer number nor of a word; a unit's symbol may follow at once.
    whole = (
        rf"(?<![\w])(?<!\d[.,]){minus}(?:{'|'.join(sorted(map(re.escape, texts)))})(?!\d|[.,]\d)"
    )
    ending = r"(?!\w)" if value.unit == NO_UNIT else r"(?! (?:thousand|million|billion|trillion)\b)"
    spelled = [rf"(?<!\w){minus}{word}(?!\w)" for word in sorted(words)]
    return [whole + ending, *spelled]


def _grouped(digits: str) -> tuple[str, ...]:
    whole, point, fraction = digits.partition(".")
    if len(whole.lstrip("-")) < 4:
        return ()
    return tuple(f"{int(whole):,}".replace(",", mark) + point + fraction for mark in ", ")


def _unit(unit: str) -> re.Pattern[str]:
    """What finds a unit: its words anywhere in the text, its symbols beside a number."""
    name = plain(unit)
    words = set()
    for one in (name, *_WORDS.get(name, ())):
        for form in (one, plain(plural_unit(one))):
            words |= {form, form.replace("metre", "meter").replace("litre", "liter")}
    words |= {word.replace(" ", "-") for word in words}
    ways = [_literal(word) for word in words]
    for symbol in _SYMBOLS.get(name, ()):
        sign = re.escape(symbol)
        behind = r"(?!\w)" if symbol[-1].isalnum() else ""
        ways.append(rf"\d[ -]?(?:(?:thousand|million|billion|trillion) )?{sign}{behind}")
        ways.append(rf"(?<!\w){sign} ?\d")
    return _any(ways)


@lru_cache(maxsize=1000)
def _other_units(unit: str) -> str:
    """What finds the words of units that are not this one."""
    own = unit_words(f"0 {unit}")
    known = [*_WORDS, *(form for forms in _WORDS.values() for form in forms), *_SYMBOLS, *_UNITS]
    others = {form for one in known for form in unit_words(f"0 {one}") if len(form) > 2} - own
    # "square" begins a unit that says more than "kilometre".
    others -= {one for one in others if any(one in form for form in own)}
    return "|".join(sorted(map(re.escape, others), key=lambda way: (-len(way), way)))


def unit_words(text: str) -> frozenset[str]:
    """The words and symbols that may stand for the unit of a quantity, as `plain` leaves them."""
    unit = plain(text.partition(" ")[2])
    known = [unit, *_WORDS.get(unit, ()), *_SYMBOLS.get(unit, ())]
    ways = [form for one in known for form in (one, plain(plural_unit(one)))]
    ways += [way.replace("metre", "meter").replace("litre", "liter") for way in ways]
    return frozenset(ways)


def _days(day: Date) -> list[str]:
    ways = [_literal(str(day)), _literal(say(day))]
    if day.year <= 0:
        return [*ways, *(way for era in _eras(day.year) for way in _spelled_days(day, era))]
    figures = rf"{day.year}[-/.]0?{day.month}[-/.]0?{day.day}"
    return [*ways, rf"(?<!\w){figures}(?!\w)", *_spelled_days(day, str(day.year))]


def _spelled_days(day: Date, year: str) -> list[str]:
    """A day with its month as a word; in figures alone, day and month cannot be told apart."""
    name = _MONTHS[day.month - 1]
    month = rf"(?:{name}|{name[:3]}t?\.?)" if name == "september" else rf"(?:{name}|{name[:3]}\.?)"
    number = rf"0?{day.day}(?:st|nd|rd|th)?"
    return [
        rf"(?<!\w){number}[ -](?:of )?{month},?[ -](?:of )?{year}(?!\w)",
        rf"(?<!\w){month} (?:the )?{number},? {year}(?!\w)",
        rf"(?<!\w){year},? {month} {number}(?!\w)",
    ]


def _years(year: Year) -> list[str]:
    figures = rf"(?<!\w)(?<!\d[.,])(?<! -){re.escape(str(year))}(?!\w|[.,]\d)"
    if year.year > 0:
        return [figures]
    return [figures, *(rf"(?<!\w){era}(?!\w)" for era in _eras(year.year))]


def _eras(year: int) -> list[str]:
    """A year before the common era: the year 0 of the astronomical count is 1 BC."""
    return [rf"{1 - year} (?:bce?|b\.c\.(?:e\.)?)"]
