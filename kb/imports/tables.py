"""Reads tables with a row for each thing, as a mapping (`kb.imports.mapping`) describes them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kb.assemble import CONCEPT, ENTITY, Assembler, RawValue, raw_value
from kb.imports.common import Report, Sheet, SheetForm, finish, twice_readable
from kb.imports.fields import near
from kb.imports.mapping import Cells, Fact, Qualifier, Table, TableMap, Target, read_mapping
from kb.problems import Problems
from kb.store import KnowledgeBase, normalise_name
from kb.values import ValueReadError
from kopl_base.errors import ReadError, counted

log = logging.getLogger("kb")

SHOWN = 20  # of the bad cells that stop a reading
_DRAFT = "kopl kb import --draft FILE… -o MAPPING drafts a mapping for tables as they are"


def read_tables(
    mapping: TableMap | Path | str,
    problems: Problems | None = None,
    *,
    skip_malformed: bool = False,
    report: Report | None = None,
) -> KnowledgeBase:
    """The knowledge base in the tables of a mapping (`read_mapping`, or its file).

    The tables are read twice: their things, then their facts. Memory grows with the things and
    facts. ``report`` counts what was read and left out.

    Raises ReadError for a table that is not of the form that the mapping says, and for bad cells
    and rows: all are counted, and the first of them named with file, line and column. With
    ``skip_malformed`` they are left out and counted: a bad qualifier alone, a bad value with its
    qualifiers, a row when its id or name is missing or there before.
    """
    if not isinstance(mapping, TableMap):
        mapping = read_mapping(mapping)
    report = report if report is not None else Report()
    reader = _Reader(mapping, Problems() if problems is None else problems, report)
    reader.faults.skip = skip_malformed
    return reader.read()


@dataclass
class _Node:
    """A thing or concept: its name, the ids of concepts right above it, where it was read."""

    kind: int
    name: str
    place: str
    above: dict[str, None] = field(default_factory=dict)
    aliases: dict[str, None] = field(default_factory=dict)


@dataclass
class _Index:
    """The things of a table: knowledge base ids by the table's own ids and by names.

    Of a name that several things have, the id is None.
    """

    ids: dict[str, str] = field(default_factory=dict)
    names: dict[str, str | None] = field(default_factory=dict)

    def find(self, text: str, *, by_name: bool) -> str:
        """The id of what a cell names; raises ValueReadError when it is none or several."""
        if by_name:
            name = normalise_name(text)
            found = self.names.get(name, "")
            if found is None:
                raise ValueReadError(f"several have the name {name!r}; name them by id")
            return found
        found = self.ids.get(text, "")
        # Programs write the numbers of a column with gaps as decimal ones.
        if not found and text.endswith(".0"):
            found = self.ids.get(text[:-2], "")
        return found


class _Faults:
    """Bad cells and rows: counted and left out, or collected to be told together."""

    skip = False

    def __init__(self, problems: Problems, report: Report) -> None:
        self._problems, self._report = problems, report
        self._shown: list[str] = []
        self._first: tuple[str, str, str] | None = None  # source, place, message
        self._count = 0
        self._columns: Counter[tuple[str, str]] = Counter()
        self.rows: Counter[str] = Counter()

    @property
    def are_shown(self) -> bool:
        """Whether one more is shown, so that a long message pays."""
        return len(self._shown) < SHOWN

    def add(self, path: Path, place: str, message: str, column: str = "") -> None:
        """Note what is wrong with a cell, or with a row."""
        if column:
            place = f"{place}, column {column!r}"
        if self.skip:
            self._problems.warning("malformed", f"{path}: {place}", message)
            self._report[f"{'cells' if column else 'rows'} left out: malformed"] += 1
            return
        self._count += 1
        self._columns[str(path), column] += 1
        if self._first is None:
            self._first = (str(path), place, message)
        if self.are_shown:
            self._shown.append(f"{path}: {place}: {message}")

    def stop(self) -> None:
        """Raise ReadError if there was anything wrong."""
        if self._first is None:
            return
        source, place, message = self._first
        if self._count == 1:
            raise ReadError(
                f"{message} (--skip-malformed leaves such cells and rows out)",
                place=place,
                source=source,
            )
        lines = [message, *self._shown[1:]]
        if self._count > len(self._shown):
            lines.append(f"… and {self._count - len(self._shown)} more")
        for (path, column), count in self._columns.items():
            if column and count >= 3 and 2 * count >= self.rows[path]:
                lines.append(
                    f"{path}: column {column!r}: {count} cells are not what the mapping says"
                )
        lines.append(
            f"{counted(self._count, 'cell or row is', 'cells or rows are')} wrong; mend them"
            f" or the mapping, or leave them out with --skip-malformed; {_DRAFT}"
        )
        raise ReadError("\n".join(lines), place=place, source=source)


@dataclass(slots=True)
class _Row:
    """A row at hand: its place, its cells and where its columns are."""

    path: Path
    place: str
    cells: list[str]
    at: dict[str, int]

    def __getitem__(self, column: str) -> str:
        return self.cells[self.at[column]].strip()


class _Reader:
    """The state of a reading."""

    def __init__(self, mapping: TableMap, problems: Problems, report: Report) -> None:
        self._map = mapping
        self._problems = problems
        self._report = report
        self.faults = _Faults(problems, report)
        self._assembler = Assembler(problems)
        self._nodes: dict[str, _Node] = {}
        self._indexes = {key: _Index() for key in mapping.tables}
        self._concepts: dict[str, str] = {}  # by name
        self._bad: set[tuple[str, Path, str]] = set()  # rows that were passed over
        self._seen: set[tuple[str, str, object, frozenset[tuple[str, RawValue]]]] = set()

    def read(self) -> KnowledgeBase:
        """The knowledge base."""
        tables = [table for table in self._map.tables.values() if not table.about]
        self._check_headers()
        for table in sorted(tables, key=lambda table: table.kind):  # concepts come first
            for row in self._rows(table, "reading things of"):
                self._thing(table, row)
        for name, above in self._map.concepts.items():
            self._nodes[self._concept(name)].above.update(
                dict.fromkeys(self._concept(other) for other in above)
            )
        for table in self._map.tables.values():
            for row in self._rows(table, "reading facts of"):
                if (table.key, row.path, row.place) not in self._bad:
                    self._report["rows"] += 1
                    self._facts(table, row)
        self.faults.stop()
        if not self._nodes:
            raise ReadError("there are no rows in the tables", source=self._map.source)
        for id, node in self._nodes.items():
            self._assembler.define(id, node.kind, node.name, node.above, node.place, node.aliases)
        self._problems.source = self._map.source
        return finish(self._assembler, self._report, "facts left out: an end is no node")

    # --- rows --------------------------------------------------------------------------------

    def _check_headers(self) -> None:
        """Raise ReadError for columns that are missing; warn of those that nobody asks for."""
        asked: dict[Path, set[str]] = {}
        headers: dict[Path, list[str]] = {}
        for table in self._map.tables.values():
            for path in table.files:
                twice_readable(path)
                with self._sheet(table, path, "") as sheet:
                    headers[path] = sheet.header
                    for column in sorted(table.columns()):
                        self._check_column(table, sheet, column)
                asked.setdefault(path, set()).update(table.columns())
        for path, header in headers.items():
            if rest := [name for name in header if name and name not in asked[path]]:
                log.warning("%s: the mapping does not name, so left out: %s", path, ", ".join(rest))
                self._report["columns left out: the mapping does not name them"] += len(rest)

    def _check_column(self, table: Table, sheet: Sheet, column: str) -> None:
        header = sheet.header
        if header.count(column) == 1:
            return
        if column in header:
            message = f"two columns are called {column!r}"
        else:
            message = f"there is no column {column!r}{near(column, header)}"
            message += f" in the header: {', '.join(header)}"
            if len(header) == 1 and (other := [mark for mark in ";,\t|" if mark in header[0]]):
                message += f"; say delimiter: {'tab' if other[0] == chr(9) else repr(other[0])}"
        raise ReadError(
            f"{message} (asked for by {table.place}); {_DRAFT}",
            place="line 1",
            source=str(sheet.path),
        )

    def _sheet(self, table: Table, path: Path, title: str) -> Sheet:
        try:
            form = SheetForm.of(path, table.delimiter, table.encoding, quoted=table.quoted)
            return Sheet(path, form, title)
        except ReadError as error:
            if "is not UTF-8" in error.message:
                error = ReadError(
                    f"{error.message}; if a spreadsheet wrote it, say encoding: cp1252 (or utf-16)"
                    " in the mapping",
                    source=error.source,
                )
            raise error from None

    def _rows(self, table: Table, title: str) -> Iterator[_Row]:
        is_first = title == "reading things of" or bool(table.about)
        for path in table.files:
            with self._sheet(table, path, title) as sheet:
                at = {name: number for number, name in enumerate(sheet.header)}
                for place, cells, wrong in sheet.rows():
                    if is_first:
                        self.faults.rows[str(path)] += 1
                    if wrong:
                        if is_first:
                            self.faults.add(path, place, wrong)
                            self._bad.add((table.key, path, place))
                        continue
                    yield _Row(path, place, cells, at)

    # --- things ------------------------------------------------------------------------------

    def _id_and_name(self, table: Table, row: _Row) -> tuple[str, str]:
        """The table's own id of a row's thing ("" if it is missing), and its name."""
        names = (row[column] for column in table.name)
        name = normalise_name(" ".join(text for text in names if text not in table.missing))
        id = row[table.id] if table.id else name
        return "" if id in table.missing else id, name

    def _node_id(self, table: Table, id: str) -> str:
        """The knowledge base's id of a thing with that id of the table's own."""
        return (table.prefix if table.id else table.prefix or f"{table.key}/") + id

    def _thing(self, table: Table, row: _Row) -> None:
        own, name = self._id_and_name(table, row)
        id = self._node_id(table, own)
        index = self._indexes[table.key]
        known = self._nodes.get(id)
        wrong = ""
        if not own or not name:
            what, columns = ("name", table.name) if not name else ("id", (table.id,))
            wrong = f"the {what} is missing (column {', '.join(columns)})"
        elif known is not None and own not in index.ids:
            wrong = (
                f"the id {id!r} is that of {known.place}, too; give one of the tables a prefix,"
                f' such as prefix: "{table.key}/"'
            )
        elif known is not None and not table.repeats:
            what = f"the id {own!r}" if table.id else f"the name {own!r}"
            wrong = f"{what} is that of {known.place}, too; if rows repeat things: repeats: true"
        elif known is not None and known.name != name:
            wrong = f"{own!r} is {known.name!r} in {known.place}, and {name!r} here"
        if wrong:
            self.faults.add(row.path, row.place, wrong)
            self._bad.add((table.key, row.path, row.place))
            return
        if known is None:
            kind = CONCEPT if table.kind == "concepts" else ENTITY
            known = self._nodes[id] = _Node(kind, name, f"{row.path.name}, {row.place}")
            index.ids[own] = id
            index.names[name] = None if index.names.get(name, id) != id else id
            if kind == CONCEPT:
                if name in self._concepts:
                    other = self._nodes[self._concepts[name]].place
                    self.faults.add(row.path, row.place, f"the concept {name!r} is in {other}, too")
                self._concepts.setdefault(name, id)
        if table.kind == "things":
            self._instance_of(table, row, known)

    def _concept(self, name: str) -> str:
        """The id of the concept of that name, a new one if there is none."""
        name = normalise_name(name)
        id = self._concepts.get(name)
        if id is None:
            id = f"concept/{name}"
            if id in self._nodes:
                raise ReadError(
                    f"{id!r} is the id of {self._nodes[id].place}, and is needed for the concept"
                    f" {name!r}; give that table a prefix",
                    source=self._map.source,
                )
            self._concepts[name] = id
            self._nodes[id] = _Node(CONCEPT, name, self._map.source)
        return id

    def _instance_of(self, table: Table, row: _Row, node: _Node) -> None:
        """Put a thing below the concepts that its row names, else below the fixed ones."""
        fixed = [self._concept(name) for name in table.above.fixed]
        found = []
        if (cells := table.above.cells) is not None:
            for text in filter(None, cells.parts(row[cells.column])):
                id = self._class(table.above.target, row, cells, text)
                if id:
                    found.append(id)
                    node_of = self._nodes[id]
                    if not table.above.target.table and node_of.name not in self._map.concepts:
                        node_of.above.update(dict.fromkeys(a for a in fixed if a != id))
        node.above.update(dict.fromkeys(found or fixed))

    def _class(self, target: Target, row: _Row, cells: Cells, text: str) -> str:
        """The concept that a cell names, "" when it names none of those that it should."""
        return self._found(target, row, cells, text) if target.table else self._concept(text)

    def _parents(self, table: Table, row: _Row, node: _Node) -> None:
        """Put the concept of a row below those that its cell names."""
        fixed = [self._concept(name) for name in table.above.fixed]
        found = []
        if (cells := table.above.cells) is not None:
            for text in filter(None, cells.parts(row[cells.column])):
                if id := self._found(table.above.target, row, cells, text):
                    found.append(id)
        own = self._concepts.get(node.name)
        node.above.update(dict.fromkeys(id for id in found or fixed if id != own or found))

    # --- facts -------------------------------------------------------------------------------

    def _facts(self, table: Table, row: _Row) -> None:
        if table.about:
            column = table.name[0] if table.about_by_name else table.id
            text = row[column]
            if text in table.missing:
                self.faults.add(row.path, row.place, f"nothing is named in the column {column!r}")
                return
            target = Target(table.about, "name" if table.about_by_name else "id")
            subject = self._found(target, row, Cells(column), text)
            if not subject:
                return
        else:
            subject = self._node_id(table, self._id_and_name(table, row)[0])
            if table.kind == "concepts":
                self._parents(table, row, self._nodes[subject])
        for cells in table.aliases:
            parts = filter(None, cells.parts(row[cells.column]))
            self._nodes[subject].aliases.update(dict.fromkeys(parts))
        repeats = bool(table.about or table.repeats)
        if not repeats:
            self._seen.clear()
        for fact in table.facts:
            self._fact(table, row, subject, fact)

    def _fact(self, table: Table, row: _Row, subject: str, fact: Fact) -> None:
        parts = fact.cells.parts(row[fact.cells.column])
        if not any(parts):
            return
        key = fact.key or row[fact.key_column]
        if key in table.missing:
            self.faults.add(row.path, row.place, "the name of the fact is missing", fact.key_column)
            return
        qualifiers = self._qualifiers(table, row, fact, len(parts))
        for number, part in enumerate(parts):
            if not part:
                continue
            pairs = list(dict.fromkeys(pair for at, pair in qualifiers if at in (-1, number)))
            self._emit(table, row, subject, fact, key, part, pairs)

    def _emit(
        self,
        table: Table,
        row: _Row,
        subject: str,
        fact: Fact,
        key: str,
        part: str,
        pairs: list[tuple[str, RawValue]],
    ) -> None:
        end: RawValue
        if fact.target is not None:
            found = self._found(fact.target, row, fact.cells, part)
            if not found:
                return
            end = found
        else:
            value = self._value(table, row, fact, part)
            if value is None:
                return
            end = value
        same = (subject, key, (fact.target is None, end), frozenset(pairs))
        if same in self._seen:
            return
        self._seen.add(same)
        if pairs:
            self._report["qualifiers"] += len(pairs)
        if fact.target is None:
            self._assembler.literal(self._assembler.node(subject), key, end, pairs)
            return
        head, tail = (str(end), subject) if fact.backward else (subject, str(end))
        self._assembler.relational(self._assembler.node(head), key, True, tail, pairs)

    def _value(
        self, table: Table, row: _Row, column: Fact | Qualifier, text: str
    ) -> RawValue | None:
        """The value of a cell, None when it is bad."""
        unit = None
        if column.unit_column:
            unit = row[column.unit_column]
            if unit in table.missing:
                message = f"the unit of {text!r} is missing"
                self.faults.add(row.path, row.place, message, column.unit_column)
                return None
        try:
            return raw_value(column.form.value(text, unit))
        except ValueReadError as error:
            self.faults.add(row.path, row.place, str(error), column.cells.column)
            return None

    def _qualifiers(
        self, table: Table, row: _Row, fact: Fact, parts: int
    ) -> list[tuple[int, tuple[str, RawValue]]]:
        """The qualifiers of a cell's facts: the number of the part (-1: all of them), and pairs."""
        found: list[tuple[int, tuple[str, RawValue]]] = []
        for qualifier in table.qualifiers:
            if fact.cells.column not in qualifier.of:
                continue
            cells = qualifier.cells
            texts = cells.parts(row[cells.column])
            aligned = bool(cells.separator) and len(texts) == parts > 1
            if not aligned and len(texts) > 1 < parts:
                message = (
                    f"{len(texts)} values for {parts} in the column {fact.cells.column!r}:"
                    " give one for all, or one for each"
                )
                self.faults.add(row.path, row.place, message, cells.column)
                continue
            for number, text in enumerate(texts):
                if not text:
                    continue
                value: RawValue | None
                if qualifier.target is not None:
                    id = self._found(qualifier.target, row, cells, text)
                    value = self._nodes[id].name if id else None
                else:
                    value = self._value(table, row, qualifier, text)
                if value is not None:
                    found.append((number if aligned else -1, (qualifier.key, value)))
        return found

    def _found(self, target: Target, row: _Row, cells: Cells, text: str) -> str:
        """The id of the thing that a cell names, made if that is allowed; "" when it is bad."""
        table = self._map.tables.get(target.table)
        by_name = table is None or target.by == "name" or (not target.by and not table.id)
        try:
            found = self._indexes[table.key].find(text, by_name=by_name) if table else ""
        except ValueReadError as error:
            self.faults.add(row.path, row.place, str(error), cells.column)
            return ""
        if found:
            return found
        if target.create:
            return self._created(target, table, text, by_name=by_name)
        assert table is not None
        message = ""
        if self.faults.are_shown:
            message = self._stranger(table, text, by_name=by_name)
        self.faults.add(row.path, row.place, message, cells.column)
        return ""

    def _stranger(self, table: Table, text: str, *, by_name: bool) -> str:
        """Why a cell names nothing."""
        index = self._indexes[table.key]
        what = "name" if by_name else "id"
        message = f"{text!r} is no {what} of the table {table.key!r}"
        known: Iterable[str] = index.ids
        other: Iterable[str] = index.names
        if by_name:
            known, other = other, known
        if text in other:
            return f"{message}; it is a{'n id: say by: id' if by_name else ' name: say by: name'}"
        hint = near(text, known) if len(index.ids) <= 10_000 else ""
        return message + hint + ("; create: CONCEPT would make it" if by_name else "")

    def _created(self, target: Target, table: Table | None, text: str, *, by_name: bool) -> str:
        """The id of a new thing of a concept; the same for the same name and concept."""
        name = normalise_name(text)
        if by_name or table is None:
            id = f"{normalise_name(target.create)}/{name}"
        else:
            id = self._node_id(table, text)
        node = self._nodes.get(id)
        if node is None:
            node = self._nodes[id] = _Node(ENTITY, name, "a cell that made it")
            node.above[self._concept(target.create)] = None
            self._report["things made from cells"] += 1
        return id
