"""One run: a model, its method, its feed and its optimiser on one device, trained epoch by epoch; or for a single pass.

Nothing inside an epoch waits for the device: indices, learning rates and the mean risk are tensors there. On CUDA the
step is captured once as a graph and replayed.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from shortlist import methods
from shortlist.errors import InputError
from shortlist.internal.streams import stream_seed
from shortlist.internal.tensors import at_least_float32
from shortlist.labels import StochasticLabels
from shortlist.methods import Batch, Feed, Method
from shortlist.training.augment import move_images
from shortlist.training.average import Average
from shortlist.training.config import Engine, RunConfig
from shortlist.training.cuda_graph import captured
from shortlist.training.distributed import Processes
from shortlist.training.draws import Draws, draw_epoch
from shortlist.training.inputs import Inputs
from shortlist.training.method_check import check_method
from shortlist.training.optim import FlatParameters, optimiser_of
from shortlist.training.schedules import learning_rates
from shortlist.training.views import change_images, confidence_of, mix_strong, objective_of, two_views


class Run:
    """The state of one training run, and the steps that change it.

    Args:
        config: the settings that decide the result.
        model: turns raw inputs into logits (its first layer normalises).
        method: the method `config` names.
        feed: what the method trains on.
        inputs: the inputs of all items; `feed.rows` points into them.
        engine: resolved; where and how to compute.
        flips: whether augmentation may flip.
        group: the processes that share this run.
    """

    checkpoint_rarity = 1.0
    """A factor on `loop.CHECKPOINT_SECONDS`, above 1 for runs whose checkpoints are large."""

    def __init__(
        self,
        config: RunConfig,
        model: nn.Module,
        method: Method,
        feed: Feed,
        inputs: Inputs,
        engine: Engine,
        *,
        flips: bool = False,
        group: Processes | None = None,
    ) -> None:
        self.config, self.method, self.inputs, self.engine = config, method, inputs, engine
        self.flips, self.group = flips, group or Processes()
        self.device = torch.device(engine.device)
        self.feed = feed.to(self.device)
        self.feed.all_sum = self.group.all_sum
        self.batch_size = min(config.batch_size, len(feed))
        self.group.check(self.batch_size)
        if self.batch_size == self.group.world and any(isinstance(layer, _BatchNorm) for layer in model.modules()):
            raise InputError(f"batch norm cannot train on a single item per batch, 2 at least ({len(feed)} in all)")
        self.steps = len(feed) // self.batch_size
        """Per epoch. Every batch is full: the items left over at the end of a shuffle sit that epoch out."""
        if (config.augment or config.strong) and len(inputs.shape) != 3:
            raise InputError(f"augmentation is for images, got inputs of shape {inputs.shape}")
        self.model = model.to(self.device)
        """What is scored and saved. `network` is trained: the same module, or a copy if weights are averaged."""
        self.network = copy.deepcopy(self.model) if config.ema else self.model
        self.flat = FlatParameters(self.network)
        self.average = Average(torch.tensor(config.ema), self._averaged())
        self._average_views = [FlatParameters(self.model).value, *_float_buffers(self.model)] if config.ema else []
        self.teacher = Average(torch.tensor(method.teacher or 0.0), self._averaged())
        self._teaching = copy.deepcopy(self.model).eval() if method.teacher else None
        if self._teaching is not None:  # its own tensors are the averages
            self.teacher.values = [FlatParameters(self._teaching).value, *_float_buffers(self._teaching)]
        self.optimiser = optimiser_of(config.optimiser, self.flat.value, config.weight_decay, config.momentum)
        self.rates = learning_rates(config, self.steps).to(self.device)
        self.epoch = 0
        self._forward = self._prepare_forward()
        self._drawn: Draws | None = None
        self._span = torch.arange(self.batch_size, device=self.device)
        self._step_number = torch.zeros((), dtype=torch.int64, device=self.device)  # over all epochs
        self._risk = torch.zeros((), dtype=torch.float32, device=self.device)
        self._replay: Callable[[], None] | None = None

    def _prepare_forward(self) -> Callable[[Tensor, Batch], tuple[Tensor, Tensor]]:
        network = self.group.wrap(self.network)

        def forward(x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
            with self._autocast():
                logits = at_least_float32(network(x))
            return objective_of(self.method, logits, batch), logits

        return torch.compile(forward, dynamic=False) if self.engine.compile else forward

    @contextmanager
    def _autocast(self) -> Iterator[None]:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bool(self.engine.amp)):
            yield

    # -- an epoch -----------------------------------------------------------------------------------------------------

    def train_epoch(self) -> Tensor:
        """Train one epoch and return the mean risk of its batches, still on the device."""
        with self._random_numbers():
            drawn = self._draw()
            self.network.train()
            self._risk.zero_()
            if self.inputs.resident:
                step = self._step if not self.engine.cuda_graph else self._captured()
                for _ in range(self.steps):
                    step()
            else:
                rows = self.feed.rows.cpu()[drawn.order].reshape(self.steps, self.batch_size)
                mine = torch.stack([self.group.slice(part) for part in rows])
                for x in self.inputs.stream(mine):
                    self._step(x)
        self._update_model()
        self.epoch += 1
        return self._risk / self.steps

    @property
    def steps_done(self) -> int:
        """Steps so far, over all epochs; on a GPU this waits for the device."""
        return int(self._step_number)

    def _draw(self) -> Draws:
        """Draw what this epoch needs, and copy it to the device."""
        drawn = draw_epoch(
            self.config, self.epoch, len(self.feed), self.batch_size, self.inputs.shape,
            flips=self.flips, apart=self.method.apart,
        )  # fmt: skip
        if self._drawn is None:
            self._drawn = drawn.to(self.device)
        else:
            self._drawn.copy_(drawn)  # in place: a captured step reads it there
        return drawn

    @contextmanager
    def _random_numbers(self) -> Iterator[None]:
        """Inside, layers that draw (dropout) follow the seed and the epoch; the user's generators are left alone."""
        seed = stream_seed(self.config.seed, "layers", self.epoch)
        cuda = self.device.type == "cuda"
        with torch.random.fork_rng(devices=[self.device] if cuda else []):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed devices that are not kept
            if cuda:
                with torch.cuda.device(self.device):
                    torch.cuda.manual_seed(seed)
            yield

    def _step(self, x: Tensor | None = None) -> None:
        """One update. It finds its batch and learning rate by a counter on the device, so it can be replayed."""
        drawn = self._drawn
        assert drawn is not None
        start = (self._step_number % self.steps) * self.batch_size
        whole = drawn.order[start + self._span]
        index = self.group.slice(whole)
        if x is None:
            x = self.inputs.gather(self.feed.rows[index])
        own = self._own(drawn)
        taught = self._taught(x, index, drawn)
        x = self._views(x, index, drawn, own)
        weak = x[: len(index)]
        batch = replace(self.feed.batch(index), teacher=taught, progress=self._progress(), own=own)
        self.flat.grad.zero_()
        risk, logits = self._forward(x, batch)
        risk.backward()  # type: ignore[no-untyped-call]
        lr = self.rates[self._step_number.view(1)]
        self.optimiser.step(self.flat.value, self.flat.grad, lr)
        self.average.step(self._averaged())
        self.teacher.step(self._averaged())
        self._risk.add_(risk.detach())
        self._step_number.add_(1)
        if self.method.refresh != "never":
            self._renew(weak, logits.detach(), batch, whole)

    def _views(self, x: Tensor, index: Tensor, drawn: Draws, own: Tensor | None) -> Tensor:
        """The inputs as the network takes them: the items' weak views, then their strong views if there are any."""
        if drawn.moves is not None and drawn.changes is not None:
            x = change_images(torch.cat([x, x]), two_views(drawn.moves[index], drawn.changes[index]))
            if own is not None:
                mix_strong(x, own)
        elif drawn.moves is not None:
            x = move_images(x, drawn.moves[index])
        return _laid_out(x)

    @torch.no_grad()
    def _taught(self, x: Tensor, index: Tensor, drawn: Draws) -> Tensor | None:
        """The teacher's logits of the items as it sees them; None if there is no teacher."""
        if self._teaching is None:
            return None
        moves = drawn.moves if drawn.teacher_moves is None else drawn.teacher_moves
        if moves is not None:
            x = move_images(x, moves[index])
        with self._autocast():
            logits = self._teaching(_laid_out(x))
        return at_least_float32(logits)

    def _own(self, drawn: Draws) -> Tensor | None:
        """The share of an item itself in each mixed view of this step; None if views are not mixed."""
        if drawn.shares is None:
            return None
        number = (self._step_number % self.steps).view(1)  # an index without a dimension would wait for the device
        return drawn.shares[number].squeeze(0)

    def _progress(self) -> Tensor:
        return self._step_number / (self.config.epochs * self.steps)

    @torch.no_grad()
    def _renew(self, x: Tensor, logits: Tensor, batch: Batch, whole: Tensor) -> None:
        if self.method.refresh == "after":
            with self._autocast():
                logits = self.network(x)
        renewed = confidence_of(self.method, logits, batch)
        self.feed.renew(whole, self.group.gather(renewed))

    def _averaged(self) -> list[Tensor]:
        return [self.flat.value, *_float_buffers(self.network)]

    def _update_model(self) -> None:
        """Bring `model` up to date with the averaged weights."""
        for view, value in zip(self._average_views, self.average.values, strict=True):
            view.copy_(value)

    def _captured(self) -> Callable[[], None]:
        if self._replay is None:
            self._replay = captured(self._step, list(self._tensors().values()), self.device)
        return self._replay

    # -- state --------------------------------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, Tensor]:
        """Everything that a step changes."""
        return {
            "parameters": self.flat.value,
            **{f"buffer.{name}": buffer for name, buffer in self.network.named_buffers()},
            **{f"optimiser.{name}": tensor for name, tensor in self.optimiser.state().items()},
            **{f"average.{name}": tensor for name, tensor in self.average.state().items()},
            **{f"teacher.{name}": tensor for name, tensor in self.teacher.state().items()},
            **{f"feed.{name}": tensor for name, tensor in self.feed.state_dict().items()},
            "step": self._step_number,
            "risk": self._risk,
        }

    def _restore(self, saved: Mapping[str, Tensor]) -> None:
        for name, tensor in self._tensors().items():
            if name not in saved or saved[name].shape != tensor.shape:
                raise InputError(f"the checkpoint does not fit this run: {name} is missing or has another shape")
            tensor.copy_(saved[name])

    def optimiser_state(self) -> dict[str, Tensor]:
        """What another run on the same network needs to continue."""
        return self.optimiser.state()

    def state_dict(self) -> dict[str, Tensor]:
        """What a checkpoint must keep for the run to resume bit for bit."""
        return {name: tensor.detach().cpu() for name, tensor in self._tensors().items()}

    def load_state_dict(self, state: Mapping[str, Tensor], epoch: int) -> None:
        """Continue from a `state_dict` taken after `epoch` epochs."""
        self._restore(state)
        self._update_model()
        self.epoch = epoch


def one_pass(
    network: nn.Module,
    optimiser: Mapping[str, Tensor],
    passes: int,
    config: RunConfig,
    x: Any,
    labels: StochasticLabels,
    weight: NDArray[np.float64] | None,
    device: str,
) -> tuple[Run, float]:
    """Train once on every item; return the run and its mean risk.

    Args:
        network: where to start; a copy of it is trained.
        optimiser: the optimiser's state so far; empty at first.
        passes: how many passes came before: each shuffles in its own way.
        config: the settings; the learning rate stays constant.
        x: the items.
        labels: their answers.
        weight: how much each counts.
        device: where to compute.
    """
    engine = Engine(device=device).resolve(len(labels))
    method = methods.get(config.method, **config.method_options)
    feed = method.feed(labels, config.protocol, weight)
    check_method(method, feed)
    # a run leaves out incomplete batches, but these items come only once: fill the batches up with items of weight 0
    steps = math.ceil(len(feed) / config.batch_size)
    size = math.ceil(len(feed) / steps)
    spare = steps * size - len(feed)
    if spare:
        counted = torch.ones(len(feed)) if feed.weight is None else feed.weight
        filled = part_of(feed, torch.arange(steps * size) % len(feed))
        feed = replace(filled, weight=torch.cat([counted, torch.zeros(spare)]))
    by = "adam" if config.optimiser == "lbfgs" else config.optimiser
    now = replace(config, epochs=1, optimiser=by, schedule="constant", batch_size=size, holdout=0.0)
    run = Run(now, copy.deepcopy(network), method, feed, Inputs(x, engine.device), engine)
    for name, tensor in run.optimiser.state().items():
        if name in optimiser:
            tensor.copy_(optimiser[name])
    run.epoch = passes
    risk = run.train_epoch().item()
    if not math.isfinite(risk):
        raise InputError(f"the risk is {risk}: try a smaller lr")
    return run, risk


def part_of(feed: Feed, index: Tensor) -> Feed:
    """The items of a feed at these positions, which may repeat."""
    each: dict[str, Any] = {
        name: value[index] for name, value in vars(feed).items() if isinstance(value, Tensor) and name != "prior"
    }
    return replace(feed, **each)


def _laid_out(x: Tensor) -> Tensor:
    """Images in the memory layout that convolutions read fastest."""
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def _float_buffers(module: nn.Module) -> list[Tensor]:
    return [buffer for buffer in module.buffers() if buffer.is_floating_point()]
