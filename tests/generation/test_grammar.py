"""The rules: the bundled ones, and what is said about malformed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from generation import load_grammar, read_grammar
from generation.grammar import ROOT
from generation.rules_file import bundled
from kb import ReadError
from kopl.types import Type

GOOD = """
ROOT[QueryName] -> QueryName(E)
    | what is {E}?
E -> Find($name)
    | {name}
"""


def test_the_bundled_rules_load_and_have_types() -> None:
    grammar = bundled()
    assert grammar.types["E"] is Type.ENTITIES
    assert grammar.types["F"] is grammar.types["Q"] is Type.FACTS
    assert grammar.types["V"] is Type.VALUES
    assert all(rule.height > 0 for rules in grammar.rules.values() for rule in rules)


def test_every_asking_strategy_is_there_with_several_wordings() -> None:
    assert set(bundled().strategies) == {
        "QueryName", "Count", "QueryAttribute", "Relation", "SelectAmong", "SelectBetween",
        "Verify", "QualifierLiteral", "QualifierRelational",
    }  # fmt: skip
    for rule in bundled().rules[ROOT]:
        assert len(set(rule.texts["one"])) >= 2, f"line {rule.line}"


# A rule after GOOD's five lines, the line that is named, and what the message says.
MALFORMED = [
    ("E = Find($name)\n    | {name}", 6, "LEFT -> program"),
    ("e -> Find($name)\n    | {name}", 6, "LEFT -> program"),
    ("    | {name}{", 6, "brace"),
    ("ROOT -> QueryName(E)\n    | {E}?", 6, "names its strategy"),
    ("E[Count] -> Find($name)\n    | {name}", 6, "names its strategy"),
    ("E *0 -> Find($name)\n    | {name}", 6, "weight"),
    ("E -> Find($name)", 6, "no wording"),
    ("E -> Fnd($name)\n    | {name}", 6, "no function 'Fnd'"),
    ("E -> Find($name\n    | {name}", 6, "expected"),
    ("E -> Find($name) Find\n    | {name}", 6, "the end"),
    ("E -> Find()\n    | x", 6, "write Find(name)"),
    ("E -> Find($name, $other)\n    | {name}", 6, "too much for Find"),
    ("E -> Find($Name)\n    | {name}", 6, "$name"),
    ("E -> FilterConcept($concept)\n    | {concept}", 6, "call or a non-terminal"),
    ("E -> Relate(X, $r, forward)\n    | {X} {r.noun E}", 6, "no rule for X"),
    ("E -> Relate(E, $r, sideways)\n    | {r.noun E}", 6, "forward or backward"),
    ("E -> QFilterStr(E, $k, $v)\n    | {E} {k} {v}", 6, "QFilterStr expects"),
    ("E -> Count(E)\n    | {E}", 6, "gives a number"),
    ("E -> And(E, E)\n    | {E}", 6, "write E'"),
    ("E -> Relate(FilterConcept(E, $x), $x, forward)\n    | {x}{E}", 6, "two kinds"),
    ("E -> Relate(E, $r, $d)\n    | the {E}", 7, "does not mention r"),
    ("E -> FilterConcept(E, $c)\n    | {c} {E} {z}", 7, "{z} does not stand"),
    ("E -> FilterConcept(E, $c)\n    | {c.huge} {E}", 7, "no form 'huge'; it has"),
    ("E -> FilterConcept(E, $c)\n    | {c} {E.many}", 7, "no rule for E has a wording 'many'"),
    ("E -> Relate(E, $r, $d)\n    | {r.noun} {E}", 7, "takes 1 texts inside, found 0"),
    ("X -> FilterConcept(X, $c)\n    | {c} {X}", 6, "can never end"),
    ("ROOT[A = exists] -> QueryName(E)\n    | {E}?", 6, "needs a program that ends in Count"),
    ("ROOT[A = is E] -> Count(E)\n    | {E}?", 6, "gives a number"),
    ("ROOT[A = is E] -> VerifyStr(QueryAttr(E, $k), $v)\n    | {E}{k}{v}?", 6, "gives yes or no"),
    ("ROOT[A = several] -> Count(E)\n    | {E}?", 6, "gives a number"),
    ("ROOT[A = is E] -> QueryAttr(E, $k)\n    | {E} {k}?", 6, "is for names; the program gives"),
    ("ROOT[A = is $a] -> QueryAttr(E, $k)\n    | {a} {E} {k}?", 6, "is for names"),
    ("ROOT[A = is $a] -> Count(E)\n    | {a} {E}?", 6, "is for names"),
    ("ROOT[A = is $a] -> QueryName(E)\n    | {a} {E}?", 6, "ends in SelectAmong or SelectBetween"),
    ("ROOT[A = is $a] -> E\n    | {a} {E}?", 6, "choose a name among several, not in E"),
    ("ROOT[A = exists] -> E\n    | {E}?", 6, "needs a program that ends in Count"),
    ("ROOT[A = is $k] -> SelectAmong(E, $k, $o)\n    | {k}{E}{o}?", 6, "$k stands in the program"),
    ("@share Count 3\n@share Count 4", 7, "twice"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), MALFORMED)
def test_malformed_rules(text: str, line: int, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        read_grammar(GOOD + text, "my.scfg")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"my.scfg: line {line}: ")


def test_a_grammar_needs_a_root() -> None:
    with pytest.raises(ReadError, match="no rule for ROOT"):
        read_grammar("E -> Find($name)\n  | {name}", "my.scfg")
    with pytest.raises(ReadError, match=r"line 1.*first column"):
        read_grammar("  | {name}", "my.scfg")


def test_a_grammar_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my.scfg"
    path.write_text(GOOD + "# a comment\n", "utf-8")
    assert load_grammar(path).strategies == ["QueryName"]
    with pytest.raises(ReadError, match="cannot be read"):
        load_grammar(tmp_path / "missing.scfg")
