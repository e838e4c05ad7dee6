"""What the server has: the knowledge bases, their names, things and schema, the functions."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import islice
from typing import Any

from kb import KnowledgeBase
from kb.lookup import NODE_KINDS, SCHEMA_KINDS, Facet, Match, above, facets, fact_count
from kb.store import NameKind
from kopl.functions import FUNCTIONS, Function
from kopl.sparql.engine import EMBEDDED
from kopl_base.packages import needs, version
from kopl_cli.serve.bases import Playground
from kopl_cli.serve.routes import (
    BODY,
    MAYBE,
    MAYBE_TEXT,
    OBJECT,
    TEXT,
    TRUTH,
    WHOLE,
    Field,
    RequestError,
    Route,
    listed,
    record,
)

OXIGRAPH = EMBEDDED["oxigraph"]
KINDS: tuple[NameKind, ...] = (*NODE_KINDS, *SCHEMA_KINDS, "unit")


# --- info -----------------------------------------------------------------------------------------


def _info(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    limits, run = playground.limits, playground.run_of(base)
    shown: dict[str, Any] = {
        "version": version(),
        "bases": [one.told() for one in [*playground.bases.values()]],
        "kb": base.id,
        "run": None if run is None else run.told(),
        "reasoner": None if playground.reasoner is None else {"name": playground.reasoner},
        "engines": [name for name in base.engines if _has(EMBEDDED.get(name, ()))],
        "limits": {
            "seconds": limits.seconds, "rows": limits.rows, "body": BODY,
            "waiting": limits.waiting,
        },
        "functions": [_function(one) for one in FUNCTIONS.values()],
        "can": {
            "ask": _able(run is not None, "no trained run is loaded"),
            "train": _able(_has(("torch",)), needs("training", "torch", extra="train")),
            "sparql": _able(_has(OXIGRAPH), needs("SPARQL", *OXIGRAPH, extra="sparql")),
            "upload": _able(False, "not offered"),
            "queries": _able(
                playground.reasoner is not None, "the server was started without --reasoner"
            ),
        },
        "corrections": 0,
        "taught": 0,
        "learning": None,
    }  # fmt: skip
    for tell in playground.tellers:
        _merge(shown, tell(playground, base))
    return shown


def _merge(shown: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(shown.get(name), dict):
            _merge(shown[name], value)
        else:
            shown[name] = value


def _able(yes: bool, why: str) -> dict[str, Any]:
    return {"yes": yes, "why": None if yes else why}


def _has(packages: tuple[str, ...]) -> bool:
    return all(find_spec(package) is not None for package in packages)


def _function(function: Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "inputs": [one.value for one in function.inputs],
        "arguments": [
            {"name": name, "kind": kind.value, "choices": [*kind.choices] or None}
            for name, kind in function.arguments
        ],
        "output": function.output.value,
        "doc": function.doc,
        "example": function.example,
    }


# --- names, things, schema ------------------------------------------------------------------------


def _search(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    kinds = KINDS if given["kind"] == "any" else (given["kind"],)
    if given["q"].strip():
        near = base.names.near(given["q"], kinds)
        count, found = len(near), iter(near)
    else:
        count, found = base.names.all(kinds)
    limit = given["limit"]
    return {"matches": [_match(base.kb, one) for one in islice(found, limit)], "count": count}


def _match(kb: KnowledgeBase, match: Match) -> dict[str, Any]:
    node = match.node
    return {
        "kind": match.kind,
        "name": match.name,
        "also": match.called if match.called != match.name else None,
        "id": None if node is None else kb.id_of(node),
        "concepts": [] if node is None else above(kb, node)[:5],
        "facts": len(kb.instances_of(match.name))
        if match.kind == "concept"
        else fact_count(kb, match),
    }


def _entity(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    kb = base.kb
    node = kb.node(given["id"])
    if node < 0:
        raise RequestError(f"there is no id {given['id'][:100]!r}", status=404, field="id")
    kind: NameKind = "entity" if kb.is_entity(node) else "concept"
    name = kb.name_of(node)
    return {
        "id": given["id"],
        "name": name,
        "kind": kind,
        "aliases": [*kb.aliases_of(node)],
        "concepts": above(kb, node),
        "facts": [*islice(facts_about(kb, node), given["limit"])],
        "count": fact_count(kb, Match(kind, name, name, node)),
    }


def facts_about(kb: KnowledgeBase, node: int) -> Any:
    """The facts of a node, as the page shows facts: attributes, then relations both ways."""
    name = kb.name_of(node)
    for literal in kb.attributes(node) if kb.is_entity(node) else ():
        yield fact(name, None, literal.key, str(literal.value), None, None, literal.qualifiers)
    for one in kb.records(node, "both"):
        other = kb.name_of(kb.node(one.other))
        yield fact(name, one.relation, None, other, one.other, one.direction, one.qualifiers)


def fact(
    subject: str, relation: str | None, key: str | None, value: str, id: str | None,
    direction: str | None, qualifiers: Any,
) -> dict[str, Any]:  # fmt: skip
    """A fact as the page shows it."""
    pairs = [
        {"key": name, "value": str(one)} for name, values in qualifiers.items() for one in values
    ]
    ends = (value, subject) if direction == "backward" else (subject, value)
    text = f"{ends[0]} | {relation or key} | {ends[1]}"
    if pairs:
        said = [f"{one['key']}: {one['value']}" for one in pairs]
        text += f" [{'; '.join(said)}]"
    return {
        "text": text,
        "subject": subject,
        **({"relation": relation} if relation is not None else {"key": key}),
        "value": value,
        "id": id,
        "direction": direction,
        "qualifiers": pairs,
    }


def _schema(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base, concept = playground.base(given["kb"]), given["concept"]
    kb = base.kb
    if concept is None:
        found = base.names.of_all
    else:
        if all(map(kb.is_entity, kb.named(concept).tolist())):
            raise RequestError(
                f"there is no concept {concept[:100]!r}", status=404, field="concept"
            )
        found = facets(kb, kb.instances_of(concept))
    return {
        "concepts": base.concepts,
        "relations": [_facet(one) for one in found if one.kind == "relation"],
        "keys": [_facet(one) for one in found if one.kind == "key"],
        "qualifiers": [_facet(one) for one in found if one.kind == "qualifier"],
    }


def _facet(facet: Facet) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": facet.name}
    if facet.kind == "relation":
        shown["direction"] = facet.direction
    elif facet.kind == "qualifier":
        shown["of"] = facet.of
    if facet.kind != "relation":
        types = dict.fromkeys(form.partition(" ")[0] for form in facet.forms)
        shown["type"] = ", ".join(types)
        shown["units"] = [*facet.forms]
    return shown | {
        "count": facet.facts if facet.kind == "qualifier" else facet.things,
        "facts": facet.facts,
        "example": facet.example,
    }


FACT = record(
    text=TEXT, subject=TEXT, value=TEXT, id=MAYBE_TEXT, direction=MAYBE_TEXT,
    qualifiers=listed(record(key=TEXT, value=TEXT)),
)  # fmt: skip
_ABLE = record(yes=TRUTH, why=MAYBE_TEXT)
_COUNTED = record(name=TEXT, count=WHOLE)

LIMIT = Field("limit", "integer", "at most so many", default=100, least=1, most=1000)

ROUTES = [
    Route(
        "GET",
        "/api/info",
        "What the server has, and what it can do.",
        _info,
        response=record(
            version=TEXT,
            bases=listed(
                record(
                    id=TEXT, name=TEXT, entities=WHOLE, concepts=WHOLE, facts=WHOLE,
                    relations=WHOLE, keys=WHOLE, fingerprint=TEXT, uploaded=TRUTH,
                )
            ),
            kb=TEXT,
            run=MAYBE,
            reasoner=MAYBE,
            engines=listed(TEXT),
            limits=OBJECT,
            functions=listed(OBJECT),
            can=record(ask=_ABLE, train=_ABLE, sparql=_ABLE, upload=_ABLE, queries=_ABLE),
            corrections=WHOLE, taught=WHOLE,
            learning=MAYBE,
        ),
    ),
    Route(
        "GET",
        "/api/kb/search",
        "What is called nearly so: things, concepts, relations, keys, units; empty: all of them.",
        _search,
        (
            Field("q", "text", "a name, or a part of one", default="", most=500),
            Field("kind", "text", "what is looked for", default="any", choices=("any", *KINDS)),
            LIMIT,
        ),
        record(
            matches=listed(
                record(
                    kind=TEXT, name=TEXT, also=MAYBE_TEXT, id=MAYBE_TEXT, concepts=listed(TEXT),
                    facts=WHOLE,
                )
            ),
            count=WHOLE,
        ),
    ),
    Route(
        "GET",
        "/api/kb/entity/{id:path}",
        "An entity or concept with its facts.",
        _entity,
        (Field("id", "text", "its id", True, most=1000), LIMIT),
        record(
            id=TEXT, name=TEXT, kind=TEXT, aliases=listed(TEXT), concepts=listed(TEXT),
            facts=listed(FACT), count=WHOLE,
        ),
    ),
    Route(
        "GET",
        "/api/kb/schema",
        "The concepts, and which relations, keys and qualifiers all things have, or a concept's.",
        _schema,
        (Field("concept", "text", "the name of a concept", most=1000),),
        record(
            concepts=listed(_COUNTED), relations=listed(_COUNTED), keys=listed(_COUNTED),
            qualifiers=listed(_COUNTED),
        ),
    ),
]  # fmt: skip
