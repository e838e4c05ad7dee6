"""What a run leaves on disk: weights, vocabulary, settings, the knowledge base's fingerprint.

A run is a folder with ``settings.json``, ``parser.json`` (the model's vocabularies, knowledge base
and its fingerprint, answers seen), what else the model needs (a tokenizer), ``best.safetensors``,
``last.safetensors``, ``history.jsonl``, and, to go on from, ``resume.pt``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kb import KnowledgeBase, load
from kopl.example import Example
from kopl_base.errors import KoplError, ReadError, SettingsError
from kopl_base.stream import writing
from kopl_base.training.checkpoint import CheckpointError, read_weights
from parsers.models.base import Model, Unfitting, take_over
from parsers.registry import model_class
from parsers.settings import Settings

FORMAT = 3
SOURCES = "sources.json"


@dataclass(frozen=True)
class Description:
    """What a run is about: its model's state, the knowledge base, the answers seen in training.

    ``beside``: the places of the knowledge bases that it was trained on beside, by fingerprint.
    """

    state: dict[str, Any]
    kb: str
    fingerprint: str
    answers: list[str]
    beside: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for parts of a wrong form, which only a damaged file has."""
        forms = (("state", dict), ("kb", str), ("fingerprint", str), ("answers", list))
        for name, form in (*forms, ("beside", dict)):
            if not isinstance(getattr(self, name), form):
                raise ValueError(f"{name} is {json.dumps(getattr(self, name))[:40]}")
        for name, texts in (("answers", self.answers), ("places", self.beside.values())):
            if not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{name} are not all strings")

    @property
    def mark(self) -> str:
        """A digest of all but the place of the knowledge base."""
        parts: list[object] = [self.state, self.fingerprint, self.answers]
        if self.beside:
            parts.append(list(self.beside))
        known = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(known.encode()).hexdigest()

    @classmethod
    def of(
        cls, model: Model, train: list[Example], beside: dict[str, str] | None = None
    ) -> Description:
        """The description of a new run."""
        answers = {example.answer for example in train if example.answer is not None}
        kb = lasting(model.settings.kb)
        return cls(model.state(), kb, model.kb.fingerprint, sorted(answers), beside or {})


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
        if not description.beside:  # as before there were such runs
            del written["beside"]
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
    may be another one than that of the training. A run that was trained on several goes by one;
    without weights, by all of them, to be trained on. Raises CheckpointError when the run is
    damaged or was trained on another knowledge base.
    """
    own, description = read_run(folder)
    settings = settings or own
    known = description.fingerprint == kb.fingerprint
    if known and (weights is None or not description.beside):
        return _restored(folder, settings, description, kb, weights)
    if not new_kb and not known and kb.fingerprint not in description.beside:
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
        kind: type[Model] = model_class(settings.model)
        model = kind.restore(settings, kb, description.state, folder)
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


# --- where the questions come from ---------------------------------------------------------------


@dataclass(frozen=True)
class Sources:
    """Where the questions of each part come from, in words."""

    train: str
    valid: str
    test: str


def sources(folder: Path) -> Sources:
    """Where a run's questions come from; of a run that does not say, the names of its own files."""
    try:
        return Sources(**json.loads((folder / SOURCES).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return Sources(*(str(folder / f"{part}.jsonl") for part in ("train", "valid", "test")))


# --- beginning with the weights of another run, as after pretraining ------------------------------


def check_start(settings: Settings, folder: Path) -> None:
    """Raise CheckpointError where a training with these settings cannot start from a run."""
    other, _ = read_run(folder)
    if settings.model != other.model:
        raise CheckpointError(f"{folder}: a {other.model} model, but this is a {settings.model}")
    for name in model_class(settings.model).shared:
        here, there = (dict(one.flat(one.by_name()))[name] for one in (settings, other))
        if here != there:
            raise CheckpointError(
                f"{folder}: {name} is {here} here, but {there} there; start_from needs the same"
                f" {name}"
            )
    if settings.model == "pointer" and settings.pointer.pretrained and not other.pointer.pretrained:
        raise CheckpointError(
            f"{folder}: the run has no pretrained encoder, but this one is to have; leave"
            " pointer.pretrained empty"
        )
    if not (folder / "best.safetensors").is_file():
        raise CheckpointError(f"{folder}: there are no weights yet; the run did not finish")


def start_from(model: Model, folder: Path, kb: KnowledgeBase) -> str:
    """Fill a new model with the best weights of a run, and say what was taken over.

    Weights of the same name and shape are copied. Rows that stand for words, functions or schema
    items are copied by what they stand for, so that the vocabulary and the knowledge base may be
    others. Raises CheckpointError for a run of another model or of other sizes.
    """
    check_start(model.settings, folder)
    other = restore_anywhere(folder, kb)
    try:
        taken, known = take_over(model, other)
    except Unfitting as error:
        raise CheckpointError(
            f"{folder}: {error}; start_from needs the same sizes and output language"
        ) from None
    shared = f", {taken} of {known} rows of its vocabularies" if known else ""
    own = {name for name, _ in model.network.named_parameters()}
    left = [name for name, _ in other.network.named_parameters() if name not in own]
    without = f"; left out, as this model has none such: {', '.join(left)}" if left else ""
    return f"started from {folder}: all layers{shared}{without}"
