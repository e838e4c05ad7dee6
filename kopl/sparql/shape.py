"""The shape of queries: whether they say the same in whatever order their patterns stand."""

from __future__ import annotations

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


def is_orderless(group: Group, outside: frozenset[Var] = frozenset()) -> bool:
    """Whether the patterns of a group may be joined in another order, and groups be opened.

    So are those of translations. A query that was written by hand may hide variables from a filter
    by braces, or say something by the place of an OPTIONAL or a BIND. ``outside`` are the
    variables of the groups around it.
    """
    before: set[Var] = set()
    optional: set[Var] = set()
    required = [e for e in group.elements if not isinstance(e, Filter | Maybe | Bind)]
    of_required = set(variables(tuple(required)))
    maybes = tuple(e for e in group.elements if isinstance(e, Maybe))
    of_patterns = of_required | set(variables(maybes)) | outside
    for element in group.elements:
        own = set(variables(element))
        if isinstance(element, Maybe):
            # What it shares with others must be there before it; the rest is its own.
            shared = own & (of_required | optional | outside)
            if not shared <= before or not is_orderless(element.group, outside):
                return False
            optional |= own - before
        elif isinstance(element, Bind):
            # It can wait for the end of the group: what it reads is there, and no pattern joins it.
            read = set(variables(element.expression))
            if element.variable in of_patterns or not read & of_patterns <= before | optional:
                return False
        elif isinstance(element, Filter):
            patterns = tuple(e for e in group.elements if not isinstance(e, Filter))
            if not own <= set(variables(patterns)):
                return False
        else:
            before |= own
            others = tuple(e for e in group.elements if e is not element)
            if not _inside(element, outside | set(variables(others))):
                return False
    return True


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
