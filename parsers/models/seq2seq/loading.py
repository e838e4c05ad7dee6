"""Getting a language model of transformers: hub, folder, package, GGUF file, or a new small one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from kopl_base.errors import KoplError, SettingsError
from kopl_base.packages import needs
from parsers.settings import Seq2SeqSettings

# Seconds to wait for the hub before a model that is not on this machine is given up.
PATIENCE = 5.0
GGUF = ".gguf"
# What a model's name on the hub looks like; what does not is meant for a folder.
_HUB_NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
# Files one of which every tokenizer has.
_TOKENIZERS = (
    "tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model",
    "source.spm", "tokenizer_config.json",
)  # fmt: skip


class ModelError(KoplError):
    """A pretrained model that is not there or is of another kind."""

    kind = "model"


def library() -> Any:
    """The package transformers, made quiet; raises ModelError without it."""
    try:
        import transformers
    except ImportError:
        raise ModelError(needs("the model seq2seq", "transformers", extra="train")) from None
    found: Any = transformers
    found.logging.set_verbosity_error()
    found.logging.disable_progress_bar()
    return found


# What `check_pretrained` has loaded, for the `pretrained` behind it: one model at most.
_checked: list[tuple[Seq2SeqSettings, tuple[Any, Any, set[str]]]] = []


def check_pretrained(settings: Seq2SeqSettings) -> None:
    """Raise what `pretrained` raises; what it loads for that is kept until it is asked for."""
    _checked.clear()
    found = pretrained(settings)
    # Parameters that were drawn are to depend on the seed, which is not set yet.
    if not found[2]:
        _checked.append((settings, found))


def pretrained(settings: Seq2SeqSettings) -> tuple[Any, Any, set[str]]:
    """(tokenizer, model, names of the parameters that the weights did not bring).

    An encoder-decoder, or a decoder alone (a causal language model). Raises ModelError that says
    what to download and where to put it, and SettingsError where ``longest`` is more than the
    model has positions for.
    """
    if _checked and _checked[0][0] == settings:
        return _checked.pop()[1]
    found = library()
    name = settings.name
    with _explained(name):
        place = where_is(name)
        where = _asked(place)
        if "gguf_file" in where:
            place = str(Path(place).parent)
        elif Path(place).exists():
            _look_into(Path(place), settings.pretrained)
        config = found.AutoConfig.from_pretrained(place, **where)
        kind = _kind(found, config, name)
        check_longest(settings.longest, config, name)
        tokenizer = found.AutoTokenizer.from_pretrained(place, **where)
        if not settings.pretrained:
            model = kind.from_config(config)
            return tokenizer, model.float(), {name for name, _ in model.named_parameters()}
        where |= _as_numbers(found, where)
        model, told = kind.from_pretrained(
            place, output_loading_info=True, ignore_mismatched_sizes=True, **where
        )
    for key, weights, wanted in sorted(told["mismatched_keys"]):
        sizes = f"{key} is {_size(weights)}, by config.json {_size(wanted)}"
        raise ModelError(_advice(name, f"its weights have other sizes than its form ({sizes})"))
    missing = set(told["missing_keys"])
    if missing.issuperset(key for key, _ in model.named_parameters()):
        raise ModelError(_advice(name, "its weights are those of another kind of model"))
    return tokenizer, model.float(), missing


def is_causal(config: Any) -> bool:
    """Whether a model is a decoder alone, written to go on with texts."""
    models = library()
    return (
        not config.is_encoder_decoder
        and type(config) in models.MODEL_FOR_CAUSAL_LM_MAPPING
        # BERT and its like could go on with texts, but were not trained to.
        and type(config) not in models.MODEL_FOR_MASKED_LM_MAPPING
    )


def _kind(found: Any, config: Any, name: str) -> Any:
    if config.is_encoder_decoder:
        return found.AutoModelForSeq2SeqLM
    if is_causal(config):
        return found.AutoModelForCausalLM
    raise ModelError(_advice(name, f"a model of type {config.model_type} is none"))


def where_is(name: str) -> str:
    """Where a model is: the name itself, or what the installed package of that name carries.

    That is a folder with a form and a tokenizer, or a GGUF file. Any other name is taken for one
    of the hub.
    """
    if Path(name).exists():
        return name
    module = name.replace("-", "_")
    if os.sep not in name and module.isidentifier() and (spec := find_spec(module)) is not None:
        for folder in map(Path, spec.submodule_search_locations or ()):
            for config in sorted(folder.glob("**/config.json")):
                if (config.parent / "tokenizer.json").exists():
                    return str(config.parent)
            for file in sorted(folder.glob(f"**/*{GGUF}")):
                return str(file)
    return name


def _asked(place: str) -> dict[str, Any]:
    """How transformers is to be asked for a model; raises ModelError where a package is missing."""
    if not place.endswith(GGUF) or not Path(place).is_file():
        return reachable(place)
    if find_spec("gguf") is None:
        raise ModelError(needs(f"the GGUF file {place}", "gguf", extra="lora"))
    return {"local_files_only": True, "gguf_file": Path(place).name}


def _as_numbers(models: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """What else makes transformers read the blocks of a GGUF file as numbers: nothing else trains.

    Versions that cannot be told so always do.
    """
    packing = getattr(models, "GgufConfig", None)
    if "gguf_file" not in asked or packing is None:
        return {}
    return {"quantization_config": packing(dequantize=True)}


# --- adapters ------------------------------------------------------------------------------------


def check_adapters(settings: Seq2SeqSettings) -> None:
    """Raise ModelError or SettingsError where adapters (LoRA) cannot be trained."""
    if not settings.name or not settings.pretrained:
        raise SettingsError("seq2seq.lora trains beside pretrained weights: seq2seq.name is needed")
    if find_spec("peft") is None:
        raise ModelError(needs("adapters (seq2seq.lora)", "peft", extra="lora"))


def with_adapters(inner: Any, settings: Seq2SeqSettings, new: Iterable[int]) -> Any:
    """The model with trainable adapters beside its frozen weights (LoRA, Hu et al., 2022).

    ``new`` are the tokens that it did not have, whose vectors train, too.
    """
    peft: Any = import_module("peft")
    tokens = sorted(new)
    config = peft.LoraConfig(
        r=settings.lora, lora_alpha=2 * settings.lora, lora_dropout=settings.dropout,
        target_modules="all-linear", trainable_token_indices=tokens or None,
    )  # fmt: skip
    return peft.get_peft_model(inner, config).base_model.model


# Numbers at each end of a weight that tell models apart.
EDGE = 4096


def mark_of(tokenizer: Any, model: Any, drawn: Iterable[str]) -> str:
    """A digest of the pieces and of both ends of every weight, but for those ``drawn`` anew."""
    left = set(drawn)
    digest = hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode())
    for name, weight in sorted(model.named_parameters()):
        if name not in left:
            flat = weight.detach().flatten()
            digest.update(f"{name} {tuple(weight.shape)}".encode())
            digest.update(flat[:EDGE].numpy().tobytes() + flat[-EDGE:].numpy().tobytes())
    return digest.hexdigest()


# --- what is wrong with a folder -----------------------------------------------------------------


def _size(shape: Iterable[int]) -> str:
    return " × ".join(map(str, shape))


def _look_into(folder: Path, weights: bool) -> None:
    """Raise ModelError that says what a folder lacks to be a model's."""
    if not folder.is_dir():
        raise ModelError(_advice(str(folder), "it is a file, not a folder"))
    names = {file.name for file in folder.iterdir()}
    if not names:
        raise ModelError(_advice(str(folder), "the folder is empty"))
    if "config.json" not in names:
        raise ModelError(_advice(str(folder), "the folder has no config.json"))
    if not names.intersection(_TOKENIZERS):
        raise ModelError(_advice(str(folder), f"the folder has no tokenizer ({_TOKENIZERS[0]})"))
    if weights and not any(name.endswith((".safetensors", ".bin")) for name in names):
        raise ModelError(_advice(str(folder), "the folder has no weights (model.safetensors)"))


def check_longest(longest: int, config: Any, name: str) -> None:
    """Raise SettingsError where a model has no positions for so many tokens.

    ``config`` is the model's; models without a table of positions, such as T5, have no limit. A
    decoder alone has the question and the text in one row.
    """
    rows = 1 if config.is_encoder_decoder else 2
    for limit in ("max_position_embeddings", "max_encoder_position_embeddings",
                  "max_decoder_position_embeddings"):  # fmt: skip
        most = getattr(config, limit, None)
        if most is not None and rows * longest > most:
            both = " together" if rows > 1 else ""
            raise SettingsError(
                f"seq2seq.longest is {longest}, but {name} reads and writes at most {most} tokens"
                f"{both} ({limit} of its config.json); give --set seq2seq.longest={most // rows} or"
                " less"
            )


def saved_tokenizer(folder: Path) -> Any:
    """The tokenizer from the folder of a run."""
    with _explained(str(folder)):
        return library().AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


def saved(folder: Path) -> Any:
    """A model without its weights, from the folder of a run."""
    found = library()
    with _explained(str(folder)):
        config = found.AutoConfig.from_pretrained(str(folder), local_files_only=True)
        return _kind(found, config, str(folder)).from_config(config).float()


def small(settings: Seq2SeqSettings, tokenizer: Any) -> Any:
    """A new BART of the sizes in the settings."""
    found = library()
    size = settings.hidden
    config = found.BartConfig(
        vocab_size=len(tokenizer), d_model=size, max_position_embeddings=settings.longest + 2,
        encoder_layers=settings.layers, decoder_layers=settings.layers,
        encoder_attention_heads=settings.heads, decoder_attention_heads=settings.heads,
        encoder_ffn_dim=4 * size, decoder_ffn_dim=4 * size, dropout=settings.dropout,
        bos_token_id=tokenizer.bos_token_id, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=None, init_std=size**-0.5,
    )  # fmt: skip
    return found.BartForConditionalGeneration(config)


def reachable(name: str) -> dict[str, Any]:
    """How to ask for a model: the hub only for what is not on this machine.

    Raises ModelError where the hub is needed and cannot be reached.
    """
    if Path(name).exists():
        return {"local_files_only": True}
    if not _HUB_NAME.fullmatch(name):
        raise ModelError(_advice(name, "there is no such folder"))
    from huggingface_hub import constants, try_to_load_from_cache

    if isinstance(try_to_load_from_cache(name, "config.json"), str):
        return {"local_files_only": True}
    nowhere = "there is no such folder, and a model of that name was not downloaded before"
    if constants.HF_HUB_OFFLINE:
        raise ModelError(_advice(name, f"{nowhere} (HF_HUB_OFFLINE forbids it now)"))
    place = urlparse(constants.ENDPOINT)
    port = place.port or (80 if place.scheme == "http" else 443)
    try:
        socket.create_connection((place.hostname or "", port), PATIENCE).close()
    except OSError:
        raise ModelError(
            _advice(name, f"{nowhere} ({constants.ENDPOINT} cannot be reached)")
        ) from None
    return {}


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except (ModelError, SettingsError):
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        ImportError,
        RuntimeError,
        struct.error,
    ) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(_advice(name, first)) from None


def _advice(name: str, reason: str) -> str:
    return (
        f"{name!r} cannot be loaded as an encoder-decoder or a causal language model: {reason}."
        " Where there is a network, download it ('hf download facebook/bart-base --local-dir"
        " FOLDER': config, tokenizer and weights), copy the folder here and give"
        " --set seq2seq.name=FOLDER. Or train a small one from the beginning:"
        " --set seq2seq.name= (empty)"
    )
