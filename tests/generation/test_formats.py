"""Question sets as files: round trips, refusals, and what other tools expect of the files."""

from __future__ import annotations

import csv
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.blocks import generate
from generation.conversion import convert, to_kqapro, write_csv, write_kqapro
from generation.formats import open_examples
from kb import KnowledgeBase
from kopl.example import Example, read_examples, write_examples
from kopl.functions import FUNCTIONS
from kopl.program import Call
from kopl.text import read, write_serialised
from kopl_base.errors import KoplError, ReadError
from kopl_cli import main
from tests.kopl.strategies import programs

# Python 3.10 reads no CSV with a zero character.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
WORD = TEXT.filter(bool)
EXAMPLES = st.builds(
    Example,
    question=TEXT,
    program=programs(),
    answer=st.none() | WORD,
    choices=st.lists(TEXT, max_size=3).map(tuple),
    id=st.none() | WORD,
    type=st.none() | WORD,
    sparql=st.none() | WORD,
    canonical=st.none() | WORD,
    extra=st.dictionaries(st.sampled_from(["hops", "x", ""]), st.none() | TEXT | st.integers()),
)
PROGRAM = read('QueryName(Relate(Find("A"), "r", "forward"))')
CHOICES = tuple("ABCDEFGHIJ")


def example(name: str, **fields: Any) -> Example:
    fields = {"answer": "A", "choices": CHOICES, "sparql": "ASK { ?e a ?c . }"} | fields
    return Example(f"{name}?", PROGRAM, **fields)


@pytest.fixture(scope="module")
def generated(lands: KnowledgeBase) -> list[Example]:
    return list(generate(lands, 40, 2))


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder with three parts."""
    folder = tmp_path / "parts"
    for name in ("train", "valid", "test"):
        write_examples(folder / f"{name}.jsonl", [example(f"{name} {n}") for n in range(3)])
    return folder


# --- round trips -------------------------------------------------------------------------------


def same(found: list[Example], given_examples: list[Example]) -> None:
    assert found == given_examples
    assert [e.extra for e in found] == [e.extra for e in given_examples]


@settings(deadline=None)  # files
@given(st.lists(EXAMPLES, max_size=3))
def test_csv_keeps_everything(tmp_path_factory: Any, given_examples: list[Example]) -> None:
    path = tmp_path_factory.getbasetemp() / "set.csv"
    assert write_csv(path, given_examples) == len(given_examples)
    same(list(open_examples(path)), given_examples)


@settings(deadline=None)  # files
@given(st.lists(EXAMPLES, max_size=3))
def test_json_lines_keep_everything(tmp_path_factory: Any, given_examples: list[Example]) -> None:
    path = tmp_path_factory.getbasetemp() / "set.jsonl.gz"
    assert write_examples(path, given_examples) == len(given_examples)
    same(list(open_examples(path)), given_examples)


def test_parquet_keeps_everything(tmp_path_factory: Any) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    from generation.parquet import write_parquet

    path = tmp_path_factory.getbasetemp() / "set.parquet"

    @settings(deadline=None)  # files
    @given(st.lists(EXAMPLES, max_size=3))
    def keeps(given_examples: list[Example]) -> None:
        assert write_parquet(path, given_examples).rows == len(given_examples)
        same(list(open_examples(path)), given_examples)

    keeps()


@settings(deadline=None)  # files
@given(st.lists(EXAMPLES, max_size=3))
def test_kqapro_keeps_its_fields(tmp_path_factory: Any, given_examples: list[Example]) -> None:
    path = tmp_path_factory.getbasetemp() / "set.json"
    assert write_kqapro(path, given_examples) == len(given_examples)
    kept = [
        Example(e.question, e.program, e.answer, e.choices, sparql=e.sparql) for e in given_examples
    ]
    same(list(open_examples(path)), kept)


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    odd = ["=1+1", "\r=a", "\n@b", " +c", "＝x", "'=1", "-5", "'tis"]
    given_examples = [example(text, answer=text, choices=odd, extra={"n": text}) for text in odd]
    write_csv(path, given_examples)
    with path.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.lstrip()[:1] in tuple("=@＝")]
    same(list(open_examples(path)), [replace(e, choices=tuple(odd)) for e in given_examples])


def test_every_order_of_forms(generated: list[Example], tmp_path: Path) -> None:
    first, table, back = (tmp_path / n for n in ("a.jsonl", "b.csv", "c.jsonl"))
    write_examples(first, generated)
    assert convert(first, table, "csv") == convert(table, back, "jsonl") == len(generated)
    assert back.read_bytes() == first.read_bytes()


# --- KQA Pro's files ---------------------------------------------------------------------------


def test_kqapro_folder(parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["data", "convert", str(parts), str(out), "--to", "kqapro"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["test.json", "train.json", "val.json"]
    train = json.loads((out / "train.json").read_text("utf-8"))
    assert [list(item) for item in train] == [
        ["question", "choices", "program", "sparql", "answer"]
    ] * 3
    assert [call["function"] for call in train[0]["program"]] == ["Find", "Relate", "What"]
    assert train[0]["program"][1] == {
        "function": "Relate", "dependencies": [0], "inputs": ["r", "forward"],
    }  # fmt: skip
    test = json.loads((out / "test.json").read_text("utf-8"))
    assert test == [{"question": f"test {n}?", "choices": list(CHOICES)} for n in range(3)]
    assert convert(parts, out, "kqapro", with_answers=True) == 9
    assert "answer" in json.loads((out / "test.json").read_text("utf-8"))[0]


def test_questions_without_programs_are_left_out(
    parts: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    convert(parts, out, "kqapro")
    with caplog.at_level(logging.WARNING, "kb"):
        logging.getLogger("kb").propagate = True
        assert len(list(open_examples(out))) == 6
    assert "test.json: left out: its questions have no programs" in caplog.text
    with pytest.raises(ReadError, match="item 0: not an example: there is no 'program'"):
        list(open_examples(out / "test.json"))


def test_missing_choices_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("kb").propagate = True
    without = [example("a", choices=()), example("b", answer="Z"), example("c")]
    assert write_kqapro(tmp_path / "train.json", without) == 3
    assert "2 of 3 questions have no choices with their answer" in caplog.text


PUBLISHED = {function.published for function in FUNCTIONS.values()}
# The functions before which the published executor ends a branch, and those that join two.
LEAVES, JOINS = (
    {function.published for function in FUNCTIONS.values() if function.arity == arity}
    for arity in (0, 2)
)


def inferred(names: list[str]) -> list[list[int]]:
    """The dependencies as the published executor works them out from the names alone."""
    ends: list[int] = []
    found = []
    for at, name in enumerate(names):
        if name in LEAVES:
            ends.append(at - 1)
            found.append([])
        else:
            found.append([ends.pop(), at - 1] if name in JOINS else [at - 1])
    return found


def check_published(item: dict[str, Any], program: Call) -> None:
    """What the published preprocessing and executor do with an object, step by step."""
    assert type(item["question"]) is str
    calls = item["program"]
    names = [call["function"] for call in calls]
    assert set(names) <= PUBLISHED and "QueryName" not in names
    for call in calls:
        assert set(call) == {"function", "dependencies", "inputs"}
        assert len(call["dependencies"]) <= 2 and len(call["inputs"]) <= 3
        assert all(type(text) is str for text in call["inputs"])
        assert all(type(number) is int for number in call["dependencies"])
    assert inferred(names) == [call["dependencies"] for call in calls]
    text = " <func> ".join(
        call["function"] + "".join(f" <arg> {text}" for text in call["inputs"]) for call in calls
    )
    # The marks inside of names are escaped in ours; such names are none of the published ones.
    if "<arg>" not in "".join(text for call in calls for text in call["inputs"]):
        assert text.replace("What", "QueryName") == write_serialised(program) or "What" in str(
            program
        )
        assert read(text) == program


@given(EXAMPLES)
def test_published_preprocessing_reads_any_program(one: Example) -> None:
    item = to_kqapro(one)
    if not any("<func>" in text or text != text.strip() for text in texts(one.program)):
        check_published(item, one.program)


def texts(program: Call) -> list[str]:
    own = list(program.arguments)
    return own + [text for part in program.inputs for text in texts(part)]


def test_published_preprocessing_reads_ours(generated: list[Example], tmp_path: Path) -> None:
    """Choices are many of equal number, hold the answer, and no field is missing."""
    path = tmp_path / "train.json"
    write_kqapro(path, generated)
    items = json.loads(path.read_text("utf-8"))
    number_of = {choice: n for n, choice in enumerate({c for i in items for c in i["choices"]})}
    for item, one in zip(items, generated, strict=True):
        check_published(item, one.program)
        assert len(item["choices"]) == 10
        assert number_of.get(item["answer"]) is not None
        assert item["answer"] in item["choices"]


def test_published_files_are_ours(kopl_data: Path) -> None:
    """Reading and writing gives the published objects again, key by key."""
    path = kopl_data / "kqapro" / "gold_30.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for line, one in zip(lines, read_examples(path), strict=True):
        item = to_kqapro(one)
        assert {key: item[key] for key in line if key != "id"} == {
            key: value for key, value in line.items() if key != "id"
        }
        check_published(line, one.program)
    questions = json.loads((kopl_data / "kqapro" / "test_questions.json").read_text("utf-8"))
    bare = to_kqapro(example("a"), bare=True)
    assert all(set(question) == set(bare) for question in questions)
    assert all(len(question["choices"]) == 10 for question in questions)


# --- Parquet -----------------------------------------------------------------------------------


def test_parquet_folder(parts: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    out = tmp_path / "out"
    assert main(["data", "convert", str(parts), str(out), "--to", "parquet"]) == 0
    names = sorted(path.name for path in (out / "data").iterdir())
    assert names == [f"{n}-00000-of-00001.parquet" for n in ("test", "train", "validation")]
    card = (out / "README.md").read_text("utf-8")
    assert "- split: validation\n    path: data/validation-*.parquet" in card
    assert "| validation | 3 |" in card
    row = parquet.read_table(out / "data" / names[1]).to_pylist()[0]
    assert row["hops"] == 1 and row["skills"] == ["multi-hop"]
    assert row["program"][1] == {
        "function": "Relate", "dependencies": [0], "inputs": ["r", "forward"],
    }  # fmt: skip
    assert list(open_examples(out)) == list(open_examples(parts))
    back = tmp_path / "back"
    assert convert(out, back, "jsonl") == 9
    assert (back / "valid.jsonl").read_bytes() == (parts / "valid.jsonl").read_bytes()


def test_damaged_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 no table PAR1")
    with pytest.raises(ReadError, match=r"a\.parquet: cannot be read as Parquet"):
        list(open_examples(path))
    parquet.write_table(pyarrow.table({"question": ["a"]}), path)
    with pytest.raises(ReadError, match="no column program"):
        list(open_examples(path))
    # Lists of structures as some tools hold them, one list for each field.
    calls = {"function": ["Find", "What"], "inputs": [["A"], []], "dependencies": [[], [0]]}
    parquet.write_table(pyarrow.table({"question": ["a"], "program": [calls]}), path)
    assert list(open_examples(path)) == [Example("a", read('QueryName(Find("A"))'))]
    parquet.write_table(pyarrow.table({"question": ["a"], "program": [5]}), path)
    with pytest.raises(ReadError, match="row 0: program: a list of calls was expected"):
        list(open_examples(path))


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write_examples(tmp_path / "a.jsonl", [example("a")])
    with pytest.raises(KoplError, match=r"install it with: pip install .*\[parquet\]"):
        convert(tmp_path / "a.jsonl", tmp_path / "out", "parquet")


# --- reading -----------------------------------------------------------------------------------

LINE = json.dumps(example("a").to_json())
MALFORMED = {
    "a.jsonl": [
        ("{", "line 1: not JSON"),
        (LINE + "\n5\n", "line 2: not an example: an object with a question and a program"),
        (LINE.replace('"a?"', "5"), "line 1: not an example: the question is 5"),
        (LINE.replace('"answer": "A"', '"answer": 5'), "'answer' is 5, but must be a text"),
        (LINE.replace('["A",', '[5,'), "'choices' must be a list of texts"),
        (LINE.replace("Relate", "Relato"), "line 1: program: call 1: there is no function"),
        (LINE.replace('"a?"', '"\\ud800"'), "line 1: the line is not UTF-8 text"),
        (
            json.dumps({"question": "a", "program": '[{"function":"Find","inputs":["\\ud800"]}]'}),
            "line 1: the program is not UTF-8 text",
        ),
        ("[" * 100_000, "not JSON"),
    ],
    "a.json": [
        (f"[{LINE}", "the file ends too early"),
        (f"[{LINE},]", "line 1, column"),
        (f"[{LINE}] x", "text follows"),
        (f"[{LINE}, 5]", "item 1: not an example"),
        (f'[{LINE}, "\\ud800"]', "item 1 is not UTF-8 text"),
    ],
    "a.csv": [
        ("", "no column program and no column question"),
        ("question\na\n", "no column program"),
        ("question,program\na\n", "line 2: the row has more or fewer cells"),
        ("question,program\na,b,c\n", "line 2: the row has more or fewer cells"),
        ("question,program\na,Fund(A)\n", "line 2: program: "),
        ("question,program\na,\n", "line 2: program: the program is empty"),
        ('question,program,choices\na,FindAll(),"[""a"""\n', "line 2: the cell 'choices'"),
        ("question,program,choices\na,FindAll(),5\n", "'choices' must be a list"),
        ('question,program,extra\na,FindAll(),"[1]"\n', "line 2: the column 'extra'"),
        ('question,program,choices\na,FindAll(),"[""\\ud800""]"\n', "line 2: the row is not"),
        ('question,program\na,"Find(""\\ud800"")"\n', "line 2: the row is not UTF-8 text"),
        ('question,program,extra\na,FindAll(),"{""x"":""\\ud800""}"\n', "line 2: the column"),
        ('question,program\n"a"b,FindAll()\n', "line 2: not CSV"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [(name, *case) for name, cases in MALFORMED.items() for case in cases],
    ids=lambda value: str(value)[-40:],
)
def test_malformed(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ReadError) as caught:
        list(open_examples(tmp_path / name))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_lists_are_read_piece_by_piece(tmp_path: Path) -> None:
    """The first items come before a later one is found to be broken."""
    path = tmp_path / "a.json"
    path.write_text(f"\n [{LINE},\n{LINE}, oh]", "utf-8")
    found = []
    with pytest.raises(ReadError, match="line 3"):
        for one in read_examples(path):
            found.append(one)
    assert found == [example("a")] * 2


def test_numbers_as_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(LINE.replace("{", '{"id": 7, ', 1), "utf-8")
    assert [one.id for one in open_examples(path)] == ["7"]


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no question set"):
        list(open_examples(tmp_path))
    with pytest.raises(ReadError, match="there is no such file or folder"):
        list(open_examples(tmp_path / "no.jsonl"))
    for name in ("test.jsonl", "train.json", "dev.csv", "kb.json", "train-notes.jsonl"):
        write = write_csv if name.endswith("csv") else write_examples
        write(tmp_path / name, [example(name)])
    found = [one.question for one in open_examples(tmp_path)]
    assert found == ["train.json?", "dev.csv?", "test.jsonl?"]
    write_examples(tmp_path / "val.jsonl.gz", [])
    with pytest.raises(ReadError, match=r"the part valid: dev\.csv, val\.jsonl\.gz"):
        list(open_examples(tmp_path))


def test_csv_is_for_people(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", [example("a")])
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["program"] == 'QueryName(Relate(Find("A"), "r", "forward"))'
    assert json.loads(row["choices"]) == list(CHOICES)
