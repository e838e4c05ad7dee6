"""What tells questions and programs from others, and which were there before."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

from kopl.functions import AND, OR
from kopl.program import Call

# Of a question and of its program.
Marks: TypeAlias = tuple[bytes, bytes]


def digest(text: str) -> bytes:
    """A short stand-in for a text, so that large sets are told apart without their texts."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def program_mark(program: Call) -> bytes:
    """The digest of a program; equal where programs differ in the order of operands alone."""
    return digest(str(_ordered(program)))


def marks(question: str, program: Call) -> Marks:
    """The digests of a question and of its program."""
    return digest(question), program_mark(program)


def _ordered(call: Call) -> Call:
    inputs = [_ordered(given) for given in call.inputs]
    if call.function in (AND, OR):
        inputs.sort(key=str)
    return Call(call.function, tuple(inputs), call.arguments)


class Unseen:
    """Remembers what was kept; memory grows by some 150 bytes for each question."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def is_new(self, found: Marks) -> bool:
        """Whether neither mark was there before."""
        return self._seen.isdisjoint(found)

    def add(self, found: Marks) -> bool:
        """Whether neither mark was there before; both are then."""
        if not self.is_new(found):
            return False
        self._seen.update(found)
        return True
