"""What a node must have for a part of a program, and the ways in which functions are drawn.

A way gets a call with gaps and the node that its result must hold, or none yet; it draws the
arguments from facts, and then the inputs by the recursion that its source was given. Relations and
keys are drawn before their facts, so that rare ones get their share. Functions that locate things
have theirs in `generation.locating`, those that ask in `generation.asking`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeAlias

from generation.grammar import ONE, Part, Pattern, Rule, Symbol
from generation.pools import (
    OF_QUALIFIERS,
    OF_VALUES,
    Capability,
    Form,
)
from generation.scope import DrawnPart, Goal, Scope, Source
from kopl import functions as f
from kopl.functions import Function

_VAGUE = re.compile(r"\bthe one\b")

Way: TypeAlias = Callable[[Source, Pattern, Scope, Goal], DrawnPart]
FORMS: dict[str, Form] = {
    "FilterStr": "string",
    "FilterNum": "quantity",
    "FilterYear": "time",
    "FilterDate": "date",
}


class Ways(dict[str, Way]):
    """The ways of some functions, by the functions' names."""

    def draw(self, *functions: Function) -> Callable[[Way], Way]:
        """Register how functions are drawn."""

        def register(way: Way) -> Way:
            if list(inspect.signature(way).parameters) != ["source", "pattern", "scope", "goal"]:
                raise TypeError(f"{way.__name__} is no way to draw")
            self.update({function.name: way for function in functions})
            return way

        return register


def is_everything(part: Part) -> bool:
    """Whether a part is FindAll."""
    return isinstance(part, Pattern) and part.function is f.FIND_ALL


def is_name(part: Part) -> bool:
    """Whether a part is Find; beside a condition it is a name that needs the condition."""
    return isinstance(part, Pattern) and part.function is f.FIND


# --- what a node must have -------------------------------------------------------------------


def requirements(part: Part) -> Capability:
    """What a node must have so that a part of a program can be drawn to hold it.

    Most rules that fail for a node fail for something that can be known beforehand: it has no
    number to compare, its name is that of no other.
    """
    if isinstance(part, Symbol):
        return Capability(0)
    name, function = part.function.name, part.function
    if function is f.FIND:
        return Capability.UNIQUE
    if name in FORMS:
        return OF_VALUES[FORMS[name]] | _beside(part.inputs[0])
    if function is f.FILTER_CONCEPT:
        return Capability.NOUN | _beside(part.inputs[0])
    if name.removeprefix("Q") in FORMS:
        return OF_QUALIFIERS[FORMS[name.removeprefix("Q")]] | requirements(part.inputs[0])
    if function is f.AND:
        return requirements(part.inputs[0]) | _beside(part.inputs[1])
    if function is f.OR:
        return requirements(part.inputs[0])
    if function is f.RELATE:
        ends = {"forward": Capability.TAIL, "backward": Capability.HEAD}
        direction = part.arguments[1]
        return ends[direction] if isinstance(direction, str) else Capability(0)
    return Capability(0)


def required_for(rule: Rule) -> Capability:
    """What a node must have for a rule.

    A rule that can only say "the one ..." is for what has no noun.
    """
    texts = rule.texts.get(ONE, ())
    pieces = ([piece for piece in text if isinstance(piece, str)] for text in texts)
    if texts and all(any(_VAGUE.search(piece) for piece in found) for found in pieces):
        return requirements(rule.program) | Capability.NO_NOUN
    return requirements(rule.program)


def _beside(part: Part) -> Capability:
    """The requirements of what stands beside a condition."""
    return Capability.NAMESAKES if is_name(part) else requirements(part)
