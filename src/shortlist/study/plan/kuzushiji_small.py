"""Kuzushiji's 10,000 official test images alone, split anew: for where the training images cannot be had."""

from dataclasses import replace

import numpy as np

from shortlist.data import Dataset, load_kuzushiji_test

TRAIN_ITEMS, TEST_ITEMS, SPLIT_SEED = 8_000, 2_000, 0


def read() -> Dataset:
    """The two parts as a dataset of its own."""
    whole = load_kuzushiji_test()
    order = np.random.Generator(np.random.PCG64(SPLIT_SEED)).permutation(len(whole.train))
    train, test = order[:TRAIN_ITEMS], order[TRAIN_ITEMS : TRAIN_ITEMS + TEST_ITEMS]
    return replace(whole, name="kuzushiji-small", train=whole.train.take(train), test=whole.train.take(test))
