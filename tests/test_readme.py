"""What the README shows works as shown."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_traced_example(capsys: pytest.CaptureFixture[str]) -> None:
    from kopl_cli import main

    command = re.search(r"^\$ kopl run --kb world --trace '(.+)'\n((?:.+\n)+?)```", README, re.M)
    assert command
    assert main(["run", "--kb", "world", "--trace", command[1]]) == 0
    shown = [re.split(r"\t", line) for line in capsys.readouterr().out.splitlines()]
    printed = [re.split(r" {2,}", line) for line in command[2].splitlines()]
    assert shown == printed
    nested = re.search(r"^> `(.+)`$", README, re.M)
    assert nested
    from kopl.text import read

    assert read(nested[1]) == read(command[1])


def test_five_lines_of_python() -> None:
    blocks = re.findall(r"```python\n(.+?)```", README, re.S)
    output = io.StringIO()
    for block in blocks:
        with contextlib.redirect_stdout(output):
            exec(compile(block, "README.md", "exec"), {})
    assert output.getvalue() == "Oslo\n"


def test_the_builder_example_of_the_document() -> None:
    text = (ROOT / "docs" / "knowledge-base.md").read_text("utf-8")
    block = re.search(r"```python\n(.+?)```", text, re.S)
    assert block
    code = block[1].replace('write_snapshot(kb, "mine.kopl")', "")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "knowledge-base.md", "exec"), {})
    printed = [line.partition("  # ")[2] for line in code.splitlines() if line.startswith("print(")]
    assert output.getvalue().splitlines() == printed == ["Oslo", "['Norway']"]


def test_the_example_of_the_sparql_page() -> None:
    pytest.importorskip("pyoxigraph", reason="pip install 'kopl-toolkit[sparql]'")
    text = (ROOT / "docs" / "sparql.md").read_text("utf-8")
    block = re.search(r"```python\n(.+?)```", text, re.S)
    assert block
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(block[1], "sparql.md", "exec"), {})
    first, second, _ = output.getvalue().splitlines()
    assert (first, second) == ("['Finland', 'Sweden']", "['Oslo']")


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_ci_runs_the_readme_s_test_line() -> None:
    line = next(line for line in README.splitlines() if "python -m pytest" in line)
    # All of them, in an environment of its own.
    assert line.endswith("&& python -m pytest -n 2 --dist loadfile")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "grep -m1 'python -m pytest' README.md" in script
