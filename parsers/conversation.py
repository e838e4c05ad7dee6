"""A conversation with a parser: questions that go on from the one before.

>>> talk = Conversation(Parser.load("runs/default"))
>>> talk.ask("what is the capital of Norway?").answers[0].text
'Oslo'
>>> talk.ask("and of Sweden?").read_as
'what is the capital of Sweden?'

Where another name, kind, year or number in the last question's program says what is asked, that
program runs. For a pronoun, the name of what was found or named last takes its place, and the
parser reads the question. Anything else is a question of its own. Nothing here needs torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kopl.answer_forms import Asking, Is
from kopl.functions import AND, COUNT, FILTER_CONCEPT, QUERY_NAME, SELECT_AMONG
from kopl.program import Call, post_order
from kopl.traits import names_in
from kopl.types import Kind, Type
from kopl_base.errors import KoplError
from parsers import follow_ups
from parsers.follow_ups import FollowUp
from parsers.linking import LONGEST_NAME, Linker, Mentions, stem, unsaid
from parsers.spelling import foldings, letters, similarity
from parsers.tokens import Question, as_constant, is_number, is_time

if TYPE_CHECKING:
    from parsers.parser import Answer, Parser

# How similar a text must be to a name or alias, and how long, to be one that is misspelt.
NEAR_NAME, LEAST_LETTERS = 85, 5
# So many things that a pronoun may stand for are tried; each that was named earlier must make its
# question so much more probable than the one before.
MOST_TRIED, LATER = 3, math.log(4)
# What is so probable is taken without a look at what else may be meant.
LIKELY = math.log(0.5)
# What a misspelt name must have in common with the words of a question that stand for it.
NEAR_MENTION = 60
# What it counts that two names stand behind the same preposition, where sharing all kinds is 1.
SAME_PREPOSITION = 0.5

How: TypeAlias = Literal["itself", "program", "words"]


@dataclass(frozen=True)
class Turn:
    """What was said, the question it was read as, and the answers, the best first.

    ``how`` the question was got: it stands by itself; the last question's ``program`` says it with
    something in another's place; ``words`` were put in, and the parser read it. ``unresolved``: a
    pronoun that nothing fits which was named.
    """

    said: str
    question: str
    answers: tuple[Answer, ...]
    how: How = "itself"
    unresolved: str = ""

    @property
    def read_as(self) -> str | None:
        """The question that was answered, where it is not what was said."""
        return None if self.how == "itself" else self.question

    @property
    def program(self) -> Call | None:
        """The program of the best answer, None where there is none."""
        return self.answers[0].program if self.answers else None

    @property
    def is_refused(self) -> bool:
        """Whether the parser says that it does not know."""
        return bool(self.answers) and self.answers[0].refused is not None

    @property
    def is_answered(self) -> bool:
        """Whether the best answer has one string or several."""
        return bool(self.answers and _found(self.answers[0]))


class Conversation:
    """Asks a parser one question after the other, and knows what the last ones were about."""

    def __init__(self, parser: Parser) -> None:
        self.parser, self.kb = parser, parser.kb
        self.turns: list[Turn] = []

    def prepare(self) -> None:
        """Make what the first question would wait for: names, aliases, what the model needs."""
        for name in self._linker.schema.nodes[:1]:
            self.parser.ask(f"what is {name}?")

    def ask(self, said: str, **options: Any) -> Turn:
        """The answers to what is said, which may go on from the question before.

        ``options`` are those of `Parser.ask`. Raises KoplError for a text without words.
        """
        turn = self._follow_up(said, options) if self._last else None
        turn = turn or self._by_itself(said, options)
        if turn.is_refused and not self.turns:
            turn = replace(turn, unresolved=self._pronoun_of(said))
        self.turns.append(turn)
        return turn

    @property
    def _last(self) -> Turn | None:
        """The last question that has a program."""
        return next((turn for turn in reversed(self.turns) if turn.program is not None), None)

    def _by_itself(self, said: str, options: dict[str, Any]) -> Turn:
        question = follow_ups.read(said).whole if self.turns else said
        return Turn(said, said, tuple(self.parser.ask(question or said, **options)))

    def _follow_up(self, said: str, options: dict[str, Any]) -> Turn | None:
        text = follow_ups.read(said)
        if not text.new:
            return None
        if not text.is_question and (turn := self._put_in(said, text, options)):
            return turn
        question = Question.of(text.whole)
        names = self._mentions.of(question).names
        if found := follow_ups.pronouns(question, self._is_concept, self._as_written(question)):
            return self._of_pronouns(said, question, found, bool(names), options)
        if text.is_question or names or not (text.lead or text.has_article):
            return None
        return self._of_extreme(said, text, options) or self._of_owner(said, text, options)

    # --- something else in the last question's program ----------------------------------------

    def _put_in(self, said: str, text: FollowUp, options: dict[str, Any]) -> Turn | None:
        """The last question's program with what is new in the place of what it fits."""
        assert self._last is not None
        constant = _constant(text.new)
        names = () if constant else self._named(text.new, text.is_marked)
        changes = self._constants_for(constant) if constant else self._names_for(names, text)
        if (concept := self._concepts.get(_stems(text.new))) is not None:
            changes = sorted([*changes, *self._concept_for(concept)], key=_closeness)
        tried = []
        for change in changes[:MOST_TRIED]:
            tried.append(self._changed(said, text, change, options))
            if tried[-1].is_answered:
                return tried[-1]
        wanted = changes[0].new if changes else constant
        question = self._extended(text, changes)
        added = self._guarded(said, question, wanted, options) if question and wanted else None
        return added or next(iter(tried), None)

    def _names_for(self, names: Sequence[str], text: FollowUp) -> list[_Change]:
        """The changes of a name in the last program to one of some, those of like kinds first."""
        assert self._last is not None and self._last.program is not None
        question = Question.of(self._last.question)
        changes = []
        for at, (old, span) in enumerate(self._named_in(self._last)):
            before = follow_ups.preposition_before(question, span[0]) if span else ""
            bonus = SAME_PREPOSITION * (before == text.preposition)
            for rank, new in enumerate(names):
                close = self._alike(old, new)
                changes.append(_Change(Kind.NAME, old, new, close + bonus * (close > 0), at, rank))
        return sorted(changes, key=_closeness)

    def _concept_for(self, new: str) -> Iterator[_Change]:
        assert self._last is not None and self._last.program is not None
        calls = (call for call in post_order(self._last.program) if call.function is FILTER_CONCEPT)
        for at, old in enumerate(dict.fromkeys(call.arguments[0] for call in calls)):
            yield _Change(Kind.CONCEPT, old, new, 1 + self._alike(old, new), at, 0)

    def _constants_for(self, new: str) -> list[_Change]:
        """The changes of a constant in the last program to one that reads alike."""
        assert self._last is not None and self._last.program is not None
        changes = []
        for at, call in enumerate(post_order(self._last.program)):
            for (_, kind), old in zip(call.function.arguments, call.arguments, strict=True):
                if kind in (Kind.TIME, Kind.ANY_VALUE) and is_time(old) and is_time(new):
                    changes.append(_Change(kind, old, new, 1.0, at, 0))
                elif kind in (Kind.QUANTITY, Kind.ANY_VALUE):
                    number, blank, unit = old.partition(" ")
                    if is_number(number) and is_number(new):
                        changes.append(_Change(kind, old, new + blank + unit, 0.5, at, 0))
        return sorted(changes, key=_closeness)

    def _changed(
        self, said: str, text: FollowUp, change: _Change, options: dict[str, Any]
    ) -> Turn:  # fmt: skip
        """The answer of the last program after a change."""
        assert self._last is not None and self._last.program is not None
        question = self._in_words(self._last, change, text)
        if self._last.is_refused and question is not None:  # its program says something else
            return Turn(said, question, tuple(self.parser.ask(question, **options)), "words")
        program = change.of(self._last.program)
        question = question or str(program)
        before = self._last.answers[0]
        asking, form = before.prediction.asking, before.form
        if isinstance(form, Is) and change.kind is Kind.NAME and change.old == form.name:
            asking = Asking(Is(change.new))
        answer = self._run(program, before, asking, bool(options.get("trace")))
        return Turn(said, question, (answer,), "program")

    def _run(
        self, program: Call, before: Answer, asking: Asking | None, trace: bool
    ) -> Answer:  # fmt: skip
        """The answer of a program that is as probable as the one that it was made of."""
        language, log_probability = self.parser.model.language, before.prediction.log_probability
        prediction = language.of_program(program, log_probability, asking)
        try:
            found = language.run(prediction, trace=trace)
        except KoplError as error:
            return replace(before, prediction=prediction, result=None, error=error)
        return replace(before, prediction=prediction, result=found, error=None, unnamed=())

    def _in_words(self, last: Turn, change: _Change, text: FollowUp) -> str | None:
        """The last question with the words for what is new; None where it does not say the old."""
        question = Question.of(last.question)
        if change.kind is Kind.NAME:
            span = dict(self._named_in(last)).get(change.old)
            if span is not None:
                has_article = follow_ups.has_article(question, span[0])
                article = "the " if text.has_article else ""
                return _with(question, (span[0] - has_article, span[1]), article + text.new)
        if change.kind is Kind.CONCEPT:
            span = _span_of(question, change.old)
        else:
            span = next(iter(question.spans_of(change.old.partition(" ")[0])), None)
        return None if span is None else _with(question, span, text.new)

    def _extended(self, text: FollowUp, changes: Sequence[_Change]) -> str | None:
        """The last question as the parser may read it where no change of its program answers.

        With a name of another kind in it, or a time or number behind it.
        """
        assert self._last is not None
        if changes:
            return self._in_words(self._last, changes[0], text)
        asked = self._last.question.rstrip(" ?.!")
        return f"{asked} {text.preposition} {text.new}?" if text.preposition else None

    def _guarded(
        self, said: str, question: str, wanted: str, options: dict[str, Any]
    ) -> Turn | None:  # fmt: skip
        """What the parser reads, None where that does not hold what is wanted."""
        turn = Turn(said, question, tuple(self.parser.ask(question, **options)), "words")
        calls = post_order(turn.program) if turn.program is not None else ()
        held = {text for call in calls for text in (*call.arguments, *_numbers(call))}
        return turn if wanted in held else None

    # --- something that was named, in the place of a pronoun ----------------------------------

    def _of_pronouns(
        self, said: str, question: Question, found: Sequence[follow_ups.Pronoun],
        has_names: bool, options: dict[str, Any],
    ) -> Turn | None:  # fmt: skip
        """The question with a name for its pronouns; None where nothing was named that fits."""
        assert self._last is not None
        known = [turn for turn in reversed(self.turns) if turn.program and not turn.is_refused]
        listed = next((turn for turn in known if _is_several(turn)), None)
        is_own = not found[0].noun and (has_names or self._is_preceded(question, found[0].first))
        if all(pronoun.many for pronoun in found):
            turn = listed and self._of_several(said, question, found, listed, options)
            if turn:
                return turn
            is_of_many = any(follow_ups.is_of_many(question, pronoun.first) for pronoun in found)
            if is_of_many or (listed is not None and listed is known[0]):
                return self._unresolved(said, "" if is_own else _words(question, found), options)
        names = [
            name for name in self._spoken_of(answers_first=True)
            if all(self._fits(name, pronoun) for pronoun in found)
        ]  # fmt: skip
        asked = [
            (name, follow_ups.put_for(question, found, self._called(name))) for name in names
        ]  # fmt: skip
        # "Which country has Oslo as its capital?" says itself whose capital it means.
        own = [question.text] if is_own else []
        if not asked and not own:
            return self._unresolved(said, _words(question, found), options)
        return self._likeliest(said, asked, own, options)

    def _pronoun_of(self, said: str) -> str:
        """The pronouns of a question that names nothing, "" for none."""
        question = Question.of(said)
        if self._mentions.of(question).names:
            return ""
        found = follow_ups.pronouns(question, self._is_concept, self._as_written(question))
        return _words(question, found) if found else ""

    def _unresolved(self, said: str, pronoun: str, options: dict[str, Any]) -> Turn:
        return replace(self._by_itself(said, options), unresolved=pronoun)

    def _of_several(
        self, said: str, question: Question, found: Sequence[follow_ups.Pronoun], listed: Turn,
        options: dict[str, Any],
    ) -> Turn | None:  # fmt: skip
        """What a question asks of all that was listed: "which of them is the largest?".

        The parser reads what is asked of all things of their kind; then only they are looked at.
        None where they have no kind in common by their program, or the question is of no set.
        """
        assert listed.program is not None
        last = listed.program
        every = last.inputs[0] if last.function is QUERY_NAME else last
        if every.function.output not in (Type.ENTITIES, Type.FACTS):
            return None
        noun = self._noun_of(listed, every)
        if not noun or any(one.form != "name" for one in found):
            return None
        text = follow_ups.put_for(question, found, f"the {noun}")
        answers = self.parser.ask(text, **options)
        read = answers[0].program if answers and _found(answers[0]) else None
        if read is None or read.function not in (QUERY_NAME, COUNT, SELECT_AMONG):
            return None
        among = Call(AND, (read.inputs[0], every))
        program, before = Call(read.function, (among,), read.arguments), answers[0]
        answer = self._run(program, before, before.prediction.asking, bool(options.get("trace")))
        return Turn(said, f"{text} (of those listed)", (answer,), "words")

    def _noun_of(self, listed: Turn, every: Call) -> str:
        """What a list calls its things: the concept of its program, or one that all of them are.

        The latter where the question says it: "which countries border Germany?"; "" for none.
        """
        asked, kinds = Question.of(listed.question), [*map(self._kinds, listed.answers[0].answers)]
        if every.function is FILTER_CONCEPT:
            span = _span_of(asked, every.arguments[0])
            return asked.span(*span) if span else every.arguments[0]
        shared = set.intersection(*kinds)
        for first, last in _spans(asked, LONGEST_NAME):
            concept = self._concepts.get(_stems(asked.span(first, last)))
            if concept is not None and not shared.isdisjoint(self.kb.named(concept).tolist()):
                return asked.span(first, last)
        return ""

    def _of_extreme(self, said: str, text: FollowUp, options: dict[str, Any]) -> Turn | None:
        """The last question about another extreme: "and the smallest?"."""
        assert self._last is not None
        question, new = Question.of(self._last.question), Question.of(text.new)
        old = follow_ups.extreme(question)
        if old is None or len(new.words) > 1 or follow_ups.extreme(new) is None:
            return None
        asked = _with(question, (old, old), text.new)
        turn = Turn(said, asked, tuple(self.parser.ask(asked, **options)), "words")
        return turn if turn.is_answered else None

    def _of_owner(self, said: str, text: FollowUp, options: dict[str, Any]) -> Turn | None:
        """What a noun phrase asks of what was named: "and the area?"."""
        names = self._spoken_of(answers_first=False)
        asked = [(name, f"{self._called(name)}'s {text.new}?") for name in names]
        return self._likeliest(said, asked, [text.whole], options)

    def _likeliest(
        self, said: str, asked: Sequence[tuple[str, str]], own: Sequence[str],
        options: dict[str, Any],
    ) -> Turn | None:  # fmt: skip
        """Of the questions that name one thing each, and those as they were said, the likeliest."""
        best: tuple[tuple[bool, float], Turn] | None = None
        for rank, (name, question) in enumerate([*((None, one) for one in own), *asked]):
            if rank == MOST_TRIED or (best is not None and best[0] > (True, LIKELY)):
                break
            answers = tuple(self.parser.ask(question, **options))
            turn = Turn(said, question, answers, "itself" if name is None else "words")
            is_good = turn.is_answered and (name is None or name in _names_of(turn.program))
            rating = is_good, _log_probability(turn) - rank * LATER
            if best is None or rating > best[0]:
                best = rating, turn
        return None if best is None else best[1]

    def _spoken_of(self, *, answers_first: bool) -> list[str]:
        """The names of what was found and named, the last first."""
        found: dict[str, None] = {}
        for turn in reversed([turn for turn in self.turns if turn.program is not None]):
            answer = _name_found(turn)
            named = [name for name, _ in self._named_in(turn)]
            if turn.is_refused and turn.program is not None:  # by a name that there is not, perhaps
                unknown = unsaid(turn.program, turn.question, self.kb)
                named = [name for name in named if name not in unknown]
            both = [answer] if answer is not None and len(self.kb.named(answer)) else []
            found.update(dict.fromkeys(both + named if answers_first else named + both))
        return list(found)

    def _called(self, name: str) -> str:
        """A name with the article that the last question has before it, if any."""
        assert self._last is not None
        question = Question.of(self._last.question)
        span = dict(self._named_in(self._last)).get(name)
        return f"the {name}" if span and follow_ups.has_article(question, span[0]) else name

    def _fits(self, name: str, pronoun: follow_ups.Pronoun) -> bool:
        """Whether a pronoun may stand for what has a name."""
        kinds = self._kinds(name)
        if pronoun.noun:
            concept = self._concepts.get(_stems(pronoun.noun))
            return concept is not None and not kinds.isdisjoint(self.kb.named(concept).tolist())
        if pronoun.person is None or not self._persons:
            return True
        return pronoun.person == (not kinds.isdisjoint(self._persons))

    def _is_preceded(self, question: Question, at: int) -> bool:
        """Whether a noun of a kind stands before a token, so that a pronoun there may mean it."""
        return any(self._is_concept(word) for word in question.words[:at])

    # --- what texts name ----------------------------------------------------------------------

    @cached_property
    def _linker(self) -> Linker:
        found = getattr(self.parser.model, "linker", None)
        return found if isinstance(found, Linker) else Linker(self.kb)

    @cached_property
    def _mentions(self) -> Mentions:
        return Mentions((), self._linker)

    @cached_property
    def _concepts(self) -> dict[str, str]:
        """The concepts by the stems of their words, as they are said of one or of many."""
        return {_stems(name): name for name in reversed(self._linker.schema.concepts)}

    @cached_property
    def _persons(self) -> frozenset[int]:
        """The concepts of persons."""
        found: set[int] = set()
        for word in follow_ups.words().persons:
            nodes = [*self.kb.named(word).tolist(), *self.kb.known_as(word).tolist()]
            found.update(node for node in nodes if not self.kb.is_entity(node))
        return frozenset(found)

    def _is_concept(self, word: str) -> bool:
        return _stems(word) in self._concepts

    def _as_written(self, question: Question) -> list[tuple[int, int]]:
        """The names of a question that are written as they are, where no sentence begins."""
        names, spans = self._linker.names, self._mentions.of(question).names
        return [
            (first, last) for first, last in spans
            if first and question.span(first, last) in names.index.spelt.get(
                letters(question.span(first, last)), ()
            )
        ]  # fmt: skip

    def _named(self, text: str, is_marked: bool) -> tuple[str, ...]:
        """The names that a text, and nothing less than all of it, stands for.

        One that is misspelt only where something before it says that it goes on.
        """
        question, names = Question.of(text), self._linker.names
        spelt = letters(text)
        if not spelt or len(question.words) > LONGEST_NAME or not len(names):
            return ()
        if names.index.folded(text) or names.says_alias(
            spelt, question, 0, len(question.words) - 1
        ):
            return names.meant(text)
        if not is_marked or len(spelt) < LEAST_LETTERS or _constant(text):
            return ()
        found = names.meant(text)
        called = (one for name in found[:1] for one in (name, *names.aliases_of(name)))
        return found if any(similarity(text, one) >= NEAR_NAME for one in called) else ()

    def _named_in(self, turn: Turn) -> list[tuple[str, tuple[int, int] | None]]:
        """The names in a turn's program with the words for them, in the order of the question."""
        question = Question.of(turn.question)
        names = _names_of(turn.program)
        if isinstance(form := turn.answers[0].form, Is) and len(self.kb.named(form.name)):
            names = list(dict.fromkeys([*names, form.name]))
        found = [(name, self._mention(question, name)) for name in names]
        return sorted(found, key=lambda one: one[1] or (len(question.words), 0))

    def _mention(self, question: Question, name: str) -> tuple[int, int] | None:
        """The tokens that stand for a name: by it, by an alias, or nearly so."""
        called = [name, *self._linker.names.aliases_of(name)]
        keys = {key for one in called for key in foldings(one) if key}
        count, best = len(question.words), None
        most = float(NEAR_MENTION)
        for first, last in _spans(question, min(LONGEST_NAME, count)):
            if letters(question.span(first, last)) in keys:
                return first, last
        for first, last in _spans(question, min(len(name.split()) + 1, count)):
            if (near := similarity(question.span(first, last), name)) > most:
                best, most = (first, last), near
        return best

    def _kinds(self, name: str) -> set[int]:
        """The concepts that what has a name is an instance of, or is itself and stands below."""
        found: set[int] = set()
        for node in self.kb.named(name).tolist():
            is_entity = self.kb.is_entity(node)
            found.update(self.kb.all_concepts_of(node) if is_entity else self.kb.ancestors(node))
        return found

    def _alike(self, one: str, other: str) -> float:
        """The share of their kinds that two names have in common, from 0 to 1."""
        kinds, others = self._kinds(one), self._kinds(other)
        return len(kinds & others) / len(kinds | others) if kinds | others else 0.0


# --- changes of programs --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Change:
    """Another text in the arguments of a kind: a name, a concept, a constant.

    ``closeness``: how well the new one fits in the old one's place; ``at``: where that stands;
    ``rank``: how far behind the likeliest meaning of the words it is.
    """

    kind: Kind
    old: str
    new: str
    closeness: float
    at: int
    rank: int

    def of(self, program: Call) -> Call:
        """The program after the change."""
        inputs = tuple(self.of(part) for part in program.inputs)
        arguments = tuple(
            self.new if kind is self.kind and text == self.old else text
            for (_, kind), text in zip(program.function.arguments, program.arguments, strict=True)
        )
        return Call(program.function, inputs, arguments)


def _closeness(change: _Change) -> tuple[float, int, int]:
    return -change.closeness, change.at, change.rank


def _names_of(program: Call | None) -> list[str]:
    """The names that a program finds, each once."""
    return list(dict.fromkeys(names_in(program))) if program is not None else []


def _name_found(turn: Turn) -> str | None:
    """The only name that a turn's program found, None where it found none or no names."""
    assert turn.program is not None
    is_named = turn.program.function.output in (Type.NAMES, Type.ENTITIES, Type.FACTS)
    return turn.answers[0].text if is_named else None


def _words(question: Question, found: Sequence[follow_ups.Pronoun]) -> str:
    """The words of the first pronoun."""
    return question.span(found[0].first, found[0].last)


def _found(answer: Answer) -> bool:
    return bool(answer.answers)


def _is_several(turn: Turn) -> bool:
    return bool(turn.answers) and len(turn.answers[0].answers) > 1


def _log_probability(turn: Turn) -> float:
    return turn.answers[0].prediction.log_probability if turn.answers else -math.inf


def _constant(text: str) -> str:
    """The number or time that a text is, as programs write it; "" where it is none."""
    constant = as_constant(text)
    return constant if is_number(constant) or is_time(constant) else ""


def _numbers(call: Call) -> list[str]:
    """The constants of a call without their units."""
    return [text.partition(" ")[0] for text in call.arguments]


def _stems(text: str) -> str:
    return "".join(stem(letters(word)) for word in Question.of(text).words)


def _span_of(question: Question, text: str) -> tuple[int, int] | None:
    """The tokens that say a text, in singular or plural."""
    wanted = _stems(text)
    length = len(Question.of(text).words)
    for first in range(len(question.words) - length + 1):
        if (
            "".join(stem(letters(word)) for word in question.words[first : first + length])
            == wanted
        ):
            return first, first + length - 1
    return None


def _spans(question: Question, most: int) -> Iterator[tuple[int, int]]:
    """The runs of tokens, the longest first, that begin and end with letters or digits."""
    bare = [not letters(word) for word in question.words]
    for length in range(most, 0, -1):
        for first in range(len(bare) - length + 1):
            if not bare[first] and not bare[first + length - 1]:
                yield first, first + length - 1


def _with(question: Question, span: tuple[int, int], new: str) -> str:
    """The question with other words in the place of some."""
    start, end = question.places[span[0]][0], question.places[span[1]][1]
    return question.text[:start] + new + question.text[end:]
