"""Relative errors of the kernels against plain modules, as JSON: two steps of two runs that differ in all they can.

Run by test_fleet_kernels.py with TRITON_INTERPRET=1.
"""

import copy
import json
import sys
from collections.abc import Mapping

import cuda_on_cpu
import torch
from torch import Tensor, nn

from shortlist import models
from shortlist.data import load
from shortlist.data.dataset import Dataset
from shortlist.models.resnet import BasicBlock
from shortlist.training.augment import move_images
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet_conv_cuda import CudaConv
from shortlist.training.fleet_layout import with_halo
from shortlist.training.fleet_lenet import LeNetFleet
from shortlist.training.fleet_resnet import ResNetFleet
from shortlist.training.inputs import Inputs
from shortlist.training.kernel_run import KernelRun
from shortlist.training.loop import fit
from shortlist.training.prepare import plan, prepare

K, SIZE, R = 10, 8, 2
LR, DECAY, EMA = (0.05, 0.1), (1e-3, 1e-2), (0.0, 0.5)
ITEMS, BATCH = 40, 6


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


def compare(
    fleet: LeNetFleet | ResNetFleet, nets: list[nn.Module], floats: Tensor, test: object, errors: dict[str, float]
) -> None:
    """Steps of the fleet beside torch.optim's and a plain average; a run that is told to stand still does."""
    averages = [copy.deepcopy(net) for net in nets]
    optimisers = [
        torch.optim.SGD(net.parameters(), lr=LR[i], momentum=0.9, weight_decay=DECAY[i]) for i, net in enumerate(nets)
    ]
    for step in range(2):
        index = torch.stack([torch.randperm(ITEMS)[:BATCH] for _ in range(R)])
        slope = torch.randn(R, BATCH, K) / BATCH
        logits = fleet.forward(index, torch.ones(R), train=True)
        fleet.backward(slope)
        fleet.update(torch.tensor(LR))
        for i, net in enumerate(nets):
            out = net.train()(floats[index[i]])
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
    fleet.forward(index, torch.zeros(R), train=True)
    fleet.backward(slope)
    fleet.update(torch.full((R,), -1.0))
    errors["stands still"] = float(any(not torch.equal(a, b) for a, b in zip(before, fleet.state(), strict=True)))
    rows = torch.arange(9).expand(R, 9).contiguous()
    scores = fleet.forward(rows, torch.zeros(R), train=False, inputs=test)
    with fleet.averaged():
        averaged = fleet.forward(rows, torch.zeros(R), train=False, inputs=test)
    for i, net in enumerate(nets):
        errors[f"evaluation {i}"] = gap(scores[i].detach(), net.eval()(floats[:9]).detach())
        errors[f"averaged evaluation {i}"] = gap(averaged[i].detach(), averages[i].eval()(floats[:9]).detach())
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
    compare(fleet, nets, images, with_halo(images, torch.float32), errors)


def resnet(errors: dict[str, float]) -> None:
    images = torch.randint(0, 256, (ITEMS, 3, SIZE, SIZE), dtype=torch.uint8)
    mean, deviation = torch.tensor([120.0, 125.0, 130.0]), torch.tensor([70.0, 72.0, 75.0])
    floats = (images.float() - mean.view(3, 1, 1)) / deviation.view(3, 1, 1)
    nets = [stir(small_resnet()) for _ in range(R)]
    states_of = [net.state_dict() for net in nets]
    ema = torch.tensor(EMA)
    fleet = ResNetFleet(states_of, images, mean, deviation, torch.tensor(DECAY), 0.9, torch.float32, ema=ema)
    moves = torch.randint(0, 9, (R, BATCH, 3), dtype=torch.uint8)
    moves[..., 2] = torch.arange(BATCH) % 2
    index = torch.randint(0, ITEMS, (R, BATCH))
    moved = move_images(images[index.flatten()], moves.flatten(0, 1)).float()
    want = (moved - mean.view(3, 1, 1)) / deviation.view(3, 1, 1)
    got = fleet._input(images, index, moves)[..., :3].permute(0, 1, 4, 2, 3)
    errors["moved images"] = gap(got, nn.functional.pad(want, (1, 1, 1, 1)).view_as(got))
    compare(fleet, nets, floats, images, errors)


def cuda(errors: dict[str, float]) -> None:
    """Gradients of a ResNet in bf16, its convolutions `conv.cu` thread by thread, beside the Triton ones in float32.

    They differ as bf16 does from float32: this is about the kernels being given the right maps, and all of them.
    """
    from shortlist.training.kernels import nvrtc

    nvrtc.compiled = cuda_on_cpu.compiled  # type: ignore[assignment]
    images = torch.randint(0, 256, (ITEMS, 3, SIZE, SIZE), dtype=torch.uint8)
    states_of = [stir(small_resnet()).state_dict() for _ in range(R)]
    center, zeros = torch.full((3,), 125.0), torch.zeros(R)
    plain, fleet = (
        ResNetFleet(states_of, images, center, center / 2, zeros, 0.9, dtype)
        for dtype in (torch.float32, torch.bfloat16)
    )
    fleet.convolver = CudaConv(fleet._buffer)
    index, slope = torch.randint(0, ITEMS, (R, BATCH)), torch.randn(R, BATCH, K) / BATCH
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
    """A whole single run on the kernels beside one by modules, for each way of renewing confidences."""
    digits = load("digits")
    assert digits.test is not None
    data = Dataset("digits", digits.train.take(range(32)), digits.test.take(range(20)), digits.class_names, "image")
    engine = Engine(device="cpu").resolve(1)
    for method, ema in (("rc", 0.0), ("proden", 0.9)):
        config = RunConfig(method=method, size=5, model="lenet", epochs=1, batch_size=16, lr=0.02, ema=ema, seed=3)
        plain, kernels = prepare(data, config, engine=engine), prepare(data, config, engine=engine)
        kernels.run = KernelRun(plan(data, config), Inputs(data.train.x, "cpu"), engine)
        one, other = fit(plain), fit(kernels)
        errors[f"{method} risk"] = abs(one[-1].risk - other[-1].risk)
        states(kernels.run.model.state_dict(), plain.run.model.state_dict(), method, errors)


if __name__ == "__main__":
    torch.manual_seed(0)
    found: dict[str, float] = {}
    {"lenet": lenet, "resnet": resnet, "run": run, "cuda": cuda}[sys.argv[1]](found)
    print(json.dumps(found))
