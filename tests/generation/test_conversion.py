"""Converting question sets: forms by the file's name, folders that appear whole, data cards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generation import conversion
from generation.conversion import convert, form_named, is_folder, write_folder
from generation.formats import open_examples, open_parts
from kopl.example import Example, write_examples
from kopl.text import read
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_base.stream import writing
from kopl_cli import main

PROGRAM = read('QueryName(Relate(Find("A"), "r", "forward"))')


def example(name: str) -> Example:
    return Example(f"{name}?", PROGRAM, "A", tuple("ABCDEFGHIJ"), sparql="ASK { ?e a ?c . }")


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder with three parts."""
    folder = tmp_path / "parts"
    for name in ("train", "valid", "test"):
        write_examples(folder / f"{name}.jsonl", [example(f"{name} {n}") for n in range(3)])
    return folder


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.jsonl", "jsonl"),
        ("a.jsonl.gz", "jsonl"),
        ("dir.x/val.json", "kqapro"),
        ("a.json.xz", "kqapro"),
        ("a.csv.bz2", "csv"),
        ("a.parquet", "parquet"),
        ("a", None),
        ("a.gz", None),
        ("jsonl", None),
    ],
)
def test_forms_by_name(name: str, form: str | None) -> None:
    assert form_named(name) == form
    assert is_folder(name, "parquet") == (form != "parquet")
    assert not is_folder(name, "csv")


def test_every_file(parts: Path, tmp_path: Path) -> None:
    """Each form is written by its name, and read again."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    given = list(open_examples(parts / "train.jsonl"))
    for name in ("a.json", "a.csv.gz", "a.parquet", "a.jsonl.xz"):
        assert convert(parts / "train.jsonl", tmp_path / name) == 3
        assert list(open_examples(tmp_path / name)) == given
    with pytest.raises(KoplError, match=r"back: the name does not say a form; give one of jsonl,"):
        convert(tmp_path / "a.csv.gz", tmp_path / "back")
    assert convert(tmp_path / "a.csv.gz", tmp_path / "lines.json", "jsonl") == 3
    assert list(open_examples(tmp_path / "lines.json")) == given
    with pytest.raises(KoplError, match="there is no form 'arrow'"):
        convert(tmp_path / "a.csv.gz", tmp_path / "back", "arrow")


def test_a_folder_with_a_single_part_may_become_a_file(parts: Path, tmp_path: Path) -> None:
    """As kopl generate writes one in Parquet."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    given = list(open_examples(parts / "train.jsonl"))
    assert convert(parts / "train.jsonl", tmp_path / "set", "parquet") == 3
    assert convert(tmp_path / "set", tmp_path / "back.jsonl") == 3
    assert list(open_examples(tmp_path / "back.jsonl")) == given
    assert convert(tmp_path / "set", tmp_path / "other", "csv") == 3
    assert (tmp_path / "other" / "train.csv").is_file()


def test_a_pipe_is_a_part(parts: Path, tmp_path: Path) -> None:
    """What has no name of a part is train."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = (parts / "test.jsonl").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(text,))
    writer.start()
    assert convert(pipe, tmp_path / "out", "parquet") == 3
    writer.join()
    assert (tmp_path / "out" / "data" / "train-00000-of-00001.parquet").is_file()


def test_refusals(parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(parts / "train.jsonl")
    for arguments, message in (
        ([str(parts), one, "--to", "csv"], "train.jsonl: is jsonl by its name, not csv"),
        ([one, str(tmp_path / "a.parquet"), "--to", "jsonl"], "is parquet by its name, not jsonl"),
        ([str(parts), one, "--to", "jsonl"], "is a file by its name; several parts need a folder"),
        ([str(parts), str(tmp_path / "new.csv")], "is a file by its name"),
        ([one, str(parts), "--to", "csv"], "is a folder"),
        ([str(parts), str(parts), "--to", "csv"], "other parts of a question set (train.jsonl"),
        ([one, str(tmp_path / "new")], "the name does not say a form"),
    ):
        assert main(["data", "convert", *arguments]) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["data", "convert", str(parts), str(tmp_path / "file"), "--to", "csv"]) == 2
    assert "file: is a file" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"parts", "file"}


def test_what_cannot_be_read_leaves_nothing(parts: Path, tmp_path: Path) -> None:
    """A folder of which the last part is broken does not appear, and an older one stays."""
    out = tmp_path / "out"
    assert convert(parts, out, "csv") == 9
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with (parts / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    for target in (out, tmp_path / "new"):
        with pytest.raises(ReadError, match=r"test\.jsonl: line 4: not an example"):
            convert(parts, target, "csv")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"parts", "out"}


def test_a_full_disk_leaves_nothing(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def full(path: Path, **given: Any) -> Any:
        written.append(path)
        if len(written) == 2:
            raise WriteError(f"{path}: cannot be written: No space left on device")
        return writing(path, **given)

    monkeypatch.setattr(conversion, "writing", full)
    with pytest.raises(WriteError, match="No space left"):
        convert(parts, tmp_path / "out", "kqapro")
    assert {path.name for path in tmp_path.iterdir()} == {"parts"}


def test_a_killed_conversion_leaves_no_folder(parts: Path, tmp_path: Path) -> None:
    """What a process that is killed in between leaves is not taken for a set."""
    script = (
        "import os, signal, sys\n"
        "from generation import conversion\n"
        "def killed(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        "write, calls = conversion.write_csv, []\n"
        "def last(*given):\n"
        "    calls.append(given)\n"
        "    return killed() if len(calls) == 3 else write(*given)\n"
        "conversion.write_csv = last\n"
        "conversion.convert(sys.argv[1], sys.argv[2], 'csv')\n"
    )
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", script, str(parts), str(out)])
    assert done.returncode != 0
    assert not out.exists()
    assert convert(parts, out, "csv") == 9
    assert list(open_examples(out)) == list(open_examples(parts))


def test_files_of_others_stay(parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine", "utf-8")
    convert(parts, out, "jsonl")
    assert sorted(path.name for path in out.iterdir()) == [
        "notes.txt", "test.jsonl", "train.jsonl", "valid.jsonl",
    ]  # fmt: skip
    # What a link leads to is written.
    link = tmp_path / "link"
    link.symlink_to(out)
    assert write_folder(link, open_parts(parts), "jsonl") == 9
    assert link.is_symlink() and (out / "notes.txt").exists()


def test_a_folder_is_read_part_by_part(tmp_path: Path) -> None:
    """Nothing is held: the second part is not begun before the first is written."""
    begun: list[str] = []

    def slowly(name: str) -> Iterator[Example]:
        begun.append(name)
        yield example(name)

    class Seen(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            assert begun == [*self][: [*self].index(key)]
            return super().__getitem__(key)

    parts = Seen({name: slowly(name) for name in ("train", "valid")})
    assert write_folder(tmp_path / "out", parts, "jsonl") == 2


# --- the data card -----------------------------------------------------------------------------


@pytest.fixture
def card(parts: Path, tmp_path: Path) -> str:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    arguments = ["data", "convert", str(parts), str(tmp_path / "out"), "--to", "parquet"]
    assert main([*arguments, "--license", "cc-by-4.0"]) == 0
    return (tmp_path / "out" / "README.md").read_text("utf-8")


def test_card(card: str, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="the header is YAML")
    _, header, text = card.split("---\n", 2)
    found = yaml.safe_load(header)
    assert found["license"] == "cc-by-4.0"
    assert found["size_categories"] == ["n<1K"]
    info = found["dataset_info"]
    assert [split["num_examples"] for split in info["splits"]] == [3, 3, 3]
    assert info["dataset_size"] == sum(split["num_bytes"] for split in info["splits"]) > 0
    files = list((tmp_path / "out" / "data").iterdir())
    assert info["download_size"] == sum(path.stat().st_size for path in files)
    from pyarrow import parquet

    assert [field["name"] for field in info["features"]] == parquet.read_schema(files[0]).names
    assert "| | train | validation | test | KQA Pro |" in text
    assert "| mean calls | 3.00 | 3.00 | 3.00 | 4.79 |" in text
    assert "Top answers of train: A 100.0%." in text


def test_card_without_licence(parts: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    convert(parts, tmp_path / "out", "parquet")
    assert "license" not in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_texts_do_not_break_the_card(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    odd = Example("| *Odd*\n?", PROGRAM, "a|b\n<img src=x> `c`")
    write_folder(tmp_path / "out", {"train": [odd]}, "parquet", licence='a: "b"\nc')
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert r"Top answers of train: a\|b \<img src=x\> \`c\` 100.0%." in text
    assert 'license: "a: \\"b\\"\\nc"\n' in text


def test_datasets_loads_the_folder(card: str, tmp_path: Path) -> None:
    """The package checks columns and sizes of the header while it loads."""
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    script = (
        "import sys, datasets; found = datasets.load_dataset(sys.argv[1])\n"
        "print({name: rows.num_rows for name, rows in found.items()})\n"
        "print(found['validation'][1]['question'], found['test'][0]['program'][0]['inputs'])\n"
        "print(datasets.load_dataset_builder(sys.argv[1]).info.splits['test'].num_examples)\n"
    )
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", script, str(tmp_path / "out")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"PATH": os.environ.get("PATH", ""), **environment},
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "{'train': 3, 'validation': 3, 'test': 3}", "valid 1? ['A']", "3",
    ]  # fmt: skip
    # The sizes are not for show.
    readme = tmp_path / "out" / "README.md"
    readme.write_text(card.replace("num_examples: 3", "num_examples: 4"), "utf-8")
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path,
        env={"PATH": os.environ.get("PATH", ""), **environment},
    )  # fmt: skip
    assert done.returncode != 0 and "num_examples=4" in done.stderr


def test_numbers_in_other_forms(parts: Path, tmp_path: Path) -> None:
    """A set goes through every form and back without a change."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    at = parts
    for number, form in enumerate(("parquet", "csv", "parquet", "jsonl")):
        convert(at, tmp_path / f"{number}", form)
        at = tmp_path / f"{number}"
    for name in ("train", "valid", "test"):
        lines = (at / f"{name}.jsonl").read_text("utf-8")
        assert lines == (parts / f"{name}.jsonl").read_text("utf-8")
        assert all(json.loads(line)["answer"] == "A" for line in lines.splitlines())
