"""Questions that are to be paraphrased, each under the id that its paraphrases go by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from rapidfuzz.distance import Levenshtein

from generation.paraphrase.mentions import Mention, mentions, missing, spoken, wording
from kopl.example import Example
from kopl_base.errors import KoplError


@dataclass(frozen=True)
class Original:
    """A question that is paraphrased; ``id`` is the example's own, or made from its content."""

    id: str
    example: Example

    @property
    def canonical(self) -> str:
        """The canonical question; the question itself where the example has no other."""
        return self.example.question if self.example.canonical is None else self.example.canonical

    @property
    def standing(self) -> tuple[str, ...]:
        """What must stand in a paraphrase, as people say it."""
        return spoken(self.example.program, self.canonical)

    def missing(self, text: str) -> list[str]:
        """The names and values of the program that a text lacks, as the program writes them."""
        return missing(self._mentions, text)

    def distance(self, text: str) -> float:
        """How far a text is from the wording it came from, from 0 (the same) to 1.

        The Levenshtein distance in characters over the length of the longer text, to the canonical
        question or to the current one, whichever is nearer. Case, kinds of quotes and blanks do not
        count, and each name or value that must stand is one character: a long name would make two
        wordings alike that have nothing else in common.
        """
        changed = wording(self._mentions, text)
        return min(Levenshtein.normalized_distance(changed, own) for own in self._wordings)

    @cached_property
    def _mentions(self) -> tuple[Mention, ...]:
        return mentions(self.example.program)

    @cached_property
    def _wordings(self) -> tuple[str, ...]:
        return tuple(wording(self._mentions, t) for t in (self.canonical, self.example.question))


def originals(examples: Iterable[Example]) -> Iterator[Original]:
    """The questions of a set, one by one.

    One that comes again with the same id, wording and program is left out. Raises KoplError when
    one id stands for different questions.
    """
    seen: dict[str, bytes] = {}
    for example in examples:
        content = "\n".join((example.question, example.canonical or "", str(example.program)))
        digest = hashlib.blake2b(content.encode(), digest_size=8)
        id = example.id or f"q-{digest.hexdigest()}"
        if id not in seen:
            seen[id] = digest.digest()
            yield Original(id, example)
        elif seen[id] != digest.digest():
            raise KoplError(
                f"two questions have the id {id!r}; paraphrases are told apart by ids: give each"
                " question its own, or none"
            )
