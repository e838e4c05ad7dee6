"""``kopl kb import``: a knowledge base from a Wikidata dump or from tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kopl_base.errors import KoplError, WriteError, counted
from kopl_cli.common import positive, show_warnings

if TYPE_CHECKING:
    from kb import KnowledgeBase, Problems
    from kb.imports.common import Report
    from kb.imports.mapping import TableMap

_FORMS = {".kopl": "snapshot", ".json": "kqapro", ".jsonl": "lines", ".ndjson": "lines"}
_SHOWN = 5  # of the malformed lines that were left out
# Options that belong to one kind of source.
_OWN = {
    "wikidata": ("languages", "ids", "properties", "limit", "external_ids"),
    "table": ("mapping",),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's arguments."""
    parser.add_argument(
        "--from",
        dest="form",
        choices=tuple(_OWN),
        help="a Wikidata dump in JSON, or tables (left out with --mapping)",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="what to read, also .gz, .bz2 or .xz; without -o, the last one is OUT",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="a snapshot (.kopl), kb.json or .jsonl (also .gz, .bz2, .xz); with --draft the mapping"
        " (default: standard output)",
    )
    parser.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="FILE",
        help="labels of ids that have none otherwise: a JSON object, or a table of two columns",
    )
    parser.add_argument(
        "--skip-malformed",
        action="store_true",
        help="leave out and count malformed lines and cells; they stop the reading otherwise",
    )
    wikidata = parser.add_argument_group("for a Wikidata dump")
    wikidata.add_argument(
        "--languages",
        metavar="TAG,TAG",
        help="of labels, the first that there is (default: en,mul)",
    )
    wikidata.add_argument(
        "--ids", metavar="Q1,Q2|@FILE", help="items to keep; in a file, one a line (default: all)"
    )
    wikidata.add_argument(
        "--properties", metavar="P1,P2|@FILE", help="properties to keep (default: all)"
    )
    wikidata.add_argument(
        "--limit", type=positive, metavar="N", help="keep the first N of these items"
    )
    wikidata.add_argument(
        "--external-ids", action="store_true", default=None, help="keep external ids as attributes"
    )
    table = parser.add_argument_group("for tables")
    table.add_argument(
        "--draft",
        action="store_true",
        help="write a mapping for tables with a row for each thing, guessed from their values, to"
        " be read and edited",
    )
    table.add_argument(
        "--mapping",
        metavar="FILE",
        help="YAML or JSON that says what rows and columns are: that of --draft, which names its"
        " FILEs itself, or one for tables of facts (default: no header; head, relation, tail,"
        " pairs of key and value)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    show_warnings()
    if arguments.draft:
        return _draft(arguments)
    if arguments.output is None:
        if not arguments.files:
            raise KoplError("name the file to write: -o OUT")
        *arguments.files, arguments.output = arguments.files
    if arguments.form is None:
        if arguments.mapping is None:
            raise KoplError(
                "say what the files are: --from wikidata, or --from table for tables of facts; for"
                " tables with a row for each thing --draft FILE… -o MAPPING, then --mapping MAPPING"
            )
        arguments.form = "table"
    form = _form_of(arguments.output)
    tables = _tables(arguments)
    _check(arguments)
    from kb import Problems, write_kqapro, write_lines, write_snapshot
    from kb.imports.common import Report

    report, problems = Report(), Problems()
    if tables is None:
        kb = _read(arguments, problems, report)
    else:
        from kb.imports.tables import read_tables

        kb = read_tables(tables, problems, skip_malformed=arguments.skip_malformed, report=report)
    if form == "snapshot":
        write_snapshot(kb, arguments.output)
    else:
        (write_kqapro if form == "kqapro" else write_lines)(kb, arguments.output)
    skipped = [found for found in problems.found if found.code == "malformed"]
    for found in skipped[:_SHOWN]:
        print(f"kopl: left out: {found.place}: {found.message}", file=sys.stderr)
    for what, count in report.items():
        print(f"{count:10} {what}", file=sys.stderr)
    return 0


def _tables(arguments: argparse.Namespace) -> TableMap | None:
    """The mapping if it is one of tables that it names itself; their files go to ``files``."""
    if arguments.mapping is None:
        return None
    from kb.imports.mapping import is_mapping_of_tables, read_mapping

    try:
        if not is_mapping_of_tables(arguments.mapping):
            return None
    except KoplError:
        if arguments.files:
            return None  # the reader of the other kind of mapping tells what is wrong
        raise
    if arguments.files:
        raise KoplError(
            f"{arguments.files[0]}: {arguments.mapping} names its files itself; leave out FILE"
        )
    if arguments.labels:
        raise KoplError("--labels: tables with a row for each thing have a column of names")
    mapping = read_mapping(arguments.mapping)
    arguments.files = [arguments.mapping]
    arguments.files += [file for table in mapping.tables.values() for file in table.files]
    return mapping


def _draft(arguments: argparse.Namespace) -> int:
    """Write a mapping, guessed from the values of the files."""
    if not arguments.files:
        raise KoplError("--draft: name the tables, as in --draft books.csv people.csv -o map.yaml")
    if arguments.form == "wikidata" or arguments.mapping is not None:
        raise KoplError("--draft: goes without --mapping and --from wikidata")
    out = None if arguments.output is None else Path(arguments.output)
    if out is not None and out.exists():
        raise WriteError(f"{out}: is there, and what was edited in it would be lost; remove it")
    from kb.imports.draft import draft_mapping

    draft = draft_mapping(arguments.files, out.parent if out else Path())
    if out is None:
        print(draft.text, end="")
    else:
        from kopl_base.stream import writing

        with writing(out) as file:
            file.write(draft.text)
        print(
            f"kopl: {out}: read and edit it"
            f" ({counted(draft.doubts, 'guess is', 'guesses are')} doubtful, lines with #?),"
            f" then kopl kb import --mapping {out} -o OUT",
            file=sys.stderr,
        )
    return 0


def _form_of(out: str) -> str:
    """The format of the file to write, by its ending; raises KoplError for another one."""
    suffixes = [suffix.lower() for suffix in Path(out).suffixes]
    compressed = bool(suffixes) and suffixes[-1] in (".gz", ".bz2", ".xz")
    ending = (suffixes[:-1] if compressed else suffixes)[-1:]
    form = _FORMS.get(ending[0]) if ending else None
    if form is None:
        raise KoplError(f"{out}: end OUT in .kopl, .json or .jsonl (the last two also .gz, …)")
    if form == "snapshot" and compressed:
        raise KoplError(f"{out}: a snapshot is not compressed; end OUT in .kopl")
    return form


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what would fail only after a long reading."""
    if not arguments.files:
        raise KoplError("name the files to read, and the file to write with -o OUT")
    out = Path(arguments.output)
    if out.is_dir():
        raise WriteError(f"{out}: cannot be written: it is a folder")
    for file in arguments.files:
        if out.exists() and Path(file).exists() and out.samefile(file):
            raise KoplError(f"{out}: is read and written; name another OUT")
    for form, names in _OWN.items():
        for name in names:
            if form != arguments.form and getattr(arguments, name) is not None:
                option = "--" + name.replace("_", "-")
                raise KoplError(f"{option}: this option belongs to --from {form}")


def _read(arguments: argparse.Namespace, problems: Problems, report: Report) -> KnowledgeBase:
    from kb.imports.common import read_labels

    labels: dict[str, str] = {}
    for file in arguments.labels:
        for id, label in read_labels(file):
            labels.setdefault(id, label)
    if arguments.form == "table":
        from kb.imports.factmap import read_fact_map
        from kb.imports.facts import read_fact_tables

        mapping = read_fact_map(arguments.mapping) if arguments.mapping else None
        return read_fact_tables(
            arguments.files,
            problems,
            mapping=mapping,
            labels=labels,
            skip_malformed=arguments.skip_malformed,
            report=report,
        )
    from kb.imports.wikidata import LANGUAGES, read_wikidata

    languages: Sequence[str] = LANGUAGES
    if arguments.languages is not None:
        languages = [tag.strip() for tag in arguments.languages.split(",") if tag.strip()]
        if not languages:
            raise KoplError("--languages: no language is named; write en,mul or the like")
    return read_wikidata(
        arguments.files,
        problems,
        languages=languages,
        ids=_ids(arguments.ids, "Q", "--ids"),
        properties=_ids(arguments.properties, "P", "--properties"),
        limit=arguments.limit,
        external_ids=bool(arguments.external_ids),
        labels=labels,
        skip_malformed=arguments.skip_malformed,
        report=report,
    )


def _ids(text: str | None, letter: str, option: str) -> list[str] | None:
    """The ids of an option: listed, or in a file."""
    from kb.imports.common import is_id, read_ids

    if text is None:
        return None
    if text.startswith("@"):
        return read_ids(text[1:], letter)
    ids = [id.strip() for id in text.split(",")]
    for id in ids:
        if not is_id(id, letter):
            raise KoplError(f"{option}: ids such as {letter}42 were expected, not {id!r}")
    return ids
