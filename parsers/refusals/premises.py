"""Whether a question supposes what is not so, or was only misread.

That a reading finds nothing is no evidence against the question: most readings that find nothing
are wrong ones. What it names, what it asks and that things of this kind have such facts at all must
be plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopl.functions import FIND, RELATE
from kopl.program import Call, post_order
from kopl.types import Kind
from parsers.refusals.evidence import FITTING, Evidence, Evidencer, Tried

# A reading that finds nothing is what was meant where it is hardly less probable than the best, in
# logarithms.
NEAR = 1.5
# A name that fits what is written so well is said.
SAID = 0.97


@dataclass(frozen=True)
class Premise:
    """What is not so: a reading that finds nothing, two names, or a kind.

    ``nothing``: the reading whose fact is not there. ``apart``: names of which no fact is known
    together. ``kind``: the word for the kind of thing that is asked for, where what is found is of
    another one.
    """

    nothing: Tried | None = None
    apart: tuple[str, ...] = ()
    kind: str = ""


class Premises:
    """Finds what questions suppose that is not so."""

    def __init__(self, evidencer: Evidencer) -> None:
        self._evidencer, self._kb = evidencer, evidencer.linker.kb
        self._owners: dict[tuple[Kind, str, bool], npt.NDArray[np.int32]] = {}

    def of(
        self, question: str, tried: Sequence[Tried], best: Tried, evidence: Evidence,
        shares: Mapping[str, float],
    ) -> Premise | None:  # fmt: skip
        """What a question supposes that is not so; None where nothing is plain.

        ``shares`` are the probabilities of the reasons to refuse, by kind.
        """
        if evidence.unknown:
            return None
        if evidence.is_other_kind:
            return Premise(kind=evidence.kind_asked)
        top = max((one.prediction.log_probability for one in tried), default=0.0)
        readings = [best, *tried] if best.said == () else tried
        nothing = next((one for one in readings if one.said == ()), None)
        if (
            nothing is not None
            and nothing.prediction.log_probability >= top - NEAR
            and self._is_understood(self._evidencer.of(question, tried, nothing))
        ):
            return Premise(nothing)
        if shares["premise"] >= max(shares.values()) and (names := self._apart(evidence)):
            return Premise(apart=names)
        return None

    def _is_understood(self, found: Evidence) -> bool:
        """Whether a question says the names and items of a program, which go together."""
        program = found.program
        if program is None or not found.names or found.unknown or found.unsupported:
            return False
        said = all(one.fit >= SAID or (one.fit >= FITTING and one.is_slip) for one in found.names)
        return said and not found.unused and all(map(self._fits, post_order(program)))

    def _fits(self, call: Call) -> bool:
        """Whether things of the kind of what a call names have such facts at all.

        No language has an anthem, and no lake borders on a country.
        """
        if not call.inputs or call.inputs[0].function is not FIND:
            return True
        (name,) = call.inputs[0].arguments
        forward = call.function is not RELATE or "backward" not in call.arguments
        items = zip((kind for _, kind in call.function.arguments), call.arguments, strict=False)
        return all(
            self._has(name, kind, text, forward)
            for kind, text in items if kind in (Kind.RELATION, Kind.KEY)
        )  # fmt: skip

    def _has(self, name: str, kind: Kind, text: str, forward: bool) -> bool:
        """Whether something of the same kind as what has a name has a relation or a key."""
        kb, owners = self._kb, self._having(kind, text, forward)
        return any(
            np.isin(kb.instances_of(kb.name_of(concept)), owners).any()
            for node in kb.named(name).tolist() if kb.is_entity(node)
            for concept in kb.concepts_of(node)
        )  # fmt: skip

    def _having(self, kind: Kind, text: str, forward: bool) -> npt.NDArray[np.int32]:
        """The nodes that have a relation, in a direction, or a key."""
        kb, asked = self._kb, (kind, text, forward)
        if asked not in self._owners:
            if kind is Kind.RELATION:
                facts = kb.relational.of_predicate(kb.relation_number(text))
                ends = kb.relational.subject if forward else kb.relational.object
            else:
                facts = kb.literals.of_predicate(kb.key_number(text))
                ends = kb.literals.subject
            self._owners[asked] = np.unique(ends[facts])
        return self._owners[asked]

    def _apart(self, evidence: Evidence) -> tuple[str, ...]:
        """Names that a question says of which no fact is known together; () where there is one."""
        question = evidence.question
        if evidence.things < 2 or evidence.values["truth"]:
            return ()
        said: list[str] = []
        nodes: list[set[int]] = []
        for first, last in self._evidencer.mentions.of(question).names:
            meant = self._evidencer.linker.names.meant(question.span(first, last))
            found = {int(node) for name in meant for node in self._kb.named(name)}
            if found := set(filter(self._kb.is_entity, found)):
                said.append(evidence.written.span(first, last))
                nodes.append(found)
        table = self._kb.relational
        for own in nodes:
            others = set().union(*(found for found in nodes if found is not own))
            ids = np.array(sorted(own), np.int32)
            ends = {*table.object[table.of_subjects(ids)].tolist()}
            if ends & others:
                return ()
        return tuple(said[:2]) if len(said) > 1 else ()
