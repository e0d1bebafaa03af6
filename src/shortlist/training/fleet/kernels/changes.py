"""What kernels read of an item's change, the nine columns of `training.views`."""

import triton
import triton.language as tl


@triton.jit
def factor(change_ptr, COLUMN: tl.constexpr, mask):
    """One of the factors of brightness, contrast and saturation, in columns 3 to 5."""
    return 1.0 + (tl.load(change_ptr + COLUMN, mask=mask, other=128).to(tl.float32) - 128.0) / 320.0


@triton.jit
def in_square(change_ptr, row, column, mask):
    """Whether a pixel lies in the square that is cut out: its centre and side are columns 6 to 8."""
    side = tl.load(change_ptr + 8, mask=mask, other=0).to(tl.int32)
    top = tl.load(change_ptr + 6, mask=mask, other=0).to(tl.int32) - side // 2
    left = tl.load(change_ptr + 7, mask=mask, other=0).to(tl.int32) - side // 2
    return (row >= top) & (row < top + side) & (column >= left) & (column < left + side)
