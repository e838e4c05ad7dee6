"""What texts stand for: the names of a knowledge base and, behind them, its aliases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from kb import KnowledgeBase
from kopl.functions import FIND
from kopl.program import Call, post_order
from parsers.spelling import Index, letters
from parsers.tokens import Question

# A misspelt alias counts a little less than a misspelt name, and a shorter one is none.
NEAR_ALIAS, LEAST_LETTERS = 0.95, 5
# So short an alias is meant in another case than its own only where it is all capitals ("uk", but
# not "co" for cobalt), and by what so much is known of.
SHORT, LEAST_FACTS = 3, 5
# So many of the things that an alias may mean are tried in the place of the likeliest.
MOST_MEANT = 8

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

    @cached_property
    def _facts(self) -> list[int]:
        """How many facts each node has, at either end."""
        kb = self._kb
        starts = ("literal_starts", "relation_starts", "relation_tail_starts")
        counts = [np.diff(kb.arrays[name]) for name in starts]  # type: ignore[literal-required]
        found: list[int] = sum(counts).tolist()
        return found

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
        if len(self._long_aliases):
            alias, other = self._long_aliases.nearest(text)
            if other * NEAR_ALIAS > similar:
                yield from map(self._kb.name_of, self._of_alias[alias])
                return
        yield name

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


def with_others(program: Call, several: Sequence[Sequence[str]]) -> Iterator[Call]:
    """The program with another of the things that an alias may mean, for each such name in it."""
    named = dict.fromkeys(c.arguments[0] for c in post_order(program) if c.function is FIND)
    for name in named:
        for names in several:
            if name in names:
                for other in [one for one in names if one != name][:MOST_MEANT]:
                    yield _renamed(program, name, other)


def _renamed(program: Call, name: str, other: str) -> Call:
    inputs = tuple(_renamed(one, name, other) for one in program.inputs)
    is_named = program.function is FIND and program.arguments[0] == name
    return Call(program.function, inputs, (other,) if is_named else program.arguments)
