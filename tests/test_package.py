"""What is installed: only our packages, light imports, no foreign words."""

from __future__ import annotations

import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("kb", "kopl", "generation", "parsers", "cqa")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from a copy so that the checkout stays as it is."""
    pytest.importorskip("setuptools", minversion="70.1", reason="building needs setuptools 70.1")
    import shutil

    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in (*PACKAGES, "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "tests"):
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", str(folder), str(source)],
        check=True, capture_output=True,
    )  # fmt: skip
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_contains_only_our_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_contains_what_the_packages_read(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert {
        "kopl/grammar.lark",
        "kopl/cli/__init__.py",
        "kb/py.typed",
        "kopl/py.typed",
        "kb/world/world.jsonl.gz",
        "generation/rules.scfg",
        "generation/lexicon/world.yaml",
        "generation/paraphrase/prompt.txt",
    } <= names
    modules = {str(f.relative_to(ROOT)) for p in PACKAGES for f in (ROOT / p).rglob("*.py")}
    assert modules <= names
    assert not any("__pycache__" in name or name.startswith("tests") for name in names)


def test_kb_kopl_and_generation_import_without_heavy_packages() -> None:
    script = (
        "import sys, kb, kopl, kopl.executor, generation, generation.pipeline, parsers, cqa\n"
        "heavy = {'torch', 'transformers', 'datasets', 'accelerate', 'pandas', 'lark'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_imports_point_down() -> None:
    import ast

    allowed = {
        "kb": {"kb"},
        "kopl": {"kb", "kopl"},
        "generation": {"kb", "kopl", "generation"},
        "parsers": {"kb", "kopl", "parsers"},
        "cqa": {"kb", "kopl", "cqa"},
    }
    # The command `kopl train` composes packages, as a script does: generate, train, score.
    scripts = {"parsers/command_train.py"}
    for package, below in allowed.items():
        for path in (ROOT / package).rglob("*.py"):
            if str(path.relative_to(ROOT)) in scripts:
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names = [node.module]
                ours = {name.split(".")[0] for name in names} & set(allowed)
                assert ours <= below, f"{path} imports {ours - below}"


def test_settings_are_where_they_belong() -> None:
    """pyproject.toml holds the build system only; setup.cfg the rest."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert [line for line in text.splitlines() if line.startswith("[")] == ["[build-system]"]
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["metadata"]["name"] == "kopl-toolkit"
    needs = config["options"]["install_requires"]
    assert "torch" not in needs and "datasets" not in needs
