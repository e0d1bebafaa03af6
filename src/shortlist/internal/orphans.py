"""Processes that end when the process that started them is killed."""

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """Call this in a process that was spawned for a pool: it ends when its parent does.

    A parent that is killed cannot end its pool, whose processes would wait for work for ever and keep their memory.
    """
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
