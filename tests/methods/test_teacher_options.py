"""The teacher's options by a loop over items and classes: the whole belief, the pull that waits, and their limits."""

import math
from dataclasses import replace

import pytest
import torch

from shortlist import methods
from shortlist.errors import InputError
from shortlist.methods import restricted_softmax

from .test_teacher import case


@pytest.mark.parametrize("whole", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("confident", "ramp"), [(0.0, 0.0), (0.6, 0.5)])
def test_what_is_learned_item_by_item(whole, confident, ramp):
    """`whole` of the belief in all classes, the ruled out among them; the pull counts where it is sure, and rises."""
    logits, batch = case(items=60)
    teacher = 2 * torch.randn(logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    options = {"whole": whole, "confident": confident, "ramp": ramp, "pull": 0.7, "temperature": 0.8, "memory": 0.0}
    told = replace(batch, teacher=teacher, progress=torch.tensor(0.2, dtype=torch.float64))
    values, sure = [], 0
    for z, taught, possible in zip(logits.tolist(), teacher.tolist(), batch.candidates.tolist(), strict=True):
        p, belief = softmax(z), softmax([value / 0.8 for value in taught])
        within = sum(b for b, inside in zip(belief, possible, strict=True) if inside)
        q = [whole * b + (1 - whole) * inside * b / within for b, inside in zip(belief, possible, strict=True)]
        pull = 0.7 * (max(q) >= confident) * (0.2 / ramp if ramp else 1)
        sure += max(q) >= confident
        likely = -math.log(sum(share for share, inside in zip(p, possible, strict=True) if inside))
        learned = -sum(b * math.log(share) for b, share in zip(q, p, strict=True))
        values.append((1 - pull) * likely + pull * learned)
    assert not confident or 0 < sure < 60  # or this would show nothing
    got = methods.get("teacher", **options).objective(logits, told).item()
    assert got == pytest.approx(sum(values) / 60, rel=1e-9)


def softmax(z: list[float]) -> list[float]:
    total = sum(math.exp(value) for value in z)
    return [math.exp(value) / total for value in z]


def test_the_pull_has_risen_when_its_share_of_the_training_is_over():
    logits, batch = case(items=60)
    batch = replace(batch, teacher=torch.randn(logits.shape, dtype=torch.float64))

    def value(progress, ramp):
        told = replace(batch, progress=torch.tensor(progress, dtype=torch.float64))
        return methods.get("teacher", memory=0.0, ramp=ramp).objective(logits, told).item()

    assert value(0.0, 0.25) == pytest.approx(methods.get("likelihood").objective(logits, batch).item())
    assert value(0.25, 0.25) == value(0.9, 0.25) == value(0.1, 0.0)
    assert value(0.1, 0.25) not in (value(0.2, 0.25), value(0.25, 0.25))


def test_the_whole_belief_of_a_network_without_a_teacher_is_its_own():
    logits, batch = case(items=60)
    method = methods.get("teacher", memory=0.0, whole=0.4)
    told = replace(batch, teacher=logits.detach())
    assert method.objective(logits, batch).item() == pytest.approx(method.objective(logits, told).item())
    (slope,) = torch.autograd.grad(method.objective(logits, batch), logits)
    (want,) = torch.autograd.grad(method.objective(logits, told), logits)
    torch.testing.assert_close(slope, want)  # no gradient through the belief
    q = restricted_softmax(logits.detach(), batch.candidates)
    assert not torch.allclose(q, torch.softmax(logits.detach(), -1))


@pytest.mark.parametrize("option", ["confident", "ramp", "whole"])
def test_shares_are_from_nought_to_one_both_included(option):
    for value in (0.0, 1.0):
        assert getattr(methods.get("teacher", **{option: value}), option) == value
    for value in (-0.1, 1.1):
        with pytest.raises(InputError, match=f"{option} of teacher: expected 0 to 1, got {value}"):
            methods.get("teacher", **{option: value})


def test_no_pull_and_a_temperature_of_nearly_nothing_are_taken():
    assert methods.get("teacher", pull=0.0, decay=0.0, temperature=1e-3).pull == 0
    with pytest.raises(InputError, match="pull of teacher: expected at least 0, got -1"):
        methods.get("teacher", pull=-1.0)
    with pytest.raises(InputError, match="temperature of teacher: expected above 0, got 0"):
        methods.get("teacher", temperature=0.0)
