"""The paper's LeNet for many runs at once, on the kernels of `fleet_kernels`.

Forward and backward are written out: the order of kernels is the whole program, and no activation is kept that can be
made again for less than reading it back. What is exploited:

- conv1's input needs no gradient and its batch statistics follow from moments of the images, made once for all epochs:
  mean = W m, variance = W C W'. So batch norm folds into the weights before the convolution runs, and convolution,
  batch norm, ReLU and pooling are one kernel that reads images and writes a quarter of the map.
- conv2 is a matrix product over windows that are read in place, never written out.
- A bias in front of batch norm has no gradient; it is only decayed.
- The large matrix (2,450 x 500) goes through cuBLAS, batched over runs, and its gradient is read once by the optimiser.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5
BN_MOMENTUM = 0.1
C1, C1_PAD, N1 = 20, 24, 32
C2, C2_PAD, N2 = 50, 56, 64
HIDDEN, HIDDEN_PAD = 500, 512
PLACES, HALO = 5, 2
K1 = 32  # 25 places, the bias in row 25
BLOCK_K = 128
SLACK = 4096
"""Elements behind a map with a halo: padded rows of the weight matrix read past the last window."""


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


class LeNetFleet:
    """R networks with their optimiser; all tensors have a leading dimension of runs.

    Args:
        states: the state dicts of R freshly built `models.lenet` networks.
        images: (N, 1, H, W) normalised images, H and W divisible by 4, on the device.
        weight_decay: (R,).
        momentum: of SGD.
        dtype: of activations and weight copies in the kernels (float32 for checks).
    """

    def __init__(
        self,
        states: Sequence[Mapping[str, Tensor]],
        images: Tensor,
        weight_decay: Tensor,
        momentum: float,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        self.device, self.dtype, self.momentum = images.device, dtype, momentum
        self.H, self.W = images.shape[2] // 4, images.shape[3] // 4  # after both pools
        self.places = self.H * self.W
        self.flat = _up(self.places * C2, 8)
        self.images, self.moments = with_halo(images, dtype), image_moments(images)
        self.decay = weight_decay.to(self.device, torch.float32)
        self.K = int(states[0]["12.bias"].shape[0])
        self.N4 = max(16, _up(self.K, 8))
        self._layout()
        self.load(states)
        self.buffers: dict[Any, Tensor] = {}

    # -- parameters ----------------------------------------------------------------------------------------------------

    def _layout(self) -> None:
        """Where each parameter lies in the small vector; fc1's weight is a tensor of its own."""
        self.rows2 = _up(PLACES * PLACES * C1_PAD, BLOCK_K)
        self.rows2_back = _up(PLACES * PLACES * C2_PAD, BLOCK_K)
        shapes = {
            "w1": (C1, PLACES * PLACES),
            "b1": (C1,),
            "gamma1": (C1,),
            "beta1": (C1,),
            "w2": (self.rows2, N2),
            "b2": (N2,),
            "gamma2": (N2,),
            "beta2": (N2,),
            "b3": (HIDDEN_PAD,),
            "gamma3": (HIDDEN_PAD,),
            "beta3": (HIDDEN_PAD,),
            "w4": (HIDDEN_PAD, self.N4),
            "b4": (self.N4,),
        }
        self.slots: dict[str, tuple[int, tuple[int, ...]]] = {}
        self.small_size = 0
        for name, shape in shapes.items():
            self.slots[name] = (self.small_size, shape)
            self.small_size += _up(int(torch.Size(shape).numel()), 8)

    def part(self, flat: Tensor, name: str) -> Tensor:
        """One parameter's view (R, ...) of a small vector (R, small_size)."""
        start, shape = self.slots[name]
        size = torch.Size(shape)
        return flat[:, start : start + size.numel()].view(len(flat), *shape)

    def load(self, states: Sequence[Mapping[str, Tensor]]) -> None:
        """Take parameters and running statistics from state dicts; momentum starts at zero."""
        R = len(states)
        self.R = R
        self.big = torch.zeros(R, self.flat, HIDDEN_PAD, dtype=torch.float32, device=self.device)
        self.small = torch.zeros(R, self.small_size, dtype=torch.float32, device=self.device)
        self.running = {
            kind + layer: torch.zeros(R, width, dtype=torch.float32, device=self.device)
            for layer, width in (("1", C1), ("2", N2), ("3", HIDDEN_PAD))
            for kind in "mv"
        }
        for run, state in enumerate(states):
            for slot, value in from_state(state, self.H, self.W).items():
                target = self._target(slot)[run]
                target[tuple(slice(0, n) for n in value.shape)].copy_(value)
        self.big_velocity, self.small_velocity = torch.zeros_like(self.big), torch.zeros_like(self.small)
        self.big_copy, self.small_copy = self.big.to(self.dtype), self.small.to(self.dtype)
        self.small_grad = torch.zeros_like(self.small)

    def _target(self, slot: str) -> Tensor:
        if slot == "w3":
            return self.big
        if slot in self.running:
            return self.running[slot]
        if slot == "w2":  # (R, places, inputs, outputs) inside the padded matrix
            matrix = self.part(self.small, "w2")[:, : PLACES * PLACES * C1_PAD]
            return matrix.view(self.R, PLACES * PLACES, C1_PAD, N2)
        return self.part(self.small, slot)

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """One run's network as a state dict of `models.lenet`."""
        values = {slot: self._target(slot)[run].cpu() for slot in ("w3", *self.slots, *self.running)}
        return to_state(values, self.H, self.W, self.K)

    def keep(self, runs: Tensor) -> None:
        """Go on with these runs only; the memory of the others is freed."""
        for name in ("big", "small", "big_velocity", "small_velocity", "big_copy", "small_copy", "small_grad", "decay"):
            setattr(self, name, getattr(self, name)[runs].contiguous())
        self.running = {name: value[runs].contiguous() for name, value in self.running.items()}
        self.R = len(self.small)
        self.buffers.clear()

    def state(self) -> list[Tensor]:
        """Everything that a step changes."""
        return [
            self.big,
            self.small,
            self.big_velocity,
            self.small_velocity,
            self.big_copy,
            self.small_copy,
            *self.running.values(),
        ]

    # -- forward -------------------------------------------------------------------------------------------------------

    def _buffer(self, name: str, *shape: int, dtype: torch.dtype | None = None, halo: bool = False) -> Tensor:
        """A buffer kept between steps. Those with a halo start as zeros and have slack behind them."""
        key = (name, shape)
        if key not in self.buffers:
            size = torch.Size(shape).numel()
            make = torch.zeros if halo else torch.empty
            whole = make(size + (SLACK if halo else 0), dtype=dtype or self.dtype, device=self.device)
            self.buffers[key] = whole[:size].view(shape)
        return self.buffers[key]

    def forward(
        self, index: Tensor, active: Tensor, *, train: bool, inputs: Any = None, moves: Tensor | None = None
    ) -> Tensor:
        """Logits (R, B, K) in float32 of the images at `index` (R, B); a leaf for the objective.

        Args:
            index: rows of the training images, or of `inputs` where given.
            active: (R,) float, 1 for runs whose running statistics may move.
            train: batch statistics, and what `backward` needs is kept.
            inputs: other images, made by `with_halo`.
            moves: not here: augmented runs take the general path.
        """
        B = index.shape[1]
        with torch.enable_grad():
            self._leaves = [self.part(self.small, name).detach().requires_grad_() for name in ("w1", "gamma1", "beta1")]
            folded = self._fold_first(index, active, train)
        self._folded, self._index = folded, index
        h1 = self._first(folded.detach().to(self.dtype), index, self.images if inputs is None else inputs, train)
        y2, scale, shift = self._second(h1, B, active, train)
        h2 = self._pool(y2, scale, shift, B)
        x3 = torch.bmm(h2, self.big_copy)
        h3 = self._third(x3, active, train)
        self._kept = (h1, y2, scale, shift, h2, x3, h3)
        w4, b4 = self.part(self.small_copy, "w4"), self.part(self.small, "b4")
        logits = torch.bmm(h3, w4).float() + b4.unsqueeze(1)
        return logits[..., : self.K].detach().requires_grad_()

    def _fold_first(self, index: Tensor, active: Tensor, train: bool) -> Tensor:
        """(R, K1, N1) conv1's weights with batch norm folded in, the bias in row 25."""
        w1, gamma, beta = self._leaves
        bias = self.part(self.small, "b1")
        mean, var = self.running["m1"] - bias, self.running["v1"]
        if train:
            count = index.shape[1] * 16 * self.places
            sums = F.embedding_bag(index, self.moments, mode="sum") / count
            m, second = sums[:, :25], sums[:, 25:].view(-1, 25, 25)
            covariance = second - m.unsqueeze(1) * m.unsqueeze(2)
            mean, var = (w1 @ m.unsqueeze(-1)).squeeze(-1), ((w1 @ covariance) * w1).sum(-1)
            self._move("1", mean.detach() + bias, var.detach(), count, active)
        scale = gamma * torch.rsqrt(var + EPS)
        rows = torch.cat([(w1 * scale.unsqueeze(-1)).transpose(1, 2), (beta - scale * mean).unsqueeze(1)], 1)
        return F.pad(rows, (0, N1 - C1, 0, K1 - PLACES * PLACES - 1))

    def _first(self, weights: Tensor, index: Tensor, images: Tensor, train: bool) -> Tensor:
        from shortlist.training.fleet_kernels import first_kernel

        H, W, B = 2 * self.H, 2 * self.W, index.shape[1]
        h1 = self._buffer("h1", self.R, B, H + 4, W + 4, C1_PAD, halo=True)
        code = self._buffer("code", self.R, B, H, W, C1_PAD, dtype=torch.uint8) if train else h1
        M = B * H * W
        first_kernel[(-(-M // 128), self.R)](
            images, index.contiguous(), weights.contiguous(), h1, code, h1.stride(0), B, M,
            H=H, W=W, C=C1_PAD, N=N1, K=K1, BLOCK_M=128, CODE=train, num_warps=4,
        )  # fmt: skip
        self._code = code
        return h1

    def _second(self, h1: Tensor, B: int, active: Tensor, train: bool) -> tuple[Tensor, Tensor, Tensor]:
        from shortlist.training.fleet_kernels import conv_kernel

        H, W = 2 * self.H, 2 * self.W
        M, block = B * H * W, 128
        tiles = -(-M // block)
        y2 = self._buffer("y2", self.R, B, H, W, C2_PAD)
        stats = self._buffer("stats", self.R, tiles, 2, N2, dtype=torch.float32)
        w2 = self.part(self.small_copy, "w2")
        conv_kernel[(tiles, self.R)](
            h1, w2, y2, stats, h1.stride(0), w2.stride(0), y2.stride(0), M,
            H=H, W=W, PLACES=PLACES, CI=C1_PAD, CO=C2_PAD, N=N2, BLOCK_K=BLOCK_K, BLOCKS_K=self.rows2 // BLOCK_K,
            BLOCK_M=block, STATS=train, num_warps=4, num_stages=3,
        )  # fmt: skip
        bias = self.part(self.small, "b2")
        if train:
            mean, square = (stats.sum(1) / M).unbind(1)
            var = (square - mean * mean).clamp(min=0)
            self._move("2", mean + bias, var, M, active)
        else:
            mean, var = self.running["m2"] - bias, self.running["v2"]
        self._mean2, self._rstd2 = mean, torch.rsqrt(var + EPS)
        scale = self.part(self.small, "gamma2") * self._rstd2
        return y2, scale, self.part(self.small, "beta2") - scale * mean

    def _pool(self, y2: Tensor, scale: Tensor, shift: Tensor, B: int) -> Tensor:
        from shortlist.training.fleet_kernels import pool_kernel

        h2 = self._buffer("h2", self.R, B, self.flat, halo=True)  # zeros in the padded columns
        M = B * self.places
        pool_kernel[(-(-M // 32), self.R)](
            y2, scale.contiguous(), shift.contiguous(), h2, y2.stride(0), h2.stride(0), self.flat, M,
            H=self.H, W=self.W, C=C2_PAD, N=N2, CO=C2, BLOCK_M=32, num_warps=4,
        )  # fmt: skip
        return h2

    def _third(self, x3: Tensor, active: Tensor, train: bool) -> Tensor:
        from shortlist.training.fleet_kernels import norm_kernel

        gamma, beta, bias = (self.part(self.small, name) for name in ("gamma3", "beta3", "b3"))
        if not train:
            scale = gamma * torch.rsqrt(self.running["v3"] + EPS)
            shift = beta - scale * (self.running["m3"] - bias)
            return torch.relu(x3.float() * scale.unsqueeze(1) + shift.unsqueeze(1)).to(self.dtype)
        B = x3.shape[1]
        h3 = torch.empty_like(x3)
        self._mean3, self._var3 = (torch.empty(self.R, HIDDEN_PAD, device=self.device) for _ in range(2))
        norm_kernel[(HIDDEN_PAD // 32, self.R)](
            x3, gamma.contiguous(), beta.contiguous(), h3, self._mean3, self._var3, B, HIDDEN_PAD,
            EPS=EPS, BLOCK_B=1 << (B - 1).bit_length(), BLOCK_F=32, num_warps=4,
        )  # fmt: skip
        self._move("3", self._mean3 + bias, self._var3, B, active)
        return h3

    def _move(self, layer: str, mean: Tensor, var: Tensor, count: int, active: Tensor) -> None:
        """Running statistics, as torch's batch norm keeps them (the variance unbiased)."""
        step = (BN_MOMENTUM * active).unsqueeze(1)
        for name, value in (("m", mean), ("v", var * (count / max(count - 1, 1)))):
            running = self.running[name + layer]
            running.add_(step * (value - running))

    # -- backward ------------------------------------------------------------------------------------------------------

    def backward(self, dlogits: Tensor) -> None:
        """Gradients of all parameters from the gradient by the logits (R, B, K)."""
        h1, y2, scale, shift, h2, x3, h3 = self._kept
        d4 = F.pad(dlogits, (0, self.N4 - self.K))
        self.part(self.small_grad, "b4").copy_(d4.sum(1))
        d4 = d4.to(self.dtype)
        self.part(self.small_grad, "w4").copy_(torch.bmm(h3.transpose(1, 2), d4))
        dx3 = self._third_back(x3, torch.bmm(d4, self.part(self.small_copy, "w4").transpose(1, 2)))
        self.big_grad = torch.bmm(h2.transpose(1, 2), dx3)
        dh2 = torch.bmm(dx3, self.big_copy.transpose(1, 2))
        dy2 = self._pool_back(y2, scale, shift, dh2)
        self._second_weights(h1, dy2)
        self._first_back(self._second_back(dy2))

    def _third_back(self, x3: Tensor, dh3: Tensor) -> Tensor:
        from shortlist.training.fleet_kernels import norm_back_kernel

        B = x3.shape[1]
        dx3 = torch.empty_like(x3)
        gamma, beta = (self.part(self.small, name).contiguous() for name in ("gamma3", "beta3"))
        dgamma, dbeta = torch.empty_like(self._mean3), torch.empty_like(self._mean3)
        norm_back_kernel[(HIDDEN_PAD // 32, self.R)](
            x3, gamma, beta, self._mean3, self._var3, dh3, dx3, dgamma, dbeta, B, HIDDEN_PAD,
            EPS=EPS, BLOCK_B=1 << (B - 1).bit_length(), BLOCK_F=32, num_warps=4,
        )  # fmt: skip
        self.part(self.small_grad, "gamma3").copy_(dgamma)
        self.part(self.small_grad, "beta3").copy_(dbeta)
        return dx3

    def _pool_back(self, y2: Tensor, scale: Tensor, shift: Tensor, dh2: Tensor) -> Tensor:
        from shortlist.training.fleet_kernels import pool_back_kernel

        B = y2.shape[1]
        H, W = self.H, self.W
        M, block = B * self.places, 32
        tiles = -(-M // block)
        dy2 = self._buffer("dy2", self.R, B, 2 * H + 4, 2 * W + 4, C2_PAD, halo=True)
        sums = self._buffer("sums", self.R, tiles, 2, N2, dtype=torch.float32)
        fixed = [scale.contiguous(), shift.contiguous(), self._mean2.contiguous(), self._rstd2.contiguous()]
        c1 = c2 = fixed[0]
        for apply in (False, True):
            pool_back_kernel[(tiles, self.R)](
                y2, *fixed, c1, c2, dh2, dy2, sums, y2.stride(0), dh2.stride(0), self.flat, dy2.stride(0), M,
                H=H, W=W, C=C2_PAD, N=N2, CO=C2, BLOCK_M=block, APPLY=apply, num_warps=4,
            )  # fmt: skip
            if not apply:
                dbeta, dgamma = sums.sum(1).unbind(1)
                self.part(self.small_grad, "beta2").copy_(dbeta)
                self.part(self.small_grad, "gamma2").copy_(dgamma)
                count = M * 4
                c1, c2 = (dbeta / count).contiguous(), (dgamma / count).contiguous()
        return dy2

    def _second_weights(self, h1: Tensor, dy2: Tensor) -> None:
        from shortlist.training.fleet_kernels import conv_weight_kernel

        splits, blocks = 8, self.rows2 // BLOCK_K
        H, W, B = 2 * self.H, 2 * self.W, h1.shape[1]
        parts = self._buffer("w2_parts", self.R, splits, self.rows2, N2, dtype=torch.float32)
        conv_weight_kernel[(blocks, splits, self.R)](
            h1, dy2, parts, h1.stride(0), dy2.stride(0), B * H * W,
            H=H, W=W, PLACES=PLACES, CI=C1_PAD, CO=C2_PAD, N=N2, BLOCK_K=BLOCK_K, BLOCKS_K=blocks,
            BLOCK_M=64, SPLITS=splits, STEPS=-(-B * H * W // (64 * splits)), num_warps=4, num_stages=3,
        )  # fmt: skip
        grad = self.part(self.small_grad, "w2")
        grad.copy_(parts.sum(1))
        # rows behind the last place are padding: what was read there is not a gradient
        grad[:, PLACES * PLACES * C1_PAD :] = 0

    def _second_back(self, dy2: Tensor) -> Tensor:
        from shortlist.training.fleet_kernels import conv_kernel

        H, W, B, taps = 2 * self.H, 2 * self.W, dy2.shape[1], PLACES * PLACES
        w2 = self.part(self.small_copy, "w2")[:, : taps * C1_PAD].view(self.R, taps, C1_PAD, N2)[..., :C2_PAD]
        turned = self._buffer("turned", self.R, self.rows2_back, N1, halo=True)
        turned[:, : taps * C2_PAD].view(self.R, taps, C2_PAD, N1)[..., :C1_PAD].copy_(w2.flip(1).transpose(2, 3))
        dh1 = self._buffer("dh1", self.R, B, H, W, C1_PAD)
        M, block = B * H * W, 128
        conv_kernel[(-(-M // block), self.R)](
            dy2, turned, dh1, dh1, dy2.stride(0), turned.stride(0), dh1.stride(0), M,
            H=H, W=W, PLACES=PLACES, CI=C2_PAD, CO=C1_PAD, N=N1, BLOCK_K=BLOCK_K, BLOCKS_K=self.rows2_back // BLOCK_K,
            BLOCK_M=block, STATS=False, num_warps=4, num_stages=3,
        )  # fmt: skip
        return dh1

    def _first_back(self, dh1: Tensor) -> None:
        from shortlist.training.fleet_kernels import first_weight_kernel

        splits, B = 32, dh1.shape[1]
        H, W = 2 * self.H, 2 * self.W
        parts = self._buffer("w1_parts", self.R, splits, K1, N1, dtype=torch.float32)
        first_weight_kernel[(splits, self.R)](
            self.images, self._index.contiguous(), dh1, self._code, parts, B, B * H * W,
            H=H, W=W, C=C1_PAD, N=N1, K=K1, BLOCK_M=128, SPLITS=splits, STEPS=-(-B * H * W // (128 * splits)),
            num_warps=4,
        )  # fmt: skip
        grads = torch.autograd.grad(self._folded, self._leaves, parts.sum(1))
        for name, grad in zip(("w1", "gamma1", "beta1"), grads, strict=True):
            self.part(self.small_grad, name).copy_(grad)

    def update(self, lr: Tensor) -> None:
        """One step of SGD with momentum; a run whose lr is negative stands still."""
        from shortlist.training.fleet_kernels import momentum_kernel

        for value, velocity, grad, copy in (
            (self.big, self.big_velocity, self.big_grad, self.big_copy),
            (self.small, self.small_velocity, self.small_grad, self.small_copy),
        ):
            P = value[0].numel()
            momentum_kernel[(-(-P // 4096), self.R)](
                value, velocity, grad, copy, lr, self.decay, P, self.momentum, BLOCK=4096, num_warps=8
            )


def with_halo(images: Tensor, dtype: torch.dtype) -> Tensor:
    """(N, 1, H, W) -> (N, H + 4, W + 4) with zeros around, in the kernels' dtype."""
    return F.pad(images.squeeze(1), (HALO,) * 4).to(dtype).contiguous()


def image_moments(images: Tensor) -> Tensor:
    """(N, 25 + 625) for each image the sum of its 5 x 5 windows and of their outer products."""
    parts = []
    for part in torch.split(images, 1000):
        windows = F.unfold(part, PLACES, padding=HALO)  # (n, 25, H W)
        parts.append(torch.cat([windows.sum(-1), (windows @ windows.transpose(1, 2)).flatten(1)], 1))
    return torch.cat(parts)


def from_state(state: Mapping[str, Tensor], H: int, W: int) -> dict[str, Tensor]:
    """The parameters of `models.lenet` in the kernels' layout, without padding."""
    taps = PLACES * PLACES
    return {
        "w1": state["0.weight"].reshape(C1, taps),
        "b1": state["0.bias"],
        "gamma1": state["1.weight"],
        "beta1": state["1.bias"],
        "m1": state["1.running_mean"],
        "v1": state["1.running_var"],
        "w2": state["4.weight"].reshape(C2, C1, taps).permute(2, 1, 0),
        "b2": state["4.bias"],
        "gamma2": state["5.weight"],
        "beta2": state["5.bias"],
        "m2": state["5.running_mean"],
        "v2": state["5.running_var"],
        "w3": state["9.weight"].reshape(HIDDEN, C2, H * W).permute(2, 1, 0).reshape(H * W * C2, HIDDEN),
        "b3": state["9.bias"],
        "gamma3": state["10.weight"],
        "beta3": state["10.bias"],
        "m3": state["10.running_mean"],
        "v3": state["10.running_var"],
        "w4": state["12.weight"].t(),
        "b4": state["12.bias"],
    }


def to_state(v: Mapping[str, Tensor], H: int, W: int, K: int) -> dict[str, Tensor]:
    """Undo `from_state`, cutting the padding off."""
    w3 = v["w3"][: H * W * C2, :HIDDEN].reshape(H * W, C2, HIDDEN).permute(2, 1, 0)
    counted = torch.zeros((), dtype=torch.int64)  # torch does not use it where batch norm has a momentum
    return {
        "1.num_batches_tracked": counted,
        "5.num_batches_tracked": counted.clone(),
        "10.num_batches_tracked": counted.clone(),
        "0.weight": v["w1"].reshape(C1, 1, PLACES, PLACES),
        "0.bias": v["b1"],
        "1.weight": v["gamma1"],
        "1.bias": v["beta1"],
        "1.running_mean": v["m1"],
        "1.running_var": v["v1"],
        "4.weight": v["w2"][:, :C1, :C2].permute(2, 1, 0).reshape(C2, C1, PLACES, PLACES),
        "4.bias": v["b2"][:C2],
        "5.weight": v["gamma2"][:C2],
        "5.bias": v["beta2"][:C2],
        "5.running_mean": v["m2"][:C2],
        "5.running_var": v["v2"][:C2],
        "9.weight": w3.reshape(HIDDEN, C2 * H * W),
        "9.bias": v["b3"][:HIDDEN],
        "10.weight": v["gamma3"][:HIDDEN],
        "10.bias": v["beta3"][:HIDDEN],
        "10.running_mean": v["m3"][:HIDDEN],
        "10.running_var": v["v3"][:HIDDEN],
        "12.weight": v["w4"].t()[:K, :HIDDEN],
        "12.bias": v["b4"][:K],
    }
