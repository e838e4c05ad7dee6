"""The 27 functions of KoPL, each declared once; everything that knows functions derives from here.

Names and arguments follow Table 6 of the KQA Pro paper (ACL 2022); where it writes "Entity" for
one element, these take sets. Skills are those of Table 5, as the published script assigns them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from kopl.types import Kind, Type

E, F, V, Q = Type.ENTITIES, Type.FACTS, Type.VALUES, Type.QUALIFIER_VALUES


# How a relation is followed, as an arrow.
_ARROWS = {"forward": "\N{RIGHTWARDS ARROW}", "backward": "\N{LEFTWARDS ARROW}"}


class Word(NamedTuple):
    """A part of what is said of a call: an argument by its ``name``, or a word between arguments.

    ``text`` is None where the argument is missing.
    """

    text: str | None
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Function:
    """A declaration: functional inputs, textual arguments, output, skill, hops, sentence, example.

    ``arguments`` pairs each argument's name with its kind. ``skill`` is the column of Table 5 that
    a program with this function counts in, or None. ``hops``: one for each relation, attribute and
    qualifier that a call reads, and one for a comparison. ``published`` is the name that KQA Pro's
    files use, where it differs. ``words`` say a call in few words, with each argument's name in
    braces: ``{key} {op} {value}``.
    """

    name: str
    inputs: tuple[Type, ...]
    arguments: tuple[tuple[str, Kind], ...]
    output: Type
    skill: str | None
    hops: int
    doc: str
    example: str
    published: str
    words: str = ""

    @property
    def arity(self) -> int:
        """The number of functional inputs."""
        return len(self.inputs)

    @property
    def signature(self) -> str:
        """The call's form for people, such as ``Relate(E, relation, direction)``."""
        letters = {E: "E", F: "F", V: "V"}
        parts = [letters[t] for t in self.inputs] + [name for name, _ in self.arguments]
        return f"{self.name}({', '.join(parts)})"

    def phrase(self, arguments: Sequence[str | None]) -> list[Word]:
        """What a call with these arguments does, in few words: ``population``, ``>``, ``9000``."""
        given = {name: text for (name, _), text in zip(self.arguments, arguments, strict=False)}
        found = []
        for at, part in enumerate(re.split(r"\{(\w+)\}", self.words)):
            if at % 2:
                text = given.get(part)
                found.append(
                    Word(_ARROWS.get(text or "", text) if part == _DIRECTION else text, part)
                )
            elif part.strip():
                found.append(Word(part.strip()))
        return found

    def __repr__(self) -> str:
        return f"<function {self.name}>"


FUNCTIONS: dict[str, Function] = {}
# Every spelling that is read, with the function it stands for.
SPELLINGS: dict[str, Function] = {}


def declare(
    name: str,
    inputs: Iterable[Type] = (),
    arguments: Iterable[tuple[str, Kind]] = (),
    *,
    output: Type,
    skill: str | None = None,
    hops: int = 0,
    doc: str,
    words: str,
    example: str,
    published: str | None = None,
) -> Function:
    """Add a function to the language."""
    function = Function(
        name,
        tuple(inputs),
        tuple(arguments),
        output,
        skill,
        hops,
        doc,
        example,
        published or name,
        words,
    )
    FUNCTIONS[name] = SPELLINGS[name] = function
    if published:
        SPELLINGS[published] = function
    return function


def meant(text: str) -> Function | None:
    """The function that a text names, however it writes capitals, or None.

    For hints only: a program names functions exactly.
    """
    return SPELLINGS.get(text) or _folded().get(text.strip().removesuffix("()").casefold())


@cache
def _folded() -> dict[str, Function]:
    return {spelling.casefold(): function for spelling, function in SPELLINGS.items()}


_KEY, _QKEY = ("key", Kind.KEY), ("qkey", Kind.QUALIFIER_KEY)
_OP = ("op", Kind.OPERATOR)
_DIRECTION = "direction"
_STRING, _NUMBER = ("value", Kind.STRING), ("value", Kind.QUANTITY)
_YEAR = _DATE = ("value", Kind.TIME)

# --- locating ---------------------------------------------------------------------------------

FIND_ALL = declare(
    "FindAll",
    output=E,
    doc="All entities of the knowledge base, no concepts.",
    words="everything",
    example='Count(FilterConcept(FindAll(), "country"))',
)
FIND = declare(
    "Find",
    (),
    [("name", Kind.NAME)],
    output=E,
    doc="The entities and the concepts with that name.",
    words="{name}",
    example='QueryAttr(Find("Norway"), "area")',
)
FILTER_CONCEPT = declare(
    "FilterConcept",
    [E],
    [("concept", Kind.CONCEPT)],
    output=E,
    skill="multi-hop",
    doc="The entities that are instances of the concept or of one below it; keeps no facts.",
    words="only {concept}",
    example='QueryName(FilterConcept(Find("Georgia"), "country"))',
)
FILTER_STR = declare(
    "FilterStr",
    [E],
    [_KEY, _STRING],
    output=F,
    skill="multi-hop",
    hops=1,
    doc="The entities with a fact of the key whose value is the string; those facts.",
    words="{key} = {value}",
    example='QueryName(FilterStr(FindAll(), "ISO 3166-1 alpha-2 code", "NO"))',
)
FILTER_NUM = declare(
    "FilterNum",
    [E],
    [_KEY, _NUMBER, _OP],
    output=F,
    skill="multi-hop",
    hops=1,
    doc="The entities with a quantity of the key, in the same unit, that compares so; those facts.",
    words="{key} {op} {value}",
    example='QueryName(FilterNum(FindAll(), "area", "300000 square kilometre", ">"))',
)
FILTER_YEAR = declare(
    "FilterYear",
    [E],
    [_KEY, _YEAR, _OP],
    output=F,
    skill="multi-hop",
    hops=1,
    doc="The entities with a year or day of the key that compares so to the constant; those facts.",
    words="{key} {op} {value}",
    example='QueryName(FilterYear(FindAll(), "date of independence", "1917", "="))',
)
FILTER_DATE = declare(
    "FilterDate",
    [E],
    [_KEY, _DATE, _OP],
    output=F,
    skill="multi-hop",
    hops=1,
    doc="The same as FilterYear; by custom the constant is a day.",
    words="{key} {op} {value}",
    example='QueryName(FilterDate(FindAll(), "date of independence", "1917-12-06", "="))',
)
QFILTER_STR = declare(
    "QFilterStr",
    [F],
    [_QKEY, _STRING],
    output=F,
    skill="qualifier",
    hops=1,
    doc="Of the facts carried, those with a qualifier that is the string; the entities they give.",
    words="{qkey} = {value}",
    example='QueryName(QFilterStr(Relate(Find("Norway"), "head of state", "forward"), '
    '"position held", "King"))',
)
QFILTER_NUM = declare(
    "QFilterNum",
    [F],
    [_QKEY, _NUMBER, _OP],
    output=F,
    skill="qualifier",
    hops=1,
    doc="Of the facts carried, those with a quantity as qualifier, in the unit, that compares so.",
    words="{qkey} {op} {value}",
    example='QueryName(QFilterNum(Relate(Find("Norway"), "shares border with", "forward"), '
    '"length", "700 kilometre", ">"))',
)
QFILTER_YEAR = declare(
    "QFilterYear",
    [F],
    [_QKEY, _YEAR, _OP],
    output=F,
    skill="qualifier",
    hops=1,
    doc="Of the facts carried, those with a year or day as qualifier that compares so.",
    words="{qkey} {op} {value}",
    example='QueryName(QFilterYear(Relate(Find("Norway"), "head of state", "forward"), '
    '"start time", "1991", "="))',
)
QFILTER_DATE = declare(
    "QFilterDate",
    [F],
    [_QKEY, _DATE, _OP],
    output=F,
    skill="qualifier",
    hops=1,
    doc="The same as QFilterYear; by custom the constant is a day.",
    words="{qkey} {op} {value}",
    example='QueryName(QFilterDate(Relate(Find("Norway"), "head of state", "forward"), '
    '"start time", "1991-01-17", "="))',
)
RELATE = declare(
    "Relate",
    [E],
    [("relation", Kind.RELATION), (_DIRECTION, Kind.DIRECTION)],
    output=F,
    skill="multi-hop",
    hops=1,
    doc="From every entity: forward the objects of the relation, backward the subjects; the facts.",
    words="{direction} {relation}",
    example='QueryName(Relate(Find("Norway"), "capital", "forward"))',
)
AND = declare(
    "And",
    [E, E],
    output=E,
    skill="logical",
    doc="The entities in both sets; keeps no facts.",
    words="in both",
    example='QueryName(And(Relate(Find("Norway"), "shares border with", "forward"), '
    'Relate(Find("Finland"), "shares border with", "forward")))',
)
OR = declare(
    "Or",
    [E, E],
    output=E,
    skill="logical",
    doc="The entities in either set; keeps no facts.",
    words="in either",
    example='Count(Or(Relate(Find("Norway"), "shares border with", "forward"), '
    'Relate(Find("Finland"), "shares border with", "forward")))',
)

# --- asking -----------------------------------------------------------------------------------

QUERY_NAME = declare(
    "QueryName",
    [E],
    output=Type.NAMES,
    published="What",
    doc="The names of the entities.",
    words="the names",
    example='QueryName(Relate(Find("Oslo"), "capital", "backward"))',
)
COUNT = declare(
    "Count",
    [E],
    output=Type.NUMBER,
    skill="count",
    doc="The number of different entities.",
    words="how many",
    example='Count(Relate(Find("Norway"), "shares border with", "forward"))',
)
QUERY_ATTR = declare(
    "QueryAttr",
    [E],
    [_KEY],
    output=V,
    hops=1,
    doc="The different values of the key.",
    words="{key}",
    example='QueryAttr(Find("Finland"), "date of independence")',
)
QUERY_ATTR_UNDER_CONDITION = declare(
    "QueryAttrUnderCondition",
    [E],
    [_KEY, _QKEY, ("qvalue", Kind.ANY_VALUE)],
    output=V,
    skill="qualifier",
    hops=2,
    doc="The different values of those facts of the key that have a qualifier equal to the value.",
    words="{key} where {qkey} = {qvalue}",
    example='QueryAttrUnderCondition(Find("Norway"), "population", "point in time", "2007")',
)
QUERY_RELATION = declare(
    "QueryRelation",
    [E, E],
    output=Type.RELATIONS,
    doc="The different relations that lead from an entity of the first set to one of the second.",
    words="how they relate",
    example='QueryRelation(Find("Norway"), Find("Oslo"))',
)
SELECT_BETWEEN = declare(
    "SelectBetween",
    [E, E],
    [_KEY, ("op", Kind.COMPARATIVE)],
    output=Type.NAMES,
    skill="comparison",
    hops=3,
    doc="The name of the entity with the greater or less quantity, in a unit that both sets have.",
    words="{op} {key}",
    example='SelectBetween(Find("Norway"), Find("Finland"), "area", "greater")',
)
SELECT_AMONG = declare(
    "SelectAmong",
    [E],
    [_KEY, ("op", Kind.EXTREME)],
    output=Type.NAMES,
    skill="comparison",
    hops=2,
    doc="The name of the entity with the extreme quantity, in the unit that most facts have.",
    words="{op} {key}",
    example='SelectAmong(FilterConcept(FindAll(), "sovereign state"), "area", "largest")',
)
VERIFY_STR = declare(
    "VerifyStr",
    [V],
    [_STRING],
    output=Type.TRUTH,
    skill="verify",
    hops=1,
    doc="Whether some value is the string.",
    words="is it {value}",
    example='VerifyStr(QueryAttr(Find("Norway"), "ISO 3166-1 alpha-2 code"), "NO")',
)
VERIFY_NUM = declare(
    "VerifyNum",
    [V],
    [_NUMBER, _OP],
    output=Type.TRUTH,
    skill="verify",
    hops=1,
    doc="Whether some value is a quantity in the unit that compares so.",
    words="is it {op} {value}",
    example='VerifyNum(QueryAttr(Find("Norway"), "area"), "300000 square kilometre", ">")',
)
VERIFY_YEAR = declare(
    "VerifyYear",
    [V],
    [_YEAR, _OP],
    output=Type.TRUTH,
    skill="verify",
    hops=1,
    doc="Whether some value is a year or day that compares so.",
    words="is it {op} {value}",
    example='VerifyYear(QueryAttr(Find("Finland"), "date of independence"), "1917", "=")',
)
VERIFY_DATE = declare(
    "VerifyDate",
    [V],
    [_DATE, _OP],
    output=Type.TRUTH,
    skill="verify",
    hops=1,
    doc="The same as VerifyYear; by custom the constant is a day.",
    words="is it {op} {value}",
    example='VerifyDate(QueryAttr(Find("Finland"), "date of independence"), "1918-01-01", "<")',
)
QUERY_ATTR_QUALIFIER = declare(
    "QueryAttrQualifier",
    [E],
    [_KEY, ("value", Kind.ANY_VALUE), _QKEY],
    output=Q,
    skill="qualifier",
    hops=2,
    doc="The different values of the qualifier on facts whose key and value are these.",
    words="{qkey} of {key} = {value}",
    example='QueryAttrQualifier(Find("Norway"), "population", "4627926", "point in time")',
)
QUERY_RELATION_QUALIFIER = declare(
    "QueryRelationQualifier",
    [E, E],
    [("relation", Kind.RELATION), _QKEY],
    output=Q,
    skill="qualifier",
    hops=1,
    doc="The different values of the qualifier on facts of the relation from the first to the "
    "second set.",
    words="{qkey} of {relation}",
    example='QueryRelationQualifier(Find("Norway"), Find("Harald V"), "head of state", '
    '"start time")',
)
