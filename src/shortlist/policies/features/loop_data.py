"""A labelled dataset as features and classes, for the labelling loop."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.data import UNLABELLED, Dataset, Split, read_features
from shortlist.errors import InputError
from shortlist.policies.features.rows import Matrix
from shortlist.policies.features.words import feature_words, make_features, narrow, side_by_side


@dataclass(frozen=True)
class LoopData:
    """The features and classes that a simulated loop needs, and those of the test items that it is scored on."""

    name: str
    x: Matrix
    y: NDArray[np.int64]
    x_test: Matrix
    y_test: NDArray[np.int64]
    class_names: tuple[str, ...]
    texts: tuple[str, ...] = ()
    """The texts of the items, if they are texts."""
    items: tuple[str, ...] = ()
    """The names of the items."""

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.class_names)


def loop_data(
    dataset: Dataset, *, features: str | None = None, size: int = 400, seed: int = 0, ray: str | None = None
) -> LoopData:
    """The features of a labelled dataset and of its test part (a fifth of the items, if it has none).

    Args:
        dataset: texts, images or numbers.
        features: the word for the features (`make_features`).
        size: the most features.
        seed: decides everything that is drawn.
        ray: the address of a Ray cluster that makes them (`make_features`).

    Raises:
        InputError: there are no labels to simulate answers from.
    """
    train, test = _splits(dataset, seed)
    names, test_names = dataset.train.items.tolist(), None if dataset.test is None else dataset.test.items.tolist()
    made = []
    for word in feature_words(features):
        brought = None if word is None else read_features(word, names, test_names)
        if brought is not None:  # joined before the split: the file may have a test part of its own
            own, own_test = _splits(dataset.with_features(*brought), seed)
            made.append(narrow(own.x, own_test.x, size, seed))
        else:
            made.append(make_features(dataset.kind, train.x, test.x, word=word, size=size, seed=seed, ray=ray))
    x, x_test = made[0] if len(made) == 1 else side_by_side(made)
    assert train.y is not None
    assert test.y is not None
    texts = tuple(train.x) if isinstance(train.x, list) else ()
    return LoopData(dataset.name, x, train.y, x_test, test.y, dataset.class_names, texts, tuple(train.items.tolist()))


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
