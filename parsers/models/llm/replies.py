"""Replies of a language model read as programs, run, voted on; what is wrong with one, in words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from kopl.answer_forms import PLAIN, Asking, Exists, Is
from kopl.errors import ParseError
from kopl.executor import Denoted
from kopl.functions import AND, COUNT, FIND, FUNCTIONS, QUERY_NAME, RELATE
from kopl.hints import unknown_items
from kopl.program import Call, post_order
from kopl.text import read
from kopl.traits import names_in, renamed
from kopl.typecheck import check
from kopl.types import Type
from kopl_base.chat import Completion
from kopl_base.errors import KoplError
from parsers.constrain.rerank import PartialRuns
from parsers.languages import OutputLanguage, Prediction
from parsers.linking import Linker, stems_of
from parsers.models.llm.surroundings import Surroundings

# A program that needed a repair counts so much as one that needed none.
REPAIRED = 0.7
# Names of relations that share a word of so many letters at least are akin.
SHORTEST = 4
# So many vain calls are left out at most.
LEFT_OUT = 3
# What finds nothing counts so little beside what finds something.
EMPTY = 0.05
# Questions that open so want yes or no.
_YES_NO = re.compile(
    r"\W*(?:(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)(?:n['’]?t)?)\b", re.I
)
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.I)
_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_CALL = re.compile(rf"(?:{'|'.join(FUNCTIONS)})\s*\(")


class CutError(KoplError):
    """A reply that ended only because the model had written enough."""

    kind = "cut"


def program_in(text: str) -> str:
    """The program in a reply: without reasoning, fences, and what stands before and behind it.

    >>> program_in('<think>Hm.</think>Sure: ```\\nCount(FindAll())\\n```')
    'Count(FindAll())'
    """
    text = _REASONING.sub("", text)
    if (fenced := _FENCED.search(text)) is not None:
        text = fenced[1]
    text = text.strip().strip("`").strip()
    begin = _CALL.search(text)
    if begin is None:
        return text
    return text[begin.start() : _end(text, begin.end())]


def _end(text: str, at: int) -> int:
    """Where the call ends whose parenthesis opened before a place."""
    depth, quote = 1, ""
    while at < len(text) and depth:
        letter = text[at]
        if quote:
            at += letter == "\\"
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter == "(") - (letter == ")")
        at += 1
    return min(at, len(text))


@dataclass(frozen=True)
class ReadReply:
    """One reply: its program with what running it gave, or why it failed.

    ``fault`` says what is wrong with it, for the model; "" for nothing.
    """

    reply: str
    prediction: Prediction
    result: Denoted | None
    fault: str = ""
    repairs: int = 0
    weight: float = 1.0  # of its vote, beside those of others

    @property
    def says(self) -> tuple[str, ...] | None:
        """What it answers; None where it failed."""
        if self.result is None:
            return None
        return tuple(self.prediction.answers(self.result.denotation))


class Reader:
    """Reads replies to questions over one knowledge base."""

    def __init__(
        self, language: OutputLanguage, linker: Linker, surroundings: Surroundings
    ) -> None:
        self._language, self._linker, self._around = language, linker, surroundings
        self._kb = linker.kb

    def candidate(
        self, reply: Completion, question: str, names: Sequence[str], repairs: int = 0
    ) -> ReadReply:
        """A reply read and run. ``names`` are those that the question has."""
        text = program_in(reply.text)
        if reply.cut:
            error: KoplError = CutError("the reply was cut: it is too long")
            return self._failed(reply.text, text, error, repairs)
        try:
            program = self.mended(read(text))
        except KoplError as error:
            return self._failed(reply.text, text, error, repairs)
        program, form = as_asked(program, question, names)
        prediction = self._language.of_program(program, 0.0, form)
        try:
            result = self._language.run(prediction)
        except KoplError as error:
            return ReadReply(reply.text, prediction, None, f"It is wrong: {error}.", repairs)
        runs = PartialRuns(self._language.executor)
        if (other := self._nearest(program, names, runs)) is not None:
            prediction = self._language.of_program(other, 0.0, form)
            program, result, repairs = other, self._language.run(prediction), repairs + 1
        if form == PLAIN and len(result.denotation) > 1:
            prediction = self._language.of_program(program, 0.0, Asking(several=True))
        fault = self._nothing(program, question, runs)
        return ReadReply(reply.text, prediction, result, fault, repairs)

    def _failed(self, reply: str, text: str, error: KoplError, repairs: int) -> ReadReply:
        prediction = Prediction(text, 0.0, None, ParseError(str(error)))
        return ReadReply(reply, prediction, None, f"It is no program: {error}.", repairs)

    def mended(self, program: Call) -> Call:
        """The program with names that there are for those that are nearly so."""
        names = [name for name in names_in(program) if not len(self._kb.named(name))]
        return renamed(program, {name: self._linker.name(name) for name in names})

    def _nearest(self, program: Call, names: Sequence[str], runs: PartialRuns) -> Call | None:
        """For a program that finds nothing, one near to it that finds something.

        Its first vain relation the other way round; else one with a word of its name that there is
        in its place ("capital of" for "capital"); else without what is in vain between the things
        and what is asked of them; else about another one of the ``names`` that the question has.
        None where these find nothing either, or the program finds something as it is.
        """
        if not runs.says_nothing(program):
            return None
        found = chain(
            _turned(program, runs), self._akin(program, runs), _without(program, runs),
            _renamed(program, names),
        )  # fmt: skip
        return next((one for one in found if _types(one) and not runs.says_nothing(one)), None)

    def _akin(self, program: Call, runs: PartialRuns) -> Iterator[Call]:
        """The program with relations that share a word with its first vain one, most words first.

        Only such as the things have that the relation is followed from.
        """
        vain = _vain(program, runs)
        if vain is None or vain.function is not RELATE:
            return
        words = _content(vain.arguments[0])
        shared = [
            (-len(words & _content(name)), -count, name, way)
            for way, relations in self._around.relations(runs.nodes(vain.inputs[0])).items()
            for name, count in relations.items()
            if words & _content(name) and (name, way) != vain.arguments
        ]
        for _, _, name, way in sorted(shared):
            yield replaced(program, {vain: Call(RELATE, vain.inputs, (name, way))})

    def _nothing(self, program: Call, question: str, runs: PartialRuns) -> str:
        """What is wrong with a program that finds nothing, "" where it finds something.

        It names the first call that finds nothing, and what there is in its place.
        """
        if not runs.says_nothing(program):
            return ""
        if unknown := unknown_items(self._kb, program):
            return f"It finds nothing: {'; '.join(unknown)}."
        calls = list(post_order(program))
        first = next((n for n, call in enumerate(calls) if runs.finds_nothing(call)), None)
        if first is None:
            return ""
        call = calls[first]
        told = f"It is empty after call {first + 1}, {call.function.name}"
        told += f"({', '.join(map(repr, call.arguments))})."
        words = stems_of(question)
        if call.inputs and len(nodes := runs.nodes(call.inputs[0])):
            told += f" There are: {self._around.around(nodes, words)}."
        return told


def _content(text: str) -> set[str]:
    """The stems of a name's words, but for words as short as "of" and "in"."""
    return {one for one in stems_of(text) if len(one) >= SHORTEST}


def _types(program: Call) -> bool:
    try:
        check(program)
    except KoplError:
        return False
    return True


def _vain(program: Call, runs: PartialRuns) -> Call | None:
    """The first call that finds nothing."""
    return next((one for one in post_order(program) if runs.finds_nothing(one)), None)


def _turned(program: Call, runs: PartialRuns) -> Iterator[Call]:
    """The program with its first vain relation the other way round, if one is in vain."""
    vain = _vain(program, runs)
    if vain is not None and vain.function is RELATE:
        relation, direction = vain.arguments
        other = "backward" if direction == "forward" else "forward"
        yield replaced(program, {vain: Call(RELATE, vain.inputs, (relation, other))})


def _without(program: Call, runs: PartialRuns) -> Iterator[Call]:
    """The program without relations and filters that lead nowhere, one more left out each time.

    Where it is a look-up that finds nothing, the last one before it is left out. Not where the
    program counts or names what it finds: of the thing itself that would say nothing.
    """
    if program.function in (COUNT, QUERY_NAME):
        return
    for _ in range(LEFT_OUT):
        vain = _vain(program, runs)
        if vain is not None and vain.inputs and not Type.ENTITIES.accepts(vain.function.output):
            vain = vain.inputs[0]
        if vain is None or len(vain.inputs) != 1 or not Type.ENTITIES.accepts(vain.function.output):
            return
        program = replaced(program, {vain: vain.inputs[0]})
        if not _types(program):
            return
        yield program


def _renamed(program: Call, names: Sequence[str]) -> Iterator[Call]:
    """The program about each other one of the names, where it is about one thing."""
    found = list(dict.fromkeys(names_in(program)))
    if len(found) == 1 and program.function is not COUNT:
        yield from (renamed(program, {found[0]: name}) for name in names if name != found[0])


def replaced(program: Call, others: Mapping[Call, Call]) -> Call:
    """The program with others in place of some of its calls."""
    if program in others:
        return others[program]
    inputs = tuple(replaced(one, others) for one in program.inputs)
    return Call(program.function, inputs, program.arguments)


def as_asked(program: Call, question: str, names: Sequence[str]) -> tuple[Call, Asking]:
    """A program with what a question asks of its denotation, by how the question opens.

    Of a question for yes or no a count says whether there is any; what is chosen is to be the name
    that the question has besides those in the program, or else its first one. Of other things it is
    counted whether what the question names besides is among them, or whether there are any.
    """
    if not _YES_NO.match(question):
        return program, PLAIN
    output = program.function.output
    if output is Type.NUMBER:
        return program, Asking(Exists())
    if output not in (Type.NAMES, Type.ENTITIES, Type.FACTS):
        return program, PLAIN
    found = names_in(program)
    others = [name for name in names if name not in found]
    is_set = program.function is QUERY_NAME or output is not Type.NAMES
    if not is_set:
        named = [*others, *found]
        return program, Asking(Is(named[0])) if named else PLAIN
    inner = program.inputs[0] if program.function is QUERY_NAME else program
    if inner.function is FIND:
        return program, PLAIN
    if others:
        inner = Call(AND, (inner, Call(FIND, (), (others[0],))), ())
    return Call(COUNT, (inner,), ()), Asking(Exists())


def voted(
    candidates: Sequence[ReadReply], language: OutputLanguage, votes: float
) -> list[Prediction]:
    """A prediction for each answer that candidates give, the one of most votes first.

    Its probability is the share that it has of all ``votes``, which are to be one more than there
    are counted: no vote is ever certain. A repaired program's vote counts less, that of one which
    finds nothing hardly. Where all failed, the first one says why.
    """
    weights: dict[tuple[str, ...], float] = {}
    firsts: dict[tuple[str, ...], Prediction] = {}
    for one in candidates:
        if (says := one.says) is None:
            continue
        weight = one.weight * REPAIRED**one.repairs * (EMPTY if one.fault or not says else 1.0)
        weights[says] = weights.get(says, 0.0) + weight
        firsts.setdefault(says, one.prediction)
    if not weights:
        failed = next(one.prediction for one in candidates)
        return [Prediction(failed.text, math.log(1e-4), failed.program, failed.error)]
    found = []
    for says in sorted(weights, key=lambda key: (-weights[key], list(firsts).index(key))):
        share = math.log(max(1e-4, min(1.0, weights[says] / votes)))
        old = firsts[says]
        assert old.program is not None
        found.append(language.of_program(old.program, share, old.asking))
    return found
