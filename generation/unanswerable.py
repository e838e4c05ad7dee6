"""Questions that a knowledge base does not answer, for parsers that are to know when to be silent.

Made of questions that it does answer, and of the patterns and words of ``unanswerable.yaml``:

- *entity*: something that does not exist takes the place of what the question names;
- *premise*: something else that exists does, of which the fact is not there;
- *schema*: questions of other domains, about what the knowledge base names or about nothing in it;
- *none*: greetings, thanks, remarks; *language*: questions in other languages.

>>> maker = Unanswerable(load("world"), seed=1)
>>> [one.outside for one in maker.questions(examples, 3)]
['schema', 'entity', 'none']
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from random import Random
from typing import TypeAlias

import yaml  # type: ignore[import-untyped]
from rapidfuzz import fuzz, process

from generation.english import can_be_read
from generation.noise import Noise
from kb import KnowledgeBase
from kopl.example import BareQuestion, Example
from kopl.executor import Executor
from kopl.functions import COUNT, FILTER_CONCEPT, FIND, RELATE, Function
from kopl.program import Call, post_order
from kopl.traits import names_in, renamed
from kopl.types import Type
from kopl_base.errors import KoplError

# A question is tried so often before another kind takes its place.
TRIES = 12
# The letters before a letter that a made-up name looks at, and how long its words may be.
ORDER, LONGEST_WORD = 3, 11
# A name that is so similar to one that there is may be taken for that one, misspelt.
SIMILAR = 87
# Names of a concept that a name is made up after.
MODELS = 400
# Of the questions, so many are typed in haste.
NOISE = 0.35

_SLOT = re.compile(r"<(\w+)>")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Patterns:
    """What ``unanswerable.yaml`` says."""

    shares: Mapping[str, int]
    names: Mapping[str, int]
    pairs: int
    kinds: int
    patterns: Mapping[str, Sequence[str]]
    near: Sequence[Mapping[str, Sequence[str]]]
    lists: Mapping[str, Sequence[str]]
    before: Sequence[str]
    behind: Sequence[str]


@cache
def patterns() -> Patterns:
    """The bundled tables."""
    text = resources.files("generation").joinpath("unanswerable.yaml").read_text("utf-8")
    return Patterns(**yaml.safe_load(text))


KINDS = ("entity", "schema", "premise", "none", "language")


@dataclass(frozen=True)
class _Named:
    """A question, a name in its program that it says word by word, and the node of that name."""

    example: Example
    name: str
    node: int


# A pattern, and of what it is asked.
_Near: TypeAlias = tuple[str, Sequence[_Named]]


@dataclass
class Unanswerable:
    """Makes questions that a knowledge base does not answer; the same seed gives the same ones."""

    kb: KnowledgeBase
    seed: int = 0
    noise: float = NOISE
    _of_concept: dict[str, list[str]] = field(default_factory=dict, repr=False)

    def questions(self, examples: Sequence[Example], count: int) -> Iterator[BareQuestion]:
        """So many different questions with their kind in ``outside``, made after some examples.

        Raises KoplError where no example names an entity, as there is nothing to ask about then.
        """
        random = Random(f"unanswerable {self.seed}")
        named = [one for example in examples for one in self._named(example)]
        of_a_kind = [one for one in named if _says_kind(one.example.program)]
        if not named:
            raise KoplError("no question names an entity, so none can be made that has no answer")
        kinds, weights = list(patterns().shares), list(patterns().shares.values())
        known = {example.question.casefold() for example in examples}
        noise, near = Noise(self.kb, 1.0), self._near(named)
        made = 0
        while made < count:
            for kind in random.choices(kinds, weights, k=TRIES):
                sources = named
                if kind == "premise" and of_a_kind and random.random() < patterns().kinds / 100:
                    sources = of_a_kind
                tries = (self._question(kind, sources, near, random) for _ in range(TRIES))
                text = next((one for one in tries if one is not None), None)
                if text is None:
                    continue
                if random.random() < self.noise:
                    text, _ = noise.typed(text, random)
                if (marked := text.casefold()) in known:
                    continue
                known.add(marked)
                yield BareQuestion(text, id=f"unanswerable-{made + 1}", outside=kind)
                made += 1
                break
            else:
                return

    def _question(
        self, kind: str, named: Sequence[_Named], near: Sequence[_Near], random: Random
    ) -> str | None:
        """A question of a kind, None where the attempt fails; ``near`` are patterns of a schema."""
        source = random.choice(named)
        if kind == "premise":
            return self._premise(source, random)
        if kind == "entity":
            name = self.invented(source.node, random)
            if name is None:
                return None
            return source.example.question.replace(source.name, name)
        wordings = [(text, named) for text in patterns().patterns[kind]]
        pattern, of = random.choice([*wordings, *(near if kind == "schema" else ())])
        text = self._filled(pattern, of, random)
        return text[:1].upper() + text[1:] if random.random() < 0.6 else text

    def _named(self, example: Example) -> Iterator[_Named]:
        for name in names_in(example.program):
            if name in example.question:
                nodes = [node for node in self.kb.named(name).tolist() if self.kb.is_entity(node)]
                if nodes and name[:1].isalnum():
                    yield _Named(example, name, nodes[0])

    # --- other domains, chat, other languages ------------------------------------------------

    def _filled(self, pattern: str, named: Sequence[_Named], random: Random) -> str:
        def fill(match: re.Match[str]) -> str:
            if match[1] == "name":
                return random.choice(named).name
            return self._filled(random.choice(self._lists[match[1]]), named, random)

        return _SLOT.sub(fill, pattern)

    def _near(self, named: Sequence[_Named]) -> list[_Near]:
        """Questions for what is near to what there is, with those of which they are asked."""
        found: list[_Near] = []
        having = [(one, self._items(one.node)) for one in named]
        for near in patterns().near:
            if self._called.isdisjoint(near["lacks"]):
                of = [one for one, items in having if not items.isdisjoint(near["of"])]
                found += [(text, of) for text in near["questions"] if of]
        return found

    def _items(self, node: int) -> set[str]:
        """The relations and keys of a node."""
        kb = self.kb
        keys = {fact.key for fact in kb.attributes(node)}
        return keys | {record.relation for record in kb.records(node, "both")}

    @cached_property
    def _called(self) -> frozenset[str]:
        """What the knowledge base calls its relations, keys and concepts, in small letters."""
        return frozenset(
            text.casefold()
            for kind in ("relation", "key", "concept", "qualifier key")
            for text in self.kb.names_of_kind(kind)
        )

    @cached_property
    def _lists(self) -> dict[str, list[str]]:
        """The words of the lists without those by which the knowledge base calls something."""
        return {
            name: [text for text in texts if text.casefold() not in self._called] or list(texts)
            for name, texts in patterns().lists.items()
        }

    # --- what does not exist -----------------------------------------------------------------

    def invented(self, node: int, random: Random) -> str | None:
        """A name that nothing in the knowledge base has, after those of the same concept.

        None where the attempt gives one that is too similar to a name that there is.
        """
        ways = patterns().names
        (way,) = random.choices(list(ways), list(ways.values()))
        own, others = self.kb.name_of(node), self._names_like(node)
        by_parts = True
        if way == "number" and (found := _DIGITS.search(own)):
            name = own[: found.start()] + str(random.randint(300, 999)) + own[found.end() :]
        elif way == "parts" and len(own.split()) > 1:
            last = random.choice(others).split()[-1]
            name = " ".join([*own.split()[:-1], last])
        elif way == "word" and len(own.split()) > 1:
            words, by_parts = own.split(), False
            words[random.randrange(len(words))] = self._made_up(others, random)
            name = " ".join(words)
        elif way == "word":
            made, by_parts = self._made_up(others, random), False
            front = random.random() < 0.5
            word = random.choice(patterns().before if front else patterns().behind)
            name = f"{word} {made}" if front else f"{made} {word}"
        elif way == "changed":
            name, by_parts = self._changed(own, others, random), False
        else:
            by_parts = False
            name = " ".join(self._made_up(others, random) for _ in own.split()[:2])
        return name if self._is_new(name, by_parts=by_parts) else None

    def _names_like(self, node: int) -> list[str]:
        """Names of the same concept, or all names."""
        concepts = self.kb.concepts_of(node)
        concept = self.kb.name_of(int(concepts[0])) if len(concepts) else ""
        if concept not in self._of_concept:
            nodes = self.kb.instances_of(concept).tolist() if concept else []
            step = max(1, len(nodes) // MODELS)
            names = [self.kb.name_of(one) for one in nodes[::step] if self.kb.is_entity(one)]
            self._of_concept[concept] = [one for one in names if can_be_read(one)] or ["Nobody"]
        return self._of_concept[concept]

    def _made_up(self, names: Sequence[str], random: Random) -> str:
        """A word that sounds like words of names: each letter follows some as it does there."""
        words = [word for name in names for word in name.split() if word.isalpha()] or ["Nobody"]
        following = self._following(tuple(words))
        text = ""
        while len(text) < LONGEST_WORD:
            choices = following.get(text[-ORDER:].rjust(ORDER), {"": 1})
            (letter,) = random.choices(list(choices), list(choices.values()))
            if not letter and len(text) > 3:
                break
            if not letter:
                text = ""
            text += letter
        return text[:1].upper() + text[1:].lower()

    def _changed(self, name: str, names: Sequence[str], random: Random) -> str:
        """A name with some letters within one of its words exchanged: "Latveria" for "Latvia".

        More than a slip of the pen changes.
        """
        words = name.split()
        at = max(range(len(words)), key=lambda place: len(words[place]))
        word, new = words[at], self._made_up(names, random).lower()
        begin = random.randint(0, max(0, len(word) - 3))
        count = random.randint(1, 3)
        words[at] = word[:begin] + new[: random.randint(2, 4)] + word[begin + count :]
        words[at] = words[at][:1].upper() + words[at][1:]
        return " ".join(words)

    @staticmethod
    @cache
    def _following(words: tuple[str, ...]) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for word in words:
            for place, letter in enumerate([*word.lower(), ""]):
                before = word.lower()[max(0, place - ORDER) : place].rjust(ORDER)
                found.setdefault(before, Counter())[letter] += 1
        return found

    def _is_new(self, name: str, *, by_parts: bool) -> bool:
        """Whether nothing is called so, or, of a made-up name, nearly so."""
        if len(self.kb.named(name)):
            return False
        if by_parts:
            return True
        near = process.extractOne(
            name.casefold(), self._every_name, scorer=fuzz.ratio, score_cutoff=SIMILAR
        )
        return near is None

    @cached_property
    def _every_name(self) -> list[str]:
        kb = self.kb
        return [kb.name_of(node).casefold() for node in range(kb.node_count)]

    # --- facts that do not exist -------------------------------------------------------------

    def _premise(self, source: _Named, random: Random) -> str | None:
        """A question about a fact that is not there, of something that is; None where it fails."""
        if random.random() < patterns().pairs / 100:
            return self._of_a_pair(source, random)
        if source.example.answer_form is not None or not _may_find_nothing(source.example.program):
            return None
        other = random.choice(self._names_like(source.node))
        if other == source.name or not other[:1].isalnum():
            return None
        program = renamed(source.example.program, {source.name: other})
        if self._denotation(program):
            return None
        return source.example.question.replace(source.name, other)

    def _of_a_pair(self, source: _Named, random: Random) -> str | None:
        """A question about what is named and something that facts like its own lead to."""
        kb = self.kb
        facts = list(kb.records(source.node, "head"))
        others = self._names_like(source.node)
        if not facts:
            return None
        relation = random.choice(facts).relation
        known = {record.other for record in kb.records(source.node, "both")}
        nodes = [int(node) for node in kb.named(random.choice(others)).tolist()]
        ends = [
            record.other for node in nodes for record in kb.records(node, "head")
            if record.relation == relation and record.other not in known
        ]  # fmt: skip
        if not ends:
            return None
        name = kb.name_of(kb.node(random.choice(ends)))
        if not can_be_read(name) or name == source.name:
            return None
        pattern = random.choice(patterns().patterns["premise"])
        return pattern.replace("<first>", source.name).replace("<second>", name)

    def _denotation(self, program: Call) -> list[str]:
        try:
            return self._executor.run(program).denotation
        except KoplError:
            return []

    @cached_property
    def _executor(self) -> Executor:
        return Executor(self.kb)


def _says_kind(program: Call) -> bool:
    """Whether a program says of what kind the thing is that is found: a queen, a language."""
    return any(
        call.function is FILTER_CONCEPT and call.inputs[0].function is RELATE
        and call.inputs[0].inputs[0].function is FIND
        for call in post_order(program)
    )  # fmt: skip


def _may_find_nothing(program: Call) -> bool:
    """Whether finding nothing is no answer: a count of 0 and a no are answers."""
    function: Function = program.function
    return function is not COUNT and function.output is not Type.TRUTH
