"""SL's option `normalisation`: what each amounts to, and that probabilities fit it."""

from dataclasses import replace

import pytest
import torch

import naive
from shortlist import losses, methods
from shortlist.errors import InputError
from shortlist.risks import total_risk

from .cases import batch


@pytest.mark.parametrize("form", ["total", "paper"])
def test_mean_is_sum_over_k(form):
    sample = naive.sample(items=20)
    K = sample.logits.shape[-1]
    by_sum = methods.get("sl", form=form).objective(sample.logits, batch(sample))
    by_mean = methods.get("sl", form=form, normalisation="mean").objective(sample.logits, batch(sample))
    torch.testing.assert_close(by_mean, by_sum / K)


def test_negatives_is_the_loss_of_that_name():
    sample = naive.sample(items=20)
    got = methods.get("sl", normalisation="negatives").objective(sample.logits, batch(sample))
    values = losses.ovr_square(sample.logits, "negatives")
    torch.testing.assert_close(got, total_risk(values, sample.shown, sample.answer, weight=batch(sample).weight))


@pytest.mark.parametrize("normalisation", ["sum", "mean", "negatives"])
def test_probabilities_of_the_minimiser(normalisation):
    """Logits that minimise the expected loss under p are read back as p."""
    p = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
    logits = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def step():
        optimiser.zero_grad()
        risk = (p * losses.ovr_square(logits, normalisation)).sum()
        risk.backward()
        return risk

    optimiser.step(step)
    read = methods.get("sl", normalisation=normalisation).probabilities(logits.detach())
    torch.testing.assert_close(read, p, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"normalisation": "product"}, "unknown normalisation of sl"),
        ({"normalisation": "mean", "loss": "mae"}, "only the loss 'ovr_square' has one"),
    ],
)
def test_bad_options(options, complaint):
    with pytest.raises(InputError, match=complaint):
        methods.get("sl", **options)


def test_a_fleet_is_one_more_dimension():
    runs = [naive.sample(seed) for seed in range(3)]
    fleet = naive.Sample(
        **{n: torch.stack([vars(r)[n] for r in runs]) for n in vars(runs[0]) if vars(runs[0])[n] is not None}
    )
    method = methods.get("sl", normalisation="negatives")
    alone = torch.stack([method.objective(r.logits, batch(r)) for r in runs])
    torch.testing.assert_close(method.objective(fleet.logits, batch(replace(fleet))), alone)
