"""A closed vocabulary of whole texts, by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

END = ""  # the entry with the number 0: it ends a sequence, or stands for nothing


class Inventory:
    """Texts by number, exactly as they are; number 0 is the end."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [END, *texts]
        self._numbers = {text: number for number, text in enumerate(self.texts)}

    @classmethod
    def of(cls, texts: Iterable[str]) -> Inventory:
        """The different texts, in alphabetical order."""
        return cls(sorted(set(texts) - {END}))

    def __len__(self) -> int:
        return len(self.texts)

    def number(self, text: str) -> int | None:
        """The number of a text, or None; the empty text has none, as 0 is the end."""
        return self._numbers.get(text) if text else None
