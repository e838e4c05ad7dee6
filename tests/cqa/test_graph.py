"""The store of triples: views, reading, saving, knowledge bases; and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import cqa.graphs.from_kb
import cqa.graphs.links
from cqa.errors import QueryError
from cqa.graphs.files import load, save
from cqa.graphs.from_kb import INSTANCE_OF, graph_from_kb
from cqa.graphs.graph import SPLITS, Graph, from_triples
from cqa.graphs.names import Names
from cqa.graphs.readers import by_time, read_graph
from kb import Builder, Date, KoplError, ReadError, Year
from kb.store import KnowledgeBase

ROOT = Path(__file__).parents[2]


def rows(*triples: tuple[int, int, int]) -> Any:
    """Triples as an array."""
    return np.array(triples, np.int32).reshape(-1, 3)


@pytest.fixture
def graph() -> Graph:
    """Three splits; (0, 0, 1) stands in two of them, (2, 1, 2) is a loop."""
    return from_triples(
        [rows((0, 0, 1), (0, 0, 2), (2, 1, 2)), rows((1, 0, 2), (0, 0, 1)), rows((3, 1, 0))],
        entities=Names.of(["a", "b", "c", "d"]),
        relations=Names.of(["likes", "knows"]),
    )


def triples(graph: Graph, split: str | None = None) -> list[tuple[int, ...]]:
    """The triples with relations without direction."""
    return [(h, r // 2, t) for h, r, t in graph.triples(split).tolist()]


# --- views ------------------------------------------------------------------------------------


def test_rows_of_both_directions(graph: Graph) -> None:
    links = graph.full()
    assert links.row(0, 0).tolist() == [1, 2]
    assert links.row(1, 2).tolist() == [0, 1]
    assert links.row(2, 2).tolist() == links.row(3, 2).tolist() == [2]
    assert links.row(0, 3).tolist() == []
    assert links.heads_of(2).tolist() == [2, 3]
    assert (len(links), links.relation_count, links.entity_count) == (5, 4, 4)


def test_splits(graph: Graph) -> None:
    assert graph.counts == {"train": 3, "valid": 1, "test": 1}
    assert triples(graph, "valid") == [(1, 0, 2)]
    assert len(graph.observed("train")) == len(graph.full("train")) == 3
    assert len(graph.observed("valid")) == 3 and len(graph.full("valid")) == 4
    assert len(graph.observed("test")) == 4 and len(graph.full("test")) == 5
    assert len(graph.missing("test")) == len(graph.missing("valid")) == 1
    assert len(graph.missing("train")) == 0
    assert graph.observed("test").row(3, 0).tolist() == []
    assert graph.observed() is graph.view("valid", "train")


def test_prices(graph: Graph) -> None:
    links = graph.priced("test")
    assert links.weights is not None
    assert links.weights[slice(*links.place(2, 3))].tolist() == [1]
    assert links.weights[slice(*links.place(0, 0))].tolist() == [0, 0]
    with pytest.raises(ValueError, match="3 weights for 10 links"):
        links.weighted(np.zeros(3))


def test_names(graph: Graph) -> None:
    assert [graph.entity_name(n) for n in range(4)] == ["a", "b", "c", "d"]
    assert graph.relation("knows") == 1 and graph.entity("d") == 3
    assert "4 entities, 2 relations, triples: 3 train, 1 valid, 1 test" in repr(graph)
    with pytest.raises(QueryError, match="no relation 'know'; did you mean 'knows'"):
        graph.relation("know")
    with pytest.raises(QueryError, match="no split 'dev'; it has train, valid, test"):
        graph.view("dev")
    plain = from_triples([rows((0, 0, 1))], ("train",))
    assert (plain.entity("1"), plain.entity_name(1), plain.relation_name(0)) == (1, "1", "0")
    with pytest.raises(QueryError, match="it has no names, only numbers below 2"):
        plain.entity("2")


@pytest.mark.parametrize("room", [0, 1 << 20])
def test_looking_up(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Rows, spans and links by every way of looking them up."""
    monkeypatch.setattr(cqa.graphs.links, "CACHE_BYTES", room)
    random = Random(4)
    given = {(random.randrange(60), random.randrange(3), random.randrange(60)) for _ in range(400)}
    links = from_triples([rows(*sorted(given))], ("train",), entity_count=64).full("train")
    for relation in range(6):
        ends = [(t, h) if relation % 2 else (h, t) for h, r, t in given if r == relation // 2]
        assert links.size(relation) == len(ends)
        assert sorted(zip(*map(np.ndarray.tolist, links.pairs(relation)), strict=True)) == sorted(
            ends
        )
        for head in range(64):
            assert links.row(relation, head).tolist() == sorted(t for h, t in ends if h == head)
        some = np.array(sorted(random.sample(range(64), 20)), np.int32)
        reached = sorted({t for h, t in ends if h in some.tolist()})
        assert links.reached(relation, some).tolist() == reached
        _, counts = links.spans(relation, some)
        assert counts.tolist() == [sum(h == head for h, _ in ends) for head in some.tolist()]
        heads, tails = np.divmod(np.arange(64 * 64), 64)
        pairs = zip(heads.tolist(), tails.tolist(), strict=True)
        at = links.find(relation, heads, tails)
        assert (at >= 0).tolist() == [pair in ends for pair in pairs]
        assert links.tails[at[at >= 0]].tolist() == tails[at >= 0].tolist()
    # The same for many relations at once.
    relations, heads = np.divmod(np.arange(6 * 64), 64)
    begins, counts = links.spans(relations, heads)
    for relation, head, begin, count in zip(relations, heads, begins, counts, strict=True):
        row = links.row(int(relation), int(head)).tolist()
        assert links.tails[begin : begin + count].tolist() == row
    relations, ends = np.divmod(np.arange(6 * 64 * 64), 64 * 64)
    heads, tails = np.divmod(ends, 64)
    at = links.find(relations, heads, tails)
    for relation in range(6):
        own = relations == relation
        assert at[own].tolist() == links.find(relation, heads[own], tails[own]).tolist()
    assert (links.has_links(relations * 64 + heads, tails) == (at >= 0)).all()
    if (rows_of_tails := links.rows_of_tails) is not None:
        assert links.heads[rows_of_tails].tolist() == links.tails.tolist()
    assert (rows_of_tails is None) == (room == 0)


def test_numbers_out_of_range() -> None:
    with pytest.raises(KoplError, match="valid: there is no entity 7; the numbers end below 3"):
        from_triples([rows((0, 0, 1)), rows((0, 0, 7))], ("train", "valid"), entity_count=3)
    with pytest.raises(KoplError, match="train: there is no relation -1"):
        from_triples([rows((0, -1, 1))], ("train",), relation_count=1)
    with pytest.raises(KoplError, match="more than the store can number"):
        from_triples([rows()], ("train",), entity_count=1 << 31, relation_count=1 << 31)
    with pytest.raises(KoplError, match="1 lists of triples for 3 splits"):
        from_triples([rows()])


# --- published graphs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "entities", "relations", "counts"),
    [
        ("fb15k237", 14_505, 237, (272_115, 17_526, 20_438)),
        ("nell995", 63_361, 200, (114_213, 14_324, 14_267)),
        ("icews18", 20_840, 250, (213_304, 25_048, 24_689)),
    ],
)
def test_published_sizes(
    kopl_data: Path, name: str, entities: int, relations: int, counts: tuple[int, ...]
) -> None:
    graph = read_graph(kopl_data / name)
    assert (graph.entity_count, graph.relation_count) == (entities, relations)
    assert tuple(graph.counts.values()) == counts


# What getrusage tells of a new process counts the one that started it, too.
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc/self/status")
@pytest.mark.parametrize("name", ["nell995", "icews18"])
def test_memory(kopl_data: Path, name: str) -> None:
    """Reading and all views stay below 300 MB, the interpreter and NumPy included."""
    script = (
        "import re, sys; from cqa.graphs.readers import read_graph\n"
        "g = read_graph(sys.argv[1]); g.observed(); g.missing(); g.priced()\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(kopl_data / name)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(run.stdout) * 1024 < 300 << 20


# --- reading ----------------------------------------------------------------------------------


def write(folder: Path, files: dict[str, str]) -> Path:
    """A folder of text files."""
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


BETAE = {
    "train.txt": "0\t0\t1\n1\t1\t0\n",
    "valid.txt": "1\t0\t0\n\n0\t1\t1\n",
    "test.txt": "1 2 1\r\n1 3 1\r\n",
}
NAMES = {"id2ent.json": '{"0": "a", "1": "b"}',
         "id2rel.json": '{"0": "r", "1": "r_reverse", "2": "s", "3": "s_reverse"}'}  # fmt: skip
OPENKE = {
    "train2id.txt": "1\n0 1 0\n", "valid2id.txt": "1\n1 0 0\n", "test2id.txt": "1\n1 1 1\n",
    "entity2id.txt": "2\na\t0\nb b\t1\n", "relation2id.txt": "2\nr\t0\ns\t1\n",
}  # fmt: skip
TSV = {"train.txt": "a\tr\tb\n", "dev.tsv": "b\tr\ta\n", "test.txt": "b\ts\tb\n"}
EXPECTED = [(0, 0, 1), (1, 0, 0), (1, 1, 1)]


@pytest.mark.parametrize(
    "files", [BETAE, BETAE | NAMES, OPENKE, TSV], ids=["betae", "names", "openke", "tsv"]
)
def test_reading(tmp_path: Path, files: dict[str, str]) -> None:
    graph = read_graph(write(tmp_path, files))
    assert triples(graph) == EXPECTED
    assert list(graph.counts.values()) == [1, 1, 1]
    if files is not BETAE:
        assert graph.relations is not None and list(graph.relations) == ["r", "s"]


def test_one_file_of_names(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tlikes\tb\na\tlikes\tb\n", "utf-8")
    graph = read_graph(path)
    assert graph.splits == ("train",) and graph.counts == {"train": 1}


def test_numpy(tmp_path: Path) -> None:
    parts = dict(zip(SPLITS, [rows((0, 0, 1)), rows((1, 0, 0)), rows((1, 1, 1))], strict=True))
    names = {"entities": np.array(["a", "b"]), "relations": np.array(["r", "s"])}
    np.savez(tmp_path / "graph.npz", **parts, **names)  # type: ignore[arg-type]
    graph = read_graph(tmp_path / "graph.npz")
    assert triples(graph) == EXPECTED and graph.entity("b") == 1
    np.save(tmp_path / "one.npy", parts["train"])
    assert triples(read_graph(tmp_path / "one.npy")) == [(0, 0, 1)]


def test_splitting_by_time(tmp_path: Path) -> None:
    """Ten facts on days 0 to 9, out of order; then one of a new entity, and a repetition."""
    facts = [(n % 3, 0, (n * 2) % 5, n) for n in range(10)]
    late = [(9, 0, 0, 11), (0, 0, 0, 12)]
    text = "".join(f"{h}\t{r}\t{t}\t{time}\t0\n" for h, r, t, time in [*late, *facts[::-1]])
    half = len(text.splitlines(keepends=True)) // 2
    lines = text.splitlines(keepends=True)
    files = {"train.txt": "".join(lines[:half]), "valid.txt": "".join(lines[half:])}
    names = "".join(f"n{n}\t{n}\n" for n in range(10))
    write(tmp_path, {**files, "entity2id.txt": names, "relation2id.txt": "r\t0\n"})
    graph = read_graph(tmp_path)
    assert graph.counts == {"train": 8, "valid": 1, "test": 1}
    assert triples(graph, "valid") == [(2, 0, 1)]
    assert graph.entities is not None and list(graph.entities) == ["n0", "n1", "n2", "n3", "n4"]
    assert triples(by_time(np.array([*facts, *late]))) == triples(graph)


def changed(files: dict[str, str], **changes: str | None) -> dict[str, str]:
    """The files with some changed (None: left out); `_` in a keyword stands for the dot."""
    new = {name.replace("_", "."): text for name, text in changes.items()}
    return {n: t for n, t in {**files, **new}.items() if t is not None}


MALFORMED: list[tuple[dict[str, str], str | None, str]] = [
    (changed(BETAE, train_txt="0\t0\t1\n1\t1\n"), None,
     "train.txt: line 2: 3 numbers were expected, separated by tabs or blanks, not '1\\t1'"),
    (changed(BETAE, valid_txt="0 0 1\n\n1 x 0\n"), None, "valid.txt: line 3: 3 numbers"),
    (changed(BETAE, train_txt="0 0 1 5 6\n"), "betae", "train.txt: line 1: 3 numbers"),
    (changed(BETAE, train_txt="0\t-1\t1\n1\t1\t0\n"), None,
     "train.txt: line 1: 3 numbers were expected, separated by tabs or blanks, not '0\\t-1\\t1';"
     " they are whole, from 0 on"),
    (changed(BETAE, train_txt="\n0\t0\t1.5\n"), None, "train.txt: line 2: 3 numbers were expected"),
    (changed(BETAE, train_txt="1e3\t0\t1\n"), None, "train.txt: line 1: 3 numbers were expected"),
    (changed(BETAE, train_txt="0\t0\t1\n1\t1\t0\n0\tx\t1\n"), None, "train.txt: line 3: 3 numb"),
    (changed(BETAE, train_txt="0 0 1\n1 1 0\n0 0 2147483646\n2147483646 1 0\n"), None,
     "train.txt: line 4: the entity 2147483646 is far beyond"),
    (changed(BETAE, valid_txt="0 2147483646 1\n1 2147483647 0\n"), None,
     "valid.txt: line 2: a number is larger than 2147483646"),
    (changed(BETAE, valid_txt="0 2147483644 1\n1 2147483645 0\n"), None,
     "valid.txt: line 1: the relation 2147483644 is far beyond"),
    ({"train2id.txt": "1\n0 2000000000 0\n"}, None,
     "train2id.txt: line 2: the entity 2000000000 is far beyond"),
    ({"train.txt": "0 0 1 -5\n"}, None, "train.txt: line 1: 4 numbers were expected"),
    (changed(BETAE, train_txt="-1 0 1\n"), "betae", "train.txt: line 1: 3 numbers"),
    (changed(BETAE, test_txt="0 0 1\n1 1 0\n\n9999999999 0 1\n"), None,
     "test.txt: line 4: a number is larger than 2147483646"),
    (changed(BETAE, train_txt="0 0 1\n1 1 0\n0 2 1\n"), None,
     "train.txt: line 3: the triple 0 2 1 lacks its inverse 1 3 0"),
    (changed(BETAE | NAMES, test_txt="0 0 1\n1 1 0\n1 0 2\n"), None,
     "test.txt: line 3: there is no entity 2; the list of names ends at 1"),
    (changed(BETAE | NAMES, test_txt="0 4 1\n1 5 0\n"), None,
     "test.txt: line 1: there is no relation 4; the list of names ends at 3"),
    (changed(BETAE | NAMES, id2ent_json='{"0": "a", "2": "b"}'), None,
     "id2ent.json: the number 1 has no name"),
    (changed(BETAE | NAMES, id2ent_json='{"0": "a", "1": "a"}'), None,
     "id2ent.json: the entity 'a' stands for both 0 and 1"),
    (changed(BETAE | NAMES, id2ent_json='{"a": "0"}'), None, "'a': a number as key and a name"),
    (changed(BETAE | NAMES, id2ent_json='{"%s": "a"}' % ("9" * 5000)), None, "a number as key"),
    (changed(OPENKE, entity2id_txt="9" * 5000 + "\n"), None, "line 1: the number of names was"),
    (changed(OPENKE, entity2id_txt="1\na\t" + "9" * 5000), None, "line 2: a name, a tab and"),
    (changed(BETAE | NAMES, id2ent_json="["), None, "id2ent.json: not JSON"),
    (changed(BETAE, train_txt="", valid_txt="", test_txt=""), "betae", "holds no triples"),
    (changed(BETAE, train_txt=None), "betae", "valid.txt: is here, but train is not"),
    ({}, None, "holds no graph: there is no train.txt or train.tsv"),
    (changed(OPENKE, train2id_txt="2\n0 1 0\n"), None,
     "train2id.txt: line 1: the number of triples (1) was expected, not '2'; is the file cut"),
    (changed(OPENKE, test2id_txt="1\n1 1 2\n"), None,
     "test2id.txt: line 2: there is no relation 2"),
    (changed(OPENKE, entity2id_txt="3\na\t0\nb\t1\n"), None, "has 2 names, not 3"),
    (changed(OPENKE, entity2id_txt="2\na\t0\nb\t0\n"), None, "line 3: the number 0 has a name"),
    (changed(OPENKE, entity2id_txt="a\t0\nb\t1\n"), None, "line 1: the number of names was"),
    (changed(TSV, train_txt="a\tr\tb\na\tr\n"), None,
     "train.txt: line 2: three names were expected, separated by tabs (head, relation, tail)"),
    (changed(TSV, train_txt="a\t\tb\n"), None, "train.txt: line 1: three names were expected"),
    ({"train.txt": "0 0 1 2\n0 0 1\n"}, None, "train.txt: line 2: 4 numbers were expected"),
    ({"graph.json": '{"version": 9}'}, None, "not the header of a graph of this version"),
    ({"graph.json": "{"}, None, "graph.json: not JSON"),
    ({"graph.json": '{"version": 1}'}, None, "a part of the header is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "format", "message"), MALFORMED)
def test_malformed(tmp_path: Path, files: dict[str, str], format: str | None, message: str) -> None:
    with pytest.raises(KoplError) as caught:
        read_graph(write(tmp_path, files), format)
    assert message in str(caught.value)


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file or folder"):
        read_graph(tmp_path / "nothing")
    with pytest.raises(KoplError, match="no graph format 'xml'; give one of saved, betae"):
        read_graph(tmp_path, "xml")
    (tmp_path / "bad.npz").write_bytes(b"PK but not really")
    with pytest.raises(ReadError, match="cannot be read as a NumPy file"):
        read_graph(tmp_path / "bad.npz")
    np.savez(tmp_path / "flat.npz", train=np.zeros(3))
    with pytest.raises(ReadError, match=r"must hold integers in the shape \(n, 3\), not float64"):
        read_graph(tmp_path / "flat.npz")
    np.savez(tmp_path / "less.npz", test=rows((0, 0, 0)))
    with pytest.raises(ReadError, match="has no array train, only test"):
        read_graph(tmp_path / "less.npz")


# --- saving -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mapped", [True, False])
def test_saving(tmp_path: Path, graph: Graph, mapped: bool) -> None:
    save(graph, tmp_path / "g")
    again = load(tmp_path / "g", mapped=mapped)
    assert repr(again) == repr(graph) and triples(again) == triples(graph)
    assert again.entities is not None and list(again.entities) == ["a", "b", "c", "d"]
    assert triples(read_graph(tmp_path / "g"), "test") == triples(graph, "test")
    assert isinstance(again.links.tails.base, np.memmap) == mapped


def test_saving_a_graph_without_triples(tmp_path: Path) -> None:
    save(from_triples([rows()], ("train",)), tmp_path)
    assert load(tmp_path).counts == {"train": 0}


def file_of(folder: Path, name: str) -> Path:
    """The file of an array."""
    header = json.loads((folder / "graph.json").read_text())
    return folder / str(header["arrays"][name]["file"])


def damage_length(folder: Path) -> None:
    """One number less in an array."""
    np.save(file_of(folder, "tails"), np.load(file_of(folder, "tails"))[:-1])


def damage_fit(folder: Path) -> None:
    """The same, with a header that knows."""
    damage_length(folder)
    header = json.loads((folder / "graph.json").read_text())
    header["arrays"]["tails"]["length"] -= 1
    (folder / "graph.json").write_text(json.dumps(header))


def damage_header(before: bytes, after: bytes) -> Callable[[Path], None]:
    """Other bytes in the header of an array's file, of the same length."""

    def damage(folder: Path) -> None:
        path = file_of(folder, "rows")
        data = path.read_bytes()
        assert before in data and len(before) == len(after)
        path.write_bytes(data.replace(before, after, 1))

    return damage


def damage_type(folder: Path) -> None:
    """Numbers of another kind."""
    np.save(file_of(folder, "heads"), np.load(file_of(folder, "heads")).astype(float))


def damage_content(folder: Path) -> None:
    """Another number in the same place."""
    tails = np.load(file_of(folder, "tails"))
    tails[0] = 3
    np.save(file_of(folder, "tails"), tails)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: file_of(folder, "rows").unlink(), ".npy: cannot be read"),
        (lambda folder: file_of(folder, "rows").write_bytes(b"x"), ".npy: cannot be read"),
        (damage_header(b"(5,), }", b"((5,), "), ".npy: cannot be read"),
        (damage_header(b"(5,), }", b"(0,), }"), ".npy: "),
        (damage_header(b"(5,), }", b"(-5,),}"), ".npy: "),
        (damage_length, ".npy: has 9 numbers, the header says 10; it is damaged"),
        (damage_fit, "the arrays do not fit together"),
        (damage_type, "the array heads is of another type"),
        (damage_content, ".npy: its content is damaged"),
    ],
)
def test_damaged_folders(
    tmp_path: Path, graph: Graph, damage: Callable[[Path], None], message: str
) -> None:
    save(graph, tmp_path)
    damage(tmp_path)
    with pytest.raises(ReadError) as caught:
        load(tmp_path, verify=damage is damage_content)
    assert message in str(caught.value)


def test_saving_again(tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second graph takes the first one's place when it is complete, and leaves nothing of it."""
    save(graph, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    other = from_triples([rows((0, 0, 1))], ("train",))
    with monkeypatch.context() as broken:
        broken.setattr("cqa.graphs.files.json.dumps", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            save(other, tmp_path)
    assert repr(load(tmp_path, verify=True)) == repr(graph)
    save(other, tmp_path)
    assert repr(load(tmp_path, verify=True)) == repr(other)
    assert len(list(tmp_path.iterdir())) == 5 + 2


# --- knowledge bases --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain() -> KnowledgeBase:
    """A hundred entities, each linked to the next two and, dated, to the one five further."""
    builder = Builder()
    builder.add_concept("thing", "thing")
    builder.add_concept("even", "even", ["thing"])
    for number in range(100):
        builder.add_entity(f"e{number}", f"E{number}", ["even" if number % 2 == 0 else "thing"])
    for number in range(100):
        for step in (1, 2):
            builder.add_fact(f"e{number}", f"step {step}", f"e{(number + step) % 100}")
        when = Year(1900 + number) if number % 2 else Date(1900 + number, 5, 1)
        five = f"e{(number + 5) % 100}"
        builder.add_fact(f"e{number}", "jump", five, {"point in time": when})
        # Repeated later: the earlier counts.
        builder.add_fact(f"e{number}", "jump", five, {"point in time": Year(2100)})
    return builder.build()


def test_random_split_of_a_knowledge_base(chain: KnowledgeBase) -> None:
    graph = graph_from_kb(chain, concepts=False)
    assert graph.counts == {"train": 240, "valid": 30, "test": 30}
    held = graph.triples("test")
    for relation in range(3):  # stratified: ten of each relation
        assert (held[:, 1] == 2 * relation).sum() == 10
    train = graph.triples("train")
    assert np.isin(graph.triples()[:, [0, 2]], train[:, [0, 2]]).all()
    again = graph_from_kb(chain, concepts=False)
    assert triples(again, "test") == triples(graph, "test")
    assert triples(graph_from_kb(chain, concepts=False, seed=1), "test") != triples(graph, "test")


def test_no_entity_is_held_out_whole(tiny: KnowledgeBase) -> None:
    graph = graph_from_kb(tiny, shares=(1, 5, 5), concepts=False)
    train = graph.triples("train")
    for split in ("valid", "test"):
        assert np.isin(graph.triples(split)[:, [0, 2]], train[:, [0, 2]]).all()
    assert sum(graph.counts.values()) == len({tuple(t) for t in graph.triples().tolist()})


def test_split_by_time(chain: KnowledgeBase) -> None:
    graph = graph_from_kb(chain, by="time", concepts=False)
    assert graph.counts == {"train": 280, "valid": 10, "test": 10}
    jump = graph.relation("jump")
    heads = [graph.entity_name(h) for h, r, _ in triples(graph, "test") if r == jump]
    assert sorted(heads) == [f"e{n}" for n in range(90, 100)]


def test_concepts_of_a_knowledge_base(chain: KnowledgeBase) -> None:
    graph = graph_from_kb(chain)
    relation = 2 * graph.relation(INSTANCE_OF)
    links = graph.view("train")
    assert links.size(relation) == 150  # the even ones are things, too
    assert len(links.row(relation + 1, graph.entity("thing"))) == 100
    assert graph.entity_name(0) == chain.id_of(0)


def test_more_links_to_concepts_than_can_be_held(
    chain: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cqa.graphs.from_kb, "MOST_INSTANCES", 149)
    with pytest.raises(KoplError, match=r"up to 150 links.*leave concepts out"):
        graph_from_kb(chain)
    assert graph_from_kb(chain, concepts=False).counts["train"] == 240


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": (8, 1)}, "the first above 0, not [8, 1]"),
        ({"shares": (0, 1, 1)}, "the first above 0, not [0, 1, 1]"),
        ({"shares": (8, -1, 1)}, "are three numbers"),
        ({"shares": (1, float("inf"), 1)}, "must be finite"),
        ({"by": "name"}, "no split by 'name'; give random or time"),
        ({"by": "time", "time": "start time"}, "has a time as qualifier 'start time'"),
    ],
)
def test_splits_that_are_refused(
    chain: KnowledgeBase, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(KoplError) as caught:
        graph_from_kb(chain, **options)
    assert message in str(caught.value)
