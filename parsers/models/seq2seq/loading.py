"""Getting an encoder-decoder of transformers: from the hub, from a folder, or a new small one."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from kb.errors import KoplError
from kb.packages import needs
from parsers.settings import Seq2SeqSettings

# Seconds to wait for the hub before a model that is not on this machine is given up.
PATIENCE = 5.0


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


def pretrained(settings: Seq2SeqSettings) -> tuple[Any, Any, set[str]]:
    """(tokenizer, model, names of the parameters that the weights did not bring).

    Raises ModelError that says what to download and where to put it.
    """
    found = library()
    with _explained(settings.name):
        where = reachable(settings.name)
        tokenizer = found.AutoTokenizer.from_pretrained(settings.name, **where)
        if not settings.pretrained:
            config = found.AutoConfig.from_pretrained(settings.name, **where)
            model = found.AutoModelForSeq2SeqLM.from_config(config)
            return tokenizer, model.float(), {name for name, _ in model.named_parameters()}
        model, told = found.AutoModelForSeq2SeqLM.from_pretrained(
            settings.name, output_loading_info=True, **where
        )
        return tokenizer, model.float(), set(told["missing_keys"])


def saved(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and a model without its weights, from the folder of a run."""
    found = library()
    with _explained(str(folder)):
        tokenizer = found.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        config = found.AutoConfig.from_pretrained(str(folder), local_files_only=True)
        return tokenizer, found.AutoModelForSeq2SeqLM.from_config(config).float()


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
    from huggingface_hub import constants, try_to_load_from_cache

    if isinstance(try_to_load_from_cache(name, "config.json"), str) or constants.HF_HUB_OFFLINE:
        return {"local_files_only": True}
    place = urlparse(constants.ENDPOINT)
    port = place.port or (80 if place.scheme == "http" else 443)
    try:
        socket.create_connection((place.hostname or "", port), PATIENCE).close()
    except OSError:
        raise ModelError(_advice(name, f"{constants.ENDPOINT} cannot be reached")) from None
    return {}


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except ModelError:
        raise
    except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(_advice(name, first)) from None


def _advice(name: str, reason: str) -> str:
    return (
        f"{name!r} cannot be loaded as an encoder-decoder: {reason}. Where there is a network,"
        " download it ('hf download facebook/bart-base --local-dir FOLDER': config, tokenizer and"
        " weights), copy the folder here and give --set seq2seq.name=FOLDER. Or train a small one"
        " from the beginning: --set seq2seq.name= (empty)"
    )
