"""Ray, for more than one machine."""

import importlib
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.internal.extras import named_extra
from shortlist.internal.reasons import reason

AUTO, LOCAL = "auto", "local"
"""Instead of an address: the cluster that this machine belongs to; one of this machine alone, which is started here and
stopped in the end."""
SECONDS = 5.0
"""How long to wait for a cluster to answer."""
RETRIES = 3
"""How often a task is tried again if its worker dies."""
ROWS = 1000
"""Items per task."""


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """Ray, connected to the cluster at `address`: host:port, AUTO or LOCAL."""
    with named_extra():
        ray: Any = importlib.import_module("ray")
    started = not ray.is_initialized()
    if started:
        _connect(ray, address)
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    where = {"include_dashboard": False} if address == LOCAL else {"address": address}
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdecimal():  # where nobody listens, Ray itself would wait for minutes
            socket.create_connection((host.rpartition("/")[2], int(port)), timeout=SECONDS).close()
        ray.init(**where, configure_logging=False, log_to_driver=False)
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        raise InputError(
            f"ray: no cluster at {address!r}, expected host:port, {AUTO}, or {LOCAL} (this machine alone): "
            f"{reason(error)}"
        ) from error


def spread_rows(address: str, make: Callable[[Any], NDArray[Any]], rows: Any) -> NDArray[Any]:
    """make(rows), in tasks of some rows each; `make` must treat each row by itself."""
    with cluster(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_call)
        shared = ray.put(make)
        parts = [task.remote(shared, rows[start : start + ROWS]) for start in range(0, len(rows), ROWS)]
        return np.concatenate(ray.get(parts)) if parts else make(rows)


def _call(make: Callable[[Any], NDArray[Any]], rows: Any) -> NDArray[Any]:
    return make(rows)
