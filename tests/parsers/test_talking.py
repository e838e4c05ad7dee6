"""``kopl ask`` without a question, on a terminal and by a pipe, and without a run."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kb import KnowledgeBase, write_snapshot
from kopl_cli import last_run, main
from kopl_cli.conversation import Dialogue, Loading, Names, history_file
from tests.conftest import ROOT
from tests.parsers.test_ask import QUESTION

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

AREA, OF_PERU = "323802 square kilometre", "1285216 square kilometre"
# Processor time of a first answer beyond `import torch`, and of a further one, in seconds.
FIRST, NEXT = 1.0, 0.05


class Terminal:
    """``kopl`` on a pseudo-terminal: what a user types, and what stands on the screen."""

    def __init__(self, *arguments: str, folder: Path, **environment: str) -> None:
        self.screen = ""
        self.pid, self._file = pty.fork()
        if not self.pid:  # pragma: no cover - the child
            os.chdir(folder)
            # Tests in the background ignore interrupts, and children inherit that.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.environ.update({"TERM": "dumb", "COLUMNS": "200", "PYTHONPATH": str(ROOT)})
            os.environ.update({"OMP_NUM_THREADS": "1", "KOPL_HISTORY": "off", **environment})
            os.execv(sys.executable, [sys.executable, "-m", "kopl", *arguments])

    def type(self, text: str, until: str, seconds: float = 100) -> str:
        """Type something; what comes on the screen until a text does."""
        os.write(self._file, text.encode())
        return self.wait(until, seconds)

    def interrupt(self, until: str, tries: int = 20) -> str:
        """Press Ctrl-C; what comes on the screen until a text does.

        Python's readline notices an interrupt that comes between prompt and waiting only with the
        next one, as a person would press it again.
        """
        for _ in range(tries - 1):
            with suppress(AssertionError):
                return self.type("\x03", until, seconds=5)
        return self.type("\x03", until, seconds=5)

    def wait(self, until: str, seconds: float = 100) -> str:
        import select

        found, end = b"", time.monotonic() + seconds
        while until.encode() not in found:
            if not select.select([self._file], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{until!r} does not come, but {found.decode()!r}")
            try:
                found += os.read(self._file, 4096)
            except OSError:  # it ended
                break
        self.screen += found.decode()
        return found.decode()

    def ended(self) -> tuple[int, float]:
        """The exit status, and the processor time that was taken."""
        self.wait("\0 never")
        _, status, used = os.wait4(self.pid, 0)
        os.close(self._file)
        return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def test_a_conversation_on_a_terminal(trained: Path, tmp_path: Path) -> None:
    """Prompt, answers, follow-ups, commands, completion, arrows, both interrupts."""
    history = tmp_path / "state" / "history"
    terminal = Terminal("ask", "--run", str(trained), folder=tmp_path, KOPL_HISTORY=str(history))
    terminal.wait("\n? ")
    shown = terminal.type(f"{QUESTION}\n", "\n? ")
    assert f"answer: {AREA}  (" in shown and "not calibrated" in shown and "program" not in shown
    shown = terminal.type("and of Per\t?\n", "\n? ")  # the only name that begins so
    assert "read as: What is the area of Peru?" in shown and OF_PERU in shown
    shown = terminal.type(":why\n", "\n? ")
    assert 'program: QueryAttr(Find("Peru"), "area")' in shown and "last question's" in shown
    shown = terminal.type(":trace\n", "\n? ")
    assert "Find('Peru')" in shown and OF_PERU in shown
    terminal.type("half a questi", "half a questi")
    assert "interrupted" not in terminal.interrupt(":quit or Ctrl-D ends)\r\n? ")
    assert OF_PERU in terminal.type("\x1b[A\x1b[A\x1b[A\n", "\n? ")  # arrow up: "and of Peru?"
    assert "is :trace meant?" in terminal.type(":trac\n", "\n? ")
    terminal.type("\x04", "\n")
    assert terminal.ended()[0] == 0
    lines = history.read_text("utf-8").splitlines()
    assert lines[:2] == [QUESTION, "and of Peru?"] and "half a questi" not in lines
    assert history.stat().st_mode & 0o777 == 0o600
    # The next conversation knows the last one's questions.
    terminal = Terminal("ask", "--run", str(trained), folder=tmp_path, KOPL_HISTORY=str(history))
    terminal.wait("? ")
    assert ":trac" in terminal.type("\x1b[A", ":trac")
    terminal.type("\x15:quit\n", "\n")
    assert terminal.ended()[0] == 0


def test_several_names_are_listed(trained: Path, tmp_path: Path) -> None:
    terminal = Terminal("ask", "--run", str(trained), folder=tmp_path)
    terminal.wait("\n? ")
    terminal.type(f"{QUESTION}\n", "\n? ")
    shown = terminal.type("what of p\t\t", "\n? what of p")
    assert "Papua New Guinea   Peru   Port Moresby" in shown
    terminal.type("\x15\x04", "\n")
    assert terminal.ended()[0] == 0


def test_another_knowledge_base_in_a_conversation(
    trained: Path, tmp_path: Path, kb_of_rivers: KnowledgeBase
) -> None:
    write_snapshot(kb_of_rivers, tmp_path / "rivers.kopl")
    terminal = Terminal("ask", "--run", str(trained), folder=tmp_path)
    terminal.wait("? ")
    assert "16 entities" in terminal.type(":kb\n", "\n? ")
    assert "it stays as it was" in terminal.type(":kb nowhere.json\n", "\n? ")
    said = terminal.type(":kb rivers.kopl\n", "\n? ")
    assert "1 entities" in said and "the conversation begins anew" in said
    terminal.type(f"{QUESTION}\n", "\n? ")
    assert "Rhine" in terminal.type(":why\n", "\n? ")  # there is no Norway any more
    terminal.type("\x04", "\n")
    assert terminal.ended()[0] == 0


@pytest.fixture
def kb_of_rivers() -> KnowledgeBase:
    from kb import Builder, Quantity

    builder = Builder()
    builder.add_concept("river", "river")
    builder.add_entity("Rhine", "Rhine", ["river"])
    builder.add_attribute("Rhine", "length", Quantity(1233, "kilometre"))
    return builder.build()


def piped(text: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kopl", "ask", *arguments], cwd=folder, input=text, text=True,
        capture_output=True, timeout=200, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def test_lines_of_a_pipe(trained: Path, tmp_path: Path) -> None:
    """Each is answered, with no prompt; the questions of a file give the same lines of JSON."""
    lines = f"{QUESTION}\n\nand of Peru?\n:why\n"
    done = piped(lines, "--run", str(trained), folder=tmp_path)
    assert done.returncode == 0 and "? " not in done.stdout.replace(f"{QUESTION} ", "")
    assert (
        done.stdout.count("question: ") == 3 and "read as: What is the area of Peru?" in done.stdout
    )
    done = piped(
        "?!\n" + lines.removesuffix(":why\n"), "--run", str(trained), "--json", folder=tmp_path
    )
    unread, first, second = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 1 and "the question is empty" in unread["error"]["message"]
    assert (first["question"], first["answer"], "read_as" in first) == (QUESTION, AREA, False)
    assert (second["question"], second["answer"]) == ("and of Peru?", OF_PERU)
    assert second["read_as"] == "What is the area of Peru?"
    (tmp_path / "asked.json").write_text(json.dumps([QUESTION]), "utf-8")
    done = piped("", "--run", str(trained), "--json", "--questions", "asked.json", folder=tmp_path)
    [alone] = map(json.loads, done.stdout.splitlines())
    del alone["ms"], first["ms"]
    assert alone == first


def test_a_name_that_is_guessed_is_doubted_wherever_it_is_answered(
    trained: Path, tmp_path: Path
) -> None:
    slip = QUESTION.replace("Norway", "Norvay")
    doubt = "(The question does not say 'Norway'; it may be what is meant"
    assert doubt in piped(f"{slip}\n", "--run", str(trained), folder=tmp_path).stdout
    (tmp_path / "asked.json").write_text(json.dumps([slip, QUESTION]), "utf-8")
    done = piped("", "--run", str(trained), "--questions", "asked.json", folder=tmp_path)
    assert done.stdout.count(doubt) == 1


def test_the_prompt_is_there_before_anything_is_loaded(trained: Path, tmp_path: Path) -> None:
    """What comes before it takes hardly more than Python itself; loading goes on behind it."""
    before = []
    for _ in range(3):  # on a busy machine much may be loaded until we look
        terminal = Terminal("ask", "--run", str(trained), folder=tmp_path)
        terminal.wait("? ")
        stat = Path(f"/proc/{terminal.pid}/stat")
        if not stat.exists():
            pytest.skip("there is no /proc here")
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        before.append((int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))
        assert AREA in terminal.type(f"{QUESTION}\n", "\n? ")
        terminal.type("\x04", "\n")
        status, whole = terminal.ended()
        assert status == 0 and before[-1] < whole
    assert min(before) < whole / 4


def test_how_long_answers_take(trained: Path, tmp_path: Path, torch: Any) -> None:
    """Processor time on one thread, beside that of `import torch` at the same time."""

    def taken(*arguments: str, text: str = "") -> float:
        begin = os.times()
        subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, input=text, text=True, check=True,
            stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        end = os.times()
        spent: float = sum(end[2:4]) - sum(begin[2:4])
        return spent

    ask = ("-m", "kopl", "ask", "--run", str(trained))
    taken(*ask, text=QUESTION)  # compiles what is not compiled yet
    alone = min(taken("-c", "import torch") for _ in range(2))
    slow = max(1.0, alone / 0.7)  # of a machine that takes longer than usual
    one = min(taken(*ask, text=QUESTION) for _ in range(2))
    assert one - alone < FIRST * slow
    many = min(taken(*ask, text=f"{QUESTION}\n" * 41) for _ in range(2))
    assert (many - one) / 40 < NEXT * slow


# --- which run -----------------------------------------------------------------------------------


def made(folder: Path, moment: float) -> Path:
    folder.mkdir(parents=True)
    for part in last_run.PARTS:
        (folder / part).write_text("{}")
    os.utime(folder / last_run.WEIGHTS, (moment, moment))
    return folder


def test_the_last_run_is_the_one_with_the_newest_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made(Path("runs/b"), 3e8)
    made(Path("runs/a"), 2e8)
    unfinished = made(Path("runs/c"), 4e8)
    (unfinished / last_run.WEIGHTS).unlink()
    (Path("runs") / "notes.txt").write_text("")
    assert last_run.last_run() == Path("runs/b")
    assert "kopl: asking runs/b, trained 1979-" in (told := capsys.readouterr().err)
    assert "the newest of 2" in told


def test_without_run_and_terminal_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["ask", QUESTION]) == 2
    assert "train one with 'kopl train'" in capsys.readouterr().err
    assert main(["ask", "--run", "nowhere"]) == 2
    assert "nowhere: there is no such run" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["ask", "--run", "empty"]) == 2
    assert "it has no settings.json" in capsys.readouterr().err


def test_a_question_finds_the_last_run(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "runs" / "mine")
    done = piped("", QUESTION, folder=tmp_path)
    assert done.returncode == 0 and f"answer: {AREA}" in done.stdout
    assert "kopl: asking runs/mine, trained 20" in done.stderr


def test_training_is_offered_on_a_terminal(tmp_path: Path, torch: Any) -> None:
    """It says how long it takes, and does nothing unless the user says yes."""
    terminal = Terminal("ask", QUESTION, folder=tmp_path)
    shown = terminal.wait("[y/N] ")
    assert "at most 10 minutes on 2 processor cores" in shown
    terminal.type("n\n", "train one with 'kopl train'")
    assert terminal.ended()[0] == 2 and not (tmp_path / "runs").exists()


def test_yes_trains(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    commands: list[Sequence[str]] = []

    def train(command: Sequence[str], **options: Any) -> Any:
        commands.append(command)
        shutil.copytree(trained, tmp_path / "runs" / "default")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("subprocess.run", train)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    stdin = io.StringIO("Yes\n")
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["ask", QUESTION]) == 0
    assert AREA in capsys.readouterr().out and commands[0][1:] == ["-m", "kopl", "train"]


# --- parts ---------------------------------------------------------------------------------------


def test_what_goes_wrong_with_loading_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    from kb import KoplError

    def steps() -> Iterator[None]:
        yield None
        raise KoplError("no such thing")

    loading = Loading(steps)
    loading.start()
    with pytest.raises(KoplError, match="no such thing"):
        loading.wait()
    assert loading.now is None


def test_loading_is_given_up_behind_a_step() -> None:
    reached, seen = [], []

    def steps() -> Iterator[None]:
        for step in range(100):
            reached.append(step)
            while not seen:
                time.sleep(0.001)
            yield None

    loading = Loading(steps)
    loading.start()
    seen.append(True)
    loading.stop()
    assert len(reached) < 100


def test_names_are_completed_whatever_their_case(small: KnowledgeBase) -> None:
    names = Names(small)
    assert names.completions("what about nor") == (11, ["Norway"])
    assert names.completions("in papua new g") == (3, ["Papua New Guinea"])
    assert names.completions("N'Dj") == (0, ["N'Djamena"])
    assert names.completions("what is p") == (8, ["Papua New Guinea", "Peru", "Port Moresby"])
    assert names.completions("what is xyz")[1] == [] == names.completions("")[1]


def test_where_the_history_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KOPL_HISTORY", "off")
    assert history_file() is None
    monkeypatch.delenv("KOPL_HISTORY")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "kopl-toolkit" / "history"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert history_file() == tmp_path / ".local" / "state" / "kopl-toolkit" / "history"


def test_an_answer_that_is_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C while something is answered leads back to the prompt."""
    lines = iter(["what?", "what?", ":quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    monkeypatch.setenv("KOPL_HISTORY", "off")
    talk = SimpleNamespace(turns=[], kb=None)
    asked: list[str] = []

    def ask(made: Any, said: str, trace: bool) -> Any:
        asked.append(said)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return said

    def steps(kb: str | None) -> Iterator[Any]:
        yield talk

    show: Callable[..., None] = lambda turn, made: print("shown:", turn)  # noqa: E731
    assert Dialogue(steps, ask, show, show, show).on_terminal("hello") == 0
    assert capsys.readouterr().out == "hello\n(interrupted)\nshown: what?\n"
