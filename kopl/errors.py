"""What can go wrong with a program: reading, typing, execution, limits."""

from __future__ import annotations

from kopl_base.errors import KoplError


class ProgramError(KoplError):
    """Base of the errors of a program; ``call`` is the number of the call in post-order, or None.

    ``kind`` is "parse", "type", "execution" or "limit".
    """

    def __init__(self, message: str, call: int | None = None) -> None:
        self.message, self.call = message, call
        super().__init__(message if call is None else f"call {call}: {message}")


class ParseError(ProgramError):
    """A text that is no program in any spelling."""

    kind = "parse"


class TypingError(ProgramError):
    """A program whose calls do not fit together, or a textual argument of the wrong form."""

    kind = "type"


class ExecutionError(ProgramError):
    """A program that runs into a case that strict mode calls an error."""

    kind = "execution"


class LimitError(ProgramError):
    """A program that is larger, deeper or takes longer than is allowed."""

    kind = "limit"


__all__ = ["ExecutionError", "KoplError", "LimitError", "ParseError", "ProgramError", "TypingError"]
