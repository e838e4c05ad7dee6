"""Constraints in the search of transformers, with a tiny BART from a configuration."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.errors import ProgramError
from kopl.text import read, read_serialised, write_serialised
from kopl.typecheck import is_well_typed

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
pytest.importorskip("transformers", reason="transformers is not installed (extra 'train')")

from parsers.constrain import kopl_constraint  # noqa: E402
from parsers.constrain.generate import (  # noqa: E402
    after,
    logits_processor,
    prefix_allowed_tokens_fn,
)
from tests.parsers.constrain_support import table_of  # noqa: E402

PROGRAMS = [
    'QueryName(Relate(Find("France"), "capital", "forward"))',
    'Count(FilterConcept(FindAll(), "country"))',
    'QueryAttr(Find("Paris"), "area")',
    'VerifyNum(QueryAttr(Find("Berlin"), "population"), "3000000", ">")',
]


@pytest.fixture(scope="module")
def world(tiny: KnowledgeBase) -> tuple[Any, Any]:
    """(tokenizer, table) with few tokens."""
    texts = [write_serialised(read(program)) for program in PROGRAMS]
    return table_of("byte-level", tiny, texts)


def bart(size: int, seed: int) -> Any:
    """An untrained BART of two small layers."""
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    config = BartConfig(
        vocab_size=size, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, dropout=0.0,
        max_position_embeddings=700, bos_token_id=0, pad_token_id=1, eos_token_id=2,
        decoder_start_token_id=2, forced_bos_token_id=0, forced_eos_token_id=None,
    )  # fmt: skip
    return BartForConditionalGeneration(config).eval()


def search(model: Any, questions: Any, beams: int, most: int = 40, **more: Any) -> Any:
    """The sequences that a search finds, with their scores."""
    return model.generate(
        input_ids=questions, attention_mask=torch.ones_like(questions), num_beams=beams,
        num_return_sequences=beams, max_new_tokens=most, do_sample=False, early_stopping=True,
        length_penalty=0.0, return_dict_in_generate=True, output_scores=True,
        forced_bos_token_id=0, **more,
    )  # fmt: skip


@pytest.mark.parametrize("beams", [1, 4])
def test_untrained_models_write_programs(world: Any, tiny: KnowledgeBase, beams: int) -> None:
    """Greedy and with beams, three questions at a time."""
    table = world[1]
    constraint = kopl_constraint(tiny, table, values="kb", most_calls=4)
    for seed in range(1):
        model = bart(len(table), seed)
        questions = torch.randint(6, len(table), (3, 7))
        found = search(
            model, questions, beams, 400, logits_processor=[logits_processor(constraint, begin=2)]
        )
        by_function = search(
            model, questions, beams, 400,
            prefix_allowed_tokens_fn=prefix_allowed_tokens_fn(constraint, begin=2),
        )  # fmt: skip
        assert found.sequences.tolist() == by_function.sequences.tolist()
        best = found.sequences[::beams]
        for row in best.tolist():
            assert row[:2] == [2, 0]
            state = after(constraint, row[2:])
            if not state.ended:  # a number may go on to its bound, which a search may not reach
                continue
            assert not state.lost
            assert is_well_typed(read_serialised(table.text(row[2:])))


def test_beams_agree_where_the_best_types_anyway(world: Any, tiny: KnowledgeBase) -> None:
    """A model that has learnt some of the programs, at several stages of learning."""
    made, table = world
    constraint = kopl_constraint(tiny, table)
    texts = [write_serialised(read(program)) for program in PROGRAMS]
    rows = [[0, *made.encode(text).ids, 2] for text in texts]
    width = max(map(len, rows))
    labels = torch.tensor([row + [-100] * (width - len(row)) for row in rows])
    questions = torch.tensor([[20 + n, 30 + n, 40 + n, 2] for n in range(len(rows))])
    model = bart(len(table), 0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    agreed = mended = 0
    for _ in range(3):
        model.train()
        for _ in range(40):
            loss = model(input_ids=questions, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            free = search(model, questions, 2)
            held = search(
                model, questions, 2, logits_processor=[logits_processor(constraint, begin=2)]
            )
        for row in range(len(rows)):
            first, second = (
                [t for t in found.sequences[2 * row].tolist() if t != 1] for found in (free, held)
            )
            # Names that are not there are not allowed, though they type.
            if first[-1] == 2 and constraint.rejected(first[2:]) is None:
                # Where the searches part, what is held has a better score.
                scores = [found.sequences_scores[2 * row].item() for found in (free, held)]
                assert first == second or scores[1] >= scores[0] - 1e-5
                agreed += first == second
                continue
            mended += _types(table.text(second[2:]))
    assert agreed >= 3 and mended >= 1


def _types(text: str) -> bool:
    try:
        return is_well_typed(read_serialised(text))
    except ProgramError:
        return False


def test_rows_may_change_places(world: Any, tiny: KnowledgeBase) -> None:
    """The processor follows rows by their tokens, whatever their order."""
    table = world[1]
    constraint = kopl_constraint(tiny, table)
    processor = logits_processor(constraint, begin=1)
    rng = random.Random(1)
    rows = [[2], [2], [2]]
    for _ in range(12):
        scores = processor(torch.tensor(rows), torch.zeros(3, len(table) + 5))
        for row, kept in zip(rows, scores, strict=True):
            allowed = torch.isfinite(kept).nonzero().flatten().tolist()
            assert allowed == constraint.allowed(after(constraint, row[1:])).tolist()
        rows = [rows[rng.randrange(3)] for _ in rows]
        rows = [
            [*row, rng.choice(constraint.allowed(after(constraint, row[1:])).tolist())]
            for row in rows
        ]
    before = processor(torch.zeros(2, 0, dtype=torch.long), torch.ones(2, 4))
    assert before.tolist() == [[1.0] * 4] * 2
    with pytest.raises(ValueError, match="negative"):
        logits_processor(constraint, begin=-1)
