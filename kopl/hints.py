"""Near names for what a program names and the knowledge base does not have."""

from __future__ import annotations

from kb import KnowledgeBase
from kb.store import NameKind, suggest
from kb.values import ValueReadError, read_quantity
from kopl.functions import meant
from kopl.program import Call, post_order
from kopl.types import Kind

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
