"""KoPL: programs over knowledge bases with qualifiers, read, typed, executed and explained."""

from kb.conflict import refuse_foreign_package

refuse_foreign_package()

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kopl.answers import published_equal, same_answer
    from kopl.builder import find, find_all
    from kopl.errors import (
        ExecutionError,
        KoplError,
        LimitError,
        ParseError,
        ProgramError,
        TypingError,
    )
    from kopl.executor import Executor, Limits, Result
    from kopl.functions import FUNCTIONS
    from kopl.program import Call
    from kopl.text import read, to_json, write_json, write_nested, write_serialised
    from kopl.typecheck import check

# Names are loaded when asked for: the command line starts without numpy and lark.
_HOMES = {
    "answers": ["published_equal", "same_answer"],
    "builder": ["find", "find_all"],
    "typecheck": ["check"],
    "errors": [
        "ExecutionError",
        "KoplError",
        "LimitError",
        "ParseError",
        "ProgramError",
        "TypingError",
    ],
    "executor": ["Executor", "Limits", "Result"],
    "functions": ["FUNCTIONS"],
    "program": ["Call"],
    "text": ["read", "to_json", "write_json", "write_nested", "write_serialised"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "FUNCTIONS",
    "Call",
    "ExecutionError",
    "Executor",
    "KoplError",
    "LimitError",
    "Limits",
    "ParseError",
    "ProgramError",
    "Result",
    "TypingError",
    "check",
    "find",
    "find_all",
    "published_equal",
    "read",
    "same_answer",
    "to_json",
    "write_json",
    "write_nested",
    "write_serialised",
]


def __getattr__(name: str) -> Any:
    if home := _HOME_OF.get(name):
        return getattr(import_module(f"kopl.{home}"), name)
    raise AttributeError(f"module 'kopl' has no attribute {name!r}")
