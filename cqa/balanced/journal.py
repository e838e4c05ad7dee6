"""What is done of a benchmark that is being built: a file for each type, a line for each query.

After the queries of a round stands a line that says so; what follows the last of these lines was
not finished and is made again. The types of a benchmark fill up at different times and end in one
file in the order of the plan, so that one part file, as other long runs have, would not do.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cqa.balanced.blocks import Candidate
from cqa.balanced.fill import Filling
from cqa.errors import QueryError
from cqa.formats.json_lines import answers_of, read_answers, read_query
from cqa.query import Query
from cqa.types.grounded import to_json
from cqa.types.tree import Tree
from kopl_base.errors import ReadError, WriteError
from kopl_base.stream import read_text, writing
from kopl_base.unfinished import check_same

SETTINGS = "settings.json"


class Journal:
    """The unfinished types of a folder.

    Raises WriteError where nothing can be written or a stopped run is in the way, ReadError for a
    stopped run with other settings.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], *, resume: bool) -> None:
        self._folder = folder / "unfinished"
        path = self._folder / SETTINGS
        if path.exists():
            if not resume:
                raise WriteError(
                    f"{folder}: holds a stopped run; go on with --resume, or remove {self._folder}"
                )
            try:
                before = json.loads(read_text(path))
                if not isinstance(before, dict):
                    raise ValueError
            except (ValueError, RecursionError):
                raise ReadError(
                    f"not the settings of a run; remove {self._folder}", source=str(path)
                ) from None
            check_same(before, json.loads(json.dumps(settings)), path, str(self._folder))
            return
        if self._folder.exists() and any(self._folder.iterdir()):
            raise WriteError(
                f"{self._folder}: holds queries of a stopped run without its {SETTINGS}; remove it"
            )
        with writing(path) as file:
            json.dump(settings, file)

    def _path(self, name: str) -> Path:
        # Formulas are names of types, too, and no names of files.
        safe = name if name.isalnum() else f"type-{zlib.crc32(name.encode()):08x}"
        return self._folder / f"{safe}.jsonl"

    def restore(self, filling: Filling) -> None:
        """Bring a type to where its last finished round left it."""
        path = self._path(filling.name)
        if not path.exists():
            return
        done = 0
        waiting: list[Candidate] = []
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    given = json.loads(line)
                    if "round" not in given:
                        waiting.append(_read(given))
                        continue
                    for candidate in waiting:
                        filling.keep(candidate)
                    filling.restore(given["round"], given["barren"])
                except (ValueError, KeyError, TypeError, AttributeError, QueryError) as error:
                    raise ReadError(
                        f"no line of a stopped run ({error}); remove the file to begin this type"
                        " again",
                        place=f"line {number}",
                        source=str(path),
                    ) from None
                waiting = []
                done = file.tell()
        with path.open("rb+") as file:
            file.truncate(done)

    def save(self, filling: Filling, added: Sequence[Candidate]) -> None:
        """Write what a round added."""
        lines = [_write(candidate) for candidate in added]
        lines.append({"round": filling.round, "barren": filling.barren})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        path = self._path(filling.name)
        try:
            with path.open("ab") as file:
                file.write(text.encode())
        except OSError as error:
            raise WriteError(f"{path}: cannot be written: {error.strerror}") from error

    def finish(self) -> None:
        """Remove what is no longer needed."""
        for path in sorted(self._folder.iterdir()):
            path.unlink()
        self._folder.rmdir()


def _write(candidate: Candidate) -> dict[str, Any]:
    query = candidate.query
    return {
        "query": to_json(query) if isinstance(query, Tree) else _formula(query),
        "full": answers_of(candidate.full),
        "pairs": {name: answers_of(rows) for name, rows in candidate.pairs.items()},
    }


def _formula(query: Query) -> str:
    from cqa.types.efok_text import write_formula

    return write_formula(query)


def _read(given: dict[str, Any]) -> Candidate:
    query = read_query(given["query"])
    width = len(query.free) if isinstance(query, Query) else 1
    pairs = {name: read_answers(rows, width, name) for name, rows in given["pairs"].items()}
    return Candidate(query, read_answers(given["full"], width, "full"), pairs)
