"""Turns nodes and facts, as they come, into the columns and indexes of a `KnowledgeBase`.

Used by the builder and by every reader. Everything is appended to flat integer columns with
provisional numbers; `Assembler.finish` sorts strings, values and facts, merges the two records of
a relational fact, drops what dangles and closes the concept hierarchy.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from kb.arrays import EMPTY, Ids, offsets_of
from kb.facts import Array, table_arrays
from kb.hierarchy import hierarchy_arrays
from kb.problems import Problems
from kb.store import KnowledgeBase, normalise_name
from kb.strings import string_arrays
from kb.values import Quantity, Value
from kb.valuetable import time_code

# A value while it is being collected: a string, (unit, number) or the code of a time.
RawValue = str | tuple[str, float] | int
RawQualifiers = Iterable[tuple[str, RawValue]]
Columns = tuple[Ids, Ids, Ids, Ids]

UNDEFINED, ENTITY, CONCEPT = 0, 1, 2
HEAD, TAIL = 0, 1


def raw_value(value: Value) -> RawValue:
    """The form in which the assembler keeps a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, Quantity):
        return (value.unit, value.number)
    return time_code(value)


class Assembler:
    """Collects nodes and facts in any order; `finish` gives the knowledge base.

    Ids may be used before they are defined. Problems go to ``problems``.
    """

    def __init__(self, problems: Problems | None = None) -> None:
        self.problems = problems if problems is not None else Problems()
        self._nodes: dict[str, int] = {}
        self._kinds = bytearray()
        self._names: list[str] = []
        self._defined = array("i")
        self._links_from, self._links_to = array("i"), array("i")
        self._texts: dict[str, int] = {}
        self._values: dict[RawValue, int] = {}
        self._qualifier_sets: dict[tuple[int, ...], int] = {(): 0}
        self._literal = [array("i") for _ in range(4)]  # entity, key, value, qualifiers
        self._relation = [array("i") for _ in range(4)]  # head, relation, tail, qualifiers
        self._recorded_at = array("b")

    # --- collecting --------------------------------------------------------------------------

    def define(self, id: str, kind: int, name: str, links: Iterable[str], place: str) -> int:
        """Define an entity or concept; returns its provisional number, or -1 when refused."""
        number = self._node(id)
        if known := self._kinds[number]:
            what = "an entity and a concept" if known != kind else "defined twice"
            self.problems.error("duplicate-id", place, f"the id {id!r} is {what}")
            return -1
        if not id:
            self.problems.warning("empty-id", place, "the id is empty")
        name = normalise_name(name)
        if not name:
            self.problems.warning("empty-name", place, f"{id!r} has an empty name")
        self._kinds[number] = kind
        self._names[number] = name
        self._defined.append(number)
        for link in links:
            self._links_from.append(number)
            self._links_to.append(self._node(link))
        return number

    def literal(self, entity: int, key: str, value: RawValue, qualifiers: RawQualifiers) -> None:
        """Add a literal fact of an entity (by provisional number)."""
        entities, keys, values, sets = self._literal
        entities.append(entity)
        keys.append(self._text(key))
        values.append(self._value(value))
        sets.append(self._qualifiers(qualifiers))

    def relational(
        self, owner: int, relation: str, forward: bool, other: str, qualifiers: RawQualifiers
    ) -> None:
        """Add a relational fact as it stands at its owner: forward, the owner is the head."""
        node = self._node(other)
        heads, relations, tails, sets = self._relation
        heads.append(owner if forward else node)
        relations.append(self._text(relation))
        tails.append(node if forward else owner)
        sets.append(self._qualifiers(qualifiers))
        self._recorded_at.append(HEAD if forward else TAIL)

    def _node(self, id: str) -> int:
        number = self._nodes.get(id)
        if number is None:
            number = self._nodes[id] = len(self._nodes)
            self._kinds.append(UNDEFINED)
            self._names.append("")
        return number

    def node(self, id: str) -> int:
        """The provisional number of an id (new or known)."""
        return self._node(id)

    def kind(self, id: str) -> int:
        """UNDEFINED, ENTITY or CONCEPT."""
        number = self._nodes.get(id)
        return UNDEFINED if number is None else self._kinds[number]

    def _text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = len(self._texts)
        return number

    def _value(self, value: RawValue) -> int:
        number = self._values.get(value)
        if number is None:
            number = self._values[value] = len(self._values)
        return number

    def _qualifiers(self, pairs: RawQualifiers) -> int:
        numbers: list[int] = []
        for key, value in pairs:
            numbers.append(self._text(key))
            numbers.append(self._value(value))
        wanted = tuple(numbers)
        number = self._qualifier_sets.get(wanted)
        if number is None:
            number = self._qualifier_sets[wanted] = len(self._qualifier_sets)
        return number

    # --- finishing ---------------------------------------------------------------------------

    def finish(self) -> KnowledgeBase:
        """The knowledge base; the assembler is empty afterwards.

        Equal content gives equal columns, whatever the order in which it came: numbers are given
        to what is left after merging and dropping, in the order of the nodes and their records.
        """
        arrays: dict[str, Array] = {}
        defined = np.array(self._defined, np.int32)
        kinds = np.frombuffer(bytes(self._kinds), np.uint8)
        order = np.concatenate(
            [defined[kinds[defined] == ENTITY], defined[kinds[defined] == CONCEPT]]
        ).astype(np.int32)
        entities, nodes = int((kinds[defined] == ENTITY).sum()), len(order)
        final = np.full(len(kinds), -1, np.int32)  # provisional number -> node
        final[order] = np.arange(nodes, dtype=np.int32)

        self._check_hierarchy(final, kinds)
        literals = self._sorted_literals(final)
        relations, orders = self._merged_relations(self._live_relations(final))
        sets = self._used_sets(np.concatenate([literals[3], relations[3]]))
        text_number, value_number = self._finish_texts_and_values(
            arrays, order, literals, relations, sets
        )
        key_of, relation_of = self._finish_schema(arrays, text_number, literals, relations, sets)
        self._finish_nodes(arrays, order, entities)
        set_of = self._finish_qualifiers(arrays, sets, key_of, value_number)
        for prefix, (subject, predicate, object_, used) in (
            ("literal", (literals[0], key_of[literals[1]], value_number[literals[2]], literals[3])),
            ("relation", (relations[0], relation_of[relations[1]], relations[2], relations[3])),
        ):
            predicates = len(arrays["key_text" if prefix == "literal" else "relation_text"])
            arrays |= table_arrays(
                prefix, subject, predicate, object_, set_of[used], nodes, predicates
            )
        arrays["relation_head_order"], arrays["relation_tail_order"] = orders
        by_tail = np.argsort(relations[2], kind="stable").astype(np.int32)
        arrays["relation_by_tail"] = by_tail
        arrays["relation_tail_starts"] = offsets_of(relations[2][by_tail], nodes)
        self.__init__(self.problems)  # type: ignore[misc]
        for column in arrays.values():
            column.setflags(write=False)
        return KnowledgeBase(arrays, entities)

    def _id_texts(self) -> list[str]:
        return list(self._nodes)

    def _check_hierarchy(self, final: Ids, kinds: npt.NDArray[np.uint8]) -> None:
        """Drop links to nodes that are not concepts, with a warning each."""
        source, target = np.array(self._links_from, np.int32), np.array(self._links_to, np.int32)
        bad = np.flatnonzero(kinds[target] != CONCEPT) if len(target) else EMPTY
        if len(bad):
            ids = self._id_texts()
            for at in bad.tolist():
                owner, link = ids[source[at]], ids[target[at]]
                field = "subclassOf" if kinds[source[at]] == CONCEPT else "instanceOf"
                group = "concepts" if field == "subclassOf" else "entities"
                why = "an entity" if kinds[target[at]] == ENTITY else "not defined"
                self.problems.warning(
                    "dangling-id",
                    f"{group}/{owner}/{field}",
                    f"{link!r} is {why}, a concept was expected; the link is dropped",
                )
        keep = np.setdiff1d(np.arange(len(target)), bad)
        self._link_source, self._link_target = final[source[keep]], final[target[keep]]

    def _live_relations(self, final: Ids) -> list[Ids]:
        """The relational columns with final node numbers, without the facts that dangle."""
        heads, relations, tails, sets = (np.array(column, np.int32) for column in self._relation)
        at = np.array(self._recorded_at, np.int8)
        order = np.arange(len(heads), dtype=np.int32)
        if len(heads) == 0:
            return [EMPTY] * 6
        live = (final[heads] >= 0) & (final[tails] >= 0)
        if not live.all():
            ids = self._id_texts()
            texts = list(self._texts)
            for fact in np.flatnonzero(~live).tolist():
                ends = (heads[fact], tails[fact])
                owner, other = ends if at[fact] == HEAD else ends[::-1]
                group = "concepts" if self._kinds[owner] == CONCEPT else "entities"
                self.problems.warning(
                    "dangling-id",
                    f"{group}/{ids[owner]}/relations/{texts[relations[fact]]}",
                    f"the object {ids[other]!r} is not defined; the fact is dropped",
                )
        return [
            final[heads[live]],
            relations[live],
            final[tails[live]],
            sets[live],
            at[live].astype(np.int32),
            order[live],
        ]

    def _sorted_literals(self, final: Ids) -> Columns:
        """The literal columns with final subjects, sorted by them."""
        entity, key, value, sets = (np.array(column, np.int32) for column in self._literal)
        subject = final[entity] if len(entity) else EMPTY
        by = np.argsort(subject, kind="stable")
        return subject[by], key[by], value[by], sets[by]

    def _merged_relations(self, records: list[Ids]) -> tuple[Columns, tuple[Ids, Ids]]:
        """Facts from records: equal head, relation, tail and set of qualifiers are one fact.

        Besides the columns come the places of each fact among the records of its head and of its
        tail, -1 where it was not recorded.
        """
        head, relation, tail, sets, recorded_at, order = records
        if len(head) == 0:
            return (EMPTY, EMPTY, EMPTY, EMPTY), (EMPTY, EMPTY)
        same = self._canonical_sets()[sets]
        by = np.lexsort((order, recorded_at, same, tail, relation, head))
        head, relation, tail, sets, same = (c[by] for c in (head, relation, tail, sets, same))
        recorded_at, order = recorded_at[by], order[by]
        first = np.ones(len(head), np.bool_)
        first[1:] = (np.diff(head) != 0) | (np.diff(relation) != 0) | (np.diff(tail) != 0)
        first[1:] |= np.diff(same) != 0
        fact_of_record = np.cumsum(first) - 1
        never = np.iinfo(np.int32).max
        ends = []
        for end in (HEAD, TAIL):
            column = np.full(int(first.sum()), never, np.int32)
            here = recorded_at == end
            np.minimum.at(column, fact_of_record[here], order[here])
            ends.append(column)
        head, relation, tail, sets = (c[first] for c in (head, relation, tail, sets))
        head_order, tail_order = _places(head, tail, ends[0], ends[1], never)
        # Facts of a head in the order of its records; those recorded only at the tail come after.
        late = head_order < 0
        by = np.lexsort((tail_order, tail * late, head_order, late, head))
        columns = (head[by], relation[by], tail[by], sets[by])
        return columns, (head_order[by], tail_order[by])

    def _canonical_sets(self) -> Ids:
        """For each qualifier set a number that equal sets share."""
        seen: dict[frozenset[tuple[int, int]], int] = {}
        return _column(
            seen.setdefault(frozenset(zip(pairs[::2], pairs[1::2], strict=True)), number)
            for number, pairs in enumerate(self._qualifier_sets)
        )

    def _used_sets(self, used: Ids) -> dict[int, tuple[int, ...]]:
        """The qualifier sets that facts have, by old number, in the order of their first use."""
        known = list(self._qualifier_sets)
        numbers = dict.fromkeys([0, *used[np.sort(np.unique(used, return_index=True)[1])].tolist()])
        return {number: known[number] for number in numbers}

    def _finish_texts_and_values(
        self,
        arrays: dict[str, Array],
        order: Ids,
        literals: Columns,
        relations: Columns,
        sets: dict[int, tuple[int, ...]],
    ) -> tuple[Ids, Ids]:
        """Sort the strings and values in use; returns old number -> new (-1 where unused)."""
        used_texts = {*literals[1].tolist(), *relations[1].tolist()}
        used_values = set(literals[2].tolist())
        for pairs in sets.values():
            used_texts.update(pairs[::2])
            used_values.update(pairs[1::2])
        values = [v for number, v in enumerate(self._values) if number in used_values]
        strings = sorted(v for v in values if isinstance(v, str))
        quantities = sorted(v for v in values if isinstance(v, tuple))
        times = sorted(v for v in values if isinstance(v, int))
        texts = {text for number, text in enumerate(self._texts) if number in used_texts}
        texts.update(strings, (unit for unit, _ in quantities))
        ids = self._id_texts()
        for number in order.tolist():
            texts.add(ids[number])
            texts.add(self._names[number])
        for text in [text for text in texts if not _is_text(text)]:
            self.problems.error("wrong-type", repr(text), "the text has a lone surrogate")
        table = sorted(texts)
        number_of = {text: number for number, text in enumerate(table)}
        arrays.update(string_arrays(table))
        new = {value: number for number, value in enumerate((*strings, *quantities, *times))}
        arrays["value_text"] = _column(number_of[text] for text in strings)
        arrays["value_unit"] = _column(number_of[unit] for unit, _ in quantities)
        arrays["value_number"] = np.array([number for _, number in quantities], np.float64)
        arrays["value_time"] = np.array(times, np.int64)
        self._string_of = number_of
        text_number = _column(number_of.get(text, -1) for text in self._texts)
        return text_number, _column(new.get(value, -1) for value in self._values)

    def _finish_nodes(self, arrays: dict[str, Array], order: Ids, entities: int) -> None:
        ids = self._id_texts()
        node_id = _column(self._string_of[ids[n]] for n in order.tolist())
        node_name = _column(self._string_of[self._names[n]] for n in order.tolist())
        by_id = np.argsort(node_id, kind="stable").astype(np.int32)
        by_name = np.argsort(node_name, kind="stable").astype(np.int32)
        arrays |= {
            "node_id": node_id,
            "node_name": node_name,
            "node_by_id": by_id,
            "node_ids_sorted": node_id[by_id],
            "node_by_name": by_name,
            "node_names_sorted": node_name[by_name],
        }
        is_concept = self._link_source >= entities
        parents = _lists(
            self._link_source[is_concept] - entities,
            self._link_target[is_concept],
            len(order) - entities,
        )
        instances = _lists(self._link_source[~is_concept], self._link_target[~is_concept], entities)
        arrays |= hierarchy_arrays(parents, instances, entities)

    def _finish_schema(
        self,
        arrays: dict[str, Array],
        text_number: Ids,
        literals: Columns,
        relations: Columns,
        sets: dict[int, tuple[int, ...]],
    ) -> tuple[Ids, Ids]:
        """The dense numbers of keys and relations, as columns over the old text numbers."""
        used_keys = set(np.unique(literals[1]).tolist())
        for pairs in sets.values():
            used_keys.update(pairs[::2])
        arrays["key_text"], key_of = _dense(sorted(used_keys), text_number)
        arrays["relation_text"], relation_of = _dense(np.unique(relations[1]).tolist(), text_number)
        return key_of, relation_of

    def _finish_qualifiers(
        self, arrays: dict[str, Array], sets: dict[int, tuple[int, ...]], keys: Ids, values: Ids
    ) -> Ids:
        """The columns of the qualifier sets in use; returns old number -> new."""
        counts = np.fromiter((len(pairs) // 2 for pairs in sets.values()), np.int32, len(sets))
        size = int(counts.sum()) * 2
        flat = np.fromiter((n for pairs in sets.values() for n in pairs), np.int32, size)
        starts = np.zeros(len(sets) + 1, np.int32)
        np.cumsum(counts, out=starts[1:])
        arrays["qualifier_starts"] = starts
        arrays["qualifier_key"] = keys[flat[::2]]
        arrays["qualifier_value"] = values[flat[1::2]]
        number = np.zeros(len(self._qualifier_sets), np.int32)
        number[list(sets)] = np.arange(len(sets), dtype=np.int32)
        return number


def _places(head: Ids, tail: Ids, head_order: Ids, tail_order: Ids, never: int) -> tuple[Ids, Ids]:
    """The orders of records counted anew from 0 at each node; -1 where there is no record."""
    count = len(head)
    owner, order = np.concatenate([head, tail]), np.concatenate([head_order, tail_order])
    recorded = np.flatnonzero(order != never)
    by = recorded[np.lexsort((order[recorded], owner[recorded]))]
    starts = np.searchsorted(owner[by], owner[by])
    place = np.full(2 * count, -1, np.int32)
    place[by] = np.arange(len(by)) - starts
    return place[:count], place[count:]


def _column(numbers: Iterator[int] | Iterable[int]) -> Ids:
    return np.fromiter(numbers, np.int32)


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _dense(used: list[int], text_number: Ids) -> tuple[Ids, Ids]:
    """The used texts by code point, and for each old text number its place among them."""
    chosen = text_number[np.array(used, np.int32)] if used else EMPTY
    ordered = np.sort(chosen)
    place = np.searchsorted(ordered, text_number).astype(np.int32)
    return ordered.astype(np.int32), place


def _lists(owner: Ids, item: Ids, owners: int) -> tuple[Ids, Ids]:
    """The items of each owner, each once, in the order of the links: offsets and all items."""
    by = np.lexsort((np.arange(len(owner)), item, owner))
    again = np.zeros(len(by), np.bool_)
    again[1:] = (np.diff(owner[by]) == 0) & (np.diff(item[by]) == 0)
    kept = np.sort(by[~again])
    kept = kept[np.argsort(owner[kept], kind="stable")]
    return offsets_of(owner[kept], owners), item[kept].astype(np.int32)
