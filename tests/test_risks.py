"""The risks as functions: against plain loops, over dtypes, groups, weights, fleets and processes."""

import itertools
from dataclasses import replace
from functools import partial

import pytest
import torch

import naive
from shortlist import losses, risks
from shortlist.errors import InputError
from shortlist.internal.tensors import single_process
from shortlist.labels import NONE

LOSS = losses.ovr_square
LINEAR = {"total": risks.total_risk, "unbiased": risks.unbiased_risk}
NONNEGATIVE = {c: partial(risks.nonnegative_risk, correction=c) for c in ("none", "relu", "abs")}
NAMES = ["paper", *LINEAR, *NONNEGATIVE, "likelihood"]


def risk(name, sample, all_sum=single_process, half=False):
    """The risk of a sample, from its logits."""
    rest = {"weight": sample.weight, "all_sum": all_sum}
    if name == "likelihood":
        return risks.likelihood_risk(sample.logits, sample.shown, sample.answer, **rest)
    L = LOSS(sample.logits)
    if half:
        L = L.to(sample.logits.dtype)
    if name == "paper":
        return risks.paper_risk(L, sample.shown, sample.answer, sample.prior, **rest)
    return (LINEAR | NONNEGATIVE)[name](L, sample.shown, sample.answer, **rest)


def naive_risk(name, sample):
    logits, weight = sample.logits.double().tolist(), sample.weights()
    shown, answer = sample.labels()
    if name == "likelihood":
        rows = zip(logits, shown, answer, strict=True)
        return naive.mean([-naive.log_of_candidates(f, naive.candidates(m, s)) for f, m, s in rows], weight)
    L = naive.losses("ovr_square", logits)
    if name == "paper":
        return naive.paper_risk(L, shown, answer, weight, sample.prior.tolist())
    if name in NONNEGATIVE:
        return naive.nonnegative_risk(L, shown, answer, weight, name)
    return {"total": naive.total_risk, "unbiased": naive.unbiased_risk}[name](L, shown, answer, weight)


@pytest.mark.parametrize("name", NAMES)
def test_every_risk_is_its_formula(name):
    """Also without None, without answered items, of one item: never a NaN."""
    for group, sample in naive.GROUPS.items():
        want = pytest.approx(naive_risk(name, sample), rel=1e-12, abs=1e-12)
        assert risk(name, sample).item() == want, group


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", NAMES)
def test_every_risk_over_dtypes(name, dtype):
    sample = naive.sample(items=40, dtype=dtype)
    value = risk(name, sample)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(naive_risk(name, sample), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "likelihood"])
def test_losses_in_half_are_summed_in_float(name):
    """64 losses of about 3000 do not fit into a half, their mean does."""
    sample = naive.sample(items=64, dtype=torch.float16, scale=40)
    value = risk(name, sample, half=True)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(naive_risk(name, sample), rel=1e-2)


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    for group, whole in naive.GROUPS.items():
        sample = whole.at(slice(4))
        value = partial(lambda sample, f: risk(name, replace(sample, logits=f)), sample)
        assert torch.autograd.gradcheck(value, (sample.logits.clone().requires_grad_(),)), group


@pytest.mark.parametrize("name", NAMES)
def test_huge_logits_stay_finite(name):
    """In every dtype, for every kind of batch."""
    for dtype, (group, sample) in itertools.product(naive.DTYPES, naive.GROUPS.items()):
        logits = (1e4 * sample.logits.sign()).to(dtype).requires_grad_()
        value = risk(name, replace(sample, logits=logits))
        value.backward()
        assert value.isfinite(), (group, dtype)
        assert logits.grad.isfinite().all(), (group, dtype)


def test_log_candidates_is_exact_for_huge_logits():
    """Two logsumexps of logits near 1e4 would differ by 0.0006 in float32."""
    logits = [[1e4 + 3, 1e4, 1e4 + 2]]
    got = risks.log_candidates(torch.tensor(logits), torch.tensor([[True, True, False]]))
    assert got.item() == pytest.approx(naive.log_of_candidates(logits[0], [0, 1]), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_fleet_is_one_more_dimension(name):
    runs = [naive.sample(seed) for seed in range(3)]
    fields = ("logits", "shown", "answer", "prior")
    fleet = naive.Sample(**{field: torch.stack([getattr(run, field) for run in runs]) for field in fields})
    torch.testing.assert_close(risk(name, fleet), torch.stack([risk(name, run) for run in runs]))
    weight = torch.rand(3, 12, dtype=torch.float64)
    separate = torch.stack([risk(name, replace(run, weight=w)) for run, w in zip(runs, weight, strict=True)])
    torch.testing.assert_close(risk(name, replace(fleet, weight=weight)), separate)


def test_a_fleet_may_share_one_prior():
    runs = [replace(naive.sample(seed), prior=naive.sample(0).prior) for seed in range(2)]
    fleet = naive.Sample(
        *[torch.stack([getattr(run, field) for run in runs]) for field in ("logits", "shown", "answer")],
        prior=runs[0].prior,
    )
    torch.testing.assert_close(risk("paper", fleet), torch.stack([risk("paper", run) for run in runs]))


@pytest.mark.parametrize("name", NAMES)
def test_weight_counts_as_copies(name):
    for group, sample in naive.GROUPS.items():
        copies = torch.arange(len(sample.answer)) % 3 + (len(sample.answer) == 1)  # 0, 1, 2, 0, 1, 2 ...
        weighted = risk(name, replace(sample, weight=copies.double()))
        repeated = risk(name, sample.at(torch.repeat_interleave(torch.arange(len(copies)), copies)))
        torch.testing.assert_close(weighted, repeated)
        want = pytest.approx(naive_risk(name, replace(sample, weight=copies.double())), abs=1e-12)
        assert weighted.item() == want, group


@pytest.mark.parametrize("name", NAMES)
def test_no_weight_at_all_is_zero(name):
    sample = naive.sample()
    assert risk(name, replace(sample, weight=torch.zeros(12))).item() == 0


@pytest.mark.parametrize("cut", [0, 1, 5, 12])
@pytest.mark.parametrize("name", NAMES)
def test_processes_that_add_their_sums_get_the_whole_batch(name, cut):
    """The value in each process, and the sum of their gradients; also where a process has no item at all."""
    sample = replace(naive.sample(), weight=torch.linspace(0.5, 2, 12, dtype=torch.float64))
    sample.logits.requires_grad_()
    whole = risk(name, sample)
    (want,) = torch.autograd.grad(whole, sample.logits)
    values = naive.sharded(partial(risk, name), [sample.at(slice(0, cut)), sample.at(slice(cut, None))])
    for value in values:
        torch.testing.assert_close(value, whole)
    (got,) = torch.autograd.grad(sum(values), sample.logits)
    torch.testing.assert_close(got, want)


# -- what is special about each ----------------------------------------------------------------------------------------


def test_without_correction_nonnegative_is_unbiased():
    sample = naive.sample()
    torch.testing.assert_close(risk("none", sample), risk("unbiased", sample))


def test_unbiased_can_fall_below_zero_and_the_corrections_cannot():
    """One class shown and refused, the model sure of the four others: L = (5, 3, 3, 3, 3), the first weighs -3."""
    logits = torch.tensor([[-1.0, 1, 1, 1, 1]])
    shown = torch.tensor([[True, False, False, False, False]])
    sample = naive.Sample(logits, shown, torch.tensor([NONE]), prior=torch.ones(6) / 6)
    assert [risk(name, sample).item() for name in ("unbiased", "relu", "abs")] == [-3, 12, 27]


def test_unknown_correction():
    sample = naive.sample()
    with pytest.raises(InputError, match="unknown correction 'rleu': did you mean 'relu'"):
        risks.nonnegative_risk(LOSS(sample.logits), sample.shown, sample.answer, correction="rleu")


def test_candidates_are_the_answer_or_all_not_shown():
    sample = naive.sample(items=50)
    got = risks.candidates(sample.shown, sample.answer)
    for row, shown, answer in zip(got.tolist(), *sample.labels(), strict=True):
        assert [k for k, possible in enumerate(row) if possible] == naive.candidates(shown, answer)


def test_the_loss_of_a_none_is_over_the_hidden_classes_only():
    """A shown class's loss must not reach a None answer of the paper's form, nor a hidden one an answered item."""
    L = torch.tensor([[1.0, torch.inf, 3.0], [torch.inf, 2.0, torch.inf]])
    shown = torch.tensor([[False, True, False], [True, True, False]])
    assert risks.total_risk(L, shown, torch.tensor([NONE, 1])) == 2


def test_answers_may_be_int32():
    sample = naive.sample()
    torch.testing.assert_close(risk("total", replace(sample, answer=sample.answer.int())), risk("total", sample))
