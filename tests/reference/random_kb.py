"""Small random knowledge bases (kb.json objects, spelling A), full of the awkward.

Keys, values and qualifiers come from small pools per knowledge base, so that facts coincide, tie
and join. Nothing here iterates over a set: one seed gives one knowledge base on every run.

>>> random_kb(random.Random(7)) == random_kb(random.Random(7))
True
"""

import random
from typing import Any
from unicodedata import normalize

SIZES = {
    "tiny": ((2, 5), (2, 4)),
    "small": ((6, 25), (4, 10)),
    "medium": ((40, 80), (10, 20)),
}  # entities, concepts

NAMES = [
    "Akron",
    "Cleveland Cavaliers",
    "LeBron James",
    "LeBron James Jr.",
    "Ohio",
    "Jerusalem",
    "human",
    "team",
    "city",
    'the "King"',
    "O'Neal",
    "back\\slash",
    "end\\",
    "two\nlines",
    "a\ttab",
    "double  blank",
    " trimmed ",
    "no\u00a0break\u3000blank",
    "M\u00fcnchen",
    "Mu\u0308nchen",
    "\u6771\u4eac",
    "\u041c\u043e\u0441\u043a\u0432\u0430",
    "\ufb01sh",
    "\U0001d518nicode",
    "\U0001f600",
    "x <arg> y",
    "<func>",
    "100%",
    "%20",
    "snake_case",
    "snake case",
    "a:b",
    "2001",
    "007",
    "5 metre",
    "yes",
    "Yes",
    "( a , b )",
    "What",
    "$&{}|^`",
]

# Used as attribute keys, relations and qualifier keys alike: some fall together.
KEYS = [
    "height",
    "population",
    "date of birth",
    "inception",
    "gender",
    "official name",
    "capital",
    "point in time",
    "start time",
    "language",
    "place of birth",
    "part of",
    "drafted by",
    "spouse",
]
AWKWARD_KEYS = [
    "a_b",
    "a b",
    "a%20b",
    "a:b",
    "pred:name",
    "name",
    "/lead",
    "..",
    "what?",
    "#1",
    "in/out",
    'the "key"',
    "back\\slash",
    "<arg>",
    "<func>",
    "\u6771",
    "e\u0301t\u00e9",
    "two\nlines",
    " padded ",
    "Height",
]

UNITS = ["1", "metre", "centimetre", "square kilometre", "Metre", "\u00b5g", "dollar/hour", "%"]

STRINGS = [
    "male",
    "Male",
    "female",
    "English",
    " padded ",
    "double  blank",
    'say "hi"',
    "it's",
    "back\\slash",
    "two\nlines",
    "tab\there",
    "caf\u00e9",
    "cafe\u0301",
    "\u6771\u4eac",
    "\ufb01sh",
    "\U0001f600",
    "x <arg> y",
    "<func>",
    "5",
    "5.0",
    "5 metre",
    "2001",
    "2001-02-03",
    "007",
    "yes",
    "nan",
    "50%",
    "a_b",
    "http://a.b/c?d#e",
    "@en",
    'x"^^<y>',
    "",
]

NUMBERS = [
    0,
    -0.0,
    1,
    1.0,
    2,
    5,
    7,
    100,
    100000.0,
    -3,
    -3.5,
    0.1,
    0.3,
    0.30000000000000004,
    1.75,
    206,
    199110,
    2001,
    1e22,
    1e-7,
    -1e-7,
    123456789.125,
    9007199254740993,
    1e21,
    2.5e-5,
]
RARE_NUMBERS = [5e-324, 1.7976931348623157e308, -1e300]

YEARS = [2001, 2000, 1999, 1980, 1, 0, -1, -44, 10000, 207]
DATES = [
    (2001, 2, 3),
    (2001, 2, 4),
    (2001, 12, 31),
    (2000, 2, 29),
    (1999, 1, 1),
    (1980, 6, 1),
    (1, 1, 1),
    (0, 2, 29),
    (-1, 12, 31),
    (-44, 3, 15),
    (-4, 2, 29),
    (10000, 1, 1),
    (1582, 10, 10),
]

PROFILES = ["string", "quantity", "time", "quantity", "time", "mixed"]


def random_kb(rng: random.Random, size: str = "small") -> dict[str, Any]:
    """A knowledge base with namesakes, ties, shared keys and everything that is repaired."""
    return _Maker(rng, size).make()


class _Maker:
    def __init__(self, rng: random.Random, size: str) -> None:
        self.rng = rng
        entities, concepts = SIZES[size]
        self.entities = self._ids("Q", rng.randint(*entities))
        self.concepts = self._ids("C", rng.randint(*concepts))
        rng.shuffle(self.entities)
        rng.shuffle(self.concepts)
        self.flaws = rng.random() < 0.3  # what is repaired with a warning
        self.used_names: list[str] = []
        keys = KEYS + rng.sample(AWKWARD_KEYS, 5)
        self.keys = rng.sample(keys, rng.randint(5, 7))
        self.relations = self._drawn(keys, self.keys, rng.randint(3, 5))
        self.qkeys = self._drawn(keys, self.keys + self.relations, rng.randint(3, 5))
        self.values = {key: self._pool(5) for key in self.keys}
        self.qvalues = {key: self._pool(4) for key in self.qkeys}

    def _ids(self, letter: str, count: int) -> list[str]:
        form = self.rng.choice([letter + "{}"] * 6 + ["/m/" + letter + "{}", letter + " {}_%"])
        return [form.format(i) for i in range(1, count + 1)]

    def _drawn(self, keys: list[str], shared: list[str], count: int) -> list[str]:
        """Different keys, some of them shared with another role."""
        drawn = [
            self.rng.choice(shared if self.rng.random() < 0.35 else keys) for _ in range(count)
        ]
        return list(dict.fromkeys(drawn))

    def _pool(self, count: int) -> list[dict[str, Any]]:
        """The values of one key: mostly of one type, with one or two units."""
        rng = self.rng
        profile = rng.choice(PROFILES)
        units = rng.sample(UNITS, rng.choice([1, 2, 2, 3]))
        pool = []
        for _ in range(count):
            kind = profile
            if kind == "mixed" or rng.random() < 0.08:
                kind = rng.choice(["string", "quantity", "time"])
            pool.append(self._value(kind, units))
            if kind == "string" and rng.random() < 0.3:  # almost the same
                pool.append({"type": "string", "value": _almost(pool[-1]["value"], rng)})
        return pool

    def _value(self, kind: str, units: list[str]) -> dict[str, Any]:
        rng = self.rng
        if kind == "string":
            return {"type": "string", "value": rng.choice(STRINGS)}
        if kind == "quantity":
            rare = rng.random() < 0.03
            number = rng.choice(RARE_NUMBERS if rare else NUMBERS)
            unit = rng.choice(units)
            if unit == "1" and self.flaws and rng.random() < 0.5:
                return {"type": "quantity", "value": number}
            return {"type": "quantity", "value": number, "unit": unit}
        if rng.random() < 0.4:
            return {"type": "year", "value": rng.choice(YEARS)}
        year, month, day = rng.choice(DATES)
        if self.flaws and rng.random() < 0.2:
            month, day = rng.choice([(0, 0), (month, 0), (0, day)])
        mark = "/" if rng.random() < 0.2 else "-"
        sign = "-" if year < 0 else ""
        text = f"{sign}{abs(year):04d}{mark}{month:02d}{mark}{day:02d}"
        return {"type": "date", "value": text}

    def make(self) -> dict[str, Any]:
        concepts = {one: self._concept(i) for i, one in enumerate(self.concepts)}
        entities = {one: self._entity() for one in self.entities}
        if self.rng.random() < 0.25:  # a cycle, sometimes of one
            first, second = self.rng.choice(self.concepts), self.rng.choice(self.concepts)
            for one, other in ((first, second), (second, first)):
                if other not in concepts[one]["subclassOf"]:
                    concepts[one]["subclassOf"].append(other)
        for _ in range(self.rng.randint(1, 3) * len(self.entities)):
            self._relate(entities)
        for record in entities.values():
            self.rng.shuffle(record["relations"])
        if self.flaws:
            self._dangle(concepts, entities)
        for node in (*concepts.values(), *entities.values()):
            if self.rng.random() < 0.3:  # many are the names of others
                node["aliases"] = self.rng.choices(NAMES, k=self.rng.choice([1, 1, 2, 3]))
        return {"concepts": concepts, "entities": entities}

    def _name(self) -> str:
        rng = self.rng
        if self.used_names and rng.random() < 0.3:
            name = rng.choice(self.used_names)  # a namesake
            if rng.random() < 0.2:
                name = name.replace(" ", "  ") + " "  # the same name, written otherwise
        elif rng.random() < 0.02:
            name = rng.choice(["", " "])
        else:
            name = rng.choice(NAMES)
        self.used_names.append(name)
        return name

    def _concept(self, place: int) -> dict[str, Any]:
        above = self.concepts[:place]
        parents = self.rng.sample(above, min(len(above), self.rng.choice([0, 1, 1, 2, 3])))
        return {"name": self._name(), "subclassOf": parents}

    def _entity(self) -> dict[str, Any]:
        rng = self.rng
        attributes = []
        for key in self.keys:
            if rng.random() < 0.6:
                for _ in range(rng.choice([1, 1, 1, 2, 3])):
                    attributes.append(
                        {
                            "key": key,
                            "value": dict(rng.choice(self.values[key])),
                            "qualifiers": self._qualifiers(),
                        }
                    )
        if attributes and rng.random() < 0.4:  # the same fact twice
            attributes.append(_copy(rng.choice(attributes)))
        for fact in attributes:
            if self.flaws and not fact["qualifiers"] and rng.random() < 0.3:
                del fact["qualifiers"]
        rng.shuffle(attributes)
        return {
            "name": self._name(),
            "instanceOf": rng.sample(self.concepts, rng.choice([0, 1, 1, 1, 2])),
            "attributes": attributes,
            "relations": [],
        }

    def _qualifiers(self) -> dict[str, list[dict[str, Any]]]:
        rng = self.rng
        if rng.random() < 0.35:
            return {}
        qkeys = rng.sample(self.qkeys, min(len(self.qkeys), rng.choice([1, 1, 2, 3])))
        return {
            qkey: [dict(rng.choice(self.qvalues[qkey])) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
            for qkey in qkeys
        }

    def _relate(self, entities: dict[str, Any]) -> None:
        """One relational fact, written at both ends, at one, twice, or in another order."""
        rng = self.rng
        one, relation = rng.choice(self.entities), rng.choice(self.relations)
        chance = rng.random()
        other = rng.choice(self.entities)
        if chance < 0.06:
            other = one
        elif chance < 0.25:
            other = rng.choice(self.concepts)
        forward = rng.random() < 0.5
        for _ in range(rng.choice([1, 1, 1, 2])):  # twice: with other qualifiers
            qualifiers = self._qualifiers()
            here = self._record(relation, forward, other, qualifiers)
            there = self._record(relation, not forward, one, self._rearranged(qualifiers))
            way = rng.random()
            if way < 0.8 or other not in entities:
                entities[one]["relations"].append(here)
            if way > 0.2 and other in entities:
                entities[other]["relations"].append(there)
            if rng.random() < 0.05:  # the same record twice at one end
                entities[one]["relations"].append(_copy(here))

    def _record(self, relation: str, forward: bool, other: str, qualifiers: Any) -> dict[str, Any]:
        return {
            "relation": relation,
            "direction": "forward" if forward else "backward",
            "object": other,
            "qualifiers": qualifiers,
        }

    def _rearranged(self, qualifiers: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """The same set of pairs, in another order, sometimes with a pair repeated."""
        qkeys = list(qualifiers)
        self.rng.shuffle(qkeys)
        again = {}
        for qkey in qkeys:
            again[qkey] = [dict(value) for value in qualifiers[qkey]]
            if self.rng.random() < 0.1:
                again[qkey].append(dict(again[qkey][0]))
            self.rng.shuffle(again[qkey])
        return again

    def _dangle(self, concepts: dict[str, Any], entities: dict[str, Any]) -> None:
        """Links and facts to ids that are not there."""
        rng = self.rng
        concepts[rng.choice(self.concepts)]["subclassOf"].append("C999")
        entity = entities[rng.choice(self.entities)]
        entity["instanceOf"].append("C998")
        relation = rng.choice(self.relations)
        entity["relations"].append(self._record(relation, True, "Q999", self._qualifiers()))


def _almost(text: str, rng: random.Random) -> str:
    return rng.choice([text.swapcase(), text.strip(), text + " ", normalize("NFD", text)])


def _copy(fact: dict[str, Any]) -> dict[str, Any]:
    qualifiers = {q: [dict(v) for v in vs] for q, vs in fact["qualifiers"].items()}
    copied = {**fact, "qualifiers": qualifiers}
    if "value" in fact:
        copied["value"] = dict(fact["value"])
    return copied
