"""Derivations: which rules were used with which words, read off as a program and as a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from generation.english import tidy
from generation.grammar import ONE, SINGULAR, WHAT, Rule, Slot, Text
from generation.lexicon import NameWords, NoWords, Words
from kopl.program import Call


@dataclass(slots=True)
class Derivation:
    """A rule with what its variables and non-terminals became.

    ``target`` is the node that the rule was drawn for, ``person`` tells whether it is one.
    ``intended`` is the answer that a ROOT rule was drawn to have, where that is known.
    """

    rule: Rule
    program: Call
    words: dict[str, Words]
    parts: dict[str, Derivation]
    target: int
    person: bool = False
    intended: str | None = None
    # The programs that the question speaks of in the singular; filled in by `question`.
    singular: list[Call] = field(default_factory=list)

    def question(self, random: Random | None) -> str:
        """A wording of the whole, drawn among those that there are; raises NoWords for none.

        Without ``random`` it is the canonical one: the first wording of each rule that there is.
        """
        self.singular = []
        text = tidy(_say(self, ONE, random, self.singular))
        return text if any(text.startswith(name) for name in self.names()) else _capital(text)

    def names(self) -> Iterator[str]:
        """The names that the program is built from."""
        for words in self.words.values():
            if isinstance(words, NameWords):
                yield words.text
        for part in self.parts.values():
            yield from part.names()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _say(node: Derivation, form: str, random: Random | None, singular: list[Call]) -> str:
    wordings = list(node.rule.texts.get(form, ()))
    while wordings:
        text = wordings.pop(random.randrange(len(wordings)) if random else 0)
        before = len(singular)
        try:
            said = _realise(node, text, random, singular)
        except NoWords:
            del singular[before:]
            continue
        if form in SINGULAR:
            singular.append(node.program)
        return said
    raise NoWords


def _realise(node: Derivation, text: Text, random: Random | None, singular: list[Call]) -> str:
    said = []
    for part in text:
        if isinstance(part, str):
            said.append(part)
        else:
            said.append(_fill(node, part, random, singular))
    return "".join(said)


def _fill(node: Derivation, slot: Slot, random: Random | None, singular: list[Call]) -> str:
    if slot.name == WHAT:
        return "who" if node.person else "what"
    part = node.parts.get(slot.name)
    if part is not None:
        return _say(part, slot.form or ONE, random, singular)
    inside = [_realise(node, text, random, singular) for text in slot.arguments]
    said: str = getattr(node.words[slot.name], slot.form or "plain")(*inside)
    return said
