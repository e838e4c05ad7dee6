"""Knowledge bases with qualifiers: values, facts, reading, writing, checking, indexes."""

from kopl_base.conflict import names_of, refuse_others

# Others use the names of our packages, too.
refuse_others("kb")
__dir__ = names_of("kb")

from kb.kqapro import from_kqapro, read_kqapro, read_lines, write_kqapro, write_lines
from kb.load import check_file, load, read
from kb.model import Builder
from kb.problems import Problem, Problems, check
from kb.rdf import write_rdf
from kb.rdf.reader import read_rdf
from kb.snapshot import SnapshotError, read_snapshot, write_snapshot
from kb.store import KnowledgeBase, LiteralFact, RelationalFact
from kb.values import Condition, Date, Quantity, Value, ValueReadError, Year
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_base.packages import version

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
