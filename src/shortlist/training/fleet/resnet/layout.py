"""What the ResNet fleet's convolutions are, how their weights lie, and the block sizes of its kernels."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from shortlist.training.fleet.conv.conv import ConvShape, round_up

STEM_PAD = 8
"""The 3 colours are padded to 8 channels."""
ROW_BLOCK = 64


@dataclass(frozen=True)
class Conv:
    """A convolution with its batch norm: where it stands in the state dict and what it maps."""

    conv: str
    norm: str
    inputs: int
    real_inputs: int
    outputs: int
    size: int
    """Height and width of its output."""
    stride: int
    places: int = 3

    @property
    def taps(self) -> int:
        """Places of its window."""
        return self.places * self.places

    @property
    def rows(self) -> int:
        """Rows of its weight matrix."""
        return round_up(self.taps * self.inputs, ROW_BLOCK)

    @property
    def shape(self) -> ConvShape:
        """As the kernels know it."""
        size = self.size
        return ConvShape(self.places, self.stride, size, size, self.inputs, self.outputs, self.rows, self.outputs)

    @property
    def turned(self) -> ConvShape:
        """The convolution that gives the gradient by its input."""
        return self.shape.turned(round_up(self.taps * self.outputs, ROW_BLOCK), self.inputs)


@dataclass(frozen=True)
class Block:
    """Two convolutions and the shortcut: the identity, or a 1 x 1 convolution."""

    first: Conv
    second: Conv
    shortcut: Conv | None

    @property
    def convs(self) -> list[Conv]:
        """All of them."""
        return [self.first, self.second, *([self.shortcut] if self.shortcut else [])]


@dataclass(frozen=True)
class ResNetTiles:
    """Block sizes of the Triton kernels, by number of input channels: BLOCK_M, BLOCK_K, warps, stages."""

    conv: Mapping[int, tuple[int, int, int, int]]
    weights: Mapping[int, tuple[int, int, int, int]]
    """BLOCK_M, splits, warps, stages."""
    act: tuple[int, int] = (128, 4)


TILES = ResNetTiles(
    conv={8: (256, 32, 4, 2), 16: (256, 16, 4, 4), 32: (256, 32, 4, 3), 64: (128, 64, 4, 3)},
    weights={8: (128, 16, 4, 2), 16: (64, 16, 4, 3), 32: (64, 8, 4, 3), 64: (64, 16, 4, 3)},
)
FLOAT_TILES = ResNetTiles(
    conv=dict.fromkeys((8, 16, 32, 64), (64, 32, 4, 1)),
    weights=dict.fromkeys((8, 16, 32, 64), (32, 4, 4, 1)),
    act=(64, 4),
)
"""For checks in float32, whose tiles are twice as large."""


def sum_block(channels: int, parts: int) -> int:
    """How many tiles' sums are added up at a time: few steps, since one program does it for a run."""
    return min(4096 // channels, 1 << (parts - 1).bit_length())


def blocks_of(state: Mapping[str, Tensor], size: int) -> tuple[Conv, list[Block]]:
    """The stem and the blocks of a `models.resnet32` (or one of another depth) for images of a size."""
    stem = Conv("0", "1", STEM_PAD, 3, 16, size, 1)
    blocks, inputs = [], 16
    places = sorted({int(name.split(".")[0]) for name in state if ".conv1." in name})
    for place in places:
        outputs = int(state[f"{place}.conv1.weight"].shape[0])
        stride = 2 if outputs != inputs else 1
        size //= stride
        shortcut = f"{place}.shortcut"
        blocks.append(
            Block(
                Conv(f"{place}.conv1", f"{place}.bn1", inputs, inputs, outputs, size, stride),
                Conv(f"{place}.conv2", f"{place}.bn2", outputs, outputs, outputs, size, 1),
                Conv(f"{shortcut}.0", f"{shortcut}.1", inputs, inputs, outputs, size, 2, 1) if stride == 2 else None,
            )
        )
        inputs = outputs
    return stem, blocks


@dataclass(frozen=True)
class Normed:
    """A convolution's output and its batch norm (R, 4, outputs)."""

    y: Tensor
    norm: Tensor


@dataclass(frozen=True)
class Kept:
    """What a block's way back needs: its input, the outputs of its convolutions, what passed its last ReLU."""

    a: Tensor
    first: Normed
    second: Normed
    shortcut: Normed | None
    passed: Tensor
