"""A checkpoint's file: as readable as the user's other files, and refused if it holds no settings."""

import os

import pytest
import torch
from safetensors.torch import save_file

from shortlist.errors import InputError
from shortlist.internal.checkpoint import read_checkpoint, write_checkpoint


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_it_is_as_readable_as_other_files(tmp_path, mask):
    before = os.umask(mask)
    try:
        (tmp_path / "other").touch()
        write_checkpoint(tmp_path / "c.safetensors", {"a": torch.zeros(2)}, {"epoch": 1})
    finally:
        os.umask(before)
    assert (tmp_path / "c.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (None, "not a checkpoint of this version, expected format 'shortlist-1'"),
        ({"shortlist": "{}"}, "not a checkpoint of this version, expected format 'shortlist-1'"),
        ({"shortlist": '{"format": "shortlist-1"}'}, "damaged: its header holds no settings"),
        ({"shortlist": "{"}, "cannot be read as a checkpoint"),
    ],
)
def test_tensors_without_settings_are_no_checkpoint(tmp_path, header, line):
    path = tmp_path / "c.safetensors"
    save_file({"a": torch.zeros(2)}, path, metadata=header)
    with pytest.raises(InputError, match=line):
        read_checkpoint(path)
