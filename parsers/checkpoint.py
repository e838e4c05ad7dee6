"""What a run leaves on disk: weights, vocabulary, actions, settings, the knowledge base's name.

A run is a folder with ``settings.json``, ``parser.json`` (words, actions, knowledge base and its
fingerprint), ``best.safetensors``, ``last.safetensors``, ``history.jsonl`` and, to go on from,
``resume.pt``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from kb import KnowledgeBase
from kb.errors import KoplError
from kb.stream import writing
from parsers.rnn import Network
from parsers.settings import Settings
from parsers.target import Actions
from parsers.tokens import Vocabulary

FORMAT = 1


class CheckpointError(KoplError):
    """A run that cannot be loaded, or does not fit the knowledge base."""

    kind = "checkpoint"


@dataclass(frozen=True)
class Description:
    """What a network was made for: its words and actions, the knowledge base, the answers seen."""

    words: list[str]
    entries: list[list[str]]
    kb: str
    fingerprint: str
    answers: list[str]

    def network(self, settings: Settings) -> tuple[Network, Vocabulary, Actions]:
        """A new network with its vocabulary and actions."""
        vocabulary = Vocabulary(self.words)
        actions = Actions(tuple((slot, text) for slot, text in self.entries))
        network = Network(
            vocabulary, actions, settings.embedding, settings.hidden, settings.dropout
        )
        return network, vocabulary, actions


def describe(
    kb: KnowledgeBase, name: str, vocabulary: Vocabulary, actions: Actions, answers: list[str]
) -> Description:
    """The description of a network for a knowledge base."""
    entries = [[slot, text] for slot, text in actions.entries]
    return Description(vocabulary.words, entries, name, kb.fingerprint, sorted(set(answers)))


def write_run(folder: Path, settings: Settings, description: Description) -> None:
    """Begin a run's folder."""
    with writing(folder / "settings.json") as file:
        file.write(settings.to_json())
    with writing(folder / "parser.json") as file:
        json.dump({"format": FORMAT, **vars(description)}, file, ensure_ascii=False)


def read_run(folder: Path) -> tuple[Settings, Description]:
    """The settings and description of a run; raises CheckpointError when it is none."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such run; train one with 'python train.py'")
    try:
        settings = Settings.from_json((folder / "settings.json").read_text("utf-8"))
        found: dict[str, Any] = json.loads((folder / "parser.json").read_text("utf-8"))
        if found.pop("format") != FORMAT:
            raise CheckpointError(f"{folder}: the run has another format; train it again")
        return settings, Description(**found)
    except OSError as error:
        raise CheckpointError(f"{folder}: not a run: {error.strerror}: {error.filename}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{folder}: the run is damaged: {error}") from None


def write_weights(network: Network, path: Path) -> None:
    """Write a network's weights; the file appears when it is complete."""
    temporary = path.with_suffix(".part")
    save_file(network.state_dict(), temporary)
    temporary.replace(path)


def read_weights(network: Network, path: Path) -> None:
    """Fill a network with the weights of a file; raises CheckpointError when they do not fit."""
    try:
        network.load_state_dict(load_file(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there are no weights yet; the run did not finish") from None
    except (SafetensorError, RuntimeError, OSError) as error:
        raise CheckpointError(f"{path}: the weights are damaged or do not fit: {error}") from None


def write_state(state: dict[str, Any], path: Path) -> None:
    """Write what is needed to go on with a training."""
    temporary = path.with_suffix(".part")
    torch.save(state, temporary)
    temporary.replace(path)


def read_state(path: Path) -> dict[str, Any]:
    """What `write_state` wrote; only tensors and plain values are accepted."""
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is nothing to resume") from None
    except Exception as error:  # torch raises many kinds for a damaged file
        raise CheckpointError(f"{path}: the saved state is damaged: {error}") from None
    return state
