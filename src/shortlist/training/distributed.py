"""Several processes as one run: the same command, started by torchrun.

Every process knows the whole shuffle and takes its slice of each batch. The sums inside the risks are added up over the
processes (`all_sum`), so each sees the risk of the whole batch; renewed confidences are exchanged, so each holds the
whole table. On a model without BatchNorm the result is that of a single process up to rounding.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from shortlist.errors import InputError


class _AllSum(torch.autograd.Function):
    """Adds a tensor up over the processes.

    DistributedDataParallel averages gradients, but each process here differentiates the risk of the whole batch through
    its own items alone: those parts must be added, hence the factor `world` on the way back.
    """

    @staticmethod
    def forward(ctx: Any, sums: Tensor) -> Tensor:
        total = sums.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0] * dist.get_world_size()


@dataclass(frozen=True)
class Processes:
    """This process among those of the run."""

    rank: int = 0
    world: int = 1

    def slice(self, index: Tensor) -> Tensor:
        """This process's part of a batch."""
        if self.world == 1:
            return index
        share = len(index) // self.world
        return index[self.rank * share : (self.rank + 1) * share]

    def check(self, batch_size: int) -> None:
        """Refuse batches that cannot be cut into equal parts."""
        if batch_size % self.world:
            raise InputError(f"batch size {batch_size} cannot be cut into {self.world} equal parts, one per process")

    def all_sum(self, sums: Tensor) -> Tensor:
        """The sums over all processes, with gradients."""
        return sums if self.world == 1 else _AllSum.apply(sums)  # type: ignore[no-untyped-call]

    def any(self, flag: bool) -> bool:
        """Whether it holds in any process: all must stop at the same epoch, or some would wait forever."""
        if self.world == 1:
            return flag
        device = "cuda" if dist.get_backend() == "nccl" else "cpu"
        flags = torch.tensor(float(flag), device=device)
        dist.all_reduce(flags)
        return flags.item() > 0

    def gather(self, rows: Tensor) -> Tensor:
        """The parts of a batch put together again, on every process."""
        if self.world == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.world)]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model as the training step calls it."""
        if self.world == 1:
            return model
        if next(model.parameters()).device.type == "cuda":
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
        return nn.parallel.DistributedDataParallel(model)


@contextmanager
def processes(device: str) -> Iterator[Processes]:
    """Inside, the processes that torchrun started, or this one alone, are one group."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1 or dist.is_initialized():
        yield Processes()
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield Processes(dist.get_rank(), world)
        dist.barrier()  # one that leaves earlier would close its connections to the others
    finally:
        gc.collect()  # DistributedDataParallel holds on to the group, whose threads must end before the process does
        dist.destroy_process_group()
