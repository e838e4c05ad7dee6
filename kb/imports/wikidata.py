"""Reads Wikidata's JSON dumps: one entity a line, in an array or as plain JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kb.assemble import CONCEPT, ENTITY, Assembler, RawValue
from kb.imports.common import (
    HAS_CLASS,
    HAS_PARENT,
    USED,
    Nodes,
    Report,
    finish,
    malformed,
    twice_readable,
)
from kb.imports.snaks import NO_VALUE, Amount, Item, LeftOut, SnakValue, snak_value
from kb.problems import Problems
from kb.store import KnowledgeBase, normalise_name
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader

INSTANCE_OF, SUBCLASS_OF = "P31", "P279"
KEPT, REFERRED, SEEN = 8, 16, 32  # flags beside those of `Nodes`
LANGUAGES = ("en", "mul")

# The id of an entity, in the order in which dumps write the fields.
_HEAD = re.compile(
    r'\{\s*(?:"(?:pageid|ns|lastrevid)":\s*[0-9]+,\s*|"(?:title|modified)":\s*"[^"\\]*",\s*)*'
    r'"type":\s*"[a-z]+",\s*(?:"datatype":\s*"[a-z-]+",\s*)?"id":\s*"([A-Z][0-9]+)"'
)
_MALFORMED = (KeyError, TypeError, AttributeError, ValueError)
_DANGLING = "statements left out: the object is not kept or has no label"
_NO_LABEL = "items left out: no label in the languages"

Statement = tuple[str, SnakValue, list[tuple[str, SnakValue]]]


def read_wikidata(
    paths: Path | str | Iterable[Path | str],
    problems: Problems | None = None,
    *,
    languages: Iterable[str] = LANGUAGES,
    ids: Collection[str] | None = None,
    properties: Collection[str] | None = None,
    limit: int | None = None,
    external_ids: bool = False,
    labels: Mapping[str, str] | None = None,
    skip_malformed: bool = False,
    report: Report | None = None,
) -> KnowledgeBase:
    """The knowledge base in dumps of Wikidata (plain, .gz, .bz2 or .xz), which are read twice.

    Names are labels in the first of the ``languages`` that an item has, else those in ``labels``;
    its other labels and its aliases in these languages are aliases.
    Kept are the items of ``ids`` (default: all), the first ``limit`` of them, that have a label,
    and the classes that they name; of their statements those of ``properties`` (default: all) and
    the class links. An item with a parent (P279) is a concept, and so is one that is used as a
    class and has no class (P31) itself. Items become relations, texts, URLs, quantities, days and
    years attributes, and with ``external_ids`` external ids as well. Deprecated statements,
    missing values and what has no label or no place are left out and counted in ``report``.

    Memory grows with the facts, the labels of what is kept, and the labels of the classes, units
    and qualifiers that this names; not with the size of the dump. Raises ReadError with file and
    line for what is malformed, unless it is to be skipped and counted.
    """
    files = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    reader = _Reader(files, problems or Problems(), report if report is not None else Report())
    reader.languages = tuple(languages)
    reader.ids = None if ids is None else frozenset(ids)
    reader.chosen = None if properties is None else frozenset(properties)
    reader.limit, reader.external_ids = limit, external_ids
    reader.extra, reader.skip = labels or {}, skip_malformed
    return reader.read()


class _Reader:
    """The state of a reading: what is known of each item, and what was collected so far."""

    languages: tuple[str, ...] = LANGUAGES
    ids: frozenset[str] | None = None
    chosen: frozenset[str] | None = None
    limit: int | None = None
    external_ids = False
    extra: Mapping[str, str]
    skip = False

    def __init__(self, files: list[Path], problems: Problems, report: Report) -> None:
        self._files, self._problems, self._report = files, problems, report
        self._assembler = Assembler(problems)
        self._nodes = Nodes()
        self._names: list[str] = []
        self._ids: list[str] = []
        self._parents: dict[int, list[int]] = {}  # of concepts
        self._aliases: dict[int, list[str]] = {}  # of concepts
        self._properties: dict[str, tuple[str, str | None]] = {}  # label, datatype
        self._bad: set[tuple[int, int]] = set()  # lines that are passed over
        self._kept, self._found = 0, 0
        self._last = (-1, -1)  # the last line of a kept item
        self._place, self._at = "", (0, 0)

    def read(self) -> KnowledgeBase:
        """The knowledge base, after two passes."""
        for path in self._files:
            twice_readable(path)
        self._first_pass()
        if not self._kept:
            wanted = "item" if self.ids is None else "item of the list"
            raise ReadError(
                f"there is no {wanted} with a label in {' or '.join(self.languages)}; are these"
                " entities of Wikidata in JSON, one a line?",
                source=", ".join(map(str, self._files)),
            )
        self._second_pass()
        self._define_concepts()
        return finish(self._assembler, self._report, _DANGLING)

    # --- lines -----------------------------------------------------------------------------

    def _lines(self, title: str) -> Iterator[tuple[str, str]]:
        """The id (if it stands in front) and the text of each line that may be an entity."""
        for file, path in enumerate(self._files):
            self._problems.source = str(path)
            is_array = is_closed = False
            with TextReader(path, f"{title} {path.name}") as text:
                for number, line in enumerate(text.lines(), 1):
                    self._at = (file, number)
                    line = line.strip().rstrip(",").rstrip()
                    if line in ("", "[", "]"):
                        is_array, is_closed = is_array or line == "[", line == "]" or is_closed
                        continue
                    self._place = f"line {number}"
                    if is_closed:
                        self._malformed("text follows the end of the array")
                    elif self._at not in self._bad:
                        head = _HEAD.match(line)
                        yield (head[1] if head else ""), line
            if is_array and not is_closed and self._at not in self._bad:
                self._place = f"line {self._at[1]}"
                self._malformed("the array is not closed by ']'; is the file cut short?")

    def _malformed(self, message: str) -> None:
        if self._at not in self._bad:
            self._bad.add(self._at)
            malformed(
                self._problems, self._report, self.skip, self._place, message, "lines left out"
            )

    def _entity(self, line: str, id: str) -> dict[str, Any] | None:
        """The object of a line; None when it is malformed or no item or property."""
        try:
            entity = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._malformed(f"the line is not JSON ({error})")
            return None
        if isinstance(entity, list):
            self._malformed("several entities on a line; write one a line, as with jq -c '.[]'")
        elif not isinstance(entity, dict) or not isinstance(entity.get("id"), str):
            self._malformed('expected an entity: an object with an "id" that is a text')
        elif id and entity["id"] != id:
            self._malformed(f"the entity has two ids, {id} and {entity['id']}")
        elif not isinstance(entity.get("labels") or {}, dict):
            self._malformed('"labels" is no object')
        elif (language := self._odd_aliases(entity)) is not None:
            self._malformed(f'the aliases in "{language}" are not as expected')
        elif not isinstance(entity.get("claims") or {}, dict):
            self._malformed('"claims" is no object')
        elif "redirect" not in entity:
            return entity
        return None

    # --- the first pass: labels, classes, what kept items refer to --------------------------

    def _first_pass(self) -> None:
        for id, line in self._lines("reading labels of"):
            if id and id[0] == "Q" and not self._is_wanted(id) and not self._is_referred(id):
                continue
            if id and id[0] not in "QP":
                continue
            entity = self._entity(line, id)
            if entity is None:
                continue
            id = entity["id"]
            if id[:1] == "P":
                self._property(entity)
            elif id[:1] == "Q" and (self._is_wanted(id) or self._is_referred(id)):
                self._item(entity, wanted=self._is_wanted(id))
        if self.ids is not None and (missing := len(self.ids) - self._found) and not self._full:
            self._report["ids of the list that are not in the files"] += missing

    @property
    def _full(self) -> bool:
        return self.limit is not None and self._kept >= self.limit

    def _is_wanted(self, id: str) -> bool:
        return not self._full and (self.ids is None or id in self.ids)

    def _is_referred(self, id: str) -> bool:
        number = self._nodes.number.get(id)
        return number is not None and bool(self._nodes.flags[number] & REFERRED)

    def _number(self, id: str) -> int:
        number = self._nodes.add(id)
        if number == len(self._names):
            self._ids.append(id)
            self._names.append(normalise_name(self.extra.get(id, "")))
        return number

    def _label(self, entity: dict[str, Any]) -> str:
        """The label in the first language there is; "" without one, or when it is malformed."""
        labels = entity.get("labels") or {}
        for language in self.languages:
            entry = labels.get(language)
            if entry is None:
                continue
            if not isinstance(entry, dict) or not isinstance(entry.get("value"), str):
                self._malformed(f'the label in "{language}" is not as expected')
                return ""
            if name := normalise_name(entry["value"]):
                return name
        return ""

    def _odd_aliases(self, entity: dict[str, Any]) -> str | None:
        """The language whose aliases are no list of texts, None where there is none such."""
        aliases = entity.get("aliases") or {}
        if not isinstance(aliases, dict):
            return "*"
        for language in self.languages:
            listed = aliases.get(language) or []
            if not isinstance(listed, list) or not all(
                isinstance(entry, dict) and isinstance(entry.get("value"), str) for entry in listed
            ):
                return language
        return None

    def _called(self, entity: dict[str, Any]) -> list[str]:
        """Labels and aliases in the languages, in their order."""
        labels, aliases = entity.get("labels") or {}, entity.get("aliases") or {}
        found: list[str] = []
        for language in self.languages:
            entry = labels.get(language)
            if isinstance(entry, dict) and isinstance(entry.get("value"), str):
                found.append(entry["value"])
            found += [entry["value"] for entry in aliases.get(language) or ()]
        return [text for text in found if text.strip()]

    def _property(self, entity: dict[str, Any]) -> None:
        label = self._label(entity) or normalise_name(self.extra.get(entity["id"], ""))
        datatype = entity.get("datatype")
        self._properties[entity["id"]] = (label, datatype if isinstance(datatype, str) else None)

    def _item(self, entity: dict[str, Any], *, wanted: bool) -> None:
        """Take down label and class links, and what a kept item refers to."""
        number = self._number(entity["id"])
        flags = self._nodes.flags
        if flags[number] & SEEN:
            self._malformed(f"{entity['id']} is there a second time")
            return
        label = self._label(entity)
        if self._at in self._bad:
            return
        flags[number] |= SEEN
        self._names[number] = label or self._names[number]
        self._found += wanted
        kept = wanted and bool(self._names[number])
        if flags[number] & USED and not kept:
            self._aliases[number] = self._called(entity)
        if kept:
            flags[number] |= KEPT
            self._kept, self._last = self._kept + 1, self._at
        elif wanted:
            self._report[_NO_LABEL] += 1
        partial = kept and (self.ids is not None or self.limit is not None)
        only = None if partial else (INSTANCE_OF, SUBCLASS_OF)
        for property, value, qualifiers in self._statements(entity, only, count=False):
            if property in (INSTANCE_OF, SUBCLASS_OF) and isinstance(value, Item):
                flags[number] |= HAS_CLASS if property == INSTANCE_OF else HAS_PARENT
                above = self._number(value.id)
                flags[above] |= (USED | REFERRED) * kept
                if property == SUBCLASS_OF and not kept:
                    self._parents.setdefault(number, []).append(above)
            if partial:
                self._refer(value if isinstance(value, Amount) else NO_VALUE)
                for _, qualifier in qualifiers:
                    self._refer(qualifier)

    def _refer(self, value: SnakValue) -> None:
        """Note that the label of a unit or of a qualifier's item is needed."""
        if isinstance(value, Item | Amount):
            id = value.id if isinstance(value, Item) else value.unit
            self._nodes.flags[self._number(id)] |= REFERRED

    # --- statements ------------------------------------------------------------------------

    def _statements(
        self, entity: dict[str, Any], only: Collection[str] | None, *, count: bool
    ) -> Iterator[Statement]:
        """The statements that are not left out, with their values and qualifiers."""
        for property, group in (entity.get("claims") or {}).items():
            if not self._is_chosen(property) or (only is not None and property not in only):
                continue
            if not isinstance(group, list):
                self._bad_statement(entity, property, "a list was expected", count=count)
                continue
            for statement in group:
                try:
                    if statement.get("rank") == "deprecated":
                        self._count("statements left out: deprecated", count)
                        continue
                    value = self._value(statement["mainsnak"], property)
                    if isinstance(value, LeftOut):
                        self._count(f"statements left out: {value.reason}", count)
                        continue
                    yield property, value, self._qualifiers(statement, count=count)
                except _MALFORMED as error:
                    self._bad_statement(entity, property, _explain(error), count=count)

    def _qualifiers(self, statement: dict[str, Any], *, count: bool) -> list[tuple[str, SnakValue]]:
        found: dict[tuple[str, SnakValue], None] = {}  # one that is there twice counts once
        groups = statement.get("qualifiers") or {}
        if not isinstance(groups, dict):
            raise TypeError("the qualifiers are no object")
        for property in dict.fromkeys([*statement.get("qualifiers-order", ()), *groups]):
            for snak in groups[property]:
                value = self._value(snak, property)
                if isinstance(value, LeftOut):
                    self._count(f"qualifiers left out: {value.reason}", count)
                else:
                    found[property, value] = None
        return list(found)

    def _value(self, snak: Any, property: str) -> SnakValue:
        datatype = self._properties.get(property, ("", None))[1]
        return snak_value(snak, datatype, external_ids=self.external_ids)

    def _is_chosen(self, property: str) -> bool:
        classes = (INSTANCE_OF, SUBCLASS_OF)
        return self.chosen is None or property in self.chosen or property in classes

    def _count(self, what: str, count: bool) -> None:
        if count:
            self._report[what] += 1

    def _bad_statement(
        self, entity: dict[str, Any], property: str, message: str, *, count: bool
    ) -> None:
        if count or not self.skip:
            place = f"{self._place} ({entity['id']}/{property})"
            malformed(
                self._problems, self._report, self.skip, place, message, "statements left out"
            )

    # --- the second pass: statements ---------------------------------------------------------

    def _second_pass(self) -> None:
        flags = self._nodes.flags
        for id, line in self._lines("reading statements of"):
            if id and not self._is_needed(id):
                continue
            entity = self._entity(line, id)
            if entity is None or not self._is_needed(entity["id"]):
                continue
            number = self._nodes.number[entity["id"]]
            if not flags[number] & KEPT:
                # What stands in front of the item that names it, and so was passed over before.
                self._item(entity, wanted=False)
                continue
            self._add(entity, number)
            if self._at == self._last:
                break

    def _is_needed(self, id: str) -> bool:
        number = self._nodes.number.get(id)
        if number is None:
            return False
        flags = self._nodes.flags[number]
        return bool(flags & KEPT) or flags & (REFERRED | SEEN) == REFERRED

    def _add(self, entity: dict[str, Any], number: int) -> None:
        """Add a kept item with its facts; concepts are defined at the end."""
        id, is_concept = entity["id"], self._nodes.is_concept(number)
        owner = self._assembler.node(id)
        classes: list[str] = []
        seen: set[tuple[str, RawValue, tuple[tuple[str, RawValue], ...]]] = set()
        for property, value, qualifiers in self._statements(entity, None, count=True):
            if property in (INSTANCE_OF, SUBCLASS_OF):
                self._link(number, property, value, classes)
                continue
            key = self._key(property)
            if not key:
                self._report["statements left out: the property has no label"] += 1
            elif isinstance(value, Item):
                other = self._nodes.number.get(value.id, -1)
                # A class that is not kept itself may yet turn out to be none, or to have no label.
                if other < 0 or not self._nodes.flags[other] & (KEPT | USED):
                    self._report[_DANGLING] += 1
                    continue
                pairs = self._pairs(qualifiers)
                self._assembler.relational(owner, key, True, value.id, pairs)
            elif is_concept:
                self._report["statements left out: attributes of concepts"] += 1
            elif (raw := self._raw(value)) is None:
                self._report["statements left out: the unit has no label"] += 1
            else:
                pairs = self._pairs(qualifiers)
                if (fact := (key, raw, tuple(pairs))) not in seen:
                    seen.add(fact)
                    self._assembler.literal(owner, key, raw, pairs)
        called = self._called(entity)
        if is_concept:
            self._aliases[number] = called
        else:
            name = self._names[number]
            self._assembler.define(id, ENTITY, name, classes, self._place, called)

    def _link(self, number: int, property: str, value: SnakValue, classes: list[str]) -> None:
        if not isinstance(value, Item):
            return
        above = self._nodes.number[value.id]
        if property == SUBCLASS_OF:
            self._parents.setdefault(number, []).append(above)
        elif self._nodes.is_concept(number):
            self._report["class links left out: a concept is no instance"] += 1
        elif not self._is_there(above):
            self._report["class links left out: the class has no label"] += 1
        elif not self._nodes.is_concept(above):
            self._report["class links left out: the class is an entity"] += 1
        elif value.id not in classes:
            classes.append(value.id)

    def _is_there(self, number: int) -> bool:
        """Whether a node is kept, or is a class that a kept item names, and has a label."""
        flags = self._nodes.flags[number]
        return bool(self._names[number]) and bool(flags & (KEPT | USED))

    def _key(self, property: str) -> str:
        label = self._properties.get(property, ("", None))[0]
        return label or normalise_name(self.extra.get(property, ""))

    def _raw(self, value: SnakValue) -> RawValue | None:
        """The value as it is stored: an item as its label; None without the label it needs."""
        if not isinstance(value, Item | Amount):
            assert not isinstance(value, LeftOut)
            return value
        number = self._nodes.number.get(value.id if isinstance(value, Item) else value.unit, -1)
        name = self._names[number] if number >= 0 else ""
        if not name:
            return None
        return name if isinstance(value, Item) else (name, value.number)

    def _pairs(self, qualifiers: list[tuple[str, SnakValue]]) -> list[tuple[str, RawValue]]:
        found: dict[tuple[str, RawValue], None] = {}
        for property, value in qualifiers:
            key, raw = self._key(property), self._raw(value)
            if not key or raw is None:
                what = "property" if not key else "item or unit"
                self._report[f"qualifiers left out: the {what} has no label"] += 1
            else:
                found[key, raw] = None
        return list(found)

    def _define_concepts(self) -> None:
        nodes = self._nodes
        for number, id in enumerate(self._ids):
            if not self._is_there(number) or not nodes.is_concept(number):
                continue
            parents = dict.fromkeys(self._parents.get(number, ()))
            there = [p for p in parents if self._is_there(p) and nodes.is_concept(p)]
            if nodes.flags[number] & KEPT and len(parents) > len(there):
                self._report["class links left out: the class has no label"] += len(parents) - len(
                    there
                )
            links = [self._ids[parent] for parent in there]
            called = self._aliases.get(number, ())
            name, place = self._names[number], f"concepts/{id}"
            self._assembler.define(id, CONCEPT, name, links, place, called)


def _explain(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no {error.args[0]!r}"
    return f"not of the form that was expected ({error})"
