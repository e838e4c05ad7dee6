"""Sample questions of a knowledge base as a page, as they come: nothing is chosen or edited.

    python benchmarks/samples.py                  # writes docs/samples.md
    python benchmarks/samples.py --kb KB -n 20 --seed 5 -o -

Each with its canonical form, program, SPARQL, answer and choices.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

# The folder of this file has a module with the name of the package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from generation import generate  # noqa: E402
from generation.blocks import Options  # noqa: E402
from generation.rules_file import PROFILES  # noqa: E402
from kb import load  # noqa: E402
from kopl.example import Example  # noqa: E402
from kopl_base.stream import writing  # noqa: E402

PAGE = Path(__file__).resolve().parent.parent / "docs" / "samples.md"
SEED = 2026


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--kb", default="world", help="a knowledge base, its snapshot, or 'world'")
    parser.add_argument("-n", "--count", type=int, default=25, help="of each profile; default: 25")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("-o", "--output", default=str(PAGE), help="a file, or '-'")
    arguments = parser.parse_args()
    kb = load(arguments.kb)
    sets = {
        profile: generate(
            kb, arguments.count, seed=arguments.seed, options=Options(profile=profile)
        )
        for profile in PROFILES
    }
    command = f"python benchmarks/samples.py --kb {arguments.kb} -n {arguments.count}"
    lines = page(sets, f"{command} --seed {arguments.seed}", arguments.kb)
    if arguments.output == "-":
        sys.stdout.writelines(lines)
        return
    with writing(arguments.output) as out:
        out.writelines(lines)


def page(sets: Mapping[str, Iterator[Example]], command: str, kb: str) -> Iterator[str]:
    """The lines of the page."""
    yield f"# Questions generated over `{kb}`\n\n"
    yield "As they came, none left out and none edited. Made, and made again, by\n\n"
    yield f"```\n{command}\n```\n"
    for profile, examples in sets.items():
        yield f"\n# The profile `{profile}`\n"
        yield from _questions(examples)


def _questions(examples: Iterator[Example]) -> Iterator[str]:
    for number, example in enumerate(examples, 1):
        yield f"\n## {number}. {_plain(example.question)}\n\n"
        answer = _plain(example.answer or ", ".join(example.answers))
        yield f"- type: {example.type}\n- answer: **{answer}**\n"
        if example.answer_form is not None:
            form = json.dumps(example.answer_form.to_json(), ensure_ascii=False)
            yield f"- answer form: `{form}`\n"
        if example.canonical and example.canonical != example.question:
            yield f"- canonical: {_plain(example.canonical)}\n"
        if example.choices:
            yield f"- choices: {' · '.join(_plain(choice) for choice in example.choices)}\n"
        yield f"\n```\n{example.program}\n```\n\n```sparql\n{example.sparql}\n```\n"


def _plain(text: str) -> str:
    """A text that Markdown shows as it is."""
    for mark in "\\`*_<[":
        text = text.replace(mark, f"\\{mark}")
    return text


if __name__ == "__main__":
    main()
