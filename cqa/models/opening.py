"""Reasoners of learned models, by the folder of a run or by the name of a model.

A run is of a model that answers queries itself, or of a link predictor, whose rows are searched by
a model that needs no training of its own: CQD-Beam, CQD-Hybrid, QTO, FIT or CQD-CO.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from cqa.evaluation.reasoner import Reasoner
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import load_run, located, read_run
from cqa.models.links.network import LinkModel
from cqa.models.reasoner import BatchReasoner
from cqa.models.settings import REASONERS, Settings, model_class
from cqa.vocabularies import SEARCHES
from kopl_base.errors import KoplError
from kopl_base.settings import pairs_of

DEFAULT = "qto"


def open_reasoner(
    name: str,
    graph: Graph,
    split: str = "test",
    *,
    search: str | None = None,
    pairs: Iterable[str] = (),
) -> Reasoner:
    """The reasoner of a run, by its folder or its name on a hub, or of a model that needs none.

    ``search``: what searches the rows of a link predictor, of `cqa.vocabularies.SEARCHES` (None:
    QTO). ``pairs`` are settings as ``key=value``, those of the search as ``search.beam=32`` or
    ``qto.beam=32``. Raises KoplError for what is none of these, for a run of another graph, and for
    settings that do not exist.
    """
    if search is not None and search not in SEARCHES:
        raise KoplError(f"there is no search {search!r}; choose of {', '.join(SEARCHES)}")
    changes = pairs_of(pairs)
    if name in REASONERS.names() and not Path(name).exists():
        if search is not None:
            raise KoplError(f"a search is over a run; {name} is the name of a model")
        return _made(name, graph, split, changes)
    folder = located(name)
    kind = model_class(read_run(folder)[0].model)
    if issubclass(kind, LinkModel):
        own = search or DEFAULT
        given = {
            f"{own}.{key.removeprefix('search.')}" if key.startswith("search.") else key: value
            for key, value in changes.items()
        }
        return _made(own, graph, split, {f"{own}.predictor": str(folder), **given})
    if search is not None:
        raise KoplError(f"{name} answers queries itself: it has no rows of links to search")
    if changes:
        raise KoplError(f"{next(iter(changes))}: the settings of a run are those of its training")
    return reasoner_of(load_run(folder, graph), graph)


def _made(name: str, graph: Graph, split: str, changes: Mapping[str, str]) -> Reasoner:
    """The reasoner of a model that needs no training."""
    kind = model_class(name)
    if getattr(kind, "needs_training", True):
        raise KoplError(
            f"the model {name} must be trained before it is asked: kopl cqa train --set"
            f" model={name} --graph DIR; then give the folder of the run"
        )
    settings = Settings.of(name)
    if hasattr(settings.own, "split") and f"{name}.split" not in changes:
        changes = {**changes, f"{name}.split": split}
    return reasoner_of(kind.create(settings.changed(changes), graph), graph)


def reasoner_of(model: Any, graph: Graph) -> Reasoner:
    """The reasoner that a model is, or that its operators make; raises KoplError for neither."""
    if callable(getattr(model, "scores_of", None)):
        return cast(Reasoner, model)
    if callable(getattr(model, "logits", None)):
        return BatchReasoner(model, graph.entity_count)
    raise KoplError(f"{type(model).__name__} has neither scores of queries nor operators")


def model_rows() -> list[list[str]]:
    """A table of the models by their declarations: headings, then a row for each model here.

    Link predictors answer nothing by themselves: they have a paper and what a query costs only.
    """
    rows = [
        ["model", "paper", "operators", "negation", "cycles", "free variables", "exact", "cost"]
    ]
    for name in REASONERS.own:
        kind = model_class(name)
        if issubclass(kind, LinkModel):
            rows.append([name, kind.paper, "links only", "", "", "", "", ""])
            continue
        negation = kind.negations if kind.negation or hasattr(kind, "difference") else "none"
        exact = "yes" if kind.exact else "no"
        operators, cycles, free = kind.operators, kind.cycles, kind.free_variables
        rows.append([name, kind.paper, operators, negation, cycles, free, exact, kind.cost])
    return rows
