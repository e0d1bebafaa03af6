"""Sentence embeddings as features of texts (the optional package sentence-transformers)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shortlist.data.text.saved import check_texts, read_saved, write_saved
from shortlist.errors import InputError
from shortlist.internal.extras import named_extra
from shortlist.internal.reasons import reason

DEFAULT_MODEL = "all-MiniLM-L6-v2"


class EmbeddingFeatures:
    """Embeddings of length 1 from a pretrained sentence encoder; nothing is fitted.

    The encoder is loaded when it is first needed. `save` keeps its name, not its weights.

    Args:
        model_name: the name by which sentence-transformers knows it, or its folder.
    """

    def __init__(self, model_name: str = DEFAULT_MODEL) -> None:
        self.model_name = model_name

    @cached_property
    def size(self) -> int:
        """The number of features."""
        return int(self._encoder.get_sentence_embedding_dimension())

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The embeddings of the texts, (N, size) float32."""
        texts = check_texts(texts)
        if not texts:
            return np.zeros((0, self.size), np.float32)
        vectors = self._encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the name of the encoder as JSON, atomically."""
        write_saved(path, {"kind": "embeddings", "model_name": self.model_name})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        content = read_saved(path)
        if content.get("kind") != "embeddings" or not isinstance(content.get("model_name"), str):
            raise InputError(f"{path} holds no sentence embeddings")
        return cls(content["model_name"])

    @cached_property
    def _encoder(self) -> Any:
        with named_extra():
            from sentence_transformers import SentenceTransformer
        try:
            return SentenceTransformer(self.model_name)
        except Exception as error:  # the library passes on whatever its hub client raises
            raise InputError(f"the sentence encoder {self.model_name!r} cannot be loaded: {reason(error)}") from error
