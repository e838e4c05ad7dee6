"""What a run of a model leaves on disk: settings, weights, and of which graph it is.

A run is a folder with ``settings.json``, ``graph.json`` (sizes and fingerprints of the graph) and
``best.safetensors``; a training adds what it goes on from (`kopl_base.training`). It is found by
its path, or by the name of a repository on a hub that holds these files.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from cqa.graphs.graph import Graph
from cqa.graphs.names import Names
from cqa.models.settings import Settings, model_class
from kopl_base.errors import SettingsError, WriteError
from kopl_base.packages import needs
from kopl_base.stream import writing
from kopl_base.training.checkpoint import (
    CheckpointError,
    read_resumable,
    read_weights,
    write_weights,
)

FORMAT = 1
SETTINGS, GRAPH, WEIGHTS = "settings.json", "graph.json", "best.safetensors"

# What a training may be resumed with although it began with another one: how long it goes on, where
# things are, what is told of it. That the graph is the same is checked by what it says.
MAY_CHANGE = frozenset(
    ["graph", "kb", "output", "device", "threads", "tensorboard", "wandb", "training.epochs",
     "training.minutes", "training.checkpoint", "training.part", "queries.workers"]
)  # fmt: skip

# A repository of a hub: its owner and name.
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class GraphMark:
    """What a run remembers of its graph: sizes, and fingerprints of its names and its links."""

    entities: int
    relations: int
    names: str
    links: str

    def __post_init__(self) -> None:
        """Raise ValueError for parts of a wrong form, which only a damaged file has."""
        for name, value in vars(self).items():
            if not isinstance(value, int if name in ("entities", "relations") else str):
                raise ValueError(f"{name} is {json.dumps(value)[:40]}")

    @classmethod
    def of(cls, graph: Graph) -> GraphMark:
        """That of a graph."""
        names = f"{_crc(graph.entities):08x} {_crc(graph.relations):08x}"
        return cls(graph.entity_count, graph.relation_count, names, graph.fingerprint)

    def differs(self, graph: Graph, other_links: bool = False) -> str:
        """What makes a graph another one than this, in words; "" where it is this one.

        ``other_links``: the same entities and relations suffice.
        """
        for what, here, there in (
            ("entities", graph.entity_count, self.entities),
            ("relations", graph.relation_count, self.relations),
        ):
            if here != there:
                return f"it has {there} {what}, the graph here {here}"
        own = GraphMark.of(graph)
        if own.names != self.names:
            return "its entities or relations have other names, or another order"
        if own.links != self.links and not other_links:
            return f"its links are others ({self.links}, here {own.links})"
        return ""


def _crc(names: Names | None) -> int:
    found = 0
    for part in ("text_bytes", "text_starts", "text_of") if names is not None else ():
        array = names.arrays[part]  # type: ignore[union-attr]
        found = zlib.crc32(np.ascontiguousarray(array).data, found) if array.size else found
    return found


# --- writing -------------------------------------------------------------------------------------


def begin_run(folder: Path, settings: Settings, graph: Graph) -> None:
    """Begin the folder of a run: its settings, and of which graph it is."""
    with writing(folder / SETTINGS) as file:
        file.write(settings.to_json())
    with writing(folder / GRAPH) as file:
        file.write(json.dumps({"format": FORMAT, **vars(GraphMark.of(graph))}, indent=1) + "\n")


def write_run(
    folder: Path, network: nn.Module, settings: Settings, graph: Graph, *, half: bool = False
) -> None:
    """Write a run as a whole; it takes the place of an older one only when it is complete.

    ``half``: numbers of 16 bits, to share it; the loss is below what ranks show. Raises WriteError
    for a folder that holds something else, and for weights that 16 bits cannot hold.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and _is_run(folder)):
        raise WriteError(f"{folder}: cannot be written: something other than a run is there")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise WriteError(f"{folder}: cannot be written: {error.strerror}") from None
    try:
        begin_run(made, settings, graph)
        if half:
            _write_half(network, made / WEIGHTS)
        else:
            write_weights(network, made / WEIGHTS)
        made.chmod(0o755)  # that of a temporary folder is for its owner alone
        old = made.with_name(f"{made.name}-old")
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise WriteError(f"{folder}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_run(folder: Path) -> bool:
    there = {path.name for path in folder.iterdir()}
    return not there or {SETTINGS, GRAPH} <= there


def _write_half(network: nn.Module, path: Path) -> None:
    tensors = {}
    for name, tensor in network.state_dict().items():
        held = tensor.half() if tensor.is_floating_point() else tensor
        if tensor.is_floating_point() and not bool(torch.isfinite(held).all()):
            raise WriteError(f"{path}: 16 bits cannot hold {name}; write it with 32")
        tensors[name] = held.contiguous()
    save_file(tensors, str(path))


def export(folder: Path, target: Path, graph: Graph) -> int:
    """Write the best weights of a run with 16 bits, to share them; gives the bytes of the folder.

    Raises CheckpointError for what is no run of the graph, WriteError as `write_run`.
    """
    settings, _ = read_run(folder)
    model = model_class(settings.model).load(folder, graph)
    write_run(target, getattr(model, "network", model), settings, graph, half=True)
    return sum(path.stat().st_size for path in target.iterdir())


# --- reading -------------------------------------------------------------------------------------


def located(name: Path | str) -> Path:
    """The folder of a run: that of the path, or else what the hub has under that name.

    Raises CheckpointError where there is neither, or the hub cannot be asked.
    """
    folder = Path(name)
    if folder.exists():
        return folder
    nowhere = f"{name}: there is no such run"
    if isinstance(name, Path) or not _HUB.fullmatch(name):
        raise CheckpointError(f"{nowhere}; train one with 'kopl cqa train'")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise CheckpointError(f"{nowhere}; {needs('train', 'huggingface_hub')}") from None
    try:
        return Path(snapshot_download(name, allow_patterns=[SETTINGS, GRAPH, WEIGHTS]))
    except Exception as error:  # its own errors, of several packages, and those of the network
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{nowhere}, and the hub does not give one: {type(error).__name__}: {reason}"
        ) from None


def read_run(folder: Path) -> tuple[Settings, GraphMark]:
    """The settings of a run, and what it says of its graph; raises CheckpointError for no run."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such run; train one with 'kopl cqa train'")
    try:
        settings = Settings.from_json((folder / SETTINGS).read_text("utf-8"))
        found: dict[str, Any] = json.loads((folder / GRAPH).read_text("utf-8"))
        if found.pop("format") != FORMAT:
            raise CheckpointError(f"{folder}: the run has another format; train it again")
        return settings, GraphMark(**found)
    except SettingsError as error:
        raise CheckpointError(f"{folder / SETTINGS}: {error}") from None
    except OSError as error:
        raise CheckpointError(f"{folder}: not a run: {error.strerror}: {error.filename}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{folder}: the run is damaged: {error}") from None


def check_graph(folder: Path, graph: Graph, other_links: bool = False) -> Settings:
    """The settings of a run, after a check that it is of this graph.

    Raises CheckpointError for no run, and for one of another graph; with ``other_links`` only for
    other entities and relations.
    """
    settings, mark = read_run(folder)
    if reason := mark.differs(graph, other_links):
        that = f"that graph ({settings.source})" if settings.source else "that graph"
        raise CheckpointError(
            f"{folder}: the run was trained on another graph: {reason}; give {that}, or train"
            " a run on this one"
        )
    return settings


def fill(network: nn.Module, folder: Path, weights: str = "best") -> None:
    """Fill a network with the ``best`` or ``last`` weights of a run.

    Raises CheckpointError where there are none, they are damaged, or of another shape.
    """
    read_weights(network, folder / f"{weights}.safetensors")


def kept(settings: Settings) -> dict[str, Any]:
    """The settings that a training must be resumed with, by name."""
    return settings.without(MAY_CHANGE)


def saved_state(folder: Path, settings: Settings) -> dict[str, Any]:
    """What a training saved to go on from, with its ``settings`` as `kept` gave them.

    Raises CheckpointError when there is nothing, or when it began with other settings.
    """
    return read_resumable(
        folder / "resume.pt",
        ("network", "optimizer", "progress"),
        kept(settings),
        folder,
        f"put them back, or begin a new run. What may change: {', '.join(sorted(MAY_CHANGE))}",
    )


def load_run(name: Path | str, graph: Graph) -> Any:
    """The model of a run with its best weights, by the run's folder or its name on a hub.

    Raises CheckpointError for what is no run, is damaged, or was trained on another graph.
    """
    folder = located(name)
    settings, _ = read_run(folder)
    return model_class(settings.model).load(folder, graph)
