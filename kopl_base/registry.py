"""Classes by name: the project's own, and those that other packages bring by entry points.

A package brings a class by an entry point of a group; in its ``pyproject.toml``:

    [project.entry-points."kopl.models"]
    nearest = "my_package:NearestModel"

The class is imported when its name is asked for: none costs the packages of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kopl_base.errors import SettingsError, near_names


class Registry:
    """The classes of an entry-point group by name.

    ``called`` is what messages call one of them, ``own`` are the project's, as ``module:Class``.
    ``unfit`` says of a class that another package brings what it is not, "" where it fits.
    """

    def __init__(
        self, group: str, called: str, own: Mapping[str, str], unfit: Callable[[object], str]
    ) -> None:
        self.group, self.called, self.own = group, called, own
        self._unfit = unfit
        self._loaded: dict[str, type[Any]] = {}

    @cached_property
    def brought(self) -> dict[str, EntryPoint]:
        """The entry points of other packages by name; the project's own names are not theirs."""
        found = sorted(entry_points(group=self.group), key=lambda one: (one.name, one.value))
        return {one.name: one for one in found if one.name not in self.own}

    def names(self) -> tuple[str, ...]:
        """What is registered: the project's own first."""
        return (*self.own, *self.brought)

    def checked(self, name: object) -> str:
        """A name that is registered; raises SettingsError for another value."""
        known = self.names()
        if isinstance(name, str) and name in known:
            return name
        near = near_names(name, known) if isinstance(name, str) else []
        hint = "install the package that brings it"
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        raise SettingsError(
            f"{self.called} must be one of {', '.join(known)}, not {name!r}; {hint}"
        )

    def loaded(self, name: str) -> type[Any]:
        """The class of a name.

        Raises SettingsError where there is none, it cannot be imported, or does not fit.
        """
        if name not in self._loaded:
            self._loaded[name] = self._imported(self.checked(name))
        return self._loaded[name]

    def _imported(self, name: str) -> type[Any]:
        place = self.own.get(name)
        if place is not None:
            module, _, attribute = place.partition(":")
            own: type[Any] = getattr(import_module(module), attribute)
            return own
        entry = self.brought[name]
        what = f"the {self.called} {name!r} ({entry.value})"
        try:
            found: Any = entry.load()
        except Exception as error:  # whatever a foreign package does wrong as it is imported
            raise SettingsError(
                f"{what} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        if reason := self._unfit(found):
            raise SettingsError(f"{what} {reason}")
        kind: type[Any] = found
        return kind

    def forget(self) -> None:
        """Look for entry points anew, as after a package was installed."""
        self._loaded.clear()
        vars(self).pop("brought", None)


def below(base: str) -> Callable[[object], str]:
    """What keeps a thing from being a class below that of the full name ``base``; "" for nothing.

    By its name, as who registers classes is often imported by them.
    """

    def unfit(found: object) -> str:
        kinds = found.__mro__ if isinstance(found, type) else ()
        fits = any(f"{kind.__module__}.{kind.__qualname__}" == base for kind in kinds)
        return "" if fits else f"is no class below {base}"

    return unfit
