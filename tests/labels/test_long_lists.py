"""Lists too long for Floyd's algorithm: the classes with the smallest of K random keys, some rows at a time."""

import subprocess
import sys

import numpy as np
import pytest

from shortlist.labels.draw import FLOYD_LIMIT, draw_shortlists


@pytest.mark.parametrize(("K", "size"), [(60, 40), (600, 300), (600, 599)])
def test_a_long_list_holds_the_classes_with_the_smallest_keys(K, size):
    """A partition at another place gives other lists, but only in a few rows and on some machines."""
    assert size > FLOYD_LIMIT
    lists, _ = draw_shortlists(np.random.Generator(np.random.PCG64(5)), K, np.full(2000, size))
    keys = np.random.Generator(np.random.PCG64(5)).random((2000, K))
    smallest = np.argsort(keys, axis=1, kind="stable")[:, :size]
    assert (lists.reshape(2000, size) == np.sort(smallest, axis=1)).all()


def test_memory_does_not_grow_with_items_times_classes():
    """All keys at once would take 480 MB, the lists themselves take 10."""
    code = (
        "import resource, numpy as np; from shortlist import StochasticLabels\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "before = peak()\n"
        "StochasticLabels.draw(np.arange(60_000) % 1000, num_classes=1000, size=40, seed=0)\n"
        "print(peak() - before)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(out) < 240
