"""What `X` may be: 2-d features (dense, sparse, pandas) or 4-d uint8 images."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from shortlist.data import Dataset, Split
from shortlist.errors import InputError


def dataset_of(x: Any, num_classes: int) -> Dataset:
    """Checked `X` as a dataset of training items."""
    names = tuple(str(k) for k in range(num_classes))
    return Dataset("X", Split(x), None, names, "image" if x.ndim == 4 else "features")


def check_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """`X` as training takes it: float32 features (array or CSR) or uint8 images (N, C, H, W).

    Args:
        estimator: gets `n_features_in_`, `in_shape_` and perhaps `feature_names_in_` if `reset`; has them otherwise.
        X: what the user gave.
        reset: whether these data decide the shape.

    Raises:
        InputError: names the first value that is not finite, or the shape that does not fit.
    """
    if getattr(X, "ndim", 2) == 4:
        return _check_images(estimator, np.asarray(X), reset)
    if not reset and len(estimator.in_shape_) != 1:
        raise InputError(f"X: expected images of shape {estimator.in_shape_}, as in fit, got features")
    try:
        with np.errstate(over="ignore"):  # what does not fit into float32 is refused below, with its place
            x = validate_data(
                estimator, X, reset=reset, accept_sparse="csr", dtype=np.float32, order="C", ensure_all_finite=False
            )
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        raise InputError(
            f"X holds text ({str(error).partition(': ')[2]:.40}), expected numbers: for texts put a vectoriser before, "
            "make_pipeline(TfidfVectorizer(), ShortlistClassifier(...))"
        ) from error
    _check_finite(x)
    if reset:
        estimator.in_shape_ = (int(x.shape[1]),)
    if isinstance(x, np.ndarray) and not x.flags.writeable:
        x = x.copy()  # torch has no read-only tensors
    return x


def _check_images(estimator: Any, images: NDArray[Any], reset: bool) -> NDArray[np.uint8]:
    if images.dtype != np.uint8:
        raise InputError(f"X: expected images as uint8 (N, C, H, W), got {images.dtype}")
    shape = tuple(int(size) for size in images.shape[1:])
    if not len(images) or min(shape) < 1:
        raise InputError(f"X: expected at least 1 image of at least 1 pixel, got shape {images.shape}")
    if reset:
        estimator.in_shape_ = shape
        estimator.n_features_in_ = math.prod(shape)
        if hasattr(estimator, "feature_names_in_"):  # of an earlier fit on a DataFrame
            del estimator.feature_names_in_
    elif shape != estimator.in_shape_:
        raise InputError(f"X: expected items of shape {estimator.in_shape_}, as in fit, got {shape}")
    return np.require(images, requirements=["C", "W"])


def _check_finite(x: Any) -> None:
    sparse = hasattr(x, "tocsr")
    values = x.data if sparse else x
    if np.isfinite(values).all():
        return
    at = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
    value = values[at]
    if sparse:
        at = (int(np.searchsorted(x.indptr, at[0], side="right")) - 1, int(x.indices[at[0]]))
    what = "NaN" if np.isnan(value) else "infinite or too large for float32"
    raise InputError(f"X: row {at[0]}, feature {at[1]} is {what}, expected finite numbers")


def check_weight(sample_weight: Any, x: Any) -> NDArray[np.float64] | None:
    """One number of at least 0 for each item, not all 0."""
    if sample_weight is None:
        return None
    rows = x[:, :, 0, 0] if x.ndim == 4 else x  # scikit-learn only counts the rows, but expects two dimensions
    weight: NDArray[np.float64] = _check_sample_weight(sample_weight, rows, dtype=np.float64)
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise InputError(f"sample_weight: row {row} is {weight[row]}, expected at least 0")
    if not weight.any():
        raise InputError("sample_weight: all are zero, so there is nothing to learn from")
    return weight
