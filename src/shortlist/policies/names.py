"""What class names say about texts, before anybody has answered: an expert for the loop (`experts`)."""

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

# Chosen on four fifths of BANKING77's training texts, true classes used to look at the result only: the right class is
# among the 8 likeliest for 84 % of the texts (by similarity alone, without the linear model, for 80 %).
SHARPNESS = 8.0
"""Of the similarities, made into probabilities."""
WEIGHT = 1.2
"""Of the expert before the first answer; similarities promise too little."""
L2 = 1e-4
DIRECTIONS = 200
MOST_TERMS = 50_000
MOST_TEXTS = 20_000
"""Texts that the names are learned on; the rest follow by their features."""
MOST_ENCODED = 2000
"""The same where a sentence encoder reads them: slow, and again whenever the classes change."""


def names_expert(
    texts: Sequence[str],
    class_names: Sequence[str],
    x: Any,
    *,
    descriptions: Sequence[str] | None = None,
    features: str | None = None,
    seed: int = 0,
) -> LinearExpert:
    """An expert that knows the classes' names.

    Each text is compared with each class name (and its description) by shared pieces of words, directly and in the
    directions in which the texts differ most; or, where the features come from a sentence encoder, by that encoder.
    These similarities, as probabilities, are what a linear model on the items' features is trained to say: what is
    shared by texts that look like one name then counts for it too.

    Args:
        texts: of all N items.
        class_names: of the K classes; a name that shares nothing with any text says nothing.
        x: (N, D) the features of the items.
        descriptions: a sentence on each class, where there is one.
        features: the word for the features (`make_features`): `embeddings` and folders compare by that encoder.
        seed: of the texts that are learned on, where there are many.
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
"""Texts that `clarity` looks at."""


def clarity(texts: Sequence[str], class_names: Sequence[str]) -> float:
    """How clearly names tell texts apart, before anybody has answered: 0 (not at all) to 1 (each text has one name).

    One minus the mean entropy of what the names say about a text, as a share of the most that it can be. BANKING77's
    own names: 0.55 (its names hold the right class among 8 in 81 % of the texts, and 0.79 is what they promise
    themselves); numbers or codes instead of names: below 0.02; 30 names of diseases: 0.14. It cannot tell names that
    speak of the texts from names that were exchanged among the classes: only answers can.
    """
    if len(class_names) < 2 or not texts:
        return 0.0
    rows = np.random.Generator(np.random.PCG64(0)).permutation(len(texts))[:LOOKED_AT]
    similar = similarities([texts[row] for row in rows], [spoken_name(name) for name in class_names])
    chances = softmax(SHARPNESS * similar).astype(np.float64)
    entropy = -(chances * np.log(np.maximum(chances, 1e-12))).sum(axis=1).mean()
    return max(0.0, float(1 - entropy / np.log(len(class_names))))


def spoken_name(name: str) -> str:
    """A class name as words.

    >>> spoken_name("card_payment-wrongCharge")
    'card payment wrong Charge'
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"[\W_]+", " ", name))
    return words.strip()


@few_threads()
def similarities(texts: Sequence[str], names: Sequence[str], *, seed: int = 0) -> Matrix:
    """(N, K) cosine by TF-IDF of pieces of words, plus the same in the main directions of the texts; 0 to 2."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    nothing: Matrix = np.zeros((len(texts), len(names)), np.float32)
    terms = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True, max_features=MOST_TERMS, dtype=np.float32
    )
    try:
        of_texts = terms.fit_transform(texts)
    except ValueError:  # scikit-learn's word for no terms at all
        return nothing
    of_names = terms.transform(names)
    direct = np.asarray((of_texts @ of_names.T).todense(), np.float32)
    directions = min(DIRECTIONS, *(size - 1 for size in of_texts.shape))
    if directions < 1:
        return direct
    if len(texts) < 10 * DIRECTIONS:  # few texts may differ in fewer directions: float32 then ends in NaN
        of_texts, of_names = of_texts.astype(np.float64), of_names.astype(np.float64)
    reduce = TruncatedSVD(directions, n_iter=3, random_state=seed)
    indirect = _unit(reduce.fit_transform(of_texts)) @ _unit(reduce.transform(of_names)).T
    return direct + indirect.astype(np.float32)


def encoded_similarities(texts: Sequence[str], names: Sequence[str], encoder: str) -> Matrix:
    """(N, K) twice the cosine by a sentence encoder, on the scale of `similarities`; -2 to 2.

    What all texts have in common is taken off the texts, and what all names have off the names: it tells none apart.
    """
    vectors = fit_features(encoder, texts)
    of_texts, of_names = (np.asarray(vectors.transform(part)) for part in (texts, names))
    cosine = _unit(of_texts - of_texts.mean(axis=0)) @ _unit(of_names - of_names.mean(axis=0)).T
    return (2 * cosine).astype(np.float32)


def _unit(x: NDArray[np.floating]) -> NDArray[np.floating]:
    length = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: NDArray[np.floating] = x / np.where(length > 0, length, 1)
    return scaled
