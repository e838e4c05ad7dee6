"""How constants, the operators before them and comparisons are said, in all forms of rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from generation import english
from generation.lexicon.entries import KeyEntry
from generation.lexicon.guesses import (
    guess_key,
)
from generation.lexicon.words import NoWords, Words
from kb import Date, Quantity, Value, Year
from kb.values import NO_UNIT


@dataclass(frozen=True, slots=True)
class ValueWords(Words):
    """A constant, with its value; ``said`` is how it is said where that is not plain English."""

    value: Value
    said: str = ""

    def plain(self) -> str:
        """The value as people write it."""
        return self.said or english.say(self.value)

    def at(self) -> str:
        """A point in time behind its preposition: "in 2019", "on 4 July 2019"."""
        if not isinstance(self.value, Year | Date):
            raise NoWords
        return f"{'in' if isinstance(self.value, Year) else 'on'} {self.plain()}"

    def figure(self) -> str:
        """The value where it is a number or a time, so that it can follow a name."""
        if isinstance(self.value, str):
            raise NoWords
        return self.plain()

    def name(self) -> str:
        """A text that may be a name, behind "the" where English wants it."""
        if isinstance(self.value, str):
            return english.name_in_sentence(self.text)
        return self.plain()

    def number(self) -> str:
        """The value where what it counts can follow it in the plural: a number but 1, no unit."""
        if not isinstance(self.value, Quantity) or self.value.unit != NO_UNIT:
            raise NoWords
        if abs(self.value.number) == 1:
            raise NoWords
        return self.plain()


@dataclass(frozen=True, slots=True)
class OperatorWords(Words):
    """An operator, with the constant that it stands before."""

    value: Value

    def plain(self) -> str:
        """Behind "is": "greater than", "before", "in"; nothing where the bare value will do."""
        if self.text == "=":
            return "in" if isinstance(self.value, Year) else ""
        if self.text == "!=":
            return "not in" if isinstance(self.value, Year) else "not"
        return self._beyond()

    def table(self) -> str:
        """The words of KQA Pro's Table 7: "equal to", "on", "not in"."""
        equal = "equal to"
        if isinstance(self.value, Year | Date):
            equal = "in" if isinstance(self.value, Year) else "on"
        return {"=": equal, "!=": f"not {equal}"}.get(self.text) or self._beyond()

    def bracket(self) -> str:
        """Behind a qualifier key and "is": a value that is equal stands bare (Table 8)."""
        return "" if self.text == "=" else self.table()

    def of(self) -> str:
        """Behind "has an area": "of", "of more than", "before", "in"."""
        if self.text == "!=":
            return "other than"
        if isinstance(self.value, Quantity) and self.text != "=":
            return f"of {'less' if self.text == '<' else 'more'} than"
        if self.text == "=" and not isinstance(self.value, Year):
            return "of"
        return self.plain()

    def equal(self) -> str:
        """Nothing, for what is equal: "as of 2015"."""
        if self.text != "=":
            raise NoWords
        return ""

    def time(self) -> str:
        """Behind what happened: "in", "on", "before", "after"."""
        if not isinstance(self.value, Year | Date):
            raise NoWords
        if self.text == "!=":
            year = isinstance(self.value, Year)
            return "in a year other than" if year else "on a day other than"
        return self.table()

    def count(self) -> str:
        """Before a number that counts: "more than", "fewer than"."""
        if self.text == "!=":
            raise NoWords
        return {"<": "fewer than", ">": "more than"}.get(self.text, "")

    def over(self) -> str:
        """Nothing, for ">" behind what says it: "longer than" (the form `over` of a key)."""
        return self._only(">")

    def under(self) -> str:
        """Nothing, for "<" behind what says it: "shorter than" (the form `under` of a key)."""
        return self._only("<")

    def _only(self, operator: str) -> str:
        if self.text != operator:
            raise NoWords
        return ""

    def _beyond(self) -> str:
        if isinstance(self.value, Quantity):
            return "less than" if self.text == "<" else "greater than"
        return "before" if self.text == "<" else "after"


@dataclass(frozen=True, slots=True)
class ComparisonWords(Words):
    """greater, less, largest or smallest, with the key that is compared."""

    key: str
    entry: KeyEntry = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.entry is None:
            object.__setattr__(self, "entry", guess_key(self.key))

    def plain(self) -> str:
        """The word that goes with the key: "larger", "highest"."""
        return self._of(self.entry.comparison)

    def table(self) -> str:
        """The words of KQA Pro's Table 8: "larger", "largest"."""
        return self._of(english.comparison("large"))

    def alone(self) -> str:
        """The adjective that says the key too: "longer"; a superlative behind "the"."""
        if self.entry.adjective is None:
            raise NoWords
        word = self._of(self.entry.adjective)
        return word if self.text in ("greater", "less") else f"the {word}"

    def bare(self) -> str:
        """The same without "the", before a noun: "longest", never "furthest north"."""
        word = self.alone().removeprefix("the ")
        if " " in word and not word.startswith(("more ", "most ", "less ", "least ")):
            raise NoWords
        return word

    def first(self) -> str:
        """The same behind "the": "the longest" river, never "the furthest north" one."""
        return f"the {self.bare()}"

    def count(self) -> str:
        """Before what the key counts: "more", "fewer" seats; "the most", "the least" debt."""
        if not self.entry.counted:
            raise NoWords
        few = "less", "the least"
        if english.is_plural(self.entry.counted):
            few = "fewer", "the fewest"
        return self._of(("more", "the most", *few))

    def much(self) -> str:
        """Behind a verb that says the key: it costs "more", weighs "the least"."""
        if self.entry.verb is None:
            raise NoWords
        return self._of(("more", "the most", "less", "the least"))

    def _of(self, comparison: english.Comparison) -> str:
        return comparison[("greater", "largest", "less", "smallest").index(self.text)]
