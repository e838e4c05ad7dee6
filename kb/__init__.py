"""Knowledge bases with qualifiers: values, facts, reading, writing, checking, indexes."""

from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

# Others use the names of our packages, too. Who does is looked up by a file that is loaded by its
# path: the name kb may lead elsewhere. (Packed into one file, the toolkit has no such paths.)
_found = spec_from_file_location("kb.conflict", Path(__file__).parents[1] / "kb" / "conflict.py")
assert _found and _found.loader
_conflict = module_from_spec(_found)
with suppress(FileNotFoundError):
    _found.loader.exec_module(_conflict)
    _conflict.refuse_others("kb")
    __dir__ = _conflict.names_of("kb")

from kb.check import check, check_file
from kb.errors import KoplError, ReadError, SnapshotError, ValueReadError, WriteError
from kb.kqapro import from_kqapro, read_kqapro, write_kqapro
from kb.lines import read_lines, write_lines
from kb.load import load, read
from kb.model import Builder
from kb.packages import version
from kb.problems import Problem, Problems
from kb.rdf import write_rdf
from kb.rdfread import read_rdf
from kb.snapshot import read_snapshot, write_snapshot
from kb.store import KnowledgeBase, LiteralFact, RelationalFact
from kb.values import Condition, Date, Quantity, Value, Year

__all__ = [
    "Builder",
    "Condition",
    "Date",
    "KnowledgeBase",
    "KoplError",
    "LiteralFact",
    "Problem",
    "Problems",
    "Quantity",
    "ReadError",
    "RelationalFact",
    "SnapshotError",
    "Value",
    "ValueReadError",
    "WriteError",
    "Year",
    "check",
    "check_file",
    "from_kqapro",
    "load",
    "read",
    "read_kqapro",
    "read_lines",
    "read_rdf",
    "read_snapshot",
    "write_kqapro",
    "write_lines",
    "write_rdf",
    "write_snapshot",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # looked up only then, because reading metadata takes time
        return version()
    raise AttributeError(f"module 'kb' has no attribute {name!r}")
