"""What may stand in a hole of a program, from what is there at that point.

The facts that the call at hand would read are worked out from what its inputs give; each argument
that is written already narrows them, and the suggestions are what the rest of them has. So nothing
that is suggested leads to an empty set. All follows from the declarations of the functions: which
arguments are keys, relations, values and what is compared with what.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from kb.arrays import EMPTY, Ids, intersect, unique
from kb.beginnings import Beginnings, matching
from kb.schema import ValueType
from kb.values import OPERATORS
from kopl import functions as f
from kopl.automaton import KEYS, TYPE_OF, types_without_key
from kopl.candidates import Tried, ValueText, grouped, years_of_days
from kopl.denotation import Located, Outcome, Values
from kopl.drafts import Draft, EditError, Path, Slot
from kopl.errors import LimitError, ProgramError
from kopl.executor import Executor
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call, post_order
from kopl.readable import (
    CONSTANTS,
    ROLES,
    Place,
    Readable,
    ReadFacts,
    Roles,
    ids_of,
    keys_of,
    of_type,
    unit_codes,
)
from kopl.types import Kind, Type

SuggestionKind = Literal[
    "function",
    "entity",
    "concept",
    "relation",
    "key",
    "value",
    "unit",
    "direction",
    "operator",
    "qualifier",
]
Scope = Literal["here", "schema"]

# Values that are tried with an operator, each for itself.
MOST_TRIED = 500

# The functions that generated questions have most, in that order; the others come behind them, as
# they are declared.
_USUAL = (
    f.FIND,
    f.RELATE,
    f.FILTER_CONCEPT,
    f.QUERY_NAME,
    f.FIND_ALL,
    f.QUERY_ATTR,
    f.AND,
    f.COUNT,
    f.QUERY_RELATION_QUALIFIER,
    f.FILTER_STR,
    f.SELECT_BETWEEN,
    f.SELECT_AMONG,
)
_RANK = {one: at for at, one in enumerate(dict.fromkeys([*_USUAL, *FUNCTIONS.values()]))}
_WORDS = frozenset({Kind.EXTREME, Kind.COMPARATIVE})
# Who compares days by custom, and is offered days before years.
_WITH_DAYS = (f.FILTER_DATE, f.QFILTER_DATE, f.VERIFY_DATE)


@dataclass(frozen=True)
class Suggestion:
    """Something that may stand in a hole.

    ``count`` says how many things have it, ``example`` what one of them has, ``also`` by which
    other name it was found. Where it decides other arguments of the call, as a relation decides
    the direction, ``sets`` has their numbers and texts.
    """

    text: str
    kind: SuggestionKind
    count: int | None = None
    example: str | None = None
    doc: str | None = None
    also: str | None = None
    sets: tuple[tuple[int, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object that services give."""
        sets = [{"index": index, "text": text} for index, text in self.sets]
        return {
            "text": self.text,
            "kind": self.kind,
            "count": self.count,
            "example": self.example,
            "doc": self.doc,
            "also": self.also,
            "sets": sets,
        }


@dataclass(frozen=True)
class Completion:
    """The first suggestions, the likeliest first, and how many there are in all."""

    suggestions: list[Suggestion]
    count: int


class Completer:
    """Suggests what may stand in holes of programs over one knowledge base.

    What is worked out once for the knowledge base is kept; it may be shared between threads.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor, self.kb = executor, executor.kb
        self.beginnings = Beginnings(executor.kb)
        # Whether there is anything to choose after a function of which nothing is written yet.
        self.bare: dict[tuple[Function, tuple[ValueType, ...]], bool] = {}

    def complete(
        self,
        draft: Draft,
        slot: Slot,
        typed: str = "",
        *,
        limit: int = 30,
        scope: Scope = "here",
        shared: dict[Call, Outcome] | None = None,
    ) -> Completion:
        """What may stand at a place of a draft and begins with, or holds, what is typed.

        Scope "here" gives what leads to something, as far as the call's inputs are whole; "schema"
        gives all that is of the right kind. ``shared`` keeps what calls gave. Raises EditError for
        a place that there is not, and LimitError.
        """
        run = _Run(self, draft, {} if shared is None else shared, scope == "here")
        if slot.kind == "argument":
            call = draft.at(slot.path)
            if call.function is None or not 0 <= slot.index < len(call.arguments):
                raise EditError(f"there is no argument {slot.index} at {[*slot.path]}")
            place = replace(run.place(slot.path, slot.index), typed=typed, limit=limit)
            return _cut(run.arguments(place), limit)
        path = slot.path if slot.kind != "input" else (*slot.path, slot.index)
        draft.at(path)
        return _cut(run.functions(path, typed, slot.kind == "wrap"), limit)


def _cut(found: tuple[list[Suggestion], int], limit: int) -> Completion:
    return Completion(found[0][:limit], found[1])


class _Run:
    """One request: what its calls gave is kept for all its questions."""

    def __init__(
        self, completer: Completer, draft: Draft, shared: dict[Call, Outcome], here: bool
    ) -> None:
        self.completer, self.kb, self.draft, self.here = completer, completer.kb, draft, here
        self._shared, self._begin = shared, time.perf_counter()
        self.facts = Readable(completer.kb)

    # --- what is there ------------------------------------------------------------------------

    def outcome(self, draft: Draft) -> Outcome | None:
        """What a part of a program gives; None where it has holes or does not type."""
        if not draft.is_whole or draft.problems():
            return None
        executor, outcome = self.completer.executor, None
        try:
            for number, call in enumerate(post_order(draft.call())):
                outcome = executor.outcome(call, self._shared)
                executor.enforce(outcome, self._begin, number)
        except LimitError:
            raise
        except ProgramError:
            return None
        return outcome

    def place(self, path: Path, index: int, draft: Draft | None = None) -> Place:
        """An argument of a call of the draft with all that is known there."""
        draft = draft or self.draft
        call = draft.at(path)
        assert call.function is not None
        inputs: tuple[Outcome | None, ...] = (None,) * len(call.inputs)
        wanted, arguments = None, call.arguments
        if not self.here:
            arguments = keys_of(call.function, arguments, index)
        else:
            inputs = tuple(self.outcome(one) for one in call.inputs)
            wanted = self.wanted(draft, path)
        types: tuple[ValueType, ...] = ()
        if path and call.function.output is Type.VALUES:
            above = draft.at(path[:-1]).function
            types = types_without_key(above) if above else ()
        return Place(call.function, inputs, arguments, index, wanted, types, draft=call)

    def wanted(self, draft: Draft, path: Path) -> Ids | None:
        """The nodes of which a call has to give one, by the other side of what takes two sets."""
        if not path:
            return None
        above = draft.at(path[:-1])
        function = above.function
        if function is None or function.arity != 2:
            return None
        other = self.outcome(above.inputs[1 - path[-1]])
        beyond = self.wanted(draft, path[:-1]) if function is f.AND else None
        if function is f.OR or not isinstance(other, Located):
            return beyond
        if function is f.AND:
            return other.ids if beyond is None else self.kb.intersect(other.ids, beyond)
        roles, table = ROLES[function], self.kb.relational
        if function.output in (Type.RELATIONS, Type.QUALIFIER_VALUES):
            first = path[-1] == 0
            facts = table.of_tails(other.ids) if first else table.of_subjects(other.ids)
            ends = (table.subject if first else table.object)[facts]
            rows = ReadFacts(self.kb, table, facts, ends, ends)
        else:
            sides = self.facts.quantities(other.ids)
            every = self.facts.quantities(self.kb.entities)
            kept = np.isin(unit_codes(every), unit_codes(sides))
            rows = every.those(kept)
        place = Place(function, (), above.arguments, -1)
        [rows] = self.facts.narrowed(place, roles, [rows])
        return unique(rows.gives)

    # --- suggesting arguments -----------------------------------------------------------------

    def arguments(self, place: Place) -> tuple[list[Suggestion], int]:
        """What may stand in an argument, the likeliest first, and how many there are."""
        kind, function = place.kind, place.function
        if kind is Kind.NAME:
            return self._names(place)
        if kind is Kind.CONCEPT:
            return self._concepts(place)
        if Type.VALUES in function.inputs:
            return self._compared(place)
        roles = ROLES[function]
        rows = self.facts.narrowed(place, roles, self.facts.sources(place, roles))
        if kind in KEYS or kind is Kind.RELATION:
            return self._items(place, roles, rows)
        if kind in CONSTANTS:
            return self._values(place, roles, rows)
        if kind is Kind.OPERATOR:
            return self._operators(place, roles, rows)
        return self._words(place, rows)

    def _names(self, place: Place) -> tuple[list[Suggestion], int]:
        kb, known = self.kb, self.completer.beginnings
        nodes, count = known.find(place.typed, place.limit, place.wanted)
        found: dict[str, Suggestion] = {}
        for node, called in nodes:
            name = kb.name_of(node)
            if not name or name in found:
                continue
            is_entity = kb.is_entity(node)
            above = kb.concepts_of(node) if is_entity else kb.parents(node)
            found[name] = Suggestion(
                name,
                "entity" if is_entity else "concept",
                known.facts(node),
                kb.name_of(above[0]) if above else None,
                also=called if called != name else None,
            )
        return [*found.values()], count

    def _concepts(self, place: Place) -> tuple[list[Suggestion], int]:
        kb = self.kb
        given = ids_of(place.inputs[0])
        nodes = given
        if place.wanted is not None:
            nodes = place.wanted if given is None else kb.intersect(given, place.wanted)
        if nodes is None:
            nodes = kb.entities
        counts = kb.concept_counts(nodes)
        # A name may be that of several concepts.
        by_name: dict[str, int] = {}
        for concept, count in counts.items():
            if name := kb.name_of(concept):
                by_name[name] = max(by_name.get(name, 0), count)
        if not self.here:
            names = (kb.name_of(one) for one in range(kb.entity_count, kb.node_count))
            by_name |= {name: 0 for name in names if name and name not in by_name}
        ranked = sorted(by_name, key=lambda name: (-by_name[name], name))
        close = sorted(matching(place.typed, ranked), key=lambda one: one[0])
        found = []
        for _, name in close[: place.limit]:
            inside = kb.intersect(nodes, kb.instances_of(name))
            example = kb.name_of(int(inside[0])) if len(inside) else None
            found.append(Suggestion(name, "concept", len(inside), example))
        return found, len(close)

    def _items(
        self, place: Place, roles: Roles, rows: list[ReadFacts]
    ) -> tuple[list[Suggestion], int]:
        """Keys, relations or qualifier keys that the facts have."""
        kb, kind = self.kb, place.kind
        of_qualifier = kind is Kind.QUALIFIER_KEY
        texts = kb.relations if kind is Kind.RELATION else kb.keys
        groups: dict[tuple[int, str], tuple[int, ReadFacts, int]] = {}
        for one in rows:
            keys = one.pair_keys if of_qualifier else one.table.predicate[one.facts]
            assert keys is not None
            direction = "" if of_qualifier else one.direction
            for number, count, first in grouped(keys, one.own):
                before = groups.get((number, direction), (0, one, first))
                groups[number, direction] = (before[0] + count, *before[1:])

        def rank(one: tuple[int, str]) -> tuple[int, int, str, str]:
            number, direction = one
            count, those, _ = groups[one]
            of_all = 0 if of_qualifier else len(those.table.of_predicate(number))
            return -count, -of_all, texts[number], direction

        ranked = sorted(groups, key=rank)
        labels = [
            _Label(texts[number], at) for at, (number, _) in enumerate(ranked) if texts[number]
        ]
        close = sorted(matching(place.typed, labels), key=lambda one: one[0])
        found = []
        for _, label in close[: place.limit]:
            number, direction = ranked[label.at]
            count, one, first = groups[number, direction]
            sets: tuple[tuple[int, str], ...] = ()
            if direction and roles.direction is not None and not place.written(roles.direction):
                sets = ((roles.direction, direction),)
            said: SuggestionKind = "qualifier" if of_qualifier else "key"
            if kind is Kind.RELATION:
                said = "relation"
            example, doc = self._example(one, first, of_qualifier), direction or None
            found.append(Suggestion(str(label), said, count, example, doc, sets=sets))
        return found, len(close)

    def _example(self, rows: ReadFacts, at: int, of_qualifier: bool) -> str:
        """What a fact has as value, or at its other end."""
        kb = self.kb
        if of_qualifier:
            assert rows.pair_values is not None
            return kb.value_texts([int(rows.pair_values[at])])[0]
        if rows.is_relational:
            return kb.name_of(int(rows.gives[at]))
        return kb.value_texts([int(rows.table.object[rows.facts[at]])])[0]

    def _operators(
        self, place: Place, roles: Roles, rows: list[ReadFacts]
    ) -> tuple[list[Suggestion], int]:
        found = []
        for word in place.kind.choices:
            there = self.facts.narrowed(
                replace(
                    place,
                    index=-1,
                    arguments=_with(place.arguments, place.index, word),
                ),
                roles,
                rows,
            )
            count = sum(len(unique(one.own)) for one in there)
            if count or not self.here:
                found.append(Suggestion(word, "operator", count))
        return _typed(found, place.typed)

    def _words(self, place: Place, rows: list[ReadFacts]) -> tuple[list[Suggestion], int]:
        found = []
        for word in place.kind.choices:
            there = [one for one in rows if not one.direction or one.direction == word]
            count = sum(len(unique(one.own)) for one in there)
            if count or not self.here:
                said: SuggestionKind = "operator" if place.kind in _WORDS else "direction"
                example = None
                if said == "direction":
                    first = next((one for one in there if len(one.facts)), None)
                    example = self._example(first, 0, False) if first else None
                found.append(Suggestion(word, said, count, example))
        return _typed(found, place.typed)

    # --- suggesting values --------------------------------------------------------------------

    def _values(
        self, place: Place, roles: Roles, rows: list[ReadFacts]
    ) -> tuple[list[Suggestion], int]:
        of_qualifier = place.index == roles.qualified
        numbers = [
            cast(Ids, one.pair_values) if of_qualifier else one.table.object[one.facts]
            for one in rows
        ]
        values = np.concatenate([*numbers, EMPTY])
        own = np.concatenate([*(one.own for one in rows), EMPTY])
        operators: Sequence[str] = ("=",)
        if roles.operator is not None:
            written = place.written(roles.operator)
            operators = OPERATORS if written is None else (written,)
        return self._of_values(place, values, own, operators)

    def _compared(self, place: Place) -> tuple[list[Suggestion], int]:
        """Values and operators of what compares the values of its input."""
        kb, [given] = self.kb, place.inputs
        if place.kind is Kind.OPERATOR:
            return _typed([Suggestion(word, "operator") for word in OPERATORS], place.typed)
        values = EMPTY
        if isinstance(given, Values):
            values = given.numbers
        elif given is None and (below := place.draft.inputs[0]).function is not None:
            # What it compares is not known, but it may be of which key.
            at = ROLES[below.function].predicate
            key = kb.key_number(below.arguments[at] or "") if at is not None else -1
            if key >= 0:
                values = kb.literals.object[kb.literals.of_predicate(key)]
        return self._of_values(place, values, None, ())

    def _of_values(
        self, place: Place, values: Ids, own: Ids | None, operators: Sequence[str]
    ) -> tuple[list[Suggestion], int]:
        """Values by how they begin, and what is typed with the units of the values.

        With operators, those for which one of them leaves something.
        """
        kb, typed, type = self.kb, place.typed.strip(), TYPE_OF.get(place.kind)
        kept = of_type(kb, values, type)
        values = values[kept]
        known = unique(values)
        tried = Tried(kb, known, operators if self.here else ())
        candidates = years_of_days(kb, values) if type == "time" else []
        groups = grouped(values, values if own is None else own[kept])
        groups.sort(key=lambda one: (-one[1], one[0]))
        if type != "time" and not typed and tried.all_fit:
            groups, count = groups[: place.limit], len(groups)
        else:
            count = 0
        texts = kb.value_texts([number for number, _, _ in groups])
        owners = None if own is None else own[kept]
        listed = [
            ValueText(text, number, size, None if owners is None else int(owners[first]))
            for text, (number, size, first) in zip(texts, groups, strict=True)
        ]
        days_first = place.function in _WITH_DAYS
        listed = [*listed, *candidates] if days_first else [*candidates, *listed]
        listed += tried.typed_values(place, typed, set(listed))
        near = type is None or type == "string"
        # Nobody looks for a number by digits from its middle.
        close = [
            one for one in matching(typed, listed, near=near) if one[1] and (near or one[0] < 3)
        ]
        close.sort(key=lambda one: one[0])
        found: list[Suggestion] = []
        for at, (_, value) in enumerate(close):
            if at >= MOST_TRIED or (tried.all_fit and len(found) >= place.limit):
                break
            if tried.fits(place, value):
                owner = None if value.owner is None else kb.name_of(value.owner)
                with_unit = value.is_typed and type == "quantity"
                said: SuggestionKind = "unit" if with_unit else "value"
                found.append(Suggestion(str(value), said, value.things or None, owner))
        if tried.all_fit:
            return found, max(count, len(close))
        return found, len(found) + max(0, len(close) - MOST_TRIED)

    # --- suggesting functions -----------------------------------------------------------------

    def functions(self, path: Path, typed: str, wrap: bool) -> tuple[list[Suggestion], int]:
        """The functions that type at a path, and after which something can be chosen.

        They stand there in place of what is there, whose inputs they keep; or around it.
        """
        draft, old = self.draft, self.draft.at(path)
        kept = sum(not one.is_hole for one in old.inputs)
        above = draft.at(path[:-1]).function if path else None
        found = []
        for function in FUNCTIONS.values():
            if above is not None and not above.inputs[path[-1]].accepts(function.output):
                continue
            if wrap:
                given = old.function.output if old.function else None
                if not any(given is None or one.accepts(given) for one in function.inputs):
                    continue
                new = draft.wrapped(path, function)
            else:
                new = draft.with_function(path, function)
                left = sum(not one.is_hole for one in new.at(path).inputs)
                if left < kept or function is old.function:
                    continue
            if not self.here or self.leads_on(new, path):
                example = function.signature
                found.append(Suggestion(function.name, "function", None, example, function.doc))
        # What needs nothing comes first where nothing is; what takes what is there where it is.
        bare = not wrap and not kept

        def rank(one: Suggestion) -> tuple[bool, int]:
            function = FUNCTIONS[one.text]
            return (function.arity > 0) == bare, _RANK[function]

        found.sort(key=rank)
        # One that is there and does not fit is not written wrongly.
        return _typed(found, typed, near=not matching(typed, FUNCTIONS, near=False))

    def leads_on(self, draft: Draft, path: Path) -> bool:
        """Whether a call of a draft gives something, or something may be written in its holes."""
        call = draft.at(path)
        assert call.function is not None
        if call.is_whole:
            outcome = self.outcome(call)
            if isinstance(outcome, Located) and (wanted := self.wanted(draft, path)) is not None:
                return len(intersect(outcome.ids, wanted)) > 0
            return outcome is not None and len(outcome) > 0
        if call.function is not f.OR:
            for one in call.inputs:
                outcome = self.outcome(one)
                if outcome is not None and not len(outcome):
                    return False
        if None not in call.arguments:
            return True
        place = replace(self.place(path, call.arguments.index(None), draft), limit=1)
        known_parts = (*place.inputs, *call.arguments, place.wanted)
        if any(one is not None for one in known_parts):
            return self._has_some(place)
        known, key = self.completer.bare, (call.function, place.types)
        if key not in known:
            known[key] = self._has_some(place)
        return known[key]

    def _has_some(self, place: Place) -> bool:
        """Whether there is anything to choose for an argument."""
        function = place.function
        if place.kind is Kind.NAME:
            return self.kb.node_count > 0 if place.wanted is None else len(place.wanted) > 0
        if place.kind is Kind.CONCEPT or Type.VALUES in function.inputs:
            given = place.inputs[0]
            if place.kind is not Kind.CONCEPT and not isinstance(given, Values):
                return True
            return self.arguments(place)[1] > 0
        roles = ROLES[function]
        rows = self.facts.narrowed(place, roles, self.facts.sources(place, roles))
        return any(len(one.facts) for one in rows)


# --- small parts ------------------------------------------------------------------------------


class _Label(str):
    """A text with the number of what it names."""

    at: int

    def __new__(cls, text: str, at: int) -> _Label:
        made = super().__new__(cls, text)
        made.at = at
        return made


def _typed(
    found: list[Suggestion], typed: str, *, near: bool = True
) -> tuple[list[Suggestion], int]:
    """Those whose texts hold what is typed, the nearest first."""
    labels = [_Label(one.text, at) for at, one in enumerate(found)]
    close = sorted(matching(typed, labels, near=near), key=lambda one: one[0])
    return [found[label.at] for _, label in close], len(close)


def _with(texts: tuple[str | None, ...], index: int, text: str) -> tuple[str | None, ...]:
    return (*texts[:index], text, *texts[index + 1 :])
