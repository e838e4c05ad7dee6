"""Predicting within a bound of memory, and in smaller parts where memory does not suffice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kopl.example import Example

Runs = Callable[[str, str], Path]


def test_halves_are_tried_until_they_fit(torch: Any) -> None:
    from kopl_base.training.memory import Parts

    asked: list[int] = []

    def work(things: Sequence[int]) -> list[int]:
        asked.append(len(things))
        if len(things) > 3 or 7 in things:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [10 * thing for thing in things]

    parts = Parts()
    found = parts.work(list(range(12)), work, lambda thing: -thing, 8)
    assert found == [10 * n if n != 7 else -7 for n in range(12)]
    assert asked[:3] == [8, 4, 2] and max(asked[2:]) <= 3
    assert parts.given_up == 1 and parts.halved >= 2
    # The next call tries somewhat more again, up to its bound.
    asked.clear()
    assert parts.work(list(range(100, 109)), work, lambda thing: -thing, 2) == [
        10 * n for n in range(100, 109)
    ]
    assert max(asked) == 2


def test_other_errors_are_raised(torch: Any) -> None:
    from kopl_base.training.memory import Parts

    def work(things: Sequence[int]) -> list[int]:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes"):
        Parts().work([1, 2], work, lambda thing: thing, 2)


@pytest.mark.parametrize("beams", [1, 3])
def test_the_bound_changes_no_prediction(
    torch: Any, runs: Runs, small_examples: list[Example], beams: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The probabilities, too: with one row at a time they are those of all rows together."""
    from parsers.parser import Parser

    model: Any = Parser.load(runs("seq2seq", "kopl")).model
    questions = [example.question for example in small_examples[:7]]
    rows: list[int] = []
    scores = type(model.network).scores

    def noted(network: Any, batch: Any) -> Any:
        rows.append(len(batch.questions))
        return scores(network, batch)

    monkeypatch.setattr(type(model.network), "scores", noted)
    whole = model.predict(questions, beams=beams)
    assert rows == [7 * beams]
    rows.clear()
    model.memory = 0.0
    single = model.predict(questions, beams=beams)
    assert rows == [1] * (7 * beams)
    for one, other in zip(whole, single, strict=True):
        assert [found.text for found in one] == [found.text for found in other]
        for left, right in zip(one, other, strict=True):
            assert left.log_probability == pytest.approx(right.log_probability, abs=1e-4)


def test_an_evaluation_survives_too_little_memory(
    torch: Any, runs: Runs, small_examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every search of more than two questions fails, and so does one question of its own."""
    from parsers.evaluation import evaluate
    from parsers.parser import Parser

    model: Any = Parser.load(runs("seq2seq", "kopl")).model
    before = evaluate(model, small_examples[:6], ())
    written = type(model).written
    unlucky = small_examples[3].question

    def short_of_memory(self: Any, questions: Sequence[str], *rest: Any) -> Any:
        if len(questions) > 2 or unlucky in questions:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return written(self, questions, *rest)

    monkeypatch.setattr(type(model), "written", short_of_memory)
    after = evaluate(model, small_examples[:6], ())
    for number, (one, other) in enumerate(zip(before.judged, after.judged, strict=True)):
        if number == 3:
            assert not other.right and "too little memory" in str(other.error)
        else:
            assert one.prediction.text == other.prediction.text and other.right
    assert model.parts.halved == 2 and model.parts.given_up == 1


def test_what_is_estimated_grows_with_what_is_kept(torch: Any) -> None:
    """The figures of BART-base: 12 layers' keys and values, and the scores of 50,265 words."""
    transformers = pytest.importorskip("transformers")
    from parsers.models.seq2seq.model import scoring_bytes, search_bytes

    bart = transformers.BartConfig(
        d_model=768, encoder_layers=6, decoder_layers=6, decoder_attention_heads=12
    )
    cached = 2 * 6 * 512 * 768 * 4
    assert cached < search_bytes(bart, 64, 512, 1) < 1.5 * cached
    assert 2 * cached < search_bytes(bart, 64, 512, 4) < 2.5 * cached
    assert scoring_bytes(bart, 150) == 2 * 4 * 150 * bart.vocab_size
    small = transformers.T5Config(d_model=64, d_kv=8, num_heads=4, num_layers=2, vocab_size=100)
    assert search_bytes(small, 10, 20, 1) >= 4 * 2 * 2 * 32 * 30
