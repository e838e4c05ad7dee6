"""Aliases: what nodes are called besides their names, in the store and in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import (
    Builder,
    KnowledgeBase,
    KoplError,
    Problems,
    ReadError,
    from_kqapro,
    load,
    read,
    write_kqapro,
    write_lines,
    write_rdf,
    write_snapshot,
)
from kb.imports.draft import draft_mapping
from kb.imports.factmap import read_fact_map
from kb.imports.facts import read_fact_tables
from kb.imports.tables import read_tables
from kb.imports.wikidata import read_wikidata
from kb.kqapro import SPELLINGS
from kb.store import normalise_name, suggest
from kopl import Executor
from kopl.sparql.wikidata_export import wikidata_ntriples
from kopl_cli import main
from tests.kb.strategies import document_of
from tests.kb.wikidata_dumps import item, thing


def countries() -> Builder:
    builder = Builder()
    builder.add_concept("c", "country", aliases=["state", "nation"])
    builder.add_entity("gb", "United Kingdom", ["c"], ["UK", "Great  Britain ", "UK"])
    builder.add_entity("us", "United States", ["c"], ["USA", "America", "United States"])
    builder.add_entity("cg", "Congo", ["c"])
    builder.add_entity("cd", "DR Congo", ["c"], ["Congo", "Zaire", "Congo-Kinshasa"])
    builder.add_entity("cb", "Congo Republic", ["c"], ["Congo"])
    builder.add_entity("t", "two\nlines", ["c"], ['a "quoted" \\ one', "東京"])
    return builder


@pytest.fixture
def kb() -> KnowledgeBase:
    return countries().build()


def ids(kb: KnowledgeBase, nodes: Any) -> list[str]:
    return [kb.id_of(node) for node in nodes.tolist()]


def called(kb: KnowledgeBase) -> dict[str, tuple[str, ...]]:
    """The aliases of every node that has some, by id."""
    found = {kb.id_of(node): kb.aliases_of(node) for node in range(kb.node_count)}
    return {id: aliases for id, aliases in found.items() if aliases}


# --- the store ---------------------------------------------------------------------------------


def test_aliases_stand_beside_names_in_the_order_of_the_source(kb: KnowledgeBase) -> None:
    assert kb.aliases_of(kb.node("gb")) == ("UK", "Great Britain")
    assert kb.aliases_of(kb.node("us")) == ("USA", "America")
    assert kb.aliases_of(kb.node("c")) == ("state", "nation")
    assert kb.aliases_of(kb.node("cg")) == ()
    assert kb.alias_count == 12


def test_nodes_are_known_by_aliases_exactly_and_not_by_names(kb: KnowledgeBase) -> None:
    assert ids(kb, kb.known_as(" Great\u00a0 Britain")) == ["gb"]
    assert ids(kb, kb.known_as("Congo")) == ["cd", "cb"]
    for stranger in ("uk", "United Kingdom", "nowhere", "", "\udc80"):
        assert ids(kb, kb.known_as(stranger)) == []
    assert ids(kb, kb.known_as("nation")) == ["c"]


def test_every_alias_with_its_nodes(kb: KnowledgeBase) -> None:
    found = dict(kb.aliased())
    assert list(found) == sorted(found)
    assert found["Congo"] == [kb.node("cd"), kb.node("cb")]
    assert sum(map(len, found.values())) == kb.alias_count


def test_names_and_aliases_of_a_kind(kb: KnowledgeBase) -> None:
    assert kb.called("concept") == ["country", "nation", "state"]
    assert {"UK", "Congo", "United States"} <= {*kb.called("entity")}
    assert "nation" not in kb.called("entity")


def test_find_does_not_know_aliases(kb: KnowledgeBase) -> None:
    assert ids(kb, kb.named("Congo")) == ["cg"]
    assert ids(kb, kb.named("UK")) == []
    executor = Executor(kb)
    assert executor.run("Count(Find(Congo))").denotation == ["1"]
    assert executor.run("Count(Find(UK))").denotation == ["0"]
    assert executor.run("Count(FilterConcept(FindAll(), nation))").denotation == ["0"]
    assert executor.run("Count(FilterConcept(FindAll(), country))").denotation == ["6"]


def test_a_knowledge_base_without_aliases_is_what_it_was() -> None:
    builder = Builder()
    builder.add_entity("a", "A", aliases=["A", " A "])
    plain = builder.build()
    assert "alias" not in plain.arrays
    assert plain.alias_count == 0
    assert [*plain.aliased()] == []
    assert ids(plain, plain.known_as("A")) == []
    builder.add_entity("a", "A")
    assert builder.build().fingerprint == plain.fingerprint


def test_aliases_are_content(kb: KnowledgeBase) -> None:
    builder = countries()
    builder.add_entity("nl", "Netherlands")
    plain = builder.build()
    builder = countries()
    builder.add_entity("nl", "Netherlands", aliases=["Holland"])
    assert builder.build().fingerprint != plain.fingerprint


def test_an_empty_alias_is_dropped_with_a_warning() -> None:
    builder = Builder()
    builder.add_entity("a", "A", aliases=["", " \n", "B"])
    assert called(builder.build()) == {"a": ("B",)}
    assert [problem.code for problem in builder.problems.found] == ["empty-alias"]


@pytest.mark.parametrize(
    ("aliases", "message"), [("UK", "a list of texts was expected"), ([1], "a text was expected")]
)
def test_the_builder_wants_texts(aliases: Any, message: str) -> None:
    with pytest.raises(KoplError, match=message):
        Builder().add_entity("a", "A", aliases=aliases)


# --- near names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("UK", ["United Kingdom"]),
        ("uk", ["United Kingdom"]),
        ("Zaïre", ["DR Congo"]),
        ("Great Britan", ["United Kingdom"]),
        ("Untied States", ["United States"]),
    ],
)
def test_an_alias_suggests_the_name(kb: KnowledgeBase, text: str, near: list[str]) -> None:
    assert suggest(kb, text, ("entity", "concept"))[:1] == near
    hints = Executor(kb).run(f"Find({text})").hints
    assert any(f"did you mean {near[0]!r}" in hint for hint in hints), hints


def test_an_alias_of_several_suggests_all_their_names(kb: KnowledgeBase) -> None:
    builder = countries()
    builder.add_entity("x", "X", aliases=["America", "Land"])
    builder.add_entity("y", "Y", aliases=["Land"])
    kb = builder.build()
    assert suggest(kb, "Land", ("entity", "concept")) == ["X", "Y"]
    assert suggest(kb, "America", ("entity",)) == ["United States", "X"]


def test_the_alias_of_an_entity_suggests_no_concept(kb: KnowledgeBase) -> None:
    assert suggest(kb, "nation", ("concept",)) == ["country"]
    assert suggest(kb, "UK", ("concept",)) == []


# --- formats -----------------------------------------------------------------------------------


WAYS: dict[str, Callable[[KnowledgeBase, Path], None]] = {
    "kb.json": write_kqapro,
    "old.json": lambda kb, path: write_kqapro(kb, path, spelling="B", ends="both"),
    "kb.jsonl.gz": write_lines,
    "kb.kopl": write_snapshot,
    "kb.nt": lambda kb, path: write_rdf(kb, path, "nt"),
    "kb.nq": lambda kb, path: write_rdf(kb, path, "nq", graph="urn:g"),
    "kb.ttl": lambda kb, path: write_rdf(kb, path, "ttl", base="http://a.example/b/"),
    "terms.ttl": lambda kb, path: write_rdf(kb, path, "ttl", terms=True),
}


@pytest.mark.parametrize("name", WAYS)
def test_formats_keep_aliases(name: str, kb: KnowledgeBase, tmp_path: Path) -> None:
    WAYS[name](kb, tmp_path / name)
    again = read(tmp_path / name)
    assert called(again) == called(kb)
    assert again.fingerprint == kb.fingerprint


def test_the_cache_keeps_aliases(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPL_CACHE_DIR", str(tmp_path / "cache"))
    write_kqapro(kb, tmp_path / "kb.json")
    for _ in range(2):
        assert called(load(tmp_path / "kb.json")) == called(kb)
    assert len([*(tmp_path / "cache").iterdir()]) == 1


def test_nodes_without_aliases_are_written_as_before(kb: KnowledgeBase) -> None:
    nodes = document_of(kb)
    assert nodes["entities"]["gb"]["aliases"] == ["UK", "Great Britain"]
    assert nodes["concepts"]["c"]["aliases"] == ["state", "nation"]
    assert "aliases" not in nodes["entities"]["cg"]


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)


@given(
    st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=4)), min_size=1, max_size=6),
    st.sampled_from(["A", "B"]),
)
@settings(max_examples=200, deadline=None)
def test_any_texts_come_back(nodes: list[tuple[str, list[str]]], spelling: Any) -> None:
    parents = SPELLINGS[spelling].parents
    document = {
        "concepts": {"c": {"name": "thing", parents: [], "aliases": nodes[0][1]}},
        "entities": {
            str(at): {
                "name": name, "aliases": aliases, "instanceOf": ["c"], "attributes": [],
                "relations": [],
            }
            for at, (name, aliases) in enumerate(nodes)
        },
    }  # fmt: skip
    kb = from_kqapro(document)
    for at, (name, aliases) in enumerate(nodes):
        kept = [text for text in dict.fromkeys(map(normalise_name, aliases)) if text]
        assert kb.aliases_of(at) == tuple(text for text in kept if text != normalise_name(name))
        assert all(at in kb.known_as(text) for text in kb.aliases_of(at))
    again = from_kqapro(json.loads(json.dumps(document_of(kb, spelling))))
    assert called(again) == called(kb)
    assert again.fingerprint == kb.fingerprint


@pytest.mark.parametrize("aliases", ["UK", [1], {"en": "UK"}, [["UK"]], 5])
def test_aliases_of_another_type_are_refused_with_the_place(aliases: Any) -> None:
    node = {"name": "A", "instanceOf": [], "aliases": aliases, "attributes": [], "relations": []}
    with pytest.raises(ReadError, match="a/aliases: expected a list of texts"):
        from_kqapro({"concepts": {}, "entities": {"a": node}})
    problems = Problems(keep_going=True)
    kb = from_kqapro({"concepts": {}, "entities": {"a": node}}, problems)
    assert (kb.entity_count, kb.alias_count) == (1, 0)
    assert [problem.code for problem in problems.found] == ["wrong-type"]


def test_no_aliases_may_be_written_as_null() -> None:
    node = {"name": "A", "instanceOf": [], "aliases": None, "attributes": [], "relations": []}
    assert from_kqapro({"concepts": {}, "entities": {"a": node}}).alias_count == 0


def test_rdf_of_others_has_alternative_labels_of_languages(tmp_path: Path) -> None:
    (tmp_path / "kb.ttl").write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        '<a> <pred:name> "A" ; skos:altLabel "B"@en , "A", "B" .\n'
        '<nameless> skos:altLabel "C" .\n'
    )
    problems = Problems()
    kb = read(tmp_path / "kb.ttl", problems)
    assert called(kb) == {"a": ("B",)}
    assert [problem.place for problem in problems.found] == ["nameless"]


def test_the_form_of_wikidata_has_alternative_labels(kb: KnowledgeBase) -> None:
    lines = "".join(wikidata_ntriples(kb, language="de")).splitlines()
    found = [line for line in lines if "altLabel" in line]
    assert len(found) == kb.alias_count
    assert any(line.endswith('core#altLabel> "UK"@de .') for line in found)


# --- imports -------------------------------------------------------------------------------------


def dump(path: Path, *things: dict[str, Any]) -> Path:
    path.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in things) + "\n")
    return path


def named(id: str, labels: dict[str, str], aliases: Any, *facts: dict[str, Any]) -> dict[str, Any]:
    written = {
        tag: [{"language": tag, "value": text} for text in texts] for tag, texts in aliases.items()
    }
    return thing(id, labels, *facts) | {"aliases": written}


def test_wikidata_gives_the_aliases_of_the_languages_and_their_other_labels(tmp_path: Path) -> None:
    path = dump(
        tmp_path / "dump.json",
        named(
            "Q1",
            {"nb": "Norge", "en": "Norway", "de": "Norwegen"},
            {"en": ["NO", "Kingdom of Norway"], "nb": ["Noreg"], "de": ["NOR"]},
            item("P31", "Q3"),
        ),
        named("Q2", {"en": "Oslo"}, {"en": ["Christiania", "Oslo"]}),
        named("Q3", {"en": "country"}, {"en": ["state"]}),
    )
    for wanted in (None, ["Q1", "Q2"]):  # the class is kept, or only named
        kb = read_wikidata(path, languages=("nb", "en"), ids=wanted)
        assert called(kb) == {
            "Q1": ("Noreg", "Norway", "NO", "Kingdom of Norway"),
            "Q2": ("Christiania",),
            "Q3": ("state",),
        }
    assert called(read_wikidata(path, languages=("de",))) == {"Q1": ("NOR",)}


@pytest.mark.parametrize("aliases", [["x"], {"en": "UK"}, {"en": [{"value": 5}]}, {"en": [["UK"]]}])
def test_odd_aliases_of_wikidata_stop_the_reading(tmp_path: Path, aliases: Any) -> None:
    odd = thing("Q1", "Norway") | {"aliases": aliases}
    path = dump(tmp_path / "dump.json", odd, thing("Q2", "Oslo"))
    with pytest.raises(ReadError, match="line 1: the aliases"):
        read_wikidata(path)
    assert read_wikidata(path, skip_malformed=True).entity_count == 1


MAPPING = """
tables:
  people:
    file: people.csv
    id: id
    name: name
    aliases: [{column: also known as, separator: "|", missing: ["-"]}, short]
    concept: person
    columns: {born: {attribute: born, type: year}}
  more:
    file: more.csv
    about: people
    id: person
    aliases: pen name
"""
PEOPLE = """id,name,also known as,short,born
1,Ada Berg,The Bear| A. Berg ,Ada,1951
2,Otto Lind,-,,1967
"""


def test_tables_have_columns_of_aliases(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(MAPPING)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "more.csv").write_text("person,pen name\n2,Lindo\n2,O. L.\n1,Ada\n")
    kb = read_tables(tmp_path / "map.yaml")
    assert called(kb) == {"1": ("The Bear", "A. Berg", "Ada"), "2": ("Lindo", "O. L.")}
    assert kb.attribute_keys == ["born"]


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ("{separator: ';'}", "write a column"),
        ("nick", "there is no column 'nick'"),
        ("{column: short, by: id}", "by"),
    ],
)
def test_wrong_columns_of_aliases(tmp_path: Path, aliases: str, message: str) -> None:
    text = MAPPING.replace(
        '[{column: also known as, separator: "|", missing: ["-"]}, short]', aliases
    )
    (tmp_path / "map.yaml").write_text(text)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "more.csv").write_text("person,pen name\n")
    with pytest.raises(ReadError, match=message):
        read_tables(tmp_path / "map.yaml")


def test_the_draft_sees_a_column_of_aliases(tmp_path: Path) -> None:
    rows = "".join(f"{n},Name {n},Nick {n}; N{n},{1950 + n}\n" for n in range(1, 9))
    (tmp_path / "people.csv").write_text("id,name,Aliases,born\n" + rows)
    draft = draft_mapping([tmp_path / "people.csv"], folder=tmp_path)
    assert 'aliases: {column: Aliases, separator: ";"}' in draft.text
    (tmp_path / "map.yaml").write_text(draft.text)
    kb = read_tables(tmp_path / "map.yaml")
    assert kb.aliases_of(kb.named("Name 3")[0]) == ("Nick 3", "N3")
    assert kb.attribute_keys == ["year of birth"]


def test_tables_of_facts_have_relations_and_label_files_of_aliases(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text(
        "Q1,class,C\nQ1,aka,Christiania\nQ1,aka,Oslo\nQ1,nick,Tigerstaden\nQ2,aka,left out\n"
    )
    (tmp_path / "labels.json").write_text(
        json.dumps(
            {"Q1": {"label": "Oslo", "other": ["Oslo by", "Christiania"]}, "C": {"label": "city"}}
        )
    )
    (tmp_path / "map.json").write_text(
        json.dumps(
            {
                "instance_of": "class",
                "aliases": ["aka", "nick"],
                "entity_labels": {"file": "labels.json", "aliases": "other"},
                "unlabelled": "drop",
            }
        )
    )
    kb = read_fact_tables(tmp_path / "facts.csv", mapping=read_fact_map(tmp_path / "map.json"))
    assert called(kb) == {"Q1": ("Oslo by", "Christiania", "Tigerstaden")}
    assert kb.relations == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"aliases": 5}, "aliases: expected a text or a list of texts"),
        ({"aliases": ["aka"], "attributes": {"aka": "string"}}, "is said to be something else"),
        ({"aliases": "P31", "instance_of": "P31"}, "is said to be something else"),
    ],
)
def test_a_wrong_mapping_of_facts(tmp_path: Path, fields: Any, message: str) -> None:
    (tmp_path / "map.json").write_text(json.dumps(fields))
    with pytest.raises(ReadError, match=message):
        read_fact_map(tmp_path / "map.json")


# --- the command line ----------------------------------------------------------------------------


@pytest.fixture
def file(kb: KnowledgeBase, tmp_path: Path) -> str:
    write_kqapro(kb, tmp_path / "kb.json")
    return str(tmp_path / "kb.json")


def test_info_counts_aliases(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "info", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sizes"]["aliases"] == 12


@pytest.mark.parametrize("node", ["gb", "United Kingdom", "UK"])
def test_show_prints_aliases_and_takes_them(
    node: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "show", file, node]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "United Kingdom (entity gb: country)",
        "  also called: UK, Great Britain",
    ]


def test_show_takes_a_name_before_an_alias(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "show", file, "Congo"]) == 0
    assert capsys.readouterr().out == "Congo (entity cg: country)\n"


def test_search_finds_by_alias(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "search", file, "Great Britian", "-n", "1"]) == 0
    assert "entity\tUnited Kingdom\tgb (country), also Great Britain" in capsys.readouterr().out
    assert main(["kb", "search", file, "Congo", "-n", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "entity\tCongo\tcg (country)",
        "entity\tDR Congo\tcd (country), also Congo",
        "entity\tCongo Republic\tcb (country), also Congo",
    ]
