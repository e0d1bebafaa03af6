"""Other ways to label: typing the class, active learning with full lists, and conformal sets.

All train the same linear model and are scored like the loop. None of them knows names, labels or scores at the start.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.policies.activeml import next_items
from shortlist.policies.beliefs import Matrix
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.loop import Loop
from shortlist.policies.noise import IntArray
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.simulate import Curve, Point, Tick, point_of, work
from shortlist.policies.threads import few_threads
from shortlist.policies.time_model import MATCHES, TimeModel

TYPE_AHEAD, ACTIVE, CONFORMAL = "type-ahead box", "active learning, full lists", "conformal sets"
LEVELS = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02)
"""The error rates of which conformal sets take the one that is cheapest on the calibration items."""
LEAST_CALIBRATION = 20
"""With fewer calibration items the threshold stays as it is."""


def type_ahead(full: Curve, time: TimeModel) -> Curve:
    """Full labels by typing: no list is shown; people type a few letters and look at the names that match.

    The time is `TimeModel.typed` of an empty list: 4.5 s, which is 1 s + 3 names of 0.25 s + 2.75 s to recall the name
    and strike five keys. The reads are the matches. The models are those of full lists.
    """
    each = float(time.typed([0])[0])
    points = [replace(p, reads=MATCHES * p.questions, seconds=each * p.questions) for p in full.points]
    return Curve(TYPE_AHEAD, full.seed, tuple(points))


def active_learning(
    data: LoopData, settings: LoopSettings, *, seed: int, budget: int | None = None, tick: Tick | None = None
) -> Curve:
    """Full lists in a fixed order, for the items of the smallest margin (scikit-activeml's uncertainty sampling)."""
    from skactiveml.pool import UncertaintySampling

    strategy = UncertaintySampling(method="margin_sampling", random_state=seed)

    def lists(loop: Loop, rows: IntArray) -> list[IntArray]:
        return [np.tile(np.arange(data.num_classes), (len(rows), 1))]

    def choose(loop: Loop, count: int) -> IntArray:
        return next_items(loop, strategy, count)

    return _play(ACTIVE, data, settings, seed, budget, tick, choose, lists, lambda loop, rows: None)


def conformal_sets(
    data: LoopData, settings: LoopSettings, *, seed: int, budget: int | None = None, tick: Tick | None = None
) -> Curve:
    """Lists by split conformal prediction, after Candidate Set Query (Gwon and others, arXiv 2502.06209).

    A list holds every class with p(y) >= t. The threshold t leaves out the right class at a chosen error rate on the
    items answered since the last training, which that model had not seen. The error rate, out of `LEVELS`, is the one
    that would have been cheapest on these items. After None all other classes are shown. The items whose likeliest
    class is least likely are asked about first.
    """
    threshold = [0.0]

    def chances(loop: Loop, rows: IntArray) -> Matrix:
        return loop.model.probabilities(loop.x[rows])

    def calibrate(loop: Loop, rows: IntArray) -> None:
        if loop.version and len(rows) >= LEAST_CALIBRATION:
            threshold[0] = cheapest_threshold(chances(loop, rows), data.y[rows], settings.time)

    def lists(loop: Loop, rows: IntArray) -> list[IntArray]:
        p = chances(loop, rows)
        order, K = np.argsort(-p, axis=1, kind="stable"), data.num_classes
        sizes = np.maximum((p >= threshold[0]).sum(axis=1), 1)[:, None]
        places = np.arange(K)
        rest = np.sort(np.where(places >= sizes, order, K), axis=1)
        return [np.where(places < sizes, order, K), rest]

    def choose(loop: Loop, count: int) -> IntArray:
        rows = loop.open_items()
        hardest: IntArray = rows[np.argsort(chances(loop, rows).max(axis=1), kind="stable")[:count]]
        return hardest

    return _play(CONFORMAL, data, settings, seed, budget, tick, choose, lists, calibrate)


def cheapest_threshold(chances: Matrix, y: IntArray, time: TimeModel) -> float:
    """The least probability of a class on a list: the conformal threshold of the cheapest error rate.

    Args:
        chances: (n, K) of a model that has not seen these items.
        y: (n,) their classes.
        time: says what is cheap.
    """
    own = chances[np.arange(len(y)), y]
    rank, costs = (chances > own[:, None]).sum(axis=1) + 1, {}
    for level in LEVELS:
        place = int(np.floor(level * (len(y) + 1))) - 1  # a new item's own chance is below it at that rate at most
        if place < 0:
            continue
        least = float(np.sort(own)[place])
        sizes = np.maximum((chances >= least).sum(axis=1), 1)
        found = time.seconds(rank)
        missed = time.seconds(sizes) + time.seconds((chances.shape[1] - sizes) / 2)
        costs[float(np.where(own >= least, found, missed).mean())] = least
    return costs[min(costs)] if costs else 0.0


def _play(
    way: str,
    data: LoopData,
    settings: LoopSettings,
    seed: int,
    budget: int | None,
    tick: Tick | None,
    choose: Callable[[Loop, int], IntArray],
    lists: Callable[[Loop, IntArray], list[IntArray]],
    before_training: Callable[[Loop, IntArray], None],
) -> Curve:
    """Rounds of items, each resolved at once by one list after another; the items of the first round are random."""
    settings = replace(settings, representatives=0, calibrate=False, explore=False)
    loop, points = Loop(data.x, data.num_classes, settings, seed), list[Point]()
    with few_threads(work(data)):
        while True:
            left = np.inf if budget is None else (budget - loop.state.reads) // data.num_classes
            count = int(min(loop.batch_size(), left))
            if not count:
                break
            rows = choose(loop, count) if loop.version else loop.rng.permutation(len(data.y))[:count]
            if not len(rows):
                break
            before_training(loop, rows)
            for part in lists(loop, rows):
                _answer(loop, data, rows, part.astype(np.int32))
            loop.retrain()
            points.append(point_of(loop, data, 0, 0.0))
            if tick is not None:
                tick(points[-1])
    if not points:
        raise InputError(f"budget: {budget} reads are not enough for one full list")
    return Curve(way, seed, tuple(points))


def _answer(loop: Loop, data: LoopData, rows: IntArray, shown: NDArray[np.int32]) -> None:
    """People who make no mistakes answer a list about each of these items that is still open."""
    left = ~loop.state.certain[rows]
    rows, shown = rows[left], shown[left]
    sizes = (shown < data.num_classes).sum(axis=1)
    hit = (shown == data.y[rows, None]).any(axis=1)
    loop.state.record(rows, shown, sizes, np.where(hit, data.y[rows], NONE))
