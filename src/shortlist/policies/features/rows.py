"""Rows of length 1, which all kinds of features have in common."""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


def unit(x: NDArray[np.floating]) -> Matrix:
    """Each row divided by its length; a row of zeros stays."""
    length: NDArray[np.float64] = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: Matrix = np.asarray(x / np.where(length > 0, length, 1), np.float32)
    return scaled
