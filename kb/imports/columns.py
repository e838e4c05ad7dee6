"""What the columns of tables probably say: attributes, relations, and what qualifies them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kb.imports.forms import UNITS, nearly, words_of
from kb.imports.guesses import KEYS, Draft, Reference, TableGuess, concept_of, samples, singular
from kb.imports.profile import Column

_ROLES = frozenset(("role", "relation", "relationship", "predicate", "property"))
_UNIT_WORDS = frozenset(("unit", "units", "currency"))
_TIMES = {
    "point in time": frozenset(("date", "year", "day", "on", "at", "time", "of", "as", "in")),
    "start time": frozenset(("since", "from", "start", "begin", "started", "date", "year")),
    "end time": frozenset(("until", "to", "till", "end", "ended", "date", "year")),
}
# What happened at a time is no name of the time.
_EVENTS = {
    "published": "publication",
    "born": "birth",
    "died": "death",
    "founded": "foundation",
    "established": "establishment",
    "opened": "opening",
    "closed": "closing",
    "built": "construction",
    "released": "release",
    "finished": "completion",
    "started": "beginning",
    "ended": "end",
}


def guess_columns(table: TableGuess, tables: dict[str, TableGuess]) -> None:
    """Put into ``table.columns`` what each column of a table says of its rows."""
    used = {table.id, *table.names, table.aliases, table.class_column, table.parent} - {""}
    rest = [c for c in table.profile.columns if c.name not in used and c.name not in table.columns]
    units = _unit_columns(table, rest)
    plain = []
    for column in rest:
        if not column.filled:
            table.columns[column.name] = Draft(None, "no cell has a value")
        elif column.name in units.values():
            continue
        elif table.is_concepts and column.name not in table.references:
            table.columns[column.name] = Draft(None, "concepts have no attributes")
        else:
            plain.append(column)
    owners = _owners(table, plain)
    relations = [c for c in plain if c.name in table.references and c.name not in owners]
    if table.about and relations:
        _link(table, tables, plain, relations, units)
        return
    times = _times(table, plain, owners) if table.about else {}
    facts = [c for c in plain if c.name not in owners and c.name not in times]
    for column in facts:
        table.columns[column.name] = _fact(table, tables, column, units)
    names = [column.name for column in facts]
    for column in plain:
        if column.name in owners:
            of, key = owners[column.name]
            draft = _qualifier(table, column, key, [of], units)
            # "Author born" says something of the author; authors may want a table of their own.
            of_text = table.forms[of].type == "string" and of not in table.references
            draft.doubt = draft.doubt or (of_text and key not in _TIMES)
            table.columns[column.name] = draft
        elif column.name in times:
            of_all = [] if len(names) == 1 else names
            table.columns[column.name] = _qualifier(
                table, column, times[column.name], of_all, units
            )


def _unit_columns(table: TableGuess, columns: Iterable[Column]) -> dict[str, str]:
    """For each column of numbers the column of their units, if there is one."""
    found: dict[str, str] = {}
    numbers: list[Column] = []
    for column in columns:
        if table.forms[column.name].type == "quantity":
            numbers.append(column)
        elif column.words[-1:] and column.words[-1] in _UNIT_WORDS and numbers:
            stem = column.words[:-1]
            of = [c for c in numbers if c.words == stem] if stem else numbers[-1:]
            if of and column.filled >= of[0].filled and len(column.values) <= 30:
                found[of[0].name] = column.name
    return found


def _owners(table: TableGuess, columns: list[Column]) -> dict[str, tuple[str, str]]:
    """For each column that qualifies another one, by its header, that one and the key."""
    found: dict[str, tuple[str, str]] = {}
    for column in columns:
        words = column.words
        for other in columns:
            stem = [word.lower() for word in table.first_words(other)]
            if table.forms[other.name].type == "quantity" and stem[-1] in UNITS:
                stem = stem[:-1] or stem
            if other is column or len(words) <= len(stem) or words[: len(stem)] != stem:
                continue
            rest = words[len(stem) :]
            if rest[-1] in KEYS or column.name in table.references:
                continue
            found[column.name] = (other.name, _time_key(rest) or " ".join(rest))
            break
    # One that qualifies has no qualifiers itself.
    return {name: of for name, of in found.items() if of[0] not in found}


def _time_key(words: Iterable[str]) -> str:
    """The key for words of times, "" for other words."""
    words = set(words)
    for key in ("point in time", "start time", "end time"):
        if words and words <= _TIMES[key]:
            return key
    return ""


def _times(
    table: TableGuess, columns: list[Column], owners: dict[str, tuple[str, str]]
) -> dict[str, str]:
    """For rows that are about a thing at several times, the columns of these and their keys."""
    subject = table.profile[table.names[0] if table.about_by_name else table.id]
    if subject.is_unique:
        return {}
    times = [
        column
        for column in columns
        if table.forms[column.name].type in ("date", "year") and column.name not in owners
    ]
    if len(times) == len([column for column in columns if column.name not in owners]):
        return {}
    return {c.name: _time_key(c.words) or (" ".join(c.words)) for c in times}


def _fact(
    table: TableGuess, tables: dict[str, TableGuess], column: Column, units: dict[str, str]
) -> Draft:
    reference = table.references.get(column.name)
    if reference is not None:
        return _relation(table, tables, column, reference)
    return _attribute(table, column, units)


def _attribute(table: TableGuess, column: Column, units: dict[str, str]) -> Draft:
    words, form, why, doubt = _form(table, column, units)
    if column.name in table.separators:
        words = [*words[:-1], singular(words[-1])]
    fields: dict[str, object] = {"attribute": _key(words, form), **form}
    other = ""
    guess = table.forms[column.name]
    if guess.type == "string":
        parts = list(table.parts(column))
        repeats = len(parts) * 2 <= column.filled
        concept = singular(" ".join(words))
        other = f"or {{relation: …, create: {concept}}} for things" if repeats else "or skip"
        if (near := nearly(parts, column.words)) is not None:
            mostly, stranger = near
            fields_of = ", ".join(f"{k}: {v}" for k, v in mostly.fields.items())
            other = f"but for {stranger!r} it would be type: {mostly.type}"
            other, doubt = f"{other}, {fields_of}" if fields_of else other, True
        elif sum(map(len, parts)) > 80 * len(parts):
            other, doubt = "long texts make poor values: or skip", True
    elif guess.type == "quantity" and not {"unit", "units"} & form.keys():
        other = "or add unit: …"
    elif guess.type == "year":
        other = other or "or type: quantity"
    return Draft(fields, why, guess.doubt or other, doubt)


def _form(
    table: TableGuess, column: Column, units: dict[str, str]
) -> tuple[list[str], dict[str, object], str, bool]:
    """The words of the key, the fields of the type, why, and whether it is doubtful."""
    guess = table.forms[column.name]
    header, unit = column.name, ""
    if guess.type == "quantity":
        if match := re.fullmatch(r"(.*\w.*?)[\s_]*[(\[]\s*(?:in\s+)?([^)\]]+?)\s*[)\]]", header):
            header, unit = match[1], match[2]
            unit = UNITS.get(unit.lower(), unit)
        elif stem := _stem(words := words_of(header)):
            header, unit = stem, UNITS[words[-1].lower()]
    fields: dict[str, object] = {}
    if guess.type != "string":
        fields["type"] = guess.type
    fields |= guess.fields
    if column.name in units:
        fields["unit"] = {"column": units[column.name]}
        named = table.profile[units[column.name]].values
        full = {text: UNITS[text.lower()] for text in named if text.lower() in UNITS}
        fields |= {"units": full} if full else {}
    elif unit:
        fields.setdefault("unit", unit)
        own = guess.fields.get("units")
        if isinstance(own, dict) and set(own.values()) != {unit}:
            fields.pop("unit")
    if separator := table.separators.get(column.name):
        fields["separator"] = separator
    why = f"{guess.why}: " if guess.why else ""
    return (
        words_of(header) or [header],
        fields,
        why + samples(table.parts(column)),
        bool(guess.doubt) or column.has_more,
    )


def _stem(words: list[str]) -> str:
    """A header without the unit at its end: ``price in euro``; "" where none is left, or no unit.

    In ``price per kg`` the last word is no unit of the price.
    """
    rest = words[:-1]
    if not rest or words[-1].lower() not in UNITS or rest[-1].lower() == "per":
        return ""
    if rest[-1].lower() == "in":
        rest.pop()
    return " ".join(rest).rstrip(" ,;")


def _relation(
    table: TableGuess, tables: dict[str, TableGuess], column: Column, reference: Reference
) -> Draft:
    words = table.first_words(column)
    if column.name in table.separators:
        words = [*words[:-1], singular(words[-1])]
    fields: dict[str, object] = {"relation": " ".join(words), "to": reference.table}
    other_table = tables[reference.table]
    if reference.by_name and other_table.id:
        fields["by"] = "name"
    if separator := table.separators.get(column.name):
        fields["separator"] = separator
    what = "names" if reference.by_name else "ids"
    why = f"{what} of {reference.table}: {samples(table.parts(column))}"
    if reference.missing:
        count, shown = len(reference.missing), samples(reference.missing)
        if reference.by_name:
            fields["create"] = other_table.concept or concept_of(other_table)
            why += f"; {count} without a row there ({shown}) are made by create"
        else:
            why += f"; {count} without a row there: {shown}"
    return Draft(fields, why, "or direction: backward", not reference.is_sure)


def _qualifier(
    table: TableGuess, column: Column, key: str, of: list[str], units: dict[str, str]
) -> Draft:
    fields: dict[str, object] = {"qualifier": key}
    if of:
        fields["of"] = of[0] if len(of) == 1 else of
    reference = table.references.get(column.name)
    if reference is not None and not reference.missing:
        fields["to"] = reference.table
        why = f"{'names' if reference.by_name else 'ids'} of {reference.table}"
        if separator := table.separators.get(column.name):
            fields["separator"] = separator
        return Draft(fields, f"{why}: {samples(table.parts(column))}", "", not reference.is_sure)
    _, form, why, doubt = _form(table, column, units)
    fields |= form
    return Draft(fields, why, table.forms[column.name].doubt or "or attribute: …", doubt)


def _link(
    table: TableGuess,
    tables: dict[str, TableGuess],
    columns: list[Column],
    relations: list[Column],
    units: dict[str, str],
) -> None:
    """Rows that join the things of two tables: one relation, and all else qualifies it."""
    main = relations[0]
    draft = _relation(table, tables, main, table.references[main.name])
    roles = [c for c in columns if set(c.words) & _ROLES and c.name not in table.references]
    assert draft.fields is not None
    if roles and roles[0].filled == table.profile.rows and len(roles[0].values) <= 30:
        draft.fields["relation"] = {"column": roles[0].name}
        draft.other = f"its name is in {roles[0].name!r}: {samples(roles[0].values)}"
    else:
        roles = []
        draft.doubt = True
        draft.other = "name the relation as it reads from subject to object"
    table.columns[main.name] = draft
    for column in columns:
        if column is main or column in roles[:1]:
            continue
        words = [word.lower() for word in table.first_words(column)]
        key = _time_key(words)
        if not key:
            is_reference = column.name in table.references
            _, form, _, _ = _form(table, column, units)
            key = " ".join(words) if is_reference else _key(_form(table, column, units)[0], form)
        table.columns[column.name] = _qualifier(table, column, key, [main.name], units)


def _key(words: list[str], form: dict[str, object]) -> str:
    """The key that is asked for: ``born`` is the date of birth, ``pages`` the number of pages."""
    if form.get("type") in ("date", "year") and len(words) == 1 and words[0].lower() in _EVENTS:
        return f"{form['type']} of {_EVENTS[words[0].lower()]}"
    is_count = form.get("type") == "quantity" and not {"unit", "units"} & form.keys()
    if is_count and words[0] != "number" and singular(words[-1]) != words[-1]:
        return f"number of {' '.join(words)}"
    return " ".join(words)
