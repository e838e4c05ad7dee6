"""Beginning a training with the weights of another run, as after pretraining."""

from __future__ import annotations

from pathlib import Path

from kb import KnowledgeBase
from parsers.checkpoint import CheckpointError, read_run, restore_anywhere
from parsers.models.base import Model, Unfitting, take_over
from parsers.settings import Settings

# The settings that two networks of a model must share, so that the one can begin as the other. A
# program of the pointer model is translated, so that it may write another language; what a seq2seq
# run is like comes from the run itself.
SHARED = {
    "pointer": ("embedding", "hidden"),
    "rnn": ("language", "embedding", "hidden", "layers"),
    "seq2seq": (),
}


def check_start(settings: Settings, folder: Path) -> None:
    """Raise CheckpointError where a training with these settings cannot start from a run."""
    other, _ = read_run(folder)
    if settings.model != other.model:
        raise CheckpointError(f"{folder}: a {other.model} model, but this is a {settings.model}")
    for name in SHARED[settings.model]:
        own = name == "language"
        here, there = (
            getattr(one if own else getattr(one, one.model), name) for one in (settings, other)
        )
        if here != there:
            raise CheckpointError(
                f"{folder}: {name} is {here} here, but {there} there; start_from needs the same"
                f" {name}"
            )
    if settings.model == "pointer" and settings.pointer.pretrained and not other.pointer.pretrained:
        raise CheckpointError(
            f"{folder}: the run has no pretrained encoder, but this one is to have; leave"
            " pointer.pretrained empty"
        )
    if not (folder / "best.safetensors").is_file():
        raise CheckpointError(f"{folder}: there are no weights yet; the run did not finish")


def start_from(model: Model, folder: Path, kb: KnowledgeBase) -> str:
    """Fill a new model with the best weights of a run, and say what was taken over.

    Weights of the same name and shape are copied. Rows that stand for words, functions or schema
    items are copied by what they stand for, so that the vocabulary and the knowledge base may be
    others. Raises CheckpointError for a run of another model or of other sizes.
    """
    check_start(model.settings, folder)
    other = restore_anywhere(folder, kb)
    try:
        taken, known = take_over(model, other)
    except Unfitting as error:
        raise CheckpointError(
            f"{folder}: {error}; start_from needs the same sizes and output language"
        ) from None
    shared = f", {taken} of {known} rows of its vocabularies" if known else ""
    own = {name for name, _ in model.network.named_parameters()}
    left = [name for name, _ in other.network.named_parameters() if name not in own]
    without = f"; left out, as this model has none such: {', '.join(left)}" if left else ""
    return f"started from {folder}: all layers{shared}{without}"
