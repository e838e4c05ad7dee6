"""From scores to programs: greedy for batches, a beam for single questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kb import KnowledgeBase
from kopl.errors import ParseError
from kopl.program import Call
from parsers.models.base import NEVER
from parsers.models.pointer.data import SLOT_NUMBERS, Words, function_number
from parsers.models.pointer.network import Network
from parsers.target import POINTERS, Actions, FreeState, State
from parsers.tokens import Question, Vocabulary

MOST_STEPS = 200


@dataclass(frozen=True)
class Written:
    """A program, or why what was chosen is none, and the logarithm of its probability."""

    log_probability: float
    program: Call | None
    error: ParseError | None = None


class Decoder:
    """Writes programs for questions; unless it is ``free``, what it writes always types."""

    def __init__(
        self,
        network: Network,
        vocabulary: Vocabulary,
        actions: Actions,
        kb: KnowledgeBase,
        *,
        free: bool = False,
    ) -> None:
        self.network, self.vocabulary = network, vocabulary
        self.actions, self.kb = actions, kb
        self._state = FreeState if free else State

    @property
    def _device(self) -> torch.device:
        return self.network.action_bias.device

    @torch.inference_mode()
    def greedy(self, questions: Sequence[Question]) -> list[Written]:
        """The program of the best step after step for each question, which must have words."""
        self.network.eval()
        result: dict[int, Written] = {}
        words = Words.of(questions, self.vocabulary).to(self._device)
        encoded, inside, hidden = self.network.encode(words)
        vectors = self.network.action_vectors()
        states = [self._state(question, self.kb) for question in questions]
        logarithms = [0.0] * len(questions)
        previous = torch.full((len(questions), 1), -1, device=self._device)
        live = list(range(len(questions)))
        for _ in range(MOST_STEPS):
            rows = [states[n] for n in live]
            scores, hidden = self._step(rows, previous, encoded, inside, hidden, vectors)
            best = scores.log_softmax(-1).max(-1)
            kept = []
            for row, (n, value, choice) in enumerate(
                zip(live, best.values.tolist(), best.indices.tolist(), strict=True)
            ):
                logarithms[n] += value
                if written := self._take(states[n], choice, logarithms[n]):
                    result[n] = written
                else:
                    kept.append(row)
            if not kept:
                break
            index = torch.tensor(kept, device=self._device)
            live = [live[row] for row in kept]
            previous = best.indices[index].unsqueeze(1)
            encoded, inside, hidden = encoded[index], inside[index], hidden[:, index]
        return [result[n] for n in range(len(questions))]

    @torch.inference_mode()
    def beam(self, question: Question, width: int) -> list[Written]:
        """What a beam of this width finds, the most probable first."""
        self.network.eval()
        words = Words.of([question], self.vocabulary).to(self._device)
        encoded, inside, hidden = self.network.encode(words)
        vectors = self.network.action_vectors()
        # (log probability, choices so far, hidden state)
        paths: list[tuple[float, list[int], Tensor]] = [(0.0, [], hidden)]
        found: dict[object, Written] = {}
        for _ in range(MOST_STEPS):
            states = [self._replay(question, choices) for _, choices, _ in paths]
            count = len(paths)
            previous = torch.tensor(
                [[path[1][-1] if path[1] else -1] for path in paths], device=self._device
            )
            scores, hidden = self._step(
                states, previous, encoded.expand(count, -1, -1), inside.expand(count, -1),
                torch.cat([path[2] for path in paths], 1), vectors,
            )  # fmt: skip
            logs = scores.log_softmax(-1)
            best = logs.topk(min(width, logs.shape[-1]), -1)
            longer = []
            for row, (log, choices, _) in enumerate(paths):
                for value, choice in zip(
                    best.values[row].tolist(), best.indices[row].tolist(), strict=True
                ):
                    if value > NEVER / 2:
                        longer.append((log + value, [*choices, choice], hidden[:, row : row + 1]))
            longer.sort(key=lambda path: -path[0])
            paths = []
            for path in longer[: width - len(found)]:
                state = self._replay(question, path[1][:-1])
                written = self._take(state, path[1][-1], path[0])
                if written is None:
                    paths.append(path)
                    continue
                # The same program may be written with spans at other places: it counts once.
                same = written.program or str(written.error)
                if same not in found or found[same].log_probability < path[0]:
                    found[same] = written
            if not paths:
                break
        return sorted(found.values(), key=lambda written: -written.log_probability)

    def _step(
        self,
        states: Sequence[State],
        previous: Tensor,
        encoded: Tensor,
        inside: Tensor,
        hidden: Tensor,
        vectors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Scores of what may come next (B × A+L), all else NEVER, and the decoder's new state."""
        slots = torch.tensor([[SLOT_NUMBERS[state.slot]] for state in states], device=self._device)
        functions = torch.tensor(
            [
                [function_number(self.actions, state.function.name if state.function else "")]
                for state in states
            ],
            device=self._device,
        )
        inputs = self.network.step_inputs(previous, vectors, encoded, slots, functions)
        outputs, hidden = self.network.decoder(inputs, hidden)
        by_action, by_token = self.network.scores(outputs, encoded, inside, vectors, slots)
        scores = torch.cat([by_action, by_token], -1).squeeze(1)
        allowed = torch.zeros_like(scores, dtype=torch.bool)
        for row, state in enumerate(states):
            if state.slot in POINTERS:
                allowed[row, [len(self.actions) + token for token in state.tokens()]] = True
            else:
                allowed[row, list(self.actions.allowed(state))] = True
        return scores.masked_fill(~allowed, NEVER), hidden

    def _take(self, state: State, choice: int, log_probability: float) -> Written | None:
        """Go on by a choice; what is written when the program ends by it."""
        size = len(self.actions)
        try:
            state.take(choice - size if choice >= size else self.actions.entries[choice])
        except ParseError as error:  # of a free state
            return Written(log_probability, None, error)
        return Written(log_probability, state.program()) if state.done else None

    def _replay(self, question: Question, choices: Sequence[int]) -> State:
        state = self._state(question, self.kb)
        for choice in choices:
            self._take(state, choice, 0.0)
        return state
