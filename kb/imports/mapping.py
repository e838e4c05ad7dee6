"""The mapping of tables with a row for each thing: what rows and columns say.

A YAML file (or the same in JSON); `docs/own-kb.md` describes it field by field::

    concepts: {novel: book, crime novel: novel}
    tables:
      books:
        file: books.csv
        id: book_id
        name: title
        aliases: {column: other titles, separator: ";"}
        concept: {column: genre, below: book}
        columns:
          pages: {attribute: number of pages, type: quantity}
          price: {attribute: price, type: quantity, unit: {column: currency}}
          price_date: {qualifier: point in time, of: price, type: date}
          author_id: {relation: author, to: people, separator: ";"}
          publisher: {relation: publisher, create: publisher}
          notes: skip
      sales:                       # rows about the things of another table
        file: sales.csv
        about: books
        id: book_id
        columns:
          shop_id: {relation: sold by, to: shops}
          copies: {qualifier: copies, of: shop_id, type: quantity}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from kb.imports.cells import PLAIN, CellForm, CellType, date_pattern
from kb.imports.fields import Field, Fields, near, read_fields
from kb.values import ValueReadError

RowKind = Literal["things", "concepts"]
FACTS = ("attribute", "relation", "qualifier")


@dataclass(frozen=True)
class Cells:
    """How the cells of a column are cut: into several, which words mean nothing, other words."""

    column: str
    separator: str = ""
    missing: frozenset[str] = frozenset()
    values: Mapping[str, str] | None = None

    def parts(self, text: str) -> list[str]:
        """The texts of a cell, trimmed; "" stands for a missing one, so that places agree."""
        text = text.strip()
        if text in self.missing:
            return []
        found = [part.strip() for part in text.split(self.separator)] if self.separator else [text]
        renamed = self.values or {}
        return ["" if part in self.missing else renamed.get(part, part) for part in found]


@dataclass(frozen=True)
class Target:
    """The things that cells name: those of a table, or, made where there is none, of a concept.

    ``by`` is "id", "name", or "" for ids where the table has some.
    """

    table: str = ""
    by: str = ""
    create: str = ""


@dataclass(frozen=True)
class Fact:
    """A column whose cells are values of an attribute, or, with a target, ends of a relation.

    Its key or relation is ``key``, or stands in the column ``key_column``.
    """

    cells: Cells
    key: str = ""
    key_column: str = ""
    form: CellForm = PLAIN
    unit_column: str = ""
    target: Target | None = None
    backward: bool = False


@dataclass(frozen=True)
class Qualifier:
    """A column whose cells qualify the facts of other columns, ``of``; of a target, its name."""

    cells: Cells
    key: str
    of: tuple[str, ...]
    form: CellForm = PLAIN
    unit_column: str = ""
    target: Target | None = None


@dataclass(frozen=True)
class Above:
    """The concepts of a row: fixed ones, or those that a column names, below fixed ones."""

    fixed: tuple[str, ...] = ()
    cells: Cells | None = None
    target: Target = Target()


@dataclass(frozen=True)
class Table:
    """What the rows of a table are, and what its columns say."""

    key: str
    files: tuple[Path, ...]
    place: str  # of the mapping
    delimiter: str = ""
    encoding: str = ""
    quoted: bool = True
    about: str = ""
    about_by_name: bool = False
    kind: RowKind = "things"
    id: str = ""
    prefix: str = ""
    name: tuple[str, ...] = ()
    aliases: tuple[Cells, ...] = ()
    repeats: bool = False
    above: Above = Above()
    missing: frozenset[str] = frozenset()
    facts: tuple[Fact, ...] = ()
    qualifiers: tuple[Qualifier, ...] = ()
    skipped: tuple[str, ...] = ()

    def columns(self) -> set[str]:
        """Every column that the mapping names."""
        found = {self.id, *self.name, *self.skipped}
        for fact in self.facts:
            found |= {fact.cells.column, fact.unit_column, fact.key_column}
        for qualifier in self.qualifiers:
            found |= {qualifier.cells.column, qualifier.unit_column}
        found |= {cells.column for cells in self.aliases}
        if self.above.cells is not None:
            found.add(self.above.cells.column)
        return found - {""}


@dataclass(frozen=True)
class TableMap:
    """Tables by their names, and for concepts those right above them."""

    source: str
    tables: Mapping[str, Table]
    concepts: Mapping[str, tuple[str, ...]]


def is_mapping_of_tables(path: Path | str) -> bool:
    """Whether a file is a mapping of this kind: it has the field ``tables``.

    Raises ReadError for what has no fields.
    """
    return "tables" in read_fields(path).members()


def read_mapping(path: Path | str) -> TableMap:
    """The mapping in a file; raises ReadError with line and field for what is not as it should be.

    The files of tables are looked for beside the mapping.
    """
    field = read_fields(path)
    fields = field.fields()
    defaults = _Defaults().read(fields)
    found = fields.take("concepts")
    members = found.members() if found else {}
    concepts = {name: tuple(above.texts()) for name, above in members.items()}
    tables = fields.take("tables")
    if tables is None:
        raise field.wrong("the field tables is missing; kopl kb import --draft FILE… drafts it")
    found_tables = {
        key: _TableReader(key, entry, defaults, Path(path).parent).read()
        for key, entry in tables.members().items()
    }
    fields.done()
    if not found_tables:
        raise tables.wrong("there is no table here")
    _check_references(found_tables, tables)
    return TableMap(str(path), found_tables, concepts)


def _check_references(tables: Mapping[str, Table], field: Field) -> None:
    """Raise ReadError for a table that is named and not there, or that has no ids or names."""
    members = field.members()
    for key, table in tables.items():
        about = tables.get(table.about)
        if table.about and (about is None or about.about):
            message = f"there is no table {table.about!r}"
            if about is not None:
                message = f"{table.about!r} is itself about {about.about!r}: name that one"
            raise members[key].members()["about"].wrong(message + near(table.about, tables))
        if about is not None and not table.about_by_name and not about.id:
            message = f"the table {table.about!r} has no ids: give the column of its names as name"
            raise members[key].wrong(message)
        has_attributes = any(fact.target is None for fact in table.facts)
        if about is not None and about.kind == "concepts" and has_attributes:
            raise members[key].wrong("columns: concepts have no attributes; say skip")
        columns: list[Fact | Qualifier] = [*table.facts, *table.qualifiers]
        targets = [column.target for column in columns if column.target]
        if table.above.cells is not None:
            targets.append(table.above.target)
        for target in targets:
            if not target.table:
                continue
            other = tables.get(target.table)
            if other is None:
                hint = near(target.table, tables) or f"; the tables are {', '.join(tables)}"
                raise members[key].wrong(f"to: there is no table {target.table!r}{hint}")
            if other.about:
                raise members[key].wrong(
                    f"to: the rows of {target.table!r} are about {other.about!r}; name that one"
                )
            if target.by == "id" and not other.id:
                raise members[key].wrong(f"by: the table {target.table!r} has no ids; say name")
            if target is table.above.target and other.kind != "concepts":
                message = f"concept: the rows of {target.table!r} are things; say rows: concepts"
                raise members[key].wrong(f"{message} there, or leave out to")


@dataclass(frozen=True)
class _Defaults:
    """What holds for all columns of a table, and may stand above all tables."""

    missing: frozenset[str] = frozenset()
    form: CellForm = PLAIN
    delimiter: str = ""
    encoding: str = ""

    def read(self, fields: Fields) -> _Defaults:
        """These, changed by what stands in a table or above all tables."""
        found = self
        if (missing := fields.take("missing")) is not None:
            found = replace(found, missing=frozenset(missing.texts(empty=True)))
        if (delimiter := fields.take("delimiter")) is not None:
            text = delimiter.text()
            text = "\t" if text in ("\\t", "tab") else text
            if len(text) != 1 or text in '\r\n"':
                raise delimiter.wrong('expected one character, such as ";", or tab')
            found = replace(found, delimiter=text)
        if (encoding := fields.take("encoding")) is not None:
            try:
                "".encode(encoding.text())
            except LookupError:
                raise encoding.wrong(
                    f"the encoding {encoding.text()!r} is unknown; try utf-8, cp1252 or utf-16"
                ) from None
            found = replace(found, encoding=encoding.text())
        return replace(found, form=_numbers(fields, self.form))


def _numbers(fields: Fields, form: CellForm) -> CellForm:
    """The form with the decimal and thousands marks of the fields."""
    decimal, thousands = fields.take("decimal"), fields.take("thousands")
    if decimal is not None:
        form = replace(form, decimal=decimal.choice(".", ","))
    if thousands is not None:
        marks = (",", ".", "'", "’", " ", "none")
        mark = thousands.choice(*marks)
        form = replace(form, thousands="" if mark == "none" else mark)
    if form.decimal == form.thousands:
        if thousands is not None:
            raise thousands.wrong("decimals and thousands have the same mark")
        form = replace(form, thousands="")
    return form


class _TableReader:
    """Reads what the mapping says of one table."""

    def __init__(self, key: str, field: Field, defaults: _Defaults, folder: Path) -> None:
        self._key, self._field, self._folder = key, field, folder
        self._fields = field.fields()
        self._defaults = defaults.read(self._fields)

    def read(self) -> Table:
        """The table."""
        fields, field = self._fields, self._field
        files = tuple(self._folder / name for name in fields.texts("file"))
        if not files:
            raise field.wrong("the file of the table is missing: write file: NAME.csv")
        about, id = fields.text("about"), fields.text("id")
        kind_field = fields.take("rows")
        kind: RowKind = "things"
        if kind_field is not None and kind_field.choice("things", "concepts") == "concepts":
            kind = "concepts"
        quoted = fields.take("quoted")
        names = tuple(fields.texts("name"))
        prefix, repeats = fields.text("prefix"), fields.flag("repeats")
        aliases = self._aliases()
        above = self._above(kind)
        facts, qualifiers, skipped = self._columns()
        fields.done()
        if about:
            if bool(id) == bool(names):
                raise field.wrong(
                    f"say in which column {about!r} is: with its ids (id) or names (name)"
                )
            for name in ("concept", "parent", "rows", "prefix", "repeats"):
                if name in fields:
                    raise field.wrong(f"{name}: rows about {about!r} are no things of their own")
            if not facts and not aliases:
                raise field.wrong(f"columns: no column says anything about {about!r}")
        elif not names:
            raise field.wrong("give the column of names as name, or say about: TABLE")
        if kind == "concepts" and any(fact.target is None for fact in facts):
            raise field.wrong("columns: concepts have no attributes; say skip, or rows: things")
        self._check_qualifiers(facts, qualifiers)
        return Table(
            key=self._key,
            files=files,
            place=f"{field.source}: line {field.line}",
            delimiter=self._defaults.delimiter,
            encoding=self._defaults.encoding,
            quoted=quoted is None or quoted.flag(),
            about=about,
            about_by_name=bool(about and names),
            kind=kind,
            id=id,
            prefix=prefix,
            name=names,
            aliases=aliases,
            repeats=repeats,
            above=above,
            missing=self._defaults.missing | {""},
            facts=facts,
            qualifiers=qualifiers,
            skipped=skipped,
        )

    def _check_qualifiers(self, facts: Iterable[Fact], qualifiers: Iterable[Qualifier]) -> None:
        columns = {fact.cells.column for fact in facts}
        for qualifier in qualifiers:
            for of in qualifier.of:
                if of not in columns:
                    place = self._field.members()["columns"].members()[qualifier.cells.column]
                    hint = near(of, columns) or f"; there are {', '.join(sorted(columns))}"
                    raise place.wrong(f"of: no attribute or relation is in a column {of!r}{hint}")

    def _above(self, kind: RowKind) -> Above:
        name = "parent" if kind == "concepts" else "concept"
        other = "concept" if kind == "concepts" else "parent"
        field = self._fields.take(name)
        if (wrong := self._fields.take(other)) is not None:
            hint = "their parent" if kind == "concepts" else "a concept; or say rows: concepts"
            raise wrong.wrong(f"rows that are {kind} have {hint}")
        if field is None:
            return Above()
        if field.is_text or field.is_list:
            if kind == "concepts":  # a column; fixed ones stand below the field "below"
                return Above(cells=self._plain(field.text()), target=Target(self._key))
            return Above(fixed=tuple(field.texts()))
        fields = field.fields()
        column = fields.text("column")
        fixed = tuple(fields.texts("below"))
        table = self._key if kind == "concepts" else fields.text("to")
        target = Target(table, self._by(fields))
        cells = self._cells(column, fields) if column else None
        fields.done()
        if cells is None:
            raise field.wrong("the column is missing; a fixed concept is written without fields")
        return Above(fixed, cells, target)

    def _aliases(self) -> tuple[Cells, ...]:
        """The columns of aliases: one, a list, or one with how its cells are cut."""
        field = self._fields.take("aliases")
        if field is None:
            return ()
        found = []
        for entry in field.items():
            if entry.is_text:
                found.append(self._plain(entry.text()))
                continue
            fields = entry.fields()
            column = fields.text("column")
            if not column:
                raise entry.wrong("write a column, or {column: COLUMN, separator: …}")
            found.append(self._cells(column, fields))
            fields.done()
        return tuple(found)

    def _by(self, fields: Fields) -> str:
        field = fields.take("by")
        return "" if field is None else field.choice("id", "name")

    def _plain(self, column: str) -> Cells:
        return Cells(column, missing=self._defaults.missing | {""})

    def _cells(self, column: str, fields: Fields) -> Cells:
        missing = self._defaults.missing
        if (field := fields.take("missing")) is not None:
            missing = frozenset(field.texts(empty=True))
        values = fields.take("values")
        renamed = {key: f.text() for key, f in values.members().items()} if values else None
        separator = fields.take("separator")
        text = "" if separator is None else separator.text()
        return Cells(column, text, missing | {""}, renamed)

    # --- columns ------------------------------------------------------------------------------

    def _columns(self) -> tuple[tuple[Fact, ...], tuple[Qualifier, ...], tuple[str, ...]]:
        facts: list[Fact] = []
        qualifiers: list[tuple[Field, Qualifier]] = []
        skipped = []
        columns = self._fields.take("columns")
        for column, field in (columns.members() if columns else {}).items():
            if field.is_text:
                field.choice("skip")
                skipped.append(column)
                continue
            for entry in field.items():
                fields = entry.fields()
                kinds = [kind for kind in FACTS if kind in fields]
                if len(kinds) != 1:
                    hints = [] if kinds else [near(name, FACTS) for name in entry.members()]
                    hint = next(filter(None, hints), "")
                    raise entry.wrong(
                        f"say one of attribute, relation and qualifier, or skip{hint}"
                    )
                if kinds == ["qualifier"]:
                    qualifiers.append((entry, self._qualifier(column, fields)))
                else:
                    facts.append(self._fact(column, kinds[0], fields))
                fields.done()
        columns_of_facts = tuple(dict.fromkeys(fact.cells.column for fact in facts))
        found = []
        for entry, qualifier in qualifiers:
            if not qualifier.of and len(columns_of_facts) != 1:
                raise entry.wrong("say of: COLUMN, the column with the facts that it qualifies")
            found.append(qualifier if qualifier.of else replace(qualifier, of=columns_of_facts))
        return tuple(facts), tuple(found), tuple(skipped)

    def _fact(self, column: str, kind: str, fields: Fields) -> Fact:
        key_field = fields.take(kind)
        assert key_field is not None
        key, key_column = "", ""
        if key_field.is_text:
            key = key_field.text()
        else:
            inner = key_field.fields()
            key_column = inner.text("column")
            inner.done()
            if not key_column:
                raise key_field.wrong(
                    f"write a name, or {{column: COLUMN}} where the {kind} stands"
                )
        cells = self._cells(column, fields)
        if kind == "attribute":
            form, unit_column = self._form(fields)
            return Fact(cells, key, key_column, form, unit_column)
        direction = fields.take("direction")
        backward = direction is not None and direction.choice("forward", "backward") == "backward"
        target = self._target(fields)
        if target is None:
            raise fields.field.wrong("say to: TABLE, or create: CONCEPT for things without a table")
        return Fact(cells, key, key_column, target=target, backward=backward)

    def _qualifier(self, column: str, fields: Fields) -> Qualifier:
        key, of = fields.text("qualifier"), tuple(fields.texts("of"))
        cells = self._cells(column, fields)
        if target := self._target(fields, create=False):
            return Qualifier(cells, key, of, target=target)
        form, unit_column = self._form(fields)
        return Qualifier(cells, key, of, form, unit_column)

    def _target(self, fields: Fields, *, create: bool = True) -> Target | None:
        table = fields.text("to")
        concept = fields.text("create") if create else ""
        by = self._by(fields) if table else ""
        return Target(table, by, concept) if table or concept else None

    def _form(self, fields: Fields) -> tuple[CellForm, str]:
        """How cells read as values, and the column of their units."""
        type_field, unit_field = fields.take("type"), fields.take("unit")
        units, form_field = fields.take("units"), fields.take("format")
        type: CellType = "string"
        if type_field is not None:
            text = type_field.text()
            known = get_args(CellType)
            if text not in known:
                raise type_field.wrong(f"expected a type ({', '.join(known)}), not {text!r}")
            type = next(word for word in known if word == text)
        form = replace(_numbers(fields, self._defaults.form), type=type)
        for field, wanted in ((unit_field, "quantity"), (units, "quantity"), (form_field, "date")):
            if field is not None and type != wanted:
                raise field.wrong(f"this belongs to the type {wanted}; the type here is {type}")
        unit_column = ""
        if unit_field is not None and unit_field.is_text:
            form = replace(form, unit=unit_field.text())
        elif unit_field is not None:
            inner = unit_field.fields()
            unit_column = inner.text("column")
            inner.done()
            if not unit_column:
                raise unit_field.wrong("write a unit, or {column: COLUMN} where the units stand")
        if units is not None:
            form = replace(form, units={key: f.text() for key, f in units.members().items()})
        if form_field is not None:
            form = replace(form, format=form_field.text().lower())
            try:
                date_pattern(form.format)
            except ValueReadError as error:
                raise form_field.wrong(str(error)) from None
        return form, unit_column
