"""What a run leaves on disk: weights, vocabulary, settings, the knowledge base's fingerprint.

A run is a folder with ``settings.json``, ``parser.json`` (the model's vocabularies, knowledge base
and its fingerprint, answers seen), what else the model needs (a tokenizer), ``best.safetensors``,
``last.safetensors``, ``history.jsonl``, and, to go on from, ``resume.pt``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_model
from torch import nn

from kb import KnowledgeBase, load
from kopl.example import Example
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_base.stream import writing
from parsers.models import class_of
from parsers.models.base import Model
from parsers.settings import Settings, SettingsError

FORMAT = 3


class CheckpointError(KoplError):
    """A run that cannot be loaded, or does not fit the knowledge base."""

    kind = "checkpoint"


@dataclass(frozen=True)
class Description:
    """What a run is about: its model's state, the knowledge base, the answers seen in training."""

    state: dict[str, Any]
    kb: str
    fingerprint: str
    answers: list[str]

    def __post_init__(self) -> None:
        """Raise ValueError for parts of a wrong form, which only a damaged file has."""
        for name, form in (("state", dict), ("kb", str), ("fingerprint", str), ("answers", list)):
            if not isinstance(getattr(self, name), form):
                raise ValueError(f"{name} is {json.dumps(getattr(self, name))[:40]}")
        if not all(isinstance(answer, str) for answer in self.answers):
            raise ValueError("answers are not all strings")

    @property
    def mark(self) -> str:
        """A digest of all but the place of the knowledge base."""
        known = json.dumps([self.state, self.fingerprint, self.answers], sort_keys=True)
        return hashlib.sha256(known.encode()).hexdigest()

    @classmethod
    def of(cls, model: Model, train: list[Example]) -> Description:
        """The description of a new run."""
        answers = {example.answer for example in train if example.answer is not None}
        kb = lasting(model.settings.kb)
        return cls(model.state(), kb, model.kb.fingerprint, sorted(answers))


def lasting(kb: str) -> str:
    """A knowledge base's place as it is called from any folder: a file's from the root on."""
    return str(Path(kb).resolve()) if kb != "world" and Path(kb).exists() else kb


def load_own(folder: Path, kb: str, option: str) -> KnowledgeBase:
    """The knowledge base of a run; raises CheckpointError with the option that names another place.

    ``option`` is what a user gives in front of it.
    """
    try:
        return load(kb)
    except ReadError as error:
        if Path(kb).exists():
            raise
        raise CheckpointError(
            f"{folder}: the run's knowledge base is not to be found: {error}; if it moved, say"
            f" where it is: {option}"
        ) from None


def write_run(folder: Path, model: Model, description: Description) -> None:
    """Begin a run's folder."""
    model.save(folder)
    write_settings(folder, model.settings)
    write_description(folder, description)


def write_description(folder: Path, description: Description) -> None:
    """Write what a run is about."""
    with writing(folder / "parser.json") as file:
        written = {"format": FORMAT, "mark": description.mark, **vars(description)}
        json.dump(written, file, ensure_ascii=False)


def write_settings(folder: Path, settings: Settings) -> None:
    """Write the settings of a run."""
    with writing(folder / "settings.json") as file:
        file.write(settings.to_json())


def read_run(folder: Path) -> tuple[Settings, Description]:
    """The settings and description of a run; raises CheckpointError when it is none."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such run; train one with 'kopl train'")
    try:
        settings = Settings.from_json((folder / "settings.json").read_text("utf-8"))
        found: dict[str, Any] = json.loads((folder / "parser.json").read_text("utf-8"))
        if found.pop("format") != FORMAT:
            raise CheckpointError(f"{folder}: the run has another format; train it again")
        mark = found.pop("mark", None)
        description = Description(**found)
        if mark not in (None, description.mark):  # runs of before have none
            raise ValueError("parser.json is not what the training wrote")
        return settings, description
    except SettingsError as error:
        raise CheckpointError(f"{folder / 'settings.json'}: {error}") from None
    except OSError as error:
        raise CheckpointError(f"{folder}: not a run: {error.strerror}: {error.filename}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{folder}: the run is damaged: {error}") from None


def restore(
    folder: Path,
    kb: KnowledgeBase,
    *,
    weights: str | None = "best",
    new_kb: bool = False,
    settings: Settings | None = None,
) -> Model:
    """The model of a run with its ``best`` or ``last`` weights (None: new ones).

    ``settings`` stand for those of the run, where they are given. ``new_kb``: the knowledge base
    may be another one than that of the training. Raises CheckpointError when the run is damaged or
    was trained on another knowledge base.
    """
    own, description = read_run(folder)
    settings = settings or own
    if description.fingerprint == kb.fingerprint:
        return _restored(folder, settings, description, kb, weights)
    if not new_kb:
        raise CheckpointError(
            f"{folder}: the run was trained on another knowledge base ({description.kb}); its"
            " relations and keys may differ. Train it again on this one, or say that it is to do"
            " with what it learnt there (--new-kb)"
        )
    return _restored(folder, settings, description, kb, weights).moved()


def restore_anywhere(folder: Path, kb: KnowledgeBase) -> Model:
    """The model of a run with its best weights, whatever it was trained on; to take them over."""
    settings, description = read_run(folder)
    return _restored(folder, settings, description, kb, "best")


def _restored(
    folder: Path, settings: Settings, description: Description, kb: KnowledgeBase,
    weights: str | None,
) -> Model:  # fmt: skip
    try:
        model = class_of(settings.model).restore(settings, kb, description.state, folder)
    except (MemoryError, RuntimeError) as error:
        reason = (str(error).splitlines() or ["out of memory"])[0]
        raise CheckpointError(f"{folder}: the run's model cannot be made: {reason}") from None
    except KoplError as error:  # a pretrained encoder or a device that is no longer there
        raise CheckpointError(f"{folder}: the run cannot be loaded: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{folder}: the run is damaged: {error}") from None
    if weights is not None:
        read_weights(model.network, folder / f"{weights}.safetensors")
    return model


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
        raise CheckpointError(f"{path}: there are no weights yet; the run did not finish") from None
    except (SafetensorError, RuntimeError, OSError) as error:
        try:
            with safe_open(path, "pt") as file:
                found = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError):
            found = {}
        reason = found and unfitting(network, found)
        reason = reason or f"the weights are damaged or do not fit: {' '.join(str(error).split())}"
        raise CheckpointError(f"{path}: {reason}") from None


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
