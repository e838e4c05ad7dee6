"""The page of models: its table is up to date, and the model that it adds runs as it stands.

``python -m tests.cqa.models.test_document`` writes the table anew.
"""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from cqa.evaluation.evaluation import evaluate
from cqa.graphs.files import save
from cqa.models.opening import model_rows, open_reasoner
from cqa.models.settings import REASONERS, Settings, model_class
from kopl_base.tables import markdown
from kopl_cli.cqa import train as command
from tests.conftest import ROOT
from tests.cqa.models.worlds import grid, single_links
from tests.cqa.small_benchmark import run

PAGE = Path(ROOT) / "docs" / "cqa-models.md"
TABLE = re.compile(r"(<!-- models: .*? -->\n)(.*?)(<!-- end of models -->)", re.DOTALL)


def table() -> str:
    """The table as the page has it."""
    head, *rows = model_rows()
    cells = [[f"`{row[0]}`", *row[1:]] for row in rows]
    return markdown(head, cells, [False] * len(head))


def test_the_table_is_up_to_date() -> None:
    found = TABLE.search(PAGE.read_text("utf-8"))
    assert found is not None and found[2] == table()
    assert len(model_rows()) == 1 + len(REASONERS.own)
    assert all(row[1] for row in model_rows())


def test_the_model_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = PAGE.read_text("utf-8").split("## Add a model")[1].split("```python\n")[1]
    code = code.split("```")[0]
    assert code.count("\n") <= 62
    (tmp_path / "my_package.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("meet", "my_package:Meet", "kopl.reasoners")
    monkeypatch.setitem(REASONERS.__dict__, "brought", {"meet": entry})
    world = grid()
    save(world, tmp_path / "graph")
    given = {
        "model": "meet", "device": "cpu", "training.epochs": 4, "training.batch": 64,
        "training.learning_rate": 0.02, "queries.steps": 60, "queries.types": "1p 2p 2i",
        "queries.count": 150,
    }  # fmt: skip
    pairs = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
    folder = tmp_path / "run"
    assert run(command, "--graph", str(tmp_path / "graph"), "-o", str(folder), *pairs) == 0
    samples = single_links(world)
    trained = evaluate(open_reasoner(str(folder), world), samples, world.entity_count).metrics
    new = model_class("meet").create(Settings.of("meet"), world)
    assert trained["mrr"] > 3 * evaluate(new, samples, world.entity_count).metrics["mrr"] > 0


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(TABLE.sub(lambda found: found[1] + table() + found[3], text), "utf-8")
