"""The shape of queries: whether they say the same in whatever order their patterns stand."""

from __future__ import annotations

from collections.abc import Sequence

from kopl.sparql.ast import (
    Bind,
    Brackets,
    Element,
    Filter,
    Group,
    Maybe,
    Named,
    SubSelect,
    Triple,
    Union,
    Var,
    variables,
    walk,
)

_PLAIN = (Triple, Brackets)


def is_orderless(group: Group, outside: frozenset[Var] = frozenset()) -> bool:
    """Whether the patterns of a group may be joined in another order, and groups be opened.

    So are those of translations. A query that was written by hand may hide variables from a filter
    by braces, or say something by the place of an OPTIONAL or a BIND. ``outside`` are the
    variables of the groups around it.
    """
    elements = group.elements
    if all(isinstance(element, _PLAIN) for element in elements):
        return True
    own = [set(variables(element)) for element in elements]
    if all(isinstance(element, (*_PLAIN, Filter)) for element in elements):
        return _filters_see(elements, own)
    optional: set[Var] = set()
    of_required: set[Var] = set()
    of_patterns: set[Var] = set(outside)
    for element, names in zip(elements, own, strict=True):
        if not isinstance(element, Filter | Bind):
            of_patterns |= names
            if not isinstance(element, Maybe):
                of_required |= names
    before: set[Var] = set()
    for place, (element, names) in enumerate(zip(elements, own, strict=True)):
        if isinstance(element, Maybe):
            # What it shares with others must be there before it; the rest is its own.
            shared = names & (of_required | optional | outside)
            if not shared <= before or not is_orderless(element.group, outside):
                return False
            optional |= names - before
        elif isinstance(element, Bind):
            # It can wait for the end of the group: what it reads is there, and no pattern joins it.
            read = set(variables(element.expression))
            if element.variable in of_patterns or not read & of_patterns <= before | optional:
                return False
        elif not isinstance(element, Filter):
            before |= names
            if not isinstance(element, _PLAIN):
                others = [other for at, other in enumerate(own) if at != place]
                if not _inside(element, outside.union(*others)):
                    return False
    return _filters_see(elements, own)


def _filters_see(elements: Sequence[Element], own: Sequence[set[Var]]) -> bool:
    """Whether every filter speaks of what is said beside it only."""
    of_filters: set[Var] = set()
    of_others: set[Var] = set()
    for element, names in zip(elements, own, strict=True):
        if isinstance(element, Filter):
            of_filters |= names
        else:
            of_others |= names
    return of_filters <= of_others


def _inside(element: Element, outside: frozenset[Var]) -> bool:
    if isinstance(element, Group):
        if any(isinstance(e, Filter | Maybe | Bind) for e in element.elements):
            return False
        return is_orderless(element, outside)
    if isinstance(element, Union):
        # What a query inside a branch works out cannot be known before it.
        if any(part.variable in outside for part in walk(element) if isinstance(part, Named)):
            return False
        return all(is_orderless(branch, outside) for branch in element.branches)
    if isinstance(element, SubSelect):
        return is_orderless(element.query.where)
    return isinstance(element, Triple | Brackets)
