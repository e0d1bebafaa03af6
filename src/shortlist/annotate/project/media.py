"""Images and sounds: only known types, recognised by their bytes, never by their names.

An image is decoded and encoded anew, so what the browser gets was written by Pillow: no scripts, no metadata (such as
places), no file that is two things at once.
"""

import io
import os
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from shortlist.annotate.project.sounds import check_sound
from shortlist.errors import InputError

IMAGE_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF")
IMAGE_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff"})
AUDIO_ENDINGS = frozenset({".wav", ".mp3", ".ogg", ".oga", ".opus", ".flac"})
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_PIXELS = 50_000_000

EXTENSIONS = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
}


def read_media(path: Path) -> bytes:
    """The bytes of a file that is not a link and not too large."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"larger than {MAX_FILE_BYTES // 2**20} MB")
    return data


def clean_media(data: bytes) -> tuple[bytes, str]:
    """The bytes to serve and their type (image/... or audio/...)."""
    if not data:
        raise InputError("an empty file")
    sound = audio_type(data)
    if sound is None:
        return _clean_image(data)
    check_sound(data, sound)
    return data, sound


def audio_type(data: bytes) -> str | None:
    """The type of a sound by its first bytes; None if it is not a known one."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "audio/wav"
    if data[:4] == b"OggS":
        return "audio/ogg"
    if data[:4] == b"fLaC":
        return "audio/flac"
    # an MPEG frame: eleven set bits, then a version, a layer and a bit rate that exist
    frame = len(data) > 2 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0
    if data[:3] == b"ID3" or (frame and data[1] & 0x18 != 0x08 and data[1] & 0x06 != 0 and data[2] & 0xF0 != 0xF0):
        return "audio/mpeg"
    return None


def _clean_image(data: bytes) -> tuple[bytes, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image: Image.Image = Image.open(io.BytesIO(data), formats=IMAGE_FORMATS)
            if image.width * image.height > MAX_PIXELS:
                raise InputError(f"an image of {image.width} x {image.height}: expected at most {MAX_PIXELS} pixels")
            was_jpeg = image.format == "JPEG"
            image.load()
            image = ImageOps.exif_transpose(image)
    except InputError:
        raise
    except UnidentifiedImageError as error:
        raise InputError("not an image or a sound of a known type, or damaged") from error
    except Exception as error:  # Pillow's decoders raise nearly anything on broken bytes
        raise InputError(f"a broken image ({type(error).__name__})") from error
    return _encode(image, was_jpeg)


def _encode(image: Image.Image, was_jpeg: bool) -> tuple[bytes, str]:
    out = io.BytesIO()
    if was_jpeg:
        image.convert("RGB" if image.mode not in ("L", "RGB") else image.mode).save(out, "JPEG", quality=92)
        return out.getvalue(), "image/jpeg"
    if image.has_transparency_data:  # white behind it, as in training: a dark page would hide dark lines
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    elif image.mode.startswith(("I", "F")):
        image = _eight_bits(image)
    elif image.mode not in ("1", "L", "RGB"):
        image = image.convert("RGB")
    clean = image.copy()
    clean.info = {}
    clean.save(out, "PNG", compress_level=3)
    return out.getvalue(), "image/png"


def _eight_bits(image: Image.Image) -> Image.Image:
    """A grey picture of more than 8 bits so that people see it: Pillow would cut everything at 255."""
    values = np.nan_to_num(np.asarray(image, np.float64), posinf=0, neginf=0)
    low, high = min(values.min(), 0), max(values.max(), 1)
    if image.mode != "F":  # the bits that are used: many cameras fill 12 of 16
        high = max(2 ** int(high).bit_length() - 1, 255)
    return Image.fromarray(((values - low) * (255 / (high - low))).astype(np.uint8))
