"""The types that texts have in common, guessed by their form and by the words of a header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from kb.imports.cells import CellType, number_pattern, read_amount, read_day
from kb.values import Date, ValueReadError

# Words that stand for nothing in many exports; "NA" is also Namibia.
MISSING = frozenset(
    ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "-", "–", "—", "?")
)

# Forms of days, of two that both fit the first one is taken.
DAY_FORMS = (
    "dd.mm.yyyy",
    "dd/mm/yyyy",
    "mm/dd/yyyy",
    "dd-mm-yyyy",
    "mm-dd-yyyy",
    "yyyy.mm.dd",
    "yyyy-mm",
    "mm/yyyy",
    "mm.yyyy",
    "d mmm yyyy",
    "mmm d, yyyy",
    "mmm d yyyy",
    "d. mmm yyyy",
    "d-mmm-yyyy",
    "mmm yyyy",
)

UNITS = {
    "mm": "millimetre",
    "cm": "centimetre",
    "m": "metre",
    "km": "kilometre",
    "in": "inch",
    "ft": "foot",
    "mi": "mile",
    "mg": "milligram",
    "g": "gram",
    "kg": "kilogram",
    "t": "tonne",
    "lb": "pound",
    "oz": "ounce",
    "ml": "millilitre",
    "cl": "centilitre",
    "l": "litre",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "min": "minute",
    "mins": "minute",
    "minutes": "minute",
    "h": "hour",
    "hrs": "hour",
    "hours": "hour",
    "days": "day",
    "m2": "square metre",
    "m²": "square metre",
    "km2": "square kilometre",
    "km²": "square kilometre",
    "ha": "hectare",
    "m3": "cubic metre",
    "m³": "cubic metre",
    "€": "euro",
    "eur": "euro",
    "euro": "euro",
    "$": "US dollar",
    "usd": "US dollar",
    "£": "pound sterling",
    "gbp": "pound sterling",
    "chf": "Swiss franc",
    "¥": "yen",
    "jpy": "yen",
    "%": "percent",
    "percent": "percent",
    "°c": "degree Celsius",
    "kw": "kilowatt",
    "kwh": "kilowatt-hour",
    "w": "watt",
    "v": "volt",
    "mb": "megabyte",
    "gb": "gigabyte",
    "kcal": "kilocalorie",
    "km/h": "kilometre per hour",
}

# Headers of codes that look like numbers.
CODE_WORDS = frozenset(
    (
        "phone",
        "telephone",
        "tel",
        "fax",
        "zip",
        "postcode",
        "postal",
        "isbn",
        "issn",
        "ean",
        "sku",
        "code",
        "barcode",
        "iban",
    )
)

YEAR_WORDS = frozenset(
    (
        "year",
        "born",
        "birth",
        "founded",
        "established",
        "opened",
        "published",
        "publication",
        "died",
        "death",
        "debut",
        "since",
        "until",
        "from",
        "to",
        "start",
        "end",
        "built",
        "released",
        "release",
    )
)

# Decimal marks with those between thousands.
_NUMBERS = ((".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"))


def words_of(header: str) -> list[str]:
    """The words of a header: ``birthPlace``, ``birth_place`` and ``Birth place`` are the same."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", header)
    # These marks part words, and stand at their ends; inside of other signs they mean something.
    parts = re.split(r"[\s_]+|(?<=\w)[./:-]+(?=\w)", spaced)
    found = [part.strip("./:-") for part in parts]
    capitals = header == header.upper()
    return [word.lower() if capitals or not word.isupper() else word for word in found if word]


@dataclass
class Guess:
    """A type with its fields for the mapping, why it was guessed, and what is doubtful."""

    type: CellType
    fields: dict[str, object] = field(default_factory=dict)
    why: str = ""
    doubt: str = ""


def guess_form(values: Iterable[str], words: Iterable[str] = ()) -> Guess:
    """The type that all values have; ``words`` are those of the header."""
    values, words = list(values), set(words)
    if not values:
        return Guess("string")
    for form in ("", *DAY_FORMS):
        if _are_days(values, form):
            return _days(values, form)
    has_zeros = any(re.fullmatch("0[0-9]+", value) for value in values)
    if has_zeros or words & CODE_WORDS:
        return Guess("string", why="codes" if has_zeros else "")
    if all(re.fullmatch(r"[12][0-9]{3}(\.0+)?", value, re.ASCII) for value in values):
        fits = all(1000 <= float(value) <= 2100 for value in values)
        if fits and words & YEAR_WORDS:
            return Guess("year", why="years")
        if fits and all(float(value) >= 1400 for value in values):
            return Guess("year", why="numbers like years", doubt="or type: quantity")
    return _quantities(values, words)


def nearly(values: Iterable[str], words: Iterable[str] = ()) -> tuple[Guess, str] | None:
    """The type that nearly all values have, and one that has it not; None where none is so common.

    Only the first thousand values are looked at.
    """
    looked_at = list(islice(values, 1000))
    typed = [value for value in looked_at if guess_form([value]).type != "string"]
    if len(typed) < 4 or len(typed) * 5 < len(looked_at) * 4 or len(typed) == len(looked_at):
        return None
    guess = guess_form(typed, words)
    known = set(typed)
    return None if guess.type == "string" else (guess, next(v for v in looked_at if v not in known))


def _are_days(values: list[str], form: str) -> bool:
    is_day = False
    for value in values:
        try:
            found = read_day(value, form)
        except ValueReadError:
            return False
        is_day = is_day or isinstance(found, Date) or not re.fullmatch("-?[0-9.]+", value)
    return is_day


def _days(values: list[str], form: str) -> Guess:
    if not form:
        return Guess("date", why="days")
    other = {"dd/mm/yyyy": "mm/dd/yyyy", "dd-mm-yyyy": "mm-dd-yyyy"}.get(form, "")
    doubt = f"or format: {other}" if other and _are_days(values, other) else ""
    return Guess("date", {"format": form}, f"days as {form}", doubt)


def _quantities(values: list[str], words: set[str]) -> Guess:
    found: list[tuple[str, str]] = []
    for decimal, thousands in _NUMBERS:
        pattern = number_pattern(decimal, thousands)
        if all(pattern.fullmatch(value) for value in values):
            found.append((decimal, thousands))
    if not found:
        return Guess("string")
    decimal, thousands = found[0]
    doubt = ""
    if (decimal, thousands) == (",", "") and (".", ",") in found:
        # All commas stand before three digits: between thousands, more likely.
        decimal, thousands, doubt = ".", ",", 'or decimal: ","'
    try:
        amounts = [read_amount(value, decimal, thousands) for value in values]
    except ValueReadError:  # too large for a number
        return Guess("string")
    units = Counter(unit for _, unit in amounts)
    fields: dict[str, object] = {}
    if decimal != ".":
        fields["decimal"] = decimal
    if thousands:
        fields["thousands"] = thousands
    low, high = min(number for number, _ in amounts), max(number for number, _ in amounts)
    why = f"numbers, {low:g} to {high:g}"
    named = [unit for unit in units if unit]
    if not named:
        return Guess("quantity", fields, why, doubt)
    known = {unit: UNITS[unit.lower()] for unit in named if unit.lower() in UNITS}
    full = {known.get(unit, unit) for unit in named}
    if len(known) < len(named) and (len(named) > 1 or units[named[0]] < 2):
        return Guess("string")  # house numbers, parts of codes
    if known:
        fields["units"] = known
    if len(full) == 1 and (len(named) > 1 or units[""] or not known):
        fields["unit"] = next(iter(full))
    if units[""]:
        doubt = "some have no unit"
    if len(full) > 1:
        doubt = "several units, which do not compare"
    return Guess("quantity", fields, f"{why}, with units", doubt)
