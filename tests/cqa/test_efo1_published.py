"""EFO-1-QA's types and files as published: formulas, ids, tables, folders without a table."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given

from cqa.errors import QueryError
from cqa.evaluation.evaluation import evaluate
from cqa.evaluation.reasoner import exact
from cqa.formats.efo1 import COLUMNS
from cqa.formats.samples import read_samples, write_samples
from cqa.sampling.kinds import kinds
from cqa.sampling.options import Options, SamplingError
from cqa.sampling.run import Plan, run, stream
from cqa.sampling.sample import Sample
from cqa.types.efo1 import formula_id, raw_count, types
from cqa.types.grounded import from_json, write_json
from cqa.types.normal import FORMS, binary, to_form
from cqa.types.registry import by_name, efo1_types
from cqa.types.registry import types as listed
from cqa.types.tree import Tree, arrange, read_formula
from kopl_base.errors import ReadError
from tests.cqa.brute import tree_set
from tests.cqa.published_efo1 import DIGESTS, NUMBERS, answers, parsed, written
from tests.cqa.small_graph import ENTITIES, full, observed, small_graph
from tests.cqa.trees import trees

DATA = os.environ.get("KOPL_DATA")
needs_data = pytest.mark.skipif(
    DATA is None, reason="KOPL_DATA does not name the folder of benchmark data"
)
ONE = {"o": "e", "a": [1]}


# --- formulas and ids -------------------------------------------------------------------------


@needs_data
def test_the_published_table_column_by_column() -> None:
    with open(Path(str(DATA)) / "efo1" / "published_types.csv", newline="") as file:
        published = list(csv.DictReader(file))
    rows = efo1_types()
    assert [row["formula_id"] for row in published] == [row.id for row in rows]
    for form, column in COLUMNS.items():
        made = [row.formula for row in efo1_types(form, "paper")]
        assert made == [row[column] for row in published], form
    for row, facts in zip(rows, published, strict=True):
        numbers = facts["num_anchor_nodes"], facts["original_depth"]
        assert numbers == (str(row.anchors), str(row.depth))


@pytest.mark.parametrize("form", FORMS)
def test_digests_of_the_published_forms(form: str) -> None:
    in_order = sorted(types(), key=lambda tree: tree.formula)
    lines = "".join(to_form(tree, form, "paper").formula + "\n" for tree in in_order)
    assert hashlib.sha256(lines.encode()).hexdigest()[:16] == DIGESTS[form]


def test_published_numbers() -> None:
    in_order = sorted(types(), key=lambda tree: tree.formula)
    assert [formula_id(tree) for tree in in_order] == [f"type{n:04d}" for n in NUMBERS]
    # They are places in the list that the rules write, of which types() has the first ones.
    assert [row.id for row in listed("efo1")] == [f"type{n:04d}" for n in sorted(NUMBERS)]
    assert max(NUMBERS) == 530 < raw_count()
    assert by_name("2in").id == "type0016" and by_name("1p").id == "type0000"


def test_published_differences() -> None:
    tree = read_formula("(i,(i,(n,(p,(e))),(p,(e))),(n,(p,(p,(e)))))")
    assert to_form(tree, "DNF+IUD", "paper").formula == "(D,(p,(e)),(p,(e)),(p,(p,(e))))"
    assert to_form(tree, "DNF+IUd", "paper").formula == "(D,(D,(p,(e)),(p,(e))),(p,(p,(e))))"
    one = read_formula("(i,(n,(p,(e))),(p,(e)))")
    for form in ("DNF+IUD", "DNF+IUd"):
        made = to_form(one, form, "paper")
        assert made.formula == "(D,(p,(e)),(p,(e)))"
        # What is read has the letter for its number of operands, and the published one on request.
        assert read_formula(made.formula) == to_form(one, form)
        assert to_form(made, form, "paper") == made


def test_ids_of_other_types() -> None:
    published = {row.id for row in listed("efo1")}
    more = listed("efo1", anchors=4)
    ids = [row.id for row in more]
    assert len(set(ids)) == len(ids) == 3779
    # The same type has the same id, whatever list it stands in.
    assert published < set(ids)
    known = {row.formula: row.id for row in listed("efo1")}
    for row in more:
        assert (row.id in published) == (row.formula in known)
        assert known.get(row.formula, row.id) == row.id
    for row in more[::37]:
        assert by_name(row.formula).id == row.id
    assert by_name("4i").id == "type-iiipepepepe" and by_name("5p").id == "type-pppppe"


def test_an_id_is_of_a_type_not_of_how_it_is_written() -> None:
    for text in (
        "(d,(p,(e)),(p,(e)))",
        "(i,(p,(e)),(n,(p,(e))))",
        "(D,(p,(e)),(p,(e)))",
    ):
        assert formula_id(read_formula(text)) == "type0016"
    assert formula_id(read_formula("(I,(p,(e)),(p,(e)),(p,(e)))")) == by_name("3i").id
    assert formula_id(read_formula("(n,(p,(e)))")) == "type-npe"


@given(trees("pniu", grounded=False), trees("pniu", grounded=False))
def test_ids_are_alike_only_for_types_that_are(one: Tree, other: Tree) -> None:
    alike = binary(one).formula == binary(other).formula
    assert (formula_id(one) == formula_id(other)) == alike


def test_ids_are_short_names_of_files() -> None:
    ids = [by_name(name).id for name in ("60i", "61i", "99p", "98p")]
    assert len(set(ids)) == 4
    for found in ids:
        assert found.removeprefix("type-").isalnum() and found.islower() and len(found) < 80
    # A fixed value, as the files of one machine are read on another.
    assert ids[0] == "type-" + hashlib.sha256(b"i" * 59 + b"pe" * 60).hexdigest()[:32]


def test_ids_whatever_the_hash_seed() -> None:
    statement = (
        "from cqa.types.registry import types, by_name\n"
        "print([row.id for row in types('efo1', anchors=2, depth=4)], by_name('60i').id)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", statement],
            check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


# --- files ------------------------------------------------------------------------------------


def sampled(*names: str, count: int = 4) -> list[Sample]:
    plan = Plan(tuple(kinds(names)), count, options=Options(most=60))
    return list(stream(plan, small_graph()))


NAMES = ("1p", "2in", "pni", "2u", "(i,(n,(u,(p,(e)),(p,(p,(e))))),(p,(e)))", "4i")


def test_files_of_the_published_ids_and_forms(tmp_path: Path) -> None:
    samples = sampled(*NAMES)
    write_samples(tmp_path, samples, "efo1")
    ids = [by_name(name).id for name in NAMES]
    assert ids[1] == "type0016" and ids[4] == "type0168" and ids[5] == "type-iiipepepepe"
    assert {path.name for path in tmp_path.iterdir()} == {
        "formulas.csv", *(f"data-{name}.csv" for name in ids)
    }  # fmt: skip
    with open(tmp_path / "formulas.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["formula_id"] for row in table] == ids
    for row in table:
        tree = read_formula(row["original"])
        with open(tmp_path / f"data-{row['formula_id']}.csv", newline="") as file:
            queries = list(csv.DictReader(file))
        assert len(queries) == 4
        for form, column in COLUMNS.items():
            assert row[column] == to_form(tree, form, "paper").formula
            for query in queries:
                found = answers(parsed(row[column]), json.loads(query[column]))
                assert found == {
                    *json.loads(query["easy_answers"]), *json.loads(query["hard_answers"])
                } - {*json.loads(query["lost_answers"])}  # fmt: skip
    # The names that the queries were sampled under are kept beside the ids.
    assert list(read_samples(tmp_path)) == samples


def write_published(folder: Path, count: int = 3) -> dict[str, list[Tree]]:
    """A folder as the published program leaves it: no table of types, no ids, no other columns."""
    random = Random(1)
    numbers = iter(lambda: random.randrange(10), None)
    queries: dict[str, list[Tree]] = {}
    for row in efo1_types()[::25]:
        lines = []
        for _ in range(count):
            given, tree = written(parsed(row.formula), numbers)
            found, known = (tree_set(tree, part, ENTITIES) for part in (full(), observed()))
            forms = {
                column: write_json(to_form(tree, form, "paper")) for form, column in COLUMNS.items()
            }
            forms["original"] = json.dumps(given)
            # Published lists are in no order.
            shown = [str(sorted(part, reverse=True)) for part in (known, found - known)]
            lines.append([*shown, *forms.values()])
            queries.setdefault(row.id, []).append(tree)
        with open(folder / f"data-{row.id}.csv", "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["easy_answers", "hard_answers", *COLUMNS.values()])
            table.writerows(lines)
    return queries


def test_a_published_folder_is_read(tmp_path: Path) -> None:
    queries = write_published(tmp_path)
    samples = list(read_samples(tmp_path))
    assert [sample.type for sample in samples] == [name for name in queries for _ in range(3)]
    for sample, tree in zip(samples, (t for row in queries.values() for t in row), strict=True):
        assert sample.query == tree
        assert sample.formula == by_name(sample.formula).formula
        assert by_name(sample.formula).id == sample.type
        assert {*sample.hard[:, 0].tolist()} == tree_set(tree, full(), ENTITIES) - {
            *sample.easy[:, 0].tolist()
        }


def test_a_published_folder_is_evaluated(tmp_path: Path) -> None:
    write_published(tmp_path)
    asked = [sample for sample in read_samples(tmp_path) if len(sample.hard)]
    found = evaluate(exact(small_graph()), asked, ENTITIES)
    assert found.metrics["mrr"] == 1.0 and len(found.types) > 5
    groups = {result.type: dict(result.group) for result in found.types}
    for name, group in groups.items():
        row = next(row for row in efo1_types() if row.id == name)
        assert group == {"anchors": row.anchors, "depth": row.depth}


def test_a_folder_of_ids_that_are_not_published(tmp_path: Path) -> None:
    text = json.dumps({"o": "p", "a": [[2], {"o": "e", "a": [3]}]}).replace('"', '""')
    (tmp_path / "data-mine.csv").write_text(
        f'original,easy_answers,hard_answers\n"{text}",[],[4]\n'
    )
    (sample,) = read_samples(tmp_path)
    assert (sample.type, sample.formula, sample.hard.tolist()) == ("mine", "(p,(e))", [[4]])


@pytest.mark.parametrize(
    ("name", "query", "message"),
    [
        ("type0001", {"o": "p", "a": [[2], ONE]},
         "data-type0001.csv: line 2: a query of the type (p,(p,(e))) was expected, not of (p,(e))"),
        ("type0016", {"o": "i", "a": [{"o": "n", "a": []}, ONE]},
         "data-type0016.csv: line 2: a[0].a: n takes 1, not 0 inputs"),
    ],
)  # fmt: skip
def test_published_folders_with_mistakes(
    name: str, query: object, message: str, tmp_path: Path
) -> None:
    text = json.dumps(query).replace('"', '""')
    path = tmp_path / f"data-{name}.csv"
    path.write_text(f'original,easy_answers,hard_answers\n"{text}",[],[4]\n')
    with pytest.raises(ReadError) as caught:
        list(read_samples(tmp_path))
    assert message in str(caught.value)


def test_operands_in_another_order_are_read(tmp_path: Path) -> None:
    query = {
        "o": "i",
        "a": [{"o": "p", "a": [[4], ONE]}, {"o": "n", "a": {"o": "p", "a": [[2], ONE]}}],
    }
    text = json.dumps(query).replace('"', '""')
    (tmp_path / "data-type0016.csv").write_text(
        f'original,easy_answers,hard_answers\n"{text}",[],[4]\n'
    )
    (sample,) = read_samples(tmp_path)
    assert sample.query == arrange(from_json(query))


def test_two_names_of_one_type_are_refused_before_any_work(tmp_path: Path) -> None:
    plan = Plan(tuple(kinds(["2in", "efo1:type0016"])), 2, options=Options(most=60))
    with pytest.raises(SamplingError, match="2in and type0016 are one type, type0016"):
        run(plan, small_graph(), tmp_path / "out", format="efo1")
    assert not (tmp_path / "out").exists()
    with pytest.raises(QueryError, match="2in and type0016 are one type, type0016"):
        write_samples(tmp_path / "out", stream(plan, small_graph()), "efo1")
    assert run(plan, small_graph(), tmp_path / "lines.jsonl").kept == 4


def test_another_form_is_refused_for_the_tables(tmp_path: Path) -> None:
    plan = Plan(tuple(kinds(["2in"], "DNF+d")), 2, options=Options(most=60))
    with pytest.raises(SamplingError, match="hold every query in all nine forms"):
        run(plan, small_graph(), tmp_path / "out", format="efo1")


def test_a_type_without_such_an_id(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="efo1 has no type 'type0006'; kopl cqa types"):
        kinds(["efo1:type0006"])
    assert [kind.id for kind in kinds(["efo1:type0530"])] == ["type0530"]
