"""The paper's RNN: word vectors, guides, the search, what its vocabularies lack."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase, ReadError
from kopl.example import Example
from kopl.text import read
from kopl.types import Kind
from tests.parsers.conftest import quick


def test_word_vectors_are_taken_over(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    from parsers.registry import model_class

    path = tmp_path / "glove.txt"
    path.write_text("2 4\ncapital 1 2 3 4\nunheard 0 0 0 0\nnorway 0.5 0 -1e-1 2\n")
    settings = quick("rnn", "kopl", f"glove={path}", "embedding=4")
    model: Any = model_class("rnn").create(settings, small, small_examples)
    weight = model.network.words.weight
    rows = {word: weight[model.vocabulary.number(word)].tolist() for word in ("capital", "norway")}
    assert rows["capital"] == [1, 2, 3, 4]
    assert rows["norway"] == pytest.approx([0.5, 0, -0.1, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("capital 1 2\n", "line 1: a word and 4 numbers were expected, found 2"),
        ("capital 1 2 3 x\n", "line 1: not numbers"),
        ("unheard 1 2 3 4\n", "none of the questions' words"),
    ],
)
def test_word_vectors_that_do_not_fit(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path, text: str,
    message: str,
) -> None:  # fmt: skip
    from parsers.registry import model_class

    path = tmp_path / "glove.txt"
    path.write_text(text)
    settings = quick("rnn", "kopl", f"glove={path}", "embedding=4")
    with pytest.raises(ReadError, match=message):
        model_class("rnn").create(settings, small, small_examples)


@pytest.mark.parametrize("language", ["kopl", "sparql"])
def test_what_never_occurred_cannot_be_learnt(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], language: str
) -> None:
    from parsers.registry import model_class

    model = model_class("rnn").create(quick("rnn", language), small, small_examples)
    new = Example("What is Laos?", read('Find("Laos")'))
    items, left = model.prepare([new, small_examples[0]])
    assert [item.example for item in items] == [small_examples[0]]
    assert left[0][0] is new and "Laos" in left[0][1]


def test_arguments_fit_their_kinds(torch: Any, small: KnowledgeBase) -> None:
    from parsers.models.decoding_constraints import (
        ArgumentConstraint,
        FunctionConstraint,
        numbers_by_kind,
    )

    texts = ["", "Norway", "area", "capital", "country", "5", "5 square kilometre", "5 furlong",
             "1998", "=", "forward", "greater"]  # fmt: skip
    found = numbers_by_kind(texts, small)
    named = {kind: {texts[number] for number in numbers} for kind, numbers in found.items()}
    assert named[Kind.NAME] == {"Norway", "country"}
    assert named[Kind.KEY] == {"area"} and named[Kind.RELATION] == {"capital"}
    assert named[Kind.QUANTITY] == {"5", "5 square kilometre", "1998"}
    assert named[Kind.TIME] == {"5", "1998"}
    assert named[Kind.OPERATOR] == {"="} and named[Kind.COMPARATIVE] == {"greater"}
    guide = ArgumentConstraint("Relate", found)
    assert [texts[n] for n in guide.allowed(1)] == ["forward"] and guide.allowed(2).tolist() == [0]
    # No text is a superlative, so SelectAmong cannot be written.
    functions = FunctionConstraint(["", "FindAll", "SelectAmong", "SelectBetween", "Count"] + [
        name for name in __import__("kopl.functions", fromlist=["x"]).FUNCTIONS
        if name not in ("FindAll", "SelectAmong", "SelectBetween", "Count")], found)  # fmt: skip
    state = functions.advance(functions.start(), 1)
    assert 4 in functions.allowed(state) and 2 not in functions.allowed(state)


@pytest.mark.parametrize("width", [1, 2, 40])
def test_the_search_finds_what_trying_all_finds(torch: Any, width: int) -> None:
    """Scores depend on the token before; a wide beam finds the best of all sequences."""
    from parsers.models.search import search

    torch.manual_seed(2)
    size, longest = 4, 3
    table = torch.randn(2, size, size)  # question × token before × token

    def following(previous: Any, hidden: Any, rows: Any, states: Any) -> Any:
        return table[rows, previous], hidden

    found = search(
        following, torch.zeros(1, 2, 1), begin=0, end=0, width=width, longest=longest,
        constraints=[None, None],
    )  # fmt: skip
    logs = table.log_softmax(-1)
    for question, paths in enumerate(found):
        every = {}
        for length in range(longest + 1):
            for tokens in itertools.product(range(1, size), repeat=length):
                steps = [*tokens, 0] if length < longest else list(tokens)
                before = [0, *tokens]
                every[tokens] = sum(
                    float(logs[question, b, t]) for b, t in zip(before, steps, strict=False)
                )
        for path in paths:
            assert path.log_probability == pytest.approx(every[path.tokens], abs=1e-5)
        if width == 40:
            best = sorted(every, key=lambda tokens: -every[tokens])[:40]
            assert [path.tokens for path in paths] == best
        assert math.fsum(math.exp(path.log_probability) for path in paths) <= 1 + 1e-6


def test_a_constraint_that_allows_nothing_ends_a_hypothesis(torch: Any) -> None:
    import numpy as np

    from parsers.models.search import search

    class Stuck:
        def start(self) -> int:
            return 0

        def allowed(self, state: int) -> Any:
            return np.array([2] if state == 0 else [], np.int64)

        def advance(self, state: int, token: int) -> int:
            return state + 1

    [paths] = search(
        lambda previous, hidden, rows, states: (torch.zeros(len(rows), 5), hidden),
        torch.zeros(1, 1, 1), begin=0, end=0, width=3, longest=9, constraints=[Stuck()],
    )  # fmt: skip
    assert [path.tokens for path in paths] == [(2,)]
