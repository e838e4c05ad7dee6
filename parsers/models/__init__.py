"""The parsers' models: each learns from examples and predicts what its output language says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from parsers.settings import MODELS

if TYPE_CHECKING:
    from parsers.models.base import Model

# Imported when it is asked for: one model must not cost the packages of another.
_CLASSES = {
    "pointer": ("parsers.models.pointer.model", "PointerModel"),
    "rnn": ("parsers.models.rnn.model", "RnnModel"),
    "seq2seq": ("parsers.models.seq2seq.model", "Seq2SeqModel"),
}
assert tuple(_CLASSES) == MODELS


def class_of(model: str) -> type[Model]:
    """The class of a model by its name in the settings."""
    module, name = _CLASSES[model]
    found: type[Model] = getattr(import_module(module), name)
    return found
