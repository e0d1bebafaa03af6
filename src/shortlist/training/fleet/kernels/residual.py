"""What a residual network needs between its convolutions."""

import triton
import triton.language as tl

from shortlist.training.fleet.kernels.conv import pixel_offset, relu_bits


@triton.jit
def act_kernel(
    y_ptr, norm_ptr, r_ptr, r_norm_ptr, out_ptr, passed_ptr, y_run, r_run, out_run, passed_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BLOCK_M: tl.constexpr, SHORTCUT: tl.constexpr,
    PASSED: tl.constexpr,
):  # fmt: skip
    """out = relu(norm(y) + shortcut): y (R, B, H, W, C), out with a halo of 1.

    SHORTCUT 0: none; 1: r, a map with a halo; 2: norm of r, a map without. PASSED: a bit for each value that was above
    zero, (R, B, H, W, C / 8): the way back needs no more of `out`.
    """
    run = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    mask = (m < M)[:, None]
    n = tl.arange(0, C)[None, :]
    at = m[:, None] * C + n
    inside = pixel_offset(m, H, W, 1, 1, 1)[:, None] * C + n
    norm_ptr += run * 4 * C + n
    z = tl.load(y_ptr + run * y_run + at, mask=mask, other=0.0).to(tl.float32) * tl.load(norm_ptr) + tl.load(
        norm_ptr + C
    )
    if SHORTCUT == 1:
        z += tl.load(r_ptr + run * r_run + inside, mask=mask, other=0.0).to(tl.float32)
    if SHORTCUT == 2:
        r_norm_ptr += run * 4 * C + n
        r = tl.load(r_ptr + run * r_run + at, mask=mask, other=0.0).to(tl.float32)
        z += r * tl.load(r_norm_ptr) + tl.load(r_norm_ptr + C)
    tl.store(out_ptr + run * out_run + inside, tl.maximum(z, 0.0).to(out_ptr.dtype.element_ty), mask=mask)
    if PASSED:
        bits = tl.reshape((z > 0).to(tl.int32) << (n % 8), (BLOCK_M, C // 8, 8))
        to = passed_ptr + run * passed_run + m[:, None] * (C // 8) + tl.arange(0, C // 8)[None, :]
        tl.store(to, tl.sum(bits, 2).to(tl.uint8), mask=mask)


@triton.jit
def sums_kernel(
    d_ptr, spread_ptr, passed_ptr, y_ptr, norm_ptr, sums_ptr, d_run, passed_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BLOCK_M: tl.constexpr, SPREAD: tl.constexpr,
    MASK: tl.constexpr,
):  # fmt: skip
    """Sums (R, tiles, 2, C) of d (R, B, H, W, C) and of d times the normalised y, for batch norm's way back.

    SPREAD: d is first made, each image's map the same row of `spread` (R, B, C) everywhere. MASK: it is set to zero,
    for good, where the bits `passed` (R, B, H, W, C / 8) say that nothing passed the ReLU.
    """
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    mask = (m < M)[:, None]
    n = tl.arange(0, C)
    at = run * d_run + m[:, None] * C + n[None, :]
    if SPREAD:
        image = run * (M // (H * W)) + m // (H * W)
        d = tl.load(spread_ptr + image[:, None] * C + n[None, :], mask=mask, other=0.0)
    else:
        d = tl.load(d_ptr + at, mask=mask, other=0.0)
    if MASK:
        d = tl.where(relu_bits(passed_ptr + run * passed_run, m, n, C, mask), d, 0.0)
    if SPREAD or MASK:
        tl.store(d_ptr + at, d, mask=mask)
    norm_ptr += run * 4 * C + n[None, :]
    y = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
    normal = (y - tl.load(norm_ptr + 2 * C)) * tl.load(norm_ptr + 3 * C)
    d = d.to(tl.float32)
    to = sums_ptr + ((run * tl.num_programs(0) + tile) * 2) * C + n
    tl.store(to, tl.sum(d, 0))
    tl.store(to + C, tl.sum(d * normal, 0))


@triton.jit
def norm_back_kernel(
    d_ptr, y_ptr, norm_ptr, means_ptr, out_ptr, d_run, y_run, out_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BLOCK_M: tl.constexpr, BEFORE_HALO: tl.constexpr,
    HALO: tl.constexpr, STRIDE: tl.constexpr,
):  # fmt: skip
    """The way back through batch norm: from d (R, B, H, W, C) the gradient by y, a map with a halo, into out.

    out has its pixels STRIDE apart in a map with a halo.
    """
    run = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    mask = (m < M)[:, None]
    n = tl.arange(0, C)[None, :]
    d = tl.load(d_ptr + run * d_run + m[:, None] * C + n, mask=mask, other=0.0).to(tl.float32)
    at = pixel_offset(m, H, W, BEFORE_HALO, 1, BEFORE_HALO)[:, None] * C + n
    y = tl.load(y_ptr + run * y_run + at, mask=mask, other=0.0).to(tl.float32)
    norm_ptr += run * 4 * C + n
    means_ptr += run * 2 * C + n
    normal = (y - tl.load(norm_ptr + 2 * C)) * tl.load(norm_ptr + 3 * C)
    g = tl.load(norm_ptr) * (d - tl.load(means_ptr) - normal * tl.load(means_ptr + C))
    to = pixel_offset(m, H, W, HALO, STRIDE, HALO)[:, None] * C + n
    tl.store(out_ptr + run * out_run + to, g.to(out_ptr.dtype.element_ty), mask=mask)
