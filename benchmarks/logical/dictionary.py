"""A program as one writes it for BetaE's structures: dictionaries of sets, a function for each.

It stands beside ours in `betae.py` of this folder. A query is the published nested tuple; ``-2``
marks a negation, ``-1`` a union. Nothing is shared with the package.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Index = Mapping[tuple[int, int], set[int]]

NOTHING: set[int] = set()


def index(triples: Iterable[tuple[int, int, int]]) -> Index:
    """The tails by head and relation, for triples with directed relations; both directions."""
    found: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for head, relation, tail in triples:
        found[head, relation].add(tail)
        found[tail, relation ^ 1].add(head)
    return dict(found)


def project(links: Index, heads: set[int], relation: int) -> set[int]:
    """Everything that the relation leads to from some of the heads."""
    found: set[int] = set()
    for head in heads:
        tails = links.get((head, relation))
        if tails:
            found |= tails
    return found


def one(links: Index, head: int, relation: int) -> set[int]:
    """The tails of one head."""
    return links.get((head, relation), NOTHING)


def answer_1p(links: Index, query: Any) -> set[int]:
    e, (r,) = query
    return links.get((e, r), NOTHING)


def answer_2p(links: Index, query: Any) -> set[int]:
    e, (r, s) = query
    return project(links, one(links, e, r), s)


def answer_3p(links: Index, query: Any) -> set[int]:
    e, (r, s, t) = query
    return project(links, project(links, one(links, e, r), s), t)


def answer_2i(links: Index, query: Any) -> set[int]:
    (a, (r,)), (b, (s,)) = query
    return one(links, a, r) & one(links, b, s)


def answer_3i(links: Index, query: Any) -> set[int]:
    (a, (r,)), (b, (s,)), (c, (t,)) = query
    return one(links, a, r) & one(links, b, s) & one(links, c, t)


def answer_ip(links: Index, query: Any) -> set[int]:
    ((a, (r,)), (b, (s,))), (t,) = query
    return project(links, one(links, a, r) & one(links, b, s), t)


def answer_pi(links: Index, query: Any) -> set[int]:
    (a, (r, s)), (b, (t,)) = query
    return project(links, one(links, a, r), s) & one(links, b, t)


def answer_2u(links: Index, query: Any) -> set[int]:
    (a, (r,)), (b, (s,)), _ = query
    return one(links, a, r) | one(links, b, s)


def answer_up(links: Index, query: Any) -> set[int]:
    ((a, (r,)), (b, (s,)), _), (t,) = query
    return project(links, one(links, a, r) | one(links, b, s), t)


def answer_2in(links: Index, query: Any) -> set[int]:
    (a, (r,)), (b, (s, _)) = query
    return one(links, a, r) - one(links, b, s)


def answer_3in(links: Index, query: Any) -> set[int]:
    (a, (r,)), (b, (s,)), (c, (t, _)) = query
    return (one(links, a, r) & one(links, b, s)) - one(links, c, t)


def answer_inp(links: Index, query: Any) -> set[int]:
    ((a, (r,)), (b, (s, _))), (t,) = query
    return project(links, one(links, a, r) - one(links, b, s), t)


def answer_pin(links: Index, query: Any) -> set[int]:
    (a, (r, s)), (b, (t, _)) = query
    return project(links, one(links, a, r), s) - one(links, b, t)


def answer_pni(links: Index, query: Any) -> set[int]:
    (a, (r, s, _)), (b, (t,)) = query
    return one(links, b, t) - project(links, one(links, a, r), s)


ANSWERS: dict[str, Callable[[Index, Any], set[int]]] = {
    "1p": answer_1p, "2p": answer_2p, "3p": answer_3p, "2i": answer_2i, "3i": answer_3i,
    "ip": answer_ip, "pi": answer_pi, "2u": answer_2u, "up": answer_up, "2in": answer_2in,
    "3in": answer_3in, "inp": answer_inp, "pin": answer_pin, "pni": answer_pni,
}  # fmt: skip
