"""The loop on labelled data, its answers simulated: accuracy against reads and seconds, beside its rivals."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.policies.answers import Answers
from shortlist.policies.choose import Policy, choose
from shortlist.policies.experts import Expert
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.linear import Linear, fit
from shortlist.policies.loop import Loop
from shortlist.policies.noise import Log, Mistakes, simulate_answers, simulate_typing
from shortlist.policies.score.audit import Score
from shortlist.policies.settings import LoopSettings
from shortlist.policies.threads import few_threads
from shortlist.policies.time_model import looked_at

FULL = "full labels"
"""The name of the way that is the reference."""
GOLD_EVERY, GOLD_SIZE = 40, 4
"""One question in 40 is about an item of known class, as long as there are any of these; and the names on its list.
One in ten cost more reads than better rates were worth (held-out training data of BANKING77)."""


@dataclass(frozen=True)
class Point:
    """Where a loop stood after one training."""

    questions: int
    reads: int
    seconds: float
    accuracy: float
    resolved: float
    """Share of the items whose class is settled."""
    correct: float
    """Share of the items whose most likely class (model and answers) is the true one."""
    hits: int = 0
    """Questions so far that were answered with a class, picked or typed."""


Tick = Callable[[Point], None]
"""Told after every training where the loop stands."""


@dataclass(frozen=True)
class Start:
    """What is known before the first question."""

    experts: tuple[Expert, ...] = ()
    known: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Items whose class is known, and their classes."""


@dataclass(frozen=True)
class Curve:
    """One run of one way to label."""

    way: str
    seed: int
    points: tuple[Point, ...]
    scores: tuple[Score | None, ...] = ()
    """What the sample said at each point, if there was one."""
    a_point: tuple[float | None, ...] = ()
    """About how many more questions it would take to raise the accuracy by a point, by the sample, at each point."""

    def column(self, name: str) -> NDArray[np.float64]:
        """One field of every point."""
        return np.array([getattr(point, name) for point in self.points], np.float64)

    def rows(self) -> list[dict[str, Any]]:
        """One flat record per point."""
        records = [{"way": self.way, "seed": self.seed, **asdict(point)} for point in self.points]
        for record, score in zip(records, self.scores, strict=False):
            if score is not None:
                record |= {f"score_{name}": getattr(score, name) for name in ("accuracy", "low", "high", "undecided")}
        return records


def run_loop(
    data: LoopData,
    settings: LoopSettings,
    *,
    way: str,
    seed: int,
    budget: int | None = None,
    mistakes: Mistakes | None = None,
    gold: int = 0,
    start: Start | None = None,
    typed: float = 0.0,
    tick: Tick | None = None,
    score: int = 0,
    pinned: int | None = None,
) -> Curve:
    """Drive the loop until nothing is worth asking or the budget of reads is spent.

    Args:
        data: features and true classes.
        settings: of the loop; what it models need not be what annotators do.
        way: the name of the curve.
        seed: of the loop and of the annotators.
        budget: reads at most.
        mistakes: of the simulated annotators.
        gold: the number of questions on items of known class, asked in between to measure the mistakes; they cost what
            others cost. They are used where the settings say `learn_mistakes`.
        start: what is known before the first question.
        typed: of the lists without the right class, the share after which people type it.
        tick: told after every training.
        score: so many items are asked about and not learned from: they score the model.
        pinned: a class that is on every list, until it was refused.
    """
    most, makes, begun = np.inf if budget is None else budget, mistakes or Mistakes(), start or Start()
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    measured = _Gold(gold)
    points, scores, a_point = list[Point](), list[Score | None](), list[float | None]()
    with few_threads(work(data)):
        loop = Loop(data.x, data.num_classes, settings, seed, begun.experts, draw_sample(data, begun, score, seed))
        if begun.known is not None:
            loop.know(*begun.known)
        while True:
            rows, lists, sizes = _ask(loop, pinned)
            keep = np.cumsum(sizes) <= most - measured.reads - loop.state.reads
            rows, lists, sizes = rows[keep], lists[keep], sizes[keep]
            if not len(rows):
                break
            answer = simulate_answers(rng, lists, sizes, data.y[rows], data.num_classes, makes)
            wrote = simulate_typing(rng, answer, data.y[rows], data.num_classes, typed, makes) if typed else None
            loop.record(rows, lists, sizes, answer, wrote)
            measured.ask(loop, data, makes, most, rng)
            loop.retrain()
            points.append(point_of(loop, data, measured.reads, measured.seconds))
            if score:
                scores.append(loop.score())
                a_point.append(loop.questions_for(1))
            if tick is not None:
                tick(points[-1])
    if not points:
        raise _nothing_asked(loop, data, budget)
    return Curve(way, seed, tuple(points), tuple(scores), tuple(a_point))


def _nothing_asked(loop: Loop, data: LoopData, budget: int | None) -> InputError:
    """Why not one question was."""
    if not len(loop.next_items(1)):
        return InputError(f"{data.name}: nothing to ask, the class of every item is known from the start")
    return InputError(f"budget: {budget} reads are not enough for one question")


def _ask(loop: Loop, pinned: int | None) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """The next items and their lists; the pinned class is the last, and the others are chosen as if it did not exist.

    As in the app (`annotate.queue.pinned`).
    """
    if pinned is None:
        rows, chosen = loop.ask()
        return rows, chosen.lists, chosen.sizes
    rows = loop.next_items(loop.batch_size())
    candidates = loop.state.candidates(rows)
    asked = candidates[:, pinned].copy()
    candidates[:, pinned] = False
    chosen = choose(loop.settings.policy, loop.beliefs(rows), candidates, loop.rng)
    lists = np.pad(chosen.lists, ((0, 0), (0, 1)), constant_values=candidates.shape[1])
    lists[asked, chosen.sizes[asked]] = pinned
    return rows, lists, chosen.sizes + asked


def draw_sample(data: LoopData, start: Start, count: int, seed: int) -> NDArray[np.int64]:
    """Items to score on, drawn from those whose class is not known."""
    rows = np.arange(len(data.y)) if start.known is None else np.setdiff1d(np.arange(len(data.y)), start.known[0])
    if count > len(rows) // 2:
        raise InputError(f"score: expected at most {len(rows) // 2} of {len(rows)} items to ask about, got {count}")
    drawn: NDArray[np.int64] = rows[Loop.draw_sample(rows.tolist(), seed, count)]
    return drawn


@dataclass
class _Gold:
    """Questions on items of known class that are asked in between, and what they have cost."""

    wanted: int
    asked: int = 0
    reads: int = 0
    seconds: float = 0.0

    def ask(self, loop: Loop, data: LoopData, makes: Mistakes, most: float, rng: np.random.Generator) -> None:
        """Ask those that are due, unless that would take more than `most` reads in all."""
        due = min(self.wanted, loop.state.questions // GOLD_EVERY) - self.asked
        if due <= 0 or self.reads + loop.state.reads + due * GOLD_SIZE > most:
            return
        log = ask_gold(data, makes, due, rng)
        loop.record_gold(log, data.y[log.items])
        self.asked += due
        self.reads += int(log.sizes.sum())
        self.seconds += float(loop.settings.time.seconds(looked_at(log.lists, log.sizes, log.answer)).sum())


def ask_gold(data: LoopData, makes: Mistakes, count: int, rng: np.random.Generator) -> Log:
    """Answers on items of known class, half of the lists with the right class and half without it."""
    rows = rng.integers(0, len(data.y), count)
    truth = data.y[rows]
    size = min(GOLD_SIZE, data.num_classes - 1)
    keys = rng.random((count, data.num_classes))
    keys[np.arange(count), truth] = np.where(rng.permutation(count) % 2 == 0, -1.0, 2.0)
    lists = np.argsort(keys, axis=1)[:, :size].astype(np.int32)
    sizes = np.full(count, size, np.int64)
    return Log(rows, lists, sizes, simulate_answers(rng, lists, sizes, truth, data.num_classes, makes))


def random_shortlists(settings: LoopSettings, size: int, *, again: bool) -> LoopSettings:
    """The paper's mechanism in the same loop: random items, uniform shortlists, one question each or again on None."""
    return replace(
        settings,
        policy=Policy("uniform", size=size),
        order="random",
        representatives=0,
        most_questions=1000 if again else 1,
    )


def full_labels(
    data: LoopData, settings: LoopSettings, *, seed: int, shares: tuple[float, ...] = (), tick: Tick | None = None
) -> Curve:
    """Ordinary labels on growing shares of the items, in random order: the reference, the same model at its best.

    A full list is shown in a fixed order and looked through down to the right class.
    """
    order = np.random.Generator(np.random.PCG64([seed, 2])).permutation(len(data.y))
    points = []
    with few_threads(work(data)):
        for share in shares or (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0):
            rows = order[: max(1, round(share * len(order)))]
            accuracy = _accuracy(train_full(data, settings, rows), data)
            looked = float(settings.time.seconds(data.y[rows] + 1).sum())
            reads = len(rows) * data.num_classes
            points.append(Point(len(rows), reads, looked, accuracy, share, float("nan")))
            if tick is not None:
                tick(points[-1])
    return Curve(FULL, seed, tuple(points))


def train_full(data: LoopData, settings: LoopSettings, rows: NDArray[np.int64]) -> Linear:
    """The inner model on the true classes of some items."""
    return fit(
        data.x[rows], Answers.known(data.y[rows], data.num_classes), l2=settings.l2 / len(rows), max_iterations=300
    )


def point_of(loop: Loop, data: LoopData, reads: int, seconds: float) -> Point:
    """Where the loop stands; `reads` and `seconds` were spent beside it."""
    state, log = loop.state, loop.state.log()
    settled, correct = loop.standing(data.y)
    return Point(
        state.questions,
        reads + state.reads,
        seconds + state.seconds,
        _accuracy(loop.model, data),
        settled,
        correct,
        int(((log.answer != NONE) | (log.all_typed != NONE)).sum()),
    )


def work(data: LoopData) -> int:
    """Multiplications in the logits of all items."""
    return len(data.y) * int(data.x.shape[1]) * data.num_classes


def _accuracy(model: Linear, data: LoopData) -> float:
    return float((model.predict(data.x_test) == data.y_test).mean())
