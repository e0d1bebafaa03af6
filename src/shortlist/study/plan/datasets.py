"""The datasets of the study: which network, how many epochs, and the parts that are not the paper's setting."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from shortlist import data
from shortlist.data import Dataset, Split
from shortlist.errors import unknown_name

SPLIT_SEED = 0
"""Draws the splits below."""
SMALL_TRAIN, SMALL_TEST = 8_000, 2_000
QUICK_TRAIN, QUICK_TEST = 4_000, 1_000
QUICK = "-quick"


@dataclass(frozen=True)
class StudySet:
    """A dataset as the study uses it."""

    name: str
    title: str
    model: str
    epochs: int
    """The paper's number."""
    batch_size: int = 256
    in_paper: bool = True
    recipes_from: tuple[str, ...] = ()
    """Whose chosen settings are used where it has none of its own; searched ones go before its own tuned ones."""
    note: str = ""
    """What differs from the paper's setting."""
    train_items: int = 60_000
    test_items: int = 10_000
    num_classes: int = 10


_SETS = {
    s.name: s
    for s in (
        StudySet("mnist", "MNIST", "lenet", 100, recipes_from=("fashion",)),
        StudySet("fashion", "Fashion", "lenet", 100),
        StudySet("kuzushiji", "Kuzushiji", "lenet", 100, recipes_from=("fashion",)),
        StudySet("cifar10", "CIFAR10", "resnet32", 200, train_items=50_000),
        StudySet(
            "kuzushiji-small",
            "Kuzushiji, 10,000 images",
            "lenet",
            100,
            in_paper=False,
            recipes_from=("kuzushiji", "fashion"),
            note=f"not the paper's setting: only the 10,000 official test images, split {SMALL_TRAIN:,} / "
            f"{SMALL_TEST:,} by seed {SPLIT_SEED}",
            train_items=SMALL_TRAIN,
            test_items=SMALL_TEST,
        ),
        StudySet(
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
    return tuple(_SETS)


def study_set(name: str) -> StudySet:
    """How the study uses a dataset."""
    base = name.removesuffix(QUICK)
    if base not in _SETS:
        raise unknown_name("dataset of the study", name, names())
    found = _SETS[base]
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
    found = study_set(name)
    return found.title if found.in_paper else None


@lru_cache(maxsize=4)
def load(name: str) -> Dataset:
    """The data, kept: a worker asks again and again."""
    base = study_set(name).name.removesuffix(QUICK)
    whole = _kuzushiji_small() if base == "kuzushiji-small" else data.load(base)
    if base == name:
        return whole
    assert whole.test is not None
    return replace(whole, name=name, train=_part(whole.train, QUICK_TRAIN), test=_part(whole.test, QUICK_TEST))


def _part(split: Split, count: int) -> Split:
    return split.take(np.random.Generator(np.random.PCG64(SPLIT_SEED)).permutation(len(split))[:count])


def _kuzushiji_small() -> Dataset:
    """The official test images alone, split anew."""
    everything = data.load_kuzushiji_test()
    order = np.random.Generator(np.random.PCG64(SPLIT_SEED)).permutation(len(everything.train))
    train, test = order[:SMALL_TRAIN], order[SMALL_TRAIN : SMALL_TRAIN + SMALL_TEST]
    parts = everything.train.take(train), everything.train.take(test)
    return replace(everything, name="kuzushiji-small", train=parts[0], test=parts[1])
