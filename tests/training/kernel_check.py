"""Relative errors of the kernels against plain modules, as JSON: two steps of two runs that differ in all they can.

Run by test_fleet_kernels.py with TRITON_INTERPRET=1.
"""

import copy
import json
import sys
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from shortlist import models
from shortlist.data import load
from shortlist.data.dataset import Dataset
from shortlist.models.resnet import BasicBlock
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet import Fleet
from shortlist.training.fleet_layout import with_halo
from shortlist.training.fleet_lenet import LeNetFleet
from shortlist.training.fleet_pack import LeNetNet, fleet_of, plan_all
from shortlist.training.fleet_resnet import ResNetFleet
from shortlist.training.fleet_sets import Sets
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
    fleet: LeNetFleet | ResNetFleet, nets: list[nn.Module], floats: list[Tensor], test: object, errors: dict[str, float]
) -> None:
    """Steps of the fleet beside torch.optim's and a plain average; a run that is told to stand still does.

    `floats` are each run's images as its network takes them.
    """
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
            out = net.train()(floats[i][index[i]])
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


def resnet(errors: dict[str, float]) -> None:
    images = torch.randint(0, 256, (ITEMS, 3, SIZE, SIZE), dtype=torch.uint8)
    mean, deviation = 120 + 10 * torch.randn(R, 3), 70 + 10 * torch.rand(R, 3)
    floats = [(images.float() - mean[i].view(3, 1, 1)) / deviation[i].view(3, 1, 1) for i in range(R)]
    nets = [stir(small_resnet()) for _ in range(R)]
    states_of = [net.state_dict() for net in nets]
    ema = torch.tensor(EMA)
    fleet = ResNetFleet(states_of, images, mean, deviation, torch.tensor(DECAY), 0.9, torch.float32, ema=ema)
    compare(fleet, nets, floats, images, errors)


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


def sets(errors: dict[str, float]) -> None:
    """Runs on different classes in one fleet on the kernels, beside the same by modules; one ends early."""
    digits = load("digits")
    assert digits.test is not None
    data = Dataset("digits", digits.train.take(range(90)), digits.test.take(range(40)), digits.class_names, "image")
    base = RunConfig(method="rc", size=2, model="lenet", epochs=2, batch_size=16, lr=0.02)
    configs = [
        replace(base, classes=(0, 1, 2)),
        replace(base, classes=(3, 4, 5), seed=1, epochs=1),
        replace(base, classes=(1, 8, 9), seed=2),
    ]
    engine = Engine(device="cpu").resolve(1)
    plain = fleet_of(plan_all(data, configs), engine).train()
    tasks = plan_all(data, configs)
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


if __name__ == "__main__":
    torch.manual_seed(0)
    found: dict[str, float] = {}
    {"lenet": lenet, "resnet": resnet, "run": run, "sets": sets}[sys.argv[1]](found)
    print(json.dumps(found))
