"""Examples as tensors: token numbers, steps, and which actions each step allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kb import KnowledgeBase
from kopl.example import Example
from parsers.models.base import IGNORED, Batch, Item, Tensors
from parsers.target import POINTERS, SLOTS, Actions, NotExpressible, Step, steps_of
from parsers.tokens import MOST_PIECES, Question, Vocabulary, pieces, shape

SLOT_NUMBERS = {slot: number for number, slot in enumerate(SLOTS)}


@dataclass(frozen=True)
class PointerItem(Item):
    """An example ready for training, with the question's tokens and the program's steps."""

    question: Question
    steps: tuple[Step, ...]


def prepare(
    examples: Sequence[Example], actions: Actions, kb: KnowledgeBase
) -> tuple[list[PointerItem], list[tuple[Example, str]]]:
    """The examples that the actions can express, and the others with the reason."""
    items, left = [], []
    for example in examples:
        question = Question.of(example.question)
        try:
            steps = steps_of(example.program, question, actions, kb)
        except NotExpressible as reason:
            left.append((example, f"neither the question nor the schema has {reason}"))
            continue
        items.append(PointerItem(example, len(steps), question, tuple(steps)))
    return items, left


@dataclass(frozen=True)
class Words(Tensors):
    """Questions as tensors; B questions of at most L tokens."""

    words: Tensor  # B × L, numbers in the vocabulary, 0 behind the end
    pieces: Tensor  # B × L × MOST_PIECES, 0 behind the end
    shapes: Tensor  # B × L
    lengths: Tensor  # B, on the CPU wherever the others are: packing asks for that

    def to(self, device: torch.device) -> Words:
        """The same on a device."""
        return Words(
            self.words.to(device), self.pieces.to(device), self.shapes.to(device), self.lengths
        )

    @classmethod
    def of(cls, questions: Sequence[Question], vocabulary: Vocabulary) -> Words:
        """The tensors of some questions."""
        longest = max(len(question.words) for question in questions)
        words = np.zeros((len(questions), longest), np.int64)
        parts = np.zeros((len(questions), longest, MOST_PIECES), np.int64)
        shapes = np.zeros((len(questions), longest), np.int64)
        for row, question in enumerate(questions):
            for at, word in enumerate(question.words):
                words[row, at] = vocabulary.number(word)
                found = pieces(word)
                parts[row, at, : len(found)] = found
                shapes[row, at] = shape(word)
        lengths = torch.tensor([len(question.words) for question in questions])
        return cls(
            torch.from_numpy(words), torch.from_numpy(parts), torch.from_numpy(shapes), lengths
        )


@dataclass(frozen=True)
class PointerBatch(Batch):
    """A batch: B programs of at most T steps, A actions, L tokens.

    A target is the number of an action, or A plus the number of a token; IGNORED behind the end.
    """

    words: Words
    slots: Tensor  # B × T
    functions: Tensor  # B × T, number of the action of the function being written
    allowed: Tensor  # B × T × A, bool
    pointing: Tensor  # B × T, bool: the step points to a token
    targets: Tensor  # B × T

    @classmethod
    def of(
        cls,
        items: Sequence[PointerItem],
        vocabulary: Vocabulary,
        actions: Actions,
        *,
        masked: bool = True,
    ) -> PointerBatch:
        """The tensors of some examples; not ``masked``, a slot allows all of its actions."""
        longest, size = max(len(item.steps) for item in items), len(actions)
        slots = np.zeros((len(items), longest), np.int64)
        functions = np.zeros((len(items), longest), np.int64)
        allowed = np.zeros((len(items), longest, size), np.bool_)
        pointing = np.zeros((len(items), longest), np.bool_)
        targets = np.full((len(items), longest), IGNORED, np.int64)
        for row, item in enumerate(items):
            for at, step in enumerate(item.steps):
                slots[row, at] = SLOT_NUMBERS[step.slot]
                functions[row, at] = function_number(actions, step.function)
                allowed[row, at, list(step.allowed if masked else actions.of_slot(step.slot))] = (
                    True
                )
                pointing[row, at] = step.slot in POINTERS
                targets[row, at] = step.action if step.action >= 0 else size + step.token
        return cls(
            count=sum(len(item.steps) for item in items),
            words=Words.of([item.question for item in items], vocabulary),
            slots=torch.from_numpy(slots),
            functions=torch.from_numpy(functions),
            allowed=torch.from_numpy(allowed),
            pointing=torch.from_numpy(pointing),
            targets=torch.from_numpy(targets),
        )


def function_number(actions: Actions, function: str) -> int:
    """The number of a function's action; 0 when no function is being written."""
    return (actions.number("function", function) or 0) if function else 0
