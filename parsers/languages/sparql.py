"""Queries as what models write: tokens that joined give the text again, read and run."""

from __future__ import annotations

import re
import time
from functools import cached_property
from typing import TYPE_CHECKING

from kb import KnowledgeBase
from kopl.errors import ProgramError
from kopl.example import Example
from kopl.executor import Denoted
from kopl.program import Call
from kopl.sparql.ast import write
from kopl.sparql.errors import NotInKoplError, QueryReadError, SparqlError
from kopl.sparql.from_kopl import Style, translate
from kopl.sparql.reader import read
from kopl.sparql.to_kopl import from_sparql
from parsers.languages.base import Language, NotWritableError
from parsers.prediction import Prediction

if TYPE_CHECKING:
    from kopl.sparql.evaluate import SparqlExecutor

# Split at blanks, quotes and ^^ as the paper does; a blank stays with what follows it, so that the
# tokens joined are the text, whatever it is.
_TOKEN = re.compile(r' ?(?:"|\^\^|(?:(?!\^\^)[^ "])+)| ')

# Seconds that a query may take which only an engine can run.
LONGEST = 30.0


def tokens_of(query: str) -> list[str]:
    """The tokens of a query's text; joined they are the text again."""
    return _TOKEN.findall(query)


class SparqlLanguage(Language):
    """SPARQL in the style of KQA Pro's queries, or in the exact one.

    A query is run as the program that says the same (`kopl.sparql.to_kopl`); where no program
    does, Oxigraph runs it.
    """

    name = "sparql"

    def __init__(self, kb: KnowledgeBase, style: Style = "data") -> None:
        super().__init__(kb)
        self.style = style

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

    def of_program(self, program: Call, log_probability: float = 0.0) -> Prediction:
        """The translation of a program, which is kept: it says the same without the detour."""
        try:
            text = self._translated(program)
        except (SparqlError, ProgramError) as error:
            return Prediction("", log_probability, None, error)
        return Prediction(text, log_probability, program)

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
