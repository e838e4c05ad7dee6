"""Questions that are to be paraphrased, each under the id that its paraphrases go by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

from rapidfuzz.distance import Levenshtein

from generation.lexicon.annotations import (
    CONCEPTS,
    KEYS,
    OF_ALL,
    QUALIFIERS,
    RELATIONS,
    Annotations,
    bundled_annotations,
)
from generation.paraphrase.answer_forms import answer_form, form_fault
from generation.paraphrase.meaning import Finding, Meaning
from generation.paraphrase.mentions import Mention, marked, mentions, missing, spoken, wording
from generation.paraphrase.surface import length_fault, surface_fault
from kb import KnowledgeBase
from kopl.example import Example
from kopl.types import Kind
from kopl_base.errors import KoplError

_SECTIONS = {
    Kind.RELATION: RELATIONS, Kind.KEY: KEYS, Kind.QUALIFIER_KEY: QUALIFIERS,
    Kind.CONCEPT: CONCEPTS,
}  # fmt: skip


# Fields of an entry that set something and are no wordings.
_SET = frozenset({"plural", *(field for fields in OF_ALL.values() for field in fields)})


@dataclass(frozen=True)
class Knowledge:
    """What is known of names besides the questions: wordings of a lexicon, aliases of entities.

    ``annotations`` are those of `generation.lexicon`, by default the bundled ones, whose relations
    and keys many knowledge bases have; ``kb`` has aliases.
    """

    annotations: Annotations | None = None
    kb: KnowledgeBase | None = None

    def wordings(self, kind: Kind, name: str) -> str:
        """All that a lexicon says of a relation, key, qualifier key or concept, as one text."""
        annotations = self.annotations or bundled_annotations()
        given = annotations.of(_SECTIONS[kind]).get(name)
        if given is None:
            return ""
        said = (
            {k: v for k, v in one.items() if k not in _SET} for one in (given.fields, *given.also)
        )
        return " ".join(text for one in said for text in _texts(one))

    def aliases(self, name: str) -> tuple[str, ...]:
        """The aliases of what has a name."""
        if self.kb is None:
            return ()
        found = (alias for node in self.kb.named(name) for alias in self.kb.aliases_of(int(node)))
        return tuple(dict.fromkeys(found))


def _texts(value: Any) -> Iterator[str]:
    """The texts in the fields of an entry."""
    if isinstance(value, str):
        yield value.replace("{}", " ")
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _texts(one)
    elif is_dataclass(value):
        for one in fields(value):
            yield from _texts(getattr(value, one.name))


@dataclass(frozen=True)
class Original:
    """A question that is paraphrased; ``id`` is the example's own, or made from its content."""

    id: str
    example: Example
    knowledge: Knowledge = field(default=Knowledge(), compare=False, repr=False)

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

    def too_long(self, text: str) -> str:
        """Why a text's length alone rejects it, or ""; takes no time however long it is."""
        return length_fault(text, self._known)

    def surface(self, text: str) -> str:
        """Why a text is rejected whatever it asks: markup, another language …; or ""."""
        return surface_fault(text, self._known)

    def meant(self, text: str) -> tuple[Finding | None, Finding | None]:
        """What a text certainly says otherwise than the question, and what it may say otherwise."""
        example = self.example
        masked = marked(self._mentions, text)
        chooses = example.program.function.name == "SelectBetween"
        selects = example.program.function.name in ("SelectBetween", "SelectAmong")
        compared = example.program.arguments[0] if selects else ""
        answers = example.answers or ((example.answer,) if example.answer else ())
        expected = answer_form(
            example.program, answers[0] if answers else None, example.answer_form
        )
        if form := form_fault(masked, expected, chooses=chooses, compared=compared):
            return form, None
        certain: Finding | None = None
        doubtful: Finding | None = None
        for finding, sure in self._meaning.findings(text, masked):
            if sure:
                certain = certain or finding
            else:
                doubtful = doubtful or finding
        return certain, doubtful

    @cached_property
    def _known(self) -> str:
        """What the question says, in all its forms."""
        texts = {self.canonical: None, self.example.question: None}
        return "\n".join([*texts, *self.standing, *(m.text for m in self._mentions)])

    @cached_property
    def _meaning(self) -> Meaning:
        texts = (self.canonical, self.example.question)
        return Meaning(self.example.program, self._mentions, texts, self.knowledge.wordings)

    @cached_property
    def _mentions(self) -> tuple[Mention, ...]:
        return mentions(self.example.program, self.knowledge.aliases)

    @cached_property
    def _wordings(self) -> tuple[str, ...]:
        return tuple(wording(self._mentions, t) for t in (self.canonical, self.example.question))


def originals(
    examples: Iterable[Example], knowledge: Knowledge | None = None
) -> Iterator[Original]:
    """The questions of a set, one by one, with what is known of their names.

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
            yield Original(id, example, knowledge or Knowledge())
        elif seen[id] != digest.digest():
            raise KoplError(
                f"two questions have the id {id!r}; paraphrases are told apart by ids: give each"
                " question its own, or none"
            )
