"""The trainer's process: reads answers, trains, publishes. The server starts it, watches it and ends it.

    python -m shortlist.annotate.live.trainer PROJECT '{"policy": "adaptive", ...}'

It only reads the database: on SQLite a reader keeps no writer waiting, so the queue does not notice how long a training
takes. It has the lowest priority and one thread. What it has learned is not stored: after a crash it reads all answers
again. It ends when its input does, that is, with the server, however that ends.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from shortlist.annotate.db.schema import NO_CLASS
from shortlist.annotate.live.answer_log import AnswerLog, Given, gold_log, rounds
from shortlist.annotate.live.chooser import write_ids
from shortlist.annotate.live.items import LiveItems, read_gold_classes, read_project, shape
from shortlist.annotate.live.plan import HISTORY, LivePlan
from shortlist.annotate.live.start import Added, Start, added, make_experts, read_start
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.score import FEW, write_score
from shortlist.annotate.project.second_look import MOST, write_doubts
from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.policies import Expert, Loop, Snapshot

POLL_SECONDS = 0.05
PR_SET_PDEATHSIG = 1
WAIT_SECONDS = 10.0
"""A training waits for its batch of answers, but no longer than this."""
NICENESS = 19
"""The lowest priority: answering comes before training."""
HELD_OUT = 10
"""Of the answers that are there at the start, the latest tenth is held out to fit the temperature and what experts
count (at least as many as that takes, at most half)."""
MOST_HELD_OUT = 5000
"""More would not fit them better."""
LOOK_BACK = (1 / 3, 1 / 2, 2 / 3)
"""Shares of the answers there at the start after which a model is trained, too: how its accuracy has grown."""


class Trainer:
    """The loop of one project, fed from its database."""

    def __init__(self, project: Project, plan: LivePlan) -> None:
        self.project, self.plan = project, plan
        self.folder = project.live
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.shape: tuple[int, ...] = ()
        self.items: LiveItems
        self.features: Path
        self.loop: Loop
        self.start: Start
        self.experts: Sequence[Expert]
        self.added: Added
        self.log: AnswerLog
        self.trained_at = self.took = 0.0
        self.answers = self.doubted = 0

    def step(self) -> bool:
        """Train and publish if it is time to; False if there was nothing to do."""
        with self.project.store.read() as connection:
            changed = shape(connection) != self.shape
            if not changed and not self._due(connection):
                return self._doubt(idle=True)
            begun = time.time()
            if changed:
                self._begin(connection)
            given, again = self._news(connection, changed)
        if again:
            self._replay(given)
        else:
            self._record(given)
            self.loop.retrain()
        self._publish(begun)
        self._doubt(idle=False)
        # making features is not training: no rest after that
        self.trained_at, self.took = time.monotonic(), 0.0 if changed else time.time() - begun
        return True

    def _due(self, connection: Connection) -> bool:
        if added(connection, self.project) != self.added:
            return True
        waiting = self.log.waiting(connection)
        if not waiting:
            return False
        rested = time.monotonic() - self.trained_at
        if rested < self.took:
            return False  # train at most half of the time: others need the machine and the disk, too
        return waiting >= self.loop.batch_size() or rested > WAIT_SECONDS

    # -- the loop ----------------------------------------------------------------------------------------------------

    def _begin(self, connection: Connection) -> None:
        """The items as features."""
        self.shape = shape(connection)
        self.items = read_project(connection, self.project.media, self.plan.seed, self.plan.test, self.plan.features)
        stored = Snapshot.write_features(self.items.x, self.folder)
        # read where they are stored, by the server too: a million items need not be in memory twice
        self.items, self.features = replace(self.items, x=np.asarray(np.load(stored, mmap_mode="r"))), stored
        self.rows = {item_id: row for row, item_id in enumerate(self.items.ids)}
        write_ids(self.folder, self.items.ids)

    def _news(self, connection: Connection, changed: bool) -> tuple[list[Given], bool]:
        """The answers since the last training; or all, and True, if one was taken back or other input has changed."""
        start = read_start(connection, self.project)
        if not changed and start == self.start:
            return self.log.read(connection)
        self.start, self.added = start, added(connection, self.project)
        if self.items.scored_on == "gold":
            self.items = read_gold_classes(connection, self.items)
        self.experts = make_experts(connection, self.project, self.items, start, self.plan)
        self.log = AnswerLog()
        return self.log.read(connection)[0], True

    def _replay(self, given: list[Given]) -> None:
        """A new loop that learns what is known and the earlier answers and is then calibrated on the latest ones."""
        before, settings, sample = _version(self.folder), self.plan.loop_settings(), self._sample()
        earlier = getattr(self, "loop", None)
        self.loop = Loop(self.items.x, self.items.num_classes, settings, self.plan.seed, self.experts, sample)
        labels = {self.rows[item]: label for item, label in self.start.known.items() if item in self.rows}
        known = {row: k for row, k in labels.items() if k != NO_CLASS and not self.loop.state.held[row]}
        if known:
            self.loop.know(np.array(list(known), np.int64), np.array(list(known.values()), np.int64))
        self._record_sampled(sample, labels)
        self.answers = 0
        cut = self._latest(given, sample)
        looks = LOOK_BACK if len(sample) and earlier is None else ()
        done = 0
        for stop in (*(int(share * cut) for share in looks), cut):
            self._record(given[done:stop], held_out=False)
            if given:
                self.loop.retrain()
            done = stop
        if given[cut:]:
            self._record(given[cut:])
            self.loop.retrain()
        if earlier is not None:
            self.loop.audit.remember(earlier.audit)
        self.loop.version = max(self.loop.version, before + 1)

    def _latest(self, given: list[Given], sample: NDArray[np.int64]) -> int:
        """Where the answers begin that the loop is calibrated on; those about the sample calibrate nothing."""
        scored = set(sample.tolist())
        places = [at for at, one in enumerate(given) if self._learned(one) and self.rows[one.item_id] not in scored]
        least = min(self.plan.loop_settings().calibrate_least, len(places) // 2)
        count = max(min(len(places) // HELD_OUT, MOST_HELD_OUT), least)
        return places[-count] if count else len(given)

    def _learned(self, one: Given) -> bool:
        """Nothing is to be learned from answers about items of known class."""
        return one.truth is None and one.item_id not in self.start.known

    def _sample(self) -> NDArray[np.int64]:
        """The rows of the items that are not learned from; of those whose class is known there is nothing to ask.

        One that a reviewer has corrected stays where it is: else the sample would lose the items that are hard. In a
        project so small that its sample could never say anything, all items are learned from.
        """
        if not self.plan.score or self.plan.test is not None:
            return np.empty(0, np.int64)
        known, corrected = self.start.known, self.start.corrected
        left_out = {item for item, label in known.items() if label == NO_CLASS or item not in corrected}
        asked = [item for item in self.items.ids if item not in left_out]
        drawn = Loop.draw_sample(asked, self.plan.seed)
        return np.array([self.rows[asked[place]] for place in drawn] if len(drawn) >= FEW else [], np.int64)

    def _record_sampled(self, sample: NDArray[np.int64], labels: Mapping[int, int]) -> None:
        """What reviewers said about the sample, as if somebody had typed it: it is scored by, not learned from."""
        said = [Given(self.items.ids[row], (), NONE, None, labels[row]) for row in sample.tolist() if row in labels]
        for part in rounds(said, self.rows, self.items.num_classes):
            self.loop.record(*part, held_out=False)

    def _record(self, given: list[Given], held_out: bool = True) -> None:
        self.answers += len(given)
        asked = [one for one in given if self._learned(one)]
        self.loop.record_gold(*gold_log(given, self.items.num_classes))
        for part in rounds(asked, self.rows, self.items.num_classes):
            self.loop.record(*part, held_out=held_out)

    # -- what others see ---------------------------------------------------------------------------------------------

    def _publish(self, begun: float) -> None:
        Snapshot.publish(self.loop, self.folder, self.features)
        state = self.loop.state
        line = {
            "version": self.loop.version,
            "answers": self.answers,
            "questions": state.questions,
            "reads": state.reads,
            "accuracy": self._accuracy(),
            "scored_on": self.items.scored_on,
            "resolved": 1 - len(self.loop.open_items()) / state.num_items,
            "temperature": self.loop.pool.temperature,
            "begun": begun,
            "ended": time.time(),
            "worked": self.took,
        }
        score = self.loop.score()
        line["score"] = None if score is None or score.items < FEW else score.accuracy
        with (self.folder / HISTORY).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        asked = int(np.count_nonzero(state.asked[self.loop.audit.rows]))
        more = {"asked": asked, "answers": self.answers, "questions_for_a_point": self.loop.questions_for(1)}
        write_score(self.folder, None if score is None else {**asdict(score), **more})

    def _doubt(self, idle: bool) -> bool:
        """Say which answers are hard to believe; False if it is not the time.

        That takes about as long as two trainings, so while answers come it is done when there are a fifth more.
        """
        if self.answers == self.doubted or (not idle and abs(self.answers - self.doubted) < self.doubted / 5):
            return False
        if idle and time.monotonic() - self.trained_at < max(WAIT_SECONDS, self.took):
            return False
        found = self.loop.doubts()
        ids = [self.items.ids[row] for row in found.rows[:MOST]]
        columns = (column.tolist() for column in (found.said, found.believed, found.chance))
        write_doubts(self.folder, zip(ids, *columns, strict=False))
        self.doubted = self.answers
        return True

    def _accuracy(self) -> float | None:
        """On items that are never trained on; None if there are none, or before anything was learned."""
        if not len(self.items.y_score) or not len(self.loop.state.informative):
            return None
        return float(np.mean(self.loop.model.predict(self.items.x_score) == self.items.y_score))


def _version(folder: Path) -> int:
    """The version that was published last; -1 if there is none, or a damaged one."""
    try:
        published = Snapshot.current(folder)
    except (InputError, OSError, KeyError, TypeError, ValueError):
        return -1
    return -1 if published is None else published.version


def run(folder: Path, plan: LivePlan) -> None:
    """Train until the process ends."""
    with Project.open(folder) as project:
        trainer = Trainer(project, plan)
        while True:
            if not trainer.step():
                time.sleep(POLL_SECONDS)


def _end_with_input() -> None:
    """The server holds the other end of our input: when it is gone, for whatever reason, so are we."""
    while sys.stdin.buffer.read(1 << 16):
        pass
    os._exit(0)


def end_with_parent() -> None:
    """The same at once, even in the middle of a long computation that lets no other thread run; Linux only."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Run as the trainer's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group: the server decides
    end_with_parent()
    threading.Thread(target=_end_with_input, daemon=True).start()
    folder, content = sys.argv[1:]
    try:
        plan = LivePlan.parse(json.loads(content))
        os.nice(NICENESS)
        run(Path(folder), plan)
    except InputError as error:
        print(f"trainer: {error}", file=sys.stderr, flush=True)
        os._exit(2)  # not sys.exit: the thread that reads our input holds its lock, on which Python would abort


if __name__ == "__main__":
    main()
