import numpy as np
import pytest
import torch

from shortlist.data import Dataset, Split
from shortlist.training.config import Engine

CPU = Engine(device="cpu")


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Small matrices gain nothing from more, and test workers would fight over the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def blobs(count=96, K=4, shape=(6,), seed=0, test=40, flips=False):
    """Classes that can be told apart: a mean of its own each, plus noise; images as bytes."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 1.5, (K, *shape))

    def split(n):
        y = rng.integers(0, K, n)
        x = means[y] + rng.normal(0, 0.5, (n, *shape))
        x = np.clip(128 + 30 * x, 0, 255).astype(np.uint8) if len(shape) == 3 else x.astype(np.float32)
        return Split(x, y)

    kind = "image" if len(shape) == 3 else "features"
    return Dataset("blobs", split(count), split(test) if test else None, tuple("abcdefghij"[:K]), kind, flips)
