"""Dropout of a batch in parts or over processes: the same numbers as of the whole batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from tests.parsers.conftest import PAIRS, quick

DROPPING = {
    "pointer": ["dropout=0.4", "forget=0.3", "forget_items=0.3", "forget_mentions=0.3"],
    "rnn": ["dropout=0.4", "layers=2"],
    "seq2seq": ["dropout=0.4", "layers=2"],
}


def trainer_of(folder: Path, model: str, language: str, small: Any, examples: Any) -> Any:
    from parsers.training import begin

    settings = quick(model, language, *DROPPING[model])
    return begin(folder, settings, small, examples, examples[:1])


@pytest.mark.parametrize(("model", "language"), PAIRS)
def test_the_parts_of_a_batch_drop_what_the_whole_drops(
    model: str, language: str, torch: Any, small: KnowledgeBase, small_examples: list[Example],
    tmp_path: Path,
) -> None:  # fmt: skip
    """Rows as two processes take them, of questions and programs of different lengths."""
    trainer = trainer_of(tmp_path / "run", model, language, small, small_examples)
    optimizer, items = trainer.optimizer, trainer.train[:9]
    trainer.model.network.train()
    batch = trainer.model.collate(items)

    def loss(*parts: list[int], done: int = 5) -> tuple[float, list[Any]]:
        trainer.model.network.zero_grad()
        total = 0.0
        for rows in parts:
            scores = optimizer._scores(batch, rows, len(items), done)
            scores.loss.backward()
            total += float(scores.loss.detach())
        parameters = trainer.model.network.parameters()
        return total, [p.grad.clone() for p in parameters if p.grad is not None]

    whole, gradients = loss(list(range(9)))
    assert loss(list(range(9)))[0] == whole  # drawn from seed and step alone
    assert loss(list(range(9)), done=6)[0] != pytest.approx(whole, rel=2e-5)
    for parts in ([0, 2, 4, 6, 8], [1, 3, 5, 7]), ([8], [0, 1, 2], [3, 4, 5, 6, 7]):
        summed, others = loss(*parts)
        assert summed == pytest.approx(whole, rel=2e-6)
        for one, other in zip(gradients, others, strict=True):
            assert torch.allclose(one, other, rtol=1e-3, atol=1e-4 * float(one.abs().max() + 1))


@pytest.mark.parametrize("masked", ["no", "bool", "float", "causal"])
def test_attention_drops_by_example(torch: Any, masked: str) -> None:
    """As torch's own attention with the same draws for the whole batch."""
    from kopl_base.training.optimizer import RowsOfBatch

    attention = torch.nn.functional.scaled_dot_product_attention
    query, key, value = (torch.randn(6, 2, length, 8) for length in (4, 5, 5))
    options: dict[str, Any] = {"dropout_p": 0.4}
    mask = torch.rand(6, 1, 4, 5) < 0.7
    mask[..., 0] = True
    if masked == "causal":
        options["is_causal"] = True
    elif masked != "no":
        options["attn_mask"] = mask if masked == "bool" else torch.where(mask, 0.0, -1e4)
    torch.manual_seed(1)
    whole = attention(query, key, value, **options)
    for rows in ([0, 2, 4], [1, 5], [3]):
        torch.manual_seed(1)
        with RowsOfBatch(rows, 6):
            own = dict(options)
            if "attn_mask" in own:
                own["attn_mask"] = own["attn_mask"][rows]
            found = attention(query[rows], key[rows], value[rows], **own)
        assert torch.allclose(found, whole[rows], atol=1e-5)


def test_nothing_is_dropped_where_nothing_is_trained(torch: Any) -> None:
    from kopl_base.training.optimizer import RowsOfBatch

    ones = torch.ones(3, 4)
    with RowsOfBatch([0, 1, 2], 6):
        assert torch.equal(torch.nn.functional.dropout(ones, 0.5, training=False), ones)
        assert torch.equal(torch.nn.Dropout(0.5).eval()(ones), ones)
        inside = torch.nn.functional.dropout(ones.clone(), 0.5, inplace=True)
    assert set(inside.unique().tolist()) <= {0.0, 2.0}
