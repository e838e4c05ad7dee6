"""The queries of a run that is under way: a line has what tells one from others, and its JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cqa.formats.json_lines import from_line
from cqa.sampling.sample import Sample
from kopl_base.errors import KoplError, ReadError
from kopl_base.unfinished import Unfinished


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


class Part(Unfinished):
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
        about: Mapping[str, Any],
        fresh: Callable[[], Kept],
        *,
        resume: bool,
    ) -> None:
        self._fresh = fresh
        self.at = self.block = self.fruitless = self._begin = 0
        self.short: dict[str, int] = {}
        self.type = fresh()
        super().__init__(output, about, "queries", resume=resume)
        if self.state is None:
            self.begin()
        else:
            self._go_on(self.state)

    def _go_on(self, state: dict[str, Any]) -> None:
        try:
            self.at, self.block, self.fruitless, size, self._begin, kept = (
                int(state[name])
                for name in ("type", "block", "fruitless", "bytes", "begin", "kept")
            )
            self.short = {str(name): int(count) for name, count in state["short"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise self.unreadable(error) from None
        try:
            if self.path.stat().st_size < size:
                raise ValueError("it is shorter than it was")
            with open(self.path, "rb") as file:
                file.seek(max(0, self._begin - 1))
                if self._begin and file.read(1) != b"\n":
                    raise ValueError("no line begins where the type began")
                while file.tell() < size:
                    key, _, text = file.readline().decode().partition("\t")
                    sample = from_line(text)
                    self.type.add(key, sample.relations, sample.anchors)
                if file.tell() != size:
                    raise ValueError("its lines do not end where they ended")
        except (OSError, ValueError, KoplError) as error:
            raise ReadError(f"cannot go on with it: {error}", source=str(self.path)) from None
        self.begin(size, kept)

    def add(self, lines: Sequence[Line], wanted: int) -> int:
        """Write what may be kept of a block, up to ``wanted`` of the type; how many that are."""
        new: list[Line] = []
        for line in lines:
            if len(self.type) == wanted:
                break
            if self.type.add(line.key, line.relations, line.anchors):
                new.append(line)
        self.append("".join(f"{line.key}\t{line.text}\n" for line in new), len(new))
        self.block += 1
        return len(new)

    def next_type(self) -> None:
        """Go on to the next type."""
        self.at, self.block, self.fruitless, self._begin = self.at + 1, 0, 0, self.size
        self.type = self._fresh()

    def save_place(self) -> None:
        """Write down how far the run is."""
        self.save(
            type=self.at,
            block=self.block,
            fruitless=self.fruitless,
            bytes=self.size,
            begin=self._begin,
            kept=self.kept,
            short=self.short,
        )

    def give_to(self, write: Callable[[Iterator[Sample]], None]) -> None:
        """Give the queries so far to ``write``, and leave the run as it is, to be gone on with."""
        self.give(lambda path: write(_samples(path)))

    def finish_with(self, write: Callable[[Iterator[Sample]], None]) -> None:
        """Give all queries to ``write``, and leave nothing else than what it makes of them.

        When it fails, all stays as it is, to be finished another time.
        """
        self.finish(lambda path: write(_samples(path)))


def _samples(path: Path) -> Iterator[Sample]:
    with open(path, encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            try:
                yield from_line(line.partition("\t")[2])
            except KoplError as error:
                raise ReadError(
                    f"{error}; remove it and {path.name}.json to begin anew",
                    place=f"line {number}", source=str(path),
                ) from None  # fmt: skip
