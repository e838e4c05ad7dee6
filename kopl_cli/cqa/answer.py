"""``kopl cqa answer``: the answers of one query, each marked as easy or hard."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError
from kopl_cli.common import positive

if TYPE_CHECKING:
    from cqa.answering.answer import Answers
    from cqa.graphs.graph import Graph
    from cqa.notation.reading import Read
    from kb import KnowledgeBase

# What is known of an answer, and how it is shown.
EASY, HARD, LOST = "easy", "hard", "lost"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Answer a query on the graph of a split: one answer a line, after a tab 'easy' when the"
        " observed graph has it, too, and 'hard' when it takes a missing link. The query is read"
        " as JSON of an operator tree, BetaE tuple, EFOk formula with numbers, SPARQL,"
        " first-order text such as 'exists x. r(a,x) & s(x,?y) & !t(b,?y)' or, with --kb, KoPL."
    )
    parser.add_argument("query", metavar="QUERY", help="the query; - for standard input, @FILE")
    add_graph(parser, names=True)
    parser.add_argument(
        "--observed", action="store_true", help="answer on the observed graph alone"
    )
    parser.add_argument(
        "--count",
        action="store_true",
        help="print also how many matches each answer has (assignments of the other variables)",
    )
    parser.add_argument(
        "--hardness",
        action="store_true",
        help="print also what each answer reduces to once known links are used",
    )
    parser.add_argument(
        "--universe",
        action="store_true",
        help="let a variable that stands in no positive atom be any entity, as in ¬s(x,?y) alone",
    )
    parser.add_argument("--show", action="store_true", help="print the query first, as a formula")
    parser.add_argument("--limit", type=positive, metavar="N", help="print at most so many answers")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_samples(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the file of sampled queries to the arguments of a command."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?" if optional else None,
        help="sampled queries with their answers: JSON lines, Parquet, or a folder of BetaE's"
        " pickles, EFO-1-QA's tables or EFOk-CQA's JSON; or queries whose answers the graph gives:"
        " BetaE's pickle of queries alone, JSON lines of Query2box",
    )


def add_graph(parser: argparse.ArgumentParser, *, kb: bool = False, names: bool = False) -> None:
    """Add the graph and the split to the arguments of a command.

    ``kb``: a knowledge base may stand in its place; ``names``: or beside it, for its names.
    """
    source = parser.add_mutually_exclusive_group(required=True) if kb else parser
    source.add_argument(
        "--graph",
        required=not kb and not names,
        metavar="DIR",
        help="folder or file of a graph: BetaE's, OpenKE's, tab-separated names, NumPy, saved",
    )
    if kb:
        source.add_argument(
            "--kb",
            metavar="KB",
            help="a knowledge base, its snapshot, or 'world', as kopl cqa graph --kb KB splits it",
        )
    if names:
        source.add_argument(
            "--kb",
            metavar="KB",
            help="the knowledge base of the graph: reads KoPL, prints its names; without --graph,"
            " the graph that kopl cqa graph --kb KB makes of it",
        )
    parser.add_argument(
        "--split",
        default="test",
        metavar="NAME",
        help="whose queries: answers are on the links up to this split, easy ones on those before"
        " it (default: test)",
    )


def graph_of(graph: str | None, kb: str | None) -> Graph:
    """The graph in a folder or file, or that of a knowledge base with its usual splits."""
    from cqa.graphs.from_kb import graph_from_kb
    from cqa.graphs.readers import read_graph
    from kb import load

    if graph is not None:
        return read_graph(graph)
    assert kb is not None
    found = graph_from_kb(load(kb))
    print(f"kopl: {found}", file=sys.stderr)
    return found


def open_graph(arguments: argparse.Namespace) -> Graph:
    """The graph that the arguments name; raises KoplError for a split that it does not have."""
    if arguments.graph is None and arguments.kb is None:
        raise KoplError("give --graph DIR, or --kb KB for the graph of a knowledge base")
    graph = graph_of(arguments.graph, arguments.kb if arguments.graph is None else None)
    if arguments.split not in graph.splits:
        raise KoplError(
            f"--split: the graph has no split {arguments.split!r}; it has {', '.join(graph.splits)}"
        )
    return graph


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from cqa.answering.answer import answers, evaluate
    from cqa.answering.semiring import BOOLEAN, COUNTING
    from cqa.errors import QueryError, UnsafeQueryError
    from cqa.notation.reading import read_query
    from cqa.notation.text import write_text
    from kopl_cli.common import program_text, show_warnings

    show_warnings()
    graph = open_graph(arguments)
    kb = open_names(arguments.kb, graph)
    read = read_query(program_text(arguments.query), graph, kb)
    if arguments.show:
        print(write_text(read.query, graph))
    # A tree in one of De Morgan's forms has complements that nothing bounds.
    universe = arguments.universe or read.tree is not None
    observed = graph.observed(arguments.split)
    links = observed if arguments.observed else graph.full(arguments.split)
    semiring = COUNTING if arguments.count else BOOLEAN
    try:
        found = evaluate(read.query, links, semiring, universe=universe)
    except UnsafeQueryError as error:
        raise QueryError(
            f"{error}, such as ∃z. r(z,?y) for a variable y, or give --universe to let it be any"
            " entity"
        ) from None
    known = {tuple(row) for row in answers(read.query, observed, universe=universe).tolist()}
    rows = found.tuples.tolist()
    lost = len(known) - sum(tuple(row) in known for row in rows)
    free = [variable.name for variable in read.query.free]
    shown = _Shown(graph, kb, found, known)
    if arguments.hardness and free:
        shown.reductions = _reductions(graph, read, rows, arguments.split)
    if arguments.json:
        _print_json(shown, free, read.notation, arguments)
    elif not free:
        _print_truth(bool(rows), bool(known), arguments.observed)
    else:
        _print_rows(shown, free, arguments)
    if lost and not arguments.json:
        what = (
            "answer of the observed graph is" if lost == 1 else "answers of the observed graph are"
        )
        print(
            f"kopl: {lost} {what} not on the full graph, where a link that was missing makes a"
            " negated part hold",
            file=sys.stderr,
        )
    return 0


@dataclass
class _Shown:
    """Answers with what is known of them."""

    graph: Graph
    kb: KnowledgeBase | None
    found: Answers
    known: set[tuple[int, ...]]
    reductions: list[str] | None = None

    def name(self, entity: int) -> str:
        """An entity's name: that of the knowledge base where there is one."""
        return self.kb.name_of(entity) if self.kb else self.graph.entity_name(entity)


def open_names(source: str | None, graph: Graph) -> KnowledgeBase | None:
    """The knowledge base whose names a graph has; raises KoplError for that of another graph."""
    from kb import load

    if source is None:
        return None
    kb = load(source)
    names = graph.entities
    if kb.node_count != graph.entity_count or names is None or names[0] != kb.id_of(0):
        raise KoplError("--kb: the graph was made of another knowledge base; see kopl cqa graph")
    return kb


def _reductions(graph: Graph, read: Read, rows: list[list[int]], split: str) -> list[str]:
    from cqa.hardness.hardness import Hardness

    told = Hardness(graph, split).label([read.tree or read.query], [rows])
    return ["" if kind is None else kind.name for kind in told.of(0)]


def _print_truth(true: bool, easy: bool, observed: bool) -> None:
    """A query without free variables."""
    mark = "" if observed or not true else f"\t{EASY if easy else HARD}"
    print(("yes" if true else "no") + mark)


def _print_rows(shown: _Shown, free: list[str], arguments: argparse.Namespace) -> None:
    from kopl_base.tables import print_table

    rows = shown.found.tuples.tolist()
    first = rows[: arguments.limit]
    headings = [f"?{name}" for name in free]
    table: list[list[object]] = [[shown.name(entity) for entity in row] for row in first]
    if not arguments.observed:
        headings.append("")
        for line, row in zip(table, first, strict=True):
            line.append(EASY if tuple(row) in shown.known else HARD)
    if shown.found.values is not None:
        headings.append("matches")
        for line, value in zip(table, shown.found.values.tolist(), strict=False):
            line.append(value)
    if shown.reductions is not None:
        headings.append("reduces to")
        for line, reduction in zip(table, shown.reductions, strict=False):
            line.append(reduction)
    print_table(headings, table)
    if not rows:
        print("kopl: there is no answer", file=sys.stderr)
    if len(first) < len(rows):
        print(f"kopl: {len(rows) - len(first)} more answers are not shown", file=sys.stderr)


def _print_json(
    shown: _Shown, free: list[str], notation: str, arguments: argparse.Namespace
) -> None:
    found, known = shown.found, shown.known
    rows = [tuple(row) for row in found.tuples.tolist()]
    own = set(rows)
    values = None if found.values is None else found.values.tolist()
    listed: list[dict[str, Any]] = []
    for at, row in enumerate(rows[: arguments.limit]):
        answer: dict[str, Any] = {
            "entities": list(row),
            "names": [shown.name(entity) for entity in row],
        }
        if not arguments.observed:
            answer["kind"] = EASY if row in known else HARD
        if values is not None:
            answer["matches"] = values[at]
        if shown.reductions is not None:
            answer["reduces to"] = shown.reductions[at]
        listed.append(answer)
    result: dict[str, Any] = {
        "notation": notation,
        "split": arguments.split,
        "graph": "observed" if arguments.observed else "full",
        "free": free,
        "count": len(rows),
        "answers": listed,
    }
    if not arguments.observed:
        result[LOST] = [list(row) for row in sorted(known - own)]
    print(json.dumps(result, ensure_ascii=False))
