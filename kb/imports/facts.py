"""Reads tables of facts: head, relation, tail, then qualifiers, as a mapping describes them."""

from __future__ import annotations

import logging
import shlex
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kb.assemble import CONCEPT, ENTITY, Assembler, RawValue, raw_value
from kb.imports.common import (
    HAS_CLASS,
    HAS_PARENT,
    USED,
    Nodes,
    Report,
    finish,
    malformed,
    refuse_no_text,
    table_rows,
    twice_readable,
)
from kb.imports.factmap import Column, FactMap, ValueType
from kb.imports.forms import guess_form, words_of
from kb.problems import Problems
from kb.store import KnowledgeBase, normalise_name
from kb.values import NO_UNIT, Quantity, Value, ValueReadError, read_quantity, read_time, read_year
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader

log = logging.getLogger("kb")

_DROPPED = "rows left out: an end is no node"
_TEXT = ValueType("string")
_LOOKED_AT = 1000  # rows, to see of which form a table is


def read_fact_tables(
    paths: Path | str | Iterable[Path | str],
    problems: Problems | None = None,
    *,
    mapping: FactMap | None = None,
    labels: Mapping[str, str] | None = None,
    skip_malformed: bool = False,
    report: Report | None = None,
) -> KnowledgeBase:
    """The knowledge base in tables of facts (plain, .gz, .bz2 or .xz), as the mapping says.

    The mapping is described in `kb.imports.factmap`.
    Ids get the names that the mapping's label files, else ``labels``, have for them. A node that
    is below another one (by the mapping's relation for that) is a concept, and so is one that is
    used as a class and has no class itself. With class links the files are read twice. Memory
    grows with the facts and the labels. Equal rows are one fact.

    Raises ReadError for a table that, without a mapping, looks as if it had a header and a row for
    each thing, and with file and line for a row that is malformed, unless such rows are to be
    skipped and counted in ``report``.
    """
    files = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if mapping is None:
        for file in files:
            _refuse_things(file)
    reader = _Reader(files, mapping or FactMap(), labels or {}, problems or Problems())
    reader.skip = skip_malformed
    reader.report = report if report is not None else Report()
    return reader.read()


@dataclass(slots=True)
class _Row:
    """The cells of a row that matter, by what they are."""

    place: str
    head: str
    relation: str
    tail: str
    qualifiers: list[tuple[str, str]]


class _Reader:
    """The state of a reading."""

    skip = False
    report: Report

    def __init__(
        self, files: list[Path], mapping: FactMap, labels: Mapping[str, str], problems: Problems
    ) -> None:
        self._files, self._map, self._labels = files, mapping, labels
        self._problems = problems
        self._assembler = Assembler(problems)
        self._nodes = Nodes()
        self._links = {flag: (array("i"), array("i")) for flag in (HAS_CLASS, HAS_PARENT)}
        self._literals: set[tuple[int, str, RawValue, tuple[tuple[str, RawValue], ...]]] = set()
        self._bad: set[tuple[str, str]] = set()  # rows that were passed over
        self._met: set[str] = set()  # relations
        self._classes = {
            relation: flag
            for relation, flag in (
                (mapping.instance_of, HAS_CLASS),
                (mapping.subclass_of, HAS_PARENT),
            )
            if relation
        }
        self._named = {*mapping.attributes, *mapping.aliases, *self._classes}
        self._aliases = {id: list(texts) for id, texts in mapping.entity_aliases.items()}

    def read(self) -> KnowledgeBase:
        """The knowledge base."""
        if self._classes:
            for path in self._files:
                twice_readable(path)
            for row in self._rows("reading classes of"):
                if row.relation in self._classes and not self._lacks_label(row):
                    self._link(row)
        for row in self._rows("reading facts of"):
            self.report["rows"] += 1
            self._met.add(row.relation)
            if what := self._lacks_label(row):
                self.report[f"rows left out: no label of the {what}"] += 1
            elif row.relation not in self._classes:
                self._fact(row)
        if self._named and not self._named & self._met:
            log.warning(
                "%s: no row has a relation that the mapping names (%s)",
                ", ".join(map(str, self._files)),
                ", ".join(sorted(self._named)),
            )
        if not self._nodes.number:
            raise ReadError("there are no facts", source=", ".join(map(str, self._files)))
        self._define()
        return finish(self._assembler, self.report, _DROPPED)

    # --- rows --------------------------------------------------------------------------------

    def _rows(self, title: str) -> Iterator[_Row]:
        for path in self._files:
            self._problems.source = str(path)
            delimiter, quoted = self._map.form_of(path)
            with TextReader(path, f"{title} {path.name}") as text:
                rows = table_rows(text, delimiter, quoted=quoted)
                header = next(rows, ("", []))[1] if self._map.header else None
                pick = _Picker(self._map, header, str(path))
                for place, cells in rows:
                    try:
                        row = pick.row(place, cells)
                    except ValueReadError as error:
                        self._malformed(place, str(error))
                        continue
                    yield row

    def _malformed(self, place: str, message: str) -> None:
        key = (self._problems.source, place)
        if key not in self._bad:
            self._bad.add(key)
            malformed(self._problems, self.report, self.skip, place, message, "rows left out")

    def _entity_label(self, id: str) -> str:
        return self._map.entity_labels.get(id) or normalise_name(self._labels.get(id, ""))

    def _relation_label(self, id: str) -> str:
        return self._map.relation_labels.get(id) or normalise_name(self._labels.get(id, ""))

    def _lacks_label(self, row: _Row) -> str:
        """What of a row has no label, "" when it may be kept."""
        if self._map.keep_unlabelled:
            return ""
        is_class = row.relation in self._classes
        is_alias = row.relation in self._map.aliases
        if not (is_class or is_alias) and not self._relation_label(row.relation):
            return "relation"
        is_literal = row.relation in self._map.attributes
        ends = (row.head,) if is_literal or is_alias else (row.head, row.tail)
        return "" if all(map(self._entity_label, ends)) else "head or tail"

    # --- facts -------------------------------------------------------------------------------

    def _link(self, row: _Row) -> None:
        node, above = self._nodes.add(row.head), self._nodes.add(row.tail)
        flag = self._classes[row.relation]
        self._nodes.flags[node] |= flag
        self._nodes.flags[above] |= USED
        below, over = self._links[flag]
        below.append(node)
        over.append(above)

    def _fact(self, row: _Row) -> None:
        if row.relation in self._map.aliases:
            self._nodes.add(row.head)
            self._aliases.setdefault(row.head, []).append(row.tail)
            return
        key = self._relation_label(row.relation) or row.relation
        literal = self._map.attributes.get(row.relation)
        try:
            raw = None if literal is None else raw_value(_value(row.tail, literal))
            pairs = self._pairs(row.qualifiers)
        except ValueReadError as error:
            self._malformed(row.place, str(error))
            return
        node = self._nodes.add(row.head)
        owner = self._assembler.node(row.head)
        if raw is None:
            self._nodes.add(row.tail)
            self._assembler.relational(owner, key, True, row.tail, pairs)
        elif self._nodes.is_concept(node):
            self.report["rows left out: attributes of concepts"] += 1
        elif (fact := (node, key, raw, tuple(pairs))) not in self._literals:
            self._literals.add(fact)
            self._assembler.literal(owner, key, raw, pairs)

    def _pairs(self, cells: list[tuple[str, str]]) -> list[tuple[str, RawValue]]:
        types = self._map.qualifier_types
        found: dict[tuple[str, RawValue], None] = {}  # one that is there twice counts once
        for id, text in cells:
            key = self._relation_label(id)
            form = types.get(id) or types.get("*")
            label = self._entity_label(text) if form is None or form.name == "node" else ""
            lacks_label = form is not None and form.name == "node" and not label
            if not self._map.keep_unlabelled and (not key or lacks_label):
                what = "value" if key else "key"
                self.report[f"qualifiers left out: no label of the {what}"] += 1
                continue
            found[key or id, raw_value(label or _value(text, form or _TEXT))] = None
        return list(found)

    def _define(self) -> None:
        """Define every node that a row named, entities with the default concept if need be."""
        nodes, default = self._nodes, self._map.default_concept
        ids = list(nodes.number)
        classes, parents = (_by_node(*self._links[flag]) for flag in (HAS_CLASS, HAS_PARENT))
        uses_default = False
        for number, id in enumerate(ids):
            is_concept = nodes.is_concept(number)
            if is_concept and number in classes:
                what = "class links left out: a concept is no instance"
                self.report[what] += len(classes[number])
            above = (parents if is_concept else classes).get(number, [])
            links = [ids[other] for other in above if nodes.is_concept(other)]
            if len(links) < len(above):
                what = "class links left out: the class is an entity"
                self.report[what] += len(above) - len(links)
            if not is_concept and not links and default:
                links, uses_default = [default], True
            if not (name := self._entity_label(id)):
                self.report["nodes without a label, named by their id"] += 1
            kind = CONCEPT if is_concept else ENTITY
            aliases = self._aliases.get(id, ())
            self._assembler.define(id, kind, name or id, links, id, aliases)
        number = nodes.number.get(default, -1)
        if uses_default and number < 0:
            name = self._entity_label(default) or default
            self._assembler.define(default, CONCEPT, name, [], default)
        elif uses_default and not nodes.is_concept(number):
            raise ReadError(
                f"{default!r} is the id of an entity; name another one",
                place="default_concept",
                source=self._map.source,
            )


class _Picker:
    """Finds the cells of a row by the mapping's columns."""

    def __init__(self, mapping: FactMap, header: list[str] | None, source: str) -> None:
        self._header, self._source = header, source
        self._ends = tuple(map(self._at, (mapping.head, mapping.relation, mapping.tail)))
        self._pairs_from, self._keys = -1, list[tuple[str, int]]()
        if isinstance(mapping.qualifiers, int | str):
            # Few headers name the columns of pairs, of which rows have any number.
            self._pairs_from = self._at(mapping.qualifiers, missing=True)
        elif mapping.qualifiers is not None:
            self._keys = [(key, self._at(at)) for key, at in mapping.qualifiers.items()]

    def _at(self, column: Column, *, missing: bool = False) -> int:
        """The place of a column; raises ReadError for one that the header does not have."""
        if self._header is None:
            assert isinstance(column, int)
            return column - 1
        names = [name.strip() for name in self._header]
        if isinstance(column, str) and names.count(column) == 1:
            return names.index(column)
        if isinstance(column, int) and (column <= len(names) or missing):
            return column - 1
        what = "twice" if column in names else "no"
        raise ReadError(
            f"there is {what} column {column!r} in the header: {', '.join(names)}",
            place="line 1",
            source=self._source,
        )

    def row(self, place: str, cells: list[str]) -> _Row:
        """The row of these cells; raises ValueReadError when some are missing."""
        if max(self._ends) >= len(cells):
            other = next((m for m in ";\t|" if len(cells) == 1 and m in cells[0]), "")
            hint = (
                f"; is {other!r} the delimiter? Say so in a mapping (--mapping); for a row for each"
                " thing --draft writes one"
                if other
                else ""
            )
            raise ValueReadError(f"head, relation or tail is missing; columns: {len(cells)}{hint}")
        head, relation, tail = (cells[at].strip() for at in self._ends)
        if not head or not relation or not tail:
            raise ValueReadError("head, relation or tail is empty")
        pairs = [(key, cells[at].strip()) for key, at in self._keys if at < len(cells)]
        pairs = [(key, text) for key, text in pairs if text]
        if self._pairs_from >= 0:
            rest = [cell.strip() for cell in cells[self._pairs_from :]]
            while rest and not rest[-1]:  # spreadsheets fill rows up with empty cells
                rest.pop()
            if len(rest) % 2:
                raise ValueReadError(f"the qualifier {rest[-1]!r} has no value")
            for key, text in zip(rest[::2], rest[1::2], strict=True):
                if not key or not text:
                    raise ValueReadError("a qualifier's key or value is empty")
                pairs.append((key, text))
        return _Row(place, head, relation, tail, pairs)


def _value(text: str, form: ValueType) -> Value:
    """The value that a cell says; raises ValueReadError when it is not of the type."""
    if form.name == "quantity":
        quantity = read_quantity(text)
        if form.unit and quantity.unit != NO_UNIT:
            raise ValueReadError(f"{text!r} has a unit, and the mapping names {form.unit!r}")
        return Quantity(quantity.number, form.unit) if form.unit else quantity
    if form.name == "year":
        return read_year(text)
    return read_time(text) if form.name == "date" else text


def _by_node(below: array[int], above: array[int]) -> dict[int, list[int]]:
    """The nodes above each node, each once, in order."""
    found: dict[int, dict[int, None]] = {}
    for node, other in zip(below, above, strict=True):
        found.setdefault(node, {})[other] = None
    return {node: list(others) for node, others in found.items()}


def _refuse_things(path: Path) -> None:
    """Raise ReadError for a table whose first line names columns of a row for each thing.

    Without a mapping such a table would give a relation for each name in its second column.
    """
    if not path.is_file():
        return  # a pipe is not read twice; what is not there, the reader tells
    refuse_no_text(path)
    delimiter, quoted = FactMap().form_of(path)
    with TextReader(path) as text:
        rows = [
            [cell.strip() for cell in cells]
            for _, cells in islice(table_rows(text, delimiter, quoted=quoted), _LOOKED_AT)
        ]
    header, *body = rows or [[]]
    if len(header) < 2 or not body or {len(row) for row in rows} != {len(header)}:
        return
    columns = [[row[at] for row in body if row[at]] for at in range(len(header))]
    is_header = all(header) and len(set(header)) == len(header)
    if not is_header or any(name in column for name, column in zip(header, columns, strict=True)):
        return
    if header[1].lower() in ("relation", "predicate", "property", "relationship"):
        raise ReadError(
            'the first line names the columns; write a mapping that says "header": true and what'
            " the columns are, as in docs/own-kb.md, and give it with --mapping",
            place="line 1",
            source=str(path),
        )
    is_typed = len(body) > 1 and any(
        column and guess_form([name]).type == "string" != guess_form(column).type
        for name, column in zip(header, columns, strict=True)
    )
    names = {word.lower() for name in header for word in words_of(name)}
    is_different = len(body) >= 5 and all(
        len(set(column)) * 5 >= len(column) * 4 for column in columns[:2]
    )
    if is_typed or names & {"id", "name", "title"} or is_different:
        raise ReadError(
            f"this looks like a table with a row for each thing ({', '.join(header)}), and tables"
            f" of facts were asked for: a head, a relation and a tail in each row; kopl kb import"
            f" --draft {shlex.quote(str(path))} -o mapping.yaml drafts a mapping for it (if rows"
            " are facts all the same, say so by --mapping with a file that holds {})",
            place="line 1",
            source=str(path),
        )
