"""Turns nodes and facts, as they come, into the columns and indexes of a `KnowledgeBase`.

Used by the builder and by every reader. Everything is appended to flat integer columns with
provisional numbers; `Assembler.finish` sorts strings, values and facts, merges the two records of
a relational fact, drops what dangles and closes the concept hierarchy.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import compress, repeat
from typing import cast

import numpy as np
import numpy.typing as npt

from kb.arrays import EMPTY, Ids, changes, offsets_of
from kb.columns import Array, Columns
from kb.facts import TIME, CollectedSets, UsedSets, table_arrays
from kb.hierarchy import hierarchy_arrays
from kb.problems import Problems
from kb.store import KnowledgeBase, normalise_name
from kb.values import Quantity, Value
from kb.valuetable import string_arrays, time_code

# A value while it is being collected: a string, (unit, number) or the code of a time.
RawValue = str | tuple[str, float] | int
RawQualifiers = Iterable[tuple[str, RawValue]]
FactColumns = tuple[Ids, Ids, Ids, Ids]  # subject, predicate, object, qualifiers

UNDEFINED, ENTITY, CONCEPT = 0, 1, 2
HEAD, TAIL = 0, 1
NEVER = np.iinfo(np.int32).max


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
        self._clear()

    def _clear(self) -> None:
        """Forget all that was collected."""
        self._nodes: dict[str, int] = {}
        self._kinds = bytearray()
        self._names = array("i")  # by provisional number, the number of a text
        self._defined = array("i")
        self._links_from, self._links_to = array("i"), array("i")
        self._alias_of, self._aliases = array("i"), array("i")  # provisional number, text
        self._texts: dict[str, int] = {}
        # What is no text is not looked for: equal values are found when all are there, by sorting.
        # A quantity has its unit's text here, a time TIME; a value's number is its place here, or
        # below 0 for a text (see `_value`).
        self._units, self._numbers = array("i"), array("d")
        # Qualifier sets likewise; set 0 is the empty one.
        self._set_ends = array("i", [0])
        self._set_pairs = array("i")  # key, value
        self._literal = array("i")  # entity, key, value, qualifiers
        self._relation = array("i")  # head, relation, tail, qualifiers
        self._recorded_at = array("b")

    # --- collecting --------------------------------------------------------------------------

    def define(
        self,
        id: str,
        kind: int,
        name: str,
        links: Iterable[str],
        place: str,
        aliases: Iterable[str] = (),
    ) -> int:
        """Define an entity or concept; returns its provisional number, or -1 when refused.

        Of the ``aliases`` those are kept, once each, that are not its name.
        """
        number = self.node(id)
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
        self._names[number] = self._text(name)
        self._defined.append(number)
        for link in links:
            self._links_from.append(number)
            self._links_to.append(self.node(link))
        for alias in dict.fromkeys(map(normalise_name, aliases)):
            if not alias:
                self.problems.warning("empty-alias", place, "an alias is empty; it is dropped")
            elif alias != name:
                self._alias_of.append(number)
                self._aliases.append(self._text(alias))
        return number

    def literal(self, entity: int, key: str, value: RawValue, qualifiers: RawQualifiers) -> None:
        """Add a literal fact of an entity (by provisional number)."""
        set_ = self._qualifiers(qualifiers) if qualifiers else 0
        self._literal.fromlist([entity, self._text(key), self._value(value), set_])

    def relational(
        self, owner: int, relation: str, forward: bool, other: str, qualifiers: RawQualifiers
    ) -> None:
        """Add a relational fact as it stands at its owner: forward, the owner is the head."""
        node = self._nodes.get(other)
        if node is None:
            node = self.node(other)
        text, set_ = self._text(relation), self._qualifiers(qualifiers) if qualifiers else 0
        if forward:
            self._relation.fromlist([owner, text, node, set_])
            self._recorded_at.append(HEAD)
        else:
            self._relation.fromlist([node, text, owner, set_])
            self._recorded_at.append(TAIL)

    def node(self, id: str) -> int:
        """The provisional number of an id (new or known)."""
        number = self._nodes.get(id)
        if number is None:
            number = self._nodes[id] = len(self._nodes)
            self._kinds.append(UNDEFINED)
            self._names.append(-1)
        return number

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
        """The number of a value: -1 - t for the text t, else the place of its unit and number."""
        if isinstance(value, str):
            return -1 - self._text(value)
        number = len(self._units)
        if isinstance(value, tuple):
            self._units.append(self._text(value[0]))
            self._numbers.append(value[1])
        else:
            self._units.append(TIME)
            self._numbers.append(value)  # exact, as a year has at most 13 digits
        return number

    def _qualifiers(self, pairs: RawQualifiers) -> int:
        for key, value in pairs:
            self._set_pairs.fromlist([self._text(key), self._value(value)])
        end = len(self._set_pairs) // 2
        if end == self._set_ends[-1]:
            return 0
        self._set_ends.append(end)
        return len(self._set_ends) - 1

    # --- finishing ---------------------------------------------------------------------------

    def finish(self) -> KnowledgeBase:
        """The knowledge base; the assembler is empty afterwards.

        Equal content gives equal columns, whatever the order in which it came: numbers are given
        to what is left after merging and dropping, in the order of the nodes and their records.
        """
        arrays: Columns = {}
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
        sets = CollectedSets(
            np.array(self._set_ends, np.int32),
            np.array(self._set_pairs, np.int32).reshape(-1, 2),
            np.array(self._units, np.int32),
            np.array(self._numbers, np.float64),
        )
        relations, orders = self._merged_relations(self._live_relations(final), sets)
        used = sets.used(np.concatenate([literals[3], relations[3]]))
        del sets
        text_number, value_number = self._finish_texts_and_values(
            arrays, order, literals, relations, used
        )
        key_of, relation_of = self._finish_schema(arrays, text_number, literals, relations, used)
        self._finish_nodes(arrays, order, entities, text_number)
        self._finish_aliases(arrays, final, nodes, text_number)
        self._clear()  # large: room for the indexes
        arrays["qualifier_starts"] = used.starts
        arrays["qualifier_key"] = key_of[used.keys]
        arrays["qualifier_value"] = value_number[used.values]
        keys, relation_count = len(arrays["key_text"]), len(arrays["relation_text"])
        subject, key, value, set_ = literals
        del literals
        arrays |= table_arrays(
            "literal", subject, key_of[key], value_number[value], used.number[set_], nodes, keys
        )
        del subject, key, value, value_number
        head, relation, tail, set_ = relations
        del relations
        arrays |= table_arrays(
            "relation",
            head,
            relation_of[relation],
            tail,
            used.number[set_],
            nodes,
            relation_count,
        )
        arrays["relation_head_order"], arrays["relation_tail_order"] = orders
        by_tail = np.argsort(tail, kind="stable").astype(np.int32)
        arrays["relation_by_tail"] = by_tail
        arrays["relation_tail_starts"] = offsets_of(tail[by_tail], nodes)
        for column in cast(dict[str, Array], arrays).values():
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
        heads, relations, tails, sets = _taken(self._relation).T
        self._relation = array("i")
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

    def _sorted_literals(self, final: Ids) -> FactColumns:
        """The literal columns with final subjects, sorted by them."""
        entity, key, value, sets = _taken(self._literal).T
        self._literal = array("i")
        subject = final[entity] if len(entity) else EMPTY
        if (subject[1:] >= subject[:-1]).all():  # as they come where entities have one record each
            return subject, key.copy(), value.copy(), sets.copy()
        by = np.argsort(subject, kind="stable")
        return subject[by], key[by], value[by], sets[by]

    def _merged_relations(
        self, records: list[Ids], known: CollectedSets
    ) -> tuple[FactColumns, tuple[Ids, Ids]]:
        """Facts from records: equal head, relation, tail and set of qualifiers are one fact.

        Besides the columns come the places of each fact among the records of its head and of its
        tail, -1 where it was not recorded.
        """
        head, relation, tail, sets, recorded_at, order = records
        if len(head) == 0:
            return (EMPTY, EMPTY, EMPTY, EMPTY), (EMPTY, EMPTY)
        records.clear()  # large: room for the sorted columns
        same = known.regardless_of_order()[sets]
        # Two wide keys sort faster than five; records of one fact keep their order.
        ends = (tail.astype(np.int64) * (int(same.max()) + 1) + same) * 2 + recorded_at
        by = np.lexsort((ends, head.astype(np.int64) * (int(relation.max()) + 1) + relation))
        ends, head, relation, sets = ends[by], head[by], relation[by], sets[by]
        tail, recorded_at, order = tail[by], recorded_at[by], order[by]
        first = changes(head, relation, ends >> 1)
        of_end = np.flatnonzero(changes(head, relation, ends))  # first of a fact at one of its ends
        fact = (np.cumsum(first, dtype=np.int32) - 1)[of_end]
        del by, ends
        orders = np.full((2, int(first.sum())), NEVER, np.int32)
        orders[recorded_at[of_end], fact] = order[of_end]
        head, relation, tail, sets = (c[first] for c in (head, relation, tail, sets))
        del first, of_end, fact, recorded_at, order
        head_order, tail_order = _places(head, tail, orders)
        # Facts of a head in the order of its records; those recorded only at the tail come after.
        late = head_order < 0
        among = (np.where(late, tail_order, 0), np.where(late, tail, head_order))
        by = np.lexsort((*among, head.astype(np.int64) * 2 + late))
        columns = (head[by], relation[by], tail[by], sets[by])
        return columns, (head_order[by], tail_order[by])

    def _finish_texts_and_values(
        self,
        arrays: Columns,
        order: Ids,
        literals: FactColumns,
        relations: FactColumns,
        sets: UsedSets,
    ) -> tuple[Ids, Ids]:
        """Sort the strings and values in use; returns old number -> new (-1 where unused)."""
        units, numbers = np.array(self._units, np.int32), np.array(self._numbers, np.float64)
        texts = len(self._texts)
        is_used = np.zeros(texts, np.bool_)
        names, aliases = self._names_of(order), np.array(self._aliases, np.int32)
        for column in (literals[1], relations[1], sets.keys, names, aliases):
            is_used[column] = True
        is_value = np.zeros(len(units) + texts, np.bool_)  # the texts last, from the end: -1 - t
        for column in (literals[2], sets.values):
            is_value[column] = True
        strings, rows = is_value[len(units) :][::-1], np.flatnonzero(is_value[: len(units)])
        is_used |= strings
        is_used[units[rows[units[rows] != TIME]]] = True
        text_number = self._finish_texts(arrays, order, is_used)

        new = np.full(len(is_value), -1, np.int32)
        string_texts = np.flatnonzero(strings)
        string_texts = string_texts[np.argsort(text_number[string_texts])]
        new[-1 - string_texts] = np.arange(len(string_texts), dtype=np.int32)
        arrays["value_text"] = text_number[string_texts]
        first = len(string_texts)
        quantities = rows[units[rows] != TIME]
        unit = text_number[units[quantities]]
        by = np.lexsort((numbers[quantities], unit))
        unit, number, quantities = unit[by], numbers[quantities[by]], quantities[by]
        is_new = changes(unit, number)
        arrays["value_unit"], arrays["value_number"] = unit[is_new], number[is_new]
        new[quantities] = first + np.cumsum(is_new) - 1
        first += int(is_new.sum())
        times = rows[units[rows] == TIME]
        codes, place = np.unique(numbers[times].astype(np.int64), return_inverse=True)
        arrays["value_time"] = codes
        new[times] = first + place.reshape(-1)
        return text_number, new

    def _finish_texts(self, arrays: Columns, order: Ids, is_used: npt.NDArray[np.bool_]) -> Ids:
        """Sort the texts in use and the ids; returns old number -> new (-1 where unused)."""
        nodes = len(self._nodes)
        is_id = np.zeros(nodes, np.bool_)
        is_id[order] = True
        table = list(compress(self._nodes, is_id.tolist()))
        known = self._nodes.get
        for text in compress(self._texts, is_used.tolist()):
            number = known(text)
            if number is None or not is_id[number]:
                table.append(text)
        table.sort()
        try:
            arrays.update(string_arrays(table, errors="strict"))
        except UnicodeEncodeError:
            for text in table:
                if not _is_text(text):
                    self.problems.error("wrong-type", repr(text), "the text has a lone surrogate")
            # The check goes on to the end.
            arrays.update(string_arrays(table))
        found = []
        for numbers in (self._texts, self._nodes):
            new = np.full(len(numbers) + 1, -1, np.int32)  # what is not there goes to the end
            old = np.fromiter(map(numbers.get, table, repeat(-1)), np.int32, len(table))
            new[old] = np.arange(len(table), dtype=np.int32)
            found.append(new[:-1])
        arrays["node_id"] = found[1][order]
        self._texts, self._nodes = {}, {}  # the facts are still to be sorted: room for that
        return found[0]

    def _names_of(self, order: Ids) -> Ids:
        return np.array(self._names, np.int32)[order]

    def _finish_nodes(self, arrays: Columns, order: Ids, entities: int, text_number: Ids) -> None:
        node_id, node_name = arrays["node_id"], text_number[self._names_of(order)]
        by_id = np.argsort(node_id, kind="stable").astype(np.int32)
        by_name = np.argsort(node_name, kind="stable").astype(np.int32)
        arrays |= {
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

    def _finish_aliases(self, arrays: Columns, final: Ids, nodes: int, text_number: Ids) -> None:
        if not self._aliases:  # a knowledge base without any is what it was before there were some
            return
        owner = final[np.array(self._alias_of, np.int32)]
        by = np.argsort(owner, kind="stable")
        owner, alias = owner[by], text_number[np.array(self._aliases, np.int32)[by]]
        by_alias = np.argsort(alias, kind="stable")
        arrays |= {
            "alias_starts": offsets_of(owner, nodes),
            "alias": alias,
            "node_by_alias": owner[by_alias],
            "node_aliases_sorted": alias[by_alias],
        }

    def _finish_schema(
        self,
        arrays: Columns,
        text_number: Ids,
        literals: FactColumns,
        relations: FactColumns,
        sets: UsedSets,
    ) -> tuple[Ids, Ids]:
        """The dense numbers of keys and relations, as columns over the old text numbers."""
        used_keys = np.union1d(literals[1], sets.keys)
        arrays["key_text"], key_of = _dense(used_keys, text_number)
        arrays["relation_text"], relation_of = _dense(np.unique(relations[1]), text_number)
        return key_of, relation_of


def _places(head: Ids, tail: Ids, orders: npt.NDArray[np.int32]) -> tuple[Ids, Ids]:
    """The orders of records counted anew from 0 at each node; -1 where there is no record."""
    there = orders != NEVER
    owner = np.full(int(orders[there].max()) + 1, -1, np.int32)  # by the order of the records
    for column, order, is_there in zip((head, tail), orders, there, strict=True):
        owner[order[is_there]] = column[is_there]
    records = np.flatnonzero(owner >= 0).astype(np.int32)
    by = records[np.argsort(owner[records], kind="stable")]
    begin = np.flatnonzero(changes(owner[by]))
    counts = np.diff(begin, append=len(by))
    owner[by] = np.arange(len(by), dtype=np.int32) - np.repeat(begin, counts)
    places = np.full(orders.shape, -1, np.int32)
    places[there] = owner[orders[there]]
    return places[0], places[1]


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _taken(rows: array[int]) -> Ids:
    """Rows of four numbers."""
    return np.array(rows, np.int32).reshape(-1, 4)


def _dense(used: Ids, text_number: Ids) -> tuple[Ids, Ids]:
    """The used texts by code point, and for each old text number its place among them."""
    ordered = np.sort(text_number[used])
    place = np.searchsorted(ordered, text_number).astype(np.int32)
    return ordered.astype(np.int32), place


def _lists(owner: Ids, item: Ids, owners: int) -> tuple[Ids, Ids]:
    """The items of each owner, each once, in the order of the links: offsets and all items."""
    by = np.lexsort((item, owner))
    kept = np.sort(by[changes(owner[by], item[by])])
    kept = kept[np.argsort(owner[kept], kind="stable")]
    return offsets_of(owner[kept], owners), item[kept].astype(np.int32)
