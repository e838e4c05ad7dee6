"""From a knowledge base to examples: blocks put together, nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count as count_from

from generation.blocks import Maker, Options, marks
from generation.grammar import Grammar
from generation.splits import split
from kb import KnowledgeBase
from kb.errors import KoplError
from kopl.example import Example

__all__ = ["GenerationError", "Options", "Unseen", "generate", "split"]

# A knowledge base is taken to have no more when so many blocks in a row bring hardly anything new.
BARREN, HARDLY = 2, 10


class GenerationError(KoplError):
    """A knowledge base that does not yield as many questions as were asked for."""

    kind = "generation"


class Unseen:
    """Remembers what was kept; memory grows by some 150 bytes for each example."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def add(self, found: tuple[bytes, bytes]) -> bool:
        """Whether neither mark of an example was there before; both are then."""
        question, program = found
        if question in self._seen or program in self._seen:
            return False
        self._seen.update((question, program))
        return True


def generate(
    kb: KnowledgeBase,
    count: int,
    seed: int,
    *,
    grammar: Grammar | None = None,
    options: Options | None = None,
    run_query: Callable[[str], list[str]] | None = None,
) -> Iterator[Example]:
    """Different questions over a knowledge base with programs, queries, answers, ten choices.

    The same seed gives the same examples. Each has exactly one answer: its program, in strict
    mode, denotes one string, and each description that the question uses in the singular fits one
    entity. ``grammar`` is the bundled one unless given; ``run_query`` gives the denotation of a
    query on another engine, for the share of queries that are compared. Raises GenerationError
    when no more can be found.
    """
    if count < 0:
        raise KoplError(f"the number of questions must not be negative, but is {count}")
    maker = Maker(kb, grammar=grammar, options=options, run_query=run_query)
    blocks = (maker.block(seed, number) for number in count_from())
    return put_together(blocks, count, Unseen())


def put_together(
    blocks: Iterable[Iterable[Example]], count: int, unseen: Unseen
) -> Iterator[Example]:
    """The first ``count`` examples of the blocks that were not there before.

    Raises GenerationError when the blocks bring nothing new any more.
    """
    kept = barren = 0
    if count == 0:
        return
    for block in blocks:
        before = kept
        for example in block:
            if unseen.add(marks(example)):
                kept += 1
                yield example
                if kept == count:
                    return
        barren = 0 if kept - before > HARDLY else barren + 1
        if barren == BARREN:
            break
    raise GenerationError(
        f"the knowledge base yields {kept} different questions, not {count}; ask for"
        " fewer or give a larger one"
    )
