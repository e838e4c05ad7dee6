"""UltraQuery: one trained network for the queries of any graph, whatever its relations are.

A first network passes messages between relations: two are linked when they share an entity as head
or tail, in four kinds. Started at the relation that is asked, it gives a vector for each relation;
these take the place of trained ones in a second network, over the entities. So nothing in the
weights belongs to a vocabulary, and the published ones are used as they are.
"""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic.dataclasses import dataclass
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from cqa.graphs.graph import Graph
from cqa.graphs.links import Links
from cqa.models.checkpoint import check_graph, fill
from cqa.models.embed.nbfnet import FuzzyModel, GnnQe, Layer, PassingNetwork, ReadingNetwork
from cqa.models.embed.passing import Adjacency
from kb.arrays import Ids
from kopl_base.packages import needs
from kopl_base.settings import CheckedSettings, Share
from kopl_base.training.checkpoint import CheckpointError, unfitting

WIDTH, LAYERS = 64, 6
# How two relations touch: the ends, (of the first, of the second), that an entity is of both.
KINDS = (("head", "head"), ("tail", "tail"), ("head", "tail"), ("tail", "head"))
# Vectors of relations that were asked are kept until they take this many bytes.
CACHE_BYTES = 256 << 20
# Names the file of the published weights where the settings do not.
VARIABLE = "KOPL_ULTRAQUERY"


class _KindLayer(Layer):
    """A layer between relations: a trained vector for each kind of link."""

    def __init__(self) -> None:
        super().__init__(WIDTH)
        self.relation = nn.Embedding(len(KINDS), WIDTH)

    def scales(self, given: Tensor) -> Tensor:
        return self.relation.weight.unsqueeze(1).expand(-1, given.shape[1], -1)


class _VectorLayer(Layer):
    """A layer between entities: the relations' vectors through a network of its own."""

    def __init__(self) -> None:
        super().__init__(WIDTH)
        self.relation_projection = nn.Sequential(
            nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
        )

    def scales(self, given: Tensor) -> Tensor:
        found: Tensor = self.relation_projection(given)
        return found


class UltraNetwork(nn.Module):
    """Both networks; the names of the weights are the published ones."""

    def __init__(self) -> None:
        super().__init__()
        self.relation_model = PassingNetwork([_KindLayer() for _ in range(LAYERS)])
        self.entity_model = ReadingNetwork([_VectorLayer() for _ in range(LAYERS)], WIDTH)

    def vectors(self, relations: Tensor, touching: Adjacency) -> Tensor:
        """The vectors (K, B, 64) of all relations for each of B that are asked."""
        queries = torch.arange(len(relations), device=relations.device)
        shape = touching.node_count, len(relations), WIDTH
        kind = next(self.relation_model.parameters()).dtype
        boundary = torch.zeros(shape, dtype=kind, device=relations.device)
        boundary[relations, queries] = 1.0
        found: Tensor = self.relation_model(boundary, boundary, touching)
        return found

    def forward(
        self, sets: Tensor, relations: Tensor, vectors: Tensor, adjacency: Adjacency
    ) -> Tensor:
        """The logits (B, E) of what relations reach from sets, by the vectors of `vectors`."""
        queries = torch.arange(len(relations), device=relations.device)
        own = vectors[relations, queries]
        return self.entity_model.read(sets, own, vectors, adjacency)


@dataclass(frozen=True)
class UltraQuerySettings(CheckedSettings):
    """``weights``: the file of the published weights, or hub:OWNER/NAME/FILE; without it the
    environment names one (`VARIABLE`). ``links``: what messages pass along, the training
    links (as published) or all that queries of test may use. ``threshold``: numbers up to it count
    as 0 before a projection: 0.8 for weights that were trained on links only.
    ``precision``: bfloat16 takes half the time of a projection; ranks differ a little."""

    weights: str = ""
    links: Literal["train", "observed"] = "train"
    threshold: Share = 0.0
    precision: Literal["float32", "bfloat16"] = "float32"


class UltraQuery(FuzzyModel):
    """UltraQuery over a graph, zero-shot: nothing in the weights is of the graph."""

    paper = "Galkin et al. 2024"
    cost = "6 · (links + E) · 64 a projection; no training"
    own_settings = UltraQuerySettings
    needs_training = False
    defaults = GnnQe.defaults
    width = WIDTH

    def __init__(
        self, settings: UltraQuerySettings, graph: Graph, network: UltraNetwork | None = None
    ) -> None:
        links = graph.view("train") if settings.links == "train" else graph.observed()
        super().__init__(graph, links)
        self.threshold = settings.threshold
        self._touching = touching(links)
        self._vectors: OrderedDict[int, Tensor] = OrderedDict()
        self.ultra = network or read_network(weights_file(settings.weights))
        if settings.precision == "bfloat16":
            self.ultra.bfloat16()

    @classmethod
    def load(cls, folder: Path, graph: Graph) -> UltraQuery:
        """The model of a run that went on from other weights; raises as `QueryModel.load`."""
        model = cls(check_graph(folder, graph).own, graph, UltraNetwork())
        fill(model, folder)
        return model.eval()

    def _project(self, sets: Tensor, relations: Tensor) -> Tensor:
        if self.threshold:
            sets = sets * (sets > self.threshold)
        vectors = self._vectors_of(relations)
        found: Tensor = self.ultra(sets, relations, vectors, self.adjacency)
        return found

    def _vectors_of(self, relations: Tensor) -> Tensor:
        """The vectors for some relations, each made once where no gradient is asked for."""
        if self._touching.sources.device != self.device:
            self._touching = self._touching.to(self.device)
        if torch.is_grad_enabled():
            self._vectors.clear()  # the weights are about to change
            found: Tensor = self.ultra.vectors(relations, self._touching)
            return found
        numbers = relations.tolist()
        fresh = sorted({number for number in numbers if number not in self._vectors})
        if fresh:
            made = self.ultra.vectors(torch.tensor(fresh, device=self.device), self._touching)
            for number, vectors in zip(fresh, made.unbind(1), strict=True):
                self._vectors[number] = vectors.contiguous()
        found = torch.stack([self._vectors[number] for number in numbers], 1)
        for number in numbers:
            self._vectors.move_to_end(number)
        one = found[:, 0].numel() * found.element_size()
        while len(self._vectors) > max(len(numbers), CACHE_BYTES // max(1, one)):
            self._vectors.popitem(last=False)
        return found


def touching(links: Links) -> Adjacency:
    """Which relations share an entity, in the four `KINDS`; inverses are relations, too."""
    count = links.relation_count
    relations = np.repeat(np.arange(count), np.diff(links.rows))
    ends = {
        "head": _incidence(relations, links.heads, count, links.entity_count),
        # The heads of the inverse are the tails.
        "tail": _incidence(relations ^ 1, links.heads, count, links.entity_count),
    }
    parts = []
    for number, (first, second) in enumerate(KINDS):
        with warnings.catch_warnings():  # torch tells that its sparse matrices may change
            warnings.simplefilter("ignore", UserWarning)
            product = torch.sparse.mm(ends[first], ends[second].t())
        pairs = product.coalesce().indices().numpy()
        parts.append(np.stack([pairs[0], np.full(pairs.shape[1], number), pairs[1]]))
    nodes, kinds, sources = np.concatenate(parts, 1)
    order = np.lexsort((sources, kinds, nodes))
    keys = (nodes * len(KINDS) + kinds)[order]
    rows = np.flatnonzero(np.diff(keys, prepend=-1))
    return Adjacency(
        0,
        torch.from_numpy(sources[order]),
        torch.from_numpy(np.append(rows, len(keys))),
        torch.from_numpy(keys[rows] % len(KINDS)),
        torch.from_numpy(np.searchsorted(keys[rows] // len(KINDS), np.arange(count + 1))),
        len(KINDS),
    )


def _incidence(relations: npt.NDArray[np.integer], nodes: Ids, count: int, size: int) -> Tensor:
    """A sparse matrix (relations, entities) with 1 where a relation has an entity."""
    places = torch.from_numpy(np.stack([relations, nodes.astype(np.int64)]))
    ones = torch.ones(places.shape[1])
    return torch.sparse_coo_tensor(places, ones, (count, size), check_invariants=False).coalesce()


# --- the published weights -----------------------------------------------------------------------


def weights_file(given: str = "") -> Path:
    """The file of the published weights: the one that is given, or that the environment names.

    Raises CheckpointError, with what to do, where there is none. Nothing is fetched but what is
    asked for as ``hub:owner/name/file``.
    """
    path = given or os.environ.get(VARIABLE, "")
    if path.startswith("hub:"):
        return _fetched(path)
    if not path:
        raise CheckpointError(
            "ultraquery needs its published weights, and no file of them is given. Set"
            f" ultraquery.weights in the settings, or the environment variable {VARIABLE}, to a"
            " copy of ckpts/ultraquery.pth from the repository DeepGraphLearning/ULTRA on GitHub"
            " (2.1 MB, MIT licence), to the same weights as safetensors, or to hub:OWNER/NAME/FILE"
            " for a file that a hub has"
        )
    found = Path(path).expanduser()
    if not found.is_file():
        named = "ultraquery.weights" if given else VARIABLE
        raise CheckpointError(f"{path}: there is no such file, which {named} names")
    return found


def _fetched(name: str) -> Path:
    """A file of a repository of a hub; raises CheckpointError where it cannot be had."""
    owner, _, rest = name.removeprefix("hub:").partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file):
        raise CheckpointError(f"{name}: give it as hub:OWNER/NAME/FILE")
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise CheckpointError(f"{name}: {needs('train', 'huggingface_hub')}") from None
    try:
        return Path(hf_hub_download(f"{owner}/{repository}", file))
    except Exception as error:  # its own errors, of several packages, and those of the network
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{name}: the hub does not give it: {type(error).__name__}: {reason}"
        ) from None


def read_network(path: Path) -> UltraNetwork:
    """The network with the weights of a file, ``.safetensors`` or the published ``.pth``.

    Nothing in the file is run. Raises CheckpointError where it holds other weights.
    """
    network = UltraNetwork()
    found = _read_tensors(path)
    if lacking := [name for name in network.state_dict() if name not in found]:
        raise CheckpointError(
            f"{path}: these are no weights of UltraQuery: {lacking[0]} is missing"
            + (f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else "")
        )
    if reason := unfitting(network, {name: tensor.shape for name, tensor in found.items()}):
        raise CheckpointError(f"{path}: {reason}")
    network.load_state_dict(found)
    return network.eval()


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name, from ``relation_model`` or ``entity_model`` on."""
    try:
        if path.suffix == ".safetensors":
            held: object = load_file(path)
        else:
            held = torch.load(path, map_location="cpu", weights_only=True)
            if isinstance(held, dict) and isinstance(held.get("model"), dict):
                held = held["model"]  # beside the state of the optimizer
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from None
    except Exception:  # torch raises many kinds, with advice to load what may run code
        raise CheckpointError(
            f"{path}: this is no file of weights, or it holds more than tensors and plain values"
        ) from None
    found = {}
    for name, tensor in held.items() if isinstance(held, dict) else ():
        for part in ("relation_model.", "entity_model."):
            if isinstance(tensor, Tensor) and part in str(name):
                found[part + str(name).split(part, 1)[1]] = tensor.float()
    return found
