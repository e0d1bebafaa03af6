"""The convolutions of a fleet by `kernels/conv.cu`: block sizes, and how much work a block takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from shortlist.training.fleet.conv.conv import ConvShape, NormBack, Receiver, Scratch, add_mode, add_parts, halo_of


@dataclass(frozen=True)
class CudaTiles:
    """Block sizes of `conv.cu`, as benchmarks/fleet_tune.py found them on an H200."""

    warps: int
    tiles: int
    """Tiles of 16 that a warp has: pixels of a convolution, rows of a weight gradient."""
    pixels: int = 0
    """Of a weight gradient: pixels that are copied at a time."""


# by places, inputs and outputs
CONV_TILES: dict[tuple[int, int, int], CudaTiles] = {
    (3, 8, 16): CudaTiles(8, 4),
    (3, 16, 16): CudaTiles(8, 4),
    (3, 16, 32): CudaTiles(8, 2),
    (3, 32, 32): CudaTiles(4, 4),
    (3, 32, 64): CudaTiles(4, 2),
    (3, 64, 64): CudaTiles(8, 2),
    (5, 24, 56): CudaTiles(8, 4),
    (1, 16, 32): CudaTiles(8, 2),
    (1, 32, 64): CudaTiles(8, 2),
}
BACK_TILES: dict[tuple[int, int, int], CudaTiles] = {
    (3, 16, 16): CudaTiles(12, 1),
    (3, 32, 16): CudaTiles(8, 1),
    (3, 32, 32): CudaTiles(8, 1),
    (3, 64, 32): CudaTiles(8, 1),
    (3, 64, 64): CudaTiles(8, 2),
    (5, 56, 24): CudaTiles(8, 3),
    (1, 32, 16): CudaTiles(8, 2),
    (1, 64, 32): CudaTiles(8, 1),
}
"""Of the turned convolution; small blocks, as their ends wait for memory."""
WEIGHT_TILES: dict[tuple[int, int, int], CudaTiles] = {
    (3, 8, 16): CudaTiles(8, 5, 256),
    (3, 16, 16): CudaTiles(8, 9, 256),
    (3, 16, 32): CudaTiles(6, 3, 128),
    (3, 32, 32): CudaTiles(6, 6, 128),
    (3, 32, 64): CudaTiles(6, 3, 64),
    (3, 64, 64): CudaTiles(12, 3, 128),
    (5, 24, 56): CudaTiles(8, 5, 128),
    (1, 16, 32): CudaTiles(8, 1, 256),
    (1, 32, 64): CudaTiles(8, 2, 128),
}


@dataclass(frozen=True)
class CudaConv:
    """By `kernels/conv.cu`."""

    scratch: Scratch

    @staticmethod
    def suits(device: torch.device, dtype: torch.dtype, shapes: Sequence[ConvShape]) -> bool:
        """Whether there are block sizes for these convolutions that fit the device."""
        if device.type != "cuda" or dtype != torch.bfloat16 or torch.cuda.get_device_capability(device) < (8, 0):
            return False
        limit = getattr(torch.cuda.get_device_properties(device), "shared_memory_per_block_optin", 0)
        return all(memory is not None and memory <= limit for shape in shapes for memory in shared_memory(shape))

    def forward(
        self, x: Tensor, w: Tensor, y: Tensor, shape: ConvShape, *, statistics: bool, norm: Tensor | None = None
    ) -> Tensor:
        """As `Convolver` says."""
        of = CONV_TILES[shape.places, shape.inputs, shape.outputs]
        return self._conv(x, w, y, shape, of, sums=int(statistics), norm=norm)

    def backward(
        self, dy: Tensor, w: Tensor, out: Tensor, shape: ConvShape, *,
        add: Tensor | None = None, to: Receiver | None = None,
    ) -> Tensor:  # fmt: skip
        """As `Convolver` says."""
        of = BACK_TILES[shape.places, shape.inputs, shape.outputs]
        return self._conv(dy, w, out, shape, of, sums=2 if to else 0, add=add, to=to)

    def _conv(
        self, x: Tensor, w: Tensor, y: Tensor, shape: ConvShape, of: CudaTiles, *, sums: int,
        norm: Tensor | None = None, add: Tensor | None = None, to: Receiver | None = None,
    ) -> Tensor:  # fmt: skip
        from shortlist.training.fleet.kernels.nvrtc import compiled

        before, passed, to_norm = to.maps if to else (y, y, w)
        constants = conv_constants(
            shape, of, sums=sums, add=add_mode(add, y), mask=to.mask if to else 0, norm=norm is not None,
            x_halo=halo_of(x, shape.height * shape.stride), y_halo=halo_of(y, shape.height),
            before_halo=halo_of(before, shape.height),
        )  # fmt: skip
        kernel = compiled("conv.cu", "conv", constants, of.warps * 32, conv_memory(shape, of, norm=norm is not None))
        runs, M = len(x), x.shape[1] * shape.height * shape.width
        blocks = blocks_of_run(-(-M // (of.warps * of.tiles * 16)), runs, kernel.blocks_at_once)
        found = self.scratch("sums", runs, blocks, 2, shape.columns, dtype=torch.float32)
        added = y if add is None else add
        kernel(
            (blocks, runs),
            x, w, y, found, before, passed, to_norm, w if norm is None else norm, added, x.stride(0), w.stride(0),
            y.stride(0), before.stride(0), passed.stride(0), added.stride(0), M,
        )  # fmt: skip
        return found

    def weights(
        self, x: Tensor, dy: Tensor, grad: Tensor, shape: ConvShape, *,
        norm: Tensor | None = None, back: NormBack | None = None,
    ) -> None:  # fmt: skip
        """As `Convolver` says."""
        from shortlist.training.fleet.kernels.nvrtc import compiled

        of = WEIGHT_TILES[shape.places, shape.inputs, shape.outputs]
        constants = weight_constants(
            shape, of, norm=norm is not None, back=back.mode if back else 0,
            x_halo=halo_of(x, shape.height * shape.stride),
            before_halo=halo_of(back.before, shape.height) if back else 0,
        )  # fmt: skip
        memory = weight_memory(shape, of, norm=norm is not None, back=back is not None)
        kernel = compiled("conv_weight.cu", "conv_weight", constants, of.warps * 32, memory)
        runs, M = len(x), x.shape[1] * shape.height * shape.width
        blocks = blocks_of_run(-(-M // of.pixels), runs, kernel.blocks_at_once)
        parts = self.scratch("parts", runs, blocks, shape.rows, shape.columns, dtype=torch.float32)
        d, before, means, to_norm = (back.d, back.before, back.means, back.norm) if back else (dy, dy, parts, parts)
        kernel(
            (blocks, runs),
            x, dy, parts, d, before, to_norm, means, parts if norm is None else norm, x.stride(0), dy.stride(0),
            d.stride(0), before.stride(0), M,
        )  # fmt: skip
        add_parts(parts, grad, shape)


def shared_memory(shape: ConvShape) -> list[int | None]:
    """What a convolution, the turned one and the weight gradient want of a block's shared memory; None: unknown sizes.

    At most, that is with all that they can do beside. The stem, with its padded colours, is not turned.
    """
    key, turned = (shape.places, shape.inputs, shape.outputs), (shape.places, shape.outputs, shape.inputs)
    residual = shape.places != 5  # not the LeNet's
    found = [
        conv_memory(shape, CONV_TILES[key], norm=residual) if key in CONV_TILES else None,
        weight_memory(shape, WEIGHT_TILES[key], norm=residual, back=residual) if key in WEIGHT_TILES else None,
    ]
    if shape.inputs > 8:
        back = shape.turned(shape.taps * shape.outputs, shape.inputs)
        found.append(conv_memory(back, BACK_TILES[turned]) if turned in BACK_TILES else None)
    return found


def _constants(shape: ConvShape, of: CudaTiles, x_halo: int | None, norm: bool) -> dict[str, int]:
    return {
        "PLACES": shape.places, "STRIDE": shape.stride, "H": shape.height, "W": shape.width, "CI": shape.inputs,
        "CO": shape.outputs, "WN": shape.columns, "HALO": shape.places // 2 if x_halo is None else x_halo,
        "NORM": int(norm), "WARPS": of.warps, "MT": of.tiles,
    }  # fmt: skip


def conv_constants(
    shape: ConvShape, of: CudaTiles, *, sums: int = 0, add: int = 0, mask: int = 0, norm: bool = False,
    x_halo: int | None = None, y_halo: int = 0, before_halo: int = 0,
) -> dict[str, int]:  # fmt: skip
    """What `conv` is compiled with."""
    halos = {"Y_HALO": y_halo, "BEFORE_HALO": before_halo}
    return {**_constants(shape, of, x_halo, norm), "SUMS": sums, "ADD": add, "MASK": mask, **halos}


def _across(shape: ConvShape, of: CudaTiles) -> int:
    """How many warps have all rows of a weight gradient."""
    return -(-shape.real_rows // (16 * of.tiles))


def weight_constants(
    shape: ConvShape, of: CudaTiles, *, norm: bool = False, back: int = 0, x_halo: int | None = None,
    before_halo: int = 0,
) -> dict[str, int]:  # fmt: skip
    """What `conv_weight` is compiled with."""
    sizes = {"PIXEL_BLOCK": of.pixels, "ACROSS": _across(shape, of), "ROWS": shape.rows}
    return {**_constants(shape, of, x_halo, norm), **sizes, "BACK": back, "BEFORE_HALO": before_halo}


def _padded(channels: int) -> int:
    return channels if channels // 8 % 2 else channels + 8


def _span(shape: ConvShape, pixels: int) -> int:
    if shape.places == 1:  # copied one by one
        return pixels
    halo, stride = shape.places - 1, shape.stride
    breaks = -(-pixels // shape.width) * (shape.width * (stride - 1) + halo) * stride
    return pixels * stride + breaks + -(-pixels // (shape.height * shape.width)) * halo * (shape.width * stride + halo)


def _window(shape: ConvShape) -> int:
    return (shape.places - 1) * (shape.width * shape.stride + shape.places)


def conv_memory(shape: ConvShape, of: CudaTiles, *, norm: bool = False) -> int:
    """Bytes of shared memory of a block of `conv`: its norms, sums by warp, weights, two stretches of the map."""
    pixels = _span(shape, of.warps * of.tiles * 16) + _window(shape) + 1
    weights = -(-shape.real_rows // 16) * 16 * _padded(shape.outputs) * 2
    norms = (4 + 2 * of.warps) * shape.outputs * 4 + norm * 2 * shape.inputs * 4
    return norms + weights + 2 * pixels * _padded(shape.inputs) * 2


def weight_memory(shape: ConvShape, of: CudaTiles, *, norm: bool = False, back: bool = False) -> int:
    """Bytes of shared memory of a block of `conv_weight`: a pixel of zeros, the norms, two stretches of all maps."""
    pixels = _span(shape, of.pixels) + 1
    outputs = _padded(shape.outputs)
    norms = norm * 2 * shape.inputs * 4 + back * 3 * shape.outputs * 4
    gradient = of.pixels * (outputs + shape.outputs) if back else pixels * outputs
    maps = 2 * outputs + norms + 2 * 2 * ((pixels + _window(shape)) * _padded(shape.inputs) + gradient)
    across = _across(shape, of)
    # where warps have the same rows, they add up in the same memory at the end
    return max(maps, across * of.tiles * 16 * shape.outputs * 4) if of.warps > across else maps


@cache
def blocks_of_run(tiles: int, runs: int, at_once: int) -> int:
    """How many blocks share the tiles of a run, so that the device is busy to the end and few blocks begin anew.

    >>> blocks_of_run(1024, 60, 528)
    17
    """
    start = 2  # what a block does before its first tile, in tiles

    def cost(blocks: int) -> int:
        return -(-runs * blocks // at_once) * (-(-tiles // blocks) + start)

    return min(range(1, tiles + 1), key=cost)
