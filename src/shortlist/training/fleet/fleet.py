"""Many runs at once on one device.

Runs of one model and one number of classes share the data on the device and advance together, step by step. These may
differ from run to run: the classes, method, shortlists, protocol, learning rate, weight decay, schedule, augmentation,
epochs and seed. The results are those of the single loop up to floating-point noise. The paper's LeNet and ResNet-32
have kernels of their own (`lenet`, `resnet`); any other module goes through `modules`.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.errors import InputError
from shortlist.methods import Batch, Method
from shortlist.training.config import RunConfig
from shortlist.training.cuda_graph import captured
from shortlist.training.draws import Draws
from shortlist.training.fleet.class_sets import Sets
from shortlist.training.fleet.draws import draw_all
from shortlist.training.fleet.feeds import Feeds, side_by_side
from shortlist.training.fleet.network import FleetNet, SecondPass, TeacherPass
from shortlist.training.fleet.objectives import compiled_slopes, groups_of, risks_and_slopes
from shortlist.training.fleet.scoring import HeldOut, accuracies, calibration_errors
from shortlist.training.history import EpochScores, saved_epoch, score_due
from shortlist.training.schedules import learning_rates
from shortlist.training.task import Task
from shortlist.training.views import confidence_of, two_views


@dataclass
class FleetResult:
    """The result of one run of a fleet."""

    config: RunConfig
    history: list[EpochScores] = field(default_factory=list)
    state: dict[str, Tensor] | None = None
    """The trained model's state dict; None if the run broke."""
    failed: str | None = None
    """Why the run ended before its last epoch."""
    calibration_error: float | None = None
    """Of that model on the test items; None if there are none, or if the run broke."""

    @property
    def saved(self) -> EpochScores:
        """The epoch whose weights `state` has."""
        return saved_epoch(self.history, self.config.keep)


class Fleet:
    """The state of many runs, and the steps that change it.

    Args:
        tasks: one per run, all with the same batch size and number of classes.
        net: the networks.
        test: the test inputs of all sets of classes as `net` takes them, and their classes.
        sets: where the items of each run lie among all of these.
        cuda_graph: capture the step as a CUDA graph.
        compile: compile the objectives: a few kernels instead of dozens of tiny ones.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        net: FleetNet,
        test: tuple[Any, Tensor] | None,
        *,
        sets: Sets,
        cuda_graph: bool = False,
        compile: bool = False,
    ) -> None:
        self.net, self.test, self.sets, self.cuda_graph = net, test, sets, cuda_graph
        self._slopes = compiled_slopes() if compile else risks_and_slopes
        self.device = net.device
        self.results = [FleetResult(task.config) for task in tasks]
        self.epoch = 0
        self.best = [w.clone() for w in net.weights()] if any(task.config.keep == "best" for task in tasks) else []
        """The weights of the best epochs so far, for the runs with `keep="best"`."""
        self._take(list(tasks), list(range(len(tasks))))

    def _take(self, tasks: list[Task], places: list[int]) -> None:
        """Set up the tensors for these runs; `places` are those of their results."""
        self.tasks, self.places = tasks, places
        sizes = {task.batch_size for task in tasks}
        if len(sizes) > 1:
            raise InputError(f"a fleet needs one batch size, got {sorted(sizes)}")
        self.batch_size = sizes.pop()
        device, steps = self.device, [len(task.feed) // self.batch_size for task in tasks]
        self.steps, self.most = torch.tensor(steps, device=device), max(steps)
        self.total_steps = torch.tensor([task.config.epochs for task in tasks], device=device) * self.steps
        longest = max(task.config.epochs for task in tasks) * self.most
        rates = (learning_rates(task.config, own) for task, own in zip(tasks, steps, strict=True))
        self.rates = side_by_side(rates, len(tasks), longest, torch.tensor(0.0, device=device))
        self.feeds = Feeds(tasks, self.sets, device)
        self.held = HeldOut(tasks, self.sets, device)
        self.groups = groups_of([task.method for task in tasks])
        again = [run for run, task in enumerate(tasks) if task.method.refresh == "after"]
        self.again = SecondPass(self.net, again, device) if again else None
        taught = [run for run, task in enumerate(tasks) if task.method.teacher]
        self.teacher = TeacherPass(self.net, taught) if taught else None
        self.drawn: Draws | None = None
        self.span = torch.arange(self.batch_size, device=device)
        self.run_number = torch.arange(len(tasks), device=device).unsqueeze(1)
        self.step_number = torch.zeros((), dtype=torch.int64, device=device)  # in this epoch
        self.epoch_number = torch.zeros((), dtype=torch.int64, device=device)
        self.risk = torch.zeros(len(tasks), device=device)
        self._replay: Callable[[], None] | None = None

    # -- an epoch -----------------------------------------------------------------------------------------------------

    def train(self, score_every: int = 1, on_epoch: Callable[[int, int], None] | None = None) -> list[FleetResult]:
        """Train every run to its last epoch."""
        with ThreadPoolExecutor(1) as ahead:
            drawn = ahead.submit(self._draw, self.epoch)
            while self.tasks:
                began = time.perf_counter()
                self._load(drawn.result())
                drawn = ahead.submit(self._draw, self.epoch + 1)
                self._train_epoch()
                self.epoch += 1
                self._score(score_every, began)
                if on_epoch:
                    on_epoch(self.epoch, len(self.tasks))
                drawn.result()  # for the runs that `_release` may free
                if self._release():
                    drawn = ahead.submit(self._draw, self.epoch)
        return self.results

    def _draw(self, epoch: int) -> Draws:
        return draw_all(self.tasks, epoch, self.batch_size)

    def _load(self, drawn: Draws) -> None:
        if self.drawn is None:
            self.drawn = drawn.to(self.device)
        else:
            self.drawn.copy_(drawn)  # in place: a captured step reads it there

    def _train_epoch(self) -> None:
        self.epoch_number.fill_(self.epoch)
        self.step_number.zero_()
        self.risk.zero_()
        step = self._captured() if self.cuda_graph else self._step
        for _ in range(self.most):
            step()

    def _step(self) -> None:
        """One update of every run. It finds its batches and rates by counters on the device, so it can be replayed."""
        drawn = self.drawn
        assert drawn is not None
        index = drawn.order[:, self.step_number * self.batch_size + self.span]
        items = self.feeds.rows.gather(1, index)
        moves, teacher_moves, changes = (
            None if of is None else of[self.run_number, index]
            for of in (drawn.moves, drawn.teacher_moves, drawn.changes)
        )
        own = None if drawn.shares is None else drawn.shares[:, self.step_number.view(1)].squeeze(1)
        moving = self.step_number < self.steps  # runs with fewer steps per epoch wait for the others
        active = moving.float()
        number = (self.epoch_number * self.steps + self.step_number).clamp(max=self.rates.shape[1] - 1)
        lr = torch.where(moving, self.rates.gather(1, number.unsqueeze(1)).squeeze(1), -1)
        taught = (
            None if self.teacher is None else self.teacher(items, moves if teacher_moves is None else teacher_moves)
        )
        if changes is not None and moves is not None:
            changes = two_views(moves, changes)
            logits = self.net.forward(torch.cat([items, items], 1), active, train=True, moves=changes, own=own)
        else:
            logits = self.net.forward(items, active, train=True, moves=moves)
        seen = logits.detach()
        batches = self._batches(index, taught, number / self.total_steps, own)
        parts = [self._slopes(method, seen[runs], batch) for runs, method, batch in batches]
        risks = torch.cat([risk for risk, _ in parts])
        self.net.backward(torch.cat([slope for _, slope in parts]))
        self.net.update(lr)
        self.risk.add_(torch.where(moving, risks, 0))
        if self.feeds.table is not None:
            again = seen if self.again is None else self.again(seen[:, : self.batch_size], items, active, moves)
            self._renew(index, moving, seen, again, batches)
        self.step_number.add_(1)

    def _batches(
        self, index: Tensor, taught: Tensor | None, progress: Tensor, own: Tensor | None
    ) -> list[tuple[slice, Method, Batch]]:
        """Groups of neighbouring runs with the same method, and what it sees of their items."""
        return [
            (
                runs,
                method,
                self.feeds.batch(
                    runs,
                    method,
                    index,
                    teacher=None if taught is None or not method.teacher else taught[runs],
                    progress=progress[runs],
                    own=None if own is None else own[runs],
                ),
            )
            for runs, method in self.groups
        ]

    @torch.no_grad()
    def _renew(
        self,
        index: Tensor,
        moving: Tensor,
        logits: Tensor,
        again: Tensor,
        batches: Sequence[tuple[slice, Method, Batch]],
    ) -> None:
        """Renew the confidences of the methods that keep them, from the step's logits or those of a second pass."""
        for runs, method, batch in batches:
            if method.refresh != "never":
                source = again if method.refresh == "after" else logits
                self.feeds.renew(runs, index, confidence_of(method, source[runs], batch), moving)

    def _captured(self) -> Callable[[], None]:
        if self._replay is None:
            tables = [] if self.feeds.table is None else [self.feeds.table]
            self._replay = captured(self._step, [*self.net.state(), self.risk, self.step_number, *tables], self.device)
        return self._replay

    # -- scores -------------------------------------------------------------------------------------------------------

    def _score(self, score_every: int, began: float) -> None:
        configs = [task.config for task in self.tasks]
        due = [c.keep == "best" or score_due(self.epoch, c.epochs, score_every) for c in configs]
        with self.net.averaged():
            right = accuracies(self.net, self.tasks, self.sets, *self.test) if any(due) and self.test else None
            some_held = any(task.held is not None for task in self.tasks)
            held = self.held.scores(self.net) if any(due) and some_held else [None] * len(due)
            risks = (self.risk / self.steps).tolist()
            seconds = (time.perf_counter() - began) / len(self.tasks)
            for run, scores in enumerate(held):
                known = {} if scores is None or not due[run] else scores.validation
                test = right[run] if right is not None and due[run] else None
                row = EpochScores(self.epoch, risks[run], seconds, test_accuracy=test, **known)
                self.results[self.places[run]].history.append(row)
            self._keep_best()

    def _keep_best(self) -> None:
        """Copy the weights of those runs whose last epoch is their best so far on their held-out items."""
        results = [self.results[place] for place in self.places]
        better = [run for run, r in enumerate(results) if r.config.keep == "best" and r.saved is r.history[-1]]
        if better:
            at = torch.tensor(better, device=self.device)
            for best, weights in zip(self.best, self.net.weights(), strict=True):
                best[at] = weights[at]

    def _release(self) -> bool:
        """Record and free the runs that are finished or broken, and say whether there were any."""
        results = [self.results[place] for place in self.places]
        broken = [run for run, result in enumerate(results) if not np.isfinite(result.history[-1].risk)]
        for run in broken:
            results[run].failed = f"the risk is {results[run].history[-1].risk} after epoch {self.epoch}"
        finished = [
            run for run, result in enumerate(results) if self.epoch >= result.config.epochs and run not in broken
        ]
        self._finish(finished)
        ended = {*broken, *finished}
        left = [run for run in range(len(results)) if run not in ended]
        if not left:
            self.tasks = []
        elif ended:
            self.feeds.hand_back(left)
            at = torch.tensor(left, device=self.device)
            self.net.keep(at)
            self.best = [best[at] for best in self.best]
            self._take([self.tasks[run] for run in left], [self.places[run] for run in left])
        return bool(ended)

    def _finish(self, runs: Sequence[int]) -> None:
        """Record the models of finished runs, and how well calibrated they are."""
        if not runs:
            return
        with self.net.averaged():
            for run in runs:
                if self.tasks[run].config.keep == "best":
                    for best, weights in zip(self.best, self.net.weights(), strict=True):
                        weights[run].copy_(best[run])
                self.results[self.places[run]].state = self.net.state_dict(run)
            if not self.test:
                return
            errors = calibration_errors(self.net, self.tasks, self.sets, *self.test)
            for run in runs:
                result = self.results[self.places[run]]
                if np.isnan(errors[run]):
                    result.state, result.failed = None, f"the outputs are no numbers after epoch {self.epoch}"
                else:
                    result.calibration_error = errors[run]
