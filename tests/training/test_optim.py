"""The flat optimisers are torch.optim's, and the schedules are what they say."""

import math

import pytest
import torch
from torch import nn

from shortlist.errors import InputError
from shortlist.training.config import RunConfig
from shortlist.training.optim import FlatParameters, optimiser_of
from shortlist.training.schedules import learning_rates


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 4))


@pytest.mark.parametrize("name", ["sgd", "adam"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.03])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_are_those_of_torch_optim(name, weight_decay, dtype):
    ours, theirs = network().to(dtype), network().to(dtype)
    flat = FlatParameters(ours)
    optimiser = optimiser_of(name, flat.value, weight_decay, momentum=0.9)
    options = {"lr": 0.05, "weight_decay": weight_decay}
    reference = (
        torch.optim.SGD(theirs.parameters(), momentum=0.9, **options)
        if name == "sgd"
        else torch.optim.Adam(theirs.parameters(), **options)
    )
    for step in range(12):
        x = torch.randn(5, 2, 5, 5, generator=torch.Generator().manual_seed(step), dtype=dtype)
        lr = 0.05 / (1 + step)
        reference.param_groups[0]["lr"] = lr
        reference.zero_grad()
        theirs(x).square().mean().backward()
        reference.step()
        flat.grad.zero_()
        ours(x).square().mean().backward()
        optimiser.step(flat.value, flat.grad, torch.tensor(lr, dtype=dtype))
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        tolerance = 1e-6 if dtype == torch.float32 else 1e-12
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_parameters_are_views_of_one_vector():
    model = network()
    values = [p.detach().clone() for p in model.parameters()]
    flat = FlatParameters(model)
    for p, before in zip(model.parameters(), values, strict=True):
        assert torch.equal(p, before)
        assert p.untyped_storage().data_ptr() == flat.value.untyped_storage().data_ptr()
    model(torch.ones(1, 2, 5, 5)).sum().backward()
    assert sum(p.grad.square().sum() for p in model.parameters()) == pytest.approx(float(flat.grad.square().sum()))


def test_a_model_without_parameters_is_refused():
    with pytest.raises(InputError, match="no parameters"):
        FlatParameters(nn.Flatten())


@pytest.mark.parametrize("schedule", ["constant", "step", "cosine"])
def test_schedules_by_naive_loop(schedule):
    config = RunConfig(schedule=schedule, lr=0.4, epochs=5)
    steps = 7
    rates = learning_rates(config, steps)
    total = config.epochs * steps
    for t in range(total):
        if schedule == "constant":
            expected = 0.4
        elif schedule == "step":
            expected = 0.4 if t < total / 2 else 0.04 if t < total * 3 / 4 else 0.004
        else:
            expected = 0.2 * (1 + math.cos(math.pi * t / total))
        assert rates[t].item() == pytest.approx(expected, rel=1e-6), t
