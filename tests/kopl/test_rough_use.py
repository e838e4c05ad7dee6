"""What users do that nobody planned: pipes, links, full disks, odd bytes, other versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kopl as language
from kb import KnowledgeBase, WriteError, from_kqapro, load, write_lines, write_snapshot
from kb.snapshot import Source
from kopl.executor import Executor
from kopl_cli import main
from tests.conftest import DATA
from tests.kopl.test_cli import CAPITAL, ROOT, TINY


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("kopl ", f"{sys.executable} -m kopl ")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("source", ["<(cat {file})", "/dev/stdin < {file}", "- < {file}"])
def test_programs_from_a_pipe(tmp_path: Path, source: str) -> None:
    file = tmp_path / "programs.jsonl"
    file.write_text((json.dumps({"program": CAPITAL}) + "\n") * 3000)
    done = shell(f"kopl run --kb {TINY} --programs {source.format(file=file)}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Paris\n" * 3000


def test_a_knowledge_base_must_be_a_file() -> None:
    done = shell(f"kopl run --kb <(cat {TINY}) x")
    assert done.returncode == 2
    assert "no ordinary file" in done.stderr


def test_writing_goes_through_links_and_refuses_what_is_no_file(
    tiny: KnowledgeBase, tmp_path: Path
) -> None:
    real, link, pipe = tmp_path / "real.jsonl", tmp_path / "link.jsonl", tmp_path / "pipe"
    real.write_text("old")
    link.symlink_to(real)
    write_lines(tiny, link)
    assert link.is_symlink()
    assert load(real, cache=False).fingerprint == tiny.fingerprint
    os.mkfifo(pipe)
    with pytest.raises(WriteError, match="no ordinary file"):
        write_lines(tiny, pipe)
    assert pipe.is_fifo()


def test_a_snapshot_of_another_version_is_made_again(tmp_path: Path) -> None:
    copy, snapshot = tmp_path / "kb.json", tmp_path / "kb.kopl"
    copy.write_text((DATA / "tiny.json").read_text())
    write_snapshot(load(copy, cache=False), snapshot, Source.of(copy))
    old = bytearray(snapshot.read_bytes())
    old[8] = 99
    snapshot.write_bytes(old)
    assert load(snapshot).entity_count == 6
    assert snapshot.read_bytes()[8] == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told() -> None:
    done = shell("kopl functions > /dev/full")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and "No space left" in done.stderr


def test_a_line_that_is_not_utf8_is_an_error_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "programs.jsonl"
    good = json.dumps({"program": CAPITAL}).encode()
    path.write_bytes(good + b"\n\xff\xfe\n" + good + b"\n")
    assert main(["run", "--kb", TINY, "--json", "--programs", str(path)]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [item.get("answer") for item in found] == ["Paris", None, "Paris"]
    assert "line 2: the line is not UTF-8" in found[1]["error"]["message"]


def test_errors_of_a_file_go_to_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "programs.jsonl"
    path.write_text('{"program": "Fnd(x)"}\n{"program": "Count(FindAll())"}\n')
    assert main(["run", "--kb", TINY, "--programs", str(path)]) == 1
    shown = capsys.readouterr()
    assert shown.out == "\n6\n"
    assert "program 1: parse error" in shown.err


def test_json_output_is_exactly_what_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--kb", TINY, "--json", "Find(Frence)"]) == 0
    shown = capsys.readouterr()
    assert set(json.loads(shown.out)) == {"denotation", "answer", "state", "ms"}
    assert "did you mean 'France'" in shown.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Count(", "ends too early"),
        ("Find(A) Find(B)", "'F' was not expected"),
        ("Count(Find(A", "2 closing parenthesis missing"),
    ],
)
def test_known_functions_are_not_called_unknown(text: str, message: str) -> None:
    with pytest.raises(language.ParseError, match=message):
        language.read(text)


def test_a_byte_order_mark_and_escapes_in_single_quotes() -> None:
    assert language.read("\ufeffCount(FindAll())") == language.read("Count(FindAll())")
    assert language.read("Find('a\\\"b\"\\'\\u00e9\\\\')").arguments == ('a"b"\'é\\',)


def test_the_exported_names_are_what_they_say(tiny: KnowledgeBase) -> None:
    """Importing modules must not put a module where a function was exported."""
    for name in dir(language):
        assert not isinstance(getattr(language, name), type(sys)), name
    assert language.check(language.read("Count(FindAll())"))
    found = Executor(tiny).run(language.find("France").relate("capital").query_name())
    assert found.answer == "Paris"


def test_wrong_counts_are_usage_errors() -> None:
    done = shell(f"kopl kb search {TINY} -n -1 A")
    assert done.returncode == 2 and "above 0" in done.stderr


def test_loading_warns_of_cycles_and_mixed_keys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kb.json"
    value = [{"type": "string", "value": "x"}, {"type": "year", "value": 1}]
    facts = [{"key": "k", "value": v, "qualifiers": {}} for v in value]
    document = {
        "concepts": {"c": {"name": "c", "subclassOf": ["c"]}},
        "entities": {"e": {"name": "e", "instanceOf": ["c"], "attributes": facts, "relations": []}},
    }
    path.write_text(json.dumps(document))
    load(path)
    assert "2 warnings" in caplog.text
    assert from_kqapro(document).entity_count == 1
