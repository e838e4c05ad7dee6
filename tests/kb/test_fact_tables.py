"""Reading tables of facts, their mappings and label files, and ``kopl kb import``."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import Builder, Date, KnowledgeBase, Quantity, ReadError, Year, load
from kb.imports.common import Report, read_ids, read_labels
from kb.imports.factmap import FactMap, ValueType, read_fact_map
from kb.imports.facts import read_fact_tables
from kopl_cli import main
from tests.kb.strategies import document_of
from tests.kb.wikidata_dumps import ENTITIES, array

ROWS = """\
Q1,P31,Q100
Q2,P31,Q101
Q100,P279,Q102
Q101,P279,Q102
Q101,P31,Q103
Q2,P36,Q1,P580,1814-05-17,P585,Q3,P585,Q3
Q1,P1082,709037,P585,2023
Q2,P2046,385207.5
Q2,P571,872
"Q2","P1448","Kongeriket ""Norge"", Norway"
Q3,P17,Q2,,
Q2,P36,Q1,P585,Q3,P580,1814-05-17
Q100,P571,1900
"""
MAPPING: dict[str, Any] = {
    "instance_of": "P31",
    "subclass_of": "P279",
    "default_concept": "thing",
    "attributes": {
        "P1082": "quantity",
        "P2046": {"type": "quantity", "unit": "square kilometre"},
        "P571": "year",
        "P1448": "string",
    },
    "qualifiers": {"P580": "date"},
    "entity_labels": ["names.json", {"file": "more.json", "id": "qid", "label": "title"}],
    "relation_labels": "relations.tsv",
}
NAMES = {"Q1": "Oslo", "Q2": " Norway ", "Q100": "city", "Q101": "country", "Q102": None}
MORE = {"x": {"qid": "Q3", "title": "Storting"}, "y": {"qid": "Q1", "title": "other"}, "z": {}}
RELATIONS = (
    "P36\tcapital\nP580\tstart time\n\nP585\tpoint in time\nP1082\tpopulation\nP2046\tarea\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "facts.csv").write_text(ROWS, "utf-8")
    (tmp_path / "names.json").write_text(json.dumps(NAMES), "utf-8")
    (tmp_path / "more.json").write_text(json.dumps(MORE), "utf-8")
    (tmp_path / "relations.tsv").write_text(RELATIONS, "utf-8")
    (tmp_path / "map.json").write_text(json.dumps(MAPPING), "utf-8")
    return tmp_path


def expected() -> KnowledgeBase:
    builder = Builder()
    builder.add_entity("Q1", "Oslo", ["Q100"])
    builder.add_attribute("Q1", "population", Quantity(709037), {"point in time": "2023"})
    builder.add_entity("Q2", "Norway", ["Q101"])
    builder.add_fact(
        "Q2", "capital", "Q1", {"start time": Date(1814, 5, 17), "point in time": "Storting"}
    )
    builder.add_attribute("Q2", "area", Quantity(385207.5, "square kilometre"))
    builder.add_attribute("Q2", "P571", Year(872))
    builder.add_attribute("Q2", "P1448", 'Kongeriket "Norge", Norway')
    builder.add_entity("Q3", "Storting", ["thing"])
    builder.add_fact("Q3", "P17", "Q2")
    builder.add_concept("Q100", "city", ["Q102"])
    builder.add_concept("Q101", "country", ["Q102"])
    builder.add_concept("Q102", "Q102")
    builder.add_concept("Q103", "Q103")
    builder.add_concept("thing", "thing")
    return builder.build()


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8", newline="")
    return path


# --- what is read ----------------------------------------------------------------------------


def test_a_table_with_a_mapping(folder: Path) -> None:
    report = Report()
    mapping = read_fact_map(folder / "map.json")
    found = document_of(read_fact_tables(folder / "facts.csv", mapping=mapping, report=report))
    assert found == document_of(expected())
    assert report == {
        "rows": 13,
        "rows left out: attributes of concepts": 1,
        "class links left out: a concept is no instance": 1,
        "nodes without a label, named by their id": 2,
        "entities": 3,
        "concepts": 5,
        "relational facts": 2,
        "literal facts": 4,
    }


def test_yaml_is_the_same(folder: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="pip install pyyaml")
    write(folder / "map.yaml", yaml.safe_dump(MAPPING))
    first, second = (read_fact_map(folder / f"map.{ending}") for ending in ("json", "yaml"))
    assert vars(first) | {"source": ""} == vars(second) | {"source": ""}


def test_compressed_and_several_files(folder: Path) -> None:
    mapping = read_fact_map(folder / "map.json")
    wanted = read_fact_tables(folder / "facts.csv", mapping=mapping).fingerprint
    rows = ROWS.splitlines(keepends=True)
    (folder / "a.csv.gz").write_bytes(gzip.compress("".join(rows[:5]).encode()))
    (folder / "b.csv.bz2").write_bytes(bz2.compress("".join(rows[5:]).encode()))
    files = [folder / "a.csv.gz", folder / "b.csv.bz2"]
    assert read_fact_tables(files, mapping=mapping).fingerprint == wanted


def test_without_a_mapping(tmp_path: Path) -> None:
    kb = read_fact_tables(write(tmp_path / "x.txt", "a,r,b,k,v,k,w\r\nb,r,c\r\n"))
    assert [kb.name_of(node) for node in range(kb.node_count)] == ["a", "b", "c"]
    assert [(f.head, f.tail, f.qualifiers) for f in kb.facts()] == [
        ("a", "b", {"k": ["v", "w"]}),
        ("b", "c", {}),
    ]
    kb = read_fact_tables(tmp_path / "x.txt", labels={"a": "A  a", "r": "is by", "v": "V"})
    assert kb.name_of(kb.node("a")) == "A a"
    fact = next(iter(kb.facts()))
    assert (fact.relation, fact.qualifiers) == ("is by", {"k": ["V", "w"]})


def test_tab_separated_lines_are_split_plainly(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", 'a"\tsays "so"\tb, c\tk\t"\n')
    (fact,) = read_fact_tables(path).facts()
    assert (fact.head, fact.relation, fact.tail) == ('a"', 'says "so"', "b, c")
    assert fact.qualifiers == {"k": ['"']}
    path = write(tmp_path / "y.txt", "a|r|b\n")
    (fact,) = read_fact_tables(path, mapping=FactMap(delimiter="|")).facts()
    assert fact.tail == "b"


def test_quoted_cells_over_several_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'a,r,"b\r\nc"\r\n\r\n"d,e",r\r\n')
    with pytest.raises(ReadError, match="is missing; columns: 2") as caught:
        read_fact_tables(path)
    assert caught.value.place == "line 4"
    kb = read_fact_tables(path, skip_malformed=True)
    assert [kb.id_of(node) for node in range(2)] == ["a", "b\nc"]
    assert kb.name_of(1) == "b c"


def test_columns_by_name(tmp_path: Path) -> None:
    table = "year,tail,head,relation,by\n2001,b,a,r,me\n,c,a,r,\n"
    path = write(tmp_path / "x.csv", table)
    fields = {
        "header": True,
        "columns": {
            "head": "head",
            "relation": "relation",
            "tail": 2,
            "qualifiers": {"since": "year", "said by": "by"},
        },
        "qualifiers": {"since": "year"},
    }
    mapping = read_fact_map(write(tmp_path / "map.json", json.dumps(fields)))
    assert [(f.tail, f.qualifiers) for f in read_fact_tables(path, mapping=mapping).facts()] == [
        ("b", {"since": [Year(2001)], "said by": ["me"]}),
        ("c", {}),
    ]
    write(path, table.replace("head", "year"))
    with pytest.raises(ReadError, match="no column 'head' in the header: year, tail, year"):
        read_fact_tables(path, mapping=mapping)
    write(path, table.replace("tail", "head"))
    with pytest.raises(ReadError, match="twice column 'head'"):
        read_fact_tables(path, mapping=mapping)


def test_unlabelled_nodes_are_dropped_when_asked(folder: Path) -> None:
    fields = MAPPING | {"unlabelled": "drop", "qualifiers": {"*": "node", "P580": "date"}}
    mapping = read_fact_map(write(folder / "map.json", json.dumps(fields)))
    report = Report()
    kb = read_fact_tables(folder / "facts.csv", mapping=mapping, report=report)
    assert {kb.id_of(node) for node in range(kb.node_count)} == {"Q1", "Q2", "Q100", "Q101"}
    assert {fact.relation for fact in kb.facts()} == {"capital"}
    assert [f.qualifiers for f in kb.attributes(kb.node("Q1"))] == [{}]  # 2023 is no node
    assert report["rows left out: no label of the relation"] == 4
    assert report["rows left out: no label of the head or tail"] == 3
    assert report["qualifiers left out: no label of the value"] == 1


def test_one_that_is_a_class_by_mistake_stays_an_entity(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "ship,is a,oslo\noslo,is a,city\n")
    report = Report()
    kb = read_fact_tables(path, mapping=FactMap(instance_of="is a"), report=report)
    assert kb.is_entity(kb.node("oslo")) and not kb.is_entity(kb.node("city"))
    assert kb.concepts_of(kb.node("ship")) == []
    assert report["class links left out: the class is an entity"] == 1


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
NAME = CELL.map(str.strip).filter(bool)


@given(st.lists(st.tuples(NAME, NAME, NAME, st.lists(st.tuples(NAME, NAME))), min_size=1))
@settings(max_examples=100, deadline=None)
def test_what_the_csv_module_writes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any]
) -> None:
    """Any cells come back; line ends inside of cells may change their spelling."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    for head, relation, tail, pairs in rows:
        writer.writerow([head, relation, tail, *(cell for pair in pairs for cell in pair)])
    path = write(tmp_path_factory.mktemp("csv") / "x.csv", text.getvalue())
    kb = read_fact_tables(path, mapping=FactMap())

    def plain(cell: str) -> str:
        return cell.replace("\r\n", "\n").replace("\r", "\n")

    wanted = {
        (*map(plain, row[:3]), frozenset((plain(k), plain(v)) for k, v in row[3])) for row in rows
    }
    assert {
        (
            fact.head,
            fact.relation,
            fact.tail,
            frozenset((key, str(v)) for key, values in fact.qualifiers.items() for v in values),
        )
        for fact in kb.facts()
    } == wanted


# --- what is malformed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,r", "tail is missing; columns: 2"),
        ("a,,b", "is empty"),
        ("a,r, ", "is empty"),
        ("a,r,b,k", "'k' has no value"),
        ("a,r,b,,v", "key or value is empty"),
        ("a,size,many", "not a quantity"),
        ("a,height,5 metre", "has a unit"),
        ("a,born,soon", "neither a year nor a day"),
        ("a,born,1998-02-30", "no day"),
        ("a,r,b,since,x", "not a year"),
    ],
)
def test_a_bad_row(tmp_path: Path, row: str, message: str) -> None:
    mapping = FactMap(
        instance_of="is a",
        attributes={
            "size": ValueType("quantity"),
            "height": ValueType("quantity", "metre"),
            "born": ValueType("date"),
        },
        qualifier_types={"since": ValueType("year")},
    )
    path = write(tmp_path / "x.csv", f"a,r,b\n{row}\nc,r,d\n")
    with pytest.raises(ReadError, match=message) as caught:
        read_fact_tables(path, mapping=mapping)
    assert (caught.value.place, caught.value.source) == ("line 2", str(path))
    report = Report()
    kb = read_fact_tables(path, mapping=mapping, skip_malformed=True, report=report)
    assert {fact.head for fact in kb.facts()} == {"a", "c"}
    assert report["rows left out: malformed"] == 1


@pytest.mark.parametrize("row", ['a,r,"b', 'a,r,"b"c'])
def test_wrong_quoting(tmp_path: Path, row: str) -> None:
    path = write(tmp_path / "x.csv", f'a,r,"b\nb"\n{row}\n')
    with pytest.raises(ReadError, match="not CSV") as caught:
        read_fact_tables(path)
    assert caught.value.place == "line 3"


def test_what_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="there are no facts"):
        read_fact_tables(write(tmp_path / "x.csv", "\n\n"))
    with pytest.raises(ReadError, match="folder"):
        read_fact_tables(tmp_path, mapping=FactMap(instance_of="is a"))
    with pytest.raises(ReadError, match="not UTF-8"):
        (tmp_path / "x.csv").write_bytes(b"a,r,\xff\n")
        read_fact_tables(tmp_path / "x.csv")
    path = write(tmp_path / "x.csv", "thing,r,b\n")
    with pytest.raises(ReadError, match="'thing' is the id of an entity"):
        read_fact_tables(path, mapping=FactMap(default_concept="thing"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "an object of fields"),
        ({"colums": {}}, "colums: an unknown field; the fields are aliases, attributes"),
        ({"header": "yes"}, "header: expected true or false"),
        ({"delimiter": "||"}, "delimiter: expected one character"),
        ({"delimiter": "\n"}, "delimiter: a quotation mark or line end"),
        ({"columns": {"head": 1, "relation": 2}}, "columns/tail: a column is missing"),
        ({"columns": {"head": 0, "relation": 2, "tail": 3}}, "columns/head: expected a column's"),
        ({"columns": {"head": "h", "relation": 2, "tail": 3}}, "'h' is a name; set \"header\""),
        ({"columns": [1, 2, 3]}, "columns: expected an object"),
        ({"attributes": {"P1": "number"}}, "attributes/P1: expected a type"),
        ({"attributes": {"P1": "node"}}, "attributes/P1: expected a type"),
        ({"attributes": {"P1": {"type": "year", "unit": "x"}}}, "only quantities have a unit"),
        ({"attributes": {"P31": "year"}, "instance_of": "P31"}, "says what is in a class"),
        ({"instance_of": "P31", "subclass_of": "P31"}, "the same relation as instance_of"),
        ({"instance_of": 31}, "instance_of: expected a text"),
        ({"unlabelled": "guess"}, "unlabelled: expected keep or drop"),
        ({"entity_labels": "missing.json"}, "missing.json: cannot be opened"),
        ({"entity_labels": {"id": "x"}}, "entity_labels/file: the file of labels is not named"),
        ({"entity_labels": 5}, "entity_labels: expected an object"),
    ],
)
def test_a_wrong_mapping(tmp_path: Path, fields: Any, message: str) -> None:
    path = write(tmp_path / "map.json", json.dumps(fields))
    with pytest.raises(ReadError) as caught:
        read_fact_map(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("map.json", '{"header":\n tru}', "line 2: not JSON"),
        ("map.json", "[" * 100_000, "not JSON of this kind"),
        (
            "map.json",
            '{"columns": {"head": 1, "head": 2}}',
            "columns/head: the field is there twice",
        ),
        ("map.yaml", "a: [1\nb: 2\n", "not YAML"),
        ("map.yaml", "", "an object of fields"),
    ],
)
def test_a_mapping_that_is_not_read(tmp_path: Path, name: str, text: str, message: str) -> None:
    if name.endswith("yaml"):
        pytest.importorskip("yaml", reason="pip install pyyaml")
    with pytest.raises(ReadError, match=message):
        read_fact_map(write(tmp_path / name, text))


# --- label files and lists of ids ------------------------------------------------------------


def test_label_files(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", '"Q1","Oslo, Norway"\nQ2, \n')
    assert list(read_labels(path)) == [("Q1", "Oslo, Norway")]
    path = write(tmp_path / "x.json", '{"Q1": {"label": "a"}, "Q2": {"label": null}, "Q3": "c"}')
    assert list(read_labels(path)) == [("Q1", "a"), ("Q3", "c")]
    for name, text, message in (
        ("x.json", "[1]", "a file of labels"),
        ("x.json", '{"Q1": 5}', "the label of 'Q1' is not a text"),
        ("x.json", '{"Q1": "a"', "ends too early"),
        ("x.json", '{"Q1": {"label": "a", "label": "b"}}', "Q1/label: the field is there twice"),
        ("x.tsv", "Q1\n", "two columns"),
    ):
        with pytest.raises(ReadError, match=message):
            list(read_labels(write(tmp_path / name, text)))


def test_lists_of_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "ids", "# mine\nQ1\n\n<http://www.wikidata.org/entity/Q2>\r\n Q3 \n")
    assert read_ids(path, "Q") == ["Q1", "Q2", "Q3"]
    with pytest.raises(ReadError, match="Q42 was expected") as caught:
        read_ids(write(path, "Q1\nOslo\n"), "Q")
    assert caught.value.place == "line 2"


# --- the command -----------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out.kopl", "out.json", "out.json.gz", "out.jsonl.bz2"])
def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str], out: str) -> None:
    command = ["kb", "import", "--from", "table", str(folder / "facts.csv"), str(folder / out)]
    assert main([*command, "--mapping", str(folder / "map.json")]) == 0
    assert "13 rows\n" in capsys.readouterr().err
    found = document_of(load(folder / out))
    assert found["entities"].keys() == document_of(expected())["entities"].keys()
    program = "QueryName(Relate(Find(Norway), capital, forward))"
    assert main(["run", "--kb", str(folder / out), program]) == 0
    assert capsys.readouterr().out == "Oslo\n"


def test_the_command_on_a_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, out = write(tmp_path / "dump.json", array(ENTITIES)), tmp_path / "out.kopl"
    command = ["kb", "import", "--from", "wikidata", str(dump), str(out)]
    assert main([*command, "--ids", "Q1, Q2", "--properties", "P3,P7"]) == 0
    kb = load(out)
    assert (kb.entity_count, kb.relations, kb.attribute_keys) == (2, ["capital"], ["motto"])
    ids, labels = write(tmp_path / "ids", "Q3\n"), write(tmp_path / "l.json", '{"Q3": "S"}')
    assert main([*command, "--ids", f"@{ids}", "--labels", str(labels)]) == 0
    assert load(out).name_of(0) == "S"
    assert main([*command, "--languages", "de", "--limit", "1", "--external-ids"]) == 0
    assert load(out).name_of(0) == "Stockholm"
    before = out.read_bytes()
    write(dump, array(ENTITIES)[:1000])
    assert main(command) == 2
    assert "dump.json: line 3: the line is not JSON" in capsys.readouterr().err
    assert out.read_bytes() == before
    assert main([*command, "--skip-malformed"]) == 0
    assert f"left out: {dump}: line 3: the line is not JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "table", "x.csv", "out.txt"], "end OUT in .kopl, .json or .jsonl"),
        (["--from", "table", "x.csv", "out.kopl.gz"], "a snapshot is not compressed"),
        (["--from", "table", "x.csv", "out.json", "--limit", "5"], "--limit: this option belongs"),
        (["--from", "wikidata", "x", "o.json", "--mapping", "m"], "--mapping: this option belongs"),
        (["--from", "wikidata", "x", "o.json", "--ids", "Oslo"], "--ids: ids such as Q42"),
        (["--from", "wikidata", "x", "o.json", "--properties", "Q1"], "ids such as P42"),
        (["--from", "wikidata", "x", "o.json", "--languages", ","], "--languages: no language"),
        (["--from", "table", "x.csv", "o.json"], "x.csv: cannot be opened"),
    ],
)
def test_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["kb", "import", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_read_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.json", "a,r,b\n")
    assert main(["kb", "import", "--from", "table", str(path), str(path)]) == 2
    assert "is read and written" in capsys.readouterr().err
    (tmp_path / "o.kopl").mkdir()
    assert main(["kb", "import", "--from", "table", str(path), str(tmp_path / "o.kopl")]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_the_example_of_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "own-kb.md").read_text("utf-8")
    text = page[page.index("\n## From a table of facts") : page.index("\n## From a Wikidata")]
    for name, content in re.findall(r"^```[a-z]+ (\S+)\n(.+?)^```", text, re.M | re.S):
        write(tmp_path / name, content)
    examples = re.findall(r"^\$ kopl (.+)\n((?:(?!\$|```).*\n)+)", text, re.M)
    assert len(examples) == 5
    for command, shown in examples:
        assert main(shlex.split(command)) == 0
        printed = capsys.readouterr()
        assert printed.out + printed.err == shown


# --- published data --------------------------------------------------------------------------


def test_wd50k(kopl_data: Path, tmp_path: Path) -> None:
    """Every statement is there, counted a second way from the lines themselves."""
    data = kopl_data / "wd50k"
    fields = {
        "instance_of": "P31",
        "subclass_of": "P279",
        "entity_labels": {
            "file": str(kopl_data / "fb15k237" / "entity2wikidata.json"),
            "id": "wikidata_id",
        },
        "relation_labels": str(data / "relation_labels.json"),
    }
    mapping = read_fact_map(write(tmp_path / "map.json", json.dumps(fields)))
    report = Report()
    kb = read_fact_tables([data / "test.txt", data / "valid.txt"], mapping=mapping, report=report)
    lines = [
        line.split(",")
        for name in ("test.txt", "valid.txt")
        for line in (data / name).read_text("utf-8").splitlines()
    ]
    assert report["rows"] == len(lines)
    labels = json.loads((data / "relation_labels.json").read_text("utf-8"))
    facts = {
        (row[0], labels[row[1]], row[2], frozenset(zip(row[3::2], row[4::2], strict=True)))
        for row in lines
        if row[1] not in ("P31", "P279")
    }
    assert len(kb.relational) == len(facts)
    ids = {row[at] for row in lines for at in (0, 2)}
    assert {kb.id_of(node) for node in range(kb.node_count)} == ids
    assert kb.name_of(kb.node("Q20")) == "Norway"
    assert kb.qualifier_keys and set(kb.relations) <= set(labels.values())
    entities = {row[0] for row in lines if row[1] == "P31" and kb.is_entity(kb.node(row[0]))}
    assert len(entities) > 1000
