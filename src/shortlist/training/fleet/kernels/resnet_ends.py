"""What a residual network begins and ends with."""

import triton
import triton.language as tl

from shortlist.training.fleet.kernels.changes import factor, in_square
from shortlist.training.fleet.kernels.conv import pixel_offset


@triton.jit
def input_kernel(
    images_ptr, index_ptr, moves_ptr, grey_ptr, mean_ptr, deviation_ptr, out_ptr, B, out_run,
    S: tl.constexpr, C: tl.constexpr, PAD: tl.constexpr, MOVES: tl.constexpr, PADDING: tl.constexpr,
    BLOCK_M: tl.constexpr,
):  # fmt: skip
    """The images (N, C, S, S) at index (R, B), normalised: out (R, B, S + 2, S + 2, PAD), zeros from channel C on.

    Mean and deviation (R, C) are each run's own.
    MOVES: 0, or the columns of moves (R, B, MOVES). With 3 images are cut and flipped as `augment.move_images` does it,
    PADDING being its margin; with more they are changed as by `views.change_images`, grey (N,) being their mean greys.
    """
    run = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    valid = m < B * S * S
    item, row, column = run * B + m // (S * S), m // S % S, m % S
    seen = valid
    at = moves_ptr + item * MOVES
    if MOVES > 0:
        flip = tl.load(at + 2, mask=valid, other=0) == 1
        row += tl.load(at, mask=valid, other=0).to(tl.int32) - PADDING
        column = tl.where(flip, S - 1 - column, column)
        column += tl.load(at + 1, mask=valid, other=0).to(tl.int32) - PADDING
        seen = valid & (row >= 0) & (row < S) & (column >= 0) & (column < S)
    c = tl.arange(0, PAD)
    image = tl.load(index_ptr + item, mask=valid, other=0)
    pixel = (image[:, None] * C + c[None, :]) * (S * S) + (row * S + column)[:, None]
    real = c < C
    x = tl.load(images_ptr + pixel, mask=seen[:, None] & real[None, :], other=0).to(tl.float32)
    if MOVES > 3:
        cut = in_square(at, m // S % S, m % S, valid)
        grey = tl.load(grey_ptr + image, mask=valid, other=0.0)[:, None]
        x = tl.where(cut[:, None], grey, x)
        share = tl.where(c == 0, 0.299, tl.where(c == 1, 0.587, tl.where(c == 2, 0.114, 0.0)))
        own = tl.sum(x * share[None, :], 1)[:, None]
        brightness, contrast = factor(at, 3, valid)[:, None], factor(at, 4, valid)[:, None]
        saturation = factor(at, 5, valid)[:, None]
        x = brightness * (contrast * (saturation * x + (1 - saturation) * own) + (1 - contrast) * grey)
        x = tl.where(real[None, :], x, 0.0)
    of = run * C + c
    mean, deviation = tl.load(mean_ptr + of, mask=real, other=0.0), tl.load(deviation_ptr + of, mask=real, other=1.0)
    z = (x - mean[None, :]) / deviation[None, :]
    to = out_ptr + run * out_run + pixel_offset(m, S, S, 1, 1, 1)[:, None] * PAD + c[None, :]
    tl.store(to, z.to(out_ptr.dtype.element_ty), mask=valid[:, None])


@triton.jit
def pool_kernel(a_ptr, out_ptr, B, a_run, S: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr):
    """The mean over a map: a (R, B, S + 2, S + 2, C), out (R, B, C)."""
    image = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    pixel = tl.arange(0, BLOCK)
    n = tl.arange(0, C)
    at = pixel_offset(image * S * S + pixel, S, S, 1, 1, 1)[:, None] * C + n[None, :]
    a = tl.load(a_ptr + run * a_run + at, mask=(pixel < S * S)[:, None], other=0.0).to(tl.float32)
    tl.store(out_ptr + (run * B + image) * C + n, (tl.sum(a, 0) / (S * S)).to(out_ptr.dtype.element_ty))
