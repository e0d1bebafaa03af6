import numpy as np
import pytest

from shortlist.policies.features.loop_data import LoopData


@pytest.fixture(scope="session")
def blobs() -> LoopData:
    """Twelve classes, one of them rare."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((12, 20)) * 1.5
    y = np.concatenate([np.repeat(np.arange(11), 40), np.full(8, 11)])
    x = (centres[y] + rng.standard_normal((len(y), 20))).astype(np.float32)
    order = rng.permutation(len(y))
    x, y = x[order], y[order]
    return LoopData("blobs", x[:350], y[:350], x[350:], y[350:], tuple("abcdefghijkl"))
