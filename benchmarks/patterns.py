"""The patterns by which people ask, counted from questions with query graphs; no texts of theirs.

    KOPL_DATA=DATA python benchmarks/patterns.py                     # tables
    KOPL_DATA=DATA python benchmarks/patterns.py --words             # frames of single predicates
    KOPL_DATA=DATA python benchmarks/patterns.py -o patterns.tsv     # the patterns alone

The questions are the training part of those that docs/human-questions.md describes. Each is laid
beside its program: what the program names is looked for in the question, exactly, else as near as
misspelt names and other forms of a name are, and a slot takes its place:

    {E} a name    {C} a concept    {V} a value    {K} a key    {R} a relation    {Q} a qualifier key
    {W} a value of a qualifier     {D} a description: all that a set of the program is said by

`{K}`, `{R}` and `{Q}` stand where the name of the predicate stands as it is; else people's own
words for it stay ("was born"). What is left is counted as

- *frames*: questions by type, with `{D}` for each end that is described and not just named, and
  *wholes*, where the description stands in place of `{D}`;
- *descriptions*: what `{D}` stands for, by the form of its program;
- *openings*: first three words; *traits*: how many questions have a relative clause, and so on.

A pattern counts once for a question. Those are left out in which a word with a capital or a digit
is left, which would be part of a name that was not found, and those of fewer than ``--least``
questions: what is common to so many is nobody's text.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# The folder of this file has a module with the name of a package.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from rapidfuzz import fuzz  # noqa: E402

from generation import human  # noqa: E402
from kopl.program import Call  # noqa: E402
from kopl.traits import asking  # noqa: E402
from kopl.types import Kind  # noqa: E402
from kopl_base.errors import KoplError  # noqa: E402

LEAST = 5
# How alike a stretch of the question is to a name that does not stand there as it is.
NEAR = 82

_LABELS = {
    Kind.NAME: "E", Kind.CONCEPT: "C", Kind.KEY: "K", Kind.RELATION: "R", Kind.QUALIFIER_KEY: "Q",
    Kind.STRING: "V", Kind.QUANTITY: "V", Kind.TIME: "V", Kind.ANY_VALUE: "V",
}  # fmt: skip
_PREDICATES = "KRQ"
_SLOT = re.compile(r"\{([ECVKRQWD])(\d*)\}")
_LEFT = re.compile(r"[A-Z\d]|[^\x00-\x7f]")
# What belongs to a description and stands before its first slot.
_BEFORE = re.compile(r"(?<!\w)(?:the|a|an|this|those|some|any|his|her|its) $", re.IGNORECASE)

# What people say for some of the commonest concepts.
_OTHER_WORDS = {
    "human": "person|individual|someone|somebody|man|woman",
    "film": "movie|motion picture",
    "television series": "TV series|TV show|television show|show",
    "association football club": "soccer club|football club|soccer team|football team",
    "administrative territorial entity": "administrative territory",
}

_PREPOSITION = (
    "for|in|at|on|to|of|by|since|until|from|with|under|about|as|during|before|after|regarding"
    "|concerning|considering|given|when|among|if"
)
_WH = "what|which|who|whom|whose|when|where|how"
_PARTICIPLE = r"\w+ed|born|known|won|written|made|given|held|led|run|built|set|shot|sung"
TRAITS = {
    "a bracket": r"\(",
    '"the one"': r"\bthe one\b",
    "a relative clause": r"(?<!^)\b(?:that|which|who|whom|whose|where)\b",
    "possessive 's": r"\w's? \w|\}'s? ",
    '"with" before a condition': r"\bwith\b",
    "preposition before the wh-word": rf"^(?:{_PREPOSITION}) (?:{_WH})\b",
    "fronted, then a comma": rf"^(?:{_PREPOSITION}) (?!{_WH})[^?]*,"
    rf" (?:{_WH}|is|are|does|did|was|tell)\b",
    "statement, the wh-word in place": rf"^(?:the |a |an )?\{{.*\b(?:{_WH})\b",
    "imperative": r"^(?:tell|name|list|give|find|state|identify|show|provide|specify|describe)\b",
    "indirect question": r"^(?:can|could|would|do you|i |i'd|please|may i)\b",
    "passive": rf"\b(?:is|are|was|were|been|be|being) (?:\w+ly )?(?:{_PARTICIPLE})\b",
    '"Is it true", "correct"': r"\bis it (?:true|correct)\b|\bcorrect that\b",
    "contraction": r"\b(?:what|who|where|when|how|that|it)'s\b|n't\b",
    "no question mark": r"[^?]$",
    "begins small": r"^[a-z]",
}


@dataclass(frozen=True)
class Slot:
    """A text of a program, its label, and the number of the description that it belongs to."""

    text: str
    label: str
    owner: int


@dataclass(frozen=True)
class Aligned:
    """A question with slots, and the programs of its descriptions by their numbers."""

    kind: str
    asked: str
    pattern: str
    descriptions: tuple[str, ...]
    predicates: tuple[str, ...]


def aligned(question: human.HumanQuestion, program: Call) -> Aligned:
    """The question with slots in place of what its program names."""
    slots, forms = _slots(program)
    text = " ".join(question.question.replace("’", "'").split())
    asked = re.sub(r" (?=[?.,;)])", "", text)
    text, predicates = asked, []
    longest = sorted(slots, key=lambda slot: (slot.label in _PREDICATES, -len(slot.text)))
    marks: dict[str, str] = {}
    for slot in longest:
        mark = f"\0{len(marks)}\0"
        place = _find(slot, text)
        if slot.label in _PREDICATES and slot.text not in predicates:
            predicates.append(slot.text)
        if place is None:
            continue
        marks[mark] = f"{{{slot.label}{slot.owner}}}"
        text = text[: place[0]] + mark + text[place[1] :]
    for mark, slot_text in marks.items():
        text = text.replace(mark, slot_text)
    return Aligned(asking(program), asked, text, tuple(forms), tuple(predicates))


def _slots(program: Call) -> tuple[list[Slot], list[str]]:
    """The slots of a program, in post-order, and the forms of its descriptions."""
    slots: list[Slot] = []
    forms: list[str] = []

    def visit(call: Call, owner: int) -> None:
        own = owner
        if own == 0 and _describes(call):
            forms.append(_form(call))
            own = len(forms)
        for part in call.inputs:
            visit(part, own)
        for text, (_, kind) in zip(call.arguments, call.function.arguments, strict=True):
            if label := _LABELS.get(kind):
                if label == "V" and call.function.name.startswith("QFilter"):
                    label = "W"
                slots.append(Slot(text, label, own))

    visit(program, 0)
    return slots, forms


_SETS = ("Find", "Filter", "QFilter", "Relate", "And", "Or")


def _describes(call: Call) -> bool:
    """Whether a call denotes a set of entities."""
    return call.function.name.startswith(_SETS)


def _form(call: Call) -> str:
    """The form of a description: functions and what they take, without the texts."""
    name = call.function.name
    inputs = [_form(part) for part in call.inputs]
    if name == "Find":
        return "E"
    if name == "FindAll":
        return "all"
    if name == "FilterConcept":
        return f"C({inputs[0]})" if inputs[0] != "all" else "C"
    if name == "Relate":
        return f"R{'→' if call.arguments[1] == 'forward' else '←'}({inputs[0]})"
    if name.startswith("QFilter"):
        return f"{inputs[0]}[Q=W]"
    if name.startswith("Filter"):
        return "K=V" if inputs[0] == "all" else f"{inputs[0]}; K=V"
    return f" {name.lower()} ".join(inputs)


def _find(slot: Slot, text: str) -> tuple[int, int] | None:
    """Where the text of a slot stands; None where it does not."""
    plain = re.escape(slot.text)
    ending = "(?:e?s)?" if slot.label in "CKRQ" else ""
    if slot.label == "C" and slot.text in _OTHER_WORDS:
        plain = f"(?:{plain}|{_OTHER_WORDS[slot.text]})"
    match = re.search(rf"(?<![\w\0]){plain}{ending}(?![\w\0])", text, re.IGNORECASE)
    if match:
        return match.span()
    if slot.label in _PREDICATES or len(slot.text) < 4:
        return None
    short = re.sub(r"^(?:the|a|an|https?://(?:www\.)?) ?|/$", "", slot.text, flags=re.IGNORECASE)
    if found := fuzz.partial_ratio_alignment(short.lower(), text.lower(), score_cutoff=NEAR):
        return _words_at(short, text, found.dest_start, found.dest_end)
    return None


def _words_at(name: str, text: str, begin: int, end: int) -> tuple[int, int] | None:
    """The whole words at a place of a text that are most like a name; None where a slot is."""
    found = [match.span() for match in re.finditer(r"[^\s()?,\0\"]+", text)]
    near = [(first, last) for first, last in found if first < end and last > begin]
    stretches = [
        (first, last) for first, _ in near for _, last in near
        if first < last and "\0" not in text[first:last]
    ]  # fmt: skip
    return max(
        stretches,
        key=lambda span: fuzz.ratio(name.lower(), text[slice(*span)].lower()),
        default=None,
    )


# --- frames and descriptions --------------------------------------------------------------------


def parts(one: Aligned) -> tuple[str, list[tuple[str, str]]]:
    """The frame of a question, and (form, wording) of each description that has a stretch of it.

    A description with other slots between its own stays in the frame as it is.
    """
    text, found = one.pattern, []
    for owner, form in enumerate(one.descriptions, 1):
        marks = [m for m in _SLOT.finditer(text) if m.group(2) == str(owner)]
        if not marks:
            continue
        begin, end = marks[0].start(), marks[-1].end()
        inside = [m for m in _SLOT.finditer(text, begin, end) if m.group(2) != str(owner)]
        if inside:
            continue
        if len(marks) > 1 or marks[0].group(1) == "C":
            before = _BEFORE.search(text[:begin])
            begin = before.start() if before else begin
            opened = text[begin:end]
            if opened.count("(") > opened.count(")") and text[end : end + 1] == ")":
                end += 1
            found.append((form, _plain(text[begin:end])))
            text = f"{text[:begin]}{{D}}{text[end:]}"
    return _plain(text), found


def _plain(text: str) -> str:
    text = _SLOT.sub(r"{\1}", text)
    return text[:1].lower() + text[1:] if re.match(r"[A-Z][a-z' ]", text) else text


def is_free_of_names(pattern: str) -> bool:
    """Whether no word with a capital, a digit or a foreign letter is left."""
    rest = _SLOT.sub("", pattern)
    return not any(_LEFT.search(word) for word in rest.split() if word not in ("I", "I'd"))


@dataclass
class Patterns:
    """What was counted: patterns by kind or form, openings and traits, and of how many."""

    questions: int
    kinds: Counter[str]
    frames: dict[str, Counter[str]]
    wholes: dict[str, Counter[str]]
    descriptions: dict[str, Counter[str]]
    openings: dict[str, Counter[str]]
    traits: dict[str, Counter[str]]
    words: dict[str, Counter[str]]


def count(those: Iterable[Aligned]) -> Patterns:
    """The patterns of questions."""
    patterns = Patterns(0, Counter(), *(defaultdict(Counter) for _ in range(6)))  # type: ignore[arg-type]
    for one in those:
        frame, found = parts(one)
        patterns.questions += 1
        patterns.kinds[one.kind] += 1
        for trait, expression in TRAITS.items():
            ignore = 0 if trait == "begins small" else re.IGNORECASE
            text = one.asked if trait in ("begins small", "no question mark") else one.pattern
            patterns.traits[trait][one.kind] += re.search(expression, text, ignore) is not None
        opening = " ".join(_plain(one.pattern).replace(",", "").split()[:3])
        patterns.openings[one.kind][opening] += 1
        patterns.frames[one.kind][frame] += 1
        patterns.wholes[one.kind][_plain(one.pattern)] += 1
        for form, wording in set(found):
            patterns.descriptions[form][wording] += 1
        patterns.words[" + ".join(one.predicates)][frame] += 1
    return patterns


def common(counts: Counter[str], least: int, most: int) -> Iterator[tuple[str, int]]:
    """The commonest patterns without names, with how often they come."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    free = ((text, n) for text, n in ordered if n >= least and is_free_of_names(text))
    yield from (pair for pair, _ in zip(free, range(most), strict=False))


# --- printing ----------------------------------------------------------------------------------


def tables(patterns: Patterns, least: int, most: int) -> Iterator[str]:
    """The lines of a report."""
    total = patterns.questions
    kinds = [kind for kind, _ in patterns.kinds.most_common()]
    yield f"{total} questions: " + ", ".join(f"{k} {patterns.kinds[k]}" for k in kinds)
    yield from ("", "## Traits, percent of the questions of a type", "")
    yield f"| | all | {' | '.join(kinds)} |"
    yield "|---" * (len(kinds) + 2) + "|"
    for trait, of in patterns.traits.items():
        shares = [of[kind] / patterns.kinds[kind] for kind in kinds]
        cells = " | ".join(f"{100 * share:.1f}" for share in [of.total() / total, *shares])
        yield f"| {trait} | {cells} |"
    for kind in kinds:
        yield from _section(f"Openings, {kind}", patterns.openings[kind], least, most // 2)
        yield from _section(f"Frames, {kind}", patterns.frames[kind], least, most)
        yield from _section(f"Whole questions, {kind}", patterns.wholes[kind], least, most)
    for form, counts in sorted(
        patterns.descriptions.items(), key=lambda item: (-item[1].total(), item[0])
    ):
        if counts.total() >= 10 * least:
            yield from _section(f"Descriptions, `{form}`", counts, least, most // 2)


def _section(title: str, counts: Counter[str], least: int, most: int) -> Iterator[str]:
    total = counts.total()
    yield from ("", f"## {title} ({total}, {len(counts)} different)", "")
    for text, number in common(counts, least, most):
        yield f"{number:5d} {100 * number / total:4.1f} %  {text}"


def lines(patterns: Patterns, least: int) -> Iterator[str]:
    """The patterns as tab-separated lines: what, of which kind or form, pattern, how many."""
    groups: tuple[tuple[str, dict[str, Counter[str]]], ...] = (
        ("frame", patterns.frames),
        ("whole", patterns.wholes),
        ("description", patterns.descriptions),
        ("opening", patterns.openings),
    )
    for what, of in groups:
        for name in sorted(of, key=lambda name, of=of: (-of[name].total(), name)):  # type: ignore[misc]
            for text, number in common(of[name], least, 10**6):
                yield f"{what}\t{name}\t{text}\t{number}\n"


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--human", metavar="FILE",
        help="default: kqapro/questions_graph_answer.jsonl in the folder that KOPL_DATA names",
    )  # fmt: skip
    parser.add_argument("--part", default="train", choices=("train", "test"))
    parser.add_argument("--least", type=int, default=LEAST, help=f"default: {LEAST}")
    parser.add_argument("--most", type=int, default=80, help="patterns of a table; default: 80")
    parser.add_argument("--words", action="store_true", help="how single predicates are said")
    parser.add_argument("-o", "--output", metavar="FILE", help="tab-separated patterns")
    arguments = parser.parse_args()
    data = os.environ.get("KOPL_DATA", "")
    file = Path(arguments.human or f"{data}/kqapro/questions_graph_answer.jsonl")
    if not file.is_file():
        parser.error("name the questions of people by --human, or their folder by KOPL_DATA")
    try:
        patterns = count(read(file, arguments.part))
    except KoplError as error:
        raise SystemExit(f"patterns.py: {error}") from None
    if arguments.output:
        Path(arguments.output).write_text("".join(lines(patterns, arguments.least)), "utf-8")
    elif arguments.words:
        for name, counts in sorted(patterns.words.items(), key=lambda item: -item[1].total()):
            if counts.total() >= 10 * arguments.least:
                print("\n".join(_section(name, counts, 2, arguments.most)))
    else:
        print("\n".join(tables(patterns, arguments.least, arguments.most)))


def read(file: Path, part: str) -> Iterator[Aligned]:
    """The questions of a part, aligned; those without a program are left out."""
    questions: Sequence[human.HumanQuestion] = list(human.read_questions(file))
    schema = human.GraphSchema.of(questions)
    for question in questions:
        if question.part != part:
            continue
        try:
            yield aligned(question, human.convert(question, schema).program)
        except human.NotConverted:
            continue


if __name__ == "__main__":
    main()
