"""Training a parser: what is learnt of which questions, what chooses the best epoch, going on.

The loop itself is `kopl_base.training.loop`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from kb import KnowledgeBase
from kopl.example import Example
from kopl_base.errors import SettingsError, counted, wrapped
from kopl_base.training.checkpoint import (
    CheckpointError,
    read_resumable,
    unfitting,
    write_weights,
)
from kopl_base.training.clock import Clock
from kopl_base.training.distributed import Distributed
from kopl_base.training.history import History, check_trackers
from kopl_base.training.loop import TrainingLoop
from kopl_base.training.optimizer import TrainingError, too_large_explained
from parsers.checkpoint import (
    Description,
    check_start,
    lasting,
    read_run,
    restore,
    start_from,
    write_description,
    write_run,
    write_settings,
)
from parsers.evaluation import evaluate
from parsers.evaluation.judging import JudgedExample
from parsers.models.base import Item, Model, NotFiniteError
from parsers.plots import write_plots
from parsers.registry import model_class
from parsers.settings import Settings

# What a training may be resumed with although it began with another one: how long it goes on,
# where things are, what is told of it. That the knowledge bases and the questions are the same is
# checked by what they say; `training.part` is to be lowered when the memory is not enough.
MAY_CHANGE = frozenset(
    ["kb", "beside", "output", "device", "memory", "threads", "paper", "plots", "tensorboard",
     "wandb", "training.epochs", "training.minutes", "training.checkpoint", "training.part"]
)  # fmt: skip


def kept(settings: Settings) -> dict[str, Any]:
    """The settings that a training must be resumed with, by name."""
    return settings.without(MAY_CHANGE)


@dataclasses.dataclass(frozen=True)
class BesideQuestions:
    """A knowledge base that a model learns over beside its own, with its questions."""

    kb: KnowledgeBase
    train: Sequence[Example]
    valid: Sequence[Example]


class Trainer(TrainingLoop):
    """Trains one model on questions; the best epoch answers most of the validation questions.

    Those over knowledge bases ``beside`` its own count as well; what is learnt of them is among
    ``train``. ``scored`` questions are to be predicted after the training, in the same time.
    """

    def __init__(
        self, folder: Path, model: Model, distributed: Distributed, train: Sequence[Item],
        valid: Sequence[Example], clock: Clock | None = None, scored: int = 0,
        beside: Sequence[BesideQuestions] = (),
    ) -> None:  # fmt: skip
        self.model, self.settings = model, model.settings
        self.train, self.valid = train, [*valid, *(one for part in beside for one in part.valid)]
        self._asked = [(model.kb, valid), *((one.kb, one.valid) for one in beside)]
        clock = clock or Clock(distributed.device, self.settings.threads)
        super().__init__(
            folder, model, self.settings.training, distributed, train, seed=self.settings.seed,
            clock=clock, validated=len(self.valid), after=scored,
        )  # fmt: skip

    @cached_property
    def questions_mark(self) -> str:
        """A fingerprint of the questions, in their order, and of their programs."""
        found = hashlib.sha256()
        for example in (*(item.example for item in self.train), *self.valid):
            found.update(f"{example.question}\n{example.program}\n".encode())
        return found.hexdigest()

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where a training stopped, whose state `saved_state` gave.

        Raises CheckpointError when the questions are others, or the state is of another network.
        """
        if state["questions"] != self.questions_mark:
            raise CheckpointError(
                f"{self.folder}: train.jsonl or valid.jsonl is not what the training began with;"
                " put the old file back, or begin a new run"
            )
        super().resume(state)

    def marks(self) -> dict[str, Any]:
        """The fingerprint of the questions, and the settings that must stay."""
        return {"questions": self.questions_mark, "settings": kept(self.settings)}

    def history(self) -> History:
        """The history in the run's folder, with what the settings ask for."""
        settings = self.settings
        return History(
            self.folder, self.distributed.main, tensorboard=settings.tensorboard,
            wandb=settings.wandb, settings=json.loads(settings.to_json()),
            draw=write_plots if settings.plots else None,
        )  # fmt: skip

    def validate(self) -> tuple[int, int]:
        """How many of this process's validation questions are right, and how many those are."""
        judged: list[JudgedExample] = []
        try:
            with self.distributed.precise():
                for kb, valid in self._asked:
                    model = self.model.over(kb) if len(self._asked) > 1 else self.model
                    report = evaluate(
                        model, self.distributed.share(valid), (),
                        constrained=self.settings.decoding == "constrained",
                    )  # fmt: skip
                    judged += report.judged
        except NotFiniteError as error:
            raise TrainingError(f"validation after batch {self.progress.step}: {error}") from None
        right = sum(one.same_form if self._by_program else one.right for one in judged)
        return right, len(judged)

    def told(self, share: float) -> str:
        """The share of the validation questions that is right, in words."""
        measure = "exact match" if self._by_program else "execution accuracy"
        return f"{measure} {share:.1%} on {len(self.valid)} validation questions"

    @property
    def _by_program(self) -> bool:
        return self.settings.training.metric == "program"


def joined(settings: Settings) -> Distributed:
    """The processes of a training, joined; raises SettingsError for a device that is not there."""
    return Distributed.of(settings.device, settings.training.precision)


def begin(
    folder: Path, settings: Settings, kb: KnowledgeBase, train: Sequence[Example],
    valid: Sequence[Example], distributed: Distributed | None = None, clock: Clock | None = None,
    scored: int = 0, beside: Sequence[BesideQuestions] = (),
) -> Trainer:  # fmt: skip
    """A trainer with a new run in an empty or new folder; the last three as of `Trainer`."""
    distributed = distributed or joined(settings)
    distributed.seed(settings.seed)
    parts = [(kb, train), *((one.kb, one.train) for one in beside)]
    with too_large_explained("the model's sizes"):
        kind = model_class(settings.model)
        model = kind.create_over(settings, parts) if beside else kind.create(settings, kb, train)
    items, left = _prepared(model, parts)
    if left:
        [(reason, count)] = Counter(reason for _, reason in left).most_common(1)
        question = next(example.question for example, own in left if own == reason)
        shown = question if len(question) <= 200 else f"{question[:200]}…"
        distributed.say(wrapped(
            f"{len(left)} of {len(items) + len(left)} training questions cannot be learnt, {count}"
            f" of them as {reason} (of: {shown})"
        ))  # fmt: skip
    if not items:
        raise TrainingError("none of the training questions can be learnt")
    if settings.start_from:
        distributed.say(start_from(model, Path(settings.start_from), kb))
    fingerprints = [one.kb.fingerprint for one in beside]
    description = Description.of(model, list(train), _places(settings, fingerprints))
    distributed.first(lambda: write_run(folder, model, description))
    with too_large_explained("the model's sizes"):
        return Trainer(folder, model, distributed, items, valid, clock, scored, beside)


def made(folder: Path, settings: Settings, kb: KnowledgeBase, train: Sequence[Example]) -> Model:
    """A run of a model that is not trained, in an empty or new folder: it is done at once."""
    model: Model = model_class(settings.model).create(settings, kb, train)
    write_run(folder, model, Description.of(model, list(train)))
    write_weights(model.network, folder / "best.safetensors")
    return model


def _places(settings: Settings, fingerprints: Iterable[str]) -> dict[str, str]:
    """Where the knowledge bases beside a run's own are, by their fingerprints."""
    return {
        fingerprint: one.kb for fingerprint, one in zip(fingerprints, settings.beside, strict=True)
    }


def _prepared(
    model: Model, parts: Sequence[tuple[KnowledgeBase, Sequence[Example]]]
) -> tuple[list[Item], list[tuple[Example, str]]]:
    """What is learnt of all parts, and the examples that cannot be, with the reason."""
    if len(parts) == 1:
        items, left = model.prepare(parts[0][1])
        return list(items), left
    every: list[Item] = []
    without: list[tuple[Example, str]] = []
    for kb, examples in parts:
        items, left = model.prepare_over(kb, examples)
        every, without = every + list(items), without + left
    return every, without


def go_on(
    folder: Path, kb: KnowledgeBase, train: Sequence[Example], valid: Sequence[Example],
    distributed: Distributed | None = None, clock: Clock | None = None, scored: int = 0,
    settings: Settings | None = None, beside: Sequence[BesideQuestions] = (),
) -> Trainer:  # fmt: skip
    """A trainer that resumes the run in a folder, on the same examples.

    ``settings`` are kept with the run in place of its own; they may differ in `MAY_CHANGE`.
    Raises CheckpointError when there is nothing to go on from, it is damaged, or the knowledge
    base, the questions or the settings are not those that the training began with.
    """
    own, description = read_run(folder)
    settings = settings or own
    state = saved_state(folder, settings)
    known = [(description.fingerprint, description.kb), *description.beside.items()]
    if len(beside) != (count := len(description.beside)):
        raise CheckpointError(
            f"{folder}: the training began with {counted(count, 'knowledge base')} beside its own,"
            f" not with {len(beside)}; name all of them, in their order"
        )
    for one, (fingerprint, place) in zip([kb, *(b.kb for b in beside)], known, strict=True):
        if fingerprint != one.fingerprint:
            raise CheckpointError(
                f"{folder}: the training began with another knowledge base ({place}); go on"
                " with that one, or begin a new run"
            )
    distributed = distributed or joined(settings)
    distributed.seed(settings.seed)
    model = restore(folder, kb, weights=None, settings=settings)
    if reason := unfitting(model.network, _shapes(state["network"])):
        raise CheckpointError(f"{folder / 'resume.pt'}: {reason}")
    items, _ = _prepared(model, [(kb, train), *((one.kb, one.train) for one in beside)])
    trainer = Trainer(folder, model, distributed, items, valid, clock, scored, beside)
    trainer.resume(state)
    if settings != own:
        distributed.first(lambda: _changed(folder, settings, description))
    return trainer


def _changed(folder: Path, settings: Settings, description: Description) -> None:
    """Keep other settings with a run."""
    write_settings(folder, settings)
    kb, beside = lasting(settings.kb), _places(settings, description.beside)
    if (kb, beside) != (description.kb, description.beside):
        write_description(folder, dataclasses.replace(description, kb=kb, beside=beside))


def _shapes(network: object) -> dict[str, Sequence[int]]:
    """The shapes of the saved tensors; what is none is left for loading to refuse."""
    if not isinstance(network, dict):
        return {}
    return {name: one.shape for name, one in network.items() if isinstance(one, torch.Tensor)}


def saved_state(folder: Path, settings: Settings) -> dict[str, Any]:
    """What a training saved to go on from.

    Raises CheckpointError when there is nothing, or when it began with other settings.
    """
    return read_resumable(
        folder / "resume.pt",
        ("network", "optimizer", "progress", "questions"),
        kept(settings),
        folder / "settings.json",
        "put them back, or begin a new run",
        MAY_CHANGE,
    )


def resumed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings of a run with what changes as it is gone on with.

    Raises SettingsError for a setting that must stay, and for ``output``: the run stays in its
    folder.
    """
    changed = settings.changed(changes)
    if changed.output != settings.output:
        raise SettingsError(
            "output cannot change as a training goes on: the run stays in its folder; move the"
            f" folder to {changed.output} and go on with --resume {changed.output}"
        )
    if len(changed.beside) != len(settings.beside):
        raise SettingsError(
            f"beside named {counted(len(settings.beside), 'knowledge base')} as the training began,"
            f" not {len(changed.beside)}; where they moved, name all of them, in their order"
        )
    before, now = kept(settings), kept(changed)
    if names := [name for name in before if now[name] != before[name]]:
        raise SettingsError(
            f"{', '.join(names)} must stay as a training goes on; what may change:"
            f" {', '.join(sorted(MAY_CHANGE - {'output'}))}"
        )
    return changed


def check(settings: Settings) -> None:
    """Raise a KoplError for what would stop a training only after its data were made."""
    model_class(settings.model).check(settings)
    check_trackers(settings.tensorboard, settings.wandb)
    if settings.start_from:
        check_start(settings, Path(settings.start_from))
