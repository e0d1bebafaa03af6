"""What the longest kernel checks look at, as one number.

`make kernels` runs every check and writes this number to checked.txt. As long as it is the same, `make test` leaves the
longest ones out (they take minutes in Triton's interpreter); when a source or a version changes, it runs them.
"""

import hashlib
from importlib.metadata import version
from pathlib import Path

import shortlist

SOURCE = Path(shortlist.__file__).parent
HERE = Path(__file__).parent
RECORD = HERE / "checked.txt"
LOOKED_AT = ("training/fleet/**/*", "training/views.py", "training/augment.py", "models/*.py")
CHECKS = ("kernel_check.py", "cuda_on_cpu.py", "on_cpu.h")


def digest() -> str:
    """Of the kernels, what they are compared with, the checks, and the versions of torch and Triton."""
    found = hashlib.sha256(f"{version('torch')} {version('triton')}".encode())
    files = [path for pattern in LOOKED_AT for path in SOURCE.glob(pattern) if path.suffix in (".py", ".cu", ".cuh")]
    for path in (*sorted(files), *(HERE / name for name in CHECKS)):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    RECORD.write_text(digest() + "\n")
