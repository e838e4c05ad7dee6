"""Reading tables with a row for each thing, as a mapping describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kb import Builder, Date, KnowledgeBase, Problems, Quantity, ReadError, Year, load
from kb.imports.common import Report
from kb.imports.mapping import read_mapping
from kb.imports.tables import read_tables
from kopl_cli import main
from tests.kb.strategies import document_of

BOOKS = """\
book_id,title,genre,pages,price,currency,price_date,author_ids,publisher,since,tags,tag_year,note
b1,The Blue  Bridge,crime novel,320,12.50,€,2024-03-01,p1;p2,Quill,2001,red;blue,1999;2001,x
b2,Kitchen,,NA,,,,p2,,,red,,y
b3,"Bridge, The",novel,1 000,9,$,,,Lamp,,,,
,,,,,,,,,,,,
"""
PEOPLE = "id;first;last;boss\n1;Ada;Berg;2\n2;Otto;Lind;\n"
SALES = """\
book,shop,sold_by,n,day
b1,North,Ada Berg,12,2024-01-02
b1,South,,3,2024
b1,North,Ada Berg,12,2024-01-02
"""
GENRES = "code,genre,parent\nC,crime novel,N\nN,novel,\n"
MAPPING = """\
missing: [NA]
thousands: " "
concepts: {novel: book, book: [work]}
tables:
  books:
    file: books.csv
    id: book_id
    name: title
    concept: {column: genre, to: genres, by: name, below: book}
    columns:
      pages: {attribute: number of pages, type: quantity, unit: page}
      price: {attribute: price, type: quantity, unit: {column: currency}, units: {€: euro}}
      price_date: {qualifier: point in time, of: price, type: date}
      author_ids: {relation: author, to: people, separator: ";"}
      publisher: {relation: published, create: publisher, direction: backward}
      since: {qualifier: start time, of: publisher, type: year}
      tags: {attribute: tag, separator: ";", values: {red: Red}}
      tag_year: {qualifier: year, of: tags, type: year, separator: ";"}
      note: skip
  people:
    file: people.csv
    delimiter: ";"
    id: id
    prefix: p
    name: [first, last]
    concept: person
    columns:
      boss: {relation: boss, to: people}
  sales:
    file: [sales.csv]
    about: books
    id: book
    columns:
      shop: {relation: sold in, create: shop}
      sold_by: {qualifier: seller, to: people, by: name, of: shop}
      n: {qualifier: copies, of: shop, type: quantity}
      day: {qualifier: point in time, of: shop, type: date}
  genres:
    file: genres.csv
    rows: concepts
    id: code
    name: genre
    parent: parent
"""


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_text(text, encoding, newline="")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "books.csv", BOOKS.replace("p1;p2", "1;2").replace(",p2,", ",2.0,"))
    write(tmp_path / "people.csv", PEOPLE, "utf-8-sig")
    write(tmp_path / "sales.csv", SALES)
    write(tmp_path / "genres.csv", GENRES)
    write(tmp_path / "map.yaml", MAPPING)
    return tmp_path


def expected() -> KnowledgeBase:
    builder = Builder()
    for id, name, parents in (
        ("C", "crime novel", ["N"]),
        ("N", "novel", ["concept/book"]),
        ("concept/book", "book", ["concept/work"]),
        ("concept/work", "work", []),
        ("concept/person", "person", []),
        ("concept/publisher", "publisher", []),
        ("concept/shop", "shop", []),
    ):
        builder.add_concept(id, name, parents)
    builder.add_entity("b1", "The Blue Bridge", ["C"])
    builder.add_entity("b2", "Kitchen", ["concept/book"])
    builder.add_entity("b3", "Bridge, The", ["N"])
    builder.add_attribute("b1", "number of pages", Quantity(320, "page"))
    builder.add_attribute(
        "b1", "price", Quantity(12.5, "euro"), {"point in time": Date(2024, 3, 1)}
    )
    builder.add_attribute("b1", "tag", "Red", {"year": Year(1999)})
    builder.add_attribute("b1", "tag", "blue", {"year": Year(2001)})
    builder.add_attribute("b2", "tag", "Red")
    builder.add_attribute("b3", "number of pages", Quantity(1000, "page"))
    builder.add_attribute("b3", "price", Quantity(9, "$"))
    builder.add_entity("p1", "Ada Berg", ["concept/person"])
    builder.add_entity("p2", "Otto Lind", ["concept/person"])
    builder.add_entity("publisher/Quill", "Quill", ["concept/publisher"])
    builder.add_entity("publisher/Lamp", "Lamp", ["concept/publisher"])
    builder.add_entity("shop/North", "North", ["concept/shop"])
    builder.add_entity("shop/South", "South", ["concept/shop"])
    builder.add_fact("b1", "author", "p1")
    builder.add_fact("b1", "author", "p2")
    builder.add_fact("b2", "author", "p2")
    builder.add_fact("publisher/Quill", "published", "b1", {"start time": Year(2001)})
    builder.add_fact("publisher/Lamp", "published", "b3")
    builder.add_fact("p1", "boss", "p2")
    sold = {"seller": "Ada Berg", "copies": Quantity(12), "point in time": Date(2024, 1, 2)}
    builder.add_fact("b1", "sold in", "shop/North", sold)
    builder.add_fact(
        "b1", "sold in", "shop/South", {"copies": Quantity(3), "point in time": Year(2024)}
    )
    return builder.build()


def canonical(kb: KnowledgeBase) -> Any:
    """The nodes with their facts, whatever the order."""
    return {
        kb.id_of(node): (
            kb.name_of(node),
            sorted(
                kb.id_of(n) for n in (kb.concepts_of if kb.is_entity(node) else kb.parents)(node)
            ),
            sorted(map(repr, kb.attributes(node) if kb.is_entity(node) else [])),
            sorted(map(repr, kb.records(node, "both"))),
        )
        for node in range(kb.node_count)
    }


# --- what is read ----------------------------------------------------------------------------


def test_tables_with_a_mapping(folder: Path) -> None:
    report = Report()
    found = read_tables(folder / "map.yaml", report=report)
    assert canonical(found) == canonical(expected())
    assert report == {
        "rows": 10,
        "qualifiers": 9,
        "things made from cells": 4,
        "entities": 9,
        "concepts": 7,
        "relational facts": 8,
        "literal facts": 7,
    }


def test_json_is_the_same(folder: Path) -> None:
    yaml = pytest.importorskip("yaml")
    fields = yaml.load(MAPPING, yaml.BaseLoader)
    write(folder / "map.json", json.dumps(fields, indent="\t"))
    first, second = read_mapping(folder / "map.yaml"), read_mapping(folder / "map.json")
    assert first.concepts == second.concepts
    assert document_of(read_tables(second)) == document_of(read_tables(first))


def small(folder: Path, table: str, mapping: str, **files: str) -> KnowledgeBase:
    """The knowledge base of a table ``t`` with these lines of a mapping."""
    write(folder / "t.csv", table)
    for name, text in files.items():
        write(folder / f"{name}.csv", text)
    indented = "\n".join("    " + line for line in mapping.splitlines())
    path = write(folder / "small.yaml", f"tables:\n  t:\n    file: t.csv\n{indented}\n")
    return read_tables(path)


def test_ids_from_names_and_repeated_rows(tmp_path: Path) -> None:
    table = "shop,town,sale\nNorth,Oslo,1\nSouth,Bergen,2\nNorth,Oslo,3\nNorth,Oslo,3\n"
    mapping = """\
name: shop
concept: shop
repeats: true
columns:
  town: {relation: in, create: town}
  sale: {attribute: sale, type: quantity}
"""
    kb = small(tmp_path, table, mapping)
    assert [str(f.value) for f in kb.attributes(kb.node("t/North"))] == ["1", "3"]
    assert len(kb.relational) == 2
    with pytest.raises(ReadError, match=r"the name 'North' is that of t\.csv, line 2, too"):
        small(tmp_path, table, mapping.replace("repeats: true", "repeats: no"))


def test_one_file_as_two_tables(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", "title,author,born\nA,Ada,1950\nB,Ada,1950\n")
    mapping = """\
tables:
  books: {file: t.csv, name: title, concept: book, columns: {author: {relation: by, to: authors}}}
  authors: {file: t.csv, name: author, repeats: true, concept: person,
            columns: {born: {attribute: born, type: year}}}
"""
    kb = read_tables(write(tmp_path / "m.yaml", mapping))
    assert [(f.head, f.tail) for f in kb.facts()] == [
        ("books/A", "authors/Ada"),
        ("books/B", "authors/Ada"),
    ]
    assert [f.value for f in kb.attributes(kb.node("authors/Ada"))] == [Year(1950)]


def test_facts_named_by_a_column_and_several_facts_of_one(tmp_path: Path) -> None:
    write(tmp_path / "things.csv", "id\na\nb\n")
    write(tmp_path / "t.csv", "id,what,value\na,height,5\na,weight,6\nb,height,7\na,height,5\n")
    mapping = """\
tables:
  things: {file: things.csv, id: id, name: id, concept: thing}
  measures:
    file: t.csv
    about: things
    name: id
    columns:
      value:
        - {attribute: {column: what}, type: quantity}
        - {attribute: as text}
"""
    kb = read_tables(write(tmp_path / "m.yaml", mapping))
    assert [(f.key, f.value) for f in kb.attributes(kb.node("a"))] == [
        ("height", Quantity(5)),
        ("as text", "5"),
        ("weight", Quantity(6)),
        ("as text", "6"),
    ]
    write(tmp_path / "t.csv", "id,what,value\na,,5\n")
    with pytest.raises(ReadError, match="column 'what': the name of the fact is missing"):
        read_tables(tmp_path / "m.yaml")


def test_spreadsheets_of_other_places(tmp_path: Path) -> None:
    text = "sep\u00a0;Größe\r\nÄpfel;1.234,5\r\nBirnen;7\r\n"
    mapping = """\
tables:
  obst:
    file: t.csv
    delimiter: ";"
    encoding: {encoding}
    decimal: ","
    thousands: "."
    name: "sep\u00a0"
    concept: Obst
    columns: {Größe: {attribute: Größe, type: quantity, unit: Gramm}}
"""
    for encoding in ("cp1252", "utf-16", "utf-8", "utf-8-sig"):
        write(tmp_path / "t.csv", text.replace("sep\u00a0", "sep"), encoding)
        path = tmp_path / "m.yaml"
        write(path, mapping.replace("{encoding}", encoding).replace("sep\u00a0", "sep"))
        kb = read_tables(path)
        fact = next(iter(kb.attributes(kb.node("obst/Äpfel"))))
        assert fact.value == Quantity(1234.5, "Gramm")


def test_tab_separated_without_quotes(tmp_path: Path) -> None:
    write(tmp_path / "t.tsv", 'name\tsize\n"19" rack\t5\n')
    mapping = "tables: {t: {file: t.tsv, name: name, quoted: false, columns: {size: skip}}}\n"
    kb = read_tables(write(tmp_path / "m.yaml", mapping))
    assert kb.name_of(0) == '"19" rack'
    with pytest.raises(ReadError, match="not CSV"):
        read_tables(write(tmp_path / "m.yaml", mapping.replace("quoted: false, ", "")))


# --- bad cells and rows ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "file", "message"),
    [
        ("320", "many", "books.csv", "line 2, column 'pages': 'many' is not a number"),
        ("320", '"1.000,5"', "books.csv", 'the mapping may say decimal: ","'),
        ("12.50,€", "12.50,", "books.csv", "column 'currency': the unit of '12.50' is missing"),
        ("2024-03-01", "1.3.2024", "books.csv", "column 'price_date': '1.3.2024' is neither"),
        ("1;2,", "1;7,", "books.csv", "'7' is no id of the table 'people'"),
        ("1;2,", "Ada Berg,", "books.csv", "it is a name: say by: name"),
        ("1999;2001", "1;2;3", "books.csv", "3 values for 2 in the column 'tags'"),
        (
            "b2,Kitchen",
            "b1,Kitchen",
            "books.csv",
            "line 3: the id 'b1' is that of books.csv, line 2",
        ),
        ("b2,Kitchen", ",Kitchen", "books.csv", "line 3: the id is missing (column book_id)"),
        ("b2,Kitchen", "b2,", "books.csv", "line 3: the name is missing (column title)"),
        ("b2,Kitchen", "p1,Kitchen", "people.csv", "the id 'p1' is that of books.csv, line 3, too"),
        ("crime novel,320", "crime,320", "books.csv", "'crime' is no name of the table 'genres'"),
        (",y\n", ",y,z\n", "books.csv", "line 3: 14 cells, and the header has 13"),
        (",y\n", "\n", "books.csv", "line 3: 12 cells, and the header has 13"),
    ],
)
def test_a_bad_cell(folder: Path, old: str, new: str, file: str, message: str) -> None:
    path = folder / "books.csv"
    text = path.read_text("utf-8")
    assert old in text
    write(path, text.replace(old, new, 1))
    with pytest.raises(ReadError) as caught:
        read_tables(folder / "map.yaml")
    assert message in str(caught.value)
    assert "--skip-malformed" in str(caught.value)
    assert caught.value.source == str(folder / file)
    report, problems = Report(), Problems()
    read_tables(folder / "map.yaml", problems, skip_malformed=True, report=report)
    left_out = sum(count for what, count in report.items() if "malformed" in what)
    assert left_out == len(problems.found) >= 1
    assert message in " ".join(found.place + ": " + found.message for found in problems.found)


def test_names_that_several_have(folder: Path) -> None:
    write(folder / "people.csv", PEOPLE + "3;Ada;Berg;\n")
    with pytest.raises(ReadError, match="several have the name 'Ada Berg'; name them by id"):
        read_tables(folder / "map.yaml")


def test_many_bad_cells_are_counted(tmp_path: Path) -> None:
    table = "name,n\n" + "".join(f"a{i},x{i}\n" for i in range(50)) + "b,1\n"
    with pytest.raises(ReadError) as caught:
        small(tmp_path, table, "name: name\ncolumns: {n: {attribute: n, type: quantity}}")
    lines = str(caught.value).splitlines()
    assert len(lines) == 23
    assert "t.csv: line 2, column 'n': 'x0' is not a number such as 1000 or 3.5" in lines[0]
    assert lines[20] == "… and 30 more"
    assert lines[21].endswith("column 'n': 50 cells are not what the mapping says")
    assert lines[22].startswith("50 cells or rows are wrong; ")
    assert "--draft" in lines[22]


def test_a_bad_qualifier_goes_alone(folder: Path) -> None:
    path = folder / "books.csv"
    write(path, path.read_text("utf-8").replace("2024-03-01", "soon"))
    kb = read_tables(folder / "map.yaml", skip_malformed=True)
    (price,) = [f for f in kb.attributes(kb.node("b1")) if f.key == "price"]
    assert (price.value, price.qualifiers) == (Quantity(12.5, "euro"), {})


# --- a table that is not of the form -------------------------------------------------------------


def test_columns_that_are_missing(folder: Path) -> None:
    path = folder / "books.csv"
    text = path.read_text("utf-8")
    write(path, text.replace("title", "titel"))
    with pytest.raises(ReadError, match="no column 'title'; did you mean 'titel'") as caught:
        read_tables(folder / "map.yaml")
    assert "map.yaml: line 6)" in str(caught.value) and "--draft" in str(caught.value)
    write(path, text.replace("title", "note"))
    with pytest.raises(ReadError, match="two columns are called 'note'"):
        read_tables(folder / "map.yaml")
    write(path, text.replace(",", ";"))
    with pytest.raises(ReadError, match="say delimiter: ';'"):
        read_tables(folder / "map.yaml")
    write(path, "")
    with pytest.raises(ReadError, match="there is no header"):
        read_tables(folder / "map.yaml")
    path.unlink()
    with pytest.raises(ReadError, match="cannot be opened"):
        read_tables(folder / "map.yaml")


def test_columns_that_the_mapping_does_not_name(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import logging

    monkeypatch.setattr(logging.getLogger("kb"), "propagate", True)
    write(folder / "map.yaml", MAPPING.replace("      note: skip\n", ""))
    report = Report()
    read_tables(folder / "map.yaml", report=report)
    assert report["columns left out: the mapping does not name them"] == 1
    assert "does not name, so left out: note" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04rest", "is a workbook or archive; save each of its sheets as CSV"),
        (b"PAR1rest", "is a Parquet file; write it as CSV"),
        ("id;n\né;1".encode("cp1252"), "say encoding: cp1252"),
    ],
)
def test_files_that_are_no_tables(folder: Path, content: bytes, message: str) -> None:
    (folder / "people.csv").write_bytes(content)
    with pytest.raises(ReadError, match=message):
        read_tables(folder / "map.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tables:", "tabels:", "the field tables is missing"),
        ("missing:", "mising:", "line 1, mising: an unknown field; did you mean 'missing'?"),
        ("    name: title", "    nam: title", "an unknown field; did you mean 'name'?"),
        ("    file: books.csv\n", "", "line 6, tables/books: the file of the table is missing"),
        ("    name: title\n", "", "tables/books: give the column of names as name"),
        ("to: people, sep", "to: poeple, sep", "no table 'poeple'; did you mean 'people'?"),
        ("to: people, sep", "to: sales, sep", "the rows of 'sales' are about 'books'"),
        ("about: books", "about: bookz", "no table 'bookz'; did you mean 'books'?"),
        ("    id: book\n", "", "say in which column 'books' is"),
        ("of: tags", "of: tag", "tag_year: of: no attribute or relation is in a column 'tag'; did"),
        ("type: year, sep", "type: years, sep", "expected a type (string, quantity, year, date)"),
        ("unit: page", "unit: {}", "write a unit, or {column: COLUMN}"),
        ("type: quantity, unit: page", "unit: page", "this belongs to the type quantity"),
        ("relation: author, to: people,", "relation: author,", "say to: TABLE, or create: CONCEPT"),
        ("attribute: tag,", "attribute: tag, relation: x,", "one of attribute, relation and quali"),
        ("direction: backward", "direction: back", "expected forward or backward, not 'back'"),
        ("note: skip", "note: {}", "one of attribute, relation and qualifier, or skip"),
        ("note: skip", "note: {attribut: x}", "or skip; did you mean 'attribute'?"),
        ("note: skip", "note: drop", "expected skip, not 'drop'"),
        ("note: skip", "pages: skip", "the key stands here twice, first in line"),
        ('delimiter: ";"', "delimiter: ab", "expected one character"),
        ('delimiter: ";"', "encoding: none", "the encoding 'none' is unknown"),
        ('thousands: " "', "thousands: .", "decimals and thousands have the same mark"),
        ("rows: concepts", "rows: classes", "expected things or concepts"),
        ("parent: parent", "concept: parent", "rows that are concepts have their parent"),
        ("to: genres, by: name", "to: people", "the rows of 'people' are things; say rows: con"),
        (
            "type: date}\n      author",
            "type: date, format: dd.mm.yy}\n      author",
            "is not a form",
        ),
        ("of: price, type", "type", "say of: COLUMN"),
        ("[NA]", "[NA", "line 2: not YAML"),
        ("[NA]", "{a: b}", "missing: expected a text here"),
    ],
)
def test_a_wrong_mapping(folder: Path, old: str, new: str, message: str) -> None:
    assert old in MAPPING
    write(folder / "map.yaml", MAPPING.replace(old, new, 1))
    with pytest.raises(ReadError) as caught:
        read_tables(folder / "map.yaml")
    assert message in str(caught.value)
    assert caught.value.source == str(folder / "map.yaml") and caught.value.place


@pytest.mark.parametrize("text", ["", "[1]", "tables: {}", "a", "&a [*a]", "tables: {t: 5}"])
def test_what_is_no_mapping(tmp_path: Path, text: str) -> None:
    with pytest.raises(ReadError):
        read_mapping(write(tmp_path / "m.yaml", text))


# --- the command -----------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out.kopl", "out.json", "out.jsonl.gz"])
def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str], out: str) -> None:
    mapping = str(folder / "map.yaml")
    assert main(["kb", "import", "--mapping", mapping, "-o", str(folder / out)]) == 0
    assert "10 rows\n" in capsys.readouterr().err
    assert canonical(load(folder / out)) == canonical(expected())
    assert main(["kb", "check", str(folder / out)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mapping", "map.yaml"], "name the file to write: -o OUT"),
        (["--mapping", "map.yaml", "books.csv", "-o", "o.kopl"], "names its files itself"),
        (["--mapping", "map.yaml", "-o", "o.txt"], "end OUT in .kopl, .json or .jsonl"),
        (["--mapping", "map.yaml", "-o", "people.json", "--labels", "x"], "--labels: tables with"),
        (["--mapping", "none.yaml", "-o", "o.kopl"], "none.yaml: cannot be opened"),
        (["--mapping", "sales.csv", "-o", "o.kopl"], "sales.csv: line 1: expected fields here"),
        (["books.csv", "o.kopl"], "--draft FILE… -o MAPPING"),
        (["--from", "table", "-o", "o.kopl"], "name the files to read"),
        (
            ["--from", "wikidata", "--mapping", "map.yaml", "-o", "o.kopl"],
            "belongs to --from table",
        ),
        (["--draft"], "--draft: name the tables"),
        (["--draft", "books.csv", "-o", "map.yaml"], "what was edited in it would be lost"),
        (["--draft", "books.csv", "--mapping", "map.yaml"], "goes without --mapping"),
    ],
)
def test_wrong_usage(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    assert main(["kb", "import", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before
