"""Load time, memory and speed of the executor at the paper's scale, beside its peers.

    python benchmarks/executor.py --bench DIR

``DIR`` holds ``make_kb.py`` and ``make_programs.py``, which make a synthetic knowledge base with
exactly the counts of KQA Pro and 2,000 programs on it (default: the folder ``bench`` beside the
one that KOPL_DATA names). Peers run in environments of their own below ``--work``, which is kept,
so that a second run does not install again. The script measures and fails on nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKERS = Path(__file__).resolve().parent / "workers"
# name -> (worker, what to install in its environment)
PEERS = {
    "kopl 0.0.5": ("peer_kopl.py", ["kopl==0.0.5", "tqdm"]),
    "kopl-engine 0.1.1": ("peer_engine.py", ["kopl-engine==0.1.1", "tqdm"]),
}


def main() -> None:
    """Make the data, run every system in its own process, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, help="folder with make_kb.py and make_programs.py")
    parser.add_argument("--work", type=Path, help="folder for data and environments")
    parser.add_argument("--scale", default="1.0", help="size of the knowledge base (default: 1.0)")
    parser.add_argument("--no-peers", action="store_true", help="measure this toolkit only")
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.gettempdir()) / "kopl-benchmark"
    kb_file, programs = make_data(arguments.bench or default_bench(), work, arguments.scale)

    snapshot = work / "kb.kopl"
    python = sys.executable
    subprocess.run(
        [python, "-m", "kopl", "kb", "snapshot", str(kb_file), str(snapshot)], cwd=ROOT, check=True
    )
    reports = {
        "ours, JSON": run_worker(python, "ours.py", kb_file, programs, work),
        "ours, snapshot": run_worker(python, "ours.py", snapshot, programs, work),
    }
    for name, (worker, packages) in {} if arguments.no_peers else PEERS.items():
        try:
            peer_python = environment(work / worker.removesuffix(".py"), packages)
            reports[name] = run_worker(peer_python, worker, kb_file, programs, work)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name} could not be measured: {error}", file=sys.stderr)
    print_machine()
    print_workload(programs)
    print_table(reports)


def default_bench() -> Path:
    """The folder beside the published data."""
    data = os.environ.get("KOPL_DATA")
    folder = Path(data).resolve().parent / "bench" if data else Path("bench")
    if not (folder / "make_kb.py").is_file():
        sys.exit(f"{folder} has no make_kb.py; name its folder with --bench")
    return folder


def make_data(bench: Path, work: Path, scale: str) -> tuple[Path, Path]:
    """The knowledge base and the programs; made once."""
    work.mkdir(parents=True, exist_ok=True)
    kb_file, programs = work / f"kb-{scale}.json", work / f"programs-{scale}.json"
    if not kb_file.is_file():
        command = [sys.executable, str(bench / "make_kb.py"), str(kb_file), "--scale", scale]
        subprocess.run(command, check=True)
    if not programs.is_file():
        command = [sys.executable, str(bench / "make_programs.py"), str(kb_file), str(programs)]
        subprocess.run(command, check=True)
    return kb_file, programs


def environment(folder: Path, packages: list[str]) -> str:
    """The Python of a virtual environment that holds the packages."""
    python = folder / "bin" / "python"
    if not (folder / "ready").is_file():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(install, check=True)
        (folder / "ready").touch()
    return str(python)


def run_worker(python: str, worker: str, kb_file: Path, programs: Path, work: Path) -> Any:
    """What a worker measured, in a process with one thread."""
    out = work / "report.json"
    out.unlink(missing_ok=True)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    extra = {"PYTHONPATH": str(ROOT)} if worker == "ours.py" else {}
    subprocess.run(
        [python, str(WORKERS / worker), str(kb_file), str(programs), str(out)],
        env={**os.environ, **threads, **extra}, check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, timeout=1800, cwd=work,
    )  # fmt: skip
    return json.loads(out.read_text("utf-8"))


def print_machine() -> None:
    """Where and when."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            x.split(":")[1].strip() for x in info.read_text().splitlines() if "model name" in x
        ]
        model = names[0] if names else model
    print(f"{datetime.date.today()}, Python {platform.python_version()}, {platform.system()},")
    print(f"{model}, {os.cpu_count()} cores, one thread used\n")


def print_workload(programs: Path) -> None:
    """The shares of the question types."""
    items = json.loads(programs.read_text("utf-8"))
    counts = Counter(item.get("type", "?") for item in items)
    calls = statistics.mean(len(item["program"]) for item in items)
    shares = ", ".join(f"{name} {n / len(items):.1%}" for name, n in counts.most_common())
    print(f"{len(items)} programs, {calls:.2f} calls on average: {shares}\n")


def print_table(reports: dict[str, Any]) -> None:
    """One row a system; the ratios are those of the pass beside ours from the snapshot."""
    heads = ["system", "load s", "peak MB (load)", "peak MB (run)"]
    for name in ("1st pass", "2nd pass"):
        heads += [f"{name} s", "median ms", "p95 ms", "max ms", "ours is faster"]
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    base = reports["ours, snapshot"]
    for name, report in reports.items():
        row = [name, f"{report['load_s']:.2f}", f"{report['peak_load']:.0f}",
               f"{report['peak_run']:.0f}"]  # fmt: skip
        for number, once in enumerate(report["passes"]):
            times = sorted(once["ms"])
            ratio = once["total_s"] / base["passes"][number]["total_s"]
            row += [f"{once['total_s']:.3f}", f"{statistics.median(times):.3f}",
                    f"{times[int(len(times) * 0.95)]:.3f}", f"{times[-1]:.1f}",
                    f"{ratio:.1f} times"]  # fmt: skip
        print("| " + " | ".join(row) + " |")
    ours = base["answers"]
    print()
    for name, report in reports.items():
        if not name.startswith("ours"):
            same = sum(agree(a, b) for a, b in zip(ours, report["answers"], strict=True))
            print(f"{name}: {same / len(ours):.1%} of its answers are ours")


def agree(ours: list[str], theirs: object) -> bool:
    """Whether a peer printed the same strings, whatever their order."""
    if isinstance(theirs, str):
        return ours == [theirs] or sorted(ours) == sorted(theirs.split("\n"))
    if isinstance(theirs, list):
        return sorted(ours) == sorted({str(item) for item in theirs})
    return False


if __name__ == "__main__":
    main()
