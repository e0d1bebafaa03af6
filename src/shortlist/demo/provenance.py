"""Where figures come from: the machine, the versions and the commit."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]


def provenance() -> dict[str, Any]:
    """What anyone needs to run it again, and to judge the seconds."""
    import shortlist

    packages = ("torch", "numpy", "scikit-learn")
    return {
        "hardware": {"cpu": _cpu(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
        "versions": {
            "shortlist": shortlist.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def commit() -> str | None:
    """The commit of the checkout this package runs from, `+` where its source was changed; None outside of one."""
    top = _git("rev-parse", "--show-toplevel")
    # an installed copy may lie inside another project's checkout, whose commit says nothing about it
    if top is None or Path(top).resolve() / "src" / "shortlist" != PACKAGE:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", str(PACKAGE))
    return f"{_git('rev-parse', 'HEAD')}{'+' if changed else ''}"


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=PACKAGE, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
