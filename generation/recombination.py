"""Longer training questions from shorter ones: descriptions put where other questions have names.

"What is the capital of Norway?" and "What is the country that borders Sweden?" give "What is the
capital of the country that borders Sweden?"; two descriptions of one kind of thing give one with
both clauses, and two questions for the number of such things one with either or both. Questions of
a parser's training part alone are used, as in the data recombination of Jia and Liang (ACL 2016).
What is made has a program that types; whether it has an answer is not looked at, as parsers learn
programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from kopl.example import Example
from kopl.functions import AND, COUNT, FILTER_CONCEPT, FIND, OR, QUERY_NAME
from kopl.program import Call, post_order
from kopl.traits import names_in, with_found
from kopl.typecheck import is_well_typed

# A description is taken from a question that asks for nothing but a name.
_ASKED = re.compile(r"(?:What|Who) is (?:the name of )?(the [^,;?]+)\?")
_CLAUSES = re.compile(r"the (?P<head>.+?) (?P<clauses>(?:that|who|whose) .+)")
_COUNTED = re.compile(
    r"(?P<before>(?:What is the (?:total )?number of|How many) [^,;()]+?) "
    r"(?P<clauses>(?:that|who|whose) [^;?]+)\?"
)
# What takes a described thing as it takes a named one; others word names in other ways.
_HOSTS = (
    "Relate",
    "QueryAttr",
    "QueryAttrUnderCondition",
    "QueryAttrQualifier",
    "QueryRelation",
    "QueryRelationQualifier",
    "SelectBetween",
)
ANY = "one"
# Longer programs than this are not made.
MOST_CALLS = 11
# The share of new questions that ask for a number, and of these that have "or".
COUNTED, EITHER = 0.25, 0.4
# The share of descriptions that are tried with the clauses of a second one.
JOINED = 0.5
# How often a question and a description that do not fit are drawn before giving up.
PATIENCE = 50


@dataclass(frozen=True)
class Description:
    """A noun phrase, "the …", and the program of what it describes."""

    text: str
    program: Call


def recombined(examples: Sequence[Example], count: int, seed: int) -> Iterator[Example]:
    """At most so many new questions; the same for the same examples, count and seed."""
    random = Random(f"recombined/{seed}")
    found = list(descriptions(examples))
    hosts = [example for example in examples if any(_places(example))]
    counts = _counts(examples)
    if not (found and hosts) and not counts:
        return
    made = failed = 0
    while made < count and failed < PATIENCE * (made + 1):
        if counts and (not hosts or not found or random.random() < COUNTED):
            example: Example | None = counted(*random.choice(counts), random)
        else:
            example = _described(found, hosts, random)
        if (
            example is None
            or example.program.size > MOST_CALLS
            or not is_well_typed(example.program)
        ):
            failed += 1
            continue
        made += 1
        yield example


def _described(
    found: Sequence[Description], hosts: Sequence[Example], random: Random
) -> Example | None:
    """A question with a description, or with two that are joined, for a name."""
    description: Description | None = random.choice(found)
    if description is not None and random.random() < JOINED:
        description = joined(description, random.choice(found))
    if description is None:
        return None
    return substituted(random.choice(hosts), description, random)


def _counts(examples: Iterable[Example]) -> list[tuple[str, list[Description]]]:
    """Questions for a number: how each begins, and the clauses of all that begin so."""
    groups: dict[str, list[Description]] = {}
    for example in examples:
        match = _COUNTED.fullmatch(example.question)
        if match and example.program.function is COUNT:
            description = Description(match["clauses"], example.program.inputs[0])
            groups.setdefault(match["before"], []).append(description)
    return [(before, group) for before, group in sorted(groups.items()) if len(group) > 1]


def counted(before: str, group: Sequence[Description], random: Random) -> Example | None:
    """A question for the number of what has the clauses of two of a group, or one of them."""
    one, other = random.sample(list(group), 2)
    function, word = (OR, "or") if random.random() < EITHER else (AND, "and")
    parts, concepts = [], set()
    for part in (one.program, other.program):
        is_filter = part.function is FILTER_CONCEPT
        concepts.add(part.arguments if is_filter else ())
        parts.append(part.inputs[0] if is_filter else part)
    if len(concepts) > 1 or one == other:
        return None
    program = Call(function, tuple(parts), ())
    for concept in concepts - {()}:
        program = Call(FILTER_CONCEPT, (program,), concept)
    question = f"{before} {one.text} {word} {other.text}?"
    return Example(question, Call(COUNT, (program,), ()))


def descriptions(examples: Iterable[Example]) -> Iterator[Description]:
    """The descriptions in questions for names."""
    for example in examples:
        match = _ASKED.fullmatch(example.question)
        if not match or example.program.function is not QUERY_NAME:
            continue
        described = example.program.inputs[0]
        if described.function is not FIND:
            yield Description(match[1], described)


def joined(one: Description, other: Description) -> Description | None:
    """What both describe, "the country that … and whose …"; None where they do not fit."""
    first, second = _CLAUSES.fullmatch(one.text), _CLAUSES.fullmatch(other.text)
    if not first or not second or one == other:
        return None
    concept = next((match["head"] for match in (first, second) if match["head"] != ANY), None)
    parts = []
    for match, described in ((first, one.program), (second, other.program)):
        if match["head"] == ANY:
            parts.append(described)
        elif match["head"] == concept and _is_of(described, concept):
            parts.append(described.inputs[0])
        else:
            return None
    program = Call(AND, tuple(parts), ())
    if concept is not None:
        program = Call(FILTER_CONCEPT, (program,), (concept,))
    text = f"the {concept or ANY} {first['clauses']} and {second['clauses']}"
    return Description(text, program)


def _is_of(program: Call, concept: str) -> bool:
    return program.function is FILTER_CONCEPT and program.arguments == (concept,)


def substituted(example: Example, description: Description, random: Random) -> Example | None:
    """An example with a description in the place of one of its names; None where none fits."""
    places = list(_places(example))
    if not places:
        return None
    name, begin, end = random.choice(places)
    text = description.text if begin else description.text[:1].upper() + description.text[1:]
    question = example.question[:begin] + text + example.question[end:]
    program = with_found(example.program, {name: description.program})
    return Example(question, program)


def _places(example: Example) -> Iterator[tuple[str, int, int]]:
    """The names that a description may take the place of, with their places in the question."""
    calls = list(post_order(example.program))
    named = names_in(example.program)
    for call in calls:
        if call.function.name not in _HOSTS:
            continue
        for given in call.inputs:
            if given.function is not FIND or named.count(name := given.arguments[0]) > 1:
                continue
            pattern = rf"(?<!\w)(?:[Tt]he )?{re.escape(name)}(?!\w|['’(]| \()"
            found = list(re.finditer(pattern, example.question))
            if len(found) == 1 and example.question.count(name) == 1:
                yield name, *found[0].span()
