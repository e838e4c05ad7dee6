"""Reading rules files: each rule with its line, checked as a whole.

`docs/generation.md` explains the format. A rule's program is checked against the declarations of
the functions, its wordings against the words there are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from generation.grammar import (
    EXISTS,
    ITS,
    ONE,
    REST,
    ROOT,
    SEVERAL,
    SINGULAR,
    WHAT,
    Grammar,
    Part,
    Pattern,
    Rule,
    Slot,
    Symbol,
    Text,
    Variable,
    slots,
    variables,
)
from generation.lexicon import WORDS, forms_of
from kopl.errors import TypingError
from kopl.functions import (
    COUNT,
    FIND_ALL,
    QUERY_ATTR,
    RELATE,
    SELECT_AMONG,
    SELECT_BETWEEN,
    SPELLINGS,
    Function,
)
from kopl.program import Call
from kopl.typecheck import check
from kopl.types import Kind, Type
from kopl_base.errors import KoplError, ReadError
from kopl_base.stream import read_text

Result = TypeVar("Result")

# The bundled grammars: the paper's mix, and short questions as people ask them.
PROFILES = {"kqapro": "kqapro.scfg", "people": "people.scfg"}


@cache
def bundled(profile: str = "kqapro") -> Grammar:
    """The grammar of a profile; raises KoplError for one that is not in `PROFILES`."""
    if profile not in PROFILES:
        raise KoplError(f"there is no profile {profile!r}; the profiles are {', '.join(PROFILES)}")
    return read_grammar(_bundled_text(PROFILES[profile]), PROFILES[profile])


def _bundled_text(name: str) -> str:
    return resources.files("generation").joinpath(name).read_text("utf-8")


def load_grammar(path: Path | str) -> Grammar:
    """The grammar in a file; raises ReadError with file and line."""
    return read_grammar(read_text(path), str(path))


def read_grammar(text: str, source: str = "") -> Grammar:
    """The grammar in a text; raises ReadError that names the source and the line.

    ``@include NAME`` takes those left sides of a bundled file that the text has no rules for.
    """
    rules: defaultdict[str, list[Rule]] = defaultdict(list)
    settings = _Settings()
    for lines in _paragraphs(text, source):
        if lines[0][1].startswith(_SETTING):
            _at(source, lines[0][0], settings.read, *lines[0])
            continue
        rule = _at(source, lines[0][0], _read_rule, lines, source)
        rules[rule.left].append(rule)
    included = {
        left: list(group)
        for name in settings.included
        for left, group in read_grammar(_bundled_text(name), name).rules.items()
        if left not in rules
    }
    rules.update(included)
    if ROOT not in rules:
        raise ReadError(f"there is no rule for {ROOT}", source=source)
    own = [rule for left, group in rules.items() if left not in included for rule in group]
    for rule in own:
        for symbol in rule.symbols:
            if symbol.left not in rules:
                raise _error(source, rule.line, f"there is no rule for {symbol.left}")
    strategies = {rule.strategy for rule in rules[ROOT]}
    for name, line in settings.lines.items():
        if name not in strategies:
            raise _error(source, line, f"no rule begins with {ROOT}[{name}]")
    types = dict.fromkeys(rules, Type.FACTS)
    while (found := {left: _type_of(group, types) for left, group in rules.items()}) != types:
        types = found
    for rule in own:
        _at(source, rule.line, _check, rule, rules, types, source)
    heights = _with_heights(rules, source)
    return Grammar(heights, types, settings.shares, settings.short, settings.wordings)


class _Malformed(Exception):
    """What is wrong with a rule; the line is added by `_at`, the innermost one counts."""


def _at(source: str, line: int, work: Callable[..., Result], *parts: Any) -> Result:
    try:
        return work(*parts)
    except _Malformed as problem:
        raise _error(source, line, str(problem)) from None


def _error(source: str, line: int, message: str) -> ReadError:
    return ReadError(message, place=f"line {line}", source=source)


# --- reading ---------------------------------------------------------------------------------

_RULE = re.compile(
    r"([A-Z]+)(?:\[(\w+)(?:\s*=\s*(exists|several|is \$?\w+'*))?\])?(?:\s+\*(\d+))?\s*->\s*(.+)"
)
_FORMS = re.compile(r"((?:canonical )?[a-z]+(?:, (?:canonical )?[a-z]+)*):(?:\s+(.*))?")
_SYMBOL = re.compile(r"[A-Z]+'*")
_SLOT = re.compile(r"(\w+'*)(?:\.(\w+))?(!)?(?:\s+(.+))?")
_SETTING = "@"
_TOKEN = re.compile(r'\s*([(),]|"[^"]*"|[^(),"]+)')


def _paragraphs(text: str, source: str) -> Iterator[list[tuple[int, str]]]:
    """The lines of each rule with their numbers: its first line, then its wordings."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(?:^|\s)#.*", "", line).rstrip()
        if not line:
            continue
        if not line[0].isspace():
            if lines:
                yield lines
            lines = [(number, line)]
        elif not lines:
            raise _error(source, number, "a rule begins in the first column")
        elif line.lstrip().startswith("|"):
            lines.append((number, line.strip()[1:].strip()))
        else:
            lines[-1] = lines[-1][0], f"{lines[-1][1]} {line.strip()}"
    if lines:
        yield lines


class _Settings:
    """What the lines that begin with "@" say."""

    def __init__(self) -> None:
        self.included: list[str] = []
        self.shares: dict[str, float] = {}
        self.lines: dict[str, int] = {}
        self.short: float | None = None
        self.wordings: int | None = None

    def read(self, line: int, text: str) -> None:
        """Take in a line with its number."""
        word, *rest = text.split()
        if word == "@include" and len(rest) == 1:
            if rest[0] not in PROFILES.values():
                raise _Malformed(f"only bundled rules are included: {', '.join(PROFILES.values())}")
            self.included.append(rest[0])
        elif word == "@share" and len(rest) == 2:
            if rest[0] in self.shares:
                raise _Malformed(f"the share of {rest[0]} is said twice")
            self.shares[rest[0]], self.lines[rest[0]] = _number(rest[1], 100), line
        elif word == "@short" and len(rest) == 1:
            self.short = _number(rest[0], 1)
        elif word == "@wordings" and len(rest) == 1:
            if not rest[0].isdecimal() or not int(rest[0]):
                raise _Malformed(f"a number from 1 was expected, not {rest[0]!r}")
            self.wordings = int(rest[0])
        else:
            known = "'@include FILE', '@share TYPE PERCENT', '@short SHARE' or '@wordings NUMBER'"
            raise _Malformed(f"write {known}")


def _number(text: str, most: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= most:
        raise _Malformed(f"a number from 0 to {most} was expected, not {text!r}")
    return number


def _read_rule(lines: list[tuple[int, str]], source: str) -> Rule:
    match = _RULE.fullmatch(lines[0][1])
    if not match:
        raise _Malformed("a rule is written LEFT -> program, or ROOT[strategy] *weight -> program")
    left, strategy, asks, weight, program = match.groups()
    if (left == ROOT) != bool(strategy):
        raise _Malformed(f"{ROOT} and no other left side names its strategy: {ROOT}[Count]")
    if weight == "0":
        raise _Malformed("a weight is at least 1")
    reader = _ProgramReader(program)
    part = reader.part()
    reader.expect("")
    texts: defaultdict[str, list[Text]] = defaultdict(list)
    places: dict[Text, int] = {}
    for number, line in lines[1:]:
        forms, text = match.groups() if (match := _FORMS.fullmatch(line)) else (ONE, line)
        wording = _at(source, number, _read_text, text or "")
        places.setdefault(wording, number)
        for form in forms.split(", "):
            texts[form].append(wording)
    if not texts:
        raise _Malformed("the rule has no wording; write one below it, behind '|'")
    found = {form: tuple(wordings) for form, wordings in texts.items()}
    return Rule(
        left, part, found, lines[0][0], places, strategy or "", int(weight or 1), asks or ""
    )


class _ProgramReader:
    """Reads the program side: nested calls, non-terminals in capitals, $variables, texts."""

    def __init__(self, text: str) -> None:
        tokens = (token.strip() for token in _TOKEN.findall(text))
        self._tokens = [token for token in tokens if token][::-1]  # the next one is the last

    def _next(self) -> str:
        return self._tokens.pop() if self._tokens else ""

    def expect(self, wanted: str) -> None:
        """Take this token, or say what stands there."""
        if (found := self._next()) != wanted:
            raise _Malformed(f"{wanted or 'the end'!r} was expected in the program, not {found!r}")

    def part(self) -> Part:
        """A call or a non-terminal."""
        word = self._next()
        if self._tokens[-1:] != ["("]:
            if not _SYMBOL.fullmatch(word):
                raise _Malformed(f"a call or a non-terminal was expected, not {word!r}")
            return Symbol(word)
        if word not in SPELLINGS:
            raise _Malformed(f"there is no function {word!r}")
        function = SPELLINGS[word]
        self.expect("(")
        inputs: list[Part] = []
        arguments: list[str | Variable] = []
        while self._tokens[-1:] != [")"]:
            if inputs or arguments:
                self.expect(",")
            if len(inputs) < function.arity:
                inputs.append(self.part())
            elif len(arguments) < len(function.arguments):
                arguments.append(self._argument(function.arguments[len(arguments)][1]))
            else:
                raise _Malformed(f"too much for {function.name}; write {function.signature}")
        self.expect(")")
        if len(inputs) < function.arity or len(arguments) < len(function.arguments):
            raise _Malformed(f"something is missing; write {function.signature}")
        return Pattern(function, tuple(inputs), tuple(arguments))

    def _argument(self, kind: Kind) -> str | Variable:
        word = self._next()
        if word.startswith("$"):
            name, fixed, text = word[1:].partition("=")
            if not re.fullmatch(r"[a-z]+", name) or bool(fixed) != bool(text):
                raise _Malformed(f"a variable is written $name or $name=text, not {word!r}")
            return Variable(name, kind, text)
        if word in ("", "(", ")", ","):
            raise _Malformed(f"a variable or a text was expected, not {word!r}")
        if self._tokens[-1:] == ["("]:
            raise _Malformed(f"the inputs come before the textual arguments, found {word}(")
        return word.strip('"')


def _read_text(text: str) -> Text:
    parts: list[str | Slot] = []
    for at, piece in enumerate(re.split(r"\{([^{}]*)\}", text)):
        if at % 2 == 0:
            if "{" in piece or "}" in piece:
                raise _Malformed(f"a brace is not closed in {text!r}")
            if piece:
                parts.append(piece)
            continue
        match = _SLOT.fullmatch(piece)
        if not match:
            raise _Malformed(
                f"a slot is written {{name}}, {{name.form}} or {{name.form E, E'}}, not {{{piece}}}"
            )
        name, form, brief, inside = match.groups()
        arguments = tuple(_inside(part) for part in re.split(r",\s*", inside)) if inside else ()
        parts.append(Slot(name, form or "", arguments, bool(brief)))
    return tuple(parts)


def _inside(text: str) -> Text:
    """The text inside a slot, in which non-terminals stand without braces: "E or E'"."""
    pieces = re.split(r"(\b[A-Z]+(?![a-zA-Z])'*)", text)
    return tuple(Slot(p, "") if at % 2 else p for at, p in enumerate(pieces) if p)


# --- checking --------------------------------------------------------------------------------


def _type_of(rules: list[Rule], types: Mapping[str, Type]) -> Type:
    """What a left side gives: sets without facts as soon as one of its rules gives such."""
    given = [
        types[r.program.left] if isinstance(r.program, Symbol) else r.program.function.output
        for r in rules
    ]
    return next((type for type in given if type is not Type.FACTS), Type.FACTS)


_WITNESSES = {
    Type.ENTITIES: Call(FIND_ALL),
    Type.FACTS: Call(RELATE, (Call(FIND_ALL),), ("relation", "forward")),
    Type.VALUES: Call(QUERY_ATTR, (Call(FIND_ALL),), ("key",)),
}
_EXAMPLES = {Kind.QUANTITY: "1", Kind.TIME: "2000"}


def _witness(part: Part, types: Mapping[str, Type]) -> Call:
    """A program of the pattern's form, for the type check."""
    if isinstance(part, Symbol):
        if types[part.left] not in _WITNESSES:
            raise _Malformed(f"{part.name} gives {types[part.left].value}, which nothing takes")
        return _WITNESSES[types[part.left]]
    texts = [
        argument if isinstance(argument, str) else _EXAMPLES.get(kind) or (*kind.choices, "x")[0]
        for argument, (_, kind) in zip(part.arguments, part.function.arguments, strict=True)
    ]
    return Call(part.function, tuple(_witness(p, types) for p in part.inputs), tuple(texts))


def _check(
    rule: Rule, rules: Mapping[str, list[Rule]], types: Mapping[str, Type], source: str
) -> None:
    given = types[rule.left]
    if rule.left != ROOT and isinstance(rule.program, Pattern):
        output = rule.program.function.output
        if not given.accepts(output):
            raise _Malformed(f"it gives {output.value}, another rule for {rule.left} {given.value}")
    try:
        check(_witness(rule.program, types))
    except TypingError as error:
        raise _Malformed(error.message) from None
    _check_asked(rule, types)
    kinds: dict[str, Kind] = {}
    for variable in variables(rule.program):
        if kinds.setdefault(variable.name, variable.kind) is not variable.kind:
            raise _Malformed(f"${variable.name} stands for two kinds of argument")
    names = [symbol.name for symbol in rule.symbols]
    if named := rule.named:
        if named.startswith("$"):
            kinds[named[1:]] = Kind.NAME
        elif named not in names:
            raise _Malformed(f"{named} does not stand in the program")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise _Malformed(f"{twice[0]} stands twice; write {twice[0]}' the second time")
    apart = rule.texts.get(REST, ())
    said = {slot.name for text in apart for slot in slots(text)}
    said |= {variable.name for variable in variables(rule.program) if variable.text}
    for text, line in rule.lines.items():
        _at(source, line, _check_text, text, kinds, names, rules)
        if text not in apart:
            _at(source, line, _check_whole, text, kinds, names, said)


def _check_asked(rule: Rule, types: Mapping[str, Type]) -> None:
    """Check that the answer can be read from what the program denotes as the ROOT says."""
    if not rule.asks:
        return
    if isinstance(rule.program, Symbol):
        last, output = rule.program.name, types[rule.program.left]
    else:
        last, output = rule.program.function.name, rule.program.function.output
    if rule.asks == EXISTS:
        if last != COUNT.name:
            raise _Malformed(f"'exists' needs a program that ends in Count, not in {last}")
    elif rule.asks == SEVERAL:
        if output in (Type.NUMBER, Type.TRUTH):
            raise _Malformed(f"'several' is for names and values; the program gives {output.value}")
    elif output not in (Type.NAMES, Type.ENTITIES, Type.FACTS):
        raise _Malformed(f"{rule.asks!r} is for names; the program gives {output.value}")
    elif rule.named.startswith("$"):
        choosing = (SELECT_AMONG.name, SELECT_BETWEEN.name)
        if last not in choosing:
            raise _Malformed(
                f"{rule.asks!r} is for a program that ends in {' or '.join(choosing)}, which"
                f" choose a name among several, not in {last}"
            )
        if any(variable.name == rule.named[1:] for variable in variables(rule.program)):
            raise _Malformed(f"{rule.named} stands in the program; name the answer otherwise")


def _check_text(
    text: Text, kinds: Mapping[str, Kind], names: list[str], rules: Mapping[str, list[Rule]]
) -> None:
    for slot in slots(text):
        if slot.name in (WHAT, ITS) and not slot.form and not slot.arguments:
            continue
        if slot.name in kinds:
            _check_word(slot, kinds[slot.name])
        elif slot.name not in names:
            raise _Malformed(f"{{{slot.name}}} does not stand in the program")
        elif slot.arguments:
            raise _Malformed(f"{{{slot.name}}} takes nothing inside")
        else:
            left, form = Symbol(slot.name).left, slot.form or ONE
            if not any(form in rule.texts for rule in rules[left]):
                raise _Malformed(f"no rule for {left} has a wording {form!r}")


def _check_whole(text: Text, kinds: Mapping[str, Kind], names: list[str], apart: set[str]) -> None:
    """Check that a wording mentions everything, but for what the rule says apart."""
    said = {slot.name for slot in slots(text)} | apart
    silent = [n for n in (*kinds, *names) if n not in said and kinds.get(n) != Kind.DIRECTION]
    if silent:
        raise _Malformed(f"a wording does not mention {silent[0]}")


def _check_word(slot: Slot, kind: Kind) -> None:
    forms = forms_of(WORDS[kind])
    takes = forms.get(slot.form or "plain")
    if takes is None:
        raise _Malformed(f"{{{slot.name}}} has no form {slot.form!r}; it has {', '.join(forms)}")
    if takes != len(slot.arguments):
        raise _Malformed(
            f"{{{slot.name}.{slot.form}}} takes {takes} texts inside, found {len(slot.arguments)}"
        )


def _with_heights(rules: Mapping[str, list[Rule]], source: str) -> dict[str, tuple[Rule, ...]]:
    """The rules with their heights; a rule that can never end is an error."""
    heights: dict[str, int] = {}
    while True:
        found = dict(heights)
        for left, group in rules.items():
            ends = [h for rule in group if (h := _height(rule, heights))]
            if ends:
                found[left] = min(ends)
        if found == heights:
            break
        heights = found
    for rule in (rule for group in rules.values() for rule in group):
        if not _height(rule, heights):
            raise _error(source, rule.line, "what begins with this rule can never end")
    reach = _reach(rules)
    return {
        left: tuple(
            replace(
                rule,
                height=_height(rule, heights),
                reach=_reach_of(rule, reach),
                single=_single(rule),
            )
            for rule in group
        )
        for left, group in rules.items()
    }


def _single(rule: Rule) -> frozenset[str]:
    forms: defaultdict[str, set[str]] = defaultdict(set)
    for text in rule.lines:
        for slot in slots(text):
            forms[slot.name].add(slot.form or ONE)
    names = (symbol.name for symbol in rule.symbols)
    return frozenset(name for name in names if forms[name] <= SINGULAR)


def _reach(rules: Mapping[str, list[Rule]]) -> dict[str, frozenset[Function]]:
    """The functions that derivations from each left side can have."""
    reach: dict[str, frozenset[Function]] = dict.fromkeys(rules, frozenset())
    while True:
        found = {
            left: frozenset[Function]().union(*(_reach_of(rule, reach) for rule in group))
            for left, group in rules.items()
        }
        if found == reach:
            return reach
        reach = found


def _reach_of(rule: Rule, reach: Mapping[str, frozenset[Function]]) -> frozenset[Function]:
    below = (reach[symbol.left] for symbol in rule.symbols)
    return frozenset(rule.functions).union(*below)


def _height(rule: Rule, heights: Mapping[str, int]) -> int:
    """The rule's height, 0 while it is not known."""
    below = [heights.get(symbol.left, 0) for symbol in rule.symbols]
    return 0 if 0 in below else 1 + max(below, default=0)
