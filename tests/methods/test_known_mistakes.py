"""The mistakes seen in public re-implementations, each with a test that would catch it.

Three of that list concern training and data, not these rooms, and are tested there: accuracy as a mean of batch means,
a predict that always returns class 0, horizontal flips on characters.
"""

import itertools
import math

import numpy as np
import pytest
import torch

import naive
from shortlist import losses, methods, risks
from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels
from shortlist.methods import Batch

from .cases import CASES, make


def test_unbiased_mcl_multiplies_the_loss_of_the_classes_ruled_out():
    """Not divides: by hand, K = 4, two shown and refused: L_2 + L_3 - (4 - 1 - 2)/2 (L_0 + L_1)."""
    L = torch.tensor([[1.0, 4.0, 2.0, 3.0]])
    shown = torch.tensor([[True, True, False, False]])
    assert risks.unbiased_risk(L, shown, torch.tensor([NONE])).item() == 2 + 3 - 0.5 * (1 + 4)


def test_unbiased_mcl_on_the_none_part_alone_is_the_true_risk():
    """The estimator of multiple complementary labels: given None its expectation is the true risk too."""
    world = naive.population(5, 2)
    none = world.answer == NONE
    L = losses.cross_entropy(world.logits)
    got = risks.unbiased_risk(L[world.point[none]], world.shown[none], world.answer[none], weight=world.weight[none])
    torch.testing.assert_close(got, (world.share[:, None] * world.posterior * L).sum(), rtol=0, atol=1e-10)


def test_log_and_exp_multiply_by_k_minus_1_over_s():
    """K = 4, one class ruled out, p = 1/4 each: factor 3, not 1/3."""
    batch = Batch(torch.tensor([[True, False, False, False]]), torch.tensor([NONE]), torch.ones(5) / 5)
    assert methods.get("log").objective(torch.zeros(1, 4), batch).item() == pytest.approx(-3 * math.log(3 / 4))
    assert methods.get("exp").objective(torch.zeros(1, 4), batch).item() == pytest.approx(3 * math.exp(-3 / 4))


def steps(name: str, count: int):
    """A few steps of training a table of outputs, as the loop does it; yields the confidences before and after."""
    torch.manual_seed(0)
    labels = StochasticLabels.draw(np.arange(20) % 5, num_classes=5, size=2, seed=0)
    method = methods.get(name)
    feed = method.feed(labels, "paper")
    index = torch.arange(len(feed))
    f = torch.randn(len(feed), 5, requires_grad=True)
    for _ in range(count):
        before, batch = feed.table.clone(), feed.batch(index)
        method.objective(f, batch).backward()
        renewed = method.confidence(f, batch)
        with torch.no_grad():
            f -= f.grad
            f.grad = None
        feed.renew(index, renewed if method.refresh == "forward" else method.confidence(f, batch))
        yield before, feed.table


@pytest.mark.parametrize("name", ["lw", "rc", "proden"])
def test_weights_are_updated_at_every_step(name):
    for before, after in steps(name, 3):
        assert not torch.allclose(before, after)


def test_lw_weights_reach_the_objective():
    """Stored but never used would be as bad."""
    batch = [
        Batch(torch.tensor([[True, False, False]]), torch.tensor([NONE]), torch.ones(4) / 4, confidence=w)
        for w in (torch.tensor([[1.0, 0.5, 0.5]]), torch.tensor([[1.0, 0.9, 0.1]]))
    ]
    f = torch.tensor([[0.0, 2.0, -2.0]])
    assert methods.get("lw").objective(f, batch[0]) != methods.get("lw").objective(f, batch[1])


@pytest.mark.parametrize("name", ["proden", "rc"])
def test_weights_start_normalised(name):
    """Un-normalised, an item with many candidates would weigh more than one with few."""
    labels = StochasticLabels.draw(np.arange(50) % 5, num_classes=5, size=np.arange(50) % 4 + 1, seed=0)
    table = methods.get(name).feed(labels).table
    torch.testing.assert_close(table.sum(-1), torch.ones(50))


def test_proden_renews_from_the_forward_pass_and_rc_from_a_second_one():
    assert (methods.get("proden").refresh, methods.get("rc").refresh) == ("forward", "after")


@pytest.mark.parametrize("case", CASES)
def test_no_nan_without_none_or_without_answered(case):
    for items, keep in itertools.product((1, 7), ("answered", "none")):
        sample = naive.sample(items=items, keep=keep)
        batch = Batch(
            sample.shown, sample.answer, sample.prior, confidence=sample.confidence, inclusion=sample.inclusion
        )
        logits = sample.logits.requires_grad_()
        value = make(case).objective(logits, batch)
        value.backward()
        assert value.isfinite()
        assert logits.grad.isfinite().all()


@pytest.mark.parametrize("case", [case for case in CASES if "sigmoid" not in case and case != "exp"])
def test_log_space_instead_of_log_of_softmax(case):
    """The right class far behind: log(softmax) is -inf in float32, its gradient dead or NaN."""
    logits = torch.tensor([[200.0, 0.0, 0.0]], requires_grad=True)
    batch = Batch(
        shown=torch.tensor([[True, False, False]]),
        answer=torch.tensor([NONE]),
        prior=torch.full((4,), 0.25),
        confidence=torch.tensor([[0.0, 0.5, 0.5]]),
    )
    if case.startswith(("ol", "propensity")):  # which learn from answers only
        shown, answer = torch.tensor([[False, True, False]]), torch.tensor([1])
        batch = Batch(shown, answer, batch.prior, inclusion=torch.tensor([0.5]))
    method = make(case)
    value = method.objective(logits, batch)
    value.backward()
    assert value.isfinite()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 0] > 0  # it still learns: away from the class ruled out


@pytest.mark.parametrize("size", [1, 2])
def test_l_of_1_stays_1(size):
    labels = StochasticLabels.draw(np.arange(100) % 10, num_classes=10, size=size, seed=0)
    assert labels.summary().size_histogram == {size: 100}
    feed = methods.get("likelihood").feed(labels)
    assert (feed.batch(torch.arange(100)).shown.sum(-1) == size).all()


@pytest.mark.parametrize("rate", [0.3, 0.7, 0.29])
def test_l_is_never_k_times_a_rate(rate):
    """int(100 * 0.29) is 28; sizes are whole numbers here, and a float is refused, not cut off."""
    for size in (100 * rate, np.full(3, 100 * rate), np.float32(29)):
        with pytest.raises(InputError, match="size: expected integers"):
            StochasticLabels.draw([0, 1, 2], num_classes=100, size=size, seed=0)


def test_the_draw_follows_the_seed():
    """And only the seed: not numpy's or torch's global state, not the order of calls."""
    y = np.arange(200) % 10
    first = StochasticLabels.draw(y, num_classes=10, size=3, seed=1)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    other = StochasticLabels.draw(y, num_classes=10, size=3, seed=2)
    assert StochasticLabels.draw(y, num_classes=10, size=3, seed=1) == first
    assert other != first
    shared = (first.classes.reshape(200, 3) == other.classes.reshape(200, 3)).all(1).mean()
    assert shared < 0.05  # 1 in 120 by chance


def test_a_none_does_not_pass_for_class_0():
    """For a gather NONE = -1 becomes class 0; no None may be learned as that class."""
    sample = naive.sample(size=2, keep="none")
    batch = Batch(sample.shown, sample.answer, sample.prior)
    logits = sample.logits.requires_grad_()
    value = methods.get("ol").objective(logits, batch)
    value.backward()
    assert value == 0
    assert (logits.grad == 0).all()
    L = torch.ones(1, 3, requires_grad=True)
    risks.total_risk(L, torch.tensor([[True, False, False]]), torch.tensor([NONE])).backward()
    assert L.grad.tolist() == [[0, 0.5, 0.5]]
