"""KoPL: programs over knowledge bases with qualifiers, read, typed, executed and explained."""

from kopl_base.conflict import names_of, refuse_others

# Others use the names of our packages, too.
refuse_others("kopl")
__dir__ = names_of("kopl")

import re
from functools import cache
from importlib import import_module
from pathlib import Path
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
        return import_module("kopl_base.packages").version()
    raise AttributeError(f"module 'kopl' has no attribute {name!r}")
