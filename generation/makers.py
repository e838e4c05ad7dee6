"""Making blocks of questions: what is to be made, and what makes it, in one process or several."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

from generation.blocks import SIZE, Maker, Options
from generation.grammar import Grammar
from generation.judge import Marks, marks
from generation.lexicon import Lexicon, parse_annotations
from generation.rules_file import read_grammar
from generation.stats import Figures
from kb import KnowledgeBase, load
from kopl_base.processes import Alone, Executor, Processes
from kopl_base.stream import read_text

log = logging.getLogger("kb")


@dataclass(frozen=True)
class Plan:
    """What is to be made: ``count`` questions by the seed.

    ``kb`` is a file or "world"; ``rules`` and ``lexicon`` are files in place of the bundled rules
    and with annotations of the words (docs/lexicon.md), where they are given. ``shard`` (i, n)
    makes every n-th block only, from the i-th on (0 to n - 1); shards share no work, and may have a
    few questions in common.
    """

    kb: str
    count: int
    seed: int
    options: Options = field(default_factory=Options)
    rules: str | None = None
    lexicon: str | None = None
    shard: tuple[int, int] = (0, 1)
    cache: bool = True

    def needs(self, number: int) -> bool:
        """Whether a block is needed even if no question of those before it came twice."""
        return (number - self.shard[0]) // self.shard[1] * SIZE < self.count

    def numbers(self, first: int) -> Iterator[int]:
        """The numbers of the plan's blocks from one of them on."""
        while True:
            yield first
            first += self.shard[1]


class Line(NamedTuple):
    """A question as the line of a file, what tells it from others, and what is counted of it."""

    text: str
    marks: Marks
    figures: Figures


class Block(NamedTuple):
    """A finished block: its lines, and what its worker counted meanwhile.

    ``seconds`` of the processor went into it, ``prepared`` into the worker before its first one.
    """

    lines: list[Line]
    reasons: Counter[str]
    compared: int
    seconds: float = 0.0
    prepared: float = 0.0


@dataclass(frozen=True)
class Sources:
    """The texts of a plan's own files, as they were when the work began."""

    rules: str | None = None
    lexicon: str | None = None

    @classmethod
    def of(cls, plan: Plan) -> Sources:
        """The texts of the files that a plan names; raises ReadError."""
        return cls(
            None if plan.rules is None else read_text(plan.rules),
            None if plan.lexicon is None else read_text(plan.lexicon),
        )

    def opened(self, plan: Plan, kb: KnowledgeBase) -> tuple[Grammar | None, Lexicon | None]:
        """What the texts say, as far as there are some; raises ReadError with file and line."""
        grammar = lexicon = None
        if self.rules is not None:
            grammar = read_grammar(self.rules, plan.rules or "")
        if self.lexicon is not None:
            lexicon = Lexicon(kb, parse_annotations(self.lexicon, plan.lexicon or ""))
        return grammar, lexicon


class BlockMaker:
    """Makes blocks of one plan over its knowledge base; raises ReadError for wrong sources.

    ``began`` is the processor time at which its preparation began, if before this.
    """

    def __init__(
        self,
        plan: Plan,
        kb: KnowledgeBase,
        sources: Sources | None = None,
        began: float | None = None,
    ) -> None:
        began = time.process_time() if began is None else began
        grammar, lexicon = (sources or Sources.of(plan)).opened(plan, kb)
        self.plan = plan
        self.maker = Maker(
            kb,
            grammar=grammar,
            options=plan.options,
            lexicon=lexicon,
            run_query=query_runner(plan, kb),
        )
        self._prepared = time.process_time() - began

    def block(self, number: int) -> Block:
        """The block of that number."""
        maker, begin = self.maker, time.process_time()
        maker.reasons.clear()
        maker.compared = 0
        lines = [
            Line(
                json.dumps(example.to_json(), ensure_ascii=False),
                marks(example.question, example.program),
                Figures.of(example),
            )
            for example in islice(maker.block(self.plan.seed, number), self.plan.count)
        ]
        seconds = time.process_time() - begin
        return Block(lines, Counter(maker.reasons), maker.compared, seconds, self._prepared)


def query_runner(plan: Plan, kb: KnowledgeBase) -> Callable[[str], list[str]] | None:
    """What gives the denotation of a query on Oxigraph, where any query is to be compared.

    Raises MissingPackageError when all are and the package is not there; a share is left out then.
    """
    if not plan.options.verify or not plan.options.sparql:
        return None
    from kopl.sparql.engines.oxigraph import Oxigraph
    from kopl.sparql.errors import MissingPackageError
    from kopl.sparql.evaluate import SparqlExecutor

    try:
        return SparqlExecutor(Oxigraph.of(kb), kb=kb).denotation
    except MissingPackageError as error:
        if plan.options.verify == 1:
            raise
        log.warning("no query is compared: %s", error)
        return None


# --- who makes blocks --------------------------------------------------------------------------

# Opens what makes the blocks of a plan over its knowledge base.
Start = Callable[[Plan, KnowledgeBase], AbstractContextManager[Executor[Block]]]


def processes(workers: int) -> Start:
    """So many processes on this machine; one is this process itself."""

    @contextmanager
    def start(plan: Plan, kb: KnowledgeBase) -> Iterator[Executor[Block]]:
        if workers == 1:
            yield Alone(BlockMaker(plan, kb).block)
            return
        sources = Sources.of(plan)
        sources.opened(plan, kb)  # what is wrong with them is said here, once
        query_runner(plan, kb)  # the store is there then when the workers open it
        with ExitStack() as stack:
            yield Processes(partial(_maker, plan, sources), workers, stack)

    return start


def _maker(plan: Plan, sources: Sources) -> Callable[[int], Block]:
    # In a fresh process: its time began with it.
    return BlockMaker(plan, load(plan.kb, cache=plan.cache), sources, 0.0).block
