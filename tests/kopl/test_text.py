"""Reading and writing programs in all spellings."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kopl.errors import LimitError, ParseError, ProgramError, TypingError
from kopl.executor import Executor, Limits
from kopl.functions import FUNCTIONS
from kopl.program import Call
from kopl.text import (
    read,
    to_json,
    to_nested_json,
    write_json,
    write_nested,
    write_nested_json,
    write_serialised,
)
from tests.kopl.strategies import programs

FIND, COUNT, AND = FUNCTIONS["Find"], FUNCTIONS["Count"], FUNCTIONS["And"]

AWKWARD = [
    "<arg>", "<func>", "\\<arg>", "a\\", "\\\\<func>\\", " leading", "trailing ", "", " ", '"', "'",
    "a\nb\t", "(", "),(", "\\n", "日本", "é", "\U0001f600", "x <func> Count", "a, b", "\u2028",
    "<arg> <arg>", "\\", "What()", "[1]",
]  # fmt: skip


def spellings(program: Call) -> list[str]:
    return [
        write_nested(program),
        write_serialised(program),
        write_json(program),
        write_json(program, published=True),
        write_nested_json(program),
    ]


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_survive_every_spelling(name: str) -> None:
    program = Call(AND, (Call(FIND, (), (name,)), Call(FIND, (), (name + "x",))))
    program = Call(COUNT, (program,))
    for text in spellings(program):
        assert read(text) == program, text


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_text_survives_every_spelling(data: st.DataObject) -> None:
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    program = data.draw(programs(depth=3))

    def redrawn(call: Call) -> Call:
        arguments = tuple(data.draw(texts) for _ in call.arguments)
        return Call(call.function, tuple(map(redrawn, call.inputs)), arguments)

    program = redrawn(program)
    for text in spellings(program):
        assert read(text) == program, text


def test_the_paper_s_serialised_form() -> None:
    text = "Find <arg> LeBron James Jr. <func> Relate <arg> father <arg> forward <func> What"
    expected = 'QueryName(Relate(Find("LeBron James Jr."), "father", "forward"))'
    assert write_nested(read(text)) == expected
    assert write_serialised(read(text)) == text.replace("What", "QueryName")


def test_bare_and_single_quoted_texts() -> None:
    expected = read('FilterNum(Relate(Find("A B"), "x", "forward"), "k", "5 metre", "<")')
    assert read("FilterNum( Relate(Find(A B), x,forward) , 'k', 5 metre, <)") == expected
    assert read("Find('it\\'s \"so\"')").arguments == ('it\'s "so"',)
    assert read("Find(Count)").arguments == ("Count",)


def test_what_is_read_and_only_kqapro_writes_it() -> None:
    program = read("What(Find(x))")
    assert program.function.name == "QueryName"
    assert to_json(program)[-1]["function"] == "QueryName"
    assert to_json(program, published=True)[-1]["function"] == "What"


def test_json_calls_may_be_shared() -> None:
    shared = [
        {"function": "Find", "inputs": ["x"], "dependencies": []},
        {"function": "And", "inputs": [], "dependencies": [0, 0]},
    ]
    assert write_nested(read(shared)) == 'And(Find("x"), Find("x"))'


def test_json_without_dependencies_is_post_order() -> None:
    assert (
        write_nested(read([{"function": "FindAll"}, {"function": "Count"}])) == "Count(FindAll())"
    )


def test_nested_json_names_arguments_and_leaves_out_what_is_not_taken() -> None:
    program = read('Relate(FilterConcept(FindAll(), "city"), "capital", "backward")')
    assert to_nested_json(program) == {
        "function": "Relate",
        "inputs": [
            {
                "function": "FilterConcept",
                "inputs": [{"function": "FindAll"}],
                "arguments": {"concept": "city"},
            }
        ],
        "arguments": {"relation": "capital", "direction": "backward"},
    }
    assert read(to_nested_json(program)) == read({"program": to_nested_json(program)}) == program


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({}, "a function's name must be a text, not None"),
        ({"program": 3}, 'call 0: an object with a field "function" was expected, not 3'),
        ({"function": "Fnd"}, "there is no function 'Fnd'; did you mean Find"),
        ({"function": "Find"}, 'Find: "arguments" must be an object of texts with name'),
        ({"function": "Find", "arguments": {"name": 3}}, "Find: name must be a text, not 3"),
        ({"function": "Count", "inputs": "x"}, '"inputs" must be a list of calls'),
        ({"function": "FindAll", "arguments": {"a": "b"}}, '"arguments" must be left out'),
        (
            {"function": "Count", "inputs": [{"function": "FindAll"}, "x"]},
            "call 1: an object with a field \"function\" was expected, not 'x'",
        ),
    ],
)
def test_malformed_nested_json(item: dict[str, object], message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(item)
    assert message in str(caught.value)


def test_nested_json_has_limits() -> None:
    deep: dict[str, object] = {"function": "FindAll"}
    for _ in range(5000):
        deep = {"function": "Count", "inputs": [deep]}
    with pytest.raises(LimitError, match="200 calls"):
        read(deep)
    wide = {"function": "And", "inputs": [{"function": "FindAll"}] * 30_000}
    with pytest.raises(LimitError, match="10000 calls"):
        read(wide)
    two = Call(FIND, (), ("a", "b"))
    with pytest.raises(ParseError, match="Find takes 1 textual argument"):
        to_nested_json(two)


def test_programs_cannot_be_changed_and_hash_by_content() -> None:
    program = read("Count(Find(x))")
    with pytest.raises(AttributeError):
        program.arguments = ("y",)
    with pytest.raises(AttributeError):
        del program.inputs
    assert {program: 1}[read('Count(Find("x"))')] == 1
    assert program != read("Count(Find(y))")
    assert program != "Count"


def test_programs_pickle() -> None:
    import pickle

    program = read("Count(Find(x))")
    assert pickle.loads(pickle.dumps(program)) == program


# (text, error, a part of the message)
MALFORMED = [
    ("", ParseError, "empty"),
    ("   ", ParseError, "empty"),
    ('Fnd("x")', ParseError, "no function 'Fnd'; did you mean Find"),
    ('Count(Fnd("x"))', ParseError, "column 7: there is no function 'Fnd'"),
    ('find("x")', ParseError, "did you mean Find"),
    ('Count(Find("x")', ParseError, "ends too early; 1 closing parenthesis missing"),
    ('Count(Find("x")))', ParseError, "column 17: ')' was not expected"),
    ('Find("x', ParseError, "quoted text does not end"),
    ('Find("x" "y")', ParseError, "column 10"),
    ("Find(x,)", ParseError, "column 8: ')'"),
    ("Count(Find(x)) Count", ParseError, "column 16"),
    ('Find("\\q")', ParseError, "escape"),
    ('Relate("r", Find("x"), "forward")', ParseError, "inputs come before"),
    ("Count(Find(x),\n  Fnd(y))", ParseError, "line 2, column 3"),
    ("hello", ParseError, "no function 'hello'; there are FindAll, Find, FilterConcept, "),
    ("Foo()", ParseError, "no function 'Foo'; did you mean Find?"),
    ("count", ParseError, "no function 'count'; did you mean Count?"),
    ("Find <arg> x <func>", ParseError, "call 1: a function's name is missing"),
    ("Count", ParseError, "takes 1 input"),
    ("Find <arg> x <func> Find <arg> y", ParseError, "2 calls are left over"),
    ("Find <arg> x <func> And", ParseError, "call 1: And takes 2 inputs"),
    ("[", ParseError, "not JSON"),
    ("[]", ParseError, "empty"),
    ("[1]", ParseError, "call 0: an object"),
    ('[{"function": 5}]', ParseError, "must be a text, not 5"),
    ('[{"inputs": []}]', ParseError, "must be a text, not None"),
    ('[{"function": "Fnd", "inputs": []}]', ParseError, "did you mean Find"),
    ('[{"function": "Find", "inputs": "x"}]', ParseError, "list of texts"),
    ('[{"function": "Find", "inputs": [1]}]', ParseError, "must be texts, not 1"),
    ('[{"function": "Count", "dependencies": [0]}]', ParseError, "no earlier call"),
    ('[{"function": "Count", "dependencies": [-1]}]', ParseError, "no earlier call"),
    ('[{"function": "Count", "dependencies": [true]}]', ParseError, "no earlier call"),
    ('[{"function": "Count", "dependencies": 0}]', ParseError, "list of numbers"),
    ('[{"function": "FindAll"}, {"function": "FindAll"}]', ParseError, "call 0: no later call"),
    ("[" * 100_000, ParseError, "JSON"),
    ("Count(" * 300 + "FindAll()" + ")" * 300, LimitError, "301 calls deep; the limit is 200"),
    ("Count(" * 100_000, LimitError, "the limit is 200"),
    ("FindAll" + " <func> Count" * 300, LimitError, "301 calls deep"),
    # typing
    ("Count()", TypingError, "Count takes 1 input and no textual arguments, found no inputs"),
    ("Count(FindAll)", TypingError, "'FindAll' is a text here, the call is FindAll()"),
    ("QueryName(What)", TypingError, "'What' is a text here, the call is QueryName(E)"),
    ('And(Find("a"), Relate)', TypingError, "the call is Relate(E, relation, direction)"),
    ("Count(Other)", TypingError, "write Count(E)"),
    ("Find", TypingError, "Find takes no inputs and 1 textual argument"),
    ('Find("x", "y")', TypingError, "write Find(name)"),
    ("Count(Count(FindAll()))", TypingError, "call 2: Count expects a set of entities as input"),
    ("And(FindAll(), Count(FindAll()))", TypingError, "input 2, found a number (given by Count)"),
    ("QFilterStr(FindAll(), k, v)", TypingError, "with the facts"),
    ("QFilterStr(FilterConcept(FindAll(), c), k, v)", TypingError, "given by FilterConcept"),
    ("QFilterStr(And(FindAll(), FindAll()), k, v)", TypingError, "Relate or another QFilter"),
    ("VerifyStr(QueryAttrQualifier(Find(x), k, v, q), a)", TypingError, "found qualifier values"),
    ("VerifyStr(Find(x), a)", TypingError, "expects attribute values"),
    ("Relate(Find(x), r, sideways)", TypingError, "forward or backward was expected"),
    ("FilterNum(FindAll(), k, 5, ==)", TypingError, "one of = != < > was expected, found '=='"),
    ("SelectAmong(FindAll(), k, greater)", TypingError, "largest or smallest was expected"),
    ('FilterNum(FindAll(), k, "1,000", =)', TypingError, "'1,000' is not a quantity"),
    ("FilterNum(FindAll(), k, nan, =)", TypingError, "not a quantity"),
    ("FilterNum(FindAll(), k, 1_000, =)", TypingError, "not a quantity"),
    ("FilterNum(FindAll(), k, 1e999, =)", TypingError, "finite"),
    ("FilterYear(FindAll(), k, 2001-02-30, =)", TypingError, "no day 2001-02-30"),
    ("FilterDate(FindAll(), k, spring, =)", TypingError, "neither a year nor a day"),
    ("FilterDate(FindAll(), k, 9999999999999999999, =)", TypingError, "out of range"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error", "message"), MALFORMED, ids=[m[0][:40] for m in MALFORMED]
)
def test_malformed_programs(tiny: object, text: str, error: type, message: str) -> None:
    with pytest.raises(error) as caught:
        Executor(tiny).run(text)  # type: ignore[arg-type]
    assert message in str(caught.value)


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(max_size=40), st.text("FindCount(),\"'<arg> \\[]{}:x", max_size=40)))
def test_no_text_gives_another_error(text: str) -> None:
    try:
        read(text)
    except ProgramError as error:
        assert error.kind in ("parse", "limit")


def test_a_mangled_program_never_gives_another_error() -> None:
    rng = random.Random(3)
    original = 'QueryName(And(Relate(Find("x"), "r", "forward"), FilterNum(FindAll(), "k", 5, <)))'
    for _ in range(2000):
        text = list(original)
        for _ in range(rng.randint(1, 4)):
            text[rng.randrange(len(text))] = rng.choice('()",<>x \\')
        try:
            read("".join(text))
        except ProgramError:
            continue


def test_shared_calls_cannot_blow_up() -> None:
    calls: list[dict[str, object]] = [{"function": "FindAll", "inputs": [], "dependencies": []}]
    for number in range(60):
        calls.append({"function": "And", "inputs": [], "dependencies": [number, number]})
    with pytest.raises(LimitError, match="more than 10000 calls"):
        read(json.dumps(calls))


def test_depth_limit_can_be_raised(tiny: object) -> None:
    text = "And(" * 300 + "FindAll()" + ", FindAll())" * 300
    assert Executor(tiny, limits=Limits(depth=400)).run(text).state == "several"  # type: ignore[arg-type]
