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
    BLOCK_K: tl.constexpr, BLOCKS_K: tl.constexpr, BLOCK_M: tl.constexpr, STATS: tl.constexpr, TURNED: tl.constexpr,
    WN: tl.constexpr, CACHE: tl.constexpr,
):  # fmt: skip
    """y[m, n] = sum_k x[window(m), k] w[k, n]; and for batch norm the sums of y and y^2 over the tile's rows.

    x (R, B, H + PLACES - 1, W + PLACES - 1, CI), w (R, rows, WN), y (R, B, H, W, CO), stats (R, tiles, 2, N). The
    gradient by x is the same kernel on the gradient by y with the window turned round (TURNED: w is then read as
    w[(last place - place) * CO + n, channel of x]).
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
        a = tl.load(x_ptr + base[:, None] + _window(kk, PLACES, WIDTH, CI)[None, :], cache_modifier=CACHE)
        if TURNED:
            tap = PLACES * PLACES - 1 - kk // CI
            real = (tap >= 0)[:, None] & (n < CO)[None, :]
            w = tl.load(w_ptr + (tap * CO * WN + kk % CI)[:, None] + (n * WN)[None, :], mask=real, other=0.0)
        else:
            w = tl.load(w_ptr + kk[:, None] * WN + n[None, :])
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
    STEPS: tl.constexpr, CACHE: tl.constexpr,
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
        a = tl.load(x_ptr + (first * CI)[:, None] + offset[None, :], cache_modifier=CACHE)
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
    y_ptr, norm_ptr, h_ptr, y_run, h_run, h_row, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, CO: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Batch norm (what `stats_kernel` wrote), ReLU, 2 x 2 max pool: y (R, B, 2H, 2W, C) -> h (R, B, h_row)."""
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    row = tl.minimum(m, M - 1)
    n = tl.arange(0, N)
    scale = tl.load(norm_ptr + run * 4 * N + n)[None, :]
    shift = tl.load(norm_ptr + run * 4 * N + N + n)[None, :]
    best = tl.zeros((BLOCK_M, N), tl.float32)
    for q in tl.static_range(4):
        y = tl.load(y_ptr + run * y_run + _corners(y_ptr, row, n, W, H, C, q), mask=(n < C)[None, :], other=0.0)
        best = tl.maximum(best, y.to(tl.float32) * scale + shift)
    at = (row // (H * W)) * h_row + (row % (H * W)) * CO
    mask = (m < M)[:, None] & (n < CO)[None, :]
    tl.store(h_ptr + run * h_run + at[:, None] + n[None, :], best.to(h_ptr.dtype.element_ty), mask=mask)


@triton.jit
def pool_back_kernel(
    y_ptr, norm_ptr, means_ptr, d_ptr, out_ptr, sums_ptr,
    y_run, d_run, d_row, out_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, CO: tl.constexpr, BLOCK_M: tl.constexpr,
    APPLY: tl.constexpr,
):  # fmt: skip
    """The way back through pool, ReLU and batch norm, in two passes.

    First (APPLY false) the sums that batch norm needs: sums (R, tiles, 2, N) of dz and of dz times the normalised y.
    Then (APPLY true) dy = scale (dz - mean of dz - xhat mean of dz xhat) into out (R, B, 2H + 4, 2W + 4, C).
    """
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    row = tl.minimum(m, M - 1)
    n = tl.arange(0, N)
    norm_ptr += run * 4 * N + n
    scale = tl.load(norm_ptr)[None, :]
    shift = tl.load(norm_ptr + N)[None, :]
    mean = tl.load(norm_ptr + 2 * N)[None, :]
    rstd = tl.load(norm_ptr + 3 * N)[None, :]
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
        c1 = tl.load(means_ptr + run * 2 * N + n)[None, :]
        c2 = tl.load(means_ptr + run * 2 * N + N + n)[None, :]
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
def _move(ptr, at, value, step):
    """A running statistic moved towards a batch's."""
    old = tl.load(ptr + at)
    tl.store(ptr + at, old + step * (value - old))


@triton.jit
def norm_kernel(
    x_ptr, gamma_ptr, beta_ptr, bias_ptr, h_ptr, mean_ptr, var_ptr, run_mean_ptr, run_var_ptr, active_ptr, B, F, small,
    EPS: tl.constexpr, MOMENTUM: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_F: tl.constexpr,
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
    scale = tl.load(gamma_ptr + run * small + f) / tl.sqrt(var + EPS)
    h = tl.maximum(centred * scale[None, :] + tl.load(beta_ptr + run * small + f)[None, :], 0.0)
    tl.store(h_ptr + at, h.to(h_ptr.dtype.element_ty), mask=mask)
    one = run * F + f
    tl.store(mean_ptr + one, mean)
    tl.store(var_ptr + one, var)
    step = MOMENTUM * tl.load(active_ptr + run)
    _move(run_mean_ptr, one, mean + tl.load(bias_ptr + run * small + f), step)
    _move(run_var_ptr, one, var * (B / tl.maximum(B - 1, 1)), step)


@triton.jit
def norm_back_kernel(
    x_ptr, gamma_ptr, beta_ptr, mean_ptr, var_ptr, d_ptr, out_ptr, dgamma_ptr, dbeta_ptr, B, F, small,
    EPS: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_F: tl.constexpr,
):  # fmt: skip
    """The way back through `norm_kernel`: out (R, B, F), dgamma and dbeta inside the small gradients."""
    run = tl.program_id(1).to(tl.int64)
    f = tl.program_id(0) * BLOCK_F + tl.arange(0, BLOCK_F)
    b = tl.arange(0, BLOCK_B)
    at = run * B * F + b[:, None] * F + f[None, :]
    mask = (b < B)[:, None]
    one = run * F + f
    rstd = 1 / tl.sqrt(tl.load(var_ptr + one) + EPS)
    gamma = tl.load(gamma_ptr + run * small + f)
    beta = tl.load(beta_ptr + run * small + f)
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    normal = (x - tl.load(mean_ptr + one)[None, :]) * rstd[None, :]
    d = tl.load(d_ptr + at, mask=mask, other=0.0).to(tl.float32)
    d = tl.where(mask & (normal * gamma[None, :] + beta[None, :] > 0), d, 0.0)
    dbeta = tl.sum(d, 0)
    dgamma = tl.sum(d * normal, 0)
    g = (gamma * rstd)[None, :] * (d - (dbeta / B)[None, :] - normal * (dgamma / B)[None, :])
    tl.store(out_ptr + at, g.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(dgamma_ptr + run * small + f, dgamma)
    tl.store(dbeta_ptr + run * small + f, dbeta)


@triton.jit
def _sum_tiles(ptr, TILES: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of TILES rows of WIDTH numbers."""
    acc = tl.zeros((BLOCK, WIDTH), tl.float32)
    column = tl.arange(0, WIDTH)
    for start in range(0, TILES, BLOCK):
        row = start + tl.arange(0, BLOCK)
        acc += tl.load(ptr + row[:, None] * WIDTH + column[None, :], mask=(row < TILES)[:, None], other=0.0)
    return tl.sum(acc, 0)


@triton.jit
def stats_kernel(
    stats_ptr, gamma_ptr, beta_ptr, bias_ptr, out_ptr, run_mean_ptr, run_var_ptr, active_ptr, count, small,
    TILES: tl.constexpr, N: tl.constexpr, EPS: tl.constexpr, MOMENTUM: tl.constexpr, TRAIN: tl.constexpr,
):  # fmt: skip
    """Batch norm of a map from its tiles' sums: out (R, 4, N) scale, shift, mean, 1 / deviation; running statistics."""
    run = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, N)
    one = run * N + n
    bias = tl.load(bias_ptr + run * small + n)
    if TRAIN:
        both = tl.reshape(_sum_tiles(stats_ptr + run * TILES * 2 * N, TILES, 2 * N, 16), (2, N)) / count
        first = (tl.arange(0, 2) == 0)[:, None]
        mean = tl.sum(tl.where(first, both, 0.0), 0)
        var = tl.maximum(tl.sum(tl.where(first, 0.0, both), 0) - mean * mean, 0.0)
        step = MOMENTUM * tl.load(active_ptr + run)
        _move(run_mean_ptr, one, mean + bias, step)
        _move(run_var_ptr, one, var * (count / tl.maximum(count - 1, 1)), step)
    else:
        mean = tl.load(run_mean_ptr + one) - bias
        var = tl.load(run_var_ptr + one)
    rstd = 1 / tl.sqrt(var + EPS)
    scale = tl.load(gamma_ptr + run * small + n) * rstd
    out_ptr += run * 4 * N + n
    tl.store(out_ptr, scale)
    tl.store(out_ptr + N, tl.load(beta_ptr + run * small + n) - scale * mean)
    tl.store(out_ptr + 2 * N, mean)
    tl.store(out_ptr + 3 * N, rstd)


@triton.jit
def stats_back_kernel(
    sums_ptr, out_ptr, dgamma_ptr, dbeta_ptr, count, small, TILES: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """From the tiles' sums of `pool_back_kernel`: dbeta, dgamma, and out (R, 2, N) their means over the map."""
    run = tl.program_id(0).to(tl.int64)
    both = tl.reshape(_sum_tiles(sums_ptr + run * TILES * 2 * N, TILES, 2 * N, 16), (2, N))
    n = tl.arange(0, N)
    first = (tl.arange(0, 2) == 0)[:, None]
    dbeta = tl.sum(tl.where(first, both, 0.0), 0)
    dgamma = tl.sum(tl.where(first, 0.0, both), 0)
    tl.store(dbeta_ptr + run * small + n, dbeta)
    tl.store(dgamma_ptr + run * small + n, dgamma)
    tl.store(out_ptr + run * 2 * N + n, dbeta / count)
    tl.store(out_ptr + run * 2 * N + N + n, dgamma / count)


@triton.jit
def add_parts_kernel(parts_ptr, out_ptr, size, real, small, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """The sum over splits of parts (R, SPLITS, size), into the small gradients; zero from `real` on (padding)."""
    run = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for split in tl.static_range(SPLITS):
        acc += tl.load(parts_ptr + (run * SPLITS + split) * size + i, mask=i < real, other=0.0)
    tl.store(out_ptr + run * small + i, acc, mask=i < size)


@triton.jit
def fold_kernel(
    sums_ptr, place_ptr, w_ptr, gamma_ptr, beta_ptr, bias_ptr, out_ptr, kept_ptr, run_mean_ptr, run_var_ptr, active_ptr,
    count, small, width,
    C: tl.constexpr, K: tl.constexpr, EPS: tl.constexpr, MOMENTUM: tl.constexpr, TRAIN: tl.constexpr,
):  # fmt: skip
    """conv1 with batch norm folded in: out (R, K, K) rows of taps, the bias in row 25; for the way back, kept.

    sums (R, width): the batch's sums of the 25 window places and of their 325 products; place (K, K) says where the
    product of two places lies. kept (R, K + 3, K): W C, then the mean of the places, the outputs' mean and 1/deviation.
    """
    run = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, K)  # channels
    k = tl.arange(0, K)  # places
    channel = n < C
    w = tl.load(
        w_ptr + run * small + n[:, None] * 25 + k[None, :], mask=channel[:, None] & (k < 25)[None, :], other=0.0
    )
    bias = tl.load(bias_ptr + run * small + n, mask=channel, other=0.0)
    one = run * C + n
    if TRAIN:
        m = tl.load(sums_ptr + run * width + k, mask=k < 25, other=0.0) / count
        at = tl.load(place_ptr + k[:, None] * K + k[None, :])
        second = tl.load(sums_ptr + run * width + at, mask=at >= 0, other=0.0) / count
        wc = tl.dot(w, second - m[:, None] * m[None, :], input_precision="ieee")
        mean = tl.sum(w * m[None, :], 1)
        var = tl.sum(wc * w, 1)
        step = MOMENTUM * tl.load(active_ptr + run)
        old = tl.load(run_mean_ptr + one, mask=channel, other=0.0)
        tl.store(run_mean_ptr + one, old + step * (mean + bias - old), mask=channel)
        old = tl.load(run_var_ptr + one, mask=channel, other=0.0)
        tl.store(run_var_ptr + one, old + step * (var * (count / (count - 1)) - old), mask=channel)
    else:
        mean = tl.load(run_mean_ptr + one, mask=channel, other=0.0) - bias
        var = tl.load(run_var_ptr + one, mask=channel, other=1.0)
    rstd = 1 / tl.sqrt(var + EPS)
    scale = tl.load(gamma_ptr + run * small + n, mask=channel, other=0.0) * rstd
    shift = tl.load(beta_ptr + run * small + n, mask=channel, other=0.0) - scale * mean
    folded = tl.where((k == 25)[None, :], shift[:, None], w * scale[:, None])
    tl.store(out_ptr + run * K * K + k[None, :] * K + n[:, None], folded.to(out_ptr.dtype.element_ty))
    if TRAIN:
        kept_ptr += run * (K + 3) * K
        tl.store(kept_ptr + n[:, None] * K + k[None, :], wc)
        tl.store(kept_ptr + K * K + k, m)
        tl.store(kept_ptr + (K + 1) * K + n, mean)
        tl.store(kept_ptr + (K + 2) * K + n, rstd)


@triton.jit
def fold_back_kernel(
    parts_ptr, kept_ptr, w_ptr, gamma_ptr, dw_ptr, dgamma_ptr, dbeta_ptr, small,
    C: tl.constexpr, K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """The way back through `fold_kernel` from the parts (R, SPLITS, K, K) of the gradient by the folded weights."""
    run = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, K)
    k = tl.arange(0, K)
    channel = n < C
    real = channel[:, None] & (k < 25)[None, :]
    d = tl.zeros((K, K), tl.float32)  # (channels, places)
    for split in range(SPLITS):
        d += tl.load(parts_ptr + (run * SPLITS + split) * K * K + k[None, :] * K + n[:, None])
    db = tl.sum(tl.where((k == 25)[None, :], d, 0.0), 1)
    d = tl.where(real, d, 0.0)
    w = tl.load(w_ptr + run * small + n[:, None] * 25 + k[None, :], mask=real, other=0.0)
    gamma = tl.load(gamma_ptr + run * small + n, mask=channel, other=0.0)
    kept_ptr += run * (K + 3) * K
    wc = tl.load(kept_ptr + n[:, None] * K + k[None, :])
    m = tl.load(kept_ptr + K * K + k)
    mean = tl.load(kept_ptr + (K + 1) * K + n)
    rstd = tl.load(kept_ptr + (K + 2) * K + n)
    scale = gamma * rstd
    dscale = tl.sum(d * w, 1) - db * mean
    dvar = -0.5 * rstd * rstd * rstd * gamma * dscale
    dw = d * scale[:, None] + 2 * dvar[:, None] * wc - (db * scale)[:, None] * m[None, :]
    tl.store(dw_ptr + run * small + n[:, None] * 25 + k[None, :], dw, mask=real)
    tl.store(dgamma_ptr + run * small + n, dscale * rstd, mask=channel)
    tl.store(dbeta_ptr + run * small + n, db, mask=channel)


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
