"""Knowledge bases with qualifiers: values, facts, reading, writing, checking, indexes."""

from kb.conflict import refuse_foreign_package

refuse_foreign_package()

from kb.check import check, check_file
from kb.errors import KoplError, ReadError, SnapshotError, ValueReadError, WriteError
from kb.kqapro import from_kqapro, read_kqapro, write_kqapro
from kb.lines import read_lines, write_lines
from kb.load import load, read
from kb.model import Builder
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
