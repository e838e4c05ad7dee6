"""Query graphs to programs: every form, what is recovered, what is refused and why."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.human import GraphSchema, NotConverted, convert, part_of, read_questions
from generation.human.records import TARGETS, HumanQuestion, from_json, is_variable
from kopl.program import post_order
from kopl.text import read
from kopl.typecheck import is_well_typed
from kopl_base.errors import ReadError
from parsers.matching import exact_match

from .human_graphs import CASES, PROOF, lines, write


@pytest.fixture(scope="module")
def schema() -> GraphSchema:
    return GraphSchema.of(map(from_json, lines()))


def question(target: str, text: str, graph: list[list[str]]) -> HumanQuestion:
    return from_json({"id": "x", "question": text, "target": target, "graph": graph, "answer": ""})


@pytest.mark.parametrize("case", CASES, ids=[case[1] for case in CASES])
def test_programs(case: tuple[str, str, list[list[str]], str, str], schema: GraphSchema) -> None:
    target, text, graph, program, _ = case
    converted = convert(question(target, text, graph), schema).program
    assert str(converted) == program
    assert is_well_typed(converted)


# In these the order of the graph says more than the wording.
ORDERED = [case for case in CASES if "Mill (whose motto is Up)" in case[1]]


@pytest.mark.parametrize("case", [case for case in CASES if case not in ORDERED])
def test_the_order_of_conditions_does_not_matter(
    case: tuple[str, str, list[list[str]], str, str], schema: GraphSchema
) -> None:
    target, text, graph, program, _ = case
    first, last = (graph[:-1], graph[-1:]) if target == "bool" else (graph, [])
    for order in itertools.permutations(first):
        converted = convert(question(target, text, [*order, *last]), schema).program
        assert exact_match(read(program), converted)


def test_what_the_wording_gives_back_is_told(schema: GraphSchema) -> None:
    target, text, graph, *_ = CASES[12]
    restored = convert(question(target, text, graph), schema).restored
    assert [str(clause) for clause in restored] == ["[Amber Cup, winner, Ada Moss]"]
    assert convert(question(*CASES[0][:3]), schema).restored == ()


REFUSED: list[tuple[str, str, list[list[str]], str]] = [
    ("bool", "Is it so?", [["---"], ["no"], [""]], "malformed graph"),
    ("bool", "Is it so?", [], "malformed graph"),
    ("?e", "Which canton?", [["?e", "instance of", "canton"]], "clause missing"),
    ("?e", "Which of Uri?", [["?e", "borders", "Uri"]], "no concept"),
    (
        "?e", "Which lake or canton borders Uri?",
        [["?e", "instance of", "lake"], ["?e", "instance of", "canton"], ["?e", "borders", "Uri"]],
        "two concepts",
    ),
    ("?e", "Is Uri a canton?", [["Uri", "instance of", "canton"]], "malformed graph"),
    ("?e", "Which of Uri?", [["?e", "instance of", "?e_1"], ["Uri", "motto", "Up"]],
     "malformed graph"),
    ("?pv", "What is the motto of Uri?", [["Uri", "motto", "Up"]], "clause missing"),
    ("?qpv", "What is the motto of Uri?", [["Uri", "motto", "Up"]], "clause missing"),
    ("bool", "Does Uri border Zug?", [["Uri", "borders", "Zug"]], "clause missing"),
    ("bool", "Is Uri's tune Up?", [["Zug", "tune", "Up"], ["Uri", "motto", "Up"]],
     "clauses not connected"),
    ("?pv", "What is the motto of Uri of tune Up?",
     [["Uri", "tone", "Up"], ["Uri", "motto", "?pv"]], "unknown predicate"),
    ("bool", "Who wrote Hamlet?", [["Uri", "motto", "Up"]], "graph of another question"),
    ("bool", "Is Uri with 36000 people of motto Up?", [["Uri", "motto", "Up"]], "clause missing"),
    (  # which of the two twins is told apart by the other?
        "?qpv", "Since when are Uri and Zug twins?",
        [["Zug", "borders", "Uri"], ["Uri", "borders", "Zug", "since", "?qpv"]],
        "ambiguous namesakes",
    ),
    (
        "?qpv", "Since when does Mill (whose motto is Up) lie in Mill?",
        [["Mill", "motto", "Up"], ["Mill", "lies in", "Mill", "since", "?qpv"]],
        "ambiguous namesakes",
    ),
    (  # Bo Reed may be the winner asked for, or another one
        "?e", "What human, Bo Reed, won the Amber Cup for Day Rain?",
        [["?e", "instance of", "human"], ["Amber Cup", "winner", "?e", "for work", "Day Rain"]],
        "clause missing",
    ),
    (
        "?qpv", "For what did Bo Reed get the Amber Cup that Ada Moss Junior won?",
        [["Amber Cup", "winner", "Bo Reed", "for work", "?qpv"]],
        "clause missing",
    ),
    ("?pv", "What is Uri's area?", [["Uri", "motto", "?qpv"], ["Uri", "area", "?pv"]],
     "malformed graph"),
    ("bool", "Is Uri's motto Up?", [["Uri", "motto", "Up"]] * 60, "malformed graph"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "text", "graph", "reason"), REFUSED)
def test_refused(
    target: str, text: str, graph: list[list[str]], reason: str, schema: GraphSchema
) -> None:
    wider = dataclasses.replace(schema, keys=schema.keys | {"tune"})
    with pytest.raises(NotConverted) as caught:
        convert(question(target, text, graph), wider)
    assert caught.value.reason == reason


def test_a_lost_name_that_the_relation_does_not_have_elsewhere(schema: GraphSchema) -> None:
    graph = [["Night Rain", "cast", "Bo Reed", "role", "?qpv"]]
    others = [
        question("?e", "Which?", [["?e", "instance of", "human"], [film, relation, name]])
        for film, relation, name in (
            ("Day Rain", "cast", "Ada Moss"), ("Day Rain", "voice", "Ada Moss"),
            ("Day Rain", "voice", "Cy Orr"), ("Day Rain", "voice", "?e"),
            ("Day Rain", "cast", "?e"), ("Day Rain", "filmed in", "Zug City"),
            ("Day Rain", "filmed in", "?e"),
        )
    ]  # fmt: skip
    asked = question("?qpv", "Whom does Bo Reed play in Night Rain, also with Cy Orr?", graph)
    wider = GraphSchema.of([*map(from_json, lines()), *others, asked])
    # Voices and casts have names in common; what stands behind the film is said of it.
    assert str(convert(asked, wider).program) == (
        'QueryRelationQualifier(And(Relate(Find("Cy Orr"), "cast", "backward"), '
        'Find("Night Rain")), Find("Bo Reed"), "cast", "role")'
    )
    for text, restored in (
        ("Whom does Bo Reed, unlike Cy Orr, play in Night Rain?", 0),
        ("Whom does Bo Reed play in Night Rain?", 0),
        ("Does Cy Orr know whom Bo Reed plays in Night Rain with its cast?", 0),
        ("Whom does Bo Reed play in Night Rain (with Ada Moss)?", 1),
    ):
        assert len(convert(question("?qpv", text, graph), wider).restored) == restored
    for text, reason in (
        ("Whom does Bo Reed play in Night Rain, that was shot in Zug City?", "is not likely"),
        ("Whom does Bo Reed play in Night Rain with Ada Moss Junior?", "part of a longer name"),
    ):
        with pytest.raises(NotConverted, match=reason):
            convert(question("?qpv", text, graph), wider)


def test_a_slip_in_a_number_is_no_missing_clause(schema: GraphSchema) -> None:
    asked = question("bool", "Is 0000 00017 the code of Uri?", [["Uri", "code", "0000 0001 7"]])
    assert str(convert(asked, schema).program).endswith('"0000 0001 7")')


class Tree:
    """A random graph that is a tree, with fresh names, and all of them in its question."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.names, self.variables = chance, 0, 0
        self.clauses: list[list[str]] = []
        self.target = chance.choice(TARGETS)
        if self.target in ("?e", "count ?e"):
            self.describe(self.variable(), 2)
        else:
            root = self.variable() if chance.random() < 0.5 else self.name()
            self.describe(root, 2)
            key = [root, "code"]
            if self.target == "?pv":
                self.clauses.append([*key, "?pv"])
            elif self.target == "bool":
                self.clauses.append([*key, self.name(), *self.qualifier()])
            elif chance.random() < 0.5:
                self.clauses.append([*key, self.name(), "since", "?qpv"])
            else:
                other = self.variable() if chance.random() < 0.3 else self.name()
                self.describe(other, 1)
                self.clauses.append([root, "winner", other, "since", "?qpv"])
        self.text = f"Of {' '.join(f'Name{n}' for n in range(self.names))}?"

    def name(self) -> str:
        self.names += 1
        return f"Name{self.names - 1}"

    def variable(self) -> str:
        self.variables += 1
        node = "?e" if self.variables == 1 else f"?e_{self.variables - 1}"
        self.clauses.append([node, "instance of", self.chance.choice(["lake", "canton"])])
        return node

    def qualifier(self) -> list[str]:
        return ["part", self.name()] if self.chance.random() < 0.3 else []

    def describe(self, node: str, depth: int) -> None:
        variable = node.startswith("?")
        for _ in range(self.chance.randint(1, 3) if variable else self.chance.randint(0, 1)):
            if depth == 0 or self.chance.random() < 0.4:
                self.clauses.append([node, "motto", self.name(), *self.qualifier()])
                continue
            other = self.variable() if self.chance.random() < 0.4 else self.name()
            self.describe(other, depth - 1)
            ends = [node, other] if self.chance.random() < 0.5 else [other, node]
            relation = self.chance.choice(["lies in", "borders"])
            self.clauses.append([ends[0], relation, ends[1], *self.qualifier()])


_READS = {
    "FilterStr", "Relate", "QueryAttr", "QueryAttrUnderCondition", "QueryAttrQualifier",
    "QueryRelationQualifier",
}  # fmt: skip


@given(st.randoms(use_true_random=False))
def test_random_trees(chance: random.Random) -> None:
    tree = Tree(chance)
    schema = GraphSchema(frozenset(["lies in", "borders", "winner"]), frozenset(["motto", "code"]))
    program = convert(question(tree.target, tree.text, tree.clauses), schema).program
    assert is_well_typed(program)
    # Every name of the graph is an argument once; every clause is one call.
    said = Counter(text for call in post_order(program) for text in call.arguments)
    assert {text: said[text] for text in said if text.startswith("Name")} == {
        f"Name{number}": 1 for number in range(tree.names)
    }
    reads = [call for call in post_order(program) if call.function.name in _READS]
    assert len(reads) == sum(clause[1] != "instance of" for clause in tree.clauses)
    last = tree.clauses[-1:]
    others = tree.clauses[:-1]
    chance.shuffle(others)
    again = convert(question(tree.target, tree.text, others + last), schema).program
    assert exact_match(program, again)


_NODES = st.sampled_from(["?e", "?e_1", "Uri", "Mill", "Zug (", "Amber Cup", "Ada Moss"])
_ENDS = _NODES | st.sampled_from(["?pv", "?qpv", "Up", "17"])
_PREDICATES = st.sampled_from(["lies in", "borders", "winner", "motto", "code", "instance of"])


@given(
    st.sampled_from(TARGETS),
    st.lists(
        st.tuples(_NODES, _PREDICATES, _ENDS).map(list)
        | st.tuples(_NODES, _PREDICATES, _ENDS, st.just("since"), _ENDS).map(list),
        max_size=6,
    ),
)
def test_any_graph_gives_a_program_or_a_reason(target: str, graph: list[list[str]]) -> None:
    schema = GraphSchema(frozenset(["lies in", "borders", "winner"]), frozenset(["motto", "code"]))
    whole = [["?e", "instance of", "lake"], ["?e_1", "instance of", "canton"], *graph]
    try:
        program = convert(question(target, "Of Uri, Mill, Zug (Ada) and lake 17?", whole), schema)
    except NotConverted as error:
        assert error.reason
        return
    arguments = [text for call in post_order(program.program) for text in call.arguments]
    assert not any(map(is_variable, arguments))


def test_schema() -> None:
    schema = GraphSchema.of(map(from_json, lines()))
    assert schema.is_relation("lies in") and not schema.is_relation("motto")
    assert schema.is_relation("currency") and not schema.is_relation("phone number")
    assert {"Ada Moss", "Bo Reed"} <= schema.tails["winner"]
    with pytest.raises(NotConverted, match="unknown predicate: 'colour of soul'"):
        schema.is_relation("colour of soul")
    # A relation at the end of a yes-no question: what was asked for is lost, it is still one.
    lost = question("bool", "Is it?", [["Uri", "lies in", "Zug"]])
    assert GraphSchema.of([*map(from_json, lines()), lost]).is_relation("lies in")


def test_a_name_may_look_like_a_variable(schema: GraphSchema) -> None:
    asked = question("bool", "Is ?uestion the motto of ?uri?", [["?uri", "motto", "?uestion"]])
    program = convert(asked, schema).program
    assert str(program) == 'VerifyStr(QueryAttr(Find("?uri"), "motto"), "?uestion")'


def test_the_split_is_fixed() -> None:
    # As `printf train-4 | sha256sum` begins with digits that make a multiple of ten.
    test = [n for n in range(60) if part_of(f"train-{n}") == "test"]
    assert test == [4, 8, 11, 15, 18, 23, 49, 57]
    parts = [part_of(f"train-{n}") for n in range(20000)]
    assert 1900 < parts.count("test") < 2100


def test_reading(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", lines())
    questions = list(read_questions(path))
    assert len(questions) == len(CASES) + len(PROOF)
    assert questions[11].clauses[0].tail == "3 Low St, Altdorf"
    assert questions[11].clauses[1].tail == "1,2,(3)"
    assert questions[0].sources == ("multihop", "verify")


GOOD: dict[str, Any] = lines()[0]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("x", "line 1: an object with a question and its graph was expected, not 'x'"),
        ({**GOOD, "id": 5}, "line 1: 'id' must be a text, not 5"),
        ({**GOOD, "answer": None}, "line 1: 'answer' must be a text, not None"),
        ({**GOOD, "graph": "?e"}, "line 1: 'graph' must be a list of clauses"),
        ({**GOOD, "graph": [["?e", 1, "x"]]}, "line 1: 'graph' must be a list of clauses"),
        ({**GOOD, "graph": [[]]}, "line 1: 'graph' must be a list of clauses"),
        ({**GOOD, "src": "verify"}, "line 1: 'src' and 'choices' must be lists of texts"),
        ({**GOOD, "target": "?x"}, "line 1: 'target' must be one of ?qpv, bool, ?e, ?pv, count ?e"),
    ],
)
def test_malformed_lines(tmp_path: Path, item: object, message: str) -> None:
    path = write(tmp_path / "q.jsonl", [item])
    with pytest.raises(ReadError) as caught:
        list(read_questions(path))
    assert str(caught.value).startswith(f"{path}: {message}")


def test_an_id_comes_once(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", [GOOD, GOOD])
    with pytest.raises(ReadError, match="line 2: the id 'case-0' was used before, at line 1"):
        list(read_questions(path))
