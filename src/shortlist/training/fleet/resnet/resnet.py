"""ResNet-32 for many runs at once, on the kernels of `kernels/`.

Forward and backward are written out as in `lenet`. What is exploited: batch statistics are summed where a
convolution writes its output; a block's inner batch norm and ReLU are applied where its second convolution reads, the
outer one, shortcut and ReLU are one pass over a map; the way back through batch norm is part of the weight gradient;
convolutions read windows in place from maps with a halo, so nothing is ever unfolded; with 16 to 64 channels the work
is moving maps, and each is moved as few times as the batch statistics allow.
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, ClassVar

import torch
from torch import Tensor

from shortlist.training.augment import PADDING
from shortlist.training.fleet.conv.by_cuda import CudaConv
from shortlist.training.fleet.conv.conv import Convolver, NormBack, Receiver, TritonConv, round_up
from shortlist.training.fleet.kernel_base import BN_MOMENTUM, EPS, KernelFleet
from shortlist.training.fleet.resnet.layout import (
    FLOAT_TILES,
    ROW_BLOCK,
    STEM_PAD,
    TILES,
    Block,
    Conv,
    Kept,
    Normed,
    ResNetTiles,
    blocks_of,
    sum_block,
)
from shortlist.training.views import mean_greys, mix_strong


class ResNetFleet(KernelFleet):
    """R networks with their optimiser; all tensors have a leading dimension of runs.

    Args:
        states: the state dicts of R freshly built networks.
        images: (N, 3, S, S) uint8 images on the device.
        mean: (3,) of the pixels, or (R, 3) where runs differ.
        deviation: of the pixels, likewise.
        weight_decay: (R,).
        momentum: of SGD.
        dtype: of activations and weight copies (float32 for checks).
        tiles: block sizes.
        ema: (R,) the decay of averaged weights.
        teacher: (R,) that of the averaged weights that teach.
    """

    by_run = ("value", "velocity", "grad", "copy", "decay", "mean", "deviation")
    rounded: ClassVar = {"value": "copy"}

    def __init__(
        self,
        states: Sequence[Mapping[str, Tensor]],
        images: Tensor,
        mean: Tensor,
        deviation: Tensor,
        weight_decay: Tensor,
        momentum: float,
        dtype: torch.dtype = torch.bfloat16,
        tiles: ResNetTiles | None = None,
        ema: Tensor | None = None,
        teacher: Tensor | None = None,
    ) -> None:
        self.device, self.dtype, self.momentum = images.device, dtype, momentum
        self.tiles = tiles or (TILES if dtype == torch.bfloat16 else FLOAT_TILES)
        self.images, self.greys = images, mean_greys(images)
        self.mean, self.deviation = (
            value.to(self.device, torch.float32).reshape(-1, 3).expand(len(states), 3).contiguous()
            for value in (mean, deviation)
        )
        self.stem, self.blocks = blocks_of(states[0], images.shape[2])
        self.convs = [self.stem, *(conv for block in self.blocks for conv in block.convs)]
        self.head = max((n for n in states[0] if n.endswith(".bias")), key=lambda n: int(n.split(".")[0])).split(".")[0]
        self.K = int(states[0][f"{self.head}.bias"].shape[0])
        self.decay = weight_decay.to(self.device, torch.float32)
        self.buffers = {}
        self._choose_kernels()
        self._load(states)
        self._follow(ema, teacher)

    def _choose_kernels(self) -> None:
        self.convolver: Convolver = TritonConv(self._zeros, self.tiles.conv, self.tiles.weights, ROW_BLOCK)
        if CudaConv.suits(self.device, self.dtype, [conv.shape for conv in self.convs]):
            self.convolver = CudaConv(self._zeros)

    # -- parameters ----------------------------------------------------------------------------------------------------

    def _load(self, states: Sequence[Mapping[str, Tensor]]) -> None:
        self.slots: dict[str, tuple[int, tuple[int, ...]]] = {}
        start = 0
        shapes: dict[str, tuple[int, ...]] = {"nothing": (64,)}  # stands for the biases that these layers do not have
        for conv in self.convs:
            shapes[conv.conv] = (conv.rows, conv.outputs)
            shapes |= {f"{conv.norm}.weight": (conv.outputs,), f"{conv.norm}.bias": (conv.outputs,)}
        shapes |= {"head": (64, round_up(self.K, 8)), "head.bias": (round_up(self.K, 8),)}
        for name, shape in shapes.items():
            self.slots[name] = (start, shape)
            start += round_up(torch.Size(shape).numel(), 8)
        self.R, self.size = len(states), start
        self.value = torch.zeros(self.R, start, device=self.device)
        self.running = {
            f"{norm}.{kind}": torch.stack([s[f"{norm}.{kind}"] for s in states]).to(self.device, torch.float32)
            for norm in (conv.norm for conv in self.convs)
            for kind in ("running_mean", "running_var")
        }
        for run, state in enumerate(states):
            for name, tensor in self._from_state(state).items():
                target = self._real(self.value, name)[run]
                target[tuple(slice(0, n) for n in tensor.shape)].copy_(tensor)
        self.velocity, self.grad = torch.zeros_like(self.value), torch.zeros_like(self.value)
        self.copy = self.value.to(self.dtype)
        self._turn()

    def _turn(self) -> None:
        """Where each weight of the turned convolutions, those of the input gradients, lies among the parameters."""
        self.turned_slots: dict[str, int] = {}
        parts, start = [], 0
        zero = self.slots["nothing"][0]
        for conv in self.convs[1:]:
            at = self.slots[conv.conv][0] + torch.arange(conv.taps * conv.inputs * conv.outputs)
            turned = at.view(conv.taps, conv.inputs, conv.outputs).flip(0).transpose(1, 2).reshape(-1)
            padding = (conv.turned.rows - conv.turned.real_rows) * conv.inputs
            self.turned_slots[conv.conv] = start
            parts += [turned, torch.full((padding,), zero)]
            start += len(turned) + padding
        self.turn = torch.cat(parts).to(self.device)

    def part(self, flat: Tensor, name: str) -> Tensor:
        """One parameter's view (R, ...) of a vector (R, size)."""
        start, shape = self.slots[name]
        return flat[:, start : start + torch.Size(shape).numel()].view(self.R, *shape)

    def _real(self, flat: Tensor, name: str) -> Tensor:
        """The same without padded rows, convolutions as (R, places, inputs, outputs)."""
        for conv in self.convs:
            if conv.conv == name:
                matrix = self.part(flat, name)[:, : conv.taps * conv.inputs]
                return matrix.view(self.R, conv.taps, conv.inputs, conv.outputs)
        return self.part(flat, name)

    def _from_state(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        values = {"head": state[f"{self.head}.weight"].t(), "head.bias": state[f"{self.head}.bias"]}
        for conv in self.convs:
            weight = state[f"{conv.conv}.weight"].flatten(2)  # (outputs, inputs, places)
            values[conv.conv] = weight.permute(2, 1, 0)
            values |= {f"{conv.norm}.{part}": state[f"{conv.norm}.{part}"] for part in ("weight", "bias")}
        return values

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """One run's network as a state dict of its module."""
        found: dict[str, Tensor] = {}
        for conv in self.convs:
            weight = self._real(self.value, conv.conv)[run, :, : conv.real_inputs]
            found[f"{conv.conv}.weight"] = weight.permute(2, 1, 0).reshape(
                conv.outputs, conv.real_inputs, conv.places, conv.places
            )
        for name in self.slots:
            if name.endswith((".weight", ".bias")) and name != "head.bias":
                found[name] = self.part(self.value, name)[run]
        for name, tensor in self.running.items():
            found[name] = tensor[run]
            counted = torch.zeros((), dtype=torch.int64)  # torch does not use it where batch norm has a momentum
            found[name.rsplit(".", 1)[0] + ".num_batches_tracked"] = counted
        found[f"{self.head}.weight"] = self.part(self.value, "head")[run].t()[: self.K]
        found[f"{self.head}.bias"] = self.part(self.value, "head.bias")[run, : self.K]
        return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in found.items()}

    def state(self) -> list[Tensor]:
        """Everything that a step changes."""
        return [self.value, self.velocity, self.copy, *self.running.values(), *self._averages()]

    # -- forward -------------------------------------------------------------------------------------------------------

    def forward(
        self,
        index: Tensor,
        active: Tensor,
        *,
        train: bool,
        inputs: Any = None,
        moves: Tensor | None = None,
        own: Tensor | None = None,
    ) -> Tensor:
        """Logits (R, B, K) in float32 of the images at `index` (R, B); a leaf for the objective."""
        self._active, self._train = active, train
        x = self._input(self.images if inputs is None else inputs, index, moves)
        if own is not None:
            mix_strong(x, own)
        stem = self._conv(x, self.stem)
        a, _ = self._act(stem, self.stem, 0, None, None)
        self._input_kept, self._stem_kept = x, stem
        self._kept: list[Kept] = []
        for block in self.blocks:
            a = self._block(a, block)
        self._pooled = self._pool(a)
        logits = torch.bmm(self._pooled, self.part(self.copy, "head")).float()
        logits = logits + self.part(self.value, "head.bias").unsqueeze(1)
        return logits[..., : self.K].detach().requires_grad_()

    def _input(self, images: Tensor, index: Tensor, moves: Tensor | None) -> Tensor:
        from shortlist.training.fleet.kernels.resnet_ends import input_kernel

        B, S = index.shape[1], self.stem.size
        out = self._zeros("input", self.R, B, S + 2, S + 2, STEM_PAD)
        index = index.contiguous()
        input_kernel[(-(-B * S * S // 256), self.R)](
            images.contiguous(), index, index if moves is None else moves.contiguous(), self.greys, self.mean,
            self.deviation, out, B, out.stride(0),
            S=S, C=3, PAD=STEM_PAD, MOVES=0 if moves is None else moves.shape[-1], PADDING=PADDING, BLOCK_M=256,
        )  # fmt: skip
        return out

    def _pool(self, a: Tensor) -> Tensor:
        """(R, B, C) the mean over the last maps."""
        from shortlist.training.fleet.kernels.resnet_ends import pool_kernel

        _, B, _, _, C = a.shape
        S = self.blocks[-1].second.size
        out = self._zeros("pooled", self.R, B, C)
        pool_kernel[(B, self.R)](a, out, B, a.stride(0), S=S, C=C, BLOCK=1 << (S * S - 1).bit_length())
        return out

    def _block(self, a: Tensor, block: Block) -> Tensor:
        first = self._conv(a, block.first, inner=True)
        second = self._conv(first.y, block.second, norm=first.norm)
        if block.shortcut is None:
            shortcut = None
            out, passed = self._act(second, block.second, 1, a, None)
        else:
            shortcut = self._conv(a, block.shortcut)
            out, passed = self._act(second, block.second, 2, shortcut.y, shortcut.norm)
        self._kept.append(Kept(a, first, second, shortcut, passed))
        return out

    def _conv(self, x: Tensor, conv: Conv, *, norm: Tensor | None = None, inner: bool = False) -> Normed:
        """A convolution of x, or with x's batch norm of the activation that it stands for.

        An inner output is read by the next convolution, so it has a halo, of NaNs as that one wants it.
        """
        B, H, around = x.shape[1], conv.size, 2 if inner else 0
        y = self._buffer(f"y {conv.conv}", self.R, B, H + around, H + around, conv.outputs, fill=nan if inner else 0.0)
        w = self.part(self.copy, conv.conv)
        sums = self.convolver.forward(x, w, y, conv.shape, statistics=self._train, norm=norm)
        return Normed(y, self._norm(sums, conv.norm, conv.outputs, B * H * H))

    def _norm(self, sums: Tensor, name: str, outputs: int, count: int) -> Tensor:
        from shortlist.training.fleet.kernels.norm import stats_kernel

        norm = self._zeros(f"norm {name}", self.R, 4, outputs, dtype=torch.float32)
        gamma, beta = self.part(self.value, f"{name}.weight"), self.part(self.value, f"{name}.bias")
        parts = sums.shape[1]
        stats_kernel[(self.R,)](
            sums, gamma, beta, self.part(self.value, "nothing"), norm, self.running[f"{name}.running_mean"],
            self.running[f"{name}.running_var"], self._active, count, self.size,
            TILES=parts, N=outputs, EPS=EPS, MOMENTUM=BN_MOMENTUM, TRAIN=self._train, BLOCK=sum_block(outputs, parts),
            num_warps=8,
        )  # fmt: skip
        return norm

    def _act(
        self, of: Normed, conv: Conv, shortcut: int, r: Tensor | None, r_norm: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Batch norm, shortcut and ReLU; behind a shortcut also bits that say what passed."""
        from shortlist.training.fleet.kernels.residual import act_kernel

        y, norm = of.y, of.norm
        B, H, C = y.shape[1], conv.size, conv.outputs
        out = self._zeros(f"a {conv.conv}", self.R, B, H + 2, H + 2, C)
        bits = self._train and shortcut > 0
        passed = self._zeros(f"passed {conv.conv}", self.R, B, H, H, C // 8, dtype=torch.uint8) if bits else out
        r, r_norm = y if r is None else r, norm if r_norm is None else r_norm
        block, warps = self.tiles.act
        M = B * H * H
        act_kernel[(-(-M // block), self.R)](
            y, norm, r, r_norm, out, passed, y.stride(0), r.stride(0), out.stride(0), passed.stride(0), M,
            H=H, W=H, C=C, BLOCK_M=block, SHORTCUT=shortcut, PASSED=bits, num_warps=warps,
        )  # fmt: skip
        return out, passed

    # -- backward ------------------------------------------------------------------------------------------------------

    def backward(self, dlogits: Tensor) -> None:
        """Gradients of all parameters from the gradient by the logits (R, B, K)."""
        self.turned = self.copy.index_select(1, self.turn)
        B, side = dlogits.shape[1], self.blocks[-1].second.size
        d = torch.nn.functional.pad(dlogits, (0, round_up(self.K, 8) - self.K))
        self.part(self.grad, "head.bias").copy_(d.sum(1))
        d = d.to(self.dtype)
        self.part(self.grad, "head").copy_(torch.bmm(self._pooled.transpose(1, 2), d))
        spread = torch.bmm(d, self.part(self.copy, "head").transpose(1, 2)) / side**2
        d = self._zeros(f"d {side}", self.R, B, side, side, 64)
        sums = self._sums(d, self._receiver(len(self.blocks)), spread)
        for i in reversed(range(len(self.blocks))):
            d, sums = self._block_back(d, sums, self.blocks[i], self._kept[i], self._receiver(i))
        self._conv_back(d, sums, self._stem_kept, self.stem, self._input_kept, last=True)

    def _receiver(self, i: int) -> Receiver:
        """The norm and ReLU that gave block i its input; only the stem's has no shortcut in between."""
        if i == 0:
            return Receiver(self._stem_kept.y, self._stem_kept.norm, None)
        kept = self._kept[i - 1]
        return Receiver(kept.second.y, kept.second.norm, kept.passed)

    def _block_back(self, d: Tensor, sums: Tensor, block: Block, kept: Kept, before: Receiver) -> tuple[Tensor, Tensor]:
        """From the gradient by the last sum of a block to that of the block before it, with the sums for its norm."""
        first, second = kept.first, kept.second
        dy = self._conv_back(d, sums, second, block.second, first.y, norm=first.norm)
        H, C = block.second.size, block.second.inputs
        inner = self._zeros(f"inner {H}", self.R, d.shape[1], H, H, C)
        to = Receiver(first.y, first.norm, None)
        sums = self.convolver.backward(dy, self._turned(block.second), inner, block.second.turned, to=to)
        dy = self._conv_back(inner, sums, first, block.first, kept.a)
        turned, share = block.first.turned, d
        if block.shortcut is not None and kept.shortcut is not None:
            share = self._shortcut_back(d, kept.shortcut, block.shortcut, kept.a)
            d = self._zeros(f"d {turned.height}", self.R, d.shape[1], turned.height, turned.width, turned.outputs)
        sums = self.convolver.backward(dy, self._turned(block.first), d, turned, add=share, to=before)
        return d, sums

    def _shortcut_back(self, d: Tensor, kept: Normed, conv: Conv, a: Tensor) -> Tensor:
        """The shortcut's share of the gradient by the block's input, for the pixels that it reads: every second."""
        sums = self._sums(d, Receiver(kept.y, kept.norm, None))
        dy = self._conv_back(d, sums, kept, conv, a)
        share = self._zeros(f"share {conv.size}", *d.shape[:4], conv.inputs)
        self.convolver.backward(dy, self._turned(conv), share, conv.turned)
        return share

    def _sums(self, d: Tensor, to: Receiver, spread: Tensor | None = None) -> Tensor:
        """The sums that a norm's way back needs, where no convolution made them.

        d is first made of the same row of `spread` (R, B, C) at every pixel, and passes the receiver's ReLU.
        """
        from shortlist.training.fleet.kernels.residual import sums_kernel

        _, B, H, _, C = d.shape
        block, warps = self.tiles.act
        M = B * H * H
        sums = self._zeros("sums", self.R, -(-M // block), 2, C, dtype=torch.float32)
        passed = d if to.passed is None else to.passed
        sums_kernel[(-(-M // block), self.R)](
            d, d if spread is None else spread, passed, to.before, to.norm, sums, d.stride(0), passed.stride(0), M,
            H=H, W=H, C=C, BLOCK_M=block, SPREAD=spread is not None, MASK=to.passed is not None, num_warps=warps,
        )  # fmt: skip
        return sums

    def _conv_back(
        self, d: Tensor, sums: Tensor, kept: Normed, conv: Conv, x: Tensor, *,
        norm: Tensor | None = None, last: bool = False,
    ) -> Tensor:  # fmt: skip
        """Back through a convolution's batch norm and to its weights, x and its norm being what it read.

        Returns the gradient by its output as its turned convolution reads it, unless that is the last thing asked for.
        """
        B, side = d.shape[1], conv.size * conv.shape.apart + 2 * (conv.places // 2)
        dy = self._zeros(f"dy {conv.places} {conv.stride}", self.R, B, side, side, conv.outputs)
        back = NormBack(d, kept.y, kept.norm, self._means(sums, conv, d), kept=not last)
        self.convolver.weights(x, dy, self.part(self.grad, conv.conv), conv.shape, norm=norm, back=back)
        return dy

    def _means(self, sums: Tensor, conv: Conv, d: Tensor) -> Tensor:
        """(R, 2, C) what the way back through batch norm needs, from the sums; its parameters' gradients as well."""
        from shortlist.training.fleet.kernels.norm import stats_back_kernel

        C, parts = conv.outputs, sums.shape[1]
        means = self._zeros("means", self.R, 2, C, dtype=torch.float32)
        dgamma, dbeta = self.part(self.grad, f"{conv.norm}.weight"), self.part(self.grad, f"{conv.norm}.bias")
        stats_back_kernel[(self.R,)](
            sums, means, dgamma, dbeta, d[0, ..., 0].numel(), self.size,
            TILES=parts, N=C, BLOCK=sum_block(C, parts), num_warps=8,
        )  # fmt: skip
        return means

    def _turned(self, conv: Conv) -> Tensor:
        shape, start = conv.turned, self.turned_slots[conv.conv]
        return self.turned[:, start : start + shape.rows * shape.columns].view(self.R, shape.rows, shape.columns)

    def update(self, lr: Tensor) -> None:
        """One step of SGD with momentum; a run whose lr is negative stands still."""
        from shortlist.training.fleet.kernels.norm import momentum_kernel

        momentum_kernel[(-(-self.size // 2048), self.R)](
            self.value, self.velocity, self.grad, self.copy, lr, self.decay, self.size, self.momentum, BLOCK=2048
        )
        self._move_averages(lr >= 0)
