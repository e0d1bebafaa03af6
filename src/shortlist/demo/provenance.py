"""Where the demo's figures come from, as its page shows it."""

import os
import platform
from datetime import UTC, datetime
from typing import Any

from shortlist.study.run.provenance import commit, cpu_name, versions


def provenance() -> dict[str, Any]:
    """What anyone needs to run it again, and to judge the seconds."""
    return {
        "hardware": {"cpu": cpu_name(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
        "versions": versions("torch", "numpy", "scikit-learn"),
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
