"""What the fleets with their own kernels have in common: runs, buffers, and averaged weights."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from shortlist.training.average import Average

EPS, BN_MOMENTUM = 1e-5, 0.1
"""Of batch norm, as torch has them."""
SLACK = 8192
"""Elements behind a map with a halo: padded rows of a weight matrix read past the last window."""


class KernelFleet(ABC):
    """R networks whose tensors have a leading dimension of runs."""

    by_run: ClassVar[tuple[str, ...]]
    """The names of these tensors, the running statistics apart."""
    rounded: ClassVar[dict[str, str]]
    """Of these, the names of the parameters and of their rounded copies."""
    R: int
    device: torch.device
    dtype: torch.dtype
    running: dict[str, Tensor]
    buffers: dict[Any, Tensor]
    average: Average
    """What is scored and saved."""
    teacher: Average
    """What teaches, with decays of its own."""

    @abstractmethod
    def _choose_kernels(self) -> None:
        """Choose the kernels; they get buffers of this object's own."""

    @abstractmethod
    def forward(
        self,
        index: Tensor,
        active: Tensor,
        *,
        train: bool,
        inputs: Any = None,
        moves: Tensor | None = None,
        own: Tensor | None = None,
    ) -> Tensor:
        """Logits (R, B, K) in float32 of the images at `index` (R, B); a leaf for the objective."""

    def _follow(self, ema: Tensor | None, teacher: Tensor | None) -> None:
        """Start the averages with these decays (R,)."""
        none = torch.zeros(self.R)
        self.average = Average(none if ema is None else ema, self.weights())
        self.teacher = Average(none if teacher is None else teacher, self.weights())

    def weights(self) -> list[Tensor]:
        """Parameters and running statistics, (R, ...) each."""
        return [*(getattr(self, name) for name in self.rounded), *self.running.values()]

    def _move_averages(self, moving: Tensor) -> None:
        for average in (self.average, self.teacher):
            average.step(self.weights(), moving)

    def _averages(self) -> list[Tensor]:
        """Everything of the averages that a step changes."""
        return [*self.average.state().values(), *self.teacher.state().values()]

    def _copy(self) -> None:
        """Bring the rounded copies of the parameters up to date."""
        for name, copied in self.rounded.items():
            getattr(self, copied).copy_(getattr(self, name))

    def keep(self, runs: Tensor) -> None:
        """Keep only these runs, and free the memory of the others."""
        self._only(runs)
        self.average.keep(runs)
        self.teacher.keep(runs)

    def some(self, runs: slice) -> Self:
        """These runs alone, in the same memory, for forward passes."""
        part = copy.copy(self)
        part._only(runs)
        return part

    def teachers(self, runs: slice) -> Callable[[Tensor, Tensor | None], Tensor]:
        """The teachers of these runs: items (R, B) and moves -> logits (R, B, K), by running statistics."""
        part = self.some(runs)
        values = (value[runs] for value in self.teacher.values)
        for name, copied in self.rounded.items():
            setattr(part, name, next(values))
            setattr(part, copied, torch.empty_like(getattr(part, copied)))
        part.running = dict(zip(part.running, values, strict=True))
        still = torch.zeros(part.R, device=next(iter(part.running.values())).device)

        def teach(items: Tensor, moves: Tensor | None) -> Tensor:
            part._copy()
            return part.forward(items, still, train=False, moves=moves).detach()

        return teach

    def _only(self, runs: Tensor | slice) -> None:
        for name in self.by_run:
            setattr(self, name, getattr(self, name)[runs].contiguous())  # of a slice: the same memory
        self.running = {name: tensor[runs].contiguous() for name, tensor in self.running.items()}
        self.R = len(getattr(self, self.by_run[0]))
        self.buffers = {}
        self._choose_kernels()

    def _buffer(self, name: str, *shape: int, dtype: torch.dtype | None = None, fill: float | None = None) -> Tensor:
        """A buffer kept between steps; one that starts with `fill`, which halos keep, has slack behind it."""
        key = (name, shape)
        if key not in self.buffers:
            size = torch.Size(shape).numel()
            whole = torch.empty(size if fill is None else size + SLACK, dtype=dtype or self.dtype, device=self.device)
            self.buffers[key] = (whole if fill is None else whole.fill_(fill))[:size].view(shape)
        return self.buffers[key]

    def _zeros(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        return self._buffer(name, *shape, dtype=dtype, fill=0.0)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside, the networks hold the averaged weights."""
        with self.average.shown_in(self.weights()):
            self._copy()
            yield
        self._copy()
