"""SPARQL as `kopl.sparql` prints it, as a language of terminals.

The rules stand in ``sparql.rules``; this module walks them with a stack, and knows what the
knowledge base has for each terminal. Whatever is accepted can be read by `kopl.sparql.reader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Literal as OneOf
from typing import TypeAlias

from kb import KnowledgeBase
from kb.rdf.iri import encode
from kb.schema import Key, Schema
from kb.values import OPERATORS, days_in_month
from kopl.sparql.ast import quoted
from kopl_base.errors import KoplError
from parsers.constrain.freetext import FreeText
from parsers.constrain.machine import STOP, Constraint
from parsers.constrain.rules import Alternative, Part, Rule, read_rules
from parsers.constrain.terminals import Literal, Names, Number, Place, Terminal, Time
from parsers.constrain.tokens import END, TokenTable

Values: TypeAlias = OneOf["free", "kb"]
Style: TypeAlias = OneOf["data", "exact", "both"]
# What a parameter may be: a text of the query, or a key with its kind.
Bound: TypeAlias = str | Key

# The most variables of one stem: ?e, ?e_1, … ?e_19.
_MOST_VARIABLES = 20


# Queries that are nested deeper cannot be read.
_MOST_PATTERNS = 100


class Frame:
    """A place in an alternative, with what is bound there and the frames around it."""

    __slots__ = ("_hash", "alternative", "at", "bound", "parent")

    def __init__(
        self,
        alternative: Alternative,
        at: int,
        bound: tuple[tuple[str, Bound], ...],
        parent: Frame | None,
    ) -> None:
        # What nothing mentions any more is forgotten: places that go on alike are one then.
        needed = alternative.needed[at] if alternative.needed else ()
        self.alternative, self.at, self.parent = alternative, at, parent
        self.bound = tuple(pair for pair in bound if pair[0] in needed)
        self._hash = hash((id(alternative), at, self.bound, parent))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        # Frames are rarely equal without being one, and never deep.
        return self is other or (
            isinstance(other, Frame)
            and self._hash == other._hash
            and self.alternative is other.alternative
            and self.at == other.at
            and self.bound == other.bound
            and self.parent == other.parent
        )

    def moved(self, at: int, *more: tuple[str, Bound]) -> Frame:
        """The same at another part, with more bound."""
        return Frame(self.alternative, at, self.bound + more, self.parent)

    def variables(self) -> frozenset[str]:
        """The variables that are in use here and around."""
        found: set[str] = set()
        frame: Frame | None = self
        while frame is not None:
            found |= frame.alternative.variables
            found |= {what for _, what in frame.bound if isinstance(what, str) and what[0] == "?"}
            frame = frame.parent
        return frozenset(found)


# A frame (None at the end) and how many of the alternatives that count may still be begun.
Outer: TypeAlias = tuple[Frame | None, int]


def sparql_constraint(
    kb: KnowledgeBase,
    table: TokenTable,
    *,
    style: Style = "both",
    values: Values = "free",
    most_patterns: int = 20,
    most_text: int = 120,
) -> Constraint:
    """The constraint of queries over a knowledge base, as `kopl.sparql` prints them.

    ``style``: of which of its two styles, or either. ``values``: strings that values are compared
    with are any text of at most ``most_text`` bytes, or only values that the key has. About
    ``most_patterns`` patterns may be said beyond those that a query needs. Raises KoplError for
    tokens that cannot spell every text, such as those of T5, which have no braces.
    """
    if not table.complete:
        raise KoplError(
            "queries have braces and angle brackets; decode them with a tokenizer that spells"
            " every byte (byte-level BPE, or SentencePiece with byte fallback)"
        )
    language = QueryTexts(
        kb, table, style=style, values=values, most_patterns=most_patterns, most_text=most_text
    )
    return Constraint(language, table)


class QueryTexts:
    """The queries over a knowledge base; see `sparql_constraint`."""

    follow = b'" >)' + END

    def __init__(
        self,
        kb: KnowledgeBase,
        table: TokenTable,
        *,
        style: Style = "both",
        values: Values = "free",
        most_patterns: int = 20,
        most_text: int = 120,
    ) -> None:
        if style not in ("data", "exact", "both"):
            raise ValueError(f"the style is 'data', 'exact' or 'both', not {style!r}")
        if values not in ("free", "kb"):
            raise ValueError(f"values are 'free' or 'kb', not {values!r}")
        if not 1 <= most_patterns <= _MOST_PATTERNS or most_text < 1:
            raise ValueError(
                f"most_patterns must be 1 to {_MOST_PATTERNS} and most_text at least 1"
            )
        self.schema, self.table, self.values = Schema.of(kb), table, values
        self.most_patterns = most_patterns
        self._keys: dict[tuple[str, bool], str] = {}
        self._free = FreeText(most_text, quoted=True)
        self._fixed: dict[str, Terminal] = {
            "number": Number(),
            "year": Number(whole=True, most=12),
            "day": Time(padded=True),
            "monthday": Names(_days()),
            "operator": Names(op.encode() for op in OPERATORS),
            "order": Names((b"<", b">")),
            "extreme": Names((b"MAX", b"MIN")),
        }
        self._literal = cache(lambda text: Literal(table.encoded(text)))
        self._new = cache(_new_variables)
        self._listed = cache(self._list)
        self._rules = self._possible(style)

    # --- the rules that the knowledge base can fill ----------------------------------------------

    def _possible(self, style: Style) -> dict[str, Rule]:
        """The rules without what the style does not print and the knowledge base cannot fill."""
        text = resources.files("parsers.constrain").joinpath("sparql.rules").read_text("utf-8")
        rules = read_rules(text)
        while True:
            kept = {
                name: Rule(
                    name,
                    rule.parameters,
                    tuple(
                        alternative
                        for alternative in rule.alternatives
                        if style == "both" or alternative.style in ("", style)
                        if all(self._is_possible(part, rules) for part in alternative.parts)
                    ),
                )
                for name, rule in rules.items()
            }
            kept = {name: rule for name, rule in kept.items() if rule.alternatives}
            if kept == rules:
                break
            rules = kept
        if "query" not in rules:
            raise KoplError("the knowledge base has nothing that a query could ask for")
        return rules

    def _is_possible(self, part: Part, rules: dict[str, Rule]) -> bool:
        if part.kind == "rule":
            return part.what in rules
        if part.kind == "terminal" and part.what in ("name", "concept", "key", "qkey", "relation"):
            return self._listed(part.what, part.arguments).start is not None
        return True

    # --- the language -----------------------------------------------------------------------------

    def start(self) -> Outer:
        """Before the query."""
        begin = Alternative((Part("rule", "query"),), "", None, False, frozenset())
        return Frame(begin, 0, (), None), self.most_patterns

    def options(self, outer: Outer) -> Sequence[tuple[Terminal, Outer]]:
        """The terminals that may come next."""
        found: dict[tuple[Terminal, Outer], None] = {}
        frame, left = outer
        if frame is not None:
            self._expand(frame, left, found)
            if frame.parent is None and frame.at == 0:
                # A query begins with or without the blank that stands before each alternative.
                for terminal, inside in list(found):
                    assert isinstance(terminal, Literal)
                    found[self._literal(terminal.data[1:].decode()), inside] = None
        return list(found)

    def after(self, outer: Outer, terminal: Terminal, place: Place) -> Outer:
        """Where a query is when a terminal ended."""
        frame, left = outer
        if frame is None or terminal is STOP:
            return None, 0
        part = frame.alternative.parts[frame.at]
        if not part.keep:
            return frame.moved(frame.at + 1), left
        assert isinstance(terminal, Names)
        text = terminal.found(place).decode()
        what: Bound = text
        if part.what in ("key", "qkey"):
            qualifier = part.what == "qkey"
            what = (self._keys[text, qualifier], qualifier)
        return frame.moved(frame.at + 1, (part.keep, what)), left

    def text_behind(self, outer: Outer) -> Literal | None:
        """The text up to the next terminal, where what is read now is no part of it."""
        frame = outer[0]
        if frame is None or frame.alternative.parts[frame.at].kind != "terminal":
            return None
        keep, behind = frame.alternative.parts[frame.at].keep, frame.at + 1
        text, at = self._run(frame, behind, without=keep)
        return self._literal(text) if text and at > behind else None

    def _run(self, frame: Frame, at: int, without: str = "") -> tuple[str, int]:
        """(the fixed text from a part on, the part behind it); "" where a name stands in it."""
        parts, text = frame.alternative.parts, ""
        while at < len(parts) and parts[at].kind in ("text", "parameter"):
            if parts[at].kind == "parameter" and parts[at].what == without:
                return "", at
            text += self._text(parts[at], frame)
            at += 1
        return text, at

    def _expand(self, frame: Frame, left: int, found: dict[tuple[Terminal, Outer], None]) -> None:
        parts = frame.alternative.parts
        if frame.at == len(parts):
            if frame.parent is None:
                found[STOP, (frame, left)] = None
            else:
                self._expand(frame.parent, left, found)
            return
        part = parts[frame.at]
        if part.kind == "rule":
            self._enter(frame, part, left, found)
            return
        if part.kind == "terminal":
            for terminal in self._terminals(frame, part):
                found[terminal, (frame, left)] = None
            return
        text, at = self._run(frame, frame.at)
        found[self._literal(text), (frame.moved(at - 1), left)] = None

    def _enter(
        self, frame: Frame, part: Part, left: int, found: dict[tuple[Terminal, Outer], None]
    ) -> None:
        rule, bound = self._rules[part.what], dict(frame.bound)
        given = [bound[name[1:]] if name[0] == "$" else name for name in part.arguments]
        own = tuple(zip(rule.parameters, given, strict=True))
        behind = frame.moved(frame.at + 1)
        if behind.at == len(frame.alternative.parts) and frame.parent is not None:
            behind = frame.parent  # nothing is left there to come back to
        for alternative in rule.alternatives:
            if alternative.counts and not left:
                continue
            if alternative.guard is not None:
                type, name = alternative.guard
                key = dict(own)[name]
                if isinstance(key, str) or not self.schema.has(key, type):  # type: ignore[arg-type]
                    continue
            self._expand(Frame(alternative, 0, own, behind), left - alternative.counts, found)

    # --- parts --------------------------------------------------------------------------------

    def _text(self, part: Part, frame: Frame) -> str:
        if part.kind == "text":
            return part.what
        what = dict(frame.bound)[part.what]
        return what if isinstance(what, str) else encode(what[0])

    def _terminals(self, frame: Frame, part: Part) -> Iterable[Terminal]:
        if part.what in self._fixed:
            return [self._fixed[part.what]]
        if part.what == "new":
            return [self._new(part.arguments[0], frame.variables())]
        if part.what not in ("string", "unit"):
            return [self._listed(part.what, part.arguments)]
        key = dict(frame.bound)[part.arguments[0][1:]]
        assert not isinstance(key, str)
        if part.what == "unit" or self.values == "kb":
            return [self._listed(part.what, key)]
        return [found for found in (self._free, self._listed("odd", key)) if found.start]

    def _list(self, what: str, of: Key | tuple[str, ...]) -> Names:
        """The names that a terminal may be; ``of``: a key, or the type that keys must have."""
        schema = self.schema
        if what in ("key", "qkey"):
            qualifier = what == "qkey"
            keys = schema.keys(qualifier, of[0] if of else None)  # type: ignore[arg-type]
            self._keys |= {(encode(key), qualifier): key for key in keys}
            return self._spelt(map(encode, keys))
        if what == "relation":
            return self._spelt(map(encode, schema.of_kind("relation")))
        if what in ("name", "concept"):
            return self._spelt(map(_body, schema.nodes if what == "name" else schema.concepts))
        if what == "unit":
            return self._spelt(map(_body, schema.units(of)))  # type: ignore[arg-type]
        texts = map(_body, schema.texts(of, "string"))  # type: ignore[arg-type]
        if what == "odd":
            texts = (text for text in texts if not self._free.accepts(text.encode()))  # type: ignore[assignment]
        return self._spelt(texts)

    def _spelt(self, texts: Iterable[str]) -> Names:
        return Names(map(self.table.encoded, texts))


def _body(text: str) -> str:
    """A text as a string of a query, without the quotes."""
    return quoted(text)[1:-1]


def _new_variables(stem: str, used: frozenset[str]) -> Names:
    """The variables of a stem that are not in use."""
    numbered = [f"?{stem}", *(f"?{stem}_{number}" for number in range(1, _MOST_VARIABLES))]
    return Names(name.encode() for name in numbered if name not in used)


def _days() -> Iterable[bytes]:
    """Each day of a leap year, month and day."""
    for month in range(1, 13):
        for day in range(1, days_in_month(2000, month) + 1):
            yield f"{month:02}-{day:02}".encode()
