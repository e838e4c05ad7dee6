"""Reading what stands in the sources as text: plain text, names, figures, times."""

from __future__ import annotations

import html
import re

from kb import Date, Year
from kb.imports.cells import MONTHS
from kb.values import ValueReadError

_FACTORS = {"": 1, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_FIGURE = re.compile(
    r"(?P<sign>-?)\$?(?P<sign2>-?)(?P<number>\d[\d,]*(?:\.\d+)?) ?"
    r"(?P<factor>thousand|million|billion|trillion|)(?P<rest>.*)"
)
_YEAR_NOTE = re.compile(r"\((?:[A-Z][a-z]+ )?(\d{4})(?: est\.?)?\)")
# The source has a comma too many in a few figures, as "4,5" or "1,2345": such a figure is left out.
_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?|\d+(\.\d+)?")


def plain(text: str) -> str:
    """The text without tags, entities and runs of blanks."""
    text = re.sub(r"</?(?:em|strong|b|i|u|sup|sub|span)[^>]*>", "", text)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    text = text.replace("’", "'").replace("‘", "'").replace("\u200b", "")
    return re.sub(r"\s+", " ", text).strip()


def outside_brackets(text: str) -> str:
    """The text without what stands in round or square brackets."""
    while True:
        shorter = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", text)
        if shorter == text:
            return re.sub(r"\s+([,;])", r"\1", re.sub(r"\s+", " ", text)).strip()
        text = shorter


def split_outside_brackets(text: str, separators: str = ",") -> list[str]:
    """The pieces between separators that do not stand in brackets."""
    pieces, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth = max(0, depth - 1)
        elif character in separators and depth == 0:
            # A comma between digits groups them.
            if character == "," and re.match(r"\d,\d{3}(?!\d)", text[max(0, at - 1) : at + 5]):
                continue
            pieces.append(text[start:at])
            start = at + 1
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]


def figure(text: str, unit: str) -> tuple[float, int | None] | None:
    """The number and year in a text such as ``3.1 million km (2023 est.)``.

    ``unit`` is the pattern of what must stand between number and year. None when the text says
    more or less than that, as a range or a bound.
    """
    match = _FIGURE.fullmatch(plain(text))
    if not match or not _GROUPED.fullmatch(match["number"]):
        return None
    if match["factor"] == "million" and float(match["number"].replace(",", "")) > 9_999:
        return None  # "872,000 million" people in one city: the source's slip
    after = r"(?:;.*|note.*|[\d,]+ km electrified.*)?"
    rest = re.fullmatch(rf"\s*{unit}\s*(\(.*?\))?\s*{after}", match["rest"])
    if not rest:
        return None
    year = None
    if note := rest.group(rest.lastindex) if rest.lastindex else None:
        found = _YEAR_NOTE.fullmatch(note)
        if not found:
            return None
        year = int(found[1])
    number = float(match["number"].replace(",", "")) * _FACTORS[match["factor"]]
    return (-number if match["sign"] or match["sign2"] else number), year


def day(text: str) -> Date | Year | None:
    """A time such as ``14 May 2017``, ``May 2017`` (its year), ``9/24/2023`` or ``2017``."""
    text = plain(text)
    if match := re.fullmatch(r"(\d{1,2}) ([A-Za-z]+) (\d{4})", text):
        return _date(int(match[3]), match[2], int(match[1]))
    if match := re.fullmatch(r"(?:early |mid-|late )?([A-Za-z]+) (\d{4})", text):
        return Year(int(match[2])) if match[1].lower() in MONTHS else None
    if match := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", text):  # month first
        return _date(int(match[3]), MONTHS[int(match[1]) - 1], int(match[2]))
    return Year(int(text)) if re.fullmatch(r"\d{4}", text) else None


def _date(year: int, month: str, number: int) -> Date | None:
    numbers = [at for at, name in enumerate(MONTHS, 1) if month.lower() in (name, name[:3])]
    if not numbers:
        return None
    try:
        return Date(year, numbers[0], number)
    except ValueReadError:
        return None


PARTICLES = {"DE", "DEL", "DER", "DI", "DA", "DAS", "DOS", "DU", "LA", "BIN", "BINT", "AL"}


def person_name(text: str) -> str:
    """A name in usual writing: the sources print family names in capitals."""
    words = plain(text).split(" ")
    return " ".join(_word(word, first=at == 0) for at, word in enumerate(words))


def family_name(text: str) -> str:
    """The family name in usual writing, "" where nothing but a number stands behind it.

    >>> family_name("Emmanuel MACRON"), family_name("XI Jinping"), family_name("CHARLES III")
    ('Macron', 'Xi', '')
    """
    words = plain(text).split(" ")
    if re.fullmatch(r"[IVX]+", words[-1]):
        return ""
    capitals = [word for word in words if re.search(r"[^\W\d_a-z]{2}", word)]
    return " ".join(_word(word, first=at == 0) for at, word in enumerate(capitals))


def _word(word: str, *, first: bool) -> str:
    if re.fullmatch(r"[IVX]+[,.]?", word) and not first:
        return word  # Charles III
    if word in PARTICLES and not first:
        return word.lower()
    if re.fullmatch(r"(?:[A-Z]\.)+", word):
        return word

    def lower(match: re.Match[str]) -> str:
        part = match[0]
        if part.startswith("MC") and len(part) > 3:
            return "Mc" + part[2].upper() + part[3:].lower()
        before = word[: match.start()]
        if before.endswith("'") and len(before) > 2:  # Tuimaleali'ifano, but O'Brien
            return part.lower()
        return part[0] + part[1:].lower()

    return re.sub(r"[^\W\d_a-zß-öø-ÿ][^\W\d_a-zß-öø-ÿ]+", lower, word)


def clean_name(text: str) -> str:
    """A name without brackets, notes, stars and stray punctuation."""
    text = outside_brackets(plain(text)).replace("*", "").replace('"', "").replace("“", "")
    text = text.replace("”", "").replace(" & ", " and ")
    return text.strip(" ,;:-–.").strip()
