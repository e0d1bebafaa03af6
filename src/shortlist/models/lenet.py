"""The network of the paper for 28x28 images: two convolutional and two fully connected layers."""

from torch import nn

from shortlist.errors import InputError


def lenet(in_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Conv 20@5x5, BN, ReLU, pool 2, conv 50@5x5, BN, ReLU, pool 2, FC 500, BN, ReLU, FC K.

    Both convolutions pad by 2, so 28x28 becomes 14x14, then 7x7, and the first fully connected layer has
    50 * 7 * 7 = 2,450 inputs: 1,257,220 parameters for 28x28x1 and K = 10. Other image sizes, from 4x4 on, only change
    this number of inputs. The initialisation is torch's default.

    Args:
        in_shape: (C, H, W).
        num_classes: the number of logits.
    """
    if len(in_shape) != 3 or min(in_shape[1:]) < 4:
        raise InputError(f"lenet takes images of shape (C, H, W) from 4x4 on, got input of shape {in_shape}")
    channels, height, width = in_shape
    flat = 50 * (height // 2 // 2) * (width // 2 // 2)
    return nn.Sequential(
        nn.Conv2d(channels, 20, 5, padding=2),
        nn.BatchNorm2d(20),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5, padding=2),
        nn.BatchNorm2d(50),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(flat, 500),
        nn.BatchNorm1d(500),
        nn.ReLU(),
        nn.Linear(500, num_classes),
    )
