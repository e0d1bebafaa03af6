"""Any model for many runs at once: R modules side by side, on CUDA on several streams.

Parameters, gradients and buffers of all runs are rows of one matrix each, so the optimiser is one set of kernels.
Inside a captured graph the streams become branches that the device runs at the same time.
"""

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Self

import torch
from torch import Tensor, nn

from shortlist.training.augment import move_images
from shortlist.training.average import Average
from shortlist.training.inputs import Inputs
from shortlist.training.optim import Adam, FlatParameters, Momentum, optimiser_of
from shortlist.training.views import MOVES, change_images, mix_strong

STREAMS = 16
"""Branches side by side; more would only cost memory."""


class ModuleFleet:
    """R modules of one shape with their optimiser.

    Args:
        models: R models that take raw inputs.
        inputs: the training inputs, shared.
        optimiser: `sgd` or `adam`.
        weight_decay: (R,).
        momentum: of SGD.
        amp: bf16 autocast.
        compile: compile the forward and backward pass, once for all runs.
        ema: (R,) the decay of averaged weights.
        teacher: (R,) the decay of the averaged weights that teach.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        inputs: Inputs,
        optimiser: str,
        weight_decay: Tensor,
        momentum: float,
        amp: bool,
        compile: bool = False,
        ema: Tensor | None = None,
        teacher: Tensor | None = None,
    ) -> None:
        self.device, self.inputs, self.amp = inputs.device, inputs, amp
        self.settings = (optimiser, momentum)
        self.decay = weight_decay.to(self.device, torch.float32)
        self.models = [model.to(self.device) for model in models]
        self.value, self.grad, self.buffers = _stack(self.models)
        self.optimiser = self._new_optimiser()
        none = torch.zeros(len(models))
        self.average = Average(none if ema is None else ema, [self.value, self.buffers])
        self.teacher = Average(none if teacher is None else teacher, [self.value, self.buffers])
        self._call = torch.compile(_call, dynamic=False) if compile else _call
        self.streams: list[torch.cuda.Stream] = []
        if self.device.type == "cuda":
            count = min(STREAMS, len(models))
            self.streams = [torch.cuda.Stream(self.device) for _ in range(count)]  # type: ignore[no-untyped-call]

    @property
    def R(self) -> int:  # noqa: N802 (the shape letter of these rooms)
        """How many runs."""
        return len(self.models)

    def _new_optimiser(self) -> Momentum | Adam:
        name, momentum = self.settings
        return optimiser_of(name, self.value, self.decay.unsqueeze(1), momentum)

    def keep(self, runs: Tensor) -> None:
        """Keep only these runs, and free the memory of the others."""
        states = {name: tensor[runs] for name, tensor in self.optimiser.state().items()}
        self.models = [self.models[run] for run in runs.tolist()]
        self.decay = self.decay[runs]
        self.value, self.grad, self.buffers = _stack(self.models)
        self.optimiser = self._new_optimiser()
        for name, tensor in self.optimiser.state().items():
            tensor.copy_(states[name])
        self.average.keep(runs)
        self.teacher.keep(runs)

    def some(self, runs: slice) -> Self:
        """These runs alone, in the same memory, for forward passes."""
        part = copy.copy(self)
        part.models, part.buffers = self.models[runs], self.buffers[runs]
        return part

    def teachers(self, runs: slice) -> Callable[[Tensor, Tensor | None], Tensor]:
        """The averaged weights that teach these runs: items (R, B) and moves -> logits (R, B, K)."""
        part = copy.copy(self)
        part.models = copy.deepcopy(self.models[runs])
        value, _, part.buffers = _stack(part.models)

        def teach(items: Tensor, moves: Tensor | None) -> Tensor:
            for ours, average in zip((value, part.buffers), self.teacher.values, strict=True):
                ours.copy_(average[runs])
            return part.forward(items, items, train=False, moves=moves).detach()

        return teach

    def forward(
        self,
        index: Tensor,
        active: Tensor,
        *,
        train: bool,
        inputs: Inputs | None = None,
        moves: Tensor | None = None,
        own: Tensor | None = None,
    ) -> Tensor:
        """Logits (R, B, K) of the inputs at `index` (R, B); a leaf for the objective."""
        source = inputs or self.inputs
        before = self.buffers.clone() if train else None
        with torch.set_grad_enabled(train):
            outputs = []
            for run, model in enumerate(self.models):
                model.train(train)
                with self._branch(run), torch.autocast(self.device.type, torch.bfloat16, enabled=self.amp):
                    x = source.gather(index[run])
                    if moves is not None:
                        x = (move_images if moves.shape[-1] == MOVES else change_images)(x, moves[run])
                    if own is not None:
                        mix_strong(x, own[run])
                    if x.dim() == 4:
                        x = x.contiguous(memory_format=torch.channels_last)
                    outputs.append(self._call(model, x).float())
            self._join()
            self._outputs = torch.stack(outputs)
        if before is not None:  # a run that stands still keeps its running statistics
            self.buffers.copy_(torch.where(active.bool().unsqueeze(1), self.buffers, before))
        return self._outputs.detach().requires_grad_()

    def backward(self, dlogits: Tensor) -> None:
        """Gradients of all parameters from the gradient by the logits (R, B, K)."""
        self.grad.zero_()
        # autograd runs each branch's backward on the stream of its forward
        torch.autograd.backward(self._outputs, dlogits)

    def update(self, lr: Tensor) -> None:
        """One optimiser step; a run whose lr is negative stands still."""
        active = (lr >= 0).unsqueeze(1)
        changed = [self.value, *self.optimiser.state().values()]
        before = [tensor.clone() for tensor in changed]
        self.optimiser.step(self.value, self.grad, lr.clamp(min=0).unsqueeze(1))
        for tensor, old in zip(changed, before, strict=True):
            tensor.copy_(torch.where(active, tensor, old))
        for average in (self.average, self.teacher):
            average.step(self.weights(), lr >= 0)

    def weights(self) -> list[Tensor]:
        """Parameters and running statistics, a row of each per run."""
        return [self.value, self.buffers]

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the networks hold the averaged weights."""
        return self.average.shown_in(self.weights())

    def state(self) -> list[Tensor]:
        """Everything that a step changes."""
        averages = [*self.average.state().values(), *self.teacher.state().values()]
        return [self.value, self.buffers, *self.optimiser.state().values(), *averages]

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """One run's model."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.models[run].state_dict().items()}

    def _branch(self, run: int) -> torch.cuda.StreamContext:
        if not self.streams:
            return torch.cuda.stream(None)
        stream = self.streams[run % len(self.streams)]
        stream.wait_stream(torch.cuda.current_stream(self.device))
        return torch.cuda.stream(stream)

    def _join(self) -> None:
        for stream in self.streams:
            torch.cuda.current_stream(self.device).wait_stream(stream)


def _stack(models: Sequence[nn.Module]) -> tuple[Tensor, Tensor, Tensor]:
    """Move every module's parameters, gradients and float buffers into rows of common matrices."""
    flats = [FlatParameters(model) for model in models]
    value = torch.stack([flat.value for flat in flats])
    grad = torch.zeros_like(value)
    for row, model in enumerate(models):
        FlatParameters(model, into=(value[row], grad[row]))
    floats = [[b for b in model.buffers() if b.is_floating_point()] for model in models]
    width = sum(b.numel() for b in floats[0])
    buffers = torch.zeros(len(models), width, device=value.device)
    for row, parts in enumerate(floats):
        start = 0
        for part in parts:
            view = buffers[row, start : start + part.numel()].view_as(part)
            view.copy_(part)
            part.set_(view)  # type: ignore[call-overload]
            start += part.numel()
    return value, grad, buffers


def _call(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)  # type: ignore[no-any-return]
