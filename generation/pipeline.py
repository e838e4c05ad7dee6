"""From a knowledge base to examples: blocks put together, nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count as count_from

from generation.blocks import Maker, Options
from generation.grammar import Grammar
from generation.judge import Unseen, marks
from generation.lexicon import Lexicon
from generation.splits import split
from kb import KnowledgeBase
from kopl.example import Example
from kopl_base.errors import KoplError

__all__ = ["GenerationError", "Options", "Scarcity", "Unseen", "generate", "split"]

# A knowledge base is taken to have no more when so many blocks in a row bring hardly anything new.
BARREN, HARDLY = 2, 10
NOTHING = (
    "the knowledge base yields no question with these rules and options; kopl kb info shows what it"
    " holds"
)


class GenerationError(KoplError):
    """A knowledge base that does not yield as many questions as were asked for."""

    kind = "generation"


class Scarcity:
    """Notices when blocks, one after the other, bring hardly anything new any more."""

    def __init__(self) -> None:
        self._barren = 0

    def after(self, new: int) -> bool:
        """Take note of a block with so many new examples; whether there are no more to be had."""
        self._barren = 0 if new > HARDLY else self._barren + 1
        return self._barren >= BARREN


def generate(
    kb: KnowledgeBase,
    count: int,
    seed: int,
    *,
    grammar: Grammar | None = None,
    options: Options | None = None,
    lexicon: Lexicon | None = None,
    run_query: Callable[[str], list[str]] | None = None,
) -> Iterator[Example]:
    """Different questions over a knowledge base with programs, queries, answers, ten choices.

    The same seed gives the same examples. Each has exactly one answer: its program, in strict
    mode, denotes one string, and each description that the question uses in the singular fits one
    entity. ``grammar`` is the bundled one unless given, ``lexicon`` follows from the knowledge
    base; ``run_query`` gives the denotation of a query on another engine, for the share of queries
    that are compared. Raises GenerationError when no more can be found.
    """
    if count < 0:
        raise KoplError(f"the number of questions must not be negative, but is {count}")
    maker = Maker(kb, grammar=grammar, options=options, lexicon=lexicon, run_query=run_query)
    blocks = (maker.block(seed, number) for number in count_from())
    return put_together(blocks, count, Unseen())


def put_together(
    blocks: Iterable[Iterable[Example]], count: int, unseen: Unseen
) -> Iterator[Example]:
    """The first ``count`` examples of the blocks that were not there before.

    Raises GenerationError when the blocks bring nothing new any more.
    """
    kept, scarcity = 0, Scarcity()
    if count == 0:
        return
    for block in blocks:
        before = kept
        for example in block:
            if unseen.add(marks(example.question, example.program)):
                kept += 1
                yield example
                if kept == count:
                    return
        if scarcity.after(kept - before):
            break
    raise GenerationError(
        NOTHING
        if not kept
        else f"the knowledge base yields {kept} different questions, not {count}; ask for"
        " fewer or give a larger one"
    )
