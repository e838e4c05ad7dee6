"""Examples as tensors: token numbers, marks, steps, and which actions each step allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from kopl.answer_forms import PLAIN
from kopl.example import Example
from kopl_base.training.optimizer import Batch, Tensors
from parsers.actions import POINTERS, SLOTS, Actions
from parsers.linking import ITEM_MARKS, MARKS, Linker, Mentioned, Mentions
from parsers.models.base import IGNORED, Item
from parsers.models.pointer.pretrained import Vectors
from parsers.steps import ActionStep, NotExpressible, steps_of
from parsers.tokens import MOST_PIECES, Question, Vocabulary, pieces, shape

SLOT_NUMBERS = {slot: number for number, slot in enumerate(SLOTS)}


@dataclass(frozen=True)
class Asked:
    """A question with all that a network reads of it; ``vectors`` are those of a pretrained one."""

    question: Question
    mentioned: Mentioned
    vectors: Vectors | None = None


@dataclass(frozen=True)
class PointerItem(Item):
    """An example ready for training: what is asked, and the program's steps."""

    asked: Asked
    steps: tuple[ActionStep, ...]


def prepare(
    examples: Sequence[Example],
    actions: Actions,
    linker: Linker,
    mentions: Mentions,
    read: Callable[[str], Question] = Question.of,
) -> tuple[list[PointerItem], list[tuple[Example, str]]]:
    """The examples that the actions can express, and the others with the reason."""
    items, left = [], []
    for example in examples:
        question = read(example.question)
        try:
            asking = example.asking if actions.asked else PLAIN
            steps = steps_of(example.program, question, actions, linker, asking)
        except NotExpressible as reason:
            left.append((example, f"neither the question nor the schema has {reason}"))
            continue
        asked = Asked(question, mentions.of(question))
        items.append(PointerItem(example, len(steps), asked, tuple(steps)))
    return items, left


def renumbered(items: Sequence[PointerItem], actions: Actions, among: Actions) -> list[PointerItem]:
    """Items made with some actions, with their numbers among others that have them all."""
    numbers = [among.number(*entry) for entry in actions.entries]
    if None in numbers:
        raise ValueError("there is an action that the others do not have")

    @cache  # steps share what they allow
    def those(found: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(numbers[number] for number in found)  # type: ignore[misc]

    result = []
    for item in items:
        steps = (
            replace(step, allowed=those(step.allowed), action=those((step.action,))[0])
            if step.action >= 0
            else replace(step, allowed=those(step.allowed))
            for step in item.steps
        )
        mentioned = item.asked.mentioned
        has, leads = mentioned.known
        mentioned = replace(
            mentioned, items=those(mentioned.items), known=(those(has), those(leads))
        )
        asked = replace(item.asked, mentioned=mentioned)
        result.append(replace(item, asked=asked, steps=tuple(steps)))
    return result


@dataclass(frozen=True)
class Words(Tensors):
    """Questions as tensors; B questions of at most L tokens, A actions."""

    words: Tensor  # B × L, numbers in the vocabulary, 0 behind the end
    pieces: Tensor  # B × L × MOST_PIECES, 0 behind the end
    shapes: Tensor  # B × L
    marks: Tensor  # B × L × MARKS
    names: Tensor  # B × L × L, 1 where a name goes from a token (rows) to a token (columns)
    items: Tensor  # B × A, 1 where the item of an action is mentioned
    known: Tensor  # B × A × 2, 1 where what is named has the item, and where it leads to that
    vectors: Tensor | None  # B × L × P, of a pretrained encoder
    lengths: Tensor  # B, on the CPU wherever the others are: packing asks for that

    def to(self, device: torch.device) -> Words:
        """The same on a device."""
        moved = super().to(device)
        object.__setattr__(moved, "lengths", self.lengths)
        return moved

    @classmethod
    def of(cls, questions: Sequence[Asked], vocabulary: Vocabulary, actions: int) -> Words:
        """The tensors of some questions."""
        count, longest = len(questions), max(len(asked.question.words) for asked in questions)
        words = np.zeros((count, longest), np.int64)
        parts = np.zeros((count, longest, MOST_PIECES), np.int64)
        shapes = np.zeros((count, longest), np.int64)
        marks = np.zeros((count, longest, len(MARKS)), np.float32)
        names = np.zeros((count, longest, longest), np.float32)
        items = np.zeros((count, actions), np.float32)
        known = np.zeros((count, actions, 2), np.float32)
        vectors = None
        if questions[0].vectors is not None:
            vectors = np.zeros((count, longest, questions[0].vectors.shape[1]), np.float32)
        for row, asked in enumerate(questions):
            own = asked.question.words
            words[row, : len(own)] = vocabulary.numbers(own)
            for at, word in enumerate(own):
                found = pieces(word)
                parts[row, at, : len(found)] = found
                shapes[row, at] = shape(word)
            marks[row, : len(own)] = asked.mentioned.marks
            # The number in "ISO 639 code" is a word like others.
            shapes[row, : len(own)][asked.mentioned.marks[:, ITEM_MARKS].any(1)] = 0
            for first, last in asked.mentioned.names:
                names[row, first, last] = 1
            items[row, list(asked.mentioned.items)] = 1
            for end, found in enumerate(asked.mentioned.known):
                known[row, list(found), end] = 1
            if vectors is not None and asked.vectors is not None:
                vectors[row, : len(own)] = asked.vectors
        lengths = torch.tensor([len(asked.question.words) for asked in questions])
        return cls(
            words=torch.from_numpy(words),
            pieces=torch.from_numpy(parts),
            shapes=torch.from_numpy(shapes),
            marks=torch.from_numpy(marks),
            names=torch.from_numpy(names),
            items=torch.from_numpy(items),
            known=torch.from_numpy(known),
            vectors=None if vectors is None else torch.from_numpy(vectors),
            lengths=lengths,
        )


@dataclass(frozen=True)
class PointerBatch(Batch):
    """A batch: B programs of at most T steps, A actions, L tokens.

    A target is the number of an action, or A plus the number of a token; IGNORED behind the end.
    """

    words: Words
    slots: Tensor  # B × T
    functions: Tensor  # B × T, number of the action of the function being written
    starts: Tensor  # B × T, the token at which the text being copied begins, -1 for none
    allowed: Tensor  # B × T × A, bool
    pointing: Tensor  # B × T, bool: the step may point to a token
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
        starts = np.full((len(items), longest), -1, np.int64)
        allowed = np.zeros((len(items), longest, size), np.bool_)
        pointing = np.zeros((len(items), longest), np.bool_)
        targets = np.full((len(items), longest), IGNORED, np.int64)
        for row, item in enumerate(items):
            for at, step in enumerate(item.steps):
                slots[row, at] = SLOT_NUMBERS[step.slot]
                functions[row, at] = function_number(actions, step.function)
                starts[row, at] = step.start
                among = step.allowed if masked else actions.of_slot(step.slot) or step.allowed
                allowed[row, at, list(among)] = True
                pointing[row, at] = step.slot in POINTERS
                targets[row, at] = step.action if step.action >= 0 else size + step.token
        return cls(
            count=sum(len(item.steps) for item in items),
            words=Words.of([item.asked for item in items], vocabulary, size),
            slots=torch.from_numpy(slots),
            functions=torch.from_numpy(functions),
            starts=torch.from_numpy(starts),
            allowed=torch.from_numpy(allowed),
            pointing=torch.from_numpy(pointing),
            targets=torch.from_numpy(targets),
        )


def function_number(actions: Actions, function: str) -> int:
    """The number of a function's action; 0 when no function is being written."""
    return (actions.number("function", function) or 0) if function else 0
