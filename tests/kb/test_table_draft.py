"""Mappings that are drafted from tables: what is guessed, and that they load as they are."""

from __future__ import annotations

import csv
import os
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import KnowledgeBase, KoplError, Quantity, ReadError, load
from kb.imports.common import Report
from kb.imports.draft import draft_mapping
from kb.imports.facts import read_fact_tables
from kb.imports.guesses import singular
from kb.imports.tables import read_tables
from kb.store import normalise_name
from kopl_cli import main

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "bookshop.map.yaml"


@pytest.fixture(scope="module")
def bookshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the example's tables."""
    folder = tmp_path_factory.mktemp("shop") / "bookshop"
    make_bookshop(folder)
    return folder


def make_bookshop(folder: Path) -> None:
    arguments = sys.argv
    sys.argv = ["make_bookshop.py", str(folder)]
    try:
        runpy.run_path(str(ROOT / "docs" / "examples" / "make_bookshop.py"), run_name="__main__")
    finally:
        sys.argv = arguments


def files_of(folder: Path) -> list[Path]:
    return [folder / f"{name}.csv" for name in ("books", "people", "contributions")]


def test_the_example(bookshop: Path) -> None:
    """After a change for the better, write the new draft to the file that is compared."""
    draft = draft_mapping(files_of(bookshop), bookshop)
    assert draft.text == GOLDEN.read_text("utf-8")
    assert draft.text.count("#?") - 1 == draft.doubts == 0  # the first one explains the mark


def test_the_example_loads_as_it_is(bookshop: Path) -> None:
    path = bookshop / "as_it_is.yaml"
    path.write_text(draft_mapping(files_of(bookshop), bookshop).text, "utf-8")
    report = Report()
    kb = read_tables(path, report=report)
    rows = {p.stem: list(csv.DictReader(p.open(encoding="utf-8"))) for p in files_of(bookshop)}
    assert report["rows"] == sum(map(len, rows.values()))
    assert kb.entity_count == len(rows["books"]) + len(rows["people"])
    assert "cells left out: malformed" not in report
    for row in rows["books"]:
        facts = {fact.key: fact for fact in kb.attributes(kb.node(row["book_id"]))}
        assert kb.name_of(kb.node(row["book_id"])) == row["title"]
        assert facts["weight"].value == Quantity(float(row["weight_g"]), "gram")
        assert str(facts["price"].qualifiers["point in time"][0]) == row["price_date"]
    joined = {(f.head, f.relation, f.tail) for f in kb.facts() if f.relation == "author"}
    assert joined == {
        (row["book_id"], "author", row["person_id"])
        for row in rows["contributions"]
        if row["role"] == "author"
    }


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of the page's first section run as written and print what it shows."""
    page = (ROOT / "docs" / "own-kb.md").read_text("utf-8")
    text = page[page.index("\n## From three tables") : page.index("\n### The mapping of tables")]
    edits = re.search(r"^```yaml edit\n(.+?)^```", text, re.M | re.S)
    assert edits
    monkeypatch.chdir(tmp_path)
    names = []
    for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$|```).*\n)*)", text, re.M):
        name, *arguments = shlex.split(command)
        names.append(" ".join([name, *arguments[: 2 if arguments[0] == "kb" else 1]]))
        if name == "python":
            assert (ROOT / arguments[0]).exists()
            make_bookshop(tmp_path / arguments[1])
        elif name == "cd":
            monkeypatch.chdir(tmp_path / arguments[0])
        else:
            if arguments[:3] == ["kb", "import", "--mapping"]:
                edit(Path(arguments[3]), edits[1].splitlines())
            assert name == "kopl" and main(arguments) == 0
            printed = capsys.readouterr()
            if arguments[0] != "generate":  # which tells about the questions that were dropped
                assert printed.out + printed.err == shown
    assert {"kopl kb import", "kopl kb check", "kopl run", "kopl generate"} <= set(names)
    assert len(Path("questions.jsonl").read_text("utf-8").splitlines()) == 50


def edit(path: Path, lines: list[str]) -> None:
    """Put lines in the places of those with the same keys, as the page asks its reader to do."""
    text = path.read_text("utf-8")
    for line in lines:
        key = re.escape(line.partition(":")[0].strip())
        text, count = re.subn(rf"(?m)^(?:# | *){key}:.*$", lambda _, new=line: new, text)
        assert count == 1
    path.write_text(text, "utf-8")


def test_the_example_s_names_are_its_own(bookshop: Path) -> None:
    world = load("world")
    for path in files_of(bookshop)[:2]:
        for row in csv.DictReader(path.open(encoding="utf-8")):
            for column in ("title", "name", "publisher", "birthplace"):
                assert not len(world.named(row.get(column, "-"))), row


# --- what is guessed ---------------------------------------------------------------------------


def drafted(folder: Path, **tables: str) -> str:
    """The draft for tables, without spaces before comments."""
    paths = []
    for name, text in tables.items():
        path = folder / f"{name}.csv"
        path.write_text(text, "utf-8", newline="")
        paths.append(path)
    draft = draft_mapping(paths, folder)
    (folder / "map.yaml").write_text(draft.text, "utf-8")
    return draft.text


def imported(folder: Path, **tables: str) -> KnowledgeBase:
    """The knowledge base of tables by their draft, as it is."""
    drafted(folder, **tables)
    return read_tables(folder / "map.yaml")


def entries(text: str) -> dict[str, str]:
    """The entries of columns and fields without their comments."""
    found = {}
    for line in text.splitlines():
        entry = line.split("  #")[0].strip()
        key, colon, value = entry.partition(": ")
        if colon and not line.startswith("#"):
            found[key] = value.strip()
    return found


CITIES = "name,country,population,area (km²)\nA,X,5,1.5\nB,Y,7,2\nC,X,9,3\n"
COUNTRIES = "code,name,capital\n1,X,A\n2,Y,B\n"


def test_references_by_name(tmp_path: Path) -> None:
    found = entries(drafted(tmp_path, cities=CITIES, countries=COUNTRIES))
    assert found["country"] == "{relation: country, to: countries, by: name}"
    assert found["capital"] == "{relation: capital, to: cities}"
    assert found['"area (km²)"'] == ("{attribute: area, type: quantity, unit: square kilometre}")
    assert found["prefix"] == "country/"
    kb = imported(tmp_path, cities=CITIES, countries=COUNTRIES)
    assert {(f.head, f.tail) for f in kb.facts() if f.relation == "capital"} == {
        ("country/1", "cities/A"),
        ("country/2", "cities/B"),
    }


def test_names_that_are_in_no_table_are_made(tmp_path: Path) -> None:
    cities = CITIES.replace("C,X", "C,Zed")
    text = drafted(tmp_path, cities=cities, countries=COUNTRIES)
    assert entries(text)["country"].endswith("by: name, create: country}")
    (line,) = [line for line in text.splitlines() if line.strip().startswith("#? names of")]
    assert "names of countries" in line and "1 without a row there (Zed)" in line
    kb = read_tables(tmp_path / "map.yaml")
    assert kb.concepts_of(kb.node("country/Zed")) == [kb.node("concept/country")]


def test_a_tree_of_kinds(tmp_path: Path) -> None:
    animals = "id,name,species\na1,Rex,dog\na2,Tom,cat\na3,Bo,dog\n"
    species = "species_id,name,parent_id\ns1,animal,\ns2,dog,s1\ns3,cat,s1\n"
    found = drafted(tmp_path, animals=animals, species=species)
    assert "rows: concepts" in found and "parent: parent_id" in found
    kb = imported(tmp_path, animals=animals, species=species)
    assert kb.concepts_of(kb.node("a1")) == [kb.node("s2")]
    assert kb.parents(kb.node("s2")) == [kb.node("s1")]


def test_rows_at_several_times(tmp_path: Path) -> None:
    cities = "id,name\nc1,A\nc2,B\n"
    counts = "city_id,year,inhabitants\nc1,2001,5\nc1,2011,7\nc2,2001,9\n"
    found = entries(drafted(tmp_path, cities=cities, counts=counts))
    assert found["about"] == "cities"
    assert found["inhabitants"] == "{attribute: number of inhabitants, type: quantity}"
    assert found["year"] == "{qualifier: point in time, type: year}"
    kb = imported(tmp_path, cities=cities, counts=counts)
    assert [str(f.qualifiers["point in time"][0]) for f in kb.attributes(kb.node("c1"))] == [
        "2001",
        "2011",
    ]


def test_rows_that_add_to_a_table(tmp_path: Path) -> None:
    cities = "id,name\nc1,A\nc2,B\n"
    found = entries(drafted(tmp_path, cities=cities, details="city_id,founded\nc1,1200\nc2,1300\n"))
    assert found["founded"] == "{attribute: year of foundation, type: year}"


def test_link_tables(tmp_path: Path) -> None:
    pupils = "id,first_name,surname\n1,Ada,Berg\n2,Otto,Lind\n"
    courses = "id,title\n1,Maths\n2,Latin\n"
    marks = (
        "id,pupil_id,course_id,mark,from,until\n1,1,1,2.5,2001,2003\n2,2,1,3,2002,\n3,1,2,1,2001,\n"
    )
    text = drafted(tmp_path, pupils=pupils, courses=courses, marks=marks)
    found = entries(text)
    assert found["name"] == "title" and "name: [first_name, surname]" in text
    assert found["id"] == "skip" and "id: pupil_id" in text
    assert found["course_id"] == "{relation: course, to: courses}"
    assert found["from"] == "{qualifier: start time, of: course_id, type: year}"
    assert found["mark"] == "{qualifier: mark, of: course_id, type: quantity}"
    assert "#? ids of courses" in text
    kb = imported(tmp_path, pupils=pupils, courses=courses, marks=marks)
    assert len(kb.relational) == 3
    assert kb.named("Ada Berg").tolist() == [kb.node("pupil/1")]


def test_spreadsheets_of_other_places(tmp_path: Path) -> None:
    text = "Name;Preis (€);Datum;Bahn\nÄpfel;1.234,50;3.1.2024;NA\nBirnen;2,5;24.12.2023;-\n"
    (tmp_path / "obst.csv").write_bytes(text.encode("cp1252"))
    draft = draft_mapping([tmp_path / "obst.csv"], tmp_path)
    found = entries(draft.text)
    assert (found["delimiter"], found["encoding"]) == ('";"', "cp1252")
    assert found['"Preis (€)"'] == (
        '{attribute: preis, type: quantity, decimal: ",", thousands: ".", unit: euro}'
    )
    assert found["Datum"] == "{attribute: datum, type: date, format: dd.mm.yyyy}"
    assert found["missing"] == '["-", NA]'
    assert found["Bahn"] == "skip"
    (tmp_path / "map.yaml").write_text(draft.text, "utf-8")
    kb = read_tables(tmp_path / "map.yaml")
    assert [str(fact.value) for fact in kb.attributes(kb.node("obst/Äpfel"))] == [
        "1234.5 euro",
        "2024-01-03",
    ]
    (tmp_path / "obst.csv").write_bytes(text.encode("utf-16"))
    assert "encoding: utf-16" in draft_mapping([tmp_path / "obst.csv"], tmp_path).text


def test_codes_that_look_like_missing_words(tmp_path: Path) -> None:
    text = "code,name,note\nNO,Norway,a\nNA,Namibia,-\nSE,Sweden,b\nDK,Denmark,c\n"
    kb = imported(tmp_path, countries=text)
    assert kb.name_of(kb.node("NA")) == "Namibia"


def test_units_in_columns_and_cells(tmp_path: Path) -> None:
    text = "name,price,currency,weight\nA,5,EUR,12 kg\nB,6,USD,8 kg\nC,7,EUR,1 kg\n"
    kb = imported(tmp_path, things=text)
    assert [str(f.value) for f in kb.attributes(kb.node("things/B"))] == [
        "6 US dollar",
        "8 kilogram",
    ]


@pytest.mark.parametrize(
    ("header", "key", "unit"),
    [
        ("price in euro", "price", "euro"),
        ("price, EUR", "price", "euro"),
        ("size (in cm)", "size", "centimetre"),
        ("weight [kg]", "weight", "kilogram"),
        ("price per kg", "price per kg", None),
        ("in euro", "in euro", None),
        ("note, <b>x</b>", "note, <b>x</b>", None),
        ("a/b: c", "a b c", None),
    ],
)
def test_keys_keep_the_words_of_their_headers(
    tmp_path: Path, header: str, key: str, unit: str | None
) -> None:
    text = f'name,"{header}"\nA,1.5\nB,2.5\n'
    import yaml  # type: ignore[import-untyped]

    table = yaml.safe_load(drafted(tmp_path, things=text))["tables"]["things"]
    column = table["columns"][header]
    assert (column["attribute"], column.get("unit")) == (key, unit)


def test_an_id_that_is_there_twice(tmp_path: Path) -> None:
    rows = "".join(f"{n},N{n}\n" for n in range(9))
    text = drafted(tmp_path, things=f"id,name\n{rows}8,M\n")
    assert "id: id  #? 1 value is there twice (8); mend them" in text
    with pytest.raises(ReadError, match="line 11: the id '8' is that of things"):
        read_tables(tmp_path / "map.yaml")


def test_what_an_owner_s_column_says_is_doubtful(tmp_path: Path) -> None:
    text = drafted(tmp_path, books="title,author,author born\nA,Ann,1950\nB,Bob,1960\n")
    assert '"author born"' not in text and "author born: {qualifier: born, of: author" in text
    assert draft_mapping([tmp_path / "books.csv"], tmp_path).doubts == 1


def test_values_of_which_one_is_not_of_the_type(tmp_path: Path) -> None:
    rows = "".join(f"N{n},{n}.5.190{n},0{n}23\n" for n in range(1, 9))
    text = drafted(tmp_path, people=f"name,died,code\n{rows}M,about 1950,x\n")
    assert "#? 1.5.1901" in text and "but for 'about 1950' it would be type: date, format" in text
    assert entries(text)["died"] == "{attribute: died}"
    assert text.count("#? ") == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ReadError, match="is read twice, so it cannot be a pipe"):
        draft_mapping([tmp_path / "pipe.csv"])
    with pytest.raises(ReadError, match=r"nothere\.csv: cannot be opened: No such file"):
        draft_mapping([tmp_path / "nothere.csv"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,a\n1,2,3\n", "two columns are called 'a'; rename one"),
        ("a,b\n", "there are no rows below the header"),
        ("", "there is no header"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells, and the header has 2; is the first line no header"),
        ("a,3.5\nb,2.5\n", "the first line must name the columns; '3.5' is no name"),
        ("Q1,P31,Q2\nQ3,P31,Q4\n", "'P31' stands in the first line and below it"),
        ('a,b\n"1,2\n', "not CSV"),
        (f"a,{'b' * 501}\n1,2\n", "line 1: the name of column 2 has 501 characters; 500 are"),
    ],
)
def test_what_is_no_table(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        drafted(tmp_path, t=text)
    assert message in str(caught.value)


def test_two_files_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name\na\n")
    (tmp_path / "t.tsv").write_text("name\na\n")
    with pytest.raises(KoplError, match="another file is called t, too"):
        draft_mapping([tmp_path / "t.csv", tmp_path / "t.tsv"])


def test_singular() -> None:
    words = "books cities people boxes dishes buses houses classes news status countries series"
    assert [singular(word) for word in words.split()] == [
        "book",
        "city",
        "person",
        "box",
        "dish",
        "buse",
        "house",
        "classe",
        "new",
        "status",
        "country",
        "series",
    ]


# --- any tables --------------------------------------------------------------------------------

AWKWARD = [
    "",
    " ",
    "NA",
    "-",
    "0",
    "007",
    "1",
    "1.5",
    "1,5",
    "1,500",
    "12 kg",
    "€ 3",
    "5%",
    "1998",
    "2003",
    "1998-06-27",
    "27.6.1998",
    "1/2/1998",
    "x",
    "X",
    "a; b",
    "a|b",
    "a, b",
    "yes",
    "null",
    '"',
    "'",
    "#",
    "{",
    "a: b",
    "- a",
    "ä\u00a0ö",
    "\u202e",
    "\x85",
    "\ufeff",
    "1e999",
    "a\nb",
    "\x7f",
    "😀",
]
HEADERS = st.lists(
    st.sampled_from(
        [
            "id",
            "name",
            "title",
            "t_id",
            "u",
            "u_id",
            "kind",
            "role",
            "price",
            "price date",
            "unit",
            "a:b",
            "yes",
            "2020",
            "#",
            "größe (cm)",
            "",
            "x y",
            "date",
            "parent_id",
            "[",
            "😀",
        ]
    ),
    min_size=1,
    max_size=6,
    unique=True,
)
CELL = st.sampled_from(AWKWARD) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4
)


@st.composite
def table(draw: st.DrawFn) -> list[list[str]]:
    header = draw(HEADERS)
    columns = [draw(st.lists(CELL, min_size=1, max_size=3)) for _ in header]
    count = draw(st.integers(1, 6))
    rows = [[draw(st.sampled_from(column)) for column in columns] for _ in range(count)]
    return [header, *rows]


def write_rows(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)


@given(table(), table())
@settings(max_examples=100, deadline=None)
def test_any_tables(
    tmp_path_factory: pytest.TempPathFactory, first: list[list[str]], second: list[list[str]]
) -> None:
    """A draft is refused, or it is a mapping; the import gives a knowledge base, or an error."""
    folder = tmp_path_factory.mktemp("any")
    write_rows(folder / "t.csv", first)
    write_rows(folder / "u.csv", second)
    try:
        draft = draft_mapping([folder / "t.csv", folder / "u.csv"], folder)
    except KoplError:
        return
    assert draft == draft_mapping([folder / "t.csv", folder / "u.csv"], folder)
    (folder / "map.yaml").write_text(draft.text, "utf-8")
    try:
        kb = read_tables(folder / "map.yaml")
    except ReadError as error:
        # Only a table that is not clean is refused: a name or id is missing, say.
        assert "cells or rows are wrong" in str(error) or "--skip-malformed" in str(error)
        try:
            kb = read_tables(folder / "map.yaml", skip_malformed=True)
        except ReadError as second_error:
            assert "there are no rows in the tables" in str(second_error)
            return
    assert kb.node_count > 0


WORD = st.text("abcdefgh", min_size=1, max_size=6)
CLEAN: dict[str, st.SearchStrategy[Any]] = {
    "size": st.floats(-1e6, 1e6).map(lambda number: Quantity(round(number, 3))),
    "colour": WORD,
    "made": st.dates().map(str),
}


@given(st.dictionaries(WORD, st.tuples(*(st.none() | form for form in CLEAN.values())), min_size=1))
@settings(max_examples=60, deadline=None)
def test_values_come_back(
    tmp_path_factory: pytest.TempPathFactory, things: dict[str, tuple[Any, ...]]
) -> None:
    """Clean tables load by their drafts as they are, and every value is there."""
    path = tmp_path_factory.mktemp("clean") / "things.csv"
    rows = [
        [name, *("" if v is None else str(v) for v in values)] for name, values in things.items()
    ]
    write_rows(path, [["name", *CLEAN], *rows])
    mapping = path.with_name("map.yaml")
    mapping.write_text(draft_mapping([path], path.parent).text, "utf-8")
    kb = read_tables(mapping)
    for name, *cells in rows:
        facts = kb.attributes(kb.node(f"things/{normalise_name(name)}"))
        assert [str(fact.value) for fact in facts] == [cell for cell in cells if cell]


# --- a table of things read as facts -----------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "title,author,pages\nThe Blue Bridge,Ada Berg,320\nKitchen,Otto Lind,99\n",
        "title,year,genre\nThe Blue Bridge,2001,novel\n",
        "id,genre,of\n1,novel,x\n2,novel,y\n",
        "Buch,Autor,Ort\na,b,c\nd,e,f\ng,h,i\nj,k,l\nm,n,o\n",
    ],
)
def test_wide_tables_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "books.csv"
    path.write_text(text, "utf-8")
    out = tmp_path / "out.kopl"
    assert main(["kb", "import", "--from", "table", str(path), str(out)]) == 2
    assert f"--draft {path} -o mapping.yaml" in capsys.readouterr().err
    assert not out.exists()
    (tmp_path / "facts.json").write_text("{}")
    mapping = ["--mapping", str(tmp_path / "facts.json")]
    assert main(["kb", "import", "--from", "table", *mapping, str(path), str(out)]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "a,r,b\nc,r,d\n",
        "a,knows,b\nb,size,5\n",
        "a,likes,b\nb,hates,c\nc,meets,a\n",
        "x,age,5,since,2001\ny,height,6\nz,weight,7\n",
    ],
)
def test_tables_of_facts_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    assert len(read_fact_tables(tmp_path / "x.csv").relational) == len(text.splitlines())


def test_a_header_of_facts_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("head,relation,tail\na,r,b\nc,r,d\n")
    with pytest.raises(ReadError, match='write a mapping that says "header": true'):
        read_fact_tables(tmp_path / "x.csv")
