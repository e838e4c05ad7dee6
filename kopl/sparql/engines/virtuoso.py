"""A Virtuoso server of our own in a folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb.rdf.iri import BASE
from kopl.sparql.engines.endpoint import Virtuoso
from kopl.sparql.errors import (
    EngineError,
    MissingPackageError,
    NotUnderstoodError,
    RefusedError,
    TimedOutError,
    UnreachableError,
)
from kopl_base.errors import ReadError, WriteError
from kopl_base.servers import (
    Background,
    LocalServer,
    Ports,
    ServerError,
    find_program,
    listens,
    run_program,
)

if TYPE_CHECKING:
    from kb import KnowledgeBase

GRAPH = BASE + "graph"
INSTALL = "apt-get install virtuoso-opensource-7-bin"


_CONFIGURATION = """\
; Written by kopl. All names are relative to this folder, in which the server runs.
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
ErrorLogLevel = 7
FileExtend = 200
MaxCheckpointRemap = 2000
Striping = 0

[TempDatabase]
DatabaseFile = virtuoso-temp.db
TransactionFile = virtuoso-temp.trx
MaxCheckpointRemap = 2000
Striping = 0

[Parameters]
ServerPort = 127.0.0.1:{port}
; Pauses of seconds while somebody waits for an answer; the loader makes its own checkpoint.
CheckpointInterval = 0
NumberOfBuffers = {buffers}
MaxDirtyBuffers = {dirty}
DirsAllowed = load
ServerThreads = 20
; Its compiler multiplies unions out; programs of ten and more calls need more than 400 MB of it.
MaxMemPoolSize = 2000000000

[HTTPServer]
ServerPort = 127.0.0.1:{http_port}
ServerThreads = 10

[SPARQL]
DefaultGraph = {graph}
ResultSetMaxRows = 1000000
MaxQueryExecutionTime = {limit}
MaxQueryCostEstimationTime = 400
"""

# Pages of 8 KB (and what administers them); 170,000 hold a graph of 3.4 million triples.
_MOST_BUFFERS = 170_000
_BUFFER_BYTES = 8700


@dataclass(frozen=True)
class Status:
    """What is known about the server of a folder; ports are 0 before it was first started."""

    folder: str
    running: bool
    port: int = 0
    http_port: int = 0
    pid: int = 0

    @property
    def url(self) -> str:
        """The address of its SPARQL endpoint."""
        return f"http://127.0.0.1:{self.http_port}/sparql"


class VirtuosoServer:
    """A Virtuoso whose every file is in one folder and which listens on this machine only.

    ``up`` starts it, ``load`` fills it, ``down`` stops it; another process may do each. The
    password of its administrator is drawn at random and kept in the folder; queries need none.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()
        # As it was started here; another process may have done so.
        self._server: LocalServer | None = None

    def status(self) -> Status:
        """Whether it runs, and where."""
        state = self._state()
        running = self._process().lives() and listens(state.get("http_port", 0))
        return Status(str(self.folder), running, **state)

    def up(
        self,
        port: int | None = None,
        http_port: int | None = None,
        buffers: int | None = None,
        *,
        limit: int = 30,
        wait: float = 60.0,
    ) -> Status:
        """Start it, unless it runs; returns when it answers.

        Ports that are not given are free ones; ``limit`` is the server's time limit for a query in
        seconds. Raises MissingPackageError without Virtuoso, UnreachableError when it does not
        answer after ``wait`` seconds or ends before.
        """
        now = self.status()
        if now.running:
            self._secure()
            return now
        find_binaries()
        self._process().end()  # it may run without answering
        # Virtuoso makes files that everybody may read.
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.folder / "load").mkdir(exist_ok=True)
        except OSError as error:
            raise WriteError(f"{self.folder}: cannot be made: {error.strerror}") from None
        self._server = LocalServer(
            f"Virtuoso in {self.folder}",
            partial(self._command, buffers=_buffers(buffers), limit=limit),
            online=" Server online at",
            ports=[port, http_port],
            folder=self.folder,
            log=self.folder / "virtuoso.out",
            detached=True,
            began=self._began,
        )
        try:
            self._server.start(wait=wait, taken=self._cannot_listen)
        except ServerError as error:
            self._keep({**self._state(), "pid": 0})
            raise UnreachableError(
                f"Virtuoso in {self.folder} {error.what}; the end of its log: {self._log_end()}"
            ) from None
        self._secure()
        return self.status()

    def load(self, file: Path | str, graph: str = GRAPH, *, wait: float = 3600.0) -> None:
        """Put an N-Triples file (or .nt.gz) into a graph, which is emptied before.

        Raises UnreachableError when the server does not run, ReadError with the loader's words for
        a file that it cannot read (the graph is then empty), TimedOutError when a step takes longer
        than ``wait`` seconds.
        """
        self._running()
        source = Path(file).resolve()
        if not source.is_file():
            raise ReadError("there is no such file to load", source=str(file))
        if re.search(r"[\x00-\x20<>\"'{}|^`\\]", graph) or ":" not in graph:
            raise NotUnderstoodError(f"{graph!r} cannot be the name of a graph; give an IRI")
        # The loader takes a pattern (with % and _) for a file below a folder that it may read.
        name = f"data-{secrets.token_hex(6)}.nt" + (".gz" if source.suffix == ".gz" else "")
        link = self.folder / "load" / name
        link.symlink_to(source)
        try:
            self.sql("delete from DB.DBA.load_list;", wait=60)
            self.sql(f"log_enable(3, 1); sparql clear graph <{graph}>;", wait=wait)
            self.sql(f"ld_dir('load', '{name}', '{graph}');", wait=60)
            self.sql("log_enable(2, 1); rdf_loader_run();", wait=wait)
            self.sql("checkpoint;", wait=wait)
            # Plans made for the graph when it was empty are kept otherwise, and with them a count
            # over what was just loaded goes on for ever.
            self.sql("__ddl_changed('DB.DBA.RDF_QUAD');", wait=60)
            rows = self.sql(
                "select concat('STATE ', cast(ll_state as varchar), ' ', coalesce(ll_error, ''))"
                " from DB.DBA.load_list;",
                wait=60,
            )
        finally:
            link.unlink(missing_ok=True)
        found = re.search(r"STATE (\d+) ?(.*)", rows)
        if found is None or found[1] != "2" or found[2].strip():
            said = found[2].strip() if found else "it did not take the file"
            # The lines before the bad one are there; half a graph would answer wrongly.
            self.sql(f"log_enable(3, 1); sparql clear graph <{graph}>;", wait=wait)
            raise ReadError(
                f"Virtuoso's loader refused it, the graph is empty now: {said}", source=str(file)
            )

    def load_kb(self, kb: KnowledgeBase, graph: str = GRAPH, *, wait: float = 3600.0) -> None:
        """Put a knowledge base into a graph, which is emptied before; errors as of `load`."""
        from kb.rdf import write_rdf

        self._running()
        path = self.folder / "load" / f"kb-{secrets.token_hex(6)}.nt"
        try:
            write_rdf(kb, path, "nt", base=BASE, held=True)
            self.load(path, graph, wait=wait)
        finally:
            path.unlink(missing_ok=True)

    def down(self, *, wait: float = 60.0) -> None:
        """Stop it; what was loaded stays. Does nothing when it does not run."""
        process = self._process()
        if process.lives():
            with contextlib.suppress(EngineError):
                self.sql("shutdown;", wait=wait)
            if not process.ended(wait if listens(self._state()["port"]) else min(wait, 10.0)):
                process.end()
        self._keep({**self._state(), "pid": 0})

    def engine(self, *, graph: str = GRAPH, base: str = BASE, **options: Any) -> Virtuoso:
        """The engine that asks it; the options are those of `Endpoint`."""
        ini = (self.folder / "virtuoso.ini").read_text("utf-8")
        found = re.search(r"MaxQueryExecutionTime = (\d+)", ini)
        server_limit = float(found[1]) if found else None
        return Virtuoso(
            self._running().url, graph=graph, base=base, server_limit=server_limit, **options
        )

    def sql(self, text: str, *, wait: float = 60.0) -> str:
        """What statements of its own language print, as its administrator.

        Raises NotUnderstoodError for a statement that fails and TimedOutError after ``wait``
        seconds.
        """
        return self._sql(text, self._password(), wait)

    # --- inside -------------------------------------------------------------------------------

    def _sql(self, text: str, password: str, wait: float) -> str:
        client = _binary("isql-vt", "isql-v", "isql")
        command = [client, f"127.0.0.1:{self._state()['port']}", "dba", password]
        command += ["VERBOSE=OFF", "BANNER=OFF", "PROMPT=OFF", "ECHO=OFF", "ERRORS=STDOUT"]
        try:
            status, said = run_program([*command, f"EXEC={text}"], wait)
        except TimeoutError:
            raise TimedOutError(
                f"Virtuoso in {self.folder} did not finish {text.split('(')[0]!r} within {wait:g} s"
            ) from None
        if failed := re.search(r"\*\*\* Error (\w+): (.*)", said):
            words = re.sub(r"^\[Virtuoso \w+\]|\[Virtuoso Server\]", "", failed[2]).strip()
            raise NotUnderstoodError(f"Virtuoso in {self.folder}: {failed[1]} {words}")
        if status:
            raise UnreachableError(
                f"Virtuoso in {self.folder} does not answer: {said.strip()[-300:]}"
            )
        return said

    def _command(self, ports: Ports, *, buffers: int, limit: int) -> list[str]:
        """What starts it, after its configuration was written."""
        text = _CONFIGURATION.format(
            port=ports[0],
            http_port=ports[1],
            buffers=buffers,
            dirty=buffers * 3 // 4,
            graph=GRAPH,
            limit=limit,
        )
        (self.folder / "virtuoso.ini").write_text(text, "utf-8")
        return [find_binaries()[0], "+configfile", "virtuoso.ini", "+foreground"]

    def _began(self, pid: int, ports: Ports) -> None:
        _confine(pid)
        self._keep({"port": ports[0], "http_port": ports[1], "pid": pid})

    def _cannot_listen(self, _: str) -> bool:
        return re.search("Failed.* listen", self._log_end()) is not None

    def _secure(self) -> None:
        """Give the administrator a password of this folder's own in place of "dba"."""
        if self._password() != "dba":
            return
        password = secrets.token_hex(16)
        path = self.folder / "password"
        # Kept before it is set: a password that nobody knows would be the end of the database.
        handle = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(password)
        self._sql(f"user_set_password('dba', '{password}');", "dba", 60)
        os.replace(f"{path}.new", path)
        self._sql("checkpoint;", password, 60)

    def _password(self) -> str:
        try:
            return (self.folder / "password").read_text("ascii").strip()
        except FileNotFoundError:
            return "dba"

    def _running(self) -> Status:
        now = self.status()
        if not now.running:
            raise UnreachableError(
                f"no Virtuoso runs in {self.folder}; start it by: kopl sparql virtuoso up"
            )
        return now

    def _state(self) -> dict[str, int]:
        try:
            found = json.loads((self.folder / "virtuoso.json").read_text("utf-8"))
            return {name: int(found[name]) for name in ("port", "http_port", "pid")}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RefusedError(f"{self.folder}/virtuoso.json cannot be read: {error}") from None

    def _keep(self, state: dict[str, int]) -> None:
        if state.get("port"):
            path = self.folder / "virtuoso.json"
            path.with_suffix(".new").write_text(json.dumps(state) + "\n", "utf-8")
            os.replace(path.with_suffix(".new"), path)

    def _process(self) -> Background:
        """The server's process, or one that has ended."""
        pid = self._state().get("pid", 0)
        own = None if self._server is None else self._server.process
        return own if own is not None and own.pid == pid else Background(pid, is_ours=self._is_ours)

    def _is_ours(self, pid: int) -> bool:
        """Whether a process is Virtuoso."""
        with contextlib.suppress(OSError):
            return b"virtuoso" in Path(f"/proc/{pid}/cmdline").read_bytes()
        # No /proc: the server's own lock file names its process.
        with contextlib.suppress(OSError):
            return f"VIRT_PID={pid}" in (self.folder / "virtuoso.lck").read_text("ascii")
        return False

    def _log_end(self) -> str:
        lines: list[str] = []
        for name in ("virtuoso.log", "virtuoso.out"):
            with contextlib.suppress(OSError):
                text = (self.folder / name).read_text("utf-8", "replace")
                lines += [line for line in text.splitlines() if line.strip()][-3:]
        return " / ".join(lines) or "(empty)"


@contextlib.contextmanager
def running(folder: Path | str, **options: Any) -> Iterator[VirtuosoServer]:
    """A server that runs for the length of a block; the options are those of `up`."""
    server = VirtuosoServer(folder)
    server.up(**options)
    try:
        yield server
    finally:
        server.down()


def find_binaries() -> Sequence[str]:
    """The paths of the server and its client; raises MissingPackageError without them."""
    return (_binary("virtuoso-t"), _binary("isql-vt", "isql-v", "isql"))


def _binary(*names: str) -> str:
    if found := find_program(*names):
        return found
    raise MissingPackageError(f"{names[0]} of Virtuoso 7 is not installed: {INSTALL}")


def _confine(pid: int) -> None:
    """Leave a quarter of the memory to others, where the system can.

    A join of everything with everything fills any memory, and no setting of Virtuoso's ends it; it
    is to stop this server and not the whole machine. What was loaded survives.
    """
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.prlimit(pid, resource.RLIMIT_AS, (memory // 4 * 3, memory // 4 * 3))


def _buffers(given: int | None) -> int:
    """As many pages as hold a large graph, but at most a quarter of the memory."""
    if given is not None:
        return max(1000, given)
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 20_000
    return max(2000, min(_MOST_BUFFERS, memory // 4 // _BUFFER_BYTES))


def as_json(status: Status) -> dict[str, Any]:
    """A status as a JSON object."""
    return {**asdict(status), "url": status.url}
