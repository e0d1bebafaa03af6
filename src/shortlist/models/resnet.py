"""ResNet-32, the network of the paper for CIFAR10."""

from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

from shortlist.errors import InputError


class BasicBlock(nn.Module):
    """Conv 3x3, BN, ReLU, conv 3x3, BN, plus the shortcut, ReLU.

    The shortcut is the identity, or a 1x1 convolution with BN where the block changes the shape.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H / stride, W / stride)."""
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


def resnet32(in_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Conv 16, three stages of five basic blocks with 16, 32 and 64 channels, average pool, FC.

    466,906 parameters for 32x32x3 and K = 10. Convolutions are initialised from Kaiming's normal distribution (fan out,
    for ReLU), the rest by torch's default.

    Args:
        in_shape: (C, H, W).
        num_classes: the number of logits.
    """
    if len(in_shape) != 3:
        raise InputError(f"resnet32 takes images of shape (C, H, W), got input of shape {in_shape}")
    blocks: list[nn.Module] = []
    inputs = 16
    for outputs in (16, 32, 64):
        for place in range(5):
            blocks.append(BasicBlock(inputs, outputs, stride=2 if place == 0 and outputs > 16 else 1))
            inputs = outputs
    model = nn.Sequential(
        nn.Conv2d(in_shape[0], 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, num_classes),
    )
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(cast(nn.Parameter, module.weight), mode="fan_out", nonlinearity="relu")
    return model
