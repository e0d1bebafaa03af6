"""The convolutions of a fleet: forward, by the input and by the weights, for all runs at once.

Two ways to do the same: `TritonConv`, the plain one, for every dtype and, interpreted, for the CPU; `CudaConv`
(`by_cuda`), for bf16, whose kernels read a map once instead of once per place of the window. Layouts are those
of `kernels`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


def round_up(value: int, multiple: int) -> int:
    """The next multiple."""
    return -(-value // multiple) * multiple


@dataclass(frozen=True)
class ConvShape:
    """What a convolution maps; channels are padded to a multiple of 8."""

    places: int
    """Height and width of its window."""
    stride: int
    height: int
    """Of its output."""
    width: int
    inputs: int
    outputs: int
    rows: int
    """Rows of its weight matrix, places times inputs and padding."""
    columns: int
    """Columns of its weight matrix, outputs and padding."""

    @property
    def taps(self) -> int:
        """Places of the window."""
        return self.places * self.places

    @property
    def real_rows(self) -> int:
        """Rows of the weight matrix that are not padding."""
        return self.taps * self.inputs

    @property
    def apart(self) -> int:
        """How far apart the turned convolution wants the pixels of the gradient by the output, zeros between them."""
        return 1 if self.places == 1 else self.stride

    def turned(self, rows: int, columns: int) -> "ConvShape":
        """The convolution on the gradient by the output that gives the gradient by the input.

        Where the window has one place, only by the pixels of the input that are read at all.
        """
        return ConvShape(
            self.places,
            1,
            self.height * self.apart,
            self.width * self.apart,
            self.outputs,
            self.inputs,
            rows,
            columns,
        )


@dataclass(frozen=True)
class Receiver:
    """The batch norm and ReLU whose output the gradient belongs to that a convolution writes."""

    before: Tensor
    """(R, B, H, W, C) what batch norm was given; it may have a halo."""
    norm: Tensor
    """(R, 4, C) scale, shift, mean, 1 / deviation."""
    passed: Tensor | None
    """(R, B, H, W, C / 8) bits: what passed the ReLU; None where nothing was added in between: it is made again."""

    @property
    def mask(self) -> int:
        """How a kernel finds what passed the ReLU: 1 told by bits, 2 made again."""
        return 2 if self.passed is None else 1

    @property
    def maps(self) -> tuple[Tensor, Tensor, Tensor]:
        """What a kernel is given."""
        return self.before, self.before if self.passed is None else self.passed, self.norm


@dataclass(frozen=True)
class NormBack:
    """The way back through the batch norm behind a convolution."""

    d: Tensor
    """(R, B, H, W, C) the gradient by what batch norm gave."""
    before: Tensor
    """(R, B, H, W, C) what it was given; it may have a halo."""
    norm: Tensor
    """(R, 4, C) scale, shift, mean, 1 / deviation."""
    means: Tensor
    """(R, 2, C) of d and of d times the normalised map."""
    kept: bool = True
    """Whether the gradient by what it was given will be read again."""

    @property
    def mode(self) -> int:
        """As `conv.cu` knows it."""
        return 1 if self.kept else 2


class Scratch(Protocol):
    """Makes buffers that are kept between steps and start as zeros."""

    def __call__(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """The same tensor for the same name and shape."""
        ...


class Convolver(Protocol):
    """What both ways can do. Maps are channels last, those that are read have a halo; w is (R, rows, columns)."""

    def forward(
        self, x: Tensor, w: Tensor, y: Tensor, shape: ConvShape, *, statistics: bool, norm: Tensor | None = None
    ) -> Tensor:
        """y, which may have a halo, from x; returns sums (R, parts, 2, columns) of y and its squares, if asked for.

        With a norm (R, 4, inputs), x is what batch norm was given: it and ReLU are applied where x is read. The halo of
        x is of NaNs then, which ReLU makes zeros.
        """
        ...

    def backward(
        self, dy: Tensor, w: Tensor, out: Tensor, shape: ConvShape, *,
        add: Tensor | None = None, to: Receiver | None = None,
    ) -> Tensor:  # fmt: skip
        """By the input into `out`: `shape` and w are turned.

        What is to be added is a map like `out`, or `out` itself, or one that has only every second pixel and row. A
        receiver's ReLU is passed as well, and sums (R, parts, 2, columns) of `out` and of `out` times the receiver's
        normalised map are returned.
        """
        ...

    def weights(
        self, x: Tensor, dy: Tensor, grad: Tensor, shape: ConvShape, *,
        norm: Tensor | None = None, back: NormBack | None = None,
    ) -> None:  # fmt: skip
        """By the weights, into grad (R, rows, columns), a view whose runs may lie apart.

        x and its norm are those of `forward`. dy is laid out as the turned convolution reads it; with `back` it is made
        here, from that.
        """
        ...


def halo_of(map: Tensor, height: int) -> int:
    """How wide the halo of a map (R, B, H, W, C) is."""
    return (map.shape[2] - height) // 2


def add_mode(add: Tensor | None, out: Tensor) -> int:
    """As the kernels know it: 0 nothing is added, 1 a map like `out`, 2 one that has every second pixel and row."""
    if add is None:
        return 0
    return 1 if add.shape[2] == out.shape[2] else 2


def add_parts(parts: Tensor, grad: Tensor, shape: ConvShape) -> None:
    """The sum of a weight gradient's parts (R, parts, rows, columns), into grad."""
    from shortlist.training.fleet.kernels.conv import add_parts_kernel

    runs, splits, size = len(parts), parts.shape[1], shape.rows * shape.columns
    # rows behind the last place are padding: what was read there is not a gradient
    add_parts_kernel[(-(-size // 256), runs)](
        parts, grad, size, shape.real_rows * shape.columns, grad.stride(0),
        SPLITS=splits, AT_ONCE=min(16, 1 << (splits - 1).bit_length()), BLOCK=256,
    )  # fmt: skip


@dataclass(frozen=True)
class TritonConv:
    """By `kernels/conv.py`."""

    scratch: Scratch
    conv: Mapping[int, tuple[int, int, int, int]]
    """By number of input channels: BLOCK_M, BLOCK_K, warps, stages."""
    weight: Mapping[int, tuple[int, int, int, int]]
    """BLOCK_M, splits, warps, stages."""
    row_block: int
    """How many rows of the weight gradient a program has."""

    def forward(
        self, x: Tensor, w: Tensor, y: Tensor, shape: ConvShape, *, statistics: bool, norm: Tensor | None = None
    ) -> Tensor:
        """As `Convolver` says."""
        return self._conv(x, w, y, shape, sums=int(statistics), norm=norm)

    def backward(
        self, dy: Tensor, w: Tensor, out: Tensor, shape: ConvShape, *,
        add: Tensor | None = None, to: Receiver | None = None,
    ) -> Tensor:  # fmt: skip
        """As `Convolver` says."""
        return self._conv(dy, w, out, shape, sums=2 if to else 0, add=add, to=to)

    def _conv(
        self, x: Tensor, w: Tensor, y: Tensor, shape: ConvShape, *, sums: int,
        norm: Tensor | None = None, add: Tensor | None = None, to: Receiver | None = None,
    ) -> Tensor:  # fmt: skip
        from shortlist.training.fleet.kernels.conv import conv_kernel

        block, block_k, warps, stages = self.conv[shape.inputs]
        runs, M = len(x), x.shape[1] * shape.height * shape.width
        tiles = -(-M // block)
        found = self.scratch("sums", runs, tiles, 2, shape.columns, dtype=torch.float32)
        before, passed, to_norm = to.maps if to else (y, y, found)
        added = y if add is None else add
        conv_kernel[(tiles, runs)](
            x, w, y, found, before, passed, to_norm, found if norm is None else norm, added, x.stride(0), w.stride(0),
            y.stride(0), before.stride(0), passed.stride(0), added.stride(0), M,
            H=shape.height, W=shape.width, PLACES=shape.places, CI=shape.inputs, CO=shape.outputs, N=shape.columns,
            BLOCK_K=block_k, BLOCKS_K=-(-shape.real_rows // block_k), BLOCK_M=block, STRIDE=shape.stride,
            HALO=halo_of(x, shape.height * shape.stride), Y_HALO=halo_of(y, shape.height),
            BEFORE_HALO=halo_of(before, shape.height), NORM=norm is not None, SUMS=sums, ADD=add_mode(add, y),
            MASK=to.mask if to else 0, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return found

    def weights(
        self, x: Tensor, dy: Tensor, grad: Tensor, shape: ConvShape, *,
        norm: Tensor | None = None, back: NormBack | None = None,
    ) -> None:  # fmt: skip
        """As `Convolver` says."""
        from shortlist.training.fleet.kernels.conv import conv_weight_kernel

        if back is not None:
            self._norm_back(back, dy, shape)
        block, splits, warps, stages = self.weight[shape.inputs]
        runs, M = len(x), x.shape[1] * shape.height * shape.width
        parts = self.scratch("parts", runs, splits, shape.rows, shape.columns, dtype=torch.float32)
        conv_weight_kernel[(shape.rows // self.row_block, splits, runs)](
            x, dy, parts, parts if norm is None else norm, x.stride(0), dy.stride(0), M,
            H=shape.height, W=shape.width, PLACES=shape.places, CI=shape.inputs, CO=shape.outputs, N=shape.columns,
            BLOCK_K=self.row_block, BLOCKS_K=shape.rows // self.row_block, BLOCK_M=block, SPLITS=splits,
            STEPS=-(-M // (block * splits)), STRIDE=shape.stride, HALO=halo_of(x, shape.height * shape.stride),
            APART=shape.apart, NORM=norm is not None, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        add_parts(parts, grad, shape)

    def _norm_back(self, back: NormBack, dy: Tensor, shape: ConvShape) -> None:
        from shortlist.training.fleet.kernels.residual import norm_back_kernel

        M = dy.shape[1] * shape.height * shape.width
        norm_back_kernel[(-(-M // 64), len(dy))](
            back.d, back.before, back.norm, back.means, dy, back.d.stride(0), back.before.stride(0), dy.stride(0), M,
            H=shape.height, W=shape.width, C=shape.outputs, BLOCK_M=64, BEFORE_HALO=halo_of(back.before, shape.height),
            HALO=shape.places // 2, STRIDE=shape.apart,
        )  # fmt: skip
