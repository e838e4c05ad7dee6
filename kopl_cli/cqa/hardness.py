"""``kopl cqa hardness``: what the answers of sampled queries reduce to."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cqa.vocabularies import INPUT_FORMATS, NO_ANSWER, PUBLISHED_SHARES
from kopl_base.errors import KoplError
from kopl_cli.cqa.answer import add_graph, add_samples, open_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cqa.hardness.hardness import Labels
    from cqa.hardness.report import Report
    from cqa.sampling.sample import Sample

REPORTS = ("text", "csv", "png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Count what (query, hard answer) pairs reduce to: the type that the missing links of a"
        " match spell, for the match with the fewest missing links, then the fewest hops. A pair"
        ' all of whose links are missing is counted as "itself" (full inference).'
    )
    add_samples(parser)
    add_graph(parser)
    parser.add_argument("--input-format", choices=INPUT_FORMATS,
                        help="default: found by what is there")  # fmt: skip
    parser.add_argument(
        "--compat", choices=("paper",),
        help="unions as the published program has them: every branch must hold (default: each"
        " disjunct by itself); De Morgan's forms of them, such as 2u-DM, are skipped",
    )  # fmt: skip
    parser.add_argument("--easy", action="store_true", help="count easy answers, too")
    parser.add_argument("--report", choices=REPORTS, default="text", help="default: text")
    parser.add_argument("--published", choices=PUBLISHED_SHARES,
                        help="show the published shares of a graph, too: of BetaE's test queries,"
                        " with --compat paper")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write the report there, not to standard output")  # fmt: skip
    parser.add_argument("--labels", metavar="FILE",
                        help="write what each answer reduces to, as JSON lines")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from cqa.formats.samples import read_samples
    from cqa.hardness.hardness import Hardness
    from cqa.hardness.report import Report, labelled
    from kopl_base.stream import writing
    from kopl_cli.common import show_warnings

    show_warnings()
    if arguments.report == "png" and arguments.output is None:
        raise KoplError("--report png needs a file: give -o FILE.png")
    graph = open_graph(arguments)
    hardness = Hardness(graph, arguments.split, arguments.compat)
    samples = read_samples(arguments.file, arguments.input_format, arguments.split, graph)
    found = Report(arguments.published)
    parts = labelled(samples, hardness, easy=arguments.easy)
    if arguments.labels is None:
        for _, labels in parts:
            found.add(labels)
    else:
        with writing(arguments.labels) as file:
            for some, labels in parts:
                found.add(labels)
                for line in label_lines(some, labels, arguments.easy):
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    if not found.counts and not found.skipped:
        raise KoplError(f"{arguments.file}: holds no queries of {arguments.split}")
    show(found, arguments)
    _tell(found, arguments.compat)
    if arguments.published is not None:
        _tell_published(arguments)
    return 0


def _tell(found: Report, compat: str | None) -> None:
    """Say which queries were skipped, and of answers that the graph does not have."""
    if found.skipped:
        shown = ", ".join(f"{count:,} of {name}" for name, count in sorted(found.skipped.items()))
        print(
            f"kopl: {found.skipped.total():,} queries are skipped, as the published program skips"
            f" De Morgan's forms: {shown}",
            file=sys.stderr,
        )
    asked = sum(counter.total() for counter in found.counts.values())
    strange = sum(counter[NO_ANSWER] for counter in found.counts.values())
    # In the paper's mode an answer of a union may lack a branch; elsewhere each should be one.
    if strange and compat is None:
        print(
            f"kopl: {strange:,} of {asked:,} answers in the file are no answers on this graph; the"
            " queries do not fit it: give the graph and the --split that they were made on",
            file=sys.stderr,
        )


def _tell_published(arguments: argparse.Namespace) -> None:
    """Say what the published shares are of, where it is not what was counted here."""
    from cqa.formats.samples import format_of

    if arguments.compat is None:
        print(
            "kopl: the published shares were computed with the published program's own rules: add"
            " --compat paper for them",
            file=sys.stderr,
        )
    if (arguments.input_format or format_of(arguments.file, arguments.split)) != "betae":
        print(
            "kopl: the published shares are of BetaE's test queries; other queries, such as"
            " Query2box's, have other shares",
            file=sys.stderr,
        )


def label_lines(samples: Sequence[Sample], labels: Labels, easy: bool) -> Iterator[dict[str, Any]]:
    """For each query its type, itself, and its answers by what they reduce to."""
    from cqa.formats.json_lines import answers_of, to_object

    for number, sample in enumerate(samples):
        if number in labels.skipped:
            continue
        answers = answers_of(sample.full if easy else sample.hard)
        groups: dict[str, list[Any]] = {}
        for answer, kind in zip(answers, labels.of(number), strict=True):
            groups.setdefault(kind.name if kind else NO_ANSWER, []).append(answer)
        own = labels.types[number]
        yield {"type": own, "query": to_object(sample)["query"], "reduces_to": groups}


def show(found: Any, arguments: argparse.Namespace) -> None:
    """Print or write a report as the arguments say."""
    from cqa.hardness.report import table, to_csv, write_heat_map
    from kopl_base.stream import writing
    from kopl_base.tables import print_table

    if arguments.report == "png":
        print(f"kopl: {write_heat_map(found, Path(arguments.output))}", file=sys.stderr)
        return
    if arguments.output is None:
        if arguments.report == "csv":
            to_csv(found, sys.stdout)
            return
        headings, rows = table(found)
        if not sys.stdout.isatty():
            # In a pipe the headings are a line like the others: the columns depend on the queries.
            rows = [headings, *rows]
        print_table(headings, rows)
        return
    with writing(arguments.output) as file:
        if arguments.report == "csv":
            to_csv(found, file)
        else:
            headings, rows = table(found)
            print_table(headings, [headings, *rows], file)
