"""KoPL: programs over knowledge bases with qualifiers, read, typed, executed and explained."""

from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

# Others use the names of our packages, too. Who does is looked up by a file that is loaded by its
# path: the name kb may lead elsewhere. (Packed into one file, the toolkit has no such paths.)
_found = spec_from_file_location("kb.conflict", Path(__file__).parents[1] / "kb" / "conflict.py")
assert _found and _found.loader
_conflict = module_from_spec(_found)
with suppress(FileNotFoundError):
    _found.loader.exec_module(_conflict)
    _conflict.refuse_others("kopl")
    __dir__ = _conflict.names_of("kopl")

import re
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _homes() -> dict[str, str]:
    """The module of each public name. The names stand in the stub, once, for type checkers too."""
    stub = Path(__file__).with_name("__init__.pyi").read_text("utf-8")
    return {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as", stub, re.M)}


def __getattr__(name: str) -> Any:
    # Names are loaded when they are asked for: the command line starts without numpy and lark.
    if home := _homes().get(name):
        return getattr(import_module(home), name)
    if name == "__all__":
        return sorted(_homes())
    if name == "__version__":
        return import_module("kb.packages").version()
    raise AttributeError(f"module 'kopl' has no attribute {name!r}")
