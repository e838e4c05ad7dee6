"""The network: a bidirectional GRU over the question, a GRU with attention over the steps.

Shapes: B questions or programs, L tokens, T steps, A actions, H hidden units.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from parsers.models.base import NEVER, Scores, summed_loss
from parsers.models.pointer.data import SLOT_NUMBERS, PointerBatch, Words
from parsers.target import END, SLOTS, Actions
from parsers.tokens import PIECES, Vocabulary, pieces

SHAPES = 5


class Network(nn.Module):
    """Scores of actions and tokens for every step of a program, given the question."""

    name_words: Tensor
    name_pieces: Tensor

    def __init__(
        self, vocabulary: Vocabulary, actions: Actions, embedding: int, hidden: int, dropout: float
    ) -> None:
        super().__init__()
        self.size = len(actions)
        self.words = nn.Embedding(len(vocabulary), embedding, padding_idx=0)
        self.pieces = nn.Embedding(PIECES, embedding, padding_idx=0)
        self.shapes = nn.Embedding(SHAPES, embedding)
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
        self.dropout = nn.Dropout(dropout)
        names = _names(actions, vocabulary)
        self.register_buffer("name_words", names[0], persistent=False)
        self.register_buffer("name_pieces", names[1], persistent=False)

    # --- parts -------------------------------------------------------------------------------

    def _embed(self, words: Tensor, parts: Tensor) -> Tensor:
        count = (parts != 0).sum(-1, keepdim=True).clamp(min=1)
        embedded: Tensor = self.words(words) + self.pieces(parts).sum(-2) / count
        return embedded

    def action_vectors(self) -> Tensor:
        """What each action is: a vector of its own, and the words that it is called by. A × H."""
        known = (self.name_words != 0).sum(-1, keepdim=True).clamp(min=1)
        called = self._embed(self.name_words, self.name_pieces)
        called = called * (self.name_words != 0).unsqueeze(-1)
        vectors: Tensor = self.actions.weight[: self.size] + self.name(called.sum(-2) / known)
        return vectors

    def encode(self, words: Words) -> tuple[Tensor, Tensor, Tensor]:
        """The tokens in their context (B × L × H), which are tokens (B × L), a first state."""
        inside = words.words != 0
        embedded = self._embed(words.words, words.pieces) + self.shapes(words.shapes)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(embedded), words.lengths, batch_first=True, enforce_sorted=False
        )
        outputs, last = self.encoder(packed)
        encoded, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
        first = torch.tanh(self.first(torch.cat([last[0], last[1]], -1))).unsqueeze(0)
        return self.dropout(encoded), inside, first

    def step_inputs(
        self, previous: Tensor, vectors: Tensor, encoded: Tensor, slots: Tensor, functions: Tensor
    ) -> Tensor:
        """What the decoder reads at each step: the step before, the slot, the function. B × T × H.

        ``previous`` numbers actions, tokens (from A on) or -1 for the begin.
        """
        begin = self.actions.weight[self.size]
        table = torch.cat([vectors, begin.unsqueeze(0)])
        by_action = table[torch.where(previous < 0, self.size, previous).clamp(max=self.size)]
        tokens = (previous - self.size).clamp(min=0)
        by_token = self.copied(
            encoded.gather(1, tokens.unsqueeze(-1).expand(-1, -1, encoded.shape[-1]))
        )
        chosen = torch.where((previous >= self.size).unsqueeze(-1), by_token, by_action)
        inputs: Tensor = chosen + self.slots(slots) + vectors[functions]
        return inputs

    def scores(
        self, states: Tensor, encoded: Tensor, inside: Tensor, vectors: Tensor, slots: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores of all actions (B × T × A) and of all tokens (B × T × L) for decoder states."""
        weights = self.attention(states) @ encoded.transpose(1, 2)
        weights = weights.masked_fill(~inside.unsqueeze(1), NEVER).softmax(-1)
        joined = torch.tanh(self.joined(torch.cat([states, weights @ encoded], -1)))
        joined = self.dropout(joined)
        ends = (slots == SLOT_NUMBERS[END]).unsqueeze(-1)
        asked = torch.where(ends, self.span_end(joined), self.span_start(joined))
        tokens = asked @ encoded.transpose(1, 2)
        return joined @ vectors.T + self.action_bias, tokens

    # --- training ----------------------------------------------------------------------------

    def forward(self, batch: PointerBatch) -> Scores:
        """The loss of all steps, and which programs have the highest score at every step."""
        encoded, inside, first = self.encode(batch.words)
        vectors = self.action_vectors()
        previous = torch.full_like(batch.targets, -1)
        previous[:, 1:] = batch.targets[:, :-1].clamp(min=0)
        inputs = self.step_inputs(previous, vectors, encoded, batch.slots, batch.functions)
        states, _ = self.decoder(self.dropout(inputs), first)
        by_action, by_token = self.scores(states, encoded, inside, vectors, batch.slots)
        pointing = batch.pointing.unsqueeze(-1) & inside.unsqueeze(1)
        scores = torch.cat(
            [by_action.masked_fill(~batch.allowed, NEVER), by_token.masked_fill(~pointing, NEVER)],
            -1,
        )
        return summed_loss(scores, batch.targets)


def _names(actions: Actions, vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """The words that actions are called by, as word numbers (A × W) and pieces (A × W × P)."""
    from parsers.tokens import MOST_PIECES, Question

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
