"""Columns of numbers as features: their inner products, and what one column may do to the others."""

import numpy as np
import pytest

from shortlist.policies.features.fourier import fourier
from shortlist.policies.linear import fit


def clouds(seed, count=400, classes=6):
    rng = np.random.default_rng(seed)
    centres = 2 * np.random.default_rng(9).standard_normal((classes, 10))
    y = rng.integers(0, classes, count)
    return (centres[y] + rng.standard_normal((count, 10))).astype(np.float32), y


def test_inner_products_are_those_of_the_kernel():
    x, _ = clouds(0, 200)
    x /= x.std(axis=0)
    found, again = fourier(x, x[:5], 20_000, seed=0)
    np.testing.assert_allclose(found[:5], again, atol=1e-6)
    apart = np.square((x[:, None] - x[None]) / 1.0).sum(-1)
    width = 0.5 * np.median(np.sqrt(apart[np.triu_indices(200, 1)]))
    np.testing.assert_allclose(found @ found.T, np.exp(-apart / (2 * width**2)), atol=0.05)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e9])
def test_a_column_of_large_numbers_leaves_the_others_what_they_say(scale):
    rng = np.random.default_rng(5)
    (x, y), (x_test, y_test) = clouds(0), clouds(1)
    noisy = [np.column_stack([part, scale * rng.standard_normal(len(part))]) for part in (x, x_test)]
    features, test = fourier(*noisy, 400, seed=0)
    model = fit(features, np.eye(6, dtype=np.float32)[y], l2=1e-4)
    assert (model.predict(test) == y_test).mean() > 0.9


def test_columns_that_never_change_are_no_trouble():
    found, other = fourier(np.ones((3, 2)), np.ones((1, 2)), 4, seed=0)
    np.testing.assert_allclose(found, np.repeat(other, 3, axis=0))
    assert np.isfinite(found).all()
