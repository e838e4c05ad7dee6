"""Every case writes what its record says."""

from __future__ import annotations

import sys

import pytest

from tests.frozen.cases import CASES, PYTHON
from tests.frozen.record import RECORDS, check, record_of, renew


@pytest.mark.parametrize("name", CASES)
def test_commands_write_what_they_wrote(name: str) -> None:
    case = CASES[name]
    for package in case.needs:
        pytest.importorskip(package)
    if case.usage and sys.version_info[:2] != PYTHON:
        pytest.skip(f"argparse words its help differently in Python {sys.version.split()[0]}")
    check(name, record_of(case))


def test_every_record_has_a_case() -> None:
    assert {path.stem for path in RECORDS.iterdir()} == set(CASES)


def test_one_byte_makes_a_difference() -> None:
    name = next(iter(CASES))
    text = (RECORDS / f"{name}.txt").read_text("utf-8")
    check(name, text)
    with pytest.raises(AssertionError, match=f"{name} writes something else now"):
        check(name, text.replace("e", "a", 1))


def test_records_are_renewed_by_name_only(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["nothing-of-the-kind"], ["--all", "usage"]):
        with pytest.raises(SystemExit):
            renew(arguments)
    assert "say which records to renew, or --all" in capsys.readouterr().err
