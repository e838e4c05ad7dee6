"""The network: a bidirectional GRU over the question, a GRU with attention over the steps.

Every step is a choice among three kinds of things: a token of the question (to copy a text from),
an item of the schema or another action, and a text known from training. An action's score has four
parts: a vector of its own (learnt; none for items that training did not have), the words it is
called by (learnt), how alike its name and the words are that the step attends to (the same for
words that training did not have: fixed random vectors of their letters), and whether the question
mentions it word by word. Those without a learnt vector make a parser work on a schema it never saw.

Shapes: B questions or programs, L tokens, T steps, A actions, H hidden units, P pretrained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, normalize, softplus

from kopl_base.training.optimizer import Scores, dropped
from parsers.actions import END, SLOTS, Actions
from parsers.linking import ITEM_MARKS, ITEM_SLOTS, MARKS, marks_of_slots
from parsers.models.base import NEVER, summed_loss
from parsers.models.pointer.data import SLOT_NUMBERS, PointerBatch, Words
from parsers.settings import PointerSettings
from parsers.tokens import MOST_PIECES, PIECES, Question, Vocabulary, pieces

SHAPES = 5
# What the score of a choice is made of, beside what is learnt of the choice itself.
WEIGHTS = (
    "likeness of letters", "being mentioned", "being a name", "likeness of vectors",
    "being known of what is named", "leading to what is named",
)  # fmt: skip
# Runs of before have only the first of these.
OLD_WEIGHTS = 4
UNKNOWN = 1  # the number of words that are not in the vocabulary
# Dimensions of the fixed vectors of letters: as many as keep those of different words apart.
LETTERS = 192
# Words that say little of what an item is.
_SMALL = frozenset(
    "a an and at by for from in of on or that the to with".split()  # noqa: SIM905 (easier to read)
)
_SMALL_WEIGHT = 0.35


@dataclass(frozen=True)
class Encoded:
    """Questions as the decoder sees them."""

    tokens: Tensor  # B × L × H
    letters: Tensor  # B × L × LETTERS
    inside: Tensor  # B × L, bool: which are tokens
    marks: Tensor  # these as in `Words`
    names: Tensor
    items: Tensor
    known: Tensor
    vectors: Tensor | None

    def rows(self, index: Tensor) -> Encoded:
        """Some of the questions, in another order."""
        vectors = None if self.vectors is None else self.vectors[index]
        return Encoded(
            self.tokens[index], self.letters[index], self.inside[index], self.marks[index],
            self.names[index], self.items[index], self.known[index], vectors,
        )  # fmt: skip


@dataclass(frozen=True)
class ActionVectors:
    """What the actions are, the same for all steps of a batch."""

    learnt: Tensor  # A × H
    table: Tensor  # A+1 × H: these, and what begins a program
    letters: Tensor  # A × LETTERS, of length 1, or 0 for what is no item
    pretrained: Tensor | None  # A × P, of length 1


class Network(nn.Module):
    """Scores of actions and tokens for every step of a program, given the question."""

    name_words: Tensor
    name_pieces: Tensor
    name_letters: Tensor
    name_vectors: Tensor
    is_item: Tensor
    slot_marks: Tensor
    piece_letters: Tensor
    small_words: Tensor

    def __init__(
        self, vocabulary: Vocabulary, actions: Actions, sizes: PointerSettings,
        pretrained: int = 0, weights: int = len(WEIGHTS),
    ) -> None:  # fmt: skip
        super().__init__()
        embedding, hidden = sizes.embedding, sizes.hidden
        self.size, self.forget = len(actions), sizes.forget
        self.forget_mentions, self.forget_items = sizes.forget_mentions, sizes.forget_items
        self.words = nn.Embedding(len(vocabulary), embedding, padding_idx=0)
        self.pieces = nn.Embedding(PIECES, embedding, padding_idx=0)
        self.shapes = nn.Embedding(SHAPES, embedding)
        self.marks = nn.Linear(len(MARKS), embedding, bias=False)
        self.vectors = nn.Linear(pretrained, embedding) if pretrained else None
        self.encoder = nn.GRU(embedding, hidden // 2, batch_first=True, bidirectional=True)
        self.actions = nn.Embedding(self.size + 1, hidden)  # the last one begins a program
        self.action_bias = nn.Parameter(torch.zeros(self.size))
        self.name = nn.Linear(embedding, hidden)
        self.copied = nn.Linear(hidden, hidden)
        self.slots = nn.Embedding(len(SLOTS), hidden)
        self.decoder = nn.GRU(hidden, hidden, batch_first=True)
        self.first = nn.Linear(hidden, hidden)
        self.attention = nn.Linear(hidden, hidden, bias=False)
        self.joined = nn.Linear(2 * hidden, hidden)
        self.span_start = nn.Linear(hidden, hidden, bias=False)
        self.span_end = nn.Linear(hidden, hidden, bias=False)
        self.mention = nn.Linear(hidden, hidden, bias=False)
        # Each is a sum of what is the same at all steps, which slots without examples go by, and
        # of what depends on the step.
        self.weights = nn.Linear(hidden, weights)
        self.common_weights = nn.Parameter(torch.ones(weights))
        # Words that mention an item of the kind that a step chooses draw its attention.
        self.drawn = nn.Parameter(torch.tensor(2.0))
        self.dropout = nn.Dropout(sizes.dropout)
        if pretrained:
            self.alike = nn.Linear(pretrained, pretrained, bias=False)
            nn.init.eye_(self.alike.weight)
        self.pretrained = pretrained
        self._add_names(vocabulary, actions)

    def _add_names(self, vocabulary: Vocabulary, actions: Actions) -> None:
        """What follows from the vocabulary and the actions; not saved with the weights."""
        numbers, parts = _names(actions, vocabulary)
        random = np.random.Generator(np.random.Philox(0)).standard_normal((PIECES, LETTERS))
        random[0] = 0
        small = [word.lower() in _SMALL for word in ("", "", *vocabulary.words)]
        is_item = [slot in ITEM_SLOTS for slot, _ in actions.entries]
        for name, tensor in {
            "name_words": numbers,
            "name_pieces": parts,
            "piece_letters": torch.from_numpy(random.astype(np.float32)),
            "small_words": torch.tensor(small),
            "is_item": torch.tensor(is_item),
            "slot_marks": torch.from_numpy(marks_of_slots(SLOTS)),
            "name_vectors": torch.zeros(self.size, self.pretrained),
        }.items():
            self.register_buffer(name, tensor, persistent=False)
        letters = self._letters(numbers, parts).sum(1) * self.is_item.unsqueeze(-1)
        self.register_buffer("name_letters", normalize(letters, dim=-1), persistent=False)

    # --- parts -------------------------------------------------------------------------------

    def _letters(self, words: Tensor, parts: Tensor) -> Tensor:
        """The fixed vectors of words: nearly orthogonal unless they have letters in common."""
        summed = embedding_bag(
            parts.reshape(-1, MOST_PIECES), self.piece_letters, mode="sum", padding_idx=0
        )
        vectors = normalize(summed, dim=-1).reshape(*words.shape, LETTERS)
        weights = torch.where(self.small_words[words], _SMALL_WEIGHT, 1.0)
        return vectors * weights.unsqueeze(-1)

    def _embed(self, words: Tensor, parts: Tensor) -> Tensor:
        by_parts = embedding_bag(
            parts.reshape(-1, MOST_PIECES), self.pieces.weight, mode="mean", padding_idx=0
        )
        embedded: Tensor = self.words(words) + by_parts.reshape(*words.shape, -1)
        return embedded

    def action_vectors(self) -> ActionVectors:
        """What each action is. In training, some items have to do without their own vectors."""
        known = (self.name_words != 0).sum(-1, keepdim=True).clamp(min=1)
        called = self._embed(self.name_words, self.name_pieces)
        called = called * (self.name_words != 0).unsqueeze(-1)
        own = self.actions.weight[: self.size]
        if self.training:
            left = torch.rand(self.size, 1, device=own.device) < self.forget_items
            own = own.masked_fill(left & self.is_item.unsqueeze(-1), 0.0)
            left = torch.rand(self.size, 1, device=own.device) < self.forget_items
            called = called.masked_fill((left & self.is_item.unsqueeze(-1)).unsqueeze(-1), 0.0)
        pretrained = normalize(self.alike(self.name_vectors), dim=-1) if self.pretrained else None
        learnt = own + self.name(called.sum(-2) / known)
        table = torch.cat([learnt, self.actions.weight[self.size :]])
        return ActionVectors(learnt, table, self.name_letters, pretrained)

    def encode(self, words: Words) -> tuple[Encoded, Tensor]:
        """The questions, and a first state of the decoder."""
        inside = words.words != 0
        numbers, parts = words.words, words.pieces
        if self.training:
            # Single words; and in as many questions all that mention an item, with their pieces.
            count = len(numbers)
            left = dropped(numbers.shape, self.forget, numbers.device)
            asked = dropped((count, 1), self.forget_mentions, numbers.device)
            mentions = words.marks[..., ITEM_MARKS].any(-1) & asked
            numbers = torch.where((left | mentions) & inside, UNKNOWN, numbers)
            parts = torch.where(mentions.unsqueeze(-1), 0, parts)
        embedded = self._embed(numbers, parts) + self.shapes(words.shapes)
        embedded = embedded + self.marks(words.marks)
        if self.vectors is not None:
            embedded = embedded + self.vectors(words.vectors)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(embedded), words.lengths, batch_first=True, enforce_sorted=False
        )
        outputs, last = self.encoder(packed)
        tokens, _ = nn.utils.rnn.pad_packed_sequence(
            outputs, batch_first=True, total_length=numbers.shape[1]
        )
        first = torch.tanh(self.first(torch.cat([last[0], last[1]], -1))).unsqueeze(0)
        letters = self._letters(words.words, words.pieces)
        tokens = self.dropout(tokens.contiguous())
        encoded = Encoded(
            tokens,
            letters,
            inside,
            words.marks,
            words.names,
            words.items,
            words.known,
            words.vectors,
        )
        return encoded, first

    def step_inputs(
        self, previous: Tensor, vectors: ActionVectors, encoded: Encoded, slots: Tensor,
        functions: Tensor,
    ) -> Tensor:  # fmt: skip
        """What the decoder reads at each step: the step before, the slot, the function. B × T × H.

        ``previous`` numbers actions, tokens (from A on) or -1 for the begin.
        """
        tokens = encoded.tokens
        by_action = vectors.table[
            torch.where(previous < 0, self.size, previous).clamp(max=self.size)
        ]
        places = (previous - self.size).clamp(min=0)
        by_token = self.copied(
            tokens.gather(1, places.unsqueeze(-1).expand(-1, -1, tokens.shape[-1]))
        )
        chosen = torch.where((previous >= self.size).unsqueeze(-1), by_token, by_action)
        inputs: Tensor = chosen + self.slots(slots) + vectors.learnt[functions]
        return inputs

    def scores(
        self, states: Tensor, encoded: Encoded, vectors: ActionVectors, slots: Tensor,
        starts: Tensor,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Scores of all actions (B × T × A) and of all tokens (B × T × L) for decoder states."""
        tokens, outside = encoded.tokens, ~encoded.inside.unsqueeze(1)
        turned = tokens.transpose(1, 2)
        attended = (self.attention(states) @ turned).masked_fill(outside, NEVER).softmax(-1)
        joined = torch.tanh(self.joined(torch.cat([states, attended @ tokens], -1)))
        joined = self.dropout(joined)
        weights = softplus(self.weights(joined)) + softplus(self.common_weights)

        fitting = self.slot_marks[slots] @ encoded.marks.transpose(1, 2)
        meant = self.mention(joined) @ turned + self.drawn * fitting.clamp(max=1)
        meant = meant.masked_fill(outside, NEVER).softmax(-1)
        alike = normalize(meant @ encoded.letters, dim=-1) @ vectors.letters.T
        by_action = joined @ vectors.learnt.T
        by_action += self.action_bias
        # Five: a likeness of letters is at most 1, and a score must outweigh what is learnt.
        by_action += 5 * weights[..., :1] * alike
        by_action += weights[..., 1:2] * encoded.items.unsqueeze(1)
        if weights.shape[-1] > OLD_WEIGHTS:
            by_action += weights[..., OLD_WEIGHTS:] @ encoded.known.transpose(1, 2)
        if vectors.pretrained is not None:
            seen = normalize(self.alike(meant @ encoded.vectors), dim=-1)
            by_action = by_action + 5 * weights[..., 3:4] * (
                (seen @ vectors.pretrained.T) * self.is_item
            )

        ends = (slots == SLOT_NUMBERS[END]).unsqueeze(-1)
        asked = torch.where(ends, self.span_end(joined), self.span_start(joined))
        names = encoded.names
        begun = starts.clamp(min=0).unsqueeze(-1).expand(-1, -1, names.shape[-1])
        named = torch.where(ends, names.gather(1, begun), names.amax(-1).unsqueeze(1))
        by_token = asked @ turned + weights[..., 2:3] * named
        return by_action, by_token

    # --- training ----------------------------------------------------------------------------

    def forward(self, batch: PointerBatch) -> Scores:
        """The loss of all steps, and which programs have the highest score at every step."""
        encoded, first = self.encode(batch.words)
        vectors = self.action_vectors()
        previous = torch.full_like(batch.targets, -1)
        previous[:, 1:] = batch.targets[:, :-1].clamp(min=0)
        inputs = self.step_inputs(previous, vectors, encoded, batch.slots, batch.functions)
        states, _ = self.decoder(self.dropout(inputs), first)
        by_action, by_token = self.scores(states, encoded, vectors, batch.slots, batch.starts)
        pointing = batch.pointing.unsqueeze(-1) & encoded.inside.unsqueeze(1)
        scores = torch.cat(
            [by_action.masked_fill(~batch.allowed, NEVER), by_token.masked_fill(~pointing, NEVER)],
            -1,
        )
        return summed_loss(scores, batch.targets)


def _names(actions: Actions, vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """The words that actions are called by, as word numbers (A × W) and pieces (A × W × P)."""
    called = [Question.of(text).words for _, text in actions.entries]
    longest = max(1, *(len(words) for words in called))
    numbers = torch.zeros(len(called), longest, dtype=torch.long)
    parts = torch.zeros(len(called), longest, MOST_PIECES, dtype=torch.long)
    for row, words in enumerate(called):
        for at, word in enumerate(words):
            numbers[row, at] = vocabulary.number(word)
            found = pieces(word)
            parts[row, at, : len(found)] = torch.tensor(found)
    return numbers, parts
