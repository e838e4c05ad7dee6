"""The properties of a graph in Wikidata's form: which one a relation or key is the label of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from kopl.sparql.errors import SparqlError
from kopl_base.errors import KoplError, ReadError
from kopl_base.stream import FIELD_TWICE, JsonDecoder, read_text

ITEM = "WikibaseItem"


class PropertyError(SparqlError):
    """A relation or key (``text``, by its ``role``) that no property of the graph stands for."""

    kind = "property"

    def __init__(self, text: str, role: str, found: Sequence[Property] = ()) -> None:
        self.text, self.role = text, role
        message = f"there is no property for the {role} {text!r}"
        if found:
            known = ", ".join(f"{one.id} ({one.datatype})" for one in found)
            what = "has values and no items" if role == "relation" else "is a relation"
            message = f"what is called {text!r} {what}, but stands as a {role}: {known}"
        super().__init__(message)


@dataclass(frozen=True, order=True)
class Property:
    """A property by its id, and the name of its datatype: "WikibaseItem", "Quantity", "Time" …

    Without a datatype it is used as the place in the program demands.
    """

    id: str
    datatype: str | None = None

    @property
    def leads_to_items(self) -> bool | None:
        """Whether its values are items; None when that is not known."""
        return None if self.datatype is None else self.datatype == ITEM


Properties: TypeAlias = Mapping[str, "str | Property | Sequence[Property]"]


def called(properties: Properties, text: str) -> list[Property]:
    """The properties that are called so."""
    given = properties.get(text, ())
    if isinstance(given, str):
        return [Property(given)]
    return [given] if isinstance(given, Property) else list(given)


def check_properties(properties: Properties) -> None:
    """Raise KoplError for what is no property's id."""
    for text in properties:
        for one in called(properties, text):
            if not isinstance(one.id, str) or not re.fullmatch(r"P[0-9]+", one.id, re.ASCII):
                raise KoplError(f"{text!r}: {one.id!r} is no property: write an id such as P36")


def read_properties(path: Path | str) -> dict[str, list[Property]]:
    """The properties of a JSON file: ``{"capital": "P36", "area": ["P2046", "Quantity"], …}``.

    Each label has an id, an id and a datatype, or a list of such pairs. Raises ReadError.
    """
    source = str(path)
    text = read_text(path)
    decoder = JsonDecoder()
    try:
        document = decoder.decode(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ReadError(f"the file is not JSON: {error}", source=source) from None
    if decoder.twice:
        raise ReadError(FIELD_TWICE, place=decoder.twice, source=source)
    if not isinstance(document, dict):
        raise ReadError("an object of labels and property ids was expected", source=source)
    found = {text: _given(text, given, source) for text, given in document.items()}
    try:
        check_properties(found)
    except KoplError as error:
        raise ReadError(str(error), source=source) from None
    return found


def _given(text: str, given: Any, source: str) -> list[Property]:
    many = isinstance(given, list) and all(isinstance(one, list) for one in given)
    found = []
    for one in given if many else [given]:
        pair = [one] if isinstance(one, str) else one
        strings = isinstance(pair, list) and all(isinstance(part, str) for part in pair)
        if not strings or len(pair) not in (1, 2):
            raise ReadError(
                f'{text!r}: write "P36", ["P36", "WikibaseItem"], or a list of such pairs',
                source=source,
            )
        found.append(Property(*pair))
    return found


def write_properties(properties: Properties) -> str:
    """The text of such a file."""
    lines = (
        f"  {json.dumps(text, ensure_ascii=False)}: "
        + json.dumps([[one.id] if one.datatype is None else [one.id, one.datatype] for one in ones])
        for text, ones in ((text, called(properties, text)) for text in properties)
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"
