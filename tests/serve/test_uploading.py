"""Own data, as clients send them."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kb import KnowledgeBase
from kb.kqapro import write_kqapro
from kopl_cli.serve import uploading
from kopl_cli.serve.bases import MOST_BASES, Playground, ServeLimits
from kopl_cli.serve.uploading import COLUMNS, Uploads
from tests.serve.conftest import client_of

BOOKS = "id,title,pages,author\n1,The Blue Fox,120,Sjón\n2,Dune,412,Frank Herbert\n"


@pytest.fixture
def served(small: KnowledgeBase, tmp_path: Path) -> Playground:
    made = Playground(ServeLimits(), folder=tmp_path / "playground")
    made.add(small, "small")
    return made


@pytest.fixture
def client(served: Playground) -> Any:
    with client_of(served) as client:
        yield client


def sent(client: TestClient, served: Playground, **body: Any) -> dict[str, Any]:
    """What became of data that were taken."""
    answer = client.post("/api/kb", json={"name": "Mine", "file": "kb.json"} | body)
    assert answer.status_code == 202, answer.text
    job = answer.json()["id"]
    uploads = served.part(Uploads)
    uploads._pool.submit(lambda: None).result()  # behind it in the queue
    return client.get(f"/api/kb/upload/{job}").json()


def left(served: Playground) -> list[str]:
    """What lies in the folder of knowledge bases."""
    return sorted(one.name for one in (served.folder / "bases").iterdir())


def kqapro(kb: KnowledgeBase, folder: Path) -> str:
    path = folder / "kb.json"
    write_kqapro(kb, path)
    return path.read_text("utf-8")


def test_a_kb_is_read_asked_kept_and_taken_away(
    client: TestClient, served: Playground, small: KnowledgeBase, tmp_path: Path
) -> None:
    job = sent(client, served, text=kqapro(small, tmp_path))
    assert (job["state"], job["done"]) == ("done", 1.0), job
    id = job["report"]["id"]
    assert id == "mine" and job["report"]["uploaded"]
    assert job["report"]["entities"] == small.entity_count
    program = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
    found = client.post("/api/run", json={"program": program, "kb": id}).json()
    assert found["answer"]["answers"] == ["Oslo"]
    # There again after a restart.
    again = Playground(ServeLimits(), folder=served.folder)
    again.add(small, "small")
    again.part(Uploads)
    assert again.base(id).uploaded and again.base(id).kb.fingerprint == small.fingerprint
    assert client.delete(f"/api/kb/{id}").json() == {"removed": id}
    assert left(served) == []
    assert client.get("/api/info", params={"kb": id}).status_code == 404
    assert client.delete("/api/kb/small").status_code == 400


def test_what_a_draft_leaves_out_is_told_and_names_keep_their_letters(client: TestClient) -> None:
    table = ",name,Größe in m\n0,A,1.5\n1,B,2.5\n"
    asked = {"name": "Höhen.csv", "file": "table", "text": table, "draft": True}
    draft = client.post("/api/kb", json=asked).json()
    [(key, said)] = draft["mapping"]["tables"].items()
    assert (key, said["concept"]) == ("Höhen", "höhen")
    assert said["columns"]["Größe in m"]["attribute"] == "größe"
    [problem] = draft["problems"]
    assert problem["place"] == "Höhen, column 1" and "left out" in problem["message"]
    long = asked | {"text": f"name,{'x' * 3000}\nA,1\n"}
    answer = client.post("/api/kb", json=long)
    assert answer.status_code == 422
    assert "the name of column 2 has 3,000 characters" in answer.json()["error"]["message"]


def test_a_table_is_drafted_edited_and_read(client: TestClient, served: Playground) -> None:
    asked = {"name": "My books!", "file": "table", "text": BOOKS}
    draft = client.post("/api/kb", json=asked | {"draft": True}).json()
    assert draft["problems"] == [] and left(served) == []
    assert draft["preview"]["header"] == ["id", "title", "pages", "author"]
    assert draft["preview"]["rows"][1] == ["2", "Dune", "412", "Frank Herbert"]
    columns = {one["name"]: one for one in draft["columns"]}
    assert "Frank Herbert" in columns["author"]["seen"]
    assert not any(" | " in one["seen"] for one in draft["columns"])  # no alternatives in YAML
    assert columns["pages"]["guess"]["attribute"] == "number of pages"
    [table] = draft["mapping"]["tables"].values()
    table["columns"]["pages"]["attribute"] = "length in pages"
    job = sent(client, served, **asked, mapping=draft["mapping"])
    assert job["state"] == "done", job
    program = 'QueryAttr(Find("Dune"), "length in pages")'
    found = client.post("/api/run", json={"program": program, "kb": job["report"]["id"]}).json()
    assert found["answer"]["answers"] == ["412"]


def test_several_tables_in_another_encoding(client: TestClient, served: Playground) -> None:
    people = "id;name;born\nf;Frank Herbert;1920\ns;Sjón;1962\n".encode("cp1252")
    books = BOOKS.replace("Sjón", "s").replace("Frank Herbert", "f").replace("author", "author_id")
    files = [{"name": "books.csv", "text": books},
             {"name": "people.csv", "base64": base64.b64encode(people).decode()}]  # fmt: skip
    asked = {"name": "Two", "file": "table", "files": files}
    draft = client.post("/api/kb", json=asked | {"draft": True}).json()
    assert [one["table"] for one in draft["preview"]] == ["books", "people"]
    assert draft["preview"][1]["rows"][1][1] == "Sjón"
    assert draft["mapping"]["tables"]["people"]["encoding"] == "cp1252"
    job = sent(client, served, **asked, mapping=draft["mapping"])
    assert job["state"] == "done", job


def test_a_mapping_names_no_other_file(client: TestClient, served: Playground) -> None:
    asked = {"name": "books", "file": "table", "text": BOOKS}
    for file in ("/etc/passwd", "../../corrections.csv", None, ["books.csv", "/etc/passwd"]):
        mapping = {"tables": {"books": {"file": file, "name": "title"}}}
        answer = client.post("/api/kb", json=asked | {"mapping": mapping})
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "mapping")
    assert left(served) == []


@pytest.mark.parametrize(
    ("content", "message", "place"),
    [
        ('{"concepts": {}, "entities": {"Q1": {"name": 3}}}', "", "entities/Q1/name"),
        ('{"concepts": {}, "entities": {', "", None),
        ("[" * 100_000, "not a knowledge base", None),
        ('{"concepts": ' + '{"a": ' * 100_000, "", None),
        ("nothing of the kind", "not a knowledge base", None),
    ],
)
def test_a_bad_file_is_refused_with_its_place(
    content: str, message: str, place: str | None, client: TestClient, served: Playground
) -> None:
    job = sent(client, served, text=content)
    assert job["state"] == "failed" and job["message"]
    assert message in job["message"] and (place or "") in (job["place"] or "")
    assert "Traceback" not in job["message"] and str(served.folder) not in job["message"]
    assert left(served) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"base64": base64.b64encode(b"\x1f\x8bnothing").decode()}, "cannot be unpacked"),
        ({"base64": base64.b64encode(b"PK\x03\x04xlsx").decode()}, "workbook"),
        ({"base64": "%%%"}, "not base64"),
        ({"text": " \n"}, "is empty"),
        ({}, "as text, or as base64"),
        ({"text": "{}", "base64": "e30="}, "as text, or as base64"),
        ({"file": "table", "text": "," * COLUMNS + "\n", "draft": True}, "1,001 columns"),
        ({"file": "table", "text": "a" * 2_000_000, "draft": True}, "longer than"),
        ({"file": "table", "text": BOOKS}, "ask for a draft"),
        ({"text": "{}", "draft": True}, "only tables"),
        ({"file": "table", "files": [{"name": "a.csv", "text": "a"}] * 2, "draft": True}, "two"),
    ],
)
def test_what_is_refused_at_once(
    body: dict[str, Any], message: str, client: TestClient, served: Playground
) -> None:
    answer = client.post("/api/kb", json={"name": "Mine", "file": "kb.json"} | body)
    assert answer.status_code in (400, 422)
    assert message in answer.json()["error"]["message"]
    assert not (served.folder / "bases").exists() or left(served) == []


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_compressed_is_unpacked_up_to_a_bound(
    pack: Callable[[bytes], bytes], client: TestClient, served: Playground,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def body(content: bytes) -> dict[str, Any]:
        files = [{"name": "books.csv.gz", "base64": base64.b64encode(pack(content)).decode()}]
        return {"name": "books", "file": "table", "files": files, "draft": True}

    draft = client.post("/api/kb", json=body(BOOKS.encode())).json()
    assert [*draft["mapping"]["tables"]] == ["books"]
    monkeypatch.setattr(uploading, "UNPACKED", 10**6)
    answer = client.post("/api/kb", json=body(b"0" * (10**6 + 1)))
    assert answer.status_code == 413 and "unpacks to more" in answer.json()["error"]["message"]
    assert left(served) == []


def test_a_table_that_is_none_says_where(client: TestClient, served: Playground) -> None:
    asked = {"name": "books", "file": "table", "draft": True}
    answer = client.post("/api/kb", json=asked | {"text": 'id,"title\n1,Dune\n'})
    assert answer.status_code == 422 and "line 1" in answer.json()["error"]["message"]
    latin = base64.b64encode(b"\x81\x8d,\x90\n1,\x00\xff\n").decode()
    assert client.post("/api/kb", json=asked | {"base64": latin}).status_code == 422
    assert left(served) == []


def test_a_mapping_as_text(client: TestClient, served: Playground) -> None:
    asked = {"name": "books", "file": "table", "text": BOOKS}
    text = client.post("/api/kb", json=asked | {"draft": True}).json()["text"]
    job = sent(client, served, **asked, mapping=text.replace("number of pages", "extent"))
    assert job["state"] == "done", job
    assert "extent" in served.base(job["report"]["id"]).kb.attribute_keys
    for wrong, message in (
        ("tables: [", "line 1"), ("a: &a [1]\ntables: {b: *a}", "aliases"), ("- 3", "an object"),
        ("[" * 10_000, "mapping"),
    ):  # fmt: skip
        answer = client.post("/api/kb", json=asked | {"mapping": wrong})
        assert answer.status_code in (400, 422)
        assert message in answer.json()["error"]["message"]
    # What the reader of tables finds wrong has its place, too.
    job = sent(client, served, **asked, mapping=text.replace("pages: {", "pagse: {"))
    assert job["state"] == "failed" and "pagse" in job["message"]


def test_no_more_are_held_than_fit(
    client: TestClient, served: Playground, small: KnowledgeBase
) -> None:
    for number in range(MOST_BASES - 1):
        served.add(small, f"more {number}", uploaded=True)
    answer = client.post("/api/kb", json={"name": "Mine", "file": "kb.json", "text": "{}"})
    assert answer.status_code == 503
    upload = client.get("/api/info").json()["can"]["upload"]
    assert not upload["yes"] and str(MOST_BASES) in upload["why"]
    assert client.delete("/api/kb/more-0").status_code == 200
    assert client.get("/api/info").json()["can"]["upload"]["yes"]


def test_what_was_not_read_to_its_end_goes_at_the_next_start(served: Playground) -> None:
    half = served.folder / "bases" / "half"
    half.mkdir(parents=True)
    (half / "data").write_text("{")
    bad = served.folder / "bases" / "bad"
    bad.mkdir()
    (bad / "about.json").write_text(json.dumps({"name": "Bad", "time": 1.0}))
    (bad / "kb.kopl").write_bytes(b"koplkb")
    served.part(Uploads)
    assert left(served) == ["bad"] and [*served.bases] == ["small"]
