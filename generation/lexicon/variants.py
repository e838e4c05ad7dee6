"""The wordings that a name has: the main one and others that mean the same."""

from __future__ import annotations

import inspect

from generation.lexicon.constant_words import ComparisonWords, OperatorWords, ValueWords
from generation.lexicon.relation_words import RelationWords
from generation.lexicon.words import (
    ConceptWords,
    KeyWords,
    NameWords,
    NoWords,
    QualifierWords,
    Words,
)
from kopl.types import Kind

# The class, and so the forms, of each kind of textual argument.
WORDS: dict[Kind, type[Words]] = {
    Kind.NAME: NameWords,
    Kind.CONCEPT: ConceptWords,
    Kind.KEY: KeyWords,
    Kind.QUALIFIER_KEY: QualifierWords,
    Kind.RELATION: RelationWords,
    Kind.STRING: ValueWords,
    Kind.QUANTITY: ValueWords,
    Kind.TIME: ValueWords,
    Kind.ANY_VALUE: ValueWords,
    Kind.OPERATOR: OperatorWords,
    Kind.EXTREME: ComparisonWords,
    Kind.COMPARATIVE: ComparisonWords,
    Kind.DIRECTION: Words,
}


def forms_of(kind: type[Words]) -> dict[str, int]:
    """The forms of a class of words, with the number of texts that each takes.

    A form is a public method; one that Python keeps the name of for itself ends in "_".
    """
    found = _FORMS.get(kind.__name__)
    if found is None:
        found = _FORMS[kind.__name__] = {
            name.removesuffix("_"): len(inspect.signature(method).parameters) - 1
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if name[0] != "_"
        }
    return found


_FORMS: dict[str, dict[str, int]] = {}  # by the name of the class


def say(words: Words, form: str, *texts: str) -> str:
    """Words in a form, "" for the plain one; raises NoWords where they do not have it."""
    return str(getattr(words, _METHODS.get(form, form))(*texts))


_METHODS = {"": "plain", "is": "is_"}


class Variants:
    """The words of one name: the main ones first, then others that mean the same.

    ``subject`` is what they speak of: words of one subject in one wording, as a key and its
    comparison, are drawn together and have equally many variants. ``beside`` are those of a key
    beside a comparison, where it has others there.
    """

    __slots__ = ("_having", "beside", "subject", "words")

    def __init__(
        self, subject: tuple[str, str], words: tuple[Words, ...], beside: Variants | None = None
    ) -> None:
        self.subject, self.words, self.beside = subject, words, beside
        self._having: dict[tuple[str, ...], tuple[int, ...]] = {}

    def having(self, forms: tuple[str, ...]) -> tuple[int, ...]:
        """The places of those that have all of these forms."""
        found = self._having.get(forms)
        if found is None:
            places = range(len(self.words))
            found = tuple(at for at in places if all(_has(self.words[at], f) for f in forms))
            self._having[forms] = found
        return found


def _has(words: Words, form: str) -> bool:
    """Whether words have a form for plain names."""
    try:
        say(words, form, *("X", "Y")[: forms_of(type(words))[form]])
    except NoWords:
        return False
    return True
