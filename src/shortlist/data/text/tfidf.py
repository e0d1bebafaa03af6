"""TF-IDF weights as features of texts: fitted once, saved without pickle.

>>> from shortlist.data.text.tfidf import TfidfFeatures
>>> features = TfidfFeatures.fit(["where is my card", "my card is lost", "exchange rates"])
>>> features.transform(["lost card"]).shape == (1, features.size)
True
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from shortlist.data.text.saved import check_texts, read_saved, write_saved
from shortlist.data.text.terms import Grams, count_all, count_known, weigh
from shortlist.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


# Chosen on 2,000 held-out training questions of BANKING77 (a linear model, full labels, 8 epochs of Adam): words alone
# 86.9 %, with characters 2-4 89.8 % at 14,500 features, with characters 2-5 and rarer terms 89.8 % at 20,000.
DEFAULT_GRAMS = (Grams("word", 1, 2, min_texts=2), Grams("char_wb", 2, 4, min_texts=5))
_FEW_TEXTS = 1_000
_PART = 1 << 16
"""Texts that are transformed at a time, since meanwhile they take several times the memory of their features."""


@dataclass(frozen=True, eq=False)
class _FittedGrams:
    """The terms of one family and their weights."""

    grams: Grams
    terms: tuple[str, ...]
    idf: NDArray[np.float64]

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {term: k for k, term in enumerate(self.terms)}

    def transform(self, texts: Sequence[str]) -> csr_matrix:
        return weigh(count_known(self.grams, texts, self.numbers), self.idf)


class TfidfFeatures:
    """TF-IDF weights of word and character n-grams: (1 + log tf) * idf, each family scaled to length 1.

    Attributes:
        size: the number of features.
    """

    def __init__(self, families: Sequence[_FittedGrams]) -> None:
        self._families = tuple(families)
        self.size = sum(len(family.terms) for family in self._families)

    @classmethod
    def fit(cls, texts: Sequence[str], grams: Sequence[Grams] = DEFAULT_GRAMS) -> Self:
        """Learn the terms and their weights from the training texts.

        Raises:
            InputError: the texts hold no term at all.
        """
        return cls.fit_transform(texts, grams)[0]

    @classmethod
    def fit_transform(cls, texts: Sequence[str], grams: Sequence[Grams] = DEFAULT_GRAMS) -> tuple[Self, csr_matrix]:
        """`fit`, and the features of the same texts, without cutting them into terms again."""
        from scipy.sparse import csr_matrix, hstack

        texts = check_texts(texts)
        families, blocks = [], []
        for family in grams:
            fitted = _fit(family, texts)
            if fitted is not None:
                families.append(fitted[0])
                blocks.append(fitted[1])
        if not families:
            raise InputError(f"the {len(texts)} texts hold no word to make features of")
        return cls(families), csr_matrix(hstack(blocks, format="csr"), dtype=np.float32)

    def transform(self, texts: Sequence[str]) -> csr_matrix:
        """The features of the texts, (N, size) CSR float32; a text without known terms is a row of zeros."""
        from scipy.sparse import csr_matrix, hstack, vstack

        texts = check_texts(texts)
        if not texts:
            return csr_matrix((0, self.size), dtype=np.float32)
        parts = [texts[start : start + _PART] for start in range(0, len(texts), _PART)]
        rows = [hstack([family.transform(part) for family in self._families], format="csr") for part in parts]
        return csr_matrix(vstack(rows, format="csr"), dtype=np.float32)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the transform as one JSON file, atomically."""
        families = [{**asdict(f.grams), "terms": f.terms, "idf": f.idf.tolist()} for f in self._families]
        write_saved(path, {"kind": "tfidf", "families": families})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; it transforms exactly as the saved one did."""
        content = read_saved(path)
        try:
            if content["kind"] != "tfidf":
                raise InputError(f"{path} holds {content['kind']} features, expected tfidf")
            return cls([_family(dict(family)) for family in content["families"]])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} is not a saved feature transform: {error!r}") from error


def _fit(grams: Grams, texts: Sequence[str]) -> tuple[_FittedGrams, csr_matrix] | None:
    """The fitted terms of a family and the features of the texts; None if no term is frequent enough."""
    found, counts = count_all(grams, texts)
    in_texts = np.bincount(counts.indices, minlength=len(found))
    least = 1 if len(texts) < _FEW_TEXTS else grams.min_texts
    kept = np.array(sorted(np.nonzero(in_texts >= least)[0].tolist(), key=found.__getitem__), np.int64)
    if len(kept) > grams.most:
        often = np.bincount(counts.indices, counts.data, len(found))[kept].astype(np.float32)
        kept = kept[np.sort((-often).argsort()[: grams.most])]
    if not len(kept):
        return None
    shares = np.float32(len(texts) + 1) / (in_texts[kept] + 1).astype(np.float32)
    idf = np.log(shares) + np.float32(1)
    family = _FittedGrams(grams, tuple(found[k] for k in kept.tolist()), idf.astype(np.float64))
    return family, weigh(counts[:, kept], idf)


def _family(saved: dict[str, Any]) -> _FittedGrams:
    terms = tuple(str(term) for term in saved.pop("terms"))
    idf = np.asarray(saved.pop("idf"), np.float64)
    if idf.shape != (len(terms),) or len(set(terms)) != len(terms):
        raise ValueError(f"{len(terms)} terms and {idf.size} weights")
    return _FittedGrams(Grams(**saved), terms, idf)
