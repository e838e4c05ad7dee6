"""Annotations: a YAML file that says how the names of a knowledge base read.

`docs/lexicon.md` explains the file. Reading it checks every entry and names file and line of what
is wrong; whether its names occur in a knowledge base is checked when a `Lexicon` is made with it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generation import english
from generation.lexicon.entries import Verb, read_verb
from kb import KnowledgeBase
from kb.values import NO_UNIT
from kopl_base.errors import ReadError
from kopl_base.packages import needs
from kopl_base.stream import read_text

if TYPE_CHECKING:
    from yaml.nodes import Node  # type: ignore[import-untyped]

RELATIONS, KEYS, QUALIFIERS = "relations", "keys", "qualifier keys"
UNITS, CONCEPTS, NAMES = "units", "concepts", "names"
TODO = "todo"  # the field that marks an entry as not looked at


@dataclass(frozen=True, slots=True)
class Given:
    """What a file gives for one name: fields of its entry, its line, why it is to be checked."""

    fields: Mapping[str, Any]
    line: int
    source: str = ""
    todo: str = ""

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.source}: line {self.line}" if self.source else f"line {self.line}"


@dataclass(frozen=True)
class Annotations:
    """What a file gives, by section and name."""

    sections: Mapping[str, Mapping[str, Given]]
    source: str = ""

    def of(self, section: str) -> Mapping[str, Given]:
        """The entries of a section."""
        return self.sections.get(section, {})

    def over(self, other: Annotations | None) -> Annotations:
        """These annotations, with those of another file for names that have none here."""
        if other is None:
            return self
        sections = {
            section: {**other.of(section), **self.of(section)}
            for section in {**other.sections, **self.sections}
        }
        return Annotations(sections, self.source)

    def only(self, kb: KnowledgeBase) -> Annotations:
        """The annotations without those that name nothing in a knowledge base."""
        strange = {(section, name) for section, name, _, _ in self.strangers(kb)}
        return Annotations(
            {
                section: {n: given for n, given in entries.items() if (section, n) not in strange}
                for section, entries in self.sections.items()
            },
            self.source,
        )

    def strangers(self, kb: KnowledgeBase) -> Iterator[tuple[str, str, Given, str]]:
        """The entries that name nothing in a knowledge base: section, name, entry and a message."""
        for section, entries in self.sections.items():
            known: frozenset[str] | None = None
            for name, given in entries.items():
                if section == NAMES:
                    if not len(kb.named(name)):
                        yield section, name, given, f"{name!r} is the name of no entity"
                    continue
                known = frozenset(names_of(kb, section)) if known is None else known
                if name not in known:
                    near = difflib.get_close_matches(name, sorted(known), 1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    what = _WHAT[section]
                    yield section, name, given, f"{name!r} is no {what} of the knowledge base{hint}"


_WHAT = {
    RELATIONS: "relation",
    KEYS: "attribute key",
    QUALIFIERS: "qualifier key",
    UNITS: "unit",
    CONCEPTS: "concept",
}


def names_of(kb: KnowledgeBase, section: str) -> list[str]:
    """The names of a knowledge base that a section annotates, in the order of the alphabet."""
    if section == RELATIONS:
        found = kb.relations
    elif section == KEYS:
        found = kb.attribute_keys
    elif section == QUALIFIERS:
        found = kb.qualifier_keys
    elif section == UNITS:
        found = [unit for unit in kb.units if unit != NO_UNIT]
    else:
        found = [kb.name_of(node) for node in range(kb.entity_count, kb.node_count)]
    return sorted(set(found))


def read_annotations(path: Path | str) -> Annotations:
    """The annotations of a file; raises ReadError with file, line and entry."""
    return parse_annotations(read_text(path), str(path))


@cache
def bundled_annotations() -> Annotations:
    """The annotations of the bundled knowledge base ``world``."""
    text = resources.files("generation.lexicon").joinpath("world.yaml").read_text("utf-8")
    return parse_annotations(text, "world.yaml")


def annotations_for(kb: KnowledgeBase) -> Annotations | None:
    """The bundled annotations where the knowledge base has exactly the names of ``world``."""
    relations = kb.relations
    if "legislative body" not in relations or "decays to" not in relations:
        return None  # without reading the file: it is another knowledge base
    found = bundled_annotations()
    sections = (RELATIONS, KEYS, QUALIFIERS)
    same = all(names_of(kb, section) == sorted(found.of(section)) for section in sections)
    return found if same else None


# --- reading ---------------------------------------------------------------------------------


_DEEPEST = 10  # sections, names, fields, and a verb make four


class _BadEntry(Exception):
    """What is wrong, and the line; the file is added by `parse_annotations`."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.line = node.start_mark.line + 1


def parse_annotations(text: str, source: str = "") -> Annotations:
    """The annotations of a text; raises ReadError that names the source, the line and the entry."""
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise ReadError(needs("annotations", "PyYAML"), source=source) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):  # composing would take all of the stack
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                line = event.start_mark.line + 1
                raise ReadError(
                    "lists or maps inside of others; annotations have sections, names and fields",
                    place=f"line {line}",
                    source=source,
                )
        root = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else ""
        raise ReadError(
            f"not YAML: {getattr(error, 'problem', None) or error}", place=place, source=source
        ) from None
    if root is None:
        return Annotations({}, source)
    try:
        sections = {
            section: _entries(section, node, source)
            for section, node in _pairs(root, "sections", list(FIELDS))
        }
    except _BadEntry as problem:
        raise ReadError(str(problem), place=f"line {problem.line}", source=source) from None
    return Annotations(sections, source)


def _entries(section: str, node: Node, source: str) -> dict[str, Given]:
    if node.id == "scalar" and not node.value:
        return {}
    return {name: _given(section, name, entry, source) for name, entry in _pairs(node, section)}


def _given(section: str, name: str, node: Node, source: str) -> Given:
    if node.id == "scalar" and not node.value:  # "area:" – it was looked at, and reads well
        return Given({}, node.start_mark.line + 1, source)
    readers = FIELDS[section]
    found: dict[str, Any] = {}
    todo = ""
    for field, value in _pairs(node, f"{section}: {name}", [*readers, TODO]):
        try:
            if field == TODO:
                todo = _text(value) or "to be checked"
            else:
                found[field] = readers[field](value)
        except _BadEntry as problem:
            raise _BadEntry(value, f"{section}: {name}: {field}: {problem}") from None
    return Given(found, node.start_mark.line + 1, source, todo)


def _pairs(node: Node, where: str, known: list[str] | None = None) -> Iterator[tuple[str, Node]]:
    """The keys and values of a mapping; raises _BadEntry for another node and for double keys."""
    if node.id != "mapping":
        raise _BadEntry(node, f"{where}: names and their fields were expected")
    seen: set[str] = set()
    for key, value in node.value:
        if key.id != "scalar":
            raise _BadEntry(key, f"{where}: a name was expected")
        name = key.value
        if known is not None and name not in known:
            raise _BadEntry(key, f"{where}: there is no {name!r}; write {', '.join(known)}")
        if name in seen:
            raise _BadEntry(key, f"{where}: {name!r} stands twice")
        seen.add(name)
        yield name, value


def _text(node: Node) -> str:
    if node.id != "scalar":
        raise _BadEntry(node, "a text was expected")
    return " ".join(str(node.value).split())


def _noun(node: Node) -> str:
    if not (text := _text(node)):
        raise _BadEntry(node, "it is empty; leave the field out")
    return text


def _truth(node: Node) -> bool:
    text = _text(node).lower()
    if text not in ("true", "false", "yes", "no"):
        raise _BadEntry(node, f"true or false was expected, not {text!r}")
    return text in ("true", "yes")


def _verb(node: Node) -> Verb | None:
    """A verb; "none" takes away one that would be guessed."""
    if node.id == "scalar":
        text = _noun(node)
        if text == "none":
            return None
        if found := read_verb(text):
            return found
        raise _BadEntry(node, f"what is the base form of {text!r}? Write {{one: {text}, base: …}}")
    parts = {key: _noun(value) for key, value in _pairs(node, "verb", ["one", "many", "base"])}
    found = read_verb(parts.get("one", ""), parts.get("base", ""))
    if "one" not in parts or found is None:
        raise _BadEntry(node, "a verb is written {one: received, base: receive}")
    return replace(found, many=parts.get("many", found.many))


def _comparison(node: Node) -> english.Comparison | None:
    if node.id == "scalar":
        text = _noun(node)
        return None if text == "none" else english.comparison(text)
    texts = [_noun(part) for part in node.value] if node.id == "sequence" else []
    if len(texts) != 4:
        raise _BadEntry(
            node, "an adjective was expected, or four: [larger, largest, smaller, smallest]"
        )
    return texts[0], texts[1], texts[2], texts[3]


def _compared(node: Node) -> english.Comparison:
    if (found := _comparison(node)) is None:
        raise _BadEntry(node, "a key is always compared by some word; write 'large' or 'high'")
    return found


def _question(node: Node) -> str:
    text = _text(node).rstrip("?")
    if text and "{}" not in text:
        raise _BadEntry(node, "write {} where the owner of the key stands")
    return text


def _asked(node: Node) -> str:
    return _noun(node).rstrip("?")


Reader = Callable[[Any], Any]
FIELDS: dict[str, dict[str, Reader]] = {
    RELATIONS: {
        "noun": _noun,
        "nouns": _noun,
        "of": _noun,
        "forward": _verb,
        "backward": _verb,
        "several": _truth,
    },
    KEYS: {
        "noun": _noun,
        "a": _noun,
        "plural": _truth,
        "comparison": _compared,
        "adjective": _comparison,
        "counted": _text,
        "event": _verb,
        "question": _question,
        "identifies": _truth,
    },
    QUALIFIERS: {"noun": _noun, "a": _noun, "given": _noun, "compared": _text, "question": _asked},
    UNITS: {"one": _noun, "many": _noun},
    CONCEPTS: {
        "noun": _noun,
        "nouns": _noun,
        "a": _noun,
        "the": _truth,
        "head": _truth,
        "counted": _truth,
        "complete": _truth,
    },
    NAMES: {"the": _truth},
}
