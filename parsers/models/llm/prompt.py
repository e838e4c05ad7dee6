"""What a language model is told: the fixed part first, the same for every question, then its own.

Servers keep what they have read of a prompt and read only what is new, so that the fixed part
(what KoPL is, its functions, the schema of a small knowledge base) costs nothing from the second
question on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources

from kopl.functions import FUNCTIONS
from kopl.program import Call, post_order
from kopl.text import write_nested_json
from kopl.types import Kind
from parsers.linking import stems_of
from parsers.models.llm.client import Messages
from parsers.models.llm.examples import ExampleIndex, Masker, PromptExample
from parsers.models.llm.settings import LlmSettings
from parsers.models.llm.surroundings import Surroundings
from parsers.spelling import letters
from parsers.tokens import Question

# So many names, of those that an alias may mean so many, and so many kinds are described.
NAMES, MEANT, KINDS = 4, 3, 2
# Names that a misspelt one may stand for are looked for in words of more letters.
SHORT = 3
# So many names a program may have, under a grammar.
NAMEABLE = 64
# Before what is known of the things that a question names.
KNOWN = "What is known:"
_ITEMS = (Kind.RELATION, Kind.KEY, Kind.QUALIFIER_KEY)


def fixed_part(surroundings: Surroundings, settings: LlmSettings) -> str:
    """What stands before every question."""
    text = resources.files("parsers.models.llm").joinpath("prompt.txt").read_text("utf-8")
    lines = [text.rstrip()]
    lines += [
        f"{one.signature}: {one.doc} {one.example}" for one in FUNCTIONS.values()
    ]  # fmt: skip
    if settings.schema and (whole := surroundings.whole(settings.whole_schema)):
        lines += ["", whole]
    return "\n".join(lines)


@dataclass(frozen=True)
class Prompt:
    """A question as a model is asked it, with the names that its answer may be about."""

    messages: Messages
    names: tuple[str, ...]
    nameable: tuple[str, ...]  # with what they may be short for, and kinds

    def with_reply(self, reply: str, message: str) -> Prompt:
        """The conversation gone on with: what was written, and what is wrong with it."""
        more = [{"role": "assistant", "content": reply}, {"role": "user", "content": message}]
        return replace(self, messages=[*self.messages, *more])


class Prompter:
    """Makes prompts for questions over one knowledge base."""

    def __init__(
        self, masker: Masker, index: ExampleIndex, surroundings: Surroundings,
        settings: LlmSettings, seed: int,
    ) -> None:  # fmt: skip
        self._masker, self.index, self._surroundings = masker, index, surroundings
        self._settings = settings
        self._system = fixed_part(surroundings, settings)
        self._same = None if settings.retrieved else index.sample(settings.examples, seed)

    def prompt(
        self, question: Question, corrected: ExampleIndex | None = None, as_json: bool = False
    ) -> Prompt:
        """The prompt for a question as the parser reads it.

        What was ``corrected`` is shown before other examples. ``as_json``: programs are spelt as
        objects, for servers whose grammars are schemas.
        """
        examples = self._examples(question, corrected)
        names = self.names(question)
        messages = [{"role": "system", "content": self._system}]
        # What is known stands before all: right above the question it leads a small model astray.
        known = self._known(question, names, examples) if self._settings.schema else []
        if known:
            messages += _turn("user", "\n".join([KNOWN, *known])) + _turn("assistant", "OK.")
        # As turns of the conversation: a model goes on with a program, and with nothing before it.
        # The most similar one stands last, beside the question.
        for one in reversed(examples):
            program = write_nested_json(one.tree) if as_json else one.program
            messages += _turn("user", one.question) + _turn("assistant", program)
        messages += _turn("user", question.text)
        return Prompt(messages, tuple(names), self._nameable(question, names))

    def _nameable(self, question: Question, names: Sequence[str]) -> tuple[str, ...]:
        """The names that a program may have: those of the question, and what may be meant too."""
        return tuple(dict.fromkeys([*names, *self._masker.candidates(question.text, NAMEABLE)]))

    def _examples(self, question: Question, corrected: ExampleIndex | None) -> list[PromptExample]:
        count = self._settings.examples
        if self._same is not None or not count:
            return (self._same or [])[:count]
        words = self._masker.words(question)
        first = corrected.like(words, count) if corrected is not None else []
        first = [one for one in first if len(set(one.words) & set(words)) * 2 > len(set(one.words))]
        return [*first, *self.index.like(words, count - len(first))]

    def names(self, question: Question) -> list[str]:
        """The names that a question may be about, in its order; a misspelt one's nearest."""
        found: dict[str, None] = {}
        for _, _, things in self._masker.spans(question):
            found |= dict.fromkeys(things[:MEANT])
        if not found:
            for word in question.words[1:]:
                if word[:1].isupper() and len(letters(word)) > SHORT:
                    found |= dict.fromkeys(self._masker.nearest(word))
        return list(found)[: NAMES * MEANT]

    def _known(
        self, question: Question, names: Sequence[str], examples: Sequence[PromptExample]
    ) -> list[str]:
        """A line for each thing and kind that a question says."""
        words = stems_of(question.text)
        used = {text for one in examples for text in items_of(one.tree)}
        around = self._surroundings
        found = [around.thing(name, words, used) for name in names[:NAMES]]
        kinds = around.kinds_in(words)
        return found + [around.things_of(kind, words, used) for kind in kinds[:KINDS]]


def _turn(role: str, content: str) -> Messages:
    return [{"role": role, "content": content}]


def items_of(program: Call) -> list[str]:
    """The relations and keys of a program."""
    return [
        text
        for call in post_order(program)
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True)
        if kind in _ITEMS
    ]
