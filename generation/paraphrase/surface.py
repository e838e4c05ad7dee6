"""What a text shows by itself that no question does: length, characters, markup, talk, language.

Nothing here asks what the text means. What the question's own words have may stand in a paraphrase,
too: a name with a bracket, or in another script.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from generation.paraphrase.mentions import plain
from generation.paraphrase.vocabulary import stem, vocabulary, words_in

# A paraphrase may be so many times as long as its question, and so long in any case, in characters.
TIMES, LENGTH = 3, 200
# So much of the question's words, or so many words, it has at least.
LEAST_SHARE, LEAST_WORDS = 0.15, 2
# Of so many words, at least this share are different ones.
MANY, LEAST_DIFFERENT = 10, 0.35
# Combining marks on one letter; more are not read.
MARKS = 2

_MARKUP = frozenset("<>{}[]|\\^`~=*_@")
_CODE = re.compile(
    r"&#?\w+;|https?:|www\.|javascript:|['\"]\s*;|(?<!-)--\s|--$|\$[a-z_{]|%[sd]\b|#(?!\s?\d)"
    r"|\bunion\s+select\b|\bdrop\s+table\b|\bselect\b.{1,200}?\bfrom\b.{1,200}?\bwhere\b|\\n",
    re.IGNORECASE | re.DOTALL,
)
_FIRST = re.compile(r"\W*(\w+)")


def length_fault(text: str, known: str) -> str:
    """Why the length alone rejects a text, or ""; this is asked before anything reads the text."""
    if len(text) > max(LENGTH, TIMES * len(known)):
        return "far too long"
    return ""


def surface_fault(text: str, known: str) -> str:
    """Why a text is rejected whatever it asks, or ""; ``known`` is what its question says.

    >>> surface_fault("<b>Who leads Norway?</b>", "Who is the head of Norway?")
    'markup or code'
    """
    return (
        length_fault(text, known)
        or _characters(text, known)
        or _markup(text, known)
        or _talk(text, known)
        or _shape(text, known)
        or _language(text, known)
    )


def _characters(text: str, known: str) -> str:
    marks = 0
    scripts = _scripts(known)
    for place, character in enumerate(text):
        if character < "\x7f" and character >= " ":
            marks = 0
            continue
        category = unicodedata.category(character)
        marks = marks + 1 if category[0] == "M" else 0
        if character in known and marks <= MARKS:
            continue
        if category[0] == "C" or category in ("Zl", "Zp") or character == "\ufffd" or marks > MARKS:
            return "a control or invisible character"
        alone = not any(c.isalpha() for c in text[max(0, place - 1) : place + 2] if c != character)
        if category[0] == "L" and _script(character) not in scripts and not alone:
            return "letters of another script"
    return ""


@lru_cache(maxsize=10_000)
def _script(character: str) -> str:
    return unicodedata.name(character, "?").split()[0].split("-")[0]


def _scripts(known: str) -> set[str]:
    """The scripts of a question, and that of English with what is written among it."""
    found = {_script(one) for one in known if one.isalpha() and not one.isascii()}
    return found | {"LATIN", "FEMININE", "MASCULINE", "MICRO", "KELVIN", "ANGSTROM", "MODIFIER"}


def _markup(text: str, known: str) -> str:
    if any(c in _MARKUP and c not in known for c in text.replace("^2", "").replace("^3", "")):
        return "markup or code"
    if _CODE.search(text) and not _CODE.search(known):
        return "markup or code"
    return ""


def _talk(text: str, known: str) -> str:
    known, text = plain(known), plain(text)
    for found in vocabulary().phrases["talk"].finditer(text):
        # A label as "output:" begins the text or a sentence.
        label = found[0].endswith(":") and text[: found.start()].strip()[-1:] not in ("", ".", "!")
        if found[0] not in known and not label:
            return "words around the question"
    return ""


def _shape(text: str, known: str) -> str:
    # The canonical question comes first in what is known.
    words, own = words_in(plain(text)), words_in(plain(known.partition("\n")[0]))
    if len(words) < max(LEAST_WORDS, LEAST_SHARE * len(own)):
        return "too short"
    if len(words) >= MANY and len(set(words)) < LEAST_DIFFERENT * len(words):
        return "the same words again and again"
    if any(line.strip() for line in text.strip().splitlines()[1:]):
        return "several lines"
    _, asks, rest = text.partition("?")
    if asks and any(c.isalnum() for c in rest):
        return "more than one question"
    if not asks and text.rstrip().endswith(".") and "?" in known:
        first = _FIRST.match(text)
        last = text.split()[-1]
        if last.count(".") == 1 and first and first[1].lower() not in vocabulary().sets["openers"]:
            return "no question"
    return ""


def _language(text: str, known: str) -> str:
    if "¿" in text or "¡" in text:
        return "another language"
    own = set(words_in(plain(known)))
    words = [word for word in words_in(plain(text)) if word not in own]
    if not words:
        return ""
    english = vocabulary().sets["functional"] | vocabulary().sets["stems"]
    spoken = sum(word in english or stem(word) in english for word in words)
    foreign = max(
        sum(word in language for word in words) for language in vocabulary().languages.values()
    )
    return "another language" if foreign >= 2 and foreign > spoken / 2 else ""
