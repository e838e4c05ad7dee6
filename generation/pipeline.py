"""From a knowledge base to examples: sampling, the checks that a question must pass, no repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from generation.balance import Balance
from generation.choices import Choices
from generation.grammar import Grammar, Rule, bundled
from generation.judge import Judge
from generation.lexicon import NoWords
from generation.pools import NoDraw
from generation.sampler import Sampler
from generation.splits import split
from kb import KnowledgeBase
from kb.errors import KoplError
from kopl.example import Example
from kopl.functions import Function

__all__ = ["GenerationError", "generate", "split"]

# A rule that fails this often in a row is given up: the knowledge base has no more for it.
PATIENCE = 400
# The same where a function is wanted: it may stand in no question of the drawn type.
SHORT_PATIENCE = 40


class GenerationError(KoplError):
    """A knowledge base that does not yield as many questions as were asked for."""

    kind = "generation"


def generate(
    kb: KnowledgeBase, count: int, seed: int, *, grammar: Grammar | None = None, levels: int = 9
) -> Iterator[Example]:
    """Different questions over a knowledge base with their programs and answers, one by one.

    The same seed gives the same examples. Each has exactly one answer: its program, in strict
    mode, denotes one string, and each description that the question uses in the singular fits one
    entity. ``grammar`` is the bundled one unless given; ``levels`` bounds how many rules may follow
    one another (9: descriptions of two hops). Raises GenerationError when no more can be found.
    """
    if count < 0:
        raise KoplError(f"the number of questions must not be negative, but is {count}")
    return _generate(kb, count, seed, grammar or bundled(), levels)


def _generate(
    kb: KnowledgeBase, count: int, seed: int, grammar: Grammar, levels: int
) -> Iterator[Example]:
    random = Random(seed)
    sampler = Sampler(kb, grammar, random, levels=levels)
    judge, choices, balance = Judge(kb), Choices(kb), Balance(grammar, random)
    for number in range(count):
        example = None
        for rules, wanted in balance.tries():
            example = _attempt(sampler, judge, choices, rules, wanted, f"{seed}-{number}")
            if example is not None:
                balance.count(example.program)
                break
        if example is None:
            raise GenerationError(
                f"the knowledge base yields {number} different questions, not {count}; ask for"
                " fewer or give a larger one"
            )
        yield example


def _attempt(
    sampler: Sampler,
    judge: Judge,
    choices: Choices,
    rules: Sequence[Rule],
    wanted: Function | None,
    id: str,
) -> Example | None:
    """An example that begins with one of the rules, or None when the patience for it is over."""
    weights = [rule.weight for rule in rules]
    for _ in range(PATIENCE if wanted is None else SHORT_PATIENCE):
        (rule,) = sampler.random.choices(rules, weights)
        try:
            derivation = sampler.sample(rule, wanted)
            question = derivation.question(sampler.random)
        except (NoDraw, NoWords):
            continue
        found = judge.verdict(derivation, question)
        if found is not None:
            program = derivation.program
            ten = choices.draw(program, found.answer, found.dropped, judge.denote, sampler.random)
            return Example(question, program, found.answer, ten, id=id, type=rule.strategy)
    return None
