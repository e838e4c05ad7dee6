"""The page of `kopl report` in a browser: readable for all, on narrow windows, on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kopl_cli import main
from tests.serve.browser.watching import assert_accessible, assert_fits

PROGRAMS = [
    {
        "question": "Which neighbours do Norway and Finland share?",
        "program": 'QueryName(And(Relate(Find("Norway"), "shares border with", "forward"),'
        ' Relate(Find("Finland"), "shares border with", "forward")))',
    },
    {"program": 'Count(Relate(Find("Nrway"), "capital", "forward"))'},
    {"question": "<b>What?</b>" + "x" * 400, "program": "Fnd(Norway)"},
    {"program": 'QueryName(Relate(Find("Nrway"), "capital", "forward"))', "answer": "Oslo"},
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("report")
    given, out = folder / "given.jsonl", folder / "page.html"
    given.write_text("".join(json.dumps(one) + "\n" for one in PROGRAMS))
    assert main(["report", "--kb", "world", "--programs", str(given), "-o", str(out)]) == 1
    return out.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1200])
def test_the_page_reads_well(watch: Any, address: str, scheme: str, width: int) -> None:
    viewport = {"width": width, "height": 800}
    page = watch.page(address, color_scheme=scheme, viewport=viewport)
    # The page's own policy forbids scripts; the checks are not the page's.
    for summary in page.get_by_text("It rests on").all():
        summary.click()
    assert page.get_by_role("article").count() == len(PROGRAMS)
    assert page.get_by_text("Norway | shares border with | Sweden").first.is_visible()
    assert_fits(page)
    assert_accessible(page)


def test_paper_shows_what_is_folded(watch: Any, address: str) -> None:
    page = watch.page(address)
    fact = page.get_by_text("Norway | shares border with | Sweden").first
    assert not fact.is_visible()
    page.emulate_media(media="print")
    assert fact.is_visible()
