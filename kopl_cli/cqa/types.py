"""``kopl cqa types``: the query types of the benchmarks, their forms and how many there are."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from cqa.vocabularies import FAMILIES, GRAPH_FAMILIES, SPACES
from kopl_base.errors import KoplError

if TYPE_CHECKING:
    from cqa.types.efok import Limits
    from cqa.types.registry import GraphType, TreeType
    from cqa.types.tree import Tree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "List query types, one formula a line; after a tab id, names, anchors and depth (operator"
        " trees) or constants, existential and free variables and topology (query graphs)."
    )
    parser.add_argument("--family", required=True, choices=FAMILIES, help="of which benchmark")
    parser.add_argument(
        "--counts", action="store_true", help="print how many types there are instead"
    )
    trees = parser.add_argument_group("for operator trees (efo1, betae)")
    trees.add_argument(
        "--form", metavar="F", help="one of the nine forms, such as DNF+IU (default: Original)"
    )
    trees.add_argument(
        "--compat",
        choices=("paper",),
        help="the forms as in the published table: DNF+d with n in nine types, DNF+IUD and DNF+IUd"
        " with D for two operands",
    )
    trees.add_argument(
        "--anchors", type=int, metavar="N", help="the most anchors (efo1; default: 3)"
    )
    trees.add_argument(
        "--depth", type=int, metavar="N", help="the most p and n on a path (efo1; default: 3)"
    )
    graphs = parser.add_argument_group("for query graphs (efok)")
    graphs.add_argument(
        "--space",
        choices=SPACES,
        help="every graph once (default), or the published list",
    )
    graphs.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="another limit than the published: existential=2, free=2, constants=3, nodes=6,"
        " edges=6, extra=1 (edges above a tree's), parallel=2, negative=1, distance=3",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from cqa.types import efo1
    from cqa.types.registry import types

    limits = read_limits(arguments.limit)
    if arguments.limit and arguments.family != "efok":
        raise KoplError("--limit is for --family efok")
    sizes = {"--anchors": efo1.ANCHORS, "--depth": efo1.DEPTH}
    for option, value in (("--anchors", arguments.anchors), ("--depth", arguments.depth)):
        if value is not None and arguments.family != "efo1":
            raise KoplError(f"{option} is for --family efo1")
        if value is not None:
            sizes[option] = value
    if arguments.compat and arguments.family in GRAPH_FAMILIES:
        raise KoplError("--compat is for operator trees; --space paper gives EFOk's published list")
    found = types(
        arguments.family,
        form=arguments.form,
        space=arguments.space,
        compat=arguments.compat,
        anchors=sizes["--anchors"],
        depth=sizes["--depth"],
        limits=limits,
    )
    if arguments.counts:
        from kopl_base.tables import print_table

        table = counts(found)
        if arguments.family == "efo1" and arguments.form is None:
            table += published_counts(efo1.types(sizes["--anchors"], sizes["--depth"]))
        print_table(("", "types"), table)
        return 0
    for row in found:
        print(*row.columns, sep="\t")
    return 0


def read_limits(given: Iterable[str]) -> Limits:
    """The limits of EFOk's space, the published ones where nothing is given.

    Raises KoplError for an unknown name or a value that is no number in range.
    """
    from cqa.types.efok import Limits

    names = [field.name for field in fields(Limits)]
    values: dict[str, int] = {}
    for text in given:
        name, _, number = text.partition("=")
        if name not in names or not number.isascii() or not number.isdecimal():
            raise KoplError(f"--limit: write NAME=N with one of {', '.join(names)}, not {text!r}")
        values[name] = int(number)
    return Limits(**values)


def counts(rows: Sequence[TreeType] | Sequence[GraphType]) -> list[tuple[str, int]]:
    """What the papers count of a list of types: name and number, the total first."""
    found = [("types", len(rows)), ("distinct formulas", len({row.formula for row in rows}))]
    cells: Counter[tuple[tuple[int | str, ...], str]] = Counter()
    for row in rows:
        cells.update(_cells(row))
    return found + [(name, number) for (_, name), number in sorted(cells.items())]


def published_counts(trees: Sequence[Tree]) -> list[tuple[str, int]]:
    """What EFO-1-QA tells of its forms: distinct formulas of each, and the pairs of Table 14."""
    from cqa.types.efo1 import differing, distinct
    from cqa.types.normal import FORMS

    found = [(f"distinct formulas, {form}", distinct(trees, form)) for form in FORMS]
    found.append(("distinct formulas, DNF+d as published", distinct(trees, "DNF+d", "paper")))
    pairs = differing(trees).items()
    return found + [(f"Table 14, {one} and {other}", number) for (one, other), number in pairs]


def _cells(row: TreeType | GraphType) -> list[tuple[tuple[int | str, ...], str]]:
    """The lines of the counts in which a type counts, each after what it is sorted by."""
    from cqa.types.efo1 import has_negation, has_union
    from cqa.types.normal import disjuncts, to_form
    from cqa.types.registry import TreeType

    if isinstance(row, TreeType):
        alternatives = len(disjuncts(to_form(row.tree, "DNF")))
        union, negation = has_union(row.tree), has_negation(row.tree)
        return [
            ((0,), "with negation" if negation else "without negation"),
            ((1,), "with union" if union else "without union"),
            ((2, alternatives), f"disjuncts {alternatives}"),
            ((3, row.anchors, row.depth), f"anchors {row.anchors}, depth {row.depth}"),
        ]
    name = f"free {row.free}, constants {row.constants}, existential {row.existential}"
    negative = sum(not atom.positive for atom in row.query.disjuncts[0].atoms)
    return [
        ((0,), "with negation" if negative else "without negation"),
        ((1, row.topology), row.topology),
        ((2, row.free), f"free {row.free}"),
        (
            (3, row.free, row.constants, row.existential, row.topology),
            f"{name}, {row.topology}",
        ),
    ]
