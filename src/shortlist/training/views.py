"""Two views of an item in one batch: as `augment` has it, and strongly changed.

A batch of B items is then 2 B inputs, first all weak views, then all strong ones, with batch norm over both. What is
minimised is the mean of the objective over the views. A strong view has its own crop and flip, a square cut out of it,
and other colours: with m the mean grey of the whole image, g the grey of a pixel x, and m in place of x inside the
square,

    x' = brightness (contrast (saturation x + (1 - saturation) g) + (1 - contrast) m)

Factors are drawn from 0.6 to 1.4. Images with one channel are their own grey, so saturation leaves them alone.

Strong views may be mixed (Zhang et al. 2018): s times the item's own plus 1 - s times that of the item before it in the
batch, with one s per step, uniform from 0 to 1. Their objective is then s times that of the items plus 1 - s times that
of the items before them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from shortlist.errors import InputError
from shortlist.methods import Batch, Method
from shortlist.training.augment import draw_moves, move_images

MOVES = 3
"""The first columns of a change are a move as in `augment`; then come three factors, then the square to cut out."""
COLUMNS = MOVES + 6
NEUTRAL, PARTS = 128, 320
"""A factor is 1 + (value - NEUTRAL) / PARTS."""
GREY = (0.299, 0.587, 0.114)
"""The shares of red, green and blue."""


def draw_changes(count: int, height: int, width: int, flips: bool, generator: torch.Generator) -> Tensor:
    """(count, 9) int16: a move, three factors, and a square's centre and side, a quarter to a half of the image."""
    least = max(1, min(height, width) // 4)
    highest = (2 * NEUTRAL, 2 * NEUTRAL, 2 * NEUTRAL, height, width, least + 1)
    drawn = [torch.randint(0, high, (count,), generator=generator, dtype=torch.int16) for high in highest]
    drawn[-1] += least
    return torch.cat(
        [draw_moves(count, flips, generator, min(height, width)).to(torch.int16), torch.stack(drawn, 1)], 1
    )


def two_views(moves: Tensor, changes: Tensor) -> Tensor:
    """(..., 2 B, 9) the changes of a batch of two views from the moves (..., B, 3) and the changes (..., B, 9)."""
    weak = torch.full_like(changes, NEUTRAL)  # made on the device: a graph may be capturing this
    weak[..., :MOVES] = moves
    weak[..., MOVES + 3 :] = 0
    return torch.cat([weak, changes], -2)


def change_images(x: Tensor, changes: Tensor) -> Tensor:
    """(B, C, H, W) images, moved and changed by `changes` (B, 9)."""
    H, W = x.shape[-2:]
    mean = grey(x).mean((-1, -2), keepdim=True)
    factors = 1 + (changes[:, MOVES : MOVES + 3].float() - NEUTRAL) / PARTS
    b, c, s = factors[..., None, None, None].unbind(1)
    row, column, side = changes[:, MOVES + 3 :].long().unbind(-1)
    cut = _covered(row, side, H).unsqueeze(-1) & _covered(column, side, W).unsqueeze(-2)
    x = torch.where(cut.unsqueeze(1), mean, move_images(x, changes[:, :MOVES]).to(mean.dtype))
    return b * (c * (s * x + (1 - s) * grey(x)) + (1 - c) * mean)


def draw_shares(count: int, generator: torch.Generator) -> Tensor:
    """(count,) for each step the share of the item itself in each mixed view."""
    return torch.rand(count, generator=generator)


def mix_strong(x: Tensor, own: Tensor) -> None:
    """Mix the strong views among inputs (..., 2 B, *shape), in place, by the shares `own` (...)."""
    dim = own.dim()
    strong = x.narrow(dim, x.shape[dim] // 2, x.shape[dim] // 2)
    share = own.view(*own.shape, *(1,) * (x.dim() - dim))
    strong.copy_(torch.lerp(strong.roll(1, dim).float(), strong.float(), share))


def check_mixed(method: Method) -> None:
    """Refuse a method that compares the views of an item: a mixed view belongs to no single item."""
    if method.compares_views():
        raise InputError(f"mix: method {method.name!r} compares the views of an item, which cannot be mixed ones")


def _covered(centre: Tensor, side: Tensor, length: int) -> Tensor:
    """(B, length) which rows or columns the squares cover."""
    first = (centre - side // 2).unsqueeze(-1)
    at = torch.arange(length, device=centre.device)
    return (at >= first) & (at < first + side.unsqueeze(-1))


def grey(x: Tensor) -> Tensor:
    """(B, 1, H, W) of images (B, C, H, W), as float32."""
    shares = GREY if x.shape[1] == len(GREY) else (1 / x.shape[1],) * x.shape[1]
    return torch.stack([share * x[:, i].float() for i, share in enumerate(shares)], 1).sum(1, keepdim=True)


def mean_greys(images: Tensor) -> Tensor:
    """(N,) the mean greys of images (N, C, H, W), computed some at a time."""
    return torch.cat([grey(part).mean((-1, -2)).flatten() for part in torch.split(images, 4096)])


def views_of(logits: Tensor, batch: Batch) -> tuple[Tensor, ...]:
    """Cut logits (..., views B, K) into those of each view, (..., B, K); the weak view comes first."""
    return logits.chunk(logits.shape[-2] // batch.answer.shape[-1], -2)


def in_fleet(batch: Batch, runs: int = 1) -> Batch:
    """The batch as a fleet has it, with the same items for each run."""
    tensors: dict[str, Any] = {
        name: value.expand(runs, *value.shape) for name, value in vars(batch).items() if isinstance(value, Tensor)
    }
    return replace(batch, **tensors)


def objective_of(method: Method, logits: Tensor, batch: Batch) -> Tensor:
    """(...) a method's objective, from the logits (..., views B, K) of all views."""
    views = views_of(logits, batch)
    batch = _self_taught(method, views, batch)
    if batch.own is None:
        return method.objective_of_views(views, batch)
    weak, strong = views
    mixed = torch.lerp(method.objective(strong, batch.before()), method.objective(strong, batch), batch.own)
    return (method.objective(weak, batch) + mixed) / 2


def confidence_of(method: Method, logits: Tensor, batch: Batch) -> Tensor:
    """(..., B, K) confidences renewed from logits (..., views B, K); mixed views are left out."""
    views = views_of(logits, batch)
    batch = _self_taught(method, views, batch)
    return method.confidence_of_views(views if batch.own is None else views[:1], batch)


def _self_taught(method: Method, views: Sequence[Tensor], batch: Batch) -> Batch:
    """The batch, with the network itself as the teacher if the method asks for that."""
    return replace(batch, teacher=views[0].detach()) if method.teacher == 0 else batch
