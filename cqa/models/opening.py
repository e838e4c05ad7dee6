"""Reasoners of learned models, by the folder of a run or by the name of a model.

A run is of a model that answers queries itself, or of a link predictor, whose rows are searched:
CQD-Beam, CQD-Hybrid, QTO and FIT are settings of that search, CQD-CO follows gradients.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from cqa.evaluation.reasoner import Reasoner
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import load_run
from cqa.models.links.predictor import LinkPredictor
from cqa.models.links.rows import CALIBRATIONS, Rows
from cqa.models.reasoner import BatchReasoner
from cqa.models.search.gradient import GradientSearch, GradientSettings
from cqa.models.search.search import LinkSearch
from cqa.models.search.settings import SETTINGS, SearchSettings
from cqa.models.settings import REASONERS, Settings, model_class
from cqa.vocabularies import SEARCHES
from kopl_base.errors import KoplError
from kopl_base.settings import pairs_of

GRADIENT = "cqd-co"
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

    ``search``: how the rows of a link predictor are searched, of `cqa.vocabularies.SEARCHES` (None:
    QTO). ``pairs`` are settings as ``key=value``: ``search.beam=32``, and those of a model that is
    made by its name.
    Raises KoplError for what is none of these, for a run of another graph, and for settings that do
    not exist.
    """
    own, others = _parted(pairs)
    if name in REASONERS.names() and not Path(name).exists():
        kind = model_class(name)
        if getattr(kind, "needs_training", True):
            raise KoplError(
                f"the model {name} must be trained before it is asked: kopl cqa train --set"
                f" model={name} --graph DIR; then give the folder of the run"
            )
        settings = Settings.of(name).changed(others)
        return reasoner_of(kind.create(settings, graph), graph, split, search=search, changes=own)
    if others:
        raise KoplError(f"{next(iter(others))}: the settings of a run are those of its training")
    return reasoner_of(load_run(name, graph), graph, split, search=search, changes=own)


def _parted(pairs: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the search, and the others."""
    own: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, text in pairs_of(pairs).items():
        part, dot, rest = key.partition(".")
        if part == "search" and dot:
            own[rest] = _value(text)
        else:
            others[key] = text
    return own, others


def _value(text: str) -> int | float | str | bool | None:
    words: dict[str, bool | None] = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def reasoner_of(
    model: Any,
    graph: Graph,
    split: str = "test",
    *,
    search: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Reasoner:
    """The reasoner that a model is, or that its operators or its rows make.

    ``changes`` are settings of the search. Raises KoplError as `open_reasoner`.
    """
    if callable(getattr(model, "scores_of", None)) or callable(getattr(model, "logits", None)):
        if search is not None or changes:
            raise KoplError(
                f"{type(model).__name__} answers queries itself: there is no row of links to search"
            )
        if callable(getattr(model, "scores_of", None)):
            return cast(Reasoner, model)
        return BatchReasoner(model, graph.entity_count)
    if not isinstance(model, LinkPredictor):
        raise KoplError(f"{type(model).__name__} is neither a model of queries nor one of links")
    name = search or DEFAULT
    if name not in SEARCHES:
        raise KoplError(f"there is no search {name!r}; choose of {', '.join(SEARCHES)}")
    if name == GRADIENT:
        given = GradientSettings()
        return GradientSearch(cast(Any, model), _changed(given, changes))
    settings = _changed(SETTINGS[name], changes)
    rows = Rows(model, settings.calibration, graph.view("train"), graph.observed(split))
    return LinkSearch(rows, settings)


def _changed(settings: Any, changes: Mapping[str, Any] | None) -> Any:
    known = [one.name for one in dataclasses.fields(settings)]
    given = dict(changes or {})
    for key, value in given.items():
        if key not in known:
            raise KoplError(f"search.{key}: there is no such setting; there are {', '.join(known)}")
        if key == "calibration":
            if value not in CALIBRATIONS:
                choices = ", ".join(CALIBRATIONS)
                raise KoplError(f"search.calibration: there is no {value!r}; choose of {choices}")
            given[key] = CALIBRATIONS[value]
        elif key == "by_type" and isinstance(settings, SearchSettings):
            raise KoplError("search.by_type: beams by type are set in Python only")
    try:
        return dataclasses.replace(settings, **given)
    except TypeError as error:
        raise KoplError(f"search: {error}") from None
