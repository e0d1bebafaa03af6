"""From datasets of texts to datasets of features; transforms read from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shortlist.data.brought import FEATURE_SUFFIXES, read_features
from shortlist.data.dataset import Dataset
from shortlist.data.text.embeddings import EmbeddingFeatures
from shortlist.data.text.saved import Features, read_saved
from shortlist.data.text.tfidf import TfidfFeatures
from shortlist.errors import InputError, unknown_name

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

WORDS = ("tfidf", "embeddings")
LOOP_WORDS = ("patches", "pixels")
"""Features of images in the labelling loop, whose linear model is trained again and again (`policies.features`)."""


def load_features(path: str | os.PathLike[str]) -> Features:
    """Read a saved transform of either kind."""
    if read_saved(path).get("kind") == "embeddings":
        return EmbeddingFeatures.load(path)
    return TfidfFeatures.load(path)


def fit_features(word: str, texts: Sequence[str]) -> Features:
    """A transform of texts: `tfidf`, fitted on them; `embeddings`; or the folder of a sentence encoder."""
    if word == "tfidf":
        return TfidfFeatures.fit(texts)
    if word == "embeddings":
        return EmbeddingFeatures()
    if Path(word).is_dir():
        return EmbeddingFeatures(word)
    raise _unknown(word)


def _unknown(word: str) -> InputError:
    files = " and ".join(FEATURE_SUFFIXES)
    return InputError(
        f"{unknown_name('features', word, WORDS)}; or the folder of a sentence encoder, or features by item in {files}"
    )


def _check_word(word: str) -> None:
    """Refuse words that are not for a whole dataset, before anything is read."""
    if word in LOOP_WORDS:
        raise InputError(f"features: {word} are for the labelling loop (label, annotate); a network learns its own")
    if "+" in word and not Path(word).exists():
        raise InputError(f"features: {word!r} stand side by side in the labelling loop (label, annotate) only")
    if word not in WORDS and not Path(word).is_dir() and Path(word).suffix.lower() not in FEATURE_SUFFIXES:
        raise _unknown(word)


def as_features(dataset: Dataset, features: Features | str = "tfidf") -> tuple[Dataset, Features | None]:
    """A dataset as one of features, and the transform that made them.

    Args:
        dataset: texts; or anything, if the features come from a file.
        features: a transform; a word of `fit_features`, which sees the training texts only; or a file for
            `read_features`, and then there is no transform.
    """
    if isinstance(features, str):
        _check_word(features)
        test_items = None if dataset.test is None else dataset.test.items.tolist()
        brought = read_features(features, dataset.train.items.tolist(), test_items)
        if brought is not None:
            return dataset.with_features(*brought), None
    if dataset.kind != "text" or not isinstance(dataset.train.x, list):
        raise InputError(f"{dataset.name} holds {dataset.kind}, not texts")
    fitted, x = _fitted(features, dataset.train.x)
    if dataset.test is None:
        return dataset.with_features(x, None), fitted
    assert isinstance(dataset.test.x, list)
    return dataset.with_features(x, fitted.transform(dataset.test.x)), fitted


def _fitted(features: Features | str, texts: list[str]) -> tuple[Features, csr_matrix | NDArray[np.float32]]:
    """The transform, and the features of the training texts."""
    if features == "tfidf":
        return TfidfFeatures.fit_transform(texts)
    fitted = fit_features(features, texts) if isinstance(features, str) else features
    return fitted, fitted.transform(texts)
