"""Blocks of questions: each follows from the seed and its own number alone.

So blocks may be made in any order, by any worker, and again after a run was stopped. Within a block
no question comes twice, types and answers are balanced, and every function occurs; whoever puts
blocks together drops what an earlier block had.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from generation.balance import Balance
from generation.choices import Choices
from generation.grammar import Grammar, Rule, bundled
from generation.judge import Judge
from generation.lexicon import NoWords
from generation.pools import NoDraw
from generation.sampler import Sampler
from kb import KnowledgeBase
from kopl.example import Example
from kopl.functions import AND, OR, Function
from kopl.program import Call
from kopl.sparql.from_kopl import translate
from kopl.sparql.text import write
from kopl.traits import hops, locating, skills

SIZE = 500
# A strategy that fails this often in a row is given up: the knowledge base has no more for it.
PATIENCE = 400
# The same where a function is wanted: it may stand in no question of the drawn type.
SHORT_PATIENCE = 20


@dataclass(frozen=True)
class Options:
    """What a run of the generator is like, besides its seed.

    ``levels`` bounds how many rules may follow one another (8: descriptions of two hops).
    ``canonical`` words every question in the paper's single form. ``clauses=False`` keeps questions
    with clauses that change nothing. ``sparql``: whether queries are written. ``verify`` is the
    share of the queries that are run on an engine and compared.
    """

    levels: int = 8
    canonical: bool = False
    clauses: bool = True
    sparql: bool = True
    verify: float = 0.01


class Maker:
    """Makes blocks of questions over one knowledge base.

    ``run_query`` gives the denotation of a query on another engine; without it none is compared.
    ``reasons`` counts why candidates were not kept, ``compared`` how many queries were run.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        grammar: Grammar | None = None,
        options: Options | None = None,
        run_query: Callable[[str], list[str]] | None = None,
    ) -> None:
        self.kb, self.options = kb, options or Options()
        self.grammar = grammar or bundled()
        self.reasons: Counter[str] = Counter()
        self.compared = 0
        self._choices = Choices(kb)
        self._sampler = Sampler(kb, self.grammar, Random(0), levels=self.options.levels)
        self._run_query = run_query

    def block(self, seed: int, number: int) -> Iterator[Example]:
        """The examples of a block, in order; fewer than SIZE when no more are found."""
        random = self._sampler.random = Random(f"{seed}/{number}")
        judge = Judge(self.kb, clauses=self.options.clauses, reasons=self.reasons)
        balance = Balance(self.grammar, random, levels=self.options.levels, size=SIZE)
        for place in range(SIZE):
            for rules, wanted in balance.tries():
                example = self._attempt(judge, rules, wanted, f"{seed}-{number}-{place}")
                if example is not None:
                    balance.count(example.type or "", example.program)
                    yield example
                    break
            else:
                return

    def _attempt(
        self, judge: Judge, rules: Sequence[Rule], wanted: Function | None, id: str
    ) -> Example | None:
        """An example that begins with one of the rules, or None when the patience is over."""
        weights = [rule.weight for rule in rules]
        random = self._sampler.random
        for _ in range(PATIENCE if wanted is None else SHORT_PATIENCE):
            (rule,) = random.choices(rules, weights)
            try:
                derivation = self._sampler.sample(rule, wanted)
                question = derivation.question(None if self.options.canonical else random)
            except (NoDraw, NoWords):
                continue
            found = judge.verdict(derivation, question)
            if found is None:
                continue
            program = derivation.program
            choices = self._choices.draw(program, found.answer, found.dropped, judge.denote, random)
            example = Example(
                question, program, found.answer, choices, id=id, type=rule.strategy,
                canonical=derivation.question(None),
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
    """The program as SPARQL: in the data's style where that has its meaning on this knowledge base.

    Else it is the exact translation (docs/sparql.md).
    """
    query, differences = translate(program, "data", kb=kb)
    if differences:
        query, _ = translate(program, "exact", kb=kb)
    return write(query)


def marks(example: Example) -> tuple[bytes, bytes]:
    """What tells an example from others: digests of its question and of its program.

    Programs that differ in the order of operands alone are the same.
    """
    texts = (example.question, str(_ordered(example.program)))
    question, program = (hashlib.blake2b(t.encode(), digest_size=12).digest() for t in texts)
    return question, program


def _ordered(call: Call) -> Call:
    inputs = [_ordered(given) for given in call.inputs]
    if call.function in (AND, OR):
        inputs.sort(key=str)
    return Call(call.function, tuple(inputs), call.arguments)
