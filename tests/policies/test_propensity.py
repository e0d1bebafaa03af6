"""The propensity-weighted risks, by enumeration over every list the real policies can draw."""

import numpy as np
import pytest
import torch

from policies.every_draw import outcomes
from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.policies.choose import Policy
from shortlist.policies.propensity import propensity_risk, round_weight

P = [0.45, 0.3, 0.15, 0.07, 0.03]
LOSSES = torch.tensor([0.3, 1.7, 2.9, 0.4, 5.0], dtype=torch.float64)
MIXED = [
    Policy("uniform", size=2),
    Policy("top", size=2, epsilon=0.3),
    Policy("adaptive", hit=0.7, max_size=4, epsilon=0.25),
    Policy("adaptive", hit=0.9, max_size=3, floor=0.1),
    Policy("information", max_size=4, epsilon=0.2),
]


def expectation(policy: Policy, y: int, **options) -> float:
    total = 0.0
    for weight, shortlist, inclusion in outcomes(policy, P, [1] * 5):
        shown = y in shortlist
        pi = inclusion[shortlist.index(y)] if shown else 1.0
        answer = torch.tensor([y if shown else NONE])
        value = propensity_risk(LOSSES[None], answer, torch.tensor([pi], dtype=torch.float64), **options)
        total += weight * float(value)
    return total


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_small_answers(dtype):
    losses = LOSSES.to(dtype)[None]
    got = propensity_risk(losses, torch.tensor([1], dtype=torch.int32), torch.tensor([1e-6]))
    assert got.item() == pytest.approx(losses[0, 1].item() * 1e6)


@pytest.mark.parametrize("policy", MIXED, ids=lambda p: f"{p.kind}-{p.epsilon}-{p.floor}")
@pytest.mark.parametrize("y", range(5))
def test_unbiased_under_each_mixed_policy(policy, y):
    assert expectation(policy, y) == pytest.approx(float(LOSSES[y]))
    baseline = torch.tensor([P], dtype=torch.float64)
    assert expectation(policy, y, baseline=baseline) == pytest.approx(float(LOSSES[y]))


def test_without_mixing_it_is_biased_and_clipping_biases_towards_the_baseline():
    assert expectation(Policy("top", size=2), 4) == pytest.approx(0.0)  # class 4 is never shown
    policy = Policy("top", size=2, epsilon=0.1)  # class 4 has 0.04: weight 25
    assert expectation(policy, 4, form="clipped", clip=5.0) == pytest.approx(5.0 * 0.04 * 5.0)
    assert expectation(policy, 0, form="clipped", clip=5.0) == pytest.approx(float(LOSSES[0]))


def test_normalised_weights_against_a_naive_loop():
    losses = torch.rand(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    answer = torch.tensor([0, NONE, 3, 2, NONE, 4])
    pi = torch.tensor([0.9, 1.0, 0.1, 0.5, 1.0, 0.25], dtype=torch.float64)
    weights = [0 if a == NONE else 1 / float(w) for a, w in zip(answer.tolist(), pi, strict=True)]
    picked = [0 if a == NONE else float(losses[i, a]) for i, a in enumerate(answer.tolist())]
    naive = sum(w * v for w, v in zip(weights, picked, strict=True)) / sum(weights)
    assert float(propensity_risk(losses, answer, pi, form="normalised")) == pytest.approx(naive)
    nothing = torch.full((6,), NONE)
    assert float(propensity_risk(losses, nothing, pi, form="normalised")) == 0.0


def test_gradient_reaches_the_losses_and_infinite_losses_of_none_items_do_no_harm():
    losses = torch.tensor([[1.0, 2.0], [torch.inf, 1.0]], requires_grad=True)
    risk = propensity_risk(losses, torch.tensor([1, NONE]), torch.tensor([0.5, 0.0]))
    risk.backward()
    assert risk.item() == pytest.approx(2.0)
    assert losses.grad is not None
    assert losses.grad[0].tolist() == [0.0, 1.0]
    with pytest.raises(InputError, match="above 0"):
        propensity_risk(losses, torch.tensor([1, 1]), torch.tensor([0.5, 0.0]))


@pytest.mark.parametrize("y", range(5))
@pytest.mark.parametrize("policy", [Policy("top", size=1, epsilon=0.3), Policy("adaptive", hit=0.6, epsilon=0.5)])
def test_two_rounds_are_unbiased_by_enumeration(policy, y):
    total = 0.0
    for weight, first, inclusion in outcomes(policy, P, [1] * 5):
        exact = np.zeros(5)
        for other, shortlist, _ in outcomes(policy, P, [1] * 5):
            exact[list(shortlist)] += other
        if y in first:
            total += weight * round_weight([inclusion[first.index(y)]], 2) * float(LOSSES[y])
            continue
        possible = [j not in first for j in range(5)]
        if sum(possible) == 1:
            total += weight * round_weight([exact[y], 1.0], 2) * float(LOSSES[y])
            continue
        for again, second, chance in outcomes(policy, P, possible):
            if y in second:
                value = round_weight([exact[y], chance[second.index(y)]], 2) * float(LOSSES[y])
                total += weight * again * value
    assert total == pytest.approx(float(LOSSES[y]))
