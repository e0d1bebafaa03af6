"""Any dataset as a few hundred dense features on which a linear softmax does well; nothing is learned from labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import UNLABELLED, Dataset, Split
from shortlist.errors import InputError
from shortlist.policies.threads import few_threads

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class LoopData:
    """What the loop and its score need."""

    name: str
    x: Matrix
    y: NDArray[np.int64]
    x_test: Matrix
    y_test: NDArray[np.int64]
    class_names: tuple[str, ...]
    texts: tuple[str, ...] = ()
    """Of the items, where they are texts."""
    items: tuple[str, ...] = ()
    """Names of the items."""

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.class_names)


def loop_data(dataset: Dataset, *, size: int = 400, seed: int = 0) -> LoopData:
    """Features of a labelled dataset with a test part (a fifth of the items, where it has none).

    Texts: TF-IDF of words and characters, reduced to `size` directions (latent semantic analysis). Everything else:
    scaled values, then `size` random Fourier features of a Gaussian kernel. Every row has length 1.

    Raises:
        InputError: there are no labels to simulate answers from.
    """
    train, test = _splits(dataset, seed)
    x, x_test = make_features(dataset.kind, train.x, test.x, size=size, seed=seed)
    assert train.y is not None
    assert test.y is not None
    texts = tuple(train.x) if dataset.kind == "text" else ()
    return LoopData(dataset.name, x, train.y, x_test, test.y, dataset.class_names, texts, tuple(train.items.tolist()))


def make_features(kind: str, x: Any, x_test: Any, *, size: int = 400, seed: int = 0) -> tuple[Matrix, Matrix]:
    """The features of items of one kind (text, or anything numeric), and of others (or none) in the same way."""
    if kind == "text":
        return _text(x, x_test, size, seed)
    return _fourier(_flat(x), _flat(x_test), size, seed)


def _splits(dataset: Dataset, seed: int) -> tuple[Split, Split]:
    train, test = dataset.train, dataset.test
    if train.y is None or not (train.y != UNLABELLED).any():
        raise InputError(f"{dataset.name} has no labels: answers can be simulated only from true classes")
    train = train.take(train.y != UNLABELLED)
    if test is None or test.y is None:
        if len(train) < 10:
            raise InputError(f"{dataset.name} has {len(train)} labelled items, at least 10 are needed")
        order = np.random.Generator(np.random.PCG64(seed)).permutation(len(train))
        cut = len(train) // 5
        return train.take(np.sort(order[cut:])), train.take(np.sort(order[:cut]))
    assert test.y is not None
    return train, test.take(test.y != UNLABELLED)


def _text(texts: list[str], others: list[str], size: int, seed: int) -> tuple[Matrix, Matrix]:
    from sklearn.decomposition import TruncatedSVD

    from shortlist.data import TfidfFeatures

    fitted = TfidfFeatures.fit(texts)
    sparse = fitted.transform(texts)
    reduced = min(size, fitted.size - 1, len(texts) - 1)
    if reduced < 1:
        raise InputError(f"the {len(texts)} texts hold too few different words to make features of")
    svd = TruncatedSVD(reduced, n_iter=3, random_state=seed)
    with few_threads():  # most of it are products of sparse matrices, which have one thread at any rate
        x = _unit(svd.fit_transform(sparse))
        if not others:
            return x, np.empty((0, reduced), np.float32)
        return x, _unit(svd.transform(fitted.transform(others)))


def _fourier(x: Matrix, x_test: Matrix, size: int, seed: int) -> tuple[Matrix, Matrix]:
    """sqrt(2 / size) (cos, sin)(x W): inner products approach exp(-|x - x'|^2 / (2 width^2)).

    The width is half the typical distance between two items.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    mean, spread = x.mean(axis=0), x.std(axis=0)
    # pixels that hardly ever change would be blown up to noise
    spread = np.maximum(spread, max(float(spread.mean()), 1e-6))
    x, x_test = (x - mean) / spread, (x_test - mean) / spread
    sample = x[rng.permutation(len(x))[:1000]]
    distances = np.sqrt(np.maximum(_square_distances(sample), 0))[np.triu_indices(len(sample), 1)]
    width = max(0.5 * float(np.median(distances)) if len(distances) else 1.0, 1e-6)
    directions = (rng.standard_normal((x.shape[1], size // 2)) / width).astype(np.float32)
    parts = [np.concatenate([np.cos(v @ directions), np.sin(v @ directions)], axis=1) for v in (x, x_test)]
    return _unit(parts[0]), _unit(parts[1])


def _square_distances(x: Matrix) -> Matrix:
    squares = np.square(x).sum(axis=1)
    distances: Matrix = squares[:, None] + squares[None] - 2 * x @ x.T
    return distances


def _flat(x: Any) -> Matrix:
    dense = x.toarray() if hasattr(x, "toarray") else np.asarray(x)
    return dense.reshape(len(dense), int(np.prod(dense.shape[1:]))).astype(np.float32)  # there may be no rows


def _unit(x: NDArray[np.floating]) -> Matrix:
    length: NDArray[np.float64] = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: Matrix = np.asarray(x / np.where(length > 0, length, 1), np.float32)
    return scaled
