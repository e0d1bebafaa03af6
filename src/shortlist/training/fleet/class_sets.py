"""Runs on different classes of a dataset in one fleet: the items of its sets of classes lie one set after another."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from shortlist.data import Split
from shortlist.training.inputs import Normalise
from shortlist.training.task import Task


class Place(NamedTuple):
    """Where the items of a set begin among the joined ones."""

    train: int
    test: int


class Sets:
    """The different datasets of a fleet's tasks; tasks on the same classes share one (`build_tasks`)."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.firsts: list[Task] = []
        """The first task of each set."""
        self._places: dict[int, Place] = {}
        train = test = 0
        for task in tasks:
            if id(task.dataset) not in self._places:
                self._places[id(task.dataset)] = Place(train, test)
                self.firsts.append(task)
                train, test = train + len(task.dataset.train), test + len(task.dataset.test or ())

    def place(self, task: Task) -> Place:
        """Where a task's items begin."""
        return self._places[id(task.dataset)]

    def train_inputs(self) -> Any:
        """All training inputs, as they are in the data."""
        return _join([task.dataset.train.x for task in self.firsts])

    def test_inputs(self) -> Any:
        """All test inputs."""
        return _join([cast(Split, task.dataset.test).x for task in self.firsts])

    def test_y(self) -> Tensor | None:
        """The classes of all test items; None if some set has no such items or their classes are not known."""
        tests = [task.dataset.test for task in self.firsts]
        known = [test.y for test in tests if test is not None and test.y is not None]
        return torch.from_numpy(np.concatenate(known)) if len(known) == len(tests) else None

    def normalised(self, x: Callable[[Task], Any], device: str | torch.device) -> Tensor:
        """Images of all sets, each normalised by the first layer of its tasks."""
        parts = [(first_layer(task).to(device), torch.as_tensor(x(task)).to(device)) for task in self.firsts]
        return torch.cat([layer(images) for layer, images in parts])


def first_layer(task: Task) -> Normalise:
    """The layer of a task's model that normalises."""
    return cast(Normalise, cast(nn.Sequential, task.model)[0])


def _join(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "tocsr"):
        from scipy import sparse

        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
