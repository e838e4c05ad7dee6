"""The knowledge base, queries, files and data of one's own on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.serve.browser.screens import address, settle
from tests.serve.browser.watching import assert_accessible, assert_fits

CAPITAL = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
BOOKS = (
    "id,title,publisher,pages\nb1,The Blue Bridge,Seven Lamps,631\nb2,The Harbour,Paper Kite,605\n"
)


@pytest.fixture
def own(own_servers: Any, tmp_path: Path) -> str:
    """A server that may be sent data."""
    return str(own_servers.start("--kb", "world", "--folder", tmp_path / "kept", folder=tmp_path))


SAID = {"answers": ["Norway"], "count": 1, "state": "unique", "ms": 1, "hints": []}


def test_a_fact_leads_to_a_program(world: str, watch: Any) -> None:
    page = watch.page(address(world, "base"))
    page.get_by_label("Search names").fill("norwy")
    page.get_by_role("link", name="Norway", exact=True).click()
    expect(page.get_by_role("heading", name="Norway")).to_be_visible()
    expect(page.get_by_text("Kingdom of Norway; Norwegian")).to_be_visible()
    page.get_by_role("link", name="Ask for capital by a program").first.click()
    expect(page.get_by_role("textbox", name="Program", exact=True)).to_have_value(CAPITAL)
    expect(page.get_by_role("region", name="What the program gives")).to_contain_text("Oslo")
    page.go_back()
    expect(page.get_by_role("heading", name="Norway")).to_be_visible()


def test_programs_become_queries_and_back(world: str, watch: Any) -> None:
    pytest.importorskip("pyoxigraph", reason="the extra sparql is not installed")
    page = watch.page(address(world, "sparql", p=CAPITAL))
    query = page.get_by_label("Query (SPARQL)")
    expect(query).to_have_value(re.compile("Norway"))
    page.get_by_label("Program (KoPL)").fill("")
    page.get_by_role("button", name="To KoPL").click()
    expect(page.get_by_label("Program (KoPL)")).to_have_value(CAPITAL)
    page.get_by_role("button", name="Run both").click()
    expect(page.get_by_text("the same answer")).to_be_visible()
    for name in ("KoPL", "oxigraph"):
        expect(page.get_by_role("region", name=f"What {name} gives")).to_contain_text("Oslo")
    assert_accessible(page)
    # What is no program says why.
    query.fill("SELECT ?x WHERE { ?x ?y ")
    page.get_by_role("button", name="To KoPL").click()
    expect(page.get_by_role("alert")).to_contain_text("This query is no program")


def test_a_query_of_one_s_own_stays_and_has_answers_of_its_own(world: str, watch: Any) -> None:
    pytest.importorskip("pyoxigraph", reason="the extra sparql is not installed")
    page = watch.page(address(world, "sparql", p='QueryName(Find("Norway"))'))
    settle(page)
    query = page.get_by_label("Query (SPARQL)")
    expect(query).not_to_have_value("")
    # What was run is no answer to what was written since.
    page.route("**/api/sparql", lambda route: route.fulfill(json={"answer": SAID}))
    page.get_by_role("button", name="Run both").click()
    expect(page.get_by_text("the same answer")).to_be_visible()
    own = 'SELECT DISTINCT ?e WHERE { ?e <pred:name> "Sweden" . }'
    query.fill(own)
    expect(page.get_by_text("the same answer")).to_have_count(0)
    page.reload()
    settle(page)
    expect(query).to_have_value(own)
    page.get_by_role("button", name="To SPARQL").click()
    expect(query).to_have_value(re.compile('"Norway"'))
    page.reload()
    settle(page)
    expect(query).to_have_value(re.compile('"Norway"'))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", "Who?\n\n" + "x" * 2001, "line 3 has 2,001 characters"),
        ("a.txt", "Ø?".encode("latin-1"), "not written in UTF-8"),
        ("a.jsonl", '{"question": "Who?"}\n{"q": 5}', "line 2 has no text"),
        ("a.jsonl", '"Who?"\n{', "line 2 is no JSON"),
        ("a.json", "{}", "no list"),
        ("a.json", '["Who?", 5]', "item 2 has no text"),
    ],
)
def test_what_is_no_question_is_told_with_its_place(
    world: str, watch: Any, name: str, content: str | bytes, says: str
) -> None:
    page = watch.page(address(world, "queue"))
    settle(page)
    page.get_by_text("Add questions").click()
    buffer = content if isinstance(content, bytes) else content.encode()
    file = {"name": name, "mimeType": "text/plain", "buffer": buffer}
    page.get_by_label("or a file").set_input_files(file)
    page.get_by_role("button", name="Add these").click()
    expect(page.get_by_role("alert")).to_contain_text(says)


def test_a_run_of_another_knowledge_base_is_not_what_learns_here(world: str, watch: Any) -> None:
    context = watch.context(base_url=f"{world}/")
    page = watch.page(address(world, "learn"), context=context)
    run = {"folder": "runs/a", "name": "a", "learned_from": None, "loaded": True, "moved": True}

    def info(route: Route) -> None:
        route.fulfill(json=route.fetch().json() | {"run": run, "corrections": 3, "taught": 3})

    page.route("**/api/info*", info)
    page.reload()
    screen = page.locator("#screen-learn")
    expect(screen).to_contain_text("a, was trained on another knowledge base")
    expect(screen.get_by_role("button", name="Train a parser for it")).to_be_visible()
    expect(screen.get_by_role("button", name="Begin the lesson")).to_have_count(0)


def test_a_queue_without_a_parser_says_so(world: str, watch: Any) -> None:
    page = watch.page(address(world, "ask"))
    settle(page)
    item = {"id": "1", "question": "Who?", "answer": None, "confidence": None, "judged": None}
    none = {"items": [], "count": 0, "left": 0, "asking": 0, "generating": True}
    told = [none, {**none, "items": [item], "count": 1, "left": 1}]
    page.route("**/api/queue*", lambda route: route.fulfill(json=told[0]))
    page.get_by_role("link", name="Review").click()
    card = page.get_by_role("region", name="The question to judge")
    expect(card).to_contain_text("Questions are being made")
    del told[0]
    expect(card).to_contain_text("no parser has read it")
    expect(card).to_contain_text("Questions are being made")
    expect(card.get_by_text("% sure")).to_have_count(0)


def test_every_form_is_a_file(world: str, watch: Any) -> None:
    page = watch.page(address(world, "share", p=CAPITAL, q="What is the capital of Norway?"))
    settle(page)
    names = {}
    for form in page.get_by_label("Form", exact=True).locator("option").all():
        value = form.get_attribute("value")
        page.get_by_label("Form", exact=True).select_option(value)
        settle(page)
        with page.expect_download() as told:
            page.get_by_role("button", name="Download").click()
        names[value] = Path(told.value.path()).read_text("utf-8")
    assert names["nested"].strip() == CAPITAL
    assert json.loads(names["kqapro"]) and "<svg" in names["svg"] and "SELECT" in names["sparql"]
    assert "Oslo" in names["csv"] and "flowchart" in names["mermaid"]
    alone = watch.context()
    file = alone.new_page()
    file.set_content(names["html"])
    expect(file.locator("body")).to_contain_text("Oslo")
    assert_accessible(page)


def test_a_table_becomes_a_knowledge_base(own: str, watch: Any) -> None:
    page = watch.page(address(own, "own"), viewport={"width": 400, "height": 800})
    page.get_by_label("A kb.json").set_input_files(
        {"name": "books.csv", "mimeType": "text/csv", "buffer": BOOKS.encode()}
    )
    expect(page.get_by_label("Name of the knowledge base")).to_have_value("books")
    page.get_by_role("button", name="Check it").click()
    page.get_by_label("publisher: is").select_option("create")
    page.get_by_label("publisher: called").fill("published by")
    assert_accessible(page)
    assert_fits(page)
    page.get_by_role("button", name="Add it").click()
    expect(page.locator("main").get_by_text("It is here")).to_be_visible()
    page.get_by_role("link", name="Look at it").first.click()
    page.get_by_label("Search names").fill("harbour")
    page.get_by_role("link", name="The Harbour").click()
    expect(page.get_by_role("link", name="Paper Kite")).to_be_visible()
    expect(page.get_by_text("published by")).to_be_visible()
    page.get_by_role("link", name="Ask for published by by a program").click()
    answer = page.get_by_role("region", name="What the program gives")
    expect(answer).to_contain_text("Paper Kite")
    # It is one of the server's knowledge bases until it is taken away.
    page.goto(address(own, "own"))
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete books").click()
    expect(page.get_by_role("button", name="Delete books")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("book.xlsx", b"PK\x03\x04 a workbook", "save the sheet as CSV"),
        ("kb.json", b'{"concepts": {}, "entities": {"e": {"name": 3}}}', "entities/e"),
        ("empty.csv", b"", "is empty"),
    ],
)
def test_what_cannot_be_read_is_refused_politely(
    own: str, watch: Any, name: str, content: bytes, says: str
) -> None:
    page = watch.page(address(own, "own"))
    settle(page)
    watch.allowed.add(422)
    page.get_by_label("A kb.json").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )
    page.get_by_label("Name of the knowledge base").fill("mine")
    page.get_by_role("button", name="Check it").click()
    expect(page.get_by_role("alert")).to_contain_text("It cannot be added")
    expect(page.locator("#screen-own")).to_contain_text(says)
    assert_accessible(page)


def test_what_is_too_large_is_not_even_sent(own: str, watch: Any, tmp_path: Path) -> None:
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(51 * 1024 * 1024)
    page = watch.page(address(own, "own"))
    settle(page)
    page.get_by_label("A kb.json").set_input_files(large)
    expect(page.locator("#screen-own")).to_contain_text("kopl kb import")
    page.get_by_role("button", name="Check it").click()
    expect(page.locator("#screen-own")).to_contain_text("kopl kb import")


def test_a_table_of_other_letters_is_told_in_words(own: str, watch: Any) -> None:
    table = "id;name;price in euro;kind\n1;Óvállá;3.5 €;town\n2;Oslo;4 €;town\n"
    page = watch.page(address(own, "own"))
    settle(page)
    page.get_by_label("A kb.json").set_input_files(
        {"name": "towns.csv", "mimeType": "text/csv", "buffer": table.encode("cp1252")}
    )
    page.get_by_role("button", name="Check it").click()
    expect(page.get_by_role("region", name="First rows")).to_contain_text("Óvállá")
    expect(page.get_by_label("Its letters are written in")).to_have_value("cp1252")
    expect(page.get_by_label("price in euro: is")).to_have_value("quantity")
    expect(page.get_by_label("price in euro: unit")).to_have_value("euro")
    screen = page.locator("#screen-own")
    expect(screen).to_contain_text("kind: the kind of a row")
    page.get_by_label("are", exact=True).select_option("one")
    page.get_by_label("each is a").fill("town")
    assert_accessible(page)
    page.get_by_role("button", name="Add it").click()
    expect(page.locator("main").get_by_text("It is here")).to_be_visible()
