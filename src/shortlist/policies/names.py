"""What the names of the classes say about texts before anybody has answered: an expert for the loop (`experts`)."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import fit_features
from shortlist.errors import InputError
from shortlist.policies.beliefs import softmax
from shortlist.policies.experts import LinearExpert
from shortlist.policies.linear import fit
from shortlist.policies.threads import few_threads

Matrix = NDArray[np.float32]

# Chosen on four fifths of BANKING77's training texts, true classes used only to look at the result: the right class is
# among the 8 likeliest for 84 % of the texts (by similarity alone, without the linear model, for 80 %).
SHARPNESS = 8.0
"""Similarities become probabilities by softmax(SHARPNESS x similarity)."""
WEIGHT = 1.2
"""The expert's weight before the first answer: above 1, as similarities promise too little."""
L2 = 1e-4
DIRECTIONS = 200
MOST_TERMS = 50_000
MOST_TEXTS = 20_000
"""The most texts that the linear model is trained on; it then scores the others by their features."""
MOST_ENCODED = 2000
"""The same if a sentence encoder reads them, which is slow and is done again whenever the classes change."""


def names_expert(
    texts: Sequence[str],
    class_names: Sequence[str],
    x: Any,
    *,
    descriptions: Sequence[str] | None = None,
    features: str | None = None,
    seed: int = 0,
) -> LinearExpert:
    """An expert that goes by the names of the classes.

    Each text is compared with each class name (and its description) by shared pieces of words, directly and in the
    directions in which the texts differ most; or, if the features come from a sentence encoder, by that encoder. A
    linear model on the items' features is then trained to match softmax(SHARPNESS x similarity). So what texts that
    resemble a name have in common counts for that name, too.

    Args:
        texts: the texts of all N items.
        class_names: the names of the K classes; one that shares nothing with any text says nothing.
        x: (N, D) the features of the items.
        descriptions: a sentence about each class, or an empty text.
        features: the word for the features (`make_features`): with `embeddings` or a folder, that encoder compares.
        seed: draws the texts to train on if there are many.
    """
    if len(texts) != x.shape[0]:
        raise InputError(f"{x.shape[0]} items need as many texts, got {len(texts)}")
    spoken = [
        f"{spoken_name(name)} {text}".strip()
        for name, text in zip(class_names, descriptions or [""] * len(class_names), strict=True)
    ]
    encoder = features if features == "embeddings" or (features is not None and Path(features).is_dir()) else None
    most = MOST_TEXTS if encoder is None else MOST_ENCODED
    rows = np.sort(np.random.Generator(np.random.PCG64(seed)).permutation(len(texts))[:most])
    some = [texts[row] for row in rows]
    similar = encoded_similarities(some, spoken, encoder) if encoder else similarities(some, spoken, seed=seed)
    with few_threads():
        guesses = softmax(SHARPNESS * similar)
        model = fit(x[rows], guesses, l2=L2, max_iterations=40, match=True)
    return LinearExpert(x, model, WEIGHT)


LOOKED_AT = 2000
"""The most texts that `clarity` looks at."""


def clarity(texts: Sequence[str], class_names: Sequence[str]) -> float:
    """How clearly the names tell the texts apart, before anybody has answered: 0 (not at all) to 1 (one name per text).

    It is 1 - (mean over texts of H(p)) / log K with p = softmax(SHARPNESS x similarity to each name). For the texts of
    BANKING77 it is 0.55 with their own names (the right class is among the 8 likeliest for 81 %, and the p of these 8
    add up to 0.79), below 0.02 with numbers or codes, and 0.14 with 30 names of diseases. It cannot tell right names
    from names that were exchanged among the classes; only answers can.
    """
    if len(class_names) < 2 or not texts:
        return 0.0
    rows = np.random.Generator(np.random.PCG64(0)).permutation(len(texts))[:LOOKED_AT]
    similar = similarities([texts[row] for row in rows], [spoken_name(name) for name in class_names])
    chances = softmax(SHARPNESS * similar).astype(np.float64)
    entropy = -(chances * np.log(np.maximum(chances, 1e-12))).sum(axis=1).mean()
    return max(0.0, float(1 - entropy / np.log(len(class_names))))


def spoken_name(name: str) -> str:
    """A class name with spaces between its words.

    >>> spoken_name("card_payment-wrongCharge")
    'card payment wrong Charge'
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"[\W_]+", " ", name))
    return words.strip()


@few_threads()
def similarities(texts: Sequence[str], names: Sequence[str], *, seed: int = 0) -> Matrix:
    """(N, K) the cosine by TF-IDF of pieces of words + the cosine in the texts' main directions; at most 2."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    nothing: Matrix = np.zeros((len(texts), len(names)), np.float32)
    terms = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True, max_features=MOST_TERMS, dtype=np.float32
    )
    try:
        of_texts = terms.fit_transform(texts)
    except ValueError:  # there are no terms at all
        return nothing
    of_names = terms.transform(names)
    direct = np.asarray((of_texts @ of_names.T).todense(), np.float32)
    directions = min(DIRECTIONS, *(size - 1 for size in of_texts.shape))
    if directions < 1:
        return direct
    if len(texts) < 10 * DIRECTIONS:  # few texts may differ in fewer directions, and float32 would end in NaN
        of_texts, of_names = of_texts.astype(np.float64), of_names.astype(np.float64)
    reduce = TruncatedSVD(directions, n_iter=3, random_state=seed)
    indirect = _unit(reduce.fit_transform(of_texts)) @ _unit(reduce.transform(of_names)).T
    return direct + indirect.astype(np.float32)


def encoded_similarities(texts: Sequence[str], names: Sequence[str], encoder: str) -> Matrix:
    """(N, K) twice the cosine by a sentence encoder, to be on the scale of `similarities`; -2 to 2.

    The mean of all texts is subtracted from the texts, and the mean of all names from the names: what all have in
    common tells none apart.
    """
    vectors = fit_features(encoder, texts)
    of_texts, of_names = (np.asarray(vectors.transform(part)) for part in (texts, names))
    cosine = _unit(of_texts - of_texts.mean(axis=0)) @ _unit(of_names - of_names.mean(axis=0)).T
    return (2 * cosine).astype(np.float32)


def _unit(x: NDArray[np.floating]) -> NDArray[np.floating]:
    length = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: NDArray[np.floating] = x / np.where(length > 0, length, 1)
    return scaled
