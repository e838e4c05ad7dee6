"""Reasoners by what the command line calls them, and judges of them."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cqa.evaluation.judging import Judge, Judged, Reductions
from cqa.evaluation.reasoner import NAMES, Reasoner, as_reasoner, named
from cqa.vocabularies import SEARCHES
from kopl_base.errors import KoplError
from kopl_cli.common import torch_is_needed

if TYPE_CHECKING:
    from cqa.graphs.graph import Graph
    from cqa.sampling.sample import Sample


@dataclass(frozen=True)
class Asked:
    """What the command line says of a reasoner.

    ``name``: one of this package, ``module:object``, the folder of a run, a hub's name of one, or
    the name of a model that needs no training; ``search`` and ``pairs`` as
    `cqa.models.opening.open_reasoner` has them.
    """

    name: str
    search: str | None = None
    pairs: tuple[str, ...] = ()
    seed: int = 0

    @property
    def shown(self) -> str:
        """What reports call it."""
        return " ".join([self.name, *filter(None, [self.search]), *self.pairs])


def add_reasoner(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which reasoner is meant."""
    parser.add_argument(
        "--reasoner",
        required=True,
        metavar="R",
        help="exact (the full graph), observed (the observed graph), random; the folder of a run"
        " of kopl cqa train, or its name on a hub; a model that needs no training; or"
        " module:object: a reasoner, five operators, or what makes either of a graph and a split",
    )
    parser.add_argument(
        "--search",
        choices=SEARCHES,
        help="how the rows of a run of a link predictor are searched (default: qto)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="change one setting, such as search.beam=32; may be repeated",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of random (default: 0)")


def asked(arguments: argparse.Namespace) -> Asked:
    """The reasoner that the arguments name."""
    return Asked(arguments.reasoner, arguments.search, tuple(arguments.set), arguments.seed)


def find_reasoner(given: Asked, graph: Graph, split: str) -> Reasoner:
    """The reasoner that is asked for; a module is looked for here, too.

    Raises KoplError for a name, a module, an object or a run that there is not, and for a module
    that fails.
    """
    module, colon, path = given.name.partition(":")
    here = os.path.exists(given.name)
    if given.name not in NAMES and (here or not colon):
        return _learned(given, graph, split)
    if given.search or given.pairs:
        raise KoplError(f"--reasoner {given.name} has no settings; leave out --search and --set")
    if given.name in NAMES:
        return named(given.name, graph, split, given.seed)
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever somebody's module does when it is imported
        raise KoplError(
            f"--reasoner: the module {module!r} cannot be imported"
            f" ({type(error).__name__}: {error})"
        ) from error
    finally:
        sys.path.remove(os.getcwd())
    for part in path.split("."):
        if not hasattr(found, part):
            raise KoplError(f"--reasoner: there is no {path!r} in the module {module!r}")
        found = getattr(found, part)
    return as_reasoner(found, graph, split)


def _learned(given: Asked, graph: Graph, split: str) -> Reasoner:
    """The reasoner of a run, or of a model by its name."""
    if not os.path.exists(given.name) and "/" not in given.name:
        try:
            from cqa.models.settings import REASONERS

            models = REASONERS.names()
        except ImportError:  # without the packages that models need there is none
            models = ()
        if given.name not in models:
            raise KoplError(
                f"there is no reasoner {given.name!r}; give {', '.join(NAMES)}, the folder of a"
                " run, the name of a model that needs no training, or module:object"
            )
    with torch_is_needed():
        from cqa.models.opening import open_reasoner
    return open_reasoner(given.name, graph, split, search=given.search, pairs=given.pairs)


class TellingJudge(Judge):
    """A judge that tells of what somebody's own reasoner raises by its place."""

    name = ""

    def chunk(self, samples: Sequence[Sample], first: int = 1) -> list[Judged]:
        """The queries by type."""
        with _telling(self.name):
            return super().chunk(samples, first)


@contextmanager
def _telling(reasoner: str) -> Iterator[None]:
    try:
        yield
    except KoplError:
        raise
    except Exception as error:
        if ":" not in reasoner:
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise KoplError(
            f"--reasoner {reasoner}: {type(error).__name__}: {error} ({last.name} in"
            f" {last.filename}, line {last.lineno})"
        ) from error


def judge_of(
    given: Asked,
    graph: Graph,
    *,
    split: str,
    ties: str,
    compat: str | None,
    hardness: bool,
    workers: int = 1,
) -> Judge:
    """What judges a reasoner on queries of a graph's split, in one of some workers.

    ``hardness``: it tells what hard answers reduce to.
    """
    if workers > 1:
        # Heard by torch when it is first imported: so many processes share the cores.
        own = max(1, (os.cpu_count() or 1) // workers)
        os.environ.setdefault("OMP_NUM_THREADS", str(own))
    with _telling(given.name):
        reasoner = find_reasoner(given, graph, split)
    labels = Reductions(graph, split, compat) if hardness else None
    judge = TellingJudge(reasoner, graph.entity_count, ties, compat, labels)
    judge.name = given.name
    return judge
