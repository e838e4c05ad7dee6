"""CQD-Beam, CQD-Hybrid, QTO, FIT and CQD-CO as models: a trained link predictor, and settings.

They learn nothing themselves. Each is a class with the declarations of
`cqa.models.model.QueryModel`, made from the run of a link predictor: ``predictor: PATH``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from cqa.evaluation.reasoner import Scored
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import check_graph, load_run
from cqa.models.links.predictor import LinkPredictor
from cqa.models.links.rows import Rows, calibration
from cqa.models.search.explain import Explanation
from cqa.models.search.gradient import GradientSearch, GradientSettings, VectorPredictor
from cqa.models.search.search import LinkSearch
from cqa.models.search.settings import TUNED, SearchSettings
from cqa.models.settings import Settings
from cqa.query import Query
from cqa.types.tree import Tree
from kopl_base.errors import SettingsError
from kopl_base.settings import Bool, CheckedSettings, Count, Float, Int, NotNegative

Own = TypeVar("Own", bound="PredictorModel")
CalibrationName = Literal["sigmoid", "minmax", "minmax-observed", "degree", "normalised"]
# A number of candidates; 0: all of them.
Most = Annotated[Int, Field(ge=0)]


@dataclass(frozen=True)
class SearchOptions(CheckedSettings):
    """The settings of a search (`cqa.models.search.settings.SearchSettings`) as a run has them.

    ``predictor`` is the run of a link predictor, by its folder or its name on a hub; ``split`` that
    of the queries, which says what links are observed. ``threshold`` is that of the calibration
    where it is 0 or above. ``tuned`` takes CQD's beams and t-norms by type for one of its graphs.
    ``cache`` is the memory for rows, in MiB. For ``beam``, ``beam_most``, ``cut`` and ``top`` 0
    means all.
    """

    predictor: str = ""
    split: str = "test"
    calibration: CalibrationName = "minmax"
    threshold: Annotated[Float, Field(le=1)] = -1.0
    t_norm: Literal["product", "minimum"] = "product"
    t_conorm: Literal["sum", "maximum"] = "sum"
    negation: NotNegative = 1.0
    unions: Literal["inner", "disjuncts"] = "inner"
    beam: Most = 0
    beam_known: Bool = False
    beam_most: Most = 0
    cut: Most = 0
    cut_known: Bool = True
    top: Most = 0
    tuples: Most = 100
    tuned: Literal["", "fb15k237", "nell995", "icews18"] = ""
    compat: Literal["", "paper"] = ""
    cache: Most = 256

    @property
    def search(self) -> SearchSettings:
        """The settings of the search; raises QueryError where they do not fit together."""
        return SearchSettings(
            calibration(self.calibration, self.threshold if self.threshold >= 0 else None),
            self.t_norm, self.t_conorm, self.negation, self.unions,
            self.beam or None, self.beam_known, self.beam_most or None,
            self.cut or None, self.cut_known, self.top or None, self.tuples,
            TUNED[self.tuned] if self.tuned else {}, self.compat or None,
        )  # fmt: skip


@dataclass(frozen=True)
class CqdBeamOptions(SearchOptions):
    """Those of CQD-Beam."""

    beam: Most = 64
    cut: Most = 64


@dataclass(frozen=True)
class CqdHybridOptions(SearchOptions):
    """Those of CQD-Hybrid: what is observed is searched beside the beam."""

    calibration: CalibrationName = "minmax-observed"
    beam: Most = 64
    beam_known: Bool = True
    beam_most: Most = 512
    cut: Most = 64


@dataclass(frozen=True)
class QtoOptions(SearchOptions):
    """Those of QTO."""

    calibration: CalibrationName = "degree"
    negation: NotNegative = 3.0


@dataclass(frozen=True)
class FitOptions(SearchOptions):
    """Those of FIT."""

    calibration: CalibrationName = "normalised"
    unions: Literal["inner", "disjuncts"] = "disjuncts"
    cut: Most = 10


@dataclass(frozen=True)
class GradientOptions(CheckedSettings):
    """Those of CQD-CO (`cqa.models.search.gradient.GradientSettings`)."""

    predictor: str = ""
    rate: NotNegative = 0.1
    steps: Count = 1000
    least: NotNegative = 1e-9
    penalty: NotNegative = 0.05
    t_conorm: Literal["sum", "maximum"] = "sum"


class PredictorModel:
    """A model that a trained link predictor makes without learning anything itself.

    ``cycles``, ``free_variables``, ``negations``, ``exact`` and ``cost`` are what tables show.
    """

    paper: ClassVar[str] = ""
    own_settings: ClassVar[type[CheckedSettings]] = SearchOptions
    operators: ClassVar[str] = "e p i u n"
    negation: ClassVar[bool] = True
    negations: ClassVar[str] = "1 - s"
    cycles: ClassVar[str] = "cut set"
    free_variables: ClassVar[str] = "max-marginals, tuples"
    exact: ClassVar[bool] = False
    cost: ClassVar[str] = ""
    needs_training: ClassVar[bool] = False

    def __init__(self, options: Any, graph: Graph, predictor: Any) -> None:
        raise NotImplementedError

    @classmethod
    def create(cls: type[Own], settings: Settings, graph: Graph) -> Own:
        """The model over the link predictor that its settings name.

        Raises SettingsError where they name none, CheckpointError for what is no run of the graph.
        """
        options: Any = settings.own
        if not options.predictor:
            name = settings.model
            raise SettingsError(
                f"{name} searches over a link predictor: give the folder of its run, as in"
                f" {name}.predictor=runs/complex"
            )
        return cls(options, graph, load_run(options.predictor, graph))

    @classmethod
    def load(cls: type[Own], folder: Path, graph: Graph) -> Own:
        """The model of a run, which has settings only."""
        return cls.create(check_graph(folder, graph), graph)


class SearchModel(PredictorModel):
    """A model that is a setting of `LinkSearch`."""

    def __init__(self, options: SearchOptions, graph: Graph, predictor: LinkPredictor) -> None:
        self.options = options
        rows = Rows(
            predictor,
            options.search.calibration,
            graph.view(graph.splits[0]),
            graph.observed(options.split),
            options.cache << 20,
            _device(predictor),
        )
        self.solver = LinkSearch(rows, options.search)

    def scores(self, query: Query | Tree) -> Scored:
        """The scores of one query's answers; of several free variables of the best tuples, too."""
        return self.solver.scores(query)

    def scores_of(self, queries: Sequence[Query | Tree]) -> Iterator[Scored]:
        """The scores of each query, in their order."""
        return self.solver.scores_of(queries)

    def explain(self, query: Query | Tree, answer: Sequence[int] | int) -> Explanation:
        """The best binding of each variable that gives an answer, with the links that support it.

        Raises QueryError for an answer that is none of the graph's entities, or of another length.
        """
        return self.solver.explain(query, answer)


class CqdBeam(SearchModel):
    """CQD by beam search: the best candidates of each variable, the best assignment of these."""

    paper = "Arakelyan et al., ICLR 2021 (CQD-Beam)"
    own_settings = CqdBeamOptions
    cost = "beam rows a projection"


class CqdHybrid(SearchModel):
    """CQD-Beam that knows what is observed."""

    paper = "Gregucci et al., ICML 2025 (CQD-Hybrid)"
    own_settings = CqdHybridOptions
    cost = "beam and observed rows a projection"


class Qto(SearchModel):
    """QTO: the best assignment exactly, over rows that are scaled by degrees and cut off."""

    paper = "Bai et al., ICML 2023 (QTO)"
    own_settings = QtoOptions
    negations = "1 - min(1, 3 s)"
    exact = True
    cost = "a row for each entity above 0, a projection"


class Fit(SearchModel):
    """FIT: the same on any query graph, over rows that sum up to what is observed."""

    paper = "Yin et al., ICLR 2024 (FIT)"
    own_settings = FitOptions
    exact = True
    cycles = "cut set: the 10 best values and all observed"
    cost = "a row for each entity above 0, a projection, a value of the cut set"


class CqdCo(PredictorModel):
    """CQD by continuous optimisation: variables as vectors."""

    paper = "Arakelyan et al., ICLR 2021 (CQD-CO)"
    own_settings = GradientOptions
    cycles = "local optimum"
    free_variables = "each, the others held"
    cost = "up to 1,000 gradient steps a query"

    def __init__(self, options: GradientOptions, graph: Graph, predictor: VectorPredictor) -> None:
        self.options = options
        given = {name: value for name, value in vars(options).items() if name != "predictor"}
        self.solver = GradientSearch(predictor, GradientSettings(**given))

    def scores(self, query: Query | Tree) -> Scored:
        """The scores of one query's answers, a row for each free variable."""
        return self.solver.scores(query)

    def scores_of(self, queries: Sequence[Query | Tree]) -> Iterator[Scored]:
        """The scores of each query, in their order."""
        return self.solver.scores_of(queries)


def _device(predictor: Any) -> torch.device:
    """Where the weights of a predictor are, if it has any."""
    weights = next(predictor.parameters(), None) if hasattr(predictor, "parameters") else None
    return torch.device("cpu") if weights is None else weights.device
