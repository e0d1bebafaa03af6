"""Archives that are cut off or damaged: one line that names the file, whatever the parser made of the bytes."""

import io
import random
import zipfile
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet

from shortlist import data
from shortlist.data import read_features, read_images
from shortlist.errors import InputError
from shortlist.internal.archives import read_arrays
from shortlist.internal.checkpoint import read_checkpoint, write_checkpoint


def _npz(path):
    np.savez_compressed(path, x=np.eye(3), items=list("abc"))


def _checkpoint(path):
    write_checkpoint(path, {"a": torch.ones(3), "b": torch.zeros(2, 2)}, {"epoch": 1})


def _parquet(path):
    parquet.write_table(pa.table({"item": list("abc"), "vector": [[1.0], [2.0], [3.0]]}), path)


def _excel(path):
    rows = "".join(f'<row><c t="inlineStr"><is><t>{text}</t></is></c></row>' for text in ("text", *range(20)))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", sheet)


@pytest.mark.parametrize(
    ("name", "write", "read"),
    [
        ("t.npz", _npz, partial(read_arrays, wanted=("x", "items"))),
        ("t.xlsx", _excel, data.load),
        ("t.parquet", _parquet, partial(read_features, items=list("abc"))),
        ("t.safetensors", _checkpoint, read_checkpoint),
    ],
)
def test_damaged_archives_are_one_line_that_names_the_file(tmp_path, name, write, read):
    path = tmp_path / name
    write(path)
    whole, rng = path.read_bytes(), random.Random(0)
    cut = [whole[:length] for length in rng.sample(range(len(whole)), 60)]
    flipped = []
    for _ in range(500):
        changed = bytearray(whole)
        for _ in range(rng.choice((1, 2, 8))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        flipped.append(bytes(changed))
    said = []
    for content in (*cut, *flipped, b"hello", b"PK\x03\x04" + bytes(60)):
        path.write_bytes(content)
        try:
            read(path)  # some bytes are of no account, or are data
        except InputError as error:
            said.append(str(error))
    assert len(said) >= 60
    assert all(name in line and "\n" not in line for line in said)


def test_what_is_no_array_in_an_archive_is_refused(tmp_path):
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "hello")
    with pytest.raises(InputError, match=r"t\.npz cannot be read as an \.npz archive .*: x is not an array"):
        data.load(path)
    packed = io.BytesIO()
    np.save(packed, np.eye(2))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", packed.getvalue())
    encrypted = path.read_bytes()
    for place in (encrypted.index(b"PK\x03\x04") + 6, encrypted.index(b"PK\x01\x02") + 8):
        encrypted = encrypted[:place] + b"\x01" + encrypted[place + 1 :]
    path.write_bytes(encrypted)
    with pytest.raises(InputError, match="password required"):
        data.load(path)


def test_a_picture_that_makes_pillow_raise_a_type_error_is_one_line(tmp_path):
    """TIFF whose strips begin at fractions of a byte."""
    path = tmp_path / "p.tiff"
    Image.new("RGB", (6, 4)).save(path)
    content = bytearray(path.read_bytes())
    strips = content.index((273).to_bytes(2, "little") + b"\4\0")  # the place of the strips, as whole numbers
    content[strips + 2] = 11  # as float32
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"p\.tiff cannot be read as an image: 'float' object"):
        read_images([path])
