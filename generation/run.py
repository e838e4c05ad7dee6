"""Running the generator into a file: workers, shards, and going on after a stop.

Blocks come in the order of their numbers whoever makes them, so that the file depends on the seed
alone. What is done lies in ``FILE.part``, and how far it is in ``FILE.part.json``; the file itself
appears when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from generation.blocks import Maker, Options, marks
from generation.grammar import load_grammar
from generation.pipeline import BARREN, HARDLY, GenerationError, Unseen
from kb import KnowledgeBase, load
from kb.errors import KoplError, ReadError, WriteError
from kb.progress import ProgressBar
from kb.stream import TextReader, writing
from kopl.example import Example

log = logging.getLogger("kb")

# Blocks that are under way for each worker: one in work, one waiting.
AHEAD = 2


@dataclass(frozen=True)
class Plan:
    """What is to be made: ``count`` questions by the seed.

    ``kb`` and ``rules`` are files (or "world", or None for the bundled rules). ``shard`` (i, n)
    makes every n-th block only, from the i-th on (0 to n - 1); shards share no work, and may have a
    few questions in common.
    """

    kb: str
    count: int
    seed: int
    options: Options = field(default_factory=Options)
    rules: str | None = None
    shard: tuple[int, int] = (0, 1)
    cache: bool = True


@dataclass
class Report:
    """What a run did: kept questions, candidates by the reason why they were not, queries run."""

    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    compared: int = 0


# One finished block: its lines with their marks, and what its worker counted meanwhile.
Line = tuple[str, tuple[bytes, bytes]]
Block = tuple[list[Line], Counter[str], int]


def run(
    plan: Plan,
    output: Path | str,
    *,
    workers: int = 1,
    resume: bool = False,
    kb: KnowledgeBase | None = None,
) -> Report:
    """Write the questions of a plan as JSON lines; compressed as the file's name says.

    ``kb`` is the plan's knowledge base, where it is open already. Raises GenerationError when there
    are no more questions or a worker ended, ReadError for a stopped run that does not fit,
    WriteError for a file that cannot be written; what was made stays in ``FILE.part`` then.
    """
    kb = kb if kb is not None else load(plan.kb, cache=plan.cache)
    part = _Part(Path(output), plan, kb, resume=resume)
    report = Report(kept=part.kept)
    blocks = _blocks(plan, kb, workers, part.block)
    barren = 0
    try:
        with ProgressBar("generating questions", plan.count) as bar:
            bar.reach(part.kept)
            while part.kept < plan.count:
                number, (lines, reasons, compared) = next(blocks)
                report.reasons.update(reasons)
                report.compared += compared
                added = part.add(number + plan.shard[1], lines)
                report.kept = part.kept
                bar.reach(part.kept)
                barren = 0 if added > HARDLY else barren + 1
                if barren == BARREN:
                    raise GenerationError(
                        f"the knowledge base yields {part.kept} different questions, not"
                        f" {plan.count}; {part.path} has them"
                    )
    except BrokenProcessPool:
        raise GenerationError(
            f"a worker was ended from outside; {part.path} has {part.kept} questions: go on with"
            " --resume (and fewer workers, if memory was short)"
        ) from None
    finally:
        blocks.close()
        part.close()
    part.finish()
    return report


def stream(plan: Plan, kb: KnowledgeBase) -> Iterator[Example]:
    """The questions of a plan, one by one, in this process."""
    from generation.pipeline import put_together

    maker = _maker(plan, kb)
    blocks = (maker.block(plan.seed, number) for number in _numbers(plan, plan.shard[0]))
    return put_together(blocks, plan.count, Unseen())


# --- blocks ------------------------------------------------------------------------------------


def _numbers(plan: Plan, first: int) -> Iterator[int]:
    while True:
        yield first
        first += plan.shard[1]


def _blocks(
    plan: Plan, kb: KnowledgeBase, workers: int, first: int
) -> Generator[tuple[int, Block], None, None]:
    """The finished blocks with their numbers, in order."""
    if workers == 1:
        maker = _maker(plan, kb)
        for number in _numbers(plan, first):
            yield number, _made(maker, plan, number)
        return
    _query_runner(plan, kb)  # the store is there then when the workers open it
    # Fresh processes on every platform: a copy of this one may hold threads and open stores.
    context = multiprocessing.get_context("spawn")
    numbers = _numbers(plan, first)
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin, initargs=(plan,)
    ) as pool:
        waiting: deque[tuple[int, Future[Block]]] = deque()
        try:
            while True:
                for number in islice(numbers, AHEAD * workers - len(waiting)):
                    waiting.append((number, pool.submit(_work, number)))
                number, future = waiting.popleft()
                yield number, future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_MAKER: Maker
_PLAN: Plan


def _begin(plan: Plan) -> None:
    """Prepare a worker."""
    global _MAKER, _PLAN
    _PLAN = plan
    _MAKER = _maker(plan, load(plan.kb, cache=plan.cache))


def _work(number: int) -> Block:
    return _made(_MAKER, _PLAN, number)


def _made(maker: Maker, plan: Plan, number: int) -> Block:
    maker.reasons.clear()
    maker.compared = 0
    lines = [
        (json.dumps(example.to_json(), ensure_ascii=False), marks(example))
        for example in islice(maker.block(plan.seed, number), plan.count)
    ]
    return lines, Counter(maker.reasons), maker.compared


def _maker(plan: Plan, kb: KnowledgeBase) -> Maker:
    run_query = _query_runner(plan, kb)
    grammar = load_grammar(plan.rules) if plan.rules is not None else None
    return Maker(kb, grammar=grammar, options=plan.options, run_query=run_query)


def _query_runner(plan: Plan, kb: KnowledgeBase) -> Callable[[str], list[str]] | None:
    """What gives the denotation of a query on Oxigraph, where any query is to be compared."""
    if not plan.options.verify or not plan.options.sparql:
        return None
    from kopl.sparql.engines.oxigraph import Oxigraph
    from kopl.sparql.errors import MissingPackageError
    from kopl.sparql.evaluate import SparqlExecutor

    try:
        return SparqlExecutor(Oxigraph.of(kb), kb=kb).denotation
    except MissingPackageError as error:
        log.warning("no query is compared: %s", error)
        return None


# --- the file of a run that is under way -------------------------------------------------------


class _Part:
    """The unfinished file of a run, and what is known of it."""

    def __init__(self, output: Path, plan: Plan, kb: KnowledgeBase, *, resume: bool) -> None:
        output = Path(os.path.realpath(output))  # what a link leads to is written, the link stays
        if output.exists() and not output.is_file():
            raise WriteError(f"{output}: cannot be written: it is no ordinary file; '-' streams")
        self.output, self.plan = output, plan
        self.path = output.with_name(f"{output.name}.part")
        self._state = output.with_name(f"{output.name}.part.json")
        self._about = _about(plan, kb)
        self._unseen = Unseen()
        self.kept, self.block, self._size = 0, plan.shard[0], 0
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
        try:
            state = json.loads(self._state.read_text("utf-8"))
            about, self.block = state["about"], int(state["block"])
            self._size = int(state["bytes"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReadError(f"not the state of a run: {error}", source=str(self._state)) from None
        for name, value in self._about.items():
            if about.get(name) != value:
                raise ReadError(
                    f"the stopped run had another {name}: {about.get(name)!r}, not {value!r};"
                    " give the same, or remove it",
                    source=str(self._state),
                )
        try:
            with open(self.path, "rb") as file:
                while file.tell() < self._size:
                    self._unseen.add(marks(Example.from_json(json.loads(file.readline()))))
                    self.kept += 1
        except (OSError, ValueError, KeyError, TypeError, KoplError) as error:
            raise ReadError(f"cannot go on with it: {error}", source=str(self.path)) from None

    def add(self, next_block: int, lines: list[Line]) -> int:
        """Write what is new of a block, as far as it is wanted; gives how many lines that are."""
        new: list[str] = []
        for text, mark in lines:
            if self.kept + len(new) == self.plan.count:
                break
            if self._unseen.add(mark):
                new.append(text + "\n")
        data = "".join(new).encode()
        try:
            self._file.write(data)
            self._file.flush()
            self._size += len(data)
            self.kept, self.block = self.kept + len(new), next_block
            state = {"about": self._about, "block": self.block, "bytes": self._size}
            with writing(self._state) as file:
                json.dump(state, file)
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._size)
            reason = error.strerror or str(error)
            raise WriteError(
                f"{self.path}: cannot be written: {reason}; it has {self.kept} questions: go on"
                " with --resume when there is room"
            ) from None
        return len(new)

    def close(self) -> None:
        """Close the file; it stays."""
        with suppress(OSError):
            self._file.close()

    def finish(self) -> None:
        """Let the file take its place."""
        if self.output.suffix in (".gz", ".bz2", ".xz"):
            with TextReader(self.path) as reader, writing(self.output) as file:
                for line in reader.lines():
                    file.write(line.rstrip("\n") + "\n")
            self.path.unlink()
        else:
            try:
                os.replace(self.path, self.output)
            except OSError as error:
                raise WriteError(f"{self.output}: cannot be written: {error.strerror}") from None
        self._state.unlink(missing_ok=True)


def _about(plan: Plan, kb: KnowledgeBase) -> dict[str, Any]:
    """What must be the same for a stopped run to go on."""
    rules = Path(plan.rules).read_bytes() if plan.rules is not None else b""
    return {
        "knowledge base": kb.fingerprint,
        "seed": plan.seed,
        "shard": list(plan.shard),
        "rules": hashlib.blake2b(rules, digest_size=8).hexdigest(),
        **asdict(plan.options),
    }
