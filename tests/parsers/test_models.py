"""Every model in every output language: learnt by heart, saved, loaded, resumed, asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.text import read
from kopl.typecheck import check
from parsers import registry
from tests.parsers.conftest import PAIRS, quick

Runs = Callable[[str, str], Path]

every = pytest.mark.parametrize(("model", "language"), PAIRS)


def test_every_model_and_language_is_tested() -> None:
    models, languages = registry.MODELS.own, registry.LANGUAGES.own
    # What is not trained is tested apart (test_llm.py).
    trained = [model for model in models if registry.model_class(model).trains]
    assert [(model, name) for model in trained for name in languages] == PAIRS


@every
def test_learns_by_heart_and_is_loaded_again(
    model: str, language: str, runs: Runs, small_examples: list[Example]
) -> None:
    from parsers.evaluation import evaluate
    from parsers.parser import Parser

    parser = Parser.load(runs(model, language))
    assert (parser.model.name, parser.model.language.name) == (model, language)
    report = evaluate(parser.model, small_examples, parser.description.answers)
    assert report.accuracy == 1.0
    assert report.shares()["same program"].value == 1.0
    texts = [one.prediction.text for one in report.judged]
    assert all(text.startswith(("SELECT", "ASK")) == (language == "sparql") for text in texts)


@every
def test_asks(model: str, language: str, runs: Runs) -> None:
    from parsers.parser import Parser

    parser = Parser.load(runs(model, language))
    answers = parser.ask("What is the capital of Papua New Guinea?", top=3, trace=True)
    assert answers[0].text == "Port Moresby"
    assert answers[0].result is not None and answers[0].result.trace
    assert len(answers) <= 3
    assert 0 < answers[0].probability <= 1


@every
def test_greedy_and_beams_agree(
    model: str, language: str, runs: Runs, small_examples: list[Example]
) -> None:
    """What a trained model is sure of comes first; predictions come in the order of questions."""
    from parsers.parser import Parser

    found = Parser.load(runs(model, language)).model
    questions = [example.question for example in small_examples[::5]] + [" "]
    greedy = found.predict(questions)
    beams = found.predict(questions, beams=3)
    assert greedy[-1][0].error is not None and beams[-1][0].error is not None
    for first, several in zip(greedy[:-1], beams[:-1], strict=True):
        assert len(first) == 1 and 1 <= len(several) <= 3
        assert several[0].text == first[0].text
        assert several[0].probability == pytest.approx(first[0].probability, rel=1e-3)
        logs = [one.log_probability for one in several]
        assert logs == sorted(logs, reverse=True)
        assert len({one.text for one in several}) == len(several)


def losses(trainer: Any, stop_after: int | None = None) -> list[float]:
    """The losses of a training, which is stopped as by a signal after some steps."""
    found: list[float] = []
    original = trainer.step

    def noted(*arguments: Any) -> Any:
        step = original(*arguments)
        found.append(step.loss)
        trainer._stop = len(found) == stop_after
        return step

    trainer.step = noted
    assert trainer.run() is (stop_after is None)
    return found


@every
def test_resuming_gives_the_losses_of_an_unbroken_run(
    model: str, language: str, torch: Any, small: KnowledgeBase, small_examples: list[Example],
    tmp_path: Path,
) -> None:  # fmt: skip
    """Stopped in the middle of an epoch; dropout on, so that the random state matters."""
    from parsers.training import begin, go_on

    short = quick(model, language, "epochs=3", "batch=16", f"{model}.dropout=0.3", "validation=1")
    data = (small_examples, small_examples[:1])
    whole = losses(begin(tmp_path / "whole", short, small, *data))
    assert len(whole) == 12
    parts = losses(begin(tmp_path / "parts", short, small, *data), stop_after=6)
    rest = losses(go_on(tmp_path / "parts", small, *data))
    assert parts + rest == whole
    kept = [
        [json.loads(line) for line in (tmp_path / name / "history.jsonl").read_text().splitlines()]
        for name in ("whole", "parts")
    ]
    for record in (*kept[0], *kept[1]):
        del record["seconds"], record["examples a second"]
    assert kept[0] == kept[1]


@every
def test_what_is_no_question_is_told(
    model: str, language: str, torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """Nothing of it is read, neither alone nor among others, and nothing is learnt of it."""
    from parsers.registry import model_class

    made = model_class(model).create(quick(model, language), small, small_examples)
    odd = {"": "no words", " \n": "no words", "why " * 1001: "1001 words; at most 1000",
           "how many \udcff?": "no UTF-8"}  # fmt: skip
    known = small_examples[0]
    found = made.predict([known.question, *odd])
    assert found[:1] == made.predict([known.question])
    for [prediction], message in zip(found[1:], odd.values(), strict=True):
        assert prediction.program is None and message in str(prediction.error)
    assert made.predict(list(odd), beams=3) == found[1:]
    items, left = made.prepare([replace(known, question=text) for text in odd] + [known])
    assert len(items) == 1
    for (_, reason), message in zip(left, odd.values(), strict=True):
        assert message in reason


@every
def test_an_untrained_model_writes_what_can_be_read(
    model: str, language: str, torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """Constrained; and unconstrained at least nothing is raised."""
    from parsers.registry import model_class

    torch.manual_seed(5)
    made = model_class(model).create(quick(model, language), small, small_examples)
    questions = [example.question for example in small_examples[::9]] + ["?"]
    for [prediction] in made.predict(questions, constrained=False):
        assert (prediction.program is None) <= (prediction.error is not None or language != "kopl")
    for [prediction] in made.predict(questions):
        if prediction.program is not None:
            assert check(read(str(prediction.program)))
        elif model == "pointer":
            pytest.fail(f"{prediction}")


@every
def test_parts_of_a_batch_give_the_step_of_the_whole(
    model: str, language: str, torch: Any, small: KnowledgeBase, small_examples: list[Example],
    tmp_path: Path,
) -> None:  # fmt: skip
    from parsers.training import begin

    weights = []
    for part in (0, 5):
        settings = quick(model, language, "epochs=1", "batch=56", f"part={part}", "validation=1")
        folder = tmp_path / str(part)
        found = losses(begin(folder, settings, small, small_examples, small_examples[:1]))
        weights.append(found)
    assert weights[0] == pytest.approx(weights[1], rel=1e-5)
    from safetensors.torch import load_file

    whole, parts = (load_file(tmp_path / name / "last.safetensors") for name in ("0", "5"))
    for name, tensor in whole.items():
        assert torch.allclose(tensor, parts[name], atol=2e-4), name


def test_a_run_of_before_scores_without_what_is_known(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """A state that does not say of how many parts a score is made; moved, too."""
    from parsers.models.pointer.network import OLD_WEIGHTS, WEIGHTS

    kind = registry.model_class("pointer")
    model: Any = kind.create(quick(), small, small_examples)
    state = model.state()
    del state["weights"]
    old: Any = kind.restore(quick(), small, state, Path())
    assert len(model.network.common_weights) == len(WEIGHTS) > OLD_WEIGHTS
    for one in (old, old.moved(), old.extended(small_examples)):
        assert len(one.network.common_weights) == OLD_WEIGHTS
        assert one.predict(["What is the capital of Norway?"])[0]
