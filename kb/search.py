"""Finding what a name may have meant: nodes, keys, relations, concepts by near spelling."""

from __future__ import annotations

from collections.abc import Sequence

from kb.store import KnowledgeBase, NameKind
from kopl_base.spelling import near_names


def suggest(kb: KnowledgeBase, text: str, kinds: Sequence[NameKind], limit: int = 3) -> list[str]:
    """Names of the given kinds in the knowledge base that are near a text, best first."""
    names = {name for kind in kinds for name in kb.names_of_kind(kind)}
    return near_names(text, sorted(names - {text}), limit)
