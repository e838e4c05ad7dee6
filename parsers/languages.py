"""Output languages of the parsers: what is written for a question, read back and run.

A language knows nothing of models: each model writes either of them.
"""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from kb import KnowledgeBase
from kopl.answer_forms import ASKED, PLAIN, AnswerForm, Asking, answer_of, asked_of
from kopl.errors import ParseError, ProgramError
from kopl.example import Example
from kopl.executor import Denoted, Executor
from kopl.functions import FUNCTIONS
from kopl.program import Call, post_order
from kopl.sparql.ast import write
from kopl.sparql.errors import NotInKoplError, QueryReadError, SparqlError
from kopl.sparql.from_kopl import Style, translate
from kopl.sparql.reader import read
from kopl.sparql.to_kopl import from_sparql
from kopl.text import read_asked, read_serialised, write_asked, write_serialised
from kopl_base.errors import KoplError, counted
from parsers.constrain import Constraint, TokenTable, kopl_constraint, sparql_constraint
from parsers.registry import language_class
from parsers.settings import Settings

if TYPE_CHECKING:
    from kopl.sparql.evaluate import SparqlExecutor


# --- what is written ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """A text in the output language with the probability that the model gives it.

    ``program`` is what the text says, or None where it cannot be read (``error`` tells why) or is a
    query that no program says. ``asking``: what the question asks of the denotation, None where the
    model does not say it.
    """

    text: str
    log_probability: float
    program: Call | None = None
    error: KoplError | None = field(default=None, compare=False)
    asking: Asking | None = None

    @property
    def probability(self) -> float:
        """The probability, from 0 to 1."""
        return math.exp(min(0.0, self.log_probability))

    @property
    def form(self) -> AnswerForm | None:
        """How the denotation is read as yes or no, None where it is not."""
        return self.asking.form if self.asking else None

    def answers(self, denotation: Sequence[str]) -> list[str]:
        """What is said of a denotation: its strings, or ["yes"] or ["no"]."""
        return answer_of(denotation, self.form, self.program)


def nothing(reason: str) -> Prediction:
    """What a question gets that is not read: nothing, with a probability of nothing."""
    return Prediction("", -1e4, None, ParseError(reason))


class NotWritableError(KoplError):
    """An example whose program cannot be said in the output language."""

    kind = "language"


class OutputLanguage(ABC):
    """An output language over one knowledge base."""

    name: ClassVar[str]
    # What a tokenizer of texts shall keep whole, beside the words.
    marks: ClassVar[tuple[str, ...]] = ()
    # Whether its texts say what is asked of the denotation; those that older runs learnt do not.
    says_asking = False

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.executor = Executor(kb)

    @classmethod
    def of(cls, settings: Settings, kb: KnowledgeBase) -> OutputLanguage:
        """The language as the settings want it, over a knowledge base."""
        return cls(kb)

    def constraint(self, table: TokenTable) -> Constraint | None:
        """Its texts as the tokens of a table spell them; None leaves decoding unconstrained.

        Raises KoplError where they cannot.
        """
        return None

    @abstractmethod
    def gold(self, example: Example) -> str:
        """The text that says an example's program; `read` reads it back.

        Raises NotWritableError with the reason where there is none.
        """

    @abstractmethod
    def read(self, text: str, log_probability: float = 0.0) -> Prediction:
        """What a text says, however wrong it is: a prediction holds the reason."""

    @abstractmethod
    def of_program(
        self, program: Call, log_probability: float = 0.0, asking: Asking | None = None
    ) -> Prediction:
        """The prediction of a model that writes programs call by call.

        ``asking``: what the model says is asked of it, if it says that.
        """

    def run(self, prediction: Prediction, *, trace: bool = False) -> Denoted:
        """What a prediction denotes; raises a KoplError that says why it cannot be run."""
        if prediction.error is not None:
            raise prediction.error
        assert prediction.program is not None
        result = self.executor.run(prediction.program, trace=trace)
        return Denoted(result.denotation, result.ms, result.trace)


# --- programs ----------------------------------------------------------------------------------

# The marks of the paper's text, ``Find <arg> X <func> Relate <arg> r <arg> forward``.
FUNCTION_MARK, ARGUMENT_MARK = "<func>", "<arg>"
MARKS = (FUNCTION_MARK, ARGUMENT_MARK)

MOST_ARGUMENTS = max(len(function.arguments) for function in FUNCTIONS.values())


class KoplLanguage(OutputLanguage):
    """Programs in the paper's serialised text; shown to people in the nested one.

    Behind the program stands what is asked of it (`kopl.text.write_asked`).
    """

    name = "kopl"
    marks = MARKS
    says_asking = True

    def constraint(self, table: TokenTable) -> Constraint:
        """The well-typed programs over the knowledge base."""
        return kopl_constraint(self.kb, table, asked=self.says_asking)

    def gold(self, example: Example) -> str:
        """The serialised text of an example's program and of what is asked of it."""
        if not self.says_asking:
            return write_serialised(example.program)
        fits(example)
        return write_asked(example.program, example.asking)

    def read(self, text: str, log_probability: float = 0.0) -> Prediction:
        """The program that a serialised text says, if it says one that types."""
        try:
            if not self.says_asking:
                return self.of_program(read_serialised(text), log_probability)
            program, asking = read_asked(text)
            return self.of_program(program, log_probability, asking)
        except ProgramError as error:
            return Prediction(text, log_probability, None, error)

    def of_program(
        self, program: Call, log_probability: float = 0.0, asking: Asking | None = None
    ) -> Prediction:
        """The prediction of a program; one that does not type holds the reason when it is run."""
        return Prediction(str(program), log_probability, program, None, asking)


def words_asked(examples: Iterable[Example]) -> tuple[str, ...]:
    """Of `ASKED` what examples ask; a model that learns of none does not say what is asked."""
    found = {word for example in examples for word in example.asking.words[:1]}
    return tuple(word for word in ASKED if word in found)


def fits(example: Example) -> None:
    """Raise NotWritableError where a language of programs cannot say what an example asks."""
    try:
        asked_of(example.program, example.asking.words)
    except ValueError as error:
        raise NotWritableError(str(error)) from None


@dataclass(frozen=True)
class Outline:
    """A program as the paper's RNN writes it: functions in post-order, arguments of each."""

    functions: tuple[str, ...]
    arguments: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, program: Call, asking: Asking = PLAIN) -> Outline:
        """The outline of a program, and of what is asked of it; `read` reads it back."""
        calls = [(call.function.name, call.arguments) for call in post_order(program)]
        if asking.words:
            calls.append((asking.words[0], asking.words[1:]))
        return cls(tuple(name for name, _ in calls), tuple(texts for _, texts in calls))

    def read(self) -> tuple[Call, Asking]:
        """The program and what is asked of it; raises ParseError where that fits nowhere."""
        functions, arguments = self.functions, self.arguments
        words: tuple[str, ...] = ()
        if functions and functions[-1] in ASKED:
            words = (functions[-1], *arguments[-1])
            functions, arguments = functions[:-1], arguments[:-1]
        program = assembled(functions, arguments)
        try:
            return program, asked_of(program, words)
        except ValueError as error:
            raise ParseError(str(error), len(functions)) from None


def assembled(functions: Sequence[str], arguments: Sequence[Sequence[str]]) -> Call:
    """The program of functions in post-order; raises ParseError where they do not fit together."""
    ready: list[Call] = []
    for number, (name, texts) in enumerate(zip(functions, arguments, strict=True)):
        if name not in FUNCTIONS:
            raise ParseError(f"{name!r} stands behind no program", number)
        function = FUNCTIONS[name]
        if len(ready) < function.arity:
            wanted = counted(function.arity, "input")
            raise ParseError(f"{name} takes {wanted}, found {len(ready)}", number)
        cut = len(ready) - function.arity
        ready[cut:] = [Call(function, tuple(ready[cut:]), tuple(texts))]
    if len(ready) != 1:
        raise ParseError(f"{len(ready)} calls are left over; a program has one last call")
    return ready[0]


# --- queries -----------------------------------------------------------------------------------

# Split at blanks, quotes and ^^ as the paper does; a blank stays with what follows it, so that the
# tokens joined are the text, whatever it is.
_TOKEN = re.compile(r' ?(?:"|\^\^|(?:(?!\^\^)[^ "])+)| ')

# Seconds that a query may take which only an engine can run.
LONGEST = 30.0


def tokens_of(query: str) -> list[str]:
    """The tokens of a query's text; joined they are the text again."""
    return _TOKEN.findall(query)


class SparqlLanguage(OutputLanguage):
    """SPARQL in the style of KQA Pro's queries, or in the exact one.

    A query is run as the program that says the same (`kopl.sparql.to_kopl`); where no program
    does, Oxigraph runs it.
    """

    name = "sparql"

    def __init__(self, kb: KnowledgeBase, style: Style = "data") -> None:
        super().__init__(kb)
        self.style = style

    @classmethod
    def of(cls, settings: Settings, kb: KnowledgeBase) -> SparqlLanguage:
        """Queries as `query_style` says."""
        return cls(kb, style="exact" if settings.query_style == "exact" else "data")

    def constraint(self, table: TokenTable) -> Constraint:
        """The queries over the knowledge base."""
        return sparql_constraint(self.kb, table)

    def gold(self, example: Example) -> str:
        """The example's own query, or the translation of its program."""
        try:
            if example.sparql is not None:
                return write(read(example.sparql))
            return self._translated(example.program)
        except (SparqlError, ProgramError) as error:
            raise NotWritableError(f"no query says its program: {error}") from None

    def _translated(self, program: Call) -> str:
        return write(translate(program, self.style, kb=self.kb)[0])

    def read(self, text: str, log_probability: float = 0.0) -> Prediction:
        """The query that a text says, with its program where one says the same."""
        try:
            query = read(text)
        except QueryReadError as error:
            return Prediction(text, log_probability, None, error)
        try:
            return Prediction(text, log_probability, from_sparql(query, kb=self.kb))
        except NotInKoplError:
            return Prediction(text, log_probability)
        except (SparqlError, ProgramError) as error:
            return Prediction(text, log_probability, None, error)

    def of_program(
        self, program: Call, log_probability: float = 0.0, asking: Asking | None = None
    ) -> Prediction:
        """The translation of a program, which is kept: it says the same without the detour."""
        try:
            text = self._translated(program)
        except (SparqlError, ProgramError) as error:
            return Prediction("", log_probability, None, error)
        return Prediction(text, log_probability, program, None, asking)

    def run(self, prediction: Prediction, *, trace: bool = False) -> Denoted:
        """What a query denotes, by its program or by the engine."""
        if prediction.program is not None or prediction.error is not None:
            return super().run(prediction, trace=trace)
        begin = time.perf_counter()
        denotation = self._engine.denotation(prediction.text)
        return Denoted(denotation, (time.perf_counter() - begin) * 1000)

    @cached_property
    def _engine(self) -> SparqlExecutor:
        from kopl.sparql.engines.oxigraph import Oxigraph
        from kopl.sparql.evaluate import SparqlExecutor

        return SparqlExecutor(Oxigraph.of(self.kb), kb=self.kb, timeout=LONGEST)


def language_of(settings: Settings, kb: KnowledgeBase) -> OutputLanguage:
    """The output language that the settings name, over a knowledge base."""
    found: OutputLanguage = language_class(settings.language).of(settings, kb)
    return found
