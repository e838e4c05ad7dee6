"""JSON lines, one node a line: the form for big knowledge bases.

``{"id": "Q1", "kind": "entity", "name": …, "instanceOf": […], "attributes": […],
"relations": […]}`` or ``{"id": "C1", "kind": "concept", "name": …, "subclassOf": […]}``;
facts are written as in ``kb.json``.
"""

from __future__ import annotations

import json
from pathlib import Path

from kb.assemble import Assembler
from kb.problems import Problems
from kb.records import SPELLINGS, Ends, NodeReader, node_json, nodes_of
from kb.store import KnowledgeBase
from kopl_base.jsontext import JsonDecoder
from kopl_base.progress import Progress
from kopl_base.stream import TextReader, writing


def read_lines(path: Path | str, problems: Problems | None = None) -> KnowledgeBase:
    """The knowledge base in a file of JSON lines (plain, .gz, .bz2 or .xz).

    Raises ReadError with file, line and place for what is malformed.
    """
    problems = problems or Problems(source=str(path))
    assembler = Assembler(problems)
    reader, decoder = NodeReader(assembler), JsonDecoder()
    with TextReader(Path(path)) as text:
        for number, line in enumerate(text.lines(), 1):
            place = f"line {number}"
            if not line.strip():
                continue
            try:
                node = decoder.decode(line)
            except (ValueError, RecursionError) as error:
                problems.error("not-json", place, f"the line is not JSON ({error})")
                continue
            id = node.get("id") if isinstance(node, dict) else None
            if not isinstance(id, str):
                problems.error(
                    "wrong-type", place, 'expected an object with an "id" that is a text'
                )
                continue
            if decoder.twice:
                problems.field_twice(f"{place} ({id})", decoder.twice)
            kind = node.get("kind")
            if kind not in ("entity", "concept"):
                problems.error(
                    "wrong-type",
                    f"{place} ({id})",
                    f'"kind" is "entity" or "concept", not {kind!r}',
                )
                continue
            read = reader.concept if kind == "concept" else reader.entity
            read(id, node, f"{place} ({id})")
    return assembler.finish()


def write_lines(kb: KnowledgeBase, path: Path | str, *, ends: Ends = "recorded") -> None:
    """Write JSON lines, concepts first; compressed when the name ends in .gz or .bz2."""
    names = SPELLINGS["A"]
    with writing(path) as file, Progress(f"writing {Path(path).name}", kb.node_count) as bar:
        for concepts in (True, False):
            kind = "concept" if concepts else "entity"
            for node in nodes_of(kb, concepts=concepts):
                line = {"id": kb.id_of(node), "kind": kind, **node_json(kb, node, names, ends)}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                bar.advance(1)
