"""What is installed: only our packages, light imports, no foreign words."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from kopl_base import packages
from kopl_base.packages import version
from tests.conftest import ROOT, SOURCES, pytest_collection_modifyitems

PACKAGES = ("kopl_base", "kb", "kopl", "generation", "parsers", "cqa", "kopl_cli")


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next((built / "tree").glob("*.whl")))


def test_the_wheel_contains_only_our_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_contains_what_the_packages_read(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert {
        "kopl/__init__.pyi",
        "kopl/grammar.lark",
        "kopl_cli/__init__.py",
        "kb/world/world.jsonl.gz",
        "generation/kqapro.scfg",
        "generation/people.scfg",
        "generation/lexicon/everyday.yaml",
        "generation/lexicon/world/relations.yaml",
        "generation/paraphrase/prompt.txt",
        "generation/paraphrase/words.yaml",
        *(f"{package}/py.typed" for package in PACKAGES),
    } <= names
    configs = {f"parsers/configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")}
    assert "parsers/configs/tiny.yaml" in configs and configs <= names
    for package in PACKAGES:
        files = [f for f in (ROOT / package).rglob("*") if f.is_file()]
        # What is no module is data that a module reads: all of it must be there.
        wanted = {str(f.relative_to(ROOT)) for f in files if "__pycache__" not in f.parts}
        assert wanted <= names
    assert not any("__pycache__" in name or name.startswith("tests") for name in names)


def test_the_source_distribution_is_the_whole_project(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert str(path.relative_to(ROOT)) in names
    tops = ["README.md", "CHANGELOG.md", "LICENSE", "MANIFEST.in", "constraints.txt", "setup.cfg",
            "setup.py", "pyproject.toml", "train.py", "eval.py", ".ruff.toml"]  # fmt: skip
    assert set(tops) <= names
    assert not any("__pycache__" in name or name.startswith("runs/") for name in names)


def test_the_source_distribution_makes_the_same_wheel(built: Path) -> None:
    found = []
    for origin in ("tree", "sdist"):
        with zipfile.ZipFile(next((built / origin).glob("*.whl"))) as wheel:
            found.append({name: wheel.read(name) for name in wheel.namelist()})
    assert found[0] == found[1]


def test_the_description_has_no_link_that_is_dead_on_pypi(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata, _, text = wheel.read(name).decode().partition("\n\n")
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    links = re.findall(r"\]\(([^)]+)\)", text)
    files = f"{config['metadata']['url']}/blob/main/"
    assert f"{files}docs/language.md" in links
    for link in links:
        assert link.startswith("https://")
        if link.startswith(files):
            assert (ROOT / link.removeprefix(files)).exists()
    assert len(re.findall(r"^Project-URL: ", metadata, re.M)) >= 3


def test_names_are_shown_and_loaded_when_asked_for() -> None:
    script = (
        "import sys, kb, kopl\n"
        "names = dir(kopl)\n"
        "print('lark' in sys.modules, 'kopl.executor' in sys.modules)\n"
        "missing = [name for name in names if not hasattr(kopl, name)]\n"
        "from kopl import *\n"
        "print(missing, Executor.__module__, check.__module__, 'Executor' in names)\n"
        "print(kopl.__version__ == kb.__version__, kopl.__version__, '__version__' in dir(kb))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first, second, third = done.stdout.splitlines()
    assert first == "False False"
    assert second == "[] kopl.executor kopl.typecheck True"
    assert third == f"True {version()} True"


def test_messages_fit_how_the_toolkit_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert packages.install("train") == f"pip install -e '{ROOT}[train]'"
    monkeypatch.chdir(ROOT)
    assert packages.install("train") == "pip install -e '.[train]'"
    assert packages.install() == "pip install -e ."
    monkeypatch.setattr(packages, "__file__", str(tmp_path / "kopl_base" / "packages.py"))
    assert packages.install("train") == "pip install 'kopl-toolkit[train]'"
    assert packages.install() == "pip install kopl-toolkit"
    told = packages.needs("--ray", "ray", "pyarrow", extra="ray")
    assert told == (
        "--ray: the packages ray and pyarrow are not installed; install them with:"
        " pip install 'kopl-toolkit[ray]'"
    )


def test_every_extra_that_a_message_names_is_declared() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    named = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text("utf-8")
            named |= set(re.findall(r'extra="(\w+)"', text))
            if path.parent.name != "kopl_base" or path.name not in ("conflict.py", "packages.py"):
                assert "kopl-toolkit[" not in text or "each needs" in text, path
                assert "pip install -e" not in text, path
    assert {"train", "sparql", "ray"} <= named <= set(config["options.extras_require"])


def test_kb_kopl_and_generation_import_without_heavy_packages() -> None:
    script = (
        "import sys, kb, kopl, kopl.executor, generation, generation.blocks, parsers, cqa\n"
        "heavy = {'torch', 'transformers', 'datasets', 'accelerate', 'pandas', 'lark'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_settings_are_where_they_belong() -> None:
    """pyproject.toml holds the build system only; setup.cfg the rest."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert [line for line in text.splitlines() if line.startswith("[")] == ["[build-system]"]
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["metadata"]["name"] == "kopl-toolkit"
    needs = config["options"]["install_requires"]
    assert "torch" not in needs and "datasets" not in needs


@pytest.mark.parametrize(
    ("asked", "markers", "skipped"),
    [("tests/cqa", "", True), ("tests/cqa", "slow", False), ("tests/cqa/test_x.py::y", "", False)],
)
def test_long_tests_run_where_they_are_asked_for(asked: str, markers: str, skipped: bool) -> None:
    """The marker "slow" is worth something, whatever else is run."""
    config = SimpleNamespace(args=[asked], option=SimpleNamespace(markexpr=markers))
    added: dict[str, list[object]] = {"slow": [], "quick": []}
    items = [
        SimpleNamespace(keywords={name: True}, add_marker=marks.append)
        for name, marks in added.items()
    ]
    pytest_collection_modifyitems(config, items)
    assert bool(added["slow"]) is skipped and not added["quick"]
