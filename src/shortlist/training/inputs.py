"""The items' inputs: where they are kept, and how a batch of them gets to the device.

Resident data is one tensor on the device. Data that is too large for it, or sparse, stays on the host and is streamed:
the next batch is gathered into pinned memory and copied while the current one is computed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from shortlist.errors import InputError

MEMORY_SHARE = 0.5
"""The share of the device's free memory that resident data may take."""
PIECE = 1 << 19
"""How many numbers of the inputs are measured at a time: as many as fit the processor's cache."""


class Inputs:
    """N inputs; `gather` gives a batch of them on the device, images still as uint8.

    Args:
        x: uint8 images (N, C, H, W), float features (N, D), or a scipy CSR matrix (N, D).
        device: where batches are wanted.
    """

    def __init__(self, x: Any, device: str | torch.device) -> None:
        self.device = torch.device(device)
        x = _native(x)
        self.sparse = x if hasattr(x, "tocsr") else None
        self.shape: tuple[int, ...] = tuple(int(n) for n in x.shape[1:])
        self.count = int(x.shape[0])
        _check_finite(x)
        if self.sparse is not None and self._fits(4 * self.count * self.shape[0]) and self.device.type != "cpu":
            self.data = torch.from_numpy(x.toarray()).to(self.device)
            self.sparse = None
        elif self.sparse is None:
            host = torch.from_numpy(np.ascontiguousarray(x))
            if self._fits(host.numel() * host.element_size()):
                self.data = host.to(self.device)
            else:
                self.data = host.pin_memory()

    @property
    def resident(self) -> bool:
        """Whether all of it is on the device."""
        return self.sparse is None and self.data.device.type == self.device.type

    def _fits(self, size: int) -> bool:
        if self.device.type != "cuda":
            return True
        free, _ = torch.cuda.mem_get_info(self.device)
        return size < MEMORY_SHARE * free

    def __len__(self) -> int:
        return self.count

    def gather(self, rows: Tensor) -> Tensor:
        """The inputs of these rows, on the device."""
        if self.resident:
            return self.data[rows.to(self.device)]
        return self._host(rows.cpu()).to(self.device, non_blocking=True)

    def stream(self, batches: Tensor) -> Iterator[Tensor]:
        """The inputs of each row of `batches` (steps, B); the next is copied while one is used."""
        if self.device.type != "cuda":
            yield from (self._host(rows) for rows in batches)
            return
        side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        ahead: Tensor | None = None
        for rows in [*batches, None]:
            current = ahead
            if rows is not None:
                with torch.cuda.stream(side):
                    ahead = self._host(rows).pin_memory().to(self.device, non_blocking=True)
            if current is not None:
                torch.cuda.current_stream(self.device).wait_stream(side)
                current.record_stream(torch.cuda.current_stream(self.device))
                yield current

    def _host(self, rows: Tensor) -> Tensor:
        if self.sparse is not None:
            return torch.from_numpy(self.sparse[rows.numpy()].toarray())
        return self.data[rows]


def _native(x: Any) -> Any:
    """As numbers that torch has: floats and CSR matrices as float32, whole numbers in this machine's byte order."""
    if x.dtype.kind == "f" or hasattr(x, "tocsr"):
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            return x.astype(np.float32, copy=False)
    return x.astype(x.dtype.newbyteorder("="), copy=False)


def _check_finite(x: Any) -> None:
    values = x.data if hasattr(x, "tocsr") else x
    if values.dtype.kind != "f" or (finite := np.isfinite(values)).all():
        return
    at = np.argwhere(~finite)[0].tolist()
    if hasattr(x, "tocsr"):  # from the place among the stored numbers to row and column
        at = [int(np.searchsorted(x.indptr, at[0], "right")) - 1, int(x.indices[at[0]])]
    raise InputError(f"the features hold NaN, infinity or a number too large for float32, first at {at}")


class Normalise(nn.Module):
    """The first layer of every trained model: raw inputs -> floats of mean 0 and deviation 1.

    Its constants are buffers, so they are saved with the weights. Sparse features pass unchanged.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, x: Any, rows: Any = None, weight: Any = None) -> None:
        """Measure the inputs `x` (of the training rows): by channel for images, by feature for features.

        With `weight`, one number per row, a row counts like that many copies of itself.
        """
        super().__init__()
        if hasattr(x, "tocsr"):
            mean, deviation = torch.zeros(1), torch.ones(1)
        else:
            axes = (0, *range(2, x.ndim))
            shape = (-1,) + (1,) * (x.ndim - 2)
            weighted = weight is not None and np.sum(weight)
            if x.dtype == np.uint8 and not weighted:
                centre, spread = _byte_moments(x, axes, rows)
            else:
                centre, spread = _moments(x if rows is None else x[rows], axes, weight if weighted else None)
            mean = torch.from_numpy(centre).float().reshape(shape)
            deviation = torch.from_numpy(spread).float().reshape(shape)
        # a constant channel carries nothing: make it 0 instead of dividing by 0 or, with weights, by rounding errors.
        # What counts as constant depends on its own size: seconds may be given as femtoseconds
        deviation = torch.where(deviation > 1e-12 * mean.abs(), deviation, 1)
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)

    @classmethod
    def saved(cls, state: Mapping[str, Tensor], in_shape: Sequence[int]) -> Self:
        """The first layer of a saved network, for inputs of this shape."""
        layer = cls(np.zeros((1, *in_shape), np.float32))
        for name in ("mean", "deviation"):
            buffer = state[f"0.{name}"]
            if buffer.shape not in (layer.get_buffer(name).shape, (1,)):  # (1,): sparse features are not measured
                raise ValueError(f"its normalisation has shape {tuple(buffer.shape)}, which does not fit the inputs")
            layer.register_buffer(name, buffer.clone())
        return layer

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) -> (B, ...) float."""
        return (x.to(self.mean.dtype) - self.mean) / self.deviation


@np.errstate(invalid="ignore")  # of infinite inputs, which `Inputs` refuses
def _moments(x: Any, axes: tuple[int, ...], weight: Any) -> tuple[Any, Any]:
    """Mean and deviation over `axes` in float64, rows counted by `weight`."""
    if weight is None:
        return np.mean(x, axes, dtype=np.float64), np.std(x, axes, dtype=np.float64)
    # over each row first: rows have weights, the pixels of an image have not
    inner = axes[1:]
    share = np.asarray(weight, np.float64) / np.sum(weight)
    mean = share @ np.mean(x, inner, dtype=np.float64)
    expanded = mean.reshape((-1,) + (1,) * len(inner))
    variance = share @ np.mean(np.square(x - expanded, dtype=np.float64), inner)
    return mean, np.sqrt(variance)


def _byte_moments(x: Any, axes: tuple[int, ...], rows: Any) -> tuple[Any, Any]:
    """The same for bytes, a few rows at a time, by exact sums of whole numbers.

    numpy would turn all of them into floats first: seconds for the images that a pack of runs waits for.
    """
    rows = np.arange(len(x)) if rows is None else np.asarray(rows)
    at_once = max(1, PIECE // max(1, x[:1].size))
    total, squares = np.zeros((2, x.shape[1]))
    for start in range(0, len(rows), at_once):
        part = x[rows[start : start + at_once]].astype(np.float64)
        total += part.sum(axes)
        squares += np.square(part).sum(axes)
    n = max(1, len(rows) * math.prod(x.shape[2:]))
    variance = [(n * int(b) - int(a) ** 2) / n**2 for a, b in zip(total, squares, strict=True)]
    return total / n, np.sqrt(variance)
