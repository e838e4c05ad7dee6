"""KQA Pro's JSON: one document ``kb.json``, in either spelling, or JSON lines, one node a line.

Lines are the form for big knowledge bases: ``{"id": "Q1", "kind": "entity", "name": …,
"instanceOf": […], "attributes": […], "relations": […]}`` or ``{"id": "C1", "kind": "concept",
"name": …, "subclassOf": […]}``; facts are written as in ``kb.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kb.assemble import CONCEPT, ENTITY, Assembler, RawValue
from kb.problems import Problems
from kb.store import KnowledgeBase, QualifierMap
from kb.values import (
    LARGEST_YEAR,
    Date,
    Quantity,
    Value,
    ValueReadError,
    Year,
    read_time,
    read_year,
)
from kb.valuetable import time_code, year_code
from kopl_base.progress import Progress
from kopl_base.stream import JsonDecoder, JsonStream, TextReader, writing

Spelling = Literal["A", "B"]
Ends = Literal["recorded", "head", "both"]


@dataclass(frozen=True)
class Names:
    """The words in which two published spellings of ``kb.json`` differ."""

    parents: str
    relation: str
    date_separator: str


# A: the file released since 2022; B: older baselines.
SPELLINGS: dict[Spelling, Names] = {
    "A": Names("subclassOf", "relation", "-"),
    "B": Names("instanceOf", "predicate", "/"),
}


DATES = 1 << 18  # different texts of days that are read once only

# Numbers between which there is nothing to look at: they are finite, and floats hold them.
_ORDINARY = 1e300

# A day whose month or day is 00.
_WITHOUT_DAY = re.compile(
    r"(-?[0-9]+)([-/])(?:00?\2[0-9]{1,2}|[0-9]{1,2}(?:\2)00?)",
    re.ASCII,
)


class NodeReader:
    """Reads JSON objects of nodes into an assembler; problems go to the assembler's report.

    The objects are never changed.
    """

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._problems = assembler.problems
        self._dates: dict[str, int] = {}
        self._notes: list[tuple[str, str]] = []

    def concept(self, id: str, node: Any, place: str) -> None:
        """Read a concept: name and parents; relations are read where a concept has some."""
        links = node.get("subclassOf", node.get("instanceOf")) if isinstance(node, dict) else None
        number = self._define(id, node, CONCEPT, [] if links is None else links, place)
        if number < 0:
            return
        if node.get("attributes"):
            self._problems.error("wrong-type", f"{place}/attributes", "concepts have no attributes")
        self._relations(number, node, place)

    def entity(self, id: str, node: Any, place: str) -> None:
        """Read an entity with its facts."""
        links = node.get("instanceOf") if isinstance(node, dict) else None
        number = self._define(id, node, ENTITY, [] if links is None else links, place)
        if number < 0:
            return
        literal = self._assembler.literal
        for at, fact in enumerate(self._list(node, "attributes", place)):
            try:
                key, value = fact["key"], fact["value"]
                if type(key) is not str:
                    raise ValueReadError(f"the key must be a text, not {key!r}")
                raw = self._value(value)
                qualifiers = fact.get("qualifiers")
                pairs = self._qualifiers(qualifiers) if qualifiers else _none(qualifiers)
                if qualifiers is None:
                    self._notes.append(("missing-qualifiers", "no qualifiers; none are assumed"))
            except _NOT_THE_FORM as error:
                self._problems.error(*_explain(error, f"{place}/attributes[{at}]", fact))
                self._notes.clear()
                continue
            if self._notes:
                self._flush(f"{place}/attributes[{at}]")
            literal(number, key, raw, pairs)
        self._relations(number, node, place)

    def _relations(self, number: int, node: dict[str, Any], place: str) -> None:
        relational = self._assembler.relational
        for at, fact in enumerate(self._list(node, "relations", place)):
            try:
                relation = fact["predicate"] if "predicate" in fact else fact["relation"]
                direction, other = fact["direction"], fact["object"]
                if type(relation) is not str or type(other) is not str:
                    raise ValueReadError("the relation and the object must be texts")
                if direction != "forward" and direction != "backward":
                    raise ValueReadError(
                        f'the direction must be "forward" or "backward", not {direction!r}'
                    )
                qualifiers = fact.get("qualifiers")
                pairs = self._qualifiers(qualifiers) if qualifiers else _none(qualifiers)
                if qualifiers is None:
                    self._notes.append(("missing-qualifiers", "no qualifiers; none are assumed"))
            except _NOT_THE_FORM as error:
                self._problems.error(*_explain(error, f"{place}/relations[{at}]", fact))
                self._notes.clear()
                continue
            if self._notes:
                self._flush(f"{place}/relations[{at}]")
            relational(number, relation, direction == "forward", other, pairs)

    def _define(self, id: str, node: Any, kind: int, links: Any, place: str) -> int:
        if not isinstance(id, str):  # only in an object made in Python
            self._problems.error("wrong-type", place, "the id must be a text")
            return -1
        if not isinstance(node, dict):
            self._problems.error("wrong-type", place, f"expected an object, found {_show(node)}")
            return -1
        name = node.get("name")
        if name is None:
            self._problems.error("wrong-type", place, 'there is no "name"')
            return -1
        if not isinstance(name, str):
            self._problems.error("wrong-type", f"{place}/name", f"not a text: {_show(name)}")
            return -1
        if not isinstance(links, list) or not all(isinstance(link, str) for link in links):
            field = "instanceOf" if kind == ENTITY else "subclassOf"
            self._problems.error(
                "wrong-type", f"{place}/{field}", f"expected a list of ids, found {_show(links)}"
            )
            return -1
        aliases = node.get("aliases")
        if aliases is None:
            aliases = []
        elif not isinstance(aliases, list) or not all(isinstance(text, str) for text in aliases):
            self._problems.error(
                "wrong-type",
                f"{place}/aliases",
                f"expected a list of texts, found {_show(aliases)}",
            )
            aliases = []
        return self._assembler.define(id, kind, name, links, place, aliases)

    def _list(self, node: dict[str, Any], field: str, place: str) -> list[Any]:
        found = node.get(field)
        if found is None:
            return []
        if not isinstance(found, list):
            self._problems.error(
                "wrong-type", f"{place}/{field}", f"expected a list, found {_show(found)}"
            )
            return []
        return found

    def _flush(self, place: str) -> None:
        for code, message in self._notes:
            self._problems.warning(code, place, message)
        self._notes.clear()

    def _qualifiers(self, qualifiers: Any) -> list[tuple[str, RawValue]]:
        pairs = []
        for key, values in qualifiers.items():
            if not isinstance(key, str):
                raise ValueReadError(f"a qualifier's key must be a text, not {key!r}")
            if type(values) is not list:
                raise ValueReadError(f"the qualifier {key!r} must have a list of values")
            for value in values:
                pairs.append((key, self._value(value)))
        return pairs

    def _value(self, value: Any) -> RawValue:
        kind, content = value["type"], value["value"]
        if kind == "string":
            if type(content) is not str:
                raise ValueReadError(f"a string value must be a text, not {content!r}")
            return content
        if kind == "quantity":
            if type(content) is not float and type(content) is not int:
                raise ValueReadError(f"a quantity must be a number, not {content!r}")
            unit = value.get("unit")
            if unit is None or unit == "":
                self._notes.append(("missing-unit", 'a quantity without a unit; "1" is assumed'))
                unit = "1"
            if type(unit) is str and -_ORDINARY < content < _ORDINARY:
                return (unit, content + 0.0)  # as `Quantity` does, without making one
            quantity = Quantity(content, unit)
            return (quantity.unit, quantity.number)
        if kind == "date":
            code = self._dates.get(content) if type(content) is str else None
            return self._date(content) if code is None else code
        if kind == "year":
            if type(content) is not int:
                raise ValueReadError(f"a year must be an integer, not {content!r}")
            if -LARGEST_YEAR <= content <= LARGEST_YEAR:
                return year_code(content)
            return time_code(Year(content))  # which says what is wrong
        raise ValueReadError(f"the type of a value is string, quantity, date or year, not {kind!r}")

    def _date(self, content: Any) -> int:
        if type(content) is not str:
            raise ValueReadError(f"a date must be a text, not {content!r}")
        if match := _WITHOUT_DAY.fullmatch(content):
            year = read_year(match[1])
            self._notes.append(
                ("date-without-day", f"{content!r} has month or day 00; it becomes the year {year}")
            )
            return time_code(year)
        time = read_time(content)
        if isinstance(time, Year):
            raise ValueReadError(f"a date must be a day such as 1998-06-27, not {content!r}")
        if len(self._dates) > DATES:
            self._dates.clear()
        self._dates[content] = code = time_code(time)
        return code


def _none(qualifiers: Any) -> tuple[()]:
    """No qualifiers: of what is empty an object alone is of the form."""
    if qualifiers is not None:
        qualifiers.items()
    return ()


# RecursionError: a deeply nested value where a text was expected cannot be shown.
_NOT_THE_FORM = (ValueReadError, KeyError, TypeError, AttributeError, RecursionError)


def _explain(error: Exception, place: str, fact: Any) -> tuple[str, str, str]:
    """Code, place and message for a fact that could not be read."""
    if isinstance(error, ValueReadError):
        code = "bad-date" if "no day" in str(error) else "bad-value"
        return code, place, str(error)
    if isinstance(error, KeyError):
        return "wrong-type", place, f"there is no {error.args[0]!r} in {_show(fact)}"
    return "wrong-type", place, f"not of the form that was expected: {_show(fact)}"


def _show(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


# --- files -----------------------------------------------------------------------------------


def read_kqapro(path: Path | str, problems: Problems | None = None) -> KnowledgeBase:
    """The knowledge base in a ``kb.json`` file (plain, .gz, .bz2 or .xz), read node by node.

    Raises ReadError with file and place for what is malformed; repairs are noted in ``problems``.
    """
    problems = problems or Problems(source=str(path))
    assembler = Assembler(problems)
    reader = NodeReader(assembler)
    with TextReader(Path(path)) as text:
        stream = JsonStream(text)
        if stream.peek() != "{":
            raise stream.fail('expected an object with "concepts" and "entities"')
        seen = set()
        for section in stream.members():
            if section in seen and section in ("concepts", "entities"):
                problems.error("duplicate-section", section, f'the file has "{section}" twice')
            seen.add(section)
            if section not in ("concepts", "entities"):
                stream.value()
                problems.warning("unknown-field", section, "an unknown field; it is passed over")
                continue
            if stream.peek() not in ("{", ""):
                raise stream.fail(f"{section} must be an object of nodes by id")
            read = reader.concept if section == "concepts" else reader.entity
            for id in stream.members():
                node, place = stream.value(), f"{section}/{id}"
                if stream.twice:
                    problems.field_twice(place, stream.twice)
                read(id, node, place)
        stream.end()
        for section in ("concepts", "entities"):
            if section not in seen:
                problems.error("wrong-type", section, f'there is no "{section}" in the file')
    return assembler.finish()


def from_kqapro(document: dict[str, Any], problems: Problems | None = None) -> KnowledgeBase:
    """The knowledge base in the object that a ``kb.json`` file holds; the object is not changed."""
    assembler = Assembler(problems)
    reader = NodeReader(assembler)
    for section in ("concepts", "entities"):
        nodes = document.get(section) if isinstance(document, dict) else None
        if not isinstance(nodes, dict):
            assembler.problems.error("wrong-type", section, "expected an object of nodes by id")
            continue
        read = reader.concept if section == "concepts" else reader.entity
        for id, node in nodes.items():
            read(id, node, f"{section}/{id}")
    return assembler.finish()


def read_lines(path: Path | str, problems: Problems | None = None) -> KnowledgeBase:
    """The knowledge base in a file of JSON lines (plain, .gz, .bz2 or .xz).

    Raises ReadError with file, line and place for what is malformed.
    """
    problems = problems or Problems(source=str(path))
    assembler = Assembler(problems)
    reader, decoder = NodeReader(assembler), JsonDecoder()
    with TextReader(Path(path)) as text:
        for number, line in enumerate(text.lines(), 1):
            place = f"line {number}"
            if not line.strip():
                continue
            try:
                node = decoder.decode(line)
            except (ValueError, RecursionError) as error:
                problems.error("not-json", place, f"the line is not JSON ({error})")
                continue
            id = node.get("id") if isinstance(node, dict) else None
            if not isinstance(id, str):
                problems.error(
                    "wrong-type", place, 'expected an object with an "id" that is a text'
                )
                continue
            if decoder.twice:
                problems.field_twice(f"{place} ({id})", decoder.twice)
            kind = node.get("kind")
            if kind not in ("entity", "concept"):
                problems.error(
                    "wrong-type",
                    f"{place} ({id})",
                    f'"kind" is "entity" or "concept", not {kind!r}',
                )
                continue
            read = reader.concept if kind == "concept" else reader.entity
            read(id, node, f"{place} ({id})")
    return assembler.finish()


# --- writing ---------------------------------------------------------------------------------


def value_json(value: Value, names: Names) -> dict[str, Any]:
    """A value as KQA Pro writes it."""
    if isinstance(value, str):
        return {"type": "string", "value": value}
    if isinstance(value, Quantity):
        number = value.number
        whole = number.is_integer() and abs(number) < 1e16
        content: int | float = int(number) if whole else number
        return {"type": "quantity", "value": content, "unit": value.unit}
    if isinstance(value, Date):
        text = str(value)
        if names.date_separator != "-":
            text = text[0] + text[1:].replace("-", names.date_separator)
        return {"type": "date", "value": text}
    return {"type": "year", "value": value.year}


def qualifiers_json(qualifiers: QualifierMap, names: Names) -> dict[str, Any]:
    """A fact's qualifiers as KQA Pro writes them."""
    return {key: [value_json(v, names) for v in values] for key, values in qualifiers.items()}


def node_json(kb: KnowledgeBase, node: int, names: Names, ends: Ends) -> dict[str, Any]:
    """A node with its facts as KQA Pro writes it."""
    relations = [
        {
            names.relation: record.relation,
            "direction": record.direction,
            "object": record.other,
            "qualifiers": qualifiers_json(record.qualifiers, names),
        }
        for record in kb.records(node, ends)
    ]
    called: dict[str, Any] = {"name": kb.name_of(node)}
    if aliases := kb.aliases_of(node):  # a field of ours
        called["aliases"] = list(aliases)
    if not kb.is_entity(node):
        concept: dict[str, Any] = {
            **called,
            names.parents: [kb.id_of(parent) for parent in kb.parents(node)],
        }
        # KQA Pro's concepts have no facts of their own; written only where there is one.
        return {**concept, "relations": relations} if relations else concept
    return {
        **called,
        "instanceOf": [kb.id_of(concept) for concept in kb.concepts_of(node)],
        "attributes": [
            {
                "key": fact.key,
                "value": value_json(fact.value, names),
                "qualifiers": qualifiers_json(fact.qualifiers, names),
            }
            for fact in kb.attributes(node)
        ],
        "relations": relations,
    }


def nodes_of(kb: KnowledgeBase, *, concepts: bool) -> Iterator[int]:
    """The numbers of the concepts or of the entities, in order."""
    if concepts:
        return iter(range(kb.entity_count, kb.node_count))
    return iter(range(kb.entity_count))


def write_kqapro(
    kb: KnowledgeBase, path: Path | str, *, spelling: Spelling = "A", ends: Ends = "recorded"
) -> None:
    """Write ``kb.json`` in the spelling wanted, compressed when the name ends in .gz or .bz2.

    ``ends``: write each relational fact where its source had it (``recorded``), at its head only
    (``head``), or at both its ends (``both``, as the published executors need it).
    """
    names = SPELLINGS[spelling]
    with writing(path) as file, Progress(f"writing {Path(path).name}", kb.node_count) as bar:
        for section, concepts in (("concepts", True), ("entities", False)):
            file.write("{" if concepts else ", ")
            file.write(f'"{section}": {{')
            for at, node in enumerate(nodes_of(kb, concepts=concepts)):
                text = json.dumps(node_json(kb, node, names, ends), ensure_ascii=False)
                file.write(f"{',' if at else ''}\n{json.dumps(kb.id_of(node))}: {text}")
                bar.advance(1)
            file.write("\n}")
        file.write("}\n")


def write_lines(kb: KnowledgeBase, path: Path | str, *, ends: Ends = "recorded") -> None:
    """Write JSON lines, concepts first; compressed when the name ends in .gz or .bz2."""
    names = SPELLINGS["A"]
    with writing(path) as file, Progress(f"writing {Path(path).name}", kb.node_count) as bar:
        for concepts in (True, False):
            kind = "concept" if concepts else "entity"
            for node in nodes_of(kb, concepts=concepts):
                line = {"id": kb.id_of(node), "kind": kind, **node_json(kb, node, names, ends)}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                bar.advance(1)
