"""Knowledge bases that are made up: schemas and things that exist nowhere, the same for a number.

They are for parsers that are to serve knowledge bases they were not trained on: what is learnt over
many schemas with few familiar names is how a question points at a schema, not one schema. Concepts,
relations, keys and entities are drawn anew for each number, and many of their names are made up of
syllables; the other words stand in ``invented.json``. No fact of them is true.

>>> import kb
>>> kb.load("invented:3")
KnowledgeBase(265 entities, 13 concepts, 796 relational and 782 literal facts)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from random import Random
from typing import Any

from kb.model import Builder, QualifierInput
from kb.store import KnowledgeBase
from kb.values import NO_UNIT, Date, Quantity, Value, Year

PREFIX = "invented:"
# Of the names of a schema, so many are made up as a whole, and so many have a made-up word.
MADE_UP, WITH_MADE_UP = 0.3, 0.2
# How many concepts, relations and keys a schema has, and things of a concept.
CONCEPTS, RELATIONS, KEYS, THINGS = (6, 8), (11, 17), (11, 17), (25, 60)
# Behind a preposition or a verb stands what a fact leads to: such a name takes no further word.
_END = re.compile(r"(?: (?:at|by|for|from|in|of|to|with)|^overlooks)$")
# Years lie between these.
YEARS = (1890, 2024)


def number_of(name: str) -> int | None:
    """The number of a name like ``invented:3``; None for another name."""
    digits = name.removeprefix(PREFIX)
    is_one = name.startswith(PREFIX) and digits.isascii() and digits.isdigit()
    return int(digits) if is_one else None


def invented(number: int) -> KnowledgeBase:
    """The knowledge base of a number, the same everywhere."""
    return _Maker(Random(f"invented {number}")).kb()


@cache
def _words() -> dict[str, Any]:
    text = resources.files("kb").joinpath("invented.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@dataclass(frozen=True)
class _Concept:
    """A concept with what kind of thing it is of, and the ids of its instances."""

    id: str
    kind: str
    noun: str
    things: list[str] = field(default_factory=list)


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random, self.builder = random, Builder()
        # A few sounds of all make the words of one knowledge base alike.
        self.onsets, self.vowels, self.codas = (
            random.sample(_words()[name], count)
            for name, count in (("onsets", 16), ("vowels", 9), ("codas", 12))
        )
        self.used: set[str] = set()
        self.values = random.sample(_words()["values"], 10)

    def kb(self) -> KnowledgeBase:
        """All of it, drawn."""
        concepts = self._concepts()
        self._attributes(concepts)
        self._facts(concepts)
        return self.builder.build()

    # --- names -----------------------------------------------------------------------------------

    def _word(self) -> str:
        """A word that is none, of two or three syllables."""
        random = self.random
        count = random.choices((2, 3), (3, 1))[0]
        parts = [random.choice(self.onsets) + random.choice(self.vowels) for _ in range(count)]
        word = "".join(parts) + random.choice(self.codas)
        return word if len(word) > 3 else self._word()

    def _name(self, known: str, alone: bool = True) -> str:
        """A name of the schema: a known one, one with a made-up word, or made up as a whole.

        ``alone``: it may be made up as a whole. The same name is not given twice.
        """
        drawn, is_open = self.random.random(), _END.search(known) is not None
        if drawn < MADE_UP and alone:
            name = self._word()
        elif drawn < MADE_UP + WITH_MADE_UP and not is_open:
            name = f"{self._word()} {known}"
        else:
            name = known
        return self._unused(name, lambda: self._word() if is_open else f"{self._word()} {known}")

    def _unused(self, name: str, other: Any) -> str:
        while name.casefold() in self.used:
            name = other()
        self.used.add(name.casefold())
        return name

    def _called(self, concept: _Concept, noun: str) -> str:
        """What a thing of a concept is called."""
        random, title, words = self.random, self._word().capitalize(), _words()
        kind = noun.title()
        if concept.kind == "person":
            return f"{title} {self._word().capitalize()}"
        if concept.kind == "event":
            return f"{title} {kind} {random.randint(*YEARS)}"
        if concept.kind == "group":
            return random.choice((f"{title} {kind}", f"{title} & {self._word().title()}"))
        if concept.kind == "place":
            return random.choice((title, f"{title} {noun.capitalize()}", f"Upper {title}"))
        if concept.kind == "thing":
            numbered = f"{title} {random.randint(2, 90)}"
            code = f"{title[:2].upper()}-{random.randint(100, 999)}"
            return random.choice((numbered, code, title))
        adjective = random.choice(words["adjectives"]).title()
        first, second, third = (random.choice(words["titles"]) for _ in range(3))
        return random.choice(
            (f"The {adjective} {first}", f"{title}'s {second}", f"{third} of {title}")
        )

    # --- concepts and their instances ------------------------------------------------------------

    def _concepts(self) -> list[_Concept]:
        random, found = self.random, []
        kinds = list(_words()["kinds"])
        drawn = [*random.sample(kinds, 4), *random.choices(kinds, k=random.randint(*CONCEPTS) - 4)]
        for number, kind in enumerate(drawn):
            noun = self._name(random.choice(_words()["kinds"][kind]))
            concept = _Concept(f"C{number}", kind, noun)
            self.builder.add_concept(concept.id, noun)
            below = [concept.id]
            for part in range(random.choice((0, 1, 2, 3))):
                before = random.choice([random.choice(_words()["adjectives"]), self._word()])
                below.append(f"{concept.id}.{part}")
                name = self._unused(f"{before} {noun}", lambda noun=noun: f"{self._word()} {noun}")
                self.builder.add_concept(below[-1], name, [concept.id])
            for thing in range(random.randint(*THINGS)):
                id = f"E{number}.{thing}"
                name = self._unused(
                    self._called(concept, noun), lambda c=concept, n=noun: self._called(c, n)
                )
                aliases = [name.split()[-1]] if kind == "person" and random.random() < 0.1 else []
                self.builder.add_entity(id, name, [random.choice(below)], aliases)
                concept.things.append(id)
            found.append(concept)
        return found

    # --- facts -----------------------------------------------------------------------------------

    def _attributes(self, concepts: Sequence[_Concept]) -> None:
        random = self.random
        for _ in range(random.randint(*KEYS)):
            concept = random.choice(concepts)
            owners = list(concept.things)
            sort = random.choices(("numbers", "times", "texts"), (5, 3, 3))[0]
            table = _words()[sort]
            drawn = random.choice([*table["any"], *table[concept.kind]])
            key = self._name(drawn[0] if sort == "numbers" else drawn)
            if drawn in table["any"]:
                owners += random.choice([one for one in concepts if one is not concept]).things
            details, share = self._details(), random.uniform(0.6, 1.0)
            only_year = random.random() < 0.4
            own = random.sample(self.values, random.randint(4, 10))
            is_code = sort == "texts" and random.random() < 0.4
            for thing in owners:
                if random.random() >= share:
                    continue
                value: Value
                if sort == "numbers":
                    value = self._quantity(drawn[1], drawn[2])
                elif sort == "times":
                    value = self._time(only_year)
                elif is_code:
                    value = f"{self._word()[:3].upper()}{random.randint(10, 999)}"
                else:
                    value = random.choice(own)
                self.builder.add_attribute(thing, key, value, self._detail(details))

    def _facts(self, concepts: Sequence[_Concept]) -> None:
        random = self.random
        pairs = [
            (head, tail) for head in concepts for tail in concepts
            if f"{head.kind} {tail.kind}" in _words()["relations"]
        ]  # fmt: skip
        for _ in range(random.randint(*RELATIONS)):
            head, tail = random.choice(pairs)
            known = random.choice(_words()["relations"][f"{head.kind} {tail.kind}"])
            # A verb or a preposition tells which end is which; a made-up noun does not need it.
            relation = self._name(known, alone=" " not in known)
            details, share = self._details(), random.uniform(0.6, 1.0)
            is_several = random.random() < 0.35
            ends = random.sample(tail.things, max(4, int(len(tail.things) * random.random())))
            for thing in head.things:
                if random.random() >= share:
                    continue
                others = [one for one in ends if one != thing]
                for other in random.sample(others, random.randint(1, 3) if is_several else 1):
                    self.builder.add_fact(thing, relation, other, self._detail(details))

    def _quantity(self, unit: str, usual: int) -> Quantity:
        """A number about the usual one, of two or three digits that count."""
        number = self.random.lognormvariate(0, 0.7) * usual
        if usual < 50:
            number = round(number, 1) if unit != NO_UNIT else max(1, round(number))
        else:
            number = float(f"{number:.{self.random.choice((2, 3))}g}")
        return Quantity(int(number) if number == int(number) else number, unit)

    def _time(self, only_year: bool) -> Value:
        year = self.random.randint(*YEARS)
        if only_year:
            return Year(year)
        return Date(year, self.random.randint(1, 12), self.random.randint(1, 28))

    def _details(self) -> Mapping[str, Any]:
        """The qualifiers that facts of a relation or key have: what draws a value, by name."""
        random = self.random
        drawn, table = random.random(), _words()["qualifiers"]
        if drawn < 0.2:
            return {"start time": lambda: self._time(True)}
        if drawn < 0.3:
            return {"point in time": lambda: self._time(True)}
        if drawn < 0.4:
            name, unit, usual = random.choice(table["number"])
            return {name: lambda: self._quantity(unit, usual)}
        if drawn < 0.5:
            return {random.choice(table["text"]): lambda: random.choice(self.values)}
        return {}

    def _detail(self, details: Mapping[str, Any]) -> QualifierInput | None:
        if not details or self.random.random() < 0.3:
            return None
        return {name: draw() for name, draw in details.items()}
