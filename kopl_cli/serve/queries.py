"""Programs as logical queries over an incomplete graph, with what a reasoner predicts.

The graph is the knowledge base's with its usual splits (``kopl cqa graph --kb``): a reasoner sees
the links of train and valid, and what it predicts may be among those of test, or be nowhere.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from cqa.errors import QueryError
from kopl.drafts import Draft
from kopl.functions import AND, FILTER_CONCEPT, FIND, OR, RELATE
from kopl.program import Call
from kopl.typecheck import check
from kopl_base.errors import KoplError
from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.routes import (
    MAYBE_TEXT,
    NUMBER,
    TEXT,
    WHOLE,
    Field,
    MissingPartError,
    Route,
    listed,
    record,
)

if TYPE_CHECKING:
    from cqa.graphs.graph import Graph
    from cqa.query import Query

# The split whose links are to be found.
SPLIT = "test"
SETS = (FIND, RELATE, FILTER_CONCEPT, AND, OR)


class Reasoners:
    """The reasoner of the server over the graphs of its knowledge bases, each made once."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Graph, Any]] = {}

    def open(self, base: Base) -> None:
        """Open the reasoner over a knowledge base, before anybody asks it; raises KoplError."""
        with self._lock:
            self._over(base)

    def ask(self, base: Base, program: Call, limit: int, *, new: bool = False) -> dict[str, Any]:
        """What ``/api/query-view`` answers; raises KoplError for a program without a set part."""
        from cqa.answering.answer import answers
        from cqa.evaluation.reasoner import as_scored
        from cqa.notation.text import write_text
        from kopl_cli.cqa.ask import KNOWN, PREDICTED, GraphNames, ranked

        with self._lock:  # one network, on one device
            graph, reasoner = self._over(base)
            part, query = set_part(program, graph, base)
            names: Any = GraphNames(graph, base.kb)
            scored = as_scored(reasoner.scores(query), 1, graph.entity_count)
            observed = answers(query, graph.observed(SPLIT))
            known = {tuple(row) for row in observed.tolist()}
            # The score that is lowest of all says nothing of those who have it.
            least = float(scored.scores.min())
            found = [
                one for one in ranked(scored, known, limit, new) if one.known or one.score > least
            ]
            explain = getattr(reasoner, "explain", None)
            supports = [None if explain is None else explain(query, one.row) for one in found]
        path = next(
            path
            for call, path in zip(Draft.of(program).calls(), Draft.of(program).paths(), strict=True)
            if call == part
        )
        return {
            "program": str(part),
            "path": [*path],
            "formula": write_text(query, graph),
            "svg": drawn(query, graph, base),
            "reasoner": self.playground.reasoner,
            "answers": [
                {
                    "text": base.kb.name_of(one.row[0]),
                    "id": base.kb.id_of(one.row[0]),
                    "score": round(one.score, 6),
                    "kind": KNOWN if one.known else PREDICTED,
                    "support": None if support is None else support.text(names),
                }
                for one, support in zip(found, supports, strict=True)
            ],
            "known": len(known),
        }

    def _over(self, base: Base) -> tuple[Graph, Any]:
        from cqa.graphs.from_kb import graph_from_kb
        from kopl_cli.cqa.reasoners import Asked, find_reasoner

        name = self.playground.reasoner
        if name is None:
            raise MissingPartError(
                "the server has no reasoner", to_try="start it with --reasoner R, such as the"
                " folder of a run of 'kopl cqa train'",
            )  # fmt: skip
        if base.kb.fingerprint not in self._known:
            graph = graph_from_kb(base.kb)
            self._known.clear()  # one at a time: graphs are large
            self._known[base.kb.fingerprint] = graph, find_reasoner(Asked(name), graph, SPLIT)
        return self._known[base.kb.fingerprint]


def set_part(program: Call, graph: Graph, base: Base) -> tuple[Call, Query]:
    """The largest part of a program that is a logical query, with the query.

    Raises KoplError where there is none, with the reason of the largest part that might be one.
    """
    from cqa.notation.kopl import from_kopl

    reason: KoplError | None = None
    waiting = [program]
    while waiting:
        call = waiting.pop(0)
        if call.function in SETS and call.inputs:
            try:
                return call, from_kopl(call, graph, base.kb)
            except QueryError as error:
                reason = reason or error
        waiting += call.inputs
        waiting.sort(key=lambda one: -one.size)
    raise reason or QueryError(
        "no part of the program is a logical query: Relate, FilterConcept, And and Or over Find"
    )


def drawn(query: Query, graph: Graph, base: Base) -> str:
    """The query graph as SVG: what is given on top, what is asked for below."""
    from cqa.models.search.picture import Box, support_picture
    from cqa.query import Constant

    boxes: list[Box] = []
    links: list[tuple[int, int, Box]] = []
    asked = []
    for disjunct in query.disjuncts:
        places: dict[Any, int] = {}

        def place(term: Any, places: dict[Any, int] = places) -> int:
            if term not in places:
                places[term] = len(boxes)
                if isinstance(term, Constant):
                    boxes.append(Box(base.kb.name_of(int(term.entity)), "entity"))
                elif term in query.free:
                    asked.append(len(boxes))
                    boxes.append(Box("?", "answer"))
                else:
                    boxes.append(Box(f"?{term.name}", "known"))
            return places[term]

        for atom in disjunct.atoms:
            number = int(atom.relation)
            ends = place(atom.head), place(atom.tail)
            head, tail = ends if number % 2 == 0 else ends[::-1]
            look = "predicted" if atom.positive else "not"
            links.append((head, tail, Box(graph.relation_name(number // 2), look)))
    return support_picture(boxes, links, asked)


def _view(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    program = base.read(given["program"])
    check(program)
    reasoners = playground.part(Reasoners)
    return reasoners.ask(base, program, given["limit"], new=given["new"])


ROUTES = [
    Route(
        "POST",
        "/api/query-view",
        "The set part of a program as a logical query, with the answers that a reasoner predicts.",
        _view,
        (
            Field("program", "program", "a program in any spelling", True),
            Field("limit", "integer", "at most so many answers", default=10, least=1, most=100),
            Field("new", "truth", "leave out what the graph knows", default=False),
        ),
        record(
            program=TEXT, path=listed(WHOLE), formula=TEXT, svg=TEXT, reasoner=TEXT,
            answers=listed(record(text=TEXT, id=TEXT, score=NUMBER, kind=TEXT, support=MAYBE_TEXT)),
            known=WHOLE,
        ),
    ),
]  # fmt: skip
