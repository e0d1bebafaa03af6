"""CRDPLL as its authors compute it: https://github.com/wu-dd/PLCR, main.py, written out as loops over floats."""

import math
from dataclasses import replace

import pytest
import torch

import naive
from shortlist import methods
from shortlist.internal.streams import generator
from shortlist.labels import StochasticLabels
from shortlist.methods import Batch

EPSILON = 1e-7
"""The authors' log(1 + EPSILON - p)."""


def authors_loss(views: list, candidates: list, confidence: list, share: float) -> float:
    """What they minimise on a batch: views[v][i] the logits of item i, `share` their lambda of the epoch."""
    total = 0.0
    for i, possible in enumerate(candidates):
        weak = naive.softmax(views[0][i])
        total -= sum(math.log(1 + EPSILON - p) for p, there in zip(weak, possible, strict=True) if not there)
        for view in views:  # torch's KLDivLoss(log p, target), summed over the classes
            log_p = naive.log_softmax(view[i])
            total += share * sum(t * (math.log(t) - z) for t, z in zip(confidence[i], log_p, strict=True) if t > 0)
    return total / len(candidates)


def authors_confidence(views: list, candidates: list) -> list:
    """The root of the product of the probabilities, on the candidates, divided by its sum."""
    rows = []
    for i, possible in enumerate(candidates):
        shares = [float(there) for there in possible]
        for view in views:
            shares = [s * p ** (1 / len(views)) for s, p in zip(shares, naive.softmax(view[i]), strict=True)]
        rows.append([s / sum(shares) for s in shares])
    return rows


def case(views: int, seed: int = 0) -> tuple[torch.Tensor, Batch]:
    sample = naive.sample(seed, items=40)
    logits = 2 * torch.randn(views, *sample.logits.shape, dtype=torch.float64, generator=generator(seed, "weights"))
    return logits, Batch(sample.shown, sample.answer, sample.prior, confidence=sample.confidence)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_objective_and_its_gradient_are_the_authors(count):
    logits, batch = case(count)
    lists = batch.candidates.tolist(), batch.confidence.tolist()
    for progress, share in ((0.0, 0.0), (0.2, 0.4), (0.5, 1.0), (0.9, 1.0)):  # lambda rises in half of the training
        told = Batch(**{**vars(batch), "progress": torch.tensor(progress, dtype=torch.float64)})
        views = logits.clone().requires_grad_()
        value = methods.get("crdpll").objective_of_views(list(views), told)
        assert value.item() == pytest.approx(authors_loss(logits.tolist(), *lists, share), rel=1e-5)
        (slope,) = torch.autograd.grad(value, views)
        for at in ((0, 0, 0), (0, 3, 2), (count - 1, 7, 1), (count - 1, 20, 4)):
            moved = logits.clone()
            moved[at] += 1e-5
            rise = authors_loss(moved.tolist(), *lists, share) - authors_loss(logits.tolist(), *lists, share)
            assert slope[at].item() == pytest.approx(rise / 1e-5, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_confidences_are_the_authors(count):
    logits, batch = case(count, seed=1)
    want = torch.tensor(authors_confidence(logits.tolist(), batch.candidates.tolist()), dtype=torch.float64)
    got = methods.get("crdpll").confidence_of_views(list(logits), batch)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_confidences_begin_uniform_and_the_weak_view_alone_is_ruled_out_on():
    labels = StochasticLabels.draw([0, 1, 2, 3, 4] * 8, num_classes=5, size=2, seed=0)
    feed = methods.get("crdpll").feed(labels)
    candidates = torch.from_numpy(labels.candidates).double()
    torch.testing.assert_close(feed.table.double(), candidates / candidates.sum(1, keepdim=True), rtol=0, atol=1e-7)
    logits, batch = case(2)
    method = methods.get("crdpll", pull=0.0)
    assert method.objective_of_views([logits[0], logits[1]], batch) == method.objective(logits[0], batch)


def test_without_a_ramp_the_pull_is_whole_from_the_first_step():
    logits, batch = case(2)
    first, none = (
        methods.get("crdpll", ramp=0.0).objective_of_views(list(logits), replace(batch, progress=progress))
        for progress in (torch.tensor(0.0, dtype=torch.float64), None)
    )
    assert first.item() == pytest.approx(none.item())
    want = authors_loss(logits.tolist(), batch.candidates.tolist(), batch.confidence.tolist(), 1.0)
    assert first.item() == pytest.approx(want, rel=1e-5)
