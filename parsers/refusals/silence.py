"""When a parser answers and when it says that it does not know: fitted, kept with a run, used.

What is fitted is one classifier over the evidence of an answer (`parsers.refusals.evidence`): that
it is right, that it is wrong, or that the question has none, with the kind of reason. How probable
it is that the answer is right is the confidence; below a least one the question is refused.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from kopl.example import Asked, BareQuestion, Example
from kopl.executor import Denoted
from kopl_base.errors import KoplError
from kopl_base.stream import writing
from parsers.actions import Actions
from parsers.constrain.rerank import Judgement, PartialRuns, by_evidence
from parsers.evaluation.coverage import auroc
from parsers.evaluation.judging import judge
from parsers.languages import Prediction
from parsers.linking import Linker, Mentions
from parsers.models.base import Model
from parsers.refusals.classifier import Classifier, Floats
from parsers.refusals.evidence import (
    FEATURES,
    SMALL,
    Evidence,
    Evidencer,
    Tried,
    mean_talk,
    other_languages,
)
from parsers.refusals.premises import Premises
from parsers.refusals.refusal import Refusal, left_out, missing_name, of_premise, refusal_of
from parsers.refusals.wording import ASKED, Wording, stems
from parsers.spelling import english, letters
from parsers.tokens import Question

FORMAT = 2
FILE = "refusals.json"
# The same for knowledge bases most of whose schema training did not have.
FILE_ELSEWHERE = "refusals-elsewhere.json"

OUTSIDE = ("entity", "schema", "premise", "none", "language")
CLASSES = ("right", "wrong", *OUTSIDE)
# Of the content words of a question, so many are replaced by ones that the training did not have,
# and of these so many by other words that it had.
STRANGE, MISLEADING = 0.2, 0.5
# Of the questions with an answer, so many are asked once more with something that their programs do
# not say: so many of these for something else, too, and of the others so many of a further name.
FURTHER, ITEMS, BESIDE = 0.4, 0.25, 0.7
# To answer a question rightly counts so much more than to refuse one that has no answer: who does
# not believe an answer can look at its program, and who gets none has nothing.
PREFERENCE = 4
# ... and so much more on a schema that training did not have, where more answers are wrong: there
# not to answer what has no answer or would be answered wrongly is what counts one.
PREFERENCE_ELSEWHERE = 3
# The probability of the kinds is found by leaving out one of so many parts of the questions.
FOLDS = 5
# Of the words, so many tell that a question is in another language.
FOREIGN = 0.4
# So many words with accents, outside of names, tell it as well.
ACCENTED = 2
# Marks that open a question in another language.
OPENING = frozenset("¿¡")
# What names something is no question all the same from so high a probability on.
SURELY_NONE = 0.8
# Two readings whose probabilities are at most so far apart, as logarithms, are both possible.
TWO_WAYS = 1.5
# Of what a run is fitted on, the least that tells anything.
FEWEST = 20
# Fewer such items of a schema were in training than this share: it is another schema.
OWN_SCHEMA = 0.5
# An answer whose program leaves out a year, an ordinal or a "not" of the question, or that is of a
# sort for which hardly any question that opens so asks, is no surer than this.
LEFT_OUT = 0.04


class RefusalError(KoplError):
    """Refusals that cannot be fitted, or whose file is damaged."""

    kind = "refusal"


@dataclass(frozen=True)
class Sureness:
    """How sure an answer is, from 0 to 1, and the refusal where that is not enough."""

    confidence: float
    refusal: Refusal | None


@dataclass(frozen=True)
class Fitted:
    """What the questions were that a run's refusals were fitted on, and how well it went."""

    answerable: int
    outside: int
    right: int
    area: float  # under the curve of right against all others, on questions left out
    answered: float  # of the answerable ones, at the least confidence
    refused: float  # of the outside ones


class Silence:
    """Judges the answers of a model over one knowledge base.

    ``least`` is the least confidence with which a question is answered.
    """

    def __init__(
        self, model: Model, wording: Wording, classifier: Classifier, talk: Mapping[str, float],
        least: float, fitted: Fitted,
    ) -> None:  # fmt: skip
        self._model = model
        self.wording, self.classifier, self.least, self.fitted = wording, classifier, least, fitted
        self.evidencer = evidencer_of(model, wording)
        self.linker, self.premises = self.evidencer.linker, Premises(self.evidencer)
        self.evidencer.talk = dict(talk)

    def prepare(self) -> None:
        """Make the lists that are made once, which a question would wait for."""
        self.evidencer.prepare()
        self.linker.names.prepare()

    def judged(
        self, question: str, tried: Sequence[Tried], best: Tried, least: float | None = None,
        unnamed: bool = False,
    ) -> Sureness:  # fmt: skip
        """How sure ``best`` is among all that was tried, and the refusal below ``least``.

        None is the least confidence that the run was fitted with; with 0 nothing is refused.
        What finds nothing is refused otherwise, and what says no of a name that the question does
        not have (``unnamed``).
        """
        evidence = self.evidencer.of(question, tried, best)
        shares = self.classifier.probabilities(evidence.vector()[None])[0]
        confidence = float(shares[0])
        is_taken = any(one.is_taken for one in evidence.names)
        if evidence.left_out or evidence.is_seldom or evidence.is_other_kind or is_taken:
            confidence = min(confidence, LEFT_OUT)
        least = self.least if least is None else least
        if least == 0 or (confidence >= least and best.said and not unnamed):
            return Sureness(confidence, None)
        if evidence.left_out and best.said:
            return Sureness(confidence, left_out(evidence.left_out))
        return Sureness(confidence, self._refusal(question, evidence, shares, tried, best, unnamed))

    def _refusal(
        self, question: str, evidence: Evidence, shares: Floats, tried: Sequence[Tried],
        best: Tried, unnamed: bool,
    ) -> Refusal:  # fmt: skip
        """Why a question is refused."""
        outside = {kind: float(shares[CLASSES.index(kind)]) for kind in OUTSIDE}
        premise = self.premises.of(question, tried, best, evidence, outside)
        called = missing_name(evidence, self.evidencer)
        if not called:
            called = next((one.name for one in evidence.names if one.is_taken), "")
        kind = kind_of(evidence, shares, tried, best, called, premise is not None)
        if unnamed and kind != "none" and not is_in_another_language(evidence):
            kind = "entity"
        if kind == "premise" and premise is not None:
            return of_premise(premise, best, self.linker)
        is_read = best.said and not evidence.unknown and not evidence.unsupported
        if evidence.unused and (kind in ("unsure", "ambiguous") or (kind == "schema" and is_read)):
            return left_out(evidence.unused)
        return refusal_of(kind, evidence, tried, best, self.linker)

    def for_words(self, wording: Wording) -> Silence:
        """The same with other counts of words, as of a run that was trained further."""
        return Silence(
            self._model, wording, self.classifier, self.evidencer.talk, self.least, self.fitted
        )

    def knows_schema(self) -> bool:
        """Whether training had most relations and keys of the knowledge base; else it is another.

        What is known of words says nothing about a schema that training did not have.
        """
        items = [(kind, text) for kind in ASKED for text in self.linker.kb.names_of_kind(kind)]
        return sum(item in self.wording.base for item in items) >= OWN_SCHEMA * len(items)

    def sure(self, question: str, judgement: Judgement[Prediction]) -> float:
        """How sure the first one is that was kept of a beam."""
        first = judgement.kept[0]
        said = Tried.of(first.prediction, None if first.result is None else first.result.denotation)
        return self.judged(question, tried_of(judgement), said, 0).confidence

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "least": round(self.least, 4),
            "fitted": vars(self.fitted),
            "features": list(FEATURES),
            "classifier": self.classifier.to_json(),
            "talk": {word: round(value, 3) for word, value in self.evidencer.talk.items()},
            "wording": self.wording.to_json(),
        }


def kind_of(
    evidence: Evidence, shares: Floats, tried: Sequence[Tried], best: Tried, called: str,
    is_false: bool = False,
) -> str:  # fmt: skip
    """The reason to refuse, by what was found; ``called`` is the name that nothing has, or "".

    ``is_false``: what the question supposes is plainly not so.

    Only what speaks for several reasons is left to the probabilities of `CLASSES`.
    """
    values = evidence.values
    if is_in_another_language(evidence):
        return "language"
    outside = {kind: float(shares[CLASSES.index(kind)]) for kind in OUTSIDE}
    of_outside = max(outside, key=lambda kind: outside[kind])
    is_english = any(evidence.question.words[at].lower() in english() for at in evidence.loose)
    if of_outside == "language" and not is_english:
        return "language"
    if of_outside == "none" and (not evidence.named or outside["none"] >= SURELY_NONE):
        return "none"
    asks = "?" in evidence.question.text and evidence.unknown
    if values["talk"] > 0 and not (values["explained"] or evidence.is_about or asks):
        return "none"  # its words come in talk
    is_asked = "?" in evidence.question.text or values["begins as known"] >= 1
    if not evidence.named and not called and not is_asked and not values["explained"]:
        return "none"
    likeliest = CLASSES[int(np.argmax(shares))]
    is_other = evidence.is_seldom or evidence.is_other_kind
    if likeliest in ("right", "wrong") and best.said and not is_other and _in_two_ways(tried, best):
        return "ambiguous"
    if called:
        return "entity"
    is_doubted = evidence.unknown or evidence.unsupported or evidence.contradicted
    is_likely = likeliest == "right" or (likeliest == "wrong" and not is_doubted)
    if best.said and is_likely and not is_other:
        return "unsure"
    if is_false:
        return "premise"
    return "schema" if is_doubted or is_other or not best.said else "unsure"


def is_in_another_language(evidence: Evidence) -> bool:
    """Whether words outside of names tell that a question is in another language.

    Those of another script or of another grammar do, and several with letters that English lacks;
    grammar may have been mended as a slip of the pen.
    """
    values, words = evidence.values, evidence.question.words
    mended = {letters(evidence.written.words[at]) for at in evidence.mended}
    is_grammar = values["other language"] > 0 or bool(mended & other_languages())
    accented = [
        at for at in evidence.unknown
        if words[at][:1].islower() and not words[at].isascii() and at not in evidence.named
    ]  # fmt: skip
    is_spoken = is_grammar or len(accented) >= ACCENTED or evidence.written.text[:1] in OPENING
    return values["other script"] >= FOREIGN or (is_spoken and values["common share"] < FOREIGN)


def _in_two_ways(tried: Sequence[Tried], best: Tried) -> bool:
    least = best.prediction.log_probability - TWO_WAYS
    return any(
        one.said and one.said != best.said and one.prediction.log_probability >= least
        for one in tried
    )


def linking_of(model: Model) -> tuple[Linker, Mentions]:
    """The linker of a model and what finds mentions of its schema, or new ones."""
    linker = getattr(model, "linker", None) or Linker(model.kb)
    mentions = getattr(model, "mentions", None)
    return linker, mentions or Mentions(Actions.of(model.kb).entries, linker)


def evidencer_of(model: Model, wording: Wording) -> Evidencer:
    """What collects evidence on the answers of a model, of questions as the model reads them."""
    return Evidencer(*linking_of(model), wording, getattr(model, "read", Question.of))


def tried_of(judged: Judgement[Prediction]) -> list[Tried]:
    """All predictions of a beam with what they say, the most probable first."""
    both = sorted([*judged.kept, *judged.dropped], key=lambda one: one.rank)
    return [
        Tried.of(one.prediction, None if one.result is None else one.result.denotation)
        for one in both
    ]


# --- fitting -------------------------------------------------------------------------------------


def fit(
    model: Model, training: Iterable[Example], answerable: Sequence[Example],
    outside: Sequence[BareQuestion], beams: int,
    advance: Callable[[int], None] = lambda count: None,
) -> Silence:  # fmt: skip
    """When a model is to be silent, fitted on questions that it was not trained on.

    ``training`` are those that it was trained on, ``outside`` have no answer and say why. Raises
    RefusalError where there are too few of either.
    """
    if len(answerable) < FEWEST or len(outside) < FEWEST:
        raise RefusalError(
            f"{len(answerable)} questions with an answer and {len(outside)} without are too few to"
            f" tell them apart; at least {FEWEST} of each are needed"
        )
    answered = answers_of(model, [*answerable, *outside], beams, advance)
    linker, _ = linking_of(model)
    return fit_on(model, Wording.of(training, linker), answered)


def answers_of(
    model: Model, questions: Iterable[Asked], beams: int,
    advance: Callable[[int], None] = lambda count: None,
) -> list[Answered]:  # fmt: skip
    """What a model says to questions, those without an answer among them."""
    found = []
    for asked in questions:
        found.append(_answered(model, asked, beams))
        advance(1)
    return found


@dataclass(frozen=True)
class Answered:
    """What a model says to a question, and which of `CLASSES` that is."""

    question: str
    tried: Sequence[Tried]
    best: Tried
    label: str

    @property
    def is_outside(self) -> bool:
        """Whether the question has no answer."""
        return self.label in OUTSIDE


def fit_on(model: Model, wording: Wording, answered: Sequence[Answered]) -> Silence:
    """When a model is to be silent, by what it says to questions.

    Those that have an answer count twice: as they are, and with words that the training never had
    in the place of some, as people have other words than a generator.
    """
    return fit_over([(model, answered)], wording)


def fit_over(parts: Sequence[tuple[Model, Sequence[Answered]]], wording: Wording) -> Silence:
    """The same by what a model says over several knowledge bases, each with its own questions.

    The least confidence is set on questions that were left out of the fit; of several knowledge
    bases, on one whose schema was left out with all of its questions.
    """
    random = Random("silence")
    found: list[Evidence] = []
    labels: list[str] = []
    folds_of: list[int] = []
    more: list[bool] = []  # whether it asks for more than its program says
    for part, (model, own) in enumerate(parts):
        evidencer = evidencer_of(model, wording)
        for number, one in enumerate(own):
            evidence = evidencer.of(one.question, one.tried, one.best)
            every = [evidence]
            if not one.is_outside:
                strange = in_other_words(evidence, wording, random)
                every.append(evidencer.of(strange, one.tried, one.best))
            found += every
            labels += [one.label] * len(every)
            more += [False] * len(every)
            if not one.is_outside and random.random() < FURTHER:
                other = evidencer.of(*_other(own, number, random))
                asked = asking_more(evidence, other, random)
                found.append(evidencer.of(asked, one.tried, one.best))
                labels.append("wrong")
                more.append(True)
            fold = number % FOLDS if len(parts) == 1 else part
            folds_of += [fold] * (len(found) - len(folds_of))
    answered = [one for _, own in parts for one in own]
    talks = _Talk(found, labels)
    for evidence, label in zip(found, labels, strict=True):
        evidence.values["talk"] = mean_talk(evidence.content, talks.without(evidence, label))
    vectors = np.array([evidence.vector() for evidence in found])
    numbers = np.array([CLASSES.index(label) for label in labels])
    shares = np.zeros((len(found), len(CLASSES)))
    folds = np.array(folds_of)
    for part in sorted(set(folds_of)):
        fitted_on = Classifier.fit(vectors[folds != part], numbers[folds != part], CLASSES)
        shares[folds == part] = fitted_on.probabilities(vectors[folds == part])
    sure, is_right, is_outside = shares[:, 0], numbers == 0, numbers > 1
    as_asked = ~np.array(more)
    if len(parts) == 1:
        least = least_confidence(sure, is_right, is_outside)
    else:
        told = sure[as_asked], is_right[as_asked], ~is_right[as_asked]
        least = least_confidence(*told, PREFERENCE_ELSEWHERE)
    outside = sum(one.is_outside for one in answered)
    fitted = Fitted(
        len(answered) - outside, outside, sum(one.label == "right" for one in answered),
        auroc(sure[as_asked], is_right[as_asked]),
        float((sure[as_asked & ~is_outside] >= least).mean()),
        float((sure[is_outside] < least).mean()),
    )  # fmt: skip
    classifier = Classifier.fit(vectors, numbers, CLASSES)
    return Silence(parts[0][0], wording, classifier, talks.all, least, fitted)


def in_other_words(evidence: Evidence, wording: Wording, random: Random) -> str:
    """A question with some words that are none, or others, in the place of its own.

    Names and words of grammar stay.
    """
    question, words = evidence.question, sorted(wording.counts)
    inner = stems(question)
    text, last = [], 0
    for at in sorted(evidence.loose):
        if inner[at] in SMALL or random.random() >= STRANGE:
            continue
        begin, end = question.places[at]
        other = question.words[at].lower()[::-1]
        if words and random.random() < MISLEADING:
            other = random.choice(words)
        text += [question.text[last:begin], other]
        last = end
    return "".join([*text, question.text[last:]])


def _other(
    answered: Sequence[Answered], number: int, random: Random
) -> tuple[str, Sequence[Tried], Tried]:
    """Another question that has an answer, with what was tried."""
    others = [at for at, one in enumerate(answered) if at != number and not one.is_outside]
    one = answered[random.choice(others or [number])]
    return one.question, one.tried, one.best


def asking_more(evidence: Evidence, other: Evidence, random: Random) -> str:
    """A question that asks for more than its program says: about another name, too, or again.

    What is added comes of another question.
    """
    text, added = evidence.question.text, other.question.text
    spans = [one.span for one in evidence.names if one.span is not None and one.fit == 1]
    names = [one for one in other.names if one.span is not None and one.fit == 1]
    if (asked := _asking(evidence)) and (more := _asking(other)) and random.random() < ITEMS:
        end = evidence.question.places[random.choice(asked)][1]
        word = other.question.words[random.choice(more)].lower()
        the = "the " if random.random() < 0.5 else ""
        return f"{text[:end]} and {the}{word}{text[end:]}"
    if spans and names and random.random() < BESIDE:
        first, last = random.choice(spans)
        begin, end = evidence.question.places[first][0], evidence.question.places[last][1]
        said = other.question.span(*(random.choice(names).span or (0, 0)))
        both = "both " if random.random() < 0.3 else ""
        between = random.choice((" and ", " and ", ", ", " or ", " as well as "))
        return f"{text[:begin]}{both}{text[begin:end]}{between}{said}{text[end:]}"
    between = random.choice((" and ", "? ", ", ", "? And "))
    return f"{text.rstrip(' ?.!')}{between}{added[:1].lower()}{added[1:]}"


def _asking(evidence: Evidence) -> list[int]:
    """The tokens of a question that say a relation or key of its program."""
    return [at for at in evidence.loose if at in evidence.explaining]


def _answered(model: Model, asked: Asked, beams: int) -> Answered:
    """What ``kopl ask`` would answer, and what it turns out to be."""
    [predictions] = model.predict([asked.question], beams=beams, constrained=True, guided=True)
    runs = PartialRuns(model.language.executor)
    judged = by_evidence(predictions, model.language.run, runs)
    first = judged.kept[0]
    best = Tried.of(first.prediction, None if first.result is None else first.result.denotation)
    if isinstance(asked, BareQuestion):
        label = asked.outside or "wrong"
    else:
        result = first.result if isinstance(first.result, Denoted) else None
        right = judge(asked, first.prediction, model.language, result).right
        label = "right" if right else "wrong"
    return Answered(asked.question, tried_of(judged), best, label)


class _Talk:
    """How much oftener words come in talk than in questions; a question's own ones left out."""

    def __init__(self, found: Sequence[Evidence], labels: Sequence[str]) -> None:
        self._talk: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        for evidence, label in zip(found, labels, strict=True):
            if (counter := self._of(label)) is not None:
                counter.update(set(evidence.content))
        self._talks = sum(label == "none" for label in labels)
        self._asks = sum(label in ("right", "wrong") for label in labels)

    def _of(self, label: str) -> Counter[str] | None:
        if label == "none":
            return self._talk
        return self._asked if label in ("right", "wrong") else None

    def _value(self, talk: int, asked: int) -> float:
        odds = np.log((talk + 0.3) / (self._talks + 1)) - np.log((asked + 0.3) / (self._asks + 1))
        return float(np.clip(odds, -3, 3))

    @property
    def all(self) -> dict[str, float]:
        """By all questions."""
        words = sorted({*self._talk, *self._asked})
        return {word: self._value(self._talk[word], self._asked[word]) for word in words}

    def without(self, evidence: Evidence, label: str) -> dict[str, float]:
        """By all questions but one, for the words of that one."""
        talk, asked = label == "none", label in ("right", "wrong")
        counts = (
            (word, self._talk[word] - talk, self._asked[word] - asked)
            for word in set(evidence.content)
        )
        return {word: self._value(one, other) for word, one, other in counts if one + other}


def least_confidence(
    sure: Floats, is_right: Any, is_other: Any, preference: float = PREFERENCE
) -> float:  # fmt: skip
    """The least confidence that answers most of what is right and refuses most of the others.

    It has the greatest sum of the two shares, that of the right ones so many times; of several,
    the least but one third.
    """
    if not is_right.any() or not is_other.any():
        return 0.5
    tried = np.round(np.arange(0.05, 0.96, 0.01), 2)
    sums = np.array([
        preference * (sure[is_right] >= one).mean() + (sure[is_other] < one).mean()
        for one in tried
    ])  # fmt: skip
    best = tried[sums >= sums.max() - 0.005]
    return float(best[len(best) // 3])


# --- kept with a run -----------------------------------------------------------------------------


def write_silence(run: Path, silence: Silence, weights: str, name: str = FILE) -> None:
    """Store it with a run for weights of a fingerprint; raises WriteError."""
    with writing(run / name) as file:
        json.dump({"format": FORMAT, "weights": weights, **silence.to_json()}, file)
        file.write("\n")


def read_silence(run: Path, model: Model, weights: str, name: str = FILE) -> Silence | None:
    """What is stored with a run for weights of a fingerprint, or None where nothing is.

    Nor where it was fitted by another version of the toolkit.
    Raises RefusalError when the file is damaged.
    """
    path = run / name
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RefusalError(f"{path}: cannot be read: {error}") from None
    try:
        read = json.loads(text)
        if read["format"] != FORMAT or tuple(read["features"]) != FEATURES:
            warnings.warn(
                f"{path} was written by another version, so that nothing is refused; kopl eval RUN"
                " --calibrate writes it again",
                stacklevel=2,
            )
            return None
        if read["weights"] != weights:
            return None
        classifier = Classifier.from_json(read["classifier"])
        if classifier.classes != CLASSES or len(classifier.mean) != len(FEATURES):
            raise ValueError("other classes")
        return Silence(
            model, Wording.from_json(read["wording"]), classifier,
            {str(word): float(value) for word, value in read["talk"].items()},
            float(read["least"]), Fitted(**read["fitted"]),
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise RefusalError(
            f"{path}: damaged ({error}); delete it, kopl eval RUN --calibrate writes it again"
        ) from None
