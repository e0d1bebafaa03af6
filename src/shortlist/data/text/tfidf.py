"""TF-IDF weights as features of texts: fitted once, saved without pickle.

>>> from shortlist.data import TfidfFeatures
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
from shortlist.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


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
        return cls.fit_transform(texts, grams)[0]

    @classmethod
    def fit_transform(cls, texts: Sequence[str], grams: Sequence[Grams] = DEFAULT_GRAMS) -> tuple[Self, csr_matrix]:
        """`fit`, and the features of the same texts, for which they need not be cut into terms again."""
        from scipy.sparse import csr_matrix, hstack

        texts = check_texts(texts)
        families, blocks = [], []
        for family in grams:
            few = len(texts) < _FEW_TEXTS
            vectorizer = _vectorizer(family, min_df=1 if few else family.min_texts, max_features=family.most)
            try:
                blocks.append(vectorizer.fit_transform(texts))
            except ValueError:  # scikit-learn's word for no terms; another family may have some
                continue
            terms = tuple(str(term) for term in vectorizer.get_feature_names_out())
            families.append(_FittedGrams(family, terms, np.asarray(vectorizer.idf_, np.float64)))
        if not families:
            raise InputError(f"the {len(texts)} texts hold no word to make features of")
        return cls(families), csr_matrix(hstack(blocks, format="csr"), dtype=np.float32)

    def transform(self, texts: Sequence[str]) -> csr_matrix:
        """The features of the texts, (N, size) CSR float32; a text without known terms is a row of zeros."""
        from scipy.sparse import csr_matrix, hstack

        texts = check_texts(texts)
        if not texts:
            return csr_matrix((0, self.size), dtype=np.float32)
        blocks = [family.vectorizer.transform(texts) for family in self._families]
        return csr_matrix(hstack(blocks, format="csr"), dtype=np.float32)

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
