"""The columns that a knowledge base is made of, each with its name and type.

Who builds a part of them and who looks things up there tell more: `kb.valuetable` of texts and
values, `kb.hierarchy` of concepts, `kb.facts` of facts and their qualifiers, `kb.store` of nodes.
The names are those of snapshots.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias, TypedDict, cast

import numpy as np
import numpy.typing as npt

from kb.arrays import Ids

Array: TypeAlias = npt.NDArray[np.generic]


class Columns(TypedDict, total=False):
    """All columns. Of the hierarchy those of one of its two forms are there."""

    text_bytes: npt.NDArray[np.uint8]
    text_starts: npt.NDArray[np.int64]
    text_buckets: Ids
    text_bucket_starts: Ids

    value_text: Ids
    value_unit: Ids
    value_number: npt.NDArray[np.float64]
    value_time: npt.NDArray[np.int64]

    key_text: Ids
    relation_text: Ids

    node_id: Ids
    node_name: Ids
    node_by_id: Ids
    node_ids_sorted: Ids
    node_by_name: Ids
    node_names_sorted: Ids

    # What nodes are called besides their names, each node's one after the other; only where there
    # is any.
    alias_starts: Ids
    alias: Ids
    node_by_alias: Ids
    node_aliases_sorted: Ids

    parent_starts: Ids
    parent: Ids
    instance_starts: Ids
    instance: Ids
    # Ancestors and members written out, where they are few.
    ancestor_starts: Ids
    ancestor: Ids
    member_starts: Ids
    member: Ids
    # Places, where they are many.
    concept_group: Ids
    group_below: Ids
    group_below_starts: Ids
    place_member: Ids
    place_member_starts: Ids

    qualifier_starts: Ids
    qualifier_key: Ids
    qualifier_value: Ids

    # The two tables of facts: the same columns, and those of a relational fact's tail.
    literal_subject: Ids
    literal_predicate: Ids
    literal_object: Ids
    literal_qualifiers: Ids
    literal_starts: Ids
    literal_by_predicate: Ids
    literal_by_predicate_object: Ids
    literal_predicate_starts: Ids
    relation_subject: Ids
    relation_predicate: Ids
    relation_object: Ids
    relation_qualifiers: Ids
    relation_starts: Ids
    relation_by_predicate: Ids
    relation_by_predicate_object: Ids
    relation_predicate_starts: Ids
    relation_head_order: Ids
    relation_tail_order: Ids
    relation_by_tail: Ids
    relation_tail_starts: Ids


def by_name(columns: Columns) -> dict[str, Array]:
    """The columns in the order of their names, for whoever goes through all of them."""
    arrays = cast(dict[str, Array], columns)
    return {name: arrays[name] for name in sorted(arrays)}


def fingerprint_of(columns: Columns, entities: int) -> str:
    """SHA-256 of the columns, as hexadecimal digits."""
    hashed = hashlib.sha256(str(entities).encode())
    for name, array in by_name(columns).items():
        column = np.ascontiguousarray(array)
        hashed.update(f"{name} {column.dtype.str} {column.shape}".encode())
        hashed.update(column.data if column.size else b"")
    return hashed.hexdigest()
