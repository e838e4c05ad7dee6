"""Finding what a name may have meant: nodes, keys, relations, concepts by near spelling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kb.store import KnowledgeBase, NameKind


def near_names(text: str, names: Iterable[str], limit: int = 3, cutoff: float = 70) -> list[str]:
    """The names nearest to a text in spelling, best first (similarity from 0 to 100)."""
    from rapidfuzz import fuzz, process, utils

    found = process.extract(
        text,
        list(names),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        limit=limit * 4,
        score_cutoff=cutoff,
    )
    # WRatio is generous to short names inside long texts; plain similarity breaks ties.
    ranked = sorted(found, key=lambda hit: (-hit[1], -fuzz.ratio(text, hit[0]), hit[0]))
    return [name for name, _, _ in ranked[:limit]]


def suggest(kb: KnowledgeBase, text: str, kinds: Sequence[NameKind], limit: int = 3) -> list[str]:
    """Names of the given kinds in the knowledge base that are near a text, best first."""
    names = {name for kind in kinds for name in kb.names_of_kind(kind)}
    return near_names(text, sorted(names - {text}), limit)
