"""Cuts texts into terms and counts them as scikit-learn's vectorisers do, several times as fast and without loading it.

A word is cut into its pieces once, however often it occurs. The weights are the same to the last bit (a test compares
them with scikit-learn's), so a saved transform means the same whichever of the two made it.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_WORD = re.compile(r"(?u)\b\w+\b")  # "I" and "a" are words too
Numbers = Callable[[str], "int | None"]
"""From a term to its number; None for a term that is not counted."""


@dataclass(frozen=True)
class Grams:
    """One family of terms: word or character n-grams.

    Attributes:
        analyzer: "word", or "char_wb" for characters inside words.
        low: the shortest n.
        high: the longest n.
        min_texts: a term must occur in this many texts (in one, if there are few texts).
        most: at most this many terms are kept, the most frequent ones.
    """

    analyzer: str
    low: int
    high: int
    min_texts: int = 1
    most: int = 20_000


def count_all(grams: Grams, texts: Sequence[str]) -> tuple[list[str], csr_matrix]:
    """Every term in the order of its first occurrence, and how often each occurs in each text."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    ids, ends = _cut(grams, texts, numbers.__getitem__)
    return list(numbers), _counts(ids, ends, len(numbers))


def count_known(grams: Grams, texts: Sequence[str], numbers: dict[str, int]) -> csr_matrix:
    """How often each term that has a number occurs in each text."""
    ids, ends = _cut(grams, texts, numbers.get)
    return _counts(ids, ends, len(numbers))


def weigh(counts: csr_matrix, idf: NDArray[np.floating]) -> csr_matrix:
    """(1 + log tf) * idf, each row scaled to length 1; in place."""
    data = counts.data
    np.log(data, out=data)
    data += 1
    data *= idf.astype(np.float32)[counts.indices]
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    lengths = np.sqrt(np.bincount(rows, data * data, counts.shape[0]))
    counts.data = (data / lengths[rows]).astype(np.float32)
    return counts


def _counts(ids: NDArray[np.int32], ends: list[int], size: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    counts = csr_matrix((np.ones(len(ids), np.float32), ids, np.array([0, *ends])), (len(ends), size))
    counts.sum_duplicates()
    return counts


def _cut(grams: Grams, texts: Iterable[str], number: Numbers) -> tuple[NDArray[np.int32], list[int]]:
    """The numbers of all terms of all texts, and where each text ends among them."""
    ids, ends = array("i"), []
    add = _words(grams, number) if grams.analyzer == "word" else _characters(grams, number)
    for text in texts:
        add(text.lower(), ids)
        ends.append(len(ids))
    return np.frombuffer(ids, np.intc).astype(np.int32) if ids else np.empty(0, np.int32), ends


def _words(grams: Grams, number: Numbers) -> Callable[[str, array[int]], None]:
    def add(text: str, ids: array[int]) -> None:
        words = _WORD.findall(text)
        for n in range(grams.low, grams.high + 1):
            terms = words if n == 1 else map(" ".join, zip(*(words[k:] for k in range(n)), strict=False))
            ids.extend(k for term in terms if (k := number(term)) is not None)

    return add


def _characters(grams: Grams, number: Numbers) -> Callable[[str, array[int]], None]:
    known: dict[str, array[int]] = {}

    def pieces(word: str) -> array[int]:
        """The n-grams of a word between two spaces; a word shorter than n is a piece itself, once."""
        padded, terms = f" {word} ", []
        for n in range(grams.low, grams.high + 1):
            terms += [padded[k : k + n] for k in range(max(len(padded) - n + 1, 1))]
            if len(padded) <= n:
                break
        known[word] = found = array("i", (k for term in terms if (k := number(term)) is not None))
        return found

    def add(text: str, ids: array[int]) -> None:
        for word in text.split():
            ids.extend(known[word] if word in known else pieces(word))

    return add
