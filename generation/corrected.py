"""From corrected questions to more of their kind: rules, and wordings of schema items.

Who corrects an answer gives a wording that no rule had. A `Wording` is such a question with the
program that is right and the places of the names in it. It becomes

- a rule of a grammar: the names become what sampling fills in, so that "Who's the boss in Kuwait?"
  is asked of other countries, too, with programs whose answers are checked like all others;
- where its program asks for one fact, a wording of the relation or key, for the lexicon: it is used
  then wherever rules ask so. `drafted` writes those down, each with a "todo" for somebody to look
  whether it means the same on all facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

from generation.blocks import Maker, Options
from generation.grammar import Grammar
from generation.judge import Unseen, marks
from generation.lexicon import Annotations, Lexicon
from generation.lexicon.annotations import KEYS, RELATIONS, Given
from generation.lexicon.draft import draft
from generation.pools import NoDraw
from generation.rules_file import read_grammar
from kb import KnowledgeBase
from kopl.answer_forms import AnswerForm, Exists, Is
from kopl.example import Example
from kopl.functions import FIND, QUERY_ATTR, QUERY_NAME, RELATE
from kopl.program import Call
from kopl.traits import names_in
from kopl_base.errors import ReadError

# The rules that names are taken from, and the left side of a name there.
_BASE, _NAME = "@include people.scfg", "X"
# Texts that rules cannot hold.
_UNSAYABLE = re.compile(r'[{}"\n\\]|(?:^|\s)#')
_END = re.compile(r"[\s?.!]+$")
_ASKS = re.compile(
    r"(?:(?:in|on|at|by|for|from|of|with|to|under) )?"
    r"(?:who|whose|whom|what|which|where|when|why|how)\b",
    re.I,
)
# A question of keywords has no more words beside its name.
_KEYWORDS = 4
# The share of questions that are typed in haste, and the blocks in a row that may bring nothing.
NOISE, BARREN = 0.3, 2


@dataclass(frozen=True)
class Wording:
    """A question that people asked, the program that is right for it, and where its names stand.

    ``places`` are the first character and the end of each name of the program that it says;
    ``several`` tells that it was asked for more than one answer.
    """

    question: str
    program: Call
    places: Mapping[str, tuple[int, int]]
    form: AnswerForm | None = None
    several: bool = False

    @property
    def names(self) -> list[str]:
        """The names of its program, as often as they stand there."""
        return names_in(self.program)


# --- rules ---------------------------------------------------------------------------------------


def rule_of(wording: Wording, name: str) -> str | None:
    """A rule that asks the same of other names, None where there is none.

    ``name`` is that of its asking strategy. There is none for a question that says none of its
    names, or says one name for two things.
    """
    names = wording.names
    said = [one for one in names if one in wording.places]
    if not said or len(set(said)) < len(said):
        return None
    spans = sorted(wording.places[one] for one in said)
    if any(begin < end for (_, end), (begin, _) in pairwise(spans)):
        return None
    symbols = {one: _NAME + "'" * at for at, one in enumerate(said)}
    asks = _asks(wording, symbols)
    if asks is None:
        return None
    try:
        program = _pattern(wording.program, symbols)
    except ValueError:
        return None
    text = _text(wording, symbols)
    if _UNSAYABLE.search(re.sub(r"\{X'*\}", "", text)):
        return None
    plain = _END.sub("", text)
    lines = [f"ROOT[{name}{asks}] -> {program}", f"    | one: {text}"]
    lines.append(f"    | one: ~{plain[:1].lower()}{plain[1:]}")
    return "\n".join(lines)


def _asks(wording: Wording, symbols: Mapping[str, str]) -> str | None:
    """How a rule says what its answer is, None where none can."""
    if isinstance(wording.form, Exists):
        return " = exists"
    if isinstance(wording.form, Is):
        symbol = symbols.get(wording.form.name)
        return None if symbol is None else f" = is {symbol}"
    return " = several" if wording.several else ""


def _pattern(program: Call, symbols: Mapping[str, str]) -> str:
    """The program side of a rule; raises ValueError for a text that rules cannot hold."""
    if program.function is FIND and program.arguments[0] in symbols:
        return symbols[program.arguments[0]]
    parts = [_pattern(given, symbols) for given in program.inputs]
    for (_, kind), text in zip(program.function.arguments, program.arguments, strict=True):
        if _UNSAYABLE.search(text):
            raise ValueError(text)
        parts.append(text if text in kind.choices else f'"{text}"')
    return f"{program.function.name}({', '.join(parts)})"


def _text(wording: Wording, symbols: Mapping[str, str]) -> str:
    """The question with slots for its names, which bring their own articles."""
    text = wording.question
    for name, (begin, end) in sorted(wording.places.items(), key=lambda item: -item[1][0]):
        if name in symbols:
            before = re.sub(r"\b[Tt]he $", "", text[:begin])
            text = f"{before}{{{symbols[name]}}}{text[end:]}"
    return " ".join(text.split())


# --- wordings of schema items --------------------------------------------------------------------


@dataclass(frozen=True)
class ItemPhrase:
    """What is asked of one fact: the section and name of the item, the field, the words for it."""

    section: str
    name: str
    field: str
    text: str


def phrase_of(wording: Wording) -> ItemPhrase | None:
    """What a corrected question says of the item that it asks for; None where it asks for more."""
    program, names = wording.program, wording.names
    if wording.form is not None or len(names) != 1 or names[0] not in wording.places:
        return None
    if program.function is QUERY_ATTR:
        section, field = KEYS, "question"
        asked = program
    elif program.function is QUERY_NAME and program.inputs[0].function is RELATE:
        asked = program.inputs[0]
        section = RELATIONS
        field = "tail_question" if asked.arguments[1] == "forward" else "head_question"
    else:
        return None
    if asked.inputs[0].function is not FIND:
        return None
    text = _END.sub("", _text(wording, {names[0]: "X"})).replace("{X}", "{}")
    if _UNSAYABLE.search(text.replace("{}", "")) or text.count("{}") != 1:
        return None
    text = text[:1].lower() + text[1:]
    if not _ASKS.match(text):
        rest = re.sub(r"^\{\}(?:'s)? | (?:(?:of|in|for) )?\{\}$", "", text)
        if field == "head_question" or "{}" in rest or len(rest.split()) > _KEYWORDS:
            return None
        field, text = "keyword", rest
    return ItemPhrase(section, asked.arguments[0], field, text)


def annotated(lexicon: Lexicon, phrases: Iterable[ItemPhrase]) -> Annotations:
    """The entries of the items that phrases are of, each with these as further wordings.

    What the lexicon says of them stays; each has a todo.
    """
    sections: dict[str, dict[str, Given]] = {}
    for phrase in phrases:
        entries = sections.setdefault(phrase.section, {})
        before = lexicon.annotations.of(phrase.section).get(phrase.name) or Given({}, 0)
        given = entries.get(phrase.name, before)
        known = {fields.get(phrase.field) for fields in (given.fields, *given.also)}
        if phrase.text not in known:
            todo = f"corrections say {phrase.text!r}: does it mean the same on all facts?"
            entries[phrase.name] = replace(
                given, also=(*given.also, {phrase.field: phrase.text}),
                todo=f"{given.todo}; {todo}" if given.todo else todo,
            )  # fmt: skip
    return Annotations({section: own for section, own in sections.items() if own}, "corrections")


def drafted(kb: KnowledgeBase, annotations: Annotations) -> Iterator[str]:
    """The lines of a file of annotations with these entries alone, ready to be edited."""
    only = {(section, name) for section, own in annotations.sections.items() for name in own}
    return draft(Lexicon(kb, annotations), only)


# --- questions -----------------------------------------------------------------------------------


def questions(
    kb: KnowledgeBase, wordings: Sequence[Wording], each: int, seed: int,
    annotations: Annotations | None = None,
) -> Iterator[Example]:  # fmt: skip
    """Up to ``each`` questions like each of the wordings, about other things.

    The same for the same wordings, knowledge base and seed. ``annotations`` are those of the words
    that they are said with. A wording of which there are no others brings none.
    """
    lexicon = Lexicon(kb, annotations)
    unseen = Unseen()
    for wording in wordings:
        unseen.add(marks(wording.question, wording.program))
    for at, wording in enumerate(wordings):
        grammar = _grammar(wording, f"Corrected{at}")
        if grammar is None:
            continue
        yield from _made(kb, grammar, lexicon, each, f"{seed}{at:04}", unseen)


def _grammar(wording: Wording, name: str) -> Grammar | None:
    """The rules for one wording; None where it makes none that can be read."""
    rule = rule_of(wording, name)
    if rule is None:
        return None
    try:
        return read_grammar(f"{_BASE}\n{rule}\n", name)
    except ReadError:  # a program that no rule can have, as one whose constants are none
        return None


def _made(
    kb: KnowledgeBase, grammar: Grammar, lexicon: Lexicon, each: int, seed: str, unseen: Unseen
) -> Iterator[Example]:
    options = Options(
        profile="people", levels=7, sparql=False, short=1.0, clauses=False, noise=NOISE
    )
    try:
        maker = Maker(kb, grammar=grammar, options=options, lexicon=lexicon)
    except NoDraw:
        return
    kept = barren = 0
    for number in count():
        new = 0
        for example in maker.block(int(seed), number):
            if unseen.add(marks(example.question, example.program)):
                new, kept = new + 1, kept + 1
                yield replace(example, id=f"corrected-{example.id}", choices=())
                if kept == each:
                    return
        barren = 0 if new else barren + 1
        if barren == BARREN or not new:
            return
