"""The simulation that annotate_live.py holds the live run against: the same loop, as many people at once, no server.

People take the time of the time model, each in their own rhythm; what they are asked comes from the publication in
hand, as in the app: its order (`Loop.hand_out`), a list chosen at hand-out, None asked again at once without the
refused classes. The trainer trains when the loop says that enough answers wait (`Loop.batch_size`), and a training
takes `lag` seconds of their time, in which nobody waits for it; then it rests as long as it worked, as in the app.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.labels import NONE
from shortlist.policies.choose import choose_one
from shortlist.policies.experts import Expert
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.loop import Loop
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.simulate import Curve, Point
from shortlist.policies.time_model import TimeModel, looked_at

LAG = 0.1
"""Seconds from the answer that makes a training due to its publication in the server's hand, on digits."""
EMPTY = 0.25


@dataclass
class App:
    """What the server knows: the publication in hand and who holds what."""

    loop: Loop
    front: list[int] = field(default_factory=list)
    refused: dict[int, list[int]] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)

    def publication(self) -> tuple[list[int], NDArray[np.float16], bool]:
        order, start = self.loop.hand_out()
        beliefs = self.loop.beliefs(np.arange(self.loop.state.num_items)).astype(np.float16)
        return order.tolist(), beliefs, start

    def take_in(self, made: tuple[list[int], NDArray[np.float16], bool]) -> None:
        self.front, self.beliefs, self.start = made

    def next(self, seed: int) -> tuple[int, list[int]] | None:
        while self.front:
            row = self.front.pop(0)
            if row not in self.held and row not in self.done:
                beliefs = self.beliefs[row].astype(np.float32)
                shown, _ = choose_one(
                    self.loop.settings.policy, beliefs, np.array(self.refused.get(row, ()), int), seed
                )
                self.held.add(row)
                return row, shown
        return None

    def answer(self, row: int, shown: list[int], answer: int) -> None:
        self.held.discard(row)
        refused = self.refused.setdefault(row, [])
        if answer == NONE:
            refused += shown
        if answer != NONE or len(refused) >= self.loop.state.num_classes - 1:
            self.done.add(row)
        else:
            self.front.insert(0, row)


def think(time: TimeModel, rng: Any, shown: list[int], answer: int) -> float:
    """Seconds of one answer: the time model's, by a factor of 0.5 to 1.5."""
    looked = looked_at(np.array([shown], np.int32), np.array([len(shown)]), np.array([answer]))
    return float(rng.uniform(0.5, 1.5) * time.seconds(looked)[0])


def simulate_crowd(
    data: LoopData,
    settings: LoopSettings,
    seed: int,
    *,
    people: int,
    hold: int = 1,
    lags: Sequence[tuple[float, float]] = ((LAG, LAG),),
    experts: Sequence[Expert] = (),
    questions: int | None = None,
) -> Curve:
    """Until nothing is left to ask, or that many questions.

    `hold`: questions in one hand, once the start is over. `lags`: of one training after another, the seconds until its
    publication is in hand, and those that the trainer worked (it also looks for answers that are hard to believe).
    """
    loop = Loop(data.x, data.num_classes, settings, seed, experts)
    rng = np.random.Generator(np.random.PCG64([seed, 2]))
    app, points, waiting = App(loop), list[Point](), list[tuple[int, list[int], int]]()
    app.take_in(app.publication())
    coming: tuple[float, Any] | None = None
    rested, hits = 0.0, 0
    hands: list[list[tuple[int, list[int], int]]] = [[] for _ in range(people)]
    events = [(float(rng.uniform(0, 1)), who, False) for who in range(people)]
    heapq.heapify(events)
    while events and (questions is None or loop.state.questions < questions):
        now, who, answers = heapq.heappop(events)
        hand = hands[who]
        if coming is not None and coming[0] <= now:  # it came before the answer, whose None is asked again at once
            app.take_in(coming[1])
            coming = None
        if answers:
            row, shown, answer = hand.pop(0)
            app.answer(row, shown, answer)
            waiting.append((row, shown, answer))
        if coming is None and waiting and now >= rested and (len(waiting) >= loop.batch_size() or not app.held):
            lag, worked = lags[min(len(points), len(lags) - 1)]
            hits += sum(answer != NONE for _, _, answer in waiting)
            for row, shown, answer in waiting:
                loop.record(np.array([row]), np.array([shown], np.int32), np.array([len(shown)]), np.array([answer]))
            waiting.clear()
            loop.retrain()
            coming, rested = (now + lag, app.publication()), now + 2 * worked
            accuracy = float((loop.model.predict(data.x_test) == data.y_test).mean())
            resolved = float(loop.state.certain.mean())
            state = loop.state
            points.append(Point(state.questions, state.reads, now, accuracy, resolved, float("nan"), hits))
        while len(hand) < (1 if app.start else hold) and (given := app.next(int(rng.integers(1 << 53)))) is not None:
            row, shown = given
            hand.append((row, shown, int(data.y[row]) if data.y[row] in shown else NONE))
        if hand:
            heapq.heappush(events, (now + think(settings.time, rng, *hand[0][1:]), who, True))
        elif app.held or waiting or coming is not None:
            heapq.heappush(events, (now + EMPTY, who, False))
    return Curve(f"simulated, {people} at once", seed, tuple(points))
