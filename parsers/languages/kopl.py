"""Programs as what models write: one text, or functions first and then their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kopl.errors import ParseError, ProgramError
from kopl.example import Example
from kopl.functions import FUNCTIONS
from kopl.program import Call, post_order
from kopl.text import read_serialised, write_nested, write_serialised
from kopl_base.errors import counted
from parsers.languages.base import Language
from parsers.prediction import Prediction

# The marks of the paper's text, ``Find <arg> X <func> Relate <arg> r <arg> forward``.
FUNCTION_MARK, ARGUMENT_MARK = "<func>", "<arg>"
MARKS = (FUNCTION_MARK, ARGUMENT_MARK)

MOST_ARGUMENTS = max(len(function.arguments) for function in FUNCTIONS.values())


class KoplLanguage(Language):
    """Programs in the paper's serialised text; shown to people in the nested one."""

    name = "kopl"

    def gold(self, example: Example) -> str:
        """The serialised text of an example's program."""
        return write_serialised(example.program)

    def read(self, text: str, log_probability: float = 0.0) -> Prediction:
        """The program that a serialised text says, if it says one that types."""
        try:
            return self.of_program(read_serialised(text), log_probability)
        except ProgramError as error:
            return Prediction(text, log_probability, None, error)

    def of_program(self, program: Call, log_probability: float = 0.0) -> Prediction:
        """The prediction of a program; one that does not type holds the reason when it is run."""
        return Prediction(write_nested(program), log_probability, program)


@dataclass(frozen=True)
class Outline:
    """A program as the paper's RNN writes it: functions in post-order, arguments of each."""

    functions: tuple[str, ...]
    arguments: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, program: Call) -> Outline:
        """The outline of a program; `program` reads it back."""
        calls = list(post_order(program))
        return cls(
            tuple(call.function.name for call in calls), tuple(call.arguments for call in calls)
        )

    def program(self) -> Call:
        """The program; raises ParseError where the functions do not fit together."""
        return assembled(self.functions, self.arguments)


def assembled(functions: Sequence[str], arguments: Sequence[Sequence[str]]) -> Call:
    """The program of functions in post-order; raises ParseError where they do not fit together."""
    ready: list[Call] = []
    for number, (name, texts) in enumerate(zip(functions, arguments, strict=True)):
        function = FUNCTIONS[name]
        if len(ready) < function.arity:
            wanted = counted(function.arity, "input")
            raise ParseError(f"{name} takes {wanted}, found {len(ready)}", number)
        cut = len(ready) - function.arity
        ready[cut:] = [Call(function, tuple(ready[cut:]), tuple(texts))]
    if len(ready) != 1:
        raise ParseError(f"{len(ready)} calls are left over; a program has one last call")
    return ready[0]
