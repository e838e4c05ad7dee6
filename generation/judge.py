"""Which questions are kept: one answer, no clause too many, no answer given away, none twice."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from generation.comparisons import LARGEST
from generation.derivation import Derivation
from generation.english import can_be_read, clauses, say
from generation.grammar import EXISTS, SEVERAL, Rule
from generation.pools import Pools
from kb.values import ValueReadError, read_quantity, read_time
from kopl.answer_forms import AnswerForm, Exists, Is, answer_of
from kopl.denotation import Located, Outcome
from kopl.errors import ExecutionError, ProgramError
from kopl.executor import Executor
from kopl.functions import (
    AND,
    COUNT,
    FILTER_CONCEPT,
    FILTER_DATE,
    FILTER_NUM,
    FILTER_STR,
    FILTER_YEAR,
    FIND,
    FIND_ALL,
    OR,
    QFILTER_DATE,
    QFILTER_NUM,
    QFILTER_STR,
    QFILTER_YEAR,
    QUERY_ATTR,
    QUERY_ATTR_QUALIFIER,
    QUERY_ATTR_UNDER_CONDITION,
    QUERY_RELATION,
    QUERY_RELATION_QUALIFIER,
    RELATE,
    SELECT_AMONG,
    SELECT_BETWEEN,
)
from kopl.program import Call, post_order
from kopl.types import Type

# Of a question and of its program.
Marks: TypeAlias = tuple[bytes, bytes]
FILTERS = frozenset((FILTER_STR, FILTER_NUM, FILTER_YEAR, FILTER_DATE))
QFILTERS = frozenset((QFILTER_STR, QFILTER_NUM, QFILTER_YEAR, QFILTER_DATE))
# What asks for a key, or compares by one.
ASKING_KEYS = frozenset(
    (
        QUERY_ATTR,
        QUERY_ATTR_UNDER_CONDITION,
        QUERY_ATTR_QUALIFIER,
        SELECT_AMONG,
        SELECT_BETWEEN,
    )
)
LONGEST = 32  # words in a question
# Relative clauses, brackets and appositions in a question, and for each of its descriptions.
CLAUSES, OF_ONE = 4, 2
LONGEST_LIST = 30  # answers to a question that asks for several
LEAD = 1  # by how many questions of a rule "yes" may be ahead of "no", or behind
# "the anthem that is the anthem of": a concept that is called as the relation that leads to it.
_STUTTER = re.compile(r"\b(\w{3,}(?: \w+){0,4}?) (?:that )?(?:is|are) (?:the |an? )?\1\b")
# The same with a name between: "has the natural resource tin as a natural resource".
_ECHO = re.compile(
    r"\bthe (?!one\b)(\w{3,}(?: \w+){0,3}?) (?:\S+ ){1,4}(?:as|is|are) (?:an? )?\1\b"
)
# "represented in in 2024": a preposition left at the end of a clause meets another one.
_COLLISION = re.compile(r"\b(in|on|of|to|at|by|with|from|for) \1\b")
# "borders Chad, the one in Africa (with a length of 5 miles)": a bracket behind what
# it does not belong to. Brackets with "the" tell names apart: they may stand there.
_ASTRAY = re.compile(r", the one [^,()?]*\((?!the\b)")
# "ethnic groups are there that are ethnic groups of Spain": a noun that its clause says again.
_TWICE = re.compile(
    r"\b(\w{4,}(?: \w+){0,2}) (?:are there )?(?:that|who) (?:is|are)"
    r" (?:the |an? |one of the )?\1\b",
    re.IGNORECASE,
)
# "the isotope that is a decay product of tin-98 and that is an isotope of": a noun, or the word
# before it, that comes again in its clause: "independent countries that became independent".
_AGAIN = re.compile(
    r"\b(\w{5,}?)\w{0,4}(?: \w+)? (?:are there )?(?:that|who|whose)"
    r"(?: (?!or\b)[^ ,;:?]+){1,9} \1\w{0,4}\b",
    re.IGNORECASE,
)
# "who is the person who wrote": a noun that says no more than its question word.
_IDLE = re.compile(
    r"\bwho (?:is|was) the person (?:who|that)\b|\bperson that is the\b", re.IGNORECASE
)
# "the birth rate of the country of the city of X": a chain that nobody follows to its end.
_CHAIN = re.compile(
    r"\bof the [^ ,?]+(?: (?!of\b)[^ ,?]+){0,3} of the [^ ,?]+(?: (?!of\b)[^ ,?]+){0,3} of\b"
)
# Two brackets in a row: it is not plain which fact the second one is about.
_BAD = (
    _TWICE,
    _STUTTER,
    _ECHO,
    _COLLISION,
    _ASTRAY,
    _AGAIN,
    _IDLE,
    _CHAIN,
    re.compile(r"\) \("),
)


# --- what was there before ---------------------------------------------------------------------


def digest(text: str) -> bytes:
    """A short stand-in for a text, so that large sets are told apart without their texts."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def program_mark(program: Call) -> bytes:
    """The digest of a program; equal where programs differ in the order of operands alone."""
    return digest(_ordered(program))


def marks(question: str, program: Call) -> Marks:
    """The digests of a question and of its program."""
    return digest(question), program_mark(program)


def _ordered(call: Call) -> str:
    """The text of a program that does not tell the order of operands."""
    inputs = [_ordered(given) for given in call.inputs]
    if call.function in (AND, OR):
        inputs.sort()
    return f"{call.function.name}({', '.join([*inputs, *map(repr, call.arguments)])})"


class Unseen:
    """Remembers what was kept; memory grows by some 150 bytes for each question."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def is_new(self, found: Marks) -> bool:
        """Whether neither mark was there before."""
        return self._seen.isdisjoint(found)

    def add(self, found: Marks) -> bool:
        """Whether neither mark was there before; both are then."""
        if not self.is_new(found):
            return False
        self._seen.update(found)
        return True


# --- clauses -----------------------------------------------------------------------------------
#
# A clause is a Filter of a value (with the QFilters that restrict its fact), a QFilter, a
# FilterConcept, or one operand of And and Or. FilterConcept directly on FindAll is what a question
# is about, and always needed.


@dataclass(frozen=True)
class Dropped:
    """A program without one of its clauses.

    ``clause`` is the call that was dropped, or the operand. ``changed`` maps each call of the whole
    program that held the clause to what became of it, the innermost first.
    """

    program: Call
    clause: Call
    changed: dict[Call, Call]


def without_a_clause(program: Call) -> Iterator[Dropped]:
    """The program without each of its clauses, in the order in which they are executed."""
    for inner, clause, changed in _dropped(program):
        yield Dropped(inner, clause, changed)


def _dropped(call: Call) -> Iterator[tuple[Call, Call, dict[Call, Call]]]:
    """(what is left, the clause, what each call became) for each clause of a call."""
    function = call.function
    if function in QFILTERS:
        # What a QFilter restricts goes with its fact: a relation stays, a filter of a value is one
        # clause together with its qualifiers.
        for inner, clause, changed in _dropped(call.inputs[0]):
            left = Call(function, (inner,), call.arguments)
            if clause in _chain(call) and clause.function in FILTERS:
                left = inner
            yield left, clause, {**changed, call: left}
        yield call.inputs[0], call, {call: call.inputs[0]}
        return
    for place, given in enumerate(call.inputs):
        for inner, clause, changed in _dropped(given):
            inputs = (*call.inputs[:place], inner, *call.inputs[place + 1 :])
            left = Call(function, inputs, call.arguments)
            yield left, clause, {**changed, call: left}
    if function in FILTERS or (
        function is FILTER_CONCEPT and call.inputs[0].function is not FIND_ALL
    ):
        yield call.inputs[0], call, {call: call.inputs[0]}
    elif function in (AND, OR):
        for place in (0, 1):
            left = call.inputs[1 - place]
            yield left, call.inputs[place], {call: left}


def _chain(call: Call) -> Iterator[Call]:
    """The calls below a QFilter that lead to the fact which it restricts."""
    while call.function in QFILTERS:
        call = call.inputs[0]
        yield call


# --- judging -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What is known of a question that passed: its answers, and the ways to drop a clause.

    There is one answer unless the question asks for several; ``form`` says how it is read from what
    the program denotes.
    """

    answers: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    form: AnswerForm | None = None


class Judge:
    """Decides which questions are kept, and remembers them.

    ``reasons`` counts why candidates were not. ``clauses=False`` keeps questions with clauses that
    change nothing, as the paper did.
    """

    def __init__(
        self, pools: Pools, *, clauses: bool = True, reasons: Counter[str] | None = None
    ) -> None:
        kb = pools.kb
        self._kb, self._pools = kb, pools
        self._executor = Executor(kb, strict=True)
        self._lenient = Executor(kb)
        self._clauses = clauses
        self._unseen = Unseen()
        self._leads: Counter[int] = Counter()  # of yes over no, by the line of a rule
        self.reasons: Counter[str] = Counter() if reasons is None else reasons

    def denote(self, program: Call) -> list[str]:
        """What a program denotes; nothing where it has no meaning."""
        try:
            return self._lenient.denote(program)
        except ProgramError:
            return []

    def verdict(self, derivation: Derivation, question: str) -> Verdict | None:
        """What is known of a question that is kept, else None."""
        found, reason = self._look(derivation, question)
        if found is None:
            self.reasons[reason] += 1
            return None
        self._unseen.add(marks(question, derivation.program))
        return found

    def _look(self, derivation: Derivation, question: str) -> tuple[Verdict | None, str]:
        program = derivation.program
        if not self._unseen.is_new(marks(question, program)):
            return None, "seen before"
        lexicon = derivation.lexicon
        if reads_badly(question) or (lexicon is not None and lexicon.says_twice(question)):
            return None, "reads badly"
        if is_overloaded(question, program):
            return None, "overloaded"
        shared: dict[Call, Outcome] = {}
        singular = [
            part
            for part in dict.fromkeys(derivation.singular)
            if COUNT.inputs[0].accepts(part.function.output)
        ]
        try:
            denotation = self._denotation(program, shared)
            if not denotation:
                return None, "no answer"
            if derivation.rule.asks == SEVERAL:
                if not 1 < len(denotation) <= LONGEST_LIST:
                    return None, "one answer" if len(denotation) == 1 else "too many answers"
            elif len(denotation) != 1:
                return None, "several answers"
            elif derivation.intended not in (None, denotation[0]):
                return None, "another answer"
            if not all(self._is_one(part, shared) for part in singular):
                return None, "ambiguous"
        except ProgramError:  # strict mode: no single winner, several values to verify
            return None, "several answers"
        form = self._form(derivation)
        answers = answer_of(denotation, form)
        if not all(map(can_be_read, (*answers, *((form.name,) if isinstance(form, Is) else ())))):
            return None, "cannot be read"
        asked, truth = program.function, form is not None or program.function.output is Type.TRUTH
        # Yes, no and a number give nothing away; SelectBetween has to name what it chooses from.
        free = truth or asked.output is Type.NUMBER or asked is SELECT_BETWEEN or len(answers) > 1
        if not free and names_answer(question, answers[0]):
            return None, "gives the answer away"
        if asks_what_it_says(program, answers[0]):
            return None, "asks what it says"
        dropped = tuple(without_a_clause(program))
        if self._clauses:
            # What is claimed of one thing need not tell it from others.
            claim = _own_calls(derivation) if isinstance(form, Exists) else frozenset()
            for way in dropped:
                # What a description calls its thing by need tell nothing: "the country that ...",
                # "Abuja, the capital of Nigeria".
                called = way.clause.function in (FILTER_CONCEPT, FIND)
                if called or next(iter(way.changed)) in claim:
                    continue
                if not self._matters(way, denotation, singular, shared):
                    return None, "a clause too many"
        if form is not None and not self._keeps_balance(derivation.rule, answers[0]):
            return None, "yes or no ahead"
        return Verdict(tuple(answers), dropped, form), ""

    def _form(self, derivation: Derivation) -> AnswerForm | None:
        """How the answer of a question is read from what its program denotes."""
        if derivation.rule.asks == EXISTS:
            return Exists()
        if named := derivation.rule.named:
            if named.startswith("$"):
                return Is(derivation.words[named[1:]].text)
            return Is(self._kb.name_of(derivation.parts[named].target))
        return None

    def _matters(
        self, way: Dropped, denotation: list[str], singular: list[Call], shared: dict[Call, Outcome]
    ) -> bool:
        """Whether dropping a clause changes the answer, or leaves a description ambiguous."""
        try:
            if self._denotation(way.program, shared) != denotation:
                return True
            left = (way.changed[part] for part in singular if part in way.changed)
            return not all(self._is_one(part, shared) for part in left)
        except ProgramError:
            return True

    def _denotation(self, program: Call, shared: dict[Call, Outcome]) -> list[str]:
        """What a program denotes in strict mode; of a choice also what is clear without it.

        That is where things have figures of several dates (`Pools.is_clear`). Raises ProgramError.
        """
        try:
            return self._executor.outcome(program, shared).strings()
        except ExecutionError:
            if program.function not in (SELECT_AMONG, SELECT_BETWEEN):
                raise
            found = [self._executor.outcome(one, shared) for one in program.inputs]
            nodes = [one.ids for one in found if isinstance(one, Located)]
            key, op = program.arguments
            if not self._pools.is_clear(np.concatenate(nodes), key, op in LARGEST):
                raise
            return self._lenient.denote(program)

    def count(self, rule: Rule, found: Verdict) -> None:
        """Take note of a question by a rule that is kept."""
        if found.form is not None:
            self._leads[rule.line] += _ahead(found.answers[0])

    def _keeps_balance(self, rule: Rule, answer: str) -> bool:
        """Whether yes and no stay about as frequent for a rule.

        Those of the Verify functions are balanced where they are drawn.
        """
        return abs(self._leads[rule.line] + _ahead(answer)) <= LEAD

    def _is_one(self, part: Call, shared: dict[Call, Outcome]) -> bool:
        return len(self._executor.outcome(part, shared)) == 1


def _ahead(answer: str) -> int:
    """What an answer adds to the lead of yes over no."""
    return 1 if answer == "yes" else -1


def _own_calls(derivation: Derivation) -> frozenset[Call]:
    """The calls of a derivation's own rule, without those of its parts."""
    inside = (post_order(part.program) for part in derivation.parts.values())
    return frozenset(post_order(derivation.program)) - {call for part in inside for call in part}


def asks_what_it_says(program: Call, answer: str = "") -> bool:
    """Whether a description tells something of what is asked, so that little is left to know.

    "Does the one founded in 2018 have a time of founding before 2016?", "which country with an area
    above 5 has the largest area?", "how is Norway related to the capital of Norway?", and the same
    of qualifiers. ``answer`` is the one of a question for a relation.
    """
    calls = tuple(post_order(program))
    asked = {call.arguments[0] for call in calls if call.function in ASKING_KEYS}
    if any(call.function in FILTERS and call.arguments[0] in asked for call in calls):
        return True
    if program.function in (QUERY_RELATION_QUALIFIER, QUERY_ATTR_QUALIFIER):
        qualifier, predicate = program.arguments[-1], program.arguments[0]
        for call in calls:
            if call.function in QFILTERS and call.arguments[0] == qualifier:
                *_, fact = _chain(call)
                if fact.arguments[:1] == (predicate,):
                    return True
    if program.function is QUERY_RELATION and any(
        call.function is RELATE and call.arguments[0] == answer for call in calls
    ):
        return True
    if program.function in (QUERY_RELATION, QUERY_RELATION_QUALIFIER):
        head, tail = program.inputs
        # "When did Macron take office?": what he heads is not said, only found by that very fact.
        if program.function is QUERY_RELATION_QUALIFIER and any(
            end.function is RELATE and end.arguments[0] == program.arguments[0]
            and end.inputs[0] == other
            for end, other in ((head, tail), (tail, head))
        ):  # fmt: skip
            return False
        return head in post_order(tail) or tail in post_order(head)
    return False


def reads_badly(question: str) -> bool:
    """Whether a question is too long, repeats itself, or has a bracket at the wrong place."""
    return question.count(" ") >= LONGEST or any(bad.search(question) for bad in _BAD)


def is_overloaded(question: str, program: Call) -> bool:
    """Whether a question has too many clauses to follow, or two conditions that say much the same.

    Two times are such conditions ("founded after 2009 and independent before 2016"), and two of one
    key.
    """
    if clauses(question) > min(CLAUSES, OF_ONE * max(1, len(program.inputs))):
        return True
    for call in post_order(program):
        if call.function is AND:
            told = [_told(given) for given in call.inputs]
            if not told[0].isdisjoint(told[1]):
                return True
    return False


def _told(condition: Call) -> frozenset[str]:
    """The keys that a condition tells of a thing itself; "" for any that says when."""
    if condition.function is AND:
        return _told(condition.inputs[0]) | _told(condition.inputs[1])
    while condition.function in QFILTERS:
        (condition,) = condition.inputs
    if condition.function in (FILTER_YEAR, FILTER_DATE):
        return frozenset((condition.arguments[0], ""))
    if condition.function in FILTERS:
        return frozenset(condition.arguments[:1])
    return frozenset()


def names_answer(question: str, answer: str) -> bool:
    """Whether the question gives its answer away: holds it as words, in any spelling of ours.

    So does "Gambian" for Gambia.
    """
    asked, answer = question.casefold(), answer.removeprefix("The ")
    return any(
        re.search(rf"(?<!\w){re.escape(text.casefold())}{_ending(text)}(?!\w)", asked)
        for text in {answer, *_said(answer)}
        if text.casefold() in asked
    )


def _ending(text: str) -> str:
    """What may follow a name in a word made of it."""
    return r"\w{0,3}" if len(text) > 3 and text[-1].isalpha() else ""


def _said(answer: str) -> Iterator[str]:
    for read in (read_quantity, read_time):
        try:
            yield say(read(answer))
        except ValueReadError:
            continue
