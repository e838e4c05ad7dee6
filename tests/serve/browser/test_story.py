"""The whole way: ask, a wrong answer, mend it, save, learn, ask again, and the link of all that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Response, expect

from kb import KnowledgeBase, write_snapshot
from kopl.example import Example, write_examples
from tests.parsers.conftest import quick
from tests.serve.browser.screens import address, settle
from tests.serve.browser.watching import assert_accessible

QUESTION = "How much turf has Norway got?"
RIGHT = "323802 square kilometre"


def mended(page: Page) -> None:
    """Write the right program on the screen Program, its attribute by what is suggested."""
    program = page.get_by_role("textbox", name="Program", exact=True)
    program.fill('QueryAttr(Find("Norway"), ?)')
    page.get_by_role("region", name="What the program gives").get_by_role("button").click()
    page.get_by_role("combobox", name="Attribute").press_sequentially("are")
    settle(page)
    expect(page.get_by_role("option")).to_have_count(2)  # and what was typed, as it is
    option = page.get_by_role("option").first
    expect(option).to_contain_text("area")
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(program).to_have_value('QueryAttr(Find("Norway"), "area")')
    expect(page.get_by_role("region", name="What the program gives")).to_contain_text(RIGHT)


def saved(page: Page, author: str = "Ada") -> None:
    """Save the program at hand as the right one."""
    form = page.get_by_role("form", name="Save")
    expect(form.get_by_label("Question")).to_have_value(QUESTION)
    form.get_by_label("Your name").fill(author)
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("kept", exact=True)).to_be_visible()


def test_the_whole_story(own_servers: Any, watch: Any, run: Path, tmp_path: Path) -> None:
    server = own_servers.start("--run", run, "--folder", tmp_path / "played", folder=tmp_path)
    page = watch.page(server)
    settle(page)

    # A wrong answer.
    page.get_by_label("Your question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.get_by_role("group", name="Is this right?").wait_for()
    assert RIGHT not in page.locator("main").inner_text()

    # Look inside, mend it with what is suggested, run, save.
    page.get_by_role("button", name="Correct it").click()
    page.get_by_role("heading", name="Program", level=1).wait_for()
    mended(page)
    link = page.url
    saved(page)

    # Learn, and look at what changed.
    page.get_by_role("form", name="Save").get_by_role("link").click()
    page.get_by_text("Settings").click()
    page.get_by_label("Epochs").fill("12")
    page.get_by_label("Questions like each").fill("4")
    page.get_by_role("button", name="Begin the lesson").click()
    learnt = page.get_by_role("region", name="What was learnt")
    learnt.wait_for(timeout=300_000)
    expect(learnt).to_contain_text(re.compile(r"before\s*0\s*of\s*1\s*after\s*1\s*of\s*1"))
    changed = page.get_by_role("region", name="Answers that changed")
    expect(changed).to_contain_text(QUESTION)
    assert_accessible(page)
    page.get_by_role("button", name="Keep the new parser").click()
    page.get_by_role("link", name="Ask it").click()

    # Ask again: it is right, and the link says so to others, too.
    answer = page.locator("#screen-ask .answer")
    expect(answer).to_contain_text(RIGHT)
    asked = page.url
    page.reload()
    expect(answer).to_contain_text(RIGHT)
    other = watch.page(asked)
    expect(other.locator("#screen-ask .answer")).to_contain_text(RIGHT)
    program = watch.page(link)
    expect(program.get_by_role("region", name="What the program gives")).to_contain_text(RIGHT)
    assert (run / "best.safetensors").exists(), "the old run stays"


@pytest.fixture
def first_training(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> tuple[str | Path, ...]:
    """Arguments of a server without a run, whose first training takes seconds."""
    kb, data, config = tmp_path / "small.kopl", tmp_path / "data", tmp_path / "quick.yaml"
    write_snapshot(small, kb)
    data.mkdir()
    parts = {"train": small_examples, "valid": small_examples[:8], "test": small_examples[8:16]}
    for name, part in parts.items():
        write_examples(data / f"{name}.jsonl", part)
    config.write_text(quick("pointer", "kopl", f"kb={kb}", f"data={data}").to_json())
    return "--kb", kb, "--config", config, "--folder", tmp_path / "played"


# Whatever the progress bar shows, however short; it is gone when the page is loaded again.
WATCHED = """() => {
    window.seen = [];
    new MutationObserver(() => {
        const bar = document.querySelector('main progress');
        if (bar && bar.value !== window.seen.at(-1)) window.seen.push(bar.value);
    }).observe(document.body, {subtree: true, childList: true, attributes: true});
}"""


def test_a_first_training_answers_questions_on_the_same_page(
    own_servers: Any, watch: Any, first_training: tuple[str | Path, ...], tmp_path: Path
) -> None:
    page = watch.page(own_servers.start(*first_training, folder=tmp_path))
    settle(page)
    page.evaluate(WATCHED)
    page.get_by_label("Your question").fill("What is the capital of Norway?")
    page.keyboard.press("Enter")
    expect(page.locator("main").get_by_text("Nobody can read this question yet")).to_be_visible()
    page.get_by_role("button", name="Train the default parser").click()
    page.get_by_role("progressbar", name="How far the training is").wait_for()
    learnt = page.get_by_role("region", name="What was learnt")
    learnt.wait_for(timeout=600_000)
    expect(learnt).to_contain_text(re.compile(r"right\s*8\s*of\s*8"))
    seen = page.evaluate("() => window.seen")
    assert len(seen) > 2 and seen == sorted(seen) and seen[-1] > 0.5
    assert_accessible(page)
    learnt.get_by_role("button", name="Ask it").click()
    page.get_by_role("link", name="Ask it").click()
    page.get_by_label("Your question").fill("What is the capital of Peru?")
    page.keyboard.press("Enter")
    expect(page.locator("#screen-ask .answer")).to_contain_text("Lima")
    assert page.evaluate("() => window.seen.length") >= len(seen), "it is the same page still"


def is_kept(response: Response) -> bool:
    """Whether this is the server's word that it kept a correction."""
    request = response.request
    return request.method == "POST" and request.url.endswith("/api/corrections") and response.ok


def test_two_tabs_show_what_each_of_them_asked(
    own_servers: Any, watch: Any, run: Path, tmp_path: Path
) -> None:
    server = own_servers.start("--run", run, "--folder", tmp_path / "played", folder=tmp_path)
    window = watch.context()
    first = watch.page(address(server, "ask", q="What is the capital of Peru?"), context=window)
    other = watch.page(address(server, "ask", q="What is the capital of Mali?"), context=window)
    expect(first.locator("#screen-ask .answer")).to_contain_text("Lima")
    expect(other.locator("#screen-ask .answer")).to_contain_text("Bamako")
    first.reload()
    expect(first.locator("#screen-ask .answer")).to_contain_text("Lima")
    # What one of them saves the other one sees, and the list of questions is of both.
    first.get_by_role("button", name="Right", exact=True).click()
    expect(first.get_by_text("kept", exact=True)).to_be_visible()
    other.goto(address(server, "queue"))
    expect(other.get_by_role("region", name="Saved corrections")).to_contain_text("capital of Peru")
    other.goto(address(server, "ask"))
    other.get_by_text("Asked before").click()
    for name in ("Peru", "Mali"):
        expect(other.get_by_role("link", name=f"What is the capital of {name}?")).to_be_visible()


def test_two_people_write_into_one_file(
    own_servers: Any, watch: Any, run: Path, tmp_path: Path
) -> None:
    from parsers.corrections import FILE, read_corrections

    server = own_servers.start("--run", run, "--folder", tmp_path / "played", folder=tmp_path)
    questions = [f"What about number {number}?" for number in range(8)]
    page = watch.page(address(server, "queue"))
    page.get_by_text("Add questions").click()
    page.get_by_label("Questions, one on each line").fill("\n".join(questions))
    page.get_by_role("button", name="Add these").click()
    expect(page.get_by_text("0 of 8 judged")).to_be_visible()
    expect(page.get_by_text("still being asked")).to_have_count(0)
    assert_accessible(page)
    # Who reloads the page is the same reader, and goes on where the least certain ones are.
    judged = page.get_by_role("region", name="The question to judge")
    heading = judged.get_by_role("heading", level=2)
    page.reload()
    first = heading.inner_text()
    page.reload()
    expect(heading).to_have_text(first)
    other = watch.page(address(server, "queue"))
    expect(other.get_by_text("0 of 8 judged")).to_be_visible()
    expect(other.get_by_role("heading", name=first)).to_have_count(0)
    settle(other)
    told = []
    for one in (page, other):
        one.on("response", lambda response: told.append(response) if is_kept(response) else None)
    # Both judge at the same time, one key each, until nothing is left.
    for _ in questions:
        page.keyboard.press("u")
        other.keyboard.press("n")
        for one in (page, other):
            settle(one)
    for one in (page, other):
        one.reload()
        expect(one.get_by_text("All questions are judged.")).to_be_visible()
    lines = read_corrections(run / FILE)
    assert {one.question for one in lines} == set(questions)
    assert {one.verdict for one in lines} == {"unclear", "not in the knowledge base"}
    assert len(lines) == len(told), "what the server said that it kept is there, each once"


def test_a_queue_is_judged_by_keys_alone(
    own_servers: Any, watch: Any, run: Path, tmp_path: Path
) -> None:
    from parsers.corrections import FILE, newest, read_corrections

    server = own_servers.start("--run", run, "--folder", tmp_path / "played", folder=tmp_path)
    page = watch.page(address(server, "queue"))
    page.get_by_text("Add questions").click()
    asked = [f"What is the capital of {name}?" for name in ("Peru", "Mali", "Chad")]
    file = {"name": "asked.txt", "mimeType": "text/plain", "buffer": "\n".join(asked).encode()}
    page.get_by_label("or a file").set_input_files(file)
    page.get_by_role("button", name="Add these").click()
    expect(page.get_by_text("0 of 3 judged")).to_be_visible()
    expect(page.get_by_text("still being asked")).to_have_count(0)
    page.evaluate("() => document.activeElement.blur()")
    card = page.get_by_role("region", name="The question to judge")
    first = card.get_by_role("heading", level=2).inner_text()
    page.keyboard.press("j")  # skipped, and back again
    expect(card.get_by_role("heading", level=2)).not_to_have_text(first)
    page.keyboard.press("k")
    expect(card.get_by_role("heading", level=2)).to_have_text(first)
    page.keyboard.press("r")
    expect(page.get_by_text("1 of 3 judged")).to_be_visible()
    page.keyboard.press("z")  # taken back
    expect(page.get_by_text("0 of 3 judged")).to_be_visible()
    expect(card.get_by_role("heading", level=2)).to_have_text(first)
    for done, key in enumerate(("w", "r", "n"), 1):
        settle(page)
        page.keyboard.press(key)
        if done < 3:
            expect(page.get_by_text(f"{done} of 3 judged")).to_be_visible()
    expect(page.get_by_text("All questions are judged.")).to_be_visible()
    said = {one.verdict for one in newest(read_corrections(run / FILE))}
    assert said == {"wrong data", "right", "not in the knowledge base"}


def test_a_server_that_is_killed_while_learning_keeps_what_was_saved(
    own_servers: Any, watch: Any, run: Path, tmp_path: Path
) -> None:
    from parsers.corrections import FILE, read_corrections

    arguments = ("--run", run, "--folder", tmp_path / "played")
    server = own_servers.start(*arguments, folder=tmp_path)
    page = watch.page(address(server, "program", q=QUESTION, p='QueryAttr(Find("Norway"), area)'))
    settle(page)
    saved(page)
    page.get_by_role("form", name="Save").get_by_role("link").click()
    page.get_by_role("button", name="Begin the lesson").click()
    page.get_by_role("button", name="Stop").wait_for()
    kept = (run / FILE).read_bytes()
    watch.gone()
    own_servers.kill(server)
    assert (run / FILE).read_bytes() == kept
    assert [one.question for one in read_corrections(run / FILE)] == [QUESTION]
    # Started again, it says what was not finished, and has what was saved.
    again = own_servers.start(*arguments, folder=tmp_path)
    page = watch.page(address(again, "learn"))
    expect(page.get_by_text("The last training was stopped")).to_be_visible()
    expect(page.get_by_text("1 question was judged and kept")).to_be_visible()
