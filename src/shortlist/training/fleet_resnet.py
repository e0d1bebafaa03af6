"""ResNet-32 for many runs at once, on the Triton kernels of `kernels/`.

Forward and backward are written out as in `fleet_lenet`. What is exploited: batch statistics are summed where a
convolution writes its output; batch norm, shortcut and ReLU are one pass over a map; convolutions read windows in place
from maps with a halo, so nothing is ever unfolded; with 16 to 64 channels the work is moving maps, and each is moved as
few times as the batch statistics allow.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from shortlist.training.augment import move_images
from shortlist.training.average import Average
from shortlist.training.fleet_conv import Convolver, Receiver, TritonConv
from shortlist.training.fleet_conv_cuda import CudaConv
from shortlist.training.fleet_kernels import KernelFleet
from shortlist.training.fleet_layout import round_up
from shortlist.training.fleet_resnet_layout import (
    FLOAT_TILES,
    PLACES,
    ROW_BLOCK,
    SLACK,
    STEM_PAD,
    TAPS,
    TILES,
    Block,
    Conv,
    ResNetTiles,
    blocks_of,
    sum_block,
)

EPS = 1e-5
BN_MOMENTUM = 0.1


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
    """

    by_run = ("value", "velocity", "grad", "copy", "decay", "mean", "deviation")

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
    ) -> None:
        self.device, self.dtype, self.momentum = images.device, dtype, momentum
        self.tiles = tiles or (TILES if dtype == torch.bfloat16 else FLOAT_TILES)
        self.images = images
        self.mean, self.deviation = (
            value.view(-1, 1, 3, 1, 1).expand(len(states), -1, -1, -1, -1) for value in (mean, deviation)
        )
        self.stem, self.blocks = blocks_of(states[0], images.shape[2])
        self.convs = [self.stem, *(conv for block in self.blocks for conv in (block.first, block.second))]
        self.head = max((n for n in states[0] if n.endswith(".bias")), key=lambda n: int(n.split(".")[0])).split(".")[0]
        self.K = int(states[0][f"{self.head}.bias"].shape[0])
        self.decay = weight_decay.to(self.device, torch.float32)
        self.buffers = {}
        self._choose_kernels()
        self._load(states)
        self.average = Average(torch.zeros(self.R) if ema is None else ema, self._averaged())

    def _choose_kernels(self) -> None:
        self.convolver: Convolver = TritonConv(self._buffer, self.tiles.conv, self.tiles.weights, ROW_BLOCK)
        if CudaConv.suits(self.device, self.dtype, [conv.shape for conv in self.convs]):
            self.convolver = CudaConv(self._buffer)

    # -- parameters ----------------------------------------------------------------------------------------------------

    def _load(self, states: Sequence[Mapping[str, Tensor]]) -> None:
        self.slots: dict[str, tuple[int, tuple[int, ...]]] = {}
        start = 0
        shapes: dict[str, tuple[int, ...]] = {"nothing": (64,)}  # stands for the biases that these layers do not have
        for conv in self.convs:
            shapes[conv.conv] = (conv.rows, conv.outputs)
            shapes |= {f"{conv.norm}.weight": (conv.outputs,), f"{conv.norm}.bias": (conv.outputs,)}
        for block in self.blocks:
            if block.shortcut:
                outputs = block.first.outputs
                shapes[block.shortcut[0]] = (block.first.inputs, outputs)
                shapes |= {f"{block.shortcut[1]}.{part}": (outputs,) for part in ("weight", "bias")}
        shapes |= {"head": (64, round_up(self.K, 8)), "head.bias": (round_up(self.K, 8),)}
        for name, shape in shapes.items():
            self.slots[name] = (start, shape)
            start += round_up(torch.Size(shape).numel(), 8)
        self.R, self.size = len(states), start
        self.value = torch.zeros(self.R, start, device=self.device)
        norms = [conv.norm for conv in self.convs] + [b.shortcut[1] for b in self.blocks if b.shortcut]
        self.running = {
            f"{norm}.{kind}": torch.stack([s[f"{norm}.{kind}"] for s in states]).to(self.device, torch.float32)
            for norm in norms
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
            at = self.slots[conv.conv][0] + torch.arange(TAPS * conv.inputs * conv.outputs)
            turned = at.view(TAPS, conv.inputs, conv.outputs).flip(0).transpose(1, 2).reshape(-1)
            padding = (round_up(TAPS * conv.outputs, ROW_BLOCK) - TAPS * conv.outputs) * conv.inputs
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
                matrix = self.part(flat, name)[:, : TAPS * conv.inputs]
                return matrix.view(self.R, TAPS, conv.inputs, conv.outputs)
        return self.part(flat, name)

    def _from_state(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        values = {"head": state[f"{self.head}.weight"].t(), "head.bias": state[f"{self.head}.bias"]}
        for conv in self.convs:
            weight = state[f"{conv.conv}.weight"].flatten(2)  # (outputs, inputs, places)
            values[conv.conv] = weight.permute(2, 1, 0)
            values |= {f"{conv.norm}.{part}": state[f"{conv.norm}.{part}"] for part in ("weight", "bias")}
        for block in self.blocks:
            if block.shortcut:
                conv_name, norm = block.shortcut
                values[conv_name] = state[f"{conv_name}.weight"].flatten(1).t()
                values |= {f"{norm}.{part}": state[f"{norm}.{part}"] for part in ("weight", "bias")}
        return values

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """One run's network as a state dict of its module."""
        found: dict[str, Tensor] = {}
        for conv in self.convs:
            weight = self._real(self.value, conv.conv)[run, :, : conv.real_inputs]
            found[f"{conv.conv}.weight"] = weight.permute(2, 1, 0).reshape(
                conv.outputs, conv.real_inputs, PLACES, PLACES
            )
        for block in self.blocks:
            if block.shortcut:
                found[f"{block.shortcut[0]}.weight"] = self.part(self.value, block.shortcut[0])[run].t()[
                    :, :, None, None
                ]
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
        return [self.value, self.velocity, self.copy, *self.running.values(), *self.average.state().values()]

    def _averaged(self) -> list[Tensor]:
        return [self.value, *self.running.values()]

    def _copy(self) -> None:
        self.copy.copy_(self.value)

    def _buffer(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """A buffer kept between steps; it starts as zeros (halos stay so) and has slack behind it."""
        key = (name, shape)
        if key not in self.buffers:
            size = torch.Size(shape).numel()
            whole = torch.zeros(size + SLACK, dtype=dtype or self.dtype, device=self.device)
            self.buffers[key] = whole[:size].view(shape)
        return self.buffers[key]

    # -- forward -------------------------------------------------------------------------------------------------------

    def forward(
        self, index: Tensor, active: Tensor, *, train: bool, inputs: Any = None, moves: Tensor | None = None
    ) -> Tensor:
        """Logits (R, B, K) in float32 of the images at `index` (R, B); a leaf for the objective."""
        self._active, self._train = active, train
        x = self._input(self.images if inputs is None else inputs, index, moves)
        y, norm = self._conv(x, self.stem)
        a = self._act(y, norm, self.stem, 0, None, None)
        self._kept: list[tuple[Tensor, ...]] = [(x, y, norm, a)]
        for block in self.blocks:
            a = self._block(a, block)
        side = self.blocks[-1].second.size
        pooled = a[:, :, 1:-1, 1:-1].float().mean((2, 3)).to(self.dtype)
        self._pooled, self._side = pooled, side
        logits = torch.bmm(pooled, self.part(self.copy, "head")).float()
        logits = logits + self.part(self.value, "head.bias").unsqueeze(1)
        return logits[..., : self.K].detach().requires_grad_()

    def _input(self, images: Tensor, index: Tensor, moves: Tensor | None) -> Tensor:
        B, S = index.shape[1], self.stem.size
        x = images[index.reshape(-1)]
        if moves is not None:
            x = move_images(x, moves.reshape(-1, 3))
        x = (x.view(self.R, B, 3, S, S).float() - self.mean) / self.deviation
        halo = self._buffer("input", self.R, B, S + 2, S + 2, STEM_PAD)
        halo[:, :, 1:-1, 1:-1, :3].copy_(x.permute(0, 1, 3, 4, 2))
        return halo

    def _block(self, a: Tensor, block: Block) -> Tensor:
        y1, norm1 = self._conv(a, block.first)
        a1 = self._act(y1, norm1, block.first, 0, None, None)
        y2, norm2 = self._conv(a1, block.second)
        if block.shortcut is None:
            out = self._act(y2, norm2, block.second, 1, a, None)
            self._kept.append((a, y1, norm1, a1, y2, norm2, out))
            return out
        small, ys, norm_s = self._shortcut(a, block)
        out = self._act(y2, norm2, block.second, 2, ys, norm_s)
        self._kept.append((a, y1, norm1, a1, y2, norm2, out, small, ys, norm_s))
        return out

    def _conv(self, x: Tensor, conv: Conv) -> tuple[Tensor, Tensor]:
        """The convolution's output and its batch norm (R, 4, outputs)."""
        B, H = x.shape[1], conv.size
        y = self._buffer(f"y {conv.conv}", self.R, B, H, H, conv.outputs)
        w = self.part(self.copy, conv.conv)
        sums = self.convolver.forward(x, w, y, conv.shape, statistics=self._train)
        return y, self._norm(sums, conv.norm, conv.outputs, B * H * H)

    def _norm(self, sums: Tensor, name: str, outputs: int, count: int) -> Tensor:
        from shortlist.training.kernels.norm import stats_kernel

        norm = self._buffer(f"norm {name}", self.R, 4, outputs, dtype=torch.float32)
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
        self, y: Tensor, norm: Tensor, conv: Conv, shortcut: int, r: Tensor | None, r_norm: Tensor | None
    ) -> Tensor:
        from shortlist.training.kernels.residual import act_kernel

        B, H, C = y.shape[1], conv.size, conv.outputs
        out = self._buffer(f"a {conv.conv}", self.R, B, H + 2, H + 2, C)
        r, r_norm = y if r is None else r, norm if r_norm is None else r_norm
        block, warps = self.tiles.act
        M = B * H * H
        act_kernel[(-(-M // block), self.R)](
            y, norm, r, r_norm, out, y.stride(0), r.stride(0), out.stride(0), M,
            H=H, W=H, C=C, BLOCK_M=block, SHORTCUT=shortcut, num_warps=warps,
        )  # fmt: skip
        return out

    def _shortcut(self, a: Tensor, block: Block) -> tuple[Tensor, Tensor, Tensor]:
        """The 1 x 1 convolution of every second pixel: its input, its output and its batch norm."""
        assert block.shortcut is not None
        name, norm_name = block.shortcut
        B, H, C = a.shape[1], block.first.size, block.first.outputs
        small = a[:, :, 1:-1:2, 1:-1:2].reshape(self.R, B * H * H, block.first.inputs)
        ys = torch.bmm(small, self.part(self.copy, name))
        values = ys.float()
        sums = torch.stack([values.sum(1), (values * values).sum(1)], 1)
        return small, ys, self._norm(sums.unsqueeze(1), norm_name, C, B * H * H)

    # -- backward ------------------------------------------------------------------------------------------------------

    def backward(self, dlogits: Tensor) -> None:
        """Gradients of all parameters from the gradient by the logits (R, B, K)."""
        self.turned = self.copy.index_select(1, self.turn)
        B, side = dlogits.shape[1], self._side
        d = torch.nn.functional.pad(dlogits, (0, round_up(self.K, 8) - self.K))
        self.part(self.grad, "head.bias").copy_(d.sum(1))
        d = d.to(self.dtype)
        self.part(self.grad, "head").copy_(torch.bmm(self._pooled.transpose(1, 2), d))
        spread = torch.bmm(d, self.part(self.copy, "head").transpose(1, 2)) / side**2
        d = self._buffer(f"d {side}", self.R, B, side, side, 64)
        d.copy_(spread[:, :, None, None].expand_as(d))
        sums = self._sums(d, self._receiver(len(self.blocks)))
        for i in reversed(range(len(self.blocks))):
            d, sums = self._block_back(d, sums, self.blocks[i], self._kept[i + 1], self._receiver(i))
        x, y, norm, _ = self._kept[0]
        dy = self._norm_back(d, sums, y, norm, self.stem.norm, self.stem)
        self._weights(x, dy, self.stem)

    def _receiver(self, i: int) -> Receiver:
        """The norm and ReLU that gave block i its input; only the stem's has no shortcut in between."""
        if i == 0:
            _, y, norm, _ = self._kept[0]
            return Receiver(y, norm, None)
        _, _, _, _, y2, norm2, out = self._kept[i][:7]
        return Receiver(y2, norm2, out)

    def _block_back(
        self, d: Tensor, sums: Tensor, block: Block, kept: tuple[Tensor, ...], before: Receiver
    ) -> tuple[Tensor, Tensor]:
        """From the gradient by the last sum of a block to that of the block before it, with the sums for its norm."""
        a, y1, norm1, a1, y2, norm2 = kept[:6]
        dy2 = self._norm_back(d, sums, y2, norm2, block.second.norm, block.second)
        self._weights(a1, dy2, block.second)
        inner = self._buffer(f"inner {block.second.size}", *y1.shape)
        to = Receiver(y1, norm1, None)
        sums = self.convolver.backward(dy2, self._turned(block.second), inner, block.second.turned, to=to)
        dy1 = self._norm_back(inner, sums, y1, norm1, block.first.norm, block.first)
        self._weights(a, dy1, block.first)
        if block.shortcut is not None:
            d = self._shortcut_back(d, block, *kept[7:])
        sums = self.convolver.backward(dy1, self._turned(block.first), d, block.first.turned, add=True, to=before)
        return d, sums

    def _shortcut_back(self, d: Tensor, block: Block, small: Tensor, ys: Tensor, norm: Tensor) -> Tensor:
        """The shortcut's share of the gradient by the block's input."""
        assert block.shortcut is not None
        name, norm_name = block.shortcut
        sums = self._sums(d, Receiver(ys.view_as(d), norm, None))
        dys = self._norm_back(d, sums, ys.view_as(d), norm, norm_name, block.first, halo=False).view_as(ys)
        self.part(self.grad, name).copy_(torch.bmm(small.transpose(1, 2), dys))
        back = torch.bmm(dys, self.part(self.copy, name).transpose(1, 2))
        B, H, side = d.shape[1], block.first.size, block.first.size * 2
        wide = self._buffer(f"d {side}", self.R, B, side, side, block.first.inputs).zero_()
        wide[:, :, ::2, ::2] = back.view(self.R, B, H, H, block.first.inputs)
        return wide

    def _sums(self, d: Tensor, to: Receiver) -> Tensor:
        """The sums that a norm's way back needs, where no convolution made them; d first passes the ReLU of `act`."""
        from shortlist.training.kernels.residual import sums_kernel

        _, B, H, _, C = d.shape
        block, warps = self.tiles.act
        M = B * H * H
        sums = self._buffer("sums", self.R, -(-M // block), 2, C, dtype=torch.float32)
        act = d if to.act is None else to.act
        sums_kernel[(-(-M // block), self.R)](
            d, act, to.before, to.norm, sums, d.stride(0), act.stride(0), M,
            H=H, W=H, C=C, BLOCK_M=block, MASK=to.act is not None, num_warps=warps,
        )  # fmt: skip
        return sums

    def _norm_back(
        self, d: Tensor, sums: Tensor, y: Tensor, norm: Tensor, name: str, conv: Conv, *, halo: bool = True
    ) -> Tensor:
        """The gradient by y from that by the normalised y, in a map like the convolution's input, or without a halo."""
        from shortlist.training.kernels.norm import stats_back_kernel
        from shortlist.training.kernels.residual import norm_back_kernel

        B, H, C, parts = y.shape[1], conv.size, conv.outputs, sums.shape[1]
        M = B * H * H
        means = self._buffer("means", self.R, 2, C, dtype=torch.float32)
        dgamma, dbeta = self.part(self.grad, f"{name}.weight"), self.part(self.grad, f"{name}.bias")
        stats_back_kernel[(self.R,)](
            sums, means, dgamma, dbeta, M, self.size, TILES=parts, N=C, BLOCK=sum_block(C, parts), num_warps=8
        )
        block, warps = self.tiles.act
        stride = conv.stride if halo else 0
        side = H * stride + 2 if halo else H
        out = self._buffer(f"dy {stride}", self.R, B, side, side, C)
        norm_back_kernel[(-(-M // block), self.R)](
            d, y, norm, means, out, d.stride(0), out.stride(0), M,
            H=H, W=H, C=C, BLOCK_M=block, STRIDE=stride, num_warps=warps,
        )  # fmt: skip
        return out

    def _weights(self, x: Tensor, dy: Tensor, conv: Conv) -> None:
        self.convolver.weights(x, dy, self.part(self.grad, conv.conv), conv.shape)

    def _turned(self, conv: Conv) -> Tensor:
        shape, start = conv.turned, self.turned_slots[conv.conv]
        return self.turned[:, start : start + shape.rows * shape.columns].view(self.R, shape.rows, shape.columns)

    def update(self, lr: Tensor) -> None:
        """One step of SGD with momentum; a run whose lr is negative stands still."""
        from shortlist.training.kernels.norm import momentum_kernel

        momentum_kernel[(-(-self.size // 2048), self.R)](
            self.value, self.velocity, self.grad, self.copy, lr, self.decay, self.size, self.momentum, BLOCK=2048
        )
        self.average.step(self._averaged(), lr >= 0)
