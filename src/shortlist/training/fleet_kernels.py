"""Triton kernels of the LeNet fleet: every kernel serves all runs at once, the run being one dimension of its grid.

Layouts. Images and feature maps are channels last. Maps that a convolution reads carry a halo of zeros as wide as its
padding, so a window is a plain offset and no load needs a mask. Channels are padded to a multiple of 8 (16-byte loads);
padded channels have zero weights and stay zero. Convolution weights are (K, N) matrices: K counts window places times
input channels, padded with zero rows to whole blocks; N is the output channels padded to a power of two.
"""

import triton
import triton.language as tl


@triton.jit
def _window(kk, PLACES: tl.constexpr, WIDTH: tl.constexpr, CI: tl.constexpr):
    """The offset, in a map with a halo, of row kk of the weight matrix from the window's first element."""
    place = kk // CI
    return ((place // PLACES) * WIDTH + place % PLACES) * CI + kk % CI


@triton.jit
def conv_kernel(
    x_ptr, w_ptr, y_ptr, stats_ptr, x_run, w_run, y_run, M,
    H: tl.constexpr, W: tl.constexpr, PLACES: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, N: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCKS_K: tl.constexpr, BLOCK_M: tl.constexpr, STATS: tl.constexpr,
):  # fmt: skip
    """y[m, n] = sum_k x[window(m), k] w[k, n]; and for batch norm the sums of y and y^2 over the tile's rows.

    x (R, B, H + PLACES - 1, W + PLACES - 1, CI), w (R, BLOCKS_K * BLOCK_K, N), y (R, B, H, W, CO),
    stats (R, tiles, 2, N). The gradient by x is the same kernel on the gradient by y with turned weights.
    """
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    WIDTH: tl.constexpr = W + PLACES - 1
    HEIGHT: tl.constexpr = H + PLACES - 1
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    valid = m < M
    row = tl.minimum(m, M - 1)
    place = row % (H * W)
    base = (((row // (H * W)) * HEIGHT + place // W) * WIDTH + place % W) * CI
    n = tl.arange(0, N)
    x_ptr += run * x_run
    w_ptr += run * w_run
    acc = tl.zeros((BLOCK_M, N), tl.float32)
    for block in range(BLOCKS_K):
        kk = block * BLOCK_K + tl.arange(0, BLOCK_K)
        a = tl.load(x_ptr + base[:, None] + _window(kk, PLACES, WIDTH, CI)[None, :])
        w = tl.load(w_ptr + kk[:, None] * N + n[None, :])
        acc = tl.dot(a, w, acc)
    out = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + run * y_run + row[:, None] * CO + n[None, :], out, mask=valid[:, None] & (n < CO)[None, :])
    if STATS:
        # of what was stored, so that mean and variance are those of the rounded values
        kept = tl.where(valid[:, None], out.to(tl.float32), 0.0)
        at = stats_ptr + ((run * tl.num_programs(0) + tile) * 2) * N + n
        tl.store(at, tl.sum(kept, 0))
        tl.store(at + N, tl.sum(kept * kept, 0))


@triton.jit
def conv_weight_kernel(
    x_ptr, d_ptr, out_ptr, x_run, d_run, M,
    H: tl.constexpr, W: tl.constexpr, PLACES: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, N: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCKS_K: tl.constexpr, BLOCK_M: tl.constexpr, SPLITS: tl.constexpr,
    STEPS: tl.constexpr,
):  # fmt: skip
    """out[split, k, n] = sum over the split's m of x[window(m), k] d[m, n]; d has a halo too."""
    block = tl.program_id(0)
    split = tl.program_id(1)
    run = tl.program_id(2).to(tl.int64)
    WIDTH: tl.constexpr = W + PLACES - 1
    HEIGHT: tl.constexpr = H + PLACES - 1
    INNER: tl.constexpr = (PLACES // 2) * (WIDTH + 1)
    kk = block * BLOCK_K + tl.arange(0, BLOCK_K)
    offset = _window(kk, PLACES, WIDTH, CI)
    n = tl.arange(0, N)
    x_ptr += run * x_run
    d_ptr += run * d_run
    acc = tl.zeros((BLOCK_K, N), tl.float32)
    for step in range(STEPS):
        m = (step * SPLITS + split) * BLOCK_M + tl.arange(0, BLOCK_M)
        row = tl.minimum(m, M - 1)
        place = row % (H * W)
        first = ((row // (H * W)) * HEIGHT + place // W) * WIDTH + place % W
        a = tl.load(x_ptr + (first * CI)[:, None] + offset[None, :])
        mask = (m < M)[:, None] & (n < CO)[None, :]
        d = tl.load(d_ptr + ((first + INNER) * CO)[:, None] + n[None, :], mask=mask, other=0.0)
        acc = tl.dot(tl.trans(a), d, acc)
    at = (run * SPLITS + split) * BLOCKS_K * BLOCK_K + kk
    tl.store(out_ptr + at[:, None] * N + n[None, :], acc)


@triton.jit
def _patch(image_ptr, base, q, py, px, WIDTH: tl.constexpr, K: tl.constexpr):
    """The 5 x 5 windows at corner q of the pooled places, a column of ones after them for the bias."""
    k = tl.arange(0, K)
    offset = tl.where(k < 25, (k // 5) * WIDTH + k % 5, 0)
    corner = (2 * py + q // 2) * WIDTH + 2 * px + q % 2
    a = tl.load(image_ptr + (base + corner)[:, None] + offset[None, :])
    return tl.where((k == 25)[None, :], 1.0, a.to(tl.float32)).to(a.dtype)


@triton.jit
def first_kernel(
    image_ptr, index_ptr, w_ptr, h_ptr, code_ptr, h_run, index_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BLOCK_M: tl.constexpr,
    CODE: tl.constexpr,
):  # fmt: skip
    """First layer in one go: 5 x 5 convolution with batch norm folded in, ReLU, 2 x 2 max pool.

    image (items, 2H + 4, 2W + 4) with a halo, index (R, B) the batch, w (R, K, N) with the bias in row 25,
    h (R, B, H + 4, W + 4, C) with a halo, code (R, B, H, W, C): which corner won, 4 where none is above zero.
    H, W are the pooled sizes.
    """
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    WIDTH: tl.constexpr = 2 * W + 4
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    valid = m < M
    row = tl.minimum(m, M - 1)
    b = row // (H * W)
    py = (row % (H * W)) // W
    px = row % W
    base = tl.load(index_ptr + run * index_run + b) * (2 * H + 4) * WIDTH
    n = tl.arange(0, N)
    w = tl.load(w_ptr + run * K * N + tl.arange(0, K)[:, None] * N + n[None, :])
    best = tl.zeros((BLOCK_M, N), tl.float32)
    code = tl.full((BLOCK_M, N), 4, tl.int32)
    for q in tl.static_range(4):
        z = tl.dot(_patch(image_ptr, base, q, py, px, WIDTH, K), w)
        code = tl.where(z > best, q, code)
        best = tl.maximum(z, best)
    mask = valid[:, None] & (n < C)[None, :]
    at = ((b * (H + 4) + py + 2) * (W + 4) + px + 2) * C
    tl.store(h_ptr + run * h_run + at[:, None] + n[None, :], best.to(h_ptr.dtype.element_ty), mask=mask)
    if CODE:
        out = code_ptr + run * M * C + row[:, None] * C + n[None, :]
        tl.store(out, code.to(tl.uint8), mask=mask)


@triton.jit
def first_weight_kernel(
    image_ptr, index_ptr, d_ptr, code_ptr, out_ptr, index_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BLOCK_M: tl.constexpr,
    SPLITS: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """out (R, SPLITS, K, N): the gradient by the folded weights of `first_kernel`, d (R, B, H, W, C)."""
    split = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    WIDTH: tl.constexpr = 2 * W + 4
    n = tl.arange(0, N)
    acc = tl.zeros((K, N), tl.float32)
    for step in range(STEPS):
        m = (step * SPLITS + split) * BLOCK_M + tl.arange(0, BLOCK_M)
        row = tl.minimum(m, M - 1)
        py = (row % (H * W)) // W
        px = row % W
        base = tl.load(index_ptr + run * index_run + row // (H * W)) * (2 * H + 4) * WIDTH
        at = run * M * C + row[:, None] * C + n[None, :]
        mask = (m < M)[:, None] & (n < C)[None, :]
        d = tl.load(d_ptr + at, mask=mask, other=0.0)
        code = tl.load(code_ptr + at, mask=mask, other=4)
        for q in tl.static_range(4):
            a = _patch(image_ptr, base, q, py, px, WIDTH, K)
            acc = tl.dot(tl.trans(a), tl.where(code == q, d, 0.0).to(a.dtype), acc)
    k = tl.arange(0, K)
    tl.store(out_ptr + ((run * SPLITS + split) * K + k[:, None]) * N + n[None, :], acc)


@triton.jit
def _corners(y_ptr, row, n, W: tl.constexpr, H: tl.constexpr, C: tl.constexpr, q):
    """Where corner q of the pooled places `row` lies in a map (B, 2H, 2W, C)."""
    place = row % (H * W)
    y = 2 * (place // W) + q // 2
    x = 2 * (place % W) + q % 2
    return (((row // (H * W)) * (2 * H) + y) * (2 * W) + x)[:, None] * C + n[None, :]


@triton.jit
def pool_kernel(
    y_ptr, scale_ptr, shift_ptr, h_ptr, y_run, h_run, h_row, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, CO: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Batch norm (as scale and shift), ReLU and 2 x 2 max pool: y (R, B, 2H, 2W, C) -> h (R, B, h_row), CO a place."""
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    row = tl.minimum(m, M - 1)
    n = tl.arange(0, N)
    scale = tl.load(scale_ptr + run * N + n)[None, :]
    shift = tl.load(shift_ptr + run * N + n)[None, :]
    best = tl.zeros((BLOCK_M, N), tl.float32)
    for q in tl.static_range(4):
        y = tl.load(y_ptr + run * y_run + _corners(y_ptr, row, n, W, H, C, q), mask=(n < C)[None, :], other=0.0)
        best = tl.maximum(best, y.to(tl.float32) * scale + shift)
    at = (row // (H * W)) * h_row + (row % (H * W)) * CO
    mask = (m < M)[:, None] & (n < CO)[None, :]
    tl.store(h_ptr + run * h_run + at[:, None] + n[None, :], best.to(h_ptr.dtype.element_ty), mask=mask)


@triton.jit
def pool_back_kernel(
    y_ptr, scale_ptr, shift_ptr, mean_ptr, rstd_ptr, c1_ptr, c2_ptr, d_ptr, out_ptr, sums_ptr,
    y_run, d_run, d_row, out_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, CO: tl.constexpr, BLOCK_M: tl.constexpr,
    APPLY: tl.constexpr,
):  # fmt: skip
    """The way back through pool, ReLU and batch norm, in two passes.

    First (APPLY false) the sums that batch norm needs: sums (R, tiles, 2, N) of dz and of dz times the normalised y.
    Then (APPLY true) dy = scale (dz - c1 - xhat c2) into out (R, B, 2H + 4, 2W + 4, C), which has a halo.
    """
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    row = tl.minimum(m, M - 1)
    n = tl.arange(0, N)
    scale = tl.load(scale_ptr + run * N + n)[None, :]
    shift = tl.load(shift_ptr + run * N + n)[None, :]
    mean = tl.load(mean_ptr + run * N + n)[None, :]
    rstd = tl.load(rstd_ptr + run * N + n)[None, :]
    best = tl.zeros((BLOCK_M, N), tl.float32)
    code = tl.full((BLOCK_M, N), 4, tl.int32)
    won = tl.zeros((BLOCK_M, N), tl.float32)  # the y that won
    y_ptr += run * y_run
    for q in tl.static_range(4):
        y = tl.load(y_ptr + _corners(y_ptr, row, n, W, H, C, q), mask=(n < C)[None, :], other=0.0).to(tl.float32)
        z = y * scale + shift
        code = tl.where(z > best, q, code)
        won = tl.where(z > best, y, won)
        best = tl.maximum(best, z)
    at = (row // (H * W)) * d_row + (row % (H * W)) * CO
    mask = (m < M)[:, None] & (n < CO)[None, :]
    d = tl.load(d_ptr + run * d_run + at[:, None] + n[None, :], mask=mask, other=0.0).to(tl.float32)
    d = tl.where(code < 4, d, 0.0)
    if APPLY:
        c1 = tl.load(c1_ptr + run * N + n)[None, :]
        c2 = tl.load(c2_ptr + run * N + n)[None, :]
        place = row % (H * W)
        keep = (m < M)[:, None] & (n < C)[None, :]
        for q in tl.static_range(4):
            y = tl.load(y_ptr + _corners(y_ptr, row, n, W, H, C, q), mask=(n < C)[None, :], other=0.0).to(tl.float32)
            g = scale * (tl.where(code == q, d, 0.0) - c1 - (y - mean) * rstd * c2)
            across = 2 * (place % W) + q % 2 + 2
            down = 2 * (place // W) + q // 2 + 2
            to = (((row // (H * W)) * (2 * H + 4) + down) * (2 * W + 4) + across)[:, None] * C + n[None, :]
            tl.store(out_ptr + run * out_run + to, g.to(out_ptr.dtype.element_ty), mask=keep)
    else:
        to = sums_ptr + ((run * tl.num_programs(0) + tile) * 2) * N + n
        tl.store(to, tl.sum(d, 0))
        tl.store(to + N, tl.sum(d * (won - mean) * rstd, 0))


@triton.jit
def norm_kernel(
    x_ptr, gamma_ptr, beta_ptr, h_ptr, mean_ptr, var_ptr, B, F,
    EPS: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_F: tl.constexpr,
):  # fmt: skip
    """Batch norm over the batch and ReLU: x (R, B, F) -> h (R, B, F); mean and variance (R, F) are kept."""
    run = tl.program_id(1).to(tl.int64)
    f = tl.program_id(0) * BLOCK_F + tl.arange(0, BLOCK_F)
    b = tl.arange(0, BLOCK_B)
    at = run * B * F + b[:, None] * F + f[None, :]
    mask = (b < B)[:, None]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / B
    centred = tl.where(mask, x - mean[None, :], 0.0)
    var = tl.sum(centred * centred, 0) / B
    scale = tl.load(gamma_ptr + run * F + f) / tl.sqrt(var + EPS)
    h = tl.maximum(centred * scale[None, :] + tl.load(beta_ptr + run * F + f)[None, :], 0.0)
    tl.store(h_ptr + at, h.to(h_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + run * F + f, mean)
    tl.store(var_ptr + run * F + f, var)


@triton.jit
def norm_back_kernel(
    x_ptr, gamma_ptr, beta_ptr, mean_ptr, var_ptr, d_ptr, out_ptr, dgamma_ptr, dbeta_ptr, B, F,
    EPS: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_F: tl.constexpr,
):  # fmt: skip
    """The way back through `norm_kernel`: out (R, B, F), dgamma and dbeta (R, F)."""
    run = tl.program_id(1).to(tl.int64)
    f = tl.program_id(0) * BLOCK_F + tl.arange(0, BLOCK_F)
    b = tl.arange(0, BLOCK_B)
    at = run * B * F + b[:, None] * F + f[None, :]
    mask = (b < B)[:, None]
    one = run * F + f
    rstd = 1 / tl.sqrt(tl.load(var_ptr + one) + EPS)
    gamma = tl.load(gamma_ptr + one)
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    normal = (x - tl.load(mean_ptr + one)[None, :]) * rstd[None, :]
    d = tl.load(d_ptr + at, mask=mask, other=0.0).to(tl.float32)
    d = tl.where(mask & (normal * gamma[None, :] + tl.load(beta_ptr + one)[None, :] > 0), d, 0.0)
    dbeta = tl.sum(d, 0)
    dgamma = tl.sum(d * normal, 0)
    g = (gamma * rstd)[None, :] * (d - (dbeta / B)[None, :] - normal * (dgamma / B)[None, :])
    tl.store(out_ptr + at, g.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(dgamma_ptr + one, dgamma)
    tl.store(dbeta_ptr + one, dbeta)


@triton.jit
def momentum_kernel(
    value_ptr, velocity_ptr, grad_ptr, copy_ptr, lr_ptr, decay_ptr, P, momentum,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """SGD with momentum on (R, P) in one pass, and a bf16 copy of the new values; a run with lr < 0 stands still."""
    run = tl.program_id(1).to(tl.int64)
    lr = tl.load(lr_ptr + run)
    if lr >= 0:
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < P
        at = run * P + i
        value = tl.load(value_ptr + at, mask=mask)
        velocity = tl.load(velocity_ptr + at, mask=mask)
        grad = tl.load(grad_ptr + at, mask=mask).to(tl.float32)
        velocity = momentum * velocity + grad + tl.load(decay_ptr + run) * value
        value -= lr * velocity
        tl.store(velocity_ptr + at, velocity, mask=mask)
        tl.store(value_ptr + at, value, mask=mask)
        tl.store(copy_ptr + at, value.to(copy_ptr.dtype.element_ty), mask=mask)
