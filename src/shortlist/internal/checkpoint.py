"""Checkpoints: one safetensors file, with JSON (settings, epoch, history) in its header.

A single file, replaced by a rename, so that tensors and JSON can never belong to different moments.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from shortlist.errors import InputError
from shortlist.internal.files import atomic_path
from shortlist.internal.reasons import reason

FORMAT = "shortlist-1"
KEY = "shortlist"
"""The only entry of the header: several would be written in any order, so equal content could give unequal files."""


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> None:
    """Write tensors and JSON content, whole or not at all."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    with atomic_path(path) as temporary:
        # safetensors takes neither views nor tensors that share memory
        whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
        mode = temporary.stat().st_mode
        try:
            save_file(whole, temporary, metadata={KEY: json.dumps({"format": FORMAT, "content": content})})
        except SafetensorError as error:  # also for a full disk
            raise InputError(f"{path}: cannot be written: {reason(error)}") from error
        temporary.chmod(mode)  # safetensors replaces the file by a private one


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_checkpoint` wrote.

    Raises:
        InputError: the file is missing or not a checkpoint.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            stated = json.loads((file.metadata() or {}).get(KEY, "{}"))
            if not isinstance(stated, dict) or stated.get("format") != FORMAT:
                raise InputError(f"{path}: not a checkpoint of this version, expected format {FORMAT!r}")
            content = stated.get("content")
            if not isinstance(content, dict):
                raise InputError(f"{path}: damaged: its header holds no settings")
            return {name: file.get_tensor(name) for name in file.keys()}, content  # noqa: SIM118 (not a dict)
    except InputError:
        raise
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a checkpoint: {reason(error)}") from error
