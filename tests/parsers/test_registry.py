"""Models and languages that other packages bring."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from kb import KnowledgeBase, write_snapshot
from kopl.example import Example, write_examples
from kopl_base.errors import SettingsError
from parsers import registry
from parsers.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]
FOREIGN = """
from parsers.languages import KoplLanguage

class Shouting(KoplLanguage):
    name = "shouting"

    def gold(self, example):
        return super().gold(example).upper()

not_a_class = 3
"""


def documented(begins: str, language: str) -> str:
    """The block of docs/parsers.md that begins so."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/parsers.md").read_text(), re.S)
    [block] = [block for block in blocks if block.startswith(begins)]
    return str(block)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the package of the documentation was installed from its wheel."""
    folder = tmp_path_factory.mktemp("bag")
    wheel, info = folder / "bag_parser-0.1-py3-none-any.whl", "bag_parser-0.1.dist-info"
    entries = documented("[project]", "toml").partition("entry-points.")[2].replace('"', "")
    files = {
        "bag_parser.py": documented("# bag_parser.py", "python"),
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: bag-parser\nVersion: 0.1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[{entries}",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    place = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(place), str(wheel)], check=True)
    return place


def test_a_model_of_an_installed_package(
    torch: object, installed: Path, small: KnowledgeBase, small_examples: list[Example],
    tmp_path: Path,
) -> None:  # fmt: skip
    kb, examples = tmp_path / "small.kopl", tmp_path / "examples.jsonl"
    write_snapshot(small, kb)
    write_examples(examples, small_examples)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])}

    def kopl(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kopl", *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip

    (tmp_path / "bag.yaml").write_text("model: bag\nsize: 512\n")
    pairs = [f"kb={kb}", f"train={examples}", f"valid={examples}"]
    pairs += ["threads=1", "plots=false", "device=cpu", "output=run"]
    trained = kopl(
        "train", "--config", "bag.yaml", *(word for pair in pairs for word in ("--set", pair))
    )
    assert trained.returncode == 0, trained.stderr
    settings = json.loads((tmp_path / "run/settings.json").read_text())
    assert settings["bag"] == {"size": 512} and settings["training"]["epochs"] == 40
    scored = kopl("eval", "run", "--data", str(examples), "--json")
    assert scored.returncode == 0, scored.stderr
    [found] = json.loads(scored.stdout)["runs"]
    assert found["accuracy"]["default"]["overall"]["share"] > 0.6
    asked = kopl("ask", "--run", "run", "--json", small_examples[0].question)
    assert json.loads(asked.stdout)["program"], asked.stderr
    wrong = kopl("train", "--set", "model=bag", "--set", "sise=3")
    assert "did you mean" in wrong.stderr and "size" in wrong.stderr and wrong.returncode != 0
    bounded = kopl("train", "--set", "model=bag", "--set", "size=0")
    assert "size must be at least 1, not 0" in bounded.stderr
    other = subprocess.run(
        [sys.executable, "-m", "kopl", "ask", "--run", "run", "Who?"],
        cwd=tmp_path, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert "model must be one of pointer, rnn, seq2seq, llm, not 'bag'" in other.stderr
    assert "install the package that brings it" in other.stderr


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Entry points of a package of this test."""
    (tmp_path / "foreign_kopl.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(tmp_path)
    group = registry.LANGUAGES.group
    points = [
        EntryPoint("shouting", "foreign_kopl:Shouting", group),
        EntryPoint("kopl", "foreign_kopl:not_a_class", group),
        EntryPoint("number", "foreign_kopl:not_a_class", group),
        EntryPoint("broken", "no_such_module_here:Model", group),
    ]
    monkeypatch.setattr(
        "kopl_base.registry.entry_points", lambda group: points if "languages" in group else []
    )
    registry.LANGUAGES.forget()
    yield
    registry.LANGUAGES.forget()


def test_a_language_of_another_package(
    brought: None, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    from parsers.languages import language_of

    settings = read_settings(None, ["language=shouting"])
    language = language_of(settings, small)
    example = small_examples[0]
    assert language.gold(example).isupper() and language.name == "shouting"
    assert Settings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shoutin", "one of kopl, sparql, broken, number, shouting, not .*did you mean shouting"),
        ("number", r"'number' \(foreign_kopl:not_a_class\) is no class below .*OutputLanguage"),
        ("broken", r"'broken' .* cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_is_no_language(brought: None, small: KnowledgeBase, name: str, message: str) -> None:
    from parsers.languages import language_of

    with pytest.raises(SettingsError, match=message):
        language_of(read_settings(None, [f"language={name}"]), small)


def test_own_names_are_not_taken_over(brought: None) -> None:
    from parsers.languages import KoplLanguage

    assert registry.language_class("kopl") is KoplLanguage
