"""Every screen for everybody: no violation that axe-core finds, by keyboard, narrow, enlarged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.serve.browser.screens import SCREENS, address, settle
from tests.serve.browser.watching import assert_accessible, assert_fits, tabbed

PROGRAM = (
    'SelectAmong(QFilterNum(Relate(Find("Norway"), "shares border with", "forward"),'
    ' "length", "700 kilometre", ">"), "area", "largest")'
)
QUESTION = "Which country that borders Norway by more than 700 kilometres has the largest area?"
STATES: list[dict[str, str]] = [{}, {"q": QUESTION, "p": PROGRAM}]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(world: str, watch: Any, scheme: str) -> None:
    page = watch.page(world, color_scheme=scheme, reduced_motion="reduce")
    for screen in SCREENS:
        for state in STATES:
            page.goto(address(world, screen, **state))
            settle(page)
            assert_accessible(page)


@pytest.mark.parametrize("width", [320, 640, 1280])
def test_no_screen_is_wider_than_its_window(world: str, watch: Any, width: int) -> None:
    # 640 is a window of 1280 that is enlarged to 200 %.
    scale = 2 if width == 640 else 1
    size = {"width": width, "height": 720}
    page = watch.page(world, viewport=size, device_scale_factor=scale)
    for screen in SCREENS:
        for state in STATES:
            page.goto(address(world, screen, **state))
            settle(page)
            assert_fits(page)


def test_every_screen_is_reached_by_its_key_and_by_tab(world: str, watch: Any) -> None:
    page = watch.page(address(world, "share"))
    settle(page)
    titles = []
    for number, screen in enumerate(SCREENS, 1):
        page.keyboard.press("Escape")
        page.evaluate("() => document.activeElement?.blur()")
        page.keyboard.press(str(number))
        page.wait_for_url(f"**/#/{screen}*")
        settle(page)
        titles.append(page.title())
        current = page.locator("nav a[aria-current=page]")
        assert current.get_attribute("data-tab") == screen
        # All that can be used is reached with Tab, and shows where the focus is.
        reached = page.evaluate(
            """() => [...document.querySelectorAll('main a[href], main button, main input, '
                + 'main select, main textarea, main summary, main [tabindex="0"]')]
                .filter((one) => !one.disabled && one.checkVisibility() && one.tabIndex >= 0
                    && !one.closest('details:not([open]) > :not(summary)')).length"""
        )
        page.evaluate("() => document.querySelector('main').focus()")
        seen = 0
        for _ in range(reached):
            page.keyboard.press("Tab")
            seen += page.evaluate(
                """() => {
                    const at = document.activeElement;
                    if (!at || !at.closest('main')) return 0;
                    const look = getComputedStyle(at);
                    return look.outlineStyle !== 'none' || look.boxShadow !== 'none' ? 1 : 0;
                }"""
            )
        assert seen >= reached, f"{screen}: {seen} of {reached} show the focus"
    assert len(set(titles)) == len(SCREENS)


def test_tabs_are_links_that_the_keyboard_opens(world: str, watch: Any) -> None:
    page = watch.page(world)
    settle(page)
    tabbed(page, lambda: page.evaluate("() => document.activeElement?.dataset.tab") == "base")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/base*")
    page.get_by_role("heading", name="Knowledge base", level=1).wait_for()


def test_nothing_moves_for_those_who_want_no_motion(world: str, watch: Any) -> None:
    page = watch.page(address(world, "program", p=PROGRAM), reduced_motion="reduce")
    settle(page)
    moving = page.evaluate(
        "() => document.getAnimations().filter((one) => one.effect.getTiming().duration > 1).length"
    )
    assert moving == 0


def test_a_link_with_another_token_says_so(own_servers: Any, watch: Any, tmp_path: Path) -> None:
    server = own_servers.start("--token", "first", "--folder", tmp_path / "kept", folder=tmp_path)
    watch.allowed.add(401)
    page = watch.page(f"{server}/#token=second")
    expect(page.get_by_role("alert")).to_contain_text("not the one of the server")
    page.get_by_label("Token, or the whole link").fill(f"{server}/#token=first")
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_label("Your question")).to_be_visible()


def test_a_link_to_what_is_gone_leads_on(world: str, watch: Any) -> None:
    page = watch.page(address(world, "base", kb="gone"))
    expect(page.get_by_role("alert")).to_contain_text("there is no knowledge base 'gone'")
    page.get_by_role("button", name="Use the first knowledge base").click()
    expect(page.get_by_role("heading", name="Knowledge base")).to_be_visible()
