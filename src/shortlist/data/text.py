"""Texts made into features: TF-IDF by default, sentence embeddings as an option; fitted once, saved without pickle.

>>> from shortlist.data.text import TfidfFeatures
>>> features = TfidfFeatures.fit(["where is my card", "my card is lost", "exchange rates"])
>>> features.transform(["lost card"]).shape == (1, features.size)
True
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import Dataset, Split
from shortlist.errors import InputError
from shortlist.files import atomic_write

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_FORMAT, _VERSION = "shortlist-features", 1


class Features(Protocol):
    """A transform of texts into (N, size) float32 features."""

    @property
    def size(self) -> int:
        """The number of features."""

    def transform(self, texts: Sequence[str]) -> csr_matrix | NDArray[np.float32]:
        """The features of the texts, (N, size) float32."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is needed to transform the same way again."""


@dataclass(frozen=True)
class Grams:
    """One family of terms: word or character n-grams.

    Attributes:
        analyzer: "word", or "char_wb" for characters inside words.
        low: the shortest n.
        high: the longest n.
        min_texts: a term must occur in as many texts to count (in one where there are few texts).
        most: at most as many terms are kept, the most frequent.
    """

    analyzer: str
    low: int
    high: int
    min_texts: int = 1
    most: int = 20_000


# Chosen on 2,000 held-out training questions of BANKING77 (a linear model, full labels, 8 epochs of Adam): words alone
# 86.9 %, with characters 2-4 89.8 % at 14,500 features, with characters 2-5 and rarer terms 89.8 % at 20,000.
DEFAULT_GRAMS = (Grams("word", 1, 2, min_texts=2), Grams("char_wb", 2, 4, min_texts=5))
_FEW_TEXTS = 1_000


@dataclass(frozen=True, eq=False)
class _FittedGrams:
    """The terms of one family and how much each weighs."""

    grams: Grams
    terms: tuple[str, ...]
    idf: NDArray[np.float64]

    @cached_property
    def vectorizer(self) -> Any:
        vectorizer = _vectorizer(self.grams, vocabulary=self.terms)
        vectorizer.idf_ = self.idf
        return vectorizer


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
            InputError: where the texts hold no term at all.
        """
        texts = _checked(texts)
        families = []
        for family in grams:
            few = len(texts) < _FEW_TEXTS
            vectorizer = _vectorizer(family, min_df=1 if few else family.min_texts, max_features=family.most)
            try:
                vectorizer.fit(texts)
            except ValueError:  # scikit-learn's word for no terms; another family may have some
                continue
            terms = tuple(str(term) for term in vectorizer.get_feature_names_out())
            families.append(_FittedGrams(family, terms, np.asarray(vectorizer.idf_, np.float64)))
        if not families:
            raise InputError(f"the {len(texts)} texts hold no word to make features of")
        return cls(families)

    def transform(self, texts: Sequence[str]) -> csr_matrix:
        """The features of the texts, (N, size) CSR float32; a text without known terms is a row of zeros."""
        from scipy.sparse import csr_matrix, hstack

        texts = _checked(texts)
        if not texts:
            return csr_matrix((0, self.size), dtype=np.float32)
        blocks = [family.vectorizer.transform(texts) for family in self._families]
        return csr_matrix(hstack(blocks, format="csr"), dtype=np.float32)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the transform as one JSON file, atomically."""
        families = [{**asdict(f.grams), "terms": f.terms, "idf": f.idf.tolist()} for f in self._families]
        _write(path, {"kind": "tfidf", "families": families})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; it transforms exactly as the saved one did."""
        content = _read(path)
        try:
            if content["kind"] != "tfidf":
                raise InputError(f"{path} holds {content['kind']} features, expected tfidf")
            return cls([_family(dict(family)) for family in content["families"]])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} is not a saved feature transform: {error!r}") from error


def load_features(path: str | os.PathLike[str]) -> Features:
    """Read a saved transform of either kind."""
    if _read(path).get("kind") == "embeddings":
        from shortlist.data.embeddings import EmbeddingFeatures

        return EmbeddingFeatures.load(path)
    return TfidfFeatures.load(path)


def as_features(dataset: Dataset, features: Features | None = None) -> tuple[Dataset, Features]:
    """A dataset of texts as one of features, and the transform: the one given, or TF-IDF fitted on the training texts.

    The test texts have no part in the fit.
    """
    if dataset.kind != "text" or not isinstance(dataset.train.x, list):
        raise InputError(f"{dataset.name} holds {dataset.kind}, not texts")
    fitted: Features = TfidfFeatures.fit(dataset.train.x) if features is None else features

    def turned(split: Split) -> Split:
        assert isinstance(split.x, list)
        return Split(fitted.transform(split.x), split.y, split.items)

    test = None if dataset.test is None else turned(dataset.test)
    return replace(dataset, train=turned(dataset.train), test=test, kind="features"), fitted


def _vectorizer(grams: Grams, **options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(
        analyzer=grams.analyzer,
        ngram_range=(grams.low, grams.high),
        token_pattern=r"(?u)\b\w+\b" if grams.analyzer == "word" else None,  # "I" and "a" are words too
        sublinear_tf=True,
        dtype=np.float32,
        **options,
    )


def _family(saved: dict[str, Any]) -> _FittedGrams:
    terms = tuple(str(term) for term in saved.pop("terms"))
    idf = np.asarray(saved.pop("idf"), np.float64)
    if idf.shape != (len(terms),) or len(set(terms)) != len(terms):
        raise ValueError(f"{len(terms)} terms and {idf.size} weights")
    return _FittedGrams(Grams(**saved), terms, idf)


def _checked(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError("expected a list of texts, got a single one")
    texts = list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"text {row} is {type(text).__name__}, expected a string")
    return texts


def _write(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    header = {"format": _FORMAT, "version": _VERSION}
    atomic_write(path, json.dumps({**header, **content}, ensure_ascii=False) + "\n")


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path} is not a saved feature transform: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise InputError(f"{path} is not a saved feature transform")
    if content.get("version") != _VERSION:
        raise InputError(f"{path} has version {content.get('version')}, this program reads version {_VERSION}")
    return content
