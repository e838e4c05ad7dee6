"""Decoder-only models as parsers, and adapters beside frozen weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.typecheck import check
from kopl_base.errors import SettingsError
from tests.parsers.conftest import quick


@pytest.fixture(scope="module")
def folder(
    torch: Any, small_examples: list[Example], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A tiny Llama with its weights and tokenizer, as from the hub."""
    transformers = pytest.importorskip("transformers")
    from parsers.models.seq2seq.tokens import tokenizer_of

    torch.manual_seed(1)
    tokenizer = tokenizer_of([example.question for example in small_examples], 400)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
        tie_word_embeddings=True, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.bos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    found = tmp_path_factory.mktemp("hub") / "tiny-llama"
    tokenizer.save_pretrained(found)
    transformers.LlamaForCausalLM(config).save_pretrained(found)
    return found


def begun(
    run: Path, folder: Path, kb: KnowledgeBase, examples: list[Example], *changes: str
) -> Any:
    from parsers.training import begin

    settings = quick("seq2seq", "kopl", f"name={folder}", *changes)
    return begin(run, settings, kb, examples, examples[:4])


def test_weights_are_read_once_for_a_training(
    folder: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from parsers.models.seq2seq import loading
    from parsers.training import check

    read = []

    def counted(*given: Any, **options: Any) -> Any:
        read.append(given)
        return whole(*given, **options)

    kind = loading.library().AutoModelForCausalLM
    whole = kind.from_pretrained
    monkeypatch.setattr(kind, "from_pretrained", counted)
    check(quick("seq2seq", "kopl", f"name={folder}"))
    begun(tmp_path / "run", folder, small, small_examples)
    assert len(read) == 1
    begun(tmp_path / "another", folder, small, small_examples)
    assert len(read) == 2


@pytest.mark.parametrize("lora", [0, 8])
def test_learns_by_heart_and_is_loaded_again(
    lora: int, folder: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    if lora:
        pytest.importorskip("peft")
    from parsers.checkpoint import restore

    examples = small_examples[:6]
    epochs = 20 if lora else 60
    trainer = begun(
        tmp_path / "run", folder, small, examples, f"lora={lora}", f"epochs={epochs}",
        "learning_rate=0.01", "warm_up=0", "schedule=constant",
    )  # fmt: skip
    assert trainer.run()
    again = restore(tmp_path / "run", small)
    questions = [example.question for example in examples]
    found = again.predict(questions)
    right = [
        one[0].program == example.program for one, example in zip(found, examples, strict=True)
    ]
    losses = [json.loads(line)["loss"] for line in (tmp_path / "run/history.jsonl").open()]
    if lora:  # beside weights that know nothing, adapters learn little
        assert losses[-1] < 0.9 * losses[0]
    else:
        assert sum(right) >= 5
    trainer.model.network.load_state_dict(again.network.state_dict())
    assert trainer.model.predict(questions) == found


def packed(folder: Path, place: Path) -> None:
    """A GGUF file of a tiny Llama in a folder: matrices in blocks of eight bits, as usual."""
    gguf = pytest.importorskip("gguf")
    from safetensors.numpy import load_file

    form = json.loads((folder / "config.json").read_text())
    spoken = json.loads((folder / "tokenizer.json").read_text())["model"]
    place.parent.mkdir()
    file = gguf.GGUFWriter(place, "llama")
    file.add_context_length(form["max_position_embeddings"])
    file.add_embedding_length(form["hidden_size"])
    file.add_block_count(form["num_hidden_layers"])
    file.add_feed_forward_length(form["intermediate_size"])
    file.add_head_count(form["num_attention_heads"])
    file.add_head_count_kv(form["num_key_value_heads"])
    file.add_layer_norm_rms_eps(form["rms_norm_eps"])
    file.add_vocab_size(form["vocab_size"])
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("smollm")
    tokens = sorted(spoken["vocab"], key=lambda token: spoken["vocab"][token])
    file.add_token_list(tokens)
    file.add_token_types([1] * len(tokens))
    file.add_token_merges([" ".join(both) for both in spoken["merges"]])
    file.add_bos_token_id(form["bos_token_id"])
    file.add_eos_token_id(form["eos_token_id"])
    file.add_pad_token_id(form["pad_token_id"])
    called = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "post_attention_layernorm": "ffn_norm",
        "input_layernorm": "attn_norm", "model.embed_tokens": "token_embd",
        "model.layers": "blk", "model.norm": "output_norm",
    }  # fmt: skip
    for name, weights in load_file(folder / "model.safetensors").items():
        for one, other in called.items():
            name = name.replace(one, other)
        kind = gguf.GGMLQuantizationType.Q8_0
        if weights.ndim == 2:
            file.add_tensor(name, gguf.quantize(weights, kind), raw_dtype=kind)
        else:
            file.add_tensor(name, weights)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def test_weights_in_blocks_are_read_as_numbers_that_adapters_train_beside(
    folder: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    from parsers.checkpoint import restore
    from parsers.models.seq2seq import loading

    place = tmp_path / "carrier" / "tiny.gguf"
    packed(folder, place)
    tokenizer, model, missing = loading.pretrained(
        quick("seq2seq", "kopl", f"name={place}").seq2seq
    )
    assert not missing and {str(one.dtype) for one in model.parameters()} == {"torch.float32"}
    whole = loading.pretrained(quick("seq2seq", "kopl", f"name={folder}").seq2seq)[1]
    for (name, one), other in zip(model.named_parameters(), whole.parameters(), strict=True):
        if "q_proj" not in name and "k_proj" not in name:  # GGUF has their rows in another order
            assert (one - other).abs().max() < 0.01, name
    assert tokenizer.convert_tokens_to_ids("e") >= 0
    trainer = begun(tmp_path / "run", place, small, small_examples, "lora=4", "epochs=1")
    assert trainer.run() and restore(tmp_path / "run", small)


def test_questions_do_not_depend_on_those_beside_them(
    torch: Any, folder: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    """Short questions are filled up on their left, which no score may show."""
    model = begun(tmp_path / "run", folder, small, small_examples).model
    model.network.eval()
    items, left = model.prepare(small_examples[:5])
    assert not left
    together = model.network(model.collate(items)).loss
    alone = sum(model.network(model.collate([item])).loss for item in items)
    assert torch.allclose(together, alone, rtol=1e-4)
    questions = [example.question for example in small_examples[:5]]
    both = [one[0] for one in model.predict(questions)]
    for question, one in zip(questions, both, strict=True):
        [[other]] = model.predict([question])
        assert other.text == one.text
        assert other.log_probability == pytest.approx(one.log_probability, rel=1e-3)


@pytest.mark.parametrize("beams", [1, 3])
def test_untrained_and_constrained_only_programs_are_written(
    beams: int, folder: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    model = begun(tmp_path / "run", folder, small, small_examples).model
    found = model.predict([example.question for example in small_examples[:4]], beams=beams)
    for one in [prediction for predictions in found for prediction in predictions]:
        if one.program is None:
            assert "goes on after" in str(one.error)
        else:
            assert check(one.program)


def test_only_adapters_train_and_are_saved(
    folder: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    from safetensors import safe_open

    from parsers.checkpoint import restore
    from parsers.models.seq2seq.loading import ModelError

    run = tmp_path / "run"
    trainer = begun(run, folder, small, small_examples, "lora=4", "epochs=1", "validation=1")
    model = trainer.model
    trained = [name for name, p in model.network.named_parameters() if p.requires_grad]
    assert trained and all("lora_" in name or "trainable_tokens" in name for name in trained)
    assert sum(len(group["params"]) for group in model.groups()) == len(trained)
    assert trainer.run()
    with safe_open(run / "best.safetensors", "pt") as file:
        assert set(file.keys()) <= set(model.network.state_dict())
        assert not any("base_layer" in name for name in file.keys())  # noqa: SIM118
    weights = folder / "model.safetensors"
    kept = weights.read_bytes()
    from transformers import AutoModelForCausalLM

    other = AutoModelForCausalLM.from_pretrained(folder)
    other.model.norm.weight.data += 1
    other.save_pretrained(folder)
    try:
        with pytest.raises(Exception, match="others now than those that its adapters"):
            restore(run, small)
    finally:
        weights.write_bytes(kept)
    assert restore(run, small) and issubclass(ModelError, Exception)


def test_a_training_with_adapters_is_resumed(
    folder: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    from parsers.training import go_on

    changes = ("lora=4", "epochs=2", "validation=1", "schedule=constant", "warm_up=0")
    whole = begun(tmp_path / "whole", folder, small, small_examples, *changes)
    assert whole.run()
    begun(tmp_path / "half", folder, small, small_examples, *changes, "epochs=1").run()
    from dataclasses import replace

    from parsers.checkpoint import read_run

    settings, _ = read_run(tmp_path / "half")
    longer = replace(settings, training=replace(settings.training, epochs=2))
    resumed = go_on(tmp_path / "half", small, small_examples, small_examples[:4], settings=longer)
    assert resumed.run()
    for name, one in whole.model.network.state_dict().items():
        assert (one - resumed.model.network.state_dict()[name]).abs().max() < 1e-5, name


def test_what_cannot_be(
    folder: Path, small: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsers.models.seq2seq import loading
    from parsers.registry import model_class

    with pytest.raises(SettingsError, match=r"at most 512 tokens together.*longest=256 or less"):
        loading.pretrained(quick("seq2seq", "kopl", f"name={folder}", "longest=400").seq2seq)
    kind = model_class("seq2seq")
    with pytest.raises(SettingsError, match=r"seq2seq\.name is needed"):
        kind.check(quick("seq2seq", "kopl", "lora=4"))
    gguf = tmp_path / "carrier" / "small.gguf"
    gguf.parent.mkdir()
    gguf.write_bytes(b"GGUF")
    (gguf.parent / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert loading.where_is("carrier") == str(gguf)
    with pytest.raises(loading.ModelError, match="carrier"):
        loading.pretrained(quick("seq2seq", "kopl", "name=carrier").seq2seq)
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(loading.ModelError, match=r"GGUF file .*: the package gguf .*\[lora\]"):
        loading.pretrained(quick("seq2seq", "kopl", f"name={gguf}").seq2seq)
    with pytest.raises(loading.ModelError, match=r"lora\): the package peft .*\[lora\]"):
        kind.check(quick("seq2seq", "kopl", f"name={folder}", "lora=4"))
