"""What the checks of the kernels look at, as one number.

`make kernels` runs every check and writes this number to checked.txt. As long as it is the same, `make test` leaves all
but the shortest out (they take minutes of interpreting and compiling); when a source or a version changes, they run.
"""

import hashlib
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import shortlist

SOURCE = Path(shortlist.__file__).parent
HERE = Path(__file__).parent
RECORD = HERE / "checked.txt"
LOOKED_AT = ("training/fleet/**/*", "training/draws.py", "training/views.py", "training/augment.py", "models/*.py")
CHECKS = ("kernel_check.py", "cuda_on_cpu.py", "on_cpu.h", "test_cuda_conv.py", "test_cuda_lenet.py")


def digest() -> str:
    """Of the kernels, what they are compared with, the checks, and the versions of torch and Triton."""
    try:
        found = hashlib.sha256(f"{version('torch')} {version('triton')}".encode())
    except PackageNotFoundError:
        return ""  # then they skip for want of Triton
    files = [path for pattern in LOOKED_AT for path in SOURCE.glob(pattern) if path.suffix in (".py", ".cu", ".cuh")]
    for path in (*sorted(files), *(HERE / name for name in CHECKS)):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


unless_checked = pytest.mark.skipif(
    "SHORTLIST_KERNELS" not in os.environ and digest() == RECORD.read_text().strip(),
    reason="nothing that it looks at has changed since it passed (make kernels runs it)",
)


if __name__ == "__main__":
    RECORD.write_text(digest() + "\n")
