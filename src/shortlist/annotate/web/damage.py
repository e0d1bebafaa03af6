"""Looks for damage in the database when the server starts.

A small database is checked before anything is served. A large one takes longer than people should wait: its check goes
on while the server answers, and damage that it finds stops the server.
"""

import os
import signal
import threading

from shortlist.annotate.db.store import Store
from shortlist.errors import InputError

WAIT_SECONDS = 0.1


class DamageSearch:
    """Looks once, in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._problems: list[str] = []
        self._late = False
        self._thread = threading.Thread(target=self._look, name="damage", daemon=True)
        self._thread.start()

    def wait(self, seconds: float = WAIT_SECONDS) -> None:
        """Wait for the search, but no longer than this; damage found later ends this process in good order."""
        self._thread.join(seconds)
        self._late = True
        self.refuse()

    def refuse(self) -> None:
        """Raise what was found so far, if anything."""
        if self._problems:
            raise InputError(
                f"the database is damaged ({self._problems[0]}): restore a backup, or see `shortlist annotate check`"
            )

    def _look(self) -> None:
        self._problems = self._store.check(quick=True)
        if self._problems and self._late:
            os.kill(os.getpid(), signal.SIGTERM)
