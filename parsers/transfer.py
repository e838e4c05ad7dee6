"""Beginning a training with the weights of another run, as after pretraining."""

from __future__ import annotations

from pathlib import Path

import torch

from kb import KnowledgeBase
from parsers.checkpoint import CheckpointError, read_run, restore_anywhere
from parsers.models.base import Model


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
    theirs = dict(other.network.named_parameters())
    rows, from_rows = model.tables(), other.tables()
    taken = known = 0
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            old = theirs.get(name)
            own_rows = name in rows
            if old is None or old.shape[own_rows:] != parameter.shape[own_rows:]:
                found = "none" if old is None else "×".join(map(str, old.shape))
                wanted = "×".join(map(str, parameter.shape))
                raise CheckpointError(
                    f"{folder}: {name} is {wanted} here, but {found} there; start_from needs the"
                    " same sizes and output language"
                )
            if not own_rows:
                parameter.copy_(old)
                continue
            places = {text: row for row, text in enumerate(from_rows[name])}
            here = [row for row, text in enumerate(rows[name]) if text in places]
            parameter[here] = old[[places[rows[name][row]] for row in here]]
            taken, known = taken + len(here), known + len(rows[name])
    shared = f", {taken} of {known} rows of its vocabularies" if known else ""
    return f"started from {folder}: all layers{shared}"
