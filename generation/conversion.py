"""Writing question sets: one file or a folder of parts, in any form, whole or not at all."""

from __future__ import annotations

import csv
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generation.formats import COLUMNS, open_examples, open_parts, part_of, parts_of, to_row
from generation.stats import ANSWERS, Statistics
from kopl.example import Example, write_examples
from kopl.text import to_json, write_nested
from kopl_base.errors import KoplError, WriteError
from kopl_base.parquet import Written, split_file
from kopl_base.stream import COMPRESSED, writing
from kopl_base.tables import escaped
from kopl_base.temporary import remove, reserve

if TYPE_CHECKING:
    from generation.parquet import Origin

log = logging.getLogger("kb")

# The forms, with the ending that a file's name says each by.
FORMATS = {"jsonl": ".jsonl", "kqapro": ".json", "parquet": ".parquet", "csv": ".csv"}

# What the published files and those of the package datasets call the second part.
KQAPRO_NAMES = {"valid": "val"}
HUB_NAMES = {"valid": "validation"}


def form_named(path: Path | str) -> str | None:
    """The form that a file's name says, as "train.json.gz" says kqapro; None for another ending."""
    name = str(path)
    for compressed in COMPRESSED:
        name = name.removesuffix(compressed)
    return next((form for form, ending in FORMATS.items() if name.endswith(ending)), None)


def check_form(path: Path | str, form: str) -> None:
    """Raise KoplError for a form that is none, or that could not be read under a file's name."""
    if form not in FORMATS:
        raise KoplError(f"there is no form {form!r}; give one of {', '.join(FORMATS)}")
    named = form_named(path)
    # JSON is looked into when it is read.
    if named not in (None, form) and {named, form} != {"jsonl", "kqapro"}:
        raise KoplError(f"{path}: is {named} by its name, not {form}; name it otherwise")


def is_folder(path: Path | str, form: str) -> bool:
    """Whether one set becomes a folder: a Parquet set that is not named as a file."""
    return form == "parquet" and form_named(path) != "parquet"


def convert(
    source: Path | str,
    target: Path | str,
    to: str | None = None,
    *,
    with_answers: bool = False,
    licence: str | None = None,
) -> int:
    """Write a question set in another form and say how many examples it has.

    ``to`` is a form of `FORMATS`; else the target's name says it. A folder, or a name with several
    splits, becomes a folder with the same parts, a file a file, and so does a folder with a single
    part where the target's name is that of a file; Parquet is a folder with a data card, unless its
    name ends in ".parquet". The target appears when it is complete. KQA Pro's
    test.json is written without answers, programs and queries unless ``with_answers``. Raises
    KoplError for what cannot be read or written.
    """
    target, form = Path(target), to or form_named(target)
    if form is None:
        raise KoplError(f"{target}: the name does not say a form; give one of {', '.join(FORMATS)}")
    check_form(target, form)
    parts = open_parts(source)
    if Path(source).is_dir() or len(parts) > 1:
        if form_named(target) is not None and not target.is_dir():
            if len(parts) > 1:
                raise KoplError(f"{target}: is a file by its name; several parts need a folder")
            (examples,) = parts.values()
            return write_file(target, examples, form)
    elif not is_folder(target, form):
        return write_file(target, open_examples(source), form)
    else:
        ((name, examples),) = parts.items()
        part = part_of(name)
        parts = {"train" if part == name and Path(source).exists() else part: examples}
    return write_folder(target, parts, form, with_answers=with_answers, licence=licence)


# --- folders -----------------------------------------------------------------------------------


def write_folder(
    target: Path | str,
    parts: Mapping[str, Iterable[Example]],
    form: str,
    *,
    with_answers: bool = False,
    licence: str | None = None,
    origin: Origin | None = None,
) -> int:
    """Write the parts of a set into a folder, Parquet with its data card, and say how many.

    All files come into the folder at the end. Raises WriteError for a folder with other parts,
    which would be read as parts of this set.
    """
    target = Path(os.path.realpath(target))
    named = {HUB_NAMES.get(part, part) if form == "parquet" else part: part for part in parts}
    files = {part: _file_of(name, form) for name, part in named.items()}
    check_folder(target, files.values())
    if form == "parquet":
        from generation.parquet import write_card, write_parquet

        splits: dict[str, Written] = {}
        figures = {name: Statistics(bound=ANSWERS) for name in named}
        with staged(target) as folder:
            for name, part in named.items():
                counting = figures[name].counting(parts[part])
                splits[name] = write_parquet(folder / files[part], counting)
            write_card(folder / "README.md", splits, figures, licence=licence, origin=origin)
        return sum(split.rows for split in splits.values())
    count = 0
    with staged(target) as folder:
        for part, examples in parts.items():
            path = folder / files[part]
            if form == "kqapro":
                bare = part == "test" and not with_answers
                count += write_kqapro(path, examples, bare=bare)
            else:
                count += write_file(path, examples, form)
    return count


def _file_of(part: str, form: str) -> str:
    if form == "parquet":
        return split_file(part)
    return f"{KQAPRO_NAMES.get(part, part) if form == 'kqapro' else part}{FORMATS[form]}"


def check_folder(target: Path, files: Iterable[str]) -> None:
    """Raise WriteError when a folder cannot become one with these files as its only parts."""
    if target.exists() and not target.is_dir():
        raise WriteError(f"{target}: is a file; a set of several files needs a folder")
    own = {target / file for file in files}
    present = parts_of(target) if target.is_dir() else None
    others = [file for found in (present or {}).values() for file in found if file not in own]
    if others:
        names = ", ".join(str(file.relative_to(target)) for file in others)
        raise WriteError(
            f"{target}: has other parts of a question set ({names}), which would be read along;"
            " remove them or name another folder"
        )


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A folder beside the target whose files take their place there when all are complete.

    Files of the same name are replaced, others stay. When the work fails, nothing has changed.
    """
    name, handle = "", -1
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = reserve(target, folder=True)
            stage = Path(name)
            yield stage
            if not target.exists():
                os.rename(stage, target)
                return
            for path in sorted(stage.rglob("*")):
                if path.is_file():
                    place = target / path.relative_to(stage)
                    place.parent.mkdir(exist_ok=True)
                    os.replace(path, place)
        except OSError as error:
            reason = error.strerror or str(error)
            raise WriteError(f"{target}: cannot be written: {reason}") from error
    finally:
        if name:
            remove(name)
            os.close(handle)


# --- files -------------------------------------------------------------------------------------


def write_file(path: Path | str, examples: Iterable[Example], form: str) -> int:
    """Write examples as one file of a form and say how many; it appears when it is complete."""
    if Path(path).is_dir():
        raise WriteError(f"{path}: is a folder; one file becomes one file, name it")
    if form == "parquet":
        from generation.parquet import write_parquet

        return write_parquet(path, examples).rows
    if form == "kqapro":
        return write_kqapro(path, examples)
    if form == "csv":
        return write_csv(path, examples)
    return write_examples(path, examples)


def write_kqapro(path: Path | str, examples: Iterable[Example], *, bare: bool = False) -> int:
    """Write one JSON list as KQA Pro publishes and say how many; ``bare``: as its test.json.

    The published preprocessing reads choices of every question and looks the answer up in them:
    a warning tells how many questions lack that. Questions with several answers or with an answer
    form, which KQA Pro's files have no place for, are left out; a warning counts them.
    """
    count = without = left_out = 0
    with writing(path) as file:
        for example in examples:
            if example.answers or example.answer_form is not None:
                left_out += 1
                continue
            file.write(",\n" if count else "[")
            file.write(json.dumps(to_kqapro(example, bare=bare), ensure_ascii=False))
            count += 1
            without += not example.choices or (
                example.answer is not None and example.answer not in example.choices
            )
        file.write("]\n" if count else "[]\n")
    if left_out:
        log.warning(
            "%s: %d questions with several answers, or yes and no read from a count or a name, are"
            " left out: KQA Pro's files have no place for them",
            Path(path).name,
            left_out,
        )
    if without:
        log.warning(
            "%s: %d of %d questions have no choices with their answer; KQA Pro's published"
            " preprocessing needs them",
            Path(path).name,
            without,
            count,
        )
    return count


def to_kqapro(example: Example, *, bare: bool = False) -> dict[str, Any]:
    """The object of an example in KQA Pro's files; ``bare``: the question and its choices only."""
    item: dict[str, Any] = {"question": example.question, "choices": list(example.choices)}
    if not bare:
        item["program"] = to_json(example.program, published=True)
        if example.sparql is not None:
            item["sparql"] = example.sparql
        if example.answer is not None:
            item["answer"] = example.answer
    return item


def write_csv(path: Path | str, examples: Iterable[Example]) -> int:
    """Write examples as CSV and say how many: programs nested, choices and extra as JSON.

    What a spreadsheet would take for a formula is escaped, and reading takes that away again.
    """
    count = 0
    with writing(path) as file:
        # All cells are quoted: before Python 3.13 a carriage return alone would not be.
        rows = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        rows.writerow(COLUMNS)
        for example in examples:
            item = to_row(example) | {"program": write_nested(example.program)}
            item["choices"] = json.dumps(item["choices"], ensure_ascii=False)
            rows.writerow([escaped("" if item[key] is None else item[key]) for key in COLUMNS])
            count += 1
    return count
