"""Small dumps as Wikidata writes them, for all that reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kb import KnowledgeBase

GREGORIAN, JULIAN = "Q1985727", "Q1985786"
TYPES = {
    "wikibase-entityid": "wikibase-item",
    "globecoordinate": "globe-coordinate",
}


def entity_id(id: str) -> dict[str, Any]:
    kind = {"Q": "item", "P": "property"}[id[0]]
    return {"entity-type": kind, "numeric-id": int(id[1:]), "id": id}


def snak(property: str, form: str, value: Any, datatype: str | None = None) -> dict[str, Any]:
    return {
        "snaktype": "value",
        "property": property,
        "datavalue": {"value": value, "type": form},
        "datatype": datatype or TYPES.get(form, form),
    }


def item(property: str, id: str) -> dict[str, Any]:
    return snak(property, "wikibase-entityid", entity_id(id))


def text(property: str, content: str, datatype: str = "string") -> dict[str, Any]:
    return snak(property, "string", content, datatype)


def amount(property: str, number: str, unit: str = "1") -> dict[str, Any]:
    if unit != "1":
        unit = f"http://www.wikidata.org/entity/{unit}"
    return snak(property, "quantity", {"amount": number, "unit": unit})


def time(
    property: str, moment: str, precision: int = 11, calendar: str = GREGORIAN
) -> dict[str, Any]:
    value = {
        "time": f"{moment}T00:00:00Z",
        "timezone": 0,
        "before": 0,
        "after": 0,
        "precision": precision,
        "calendarmodel": f"http://www.wikidata.org/entity/{calendar}",
    }
    return snak(property, "time", value)


def missing(property: str, kind: str = "somevalue") -> dict[str, Any]:
    return {"snaktype": kind, "property": property, "datatype": "string"}


def statement(
    main: dict[str, Any], *qualifiers: dict[str, Any], rank: str = "normal"
) -> dict[str, Any]:
    found: dict[str, Any] = {"mainsnak": main, "type": "statement", "rank": rank, "id": "x"}
    groups: dict[str, list[Any]] = {}
    for qualifier in qualifiers:
        groups.setdefault(qualifier["property"], []).append(qualifier)
    if groups:
        found |= {"qualifiers": groups, "qualifiers-order": list(groups)}
    return found


def labelled(names: str | dict[str, str]) -> Any:
    if isinstance(names, str):
        names = {"en": names}
    return {tag: {"language": tag, "value": name} for tag, name in names.items()} or []


def thing(id: str, names: str | dict[str, str], *statements: dict[str, Any]) -> dict[str, Any]:
    claims: dict[str, list[Any]] = {}
    for found in statements:
        main = found if "mainsnak" in found else statement(found)
        claims.setdefault(main["mainsnak"]["property"], []).append(main)
    return {
        "type": "item",
        "id": id,
        "labels": labelled(names),
        "descriptions": {},
        "aliases": [],
        "claims": claims or [],
        "sitelinks": {"enwiki": {"site": "enwiki", "title": "x", "badges": []}},
    }


def property(id: str, label: str, datatype: str = "wikibase-item") -> dict[str, Any]:
    return {
        "type": "property",
        "datatype": datatype,
        "id": id,
        "labels": labelled(label),
        "claims": {},
    }


ENTITIES = [
    thing("Q1", "Oslo", item("P31", "Q100"), amount("P1", "+709037"), item("P2", "Q2")),
    thing(
        "Q2",
        {"nb": "Norge", "mul": "Norway"},
        item("P31", "Q101"),
        statement(
            item("P3", "Q1"),
            time("P4", "+1814-05-17"),
            item("P5", "Q102"),
            item("P5", "Q102"),
            time("P4", "+1905-00-00", 9),
            missing("P5"),
            item("P5", "Q999"),
            rank="preferred",
        ),
        statement(item("P3", "Q3"), rank="deprecated"),
        amount("P6", "+385207.5", "Q103"),
        amount("P6", "+1", "Q999"),
        text("P7", "Alt for Norge"),
        text("P8", "http://example.org/", "url"),
        text("P9", "123", "external-id"),
        text("P10", "Flag.svg", "commonsMedia"),
        snak("P11", "monolingualtext", {"text": "Noreg", "language": "nn"}),
        snak("P12", "globecoordinate", {"latitude": 60, "longitude": 10}),
        missing("P7", "novalue"),
        item("P2", "Q999"),
        text("P99", "no label of the property"),
    ),
    thing("Q3", {"de": "Stockholm"}, item("P31", "Q100")),
    thing("Q100", "city", item("P279", "Q104"), item("P31", "Q105"), text("P7", "x")),
    thing("Q101", "country", item("P279", "Q104"), item("P2", "Q2")),
    thing("Q102", "Storting"),
    thing("Q103", "square kilometre"),
    thing("Q104", "place"),
    thing("Q105", "kind of place"),
    # Oslo is the class of something by mistake; it has a class, so it stays an entity.
    thing("Q106", "Fram", item("P31", "Q1"), time("P4", "+1892-10-00", 10)),
    {"type": "lexeme", "id": "L1", "lemmas": {}, "claims": {}},
    property("P1", "population", "quantity"),
    property("P2", "country"),
    property("P3", "capital"),
    property("P4", "start time", "time"),
    property("P5", "approved by"),
    property("P6", "area", "quantity"),
    property("P7", "motto", "string"),
    property("P8", "website", "url"),
    property("P9", "number", "external-id"),
    property("P10", "flag", "commonsMedia"),
    property("P11", "native label", "monolingualtext"),
    property("P12", "coordinates", "globe-coordinate"),
]


def array(entities: list[dict[str, Any]]) -> str:
    lines = ",\n".join(json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in entities)
    return f"[\n{lines}\n]\n"


def write(path: Path, entities: list[dict[str, Any]]) -> Path:
    path.write_text(array(entities), "utf-8")
    return path


def names(kb: KnowledgeBase, *, concepts: bool) -> set[str]:
    every = range(kb.entity_count, kb.node_count) if concepts else range(kb.entity_count)
    return {kb.name_of(node) for node in every}
