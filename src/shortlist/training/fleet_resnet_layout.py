"""What the ResNet fleet's convolutions are, how their weights lie, and the block sizes of its kernels."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from shortlist.training.fleet_conv import ConvShape
from shortlist.training.fleet_layout import round_up

PLACES, TAPS = 3, 9
SLACK = 8192
STEM_PAD = 8
"""The 3 colours are padded to 8 channels."""
ROW_BLOCK = 64


@dataclass(frozen=True)
class Conv:
    """A 3 x 3 convolution with its batch norm: where it stands in the state dict and what it maps."""

    conv: str
    norm: str
    inputs: int
    real_inputs: int
    outputs: int
    size: int
    """Height and width of its output."""
    stride: int

    @property
    def rows(self) -> int:
        """Rows of its weight matrix."""
        return round_up(TAPS * self.inputs, ROW_BLOCK)

    @property
    def shape(self) -> ConvShape:
        """As the kernels know it."""
        return ConvShape(PLACES, self.stride, self.size, self.size, self.inputs, self.outputs, self.rows, self.outputs)

    @property
    def turned(self) -> ConvShape:
        """The convolution that gives the gradient by its input."""
        return self.shape.turned(round_up(TAPS * self.outputs, ROW_BLOCK), self.inputs)


@dataclass(frozen=True)
class Block:
    """Two convolutions and the shortcut: the identity, or the names of a 1 x 1 convolution and its norm."""

    first: Conv
    second: Conv
    shortcut: tuple[str, str] | None


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
        blocks.append(
            Block(
                Conv(f"{place}.conv1", f"{place}.bn1", inputs, inputs, outputs, size, stride),
                Conv(f"{place}.conv2", f"{place}.bn2", outputs, outputs, outputs, size, 1),
                (f"{place}.shortcut.0", f"{place}.shortcut.1") if stride == 2 else None,
            )
        )
        inputs = outputs
    return stem, blocks
