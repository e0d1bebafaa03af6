"""CIFAR-10 packed without loss into four .xz files, 40 % smaller than the published archives.

green.xz holds the green plane of all 60,000 images, red-green.xz and blue-green.xz the other two as their difference
from it (plus 128), labels.xz the labels, training images first. A plane is stored as what a prediction from the
neighbours misses: with a = left, b = above and c = above left, the pixel is predicted as a + b - c held between
min(a, b) and max(a, b) (the predictor of JPEG-LS); in the first row as a, in the first column as b. All modulo 256.
"""

from __future__ import annotations

import lzma
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError

IMAGES, SIDE = 60_000, 32
FILE_NAMES = ("green.xz", "red-green.xz", "blue-green.xz", "labels.xz")
_AT_ONCE = 4_000  # images: few enough that the rows being worked on stay in the processor's cache


def unpack(folder: Path) -> NDArray[np.uint8]:
    """The records of the published binary version, (60000, 1 + 3072): label, then the red, green and blue planes."""
    with ThreadPoolExecutor(3) as pool:  # both xz and NumPy work outside the interpreter's lock
        green, red, blue = pool.map(_read_plane, (folder / name for name in FILE_NAMES[:3]))
    records = np.empty((IMAGES, 1 + 3 * SIDE * SIDE), np.uint8)
    records[:, 0] = _decompress(folder / FILE_NAMES[3], IMAGES)
    planes = records[:, 1:].reshape(IMAGES, 3, SIDE, SIDE)
    half = np.uint8(128)
    planes[:, 1] = green
    planes[:, 0] = red + green - half
    planes[:, 2] = blue + green - half
    return records


def _read_plane(path: Path) -> NDArray[np.uint8]:
    missed = _decompress(path, IMAGES * SIDE * SIDE).reshape(IMAGES, SIDE, SIDE)
    plane = np.empty_like(missed)
    for start in range(0, IMAGES, _AT_ONCE):
        plane[start : start + _AT_ONCE] = undo_prediction(missed[start : start + _AT_ONCE])
    return plane


def undo_prediction(missed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, H, W) prediction errors -> the (N, H, W) pixels."""
    errors = missed.transpose(1, 2, 0).astype(np.int16)
    pixels = np.empty_like(errors)
    pixels[0] = np.cumsum(errors[0], axis=0) & 255
    pixels[:, 0] = np.cumsum(errors[:, 0], axis=0) & 255
    for i in range(1, errors.shape[0]):
        for j in range(1, errors.shape[1]):
            left, above = pixels[i, j - 1], pixels[i - 1, j]
            low, high = np.minimum(left, above), np.maximum(left, above)
            predicted = np.clip(left + above - pixels[i - 1, j - 1], low, high)
            pixels[i, j] = (errors[i, j] + predicted) & 255
    return pixels.transpose(2, 0, 1).astype(np.uint8)


def _decompress(path: Path, size: int) -> NDArray[np.uint8]:
    try:
        data = lzma.decompress(path.read_bytes())
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be unpacked, it is corrupt or truncated: {error}") from error
    if len(data) != size:
        raise InputError(f"{path} holds {len(data):,} bytes, expected {size:,}")
    return np.frombuffer(data, np.uint8)
