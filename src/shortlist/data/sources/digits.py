"""The 8x8 digits that come with scikit-learn: small enough for every test, nothing to download."""

import numpy as np

from shortlist.data.dataset import Dataset, Split
from shortlist.data.source import Source


def read() -> Dataset:
    """1,437 training and 360 test images, always the same ones.

    The published grey values 0 to 16 are stretched to 0 to 255, the range of every other dataset of images.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    bunch = load_digits()
    x = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[:, None]
    y = bunch.target.astype(np.int64)
    train, test = train_test_split(np.arange(len(y)), test_size=360, stratify=y, random_state=0)
    splits = [Split(x[rows], y[rows]) for rows in (np.sort(train), np.sort(test))]
    return Dataset("digits", splits[0], splits[1], tuple("0123456789"), "image")


SOURCE = Source("digits", "scikit-learn's handwritten digits, 8x8 grey", "image", 10, 1_437, 360, read, lambda: True)
