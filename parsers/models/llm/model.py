"""A language model that is shown examples: its run is an index of them, and nothing is trained.

Questions are asked of a server or of a file (`parsers.models.llm.client`). What is written is read
as a program, mended, run, and sent back with what is wrong with it; several samples vote by what
they answer.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from torch import nn

from kb import KnowledgeBase
from kopl.example import Example, read_examples
from kopl.grammars import Form, grammar
from kopl_base.chat import Completion
from kopl_base.errors import SettingsError
from kopl_base.stream import writing
from kopl_base.training.optimizer import Batch
from parsers.actions import Actions
from parsers.corrections import FILE as CORRECTIONS
from parsers.corrections import TAUGHT, newest, read_corrections
from parsers.languages import Prediction
from parsers.linking import Linker, Mentions
from parsers.models.base import Item, Model
from parsers.models.llm.beside import Beside, decided
from parsers.models.llm.client import FIELDS, Client, client_of
from parsers.models.llm.examples import ExampleIndex, Masker, PromptExample, distinct, shown
from parsers.models.llm.prompt import Prompt, Prompter
from parsers.models.llm.replies import Reader, voted
from parsers.models.llm.settings import LlmSettings
from parsers.models.llm.surroundings import Surroundings
from parsers.settings import Settings
from parsers.spelling import Speller
from parsers.tokens import Question

FILE = "examples.jsonl"
# So many validation questions fit its confidences: each one is asked of the model.
FITTED = 100
# Fewer votes than this share refuse an answer, where no refusals were fitted.
LEAST = 0.3
AGAIN = "{fault} Write the right program, on one line."
# Seeds are below this: what every server takes.
SEEDS = 1 << 31


class Nothing(nn.Module):
    """Stands for a network that is elsewhere; the mark tells runs with other examples apart."""

    def __init__(self, mark: bytes) -> None:
        super().__init__()
        self.register_buffer("mark", torch.tensor(list(mark), dtype=torch.uint8))


class LlmModel(Model):
    """The few-shot parser; see docs/language-models.md."""

    name = "llm"
    own_settings = LlmSettings
    trains = False
    most_fitted = FITTED
    least_probability = LEAST

    def __init__(
        self, settings: Settings, kb: KnowledgeBase, examples: Sequence[PromptExample],
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        super().__init__(settings, kb)
        self.own: LlmSettings = settings.own
        self.examples, self._folder = list(examples), folder
        self.linker = Linker(kb)
        self.mentions = Mentions(Actions.of(kb).entries, self.linker)
        self._around = Surroundings(kb)
        self.masker = Masker(self.linker, self.mentions)
        self.network = Nothing(self._mark())
        self._lock = threading.Lock()
        # What was corrected, by the time and size of the file that it was read of.
        self._corrections: tuple[tuple[int, int], ExampleIndex | None] = ((0, 0), None)

    def _mark(self) -> bytes:
        """What the answers depend on: the examples and the settings."""
        asked = {**vars(self.own), "key_from": "", "cache": "", "budget": 0, "workers": 1}
        lines = [json.dumps(asked, sort_keys=True), *(repr(one) for one in self.examples)]
        return hashlib.sha256("\n".join(lines).encode()).digest()

    # --- making, saving ----------------------------------------------------------------------

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Raise a KoplError for settings that it cannot do with, before any work."""
        if settings.language != "kopl":
            raise SettingsError("model: llm writes KoPL programs; set language=kopl")
        if settings.beside:
            raise SettingsError("model: llm is shown examples of one knowledge base; leave beside")
        own: LlmSettings = settings.own
        if own.own and not Path(own.own).is_file():
            raise SettingsError(f"llm.own: there is no such file of questions: {own.own}")
        if own.beside and not (Path(own.beside) / "parser.json").is_file():
            raise SettingsError(f"llm.beside: there is no run of a trained parser: {own.beside}")

    @classmethod
    def create(cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]) -> LlmModel:
        """A new model, whose index has the examples, one's own ones first."""
        for name in ("local", "beside"):  # they are to be found from any folder
            if place := getattr(settings.own, name):
                found = str(Path(place).expanduser().resolve())
                settings = settings.changed({f"llm.{name}": found})
        empty = cls(settings, kb, ())
        own = list(read_examples(empty.own.own)) if empty.own.own else []
        return cls(settings, kb, list(distinct(empty._shown([*own, *examples]))))

    @classmethod
    def restore(
        cls, settings: Settings, kb: KnowledgeBase, state: Mapping[str, Any], folder: Path
    ) -> LlmModel:
        """The model that `state` and `save` describe; raises ValueError for a damaged index."""
        lines = (folder / FILE).read_text("utf-8").split("\n")
        return cls(
            settings, kb, [PromptExample.from_json(json.loads(one)) for one in lines if one], folder
        )

    def state(self) -> dict[str, Any]:
        """How many examples there are."""
        return {"examples": len(self.examples)}

    def save(self, folder: Path) -> None:
        """Write the index."""
        with writing(folder / FILE) as file:
            for one in self.examples:
                file.write(json.dumps(one.to_json(), ensure_ascii=False) + "\n")

    def moved(self) -> LlmModel:
        """Itself: its examples show how programs are made on another knowledge base, too."""
        return self

    # --- no training -------------------------------------------------------------------------

    def items(
        self, examples: Sequence[Example]
    ) -> tuple[Sequence[Item], list[tuple[Example, str]]]:
        """Nothing is learnt."""
        return [], [(example, "the model is not trained") for example in examples]

    def collate(self, items: Sequence[Any]) -> Batch:
        """Nothing is learnt; raises SettingsError."""
        raise SettingsError("model: llm is not trained")

    @property
    def device(self) -> torch.device:
        """Where its network would be."""
        return torch.device("cpu")

    # --- predicting --------------------------------------------------------------------------

    @cached_property
    def client(self) -> Client:
        """What asks the language model, loaded when it is needed first; raises AskError."""
        return client_of(self.own, self.settings.threads)

    @cached_property
    def _index(self) -> ExampleIndex:
        return ExampleIndex(self.examples)

    @cached_property
    def _prompter(self) -> Prompter:
        return Prompter(self.masker, self._index, self._around, self.own, self.settings.seed)

    @cached_property
    def _beside(self) -> Beside | None:
        own = self.own
        return Beside(own.beside, self.kb, own.sure) if own.beside else None

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.language, self.linker, self._around)

    @cached_property
    def speller(self) -> Speller:
        """What mends slips of the pen in questions."""
        words = {word: None for one in self.examples for word in Question.of(one.question).words}
        return self.linker.speller(word.lower() for word in words)

    def read(self, question: str) -> Question:
        """A question as the model reads it, slips of the pen mended."""
        return Question.of(self.speller.text(question))

    def _shown(self, examples: Iterable[Example]) -> Iterable[PromptExample]:
        return (shown(example, self.masker) for example in examples)

    def written(
        self, questions: Sequence[str], beams: int, constrained: bool, guided: bool
    ) -> list[list[Prediction]]:
        """What `predict` gives for questions that can be read; raises AskError.

        One beam is a single greedy reply. ``constrained``: under a grammar, where the server has
        one. ``guided``: what is wrong or finds nothing is sent back.
        """
        samples = 1 if beams == 1 else self.own.samples
        repairs = self.own.repairs if guided else 0
        client, workers = self.client, self.own.workers
        way = self.grammar if constrained else "none"

        def answer(question: str) -> list[Prediction]:
            return self._answered(question, samples, repairs, way)[:beams]

        if len(questions) == 1 or workers == 1 or self.own.local:
            return [answer(question) for question in questions]
        client.stop.clear()
        with ThreadPoolExecutor(workers) as pool:
            asked = [pool.submit(answer, question) for question in questions]
            try:
                return [one.result() for one in asked]
            except BaseException:
                client.stop.set()
                for one in asked:
                    one.cancel()
                raise

    def _answered(self, question: str, samples: int, repairs: int, way: str) -> list[Prediction]:
        """The predictions for one question, the best first."""
        readings = None
        if self._beside is not None:
            with self._lock:  # what links and runs is not made for several threads
                readings = self._beside.read(question)
                if self._beside.is_sure(readings):
                    return readings.predictions(self.language)
        with self._lock:
            as_json = way == "json-schema"
            prompt = self._prompter.prompt(self.read(question), self._corrected, as_json)
            fields = self._fields(way, prompt.nameable)
        found = []
        for number in range(samples):
            reply = self._ask(prompt, number, fields)
            with self._lock:
                found.append(self._reader.candidate(reply, question, prompt.names))
        if readings is not None:
            return decided(found, readings, self.language, 1 + samples)
        last = found[0]
        for repair in range(1, repairs + 1):
            if any(one.result is not None and not one.fault for one in found):
                break
            prompt = prompt.with_reply(last.reply, AGAIN.format(fault=last.fault))
            # Drawn, as the most probable reply is often the same again.
            reply = self._ask(prompt, repair, fields)
            with self._lock:
                last = self._reader.candidate(reply, question, prompt.names, repair)
            found.append(last)
        return voted(found, self.language, 1 + samples)

    @cached_property
    def grammar(self) -> str:
        """How the server is told a grammar, "none" where it keeps to none; raises AskError."""
        return self.client.grammar if self.own.grammar == "auto" else self.own.grammar

    def _fields(self, way: str, names: Sequence[str]) -> dict[str, Any]:
        """What a body says so that its reply is a program that types and names what there is."""
        if way == "none":
            return {}
        form: Form = "json-schema" if way == "json-schema" else "gbnf"
        text = grammar(self.kb, form, names, self.own.depth)
        return FIELDS[way](json.loads(text) if form == "json-schema" else text)

    def _ask(self, prompt: Prompt, number: int, fields: Mapping[str, Any]) -> Completion:
        """The reply of that number: the first is the most probable one, others are drawn."""
        # One seed for all questions would draw the same rare beginnings for all.
        asked = prompt.messages[-1]["content"].encode("utf-8", "replace")
        body: dict[str, Any] = {
            "messages": prompt.messages, "max_tokens": self.own.longest,
            "seed": (crc32(asked) + number) % SEEDS if number else 0,
            "temperature": self.own.temperature if number else 0.0, **fields,
        }  # fmt: skip
        return self.client.ask(body)

    @property
    def _corrected(self) -> ExampleIndex | None:
        """What was corrected of the run, as it stands in its folder now; None for nothing."""
        path = None if self._folder is None else self._folder / CORRECTIONS
        if path is None or not path.exists():
            return None
        status = path.stat()
        mark = status.st_mtime_ns, status.st_size
        if mark != self._corrections[0]:
            right = [one for one in newest(read_corrections(path)) if one.verdict in TAUGHT]
            found = ExampleIndex(list(self._shown(one.example() for one in right)))
            self._corrections = mark, found if right else None
        return self._corrections[1]

    def remarks(self) -> list[str]:
        """What its answers cost."""
        if "client" not in vars(self):
            return []
        way = f"; grammar: {self.grammar}" if "grammar" in vars(self) else ""
        return [f"{self.client.usage.told()}{way}"]
