"""Snapshots and the cache: never misread, made again when they cannot be used."""

from __future__ import annotations

import json
import logging
import os
import random
import struct
import sys
import zlib
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from kb import (
    KnowledgeBase,
    ReadError,
    SnapshotError,
    from_kqapro,
    load,
    read,
    read_kqapro,
    read_lines,
    read_snapshot,
    write_kqapro,
    write_lines,
    write_snapshot,
)
from kb.columns import Columns, by_name
from kb.snapshot import VERSION, Source, is_snapshot, read_header
from tests.kb.strategies import clean_kb, document_of
from tests.reference.random_kb import random_kb

LOAD = sys.modules["kb.load"]  # the module: in the package, ``kb.load`` is the function


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KOPL_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A kb.json that may be loaded."""
    path = tmp_path / "source.json"
    path.write_text(json.dumps(clean_kb(1)))
    return path


def kept(cache: Path) -> Path:
    """The one snapshot in the cache folder."""
    (path,) = cache.iterdir()
    return path


def other_version(path: Path) -> None:
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 8, VERSION + 1)
    path.write_bytes(data)


def damaged(path: Path) -> None:
    """Alter a byte of a column."""
    data = bytearray(path.read_bytes())
    data[read_header(path)["start"] + 1] ^= 1
    path.write_bytes(data)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-64])


def headless(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)


# --- snapshots -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(15))
def test_round_trip(seed: int, tmp_path: Path) -> None:
    knowledge = from_kqapro(random_kb(random.Random(seed)))
    write_snapshot(knowledge, tmp_path / "kb.kopl")
    assert is_snapshot(tmp_path / "kb.kopl")
    for verify in (True, False):
        again = read_snapshot(tmp_path / "kb.kopl", verify=verify)
        assert document_of(again) == document_of(knowledge)
        assert again.fingerprint == knowledge.fingerprint
        assert repr(again) == repr(knowledge)
    write_snapshot(again, tmp_path / "again.kopl")
    assert (tmp_path / "again.kopl").read_bytes() == (tmp_path / "kb.kopl").read_bytes()


def test_columns_cannot_be_written(tmp_path: Path, tiny: KnowledgeBase) -> None:
    write_snapshot(tiny, tmp_path / "kb.kopl")
    for knowledge in (tiny, read_snapshot(tmp_path / "kb.kopl")):
        assert not any(column.flags.writeable for column in by_name(knowledge.arrays).values())


def test_columns_are_declared_with_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    document = clean_kb(1)
    found = by_name(from_kqapro(document).arrays)
    # The other form of the hierarchy, that of many pairs.
    monkeypatch.setattr("kb.hierarchy.FREE", -1)
    monkeypatch.setattr("kb.hierarchy.WRITTEN_OUT", 0)
    found |= by_name(from_kqapro(document).arrays)
    declared = {
        name: np.dtype(get_args(get_args(array)[1])[0])
        for name, array in get_type_hints(Columns).items()
    }
    assert {name: column.dtype for name, column in found.items()} == declared


@pytest.mark.parametrize("name", ["kb.kopl", "kb.json", "kb.gz", "kb.xz"])
def test_a_snapshot_is_known_by_its_content(name: str, tmp_path: Path, tiny: KnowledgeBase) -> None:
    write_snapshot(tiny, tmp_path / name)
    for opener in (read, load, read_snapshot):
        assert opener(tmp_path / name).fingerprint == tiny.fingerprint


def test_altered_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kb.kopl"
    write_snapshot(from_kqapro(clean_kb(2, "tiny")), path)
    data = path.read_bytes()
    rng = random.Random(1)
    places = [*range(24), *(rng.randrange(24, len(data)) for _ in range(300)), len(data) - 1]
    for at in places:
        altered = bytearray(data)
        altered[at] ^= 1 << rng.randrange(8)
        path.write_bytes(altered)
        with pytest.raises(SnapshotError, match="cannot be used"):
            read_snapshot(path)


def test_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kb.kopl"
    write_snapshot(from_kqapro(clean_kb(2, "tiny")), path)
    data = path.read_bytes()
    for cut in (*range(0, 64), *range(64, len(data), 97), len(data) - 1):
        path.write_bytes(data[:cut])
        for verify in (True, False):
            with pytest.raises(SnapshotError, match="cut short"):
                read_snapshot(path, verify=verify)
    path.write_bytes(data + b"\0")
    with pytest.raises(SnapshotError, match="something was added"):
        read_snapshot(path)


def test_another_version_is_refused(tmp_path: Path, tiny: KnowledgeBase) -> None:
    path = tmp_path / "kb.kopl"
    write_snapshot(tiny, path)
    other_version(path)
    with pytest.raises(SnapshotError, match=f"version {VERSION + 1}, this toolkit reads {VERSION}"):
        read_snapshot(path)
    with pytest.raises(SnapshotError, match="make it again"):
        load(path)


def test_what_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "kb.json").write_text("{}" * 50)
    with pytest.raises(SnapshotError, match="not a snapshot"):
        read_snapshot(tmp_path / "kb.json")
    with pytest.raises(ReadError, match="cannot be opened"):
        read_snapshot(tmp_path / "missing")


def test_the_header_is_plain_json(tmp_path: Path, source: Path, tiny: KnowledgeBase) -> None:
    write_snapshot(tiny, tmp_path / "kb.kopl", Source.of(source))
    data = (tmp_path / "kb.kopl").read_bytes()
    magic, version, length, checksum = struct.unpack_from("<8sIII", data)
    header = data[20 : 20 + length]
    assert (magic, version, checksum) == (b"koplkb\r\n", VERSION, zlib.crc32(header))
    assert json.loads(header)["source"]["path"] == str(source.resolve())
    assert json.loads(header)["sha256"] == tiny.fingerprint


# --- fingerprints ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_equal_however_loaded(seed: int, tmp_path: Path, cache: Path) -> None:
    document = clean_kb(seed)
    knowledge = from_kqapro(document)
    write_kqapro(knowledge, tmp_path / "a.json")
    write_kqapro(knowledge, tmp_path / "b.json.gz", spelling="B")
    write_lines(knowledge, tmp_path / "c.jsonl")
    write_snapshot(knowledge, tmp_path / "d.kopl")
    found = {
        from_kqapro(document).fingerprint,
        read_kqapro(tmp_path / "a.json").fingerprint,
        read_kqapro(tmp_path / "b.json.gz").fingerprint,
        read_lines(tmp_path / "c.jsonl").fingerprint,
        read_snapshot(tmp_path / "d.kopl").fingerprint,
        *(load(tmp_path / name).fingerprint for name in ("a.json", "a.json", "c.jsonl", "d.kopl")),
    }
    assert found == {knowledge.fingerprint}


def test_different_knowledge_bases_differ() -> None:
    found = {from_kqapro(clean_kb(seed)).fingerprint for seed in range(30)}
    assert len(found) == 30


# --- the cache -------------------------------------------------------------------------------


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_again(*_: Any) -> KnowledgeBase:
        raise AssertionError("the source was read again")

    monkeypatch.setattr(LOAD, "read", read_again)


def test_the_second_time_the_snapshot_is_opened(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(source)
    assert is_snapshot(kept(cache))
    forbid_reading(monkeypatch)
    assert load(source).fingerprint == first.fingerprint
    monkeypatch.chdir(source.parent)
    assert load(source.name).fingerprint == first.fingerprint
    with pytest.raises(AssertionError):
        load(source, cache=False)


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_changed_source_is_read_again(change: str, source: Path, cache: Path) -> None:
    load(source)
    before = source.stat()
    text = source.read_text()
    if change == "size":
        source.write_text(json.dumps(clean_kb(2)))
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        source.write_text(text.replace('"key"', '"kez"', 1).replace('"kez"', '"key"'))
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    stale = kept(cache).stat().st_ino
    assert load(source).fingerprint == read_kqapro(source).fingerprint
    assert kept(cache).stat().st_ino != stale


def test_sources_of_one_name_are_kept_apart(tmp_path: Path, cache: Path) -> None:
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        (tmp_path / str(seed) / "kb.json").write_text(json.dumps(clean_kb(seed)))
    for _ in range(2):
        for seed in (1, 2):
            loaded = load(tmp_path / str(seed) / "kb.json")
            assert loaded.fingerprint == from_kqapro(clean_kb(seed)).fingerprint
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("spoil", [other_version, damaged, cut_short, headless])
def test_a_spoilt_cache_is_made_again(
    spoil: Any,
    source: Path,
    cache: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = load(source)
    spoil(kept(cache))
    with caplog.at_level(logging.WARNING, "kb"):
        assert load(source).fingerprint == first.fingerprint
    assert "made again" in caplog.text and str(source) in caplog.text
    forbid_reading(monkeypatch)
    assert load(source).fingerprint == first.fingerprint


def test_a_cache_that_cannot_be_opened(
    source: Path, cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(source)

    def refused(path: Path) -> Any:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(LOAD, "read_header", refused)
    assert load(source).fingerprint == first.fingerprint
    assert "not yours" in caplog.text


@pytest.mark.parametrize("wanted", ["off", ""])
def test_no_cache(
    wanted: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPL_CACHE_DIR", wanted)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    load(source)
    assert [path.name for path in tmp_path.iterdir()] == ["source.json"]


def test_the_users_cache_folder(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KOPL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    load(source)
    assert is_snapshot(kept(tmp_path / "xdg" / "kopl-toolkit"))


def test_a_cache_folder_that_cannot_be_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPL_CACHE_DIR", str(source / "below"))
    assert load(source).fingerprint == read_kqapro(source).fingerprint


# --- a snapshot that is asked for by its own name ----------------------------------------------


@pytest.mark.parametrize("spoil", [damaged, cut_short])
def test_a_damaged_snapshot_is_made_again_from_its_source(
    spoil: Any, source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    knowledge = read_kqapro(source)
    path = tmp_path / "kb.kopl"
    write_snapshot(knowledge, path, Source.of(source))
    spoil(path)
    assert load(path).fingerprint == knowledge.fingerprint
    assert "made again" in caplog.text
    assert read_snapshot(path).fingerprint == knowledge.fingerprint


@pytest.mark.parametrize("spoil", [damaged, cut_short, other_version, headless])
@pytest.mark.parametrize("recorded", [False, True])
def test_without_a_source_it_is_an_error(
    spoil: Any, recorded: bool, source: Path, tmp_path: Path
) -> None:
    path = tmp_path / "kb.kopl"
    write_snapshot(read_kqapro(source), path, Source.of(source) if recorded else None)
    spoil(path)
    before = path.read_bytes()
    source.unlink()
    with pytest.raises(SnapshotError, match="cannot be used"):
        load(path)
    assert path.read_bytes() == before
