"""``kopl functions``: the language, from its declarations."""

from __future__ import annotations

import argparse
import sys

from kopl.functions import FUNCTIONS, SPELLINGS, Function
from kopl_base.tables import print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="explain this function only")
    parser.add_argument("--markdown", action="store_true", help="print the page docs/functions.md")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.markdown:
        print(page(), end="")
        return 0
    if arguments.name is None:
        print_table(
            ("function", "gives", "meaning"),
            [(f.signature, f.output.value, f.doc) for f in FUNCTIONS.values()],
        )
        return 0
    function = SPELLINGS.get(arguments.name)
    if function is None:
        from kopl_base.errors import near_names

        near = near_names(arguments.name, SPELLINGS)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        print(f"kopl: there is no function {arguments.name!r}{hint}", file=sys.stderr)
        return 2
    print(explain(function))
    return 0


def explain(function: Function) -> str:
    """A function's declaration as lines for people."""
    lines = [function.signature, "", f"  {function.doc}", ""]
    lines += [f"  input {n}: {t.value}" for n, t in enumerate(function.inputs, 1)]
    lines += [f"  {name}: {kind.value}" for name, kind in function.arguments]
    lines += [f"  gives: {function.output.value}"]
    if function.published != function.name:
        lines.append(f"  in KQA Pro's files: {function.published}")
    return "\n".join([*lines, f"  example: {function.example}"])


def page() -> str:
    """The documentation page of the functions, in Markdown."""
    lines = [
        "# The functions of KoPL",
        "",
        "Written by `kopl functions --markdown` from the declarations in `kopl/functions.py`; a",
        "test compares. E is a set of entities, F a set with the facts that put each entity there",
        "(accepted wherever E is), V attribute values.",
        "",
    ]
    for function in FUNCTIONS.values():
        lines += [f"## {function.name}", "", f"`{function.signature}` — {function.doc}", ""]
        lines += [f"- input {n}: {t.value}" for n, t in enumerate(function.inputs, 1)]
        lines += [f"- `{name}`: {kind.value}" for name, kind in function.arguments]
        lines.append(f"- gives {function.output.value}")
        if function.skill:
            lines.append(f"- skill: {function.skill}")
        if function.published != function.name:
            lines.append(f"- in KQA Pro's files: `{function.published}`")
        lines += ["", "```", function.example, "```", ""]
    return "\n".join(lines)
