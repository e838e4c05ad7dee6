"""The conversation of ``kopl ask`` without a question: on a terminal, or by lines from a pipe."""

from __future__ import annotations

import os
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kopl_base.errors import KoplError, near_names

if TYPE_CHECKING:
    from kb import KnowledgeBase
    from parsers.conversation import Conversation, Turn

PROMPT = "? "
# Questions that the file of the history keeps.
KEPT = 1000
# A name of more words is not completed from its beginning.
MOST_WORDS = 8

HELP = """\
A question, or one that goes on from the last: "and of Sweden?", "its capital?", "and in 1990?".
  :trace          what every call of the last answer's program gave; :trace on, off: always, never
  :why            how the last question was read: program, names, what else it may be
  :kb NAME        begin anew over another knowledge base ('world', a file); :kb alone: over which
  :help           this
  :quit           end (also Ctrl-D); Ctrl-C drops what is being typed or answered
Tab completes names of the knowledge base, the arrows bring earlier questions back."""

COMMANDS = (":help", ":kb", ":quit", ":trace", ":trace off", ":trace on", ":why")


class Loading:
    """Makes a conversation in a thread of its own, while a user types."""

    def __init__(self, steps: Callable[[], Iterator[Conversation | None]]) -> None:
        self._steps = steps
        self._made: Conversation | None = None
        self._error: BaseException | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="loading")

    def start(self) -> None:
        """Begin, once."""
        self._thread.start()

    def _work(self) -> None:
        try:
            for made in self._steps():
                self._made = made
                if self._stopped:
                    return
        except BaseException as error:  # raised where the conversation is asked for
            self._error = error

    @property
    def now(self) -> Conversation | None:
        """The conversation if it is there already."""
        return None if self._thread.is_alive() else self._made

    def wait(self) -> Conversation:
        """The conversation once it is there; raises what went wrong with it."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._made is not None
        return self._made

    def stop(self) -> None:
        """Give up behind the step that is under way."""
        self._stopped = True
        self._thread.join()


class Dialogue:
    """Reads lines, answers questions and obeys commands until there are no more.

    ``steps`` makes a conversation over a knowledge base (None: that of the run), the last one that
    it yields; ``show`` prints a turn, ``explain`` how it came about, ``fail`` what cannot be read.
    """

    def __init__(
        self,
        steps: Callable[[str | None], Iterator[Conversation | None]],
        ask: Callable[[Conversation, str, bool], Turn],
        show: Callable[[Turn, Conversation], None],
        explain: Callable[[Turn, Conversation], None],
        fail: Callable[[str, KoplError], None],
    ) -> None:
        self._steps, self._ask, self._show = steps, ask, show
        self._explain, self._fail = explain, fail
        self._trace = False
        self._loading = Loading(lambda: steps(None))
        self._failed = 0

    # --- where lines come from ----------------------------------------------------------------

    def on_terminal(self, greeting: str) -> int:
        """Converse on a terminal; 0 when the user ends it."""
        print(greeting)
        lines = Line(lambda: self._loading.now)
        self._loading.start()  # behind all that comes before the prompt
        try:
            while True:
                try:
                    line = input(PROMPT)
                except EOFError:
                    print()
                    break
                except KeyboardInterrupt:
                    print("  (:quit or Ctrl-D ends)")
                    continue
                lines.keep(line)
                try:
                    if not self._obey(line):
                        break
                except KeyboardInterrupt:
                    print("(interrupted)")
        finally:
            self._loading.stop()
        return 0

    def from_pipe(self) -> int:
        """Answer every line of standard input; 0 when all could be read."""
        self._loading.start()
        try:
            for line in sys.stdin:
                if not self._obey(line):
                    break
                sys.stdout.flush()
            self._loading.wait()
        finally:
            self._loading.stop()
        return 1 if self._failed else 0

    # --- what lines say -----------------------------------------------------------------------

    def _obey(self, line: str) -> bool:
        """Do what a line says; False where it ends the conversation."""
        line = line.strip()
        word, _, rest = line.partition(" ")
        if word in (":quit", ":q", ":exit"):
            return False
        if not line:
            return True
        if not line.startswith(":"):
            self._answer(self._loading.wait(), line)
        elif word == ":help":
            print(HELP)
        elif word == ":trace":
            self._switch_trace(rest.strip())
        elif word == ":why":
            talk = self._loading.wait()
            if talk.turns:
                self._explain(talk.turns[-1], talk)
            else:
                print("nothing has been asked yet")
        elif word == ":kb":
            self._change_kb(rest.strip())
        else:
            near = near_names(word, [one for one in COMMANDS if " " not in one], 1)
            hint = f" is {near[0]} meant?" if near else ""
            print(f"there is no command {word};{hint} :help lists them")
        return True

    def _answer(self, talk: Conversation, said: str) -> None:
        try:
            turn = self._ask(talk, said, self._trace)
        except KoplError as error:
            self._failed += 1
            self._fail(said, error)
            return
        self._show(turn, talk)

    def _switch_trace(self, wanted: str) -> None:
        if wanted not in ("", "on", "off"):
            print("write :trace, :trace on or :trace off")
            return
        if wanted:
            self._trace = wanted == "on"
            return
        talk = self._loading.wait()
        if not talk.turns:
            print("nothing has been asked yet")
            return
        last = talk.turns.pop()
        self._show(self._ask(talk, last.said, True), talk)

    def _change_kb(self, name: str) -> None:
        if not name:
            print(self._loading.wait().kb)
            return
        before = self._loading
        self._loading = Loading(lambda: self._steps(name))
        self._loading.start()
        try:
            talk = self._loading.wait()
        except (KoplError, KeyboardInterrupt) as error:
            self._loading = before
            print(f"kopl: {error or 'interrupted'}; it stays as it was", file=sys.stderr)
            return
        print(f"{name}: {talk.kb}; the conversation begins anew")


# --- the line that is typed -----------------------------------------------------------------------


class Line:
    """Arrows, history and completion, where Python has readline; nothing where it has not."""

    def __init__(self, made: Callable[[], Conversation | None]) -> None:
        try:
            import readline
        except ImportError:  # Windows
            self._readline = None
            return
        self._readline, self._made = readline, made
        self._names: tuple[KnowledgeBase, Names] | None = None
        self._found: list[str] = []
        self._listed: list[str] = []  # the same without what stands before it in the line
        self._file = history_file()
        if self._file is not None:
            with suppress(OSError):  # there is none yet, or it cannot be read
                readline.read_history_file(self._file)
        readline.set_history_length(KEPT)
        readline.set_completer(self._complete)
        # The whole line is completed, as names have blanks.
        readline.set_completer_delims("")
        is_editline = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_editline else "tab: complete")
        if hasattr(readline, "set_completion_display_matches_hook"):
            readline.set_completion_display_matches_hook(self._list)

    def keep(self, line: str) -> None:
        """Write the file of the history, so that it outlives whatever happens next."""
        if self._readline is None or self._file is None or not line.strip():
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._file.exists():
                os.close(os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600))
            self._readline.write_history_file(self._file)
        except OSError:
            self._file = None  # a home that cannot be written into

    def _complete(self, text: str, state: int) -> str | None:
        if state == 0:
            self._found = self._completions(text)
        return self._found[state] if state < len(self._found) else None

    def _completions(self, text: str) -> list[str]:
        if text.startswith(":"):
            self._listed = [one for one in COMMANDS if one.startswith(text)]
            return self._listed
        if (talk := self._made()) is None:
            return []
        if self._names is None or self._names[0] is not talk.kb:
            self._names = talk.kb, Names(talk.kb)
        start, names = self._names[1].completions(text)
        self._listed = names
        if len(names) > 1:  # what is typed stays; readline adds what all of them go on with
            return [text + name[len(text) - start :] for name in names]
        return [text[:start] + name for name in names]

    def _list(self, text: str, found: Sequence[str], longest: int) -> None:
        """Show what the line may go on with, without what stands before it in all of them."""
        assert self._readline is not None
        print(
            f"\n{'   '.join(self._listed)}\n{PROMPT}{self._readline.get_line_buffer()}",
            end="",
            flush=True,
        )


class Names:
    """The names and aliases of a knowledge base, to be found by how they begin."""

    def __init__(self, kb: KnowledgeBase) -> None:
        from parsers.spelling import written

        called = {*kb.called("entity"), *kb.called("concept")} - {""}
        self._written = written
        self._sorted = sorted((written(name), name) for name in called)

    def completions(self, line: str, most: int = 60) -> tuple[int, list[str]]:
        """The names that the last words of a line begin, of as many words as possible.

        With the place in the line at which these words begin.
        """
        words = [at for at in range(len(line)) if at == 0 or line[at - 1] in " \"'(-"]
        for at in words[-MOST_WORDS:]:
            if line[at:].strip() and (found := self._beginning(line[at:], most)):
                return at, found
        return len(line), []

    def _beginning(self, text: str, most: int) -> list[str]:
        wanted = self._written(text) + " " * text.endswith(" ")
        at, found = bisect_left(self._sorted, (wanted, "")), []
        for spelt, name in self._sorted[at : at + most]:
            if not spelt.startswith(wanted):
                break
            if self._written(name[: len(text)]) == wanted.rstrip():  # not behind "http://"
                found.append(name)
        return found


def history_file() -> Path | None:
    """Where questions are kept: KOPL_HISTORY, else the user's folder of states; None when "off"."""
    wanted = os.environ.get("KOPL_HISTORY")
    if wanted is not None:
        return None if wanted in ("", "off") else Path(wanted)
    if root := os.environ.get("XDG_STATE_HOME"):
        return Path(root) / "kopl-toolkit" / "history"
    try:
        return Path.home() / ".local" / "state" / "kopl-toolkit" / "history"
    except RuntimeError:
        return None
