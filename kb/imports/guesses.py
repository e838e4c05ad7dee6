"""What tables of a person's own probably are: ids, names, concepts, keys to one another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kb.imports.forms import Guess, guess_form, words_of
from kb.imports.profile import Column, Profile
from kb.store import normalise_name
from kopl_base.errors import counted

_CODES = frozenset(("code", "key", "isbn", "sku", "no", "nr", "number", "#"))
_NAMES = ("name", "title", "label")
_ALIASES = frozenset(
    ("alias", "aliases", "also known as", "aka", "synonyms", "other names", "alternative names")
)
_CLASSES = frozenset(("type", "kind", "category", "class", "genre", "species", "sort"))
_PARENTS = frozenset(("parent", "broader", "above", "superclass"))
KEYS = frozenset(("id", "ids", "key", "keys", "ref", "fk"))
_IRREGULAR = {"people": "person", "men": "man", "women": "woman", "children": "child"}
_IRREGULAR |= {"series": "series", "species": "species", "movies": "movie", "cookies": "cookie"}


def singular(word: str) -> str:
    """The word for one of what a table holds, as English mostly makes it."""
    lower = word.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    if lower.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search("(s|x|z|ch|sh)es$", lower) and not lower.endswith(("ses", "zes")):
        return word[:-2]
    if lower.endswith("s") and len(word) > 3 and not lower.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@dataclass
class Reference:
    """A column whose cells name the rows of a table."""

    table: str
    by_name: bool
    missing: list[str]  # texts that name none
    is_sure: bool


@dataclass
class Draft:
    """What was guessed of a column: the fields of its entry, why, what may be doubtful."""

    fields: dict[str, object] | None  # None: it is skipped
    why: str = ""
    other: str = ""  # what else could stand there
    doubt: bool = False


@dataclass
class TableGuess:
    """What was guessed of a table."""

    key: str
    profile: Profile
    id: str = ""
    names: list[str] = field(default_factory=list)
    aliases: str = ""
    concept: str = ""
    about: str = ""
    about_by_name: bool = False
    is_concepts: bool = False
    prefix: str = ""
    repeats: bool = False
    notes: dict[str, tuple[str, bool]] = field(default_factory=dict)  # field -> why, doubtful
    class_column: str = ""
    parent: str = ""
    separators: dict[str, str] = field(default_factory=dict)
    references: dict[str, Reference] = field(default_factory=dict)
    forms: dict[str, Guess] = field(default_factory=dict)
    columns: dict[str, Draft] = field(default_factory=dict)

    def parts(self, column: Column) -> Iterator[str]:
        """The distinct texts in the cells of a column."""
        separator = self.separators.get(column.name)
        if not separator:
            yield from column.values
            return
        yield from dict.fromkeys(
            part.strip() for cell in column.values for part in cell.split(separator) if part.strip()
        )

    def first_words(self, column: Column) -> list[str]:
        """The words of a header without those for keys: ``author_id`` is about an author."""
        words = words_of(column.name)
        while len(words) > 1 and words[-1].lower() in KEYS:
            words.pop()
        return words


def guess_tables(profiles: dict[str, Profile]) -> dict[str, TableGuess]:
    """What the rows of tables are, by the tables' names; for columns see `kb.imports.columns`."""
    tables = {key: TableGuess(key, profile) for key, profile in profiles.items()}
    for table in tables.values():
        _guess_cells(table)
        _guess_id(table)
        _guess_name(table)
        _guess_aliases(table)
    for table in tables.values():
        _guess_references(table, tables)
    for table in tables.values():
        _guess_rows(table, tables)
    for table in tables.values():  # rows about others are no things that could be named
        named = table.references.items()
        table.references = {name: r for name, r in named if not tables[r.table].about}
    _guess_concepts(tables)
    _guess_prefixes(tables)
    return tables


# --- ids and names -----------------------------------------------------------------------------


def _guess_cells(table: TableGuess) -> None:
    """Where cells hold several values, and of which type they are."""
    for column in table.profile.columns:
        guess = guess_form(column.values, column.words)
        if guess.type == "string":
            separator = _separator(column)
            if separator:
                table.separators[column.name] = separator
                guess = guess_form(table.parts(column), column.words)
        table.forms[column.name] = guess


def _separator(column: Column) -> str:
    """What parts several values in a cell, "" when cells hold one."""
    total = len(column.values)
    for mark in (";", "|"):
        cut = [cell.split(mark) for cell in column.values if mark in cell]
        words = [len(part.split()) for parts in cut for part in parts]
        if len(cut) * 10 >= total and words and sum(words) <= 5 * len(words):
            return mark
    cut = [cell.split(", ") for cell in column.values]
    parts = [part.strip() for cell in cut for part in cell]
    lists = sum(len(cell) > 1 for cell in cut)
    # Commas also stand in sentences and in names such as "Berg, Ada".
    is_short = all(len(part.split()) <= 3 for part in parts)
    if lists * 4 >= total and is_short and len(set(parts)) * 2 <= len(parts):
        return ","
    return ""


def _is_code(text: str) -> bool:
    return len(text) <= 40 and not re.search(r"\s", text)


def _guess_id(table: TableGuess) -> None:
    own = {singular(table.key).lower(), table.key.lower()}
    best: tuple[int, Column] | None = None
    for column in table.profile.columns:
        if not column.filled or not all(map(_is_code, column.values)):
            continue
        words = column.words
        rest = " ".join(word for word in words if word not in KEYS)
        is_key = bool(words[-1:]) and words[-1] in KEYS
        if is_key and (not rest or singular(rest) in own):
            rank = 0
        elif len(words) == 1 and words[0] in _CODES:
            rank = 1
        elif is_key and column.number == 0:
            rank = 2
        else:
            continue
        # A few that are there twice or missing are mistakes, where the header says what it is.
        rows = table.profile.rows
        is_clean = column.is_unique and column.filled == rows
        if not is_clean and (rank > 0 or len(column.values) * 5 < rows * 4):
            continue
        if best is None or rank < best[0]:
            best = (rank, column)
    if best is None:
        return
    column = best[1]
    table.id = column.name
    twice = [value for value, count in column.values.items() if count > 1]
    missing = table.profile.rows - column.filled
    why = f"no value is there twice: {samples(column.values)}"
    if twice:
        why = f"{counted(len(twice), 'value is', 'values are')} there twice"
        why += f" ({samples(twice)}); mend them"
    if missing:
        why += f"; missing in {counted(missing, 'row')}"
    table.notes["id"] = (why, bool(twice or missing))


def _guess_name(table: TableGuess) -> None:
    """The column of names; "" where no header says so."""
    own = singular(table.key).lower()
    columns = {" ".join(column.words): column for column in table.profile.columns}
    for wanted in (*_NAMES, *(f"{own} {word}" for word in _NAMES), own, "full name"):
        column = columns.get(wanted)
        if column is None or not column.filled or column.name == table.id:
            continue
        if wanted != own or table.forms[column.name].type == "string":
            table.names = [column.name]
            _note_name(table, column)
            return
    first = columns.get("first name") or columns.get("given name") or columns.get("firstname")
    last = columns.get("last name") or columns.get("surname") or columns.get("lastname")
    if first is not None and last is not None:
        table.names = [first.name, last.name]
        table.notes["name"] = ("joined by a blank", False)


def _guess_aliases(table: TableGuess) -> None:
    """The column of further names, which its header tells."""
    for column in table.profile.columns:
        if " ".join(column.words) in _ALIASES and column.filled and column.name not in table.names:
            table.aliases = column.name
            table.notes["aliases"] = (samples(table.parts(column)), False)
            return


def _note_name(table: TableGuess, column: Column) -> None:
    why = samples(column.values)
    twice = column.filled - len(column.values)
    missing = table.profile.rows - column.filled
    if missing:
        why += f"; missing in {counted(missing, 'row')}"
    if twice and not table.id:
        table.repeats = True
        why += f"; {twice} are there again: one thing each, by repeats"
    elif twice:
        why += f"; {twice} are namesakes"
    table.notes["name"] = (why, bool(missing or (twice and not table.id)))


# --- references --------------------------------------------------------------------------------


def _guess_references(table: TableGuess, tables: dict[str, TableGuess]) -> None:
    for column in table.profile.columns:
        if column.name in (table.id, *table.names) and not (table.id and not table.names):
            continue
        if column.name == table.aliases:
            continue
        found = []
        for other in tables.values():
            if (reference := _reference(table, column, other)) is not None:
                found.append(reference)
        if not found:
            continue
        found.sort(key=lambda reference: (not reference.is_sure, len(reference.missing)))
        best = found[0]
        rivals = [r for r in found[1:] if r.is_sure == best.is_sure and not r.missing]
        best.is_sure = best.is_sure and not rivals
        table.references[column.name] = best


def _reference(table: TableGuess, column: Column, other: TableGuess) -> Reference | None:
    """The rows of a table that a column names, by id or else by name; None when it does not."""
    parts = list(table.parts(column))
    if not parts or (table is other and column.name in (table.id, *table.names)):
        return None
    stem = " ".join(word.lower() for word in table.first_words(column))
    own = singular(other.key).replace("_", " ").lower()
    is_named = singular(stem) == own or singular(stem).endswith(f" {own}")
    is_key = column.words[-1:] and column.words[-1] in KEYS
    if other.id:
        same_header = column.name == other.id and other.id.lower() not in KEYS
        known = other.profile[other.id].values
        strangers = [part for part in parts if part.removesuffix(".0") not in known]
        has_letters = any(re.search("[^0-9.]", part) for part in parts)
        evidence = is_named or same_header or bool(has_letters and len(parts) > 1)
        if not strangers and (evidence or is_key):
            return Reference(other.key, False, [], evidence)
        if (is_named or same_header) and len(strangers) * 5 <= len(parts):
            return Reference(other.key, False, strangers, False)
    if len(other.names) == 1 and table.forms[column.name].type == "string":
        names = set(map(normalise_name, other.profile[other.names[0]].values))
        strangers = [part for part in parts if normalise_name(part) not in names]
        if not strangers and len(parts) > 1:
            return Reference(other.key, True, [], True)
        if is_named and len(strangers) * 2 <= len(parts):
            return Reference(other.key, True, strangers, False)
    return None


# --- what rows are -----------------------------------------------------------------------------


def _guess_rows(table: TableGuess, tables: dict[str, TableGuess]) -> None:
    """Whether rows are things, or facts about the things of other tables."""
    if table.names:
        table.concept = concept_of(table)
        return
    filled = [column for column in table.profile.columns if column.filled]
    is_named = any(other.about == table.key for other in tables.values())
    subjects = [
        name
        for name, reference in table.references.items()
        if name not in table.separators
        and not is_named
        and not tables[reference.table].about
        and any(column.name not in (name, table.id) for column in filled)
        and reference.table != table.key
        and table.profile[name].filled == table.profile.rows
    ]
    if subjects:
        subject = table.references[subjects[0]]
        table.about, table.about_by_name = subject.table, subject.by_name
        what = "names" if subject.by_name else "ids"
        table.notes["about"] = (
            f"{subjects[0]!r} holds {what} of {subject.table}, and no column names the rows",
            not subject.is_sure,
        )
        if table.id and table.id != subjects[0]:
            table.columns[table.id] = Draft(None, "numbers of the rows", "or attribute: …")
        table.id, table.names = "", []
        (table.names.append if subject.by_name else lambda name: None)(subjects[0])
        if not subject.by_name:
            table.id = subjects[0]
        table.notes.pop("id", None)
        table.notes.pop("name", None)
        return
    table.concept = concept_of(table)
    _name_otherwise(table)


def _name_otherwise(table: TableGuess) -> None:
    """Choose a column of names that no header tells: the first one of different texts."""
    columns = [column for column in table.profile.columns if column.name != table.id]
    full = [c for c in columns if c.filled == table.profile.rows and c.name not in table.separators]
    texts = [c for c in full if table.forms[c.name].type == "string"]
    unique = [c for c in texts if c.is_unique] or [
        c for c in texts if len(c.values) * 10 >= c.filled * 9
    ]
    best = (unique or [])[:1]
    if best:
        table.names = [best[0].name]
        _note_name(table, best[0])
    elif table.id:
        table.names = [table.id]
        table.notes["name"] = ("no column of names was found: ids are names", True)
        return
    else:
        chosen = (texts or full or table.profile.columns)[0]
        table.names = [chosen.name]
        _note_name(table, chosen)
    why, _ = table.notes["name"]
    table.notes["name"] = (why, True)


def concept_of(table: TableGuess) -> str:
    return " ".join(singular(word) for word in words_of(table.key)) or "thing"


def _guess_concepts(tables: dict[str, TableGuess]) -> None:
    """Which columns name the concepts of rows, and which tables hold concepts."""
    for table in tables.values():
        if table.about:
            continue
        for column in table.profile.columns:
            words = set(table.first_words(column)) | {word.lower() for word in column.words}
            if not words & _CLASSES or column.name in (table.id, *table.names):
                continue
            reference = table.references.get(column.name)
            if reference is not None and reference.table != table.key:
                if _has_only_a_tree(tables[reference.table]):
                    tables[reference.table].is_concepts = True
                    table.class_column = column.name
                    break
                continue
            few = len(column.values) <= max(12, table.profile.rows // 3)
            if reference is None and few and table.forms[column.name].type == "string":
                table.class_column = column.name
                break


def _has_only_a_tree(table: TableGuess) -> bool:
    """Whether a table has nothing but ids, names and what stands above them."""
    rest = []
    for column in table.profile.columns:
        if column.name in (table.id, *table.names) or not column.filled:
            continue
        reference = table.references.get(column.name)
        is_parent = set(table.first_words(column)) & _PARENTS
        if reference is not None and reference.table == table.key and is_parent:
            table.parent = column.name
        else:
            rest.append(column.name)
    return not rest


def _guess_prefixes(tables: dict[str, TableGuess]) -> None:
    """Tell the ids of tables apart where they are numbers, or the same."""
    own = [table for table in tables.values() if table.id and not table.about]
    for table in own:
        ids = table.profile[table.id].values.keys()
        clash = [
            other.key
            for other in own
            if other is not table and not ids.isdisjoint(other.profile[other.id].values.keys())
        ]
        if clash or all(id.isdecimal() for id in ids):
            table.prefix = f"{singular(table.key)}/"
            why = f"ids are also in {', '.join(clash)}" if clash else "ids are numbers"
            table.notes["prefix"] = (why, False)


def samples(values: Iterable[str], count: int = 3) -> str:
    """A few of the values, cut to a length."""
    shown: list[str] = []
    for value in values:
        if len(shown) == count:
            shown.append("…")
            break
        text = " ".join(value.split())
        shown.append(text if len(text) <= 24 else text[:23] + "…")
    return "; ".join(shown)
