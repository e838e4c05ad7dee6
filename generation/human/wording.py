"""What a question's wording says of its graph: whether they belong together, and what is lost.

Two things went wrong where the graphs were derived from queries. Some questions have the graph of
another question. And a clause that has head and relation in common with a clause with a qualifier
is always missing: in "[Batman, cast member, Adam West, character role, ?qpv]" of "Batman (that has
Joan Collins as a cast member)" the clause "[Batman, cast member, Joan Collins]". The question still
holds its tail, and head and relation are known, so that it can be put back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rapidfuzz import fuzz

from generation.human.records import INSTANCE_OF, Clause, HumanQuestion, NotConverted, is_variable
from generation.human.schema import GraphSchema

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<!\w)\d+(?!\w)")
# Words that any question may hold.
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        """a an and are at by did does for from has have he her his how in is it its many me of on
        one or she tell that the their to was were what when where which who whose with""",
    )
)
# How alike a number of the question and a value of the graph are when one is a slip of the other.
SLIP = 75


def check_belongs(question: HumanQuestion) -> None:
    """Raise NotConverted when the graph has no word in common with its question."""
    told = _content(question.question)
    graph = [part for clause in question.clauses for part in _parts(clause)]
    if any(not told.isdisjoint(_content(part)) for part in graph):
        return
    # A slip in the only name, or names in another script or spelling, are no other question.
    folded = question.question.casefold()
    if any(len(part) > 3 and fuzz.partial_ratio(part.casefold(), folded) >= 80 for part in graph):
        return
    raise NotConverted("graph of another question", "no word is in both")


def check_numbers(question: HumanQuestion, clauses: Iterable[Clause]) -> None:
    """Raise NotConverted when the question holds a number that no clause accounts for.

    Filters by number or date were left out of graphs; their constants would stand in the question.
    """
    constants = [part for clause in clauses for part in _parts(clause)]
    text = "".join(constants).replace(" ", "")
    for match in _NUMBER.finditer(question.question):
        number = match.group()
        if number in text:
            continue
        around = _around(question.question, match.start())
        if any(_is_slip(around, constant) for constant in constants):
            continue
        raise NotConverted("clause missing", f"the number {number} is not in the graph")


def lost_clauses(question: HumanQuestion, schema: GraphSchema) -> tuple[Clause, ...]:
    """The clauses that are missing beside clauses with a qualifier, as far as the question says.

    A name that the question holds and the graph does not is the tail of such a clause when it is a
    tail of the relation elsewhere, or when it follows the head's name and is of the tails' type.
    Raises NotConverted when it is not clear what the name in the question is said of.
    """
    qualified = [c for c in question.clauses if c.qualifier and c.predicate in schema.tails]
    if not qualified:
        return ()
    known = [part for clause in question.clauses for part in _parts(clause)]
    found: list[Clause] = []
    for name, whole in _mentioned(question.question, schema, known):
        for clause in qualified:
            certain = name in schema.tails[clause.predicate]
            if not certain and not _follows(name, clause.head, question.question):
                continue
            if not whole:
                raise NotConverted("clause missing", f"{name!r} is part of a longer name")
            lost = Clause(clause.head, clause.predicate, name)
            if not certain and name not in schema.likely[clause.predicate]:
                raise NotConverted("clause missing", f"{lost} is not likely")
            if is_variable(clause.tail) and not _is_said_of(name, clause.head, question.question):
                raise NotConverted(
                    "clause missing", f"{name!r} is not in the graph; it may be lost, or the answer"
                )
            if lost not in found:
                found.append(lost)
    if len(found) > 1:
        raise NotConverted("clause missing", " or ".join(map(str, found)))
    for lost in found:
        # Queries say one thing at most to tell namesakes apart, and here it is known already.
        if not is_variable(lost.head) and any(
            lost.head in (clause.head, clause.tail) and lost.predicate != clause.predicate
            for clause in question.clauses
        ):
            raise NotConverted("clause missing", f"{lost}, but more is said of {lost.head!r}")
    return tuple(found)


def described_end(clause: Clause, question: str) -> str:
    """The end of a clause that it describes, where the question names the other in doing so.

    In "Halle is the twin town of Hildesheim (that is a twin town of Halle)" it is Hildesheim: the
    other name follows in brackets, or after a relative pronoun. Raises NotConverted when neither
    end or either end is said so.
    """
    ends = [
        end
        for end, other in ((clause.head, clause.tail), (clause.tail, clause.head))
        if _is_said_of(other, end, question) or _is_related(other, end, question)
    ]
    if len(ends) != 1:
        raise NotConverted("ambiguous namesakes", f"{clause} may be said of either end")
    return ends[0]


def _mentioned(question: str, schema: GraphSchema, known: list[str]) -> list[tuple[str, bool]]:
    """The names that the question holds where it holds no text of the graph, the longest first.

    With each comes whether it stands there as a whole, not next to another word in capitals.
    """
    free = question
    for text in sorted(known, key=len, reverse=True):
        free = _without(text, free)
    words = {_singular(word) for text in known for word in _WORD.findall(text)}
    names = {
        name
        for word in set(_WORD.findall(free))
        for name in schema.names.get(word, ())
        # Not a common word, and not another wording of what the graph has.
        if name in free and len(name) >= 4 and not name[0].islower()
        and not {_singular(own) for own in _WORD.findall(name)} <= words
    }  # fmt: skip
    found = []
    for name in sorted(names, key=lambda name: (-len(name), name)):
        match = re.search(_whole(name), free)
        if match is None:
            continue
        before = re.search(r"\w [A-Z\d]\w* $", free[: match.start()])
        after = re.match(r" [A-Z\d]", free[match.end() :])
        found.append((name, not before and not after))
        free = _without(name, free)
    return found


def _singular(word: str) -> str:
    return word.casefold().removesuffix("s")


def _without(name: str, text: str) -> str:
    """The text with marks of the same length in place of a name."""
    return re.sub(_whole(name), lambda m: "\0" * len(m.group()), text, flags=re.IGNORECASE)


def _whole(name: str) -> str:
    return rf"(?<!\w){re.escape(name)}(?!\w)"


def _is_said_of(name: str, head: str, question: str) -> bool:
    """Whether the name stands in brackets that follow the head's name at once."""
    after = rf"{re.escape(head)}\s*\([^()]*{re.escape(name)}[^()]*\)"
    return not is_variable(head) and re.search(after, question, re.IGNORECASE) is not None


def _follows(name: str, head: str, question: str) -> bool:
    """Whether the name follows the head's, with words between them that are no names."""
    after = rf"(?i:{_whole(head)})[\"',(\s]+(?:[a-z][a-z'-]*[\",(\s]+)+{_whole(name)}"
    return not is_variable(head) and re.search(after, question) is not None


def _is_related(name: str, head: str, question: str) -> bool:
    """Whether the name stands in a relative clause that follows the head's name at once."""
    after = rf"{_whole(head)},? (?:who|whose|which|that)\b[^,()]*?{_whole(name)}"
    return re.search(after, question, re.IGNORECASE) is not None


def _parts(clause: Clause) -> list[str]:
    parts = [clause.head, clause.predicate, clause.tail, *(clause.qualifier or ())]
    return [part for part in parts if part != INSTANCE_OF and not is_variable(part)]


def _content(text: str) -> set[str]:
    words = {word.casefold() for word in _WORD.findall(text)}
    return {word for word in words if len(word) > 1 or word.isdigit()} - _EMPTY


def _around(question: str, at: int) -> str:
    """The text between blanks in which a place lies."""
    start = question.rfind(" ", 0, at) + 1
    end = question.find(" ", at)
    return question[start : end if end >= 0 else len(question)].strip("()?,;:'\"")


def _is_slip(written: str, constant: str) -> bool:
    if not any(character.isdigit() for character in constant):
        return False
    return any(fuzz.ratio(written, piece) >= SLIP for piece in [constant, *constant.split()])
