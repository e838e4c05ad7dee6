"""From scores to programs: greedy for batches, a beam for single questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kopl.errors import ParseError
from kopl.program import Call
from parsers.constrain.rerank import PartialRuns
from parsers.linking import Linker
from parsers.models.base import LEAST, NEVER, check_numbers
from parsers.models.pointer.data import SLOT_NUMBERS, Asked, Words, function_number
from parsers.models.pointer.network import ActionVectors, Encoded, Network
from parsers.states import FreeState, State
from parsers.target import POINTERS, Actions
from parsers.tokens import Vocabulary

MOST_STEPS = 200


@dataclass(frozen=True)
class Written:
    """A program, or why what was chosen is none, and the logarithm of its probability."""

    log_probability: float
    program: Call | None
    error: ParseError | None = None


class Path(NamedTuple):
    """A program under construction in a beam, after its last choice (-1 for none)."""

    log_probability: float
    choice: int
    state: State
    hidden: Tensor


class Decoder:
    """Writes programs for questions; unless it is ``free``, what it writes always types."""

    def __init__(
        self,
        network: Network,
        vocabulary: Vocabulary,
        actions: Actions,
        linker: Linker,
        *,
        free: bool = False,
    ) -> None:
        self.network, self.vocabulary = network, vocabulary
        self.actions, self.linker = actions, linker
        self._state = FreeState if free else State
        self._masks: dict[object, npt.NDArray[np.bool_]] = {}

    @property
    def _device(self) -> torch.device:
        return self.network.action_bias.device

    @torch.inference_mode()
    def greedy(self, questions: Sequence[Asked]) -> list[Written]:
        """The program of the best step after step for each question, which must have words."""
        encoded, hidden, vectors = self._encode(questions)
        result: dict[int, Written] = {}
        states = [self._state(asked.question, self.linker) for asked in questions]
        logarithms = [0.0] * len(questions)
        previous = torch.full((len(questions), 1), -1, device=self._device)
        live = list(range(len(questions)))
        for _ in range(MOST_STEPS):
            rows = [states[n] for n in live]
            scores, hidden = self._step(rows, previous, encoded, hidden, vectors)
            best = scores.log_softmax(-1).max(-1)
            kept = []
            values = best.values.tolist()
            check_numbers(values)
            for row, (n, value, choice) in enumerate(
                zip(live, values, best.indices.tolist(), strict=True)
            ):
                logarithms[n] += value
                if written := self._take(states[n], choice, logarithms[n]):
                    result[n] = written
                else:
                    kept.append(row)
            if not kept:
                break
            previous = best.indices.unsqueeze(1)
            if len(kept) < len(live):
                index = torch.tensor(kept, device=self._device)
                live = [live[row] for row in kept]
                encoded, previous = encoded.rows(index), previous[index]
                hidden = hidden[:, index]
        return [result[n] for n in range(len(questions))]

    @torch.inference_mode()
    def beam(self, question: Asked, width: int, runs: PartialRuns | None = None) -> list[Written]:
        """What a beam of this width finds, the most probable first.

        With ``runs``, no path is gone on with whose last call finds nothing.
        """
        one, first, vectors = self._encode([question])
        start = self._state(question.question, self.linker)
        paths = [Path(0.0, -1, start, first)]
        found: dict[object, Written] = {}
        for _ in range(MOST_STEPS):
            everyone = torch.zeros(len(paths), dtype=torch.long, device=self._device)
            previous = torch.tensor([[path.choice] for path in paths], device=self._device)
            scores, hidden = self._step(
                [path.state for path in paths], previous, one.rows(everyone),
                torch.cat([path.hidden for path in paths], 1), vectors,
            )  # fmt: skip
            best = scores.log_softmax(-1).topk(min(width, scores.shape[-1]), -1)
            longer: list[tuple[float, int, int]] = []
            values, choices = best.values.tolist(), best.indices.tolist()
            check_numbers(row[0] for row in values)
            for row, path in enumerate(paths):
                for value, choice in zip(values[row], choices[row], strict=True):
                    if value > NEVER / 2:
                        longer.append((path.log_probability + value, row, choice))
            longer.sort(key=lambda way: -way[0])
            going: list[Path] = []
            for log, row, choice in longer:
                if len(going) + len(found) >= width:
                    break
                before = paths[row].state
                state = before.copy()
                written = self._take(state, choice, log)
                closed = state.calls > before.calls
                if runs is not None and closed and runs.finds_nothing(state.ready[-1]):
                    continue
                if written is None:
                    going.append(Path(log, choice, state, hidden[:, row : row + 1]))
                    continue
                # The same program may be written with spans at other places: it counts once.
                same = written.program or str(written.error)
                if same not in found or found[same].log_probability < log:
                    found[same] = written
            paths = going
            if not paths:
                break
        return sorted(found.values(), key=lambda written: -written.log_probability)

    def _encode(self, questions: Sequence[Asked]) -> tuple[Encoded, Tensor, ActionVectors]:
        self.network.eval()
        words = Words.of(questions, self.vocabulary, len(self.actions)).to(self._device)
        encoded, hidden = self.network.encode(words)
        return encoded, hidden, self.network.action_vectors()

    def _step(
        self,
        states: Sequence[State],
        previous: Tensor,
        encoded: Encoded,
        hidden: Tensor,
        vectors: ActionVectors,
    ) -> tuple[Tensor, Tensor]:
        """Scores of what may come next (B × A+L), all else NEVER, and the decoder's new state."""
        given = [
            (
                SLOT_NUMBERS[state.slot],
                function_number(self.actions, state.function.name if state.function else ""),
                state.start,
            )
            for state in states
        ]
        slots, functions, starts = torch.tensor(given, device=self._device).T.unsqueeze(-1)
        inputs = self.network.step_inputs(previous, vectors, encoded, slots, functions)
        outputs, hidden = self.network.decoder(inputs, hidden)
        by_action, by_token = self.network.scores(outputs, encoded, vectors, slots, starts)
        scores = torch.cat([by_action, by_token], -1).squeeze(1)
        size = len(self.actions)
        allowed = np.zeros(tuple(scores.shape), np.bool_)
        for row, state in enumerate(states):
            allowed[row, :size] = self._mask(state)
            if state.slot in POINTERS:
                allowed[row, [size + token for token in state.tokens()]] = True
        forbidden = ~torch.from_numpy(allowed).to(self._device)
        return scores.clamp(min=LEAST).masked_fill(forbidden, NEVER), hidden

    def _mask(self, state: State) -> npt.NDArray[np.bool_]:
        """Which actions a state allows."""
        key = state.signature()
        if key not in self._masks:
            mask = np.zeros(len(self.actions), np.bool_)
            mask[list(self.actions.allowed(state))] = True
            self._masks[key] = mask
        return self._masks[key]

    def _take(self, state: State, choice: int, log_probability: float) -> Written | None:
        """Go on by a choice; what is written when the program ends by it."""
        size = len(self.actions)
        try:
            state.take(choice - size if choice >= size else self.actions.entries[choice])
        except ParseError as error:  # of a free state
            return Written(log_probability, None, error)
        return Written(log_probability, state.program()) if state.done else None
