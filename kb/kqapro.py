"""KQA Pro's ``kb.json``: one document with all concepts and entities, in either spelling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kb.assemble import Assembler
from kb.problems import Problems
from kb.records import SPELLINGS, Ends, NodeReader, Spelling, node_json, nodes_of
from kb.store import KnowledgeBase
from kopl_base.progress import Progress
from kopl_base.stream import JsonStream, TextReader, writing


def read_kqapro(path: Path | str, problems: Problems | None = None) -> KnowledgeBase:
    """The knowledge base in a ``kb.json`` file (plain, .gz, .bz2 or .xz), read node by node.

    Raises ReadError with file and place for what is malformed; repairs are noted in ``problems``.
    """
    problems = problems or Problems(source=str(path))
    assembler = Assembler(problems)
    reader = NodeReader(assembler)
    with TextReader(Path(path)) as text:
        stream = JsonStream(text)
        if stream.peek() != "{":
            raise stream.fail('expected an object with "concepts" and "entities"')
        seen = set()
        for section in stream.members():
            if section in seen and section in ("concepts", "entities"):
                problems.error("duplicate-section", section, f'the file has "{section}" twice')
            seen.add(section)
            if section not in ("concepts", "entities"):
                stream.value()
                problems.warning("unknown-field", section, "an unknown field; it is passed over")
                continue
            if stream.peek() not in ("{", ""):
                raise stream.fail(f"{section} must be an object of nodes by id")
            read = reader.concept if section == "concepts" else reader.entity
            for id in stream.members():
                node, place = stream.value(), f"{section}/{id}"
                if stream.twice:
                    problems.field_twice(place, stream.twice)
                read(id, node, place)
        stream.end()
        for section in ("concepts", "entities"):
            if section not in seen:
                problems.error("wrong-type", section, f'there is no "{section}" in the file')
    return assembler.finish()


def from_kqapro(document: dict[str, Any], problems: Problems | None = None) -> KnowledgeBase:
    """The knowledge base in the object that a ``kb.json`` file holds; the object is not changed."""
    assembler = Assembler(problems)
    reader = NodeReader(assembler)
    for section in ("concepts", "entities"):
        nodes = document.get(section) if isinstance(document, dict) else None
        if not isinstance(nodes, dict):
            assembler.problems.error("wrong-type", section, "expected an object of nodes by id")
            continue
        read = reader.concept if section == "concepts" else reader.entity
        for id, node in nodes.items():
            read(id, node, f"{section}/{id}")
    return assembler.finish()


def write_kqapro(
    kb: KnowledgeBase, path: Path | str, *, spelling: Spelling = "A", ends: Ends = "recorded"
) -> None:
    """Write ``kb.json`` in the spelling wanted, compressed when the name ends in .gz or .bz2.

    ``ends``: write each relational fact where its source had it (``recorded``), at its head only
    (``head``), or at both its ends (``both``, as the published executors need it).
    """
    names = SPELLINGS[spelling]
    with writing(path) as file, Progress(f"writing {Path(path).name}", kb.node_count) as bar:
        for section, concepts in (("concepts", True), ("entities", False)):
            file.write("{" if concepts else ", ")
            file.write(f'"{section}": {{')
            for at, node in enumerate(nodes_of(kb, concepts=concepts)):
                text = json.dumps(node_json(kb, node, names, ends), ensure_ascii=False)
                file.write(f"{',' if at else ''}\n{json.dumps(kb.id_of(node))}: {text}")
                bar.advance(1)
            file.write("\n}")
        file.write("}\n")
