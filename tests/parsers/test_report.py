"""Several runs beside one another and the paper: JSON, tables, predictions, the HTML file."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kb import KnowledgeBase, KoplError
from kopl.example import Example
from kopl.text import read
from parsers.evaluation import evaluate
from parsers.evaluation.confidence import Decoding, Temperature
from parsers.evaluation.html import departures, worst_errors, write_html
from parsers.evaluation.report import (
    PUBLISHED,
    TABLE_5,
    Comparison,
    ScoredRun,
    same_questions,
    write_predictions,
)
from parsers.evaluation.tables import footnotes, sheets, text_of
from parsers.languages import KoplLanguage
from tests.parsers.test_evaluation import AREA, CAPITAL, COUNT, COUNTRIES, VERIFY, Told

EVIL = '<script>alert("x")</script>&\0'
STRANGER = 'QueryName(Relate(Find("Sweden"), capital, forward))'


def scored(language: KoplLanguage, name: str, *predicted: str) -> ScoredRun:
    """A run on four questions, whose predictions have the probabilities e^-1."""
    examples = [
        Example("area?", read(AREA), "323802 square kilometre", id="q1"),
        Example(f"capital {EVIL}?", read(CAPITAL), "Oslo"),
        Example("count?", read(COUNT), "8"),
        Example("verify?", read(VERIFY), "no"),
    ]
    texts = {one.question: [text] for one, text in zip(examples, predicted, strict=True)}
    report = evaluate(Told(language, texts), examples, ["Oslo", "8"])
    temperature = Temperature(2.0, "log-probability", Decoding().kind, 9, 4)
    return ScoredRun(name, Decoding(), report, temperature, (f"remark {EVIL}",))


@pytest.fixture
def comparison(small: KnowledgeBase) -> Comparison:
    """A run with two of four right, and one with three; one question only the first has right."""
    language = KoplLanguage(small)
    first = scored(language, "runs/a", AREA, CAPITAL, "Count(Count(FindAll()))", COUNTRIES)
    second = scored(language, f"runs/{EVIL}", AREA, STRANGER, COUNT, VERIFY)
    return Comparison("data.jsonl", [first, second])


def test_as_json(comparison: Comparison) -> None:
    found = json.loads(json.dumps(comparison.to_json()))
    first, second = found["runs"]
    assert first["run"] == "runs/a" and first["questions"] == 4
    assert first["accuracy"]["default"]["overall"]["share"] == 0.5
    assert second["accuracy"]["default"]["overall"]["count"] == 3
    assert second["accuracy"]["default"]["skills"]["zero-shot"] == pytest.approx(
        {"count": 2, "of": 2, "share": 1.0, "low": 0.342380, "high": 1.0}, abs=1e-5
    )
    assert first["verdicts"]["did not type"] == 1 and first["decoding"]["beams"] == 1
    # All probabilities are 1/e; at temperature 2 the confidences are e ** -0.5.
    assert first["calibration"]["error before"] == pytest.approx(0.5 - math.exp(-1))
    assert first["calibration"]["error after"] == pytest.approx(math.exp(-0.5) - 0.5)
    [difference] = found["differences"]
    assert (difference["first"], difference["difference"]) == ("runs/a", 0.25)
    assert (difference["only the first right"], difference["only the second right"]) == (1, 2)
    assert difference["p"] == 1.0  # 1 of 3 tosses or worse
    assert "Wilson" in found["intervals"] and "McNemar" in found["difference test"]
    assert len(found["published, percent"]) == len(PUBLISHED)


def test_the_published_rows() -> None:
    rows = {(row.name, row.source): row for row in PUBLISHED}
    assert len(rows) == len(PUBLISHED)
    bart = rows["BART KoPL", TABLE_5]
    assert (bart.overall, bart.skills["qualifier"]) == (90.55, 84.76)
    assert bart.skills["zero-shot"] == 89.59
    assert rows["RNN KoPL", TABLE_5].skills["verify"] == 42.13
    assert rows["RNN SPARQL", TABLE_5].overall == 41.98
    [by_hops] = [row for row in PUBLISHED if row.hops]
    assert by_hops.hops == {"2-3": 92.40, "4-5": 87.71, "6-7": 86.41, "8-9": 86.51}
    for row in PUBLISHED:
        figures = [row.overall or 0.0, *row.skills.values(), *row.hops.values()]
        assert all(0 <= figure <= 100 for figure in figures)


def test_tables(comparison: Comparison) -> None:
    for sheet in sheets(comparison):
        assert all(len(row) == len(sheet.headings) for row in sheet.rows)
    rows = [row for sheet in sheets(comparison) for row in sheet.rows]
    assert any(row[0].startswith("RNN KoPL (paper") and row[1] == "43.85" for row in rows)
    assert ("types", "75.00 (30.1 to 95.4)", "100.00 (51.0 to 100.0)") in rows
    alone = Comparison("data", comparison.runs[:1])
    assert not any("difference" in sheet.headings[0] for sheet in sheets(alone))
    assert footnotes(alone) == [f"runs/a: remark {EVIL}"]


@pytest.mark.parametrize("brief", [True, False])
@pytest.mark.parametrize("paper", [True, False])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_text_fits_80_columns(
    comparison: Comparison, brief: bool, paper: bool, count: int
) -> None:
    """One's own figures first, the published ones only where they are asked for."""
    runs = [replace(comparison.runs[n % 2], name=f"runs/{n}") for n in range(count)]
    shown = text_of(Comparison("data", runs), brief=brief, paper=paper)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    if count == 1:
        assert lines[0].startswith("runs/0: 50.00 % of 4 questions right (95 %: 15.0 to 85.0; by")
    else:
        assert lines[0].startswith("A  runs/0: 50.00 % of 4 questions right")
        assert "B less A" in shown and "+25.00" in shown and "Newcombe" in shown
    assert ("RNN KoPL" in shown) == paper == ("PER-KBQA *" in shown)
    assert ("by hops" in shown) == (paper or not brief)
    assert any(line.split()[:2] == ["multi-hop", "50.00"] for line in lines)
    assert any(line.split()[:4] == ["did", "not", "type", "1"] for line in lines)
    assert "expected calibration error 13.21 %" in shown
    if paper:
        row = next(line for line in lines if line.startswith("RNN KoPL "))
        assert row.split()[2:4] == ["43.85", "37.71"]
        # One's own rows stand beside the published ones, by the published rule, in both tables.
        own = [line for line in lines if line.startswith("this run" if count == 1 else "run A ")]
        assert len(own) == 2 and len(own[0].split()) == 10
        rule = runs[0].report.table("published").overall.value
        assert rule is not None and own[0].split()[2] == f"{100 * rule:.2f}"


def test_predictions(comparison: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    write_predictions(path, comparison)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["run"] for line in lines] == ["runs/a"] * 4 + [f"runs/{EVIL}"] * 4
    assert [line["right"] for line in lines] == [True, True, False, False, True, False, True, True]
    assert lines[0]["id"] == "q1" and lines[1]["question"] == f"capital {EVIL}?"
    assert lines[0]["confidence"] == pytest.approx(math.exp(-0.5))


class Page(HTMLParser):
    """Checks that tags fit together; notes tags, attributes and texts."""

    EMPTY = ("meta", "br")

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_html_file(comparison: Comparison, small: KnowledgeBase, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    language = KoplLanguage(small)
    errors = [worst_errors(run, language, 5) for run in comparison.runs]
    assert [[one.judged.example.question for one in found] for found in errors] == [
        ["count?", "verify?"], [f"capital {EVIL}?"],
    ]  # fmt: skip
    path = tmp_path / "r.html"
    write_html(path, comparison, errors)
    content = path.read_text("utf-8")
    page = Page(content)
    # Nothing is loaded and nothing runs.
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert not {"src", "href", "data", "action"} & {name for name, _ in page.attributes}
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert not re.search(r"@import|url\((?!#)", content)
    assert "default-src 'none'" in content and "\0" not in content
    assert '<script>alert("x")</script>&\N{REPLACEMENT CHARACTER}' in "".join(page.texts)
    # Both programs with their values; what does not type has none.
    texts = "\n".join(page.texts)
    for shown in (
        "\N{EN SPACE}Norway",
        "\N{EN SPACE}Oslo",
        "\N{EN SPACE}Stockholm",
        "did not type",
        "several answers",
    ):
        assert shown in texts
    assert "it does not run, so there are no values" in texts
    assert page.tags.count("details") == 3
    # Two charts an error; a diagram for each run.
    assert page.tags.count("svg") == 10
    assert content.count('<rect class="wrong"') == 3
    write_html(tmp_path / "again.html", comparison, errors)
    assert (tmp_path / "again.html").read_bytes() == path.read_bytes()


def test_html_needs_a_package(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(KoplError, match=r"^HTML reports: the package Jinja2 is not .*\[html\]"):
        write_html(tmp_path / "r.html", comparison, [[], []])
    assert not list(tmp_path.iterdir())


def test_a_program_too_large_for_a_chart(small: KnowledgeBase, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    language = KoplLanguage(small)
    large = "Count(" + "Relate(" * 80 + "FindAll()" + ", capital, forward)" * 80 + ")"
    run = scored(language, "a", large, CAPITAL, COUNT, VERIFY)
    write_html(tmp_path / "r.html", Comparison("x", [run]), [worst_errors(run, language, 1)])
    assert "82 calls, too many for a chart" in (tmp_path / "r.html").read_text("utf-8")


def test_the_worst_errors_are_the_most_confident(small: KnowledgeBase) -> None:
    run = scored(KoplLanguage(small), "a", STRANGER, STRANGER, STRANGER, VERIFY)
    judged = run.report.judged
    for one, log_probability in zip(judged, (-3.0, -0.1, -0.1, -0.01), strict=True):
        object.__setattr__(one.prediction, "log_probability", log_probability)
    assert run.worst(9) == [1, 2, 0]  # the surest is right
    assert run.worst(1) == [1]


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        (CAPITAL, CAPITAL, []),
        (CAPITAL, STRANGER, [0]),  # another entity; all above it follows from that
        (CAPITAL, 'QueryName(Relate(Find("Norway"), capital, backward))', [1]),
        (CAPITAL, 'Count(Relate(Find("Norway"), capital, forward))', [2]),
        (COUNT, "Count(Or(FindAll(), Find(Norway)))", [1]),
    ],
)
def test_where_a_program_leaves_the_gold_one(
    gold: str, predicted: str, expected: list[int]
) -> None:
    assert departures(read(gold), read(predicted)) == expected


def test_runs_must_be_asked_the_same() -> None:
    one, other = Example("a?", read(COUNT), "1"), Example("b?", read(COUNT), "1")
    same_questions([one, other], [one, other], "x")
    for second in ([one], [one, one], [one, other, one]):
        with pytest.raises(KoplError, match=r"^x: .*from question [23] on; say with --data"):
            same_questions([one, other], second, "x")
