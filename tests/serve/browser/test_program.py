"""The screen where programs are written: by keyboard, step by step, in step with the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.serve.browser.watching import assert_accessible, assert_fits, tabbed

BORDERS = (
    'Count(And(Relate(Find("Norway"), "shares border with", "forward"),'
    ' Relate(Find("Finland"), "shares border with", "forward")))'
)
EMPTY = (
    'QueryName(FilterNum(Relate(Find("Sweden"), "capital", "forward"), "population", "9e9", ">"))'
)


def opened(watch: Any, address: str, **options: Any) -> Page:
    """A page that shows an address and listens to keys."""
    page: Page = watch.page(address, **options)
    expect(page.get_by_role("link", name="Program", exact=True)).to_be_visible()
    return page


def shown(world: str, program: str) -> str:
    """The address at which a program is shown."""
    return f"{world}/#/program?p={quote(program)}"


def written(page: Page) -> Any:
    """The program as text."""
    return page.get_by_role("textbox", name="Program", exact=True)


def answer(page: Page) -> Any:
    return page.get_by_role("region", name="What the program gives")


def calls(page: Page) -> Any:
    """The lines of the list of calls."""
    return page.locator(".call-head")


def field(page: Page, name: str) -> Any:
    return page.get_by_role("combobox", name=name, exact=True)


def has_focus(where: Any) -> Callable[[], bool]:
    return lambda: bool(where.evaluate("(one) => one === document.activeElement"))


def take(page: Page, name: str, typed: str, suggested: str) -> None:
    """Type into the field that has the focus, and choose what is suggested."""
    expect(field(page, name)).to_be_focused()
    page.keyboard.type(typed)
    option = page.get_by_role("option", name=re.compile(rf"^{re.escape(suggested)}\b"))
    expect(option.first).to_be_visible()
    for _ in range(20):
        page.keyboard.press("ArrowDown")
        if option.first.get_attribute("aria-selected") == "true":
            break
    page.keyboard.press("Enter")


def test_a_program_is_written_by_keyboard_alone(world: str, watch: Any) -> None:
    page = opened(watch, world)
    page.keyboard.press("2")
    start = page.get_by_role("link", name="Start with nothing")
    expect(start).to_be_visible()
    tabbed(page, has_focus(start))
    page.keyboard.press("Enter")
    take(page, "Which step?", "QueryAttr", "QueryAttr")
    # The focus goes to what is still missing.
    take(page, "Attribute", "popul", "population")
    take(page, "Input: a set of entities", "Find", "Find")
    take(page, "Name", "Norw", "Norway")
    expect(written(page)).to_have_value('QueryAttr(Find("Norway"), "population")')
    expect(answer(page).locator(".answer, .answers").first).to_be_visible()
    # Another step around the first one, and the same again without it.
    page.keyboard.press("Escape")
    expect(calls(page).first).to_be_focused()
    page.keyboard.press("a")
    take(page, "Which step shall take this one?", "Relate", "Relate")
    expect(field(page, "Relation")).to_be_focused()
    expect(written(page)).to_have_value('QueryAttr(Relate(Find("Norway"), ?, ?), "population")')
    take(page, "Relation", "capital", "capital")
    expect(answer(page)).not_to_contain_text("missing")
    page.keyboard.press("Escape")
    page.keyboard.press("Delete")
    expect(written(page)).to_have_value('QueryAttr(Find("Norway"), "population")')
    page.keyboard.press("Control+z")
    expect(written(page)).to_have_value(re.compile("Relate"))
    page.keyboard.press("Control+Shift+z")
    expect(written(page)).to_have_value('QueryAttr(Find("Norway"), "population")')


def test_a_program_may_be_as_deep_as_the_server_allows(world: str, watch: Any) -> None:
    deep = 'Find("Norway")'
    for _ in range(100):
        deep = f'Or({deep}, Find("Sweden"))'
    page = opened(watch, shown(world, deep))
    expect(calls(page)).to_have_count(201)
    expect(answer(page)).to_contain_text("2 answers")


def test_values_renew_from_the_changed_call_downwards(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, BORDERS))
    expect(answer(page)).to_contain_text("2")
    # While the new values are not there, those that the change does not reach stay.
    page.evaluate(
        """() => {
            const fetch = window.fetch;
            window.held = [];
            window.fetch = (address, options) => String(address).endsWith('api/run')
                ? new Promise((go) => window.held.push(() => go(fetch(address, options))))
                : fetch(address, options);
        }"""
    )
    calls(page).nth(2).click()
    field(page, "Name").fill("Estonia")
    page.keyboard.press("Escape")
    field(page, "Name").fill("Estonia")
    page.keyboard.press("Enter")
    expect(page.locator(".call.is-pending")).to_have_count(4)
    expect(calls(page).nth(1)).to_contain_text("Finland, Russia, Sweden")
    page.wait_for_function("() => window.held.length > 0")
    page.evaluate("() => window.held.forEach((go) => go())")
    expect(page.locator(".call.is-pending")).to_have_count(0)
    expect(calls(page).nth(2)).to_contain_text("Estonia")
    expect(answer(page)).to_contain_text("1")


def test_calls_are_swapped_and_changed_by_keys(world: str, watch: Any) -> None:
    page = opened(
        watch,
        shown(world, 'SelectBetween(Find("Norway"), Find("Finland"), "area", "less")'),
    )
    expect(answer(page)).to_contain_text("Norway")
    calls(page).first.focus()
    page.keyboard.press("s")
    expect(page.get_by_text("Swap #0 Find with which step?")).to_be_visible()
    expect(calls(page).first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(written(page)).to_have_value(re.compile(r'^SelectBetween\(Find\("Finland"\)'))
    # What cannot be swapped is said where it was tried, and nothing is lost.
    calls(page).nth(2).focus()
    page.keyboard.press("s")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("one lies in the other")
    expect(written(page)).to_have_value(re.compile(r'^SelectBetween\(Find\("Finland"\)'))
    calls(page).nth(2).focus()
    page.keyboard.press("e")
    expect(field(page, "Step")).to_be_focused()
    page.keyboard.press("Control+a")
    take(page, "Step", "QueryRelation", "QueryRelation")
    expect(written(page)).to_have_value('QueryRelation(Find("Finland"), Find("Norway"))')
    expect(answer(page)).to_contain_text("shares border with")


def test_enter_takes_nothing_that_was_not_meant(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, 'FilterNum(Find("Norway"), ?, ?, ?)'))
    calls(page).nth(1).focus()
    page.keyboard.press("e")
    # What stands there is marked: what is typed takes its place.
    page.keyboard.type("popul")
    expect(field(page, "Step")).to_have_value("popul")
    foot = page.locator(".combo-popup:not([hidden]) .combo-foot")
    expect(foot).to_contain_text("Nothing fits here")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(field(page, "Step")).to_have_value("FilterNum")
    # A function that does not fit here stands for no other one.
    page.keyboard.press("Control+a")
    page.keyboard.type("QFilterY")
    expect(foot).to_contain_text("Nothing fits here")
    page.keyboard.press("Enter")
    expect(field(page, "Step")).to_have_value("FilterNum")
    expect(written(page)).to_have_value('FilterNum(Find("Norway"), ?, ?, ?)')


def test_the_chart_is_walked_with_arrows_and_says_what_became_empty(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, EMPTY), viewport={"width": 1280, "height": 900})
    chart = page.get_by_role("group", name="Flow chart of the program")
    box = chart.get_by_role("button")
    expect(box).to_have_count(4)
    expect(box.nth(2)).to_have_accessible_name(re.compile("FilterNum population > 9e9; 0: nothing"))
    assert "is-culprit" in str(box.nth(2).get_attribute("class"))
    # One stop of Tab for the whole chart.
    expect(chart.locator('[tabindex="0"]')).to_have_count(1)
    chart.locator('[tabindex="0"]').focus()
    for key, name in (
        ("ArrowUp", "FilterNum"),
        ("ArrowUp", "Relate"),
        ("ArrowUp", "Find Sweden"),
    ):
        page.keyboard.press(key)
        expect(page.locator(":focus")).to_have_accessible_name(re.compile(name))
    page.keyboard.press("Enter")
    expect(page.locator(".call.is-open")).to_contain_text("Find Sweden")
    expect(box.first).to_have_attribute("aria-pressed", "true")
    # The reason, and mends that lead to something.
    expect(answer(page)).to_contain_text("Why nothing was found")
    answer(page).locator(".chip").first.click()
    expect(answer(page)).not_to_contain_text("Nothing was found")
    expect(box.nth(2)).not_to_have_accessible_name(re.compile("nothing"))


def test_facts_that_put_a_value_there(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, 'Relate(Find("Norway"), "head of state", "forward")'))
    calls(page).nth(1).click()
    value = page.locator(".call-result .chip").first
    expect(value).to_be_visible()
    name = value.inner_text()
    value.click()
    facts = page.locator(".call-facts .fact-card")
    expect(facts.first).to_contain_text("head of state")
    expect(facts.first).to_contain_text(name)
    expect(facts.first).to_contain_text("start time")
    expect(value).to_have_attribute("aria-pressed", "true")


def test_text_and_chart_are_in_step_with_errors_at_their_place(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, BORDERS))
    expect(calls(page)).to_have_count(6)
    text = written(page)
    text.fill('Count(Relate(Find("Norway"), "shares border with", "forward"))')
    expect(calls(page)).to_have_count(3)
    expect(answer(page)).to_contain_text("3")
    expect(page).to_have_url(re.compile("p=Count%28Relate"))
    text.fill('Count(Relate(Find("Norway")')
    expect(page.get_by_role("alert")).to_be_visible()
    expect(text).to_have_attribute("aria-invalid", "true")
    expect(calls(page)).to_have_count(3)  # what could be read last stays
    # A text that reads, with what does not fit together: said at that call.
    text.fill('Count(VerifyNum(QueryAttr(Find("Norway"), "area"), "many", ">"))')
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(calls(page).filter(has_text="does not fit").first).to_be_visible()
    calls(page).nth(2).click()
    expect(field(page, "Value")).to_have_attribute("aria-invalid", "true")
    assert_accessible(page)


def test_what_was_meant_for_another_screen_finds_its_way(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, 'Find("Norway")'))
    expect(calls(page)).to_have_count(1)
    written(page).fill("What is the capital of Norway?")
    page.get_by_role("link", name="Ask it as a question").click()
    expect(page.get_by_label("Your question")).to_have_value("What is the capital of Norway?")
    page.go_back()
    query = 'SELECT ?e WHERE { ?e <pred:name> "Norway" }'
    written(page).fill(query)
    page.get_by_role("link", name="Open it as a query").click()
    expect(page.get_by_label("Query (SPARQL)")).to_have_value(query)


def test_back_reload_and_two_pages(world: str, watch: Any) -> None:
    context = watch.context()
    page = opened(watch, world, context=context)
    other = opened(watch, shown(world, 'Find("Sweden")'), context=context)
    expect(calls(other)).to_contain_text("Sweden")
    page.keyboard.press("2")
    example = page.locator("#screen-program .examples a").first
    expect(example).to_be_visible()
    example.click()
    expect(calls(page).first).to_be_visible()
    first = written(page).input_value()
    page.get_by_role("button", name="New").click()
    expect(example).to_be_visible()
    page.go_back()
    expect(written(page)).to_have_value(first)
    written(page).fill('Find("Norway")')
    expect(calls(page)).to_have_count(1)
    page.reload()
    expect(written(page)).to_have_value('Find("Norway")')
    expect(calls(page)).to_contain_text("Norway")
    page.go_back()
    expect(example).to_be_visible()
    # What one page did, the other does not know.
    expect(written(other)).to_have_value('Find("Sweden")')
    other.reload()
    expect(written(other)).to_have_value('Find("Sweden")')


def test_everything_of_the_schema_only_when_it_is_asked_for(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, 'QueryAttr(Find("Norway"), "area")'))
    calls(page).nth(1).click()
    box = field(page, "Attribute")
    box.fill("atomic")
    expect(page.locator(".combo-popup:not([hidden]) .combo-foot")).to_contain_text(
        "Nothing is suggested"
    )
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.get_by_label("Suggest all of the schema, also what leads to nothing here").check()
    box.fill("atomic")
    expect(page.locator(".combo-option").first).to_contain_text("atomic")


def test_narrow_dark_and_without_motion(world: str, watch: Any) -> None:
    size = {"width": 320, "height": 640}
    page = opened(
        watch,
        shown(world, BORDERS),
        viewport=size,
        color_scheme="dark",
        reduced_motion="reduce",
    )
    expect(calls(page)).to_have_count(6)
    calls(page).nth(3).click()
    expect(field(page, "Relation")).to_be_visible()
    field(page, "Relation").click()
    expect(page.locator(".combo-option").first).to_be_visible()
    assert_fits(page)
    assert_accessible(page)
    moving = page.evaluate(
        """() => document.getAnimations().filter(
            (one) => one.effect.getComputedTiming().duration > 1).length"""
    )
    assert moving == 0


def test_what_was_typed_stands_for_the_best_suggestion(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, "Find(?)"))
    calls(page).first.click()
    # At once, before anything is suggested.
    field(page, "Name").fill("norw")
    page.keyboard.press("Enter")
    expect(written(page)).to_have_value('Find("Norway")')
    # What is not there is taken on purpose only.
    field(page, "Name").fill("norw")
    page.get_by_role("option", name="as it is").click()
    expect(written(page)).to_have_value('Find("norw")')
    # An arrow opens the list of an empty field and marks its first item.
    field(page, "Name").fill("")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    # A value may be any.
    page.goto(shown(world, 'FilterStr(Find("Norway"), "ISO 3166-1 alpha-2 code", ?)'))
    calls(page).last.click()
    field(page, "Value").fill("X")
    page.keyboard.press("Enter")
    expect(written(page)).to_have_value(re.compile('"X"'))


def test_undoing_by_key_keeps_the_focus(world: str, watch: Any) -> None:
    page = opened(watch, shown(world, 'Find("Norway")'))
    calls(page).first.focus()
    page.keyboard.press("a")
    page.keyboard.type("Rel")
    page.keyboard.press("Enter")
    expect(field(page, "Relation")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(calls(page).first).to_be_focused()
    expect(written(page)).to_have_value('Find("Norway")')
    page.keyboard.press("Control+Shift+z")
    expect(written(page)).to_have_value('Relate(Find("Norway"), ?, ?)')
    # From anywhere on the screen.
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Control+z")
    expect(written(page)).to_have_value('Find("Norway")')
