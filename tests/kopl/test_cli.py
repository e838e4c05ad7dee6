"""The command line, as processes where streams and exit statuses matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopl_cli import main
from tests.conftest import DATA

ROOT = Path(__file__).parents[2]
TINY = str(DATA / "tiny.json")
CAPITAL = 'QueryName(Relate(Find("France"), "capital", "forward"))'


def kopl(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kopl", *arguments], input=stdin, capture_output=True, text=True,
        cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip


def test_run_prints_the_denotation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--kb", TINY, CAPITAL]) == 0
    assert capsys.readouterr().out == "Paris\n"


def test_run_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--kb", TINY, "--json", CAPITAL]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.pop("ms") > 0
    assert found == {"denotation": ["Paris"], "answer": "Paris", "state": "unique"}


@pytest.mark.parametrize(
    ("program", "options", "kind", "call"),
    [
        ("Fnd(x)", [], "parse", None),
        ("Count(Count(FindAll()))", [], "type", 2),
        ("VerifyNum(QueryAttr(FindAll(), area), 5, >)", ["--strict"], "execution", 2),
        ("Count(FindAll())", ["--max-ids", "3"], "limit", 0),
        ("Count(FindAll())", ["--max-depth", "1"], "limit", None),
        ("Count(FindAll())", ["--timeout", "0.000000001"], "limit", 0),
    ],
)
def test_failed_programs(
    capsys: pytest.CaptureFixture[str], program: str, options: list[str], kind: str,
    call: int | None,
) -> None:  # fmt: skip
    assert main(["run", "--kb", TINY, "--json", *options, program]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["kind"], error["call"]) == (kind, call)
    assert error["message"]
    assert main(["run", "--kb", TINY, *options, program]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and f"{kind} error" in shown.err


def test_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--kb", TINY, "--trace", CAPITAL]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split("\t") == ["#1", "Relate(#0, 'capital', 'forward')", "1", "Paris"]
    assert main(["run", "--kb", TINY, "--trace", "--json", CAPITAL]) == 0
    assert json.loads(capsys.readouterr().out)["trace"][0]["shown"] == ["France"]


def test_a_file_of_programs_goes_on_after_bad_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"program": CAPITAL, "question": "passed over"},
        {"program": "Fnd(x)"},
        {"program": [{"function": "Find", "inputs": ["Paris"]}, {"function": "What"}]},
        {"no": "program"},
        {"program": "Find <arg> Berlin <func> Count"},
        {"program": "Count(Count(FindAll()))"},
        {"program": {"function": "Find", "arguments": {"name": "Berlin"}}},
    ]
    path = tmp_path / "programs.jsonl"
    text = [json.dumps(line) for line in lines]
    path.write_text("\n".join([*text[:3], "{broken", "", *text[3:]]))
    assert main(["run", "--kb", TINY, "--programs", str(path), "--json"]) == 1
    shown = capsys.readouterr()
    found = [json.loads(line) for line in shown.out.splitlines()]
    assert [r.get("answer") or r["error"]["kind"] for r in found] == [
        "Paris", "parse", "Paris", "parse", "parse", "1", "type", "Berlin",
    ]  # fmt: skip
    assert "line 4" in found[3]["error"]["message"]
    assert "4 of 8 programs failed" in shown.err


def test_a_kqapro_file_works_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = [
        {"function": "Find", "dependencies": [], "inputs": ["Berlin"]},
        {"function": "What", "dependencies": [0], "inputs": []},
    ]
    path = tmp_path / "val.json"
    path.write_text(json.dumps([{"question": "q", "program": program, "choices": []}] * 2))
    assert main(["run", "--kb", TINY, "--programs", str(path)]) == 0
    assert capsys.readouterr().out == "Berlin\nBerlin\n"


def test_program_from_standard_input_and_file(tmp_path: Path) -> None:
    assert kopl("run", "--kb", TINY, "-", stdin=CAPITAL + "\n").stdout == "Paris\n"
    path = tmp_path / "program.txt"
    path.write_text(CAPITAL + "\n")
    assert kopl("run", "--kb", TINY, f"@{path}").stdout == "Paris\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required"),
        (["fly"], "invalid choice"),
        (["run"], "--kb"),
        (["run", "--kb", TINY], "either PROGRAM or --programs"),
        (["run", "--kb", TINY, "x", "--programs", "y"], "either PROGRAM or --programs"),
        (["run", "--kb", TINY, "--timeout", "-1", "x"], "above 0"),
        (["run", "--kb", TINY, "--timeout", "soon", "x"], "invalid"),
        (["run", "--kb", "/nowhere.json", "x"], "there is no such file"),
        (["run", "--kb", str(DATA), "x"], "is a folder"),
        (["run", "--kb", TINY, "@/nowhere"], "cannot be read"),
        (["run", "--kb", TINY, "--programs", "/nowhere.jsonl"], "cannot be opened"),
        (["run", "--kb", str(DATA / "golden.jsonl"), "x"], '"id"'),
        (["translate", "--to", "latin", "x"], "invalid choice"),
        (["functions", "Fnd"], "did you mean Find"),
        (["kb", "convert", TINY, "out.txt"], "--to"),
        (["kb", "snapshot", TINY, "/proc/none/x.kopl"], "x.kopl"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    done = kopl(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("nested", CAPITAL),
        ("serialised", "Find <arg> France <func> Relate <arg> capital <arg> forward <func> Quer"),
        ("kqapro", '"function": "What"'),
        ("json", '"function": "QueryName"'),
        ("nested-json", '{"program": {"function": "QueryName", "inputs": ['),
        ("mermaid", "flowchart TD"),
        ("dot", "digraph"),
    ],
)  # fmt: skip
def test_translate(capsys: pytest.CaptureFixture[str], form: str, expected: str) -> None:
    assert main(["translate", "--to", form, CAPITAL]) == 0
    assert expected in capsys.readouterr().out


def test_translate_traces_flow_charts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--to", "mermaid", "--kb", TINY, CAPITAL]) == 0
    assert "1: Paris" in capsys.readouterr().out
    assert main(["translate", "--to", "nested", "Fnd(x)"]) == 1
    assert "did you mean" in capsys.readouterr().err


def test_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 27
    assert main(["functions", "What"]) == 0
    assert "QueryName(E)" in capsys.readouterr().out


def test_kb_info_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "info", TINY]) == 0
    assert "entities\t6\n" in capsys.readouterr().out
    assert main(["kb", "info", TINY, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sizes"]["relational facts"] == 6
    assert main(["kb", "show", TINY, "France"]) == 0
    shown = capsys.readouterr().out
    assert "population: 66000000  [point in time: 2015]" in shown
    assert "→ capital: Paris  [start time: 987]" in shown
    assert main(["kb", "show", TINY, "Frence"]) == 1
    assert "did you mean 'France'" in capsys.readouterr().err


def test_kb_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "search", TINY, "pari"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert ["entity", "Paris", "paris-tx (city)"] in rows
    assert main(["kb", "search", TINY, "qqqq"]) == 1


def test_kb_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "check", TINY]) == 0
    shown = capsys.readouterr()
    assert "keys/area" in shown.out and "0 errors" in shown.err
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"concepts": {}, "entities": {"a": {"name": 5}, "b": []}}))
    assert main(["kb", "check", str(bad)]) == 1
    shown = capsys.readouterr()
    assert "entities/a/name" in shown.out and "entities/b" in shown.out
    assert "2 errors" in shown.err


def test_kb_convert_and_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, back = str(tmp_path / "kb.jsonl.gz"), str(tmp_path / "kb.json")
    snapshot = str(tmp_path / "kb.kopl")
    assert main(["kb", "convert", TINY, lines]) == 0
    assert main(["kb", "convert", lines, back]) == 0
    assert json.loads(Path(back).read_text()) == json.loads((DATA / "tiny.json").read_text())
    assert main(["kb", "convert", TINY, back, "--spelling", "B"]) == 0
    assert '"predicate"' in Path(back).read_text()
    assert main(["kb", "snapshot", TINY, snapshot]) == 0
    assert main(["run", "--kb", snapshot, CAPITAL]) == 0
    assert capsys.readouterr().out == "Paris\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kopl", "functions"], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=20)
    assert b"Traceback" not in errors and b"Exception" not in errors


def test_output_survives_a_plain_locale(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kopl", "translate", "--to", "nested", 'Find("日本")'],
        cwd=ROOT, capture_output=True, check=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert b"\\u65e5" in done.stdout


def test_start_up_is_quick() -> None:
    """Under 0.3 s on a quiet machine; other work beside the test lengthens even processor time."""
    times = []
    for _ in range(5):
        begin = os.times()
        kopl("functions")
        end = os.times()
        spent = end.children_user + end.children_system
        times.append(spent - begin.children_user - begin.children_system)
    assert 0 < min(times) < 0.45


def test_warnings_go_to_what_standard_error_is_at_the_time() -> None:
    import contextlib
    import io
    import logging

    from kopl_cli.common import show_warnings

    show_warnings()
    for _ in range(2):
        with contextlib.redirect_stderr(io.StringIO()) as there:
            logging.getLogger("kb").warning("odd")
        assert there.getvalue() == "kopl: odd\n"
