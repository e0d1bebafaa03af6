"""Settings that change while the server runs: here at once, in its other processes when they see the changed file."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.items import check_live
from shortlist.annotate.live.plan import LivePlan, live_plan
from shortlist.annotate.live.supervisor import POLL_SECONDS
from shortlist.annotate.project.project import SETTINGS, Project, Settings, read_settings
from shortlist.annotate.queue.chooser import Chooser, Current
from shortlist.annotate.queue.queue import Queue
from shortlist.annotate.web.logs import LOGGER

LOOK_SECONDS = 0.5


class Live(Protocol):
    """A model that chooses lists: the supervisor that trains it, or a follower of what another process trains."""

    @property
    def plan(self) -> LivePlan | None:
        """What it does now; None: chance chooses the lists."""

    @property
    def chooser(self) -> Chooser | None:
        """Chooses the lists by the plan."""

    def change(self, plan: LivePlan | None) -> None:
        """Follow another plan from now on."""


class Follower:
    """Chooses by the model that another process trains and publishes."""

    def __init__(self, project: Project, plan: LivePlan | None, chooser: Chooser | None = None) -> None:
        self._project = project
        self.plan, self.chooser = plan, chooser
        if chooser is None:
            self.change(plan)

    def change(self, plan: LivePlan | None) -> None:
        """Follow this plan from now on."""
        self.plan, self.chooser = plan, None if plan is None else LiveChooser(self._project.live, plan)

    def refresh(self) -> None:
        """Read what was published since, if anything."""
        if isinstance(self.chooser, LiveChooser):
            self.chooser.refresh()


class Tuning:
    """The settings of a running server. `queue` is None in the parent of several workers, which asks no questions."""

    def __init__(self, project: Project, live: Live, queue: Queue | None = None) -> None:
        self.project, self.live, self.queue = project, live, queue
        self._lock = threading.RLock()
        self._seen = self._stamp()

    def change(self, changes: dict[str, Any], plan: LivePlan | None) -> None:
        """Store changed settings and follow them from now on; if the plan cannot be followed, nothing changes."""
        with self._lock:
            settings = self.project.with_settings(changes)
            if plan != self.live.plan:
                check_live(self.project, plan)
                settings = self.project.with_settings({**changes, "live": None if plan is None else plan.to_dict()})
                self.live.change(plan)
            self.project.store_settings(settings)
            self._seen = self._stamp()
            self._tune()

    def look(self) -> None:
        """Follow settings that another process has stored, if it has."""
        with self._lock:
            if self._stamp() == self._seen:
                return
            self._seen = self._stamp()
            before, now = self.project.settings, read_settings(self.project.folder)
            self.project.take_settings(now)
            if _lists(now) != _lists(before):  # else what `serve` was told stays in force
                self.live.change(live_plan(now))
            self._tune()

    def _tune(self) -> None:
        if self.queue is None:
            return
        chooser, self.queue.typing = self.project.lists(self.live.chooser)
        assert isinstance(self.queue.chooser, Current)  # as `Project.queue` made it
        self.queue.chooser.chooser = chooser
        self.queue.leases.gold_every = self.project.settings.gold_every

    def _stamp(self) -> int:
        return (self.project.folder / SETTINGS).stat().st_mtime_ns


def _lists(settings: Settings) -> tuple[Any, ...]:
    return settings.live, settings.size, settings.overlap


@contextmanager
def watching(look: Callable[[], None], seconds: float = LOOK_SECONDS) -> Iterator[None]:
    """Call `look` again and again, in a thread, until the block ends."""
    stop = threading.Event()

    def watch() -> None:
        told = ""  # a problem is logged once, not every second for as long as it lasts
        while not stop.wait(seconds):
            try:
                look()
                told = ""
            except Exception as error:  # a disk that is away for a while must not end the thread
                problem = str(error)[:300]
                if problem != told and not stop.is_set():  # files may be removed while we stop: that is no problem
                    LOGGER.error("something could not be read", extra={"fields": {"error": problem}})
                told = problem
                stop.wait(1.0)

    threading.Thread(target=watch, name="watch", daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def following(follower: Follower) -> Any:
    """Refresh the follower until the block ends."""
    return watching(follower.refresh, seconds=POLL_SECONDS)
