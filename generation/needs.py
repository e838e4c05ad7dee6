"""What a node must have for a rule to describe it, and which nodes have it.

Most rules that fail for a node fail for something that can be known beforehand: it has no number to
compare, its name is that of no other. A rule's needs are read off its program side.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntFlag, auto

import numpy as np
import numpy.typing as npt

from generation.drawing import FORMS
from generation.grammar import Grammar, Part, Pattern, Rule, Symbol, symbols
from generation.pools import Form, Pools
from kb import KnowledgeBase
from kopl import functions as f
from kopl.types import Kind


class Need(IntFlag):
    """Something that a node has or has not."""

    UNIQUE = auto()  # a name that no other node has
    NAMESAKES = auto()
    ENTITY = auto()  # it is no concept
    HEAD = auto()  # of relational facts
    TAIL = auto()
    STRING = auto()  # literal facts with such values
    QUANTITY = auto()
    TIME = auto()
    DATE = auto()
    QUALIFIED_STRING = auto()  # facts with such qualifiers
    QUALIFIED_QUANTITY = auto()
    QUALIFIED_TIME = auto()
    QUALIFIED_DATE = auto()


NOTHING = Need(0)
_VALUES: dict[Form, Need] = {
    "string": Need.STRING,
    "quantity": Need.QUANTITY,
    "time": Need.TIME,
    "date": Need.DATE,
}
_QUALIFIED: dict[Form, Need] = {
    form: Need[f"QUALIFIED_{need.name}"] for form, need in _VALUES.items()
}


def needs(part: Part) -> Need:
    """What a node must have so that a part of a program can be drawn to hold it."""
    if isinstance(part, Symbol):
        return NOTHING
    name, function = part.function.name, part.function
    if function is f.FIND:
        return Need.UNIQUE
    if name in FORMS:
        return _VALUES[FORMS[name]] | _beside(part.inputs[0])
    if function is f.FILTER_CONCEPT:
        return Need.ENTITY | _beside(part.inputs[0])
    if name.removeprefix("Q") in FORMS:
        return _QUALIFIED[FORMS[name.removeprefix("Q")]] | needs(part.inputs[0])
    if function is f.AND:
        return needs(part.inputs[0]) | _beside(part.inputs[1])
    if function is f.OR:
        return needs(part.inputs[0])
    if function is f.RELATE:
        ends = {"forward": Need.TAIL, "backward": Need.HEAD}
        direction = part.arguments[1]
        return ends[direction] if isinstance(direction, str) else NOTHING
    return NOTHING


def _beside(part: Part) -> Need:
    """The needs of what stands beside a condition: a name there is one that needs the condition."""
    is_name = isinstance(part, Pattern) and part.function is f.FIND
    return Need.NAMESAKES if is_name else needs(part)


def haves(pools: Pools) -> npt.NDArray[np.int32]:
    """For each node what it has, as a `Need`."""
    kb = pools.kb
    found = np.zeros(kb.node_count, np.int32)
    found[: kb.entity_count] |= int(Need.ENTITY)
    names = np.asarray(kb.arrays["node_name"])[: kb.node_count]
    _, at, counts = np.unique(names, return_inverse=True, return_counts=True)
    found |= np.where(counts[at] == 1, Need.UNIQUE, Need.NAMESAKES).astype(np.int32)
    found[kb.named("")] &= ~int(Need.UNIQUE | Need.NAMESAKES)
    heads, tails = kb.relational.subject, kb.relational.object
    found[heads] |= int(Need.HEAD)
    found[tails] |= int(Need.TAIL)
    for form, need in _VALUES.items():
        found[kb.literals.subject[pools.of_form[form][kb.literals.object]]] |= int(need)
        sets = pools.sets_with((None, form))
        found[kb.literals.subject[sets[kb.literals.qualifiers]]] |= int(_QUALIFIED[form])
        of_fact = sets[kb.relational.qualifiers]
        found[heads[of_fact]] |= int(_QUALIFIED[form])
        found[tails[of_fact]] |= int(_QUALIFIED[form])
    return found


def fitting(grammar: Grammar, kb: KnowledgeBase) -> Grammar:
    """The grammar without the rules that name relations or keys which a knowledge base lacks."""
    known = {
        Kind.RELATION: lambda text: kb.relation_number(text) >= 0,
        Kind.KEY: lambda text: kb.key_number(text) >= 0,
        Kind.QUALIFIER_KEY: lambda text: kb.key_number(text) >= 0,
    }

    def fits(part: Part) -> bool:
        if isinstance(part, Symbol):
            return True
        fixed = (
            known[kind](text)
            for text, (_, kind) in zip(part.arguments, part.function.arguments, strict=True)
            if isinstance(text, str) and kind in known
        )
        return all(fixed) and all(fits(inner) for inner in part.inputs)

    rules = {left: [r for r in group if fits(r.program)] for left, group in grammar.rules.items()}
    while True:
        left_over: dict[str, list[Rule]] = {
            left: [r for r in group if all(rules[s.left] for s in symbols(r.program))]
            for left, group in rules.items()
        }
        if left_over == rules:
            return replace(grammar, rules={left: tuple(group) for left, group in rules.items()})
        rules = left_over
