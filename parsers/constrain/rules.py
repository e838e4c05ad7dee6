"""Rules with parameters, read from a file: the grammar that a `sparql.rules` writes down.

An alternative is a list of parts: fixed text, parameters, terminals and other rules. Rules may
call themselves on the right, not on the left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_HEAD = re.compile(r"(\w+)\(([\w,]*)\)")
_GUARD = re.compile(r"(?:(\+) +)?(?:if (\w+)\((\w+)\): *)?(?:(data|exact): *)?(?:(\+) +)?")
_PART = re.compile(r"\$(\w+)\(([^()]*)\)(?::(\w+))?|\$(\w+)")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an alternative.

    ``kind`` is "text", "parameter", "terminal" or "rule"; ``what`` the text or the name;
    ``arguments`` are names of parameters (``$X``) or texts; ``keep`` names what was read.
    """

    kind: str
    what: str
    arguments: tuple[str, ...] = ()
    keep: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One way to write a rule; ``guard`` is (type, parameter of the key) or None."""

    parts: tuple[Part, ...]
    style: str
    guard: tuple[str, str] | None
    counts: bool
    # Variables that the text names itself: no new variable may be one of them.
    variables: frozenset[str]
    # For each part, and behind the last, the names that it or a later part mentions.
    needed: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with the names of its parameters."""

    name: str
    parameters: tuple[str, ...]
    alternatives: tuple[Alternative, ...]


def read_rules(text: str) -> dict[str, Rule]:
    """The rules of a text, by name; raises ValueError naming the line that is none."""
    drafts: dict[str, tuple[tuple[str, ...], list[str]]] = {}
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not line[0].isspace():
            if not (head := _HEAD.fullmatch(line.strip())):
                raise ValueError(f"line {number}: a rule such as name(X) was expected")
            current = head[1]
            drafts[current] = (tuple(filter(None, head[2].split(","))), [])
            continue
        body = line.strip()
        alternatives = drafts[current][1]
        if body.startswith("|") and not alternatives:
            alternatives.append("")
        alternatives.append(body.removeprefix("|").strip())
    return {
        name: Rule(name, parameters, tuple(_alternative(body, drafts.keys()) for body in bodies))
        for name, (parameters, bodies) in drafts.items()
    }


def _alternative(body: str, rules: Iterable[str]) -> Alternative:
    guard = _GUARD.match(body)
    assert guard is not None
    plus, type, key, style, late_plus = guard.groups()
    parts = list(_parts(body[guard.end() :], frozenset(rules)))
    variables = {found for p in parts if p.kind == "text" for found in re.findall(r"\?\w+", p.what)}
    return Alternative(
        tuple(parts),
        style or "",
        (type, key) if type else None,
        bool(plus or late_plus),
        frozenset(variables),
        tuple(_needed(parts[place:]) for place in range(len(parts) + 1)),
    )


def _needed(parts: Iterable[Part]) -> frozenset[str]:
    named = {part.what for part in parts if part.kind == "parameter"}
    given = {name[1:] for part in parts for name in part.arguments if name[0] == "$"}
    return frozenset(named | given)


def _parts(body: str, rules: frozenset[str]) -> Iterable[Part]:
    found: list[Part] = []
    at = 0
    for match in _PART.finditer(body):
        found.append(Part("text", body[at : match.start()]))
        at = match.end()
        if match[4]:
            found.append(Part("parameter", match[4]))
            continue
        kind = "rule" if match[1] in rules else "terminal"
        arguments = tuple(filter(None, (part.strip() for part in match[2].split(","))))
        found.append(Part(kind, match[1], arguments, match[3] or ""))
    found.append(Part("text", body[at:]))
    # Each rule writes the blank before itself.
    for place, part in enumerate(found):
        if part.kind != "text":
            yield part
            continue
        text = part.what
        if place == 0 and (text or len(found) > 1) and _next_kind(found, place) != "rule":
            text = f" {text}"
        if _next_kind(found, place) == "rule":
            text = text.rstrip()
            text = f" {text}" if place == 0 and text else text
        if text:
            yield Part("text", text)


def _next_kind(parts: list[Part], place: int) -> str:
    return parts[place + 1].kind if place + 1 < len(parts) else ""
