"""Models and output languages by name: the project's own, and those that other packages bring.

A package brings a model by an entry point of the group ``kopl.models``, a language by one of
``kopl.languages``; in its ``pyproject.toml``:

    [project.entry-points."kopl.models"]
    nearest = "my_package:NearestModel"

The class is imported when its name is asked for: no model costs the packages of another one.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kopl_base.errors import SettingsError, near_names

MODELS, LANGUAGES = "kopl.models", "kopl.languages"

# Where the project's own stand: module and class.
OWN: dict[str, dict[str, str]] = {
    MODELS: {
        "pointer": "parsers.models.pointer.model:PointerModel",
        "rnn": "parsers.models.rnn.model:RnnModel",
        "seq2seq": "parsers.models.seq2seq.model:Seq2SeqModel",
    },
    LANGUAGES: {
        "kopl": "parsers.languages:KoplLanguage",
        "sparql": "parsers.languages:SparqlLanguage",
    },
}
# By their places: to import them here would be a circle.
_BASES = {
    MODELS: "parsers.models.base.Model",
    LANGUAGES: "parsers.languages.OutputLanguage",
}
_CALLED = {MODELS: "model", LANGUAGES: "language"}


@cache
def _brought(group: str) -> dict[str, EntryPoint]:
    """The entry points of other packages by name; the project's own names are not theirs."""
    found = sorted(entry_points(group=group), key=lambda one: (one.name, one.value))
    return {one.name: one for one in found if one.name not in OWN[group]}


def names(group: str) -> tuple[str, ...]:
    """What is registered in a group: the project's own first."""
    return (*OWN[group], *_brought(group))


def checked(group: str, name: object) -> str:
    """A name that is registered in a group; raises SettingsError for another value."""
    known = names(group)
    if isinstance(name, str) and name in known:
        return name
    near = near_names(name, known) if isinstance(name, str) else []
    hint = f"did you mean {' or '.join(near)}?" if near else "install the package that brings it"
    raise SettingsError(f"{_CALLED[group]} must be one of {', '.join(known)}, not {name!r}; {hint}")


@cache
def _loaded(group: str, name: str) -> Any:
    checked(group, name)
    place = OWN[group].get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        return getattr(import_module(module), attribute)
    entry = _brought(group)[name]
    try:
        found = entry.load()
    except Exception as error:  # whatever a foreign package does wrong as it is imported
        raise SettingsError(
            f"the {_CALLED[group]} {name!r} ({entry.value}) cannot be imported:"
            f" {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, type) or _BASES[group] not in map(_place_of, found.__mro__):
        raise SettingsError(
            f"the {_CALLED[group]} {name!r} ({entry.value}) is no class below {_BASES[group]}"
        )
    return found


def _place_of(kind: type[Any]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def model_class(name: str) -> type[Any]:
    """The class of a model, below `parsers.models.base.Model`.

    Raises SettingsError where there is none, or it cannot be imported.
    """
    found: type[Any] = _loaded(MODELS, name)
    return found


def language_class(name: str) -> type[Any]:
    """The class of an output language, below `parsers.languages.OutputLanguage`.

    Raises SettingsError as `model_class`.
    """
    found: type[Any] = _loaded(LANGUAGES, name)
    return found
