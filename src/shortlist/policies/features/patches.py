"""Features of images learned from the images themselves, without labels and without a download (Coates and Ng, 2011).

Small patches are normalised and whitened, and k-means finds typical ones. An image is then described by how near the
patches in each of its parts are to each typical one. A linear model on that sees edges and corners where one on pixels
sees spots. Everything is done in chunks, which are spread over the cores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.features.rows import Matrix, unit
from shortlist.policies.threads import LARGE, few_threads, spread

LEAST_SIDE, LARGEST_SIDE = 4, 32
"""Smaller images hold no useful patches; larger ones are reduced to the second number."""
PATCH, CENTRES, GRID = 6, 400, 3
"""The side of a patch (half the image if that is less), the number of typical patches, and the parts of an image by
row and by column."""
SAMPLE_PATCHES, SAMPLE_IMAGES = 40_000, 10_000
"""The most patches and images that the typical patches and the directions are learned from."""
CONTRAST, WHITE = 10.0, 0.1
"""Added to variances, so that patches without contrast and directions without variance are not blown up."""
FLATTEN = 0.5
"""Directions are divided by their standard deviation to this power: 0 leaves them as they are, 1 makes all equal."""
ROUNDS = 10
"""Rounds of k-means."""
CHUNK = 8
"""Images at a time: what is in between stays in the processor's cache."""


@dataclass(frozen=True)
class Patches:
    """What was learned: how patches are whitened, the typical ones, and the directions that are kept."""

    side: int
    whiten: Matrix
    offset: Matrix
    centres: Matrix
    mean: Matrix
    directions: Matrix

    @classmethod
    def fit(cls, images: NDArray[np.uint8], size: int, seed: int = 0) -> Self:
        """Learn from images (N, C, H, W); at most `size` features, fewer where there are fewer images."""
        rng = np.random.Generator(np.random.PCG64(seed))
        height, width = (min(n, LARGEST_SIDE) for n in images.shape[2:])
        side = min(PATCH, height // 2, width // 2)
        some = images[np.sort(rng.permutation(len(images))[:SAMPLE_IMAGES])]
        sampled = _normalised(_sample(some, side, rng))
        offset = sampled.mean(axis=0)
        with few_threads():  # with more threads the order of the sums, and so the features, would depend on the machine
            whiten = _whitening(sampled - offset)
            sampled = (sampled - offset) @ whiten
        centres = _typical(sampled, min(CENTRES, len(sampled)), rng)
        nothing = np.empty(0, np.float32)
        first = cls(side, whiten, offset, centres, nothing, nothing)
        pooled = first.pooled(some)
        with few_threads():
            return cls(side, whiten, offset, centres, *_directions(pooled, size, seed))

    def transform(self, images: NDArray[np.uint8]) -> Matrix:
        """(N, size) rows of length 1."""
        if not len(images):
            return np.empty((0, self.directions.shape[1]), np.float32)
        return _in_chunks(lambda part: unit((self._pool(part) - self.mean) @ self.directions), images)

    def pooled(self, images: NDArray[np.uint8]) -> Matrix:
        """(N, centres x parts) mean activations, before they are reduced."""
        return _in_chunks(self._pool, images)

    def _pool(self, images: NDArray[np.uint8]) -> Matrix:
        seen = _windows(_small(images), self.side)
        n, rows, columns = seen.shape[:3]
        patches = (_normalised(seen.reshape(n * rows * columns, -1)) - self.offset) @ self.whiten
        near = _triangle(patches.astype(np.float32, copy=False), self.centres).reshape(n, rows, columns, -1)
        parts = [near[:, part].mean(axis=1) for part in _parts(rows)]
        grid = [part[:, cut].mean(axis=1) for part in parts for cut in _parts(columns)]
        return np.stack(grid, axis=1).reshape(n, -1)


def _small(images: NDArray[np.uint8]) -> Matrix:
    """(N, H, W, C) with no side above LARGEST_SIDE: larger images are averaged over the area of each new pixel."""
    x = images.transpose(0, 2, 3, 1).astype(np.float32)
    height, width = x.shape[1:3]
    if height > LARGEST_SIDE:
        x = np.einsum("ih,nhwc->niwc", _areas(height), x, optimize=True)
    if width > LARGEST_SIDE:
        x = np.einsum("jw,nhwc->nhjc", _areas(width), x, optimize=True)
    return x


def _areas(size: int) -> Matrix:
    """(LARGEST_SIDE, size): the share of each new pixel that an old one fills."""
    edges = np.arange(LARGEST_SIDE + 1) * (size / LARGEST_SIDE)
    low, high = edges[:-1, None], edges[1:, None]
    old = np.arange(size)
    overlap = np.clip(np.minimum(high, old + 1) - np.maximum(low, old), 0, None)
    return np.asarray(overlap / (high - low), np.float32)


def _windows(x: Matrix, side: int) -> Matrix:
    """(N, rows, columns, C * side * side): the patch at every place."""
    seen: Matrix = np.lib.stride_tricks.sliding_window_view(x, (side, side), axis=(1, 2))
    return seen.reshape(*seen.shape[:3], -1)


def _sample(images: NDArray[np.uint8], side: int, rng: np.random.Generator) -> Matrix:
    """About SAMPLE_PATCHES patches from random places."""
    parts = []
    for start in range(0, len(images), 256):
        seen = _windows(_small(images[start : start + 256]), side)
        n, rows, columns = seen.shape[:3]
        each = min(-(-SAMPLE_PATCHES // len(images)), rows * columns)
        i, j = rng.integers(0, rows, (n, each)), rng.integers(0, columns, (n, each))
        parts.append(seen[np.arange(n)[:, None], i, j].reshape(n * each, -1))
    return np.concatenate(parts)


def _normalised(patches: Matrix) -> Matrix:
    """Patches with mean 0, divided by sqrt(their variance + CONTRAST)."""
    patches = np.asarray(patches - patches.mean(axis=1, keepdims=True), np.float32)
    patches /= np.sqrt(np.square(patches).mean(axis=1, keepdims=True) + np.float32(CONTRAST))
    return patches


def _whitening(patches: Matrix) -> Matrix:
    """V (L + WHITE)^(-1/2) V^T for the covariance V L V^T: it removes what neighbouring pixels have in common."""
    values, vectors = np.linalg.eigh(patches.T @ patches / np.float32(len(patches)))
    white: Matrix = ((vectors / np.sqrt(np.maximum(values, 0) + WHITE)) @ vectors.T).astype(np.float32)
    return white


def _typical(patches: Matrix, count: int, rng: np.random.Generator) -> Matrix:
    """(count, D) the centres of k-means."""
    from scipy.sparse import csr_matrix

    centres = patches[np.sort(rng.permutation(len(patches))[:count])]
    ones, places = np.ones(len(patches), np.float32), np.arange(len(patches) + 1)
    for _ in range(ROUNDS):
        half = 0.5 * np.square(centres).sum(axis=1)
        nearest = _in_chunks(lambda part: (part @ centres.T - half).argmax(axis=1), patches, 2048)  # noqa: B023
        members = csr_matrix((ones, nearest, places), (len(patches), count))
        sizes = np.bincount(nearest, minlength=count)
        stray = patches[rng.integers(0, len(patches), count)]  # an empty cluster starts again at a random patch
        sums = np.asarray(members.T @ patches, np.float32)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None].astype(np.float32), stray)
    return centres


def _triangle(patches: Matrix, centres: Matrix) -> Matrix:
    """(P, centres) max(0, mean distance to all centres - distance to this one): about half are 0."""
    near = patches @ (-2 * centres.T)
    near += np.square(centres).sum(axis=1)
    near += np.square(patches).sum(axis=1)[:, None]
    np.maximum(near, 0, out=near)
    np.sqrt(near, out=near)
    np.subtract(near.mean(axis=1, keepdims=True), near, out=near)
    np.maximum(near, 0, out=near)
    return near


def _parts(size: int) -> list[slice]:
    """GRID parts of a side, as equal as possible; fewer if the side is shorter."""
    cuts = np.linspace(0, size, min(GRID, size) + 1).round().astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(cuts)]


def _directions(pooled: Matrix, size: int, seed: int) -> tuple[Matrix, Matrix]:
    """The mean of the activations, and a matrix that standardises them and keeps the directions of most variance."""
    from sklearn.utils.extmath import randomized_svd

    mean, spread = pooled.mean(axis=0), pooled.std(axis=0)
    spread = np.maximum(spread, max(float(spread.mean()) * 0.01, 1e-6))
    kept = max(1, min(size, len(pooled) - 1, pooled.shape[1]))
    _, values, axes = randomized_svd((pooled - mean) / spread, kept, n_iter=4, random_state=seed)
    scale = np.maximum(values / max(float(values[0]), 1e-12), 1e-3) ** -FLATTEN
    return mean, ((axes * scale[:, None]) / spread).T.astype(np.float32)


def _in_chunks(work: Callable[[Any], NDArray[Any]], rows: NDArray[Any], step: int = CHUNK) -> NDArray[Any]:
    """`work` on a few rows at a time, on all cores with one thread of BLAS each; the results in order."""
    parts = [rows[start : start + step] for start in range(0, len(rows), step)]
    with few_threads():
        return np.concatenate(spread(work, parts, LARGE if len(parts) > 1 else 0))
