"""What the fleets on kernels of their own have in common: their runs, their buffers, and which weights they show."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
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
    R: int
    device: torch.device
    dtype: torch.dtype
    running: dict[str, Tensor]
    buffers: dict[Any, Tensor]
    average: Average

    @abstractmethod
    def _choose_kernels(self) -> None:
        """Set up what computes, with buffers of this object's own."""

    @abstractmethod
    def _averaged(self) -> list[Tensor]:
        """What weights are averaged over."""

    @abstractmethod
    def _copy(self) -> None:
        """Bring the rounded copies of the parameters up to date."""

    def keep(self, runs: Tensor) -> None:
        """Go on with these runs only; the memory of the others is freed."""
        self._only(runs)
        self.average.keep(runs)

    def some(self, runs: slice) -> Self:
        """These runs alone, on the same memory, to go forward with."""
        part = copy.copy(self)
        part._only(runs)
        return part

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
        """Inside, the networks are the averaged ones."""
        with self.average.shown_in(self._averaged()):
            self._copy()
            yield
        self._copy()
