"""The datasets of the study: the network, the epochs, and what differs from the paper's setting.

To add one, add an entry to `_DATASETS`, and where `shortlist.data` does not know it a file whose function reads it.
Data of one's own needs neither: see `own_data`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from shortlist import data
from shortlist.data import Dataset, Split
from shortlist.errors import unknown_name
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
    own: str = ""
    """The name of the file or folder of data of one's own; empty for the study's datasets."""

    @property
    def all_classes(self) -> str:
        """As a cell names them, counted from 1: `1-10`."""
        return f"1-{self.num_classes}"

    @property
    def has_ten_classes(self) -> bool:
        """Whether the sets of classes of Tables 3 to 5 can be had, which are out of ten."""
        return self.num_classes == 10


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


_OWN: dict[str, StudyDataset] = {}
"""Data of one's own that this process knows of, by name: it was read here, or a row of the ledger describes it."""
_STORED = ("own", "note", "model", "epochs", "batch_size", "train_items", "test_items", "num_classes")
"""What a row says of data of one's own, so that a report needs no data."""


def names() -> tuple[str, ...]:
    """The datasets a study can be run on; each also as `<name>-quick`, a small part of it."""
    return tuple(_DATASETS)


def is_known(name: str) -> bool:
    """Whether `study_dataset` knows it."""
    return name.removesuffix(QUICK) in _DATASETS | _OWN


def add(dataset: StudyDataset) -> None:
    """Know data of one's own from now on."""
    _OWN[dataset.name] = dataset


def own(name: str) -> StudyDataset | None:
    """The whole of data of one's own; None for the study's datasets."""
    return _OWN.get(name.removesuffix(QUICK))


def stored(name: str) -> dict[str, Any]:
    """What a row of the ledger says of its dataset: nothing, unless it is one's own data."""
    about = own(name)
    return {} if about is None else {"data": {field: getattr(about, field) for field in _STORED}}


def add_stored(row: Mapping[str, Any]) -> None:
    """Know the data of a row of the ledger, unless it was read here, which says more."""
    name = str(row["dataset"]).removesuffix(QUICK)
    if "data" in row and name not in _OWN:
        add(StudyDataset(name=name, title=name, in_paper=False, **row["data"]))


def study_dataset(name: str) -> StudyDataset:
    """How the study uses a dataset."""
    base, known = name.removesuffix(QUICK), _DATASETS | _OWN
    if base not in known:
        raise unknown_name("dataset of the study", base, names())
    found = known[base]
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
        own=found.own and found.own + QUICK,
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
