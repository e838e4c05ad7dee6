"""Beginning a training with the weights of another run, as after pretraining."""

from __future__ import annotations

from pathlib import Path

from kb import KnowledgeBase
from parsers.checkpoint import CheckpointError, read_run, restore_anywhere
from parsers.models.base import Model, Unfitting, take_over


def start_from(model: Model, folder: Path, kb: KnowledgeBase) -> str:
    """Fill a new model with the best weights of a run, and say what was taken over.

    Weights of the same name and shape are copied. Rows that stand for words, functions or schema
    items are copied by what they stand for, so that the vocabulary and the knowledge base may be
    others. Raises CheckpointError for a run of another model or of other sizes.
    """
    settings, _ = read_run(folder)
    if settings.model != model.name:
        raise CheckpointError(f"{folder}: a {settings.model} model, but this is a {model.name}")
    other = restore_anywhere(folder, kb)
    try:
        taken, known = take_over(model, other)
    except Unfitting as error:
        raise CheckpointError(
            f"{folder}: {error}; start_from needs the same sizes and output language"
        ) from None
    shared = f", {taken} of {known} rows of its vocabularies" if known else ""
    return f"started from {folder}: all layers{shared}"
