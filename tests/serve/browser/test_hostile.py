"""Names that look like markup, quotes, control characters, very long ones: they stay texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from kb import Builder, Quantity, write_snapshot
from tests.serve.browser.screens import SCREENS, address, settle
from tests.serve.browser.watching import assert_fits

NAMES = {
    "markup": "<img src=x onerror='window.hit=1'><script>window.hit=1</script><b>bold</b>",
    "quotes": "\"'`);}--></style></script>{{7*7}}${7*7}",
    "long": "abcdefghi " * 1000,
    "unbroken": "w" * 10_000,
    "right to left": "\u202eabc \u05e9\u05dc\u05d5\u05dd\u2066 \u0645\u0631\u062d\u0628\u0627",
    "control": "a\x00b\x07c\x1b[31md\x7fe\u2028f\ufefff",
    "addresses": "javascript:window.hit=1",
}

# Characters of a text that a request may have without being refused.
LONGEST = 400


@pytest.fixture(scope="package")
def hostile(browser: Any, servers: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a server whose names are all awkward."""
    folder = tmp_path_factory.mktemp("hostile")
    builder = Builder()
    for number, name in enumerate(NAMES.values()):
        builder.add_concept(f"c{number}", name)
    for number, name in enumerate(NAMES.values()):
        one = f"e{number}"
        builder.add_entity(one, name, [f"c{number}"], aliases=[f"alias {name}"])
        builder.add_attribute(one, name, name, {name: name})
        builder.add_attribute(one, "size", Quantity(number, name.strip()))
    for number, name in enumerate(NAMES.values()):
        builder.add_fact(f"e{number}", name, f"e{(number + 1) % len(NAMES)}", {name: name})
    write_snapshot(builder.build(), folder / "hostile.kopl")
    return str(servers.start("--kb", folder / "hostile.kopl", folder=folder))


def shows(name: str) -> str:
    """A program that the name stands in more than once."""
    text = json.dumps(name)
    return f'QueryAttrQualifier(Relate(Find({text}), {text}, "forward"), {text}, {text}, {text})'


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_texts(hostile: str, watch: Any, name: str) -> None:
    text = NAMES[name]
    if len(text) > LONGEST:
        watch.allowed |= {400, 413, 422}  # some requests cannot be so long
    page = watch.page(hostile, viewport={"width": 400, "height": 800})
    for screen in SCREENS:
        for state in ({}, {"q": text, "p": shows(text)}):
            page.goto(address(hostile, screen, **state))
            settle(page)
            assert page.evaluate("() => window.hit") is None
            assert page.locator("main img[src='x'], main script, main b, main style").count() == 0
            assert_fits(page)


def test_things_and_kinds_with_such_names_are_shown(hostile: str, watch: Any) -> None:
    page = watch.page(hostile, viewport={"width": 400, "height": 800})
    for number, text in enumerate(NAMES.values()):
        states = [{"id": f"e{number}"}, {"look": text}]
        for state in [*states, {"concept": text}] if len(text) < LONGEST else states:
            page.goto(f"{hostile}/#/base?{urlencode(state)}")
            settle(page)
            assert page.evaluate("() => window.hit") is None
            assert_fits(page)


def test_questions_and_remarks_are_kept_as_they_stand(
    hostile: str, watch: Any, tmp_path: Path
) -> None:
    page = watch.page(address(hostile, "queue"))
    page.evaluate(
        """async (names) => {
            for (const one of names) {
                const said = {question: one.slice(0, 2000), verdict: 'unclear',
                              note: one.slice(0, 500), author: one.slice(0, 80)};
                const answer = await fetch('/api/corrections', {
                    method: 'POST', body: JSON.stringify(said),
                    headers: {'Content-Type': 'application/json'}});
                if (!answer.ok) throw new Error(await answer.text());
            }
        }""",
        [*NAMES.values()],
    )
    page.reload()
    kept = page.get_by_role("region", name="Saved corrections").get_by_role("listitem")
    kept.nth(len(NAMES) - 1).wait_for()
    assert page.evaluate("() => window.hit") is None
    assert_fits(page)
