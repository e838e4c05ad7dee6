"""Which form of answer a wording asks for, and whether that is the form of its question's answer.

A program says what comes out: yes or no, a number, a name, a time. A wording says it by the word
that asks: "how many", "when", "is …". Where a wording has no such word it fits any form.
"""

from __future__ import annotations

import re
from typing import Any

from generation.paraphrase.meaning import Finding
from generation.paraphrase.vocabulary import vocabulary, words_in
from kopl.program import Call

# What a program's answer is, and the forms of wordings that ask for it; any other is a fault.
_FITTING = {
    "yes or no": {"polar", "unknown"},
    "a count": {"count", "counting", "unknown"},
    "a name": {"open", "person", "place", "manner", "imperative", "unknown", "choice"},
    "a time": {"time", "open", "imperative", "unknown"},
    "a number": {"quantity", "count", "counting", "open", "imperative", "unknown"},
    "a text": {"open", "person", "place", "manner", "imperative", "unknown"},
    "a relation": {"open", "person", "manner", "imperative", "unknown"},
}
_ASKED = {
    "polar": "yes or no", "count": "a count", "counting": "a count", "time": "a time",
    "place": "a place", "person": "a person", "reason": "a reason", "quantity": "a number",
    "frequency": "how often", "manner": "a manner", "open": "a name or value",
    "choice": "a choice", "imperative": "something", "unknown": "something",
}  # fmt: skip
_RELATIVE = frozenset({"which", "who", "whose", "where"})
_CLAUSES = re.compile(r"[,;:.]+ |[–—]+ ?| - ")
_BRACKET = re.compile(r"\([^()]*\)")
_VALUE = re.compile(r"what(?:'s| is| was) the (\w+) (.*)")
_EXISTS = re.compile(r"\W*(?:is|are|was|were) (?:there|any)\b")
_DAY = re.compile(r"-?\d{1,4}-\d{2}-\d{2}")
_YEAR = re.compile(r"-?\d{1,4}")
_NUMBER = re.compile(r"-?\d[\d.]*(?:e[+-]?\d+)?(?: .*)?")


def answer_form(program: Call, answer: str | None, form: Any = None) -> set[str]:
    """What a program's answer may be; ``form`` is the example's "answer_form", where it has one."""
    name = program.function.name
    if form is not None or name.startswith("Verify"):
        return {"yes or no"}
    if name == "Count":
        return {"a count"}
    if name == "QueryRelation":
        return {"a relation"}
    if name in ("QueryName", "SelectAmong", "SelectBetween"):
        return {"a name"}
    if answer is None:
        return {"a time", "a number", "a text"}
    if _DAY.fullmatch(answer):
        return {"a time"}
    if _YEAR.fullmatch(answer):
        last = program.arguments[-1] if program.arguments else ""
        timed = any(word in vocabulary().sets["times"] for word in words_in(last.casefold()))
        return {"a time"} if timed else {"a time", "a number"}
    return {"a number"} if _NUMBER.fullmatch(answer) else {"a text"}


def form_fault(
    masked: str, expected: set[str], *, chooses: bool, compared: str = ""
) -> Finding | None:
    """Why a wording (as `mentions.marked` has it) asks for another form of answer, or None.

    ``chooses``: the program chooses between two, as "is it A or B" may ask. ``compared`` is the key
    by which it chooses, if it does: "what is the largest area" asks for the area.
    """
    value = _VALUE.match(masked) if compared else None
    if value and value[1] in vocabulary().directions and value[2].startswith(compared.casefold()):
        return Finding("another form of answer", f"the {compared} itself is asked")
    forms = asked(masked)
    if chooses and "polar" in forms and " or " in masked and not _EXISTS.match(masked):
        forms = {"choice"}
    if any(forms & _FITTING[one] for one in expected):
        return None
    said = _ASKED[min(forms)]
    return Finding(
        "another form of answer", f"{said} is asked, {' or '.join(sorted(expected))} fits"
    )


def asked(masked: str) -> set[str]:
    """The forms that a wording may ask for; "unknown" where it has no word that asks.

    >>> asked("for norway, what is its population?"), asked("how many live there?")
    ({'open'}, {'count'})
    """
    words = vocabulary()
    text = _BRACKET.sub(" ", masked).strip()
    led = False
    while found := words.phrases["leads"].match(text):
        text, led = text[found.end() :].strip(" ,:"), True
        if text.startswith(("whether ", "if ")):
            return {"polar"}
    relative: set[str] = set()
    for place, clause in enumerate(_CLAUSES.split(text)):
        tokens = words_in(clause)
        # "Norway, which is large": only where nothing behind it asks does this one ask.
        describes = bool(place) and tokens[:1] and tokens[0] in _RELATIVE
        # "In which year", "since when": the word that asks stands behind a preposition.
        while len(tokens) > 1 and tokens[0] in words.sets["prepositions"]:
            tokens = tokens[1:]
        if tokens and (form := _form(tokens)):
            if not describes:
                return form
            relative = relative or form
    if relative:
        return relative
    tokens = words_in(text)
    for place, word in enumerate(tokens):
        if not place or word not in ("what", "which", "how", "when", "where", "who"):
            continue
        if (form := _form(tokens[place:])) and not form & {"open", "person", "place"}:
            return form | {"unknown"} if form == {"time"} else form
    counts = {"counting"} if words.sets["counting"] & set(tokens) else set()
    return {"imperative"} | counts if led else counts or {"unknown"}


def _form(tokens: list[str]) -> set[str] | None:
    """The form that a clause asks for by its first words; None where it does not ask."""
    sets = vocabulary().sets
    first, following = tokens[0], tokens[1] if len(tokens) > 1 else ""
    if first == "how":
        if following == "many":
            return {"count"}
        if following == "often":
            return {"frequency"}
        counts = {"counting"} if sets["counting"] & set(tokens) else set()
        return {"quantity"} | counts if following in sets["sizes"] else {"manner", "quantity"}
    if first in ("what", "which"):
        if following in sets["times"] and not (following == "time" and "zone" in tokens[2:3]):
            return {"time"}
        return {"counting", "open"} if sets["counting"] & set(tokens) else {"open"}
    if first == "count":
        return {"count"}
    if first in sets["imperatives"]:
        return {"imperative", "counting"} if sets["counting"] & set(tokens) else {"imperative"}
    form = vocabulary().forms.get(first)
    return {form} if form else None
