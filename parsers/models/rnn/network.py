"""The networks of the paper's baseline (Appendix H): GRUs with dot attention.

Shapes: B questions, L words, T target tokens, H hidden units, V entries of a vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from kopl_base.training.optimizer import Batch, Scores, Tensors
from parsers.languages import MOST_ARGUMENTS
from parsers.models.base import IGNORED, NEVER, summed_loss
from parsers.settings import RnnSettings

EMBEDDING_SPREAD = 0.3


@dataclass(frozen=True)
class RnnWords(Tensors):
    """Questions as word numbers; 0 behind the end."""

    words: Tensor  # B × L
    lengths: Tensor  # B, on the CPU: packing asks for that

    def to(self, device: torch.device) -> RnnWords:
        """The same on a device."""
        return RnnWords(self.words.to(device), self.lengths)

    @classmethod
    def of(cls, questions: list[list[int]]) -> RnnWords:
        """The tensors of questions, none of which is empty."""
        lengths = torch.tensor([len(question) for question in questions])
        words = torch.zeros(len(questions), int(lengths.max()), dtype=torch.long)
        for row, question in enumerate(questions):
            words[row, : len(question)] = torch.tensor(question)
        return cls(words, lengths)


@dataclass(frozen=True)
class RnnBatch(Batch):
    """Questions, what comes first (functions or tokens), and the arguments of functions."""

    words: RnnWords
    tokens: Tensor  # B × T, 0 ends, IGNORED behind the end
    arguments: Tensor  # B × T × MOST_ARGUMENTS, IGNORED for all but functions; or of no elements


@dataclass(frozen=True)
class Read:
    """Encoded questions."""

    states: Tensor  # B × L × H
    inside: Tensor  # B × L, bool
    hidden: Tensor  # layers × B × H, the state at the end of the question

    def rows(self, rows: Tensor) -> Read:
        """Some of the questions, some of them perhaps several times."""
        return Read(self.states[rows], self.inside[rows], self.hidden[:, rows])


class Gru(nn.GRU):
    """A GRU in one direction that draws its dropout between layers for the rows of a batch.

    torch's own draws for all tokens in the order of their packing, so that the same example gets
    another mask in another batch.
    """

    def __init__(self, inputs: int, hidden: int, layers: int, dropout: float) -> None:
        between = dropout if layers > 1 else 0.0
        super().__init__(inputs, hidden, layers, batch_first=True, dropout=between)

    def forward(  # type: ignore[override]
        self, inputs: Tensor, hidden: Tensor | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The states (B × L × H) of the last layer, and the last ones of each (layers × B × H).

        ``lengths`` (B, on the CPU): how much there is to be read of each row.
        """
        count, longest, _ = inputs.shape
        if hidden is None:
            hidden = inputs.new_zeros(self.num_layers, count, self.hidden_size)
        states, ends = inputs, []
        for layer in range(self.num_layers):
            weights: Any = self._flat_weights[4 * layer : 4 * layer + 4]
            first = hidden[layer : layer + 1].contiguous()
            if layer:
                states = nn.functional.dropout(states, self.dropout, self.training)
            if lengths is None:
                states, last = torch.gru(
                    states, first, weights, True, 1, 0.0, self.training, False, True
                )
            else:
                packed = pack_padded_sequence(
                    states, lengths, batch_first=True, enforce_sorted=False
                )
                read, last = torch.gru(
                    packed.data,
                    packed.batch_sizes,
                    first[:, packed.sorted_indices],
                    weights,
                    True,
                    1,
                    0.0,
                    self.training,
                    False,
                )
                last = last[:, packed.unsorted_indices]
                states, _ = pad_packed_sequence(
                    packed._replace(data=read), batch_first=True, total_length=longest
                )
            # In the order of the batch: masks are drawn in the order of the memory.
            states = states.contiguous()
            ends.append(last)
        return states, torch.cat(ends)


class Attending(nn.Module):
    """A GRU over target tokens whose state, plus what it attends to, chooses the next token."""

    def __init__(self, sizes: RnnSettings, inputs: int, layers: int, entries: int) -> None:
        super().__init__()
        self.gru = Gru(inputs, sizes.hidden, layers, sizes.dropout)
        self.classify = nn.Linear(sizes.hidden, entries)

    def forward(self, inputs: Tensor, hidden: Tensor, read: Read) -> tuple[Tensor, Tensor]:
        """States with attention added (B × T × H), and the GRU's last state."""
        states, hidden = self.gru(inputs, hidden)
        weights = states @ read.states.transpose(1, 2)  # dot attention, B × T × L
        weights = weights.masked_fill(~read.inside.unsqueeze(1), NEVER).softmax(-1)
        return states + weights @ read.states, hidden


class RnnNetwork(nn.Module):
    """Tokens from a question: functions or a query's. With ``arguments``, those of functions too.

    The functions of a program are decoded first. Then, from the state at each function, up to three
    arguments, each an entry of a closed vocabulary of whole strings.
    """

    def __init__(self, sizes: RnnSettings, words: int, tokens: int, arguments: int) -> None:
        super().__init__()
        self.layers = sizes.layers
        self.words = nn.Embedding(words, sizes.embedding, padding_idx=0)
        self.dropout = nn.Dropout(sizes.dropout)
        self.encoder = Gru(sizes.embedding, sizes.hidden, sizes.layers, sizes.dropout)
        # The end, which is never an input, begins: its row 0 is the begin's.
        self.tokens = nn.Embedding(tokens, sizes.embedding)
        self.decoder = Attending(sizes, sizes.embedding, sizes.layers, tokens)
        self.arguments: nn.Embedding | None = None
        if arguments:
            self.arguments = nn.Embedding(arguments, sizes.embedding)
            self.filler = Attending(sizes, sizes.embedding, 1, arguments)

        for module in self.modules():
            if isinstance(module, nn.Embedding):
                # As spread as GloVe's vectors: torch's own, of 1, drive the gates to their ends.
                nn.init.normal_(module.weight, std=EMBEDDING_SPREAD)
        with torch.no_grad():
            self.words.weight[0] = 0.0

    def encode(self, words: RnnWords) -> Read:
        """The questions, word by word and at their end."""
        read = self.dropout(self.words(words.words))
        states, hidden = self.encoder(read, lengths=words.lengths)
        return Read(states, words.words != 0, hidden)

    def decode(self, previous: Tensor, hidden: Tensor, read: Read) -> tuple[Tensor, Tensor]:
        """States (B × T × H) after reading the tokens before (B × T), and the GRU's last state."""
        found: tuple[Tensor, Tensor] = self.decoder(
            self.dropout(self.tokens(previous)), hidden, read
        )
        return found

    def choose(self, states: Tensor) -> Tensor:
        """The scores of the tokens (… × V)."""
        scores: Tensor = self.decoder.classify(self.dropout(states))
        return scores

    def fill(
        self, functions: Tensor, previous: Tensor, hidden: Tensor, read: Read
    ) -> tuple[Tensor, Tensor]:
        """The scores of arguments (M × K × V) of M functions, and the GRU's last state.

        The same as `filled` for what is given.
        """
        states, hidden = self.filled(functions, previous, hidden, read)
        scores: Tensor = self.filler.classify(self.dropout(states))
        return scores, hidden

    def filled(
        self,
        functions: Tensor,
        previous: Tensor,
        hidden: Tensor,
        read: Read,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """States (M × K × H) for the arguments of M functions, and the GRU's last state.

        ``previous``: M × K, the arguments before, -1 where the function itself is read. ``mask``:
        M × K × E, what of the inputs is dropped in training.
        """
        assert self.arguments is not None
        inputs = torch.where(
            (previous < 0).unsqueeze(-1),
            self.tokens(functions).unsqueeze(1),
            self.arguments(previous.clamp(min=0)),
        )
        found: tuple[Tensor, Tensor] = self.filler(
            inputs if mask is None else inputs * mask, hidden, read
        )
        return found

    def _mask(self, tokens: Tensor, units: int) -> Tensor:
        """What is dropped of each argument of each token, B × T × MOST_ARGUMENTS × units."""
        shape = (*tokens.shape, MOST_ARGUMENTS, units)
        mask: Tensor = self.dropout(self.words.weight.new_ones(shape))
        return mask

    def forward(self, batch: RnnBatch) -> Scores:
        """The loss of all tokens and arguments, and which examples are all right."""
        read = self.encode(batch.words)
        previous = torch.zeros_like(batch.tokens)
        previous[:, 1:] = batch.tokens[:, :-1].clamp(min=0)
        states, _ = self.decode(previous, read.hidden, read)
        found = summed_loss(self.choose(states), batch.tokens)
        if self.arguments is None:
            return found
        rows, places = (batch.tokens > 0).nonzero(as_tuple=True)  # M functions, no ends
        targets = batch.arguments[rows, places]  # M × K
        previous = torch.full_like(targets, -1)
        previous[:, 1:] = targets[:, :-1].clamp(min=0)
        filling, _ = self.filled(
            batch.tokens[rows, places], previous, states[rows, places].unsqueeze(0),
            read.rows(rows), self._mask(batch.tokens, self.words.embedding_dim)[rows, places],
        )  # fmt: skip
        # Most of the time goes into scores of the whole vocabulary: only those that are learnt.
        asked, slots = (targets != IGNORED).nonzero(as_tuple=True)
        mask = self._mask(batch.tokens, filling.shape[-1])[rows, places][asked, slots]
        scores = self.filler.classify(filling[asked, slots] * mask)
        filled = summed_loss(scores.unsqueeze(1), targets[asked, slots].unsqueeze(1))
        wrong = torch.zeros(len(batch.tokens), dtype=torch.long, device=rows.device)
        wrong.index_add_(0, rows[asked], (~filled.right).long())
        return Scores(found.loss + filled.loss, found.right & (wrong == 0))


def padded(rows: list[list[int]], value: int) -> Tensor:
    """Numbers as a tensor, filled up with a value."""
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def padded_arguments(rows: list[list[list[int]]], longest: int) -> Tensor:
    """The arguments of functions, B × longest × MOST_ARGUMENTS."""
    nothing = [IGNORED] * MOST_ARGUMENTS
    return torch.tensor([row + [nothing] * (longest - len(row)) for row in rows])
