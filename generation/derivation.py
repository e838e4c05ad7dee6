"""Derivations: which rules were used with which words, read off as a program and as a question."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import TypeAlias

from generation.english import capitalised, clauses, tidy
from generation.grammar import CANONICAL, ITS, ONE, SINGULAR, SMALL, WHAT, Rule, Slot, Text, slots
from generation.lexicon import Lexicon, NoWords, Variants, Words, say
from kopl.program import Call

# The forms that are relative clauses: "that ..." is "who ..." of people.
RELATIVE = frozenset(("that", "those"))
# The words for each variable of a wording; those behind the first may say it in its place.
Chosen: TypeAlias = dict[str, tuple[Words, ...]]


@dataclass(slots=True)
class Derivation:
    """A rule with what its variables and non-terminals became.

    ``target`` is the node that the rule was drawn for, ``person`` tells whether it is one.
    ``intended`` is the answer that a ROOT rule was drawn to have, where that is known. ``lexicon``
    says the words of the whole; without one they are said as their texts alone tell. ``wordings``:
    of a name so many ways to say it are drawn among, the first ones that fit; None for all.
    """

    rule: Rule
    program: Call
    words: dict[str, Words]
    parts: dict[str, Derivation]
    target: int
    person: bool = False
    intended: str | None = None
    lexicon: Lexicon | None = None
    wordings: int | None = None
    # The programs that the question speaks of in the singular; filled in by `question`.
    singular: list[Call] = field(default_factory=list)

    def question(self, random: Random | None) -> str:
        """A wording of the whole, drawn among those that there are; raises NoWords for none.

        Without ``random`` it is the canonical one: of each rule the wording for "canonical", else
        the first that there is.
        """
        self.singular = []
        speaker = _Speaker(self.lexicon, random, self.singular, self.wordings)
        said = tidy(speaker.say(self, ONE))
        return said[1:].lower() if said.startswith(SMALL) else capitalised(said)


@dataclass(slots=True)
class _Speaker:
    """Says derivations; ``singular`` gathers the programs that are spoken of in the singular."""

    lexicon: Lexicon | None
    random: Random | None
    singular: list[Call]
    most: int | None = None

    def say(self, node: Derivation, form: str) -> str:
        """A derivation in a form; raises NoWords where its rule has no such wording."""
        texts = node.rule.texts
        wordings = list(texts.get(form, ()))
        if self.random is None:
            canonical = CANONICAL if form == ONE else f"{CANONICAL} {form}"
            wordings = [*texts.get(canonical, ()), *wordings]
        while wordings:
            text = wordings.pop(self.random.randrange(len(wordings)) if self.random else 0)
            before = len(self.singular)
            try:
                said = self._realise(node, text)
            except NoWords:
                del self.singular[before:]
                continue
            if form in SINGULAR:
                self.singular.append(node.program)
            return self._of_person(said, form) if node.person else said
        raise NoWords

    def _realise(self, node: Derivation, text: Text, chosen: Chosen | None = None) -> str:
        if chosen is None:
            chosen = self._chosen(node, text)
        return "".join(
            part if isinstance(part, str) else self._fill(node, part, chosen) for part in text
        )

    def _chosen(self, node: Derivation, text: Text) -> Chosen:
        """The words for the variables of a wording; raises NoWords where they lack its forms.

        Each has one wording in the whole of it; words of one subject, as a key and its comparison,
        go together.
        """
        chosen: Chosen = {}
        drawn: dict[tuple[str, str], list[tuple[str, Variants, tuple[str, ...]]]] = {}
        for name, forms in _variables(text):
            words, lexicon = node.words[name], self.lexicon
            variants = lexicon.variants(words, forms) if lexicon and self.random else None
            if variants is not None:
                drawn.setdefault(variants.subject, []).append((name, variants, forms))
            else:
                chosen[name] = (lexicon.dressed(words) if lexicon else words,)
        for group in drawn.values():
            chosen |= self._drawn(group)
        return chosen

    def _drawn(self, group: list[tuple[str, Variants, tuple[str, ...]]]) -> Chosen:
        """The words of one subject, drawn among the wordings that have the forms asked for."""
        if len(group) > 1:  # a key beside its comparison
            group = [(name, one.beside or one, forms) for name, one, forms in group]
        _, variants, forms = group[0]
        places = variants.having(forms)
        for _, others, more in group[1:]:
            places = tuple(place for place in places if place in others.having(more))
        if not places:
            raise NoWords
        at = self._place(len(places[: self.most]), places[0] == 0)
        if len(group) > 1 or len(forms) > 1:
            return {name: (others.words[places[at]],) for name, others, _ in group}
        ordered = (*places[at:], *places[:at])
        return {group[0][0]: tuple(variants.words[place] for place in ordered)}

    def _place(self, count: int, main: bool) -> int:
        """One of so many wordings; the first, if it is the main one, comes in a third at least."""
        if self.random is None or count == 1:
            return 0
        at = self.random.randrange(count + (count // 2 if main else 0))
        return at if at < count else 0

    def _fill(self, node: Derivation, slot: Slot, chosen: Chosen) -> str:
        if slot.name == WHAT:
            return "who" if node.person else "what"
        if slot.name == ITS:
            return self._possessive(node)
        part = node.parts.get(slot.name)
        if part is not None:
            said = self.say(part, slot.form or ONE)
            if slot.brief and clauses(said) > (slot.form in RELATIVE):
                raise NoWords
            return said
        inside = [self._realise(node, text, chosen) for text in slot.arguments]
        said = _said(chosen[slot.name], slot.form, inside)
        if not node.person:
            return said
        if " as its " in said:
            said = said.replace(" as its ", f" as {self._possessive(node)} ")
        return self._of_person(said, slot.form)

    def _possessive(self, node: Derivation) -> str:
        if self.lexicon is not None:
            return self.lexicon.possessive(node.target, node.person)
        return "their" if node.person else "its"

    def _of_person(self, said: str, form: str) -> str:
        """The clause with "who" for "that"; the paper's single form keeps "that"."""
        if self.random is not None and form in RELATIVE and said.startswith("that "):
            return f"who {said[5:]}"
        return said


def _said(words: tuple[Words, ...], form: str, inside: list[str]) -> str:
    """The first that has a form for what stands inside, in that form; raises NoWords for none."""
    for last, candidate in enumerate(words, 1 - len(words)):
        try:
            return say(candidate, form, *inside)
        except NoWords:
            if not last:
                raise
    raise NoWords


@cache
def _variables(text: Text) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The variables of a wording, those inside of others too, and the forms it wants of each."""
    found: dict[str, dict[str, None]] = {}
    for slot in slots(text):
        if slot.name.islower() and slot.name not in (WHAT, ITS):
            found.setdefault(slot.name, {})[slot.form or "plain"] = None
    return tuple((name, tuple(forms)) for name, forms in found.items())
