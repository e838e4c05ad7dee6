"""``kopl cqa ask``: what a reasoner takes for the answers of one query, and why."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError
from kopl_cli.common import positive
from kopl_cli.cqa.answer import add_graph, open_graph, open_names
from kopl_cli.cqa.reasoners import add_reasoner, asked, find_reasoner

if TYPE_CHECKING:
    from cqa.evaluation.reasoner import Explained, Scored
    from cqa.graphs.graph import Graph
    from kb.store import KnowledgeBase

KNOWN, PREDICTED = "known", "predicted"
LIMIT = 10
PICTURES = ("mermaid", "svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Rank what may answer a query, by a reasoner's scores: 'known' when the observed graph has"
        " the answer, else 'predicted'; below each, where the reasoner tells, what supports it: an"
        " entity for every variable, and what each link is worth. The query is read as"
        " kopl cqa answer reads it."
    )
    parser.add_argument("query", metavar="QUERY", help="the query; - for standard input, @FILE")
    add_graph(parser, names=True)
    add_reasoner(parser)
    parser.add_argument(
        "--limit", type=positive, default=LIMIT, metavar="N",
        help=f"print so many answers (default: {LIMIT})",
    )  # fmt: skip
    parser.add_argument(
        "--new", action="store_true", help="leave out what the observed graph knows"
    )
    parser.add_argument("--no-support", action="store_true", help="print the answers alone")
    parser.add_argument(
        "--mermaid", metavar="FILE", help="write the support of the first answer as a chart"
    )
    parser.add_argument(
        "--svg", metavar="FILE", help="write the support of the first answer as a picture"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


@dataclass
class RankedAnswer:
    """An answer with its score; ``support`` where it is told."""

    row: tuple[int, ...]
    score: float
    known: bool
    support: Explained | None = None


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from cqa.answering.answer import answers
    from cqa.evaluation.reasoner import as_scored
    from cqa.notation.reading import read_query
    from kopl_base.stream import writing
    from kopl_cli.common import program_text, show_warnings

    show_warnings()
    graph = open_graph(arguments)
    kb = open_names(arguments.kb, graph)
    names: Any = GraphNames(graph, kb)
    read = read_query(program_text(arguments.query), graph, kb)
    if not read.query.free:
        raise KoplError("the query has no free variable to rank; ask it with kopl cqa answer")
    given = asked(arguments)
    reasoner: Any = find_reasoner(given, graph, arguments.split)
    query = read.tree or read.query
    free = [variable.name for variable in read.query.free]
    scored = as_scored(reasoner.scores(query), len(free), graph.entity_count)
    observed = answers(read.query, graph.observed(arguments.split), universe=read.tree is not None)
    known = {tuple(row) for row in observed.tolist()}
    found = ranked(scored, known, arguments.limit, arguments.new)
    explain = getattr(reasoner, "explain", None)
    if explain is not None and not arguments.no_support:
        for one in found:
            one.support = explain(query, one.row)
    for form in PICTURES:
        path = getattr(arguments, form)
        if not path:
            continue
        support = found[0].support if found else None
        drawn = getattr(support, form, None)
        if drawn is None:
            raise KoplError(f"--{form}: the reasoner {given.shown} tells of no support")
        with writing(path) as file:
            file.write(drawn(names))
    if arguments.json:
        print(json.dumps(_objects(found, free, names, given.shown), ensure_ascii=False))
    else:
        _print(found, free, names)
    return 0


def ranked(
    scored: Scored, known: set[tuple[int, ...]], limit: int, new: bool
) -> list[RankedAnswer]:
    """The best answers: entities, or of several variables tuples.

    Tuples are those that the reasoner scores, or else all of the variables' best entities, by the
    sums of their ranks.
    """
    import numpy as np

    wanted = limit + (len(known) if new else 0)
    scores = scored.scores
    rows: list[tuple[tuple[int, ...], float]] = []
    if len(scores) == 1:
        order = np.argsort(-scores[0], kind="stable")[:wanted]
        for at in order.tolist():
            rows.append(((at,), float(scores[0, at])))
    elif scored.tuples is not None:
        listed = scored.tuples
        order = np.argsort(-listed.scores, kind="stable")[:wanted]
        for at in order.tolist():
            rows.append((tuple(listed.tuples[at].tolist()), float(listed.scores[at])))
    else:
        best = [np.argsort(-row, kind="stable")[:wanted] for row in scores]
        places = np.indices([len(own) for own in best]).reshape(len(best), -1).T
        order = np.argsort(places.sum(axis=1), kind="stable")[:wanted]
        for chosen in places[order]:
            row = tuple(int(own[at]) for own, at in zip(best, chosen, strict=True))
            mean = np.mean([float(own[at]) for own, at in zip(scores, row, strict=True)])
            rows.append((row, float(mean)))
    found = [RankedAnswer(row, score, row in known) for row, score in rows]
    return [one for one in found if not (new and one.known)][:limit]


class GraphNames:
    """A graph as far as supports ask it for names: those of its knowledge base where given."""

    def __init__(self, graph: Graph, kb: KnowledgeBase | None) -> None:
        self._graph, self._kb = graph, kb
        self.relation_name = graph.relation_name

    def entity_name(self, entity: int) -> str:
        """The name of an entity."""
        return self._graph.entity_name(entity) if self._kb is None else self._kb.name_of(entity)


def _print(found: list[RankedAnswer], free: list[str], names: Any) -> None:
    from kopl_base.tables import aligned

    headings = ["", *(f"?{name}" for name in free), "score", ""]
    rows = [
        [
            str(number),
            *(names.entity_name(entity) for entity in one.row),
            f"{one.score:.4g}",
            KNOWN if one.known else PREDICTED,
        ]
        for number, one in enumerate(found, 1)
    ]
    right = [True, *(False for _ in free), True, False]
    head, *lines = aligned([headings, *rows], right)
    print(head)
    for line, one in zip(lines, found, strict=True):
        print(line)
        if one.support is not None:
            print(indent(one.support.text(names), "      "))
    if not found:
        print("kopl: there is nothing to rank", file=sys.stderr)


def _objects(
    found: list[RankedAnswer], free: list[str], names: Any, reasoner: str
) -> dict[str, Any]:
    listed = []
    for one in found:
        answer: dict[str, Any] = {
            "entities": list(one.row),
            "names": [names.entity_name(entity) for entity in one.row],
            "score": one.score,
            "kind": KNOWN if one.known else PREDICTED,
        }
        if one.support is not None:
            keys = ("head", "relation", "tail", "value", "kind")
            answer["bindings"] = dict(one.support.bindings)
            answer["links"] = [
                dict(zip(keys, row, strict=True)) for row in one.support.table(names)
            ]
        listed.append(answer)
    return {"reasoner": reasoner, "free": free, "answers": listed}
