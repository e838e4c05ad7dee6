"""Fixtures that several packages' tests share."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Models of tests are tiny, and several processes of tests may share the cores: threads of one that
# wait for each other take minutes for what one thread does in seconds. Set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[1]
# The folders of the repository that are distributed.
SOURCES = (
    ".ci", "benchmarks", "configs", "cqa", "docs", "generation", "kb", "kopl", "kopl_base",
    "kopl_cli", "parsers", "tests",
)  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests that take long, but for those that are asked for by "-m slow" or by name."""
    named = any("::" in argument for argument in config.args)
    if "slow" in str(config.option.markexpr) or named:
        return
    mark = pytest.mark.skip(reason="takes long: run it with -m slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(mark)


# Folders whose tests share what takes long to start: one of several workers runs all of a folder.
TOGETHER = ("tests/serve/browser/",)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile`` files stay in one worker, and so do the folders of TOGETHER."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            together = (folder for folder in TOGETHER if nodeid.startswith(folder))
            return next(together, None) or super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep snapshots of tests away from the user's cache, but share them between tests."""
    folder = Path(os.environ.get("KOPL_TEST_CACHE") or tmp_path_factory.getbasetemp() / "cache")
    monkeypatch.setenv("KOPL_CACHE_DIR", str(folder))


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Let no test see where another one, as the command line does, sent log messages."""
    yield
    log = logging.getLogger("kb")
    log.handlers.clear()
    log.propagate = True


@pytest.fixture(scope="session")
def tiny_document() -> dict[str, Any]:
    """A knowledge base that can be answered by eye, as the object of its kb.json."""
    document: dict[str, Any] = json.loads((DATA / "tiny.json").read_text("utf-8"))
    return document


@pytest.fixture(scope="session")
def tiny(tiny_document: dict[str, Any]) -> Any:
    """The same as a knowledge base."""
    from kb import from_kqapro

    return from_kqapro(tiny_document)


@pytest.fixture(scope="session")
def kopl_data() -> Path:
    """The folder of real data that KOPL_DATA names; the test is skipped without it."""
    folder = os.environ.get("KOPL_DATA")
    if not folder:
        pytest.skip("KOPL_DATA is not set to a folder with the published data")
    if not Path(folder).is_dir():
        pytest.skip(f"KOPL_DATA names {folder}, which is no folder")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and with the wheels from the tree and from it.

    They are ``*.tar.gz``, ``tree/*.whl`` and ``sdist/*.whl``. Everything is made in a copy, so that
    the checkout stays as it is.
    """
    pytest.importorskip("setuptools", minversion="70.1", reason="building needs setuptools 70.1")
    folder = tmp_path_factory.mktemp("built")
    left_out = shutil.ignore_patterns(
        "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "*.pyc"
    )
    for name in ("tree", "sdist"):
        (folder / name).mkdir()
    source = folder / "source"
    source.mkdir()
    for path in ROOT.iterdir():
        # Not what is made by working here: environments, runs, builds.
        if path.is_file():
            shutil.copy(path, source)
        elif path.name in SOURCES:
            shutil.copytree(path, source / path.name, ignore=left_out)
    _build(source, f"build_sdist({str(folder)!r})")
    # A wheel of a tree that other builds left nothing in.
    shutil.rmtree(source / "kopl_toolkit.egg-info")
    _build(source, f"build_wheel({str(folder / 'tree')!r})")
    [sdist] = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    _build(unpacked, f"build_wheel({str(folder / 'sdist')!r})")
    return folder


def _build(source: Path, call: str) -> None:
    """What ``pip wheel`` has setuptools do, without an environment of its own."""
    done = subprocess.run(
        [sys.executable, "-c", f"import setuptools.build_meta as backend; backend.{call}"],
        cwd=source, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
