"""Formats of sampled queries: each reads what it writes, and tells what is wrong with files."""

from __future__ import annotations

import csv
import json
import pickle
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cqa.errors import QueryError
from cqa.formats.betae import files
from cqa.formats.efok import places
from cqa.formats.json_lines import from_line
from cqa.formats.samples import check_kind, read_samples, write_samples
from cqa.notation.trees import from_tree
from cqa.sampling.kinds import kinds
from cqa.sampling.options import Options, SamplingError
from cqa.sampling.run import Plan, run, stream
from cqa.sampling.sample import Sample, rows_without
from cqa.types.efok_text import write_formula
from cqa.types.grounded import from_json
from cqa.types.registry import by_name
from cqa.types.tree import Tree
from cqa.vocabularies import SAMPLE_FORMATS
from kopl_base.errors import KoplError, ReadError, WriteError
from tests.cqa.brute import tree_set
from tests.cqa.small_graph import ENTITIES, full, small_graph

TREES = ("1p", "2i", "2in", "pni", "up", "inp", "2u")
GRAPHS = ("(r1(s1,f1))&((r2(f1,f2))&(!(r3(s2,f2))))", "(r1(s1,e1))&((r2(e1,f1))&(r3(e1,f1)))")


def sampled(types: tuple[str, ...], split: str = "test", count: int = 12) -> list[Sample]:
    plan = Plan(tuple(kinds(types)), count, split=split, options=Options(most=60))
    return list(stream(plan, small_graph()))


@pytest.fixture(scope="module")
def trees() -> list[Sample]:
    found = sampled(TREES)
    assert any(len(sample.lost) for sample in found)
    return found


@pytest.fixture(scope="module")
def graphs() -> list[Sample]:
    found = sampled(GRAPHS)
    assert any(len(sample.lost) for sample in found)
    return found


def by_text(samples: list[Sample]) -> list[Sample]:
    return sorted(samples, key=lambda sample: (sample.type, repr(sample.query)))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet", "folder"])
def test_lines_and_tables_are_read_as_written(
    name: str, tmp_path: Path, trees: list[Sample], graphs: list[Sample]
) -> None:
    samples = trees + graphs
    format = "parquet" if name == "folder" else None
    write_samples(tmp_path / name, samples, format)
    assert list(read_samples(tmp_path / name)) == samples


def test_betae(tmp_path: Path, trees: list[Sample]) -> None:
    write_samples(tmp_path, trees, "betae")
    assert by_text(list(read_samples(tmp_path))) == by_text(trees)


def test_betae_files_are_what_model_code_expects(tmp_path: Path, trees: list[Sample]) -> None:
    write_samples(tmp_path, trees, "betae", "valid")
    held = {}
    for name in ("queries", "easy-answers", "hard-answers"):
        with open(tmp_path / f"valid-{name}.pkl", "rb") as file:
            held[name] = pickle.load(file)
        assert type(held[name]) is defaultdict and held[name].default_factory is set
    structures = set(held["queries"])
    assert ("e", ("r",)) in structures and (("e", ("r", "n")), ("e", ("r",))) not in structures
    assert (("e", ("r",)), ("e", ("r", "n"))) in structures  # 2in
    assert (("e", ("r", "r", "n")), ("e", ("r",))) in structures  # pni
    assert ((("e", ("r",)), ("e", ("r",)), ("u",)), ("r",)) in structures  # up
    asked = {query for queries in held["queries"].values() for query in queries}
    assert asked == set(held["easy-answers"]) == set(held["hard-answers"])
    for query in asked:
        easy, hard = held["easy-answers"][query], held["hard-answers"][query]
        assert not easy & hard and hard
        (sample,) = [s for s in read_samples(tmp_path, split="valid") if _tuple(s) == query]
        assert isinstance(sample.query, Tree)
        # Together they are all answers: what is taken back is not among them.
        assert easy | hard == tree_set(sample.query, full(), ENTITIES)


def _tuple(sample: Sample) -> Any:
    from cqa.types.betae import to_tuples

    assert isinstance(sample.query, Tree)
    return to_tuples(sample.query)


def test_betae_for_train(tmp_path: Path) -> None:
    samples = sampled(TREES, "train")
    write_samples(tmp_path, samples, "betae", "train")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "train-answers.pkl",
        "train-queries.pkl",
    ]
    assert by_text(list(read_samples(tmp_path, split="train"))) == by_text(samples)


def test_the_same_queries_give_the_same_pickles(tmp_path: Path, trees: list[Sample]) -> None:
    for folder in ("one", "two"):
        write_samples(tmp_path / folder, trees, "betae")
    for name in files("test").values():
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_efo1(tmp_path: Path, trees: list[Sample]) -> None:
    write_samples(tmp_path, trees, "efo1")
    found = list(read_samples(tmp_path))
    assert found == trees
    with open(tmp_path / "formulas.csv", newline="") as file:
        types = list(csv.DictReader(file))
    assert [row["formula_id"] for row in types] == [by_name(name).id for name in TREES]
    assert [row["name"] for row in types] == list(TREES)
    assert types[4]["DNF"] == "(u,(p,(p,(e))),(p,(p,(e))))"
    assert (types[3]["num_anchor_nodes"], types[3]["original_depth"]) == ("2", "2")
    with open(tmp_path / f"data-{types[4]['formula_id']}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, sample in zip(rows, [s for s in trees if s.type == "up"], strict=True):
        assert json.loads(row["easy_answers"]) == sample.easy[:, 0].tolist()
        for column, text in row.items():
            if column.startswith(("original", "D", "diff")):
                tree = from_json(text)
                assert tree.formula == types[4][column]
                assert tree_set(tree, full(), ENTITIES) == set(sample.full[:, 0].tolist())


def test_efok(tmp_path: Path, graphs: list[Sample]) -> None:
    write_samples(tmp_path, graphs, "efok", "valid")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"valid_{sample.type}_EFOX_qaa.json" for sample in (graphs[0], graphs[-1])
    ]
    found = list(read_samples(tmp_path, split="valid"))
    assert by_text(found) == by_text(graphs)
    name = f"valid_{graphs[0].type}_EFOX_qaa.json"
    ((formula, rows),) = json.loads((tmp_path / name).read_text()).items()
    assert formula == GRAPHS[0]
    assert set(rows[0][0]) == {"r1", "r2", "r3", "s1", "s2"}
    assert rows[0][1] == {"f1_f2": graphs[0].easy.tolist()}


def test_efok_of_trees(tmp_path: Path, trees: list[Sample]) -> None:
    """Trees are written as query graphs; those of a negated subtree cannot be."""
    given = [sample for sample in trees if sample.type != "pni"]
    write_samples(tmp_path, given, "efok")
    found = {sample.type: [] for sample in given}  # type: ignore[var-annotated]
    for sample in read_samples(tmp_path):
        found[sample.type].append(sample)
    for sample in given:
        read = found[sample.type].pop(0)
        assert read.graph == places(sample.query)[0] or read.easy.tolist() == sample.easy.tolist()
        assert write_formula(read.graph) == write_formula(from_tree(sample.query))  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="negated part"):
        write_samples(tmp_path, [s for s in trees if s.type == "pni"], "efok")


def test_parquet_is_what_datasets_loads(tmp_path: Path, trees: list[Sample]) -> None:
    datasets = pytest.importorskip("datasets", reason="pip install 'kopl-toolkit[datasets]'")
    plan = Plan(tuple(kinds(TREES)), 12, options=Options(most=60))
    run(plan, small_graph(), tmp_path / "set", format="parquet", name="small")
    valid = sampled(TREES[:2], "valid")
    write_samples(tmp_path / "set", valid, "parquet", "valid")
    loaded = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(part) for name, part in loaded.items()} == {
        "valid": len(valid),
        "test": len(trees),
    }
    assert loaded["test"][0]["hard"] == trees[0].hard.tolist()
    assert list(read_samples(tmp_path / "set")) == trees
    card = (tmp_path / "set" / "README.md").read_text()
    assert "| valid | 24 | 2 |" in card and "path: data/test-*.parquet" in card


def test_the_card_tells_the_origin(tmp_path: Path) -> None:
    plan = Plan(tuple(kinds(["2i"])), 5, seed=9, options=Options(most=60))
    run(plan, small_graph(), tmp_path / "set", format="parquet", name="small")
    card = (tmp_path / "set" / "README.md").read_text()
    for row in ("| graph | small |", "| seed | 9 |", "| most | 60 |", "| test | 5 | 1 |"):
        assert row in card


@pytest.mark.parametrize("format", SAMPLE_FORMATS)
def test_nothing_is_left_of_a_failed_write(format: str, tmp_path: Path) -> None:
    def samples() -> Iterator[Sample]:
        yield from sampled(("2i",), count=2)
        raise QueryError("no more")

    path = tmp_path / "queries"
    with pytest.raises(QueryError):
        write_samples(path, samples(), format)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_queries_of_a_type_stand_together(tmp_path: Path, trees: list[Sample]) -> None:
    mixed = [trees[0], trees[-1], trees[1]]
    for format in ("efo1", "efok"):
        with pytest.raises(QueryError, match="do not stand together"):
            write_samples(tmp_path, mixed, format)


def test_rows_without() -> None:
    random = np.random.default_rng(1)
    for width in (1, 2, 3):
        one, other = (
            np.unique(random.integers(0, 4, (30, width), np.int32), axis=0) for _ in range(2)
        )
        expected = sorted(set(map(tuple, one.tolist())) - set(map(tuple, other.tolist())))
        assert [tuple(row) for row in rows_without(one, other).tolist()] == expected
    huge = np.array([[2**31 - 1, 2**31 - 1, 0]], np.int32)
    assert len(rows_without(huge, huge)) == 0 and len(rows_without(huge, huge - 1)) == 1


# --- malformed input ----------------------------------------------------------------------------

GOOD = {
    "type": "1p",
    "formula": "(p,(e))",
    "query": {"o": "p", "a": [[2], {"o": "e", "a": [3]}]},
    "easy": [1],
    "hard": [2],
}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "an object was expected, not list"),
        ('{"type": "1p"}', "the field 'formula' is missing"),
        ({"type": 3}, "type and formula must be texts"),
        ({"query": {"o": "x", "a": []}}, "there is no operator 'x'"),
        ({"query": "2(3,f1"}, "was expected, not the end"),
        ({"query": "r1(s1,f1)"}, "has names where numbers were expected"),
        ({"easy": "12"}, "the easy answers are a list with an entity for each answer"),
        ({"easy": [[1, 2]]}, "an entity for each answer"),
        ({"hard": [1, [2]]}, "the hard answers are a list"),
        ({"hard": [1.5]}, "the hard answers are a list"),
        ({"hard": [-1]}, "hold -1, which is no entity"),
        ({"lost": [2**40]}, "hold 1099511627776, which is no entity"),
        ({"query": "(2(3,f1))&(4(f1,f2))"}, "2 entities for each answer"),
    ],
)
def test_malformed_lines(line: str | dict[str, object], message: str, tmp_path: Path) -> None:
    text = line if isinstance(line, str) else json.dumps(GOOD | line)
    with pytest.raises(QueryError) as caught:
        from_line(text)
    assert message in str(caught.value)
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n\n{text}\n")
    with pytest.raises(ReadError) as told:
        list(read_samples(path))
    assert str(told.value).startswith(f"{path}: line 3: ") and message in str(told.value)


class Command:
    """What a pickle must not be able to run."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not print: Ray puts another one in its place when a test of it ran before.
        return eval, ("print('pwned')",)


TYPE, QUERY = ("e", ("r",)), (3, (2,))


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"queries": {TYPE: {Command()}}}, "is refused: it would load builtins.eval"),
        ({"queries": [1]}, "holds no dictionary of sets"),
        ({"queries": {TYPE: 3}}, "holds no dictionary of sets"),
        ({"queries": {("x",): set()}}, "('x',): "),
        ({"queries": {TYPE: {("e", ("r",))}}}, "the query has no answers"),
        ({"queries": {TYPE: {(3, (2, 4))}}}, "it is of the type (p,(p,(e))), not (p,(e))"),
        ({"queries": {TYPE: {(9, (2,))}}}, "the query has no answers"),
        ({"hard-answers": {QUERY: {"x"}}}, "the hard-answers answers are a list"),
        ({"easy-answers": None}, "cannot be read: No such file"),
        ({"queries": b"\x80\x04nonsense"}, "is damaged or no pickle"),
        ({"queries": b""}, "is damaged or no pickle"),
        ({"queries": pickle.dumps(np.float64(3))}, "is refused"),
    ],
)
def test_malformed_pickles(
    held: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {"queries": {TYPE: {QUERY}}, "easy-answers": {QUERY: {1}}, "hard-answers": {QUERY: {2}}}
    for name, value in (good | held).items():
        data = value if isinstance(value, bytes) else pickle.dumps(value)
        if value is not None:
            (tmp_path / f"test-{name}.pkl").write_bytes(data)
    with pytest.raises(ReadError) as caught:
        list(read_samples(tmp_path))
    assert message in str(caught.value)
    assert "pwned" not in capsys.readouterr().out


def test_pickles_of_numpy_numbers_are_read(tmp_path: Path) -> None:
    query = (np.int64(3), (np.int64(2),))
    held = {"queries": {TYPE: {query}}, "easy-answers": {query: set()},
            "hard-answers": {query: {np.int32(7)}}}  # fmt: skip
    for name, value in held.items():
        (tmp_path / f"test-{name}.pkl").write_bytes(pickle.dumps(value))
    (sample,) = read_samples(tmp_path)
    assert sample.hard.tolist() == [[7]] and sample.relations == (1,) and sample.anchors == (3,)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("formulas.csv", "formula_id\n1p\n", "formulas.csv: the column original is missing"),
        ("formulas.csv", "formula_id,original\n1p,(p\n", "formulas.csv: line 2: character 3"),
        ("formulas.csv", "formula_id,original\n1p\n", "line 2: the line has more or fewer fields"),
        (
            "formulas.csv",
            'formula_id,original\na,"(p,(e))"\na,"(p,(p,(e)))"\n',
            "formulas.csv: line 3: the id a stands there twice",
        ),
        (
            "data-type0000.csv",
            "original,easy_answers,hard_answers\n"
            '"{""o"":""p"",""a"":[1,{""o"":""e"",""a"":[1]}]}",' + "[" * 100_000 + ",[]\n",
            "line 2: the easy answers are no list in JSON: maximum recursion depth exceeded",
        ),
        ("data-type0000.csv", None, "data-type0000.csv: cannot be opened"),
        ("data-type0000.csv", "original,easy_answers,hard_answers\n{,[],[]\n", "line 2: not JSON"),
        (
            "data-type0000.csv",
            'original,easy_answers,hard_answers\n"{""o"":""e"",""a"":[1]}",[],[]\n',
            "line 2: a query of the type (p,(e)) was expected, not of (e)",
        ),
        (
            "data-type0000.csv",
            'original,easy_answers,hard_answers\n"{""o"":""p"",""a"":[1,{""o"":""e"",""a"":[1]}]}"'
            ",[x],[]\n",
            "line 2: the easy answers are no list in JSON: Expecting value",
        ),
    ],
)
def test_malformed_tables(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    write_samples(tmp_path, [from_line(json.dumps(GOOD))], "efo1")
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)
    with pytest.raises(ReadError) as caught:
        list(read_samples(tmp_path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "expected '{', found '['"),
        ('{"r1(s1": []}', "the formula r1(s1: "),
        ('{"r1(s1,f1)": [[1]]}', "query 1: a list of grounding, easy and hard answers"),
        ('{"r1(s1,f1)": [[[], {}, {}]]}', "the grounding must map names to numbers"),
        ('{"r1(s1,f1)": [[{"r1": 2}, {}, {}]]}', "no number is given for the constant 's1'"),
        ('{"r1(s1,f1)": [[{"r1": 2, "s1": "x"}, {}, {}]]}', "must map names to numbers"),
        ('{"r1(s1,f1)": [[{"r1": 2, "s1": 3}, {"f1": [[1, 2]]}, {}]]}', "an entity for each"),
        ('{"r1(s1,f1)": [[{"r1": 2, "s1": 3}, {}, {}]', "the file ends too early"),
    ],
)
def test_malformed_efok(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "test_type0000_EFOX_qaa.json").write_text(text)
    with pytest.raises(ReadError) as caught:
        list(read_samples(tmp_path))
    assert message in str(caught.value)


def test_what_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "bad.parquet").write_text("no table")
    (tmp_path / "empty").mkdir()
    for path, given, message in (
        ("nothing", {}, "there is no such file or folder"),
        ("empty", {}, "holds no queries of test in a format known here"),
        ("file", {"format": "betae"}, "a folder was expected for the format betae"),
        ("empty", {"format": "jsonl"}, "a file was expected for the format jsonl"),
        ("file", {"format": "xml"}, "there is no format 'xml'"),
        ("bad.parquet", {}, "cannot be read as Parquet"),
        ("empty", {"format": "efok"}, "holds no test_TYPE_EFOX_qaa.json"),
    ):
        with pytest.raises(KoplError) as caught:
            list(read_samples(tmp_path / path, **given))
        assert message in str(caught.value)
    for path, format, message in (
        ("file", "betae", "it is no folder, which betae needs"),
        ("empty", "jsonl", "it is no ordinary file"),
    ):
        with pytest.raises(WriteError) as refused:
            write_samples(tmp_path / path, [], format)
        assert message in str(refused.value)


@pytest.mark.parametrize(
    ("formula", "format", "message"),
    [
        ("r1(s1,f1)", "betae", "betae holds operator trees only"),
        ("r1(s1,f1)", "efo1", "efo1 holds operator trees only"),
        ("pni", "efok", "negated part"),
        ("(d,(p,(e)),(p,(e)))", "betae", "no difference"),
    ],
)
def test_types_that_a_format_cannot_hold(formula: str, format: str, message: str) -> None:
    (kind,) = kinds([formula])
    with pytest.raises(SamplingError, match=message):
        check_kind(kind, format)
