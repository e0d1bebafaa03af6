"""Where a figure comes from: the machine, the versions, the commit and the day."""

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shortlist.internal.version import __version__

PACKAGE = Path(__file__).resolve().parents[1]
COMMIT = "SHORTLIST_COMMIT"
"""The environment variable that names the commit, for sources copied without their repository."""


def provenance(device: str) -> dict[str, Any]:
    """What a row of the ledger says besides its result."""
    return {**_fixed(device), "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


@cache
def _fixed(device: str) -> dict[str, Any]:
    return {
        "hardware": _hardware(device),
        "versions": versions("torch", "numpy"),
        "commit": commit(),
    }


def _hardware(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{cpu_name()} ({os.cpu_count()} cores)"


def cpu_name() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def versions(*packages: str) -> dict[str, str | None]:
    """The versions of Shortlist, Python and other packages; None for one that is not installed."""
    own = {"shortlist": __version__, "python": platform.python_version()}
    return {**own, **{name: _version(name) for name in packages}}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit this package runs from, with a `+` if its source was changed; None if it is unknown."""
    top = _git("rev-parse", "--show-toplevel")
    # an installed copy may be inside another project's checkout, whose commit says nothing about it
    if top is None or Path(top).resolve() / "src" / "shortlist" != PACKAGE:
        return os.environ.get(COMMIT)
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", str(PACKAGE))
    return f"{_git('rev-parse', '--short=12', 'HEAD')}{'+' if changed else ''}"


def short(commit: str) -> str:
    """The first seven digits of a commit; a name that is not a hash stays as it is.

    >>> short("47da5edd1011fbf1edb2cb25ebb07137c4198eea"), short("466d8a8f0011+"), short("release-2")
    ('47da5ed', '466d8a8+', 'release-2')
    """
    found = re.fullmatch(r"([0-9a-f]{7})[0-9a-f]{0,33}(\+?)", commit)
    return commit if found is None else "".join(found.groups())


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=PACKAGE, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
