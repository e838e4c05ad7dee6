"""What ``pip install 'kopl-toolkit[serve]'`` brings is enough for the page without a run."""

from __future__ import annotations

import configparser
import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from kopl_base.servers import LocalServer
from tests.conftest import ROOT

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")

# Refuses the packages that are named, as if they were not installed, and runs `kopl`.
ALONE = """
import sys

foreign = set(sys.argv.pop(1).split(","))


class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in foreign:
            return self.finder.find_spec(name, path, target)


sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from kopl_cli import entry

sys.exit(entry())
"""


def brought(extra: str) -> set[str]:
    """The distributions that the toolkit with an extra brings, those they need included."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    needs = config["options"]["install_requires"] + config["options.extras_require"][extra]
    left, found = re.findall(r"^\s*([\w.-]+)", needs, re.M), set[str]()
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        found.add(name)
        try:
            more = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another Python or platform
            continue
        left += [re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in more if "extra ==" not in one]
    return found


def others(extra: str) -> list[str]:
    """The packages that are installed here and would not be with an extra only."""
    own = brought(extra) | {"kopl-toolkit", "pip", "setuptools"}
    kept, found = set[str](), set[str]()
    for one in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", one.metadata["Name"] or "").lower()
        tops = {Path(file.parts[0]).name.partition(".")[0] for file in one.files or ()}
        (kept if name in own else found).update(top for top in tops if top.isidentifier())
    return sorted(found - kept)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that finds only what its extra brings."""
    foreign = others("serve")
    assert "pydantic" in foreign and "starlette" not in foreign and "yaml" not in foreign
    folder = tmp_path_factory.mktemp("alone")
    script = folder / "alone.py"
    script.write_text(ALONE, "utf-8")

    def command(ports: tuple[int, ...]) -> list[str]:
        return [sys.executable, str(script), ",".join(foreign), "serve", "--port", str(ports[0])]

    server = LocalServer("kopl serve", command, online="http://", folder=folder)
    server.start(wait=120)
    yield f"http://127.0.0.1:{server.ports[0]}"
    server.stop()


def asked(address: str, body: Any = None) -> tuple[int, Any]:
    """The status and the body of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(address, data, {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_the_page_works_without_the_packages_of_other_extras(alone: str) -> None:
    status, info = asked(f"{alone}/api/info")
    assert status == 200 and info["kb"] == "world" and info["run"] is None
    assert not info["can"]["ask"]["yes"] and not info["can"]["train"]["yes"]
    program = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
    hole = {"path": [0], "slot": "argument", "index": 0}
    for name, body in {
        "run": {"program": program, "evidence": True},
        "complete": {"program": program, "hole": hole},
        "edit": {"program": program, "operation": {"do": "wrap", "path": [], "function": "And"}},
        "facts": {"program": program, "path": [0], "text": "Oslo"},
        "translate": {"program": program, "to": "sparql"},
        "export": {"program": program, "form": "html"},
        "kb": {"name": "a.csv", "file": "table", "text": "name,size\nA,1\nB,2\n", "draft": True},
    }.items():
        status, answer = asked(f"{alone}/api/{name}", body)
        assert status in (200, 202), (name, answer)
    for name in ("examples", "kb/search?q=Oslo", "kb/schema", "corrections", "openapi.json"):
        status, answer = asked(f"{alone}/api/{name}")
        assert status in (200, 202), (name, answer)
    verdict = {"question": "What is it?", "verdict": "right", "program": program}
    assert asked(f"{alone}/api/corrections", verdict)[0] == 200
    assert asked(f"{alone}/api/corrections/export?form=kqapro")[0] == 200


def test_what_is_missing_is_told_with_the_command_that_installs_it(alone: str) -> None:
    status, answer = asked(f"{alone}/api/train", {"what": "default"})
    assert status == 501 and "[train]" in answer["error"]["to_try"], answer
