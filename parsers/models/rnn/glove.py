"""Word vectors from a text file, such as GloVe's: a word and its numbers in each line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kopl_base.errors import ReadError
from kopl_base.stream import TextReader
from parsers.tokens import Vocabulary


def read_vectors(
    path: str, vocabulary: Vocabulary, size: int
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """(number of the word, its vector) for each word of the vocabulary that the file has.

    The file may be compressed. Raises ReadError for lines of another length than ``size``.
    """
    wanted = set(vocabulary.words)
    found = False
    with TextReader(Path(path), f"reading {Path(path).name}") as reader:
        for number, line in enumerate(reader.lines(), 1):
            parts = line.split(" ")
            word = " ".join(parts[:-size])  # a few of GloVe's words have blanks
            if number == 1 and len(parts) == 2:  # the head line of word2vec's and fastText's files
                continue
            if len(parts) <= size:
                raise ReadError(
                    f"a word and {size} numbers were expected, found {len(parts) - 1}; set"
                    " rnn.embedding to the length of the vectors",
                    place=f"line {number}", source=path,
                )  # fmt: skip
            if word not in wanted:
                continue
            try:
                vector = np.array(parts[-size:], np.float32)
            except ValueError:
                raise ReadError("not numbers", place=f"line {number}", source=path) from None
            found = True
            yield vocabulary.number(word), vector
    if not found:
        raise ReadError("none of the questions' words is in it", source=path)
