"""Question sets as Parquet files, and their data card: README.md beside the files of a folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from generation.blocks import Options
from generation.formats import COLUMNS, to_row
from generation.makers import Plan
from generation.stats import Statistics, main_rows, short_rows
from kb import KnowledgeBase
from kopl.example import Example
from kopl.traits import hops, locating, skills
from kopl_base.packages import version
from kopl_base.parquet import Written, arrow_packages, dataset_info, header, write_table
from kopl_base.stream import writing

# What follows from the program, for those who look for examples in the table; not read back.
DERIVED = ("hops", "skills", "locating")


def schema() -> Any:
    """The columns of a set as a schema of pyarrow; raises KoplError without the package."""
    arrow, _ = arrow_packages()
    text, texts = arrow.string(), arrow.list_(arrow.string())
    call = arrow.struct(
        [
            ("function", text),
            ("dependencies", arrow.list_(arrow.int32())),
            ("inputs", texts),
        ]
    )
    types = {"program": arrow.list_(call), "choices": texts, "hops": arrow.int32()}
    types |= {"skills": texts, "locating": texts}
    return arrow.schema([(name, types.get(name, text)) for name in (*COLUMNS, *DERIVED)])


def write_parquet(path: Path | str, examples: Iterable[Example]) -> Written:
    """Write examples as a Parquet file, and say how many and how large."""
    return write_table(path, map(_row, examples), schema())


def _row(example: Example) -> dict[str, Any]:
    program = example.program
    traits = {"hops": hops(program), "skills": skills(program), "locating": locating(program)}
    return to_row(example) | traits


# --- the data card ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """How a set was generated."""

    plan: Plan
    fingerprint: str
    nodes: int

    @classmethod
    def of(cls, plan: Plan, kb: KnowledgeBase) -> Origin:
        """The origin of what a plan gives over its knowledge base."""
        return cls(plan, kb.fingerprint, kb.node_count)

    @property
    def command(self) -> str:
        """The command that makes the same questions, files without their folders."""
        plan, options = self.plan, self.plan.options
        words = ["kopl", "generate", "--kb", Path(plan.kb).name, "-n", str(plan.count)]
        words += ["--seed", str(plan.seed)]
        if plan.shard != (0, 1):
            words += ["--shard", f"{plan.shard[0] + 1}/{plan.shard[1]}"]
        for option, file in (("--rules", plan.rules), ("--lexicon", plan.lexicon)):
            if file is not None:
                words += [option, Path(file).name]
        usual = asdict(Options())
        for name, value in asdict(options).items():
            if value != usual[name]:
                words += _OPTIONS.get(name, _as_named)(name, value)
        return shlex.join([*words, "-o", "FILE"])


def _as_named(name: str, value: Any) -> list[str]:
    if isinstance(value, tuple):  # of pairs
        value = ",".join(f"{key}={number}" for key, number in value)
    return [f"--{name}", str(value)]


# The words of the command for options that go by another name there.
_OPTIONS: dict[str, Callable[[str, Any], list[str]]] = {
    "canonical": lambda name, value: ["--canonical"],
    "clauses": lambda name, value: ["--redundant"],
    "sparql": lambda name, value: ["--no-sparql"],
}

CARD = """---
{header}
---

# Questions with programs

Questions over a knowledge base, each with the KoPL program that answers it. Load it with
`datasets.load_dataset` and the path of this folder.

| split | questions |
|---|---|
{counts}

| column | what it holds |
|---|---|
| `id` | a name of the question; paraphrases have the same up to a `#` |
| `question` | the question |
| `canonical` | the question before it was rephrased |
| `program` | the calls of the program in post-order: `function`, `dependencies`, `inputs` |
| `sparql` | the query of the program |
| `answer` | the only answer |
| `choices` | answers to choose from |
| `type` | the asking strategy |
| `extra` | other fields, as one JSON object |
| `hops`, `skills`, `locating` | what follows from the program |
{origin}
## What it holds

Beside the figures of the KQA Pro paper (Cao et al., ACL 2022).

{statistics}
"""

ORIGIN = """
## How it was made

```
{command}
```

by kopl-toolkit {version}; the same command gives the same questions.

| | |
|---|---|
{rows}
"""


def write_card(
    path: Path | str,
    splits: Mapping[str, Written],
    statistics: Mapping[str, Statistics],
    *,
    licence: str | None = None,
    origin: Origin | None = None,
) -> None:
    """Write the data card of a folder of Parquet files with these splits.

    ``licence`` is a name that the hub knows, such as "cc-by-4.0"; without it none is stated.
    """
    top = header(
        splits,
        sum(split.rows for split in splits.values()),
        licence=licence,
        language=["en"],
        task_categories=["question-answering"],
    )
    text = CARD.format(
        header="\n".join([*top, *dataset_info(splits, schema())]),
        counts="\n".join(f"| {name} | {split.rows} |" for name, split in splits.items()),
        origin=_origin(origin) if origin is not None else "",
        statistics=_statistics(statistics),
    )
    with writing(path) as file:
        file.write(text)


def _origin(origin: Origin) -> str:
    plan = origin.plan
    facts = {
        "knowledge base": Path(plan.kb).name,
        "its fingerprint": origin.fingerprint,
        "its entities and concepts": origin.nodes,
        "seed": plan.seed,
        "rules": "the bundled ones" if plan.rules is None else Path(plan.rules).name,
        **({} if plan.lexicon is None else {"lexicon": Path(plan.lexicon).name}),
        **{f"option {name}": value for name, value in asdict(plan.options).items()},
    }
    rows = "\n".join(f"| {_cell(name)} | {_cell(str(fact))} |" for name, fact in facts.items())
    return ORIGIN.format(command=origin.command, version=version(), rows=rows)


def _statistics(sets: Mapping[str, Statistics]) -> str:
    lines = [f"| | {' | '.join(sets)} | KQA Pro |", f"|---{'|---' * (len(sets) + 1)}|"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in main_rows(sets)]
    for title, at in (("top answers", -2), ("first words", -1)):
        for name, one in sets.items():
            if one.questions:
                shown = short_rows(one)[at][1]
                lines.append("")
                lines.append(f"{title.capitalize()} of {name}: {_cell(shown)}.")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """A text on one line that stays in its cell and is no markup, whatever it holds."""
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", " ".join(text.split()))
