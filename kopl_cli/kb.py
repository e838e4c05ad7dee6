"""``kopl kb``: look into, check, convert and snapshot knowledge bases."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError, counted
from kopl_base.tables import print_table
from kopl_cli import kb_import
from kopl_cli.common import add_kb, open_kb, positive, show_warnings

if TYPE_CHECKING:
    from kb import KnowledgeBase


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, sentence: str) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=sentence, description=sentence.capitalize() + ".")
        add_kb(added, option=False)
        return added

    info = action("info", "sizes and schema of a knowledge base")
    info.add_argument("--json", action="store_true", help="print one JSON object, schema included")
    info.add_argument("--schema", action="store_true", help="list all relations and keys")
    check = action("check", "every problem of a knowledge base, each with its place")
    check.add_argument("--json", action="store_true", help="print one JSON object for a problem")
    check.add_argument("--all", action="store_true", help="list more than 1,000 of a kind")
    search = action("search", "find entities, concepts, keys and relations by name")
    search.add_argument("text", metavar="TEXT", help="a name or something near it")
    search.add_argument("-n", type=positive, default=10, help="how many of each kind (default: 10)")
    show = action("show", "the facts of an entity or concept")
    show.add_argument("node", metavar="NODE", help="an id, a name or an alias")
    convert = action("convert", "write a knowledge base in another format")
    convert.add_argument("out", metavar="OUT", help="the file to write (.gz and .bz2 compress)")
    convert.add_argument(
        "--to", choices=("kqapro", "lines"), help="default: by OUT's ending (.json, .jsonl)"
    )
    convert.add_argument(
        "--spelling",
        choices=("A", "B"),
        default="A",
        help="of kb.json: A as released since 2022, B as older baselines read it",
    )
    convert.add_argument(
        "--ends",
        choices=("recorded", "head", "both"),
        default="recorded",
        help="write a relational fact where the source had it, at its head, or at both ends (as"
        " the published executors need it)",
    )
    export = action("export", "write a knowledge base as RDF, in KQA Pro's encoding")
    export.add_argument("out", metavar="FILE", help="the file to write (.gz, .bz2, .xz compress)")
    export.add_argument(
        "--to",
        choices=("nt", "ttl", "nq"),
        help="N-Triples, Turtle or N-Quads; default: by FILE's ending (.nt, .ttl, .nq)",
    )
    export.add_argument(
        "--base",
        metavar="IRI",
        help="make ids, relations and keys absolute below this IRI, which ends in /; they are bare"
        " otherwise, as in KQA Pro's queries",
    )
    export.add_argument("--graph", metavar="IRI", help="the graph that N-Quads name")
    export.add_argument(
        "--terms", action="store_true", help="write facts as triple terms of RDF 1.2"
    )
    export.add_argument(
        "--encoding",
        choices=("kqapro", "wikidata"),
        default="kqapro",
        help="how facts are triples: as in KQA Pro (default), or as in Wikidata (N-Triples only)",
    )
    export.add_argument(
        "--language", default="en", metavar="TAG", help="of labels in Wikidata's form"
    )
    snapshot = action("snapshot", "write a snapshot, which opens at once")
    snapshot.add_argument("out", metavar="OUT", help="the file to write, by custom *.kopl")
    sentence = "make a knowledge base from a Wikidata dump or from tables"
    kb_import.add_arguments(
        actions.add_parser("import", help=sentence, description=f"M{sentence[1:]}.")
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    actions = {
        "info": _info,
        "check": _check,
        "search": _search,
        "show": _show,
        "convert": _convert,
        "export": _export,
        "snapshot": _snapshot,
        "import": kb_import.run,
    }
    return actions[arguments.action](arguments)


def _info(arguments: argparse.Namespace) -> int:
    kb = open_kb(arguments)
    sizes: dict[str, Any] = {
        "entities": kb.entity_count,
        "concepts": kb.concept_count,
        "relational facts": len(kb.relational),
        "literal facts": len(kb.literals),
        **({"aliases": kb.alias_count} if kb.alias_count else {}),
        "distinct values": len(kb.values),
        "relations": len(kb.relations),
        "attribute keys": len(kb.attribute_keys),
        "qualifier keys": len(kb.qualifier_keys),
        "units": len(kb.units),
        "fingerprint": kb.fingerprint,
    }
    schema = list(_schema(kb)) if arguments.json or arguments.schema else []
    if arguments.json:
        names = ("kind", "name", "facts", "values")
        rows = [dict(zip(names, row, strict=True)) for row in schema]
        print(json.dumps({"sizes": sizes, "schema": rows}, ensure_ascii=False))
        return 0
    print_table(("what", "how many"), list(sizes.items()))
    if arguments.schema:
        print_table(("kind", "name", "facts", "values"), schema)
    return 0


def _schema(kb: KnowledgeBase) -> Iterator[tuple[str, str, int, str]]:
    """Relations, then keys with the types and units of their values, each with its facts."""
    for number, relation in enumerate(kb.relations):
        yield ("relation", relation, len(kb.relational.of_predicate(number)), "")
    for kind, numbers in (
        ("key", kb.values_of_keys()),
        ("qualifier key", kb.qualifier_values_of()),
    ):
        for key, values in numbers.items():
            forms = kb.values.forms(values).most_common()
            yield (kind, key, len(values), ", ".join(form for form, _ in forms))


def _check(arguments: argparse.Namespace) -> int:
    from kb import check_file

    show_warnings()
    problems = check_file(arguments.kb, limit=None if arguments.all else 1000)
    for problem in sorted(problems.found):
        if arguments.json:
            print(json.dumps(vars(problem), ensure_ascii=False))
        else:
            print(problem)
    for (severity, code), count in sorted(problems.counts.items()):
        print(f"{count:8} {severity} {code}", file=sys.stderr)
    counts = counted(problems.errors, "error"), counted(problems.warnings, "warning")
    print(f"kopl: {', '.join(counts)}", file=sys.stderr)
    return 1 if problems.errors else 0


def _search(arguments: argparse.Namespace) -> int:
    from kb.lookup import NODE_KINDS, SCHEMA_KINDS, above, search

    kb = open_kb(arguments)
    rows: list[tuple[str, str, str]] = []
    for match in search(kb, arguments.text, (*NODE_KINDS, *SCHEMA_KINDS), arguments.n):
        if match.node is None:
            rows.append((match.kind, match.name, ""))
            continue
        where, id = ", ".join(above(kb, match.node)), kb.id_of(match.node)
        found = f"{id} ({where})" if where else id
        also = "" if match.name == match.called else f", also {match.called}"
        rows.append((match.kind, match.name, found + also))
    print_table(("kind", "name", "id"), rows)
    if not rows:
        print(f"kopl: nothing is named like {arguments.text!r}", file=sys.stderr)
    return 0 if rows else 1


def _show(arguments: argparse.Namespace) -> int:
    kb = open_kb(arguments)
    node = kb.node(arguments.node)
    nodes = [node] if node >= 0 else kb.named(arguments.node).tolist()
    nodes = nodes or kb.known_as(arguments.node).tolist()
    if not nodes:
        from kb.store import suggest

        near = suggest(kb, arguments.node, ("entity", "concept"))
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        print(f"kopl: there is no id or name {arguments.node!r}{hint}", file=sys.stderr)
        return 1
    for node in nodes:
        for line in _describe(kb, node):
            print(line)
    return 0


def _describe(kb: KnowledgeBase, node: int) -> Iterator[str]:
    entity = kb.is_entity(node)
    above = kb.concepts_of(node) if entity else kb.parents(node)
    concepts = ", ".join(kb.name_of(c) for c in above)
    what = "entity" if entity else "concept"
    yield f"{kb.name_of(node)} ({what} {kb.id_of(node)}{': ' if concepts else ''}{concepts})"
    if aliases := kb.aliases_of(node):
        yield f"  also called: {', '.join(aliases)}"
    for fact in kb.attributes(node):
        yield f"  {fact.key}: {fact.value}{_qualifiers(fact.qualifiers)}"
    for record in kb.records(node, "both"):
        arrow = "→" if record.direction == "forward" else "←"
        other = kb.name_of(kb.node(record.other))
        yield f"  {arrow} {record.relation}: {other}{_qualifiers(record.qualifiers)}"


def _qualifiers(qualifiers: dict[str, list[Any]]) -> str:
    pairs = [f"{key}: {', '.join(map(str, values))}" for key, values in qualifiers.items()]
    return f"  [{'; '.join(pairs)}]" if pairs else ""


def _convert(arguments: argparse.Namespace) -> int:
    from kb import ReadError, write_kqapro, write_lines

    form = arguments.to
    if form is None:
        endings = Path(arguments.out).suffixes
        forms = {".json": "kqapro", ".jsonl": "lines", ".ndjson": "lines"}
        form = next((forms[e] for e in reversed(endings) if e in forms), None)
    if form is None:
        raise ReadError("say the format with --to, or end OUT in .json or .jsonl")
    kb = open_kb(arguments)
    if form == "kqapro":
        write_kqapro(kb, arguments.out, spelling=arguments.spelling, ends=arguments.ends)
    else:
        write_lines(kb, arguments.out, ends=arguments.ends)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from kb import ReadError, write_rdf
    from kb.rdf.writer import check_options

    form = arguments.to
    if form is None:
        endings = [ending[1:].lower() for ending in Path(arguments.out).suffixes]
        form = next((ending for ending in reversed(endings) if ending in ("nt", "ttl", "nq")), None)
    if form is None:
        raise ReadError("say the format with --to, or end FILE in .nt, .ttl or .nq")
    if arguments.encoding == "wikidata":
        return _export_wikidata(form, arguments)
    options = {"base": arguments.base, "graph": arguments.graph}
    check_options(form, **options)  # before a big knowledge base is opened in vain
    write_rdf(open_kb(arguments), arguments.out, form, **options, terms=arguments.terms)
    return 0


def _export_wikidata(form: str, arguments: argparse.Namespace) -> int:
    from kopl.sparql.wikidata_export import write_wikidata

    if form != "nt" or arguments.base or arguments.graph or arguments.terms:
        raise KoplError("--encoding wikidata: N-Triples, without --base, --graph and --terms")
    write_wikidata(open_kb(arguments), arguments.out, language=arguments.language)
    return 0


def _snapshot(arguments: argparse.Namespace) -> int:
    from kb import read, write_snapshot
    from kb.load import format_of, locate
    from kb.snapshot import Source

    show_warnings()
    path = locate(arguments.kb)
    source = None if format_of(path) == "snapshot" else Source.of(path)
    write_snapshot(read(path), arguments.out, source)
    return 0
