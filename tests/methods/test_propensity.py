"""Losses weighted by inverse propensity: by enumeration over every list the real policies can draw, and as a method."""

import numpy as np
import pytest
import torch

from policies.every_draw import outcomes
from shortlist import methods
from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels, join
from shortlist.losses import cross_entropy, ovr_square
from shortlist.policies.choose import Policy
from shortlist.risks import batch_mean, propensity_loss

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
        value = propensity_loss(LOSSES[None], answer, torch.tensor([pi], dtype=torch.float64), **options)
        total += weight * float(value)
    return total


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_small_answers(dtype):
    losses = LOSSES.to(dtype)[None]
    got = propensity_loss(losses, torch.tensor([1], dtype=torch.int32), torch.tensor([1e-6]))
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
    assert expectation(policy, 4, clip=5.0) == pytest.approx(5.0 * 0.04 * 5.0)
    assert expectation(policy, 0, clip=5.0) == pytest.approx(float(LOSSES[0]))


def test_gradient_reaches_the_losses_and_infinite_losses_of_none_items_do_no_harm():
    losses = torch.tensor([[1.0, 2.0], [torch.inf, 1.0]], requires_grad=True)
    risk = batch_mean(propensity_loss(losses, torch.tensor([1, NONE]), torch.tensor([0.5, 0.0])))
    risk.backward()
    assert risk.item() == pytest.approx(2.0)
    assert losses.grad is not None
    assert losses.grad[0].tolist() == [0.0, 1.0]


def test_the_baseline_is_a_constant_even_where_it_is_the_networks_own():
    logits = torch.tensor([[0.3, -0.2, 0.5]], requires_grad=True)
    answer, inclusion = torch.tensor([1]), torch.tensor([0.5])

    def gradient(q):
        losses = -torch.log_softmax(logits, -1)
        (found,) = torch.autograd.grad(propensity_loss(losses, answer, inclusion, baseline=q).sum(), logits)
        return found

    own = torch.softmax(logits, -1)
    assert own.requires_grad
    torch.testing.assert_close(gradient(own), gradient(torch.softmax(logits, -1).detach()))


# -- the method --------------------------------------------------------------------------------------------------------

LOGITS = torch.tensor([0.2, -1.0, 0.7, 0.0, 1.5], dtype=torch.float64)


def question(shortlist, y, inclusion) -> StochasticLabels:
    """One item of class y asked once, as an export would state it."""
    answer = y if y in shortlist else NONE
    return StochasticLabels.from_lists([shortlist], [answer], 5, inclusion=inclusion)


@pytest.mark.parametrize("policy", MIXED, ids=lambda p: f"{p.kind}-{p.epsilon}-{p.floor}")
def test_from_labels_to_an_unbiased_risk(policy):
    """From lists, answers and probabilities as labels hold them to what is minimised: its mean is sum_y p_y L_y."""
    method = methods.get("propensity", loss="ovr_square")
    total = 0.0
    for y, share in enumerate(P):
        for chance, shortlist, inclusion in outcomes(policy, P, [1] * 5):
            if len(shortlist) == 5 and y not in shortlist:
                continue
            feed = method.feed(question(shortlist, y, inclusion))
            total += share * chance * float(method.objective(LOGITS[None], feed.batch(torch.arange(1))))
    truth = sum(p * float(loss) for p, loss in zip(P, ovr_square(LOGITS), strict=True))
    assert total == pytest.approx(truth, rel=1e-6)  # the probabilities of a feed are float32
    if policy.kind != "uniform":  # what one would do without the weights is biased
        plain = methods.get("ol", loss="ovr_square")
        labels = [(c, question(s, y, i), p) for y, p in enumerate(P) for c, s, i in outcomes(policy, P, [1] * 5)]
        kept = [(c * p, row) for c, row, p in labels if row.answered[0]]
        values = [w * float(plain.objective(LOGITS[None], plain.feed(row).batch(torch.arange(1)))) for w, row in kept]
        assert abs(sum(values) / sum(w for w, _ in kept) - truth) > 0.01


def test_of_several_questions_the_first_counts():
    """A class that only a later question showed has no known chance: the item counts as not answered."""
    rows = StochasticLabels.from_lists(
        [[0, 1], [2], [3, 4], [1, 2]],
        [NONE, 2, 3, 1],
        5,
        items=["a", "a", "b", "b"],
        inclusion=[0.5, 0.5, 0.2, 0.25, 0.5, 0.9, 0.9],
    )
    _, joined = join(rows.subset([0, 1, 2]), ["a", "b"])
    feed = methods.get("propensity").feed(joined)
    assert feed.inclusion.tolist() == [torch.inf, 0.25]
    batch = feed.batch(torch.arange(2))
    value = methods.get("propensity").objective(LOGITS.repeat(2, 1), batch)
    assert float(value) == pytest.approx(float(cross_entropy(LOGITS)[3]) / 0.25 / 2)


def test_forms_against_plain_loops():
    labels = StochasticLabels.from_lists(
        [[0, 1], [2], [3, 4], [1, 2], [4]], [0, NONE, 3, 2, 4], 5, inclusion=[0.9, 0.1, 0.5, 0.02, 1, 0.5, 0.4, 0.25]
    )
    logits = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    L = cross_entropy(logits)
    answers, chances, copies = [0, NONE, 3, 2, 4], [0.9, 1, 0.02, 0.4, 0.25], [1.0, 2.0, 0.5, 0.0, 3.0]
    for form, most in (("plain", 1e9), ("clipped", 20.0), ("clipped", 2.0), ("normalised", 1e9)):
        method = methods.get("propensity", form=form, clip=most)
        weights = [0 if s == NONE else min(1 / pi, most) for s, pi in zip(answers, chances, strict=True)]
        values = [0 if s == NONE else float(L[i, s]) for i, s in enumerate(answers)]
        for copy in (None, copies):
            u = copy or [1.0] * 5
            total = sum(c * w * v for c, w, v in zip(u, weights, values, strict=True))
            count = sum(c * w for c, w in zip(u, weights, strict=True)) if form == "normalised" else sum(u)
            got = method.objective(logits, method.feed(labels, weight=copy).batch(torch.arange(5)))
            assert float(got) == pytest.approx(total / count, rel=1e-6)


def test_labels_that_do_not_say_are_refused():
    labels = StochasticLabels.from_lists([[0, 1], [2]], [0, 2], 3, items=["a", "b"], inclusion=[np.nan, np.nan, 1.0])
    method = methods.get("propensity")
    with pytest.raises(InputError, match=r"for 1 of 2 items, first 'a'$"):
        method.feed(labels)
    with pytest.raises(InputError, match="these labels do not say: an annotation export has it in its column"):
        method.feed(labels.subset([0]))
    assert method.feed(labels.subset([1])).inclusion.tolist() == [1.0]


def test_options_are_checked():
    with pytest.raises(InputError, match="unknown form of propensity 'plane': did you mean 'plain'"):
        methods.get("propensity", form="plane")
    with pytest.raises(InputError, match="clip of propensity: expected above 0, got 0"):
        methods.get("propensity", clip=0)
