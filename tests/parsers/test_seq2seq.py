"""Encoder-decoders of transformers: from a folder, tokenizers, constraints, what is missing."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.typecheck import check
from tests.parsers.conftest import quick


@pytest.fixture(scope="module")
def folder(
    torch: Any, small_examples: list[Example], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A tiny BART with its weights and a tokenizer without our marks, as from the hub."""
    transformers = pytest.importorskip("transformers")
    from parsers.models.seq2seq.loading import small as small_bart
    from parsers.models.seq2seq.tokens import tokenizer_of

    torch.manual_seed(1)
    tokenizer = tokenizer_of([example.question for example in small_examples], 400)
    found = tmp_path_factory.mktemp("hub") / "tiny-bart"
    settings = quick("seq2seq").seq2seq
    assert isinstance(small_bart(settings, tokenizer), transformers.BartForConditionalGeneration)
    model = small_bart(settings, tokenizer)
    # What BART's own configuration brings for summaries must not matter.
    model.generation_config.no_repeat_ngram_size = 3
    model.generation_config.forced_bos_token_id = 0
    tokenizer.save_pretrained(found)
    model.save_pretrained(found)
    return found


def test_a_local_folder_is_fine_tuned(
    torch: Any, folder: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    from transformers import AutoModelForSeq2SeqLM

    from parsers.checkpoint import restore
    from parsers.training import begin

    settings = quick("seq2seq", "kopl", f"name={folder}", "epochs=1", "validation=1")
    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:1])
    model: Any = trainer.model
    before = AutoModelForSeq2SeqLM.from_pretrained(folder).get_input_embeddings().weight
    after = model.network.inner.get_input_embeddings().weight
    assert torch.equal(after[: len(before)], before) and len(after) == len(before) + 2
    # All weights came from the folder: one group with the small rate.
    assert [group["lr"] for group in model.groups()] == [3e-5]
    assert trainer.run()
    # The run needs the folder no more.
    folder.rename(folder.with_name("away"))
    try:
        again = restore(tmp_path / "run", small, weights="last")
    finally:
        folder.with_name("away").rename(folder)
    questions = [example.question for example in small_examples[:3]]
    assert again.predict(questions) == model.predict(questions)


def test_without_its_weights_all_parameters_are_new(
    folder: Path, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    from parsers.registry import model_class

    settings = quick("seq2seq", "kopl", f"name={folder}", "pretrained=false")
    model = model_class("seq2seq").create(settings, small, small_examples)
    assert [group["lr"] for group in model.groups()] == [0.004]


def test_untrained_and_constrained_only_programs_are_written(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    from parsers.registry import model_class

    torch.manual_seed(11)
    model = model_class("seq2seq").create(quick("seq2seq"), small, small_examples)
    questions = [example.question for example in small_examples[:6]]
    ended = 0
    for predictions in model.predict(questions, beams=3):
        for prediction in predictions:
            if prediction.program is None:
                assert "goes on after 128 tokens" in str(prediction.error)
                continue
            assert check(prediction.program)
            ended += 1
    assert ended > 0


def test_marks_are_single_tokens_and_texts_come_back(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    from parsers.registry import model_class

    model: Any = model_class("seq2seq").create(quick("seq2seq"), small, small_examples)
    items, left = model.prepare(small_examples)
    assert len(items) == len(small_examples) and not left
    tokenizer = model.tokens.tokenizer
    written = tokenizer.convert_ids_to_tokens(list(items[0].target))
    assert written[0] == "<s>" and written[-1] == "</s>"
    assert written.count("<arg>") == 3 and written.count("<func>") == 2
    assert "Ġ" not in written  # no token is spent on the blanks around marks
    strange = Example("Where is ☃ \U0001f3d4 漢?", small_examples[0].program)
    [item], _ = model.prepare([strange])
    assert model.tokens.text(item.question).strip() == strange.question


def test_names_and_variables_of_queries_are_whole(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """A query of many tokens is learnt late: it has not much more of them than its program."""
    from parsers.registry import model_class

    lengths = []
    for language in ("kopl", "sparql"):
        model: Any = model_class("seq2seq").create(
            quick("seq2seq", language), small, small_examples
        )
        items, left = model.prepare(small_examples)
        assert not left
        lengths.append(sum(item.length for item in items))
    pieces = model.tokens.tokenizer.convert_ids_to_tokens(list(items[0].target))
    assert "Ġ<pred:name>" in pieces and "Ġ?e" in pieces
    assert lengths[1] < 2.5 * lengths[0]  # in pieces as of BART, more than three times


def test_what_is_too_long_is_told(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    from parsers.registry import model_class

    model = model_class("seq2seq").create(quick("seq2seq"), small, small_examples)
    long = Example("why " * 200, small_examples[0].program)
    items, left = model.prepare([*small_examples[:2], long])
    assert len(items) == 2 and left[0][0] is long and "seq2seq.longest" in left[0][1]
    assert model.predict([long.question])[0]  # it is cut, not refused


def test_missing_characters_become_tokens(torch: Any) -> None:
    """A vocabulary without braces, as T5's."""
    tokenizers = pytest.importorskip("tokenizers")
    from transformers import PreTrainedTokenizerFast

    from parsers.models.seq2seq.tokens import with_tokens

    words = {"<unk>": 0, "</s>": 1, "a": 2}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", eos_token="</s>")
    with_tokens(tokenizer, ["<arg>"], ["a { a }"])
    numbers = tokenizer("a { a }", add_special_tokens=False).input_ids
    assert 0 not in numbers
    assert tokenizer.convert_ids_to_tokens(numbers) == ["a", "{", "a", "}"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("someone/nothing-like-this", "cannot be reached|cannot be loaded"),
        ("folder", "cannot be loaded as an encoder-decoder"),
    ],
)
def test_models_that_are_not_there(
    small: KnowledgeBase, small_examples: list[Example], tmp_path: Path, name: str, reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pytest.importorskip("transformers")
    from huggingface_hub import constants

    from parsers.models.seq2seq.loading import ModelError
    from parsers.registry import model_class

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    if name == "folder":
        name = str(tmp_path)
        (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError, match=f"(?s)(?=.*({reason}))(?=.*hf download)"):
        model_class("seq2seq").create(
            quick("seq2seq", "kopl", f"name={name}"), small, small_examples
        )


@pytest.mark.parametrize("longest", ["57", "64"])
def test_a_bound_of_any_length_is_trained_and_predicted_with(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path, longest: str
) -> None:
    """Texts are filled up to multiples of 8, but never beyond the positions of the model."""
    from parsers.training import begin

    settings = quick("seq2seq", "kopl", f"longest={longest}", "epochs=1")
    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:1])
    model: Any = trainer.model
    assert model.network.inner.config.max_position_embeddings == int(longest) + 2
    # The longest question and text that are learnt, and a question that is cut.
    item = dataclasses.replace(
        model.items(small_examples[:1])[0][0],
        question=(5,) * int(longest), target=(5,) * int(longest),
    )  # fmt: skip
    assert model.network(model.collate([item])).loss.isfinite()
    assert model.collate([item]).targets.shape == (1, int(longest))
    assert len(model.predict(["who " * 200], constrained=False)) == 1


def test_a_bound_beyond_the_positions_is_refused(folder: Path, torch: Any) -> None:
    from kopl_base.errors import SettingsError
    from parsers.training import check as check_settings

    most = json.loads((folder / "config.json").read_text())["max_position_embeddings"]
    check_settings(quick("seq2seq", "kopl", f"name={folder}", f"longest={most}"))
    with pytest.raises(SettingsError, match=rf"longest is {most + 1}.* at most {most} tokens"):
        check_settings(quick("seq2seq", "kopl", f"name={folder}", f"longest={most + 1}"))


def test_what_a_folder_lacks_is_said_in_a_sentence(
    folder: Path, torch: Any, tmp_path: Path
) -> None:
    from parsers.models.seq2seq.loading import ModelError
    from parsers.training import check as check_settings

    def told(name: object) -> str:
        with pytest.raises(ModelError) as found:
            check_settings(quick("seq2seq", "kopl", f"name={name}", "longest=20"))
        return str(found.value)

    place = tmp_path / "bart"
    assert "there is no such folder" in told(place)
    assert "there is no such folder" in told("./brat")
    place.mkdir()
    assert "the folder is empty" in told(place)
    shutil.copytree(folder, place, dirs_exist_ok=True)
    config = json.loads((place / "config.json").read_text())
    assert "it is a file, not a folder" in told(place / "config.json")
    (place / "config.json").write_text(json.dumps({**config, "d_model": 2 * config["d_model"]}))
    message = told(place)
    assert "its weights have other sizes than its form (" in message
    assert "ignore_mismatched_sizes" not in message
    (place / "config.json").write_text(json.dumps({"model_type": "bert"}))
    assert "a model of type bert is none" in told(place)
    (place / "config.json").write_text(json.dumps(config))
    (place / "model.safetensors").rename(tmp_path / "kept")
    assert "no weights (model.safetensors)" in told(place)
    for file in place.glob("tokenizer*"):
        file.unlink()
    assert "no tokenizer (tokenizer.json)" in told(place)
    (place / "config.json").unlink()
    (place / "notes.txt").write_text("")
    assert "the folder has no config.json" in told(place)
