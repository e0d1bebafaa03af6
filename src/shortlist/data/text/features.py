"""Datasets of texts as datasets of features, and transforms read back from a file."""

from __future__ import annotations

import os
from dataclasses import replace

from shortlist.data.dataset import Dataset, Split
from shortlist.data.text.embeddings import EmbeddingFeatures
from shortlist.data.text.saved import Features, read_saved
from shortlist.data.text.tfidf import TfidfFeatures
from shortlist.errors import InputError


def load_features(path: str | os.PathLike[str]) -> Features:
    """Read a saved transform of either kind."""
    if read_saved(path).get("kind") == "embeddings":
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
