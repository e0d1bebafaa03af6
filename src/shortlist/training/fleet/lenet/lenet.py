"""The paper's LeNet for many runs at once, on the kernels of `kernels/`.

Forward and backward are written out: the order of kernels is the whole program, and no activation is kept that can be
made again for less than reading it back. What is exploited:

- conv1's input needs no gradient and its batch statistics follow from moments of the images: mean = W m, variance =
  W C W'. They are made once for all epochs, those of moved batches (`lenet/batch.py`) once a step. So batch norm
  folds into the weights before the convolution runs, and convolution, batch norm, ReLU and pooling are one kernel that
  reads images and writes a quarter of the map.
- conv2 is a matrix product over windows that are read in place, never written out.
- A bias in front of batch norm has no gradient; it is only decayed.
- The large matrix (2,450 x 500) goes through cuBLAS, batched over runs, and its gradient is read once by the optimiser.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from shortlist.training.fleet.conv.by_cuda import CudaConv
from shortlist.training.fleet.conv.conv import Convolver, TritonConv, round_up
from shortlist.training.fleet.kernel_base import BN_MOMENTUM, EPS, KernelFleet
from shortlist.training.fleet.lenet.batch import moved_images, resident_moments
from shortlist.training.fleet.lenet.by_cuda import CudaLayers
from shortlist.training.fleet.lenet.by_triton import TritonLayers
from shortlist.training.fleet.lenet.layout import (
    BLOCK_K,
    C1,
    C1_PAD,
    C2,
    C2_PAD,
    FLOAT_TILES,
    HIDDEN_PAD,
    K1,
    MOMENTS,
    N1,
    N2,
    ROWS2_BACK,
    TAPS,
    Tiles,
    from_state,
    image_moments,
    moment_places,
    second_shape,
    small_slots,
    to_state,
    turned_places,
    with_halo,
)
from shortlist.training.views import mean_greys, mix_strong


class LeNetFleet(KernelFleet):
    """R networks with their optimiser; all tensors have a leading dimension of runs.

    Args:
        states: the state dicts of R freshly built `models.lenet` networks.
        images: (N, 1, H, W) normalised images, H and W divisible by 4, on the device.
        weight_decay: (R,).
        momentum: of SGD.
        dtype: of activations and weight copies in the kernels (float32 for checks).
        tiles: block sizes.
        ema: (R,) the decay of averaged weights.
        black: (R,) what a pixel of zero is when it is normalised: it pads images that are moved.
        teacher: (R,) the decay of the averaged weights that teach.
    """

    by_run = (
        "big", "small", "big_velocity", "small_velocity", "big_copy", "small_copy", "small_grad", "decay", "black",
    )  # fmt: skip
    rounded: ClassVar = {"big": "big_copy", "small": "small_copy"}

    def __init__(
        self,
        states: Sequence[Mapping[str, Tensor]],
        images: Tensor,
        weight_decay: Tensor,
        momentum: float,
        dtype: torch.dtype = torch.bfloat16,
        tiles: Tiles | None = None,
        ema: Tensor | None = None,
        black: Tensor | None = None,
        teacher: Tensor | None = None,
    ) -> None:
        self.device, self.dtype, self.momentum = images.device, dtype, momentum
        self.tiles = tiles or (Tiles() if dtype == torch.bfloat16 else FLOAT_TILES)
        self.H, self.W = images.shape[2] // 4, images.shape[3] // 4  # after both pools
        self.places, self.second = self.H * self.W, second_shape(2 * self.H, 2 * self.W)
        self.flat = round_up(self.places * C2, 8)
        self.images, self.moments = with_halo(images, dtype), image_moments(images)
        self.greys = mean_greys(images)
        self.moment_places = moment_places(self.device)
        self.decay = weight_decay.to(self.device, torch.float32)
        self.black = torch.zeros_like(self.decay) if black is None else black.to(self.device, torch.float32)
        self.K = int(states[0]["12.bias"].shape[0])
        self.N4 = max(16, round_up(self.K, 8))
        self.slots, self.small_size = small_slots(self.N4)
        self.turn = turned_places(self.slots).to(self.device)
        self.load(states)
        self._follow(ema, teacher)
        self.buffers = {}
        self._choose_kernels()

    def _choose_kernels(self) -> None:
        by_inputs = {C1_PAD: self.tiles.conv, C2_PAD: self.tiles.conv_back}
        self.convolver: Convolver = TritonConv(self._zeros, by_inputs, {C1_PAD: self.tiles.weights}, BLOCK_K)
        if CudaConv.suits(self.device, self.dtype, [self.second]):
            self.convolver = CudaConv(self._zeros)
        self.cuda: CudaLayers | None = None
        if CudaLayers.suits(self.device, self.dtype, self.H, self.W):
            self.cuda = CudaLayers(self._zeros, self.H, self.W)

    @property
    def _layers(self) -> CudaLayers | TritonLayers:
        return self.cuda or TritonLayers(self._zeros, self.H, self.W, self.tiles, self.moment_places)

    # -- parameters ----------------------------------------------------------------------------------------------------

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
            return self.part(self.small, "w2")[:, : TAPS * C1_PAD].view(self.R, TAPS, C1_PAD, N2)
        return self.part(self.small, slot)

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """One run's network as a state dict of `models.lenet`."""
        values = {slot: self._target(slot)[run].to("cpu", copy=True) for slot in ("w3", *self.slots, *self.running)}
        return to_state(values, self.H, self.W, self.K)

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
            *self._averages(),
        ]

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
        """Logits (R, B, K) in float32 of the images at `index` (R, B); a leaf for the objective.

        Args:
            index: rows of the training images, or of `inputs` where given.
            active: (R,) float, 1 for runs whose running statistics may move.
            train: batch statistics, and what `backward` needs is kept.
            inputs: other images, made by `with_halo`.
            moves: (R, B, 3) how images are cut and flipped, or (R, B, 9) how they are changed (`views`).
            own: (R,) how strong views are mixed.
        """
        B, index, images = index.shape[1], index.contiguous(), self.images if inputs is None else inputs
        sums = self.moments  # stands for nothing in evaluation
        if moves is not None:
            images, index = moved_images(images, index, moves, self.greys, self.black, self._zeros)
            if own is not None:
                mix_strong(images.view(self.R, B, *images.shape[1:]), own)
            sums = self._layers.moments(images, index).sum(1) if train else sums
        elif train:
            sums = resident_moments(index, self.moments, self._zeros)
        folded = self._fold(sums, B, active, train)
        h1 = self._first(folded, index, images, train)
        y2, norm = self._second(h1, B, active, train)
        h2 = self._pool(y2, norm, B, train)
        x3 = torch.bmm(h2, self.big_copy)
        h3 = self._third(x3, active, train)
        self._kept = (images, index, h1, y2, norm, h2, x3, h3)
        logits = torch.bmm(h3, self.part(self.small_copy, "w4")) + self.part(self.small, "b4").unsqueeze(1)
        return logits[..., : self.K].detach().requires_grad_()

    def _parts(self, *names: str) -> list[Tensor]:
        return [self.part(self.small, name) for name in names]

    def _fold(self, sums: Tensor, B: int, active: Tensor, train: bool) -> Tensor:
        """(R, K1, N1) conv1's weights with batch norm folded in, the bias in row 25."""
        from shortlist.training.fleet.kernels.lenet import fold_kernel

        folded = self._buffer("folded", self.R, K1, N1)
        kept = self._buffer("fold_kept", self.R, K1 + 3, K1, dtype=torch.float32)
        fold_kernel[(self.R,)](
            sums, self.moment_places, *self._parts("w1", "gamma1", "beta1", "b1"), folded, kept,
            self.running["m1"], self.running["v1"], active, B * 16 * self.places, self.small_size, MOMENTS,
            C=C1, K=K1, EPS=EPS, MOMENTUM=BN_MOMENTUM, TRAIN=train,
        )  # fmt: skip
        return folded

    def _first(self, weights: Tensor, index: Tensor, images: Tensor, train: bool) -> Tensor:
        h1 = self._zeros("h1", self.R, index.shape[1], 2 * self.H + 4, 2 * self.W + 4, C1_PAD)
        self._layers.first(images, index, weights, h1, train=train)
        return h1

    def _second(self, h1: Tensor, B: int, active: Tensor, train: bool) -> tuple[Tensor, Tensor]:
        from shortlist.training.fleet.kernels.norm import stats_kernel

        shape = self.second
        y2 = self._buffer("y2", self.R, B, shape.height, shape.width, C2_PAD)
        sums = self.convolver.forward(h1, self.part(self.small_copy, "w2"), y2, shape, statistics=train)
        norm = self._buffer("norm", self.R, 4, N2, dtype=torch.float32)
        stats_kernel[(self.R,)](
            sums, *self._parts("gamma2", "beta2", "b2"), norm, self.running["m2"], self.running["v2"], active,
            B * shape.height * shape.width, self.small_size, TILES=sums.shape[1], N=N2, EPS=EPS, MOMENTUM=BN_MOMENTUM,
            TRAIN=train, BLOCK=64, num_warps=8,
        )  # fmt: skip
        return y2, norm

    def _pool(self, y2: Tensor, norm: Tensor, B: int, train: bool) -> Tensor:
        from shortlist.training.fleet.kernels.lenet import pool_kernel

        h2 = self._zeros("h2", self.R, B, self.flat)  # zeros in the padded columns
        won = self._buffer("won", self.R, B, self.flat) if train else h2
        M = B * self.places
        block, warps = self.tiles.pool
        pool_kernel[(-(-M // block), self.R)](
            y2, norm, h2, won, y2.stride(0), h2.stride(0), M,
            H=self.H, W=self.W, C=C2_PAD, N=N2, CO=C2, BLOCK_M=block, ROW=self.flat, TRAIN=train, num_warps=warps,
        )  # fmt: skip
        return h2

    def _third(self, x3: Tensor, active: Tensor, train: bool) -> Tensor:
        from shortlist.training.fleet.kernels.lenet import norm_kernel

        gamma, beta, bias = self._parts("gamma3", "beta3", "b3")
        if not train:
            scale = gamma * torch.rsqrt(self.running["v3"] + EPS)
            shift = beta - scale * (self.running["m3"] - bias)
            return torch.relu(x3.float() * scale.unsqueeze(1) + shift.unsqueeze(1)).to(self.dtype)
        B = x3.shape[1]
        h3 = torch.empty_like(x3)
        mean, var = (self._buffer(name, self.R, HIDDEN_PAD, dtype=torch.float32) for name in ("mean3", "var3"))
        norm_kernel[(HIDDEN_PAD // 32, self.R)](
            x3, gamma, beta, bias, h3, mean, var, self.running["m3"], self.running["v3"], active, B, HIDDEN_PAD,
            self.small_size, EPS=EPS, MOMENTUM=BN_MOMENTUM, BLOCK_B=1 << (B - 1).bit_length(), BLOCK_F=32,
            num_warps=_norm_warps(B),
        )  # fmt: skip
        return h3

    # -- backward ------------------------------------------------------------------------------------------------------

    def backward(self, dlogits: Tensor) -> None:
        """Gradients of all parameters from the gradient by the logits (R, B, K)."""
        images, index, h1, y2, norm, h2, x3, h3 = self._kept
        d4 = self._head_back(dlogits.contiguous())
        self._grad("w4").copy_(torch.bmm(h3.transpose(1, 2), d4))
        dx3 = self._third_back(x3, torch.bmm(d4, self.part(self.small_copy, "w4").transpose(1, 2)))
        self.big_grad = torch.bmm(h2.transpose(1, 2), dx3)
        dh2 = torch.bmm(dx3, self.big_copy.transpose(1, 2))
        dy2 = self._pool_back(y2, norm, dh2)
        self.convolver.weights(h1, dy2, self._grad("w2"), self.second)
        self._first_back(images, index, self._second_back(dy2))

    def _grad(self, name: str) -> Tensor:
        return self.part(self.small_grad, name)

    def _head_back(self, dlogits: Tensor) -> Tensor:
        from shortlist.training.fleet.kernels.lenet import head_back_kernel

        B, columns = dlogits.shape[1], 1 << (self.N4 - 1).bit_length()
        block = max(1, 4096 // columns)
        d4 = self._buffer("d4", self.R, B, self.N4)
        head_back_kernel[(self.R,)](
            dlogits, d4, self._grad("b4"), B, self.small_size,
            K=self.K, N=self.N4, BLOCK_N=columns, BLOCK_B=block, STEPS=-(-B // block),
        )  # fmt: skip
        return d4

    def _third_back(self, x3: Tensor, dh3: Tensor) -> Tensor:
        from shortlist.training.fleet.kernels.lenet import norm_back_kernel

        B = x3.shape[1]
        dx3 = torch.empty_like(x3)
        mean, var = (self._buffer(name, self.R, HIDDEN_PAD, dtype=torch.float32) for name in ("mean3", "var3"))
        norm_back_kernel[(HIDDEN_PAD // 32, self.R)](
            x3, *self._parts("gamma3", "beta3"), mean, var, dh3, dx3, self._grad("gamma3"), self._grad("beta3"), B,
            HIDDEN_PAD, self.small_size, EPS=EPS, BLOCK_B=1 << (B - 1).bit_length(), BLOCK_F=32,
            num_warps=_norm_warps(B),
        )  # fmt: skip
        return dx3

    def _pool_back(self, y2: Tensor, norm: Tensor, dh2: Tensor) -> Tensor:
        dy2 = self._zeros("dy2", self.R, y2.shape[1], 2 * self.H + 4, 2 * self.W + 4, C2_PAD)
        self._layers.pool_back(y2, norm, self._pool_means(norm, dh2), dh2, dy2)
        return dy2

    def _pool_means(self, norm: Tensor, dh2: Tensor) -> Tensor:
        """(R, 2, N2) the means over conv2's map that batch norm's way back needs; its own gradients on the way."""
        from shortlist.training.fleet.kernels.lenet import pool_sums_kernel
        from shortlist.training.fleet.kernels.norm import stats_back_kernel

        B = dh2.shape[1]
        M = B * self.places
        block, warps = self.tiles.pool_sums
        tiles = -(-M // block)
        won = self._buffer("won", self.R, B, self.flat)
        sums = self._buffer("sums", self.R, tiles, 2, N2, dtype=torch.float32)
        means = self._buffer("means", self.R, 2, N2, dtype=torch.float32)
        pool_sums_kernel[(tiles, self.R)](
            won, norm, dh2, sums, won.stride(0), M,
            PLACES=self.places, N=N2, CO=C2, BLOCK_M=block, ROW=self.flat, num_warps=warps,
        )  # fmt: skip
        stats_back_kernel[(self.R,)](
            sums, means, self._grad("gamma2"), self._grad("beta2"), 4 * M, self.small_size,
            TILES=tiles, N=N2, BLOCK=64, num_warps=8,
        )  # fmt: skip
        return means

    def _second_back(self, dy2: Tensor) -> Tensor:
        shape = self.second.turned(ROWS2_BACK, N1)
        w2 = self.small_copy.index_select(1, self.turn).view(self.R, ROWS2_BACK, N1)
        dh1 = self._buffer("dh1", self.R, dy2.shape[1], shape.height, shape.width, C1_PAD)
        self.convolver.backward(dy2, w2, dh1, shape)
        return dh1

    def _first_back(self, images: Tensor, index: Tensor, dh1: Tensor) -> None:
        from shortlist.training.fleet.kernels.lenet import fold_back_kernel

        parts = self._layers.first_weights(images, index, dh1)
        kept = self._buffer("fold_kept", self.R, K1 + 3, K1, dtype=torch.float32)
        fold_back_kernel[(self.R,)](
            parts, kept, *self._parts("w1", "gamma1"), self._grad("w1"), self._grad("gamma1"), self._grad("beta1"),
            self.small_size, parts.shape[1], C=C1, K=K1, AT_ONCE=8, STEPS=-(-parts.shape[1] // 8),
        )  # fmt: skip

    def update(self, lr: Tensor) -> None:
        """One step of SGD with momentum; a run whose lr is negative stands still."""
        from shortlist.training.fleet.kernels.norm import momentum_kernel

        for value, velocity, grad, rounded in (
            (self.big, self.big_velocity, self.big_grad, self.big_copy),
            (self.small, self.small_velocity, self.small_grad, self.small_copy),
        ):
            P = value[0].numel()
            momentum_kernel[(-(-P // 4096), self.R)](
                value, velocity, grad, rounded, lr, self.decay, P, self.momentum, BLOCK=4096, num_warps=8
            )
        self._move_averages(lr >= 0)


def _norm_warps(batch: int) -> int:
    """Warps of the last batch norm's kernels, each of which has the whole batch: its registers bear no more."""
    return 4 if batch <= 256 else 8
