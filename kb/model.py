"""Building a knowledge base in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kb.assemble import CONCEPT, ENTITY, Assembler, RawValue, raw_value
from kb.problems import Problems
from kb.store import KnowledgeBase
from kb.values import Date, Quantity, Value, Year
from kopl_base.errors import KoplError

QualifierInput = Mapping[str, Value | Iterable[Value]]


class Builder:
    """Collects concepts, entities and facts; `build` gives the knowledge base.

    Nodes may be named before they are added. What had to be repaired stands in ``problems``.

    >>> from kb import Builder, Quantity, Year
    >>> builder = Builder()
    >>> builder.add_concept("city", "city")
    >>> builder.add_entity("paris", "Paris", ["city"])
    >>> builder.add_attribute("paris", "population", Quantity(2_102_650),
    ...                       {"point in time": Year(2023)})
    >>> builder.build()
    KnowledgeBase(1 entities, 1 concepts, 0 relational and 1 literal facts)
    """

    def __init__(self) -> None:
        self.problems = Problems()
        self._assembler = Assembler(self.problems)

    def add_concept(
        self, id: str, name: str, parents: Iterable[str] = (), aliases: Iterable[str] = ()
    ) -> None:
        """Add a concept below the parents (ids); raises KoplError when the id is taken.

        ``aliases`` are what it is called besides its name.
        """
        place = f"concepts/{id}"
        self._assembler.define(
            _text(id), CONCEPT, _text(name), _texts(parents, "ids"), place, _texts(aliases)
        )

    def add_entity(
        self, id: str, name: str, concepts: Iterable[str] = (), aliases: Iterable[str] = ()
    ) -> None:
        """Add an entity that is an instance of the concepts (ids)."""
        place = f"entities/{id}"
        self._assembler.define(
            _text(id), ENTITY, _text(name), _texts(concepts, "ids"), place, _texts(aliases)
        )

    def add_attribute(
        self, entity: str, key: str, value: Value, qualifiers: QualifierInput | None = None
    ) -> None:
        """Add a literal fact of an entity that was added before.

        A qualifier has one value or a list of values.
        """
        if self._assembler.kind(entity) != ENTITY:
            raise KoplError(f"add the entity {entity!r} before its attribute {key!r}")
        self._assembler.literal(
            self._assembler.node(entity), _text(key), _raw(value), _pairs(qualifiers)
        )

    def add_fact(
        self, head: str, relation: str, tail: str, qualifiers: QualifierInput | None = None
    ) -> None:
        """Add a relational fact between two nodes (ids); it is reachable from both."""
        self._assembler.relational(
            self._assembler.node(_text(head)),
            _text(relation),
            True,
            _text(tail),
            _pairs(qualifiers),
        )

    def build(self) -> KnowledgeBase:
        """The knowledge base of what was added; the builder is empty afterwards."""
        return self._assembler.finish()


def _text(text: str) -> str:
    if not isinstance(text, str):
        raise KoplError(f"a text was expected, not {text!r}")
    return text


def _texts(texts: Iterable[str], what: str = "texts") -> list[str]:
    if isinstance(texts, str):
        raise KoplError(f"a list of {what} was expected, not the text {texts!r}")
    return [_text(text) for text in texts]


def _raw(value: Value) -> RawValue:
    if not isinstance(value, str | Quantity | Year | Date):
        raise KoplError(f"a value is a str, Quantity, Year or Date, not {value!r}")
    return raw_value(value)


def _pairs(qualifiers: QualifierInput | None) -> list[tuple[str, RawValue]]:
    pairs = []
    for key, values in (qualifiers or {}).items():
        single = isinstance(values, str) or not isinstance(values, Iterable)
        for value in [values] if single else values:  # type: ignore[union-attr]
            pairs.append((_text(key), _raw(value)))  # type: ignore[arg-type]
    return pairs
