"""What the server holds: knowledge bases with their executors, the run that is asked, limits.

A `Playground` is shared by all requests, which run in several threads. What a module of the server
keeps beside it is a part of its own (`Playground.part`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kb import KnowledgeBase
from kb.lookup import NameLists
from kopl.drafts import Draft, read_draft
from kopl.errors import LimitError
from kopl.executor import Executor, Limits
from kopl.program import Call
from kopl_base.errors import KoplError
from kopl_cli.serve.routes import LONGEST, RequestError

if TYPE_CHECKING:
    from kopl.sparql.evaluate import SparqlExecutor
    from kopl.sparql.wikidata import Wikidata

Part = TypeVar("Part")

# Knowledge bases that are held at once, uploaded ones among them.
MOST_BASES = 8
# Facts up to which rdflib loads a knowledge base in seconds.
SMALL = 5_000


@dataclass(frozen=True)
class ServeLimits:
    """What requests may use.

    ``seconds`` and ``ids`` of one program or query, ``calls`` of a program, ``rows`` of a list that
    comes back, ``waiting`` questions, and ``requests`` under way at once.
    """

    seconds: float = 10
    ids: int = 5_000_000
    calls: int = 300
    rows: int = 100
    waiting: int = 64
    requests: int = 64


class Base:
    """A knowledge base that is served: under an ``id``, with what runs programs on it."""

    def __init__(
        self, id: str, name: str, kb: KnowledgeBase, limits: ServeLimits, *,
        place: str | None = None, uploaded: bool = False,
    ) -> None:  # fmt: skip
        self.id, self.name, self.kb, self.limits = id, name, kb, limits
        # Where it was read from, as commands name it.
        self.place, self.uploaded = place, uploaded
        bounds = Limits(seconds=limits.seconds, ids=limits.ids, depth=limits.calls)
        self.executor = Executor(kb, limits=bounds)
        self.names = NameLists(kb)
        # The file of the properties of Wikidata that its relations and keys are.
        self.properties: Path | None = None
        self._lock = threading.Lock()
        self._sparql: dict[str, SparqlExecutor] = {}

    def told(self) -> dict[str, Any]:
        """What the page shows of it."""
        kb = self.kb
        return {
            "id": self.id,
            "name": self.name,
            "entities": kb.entity_count,
            "concepts": kb.concept_count,
            "facts": len(kb.relational) + len(kb.literals),
            "relations": len(kb.relations),
            "keys": len(kb.attribute_keys),
            "fingerprint": kb.fingerprint,
            "uploaded": self.uploaded,
        }

    @cached_property
    def concepts(self) -> list[dict[str, Any]]:
        """The concepts with how many instances each has, those of most first."""
        kb = self.kb
        found = []
        for node in range(kb.entity_count, kb.node_count):
            name = kb.name_of(node)
            parents = [kb.name_of(parent) for parent in kb.parents(node)]
            count = len(kb.instances_of(name))
            found.append({"id": kb.id_of(node), "name": name, "count": count, "parents": parents})
        return sorted(found, key=lambda one: (-one["count"], one["name"]))

    def draft(self, program: Any) -> Draft:
        """A program in any spelling, which may have holes; raises KoplError."""
        if isinstance(program, str) and len(program) > LONGEST:
            raise LimitError(f"a program may have {LONGEST:,} characters")
        draft = read_draft(program)
        if draft.size > self.limits.calls:
            raise LimitError(
                f"the program has {draft.size} calls; the limit is {self.limits.calls}"
            )
        return draft

    def read(self, program: Any) -> Call:
        """A program without holes in any spelling; raises ProgramError."""
        return self.draft(program).call()

    @property
    def wikidata(self) -> Wikidata:
        """How queries are written for Wikidata; raises RequestError where nothing tells that."""
        from kopl.sparql.properties import read_properties
        from kopl.sparql.wikidata import Wikidata

        if self.properties is None:
            raise RequestError(
                "nothing says which properties of Wikidata its relations and keys are",
                status=422, field="style", to_try="start the server with --properties FILE, which"
                " 'kopl sparql properties' writes",
            )  # fmt: skip
        return Wikidata(properties=read_properties(self.properties))

    @property
    def engines(self) -> tuple[str, ...]:
        """What can run programs on it, whether or not its packages are there."""
        facts = len(self.kb.relational) + len(self.kb.literals)
        return ("kopl", "oxigraph", "rdflib") if facts <= SMALL else ("kopl", "oxigraph")

    def queries(self, name: str) -> SparqlExecutor:
        """What runs SPARQL on an embedded engine; made when the first query comes, and once.

        Raises MissingPackageError, and RequestError for an engine that would take minutes.
        """
        if name not in self.engines:
            raise RequestError(
                f"{name} is for small knowledge bases", status=422, field="engine",
                to_try="the engine oxigraph",
            )  # fmt: skip
        with self._lock:
            if name not in self._sparql:
                from kopl.sparql.engine import require
                from kopl.sparql.engines import embedded
                from kopl.sparql.evaluate import SparqlExecutor

                require(name)
                engine, seconds = embedded(name, self.kb), self.limits.seconds
                self._sparql[name] = SparqlExecutor(engine, kb=self.kb, timeout=seconds)
            return self._sparql[name]

    def close(self) -> None:
        """Stop what runs queries."""
        for executor in self._sparql.values():
            executor.close()
        self._sparql.clear()


@dataclass(frozen=True)
class ServedRun:
    """The trained run that is asked, as far as its files tell without loading it."""

    folder: Path
    model: str
    fingerprint: str
    kb: str
    learned_from: str | None = None

    @classmethod
    def of(cls, folder: Path) -> ServedRun:
        """The run in a folder; raises KoplError where there is none that can be asked."""
        from kopl_cli.last_run import check_run

        check_run(folder)
        try:
            settings = json.loads((folder / "settings.json").read_text("utf-8"))
            described = json.loads((folder / "parser.json").read_text("utf-8"))
            begun = settings.get("start_from") or None
            return cls(
                folder, str(settings["model"]), str(described["fingerprint"]),
                str(described["kb"]), None if begun is None else str(begun),
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise KoplError(f"{folder}: not a run that can be asked: {error}") from None

    def told(self) -> dict[str, Any]:
        """What the page shows of it."""
        return {
            "folder": str(self.folder),
            "name": self.folder.name,
            "model": self.model,
            "fingerprint": self.fingerprint,
            "kb": self.kb,
            "learned_from": self.learned_from,
        }


@dataclass
class Playground:
    """All that requests share. The knowledge base that was added first is the usual one."""

    limits: ServeLimits = field(default_factory=ServeLimits)
    run: ServedRun | None = None
    # The name of a reasoner for incomplete graphs, as `kopl cqa ask --reasoner` has it.
    reasoner: str | None = None
    # Where what is made here lies: corrections without a run, the queue, new runs, what was sent.
    folder: Path = Path("runs/playground")
    # The config that a first training goes by; None for the default one.
    config: str | None = None
    # Set when the server stops; whoever waits looks at it.
    closing: threading.Event = field(default_factory=threading.Event)
    bases: dict[str, Base] = field(default_factory=dict)
    # Runs that were trained here, by the fingerprint of the knowledge base that each is for.
    trained: dict[str, ServedRun] = field(default_factory=dict)
    # What modules add to /api/info of a knowledge base.
    tellers: list[Callable[[Playground, Base], dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._parts: dict[type, Any] = {}

    def add(
        self, kb: KnowledgeBase, name: str, *, place: str | None = None, uploaded: bool = False
    ) -> Base:
        """Serve one more knowledge base; raises RequestError where there are too many."""
        with self._lock:
            if len(self.bases) >= MOST_BASES:
                raise RequestError(
                    f"{MOST_BASES} knowledge bases are held already", status=503,
                    to_try="take one away that was uploaded",
                )  # fmt: skip
            id = plain = _id(name)
            number = 2
            while id in self.bases:
                id, number = f"{plain}-{number}", number + 1
            base = Base(id, name, kb, self.limits, place=place, uploaded=uploaded)
            self.bases[id] = base
            return base

    def remove(self, id: str) -> None:
        """Let go of an uploaded knowledge base; raises RequestError for another one."""
        with self._lock:
            base = self.base(id)
            if not base.uploaded:
                raise RequestError("only what was uploaded can be taken away", field="kb")
            del self.bases[id]
        base.close()

    def base(self, id: str | None) -> Base:
        """The knowledge base of that id, without one the first; raises RequestError."""
        bases = self.bases
        if id is None:
            return next(iter(bases.values()))
        if (found := bases.get(id)) is None:
            raise RequestError(
                f"there is no knowledge base {id[:100]!r} here", status=404, field="kb"
            )
        return found

    def run_of(self, base: Base) -> ServedRun | None:
        """The run that is asked about a knowledge base: one for it, else the usual one, if any."""
        usual, fingerprint = self.run, base.kb.fingerprint
        if usual is not None and usual.fingerprint == fingerprint:
            return usual
        return self.trained.get(fingerprint, usual)

    def part(self, kind: type[Part]) -> Part:
        """What a module keeps: one object of that class, made of the playground when first asked.

        One that has ``close`` is closed with the server.
        """
        with self._lock:
            if kind not in self._parts:
                self._parts[kind] = kind(self)  # type: ignore[call-arg]
            found: Part = self._parts[kind]
            return found

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold others off while the playground is changed."""
        with self._lock:
            yield

    def close(self) -> None:
        """Stop all that runs."""
        self.closing.set()
        with self._lock:
            parts, self._parts = [*self._parts.values()], {}
        for part in parts:
            if close := getattr(part, "close", None):
                close()
        for base in self.bases.values():
            base.close()


def _id(name: str) -> str:
    """A short id that may stand in an address."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.casefold())
    return "-".join(filter(None, kept.split("-")))[:40] or "kb"
