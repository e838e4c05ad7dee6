"""Paraphrases by a local model: a tiny random one, made here."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from generation.paraphrase.local import LocalModel
from generation.paraphrase.model import Reply, Request
from kopl.example import Example, read_examples, write_examples
from kopl.text import read
from kopl_base.chat import AskError
from kopl_base.errors import KoplError
from kopl_cli import main

torch = pytest.importorskip("torch", reason="torch is not installed: local models are not tested")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

WORDS = "what is the area of land how large who leads it ? [ ] user system Norway Chad"
TEMPLATE = (
    "{% for m in messages %}<s> {{ m['role'] }} {{ m['content'] }} {% endfor %}"
    "{% if messages[0]['role'] == 'system' and messages | length == 1 %}"
    "{{ raise_exception('nobody asks') }}{% endif %}"
)

Make = Callable[..., str]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes a folder with a random model and a tokenizer trained here."""

    def made(kind: str, template: bool = False, room: int = 64) -> str:
        folder = tmp_path_factory.mktemp(kind)
        inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="<unk>"))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        special = ["<unk>", "<s>", "</s>", "<pad>"]
        trainer = tokenizers.trainers.WordLevelTrainer(special_tokens=special)
        inner.train_from_iterator([WORDS], trainer)
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=inner, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
            pad_token="<pad>" if kind == "bart" else None,
        )  # fmt: skip
        if template:
            tokenizer.chat_template = TEMPLATE
        tokenizer.save_pretrained(folder)
        torch.manual_seed(0)
        common = {"vocab_size": len(tokenizer), "bos_token_id": 1, "eos_token_id": 2}
        if kind == "gpt2":
            config = transformers.GPT2Config(
                n_embd=16, n_layer=1, n_head=2, n_positions=room, **common
            )
            model = transformers.GPT2LMHeadModel(config)
        else:
            config = transformers.BartConfig(
                d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, pad_token_id=3,
                decoder_start_token_id=2, forced_eos_token_id=None, max_position_embeddings=room,
                **common,
            )  # fmt: skip
            model = transformers.BartForConditionalGeneration(config)
        model.save_pretrained(folder)
        return str(folder)

    return made


def requests(*texts: str, seed: int = 0) -> list[Request]:
    return [Request.of([{"role": "user", "content": text}], seed, 0) for text in texts]


TEXTS = ("what is the area of Norway ?", "who leads Chad ?", "how large is it", "Norway ?")


@pytest.mark.parametrize("kind", ["gpt2", "bart"])
@pytest.mark.parametrize("template", [False, True])
def test_a_reply_depends_on_its_own_request_alone(kind: str, template: bool, make: Make) -> None:
    model = LocalModel(make(kind, template), length=8)
    together = model.ask(requests(*TEXTS), threading.Event())
    assert together == [model.ask([one], threading.Event())[0] for one in requests(*TEXTS)]
    assert together == model.ask(requests(*TEXTS), threading.Event())
    assert together != model.ask(requests(*TEXTS, seed=1), threading.Event())
    for text, reply in zip(TEXTS, together, strict=True):
        assert isinstance(reply, Reply)
        assert not reply.text.startswith(text) and "<" not in reply.text
        # A reply that did not end was cut short when it had all its tokens.
        assert len(reply.text.split()) <= 8
    assert any(isinstance(one, Reply) and one.text for one in together)


def test_replies_are_drawn_by_their_probability(make: Make) -> None:
    """The shares of the first token are those of the model, at that temperature."""
    folder = make("gpt2")
    model = LocalModel(folder, length=1, temperature=0.7, batch=1)
    plain = transformers.GPT2LMHeadModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(["Norway ?"], return_tensors="pt")
    with torch.no_grad():
        logits = plain(input_ids=inputs["input_ids"]).logits[0, -1].double()
    wanted = torch.softmax(logits / 0.7, 0)
    drawn = torch.zeros_like(wanted)
    asked = [Request("", [{"role": "user", "content": "Norway ?"}], seed) for seed in range(2000)]
    for reply in model.ask(asked, threading.Event()):
        assert isinstance(reply, Reply)
        ids = tokenizer(reply.text, add_special_tokens=False)["input_ids"]
        if ids:  # special tokens are not shown
            drawn[ids[0]] += 1 / len(asked)
    assert float((drawn - wanted)[4:].abs().max()) < 0.03
    likeliest = LocalModel(folder, length=1, temperature=0).ask(asked[:3], threading.Event())
    best = tokenizer.decode([int(logits.argmax())], skip_special_tokens=True)
    assert {reply.text for reply in likeliest if isinstance(reply, Reply)} == {best}


def test_a_prompt_that_is_too_long(make: Make) -> None:
    model = LocalModel(make("gpt2", room=24), length=8)
    long, short = model.ask(requests("Norway " * 30, "Norway ?"), threading.Event())
    assert isinstance(long, AskError) and "the prompt is too long for it: 30 tokens" in str(long)
    assert isinstance(short, Reply)
    stop = threading.Event()
    stop.set()
    assert [str(one) for one in model.ask(requests("a", "b"), stop)] == [
        "stopped before it was asked"
    ] * 2


def test_a_template_that_does_not_take_the_prompt(make: Make) -> None:
    model = LocalModel(make("gpt2", template=True))
    request = Request.of([{"role": "system", "content": "x"}], 0, 0)
    with pytest.raises(AskError, match="does not take the prompt: nobody asks") as caught:
        model.ask([request], threading.Event())
    assert caught.value.always


def test_the_command(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, prompt = tmp_path / "q.jsonl", tmp_path / "prompt.txt"
    program = 'QueryAttr(Find("{}"), "area")'
    write_examples(path, [
        Example(f"What is the area of {name}?", read(program.format(name)), id=name)
        for name in ("Norway", "Chad")
    ])  # fmt: skip
    prompt.write_text("{canonical}", "utf-8")
    folder = make("bart")
    outs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for out, batch in zip(outs, ("3", "16"), strict=True):
        assert main([
            "paraphrase", "model", str(path), "-o", str(out), "--local", folder, "-n", "6",
            "--prompt", str(prompt), "--batch", batch, "--length", "12", "--names", "ignore",
            "--meaning", "ignore",
        ]) == 0  # fmt: skip
        assert "of 12 paraphrases, of 2 questions" in capsys.readouterr().err
    assert outs[0].read_bytes() == outs[1].read_bytes()
    for example in read_examples(outs[0]):
        assert example.extra["paraphrase"]["model"] == folder
        assert example.canonical == f"What is the area of {(example.id or '').split('#')[0]}?"


def test_models_that_cannot_be_had(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    empty = tmp_path / "empty"
    empty.mkdir()
    whole = Path(make("gpt2"))
    (whole / "model.safetensors").unlink()
    damaged = Path(make("gpt2"))
    (damaged / "model.safetensors").write_bytes(b"x" * 100)
    for name in (str(empty), str(whole), str(damaged), "no-such-owner/no-such-model"):
        with pytest.raises(KoplError, match=r"cannot be loaded: .*download the model's files"):
            LocalModel(name)
    with pytest.raises(KoplError, match="there is no such folder; download the model's files"):
        LocalModel(str(tmp_path / "none"))
    with pytest.raises(KoplError, match="cannot be put on nowhere"):
        LocalModel(make("bart"), device="nowhere")


def test_without_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", cast(ModuleType, None))
    with pytest.raises(KoplError, match="packages torch and transformers are not installed"):
        LocalModel("x")
