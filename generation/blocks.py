"""From a knowledge base to questions, in blocks that each follow from the seed and a number alone.

So blocks may be made in any order, by any worker, and again after a run was stopped. Within a block
no question comes twice, types and answers are balanced, and every function occurs; whoever puts
blocks together drops what an earlier block had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count as count_from
from random import Random

from generation.choices import Choices
from generation.comparisons import Comparisons
from generation.grammar import ROOT, Grammar, Pattern, Rule
from generation.judge import Judge, Unseen, marks
from generation.lexicon import Lexicon, NoWords
from generation.noise import Noise
from generation.pools import NoDraw, Overdrawn
from generation.rules_file import bundled
from generation.sampler import Sampler
from generation.scope import takes_all
from generation.stats import SHARES
from kb import KnowledgeBase
from kb.schema import Schema
from kopl.answer_forms import answer_of
from kopl.example import Example
from kopl.functions import COUNT, FUNCTIONS, Function
from kopl.program import Call, post_order
from kopl.sparql.ast import write
from kopl.sparql.from_kopl import translate
from kopl.sparql.sets import SUPERLATIVE
from kopl.traits import hops, locating, skills
from kopl_base.errors import KoplError

SIZE = 500
# A strategy that fails this often in a row is given up: the knowledge base has no more for it.
PATIENCE = 400
# Attempts grow with the calls that a program shall have at least, and fall again beyond ten: each
# takes many rules then.
FAR = 60
# The same where a function is wanted: it may stand in no question of the drawn type.
SHORT_PATIENCE = 20
# One question in so many is drawn for the function that is furthest behind, and no function needs
# to come more often than in one of so many.
ASKED, LATE, ENOUGH = 8, 2, 100
# Percent of a type of question whose share the rules do not say.
USUAL_SHARE = 10.0
# A program of at most so many calls is short.
SHORT = 3
# An answer is to come in no more than this share of the questions of its type; so many draws of one
# that did are given up for a question before any is taken.
OFTEN, REFUSALS = 1 / 15, 20
# A knowledge base is taken to have no more when so many blocks in a row bring hardly anything new.
BARREN, HARDLY = 2, 10
NOTHING = (
    "the knowledge base yields no question with these rules and options; kopl kb info shows what it"
    " holds"
)


@dataclass(frozen=True)
class Options:
    """What a run of the generator is like, besides its seed.

    ``profile`` names the bundled rules (`generation.grammar.PROFILES`); their shares and share of
    short programs count where ``shares`` and ``short`` say nothing.
    ``levels`` bounds how many rules may follow one another (8: descriptions of two hops), ``least``
    and ``calls`` how many calls a program has. ``shares`` are percents of asking strategies in
    place of the paper's, ``short`` is the share of programs of up to three calls (where there are
    others), ``zero`` that of 0 among the counts.
    ``noise`` is the share of questions that are typed in haste (`generation.noise`).
    ``canonical`` words every question in the paper's single form. ``clauses=False`` keeps questions
    with clauses that change nothing. ``sparql``: whether queries are written. ``verify`` is the
    share of the queries that are run on an engine and compared. Raises ValueError for a share that
    is none.
    """

    profile: str = "kqapro"
    levels: int = 8
    least: int = 1
    calls: int = 20
    shares: tuple[tuple[str, float], ...] = ()
    short: float | None = None
    zero: float = 0.05
    noise: float = 0.0
    canonical: bool = False
    clauses: bool = True
    sparql: bool = True
    verify: float = 0.01

    def __post_init__(self) -> None:
        shares = {"zero": self.zero, "noise": self.noise, "verify": self.verify}
        for name, share in {**shares, "short": self.short or 0.0}.items():
            if not 0 <= share <= 1:
                raise ValueError(f"{name}={share}: a share from 0 to 1 was expected")


@dataclass(frozen=True)
class Order:
    """What the next question shall be: by one of these rules, with a function, of some length.

    ``nothing`` asks for a count of 0, ``least`` for so many calls.
    """

    rules: Sequence[Rule]
    wanted: Function | None = None
    nothing: bool = False
    least: int = 0


class Balance:
    """Keeps count of what was drawn in a block; draws the strategy and, now and then, a function.

    ``size`` is how many questions the block is to have, ``shares`` the percents of the strategies,
    ``short`` the share of programs of up to three calls, ``zero`` that of 0 among the counts,
    ``least`` the number of calls that every program has at least.
    """

    def __init__(
        self,
        grammar: Grammar,
        random: Random,
        *,
        levels: int,
        size: int,
        shares: Mapping[str, float] = SHARES,
        short: float = 1.0,
        zero: float = 0.0,
        least: int = 0,
    ) -> None:
        self._random, self._size = random, size
        self._rules: dict[str, list[Rule]] = {}
        for rule in grammar.rules[ROOT]:
            if rule.height <= levels and shares.get(rule.strategy, USUAL_SHARE) > 0:
                self._rules.setdefault(rule.strategy, []).append(rule)
        self._shares = {name: shares.get(name, USUAL_SHARE) for name in self._rules}
        self._short, self._zero, self._least = short, zero, least
        self._kept = self._of_short = self._of_zero = 0
        self._of: Counter[str] = Counter()
        self._answers: Counter[tuple[str, str]] = Counter()
        self._used: Counter[Function] = Counter()
        self._asked: Counter[Function] = Counter()
        reach = frozenset[Function]().union(*(rule.reach for rule in grammar.rules[ROOT]))
        self._functions = [function for function in FUNCTIONS.values() if function in reach]

    def count(self, strategy: str, program: Call, answer: str) -> None:
        """Take note of a question that is kept."""
        self._kept += 1
        self._of[strategy] += 1
        self._answers[strategy, answer] += 1
        self._of_short += program.size <= SHORT
        self._of_zero += program.function is COUNT and answer == "0"
        self._used.update({call.function for call in post_order(program)})

    def refuses(self, strategy: str, answer: str) -> bool:
        """Whether an answer came often enough in the questions of a strategy."""
        return self._answers[strategy, answer] >= 1 + OFTEN * self._of[strategy]

    def orders(self) -> Iterator[Order]:
        """What to try for the next question, one after the other.

        A strategy or function that gives nothing any more is not tried again.
        """
        rare = self._rarest()
        # A function that never came is asked for more often towards the end.
        late = rare is not None and not self._used[rare] and 2 * self._kept > self._size
        if self._random.random() * (LATE if late else ASKED) >= 1:
            rare = None
        if rare is not None:
            everywhere = [rule for rules in self._rules.values() for rule in rules]
            leading = [rule for rule in everywhere if rare in rule.reach]
            # One that is asked for in vain keeps no other from its turn.
            self._asked[rare] += 1
            if leading:  # the types that have it may have no share
                yield Order(leading, rare, least=self._least)
        while self._rules:
            name = self._behind(list(self._rules))
            counting = [r for r in self._rules[name] if _root(r) is COUNT]
            if counting and self._of_zero < self._zero * self._of[name]:
                yield Order(counting, nothing=True, least=self._least)
            if self._least <= SHORT and self._of_short >= self._short * (self._kept + 1):
                yield Order(self._rules[name], least=SHORT + 1)
            yield Order(self._rules[name], least=self._least)
            del self._rules[name]

    def _behind(self, names: Sequence[str]) -> str:
        """The strategy that is furthest behind its share."""
        whole = sum(self._shares[name] for name in self._rules)
        owed = [self._shares[n] / whole * (self._kept + 1) - self._of[n] for n in names]
        most = max(owed)
        near = [name for name, debt in zip(names, owed, strict=True) if most - debt < 1]
        return self._random.choice(near)

    def _rarest(self) -> Function | None:
        """The function that came least often, and was asked for least; None if all came enough."""
        if not self._functions:
            return None
        rare = min(self._functions, key=lambda one: (self._used[one], self._asked[one]))
        return rare if self._used[rare] * ENOUGH <= self._kept else None


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
            kb,
            grammar or bundled(self.options.profile),
            Random(0),
            levels=self.options.levels,
            lexicon=lexicon,
        )
        self.grammar = self._sampler.grammar  # without the rules that cannot be used here
        self._shares = _shares(self.grammar, dict(self.options.shares))
        given = self.options.short
        self._short = given if given is not None else self.grammar.short or 0.0
        self._run_query = run_query
        self._noise = Noise(kb, self.options.noise) if self.options.noise else None

    def block(self, seed: int, number: int) -> Iterator[Example]:
        """The examples of a block, in order; fewer than SIZE when no more are found."""
        source = self._sampler.source
        random = source.random = Random(f"{seed}/{number}")
        comparisons = source.comparisons = Comparisons(random)
        years = source.years = source.no_years()
        judge = Judge(source.pools, clauses=self.options.clauses, reasons=self.reasons)
        balance = Balance(
            self.grammar,
            random,
            levels=self.options.levels,
            size=SIZE,
            shares=self._shares,
            short=self._short,
            zero=self.options.zero,
            least=self.options.least,
        )
        for place in range(SIZE):
            for order in balance.orders():
                example = self._attempt(judge, balance, order, f"{seed}-{number}-{place}")
                if example is not None:
                    balance.count(example.type or "", example.program, example.answer or "")
                    comparisons.count(example.program, example.answer or "")
                    years.count(example.program, example.answer or "")
                    yield self._typed(example)
                    break
            else:
                return

    def _typed(self, example: Example) -> Example:
        """The example with noise, where it is to get some.

        Its id alone decides what: the same questions are made with noise and without.
        """
        if self._noise is None:
            return example
        return self._noise.noised(example, Random(f"noise/{example.id}"))

    def _attempt(self, judge: Judge, balance: Balance, order: Order, id: str) -> Example | None:
        """An example that is as ordered, or None when the patience is over."""
        weights = [rule.weight for rule in order.rules]
        source = self._sampler.source
        random, refused, tries = source.random, 0, 0
        special = order != Order(order.rules, least=self.options.least)
        longer = max(1.0, min(order.least - SHORT, FAR / max(1, order.least)))
        patience = SHORT_PATIENCE if special else int(PATIENCE * longer)
        while tries < patience + refused:
            tries += 1
            (rule,) = random.choices(order.rules, weights)
            spread = refused < REFUSALS and not order.nothing
            source.refuses = partial(balance.refuses, rule.strategy) if spread else takes_all
            try:
                derivation = self._sampler.sample(
                    rule, order.wanted, nothing=order.nothing, least=order.least
                )
                if derivation.program.size > self.options.calls:
                    continue
                question = derivation.question(None if self.options.canonical else random)
            except Overdrawn:
                refused += 1
                continue
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
            one = found.answers[0] if len(found.answers) == 1 else None
            choices: tuple[str, ...] = ()
            if one is not None:
                choices = self._choices.draw(
                    program, one, found.dropped, judge.denote, random, truth=found.form is not None
                )
            example = Example(
                question,
                program,
                one,
                choices,
                id=id,
                type=rule.strategy,
                canonical=canonical,
                answers=found.answers if one is None else (),
                answer_form=found.form,
                extra={
                    "strategies": list(locating(program)),
                    "skills": list(skills(program)),
                    "hops": hops(program),
                },
            )
            compare = random.random() < self.options.verify
            if self.options.sparql:
                query = query_of(program, self.kb)
                if compare and not self._agrees(query, example):
                    self.reasons["engines differ"] += 1
                    continue
                example = replace(example, sparql=query)
            judge.count(rule, found)
            return example
        return None

    def _agrees(self, query: str, example: Example) -> bool:
        """Whether a query has the example's answers on the other engine."""
        if self._run_query is None:
            return True
        self.compared += 1
        answers = [example.answer] if example.answer is not None else list(example.answers)
        return answer_of(self._run_query(query), example.answer_form) == answers


def _shares(grammar: Grammar, given: Mapping[str, float]) -> dict[str, float]:
    """The percents of a grammar's strategies: those given, and for the others what is left.

    The others share it as the grammar's own percents say. Raises KoplError for a strategy that no
    rule has, and for more than 100 percent.
    """
    for name in given:
        if name not in grammar.strategies:
            known = ", ".join(grammar.strategies)
            raise KoplError(f"no rule makes questions of the type {name!r}; the types are {known}")
    if (total := sum(given.values())) > 100:
        raise KoplError(f"the shares of question types are {total:g} percent together, not 100")
    own = {name: grammar.shares.get(name, USUAL_SHARE) for name in grammar.strategies}
    others = sum(share for name, share in own.items() if name not in given)
    scale = (100 - total) / others if others else 0.0
    return {name: given.get(name, share * scale) for name, share in own.items()}


def _root(rule: Rule) -> Function | None:
    return rule.program.function if isinstance(rule.program, Pattern) else None


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


# --- putting blocks together -----------------------------------------------------------------


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
