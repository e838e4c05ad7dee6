"""The registry of query types and ``kopl cqa types``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import pytest

from cqa.errors import FormulaError, QueryError
from cqa.notation.trees import from_tree
from cqa.sampling.kinds import kinds
from cqa.types.betae import BETAE, HARDNESS, named
from cqa.types.efo1 import types as efo1_trees
from cqa.types.efok import Limits, complete
from cqa.types.efok_text import read_formula as read_graph
from cqa.types.normal import FORMS, to_form
from cqa.types.registry import GraphType, TreeType, by_name, names_of_graph, types
from cqa.types.tree import read_formula
from cqa.vocabularies import FAMILIES
from kopl_base.errors import KoplError
from kopl_cli.cqa import types as command_types


@pytest.mark.parametrize(
    ("family", "space", "count"),
    [("efo1", None, 301), ("efok", None, 1907), ("efok", "complete", 1907), ("efok", "paper", 741),
     ("betae", None, 17)],
)  # fmt: skip
def test_sizes(family: str, space: str | None, count: int) -> None:
    found = types(family, space=space)
    assert len(found) == count
    assert len({row.id for row in found}) == count


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_trees(form: str) -> None:
    rows = types("efo1", form=form)
    assert len(rows) == len(efo1_trees())
    for row, tree in zip(rows, efo1_trees(), strict=True):
        assert isinstance(row, TreeType)
        assert row.formula == to_form(tree, form).formula
        assert (row.anchors, row.depth) == (tree.anchors, tree.depth)


def test_names_of_trees() -> None:
    rows = {name: row for row in types("efo1") for name in row.names}
    assert rows.keys() == {*BETAE, *HARDNESS, "2u-DNF", "up-DNF"}
    for name, row in rows.items():
        assert by_name(name) == row


def test_names_of_graphs() -> None:
    found = {row.names[0]: row for row in types("efok") if row.names}
    # Unions are no one graph, the negation of pni is over two edges, and 4i has four constants.
    assert found.keys() == {"1p", "2p", "3p", "2i", "3i", "ip", "pi", "2in", "3in", "inp", "pin"}
    assert found["inp"].columns[3:] == (2, 1, 1, "SDAG")
    assert by_name("r9(s4,f1)&r2(e7,f1)&r3(s2,e7)").names == ("pi", "1p2i")


def test_names_of_grounded_graphs() -> None:
    for formula, name in (
        ("12(345,e1)&7(e1,f1)", "2p"),
        ("12(345,e1)&7(f1,e1)", "2p"),
        ("6(5,f1)&6(5,f1)", "2i"),
        ("6(5,e1)&3(5,e1)&!3(e1,7)&8(f1,e1)", None),
        ("6(5,f1)|7(5,f1)", None),
        ("6(5,f1)&7(f1,f2)", None),
    ):
        assert names_of_graph(read_graph(formula))[:1] == ((name,) if name else ())
    assert names_of_graph(from_tree(named("pni"))) == ()


def test_by_formula() -> None:
    row = by_name("(i,(p,(p,(e))),(p,(e)))")
    assert row.names == ("pi", "1p2i")
    assert row.id == by_name("pi").id != ""
    assert by_name("(i,(p,(p,(e))),(p,(e)))", "DM").formula == "(i,(p,(e)),(p,(p,(e))))"
    assert by_name("5p").id == "type-pppppe"
    graph = by_name("!r1(f1,s1)&r2(s2,f1)")
    assert isinstance(graph, GraphType)
    assert graph.names == ("2in",)
    assert graph.formula == "(!(r1(f1,s1)))&(r2(s2,f1))"
    assert graph.id == next(row.id for row in types("efok") if row.names == ("2in",))
    four = by_name("r1(s1,f1)&r2(s2,f1)&r3(s3,f1)&r4(s4,f1)")
    assert (four.id, four.names) == ("", ("4i",))
    assert by_name("r1(s1,f1)&r2(f1,f2)&r3(f2,f3)&r4(f3,f1)").columns[3:] == (1, 0, 3, "cyclic")


def test_other_limits() -> None:
    assert len(types("efo1", anchors=4)) == 3779
    limits = Limits(existential=1)
    assert len(types("efok", limits=limits)) == sum(1 for _ in complete(limits))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "efo2"}, "there is no family 'efo2'"),
        ({"family": "efok", "form": "DNF"}, "query graphs (efok) have none"),
        ({"family": "efok", "space": "whole"}, "there is no space 'whole'"),
        ({"family": "efo1", "space": "paper"}, "efo1 has none"),
        ({"family": "betae", "form": "dnf"}, "there is no form 'dnf'"),
    ],
)
def test_what_is_not_there(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        types(**arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_unknown_names_and_formulas() -> None:
    with pytest.raises(QueryError, match="no query type named '9x'"):
        by_name("9x")
    with pytest.raises(FormulaError, match="character 5: e takes no operand, not 1"):
        by_name("(i,(e,(p,(e)))")
    with pytest.raises(FormulaError, match="character 4: a constant"):
        by_name("r1(a,f1)")
    with pytest.raises(QueryError, match="forms are of operator trees"):
        by_name("r1(s1,f1)", "DNF")


def test_types_by_family_and_id() -> None:
    for family in FAMILIES:
        for row in types(family)[::97]:
            assert by_name(f"{family}:{row.id}") == row
    assert by_name("efo1:type0016", "DNF").formula == by_name("2in", "DNF").formula
    with pytest.raises(QueryError, match="efo1 has no type 'type0006'; kopl cqa types"):
        by_name("efo1:type0006")
    with pytest.raises(QueryError, match="efok has no type 'paper'"):
        by_name("efok:paper")
    with pytest.raises(QueryError, match="forms are of operator trees"):
        by_name("efok:type0016", "DNF")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("type0016", "write efo1:type0016 or efok:type0016, which are different types"),
        ("type0006", "write efok:type0006"),
        ("type1906", "write efok:type1906"),
        ("type1907", "kopl cqa types lists them"),
        ("type-iiipepepepe", "write the formula, such as (i,(p,(e)),(p,(e)))"),
    ],
)
def test_an_id_without_its_family_hints_at_the_families_that_have_it(name: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        by_name(name)
    assert hint in str(caught.value) and repr(name) in str(caught.value)
    assert ("efo1:" in str(caught.value)) == (name == "type0016")


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command_types.add_arguments(parser)
    return command_types.run(parser.parse_args(arguments))


@pytest.mark.parametrize("family", FAMILIES)
def test_one_formula_a_line(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--family", family) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [tuple(line.split("\t")) for line in lines] == [
        tuple(map(str, row.columns)) for row in types(family)
    ]
    if family == "efok":
        assert "(r1(s1,e1))&(r2(e1,f1))\t" in "\n".join(lines)
    else:
        assert all(read_formula(line.split("\t")[0]) for line in lines)


def test_listing_of_a_form(capsys: pytest.CaptureFixture[str]) -> None:
    run("--family", "efo1", "--form", "DNF+d", "--compat", "paper")
    formulas = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert (len(formulas), len(set(formulas))) == (301, 248)
    run("--family", "efok", "--limit", "existential=0", "--limit", "free=1")
    assert len(capsys.readouterr().out.splitlines()) == 5
    run("--family", "efo1", "--anchors", "1", "--depth", "4")
    assert capsys.readouterr().out.splitlines()[-1] == "(p,(p,(p,(p,(e)))))\ttype-ppppe\t4p\t1\t4"


def test_counts(capsys: pytest.CaptureFixture[str]) -> None:
    def table(*arguments: str) -> dict[str, str]:
        run(*arguments, "--counts")
        return dict(line.split("\t") for line in capsys.readouterr().out.splitlines())

    efo1 = table("--family", "efo1")
    assert efo1["types"] == "301" and efo1["with negation"] == "148"
    assert efo1["anchors 3, depth 2"] == "91" and efo1["disjuncts 3"] == "33"
    assert efo1["distinct formulas, DM+I"] == "266"
    assert efo1["Table 14, DM and DNF+IU"] == "256"
    assert table("--family", "efo1", "--form", "DNF+IU")["distinct formulas"] == "196"
    published = table("--family", "efok", "--space", "paper")
    assert published["types"] == "741" and published["free 1"] == "251"
    assert published["free 2, constants 2, existential 2, cyclic"] == "64"
    assert table("--family", "efok")["free 2"] == "1505"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--family", "efok", "--limit", "nodes"], "--limit: write NAME=N with one of"),
        (["--family", "efok", "--limit", "knots=3"], "not 'knots=3'"),
        (["--family", "efok", "--limit", "nodes=²"], "not 'nodes=²'"),
        (["--family", "efok", "--limit", "nodes=0"], "the limit nodes is 1 or more, not 0"),
        (["--family", "efo1", "--limit", "nodes=5"], "--limit is for --family efok"),
        (["--family", "efok", "--depth", "3"], "--depth is for --family efo1"),
        (["--family", "betae", "--anchors", "3"], "--anchors is for --family efo1"),
        (["--family", "efok", "--compat", "paper"], "--space paper gives EFOk's published list"),
        (["--family", "efo1", "--form", "CNF"], "there is no form 'CNF'"),
        (["--family", "efo1", "--depth", "99"], "too many types"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    with pytest.raises(KoplError) as caught:
        run(*arguments)
    assert message in str(caught.value)


def test_the_same_list_whatever_the_hash_seed() -> None:
    statement = (
        "from cqa.types.registry import types\n"
        "for f, s in (('efo1', None), ('efok', None), ('efok', 'paper')):\n"
        "    for row in types(f, space=s): print(*row.columns)"
    )
    lists = {
        subprocess.run(
            [sys.executable, "-c", statement],
            check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(lists) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "from cqa.types.efo1 import types; assert len(types()) == 301",
        "from cqa.types.efok import complete; assert len(list(complete())) == 1907",
        "from cqa.types.efok_paper import paper; assert len(list(paper())) == 741",
    ],
)
def test_cold_enumeration_takes_well_under_a_second(statement: str) -> None:
    timed = f"{statement}\nimport time; print(time.process_time())"
    seconds = min(
        float(subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True).stdout)
        for _ in range(2)
    )
    assert seconds < 0.8


@pytest.mark.parametrize("word", ["efok", "efok:type0003", "r1(s1,f1)", "(r1(s1,f1))&(r2(s2,f1))"])
def test_forms_of_query_graphs_are_refused_however_they_are_named(word: str) -> None:
    with pytest.raises(QueryError, match=r"query graphs \(efok\) have none"):
        kinds([word], "DNF")
