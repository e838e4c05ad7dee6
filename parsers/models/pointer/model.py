"""The pointer model: typed actions and copied texts; SPARQL is the translation of its program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from kb import KnowledgeBase
from kopl.answer_forms import PLAIN, Asking
from kopl.errors import ParseError
from kopl.example import Example
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call
from kopl_base.progress import Progress
from parsers.actions import (
    IS_NAME,
    KNOWN,
    Actions,
    Draft,
    Drafting,
    Ended,
    FreeDraft,
    Ids,
    outcome,
    said,
)
from parsers.constrain.rerank import PartialRuns
from parsers.languages import Prediction, words_asked
from parsers.linking import Linker, Mentions
from parsers.models.base import Model, take_over
from parsers.models.pointer.data import (
    SLOT_NUMBERS,
    Asked,
    PointerBatch,
    PointerItem,
    Words,
    function_number,
    prepare,
    renumbered,
)
from parsers.models.pointer.network import (
    OLD_WEIGHTS,
    WEIGHTS,
    ActionVectors,
    Encoded,
    Network,
)
from parsers.models.pointer.pretrained import PretrainedEncoder, load_encoder
from parsers.models.search import Hypothesis, search
from parsers.names import with_others, with_related
from parsers.settings import Settings
from parsers.spelling import Speller
from parsers.steps import known_texts
from parsers.tokens import Question, Vocabulary

# A program of the most calls has fewer steps.
MOST_STEPS = 200


class PointerModel(Model):
    """The default model; see docs/parsers.md."""

    name = "pointer"
    # A program is translated, so that it may write another language.
    shared = ("pointer.embedding", "pointer.hidden")
    network: Network

    def __init__(
        self, settings: Settings, linker: Linker, vocabulary: Vocabulary, actions: Actions,
        weights: int = len(WEIGHTS),
    ) -> None:  # fmt: skip
        super().__init__(settings, linker.kb)
        self.vocabulary, self.actions, self.linker = vocabulary, actions, linker
        self.mentions = Mentions(actions.entries, self.linker)
        self.encoder = encoder_of(settings)
        size = self.encoder.size if self.encoder else 0
        self.network = Network(vocabulary, actions, settings.pointer, size, weights)
        if self.encoder:
            names = self.encoder.names(text for _, text in actions.entries)
            self.network.name_vectors.copy_(names)
        self._decoders: dict[bool, Decoder] = {}
        self._linkers: dict[str, Linker] = {self.kb.fingerprint: linker}

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Raise ModelError where the pretrained encoder cannot be had."""
        encoder_of(settings)

    @classmethod
    def create(
        cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> PointerModel:
        """A new model: the words of the questions, the actions of the knowledge base.

        What several programs name and their questions do not say becomes a known text.
        """
        return cls.create_over(settings, [(kb, examples)])

    @classmethod
    def create_over(
        cls, settings: Settings, parts: Sequence[tuple[KnowledgeBase, Sequence[Example]]]
    ) -> PointerModel:
        """The same over several knowledge bases: what any of them has can be chosen."""
        linkers = [Linker(kb) for kb, _ in parts]
        every = [example for _, examples in parts for example in examples]
        # Words as they are written without slips of the pen, where the examples tell that.
        questions = (Question.of(one.extra.get("clean", one.question)) for one in every)
        entries = (entry for kb, _ in parts for entry in Actions.of(kb).entries)
        called = [word for _, text in dict.fromkeys(entries) for word in Question.of(text).words]
        vocabulary = Vocabulary.of(questions, called, ranked=True)
        asked, actions = words_asked(every), Actions(())
        for linker, (kb, examples) in zip(linkers, parts, strict=True):
            speller = linker.speller(vocabulary.words)
            mended = [replace(one, question=speller.text(one.question)) for one in examples]
            actions = actions.with_those_of(Actions.of(kb, known_texts(mended, linker), asked))
        return cls(settings, linkers[0], vocabulary, actions)

    @classmethod
    def restore(
        cls, settings: Settings, kb: KnowledgeBase, state: Mapping[str, Any], folder: Path
    ) -> PointerModel:
        """The model that `state` describes."""
        actions = Actions(tuple((slot, text) for slot, text in state["actions"]))
        if len(set(actions.entries)) < len(actions):
            raise ValueError("an action stands twice")
        weights = int(state.get("weights", OLD_WEIGHTS))
        model = cls(settings, Linker(kb), Vocabulary(state["words"]), actions, weights)
        if model.encoder:
            model.encoder.check(state.get("pretrained"))  # runs of before have none
        return model

    def moved(self) -> PointerModel:
        """The same weights with the actions of the knowledge base.

        Items that training did not have get no vectors of their own, and the mean bias of those
        that it had.
        """
        return self.over(self.kb)

    def over(self, kb: KnowledgeBase) -> PointerModel:
        """The same weights, copied, with the actions of a knowledge base; as of `moved`."""
        if self._linkers.get(kb.fingerprint) is None:
            self._linkers[kb.fingerprint] = Linker(kb)
        linker = self._linkers[kb.fingerprint]
        known = [entry for entry in self.actions.entries if entry[0] in KNOWN.values()]
        actions = Actions.of(kb, known, self.actions.asked)
        parts = len(self.network.common_weights)
        other = PointerModel(self.settings, linker, self.vocabulary, actions, parts)
        other.network.to(self.device)
        take_over(other, self)
        is_new = [self.actions.number(*entry) is None for entry in other.actions.entries]
        with torch.no_grad():
            weights, biases = other.network.actions.weight, other.network.action_bias
            weights[:-1][is_new] = 0.0
            items = self.network.action_bias[self.network.is_item]
            biases[is_new] = items.mean() if len(items) else 0.0
        return other

    def extended(self, examples: Sequence[Example]) -> PointerModel:
        """The same with the words and known texts of further examples.

        New words begin as unknown ones, so that nothing is predicted otherwise yet.
        """
        known = [entry for entry in self.actions.entries if entry[0] in KNOWN.values()]
        known += known_texts(examples, self.linker)
        questions = (Question.of(example.question) for example in examples)
        words = dict.fromkeys([*self.vocabulary.words, *Vocabulary.of(questions, ()).words])
        actions = Actions.of(self.kb, known, self.actions.asked)
        parts = len(self.network.common_weights)
        other = PointerModel(self.settings, self.linker, Vocabulary(list(words)), actions, parts)
        take_over(other, self)
        before = len(self.vocabulary)
        with torch.no_grad():
            other.network.words.weight[before:] = self.network.words.weight[1]
        return other

    def state(self) -> dict[str, Any]:
        """The words, the actions, the parts of a score, and which encoder is read."""
        pretrained = {"pretrained": self.encoder.mark} if self.encoder else {}
        return {
            **pretrained,
            "weights": len(self.network.common_weights),
            "words": self.vocabulary.words,
            "actions": [[slot, text] for slot, text in self.actions.entries],
        }

    def tables(self) -> dict[str, Sequence[str]]:
        """Rows of words and of actions; the last action begins a program."""
        words = ["<padding>", "<unknown>", *self.vocabulary.words]
        actions = [f"{slot}: {text}" for slot, text in self.actions.entries]
        return {
            "words.weight": words,
            "actions.weight": [*actions, "<begin>"],
            "action_bias": actions,
        }

    def items(
        self, examples: Sequence[Example]
    ) -> tuple[list[PointerItem], list[tuple[Example, str]]]:
        """The examples whose arguments stand in the question or in the schema, and the others."""
        items, left = prepare(examples, self.actions, self.linker, self.mentions, self.read)
        if self.encoder:
            with Progress("reading questions", len(items)) as bar:
                vectors = self.encoder.of([item.asked.question for item in items], bar.advance)
            items = [
                replace(item, asked=replace(item.asked, vectors=own))
                for item, own in zip(items, vectors, strict=True)
            ]
        return items, left

    def prepare_over(
        self, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> tuple[list[PointerItem], list[tuple[Example, str]]]:
        """The same over another knowledge base; what may be chosen is what that one has."""
        view = self.over(kb)
        items, left = view.prepare(examples)
        own = cast("Sequence[PointerItem]", items)
        return renumbered(own, view.actions, self.actions), left

    def collate(self, items: Sequence[PointerItem]) -> PointerBatch:
        """The tensors of some examples."""
        masked = self.settings.pointer.masked
        return PointerBatch.of(items, self.vocabulary, self.actions, masked=masked)

    def compile(self) -> None:
        """Nothing: most of the time goes into recurrent layers, which are compiled already."""

    def written(
        self, questions: Sequence[str], beams: int, constrained: bool, guided: bool
    ) -> list[list[Prediction]]:
        """Programs that always type, or, unconstrained, what the best actions amount to."""
        decoder = self._decoder(constrained)
        asked = self._read([self.read(question) for question in questions])
        if beams == 1 and not guided:
            return [[self._prediction(one) for one in found] for found in decoder.best(asked)]
        return [
            found
            for question in asked
            for found in self._chosen(
                decoder.best([question], beams), [question], beams, constrained, guided
            )
        ]

    def written_together(
        self, questions: Sequence[str], beams: int, constrained: bool, guided: bool
    ) -> list[list[Prediction]]:
        """The same with one search for all questions, and one more for those that need it."""
        if beams == 1 and not guided:
            return self.written(questions, beams, constrained, guided)
        asked = self._read([self.read(question) for question in questions])
        every = self._decoder(constrained).best(asked, beams)
        return self._chosen(every, asked, beams, constrained, guided)

    def _chosen(
        self,
        every: list[list[Written]],
        asked: Sequence[Asked],
        beams: int,
        constrained: bool,
        guided: bool,
    ) -> list[list[Prediction]]:
        if guided:
            every = self._guided(every, asked, beams if constrained else 0)
        return [[self._prediction(one) for one in _together(found)] for found in every]

    @cached_property
    def speller(self) -> Speller:
        """What mends slips of the pen in questions."""
        return self.linker.speller(self.vocabulary.words)

    def read(self, question: str) -> Question:
        """A question as the model reads it, slips of the pen mended."""
        return Question.of(self.speller.text(question))

    def _guided(
        self, every: list[list[Written]], asked: Sequence[Asked], beams: int
    ) -> list[list[Written]]:
        """What was found and, where the best says nothing, what a second search finds.

        And with what else the names in a program may mean: of an alias always, of a part of a
        longer name where the program says nothing. ``beams``: of the second search, 0 for none.
        """
        every = [*every]
        runs = [PartialRuns(self.language.executor) for _ in asked]
        again = [
            at for at, found in enumerate(every)
            if beams and (
                not found or (best := found[0].program) is None or runs[at].says_nothing(best)
            )
        ]  # fmt: skip
        if again:
            questions = [asked[at] for at in again]
            second = self._decoder(True).best(questions, beams, [runs[at] for at in again])
            for at, more in zip(again, second, strict=True):
                every[at] = self._with_related(_merged(every[at], more), asked[at], runs[at])
        return [
            _with_others(found, partial(with_others, several=one.mentioned.several))
            for found, one in zip(every, asked, strict=True)
        ]

    def _with_related(self, found: list[Written], asked: Asked, runs: PartialRuns) -> list[Written]:
        text, names = asked.question.text, self.linker.names
        return _with_others(
            found, lambda one: with_related(one, names, text) if runs.says_nothing(one) else ()
        )

    def _read(self, questions: Sequence[Question]) -> list[Asked]:
        """The questions with all that the network reads of them."""
        read = [Asked(question, self.mentions.of(question)) for question in questions]
        if self.encoder:
            vectors = self.encoder.of(questions)
            read = [replace(one, vectors=own) for one, own in zip(read, vectors, strict=True)]
        return read

    def _decoder(self, constrained: bool) -> Decoder:
        if constrained not in self._decoders:
            self._decoders[constrained] = Decoder(
                self.network, self.vocabulary, self.actions, self.linker, free=not constrained
            )
        return self._decoders[constrained]

    def _prediction(self, written: Written) -> Prediction:
        if written.program is None:
            return Prediction("", written.log_probability, None, written.error)
        asking = written.asking if self.actions.asked else None
        return self.language.of_program(written.program, written.log_probability, asking)


@dataclass(frozen=True)
class Written:
    """A program, or why what was chosen is none, and the logarithm of its probability.

    ``asking``: what is asked of it.
    """

    log_probability: float
    program: Call | None
    error: ParseError | None = None
    asking: Asking = PLAIN


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
        self._draft = FreeDraft if free else Draft
        self._known: dict[object, Ids] = {}
        written = (*FUNCTIONS.values(), IS_NAME)
        self._functions: dict[Function | None, int] = {None: 0}
        self._functions |= {one: function_number(actions, one.name) for one in written}

    @torch.inference_mode()
    def best(
        self, questions: Sequence[Asked], width: int = 1, runs: Sequence[PartialRuns] = ()
    ) -> list[list[Written]]:
        """For each question, which must have words, what a beam finds, the most probable first.

        With ``runs``, one for each question, no program is gone on with whose last call finds
        nothing.
        """
        self.network.eval()
        device = self.network.action_bias.device
        words = Words.of(questions, self.vocabulary, len(self.actions)).to(device)
        encoded, hidden = self.network.encode(words)
        vectors = self.network.action_vectors()
        part, chosen = encoded, list(range(len(questions)))

        def following(
            previous: Tensor, hidden: Tensor, rows: Tensor, drafts: Sequence[Draft]
        ) -> tuple[Tensor, Tensor]:
            nonlocal part, chosen
            if (now := rows.tolist()) != chosen:
                part, chosen = encoded.rows(rows), now
            return self._step(drafts, previous.unsqueeze(1), part, hidden, vectors)

        found = search(
            following,
            hidden,
            begin=-1,
            end=0,
            width=width,
            longest=MOST_STEPS,
            constraints=[
                Drafting(
                    self._draft(asked.question, self.linker),
                    self.actions,
                    self._known,
                    runs[at].finds_nothing if runs else None,
                )
                for at, asked in enumerate(questions)
            ],
            said=said,
        )
        return [[_written(one) for one in of_question] for of_question in found]

    def _step(
        self,
        drafts: Sequence[Draft],
        previous: Tensor,
        encoded: Encoded,
        hidden: Tensor,
        vectors: ActionVectors,
    ) -> tuple[Tensor, Tensor]:
        """Scores of what may come next (B × A+L), and the decoder's new state."""
        given = [
            (SLOT_NUMBERS[draft.slot], self._functions[draft.function], draft.start)
            for draft in drafts
        ]
        slots, functions, starts = torch.tensor(given, device=hidden.device).T.unsqueeze(-1)
        inputs = self.network.step_inputs(previous, vectors, encoded, slots, functions)
        outputs, hidden = self.network.decoder(inputs, hidden)
        by_action, by_token = self.network.scores(outputs, encoded, vectors, slots, starts)
        return torch.cat([by_action, by_token], -1).squeeze(1), hidden


def _written(found: Hypothesis) -> Written:
    ended = outcome(found.state)
    if isinstance(ended, Ended):
        return Written(found.log_probability, ended.program, None, ended.asking)
    return Written(found.log_probability, None, ended)


def _merged(first: Sequence[Written], second: Sequence[Written]) -> list[Written]:
    """What two searches found, each program once, the most probable first."""
    found = {(one.program, one.asking): one for one in (*second, *first)}
    return sorted(found.values(), key=lambda one: -one.log_probability)


def _together(found: Sequence[Written]) -> list[Written]:
    """What was found, a program of which one thing or several may be asked for once.

    It is as probable as both together, and asks what is the likelier.
    """
    result: dict[object, Written] = {}
    for one in found:
        key = (one.program, one.error and str(one.error), one.asking.form)
        if key in result:
            first = result[key]
            both = math.exp(first.log_probability) + math.exp(one.log_probability)
            log_probability = math.log(both) if both else first.log_probability
            result[key] = replace(first, log_probability=log_probability)
        else:
            result[key] = one
    return sorted(result.values(), key=lambda one: -one.log_probability)


def _with_others(
    found: Sequence[Written], others: Callable[[Call], Iterable[Call]]
) -> list[Written]:
    """What was found, and behind each program others that may be meant by it.

    The further ones are less probable the further behind they stand.
    """
    known = {(one.program, one.asking) for one in found}
    result = list(found)
    for one in found:
        if one.program is None:
            continue
        for rank, other in enumerate(others(one.program), 1):
            if (other, one.asking) not in known:
                known.add((other, one.asking))
                log_probability = one.log_probability - math.log(1 + rank)
                result.append(replace(one, program=other, log_probability=log_probability))
    return sorted(result, key=lambda one: -one.log_probability)


def encoder_of(settings: Settings) -> PretrainedEncoder | None:
    """The pretrained encoder that the settings name, None for none."""
    name = settings.pointer.pretrained
    # A run made on a GPU may be asked without one.
    device = "cuda" if settings.device == "auto" else settings.device
    return load_encoder(name, device if torch.cuda.is_available() else "cpu") if name else None
