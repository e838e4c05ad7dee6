"""A table of distinct strings whose numbers follow their order by code point."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable
from itertools import islice

import numpy as np

from kb.arrays import view
from kb.columns import Columns

PIECE = 1 << 16  # texts that are encoded at a time


class StringTable:
    """Read-only strings 0..n-1, sorted by code point, so comparing numbers compares strings.

    The texts stay UTF-8 in one block (whose byte order is the code point order) and are decoded
    when asked for; a hash over them finds the number of a text.
    """

    def __init__(self, arrays: Columns) -> None:
        self._bytes = view(arrays["text_bytes"])
        self._starts = view(arrays["text_starts"])
        self._bucket_starts = view(arrays["text_bucket_starts"])
        self._buckets = view(arrays["text_buckets"])
        self._mask = len(self._bucket_starts) - 2

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:
        return str(self._bytes[self._starts[number] : self._starts[number + 1]], "utf-8")

    def find(self, text: str) -> int:
        """The number of the text, or -1."""
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate is never in the table
            return -1
        bucket = zlib.crc32(data) & self._mask
        for at in range(self._bucket_starts[bucket], self._bucket_starts[bucket + 1]):
            number: int = self._buckets[at]
            if self._bytes[self._starts[number] : self._starts[number + 1]] == data:
                return number
        return -1


def string_arrays(texts: Iterable[str], errors: str = "replace") -> Columns:
    """The arrays of a `StringTable` for texts that are distinct and sorted already.

    ``errors`` is that of `str.encode`, for lone surrogates.
    """
    data, lengths, hashes = bytearray(), array("i"), array("I")
    remaining = iter(texts)
    while piece := [text.encode("utf-8", errors) for text in islice(remaining, PIECE)]:
        data += b"".join(piece)
        lengths.extend(map(len, piece))
        hashes.extend(map(zlib.crc32, piece))
    count = len(lengths)
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.array(lengths, np.int64), out=starts[1:])
    buckets = 1 << max(1, count.bit_length())
    slots = np.array(hashes, np.uint32) & np.uint32(buckets - 1)
    order = np.argsort(slots, kind="stable")
    return {
        "text_bytes": np.frombuffer(data, np.uint8),
        "text_starts": starts,
        "text_buckets": order.astype(np.int32),
        "text_bucket_starts": np.searchsorted(slots[order], np.arange(buckets + 1)).astype(
            np.int32
        ),
    }
