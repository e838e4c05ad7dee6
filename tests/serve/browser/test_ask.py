"""The first screen: what it says with a run and without one, of every kind of answer."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.serve.browser.watching import assert_accessible, assert_fits

FOUND = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
NOTHING = 'QueryName(Relate(Find("Norwey"), "capital", "forward"))'


def opened(watch: Any, address: str, **options: Any) -> Page:
    """A page that shows an address and listens to keys."""
    page: Page = watch.page(address, **options)
    expect(page.get_by_role("link", name="Program", exact=True)).to_be_visible()
    return page


def reading(page: Page, program: str | None, **more: Any) -> dict[str, Any]:
    """One of the answers of /api/ask, with what the server really says of the program."""
    ran: dict[str, Any] = {"view": None, "answer": None, "why_empty": None}
    if program is not None:
        response = page.request.post("api/run", data={"program": program})
        ran = response.json()
    usual = {
        "error": None,
        "confidence": 0.97,
        "sure": True,
        "refused": None,
        "unsaid": [],
    }
    shown = {"program": ran["view"], "text": program or "", "answer": ran["answer"]}
    return {**shown, **usual, "read_as": None, "why_empty": ran["why_empty"], **more}


def answering(world: str, watch: Any, *readings: dict[str, Any] | tuple[Any, ...]) -> Page:
    """A page of a server that would have a run, and answers every question so."""
    context = watch.context(base_url=f"{world}/", viewport={"width": 1000, "height": 900})
    page: Page = opened(watch, world, context=context)
    answers = [reading(page, program, **more) for program, more in readings]
    why = answers[0].pop("why_empty") if answers else None

    def info(route: Route) -> None:
        said = route.fetch().json()
        said["can"]["ask"] = {"yes": True, "why": None}
        route.fulfill(json=said)

    def ask(route: Route) -> None:
        question = json.loads(route.request.post_data or "{}")["question"]
        route.fulfill(json={"question": question, "answers": answers, "why_empty": why})

    page.route("**/api/info*", info)
    page.route("**/api/ask", ask)
    page.reload()
    field = page.get_by_label("Your question")
    field.fill("What is the capital of Norway?")
    field.press("Enter")
    return page


def results(page: Page) -> Any:
    return page.locator(".answer-card")


def test_the_first_screen_without_a_run(world: str, watch: Any) -> None:
    page = opened(watch, world)
    expect(page.get_by_role("heading", level=1)).to_contain_text("world")
    expect(page.get_by_text("No parser has been trained yet")).to_be_visible()
    # What the knowledge base is, from itself.
    expect(page.get_by_text(re.compile("18,496 things"))).to_contain_text("Among them")
    examples = page.locator("#screen-ask .examples a")
    expect(examples).to_have_count(6)
    first = examples.first.inner_text()
    page.get_by_role("button", name="Other examples").click()
    expect(examples.first).not_to_have_text(first)
    # An example opens its program, which runs.
    examples.first.click()
    expect(page).to_have_url(re.compile("#/program"))
    expect(page.get_by_role("region", name="What the program gives")).not_to_contain_text("\u2026")
    expect(page.locator(".call-head").first).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Write a program").click()
    expect(page.get_by_role("combobox", name="Which step?")).to_be_focused()


def test_an_answer_with_what_it_rests_on(world: str, watch: Any) -> None:
    other = {"confidence": 0.02, "sure": False}
    page = answering(world, watch, (FOUND, {}), ('Count(Find("Norway"))', other))
    expect(results(page)).to_contain_text("Oslo")
    expect(results(page)).to_contain_text("Sure \u00b7 97 %")
    expect(page.get_by_role("img", name="How the question was read")).to_be_visible()
    page.get_by_text("The facts behind the answer").click()
    expect(page.locator(".fact-card").first).to_contain_text("capital")
    page.get_by_text("Other ways to read the question (1)").click()
    expect(page.locator(".reading")).to_contain_text("2 %")
    assert_accessible(page)
    page.get_by_role("link", name="Look inside and mend").click()
    expect(page.get_by_role("textbox", name="Program", exact=True)).to_have_value(FOUND)
    # What was asked is kept by this browser, and can be asked again by one click.
    page.keyboard.press("1")
    page.get_by_text("Asked before (1)").click()
    expect(page.get_by_role("link", name="What is the capital of Norway?")).to_be_visible()
    page.get_by_role("button", name="Forget them").click()
    expect(page.get_by_text("Asked before")).to_have_count(0)


def test_what_the_parser_is_not_sure_of(world: str, watch: Any) -> None:
    more = {
        "confidence": 0.31,
        "sure": False,
        "unsaid": ["Norway"],
        "read_as": "Capital?",
    }
    page = answering(world, watch, (FOUND, more))
    expect(results(page)).to_contain_text("A guess \u00b7 31 %")
    expect(results(page)).to_contain_text("Read as: Capital?")
    expect(results(page).locator(".note")).to_contain_text("The question does not say")
    assert_accessible(page)


def test_a_refusal_says_why_and_what_was_nearly_said(world: str, watch: Any) -> None:
    refused = {
        "kind": "relation",
        "message": "it says nothing of weather",
        "said": ["weather"],
    }
    more = {"refused": refused, "sure": False, "unsaid": ["Norway"]}
    page = answering(world, watch, (FOUND, more))
    expect(results(page)).to_contain_text("I do not know")
    expect(results(page)).to_contain_text("It says nothing of weather")
    expect(results(page).get_by_text("Oslo")).not_to_be_visible()
    expect(results(page).get_by_text("The question does not say")).not_to_be_visible()
    # What is judged is the refusal, not the program that nobody saw.
    judged = page.get_by_role("group", name="Was it right to refuse?")
    expect(judged.get_by_role("button", name="Right", exact=True)).to_have_count(0)
    with page.expect_request("**/api/corrections") as sent:
        judged.get_by_role("button", name="Right to refuse").click()
    kept = json.loads(sent.value.post_data or "{}")
    assert kept["verdict"] == "not in the knowledge base" and "program" not in kept
    assert kept["predicted"]["program"] is None and kept["predicted"]["answers"] == []
    expect(judged.get_by_text("kept", exact=True)).to_be_visible()
    results(page).get_by_text("What it nearly said").click()
    expect(results(page).get_by_text("The question does not say")).to_be_visible()
    expect(results(page)).to_contain_text("Oslo")
    assert_accessible(page)


def test_no_question_and_one_that_is_too_long(world: str, watch: Any) -> None:
    page = answering(world, watch, (FOUND, {}))
    expect(results(page)).to_contain_text("Oslo")
    # The other screens have the program of the answer.
    page.get_by_role("link", name="Program", exact=True).click()
    expect(page.get_by_role("textbox", name="Program", exact=True)).to_have_value(FOUND)
    page.get_by_role("link", name="Ask", exact=True).click()
    field = page.get_by_label("Your question")
    field.fill("  ")
    field.press("Enter")
    expect(page.get_by_text("Type a question first").first).to_be_visible()
    expect(results(page)).to_have_count(0)
    field.fill("why " * 600)
    field.press("Enter")
    expect(page.get_by_text("a question may have 2,000")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_why_nothing_was_found_and_a_mend_by_one_click(world: str, watch: Any) -> None:
    page = answering(world, watch, (NOTHING, {}))
    expect(results(page)).to_contain_text("Nothing was found")
    expect(results(page)).to_contain_text("Why nothing was found")
    results(page).get_by_role("button", name="Norway", exact=True).click()
    expect(page).to_have_url(re.compile("#/program"))
    expect(page.get_by_role("textbox", name="Program", exact=True)).to_have_value(FOUND)
    expect(page.get_by_role("region", name="What the program gives")).to_contain_text("Oslo")
    page.go_back()
    expect(page.get_by_label("Your question")).to_have_value("What is the capital of Norway?")


def test_yes_and_no_stay_what_they_are_wherever_the_program_goes(world: str, watch: Any) -> None:
    said = {"answers": ["no"], "count": 1, "state": "unique", "ms": 1, "hints": []}
    program = 'Count(And(Relate(Find("Norway"), "capital", "forward"), Find("{name}")))'
    page = answering(
        world, watch, (program.format(name="Bergen"), {"answer": said, "form": "exists"})
    )
    answer = page.locator(".answer-card")
    expect(answer.locator(".answer")).to_have_text("no")
    # A plain no is an answer; what it comes from is no warning.
    expect(answer).to_contain_text("Why the answer is no")
    expect(answer.locator(".note.warn")).to_have_count(0)
    answer.get_by_role("link", name="Look inside and mend").click()
    result = page.get_by_role("region", name="What the program gives")
    expect(result.locator(".answer")).to_have_text("no")
    page.reload()
    expect(result.locator(".answer")).to_have_text("no")
    # A corrected one is kept as such, too.
    page.get_by_role("textbox", name="Program").fill(program.format(name="Oslo"))
    expect(result.locator(".answer")).to_have_text("yes")
    kept: list[dict[str, Any]] = []

    def keep(route: Route) -> None:
        kept.append(json.loads(route.request.post_data or "{}"))
        route.fulfill(json={"id": "1", "verdict": "corrected"})

    page.route("**/api/corrections", keep)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Learn from what was kept")).to_be_visible()
    assert (kept[0]["answer_form"], kept[0]["program"]) == ("exists", program.format(name="Oslo"))
    # Who wants the number says so.
    page.get_by_label("The question asks yes or no").uncheck()
    expect(result.locator(".answer")).to_have_text("1")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Learn from what was kept")).to_be_visible()
    page.wait_for_function("() => true")
    assert_accessible(page)


def test_a_program_that_cannot_be_run(world: str, watch: Any) -> None:
    error = {
        "kind": "execution",
        "message": "two <b>winners</b>",
        "call": 2,
        "field": None,
    }
    page = answering(world, watch, (None, {"text": "Find(", "error": error, "sure": False}))
    expect(results(page)).to_contain_text("two <b>winners</b> (step #2)")
    page.set_viewport_size({"width": 320, "height": 640})
    assert_fits(page)
    assert_accessible(page)


def test_the_look_is_kept_and_keys_can_be_turned_off(world: str, watch: Any) -> None:
    page = opened(watch, world, color_scheme="light")
    look = page.locator("#look")
    expect(look).to_have_accessible_name("Look: as the system")
    light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    look.click()
    look.click()
    expect(look).to_have_accessible_name("Look: dark")
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    expect(look).to_have_accessible_name("Look: dark")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == dark
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    assert_accessible(page)
    dialog.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("/$|#/ask"))
