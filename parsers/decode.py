"""From scores to programs: greedy for batches, a beam for single questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kb import KnowledgeBase
from kopl.program import Call
from parsers.data import SLOT_NUMBERS, Words, function_number
from parsers.rnn import NEVER, Network
from parsers.target import POINTERS, Actions, State
from parsers.tokens import Question, Vocabulary

MOST_STEPS = 200


@dataclass(frozen=True)
class Prediction:
    """A program with the probability that the network gives it."""

    program: Call
    probability: float


class Decoder:
    """Writes programs for questions; what it writes always types."""

    def __init__(
        self, network: Network, vocabulary: Vocabulary, actions: Actions, kb: KnowledgeBase
    ) -> None:
        self.network, self.vocabulary = network, vocabulary
        self.actions, self.kb = actions, kb

    @torch.inference_mode()
    def greedy(self, questions: Sequence[Question]) -> list[Prediction]:
        """The program of the best step after step for each question."""
        self.network.eval()
        result: list[Prediction | None] = [None] * len(questions)
        asked = [(n, q) for n, q in enumerate(questions) if q.words]
        if len(asked) < len(questions):
            raise ValueError("a question has no words")
        encoded, inside, hidden = self.network.encode(Words.of(questions, self.vocabulary))
        vectors = self.network.action_vectors()
        states = [State(question, self.kb) for question in questions]
        logarithms = [0.0] * len(questions)
        previous = torch.full((len(questions), 1), -1)
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
                self._take(states[n], choice)
                if states[n].done:
                    result[n] = Prediction(states[n].program(), math.exp(logarithms[n]))
                else:
                    kept.append(row)
            if not kept:
                break
            index = torch.tensor(kept)
            live = [live[row] for row in kept]
            previous = best.indices[index].unsqueeze(1)
            encoded, inside, hidden = encoded[index], inside[index], hidden[:, index]
        return [prediction for prediction in result if prediction is not None]

    @torch.inference_mode()
    def beam(self, question: Question, width: int) -> list[Prediction]:
        """The programs that a beam of this width finds, the most probable first."""
        self.network.eval()
        encoded, inside, hidden = self.network.encode(Words.of([question], self.vocabulary))
        vectors = self.network.action_vectors()
        # (log probability, choices so far, hidden state)
        paths: list[tuple[float, list[int], Tensor]] = [(0.0, [], hidden)]
        found: dict[Call, float] = {}
        for _ in range(MOST_STEPS):
            states = [self._replay(question, choices) for _, choices, _ in paths]
            count = len(paths)
            previous = torch.tensor([[path[1][-1] if path[1] else -1] for path in paths])
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
                state = self._replay(question, path[1])
                if state.done:
                    found[state.program()] = max(found.get(state.program(), -math.inf), path[0])
                else:
                    paths.append(path)
            if not paths:
                break
        ranked = sorted(found.items(), key=lambda entry: -entry[1])
        return [Prediction(program, math.exp(log)) for program, log in ranked]

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
        slots = torch.tensor([[SLOT_NUMBERS[state.slot]] for state in states])
        functions = torch.tensor(
            [
                [function_number(self.actions, state.function.name if state.function else "")]
                for state in states
            ]
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

    def _take(self, state: State, choice: int) -> None:
        size = len(self.actions)
        state.take(choice - size if choice >= size else self.actions.entries[choice])

    def _replay(self, question: Question, choices: Sequence[int]) -> State:
        state = State(question, self.kb)
        for choice in choices:
            self._take(state, choice)
        return state
