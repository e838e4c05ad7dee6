"""From a knowledge base to examples: sampling, the checks that a question must pass, no repeats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from generation.derivation import Derivation
from generation.english import say
from generation.grammar import ROOT, Grammar, Rule, bundled
from generation.lexicon import NoWords
from generation.pools import NoDraw
from generation.sampler import Sampler
from generation.splits import split
from kb import KnowledgeBase
from kb.errors import KoplError, ValueReadError
from kb.values import read_quantity, read_time
from kopl.errors import ProgramError
from kopl.example import Example
from kopl.executor import Executor
from kopl.functions import COUNT, SELECT_BETWEEN
from kopl.program import Call
from kopl.types import Type

__all__ = ["GenerationError", "generate", "split"]

# A rule that fails this often in a row is given up: the knowledge base has no more for it.
PATIENCE = 400
LONGEST = 45  # words in a question
BALANCE = 3  # by how many questions "yes" may be ahead of "no", or behind
# "the anthem that is the anthem of": a concept that is called as the relation that leads to it.
_STUTTER = re.compile(r"\b(\w{3,}(?: \w+){0,4}?) (?:that )?(?:is|are) (?:the |an? )?\1\b")

# "represented in in 2024": a preposition left at the end of a clause meets another one.
_COLLISION = re.compile(r"\b(in|on|of|to|at|by|with|from|for) \1\b")


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
    judge = Judge(kb)
    rules = [rule for rule in grammar.rules[ROOT] if rule.height <= levels]
    for number in range(count):
        example = None
        while rules and example is None:
            (rule,) = random.choices(rules, [rule.weight for rule in rules])
            example = _attempt(sampler, judge, rule, f"{seed}-{number}")
            if example is None:
                rules.remove(rule)
        if example is None:
            raise GenerationError(
                f"the knowledge base yields {number} different questions, not {count}; ask for"
                " fewer or give a larger one"
            )
        yield example


def _attempt(sampler: Sampler, judge: Judge, rule: Rule, id: str) -> Example | None:
    """An example that begins with a rule, or None when the patience for it is over."""
    for _ in range(PATIENCE):
        try:
            derivation = sampler.sample(rule)
            question = derivation.question(sampler.random)
        except (NoDraw, NoWords):
            continue
        answer = judge.answer(derivation, question)
        if answer is not None:
            return Example(question, derivation.program, answer, id=id, type=rule.strategy)
    return None


class Judge:
    """Decides which questions are kept, and remembers them."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._executor = Executor(kb, strict=True)
        self._questions: set[str] = set()
        self._programs: set[Call] = set()
        self._lead = 0  # of yes over no

    def answer(self, derivation: Derivation, question: str) -> str | None:
        """The answer of a question that is kept, else None."""
        program = derivation.program
        if question in self._questions or program in self._programs:
            return None
        if reads_badly(question):
            return None
        try:
            denotation = self._executor.denote(program)
            if (
                len(denotation) != 1
                or denotation == ["0"]
                or derivation.intended not in (None, denotation[0])
            ):
                return None
            if not all(self._is_one(part) for part in dict.fromkeys(derivation.singular)):
                return None
        except ProgramError:  # strict mode: no single winner, several values to verify
            return None
        (answer,) = denotation
        asked = program.function
        # Yes, no and a number give nothing away; SelectBetween has to name what it chooses from.
        free = asked.output in (Type.TRUTH, Type.NUMBER) or asked is SELECT_BETWEEN
        if not free and names_answer(question, answer):
            return None
        if asked.output is Type.TRUTH and not self._keeps_balance(answer):
            return None
        self._questions.add(question)
        self._programs.add(program)
        return answer

    def _keeps_balance(self, answer: str) -> bool:
        """Whether yes and no stay about as frequent with one more; counts it when they do."""
        lead = self._lead + (1 if answer == "yes" else -1)
        if abs(lead) > BALANCE:
            return False
        self._lead = lead
        return True

    def _is_one(self, part: Call) -> bool:
        if not COUNT.inputs[0].accepts(part.function.output):
            return True
        return self._executor.denote(Call(COUNT, (part,))) == ["1"]


def reads_badly(question: str) -> bool:
    """Whether a question is too long or repeats itself."""
    long = question.count(" ") >= LONGEST
    return long or bool(_STUTTER.search(question) or _COLLISION.search(question))


def names_answer(question: str, answer: str) -> bool:
    """Whether the question gives its answer away: holds it as words, in any spelling of ours."""
    asked, answer = question.casefold(), answer.removeprefix("The ")
    return any(
        re.search(rf"(?<!\w){re.escape(text.casefold())}(?!\w)", asked)
        for text in {answer, *_said(answer)}
        if text.casefold() in asked
    )


def _said(answer: str) -> Iterator[str]:
    for read in (read_quantity, read_time):
        try:
            yield say(read(answer))
        except ValueReadError:
            continue
