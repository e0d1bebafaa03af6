"""Processes that end when the one that started them is killed."""

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """To be called in a process that was spawned for a pool.

    A parent that is killed cannot end its processes, and a pool's would wait for its next word for ever, data and all.
    """
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
