"""Relative errors of the kernels against plain modules, as JSON: two steps of two runs that differ in all they can.

Run by test_kernels.py with TRITON_INTERPRET=1.
"""

import copy
import json
import sys
from collections.abc import Mapping
from dataclasses import replace

import cuda_on_cpu
import torch
from torch import Tensor, nn

from shortlist import ShortlistClassifier, models
from shortlist.data import Dataset, load
from shortlist.models.resnet import BasicBlock
from shortlist.training.augment import PADDING, move_images
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet.class_sets import Sets
from shortlist.training.fleet.conv.by_cuda import CudaConv
from shortlist.training.fleet.fleet import Fleet
from shortlist.training.fleet.kernels import nvrtc
from shortlist.training.fleet.lenet.by_cuda import CudaLayers
from shortlist.training.fleet.lenet.layout import with_halo
from shortlist.training.fleet.lenet.lenet import LeNetFleet
from shortlist.training.fleet.networks import LeNetNet
from shortlist.training.fleet.packs import build_tasks, fleet_of
from shortlist.training.fleet.resnet.resnet import ResNetFleet
from shortlist.training.fleet.single import KernelRun
from shortlist.training.inputs import Inputs
from shortlist.training.loop import fit
from shortlist.training.prepared import prepare
from shortlist.training.task import build_task
from shortlist.training.views import change_images, draw_changes, two_views

K, SIZE, R = 10, 8, 2
LR, DECAY, EMA = (0.05, 0.1), (1e-3, 1e-2), (0.0, 0.5)
ITEMS, BATCH, WIDE_BATCH = 40, 6, 30


def gap(ours: Tensor, theirs: Tensor) -> float:
    return float((ours.double() - theirs.double()).norm() / (theirs.double().norm() + 1e-6))


def stir(net: nn.Module) -> nn.Module:
    """Batch norms as training leaves them, not as they start."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1, 0.2)
            nn.init.normal_(module.bias, 0, 0.2)
    return net


def small_resnet() -> nn.Module:
    blocks, inputs = [], 16
    for outputs in (16, 32, 64):
        blocks.append(BasicBlock(inputs, outputs, 2 if outputs != inputs else 1))
        inputs = outputs
    stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, K))


def draw_all_moves(*shape: int) -> Tensor:
    """Crops and flips, the first of a batch being none."""
    moves = torch.randint(0, 2 * PADDING + 1, (*shape, 3), dtype=torch.uint8)
    moves[..., 2] = torch.randint(0, 2, shape)
    moves[:, 0] = torch.tensor([PADDING, PADDING, 0])
    return moves


def moved(images: Tensor, moves: Tensor, black: Tensor) -> Tensor:
    """Normalised images that are moved, `black` being what their padding becomes."""
    return move_images(images, moves) + (1 - move_images(torch.ones_like(images), moves)) * black


def compare(
    fleet: LeNetFleet | ResNetFleet, nets: list[nn.Module], floats: list[Tensor], test: object,
    errors: dict[str, float], black: Tensor | None = None, steps: int = 2,
) -> None:  # fmt: skip
    """Steps of the fleet beside torch.optim's and a plain average; a run that is told to stand still does.

    `floats` are each run's images as its network takes them; with `black` (R,) they are moved in each step.
    """
    averages = [copy.deepcopy(net) for net in nets]
    optimisers = [
        torch.optim.SGD(net.parameters(), lr=LR[i], momentum=0.9, weight_decay=DECAY[i]) for i, net in enumerate(nets)
    ]
    for step in range(steps):
        index = torch.stack([torch.randperm(ITEMS)[:BATCH] for _ in range(R)])
        slope = torch.randn(R, BATCH, K) / BATCH
        moves = None if black is None else draw_all_moves(R, BATCH)
        logits = fleet.forward(index, torch.ones(R), train=True, moves=moves)
        fleet.backward(slope)
        fleet.update(torch.tensor(LR))
        for i, net in enumerate(nets):
            x = floats[i][index[i]]
            out = net.train()(x if moves is None or black is None else moved(x, moves[i], black[i]))
            optimisers[i].zero_grad()
            (out * slope[i]).sum().backward()
            optimisers[i].step()
            follow(averages[i], net, min(EMA[i], (1 + step) / (10 + step)))
            errors[f"logits {i} step {step}"] = gap(logits[i].detach(), out.detach())
    for i, net in enumerate(nets):
        states(fleet.state_dict(i), net.state_dict(), f"run {i}", errors)
    with fleet.averaged():
        for i, net in enumerate(averages):
            states(fleet.state_dict(i), net.state_dict(), f"average {i}", errors)
    before = [tensor.clone() for tensor in fleet.state()]
    fleet.forward(index, torch.zeros(R), train=True, moves=moves)
    fleet.backward(slope)
    fleet.update(torch.full((R,), -1.0))
    errors["stands still"] = float(any(not torch.equal(a, b) for a, b in zip(before, fleet.state(), strict=True)))
    rows = torch.arange(9).expand(R, 9).contiguous()
    scores = fleet.forward(rows, torch.zeros(R), train=False, inputs=test)
    with fleet.averaged():
        averaged = fleet.forward(rows, torch.zeros(R), train=False, inputs=test)
    for i, net in enumerate(nets):
        errors[f"evaluation {i}"] = gap(scores[i].detach(), net.eval()(floats[i][:9]).detach())
        errors[f"averaged evaluation {i}"] = gap(averaged[i].detach(), averages[i].eval()(floats[i][:9]).detach())
    fleet.keep(torch.tensor([1]))
    states(fleet.state_dict(0), nets[1].state_dict(), "kept", errors)
    with fleet.averaged():
        states(fleet.state_dict(0), averages[1].state_dict(), "average kept", errors)


def follow(average: nn.Module, net: nn.Module, decay: float) -> None:
    for ours, theirs in zip(average.state_dict().values(), net.state_dict().values(), strict=True):
        if ours.is_floating_point():
            ours.copy_(decay * ours + (1 - decay) * theirs)


def states(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], name: str, errors: dict[str, float]) -> None:
    assert set(ours) == set(theirs)
    for key, tensor in theirs.items():
        if tensor.is_floating_point():
            errors[f"{name} {key}"] = gap(ours[key], tensor)


def lenet(errors: dict[str, float]) -> None:
    images = torch.randn(ITEMS, 1, SIZE, SIZE)
    nets = [stir(models.build("lenet", (1, SIZE, SIZE), K, seed=i)) for i in range(R)]
    fleet = LeNetFleet(
        [net.state_dict() for net in nets], images, torch.tensor(DECAY), 0.9, torch.float32, ema=torch.tensor(EMA)
    )
    compare(fleet, nets, [images] * R, with_halo(images, torch.float32), errors)


def lenet_moved(errors: dict[str, float]) -> None:
    """The same with crops and flips; and a second pass of one run, which is all that it changes."""
    images, black = torch.randn(ITEMS, 1, SIZE, SIZE), torch.tensor([-0.4, -1.3])
    nets = [stir(models.build("lenet", (1, SIZE, SIZE), K, seed=i)) for i in range(R)]
    starts, decay, ema = [net.state_dict() for net in nets], torch.tensor(DECAY), torch.tensor(EMA)
    fleet, other = (LeNetFleet(starts, images, decay, 0.9, torch.float32, ema=ema, black=black) for _ in range(2))
    compare(fleet, nets, [images] * R, with_halo(images, torch.float32), errors, black, steps=1)

    index, moves, last = torch.randint(0, ITEMS, (R, BATCH)), draw_all_moves(R, BATCH), slice(R - 1, R)
    still = {name: tensor[0].clone() for name, tensor in other.running.items()}
    part = other.some(last)
    for step in range(2):  # the second meets what the first left in the buffers
        again = part.forward(index[last], torch.ones(1), train=True, moves=moves[last]).detach()
        whole = other.forward(index, torch.zeros(R), train=True, moves=moves).detach()
        errors[f"some {step}"] = gap(again, whole[last])
    errors["others"] = max(gap(other.running[name][0], tensor) for name, tensor in still.items())
    stays = torch.tensor([PADDING, PADDING, 0], dtype=torch.uint8).expand(R, BATCH, 3)
    left, plain = (other.forward(index, torch.zeros(R), train=True, moves=m).detach() for m in (stays, None))
    errors["moved by nothing"] = gap(left, plain)


class Narrowed:
    """The LeNet's CUDA kernels in a fleet of float32: what they are given is rounded to bf16."""

    def __init__(self, layers: CudaLayers) -> None:
        self.layers = layers

    def first(self, images: Tensor, index: Tensor, weights: Tensor, h1: Tensor, *, train: bool) -> None:
        h = h1.bfloat16()
        self.layers.first(images.bfloat16(), index, weights.bfloat16(), h, train=train)
        h1.copy_(h)

    def first_weights(self, images: Tensor, index: Tensor, dh1: Tensor) -> Tensor:
        return self.layers.first_weights(images.bfloat16(), index, dh1.bfloat16())

    def moments(self, images: Tensor, index: Tensor) -> Tensor:
        return self.layers.moments(images.bfloat16(), index)

    def pool_back(self, y2: Tensor, norm: Tensor, means: Tensor, dh2: Tensor, dy2: Tensor) -> None:
        dy = dy2.bfloat16()
        self.layers.pool_back(y2.bfloat16(), norm, means, dh2.bfloat16(), dy)
        dy2.copy_(dy)


def cuda(errors: dict[str, float]) -> None:
    """A step with the LeNet's CUDA kernels, run on the CPU, in their places, beside one with Triton's in float32.

    On images that are moved, in evaluation on such as are not. No momentum, no decay: a parameter's change is its
    gradient. (The interpreter cannot multiply matrices of bf16.)
    """
    images = torch.randn(ITEMS, 1, SIZE, SIZE)
    starts = [stir(models.build("lenet", (1, SIZE, SIZE), K, seed=i)).state_dict() for i in range(R)]
    index = torch.stack([torch.randperm(ITEMS)[:WIDE_BATCH] for _ in range(R)])
    slope, moves = torch.randn(R, WIDE_BATCH, K) / WIDE_BATCH, draw_all_moves(R, WIDE_BATCH)
    black = torch.tensor([-0.4, -1.3])
    fleets = [LeNetFleet(starts, images, torch.zeros(R), 0.0, torch.float32, black=black) for _ in range(2)]
    fleets[1].cuda = Narrowed(CudaLayers(fleets[1]._zeros, fleets[1].H, fleets[1].W))
    found = []
    nvrtc.compiled = cuda_on_cpu.compiled  # type: ignore[assignment]
    for fleet in fleets:
        logits = fleet.forward(index, torch.ones(R), train=True, moves=moves).detach()
        fleet.backward(slope)
        scores = fleet.forward(index, torch.zeros(R), train=False, inputs=fleet.images).detach()
        fleet.update(torch.ones(R))
        found.append((logits, scores, [fleet.state_dict(i) for i in range(R)]))
    (logits, scores, theirs), (our_logits, our_scores, ours) = found
    errors |= {"logits": gap(our_logits, logits), "evaluation": gap(our_scores, scores)}
    for i, start in enumerate(starts):
        for key, tensor in start.items():
            if tensor.is_floating_point() and (theirs[i][key] - tensor).norm() > 0:
                errors[f"{key} {i}"] = gap(ours[i][key] - tensor, theirs[i][key] - tensor)


def sums(errors: dict[str, float]) -> None:
    """The LeNet's kernels that sum, over more than one block, beside plain sums."""
    from shortlist.training.fleet.kernels import lenet as kernels

    B, items, width = 300, 40, 70
    index, moments, out = torch.randint(0, items, (R, B)), torch.randn(items, width), torch.zeros(R, width)
    kernels.moments_kernel[(3, R)](index, moments, out, B, width, BLOCK_B=256, COLUMNS=32, STEPS=2)
    errors["moments"] = gap(out, moments[index].sum(1))

    d, padded, grad = torch.randn(R, B, 21), torch.full((R, B, 24), 7.0), torch.full((R, 30), 7.0)
    kernels.head_back_kernel[(R,)](d, padded, grad, B, 30, K=21, N=24, BLOCK_N=32, BLOCK_B=128, STEPS=3)
    errors["last slopes"] = gap(padded, torch.nn.functional.pad(d, (0, 3)))
    errors["last bias"] = gap(grad[:, :21], d.sum(1)) + float(grad[:, 21:24].norm() + (grad[:, 24:] - 7).norm())

    # y (R, B, 4, 6, C) with many equal corners; columns behind the last place are not used
    B, H, W, C, row = 31, 2, 3, 50, 304
    tiles = -(-B * H * W // 64)
    y, norm = torch.randn(R, B, 2 * H, 2 * W, 56).mul(2).round(), torch.randn(R, 4, 64)
    h, won, d = (torch.randn(R, B, row) for _ in range(3))
    kernels.pool_kernel[(tiles, R)](
        y, norm, h, won, y.stride(0), h.stride(0), B * H * W,
        H=H, W=W, C=56, N=64, CO=C, BLOCK_M=64, ROW=row, TRAIN=True,
    )  # fmt: skip
    found = torch.zeros(R, tiles, 2, 64)
    kernels.pool_sums_kernel[(tiles, R)](
        won, norm, d, found, h.stride(0), B * H * W, PLACES=H * W, N=64, CO=C, BLOCK_M=64, ROW=row
    )  # fmt: skip
    y, slope = y[..., :C].double(), d[..., : H * W * C].view(R, B, H, W, C).double()
    scale, shift, mean, rstd = (norm[:, i, None, None, None, :C].double() for i in range(4))
    z = (y * scale + shift).requires_grad_()
    pooled = torch.nn.functional.max_pool2d(torch.relu(z).flatten(0, 1).permute(0, 3, 1, 2), 2)
    (pooled * slope.flatten(0, 1).permute(0, 3, 1, 2)).sum().backward()
    errors["pooled"] = gap(h[..., : H * W * C].view(R, B, H, W, C).flatten(0, 1).permute(0, 3, 1, 2), pooled.detach())
    assert z.grad is not None
    errors["sum of slopes"] = gap(found.sum(1)[:, 0, :C], z.grad.sum((1, 2, 3)))
    errors["with the map"] = gap(found.sum(1)[:, 1, :C], (z.grad * (y - mean) * rstd).sum((1, 2, 3)))


def resnet(errors: dict[str, float]) -> None:
    images = torch.randint(0, 256, (ITEMS, 3, SIZE, SIZE), dtype=torch.uint8)
    mean, deviation = 120 + 10 * torch.randn(R, 3), 70 + 10 * torch.rand(R, 3)
    floats = [(images.float() - mean[i].view(3, 1, 1)) / deviation[i].view(3, 1, 1) for i in range(R)]
    nets = [stir(small_resnet()) for _ in range(R)]
    states_of = [net.state_dict() for net in nets]
    ema = torch.tensor(EMA)
    fleet = ResNetFleet(states_of, images, mean, deviation, torch.tensor(DECAY), 0.9, torch.float32, ema=ema)
    moves = torch.randint(0, 9, (R, BATCH, 3), dtype=torch.uint8)
    moves[..., 2] = torch.arange(BATCH) % 2
    index = torch.randint(0, ITEMS, (R, BATCH))
    moved = move_images(images[index.flatten()], moves.flatten(0, 1)).float()
    want = (moved.view(R, BATCH, 3, SIZE, SIZE) - mean.view(R, 1, 3, 1, 1)) / deviation.view(R, 1, 3, 1, 1)
    got = fleet._input(images, index, moves)[..., :3].permute(0, 1, 4, 2, 3)
    errors["moved images"] = gap(got, nn.functional.pad(want, (1, 1, 1, 1)))
    compare(fleet, nets, floats, images, errors)


def resnet_some(errors: dict[str, float]) -> None:
    """A ResNet fleet of which some runs make a second forward pass, beside one where all but one stand still in it."""
    images = torch.randint(0, 256, (ITEMS, 3, SIZE, SIZE), dtype=torch.uint8)
    mean, deviation = 120 + 10 * torch.randn(R, 3), 70 + 10 * torch.rand(R, 3)
    states_of = [stir(small_resnet()).state_dict() for _ in range(R)]
    one, other = (ResNetFleet(states_of, images, mean, deviation, torch.zeros(R), 0.9, torch.float32) for _ in range(2))
    moves = torch.randint(0, 9, (R, 3, 3), dtype=torch.uint8)
    moves[..., 2] %= 2
    index, slope = torch.randint(0, ITEMS, (R, 3)), torch.randn(R, 3, K)
    last = slice(R - 1, R)
    active = torch.zeros(R)
    active[last] = 1
    before = one.forward(index, torch.zeros(R), train=True, moves=moves).detach()
    part = one.some(last)
    for step in range(2):  # the second meets what the first left in the buffers
        again = part.forward(index[last], active[last], train=True, moves=moves[last]).detach()
        want = other.forward(index, active, train=True, moves=moves).detach()
        errors[f"logits {step}"] = gap(again, want[last])
        if step == 0:
            errors["before"] = gap(before, want)
            for net in (one, other):  # the second pass leaves the first one's maps alone
                net.backward(slope)
                net.update(torch.tensor(LR))
            errors["gradient"] = gap(one.grad, other.grad)
    for name, tensor in other.running.items():
        errors[name] = gap(one.running[name], tensor)
    one.keep(torch.tensor([R - 1]))
    kept = one.forward(index[last], torch.zeros(1), train=True, moves=moves[last]).detach()
    errors["kept"] = gap(kept, again)
    one.backward(slope[last])
    other.backward(slope)
    errors["kept gradient"] = gap(one.grad, other.grad[last])


def resnet_cuda(errors: dict[str, float]) -> None:
    """Gradients of a ResNet in bf16, its convolutions `conv.cu` thread by thread, beside the Triton ones in float32.

    They differ as bf16 does from float32: this is about the kernels being given the right maps, and all of them.
    """
    nvrtc.compiled = cuda_on_cpu.compiled  # type: ignore[assignment]
    images = torch.randint(0, 256, (ITEMS, 3, SIZE, SIZE), dtype=torch.uint8)
    states_of = [stir(small_resnet()).state_dict() for _ in range(R)]
    center, zeros = torch.full((3,), 125.0), torch.zeros(R)
    plain, fleet = (
        ResNetFleet(states_of, images, center, center / 2, zeros, 0.9, dtype)
        for dtype in (torch.float32, torch.bfloat16)
    )
    fleet.convolver = CudaConv(fleet._zeros)
    index, slope = torch.randint(0, ITEMS, (R, 3)), torch.randn(R, 3, K) / 3
    for step in range(2):  # the second meets what the first left in the buffers
        logits = [net.forward(index, torch.ones(R), train=True).detach() for net in (plain, fleet)]
        errors[f"logits {step}"] = gap(logits[1], logits[0])
        for net in (plain, fleet):
            net.backward(slope)
        for name in plain.slots:
            errors[f"{name} {step}"] = gap(fleet.part(fleet.grad, name), plain.part(plain.grad, name))
    scores = [net.forward(index, zeros, train=False).detach() for net in (plain, fleet)]
    errors["evaluation"] = gap(scores[1], scores[0])


def run(errors: dict[str, float]) -> None:
    """A whole single run on the kernels beside one by modules, for each way of renewing confidences.

    What it hands over to a classifier, the momentum that `partial_fit` goes on with, is the same, too.
    """
    digits = load("digits")
    assert digits.test is not None
    train, test = digits.train.take(range(32)), digits.test.take(range(20))
    data = Dataset("digits", train, test, digits.class_names, "image", flips=True)
    base = RunConfig(size=5, model="lenet", epochs=1, batch_size=16, lr=0.02, seed=3)
    engine = Engine(device="cpu").resolve(1)
    for method, ema, views in (
        ("rc", 0.0, {"strong": True}),
        ("proden", 0.9, {"augment": True}),
        ("teacher", 0.9, {"augment": True, "strong": True, "mix": True}),
        ("crdpll", 0.0, {"strong": True}),
    ):
        config = replace(base, method=method, ema=ema, **views)
        plain, kernels = prepare(data, config, engine=engine), prepare(data, config, engine=engine)
        kernels.run = KernelRun(build_task(data, config), Inputs(data.train.x, "cpu"), engine)
        one, other = fit(plain), fit(kernels)
        errors[f"{method} risk"] = abs(one[-1].risk - other[-1].risk)
        ours, theirs = (
            ShortlistClassifier()._keep(done.run.model, done.run.optimiser_state(), new=True)._optimiser["velocity"]
            for done in (kernels, plain)
        )
        errors[f"{method} momentum"] = gap(ours, theirs)
        states(kernels.run.model.state_dict(), plain.run.model.state_dict(), method, errors)


def sets(errors: dict[str, float]) -> None:
    """Runs on different classes in one fleet on the kernels, beside the same by modules; one moves, one ends early."""
    digits = load("digits")
    assert digits.test is not None
    train, test = digits.train.take(range(90)), digits.test.take(range(40))
    data = Dataset("digits", train, test, digits.class_names, "image", flips=True)
    base = RunConfig(method="rc", size=2, model="lenet", epochs=2, batch_size=16, lr=0.02)
    configs = [
        replace(base, classes=(0, 1, 2)),
        replace(base, classes=(3, 4, 5), seed=1, epochs=1),
        replace(base, classes=(1, 8, 9), seed=2, augment=True),
    ]
    engine = Engine(device="cpu").resolve(1)
    plain = fleet_of(build_tasks(data, configs), engine).train()
    tasks = build_tasks(data, configs)
    net, among = LeNetNet(tasks, torch.full((3,), base.weight_decay), engine), Sets(tasks)
    y = among.test_y()
    assert y is not None
    kernels = Fleet(tasks, net, (net.test_inputs(), y), sets=among).train()
    for i, (one, other) in enumerate(zip(plain, kernels, strict=True)):
        errors[f"{i} risk"] = abs(one.history[-1].risk - other.history[-1].risk)
        errors[f"{i} accuracy"] = abs((one.history[-1].test_accuracy or 0) - (other.history[-1].test_accuracy or 1))
        assert one.state is not None
        assert other.state is not None
        states(other.state, one.state, str(i), errors)


def views(errors: dict[str, float]) -> None:
    """Strong views and teachers: of a ResNet fleet beside modules, of LeNets in a fleet beside the same by modules."""
    images = torch.randint(0, 256, (ITEMS, 3, SIZE, SIZE), dtype=torch.uint8)
    mean, deviation = 120 + 10 * torch.randn(R, 3), 70 + 10 * torch.rand(R, 3)
    nets, decays = [stir(small_resnet()) for _ in range(R)], torch.tensor([0.1, 0.9])
    teachers = [copy.deepcopy(net) for net in nets]
    starts = [net.state_dict() for net in nets]
    fleet = ResNetFleet(starts, images, mean, deviation, torch.zeros(R), 0.0, torch.float32, teacher=decays)
    optimisers = [torch.optim.SGD(net.parameters(), lr=LR[i]) for i, net in enumerate(nets)]
    last, batch = slice(R - 1, R), 3
    teach = fleet.teachers(last)
    for step in range(2):
        index, slope = torch.randint(0, ITEMS, (R, batch)), torch.randn(R, 2 * batch, K) / batch
        moves = draw_all_moves(R, batch)
        changes = torch.stack(
            [draw_changes(batch, SIZE, SIZE, True, torch.Generator().manual_seed(i)) for i in range(R)]
        )
        both = two_views(moves, changes)
        said = teach(index[last], moves[last])
        own = torch.tensor([0.3, 1.0])
        logits = fleet.forward(torch.cat([index, index], 1), torch.ones(R), train=True, moves=both, own=own)
        if step == 0:  # the second sees what the first has left
            fleet.backward(slope)
            fleet.update(torch.tensor(LR))
        for i, net in enumerate(nets):
            seen = images[index[i]]
            strong = change_images(seen, changes[i])
            mixed = own[i] * strong + (1 - own[i]) * strong[torch.arange(-1, batch - 1)]
            x = torch.cat([move_images(seen, moves[i]).float(), mixed])
            x = (x - mean[i].view(3, 1, 1)) / deviation[i].view(3, 1, 1)
            if i == R - 1:
                errors[f"teacher step {step}"] = gap(said[0], teachers[i].eval()(x[:batch]).detach())
            out = net.train()(x)
            errors[f"logits {i} step {step}"] = gap(logits[i].detach(), out.detach())
            if step == 0:
                (out * slope[i]).sum().backward()
                optimisers[i].step()
                follow(teachers[i], net, min(float(decays[i]), 0.1))
    for i, net in enumerate(nets):
        states(fleet.state_dict(i), net.state_dict(), f"run {i}", errors)
    fleet.keep(torch.tensor([R - 1]))
    x = (images[:batch].float() - mean[-1].view(3, 1, 1)) / deviation[-1].view(3, 1, 1)
    said = fleet.teachers(slice(0, 1))(torch.arange(batch).unsqueeze(0), None)
    errors["teacher kept"] = gap(said[0], teachers[-1].eval()(x).detach())

    digits = load("digits")
    train = digits.train.take(range(16))
    data = Dataset("digits", train, None, digits.class_names, "image", flips=True)
    base = RunConfig(size=5, model="lenet", epochs=2, batch_size=16, lr=0.02, strong=True, mix=True)
    configs = [
        base,
        replace(base, method="teacher", seed=1, epochs=1, augment=True, method_options={"apart": True}),
        replace(
            base, method="teacher", seed=2, method_options={"decay": 0.5, "ramp": 0.7, "memory": 0.6}, augment=True
        ),
        replace(base, method="teacher", seed=3, method_options={"decay": 0.0, "memory": 0.6}, augment=True),
    ]
    engine = Engine(device="cpu").resolve(1)
    plain = fleet_of(build_tasks(data, configs), engine).train()
    tasks = build_tasks(data, configs)
    decay = torch.full((len(tasks),), base.weight_decay)
    kernels = Fleet(tasks, LeNetNet(tasks, decay, engine), None, sets=Sets(tasks)).train()
    for i, (one, other) in enumerate(zip(plain, kernels, strict=True)):
        errors[f"{i} risk"] = abs(one.history[-1].risk - other.history[-1].risk)
        assert one.state is not None
        assert other.state is not None
        states(other.state, one.state, str(i), errors)


if __name__ == "__main__":
    torch.manual_seed(0)
    found: dict[str, float] = {}
    checks = (lenet, lenet_moved, cuda, sums, resnet, resnet_some, resnet_cuda, run, sets, views)
    {check.__name__: check for check in checks}[sys.argv[1]](found)
    print(json.dumps(found))
