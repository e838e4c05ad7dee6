"""What there is instead, where a program names what is not there or finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kb import KnowledgeBase
from kb.arrays import Ids, unique
from kb.lookup import Facet, above, facets
from kb.store import NameKind, suggest
from kb.values import ValueReadError, read_quantity
from kopl.denotation import Located, Outcome
from kopl.functions import AND, meant
from kopl.program import Call, linked, post_order
from kopl.types import Kind
from kopl_base.errors import near_names

# How many things that exist are named where a call finds nothing, and nodes looked at for them.
NAMED, LOOKED_AT = 8, 200
# Strings among which near ones are looked for.
MOST_VALUES = 5_000

_KINDS: dict[Kind, tuple[str, tuple[NameKind, ...]]] = {
    Kind.NAME: ("entity or concept", ("entity", "concept")),
    Kind.CONCEPT: ("concept", ("concept",)),
    Kind.KEY: ("key", ("key",)),
    Kind.QUALIFIER_KEY: ("qualifier key", ("qualifier key",)),
    Kind.RELATION: ("relation", ("relation",)),
}


def hints_for(kb: KnowledgeBase, program: Call) -> list[str]:
    """One sentence for each unknown name, key, relation, concept or unit of the program."""
    return [sentence for sentence, _, _ in _hints(kb, program)]


def unknown_items(kb: KnowledgeBase, program: Call) -> list[str]:
    """The same without units, each behind the number of its call in post-order."""
    found = _hints(kb, program)
    return [f"call {at}: {sentence}" for sentence, kind, at in found if kind in _KINDS]


def _hints(kb: KnowledgeBase, program: Call) -> list[tuple[str, Kind, int]]:
    """The sentences, each once, with the kind of what is unknown and its first call's number."""
    hints: dict[str, tuple[Kind, int]] = {}
    for at, call in enumerate(post_order(program)):
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=False):
            for hint in _hint(kb, kind, text):
                hints.setdefault(hint, (kind, at))
    return [(hint, kind, at) for hint, (kind, at) in hints.items()]


def _hint(kb: KnowledgeBase, kind: Kind, text: str) -> list[str]:
    if kind is Kind.QUANTITY:
        try:
            text = read_quantity(text).unit
        except ValueReadError:
            return []
        return [] if text in kb.units else [_sentence(kb, "unit", text, ("unit",))]
    if kind not in _KINDS or _known(kb, kind, text):
        return []
    what, kinds = _KINDS[kind]
    return [_sentence(kb, what, text, kinds)]


def _known(kb: KnowledgeBase, kind: Kind, text: str) -> bool:
    if kind is Kind.NAME:
        return len(kb.named(text)) > 0
    if kind is Kind.CONCEPT:
        return any(not kb.is_entity(node) for node in kb.named(text).tolist())
    if kind is Kind.RELATION:
        return kb.relation_number(text) >= 0
    return text in (kb.attribute_keys if kind is Kind.KEY else kb.qualifier_keys)


def _sentence(kb: KnowledgeBase, what: str, text: str, kinds: tuple[NameKind, ...]) -> str:
    if (function := meant(text)) is not None:
        call = function.signature
        return f"the knowledge base has no {what} {text!r}; is the call {call} meant?"
    near = suggest(kb, text, kinds)
    asked = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"the knowledge base has no {what} {text!r}{asked}"


# --- why nothing is found -------------------------------------------------------------------------


@dataclass(frozen=True)
class Emptied:
    """The first call of a program that finds nothing: its number in post-order, and itself.

    ``text`` names its inputs by their numbers. ``there`` is what there is instead: near names of
    one that is not there, else what its input has; the values of ``key`` where only the value is
    another one.
    """

    number: int
    call: Call
    text: str
    there: tuple[str, ...] = ()
    key: str = ""

    @property
    def message(self) -> str:
        """What is so, in a sentence without the call."""
        if not self.call.inputs:
            near = f"; near: {', '.join(map(repr, self.there))}" if self.there else ""
            return f"nothing is called {self.call.arguments[0]!r}{near}"
        if self.call.function is AND:
            return "the two sets have nothing in common"
        if self.key:
            return f"its input has {self.key} {'; '.join(self.there)}"
        return f"what its input has: {'; '.join(self.there)}" if self.there else "it gives nothing"


def why_empty(
    kb: KnowledgeBase, program: Call, outcome: Callable[[Call], Outcome]
) -> Emptied | None:
    """Which call of a program is the first that finds nothing, and what there is instead.

    ``outcome`` gives what a call gave. None where every call finds something.
    """
    for number, (call, inputs) in enumerate(linked(program)):
        if not len(outcome(call)):
            parts = [f"#{at}" for at in inputs] + [repr(text) for text in call.arguments]
            text = f"{call.function.name}({', '.join(parts)})"
            key, there = _values(kb, call, outcome)
            return Emptied(number, call, text, tuple(there or _instead(kb, call, outcome)), key)
    return None


def _values(
    kb: KnowledgeBase, call: Call, outcome: Callable[[Call], Outcome]
) -> tuple[str, list[str]]:
    """Which key of a call its input has with other values only, and these; else nothing."""
    had = outcome(call.inputs[0]) if call.inputs else None
    names = [name for name, _ in call.function.arguments]
    wanted = dict(zip(names, call.arguments, strict=True))
    key, on = wanted.get("key"), wanted.get("qkey")
    text = wanted.get("value", wanted.get("qvalue"))
    if not isinstance(had, Located) or text is None:
        return "", []
    if key is not None:
        facts = kb.literals.about(had.ids, kb.key_number(key), kb.node_count)
        if "qvalue" in wanted and on is not None:
            values = kb.literals.qualifier_values(facts, kb.key_number(on))
            return (f"{key} with {on}", _summary(kb, values, text)) if len(values) else ("", [])
        values = unique(kb.literals.object[facts])
    elif on is not None and had.table is not None:
        key, values = on, had.table.qualifier_values(had.facts, kb.key_number(on))
    else:
        return "", []
    return (key, _summary(kb, values, text)) if key and len(values) else ("", [])


def _summary(kb: KnowledgeBase, values: Ids, wanted: str) -> list[str]:
    """What values there are, of numbers sorted, in few words: all of a few, else the strings
    nearest to the one that was wanted, and from where to where the numbers of each unit and the
    times go.
    """
    if len(values) <= NAMED:
        return kb.value_texts(values.tolist())
    table = kb.values
    strings = values[values < table.first_quantity]
    found = kb.value_texts(strings[:MOST_VALUES].tolist())
    found = list(dict.fromkeys([*near_names(wanted, found, NAMED, cutoff=60), *found]))[:NAMED]
    quantities = values[table.is_quantity(values)]
    ends = np.flatnonzero(np.diff(table.units_of(quantities))) + 1
    for group in [*np.split(quantities, ends), values[values >= table.first_time]]:
        if len(group):
            first, last = kb.value_texts([int(group[0]), int(group[-1])])
            found.append(first if len(group) == 1 else f"{first} to {last}")
    return found[:NAMED]


def _instead(kb: KnowledgeBase, call: Call, outcome: Callable[[Call], Outcome]) -> list[str]:
    if not call.inputs:
        return suggest(kb, call.arguments[0], ("entity", "concept")) if call.arguments else []
    had = outcome(call.inputs[0])
    if call.function is AND or not isinstance(had, Located):
        return []
    there = facets(kb, had.ids)
    names = [name for name, _ in call.function.arguments]
    wanted = dict(zip(names, call.arguments, strict=True))
    if "relation" in wanted:
        near = likeliest(wanted["relation"], [one for one in there if one.kind == "relation"])
        return [f"{one.name} ({one.direction})" for one in near]
    if "concept" in wanted:
        nodes = had.ids[:LOOKED_AT].tolist()
        return sorted({concept for node in nodes for concept in above(kb, node)})[:NAMED]
    if "qkey" in wanted and had.table is not None:
        texts = kb.relations if had.table is kb.relational else kb.keys
        of = {texts[number] for number in had.table.predicate[had.facts].tolist()}
        on = [one for one in there if one.kind == "qualifier" and one.of in of]
        return [f"{one.name} of {one.of}" for one in likeliest(wanted["qkey"], on)]
    near = likeliest(wanted.get("key", ""), [one for one in there if one.kind == "key"])
    return [f"{one.name} ({', '.join(one.forms[:2])}: {one.example})" for one in near]


def likeliest(wanted: str, found: list[Facet]) -> list[Facet]:
    """The likeliest of what things have: those called nearly so, then those of most things."""
    near = near_names(wanted, sorted({one.name for one in found}), NAMED, cutoff=60)
    first = [one for name in near for one in found if one.name == name]
    return list(dict.fromkeys([*first, *found]))[:NAMED]
