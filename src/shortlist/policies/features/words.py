"""Features by the words of `--features`, which are the same in `label`, in the live app and in `train`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.data import fit_features, read_features
from shortlist.errors import InputError
from shortlist.internal.cluster import spread_rows
from shortlist.policies.features.fourier import fourier
from shortlist.policies.features.patches import LEAST_SIDE, Patches
from shortlist.policies.features.rows import Matrix, unit
from shortlist.policies.threads import few_threads

Names = Sequence[str]
IMAGE_WORDS = ("patches", "pixels")


def make_features(
    kind: str,
    x: Any,
    x_test: Any,
    *,
    word: str | None = None,
    items: tuple[Names, Names] = ((), ()),
    size: int = 400,
    seed: int = 0,
    ray: str | None = None,
) -> tuple[Matrix, Matrix]:
    """The features of some items and, made in the same way, of others (or none); every row has length 1.

    Args:
        kind: text, image or features.
        x: the items' texts, images or numbers.
        x_test: those of the others.
        word: for texts `tfidf`, `embeddings` or the folder of a sentence encoder; for images `patches` or `pixels`; for
            anything a file of features by item (`data.read_features`). The defaults are TF-IDF, patches and, for
            numbers, random Fourier features. Several, joined by `+`, are put side by side.
        items: the names of the items and of the others, by which a file is joined.
        size: the most features.
        seed: decides everything that is drawn.
        ray: the address of a Ray cluster (`internal.cluster`) that makes patches and embeddings.
    """
    words = feature_words(word)
    if len(words) > 1:
        given: dict[str, Any] = {"items": items, "size": size, "seed": seed, "ray": ray}
        return side_by_side([make_features(kind, x, x_test, word=each, **given) for each in words])
    brought = None if word is None else read_features(word, *items)
    if brought is not None:
        return narrow(*brought, size, seed)
    if kind == "text" and word not in IMAGE_WORDS:
        return _text(x, x_test, word or "tfidf", size, seed, ray)
    if word is not None and not (kind == "image" and word in IMAGE_WORDS):
        here = {"text": "tfidf, embeddings or ", "image": "patches, pixels or "}.get(kind, "")
        raise InputError(f"features: {word!r} are not for {kind} items, expected {here}a file of features by item")
    if kind == "image" and word != "pixels" and min(np.shape(x)[2:]) >= LEAST_SIDE:
        learned = Patches.fit(x, size, seed)
        return _spread(ray, learned.transform, x), _spread(ray, learned.transform, x_test)
    return fourier(x, x_test, size, seed)


def feature_words(word: str | None) -> list[str | None]:
    """The words that `+` joins; the name of a file that exists is one word, even with a + in it."""
    words: list[str | None] = [word] if word is None or Path(word).exists() else list(word.split("+"))
    if "" in words:
        raise InputError(f"features: nothing beside a + in {word!r}")
    return words


def side_by_side(parts: Sequence[tuple[Matrix, Matrix]]) -> tuple[Matrix, Matrix]:
    """Several sets of features of the same items side by side; each set counts as much as any other."""
    x, x_test = (unit(np.hstack(sets)) for sets in zip(*parts, strict=True))
    return x, x_test


def _spread(ray: str | None, transform: Callable[[Any], Any], rows: Any) -> Any:
    return transform(rows) if ray is None else spread_rows(ray, transform, rows)


def _text(
    texts: list[str], others: list[str], word: str, size: int, seed: int, ray: str | None
) -> tuple[Matrix, Matrix]:
    fitted = fit_features(word, texts)
    ray = None if word == "tfidf" else ray  # TF-IDF is quick, and the texts are needed here anyway
    x, x_test = (_spread(ray, fitted.transform, part) for part in (texts, others))
    if not hasattr(x, "tocsr"):
        return narrow(x, x_test, size, seed)
    from sklearn.decomposition import TruncatedSVD

    reduced = min(size, fitted.size - 1, len(texts) - 1)
    if reduced < 1:
        raise InputError(f"the {len(texts)} texts hold too few different words to make features of")
    svd = TruncatedSVD(reduced, n_iter=3, random_state=seed)
    with few_threads():  # most of the time goes into sparse products, which have one thread anyway
        made = unit(svd.fit_transform(x))
        return made, unit(svd.transform(x_test)) if others else np.empty((0, reduced), np.float32)


def narrow(x: Any, x_test: Any, size: int, seed: int) -> tuple[Matrix, Matrix]:
    """Vectors of another model, centred, reduced to the `size` directions of most variance, and scaled to length 1."""
    mean = x.mean(axis=0)
    if x.shape[1] > size:
        from sklearn.utils.extmath import randomized_svd

        rng = np.random.Generator(np.random.PCG64(seed))
        some = x[np.sort(rng.permutation(len(x))[: 20 * size])] - mean
        with few_threads():
            axes = randomized_svd(some, min(size, len(some)), n_iter=4, random_state=seed)[2].T.astype(np.float32)
        return unit((x - mean) @ axes), unit((x_test - mean) @ axes)
    return unit(x - mean), unit(x_test - mean)
