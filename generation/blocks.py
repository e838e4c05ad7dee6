"""Blocks of questions: each follows from the seed and its own number alone.

So blocks may be made in any order, by any worker, and again after a run was stopped. Within a block
no question comes twice, types and answers are balanced, and every function occurs; whoever puts
blocks together drops what an earlier block had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from generation.balance import SHARES, SHORT, Balance, Order
from generation.choices import Choices
from generation.grammar import Grammar, bundled
from generation.judge import Judge
from generation.lexicon import Lexicon, NoWords
from generation.pools import NoDraw
from generation.sampler import Sampler
from kb import KnowledgeBase
from kb.schema import Schema
from kopl.example import Example
from kopl.program import Call
from kopl.sparql.ast import write
from kopl.sparql.from_kopl import translate
from kopl.sparql.sets import SUPERLATIVE
from kopl.traits import hops, locating, skills

SIZE = 500
# A strategy that fails this often in a row is given up: the knowledge base has no more for it.
PATIENCE = 400
# The same where a function is wanted: it may stand in no question of the drawn type.
SHORT_PATIENCE = 20


@dataclass(frozen=True)
class Options:
    """What a run of the generator is like, besides its seed.

    ``levels`` bounds how many rules may follow one another (8: descriptions of two hops), ``least``
    and ``calls`` how many calls a program has. ``shares`` are percents of asking strategies in
    place of the paper's, ``short`` is the share of programs of up to three calls (where there are
    others), ``zero`` that of 0 among the counts.
    ``canonical`` words every question in the paper's single form. ``clauses=False`` keeps questions
    with clauses that change nothing. ``sparql``: whether queries are written. ``verify`` is the
    share of the queries that are run on an engine and compared.
    """

    levels: int = 8
    least: int = 1
    calls: int = 20
    shares: tuple[tuple[str, float], ...] = ()
    short: float = 0.15
    zero: float = 0.1
    canonical: bool = False
    clauses: bool = True
    sparql: bool = True
    verify: float = 0.01


class Maker:
    """Makes blocks of questions over one knowledge base.

    ``grammar`` and ``lexicon`` are the bundled rules and the words that follow from the knowledge
    base, unless given. ``run_query`` gives the denotation of a query on another engine; without it
    none is compared.
    ``reasons`` counts why candidates were not kept, ``compared`` how many queries were run.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        grammar: Grammar | None = None,
        options: Options | None = None,
        lexicon: Lexicon | None = None,
        run_query: Callable[[str], list[str]] | None = None,
    ) -> None:
        self.kb, self.options = kb, options or Options()
        self.reasons: Counter[str] = Counter()
        self.compared = 0
        self._choices = Choices(kb)
        self._sampler = Sampler(
            kb, grammar or bundled(), Random(0), levels=self.options.levels, lexicon=lexicon
        )
        self.grammar = self._sampler.grammar  # without the rules that cannot be used here
        self._run_query = run_query

    def block(self, seed: int, number: int) -> Iterator[Example]:
        """The examples of a block, in order; fewer than SIZE when no more are found."""
        source = self._sampler.source
        random = source.random = Random(f"{seed}/{number}")
        judge = Judge(self.kb, clauses=self.options.clauses, reasons=self.reasons)
        balance = Balance(
            self.grammar, random, levels=self.options.levels, size=SIZE,
            shares={**SHARES, **dict(self.options.shares)},
            short=self.options.short, zero=self.options.zero, least=self.options.least,
        )  # fmt: skip
        for place in range(SIZE):
            source.operators = balance.operators()
            for order in balance.orders():
                example = self._attempt(judge, order, f"{seed}-{number}-{place}")
                if example is not None:
                    balance.count(example.type or "", example.program, example.answer or "")
                    yield example
                    break
            else:
                return

    def _attempt(self, judge: Judge, order: Order, id: str) -> Example | None:
        """An example that is as ordered, or None when the patience is over."""
        weights = [rule.weight for rule in order.rules]
        random = self._sampler.source.random
        special = order != Order(order.rules, least=self.options.least)
        for _ in range(SHORT_PATIENCE if special else PATIENCE * max(1, order.least - SHORT)):
            (rule,) = random.choices(order.rules, weights)
            try:
                derivation = self._sampler.sample(
                    rule, order.wanted, nothing=order.nothing, least=order.least
                )
                if derivation.program.size > self.options.calls:
                    continue
                question = derivation.question(None if self.options.canonical else random)
            except (NoDraw, NoWords):
                continue
            found = judge.verdict(derivation, question)
            if found is None:
                continue
            try:
                canonical = derivation.question(None)
            except NoWords:
                self.reasons["no canonical form"] += 1
                continue
            program = derivation.program
            choices = self._choices.draw(program, found.answer, found.dropped, judge.denote, random)
            example = Example(
                question, program, found.answer, choices, id=id, type=rule.strategy,
                canonical=canonical,
                extra={
                    "strategies": list(locating(program)),
                    "skills": list(skills(program)),
                    "hops": hops(program),
                },
            )  # fmt: skip
            compare = random.random() < self.options.verify
            if not self.options.sparql:
                return example
            query = query_of(program, self.kb)
            if not compare or self._agrees(query, found.answer):
                return replace(example, sparql=query)
            self.reasons["engines differ"] += 1
        return None

    def _agrees(self, query: str, answer: str) -> bool:
        if self._run_query is None:
            return True
        self.compared += 1
        return self._run_query(query) == [answer]


def query_of(program: Call, kb: KnowledgeBase) -> str:
    """The program, which has one answer in strict mode, as SPARQL.

    It is in the data's style where that has the program's meaning on this knowledge base, else the
    exact translation (docs/sparql.md).
    """
    query, differences = translate(program, "data", kb=kb)
    if differences == [SUPERLATIVE] and not _has_strings(program.arguments[0], kb):
        differences = []  # strict mode has excluded ties and several units
    if differences:
        query, _ = translate(program, "exact", kb=kb)
    return write(query)


def _has_strings(key: str, kb: KnowledgeBase) -> bool:
    return Schema.of(kb).has((key, False), "string")
