"""The mapping file of a table: what its columns are, and what its relations mean.

A JSON object, or the same in YAML, whose fields may all be left out::

    {"delimiter": ",", "quoted": true, "header": false,
     "columns": {"head": 1, "relation": 2, "tail": 3, "qualifiers": 4},
     "instance_of": "P31", "subclass_of": "P279", "default_concept": "thing",
     "aliases": "also known as",
     "attributes": {"P569": "date", "P2048": {"type": "quantity", "unit": "metre"}},
     "qualifiers": {"P585": "date", "*": "node"},
     "entity_labels": ["names.json", {"file": "more.json", "id": "qid", "label": "title",
                                      "aliases": "other titles"}],
     "relation_labels": "relations.tsv",
     "unlabelled": "keep"}

Columns are numbers from 1, or names of the header. ``columns.qualifiers`` is the column where
pairs of key and value begin, or an object: for each key the column of its values. Types are
``string``, ``quantity``, ``year`` and ``date`` (a day or a year); a qualifier may also be a
``node``, of which the label is the value. A qualifier without a type is a string, or the label of
the node if it is the id of one that has a label. ``"*"`` stands for all other keys. Label files
are looked for beside the mapping; so are ``aliases`` read: one relation or a list, whose tails are
further names of their heads, or in label files the field with a list of such names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from kb.imports.common import read_aliases, read_labels
from kopl_base.errors import ReadError
from kopl_base.packages import needs
from kopl_base.stream import FIELD_TWICE, JsonDecoder, TextReader

Column = int | str
TypeName = Literal["string", "quantity", "year", "date", "node"]
_COLUMNS = ("head", "relation", "tail", "qualifiers")


@dataclass(frozen=True)
class ValueType:
    """The type of the values of an attribute or qualifier; ``unit`` is that of quantities."""

    name: TypeName
    unit: str = ""


@dataclass(frozen=True)
class FactMap:
    """What the columns and relations of a table are; see the module's text."""

    source: str = ""
    delimiter: str | None = None
    quoted: bool | None = None
    header: bool = False
    head: Column = 1
    relation: Column = 2
    tail: Column = 3
    qualifiers: Column | Mapping[str, Column] | None = 4
    instance_of: str = ""
    subclass_of: str = ""
    default_concept: str = ""
    aliases: frozenset[str] = frozenset()
    attributes: Mapping[str, ValueType] = field(default_factory=dict)
    qualifier_types: Mapping[str, ValueType] = field(default_factory=dict)
    entity_labels: Mapping[str, str] = field(default_factory=dict)
    entity_aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    relation_labels: Mapping[str, str] = field(default_factory=dict)
    keep_unlabelled: bool = True

    def form_of(self, path: Path) -> tuple[str, bool]:
        """Delimiter and quoting of a file: as the mapping says, else by its ending."""
        is_tsv = ".tsv" in {suffix.lower() for suffix in path.suffixes}
        delimiter = self.delimiter or ("\t" if is_tsv else ",")
        return delimiter, delimiter != "\t" if self.quoted is None else self.quoted


def read_fact_map(path: Path | str) -> FactMap:
    """The mapping in a file of JSON, or YAML by its ending, with its label files read.

    Raises ReadError with the field for what is not as it should be.
    """
    path = Path(path)
    fields = _Fields(_content(path), "", str(path))
    columns = fields.object("columns")
    if columns:
        for name in _COLUMNS[:3]:
            if name not in columns.content:
                raise columns.wrong(name, "a column is missing here")
    qualifiers = columns.content.get("qualifiers", None if columns.content else 4)
    entity_labels, entity_aliases = fields.labels("entity_labels")
    mapping = FactMap(
        source=str(path),
        delimiter=fields.text("delimiter") or None,
        quoted=fields.flag("quoted"),
        header=bool(fields.flag("header")),
        head=columns.column("head", 1),
        relation=columns.column("relation", 2),
        tail=columns.column("tail", 3),
        qualifiers=(
            columns.columns("qualifiers")
            if isinstance(qualifiers, dict)
            else None
            if qualifiers is None
            else columns.column("qualifiers", 4)
        ),
        instance_of=fields.text("instance_of"),
        subclass_of=fields.text("subclass_of"),
        default_concept=fields.text("default_concept"),
        aliases=frozenset(fields.texts("aliases")),
        attributes=fields.types("attributes", node=False),
        qualifier_types=fields.types("qualifiers", node=True),
        entity_labels=entity_labels,
        entity_aliases=entity_aliases,
        relation_labels=fields.labels("relation_labels")[0],
        keep_unlabelled=fields.choice("unlabelled", ("keep", "drop")) == "keep",
    )
    columns.done()
    fields.done()
    if mapping.delimiter is not None and len(mapping.delimiter) != 1:
        raise fields.wrong("delimiter", 'expected one character, such as "," or "\\t"')
    if mapping.delimiter in ("\r", "\n", '"'):
        raise fields.wrong("delimiter", "a quotation mark or line end cannot part columns")
    for relation in (mapping.instance_of, mapping.subclass_of):
        if relation and relation in mapping.attributes:
            raise fields.wrong(f"attributes/{relation}", "this relation says what is in a class")
    for relation in sorted(mapping.aliases):
        if relation in (*mapping.attributes, mapping.instance_of, mapping.subclass_of):
            raise fields.wrong("aliases", f"{relation!r} is said to be something else, too")
    if mapping.instance_of and mapping.instance_of == mapping.subclass_of:
        raise fields.wrong("subclass_of", "the same relation as instance_of")
    names = [mapping.head, mapping.relation, mapping.tail]
    if isinstance(mapping.qualifiers, int | str):
        names.append(mapping.qualifiers)
    elif mapping.qualifiers is not None:
        names += mapping.qualifiers.values()
    if not mapping.header and (named := [name for name in names if isinstance(name, str)]):
        raise fields.wrong("columns", f'{named[0]!r} is a name; set "header" or give its number')
    return mapping


def _content(path: Path) -> Any:
    with TextReader(path) as reader:
        text = "".join(iter(reader.read, ""))
    if path.suffix.lower() in (".yaml", ".yml"):
        try:
            import yaml  # type: ignore[import-untyped]
        except ImportError:
            message = f"{needs('YAML', 'PyYAML')}; or write the mapping as JSON"
            raise ReadError(message, source=str(path)) from None
        try:
            return yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            place = f"line {mark.line + 1}" if mark else ""
            what = getattr(error, "problem", None) or error
            raise ReadError(f"not YAML: {what}", place=place, source=str(path)) from None
    try:
        decoder = JsonDecoder()
        content = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise ReadError(
            f"not JSON: {error.msg}", place=f"line {error.lineno}", source=str(path)
        ) from None
    except (ValueError, RecursionError) as error:
        raise ReadError(f"not JSON of this kind: {error}", source=str(path)) from None
    if decoder.twice:
        raise ReadError(FIELD_TWICE, place=decoder.twice, source=str(path))
    return content


class _Fields:
    """The fields of an object, taken one by one; what is left over is unknown."""

    def __init__(self, content: Any, place: str, source: str) -> None:
        self._place, self._source = place, source
        if not isinstance(content, dict):
            raise ReadError("expected an object of fields", place=place, source=source)
        self.content: dict[Any, Any] = content
        self._taken: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.content)

    def wrong(self, name: str, message: str) -> ReadError:
        """An error that names the field."""
        place = f"{self._place}/{name}" if self._place else name
        return ReadError(message, place=place, source=self._source)

    def done(self) -> None:
        """Raise ReadError for a field that nobody asked for."""
        for name in self.content:
            if name not in self._taken:
                known = ", ".join(sorted(self._taken))
                raise self.wrong(str(name), f"an unknown field; the fields are {known}")

    def _take(self, name: str) -> Any:
        self._taken.add(name)
        return self.content.get(name)

    def text(self, name: str) -> str:
        """A text, "" when it is left out."""
        value = self._take(name)
        if value is None:
            return ""
        if not isinstance(value, str) or not value:
            raise self.wrong(name, f"expected a text that is not empty, not {value!r}")
        return value

    def flag(self, name: str) -> bool | None:
        """True, False, or None when it is left out."""
        value = self._take(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, f"expected true or false, not {value!r}")
        return value

    def choice(self, name: str, words: tuple[str, ...]) -> str:
        """One of the words, the first when it is left out."""
        value = self.text(name) or words[0]
        if value not in words:
            raise self.wrong(name, f"expected {' or '.join(words)}, not {value!r}")
        return value

    def object(self, name: str) -> _Fields:
        """The fields of an object, none when it is left out."""
        value = self._take(name)
        place = f"{self._place}/{name}" if self._place else name
        return _Fields({} if value is None else value, place, self._source)

    def column(self, name: str, default: int) -> Column:
        """A column's number or name."""
        value = self._take(name)
        if value is None:
            return default
        is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if not is_number and (not isinstance(value, str) or not value):
            raise self.wrong(name, f"expected a column's number, from 1, or name, not {value!r}")
        column: Column = value
        return column

    def columns(self, name: str) -> dict[str, Column]:
        """For each key the column of its values."""
        inner = self.object(name)
        return {str(key): inner.column(key, 0) for key in inner.content}

    def types(self, name: str, *, node: bool) -> dict[str, ValueType]:
        """For each relation or key the type of its values."""
        inner = self.object(name)
        return {str(key): inner._type(key, node=node) for key in inner.content}

    def _type(self, key: str, *, node: bool) -> ValueType:
        value = self.content[key]
        unit = ""
        if isinstance(value, dict):
            fields = _Fields(value, f"{self._place}/{key}", self._source)
            value, unit = fields.text("type"), fields.text("unit")
            fields.done()
        names = [found for found in get_args(TypeName) if node or found != "node"]
        if value not in names:
            raise self.wrong(key, f"expected a type ({', '.join(names)}), not {value!r}")
        if unit and value != "quantity":
            raise self.wrong(key, "only quantities have a unit")
        return ValueType(value, unit)

    def texts(self, name: str) -> list[str]:
        """A text or a list of texts, none when it is left out."""
        value = self._take(name)
        texts = [] if value is None else value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) and text for text in texts):
            raise self.wrong(name, f"expected a text or a list of texts, not {value!r}")
        return texts

    def labels(self, name: str) -> tuple[dict[str, str], dict[str, list[str]]]:
        """The labels and aliases in the files that a field names.

        Of two labels for an id the first counts.
        """
        value = self._take(name)
        found: dict[str, str] = {}
        further: dict[str, list[str]] = {}
        for entry in value if isinstance(value, list) else [] if value is None else [value]:
            form = {"file": entry} if isinstance(entry, str) else entry
            fields = _Fields(form, name, self._source)
            file, id, label = fields.text("file"), fields.text("id"), fields.text("label")
            aliases = fields.text("aliases")
            fields.done()
            if not file:
                raise fields.wrong("file", "the file of labels is not named")
            path = Path(self._source).parent / file
            for key, text in read_labels(path, id=id or None, label=label or "label"):
                found.setdefault(key, text)
            if aliases:
                for key, text in read_aliases(path, id=id or None, field=aliases):
                    further.setdefault(key, []).append(text)
        return found, further
