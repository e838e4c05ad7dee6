"""Programs as one HTML page: that it says all, stands alone, and shows names as they are."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import kb
from kopl import Executor, read
from kopl.diagram import chart
from kopl_cli import main
from kopl_cli.report import _STYLE, one_page, page, report, tokens

CAPITAL = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202eabc\u0000\u0007\ud800",
    "x" * 10_000,
    "</title></style><b>",
    "קוּבּ",
]


class Tags(HTMLParser):
    """The tags of a page with their attributes, and its text; checks that they close."""

    VOID = frozenset({"meta", "rect", "path", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.open = "", list[str]()
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def stands_alone(tags: Tags) -> None:
    """No script, nothing from elsewhere, ids once, links into the page."""
    names = {tag for tag, _ in tags.found}
    assert not names & {"script", "img", "iframe", "link", "object", "form", "b"}
    ids = [given["id"] for _, given in tags.found if "id" in given]
    assert len(ids) == len(set(ids))
    for _, given in tags.found:
        assert not [name for name in given if name.startswith("on") or name in ("src", "style")]
        if target := given.get("href"):
            assert target.startswith("#") and target[1:] in ids
        if target := given.get("marker-end"):
            assert target[5:-1] in ids


@pytest.fixture(scope="module")
def executor() -> Executor:
    return Executor(kb.load("world"))


def written(tmp_path: Path, lines: list[Any], *options: str) -> tuple[int, str]:
    given, out = tmp_path / "given.jsonl", tmp_path / "page.html"
    given.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    status = main(["report", "--kb", "world", "--programs", str(given), "-o", str(out), *options])
    return status, out.read_text("utf-8")


def test_a_page_tells_all_of_its_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"question": "What is Norway's capital?", "program": CAPITAL, "answer": "Oslo"},
        {"question": "Is it Bergen?", "program": CAPITAL, "answer_form": {"is": "Bergen"}},
        {"program": json.loads(json.dumps([{"function": "FindAll", "inputs": []}]))},
        {"question": "And now?", "program": CAPITAL.replace("Norway", "Nrway"), "answer": "Oslo"},
        {"question": "How so?", "program": "Relat(Find(Norway))"},
        {"question": "Nothing?"},
        {"program": CAPITAL, "answer_form": "exists"},
        "no object",
    ]
    status, text = written(tmp_path, lines, "--title", "What we know")
    assert status == 1
    told = capsys.readouterr()
    assert "8 programs, of which 4 failed" in told.out
    tags = Tags(text)
    stands_alone(tags)
    said = tags.text
    assert "What we know" in said and "8 programs; 4 failed; 1 with another answer" in said
    assert "Answer: Oslo" in said and "Answer: no" in said
    assert "18,496" in said or re.search(r"[\d,]+ answers", said)
    assert "No answer: nothing is left at Find('Nrway')" in said
    assert "What there is instead: " in said and "there is no function 'Relat'" in said
    assert "Expected: Oslo" in said
    assert "Norway | capital | Oslo" in said
    assert len([1 for tag, given in tags.found if given.get("class") == "chart"]) == 4
    assert written(tmp_path, lines, "--title", "What we know")[1] == text


def test_a_page_of_programs_that_run_is_a_success(tmp_path: Path) -> None:
    status, text = written(tmp_path, [{"program": CAPITAL}])
    assert status == 0
    assert "<nav" not in text
    assert "Programs of" in text


def test_what_cannot_be_read_leaves_the_old_page(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    out.write_text("old")
    given = tmp_path / "given.json"
    given.write_text('[{"program": "FindAll()"}, ')
    arguments = ["report", "--kb", "world", "--programs", str(given), "-o", str(out)]
    assert main(arguments) == 2
    assert out.read_text() == "old"
    assert [*tmp_path.glob("*.unfinished")] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_as_they_are(name: str) -> None:
    builder = kb.Builder()
    plain = name.replace("\ud800", "?").replace("\u0000", "?")
    builder.add_concept("c", plain)
    builder.add_entity("e", plain, ["c"])
    builder.add_fact("e", plain, "c", {plain: plain})
    builder.add_attribute("e", plain, plain)
    small = builder.build()
    executor = Executor(small)
    program = f"Relate(Find({json.dumps(plain)}), {json.dumps(plain)}, forward)"
    found = [
        report(executor, {"question": name, "program": program, "answer": name}),
        report(executor, {"question": name, "program": f"Find({json.dumps(name)})"}),
        report(executor, {"question": name, "program": name}),
    ]
    text = "".join(page(small, found, name))
    text.encode("utf-8")
    tags = Tags(text)
    stands_alone(tags)
    assert not re.search("[\x00-\x08\x0b-\x1f]", text)
    if name.startswith("<script"):
        assert tags.text.count(name) > 5


def test_one_program_has_a_page_of_its_own(executor: Executor) -> None:
    text = one_page(executor, read(CAPITAL), "What is Norway's capital?")
    tags = Tags(text)
    stands_alone(tags)
    assert ("title", {}) in tags.found and "<nav" not in text
    assert "What is Norway&#x27;s capital?" in text
    assert "default-src 'none'" in text
    assert Tags(one_page(executor, read("FindAll()"))).text.count("…") > 0


def test_the_colours_are_those_of_the_page_and_of_the_chart(executor: Executor) -> None:
    """What the style names is there; each colour of the chart has one for either scheme."""
    for name in set(re.findall(r"var\((--[a-z0-9-]+)\)", _STYLE)):
        assert f"{name}:" in tokens()
    result = executor.run('Count(Relate(Find("Nrway"), "capital", "forward"))', trace=True)
    picture = chart(result.program, result.trace, marked=[0])
    styled = set(re.findall(r"\.([a-z]+)", re.sub(r"\bvar\(.*?\)", "", _STYLE)))
    used = set(" ".join(re.findall(r'class="([a-z ]+)"', picture)).split())
    # Other calls and ways look as boxes and lines do.
    assert used - styled == {"plain", "way"}
