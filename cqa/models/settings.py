"""The models of logical queries by name, their settings and those of their training.

A model is a class with ``create(settings, graph)``, the model with new weights, and
``load(folder, graph)``, that of a run. It may have ``own_settings``, a dataclass below
`kopl_base.settings.CheckedSettings`: the part of its name, as in ``complex.rank``. One that learns
from queries has the part ``queries``, too, whose dataclass is ``query_settings``. ``defaults`` is
what it differs in from the defaults of any part, such as ``{"training.batch": 1000}``. A package
brings a model by an entry point of the group ``kopl.reasoners`` (`kopl_base.registry`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from kopl_base.errors import SettingsError
from kopl_base.registry import Registry
from kopl_base.settings import Bool, Count, Int, LoopSettings, PartedSettings, read_config
from kopl_base.training import check_device


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
        "gqe": "cqa.models.embed.box:Gqe",
        "query2box": "cqa.models.embed.box:Query2box",
        "betae": "cqa.models.embed.beta:BetaE",
        "logice": "cqa.models.embed.logic:LogicE",
        "cone": "cqa.models.embed.cone:ConE",
        "newlook": "cqa.models.embed.newlook:NewLook",
        "lmpnn": "cqa.models.embed.lmpnn:Lmpnn",
        "gnn-qe": "cqa.models.embed.nbfnet:GnnQe",
        "ultraquery": "cqa.models.embed.ultra:UltraQuery",
        "cqd-beam": "cqa.models.search.reasoners:CqdBeam",
        "cqd-co": "cqa.models.search.reasoners:CqdCo",
        "cqd-hybrid": "cqa.models.search.reasoners:CqdHybrid",
        "qto": "cqa.models.search.reasoners:Qto",
        "fit": "cqa.models.search.reasoners:Fit",
    },
    _unfit,
)


def model_class(name: str) -> type[Any]:
    """The class of a model; raises SettingsError where there is none, or it cannot be imported."""
    return REASONERS.loaded(name)


@dataclass(frozen=True)
class TrainingSettings(LoopSettings):
    """How a model of logical queries is trained (`kopl_base.settings.LoopSettings`).

    ``batch`` counts rows of links or queries. ``validation`` counts the links or queries that
    choose the best epoch, drawn by the seed (0: all of them).
    """

    validation: Annotated[Int, Field(ge=0)] = 0


@dataclass(frozen=True)
class Settings(PartedSettings):
    """What a model of logical queries is made with; saved beside its weights.

    ``graph`` is a file or folder of a graph (`cqa.graphs.readers.read_graph`), ``kb`` a knowledge
    base that becomes one; only one of them. ``threads`` bounds the threads that compute.
    """

    model: str = "complex"
    graph: str = ""
    kb: str = ""
    seed: Annotated[Int, Field(ge=0, le=2**63 - 1)] = 1
    output: str = "runs/cqa"
    device: str = "auto"
    threads: Annotated[Count, Field(le=1024)] = 1
    tensorboard: Bool = False
    wandb: str = ""
    training: TrainingSettings = field(default_factory=TrainingSettings)
    # Those of the model, by its name.
    others: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        REASONERS.checked(self.model)
        check_device(self.device)
        if self.graph and self.kb:
            raise SettingsError("give either graph or kb: a knowledge base becomes a graph")
        if not self.output.strip() or Path(self.output).name in ("", ".."):
            raise SettingsError(
                f"output must name a folder for the run, as in runs/mine, not {self.output!r}"
            )

    @property
    def source(self) -> str:
        """The option that gives the graph to commands, as ``--kb world``; "" where none does."""
        if self.kb:
            return f"--kb {self.kb}"
        return f"--graph {self.graph}" if self.graph else ""

    @classmethod
    def of(cls, model: Any) -> Settings:
        """The defaults for a model; raises SettingsError where there is none of the name."""
        name = REASONERS.checked(model)
        kind = model_class(name)
        others = {part: of() for part, of in cls.parts(name).items() if part != "training"}
        settings = cls(model=name, others=others)
        return settings.changed(getattr(kind, "defaults", {}))

    @classmethod
    def parts(cls, model: object = None) -> dict[str, type[Any]]:
        """The classes of the parts: the training, and what the model brings where it has some."""
        found: dict[str, type[Any]] = {"training": TrainingSettings}
        if isinstance(model, str):
            kind = model_class(model)
            for part, name in ((model, "own_settings"), ("queries", "query_settings")):
                own = getattr(kind, name, None)
                if own is not None:
                    found[part] = own
        return found


def read_settings(config: Path | None, pairs: Iterable[str] = ()) -> Settings:
    """The settings of a YAML file with ``key=value`` pairs on top.

    Raises SettingsError that names the file or the pair.
    """
    settings, _, _ = read_config(config, pairs, Settings.of, Settings.model)
    return settings
