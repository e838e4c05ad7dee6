"""Others who use the names of our packages: one message, wherever code of ours still runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from kopl_base.conflict import PACKAGES, elsewhere, mixed, refuse_others
from tests.conftest import ROOT

# The start of a console script, and imports of all packages.
COMMAND = "from kopl_cli import entry\nentry()\n"
IMPORTS = f"""
import importlib
for name in {tuple(PACKAGES)}:
    try:
        found = importlib.import_module(name)
        print(name, "theirs" if hasattr(found, "THEIRS") else "namespace" if found.__file__ is None
              else "ours", sep=": ")
    except ImportError as error:
        print(name, " ".join(str(error).split()), sep=": ")
"""


class Site:
    """A folder as pip fills it, with the toolkit and with others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "site"
        self.work = folder / "work"
        (folder / "bin").mkdir()
        self.work.mkdir()
        (folder / "bin" / "kopl").write_text(COMMAND)
        self.command = str(folder / "bin" / "kopl")

    def add(self, distribution: str, package: str) -> None:
        """Install a distribution with a package of that name, whatever was there before."""
        first = f"{package}/__init__.py"
        self.write(distribution, {first: "THEIRS = True\n", f"{package}/theirs.py": ""})

    def write(self, distribution: str, texts: dict[str, str]) -> None:
        """Install a distribution of these files."""
        files = {
            **texts,
            f"{distribution}-1.0.dist-info/METADATA": f"Name: {distribution}\nVersion: 1.0\n",
        }
        record = f"{distribution}-1.0.dist-info/RECORD"
        files[record] = "".join(f"{name},,\n" for name in [*files, record])
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)

    def remove(self, distribution: str, package: str) -> None:
        for name in ("__init__.py", "theirs.py"):
            (self.folder / package / name).unlink()
        shutil.rmtree(self.folder / f"{distribution}-1.0.dist-info")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.work, env={"PYTHONPATH": str(self.folder)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def imports(self) -> dict[str, str]:
        """What each import of a package gives, in the user's folder."""
        done = self.run("-c", IMPORTS)
        assert done.returncode == 0, done.stderr
        return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def ours(site: Site, built: Path) -> None:
    with zipfile.ZipFile(next((built / "tree").glob("*.whl"))) as wheel:
        wheel.extractall(site.folder)


def check_command(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """The command ended with one message of these words, and with status 2."""
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("kopl: ") and done.stderr.count("kopl: ") == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("order", ["before", "after"])
def test_another_distribution_of_the_name(
    package: str, order: str, site: Site, built: Path
) -> None:
    """Installed before ours or after it, and then uninstalled."""
    if order == "before":
        site.add("Other", package)
    ours(site, built)
    assert (mixed(site.folder) is None) == (order == "after")
    if order == "after":
        site.add("Other", package)
    advice = (str(site.folder / package / "theirs.py"), "pip uninstall Other", "--force-reinstall")
    for name, told in site.imports().items():
        if order == "after" and name == package:
            assert told == "theirs"  # nothing of ours runs
        else:
            assert all(word in told for word in advice), told
    for started in ([site.command], ["-m", "kopl"]):
        check_command(site.run(*started, "functions"), *advice)
    site.remove("Other", package)
    gone = (str(site.folder / package / "__init__.py"), "are gone", "--force-reinstall")
    for name, told in site.imports().items():
        assert told == "namespace" if name == package else all(word in told for word in gone)
    for started in ([site.command], ["-m", "kopl"]):
        check_command(site.run(*started, "functions"), *gone)
    ours(site, built)  # what the message advises
    assert mixed(site.folder) is None


@pytest.mark.parametrize("name", ["cqa/query.py", "kb/values.py", "kopl/program.py"])
def test_another_distribution_that_overwrites_one_file(name: str, site: Site, built: Path) -> None:
    """It has no first file of its own, and no file that we do not have."""
    ours(site, built)
    site.write("Other", {name: "THEIRS = True\n"})
    told = (str(site.folder / name), "(Other)", "pip uninstall Other", "--force-reinstall")
    package = name.partition("/")[0]
    command = ["cqa", "graph"] if package == "cqa" else ["--version"]
    check_command(site.run(site.command, *command), *told)
    assert all(word in site.imports()[package] for word in told)
    (site.folder / name).unlink()
    shutil.rmtree(site.folder / "Other-1.0.dist-info")
    told = (str(site.folder / name), "are gone", "--force-reinstall")
    check_command(site.run(site.command, *command), *told)
    assert all(word in site.imports()[package] for word in told)


def test_a_file_that_the_user_edited_is_no_conflict(site: Site, built: Path) -> None:
    ours(site, built)
    with (site.folder / "kb" / "values.py").open("a") as file:
        file.write("# a note\n")
    assert site.imports() == dict.fromkeys(PACKAGES, "ours")


@pytest.mark.parametrize(
    ("noted", "source"),
    [
        (None, "kopl-toolkit"),
        ("no json", "kopl-toolkit"),
        ({"url": "file:///a%20b/k.whl", "archive_info": {}}, "'/a b/k.whl'"),
        ({"url": "https://host/k.whl", "archive_info": {}}, "https://host/k.whl"),
        (
            {"url": "https://host/k", "vcs_info": {"vcs": "git", "commit_id": "12ab"}},
            "git+https://host/k@12ab",
        ),
    ],
)
def test_the_advice_names_what_was_installed(
    noted: object, source: str, site: Site, built: Path
) -> None:
    ours(site, built)
    (site.folder / "kb" / "values.py").unlink()
    if noted is not None:
        text = noted if isinstance(noted, str) else json.dumps(noted)
        (next(site.folder.glob("kopl_toolkit-*")) / "direct_url.json").write_text(text)
    told = mixed(site.folder)
    assert told is not None and told.endswith(f"--force-reinstall --no-deps {source}")


def test_dir_shows_public_names_only() -> None:
    for name in PACKAGES:
        package = import_module(name)
        public = set(getattr(package, "__all__", ()))
        assert set(dir(package)) - public <= {
            "__doc__", "__file__", "__name__", "__path__", "__version__"
        }  # fmt: skip
        assert public <= set(dir(package)) and "__path__" in dir(package)


def test_without_others_all_is_ours(site: Site, built: Path) -> None:
    ours(site, built)
    (site.folder / "kb" / "notes.txt").write_text("of the user")
    (site.folder / "kb" / "__pycache__").mkdir(exist_ok=True)
    (site.folder / "kb" / "__pycache__" / "x.py").write_text("")
    assert site.imports() == dict.fromkeys(PACKAGES, "ours")
    done = site.run(site.command, "functions")
    assert done.returncode == 0 and "QueryAttrQualifier" in done.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_a_file_of_the_user_beside_the_script(package: str, site: Site, built: Path) -> None:
    """Only what needs the name is refused; a folder without modules hides nothing."""
    form = "{}/__init__.py" if package in ("kopl", "cqa") else "{}.py"
    ours(site, built)
    for other in PACKAGES:
        (site.work / other).mkdir()
    path = site.work / form.format(package)
    path.write_text("THEIRS = True\n")
    shown = str(path if path.name != "__init__.py" else path.parent)
    for name, told in site.imports().items():
        if name == package:
            assert told == "theirs"
        elif package in PACKAGES[name]:
            assert f"'import {package}' finds {shown}, but" in told and "Rename it" in told
        else:
            assert told == "ours"
    done = site.run("-m", "kopl", "functions")
    if package == "kb":
        check_command(done, f"'import kb' finds {shown}")
    elif package != "kopl":  # whose file is what runs then
        assert done.returncode == 0


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("generation", ["stats", "x.jsonl"]),
        ("generation", ["train"]),
        ("parsers", ["ask", "--run", "x", "y"]),
        ("cqa", ["graph"]),
    ],
)
def test_commands_say_whose_file_they_find(
    name: str, command: list[str], site: Site, built: Path
) -> None:
    ours(site, built)
    (site.work / f"{name}.py").write_text("")
    command = ["cqa", *command] if name == "cqa" else command
    check_command(site.run("-m", "kopl", *command), f"'import {name}' finds", f"{name}.py")


def test_another_distribution_in_another_folder(site: Site, built: Path, tmp_path: Path) -> None:
    """As beside a toolkit that is installed from a clone, which Python finds last."""
    ours(site, built)
    other = Site(tmp_path / "other") if (tmp_path / "other").mkdir() is None else None
    assert other is not None
    other.add("Other", "kb")
    script = f"import sys; sys.path.insert(0, {str(other.folder)!r}); import kopl"
    done = site.run("-c", script)
    assert done.returncode == 1
    assert f"'import kb' finds {other.folder / 'kb'}" in done.stderr
    assert "pip uninstall Other" in done.stderr


def test_a_clone_is_not_looked_into() -> None:
    assert mixed(ROOT) is None and elsewhere(PACKAGES, ROOT) is None
    refuse_others(*PACKAGES)


def test_a_folder_that_cannot_be_listed_stops_nothing(tmp_path: Path) -> None:
    assert mixed(tmp_path / "none") is None


def test_the_packages_that_each_imports_are_said() -> None:
    """As `test_imports_point_down` allows them; the check would be of too little otherwise."""
    assert all(name in needed and "kb" in needed for name, needed in PACKAGES.items())
    for package in PACKAGES:
        assert "kopl_base.conflict" in (ROOT / package / "__init__.py").read_text("utf-8")
