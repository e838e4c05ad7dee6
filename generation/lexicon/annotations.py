"""Annotations: a YAML file that says how the names of a knowledge base read.

`docs/lexicon.md` explains the file. Reading it checks every entry and names file and line of what
is wrong; whether its names occur in a knowledge base is checked when a `Lexicon` is made with it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
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

Reader = Callable[[Any], Any]
RELATIONS, KEYS, QUALIFIERS = "relations", "keys", "qualifier keys"
UNITS, CONCEPTS, NAMES = "units", "concepts", "names"
TODO = "todo"  # the field that marks an entry as not looked at
DETAILS = "details"
ALSO = "also"  # the field with further wordings, each an entry
# What is true of a name however it is said, and so is no field of a further wording.
OF_ALL = {
    RELATIONS: ("several", "dates", "details", "complete", "identifies"),
    KEYS: ("dates", "complete", "identifies", "called"),
    CONCEPTS: ("the", "head", "counted", "complete", "greatest", "called"),
}
DATES = ("event", "state", "estimate", "edition")
COMPLETE = {RELATIONS: ("yes", "no", "forward", "backward"), KEYS: ("yes", "no", "partly")}


@dataclass(frozen=True, slots=True)
class Given:
    """What a file gives for one name: fields of its entry, its line, why it is to be checked.

    ``also``: the fields of further wordings, which mean the same. ``lines``: those of the qualifier
    keys under ``details``.
    """

    fields: Mapping[str, Any]
    line: int
    source: str = ""
    todo: str = ""
    also: tuple[Mapping[str, Any], ...] = ()
    lines: tuple[tuple[str, int], ...] = ()

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
        strange: set[tuple[str, str]] = set()
        odd: set[tuple[str, str]] = set()  # those that are there, with a detail that is not
        for section, name, found, _ in self.strangers(kb):
            (strange if found is self.of(section)[name] else odd).add((section, name))
        return Annotations(
            {
                section: {
                    name: replace(given, lines=()) if (section, name) in odd else given
                    for name, given in entries.items()
                    if (section, name) not in strange
                }
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
                    if not len(kb.named(name)) and not len(kb.known_as(name)):
                        yield section, name, given, f"{name!r} is the name of no entity"
                    continue
                known = frozenset(names_of(kb, section)) if known is None else known
                if name not in known:
                    yield section, name, given, _unknown(section, name, known)
                    continue
                for key, line in given.lines:
                    if key not in kb.qualifier_keys:
                        message = _unknown(QUALIFIERS, key, kb.qualifier_keys)
                        at = replace(given, line=line)
                        yield section, name, at, f"{name}: {DETAILS}: {message}"


def _unknown(section: str, name: str, known: Iterable[str]) -> str:
    """What is said of a name that a knowledge base does not have."""
    near = difflib.get_close_matches(name, sorted(known), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{name!r} is no {_WHAT[section]} of the knowledge base{hint}"


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


def bundled_texts() -> dict[str, str]:
    """The files with the annotations of the bundled knowledge base ``world``, by name."""
    folder = resources.files("generation.lexicon").joinpath("world")
    names = ("relations.yaml", "keys.yaml", "others.yaml", "concepts.yaml")
    return {f"world/{name}": folder.joinpath(name).read_text("utf-8") for name in names}


EVERYDAY = "everyday.yaml"  # words for names that many knowledge bases have
# Between the names that share an entry of everyday words, and behind those of people's keys.
_OR, _OF_PERSON = " / ", " (of a person)"
_PERSONS = ("person", "human", "people")


@cache
def everyday_annotations() -> tuple[tuple[str, tuple[str, ...], bool, Given], ...]:
    """What people say for names that many knowledge bases have: section, names, entry.

    The first of the names is the usual one; the others mean the same. The third part tells whether
    the entry is for attributes of people alone.
    """
    text = resources.files("generation.lexicon").joinpath(EVERYDAY).read_text("utf-8")
    sections = parse_annotations(text, EVERYDAY).sections
    return tuple(
        (
            section,
            tuple(names.removesuffix(_OF_PERSON).split(_OR)),
            names.endswith(_OF_PERSON),
            given,
        )
        for section, entries in sections.items()
        for names, given in entries.items()
    )


def everyday_for(kb: KnowledgeBase) -> Annotations:
    """The everyday words for the names of a knowledge base.

    Of names that share an entry, only the first that the knowledge base has is said so: where it
    has two of them, they mean different things there.
    """
    own = {
        section: {_plainly(name): name for name in reversed(names_of(kb, section))}
        for section in FIELDS
        if section != NAMES
    }
    found: dict[str, dict[str, Given]] = {}
    for section, names, of_person, given in everyday_annotations():
        of_it = (own[section][name] for name in names if name in own[section])
        first = next((n for n in of_it if not of_person or _is_of_people(kb, n)), None)
        if first is not None:
            found.setdefault(section, {}).setdefault(first, _told_of(kb, given))
    return Annotations(found, EVERYDAY)


def _told_of(kb: KnowledgeBase, given: Given) -> Given:
    """An entry without questions for qualifiers that a knowledge base does not have."""
    if "details" not in given.fields:
        return given
    known = frozenset(kb.qualifier_keys)
    details = tuple(pair for pair in given.fields["details"] if pair[0] in known)
    return replace(given, fields={**given.fields, "details": details})


def _is_of_people(kb: KnowledgeBase, key: str) -> bool:
    """Whether all that has an attribute key is a person."""
    people = {node for concept in _PERSONS for node in kb.instances_of(concept).tolist()}
    facts = kb.literals.of_predicate(kb.key_number(key))
    return people.issuperset(kb.literals.subject[facts].tolist())


def _plainly(name: str) -> str:
    """A name as the everyday words have it: "Release_Date" is their release date."""
    return " ".join(name.replace("_", " ").lower().split())


@cache
def bundled_annotations() -> Annotations:
    """The annotations of the bundled knowledge base ``world``."""
    sections: dict[str, Mapping[str, Given]] = {}
    for name, text in bundled_texts().items():
        sections |= parse_annotations(text, name).sections
    return Annotations(sections, "world")


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


_DEEPEST = 10  # sections, names, fields, further wordings, their fields and a verb make six


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
    further: list[dict[str, Any]] = []
    todo, also = "", None
    lines: tuple[tuple[str, int], ...] = ()
    known = [*readers, TODO] if section == NAMES else [*readers, ALSO, TODO]
    for field, value in _pairs(node, f"{section}: {name}", known):
        try:
            if field == TODO:
                todo = _text(value) or "to be checked"
            elif field == ALSO:
                also = value
            else:
                further += _put(found, field, readers[field](value))
                _how(found, field, value)
                if field == DETAILS:
                    lines = tuple((key.value, key.start_mark.line + 1) for key, _ in value.value)
        except _BadEntry as problem:
            raise _BadEntry(value, f"{section}: {name}: {field}: {problem}") from None
    if also is not None:
        further = [*_also(section, name, also), *further]
    return Given(found, node.start_mark.line + 1, source, todo, tuple(further), lines)


def _put(fields: dict[str, Any], field: str, value: Any) -> list[dict[str, Any]]:
    """Put a field into an entry; the further ones of a list of texts are wordings by themselves."""
    attribute = field.replace(" ", "_")
    if field not in _LISTS:
        fields[attribute] = value
        return []
    fields[attribute] = value[0]
    return [{attribute: text} for text in value[1:]]


def _how(fields: dict[str, Any], field: str, node: Node) -> None:
    """Take an adjective as what stands behind "how", unless that is given: "long", "how long"."""
    if field == "adjective" and node.id == "scalar":
        fields.setdefault("how", "" if fields[field] is None else _text(node))


def _also(section: str, name: str, node: Node) -> list[dict[str, Any]]:
    """The further wordings of an entry, each with what it has words for."""
    if node.id != "sequence" or not node.value:
        raise _BadEntry(node, f"{section}: {name}: {ALSO}: write a list of further wordings")
    noun = "one" if section == UNITS else "noun"
    of_all = OF_ALL.get(section, ())
    readers = {field: read for field, read in FIELDS[section].items() if field not in of_all}
    found: list[dict[str, Any]] = []
    for entry in node.value:
        fields: dict[str, Any] = {}
        more: list[dict[str, Any]] = []
        where = f"{section}: {name}: {ALSO}"
        try:
            if entry.id == "scalar":
                fields[noun] = _noun(entry)
            else:
                for field, value in _pairs(entry, where, list(readers)):
                    more += _put(fields, field, readers[field](value))
                    _how(fields, field, value)
        except _BadEntry as problem:
            text = str(problem)
            raise _BadEntry(entry, text if text.startswith(where) else f"{where}: {text}") from None
        if not any(fields.values()) or (section in (UNITS, CONCEPTS) and noun not in fields):
            what = noun if section in (UNITS, CONCEPTS) else "its words"
            raise _BadEntry(entry, f"{where}: a further wording is a text, or has {what}")
        found += [fields, *more]
    return found


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
    known = ["one", "many", "auxiliary", "base", "short"]
    parts = {key: _noun(value) for key, value in _pairs(node, "verb", known)}
    found = read_verb(parts.get("one", ""), parts.get("base", ""))
    if "auxiliary" in parts and {"one", "base"} <= parts.keys():
        found = Verb(parts["one"], parts["one"], parts["auxiliary"], parts["base"])
    if "one" not in parts or found is None:
        raise _BadEntry(node, "a verb is written {one: received, base: receive}")
    many, short = parts.get("many", found.many), parts.get("short", found.short)
    return replace(found, many=many, short="" if short == "none" else short)


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


def _adjective(node: Node) -> str:
    text = _noun(node)
    return "" if text == "none" else text


def _compared(node: Node) -> english.Comparison:
    if (found := _comparison(node)) is None:
        raise _BadEntry(node, "a key is always compared by some word; write 'large' or 'high'")
    return found


def _texts(node: Node) -> tuple[str, ...]:
    """One text or several."""
    if node.id != "sequence":
        return (_text(node).rstrip("?"),)
    if not node.value:
        raise _BadEntry(node, "the list is empty; leave the field out")
    return tuple(_noun(part).rstrip("?") for part in node.value)


def _questions(node: Node) -> tuple[str, ...]:
    """Questions with a place for what is asked about."""
    texts = _texts(node)
    for text in texts:
        if (text or len(texts) > 1) and text.count("{}") != 1:
            raise _BadEntry(
                node, "write {} where stands what is asked about, once in each question"
            )
    return texts


def _details(node: Node) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """For qualifier keys, questions with places for both ends of the fact."""
    found = tuple((key, _texts(value)) for key, value in _pairs(node, "details"))
    for _, texts in found:
        if any(text.count("{head}") != 1 or text.count("{tail}") != 1 for text in texts):
            raise _BadEntry(node, "write {head} and {tail} once in each question")
    return found


def _asked(node: Node) -> tuple[str, ...]:
    texts = _texts(node)
    if not texts[0]:
        raise _BadEntry(node, "it is empty; leave the field out")
    return texts


def _one_of(choices: tuple[str, ...]) -> Reader:
    def read(node: Node) -> str:
        if (text := _text(node).lower()) not in choices:
            raise _BadEntry(node, f"{' or '.join(choices)} was expected, not {text!r}")
        return text

    return read


# The fields that may be a list: the main wording has the first text, each other one is a wording.
_LISTS = frozenset(("question", "fronted", "tail question", "head question", "keyword"))
FIELDS: dict[str, dict[str, Reader]] = {
    RELATIONS: {
        "noun": _noun,
        "nouns": _noun,
        "of": _noun,
        "forward": _verb,
        "backward": _verb,
        "several": _truth,
        "tail question": _questions,
        "head question": _questions,
        "keyword": _asked,
        "dates": _one_of(DATES),
        "details": _details,
        "complete": _one_of(COMPLETE[RELATIONS]),
        "identifies": _one_of(COMPLETE[RELATIONS]),
    },
    KEYS: {
        "noun": _noun,
        "a": _noun,
        "plural": _truth,
        "comparison": _compared,
        "compared": _adjective,
        "adjective": _comparison,
        "how": _adjective,
        "counted": _text,
        "having": _verb,
        "verb": _verb,
        "event": _verb,
        "identifies": _truth,
        "question": _questions,
        "keyword": _asked,
        "dates": _one_of(DATES),
        "complete": _one_of(COMPLETE[KEYS]),
        "called": _truth,
    },
    QUALIFIERS: {
        "noun": _noun,
        "a": _noun,
        "given": _noun,
        "compared": _text,
        "question": _asked,
        "fronted": _asked,
    },
    UNITS: {"one": _noun, "many": _noun},
    CONCEPTS: {
        "noun": _noun,
        "nouns": _noun,
        "a": _noun,
        "the": _truth,
        "head": _truth,
        "counted": _truth,
        "complete": _truth,
        "greatest": _truth,
        "called": _truth,
    },
    NAMES: {"the": _truth, "adjective": _noun, "called": _truth},
}
