"""Data sets by name, and folders that the package datasets reads."""

from __future__ import annotations

import http.server
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from generation import hub
from generation.conversion import convert
from generation.formats import open_examples, open_parts
from kopl.example import Example, write_examples
from kopl.text import read
from kopl_base.errors import ReadError
from kopl_cli import main

PROGRAM = read('QueryName(Relate(Find("A"), "r", "forward"))')
NOT_THERE = "no.such.host.invalid"


def example(name: str) -> Example:
    return Example(f"{name}?", PROGRAM, "A", tuple("ABCDEFGHIJ"))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test asks the real hub, nor writes into the user's cache."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a stand-in for the package gives for any name; it notes what it was asked."""
    given: dict[str, Any] = {"asked": []}

    def load(*names: str, **options: str) -> Any:
        given["asked"].append((names, options))
        if isinstance(found := given["sets"], Exception):
            raise found
        return found

    module = ModuleType("datasets")
    module.load_dataset = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return given


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("drt/kqa_pro", True),
        ("drt/kqa_pro:test", True),
        ("owner/set.v2", True),
        ("data/set", False),  # there is such a folder
        ("no/set.jsonl", False),
        ("no/set.json.gz", False),
        ("no/set.PARQUET", False),
        ("set", False),
        ("/no/such", False),
        ("../no", False),
        ("a/b/c", False),
    ],
)
def test_names(text: str, named: bool, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert hub.is_name(text) == named
    if not named:
        with pytest.raises(ReadError, match="there is no such file or folder"):
            list(open_examples(text))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    message = (
        r"drt/kqa_pro: .* names on a hub need the package datasets.*\[datasets\].* download"
        r" the files of https://huggingface.co/datasets/drt/kqa_pro .*"
        r"put FOLDER here and give its path.*"
        r" download train.json, val.json, test.json and kb.json, put them into one folder"
    )
    with pytest.raises(ReadError, match=message):
        list(open_examples("drt/kqa_pro"))
    write_examples(tmp_path / "folder" / "mine.jsonl", [example("a")])
    with pytest.raises(
        ReadError, match=r"folder: .* files of other names need the package datasets.*\[datasets\]"
    ):
        list(open_examples("folder"))


@pytest.mark.parametrize("command", ["stats", "split", "convert", "check"])
def test_every_command_says_what_to_do(
    command: str, fake: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fake["sets"] = ConnectionError("no way\nto the hub")
    arguments = {
        "stats": ["stats", "drt/kqa_pro"],
        "split": ["split", "drt/kqa_pro", "-o", "out"],
        "convert": ["data", "convert", "drt/kqa_pro", "out.jsonl"],
        "check": ["data", "check", "drt/kqa_pro", "--kb", "world"],
    }[command]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("kopl: drt/kqa_pro: there is no such file, the hub does not answer")
    assert "put them into one folder" in error
    assert list(Path.cwd().iterdir()) == []


def test_other_failures_keep_their_reason(fake: dict[str, Any]) -> None:
    fake["sets"] = ValueError("Config name is missing. Pick one of ['train_val', 'test']\nx")
    with pytest.raises(ReadError, match=r"cannot be had: Config name is missing\. Pick .*'test'\]"):
        list(open_examples("drt/kqa_pro"))


def test_a_name_is_a_set_with_parts(
    fake: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its splits go by our names, in our order; columns of others are kept."""
    fake["sets"] = {
        "test": [example("t").to_json(published=True)],
        "validation": [example("v").to_json() | {"hops": 1, "empty": None, "odd": {1, 2}}],
        "train": [example("a").to_json(), example("b").to_json()],
    }
    assert [one.question for one in open_examples("owner/name:old")] == ["a?", "b?", "v?", "t?"]
    assert fake["asked"][0] == (("owner/name", "old"), {})
    found = {name: list(examples) for name, examples in open_parts("owner/name").items()}
    assert list(found) == ["train", "valid", "test"]
    assert found["valid"][0].extra == {"hops": 1}
    assert convert("owner/name", tmp_path / "out", "jsonl") == 4
    assert list(open_examples(tmp_path / "out")) == list(open_examples("owner/name"))
    assert main(["stats", "owner/name", "--json"]) == 0
    assert '"train": {"questions": 2' in capsys.readouterr().out
    assert main(["split", "owner/name", "-o", "split"]) == 0
    # One split is one file.
    fake["sets"] = {"train": [example("a").to_json()]}
    assert convert("owner/name", tmp_path / "one.csv") == 1


def test_rows_that_are_no_examples(fake: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    rows = {"train": [example("a").to_json(), {"question": "b"}]}
    fake["sets"] = rows
    with pytest.raises(ReadError, match=r"owner/name: train: row 1: .* no 'program'"):
        list(open_examples("owner/name"))
    rows["train"][1]["program"] = {"function": ["Find"], "inputs": [], "dependencies": [[]]}
    with pytest.raises(ReadError, match="row 1: program: its columns are not lists of equal"):
        list(open_examples("owner/name"))
    # A split of questions alone, as KQA Pro's test, is no part.
    rows["test"] = [{"question": "c", "choices": ["A"]}]
    del rows["train"][1]
    logging.getLogger("kb").propagate = True
    assert [one.question for one in open_examples("owner/name")] == ["a?"]
    assert "owner/name: test: left out" in caplog.text


def test_scripts_are_tables_on_the_hub(fake: dict[str, Any]) -> None:
    """Sets that come with a script are asked for as the tables that the hub made of them."""
    real = sys.modules["datasets"].load_dataset

    def load(*names: str, **options: str) -> Any:
        if not options:
            raise RuntimeError("Dataset scripts are no longer supported, but found x.py")
        return real(*names, **options)

    sys.modules["datasets"].load_dataset = load  # type: ignore[attr-defined]
    fake["sets"] = {"train": [example("a").to_json()]}
    assert len(list(open_examples("owner/name"))) == 1
    assert fake["asked"] == [(("owner/name",), {"revision": "refs/convert/parquet"})]


def test_no_network_is_found_out_soon(tmp_path: Path) -> None:
    """The real package gives up after half a minute; here the hub is asked once."""
    pytest.importorskip("datasets", reason="the package datasets is not installed")
    kept = {key: os.environ[key] for key in ("PATH", "KOPL_CACHE_DIR") if key in os.environ}
    for own in ({"HF_ENDPOINT": f"https://{NOT_THERE}"}, {"HF_HUB_OFFLINE": "1"}):
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "kopl", "stats", "drt/kqa_pro"], capture_output=True, text=True,
            env={**kept, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), **own},
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stderr.startswith("kopl: drt/kqa_pro: there is no such file, the hub does not")
        assert done.stderr.count("\n") == 1
        assert time.monotonic() - begin < 20


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_reached(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server)
    assert not hub.reached()  # offline is offline
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert hub.reached()  # whatever it answers
    for address in (f"https://{NOT_THERE}", "no address"):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert not hub.reached()


def test_a_hub_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(hub, "SECONDS", 0.1)
    released = threading.Event()

    def hang(*_: object, **__: object) -> None:
        released.wait(30)
        raise OSError

    monkeypatch.setattr("urllib.request.urlopen", hang)
    begin = time.monotonic()
    assert not hub.reached()
    assert time.monotonic() - begin < 5
    released.set()


def test_switches_are_set_back(fake: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SimpleNamespace(HF_HUB_OFFLINE=False)
    monkeypatch.setitem(sys.modules, "datasets.config", settings)  # type: ignore[arg-type]
    during = []

    def load(name: str) -> Any:
        during.append(settings.HF_HUB_OFFLINE)
        raise ConnectionError

    sys.modules["datasets"].load_dataset = load  # type: ignore[attr-defined]
    with pytest.raises(ReadError):
        list(open_examples("owner/name"))
    assert during == [True] and settings.HF_HUB_OFFLINE is False


# --- folders -----------------------------------------------------------------------------------


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The real package, with a cache of its own."""
    module = pytest.importorskip("datasets", reason="the package datasets is not installed")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
    return module


def test_saved_folders(datasets: Any, tmp_path: Path) -> None:
    rows = [example("a").to_json() | {"level": 3}, example("b").to_json()]
    one = datasets.Dataset.from_list(rows)
    one.save_to_disk(str(tmp_path / "one"))
    assert list(open_examples("one")) == [example("a"), example("b")]
    assert next(open_examples("one")).extra == {"level": 3}
    datasets.DatasetDict({"test": one, "train": one}).save_to_disk(str(tmp_path / "two"))
    assert list(open_parts("two")) == ["train", "test"]
    assert convert("two", tmp_path / "out", "csv") == 4


def test_folders_of_other_names(datasets: Any, tmp_path: Path) -> None:
    """A folder whose files do not go by our names is read as the package reads it."""
    write_examples(tmp_path / "mine" / "questions.jsonl", [example("a"), example("b")])
    assert list(open_examples("mine")) == [example("a"), example("b")]
    (tmp_path / "mine" / "questions.jsonl").write_text("{", "utf-8")
    with pytest.raises(
        ReadError, match=r"mine: the folder has no train, .* package datasets cannot"
    ):
        list(open_examples("mine"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").touch()
    with pytest.raises(ReadError, match="empty: the folder has no question set"):
        list(open_examples("empty"))
