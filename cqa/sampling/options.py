"""What is asked of sampled queries: how they are drawn, how many answers, what negations do."""

from __future__ import annotations

from dataclasses import dataclass

from cqa.vocabularies import DRAWS, NEGATIONS, RELATIONS
from kopl_base.errors import KoplError

# Queries of several free variables have at most so many answers for each hard one that they may
# have: EFOk-CQA's program, too, draws on above three times that.
MANY = 3


class SamplingError(KoplError):
    """Queries that cannot be sampled as asked for."""

    kind = "sampling"


@dataclass(frozen=True)
class Options:
    """How queries are drawn, and which are kept.

    ``draw``: as EFO-1-QA draws operator trees ("efo1"): one branch of a union has the drawn answer,
    and a negated part is drawn so that it removes another one. Or as BetaE's published queries were
    drawn ("betae"): every branch has the drawn answer, negated ones, too; a chain of relations
    never goes straight back, but each branch begins anew; and the full graph takes back 1 to
    ``most`` easy answers of a query with a negation. Two queries may differ by the order of their
    branches alone. (Those of NELL995 have a ``most`` of 80, and 4,000 queries of each type but 1p.)

    ``relations``: which of the relations that enter an entity is drawn: each alike ("uniform"); the
    same, but never the inverse of the one just drawn, so that no path goes straight back, as in
    BetaE's program ("onward"); or each link alike, which weights relations by their degree
    ("links").

    ``least`` and ``most``: the numbers of hard answers of a kept query, ``most`` for each free
    variable (for queries of train, whose answers are all easy: of its answers). ``answers``: the
    most answers on the full graph for each free variable; None: any number of entities, but `MANY`
    times ``most`` for each of several free variables, whose tuples would multiply.

    ``negations``: what the deletion of a negated part must change: the "answers", or the
    "assignments" of all variables of the conjunction (as EFOk-CQA asks). None: the former for
    operator trees, the latter for query graphs.

    ``relation_share`` and ``anchor_share``: no relation (in either direction), no anchor is in more
    than this share of a type's queries.
    """

    relations: str = "uniform"
    least: int = 1
    most: int = 100
    answers: int | None = None
    negations: str | None = None
    relation_share: float | None = None
    anchor_share: float | None = None
    draw: str = "efo1"

    def __post_init__(self) -> None:
        for value, known, what in (
            (self.draw, DRAWS, "way to draw queries"),
            (self.relations, RELATIONS, "way to draw relations"),
            (self.negations, (None, *NEGATIONS), "effect of a negation"),
        ):
            if value not in known:
                shown = ", ".join(filter(None, known))
                raise SamplingError(f"there is no {what} {value!r}; choose of {shown}")
        if self.draw == "betae" and self.relations != "uniform":
            raise SamplingError("draw 'betae' says how relations are drawn, too")
        if self.least < 1 or self.most < self.least:
            raise SamplingError(
                f"a query has 1 hard answer or more: {self.least} to {self.most} is no range"
            )
        if self.answers is not None and self.answers < self.least:
            raise SamplingError(f"{self.answers} answers are fewer than {self.least} hard ones")
        for share in (self.relation_share, self.anchor_share):
            if share is not None and not 0 < share <= 1:
                raise SamplingError(f"a share lies above 0 and is at most 1, not {share}")

    @property
    def walk(self) -> str:
        """How the relations on the way back from an answer are drawn, one of `RELATIONS`."""
        return "onward" if self.draw == "betae" else self.relations

    def limit(self, free: int) -> int | None:
        """The most answers on the full graph of a query with so many free variables."""
        if self.answers is not None:
            return self.answers * free
        return MANY * self.most * free if free > 1 else None
