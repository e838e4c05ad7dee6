"""How people go on from the question before: leads, what is new, pronouns.

The words stand in ``follow_ups.yaml``. What they refer to is found in `parsers.conversation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from parsers.tokens import Question

# What closes a question, and may stand behind a lead.
_CLOSING = frozenset("?.!,;:…")


@dataclass(frozen=True)
class Wordings:
    """The words of follow-ups, phrases as tuples of words in lower case, the longest first."""

    leads: tuple[tuple[str, ...], ...]
    prepositions: frozenset[str]
    articles: frozenset[str]
    of_many: frozenset[str]
    pronouns: dict[str, dict[str, Any]]
    pointers: tuple[tuple[str, ...], ...]
    persons: frozenset[str]
    idle: tuple[tuple[str, ...], ...]
    openings: tuple[tuple[str, ...], ...]
    extremes: dict[str, Any]


@lru_cache(maxsize=1)
def words() -> Wordings:
    """What ``follow_ups.yaml`` says."""
    import yaml  # type: ignore[import-untyped]

    path = resources.files("parsers").joinpath("follow_ups.yaml")
    read: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))

    def phrases(name: str) -> tuple[tuple[str, ...], ...]:
        return tuple(sorted((tuple(one.split()) for one in read[name]), key=lambda one: -len(one)))

    return Wordings(
        leads=phrases("leads"),
        prepositions=frozenset(read["prepositions"]),
        articles=frozenset(read["articles"]),
        of_many=frozenset(read["of_many"]),
        pronouns=read["pronouns"],
        pointers=phrases("pointers"),
        persons=frozenset(read["persons"]),
        idle=phrases("idle"),
        openings=phrases("openings"),
        extremes=read["extremes"],
    )


@dataclass(frozen=True)
class FollowUp:
    """A text taken apart.

    ``lead`` and ``preposition`` are "" where it has none; ``whole`` is what stands behind the lead,
    ``new`` what stands behind the preposition, too, without article and closing punctuation.
    """

    lead: str
    preposition: str
    whole: str
    new: str
    has_article: bool

    @property
    def is_marked(self) -> bool:
        """Whether its beginning says that it goes on from something."""
        return bool(self.lead or self.preposition)

    @property
    def is_question(self) -> bool:
        """Whether what stands behind the lead begins as a whole question does."""
        return bool(_phrase(_lower(Question.of(self.whole)), 0, words().openings))


def read(text: str) -> FollowUp:
    """What a text says of the question before, if it says anything.

    >>> read("And what about in the Netherlands?").new, read("of Sweden").preposition
    ('Netherlands', 'of')
    """
    question, known = Question.of(text), words()
    lower = _lower(question)
    end = len(lower)
    while end and lower[end - 1] in _CLOSING:
        end -= 1
    at = len(lead := _phrase(lower[:end], 0, known.leads))
    while lead and at < end and lower[at] in _CLOSING:
        at += 1
    begin = at
    preposition = lower[at] if at + 1 < end and lower[at] in known.prepositions else ""
    at += bool(preposition)
    has_article = at + 1 < end and lower[at] in known.articles
    at += has_article
    return FollowUp(
        " ".join(lead), preposition,
        question.text[question.places[begin][0] :].strip() if begin < end else "",
        question.span(at, end - 1) if at < end else "",
        has_article,
    )  # fmt: skip


@dataclass(frozen=True)
class Pronoun:
    """Tokens of a question that stand for something else.

    ``form``: as what a name takes their place, "name", "owner" or "place"; ``person``: whether only
    a person is meant, or only what is none, None: either; ``many``: whether it may be several
    things; ``noun``: what kind is meant, "" for any.
    """

    first: int
    last: int
    form: str
    person: bool | None = None
    many: bool = False
    noun: str = ""


def pronouns(
    question: Question, is_concept: Callable[[str], bool], names: Iterable[tuple[int, int]] = ()
) -> list[Pronoun]:
    """The pronouns of a question, and the nouns that are pointed at, in their order.

    ``names`` are the spans that name something: what stands in one is no pronoun.
    """
    known, lower = words(), _lower(question)
    taken = {at for first, last in names for at in range(first, last + 1)}
    for at in range(len(lower)):
        taken.update(range(at, at + len(_phrase(lower, at, known.idle))))
    found: list[Pronoun] = []
    for at, word in enumerate(lower):
        if at in taken or (found and at <= found[-1].last):
            continue
        if pointing := _phrase(lower, at, known.pointers):
            noun = at + len(pointing)
            if noun < len(lower) and is_concept(lower[noun]):
                found.append(Pronoun(at, noun, "name", noun=lower[noun]))
        elif rule := known.pronouns.get(word):
            form, person, many = rule["as"], rule.get("person"), rule.get("many", False)
            if form == "either":
                form = "owner" if _goes_on(lower, at + 1) else "name"
            found.append(Pronoun(at, at, form, person, many))
    return found


def _goes_on(lower: Sequence[str], at: int) -> bool:
    """Whether a noun phrase may stand at a place: a word that is no preposition."""
    return at < len(lower) and lower[at].isalpha() and lower[at] not in words().prepositions


def put_for(question: Question, found: Sequence[Pronoun], name: str) -> str:
    """The question with a name in the place of its pronouns.

    >>> question = Question.of("how many people live in its capital?")
    >>> put_for(question, pronouns(question, lambda noun: False), "Norway")
    "how many people live in Norway's capital?"
    """
    text, at = "", 0
    for pronoun in found:
        start, end = question.places[pronoun.first][0], question.places[pronoun.last][1]
        text += question.text[at:start] + _in_place(question, pronoun, name)
        at = end
    return text + question.text[at:]


def _in_place(question: Question, pronoun: Pronoun, name: str) -> str:
    if pronoun.form == "owner":
        return f"{name}'s"
    before = question.words[pronoun.first - 1].lower() if pronoun.first else ""
    is_placed = pronoun.form == "place" and before not in words().prepositions
    return f"in {name}" if is_placed else name


def preposition_before(question: Question, first: int) -> str:
    """The preposition that a token stands behind, an article between them or not; "" for none."""
    at = first - 1 - has_article(question, first)
    word = question.words[at].lower() if at >= 0 else ""
    return word if word in words().prepositions else ""


def is_of_many(question: Question, first: int) -> bool:
    """Whether a pronoun that may be of several things can only be so: "how many of them"."""
    return first > 0 and question.words[first - 1].lower() in words().of_many


def extreme(question: Question) -> int | None:
    """The first token that picks one of many, as "largest" does; None where there is none."""
    ending, single = words().extremes["ending"], words().extremes["words"]
    for at, word in enumerate(_lower(question)):
        if word in single or (word.endswith(ending) and len(word) > len(ending) + 2):
            return at
    return None


def has_article(question: Question, first: int) -> bool:
    """Whether an article stands right before a token."""
    return first > 0 and question.words[first - 1].lower() in words().articles


def _lower(question: Question) -> list[str]:
    return [word.lower() for word in question.words]


def _phrase(
    lower: Sequence[str], at: int, phrases: Iterable[tuple[str, ...]]
) -> tuple[str, ...]:  # fmt: skip
    """The longest of the phrases that stands at a place; () for none."""
    return next((one for one in phrases if tuple(lower[at : at + len(one)]) == one), ())
