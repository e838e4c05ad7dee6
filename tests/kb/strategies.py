"""What several tests of ``kb`` share: random clean knowledge bases, and pieces to build them."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from kb import KnowledgeBase
from kb.kqapro import SPELLINGS, Ends, Spelling, node_json, nodes_of
from tests.reference.random_kb import random_kb

Document = dict[str, Any]


def value(kind: str, content: Any, unit: str | None = None) -> dict[str, Any]:
    """A value as kb.json has it."""
    return {"type": kind, "value": content} | ({} if unit is None else {"unit": unit})


def relation(name: str, direction: str, other: str, **qualifiers: Any) -> dict[str, Any]:
    """A relational fact as kb.json has it."""
    return {
        "relation": name,
        "direction": direction,
        "object": other,
        "qualifiers": qualifiers,
    }


def clean_kb(seed: int, size: str = "small") -> Document:
    """A random kb.json of spelling A that a reader keeps as it is, to the last JSON value.

    Some facts stand at one end and some at both; names are normalised, no record is repeated,
    the two records of a fact list its qualifiers in one order, and nothing needs repair.
    """
    rng = random.Random(seed)
    document = random_kb(rng, size)
    ids = {*document["concepts"], *document["entities"]}
    for node in (*document["concepts"].values(), *document["entities"].values()):
        name = " ".join(node.pop("name").split())
        aliases = {" ".join(text.split()): None for text in node.pop("aliases", ())}
        listed = [text for text in aliases if text != name]
        rest = dict(node)
        node.clear()
        node.update({"name": name} | ({"aliases": listed} if listed else {}) | rest)
        for field in ("subclassOf", "instanceOf"):
            if field in node:
                known = [id for id in node[field] if id in document["concepts"]]
                node[field] = list(dict.fromkeys(known))
    first: dict[Any, Any] = {}  # the qualifiers of a fact as they are written first
    seen = set()
    for id, node in document["entities"].items():
        for fact in node["attributes"]:
            _clean_value(fact["value"])
            fact.setdefault("qualifiers", {})
            for one in _qualifier_values(fact):
                _clean_value(one)
        kept = []
        for fact in node["relations"]:
            for one in _qualifier_values(fact):
                _clean_value(one)
            forward = fact["direction"] == "forward"
            ends = (id, fact["object"]) if forward else (fact["object"], id)
            pairs = frozenset(
                (key, json.dumps(one, sort_keys=True))
                for key, values in fact["qualifiers"].items()
                for one in values
            )
            key = (ends[0], fact["relation"], ends[1], pairs)
            if fact["object"] in ids and (key, forward) not in seen:
                seen.add((key, forward))
                fact["qualifiers"] = copy.deepcopy(first.setdefault(key, fact["qualifiers"]))
                kept.append(fact)
        node["relations"] = kept
    return document


def _qualifier_values(fact: dict[str, Any]) -> list[dict[str, Any]]:
    return [value for values in fact.get("qualifiers", {}).values() for value in values]


def _clean_value(value: dict[str, Any]) -> None:
    if value["type"] == "quantity":
        value.setdefault("unit", "1")
        value["value"] = float(value["value"]) + 0.0  # one spelling of a number, for the keys
    if value["type"] == "date":
        value["value"] = value["value"].replace("/", "-")
        if "-00" in value["value"][1:]:
            value["value"] = value["value"][:1] + value["value"][1:].replace("-00", "-01")


def document_of(
    kb: KnowledgeBase, spelling: Spelling = "A", ends: Ends = "recorded"
) -> dict[str, dict[str, Any]]:
    """A knowledge base as the object of its kb.json."""
    return {
        section: {
            kb.id_of(node): node_json(kb, node, SPELLINGS[spelling], ends)
            for node in nodes_of(kb, concepts=section == "concepts")
        }
        for section in ("concepts", "entities")
    }


def spelling_b(document: Document) -> Document:
    """The same document in spelling B, made without the code under test."""
    document = copy.deepcopy(document)
    for node in document["concepts"].values():
        node["instanceOf"] = node.pop("subclassOf")
    for node in document["entities"].values():
        node["relations"] = [
            {"predicate" if field == "relation" else field: part for field, part in fact.items()}
            for fact in node["relations"]
        ]
        for fact in (*node["attributes"], *node["relations"]):
            for one in (*([fact["value"]] if "value" in fact else []), *_qualifier_values(fact)):
                if one["type"] == "date":
                    one["value"] = one["value"][0] + one["value"][1:].replace("-", "/")
    return document
