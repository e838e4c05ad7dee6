"""Models by name: those that are here, and those that other packages bring (`kopl.reasoners`).

A model is a class with ``create(settings, graph)``, the model with new weights, and
``load(folder, graph)``, that of a run. It may have ``own_settings``, a dataclass below
`kopl_base.settings.CheckedSettings`, and ``training``, what its training differs in from the
defaults of `cqa.models.settings.TrainingSettings`.
"""

from __future__ import annotations

from typing import Any

from kopl_base.registry import Registry


def _unfit(found: object) -> str:
    missing = [name for name in ("create", "load") if not callable(getattr(found, name, None))]
    if not isinstance(found, type) or missing:
        return f"is no class with {' and '.join(missing or ['create', 'load'])}"
    return ""


REASONERS = Registry(
    "kopl.reasoners",
    "model",
    {
        "complex": "cqa.models.links.bilinear:ComplEx",
        "distmult": "cqa.models.links.bilinear:DistMult",
        "transe": "cqa.models.links.distance:TransE",
        "rotate": "cqa.models.links.distance:RotatE",
    },
    _unfit,
)


def model_class(name: str) -> type[Any]:
    """The class of a model; raises SettingsError where there is none, or it cannot be imported."""
    return REASONERS.loaded(name)
