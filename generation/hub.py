"""Data sets by their name on Hugging Face's hub, and folders in the forms of the package datasets.

The package looks into its own cache first. Where the hub does not answer within seconds, nothing
else is waited for: what is not in the cache is said to be out of reach, with what to do instead.
Whether it answers is asked by the standard library: any reply will do, and no extra is needed.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from kopl_base.errors import ReadError
from kopl_base.packages import install

SECONDS = 4.0  # for a hub to answer at all

NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[\w.-]+)(?::([\w.-]+))?")

# Endings of files, which are no names of data sets even where there is no such file.
_FILE = re.compile(r".*\.(jsonl?|csv|parquet)(\.(gz|bz2|xz))?", re.IGNORECASE)
# What tells a folder that `Dataset.save_to_disk` wrote.
_SAVED = ("dataset_dict.json", "state.json")
_DATA = ("parquet", "arrow", "jsonl", "json", "csv")

DOWNLOAD = (
    "Without a network: download the files of https://huggingface.co/datasets/{name} (hf download"
    " --repo-type dataset {name} --local-dir FOLDER) where there is one, put FOLDER here and give"
    " its path. KQA Pro is published as files, too: download train.json, val.json, test.json and"
    " kb.json, put them into one folder and give its path"
)

Rows = Iterable[dict[str, Any]]


def is_name(text: str) -> bool:
    """Whether a text may name a data set: owner/name, or owner/name:configuration.

    A path in a folder that is here is none, nor is the name of a file.
    """
    return (
        bool(NAME.fullmatch(text)) and not _FILE.fullmatch(text) and not Path(text).parent.exists()
    )


def load(text: str) -> Mapping[str, Rows]:
    """The splits of a data set by its name; raises ReadError with what to do without a network."""
    match = NAME.fullmatch(text)
    assert match is not None
    name, configuration = match.groups()
    advice = DOWNLOAD.format(name=name)
    datasets = _package()
    if datasets is None:
        raise ReadError(
            f"there is no such file; names on a hub {_missing()}. {advice}",
            source=text,
        )
    online = reached()
    try:
        with nullcontext() if online else _offline():
            return _splits(_loaded(datasets, name, configuration))
    except Exception as error:  # whatever the package, the network or the hub may raise
        reason = f"cannot be had: {_reason(error)}"
        if not online and isinstance(error, ConnectionError):
            reason = "there is no such file, the hub does not answer, and no cache has it"
        raise ReadError(f"{reason}. {advice}", source=text) from None


def _loaded(datasets: Any, name: str, configuration: str | None) -> Any:
    given = () if configuration is None else (configuration,)
    try:
        return datasets.load_dataset(name, *given)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        # Older data sets come with a script; the hub keeps what it gave as tables beside it.
        return datasets.load_dataset(name, *given, revision="refs/convert/parquet")


def load_folder(folder: Path) -> Mapping[str, Rows]:
    """The splits of a folder that `save_to_disk` wrote, or that the package reads by itself.

    Raises ReadError for a folder in which there are none.
    """
    files = {path.suffix[1:] for path in folder.rglob("*") if path.is_file()}
    saved = any((folder / name).is_file() for name in _SAVED)
    if not saved and not files & {*_DATA}:
        raise ReadError(
            "the folder has no question set: train, valid or test as .jsonl, .json, .csv or"
            " .parquet, or what the package datasets reads",
            source=str(folder),
        )
    datasets = _package()
    if datasets is None:
        raise ReadError(
            "the folder has no train, valid or test as .jsonl, .json, .csv or .parquet;"
            f" files of other names {_missing()}",
            source=str(folder),
        )
    try:
        with _offline():
            if saved:
                return _splits(datasets.load_from_disk(str(folder)))
            return _splits(datasets.load_dataset(str(folder)))
    except Exception as error:  # whatever the package makes of the files
        raise ReadError(
            "the folder has no train, valid or test as .jsonl, .json, .csv or .parquet, and the"
            f" package datasets cannot read it ({_reason(error)})",
            source=str(folder),
        ) from None


def _missing() -> str:
    return (
        f"need the package datasets, which is not installed; install it with: {install('datasets')}"
    )


def _package() -> Any:
    try:
        return import_module("datasets")
    except ImportError:
        return None


def _splits(found: Any) -> Mapping[str, Rows]:
    """A data set with splits as it is; a single one under the name of its split, or train."""
    if isinstance(found, Mapping):
        return found
    return {str(found.split or "train"): found}


def _reason(error: Exception) -> str:
    """The first line of what an error says, and its cause where that says more."""
    cause = error.__cause__
    text = str(cause) if type(error).__name__ == "DatasetGenerationError" and cause else str(error)
    return (text.strip() or type(error).__name__).splitlines()[0].rstrip(".")


# --- the network -------------------------------------------------------------------------------


def reached() -> bool:
    """Whether the hub answers at all, with whatever, within seconds."""
    answers: list[bool] = []

    def ask() -> None:
        address = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        try:
            request = urllib.request.Request(address, method="HEAD")
            urllib.request.urlopen(request, timeout=SECONDS).close()
            answers.append(True)
        except urllib.error.HTTPError:
            answers.append(True)
        except urllib.error.URLError as error:
            # A certificate that is not trusted here was sent by somebody; the package has its own.
            answers.append("CERTIFICATE" in str(error.reason))
        except (OSError, ValueError):
            answers.append(False)

    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return False
    # A thread of its own: looking up an address may take longer than any timeout given.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return bool(answers and answers[0])


# What the packages look at before they ask the hub.
_SWITCHES = (("datasets.config", "HF_HUB_OFFLINE"), ("huggingface_hub.constants", "HF_HUB_OFFLINE"))


@contextmanager
def _offline() -> Iterator[None]:
    """Let the imported packages use their caches only; else they try for half a minute."""
    modules = [(sys.modules[name], key) for name, key in _SWITCHES if name in sys.modules]
    before = [getattr(module, key) for module, key in modules]
    for module, key in modules:
        setattr(module, key, True)
    try:
        yield
    finally:
        for (module, key), value in zip(modules, before, strict=True):
            setattr(module, key, value)
