"""The datasets of the study: the network, the epochs, and what differs from the paper's setting.

To add one, add an entry to `_DATASETS`, and where `shortlist.data` does not know it a file whose function reads it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from shortlist import data
from shortlist.data import Dataset, Split
from shortlist.errors import InputError, unknown_name
from shortlist.study.plan import kuzushiji_small

PART_SEED = 0
"""Draws the quick parts."""
QUICK_TRAIN, QUICK_TEST = 4_000, 1_000
QUICK = "-quick"


@dataclass(frozen=True)
class StudyDataset:
    """A dataset as the study uses it."""

    name: str
    title: str
    model: str
    epochs: int
    """The paper's number."""
    batch_size: int = 256
    in_paper: bool = True
    recipes_from: tuple[str, ...] = ()
    """Datasets whose chosen settings it uses if it has none; searched ones go before its own tuned ones."""
    note: str = ""
    """What differs from the paper's setting."""
    train_items: int = 60_000
    test_items: int = 10_000
    num_classes: int = 10
    read: Callable[[], Dataset] | None = None
    """Reads the data; None where `shortlist.data` knows it by this name."""


_DATASETS = {
    dataset.name: dataset
    for dataset in (
        StudyDataset("mnist", "MNIST", "lenet", 100, recipes_from=("fashion",)),
        StudyDataset("fashion", "Fashion", "lenet", 100),
        StudyDataset("kuzushiji", "Kuzushiji", "lenet", 100, recipes_from=("fashion",)),
        StudyDataset("cifar10", "CIFAR10", "resnet32", 200, train_items=50_000),
        StudyDataset(
            "kuzushiji-small",
            "Kuzushiji, 10,000 images",
            "lenet",
            100,
            in_paper=False,
            recipes_from=("kuzushiji", "fashion"),
            note=f"not the paper's setting: only the 10,000 official test images, split "
            f"{kuzushiji_small.TRAIN_ITEMS:,} / {kuzushiji_small.TEST_ITEMS:,} by seed {kuzushiji_small.SPLIT_SEED}",
            train_items=kuzushiji_small.TRAIN_ITEMS,
            test_items=kuzushiji_small.TEST_ITEMS,
            read=kuzushiji_small.read,
        ),
        StudyDataset(
            "digits",
            "digits",
            "mlp",
            30,
            batch_size=64,
            in_paper=False,
            note="not in the paper: scikit-learn's 8x8 digits",
            train_items=1_437,
            test_items=360,
        ),
    )
}


def names() -> tuple[str, ...]:
    """The datasets a study can be run on; each also as `<name>-quick`, a small part of it."""
    return tuple(_DATASETS)


def study_dataset(name: str) -> StudyDataset:
    """How the study uses a dataset."""
    base = name.removesuffix(QUICK)
    if base not in _DATASETS:
        if base in data.names() or Path(base).suffix or Path(base).exists():
            raise InputError(
                f"dataset {base!r}: the study has {', '.join(names())} alone; docs/researchers.md, A fair comparison, "
                "shows how to compare methods on other data"
            )
        raise unknown_name("dataset of the study", base, names())
    found = _DATASETS[base]
    if base == name:
        return found
    train, test = min(QUICK_TRAIN, found.train_items), min(QUICK_TEST, found.test_items)
    part = f"{train:,} of {found.train_items:,} training and {test:,} of {found.test_items:,} test items"
    return replace(
        found,
        name=name,
        title=f"{found.title}, quick",
        in_paper=False,
        recipes_from=(base, *found.recipes_from),
        note=f"{found.note}; {part}" if found.note else f"not the paper's setting: {part}",
        train_items=train,
        test_items=test,
    )


def paper_title(name: str) -> str | None:
    """The paper's name of a dataset, None where a comparison with its figures would mislead."""
    found = study_dataset(name)
    return found.title if found.in_paper else None


@lru_cache(maxsize=4)
def load(name: str) -> Dataset:
    """The data, kept: a worker asks again and again."""
    base = name.removesuffix(QUICK)
    read = study_dataset(name).read
    whole = data.load(base) if read is None else read()
    if base == name:
        return whole
    assert whole.test is not None
    return replace(whole, name=name, train=_part(whole.train, QUICK_TRAIN), test=_part(whole.test, QUICK_TEST))


def _part(split: Split, count: int) -> Split:
    return split.take(np.random.Generator(np.random.PCG64(PART_SEED)).permutation(len(split))[:count])
