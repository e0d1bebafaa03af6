"""Batch norm from the sums that other kernels leave behind, and the optimiser."""

import triton
import triton.language as tl


@triton.jit
def _move(ptr, at, value, step):
    """A running statistic moved towards a batch's."""
    old = tl.load(ptr + at)
    tl.store(ptr + at, old + step * (value - old))


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
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Batch norm of a map from its tiles' sums: out (R, 4, N) scale, shift, mean, 1 / deviation; running statistics."""
    run = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, N)
    one = run * N + n
    bias = tl.load(bias_ptr + run * small + n)
    if TRAIN:
        both = tl.reshape(_sum_tiles(stats_ptr + run * TILES * 2 * N, TILES, 2 * N, BLOCK), (2, N)) / count
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
    sums_ptr, out_ptr, dgamma_ptr, dbeta_ptr, count, small, TILES: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """From the tiles' sums of `pool_sums_kernel`: dbeta, dgamma, and out (R, 2, N) their means over the map."""
    run = tl.program_id(0).to(tl.int64)
    both = tl.reshape(_sum_tiles(sums_ptr + run * TILES * 2 * N, TILES, 2 * N, BLOCK), (2, N))
    n = tl.arange(0, N)
    first = (tl.arange(0, 2) == 0)[:, None]
    dbeta = tl.sum(tl.where(first, both, 0.0), 0)
    dgamma = tl.sum(tl.where(first, 0.0, both), 0)
    tl.store(dbeta_ptr + run * small + n, dbeta)
    tl.store(dgamma_ptr + run * small + n, dgamma)
    tl.store(out_ptr + run * 2 * N + n, dbeta / count)
    tl.store(out_ptr + run * 2 * N + N + n, dgamma / count)


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
