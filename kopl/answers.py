"""When two answers are the same: the default rule, and the published one bug for bug."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from kb.values import Date, Quantity, ValueReadError, read_quantity, read_time

_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")


def same_answer(gold: str, predicted: str) -> bool:
    """Whether two answers are equal by the default rule.

    Quantities of one unit by their doubles, days by the calendar, all else as trimmed strings;
    a year is not a day, "007" is not 7, case counts.
    """
    gold, predicted = gold.strip(), predicted.strip()
    if gold == predicted:
        return True
    left, right = _reading(gold), _reading(predicted)
    return left is not None and left == right


def same_answers(gold: Sequence[str], predicted: Sequence[str]) -> bool:
    """Whether two lists hold the same answers by the default rule, in whatever order."""
    if len(gold) != len(predicted):
        return False
    rest = list(predicted)
    for one in gold:
        match = next((other for other in rest if same_answer(one, other)), None)
        if match is None:
            return False
        rest.remove(match)
    return True


def _reading(text: str) -> Quantity | Date | None:
    if not _LEADING_ZERO.match(text):
        try:
            return read_quantity(text)
        except ValueReadError:
            pass
    try:
        time = read_time(text)
    except ValueReadError:
        return None
    return time if isinstance(time, Date) else None


def published_equal(gold: str, predicted: str) -> bool:
    """Whether the script published with KQA Pro counts a prediction as right, with its bugs.

    Numbers lose a fraction below 1e-5, negative ones any fraction; a year equals every day in it;
    "007" equals 7.
    """
    gold, predicted = _truncated(gold), _truncated(predicted)
    return _same_time(gold, predicted) or gold == predicted


def published_text(answer: str) -> str:
    """An answer as the programs published with KQA Pro print it, for their leaderboard.

    They cut off a fraction below 1e-5, and any fraction of a negative number; other numbers are
    printed by Python. All else is as it stands.
    """
    try:
        # What only looks like a number, as the string "007", is not printed as one.
        is_number = str(read_quantity(answer)) == answer
    except ValueReadError:
        return answer
    return _truncated(answer) if is_number else answer


def _truncated(text: str) -> str:
    try:
        first, *others = text.split()
        number: float = float(first)
        if number - int(number) < 1e-5:
            number = int(number)
    except (ValueError, OverflowError):
        return text
    return " ".join([str(number), *others])


def _same_time(left: str, right: str) -> bool:
    try:
        a, b = _published_time(left), _published_time(right)
    except (ValueError, OverflowError):
        return False
    if isinstance(a, date) and isinstance(b, date):
        return a == b
    return _year(a) == _year(b)


def _published_time(text: str) -> date | int:
    parts = text.split("-")
    if len(parts) == 3:
        return date(int(parts[0]), int(parts[1]), int(parts[2]))
    return int(text)


def _year(time: date | int) -> int:
    return time.year if isinstance(time, date) else time
