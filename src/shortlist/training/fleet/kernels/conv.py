"""Convolutions as matrix products over windows that are read in place."""

import triton
import triton.language as tl


@triton.jit
def _window(kk, PLACES: tl.constexpr, WIDTH: tl.constexpr, CI: tl.constexpr):
    """The offset, in a map with a halo, of row kk of the weight matrix from the window's first element."""
    place = kk // CI
    return ((place // PLACES) * WIDTH + place % PLACES) * CI + kk % CI


@triton.jit
def pixel_offset(row, H: tl.constexpr, W: tl.constexpr, HALO: tl.constexpr, STRIDE: tl.constexpr, FIRST: tl.constexpr):
    """Where pixel `row` of maps (B, H, W) lies in maps with a halo, STRIDE apart; FIRST is the place of the first."""
    place = row % (H * W)
    down = (row // (H * W)) * (H * STRIDE + 2 * HALO) + place // W * STRIDE + FIRST
    return down * (W * STRIDE + 2 * HALO) + place % W * STRIDE + FIRST


@triton.jit
def relu_bits(ptr, row, n, C: tl.constexpr, mask):
    """Whether channels n of pixels `row` passed a ReLU, from bits (B, H, W, C / 8)."""
    at = row[:, None] * C + n[None, :]
    return (tl.load(ptr + at // 8, mask=mask, other=0).to(tl.int32) >> (at % 8)) & 1 > 0


@triton.jit
def _activate(x, norm_ptr, kk, CI: tl.constexpr):
    """Batch norm and ReLU of columns kk of windows; NaNs, which stand for the halo, become zeros."""
    scale, shift = tl.load(norm_ptr + kk % CI), tl.load(norm_ptr + CI + kk % CI)
    z = x.to(tl.float32) * scale[None, :] + shift[None, :]
    return tl.where(z > 0, z, 0.0).to(x.dtype)


@triton.jit
def conv_kernel(
    x_ptr, w_ptr, y_ptr, sums_ptr, before_ptr, passed_ptr, norm_ptr, x_norm_ptr, added_ptr, x_run, w_run, y_run,
    before_run, passed_run, added_run, M,
    H: tl.constexpr, W: tl.constexpr, PLACES: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, N: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCKS_K: tl.constexpr, BLOCK_M: tl.constexpr, STRIDE: tl.constexpr, HALO: tl.constexpr,
    Y_HALO: tl.constexpr, BEFORE_HALO: tl.constexpr, NORM: tl.constexpr, SUMS: tl.constexpr, ADD: tl.constexpr,
    MASK: tl.constexpr,
):  # fmt: skip
    """y[m, n] = sum_k x[window(m), k] w[k, n]; what NORM, SUMS, ADD and MASK do is said in `conv.cu`.

    x (R, B, H STRIDE + 2 HALO, W STRIDE + 2 HALO, CI), w (R, rows, N), y (R, B, H, W, CO) with its halo, sums (R,
    tiles, 2, N).
    """
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    WIDTH: tl.constexpr = W * STRIDE + 2 * HALO
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    valid = m < M
    row = tl.minimum(m, M - 1)
    base = pixel_offset(row, H, W, HALO, STRIDE, HALO - PLACES // 2) * CI
    n = tl.arange(0, N)
    x_ptr += run * x_run
    w_ptr += run * w_run
    acc = tl.zeros((BLOCK_M, N), tl.float32)
    for block in range(BLOCKS_K):
        kk = block * BLOCK_K + tl.arange(0, BLOCK_K)
        a = tl.load(x_ptr + base[:, None] + _window(kk, PLACES, WIDTH, CI)[None, :])
        if NORM:
            a = _activate(a, x_norm_ptr + run * 4 * CI, kk, CI)
        w = tl.load(w_ptr + kk[:, None] * N + n[None, :])
        acc = tl.dot(a, w, acc)
    at = run * y_run + pixel_offset(row, H, W, Y_HALO, 1, Y_HALO)[:, None] * CO + n[None, :]
    mask = valid[:, None] & (n < CO)[None, :]
    norm_ptr += run * 4 * CO + n[None, :]
    if ADD == 1:
        from_ptr = added_ptr + run * added_run + row[:, None] * CO + n[None, :]
        acc += tl.load(from_ptr, mask=mask, other=0.0).to(tl.float32)
    if ADD == 2:
        down, across = row // W % H, row % W
        met = ((row // (H * W)) * (H // 2) + down // 2) * (W // 2) + across // 2
        from_ptr = added_ptr + run * added_run + met[:, None] * CO + n[None, :]
        meets = ((down % 2 == 0) & (across % 2 == 0))[:, None]
        acc += tl.load(from_ptr, mask=mask & meets, other=0.0).to(tl.float32)
    if SUMS == 2:
        inside = pixel_offset(row, H, W, BEFORE_HALO, 1, BEFORE_HALO)[:, None] * CO
        before = tl.load(before_ptr + run * before_run + inside + n[None, :], mask=mask, other=0.0).to(tl.float32)
    if MASK == 1:
        acc = tl.where(relu_bits(passed_ptr + run * passed_run, row, n, CO, mask), acc, 0.0)
    if MASK == 2:
        acc = tl.where(before * tl.load(norm_ptr) + tl.load(norm_ptr + CO) > 0, acc, 0.0)
    out = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + at, out, mask=mask)
    if SUMS:
        # of what was stored, so that mean and variance are those of the rounded values
        kept = tl.where(mask, out.to(tl.float32), 0.0)
        other = kept
        if SUMS == 2:
            other = (before - tl.load(norm_ptr + 2 * CO)) * tl.load(norm_ptr + 3 * CO)
        to = sums_ptr + ((run * tl.num_programs(0) + tile) * 2) * N + n
        tl.store(to, tl.sum(kept, 0))
        tl.store(to + N, tl.sum(kept * other, 0))


@triton.jit
def conv_weight_kernel(
    x_ptr, d_ptr, out_ptr, x_norm_ptr, x_run, d_run, M,
    H: tl.constexpr, W: tl.constexpr, PLACES: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, N: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCKS_K: tl.constexpr, BLOCK_M: tl.constexpr, SPLITS: tl.constexpr,
    STEPS: tl.constexpr, STRIDE: tl.constexpr, HALO: tl.constexpr, APART: tl.constexpr, NORM: tl.constexpr,
):  # fmt: skip
    """out[split, k, n] = sum over the split's m of x[window(m), k] d[m, n].

    d lies in a map with a halo as wide as the window wants, APART. NORM is said in `conv.cuh`.
    """
    block = tl.program_id(0)
    split = tl.program_id(1)
    run = tl.program_id(2).to(tl.int64)
    WIDTH: tl.constexpr = W * STRIDE + 2 * HALO
    kk = block * BLOCK_K + tl.arange(0, BLOCK_K)
    offset = _window(kk, PLACES, WIDTH, CI)
    n = tl.arange(0, N)
    x_ptr += run * x_run
    d_ptr += run * d_run
    acc = tl.zeros((BLOCK_K, N), tl.float32)
    for step in range(STEPS):
        m = (step * SPLITS + split) * BLOCK_M + tl.arange(0, BLOCK_M)
        row = tl.minimum(m, M - 1)
        base = pixel_offset(row, H, W, HALO, STRIDE, HALO - PLACES // 2) * CI
        a = tl.load(x_ptr + base[:, None] + offset[None, :])
        if NORM:
            a = _activate(a, x_norm_ptr + run * 4 * CI, kk, CI)
        mask = (m < M)[:, None] & (n < CO)[None, :]
        inside = pixel_offset(row, H, W, PLACES // 2, APART, PLACES // 2) * CO
        d = tl.load(d_ptr + inside[:, None] + n[None, :], mask=mask, other=0.0)
        acc = tl.dot(tl.trans(a), d, acc)
    at = (run * SPLITS + split) * BLOCKS_K * BLOCK_K + kk
    tl.store(out_ptr + at[:, None] * N + n[None, :], acc)


@triton.jit
def add_parts_kernel(
    parts_ptr, out_ptr, size, real, small, SPLITS: tl.constexpr, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The sum over splits of parts (R, SPLITS, size), into the small gradients; zero from `real` on (padding)."""
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((AT_ONCE, BLOCK), tl.float32)
    for start in range(0, SPLITS, AT_ONCE):
        split = start + tl.arange(0, AT_ONCE)
        mask = (split < SPLITS)[:, None] & (i < real)[None, :]
        acc += tl.load(parts_ptr + (run * SPLITS + split[:, None]) * size + i[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + run * small + i, tl.sum(acc, 0), mask=i < size)
