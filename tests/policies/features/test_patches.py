"""Features of images learned from the images: each step against a naive loop, and what they are good for."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from shortlist.data import load
from shortlist.policies.features.patches import (
    CONTRAST,
    LARGEST_SIDE,
    Patches,
    _areas,
    _normalised,
    _parts,
    _small,
    _triangle,
    _whitening,
)
from shortlist.policies.features.words import make_features
from shortlist.policies.linear import fit


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def _bars(n: int, channels: int, height: int, width: int, seed: int = 0):
    """Pictures whose class is the direction of three short bars anywhere: no pixel tells it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.integers(0, 20, (n, channels, height, width))
    thick, long = (max(size * min(height, width) // 16, 1) for size in (1, 5))
    for i in range(n):
        for _ in range(3):
            tall, wide = (long, thick) if y[i] else (thick, long)
            top, left = rng.integers(0, height - tall), rng.integers(0, width - wide)
            x[i, :, top : top + tall, left : left + wide] = rng.integers(100, 256)
    return x.astype(np.uint8), y


def _accuracy(made, y, cut):
    weights = np.eye(2, dtype=np.float32)[y[:cut]]
    model = fit(made[0], weights, l2=0.1 / cut)
    return float((model.predict(made[1]) == y[cut:]).mean())


def test_the_activations_are_those_of_a_loop_over_all_places():
    x, _ = _bars(12, 3, 9, 10)
    learned = Patches.fit(x, 5)
    got = learned.pooled(x[:2])
    side, (rows, columns) = learned.side, (9 - learned.side + 1, 10 - learned.side + 1)
    for image, row in zip(x[:2].astype(np.float64), got, strict=True):
        near = np.zeros((rows, columns, len(learned.centres)))
        for i in range(rows):
            for j in range(columns):
                patch = image[:, i : i + side, j : j + side].reshape(-1)
                patch = patch - patch.mean()
                patch = patch / np.sqrt((patch**2).mean() + CONTRAST)
                white = (patch - learned.offset) @ learned.whiten
                distance = np.sqrt(((white - learned.centres) ** 2).sum(axis=1))
                near[i, j] = np.maximum(0, distance.mean() - distance)
        wanted = [near[a, b].mean(axis=(0, 1)) for a in _parts(rows) for b in _parts(columns)]
        np.testing.assert_allclose(row, np.concatenate(wanted), atol=2e-3)


def test_rows_have_length_one_and_do_not_depend_on_their_company_or_on_threads(digits):
    x = digits.train.x[:150]
    learned = Patches.fit(x, 40)
    made = learned.transform(x)
    assert made.shape == (150, 40)
    assert made.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(learned.transform(x[70:71]), made[70:71], atol=1e-5)
    with threadpool_limits(2, user_api="blas"):
        again = Patches.fit(x, 40).transform(x)
    with threadpool_limits(1, user_api="blas"):
        np.testing.assert_array_equal(Patches.fit(x, 40).transform(x), again)
    assert len(learned.transform(x[:0])) == 0


@pytest.mark.parametrize("shape", [(1, 16, 12), (3, 24, 24), (3, 70, 50)])
def test_they_see_what_pixels_do_not(shape):
    x, y = _bars(400, *shape)
    patches = make_features("image", x[:300], x[300:], size=100)
    pixels = make_features("image", x[:300], x[300:], size=100, word="pixels")
    assert _accuracy(patches, y, 300) > max(0.9, _accuracy(pixels, y, 300))


def test_digits_are_told_apart_better_than_by_their_pixels(digits):
    found = {}
    for word in ("patches", "pixels"):
        x, x_test = make_features("image", digits.train.x, digits.test.x, word=word, size=200)
        model = fit(x, np.eye(10, dtype=np.float32)[digits.train.y], l2=0.1 / len(x))
        found[word] = float((model.predict(x_test) == digits.test.y).mean())
    assert found["patches"] > max(0.98, found["pixels"])


def test_large_images_are_averaged_by_area():
    x = np.random.default_rng(0).integers(0, 256, (2, 3, 64, 40)).astype(np.uint8)
    small = _small(x)
    assert small.shape == (2, LARGEST_SIDE, LARGEST_SIDE, 3)
    halved = x.reshape(2, 3, 32, 2, 40).mean(axis=3)
    np.testing.assert_allclose(small.sum(axis=2), halved.transpose(0, 2, 3, 1).sum(axis=2) * 32 / 40, rtol=1e-4)
    np.testing.assert_allclose(_areas(45).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(_areas(45).sum(axis=0), 32 / 45, rtol=1e-5)
    assert _small(x[:, :, :20, :20]).shape == (2, 20, 20, 3)


def test_whitened_patches_have_nothing_in_common():
    rng = np.random.default_rng(0)
    patches = _normalised((rng.standard_normal((5000, 6)) @ rng.standard_normal((6, 6)) * 100).astype(np.float32))
    patches -= patches.mean(axis=0)
    values = np.linalg.eigvalsh(np.cov(patches @ _whitening(patches), rowvar=False))
    assert values[0] < 0.01  # brightness was taken off
    assert values[1:].min() > 0.2
    assert values.max() < 1.01
    assert (_triangle(patches, patches[:7]) >= 0).all()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_handful_of_images_or_images_all_alike_make_features(count):
    x = np.full((count, 1, 8, 8), 7, np.uint8)
    made, others = make_features("image", x, x[:0])
    assert np.isfinite(made).all()
    assert made.shape == (count, max(1, count - 1))
    assert others.shape == (0, max(1, count - 1))
    assert make_features("image", x[:, :, :2], x[:1, :, :2])[0].shape == (count, 400)  # too small for patches
