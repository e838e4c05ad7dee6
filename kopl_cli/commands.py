"""Commands that declare their arguments only when they are used."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from kopl_base.conflict import refuse_others


@dataclass(frozen=True)
class Command:
    """A command: what it does, its module, and the packages whose names others may have taken.

    The module has ``add_arguments`` and, unless it offers actions, ``run``. It is named by text:
    nothing of it is imported until a user asks for it.
    """

    sentence: str
    module: str
    packages: tuple[str, ...] = ("kopl",)


class LateParser(argparse.ArgumentParser):
    """The parser of a command, which declares its arguments only when the command is used.

    So that the help of all commands needs none of them. A module with ``default_action`` lets its
    action be left out: it puts one in. One with ``INTERMIXED`` has positional arguments that may
    stand behind options, although one of them may be left out.
    """

    def __init__(self, *args: Any, command: Command | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._command = command
        self._is_intermixed = False

    # Every way into a parser leads through this method.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As of every parser, after its arguments were declared."""
        if self._command is not None:
            command, self._command = self._command, None
            refuse_others(*command.packages)
            module = import_module(command.module)
            module.add_arguments(self)
            if run := getattr(module, "run", None):  # not of one that only offers actions
                self.set_defaults(run=run)
            if complete := getattr(module, "default_action", None):
                args = complete(args)
            self._is_intermixed = getattr(module, "INTERMIXED", False)
        if self._is_intermixed:
            self._is_intermixed = False  # it parses in two steps, by this method
            return self.parse_known_intermixed_args(args, namespace)
        return super().parse_known_args(args, namespace)


def add_commands(parser: argparse.ArgumentParser, commands: dict[str, Command], name: str) -> None:
    """Offer the commands, or the actions of one; ``name`` is what the usage calls them."""
    offered = parser.add_subparsers(metavar=name, required=True, parser_class=LateParser)
    for word, command in commands.items():
        description = command.sentence.capitalize() + "."
        offered.add_parser(word, help=command.sentence, description=description, command=command)
