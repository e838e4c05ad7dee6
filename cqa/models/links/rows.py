"""Rows of truth values: what a link predictor says of all tails of a head, calibrated to [0, 1].

Models that search over links multiply such values along a query. Each of them reads logits in its
own way; these ways differ in a few settings (`Calibration`), all of which look at one row only, so
that rows are exact when they are made on demand and nothing of the size of E² is ever held.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from cqa.graphs.links import Links, places
from cqa.models.links.predictor import LinkPredictor, in_blocks
from kb.arrays import Ids
from kopl_base.errors import KoplError

# Kept rows take at most this much memory, unless told otherwise.
CACHE_BYTES = 256 << 20
# So many rows are calibrated at once: they stay near the processor.
AT_ONCE = 64


@dataclass(frozen=True)
class Calibration:
    """How the logits of a row become truth values.

    ``kind``: "sigmoid" of each logit; "minmax", the row stretched to 0 … ``scale``; "degree", a
    softmax times the number of links that the row has in training (one at least); "observed", a
    softmax scaled so that the training links of the row sum up to their number. What is at most
    ``threshold`` becomes 0, what is above ``ceiling`` becomes it. ``known`` is the value of links
    that are observed, None where they have what the predictor says; ``known_in`` says whether
    those of training alone count as observed ("train") or all that a query may use ("observed").
    """

    kind: Literal["sigmoid", "minmax", "degree", "observed"]
    scale: float = 1.0
    threshold: float = 0.0
    ceiling: float = 1.0
    known: float | None = None
    known_in: Literal["train", "observed"] = "observed"


CALIBRATIONS: Mapping[str, Calibration] = {
    # CQD reads a logit by itself, or stretches them.
    "sigmoid": Calibration("sigmoid"),
    "minmax": Calibration("minmax"),
    # CQD-Hybrid: what is observed stands above all that is predicted.
    "minmax-observed": Calibration("minmax", scale=0.9, known=1.0),
    # QTO takes training links only as known, and lets no prediction reach 1.
    "degree": Calibration(
        "degree", threshold=2e-4, ceiling=0.9999, known=1.0, known_in="train"
    ),
    # FIT keeps far fewer tails of a row.
    "normalised": Calibration("observed", threshold=5e-3, ceiling=0.999, known=1.0),
}  # fmt: skip


def calibration(
    name: str, threshold: float | None = None, known: float | None = None
) -> Calibration:
    """A calibration by its name, with another threshold or another value of observed links.

    Raises KoplError for an unknown name and for numbers out of [0, 1].
    """
    if name not in CALIBRATIONS:
        raise KoplError(
            f"there is no calibration {name!r}; choose of {', '.join(sorted(CALIBRATIONS))}"
        )
    found = CALIBRATIONS[name]
    for what, number in (("threshold", threshold), ("known", known)):
        if number is not None and not 0 <= number <= 1:
            raise KoplError(f"{what}: {number} is not between 0 and 1")
    if threshold is not None:
        found = replace(found, threshold=threshold)
    if known is not None:
        found = replace(found, known=known)
    return found


class Rows:
    """Calibrated rows of a link predictor, made when they are asked for.

    ``train``: the links that the predictor was trained on, which "degree" and "observed" count;
    ``observed``: those that queries may use. Rows are kept, the last used ones, while they take
    less than ``cache_bytes``; those with few values above 0 are kept as these values. ``made`` and
    ``found`` count the rows that were made and those that were kept from before. ``device`` is
    where the predictor and the rows are.
    """

    def __init__(
        self,
        predictor: LinkPredictor,
        calibration: Calibration,
        train: Links,
        observed: Links | None = None,
        cache_bytes: int = CACHE_BYTES,
        device: torch.device | str = "cpu",
    ) -> None:
        if predictor.entity_count != train.entity_count:
            raise KoplError(
                f"the link predictor is of {predictor.entity_count} entities, the graph has"
                f" {train.entity_count}; is it the graph that it was trained on?"
            )
        if predictor.relation_count != train.relation_count:
            raise KoplError(
                f"the link predictor is of {predictor.relation_count} directed relations, the graph"
                f" has {train.relation_count}; is it the graph that it was trained on?"
            )
        self.predictor, self.calibration = predictor, calibration
        self.entity_count, self.relation_count = train.entity_count, train.relation_count
        self._train = train
        self._observed = train if observed is None else observed
        self._room, self._none = cache_bytes, not cache_bytes
        self.device = torch.device(device)
        self._kept: OrderedDict[tuple[int, int], tuple[Tensor | None, Tensor]] = OrderedDict()
        self.made = self.found = 0

    def ones(self) -> Tensor:
        """The set of all entities, [E]."""
        return torch.ones(self.entity_count, device=self.device)

    def one(self, entity: int) -> Tensor:
        """The number of an entity, as a tensor for `rows`."""
        return torch.tensor([entity], device=self.device)

    def observed(self, relation: int, head: int) -> Ids:
        """The tails that queries may know of, sorted."""
        return self._observed.row(relation, head)

    def is_observed(self, relation: int, head: int, tail: int) -> bool:
        """Whether a link is one that queries may know of."""
        row = self._observed.row(relation, head)
        at = int(np.searchsorted(row, tail))
        return at < len(row) and int(row[at]) == tail

    @torch.no_grad()
    def rows(self, relation: int, heads: Tensor, keep: bool = True) -> Tensor:
        """The truth values of all entities as tails, a tensor [B, E] of the caller's own.

        ``keep`` False: rows that are made are not kept, as where more are needed than can be.
        """
        if self._none:
            return self._fresh(relation, heads)
        numbers = heads.tolist()
        kept = [self._kept.get((relation, head)) for head in numbers]
        missing = list(dict.fromkeys(h for h, row in zip(numbers, kept, strict=True) if not row))
        self.found += len(numbers) - len(missing)
        if len(missing) == len(numbers):
            fresh = self._fresh(relation, heads)
            if keep:
                self._keep(relation, missing, fresh)
            return fresh
        fresh = self._fresh(relation, heads.new_tensor(missing))
        place = {head: at for at, head in enumerate(missing)}
        found = torch.zeros(
            (len(numbers), self.entity_count), dtype=fresh.dtype, device=fresh.device
        )
        for at, (head, row) in enumerate(zip(numbers, kept, strict=True)):
            if row is None:
                found[at] = fresh[place[head]]
            elif row[0] is None:
                found[at] = row[1]
                self._kept.move_to_end((relation, head))
            else:
                found[at].index_copy_(0, row[0], row[1])
                self._kept.move_to_end((relation, head))
        if keep:
            self._keep(relation, missing, fresh)
        return found

    def of_step(
        self, relation: int, heads: Tensor, numbers: int = 1 << 24
    ) -> Iterator[tuple[slice, Tensor]]:
        """The rows of some heads in blocks, with which of the heads they are; none is kept.

        A block has at most so many ``numbers``. "minmax" stretches all rows together, from their
        least logit to their largest: what a step of CQD's program does. Other calibrations look at
        one row only, as ever.
        """
        blocks = in_blocks(self.predictor, relation, heads, numbers)
        span = None
        if self.calibration.kind == "minmax":
            first = next(blocks, None)
            if first is None:
                return
            lows, highs = zip(*(one.aminmax() for _, one in chain([first], blocks)), strict=True)
            span = torch.stack(lows).min(), torch.stack(highs).max()
            # What was one block need not be scored again.
            single = len(lows) == 1
            blocks = iter([first])
            if not single:
                blocks = in_blocks(self.predictor, relation, heads, numbers)
        for place, logits in blocks:
            self.made += len(logits)
            yield place, self._calibrated(relation, heads[place], logits.float(), span)

    # --- making and keeping ---------------------------------------------------------------------

    def _fresh(self, relation: int, heads: Tensor) -> Tensor:
        self.made += len(heads)
        if len(heads) <= AT_ONCE:
            return self._calibrated(relation, heads)
        found: Tensor | None = None
        for at in range(0, len(heads), AT_ONCE):
            part = self._calibrated(relation, heads[at : at + AT_ONCE])
            if found is None:
                found = part.new_empty((len(heads), self.entity_count))
            found[at : at + AT_ONCE] = part
        assert found is not None
        return found

    def _calibrated(
        self, relation: int, heads: Tensor, logits: Tensor | None = None,
        span: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:  # fmt: skip
        """The truth values of some heads; ``span``: what "minmax" stretches, else each row."""
        given = self.calibration
        if logits is None:
            logits = self.predictor.scores(relation, heads).float()
        numbers = heads.cpu().numpy()
        if given.kind == "sigmoid":
            found = torch.sigmoid(logits)
        elif given.kind == "minmax":
            low, high = logits.aminmax(dim=1, keepdim=True) if span is None else span
            # A row of equal logits says nothing: all its values are 0.
            found = (logits - low).mul_(given.scale / (high - low).clamp_min(1e-12))
        else:
            found = torch.softmax(logits, 1)
            found.mul_(self._factors(relation, numbers, found)[:, None])
        if given.threshold:
            torch.threshold_(found, given.threshold, 0.0)
        if given.ceiling < 1 or given.kind in ("degree", "observed"):
            found.clamp_(max=given.ceiling)
        if given.known is not None:
            links = self._train if given.known_in == "train" else self._observed
            row, tail = _places_of(links, relation, numbers)
            found[row.to(found.device), tail.to(found.device)] = given.known
        return found

    def _factors(self, relation: int, heads: Ids, found: Tensor) -> Tensor:
        """What the softmax of each row is multiplied with."""
        counts = self._train.spans(relation, heads)[1]
        if self.calibration.kind == "degree":
            return torch.from_numpy(np.maximum(counts, 1).astype(np.float32)).to(found.device)
        row, tail = _places_of(self._train, relation, heads)
        row = row.to(found.device)
        sums = torch.zeros(len(heads), dtype=found.dtype, device=found.device)
        sums.index_add_(0, row, found[row, tail.to(found.device)])
        number = torch.from_numpy(counts.astype(np.float32)).to(found.device)
        return torch.where(number > 0, number / sums.clamp_min(1e-30), torch.ones_like(number))

    def _keep(self, relation: int, heads: list[int], rows: Tensor) -> None:
        if not heads:
            return
        size = rows.element_size()
        counts = (rows > 0).sum(1).tolist() if self.calibration.threshold else None
        for at, head in enumerate(heads):
            if counts is not None and counts[at] * (size + 8) < self.entity_count * size:
                ids = rows[at].nonzero()[:, 0]
                entry: tuple[Tensor | None, Tensor] = (ids, rows[at][ids])
            else:
                entry = (None, rows[at].clone())
            self._kept[relation, head] = entry
            self._room -= _bytes(entry)
        while self._room < 0 and self._kept:
            self._room += _bytes(self._kept.popitem(last=False)[1])


def _bytes(entry: tuple[Tensor | None, Tensor]) -> int:
    return sum(part.numel() * part.element_size() for part in entry if part is not None)


def _places_of(links: Links, relation: int, heads: Ids) -> tuple[Tensor, Tensor]:
    """The links of some heads as places in their rows: number of the head, tail."""
    begins, counts = links.spans(relation, heads)
    row = np.repeat(np.arange(len(heads)), counts)
    tails = links.tails[places(begins, counts)].astype(np.int64)
    return torch.from_numpy(row), torch.from_numpy(tails)
