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

from kb.arrays import EMPTY, Ids, expand, grouped
from kb.facts import Array, table_arrays
from kb.problems import Problems
from kb.store import KnowledgeBase, normalise_name
from kb.strings import string_arrays
from kb.values import Quantity, Value
from kb.valuetable import time_code

# A value while it is being collected: a string, (unit, number) or the code of a time.
RawValue = str | tuple[str, float] | int
RawQualifiers = Iterable[tuple[str, RawValue]]

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
        """The knowledge base; the assembler is empty afterwards."""
        arrays: dict[str, Array] = {}
        defined = np.array(self._defined, np.int32)
        kinds = np.frombuffer(bytes(self._kinds), np.uint8)
        order = np.concatenate(
            [defined[kinds[defined] == ENTITY], defined[kinds[defined] == CONCEPT]]
        ).astype(np.int32)
        entities = int((kinds[defined] == ENTITY).sum())
        final = np.full(len(kinds), -1, np.int32)  # provisional number -> node
        final[order] = np.arange(len(order), dtype=np.int32)

        self._check_hierarchy(final, kinds)
        relation_arrays = self._live_relations(final)
        text_number, value_number = self._finish_texts_and_values(arrays, order)
        self._finish_nodes(arrays, order, entities, final, kinds, text_number)
        keys, relations = self._finish_schema(arrays, text_number, relation_arrays[1])
        canonical = self._finish_qualifiers(arrays, text_number, value_number, keys)
        self._finish_literals(arrays, final, text_number, value_number, keys, len(order))
        self._finish_relations(
            arrays, relation_arrays, text_number, relations, canonical, len(order)
        )
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
                self.problems.warning(
                    "dangling-id",
                    f"{ids[owner]}/relations/{texts[relations[fact]]}",
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

    def _finish_texts_and_values(self, arrays: dict[str, Array], order: Ids) -> tuple[Ids, Ids]:
        """Sort all strings and values; returns old number -> new for key texts and values."""
        strings = [v for v in self._values if isinstance(v, str)]
        quantities = [v for v in self._values if isinstance(v, tuple)]
        times = [v for v in self._values if isinstance(v, int)]
        texts = set(self._texts)
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
        strings.sort()
        quantities.sort()
        times.sort()
        new = {value: number for number, value in enumerate((*strings, *quantities, *times))}
        arrays["value_text"] = _column(number_of[text] for text in strings)
        arrays["value_unit"] = _column(number_of[unit] for unit, _ in quantities)
        arrays["value_number"] = np.array([number for _, number in quantities], np.float64)
        arrays["value_time"] = np.array(times, np.int64)
        self._string_of = number_of
        text_number = _column(number_of[text] for text in self._texts)
        return text_number, _column(new[value] for value in self._values)

    def _finish_nodes(
        self,
        arrays: dict[str, Array],
        order: Ids,
        entities: int,
        final: Ids,
        kinds: npt.NDArray[np.uint8],
        text_number: Ids,
    ) -> None:
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
        arrays["parent_starts"], arrays["parent"] = grouped(parents)
        instances = _lists(self._link_source[~is_concept], self._link_target[~is_concept], entities)
        starts, instance = grouped(instances)
        arrays["instance_starts"], arrays["instance"] = starts, instance
        ancestors = [
            sorted(found) for found in _ancestors([[p - entities for p in ps] for ps in parents])
        ]
        ancestor_starts, ancestor = grouped(ancestors)
        arrays["ancestor_starts"] = ancestor_starts
        arrays["ancestor"] = (ancestor + entities).astype(np.int32)
        # Every (ancestor, entity) pair once, sorted: the members of each concept.
        direct = instance - entities
        counts = (ancestor_starts[1:] - ancestor_starts[:-1])[direct]
        owner = np.repeat(
            np.repeat(np.arange(entities, dtype=np.int64), starts[1:] - starts[:-1]), counts
        )
        above = ancestor[expand(ancestor_starts[direct], ancestor_starts[direct + 1])]
        pairs = np.unique(above.astype(np.int64) * max(1, entities) + owner)
        concept, member = np.divmod(pairs, max(1, entities))
        arrays["member"] = member.astype(np.int32)
        arrays["member_starts"] = np.searchsorted(
            concept, np.arange(len(order) - entities + 1)
        ).astype(np.int32)

    def _finish_schema(
        self, arrays: dict[str, Array], text_number: Ids, relation: Ids
    ) -> tuple[Ids, Ids]:
        """The dense numbers of keys and relations, as columns over the old text numbers."""
        used_keys = set(np.unique(np.array(self._literal[1], np.int32)).tolist())
        for pairs in self._qualifier_sets:
            used_keys.update(pairs[::2])
        keys, key_of = _dense(sorted(used_keys), text_number)
        relations, relation_of = _dense(np.unique(relation).tolist(), text_number)
        arrays["key_text"], arrays["relation_text"] = keys, relations
        return key_of, relation_of

    def _finish_qualifiers(
        self, arrays: dict[str, Array], text_number: Ids, value_number: Ids, keys: Ids
    ) -> Ids:
        """The columns of the qualifier sets; returns set -> number shared by equal sets."""
        sets = self._qualifier_sets
        counts = np.fromiter((len(pairs) // 2 for pairs in sets), np.int32, len(sets))
        flat = np.fromiter((n for pairs in sets for n in pairs), np.int32, int(counts.sum()) * 2)
        starts = np.zeros(len(sets) + 1, np.int32)
        np.cumsum(counts, out=starts[1:])
        arrays["qualifier_starts"] = starts
        arrays["qualifier_key"] = keys[flat[::2]]
        arrays["qualifier_value"] = value_number[flat[1::2]]
        seen: dict[frozenset[tuple[int, int]], int] = {}
        return _column(
            seen.setdefault(frozenset(zip(pairs[::2], pairs[1::2], strict=True)), number)
            for number, pairs in enumerate(sets)
        )

    def _finish_literals(
        self,
        arrays: dict[str, Array],
        final: Ids,
        text_number: Ids,
        value_number: Ids,
        keys: Ids,
        nodes: int,
    ) -> None:
        entity, key, value, sets = (np.array(column, np.int32) for column in self._literal)
        subject = final[entity] if len(entity) else EMPTY
        order = np.argsort(subject, kind="stable")
        arrays |= table_arrays(
            "literal",
            subject[order],
            keys[key[order]],
            value_number[value[order]],
            sets[order],
            nodes,
            len(arrays["key_text"]),
        )

    def _finish_relations(
        self,
        arrays: dict[str, Array],
        columns: list[Ids],
        text_number: Ids,
        relations: Ids,
        canonical: Ids,
        nodes: int,
    ) -> None:
        """Merge records that are one fact: equal head, relation, tail and set of qualifiers."""
        head, text, tail, sets, recorded_at, order = columns
        relation = relations[text] if len(text) else EMPTY
        same = canonical[sets] if len(sets) else EMPTY
        by = np.lexsort((order, recorded_at, same, tail, relation, head))
        head, relation, tail, sets, same = (c[by] for c in (head, relation, tail, sets, same))
        recorded_at, order = recorded_at[by], order[by]
        first = np.ones(len(head), np.bool_)
        if len(head):
            first[1:] = (np.diff(head) != 0) | (np.diff(relation) != 0) | (np.diff(tail) != 0)
            first[1:] |= np.diff(same) != 0
        fact_of_record = np.cumsum(first) - 1
        count = int(first.sum())
        ends = []
        for end in (HEAD, TAIL):
            column = np.full(count, np.iinfo(np.int32).max, np.int32)
            here = recorded_at == end
            np.minimum.at(column, fact_of_record[here], order[here])
            ends.append(column)
        head, relation, tail, sets = (c[first] for c in (head, relation, tail, sets))
        head_order, tail_order = ends
        # Facts of a head in the order of the source; those written only at the tail come after.
        by = np.lexsort((tail_order, head_order, head))
        head, relation, tail, sets = (c[by] for c in (head, relation, tail, sets))
        for name, column in (("head_order", head_order[by]), ("tail_order", tail_order[by])):
            column[column == np.iinfo(np.int32).max] = -1
            arrays[f"relation_{name}"] = column
        arrays |= table_arrays(
            "relation", head, relation, tail, sets, nodes, len(arrays["relation_text"])
        )
        by_tail = np.argsort(tail, kind="stable").astype(np.int32)
        arrays["relation_by_tail"] = by_tail
        arrays["relation_tail_starts"] = np.searchsorted(
            tail[by_tail], np.arange(nodes + 1)
        ).astype(np.int32)


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


def _lists(owner: Ids, item: Ids, owners: int) -> list[list[int]]:
    lists: list[list[int]] = [[] for _ in range(owners)]
    for at, what in zip(owner.tolist(), item.tolist(), strict=True):
        if what not in lists[at]:
            lists[at].append(what)
    return lists


def _ancestors(parents: list[list[int]]) -> list[set[int]]:
    """Each concept with all concepts above it; members of a cycle have each other."""
    done: list[set[int]] = []
    for concept in range(len(parents)):
        found, todo = {concept}, [concept]
        while todo:
            for parent in parents[todo.pop()]:
                if parent in found:
                    continue
                if parent < concept and parent < len(done):
                    found |= done[parent]
                else:
                    found.add(parent)
                    todo.append(parent)
        done.append(found)
    return done
