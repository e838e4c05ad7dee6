"""Refusals: why a question gets no answer, in words, and the nearest things that exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kopl.program import Call
from kopl.traits import names_in
from kopl_base.errors import near_names
from parsers.linking import Linker, stems_of
from parsers.refusals.evidence import FITTING, OF, SMALL, Evidence, Evidencer, Tried
from parsers.refusals.premises import Premise
from parsers.refusals.wording import ASKED, asked_items, stems, stems_called

KINDS = ("entity", "schema", "ambiguous", "unsure", "premise", "none", "language")
# How many near things are named, and words of a question.
NEAR, SAID = 3, 4
# A name that fits what is written worse than this is doubted.
DOUBTED = 0.97


@dataclass(frozen=True)
class Refusal:
    """Why a question is not answered, as one of `KINDS`, in words; ``near`` are things that exist.

    ``entity``: nothing is called so. ``schema``: no relation and no attribute says what is asked.
    ``ambiguous``: it can be read in two ways. ``unsure``: the best reading may well be wrong, or
    leaves out a part of the question. ``premise``: it supposes what is not so. ``none``: it
    is no question. ``language``: it is in no language that the run knows.
    """

    kind: str
    message: str
    near: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The refusal as plain values."""
        return {"kind": self.kind, "message": self.message, "near": list(self.near)}


def refusal_of(
    kind: str, evidence: Evidence, tried: Sequence[Tried], best: Tried, linker: Linker
) -> Refusal:
    """The refusal of a kind, worded after the evidence."""
    if kind == "entity":
        return _entity(evidence, linker)
    if kind == "schema" and not _is_said_by_an_item(evidence, linker):
        return _schema(evidence, tried, linker)
    if kind == "ambiguous":
        return _ambiguous(tried, best)
    if kind in ("unsure", "schema"):
        text = str(best.prediction.text)
        return Refusal(
            "unsure", f"the best reading may well be wrong: {text}", (best.said or ())[:NEAR]
        )
    if kind == "language":
        return Refusal(kind, "this is not in a language that the run knows")
    return Refusal(kind, "this is not a question")


def left_out(words: Sequence[str]) -> Refusal:
    """The refusal of a reading that leaves out what a question says."""
    said = " and ".join(map(repr, words))
    return Refusal("unsure", f"the best reading leaves out {said}")


def _entity(evidence: Evidence, linker: Linker) -> Refusal:
    taken = [
        evidence.written.span(*one.span) for one in evidence.names if one.is_taken and one.span
    ]
    called = taken[0] if taken else unknown_name(evidence)
    if not called:
        return Refusal("entity", "nothing in the knowledge base has the name that is asked about")
    near = near_names(called, linker.names.index.comparable, NEAR)
    return Refusal("entity", f"nothing in the knowledge base is called {called!r}", tuple(near))


def missing_name(evidence: Evidence, evidencer: Evidencer) -> str:
    """The name that a question says and that nothing has, or "".

    Words with capitals, or in quotes, are taken for one. Others are where a question that says what
    is asked, or that asks "of" them, is about nothing that there is, and the program about
    something that it does not say.
    """
    span = _unknown(evidence)
    called = unknown_name(evidence)
    if span is None or evidencer.called.have(called):
        return ""
    written = evidence.written.text
    if called[:1].isupper() or any(f"{mark}{called}" in written for mark in "\"'‘“"):
        return called
    is_far = not evidence.names or any(one.fit < DOUBTED for one in evidence.names)
    before = evidence.question.words[span[0] - 1].lower() if span[0] else ""
    is_asked = evidence.values["explained"] or before in OF
    return called if is_far and is_asked and not evidence.named else ""


def unknown_name(evidence: Evidence) -> str:
    """What a question calls something that is not there, as it is written; "" for nothing."""
    span = _unknown(evidence)
    return "" if span is None else evidence.written.span(*span)


def _unknown(evidence: Evidence) -> tuple[int, int] | None:
    """The longest run of doubted tokens: the first and the last, None where nothing is doubted."""
    question = evidence.question
    doubted = {
        at
        for one in evidence.names
        if one.span is not None and FITTING <= one.fit < DOUBTED
        for at in range(one.span[0], one.span[1] + 1)
    } | {*evidence.unknown, *evidence.unlinked}
    doubted = (doubted - evidence.named) | {*evidence.mended}
    capitals = {at for at in doubted if at and question.words[at][:1].isupper()}
    begins = capitals or doubted
    runs = [(begin, _end(evidence, begin, doubted, bool(capitals))) for begin in sorted(begins)]
    words = ["", *(word.lower() for word in question.words)]
    # Of two as long as each other, that "of" which something is asked: "the king of Westeros".
    return max(runs, key=lambda run: (run[1] - run[0], words[run[0]] in OF, -run[0]), default=None)


def _end(evidence: Evidence, begin: int, doubted: set[int], by_capitals: bool) -> int:
    """The last token of a name that begins somewhere: what is doubted, capitals, marks, numbers."""
    words = evidence.question.words
    last = begin
    for at in range(begin + 1, len(words)):
        word = words[at]
        goes_on = at in doubted or (by_capitals and word[:1].isupper()) or word[:1].isdigit()
        if goes_on and word.lower() not in SMALL:
            last = at
        elif not (len(word) == 1 and word in "-–'."):
            break
    return last


def _schema(evidence: Evidence, tried: Sequence[Tried], linker: Linker) -> Refusal:
    """Says what was not understood: that the schema lacks it would claim more than is known."""
    texts = [text for kind in ASKED for text in linker.kb.names_of_kind(kind)]
    own = stems(evidence.question)
    of_schema = {one for text in texts for one in stems_called(text)}
    odd = _odd(evidence)
    written = evidence.written.words
    words = [written[at] for at in odd if own[at] not in of_schema][:SAID]
    items = list(dict.fromkeys(_items_of(tried)))
    near = [text for at in odd[:SAID] for text in near_names(written[at], texts, NEAR)]
    near = list(dict.fromkeys([*near, *items]))[:NEAR]
    told = f"says {' '.join(words)!r}" if words else "is asked for"
    return Refusal(
        "schema", f"it is not clear which relation or attribute here {told}", tuple(near)
    )


def _is_said_by_an_item(evidence: Evidence, linker: Linker) -> bool:
    """Whether the words that no item is thought to say are what one is called."""
    words = stems(evidence.question)
    said = " ".join(words[at] for at in _odd(evidence))
    return said in {
        " ".join(stems_of(text))
        for kind in ASKED for text in linker.kb.names_of_kind(kind)
    }  # fmt: skip


def _odd(evidence: Evidence) -> list[int]:
    """The tokens that no item says: unknown ones, and those that go with other items."""
    if found := sorted({*evidence.unknown, *evidence.contradicted}):
        return found
    words = stems(evidence.question)
    return [at for at in evidence.loose if words[at] not in SMALL]


def _items_of(tried: Sequence[Tried]) -> Iterator[str]:
    for one in tried:
        if one.prediction.program is not None:
            yield from asked_items(one.prediction.program)


def of_premise(premise: Premise, best: Tried, linker: Linker) -> Refusal:
    """The refusal of what a question supposes."""
    told, near = "", list[str]()
    if premise.apart:
        told = f"no fact here is about {' and '.join(map(repr, premise.apart))}"
    elif premise.kind:
        said = "; ".join((best.said or ())[:NEAR])
        told = f"{said} is no {premise.kind!r}" if said else f"there is no {premise.kind!r}"
    elif premise.nothing is not None and (program := premise.nothing.prediction.program):
        told, near = _nothing(program, linker)
    told = f": {told}" if told else ""
    return Refusal("premise", f"the question supposes what is not so{told}", tuple(near))


def _nothing(program: Call, linker: Linker) -> tuple[str, list[str]]:
    """What there is not where a program finds nothing, and what is near to it."""
    asked, names = asked_items(program), list(dict.fromkeys(names_in(program)))
    if not asked or not names:
        return "", []
    known = [_items_known_of(name, linker) for name in names]
    of = f"{asked[0]!r} of {' and '.join(map(repr, names))}"
    # What is there may be of another year, of another kind, or led to the other way round.
    has_some = any(asked[0] in found for found in known)
    near = near_names(asked[0], [item for item in known[0] if item != asked[0]], NEAR)
    return f"no {of} is as it says" if has_some else f"there is no {of}", list(near)


def _items_known_of(name: str, linker: Linker) -> dict[str, None]:
    """The relations and keys of what has a name."""
    kb = linker.kb
    found: dict[str, None] = {}
    for node in kb.named(name).tolist():
        if kb.is_entity(node):
            found |= {fact.key: None for fact in kb.attributes(node)}
        for record in kb.records(node):
            if (relation := getattr(record, "relation", None)) is not None:
                found[str(relation)] = None
    return found


def _ambiguous(tried: Sequence[Tried], best: Tried) -> Refusal:
    readings = [best, *(one for one in tried if one.said and one.said != best.said)][:2]
    told = [str(one.prediction.text) for one in readings]
    near = ["; ".join((one.said or ())[:NEAR]) for one in readings]
    return Refusal(
        "ambiguous", f"the question can be read in two ways: {' or '.join(told)}", tuple(near)
    )
