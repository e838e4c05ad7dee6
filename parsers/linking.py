"""From what a question calls a thing to the thing's name: exact, folded, nearest.

A name is always taken for one that there is. Of a string, a folded or near value is taken only
where digits and signs are the same ("A+" is not "A-"), a near one only where it is so word by word.

`Mentions` finds what a question says word by word: names, schema items, constants. `candidates`
are the names that it may be about, which are more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from kb import KnowledgeBase
from kb.schema import Key, Schema
from kopl.automaton import ITEMS, KEYS, Automaton, type_of_key
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call
from kopl.traits import names_in
from kopl.types import Kind
from kopl_base.errors import near_names
from parsers.names import LEAST_LETTERS, WORDS, NodeNames
from parsers.spelling import (
    Index,
    Speller,
    alike_by_words,
    english,
    figures,
    foldings,
    letters,
    similarity,
    words_of,
)
from parsers.tokens import Question

# How similar a value must be to one of the knowledge base to be taken for it; a name is taken for
# the nearest one whatever it is, as programs can name nothing else.
NEAR_VALUE = 88
# How similar a part of a question must be to a name to be taken for a misspelling of it.
NEAR_NAME = 80


def unsaid(
    program: Call, question: str, kb: KnowledgeBase, more: Iterable[str] = (), *,
    nearly: bool = False,
) -> list[str]:  # fmt: skip
    """The names in a program, and ``more`` names, that a question does not hold, in order.

    Not even up to folding, nor by an alias of what they name. ``nearly``: a name that something in
    the question is nearly spelt as counts as held.
    """
    said = letters(question)
    found = []
    for name in dict.fromkeys([*names_in(program), *more]):
        aliases = (alias for node in kb.named(name).tolist() for alias in kb.aliases_of(node))
        called = [name, *aliases]
        if any(key and key in said for text in called for key in foldings(text)):
            continue
        if not (nearly and any(_is_nearly_in(text, question) for text in called)):
            found.append(name)
    return found


def _is_nearly_in(name: str, question: str) -> bool:
    """Whether a part of the question of about as many words is nearly spelt as a name."""
    asked, size = Question.of(question), len(Question.of(name).words)
    count = len(asked.words)
    spans = (
        asked.span(first, last)
        for first in range(count)
        for last in range(first + max(size - 2, 0), min(count, first + size + 1))
    )
    return any(similarity(text, name) >= NEAR_NAME for text in spans)


class Linker:
    """What the names and strings in questions stand for in a knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.schema = kb, Schema.of(kb)
        self._strings: dict[Key | None, Index] = {}
        self._feasible: dict[Function, bool] = {}

    @cached_property
    def names(self) -> NodeNames:
        """The names of all entities and concepts, as an argument reads them, with aliases."""
        return NodeNames(self.kb, self.schema.nodes)

    def speller(self, words: Iterable[str]) -> Speller:
        """What mends slips of the pen in questions of these words, the most frequent first.

        Words of names are meant, too, those of strings are only known.
        """
        aliases = (alias for alias, _ in self.kb.aliased())
        items = (name for kind in ITEM_SLOTS for name in self.kb.names_of_kind(kind))
        named = [w for name in (*items, *self.names.index.texts, *aliases) for w in words_of(name)]
        meant = (word for word in named if len(word) > LEAST_LETTERS)
        values = (word for text in self.strings(None).texts for word in words_of(text))
        return Speller([*words, *english(), *meant], [*values, *named])

    def strings(self, key: Key | None) -> Index:
        """The strings that are values of a key; None: of any key."""
        if key not in self._strings:
            if key is None:
                values = self.kb.values
                texts = [str(values[number]) for number in range(values.first_quantity)]
            else:
                texts = self.schema.texts(key, "string") if self.schema.has(key, "string") else []
            self._strings[key] = Index(filter(None, texts))
        return self._strings[key]

    @cached_property
    def automaton(self) -> Automaton:
        """Which calls may follow in programs that name only what the knowledge base has."""
        functions = filter(self.has_items_of, FUNCTIONS.values())
        return Automaton(functions, self.schema.has, joins_beyond=True)

    def has_items_of(self, function: Function) -> bool:
        """Whether the knowledge base has what the arguments of a function choose among."""
        if function not in self._feasible:
            self._feasible[function] = all(
                self._has_item(function, at, kind)
                for at, (_, kind) in enumerate(function.arguments)
            )
        return self._feasible[function]

    def _has_item(self, function: Function, at: int, kind: Kind) -> bool:
        if kind in KEYS:
            return bool(self.schema.keys(KEYS[kind], type_of_key(function, at)))
        if kind is Kind.RELATION:
            return bool(self.kb.relations)
        if kind is Kind.NAME:
            return bool(len(self.names))
        return bool(self.schema.concepts) if kind is Kind.CONCEPT else True

    def name(self, text: str) -> str:
        """The name that a text stands for; the text itself where there is no name at all."""
        return next(iter(self.names.meant(text)), text)

    def string(self, text: str, key: Key | None, *, near: bool = True) -> str:
        """The value that a text stands for: one of the key (None: of any), or just the text.

        Not ``near``: only a value that is written so up to case, accents, blanks and what
        surrounds an address. What differs in a number or a sign is another value, however long the
        rest.
        """
        index = self.strings(key)
        if (value := index.same(text, fold=near)) is not None:
            return value
        if not near or not len(index):
            return text
        found, similar = index.nearest(text)
        same = similar >= NEAR_VALUE and figures(found) == figures(text)
        return found if same and alike_by_words(text, found) else text


# --- what a question mentions --------------------------------------------------------------------

# These marks mean the same on every knowledge base, so that a parser need not have seen an item in
# training to see that it is mentioned.

# A name or an item of more words is not looked for.
LONGEST_NAME, LONGEST_ITEM = 12, 8
# What so many questions mention is kept.
LAST = 64

ITEM_SLOTS = (*ITEMS.values(), "unit")
# A key's mark tells the type of its values, as that of the function depends on it.
KEY_SLOTS = {ITEMS[kind]: qualifier for kind, qualifier in KEYS.items()}
MARKS = (
    "name begins", "name goes on", "name ends",
    *(slot for slot in ITEM_SLOTS if slot not in KEY_SLOTS),
    *(f"{slot} of {type}" for slot in KEY_SLOTS for type in ("string", "quantity", "time")),
    "number begins", "time begins",
)  # fmt: skip
# The numbers of the marks of items.
ITEM_MARKS = [
    at for at, mark in enumerate(MARKS) if not mark.endswith(("begins", "goes on", "ends"))
]
_MARK = {mark: number for number, mark in enumerate(MARKS)}


def marks_of_slots(slots: Sequence[str]) -> npt.NDArray[np.float32]:
    """Slots × MARKS: 1 where a mark is that of an item which the slot chooses."""
    found = np.zeros((len(slots), len(MARKS)), np.float32)
    for row, slot in enumerate(slots):
        for at, mark in enumerate(MARKS):
            found[row, at] = slot in ITEM_SLOTS and mark.partition(" of ")[0] == slot
    return found


@dataclass(frozen=True)
class Mentioned:
    """What a question of L tokens mentions."""

    marks: npt.NDArray[np.float32]  # L × MARKS, 0 or 1
    names: tuple[tuple[int, int], ...]  # (first, last) token of every span that is a name
    items: tuple[int, ...]  # the numbers of the entries whose items are mentioned
    # What aliases in it stand for that mean several things, the likeliest first.
    several: tuple[tuple[str, ...], ...] = ()
    # Those whose keys and relations what is named has, and whose relations lead to it.
    known: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


class Mentions:
    """Finds what questions mention of a knowledge base, of items by the number of their entry.

    Entries are (slot, text), as `parsers.actions.Actions` has them.
    """

    def __init__(self, entries: Sequence[tuple[str, str]], linker: Linker) -> None:
        self._linker = linker
        self._items: dict[str, list[int]] = {}
        self.entries = entries
        self._marks = [self._marks_of(slot, text) for slot, text in entries]
        self._numbers = {entry: number for number, entry in enumerate(entries)}
        self._known: dict[str, tuple[frozenset[int], frozenset[int]]] = {}
        self._last: dict[str, Mentioned] = {}
        for number, (slot, text) in enumerate(entries):
            if slot in ITEM_SLOTS and (key := _key(Question.of(text).words)):
                self._items.setdefault(key, []).append(number)

    def _marks_of(self, slot: str, text: str) -> list[int]:
        """The marks of words that mention an item."""
        if slot in KEY_SLOTS:
            types = self._linker.schema.types((text, KEY_SLOTS[slot]))
            return [_MARK[f"{slot} of {type}"] for type in sorted(types)]
        return [_MARK[slot]] if slot in ITEM_SLOTS else []

    def of(self, question: Question) -> Mentioned:
        """The marks of a question's tokens, the names and the items that it mentions.

        What was found in the last questions is kept, as several parts of a parser ask for it.
        """
        found = self._last.get(question.text)
        if found is None:
            found = self._of(question)
            if len(self._last) >= LAST:
                self._last.clear()
            self._last[question.text] = found
        return found

    def _of(self, question: Question) -> Mentioned:
        count = len(question.words)
        marks = np.zeros((count, len(MARKS)), np.float32)
        parts = [letters(word) for word in question.words]
        stems = [stem(part) for part in parts]
        known = self._linker.names
        names: list[tuple[int, int]] = []
        several: dict[tuple[str, ...], None] = {}
        items: list[tuple[int, int, list[int]]] = []
        for first in range(count):
            if not parts[first]:
                continue
            text = stemmed = ""
            for last in range(first, min(count, first + LONGEST_NAME)):
                text, stemmed = text + parts[last], stemmed + stems[last]
                if not parts[last]:
                    continue
                is_alias = known.says_alias(text, question, first, last)
                if is_alias and len(meant := known.meant(question.span(first, last))) > 1:
                    several[meant] = None
                if is_alias or text in known.index.spelt:
                    names.append((first, last))
                if last - first < LONGEST_ITEM and (found := self._items.get(stemmed)):
                    items.append((first, last, found))
        # "US Dollar" does not mention the country, nor "Lake Victoria" the town.
        named = set(names)
        names = [span for span in names if not _inside(span[0], span[1], named)]
        # "population growth rate" does not mention the population.
        spans = {(first, last) for first, last, _ in items}
        items = [item for item in items if not _inside(item[0], item[1], spans)]
        for first, last, found in items:
            for number in found:
                marks[first : last + 1, self._marks[number]] = 1
        for first, last in names:
            marks[first, _MARK["name begins"]] = 1
            marks[first : last + 1, _MARK["name goes on"]] = 1
            marks[last, _MARK["name ends"]] = 1
        # Nor is the number in "lithium-7" or "ISO 639 code" one to be copied.
        part = {
            at for first, last in (*names, *spans) if last > first for at in range(first, last + 1)
        }
        for constant, mark in (("quantity", "number begins"), ("time", "time begins")):
            begins = [at for at in question.copyable(constant) if at not in part]
            marks[begins, _MARK[mark]] = 1
        mentioned = sorted({number for _, _, found in items for number in found})
        called = {name for span in names for name in known.meant(question.span(*span))[:1]}
        items_of = [self.items_of(name) for name in sorted(called)]
        has, leads = (tuple(sorted({n for one in items_of for n in one[at]})) for at in (0, 1))
        return Mentioned(marks, tuple(names), tuple(mentioned), tuple(several), (has, leads))

    def items_of(self, name: str) -> tuple[frozenset[int], frozenset[int]]:
        """The entries of the keys and relations of what has a name, and of what leads to it."""
        if name not in self._known:
            kb = self._linker.kb
            literals, facts, nodes = kb.literals, kb.relational, kb.named(name)
            keys = set(literals.predicate[literals.of_subjects(nodes)].tolist())
            own, others = (
                self._numbered(ITEMS[Kind.RELATION], (kb.relations[number] for number in numbers))
                for numbers in (
                    set(facts.predicate[found].tolist())
                    for found in (facts.of_subjects(nodes), facts.of_tails(nodes))
                )
            )
            has = self._numbered(ITEMS[Kind.KEY], (kb.keys[number] for number in keys)) | own
            self._known[name] = has, others
        return self._known[name]

    def _numbered(self, slot: str, texts: Iterable[str]) -> frozenset[int]:
        return frozenset(
            self._numbers[slot, text] for text in texts if (slot, text) in self._numbers
        )


def _inside(first: int, last: int, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether a span is a part of a longer one."""
    return any(
        begin <= first and last <= end and end - begin > last - first for begin, end in spans
    )


def _key(words: Iterable[str]) -> str:
    return "".join(stem(letters(word)) for word in words)


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """A word without the ending of its plural, roughly; the same for both forms is enough.

    >>> [stem(word) for word in ("countries", "country", "cities", "glass", "gas")]
    ['countri', 'countri', 'citi', 'glass', 'gas']
    """
    if len(word) > 3 and word.endswith("ies"):
        return word[:-2]
    if len(word) > 3 and word.endswith("y"):
        return f"{word[:-1]}i"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


@lru_cache(maxsize=50_000)
def stems_of(text: str) -> tuple[str, ...]:
    """The stems of a text's words."""
    found = (stem(letters(word)) for word in Question.of(text).words)
    return tuple(one for one in found if one)


# --- what a question may be about -----------------------------------------------------------------

# So many names are given at most, and so many of those that are spelt like a word.
MOST_CANDIDATES, NEAR_WORD = 300, 10


def candidates(linker: Linker, question: str, most: int = MOST_CANDIDATES) -> list[str]:
    """The names of entities and concepts that a program for a question may find, at most so many.

    First those that the question says, by the name itself or by an alias, the longest first; then
    names that these are short for; then names spelt like words of the question that are neither
    part of a name nor English. More than a parser would take as meant: a grammar that is sent with
    the question should rather hold a name too many than leave out the one that is needed.
    """
    asked, names = Question.of(question), linker.names
    said: dict[str, None] = {}
    covered: set[int] = set()
    for first, last, meant in _said_names(asked, names):
        said |= dict.fromkeys(meant)
        covered |= set(range(first, last + 1))
    listed = list(said)
    found = dict.fromkeys(listed)
    for name in listed:
        found |= dict.fromkeys(names.related(name, question))
    for text in _unknown_words(asked, covered):
        found |= dict.fromkeys(near_names(text, names.index.texts, NEAR_WORD))
    return list(found)[:most]


def _said_names(asked: Question, names: NodeNames) -> Iterator[tuple[int, int, Sequence[str]]]:
    """The spans that say a name or an alias, with all names that they may mean."""
    count = len(asked.words)
    for size in range(min(count, LONGEST_NAME), 0, -1):
        for first in range(count - size + 1):
            last = first + size - 1
            spelt = "".join(map(letters, asked.words[first : last + 1]))
            if not spelt:
                continue
            found = [*names.index.spelt.get(spelt, ())]
            if names.says_alias(spelt, asked, first, last):
                found += names.meant(asked.span(first, last))
            if found:
                yield first, last, found


def _unknown_words(asked: Question, covered: set[int]) -> Iterable[str]:
    """The words that may be misspelt names, and those in a row as one."""
    known = {*english(), *WORDS}
    strange = [
        at not in covered and bool(key := letters(word)) and not key.isdigit() and (
            key not in known or (at > 0 and word[:1].isupper())
        )
        for at, word in enumerate(asked.words)
    ]  # fmt: skip
    at = 0
    while at < len(strange):
        end = at
        while end < len(strange) and strange[end]:
            end += 1
        if end > at + 1:
            yield asked.span(at, end - 1)
        yield from (asked.span(one, one) for one in range(at, end))
        at = end + 1
