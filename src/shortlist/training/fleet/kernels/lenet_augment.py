"""What only augmented LeNets need: their images cut and flipped, and what their first batch norm must know of them."""

import triton
import triton.language as tl

from shortlist.training.fleet.kernels.changes import factor, in_square


@triton.jit
def move_kernel(
    images_ptr, index_ptr, moves_ptr, grey_ptr, black_ptr, out_ptr, B,
    H: tl.constexpr, W: tl.constexpr, HALO: tl.constexpr, MOVES: tl.constexpr, PADDING: tl.constexpr,
    BLOCK_M: tl.constexpr,
):  # fmt: skip
    """The images (N, H + 2 HALO, W + 2 HALO) at index (R, B), cut and flipped as `augment.move_images` does it.

    By moves (R, B, MOVES), PADDING being their margin, into out (R, B, H + 2 HALO, W + 2 HALO); its halo stays.
    What comes in from the margin is black (R,), not zero: pixels are padded with zeros before they are normalised.
    Where MOVES is more than 3, images are changed as by `views.change_images`, grey (N,) being their means.
    """
    run = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    valid = m < B * H * W
    item, row, column = run * B + m // (H * W), m // W % H, m % W
    to = (item * (H + 2 * HALO) + row + HALO) * (W + 2 * HALO) + column + HALO
    cut_row, cut_column = row, column
    at = moves_ptr + item * MOVES
    flip = tl.load(at + 2, mask=valid, other=0) == 1
    row += tl.load(at, mask=valid, other=0).to(tl.int32) - PADDING
    column = tl.where(flip, W - 1 - column, column) + tl.load(at + 1, mask=valid, other=0).to(tl.int32) - PADDING
    seen = valid & (row >= 0) & (row < H) & (column >= 0) & (column < W)
    image = tl.load(index_ptr + item, mask=valid, other=0)
    source = (image * (H + 2 * HALO) + row + HALO) * (W + 2 * HALO) + column + HALO
    x = tl.load(images_ptr + source, mask=seen, other=0.0).to(tl.float32)
    black = tl.load(black_ptr + run)
    x = tl.where(seen, x, black)
    if MOVES > 3:
        grey = tl.load(grey_ptr + image, mask=valid, other=0.0)
        x = tl.where(in_square(at, cut_row, cut_column, valid), grey, x)
        brightness, contrast = factor(at, 3, valid), factor(at, 4, valid)
        # pixels are changed before they are normalised, so black is their zero
        x = brightness * (contrast * x + (1 - contrast) * grey) + (1 - brightness) * black
    tl.store(out_ptr + to, x.to(out_ptr.dtype.element_ty), mask=valid)


@triton.jit
def window_moments_kernel(
    images_ptr, index_ptr, place_ptr, out_ptr, B, width,
    H: tl.constexpr, W: tl.constexpr, K: tl.constexpr, BLOCK_M: tl.constexpr, SPLITS: tl.constexpr,
    STEPS: tl.constexpr,
):  # fmt: skip
    """The moments of all windows of the images (N, H + 4, W + 4) at index (R, B); `lenet.cu` has it for bf16.

    out (R, SPLITS, width) in parts: the sums of the 25 places of a window, then of the products of two, in the order of
    place (K, K). A column of ones behind the places makes both one matrix product.
    """
    split = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    WIDTH: tl.constexpr = W + 4
    k = tl.arange(0, K)
    offset = tl.where(k < 25, (k // 5) * WIDTH + k % 5, 0)
    acc = tl.zeros((K, K), tl.float32)
    for step in range(STEPS):
        m = (step * SPLITS + split) * BLOCK_M + tl.arange(0, BLOCK_M)
        valid = (m < B * H * W)[:, None]
        image = tl.load(index_ptr + run * B + m // (H * W), mask=m < B * H * W, other=0)
        corner = (image * (H + 4) + m // W % H) * WIDTH + m % W
        a = tl.load(images_ptr + corner[:, None] + offset[None, :], mask=valid & (k < 25)[None, :], other=0.0)
        a = tl.where(valid & (k == 25)[None, :], 1.0, a.to(tl.float32)).to(a.dtype)
        acc = tl.dot(tl.trans(a), a, acc, input_precision="ieee")
    row, column = k[:, None], k[None, :]
    product = tl.load(place_ptr + row * K + column)
    at = tl.where(row == 25, column, product)
    mask = ((row == 25) & (column < 25)) | ((row <= column) & (product >= 0))
    tl.store(out_ptr + (run * SPLITS + split) * width + at, acc, mask=mask)
