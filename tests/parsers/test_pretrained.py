"""The pointer model with vectors of a pretrained encoder: a tiny new one stands for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from parsers.tokens import Question
from tests.parsers.conftest import quick


@pytest.fixture(scope="module")
def encoder(torch: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an encoder with random weights and a tokenizer of letters and some words."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("encoder")
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "nor", "##way", *letters]
    words += [f"##{letter}" for letter in letters]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=24, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_each_word_has_the_mean_of_its_pieces(encoder: str) -> None:
    from parsers.models.pointer.pretrained import load_encoder

    found = load_encoder(encoder)
    question = Question.of("the Norway  of x\u200b?")
    [alone] = found.of([question])
    assert alone.shape == (len(question.words), found.size) == (6, 24)
    # In a batch with a longer one, nothing changes; a word without pieces has no vector.
    together = found.of([question, Question.of("a much longer question than the other one is")])
    assert abs(alone.astype(float) - together[0].astype(float)).max() < 1e-2
    assert not alone[4].any() and alone[[0, 1, 2, 3, 5]].any(1).all()
    names = found.names(["Norway", "the", "Norway"])
    assert names.shape == (3, 24) and names[0].equal(names[2]) and not names[0].equal(names[1])


def test_many_questions_are_read_nearly_alike(
    encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsers.models.pointer import pretrained

    found = pretrained.load_encoder(encoder)
    questions = [Question.of(f"the Norway of {letter}?") for letter in "abcdefgh"]
    exact = found.of(questions)
    monkeypatch.setattr(pretrained, "MANY", 4)
    monkeypatch.setattr(pretrained, "computes_bfloat16", lambda: True)
    for one, other in zip(exact, found.of(questions), strict=True):
        assert one.dtype == other.dtype and one.any()
        assert abs(one.astype(float) - other.astype(float)).max() < 0.05


def test_learning_saving_and_asking_with_an_encoder(
    encoder: str, torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    from parsers.evaluation import evaluate
    from parsers.parser import Parser
    from parsers.training import begin

    settings = quick("pointer", "kopl", f"pointer.pretrained={encoder}", "epochs=25")
    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:8])
    assert trainer.run()
    loaded = Parser.load(tmp_path / "run", small)
    assert evaluate(loaded.model, small_examples, ()).accuracy == 1.0
    # The encoder's own weights are not part of the run.
    assert not any("embeddings" in name for name, _ in loaded.model.network.named_parameters())


def test_an_encoder_that_is_not_there_is_named_before_any_work(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsers.models.seq2seq.loading import ModelError
    from parsers.training import check

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("no-such-encoder", "__main__", str(tmp_path)):
        with pytest.raises(ModelError, match=r"the encoder .* cannot be loaded"):
            check(quick("pointer", "kopl", f"pointer.pretrained={name}"))


def test_a_run_without_its_encoder_or_with_another_is_refused(
    encoder: str, torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    """The encoder is known by what it is, not by its name."""
    from safetensors.torch import load_file, save_file

    from kopl_base.training.checkpoint import CheckpointError
    from parsers.checkpoint import restore
    from parsers.models.pointer.pretrained import load_encoder
    from parsers.training import begin

    copy, run = tmp_path / "copy", tmp_path / "run"
    shutil.copytree(encoder, copy)
    settings = quick("pointer", "kopl", f"pointer.pretrained={copy}")
    begin(run, settings, small, small_examples, small_examples[:8])
    restore(run, small, weights=None)
    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.0.output.dense.bias"][0] += 1
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    load_encoder.cache_clear()
    with pytest.raises(CheckpointError, match=r"run: .* is another one now"):
        restore(run, small, weights=None)
    shutil.rmtree(copy)
    load_encoder.cache_clear()
    with pytest.raises(CheckpointError, match=r"run: .*the encoder .* cannot be loaded"):
        restore(run, small, weights=None)


def test_starting_without_the_encoder_of_the_run_says_what_is_left_out(
    encoder: str, torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path,
    capsys: pytest.CaptureFixture[str], trained: Path,
) -> None:  # fmt: skip
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.training import begin, check

    run = tmp_path / "run"
    wanted = f"pointer.pretrained={encoder}"
    settings = quick("pointer", "kopl", wanted, "epochs=1")
    assert begin(run, settings, small, small_examples[:16], small_examples[:4]).run()
    new = quick("pointer", "kopl", f"start_from={run}")
    begin(tmp_path / "new", new, small, small_examples[:16], small_examples[:4])
    assert "left out, as this model has none such: vectors.weight" in capsys.readouterr().out
    with pytest.raises(CheckpointError, match="has no pretrained encoder"):
        check(quick("pointer", "kopl", wanted, f"start_from={trained}"))
