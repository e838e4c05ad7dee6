"""Knowledge bases with qualifiers: values, facts, reading, writing, checking, indexes."""

from kb.conflict import refuse_foreign_package

refuse_foreign_package()

from kb.check import check, check_file  # noqa: E402
from kb.errors import KoplError, ReadError, SnapshotError, ValueReadError  # noqa: E402
from kb.kqapro import from_kqapro, read_kqapro, write_kqapro  # noqa: E402
from kb.lines import read_lines, write_lines  # noqa: E402
from kb.load import load, read  # noqa: E402
from kb.model import Builder  # noqa: E402
from kb.problems import Problem, Problems  # noqa: E402
from kb.snapshot import read_snapshot, write_snapshot  # noqa: E402
from kb.store import KnowledgeBase, LiteralFact, RelationalFact  # noqa: E402
from kb.values import Condition, Date, Quantity, Value, Year  # noqa: E402

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
    "Year",
    "check",
    "check_file",
    "from_kqapro",
    "load",
    "read",
    "read_kqapro",
    "read_lines",
    "read_snapshot",
    "write_kqapro",
    "write_lines",
    "write_snapshot",
]
