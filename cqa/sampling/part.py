"""The file of a run that is under way, and how far it is.

What is done lies in ``FILE.part``, a line for each query: what tells it from others of its type, a
tab, and its JSON. Whatever form is wanted is made of that at the end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from cqa.formats.json_lines import from_line
from cqa.sampling.sample import Sample
from kb.errors import KoplError, ReadError, WriteError
from kb.stream import writing


class Line(NamedTuple):
    """A query as a line of a file, what tells it from others, its relations and anchors."""

    key: str
    text: str
    relations: tuple[int, ...]
    anchors: tuple[int, ...]


class Kept:
    """What is kept of the queries of one type: no two alike, no relation or anchor too often."""

    def __init__(self, relation_cap: int | None, anchor_cap: int | None) -> None:
        self._caps = relation_cap, anchor_cap
        self._keys: set[str] = set()
        self._uses: tuple[Counter[int], Counter[int]] = Counter(), Counter()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def barred(self) -> tuple[frozenset[int], frozenset[int]]:
        """The relations and the anchors that may not occur again."""
        found = []
        for cap, uses in zip(self._caps, self._uses, strict=True):
            full = () if cap is None else (n for n, count in uses.items() if count >= cap)
            found.append(frozenset(full))
        return found[0], found[1]

    def add(self, key: str, relations: Iterable[int], anchors: Iterable[int]) -> bool:
        """Keep a query if it may be kept; whether it was."""
        if key in self._keys:
            return False
        given = tuple(relations), tuple(anchors)
        for cap, uses, numbers in zip(self._caps, self._uses, given, strict=True):
            if cap is not None and any(uses[number] >= cap for number in numbers):
                return False
        self._keys.add(key)
        for uses, numbers in zip(self._uses, given, strict=True):
            uses.update(numbers)
        return True


class Part:
    """The unfinished file of a run.

    ``kept`` queries so far; ``at`` is the number of the type that is under way, ``block`` the block
    of it that is to be made next, ``fruitless`` how many blocks before it brought next to nothing.
    ``short`` has the types that yielded fewer queries than wanted, and how many.

    Raises WriteError where nothing can be written or a stopped run is in the way, ReadError for a
    stopped run that does not fit.
    """

    def __init__(
        self,
        output: Path,
        about: dict[str, Any],
        fresh: Callable[[], Kept],
        *,
        resume: bool,
    ) -> None:
        self.output = output
        self.path = output.with_name(f"{output.name}.part")
        self._state = output.with_name(f"{output.name}.part.json")
        self._about, self._fresh = json.loads(json.dumps(about)), fresh
        self.kept = self.at = self.block = self.fruitless = self._size = self._begin = 0
        self.short: dict[str, int] = {}
        self.type = fresh()
        if resume and self._state.exists():
            self._go_on()
        elif self._state.exists():
            raise WriteError(
                f"{self.path}: a stopped run is there; --resume goes on with it, or remove it and"
                f" {self._state.name}"
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab")  # noqa: SIM115 - closed by close()
            self._file.truncate(self._size)
        except OSError as error:
            raise WriteError(f"{self.path}: cannot be written: {error.strerror}") from None

    def _go_on(self) -> None:
        source = str(self._state)
        try:
            state = json.loads(self._state.read_text("utf-8"))
            about = dict(state["about"])
            self.at, self.block, self.fruitless, self._size, self._begin, self.kept = (
                int(state[name])
                for name in ("type", "block", "fruitless", "bytes", "begin", "kept")
            )
            self.short = {str(name): int(count) for name, count in state["short"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ReadError(f"not the state of a run: {error}", source=source) from None
        for name, value in self._about.items():
            if about.get(name) != value:
                raise ReadError(
                    f"the stopped run had another {name}: {_shown(about.get(name))}, not"
                    f" {_shown(value)}; give the same, or remove it",
                    source=source,
                )
        if not self.path.exists() and self.output.exists():
            raise ReadError(
                f"the run was complete, and {self.output.name} is there; remove this file",
                source=source,
            )
        try:
            if self.path.stat().st_size < self._size:
                raise ValueError("it is shorter than it was")
            with open(self.path, "rb") as file:
                file.seek(self._begin)
                while file.tell() < self._size:
                    key, _, text = file.readline().decode().partition("\t")
                    sample = from_line(text)
                    self.type.add(key, sample.relations, sample.anchors)
        except (OSError, ValueError, KoplError) as error:
            raise ReadError(f"cannot go on with it: {error}", source=str(self.path)) from None

    def add(self, lines: Sequence[Line], wanted: int) -> int:
        """Write what may be kept of a block, up to ``wanted`` of the type; how many that are."""
        new: list[Line] = []
        for line in lines:
            if len(self.type) == wanted:
                break
            if self.type.add(line.key, line.relations, line.anchors):
                new.append(line)
        data = "".join(f"{line.key}\t{line.text}\n" for line in new).encode()
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._size)
            raise self._full(error) from None
        self._size += len(data)
        self.kept += len(new)
        self.block += 1
        return len(new)

    def next_type(self) -> None:
        """Go on to the next type."""
        self.at, self.block, self.fruitless, self._begin = self.at + 1, 0, 0, self._size
        self.type = self._fresh()

    def save(self) -> None:
        """Write down how far the run is."""
        state = {
            "about": self._about,
            "type": self.at,
            "block": self.block,
            "fruitless": self.fruitless,
            "bytes": self._size,
            "begin": self._begin,
            "kept": self.kept,
            "short": self.short,
        }
        try:
            with writing(self._state) as file:
                json.dump(state, file)
        except (OSError, WriteError) as error:
            raise self._full(error) from None

    def _full(self, error: Exception) -> WriteError:
        reason = getattr(error, "strerror", None) or str(error)
        return WriteError(
            f"{self.path}: cannot be written: {reason}; it has {self.kept} queries: go on with"
            " --resume when there is room"
        )

    def close(self) -> None:
        """Close the file; it stays."""
        with suppress(OSError):
            self._file.close()

    def lines(self) -> Iterator[str]:
        """The queries as JSON lines."""
        with open(self.path, encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.partition("\t")[2]

    def samples(self) -> Iterator[Sample]:
        """The queries."""
        return map(from_line, self.lines())

    def finish(self, write: Callable[[Part], None]) -> None:
        """Make of the file what was wanted, and leave nothing else.

        When ``write`` fails, all stays as it is, to be finished another time.
        """
        if not self.path.exists():
            raise WriteError(f"{self.path}: is gone; does another run write the same file?")
        try:
            write(self)
        except WriteError as error:
            raise WriteError(
                f"{error}; {self.path} has all {self.kept} queries: --resume writes them when"
                " there is room"
            ) from None
        self.path.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
