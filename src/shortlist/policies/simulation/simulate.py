"""The loop on labelled data with simulated answers: accuracy against reads and seconds, and its references."""

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
"""The name of the way to label that all others are compared with."""
GOLD_EVERY, GOLD_SIZE = 40, 4
"""One question in 40 is about a gold item, until all wanted are asked; its list has 4 names. One in ten cost more reads
than the better rates were worth (held-out training data of BANKING77)."""


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
    """Share of the items whose most likely class, by model and answers, is the true one."""
    hits: int = 0
    """The number of questions so far that were answered with a class, picked or typed."""


Tick = Callable[[Point], None]
"""Called after every training with the point that the loop has reached."""


@dataclass(frozen=True)
class Start:
    """What is known before the first question."""

    experts: tuple[Expert, ...] = ()
    known: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """The rows of the items whose class is known, and their classes."""


@dataclass(frozen=True)
class Curve:
    """One run of one way to label: a point after each training."""

    way: str
    seed: int
    points: tuple[Point, ...]
    scores: tuple[Score | None, ...] = ()
    """The score by the sample at each point, if there was a sample."""
    a_point: tuple[float | None, ...] = ()
    """At each point, about how many more questions would raise that score by one percentage point."""

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
    """Run the loop until nothing is worth asking or the budget of reads is spent.

    Args:
        data: features and true classes.
        settings: the settings of the loop; the mistakes that it models need not be those that annotators make.
        way: the name of the curve.
        seed: of the loop and of the annotators.
        budget: the most reads.
        mistakes: the mistakes of the simulated annotators.
        gold: the number of gold questions, asked in between to measure the mistakes. They cost what others cost and are
            used if the settings say `learn_mistakes`.
        start: what is known before the first question.
        typed: the share of the None answers after which people type the class.
        tick: called after every training.
        score: the number of items that are asked about but not learned from, to score the model on.
        pinned: a class that is on every list of an item until it is refused there.
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
    """The error for a loop without a single question."""
    if not len(loop.next_items(1)):
        return InputError(f"{data.name}: nothing to ask, the class of every item is known from the start")
    return InputError(f"budget: {budget} reads are not enough for one question")


def _ask(loop: Loop, pinned: int | None) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """The next items and their lists. A pinned class comes last; the others are chosen as if it did not exist.

    The app does the same (`annotate.queue.pinned`).
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
    """The rows of `count` items to score on, drawn from those whose class is not known at the start."""
    rows = np.arange(len(data.y)) if start.known is None else np.setdiff1d(np.arange(len(data.y)), start.known[0])
    if count > len(rows) // 2:
        raise InputError(f"score: expected at most {len(rows) // 2} of {len(rows)} items to ask about, got {count}")
    drawn: NDArray[np.int64] = rows[Loop.draw_sample(rows.tolist(), seed, count)]
    return drawn


@dataclass
class _Gold:
    """The gold questions of a run: how many are wanted, and what those asked so far have cost."""

    wanted: int
    asked: int = 0
    reads: int = 0
    seconds: float = 0.0

    def ask(self, loop: Loop, data: LoopData, makes: Mistakes, most: float, rng: np.random.Generator) -> None:
        """Ask the gold questions that are due, unless the run would then take more than `most` reads."""
        due = min(self.wanted, loop.state.questions // GOLD_EVERY) - self.asked
        if due <= 0 or self.reads + loop.state.reads + due * GOLD_SIZE > most:
            return
        log = ask_gold(data, makes, due, rng)
        loop.record_gold(log, data.y[log.items])
        self.asked += due
        self.reads += int(log.sizes.sum())
        self.seconds += float(loop.settings.time.seconds(looked_at(log.lists, log.sizes, log.answer)).sum())


def ask_gold(data: LoopData, makes: Mistakes, count: int, rng: np.random.Generator) -> Log:
    """Simulated answers on `count` gold items; half of the lists hold the right class and half do not."""
    rows = rng.integers(0, len(data.y), count)
    truth = data.y[rows]
    size = min(GOLD_SIZE, data.num_classes - 1)
    keys = rng.random((count, data.num_classes))
    keys[np.arange(count), truth] = np.where(rng.permutation(count) % 2 == 0, -1.0, 2.0)
    lists = np.argsort(keys, axis=1)[:, :size].astype(np.int32)
    sizes = np.full(count, size, np.int64)
    return Log(rows, lists, sizes, simulate_answers(rng, lists, sizes, truth, data.num_classes, makes))


def random_shortlists(settings: LoopSettings, size: int, *, again: bool) -> LoopSettings:
    """The paper's mechanism in the same loop: random items, uniform lists, asked once or `again` after None."""
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
    """The reference: ordinary labels of growing shares of the items, in random order, and the same linear model.

    A full list is shown in a fixed order, and people look at it from the top down to the right class.
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
    """The loop's linear model, trained on the true classes of some items."""
    return fit(
        data.x[rows], Answers.known(data.y[rows], data.num_classes), l2=settings.l2 / len(rows), max_iterations=300
    )


def point_of(loop: Loop, data: LoopData, reads: int, seconds: float) -> Point:
    """Where the loop stands; `reads` and `seconds` were spent outside it, on gold questions."""
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
    """The number of multiplications in the logits of all items: N x D x K."""
    return len(data.y) * int(data.x.shape[1]) * data.num_classes


def _accuracy(model: Linear, data: LoopData) -> float:
    return float((model.predict(data.x_test) == data.y_test).mean())
