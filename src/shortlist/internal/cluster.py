"""Ray, where one machine is not enough."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.internal.extras import named_extra

LOCAL = "local"
"""The address that stands for a cluster of this machine alone, started here and stopped in the end."""
RETRIES = 3
"""How often a task is tried again when its worker dies."""
ROWS = 1000
"""Items that one task makes features of."""


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """Ray, connected to the cluster at `address` (`auto`: the one that this machine belongs to)."""
    with named_extra():
        ray: Any = importlib.import_module("ray")
    started = not ray.is_initialized()
    if started:
        where = {"include_dashboard": False} if address == LOCAL else {"address": address}
        ray.init(**where, configure_logging=False, log_to_driver=False)
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


def spread_rows(address: str, make: Callable[[Any], NDArray[Any]], rows: Any) -> NDArray[Any]:
    """make(rows), in tasks of some rows each: of what is made of each row by itself."""
    with cluster(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_call)
        shared = ray.put(make)
        parts = [task.remote(shared, rows[start : start + ROWS]) for start in range(0, len(rows), ROWS)]
        return np.concatenate(ray.get(parts)) if parts else make(rows)


def _call(make: Callable[[Any], NDArray[Any]], rows: Any) -> NDArray[Any]:
    return make(rows)
