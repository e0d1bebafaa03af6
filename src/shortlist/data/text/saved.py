"""What all transforms of texts into features share: their interface, their check of texts, their file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.internal.files import atomic_write

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_FORMAT, _VERSION = "shortlist-features", 1


class Features(Protocol):
    """A transform of texts into (N, size) float32 features."""

    @property
    def size(self) -> int:
        """The number of features."""

    def transform(self, texts: Sequence[str]) -> csr_matrix | NDArray[np.float32]:
        """The features of the texts, (N, size) float32."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what it takes to transform texts the same way again."""


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; anything else is refused."""
    if isinstance(texts, str):
        raise InputError("expected a list of texts, got a single one")
    texts = list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"text {row} is {type(text).__name__}, expected a string")
    return texts


def write_saved(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write a transform as one JSON file, atomically."""
    header = {"format": _FORMAT, "version": _VERSION}
    atomic_write(path, json.dumps({**header, **content}, ensure_ascii=False) + "\n")


def read_saved(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `write_saved` wrote, of this version."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path} is not a saved feature transform: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise InputError(f"{path} is not a saved feature transform")
    if content.get("version") != _VERSION:
        raise InputError(f"{path} has version {content.get('version')}, this program reads version {_VERSION}")
    return content
