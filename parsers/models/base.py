"""What every model offers to training, evaluation and asking.

A model owns a network (a torch module). Training calls the network with a batch and gets the sum of
the losses, so that a batch may be cut into parts or spread over processes and still gives the same
gradient; everything else goes through the model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kb import KnowledgeBase
from kopl.example import Example
from kopl_base.errors import KoplError, SettingsError
from kopl_base.settings import CheckedSettings
from kopl_base.training.memory import Parts
from kopl_base.training.optimizer import Batch, Scores
from parsers.languages import OutputLanguage, Prediction, language_of, nothing
from parsers.settings import Settings
from parsers.tokens import unreadable

IGNORED = -100
# The score of what is not allowed, and the least of what is, whatever a network says.
NEVER, LEAST = -1e9, -1e8


@dataclass(frozen=True)
class Item:
    """An example that a model can learn; ``length`` is that of what is to be written."""

    example: Example
    length: int

    @property
    def text(self) -> str:
        """The question, which messages show."""
        return self.example.question


class NotFiniteError(KoplError):
    """A network whose scores are no numbers, as after a training that went astray."""

    kind = "model"


def check_numbers(values: Iterable[float]) -> None:
    """Raise NotFiniteError where a logarithm of a probability is no number."""
    if any(value != value for value in values):
        raise NotFiniteError(
            "the network's scores are no numbers: its training went astray, or a file of weights is"
            " damaged; train it with a lower learning_rate"
        )


class Model(ABC):
    """A parser's model over one knowledge base, writing one output language."""

    name: ClassVar[str]
    # The settings that two networks of a model must share, so that the one can begin as the other
    # (`start_from`), by their whole names.
    shared: ClassVar[tuple[str, ...]] = ()
    # Of a model of another package: its own settings, a dataclass below `CheckedSettings` or None,
    # and what the defaults of its training differ in.
    own_settings: ClassVar[type[CheckedSettings] | None] = None
    training: ClassVar[Mapping[str, Any]] = {}
    # Whether its weights are learnt from questions; else a run is done when it is made.
    trains: ClassVar[bool] = True
    # At most so many questions fit its confidences, where each one costs.
    most_fitted: int | None = None
    # Less probable answers are refused by a run whose refusals were not fitted.
    least_probability: float = 0.0
    network: nn.Module

    def __init__(self, settings: Settings, kb: KnowledgeBase) -> None:
        self.settings, self.kb = settings, kb
        self.language: OutputLanguage = language_of(settings, kb)
        self.memory = settings.memory  # GiB that predicting may take; it changes no prediction
        self.parts = Parts()

    # --- making, saving ----------------------------------------------------------------------

    @classmethod  # noqa: B027 (most models need nothing)
    def check(cls, settings: Settings) -> None:
        """Raise a KoplError where something is missing that `create` needs, before any work."""

    @classmethod
    @abstractmethod
    def create(cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]) -> Model:
        """A new model with the vocabulary of the training examples."""

    @classmethod
    @abstractmethod
    def restore(
        cls, settings: Settings, kb: KnowledgeBase, state: Mapping[str, Any], folder: Path
    ) -> Model:
        """The model that `state` and `save` describe, its weights not yet loaded."""

    @classmethod
    def create_over(
        cls, settings: Settings, parts: Sequence[tuple[KnowledgeBase, Sequence[Example]]]
    ) -> Model:
        """A new model that learns over several knowledge bases, each with its examples.

        The first one is that of the run. Raises SettingsError where it learns over one alone.
        """
        if len(parts) > 1:
            raise SettingsError(
                f"a model of the kind {cls.name} learns over one knowledge base; leave beside empty"
            )
        return cls.create(settings, *parts[0])

    def over(self, kb: KnowledgeBase) -> Model:
        """The model as it is asked over one of the knowledge bases that it learns over."""
        return self

    def moved(self) -> Model:
        """The model for its knowledge base where it was trained on another one.

        Itself, unless a model has weights for the items of a schema.
        """
        return self

    def extended(self, examples: Sequence[Example]) -> Model:
        """The model for going on with further examples, its weights as they are.

        Itself, unless a model has weights for what examples bring, such as words.
        """
        return self

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What is saved beside the weights, as JSON: vocabularies and the like."""

    def save(self, folder: Path) -> None:  # noqa: B027 (most models need no files)
        """Write the files that `restore` needs beyond `state` and the weights."""

    def tables(self) -> dict[str, Sequence[str]]:
        """What the rows of a parameter stand for, by the parameter's name.

        Where a training starts from another run, rows of the same text are taken over.
        """
        return {}

    # --- training ----------------------------------------------------------------------------

    def prepare(
        self, examples: Sequence[Example]
    ) -> tuple[Sequence[Item], list[tuple[Example, str]]]:
        """The examples that can be learnt, and the others with the reason."""
        readable, left = [], []
        for example in examples:
            if reason := unreadable(example.question):
                left.append((example, reason))
            else:
                readable.append(example)
        items, unlearnable = self.items(readable)
        return items, left + unlearnable

    def prepare_over(
        self, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> tuple[Sequence[Item], list[tuple[Example, str]]]:
        """The same for examples over one of the knowledge bases that it learns over."""
        return self.prepare(examples)

    @abstractmethod
    def items(
        self, examples: Sequence[Example]
    ) -> tuple[Sequence[Item], list[tuple[Example, str]]]:
        """What `prepare` gives for examples whose questions can be read."""

    @abstractmethod
    def collate(self, items: Sequence[Any]) -> Batch:
        """Items that `prepare` gave as what the network takes."""

    def groups(self) -> list[dict[str, Any]]:
        """The parameters for the optimizer, each group with its learning rate ``lr``."""
        return [
            {
                "params": [p for p in self.network.parameters() if p.requires_grad],
                "lr": self.settings.training.learning_rate,
            }
        ]

    def remarks(self) -> list[str]:
        """What a reader of its predictions should know, as what they cost."""
        return []

    def compile(self) -> None:
        """Let torch compile what is worth it, keeping the names of the weights."""
        self.network.compile(dynamic=True)

    # --- predicting --------------------------------------------------------------------------

    @torch.inference_mode()
    def predict(
        self, questions: Sequence[str], *, beams: int = 1, constrained: bool = True,
        guided: bool = False, together: bool = False,
    ) -> list[list[Prediction]]:  # fmt: skip
        """For each question at most so many predictions, the most probable first.

        One beam is greedy search. ``constrained``: only what is well-typed and, where the model
        can tell, only names that the knowledge base has. ``guided``: a model that writes programs
        call by call does not go on with calls that find nothing; others take no notice. A question
        that is not read, or for which memory is not enough, gets one prediction that says why.
        ``together``: the last digits of a probability may be others than if the question were
        predicted alone, where that is faster.

        No more questions go together than fit into ``memory``; where that does not suffice, fewer.
        """
        self.network.eval()
        reasons = [unreadable(question) for question in questions]
        asked = [one for one, reason in zip(questions, reasons, strict=True) if reason is None]
        write = self.written_together if together else self.written
        written = self.parts.work(
            asked,
            lambda part: write(part, beams, constrained, guided),
            lambda question: [nothing("there is too little memory for the question")],
            self.together(asked, beams),
        )
        found = iter(written)
        return [next(found) if reason is None else [nothing(reason)] for reason in reasons]

    def together(self, questions: Sequence[str], beams: int) -> int:
        """How many of some questions may be asked together, so that ``memory`` suffices."""
        return len(questions)

    @abstractmethod
    def written(
        self, questions: Sequence[str], beams: int, constrained: bool, guided: bool
    ) -> list[list[Prediction]]:
        """What `predict` gives for questions that can be read, one at least."""

    def written_together(
        self, questions: Sequence[str], beams: int, constrained: bool, guided: bool
    ) -> list[list[Prediction]]:
        """The same, ``together``; as one by one, unless a model is faster so."""
        return self.written(questions, beams, constrained, guided)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device


class Unfitting(KoplError):
    """Weights of another model that have other sizes."""


def take_over(model: Model, other: Model) -> tuple[int, int]:
    """Fill a model with the weights of another one of its class.

    Weights of the same name and shape are copied; rows of `tables` are copied by what they stand
    for. Gives how many rows were known to the other, and how many there are. Raises Unfitting.
    """
    theirs = dict(other.network.named_parameters())
    rows, from_rows = model.tables(), other.tables()
    taken = known = 0
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            old = theirs.get(name)
            own_rows = name in rows
            if old is None or old.shape[own_rows:] != parameter.shape[own_rows:]:
                found = "none" if old is None else "×".join(map(str, old.shape))
                wanted = "×".join(map(str, parameter.shape))
                raise Unfitting(f"{name} is {wanted} here, but {found} there")
            if not own_rows:
                parameter.copy_(old)
                continue
            places = {text: row for row, text in enumerate(from_rows[name])}
            here = [row for row, text in enumerate(rows[name]) if text in places]
            parameter[here] = old[[places[rows[name][row]] for row in here]]
            taken, known = taken + len(here), known + len(rows[name])
    return taken, known


def summed_loss(scores: Tensor, targets: Tensor) -> Scores:
    """The loss of scores (B × T × V) for targets (B × T, `IGNORED` behind the end)."""
    loss = nn.functional.cross_entropy(
        scores.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    right = (scores.argmax(-1) == targets) | (targets == IGNORED)
    return Scores(loss, right.all(-1))
