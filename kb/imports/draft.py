"""Drafts a mapping for tables from what they hold, as a YAML file to be read and edited."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kb.imports.columns import guess_columns
from kb.imports.forms import MISSING
from kb.imports.guesses import Draft, TableGuess, guess_tables
from kb.imports.profile import Profile, read_profile
from kopl_base.errors import KoplError, counted

_LEGEND = """\
# Drafted from the values of the tables. Read it, edit it, then
#   kopl kb import --mapping THIS_FILE -o KB.kopl
# What was guessed with doubt has a comment that begins with #?. docs/own-kb.md describes all
# fields. Of a column:
#   COLUMN: {attribute: KEY, type: string|quantity|year|date, unit: UNIT, separator: ";"}
#   COLUMN: {relation: NAME, to: TABLE, by: id|name, direction: backward}
#   COLUMN: {relation: NAME, create: CONCEPT}       its cells name things that have no table
#   COLUMN: {qualifier: KEY, of: COLUMN, type: …}   it says something of another column's facts
#   COLUMN: skip
"""
_PLAIN = re.compile(r"[^\W\d][\w/]*(?:[ .-][\w/]+)*")


@dataclass(frozen=True)
class DraftedMapping:
    """A mapping as text, and how many of its guesses are doubtful."""

    text: str
    doubts: int


def draft_mapping(files: Iterable[Path | str], folder: Path | str = "") -> DraftedMapping:
    """A mapping (`kb.imports.mapping`) for tables, guessed from their headers and values.

    ``folder`` is where the mapping will lie: it names the files relative to that. The same files
    give the same text. Raises ReadError for what is no table with a header.
    """
    profiles: dict[str, Profile] = {}
    for file in files:
        path = Path(file)
        key = _table_key(path)
        if key in profiles:
            raise KoplError(f"{path}: another file is called {key}, too; rename one")
        profiles[key] = read_profile(path)
    tables = guess_tables(profiles)
    for table in tables.values():
        guess_columns(table, tables)
    words = sorted({w for p in profiles.values() for c in p.columns for w in c.missing})
    lines: list[str] = []
    if words:
        lines += ["", *_line(f"missing: {_value(words)}", "cells that mean nothing", "", False)]
    if any(table.class_column and not table.about for table in tables.values()):
        lines += ["", "# concepts: {KIND: KIND ABOVE IT}  # for kinds that stand below one another"]
    lines += ["", "tables:"]
    for table in tables.values():
        lines += _table(table, Path(folder), words)
    doubts = sum(bool(re.search("(?:^ *|  )#[?]", line)) for line in lines)
    return DraftedMapping(_LEGEND + "\n".join(lines) + "\n", doubts)


def _table_key(path: Path) -> str:
    """A name for the table of a file."""
    name = path.name
    while (stem := Path(name).stem) != name and Path(name).suffix.lower() in _ENDINGS:
        name = stem
    return re.sub(r"\W+", "_", name).strip("_") or "table"


_ENDINGS = {".csv", ".tsv", ".txt", ".tab", ".gz", ".bz2", ".xz"}


def _table(table: TableGuess, folder: Path, words: list[str]) -> Iterator[str]:
    profile = table.profile
    yield f"  {_scalar(table.key)}:"
    name = os.path.relpath(profile.path, folder or ".").replace(os.sep, "/")
    yield from _field(table, "file", name, counted(profile.rows, "row"))
    natural = "\t" if ".tsv" in [s.lower() for s in profile.path.suffixes] else ","
    if profile.form.delimiter != natural:
        mark = "tab" if profile.form.delimiter == "\t" else profile.form.delimiter
        yield from _field(table, "delimiter", mark)
    if profile.form.encoding != "utf-8-sig":
        why = "not UTF-8" if profile.is_guessed else ""
        yield from _line(f"    encoding: {profile.form.encoding}", why, "", profile.is_guessed)
    if not profile.form.quoted:
        yield from _line("    quoted: false", "quotation marks are part of cells", "", False)
    if table.about:
        yield from _field(table, "about", table.about)
    if table.is_concepts:
        yield from _line("    rows: concepts", "other tables name them as kinds", "", True)
    if table.id:
        yield from _field(table, "id", table.id)
    if table.prefix:
        yield from _field(table, "prefix", table.prefix)
    if table.names:
        names = table.names if len(table.names) > 1 else table.names[0]
        yield from _field(table, "name", names)
    if table.aliases:
        cut: dict[str, object] = {"column": table.aliases}
        if separator := table.separators.get(table.aliases):
            cut["separator"] = separator
        yield from _field(table, "aliases", cut if separator else table.aliases)
    if table.repeats and not table.about:
        yield "    repeats: true"
    yield from _concept(table)
    if table.columns:
        yield "    columns:"
    for column in table.profile.columns:
        if (draft := table.columns.get(column.name)) is not None:
            if draft.fields is not None and words and column.values.keys() & MISSING:
                draft.fields["missing"] = []
            yield from _column(column.name, draft)


def _concept(table: TableGuess) -> Iterator[str]:
    if table.parent:
        yield f"    parent: {_scalar(table.parent)}"
    if table.about or table.is_concepts:
        return
    if not table.class_column:
        yield from _line(f"    concept: {_scalar(table.concept)}", "what one row is", "", False)
        return
    column = table.profile[table.class_column]
    fields: dict[str, object] = {"column": column.name}
    reference = table.references.get(column.name)
    if reference is not None:
        fields["to"] = reference.table
        if reference.by_name:
            fields["by"] = "name"
    elif table.concept not in column.values:
        fields["below"] = table.concept
    if separator := table.separators.get(column.name):
        fields["separator"] = separator
    why = f"{len(list(table.parts(column)))} kinds: {'; '.join(list(table.parts(column))[:3])}"
    other = f"or concept: {table.concept}"
    yield from _line(f"    concept: {_value(fields)}", why, other, reference is not None)


def _field(table: TableGuess, name: str, value: object, why: str = "") -> Iterator[str]:
    note, doubt = table.notes.get(name, (why, False))
    yield from _line(f"    {name}: {_value(value)}", note, "", doubt)


def _column(name: str, draft: Draft) -> Iterator[str]:
    entry = "skip" if draft.fields is None else _value(draft.fields)
    comment = _comment(draft.why, draft.other, doubt=draft.doubt)
    if comment:
        yield f"      {comment}"
    yield f"      {_scalar(name)}: {entry}"


def _comment(why: str, other: str, *, doubt: bool) -> str:
    """Why something was guessed and what else could stand there, "" for neither."""
    text = " | ".join(_printable(part) for part in (why, other) if part)
    return f"{'#?' if doubt else '#'} {text}".rstrip() if text or doubt else ""


def _line(entry: str, why: str, other: str, doubt: bool) -> Iterator[str]:
    """A line with its comment behind it."""
    comment = _comment(why, other, doubt=doubt)
    yield f"{entry}  {comment}" if comment else entry


def _value(value: object) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_value(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _scalar(str(value))


def _scalar(text: str) -> str:
    """A text as YAML, quoted unless it is a plain word."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + _printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _printable(text: str) -> str:
    """The text with escapes for what YAML does not let stand in a file."""
    return "".join(
        character
        if character.isprintable() and character not in "\ufeff\ufffe\uffff"
        else f"\\U{ord(character):08x}"
        for character in text
    )
