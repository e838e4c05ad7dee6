"""What a training leaves on disk: weights, and the state from which it goes on.

A file appears when it is complete: nothing that is there is lost when writing fails.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_model
from torch import nn

from kopl_base.errors import KoplError, WriteError


class CheckpointError(KoplError):
    """A run that cannot be loaded, or does not fit the knowledge base."""

    kind = "checkpoint"


def write_weights(network: nn.Module, path: Path) -> None:
    """Write a network's weights; the file appears when it is complete."""
    temporary = path.with_suffix(".part")
    try:
        save_model(network, str(temporary))
        temporary.replace(path)
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def read_weights(network: nn.Module, path: Path) -> None:
    """Fill a network with the weights of a file; raises CheckpointError when they do not fit."""
    try:
        load_model(network, path)
    except FileNotFoundError:
        raise CheckpointError(
            f"{path}: there are no weights yet; the run did not finish: go on with it by --resume"
            f" {path.parent}"
        ) from None
    except (SafetensorError, RuntimeError, OSError) as error:
        found = weight_shapes(path)
        reason = found and unfitting(network, found)
        reason = reason or f"the weights are damaged or do not fit: {' '.join(str(error).split())}"
        raise CheckpointError(f"{path}: {reason}") from None


def weight_shapes(path: Path) -> dict[str, Sequence[int]]:
    """The sizes of the weights of a file by name; none where the file cannot be read."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError):
        return {}


def unfitting(network: nn.Module, found: Mapping[str, Sequence[int]]) -> str:
    """What keeps a network from taking weights of these shapes, in a sentence; "" for nothing.

    A file leaves out what shares its memory with another weight.
    """
    own = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    told = [
        f"{name} is {_shape(found[name])} there, but {_shape(shape)} in the network"
        for name, shape in own.items()
        if name in found and tuple(found[name]) != shape
    ]
    told += [f"{name} is no weight of the network" for name in found if name not in own]
    if not told:
        return ""
    more = f" (and {len(told) - 1} more such differences)" if len(told) > 1 else ""
    return (
        f"the weights are those of another network: {told[0]}{more}; they belong to other settings"
        " or another vocabulary. Put back what the run was trained with, or train it again"
    )


def _shape(sizes: Sequence[int]) -> str:
    return "×".join(map(str, sizes)) or "a number"


def write_state(state: dict[str, Any], path: Path) -> None:
    """Write what is needed to go on with a training."""
    temporary = path.with_suffix(".part")
    try:
        torch.save(state, temporary)
        temporary.replace(path)
    except (OSError, RuntimeError) as error:  # torch's own writer raises the latter
        raise WriteError(f"{path}: cannot be written: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def read_state(path: Path, needed: Iterable[str] = ()) -> dict[str, Any]:
    """What `write_state` wrote; only tensors and plain values are accepted.

    Raises CheckpointError where there is no such file, or none with the ``needed`` entries.
    """
    try:
        state: object = torch.load(path, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is nothing to resume") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be opened: {error.strerror or error}") from None
    except Exception:  # torch raises many kinds, with advice to load what may run code
        raise CheckpointError(
            f"{path}: the saved state is damaged, or no training wrote it; begin a new run"
        ) from None
    if not isinstance(state, dict):
        raise CheckpointError(f"{path}: this is no saved state of a training; begin a new run")
    if missing := [name for name in needed if name not in state]:
        raise CheckpointError(
            f"{path}: the saved state lacks {', '.join(missing)}; it is damaged or of another"
            " version: begin a new run"
        )
    return state


def read_resumable(
    path: Path,
    needed: Iterable[str],
    kept: Mapping[str, Any],
    place: Path,
    hint: str,
    free: Container[str] = (),
) -> dict[str, Any]:
    """What `write_state` wrote of a training that began with the settings ``kept``, by name.

    Raises CheckpointError as `read_state`, and where it began with others: they are told at
    ``place``, with the ``hint`` what to do. Those that are ``free`` may be any.
    """
    state = read_state(path, (*needed, "settings"))
    before = state["settings"]
    if not isinstance(before, dict):
        raise CheckpointError(f"{path}: the saved state is damaged: its settings are no mapping")
    names = [
        name for name in {**kept, **before}
        if name not in free and kept.get(name) != before.get(name)
    ]  # fmt: skip
    if names:
        told = ", ".join(f"{n} (was {before.get(n)!r}, is {kept.get(n)!r})" for n in names)
        raise CheckpointError(f"{place}: the training began with other settings: {told}; {hint}")
    return state
