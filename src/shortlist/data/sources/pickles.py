"""Pickles of plain values and NumPy arrays, and of nothing else: a pickle may otherwise run any code.

NumPy's own way back is not used either: it believes what a damaged pickle says of a dtype, and breaks later.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from typing import Any

import numpy as np


class _Dtype:
    """Stands for a pickled dtype of numbers."""

    def __init__(self, code: str | bytes, *_: object) -> None:
        text = code.decode() if isinstance(code, bytes) else code
        if not re.fullmatch("[biuf][1248]", text):
            raise pickle.UnpicklingError(f"it holds an array of {text!r}, expected numbers")
        self.dtype = np.dtype(text)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order: Any = state[1].decode() if isinstance(state[1], bytes) else state[1]
        self.dtype = self.dtype.newbyteorder(order)


class _Array(np.ndarray[Any, Any]):
    """An array that looks at what it is filled with."""

    def __setstate__(self, state: Any) -> None:
        _, shape, of, by_columns, content = state
        size = math.prod(shape) * of.dtype.itemsize
        if not isinstance(content, bytes) or min(shape, default=0) < 0 or len(content) != size:
            raise pickle.UnpicklingError(f"its array of shape {shape} does not hold {size} bytes")
        seen: Any = (1, shape, of.dtype, bool(by_columns), content)
        super().__setstate__(seen)


def _empty(*_: object) -> _Array:
    return _Array(0, np.uint8)


# what a pickled array refers to, under the old and the new name of NumPy's inner module
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "the kind of array, which `_empty` is told and does not need",
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _empty,
    ("numpy._core.multiarray", "_reconstruct"): _empty,
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, only NumPy arrays are allowed") from None


def loads_arrays(data: bytes) -> Any:
    """The plain values and arrays in a pickle; strings of Python 2 come as bytes.

    Raises:
        pickle.UnpicklingError: for a pickle that is damaged or refers to anything but arrays.
    """
    try:
        return _ArraysOnly(io.BytesIO(data), encoding="bytes").load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        raise pickle.UnpicklingError(f"it is damaged: {type(error).__name__}: {error}") from error
