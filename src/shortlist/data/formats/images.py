"""Image files made into one uint8 array."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.internal.arguments import whole
from shortlist.internal.reasons import reason

if TYPE_CHECKING:
    from PIL import Image

ImageSize: TypeAlias = int | tuple[int, int] | None
"""The height and width, or one number for both, to resize images to; None leaves them as they are."""
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})
FEW_SHADES = 1 << 14
"""Images of 16 bits whose values all stay below this use less than a quarter of their range."""
_LOG = logging.getLogger(__name__)
_GREY_MODES = frozenset({"1", "L", "LA", "La"})


@dataclass(frozen=True)
class StoredImage:
    """An image inside another file; it opens as a path does."""

    content: bytes
    where: str

    def __str__(self) -> str:
        return self.where

    def open(self, mode: str) -> io.BytesIO:
        """As `Path.open`."""
        return io.BytesIO(self.content)


def read_images(
    paths: Sequence[Path | StoredImage], image_size: ImageSize = None, channels: int | None = None
) -> NDArray[np.uint8]:
    """The images as (N, C, H, W): one channel if all are grey, else three; a mixture is logged.

    Grey images of more than 8 bits share one scale, so that their brightness can be compared: see `_eight_bits`.

    Args:
        paths: the files, or images stored in one.
        image_size: (height, width), or one number for both, to resize to; None keeps the size, which must be the same
            for all.
        channels: 1 or 3, whatever the files hold; None lets the files decide.

    Raises:
        InputError: naming the first file that is missing, damaged, or of another size than the first.
    """
    size = _checked_size(image_size)
    if not paths:
        return np.zeros((0, channels or 1, *(size or (1, 1))), np.uint8)
    # Pillow decodes outside the interpreter's lock, so threads help
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        arrays = list(pool.map(partial(_read_image, size=size), paths))
    arrays = _eight_bits(arrays)
    shape = arrays[0].shape[:2]
    for path, array in zip(paths, arrays, strict=True):
        if array.shape[:2] != shape:
            raise InputError(
                f"{path} is {array.shape[0]}x{array.shape[1]}, {paths[0]} is {shape[0]}x{shape[1]}:"
                " state an image_size (--image-size 32, say) to resize them to"
            )
    coloured = [path for path, array in zip(paths, arrays, strict=True) if array.ndim == 3]
    colour = channels == 3 if channels else bool(coloured)
    if channels is None and 0 < len(coloured) < len(paths):
        _LOG.warning(
            "%d of %d images in colour (%s), so all are read as RGB: make them grey if colour says nothing",
            *(len(coloured), len(paths), coloured[0]),
        )
    out = np.empty((len(arrays), 3 if colour else 1, *shape), np.uint8)
    for i, array in enumerate(arrays):
        out[i] = _as_channels(array, colour)
    return out


def read_splits(parts: Sequence[Sequence[Path | StoredImage]], image_size: ImageSize) -> list[NDArray[np.uint8]]:
    """`read_images` of all parts at once, so that training and test images agree in size, channels and brightness."""
    x = read_images([path for part in parts for path in part], image_size)
    return np.split(x, np.cumsum([len(part) for part in parts])[:-1])


def _as_channels(array: NDArray[np.uint8], colour: bool) -> NDArray[np.uint8]:
    if array.ndim == 2:
        return array[None]  # numpy repeats it into the three channels of a colour image
    if colour:
        return array.transpose(2, 0, 1)
    grey: NDArray[np.float64] = array @ np.array([0.299, 0.587, 0.114])  # ITU-R 601, as Pillow weighs the colours
    return np.rint(grey).astype(np.uint8)[None]


def _read_image(path: Path | StoredImage, size: tuple[int, int] | None) -> NDArray[Any]:
    """(H, W) for a grey image, (H, W, 3) for any other; uint8, or int32 and float32 for grey of more than 8 bits."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with path.open("rb") as file, Image.open(file) as opened:
            image: Image.Image = ImageOps.exif_transpose(opened)  # photographs say how they were held
            image = _plain_mode(image)
    except FileNotFoundError:
        raise InputError(f"no such image: {path}") from None
    except UnidentifiedImageError:
        raise InputError(f"{path} is not an image, or is damaged") from None
    except Exception as error:  # damaged bytes make Pillow raise nearly anything
        raise InputError(f"{path} cannot be read as an image: {reason(error)}") from error
    if size is not None and image.size != size[::-1]:
        image = image.resize(size[::-1], Image.Resampling.BILINEAR)
    return np.asarray(image)


def _plain_mode(image: Image.Image) -> Image.Image:
    """The image in mode L or RGB; or I or F where it is grey of more than 8 bits, which Pillow would cut at 255."""
    from PIL import Image

    if image.mode.startswith("I"):  # I;16, I;16B, ...
        return image.convert("I")
    if image.mode == "F":  # a pixel without a number is black
        return Image.fromarray(np.nan_to_num(np.asarray(image), posinf=0, neginf=0))
    mode = "L" if image.mode in _GREY_MODES else "RGB"
    if image.has_transparency_data:  # put on white, as on a page; what is stored there may be black or anything
        layered = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layered.size, "white"), layered)
    return image.convert(mode)


def _eight_bits(arrays: Sequence[NDArray[Any]]) -> list[NDArray[np.uint8]]:
    """Grey values of more than 8 bits as uint8: whole numbers by one scale for all images, decimal ones by another.

    A dark image with a scale of its own would become as bright as the others.
    """
    scales = {kind: _scale([array for array in arrays if array.dtype.kind == kind], kind) for kind in "if"}
    return [
        array if array.dtype == np.uint8 else np.clip(array * scales[array.dtype.kind], 0, 255).astype(np.uint8)
        for array in arrays
    ]


def _scale(arrays: Sequence[NDArray[Any]], kind: str) -> float:
    """What makes 0..255 of the values: they have 16 bits if any is above 255; decimal ones up to 1 are shares."""
    most = max((array.max(initial=0) for array in arrays), default=0)
    if 255 < most < FEW_SHADES:
        _LOG.warning(
            "grey values above 255 are taken for 16 bits, but none is above %d, which leaves %d of 256 shades: "
            "stretch them to 65535 to keep more",
            *(most, most // 256 + 1),
        )
    if most > 255:
        return 1 / 256
    return 255 if kind == "f" and most <= 1 else 1


def _checked_size(image_size: ImageSize) -> tuple[int, int] | None:
    if image_size is None:
        return None
    size = image_size if isinstance(image_size, tuple | list) else (image_size, image_size)
    sides = [whole("image_size", side) for side in size]
    if len(sides) != 2 or min(sides) < 1:
        raise InputError(f"image_size must be one positive number or (height, width), got {image_size}")
    return sides[0], sides[1]
