"""Running the cases, and their records: ``python -m tests.frozen.record NAME…`` renews records."""

from __future__ import annotations

import argparse
import difflib
import hashlib
import io
import json
import logging
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from kopl_cli import main
from tests.frozen.cases import CASES, Case
from tests.frozen.chat import chat_server

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORDS = HERE / "records"

# How much of a line and of a file a record shows; the rest is there as a hash.
SHOWN_CHARACTERS, SHOWN_LINES = 500, 70

# What differs between two runs of the same code. They apply to every record.
PLACEHOLDERS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # An epoch's line is wrapped at a place that depends on the speed, and this one on the folder.
    (r"(?s)epoch \d+/\d+: loss .*? s(?= |\n)", lambda found: " ".join(found[0].split())),
    (r"(?s)knowledge base: .*? \((\d+) entities\)", r"knowledge base: <path> (\1 entities)"),
    (r"\d+ examples/s", "<speed> examples/s"),
    (r'"examples a second": [\d.]+', '"examples a second": <speed>'),
    (r'"seconds": [\d.]+', '"seconds": <seconds>'),
    (r'"ms": [\d.]+', '"ms": <milliseconds>'),
    # kopl compare: the fastest, the usual and the slowest program of an engine.
    (r"(?m)^((?:kopl|oxigraph|rdflib)\S*(?:\t\d+){3})(?:\t\d+\.\d+){3}$", r"\1\t<three times>"),
    (r"kopl-toolkit \d+\.\d+\.\d+", "kopl-toolkit <version>"),
    (r"which is kept in \S+", "which is kept in <folder>"),
    # Only said where it will take long.
    (r"(?m)^scoring and calibrating: about \d+ (s|minutes?)\n", ""),
    (r"(?m)^training: about .* on this machine\n", ""),
    (r"(?m)^making [\d,]+ questions: about \d+ (s|minutes?) more\n", ""),
    (r"(?m)\b\d+ s( in all|$)", r"<seconds> s\1"),
)

# Of networks: sums of floating-point numbers, of which the last digits depend on the processor.
ROUNDED = (r"\d+\.\d{4,}(e-\d+)?", lambda found: f"{float(found[0]):.3g}")


def record_of(case: Case) -> str:
    """What the case's commands print and write, as the text of its record."""
    parts = []
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as cache:
        folder = Path(name).resolve()
        given = _put_inputs(folder)
        with _in_folder(folder, cache):
            with chat_server() as (address, asked):
                for command in case.commands:
                    status, printed, told = _run(command.replace("<server>", address), case)
                    parts.append(f"$ kopl {command}\n{printed}{told}[{status}]\n")
            # Several requests are under way at a time, so that they come in any order.
            requests = "".join(sorted(f"{json.dumps(request)}\n" for request in asked))
            parts += _files(folder, case, given)
            if asked:
                parts.append(f"=== what the server was asked\n{_shown(requests.encode(), False)}")
    return "\n".join(parts).replace(address, "<server>")


@contextmanager
def _in_folder(folder: Path, cache: str) -> Iterator[None]:
    """Work there, with an environment that is the same everywhere."""
    before = Path.cwd()
    settings = {
        # Processes that a command starts run the code of this checkout, too.
        "PYTHONPATH": str(ROOT),
        "KOPL_CACHE_DIR": cache,
        "KOPL_API_KEY": "a key",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TZ": "UTC",
    }
    os.chdir(folder)
    try:
        with mock.patch.dict(os.environ, settings):
            for name in [n for n in os.environ if n.startswith("KOPL_") and n not in settings]:
                del os.environ[name]
            yield
    finally:
        os.chdir(before)


def _put_inputs(folder: Path) -> Mapping[str, bytes]:
    """Copy all inputs there; the content of each."""
    shutil.copytree(HERE / "inputs", folder, dirs_exist_ok=True)
    for file in ("tiny.json", "golden.jsonl", "bookshop.map.yaml"):
        shutil.copy(ROOT / "tests" / "data" / file, folder)
    script = ROOT / "docs" / "examples" / "make_bookshop.py"
    subprocess.run([sys.executable, script, folder], check=True, stdout=subprocess.DEVNULL)
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _run(command: str, case: Case) -> tuple[int, str, str]:
    """The exit status of a command, what it prints and its messages; ``> FILE`` takes the first."""
    arguments = shlex.split(command)
    into = arguments.pop() if arguments[-2:-1] == [">"] else None
    if into:
        arguments.pop()
    # As at the start of a process: a command before this one may have set up the log.
    log = logging.getLogger("kb")
    log.handlers.clear()
    printed, told = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(printed))
        stack.enter_context(redirect_stderr(told))
        stack.enter_context(mock.patch.object(sys, "stdin", io.StringIO("")))
        stack.enter_context(_hidden(case.without))
        try:
            status = main(arguments)
        except SystemExit as left:
            status = left.code
        except ImportError as error:  # as the console script does
            print(f"kopl: {error}", file=told)
            status = 2
    log.handlers.clear()
    log.propagate = True
    texts = []
    for stream in (printed, told):
        stream.flush()
        texts.append(stream.buffer.getvalue())
    if into:
        Path(into).write_bytes(texts[0])
        texts[0] = b""
    return status, _shown(texts[0], case.rounded), _shown(texts[1], case.rounded, "! ")


@contextmanager
def _hidden(packages: tuple[str, ...]) -> Iterator[None]:
    """As if these packages were not installed."""
    # Their modules, too: one that was imported before is found without its package.
    loaded = dict.fromkeys(packages)
    loaded |= {n: m for n, m in sys.modules.items() if n.partition(".")[0] in packages}
    sys.modules.update(dict.fromkeys(loaded))
    try:
        yield
    finally:
        for name, module in loaded.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module


def _files(folder: Path, case: Case, given: Mapping[str, bytes]) -> Iterator[str]:
    """Every file that was written, with its content; one that is like an earlier one only by it."""
    seen: dict[bytes, str] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes()
        # A snapshot tells when it was made; what is in it is seen where it is read.
        wanted = path.suffix != ".kopl" and any(path.match(pattern) for pattern in case.files)
        if given.get(str(path)) == content or not wanted:
            continue
        content = READERS.get(path.suffix, Path.read_bytes)(path)
        if content in seen:
            yield f"=== {name}: the same as {seen[content]}\n"
            continue
        seen[content] = name
        yield f"=== {name}\n{_shown(content, case.rounded)}"


def _rows(path: Path) -> bytes:
    """The rows and the column types of a Parquet file; its other bytes hold versions."""
    from pyarrow import parquet

    table = parquet.read_table(path)
    types = [f"{field.name}: {field.type}" for field in table.schema]
    rows = [json.dumps(row, ensure_ascii=False, default=str) for row in table.to_pylist()]
    return "\n".join([*types, *rows, ""]).encode()


def _pickled(path: Path) -> bytes:
    """What a pickle holds, one entry a line; the order inside sets follows the hash seed."""
    found = pickle.loads(path.read_bytes())
    entries = found.items() if isinstance(found, dict) else enumerate(found)
    return "".join(f"{_sorted(key)}: {_sorted(value)}\n" for key, value in entries).encode()


def _sorted(found: Any) -> str:
    if isinstance(found, (set, frozenset)):
        return "{" + ", ".join(sorted(map(_sorted, found))) + "}"
    if isinstance(found, (tuple, list)):
        inner = ", ".join(map(_sorted, found))
        return f"({inner})" if isinstance(found, tuple) else f"[{inner}]"
    return repr(found)


READERS: Mapping[str, Callable[[Path], bytes]] = {".parquet": _rows, ".pkl": _pickled}


def _shown(content: bytes, rounded: bool, mark: str = "") -> str:
    """The content as lines of a record, each behind the mark; long ones and many are cut."""
    if not content:
        return ""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return f"[{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}]\n"
    for path, placeholder in ((Path.cwd(), "<folder>"), (ROOT, "<root>")):
        text = text.replace(str(path), placeholder)
    for pattern, replacement in (*PLACEHOLDERS, *([ROUNDED] if rounded else [])):
        text = re.sub(pattern, replacement, text)
    *lines, last = text.split("\n")
    if last:
        lines += [last, "[no end of line]"]
    # A carriage return is visible, and no reader takes it for an end of line.
    shown = [mark + _cut(line).replace("\r", "\\r") for line in lines[:SHOWN_LINES]]
    if len(lines) > SHOWN_LINES:
        shown.append(f"{mark}[… {len(lines)} lines, sha256 {_hash(text)}]")
    return "".join(f"{line}\n" for line in shown)


def _cut(line: str) -> str:
    if len(line) <= SHOWN_CHARACTERS:
        return line
    start = line[:SHOWN_CHARACTERS]
    return f"{start}[… {len(line)} characters, sha256 {_hash(line)[:16]}]"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check(name: str, text: str) -> None:
    """Raise AssertionError, with the lines that differ, where the text is not the record."""
    recorded = (RECORDS / f"{name}.txt").read_bytes().decode()
    if text != recorded:
        lines = difflib.unified_diff(
            recorded.split("\n"), text.split("\n"), "recorded", "now", lineterm="", n=2
        )
        raise AssertionError(f"{name} writes something else now:\n" + "\n".join(lines))


def renew(argv: list[str] | None = None) -> None:
    """Run the named cases and write what they wrote as their records."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.frozen.record", description=renew.__doc__
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--all", action="store_true", help="renew every record")
    arguments = parser.parse_args(argv)
    if bool(arguments.names) == arguments.all:
        parser.error("say which records to renew, or --all")
    if unknown := set(arguments.names) - CASES.keys():
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    for name in arguments.names or CASES:
        text = record_of(CASES[name])
        (RECORDS / f"{name}.txt").write_bytes(text.encode())


if __name__ == "__main__":
    renew()
