"""Runs on a Ray cluster: two nodes of one core each, on this machine."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generation import ray_runner
from generation.blocks import Options
from generation.formats import open_examples
from generation.makers import Block, Start, processes
from generation.ray_runner import RayError, cluster
from generation.run import Plan, run
from kb import KnowledgeBase
from kopl_base.packages import needs
from kopl_base.processes import LostWorkerError
from kopl_base.runs import in_order
from kopl_cli import main

QUICK = Options(levels=5, clauses=False, verify=0.0, sparql=False)
MEMORY = 100 << 20  # bytes for each node's objects


def plan(kb: str, count: int, **given: Any) -> Plan:
    return Plan(kb, count, 5, QUICK, **given)


@pytest.fixture(scope="module")
def ray() -> Any:
    return pytest.importorskip(
        "ray", reason="Ray is not installed: pip install 'kopl-toolkit[ray]'"
    )


@pytest.fixture(scope="module")
def nodes(ray: Any) -> Iterator[Any]:
    """A cluster with two nodes; this process is none of its workers."""
    from ray.cluster_utils import Cluster

    # Workers must find the package as this process does, wherever it is started.
    path = [entry for entry in (str(Path(__file__).parents[2]), *sys.path) if entry]
    handler = signal.getsignal(signal.SIGTERM)  # Ray sets its own
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", os.pathsep.join(path))
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        node = {"num_cpus": 1, "object_store_memory": MEMORY}
        found = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
        found.add_node(**node)
        try:
            yield found
        finally:
            ray.shutdown()
            found.shutdown()
            signal.signal(signal.SIGTERM, handler)


def test_the_same_as_the_plain_run(nodes: Any, tmp_path: Path) -> None:
    """Questions, order and statistics; what differs is who made them, and where."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    rules = tmp_path / "rules.scfg"
    text = Path(ray_runner.__file__).with_name("kqapro.scfg").read_text("utf-8")
    rules.write_text(text, "utf-8")
    given = plan("world", 1100, rules=str(rules))
    plain = run(given, tmp_path / "plain.jsonl")
    report = run(given, tmp_path / "set", form="parquet", executor=cluster(nodes.address))
    assert list(open_examples(tmp_path / "set")) == list(open_examples(tmp_path / "plain.jsonl"))
    assert report.reasons == plain.reasons
    assert report.statistics.to_json() == plain.statistics.to_json()


def test_lost_workers(nodes: Any, ray: Any, world: KnowledgeBase) -> None:
    """What a killed process or a lost node had in work is made again."""
    given = plan("world", 20_000)
    wanted = blocks_of(processes(1), given, world)
    own = nodes.add_node(num_cpus=1, object_store_memory=MEMORY)
    ray.init(address=nodes.address, log_to_driver=False)
    blocks = blocks_of(cluster(workers=2), given, world)
    try:
        os.kill(at_work(blocks, wanted), signal.SIGKILL)
        nodes.remove_node(own, allow_graceful=False)
        for _ in range(2):
            assert same(next(blocks), next(wanted))
    finally:
        blocks.close()
        joined = ray.is_initialized()
        ray.shutdown()
    assert joined  # who joined the cluster leaves it


def blocks_of(start: Start, plan: Plan, kb: KnowledgeBase) -> Generator[tuple[int, Block]]:
    """All blocks of a plan, with their numbers."""
    left = plan.numbers(plan.shard[0])
    wanted: list[int] = []

    def blocks(workers: int) -> Iterator[tuple[int]]:
        yield from ((number,) for number in wanted)
        for number in left:
            wanted.append(number)
            yield (number,)

    with closing(in_order(SimpleNamespace(blocks=blocks), start(plan, kb))) as made:
        for (number,), block in made:
            wanted.remove(number)
            yield number, block


def same(left: Any, right: Any) -> bool:
    return bool(left[0] == right[0] and left[1].lines == right[1].lines)


def at_work(blocks: Iterator[Any], wanted: Iterator[Any]) -> int:
    """A process that makes a block; each block that is taken lets another one be made."""
    for _ in range(8):
        assert same(next(blocks), next(wanted))
        end = time.monotonic() + 4
        while time.monotonic() < end:
            if found := pids("ray::_make"):
                return found[0]
            time.sleep(0.01)
    pytest.fail("no process makes a block")


def pids(name: str) -> list[int]:
    """The processes whose title begins so."""
    found = []
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("no list of processes on this system")
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and (folder / "cmdline").read_text().startswith(name):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_how_much_is_under_way(
    ray: Any, lands: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow block holds the others up: they wait, and are not made without end."""
    asked: list[int] = []
    cancelled: list[int] = []

    class Task:
        def remote(self, job: Any, held: Any, number: int) -> int:
            asked.append(number)
            return number

    fake = SimpleNamespace(
        exceptions=ray.exceptions,
        is_initialized=lambda: True,
        cluster_resources=lambda: {"CPU": 3.0},
        put=lambda item: "held",
        remote=lambda **options: lambda function: Task(),
        wait=lambda references, timeout: (references, []),
        get=lambda reference: f"block {reference}",
        cancel=lambda reference, force: cancelled.append(reference),
    )
    monkeypatch.setitem(sys.modules, "ray", fake)  # type: ignore[arg-type]
    blocks = blocks_of(cluster(), plan("any", 10_000, shard=(1, 2)), lands)
    assert next(blocks) == (1, "block 1")
    assert asked == [1, 3, 5, 7, 9, 11]  # two for each of three cores
    assert next(blocks) == (3, "block 3")
    assert asked[6:] == [13]
    blocks.close()
    assert cancelled == [5, 7, 9, 11, 13]


def test_no_cores_any_more(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "wait", lambda *_, **__: ([], []))
    monkeypatch.setattr(ray, "cluster_resources", dict)
    with pytest.raises(LostWorkerError, match="no cores any more"):
        ray_runner._result(ray, "a block")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("ModuleNotFoundError: No module named 'generation'", RayError, "lack a package"),
        ("the raylet died", LostWorkerError, "lost a block: .*the raylet died"),
    ],
)
def test_failures(
    ray: Any, monkeypatch: pytest.MonkeyPatch, text: str, kind: Any, message: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ray.exceptions.RaySystemError(text)

    monkeypatch.setattr(ray, "wait", lambda references, timeout: (references, []))
    monkeypatch.setattr(ray, "get", fail)
    with pytest.raises(kind, match=message):
        ray_runner._result(ray, "a block")


def test_errors_of_a_worker_are_told(
    nodes: Any, lands_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong rule is found by the workers, and said as the plain run says it."""
    rules = tmp_path / "my.scfg"
    rules.write_text("ROOT[Count] -> Count(E)\n  | how many?\n", "utf-8")
    arguments = ["generate", "--kb", lands_file, "-n", "5", "--rules", str(rules)]
    arguments += ["-o", str(tmp_path / "q.parquet"), "--ray", nodes.address]
    assert main(arguments) == 2
    assert "my.scfg: line 1: there is no rule for E" in capsys.readouterr().err


def test_without_ray(
    monkeypatch: pytest.MonkeyPatch, lands_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["generate", "--kb", lands_file, "-n", "5", "--ray", "-o", "q.jsonl"]) == 2
    assert needs("--ray", "ray", extra="ray") in capsys.readouterr().err


def test_addresses_without_a_cluster(
    ray: Any, lands_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    for address in (f"127.0.0.1:{free}", f"ray://127.0.0.1:{free}", "[::1]:1", "nonsense"):
        begin = time.monotonic()
        with pytest.raises(RayError, match="no Ray cluster"):
            run(plan(lands_file, 5), tmp_path / "q.jsonl", executor=cluster(address))
        assert time.monotonic() - begin < 15
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(RayError, match="no Ray cluster"):
            run(plan(lands_file, 5), tmp_path / "q.jsonl", executor=cluster())
        monkeypatch.delenv("RAY_ADDRESS")
