"""The objective of every method: against plain loops, over dtypes, groups, weights, fleets and processes."""

import itertools
from dataclasses import replace
from functools import partial

import pytest
import torch

import naive

from .cases import CASES, as_type, batch, make, naive_objective, objective


@pytest.mark.parametrize("case", CASES)
def test_every_method_is_its_formula(case):
    """Also without None, without answered items, of one item: never a NaN."""
    for group, sample in naive.GROUPS.items():
        want = pytest.approx(naive_objective(case, sample), rel=1e-12, abs=1e-12)
        assert objective(case, sample).item() == want, group


@pytest.mark.parametrize("case", CASES)
def test_every_method_over_dtypes(case):
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        sample = as_type(naive.sample(items=30), dtype)
        sample = replace(sample, confidence=sample.confidence.float(), inclusion=sample.inclusion.float())
        value = objective(case, sample)
        assert value.dtype == torch.float32, dtype
        assert value.item() == pytest.approx(naive_objective(case, sample), rel=1e-5, abs=1e-5), dtype


@pytest.mark.parametrize("case", CASES)
def test_gradients(case):
    sample = naive.sample(items=5)
    logits = sample.logits.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda f: objective(case, replace(sample, logits=f)), (logits,))


@pytest.mark.parametrize("case", CASES)
def test_huge_logits_stay_finite(case):
    """In every dtype, for every kind of batch."""
    for dtype, (group, given) in itertools.product(naive.DTYPES, naive.GROUPS.items()):
        logits = (1e4 * given.logits.sign()).to(dtype).requires_grad_()
        sample = replace(given, logits=logits)
        value = objective(case, sample)
        value.backward()
        assert value.isfinite(), (group, dtype)
        assert logits.grad.isfinite().all(), (group, dtype)
        assert make(case).confidence(logits, batch(sample)).isfinite().all(), (group, dtype)


@pytest.mark.parametrize("case", CASES)
def test_a_fleet_is_one_more_dimension(case):
    runs = [replace(naive.sample(seed), weight=torch.rand(12, dtype=torch.float64)) for seed in range(3)]
    fleet = naive.Sample(**{name: torch.stack([vars(run)[name] for run in runs]) for name in vars(runs[0])})
    torch.testing.assert_close(objective(case, fleet), torch.stack([objective(case, run) for run in runs]))
    method = make(case)
    for renewed in (lambda run: method.start(batch(run)), lambda run: method.confidence(run.logits, batch(run))):
        torch.testing.assert_close(renewed(fleet), torch.stack([renewed(run) for run in runs]))


@pytest.mark.parametrize("case", CASES)
def test_weight_counts_as_copies(case):
    sample = naive.sample()
    copies = torch.arange(12) % 3
    weighted = replace(sample, weight=copies.double())
    repeated = sample.at(torch.repeat_interleave(torch.arange(12), copies))
    torch.testing.assert_close(objective(case, weighted), objective(case, repeated))
    assert objective(case, weighted).item() == pytest.approx(naive_objective(case, weighted), abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_processes_that_add_their_sums_get_the_whole_batch(case):
    for cut in (0, 1, 5):
        sample = naive.sample()
        sample.logits.requires_grad_()
        whole = objective(case, sample)
        (want,) = torch.autograd.grad(whole, sample.logits)
        values = naive.sharded(partial(objective, case), [sample.at(slice(0, cut)), sample.at(slice(cut, None))])
        for value in values:
            torch.testing.assert_close(value, whole)
        (got,) = torch.autograd.grad(sum(values), sample.logits)
        torch.testing.assert_close(got, want)


def test_cc_with_every_answer_is_the_likelihood():
    sample = naive.sample(items=50)
    torch.testing.assert_close(objective("cc", sample), objective("likelihood", sample))


def test_at_a_fixed_size_log_is_a_multiple_of_cc_on_the_none_part():
    sample = naive.sample(size=3, keep="none")
    torch.testing.assert_close(objective("log", sample), objective("cc", sample) * (5 - 1) / 3)


def test_log_one_minus_softmax():
    from shortlist.methods.base import log_one_minus_softmax

    for f in ([0.3, -1.0, 2.0], [1e4, 0.0, 0.0], [1e4, 1e4, 0.0], [50.0, 0.0], [0.0, 0.0], [-1e4, -1e4, -1e4]):
        rest = [[j for j in range(len(f)) if j != k] for k in range(len(f))]
        want = [naive.log_of_candidates(f, C) for C in rest]
        got = log_one_minus_softmax(torch.tensor(f, dtype=torch.float64))
        torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64))


def test_log_one_minus_softmax_of_large_logits():
    """In float32 the difference of two logsumexps of logits near 1e4 has only three correct digits."""
    from shortlist.methods.base import log_one_minus_softmax

    logits = torch.tensor([[1e4, 1e4 - 0.5, 1e4 - 1]])
    torch.testing.assert_close(log_one_minus_softmax(logits), log_one_minus_softmax(logits.double()).float())
