"""What texts stand for: the names of a knowledge base and, behind them, its aliases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from kb import KnowledgeBase
from kopl.program import Call
from kopl.traits import names_in, renamed
from parsers.spelling import Index, letters
from parsers.tokens import Question

# A misspelt alias counts a little less than a misspelt name, and a shorter one is none.
NEAR_ALIAS, LEAST_LETTERS = 0.95, 5
# So short an alias is meant in another case than its own only where it is all capitals ("uk", but
# not "co" for cobalt), and by what so much is known of.
SHORT, LEAST_FACTS = 3, 5
# So many of the things that an alias may mean are tried in the place of the likeliest.
MOST_MEANT = 8

# A text that is nearly nothing.
_NOTHING = "?!"

# Words that are also aliases ("He", "US", "Who", "King"): in lower case they are what they are in
# English, and in capitals where a sentence begins.
_WORDS = """
a about above act add after again age ago air all also am an and any are area arm art as ask at
away back bad ball band bank bar base bay be bear beat bed been begin best bet big bird bit
black blue boat body book born boss both box boy bring brown buy by call came can cap capital car
card care case cat cause city class clean clear close code coin cold come common cook corn cost
could court cover cow cross cut dad dam day days dead deal dear deep den desk did die dig do
does dog done door down dream drop dry due each ear east easy eat edge egg else end era even
ever every eye face fact fair fall far farm fast fat father fear feel fell felt few field fig
find fire first fish fit five flag fly food foot for form four fox free friend from front full
fun game gas gave get gift girl give go god gold gone good got great green gross grow had hair
half hall hand hard has hat have he head hear heat held hell help her here hi high hill him his
hit hold home hope horse hot hour house how i ice if ill in ink into is island islands it its
job join joy just keep key kid kids king knew know lab lake land lane last late law lay lead
leave left leg less let lie life light like line list live long look lord lost lot loud love low
made main make male man many map march mark mass may me mean meet men mine miss moon more most
much music must my name near neck need net new news next night no none nor north nose not note
now odd of off oil old on once one only open or orange order other our out over own pack page
pair park part past pay peace pen per pet pick pie pig pine place plain plan play plot poor pop
port post pound power press price pro pull push put quick rain ran rank rare rat raw ray read
real red rest rice rich ride right ring rise road rock room root rose round row rule run sad
said salt same sand save saw say sea seat see self sell send set seven she ship shop short show
sick side sign silver since singer sir sit six size sky small snow so soft soil some son song
soon sort south space star start state stay steel step still stone stop store street strong such
sun sure take tall tan tax tea team tell ten test than that the them then there they thin thing
this three time tin tip to told too took top town tree true try turn two un under united until
up upon us use van very view vote wait walk wall want war warm was wash water way we weak wear
week well went were west wet what when where which white who whole why wide wife wild will win
wind wine wise wish with wolf woman won wood word words work world would year yes yet you young
your zone
"""
WORDS = frozenset(_WORDS.split())


class NodeNames:
    """The names of a knowledge base, and what its aliases mean."""

    def __init__(self, kb: KnowledgeBase, names: Iterable[str]) -> None:
        self._kb = kb
        self.index = Index(names)
        self._known: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self.index)

    def prepare(self) -> None:
        """Make what is made once, which the first text that needs it would wait for."""
        _ = self._names_text, self._aliases_text, self.index.comparable.plain
        if len(self):
            self.index.nearest(_NOTHING)
        if len(self._long_aliases):
            self._long_aliases.nearest(_NOTHING)

    @cached_property
    def _facts(self) -> list[int]:
        """How many facts each node has, at either end."""
        kb = self._kb
        starts = ("literal_starts", "relation_starts", "relation_tail_starts")
        counts = [np.diff(kb.arrays[name]) for name in starts]  # type: ignore[literal-required]
        found: list[int] = sum(counts).tolist()
        return found

    def best_known(self, count: int) -> list[str]:
        """The names of so many entities, at most, those of which most is known first."""
        kb, facts = self._kb, self._facts
        ranked = sorted(filter(kb.is_entity, range(len(facts))), key=lambda node: -facts[node])
        return list(dict.fromkeys(map(kb.name_of, ranked[:count])))

    @cached_property
    def _of_alias(self) -> dict[str, list[int]]:
        """The nodes that have an alias, those of which most is known first."""
        kb, facts = self._kb, self._facts
        return {
            alias: sorted(filter(kb.name_of, nodes), key=lambda node: (-facts[node], node))
            for alias, nodes in kb.aliased()
        }

    @cached_property
    def _aliases(self) -> Index:
        return Index(alias for alias, nodes in self._of_alias.items() if nodes)

    @cached_property
    def _long_aliases(self) -> Index:
        """Those that are told from others when misspelt."""
        long = (text for text in self._aliases.texts if len(letters(text)) >= LEAST_LETTERS)
        return Index(long)

    def aliases_of(self, name: str) -> list[str]:
        """All aliases of what has a name."""
        nodes = self._kb.named(name).tolist()
        return list(dict.fromkeys(text for node in nodes for text in self._kb.aliases_of(node)))

    def meant(self, text: str) -> tuple[str, ...]:
        """The names that a text may stand for, the likeliest first; none where there is no name.

        The name that is written so up to folding, then those of what has such an alias, the best
        known first; else the one that is nearest, by its name or an alias.
        """
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = tuple(dict.fromkeys(self._meant(text)))
        return found

    def _meant(self, text: str) -> Iterator[str]:
        if not len(self):
            return
        exact = [name] if (name := self.index.folded(text)) is not None else []
        if exact or (alias := self._aliases.folded(text)) is not None:
            yield from exact
            if (alias := self._aliases.folded(text)) is not None:
                yield from map(self._kb.name_of, self._of_alias[alias])
            return
        name, similar = self.index.nearest(text)
        aliases = self._long_aliases
        if len(aliases) and (alias := aliases.nearer(text, similar / NEAR_ALIAS)) is not None:
            yield from map(self._kb.name_of, self._of_alias[alias])
            return
        yield name

    def related(self, name: str, question: str) -> list[str]:
        """Other names that a name may be short for, or that may be short for it.

        Those come first that the question has, by name or alias; then longer ones before shorter
        ones, and the best known first.
        """
        kb, facts = self._kb, self._facts
        longer: dict[str, int] = {}
        for text in _holding(self._names_text, self.index.texts, name):
            longer[text] = max(facts[node] for node in kb.named(text).tolist())
        for text in _holding(self._aliases_text, self._aliases.texts, name):
            for node in self._of_alias[text]:
                other = kb.name_of(node)
                longer[other] = max(longer.get(other, 0), facts[node])
        words = Question.of(name).words
        sizes = range(len(words) - 1, 0, -1)
        spans = (
            " ".join(words[first : first + size])
            for size in sizes
            for first in range(len(words) - size + 1)
        )
        shorter = [self.index.folded(text) for text in spans if text.lower() not in WORDS]
        best_known = sorted(longer, key=lambda one: (-longer[one], one))
        found = [one for one in (*best_known, *shorter) if one is not None and one != name]
        said = letters(question)
        called = {one: {letters(text) for text in (one, *self.aliases_of(one))} for one in found}
        has = {one for one in found if any(key and key in said for key in called[one])}
        return sorted(called, key=lambda one: one not in has)[:MOST_MEANT]

    @cached_property
    def _names_text(self) -> str:
        return _lines(self.index.texts)

    @cached_property
    def _aliases_text(self) -> str:
        return _lines(self._aliases.texts)

    def says_alias(self, spelt: str, question: Question, first: int, last: int) -> bool:
        """Whether the tokens of a question, which are spelt so, are an alias and no other word."""
        if not (found := self._aliases.spelt.get(spelt)):
            return False
        text = question.span(first, last)
        return any(self._says(text, alias, question, first) for alias in found)

    def _says(self, text: str, alias: str, question: Question, first: int) -> bool:
        is_word = text.casefold() in WORDS
        if len(text) == 1:  # a symbol, but neither "I" nor the s behind an apostrophe
            return text == alias and not is_word
        if " " in text and alias.isalnum():
            return False  # "is a" is no ISA
        if is_word and text == alias:
            if text.isupper():
                return not question.text.isupper()
            return first > 0 and not text.islower()
        if text != alias and len(alias) <= SHORT:
            known = self._facts[self._of_alias[alias][0]] >= LEAST_FACTS
            return known and alias.isupper() and not is_word
        return not is_word


def _lines(texts: Sequence[str]) -> str:
    """The texts in lower case, each on a line."""
    return "\n".join(text.replace("\n", " ") for text in texts).lower()


def _holding(lines: str, texts: Sequence[str], name: str) -> Iterator[str]:
    """The texts, whose lower case stands on a line each, that have the words of a name."""
    wanted = name.lower()
    line = counted = 0
    at = lines.find(wanted)
    while wanted and at >= 0:
        end = at + len(wanted)
        if _in_a_word(lines[at - 1 : at]) or _in_a_word(lines[end : end + 1]):
            at = lines.find(wanted, at + 1)
            continue
        line += lines.count("\n", counted, at)
        counted = at
        yield texts[line]
        at = lines.find(wanted, end)


def _in_a_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def with_others(program: Call, several: Sequence[Sequence[str]]) -> Iterator[Call]:
    """The program with another of the things that an alias may mean, for each such name in it."""
    for name in dict.fromkeys(names_in(program)):
        for names in several:
            if name in names:
                for other in [one for one in names if one != name][:MOST_MEANT]:
                    yield renamed(program, {name: other})


def with_related(program: Call, names: NodeNames, question: str) -> Iterator[Call]:
    """The program with names that its own may be short for, one of them first, then all."""
    others = {name: names.related(name, question) for name in names_in(program)}
    for name, found in others.items():
        for other in found:
            yield renamed(program, {name: other})
    best = {name: found[0] for name, found in others.items() if found}
    if len(best) > 1:
        yield renamed(program, best)
