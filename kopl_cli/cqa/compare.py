"""``kopl cqa compare``: runs beside each other, with intervals over queries and paired tests."""

from __future__ import annotations

import argparse
import json
import sys

from cqa.vocabularies import ROWS, TABLE_FORMATS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Compare runs of kopl cqa evaluate on the same queries: each run's figure in percent with"
        " its interval of 95 % (bootstrap over queries, within types), and how far each run is"
        " above the first, with the interval and the p-value of a paired randomisation test. The"
        " p-values are of each row alone."
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="REPORT",
        help="reports that kopl cqa evaluate --format json wrote; the others are compared with the"
        " first",
    )
    parser.add_argument(
        "--by",
        choices=ROWS,
        default="type",
        help="a row for each type (default), group, or simpler type that answers reduce to",
    )
    parser.add_argument(
        "--metric",
        metavar="M",
        help="such as hit@10 (default: mrr, of several variables joint_mrr)",
    )
    parser.add_argument(
        "--name",
        action="append",
        metavar="NAME",
        help="what a run is called, once for each, in their order (default: its reasoner)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the draws (default: 0)"
    )
    parser.add_argument(
        "--format", choices=(*TABLE_FORMATS, "json"), default="text", help="default: text"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from cqa.evaluation.comparison import compare, comparison_json, comparison_table
    from cqa.evaluation.files import read_evaluation
    from cqa.evaluation.tables import write
    from kopl_base.errors import KoplError

    if arguments.name is not None and len(arguments.name) != len(arguments.runs):
        raise KoplError(f"--name: {len(arguments.name)} names for {len(arguments.runs)} runs")
    if arguments.seed < 0:
        raise KoplError(f"--seed: a number from 0 on was expected, not {arguments.seed}")
    runs = [read_evaluation(path) for path in arguments.runs]
    names = arguments.name or [one.reasoner for one in runs]
    metric = arguments.metric
    if metric is None:
        metric = "mrr" if any("mrr" in one.metrics for one in runs) else "joint_mrr"
    rows = compare(runs, arguments.by, metric, arguments.seed)
    for one in runs[1:]:
        for what in ("ties", "compat"):
            mine, theirs = getattr(runs[0], what), getattr(one, what)
            if mine != theirs:
                print(f"kopl: {one.reasoner} has {what} {theirs}, not {mine}", file=sys.stderr)
    unpaired = {at for row in rows for at, one in enumerate(row.differences) if one is None}
    for at in sorted(unpaired):
        print(
            f"kopl: {names[at + 1]} was not everywhere asked the queries that {names[0]} was: no"
            " paired test there",
            file=sys.stderr,
        )
    if arguments.format == "json":
        print(json.dumps(comparison_json(rows, names, metric, arguments.by), ensure_ascii=False))
    else:
        sys.stdout.write(write(comparison_table(rows, names, metric), arguments.format))
    return 0
