"""CIFAR-10 placeholder."""

from shortlist.data.dataset import Dataset
from shortlist.data.sources import Source


def _read() -> Dataset:
    raise NotImplementedError


SOURCE = Source("cifar10", "photographs, 32x32 colour", "image", 10, 50_000, 10_000, _read, lambda: False)
