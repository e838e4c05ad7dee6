"""Reasoners by what the command line calls them, and judges of them."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cqa.evaluation.judging import Judge, Judged, Reductions
from cqa.evaluation.reasoner import Reasoner, as_reasoner, named
from kopl_base.errors import KoplError

if TYPE_CHECKING:
    from cqa.graphs.graph import Graph
    from cqa.sampling.sample import Sample


def find_reasoner(name: str, graph: Graph, split: str, seed: int = 0) -> Reasoner:
    """The reasoner of a name, or of ``module:object``, the module being looked for here, too.

    Raises KoplError for a name, a module or an object that there is not, and for a module that
    fails.
    """
    module, colon, path = name.partition(":")
    if not colon:
        return named(name, graph, split, seed)
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
    name: str,
    graph: Graph,
    *,
    split: str,
    seed: int,
    ties: str,
    compat: str | None,
    hardness: bool,
    workers: int = 1,
) -> Judge:
    """What judges the reasoner of a name on queries of a graph's split, in one of some workers.

    ``hardness``: it tells what hard answers reduce to.
    """
    if workers > 1:
        # Heard by torch when it is first imported: so many processes share the cores.
        own = max(1, (os.cpu_count() or 1) // workers)
        os.environ.setdefault("OMP_NUM_THREADS", str(own))
    with _telling(name):
        reasoner = find_reasoner(name, graph, split, seed)
    labels = Reductions(graph, split, compat) if hardness else None
    judge = TellingJudge(reasoner, graph.entity_count, ties, compat, labels)
    judge.name = name
    return judge
