"""What only the LeNet needs: its first layer in one kernel, pooling, and batch norm of a fully connected layer.

The first layer and the second pool's way back are in `lenet.cu` as well, for bf16.
"""

import triton
import triton.language as tl

from shortlist.training.fleet.kernels.norm import _move


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
    y_ptr, norm_ptr, h_ptr, won_ptr, y_run, h_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, CO: tl.constexpr, BLOCK_M: tl.constexpr,
    ROW: tl.constexpr, TRAIN: tl.constexpr,
):  # fmt: skip
    """Batch norm (what `stats_kernel` wrote), ReLU, 2 x 2 max pool: y (R, B, 2H, 2W, C) -> h (R, B, ROW).

    For the way back, won (like h): the y of the corner with the highest value, above zero or not. ROW is known when the
    kernel is compiled, as Triton moves two numbers at a time only if it knows that rows are even.
    """
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    row = tl.minimum(m, M - 1)
    n = tl.arange(0, N)
    scale = tl.load(norm_ptr + run * 4 * N + n)[None, :]
    shift = tl.load(norm_ptr + run * 4 * N + N + n)[None, :]
    best = tl.full((BLOCK_M, N), float("-inf"), tl.float32)
    won = tl.zeros((BLOCK_M, N), tl.float32)
    for q in tl.static_range(4):
        y = tl.load(y_ptr + run * y_run + _corners(y_ptr, row, n, W, H, C, q), mask=(n < C)[None, :], other=0.0)
        z = y.to(tl.float32) * scale + shift
        won = tl.where(z > best, y.to(tl.float32), won)
        best = tl.maximum(best, z)
    at = ((row // (H * W)) * ROW + (row % (H * W)) * CO)[:, None] + n[None, :]
    mask = (m < M)[:, None] & (n < CO)[None, :]
    tl.store(h_ptr + run * h_run + at, tl.maximum(best, 0.0).to(h_ptr.dtype.element_ty), mask=mask)
    if TRAIN:
        tl.store(won_ptr + run * h_run + at, won.to(won_ptr.dtype.element_ty), mask=mask)


@triton.jit
def pool_sums_kernel(
    won_ptr, norm_ptr, d_ptr, sums_ptr, h_run, M,
    PLACES: tl.constexpr, N: tl.constexpr, CO: tl.constexpr, BLOCK_M: tl.constexpr, ROW: tl.constexpr,
):  # fmt: skip
    """What batch norm's way back needs to know of the whole map, from the pooled one alone.

    Only a corner that won has a gradient, so `pool_kernel`'s won (R, B, ROW) and the gradient d (like it) say it all:
    sums (R, tiles, 2, N) of dz and of dz times the normalised y.
    """
    tile = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, N)
    at = ((m // PLACES) * ROW + (m % PLACES) * CO)[:, None] + n[None, :]
    mask = (m < M)[:, None] & (n < CO)[None, :]
    won = tl.load(won_ptr + run * h_run + at, mask=mask, other=0.0).to(tl.float32)
    d = tl.load(d_ptr + run * h_run + at, mask=mask, other=0.0).to(tl.float32)
    norm_ptr += run * 4 * N + n
    passed = won * tl.load(norm_ptr)[None, :] + tl.load(norm_ptr + N)[None, :] > 0
    d = tl.where(passed, d, 0.0)
    normal = (won - tl.load(norm_ptr + 2 * N)[None, :]) * tl.load(norm_ptr + 3 * N)[None, :]
    to = sums_ptr + ((run * tl.num_programs(0) + tile) * 2) * N + n
    tl.store(to, tl.sum(d, 0))
    tl.store(to + N, tl.sum(d * normal, 0))


@triton.jit
def pool_back_kernel(
    y_ptr, norm_ptr, means_ptr, d_ptr, out_ptr, y_run, d_run, out_run, M,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr, CO: tl.constexpr, BLOCK_M: tl.constexpr,
    ROW: tl.constexpr,
):  # fmt: skip
    """The way back through pool, ReLU and batch norm; `lenet.cu` has it for bf16.

    dy = scale (dz - mean of dz - xhat mean of dz xhat) into out (R, B, 2H + 4, 2W + 4, C), the means (R, 2, N) given.
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
    y_ptr += run * y_run
    for q in tl.static_range(4):
        y = tl.load(y_ptr + _corners(y_ptr, row, n, W, H, C, q), mask=(n < C)[None, :], other=0.0).to(tl.float32)
        z = y * scale + shift
        code = tl.where(z > best, q, code)
        best = tl.maximum(best, z)
    at = (row // (H * W)) * ROW + (row % (H * W)) * CO
    mask = (m < M)[:, None] & (n < CO)[None, :]
    d = tl.load(d_ptr + run * d_run + at[:, None] + n[None, :], mask=mask, other=0.0).to(tl.float32)
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


@triton.jit
def head_back_kernel(
    d_ptr, out_ptr, grad_ptr, B, small,
    K: tl.constexpr, N: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_B: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """The gradient by the logits (R, B, K) as the products want it, (R, B, N), and its sum, that of the last bias."""
    run = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_B, BLOCK_N), tl.float32)
    for step in range(STEPS):
        b = step * BLOCK_B + tl.arange(0, BLOCK_B)
        inside = (b < B)[:, None]
        row = (run * B + b)[:, None]
        d = tl.load(d_ptr + row * K + n[None, :], mask=inside & (n < K)[None, :], other=0.0)
        acc += d
        to = out_ptr + row * N + n[None, :]
        tl.store(to, d.to(out_ptr.dtype.element_ty), mask=inside & (n < N)[None, :])
    tl.store(grad_ptr + run * small + n, tl.sum(acc, 0), mask=n < N)


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
def moments_kernel(
    index_ptr, moment_ptr, out_ptr, B, width, BLOCK_B: tl.constexpr, COLUMNS: tl.constexpr, STEPS: tl.constexpr
):  # fmt: skip
    """The sums over a batch: moments (items, width) at index (R, B) -> out (R, width)."""
    run = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    acc = tl.zeros((BLOCK_B, COLUMNS), tl.float32)
    for step in range(STEPS):
        b = step * BLOCK_B + tl.arange(0, BLOCK_B)
        item = tl.load(index_ptr + run * B + b, mask=b < B, other=0)
        at = item[:, None] * width + column[None, :]
        acc += tl.load(moment_ptr + at, mask=(b < B)[:, None] & (column < width)[None, :], other=0.0)
    tl.store(out_ptr + run * width + column, tl.sum(acc, 0), mask=column < width)


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
    parts_ptr, kept_ptr, w_ptr, gamma_ptr, dw_ptr, dgamma_ptr, dbeta_ptr, small, splits,
    C: tl.constexpr, K: tl.constexpr, AT_ONCE: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """The way back through `fold_kernel` from the parts (R, splits, K, K) of the gradient by the folded weights.

    Some parts are read at once: one program a run does it, and each wait is as long as the whole kernel could be.
    """
    run = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, K)
    k = tl.arange(0, K)
    channel = n < C
    real = channel[:, None] & (k < 25)[None, :]
    d = tl.zeros((K, K), tl.float32)  # (channels, places)
    for step in range(STEPS):
        part = step * AT_ONCE + tl.arange(0, AT_ONCE)
        at = (run * splits + part)[:, None, None] * K * K + k[None, None, :] * K + n[None, :, None]
        d += tl.sum(tl.load(parts_ptr + at, mask=(part < splits)[:, None, None], other=0.0), 0)
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
