"""How much memory an encoder-decoder takes while it predicts: what a bound of it is divided by."""

from __future__ import annotations

from typing import Any

FLOAT = 4  # bytes
# Tables of the scores of all words that live at the same time: as they come, without what is not
# allowed, as logarithms of probabilities, with those of the text so far, and sorted.
TABLES = 5
# A layer's inner states, by which its own are exceeded while it computes.
INNER = 8


def search_bytes(config: Any, read: int, written: int, beams: int) -> int:
    """What the search takes for one text of ``written`` tokens on a question of ``read`` tokens.

    ``config`` is that of a model of transformers. Most of it are the keys and values of all layers,
    of which a search with several beams makes a second copy when its texts change places.
    """
    layers = _first(config, "decoder_layers", "num_decoder_layers", "num_hidden_layers")
    width = int(config.hidden_size)
    heads, size = _first(config, "decoder_attention_heads", "num_heads"), _first(config, "d_kv")
    keys = heads * size if heads and size else width
    copies = 2 if beams > 1 else 1
    attended = 2 * layers * keys * (copies * written + read)
    return FLOAT * (attended + INNER * width * read + TABLES * int(config.vocab_size))


def scoring_bytes(config: Any, written: int) -> int:
    """What the scores of all words at each of ``written`` places take, and a copy of them."""
    return 2 * FLOAT * written * int(config.vocab_size)


def _first(config: Any, *names: str) -> int:
    """The first of some attributes that a configuration has, 0 where it has none."""
    return next((int(found) for name in names if (found := getattr(config, name, None))), 0)
