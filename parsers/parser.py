"""A trained parser, ready to answer questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kb import KnowledgeBase, load
from kopl.answer_forms import AnswerForm, Is
from kopl.executor import Denoted
from kopl.program import Call
from kopl_base.errors import KoplError
from kopl_base.training.distributed import device_of
from parsers.checkpoint import Description, load_own, read_run, restore
from parsers.constrain.rerank import PartialRuns, by_evidence
from parsers.evaluation.confidence import (
    Decoding,
    Temperature,
    read_temperature,
    weights_mark,
)
from parsers.glosses import Encode, Glossary, load_encoder
from parsers.languages import Prediction
from parsers.linking import unsaid
from parsers.models.base import Model
from parsers.refusals import Refusal
from parsers.refusals.evidence import Tried
from parsers.refusals.silence import FILE as REFUSALS
from parsers.refusals.silence import FILE_ELSEWHERE as REFUSALS_ELSEWHERE
from parsers.refusals.silence import Silence, read_silence, tried_of
from parsers.tokens import unreadable

BEAMS = 4
# So many answers of a refused reading are told.
SHOWN = 3
# What is said to a question in another language is surer than this, or the question is refused.
LEAST_OF_GLOSS = 0.6


def _check(question: str) -> None:
    """Raise KoplError for a question that cannot be asked."""
    if not any(letter.isalnum() for letter in question):
        raise KoplError("the question is empty: it has no letter and no digit")
    if reason := unreadable(question):
        raise KoplError(reason)


def _options(top: int, beams: int, least: float | None) -> dict[str, Any]:
    """What is wanted of answers; raises ValueError for numbers out of bounds."""
    if least is not None and not 0 <= least <= 1:
        raise ValueError(f"least_confidence ({least}) must be from 0 to 1")
    if top < 1 or beams < 1:
        raise ValueError(f"top ({top}) and beams ({beams}) must be at least 1")
    return {"top": top, "beams": max(beams, top), "least": least}


@dataclass(frozen=True)
class Answer:
    """A prediction for a question, and what running it gave (or why it failed).

    ``temperature`` is what its probability is calibrated with, None where the run has none;
    ``is_moved``: on another knowledge base than that of the training. ``unnamed``: the names in
    the program that nothing in the question is nearly spelt as, where the answer would be a "no".
    ``sure``: how probable it is that the answer is right, where the run was fitted for that;
    ``refused``: why it is not to be given, None where it is. ``read_as``: the English words that
    a question in another language was read as, None where it was read as it stands.
    """

    prediction: Prediction
    result: Denoted | None
    error: KoplError | None
    temperature: Temperature | None = None
    is_moved: bool = False
    unnamed: tuple[str, ...] = ()
    sure: float | None = None
    refused: Refusal | None = None
    read_as: str | None = None

    @property
    def program(self) -> Call | None:
        """The program, or None where the prediction says none."""
        return self.prediction.program

    @property
    def probability(self) -> float:
        """The probability that the model gives the prediction."""
        return self.prediction.probability

    @property
    def confidence(self) -> float:
        """The share of such answers that are right, as far as the run's calibration tells.

        The probability itself where the run is not calibrated.
        """
        if self.sure is not None:
            return self.sure
        if self.temperature is None:
            return self.probability
        return self.temperature.confidence(self.probability)

    @property
    def is_foreign(self) -> bool:
        """Whether it is refused as the question is in another language."""
        return self.refused is not None and self.refused.kind == "language"

    @property
    def is_calibrated(self) -> bool:
        """Whether the confidence is more than the model's probability.

        Not on another knowledge base than that of the training.
        """
        fitted = self.temperature is not None and self.temperature.is_fitted
        return not self.is_moved and (fitted or self.sure is not None)

    @property
    def form(self) -> AnswerForm | None:
        """How the denotation is read as yes or no, None where it is not."""
        return self.prediction.form

    @property
    def answers(self) -> tuple[str, ...]:
        """What is said: the strings of the denotation, or "yes" or "no".

        Nothing where running failed or the question is refused, and no "no" about names that the
        question does not have.
        """
        if self.result is None or self.unnamed or self.refused is not None:
            return ()
        return tuple(self.prediction.answers(self.result.denotation))

    @property
    def text(self) -> str | None:
        """What is said where that is a single string, or None."""
        return self.answers[0] if len(self.answers) == 1 else None


class Parser:
    """Answers questions over the knowledge base that it was trained for.

    >>> Parser.load("runs/default").ask("what is the capital of Norway?")[0].text
    'Oslo'
    """

    def __init__(self, model: Model, description: Description, folder: Path | None = None) -> None:
        self.model, self.description, self.folder = model, description, folder
        # Whether it is used on another knowledge base than that of its training.
        self.is_moved = model.kb.fingerprint != description.fingerprint
        self.settings, self.kb = model.settings, model.kb
        # What the program of a question in another language is found by, where that is wanted.
        self.encode: Encode | None = None
        # By whether decoding is constrained, and whether it is guided.
        self._temperatures: dict[tuple[bool, bool], Temperature | None] = {}

    @cached_property
    def silence(self) -> Silence | None:
        """What tells when questions are refused, where the run was fitted for that.

        On a knowledge base most of whose relations and keys training did not have, what was fitted
        on other such ones. Raises RefusalError for a damaged file.
        """
        if self.folder is None or not (self.folder / REFUSALS).exists():
            return None
        mark = weights_mark(self.folder)
        found = read_silence(self.folder, self.model, mark)
        if found is None or found.knows_schema():
            return found
        return read_silence(self.folder, self.model, mark, REFUSALS_ELSEWHERE)

    def prepare(self) -> None:
        """Make what is made once, so that no question waits for it: lists of names and of words.

        Raises RefusalError for a damaged file.
        """
        if self.silence is not None:
            self.silence.prepare()
        example = f"What is the capital of {next(iter(self.kb.names_of_kind('entity')), 'it')}?"
        for _ in self.ask_many([example], top=3):
            pass

    @classmethod
    def load(
        cls, run: Path | str, kb: KnowledgeBase | str | Path | None = None, *,
        device: str = "auto", new_kb: bool = False, other_languages: bool = False,
    ) -> Parser:  # fmt: skip
        """The best network of a run, on its own knowledge base unless another copy is given.

        ``new_kb``: the knowledge base may be one that the run never saw; relations, keys, concepts
        and units are then chosen by what they are called. ``other_languages``: a question that
        would be refused as one in another language is read by the meaning of its words, in a run
        that refuses (`parsers.glosses`). Raises CheckpointError when the run is damaged, or without
        ``new_kb`` when the knowledge base is another one, and GlossError without the encoder.
        """
        encode = load_encoder() if other_languages else None
        folder = Path(run)
        _, description = read_run(folder)
        if kb is None:
            kb = load_own(folder, description.kb, "--kb KB")
        if not isinstance(kb, KnowledgeBase):
            kb = load(kb)
        model = restore(folder, kb, new_kb=new_kb)
        model.network.to(device_of(device))
        model.network.eval()
        parser = cls(model, description, folder)
        parser.encode = encode
        return parser

    def temperature(self, decoding: Decoding) -> Temperature | None:
        """The temperature stored with the run for a kind of decoding, or None.

        Where only the other way of choosing was calibrated, with or without execution, it is
        that one's; its ``kind`` tells. Raises CalibrationError for a damaged file.
        """
        if self.folder is None:
            return None
        kinds = decoding.kind, replace(decoding, guided=not decoding.guided).kind
        found = (read_temperature(self.folder, kind) for kind in kinds)
        return next((one for one in found if one is not None), None)

    def ask(
        self, question: str, *, top: int = 1, trace: bool = False, constrained: bool = True,
        guided: bool = True, beams: int = BEAMS, least_confidence: float | None = None,
    ) -> list[Answer]:  # fmt: skip
        """At most ``top`` predictions for a question, each executed, the best first.

        ``guided``: of the beam (as many as ``top`` at least), what does not run or finds nothing is
        dropped, and what is not even a hundredth as probable as the best; the others come by what
        was asked and by what is known (`by_evidence`). Where the best finds nothing, the pointer
        model searches once more without calls that find nothing. Otherwise they come in the order
        of their probabilities.

        What is less sure than ``least_confidence`` is refused, on a run that was fitted for that,
        where choice is guided and decoding constrained; None: than that which the run was fitted
        with. With 0 nothing is refused. Raises KoplError for a question without words.
        """
        _check(question)
        options = _options(top, beams, least_confidence)
        options |= {"trace": trace, "constrained": constrained, "guided": guided}
        return self._answered(question, None, options)

    def ask_many(
        self, questions: Sequence[str], *, top: int = 1, trace: bool = False,
        constrained: bool = True, guided: bool = True, beams: int = BEAMS,
        least_confidence: float | None = None,
    ) -> Iterator[list[Answer] | KoplError]:  # fmt: skip
        """What `ask` gives for each question, in their order; predicted together, which is faster.

        Only the last digits of a probability may be others. What is wrong with a question comes in
        its place, and each is given before the next is executed.
        """
        options = _options(top, beams, least_confidence)
        options |= {"trace": trace, "constrained": constrained, "guided": guided}
        wrong: dict[int, KoplError] = {}
        for at, question in enumerate(questions):
            try:
                _check(question)
            except KoplError as error:
                wrong[at] = error
        asked = [question for at, question in enumerate(questions) if at not in wrong]
        predicted = iter(
            self.model.predict(
                asked, beams=options["beams"], constrained=constrained, guided=guided, together=True
            )
            if asked
            else ()
        )
        for at, question in enumerate(questions):
            if at in wrong:
                yield wrong[at]
                continue
            predictions = next(predicted)
            try:
                yield self._answered(question, predictions, options)
            except KoplError as error:
                yield error

    def _answered(
        self, question: str, predictions: list[Prediction] | None, options: dict[str, Any]
    ) -> list[Answer]:
        """The answers, with those to its words in English where it is in another language."""
        answers = self._asked(question, predictions, **options)
        if self.glossary is None or not any(answer.is_foreign for answer in answers[:1]):
            return answers
        gloss = self.glossary.gloss(question)
        if gloss is None:
            return answers
        in_english = self._asked(gloss.text, None, **options)
        if not any(
            one.refused is None and one.confidence >= LEAST_OF_GLOSS for one in in_english[:1]
        ):
            return answers
        return [replace(answer, read_as=gloss.text) for answer in in_english]

    @cached_property
    def glossary(self) -> Glossary | None:
        """What puts questions in other languages into English, where that is wanted."""
        if self.encode is None or self.silence is None:
            return None
        return Glossary(self.encode, self.silence.linker, self.silence.wording)

    def _asked(
        self, question: str, predictions: list[Prediction] | None, top: int, trace: bool,
        constrained: bool, guided: bool, beams: int, least: float | None,
    ) -> list[Answer]:  # fmt: skip
        """The answers to a question as it stands, predicted now unless it is already."""
        if predictions is None:
            [predictions] = self.model.predict(
                [question], beams=beams, constrained=constrained, guided=guided
            )
        # What choosing by execution found out need not be found out again, but for a trace.
        known: list[tuple[Prediction, object]] = [(one, None) for one in predictions]
        tried: list[Tried] = []
        if guided:
            language = self.model.language
            judged = by_evidence(predictions, language.run, PartialRuns(language.executor))
            tried = tried_of(judged)
            known = [(one.prediction, None if trace else one.result) for one in judged.kept]
        kind = constrained, guided
        if kind not in self._temperatures:
            self._temperatures[kind] = self.temperature(Decoding(beams, constrained, guided))
        temperature = self._temperatures[kind]
        answers = []
        for prediction, result in known[:top]:
            try:
                if not isinstance(result, Denoted):
                    result = self.model.language.run(prediction, trace=trace)
                unnamed = self._unnamed(prediction, result, question)
                answers.append(
                    Answer(prediction, result, None, temperature, self.is_moved, unnamed)
                )
            except KoplError as error:
                answers.append(Answer(prediction, None, error, temperature, self.is_moved))
        if not guided or not constrained:
            return answers
        if self.silence is None:
            return [self._doubted(one, least) for one in answers]
        return [self._judged(self.silence, one, question, tried, least) for one in answers]

    def _doubted(self, answer: Answer, least: float | None) -> Answer:
        """The answer, refused where a model whose refusals were not fitted is not sure itself."""
        wanted = self.model.least_probability if least is None else least
        if not self.model.least_probability or answer.probability >= wanted:
            return answer
        said = answer.answers[:SHOWN]
        message = f"the best reading may well be wrong: {answer.prediction.text}"
        return replace(answer, refused=Refusal("unsure", message, said))

    def _judged(
        self, silence: Silence, answer: Answer, question: str, tried: list[Tried],
        least: float | None,
    ) -> Answer:  # fmt: skip
        """The answer with how sure it is, and why it is refused if it is."""
        denotation = None if answer.result is None else answer.result.denotation
        best = Tried.of(answer.prediction, denotation)
        found = silence.judged(question, tried, best, least, bool(answer.unnamed))
        return replace(answer, sure=found.confidence, refused=found.refusal)

    def _unnamed(self, prediction: Prediction, result: Denoted, question: str) -> tuple[str, ...]:
        """The names that a question does not have, where the answer would be "no"."""
        program, form = prediction.program, prediction.form
        if program is None or form is None or prediction.answers(result.denotation) != ["no"]:
            return ()
        names = [form.name] if isinstance(form, Is) else []
        return tuple(unsaid(program, question, self.kb, names, nearly=True))
